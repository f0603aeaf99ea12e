"""Congestion-control algorithms."""

from __future__ import annotations

import os
import re
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path

from . import _native
from ._errors import InputError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class Algorithm(os.PathLike[str]):
    """A congestion-control algorithm in C, for a scenario's ``cc``.

    ``Algorithm(text, name="mine")`` takes a text of C, `read` a file. It is compiled by this machine's C compiler: ``$CC``, or else cc,
    clang or gcc. It runs with the rights of this process. The contract, ``tcp.h``, is that of the Linux kernel's ``tcp_congestion_ops``;
    docs/algorithms.md explains it.
    """

    #: The name by which it calls itself.
    name: str
    #: What the compiler warns of; empty if nothing.
    warnings: str
    #: Whether it was made of a text, and so is in a temporary file.
    is_text: bool

    def __init__(self, text: str, *, name: str = "algorithm") -> None:
        if not _NAME.fullmatch(name):
            raise InputError(f"an algorithm cannot be named {name!r}: use letters, digits and _")
        folder = tempfile.mkdtemp(prefix="opentcp-")
        path = Path(folder, f"{name}.c")
        weakref.finalize(self, _remove, path)
        path.write_text(text, encoding="utf-8")
        self._make(str(path), is_text=True)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Algorithm:
        """The algorithm of a C file."""
        made = cls.__new__(cls)
        made._make(os.path.abspath(path), is_text=False)
        return made

    def _make(self, path: str, *, is_text: bool) -> None:
        self._path, self.is_text = path, is_text
        self.name, self.warnings, _ = _native.check_algorithm(path, False)

    def check(self) -> str:
        """Runs it through thousands of ACKs, losses and timeouts, in a process of its own, and checks invariants.

        Returns what was checked in a sentence; raises `InputError` with the operation that broke an invariant.
        """
        return _native.check_algorithm(self._path, True)[2]

    def __fspath__(self) -> str:
        return self._path

    def __repr__(self) -> str:
        return f"<Algorithm {self.name}>"


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """An algorithm that every scenario may name."""

    #: Its name in scenarios.
    name: str
    #: What it is called.
    title: str
    #: ``loss-based``, ``delay-based``, ``hybrid``, ``ECN-based`` or ``model-based``.
    category: str
    #: The networks that it was designed for.
    environment: str
    #: The paper or RFC.
    reference: str
    #: Whether it reacts to ECN marks and therefore negotiates ECN.
    needs_ecn: bool


def algorithms() -> list[BuiltIn]:
    """The built-in algorithms."""
    return [BuiltIn(*row) for row in _native.algorithms()]


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    try:
        path.parent.rmdir()
    except OSError:
        pass  # the temporary folder was emptied by somebody else
