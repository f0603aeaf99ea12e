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
#include "marks.h"

#define MIN_CWND 2u	/* segments */

/* ---- Private state ---- */

struct dctcp {
	struct marks marks;	/* alpha, of what this end sends */
	struct marks_echo echo;	/* of what it receives */
	u32 cwnd_before;	/* segments: cwnd at the last reduction; 0: none yet */
	u8 ecn;			/* this connection has negotiated ECN */
	u8 echoed;		/* the last ACK carried ECE */
	u8 pad[2];
};
CC_ASSERT_STATE_FITS(struct dctcp);

/* ---- Hooks ---- */

CC_HOOK(void, dctcp_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = inet_csk_ca(sk);

	ca->marks.alpha = MARKS_ALL;	/* nothing is known: the first mark halves, as it would NewReno (3.3) */
	marks_begin_window(tp, &ca->marks);
	ca->echo.prior_rcv_nxt = tp->rcv_nxt;
	ca->echo.ce = 0;
	ca->cwnd_before = 0;
	ca->ecn = tcp_has_ecn(tp);
	ca->echoed = 0;
}

CC_HOOK(void, dctcp_in_ack_event, struct sock *sk, u32 flags)
{
	struct dctcp *ca = inet_csk_ca(sk);

	ca->echoed = !!(flags & CA_ACK_ECE);
	if (ca->ecn)
		marks_on_ack(tcp_sk(sk), &ca->marks);
}

CC_HOOK(void, dctcp_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	tcp_reno_cong_avoid(sk, acked);
}

/* The host reduces for an echo at most once per window. Without an echo on the ACK it was a loss: half. */
CC_HOOK(u32, dctcp_ssthresh, struct sock *sk)
{
	struct dctcp *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	ca->cwnd_before = cwnd;
	if (ca->ecn && ca->echoed)
		return marks_reduced(cwnd, ca->marks.alpha);
	return tcp_reno_ssthresh(sk);
}

/* A loss on an ACK that had an echo too, or within the window that an echo has reduced: half in all (3.5). */
CC_HOOK(void, dctcp_set_state, struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct dctcp *ca = inet_csk_ca(sk);

	if (ca->ecn && ca->cwnd_before && (new_state == TCP_CA_Recovery || new_state == TCP_CA_Loss))
		tp->snd_ssthresh = min_u32(tp->snd_ssthresh, max_u32(ca->cwnd_before >> 1, MIN_CWND));
}

CC_HOOK(void, dctcp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct dctcp *ca = inet_csk_ca(sk);

	if (!ca->ecn || !tcp_echoes_marks(tcp_sk(sk)))
		return;
	if (event == CA_EVENT_ECN_IS_CE)
		marks_receive(sk, &ca->echo, true);
	else if (event == CA_EVENT_ECN_NO_CE)
		marks_receive(sk, &ca->echo, false);
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
