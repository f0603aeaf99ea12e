"""What the tests share: scenarios, and the command to compare with."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

#: Two flows share a queue; everything that a scenario can measure of them is measured.
SMALL = """\
title = "Two flows, one queue"
duration = "500 ms"

[network]
topology = { dumbbell = { pairs = 2 } }
rate = "100 Mbit/s"

[network.tier.bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
queue = { drop_tail = { packets = 20 } }

[[traffic]]
name = "first"
bulk = { from = "left1", to = "right1" }

[[traffic]]
name = "second"
bulk = { from = "left2", to = "right2", bytes = "100 kB" }
cc = "newreno"

[measure]
cwnd = "10 ms"
queues = ["s1->s2"]
queue_sample = "1 ms"
"""


class Command:
    """The command `opentcp`, built with the wheel."""

    def __init__(self, program: str) -> None:
        self.program = program

    def __call__(self, *arguments: str | os.PathLike[str], code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self.program, "--color", "never", *arguments], capture_output=True, text=True, cwd=REPOSITORY, check=False
        )
        assert done.returncode == code, done.stderr
        return done


@pytest.fixture(scope="session")
def command() -> Command:
    program = os.environ.get("OPENTCP")
    if program is None:
        pytest.skip("OPENTCP does not name the command: tools/python sets it")
    return Command(program)


@pytest.fixture(autouse=True)
def in_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


def files(folder: Path, but: Sequence[str] = ("run.json",)) -> dict[str, bytes]:
    """Every file below a folder."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in but)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}
