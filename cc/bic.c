/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * BIC, Binary Increase Congestion control (Xu, Harfoush, Rhee, "Binary Increase Congestion Control for Fast
 * Long-Distance Networks", INFOCOM 2004).
 *
 * A loss shows two things: the window it happened at, W_max, was too much, and the reduced window is not. What the path
 * holds lies between, and BIC looks for it by binary search, one step a round trip:
 *
 *   cwnd < W_max            cwnd += (W_max - cwnd) / B       but at most S_max segments ("additive increase"), and
 *                                                            when under a segment, slowly up to W_max
 *   cwnd >= W_max           the path holds more than before: the mirror image. Slowly at first, then by ever larger
 *                           steps, up to S_max ("max probing")
 *   loss                    W_max = cwnd; cwnd = 819/1024 cwnd
 *   loss under W_max        W_max = (1 + 819/1024) / 2 cwnd  a flow that did not regain its window has a competitor:
 *                                                            leave it some ("fast convergence")
 *   cwnd <= 14              NewReno's rule, halving included: in small windows BIC has nothing to add
 *
 * The window stays close to W_max most of the time, where the path is used well and the risk of loss is small. The same
 * shape without the case distinctions, and a function of time instead of round trips, is CUBIC, by the same authors.
 *
 *   cwnd                          ........ W_max ........
 *                          .''''                         '.
 *                        .'   binary        smooth part     . max probing
 *                      .'     search
 *                    .' additive (S_max a round trip)
 *
 * Differences from the paper, all of them Linux's
 *   - The search divides the distance by B = 4, not 2: a quarter of the way a round trip.
 *   - The decrease is 819/1024 (0.8), the paper's beta 0.125 (0.875); S_max is 16, the paper's 32.
 *   - In place of S_min, the last segment up to W_max, and the first B segments above it, are spread: the window grows
 *     by one segment per SMOOTH_PART/B = 5 round trips.
 *   - A timeout forgets W_max: what the path held is no longer known.
 *   - The step is computed at every ACK, for the window as it is; Linux keeps it for 1/32 s, which in a data centre is
 *     many round trips. Linux's factor for delayed ACKs is not needed: segments are counted, not ACKs.
 */
#include "tcp.h"

/* Segments. Up to here, NewReno. */
#define BIC_LOW_WINDOW 14

/* S_max: the most segments that a round trip adds. */
#define BIC_MAX_INCREMENT 16

/* B: the part of the distance to W_max that a round trip covers is 1/B. */
#define BIC_B 4

/* Round trips over which B segments are spread close to W_max. */
#define BIC_SMOOTH_PART 20

/* cwnd after a loss, in 1/1024. */
#define BIC_BETA 819
#define BIC_BETA_SCALE 1024

/* While no W_max is known, the window grows by 1/20 a round trip at least: the first search must not take too long. */
#define BIC_MAX_SEGMENTS_PER_INCREASE 20

struct bic {
	u32 w_max;	/* segments; 0: no loss yet */
};
CC_ASSERT_STATE_FITS(struct bic);

/* The slow part on both sides of W_max: B segments in SMOOTH_PART round trips. 10^6 x 20 are under 2^25. */
static u32 bic_smooth(u32 cwnd)
{
	return cwnd * BIC_SMOOTH_PART / BIC_B;
}

/*
 * Below W_max: segments acknowledged per segment of growth. To grow by `step` in a round trip of cwnd segments, that is
 * cwnd / step.
 */
static u32 bic_search(u32 cwnd, u32 w_max)
{
	u32 step = (w_max - cwnd) / BIC_B;

	if (step > BIC_MAX_INCREMENT)
		return cwnd / BIC_MAX_INCREMENT;
	if (step <= 1)
		return bic_smooth(cwnd);
	return cwnd / step;
}

/* At W_max and above. The step (cwnd - W_max) / (B - 1) reaches S_max at (B - 1) S_max above W_max. */
static u32 bic_probe(u32 cwnd, u32 w_max)
{
	u32 above = cwnd - w_max;

	if (above < BIC_B)
		return bic_smooth(cwnd);
	if (above < BIC_MAX_INCREMENT * (BIC_B - 1))
		return cwnd * (BIC_B - 1) / above;
	return cwnd / BIC_MAX_INCREMENT;
}

/* Segments acknowledged per segment of growth, at least 1. */
static u32 bic_segments_per_increase(u32 cwnd, u32 w_max)
{
	u32 segments;

	if (cwnd <= BIC_LOW_WINDOW)
		return max_u32(cwnd, 1);
	segments = cwnd < w_max ? bic_search(cwnd, w_max) : bic_probe(cwnd, w_max);
	if (!w_max)
		segments = min_u32(segments, BIC_MAX_SEGMENTS_PER_INCREASE);
	return max_u32(segments, 1);
}

CC_HOOK(void, bic_init, struct sock *sk)
{
	struct bic *bic = inet_csk_ca(sk);

	bic->w_max = 0;
}

CC_HOOK(void, bic_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	const struct bic *bic = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	(void)ack;
	if (tcp_past_slow_start(sk, &acked))
		tcp_cong_avoid_ai(tp, bic_segments_per_increase(tp->snd_cwnd, bic->w_max), acked);
}

/* Products of windows and 1024ths are made in 64 bits, for windows of any size. */
CC_HOOK(u32, bic_ssthresh, struct sock *sk)
{
	struct bic *bic = inet_csk_ca(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	if (cwnd < bic->w_max)
		bic->w_max = (u32)((u64)cwnd * (BIC_BETA_SCALE + BIC_BETA) / (2 * BIC_BETA_SCALE));
	else
		bic->w_max = cwnd;
	if (cwnd <= BIC_LOW_WINDOW)
		return max_u32(cwnd >> 1, 2);
	return max_u32((u32)((u64)cwnd * BIC_BETA / BIC_BETA_SCALE), 2);
}

CC_HOOK(void, bic_set_state, struct sock *sk, u8 new_state)
{
	struct bic *bic = inet_csk_ca(sk);

	if (new_state == TCP_CA_Loss)
		bic->w_max = 0;
}

CC_HOOK(u32, bic_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CC_INFO(bic,
	.title = "BIC",
	.environment = "high BDP",
	.reference = "Xu, Harfoush, Rhee, INFOCOM 2004",
	.category = CC_LOSS_BASED,
	.measures = CC_MEASURES_LOSS);

CC_OPS(bic,
	.init = bic_init,
	.ssthresh = bic_ssthresh,
	.cong_avoid = bic_cong_avoid,
	.set_state = bic_set_state,
	.undo_cwnd = bic_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED);
