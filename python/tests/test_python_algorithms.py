"""Algorithms in Python: the bytes of their twins in C, and errors that end a run."""

from __future__ import annotations

from pathlib import Path

import opentcp
import pytest
from conftest import SMALL, files

OPEN = 0
TX_START, CWND_RESTART = 0, 1


class NewReno:
    """cc/newreno.c."""

    def ssthresh(self, sk: opentcp.Socket) -> int:
        return max(sk.snd_cwnd // 2, 2)

    def cong_avoid(self, sk: opentcp.Socket, ack: int, acked: int) -> None:
        if not sk.tcp_is_cwnd_limited():
            return
        if sk.tcp_in_slow_start():
            acked = sk.tcp_slow_start(acked)
            if acked == 0:
                return
        sk.tcp_cong_avoid_ai(sk.snd_cwnd, acked)

    def undo_cwnd(self, sk: opentcp.Socket) -> int:
        return max(sk.snd_cwnd, sk.prior_cwnd)


class Vegas:
    """cc/vegas.c, with its rounds."""

    ALPHA, BETA, GAMMA = 2, 4, 1

    def __init__(self) -> None:
        self.base_us = self.least_us = self.samples = self.end_seq = 0

    def begin(self, sk: opentcp.Socket) -> None:
        self.least_us = self.samples = 0
        self.end_seq = sk.snd_nxt

    def init(self, sk: opentcp.Socket) -> None:
        rtt = sk.tcp_min_rtt()
        self.base_us = 0 if rtt == 0xFFFFFFFF else max(rtt, 1)
        self.begin(sk)

    def pkts_acked(self, sk: opentcp.Socket, sample: opentcp.AckSample) -> None:
        if sample.rtt_us < 0:
            return
        rtt = max(sample.rtt_us, 1)
        self.base_us = min(self.base_us or rtt, rtt)
        self.least_us = min(self.least_us or rtt, rtt)
        self.samples += 1

    def cong_avoid(self, sk: opentcp.Socket, ack: int, acked: int) -> None:
        if sk.icsk_ca_state != OPEN:
            sk.tcp_reno_cong_avoid(acked)
        elif (ack - self.end_seq) & 0xFFFFFFFF in range(1, 1 << 31):
            if self.samples > 1:
                self.adjust(sk, acked)
            else:
                sk.tcp_reno_cong_avoid(acked)
            self.begin(sk)
        elif sk.tcp_in_slow_start() and sk.tcp_is_cwnd_limited():
            sk.tcp_slow_start(acked)

    def adjust(self, sk: opentcp.Socket, acked: int) -> None:
        cwnd, rtt = sk.snd_cwnd, self.least_us
        backlog_rtt = cwnd * (rtt - self.base_us)
        if sk.tcp_in_slow_start():
            if backlog_rtt <= self.GAMMA * rtt:
                if sk.tcp_is_cwnd_limited():
                    sk.tcp_slow_start(acked)
                return
            cwnd = min(cwnd, cwnd * self.base_us // rtt + 1)
        elif backlog_rtt > self.BETA * rtt:
            cwnd -= 1
        elif backlog_rtt < self.ALPHA * rtt and sk.tcp_is_cwnd_limited():
            cwnd += 1
        sk.snd_cwnd = min(max(cwnd, 2), sk.snd_cwnd_clamp)
        sk.snd_ssthresh = max(min(sk.snd_ssthresh, sk.snd_cwnd), 2)

    def set_state(self, sk: opentcp.Socket, new_state: int) -> None:
        if new_state == OPEN:
            self.begin(sk)

    def cwnd_event(self, sk: opentcp.Socket, event: int) -> None:
        if event in (TX_START, CWND_RESTART):
            self.begin(sk)

    def ssthresh(self, sk: opentcp.Socket) -> int:
        return sk.tcp_reno_ssthresh()

    def undo_cwnd(self, sk: opentcp.Socket) -> int:
        return sk.tcp_reno_undo_cwnd()


@pytest.mark.parametrize("twin", [NewReno, Vegas])
def test_a_run_has_the_bytes_of_the_twin_in_c(tmp_path: Path, twin: type) -> None:
    name = twin.__name__.lower()
    # more flows than the queue holds: losses, recovery and timeouts
    scenario = opentcp.Scenario(SMALL).set({"duration": "3 s", "network.topology": {"dumbbell": {"pairs": 8}}})
    traffic: list[opentcp.Value] = [{"bulk": {"from": f"left{i}", "to": f"right{i}"}} for i in range(1, 9)]
    scenario = scenario.set("traffic", traffic)
    ours, theirs = (
        scenario.set("tcp.cc", cc).run() for cc in (opentcp.Algorithm.from_python(twin), name)
    )
    ours.write(tmp_path / "ours")
    theirs.write(tmp_path / "theirs")
    of_c, of_python = files(tmp_path / "theirs"), files(tmp_path / "ours")
    assert of_python.pop(f"files/{name}.py").decode().startswith(f"class {twin.__name__}:")
    for written in (of_c, of_python):
        assert b"tcp" in written.pop("scenario.toml")
        del written["report.html"]
    assert of_python == of_c
    assert theirs.summary["retransmits"] > 0 or twin is Vegas


def test_what_a_hook_raises_ends_the_run(tmp_path: Path) -> None:
    class Divides(NewReno):
        def cong_avoid(self, sk: opentcp.Socket, ack: int, acked: int) -> None:
            sk.snd_cwnd += acked // (sk.snd_cwnd - sk.snd_cwnd)

    scenario = opentcp.Scenario(SMALL).set("tcp.cc", opentcp.Algorithm.from_python(Divides))
    with pytest.raises(opentcp.InputError) as raised:
        scenario.run()
    text = str(raised.value)
    assert "the algorithm divides, in its hook cong_avoid: ZeroDivisionError" in text and "test_python_algorithms.py" in text
    with pytest.raises(opentcp.RunError, match=r"1 of 2 runs failed.*\n  cc=divides.py: .*ZeroDivisionError"):
        opentcp.Scenario(SMALL).sweep(
            {"tcp.cc": ["vegas", opentcp.Algorithm.from_python(Divides)]}, out=tmp_path / "out"
        )
    assert opentcp.Scenario(SMALL).run().summary["flows"] == 2, "and the next run on the thread is not ended by it"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sk.snd_cwnd = 0", "snd_cwnd of 0: a window has 1 to"),
        ("sk.snd_una = 1", "snd_una is the host's: an algorithm only reads it"),
        ("sk.cwnd = 1", "a socket has no field cwnd"),
        ("sk.snd_cwnd = 'many'", "TypeError"),
        ("sk.snd_ssthresh = 1 << 40", "OverflowError"),
    ],
)
def test_a_socket_refuses_what_c_could_not_write(body: str, words: str) -> None:
    space: dict[str, type] = {"NewReno": NewReno}
    exec(f"class Own(NewReno):\n def cong_avoid(self, sk, ack, acked):\n  {body}", space)
    scenario = opentcp.Scenario(SMALL).set("tcp.cc", opentcp.Algorithm.from_python(space["Own"]))
    with pytest.raises(opentcp.InputError, match=words):
        scenario.run()


def test_a_class_without_a_required_hook_or_with_a_wrong_answer_is_refused() -> None:
    class Lacks:
        def ssthresh(self, sk: opentcp.Socket) -> int:
            return 2

    with pytest.raises(opentcp.InputError, match="lacks undo_cwnd"):
        opentcp.Algorithm.from_python(Lacks)

    class Silent(NewReno):
        def ssthresh(self, sk: opentcp.Socket) -> None:  # type: ignore[override]
            pass

    with pytest.raises(opentcp.InputError, match="a number of segments returned None"):
        opentcp.Scenario(SMALL).set("tcp.cc", opentcp.Algorithm.from_python(Silent)).run()
    with pytest.raises(opentcp.InputError, match="a number of segments returned None"):
        opentcp.Algorithm.from_python(Silent).check()


def test_check_runs_its_operations() -> None:
    vegas = opentcp.Algorithm.from_python(Vegas, name="mine")
    assert vegas.name == "mine" and vegas.python is Vegas
    assert "operations, windows up to" in vegas.check()
