"""Figures that people publish, by matplotlib (``pip install 'opentcp[plot]'``).

Each function takes a result, several, or a sweep, draws into `ax` or a new figure, and returns the `Axes`. Several results are one line or
point each, named by the parameters in which they differ; runs that differ in their seed alone are one line, with their range.
`save` writes SVG or PDF: the same bytes every time, fonts that papers take.

    import opentcp, opentcp.plot
    ax = opentcp.plot.queue(opentcp.Scenario.read("dumbbell.toml").run())
    opentcp.plot.save(ax, "queue.svg")
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

try:
    import matplotlib
    import matplotlib.pyplot as plt
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise ImportError("opentcp.plot needs matplotlib: pip install 'opentcp[plot]'") from error

from ._errors import InputError
from ._results import Result
from ._study import Study

#: What every function takes.
Results = Result | Sequence[Result]

#: Distinct also without colours: Okabe and Ito's palette, and a dash pattern for each line.
_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442"]
_DASHES: list[Any] = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2))]

#: Text stays text in SVG, fonts are embedded as outlines that printers take in PDF, and ids do not depend on chance.
_STYLE: Any = {"svg.hashsalt": "opentcp", "svg.fonttype": "none", "pdf.fonttype": 42, "ps.fonttype": 42}


def save(ax: Axes, file: str | os.PathLike[str]) -> None:
    """Writes the figure of `ax` as SVG, PDF or PNG, by the file's ending: the same figure has the same bytes."""
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    kind = os.path.splitext(os.fspath(file))[1].lower()
    undated: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}
    if kind not in undated:
        raise InputError(f"cannot save a figure as `{os.fspath(file)}`: end the name with .svg, .pdf or .png")
    with matplotlib.rc_context(_STYLE):
        figure.savefig(file, metadata=undated[kind], bbox_inches="tight", dpi=200)


def queue(results: Results, link: str | None = None, *, ax: Axes | None = None) -> Axes:
    """A link's queue over time, packets. Needs ``[measure] queues``; `link` is the one with the longest mean queue unless given."""
    ax = _axes(ax)
    for i, (label, result) in enumerate(_labelled(results)):
        series = result.link_series
        if not len(series):
            raise InputError(f"{result.name} has no samples of queues: set `measure.queues`")
        names, time, packets = _text(series["link"]), _array(series["time_ns"]), _array(series["queue_packets"])
        chosen = link or max(sorted(set(names)), key=lambda name: float(packets[names == name].mean()))
        at = names == chosen
        if not at.any():
            known = ", ".join(sorted(set(names)))
            raise InputError(f"{result.name} has no samples of `{chosen}`; there are {known}")
        ax.plot(time[at] / 1e9, packets[at], lw=0.8, label=label or chosen, **_line(i))
    return _finish(ax, "time (s)", "queue (packets)", bottom=0.0)


def cwnd(results: Results, flows: Iterable[int] | None = None, *, ax: Axes | None = None) -> Axes:
    """Senders' congestion windows over time, segments. Needs ``[measure] cwnd``; `flows` are numbers of flows, the first eight unless given."""
    ax, i = _axes(ax), 0
    wanted = None if flows is None else list(flows)
    for label, result in _labelled(results):
        samples = result.cwnd
        if not len(samples):
            raise InputError(f"{result.name} has no samples of windows: set `measure.cwnd`")
        flow, time, window = (_array(samples[name]) for name in ("flow", "time_ns", "cwnd"))
        names = dict(zip(result.flows["flow"].to_list(), result.flows["algorithm"].to_list(), strict=True))
        for number in wanted if wanted is not None else sorted(set(flow.tolist()))[:8]:
            at = flow == number
            if not at.any():
                raise InputError(f"{result.name} has no samples of flow {number}")
            ax.plot(time[at] / 1e9, window[at], lw=0.8, label=_join(label, f"flow {number}, {names[number]}"), **_line(i))
            i += 1
    return _finish(ax, "time (s)", "congestion window (segments)", bottom=0.0)


def slowdown(results: Results, percentile: Literal["p50", "p95", "p99"] = "p99", *, ax: Axes | None = None) -> Axes:
    """FCT slowdown by flow size, at a percentile (``p50``, ``p95``, ``p99``), in groups of about equally many flows.

    An open triangle is a lower bound: flows that did not finish could raise it by more than 5 %.
    """
    if percentile not in ("p50", "p95", "p99"):
        raise InputError(f"there is no percentile `{percentile}`; there are p50, p95, p99")
    ax = _axes(ax)
    for i, (label, group) in enumerate(_groups(results)):
        lines = []
        for result in group:
            groups = result.summary.get("slowdown")
            if groups is None:
                raise InputError(f"no flow of {result.name} has an ideal completion time, and so a slowdown")
            lines.append([(of["median_bytes"], float(of[percentile]), percentile in of.get("at_least", ())) for of in groups["by_size"]])
        _range(ax, [[(x, y) for x, y, _ in line] for line in lines], label, i)
        bounds = [(x, y) for line in lines for x, y, bound in line if bound]
        if bounds:
            ax.plot(*zip(*bounds, strict=True), ls="", marker="^", mfc="none", color=_COLOURS[i % len(_COLOURS)])
    ax.set_xscale("log")
    ax.set_yscale("log")
    return _finish(ax, "flow size (bytes)", f"FCT slowdown, {percentile[1:]}th percentile".replace("50th percentile", "median"))


def cdf(results: Results, column: str = "fct_ns", *, ax: Axes | None = None) -> Axes:
    """The share of flows with at most this completion time (or another column of ``flows``), runs of other seeds together."""
    ax = _axes(ax)
    for i, (label, group) in enumerate(_groups(results)):
        values, share = _shares(group, column)
        ax.plot(values, share, drawstyle="steps-post", label=label, **_line(i))
    _scale(ax)
    return _finish(ax, _unit(column), "share of flows", bottom=0.0, top=1.0)


def ccdf(results: Results, column: str = "fct_ns", *, ax: Axes | None = None) -> Axes:
    """The share of flows with at least this completion time (or another column of ``flows``), on a logarithmic axis: the tail."""
    ax = _axes(ax)
    for i, (label, group) in enumerate(_groups(results)):
        values, share = _shares(group, column)
        # the share at a value counts the value itself, so none is zero
        ax.plot(values, 1.0 - np.concatenate([[0.0], share[:-1]]), drawstyle="steps-pre", label=label, **_line(i))
    _scale(ax)
    ax.set_yscale("log")
    return _finish(ax, _unit(column), "share of flows with at least this")


def fairness(results: Results, *, ax: Axes | None = None) -> Axes:
    """Goodput of all flows together against Jain's index of their delivered bytes, a point for each run."""
    ax = _axes(ax)
    for i, (label, group) in enumerate(_groups(results)):
        points = []
        for result in group:
            delivered = _array(result.flows["delivered_bytes"]).astype(float)
            square = float((delivered**2).sum())
            goodput = result.summary.get("goodput_bps")
            if square == 0 or goodput is None:
                raise InputError(f"{result.name} delivered nothing")
            points.append((float(delivered.sum()) ** 2 / (len(delivered) * square), goodput / 1e6))
        marker = "osD^v<>P"[i % 8]
        ax.plot(*zip(*points, strict=True), ls="", marker=marker, label=label, color=_COLOURS[i % len(_COLOURS)])
    ax.set_xlim(left=0.0, right=1.02)
    return _finish(ax, "fairness (Jain's index of delivered bytes)", "goodput (Mbit/s)", bottom=0.0)


def links(result: Result, value: str = "utilization", *, ax: Axes | None = None) -> Axes:
    """A heat map of a column of ``links``: a row for each sending node, a column for each receiving one, switches first."""
    table = result.links
    numbers = np.asarray(table[value], dtype=float)
    begins, ends = _text(table["from"]), _text(table["to"])
    hosts = {name for name, host in zip(begins, _array(table["from_host"]), strict=True) if host}
    nodes = sorted(set(begins) | set(ends), key=lambda name: (name in hosts, name.rstrip("0123456789"), len(name), name))
    place = {name: i for i, name in enumerate(nodes)}
    grid = np.full((len(nodes), len(nodes)), np.nan)
    for begin, end, number in zip(begins, ends, numbers, strict=True):
        grid[place[begin], place[end]] = number
    ax = _axes(ax)
    image = ax.imshow(grid, cmap="viridis", vmin=0.0, vmax=1.0 if value == "utilization" else None)
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    figure.colorbar(image, ax=ax, label=_unit(value))
    small = 8 if len(nodes) <= 24 else 4
    ax.set_xticks(range(len(nodes)), nodes, rotation=90, fontsize=small)
    ax.set_yticks(range(len(nodes)), nodes, fontsize=small)
    ax.set_xlabel("to")
    ax.set_ylabel("from")
    return ax


def paper(study: Study, quantity: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Our numbers beside the paper's, a pair of bars for each case; `quantity` is the study's first that the paper has, unless given."""
    rows = [row for row in study.comparisons if row.paper is not None]
    known = list(dict.fromkeys(row.quantity for row in rows))
    if quantity is None and known:
        quantity = known[0]
    rows = [row for row in rows if row.quantity == quantity]
    if not rows:
        raise InputError(f"the paper of {study.name} has no numbers of `{quantity}`; there are {', '.join(known) or 'none'}")
    ax, places = _axes(ax), np.arange(len(rows))
    ax.bar(places - 0.2, [row.paper or 0.0 for row in rows], 0.4, label="paper", color=_COLOURS[4], hatch="//", edgecolor="white")
    ax.bar(places + 0.2, [row.ours for row in rows], 0.4, label="OpenTCP", color=_COLOURS[0])
    ax.set_xticks(places, [row.case for row in rows], rotation=45, ha="right", fontsize=8)
    return _finish(ax, "", f"{quantity} ({rows[0].unit})")


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    # a figure that pyplot shows at the end of a notebook's cell; 3.5 inches are a column of a paper
    return plt.subplots(figsize=(5.0, 3.1), layout="constrained")[1]


def _finish(ax: Axes, x: str, y: str, bottom: float | None = None, top: float | None = None) -> Axes:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.set_ylim(bottom=bottom, top=top)
    ax.grid(True, lw=0.3, alpha=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    if any(ax.get_legend_handles_labels()[1]):
        ax.legend(frameon=False, fontsize=8)
    return ax


def _line(i: int) -> dict[str, Any]:
    return {"color": _COLOURS[i % len(_COLOURS)], "ls": _DASHES[i % len(_DASHES)]}


def _each(results: Results) -> list[Result]:
    each = [results] if isinstance(results, Result) else list(results)
    if not each:
        raise InputError("there is no result to draw")
    return each


def _label(result: Result, keys: Sequence[str]) -> str:
    return ", ".join(
        result.parameters[key] if key == "algorithm" else f"{key} {result.parameters[key]}" for key in keys if key in result.parameters
    )


def _differ(each: list[Result], but: Sequence[str] = ()) -> list[str]:
    """The parameters in which they differ. An algorithm that is named by a swept key is not named twice."""
    keys = list(dict.fromkeys(key for result in each for key in result.parameters))
    return [key for key in keys if key not in but and len({result.parameters.get(key) for result in each}) > 1]


def _labelled(results: Results) -> list[tuple[str, Result]]:
    each = _each(results)
    keys = _differ(each)
    return [(_label(result, keys), result) for result in each]


def _groups(results: Results) -> list[tuple[str, list[Result]]]:
    """Runs that differ in their seed alone together."""
    each = _each(results)
    keys = _differ(each, but=["seed"])
    groups: dict[str, list[Result]] = {}
    for result in each:
        groups.setdefault(_label(result, keys), []).append(result)
    return list(groups.items())


def _range(ax: Axes, lines: list[list[tuple[float, float]]], label: str, i: int) -> None:
    """The median of several lines, point by point, and their range; sizes differ a little from seed to seed, so points go by rank."""
    points = min(len(line) for line in lines)
    grid = np.array([line[:points] for line in lines])
    x, y = np.median(grid[:, :, 0], axis=0), np.median(grid[:, :, 1], axis=0)
    ax.plot(x, y, marker="o", ms=3, label=label, **_line(i))
    if len(lines) > 1:
        low, high = grid[:, :, 1].min(axis=0), grid[:, :, 1].max(axis=0)
        ax.fill_between(x, low, high, color=_COLOURS[i % len(_COLOURS)], alpha=0.2, lw=0)


def _shares(group: list[Result], column: str) -> tuple[Any, Any]:
    values = np.concatenate([np.asarray(result.flows[column], dtype=float) for result in group])
    values = np.sort(values[~np.isnan(values)]) / _divisor(column)
    if not len(values):
        raise InputError(f"no flow of {group[0].name} has a value of `{column}`")
    return values, np.arange(1, len(values) + 1) / len(values)


def _scale(ax: Axes) -> None:
    """Logarithmic where the values span more than a decade."""
    lines: Callable[[], Any] = ax.get_lines
    values = np.concatenate([line.get_xdata() for line in lines()])
    if values.min() > 0 and values.max() > 10 * values.min():
        ax.set_xscale("log")


def _divisor(column: str) -> float:
    return 1e6 if column.endswith("_ns") else 1.0


def _unit(column: str) -> str:
    names = {"fct_ns": "flow completion time (ms)", "slowdown": "FCT slowdown", "utilization": "utilization"}
    if column in names:
        return names[column]
    words = column.replace("_", " ")
    return f"{words.removesuffix(' ns')} (ms)" if column.endswith("_ns") else words


def _join(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _array(column: Any) -> Any:
    return np.asarray(column)


def _text(column: Any) -> Any:
    return np.array(column.to_list(), dtype=str)
