/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What dctcp.c, d2tcp.c and prague.c have in common: the share of segments that were marked, and the receiver's echo of each
 * mark. dctcp.c has the equations.
 */
#ifndef OPENTCP_MARKS_H
#define OPENTCP_MARKS_H

#include "tcp.h"

/* Shares are fractions of 2^20: windows up to 10^6 (2^20) x a share stay below 2^41. */
#define MARKS_SCALE 20
#define MARKS_ALL (1u << MARKS_SCALE)

/* g = 1/16, as a shift: fast enough to follow a queue, slow enough to average over one window's chance (RFC 8257, 4.2). */
#define MARKS_GAIN_SHIFT 4

/* An average over windows, in which all that was outstanding at the beginning is acknowledged. */
struct marks {
	u32 alpha;		/* MARKS_SCALE: the fraction of segments marked */
	u32 window_end;		/* snd_nxt when the observed window began */
	u32 delivered;		/* tp->delivered then */
	u32 delivered_ce;	/* tp->delivered_ce then */
};

/*
 * M = marked / delivered
 *
 * marked < 2^32, so the scaled numerator stays below 2^52. At most 1.
 */
CC_INLINE u32 marks_fraction(u32 marked, u32 delivered)
{
	u64 scaled = (u64)marked << MARKS_SCALE;

	return delivered ? (u32)min_u64(scaled / delivered, MARKS_ALL) : 0;
}

/* alpha = (1 - g) alpha + g M                                                                     RFC 8257 (7) */
CC_INLINE u32 marks_average(u32 alpha, u32 fraction)
{
	return alpha - (alpha >> MARKS_GAIN_SHIFT) + (fraction >> MARKS_GAIN_SHIFT);
}

/* cwnd (1 - share / 2), at least two segments                                                     RFC 8257 (9) */
CC_INLINE u32 marks_reduced(u32 cwnd, u32 share)
{
	u32 cut = (u32)(((u64)cwnd * share) >> (MARKS_SCALE + 1));

	return max_u32(cwnd - cut, 2);
}

CC_INLINE void marks_begin_window(const struct tcp_sock *tp, struct marks *marks)
{
	marks->window_end = tp->snd_nxt;
	marks->delivered = tp->delivered;
	marks->delivered_ce = tp->delivered_ce;
}

/* Every ACK: once all that was outstanding at the window's begin is acknowledged, its fraction enters alpha (3.3). */
CC_INLINE void marks_on_ack(const struct tcp_sock *tp, struct marks *marks)
{
	if (before(tp->snd_una, marks->window_end))
		return;
	if (tp->delivered != marks->delivered) {
		u32 fraction = marks_fraction(tp->delivered_ce - marks->delivered_ce, tp->delivered - marks->delivered);

		marks->alpha = marks_average(marks->alpha, fraction);
	}
	marks_begin_window(tp, marks);
}

/* The receiver's part (RFC 8257, 3.2): the ACKs' ECE is the CE of what they acknowledge. */
struct marks_echo {
	u32 prior_rcv_nxt;	/* rcv_nxt after the last segment, before which CE has not changed */
	u8 ce;			/* the last segment carried CE */
	u8 pad[3];
};

/* The ECE that the ACKs from now on carry. */
CC_INLINE void marks_set_ece(struct tcp_sock *tp, bool ce)
{
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= (u8)~TCP_ECN_DEMAND_CWR;
}

/* A segment has arrived, with or without CE; rcv_nxt does not count it yet. */
CC_INLINE void marks_receive(struct sock *sk, struct marks_echo *echo, bool ce)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (echo->ce != ce) {
		if (icsk->icsk_ack.pending & ICSK_ACK_TIMER) {	/* segments wait for a delayed ACK: they had the old CE */
			marks_set_ece(tp, echo->ce);
			tcp_send_ack_at(sk, echo->prior_rcv_nxt);
		}
		icsk->icsk_ack.pending |= ICSK_ACK_NOW;	/* the sender should learn of the change soon */
	}
	echo->prior_rcv_nxt = tp->rcv_nxt;
	echo->ce = ce;
	marks_set_ece(tp, ce);
}

#endif
