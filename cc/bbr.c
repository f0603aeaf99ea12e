/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * BBR, version 1: congestion control by a model of the path instead of by its losses.
 *
 * A path looks to a flow like one pipe: it delivers at most BtlBw (bottleneck bandwidth) and takes at least RTprop
 * (round-trip propagation time). A loss-based sender fills the bottleneck's buffer, since only its overflow tells it
 * to stop. BBR measures the two numbers and keeps the pipe full and its buffer empty:
 *
 *   rate balance   send at     pacing_gain x BtlBw             so that the buffer does not grow
 *   full pipe      at most     cwnd_gain x BtlBw x RTprop      (the BDP) in flight, so that it stays small
 *
 *   BtlBw  = max of the delivery rates of the last 10 round trips      delivery rate = segments delivered / interval
 *   RTprop = min of the round-trip times of the last 10 s
 *
 * The two cannot be seen at once: bandwidth shows only when the pipe is full, propagation time only when the buffer is
 * empty. So BBR probes for one and the other in turn:
 *
 *              |
 *              v
 *      +-> STARTUP --+   pacing 2/ln 2: the rate doubles every round, the steepest that the ACKs of a doubling allow
 *      |      |      |
 *      |      v      |   BtlBw grew less than 25 % in each of three rounds: the pipe is full
 *      |    DRAIN ---+   pacing ln 2 / 2: what Startup left in the buffer leaves within a round
 *      |      |      |
 *      |      v      |   in flight <= BDP
 *      |   PROBE_BW -+   pacing 1.25, 0.75, 1, 1, 1, 1, 1, 1, each for RTprop: probe, drain the probe, cruise
 *      |    ^  |     |
 *      |    |  v     |   RTprop not seen again for 10 s
 *      +- PROBE_RTT <+   4 segments in flight for 200 ms and a round: the buffer empties, RTprop shows
 *
 * Losses do not change the model. During the first round of a recovery BBR keeps in flight what is there (packet
 * conservation: one segment out per segment delivered), then returns to the model; after the recovery it goes back to
 * the window from before it.
 *
 * Papers: Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016;
 * draft-cardwell-iccrg-bbr-congestion-control-00 (2017), whose section numbers the functions below cite; delivery
 * rates by draft-cheng-iccrg-delivery-rate-estimation-00, which the host computes.
 *
 * Differences from the draft
 *   - Segments, not bytes, are counted, as the host counts them; the BDP is rounded up to a segment.
 *   - An ACK that the receiver probably delayed may lower RTprop but does not replace an expired one: a single lone
 *     segment's delayed ACK would otherwise set RTprop 40 ms too high.
 *   - When the first RTT arrives only after init(), the initial pacing rate is computed again from it.
 *   - A change from probing to cruising is judged by the segments in flight before the ACK, as in the draft; deployed
 *     versions later estimate those still held back by pacing.
 *   - Not here, since not published as version 1: long-term sampling (policers), ACK aggregation, 1 % pacing margin.
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

/* ---- Constants ---- */

#define STARTUP_GAIN 739u		/* 2/ln 2 = 2.885: the least that doubles the delivery rate each round */
#define DRAIN_GAIN 88u			/* ln 2/2 = 0.347: undoes Startup's excess in the time that made it */
#define CRUISE_GAIN GAIN_UNIT		/* 1: the rate at which the bottleneck delivers */
#define PROBE_BW_CWND_GAIN (2 * GAIN_UNIT)	/* room for ACKs delayed or merged for up to one RTT */

#define CYCLE_PHASES 8u			/* of ProbeBW; a power of two: its index is masked */
#define CYCLE_START_CHOICES 7u		/* any phase but the second, 0.75: at the start there is nothing to drain */

#define BTLBW_ROUNDS 10u		/* rounds: outlives one gain cycle of eight, forgets a slower path soon after */
#define RTPROP_WINDOW_US (10u * US_PER_SEC)	/* us: long against a transfer's pauses, in which RTprop shows by itself */
#define PROBE_RTT_US 200000u		/* us: overlaps with other flows' probes; 2 % of the time at one per 10 s */

#define MIN_CWND 4u			/* segments: keeps a delayed-ACK receiver (every second segment) supplied */
#define INITIAL_CWND 10u		/* segments (RFC 6928): the window while RTprop is unknown */
#define NOMINAL_RTT_US 1000u		/* us: assumed for the first pacing rate while there is no RTT */

#define FULL_BW_GROWTH (GAIN_UNIT * 5 / 4)	/* a round that does not grow BtlBw by 25 % ... */
#define FULL_BW_ROUNDS 3u		/* ... three times: once is the receive window's, twice is chance */

#define SLOW_PACING_RATE (1200000u / 8)	/* bytes/s: under 1.2 Mbit/s a burst of two segments would be 20 ms long */
#define MAX_BURST 65536u		/* bytes */

enum bbr_mode {
	BBR_STARTUP = 0,
	BBR_DRAIN = 1,
	BBR_PROBE_BW = 2,
	BBR_PROBE_RTT = 3,
};

static const u16 bbr_cycle_gains[CYCLE_PHASES] = {
	GAIN_UNIT * 5 / 4,	/* probe: 25 % more in flight, which a pipe with room delivers faster */
	GAIN_UNIT * 3 / 4,	/* drain what the probe put into the buffer */
	GAIN_UNIT, GAIN_UNIT, GAIN_UNIT, GAIN_UNIT, GAIN_UNIT, GAIN_UNIT,
};

/* ---- Private state ---- */

struct bbr {
	u64 cycle_us;		/* when the phase of ProbeBW began, tcp_mstamp */
	u64 rtprop_seen_us;	/* when RTprop was measured, tcp_mstamp */
	u64 probe_rtt_end_us;	/* when ProbeRTT may end; 0 until in flight has fallen to MIN_CWND */
	struct minmax btlbw;	/* BW_SCALE, over BTLBW_ROUNDS */
	u32 rtprop_us;		/* ~0: none yet */
	u32 rounds;		/* round trips, counted in delivered segments */
	u32 round_end;		/* a segment sent when tp->delivered had reached this begins the next round */
	u32 saved_cwnd;		/* segments: from before a recovery or ProbeRTT */
	u32 full_bw;		/* BW_SCALE: BtlBw when it last grew by FULL_BW_GROWTH */
	u16 pacing_gain;	/* GAIN_SCALE; 0: init() has not run */
	u16 cwnd_gain;		/* GAIN_SCALE */
	u8 mode;		/* enum bbr_mode */
	u8 cycle_phase;		/* index of bbr_cycle_gains */
	u8 full_bw_rounds;	/* rounds without growth */
	u8 pipe_filled;		/* Startup has found the bandwidth */
	u8 round_start;		/* this ACK begins a round */
	u8 idle_restart;	/* sending began again after an application-limited pause */
	u8 probe_rtt_round;	/* a round has passed in ProbeRTT at MIN_CWND */
	u8 conserve;		/* packet conservation: first round of a recovery */
	u8 ca_state;		/* congestion state at the last ACK */
	u8 rtt_seen;		/* the first pacing rate came from a measured RTT */
	u8 pad[6];
};
CC_ASSERT_STATE_FITS(struct bbr);

/* ---- Equations ---- */

/*
 * rate = delivered / interval
 *
 * delivered < 2^31, so the scaled numerator is below 2^55.
 */
CC_INLINE u32 bbr_delivery_rate(u32 delivered, u64 interval_us)
{
	u64 scaled = (u64)delivered << BW_SCALE;

	return interval_us ? (u32)min_u64(scaled / interval_us, BW_MAX) : 0;
}

/*
 * BDP x gain = BtlBw x RTprop x gain, segments, rounded up
 *
 * BtlBw x RTprop < 2^32 x 2^32; held to 2^53 (2^29 segments, far beyond windows of 10^6), so that x gain (2^10) stays
 * within 2^63.
 */
CC_INLINE u32 bbr_gained_bdp(u32 bw, u32 rtprop_us, u32 gain)
{
	u64 bdp = min_u64((u64)bw * rtprop_us, 1ull << 53);

	return (u32)(((bdp * gain >> GAIN_SCALE) + BW_UNIT - 1) >> BW_SCALE);
}

/*
 * bytes/s = BtlBw x mss x gain x 10^6
 *
 * BtlBw x mss is bytes/us, scaled by 2^24, and held to 2^42 (2^18 bytes/us, 2 Tbit/s); x gain / 2^8 < 2^43.6,
 * x 10^6 < 2^63.6.
 */
CC_INLINE u64 bbr_gained_rate(u32 bw, u32 mss, u32 gain)
{
	u64 scaled = min_u64((u64)bw * mss, 1ull << 42);

	return (scaled * gain >> GAIN_SCALE) * US_PER_SEC >> BW_SCALE;
}

CC_INLINE u32 bbr_btlbw(const struct bbr *bbr)
{
	return minmax_get(&bbr->btlbw);
}

/* Segments of the smallest burst that the host may pace (4.2.2). */
CC_INLINE u32 bbr_min_burst(const struct sock *sk)
{
	return sk->sk_pacing_rate < SLOW_PACING_RATE ? 1 : 2;
}

/* send_quantum, segments: what one burst of the host holds, about 1 ms at the pacing rate (4.2.2). */
CC_INLINE u32 bbr_send_quantum(const struct sock *sk)
{
	u64 bytes = min_u64(sk->sk_pacing_rate >> (sk->sk_pacing_shift & 63), MAX_BURST);
	u32 mss = tcp_sk(sk)->mss_cache;

	bytes = min_u64(bytes, sk->sk_gso_max_size);
	return max_u32(mss ? (u32)bytes / mss : 0, bbr_min_burst(sk));
}

/*
 * inflight(gain) = gain x BDP + 3 x send_quantum                                                    (4.2.3.2)
 *
 * Three bursts: one being built by the sender, one on the wire, one being acknowledged.
 */
CC_INLINE u32 bbr_inflight(const struct sock *sk, const struct bbr *bbr, u32 gain)
{
	if (bbr->rtprop_us == ~0u)
		return INITIAL_CWND;
	return bbr_gained_bdp(bbr_btlbw(bbr), bbr->rtprop_us, gain) + 3 * bbr_send_quantum(sk);
}

/* ---- Pacing (4.2.1) ---- */

/* Until the pipe is full the rate only rises: early, app-limited samples would hold it below what they can show. */
CC_INLINE void bbr_pace(struct sock *sk, const struct bbr *bbr, u32 gain)
{
	u64 rate = bbr_gained_rate(bbr_btlbw(bbr), tcp_sk(sk)->mss_cache, gain);

	rate = min_u64(rate, sk->sk_max_pacing_rate);
	if (bbr->pipe_filled || rate > sk->sk_pacing_rate)
		sk->sk_pacing_rate = max_u64(rate, 1);	/* zero would be never */
}

/* rate = 2/ln 2 x cwnd / RTT, of the smoothed RTT, or 1 ms while there is none. */
CC_INLINE void bbr_pace_initially(struct sock *sk, struct bbr *bbr)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt_us = tp->srtt_us >> 3;
	u64 rate;

	if (tp->srtt_us)
		bbr->rtt_seen = 1;
	else
		rtt_us = NOMINAL_RTT_US;
	rate = bbr_gained_rate(bbr_delivery_rate(tp->snd_cwnd, max_u32(rtt_us, 1)), tp->mss_cache, STARTUP_GAIN);
	sk->sk_pacing_rate = max_u64(min_u64(rate, sk->sk_max_pacing_rate), 1);	/* zero would be never */
}

/* ---- The window around recoveries and ProbeRTT (4.2.3.4) ---- */

CC_INLINE void bbr_save_cwnd(const struct tcp_sock *tp, struct bbr *bbr)
{
	if (bbr->ca_state < TCP_CA_Recovery && bbr->mode != BBR_PROBE_RTT)
		bbr->saved_cwnd = tp->snd_cwnd;
	else	/* the window is already a reduced one */
		bbr->saved_cwnd = max_u32(bbr->saved_cwnd, tp->snd_cwnd);
}

CC_INLINE void bbr_restore_cwnd(struct tcp_sock *tp, const struct bbr *bbr)
{
	tp->snd_cwnd = max_u32(tp->snd_cwnd, bbr->saved_cwnd);
}

/* ---- Modes ---- */

CC_INLINE void bbr_enter_startup(struct bbr *bbr)
{
	bbr->mode = BBR_STARTUP;
	bbr->pacing_gain = STARTUP_GAIN;
	bbr->cwnd_gain = STARTUP_GAIN;
}

CC_INLINE void bbr_enter_phase(struct bbr *bbr, u32 phase, u64 now_us)
{
	phase &= CYCLE_PHASES - 1;
	bbr->cycle_phase = (u8)phase;
	bbr->cycle_us = now_us;
	bbr->pacing_gain = bbr_cycle_gains[phase];
}

/* Flows that share a bottleneck should not probe in step: each starts at a phase drawn at random (4.3.4.3). */
CC_INLINE void bbr_enter_probe_bw(struct sock *sk, struct bbr *bbr, u64 now_us)
{
	bbr->mode = BBR_PROBE_BW;
	bbr->cwnd_gain = PROBE_BW_CWND_GAIN;
	bbr_enter_phase(bbr, CYCLE_PHASES - cc_random_u32(sk) % CYCLE_START_CHOICES, now_us);
}

/* ---- The model: BtlBw, rounds, RTprop (4.1) ---- */

/* A round ends when a segment is delivered that was sent after the round began (4.1.1.3). */
CC_INLINE void bbr_update_round(const struct tcp_sock *tp, struct bbr *bbr, const struct rate_sample *rs)
{
	bbr->round_start = 0;
	if (rs->delivered < 0 || rs->interval_us <= 0)
		return;
	if (!before(rs->prior_delivered, bbr->round_end)) {
		bbr->round_end = tp->delivered;
		bbr->rounds++;
		bbr->round_start = 1;
		bbr->conserve = 0;
	}
}

/* An application-limited sample says what was offered, not what the path can: it counts only if it is higher (4.1.1.5). */
CC_INLINE void bbr_update_btlbw(struct bbr *bbr, const struct rate_sample *rs)
{
	u32 rate;

	if (rs->delivered < 0 || rs->interval_us <= 0)
		return;
	rate = bbr_delivery_rate((u32)rs->delivered, (u64)rs->interval_us);
	if (rate >= bbr_btlbw(bbr) || !rs->is_app_limited)
		minmax_running_max(&bbr->btlbw, BTLBW_ROUNDS, bbr->rounds, rate);
}

/* Takes the new minimum, or any RTT once the old minimum is too old; says whether it was (4.1.2.3). */
CC_INLINE bool bbr_update_rtprop(struct bbr *bbr, const struct rate_sample *rs, u64 now_us)
{
	bool expired = now_us > bbr->rtprop_seen_us + RTPROP_WINDOW_US;

	/* an RTT of 2^32 us would be 71 minutes: TCP gives up before */
	if (rs->rtt_us >= 0 && ((u64)rs->rtt_us <= bbr->rtprop_us || (expired && !rs->is_ack_delayed))) {
		bbr->rtprop_us = (u32)rs->rtt_us;
		bbr->rtprop_seen_us = now_us;
	}
	return expired;
}

/* ---- The state machine (4.3) ---- */

/*
 * The pipe is full when BtlBw < 1.25 x the BtlBw of the last growth, in three rounds                  (4.3.2.2)
 *
 * BW_SCALE values are below 2^32, x 320 below 2^41.
 */
CC_INLINE void bbr_check_full_pipe(struct bbr *bbr, const struct rate_sample *rs)
{
	u32 bw = bbr_btlbw(bbr);

	if (bbr->pipe_filled || !bbr->round_start || rs->is_app_limited)
		return;
	if ((u64)bw << GAIN_SCALE >= (u64)bbr->full_bw * FULL_BW_GROWTH) {
		bbr->full_bw = bw;
		bbr->full_bw_rounds = 0;
		return;
	}
	bbr->full_bw_rounds++;
	bbr->pipe_filled = bbr->full_bw_rounds >= FULL_BW_ROUNDS;
}

CC_INLINE void bbr_check_drain(struct sock *sk, struct bbr *bbr, u64 now_us)
{
	if (bbr->mode == BBR_STARTUP && bbr->pipe_filled) {
		bbr->mode = BBR_DRAIN;
		bbr->pacing_gain = DRAIN_GAIN;
		bbr->cwnd_gain = STARTUP_GAIN;
	}
	if (bbr->mode == BBR_DRAIN && tcp_packets_in_flight(tcp_sk(sk)) <= bbr_inflight(sk, bbr, GAIN_UNIT))
		bbr_enter_probe_bw(sk, bbr, now_us);
}

/* Is the phase of ProbeBW over (4.3.4.3)? */
CC_INLINE bool bbr_phase_is_over(const struct sock *sk, const struct bbr *bbr, const struct rate_sample *rs, u64 now_us)
{
	bool lasted = now_us - bbr->cycle_us > bbr->rtprop_us;

	if (bbr->pacing_gain == CRUISE_GAIN)
		return lasted;
	if (bbr->pacing_gain > CRUISE_GAIN)	/* until the probe is really in flight, or does not fit */
		return lasted && (rs->losses > 0 || rs->prior_in_flight >= bbr_inflight(sk, bbr, bbr->pacing_gain));
	return lasted || rs->prior_in_flight <= bbr_inflight(sk, bbr, GAIN_UNIT);	/* drained early */
}

CC_INLINE void bbr_check_phase(struct sock *sk, struct bbr *bbr, const struct rate_sample *rs, u64 now_us)
{
	if (bbr->mode == BBR_PROBE_BW && bbr_phase_is_over(sk, bbr, rs, now_us))
		bbr_enter_phase(bbr, bbr->cycle_phase + 1u, now_us);
}

/* In ProbeRTT: wait until in flight is small, then 200 ms and a round (4.3.5). */
CC_INLINE void bbr_run_probe_rtt(struct sock *sk, struct bbr *bbr, u64 now_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 in_flight = tcp_packets_in_flight(tp);

	/* the small window, not the path, limits what is delivered now */
	tp->app_limited = max_u32(tp->delivered + in_flight, 1);

	if (!bbr->probe_rtt_end_us) {
		if (in_flight > MIN_CWND)
			return;
		bbr->probe_rtt_end_us = now_us + PROBE_RTT_US;
		bbr->probe_rtt_round = 0;
		bbr->round_end = tp->delivered;
		return;
	}
	if (bbr->round_start)
		bbr->probe_rtt_round = 1;
	if (!bbr->probe_rtt_round || now_us <= bbr->probe_rtt_end_us)
		return;
	bbr->rtprop_seen_us = now_us;
	bbr_restore_cwnd(tp, bbr);
	if (bbr->pipe_filled)
		bbr_enter_probe_bw(sk, bbr, now_us);
	else
		bbr_enter_startup(bbr);
}

CC_INLINE void bbr_check_probe_rtt(struct sock *sk, struct bbr *bbr, bool rtprop_expired, u64 now_us)
{
	/* a pause has emptied the buffer by itself: RTprop shows without a probe */
	if (rtprop_expired && !bbr->idle_restart && bbr->mode != BBR_PROBE_RTT) {
		bbr_save_cwnd(tcp_sk(sk), bbr);
		bbr->mode = BBR_PROBE_RTT;
		bbr->pacing_gain = CRUISE_GAIN;
		bbr->cwnd_gain = GAIN_UNIT;
		bbr->probe_rtt_end_us = 0;
	}
	if (bbr->mode == BBR_PROBE_RTT)
		bbr_run_probe_rtt(sk, bbr, now_us);
	bbr->idle_restart = 0;
}

/* ---- The window (4.2.3) ---- */

/* Take what was lost out of the window, and see whether a recovery begins or ends with this ACK. */
CC_INLINE void bbr_follow_recovery(struct sock *sk, struct bbr *bbr, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 lost = rs->losses > 0 ? (u32)rs->losses : 0;
	u8 state = tcp_ca_state(sk);
	u8 previous = bbr->ca_state;

	if (lost)
		tp->snd_cwnd = tp->snd_cwnd > lost ? tp->snd_cwnd - lost : 1;

	bbr->ca_state = state;
	if (state == TCP_CA_Recovery && previous != TCP_CA_Recovery) {
		bbr->conserve = 1;
		bbr->round_end = tp->delivered;
		tp->snd_cwnd = tcp_packets_in_flight(tp) + max_u32(rs->acked_sacked, 1);
	} else if (state < TCP_CA_Recovery && previous >= TCP_CA_Recovery) {
		bbr->conserve = 0;
		bbr_restore_cwnd(tp, bbr);
	}
	if (bbr->conserve)
		tp->snd_cwnd = max_u32(tp->snd_cwnd, tcp_packets_in_flight(tp) + rs->acked_sacked);
}

CC_INLINE void bbr_set_cwnd(struct sock *sk, struct bbr *bbr, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 target = bbr_inflight(sk, bbr, bbr->cwnd_gain);
	u32 acked = rs->acked_sacked;
	u32 cwnd;

	if (acked)	/* an ACK that delivers nothing neither grows the window nor ends a recovery */
		bbr_follow_recovery(sk, bbr, rs);
	cwnd = tp->snd_cwnd;
	if (acked && !bbr->conserve) {
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

	bbr->cycle_us = 0;
	bbr->rtprop_seen_us = tp->tcp_mstamp;
	bbr->probe_rtt_end_us = 0;
	minmax_reset(&bbr->btlbw, 0, 0);
	bbr->rtprop_us = tcp_min_rtt(tp);
	bbr->rounds = 0;
	bbr->round_end = tp->delivered;
	bbr->saved_cwnd = tp->snd_cwnd;
	bbr->full_bw = 0;
	bbr->cycle_phase = 0;
	bbr->full_bw_rounds = 0;
	bbr->pipe_filled = 0;
	bbr->round_start = 0;
	bbr->idle_restart = 0;
	bbr->probe_rtt_round = 0;
	bbr->conserve = 0;
	bbr->ca_state = TCP_CA_Open;	/* on a socket in Recovery the next ACK begins a round of conservation */
	bbr->rtt_seen = 0;
	bbr_enter_startup(bbr);

	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;	/* of no use here, and not to limit who comes next */
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

CC_HOOK(void, bbr_set_state, struct sock *sk, u8 new_state)
{
	struct bbr *bbr = inet_csk_ca(sk);

	if (new_state == TCP_CA_Loss) {
		/* A timeout ends the round, conservation with it; the host has taken the window down to in flight + 1. */
		bbr->ca_state = TCP_CA_Loss;
		bbr->conserve = 0;
		bbr->round_end = tcp_sk(sk)->delivered;
	}
}

/* Back from a pause with little to send: at the bottleneck's rate, not at a probing one (4.3.4.4). */
CC_HOOK(void, bbr_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct bbr *bbr = inet_csk_ca(sk);

	if (event != CA_EVENT_TX_START || !tcp_sk(sk)->app_limited)
		return;
	bbr->idle_restart = 1;
	if (bbr->mode == BBR_PROBE_BW)
		bbr_pace(sk, bbr, CRUISE_GAIN);
}

/* Per ACK: first the model, then the mode, then what follows from both (3.5.1). */
CC_HOOK(void, bbr_cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	struct bbr *bbr = inet_csk_ca(sk);
	u64 now_us = tcp_sk(sk)->tcp_mstamp;
	bool rtprop_expired;

	(void)ack;
	(void)flag;
	if (!bbr->pacing_gain)	/* the ACK of our own SYN comes before init() */
		return;

	bbr_update_round(tcp_sk(sk), bbr, rs);
	bbr_update_btlbw(bbr, rs);
	bbr_check_phase(sk, bbr, rs, now_us);
	bbr_check_full_pipe(bbr, rs);
	bbr_check_drain(sk, bbr, now_us);
	rtprop_expired = bbr_update_rtprop(bbr, rs, now_us);
	bbr_check_probe_rtt(sk, bbr, rtprop_expired, now_us);

	if (!bbr->rtt_seen && tcp_sk(sk)->srtt_us)
		bbr_pace_initially(sk, bbr);
	bbr_pace(sk, bbr, bbr->pacing_gain);
	bbr_set_cwnd(sk, bbr, rs);
}

/*
 * The recovery was spurious. The window needs no help: the next ACK restores it. But rounds that it slowed down must
 * not count as a full pipe.
 */
CC_HOOK(u32, bbr_undo_cwnd, struct sock *sk)
{
	struct bbr *bbr = inet_csk_ca(sk);

	bbr->full_bw = 0;
	bbr->full_bw_rounds = 0;
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
	.reference = "Cardwell et al., ACM Queue 2016; draft-cardwell-iccrg-bbr-congestion-control-00",
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
