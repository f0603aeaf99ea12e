/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * BBR, version 1, as Linux runs it: congestion control by a model of the path instead of by its losses.
 *
 * A path looks to a flow like one pipe: it delivers at most bw (bottleneck bandwidth) and takes at least min_rtt
 * (round-trip propagation time). A loss-based sender fills the bottleneck's buffer, since only its overflow makes it
 * stop. BBR measures the two numbers, sends at the one and bounds what is in flight by their product, the BDP:
 *
 *   bw          = max of the delivery rates of the last 10 rounds         delivery rate = delivered / interval
 *   min_rtt     = min of the RTTs of the last 10 s
 *   pacing rate = pacing_gain x bw x 0.99
 *   cwnd        = cwnd_gain x bw x min_rtt + extra_acked + budget         budget = 3 bursts, made even
 *
 * The two cannot be seen at once: bandwidth shows only when the pipe is full, propagation time only when the buffer is
 * empty. So BBR probes for one and the other in turn:
 *
 *                    |
 *                    v
 *      +-------> STARTUP ----+     pacing 2/ln 2: the rate doubles every round
 *      |             |       |
 *      |             v       |     bw grew less than 25 % in each of three rounds: the pipe is full
 *      |           DRAIN     |     pacing ln 2 / 2: what Startup left in the buffer leaves within a round
 *      |             |       |
 *      |             v       |     in the network <= BDP + budget
 *      |    +--> PROBE_BW ---+     pacing 1.25, 0.75, 1, 1, 1, 1, 1, 1, each for min_rtt: probe, drain, cruise
 *      |    |        |       |
 *      |    |        v       |     no RTT as short as min_rtt for 10 s
 *      +----+--- PROBE_RTT <-+     4 segments in flight for 200 ms and a round: the buffer empties, min_rtt shows
 *
 * What the other parts are for:
 *
 *   1 % pacing margin    A rate measured a little too high would keep a standing queue for ten rounds. Just below the
 *                        estimate the queue drains instead.
 *   budget               Hosts send and acknowledge in bursts: one is built, one is on the wire, one is collected by
 *                        the receiver. cwnd has room for three and is even, for receivers that acknowledge every second
 *                        segment. While probing it has two more: 1.25 of a small BDP may be no segment more.
 *   extra_acked          Wi-Fi, cable and receive offload delay ACKs and release many at once. In between a sender
 *                        with 2 BDP may run dry. The largest surplus of ACKs over bw x time of the last 5 to 10 rounds
 *                        goes on top of cwnd, at most bw x 100 ms.
 *   lt_bw (long term)    A token-bucket policer passes a burst and then drops what is above its rate. The maximum
 *                        filter keeps the burst's rate, and much is lost. Two intervals in a row that lost a fifth
 *                        and had the same throughput mean a policer: BBR sends at their mean for 48 rounds, then
 *                        probes anew.
 *   EDT                  A paced host has an earliest departure time for its next burst (tcp_wstamp_ns). What will be
 *                        delivered before that is not counted as in the network.
 *   packet conservation  In the first round of a recovery one segment leaves per segment delivered. After the recovery
 *                        the window is what it was before.
 *   idle restart         A flow without data for a while resumes at bw, not at a probing rate, and does not need
 *                        PROBE_RTT: the pause has emptied the buffer.
 *
 * Losses change nothing else in the model. Flows that share a buffer of less than one BDP therefore lose much in it:
 * together they keep up to two BDP in flight.
 *
 * Papers: Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016;
 * draft-cardwell-iccrg-bbr-congestion-control-00 (2017); draft-cheng-iccrg-delivery-rate-estimation-00 for the delivery
 * rates, which the host computes; Flach et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016. Pacing
 * margin, extra_acked, lt_bw and EDT are in no draft; the reference for these is Linux 6.x.
 *
 * Differences from Linux
 *   - Times are milliseconds of tp->tcp_mstamp where Linux has jiffies.
 *   - The policer's test has 64 bits where Linux's 32 overflow, above 1 segment/us.
 *   - A pacing rate is at least 1 byte/s: 0 would mean that nothing is paced.
 */
#include "tcp.h"

/* ---- Fixed point ---- */

/*
 * Bandwidth is in segments per microsecond, scaled by 2^24: steps of 2^-24 segment/us (86 bytes/s of 1448-byte
 * segments), largest value 2^8 segments/us (2.9 Tbit/s of them). 400 Gbit/s is 34.5 segments/us; of 200-byte segments
 * still 250.
 */
#define BW_SCALE 24
#define BW_UNIT (1u << BW_SCALE)
#define BW_MAX 0xffffffffu

/* Gains are scaled by 2^8; all are below 4, that is 2^10. */
#define GAIN_SCALE 8
#define GAIN_UNIT (1u << GAIN_SCALE)

#define US_PER_SEC 1000000u
#define US_PER_MS 1000u

/* ---- Constants ---- */

#define STARTUP_GAIN 739u		/* 2/ln 2 = 2.885: the least that doubles the delivery rate each round */
#define DRAIN_GAIN 88u			/* ln 2/2 = 0.347: undoes Startup's excess in the time that made it */
#define CRUISE_GAIN GAIN_UNIT		/* 1: the rate at which the bottleneck delivers */
#define PROBE_BW_CWND_GAIN (2 * GAIN_UNIT)	/* room for ACKs delayed or merged for up to one RTT */
#define PACED_US_PER_SEC (US_PER_SEC / 100 * 99)	/* the pacing margin: a second's worth of data is sent in 1.01 s */

#define CYCLE_PHASES 8u			/* of PROBE_BW; a power of two: its index is masked */
#define PROBE_PHASE 0u			/* the phase with gain 1.25 */
#define CYCLE_START_CHOICES 7u		/* any phase but the second, 0.75: at the start there is nothing to drain */

#define BW_ROUNDS 10u			/* rounds: outlives one gain cycle of eight, forgets a slower path soon after */
#define MIN_RTT_MS 10000u		/* ms: long against a transfer's pauses, in which min_rtt shows by itself */
#define PROBE_RTT_MS 200u		/* ms: overlaps with other flows' probes; 2 % of the time at one per 10 s */

#define MIN_CWND 4u			/* segments: keeps a delayed-ACK receiver (every second segment) supplied */
#define INITIAL_CWND 10u		/* segments (RFC 6928): the BDP while min_rtt is unknown */
#define NOMINAL_RTT_US 1000u		/* us: assumed for the first pacing rate while there is no RTT */

#define FULL_BW_GROWTH (GAIN_UNIT * 5 / 4)	/* a round that does not grow bw by 25 % ... */
#define FULL_BW_ROUNDS 3u		/* ... three times: once is the receive window's, twice is chance */

#define SLOW_PACING_RATE (1200000u / 8)	/* bytes/s: under 1.2 Mbit/s a burst of two segments would be 20 ms long */
#define MAX_BURST_BYTES 65215u		/* a TSO packet: 64 KiB less room for headers */
#define MAX_BURST 127u			/* segments */

#define EXTRA_ACKED_ROUNDS 5u		/* rounds of each of extra_acked's two windows */
#define EXTRA_ACKED_MAX_US 100000u	/* us: longer gaps than 100 ms are not compensated */
#define ACK_EPOCH_MAX (1u << 20)	/* segments: an epoch that old says nothing about now */

#define LT_ROUNDS_MIN 4u		/* rounds of a long-term interval: a policer's bucket is empty by then */
#define LT_ROUNDS_MAX 16u		/* rounds: a longer one would average over too much */
#define LT_LOSS_RATIO 50u		/* of 256: a fifth of what was delivered was lost */
#define LT_BW_RATIO 8u			/* two intervals agree if they differ by at most an eighth ... */
#define LT_BW_DIFFERENCE (4000u / 8)	/* ... or by 4 kbit/s, bytes/s */
#define LT_USE_ROUNDS 48u		/* rounds at the policer's rate, then the path may have changed */

enum bbr_mode {
	BBR_STARTUP = 0,
	BBR_DRAIN = 1,
	BBR_PROBE_BW = 2,
	BBR_PROBE_RTT = 3,
};

/* Long-term sampling: none between rare losses; then interval after interval; at last its result is in use. */
enum bbr_long_term {
	BBR_LT_OFF = 0,
	BBR_LT_SAMPLING = 1,
	BBR_LT_IN_USE = 2,
};

static const u16 bbr_cycle_gains[CYCLE_PHASES] = {
	GAIN_UNIT * 5 / 4,	/* probe: 25 % more in flight, which a pipe with room delivers faster */
	GAIN_UNIT * 3 / 4,	/* drain what the probe put into the buffer */
	GAIN_UNIT, GAIN_UNIT, GAIN_UNIT, GAIN_UNIT, GAIN_UNIT, GAIN_UNIT,
};

/* ---- Private state ---- */

/* Stamps of 32 bits wrap after 71 minutes (us) and 49 days (ms): after a longer pause a difference is wrong, once. */
struct bbr {
	struct minmax bw;	/* BW_SCALE, over BW_ROUNDS */
	u32 min_rtt_us;		/* ~0: none yet */
	u32 min_rtt_ms;		/* when min_rtt_us was measured, tcp_mstamp */
	u32 probe_rtt_end_ms;	/* when PROBE_RTT may end, tcp_mstamp; 0 until in flight has fallen to MIN_CWND */
	u32 cycle_us;		/* when the phase of PROBE_BW began, delivered_mstamp */
	u32 rounds;		/* round trips, counted in delivered segments */
	u32 round_end;		/* a segment sent when tp->delivered had reached this begins the next round */
	u32 prior_cwnd;		/* segments: from before a recovery or PROBE_RTT */
	u32 full_bw;		/* BW_SCALE: bw when it last grew by FULL_BW_GROWTH */
	u32 lt_bw;		/* BW_SCALE: of the last long-term interval, or in use; 0: none */
	u32 lt_ms;		/* delivered_mstamp, */
	u32 lt_delivered;	/* tp->delivered, */
	u32 lt_lost;		/* and tp->lost when the interval began */
	u32 epoch_us;		/* when the ACK epoch began, delivered_mstamp */
	u32 epoch_acked;	/* segments acknowledged in it */
	u16 extra_acked;	/* segments: maximum of this window, */
	u16 extra_acked_before;	/* and of the one before */
	u16 pacing_gain;	/* GAIN_SCALE; 0: init() has not run */
	u8 mode;		/* enum bbr_mode */
	u8 cycle_phase;		/* index of bbr_cycle_gains */
	u8 full_bw_rounds;	/* rounds without growth */
	u8 pipe_filled;		/* Startup has found the bandwidth */
	u8 long_term;		/* enum bbr_long_term */
	u8 lt_rounds;		/* rounds of this interval, or in use */
	u8 extra_acked_rounds;	/* rounds of this window */
	u8 round_start;		/* this ACK begins a round */
	u8 idle_restart;	/* sending resumed after an application-limited pause */
	u8 probe_rtt_round;	/* a round has passed in PROBE_RTT at MIN_CWND */
	u8 conserve;		/* packet conservation: first round of a recovery */
	u8 ca_state;		/* congestion state at the last ACK */
	u8 rtt_seen;		/* the first pacing rate came from a measured RTT */
	u8 pad[1];
};
CC_ASSERT_STATE_FITS(struct bbr);

/* ---- Equations ---- */

/*
 * bw = segments / us
 *
 * segments < 2^32, so the scaled numerator is below 2^56.
 */
CC_INLINE u32 bbr_bandwidth(u32 segments, u64 us)
{
	u64 scaled = (u64)segments << BW_SCALE;

	return us ? (u32)min_u64(scaled / us, BW_MAX) : 0;
}

/* segments = bw x us; both factors are below 2^32. */
CC_INLINE u32 bbr_segments(u32 bw, u32 us)
{
	return (u32)((u64)bw * us >> BW_SCALE);
}

/*
 * bytes/s = bw x mss x gain x 990000
 *
 * bw x mss is bytes/us, scaled by 2^24, and held to 2^42 (2^18 bytes/us, 2 Tbit/s); x gain / 2^8 < 2^43.6,
 * x 990000 < 2^63.6.
 */
CC_INLINE u64 bbr_paced_rate(u32 bw, u32 mss, u32 gain)
{
	u64 scaled = min_u64((u64)bw * mss, 1ull << 42);

	return (scaled * gain >> GAIN_SCALE) * PACED_US_PER_SEC >> BW_SCALE;
}

/*
 * gain x BDP = gain x bw x min_rtt, segments, rounded up so that it does not shrink by being used
 *
 * bw x min_rtt < 2^32 x 2^32; held to 2^53 (2^29 segments, far beyond windows of 10^6), so that x gain (2^10) stays
 * within 2^63.
 */
CC_INLINE u32 bbr_bdp(const struct bbr *bbr, u32 bw, u32 gain)
{
	u64 bdp = min_u64((u64)bw * bbr->min_rtt_us, 1ull << 53);

	if (bbr->min_rtt_us == ~0u)
		return INITIAL_CWND;
	return (u32)(((bdp * gain >> GAIN_SCALE) + BW_UNIT - 1) >> BW_SCALE);
}

CC_INLINE u32 bbr_max_bw(const struct bbr *bbr)
{
	return minmax_get(&bbr->bw);
}

/* The path's bandwidth, or the policer's. */
CC_INLINE u32 bbr_bw(const struct bbr *bbr)
{
	return bbr->long_term == BBR_LT_IN_USE ? bbr->lt_bw : bbr_max_bw(bbr);
}

/* A policer drops what probes. */
CC_INLINE u32 bbr_pacing_gain(const struct bbr *bbr)
{
	if (bbr->mode == BBR_STARTUP)
		return STARTUP_GAIN;
	if (bbr->mode == BBR_DRAIN)
		return DRAIN_GAIN;
	if (bbr->mode == BBR_PROBE_RTT || bbr->long_term == BBR_LT_IN_USE)
		return CRUISE_GAIN;
	return bbr_cycle_gains[bbr->cycle_phase & (CYCLE_PHASES - 1)];
}

CC_INLINE u32 bbr_cwnd_gain(const struct bbr *bbr)
{
	if (bbr->mode < BBR_PROBE_BW)
		return STARTUP_GAIN;
	return bbr->mode == BBR_PROBE_BW ? PROBE_BW_CWND_GAIN : GAIN_UNIT;
}

/* ---- Clocks ---- */

CC_INLINE u32 bbr_now_ms(const struct tcp_sock *tp)
{
	return (u32)(tp->tcp_mstamp / US_PER_MS);
}

/* ---- Bursts, and what is in flight ---- */

/* Segments of the smallest burst that the host may pace. */
CC_INLINE u32 bbr_min_burst(const struct sock *sk)
{
	return sk->sk_pacing_rate < SLOW_PACING_RATE ? 1 : 2;
}

/* Segments of a burst: what 1 ms of the pacing rate holds. */
CC_INLINE u32 bbr_burst(const struct sock *sk)
{
	u64 bytes = min_u64(sk->sk_pacing_rate >> (sk->sk_pacing_shift & 63), MAX_BURST_BYTES);
	u32 mss = tcp_sk(sk)->mss_cache;

	return min_u32(max_u32(mss ? (u32)bytes / mss : 0, bbr_min_burst(sk)), MAX_BURST);
}

/* A window with the budget: three bursts, even, and two segments more while probing. */
CC_INLINE u32 bbr_with_budget(const struct sock *sk, const struct bbr *bbr, u32 segments)
{
	segments = (segments + 3 * bbr_burst(sk) + 1) & ~1u;
	return bbr->mode == BBR_PROBE_BW && bbr->cycle_phase == PROBE_PHASE ? segments + 2 : segments;
}

CC_INLINE u32 bbr_inflight(const struct sock *sk, const struct bbr *bbr, u32 gain)
{
	return bbr_with_budget(sk, bbr, bbr_bdp(bbr, bbr_max_bw(bbr), gain));
}

/*
 * in network = in flight (+ the next burst while probing) - bw x (EDT - now)
 *
 * What is in the network when the next burst departs. While in flight is to rise, that burst takes it to its
 * goal; while it is to fall, what counts is how low it falls before that burst.
 */
CC_INLINE u32 bbr_in_network_at_edt(const struct sock *sk, const struct bbr *bbr, u32 in_flight)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 edt_ns = max_u64(tp->tcp_wstamp_ns, tp->tcp_clock_cache);
	u32 delivered = bbr_segments(bbr_bw(bbr), (u32)((edt_ns - tp->tcp_clock_cache) / 1000));

	if (bbr->pacing_gain > CRUISE_GAIN)
		in_flight += bbr_burst(sk);
	return in_flight > delivered ? in_flight - delivered : 0;
}

/* ---- Pacing ---- */

/* pacing rate = 2/ln 2 x cwnd / RTT, of the smoothed RTT, or 1 ms while there is none. */
CC_INLINE void bbr_pace_initially(struct sock *sk, struct bbr *bbr)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt_us = tp->srtt_us ? max_u32(tp->srtt_us >> 3, 1) : NOMINAL_RTT_US;
	u64 rate = bbr_paced_rate(bbr_bandwidth(tp->snd_cwnd, rtt_us), tp->mss_cache, STARTUP_GAIN);

	if (tp->srtt_us)
		bbr->rtt_seen = 1;
	sk->sk_pacing_rate = max_u64(min_u64(rate, sk->sk_max_pacing_rate), 1);
}

/* Until the pipe is full the rate only rises: early, app-limited samples would hold it below what they can show. */
CC_INLINE void bbr_pace(struct sock *sk, struct bbr *bbr, u32 gain)
{
	u64 rate = bbr_paced_rate(bbr_bw(bbr), tcp_sk(sk)->mss_cache, gain);

	if (!bbr->rtt_seen && tcp_sk(sk)->srtt_us)
		bbr_pace_initially(sk, bbr);
	rate = min_u64(rate, sk->sk_max_pacing_rate);
	if (bbr->pipe_filled || rate > sk->sk_pacing_rate)
		sk->sk_pacing_rate = max_u64(rate, 1);
}

/* ---- Modes ---- */

CC_INLINE void bbr_next_phase(const struct tcp_sock *tp, struct bbr *bbr)
{
	bbr->cycle_phase = (u8)((bbr->cycle_phase + 1) & (CYCLE_PHASES - 1));
	bbr->cycle_us = (u32)tp->delivered_mstamp;
}

/* Flows that share a bottleneck should not probe in step: each starts at a phase drawn at random. */
CC_INLINE void bbr_enter_probe_bw(struct sock *sk, struct bbr *bbr)
{
	bbr->mode = BBR_PROBE_BW;
	bbr->cycle_phase = (u8)(CYCLE_PHASES - 1 - cc_random_u32(sk) % CYCLE_START_CHOICES);
	bbr_next_phase(tcp_sk(sk), bbr);
}

/* ---- Long-term bandwidth: is there a policer? ---- */

CC_INLINE void bbr_begin_lt_interval(const struct tcp_sock *tp, struct bbr *bbr)
{
	bbr->lt_ms = (u32)(tp->delivered_mstamp / US_PER_MS);
	bbr->lt_delivered = tp->delivered;
	bbr->lt_lost = tp->lost;
	bbr->lt_rounds = 0;
}

CC_INLINE void bbr_stop_lt(const struct tcp_sock *tp, struct bbr *bbr)
{
	bbr->lt_bw = 0;
	bbr->long_term = BBR_LT_OFF;
	bbr_begin_lt_interval(tp, bbr);
}

/* An interval with a policer's losses is over: if the one before had the same bandwidth, that is the policer's rate. */
CC_INLINE void bbr_end_lt_interval(const struct tcp_sock *tp, struct bbr *bbr, u32 bw)
{
	u32 previous = bbr->lt_bw;
	u32 difference = bw > previous ? bw - previous : previous - bw;
	bool agree = (u64)difference * LT_BW_RATIO <= previous ||
		     bbr_paced_rate(difference, tp->mss_cache, GAIN_UNIT) <= LT_BW_DIFFERENCE;

	if (previous && agree) {
		bbr->lt_bw = (u32)(((u64)bw + previous) >> 1);
		bbr->long_term = BBR_LT_IN_USE;
		bbr->lt_rounds = 0;
		bbr->pacing_gain = CRUISE_GAIN;
		return;
	}
	bbr->lt_bw = bw;
	bbr_begin_lt_interval(tp, bbr);
}

/* A loss ends the interval if a fifth of it was lost: then the bucket is empty. */
CC_INLINE void bbr_judge_lt_interval(const struct tcp_sock *tp, struct bbr *bbr)
{
	u32 lost = tp->lost - bbr->lt_lost;
	u32 delivered = tp->delivered - bbr->lt_delivered;
	u32 ms = (u32)(tp->delivered_mstamp / US_PER_MS) - bbr->lt_ms;

	if (!delivered || (u64)lost << 8 < (u64)delivered * LT_LOSS_RATIO || (s32)ms < 1)
		return;
	if (ms >= ~0u / US_PER_MS) {	/* beyond the range of lt_ms */
		bbr_stop_lt(tp, bbr);
		return;
	}
	bbr_end_lt_interval(tp, bbr, bbr_bandwidth(delivered, (u64)ms * US_PER_MS));
}

/* Intervals begin and end with a loss, when a policer's bucket is empty: with its burst they would be too fast. */
CC_INLINE void bbr_sample_lt(struct sock *sk, struct bbr *bbr, bool lost, bool app_limited)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (bbr->long_term == BBR_LT_IN_USE) {
		if (bbr->mode == BBR_PROBE_BW && bbr->round_start && ++bbr->lt_rounds >= LT_USE_ROUNDS) {
			bbr_stop_lt(tp, bbr);
			bbr_enter_probe_bw(sk, bbr);
		}
		return;
	}
	if (bbr->long_term == BBR_LT_OFF) {
		if (!lost)
			return;
		bbr_begin_lt_interval(tp, bbr);
		bbr->long_term = BBR_LT_SAMPLING;
	}
	if (app_limited) {	/* what was offered says nothing about a policer */
		bbr_stop_lt(tp, bbr);
		return;
	}
	if (bbr->round_start)
		bbr->lt_rounds++;
	if (bbr->lt_rounds < LT_ROUNDS_MIN)
		return;
	if (bbr->lt_rounds > LT_ROUNDS_MAX)
		bbr_stop_lt(tp, bbr);
	else if (lost)
		bbr_judge_lt_interval(tp, bbr);
}

/* ---- The model: rounds, bw, extra_acked, min_rtt ---- */

CC_INLINE bool bbr_is_sample(const struct rate_sample *rs)
{
	return rs->delivered >= 0 && rs->interval_us > 0;
}

/*
 * A round ends when a segment is delivered that was sent after the round began. An application-limited sample says what
 * was offered, not what the path can: it counts only if it is not below bw.
 */
CC_INLINE void bbr_update_bw(struct sock *sk, struct bbr *bbr, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 bw;

	bbr->round_start = 0;
	if (!bbr_is_sample(rs))
		return;
	if (!before(rs->prior_delivered, bbr->round_end)) {
		bbr->round_end = tp->delivered;
		bbr->rounds++;
		bbr->round_start = 1;
		bbr->conserve = 0;
	}
	bbr_sample_lt(sk, bbr, rs->losses > 0, rs->is_app_limited);
	bw = bbr_bandwidth((u32)rs->delivered, (u64)rs->interval_us);
	if (bw >= bbr_max_bw(bbr) || !rs->is_app_limited)
		minmax_running_max(&bbr->bw, BW_ROUNDS, bbr->rounds, bw);
}

/*
 * extra_acked = max over 5 to 10 rounds of (acknowledged in the epoch - bw x time of the epoch), at most cwnd
 *
 * An epoch ends when ACKs have fallen behind bw: what comes after is a new surplus.
 */
CC_INLINE void bbr_update_extra_acked(const struct tcp_sock *tp, struct bbr *bbr, const struct rate_sample *rs)
{
	u32 expected, extra;

	if (!rs->acked_sacked || !bbr_is_sample(rs))
		return;
	if (bbr->round_start && ++bbr->extra_acked_rounds >= EXTRA_ACKED_ROUNDS) {
		bbr->extra_acked_rounds = 0;
		bbr->extra_acked_before = bbr->extra_acked;
		bbr->extra_acked = 0;
	}
	expected = bbr_segments(bbr_bw(bbr), (u32)tp->delivered_mstamp - bbr->epoch_us);
	if (bbr->epoch_acked <= expected || bbr->epoch_acked + rs->acked_sacked >= ACK_EPOCH_MAX) {
		bbr->epoch_acked = 0;
		bbr->epoch_us = (u32)tp->delivered_mstamp;
		expected = 0;
	}
	bbr->epoch_acked = min_u32(bbr->epoch_acked + rs->acked_sacked, ACK_EPOCH_MAX - 1);
	extra = min_u32(min_u32(bbr->epoch_acked - expected, tp->snd_cwnd), 0xffff);
	bbr->extra_acked = (u16)max_u32(bbr->extra_acked, extra);
}

/* Segments on top of cwnd that keep a sender busy between ACKs that come in bunches. */
CC_INLINE u32 bbr_aggregation_cwnd(const struct bbr *bbr)
{
	u32 most = bbr->pipe_filled ? bbr_segments(bbr_bw(bbr), EXTRA_ACKED_MAX_US) : 0;

	return min_u32(max_u32(bbr->extra_acked, bbr->extra_acked_before), most);
}

/* Returns whether the minimum was too old. A delayed ACK does not replace it: a lone segment's would be 40 ms too high. */
CC_INLINE bool bbr_update_min_rtt(const struct tcp_sock *tp, struct bbr *bbr, const struct rate_sample *rs)
{
	u32 now_ms = bbr_now_ms(tp);
	bool expired = after(now_ms, bbr->min_rtt_ms + MIN_RTT_MS);

	/* an RTT of 2^32 us would be 71 minutes: TCP gives up before */
	if (rs->rtt_us >= 0 && ((u64)rs->rtt_us <= bbr->min_rtt_us || (expired && !rs->is_ack_delayed))) {
		bbr->min_rtt_us = (u32)rs->rtt_us;
		bbr->min_rtt_ms = now_ms;
	}
	return expired;
}

/* ---- The state machine ---- */

/* Is the phase of PROBE_BW over? */
CC_INLINE bool bbr_phase_is_over(const struct sock *sk, const struct bbr *bbr, const struct rate_sample *rs)
{
	bool lasted = (u32)tcp_sk(sk)->delivered_mstamp - bbr->cycle_us > bbr->min_rtt_us;
	u32 in_network;

	if (bbr->pacing_gain == CRUISE_GAIN || (bbr->pacing_gain > CRUISE_GAIN) != lasted)
		return lasted;
	in_network = bbr_in_network_at_edt(sk, bbr, rs->prior_in_flight);
	if (lasted)	/* a probe: until it is really in flight, or does not fit */
		return rs->losses > 0 || in_network >= bbr_inflight(sk, bbr, bbr->pacing_gain);
	return in_network <= bbr_inflight(sk, bbr, GAIN_UNIT);	/* drained early */
}

/*
 * The pipe is full when bw < 1.25 x the bw of the last growth, in three rounds
 *
 * BW_SCALE values are below 2^32, x 320 below 2^41.
 */
CC_INLINE void bbr_check_full_pipe(struct bbr *bbr, const struct rate_sample *rs)
{
	u32 bw = bbr_max_bw(bbr);

	if (bbr->pipe_filled || !bbr->round_start || rs->is_app_limited)
		return;
	if (bw >= (u64)bbr->full_bw * FULL_BW_GROWTH >> GAIN_SCALE) {
		bbr->full_bw = bw;
		bbr->full_bw_rounds = 0;
		return;
	}
	bbr->full_bw_rounds++;
	bbr->pipe_filled = bbr->full_bw_rounds >= FULL_BW_ROUNDS;
}

CC_INLINE void bbr_check_drain(struct sock *sk, struct bbr *bbr)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 full;

	if (!bbr->pipe_filled || bbr->mode > BBR_DRAIN)
		return;
	full = bbr_inflight(sk, bbr, GAIN_UNIT);
	if (bbr->mode == BBR_STARTUP)
		tp->snd_ssthresh = full;	/* unused here: it shows others where slow start has ended */
	bbr->mode = BBR_DRAIN;
	if (bbr_in_network_at_edt(sk, bbr, tcp_packets_in_flight(tp)) <= full)
		bbr_enter_probe_bw(sk, bbr);
}

/* ---- PROBE_RTT, and the window around it and recoveries ---- */

CC_INLINE void bbr_save_cwnd(const struct tcp_sock *tp, struct bbr *bbr)
{
	bool reduced = bbr->ca_state >= TCP_CA_Recovery || bbr->mode == BBR_PROBE_RTT;

	bbr->prior_cwnd = max_u32(reduced ? bbr->prior_cwnd : 0, tp->snd_cwnd);
}

/* After 200 ms: back to where it was. */
CC_INLINE void bbr_check_probe_rtt_end(struct sock *sk, struct bbr *bbr)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 now_ms = bbr_now_ms(tp);

	if (!bbr->probe_rtt_end_ms || !after(now_ms, bbr->probe_rtt_end_ms))
		return;
	bbr->min_rtt_ms = now_ms;
	tp->snd_cwnd = max_u32(tp->snd_cwnd, bbr->prior_cwnd);
	if (bbr->pipe_filled)
		bbr_enter_probe_bw(sk, bbr);
	else
		bbr->mode = BBR_STARTUP;
}

/* In PROBE_RTT: wait until in flight is small, then 200 ms and a round. */
CC_INLINE void bbr_run_probe_rtt(struct sock *sk, struct bbr *bbr)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 in_flight = tcp_packets_in_flight(tp);

	/* the small window, not the path, limits what is delivered now */
	tp->app_limited = max_u32(tp->delivered + in_flight, 1);

	if (bbr->probe_rtt_end_ms) {
		if (bbr->round_start)
			bbr->probe_rtt_round = 1;
		if (bbr->probe_rtt_round)
			bbr_check_probe_rtt_end(sk, bbr);
	} else if (in_flight <= MIN_CWND) {
		bbr->probe_rtt_end_ms = max_u32(bbr_now_ms(tp) + PROBE_RTT_MS, 1);
		bbr->probe_rtt_round = 0;
		bbr->round_end = tp->delivered;
	}
}

CC_INLINE void bbr_check_probe_rtt(struct sock *sk, struct bbr *bbr, const struct rate_sample *rs, bool expired)
{
	if (expired && !bbr->idle_restart && bbr->mode != BBR_PROBE_RTT) {
		/* the mode comes first, as in Linux: the largest window since the last recovery is what is restored */
		bbr->mode = BBR_PROBE_RTT;
		bbr_save_cwnd(tcp_sk(sk), bbr);
		bbr->probe_rtt_end_ms = 0;
	}
	if (bbr->mode == BBR_PROBE_RTT)
		bbr_run_probe_rtt(sk, bbr);
	if (rs->delivered > 0)
		bbr->idle_restart = 0;
}

/* Take what was lost out of the window, and see whether a recovery begins or ends with this ACK. */
CC_INLINE u32 bbr_follow_recovery(const struct sock *sk, struct bbr *bbr, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 lost = rs->losses > 0 ? (u32)rs->losses : 0;
	u32 conserved = tcp_packets_in_flight(tp) + rs->acked_sacked;
	u32 cwnd = tp->snd_cwnd;
	u8 state = tcp_ca_state(sk);
	u8 previous = bbr->ca_state;

	if (lost)
		cwnd = cwnd > lost ? cwnd - lost : 1;
	if (state == TCP_CA_Recovery && previous != TCP_CA_Recovery) {
		bbr->conserve = 1;
		bbr->round_end = tp->delivered;
		cwnd = conserved;
	} else if (state < TCP_CA_Recovery && previous >= TCP_CA_Recovery) {
		bbr->conserve = 0;
		cwnd = max_u32(cwnd, bbr->prior_cwnd);
	}
	bbr->ca_state = state;
	return bbr->conserve ? max_u32(cwnd, conserved) : cwnd;
}

/* An ACK that delivers nothing neither grows the window nor begins or ends a recovery. */
CC_INLINE void bbr_set_cwnd(struct sock *sk, struct bbr *bbr, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tp->snd_cwnd;
	u32 acked = rs->acked_sacked;
	u32 target;

	if (acked)
		cwnd = bbr_follow_recovery(sk, bbr, rs);
	if (acked && !bbr->conserve) {
		target = bbr_bdp(bbr, bbr_bw(bbr), bbr_cwnd_gain(bbr)) + bbr_aggregation_cwnd(bbr);
		target = bbr_with_budget(sk, bbr, target);
		if (bbr->pipe_filled)
			cwnd = min_u32(cwnd + acked, target);
		else if (cwnd < target || tp->delivered < INITIAL_CWND)
			cwnd += acked;
		cwnd = max_u32(cwnd, MIN_CWND);
	}
	if (bbr->mode == BBR_PROBE_RTT)
		cwnd = min_u32(cwnd, MIN_CWND);
	tp->snd_cwnd = min_u32(cwnd, tp->snd_cwnd_clamp);
}

/* ---- Hooks ---- */

CC_HOOK(void, bbr_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = inet_csk_ca(sk);

	/* the rest is 0: the host has cleared the state */
	bbr->min_rtt_us = tcp_min_rtt(tp);
	bbr->min_rtt_ms = bbr_now_ms(tp);
	bbr->round_end = tp->delivered;
	bbr->epoch_us = (u32)tp->tcp_mstamp;
	bbr->pacing_gain = STARTUP_GAIN;
	bbr_begin_lt_interval(tp, bbr);

	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;	/* unused here, and must not limit the next algorithm */
	bbr_pace_initially(sk, bbr);
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

/* Called once when a window reduction would begin: BBR keeps the window to return to, and no threshold. */
CC_HOOK(u32, bbr_ssthresh, struct sock *sk)
{
	bbr_save_cwnd(tcp_sk(sk), inet_csk_ca(sk));
	return tcp_sk(sk)->snd_ssthresh;
}

/* A timeout: a round is over, and a loss was seen that no ACK reports. */
CC_HOOK(void, bbr_set_state, struct sock *sk, u8 new_state)
{
	struct bbr *bbr = inet_csk_ca(sk);

	if (new_state != TCP_CA_Loss)
		return;
	bbr->ca_state = TCP_CA_Loss;
	bbr->full_bw = 0;
	bbr->round_start = 1;
	bbr_sample_lt(sk, bbr, true, false);
}

/* Back from a pause with little to send: at the bottleneck's rate, not at a probing one. */
CC_HOOK(void, bbr_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = inet_csk_ca(sk);

	if (event != CA_EVENT_TX_START || !tp->app_limited)
		return;
	bbr->idle_restart = 1;
	bbr->epoch_us = (u32)tp->tcp_mstamp;
	bbr->epoch_acked = 0;
	if (bbr->mode == BBR_PROBE_BW)
		bbr_pace(sk, bbr, CRUISE_GAIN);
	else if (bbr->mode == BBR_PROBE_RTT)
		bbr_check_probe_rtt_end(sk, bbr);
}

/* Per ACK: first the model, then the mode, then what follows from both. */
CC_HOOK(void, bbr_cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = inet_csk_ca(sk);

	(void)ack, (void)flag;
	if (!bbr->pacing_gain)	/* the ACK of our own SYN comes before init() */
		return;

	bbr_update_bw(sk, bbr, rs);
	bbr_update_extra_acked(tp, bbr, rs);
	if (bbr->mode == BBR_PROBE_BW && bbr_phase_is_over(sk, bbr, rs))
		bbr_next_phase(tp, bbr);
	bbr_check_full_pipe(bbr, rs);
	bbr_check_drain(sk, bbr);
	bbr_check_probe_rtt(sk, bbr, rs, bbr_update_min_rtt(tp, bbr, rs));
	bbr->pacing_gain = (u16)bbr_pacing_gain(bbr);

	bbr_pace(sk, bbr, bbr->pacing_gain);
	bbr_set_cwnd(sk, bbr, rs);
}

/*
 * The recovery was spurious. The window needs no help: the next ACK restores it. But rounds that it slowed down must
 * not count as a full pipe, nor its losses as a policer's.
 */
CC_HOOK(u32, bbr_undo_cwnd, struct sock *sk)
{
	struct bbr *bbr = inet_csk_ca(sk);

	bbr->full_bw = 0;
	bbr->full_bw_rounds = 0;
	bbr_stop_lt(tcp_sk(sk), bbr);
	return tcp_sk(sk)->snd_cwnd;
}

CC_HOOK(u32, bbr_min_tso_segs, struct sock *sk)
{
	return bbr_min_burst(sk);
}

/* The send buffer: a window in flight, as much again that is repaired, and one more to be sent meanwhile. */
CC_HOOK(u32, bbr_sndbuf_expand, struct sock *sk)
{
	(void)sk;
	return 3;
}

CC_INFO(bbr,
	.title = "BBR v1",
	.environment = "wide area, deep or shallow buffers, random loss",
	.reference = "Cardwell et al., ACM Queue 2016; Linux 4.9 to 6.x",
	.category = CC_MODEL_BASED,
	.measures = CC_MEASURES_MODEL);

CC_OPS(bbr,
	.init = bbr_init,
	.ssthresh = bbr_ssthresh,
	.set_state = bbr_set_state,
	.cwnd_event = bbr_cwnd_event,
	.cong_control = bbr_cong_control,
	.undo_cwnd = bbr_undo_cwnd,
	.min_tso_segs = bbr_min_tso_segs,
	.sndbuf_expand = bbr_sndbuf_expand,
	.flags = TCP_CONG_NON_RESTRICTED);
