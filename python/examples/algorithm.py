"""An algorithm of one's own, in C: additive increase by one segment, multiplicative decrease to 80 %."""

import opentcp

GENTLE = """
#include "tcp.h"

static u32 ssthresh(struct sock *sk)
{
	u32 kept = tcp_sk(sk)->snd_cwnd * 4 / 5;
	return kept > 2 ? kept : 2;
}

static void cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

static u32 undo_cwnd(struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CC_OPS(gentle, .ssthresh = ssthresh, .cong_avoid = cong_avoid, .undo_cwnd = undo_cwnd);
"""

gentle = opentcp.Algorithm(GENTLE, name="gentle")
print(gentle.check())
scenario = opentcp.Scenario.read("scenarios/dumbbell.toml")
print(scenario.sweep({"traffic.old.cc": ["newreno", gentle]}))
