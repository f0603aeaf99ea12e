/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * CUBIC: the window as a cubic function of the time since the last loss; with HyStart to leave slow start early. As in Linux.
 *
 * NewReno needs W/2 round trips to regain what one loss took, which on a long fast path is hours. CUBIC's window
 * follows a clock instead of the ACKs: fast back to near where the loss was, flat around it, then fast again, searching:
 *
 *   cwnd                                          .
 *     |                                         .         W_cubic(t) = C (t - K)^3 + W_max                 RFC 9438 (1)
 *     |  loss                                 .           K = cbrt((W_max - cwnd_epoch) / C)               RFC 9438 (2)
 *   W_max . .\. . . . . _ . - - - - - . _ . .
 *     |       \      .                                    loss:  ssthresh = 0.7 cwnd
 *     |        \   .                                             W_max = cwnd, or 0.85 cwnd if cwnd < W_max
 *     |         \.  concave        convex                        (fast convergence: leave room to a new flow)
 *     +----------|-----------|------------------> t
 *             epoch          K
 *
 * Growth in time, not in round trips, also means that flows with different RTTs share more evenly. On short or slow
 * paths, though, the cubic is slower than NewReno. There CUBIC follows an estimate of what an AIMD flow with the same
 * decrease would have, and takes it when it is the larger (the Reno-friendly region):
 *
 *   W_est += alpha x segments_acked / cwnd,   alpha = 3 (1 - 0.7) / (1 + 0.7) = 9/17                       RFC 9438 (4)
 *
 * In a data centre, K is seconds and a round trip microseconds: nearly all is the Reno-friendly region there.
 *
 * HyStart ends slow start before its overshoot loses half of a window, by either of two signs within one round:
 *
 *   ACK train    slow start sends a window in one burst, so ACKs come without a gap. When they have done so for half of
 *                the shortest RTT, the burst is as long as the path holds in one direction:
 *
 *                   data  |=========>            |     the round began, ACKs less than 2 ms apart since,
 *                   ACKs  |-----------------.....|     now - begin > min_rtt / 2
 *                         begin        min_rtt/2  min_rtt
 *
 *   delay        a queue grows: the least RTT of the round, of eight ACKs at least, exceeds the shortest RTT by an
 *                eighth of it, 4 ms at least and 16 ms at most.
 *
 * A host that sends in bursts of TSO lengthens the train by itself, so a burst's time at the pacing rate, four times over
 * and 1 ms at most, is added to min_rtt; a host that paces spreads the train over the RTT, and the whole of it counts.
 *
 * Papers: RFC 9438; Ha, Rhee, Xu, "CUBIC: A New TCP-Friendly High-Speed TCP Variant", OSR 42(5), 2008; Ha, Rhee,
 * "Taming the elephants: New TCP slow start", Computer Networks 55(9), 2011 (HyStart).
 *
 * Differences from RFC 9438
 *   - alpha stays 9/17 when W_est has reached the window of before the loss, where the RFC has 1; and slow start ends by
 *     HyStart, not by HyStart++ (RFC 9406). Both are as in Linux. With the RFC's alpha, four flows at 50 Mbit/s and 10 ms
 *     have half as many drops again.
 *   - Windows count segments. ssthresh is 0.7 of cwnd, not of the flight size, the choice that RFC 9438, 4.6, leaves.
 *   - cwnd goes to W_est by at most one segment per segment acknowledged: after a pause, in which the host has reduced
 *     cwnd, it would otherwise jump.
 *   - An application-limited flow stops growing, and a pause in sending stops the clock (5.8); a flow that keeps sending
 *     below its window lets the clock run, held by the limit of 1.5 x cwnd.
 *
 * Differences from Linux
 *   - Linux looks at the cubic once per tick and once per 31 ms, with 0.1 % of rounding in beta, C and K.
 *   - An undone reduction brings the cubic back, as in the RFC; Linux restores the window alone.
 */
#include "tcp.h"

/* ---- Constants ---- */

/* C = 0.4 segments/s^3 (RFC 9438, 5.1), as a fraction */
#define C_NUM 2u
#define C_DEN 5u

/* beta = 0.7 (4.6), and what fast convergence leaves of W_max, (1 + beta)/2 = 0.85 (4.7) */
#define BETA_NUM 7u
#define BETA_DEN 10u
#define CONVERGE_NUM 17u
#define CONVERGE_DEN 20u

/* alpha = 9/17 (4.3) */
#define ALPHA_NUM 9u
#define ALPHA_DEN 17u

#define MIN_SSTHRESH 2u	/* segments (4.6) */

#define US_PER_SEC 1000000u

/*
 * Time in the cubic's argument: stamps are kept in us; |t - K| is scaled to 2^-14 s (61 us), held to 2^21 of them
 * (128 s), so that its cube stays within 2^63. At the end of that range the cubic is 0.4 x 128^3 = 838,000 segments away
 * from W_max: windows up to 10^6 have K <= cbrt(0.3 x 10^6 / 0.4) = 91 s. What 61 us change at K: 1.2 K^2 x 61 us,
 * that is 0.001 segment for K = 4 s and 0.6 of a million segments for K = 91 s.
 */
#define TIME_SCALE 14
#define TIME_MAX (1u << 21)
#define SPAN_MAX_US (128u * US_PER_SEC)

/* Windows along the cubic have 10 bits of fraction, so that growth of less than a segment per RTT is not lost. */
#define WINDOW_SCALE 10

/* Largest W_max - cwnd that K is computed from: x 2.5 x 2^42 stays within 2^63.4. */
#define DEFICIT_MAX (1u << 20)

/* Growth while no loss is known: a segment for 20, 5 % per round trip at least. */
#define SEARCH_MAX 20u

/* HyStart */
#define HYSTART_WINDOW_MIN 16u		/* segments: below, a burst says nothing */
#define HYSTART_TRAIN_GAP_US 2000u	/* ACKs further apart do not belong to one train */
#define HYSTART_BURSTS 4u		/* bursts at the pacing rate by which a train may be longer, */
#define HYSTART_BURSTS_MAX_US 1000u	/* within this */
#define HYSTART_DELAY_MIN_US 4000u	/* more than jitter */
#define HYSTART_DELAY_MAX_US 16000u	/* on a long path an eighth would be too deep a queue */
#define HYSTART_DELAY_DIVISOR 8u
#define HYSTART_SAMPLES 8u		/* RTTs before a round's least one counts */

#define NO_RTT 0xffffffffu
#define NEVER 0xffffffffu

/* ---- Private state ---- */

/* What an undone reduction brings back (RFC 9438, 4.9). */
struct cubic_epoch {
	u64 start_us;		/* tcp_mstamp when congestion avoidance began; 0: has not since the last reduction */
	u32 k_us;		/* K: time from `start_us` to W_max */
	u32 origin;		/* segments: where this cubic is flat */
	u32 w_max;		/* segments: window of the last loss; 0: none known */
	u32 w_est;		/* segments: the AIMD flow's window */
};

struct cubic {
	struct cubic_epoch epoch;
	struct cubic_epoch undo;
	u64 last_ack_us;	/* tcp_mstamp of the last ACK */
	u32 est_credit;		/* progress of w_est to its next segment, in 1/ALPHA_DEN acknowledged segments */
	u32 min_rtt_us;		/* shortest RTT; NO_RTT: none */
	u32 round_end;		/* HyStart: snd_nxt when the round began */
	u32 round_start_us;	/* when that was, low 32 bits of tcp_mstamp */
	u32 train_us;		/* last ACK of the train */
	u32 round_rtt_us;	/* least RTT of the round; NO_RTT: none */
	u8 rtt_samples;		/* RTTs in this round, up to HYSTART_SAMPLES */
	bool found;		/* HyStart has ended slow start */
	u8 pad[6];
};
CC_ASSERT_STATE_FITS(struct cubic);

/* ---- Equations ---- */

/* 2^-14 s. us < 2^27, so the product stays below 2^41. */
CC_INLINE u64 cubic_time(u64 us)
{
	return (min_u64(us, SPAN_MAX_US) << TIME_SCALE) / US_PER_SEC;
}

/*
 * K = cbrt((W_max - cwnd_epoch) / C), us                                                                RFC 9438 (2)
 *
 * In units of 2^-14 s the root's argument is deficit x 5/2 x 2^42 < 2^63.4; the root < 2^21.2, x 10^6 < 2^42.
 */
CC_INLINE u32 cubic_k_us(u32 deficit)
{
	u64 units = cube_root((((u64)min_u32(deficit, DEFICIT_MAX) * C_DEN) << (3 * TIME_SCALE)) / C_NUM);

	return (u32)((units * US_PER_SEC) >> TIME_SCALE);
}

/*
 * W_cubic(t) = C (t - K)^3 + W_max, in 2^-10 segments                                                   RFC 9438 (1)
 *
 * units^3 <= 2^63; / 5 x 2 fits; the cube carries 42 bits of fraction, of which 10 are kept. The result is below
 * 2^31 + 2^42, or 0 where the cubic is negative.
 */
CC_INLINE u64 cubic_window(u64 t_us, u32 k_us, u32 w_max)
{
	bool convex = t_us >= k_us;
	u64 units = min_u64(cubic_time(convex ? t_us - k_us : k_us - t_us), TIME_MAX);
	u64 offset = (units * units * units / C_DEN * C_NUM) >> (3 * TIME_SCALE - WINDOW_SCALE);
	u64 origin = (u64)w_max << WINDOW_SCALE;

	if (convex)
		return origin + offset;
	return origin > offset ? origin - offset : 0;
}

/* target = W_cubic(t + RTT), within cwnd and 1.5 cwnd, in 2^-10 segments                                RFC 9438, 4.2 */
CC_INLINE u64 cubic_target(u64 w_cubic, u32 cwnd)
{
	u64 low = (u64)cwnd << WINDOW_SCALE;

	return min_u64(max_u64(w_cubic, low), low + low / 2);
}

/*
 * W_est += alpha x acked / cwnd                                                                         RFC 9438 (4)
 *
 * alpha is a fraction of 17, so w_est grows by a segment per 17 x cwnd of credit. The credit stays below that, which
 * for windows of 10^6 is 2^25; the sum is made in 64 bits.
 */
CC_INLINE void cubic_grow_estimate(struct cubic *ca, u32 cwnd, u32 acked)
{
	u64 credit = ca->est_credit + (u64)acked * ALPHA_NUM;
	u64 price = (u64)cwnd * ALPHA_DEN;
	u64 grown = price ? credit / price : 0;

	ca->epoch.w_est += (u32)grown;
	ca->est_credit = (u32)(credit - grown * price);
}

/* ---- HyStart ---- */

CC_INLINE void hystart_begin_round(const struct tcp_sock *tp, struct cubic *ca)
{
	ca->round_end = tp->snd_nxt;
	ca->round_start_us = (u32)tp->tcp_mstamp;
	ca->train_us = (u32)tp->tcp_mstamp;
	ca->round_rtt_us = NO_RTT;
	ca->rtt_samples = 0;
}

/* The time for which ACKs come without a gap once the burst fills the path, us. */
CC_INLINE u32 hystart_train_max_us(const struct sock *sk, u32 min_rtt_us)
{
	u64 rate = sk->sk_pacing_rate;
	u64 bursts_us = rate ? (u64)sk->sk_gso_max_size * HYSTART_BURSTS * US_PER_SEC / rate : 0;
	u32 whole = min_rtt_us + (u32)min_u64(bursts_us, HYSTART_BURSTS_MAX_US);

	return sk->sk_pacing_status == SK_PACING_NONE ? whole / 2 : whole;
}

/* Has the train of ACKs become as long as the path? */
CC_INLINE bool hystart_train_is_long(const struct sock *sk, struct cubic *ca)
{
	u32 now_us = (u32)tcp_sk(sk)->tcp_mstamp;

	if (now_us - ca->train_us > HYSTART_TRAIN_GAP_US)
		return false;
	ca->train_us = now_us;
	return now_us - ca->round_start_us > hystart_train_max_us(sk, ca->min_rtt_us);
}

/* Has the least RTT of the round grown by an eighth? */
CC_INLINE bool hystart_rtt_has_grown(struct cubic *ca, u32 rtt_us)
{
	u32 growth_us = clamp_u32(ca->min_rtt_us / HYSTART_DELAY_DIVISOR, HYSTART_DELAY_MIN_US, HYSTART_DELAY_MAX_US);

	ca->round_rtt_us = min_u32(ca->round_rtt_us, rtt_us);
	if (ca->rtt_samples < HYSTART_SAMPLES) {
		ca->rtt_samples++;
		return false;
	}
	return ca->round_rtt_us > ca->min_rtt_us + growth_us;
}

/* An RTT of slow start. */
CC_INLINE void hystart_sample(struct sock *sk, struct cubic *ca, u32 rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool train, grown;

	if (after(tp->snd_una, ca->round_end))
		hystart_begin_round(tp, ca);
	if (tp->snd_cwnd < HYSTART_WINDOW_MIN)
		return;
	train = hystart_train_is_long(sk, ca);
	grown = hystart_rtt_has_grown(ca, rtt_us);
	if (train || grown) {
		ca->found = true;
		tp->snd_ssthresh = tp->snd_cwnd;
	}
}

/* ---- Congestion avoidance ---- */

CC_INLINE void cubic_begin_epoch(struct tcp_sock *tp, struct cubic *ca)
{
	u32 cwnd = tp->snd_cwnd;

	ca->epoch.start_us = max_u64(tp->tcp_mstamp, 1);	/* 0 stands for "not begun" */
	ca->epoch.w_est = cwnd;
	ca->est_credit = 0;
	tp->snd_cwnd_cnt = 0;
	/* with no loss, or a timeout: search upwards from here (RFC 9438, 4.8, 4.10) */
	ca->epoch.origin = max_u32(ca->epoch.w_max, cwnd);
	ca->epoch.k_us = cubic_k_us(ca->epoch.origin - cwnd);
}

CC_INLINE void cubic_avoid(struct tcp_sock *tp, struct cubic *ca, u32 acked)
{
	u32 cwnd = tp->snd_cwnd;
	u64 t_us, w_cubic, excess, per_segment;

	if (!ca->epoch.start_us)
		cubic_begin_epoch(tp, ca);
	cubic_grow_estimate(ca, cwnd, acked);

	t_us = tp->tcp_mstamp > ca->epoch.start_us ? tp->tcp_mstamp - ca->epoch.start_us : 0;
	w_cubic = cubic_window(t_us, ca->epoch.k_us, ca->epoch.origin);
	if (w_cubic < (u64)ca->epoch.w_est << WINDOW_SCALE) {	/* Reno-friendly */
		if (ca->epoch.w_est > cwnd) {
			tp->snd_cwnd = min_u32(min_u32(ca->epoch.w_est, cwnd + acked), tp->snd_cwnd_clamp);
			return;
		}
		if (ca->epoch.w_max)
			return;
	}

	/* cwnd += (target - cwnd) / cwnd per segment acknowledged: one segment per cwnd / (target - cwnd) of them */
	w_cubic = cubic_window(t_us + (tp->srtt_us >> 3), ca->epoch.k_us, ca->epoch.origin);
	excess = cubic_target(w_cubic, cwnd) - ((u64)cwnd << WINDOW_SCALE);
	per_segment = excess ? min_u64(((u64)cwnd << WINDOW_SCALE) / excess, NEVER) : NEVER;
	if (!ca->epoch.w_max)
		per_segment = min_u64(per_segment, SEARCH_MAX);
	if (per_segment < NEVER)
		tcp_cong_avoid_ai(tp, (u32)per_segment, acked);
}

/* ---- Hooks ---- */

CC_HOOK(void, cubic_init, struct sock *sk)
{
	struct cubic *ca = inet_csk_ca(sk);
	struct cubic_epoch none = { .start_us = 0, .k_us = 0, .origin = 0, .w_max = 0, .w_est = 0 };

	ca->epoch = none;
	ca->undo = none;
	ca->last_ack_us = tcp_sk(sk)->tcp_mstamp;
	ca->est_credit = 0;
	ca->min_rtt_us = NO_RTT;
	ca->found = false;
	hystart_begin_round(tcp_sk(sk), ca);
}

CC_HOOK(void, cubic_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic *ca = inet_csk_ca(sk);
	u32 rtt_us;

	ca->last_ack_us = tp->tcp_mstamp;
	if (sample->rtt_us < 0)
		return;
	rtt_us = max_u32((u32)sample->rtt_us, 1);
	ca->min_rtt_us = min_u32(ca->min_rtt_us, rtt_us);
	if (!ca->found && tcp_in_slow_start(tp))
		hystart_sample(sk, ca, rtt_us);
}

CC_HOOK(void, cubic_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic *ca = inet_csk_ca(sk);

	(void)ack;
	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	cubic_avoid(tp, ca, acked);
}

/* Loss or ECN echo: where the next cubic is flat, and how far to go back (RFC 9438, 4.6, 4.7). */
CC_HOOK(u32, cubic_ssthresh, struct sock *sk)
{
	struct cubic *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	ca->undo = ca->epoch;
	ca->epoch.start_us = 0;
	if (cwnd < ca->epoch.w_max)
		ca->epoch.w_max = (u32)((u64)cwnd * CONVERGE_NUM / CONVERGE_DEN);
	else
		ca->epoch.w_max = cwnd;
	return max_u32((u32)((u64)cwnd * BETA_NUM / BETA_DEN), MIN_SSTHRESH);
}

CC_HOOK(void, cubic_set_state, struct sock *sk, u8 new_state)
{
	struct cubic *ca = inet_csk_ca(sk);

	if (new_state == TCP_CA_Loss) {	/* after a timeout the old window means nothing (4.8), and slow start begins anew */
		ca->epoch.start_us = 0;
		ca->epoch.w_max = 0;
		ca->min_rtt_us = NO_RTT;
		ca->found = false;
		hystart_begin_round(tcp_sk(sk), ca);
	}
}

CC_HOOK(void, cubic_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct cubic *ca = inet_csk_ca(sk);
	u64 now_us = tcp_sk(sk)->tcp_mstamp;

	if (event == CA_EVENT_CWND_RESTART) {	/* the host has reduced cwnd: a new cubic from there, to the same W_max */
		ca->epoch.start_us = 0;
	} else if (event == CA_EVENT_TX_START && ca->epoch.start_us && now_us > ca->last_ack_us) {
		/* nothing was sent in the pause, so nothing was learnt: it does not count (5.8) */
		ca->epoch.start_us = min_u64(ca->epoch.start_us + (now_us - ca->last_ack_us), now_us);
		ca->last_ack_us = now_us;
	}
}

/* The reduction was spurious: back to the window, and to the cubic, of before (4.9). */
CC_HOOK(u32, cubic_undo_cwnd, struct sock *sk)
{
	struct cubic *ca = inet_csk_ca(sk);

	ca->epoch = ca->undo;
	return tcp_reno_undo_cwnd(sk);
}

CC_INFO(cubic,
	.title = "CUBIC",
	.environment = "wired, high bandwidth, any delay; the Internet's default",
	.reference = "RFC 9438; Ha, Rhee, Xu, OSR 42(5), 2008; Ha, Rhee, Computer Networks 55(9), 2011 (HyStart)",
	.category = CC_LOSS_BASED,
	.measures = CC_MEASURES_LOSS);

CC_OPS(cubic,
	.init = cubic_init,
	.ssthresh = cubic_ssthresh,
	.cong_avoid = cubic_cong_avoid,
	.set_state = cubic_set_state,
	.cwnd_event = cubic_cwnd_event,
	.pkts_acked = cubic_pkts_acked,
	.undo_cwnd = cubic_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED);
