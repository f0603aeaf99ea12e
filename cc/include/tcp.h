/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The contract between a congestion-control algorithm and its host.
 *
 * An algorithm is one C file that includes this header and nothing else (files of cc/ also what they share or are too long
 * for, beside it). Three hosts run the same file: the Linux
 * kernel (compiled for BPF, loaded as struct_ops), the simulator's TCP and the enforcer's shadow socket (compiled
 * natively). The structures below are the subset of Linux's that algorithms use, with Linux's names, units and
 * meaning:
 *
 *   BPF build     the structures carry preserve_access_index: CO-RE relocates every access to the running kernel, so
 *                 order and size here do not matter.
 *   native build  the structures *are* the host's own socket, ordered for cache locality; `congestion`
 *                 mirrors them in Rust and checks every offset.
 *
 * This header holds the only #if between the two builds.
 *
 * Rules that both builds impose on a file: integers only; / and % on unsigned operands only, every divisor guarded
 * (BPF yields 0 where a native build traps); no right shift of a negative number; no 128-bit product; loops with
 * constant bounds; tables `static const`, their index masked; no globals that change; at most CC_PRIVATE_MAX bytes of
 * private state, which the host zeroes before init(). The clock is tp->tcp_mstamp, in microseconds.
 */
#ifndef OPENTCP_TCP_H
#define OPENTCP_TCP_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef _Bool bool;
#define true 1
#define false 0

#if defined(__bpf__)
typedef unsigned long long u64;
typedef long long s64;
#define CC_KERNEL __attribute__((preserve_access_index))
#define SEC(name) __attribute__((section(name), used))
#else
#if __SIZEOF_LONG__ == 8
typedef unsigned long u64;
typedef long s64;
#else
typedef unsigned long long u64;
typedef long long s64;
#endif
#define CC_KERNEL
#endif

#define CC_INLINE static inline __attribute__((always_inline, unused))

/* ---- Constants of Linux that algorithms use ---- */

#define TCP_INFINITE_SSTHRESH 0x7fffffffu	/* ssthresh before the first loss: slow start until then */

enum tcp_ca_state {
	TCP_CA_Open = 0,	/* nothing unusual */
	TCP_CA_Disorder = 1,	/* duplicate ACKs or SACKs, no loss inferred yet */
	TCP_CA_CWR = 2,		/* window being reduced without a loss: ECN, or a loss repaired by a probe */
	TCP_CA_Recovery = 3,	/* fast recovery */
	TCP_CA_Loss = 4,	/* after a retransmission timeout */
};

enum tcp_ca_event {
	CA_EVENT_TX_START = 0,		/* a transmission with nothing in flight before it */
	CA_EVENT_CWND_RESTART = 1,	/* the same after an idle time of more than one RTO */
	CA_EVENT_COMPLETE_CWR = 2,	/* a window reduction has ended */
	CA_EVENT_LOSS = 3,		/* a retransmission timeout */
	CA_EVENT_ECN_NO_CE = 4,		/* receiver: a data segment without CE arrived */
	CA_EVENT_ECN_IS_CE = 5,		/* receiver: a data segment with CE arrived */
};

enum tcp_ca_ack_event_flags {	/* of in_ack_event */
	CA_ACK_SLOWPATH = 1,
	CA_ACK_WIN_UPDATE = 2,
	CA_ACK_ECE = 4,
};

#define TCP_ECN_OK 1		/* bits of ecn_flags: ECN was negotiated */
#define TCP_ECN_QUEUE_CWR 2	/* the next new segment carries CWR */
#define TCP_ECN_DEMAND_CWR 4	/* receiver: ACKs carry ECE until a CWR arrives */
#define TCP_ECN_SEEN 8		/* receiver: the peer has sent an ECT segment */
#define TCP_ECN_ACCURATE 16	/* AccECN was negotiated (RFC 9768); a kernel that has it does not set TCP_ECN_OK then */

#define ICSK_ACK_SCHED 1	/* bits of icsk_ack.pending: an ACK is owed */
#define ICSK_ACK_TIMER 2	/* the delayed-ACK timer runs */
#define ICSK_ACK_PUSHED 4
#define ICSK_ACK_NOW 16		/* the owed ACK leaves at once */

#define SK_PACING_NONE 0	/* values of sk_pacing_status */
#define SK_PACING_NEEDED 1	/* TCP itself paces */

#define TCP_CONG_NON_RESTRICTED 1	/* flags of tcp_congestion_ops: any user may choose it */
#define TCP_CONG_NEEDS_ECN 2		/* negotiate ECN, send ECT */
#if defined(__bpf__)
#define CC_TAKES_DEADLINES 0		/* no kernel knows deadlines, */
#define CC_SENDS_ECT1 0			/* nor lets a BPF program choose a code point */
#define CC_WANTS_ACCECN 0		/* or AccECN: net.ipv4.tcp_ecn does, where there is AccECN */
#else
#define CC_TAKES_DEADLINES 0x100u	/* the host keeps struct cc_deadline at the end of the private state */
#define CC_SENDS_ECT1 0x200u		/* ECT(1) where AccECN was negotiated: an L4S sender (RFC 9331) */
#define CC_WANTS_ACCECN 0x400u		/* ask for AccECN */
#endif

/* ---- Samples ---- */

struct ack_sample {	/* of pkts_acked */
	u32 pkts_acked;	/* segments that this ACK newly acknowledged cumulatively; 0 for a duplicate or SACK alone */
	s32 rtt_us;	/* -1: no sample */
	u32 in_flight;	/* bytes delivered between the send of the newest segment acknowledged and now */
} CC_KERNEL;

struct rate_sample {	/* of cong_control; delivered = -1 and interval_us = -1: no sample */
	u64 prior_mstamp;	/* us: start of the interval */
	u32 prior_delivered;	/* tp->delivered at prior_mstamp */
	u32 prior_delivered_ce;
	s32 delivered;		/* segments delivered over the interval */
	s32 delivered_ce;
#if defined(__bpf__)
	long interval_us;
	u32 snd_interval_us;
	u32 rcv_interval_us;
	long rtt_us;
#else
	s64 interval_us;
	u32 snd_interval_us;
	u32 rcv_interval_us;
	s64 rtt_us;		/* of the newest segment (s)acked; -1: none */
#endif
	s32 losses;		/* segments marked lost by this ACK */
	u32 acked_sacked;	/* segments newly delivered by this ACK */
	u32 prior_in_flight;	/* segments in flight before this ACK */
	u32 last_end_seq;
	bool is_app_limited;	/* the sender had too little to send during the interval */
	bool is_retrans;	/* the sample is of a retransmitted segment */
	bool is_ack_delayed;	/* the ACK was probably delayed by the receiver */
#if !defined(__bpf__)
	u8 cc_pad[5];
#endif
} CC_KERNEL;

struct minmax_sample {
	u32 t;	/* when */
	u32 v;	/* what was measured */
} CC_KERNEL;

struct minmax {	/* best, second best, third best of a sliding window */
	struct minmax_sample s[3];
} CC_KERNEL;

/* ---- Sockets ---- */

struct tcp_congestion_ops;

#if defined(__bpf__)

struct sock {
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
	unsigned int sk_gso_max_size;
	u8 sk_pacing_shift;
} CC_KERNEL;

struct inet_sock {
	struct sock sk;
} CC_KERNEL;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state : 5;
	u8 icsk_retransmits;
	struct {
		u8 pending;
	} icsk_ack;
	u64 icsk_ca_priv[13];
} CC_KERNEL;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_ssthresh, snd_cwnd_stamp;
	u32 prior_cwnd, prior_ssthresh, high_seq, undo_marker;
	int undo_retrans;
	u32 snd_una, snd_nxt, rcv_nxt;
	u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out, cwnd_usage_seq;
	u32 delivered, delivered_ce, lost, app_limited;
	u32 rate_delivered, rate_interval_us;
	u32 srtt_us, mdev_us, mss_cache, lsndtime;
	struct minmax rtt_min;
	u16 advmss;
	u8 ecn_flags;
	u8 is_cwnd_limited : 1;
	u64 tcp_mstamp, delivered_mstamp, first_tx_mstamp;
	u64 tcp_clock_cache, tcp_wstamp_ns;
	u64 bytes_acked, bytes_sent;
} CC_KERNEL;

#else

struct sock {
	u64 sk_pacing_rate;	/* bytes/s; ~0: not limited */
	u64 sk_max_pacing_rate;	/* bytes/s */
	u32 sk_pacing_status;	/* SK_PACING_* */
	u32 sk_gso_max_size;	/* bytes */
	u32 cc_ack_seq;		/* tcp_send_ack_at(): the acknowledgment number requested, */
	u8 cc_ack_wanted;	/* whether one is requested, */
	u8 cc_ack_ecn_flags;	/* and ecn_flags at the time of the request */
	u8 sk_pacing_shift;	/* a TSO burst is pacing rate >> this */
	u8 cc_accecn_rx;	/* the host's: AccECN's count of what arrived, */
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u32 cc_random_state;	/* cc_random_u32()'s stream, seeded by the host */
	u8 icsk_ca_state;	/* enum tcp_ca_state */
	u8 icsk_retransmits;	/* timeouts in a row */
	struct {
		u8 pending;	/* ICSK_ACK_* */
	} icsk_ack;
	u8 cc_accecn_tx;	/* and of what the peer has reported */
	u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	/* the window */
	u32 snd_cwnd;		/* segments */
	u32 snd_cwnd_cnt;	/* segments acknowledged towards the next increase */
	u32 snd_ssthresh;	/* segments */
	u32 snd_cwnd_clamp;	/* segments */
	/* segments */
	u32 packets_out;	/* sent, not yet cumulatively acknowledged */
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 delivered;		/* total, retransmissions included */
	u32 delivered_ce;	/* of these with an ECE echo */
	u32 lost;		/* total marked lost */
	u32 app_limited;	/* `delivered` until which samples are application-limited; 0: not limited */
	u32 max_packets_out;	/* most in flight in the last window */
	u32 cwnd_usage_seq;
	/* round-trip time */
	u32 srtt_us;		/* smoothed, << 3 */
	u32 mdev_us;		/* mean deviation, << 2 */
	struct minmax rtt_min;	/* us, windowed */
	/* clocks of the sender, us but where noted */
	u64 delivered_mstamp;
	u64 first_tx_mstamp;
	u64 tcp_wstamp_ns;	/* ns: when the next paced segment may leave */
	/* recovery */
	u32 prior_cwnd;
	u32 prior_ssthresh;
	u32 high_seq;		/* snd_nxt when the congestion episode began */
	u32 undo_marker;
	s32 undo_retrans;
	/* rate samples */
	u32 rate_delivered;
	u32 rate_interval_us;
	/* the host's tick counter, milliseconds here */
	u32 snd_cwnd_stamp;
	u64 bytes_sent;
	/* from here on: what a receiver uses too, and what its host keeps */
	u32 lsndtime;		/* the tick counter when data last left */
	u16 advmss;
	u8 ecn_flags;		/* TCP_ECN_* */
	u8 is_cwnd_limited;
	u64 tcp_mstamp;		/* us */
	u64 tcp_clock_cache;	/* ns */
	u64 bytes_acked;
	u32 mss_cache;		/* bytes of payload in a full segment */
	u32 rcv_nxt;
	u32 snd_una;
	u32 snd_nxt;
};

#endif

/* ---- The operations, in Linux's order of meaning ---- */

#if defined(__bpf__)
/*
 * The members are BPF programs, which take their arguments as an array of words. They must be pointers to
 * functions, or libbpf does not connect them; it finds the kernel's members by their names.
 */
struct tcp_congestion_ops {
	void (*init)(u64 *ctx);
	void (*release)(u64 *ctx);
	u32 (*ssthresh)(u64 *ctx);
	void (*cong_avoid)(u64 *ctx);
	void (*set_state)(u64 *ctx);
	void (*cwnd_event)(u64 *ctx);
	void (*in_ack_event)(u64 *ctx);
	void (*pkts_acked)(u64 *ctx);
	void (*cong_control)(u64 *ctx);
	u32 (*undo_cwnd)(u64 *ctx);
	u32 (*min_tso_segs)(u64 *ctx);
	u32 (*sndbuf_expand)(u64 *ctx);
	char name[16];
	u32 flags;
};
#else
struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);				/* required */
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);	/* this or cong_control is required */
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);				/* required */
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	u32 flags;
	u32 cc_pad;
#if defined(CC_OPS_MORE)
	CC_OPS_MORE	/* of Linux's own modules, which the host does not see */
#endif
};
#endif

/* ---- An algorithm's description (opentcp cc list) ---- */

enum cc_category {
	CC_LOSS_BASED = 1,
	CC_DELAY_BASED = 2,
	CC_HYBRID = 3,
	CC_ECN_BASED = 4,
	CC_MODEL_BASED = 5,
};

#define CC_MEASURES_LOSS 1u
#define CC_MEASURES_DELAY 2u
#define CC_MEASURES_ECN 4u
#define CC_MEASURES_MODEL 8u	/* bottleneck bandwidth and round-trip propagation */

struct cc_info {
	const char *title;		/* its usual name */
	const char *environment;	/* the environment it was made for */
	const char *reference;		/* paper or RFC */
	u32 category;			/* enum cc_category */
	u32 measures;			/* CC_MEASURES_*: its signals of congestion */
};

/* ---- Declaring hooks and the algorithm ---- */

#define CC_PRIVATE_MAX 104	/* bytes of icsk_ca_priv */
#define CC_ASSERT_STATE_FITS(type) _Static_assert(sizeof(type) <= CC_PRIVATE_MAX, #type " exceeds icsk_ca_priv")

#if defined(__bpf__)
/*
 * A hook is a BPF program: it receives its arguments as an array of 64-bit words.
 *   CC_HOOK(u32, x_ssthresh, struct sock *sk) { ... }
 */
#define CC_WORDS_1(a) ctx[0]
#define CC_WORDS_2(a, b) ctx[0], ctx[1]
#define CC_WORDS_3(a, b, c) ctx[0], ctx[1], ctx[2]
#define CC_WORDS_4(a, b, c, d) ctx[0], ctx[1], ctx[2], ctx[3]
#define CC_PICK(_1, _2, _3, _4, name, ...) name
#define CC_WORDS(...) CC_PICK(__VA_ARGS__, CC_WORDS_4, CC_WORDS_3, CC_WORDS_2, CC_WORDS_1)(__VA_ARGS__)
#define CC_HOOK(ret, hook, ...)                                                       \
	static inline __attribute__((always_inline)) ret cc_body_##hook(__VA_ARGS__); \
	SEC("struct_ops") ret hook(u64 *ctx)                                          \
	{                                                                             \
		_Pragma("clang diagnostic push")                                      \
		_Pragma("clang diagnostic ignored \"-Wint-conversion\"")              \
		return cc_body_##hook(CC_WORDS(__VA_ARGS__));                         \
		_Pragma("clang diagnostic pop")                                       \
	}                                                                             \
	static inline __attribute__((always_inline)) ret cc_body_##hook(__VA_ARGS__)
#define CC_INFO(id, ...)
#define CC_OPS(id, ...)                                           \
	char cc_license[] SEC("license") = "Dual BSD/GPL";        \
	struct tcp_congestion_ops ot_##id SEC(".struct_ops.link") = { \
		__VA_ARGS__, .name = "ot_" #id,                   \
	}
#else
#define CC_HOOK(ret, hook, ...) static ret hook(__VA_ARGS__)
#define CC_ABI 1u
struct cc_algorithm {
	u32 abi;		/* CC_ABI of the header it was compiled with */
	u32 sock_bytes;		/* sizeof(struct tcp_sock) */
	const struct cc_info *info;
	struct tcp_congestion_ops ops;
};
#if !defined(CC_SYMBOL)
#define CC_SYMBOL cc_algorithm
#endif
#define CC_INFO(id, ...) static const struct cc_info cc_info_##id = { __VA_ARGS__ }
#define CC_OPS(id, ...)                                                         \
	static const struct cc_info cc_info_##id;                               \
	extern const struct cc_algorithm CC_SYMBOL;                             \
	const struct cc_algorithm CC_SYMBOL = {                                 \
		.abi = CC_ABI, .sock_bytes = sizeof(struct tcp_sock),           \
		.info = &cc_info_##id, .ops = { __VA_ARGS__, .name = #id },     \
	}
#endif

/* ---- Access ---- */

CC_INLINE struct inet_connection_sock *inet_csk(const struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

CC_INLINE struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

CC_INLINE void *inet_csk_ca(const struct sock *sk)
{
	return (void *)inet_csk(sk)->icsk_ca_priv;
}

#if defined(__bpf__)
/* A bitfield's place differs between kernels: load the byte that CO-RE names, then shift the field out of it. */
#define CC_BITFIELD(object, field) ({                                                                   \
	const u8 *cc_byte = (const u8 *)(object) + __builtin_preserve_field_info((object)->field, 0);   \
	asm volatile("" : "+r"(cc_byte));                                                               \
	u64 cc_value = *cc_byte;                                                                        \
	cc_value <<= __builtin_preserve_field_info((object)->field, 4);                                 \
	cc_value >> __builtin_preserve_field_info((object)->field, 5);                                  \
})
#else
#define CC_BITFIELD(object, field) ((object)->field)
#endif

/* The congestion state, enum tcp_ca_state. */
CC_INLINE u8 tcp_ca_state(const struct sock *sk)
{
	return (u8)CC_BITFIELD(inet_csk(sk), icsk_ca_state);
}

/* ---- Sequence and numbers ---- */

CC_INLINE bool before(u32 seq1, u32 seq2)
{
	return (s32)(seq1 - seq2) < 0;
}

CC_INLINE bool after(u32 seq1, u32 seq2)
{
	return before(seq2, seq1);
}

CC_INLINE u32 min_u32(u32 a, u32 b) { return a < b ? a : b; }
CC_INLINE u32 max_u32(u32 a, u32 b) { return a > b ? a : b; }
CC_INLINE u64 min_u64(u64 a, u64 b) { return a < b ? a : b; }
CC_INLINE u64 max_u64(u64 a, u64 b) { return a > b ? a : b; }
CC_INLINE u32 clamp_u32(u32 value, u32 low, u32 high) { return min_u32(max_u32(value, low), high); }

/* Position of the highest bit set, from 1; 0 for 0. Written out because BPF has no such instruction. */
CC_INLINE u32 fls64(u64 x)
{
	u32 n = 0;

	if (x >> 32) { n += 32; x >>= 32; }
	if (x >> 16) { n += 16; x >>= 16; }
	if (x >> 8) { n += 8; x >>= 8; }
	if (x >> 4) { n += 4; x >>= 4; }
	if (x >> 2) { n += 2; x >>= 2; }
	if (x >> 1) { n += 1; x >>= 1; }
	return n + (u32)x;
}

/*
 * Floor of the cube root, exact: Newton's r = (2 r + x / r^2) / 3 from above, where r falls until it is the root. The
 * first r is at most twice the root; the error then shrinks as 2, 1.42, 1.11, 1.011, 1.0001, 1 + 2^-26, and a root has 22
 * bits: seven steps. (Deciding bit by bit is 2^22 paths for the verifier.)
 */
CC_INLINE u32 cube_root(u64 x)
{
	u64 root = 1ul << (fls64(x) + 2) / 3;

	if (!x)
		return 0;
	for (int step = 0; step < 7; step++)
		root = min_u64(root, (2 * root + x / (root * root)) / 3);
	return (u32)root;
}

/* ---- TCP ---- */

/* Was ECN negotiated, in whichever way? */
CC_INLINE bool tcp_has_ecn(const struct tcp_sock *tp)
{
	return tp->ecn_flags & (TCP_ECN_OK | TCP_ECN_ACCURATE);
}

/* Do the algorithms of both ends echo each mark (dctcp)? AccECN is the host's, and needs nothing of them. */
CC_INLINE bool tcp_echoes_marks(const struct tcp_sock *tp)
{
	return (tp->ecn_flags & (TCP_ECN_OK | TCP_ECN_ACCURATE)) == TCP_ECN_OK;
}

/* Segments that are not in the network any more: selectively acknowledged, or lost. */
CC_INLINE u32 tcp_left_out(const struct tcp_sock *tp)
{
	return tp->sacked_out + tp->lost_out;
}

CC_INLINE u32 tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tcp_left_out(tp) + tp->retrans_out;
}

CC_INLINE bool tcp_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Did the window, not the application, limit what was sent? In slow start half of it used is enough. */
CC_INLINE bool tcp_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (CC_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* us; ~0 before the first sample */
CC_INLINE u32 tcp_min_rtt(const struct tcp_sock *tp)
{
	return tp->rtt_min.s[0].v;
}

/* Grow by one segment per segment acknowledged, up to ssthresh; returns the acknowledged segments left over. */
CC_INLINE u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 room = tp->snd_ssthresh > tp->snd_cwnd ? tp->snd_ssthresh - tp->snd_cwnd : 0;
	u32 used = min_u32(acked, room);

	tp->snd_cwnd = min_u32(tp->snd_cwnd + used, tp->snd_cwnd_clamp);
	return acked - used;
}

/* Grow by one segment per w segments acknowledged; w >= 1. */
CC_INLINE void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
{
	u32 count = tp->snd_cwnd_cnt;
	u32 grown = 0;

	if (!w)
		w = 1;
	/* w may have shrunk since: credit earned under a larger w counts as one segment, not many */
	if (count >= w) {
		count = 0;
		grown = 1;
	}
	count += acked;
	if (count >= w) {
		u32 more = count / w;

		count -= more * w;
		grown += more;
	}
	tp->snd_cwnd_cnt = count;
	tp->snd_cwnd = min_u32(tp->snd_cwnd + grown, tp->snd_cwnd_clamp);
}

/* RFC 5681: half of the window, at least two segments. */
CC_INLINE u32 tcp_reno_ssthresh(const struct sock *sk)
{
	return max_u32(tcp_sk(sk)->snd_cwnd >> 1, 2);
}

CC_INLINE u32 tcp_reno_undo_cwnd(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return max_u32(tp->snd_cwnd, tp->prior_cwnd);
}

/*
 * Grow by slow start below ssthresh. True if congestion avoidance is to grow the window by what is then left in *acked. A flow
 * that does not use its window learns nothing about the path, and grows by neither.
 */
CC_INLINE bool tcp_past_slow_start(struct sock *sk, u32 *acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return false;
	if (!tcp_in_slow_start(tp))
		return true;
	*acked = tcp_slow_start(tp, *acked);
	return *acked > 0;
}

CC_INLINE void tcp_reno_cong_avoid(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_past_slow_start(sk, &acked))
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

/* ---- Maximum over a sliding window, in constant space ---- */

CC_INLINE u32 minmax_get(const struct minmax *m)
{
	return m->s[0].v;
}

CC_INLINE u32 minmax_reset(struct minmax *m, u32 t, u32 v)
{
	struct minmax_sample sample = { .t = t, .v = v };

	m->s[0] = m->s[1] = m->s[2] = sample;
	return v;
}

/*
 * Enter v, measured at t, and return the maximum of the last `window` units of t. Kept are the best value and the best
 * ones of its second and third part that came later: when the best expires, the next takes its place.
 */
CC_INLINE u32 minmax_running_max(struct minmax *m, u32 window, u32 t, u32 v)
{
	struct minmax_sample sample = { .t = t, .v = v };
	u32 age;

	if (v >= m->s[0].v || t - m->s[2].t > window)
		return minmax_reset(m, t, v);
	if (v >= m->s[1].v)
		m->s[1] = m->s[2] = sample;
	else if (v >= m->s[2].v)
		m->s[2] = sample;

	age = t - m->s[0].t;
	if (age > window) {
		m->s[0] = m->s[1];
		m->s[1] = m->s[2];
		m->s[2] = sample;
		if (t - m->s[0].t > window) {
			m->s[0] = m->s[1];
			m->s[1] = m->s[2];
		}
	} else if (m->s[1].t == m->s[0].t && age > window / 4) {
		m->s[1] = m->s[2] = sample;
	} else if (m->s[2].t == m->s[1].t && age > window / 2) {
		m->s[2] = sample;
	}
	return m->s[0].v;
}

/* ---- Round trips, counted by what was sent in them (vegas, yeah) ---- */

/*
 * A round ends when data sent after its beginning is acknowledged. Its RTT is the least of its samples: one delayed
 * ACK, or one burst of the flow's own, is then not taken for a queue.
 */
struct rtt_round {
	u32 base_us;	/* the least RTT of the connection; 0: none seen */
	u32 least_us;	/* the least of this round; 0: none seen */
	u32 samples;	/* RTTs seen in this round */
	u32 end_seq;	/* snd_nxt when the round began */
};

CC_INLINE void rtt_round_begin(struct rtt_round *round, const struct tcp_sock *tp)
{
	round->least_us = 0;
	round->samples = 0;
	round->end_seq = tp->snd_nxt;
}

/* The handshake's RTT is the first known one: it precedes any queue of the flow's own data. */
CC_INLINE void rtt_round_init(struct rtt_round *round, const struct tcp_sock *tp)
{
	u32 rtt = tcp_min_rtt(tp);

	round->base_us = rtt == ~0u ? 0 : max_u32(rtt, 1);
	rtt_round_begin(round, tp);
}

/* Adds ack_sample.rtt_us. An RTT under 1 us counts as 1, so that base_us and least_us can be divisors. */
CC_INLINE void rtt_round_sample(struct rtt_round *round, s32 rtt_us)
{
	u32 rtt = rtt_us > 0 ? (u32)rtt_us : 1;

	if (rtt_us < 0)
		return;
	if (!round->base_us || rtt < round->base_us)
		round->base_us = rtt;
	if (!round->least_us || rtt < round->least_us)
		round->least_us = rtt;
	round->samples++;
}

CC_INLINE bool rtt_round_over(const struct rtt_round *round, u32 ack)
{
	return after(ack, round->end_seq);
}

/* ---- Deadlines (d2tcp) ---- */

/*
 * What the application that writes has said of its last message. The host keeps it, for an algorithm that has
 * CC_TAKES_DEADLINES, in the last 8 bytes of the private state, and lets init() not clear it. In the kernel it is zero.
 */
struct cc_deadline {
	u32 due_us;	/* tcp_mstamp, low 32 bits, when the message is to have arrived; 0: there is no deadline */
	u32 end_seq;	/* the sequence number after its last byte */
};

CC_INLINE const struct cc_deadline *cc_deadline(const struct sock *sk)
{
	return (const void *)&inet_csk(sk)->icsk_ca_priv[CC_PRIVATE_MAX / 8 - 1];
}

/* ---- Services of the host ---- */

#if defined(__bpf__)
static u32 (*const cc_bpf_random)(void) = (void *)7;				/* bpf_get_prandom_u32 */
static long (*const cc_bpf_tcp_send_ack)(void *tp, u32 rcv_nxt) = (void *)116;	/* bpf_tcp_send_ack */
#endif

/* 32 random bits; natively from a stream that the run's seed determines. */
CC_INLINE u32 cc_random_u32(struct sock *sk)
{
#if defined(__bpf__)
	(void)sk;
	return cc_bpf_random();
#else
	struct inet_connection_sock *icsk = inet_csk(sk);
	u32 x = icsk->cc_random_state;

	/* xorshift (Marsaglia 2003, 13-17-5), its weak low bits mixed by a multiplication */
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	icsk->cc_random_state = x;
	return x * 0x9e3779b1u;
#endif
}

/* Send an ACK at once that acknowledges up to rcv_nxt and carries ECE as ecn_flags stand now. Once per hook call. */
CC_INLINE void tcp_send_ack_at(struct sock *sk, u32 rcv_nxt)
{
#if defined(__bpf__)
	cc_bpf_tcp_send_ack(tcp_sk(sk), rcv_nxt);
#else
	sk->cc_ack_seq = rcv_nxt;
	sk->cc_ack_ecn_flags = tcp_sk(sk)->ecn_flags;
	sk->cc_ack_wanted = 1;
#endif
}

#endif
