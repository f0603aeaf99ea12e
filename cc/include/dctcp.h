/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What dctcp.c and d2tcp.c have in common: all but how much a mark takes. dctcp.c has the equations.
 */
#ifndef OPENTCP_DCTCP_H
#define OPENTCP_DCTCP_H

#include "marks.h"

#define DCTCP_MIN_CWND 2u	/* segments */

struct dctcp {
	struct marks marks;	/* alpha, of what this end sends */
	struct marks_echo echo;	/* of what it receives */
	u32 cwnd_before;	/* segments: cwnd at the last reduction; 0: none yet */
	u8 ecn;			/* this connection has negotiated ECN */
	u8 echoed;		/* the last ACK carried ECE */
	u8 pad[2];
};

CC_INLINE void dctcp_begin(struct sock *sk)
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

CC_INLINE void dctcp_on_ack(struct sock *sk, u32 flags)
{
	struct dctcp *ca = inet_csk_ca(sk);

	ca->echoed = !!(flags & CA_ACK_ECE);
	if (ca->ecn)
		marks_on_ack(tcp_sk(sk), &ca->marks);
}

/* Before the window is reduced. Whether that is for an echo, at most once per window; else it is for a loss. */
CC_INLINE bool dctcp_is_marked(struct sock *sk)
{
	struct dctcp *ca = inet_csk_ca(sk);

	ca->cwnd_before = tcp_sk(sk)->snd_cwnd;
	return ca->ecn && ca->echoed;
}

/* A loss on an ACK that had an echo too, or within the window that an echo has reduced: half in all (3.5). */
CC_INLINE void dctcp_on_state(struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct dctcp *ca = inet_csk_ca(sk);

	if (ca->ecn && ca->cwnd_before && (new_state == TCP_CA_Recovery || new_state == TCP_CA_Loss))
		tp->snd_ssthresh = min_u32(tp->snd_ssthresh, max_u32(ca->cwnd_before >> 1, DCTCP_MIN_CWND));
}

CC_INLINE void dctcp_on_event(struct sock *sk, enum tcp_ca_event event)
{
	struct dctcp *ca = inet_csk_ca(sk);

	if (!ca->ecn || !tcp_echoes_marks(tcp_sk(sk)))
		return;
	if (event == CA_EVENT_ECN_IS_CE)
		marks_receive(sk, &ca->echo, true);
	else if (event == CA_EVENT_ECN_NO_CE)
		marks_receive(sk, &ca->echo, false);
}

#endif
