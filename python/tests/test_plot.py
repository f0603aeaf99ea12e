"""Figures: the same bytes every time, with what the results have."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import opentcp
import opentcp.plot
import pytest
from conftest import SMALL
from matplotlib.axes import Axes

LOADED = """\
duration = "40 ms"
[network]
topology = { leaf_spine = { leaves = 2, spines = 2, hosts_per_leaf = 4 } }
rate = "1 Gbit/s"
[[traffic]]
poisson = { load = "50 %", sizes = "web-search" }
"""


@pytest.fixture(scope="module")
def sweep() -> opentcp.Sweep:
    return opentcp.Scenario(LOADED).sweep({"tcp.cc": ["cubic", "dctcp"], "seed": [1, 2, 3]})


@pytest.fixture(scope="module")
def result() -> opentcp.Result:
    return opentcp.Scenario(SMALL).run()


@pytest.fixture(autouse=True)
def closed() -> None:
    plt.close("all")


def lines(ax: Axes) -> dict[str, tuple[list[float], list[float]]]:
    return {str(line.get_label()): (list(line.get_xdata()), list(line.get_ydata())) for line in ax.get_lines()}


def test_queue_and_cwnd_are_the_samples(result: opentcp.Result) -> None:
    drawn = lines(opentcp.plot.queue(result))
    series = result.link_series
    assert drawn == {
        "s1->s2": ([ns / 1e9 for ns in series["time_ns"].to_list()], series["queue_packets"].to_list()),
    }
    windows = lines(opentcp.plot.cwnd(result))
    assert list(windows) == ["flow 0, cubic", "flow 1, newreno"]
    assert sum(len(x) for x, _ in windows.values()) == len(result.cwnd)
    with pytest.raises(opentcp.InputError, match="no samples of `s9->s2`; there are s1->s2"):
        opentcp.plot.queue(result, "s9->s2")
    with pytest.raises(opentcp.InputError, match="no samples of flow 7"):
        opentcp.plot.cwnd(result, [7])


def test_runs_of_other_seeds_are_one_line(sweep: opentcp.Sweep) -> None:
    for draw in (opentcp.plot.slowdown, opentcp.plot.cdf, opentcp.plot.ccdf, opentcp.plot.fairness):
        labels = [label for label in lines(draw(sweep)) if not label.startswith("_")]
        assert labels == ["cubic", "dctcp"], draw
    finished = sum(result.summary["flows_completed"] for result in sweep.where(algorithm="cubic"))
    x, share = lines(opentcp.plot.cdf(sweep))["cubic"]
    assert len(x) == finished and share[-1] == 1.0 and x == sorted(x)
    x, share = lines(opentcp.plot.ccdf(sweep))["cubic"]
    assert share[0] == 1.0 and share[-1] == pytest.approx(1 / finished)


def test_fairness_by_hand(result: opentcp.Result) -> None:
    first, second = result.flows["delivered_bytes"].to_list()
    (((index,), (goodput,)),) = lines(opentcp.plot.fairness(result)).values()
    assert index == pytest.approx((first + second) ** 2 / (2 * (first**2 + second**2)))
    assert goodput == pytest.approx((first + second) * 8 / 0.5 / 1e6)


def test_a_heat_map_has_a_cell_for_each_link(result: opentcp.Result) -> None:
    ax = opentcp.plot.links(result)
    grid = ax.get_images()[0].get_array()
    assert grid is not None and grid.count() == len(result.links) == 10
    assert [tick.get_text() for tick in ax.get_xticklabels()][:2] == ["s1", "s2"]


def test_the_papers_numbers_beside_ours() -> None:
    row = dict(figure="Table 4", quantity="throughput", unit="%", note="")
    study = opentcp.Study(
        "cfi16",
        Path("out"),
        "",
        (),
        (
            opentcp.Comparison(case="vegas", paper=8.0, ours=7.5, **row),
            opentcp.Comparison(case="bic", paper=None, ours=1.0, **row),
        ),
        1.0,
    )
    bars = opentcp.plot.paper(study).patches
    assert [bar.get_height() for bar in bars] == [8.0, 7.5]
    with pytest.raises(opentcp.InputError, match="no numbers of `delay`; there are throughput"):
        opentcp.plot.paper(study, "delay")


def test_what_was_not_measured_is_named(sweep: opentcp.Sweep, result: opentcp.Result) -> None:
    for draw, key in [(opentcp.plot.queue, "measure.queues"), (opentcp.plot.cwnd, "measure.cwnd")]:
        with pytest.raises(opentcp.InputError, match=f"set `{key}`"):
            draw(sweep[0])
    with pytest.raises(opentcp.InputError, match="there is no percentile `p42`"):
        opentcp.plot.slowdown(sweep, "p42")  # type: ignore[arg-type]
    with pytest.raises(opentcp.InputError, match="there is no result"):
        opentcp.plot.cdf([])
    with pytest.raises(opentcp.InputError, match=r"\.svg, \.pdf or \.png"):
        opentcp.plot.save(opentcp.plot.queue(result), "figure.docx")


@pytest.mark.parametrize("kind", ["svg", "pdf"])
def test_the_same_bytes_in_another_process(tmp_path: Path, kind: str) -> None:
    code = (
        "import matplotlib; matplotlib.use('agg')\n"
        "import opentcp, opentcp.plot, sys\n"
        f"result = opentcp.Scenario({SMALL!r}).run()\n"
        "opentcp.plot.save(opentcp.plot.queue(result), sys.argv[1])\n"
    )
    digests = set()
    for number in (1, 2):
        file = tmp_path / f"{number}.{kind}"
        subprocess.run([sys.executable, "-c", code, str(file)], check=True)
        digests.add(hashlib.sha256(file.read_bytes()).hexdigest())
    assert len(digests) == 1
    if kind == "svg":
        text = (tmp_path / "1.svg").read_text()
        assert "queue (packets)" in text, "text is text, which a paper's font can set"
        assert "<dc:date>" not in text


def test_it_draws_into_what_is_given(result: opentcp.Result) -> None:
    draws: list[Callable[..., Axes]] = [opentcp.plot.queue, opentcp.plot.cwnd, opentcp.plot.cdf, opentcp.plot.links]
    for draw in draws:
        given = plt.subplots()[1]
        assert draw(result, ax=given) is given
