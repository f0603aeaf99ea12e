/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * DCTCP: react to how much was marked, not to whether anything was.
 *
 * A data centre's switch marks (CE) every packet that arrives while its queue is longer than a small K. A sender that
 * halves its window whenever it sees a mark drains such a queue empty, and the link with it. DCTCP estimates alpha, the
 * fraction of its segments that are marked, and reduces in proportion:
 *
 *   per window   M = segments marked / segments delivered
 *                alpha = (1 - g) alpha + g M,    g = 1/16                                       RFC 8257, 3.3 (5-7)
 *   on a mark    cwnd = cwnd (1 - alpha / 2),    once per window                                RFC 8257, 3.3 (9)
 *   on a loss    cwnd = cwnd / 2,                as any TCP                                     RFC 8257, 3.5
 *
 * All marked: alpha is 1, and the window is halved. A few marked: a small step, and the queue stays around K.
 *
 * For this the sender must learn *which* segments were marked, while standard ECN repeats one mark until the sender has
 * confirmed it. So the receiver's part differs too: each ACK carries ECE exactly if the segments that it acknowledges
 * carried CE. A delayed ACK covers several; when CE changes between them, those before the change are acknowledged at
 * once, by an ACK with the old value:
 *              +-- CE arrives: ACK what is pending with ECE = 0 --+
 *              |                                                  v
 *          CE.state = 0                                       CE.state = 1                      RFC 8257, 3.2
 *          ACKs: ECE = 0                                      ACKs: ECE = 1
 *              ^                                                  |
 *              +-- no CE:      ACK what is pending with ECE = 1 --+
 *
 * Both ends must have negotiated ECN for this connection. Where they have not (a peer without ECN, or a live socket
 * that was moved here), there are no echoes, and this file behaves as NewReno.
 *
 * Papers: RFC 8257; Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010.
 *
 * Differences from the RFC
 *   - Segments, not bytes, are counted: delivered and, of these, acknowledged by an ACK with ECE (delivered_ce).
 *   - alpha has 20 bits of fraction, so that its decay stops at 15/2^20 (a plain 2^10 would stop at 1.5 %).
 *   - A loss among the segments that a mark already reduced for halves the window of before the mark: one reduction,
 *     the larger of the two, per window.
 *   - Growth is NewReno's, as in the RFC; other growth functions are combined with DCTCP's reduction elsewhere.
 */
#include "dctcp.h"

CC_ASSERT_STATE_FITS(struct dctcp);

CC_HOOK(void, dctcp_init, struct sock *sk)
{
	dctcp_begin(sk);
}

CC_HOOK(void, dctcp_in_ack_event, struct sock *sk, u32 flags)
{
	dctcp_on_ack(sk, flags);
}

CC_HOOK(void, dctcp_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	tcp_reno_cong_avoid(sk, acked);
}

/* Without an echo on the ACK it was a loss: half. */
CC_HOOK(u32, dctcp_ssthresh, struct sock *sk)
{
	const struct dctcp *ca = inet_csk_ca(sk);

	return dctcp_is_marked(sk) ? marks_reduced(tcp_sk(sk)->snd_cwnd, ca->marks.alpha) : tcp_reno_ssthresh(sk);
}

CC_HOOK(void, dctcp_set_state, struct sock *sk, u8 new_state)
{
	dctcp_on_state(sk, new_state);
}

CC_HOOK(void, dctcp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	dctcp_on_event(sk, event);
}

CC_HOOK(u32, dctcp_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CC_INFO(dctcp,
	.title = "DCTCP",
	.environment = "data centre with ECN marking switches",
	.reference = "RFC 8257; Alizadeh et al., SIGCOMM 2010",
	.category = CC_ECN_BASED,
	.measures = CC_MEASURES_ECN | CC_MEASURES_LOSS);

CC_OPS(dctcp,
	.init = dctcp_init,
	.in_ack_event = dctcp_in_ack_event,
	.cong_avoid = dctcp_cong_avoid,
	.ssthresh = dctcp_ssthresh,
	.set_state = dctcp_set_state,
	.cwnd_event = dctcp_cwnd_event,
	.undo_cwnd = dctcp_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN);
