// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * DCTCP (RFC 8257), written for libbpf as a kernel's user would: it knows nothing of the contract of cc/.
 *
 *   once a window   M = marked / delivered,  alpha = (1 - g) alpha + g M,  g = 1/16                  3.3
 *   on a mark       cwnd = cwnd (1 - alpha / 2)
 *   on a loss       cwnd = cwnd / 2                                                                  3.5
 *   receiver        an ACK's ECE says whether what it acknowledges was marked                        3.2
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "bpf_tracing_net.h"

#define ALPHA_ONE (1u << 16)
#define GAIN_SHIFT 4

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

/* A value that another program may have stored with the socket, as tests of the kernel do; here nothing depends on it. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, int);
} rfc_dctcp_seed SEC(".maps");

struct rfc_dctcp {
	__u32 alpha;
	__u32 window_end;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 cwnd_loss;
	__u32 prior_rcv_nxt;
	__u8 ce;
	__u8 ecn;
	__u8 pad[2];
};

static __always_inline void begin_window(const struct tcp_sock *tp, struct rfc_dctcp *ca)
{
	ca->window_end = tp->snd_nxt;
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
}

static __always_inline void halve(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct rfc_dctcp *ca = inet_csk_ca(sk);

	ca->cwnd_loss = tp->snd_cwnd;
	tp->snd_ssthresh = max(tp->snd_cwnd >> 1, 2u);
}

SEC("struct_ops/rfc_dctcp_init")
void BPF_PROG(rfc_dctcp_init, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct rfc_dctcp *ca = inet_csk_ca(sk);
	int *seed = bpf_sk_storage_get(&rfc_dctcp_seed, (void *)tp, NULL, 0);

	__builtin_memset(ca, 0, sizeof(*ca));
	ca->alpha = seed ? (__u32)*seed & (ALPHA_ONE - 1) : ALPHA_ONE;
	ca->prior_rcv_nxt = tp->rcv_nxt;
	ca->ecn = !!(tp->ecn_flags & TCP_ECN_OK);
	begin_window(tp, ca);
}

SEC("struct_ops/rfc_dctcp_ack")
void BPF_PROG(rfc_dctcp_ack, struct sock *sk, __u32 flags)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct rfc_dctcp *ca = inet_csk_ca(sk);
	__u32 delivered = tp->delivered - ca->delivered;
	__u64 marked = tp->delivered_ce - ca->delivered_ce;
	__u32 fraction;

	if (before(tp->snd_una, ca->window_end))
		return;
	if (delivered) {
		fraction = min(marked * ALPHA_ONE / delivered, (__u64)ALPHA_ONE);
		ca->alpha = ca->alpha - (ca->alpha >> GAIN_SHIFT) + (fraction >> GAIN_SHIFT);
	}
	begin_window(tp, ca);
}

SEC("struct_ops/rfc_dctcp_ssthresh")
__u32 BPF_PROG(rfc_dctcp_ssthresh, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct rfc_dctcp *ca = inet_csk_ca(sk);

	ca->cwnd_loss = tp->snd_cwnd;
	return max(tp->snd_cwnd - (__u32)(((__u64)tp->snd_cwnd * ca->alpha) >> 17), 2u);
}

SEC("struct_ops/rfc_dctcp_cong_avoid")
void BPF_PROG(rfc_dctcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/rfc_dctcp_state")
void BPF_PROG(rfc_dctcp_state, struct sock *sk, __u8 new_state)
{
	if (new_state == TCP_CA_Recovery && new_state != BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state))
		halve(sk);
}

static __always_inline void set_echo(struct tcp_sock *tp, bool ce)
{
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

static __always_inline void received(struct sock *sk, bool ce)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct rfc_dctcp *ca = inet_csk_ca(sk);

	if (ca->ce != ce) {
		if (icsk->icsk_ack.pending & ICSK_ACK_TIMER) {
			set_echo(tp, ca->ce);
			bpf_tcp_send_ack(tp, ca->prior_rcv_nxt);
		}
		icsk->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	ca->prior_rcv_nxt = tp->rcv_nxt;
	ca->ce = ce;
	set_echo(tp, ce);
}

SEC("struct_ops/rfc_dctcp_event")
void BPF_PROG(rfc_dctcp_event, struct sock *sk, enum tcp_ca_event event)
{
	switch (event) {
	case CA_EVENT_ECN_IS_CE:
		received(sk, true);
		break;
	case CA_EVENT_ECN_NO_CE:
		received(sk, false);
		break;
	case CA_EVENT_LOSS:
		halve(sk);
		break;
	default:
		break;
	}
}

SEC("struct_ops/rfc_dctcp_undo")
__u32 BPF_PROG(rfc_dctcp_undo, struct sock *sk)
{
	const struct rfc_dctcp *ca = inet_csk_ca(sk);

	return max(tcp_sk(sk)->snd_cwnd, ca->cwnd_loss);
}

SEC(".struct_ops")
struct tcp_congestion_ops rfc_dctcp = {
	.init = (void *)rfc_dctcp_init,
	.in_ack_event = (void *)rfc_dctcp_ack,
	.ssthresh = (void *)rfc_dctcp_ssthresh,
	.cong_avoid = (void *)rfc_dctcp_cong_avoid,
	.set_state = (void *)rfc_dctcp_state,
	.cwnd_event = (void *)rfc_dctcp_event,
	.undo_cwnd = (void *)rfc_dctcp_undo,
	.flags = TCP_CONG_NEEDS_ECN,
	.name = "rfc_dctcp",
};

const char _license[] SEC("license") = "Dual BSD/GPL";
