/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * YeAH, Yet Another Highspeed TCP: grow like Scalable while the queue is short, drain it like Vegas when it is not, and
 * step down to NewReno where NewReno flows compete (Baiocchi, Castellani, Vacirca, "YeAH-TCP: Yet Another Highspeed
 * TCP", PFLDnet 2007).
 *
 * Once a round trip, from its least RTT (RTTmin) and the least of the connection (RTTbase):
 *
 *   Q = (RTTmin - RTTbase) x cwnd / RTTmin          segments in the queue, as Vegas estimates them
 *   L = (RTTmin - RTTbase) / RTTbase                how much the queue adds to the delay
 *
 *   fast mode    Q <= alpha and L <= 1/phi          cwnd += 0.01 per segment acknowledged (Scalable)
 *   slow mode    else                               cwnd += 1 per round trip (NewReno), and
 *     Q > alpha                                     cwnd -= min(Q / gamma, cwnd / 2^epsilon), ssthresh = cwnd:
 *                                                   *precautionary decongestion*, not below cwnd_reno
 *
 * Draining its queue would starve YeAH against flows that do not drain. So it counts: cwnd_reno is the window that a
 * NewReno flow would have here, half of it after a loss, one more per round in slow mode; decongestion stops at it.
 * If the queue stays long although drained, rounds in slow mode come one after another: NewReno flows compete. Rounds
 * in fast mode show that they do not; after more than zeta of those, cwnd_reno restarts.
 *
 *   loss     cwnd -= min(max(cwnd / 2^delta, Q), cwnd / 2)       alone: give up what is queued, at least 1/8
 *            cwnd -= cwnd / 2                                     after rho rounds of slow mode in a row
 *
 * An erratum of the data-centre study that this project reproduces (its Equation 16): it prints the first line as the
 * new *ssthresh*. It is the *reduction*; taken as printed, a flow with a short queue would fall to an eighth.
 *
 * Differences from the paper
 *   - In fast mode windows under 100 segments grow as NewReno's, the faster of the two rules (as in Linux): YeAH is
 *     never slower than what it competes with.
 *   - Q and L come from the least RTT of a round (Linux); rounds with one or two samples, perhaps of delayed ACKs only,
 *     leave the mode as it is.
 *   - After idle time or a recovery a new round begins.
 */
#include "tcp.h"

/* Segments acknowledged per segment of growth in fast mode: Scalable's 0.01. */
#define YEAH_SEGMENTS_PER_INCREASE 100

#define YEAH_ALPHA 80		/* segments: the longest queue that fast mode tolerates */
#define YEAH_GAMMA 1		/* decongestion removes Q / gamma */
#define YEAH_DELTA 3		/* a loss removes at least cwnd >> delta */
#define YEAH_EPSILON 1		/* decongestion removes at most cwnd >> epsilon */
#define YEAH_PHI 8		/* fast mode needs a queueing delay of at most RTTbase / phi */
#define YEAH_RHO 16		/* rounds of slow mode in a row after which a loss halves */
#define YEAH_ZETA 50		/* rounds of fast mode after which cwnd_reno restarts */

/* Samples of a round above which its least RTT counts. */
#define YEAH_MIN_SAMPLES 2

/* Segments: cwnd_reno's start; it is set to half of the window when it is first needed. */
#define YEAH_RENO_START 2

/* A bound, so that the counter of rounds cannot wrap. */
#define YEAH_MANY_ROUNDS 0xffffff

struct yeah {
	struct rtt_round round;
	u32 queue;		/* Q of the last round, segments */
	u32 cwnd_reno;		/* segments */
	u32 slow_rounds;	/* in a row until now; 0: fast mode */
	u32 fast_rounds;	/* since the last loss or restart of cwnd_reno */
};
CC_ASSERT_STATE_FITS(struct yeah);

/* Q. 10^6 segments times 2^31 us are under 2^51; RTTmin >= RTTbase >= 1 once sampled. */
static u32 yeah_queue(const struct rtt_round *round, u32 cwnd)
{
	return (u32)((u64)cwnd * (round->least_us - round->base_us) / max_u32(round->least_us, 1));
}

/* L > 1/phi. RTTs are under 2^31, times 8 under 2^34: in 64 bits. */
static bool yeah_delay_is_long(const struct rtt_round *round)
{
	return (u64)YEAH_PHI * (round->least_us - round->base_us) > round->base_us;
}

/* Precautionary decongestion. */
static void yeah_decongest(struct tcp_sock *tp, const struct yeah *yeah)
{
	u32 reduction = min_u32(yeah->queue / YEAH_GAMMA, tp->snd_cwnd >> YEAH_EPSILON);

	if (tp->snd_cwnd <= yeah->cwnd_reno)
		return;
	tp->snd_cwnd = max_u32(tp->snd_cwnd - reduction, max_u32(yeah->cwnd_reno, 2));
	tp->snd_ssthresh = tp->snd_cwnd;
}

/* The choice of the mode, at the end of a round. */
static void yeah_judge_round(struct tcp_sock *tp, struct yeah *yeah)
{
	yeah->queue = yeah_queue(&yeah->round, tp->snd_cwnd);
	if (yeah->queue <= YEAH_ALPHA && !yeah_delay_is_long(&yeah->round)) {
		yeah->slow_rounds = 0;
		yeah->fast_rounds++;
		if (yeah->fast_rounds > YEAH_ZETA) {
			yeah->cwnd_reno = YEAH_RENO_START;
			yeah->fast_rounds = 0;
		}
		return;
	}
	if (yeah->queue > YEAH_ALPHA)
		yeah_decongest(tp, yeah);
	if (yeah->cwnd_reno <= YEAH_RENO_START)
		yeah->cwnd_reno = max_u32(tp->snd_cwnd >> 1, 2);
	else
		yeah->cwnd_reno++;
	yeah->slow_rounds = min_u32(yeah->slow_rounds + 1, YEAH_MANY_ROUNDS);
}

CC_HOOK(void, yeah_init, struct sock *sk)
{
	struct yeah *yeah = inet_csk_ca(sk);

	rtt_round_init(&yeah->round, tcp_sk(sk));
	yeah->queue = 0;
	yeah->cwnd_reno = YEAH_RENO_START;
	yeah->slow_rounds = 0;
	yeah->fast_rounds = 0;
}

CC_HOOK(void, yeah_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct yeah *yeah = inet_csk_ca(sk);

	rtt_round_sample(&yeah->round, sample->rtt_us);
}

CC_HOOK(void, yeah_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct yeah *yeah = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_is_cwnd_limited(sk)) {
		if (tcp_in_slow_start(tp))
			acked = tcp_slow_start(tp, acked);
		if (acked && yeah->slow_rounds)
			tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
		else if (acked)
			tcp_cong_avoid_ai(tp, min_u32(tp->snd_cwnd, YEAH_SEGMENTS_PER_INCREASE), acked);
	}
	if (!rtt_round_over(&yeah->round, ack))
		return;
	if (yeah->round.samples > YEAH_MIN_SAMPLES)
		yeah_judge_round(tp, yeah);
	rtt_round_begin(&yeah->round, tp);
}

/* cwnd - min(max(cwnd / 8, Q), cwnd / 2), or half where NewReno competes. */
CC_HOOK(u32, yeah_ssthresh, struct sock *sk)
{
	struct yeah *yeah = inet_csk_ca(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;
	u32 reduction = cwnd >> 1;

	if (yeah->slow_rounds < YEAH_RHO)
		reduction = min_u32(max_u32(cwnd >> YEAH_DELTA, yeah->queue), reduction);
	yeah->fast_rounds = 0;
	yeah->cwnd_reno = max_u32(yeah->cwnd_reno >> 1, 2);
	return max_u32(cwnd - reduction, 2);
}

CC_HOOK(void, yeah_set_state, struct sock *sk, u8 new_state)
{
	struct yeah *yeah = inet_csk_ca(sk);

	if (new_state == TCP_CA_Open)
		rtt_round_begin(&yeah->round, tcp_sk(sk));
}

CC_HOOK(void, yeah_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct yeah *yeah = inet_csk_ca(sk);

	if (event == CA_EVENT_TX_START || event == CA_EVENT_CWND_RESTART)
		rtt_round_begin(&yeah->round, tcp_sk(sk));
}

CC_HOOK(u32, yeah_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CC_INFO(yeah,
	.title = "YeAH",
	.environment = "high BDP",
	.reference = "Baiocchi, Castellani, Vacirca, PFLDnet 2007",
	.category = CC_HYBRID,
	.measures = CC_MEASURES_LOSS | CC_MEASURES_DELAY);

CC_OPS(yeah,
	.init = yeah_init,
	.ssthresh = yeah_ssthresh,
	.cong_avoid = yeah_cong_avoid,
	.set_state = yeah_set_state,
	.cwnd_event = yeah_cwnd_event,
	.pkts_acked = yeah_pkts_acked,
	.undo_cwnd = yeah_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED);
