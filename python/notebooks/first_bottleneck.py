# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # A first bottleneck
#
# Two senders share one link of 10 Mbit/s. Whatever arrives at that link while it is busy waits in a queue; when the queue is full, packets
# are dropped. TCP learns of the bottleneck only by what happens in that queue. Let us look at it.

# %%
import opentcp
import opentcp.plot

scenario = opentcp.Scenario.from_dict(
    {
        "title": "Two flows, one queue",
        "duration": "20 s",
        "network": {
            "topology": {"dumbbell": {"pairs": 2}},
            "rate": "100 Mbit/s",
            "tier": {"bottleneck": {"rate": "10 Mbit/s", "delay": "10 ms", "queue": {"drop_tail": {"packets": 40}}}},
        },
        "tcp": {"cc": "newreno"},
        "traffic": [
            {"name": "first", "bulk": {"from": "left1", "to": "right1"}},
            {"name": "second", "start": "5 s", "bulk": {"from": "left2", "to": "right2"}},
        ],
        "measure": {"cwnd": "20 ms", "queues": ["s1->s2"], "queue_sample": "5 ms", "packet_delay": True},
    },
    name="first-bottleneck",
)
print(scenario.show())

# %% [markdown]
# NewReno adds one segment to its window each round trip, and halves it when a packet is lost. The result is the sawtooth of textbooks.
# The second flow begins after 5 seconds with slow start. See how long it takes until both have the same share.

# %%
result = scenario.run()
print(result)
opentcp.plot.cwnd(result)

# %% [markdown]
# The queue repeats the sawtooth: what a window has more than the path can hold waits here. The round trip without a queue is 20 ms, and
# the path holds 10 Mbit/s x 20 ms = 25 kB, about 17 packets. The queue holds 40. So even half of a full window, (17 + 40) / 2 = 28 packets,
# fills the path: the link is never idle, and every packet pays for that by waiting.

# %%
opentcp.plot.queue(result)

# %% [markdown]
# What if the queue is short? With 4 packets the window falls below what the path holds at each loss, and the link idles.

# %%
queues = scenario.sweep({"network.tier.bottleneck.queue.drop_tail.packets": [4, 17, 40, 160]})
for run in queues:
    goodput, delay = run.summary["goodput_bps"] or 0, run.summary["mean_packet_delay_ns"] or 0
    print(f"queue of {run.parameters['packets']:>3} packets: {goodput / 1e6:5.2f} Mbit/s, mean delay {delay / 1e6:6.1f} ms")

# %% [markdown]
# Longer queues buy little throughput and cost much delay: "bufferbloat". Algorithms differ in how they deal with that. Vegas looks at the delay
# itself and leaves a few packets in the queue.

# %%
algorithms = scenario.sweep({"tcp.cc": ["newreno", "cubic", "vegas", "bbr"]})
print(algorithms)
opentcp.plot.queue(algorithms)
