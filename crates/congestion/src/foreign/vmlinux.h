/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * vmlinux.h for algorithms written for libbpf ("foreign" ones): the kernel's types that an algorithm can use.
 *
 *   native build  the structures of the contract, tcp.h, which are the simulator's own socket. Its functions are renamed
 *                 out of the way: libbpf's world has none of them, and files define their own before(), fls64(), ...
 *   BPF build     a subset of the kernel's structures that CO-RE relocates to the running kernel.
 */
#ifndef OPENTCP_VMLINUX_H
#define OPENTCP_VMLINUX_H

#if defined(OPENTCP_TCP_H)
#error "a file includes tcp.h (the contract) or vmlinux.h (for files written for libbpf), not both"
#endif

#if defined(__bpf__)

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef _Bool bool;

enum {
	false = 0,
	true = 1,
};

#else

/* clang-format off: every function and private structure of tcp.h; a test compares the list */
#define tcp_sk cc_native_tcp_sk
#define inet_csk cc_native_inet_csk
#define inet_csk_ca cc_native_inet_csk_ca
#define tcp_ca_state(...) cc_native_tcp_ca_state(__VA_ARGS__)	/* the enum has the same name */
#define before cc_native_before
#define after cc_native_after
#define min_u32 cc_native_min_u32
#define max_u32 cc_native_max_u32
#define min_u64 cc_native_min_u64
#define max_u64 cc_native_max_u64
#define clamp_u32 cc_native_clamp_u32
#define fls64 cc_native_fls64
#define cube_root cc_native_cube_root
#define tcp_left_out cc_native_tcp_left_out
#define tcp_packets_in_flight cc_native_tcp_packets_in_flight
#define tcp_in_slow_start cc_native_tcp_in_slow_start
#define tcp_is_cwnd_limited cc_native_tcp_is_cwnd_limited
#define tcp_min_rtt cc_native_tcp_min_rtt
#define tcp_slow_start cc_native_tcp_slow_start
#define tcp_cong_avoid_ai cc_native_tcp_cong_avoid_ai
#define tcp_reno_ssthresh cc_native_tcp_reno_ssthresh
#define tcp_reno_undo_cwnd cc_native_tcp_reno_undo_cwnd
#define tcp_past_slow_start cc_native_tcp_past_slow_start
#define tcp_reno_cong_avoid cc_native_tcp_reno_cong_avoid
#define minmax_get cc_native_minmax_get
#define minmax_reset cc_native_minmax_reset
#define minmax_running_max cc_native_minmax_running_max
#define rtt_round cc_native_rtt_round
#define cc_deadline cc_native_cc_deadline
#define tcp_has_ecn cc_native_tcp_has_ecn
#define tcp_echoes_marks cc_native_tcp_echoes_marks
#define rtt_round_begin cc_native_rtt_round_begin
#define rtt_round_init cc_native_rtt_round_init
#define rtt_round_sample cc_native_rtt_round_sample
#define rtt_round_over cc_native_rtt_round_over
#define cc_random_u32 cc_native_random_u32
#define tcp_send_ack_at cc_native_tcp_send_ack_at
#include "tcp.h"
#undef tcp_sk
#undef inet_csk
#undef inet_csk_ca
#undef tcp_ca_state
#undef before
#undef after
#undef min_u32
#undef max_u32
#undef min_u64
#undef max_u64
#undef clamp_u32
#undef fls64
#undef cube_root
#undef tcp_left_out
#undef tcp_packets_in_flight
#undef tcp_in_slow_start
#undef tcp_is_cwnd_limited
#undef tcp_min_rtt
#undef tcp_slow_start
#undef tcp_cong_avoid_ai
#undef tcp_reno_ssthresh
#undef tcp_reno_undo_cwnd
#undef tcp_past_slow_start
#undef tcp_reno_cong_avoid
#undef minmax_get
#undef minmax_reset
#undef minmax_running_max
#undef rtt_round
#undef cc_deadline
#undef tcp_has_ecn
#undef tcp_echoes_marks
#undef rtt_round_begin
#undef rtt_round_init
#undef rtt_round_sample
#undef rtt_round_over
#undef cc_random_u32
#undef tcp_send_ack_at

/* Macros of the kernel's sources are in no vmlinux.h: files define them, or take them from bpf_tracing_net.h. */
#undef TCP_INFINITE_SSTHRESH
#undef TCP_ECN_OK
#undef TCP_ECN_QUEUE_CWR
#undef TCP_ECN_DEMAND_CWR
#undef TCP_ECN_SEEN
#undef TCP_ECN_ACCURATE
#undef TCP_CONG_NON_RESTRICTED
#undef TCP_CONG_NEEDS_ECN
/* and these are enumerators there */
#undef ICSK_ACK_SCHED
#undef ICSK_ACK_TIMER
#undef ICSK_ACK_PUSHED
#undef ICSK_ACK_NOW
#undef SK_PACING_NONE
#undef SK_PACING_NEEDED
/* clang-format on */

#endif

typedef signed char s8;
typedef short s16;
typedef s8 __s8;
typedef s16 __s16;
typedef s32 __s32;
typedef s64 __s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef u16 __be16;
typedef u32 __be32;
typedef u64 __be64;
typedef u16 __le16;
typedef u32 __le32;
typedef u64 __le64;
typedef u32 __wsum;
typedef s8 int8_t;
typedef s16 int16_t;
typedef s32 int32_t;
typedef s64 int64_t;
typedef u8 uint8_t;
typedef u16 uint16_t;
typedef u32 uint32_t;
typedef u64 uint64_t;
typedef __SIZE_TYPE__ size_t;
typedef long ssize_t;
typedef unsigned long ulong;
typedef unsigned int uint;

enum inet_csk_ack_state_t {
	ICSK_ACK_SCHED = 1,
	ICSK_ACK_TIMER = 2,
	ICSK_ACK_PUSHED = 4,
	ICSK_ACK_PUSHED2 = 8,
	ICSK_ACK_NOW = 16,
	ICSK_ACK_NOMEM = 32,
};

enum sk_pacing {
	SK_PACING_NONE = 0,
	SK_PACING_NEEDED = 1,
	SK_PACING_FQ = 2,
};

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
};

enum {
	BPF_F_NO_PREALLOC = 1,
};

enum {
	BPF_SK_STORAGE_GET_F_CREATE = 1,
};

#if defined(__bpf__)

enum tcp_ca_state {
	TCP_CA_Open = 0,
	TCP_CA_Disorder = 1,
	TCP_CA_CWR = 2,
	TCP_CA_Recovery = 3,
	TCP_CA_Loss = 4,
};

enum tcp_ca_event {
	CA_EVENT_TX_START = 0,
	CA_EVENT_CWND_RESTART = 1,
	CA_EVENT_COMPLETE_CWR = 2,
	CA_EVENT_LOSS = 3,
	CA_EVENT_ECN_NO_CE = 4,
	CA_EVENT_ECN_IS_CE = 5,
};

enum tcp_ca_ack_event_flags {
	CA_ACK_SLOWPATH = 1,
	CA_ACK_WIN_UPDATE = 2,
	CA_ACK_ECE = 4,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* The position of a bitfield differs between kernels; a plain read would use its position in this header. */
#define CC_BITS __attribute__((deprecated("a bitfield: read it with BPF_CORE_READ_BITFIELD(object, field)")))

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered, prior_delivered_ce;
	s32 delivered, delivered_ce;
	long interval_us;
	u32 snd_interval_us, rcv_interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked, prior_in_flight, last_end_seq;
	bool is_app_limited, is_retrans, is_ack_delayed;
};

struct minmax_sample {
	u32 t, v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct sock_common {
	u32 skc_daddr, skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate, sk_max_pacing_rate;
	u32 sk_pacing_status;
	unsigned int sk_gso_max_size;
	u8 sk_pacing_shift;
	int sk_sndbuf, sk_rcvbuf;
};

struct inet_sock {
	struct sock sk;
};

struct tcp_congestion_ops;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u32 icsk_rto, icsk_rto_min;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state : 5 CC_BITS;
	u8 icsk_ca_initialized : 1 CC_BITS;
	u8 icsk_retransmits;
	struct {
		u8 pending;
	} icsk_ack;
	u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_ssthresh, snd_cwnd_stamp, snd_cwnd_used;
	u32 prior_cwnd, prior_ssthresh, high_seq, undo_marker, prr_delivered, prr_out, reordering;
	int undo_retrans;
	u32 snd_una, snd_nxt, snd_wnd, write_seq, rcv_nxt, rcv_wnd, copied_seq;
	u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out, cwnd_usage_seq;
	u32 delivered, delivered_ce, lost, app_limited, total_retrans;
	u32 rate_delivered, rate_interval_us;
	u32 srtt_us, mdev_us, mdev_max_us, rttvar_us, mss_cache, lsndtime;
	struct minmax rtt_min;
	u16 advmss;
	u8 ecn_flags;
	u8 is_cwnd_limited : 1 CC_BITS;
	u64 tcp_mstamp, delivered_mstamp, first_tx_mstamp;
	u64 tcp_clock_cache, tcp_wstamp_ns;
	u64 bytes_acked, bytes_sent, bytes_retrans, bytes_received;
};

#pragma clang attribute pop

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	u32 flags;
};

#else

/* The socket whose hook runs: helpers that ask for the time or a random number do not name one. */
#if defined(CC_SHARED_CURRENT)	/* by several files of one object */
__thread struct sock *cc_current __attribute__((weak, visibility("hidden")));
#else
static __thread struct sock *cc_current __attribute__((unused));
#endif

#if !defined(CC_WITHOUT_TABLE)

/* ---- What the loader reads in the native build of a foreign file ---- */

/* A hook, as BPF_PROG declares it. */
struct cc_foreign_hook {
	const char *name;
	const char *parameters;	/* as written */
	const void *function;
	u32 line;
	u16 words;		/* parameters */
	u16 answers;		/* does it return a value? */
};

struct cc_foreign {
	u32 abi;		/* CC_ABI and size, as in struct cc_algorithm */
	u32 sock_bytes;
	const struct cc_foreign_hook *hooks, *hooks_end;
};

extern const struct cc_foreign_hook __start_cc_hooks[] __attribute__((weak, visibility("hidden")));
extern const struct cc_foreign_hook __stop_cc_hooks[] __attribute__((weak, visibility("hidden")));

extern const struct cc_foreign cc_foreign;
const struct cc_foreign cc_foreign __attribute__((used, visibility("default"))) = {
	CC_ABI, sizeof(struct tcp_sock), __start_cc_hooks, __stop_cc_hooks,
};

#endif

#endif

#endif
