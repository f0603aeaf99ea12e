/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What Linux's own congestion-control modules (net/ipv4/tcp_*.c) take from the kernel's headers: every header that such a file includes is
 * this one. Natively only, on the structures of the contract: a field or function that a host does not have is an error at its line.
 *
 * A hook may ask for the time or a random number without naming its socket, so the host calls each by a function that notes the socket first.
 */
#ifndef OPENTCP_MODULE_H
#define OPENTCP_MODULE_H

struct sock;
struct module;
union tcp_cc_info;
enum tcp_ca_event;

/* Members that the kernel's table has besides. They stand after the contract's, so that the host takes the table as one of its own. */
#define CC_OPS_MORE                                                                              \
	void (*cwnd_event_tx_start)(struct sock *sk);                                            \
	cc_size (*get_info)(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);       \
	struct module *owner;                                                                    \
	u32 key;

typedef __SIZE_TYPE__ cc_size;

#define CC_WITHOUT_TABLE
#define CC_SHARED_CURRENT
#include "vmlinux.h"

/* ---- The language of the kernel's sources ---- */

#define __init
#define __exit
#define __read_mostly
#define __ro_after_init
#define __maybe_unused __attribute__((unused))
#define __always_unused __attribute__((unused))
#define __bpf_kfunc
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define noinline __attribute__((noinline))
#define __pure __attribute__((pure))
#define fallthrough __attribute__((fallthrough))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile __typeof__(x) *)&(x) = (value))
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), "BUILD_BUG_ON(" #condition ")")
#define WARN_ON(condition) ({ bool cc_warn = (condition); unlikely(cc_warn); })
#define WARN_ON_ONCE(condition) WARN_ON(condition)
#define WARN_ONCE(condition, ...) WARN_ON(condition)
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define offsetof(type, member) __builtin_offsetof(type, member)
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define BIT(n) (1UL << (n))
#define NULL ((void *)0)

#define U8_MAX ((u8)~0)
#define U16_MAX ((u16)~0)
#define U32_MAX ((u32)~0)
#define U64_MAX ((u64)~0)
#define S32_MAX ((s32)(U32_MAX >> 1))
#define INT_MAX S32_MAX
#define UINT_MAX U32_MAX

#define EPERM 1
#define ENOENT 2
#define ENOMEM 12
#define EBUSY 16
#define EINVAL 22

/* nobody reads a log of a simulated kernel */
#define pr_debug(...) ((void)0)
#define pr_info(...) ((void)0)
#define pr_info_once(...) ((void)0)
#define pr_warn(...) ((void)0)
#define pr_warn_once(...) ((void)0)
#define pr_err(...) ((void)0)
#define net_dbg_ratelimited(...) ((void)0)

#define CC_MODULE_INLINE static inline __attribute__((unused))

/* As in the kernel, operands have one type after the usual conversions; each is evaluated once. */
#define min(a, b) ({ __typeof__(a) cc_min_a = (a); __typeof__(b) cc_min_b = (b); cc_min_a < cc_min_b ? cc_min_a : cc_min_b; })
#define max(a, b) ({ __typeof__(a) cc_max_a = (a); __typeof__(b) cc_max_b = (b); cc_max_a > cc_max_b ? cc_max_a : cc_max_b; })
#define min3(a, b, c) min(min(a, b), c)
#define max3(a, b, c) max(max(a, b), c)
#define min_t(type, a, b) ({ type cc_mt_a = (a); type cc_mt_b = (b); cc_mt_a < cc_mt_b ? cc_mt_a : cc_mt_b; })
#define max_t(type, a, b) ({ type cc_xt_a = (a); type cc_xt_b = (b); cc_xt_a > cc_xt_b ? cc_xt_a : cc_xt_b; })
#define clamp(value, low, high) ({                                                           \
	__typeof__(value) cc_cv = (value), cc_cl = (low), cc_ch = (high);                    \
	cc_cv < cc_cl ? cc_cl : cc_cv > cc_ch ? cc_ch : cc_cv;                               \
})
#define clamp_t(type, value, low, high) min_t(type, max_t(type, value, low), high)
#define min_not_zero(a, b) ({                                                                \
	__typeof__(a) cc_nz_a = (a);                                                         \
	__typeof__(b) cc_nz_b = (b);                                                         \
	cc_nz_a == 0 ? cc_nz_b : cc_nz_b == 0 ? cc_nz_a : min(cc_nz_a, cc_nz_b);             \
})
#define abs(x) ({ __typeof__(x) cc_abs = (x); cc_abs < 0 ? -cc_abs : cc_abs; })
#define swap(a, b) do { __typeof__(a) cc_swap = (a); (a) = (b); (b) = cc_swap; } while (0)
#define cmpxchg(pointer, old, new) ({                                                        \
	__typeof__(*(pointer)) cc_was = *(pointer);                                          \
	if (cc_was == (__typeof__(cc_was))(old))                                             \
		*(pointer) = (new);                                                          \
	cc_was;                                                                              \
})
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define DIV_ROUND_CLOSEST(n, d) (((n) + (d) / 2) / (d))
#define is_power_of_2(n) ((n) != 0 && ((n) & ((n) - 1)) == 0)

CC_MODULE_INLINE u64 div_u64(u64 dividend, u32 divisor) { return dividend / divisor; }
CC_MODULE_INLINE u64 div64_u64(u64 dividend, u64 divisor) { return dividend / divisor; }
CC_MODULE_INLINE s64 div_s64(s64 dividend, s32 divisor) { return dividend / divisor; }
CC_MODULE_INLINE s64 div64_s64(s64 dividend, s64 divisor) { return dividend / divisor; }
#define div64_ul(dividend, divisor) div64_u64(dividend, divisor)
#define div64_long(dividend, divisor) div64_s64(dividend, divisor)
#define do_div(n, base) ({ u32 cc_base = (base), cc_rem = (u32)((n) % cc_base); (n) /= cc_base; cc_rem; })

CC_MODULE_INLINE int fls(u32 x) { return x ? 32 - __builtin_clz(x) : 0; }
CC_MODULE_INLINE int fls64(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }
CC_MODULE_INLINE int ilog2(u64 x) { return fls64(x) - 1; }

extern void *memset(void *to, int byte, cc_size size);
extern void *memcpy(void *to, const void *from, cc_size size);

/* ---- Time: the host's tick is a millisecond ---- */

#define HZ 1000
#define USEC_PER_SEC 1000000L
#define USEC_PER_MSEC 1000L
#define MSEC_PER_SEC 1000L
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_SEC 1000000000L
#define jiffies ((unsigned long)((const struct tcp_sock *)cc_current)->tcp_mstamp / 1000)
#define tcp_jiffies32 ((u32)jiffies)

CC_MODULE_INLINE unsigned long msecs_to_jiffies(u32 ms) { return ms; }
CC_MODULE_INLINE u32 jiffies_to_msecs(unsigned long ticks) { return (u32)ticks; }
CC_MODULE_INLINE unsigned long usecs_to_jiffies(u32 us) { return (us + 999ul) / 1000; }
CC_MODULE_INLINE u32 jiffies_to_usecs(unsigned long ticks) { return (u32)(ticks * 1000); }
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)
CC_MODULE_INLINE u64 local_clock(void) { return ((const struct tcp_sock *)cc_current)->tcp_mstamp * 1000; }

/* ---- Random numbers: of the run's seed ---- */

CC_MODULE_INLINE u32 get_random_u32(void) { return cc_native_random_u32(cc_current); }
CC_MODULE_INLINE u32 get_random_u32_below(u32 ceiling) { return (u32)(((u64)get_random_u32() * ceiling) >> 32); }
CC_MODULE_INLINE u8 get_random_u8(void) { return (u8)get_random_u32(); }
CC_MODULE_INLINE void get_random_bytes(void *bytes, int count)
{
	for (int i = 0; i < count; i++)
		((u8 *)bytes)[i] = get_random_u8();
}

/* ---- TCP ---- */

#define ICSK_CA_PRIV_SIZE CC_PRIVATE_MAX
#define TCP_CA_NAME_MAX 16
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10
#define TCP_ECN_OK 1
#define TCP_ECN_QUEUE_CWR 2
#define TCP_ECN_DEMAND_CWR 4
#define TCP_ECN_SEEN 8
#define TCP_CONG_NON_RESTRICTED 1
#define TCP_CONG_NEEDS_ECN 2
#define GSO_LEGACY_MAX_SIZE 65536u
#define MAX_TCP_HEADER 320	/* of a kernel with tunnels; bbr takes it off a burst of TSO */

#define TCPF_CA_Open (1 << TCP_CA_Open)
#define TCPF_CA_Disorder (1 << TCP_CA_Disorder)
#define TCPF_CA_CWR (1 << TCP_CA_CWR)
#define TCPF_CA_Recovery (1 << TCP_CA_Recovery)
#define TCPF_CA_Loss (1 << TCP_CA_Loss)

/* Hooks run on connections only; the host has no socket that listens. */
enum {
	TCP_ESTABLISHED = 1,
	TCP_CLOSE = 7,
	TCP_LISTEN = 10,
};
#define sk_state sk_pacing_shift * 0 + TCP_ESTABLISHED

CC_MODULE_INLINE struct tcp_sock *tcp_sk(const struct sock *sk) { return (struct tcp_sock *)sk; }
CC_MODULE_INLINE struct inet_connection_sock *inet_csk(const struct sock *sk) { return (struct inet_connection_sock *)sk; }
CC_MODULE_INLINE void *inet_csk_ca(const struct sock *sk) { return inet_csk(sk)->icsk_ca_priv; }

CC_MODULE_INLINE bool before(u32 seq1, u32 seq2) { return (s32)(seq1 - seq2) < 0; }
#define after(seq2, seq1) before(seq1, seq2)
CC_MODULE_INLINE bool between(u32 seq1, u32 seq2, u32 seq3) { return seq3 - seq2 >= seq1 - seq2; }

CC_MODULE_INLINE u32 tcp_snd_cwnd(const struct tcp_sock *tp) { return tp->snd_cwnd; }
CC_MODULE_INLINE void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 cwnd) { tp->snd_cwnd = cwnd; }
CC_MODULE_INLINE u32 tcp_packets_in_flight(const struct tcp_sock *tp) { return cc_native_tcp_packets_in_flight(tp); }
CC_MODULE_INLINE u32 tcp_left_out(const struct tcp_sock *tp) { return cc_native_tcp_left_out(tp); }
CC_MODULE_INLINE bool tcp_in_slow_start(const struct tcp_sock *tp) { return cc_native_tcp_in_slow_start(tp); }
CC_MODULE_INLINE bool tcp_is_cwnd_limited(const struct sock *sk) { return cc_native_tcp_is_cwnd_limited(sk); }
CC_MODULE_INLINE u32 tcp_min_rtt(const struct tcp_sock *tp) { return cc_native_tcp_min_rtt(tp); }
CC_MODULE_INLINE u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) { return cc_native_tcp_slow_start(tp, acked); }
CC_MODULE_INLINE void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked) { cc_native_tcp_cong_avoid_ai(tp, w, acked); }
CC_MODULE_INLINE u32 tcp_reno_ssthresh(struct sock *sk) { return cc_native_tcp_reno_ssthresh(sk); }
CC_MODULE_INLINE u32 tcp_reno_undo_cwnd(struct sock *sk) { return cc_native_tcp_reno_undo_cwnd(sk); }
CC_MODULE_INLINE void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	cc_native_tcp_reno_cong_avoid(sk, acked);
}

/* ssthresh while a reduction goes on; else at least three quarters of the window, as after an idle time. */
CC_MODULE_INLINE u32 tcp_current_ssthresh(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u8 state = inet_csk(sk)->icsk_ca_state;

	if (state == TCP_CA_CWR || state == TCP_CA_Recovery)
		return tp->snd_ssthresh;
	return max(tp->snd_ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}

CC_MODULE_INLINE bool tcp_ecn_mode_rfc3168(const struct tcp_sock *tp) { return cc_native_tcp_echoes_marks(tp); }
CC_MODULE_INLINE bool tcp_ecn_mode_any(const struct tcp_sock *tp) { return cc_native_tcp_has_ecn(tp); }
CC_MODULE_INLINE u32 tcp_stamp_us_delta(u64 later, u64 earlier) { return later > earlier ? (u32)(later - earlier) : 0; }
#define __tcp_send_ack(sk, rcv_nxt, ...) cc_native_tcp_send_ack_at(sk, rcv_nxt)

CC_MODULE_INLINE u32 minmax_get(const struct minmax *m) { return cc_native_minmax_get(m); }
CC_MODULE_INLINE u32 minmax_reset(struct minmax *m, u32 t, u32 value) { return cc_native_minmax_reset(m, t, value); }
CC_MODULE_INLINE u32 minmax_running_max(struct minmax *m, u32 window, u32 t, u32 value)
{
	return cc_native_minmax_running_max(m, window, t, value);
}

/* Without ECN the host sends no ECT anyway. */
CC_MODULE_INLINE void INET_ECN_dontxmit(const struct sock *sk) { (void)sk; }

/* Statistics of the network namespace: there is none. */
#define sock_net(sk) ((void)(sk))
#define NET_INC_STATS(net, what) ((void)0)
#define NET_ADD_STATS(net, what, count) ((void)0)

/* No BPF program answers for the socket. */
enum { BPF_SOCK_OPS_BASE_RTT = 8 };
#define tcp_call_bpf(sk, op, count, arguments) ((void)(sk), (void)(arguments), -EPERM)

/* Protective load balancing changes an IPv6 flow label; net.ipv4.tcp_plb_enabled is 0, its default. */
struct tcp_plb_state {
	u8 consec_cong_rounds : 5, unused : 3;
	u32 pause_until;
};
#define TCP_PLB_SCALE 8
CC_MODULE_INLINE void tcp_plb_init(const struct sock *sk, struct tcp_plb_state *plb)
{
	(void)sk;
	plb->consec_cong_rounds = 0;
	plb->pause_until = 0;
}
CC_MODULE_INLINE void tcp_plb_update_state(const struct sock *sk, struct tcp_plb_state *plb, int ratio)
{
	(void)sk, (void)plb, (void)ratio;
}
CC_MODULE_INLINE void tcp_plb_check_rehash(struct sock *sk, struct tcp_plb_state *plb) { (void)sk, (void)plb; }
CC_MODULE_INLINE void tcp_plb_update_state_upon_rto(struct sock *sk, struct tcp_plb_state *plb) { (void)sk, (void)plb; }

/* ---- get_info, which no host calls ---- */

enum { INET_DIAG_VEGASINFO = 3, INET_DIAG_DCTCPINFO = 9, INET_DIAG_BBRINFO = 16 };

struct tcpvegas_info {
	u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt;
};

struct tcp_dctcp_info {
	u16 dctcp_enabled, dctcp_ce_state;
	u32 dctcp_alpha, dctcp_ab_ecn, dctcp_ab_tot;
};

struct tcp_bbr_info {
	u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain;
};

union tcp_cc_info {
	struct tcpvegas_info vegas;
	struct tcp_dctcp_info dctcp;
	struct tcp_bbr_info bbr;
};

/* ---- The module ---- */

struct module;
#define THIS_MODULE NULL
#define MODULE_AUTHOR(text) _Static_assert(1, "")
#define MODULE_LICENSE(text) _Static_assert(1, "")
#define MODULE_VERSION(text) _Static_assert(1, "")
#define MODULE_ALIAS(text) _Static_assert(1, "")
#define MODULE_PARM_DESC(name, text) _Static_assert(1, "")
#define EXPORT_SYMBOL(name) _Static_assert(1, "")
#define EXPORT_SYMBOL_GPL(name) _Static_assert(1, "")

/* Functions that BPF programs may call. */
struct btf_kfunc_id_set {
	struct module *owner;
	const void *set;
};
#define BPF_PROG_TYPE_STRUCT_OPS 27
#define BTF_KFUNCS_START(name) static const u8 name __attribute__((unused));
#define BTF_KFUNCS_END(name)
#define BTF_ID_FLAGS(...)
CC_MODULE_INLINE int register_btf_kfunc_id_set(int type, const struct btf_kfunc_id_set *set)
{
	(void)type, (void)set;
	return 0;
}

/* Parameters, by the names of the kernel's types. */
struct kernel_param {
	const char *name;
	void *arg;
};

struct kernel_param_ops {
	int (*set)(const char *value, const struct kernel_param *param);
	int (*get)(char *text, const struct kernel_param *param);
};

CC_MODULE_INLINE int param_set_uint_minmax(const char *value, const struct kernel_param *param, u32 low, u32 high)
{
	u32 number = 0;

	for (; *value >= '0' && *value <= '9'; value++)
		number = number * 10 + (u32)(*value - '0');
	if (*value || number < low || number > high)
		return -EINVAL;
	*(u32 *)param->arg = number;
	return 0;
}
CC_MODULE_INLINE int param_get_uint(char *text, const struct kernel_param *param)
{
	(void)text, (void)param;
	return 0;
}
#define module_param(name, type, mode) _Static_assert(sizeof(name) <= 8, "a parameter is a number")
#define module_param_named(name, value, type, mode) _Static_assert(sizeof(value) <= 8, "a parameter is a number")
#define module_param_cb(name, ops, value, mode) \
	static const void *const cc_param_##name[] __attribute__((unused)) = { ops, value }

#if defined(CC_DEPENDENCY)	/* a module that the file takes functions from */
#define MODULE_DESCRIPTION(text) _Static_assert(1, "")
#define module_init(function) static const void *const cc_init __attribute__((unused)) = function
#define module_exit(function) static const void *const cc_exit __attribute__((unused)) = function
CC_MODULE_INLINE int tcp_register_congestion_control(struct tcp_congestion_ops *ops) { return (void)ops, 0; }
CC_MODULE_INLINE void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops) { (void)ops; }
#else

static const struct cc_info cc_module_info;
#define MODULE_DESCRIPTION(text) static const struct cc_info cc_module_info = { .title = (text) }

static const struct tcp_congestion_ops *cc_kernels;	/* the table that the module has registered */
static struct cc_algorithm cc_module_algorithm;		/* and the host's, which calls it */

static void cc_call_init(struct sock *sk) { cc_current = sk; cc_kernels->init(sk); }
static void cc_call_release(struct sock *sk) { cc_current = sk; cc_kernels->release(sk); }
static u32 cc_call_ssthresh(struct sock *sk) { cc_current = sk; return cc_kernels->ssthresh(sk); }
static void cc_call_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	cc_current = sk;
	cc_kernels->cong_avoid(sk, ack, acked);
}
static void cc_call_set_state(struct sock *sk, u8 state) { cc_current = sk; cc_kernels->set_state(sk, state); }
static void cc_call_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	cc_current = sk;
	if (event == CA_EVENT_TX_START && cc_kernels->cwnd_event_tx_start)	/* a hook of its own since Linux 7 */
		cc_kernels->cwnd_event_tx_start(sk);
	else if (cc_kernels->cwnd_event)
		cc_kernels->cwnd_event(sk, event);
}
static void cc_call_in_ack_event(struct sock *sk, u32 flags) { cc_current = sk; cc_kernels->in_ack_event(sk, flags); }
static void cc_call_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	cc_current = sk;
	cc_kernels->pkts_acked(sk, sample);
}
static void cc_call_cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	cc_current = sk;
	cc_kernels->cong_control(sk, ack, flag, rs);
}
static u32 cc_call_undo_cwnd(struct sock *sk) { cc_current = sk; return cc_kernels->undo_cwnd(sk); }
static u32 cc_call_min_tso_segs(struct sock *sk) { cc_current = sk; return cc_kernels->min_tso_segs(sk); }
static u32 cc_call_sndbuf_expand(struct sock *sk) { cc_current = sk; return cc_kernels->sndbuf_expand(sk); }

CC_MODULE_INLINE int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	struct tcp_congestion_ops *calls = &cc_module_algorithm.ops;

	if (cc_kernels)
		return -EBUSY;	/* one algorithm a file */
	cc_kernels = ops;
	cc_module_algorithm.abi = CC_ABI;
	cc_module_algorithm.sock_bytes = sizeof(struct tcp_sock);
	cc_module_algorithm.info = &cc_module_info;
	memcpy(calls->name, ops->name, sizeof(calls->name));
	calls->flags = ops->flags & (TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN);
#define CC_CALL(hook) calls->hook = ops->hook ? cc_call_##hook : NULL
	CC_CALL(init);
	CC_CALL(release);
	CC_CALL(ssthresh);
	CC_CALL(cong_avoid);
	CC_CALL(set_state);
	CC_CALL(in_ack_event);
	CC_CALL(pkts_acked);
	CC_CALL(cong_control);
	CC_CALL(undo_cwnd);
	CC_CALL(min_tso_segs);
	CC_CALL(sndbuf_expand);
#undef CC_CALL
	calls->cwnd_event = ops->cwnd_event || ops->cwnd_event_tx_start ? cc_call_cwnd_event : NULL;
	return 0;
}
CC_MODULE_INLINE void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops) { (void)ops; }

/* What the loader calls once: the module's own start; NULL and the error's number if it fails. */
#define module_init(function)                                                                                      \
	extern const struct cc_algorithm *cc_module(int *error) __attribute__((used, visibility("default")));      \
	const struct cc_algorithm *cc_module(int *error)                                                           \
	{                                                                                                          \
		*error = function();                                                                               \
		return *error || !cc_kernels ? NULL : &cc_module_algorithm;                                        \
	}                                                                                                          \
	_Static_assert(1, "")
#define module_exit(function) static const void *const cc_exit __attribute__((unused)) = function

#endif

#endif
