/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Vegas: keep a few segments queued at the bottleneck, no more (Brakmo, O'Malley, Peterson, "TCP Vegas: New Techniques
 * for Congestion Detection and Avoidance", SIGCOMM 1994, section 3).
 *
 * A window of cwnd segments on an empty path is delivered in BaseRTT. When the same window takes RTT > BaseRTT, what
 * did not fit the path waits in a queue, and Vegas can compute how much before anything is dropped:
 *
 *   Expected = cwnd / BaseRTT       the rate if nothing queued
 *   Actual   = cwnd / RTT           the measured rate
 *   backlog  = (Expected - Actual) x BaseRTT = cwnd x (RTT - BaseRTT) / RTT       segments in the queue
 *
 * Once a round trip:
 *
 *   backlog < alpha             cwnd += 1     the flow leaves capacity unused
 *   alpha <= backlog <= beta    no change     enough is queued to use capacity that becomes free
 *   backlog > beta              cwnd -= 1     drain the excess
 *
 *   in slow start, backlog > gamma: the path is full, continue with the rule above
 *
 * Where every flow is Vegas, queues hold alpha to beta segments a flow and nothing is lost. Against flows that fill
 * queues until they drop, Vegas yields its share: it takes their queue for its own.
 *
 * Differences from the paper
 *   - Slow start doubles every round trip and gamma is checked once a round trip, as in Linux and in ns-3. The paper
 *     doubles every *other* round trip, so that a round of constant window can be measured. The least RTT of a round is
 *     that of its first segments, sent before the round's own growth stood in the queue, so it is a fair measure
 *     without the pause; and in a data centre the pauses would be a good part of a short flow.
 *   - On leaving slow start cwnd falls to what the path holds, plus one (as in Linux); the paper only changes the rule.
 *   - A loss halves the window as in NewReno. The paper retransmits earlier, by a clock of its own (section 3.1), and
 *     reduces for the losses found so; retransmission is the host's matter here.
 *   - RTT is the least of a round (Linux), not that of one distinguished segment.
 *   - A round of a single RTT sample may be only a delayed ACK, and is ignored: the window grows as NewReno's. (Linux
 *     and ns-3 require three samples, which in a data centre, where the path holds less than one segment, leaves every
 *     flow a standing queue of some five.)
 * Difference from Linux: BaseRTT is the least RTT of the connection, its handshake included, as in the paper. Linux forgets it after each idle
 * time; a flow that sends in bursts would learn other flows' standing queue as its base. The price of remembering: when
 * the route becomes longer, the difference is taken for a queue.
 */
#include "tcp.h"

/* Segments of backlog (section 3.2 of the paper; 2 and 4 are the values of its "Vegas-2,4"). */
#define VEGAS_ALPHA 2
#define VEGAS_BETA 4
#define VEGAS_GAMMA 1

/* Samples of a round above which its least RTT counts: of two, at most one comes from an ACK that a timer delayed. */
#define VEGAS_MIN_SAMPLES 1

/* Segments. The smallest window that still gives an ACK at once from a receiver which delays every second. */
#define VEGAS_MIN_CWND 2

struct vegas {
	struct rtt_round round;
};
CC_ASSERT_STATE_FITS(struct vegas);

/*
 * backlog x RTT = cwnd x (RTT - BaseRTT), in segments times us: compared with alpha x RTT, no division is needed and
 * nothing is rounded. 10^6 segments times 2^31 us stay under 2^51.
 */
static u64 vegas_backlog_rtt(const struct rtt_round *round, u32 cwnd)
{
	return (u64)cwnd * (round->least_us - round->base_us);
}

/* cwnd x BaseRTT / RTT: the segments that the path holds with its queue empty. RTT >= 1 once sampled. */
static u32 vegas_path_segments(const struct rtt_round *round, u32 cwnd)
{
	return (u32)((u64)cwnd * round->base_us / max_u32(round->least_us, 1));
}

/* The rule above, at the end of a round. */
static void vegas_adjust(struct sock *sk, const struct rtt_round *round, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tp->snd_cwnd;
	u64 rtt = round->least_us;
	u64 backlog_rtt = vegas_backlog_rtt(round, cwnd);

	if (tcp_in_slow_start(tp)) {
		if (backlog_rtt <= VEGAS_GAMMA * rtt) {
			if (tcp_is_cwnd_limited(sk))
				tcp_slow_start(tp, acked);
			return;
		}
		cwnd = min_u32(cwnd, vegas_path_segments(round, cwnd) + 1);
	} else if (backlog_rtt > VEGAS_BETA * rtt) {
		cwnd--;
	} else if (backlog_rtt < VEGAS_ALPHA * rtt && tcp_is_cwnd_limited(sk)) {
		cwnd++;
	}
	tp->snd_cwnd = clamp_u32(cwnd, VEGAS_MIN_CWND, tp->snd_cwnd_clamp);
	/* slow start must not regain what was just given up */
	tp->snd_ssthresh = max_u32(min_u32(tp->snd_ssthresh, tp->snd_cwnd), 2);
}

CC_HOOK(void, vegas_init, struct sock *sk)
{
	struct vegas *vegas = inet_csk_ca(sk);

	rtt_round_init(&vegas->round, tcp_sk(sk));
}

CC_HOOK(void, vegas_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct vegas *vegas = inet_csk_ca(sk);

	rtt_round_sample(&vegas->round, sample->rtt_us);
}

CC_HOOK(void, vegas_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct vegas *vegas = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	/* RTTs during retransmissions say nothing of a queue */
	if (tcp_ca_state(sk) != TCP_CA_Open) {
		tcp_reno_cong_avoid(sk, acked);
		return;
	}
	if (!rtt_round_over(&vegas->round, ack)) {
		if (tcp_in_slow_start(tp) && tcp_is_cwnd_limited(sk))
			tcp_slow_start(tp, acked);
		return;
	}
	if (vegas->round.samples > VEGAS_MIN_SAMPLES)
		vegas_adjust(sk, &vegas->round, acked);
	else
		tcp_reno_cong_avoid(sk, acked);
	rtt_round_begin(&vegas->round, tp);
}

/* A round that was interrupted by loss or by idleness measures nothing. */
CC_HOOK(void, vegas_set_state, struct sock *sk, u8 new_state)
{
	struct vegas *vegas = inet_csk_ca(sk);

	if (new_state == TCP_CA_Open)
		rtt_round_begin(&vegas->round, tcp_sk(sk));
}

CC_HOOK(void, vegas_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct vegas *vegas = inet_csk_ca(sk);

	if (event == CA_EVENT_TX_START || event == CA_EVENT_CWND_RESTART)
		rtt_round_begin(&vegas->round, tcp_sk(sk));
}

CC_HOOK(u32, vegas_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

CC_HOOK(u32, vegas_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CC_INFO(vegas,
	.title = "Vegas",
	.environment = "wired, low bandwidth, small delay",
	.reference = "Brakmo, O'Malley, Peterson, SIGCOMM 1994",
	.category = CC_DELAY_BASED,
	.measures = CC_MEASURES_DELAY | CC_MEASURES_LOSS);

CC_OPS(vegas,
	.init = vegas_init,
	.ssthresh = vegas_ssthresh,
	.cong_avoid = vegas_cong_avoid,
	.set_state = vegas_set_state,
	.cwnd_event = vegas_cwnd_event,
	.pkts_acked = vegas_pkts_acked,
	.undo_cwnd = vegas_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED);
