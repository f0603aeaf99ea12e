/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Scalable TCP: recover from a loss in the same number of round trips at every rate (Kelly, "Scalable TCP: Improving
 * Performance in Highspeed Wide Area Networks", CCR 33(2), 2003).
 *
 * NewReno adds one segment a round trip and takes half of the window away: from a loss at w segments it recovers in w/2
 * round trips, minutes on a fast long path. Scalable makes growth proportional to the window too:
 *
 *   congestion avoidance   cwnd += 0.01                   per segment acknowledged, hence 1 % a round trip
 *   loss                   cwnd -= ceil(0.125 x cwnd)
 *
 * From 7/8 w back to w at 1 % takes log(8/7) / log(1.01) = 13.4 round trips, whatever w is. The price: multiplicative
 * increase with multiplicative decrease does not move two flows towards equal shares, which additive increase does; and
 * a flow that fills the queue every 13 round trips drops often.
 *
 * Differences from the paper
 *   - The paper keeps NewReno's rule, the halving included, up to a "legacy window" of 16 segments, and jumps to its
 *     own above. Here, as in Linux and ns-3, growth is by whichever is faster (one segment per min(cwnd, 100)
 *     acknowledged, so NewReno's up to 100 segments), and the decrease is 1/8 at every window. That makes small windows
 *     yield less than NewReno's do: in a data centre, whose windows *are* small, this is what is observed of Scalable.
 *   - Slow start is NewReno's.
 */
#include "tcp.h"

/* Segments acknowledged per segment of growth: the paper's a = 0.01. */
#define SCALABLE_SEGMENTS_PER_INCREASE 100

/* The paper's b = 0.125, as a shift. */
#define SCALABLE_DECREASE_SHIFT 3

/* ceil(0.125 x cwnd). Windows are under 2^30, so adding 7 does not wrap. */
static u32 scalable_decrease(u32 cwnd)
{
	return (cwnd + (1u << SCALABLE_DECREASE_SHIFT) - 1) >> SCALABLE_DECREASE_SHIFT;
}

CC_HOOK(void, scalable_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	(void)ack;
	if (tcp_past_slow_start(sk, &acked))
		tcp_cong_avoid_ai(tp, min_u32(tp->snd_cwnd, SCALABLE_SEGMENTS_PER_INCREASE), acked);
}

CC_HOOK(u32, scalable_ssthresh, struct sock *sk)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	return max_u32(cwnd - scalable_decrease(cwnd), 2);
}

CC_HOOK(u32, scalable_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CC_INFO(scalable,
	.title = "Scalable",
	.environment = "high-speed WANs",
	.reference = "Kelly, CCR 33(2), 2003",
	.category = CC_LOSS_BASED,
	.measures = CC_MEASURES_LOSS);

CC_OPS(scalable,
	.ssthresh = scalable_ssthresh,
	.cong_avoid = scalable_cong_avoid,
	.undo_cwnd = scalable_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED);
