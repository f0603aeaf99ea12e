/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The kernel functions that foreign files declare `extern ... __ksym`, and the values that they declare `__kconfig`:
 * linked to a file's native build. All are weak, so that a file may have one of its own under the same name.
 *
 * The kernel's cubictcp_*, dctcp_* and bbr_* are its algorithms' hooks; here they are those of cc/, built beside this
 * file. Their private state is what inet_csk_ca(sk) holds, as in the kernel.
 */
#define CC_WITHOUT_TABLE	/* this is not the foreign file itself */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#define KFUNC(ret, name, ...)                                                             \
	extern ret name(__VA_ARGS__) __attribute__((weak, visibility("hidden")));         \
	ret name(__VA_ARGS__)

extern const unsigned long CONFIG_HZ __attribute__((weak, visibility("hidden")));
const unsigned long CONFIG_HZ = 1000;	/* the host's tick is a millisecond */

extern const int LINUX_KERNEL_VERSION __attribute__((weak, visibility("hidden")));
const int LINUX_KERNEL_VERSION = 6 << 16 | 18 << 8;	/* the kernel whose order of hooks the host follows */

KFUNC(u32, tcp_slow_start, struct tcp_sock *tp, u32 acked)
{
	return cc_native_tcp_slow_start(tp, acked);
}

KFUNC(void, tcp_cong_avoid_ai, struct tcp_sock *tp, u32 w, u32 acked)
{
	cc_native_tcp_cong_avoid_ai(tp, w, acked);
}

KFUNC(u32, tcp_reno_ssthresh, struct sock *sk)
{
	return cc_native_tcp_reno_ssthresh(sk);
}

KFUNC(u32, tcp_reno_undo_cwnd, struct sock *sk)
{
	return cc_native_tcp_reno_undo_cwnd(sk);
}

KFUNC(void, tcp_reno_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	cc_native_tcp_reno_cong_avoid(sk, acked);
}

/* ---- Helpers that return what they do in a kernel where nothing else is set up ---- */

#define ENOTSUPP 524

KFUNC(long, bpf_setsockopt, void *sk, int level, int name, void *value, int size)
{
	(void)sk, (void)level, (void)name, (void)value, (void)size;
	return -ENOTSUPP;
}

KFUNC(long, bpf_getsockopt, void *sk, int level, int name, void *value, int size)
{
	(void)sk, (void)level, (void)name, (void)value, (void)size;
	return -ENOTSUPP;
}

KFUNC(void *, cc_no_stored_value, void *sk)
{
	(void)sk;
	return NULL;
}

/* ---- The hooks of cc/, under the kernel's names ---- */

extern const struct cc_algorithm cc_kernels_cubic, cc_kernels_dctcp, cc_kernels_bbr;

#define HOOK_VOID(name, algorithm, hook, parameters, arguments)           \
	KFUNC(void, name, parameters)                                     \
	{                                                                 \
		if (cc_kernels_##algorithm.ops.hook)                      \
			cc_kernels_##algorithm.ops.hook arguments;        \
	}
#define HOOK_U32(name, algorithm, hook, otherwise)                                              \
	KFUNC(u32, name, struct sock *sk)                                                       \
	{                                                                                       \
		return cc_kernels_##algorithm.ops.hook ? cc_kernels_##algorithm.ops.hook(sk) : (otherwise); \
	}
#define SK struct sock *sk
#define AND ,

#if defined(CC_KERNELS_CUBIC)
HOOK_VOID(cubictcp_init, cubic, init, SK, (sk))
HOOK_U32(cubictcp_recalc_ssthresh, cubic, ssthresh, cc_native_tcp_reno_ssthresh(sk))
HOOK_VOID(cubictcp_cong_avoid, cubic, cong_avoid, SK AND u32 ack AND u32 acked, (sk, ack, acked))
HOOK_VOID(cubictcp_state, cubic, set_state, SK AND u8 new_state, (sk, new_state))
HOOK_VOID(cubictcp_cwnd_event, cubic, cwnd_event, SK AND enum tcp_ca_event event, (sk, event))
HOOK_VOID(cubictcp_acked, cubic, pkts_acked, SK AND const struct ack_sample *sample, (sk, sample))
#endif

#if defined(CC_KERNELS_DCTCP)
HOOK_VOID(dctcp_init, dctcp, init, SK, (sk))
HOOK_U32(dctcp_ssthresh, dctcp, ssthresh, cc_native_tcp_reno_ssthresh(sk))
HOOK_VOID(dctcp_update_alpha, dctcp, in_ack_event, SK AND u32 flags, (sk, flags))
HOOK_VOID(dctcp_state, dctcp, set_state, SK AND u8 new_state, (sk, new_state))
HOOK_VOID(dctcp_cwnd_event, dctcp, cwnd_event, SK AND enum tcp_ca_event event, (sk, event))
HOOK_U32(dctcp_cwnd_undo, dctcp, undo_cwnd, cc_native_tcp_reno_undo_cwnd(sk))
#endif

#if defined(CC_KERNELS_BBR)
HOOK_VOID(bbr_init, bbr, init, SK, (sk))
HOOK_U32(bbr_ssthresh, bbr, ssthresh, cc_native_tcp_sk(sk)->snd_ssthresh)
HOOK_VOID(bbr_main, bbr, cong_control, SK AND u32 ack AND int flag AND const struct rate_sample *rs, (sk, ack, flag, rs))
HOOK_VOID(bbr_set_state, bbr, set_state, SK AND u8 new_state, (sk, new_state))
HOOK_VOID(bbr_cwnd_event, bbr, cwnd_event, SK AND enum tcp_ca_event event, (sk, event))
HOOK_U32(bbr_undo_cwnd, bbr, undo_cwnd, cc_native_tcp_sk(sk)->snd_cwnd)
HOOK_U32(bbr_sndbuf_expand, bbr, sndbuf_expand, 3)
HOOK_U32(bbr_min_tso_segs, bbr, min_tso_segs, 2)
#endif
