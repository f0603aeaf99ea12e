"""Tables reach data-frame libraries without a copy, and are those of the Parquet files."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import opentcp
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import SMALL, Command

TABLES = ["flows", "links", "link_series", "cwnd", "messages", "jobs", "coflows", "cues", "enforcer"]


@pytest.fixture(scope="module")
def result() -> opentcp.Result:
    return opentcp.Scenario(SMALL).run()


def test_jobs_and_coflows_have_tables() -> None:
    shuffle = 'job = { mapreduce = { mappers = 2, reducers = 2, bytes = "400 kB" }, repeat = 3 }'
    text = f"""
duration = "1 s"
[network]
topology = {{ star = {{ hosts = 4 }} }}
rate = "1 Gbit/s"
[[traffic]]
{shuffle}
"""
    result = opentcp.Scenario(text).run()
    jobs, coflows = pl.DataFrame(result.jobs), pl.DataFrame(result.coflows)
    assert jobs["job"].to_list() == [0, 1, 2] and jobs["jct_ns"].null_count() == 0
    assert coflows["coflow"].to_list() == ["shuffle"] * 3 and coflows["bytes"].to_list() == [400_000] * 3


def test_nothing_is_copied(result: opentcp.Result) -> None:
    table = pa.table(result.cwnd)
    frame = pl.DataFrame(result.cwnd)
    assert len(result.cwnd) == len(table) == len(frame) > 40
    for name in ["time_ns", "flow", "cwnd", "in_flight"]:
        theirs = table[name].chunk(0).buffers()[1].address
        own = frame[name].to_numpy(allow_copy=False).__array_interface__["data"][0]
        assert own == theirs, f"two readers of {name} read the same memory"
        assert pa.array(result.cwnd[name]).buffers()[1].address == theirs
    # a second look reads the same memory too
    assert pa.table(result.cwnd)["cwnd"].chunk(0).buffers()[1].address == table["cwnd"].chunk(0).buffers()[1].address


def test_memory_outlives_the_result() -> None:
    scenario = opentcp.Scenario(SMALL)
    frame = pl.DataFrame(scenario.run().cwnd)
    total = frame["cwnd"].sum()
    for _ in range(20):
        scenario.run()
    assert frame["cwnd"].sum() == total > 0


def test_tables_are_those_of_the_files(result: opentcp.Result, tmp_path: Path) -> None:
    result.write(tmp_path / "out")
    for name in TABLES:
        table, file = pl.DataFrame(result.table(name)), tmp_path / "out" / f"{name}.parquet"
        if file.exists():
            read = pl.read_parquet(file)
            assert table.schema == read.schema
            assert table.equals(read)
        else:
            assert len(table) == 0 and len(table.columns) > 5


def test_every_library_takes_them(result: opentcp.Result) -> None:
    flows = result.flows
    counted = duckdb.sql("SELECT algorithm, count(*) FROM flows GROUP BY 1 ORDER BY 1").fetchall()
    assert counted == [("cubic", 1), ("newreno", 1)]
    if hasattr(pd.DataFrame, "from_arrow"):
        frame = pd.DataFrame.from_arrow(flows)
    else:
        frame = pa.table(flows).to_pandas()
    assert list(frame["algorithm"]) == ["cubic", "newreno"]
    assert math.isnan(frame["fct_ns"][0]) and frame["fct_ns"][1] > 0
    assert pl.Series(flows["src"]).to_list() == ["left1", "left2"]


def test_columns_by_themselves(result: opentcp.Result) -> None:
    flows = result.flows
    assert flows["src"].to_list() == ["left1", "left2"]
    assert flows["fct_ns"].to_list()[0] is None
    fct = np.asarray(flows["fct_ns"])
    assert fct.dtype == np.float64 and np.isnan(fct[0]) and fct[1] == flows["fct_ns"].to_list()[1]
    assert np.asarray(flows["flow"]).dtype == np.int64
    assert np.asarray(result.links["from_host"]).sum() == 4
    assert np.asarray(result.links["utilization"], dtype=np.float32).dtype == np.float32
    assert list(np.asarray(flows["algorithm"])) == ["cubic", "newreno"]
    window = np.asarray(result.cwnd["cwnd"])
    window[0] = 0  # numpy's copy is its own
    assert result.cwnd["cwnd"].to_list()[0] != 0
    assert "fct_ns" in flows and "fct" not in flows


def test_pandas_and_polars_take_tables_as_they_are(result: opentcp.Result) -> None:
    flows = result.flows
    for frame in [pd.DataFrame(flows), flows.to_pandas()]:
        assert list(frame.columns) == flows.columns and len(frame) == 2
        assert list(frame["algorithm"]) == ["cubic", "newreno"] and frame["delivered_bytes"].dtype == np.int64
        assert math.isnan(frame["fct_ns"][0]) and frame["fct_ns"][1] == flows["fct_ns"][1]
    assert flows.to_polars().equals(pl.DataFrame(flows))
    links = pd.DataFrame(result.links)
    assert list(links.columns) == result.links.columns and links["from"][0] == result.links["from"][0]


def test_tables_and_columns_are_looped_over_and_sliced(result: opentcp.Result) -> None:
    flows, cwnd = result.flows, result.cwnd
    assert [flow["src"] for flow in flows] == ["left1", "left2"]
    assert [len(cwnd.head()), len(cwnd.head(3)), len(cwnd[10:20]), len(cwnd.head(10**6))] == [5, 3, 10, len(cwnd)]
    assert cwnd[10:20]["cwnd"].to_list() == cwnd["cwnd"].to_list()[10:20]
    column = cwnd["cwnd"]
    assert [column[0], column[-1], list(column[3:5])] == [*(column.to_list()[at] for at in (0, -1)), column.to_list()[3:5]]
    assert list(column) == column.to_list() and column.to_numpy().sum() == sum(column)
    with pytest.raises(IndexError, match="values, and no"):
        column[len(column)]
    page = cwnd._repr_html_()
    assert page.count("<tr>") == 11 and f"{len(cwnd)} rows" in page and "<th>cwnd</th>" in page
    assert flows._ipython_key_completions_() == flows.columns


def test_results_are_opened_again(result: opentcp.Result, command: Command, tmp_path: Path) -> None:
    result.write(tmp_path / "out")
    read = opentcp.Result.read(tmp_path / "out")
    assert (read.name, read.title, read.parameters, read.summary) == (
        result.name,
        result.title,
        result.parameters,
        result.summary,
    )
    assert read.scenario_toml == result.scenario_toml and read.speed["jobs"] == 1
    for name in TABLES:
        assert pl.DataFrame(read.table(name)).equals(pl.DataFrame(result.table(name))), name
        assert read.table(name).columns == result.table(name).columns
    with pytest.raises(opentcp.InputError, match="copy that folder"):
        read.write(tmp_path / "again")
    scenario = tmp_path / "a.toml"
    scenario.write_text(SMALL)
    command("run", scenario, "--set", "sweep.tcp.cc=['vegas', 'bic']", "--out", tmp_path / "two")
    command("sweep", scenario, "--axis", "tcp.cc=vegas,bic", "--out", tmp_path / "set")
    with pytest.raises(opentcp.InputError, match="2 runs: Sweep.read"):
        opentcp.Result.read(tmp_path / "two")
    for folder in ["two", "set"]:
        sweep = opentcp.Sweep.read(tmp_path / folder)
        assert [run.parameters["algorithm"] for run in sweep] == ["vegas + newreno", "bic + newreno"]
        assert sweep[0].title == "Two flows, one queue" and len(sweep[1].cwnd) == len(result.cwnd)
    with pytest.raises(opentcp.InputError, match="not a results folder"):
        opentcp.Sweep.read(tmp_path)


def test_results_of_another_content_are_not_replaced(result: opentcp.Result, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result.write(out)
    result.write(out)
    other = opentcp.Scenario(SMALL).run(seed=2)
    with pytest.raises(opentcp.InputError, match="has other results"):
        other.write(out)
    other.write(out, replace=True)
    assert opentcp.Result.read(out).summary["seed"] == 2


def test_the_summary_has_the_documented_keys(result: opentcp.Result) -> None:
    known = opentcp.Summary.__annotations__.keys()
    assert result.summary.keys() <= known
    assert known - result.summary.keys() <= {"slowdown", "extra"}
    assert result.summary["flows"] == 2 and result.summary["flows_completed"] == 1
    assert result.parameters == {"algorithm": "cubic + newreno", "seed": "1"}
    assert result.speed["packet_hops_per_s"] > 0


def test_nothing_is_needed() -> None:
    alone = (
        "import sys, opentcp\n"
        "for name in ('numpy', 'pyarrow', 'polars', 'pandas', 'matplotlib'): sys.modules[name] = None\n"
        f"result = opentcp.Scenario({SMALL!r}).run()\n"
        "print(len(result.cwnd['cwnd'].to_list()) == len(result.cwnd) > 40, result.summary['flows'])\n"
    )
    done = subprocess.run([sys.executable, "-c", alone], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "2"]
