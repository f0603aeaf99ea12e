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
 *once, by an ACK with the old value:
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
#include "tcp.h"

/* alpha is a fraction of 2^20: windows up to 10^6 (2^20) x alpha stay below 2^41. */
#define ALPHA_SCALE 20
#define ALPHA_ONE (1u << ALPHA_SCALE)

/* g = 1/16, as a shift: fast enough to follow a queue, slow enough to average over one window's chance (4.2). */
#define GAIN_SHIFT 4

#define MIN_CWND 2u	/* segments */

/* ---- Private state ---- */

struct dctcp {
	u32 alpha;		/* ALPHA_SCALE: the fraction of segments marked */
	u32 window_end;		/* snd_nxt when the observed window began */
	u32 delivered;		/* tp->delivered then */
	u32 delivered_ce;	/* tp->delivered_ce then */
	u32 cwnd_before;	/* segments: cwnd at the last reduction; 0: none yet */
	u32 prior_rcv_nxt;	/* receiver: rcv_nxt after the last segment, before which CE has not changed */
	u8 ecn;			/* this connection has negotiated ECN */
	u8 ce_state;		/* receiver: the last segment carried CE */
	u8 echoed;		/* the last ACK carried ECE */
	u8 pad;
};
CC_ASSERT_STATE_FITS(struct dctcp);

/* ---- Equations ---- */

/*
 * M = marked / delivered
 *
 * marked < 2^32, so the scaled numerator stays below 2^52. At most 1.
 */
CC_INLINE u32 dctcp_fraction(u32 marked, u32 delivered)
{
	u64 scaled = (u64)marked << ALPHA_SCALE;

	return delivered ? (u32)min_u64(scaled / delivered, ALPHA_ONE) : 0;
}

/* alpha = (1 - g) alpha + g M                                                                     RFC 8257 (7) */
CC_INLINE u32 dctcp_average(u32 alpha, u32 fraction)
{
	return alpha - (alpha >> GAIN_SHIFT) + (fraction >> GAIN_SHIFT);
}

/* cwnd (1 - alpha / 2), at least two segments                                                     RFC 8257 (9) */
CC_INLINE u32 dctcp_reduced(u32 cwnd, u32 alpha)
{
	u32 cut = (u32)(((u64)cwnd * alpha) >> (ALPHA_SCALE + 1));

	return max_u32(cwnd - cut, MIN_CWND);
}

/* ---- Sender ---- */

CC_INLINE void dctcp_begin_window(const struct tcp_sock *tp, struct dctcp *ca)
{
	ca->window_end = tp->snd_nxt;
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
}

/* ---- Receiver (3.2) ---- */

/* The ECE that the ACKs from now on carry. */
CC_INLINE void dctcp_set_echo(struct tcp_sock *tp, bool ce)
{
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= (u8)~TCP_ECN_DEMAND_CWR;
}

/* A segment has arrived, with or without CE; rcv_nxt does not count it yet. */
CC_INLINE void dctcp_receive(struct sock *sk, struct dctcp *ca, bool ce)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (ca->ce_state != ce) {
		if (icsk->icsk_ack.pending & ICSK_ACK_TIMER) {	/* segments wait for a delayed ACK: they had the old CE */
			dctcp_set_echo(tp, ca->ce_state);
			tcp_send_ack_at(sk, ca->prior_rcv_nxt);
		}
		icsk->icsk_ack.pending |= ICSK_ACK_NOW;	/* the sender should learn of the change soon */
	}
	ca->prior_rcv_nxt = tp->rcv_nxt;
	ca->ce_state = ce;
	dctcp_set_echo(tp, ce);
}

/* ---- Hooks ---- */

CC_HOOK(void, dctcp_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = inet_csk_ca(sk);

	ca->alpha = ALPHA_ONE;	/* nothing is known: the first mark halves, as it would NewReno (3.3) */
	ca->cwnd_before = 0;
	ca->prior_rcv_nxt = tp->rcv_nxt;
	ca->ecn = !!(tp->ecn_flags & TCP_ECN_OK);
	ca->ce_state = 0;
	ca->echoed = 0;
	dctcp_begin_window(tp, ca);
}

/* Every ACK: once all that was outstanding at the window's begin is acknowledged, its fraction enters alpha (3.3). */
CC_HOOK(void, dctcp_in_ack_event, struct sock *sk, u32 flags)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = inet_csk_ca(sk);

	ca->echoed = !!(flags & CA_ACK_ECE);
	if (!ca->ecn || before(tp->snd_una, ca->window_end))
		return;
	if (tp->delivered != ca->delivered) {
		u32 fraction = dctcp_fraction(tp->delivered_ce - ca->delivered_ce, tp->delivered - ca->delivered);

		ca->alpha = dctcp_average(ca->alpha, fraction);
	}
	dctcp_begin_window(tp, ca);
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
		return dctcp_reduced(cwnd, ca->alpha);
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

	if (!ca->ecn)
		return;
	if (event == CA_EVENT_ECN_IS_CE)
		dctcp_receive(sk, ca, true);
	else if (event == CA_EVENT_ECN_NO_CE)
		dctcp_receive(sk, ca, false);
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
