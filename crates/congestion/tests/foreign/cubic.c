// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * CUBIC (RFC 9438), written for libbpf as a kernel's user would: it knows nothing of the contract of cc/.
 *
 *   W_cubic(t) = C (t - K)^3 + W_max,   K = cbrt((W_max - cwnd_epoch) / C),   C = 0.4, beta = 0.7      4.2, (1) (2)
 *   W_est     += alpha acked / cwnd,    alpha = 3 (1 - beta) / (1 + beta) = 9 / 17                     4.3, (4)
 *
 * Time is counted in 1/1024 s, from the kernel's ticks.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "bpf_tracing_net.h"

char _license[] SEC("license") = "GPL";

extern unsigned long CONFIG_HZ __kconfig;

extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

#define TIME_SHIFT 10
#define OFFSET_MAX (1u << 20) /* 1024 s: its cube fits 60 bits */

struct epoch_cubic {
	__u32 w_max;	/* segments */
	__u32 cwnd_prior; /* segments at the last reduction */
	__u32 begin;	/* ticks */
	__u32 k;	/* 1/1024 s */
	__u32 w_est;	/* segments */
	__u32 credit;	/* 17ths of a segment acknowledged towards w_est */
	__u32 min_rtt_us;
	__u8 running;	/* an epoch has begun */
	__u8 pad[3];
};

static __always_inline int fls64(__u64 x)
{
	int bits = 0;

	for (int step = 32; step > 0; step >>= 1) {
		if (x >> step) {
			bits += step;
			x >>= step;
		}
	}
	return bits + (int)x;
}

/* Newton's iteration from above. */
static __always_inline __u32 cube_root(__u64 x)
{
	__u64 root = 1ull << ((__u32)(fls64(x) + 2) / 3);

	if (!x)
		return 0;
	for (int i = 0; i < 7; i++)
		root = min(root, (2 * root + x / (root * root)) / 3);
	return root;
}

static __always_inline void begin_epoch(struct epoch_cubic *ca, __u32 now, __u32 cwnd)
{
	ca->running = 1;
	ca->begin = now;
	ca->w_est = cwnd;
	ca->credit = 0;
	if (cwnd < ca->w_max) {
		/* (w_max - cwnd) / 0.4, in 2^-30 s^3 */
		ca->k = cube_root(((__u64)(ca->w_max - cwnd) << (3 * TIME_SHIFT)) * 5 / 2);
	} else {
		ca->k = 0;
		ca->w_max = cwnd;
	}
}

/* W_cubic at t, 1/1024 s after the epoch's begin. */
static __always_inline __u32 w_cubic(const struct epoch_cubic *ca, __u64 t)
{
	__u64 offset = t < ca->k ? ca->k - t : t - ca->k;
	__u64 change;

	offset = min(offset, (__u64)OFFSET_MAX);
	change = (offset * offset * offset * 2 / 5) >> (3 * TIME_SHIFT);
	if (t >= ca->k)
		return min(ca->w_max + change, (__u64)TCP_INFINITE_SSTHRESH);
	return ca->w_max > change ? ca->w_max - change : 0;
}

/* How many segments acknowledged make one of growth. */
static __always_inline __u32 growth(struct epoch_cubic *ca, __u32 cwnd, __u32 acked)
{
	__u64 ticks = tcp_jiffies32 - ca->begin;
	__u64 t = (ticks << TIME_SHIFT) / CONFIG_HZ + (((__u64)ca->min_rtt_us << TIME_SHIFT) / 1000000);
	__u32 target = min(w_cubic(ca, t), cwnd + cwnd / 2);
	__u32 per_segment = 17 * cwnd;

	ca->credit += acked * (ca->w_est < ca->cwnd_prior ? 9 : 17);
	if (per_segment && ca->credit >= per_segment) {
		ca->w_est += ca->credit / per_segment;
		ca->credit %= per_segment;
	}
	target = max(target, ca->w_est);
	if (target > cwnd)
		return max(cwnd / (target - cwnd), 2u);
	return 100 * cwnd;
}

SEC("struct_ops")
void BPF_PROG(rfc_cubic_init, struct sock *sk)
{
	struct epoch_cubic *ca = inet_csk_ca(sk);

	__builtin_memset(ca, 0, sizeof(*ca));
}

SEC("struct_ops")
void BPF_PROG(rfc_cubic_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct epoch_cubic *ca = inet_csk_ca(sk);
	__u32 rtt;

	if (sample->rtt_us < 0)
		return;
	rtt = max((__u32)sample->rtt_us, 1u);
	if (!ca->min_rtt_us || rtt < ca->min_rtt_us)
		ca->min_rtt_us = rtt;
}

SEC("struct_ops")
void BPF_PROG(rfc_cubic_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct epoch_cubic *ca = inet_csk_ca(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	if (!ca->running)
		begin_epoch(ca, tcp_jiffies32, tp->snd_cwnd);
	tcp_cong_avoid_ai(tp, growth(ca, tp->snd_cwnd, acked), acked);
}

SEC("struct_ops")
__u32 BPF_PROG(rfc_cubic_ssthresh, struct sock *sk)
{
	struct epoch_cubic *ca = inet_csk_ca(sk);
	__u32 cwnd = BPF_CORE_READ(tcp_sk(sk), snd_cwnd);

	ca->running = 0;
	ca->cwnd_prior = cwnd;
	ca->w_max = cwnd < ca->w_max ? (__u32)((__u64)cwnd * 17 / 20) : cwnd;	/* 4.7: fast convergence */
	return max((__u32)((__u64)cwnd * 7 / 10), 2u);
}

SEC("struct_ops")
void BPF_PROG(rfc_cubic_state, struct sock *sk, __u8 new_state)
{
	struct epoch_cubic *ca = inet_csk_ca(sk);

	if (new_state == TCP_CA_Loss) {
		bpf_printk("timeout at %u segments", tcp_sk(sk)->snd_cwnd);
		ca->running = 0;
		ca->w_max = 0;
	}
}

/* 5.8: an idle time does not count. */
SEC("struct_ops")
void BPF_PROG(rfc_cubic_event, struct sock *sk, enum tcp_ca_event event)
{
	struct epoch_cubic *ca = inet_csk_ca(sk);
	__u32 now = tcp_jiffies32;
	__s32 idle = now - tcp_sk(sk)->lsndtime;

	if (event != CA_EVENT_TX_START || !ca->running || idle <= 0)
		return;
	ca->begin += idle;
	if (after(ca->begin, now))
		ca->begin = now;
}

SEC("struct_ops")
__u32 BPF_PROG(rfc_cubic_undo, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops rfc_cubic = {
	.init = (void *)rfc_cubic_init,
	.ssthresh = (void *)rfc_cubic_ssthresh,
	.cong_avoid = (void *)rfc_cubic_cong_avoid,
	.set_state = (void *)rfc_cubic_state,
	.cwnd_event = (void *)rfc_cubic_event,
	.pkts_acked = (void *)rfc_cubic_acked,
	.undo_cwnd = (void *)rfc_cubic_undo,
	.name = "rfc_cubic",
};
