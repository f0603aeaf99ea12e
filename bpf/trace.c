/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The tracing build of an algorithm: its own source, with every hook wrapped by a recorder.
 *
 *   clang ... -DTRACE_NAME=cubic -DTRACE_FILE='"cubic.c"' -c trace.c
 *
 * The algorithm's file is included unchanged. The macros of its hooks and its table (CC_HOOK, CC_OPS) are
 * redefined here, and so are the host's services that it calls. Each call makes a record of all that the hook
 * can see (its arguments, the contract's fields of the socket, the private state), of what it may change, before and after,
 * of what it returned, and of the results of the host's services. The native build, set up from the record's first half, must
 * then arrive at its second half: `congestion` has the replay.
 *
 * The kernel knows the traced algorithm as tr_NAME, so that both it and ot_NAME can be loaded.
 *
 * Other records are of the kernel's own tracepoint of congestion states: a kernel may skip programs
 * (struct_ops in softirq over pid 1, on some), and a call that was skipped leaves no record of its own.
 *
 * All words of a record are 64 bits wide; signed values are extended. It is a trace for tests: it costs a microsecond a call.
 */
#include "tcp.h"

/* ---- The record ---- */

enum trace_hook {
	TRACE_INIT, TRACE_RELEASE, TRACE_SSTHRESH, TRACE_CONG_AVOID, TRACE_SET_STATE, TRACE_CWND_EVENT, TRACE_IN_ACK_EVENT,
	TRACE_PKTS_ACKED, TRACE_CONG_CONTROL, TRACE_UNDO_CWND, TRACE_MIN_TSO_SEGS, TRACE_SNDBUF_EXPAND,
	TRACE_STATE,	/* no hook: the kernel's tracepoint, before it calls set_state */
};

struct trace_call {
	u64 hook;	/* enum trace_hook */
	u64 socket;	/* its address, as a name */
	u64 number;	/* of this socket's records, from 0: a gap is a full ring */
	u64 argument;	/* cong_avoid, cong_control: ack; set_state, TRACE_STATE: the new state; the event; the flags */
	u64 acked;	/* cong_avoid */
	u64 value;	/* returned; TRACE_STATE: the old state */
};

/* What a hook may write. */
struct trace_written {
	u64 icsk_ca_priv[CC_PRIVATE_MAX / 8];
	u64 snd_cwnd, snd_cwnd_cnt, snd_cwnd_stamp, snd_ssthresh, app_limited;
	u64 ecn_flags, icsk_ack_pending, sk_pacing_rate, sk_pacing_status;
};

/* What it may only read. */
struct trace_read {
	u64 sk_max_pacing_rate, sk_gso_max_size, sk_pacing_shift;
	u64 icsk_ca_state, icsk_retransmits;
	u64 snd_cwnd_clamp, snd_una, snd_nxt, rcv_nxt, mss_cache;
	u64 packets_out, sacked_out, lost_out, retrans_out, delivered, delivered_ce, lost;
	u64 max_packets_out, cwnd_usage_seq, srtt_us, mdev_us;
	u64 rtt_min[6];	/* t and v, three times */
	u64 tcp_mstamp, delivered_mstamp, first_tx_mstamp, tcp_clock_cache, tcp_wstamp_ns;
	u64 prior_cwnd, prior_ssthresh, high_seq, undo_marker, undo_retrans;
	u64 rate_delivered, rate_interval_us, lsndtime, advmss, is_cwnd_limited, bytes_acked, bytes_sent;
};

/* The argument of pkts_acked, and of cong_control; stale in the records of other hooks. */
struct trace_samples {
	u64 pkts_acked, ack_rtt_us, ack_in_flight;
	u64 prior_mstamp, prior_delivered, prior_delivered_ce, delivered, delivered_ce, interval_us;
	u64 snd_interval_us, rcv_interval_us, rtt_us, losses, acked_sacked, prior_in_flight, last_end_seq;
	u64 is_app_limited, is_retrans, is_ack_delayed;
};

/* The calls of the host's services, and their results. */
struct trace_services {
	u64 draws;		/* calls of cc_random_u32 */
	u64 random;		/* result of the last one */
	u64 acks;		/* calls of tcp_send_ack_at */
	u64 ack_seq;		/* of the last one: the number requested, */
	u64 ack_ecn_flags;	/* ecn_flags then, */
	u64 ack_cleared;	/* and the bits of icsk_ack.pending that sending it cleared */
};

struct trace_record {
	struct trace_call call;
	struct trace_written before, after;
	struct trace_read read;
	struct trace_samples samples;
	struct trace_services services;
};

/* ---- The kernel's side of it ---- */

enum { MAP_TYPE_SK_STORAGE = 24, MAP_TYPE_RINGBUF = 27, MAP_NO_PREALLOC = 1, STORAGE_CREATE = 1, RING_NO_WAKEUP = 1 };

static void *(*const bpf_storage)(void *map, void *sk, void *value, u64 flags) = (void *)107;	/* bpf_sk_storage_get */
static struct tcp_sock *(*const bpf_to_tcp_sock)(void *sk) = (void *)137;			/* bpf_skc_to_tcp_sock */
static long (*const bpf_ring_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;

struct {
	int (*type)[MAP_TYPE_RINGBUF];
	int (*max_entries)[1 << 24];
} trace_ring SEC(".maps");

/* Per socket; the socket is locked while a hook runs, so its hooks run one at a time. */
struct trace_flow {
	struct trace_record record;	/* of the current or last call */
	u64 ops;			/* its algorithm then: the socket may have changed it since */
};

struct {
	int (*type)[MAP_TYPE_SK_STORAGE];
	int (*map_flags)[MAP_NO_PREALLOC];
	int *key;
	struct trace_flow *value;
} trace_store SEC(".maps");

/* Calls that left no record: no memory for the socket's, or the ring was full. Users read it. */
u64 trace_lost;

#define TRACE_INLINE CC_INLINE

TRACE_INLINE void trace_written(struct trace_written *to, struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_sock *tp = tcp_sk(sk);

#pragma unroll
	for (int i = 0; i < CC_PRIVATE_MAX / 8; i++)
		to->icsk_ca_priv[i] = icsk->icsk_ca_priv[i];
	to->snd_cwnd = tp->snd_cwnd;
	to->snd_cwnd_cnt = tp->snd_cwnd_cnt;
	to->snd_cwnd_stamp = tp->snd_cwnd_stamp;
	to->snd_ssthresh = tp->snd_ssthresh;
	to->app_limited = tp->app_limited;
	to->ecn_flags = tp->ecn_flags;
	to->icsk_ack_pending = icsk->icsk_ack.pending;
	to->sk_pacing_rate = sk->sk_pacing_rate;
	to->sk_pacing_status = sk->sk_pacing_status;
}

TRACE_INLINE void trace_read(struct trace_read *to, struct sock *sk)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	to->sk_max_pacing_rate = sk->sk_max_pacing_rate;
	to->sk_gso_max_size = sk->sk_gso_max_size;
	to->sk_pacing_shift = sk->sk_pacing_shift;
	to->icsk_ca_state = tcp_ca_state(sk);
	to->icsk_retransmits = icsk->icsk_retransmits;
	to->snd_cwnd_clamp = tp->snd_cwnd_clamp;
	to->snd_una = tp->snd_una;
	to->snd_nxt = tp->snd_nxt;
	to->rcv_nxt = tp->rcv_nxt;
	to->mss_cache = tp->mss_cache;
	to->packets_out = tp->packets_out;
	to->sacked_out = tp->sacked_out;
	to->lost_out = tp->lost_out;
	to->retrans_out = tp->retrans_out;
	to->delivered = tp->delivered;
	to->delivered_ce = tp->delivered_ce;
	to->lost = tp->lost;
	to->max_packets_out = tp->max_packets_out;
	to->cwnd_usage_seq = tp->cwnd_usage_seq;
	to->srtt_us = tp->srtt_us;
	to->mdev_us = tp->mdev_us;
	to->rtt_min[0] = tp->rtt_min.s[0].t;
	to->rtt_min[1] = tp->rtt_min.s[0].v;
	to->rtt_min[2] = tp->rtt_min.s[1].t;
	to->rtt_min[3] = tp->rtt_min.s[1].v;
	to->rtt_min[4] = tp->rtt_min.s[2].t;
	to->rtt_min[5] = tp->rtt_min.s[2].v;
	to->tcp_mstamp = tp->tcp_mstamp;
	to->delivered_mstamp = tp->delivered_mstamp;
	to->first_tx_mstamp = tp->first_tx_mstamp;
	to->tcp_clock_cache = tp->tcp_clock_cache;
	to->tcp_wstamp_ns = tp->tcp_wstamp_ns;
	to->prior_cwnd = tp->prior_cwnd;
	to->prior_ssthresh = tp->prior_ssthresh;
	to->high_seq = tp->high_seq;
	to->undo_marker = tp->undo_marker;
	to->undo_retrans = (u64)(s64)tp->undo_retrans;
	to->rate_delivered = tp->rate_delivered;
	to->rate_interval_us = tp->rate_interval_us;
	to->lsndtime = tp->lsndtime;
	to->advmss = tp->advmss;
	to->is_cwnd_limited = CC_BITFIELD(tp, is_cwnd_limited);
	to->bytes_acked = tp->bytes_acked;
	to->bytes_sent = tp->bytes_sent;
}

TRACE_INLINE void trace_ack_sample(struct trace_samples *to, const struct ack_sample *sample)
{
	to->pkts_acked = sample->pkts_acked;
	to->ack_rtt_us = (u64)(s64)sample->rtt_us;
	to->ack_in_flight = sample->in_flight;
}

TRACE_INLINE void trace_rate_sample(struct trace_samples *to, const struct rate_sample *rs)
{
	to->prior_mstamp = rs->prior_mstamp;
	to->prior_delivered = rs->prior_delivered;
	to->prior_delivered_ce = rs->prior_delivered_ce;
	to->delivered = (u64)(s64)rs->delivered;
	to->delivered_ce = (u64)(s64)rs->delivered_ce;
	to->interval_us = (u64)rs->interval_us;
	to->snd_interval_us = rs->snd_interval_us;
	to->rcv_interval_us = rs->rcv_interval_us;
	to->rtt_us = (u64)rs->rtt_us;
	to->losses = (u64)(s64)rs->losses;
	to->acked_sacked = rs->acked_sacked;
	to->prior_in_flight = rs->prior_in_flight;
	to->last_end_seq = rs->last_end_seq;
	to->is_app_limited = rs->is_app_limited;
	to->is_retrans = rs->is_retrans;
	to->is_ack_delayed = rs->is_ack_delayed;
}

/* The hook's arguments are known at compile time: code for other hooks is no part of the program. */
TRACE_INLINE void trace_arguments(struct trace_record *record, enum trace_hook hook, u64 *ctx)
{
	record->call.argument = record->call.acked = 0;
	if (hook == TRACE_CONG_AVOID || hook == TRACE_CONG_CONTROL)
		record->call.argument = (u32)ctx[1];
	if (hook == TRACE_CWND_EVENT || hook == TRACE_IN_ACK_EVENT)
		record->call.argument = (u32)ctx[1];
	if (hook == TRACE_SET_STATE)
		record->call.argument = (u8)ctx[1];
	if (hook == TRACE_CONG_AVOID)
		record->call.acked = (u32)ctx[2];
	if (hook == TRACE_PKTS_ACKED)
		trace_ack_sample(&record->samples, (const struct ack_sample *)ctx[1]);
	if (hook == TRACE_CONG_CONTROL)
		trace_rate_sample(&record->samples, (const struct rate_sample *)ctx[3]);
}

TRACE_INLINE void trace_before(enum trace_hook hook, u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct trace_flow *flow = bpf_storage(&trace_store, sk, 0, STORAGE_CREATE);
	struct trace_record *record;

	if (!flow)
		return;
	flow->ops = (u64)inet_csk(sk)->icsk_ca_ops;
	record = &flow->record;
	record->call.hook = hook;
	record->call.socket = (u64)sk;
	record->services.draws = record->services.acks = 0;
	trace_arguments(record, hook, ctx);
	trace_read(&record->read, sk);
	trace_written(&record->before, sk);
}

TRACE_INLINE void trace_after(struct sock *sk, u64 value)
{
	struct trace_record *record = bpf_storage(&trace_store, sk, 0, 0);

	if (!record) {
		__sync_fetch_and_add(&trace_lost, 1);
		return;
	}
	record->call.value = value;
	trace_written(&record->after, sk);
	if (bpf_ring_output(&trace_ring, record, sizeof(*record), RING_NO_WAKEUP))
		__sync_fetch_and_add(&trace_lost, 1);
	record->call.number++;
}

/* tcp_cong_state_set(sk, new state): of sockets that use the algorithm, once a hook has been called. */
SEC("tp_btf/tcp_cong_state_set") int trace_state(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = bpf_to_tcp_sock(sk);
	struct trace_flow *flow = tp ? bpf_storage(&trace_store, tp, 0, 0) : 0;
	struct trace_call call = { .hook = TRACE_STATE, .socket = (u64)tp, .argument = (u8)ctx[1] };

	if (!flow || flow->ops != (u64)inet_csk((struct sock *)tp)->icsk_ca_ops)
		return 0;
	call.value = tcp_ca_state((struct sock *)tp);
	call.number = flow->record.call.number++;
	if (bpf_ring_output(&trace_ring, &call, sizeof(call), RING_NO_WAKEUP))
		__sync_fetch_and_add(&trace_lost, 1);
	return 0;
}

/* ---- What the algorithm is compiled with ---- */

TRACE_INLINE u32 trace_random_u32(struct sock *sk)
{
	struct trace_record *record = bpf_storage(&trace_store, sk, 0, 0);
	u32 value = cc_random_u32(sk);

	if (record) {
		record->services.draws++;
		record->services.random = value;
	}
	return value;
}

TRACE_INLINE void trace_send_ack_at(struct sock *sk, u32 rcv_nxt)
{
	struct trace_record *record = bpf_storage(&trace_store, sk, 0, 0);
	u8 pending = inet_csk(sk)->icsk_ack.pending;

	if (record) {
		record->services.acks++;
		record->services.ack_seq = rcv_nxt;
		record->services.ack_ecn_flags = tcp_sk(sk)->ecn_flags;
	}
	tcp_send_ack_at(sk, rcv_nxt);
	if (record)
		record->services.ack_cleared = pending & ~inet_csk(sk)->icsk_ack.pending;
}

#define cc_random_u32 trace_random_u32
#define tcp_send_ack_at trace_send_ack_at

#define TRACE_PASTE(a, b) a##b
#define TRACE_JOIN(a, b) TRACE_PASTE(a, b)
/* TRACE_HOOK_cubic_init and so on: a hook is known by its function's name, which is FILE_HOOK. */
#define TRACE_ID(hook) TRACE_JOIN(TRACE_JOIN(TRACE_HOOK_, TRACE_NAME), _##hook)

enum {
	TRACE_ID(init) = TRACE_INIT,
	TRACE_ID(release) = TRACE_RELEASE,
	TRACE_ID(ssthresh) = TRACE_SSTHRESH,
	TRACE_ID(cong_avoid) = TRACE_CONG_AVOID,
	TRACE_ID(set_state) = TRACE_SET_STATE,
	TRACE_ID(cwnd_event) = TRACE_CWND_EVENT,
	TRACE_ID(in_ack_event) = TRACE_IN_ACK_EVENT,
	TRACE_ID(pkts_acked) = TRACE_PKTS_ACKED,
	TRACE_ID(cong_control) = TRACE_CONG_CONTROL,
	TRACE_ID(undo_cwnd) = TRACE_UNDO_CWND,
	TRACE_ID(min_tso_segs) = TRACE_MIN_TSO_SEGS,
	TRACE_ID(sndbuf_expand) = TRACE_SNDBUF_EXPAND,
};

/* The return value of a hook's body, as a word; 0 for none. */
#define TRACE_VALUE(ret, call) \
	(u64)__builtin_choose_expr(__builtin_types_compatible_p(ret, void), ((call), 0ull), (call))

#undef CC_HOOK
#define CC_HOOK(ret, hook, ...)                                                          \
	static inline __attribute__((always_inline)) ret cc_body_##hook(__VA_ARGS__);    \
	SEC("struct_ops") ret hook(u64 *ctx)                                             \
	{                                                                                \
		struct sock *sk = (struct sock *)ctx[0];                                 \
		u64 value;                                                               \
                                                                                         \
		trace_before((enum trace_hook)TRACE_HOOK_##hook, ctx);                   \
		_Pragma("clang diagnostic push")                                         \
		_Pragma("clang diagnostic ignored \"-Wint-conversion\"")                 \
		value = TRACE_VALUE(ret, cc_body_##hook(CC_WORDS(__VA_ARGS__)));         \
		_Pragma("clang diagnostic pop")                                          \
		trace_after(sk, value);                                                  \
		return (ret)value;                                                       \
	}                                                                                \
	static inline __attribute__((always_inline)) ret cc_body_##hook(__VA_ARGS__)

#undef CC_OPS
#define CC_OPS(id, ...)                                               \
	char cc_license[] SEC("license") = "Dual BSD/GPL";            \
	struct tcp_congestion_ops tr_##id SEC(".struct_ops.link") = { \
		__VA_ARGS__, .name = "tr_" #id,                       \
	}

#include TRACE_FILE
