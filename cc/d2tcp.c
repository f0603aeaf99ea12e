/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * D2TCP: DCTCP that gives way to the flows whose deadline is nearer.
 *
 * An answer that arrives after its deadline is of no use, one that arrives long before it has taken bandwidth from others.
 * DCTCP shares a queue's marks evenly among all. D2TCP bends each flow's share of the reduction by its urgency d
 * (gamma correction), so that, with alpha as in DCTCP:
 *
 *   per window   alpha = (1 - g) alpha + g M,    g = 1/16             M = segments marked / delivered
 *   on a mark    p = alpha^d
 *                cwnd = cwnd (1 - p / 2),        once per window                                      (2)
 *
 *   urgency      d = Tc / D                      within 1/2 and 2                                     3.2
 *                Tc: time that the rest needs at the present window
 *                    = B / (3/4 cwnd) x RTT      a sawtooth between cwnd / 2 and cwnd has the mean 3/4 cwnd
 *                D:  time until the deadline
 *                B:  segments of the message that are not acknowledged
 *
 *          p                          alpha is at most 1, so that a power above 1 makes it smaller:
 *        1 |            *
 *          |       d<1 * *            d > 1   near deadline: p < alpha, the flow backs off less
 *          |        *   *             d = 1   no deadline: DCTCP
 *          |    *     * d>1           d < 1   far deadline: p > alpha, the flow backs off more
 *        0 *----------- alpha
 *
 * When all is marked, alpha is 1, and so is every p: in heavy congestion all halve, whatever their deadlines are.
 *
 * The deadline comes from the application, by cc_deadline(). Only hosts that the application can tell know one; a kernel
 * has no such interface, and there this file is DCTCP.
 *
 * Paper: Vamanan, Hasan, Vijaykumar, "Deadline-Aware Datacenter TCP (D2TCP)", SIGCOMM 2012.
 *
 * Where the paper leaves a choice
 *   - A deadline that has passed counts as the most urgent: d = 2.
 *   - Several messages that are under way on one connection have the deadline of the last.
 *   - Before the first RTT, and once the message is acknowledged, d = 1.
 *   - Receiver, losses and arithmetic are those of dctcp.c.
 */
#include "marks.h"

#define MIN_CWND 2u	/* segments */

/* d is scaled by 2^10. */
#define URGENCY_SCALE 10
#define URGENCY_ONE (1u << URGENCY_SCALE)
#define URGENCY_MIN (URGENCY_ONE / 2)
#define URGENCY_MAX (URGENCY_ONE * 2)

/* Logarithms are scaled by 2^16: the error of alpha^d is below alpha^d / 2^13. */
#define LOG_SCALE 16

/* ---- Private state ---- */

struct d2tcp {
	struct marks marks;	/* alpha, of what this end sends */
	struct marks_echo echo;	/* of what it receives */
	u32 cwnd_before;	/* segments: cwnd at the last reduction; 0: none yet */
	u8 ecn;			/* this connection has negotiated ECN */
	u8 echoed;		/* the last ACK carried ECE */
	u8 pad[2];
};
_Static_assert(sizeof(struct d2tcp) + sizeof(struct cc_deadline) <= CC_PRIVATE_MAX, "exceeds icsk_ca_priv");

/* ---- Equations ---- */

/*
 * d = Tc / D, where Tc = B x RTT / (3/4 cwnd)
 *
 * B < 2^31 and srtt < 2^29, so that 4 B x RTT < 2^62; Tc is held to 2^40 (13 days), x 2^10 < 2^50.
 */
CC_INLINE u32 d2tcp_urgency(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct cc_deadline *deadline = cc_deadline(sk);
	u32 left_us = deadline->due_us - (u32)tp->tcp_mstamp;
	u32 bytes = deadline->end_seq - tp->snd_una;
	u64 need_us;

	if (!deadline->due_us || !tp->srtt_us || !tp->mss_cache || !tp->snd_cwnd || !after(deadline->end_seq, tp->snd_una))
		return URGENCY_ONE;
	if (!left_us || left_us >> 31)
		return URGENCY_MAX;
	need_us = 4ull * (bytes / tp->mss_cache + 1) * (tp->srtt_us >> 3) / (3ull * tp->snd_cwnd);
	return (u32)clamp_u32((u32)min_u64((min_u64(need_us, 1ull << 40) << URGENCY_SCALE) / left_us, URGENCY_MAX),
			      URGENCY_MIN, URGENCY_MAX);
}

/*
 * - log2(alpha), LOG_SCALE; 0 < alpha <= 1
 *
 * With alpha = m 2^-e and 1 <= m < 2, each squaring of m that reaches 2 is a bit of log2(m). Without branches: the verifier
 * would walk both ways of each.
 */
CC_INLINE u32 d2tcp_minus_log(u32 alpha)
{
	u32 bits = fls64(alpha);
	u64 m = (u64)alpha << (32 - bits);	/* scaled by 2^31 */
	u32 fraction = 0;

	for (int i = 0; i < LOG_SCALE; i++) {
		u64 square = m * m >> 31;	/* below 2^33 */
		u64 bit = square >> 32;

		fraction = fraction << 1 | (u32)bit;
		m = square >> bit;
	}
	return ((MARKS_SCALE + 1 - bits) << LOG_SCALE) - fraction;
}

/* 2^-(2^-1), 2^-(2^-2), ..., scaled by 2^31 */
static const u32 d2tcp_roots[LOG_SCALE] = {
	0x5a82799a, 0x6ba27e65, 0x75606374, 0x7a92be8b, 0x7d41d96e, 0x7e9f0606, 0x7f4f08ae, 0x7fa765ad,
	0x7fd3ab29, 0x7fe9d3a9, 0x7ff4e959, 0x7ffa748e, 0x7ffd3a3f, 0x7ffe9d1e, 0x7fff4e8e, 0x7fffa747,
};

/* 2^-x for x in LOG_SCALE, in MARKS_SCALE */
CC_INLINE u32 d2tcp_exp_minus(u64 x)
{
	u64 value = 1u << 31;

	if (x >> LOG_SCALE > MARKS_SCALE)
		return 0;
	for (u32 i = 0; i < LOG_SCALE; i++) {
		u64 bit = x >> (LOG_SCALE - 1 - i) & 1;
		u64 factor = (1u << 31) - ((1u << 31) - d2tcp_roots[i]) * bit;

		value = value * factor >> 31;
	}
	return (u32)(value >> (31 - MARKS_SCALE) >> (x >> LOG_SCALE & 31));
}

/* p = alpha^d */
CC_INLINE u32 d2tcp_penalty(u32 alpha, u32 urgency)
{
	if (urgency == URGENCY_ONE || !alpha)
		return alpha;
	return d2tcp_exp_minus((u64)d2tcp_minus_log(alpha) * urgency >> URGENCY_SCALE);
}

/* ---- Hooks ---- */

CC_HOOK(void, d2tcp_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct d2tcp *ca = inet_csk_ca(sk);

	ca->marks.alpha = MARKS_ALL;	/* as in dctcp.c: the first mark halves */
	marks_begin_window(tp, &ca->marks);
	ca->echo.prior_rcv_nxt = tp->rcv_nxt;
	ca->echo.ce = 0;
	ca->cwnd_before = 0;
	ca->ecn = tcp_has_ecn(tp);
	ca->echoed = 0;
}

CC_HOOK(void, d2tcp_in_ack_event, struct sock *sk, u32 flags)
{
	struct d2tcp *ca = inet_csk_ca(sk);

	ca->echoed = !!(flags & CA_ACK_ECE);
	if (ca->ecn)
		marks_on_ack(tcp_sk(sk), &ca->marks);
}

CC_HOOK(void, d2tcp_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	tcp_reno_cong_avoid(sk, acked);
}

/* Once per window. Without an echo on the ACK it was a loss: half, however urgent. */
CC_HOOK(u32, d2tcp_ssthresh, struct sock *sk)
{
	struct d2tcp *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	ca->cwnd_before = cwnd;
	if (ca->ecn && ca->echoed)
		return marks_reduced(cwnd, d2tcp_penalty(ca->marks.alpha, d2tcp_urgency(sk)));
	return tcp_reno_ssthresh(sk);
}

/* A loss on an ACK that had an echo too, or within the window that an echo has reduced: half in all. */
CC_HOOK(void, d2tcp_set_state, struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct d2tcp *ca = inet_csk_ca(sk);

	if (ca->ecn && ca->cwnd_before && (new_state == TCP_CA_Recovery || new_state == TCP_CA_Loss))
		tp->snd_ssthresh = min_u32(tp->snd_ssthresh, max_u32(ca->cwnd_before >> 1, MIN_CWND));
}

CC_HOOK(void, d2tcp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct d2tcp *ca = inet_csk_ca(sk);

	if (!ca->ecn || !tcp_echoes_marks(tcp_sk(sk)))
		return;
	if (event == CA_EVENT_ECN_IS_CE)
		marks_receive(sk, &ca->echo, true);
	else if (event == CA_EVENT_ECN_NO_CE)
		marks_receive(sk, &ca->echo, false);
}

CC_HOOK(u32, d2tcp_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CC_INFO(d2tcp,
	.title = "D2TCP",
	.environment = "data centre with ECN marking switches, answers with deadlines",
	.reference = "Vamanan et al., SIGCOMM 2012",
	.category = CC_ECN_BASED,
	.measures = CC_MEASURES_ECN | CC_MEASURES_LOSS);

CC_OPS(d2tcp,
	.init = d2tcp_init,
	.in_ack_event = d2tcp_in_ack_event,
	.cong_avoid = d2tcp_cong_avoid,
	.ssthresh = d2tcp_ssthresh,
	.set_state = d2tcp_set_state,
	.cwnd_event = d2tcp_cwnd_event,
	.undo_cwnd = d2tcp_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN | CC_TAKES_DEADLINES);
