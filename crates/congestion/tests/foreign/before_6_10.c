// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * DCTCP (RFC 8257) in the manner of the tests that came with kernels from 5.6 to 6.9: bpf_tcp_helpers.h in place of
 * vmlinux.h, BPF_TCP_OPS_n with each parameter's type and name apart, BPF_STRUCT_OPS beside it, headers of the system,
 * and a socket without ECN that another algorithm takes over.
 *
 *   once a window   alpha = (1 - g) alpha + g M,  g = 1/16          M: the fraction of segments that was marked
 *   on a mark       cwnd = cwnd (1 - alpha / 2)
 */
#include <stddef.h>
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <linux/stddef.h>
#include <linux/tcp.h>
#include <errno.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "bpf_tcp_helpers.h"

char _license[] SEC("license") = "GPL";

#define ALPHA_ONE 1024u
#define GAIN_SHIFT 4

struct aged {
	__u32 alpha;
	__u32 window_end;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 cwnd_loss;
	__u32 rcv_nxt;
	__u32 ce;
};

static __always_inline void begin_window(const struct tcp_sock *tp, struct aged *ca)
{
	ca->window_end = tp->snd_nxt;
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
}

BPF_TCP_OPS_1(aged_init, void, struct sock *, sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct aged *ca = inet_csk_ca(sk);

	ca->alpha = ALPHA_ONE;
	ca->rcv_nxt = tp->rcv_nxt;
	ca->cwnd_loss = 0;
	ca->ce = 0;
	begin_window(tp, ca);
}

BPF_TCP_OPS_1(aged_ssthresh, __u32, struct sock *, sk)
{
	struct aged *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	ca->cwnd_loss = tp->snd_cwnd;
	return max(tp->snd_cwnd - ((tp->snd_cwnd * ca->alpha) >> 11U), 2U);
}

BPF_TCP_OPS_2(aged_update_alpha, void, struct sock *, sk, __u32, flags)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct aged *ca = inet_csk_ca(sk);
	__u32 marked = tp->delivered_ce - ca->delivered_ce;
	__u32 delivered = tp->delivered - ca->delivered;

	if (before(tp->snd_una, ca->window_end))
		return;
	/* alpha becomes 0 at last: below 16 it falls by one step a window */
	ca->alpha -= min_not_zero(ca->alpha, ca->alpha >> GAIN_SHIFT);
	if (marked && delivered)
		ca->alpha = min(ca->alpha + (marked << (10 - GAIN_SHIFT)) / delivered, ALPHA_ONE);
	begin_window(tp, ca);
}

BPF_TCP_OPS_3(aged_cong_avoid, void, struct sock *, sk, __u32, ack, __u32, acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

void BPF_STRUCT_OPS(aged_state, struct sock *sk, __u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct aged *ca = inet_csk_ca(sk);

	if (new_state == TCP_CA_Recovery && new_state != BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state)) {
		ca->cwnd_loss = tp->snd_cwnd;
		tp->snd_ssthresh = max(tp->snd_cwnd >> 1U, 2U);
	}
}

static __always_inline void echo(struct tcp_sock *tp, __u32 ce)
{
	if (ce == 1)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

BPF_TCP_OPS_2(aged_event, void, struct sock *, sk, enum tcp_ca_event, event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct aged *ca = inet_csk_ca(sk);
	__u32 ce = event == CA_EVENT_ECN_IS_CE;

	if (event != CA_EVENT_ECN_IS_CE && event != CA_EVENT_ECN_NO_CE)
		return;
	if (ca->ce != ce) {
		/* what was received until now bears the other mark; an ACK that waits says so first */
		if (inet_csk(sk)->icsk_ack.pending & ICSK_ACK_TIMER) {
			echo(tp, ca->ce);
			bpf_tcp_send_ack(tp, ca->rcv_nxt);
		}
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	ca->rcv_nxt = tp->rcv_nxt;
	ca->ce = ce;
	echo(tp, ce);
}

SEC("struct_ops/aged_undo")
__u32 BPF_PROG(aged_undo, struct sock *sk)
{
	const struct aged *ca = inet_csk_ca(sk);

	return max(tcp_sk(sk)->snd_cwnd, ca->cwnd_loss);
}

SEC(".struct_ops")
struct tcp_congestion_ops aged = {
	.init		= (void *)aged_init,
	.in_ack_event	= (void *)aged_update_alpha,
	.cwnd_event	= (void *)aged_event,
	.ssthresh	= (void *)aged_ssthresh,
	.cong_avoid	= (void *)aged_cong_avoid,
	.undo_cwnd	= (void *)aged_undo,
	.set_state	= (void *)aged_state,
	.flags		= TCP_CONG_NEEDS_ECN,
	.name		= "bpf_aged_dctcp",
};
