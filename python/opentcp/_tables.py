"""What a table is to people and data-frame libraries, beside the Arrow interface."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._native import Table

#: Rows that a notebook shows.
_SHOWN = 10


def rows(table: Table) -> Iterator[dict[str, Any]]:
    """Row by row, as dicts: what `pandas.DataFrame(table)` and loops take."""
    names = table.columns
    for values in zip(*(table[name].to_list() for name in names), strict=True):
        yield dict(zip(names, values, strict=True))


def to_pandas(table: Table) -> Any:
    """A data frame of pandas; an integer column that lacks values has floats."""
    import pandas  # type: ignore[import-untyped, unused-ignore]

    return pandas.DataFrame({name: table[name].to_numpy() for name in table.columns})


def to_polars(table: Table) -> Any:
    """A data frame of polars, in the same memory."""
    import polars

    return polars.DataFrame(table)


def page(table: Table) -> str:
    """The first rows, for a notebook."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape('' if cell is None else str(cell))}</td>" for cell in row.values()) + "</tr>"
        for row in rows(table.head(_SHOWN))
    )
    more = f"<p>{len(table)} rows, of which the first {_SHOWN}</p>" if len(table) > _SHOWN else f"<p>{len(table)} rows</p>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
