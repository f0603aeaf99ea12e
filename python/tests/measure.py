"""Prints the package's figures: what Python costs over the command, and how fast a large table reaches polars.

    OPENTCP=target/dist/opentcp python python/tests/measure.py
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time

import opentcp
import polars as pl
import pyarrow as pa

PAIRS = 3

#: A million samples of windows.
MANY = {
    "duration": "20 s",
    "network.topology": {"dumbbell": {"pairs": 50}},
    "measure": {"cwnd": "1 ms"},
    "traffic": [{"bulk": {"from": f"left{i}", "to": f"right{i}"}} for i in range(1, 51)],
}


def million() -> None:
    """A million rows to polars: the conversion of rows to columns, which the first look pays, and the hand-over."""
    result = opentcp.Scenario.read("scenarios/dumbbell.toml").set(MANY).run()
    began = time.perf_counter()
    table = result.cwnd
    made = time.perf_counter()
    frame = pl.DataFrame(table)
    given = time.perf_counter()
    arrow = pa.table(table)
    same = [
        frame[name].to_numpy(allow_copy=False).__array_interface__["data"][0] == arrow[name].chunk(0).buffers()[1].address
        for name in ("time_ns", "flow", "cwnd", "in_flight")
    ]
    print(
        f"{len(frame):,} rows of {len(frame.columns)} columns: made in {(made - began) * 1e3:.1f} ms, to polars in "
        f"{(given - made) * 1e3:.2f} ms, the same memory: {all(same)}"
    )


def cost(arguments: list[str]) -> tuple[float, float]:
    """Wall-clock and CPU seconds of a program."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(arguments, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - began, sum(getattr(after, of) - getattr(before, of) for of in ("ru_utime", "ru_stime"))


def overhead(command: str, duration: str) -> None:
    """The command and Python in turn; CPU time, of which other work on the machine takes less than of wall-clock time."""
    scenario, sets = "scenarios/permutation-fat-tree.toml", {"tcp.cc": "dctcp", "seed": 1, "duration": duration}
    code = (
        "import opentcp, sys\n"
        f"opentcp.Scenario.read({scenario!r}).set({sets!r}).run(progress=False).write(sys.argv[1])\n"
    )
    options = [option for key, value in sets.items() for option in ("--set", f"{key}={value}")]
    walls: dict[str, list[float]] = {"command": [], "python": []}
    cpus: dict[str, list[float]] = {"command": [], "python": []}
    with tempfile.TemporaryDirectory() as out:
        for _ in range(PAIRS):
            runs = {
                "command": [command, "-q", "run", scenario, *options, "--out", f"{out}/command"],
                "python": [sys.executable, "-c", code, f"{out}/python"],
            }
            for name, arguments in runs.items():
                wall, cpu = cost(arguments)
                walls[name].append(wall)
                cpus[name].append(cpu)
    for name in walls:
        shown = ", ".join(f"{wall:.2f}" for wall in walls[name])
        print(f"{name}: {shown} s; CPU {', '.join(f'{cpu:.2f}' for cpu in cpus[name])} s")
    changes = [sorted(of["python"])[PAIRS // 2] / sorted(of["command"])[PAIRS // 2] - 1 for of in (walls, cpus)]
    print(f"Python over the command, medians: wall-clock {changes[0]:+.1%}, CPU {changes[1]:+.1%}")


if __name__ == "__main__":
    million()
    overhead(os.environ["OPENTCP"], sys.argv[1] if len(sys.argv) > 1 else "200 ms")
