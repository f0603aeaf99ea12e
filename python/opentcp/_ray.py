"""Sweeps on a Ray cluster.

A task simulates one run and returns its files; the driver puts them into the dataset. So a cluster needs no shared disk, and a run that was
simulated twice, since its first worker died, is written once.
"""

from __future__ import annotations

import importlib
import logging
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _native
from ._algorithm import register
from ._errors import InputError

#: How often a run that fails is tried.
_ATTEMPTS = 2
#: How often Ray starts a run again whose worker or machine died.
_DEATHS = 10
#: How long the driver waits for a run before it looks at progress and Ctrl-C, seconds.
_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Errand:
    """A run for a worker."""

    #: Of the package: another one may give other bytes.
    version: str
    name: str
    parameters: list[tuple[str, str]]
    toml: str
    #: Names and texts of the files that the scenario names.
    files: list[tuple[str, str]]
    #: Algorithms in Python: name of the file, name, class.
    classes: list[tuple[str, str, type]]


def simulate(errand: Errand) -> list[tuple[str, bytes]]:
    """The files of a run's results; a worker's part."""
    if errand.version != _native.__version__:
        raise InputError(f"a worker has opentcp {_native.__version__}, and the driver {errand.version}: install the same")
    with tempfile.TemporaryDirectory(prefix="opentcp-") as base:
        for name, text in errand.files:
            path = Path(base, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for name, of, algorithm in errand.classes:
            register(Path(base, name), of, algorithm)
        return _native.run_shipped(errand.name, errand.parameters, errand.toml, base)


def run(
    sweep: _native.Sweep,
    address: str,
    jobs: int | None,
    classes: Callable[[Sequence[tuple[str, str]]], list[tuple[str, str, type]]],
    look: Callable[[float, int, int, list[str], list[str]], object],
) -> tuple[_native.Batch, list[_native.Run]]:
    """Does what is pending on the cluster, `jobs` runs at a time or as many as it has CPUs. `classes` finds the algorithms in Python
    among a run's files."""
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise InputError("Ray is not installed: pip install 'opentcp[ray]', here and on each node") from error
    connected = not ray.is_initialized()
    if connected:
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
        except (ConnectionError, ValueError) as error:
            raise InputError(f"no Ray cluster at `{address}`: {error}") from error
    try:
        try:
            failed, most = _drive(ray, sweep, jobs, classes, look)
        except BaseException:
            sweep.finish(1, [])  # the table of what is done
            raise
        return sweep.finish(most, failed)
    finally:
        if connected:
            ray.shutdown()


def _drive(
    ray: Any,
    sweep: _native.Sweep,
    jobs: int | None,
    classes: Callable[[Sequence[tuple[str, str]]], list[tuple[str, str, type]]],
    look: Callable[[float, int, int, list[str], list[str]], object],
) -> tuple[list[tuple[str, str]], int]:
    """The runs that failed, with the reason, and how many went on at a time."""
    task = ray.remote(num_cpus=1, max_retries=_DEATHS)(simulate)
    pending = deque(sweep.pending())
    runs, finished, most = len(pending), 0, 0
    going: dict[Any, int] = {}
    tried: Counter[int] = Counter()
    failed: list[tuple[str, str]] = []
    resumed = sweep.resumed()
    notes = [resumed] if resumed else []
    try:
        while pending or going:
            # two for each CPU, so that a worker which is done finds the next one there
            limit = jobs or max(2, 2 * int(ray.cluster_resources().get("CPU", 1)))
            while pending and len(going) < limit:
                number = pending.popleft()
                name, parameters, toml, files = sweep.ship(number)
                errand = Errand(_native.__version__, name, parameters, toml, files, classes(files))
                tried[number] += 1
                going[task.remote(errand)] = number
            most = max(most, len(going))
            ready, _ = ray.wait(list(going), num_returns=1, timeout=_LOOK_S)
            for reference in ready:
                number = going.pop(reference)
                try:
                    files_done = ray.get(reference)
                except ray.exceptions.RayError as error:
                    name, cause = sweep.ship(number)[0], getattr(error, "cause", None) or error
                    if tried[number] < _ATTEMPTS and not isinstance(cause, InputError):
                        notes.append(f"{name}, repeated: {cause}")
                        pending.append(number)
                        continue
                    failed.append((name, str(cause)))
                else:
                    sweep.add(number, files_done)
                finished += 1
            look(finished / max(runs, 1), finished, runs, notes, [])
            notes = []
    except BaseException:
        for reference in going:
            # by force, Ray would end this process if a run is done just now
            ray.cancel(reference)
        raise
    if runs == 0:
        look(1.0, 0, 0, notes, [])
    return failed, max(most, 1)
