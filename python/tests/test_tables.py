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
from conftest import SMALL

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
    assert list(flows) == flows.columns


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
