# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # Write your own algorithm
#
# An algorithm is a set of hooks that TCP calls: `cong_avoid` when an ACK may raise the window, `ssthresh` when congestion was seen, `undo_cwnd`
# when that was a mistake. They are Linux's hooks with Linux's fields. In Python they are slow, and good for thinking. Here is additive
# increase and multiplicative decrease with two numbers to play with: `a` segments more each round trip, and a factor `b` after a loss.

# %%
import time

import opentcp
import opentcp.plot


class Aimd:
    """Additive increase by 1 segment, multiplicative decrease to a half: NewReno."""

    a, b = 1, 0.5

    def ssthresh(self, sk: opentcp.Socket) -> int:
        return max(int(sk.snd_cwnd * self.b), 2)

    def cong_avoid(self, sk: opentcp.Socket, ack: int, acked: int) -> None:
        if not sk.tcp_is_cwnd_limited():
            return  # the application, not the window, limits the flow: nothing is learnt
        if sk.tcp_in_slow_start():
            acked = sk.tcp_slow_start(acked)
        if acked:
            sk.tcp_cong_avoid_ai(max(sk.snd_cwnd // self.a, 1), acked)

    def undo_cwnd(self, sk: opentcp.Socket) -> int:
        return max(sk.snd_cwnd, sk.prior_cwnd)


class Gentle(Aimd):
    """Half a segment more, and only an eighth less: smoother, and slower to give way."""

    b = 0.875


python = opentcp.Algorithm.from_python(Aimd)
print(python.check())

# %% [markdown]
# `check` has called the hooks a hundred thousand times in every order that TCP can. Now a network: is our Python what it claims to be? With these two
# numbers it must do exactly what the built-in NewReno does.

# %%
network = opentcp.Scenario.from_dict(
    {
        "duration": "10 s",
        "network": {
            "topology": {"dumbbell": {"pairs": 2}},
            "rate": "100 Mbit/s",
            "tier": {"bottleneck": {"rate": "10 Mbit/s", "delay": "10 ms", "queue": {"drop_tail": {"packets": 40}}}},
        },
        "traffic": [
            {"name": "ours", "bulk": {"from": "left1", "to": "right1"}},
            {"name": "theirs", "bulk": {"from": "left2", "to": "right2"}, "cc": "newreno"},
        ],
        "measure": {"cwnd": "20 ms"},
    },
    name="own",
)
began = time.perf_counter()
ours = network.set("traffic.ours.cc", python).run()
middle = time.perf_counter()
theirs = network.set("traffic.ours.cc", "newreno").run()
assert ours.cwnd["cwnd"].to_list() == theirs.cwnd["cwnd"].to_list()
print(f"the same windows; Python took {(middle - began) / (time.perf_counter() - middle):.0f} times as long")

# %% [markdown]
# Is the gentle variant fair? It shares a link with NewReno.

# %%
gentle = network.set("traffic.ours.cc", opentcp.Algorithm.from_python(Gentle)).run()
bytes_of = dict(zip(gentle.flows["algorithm"].to_list(), gentle.flows["delivered_bytes"].to_list(), strict=True))
print(f"gentle gets {bytes_of['gentle'] / bytes_of['newreno']:.1f} times as much as NewReno")
opentcp.plot.cwnd(gentle)

# %% [markdown]
# What has proved itself in Python is written in C, in which it runs at full speed, on this machine's kernel (`opentcp cc load`) and in the enforcer.
# Integers only, as in the kernel: a factor of 7/8 is a multiplication and a division. This needs a C compiler.

# %%
GENTLE = """
#include "tcp.h"

static u32 ssthresh(struct sock *sk)
{
	return max_u32(tcp_sk(sk)->snd_cwnd * 7 / 8, 2);
}

static void cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, acked);
}

static u32 undo_cwnd(struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CC_OPS(gentle, .ssthresh = ssthresh, .cong_avoid = cong_avoid, .undo_cwnd = undo_cwnd);
"""
in_c = network.set("traffic.ours.cc", opentcp.Algorithm(GENTLE, name="gentle")).run()
assert in_c.cwnd["cwnd"].to_list() == gentle.cwnd["cwnd"].to_list()
print("C and Python have the same windows")
