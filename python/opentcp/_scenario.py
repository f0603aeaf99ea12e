"""Scenarios: read, changed, run, swept."""

from __future__ import annotations

import difflib
import os
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast, overload

from . import _native, _ray, _toml
from ._algorithm import Algorithm
from ._errors import InputError
from ._policy import Policy
from ._progress import Report, jobs_of, reporter
from ._results import Result, Sweep
from ._toml import Value

StrPath = str | os.PathLike[str]


class Scenario:
    """A network, its traffic, its hosts' TCP, and what is measured; checked, and never changed.

    ``Scenario(text)`` takes the TOML text of a scenario file, `read` the file, `from_dict` the same as Python values. ``Scenario(path)`` is
    understood as `read`. Values are read by their dotted keys, ``scenario["tcp.cc"]``, defaults included.
    scenarios/README.md is the reference of the keys. All of them check everything, and raise `ScenarioError` with each mistake and its
    place. Paths in a text begin at the working directory, those in a file at its folder.
    """

    __slots__ = ("_base", "_checked", "_kept", "_name", "_sets", "_text")

    def __init__(self, text: StrPath, *, name: str = "scenario") -> None:
        if not isinstance(text, str) or ("\n" not in text and "=" not in text):
            read = Scenario.read(text)
            self._make(*read._written())
            return
        self._make(name if name.endswith(".toml") else f"{name}.toml", text, os.getcwd(), (), ())

    @classmethod
    def read(cls, path: StrPath) -> Scenario:
        """The scenario of a TOML file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read the scenario `{os.fspath(path)}`: {error}") from error
        return cls._of(os.fspath(path), text, os.path.abspath(os.path.dirname(path)))

    @classmethod
    def from_dict(cls, values: Mapping[str, Value], *, name: str = "scenario") -> Scenario:
        """The scenario of nested dicts and lists, with the keys of a scenario file.

        Times, rates and sizes are texts with a unit (``"10 ms"``). An `Algorithm` may stand wherever a file of C may.
        """
        return cls._of(f"{name}.toml", _toml.document(values), os.getcwd(), kept=_algorithms(values))

    @classmethod
    def _of(
        cls,
        name: str,
        text: str,
        base: str,
        sets: Sequence[str] = (),
        kept: Sequence[Algorithm] = (),
    ) -> Scenario:
        made = cls.__new__(cls)
        made._make(name, text, base, sets, kept)
        return made

    def _make(
        self, name: str, text: str, base: str, sets: Sequence[str], kept: Sequence[Algorithm] = ()
    ) -> None:
        self._name, self._text, self._base, self._sets = name, text, base, tuple(sets)
        # Texts of C are in temporary files, which exist as long as these objects.
        self._kept = tuple(kept)
        self._checked = _native.Scenario(name, text, base, list(sets))

    @overload
    def set(self, key: str, value: Value, /) -> Scenario: ...
    @overload
    def set(self, values: Mapping[str, Value], /) -> Scenario: ...
    def set(self, key: str | Mapping[str, Value], value: Value | None = None, /) -> Scenario:
        """The same scenario with another value, as by ``opentcp run --set KEY=VALUE``; or with several, of a dict.

        A key is dotted: ``"tcp.cc"``, ``"network.tier.core.rate"``. An entry of a list has its name, or its number from 0:
        ``"traffic.old.cc"``, ``"traffic.0.cc"``. A key that the sweep varies then has this value alone. The result is checked, so
        values that only fit together are set together.
        """
        values = key if isinstance(key, Mapping) else {key: cast(Value, value)}
        sets = [f"{name}={_toml.value(values[name], name)}" for name in values]
        return self._of(
            self._name, self._text, self._base, (*self._sets, *sets), (*self._kept, *_algorithms(values))
        )

    @property
    def name(self) -> str:
        """Its short name: the file's without its ending, unless it names itself."""
        return self._checked.name

    @property
    def title(self) -> str | None:
        """A sentence for the report."""
        return self._checked.title

    @property
    def seed(self) -> int:
        """The only source of randomness: the same seed gives the same bytes."""
        return self._checked.seed

    @property
    def duration_s(self) -> float:
        """How long the network runs, seconds."""
        return self._checked.duration_s

    @property
    def runs(self) -> list[str]:
        """The names of its runs: one, or one for each combination of its sweep's values."""
        return [name for name, _ in self._checked.runs]

    def to_dict(self) -> dict[str, Any]:
        """The scenario with every default, as `toml` has it, as nested dicts and lists."""
        return tomllib.loads(self.toml())

    def __getitem__(self, key: str) -> Any:
        """The value of a dotted key, as `set` takes it, with defaults: ``scenario["network.tier.bottleneck.rate"]``."""
        value: Any = self.to_dict()
        for part in key.split("."):
            value = _below(value, part, key)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """The same, or `default` where the scenario has no such key."""
        try:
            return self[key]
        except KeyError:
            return default

    def toml(self) -> str:
        """The scenario with every default written out; of a sweep, that of the first run."""
        return self._checked.toml()

    def show(self) -> str:
        """Network and traffic as text, as ``opentcp scenario show`` prints it."""
        return self._checked.sketch()[0]

    def page(self) -> str:
        """Network and traffic drawn, as an HTML page."""
        return self._checked.sketch()[1]

    def run(self, seed: int | None = None, *, progress: Report = None) -> Result:
        """Simulates it and returns the results, in memory.

        Releases the interpreter's lock. Ctrl-C stops it within a fraction of a second.
        """
        scenario = self if seed is None else self.set("seed", seed)
        runs = scenario._checked.runs
        if len(runs) > 1:
            raise InputError(f"this scenario is a sweep of {len(runs)} runs: call .sweep(), or .set() each swept key")
        batch, done = scenario._checked.simulate(1, reporter(progress))
        return Result(done[0], batch)

    def sweep(
        self,
        axes: Mapping[str, Sequence[Value]] | None = None,
        *,
        policies: Sequence[Policy | StrPath | None] | None = None,
        jobs: int | None = None,
        out: StrPath | None = None,
        ray: str | None = None,
        progress: Report = None,
    ) -> Sweep:
        """Simulates every combination of values, several at a time.

        `axes` are dotted keys and their values, beside those of the scenario's own ``[sweep]``; the last one varies fastest. `policies` are
        an axis as well, the last: a `Policy` or its file, and None for a network without one. `jobs` is the number of runs at a time, the
        number of CPUs unless given; results do not depend on it.

        Without `out` all tables are in memory. With it each run is added to the dataset in that folder when it is done, as by
        ``opentcp sweep``, and only the numbers stay. The same sweep into the same folder does what is not done yet. A run that fails is
        tried once more, and the others go on; `RunError` then names those that failed.

        `ray` is the address of a running Ray cluster, or ``"auto"``: the runs go on there, and this process writes the dataset `out`.
        """
        values: dict[str, Value] = {f"sweep.{key}": values for key, values in (axes or {}).items()}
        report = reporter(progress)
        if ray is not None and out is None:
            raise InputError("a sweep on Ray needs `out`, the folder of its dataset")
        with tempfile.TemporaryDirectory(prefix="opentcp-") as folder:
            if policies is not None:
                values["sweep.policy.file"] = [_policy_file(policy, Path(folder)) for policy in policies]
            scenario = self.set(values)
            if out is None:
                batch, done = scenario._checked.simulate(jobs_of(jobs), report)
                return Sweep(done, batch)
            sweep = _native.Sweep(scenario._checked, os.fspath(out), jobs_of(jobs), report)
            try:
                if ray is None:
                    batch, done = sweep.run(jobs_of(jobs), report)
                else:
                    batch, done = _ray.run(sweep, ray, jobs and jobs_of(jobs), scenario._classes, report)
            finally:
                sweep.close()
        return Sweep(done, batch)

    def _classes(self, files: Sequence[tuple[str, str]]) -> list[tuple[str, str, type]]:
        """The algorithms in Python among the files of a run: file, name, class."""
        found = []
        for file, text in files:
            for algorithm in self._kept:
                path = Path(algorithm)
                if algorithm.python and path.name == file.rsplit("/", 1)[-1] and path.read_text("utf-8") == text:
                    found.append((file, algorithm.name, algorithm.python))
                    break
        return found

    def __repr__(self) -> str:
        runs = len(self._checked.runs)
        many = f", {runs} runs" if runs > 1 else ""
        return f"<Scenario {self.name}: {self.duration_s:g} s, seed {self.seed}{many}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scenario):
            return NotImplemented
        return self._written() == other._written()

    def __hash__(self) -> int:
        return hash(self._written())

    def __reduce__(self) -> tuple[object, ...]:
        if any(algorithm.is_text for algorithm in self._kept):
            raise TypeError("a scenario with an algorithm from a text cannot be pickled: write the algorithm to a file")
        return Scenario._of, self._written()

    def _written(self) -> tuple[str, str, str, tuple[str, ...]]:
        return self._name, self._text, self._base, self._sets


def _below(value: Any, part: str, key: str) -> Any:
    """What a table or a list has under this name; an entry of a list has its own, or its number."""
    known: list[str] = []
    if isinstance(value, dict):
        known = list(value)
        if part in value:
            return value[part]
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            name = entry.get("name", str(number)) if isinstance(entry, dict) else str(number)
            if part in (name, str(number)):
                return entry
            known.append(name)
    near = difflib.get_close_matches(part, known, n=1)
    meant = f"did you mean `{near[0]}`? " if near else ""
    raise KeyError(f"`{key}`: there is no `{part}`; {meant}there are {', '.join(known) or 'none'}")


def _policy_file(policy: Policy | StrPath | None, folder: Path) -> str:
    """The file of a policy; of a text, one in `folder`."""
    if policy is None:
        return "none"
    if not isinstance(policy, Policy):
        return os.path.abspath(policy)
    return policy._file(folder)


def _algorithms(value: Value) -> list[Algorithm]:
    """The algorithms somewhere in a value."""
    match value:
        case Algorithm():
            return [value]
        case str() | bytes():
            return []
        case Mapping():
            return [found for one in value.values() for found in _algorithms(one)]
        case Sequence():
            return [found for one in value for found in _algorithms(one)]
        case _:
            return []
