"""Published studies: the command's numbers."""

from __future__ import annotations

import json
from pathlib import Path

import opentcp
import pytest
from conftest import Command, files


def test_a_study_has_the_numbers_and_bytes_of_the_command(command: Command, tmp_path: Path) -> None:
    assert {"cfi16", "dctcp"} <= opentcp.studies().keys()
    theirs = command("reproduce", "cfi16", "--set", "duration=1 s", "--json", "--out", tmp_path / "command").stdout
    study = opentcp.study("cfi16", overrides={"duration": "1 s"}, out=tmp_path / "python")
    assert files(study.out) == files(tmp_path / "command")
    rows = json.loads(theirs)["comparisons"]
    assert len(rows) == len(study.comparisons) > 10
    assert [row["ours"] for row in rows] == [row.ours for row in study.comparisons]
    assert study.findings and "vegas" in str(study)


def test_what_no_study_can_do() -> None:
    with pytest.raises(opentcp.InputError, match="there is no study `cfi17`; there are cfi16"):
        opentcp.study("cfi17")
    with pytest.raises(opentcp.InputError, match="at least one seed"):
        opentcp.study("cfi16", seeds=0)
