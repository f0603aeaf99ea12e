/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * NewReno: the standard's additive increase, multiplicative decrease (RFC 5681, RFC 6582).
 *
 *   slow start             cwnd += 1             per segment acknowledged, while cwnd < ssthresh      RFC 5681 (2)
 *   congestion avoidance   cwnd += 1             per cwnd segments acknowledged: one a round trip     RFC 5681 (3)
 *   loss                   ssthresh = cwnd / 2,  at least 2 segments                                  RFC 5681 (4)
 *
 * What made NewReno *new*, staying in fast recovery over partial acknowledgments until all that was outstanding at the
 * loss is acknowledged, is not here: recovery is the host's part of TCP, the same under every algorithm. Here is the
 * window rule alone.
 *
 * Differences from the RFCs
 *   - Windows count segments, not bytes: a segment acknowledged is a whole MSS of growth (RFC 3465 with no limit L).
 *   - ssthresh halves cwnd, not FlightSize; the two differ only where the application, not the window, limits the
 *     flow, and there the window does not grow in the first place.
 */
#include "tcp.h"

CC_HOOK(u32, newreno_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

CC_HOOK(void, newreno_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	tcp_reno_cong_avoid(sk, acked);
}

CC_HOOK(u32, newreno_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CC_INFO(newreno,
	.title = "NewReno",
	.environment = "wired, low bandwidth, small delay",
	.reference = "RFC 5681, RFC 6582",
	.category = CC_LOSS_BASED,
	.measures = CC_MEASURES_LOSS);

CC_OPS(newreno,
	.ssthresh = newreno_ssthresh,
	.cong_avoid = newreno_cong_avoid,
	.undo_cwnd = newreno_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED);
