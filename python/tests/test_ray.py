"""A sweep on a real Ray cluster of two nodes, of which one is killed: every run once, with the bytes of the local sweep."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import opentcp
import pytest
from conftest import Command, files

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray==2.60.*'")

#: Half a second of work for each core.
NETWORK = """\
duration = "15 ms"

[network]
topology = { leaf_spine = { leaves = 2, spines = 2, hosts_per_leaf = 2 } }
rate = "1 Gbit/s"

[[traffic]]
name = "web"
poisson = { load = "20 %", sizes = "web-search" }
"""
AXES: dict[str, list[opentcp.Value]] = {
    "tcp.cc": ["cubic", "dctcp", "bbr"],
    "traffic.web.poisson.load": ["20 %", "40 %", "60 %", "80 %"],
    "seed": [1, 2, 3, 4, 5],
}
RUNS = 60
#: More than a cluster needs to start, on a busy machine.
PATIENCE_S = 120


class Cluster:
    """Two nodes on this machine, with addresses and a temporary folder of their own."""

    def __init__(self) -> None:
        # names of sockets in it must be short
        self.folder = tempfile.mkdtemp(prefix="ot-ray-", dir="/tmp")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.nodes: list[subprocess.Popen[bytes]] = []

    def start(self, *options: str) -> None:
        environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0"}
        program = str(Path(sys.executable).with_name("ray"))
        log = open(Path(self.folder, f"node-{len(self.nodes)}.log"), "wb")
        common = ["--block", "--num-cpus=1", "--object-store-memory=100000000", "--disable-usage-stats"]
        with log:
            node = subprocess.Popen([program, "start", *common, *options], stdout=log, stderr=log, env=environment)
        self.nodes.append(node)

    def wait(self, nodes: int) -> None:
        code = (
            "import ray, sys, time\n"
            f"ray.init(address={self.address!r}, log_to_driver=False, logging_level='ERROR')\n"
            f"while sum(node['Alive'] for node in ray.nodes()) < {nodes}: time.sleep(0.2)\n"
        )
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=PATIENCE_S, check=False)
            if done.returncode == 0:
                return
            time.sleep(1)
        logs = [path.read_text() for path in sorted(Path(self.folder).glob("node-*.log"))]
        raise AssertionError(f"the cluster did not start: {logs}")

    def kill(self, node: int) -> None:
        """Without a farewell: all processes of the node."""
        for pid in [*descendants(self.nodes[node].pid), self.nodes[node].pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.nodes[node].wait()

    def stop(self) -> None:
        for node in range(len(self.nodes)):
            self.kill(node)
        shutil.rmtree(self.folder, ignore_errors=True)


def descendants(pid: int) -> list[int]:
    """Of a process, the deepest first."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [found for child in map(int, children) for found in [*descendants(child), child]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        cluster.start(
            "--head",
            f"--port={cluster.port}",
            "--node-ip-address=127.0.0.1",
            f"--temp-dir={cluster.folder}",
            "--include-dashboard=false",
        )
        cluster.wait(1)
        cluster.start(f"--address={cluster.address}", "--node-ip-address=127.0.0.2")
        cluster.wait(2)
        yield cluster
    finally:
        ray.shutdown()
        cluster.stop()


INTERRUPTED = """\
import opentcp, sys
said = lambda progress: print(progress.finished, flush=True)
try:
    opentcp.Scenario(sys.argv[1]).sweep(AXES, out=sys.argv[2], ray=sys.argv[3], progress=said)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_an_algorithm_in_python_runs_on_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    class Reno:
        def ssthresh(self, sk: opentcp.Socket) -> int:
            return sk.tcp_reno_ssthresh()

        def cong_avoid(self, sk: opentcp.Socket, ack: int, acked: int) -> None:
            sk.tcp_reno_cong_avoid(acked)

        def undo_cwnd(self, sk: opentcp.Socket) -> int:
            return sk.tcp_reno_undo_cwnd()

    scenario = opentcp.Scenario(NETWORK).set("tcp.cc", opentcp.Algorithm.from_python(Reno))
    for name, address in [("there", cluster.address), ("here", None)]:
        scenario.sweep({"seed": [1, 2]}, out=tmp_path / name, ray=address)
    assert files(tmp_path / "there") == files(tmp_path / "here")
    assert "files/reno.py" in (tmp_path / "here/runs/seed=1/scenario.toml").read_text()


def test_a_run_that_fails_there_is_reported_and_the_others_go_on(cluster: Cluster, tmp_path: Path) -> None:
    class Divides:
        def ssthresh(self, sk: opentcp.Socket) -> int:
            return 2

        def cong_avoid(self, sk: opentcp.Socket, ack: int, acked: int) -> None:
            sk.snd_cwnd //= 0

        def undo_cwnd(self, sk: opentcp.Socket) -> int:
            return 2

    axes: dict[str, list[opentcp.Value]] = {"tcp.cc": ["cubic", opentcp.Algorithm.from_python(Divides)]}
    with pytest.raises(opentcp.RunError, match=r"1 of 2 runs failed[^\n]*\n  cc=divides.py: .*ZeroDivisionError"):
        opentcp.Scenario(NETWORK).sweep(axes, out=tmp_path / "out", ray=cluster.address)
    assert [path.name for path in (tmp_path / "out/runs").iterdir()] == ["cc=cubic"]


def test_every_run_is_there_once_whoever_dies(cluster: Cluster, command: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    # interrupted ...
    code = INTERRUPTED.replace("AXES", repr(AXES))
    arguments = [sys.executable, "-c", code, NETWORK, str(out), cluster.address]
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        for line in child.stdout:
            if line.strip().isdigit() and int(line) >= 5:
                break
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=PATIENCE_S)
    finally:
        child.kill()
    assert said.splitlines()[-1] == "interrupted"
    before = {path.name: path.stat().st_mtime_ns for path in (out / "runs").iterdir()}
    assert 5 <= len(before) < RUNS
    # ... resumed, and the second node killed in the middle
    alive: list[int] = []
    finished: list[int] = []

    def watch(progress: opentcp.Progress) -> None:
        if progress.finished >= 10 and not finished:
            alive.append(sum(node["Alive"] for node in ray.nodes()))
            cluster.kill(1)
        finished.append(progress.finished) if alive else None

    sweep = opentcp.Scenario(NETWORK).sweep(AXES, out=out, ray=cluster.address, progress=watch)
    assert alive == [2] and finished[0] < RUNS - len(before), "both nodes worked, and there was work left when one died"
    assert len(sweep) == RUNS == len({result.name for result in sweep})
    for name, written in before.items():
        assert (out / "runs" / name).stat().st_mtime_ns == written, "what was done is not done again"
    opentcp.Scenario(NETWORK, name="scenario").sweep(AXES, out=tmp_path / "local")
    ours = files(out)
    assert sum(path.startswith("flows/") for path in ours) == RUNS
    assert ours == files(tmp_path / "local")
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(NETWORK)
    axes = ["tcp.cc=cubic,dctcp,bbr", "traffic.web.poisson.load=20 %,40 %,60 %,80 %"]
    options = [option for axis in axes for option in ("--axis", axis)]
    command("sweep", scenario, *options, "--seeds", "5", "--out", tmp_path / "command")
    assert ours == files(tmp_path / "command")
