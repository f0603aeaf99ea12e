"""Congestion-control algorithms."""

from __future__ import annotations

import inspect
import os
import re
import tempfile
import textwrap
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
    docs/algorithms.md explains it. `from_python` takes a class in Python, for teaching.
    """

    #: The name by which it calls itself.
    name: str
    #: What the compiler warns of; empty if nothing.
    warnings: str
    #: Whether it was made of a text or a class, and so is in a temporary file.
    is_text: bool
    #: The class in Python, if it was made of one.
    python: type | None

    def __init__(self, text: str, *, name: str = "algorithm") -> None:
        _check_name(name)
        self._make(self._keep(f"{name}.c", text), is_text=True)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Algorithm:
        """The algorithm of a C file."""
        made = cls.__new__(cls)
        made._make(os.path.abspath(path), is_text=False)
        return made

    @classmethod
    def from_python(cls, algorithm: type, *, name: str | None = None) -> Algorithm:
        """The algorithm of a class in Python, whose methods are hooks. For teaching: a run takes tens of times as long as with C,
        and nothing but this package runs it.

        Methods have the names and arguments of C's hooks, after ``self`` the `Socket`: ``ssthresh(self, sk)``,
        ``cong_avoid(self, sk, ack, acked)``, ``undo_cwnd(self, sk)``, and those of ``init``, ``release``, ``set_state``, ``cwnd_event``,
        ``in_ack_event``, ``pkts_acked``, ``cong_control``, ``min_tso_segs`` and ``sndbuf_expand`` that it needs. Each flow has an
        instance, made without arguments: what it keeps is on ``self``. ``needs_ecn = True`` negotiates ECN. What a hook raises ends the run.

        `name` is the algorithm's, by default the class's in lower case.
        """
        name = algorithm.__name__.lower() if name is None else name
        _check_name(name)
        try:
            text = textwrap.dedent(inspect.getsource(algorithm))
        except (OSError, TypeError):
            text = f"# the class {algorithm.__qualname__}, whose source is not in a file\n"
        made = cls.__new__(cls)
        path = made._keep(f"{name}.py", text)
        register(Path(path), name, algorithm)
        made._make(path, is_text=True, python=algorithm)
        return made

    def _keep(self, file: str, text: str) -> str:
        """Writes a temporary file that exists as long as this object."""
        path = Path(tempfile.mkdtemp(prefix="opentcp-"), file)
        weakref.finalize(self, _remove, path)
        path.write_text(text, encoding="utf-8")
        return str(path)

    def _make(self, path: str, *, is_text: bool, python: type | None = None) -> None:
        self._path, self.is_text, self.python = path, is_text, python
        self.name, self.warnings, _ = _native.check_algorithm(path, False)

    def check(self) -> str:
        """Runs it through thousands of ACKs, losses and timeouts, and checks invariants; C in a process of its own.

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


def register(path: Path, name: str, algorithm: type) -> None:
    """Makes a class the algorithm of a file."""
    _native.register_algorithm(path, name, algorithm)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(f"an algorithm cannot be named {name!r}: use letters, digits and _")


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    try:
        path.parent.rmdir()
    except OSError:
        pass  # the temporary folder was emptied by somebody else
