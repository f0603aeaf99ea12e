/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What files written for kernels before 6.10 include in place of vmlinux.h and bpf_tracing_net.h. */
#ifndef OPENTCP_BPF_TCP_HELPERS_H
#define OPENTCP_BPF_TCP_HELPERS_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "bpf_tracing_net.h"

#define BPF_STRUCT_OPS(name, parameters...) SEC("struct_ops/" #name) BPF_PROG(name, ##parameters)

#define min_not_zero(a, b) ({ __typeof__(a) cc_a = (a); __typeof__(b) cc_b = (b); \
	cc_a == 0 ? cc_b : cc_b == 0 ? cc_a : min(cc_a, cc_b); })

#if !defined(CC_OWN_div64_u64)
static inline __attribute__((unused)) __u64 div64_u64(__u64 dividend, __u64 divisor)
{
	return dividend / divisor;
}
#define div64_ul div64_u64
#endif

extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;

#endif
