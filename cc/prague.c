/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Prague: DCTCP's response to marks, made safe and fair outside of a data centre.
 *
 * An L4S queue (RFC 9332) marks the packets of a scalable sender early and often, and keeps them apart from those of others.
 * It knows such a sender by ECT(1). The sender answers as DCTCP does, by the share of its segments that was marked; what
 * DCTCP lacks for paths of all lengths is added:
 *
 *   per round    frac = segments marked / segments delivered
 *                alpha += g (frac - alpha),    g = 1/16
 *   on a mark    W -= W alpha / 2,             once a round
 *   on an ACK    W += (acked - marked) ai / W  also while W is being reduced
 *   on a loss    W /= 2,                       as Reno; in all, if a mark has reduced W in the same round trip
 *   pacing       W / srtt, twice that in slow start
 *
 * RTT independence. A flow with a fifth of another's RTT would grow five times as fast per round and have five times as many
 * rounds. So a round is at least RR = 25 ms, and growth that of a flow with this RTT:
 *
 *   R = srtt     round = max(R, RR)       ai = (R / RR)^2 for R < RR, else 1
 *
 *   For W = rate x R: d rate / dt = ai / R per R = 1 / RR^2, whatever R is.
 *
 * Short flows keep the benefit of a short RTT: all this begins after 500 rounds.
 *
 * Fractions. With a mark in every round W hardly moves by a whole segment, so W has 20 bits of fraction, and the window is W
 * rounded up. alpha is kept as alpha / g: no remainder is lost.
 *
 *            +----------+  first mark or loss   +----------------------+
 *       ---->| slow     |---------------------->| congestion avoidance |
 *            | start    |   alpha is 1: W / 2   | growth and cuts      |
 *            +----------+                       +----------------------+
 *                 ^                                        |
 *                 +----------------------------------------+  timeout: W = in flight + 1
 *
 * Feedback. Each mark must be counted: the connection negotiates AccECN (RFC 9768). Where it cannot, each end echoes CE as
 * DCTCP's does (dctcp.c), which is as exact if both run this file. A peer with RFC 3168 repeats an echo for a round trip; all
 * that is delivered in it then counts as marked, alpha tends to 1, and a mark halves W: that is RFC 3168's response.
 *
 * Source: draft-briscoe-iccrg-prague-congestion-control; the requirements on a scalable sender are in RFC 9331, section 4.
 *
 * Differences from the draft
 *   - A burst is what the host makes of the pacing rate, 1 ms of it, not 250 us: files of this contract cannot set it.
 *   - A classic queue that marks ECT(1) as it marks ECT(0) is not detected; the draft leaves that off too.
 *   - The window is at least two segments.
 */
#include "marks.h"

/* W in segments, scaled by 2^20: windows up to 10^6 are below 2^40. */
#define WINDOW_SCALE 20
#define WINDOW_ONE (1ull << WINDOW_SCALE)
#define WINDOW_MAX (WINDOW_ONE << 30)	/* beyond what any host allows */

#define MIN_CWND 2u			/* segments */
#define HEADER_BYTES 52u		/* IPv4 and TCP with timestamps: the rate is that of packets */
#define US_PER_SEC 1000000u

#define REFERENCE_RTT_US 25000u		/* RR: a path within a continent */
#define SCALED_ROUNDS 500u		/* rounds in which R itself counts */

/* ---- Private state ---- */

struct prague {
	u64 window;		/* W, WINDOW_SCALE; 0: init() has not run */
	struct marks marks;	/* alpha / g, and the round */
	struct marks_echo echo;	/* of what is received */
	u32 ce_seen;		/* tp->delivered_ce at the last ACK */
	u32 rounds;		/* since slow start ended, up to SCALED_ROUNDS */
	u32 alpha_us;		/* tcp_mstamp when alpha was updated, */
	u32 cut_us;		/* and when W was last reduced */
	u32 before_cut;		/* segments: the window before that; 0: never */
	u8 marked;		/* a mark was seen: the path marks */
	u8 pad[3];
};
CC_ASSERT_STATE_FITS(struct prague);

/* ---- Equations ---- */

CC_INLINE u32 prague_rtt_us(const struct tcp_sock *tp)
{
	return max_u32(tp->srtt_us >> 3, 1);
}

CC_INLINE bool prague_is_independent(const struct prague *ca)
{
	return ca->rounds >= SCALED_ROUNDS;
}

CC_INLINE u32 prague_round_us(const struct tcp_sock *tp, const struct prague *ca)
{
	u32 rtt_us = prague_rtt_us(tp);

	return prague_is_independent(ca) ? max_u32(rtt_us, REFERENCE_RTT_US) : rtt_us;
}

/* Segments, rounded up. */
CC_INLINE u32 prague_cwnd(u64 window)
{
	return max_u32((u32)((window + WINDOW_ONE - 1) >> WINDOW_SCALE), MIN_CWND);
}

/*
 * n ai / W
 *
 * n is held to 2^20, so that n 2^40 is below 2^60; the quotient is at most n 2^20 = 2^40, x R (below 2^15) < 2^55.
 */
CC_INLINE u64 prague_growth(const struct tcp_sock *tp, const struct prague *ca, u32 n)
{
	u64 growth = ((u64)min_u32(n, 1u << 20) << (2 * WINDOW_SCALE)) / max_u64(ca->window, WINDOW_ONE);
	u32 rtt_us = prague_rtt_us(tp);

	if (prague_is_independent(ca) && rtt_us < REFERENCE_RTT_US)
		growth = growth * rtt_us / REFERENCE_RTT_US * rtt_us / REFERENCE_RTT_US;
	return growth;
}

/*
 * W alpha / 2
 *
 * W is below 2^50; its low 10 bits are 2^-10 segments and left out: 2^40 x alpha / g (2^24) = 2^64 at its limits, for windows
 * of 2^30; at 10^6 segments 2^54.
 */
CC_INLINE u64 prague_cut(u64 window, u32 upscaled_alpha)
{
	return ((window >> 10) * (upscaled_alpha >> 1) >> (MARKS_SCALE + MARKS_GAIN_SHIFT + 1)) << 11;
}

/* ---- The window ---- */

CC_INLINE void prague_set_window(struct tcp_sock *tp, struct prague *ca, u64 window)
{
	u64 least = MIN_CWND * WINDOW_ONE;

	ca->window = min_u64(max_u64(window, least), WINDOW_MAX);
	tp->snd_cwnd = min_u32(prague_cwnd(ca->window), tp->snd_cwnd_clamp);
}

/* The host has set the window: after a timeout, an undone recovery, a pause. */
CC_INLINE void prague_follow_host(const struct tcp_sock *tp, struct prague *ca)
{
	if (tp->snd_cwnd != min_u32(prague_cwnd(ca->window), tp->snd_cwnd_clamp))
		ca->window = (u64)tp->snd_cwnd << WINDOW_SCALE;
}

/* A round is over when all that was outstanding at its beginning is acknowledged, and it was long enough. */
CC_INLINE void prague_update_alpha(const struct tcp_sock *tp, struct prague *ca)
{
	struct marks *marks = &ca->marks;
	u32 now_us = (u32)tp->tcp_mstamp;

	if (before(tp->snd_una, marks->window_end))
		return;
	if (prague_is_independent(ca) && now_us - ca->alpha_us < prague_round_us(tp, ca))
		return;
	/* until the first mark nothing says that the path marks: it will halve the window */
	if (ca->marked && tp->delivered != marks->delivered) {
		u32 frac = marks_fraction(tp->delivered_ce - marks->delivered_ce, tp->delivered - marks->delivered);

		marks->alpha += frac - (marks->alpha >> MARKS_GAIN_SHIFT);
	}
	ca->alpha_us = now_us;
	marks_begin_window(tp, marks);
	if (!tcp_in_slow_start(tp) && ca->rounds < SCALED_ROUNDS)
		ca->rounds++;
}

/* A mark. For a round it changes nothing more. */
CC_INLINE void prague_reduce(struct tcp_sock *tp, struct prague *ca)
{
	u32 now_us = (u32)tp->tcp_mstamp;

	ca->marked = 1;
	if (ca->before_cut && now_us - ca->cut_us < prague_round_us(tp, ca))
		return;
	ca->cut_us = now_us;
	ca->before_cut = max_u32(tp->snd_cwnd, 1);
	prague_set_window(tp, ca, ca->window - prague_cut(ca->window, ca->marks.alpha));
	tp->snd_ssthresh = tp->snd_cwnd;
}

CC_INLINE void prague_grow(struct sock *sk, struct prague *ca, u32 unmarked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 room;

	if (!unmarked || tcp_ca_state(sk) == TCP_CA_Recovery || !tcp_is_cwnd_limited(sk))
		return;
	if (!tcp_in_slow_start(tp)) {
		prague_set_window(tp, ca, ca->window + prague_growth(tp, ca, unmarked));
		return;
	}
	room = tp->snd_ssthresh - tp->snd_cwnd;
	prague_set_window(tp, ca, ca->window + (min_u64(unmarked, room) << WINDOW_SCALE));
}

/*
 * bytes/s = W x packet / srtt
 *
 * W without its low 10 bits is below 2^40, x packet (2^14) < 2^54. Above 2^43, x 10^6 (2^20) would not fit: there the division
 * comes first, of at most 2^44.
 */
CC_INLINE void prague_pace(struct sock *sk, const struct prague *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 bytes = (ca->window >> 10) * (tp->mss_cache + HEADER_BYTES);
	u32 rtt_us = tp->srtt_us ? prague_rtt_us(tp) : 1000;
	u64 rate = bytes >> 43 ? (bytes >> 10) / rtt_us * US_PER_SEC : bytes * US_PER_SEC / rtt_us >> 10;

	if (tp->snd_cwnd < tp->snd_ssthresh >> 1)
		rate = min_u64(rate, 1ull << 62) << 1;
	sk->sk_pacing_rate = max_u64(min_u64(rate, sk->sk_max_pacing_rate), 1);
}

/* ---- Hooks ---- */

CC_HOOK(void, prague_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);

	/* the rest is 0: the host has cleared the state */
	ca->window = (u64)tp->snd_cwnd << WINDOW_SCALE;
	ca->marks.alpha = MARKS_ALL << MARKS_GAIN_SHIFT;
	marks_begin_window(tp, &ca->marks);
	ca->echo.prior_rcv_nxt = tp->rcv_nxt;
	ca->ce_seen = tp->delivered_ce;
	ca->alpha_us = (u32)tp->tcp_mstamp;
	prague_pace(sk, ca);
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

CC_HOOK(void, prague_cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	u32 marked;

	(void)ack, (void)flag;
	if (!ca->window)	/* the ACK of our own SYN comes before init() */
		return;
	marked = min_u32(tp->delivered_ce - ca->ce_seen, rs->acked_sacked);
	ca->ce_seen = tp->delivered_ce;

	prague_follow_host(tp, ca);
	prague_update_alpha(tp, ca);
	prague_grow(sk, ca, rs->acked_sacked - marked);
	if (marked)
		prague_reduce(tp, ca);
	prague_pace(sk, ca);
}

/* Whatever the host enters, the threshold is set elsewhere: for marks on each ACK, for losses in set_state(). */
CC_HOOK(u32, prague_ssthresh, struct sock *sk)
{
	return max_u32(tcp_sk(sk)->snd_ssthresh, MIN_CWND);
}

/* A loss: half, of what the window was before a mark in the same round trip reduced it. */
CC_HOOK(void, prague_set_state, struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	u32 now_us = (u32)tp->tcp_mstamp;
	u32 half;

	if (!ca->window || (new_state != TCP_CA_Recovery && new_state != TCP_CA_Loss))
		return;
	if (tcp_ca_state(sk) >= TCP_CA_Recovery)	/* a timeout within a recovery */
		return;
	prague_follow_host(tp, ca);
	if (!ca->before_cut || now_us - ca->cut_us >= prague_rtt_us(tp))
		ca->before_cut = max_u32(tp->snd_cwnd, 1);
	ca->cut_us = now_us;
	half = ca->before_cut >> 1;
	prague_set_window(tp, ca, min_u64((u64)half << WINDOW_SCALE, ca->window));
	tp->snd_ssthresh = max_u32(tp->snd_cwnd, MIN_CWND);
}

CC_HOOK(void, prague_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct prague *ca = inet_csk_ca(sk);

	if (!tcp_echoes_marks(tcp_sk(sk)))
		return;
	if (event == CA_EVENT_ECN_IS_CE)
		marks_receive(sk, &ca->echo, true);
	else if (event == CA_EVENT_ECN_NO_CE)
		marks_receive(sk, &ca->echo, false);
}

CC_HOOK(u32, prague_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CC_HOOK(u32, prague_min_tso_segs, struct sock *sk)
{
	(void)sk;
	return 1;
}

CC_INFO(prague,
	.title = "Prague",
	.environment = "L4S queues (RFC 9332), RTTs from a data centre's to the Internet's",
	.reference = "draft-briscoe-iccrg-prague-congestion-control; RFC 9331",
	.category = CC_ECN_BASED,
	.measures = CC_MEASURES_ECN | CC_MEASURES_LOSS);

CC_OPS(prague,
	.init = prague_init,
	.ssthresh = prague_ssthresh,
	.set_state = prague_set_state,
	.cwnd_event = prague_cwnd_event,
	.cong_control = prague_cong_control,
	.undo_cwnd = prague_undo_cwnd,
	.min_tso_segs = prague_min_tso_segs,
	.flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN | CC_SENDS_ECT1 | CC_WANTS_ACCECN);
