"""Python values become the TOML that says the same."""

from __future__ import annotations

import random
import string
import tomllib
from typing import Any

from opentcp import _toml


def drawn(draw: random.Random, depth: int) -> Any:
    kind = draw.randrange(4 if depth == 0 else 6)
    match kind:
        case 0:
            return draw.randrange(-(2**63), 2**63)
        case 1:
            return draw.choice([0.0, -1.5, 1e300, 1e-300, draw.random(), 3.0])
        case 2:
            return draw.random() < 0.5
        case 3:
            letters = string.printable + "äß→\x00\x7f\x1b\u2028😀"
            return "".join(draw.choices(letters, k=draw.randrange(12)))
        case 4:
            return [drawn(draw, depth - 1) for _ in range(draw.randrange(4))]
        case _:
            return table(draw, depth - 1)


def table(draw: random.Random, depth: int) -> dict[str, Any]:
    keys = ["a", "b-c", "with space", "dotted.key", "", 'quo"te', "ü", "7"]
    return {key: drawn(draw, depth) for key in draw.sample(keys, draw.randrange(5))}


def test_what_is_written_is_read_as_it_was() -> None:
    draw = random.Random(1)
    for _ in range(2000):
        values = table(draw, 3)
        text = _toml.document(values)
        assert tomllib.loads(text) == values, text
