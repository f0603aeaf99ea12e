# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # Does my policy help?
#
# A policy tells hosts which TCP to use, and when. It is easy to write one that sounds good. Whether it helps is an experiment: the same network with
# and without it, with the same arrivals, over several seeds.

# %%
import numpy as np
import opentcp

POLICY = """
title = "A larger first window while the network is calm"
mode = "enforce"
period = "60 s"

[collect]
links = ["utilization", "drop_rate"]
hosts = ["drop_rate"]

[objective]
minimize = "network.fct_p99"

[[rule]]
name = "calm network"
when = "network.max_link_utilization < 0.70"
set = { initial_cwnd = 20, rto_min = "2 ms" }
guard = { revert_if = "host.drop_rate > 0.001", hold = "60 s" }

[rollout]
fraction = 0.5
"""
policy = opentcp.Policy(POLICY, name="calm")
print(policy.check())

# %% [markdown]
# What would it do now? `explain` decides once, on a view of a network, and gives its reasons. Nothing is sent.

# %%
print(policy.explain("policies/example-view.json"))

# %% [markdown]
# The network to try it on: bursts among eight hosts. `period` is the policy's T in this run: a second of simulation stands for a minute. The file
# is a policy of the paper; the one that is tried takes its place.

# %%
network = opentcp.Scenario.from_dict(
    {
        "duration": "12 s",
        "network": {
            "topology": {"leaf_spine": {"leaves": 2, "spines": 1, "hosts_per_leaf": 4}},
            "rate": "1 Gbit/s",
            "delay": "250 us",
            "queue": {"threshold_ecn": {"packets": 100, "mark_packets": 20}},
        },
        "traffic": [
            {
                "name": "bursts",
                "start": "1 ms",
                "all_to_all": {
                    "bytes": ["1 kB", "16 kB", "64 kB"],
                    "rounds": 1000000,
                    "think": {"exponential": "50 ms"},
                },
            }
        ],
        "measure": {"messages": True},
        "policy": {"file": "policies/opentcp1.toml", "period": "1 s"},
    },
    name="bursts",
)
trial = policy.try_(network, seeds=5)
print(trial)

# %% [markdown]
# The answer is about this network and these seeds: with an interval, or "cannot say". The same comparison as a sweep, with a second policy and without
# any, gives each run's tables to look at. `None` is the network without a policy.

# %%
sweep = network.sweep({"seed": [1, 2, 3]}, policies=[None, policy, "policies/opentcp1.toml"])
for name in ("none", "calm.toml", "opentcp1.toml"):
    tails = [np.percentile(np.asarray(run.messages["fct_ns"]), 99) / 1e6 for run in sweep.where(policy=name)]
    print(f"{name:14} p99 of the messages' completion times: {', '.join(f'{tail:.2f}' for tail in tails)} ms")
