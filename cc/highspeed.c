/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * HighSpeed TCP: the larger the window, the faster it grows and the less it shrinks (RFC 3649).
 *
 * NewReno's mean window under a drop rate p is 1.2 / sqrt(p). To hold 83,000 segments (10 Gb/s at 100 ms) it may lose
 * one segment in 5 * 10^9, and after a loss it grows for over an hour. HighSpeed keeps NewReno's rule for small
 * windows, where it shares links with NewReno, and gives large windows a response function that needs less than
 * perfect links: a straight line in log w over log p, from (Low_Window 38, Low_P 10^-3), where it leaves
 * NewReno's, to (High_Window 83000, High_P 10^-7). In numbers (section 5):
 *
 *   p(w) = 0.078 / w^1.2
 *   b(w) = (High_Decrease - 0.5) x (log w - log Low_Window) / (log High_Window - log Low_Window) + 0.5
 *   a(w) = w^2 x p(w) x 2 x b(w) / (2 - b(w))
 *
 *   congestion avoidance   cwnd += a(cwnd)               per round trip      1 up to 38 segments, 70 at 83,000
 *   loss                   cwnd = (1 - b(cwnd)) x cwnd                       1/2 up to 38 segments, 9/10 at 83,000
 *
 * with High_Decrease 0.1. a and b come from a table of one row per whole step of a, which is what Appendix B of the RFC
 * prints and recommends.
 *
 * Differences from the RFC
 *   - Slow start is NewReno's. Limited slow start for large windows (RFC 3742) is a separate, optional change.
 * The table is the RFC's: crates/congestion/tests/highspeed_table.rs computes it from the formulas above and compares.
 * Like the program of Appendix B, it writes 1/12.8 for 0.078, and begins a row where a has grown by more than one since
 * the row before, fractions included: by the last row, a is 73.07 where it should be 73.
 * Difference from Linux: a row holds from its window upwards, as in the RFC. Linux takes the row above, so that a
 * window of 39 already grows by 2.
 */
#include "tcp.h"

#define HIGHSPEED_ROWS 73
#define HIGHSPEED_SLOTS 128	/* the rows, and unreachable ones up to a power of two, for the index mask */
#define HIGHSPEED_B_SHIFT 16	/* b is in 1/65536: 32768 is a half */

/* Row i: from this window (segments) on, a = i + 1 and b is this. */
struct highspeed_row {
	u32 cwnd;
	u32 b;
};

static const struct highspeed_row highspeed_table[HIGHSPEED_SLOTS] = {
	/* generated from the formulas: begin */
	{ 38, 32768 }, { 118, 28905 }, { 221, 26766 }, { 347, 25227 }, { 495, 24016 },
	{ 663, 23020 }, { 851, 22169 }, { 1058, 21427 }, { 1284, 20767 }, { 1529, 20171 },
	{ 1793, 19628 }, { 2076, 19129 }, { 2378, 18666 }, { 2699, 18234 }, { 3039, 17829 },
	{ 3399, 17448 }, { 3778, 17087 }, { 4177, 16745 }, { 4596, 16419 }, { 5036, 16107 },
	{ 5497, 15809 }, { 5979, 15522 }, { 6483, 15246 }, { 7009, 14980 }, { 7558, 14723 },
	{ 8130, 14474 }, { 8726, 14233 }, { 9346, 13999 }, { 9991, 13772 }, { 10661, 13550 },
	{ 11358, 13334 }, { 12082, 13124 }, { 12834, 12918 }, { 13614, 12717 }, { 14424, 12520 },
	{ 15265, 12327 }, { 16137, 12137 }, { 17042, 11951 }, { 17981, 11768 }, { 18955, 11588 },
	{ 19965, 11411 }, { 21013, 11237 }, { 22101, 11065 }, { 23230, 10895 }, { 24402, 10727 },
	{ 25618, 10561 }, { 26881, 10397 }, { 28193, 10235 }, { 29557, 10074 }, { 30975, 9914 },
	{ 32450, 9755 }, { 33986, 9598 }, { 35586, 9441 }, { 37253, 9285 }, { 38992, 9129 },
	{ 40808, 8974 }, { 42707, 8819 }, { 44694, 8664 }, { 46776, 8509 }, { 48961, 8353 },
	{ 51258, 8197 }, { 53677, 8040 }, { 56230, 7881 }, { 58932, 7721 }, { 61799, 7559 },
	{ 64851, 7395 }, { 68113, 7228 }, { 71617, 7057 }, { 75401, 6881 }, { 79517, 6700 },
	{ 84035, 6511 }, { 89053, 6314 }, { 94717, 6103 },
	/* generated from the formulas: end */
};

/* The last row whose window is not above cwnd, by bisection; windows under 38 share row 0 with 38. */
static u32 highspeed_row_of(u32 cwnd)
{
	u32 row = 0;

	for (u32 step = HIGHSPEED_SLOTS / 2; step; step >>= 1) {
		u32 trial = (row + step) & (HIGHSPEED_SLOTS - 1);

		if (trial < HIGHSPEED_ROWS && highspeed_table[trial].cwnd <= cwnd)
			row = trial;
	}
	return row;
}

/* a(w), segments a round trip: 1 to 73 */
static u32 highspeed_a(u32 cwnd)
{
	return highspeed_row_of(cwnd) + 1;
}

/* b(w), in 1/65536: 32768 to 6103 */
static u32 highspeed_b(u32 cwnd)
{
	return highspeed_table[highspeed_row_of(cwnd) & (HIGHSPEED_SLOTS - 1)].b;
}

/* cwnd += a per cwnd segments: each segment counts a times. 73 x 10^6 segments in one ACK are under 2^27. */
CC_HOOK(void, highspeed_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	(void)ack;
	if (tcp_past_slow_start(sk, &acked))
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, highspeed_a(tp->snd_cwnd) * acked);
}

/* (1 - b) x cwnd; the product in 64 bits: 2^32 segments times 2^15 */
CC_HOOK(u32, highspeed_ssthresh, struct sock *sk)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;
	u32 decrease = (u32)((u64)cwnd * highspeed_b(cwnd) >> HIGHSPEED_B_SHIFT);

	return max_u32(cwnd - decrease, 2);
}

CC_HOOK(u32, highspeed_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CC_INFO(highspeed,
	.title = "HighSpeed",
	.environment = "high BDP",
	.reference = "RFC 3649",
	.category = CC_LOSS_BASED,
	.measures = CC_MEASURES_LOSS);

CC_OPS(highspeed,
	.ssthresh = highspeed_ssthresh,
	.cong_avoid = highspeed_cong_avoid,
	.undo_cwnd = highspeed_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED);
