"""Python values as TOML. Reading is the extension module's."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ._errors import InputError

#: What a scenario's value may be. A path is a text; an `Algorithm` is a path.
Value: TypeAlias = "str | int | float | bool | os.PathLike[str] | Sequence[Value] | Mapping[str, Value]"

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def key(name: str) -> str:
    """A key of a table, in quotes if it needs them."""
    return name if _BARE.fullmatch(name) else _text(name, name)


def value(of: Value, where: str) -> str:
    """A value in one line; `where` it is, for the message if it cannot be one."""
    match of:
        case bool():
            return "true" if of else "false"
        case str():
            return _text(of, where)
        case int():
            return str(of)
        case float():
            if not math.isfinite(of):
                raise InputError(f"`{where}` is {of}: a number here is finite")
            return repr(of)
        case os.PathLike():
            return _text(os.path.abspath(os.fspath(of)), where)
        case Mapping():
            _check_keys(of, where)
            inside = ", ".join(f"{key(name)} = {value(of[name], f'{where}.{name}')}" for name in of)
            return f"{{ {inside} }}" if inside else "{}"
        case bytes() | bytearray() | memoryview():
            pass
        case Sequence():
            return "[" + ", ".join(value(one, f"{where}.{i}") for i, one in enumerate(of)) + "]"
    # numpy's numbers
    item = getattr(of, "item", None)
    if callable(item) and getattr(of, "shape", None) == ():
        return value(item(), where)
    kind = type(of).__name__
    raise InputError(
        f"`{where}` is of type {kind}, which a scenario cannot hold: "
        "write a text, a number, True or False, a list or a dict; times, rates and sizes are texts, such as '10 ms'"
    )


def document(root: Mapping[str, Value]) -> str:
    """A TOML text, laid out as a person would write it, since mistakes are shown in it."""
    _check_keys(root, "the scenario")
    lines: list[str] = []
    _table(root, "", lines)
    return "\n".join(lines).strip() + "\n"


def _table(table: Mapping[str, Value], path: str, lines: list[str]) -> None:
    inner: list[tuple[str, Value]] = []
    for name in table:
        of, at = table[name], f"{path}.{key(name)}" if path else key(name)
        # Tables of the first level, and lists of tables, have a heading; what is inside is in one line.
        if path == "" and isinstance(of, Mapping) and of or _is_tables(of):
            inner.append((at, of))
        else:
            lines.append(f"{key(name)} = {value(of, at)}")
    for at, of in inner:
        for one in [of] if isinstance(of, Mapping) else of:  # type: ignore[union-attr]
            assert isinstance(one, Mapping)
            _check_keys(one, at)
            lines += ["", f"[{at}]" if isinstance(of, Mapping) else f"[[{at}]]"]
            _table(one, at, lines)


def _is_tables(of: Value) -> bool:
    return (
        isinstance(of, Sequence)
        and not isinstance(of, (str, bytes, bytearray))
        and len(of) > 0
        and all(isinstance(one, Mapping) for one in of)
    )


def _check_keys(table: Mapping[str, Value], where: str) -> None:
    for name in table:
        if not isinstance(name, str):
            raise InputError(f"{name!r} in `{where}` is of type {type(name).__name__}: a key is a text")


def _text(of: str, where: str) -> str:
    # JSON's escapes are TOML's as well, but for DEL, which TOML wants escaped, and single surrogates, which are no text.
    try:
        of.encode()
    except UnicodeEncodeError:
        raise InputError(f"{where!r} is {of!r}, which is not Unicode text") from None
    return json.dumps(of, ensure_ascii=False).replace("\x7f", "\\u007f")
