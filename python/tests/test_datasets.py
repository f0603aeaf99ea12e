"""Sweeps into datasets: the command's bytes, resumed, read as one table, and over policies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import opentcp
import polars as pl
import pyarrow.dataset
import pytest
from conftest import REPOSITORY, SMALL, Command, files

AXES: dict[str, list[opentcp.Value]] = {"traffic.first.cc": ["vegas", "bbr"], "seed": [1, 2]}


def test_a_dataset_has_the_bytes_of_the_command(command: Command, tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL)
    axes = ["--axis", "traffic.first.cc=vegas,bbr", "--axis", "seed=1,2"]
    command("sweep", scenario, *axes, "--out", tmp_path / "command")
    sweep = opentcp.Scenario.read(scenario).sweep(AXES, out=tmp_path / "python", jobs=3)
    theirs = files(tmp_path / "command")
    assert len(theirs) == 4 * 6 + 1
    assert files(tmp_path / "python") == theirs
    assert [result.name for result in sweep] == ["cc=vegas,seed=1", "cc=vegas,seed=2", "cc=bbr,seed=1", "cc=bbr,seed=2"]
    with pytest.raises(opentcp.InputError, match=r"are in .*python already: copy that folder"):
        sweep.write(tmp_path / "again")
    in_memory = opentcp.Scenario.read(scenario).sweep(AXES)
    assert in_memory.rows() == sweep.rows()
    # the tables are read from the dataset
    assert pl.DataFrame(sweep[2].cwnd).equals(pl.DataFrame(in_memory[2].cwnd))
    assert sweep[2].scenario_toml == in_memory[2].scenario_toml


def test_libraries_read_it_as_one_table(tmp_path: Path) -> None:
    sweep = opentcp.Scenario(SMALL).sweep(AXES, out=tmp_path)
    names = {result.name for result in sweep}
    frame = pl.read_parquet(tmp_path / "flows", hive_partitioning=True)
    assert set(frame["run"]) == names and len(frame) == 8
    table = pyarrow.dataset.dataset(tmp_path / "flows", partitioning="hive").to_table()
    assert set(table["run"].to_pylist()) == names and len(table) == 8
    query = f"SELECT run, count(*) FROM read_parquet('{tmp_path}/flows/*/*.parquet', hive_partitioning=true) GROUP BY run"
    assert dict(duckdb.sql(query).fetchall()) == dict.fromkeys(names, 2)
    runs = pl.read_parquet(tmp_path / "runs.parquet")
    assert runs["run"].to_list() == [result.name for result in sweep]
    assert runs["cc"].to_list() == ["vegas", "vegas", "bbr", "bbr"] and runs["seed"].to_list() == [1, 2, 1, 2]
    assert runs["drops_at_switches"].to_list() == [result.summary["drops_at_switches"] for result in sweep]
    joined = frame.join(runs, on="run")
    assert joined.group_by("cc").len().sort("cc")["len"].to_list() == [4, 4]


RESUMED = """\
import opentcp, sys
said = lambda progress: print(progress.finished, flush=True)
axes = {"duration": ["10 ms", "4000 s", "20 ms", "30 ms"]}
try:
    opentcp.Scenario(sys.argv[1]).sweep(axes, out=sys.argv[2], jobs=1, progress=said)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_keeps_what_is_done_and_the_same_sweep_does_the_rest(tmp_path: Path) -> None:
    out = tmp_path / "out"
    child = subprocess.Popen([sys.executable, "-c", RESUMED, SMALL, str(out)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        for line in child.stdout:
            if line == "1\n":
                break
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert said.splitlines()[-1] == "interrupted"
    done = {path.name for path in (out / "runs").iterdir()}
    assert "duration=10ms" in done and len(done) < 4
    written = (out / "flows/run=duration%3D10ms/part.parquet").stat().st_mtime_ns
    axes: dict[str, list[opentcp.Value]] = {"duration": ["10 ms", "4000 s", "20 ms", "30 ms"]}
    sweep = opentcp.Scenario(SMALL).sweep(axes, out=out)
    assert len(sweep) == 4
    assert (out / "flows/run=duration%3D10ms/part.parquet").stat().st_mtime_ns == written
    opentcp.Scenario(SMALL).sweep(axes, out=tmp_path / "whole")
    assert files(out) == files(tmp_path / "whole")


def test_a_folder_of_another_sweep_is_refused_and_stays(tmp_path: Path) -> None:
    scenario = opentcp.Scenario(SMALL)
    scenario.sweep({"seed": [1]}, out=tmp_path)
    before = files(tmp_path)
    with pytest.raises(opentcp.InputError, match="has the run seed=1 of another scenario"):
        scenario.set("duration", "100 ms").sweep({"seed": [1]}, out=tmp_path)
    assert files(tmp_path) == before
    scenario.sweep({"seed": [1, 2]}, out=tmp_path), "and an error does not keep the folder's lock"
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_policies_are_an_axis(tmp_path: Path) -> None:
    scenario = opentcp.Scenario(SMALL + '[policy]\nfile = "policies/opentcp2.toml"\nperiod = "50 ms"\n')
    own = opentcp.Policy((REPOSITORY / "policies" / "opentcp2.toml").read_text(), name="mine")
    policies: list[opentcp.Policy | str | None] = [None, "policies/opentcp1.toml", own]
    sweep = scenario.sweep({"seed": [1, 2]}, policies=policies, out=tmp_path / "out")
    assert [result.parameters["policy"] for result in sweep] == ["none", "opentcp1.toml", f"{own.name}.toml"] * 2
    assert not any("policy" in key for key in sweep[0].summary.get("extra", {}))
    assert any("policy" in key for key in sweep[2].summary["extra"])
    again = scenario.sweep({"seed": [1, 2]}, policies=policies, out=tmp_path / "out")
    assert again.rows() == sweep.rows(), "a policy of a text has the same name the next time"
    with pytest.raises(opentcp.ScenarioError, match="cannot read"):
        scenario.sweep(policies=["nowhere.toml"])


def test_ray_needs_a_folder_and_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(opentcp.InputError, match="needs `out`"):
        opentcp.Scenario(SMALL).sweep({"seed": [1]}, ray="auto")
    try:
        import ray  # noqa: F401
    except ImportError:
        with pytest.raises(opentcp.InputError, match=r"pip install 'opentcp\[ray\]'"):
            opentcp.Scenario(SMALL).sweep({"seed": [1]}, ray="auto", out=tmp_path / "out")
        assert not os.path.exists(tmp_path / "out")
