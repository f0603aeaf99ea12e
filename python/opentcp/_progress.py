"""Progress of runs: a bar, a callback, or nothing."""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ._errors import InputError

log = logging.getLogger("opentcp")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far some runs are."""

    #: Share of the work that is done, 0 to 1.
    share: float
    #: Runs that are finished.
    finished: int
    #: Runs in all.
    runs: int


#: `None`: a bar in terminals and notebooks, if it takes more than two seconds. `True` and `False`: a bar, nothing.
#: A function is called several times a second; what it raises stops the runs.
Report: TypeAlias = "Callable[[Progress], object] | bool | None"

#: A shorter wait shows no bar.
_PATIENCE_S = 2.0
_WIDTH = 40


def jobs_of(jobs: int | None) -> int:
    """Runs at a time."""
    if jobs is None:
        return len(os.sched_getaffinity(0))
    if jobs < 1:
        raise InputError(f"jobs is {jobs}: at least one run at a time")
    return jobs


def reporter(report: Report) -> Callable[[float, int, int, list[str], list[str]], None]:
    """What the extension module calls: with share, finished runs, runs, notes, and warnings."""
    bar = _Bar() if report is True or report is None and _watched() else None

    def look(share: float, finished: int, runs: int, notes: list[str], cautions: list[str]) -> None:
        for note in notes:
            log.info(note)
        for caution in cautions:
            warnings.warn(caution, stacklevel=3)
        position = Progress(min(share, 1.0), finished, runs)
        if callable(report):
            report(position)
        elif bar is not None:
            bar.show(position)

    return look


class _Bar:
    """A line that is drawn over itself."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.drawn = 0

    def show(self, at: Progress) -> None:
        elapsed = time.monotonic() - self.began
        over = at.runs > 0 and at.finished == at.runs
        if over or elapsed < _PATIENCE_S:
            if self.drawn:
                print("\r" + " " * self.drawn + "\r", end="", file=sys.stderr, flush=True)
                self.drawn = 0
            return
        full = round(at.share * _WIDTH)
        left = f", about {_seconds(elapsed / at.share - elapsed)} left" if at.share > 0.01 else ""
        runs = f"  {at.finished}/{at.runs} runs" if at.runs != 1 else ""
        line = f"{'█' * full}{'░' * (_WIDTH - full)} {at.share:4.0%}{runs}  {_seconds(elapsed)}{left}"
        print("\r" + line.ljust(self.drawn), end="", file=sys.stderr, flush=True)
        self.drawn = max(self.drawn, len(line))


def _seconds(of: float) -> str:
    minutes, seconds = divmod(round(of), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _watched() -> bool:
    """Whether a person watches: a terminal, or a notebook, whose stderr is none."""
    if sys.stderr.isatty():
        return True
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
