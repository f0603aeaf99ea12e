"""Algorithms: the built-in ones, and C of one's own."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import opentcp
import polars as pl
import pytest
from conftest import REPOSITORY, SMALL

VEGAS = REPOSITORY / "cc" / "vegas.c"


def test_the_built_in_ones() -> None:
    names = [algorithm.name for algorithm in opentcp.algorithms()]
    assert names == sorted(path.stem for path in (REPOSITORY / "cc").glob("*.c"))
    needs_ecn = [algorithm.name for algorithm in opentcp.algorithms() if algorithm.needs_ecn]
    assert needs_ecn == ["d2tcp", "dctcp", "prague"]


def test_a_text_of_c_runs_as_its_twin_that_is_built_in() -> None:
    own = opentcp.Algorithm(VEGAS.read_text(), name="mine")
    assert own.name == "vegas" and own.warnings == ""
    scenario = opentcp.Scenario(SMALL)
    theirs, ours = scenario.set("tcp.cc", "vegas").run(), scenario.set("tcp.cc", own).run()
    assert pl.DataFrame(ours.cwnd).equals(pl.DataFrame(theirs.cwnd))
    assert ours.parameters["algorithm"] == "mine + newreno"
    both = scenario.sweep({"tcp.cc": ["vegas", opentcp.Algorithm.read(VEGAS)]})
    assert pl.DataFrame(both[0].cwnd).equals(pl.DataFrame(both[1].cwnd))
    in_dict = opentcp.Scenario.from_dict(
        {
            "duration": "10 ms",
            "network": {"topology": {"dumbbell": {"pairs": 1}}},
            "traffic": [{"bulk": {"from": "left1", "to": "right1"}, "cc": own}],
        }
    )
    assert "mine.c" in in_dict.toml()


def test_the_text_lives_as_long_as_what_uses_it() -> None:
    scenario = opentcp.Scenario(SMALL).set("tcp.cc", opentcp.Algorithm(VEGAS.read_text() + "\n", name="mine"))
    path = Path(scenario.toml().split('cc = "')[1].split('"')[0])
    assert path.exists()
    assert scenario.run().summary["flows"] == 2
    with pytest.raises(TypeError, match="cannot be pickled: write the algorithm to a file"):
        pickle.dumps(scenario)
    del scenario
    assert not path.exists() and not path.parent.exists()


def test_check_says_what_it_checked() -> None:
    assert "operations, windows up to" in opentcp.Algorithm.read(VEGAS).check()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("int x = ;", "does not compile"),
        ('#include "tcp.h"\n', "declares no algorithm"),
    ],
)
def test_what_is_no_algorithm(text: str, words: str) -> None:
    with pytest.raises(opentcp.InputError, match=words):
        opentcp.Algorithm(text)
    with pytest.raises(opentcp.InputError, match="cannot be named"):
        opentcp.Algorithm(text, name="../escape")


def test_without_a_compiler() -> None:
    """Everything but C of one's own works, and that says what is missing."""
    code = (
        "import opentcp, sys\n"
        f"print(opentcp.Scenario({SMALL!r}).run().summary['flows'])\n"
        f"try: opentcp.Algorithm.read({str(VEGAS)!r})\n"
        "except opentcp.InputError as error: print(error)\n"
    )
    environment = {key: value for key, value in os.environ.items() if key != "CC"} | {"PATH": "/nonexistent"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    flows, error = done.stdout.splitlines()
    assert flows == "2"
    assert "no C compiler" in error and "install gcc or clang" in error
