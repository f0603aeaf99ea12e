# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # Incast and the minimum RTO
#
# One host asks many for a piece of data each; all answer at once, into one port. Its queue overflows, and some flows lose the *last* packets
# of their window: no later packet arrives that could tell the sender by duplicate ACKs. Such a flow waits for its retransmission timeout. RTTs here are
# a tenth of a millisecond, but Linux's RTO is at least 200 ms: the port is idle for a thousand round trips.

# %%
import opentcp
import opentcp.plot

incast = opentcp.Scenario.from_dict(
    {
        "duration": "4 s",
        "network": {
            "topology": {"star": {"hosts": 41}},
            "rate": "1 Gbit/s",
            "delay": "25 us",
            "queue": {"threshold_ecn": {"mark_packets": 20, "packets": 100}},
        },
        "traffic": [{"incast": {"senders": 40, "receiver": "h1", "bytes": "64 kB", "repeat": 5}}],
        "measure": {"queues": ["s1->h1"], "queue_sample": "1 ms"},
    },
    name="incast",
)

# %% [markdown]
# Five rounds follow each other on the same connections. The ideal is easy to calculate: 5 x 40 x 64 kB at 1 Gbit/s are 102 ms. How long does the slowest
# connection take?

# %%
IDEAL_MS = 5 * 40 * 64e3 * 8 / 1e9 * 1e3
sweep = incast.sweep({"tcp.cc": ["newreno", "dctcp"], "tcp.rto_min": ["200 ms", "10 ms", "2 ms"]})
print(f"ideal: {IDEAL_MS:.0f} ms")
for run in sweep:
    tail = (run.summary["p99_fct_ns"] or 0) / 1e6
    print(
        f"{run.parameters['algorithm']:8} minimum RTO {run.parameters['rto_min']:>6}: "
        f"p99 {tail:6.1f} ms, {run.summary['rtos']:3} timeouts, {run.summary['drops_at_switches']} drops"
    )

# %% [markdown]
# The minimum RTO decides about the tail more than the algorithm does: with 2 ms, more timeouts cost far less. The tail of completion times on a
# logarithmic axis shows what each connection waited.

# %%
opentcp.plot.ccdf(sweep)

# %% [markdown]
# DCTCP keeps queues short, and has fewer losses. But 40 first windows of ten segments are 400 packets for a queue of 100 before any mark can be
# heard: no algorithm that learns from feedback can avoid losses in the first round trip. A smaller first window can.

# %%
first = incast.set({"tcp.cc": "dctcp", "tcp.rto_min": "10 ms"}).sweep({"tcp.initial_cwnd": [2, 4, 10]})
for run in first:
    drops, tail = run.summary["drops_at_switches"], (run.summary["p99_fct_ns"] or 0) / 1e6
    print(f"initial window {run.parameters['initial_cwnd']:>2}: {drops:4} drops, p99 {tail:6.1f} ms")
