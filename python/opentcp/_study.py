"""Published studies, repeated."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from . import _native, _toml
from ._errors import InputError
from ._progress import Report, jobs_of, reporter
from ._toml import Value


@dataclass(frozen=True, slots=True)
class Comparison:
    """One of our numbers and the paper's."""

    #: As the paper names it: ``Figure 2``, ``Table 4``.
    figure: str
    #: A variant, or ``environment/variant``.
    case: str
    #: What is compared: drops, throughput, delay.
    quantity: str
    #: Unit of both numbers.
    unit: str
    #: The paper's number; None where it prints none.
    paper: float | None
    #: Our number.
    ours: float
    #: A sentence for the reader; may be empty.
    note: str


@dataclass(frozen=True, slots=True)
class Study:
    """A study's results. ``str()`` is what ``opentcp reproduce`` prints."""

    #: Its name.
    name: str
    #: The folder of its results, with a report.
    out: Path
    #: Tables, as text.
    tables: str
    #: Sentences, computed from the data.
    findings: tuple[str, ...]
    #: Our numbers and the paper's.
    comparisons: tuple[Comparison, ...]
    #: Wall-clock time, seconds.
    wall_s: float

    def __str__(self) -> str:
        return self.tables.rstrip()


def studies() -> dict[str, str]:
    """All studies: their names, and what they are."""
    return dict(_native.studies())


def study(
    name: str,
    *,
    seeds: int = 1,
    full: bool = False,
    overrides: Mapping[str, Value] | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    backend: Literal["sim", "both", "kernel"] = "sim",
    figures: Sequence[int] = (),
    progress: Report = None,
) -> Study:
    """Repeats a published study, as ``opentcp reproduce``: its settings, and its numbers beside the paper's.

    `seeds` runs the seeds 1 to N; numbers are then medians. `full` adds experiments beyond the paper's. `overrides` are dotted keys of the
    study's scenario. Results are written to `out`, by default ``opentcp-results/NAME``. `backend`: the simulator, or real kernels as well
    (as root). `figures` selects figures of the study ``dctcp``.
    """
    if seeds < 1 or seeds >= 1 << 32:
        raise InputError(f"seeds is {seeds}: a study needs at least one seed")
    asked: dict[str, object] = {
        "name": name,
        "seeds": seeds,
        "full": full,
        "sets": [f"{key}={_toml.value(value, key)}" for key, value in (overrides or {}).items()],
        "out": None if out is None else os.fspath(out),
        "jobs": jobs_of(jobs),
        "backend": backend,
        "figures": list(figures),
    }
    tables, findings, comparisons, wall_s, folder = _native.study(asked, reporter(progress))
    rows = tuple(Comparison(**row) for row in json.loads(comparisons))
    return Study(name, folder, tables, tuple(findings), rows, wall_s)
