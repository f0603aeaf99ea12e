"""Policies: the command's answers."""

from __future__ import annotations

import json
from pathlib import Path

import opentcp
import pytest
from conftest import Command

POLICY = Path("policies/opentcp2.toml")
VIEW = Path("policies/example-view.json")


def test_check_and_its_mistakes(command: Command, tmp_path: Path) -> None:
    assert command("policy", "check", POLICY).stdout == f"{POLICY}: {opentcp.Policy.read(POLICY).check()}\n"
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(POLICY.read_text().replace("max_link_utilization", "max_link_utilisation"))
    shown = command("policy", "check", wrong, code=2).stderr.strip()
    with pytest.raises(opentcp.PolicyError) as raised:
        opentcp.Policy.read(wrong)
    assert str(raised.value).strip() == shown
    assert raised.value.diagnostics[0].help is not None
    with pytest.raises(opentcp.PolicyError, match="not TOML"):
        opentcp.Policy("mode = ")


def test_explain(command: Command) -> None:
    policy = opentcp.Policy.read(POLICY)
    explained = policy.explain(VIEW)
    assert str(explained) == command("policy", "explain", POLICY, "--view", VIEW).stdout.rstrip()
    values = json.loads(command("policy", "explain", POLICY, "--view", VIEW, "--json").stdout)
    assert explained.values == values["decision"]
    assert str(policy.explain(json.loads(VIEW.read_text()))) == str(explained)
    with pytest.raises(opentcp.InputError, match="the view"):
        policy.explain({"no": "view"})


def test_try(command: Command) -> None:
    sets = ["--set", "policy.period=2 s"]
    theirs = command("policy", "try", POLICY, "--scenario", "scenarios/policy-try.toml", "--seeds", "5", *sets).stdout
    scenario = opentcp.Scenario.read("scenarios/policy-try.toml")
    trial = opentcp.Policy(POLICY.read_text(), name="opentcp2").try_(
        scenario.set("policy.period", "2 s"), seeds=5, jobs=2
    )
    assert str(trial) == theirs.rstrip()
    assert trial.seeds == 5 and trial.answer in theirs and len(trial.changes) == 4
    with pytest.raises(opentcp.InputError, match="at least 5 seeds"):
        opentcp.Policy.read(POLICY).try_(scenario, seeds=2)
