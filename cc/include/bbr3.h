/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* BBR, version 3: constants, state and equations of bbr3.c, which explains them. */
#ifndef OPENTCP_BBR3_H
#define OPENTCP_BBR3_H

#include "tcp.h"

/* ---- Fixed point ---- */

/* Bandwidth is in segments per microsecond, scaled by 2^24 (bbr.c has the ranges); gains are scaled by 2^8, and below 4. */
#define BW_SCALE 24
#define BW_UNIT (1u << BW_SCALE)
#define BW_MAX 0xffffffffu
#define GAIN_SCALE 8
#define GAIN_UNIT (1u << GAIN_SCALE)

#define UNBOUNDED 0xffffffffu	/* of bw_lo, inflight_lo and inflight_hi: infinity */
#define US_PER_SEC 1000000u
#define US_PER_MS 1000u

/* ---- Constants ---- */

#define STARTUP_GAIN 709u		/* 2.77: 4 ln 2, the least that doubles the delivery rate each round */
#define DRAIN_GAIN 128u			/* 0.5 */
#define UP_GAIN 320u			/* 1.25 */
#define DOWN_GAIN 230u			/* 0.9 */
#define CWND_GAIN 512u			/* 2: room for ACKs delayed or merged for up to one RTT */
#define UP_CWND_GAIN 576u		/* 2.25 */
#define PROBE_RTT_CWND_GAIN 128u	/* 0.5 */
#define PACED_US_PER_SEC (US_PER_SEC / 100 * 99)	/* the pacing margin of 1 % */

#define MIN_RTT_MS 10000u		/* ms: then PROBE_RTT */
#define PROBE_RTT_MS 200u		/* ms */
#define MIN_CWND 4u			/* segments */
#define INITIAL_CWND 10u		/* segments: the BDP while min_rtt is unknown */
#define NOMINAL_RTT_US 1000u		/* us: for the first pacing rate while there is no RTT */

#define FULL_BW_ROUNDS 3u		/* rounds without growth by 25 % */
#define LOSS_SHARE 50u			/* 2 %: one in 50 */
#define STARTUP_LOSSES 6u		/* in a round */
#define DRAIN_ROUNDS 3u

#define WAIT_MS 2000u			/* ms between probes at least, */
#define WAIT_STEP_MS 4u			/* and up to 250 steps more, drawn at random */
#define WAIT_STEPS 251u
#define RENO_ROUNDS_MAX 63u		/* 25 Mbit/s of 30 ms have a BDP of 62 segments */
#define UP_ROUNDS_MAX 30u		/* inflight_hi grows by at most 2^29 a round */

#define MAX_BURST_BYTES 65215u		/* a TSO packet: 64 KiB less room for headers */
#define MIN_BURST 2u			/* segments */
#define MAX_BURST 127u

#define EXTRA_ACKED_ROUNDS 5u		/* rounds of each of extra_acked's two windows */
#define EXTRA_ACKED_MAX_US 100000u	/* us: longer gaps are not compensated */
#define ACK_EPOCH_MAX 0xffffu		/* segments */

enum bbr3_mode {
	BBR3_STARTUP = 0,
	BBR3_DRAIN = 1,
	BBR3_DOWN = 2,
	BBR3_CRUISE = 3,
	BBR3_REFILL = 4,
	BBR3_UP = 5,
	BBR3_PROBE_RTT = 6,
};

/* Which part of a probe the ACKs that arrive now report on. */
enum bbr3_acks {
	BBR3_ACKS_INIT = 0,	/* none */
	BBR3_ACKS_REFILLING = 1,
	BBR3_ACKS_STARTING = 2,	/* UP has begun; its ACKs come after a round */
	BBR3_ACKS_FEEDBACK = 3,
	BBR3_ACKS_STOPPING = 4,	/* UP is over; its last ACKs */
};

#define ROUND_START 0x1u	/* this ACK begins a round */
#define LOSS_ROUND_START 0x2u	/* and a round of loss detection */
#define PIPE_FILLED 0x4u	/* full_bw_reached: STARTUP has found the bandwidth */
#define FULL_BW_NOW 0x8u	/* bw has stopped growing, in STARTUP or UP */
#define LOSS_IN_ROUND 0x10u
#define PROBE_SAMPLE 0x20u	/* losses are those of a probe that was not reacted to yet */
#define TOO_HIGH 0x40u		/* the last probe lost too much */
#define PRECAUTIONARY 0x80u	/* the last probe ended where inflight_hi was touched */
#define IDLE_RESTART 0x100u
#define PROBE_RTT_ROUND 0x200u	/* a round has passed in PROBE_RTT with little in flight */
#define RTT_SEEN 0x400u		/* the first pacing rate came from a measured RTT */
#define IN_RECOVERY 0x800u	/* at the last ACK */
#define UNDO_STARTUP 0x1000u	/* losses ended STARTUP, */
#define UNDO_UP 0x2000u		/* or UP */

/* ---- Private state ---- */

struct bbr3 {
	u32 bw_hi[2];		/* BW_SCALE: the last cycle's maximum, and this one's */
	u32 bw_lo;		/* BW_SCALE */
	u32 bw_latest;		/* BW_SCALE: maximum of this round */
	u32 full_bw;		/* BW_SCALE: bw when it last grew by 25 % */
	u32 inflight_hi;	/* segments */
	u32 inflight_lo;	/* segments */
	u32 inflight_latest;	/* segments: the most delivered in a sample of this round */
	u32 min_rtt_us;		/* ~0: none yet; 0: init() has not run */
	u32 min_rtt_ms;		/* when it was measured, tcp_mstamp */
	u32 probe_rtt_end_ms;	/* when PROBE_RTT may end; 0 until little is in flight */
	u32 cycle_ms;		/* when DOWN began, tcp_mstamp */
	u32 round_begin;	/* tp->delivered, */
	u32 round_lost;		/* and tp->lost when the round began; */
	u32 before_begin;	/* and when the one before did */
	u32 before_lost;
	u32 loss_round_begin;	/* tp->delivered when the round of loss detection began */
	u32 prior_cwnd;		/* segments: from before a recovery or PROBE_RTT */
	u32 undo_bw_lo;		/* the bounds from before a loss, */
	u32 undo_inflight_lo;	/* in case that there was none */
	u32 undo_inflight_hi;
	u32 up_acked;		/* UP: segments acknowledged towards a higher inflight_hi; PROBE_RTT: its window */
	u32 epoch_us;		/* when the ACK epoch began, tcp_mstamp */
	u16 epoch_acked;	/* segments acknowledged in it */
	u16 extra_acked;	/* segments: maximum of this window, */
	u16 extra_acked_before;	/* and of the one before */
	u16 flags;
	u8 mode_acks;		/* enum bbr3_mode, enum bbr3_acks << 4 */
	u8 counts;		/* full_bw rounds, DRAIN's rounds << 2, rounds of extra_acked's window << 5 */
	u8 since_probe;		/* rounds since the last probe */
	u8 wait_and_up;		/* WAIT_STEPs, but in UP its rounds, and in STARTUP the losses of this round */
};
CC_ASSERT_STATE_FITS(struct bbr3);

CC_INLINE bool bbr3_is(const struct bbr3 *bbr, u32 flag)
{
	return bbr->flags & flag;
}

CC_INLINE void bbr3_set(struct bbr3 *bbr, u32 flag, bool on)
{
	bbr->flags = (u16)(on ? bbr->flags | flag : bbr->flags & ~flag);
}

CC_INLINE u32 bbr3_mode(const struct bbr3 *bbr)
{
	return bbr->mode_acks & 0xf;
}

CC_INLINE void bbr3_set_mode(struct bbr3 *bbr, u32 mode)
{
	bbr->mode_acks = (u8)((bbr->mode_acks & 0xf0) | mode);
}

CC_INLINE u32 bbr3_acks(const struct bbr3 *bbr)
{
	return bbr->mode_acks >> 4;
}

CC_INLINE void bbr3_set_acks(struct bbr3 *bbr, u32 acks)
{
	bbr->mode_acks = (u8)((bbr->mode_acks & 0xf) | acks << 4);
}

CC_INLINE bool bbr3_in_probe_bw(const struct bbr3 *bbr)
{
	return bbr3_mode(bbr) >= BBR3_DOWN && bbr3_mode(bbr) <= BBR3_UP;
}

CC_INLINE bool bbr3_is_probing(const struct bbr3 *bbr)
{
	u32 mode = bbr3_mode(bbr);

	return mode == BBR3_STARTUP || mode == BBR3_REFILL || mode == BBR3_UP;
}

/* ---- Equations (their ranges: bbr.c) ---- */

/* bw = segments / us */
CC_INLINE u32 bbr3_bandwidth(u32 segments, u64 us)
{
	u64 scaled = (u64)segments << BW_SCALE;

	return us ? (u32)min_u64(scaled / us, BW_MAX) : 0;
}

/* segments = bw x us */
CC_INLINE u32 bbr3_segments(u32 bw, u32 us)
{
	return (u32)((u64)bw * us >> BW_SCALE);
}

/* bytes/s = bw x mss x gain x 990000 */
CC_INLINE u64 bbr3_paced_rate(u32 bw, u32 mss, u32 gain)
{
	u64 scaled = min_u64((u64)bw * mss, 1ull << 42);

	return (scaled * gain >> GAIN_SCALE) * PACED_US_PER_SEC >> BW_SCALE;
}

/* gain x bw x min_rtt, segments, rounded up so that it does not shrink by being used */
CC_INLINE u32 bbr3_bdp(const struct bbr3 *bbr, u32 bw, u32 gain)
{
	u64 bdp = min_u64((u64)bw * bbr->min_rtt_us, 1ull << 53);

	if (bbr->min_rtt_us == ~0u)
		return INITIAL_CWND;
	return (u32)(((bdp * gain >> GAIN_SCALE) + BW_UNIT - 1) >> BW_SCALE);
}

CC_INLINE u32 bbr3_max_bw(const struct bbr3 *bbr)
{
	return max_u32(bbr->bw_hi[0], bbr->bw_hi[1]);
}

CC_INLINE u32 bbr3_bw(const struct bbr3 *bbr)
{
	return min_u32(bbr3_max_bw(bbr), bbr->bw_lo);
}

/* 0.7 x; below 2^32 where value is finite */
CC_INLINE u32 bbr3_beta(u32 value)
{
	return (u32)((u64)value * 7 / 10);
}

CC_INLINE u32 bbr3_pacing_gain(const struct bbr3 *bbr)
{
	switch (bbr3_mode(bbr)) {
	case BBR3_STARTUP: return STARTUP_GAIN;
	case BBR3_DRAIN: return DRAIN_GAIN;
	case BBR3_DOWN: return DOWN_GAIN;
	case BBR3_UP: return UP_GAIN;
	default: return GAIN_UNIT;
	}
}

CC_INLINE u32 bbr3_cwnd_gain(const struct bbr3 *bbr)
{
	switch (bbr3_mode(bbr)) {
	case BBR3_UP: return UP_CWND_GAIN;
	case BBR3_PROBE_RTT: return PROBE_RTT_CWND_GAIN;
	default: return CWND_GAIN;
	}
}

CC_INLINE u32 bbr3_now_ms(const struct tcp_sock *tp)
{
	return (u32)(tp->tcp_mstamp / US_PER_MS);
}

/* Segments of a burst: what 1 ms of the pacing rate holds. */
CC_INLINE u32 bbr3_burst(const struct sock *sk)
{
	u64 bytes = min_u64(sk->sk_pacing_rate / 1000, MAX_BURST_BYTES);
	u32 mss = tcp_sk(sk)->mss_cache;

	return min_u32(max_u32(mss ? (u32)bytes / mss : 0, MIN_BURST), MAX_BURST);
}

CC_INLINE u32 bbr3_with_budget(const struct sock *sk, const struct bbr3 *bbr, u32 segments)
{
	segments = max_u32(max_u32(segments, 3 * bbr3_burst(sk)), MIN_CWND);
	return bbr3_mode(bbr) == BBR3_UP ? segments + 2 : segments;
}

CC_INLINE u32 bbr3_inflight(const struct sock *sk, const struct bbr3 *bbr, u32 bw)
{
	return bbr3_with_budget(sk, bbr, bbr3_bdp(bbr, bw, GAIN_UNIT));
}

/* 0.85 inflight_hi: leaves room in the buffer for others */
CC_INLINE u32 bbr3_with_headroom(const struct bbr3 *bbr)
{
	u32 headroom = max_u32((u32)((u64)bbr->inflight_hi * 15 / 100), 1);

	if (bbr->inflight_hi == UNBOUNDED)
		return UNBOUNDED;
	return bbr->inflight_hi > headroom + MIN_CWND ? bbr->inflight_hi - headroom : MIN_CWND;
}

/* What is wanted in flight: the BDP, unless losses have cut the window. */
CC_INLINE u32 bbr3_target(const struct tcp_sock *tp, const struct bbr3 *bbr)
{
	return min_u32(bbr3_bdp(bbr, bbr3_bw(bbr), GAIN_UNIT), tp->snd_cwnd);
}

/* ---- Samples ---- */

CC_INLINE bool bbr3_is_sample(const struct rate_sample *rs)
{
	return rs->delivered >= 0 && rs->interval_us > 0;
}

CC_INLINE u32 bbr3_sample_bw(const struct rate_sample *rs)
{
	return bbr3_bandwidth((u32)rs->delivered, (u64)rs->interval_us);
}

/* Lost since the sample's segment was sent, of which tp->delivered then is known; see above. */
CC_INLINE u32 bbr3_lost_since(const struct tcp_sock *tp, const struct bbr3 *bbr, const struct rate_sample *rs)
{
	u32 now = tp->lost - bbr->round_lost;
	u32 earlier = bbr->round_lost - bbr->before_lost;
	u32 length = bbr->round_begin - bbr->before_begin;
	u32 part = bbr->round_begin - rs->prior_delivered;

	if (!before(rs->prior_delivered, bbr->round_begin) || !length)
		return now;
	return now + (u32)((u64)earlier * min_u32(part, length) / length);
}

#endif
