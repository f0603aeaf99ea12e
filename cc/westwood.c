/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Westwood+: after a loss, fall back to the measured capacity of the path (Grieco and Mascolo, "Performance Evaluation
 * and Comparison of Westwood+, New Reno, and Vegas TCP Congestion Control", CCR 34(2), 2004, section 2).
 *
 * A loss on a radio link says nothing of congestion, and halving the window for it leaves the link idle. Westwood+
 * grows like NewReno, measures the rate at which its segments arrive, and on a loss sets the window to what that rate
 * keeps in flight on an empty path:
 *
 *   once a round trip   b_k = segments delivered in it / its duration
 *                       B   = 7/8 B + 1/8 b_k
 *   loss                ssthresh = B x RTTmin            at least 2 segments
 *
 * If the loss was not congestion, the queue was empty, B x RTTmin is the window there was, and nothing is given up. If
 * the queue was full, the window falls by what stood in the queue: the path stays busy and the queue drains. A buffer
 * of one bandwidth-delay product makes that NewReno's half; where buffers are much larger than the path, as in a data
 * centre with RTTs of microseconds, the fall is much deeper than half.
 *
 * The first Westwood took a sample at every ACK, and bursts of ACKs that had been compressed in a queue made it
 * overestimate; one sample a round trip is the "+".
 *
 * Differences from the paper
 *   - The count is of segments delivered, selectively acknowledged ones included, not of bytes by a rule that guesses
 *     what duplicate and delayed ACKs mean: the host knows (`delivered`).
 *   - An interval that begins after idle time starts with its first ACK: silence of the application is no bandwidth.
 *   - The window never rises by a loss: ssthresh is at most cwnd (while the filter lags, B x RTTmin may be above).
 * Differences from Linux: no floor of 50 ms on the sampling interval (with RTTs under a millisecond it would average
 * hundreds of them); one filter, as in the paper, not two in a row; RTTmin is kept over timeouts.
 */
#include "tcp.h"

/* Bandwidth is in segments/us << 24: from one segment in 16 s up to 256 segments/us, 3 Tb/s of 1500 B, in 32 bits. */
#define WESTWOOD_BANDWIDTH_SHIFT 24

/* The filter's 7/8 and 1/8. */
#define WESTWOOD_FILTER_SHIFT 3

struct westwood {
	u64 interval_start_us;	/* tcp_mstamp when the interval began */
	u32 interval_delivered;	/* tp->delivered then */
	u32 bandwidth;		/* B, segments/us << 24; 0: no sample yet */
	u32 min_rtt_us;		/* RTTmin; 0: no sample yet */
	u32 measuring;		/* 0: the next ACK begins an interval */
};
CC_ASSERT_STATE_FITS(struct westwood);

/* b_k. A u32 << 24 is under 2^56; a sample above 256 segments/us counts as that. */
static u32 westwood_sample(u32 delivered, u64 interval_us)
{
	u64 sample = ((u64)delivered << WESTWOOD_BANDWIDTH_SHIFT) / max_u64(interval_us, 1);

	return (u32)min_u64(sample, ~0u);
}

/* B = 7/8 B + 1/8 b_k; 7 x 2^32 + 2^32 fit 64 bits. The first sample is taken as it is. */
static u32 westwood_filter(u32 bandwidth, u32 sample)
{
	u64 sum = ((u64)bandwidth << WESTWOOD_FILTER_SHIFT) - bandwidth + sample;

	return bandwidth ? (u32)(sum >> WESTWOOD_FILTER_SHIFT) : sample;
}

/* B x RTTmin, segments, rounded to the nearest, for B itself was rounded down: 2^32 x 2^31 us is 2^63. */
static u32 westwood_path_segments(const struct westwood *westwood)
{
	u64 scaled = (u64)westwood->bandwidth * westwood->min_rtt_us + (1u << (WESTWOOD_BANDWIDTH_SHIFT - 1));

	return (u32)min_u64(scaled >> WESTWOOD_BANDWIDTH_SHIFT, ~0u);
}

static void westwood_begin_interval(struct westwood *westwood, const struct tcp_sock *tp)
{
	westwood->interval_start_us = tp->tcp_mstamp;
	westwood->interval_delivered = tp->delivered;
	westwood->measuring = 1;
}

CC_HOOK(void, westwood_init, struct sock *sk)
{
	struct westwood *westwood = inet_csk_ca(sk);

	westwood->bandwidth = 0;
	westwood->min_rtt_us = 0;
	westwood->measuring = 0;
}

/* Every ACK, its delivered segments already counted. */
CC_HOOK(void, westwood_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct westwood *westwood = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt = sample->rtt_us > 0 ? (u32)sample->rtt_us : 1;
	u64 interval_us;

	if (sample->rtt_us >= 0 && (!westwood->min_rtt_us || rtt < westwood->min_rtt_us))
		westwood->min_rtt_us = rtt;
	if (!westwood->measuring) {
		westwood_begin_interval(westwood, tp);
		return;
	}
	interval_us = tp->tcp_mstamp - westwood->interval_start_us;
	/* a smoothed RTT has passed: one delayed ACK is no round trip; wait for the first one */
	if (!interval_us || !tp->srtt_us || interval_us < tp->srtt_us >> 3)
		return;
	westwood->bandwidth = westwood_filter(westwood->bandwidth,
					      westwood_sample(tp->delivered - westwood->interval_delivered, interval_us));
	westwood_begin_interval(westwood, tp);
}

CC_HOOK(void, westwood_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct westwood *westwood = inet_csk_ca(sk);

	if (event == CA_EVENT_TX_START || event == CA_EVENT_CWND_RESTART)
		westwood->measuring = 0;
}

CC_HOOK(void, westwood_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	tcp_reno_cong_avoid(sk, acked);
}

CC_HOOK(u32, westwood_ssthresh, struct sock *sk)
{
	const struct westwood *westwood = inet_csk_ca(sk);
	u32 segments;

	if (!westwood->bandwidth || !westwood->min_rtt_us)
		return tcp_reno_ssthresh(sk);
	segments = min_u32(westwood_path_segments(westwood), tcp_sk(sk)->snd_cwnd);
	return max_u32(segments, 2);
}

CC_HOOK(u32, westwood_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CC_INFO(westwood,
	.title = "Westwood+",
	.environment = "wireless networks with high number of random losses",
	.reference = "Grieco, Mascolo, CCR 34(2), 2004",
	.category = CC_LOSS_BASED,
	.measures = CC_MEASURES_LOSS);

CC_OPS(westwood,
	.init = westwood_init,
	.ssthresh = westwood_ssthresh,
	.cong_avoid = westwood_cong_avoid,
	.cwnd_event = westwood_cwnd_event,
	.pkts_acked = westwood_pkts_acked,
	.undo_cwnd = westwood_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED);
