/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * BBR, version 3: the model of bbr.c, bounded by what losses say.
 *
 * BBR sends at the bottleneck's bandwidth and keeps a product of it and the propagation time in flight. Version 1 learns both
 * from what arrives, and nothing from what does not: in a shallow buffer it keeps losing, and its neighbours with it. Version
 * 3 has two bounds more for each of rate and volume, of two time scales:
 *
 *   long term    inflight_hi   the most in flight that lost no more than 2 % when it was probed; raised by probing alone
 *                bw_hi         max of the delivery rates of two cycles
 *   short term   inflight_lo   what was delivered in the last round that had a loss, at least 0.7 of what it was
 *                bw_lo         likewise; both are forgotten before each probe
 *
 *   bw          = min(bw_hi, bw_lo)                               BDP = bw x min_rtt
 *   pacing rate = pacing_gain x bw x 0.99
 *   cwnd        = cwnd_gain x BDP + extra_acked, at least 3 bursts; at most inflight_hi (0.85 of it while cruising)
 *                 and inflight_lo
 *
 *              |
 *              v
 *      +--> STARTUP --------+   pacing 2.77, cwnd 2 BDP: until bw has not grown by 25 % in three rounds, or six losses in a
 *      |       |            |   round of a recovery are more than 2 %
 *      |     DRAIN ---------+   pacing 0.5: until in flight <= BDP, three rounds at most
 *      |       v            |
 *      |  PROBE_BW:         |
 *      |  +-> DOWN ---------+   pacing 0.9: until in flight <= BDP and <= 0.85 inflight_hi
 *      |  |   CRUISE -------+   pacing 1: for 2 to 3 s, or as many rounds as the BDP has segments, at most 63
 *      |  |   REFILL -------+   pacing 1, without the short-term bounds, a round: a full pipe to start from
 *      |  +-- UP -----------+   pacing 1.25, cwnd 2.25 BDP: until bw has not grown in three rounds, or 2 % are lost;
 *      |                    |   raises inflight_hi by 1, 2, 4, ... a round where it limits
 *      +-- PROBE_RTT <------+   min_rtt is 10 s old: half a BDP in flight for 200 ms and a round
 *
 * The time between probes is what gives Reno and CUBIC room: with a small BDP they recover from a loss in that many rounds.
 * After a probe that lost too much the next one only touches inflight_hi, and is repeated at once if that lost nothing.
 *
 * Where to read: draft-ietf-ccwg-bbr. Its names inflight_longterm, inflight_shortterm and bw_shortterm are inflight_hi,
 * inflight_lo and bw_lo here. It specifies no response to ECN but that a mark is congestion: here a reduction that the host
 * begins for a mark counts as a round with a loss, and ends a probe. The algorithm does not ask for ECN.
 *
 * What the host does not tell, and what stands for it
 *   - In flight when a segment was sent: what was delivered and lost since, which is the same in a network that keeps the
 *     order.
 *   - Lost since a segment was sent: what was lost in this round, and of the one before in proportion to the part of it that
 *     came after. The contract knows tp->lost now, not then.
 *   - Discontiguous ranges lost in a round of STARTUP: ACKs that report a loss.
 *   - Whether the peer has SACK. Without it the draft takes any loss for too many.
 *
 * Other differences from the draft, for want of 105 bytes
 *   - extra_acked is the maximum of two windows of five rounds, not of ten (as in version 1); in STARTUP of one.
 *   - The growth of inflight_hi per round follows cwnd as it is, not as it was at the round's beginning.
 *   - Times are milliseconds.
 */
#include "bbr3.h"

/* ---- Rounds and loss ---- */

CC_INLINE void bbr3_start_round(const struct tcp_sock *tp, struct bbr3 *bbr)
{
	bbr->before_begin = bbr->round_begin;
	bbr->before_lost = bbr->round_lost;
	bbr->round_begin = tp->delivered;
	bbr->round_lost = tp->lost;
}

CC_INLINE void bbr3_save_cwnd(const struct tcp_sock *tp, struct bbr3 *bbr)
{
	bool reduced = bbr3_is(bbr, IN_RECOVERY) || bbr3_mode(bbr) == BBR3_PROBE_RTT;

	bbr->prior_cwnd = max_u32(reduced ? bbr->prior_cwnd : 0, tp->snd_cwnd);
}

CC_INLINE void bbr3_save_bounds(const struct tcp_sock *tp, struct bbr3 *bbr)
{
	bbr3_save_cwnd(tp, bbr);
	bbr3_set(bbr, UNDO_STARTUP | UNDO_UP, false);
	bbr->undo_bw_lo = bbr->bw_lo;
	bbr->undo_inflight_lo = bbr->inflight_lo;
	bbr->undo_inflight_hi = bbr->inflight_hi;
}

CC_INLINE void bbr3_note_loss(const struct tcp_sock *tp, struct bbr3 *bbr)
{
	if (!bbr3_is(bbr, LOSS_IN_ROUND)) {
		bbr->loss_round_begin = tp->delivered;
		bbr3_save_bounds(tp, bbr);
	}
	bbr3_set(bbr, LOSS_IN_ROUND, true);
}

CC_INLINE void bbr3_forget_short_term(struct bbr3 *bbr)
{
	bbr->bw_lo = UNBOUNDED;
	bbr->inflight_lo = UNBOUNDED;
}

CC_INLINE void bbr3_reset_full_bw(struct bbr3 *bbr, u32 bw)
{
	bbr->full_bw = bw;
	bbr->counts &= (u8)~3u;
	bbr3_set(bbr, FULL_BW_NOW, false);
}

/* ---- The phases of PROBE_BW ---- */

CC_INLINE void bbr3_start_down(struct sock *sk, struct bbr3 *bbr)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 random = cc_random_u32(sk);

	bbr3_set(bbr, LOSS_IN_ROUND, false);
	bbr->bw_latest = 0;
	bbr->inflight_latest = 0;
	bbr->since_probe = random >> 31;
	bbr->wait_and_up = (u8)((random & 0xffff) % WAIT_STEPS);
	bbr->cycle_ms = bbr3_now_ms(tp);
	bbr3_set_acks(bbr, BBR3_ACKS_STOPPING);
	bbr3_start_round(tp, bbr);
	bbr3_set_mode(bbr, BBR3_DOWN);
}

CC_INLINE void bbr3_start_refill(const struct tcp_sock *tp, struct bbr3 *bbr)
{
	bbr3_forget_short_term(bbr);
	bbr->up_acked = 0;
	bbr3_set(bbr, PRECAUTIONARY, false);
	bbr3_set_acks(bbr, BBR3_ACKS_REFILLING);
	bbr3_start_round(tp, bbr);
	bbr3_set_mode(bbr, BBR3_REFILL);
}

CC_INLINE void bbr3_start_up(const struct tcp_sock *tp, struct bbr3 *bbr, const struct rate_sample *rs)
{
	bbr3_set_acks(bbr, BBR3_ACKS_STARTING);
	bbr3_start_round(tp, bbr);
	bbr3_reset_full_bw(bbr, bbr3_sample_bw(rs));
	bbr->wait_and_up = 1;
	bbr3_set_mode(bbr, BBR3_UP);
}

/* More than 2 % of what was in flight is lost: that was too much. Once per probe. */
CC_INLINE void bbr3_probe_too_high(struct sock *sk, struct bbr3 *bbr, u32 inflight, bool app_limited)
{
	bbr3_set(bbr, TOO_HIGH, true);
	bbr3_set(bbr, PROBE_SAMPLE, false);
	if (!app_limited)
		bbr->inflight_hi = max_u32(max_u32(inflight, bbr3_beta(bbr3_target(tcp_sk(sk), bbr))), 1);
	if (bbr3_mode(bbr) == BBR3_UP) {
		bbr3_set(bbr, UNDO_UP, true);
		bbr3_start_down(sk, bbr);
	}
}

/*
 * In flight at which the losses reached 2 %: of the lost segments of this ACK as many count as
 *
 *   (lost before + n) / (in flight before + n) = 2 %,    n = (in flight before - 50 x lost before) / 49
 */
CC_INLINE u32 bbr3_inflight_at_loss(u32 inflight, u32 lost, u32 newly)
{
	u32 inflight_before = inflight > newly ? inflight - newly : 0;
	u32 lost_before = lost > newly ? lost - newly : 0;
	u64 allowed = (u64)lost_before * LOSS_SHARE;
	u32 prefix = inflight_before > allowed ? (u32)(inflight_before - allowed) / (LOSS_SHARE - 1) : 0;

	return inflight_before + prefix;
}

CC_INLINE bool bbr3_is_too_high(u32 inflight, u32 lost)
{
	return (u64)lost * LOSS_SHARE > inflight;
}

/* This ACK has shown losses. */
CC_INLINE void bbr3_handle_losses(struct sock *sk, struct bbr3 *bbr, const struct rate_sample *rs)
{
	u32 lost, inflight;

	bbr3_note_loss(tcp_sk(sk), bbr);
	if (bbr3_mode(bbr) == BBR3_STARTUP && bbr->wait_and_up < 0xff)
		bbr->wait_and_up++;
	if (!bbr3_is(bbr, PROBE_SAMPLE) || !bbr3_is_sample(rs))
		return;
	lost = bbr3_lost_since(tcp_sk(sk), bbr, rs);
	inflight = (u32)rs->delivered + lost;
	if (bbr3_is_too_high(inflight, lost))
		bbr3_probe_too_high(sk, bbr, bbr3_inflight_at_loss(inflight, lost, (u32)rs->losses), rs->is_app_limited);
}

/* ---- The model ---- */

CC_INLINE void bbr3_update_latest(const struct tcp_sock *tp, struct bbr3 *bbr, const struct rate_sample *rs)
{
	bbr->bw_latest = max_u32(bbr->bw_latest, bbr3_sample_bw(rs));
	bbr->inflight_latest = max_u32(bbr->inflight_latest, (u32)rs->delivered);
	bbr3_set(bbr, LOSS_ROUND_START, false);
	if (!before(rs->prior_delivered, bbr->loss_round_begin)) {
		bbr->loss_round_begin = tp->delivered;
		bbr3_set(bbr, LOSS_ROUND_START, true);
	}
}

CC_INLINE void bbr3_update_max_bw(const struct tcp_sock *tp, struct bbr3 *bbr, const struct rate_sample *rs)
{
	u32 bw = bbr3_sample_bw(rs);

	bbr3_set(bbr, ROUND_START, false);
	if (!before(rs->prior_delivered, bbr->round_begin)) {
		bbr3_start_round(tp, bbr);
		bbr3_set(bbr, ROUND_START, true);
		if (bbr->since_probe < 0xff)
			bbr->since_probe++;
	}
	if (bw && (bw >= bbr3_max_bw(bbr) || !rs->is_app_limited))
		bbr->bw_hi[1] = max_u32(bbr->bw_hi[1], bw);
}

/* At the end of a round with a loss, where that is not a probe's: down to what was delivered, by at most 0.7. */
CC_INLINE void bbr3_adapt_short_term(const struct tcp_sock *tp, struct bbr3 *bbr)
{
	if (!bbr3_is(bbr, LOSS_ROUND_START))
		return;
	if (bbr3_is(bbr, LOSS_IN_ROUND) && !bbr3_is_probing(bbr)) {
		if (bbr->bw_lo == UNBOUNDED)
			bbr->bw_lo = bbr3_max_bw(bbr);
		if (bbr->inflight_lo == UNBOUNDED)
			bbr->inflight_lo = tp->snd_cwnd;
		bbr->bw_lo = max_u32(bbr->bw_latest, bbr3_beta(bbr->bw_lo));
		bbr->inflight_lo = max_u32(bbr->inflight_latest, bbr3_beta(bbr->inflight_lo));
	}
	bbr3_set(bbr, LOSS_IN_ROUND, false);
}

/* extra_acked = max over rounds of (acknowledged in the epoch - bw x time of the epoch), at most cwnd */
CC_INLINE void bbr3_update_extra_acked(const struct tcp_sock *tp, struct bbr3 *bbr, const struct rate_sample *rs)
{
	u32 window = bbr3_is(bbr, PIPE_FILLED) ? EXTRA_ACKED_ROUNDS : 1;
	u32 rounds = bbr->counts >> 5;
	u32 expected, extra;

	if (bbr3_is(bbr, ROUND_START) && ++rounds >= window) {
		rounds = 0;
		bbr->extra_acked_before = window == 1 ? 0 : bbr->extra_acked;
		bbr->extra_acked = 0;
	}
	bbr->counts = (u8)((bbr->counts & 0x1f) | rounds << 5);
	if (!rs->acked_sacked)
		return;
	expected = bbr3_segments(bbr3_bw(bbr), (u32)tp->tcp_mstamp - bbr->epoch_us);
	if (bbr->epoch_acked <= expected || bbr->epoch_acked + rs->acked_sacked >= ACK_EPOCH_MAX) {
		bbr->epoch_acked = 0;
		bbr->epoch_us = (u32)tp->tcp_mstamp;
		expected = 0;
	}
	bbr->epoch_acked = (u16)min_u32(bbr->epoch_acked + rs->acked_sacked, ACK_EPOCH_MAX);
	extra = min_u32(bbr->epoch_acked > expected ? bbr->epoch_acked - expected : 0, tp->snd_cwnd);
	bbr->extra_acked = (u16)max_u32(bbr->extra_acked, min_u32(extra, 0xffff));
}

CC_INLINE void bbr3_check_full_bw(struct bbr3 *bbr, const struct rate_sample *rs)
{
	u32 bw = bbr3_sample_bw(rs);
	u32 rounds = bbr->counts & 3;

	if (bbr3_is(bbr, FULL_BW_NOW) || !bbr3_is(bbr, ROUND_START) || rs->is_app_limited)
		return;
	if ((u64)bw * 4 >= (u64)bbr->full_bw * 5) {
		bbr3_reset_full_bw(bbr, bw);
		return;
	}
	rounds = min_u32(rounds + 1, FULL_BW_ROUNDS);
	bbr->counts = (u8)((bbr->counts & ~3u) | rounds);
	if (rounds >= FULL_BW_ROUNDS)
		bbr3_set(bbr, FULL_BW_NOW | PIPE_FILLED, true);
}

/* ---- The state machine ---- */

/* A round of a recovery is over in which more than 2 % were lost, by several ACKs: the pipe is full. */
CC_INLINE void bbr3_check_startup_losses(const struct tcp_sock *tp, struct bbr3 *bbr, const struct rate_sample *rs)
{
	u32 losses = bbr->wait_and_up;
	u32 lost;

	if (bbr3_mode(bbr) != BBR3_STARTUP || !bbr3_is(bbr, LOSS_ROUND_START))
		return;
	bbr->wait_and_up = 0;
	if (bbr3_is(bbr, PIPE_FILLED) || !bbr3_is(bbr, IN_RECOVERY) || losses < STARTUP_LOSSES)
		return;
	lost = bbr3_lost_since(tp, bbr, rs);
	if (!bbr3_is_too_high((u32)rs->delivered + lost, lost))
		return;
	bbr3_set(bbr, UNDO_STARTUP | PIPE_FILLED, true);
	bbr->inflight_hi = max_u32(bbr3_bdp(bbr, bbr3_bw(bbr), GAIN_UNIT), bbr->inflight_latest);
}

CC_INLINE void bbr3_check_drain(struct sock *sk, struct bbr3 *bbr)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 full = bbr3_inflight(sk, bbr, bbr3_bw(bbr));
	u32 rounds = bbr->counts >> 2 & 7;

	if (bbr3_mode(bbr) == BBR3_STARTUP && bbr3_is(bbr, PIPE_FILLED)) {
		tp->snd_ssthresh = max_u32(full, 2);	/* unused here: it shows others where slow start has ended */
		bbr3_set_mode(bbr, BBR3_DRAIN);
		rounds = 0;
	} else if (bbr3_mode(bbr) != BBR3_DRAIN) {
		return;
	} else if (bbr3_is(bbr, ROUND_START)) {
		rounds = min_u32(rounds + 1, 7);
	}
	bbr->counts = (u8)((bbr->counts & ~0x1cu) | rounds << 2);
	if (tcp_packets_in_flight(tp) <= full || rounds > DRAIN_ROUNDS)
		bbr3_start_down(sk, bbr);
}

/* inflight_hi grows by 1, 2, 4, ... in the rounds of UP that it limits. */
CC_INLINE void bbr3_raise_inflight_hi(const struct tcp_sock *tp, struct bbr3 *bbr, const struct rate_sample *rs)
{
	u32 shift = min_u32(bbr->wait_and_up, UP_ROUNDS_MAX) - !!bbr->wait_and_up;
	u32 per_segment = max_u32(tp->snd_cwnd >> (shift & 31), 1);
	u32 grown;

	if (bbr3_is(bbr, ROUND_START) && bbr->wait_and_up < UP_ROUNDS_MAX)
		bbr->wait_and_up++;
	if (!CC_BITFIELD(tp, is_cwnd_limited) || tp->snd_cwnd < bbr->inflight_hi)
		return;
	bbr->up_acked += rs->acked_sacked;
	grown = bbr->up_acked / per_segment;
	bbr->up_acked -= grown * per_segment;
	bbr->inflight_hi = (u32)min_u64((u64)bbr->inflight_hi + grown, UNBOUNDED - 1);
}

/* Returns whether a phase began. */
CC_INLINE bool bbr3_adapt_long_term(struct sock *sk, struct bbr3 *bbr, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	bool round = bbr3_is(bbr, ROUND_START);
	u32 lost, inflight;

	if (bbr3_acks(bbr) == BBR3_ACKS_STARTING && round)
		bbr3_set_acks(bbr, BBR3_ACKS_FEEDBACK);
	if (bbr3_acks(bbr) == BBR3_ACKS_STOPPING && round) {
		bbr3_set(bbr, PROBE_SAMPLE, false);
		bbr3_set_acks(bbr, BBR3_ACKS_INIT);
		if (bbr3_in_probe_bw(bbr) && !rs->is_app_limited && bbr->bw_hi[1]) {
			bbr->bw_hi[0] = bbr->bw_hi[1];
			bbr->bw_hi[1] = 0;
		}
		if (bbr3_in_probe_bw(bbr) && bbr3_is(bbr, PRECAUTIONARY) && !bbr3_is(bbr, TOO_HIGH)) {
			bbr3_start_refill(tp, bbr);
			return true;
		}
	}
	lost = bbr3_lost_since(tp, bbr, rs);
	inflight = (u32)rs->delivered + lost;
	if (bbr3_is_too_high(inflight, lost) || bbr->inflight_hi == UNBOUNDED)
		return false;
	bbr->inflight_hi = max_u32(bbr->inflight_hi, inflight);
	if (bbr3_mode(bbr) == BBR3_UP)
		bbr3_raise_inflight_hi(tp, bbr, rs);
	return false;
}

CC_INLINE bool bbr3_is_time_to_probe(const struct tcp_sock *tp, const struct bbr3 *bbr)
{
	u32 wait_ms = WAIT_MS + WAIT_STEP_MS * bbr->wait_and_up;

	if (after(bbr3_now_ms(tp), bbr->cycle_ms + wait_ms))
		return true;
	return bbr->since_probe >= min_u32(bbr3_target(tp, bbr), RENO_ROUNDS_MAX);
}

CC_INLINE bool bbr3_is_time_to_cruise(const struct sock *sk, const struct bbr3 *bbr)
{
	u32 in_flight = tcp_packets_in_flight(tcp_sk(sk));

	return in_flight <= bbr3_with_headroom(bbr) && in_flight <= bbr3_inflight(sk, bbr, bbr3_max_bw(bbr));
}

CC_INLINE bool bbr3_is_time_to_go_down(const struct tcp_sock *tp, struct bbr3 *bbr, const struct rate_sample *rs)
{
	if (bbr3_is(bbr, TOO_HIGH) && tcp_packets_in_flight(tp) >= bbr->inflight_hi) {
		bbr3_set(bbr, PRECAUTIONARY, true);
		return true;
	}
	if (CC_BITFIELD(tp, is_cwnd_limited) && tp->snd_cwnd >= bbr->inflight_hi) {
		bbr3_reset_full_bw(bbr, bbr3_sample_bw(rs));	/* inflight_hi limits bw, not the path */
		return false;
	}
	return bbr3_is(bbr, FULL_BW_NOW);
}

CC_INLINE void bbr3_update_phase(struct sock *sk, struct bbr3 *bbr, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 mode;

	if (!bbr3_is(bbr, PIPE_FILLED) || bbr3_adapt_long_term(sk, bbr, rs))
		return;
	mode = bbr3_mode(bbr);
	if ((mode == BBR3_DOWN || mode == BBR3_CRUISE) && bbr3_is_time_to_probe(tp, bbr)) {
		bbr3_start_refill(tp, bbr);
	} else if (mode == BBR3_DOWN && bbr3_is_time_to_cruise(sk, bbr)) {
		bbr3_set_mode(bbr, BBR3_CRUISE);
	} else if (mode == BBR3_REFILL && bbr3_is(bbr, ROUND_START)) {
		bbr3_set(bbr, PROBE_SAMPLE, true);
		bbr3_start_up(tp, bbr, rs);
	} else if (mode == BBR3_UP && bbr3_is_time_to_go_down(tp, bbr, rs)) {
		bbr3_set(bbr, TOO_HIGH, false);
		bbr3_start_down(sk, bbr);
	}
}

/* ---- min_rtt and PROBE_RTT ---- */

/* Returns whether the minimum was too old. The window of PROBE_RTT comes from the old one: the new one may have a queue. */
CC_INLINE bool bbr3_update_min_rtt(const struct tcp_sock *tp, struct bbr3 *bbr, const struct rate_sample *rs)
{
	u32 now_ms = bbr3_now_ms(tp);
	bool expired = after(now_ms, bbr->min_rtt_ms + MIN_RTT_MS);

	if (expired && bbr3_mode(bbr) != BBR3_PROBE_RTT && !bbr3_is(bbr, IDLE_RESTART))
		bbr->up_acked = max_u32(bbr3_bdp(bbr, bbr3_bw(bbr), PROBE_RTT_CWND_GAIN), MIN_CWND);
	if (rs->rtt_us >= 0 && ((u64)rs->rtt_us < bbr->min_rtt_us || expired)) {
		bbr->min_rtt_us = max_u32((u32)rs->rtt_us, 1);
		bbr->min_rtt_ms = now_ms;
	}
	return expired;
}

CC_INLINE void bbr3_check_probe_rtt_end(struct sock *sk, struct bbr3 *bbr)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 now_ms = bbr3_now_ms(tp);

	if (!bbr->probe_rtt_end_ms || !after(now_ms, bbr->probe_rtt_end_ms))
		return;
	bbr->min_rtt_ms = now_ms;
	tp->snd_cwnd = min_u32(max_u32(tp->snd_cwnd, bbr->prior_cwnd), tp->snd_cwnd_clamp);
	bbr3_forget_short_term(bbr);
	bbr->up_acked = 0;
	if (bbr3_is(bbr, PIPE_FILLED)) {
		bbr3_start_down(sk, bbr);
		bbr3_set_mode(bbr, BBR3_CRUISE);
	} else {
		bbr3_set_mode(bbr, BBR3_STARTUP);
		bbr->wait_and_up = 0;
	}
}

CC_INLINE void bbr3_run_probe_rtt(struct sock *sk, struct bbr3 *bbr)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 in_flight = tcp_packets_in_flight(tp);

	/* the small window, not the path, limits what is delivered now */
	tp->app_limited = max_u32(tp->delivered + in_flight, 1);
	if (bbr->probe_rtt_end_ms) {
		if (bbr3_is(bbr, ROUND_START))
			bbr3_set(bbr, PROBE_RTT_ROUND, true);
		if (bbr3_is(bbr, PROBE_RTT_ROUND))
			bbr3_check_probe_rtt_end(sk, bbr);
	} else if (in_flight <= bbr->up_acked) {
		bbr->probe_rtt_end_ms = max_u32(bbr3_now_ms(tp) + PROBE_RTT_MS, 1);
		bbr3_set(bbr, PROBE_RTT_ROUND, false);
		bbr3_start_round(tp, bbr);
	}
}

CC_INLINE void bbr3_check_probe_rtt(struct sock *sk, struct bbr3 *bbr, const struct rate_sample *rs, bool expired)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (expired && !bbr3_is(bbr, IDLE_RESTART) && bbr3_mode(bbr) != BBR3_PROBE_RTT) {
		bbr3_set_mode(bbr, BBR3_PROBE_RTT);
		bbr3_save_cwnd(tp, bbr);
		bbr->probe_rtt_end_ms = 0;
		bbr3_set_acks(bbr, BBR3_ACKS_STOPPING);
		bbr3_start_round(tp, bbr);
	}
	if (bbr3_mode(bbr) == BBR3_PROBE_RTT)
		bbr3_run_probe_rtt(sk, bbr);
	if (rs->delivered > 0)
		bbr3_set(bbr, IDLE_RESTART, false);
}

/* ---- What follows from the model: rate and window ---- */

/* pacing rate = 2.77 x cwnd / RTT, of the smoothed RTT, or 1 ms while there is none. */
CC_INLINE void bbr3_pace_initially(struct sock *sk, struct bbr3 *bbr)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt_us = tp->srtt_us ? max_u32(tp->srtt_us >> 3, 1) : NOMINAL_RTT_US;
	u64 rate = bbr3_paced_rate(bbr3_bandwidth(tp->snd_cwnd, rtt_us), tp->mss_cache, STARTUP_GAIN);

	bbr3_set(bbr, RTT_SEEN, tp->srtt_us);
	sk->sk_pacing_rate = max_u64(min_u64(rate, sk->sk_max_pacing_rate), 1);
}

/* Until the pipe is full the rate only rises. */
CC_INLINE void bbr3_pace(struct sock *sk, struct bbr3 *bbr, u32 gain)
{
	u64 rate = bbr3_paced_rate(bbr3_bw(bbr), tcp_sk(sk)->mss_cache, gain);

	rate = max_u64(min_u64(rate, sk->sk_max_pacing_rate), 1);
	if (!bbr3_is(bbr, RTT_SEEN) && tcp_sk(sk)->srtt_us)
		bbr3_pace_initially(sk, bbr);
	if (bbr3_is(bbr, PIPE_FILLED) || rate > sk->sk_pacing_rate)
		sk->sk_pacing_rate = rate;
}

CC_INLINE u32 bbr3_cap(const struct bbr3 *bbr)
{
	u32 mode = bbr3_mode(bbr);
	u32 cap = UNBOUNDED;

	if (mode == BBR3_CRUISE || mode == BBR3_PROBE_RTT)
		cap = bbr3_with_headroom(bbr);
	else if (bbr3_in_probe_bw(bbr))
		cap = bbr->inflight_hi;
	return max_u32(min_u32(cap, bbr->inflight_lo), MIN_CWND);
}

CC_INLINE void bbr3_set_cwnd(struct sock *sk, struct bbr3 *bbr, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool recovers = tcp_ca_state(sk) >= TCP_CA_Recovery;
	u32 most = bbr3_is(bbr, PIPE_FILLED) ? bbr3_segments(bbr3_bw(bbr), EXTRA_ACKED_MAX_US) : UNBOUNDED;
	u32 extra = min_u32(max_u32(bbr->extra_acked, bbr->extra_acked_before), most);
	u32 cwnd = tp->snd_cwnd;
	u32 target;

	if (bbr3_is(bbr, IN_RECOVERY) && !recovers)
		cwnd = max_u32(cwnd, bbr->prior_cwnd);
	bbr3_set(bbr, IN_RECOVERY, recovers);
	if (rs->acked_sacked) {
		target = bbr3_with_budget(sk, bbr, bbr3_bdp(bbr, bbr3_bw(bbr), bbr3_cwnd_gain(bbr)) + extra);
		if (bbr3_is(bbr, PIPE_FILLED))
			cwnd = min_u32(cwnd + rs->acked_sacked, target);
		else if (cwnd < target || tp->delivered < INITIAL_CWND)
			cwnd += rs->acked_sacked;
		cwnd = max_u32(cwnd, MIN_CWND);
	}
	if (bbr3_mode(bbr) == BBR3_PROBE_RTT)
		cwnd = min_u32(cwnd, max_u32(bbr->up_acked, MIN_CWND));
	tp->snd_cwnd = min_u32(min_u32(cwnd, bbr3_cap(bbr)), tp->snd_cwnd_clamp);
}

/* ---- Hooks ---- */

CC_HOOK(void, bbr3_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *bbr = inet_csk_ca(sk);

	/* the rest is 0: the host has cleared the state */
	bbr->min_rtt_us = tp->srtt_us ? max_u32(tp->srtt_us >> 3, 1) : ~0u;
	bbr->min_rtt_ms = bbr3_now_ms(tp);
	bbr->inflight_hi = UNBOUNDED;
	bbr3_forget_short_term(bbr);
	bbr->undo_bw_lo = bbr->undo_inflight_lo = bbr->undo_inflight_hi = 0;
	bbr->round_begin = bbr->before_begin = bbr->loss_round_begin = tp->delivered;
	bbr->round_lost = bbr->before_lost = tp->lost;
	bbr->epoch_us = (u32)tp->tcp_mstamp;

	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;	/* unused here, and must not limit the next algorithm */
	bbr3_pace_initially(sk, bbr);
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

/* A window reduction would begin: the window and the bounds to return to, and no threshold. */
CC_HOOK(u32, bbr3_ssthresh, struct sock *sk)
{
	bbr3_save_bounds(tcp_sk(sk), inet_csk_ca(sk));
	return tcp_sk(sk)->snd_ssthresh;
}

CC_HOOK(void, bbr3_set_state, struct sock *sk, u8 new_state)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *bbr = inet_csk_ca(sk);

	if (!bbr->min_rtt_us)
		return;
	if (new_state == TCP_CA_Loss) {	/* a timeout: losses that no ACK reports */
		bbr3_note_loss(tp, bbr);
		bbr3_set(bbr, IN_RECOVERY, true);
	} else if (new_state == TCP_CA_CWR) {	/* a mark, or a loss that a probe has repaired */
		bbr3_note_loss(tp, bbr);
		if (bbr3_is(bbr, PROBE_SAMPLE))
			bbr3_probe_too_high(sk, bbr, tcp_packets_in_flight(tp), false);
	}
}

/* Back from a pause with little to send: at the bottleneck's rate, not at a probing one. */
CC_HOOK(void, bbr3_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *bbr = inet_csk_ca(sk);

	if (event != CA_EVENT_TX_START || !tp->app_limited || !bbr->min_rtt_us)
		return;
	bbr3_set(bbr, IDLE_RESTART, true);
	bbr->epoch_us = (u32)tp->tcp_mstamp;
	bbr->epoch_acked = 0;
	if (bbr3_in_probe_bw(bbr))
		bbr3_pace(sk, bbr, GAIN_UNIT);
	else if (bbr3_mode(bbr) == BBR3_PROBE_RTT)
		bbr3_check_probe_rtt_end(sk, bbr);
}

CC_HOOK(void, bbr3_cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *bbr = inet_csk_ca(sk);
	bool sample = bbr3_is_sample(rs);

	(void)ack, (void)flag;
	if (!bbr->min_rtt_us)	/* the ACK of our own SYN comes before init() */
		return;
	if (rs->losses > 0)
		bbr3_handle_losses(sk, bbr, rs);
	bbr3_set(bbr, ROUND_START | LOSS_ROUND_START, false);
	if (sample) {
		bbr3_update_latest(tp, bbr, rs);
		bbr3_update_max_bw(tp, bbr, rs);
		bbr3_adapt_short_term(tp, bbr);
		bbr3_update_extra_acked(tp, bbr, rs);
		bbr3_check_full_bw(bbr, rs);
		bbr3_check_startup_losses(tp, bbr, rs);
	}
	bbr3_check_drain(sk, bbr);
	if (sample)
		bbr3_update_phase(sk, bbr, rs);
	bbr3_check_probe_rtt(sk, bbr, rs, bbr3_update_min_rtt(tp, bbr, rs));
	if (sample && bbr3_is(bbr, LOSS_ROUND_START)) {
		bbr->bw_latest = bbr3_sample_bw(rs);
		bbr->inflight_latest = (u32)rs->delivered;
	}
	bbr3_pace(sk, bbr, bbr3_pacing_gain(bbr));
	bbr3_set_cwnd(sk, bbr, rs);
}

/* The recovery was spurious: the bounds from before it, and the state that it ended. */
CC_HOOK(u32, bbr3_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *bbr = inet_csk_ca(sk);
	u32 mode = bbr3_mode(bbr);

	if (!bbr->min_rtt_us)
		return tp->snd_cwnd;
	bbr3_set(bbr, LOSS_IN_ROUND, false);
	bbr3_reset_full_bw(bbr, 0);
	bbr->bw_lo = max_u32(bbr->bw_lo, bbr->undo_bw_lo);
	bbr->inflight_lo = max_u32(bbr->inflight_lo, bbr->undo_inflight_lo);
	bbr->inflight_hi = max_u32(bbr->inflight_hi, bbr->undo_inflight_hi);
	if (bbr3_is(bbr, UNDO_STARTUP) && mode != BBR3_STARTUP) {
		bbr3_set(bbr, PIPE_FILLED, false);
		if (mode != BBR3_PROBE_RTT) {
			bbr3_set_mode(bbr, BBR3_STARTUP);
			bbr->wait_and_up = 0;
		}
	} else if (bbr3_is(bbr, UNDO_UP) && mode != BBR3_UP && mode != BBR3_PROBE_RTT) {
		bbr3_start_refill(tp, bbr);
	}
	bbr3_set(bbr, UNDO_STARTUP | UNDO_UP, false);
	return min_u32(max_u32(tp->snd_cwnd, bbr->prior_cwnd), tp->snd_cwnd_clamp);
}

CC_HOOK(u32, bbr3_min_tso_segs, struct sock *sk)
{
	(void)sk;
	return MIN_BURST;
}

/* The send buffer: a window in flight, as much again that is repaired, and one more to be sent meanwhile. */
CC_HOOK(u32, bbr3_sndbuf_expand, struct sock *sk)
{
	(void)sk;
	return 3;
}

CC_INFO(bbr3,
	.title = "BBR v3",
	.environment = "wide area, deep or shallow buffers, random loss, beside Reno and CUBIC",
	.reference = "draft-ietf-ccwg-bbr",
	.category = CC_MODEL_BASED,
	.measures = CC_MEASURES_MODEL | CC_MEASURES_LOSS);

CC_OPS(bbr3,
	.init = bbr3_init,
	.ssthresh = bbr3_ssthresh,
	.set_state = bbr3_set_state,
	.cwnd_event = bbr3_cwnd_event,
	.cong_control = bbr3_cong_control,
	.undo_cwnd = bbr3_undo_cwnd,
	.min_tso_segs = bbr3_min_tso_segs,
	.sndbuf_expand = bbr3_sndbuf_expand,
	.flags = TCP_CONG_NON_RESTRICTED);
