/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * NAME: additive increase, multiplicative decrease, with two parameters.
 *
 *   slow start             cwnd += 1             per segment acknowledged, while cwnd < ssthresh
 *   congestion avoidance   cwnd += a             per round trip,   a = INCREASE_PERCENT / 100 segments
 *   loss                   ssthresh = b cwnd,    b = KEEP_PERCENT / 100, at least 2 segments
 *
 * NewReno is a = 1, b = 1/2. For an equal share beside NewReno, a flow that keeps more at a loss must grow more slowly:
 * a = 3 (1 - b) / (1 + b), so b = 0.70 needs a = 0.53. Change one of the two and compare the shares.
 *
 *   opentcp run NAME.toml                    compare it with NewReno
 *   opentcp cc check NAME.c                  check it for the simulator and the kernel
 *   sudo opentcp cc load NAME.c              load it into the running kernel, as ot_NAME
 *
 * The contract is in docs/algorithms.md; cc/include/tcp.h declares what a hook can call.
 */
#include "tcp.h"

#define INCREASE_PERCENT 53u	/* of a segment, per round trip; 1 to 10000 */
#define KEEP_PERCENT 70u	/* of the window, at a loss; below 100 */

CC_HOOK(u32, NAME_ssthresh, struct sock *sk)
{
	/* in 64 bits, so that no window overflows */
	u64 kept = (u64)tcp_sk(sk)->snd_cwnd * KEEP_PERCENT / 100u;

	return max_u32((u32)kept, 2);
}

CC_HOOK(void, NAME_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	(void)ack;
	/* one segment more per so many acknowledged; cwnd of them are acknowledged in a round trip */
	if (tcp_past_slow_start(sk, &acked))
		tcp_cong_avoid_ai(tp, max_u32((u32)((u64)tp->snd_cwnd * 100u / INCREASE_PERCENT), 1), acked);
}

CC_HOOK(u32, NAME_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CC_INFO(NAME,
	.title = "NAME",
	.environment = "experiments",
	.reference = "Yang and Lam, General AIMD congestion control, ICNP 2000",
	.category = CC_LOSS_BASED,
	.measures = CC_MEASURES_LOSS);

CC_OPS(NAME,
	.ssthresh = NAME_ssthresh,
	.cong_avoid = NAME_cong_avoid,
	.undo_cwnd = NAME_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED);
