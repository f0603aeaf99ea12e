"""Results of runs."""

from __future__ import annotations

import difflib
import html
import json
import os
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict, cast, overload

from . import _native
from ._errors import InputError
from ._native import Column, Table

StrPath = str | os.PathLike[str]


SlowdownOf = TypedDict(
    "SlowdownOf",
    {
        "class": str,
        "min_bytes": int,
        "median_bytes": int,
        "max_bytes": int,
        "flows": int,
        "unfinished": int,
        "p50": float,
        "p95": float,
        "p99": float,
        # percentiles that are lower bounds: unfinished flows could raise them by more than 5 %
        "at_least": list[str],
    },
    total=False,
)


class Slowdown(TypedDict):
    """FCT slowdown by flow size (docs/results.md)."""

    all: SlowdownOf
    classes: list[SlowdownOf]
    by_size: list[SlowdownOf]


class Summary(TypedDict, total=False):
    """A run's numbers, as in `summary.json`. What was not measured is None."""

    scenario: str
    seed: int
    version: str
    duration_ns: int
    flows: int
    flows_completed: int
    packet_hops: int
    drops_at_switches: int
    drops_at_hosts: int
    drops_by_failure: int
    marks: int
    retransmits: int
    rtos: int
    delivered_bytes: int
    goodput_bps: float | None
    mean_data_flow_throughput_bps: float | None
    mean_data_and_ack_flow_throughput_bps: float | None
    #: None without ``measure.packet_delay``.
    mean_packet_delay_ns: float | None
    mean_flow_delay_ns: float | None
    mean_data_and_ack_packet_delay_ns: float | None
    mean_fct_ns: float | None
    median_fct_ns: int | None
    p99_fct_ns: int | None
    max_switch_queue_packets: int
    #: Absent if no flow has an ideal time.
    slowdown: Slowdown
    #: Further numbers of an enforcer, a policy and so on. Absent if there is none.
    extra: dict[str, float]


class Result:
    """What a run measured.

    Tables have the columns of the Parquet files (docs/results.md) and the Arrow PyCapsule interface: ``polars.DataFrame(result.flows)``,
    ``pyarrow.table(result.flows)``, and in DuckDB ``flows = result.flows`` and then ``SELECT * FROM flows``. Nothing is copied.
    ``result.flows.to_pandas()`` is a data frame of pandas. A table that the scenario did not ask for has no rows.
    """

    __slots__ = ("_batch", "_run", "_summary")

    def __init__(self, run: _native.Run, batch: _native.Batch) -> None:
        self._run, self._batch = run, batch
        self._summary: Summary | None = None

    @classmethod
    def read(cls, folder: StrPath) -> Result:
        """The results in a folder that `write` or ``opentcp run`` wrote. Tables are read when they are asked for."""
        batch, runs = _native.read_results(os.fspath(folder))
        if len(runs) != 1:
            raise InputError(f"{os.fspath(folder)} has {len(runs)} runs: Sweep.read reads them")
        return cls(runs[0], batch)

    @property
    def name(self) -> str:
        """The run's name, unique in its sweep."""
        return self._run.name

    @property
    def title(self) -> str:
        """The scenario's sentence, or the run's name."""
        if not self._run.in_memory:
            return str(tomllib.loads(self.scenario_toml).get("title", self._run.name))
        return self._run.title or self._run.name

    @property
    def parameters(self) -> dict[str, str]:
        """What distinguishes it from the other runs of its sweep: algorithm, swept keys, seed."""
        return dict(self._run.parameters)

    @property
    def summary(self) -> Summary:
        """The numbers of ``summary.json``."""
        if self._summary is None:
            folder = self._run.folder
            # of the file itself: every digit is there
            text = self._run.summary() if folder is None else (folder / "summary.json").read_text("utf-8")
            numbers = json.loads(text)
            self._summary = cast(Summary, numbers if folder is None else numbers["summary"])
        return self._summary

    @property
    def flows(self) -> Table:
        """A row for each flow."""
        return self.table("flows")

    @property
    def links(self) -> Table:
        """A row for each link."""
        return self.table("links")

    @property
    def link_series(self) -> Table:
        """Samples of links' queues and utilization (``[measure] queues``)."""
        return self.table("link_series")

    @property
    def cwnd(self) -> Table:
        """Samples of senders' windows (``[measure] cwnd``)."""
        return self.table("cwnd")

    @property
    def messages(self) -> Table:
        """Messages on connections that carry several (``[measure] messages``)."""
        return self.table("messages")

    @property
    def jobs(self) -> Table:
        """Runs of jobs, each with its completion time."""
        return self.table("jobs")

    @property
    def coflows(self) -> Table:
        """Coflows of jobs: the messages of one stage."""
        return self.table("coflows")

    @property
    def cues(self) -> Table:
        """What happened to a policy's rules."""
        return self.table("cues")

    @property
    def enforcer(self) -> Table:
        """Flows that an enforcer handled."""
        return self.table("enforcer")

    def table(self, name: str) -> Table:
        """The table of this name."""
        return self._run.table(name)

    @property
    def scenario_toml(self) -> str:
        """This run's scenario with every default."""
        return self._scenario()[0]

    def _scenario(self) -> tuple[str, list[tuple[str, str]]]:
        return self._run.scenario()

    @property
    def speed(self) -> dict[str, Any]:
        """How fast it was on this machine, as in ``run.json``; of a sweep, all of it."""
        return cast("dict[str, Any]", json.loads(self._batch.info()))

    def write(self, folder: StrPath, *, replace: bool = False) -> None:
        """Writes report, numbers and tables into a folder, with the bytes that ``opentcp run`` writes.

        A folder of the same results is replaced, one of other results if ``replace`` says so; anything else at its place is an error.
        """
        _in_memory([self._run], self._batch)
        self._batch.write(os.fspath(folder), [self._run], replace)

    def __str__(self) -> str:
        return _native.overview([self._run]).rstrip()

    def __repr__(self) -> str:
        return f"<Result {self.name}: {self.summary['flows']} flows>"

    def _repr_html_(self) -> str:
        return _page([self._run])


class Sweep(Sequence[Result]):
    """The results of a sweep, in the order of its runs."""

    __slots__ = ("_batch", "_results", "_runs")

    def __init__(self, runs: list[_native.Run], batch: _native.Batch) -> None:
        self._runs, self._batch = runs, batch
        self._results = [Result(run, batch) for run in runs]

    @classmethod
    def read(cls, folder: StrPath) -> Sweep:
        """The runs in a folder that a sweep wrote, here or by the command. Tables are read when they are asked for."""
        batch, runs = _native.read_results(os.fspath(folder))
        return cls(runs, batch)

    @overload
    def __getitem__(self, which: int) -> Result: ...
    @overload
    def __getitem__(self, which: slice) -> Sweep: ...
    def __getitem__(self, which: int | slice) -> Result | Sweep:
        if isinstance(which, slice):
            return Sweep(self._runs[which], self._batch)
        return self._results[which]

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results)

    def where(self, **parameters: object) -> Sweep:
        """The runs with these parameters: ``sweep.where(algorithm="dctcp", seed=1)``.

        A key may be the scenario's, dotted (``**{"tcp.rto_min": "2 ms"}``), and a value a number: 0.3 is "30 %".
        """
        runs = self._runs
        for key, value in parameters.items():
            name = self._parameter(key)
            there = [dict(run.parameters).get(name) for run in self._runs]
            known = [one for one in dict.fromkeys(there) if one is not None]
            wanted = {one for one in known if _same(one, value)}
            if not wanted:
                near = difflib.get_close_matches(str(value), known, n=1, cutoff=0.4)
                meant = f"did you mean {near[0]!r}? " if near else ""
                raise InputError(f"no run has {name} = {value!r}; {meant}there are {', '.join(map(repr, known))}")
            runs = [run for run in runs if dict(run.parameters).get(name) in wanted]
        return Sweep(runs, self._batch)

    def _parameter(self, key: str) -> str:
        """The name of a parameter, which is the end of the scenario's key unless two end alike."""
        known = list(dict.fromkeys(name for run in self._runs for name, _ in run.parameters))
        own = {"tcp.cc": "algorithm", "policy.file": "policy"}.get(key, key)
        for name in (own, key.rsplit(".", 1)[-1]):
            if name in known:
                return name
        raise InputError(f"no run has a parameter `{key}`; there are {', '.join(sorted(known))}")

    @property
    def speed(self) -> dict[str, Any]:
        """How fast all of it was on this machine, as in ``run.json``."""
        return cast("dict[str, Any]", json.loads(self._batch.info()))

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each run, of its name, its parameters and its single numbers; data frames take the list."""
        out = []
        for result in self:
            numbers = {key: value for key, value in result.summary.items() if not isinstance(value, (dict, list, str))}
            out.append({"run": result.name, **result.parameters, **numbers, **result.summary.get("extra", {})})
        return out

    def write(self, folder: StrPath, *, replace: bool = False) -> None:
        """Writes all runs into a folder, with the bytes that ``opentcp run`` writes."""
        _in_memory(self._runs, self._batch)
        self._batch.write(os.fspath(folder), self._runs, replace)

    def __str__(self) -> str:
        return _native.overview(self._runs).rstrip()

    def __repr__(self) -> str:
        return f"<Sweep {self._batch.scenario}: {len(self)} runs>"

    def _repr_html_(self) -> str:
        return _page(self._runs)


def _in_memory(runs: list[_native.Run], batch: _native.Batch) -> None:
    """Only what is in memory is written."""
    if not all(run.in_memory for run in runs):
        raise InputError(f"these results are in {batch.out} already: copy that folder")


def _same(text: str, value: object) -> bool:
    """Whether a parameter's text is this value: equal, or the same number."""
    if text.replace(" ", "") == str(value).replace(" ", ""):
        return True
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    share = text.endswith("%")
    try:
        number = float(text.rstrip("% "))
    except ValueError:
        return False
    return abs((number / 100 if share else number) - value) <= 1e-9 * max(1.0, abs(value))


def _page(runs: list[_native.Run]) -> str:
    return f"<pre>{html.escape(_native.overview(runs).rstrip())}</pre>"


__all__ = ["Column", "Result", "Slowdown", "SlowdownOf", "Summary", "Sweep", "Table"]
