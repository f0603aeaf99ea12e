# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # DCTCP's sawtooth against theory
#
# A switch marks packets that find more than K others in the queue. DCTCP reduces its window by the fraction of packets that were marked: a
# little, if few were. Alizadeh et al. (SIGCOMM 2010, equations 8 to 10) calculate the queue of N flows that do so in step:
#
# - each window grows until it is W* = (C RTT + K) / N;
# - the marks arrive a round trip later, N packets too late: the queue's maximum is K + N;
# - the fraction that is marked is then about sqrt(2 / W*), and the queue falls by sqrt(2 N (C RTT + K)) / 2 packets.

# %%
import math

import matplotlib.pyplot as plt
import numpy as np
import opentcp

MARK = 40  # K, packets
RTT_S = 100e-6
PACKETS_PER_S = 10e9 / (1538 * 8)  # a full packet on Ethernet, with preamble and gap


def theory(flows: int) -> tuple[float, float]:
    """The lowest and the highest queue, packets."""
    highest = MARK + flows
    return highest - math.sqrt(2 * flows * (PACKETS_PER_S * RTT_S + MARK)) / 2, highest


def port(flows: int) -> opentcp.Scenario:
    """Long flows into one port."""
    hosts = flows + 1
    return opentcp.Scenario.from_dict(
        {
            "duration": "60 ms",
            "network": {
                "topology": {"star": {"hosts": hosts}},
                "rate": "10 Gbit/s",
                "delay": "25 us",
                "queue": {"threshold_ecn": {"mark_packets": MARK, "packets": 500}},
            },
            # segment by segment, and each one acknowledged: the equations know no bursts
            "tcp": {"cc": "dctcp", "tso_segments": 1, "delayed_ack": {"segments": 1}},
            "traffic": [{"bulk": {"from": f"h{i}", "to": f"h{hosts}"}} for i in range(1, hosts)],
            "measure": {"warmup": "40 ms", "queues": [f"s1->h{hosts}"], "queue_sample": "10 us"},
        },
        name=f"{flows}-flows",
    )


# %% [markdown]
# Theory and simulation, after the flows have found their share:

# %%
figure, panels = plt.subplots(3, 1, sharex=True, figsize=(7, 6))
for axes, flows in zip(panels, [2, 10, 40], strict=True):
    series = port(flows).run().link_series
    time_ms = np.asarray(series["time_ns"]) / 1e6
    packets = np.asarray(series["queue_packets"])
    low, high = theory(flows)
    axes.plot(time_ms, packets, linewidth=0.8)
    axes.axhspan(max(low, 0), high, alpha=0.2, color="tab:orange", label="theory")
    axes.set_title(f"{flows} flows", fontsize=9)
    axes.set_ylabel("packets")
    axes.legend(loc="upper right")
    few, many = np.percentile(packets, [5, 95])
    print(f"{flows:2} flows: theory {low:5.1f} to {high:3.0f} packets, simulated {few:3.0f} to {many:3.0f} (5 to 95 %)")
panels[-1].set_xlabel("time, ms")
figure.tight_layout()

# %% [markdown]
# The maximum is where the equations say. The swing is larger than theirs for two flows: they take the marked fraction as small, and windows as
# fractions of a segment. And there are no bursts in them: leave out `tso_segments` and `delayed_ack`, and look at the troughs with Linux's usual values.
# Where the assumptions of a model end is as interesting as where it holds: 80 windows of two segments, the smallest that there is, are 160 packets, of which
# this path holds 81. Try 80 flows.
