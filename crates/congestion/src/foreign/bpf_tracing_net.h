/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Macros and inline functions of the kernel's TCP that no vmlinux.h has. Works with a vmlinux.h generated from a kernel
 * and libbpf's own headers as well.
 */
#ifndef OPENTCP_BPF_TRACING_NET_H
#define OPENTCP_BPF_TRACING_NET_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define AF_INET 2
#define AF_INET6 10

#define SOL_SOCKET 1
#define SO_MAX_PACING_RATE 47
#define SOL_TCP 6
#define TCP_CONGESTION 13
#define TCP_CA_NAME_MAX 16

#define TCP_INFINITE_SSTHRESH 0x7fffffff

#define TCP_ECN_OK 1
#define TCP_ECN_QUEUE_CWR 2
#define TCP_ECN_DEMAND_CWR 4
#define TCP_ECN_SEEN 8

#define TCP_CONG_NON_RESTRICTED 0x1
#define TCP_CONG_NEEDS_ECN 0x2

/* of cong_control's flag */
#define FLAG_DATA 0x01
#define FLAG_WIN_UPDATE 0x02
#define FLAG_DATA_ACKED 0x04
#define FLAG_RETRANS_DATA_ACKED 0x08
#define FLAG_SYN_ACKED 0x10
#define FLAG_DATA_SACKED 0x20
#define FLAG_ECE 0x40
#define FLAG_LOST_RETRANS 0x80
#define FLAG_SLOWPATH 0x100
#define FLAG_ORIG_SACK_ACKED 0x200
#define FLAG_SND_UNA_ADVANCED 0x400
#define FLAG_DSACKING_ACK 0x800
#define FLAG_SET_XMIT_TIMER 0x1000
#define FLAG_SACK_RENEGING 0x2000
#define FLAG_UPDATE_TS_RECENT 0x4000
#define FLAG_NO_CHALLENGE_ACK 0x8000
#define FLAG_ACK_MAYBE_DELAYED 0x10000
#define FLAG_DSACK_TLP 0x20000
#define FLAG_ACKED (FLAG_DATA_ACKED | FLAG_SYN_ACKED)
#define FLAG_FORWARD_PROGRESS (FLAG_ACKED | FLAG_DATA_SACKED)

#define sk_family __sk_common.skc_family
#define sk_state __sk_common.skc_state

#define tcp_jiffies32 ((__u32)bpf_jiffies64())

/* A file's own definitions take precedence: CC_OWN_x is set where its text defines x. */
#if !defined(CC_OWN_min) && !defined(min)
#define min(a, b) ((a) < (b) ? (a) : (b))
#endif
#if !defined(CC_OWN_max) && !defined(max)
#define max(a, b) ((a) > (b) ? (a) : (b))
#endif

#if !defined(CC_OWN_before)
static inline __attribute__((unused)) bool before(__u32 seq1, __u32 seq2)
{
	return (__s32)(seq1 - seq2) < 0;
}
#endif

#if !defined(CC_OWN_after)
#define after(seq2, seq1) before(seq1, seq2)
#endif

static inline __attribute__((unused)) struct inet_connection_sock *inet_csk(const struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

static inline __attribute__((unused)) void *inet_csk_ca(const struct sock *sk)
{
	return (void *)inet_csk(sk)->icsk_ca_priv;
}

static inline __attribute__((unused)) struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static inline __attribute__((unused)) bool tcp_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Did the window, not the application, limit what was sent? In slow start half of it used is enough. */
static inline __attribute__((unused)) bool tcp_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

#endif
