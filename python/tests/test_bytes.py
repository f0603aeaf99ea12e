"""The same scenario and seed: the bytes of the command."""

from __future__ import annotations

from pathlib import Path

import opentcp
import pytest
from conftest import REPOSITORY, SMALL, Command, files


def test_a_run_has_the_bytes_of_the_command(command: Command, tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL)
    command("run", scenario, "--set", "seed=7", "--out", tmp_path / "command")
    opentcp.Scenario.read(scenario).run(seed=7).write(tmp_path / "python")
    theirs, ours = files(tmp_path / "command"), files(tmp_path / "python")
    assert {"report.html", "flows.parquet", "cwnd.parquet", "link_series.parquet", "summary.json"} <= theirs.keys()
    assert ours == theirs
    assert (tmp_path / "python" / "run.json").exists()


def test_another_seed_has_other_bytes(tmp_path: Path) -> None:
    scenario = opentcp.Scenario.read("scenarios/websearch-leaf-spine.toml")
    short = {"duration": "20 ms", "measure.warmup": "0 s", "tcp.cc": "cubic", "traffic.0.poisson.load": "30 %"}
    first, second = (scenario.set(short).run(seed=seed) for seed in (1, 2))
    assert first.flows["bytes"].to_list() != second.flows["bytes"].to_list()


def test_a_sweep_has_the_bytes_of_the_command(command: Command, tmp_path: Path) -> None:
    sets = ["--set", "traffic.0.incast.repeat=1", "--set", "duration=1 s", "--set", "sweep.seed=[1, 2]"]
    command("run", "scenarios/incast.toml", *sets, "--jobs", "1", "--out", tmp_path / "command")
    scenario = opentcp.Scenario.read("scenarios/incast.toml").set({"traffic.0.incast.repeat": 1, "duration": "1 s"})
    assert len(scenario.runs) == 6
    sweep = scenario.sweep({"seed": [1, 2]}, jobs=2)
    sweep.write(tmp_path / "python")
    assert len(sweep) == 12
    theirs = files(tmp_path / "command")
    assert len(theirs) > 12 * 5
    assert files(tmp_path / "python") == theirs


def test_a_text_a_file_and_a_dict_are_the_same_scenario(tmp_path: Path) -> None:
    values: dict[str, opentcp.Value] = {
        "title": "Two flows, one queue",
        "duration": "500 ms",
        "network": {
            "topology": {"dumbbell": {"pairs": 2}},
            "rate": "100 Mbit/s",
            "tier": {
                "bottleneck": {"rate": "10 Mbit/s", "delay": "5 ms", "queue": {"drop_tail": {"packets": 20}}},
            },
        },
        "traffic": [
            {"name": "first", "bulk": {"from": "left1", "to": "right1"}},
            {"name": "second", "bulk": {"from": "left2", "to": "right2", "bytes": "100 kB"}, "cc": "newreno"},
        ],
        "measure": {"cwnd": "10 ms", "queues": ["s1->s2"], "queue_sample": "1 ms"},
    }
    from_dict = opentcp.Scenario.from_dict(values, name="small")
    text = opentcp.Scenario(SMALL, name="small")
    assert from_dict.toml() == text.toml()
    assert from_dict.name == text.name == "small"
    from_dict.run().write(tmp_path / "dict")
    text.run().write(tmp_path / "text")
    assert files(tmp_path / "dict") == files(tmp_path / "text")


def test_what_a_run_wrote_repeats_it(tmp_path: Path) -> None:
    first = opentcp.Scenario(SMALL).set("tcp.cc", REPOSITORY / "cc" / "vegas.c").run()
    first.write(tmp_path / "first")
    assert (tmp_path / "first" / "files" / "vegas.c").read_bytes() == (REPOSITORY / "cc" / "vegas.c").read_bytes()
    opentcp.Scenario.read(tmp_path / "first" / "scenario.toml").run().write(tmp_path / "second")
    assert files(tmp_path / "second") == files(tmp_path / "first")


def test_a_folder_that_no_run_wrote_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(opentcp.InputError, match="not a results folder"):
        opentcp.Scenario(SMALL).run().write(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"
