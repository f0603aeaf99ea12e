"""Policies: which hosts' TCP changes, when, and how."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._errors import InputError
from ._progress import Report, jobs_of, reporter

if TYPE_CHECKING:
    from ._scenario import Scenario

StrPath = str | os.PathLike[str]


class Policy:
    """A policy, checked. ``Policy(text)`` takes the TOML text of a policy file, `read` the file.

    Both raise `PolicyError` with each mistake and its place. docs/policies.md is the reference of the keys.
    """

    __slots__ = ("_checked", "_path", "_text")

    def __init__(self, text: str, *, name: str = "policy") -> None:
        self._text, self._path = text, None
        self._checked = _native.Policy(name if name.endswith(".toml") else f"{name}.toml", text, os.getcwd())

    @classmethod
    def read(cls, path: StrPath) -> Policy:
        """The policy of a TOML file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read the policy `{os.fspath(path)}`: {error}") from error
        made = cls.__new__(cls)
        made._text, made._path = text, os.path.abspath(path)
        made._checked = _native.Policy(os.fspath(path), text, os.path.abspath(os.path.dirname(path)))
        return made

    #: The file that it was read from.
    _path: str | None

    def _file(self, folder: Path) -> str:
        """The file that it was read from; of a text, a new one in `folder`."""
        if self._path is not None:
            return self._path
        file = folder / f"{self.name}.toml"
        file.write_text(self._text, encoding="utf-8")
        return str(file)

    @property
    def name(self) -> str:
        """Its short name."""
        return self._checked.name

    def check(self) -> str:
        """What it is in a line, as ``opentcp policy check`` prints it: rules, period, share of hosts, mode."""
        return self._checked.words()

    def explain(self, view: Mapping[str, Any] | StrPath) -> Decision:
        """What it would do in a network, and why, as ``opentcp policy explain``.

        The view is the state of a network: a dict, or the path of a JSON file. Nothing is sent.
        """
        if isinstance(view, Mapping):
            text = json.dumps(view)
        else:
            try:
                text = Path(view).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"cannot read the view `{os.fspath(view)}`: {error}") from error
        words, decision = self._checked.explain(text)
        return Decision(words, json.loads(decision))

    def try_(
        self, scenario: Scenario, *, seeds: int = 10, jobs: int | None = None, progress: Report = None
    ) -> Trial:
        """Simulates a scenario with and without the policy, seed by seed, and compares, as ``opentcp policy try``.

        A policy in the scenario is ignored. ``scenario.set("policy.period", "1 s")`` sets T in the simulated network.
        """
        if not 0 <= seeds <= 1000:
            raise InputError(f"seeds is {seeds}: a trial has 5 to 1000 seeds")
        words, tried = self._checked.try_in(scenario._checked, seeds, jobs_of(jobs), reporter(progress))
        return Trial._of(words, json.loads(tried))

    def __repr__(self) -> str:
        return f"<Policy {self.name}: {self.check().removeprefix('good: ')}>"


@dataclass(frozen=True, slots=True)
class Decision:
    """What a policy would do in a network. ``str()`` explains it."""

    #: Every constraint, every rule with the values it used, conflicts, and what would be sent.
    words: str
    #: The same as plain values, as ``opentcp policy explain --json`` prints it.
    values: dict[str, Any]

    def __str__(self) -> str:
        return self.words.rstrip()


@dataclass(frozen=True, slots=True)
class Change:
    """How one quantity differs with a policy from the same network without it."""

    #: ``p50_fct``, ``p90_fct``, ``p99_fct`` or ``drops``.
    name: str
    #: -0.5 is half; None without a pair.
    change: float | None
    #: The 95 % confidence interval; None while it is unbounded.
    interval: tuple[float, float] | None
    #: Pairs of runs that were compared.
    pairs: int


@dataclass(frozen=True, slots=True)
class Trial:
    """Whether a policy helps. ``str()`` is what ``opentcp policy try`` prints."""

    #: ``helps``, ``hurts``, ``no difference`` or ``cannot say``.
    answer: str
    #: By how much, in words.
    reason: str
    #: Pairs of runs.
    seeds: int
    #: Pairs in which the policy did something.
    acted: int
    #: Pairs in which it was rolled back.
    rolled_back: int
    #: Each quantity.
    changes: tuple[Change, ...]
    #: Why rules that were never on were not, a line each.
    silent: tuple[str, ...]
    #: All of it, for people.
    words: str

    @classmethod
    def _of(cls, words: str, tried: dict[str, Any]) -> Trial:
        def change(of: dict[str, Any]) -> Change:
            interval = of["interval"]
            return Change(of["name"], of["change"], tuple(interval) if interval else None, of["pairs"])

        verdict = tried["verdict"]
        return cls(
            answer=tried["answer"],
            reason=verdict["reason"],
            seeds=tried["seeds"],
            acted=tried["acted"],
            rolled_back=tried["rolled_back"],
            changes=tuple(change(of) for of in verdict["quantities"]),
            silent=tuple(tried["silent"]),
            words=words,
        )

    def __str__(self) -> str:
        return self.words.rstrip()
