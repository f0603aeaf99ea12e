"""Exceptions of this package; the extension module raises them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake in a scenario or a policy, and its place."""

    #: What is wrong.
    message: str
    #: The text's name, or ``--set`` for an override (``Scenario.set``).
    file: str
    #: Line, from 1.
    line: int
    #: Column, from 1, in characters.
    column: int
    #: What to write instead, if there is more to say.
    help: str | None


class OpenTCPError(Exception):
    """What this package raises; its subclasses say whose fault it is."""


class InputError(OpenTCPError, ValueError):
    """Something that was passed is wrong; the message says what to do instead."""

    #: Every mistake found, with its place; empty if there is no place.
    diagnostics: tuple[Diagnostic, ...]

    def __init__(
        self,
        text: str,
        diagnostics: Iterable[tuple[str, str, int, int, str | None]] = (),
    ) -> None:
        self.diagnostics = tuple(Diagnostic(*found) for found in diagnostics)
        # A text with lines of its own begins below the exception's name.
        super().__init__(f"\n{text}" if self.diagnostics else text)


class ScenarioError(InputError):
    """A scenario is wrong. ``str()`` shows each mistake with the line that it is in."""


class PolicyError(InputError):
    """A policy is wrong. ``str()`` shows each mistake with the line that it is in."""


class RunError(OpenTCPError, RuntimeError):
    """What was passed is right, and the work failed."""
