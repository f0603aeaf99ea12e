/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What files written for kernels before 6.10 include in place of vmlinux.h and bpf_tracing_net.h. */
#ifndef OPENTCP_BPF_TCP_HELPERS_H
#define OPENTCP_BPF_TCP_HELPERS_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "bpf_tracing_net.h"

/* A hook: `__u32 BPF_STRUCT_OPS(name, struct sock *sk)`; before Linux 5.7 `BPF_TCP_OPS_1(name, __u32, struct sock *, sk)`. */
#define BPF_STRUCT_OPS(name, parameters...) SEC("struct_ops/" #name) BPF_PROG(name, ##parameters)
#define BPF_TCP_OPS_0(name, answer) SEC("struct_ops/" #name) answer BPF_PROG(name, struct sock *cc_sk __attribute__((unused)))
#define BPF_TCP_OPS_1(name, answer, type1, a) SEC("struct_ops/" #name) answer BPF_PROG(name, type1 a)
#define BPF_TCP_OPS_2(name, answer, type1, a, type2, b) \
	SEC("struct_ops/" #name) answer BPF_PROG(name, type1 a, type2 b)
#define BPF_TCP_OPS_3(name, answer, type1, a, type2, b, type3, c) \
	SEC("struct_ops/" #name) answer BPF_PROG(name, type1 a, type2 b, type3 c)
#define BPF_TCP_OPS_4(name, answer, type1, a, type2, b, type3, c, type4, d) \
	SEC("struct_ops/" #name) answer BPF_PROG(name, type1 a, type2 b, type3 c, type4 d)
#define BPF_TCP_OPS_5(name, answer, type1, a, type2, b, type3, c, type4, d, type5, e) \
	SEC("struct_ops/" #name) answer BPF_PROG(name, type1 a, type2 b, type3 c, type4 d, type5 e)

#define min_not_zero(a, b) ({ __typeof__(a) cc_a = (a); __typeof__(b) cc_b = (b); \
	cc_a == 0 ? cc_b : cc_b == 0 ? cc_a : min(cc_a, cc_b); })

#if !defined(CC_OWN_div64_u64)
static inline __attribute__((unused)) __u64 div64_u64(__u64 dividend, __u64 divisor)
{
	return dividend / divisor;
}
#define div64_ul div64_u64
#endif

/* Are two algorithms' names, of TCP_CA_NAME_MAX bytes at most, the same? */
static inline __attribute__((unused)) bool tcp_cc_eq(const char *a, const char *b)
{
	for (int i = 0; i < TCP_CA_NAME_MAX && a[i] == b[i]; i++)
		if (a[i] == '\0' || i == TCP_CA_NAME_MAX - 1)
			return true;
	return false;
}

extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;

#endif
