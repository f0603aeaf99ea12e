"""The notebooks run as they are: as scripts, and one of them as a notebook."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jupytext
import nbclient
import pytest
from conftest import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "python" / "notebooks").glob("*.py"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of its own, with the repository's policies."""
    (tmp_path / "policies").symlink_to(REPOSITORY / "policies")
    return tmp_path


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_as_a_script(notebook: Path, place: Path) -> None:
    environment = os.environ | {"MPLBACKEND": "agg", "TMPDIR": str(place)}
    done = subprocess.run(
        [sys.executable, str(notebook)], capture_output=True, text=True, cwd=place, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout and "Traceback" not in done.stderr, done.stderr


def test_every_notebook_has_text_and_code() -> None:
    assert len(NOTEBOOKS) == 6
    for notebook in NOTEBOOKS:
        cells = jupytext.read(notebook).cells
        kinds = [cell.cell_type for cell in cells]
        assert kinds[0] == "markdown" and cells[0].source.startswith("# "), notebook
        assert kinds.count("code") >= 2 and kinds.count("markdown") >= 2, notebook


def test_a_notebook_runs_as_a_notebook(place: Path) -> None:
    notebook = jupytext.read(REPOSITORY / "python" / "notebooks" / "first_bottleneck.py")
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": place}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs), "a figure is shown"
    assert any("finished" in output.get("text", "") for output in outputs), "and a line of numbers"
