"""Runs can be watched and stopped, and other threads go on."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import opentcp
import pytest
from conftest import SMALL

#: Minutes of work.
LONG = SMALL.replace("500 ms", "100000 s").replace("[measure]", "[measure]\nwarmup = \"99999 s\"").split("cwnd =")[0]

INTERRUPTED = """\
import opentcp, sys
scenario = opentcp.Scenario(sys.argv[1])
began = lambda progress: print("going", flush=True) if progress.share > 0 else None
try:
    if sys.argv[2]:
        scenario.sweep({"seed": [1, 2]}, out=sys.argv[2], progress=began)
    else:
        scenario.run(progress=began)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("folder", [False, True])
def test_ctrl_c_ends_it_and_leaves_nothing(tmp_path: Path, folder: bool) -> None:
    out = str(tmp_path / "deep" / "out") if folder else ""
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED, LONG, out], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "going\n"
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert said.splitlines()[-1] == "interrupted"
    assert child.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_what_a_callback_raises_ends_it() -> None:
    class Enough(Exception):
        pass

    def enough(progress: opentcp.Progress) -> None:
        if progress.share > 0:
            raise Enough

    with pytest.raises(Enough):
        opentcp.Scenario(LONG).run(progress=enough)


def test_other_threads_go_on() -> None:
    counted, stop = 0, threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    began = 0

    def seen(progress: opentcp.Progress) -> None:
        nonlocal began
        began += 1
        if began == 10:
            raise StopIteration

    before = counted
    with pytest.raises(StopIteration):
        opentcp.Scenario(LONG).run(progress=seen)
    assert counted - before > 50, "a second of simulation did not hold the interpreter's lock"
    stop.set()
    other.join()


def test_progress_rises_to_the_end() -> None:
    seen: list[opentcp.Progress] = []
    sweep = opentcp.Scenario(SMALL).sweep({"seed": [1, 2, 3]}, jobs=1, progress=seen.append)
    assert len(sweep) == 3
    assert seen[-1] == opentcp.Progress(1.0, 3, 3)
    shares = [progress.share for progress in seen]
    assert shares == sorted(shares)


def test_a_bar_on_request_and_none_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    scenario = opentcp.Scenario(LONG)

    def stopped(signum: int, frame: object) -> None:
        raise TimeoutError

    old = signal.signal(signal.SIGALRM, stopped)
    try:
        for progress, shown in [(True, True), (None, False), (False, False)]:
            signal.setitimer(signal.ITIMER_REAL, 3.0)
            with pytest.raises(TimeoutError):
                scenario.run(progress=progress)
            said = capfd.readouterr()
            assert said.out == ""
            assert ("%" in said.err) == shown, said.err
    finally:
        signal.signal(signal.SIGALRM, old)


def test_threads_run_side_by_side() -> None:
    results: dict[int, opentcp.Result] = {}

    def work(seed: int) -> None:
        results[seed] = opentcp.Scenario(SMALL).run(seed=seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [results[seed].summary["seed"] for seed in (1, 2, 3)] == [1, 2, 3]


def test_sweeps_are_sequences() -> None:
    sweep = opentcp.Scenario(SMALL).sweep({"traffic.first.cc": ["vegas", "bbr"], "seed": [1, 2]}, jobs=os.cpu_count())
    assert [result.name for result in sweep] == ["cc=vegas,seed=1", "cc=vegas,seed=2", "cc=bbr,seed=1", "cc=bbr,seed=2"]
    assert [result.name for result in sweep.where(cc="bbr")] == ["cc=bbr,seed=1", "cc=bbr,seed=2"]
    assert sweep[1:3][0].name == sweep[1].name == "cc=vegas,seed=2"
    assert len(sweep.rows()) == 4 and sweep.rows()[2]["cc"] == "bbr"
    assert "cc=bbr,seed=2" in str(sweep) and "cc=bbr,seed=2" in sweep._repr_html_()
    with pytest.raises(opentcp.InputError, match="no run has a parameter `sed`; there are algorithm, cc, seed"):
        sweep.where(sed=1)


def test_a_scenario_can_be_pickled() -> None:
    scenario = opentcp.Scenario(SMALL, name="small").set("tcp.cc", "vegas")
    same = pickle.loads(pickle.dumps(scenario))
    assert same == scenario and hash(same) == hash(scenario) and same.toml() == scenario.toml()


def test_what_a_scenario_says_of_itself() -> None:
    scenario = opentcp.Scenario(SMALL, name="small")
    assert (scenario.name, scenario.title, scenario.seed, scenario.duration_s) == ("small", "Two flows, one queue", 1, 0.5)
    assert repr(scenario) == "<Scenario small: 0.5 s, seed 1>"
    assert repr(scenario.set("sweep.seed", [1, 2])) == "<Scenario small: 0.5 s, seed 1, 2 runs>"
    assert "bottleneck" in scenario.show() and scenario.page().startswith("<!doctype html>")


def test_a_scenarios_values_are_read() -> None:
    scenario = opentcp.Scenario(SMALL).set("tcp.rto_min", "5msec")
    assert scenario["tcp.cc"] == "cubic" and scenario["tcp.rto_min"] == "5 ms"
    assert scenario["network.tier.bottleneck.rate"] == "10 Mbit/s"
    assert scenario["traffic.second.cc"] == scenario["traffic.1.cc"] == "newreno"
    assert scenario.get("traffic.first.cc", "none") == "none" and scenario.get("title") == "Two flows, one queue"
    assert scenario.to_dict()["duration"] == "500 ms"
    with pytest.raises(KeyError, match="did you mean `rto_min`"):
        scenario["tcp.rto_mim"]


def test_a_path_in_place_of_a_text_is_understood(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(SMALL)
    assert opentcp.Scenario(file) == opentcp.Scenario(str(file)) == opentcp.Scenario.read(file)
    with pytest.raises(opentcp.InputError, match="cannot read the scenario"):
        opentcp.Scenario("no-such-file.toml")


def test_what_changes_nothing_is_a_warning() -> None:
    own = opentcp.Scenario(SMALL).set("traffic.first.cc", "vegas")
    with pytest.warns(UserWarning, match="tcp.cc=.* changes nothing: each traffic entry names its own") as caught:
        own.set("tcp.cc", "bic").run()
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="the seeds 1, 2 gave the same numbers"):
        own.sweep({"seed": [1, 2]})


def test_runs_are_chosen_by_dotted_keys_and_numbers() -> None:
    sweep = opentcp.Scenario(SMALL).sweep({"tcp.cc": ["bic", "vegas"], "tcp.rto_min": ["5 ms", "200 ms"]})
    assert len(sweep.where(algorithm="bic + newreno")) == 2
    assert len(sweep.where(**{"tcp.rto_min": "5ms"})) == len(sweep.where(rto_min="5 ms", seed=1)) == 2
    with pytest.raises(opentcp.InputError, match="no run has rto_min = '50 ms'; did you mean '5 ms'"):
        sweep.where(rto_min="50 ms")
    with pytest.raises(opentcp.InputError, match="no run has a parameter"):
        sweep.where(rto="5 ms")
