"""Wrong input: the command's own words and places, and nothing else breaks."""

from __future__ import annotations

from pathlib import Path

import opentcp
import pytest
from conftest import SMALL, Command

#: What is wrong, by what is replaced in a scenario; and the line that must be named.
MISTAKES = {
    "misspelt key": ("duration =", "duratoin =", 2),
    "misspelt algorithm": ('cc = "newreno"', 'cc = "newrno"', 20),
    "no unit": ('rate = "100 Mbit/s"', 'rate = "100"', 6),
    "wrong unit": ('delay = "5 ms"', 'delay = "5 Mbit/s"', 10),
    "no such host": ('to = "right2"', 'to = "right9"', 19),
    "wrong type": ("pairs = 2", 'pairs = "two"', 5),
    "out of range": ("packets = 20", "packets = 0", 11),
    "unknown topology": ("dumbbell", "dumbell", 5),
    "not TOML": ("[measure]", "[measure", 22),
    "missing file": ('cc = "newreno"', 'cc = "nowhere.c"', 20),
    "sweep of nothing": ("[measure]", "[sweep]\nseed = []\n[measure]", 23),
    "no traffic": ("[[traffic]]", "[[traffik]]", 13),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_shown_as_by_the_command(command: Command, tmp_path: Path, mistake: str) -> None:
    before, after, line = MISTAKES[mistake]
    assert before in SMALL
    file = tmp_path / "small.toml"
    file.write_text(SMALL.replace(before, after))
    shown = command("run", file, code=2).stderr.strip()
    with pytest.raises(opentcp.ScenarioError) as raised:
        opentcp.Scenario.read(file)
    assert str(raised.value).strip() == shown
    assert line in [found.line for found in raised.value.diagnostics], raised.value.diagnostics
    assert all(found.file == str(file) and found.column >= 1 and found.message for found in raised.value.diagnostics)
    assert isinstance(raised.value, ValueError)


def test_every_mistake_is_reported_at_once() -> None:
    text = SMALL.replace("duration", "duratoin").replace("newreno", "newrno")
    with pytest.raises(opentcp.ScenarioError) as raised:
        opentcp.Scenario(text)
    assert len(raised.value.diagnostics) == 3
    help = [found.help for found in raised.value.diagnostics]
    assert any(words and "did you mean `duration`" in words for words in help)


def test_an_override_is_checked_where_it_is_made() -> None:
    scenario = opentcp.Scenario(SMALL)
    with pytest.raises(opentcp.ScenarioError) as raised:
        scenario.set("traffic.third.cc", "vegas")
    assert "no entry `third` in this list; it has: first, second" in str(raised.value)
    with pytest.raises(opentcp.ScenarioError, match="not a dotted key"):
        scenario.set("no key", "vegas")
    assert scenario.set("tcp.cc", "vegas") != scenario, "and a scenario does not change"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"bytes", "is of type bytes"),
        ({"a", "set"}, "is of type set"),
        (float("nan"), "a number here is finite"),
        (None, "is of type NoneType"),
        ({1: 2}, "a key is a text"),
        ("\ud800", "not Unicode"),
    ],
)
def test_what_toml_has_not_is_refused_by_name(value: opentcp.Value, words: str) -> None:
    with pytest.raises(opentcp.InputError, match=words):
        opentcp.Scenario.from_dict({"duration": value})
    with pytest.raises(opentcp.InputError, match="duration"):
        opentcp.Scenario(SMALL).set("duration", value)


def test_a_file_that_is_not_there() -> None:
    for read in (opentcp.Scenario.read, opentcp.Policy.read):
        with pytest.raises(opentcp.InputError, match="cannot read the .* `nowhere.toml`: .*No such file"):
            read("nowhere.toml")


def test_a_sweep_is_no_run_and_needs_a_job() -> None:
    scenario = opentcp.Scenario(SMALL).set("sweep.seed", [1, 2])
    assert scenario.runs == ["seed=1", "seed=2"]
    with pytest.raises(opentcp.InputError, match=r"a sweep of 2 runs: call \.sweep\(\)"):
        scenario.run()
    with pytest.raises(opentcp.InputError, match="at least one run at a time"):
        scenario.sweep(jobs=0)
    with pytest.raises(opentcp.ScenarioError, match="an empty sweep"):
        opentcp.Scenario(SMALL).sweep({"seed": []})


def test_a_table_and_a_column_that_are_not_there() -> None:
    result = opentcp.Scenario(SMALL).run()
    with pytest.raises(KeyError, match="no column `fct`; there are flow, src"):
        result.flows["fct"]
    with pytest.raises(KeyError, match="sessions"):
        result.table("sessions")
