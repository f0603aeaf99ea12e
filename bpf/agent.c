/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The agent's part in the kernel: it sets TCP's parameters of new and open connections, restores them when the rule's deadline
 * has passed, and records each connection's end.
 *
 * It is attached to a cgroup (sockops), so the kernel calls it when a socket of the cgroup connects, is established, has measured a
 * round trip, or changes its state. `tables` holds the rules in order of rank; each session takes
 * every setting from the first matching rule that has it. There are two tables; the lowest bit of `generation` says which one
 * is active, so that user space fills the other one and then switches.
 *
 * A second program visits all connections of a namespace at once (iter/tcp): those that are older than the first program's
 * attachment, and idle ones, which measure no round trip.
 *
 * A rule can bound the sum of the receive windows of its connections (`window_total`). `fan_ins` holds how many they are and what they
 * have been given; each of them takes its share anew before each packet that it sends. So a share falls with the first
 * ACK after another connection has come, and rises as others have given up theirs.
 *
 * Nothing here waits for user space. Each rule has a deadline on the clock that counts since boot, suspended time
 * included; at its next round trip after that, a connection is restored. So the settings end in time even
 * if the agent has died.
 */
#include <linux/bpf.h>

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define inline_always static inline __attribute__((always_inline))
#define UINT(name, value) int (*name)[value]
#define TYPE(name, type) type *name

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const setsockopt_of)(void *to, int level, int name, const void *value, int length) = (void *)49;
static long (*const getsockopt_of)(void *of, int level, int name, void *value, int length) = (void *)57;
static long (*const callbacks_set)(struct bpf_sock_ops *ctx, int flags) = (void *)59;
static struct bpf_tcp_sock *(*const tcp_sock_of)(struct bpf_sock *sk) = (void *)96;
static void *(*const storage_of)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static u64 (*const netns_cookie)(void *ctx) = (void *)122;
static u64 (*const ktime_get_boot_ns)(void) = (void *)125;
static void *(*const skc_to_tcp_sock)(void *sk) = (void *)137;
static long (*const ring_output)(void *ring, const void *data, u64 size, u64 flags) = (void *)130;

enum {
	SOL_SOCKET = 1, SOL_TCP = 6, HEADER_CURRENT_MSS = 1,
	SO_MAX_PACING_RATE = 47, TCP_CONGESTION = 13, TCP_BPF_SOCK_OPS_CB_FLAGS = 1008, TCP_WINDOW_CLAMP = 10,
	IPV4 = 2, TCP_ECN_OK = 1,
	TCP_STATE_SYN_SENT = 2, TCP_STATE_SYN_RECV = 3, TCP_STATE_FIN_WAIT2 = 5, TCP_STATE_CLOSE = 7, TCP_STATE_LISTEN = 10,
	ALGORITHM_MAX = 16, RULES_MAX = 32, NAMESPACES_MAX = 1024, CGROUP_DEPTH_MAX = 32,
	/* Linux's defaults */
	RTO_MIN_US = 200000, DELACK_MAX_US = 200000, CLAMP_NONE = 0x7fffffff, PACING_NONE = -1,
	/* payload of a segment, as far as it is known before the handshake ends */
	SEGMENT_BYTES = 1460,
	/* a connection that has sent so much more than it has received is no receiver */
	SENDER_BYTES = 65536,
	/* handshakes that begin within this time count together */
	OPENING_NS = 1000000,
	CALLBACKS = BPF_SOCK_OPS_RTT_CB_FLAG | BPF_SOCK_OPS_STATE_CB_FLAG,
};

/* The kernel's own structures, only with the members that are read here; CO-RE finds them. */
#define KERNEL __attribute__((preserve_access_index))

struct net { u64 net_cookie; } KERNEL;
struct sock_common {
	u32 skc_daddr;
	unsigned short skc_dport, skc_num, skc_family;
	volatile u8 skc_state;
	struct { struct net *net; } skc_net;
	struct { union { u32 u6_addr32[4]; } in6_u; } skc_v6_daddr;
} KERNEL;
struct kernfs_node { u64 id; } KERNEL;
struct cgroup;
struct cgroup_subsys_state { struct cgroup *cgroup; struct cgroup_subsys_state *parent; } KERNEL;
struct cgroup { struct cgroup_subsys_state self; struct kernfs_node *kn; } KERNEL;
struct sock_cgroup_data { struct cgroup *cgroup; } KERNEL;
struct sock { struct sock_cgroup_data sk_cgrp_data; } KERNEL;
struct inet_sock { struct sock sk; } KERNEL;
struct inet_connection_sock { struct inet_sock icsk_inet; } KERNEL;
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 bytes_received, bytes_acked;
	u32 snd_cwnd_clamp, window_clamp;
	unsigned short advmss;
	u8 ecn_flags, bpf_sock_ops_cb_flags;
} KERNEL;

/* Which of a rule's settings are present. */
enum setting {
	SET_INITIAL_CWND = 1 << 0, SET_RTO_MIN = 1 << 1, SET_DELACK_MAX = 1 << 2, SET_CWND_CLAMP = 1 << 3,
	SET_PACING_RATE = 1 << 4, SET_WINDOW_CLAMP = 1 << 5, SET_ALGORITHM = 1 << 6, SET_WINDOW_TOTAL = 1 << 7,
};

struct settings {
	u32 set;
	u32 initial_cwnd;	/* segments */
	u32 rto_min_us;
	u32 delack_max_us;
	u32 cwnd_clamp;		/* segments */
	u32 window_clamp;	/* bytes */
	u32 pacing_rate;	/* bytes a second */
	u32 needs_ecn;		/* the algorithm does */
	char algorithm[ALGORITHM_MAX];
	u32 window_total;	/* bytes, of all connections together */
	u32 rule;		/* user space's number, reported at each connection's end */
};

struct rule {
	u64 is_everywhere;	/* applies to all namespaces; else to those in `namespaces` */
	u64 deadline_ns;	/* since the machine started */
	u8 remote[16];		/* IPv6, or IPv4 as ::ffff:a.b.c.d */
	u8 mask[16];
	u32 port;		/* the server's, 0: any */
	u32 reserved;
	struct settings settings;
};

struct table {
	u32 n;
	u32 reserved;
	struct rule rules[RULES_MAX];
};

/* Which side opened a connection; unknown for one that was open before we were attached. */
enum side { SIDE_ACCEPTED, SIDE_CONNECTED, SIDE_UNKNOWN };

/* A connection's own value of a setting before we changed it, in the units of `struct settings`. */
struct own {
	u32 rto_min_us, delack_max_us, cwnd_clamp, window_clamp, pacing_rate;
	char algorithm[ALGORITHM_MAX];
};

/* What we have set on a connection, and what it had before. */
struct applied {
	u64 generation;
	u64 deadline_ns;
	u64 began_ns;
	struct settings now;
	struct own own;
	u32 active;		/* `enum side` */
	u32 initial_cwnd;	/* segments: the first window, whoever set it; 0: not seen */
	u32 reserved;
};

/* The receiving connections of a namespace, or of all, among which a total is shared. */
struct fan_in {
	u64 connections;
	u64 given;		/* sum of their shares, bytes */
	u64 opening_ns;		/* when handshakes began that are not connections yet */
	u64 opening;		/* bytes that these were given */
};

/* A connection's share. */
struct share {
	u64 key;		/* in `fan_ins` */
	u32 total;		/* bytes; 0: it has no share */
	u32 limit;		/* bytes that it gets at most */
	u32 window;		/* bytes; 0: it is not counted */
	u32 asked;		/* callbacks that were asked for here for the share, and by no other program before */
};

/* A connection that has ended. */
struct record {
	u64 netns, began_ns, ended_ns;
	u64 bytes_acked, bytes_received;
	u8 remote[16];
	u32 local_port, remote_port, active, rule;
	u32 segs_out, data_segs_out, retransmits, lost, delivered, delivered_ce;
	u32 srtt_us, min_rtt_us, cwnd, ssthresh;
	char algorithm[ALGORITHM_MAX];
	u32 initial_cwnd, reserved;
};

enum counter { COUNT_APPLIED, COUNT_REVERTED, COUNT_ECN_REFUSED, COUNT_FAILED, COUNT_RECORDS_LOST, COUNTERS };

struct { UINT(type, BPF_MAP_TYPE_ARRAY); UINT(max_entries, 2); TYPE(key, u32); TYPE(value, struct table); } tables SEC(".maps");
struct { UINT(type, BPF_MAP_TYPE_ARRAY); UINT(max_entries, 1); TYPE(key, u32); TYPE(value, u64); } generation SEC(".maps");
struct { UINT(type, BPF_MAP_TYPE_ARRAY); UINT(max_entries, 1); TYPE(key, u32); TYPE(value, u64); } cgroup_id SEC(".maps");
/* By a network namespace's cookie: the rules that apply to it, a bit each, those of the second table in the upper half. */
struct { UINT(type, BPF_MAP_TYPE_HASH); UINT(max_entries, NAMESPACES_MAX); TYPE(key, u64); TYPE(value, u64); } namespaces SEC(".maps");
struct { UINT(type, BPF_MAP_TYPE_PERCPU_ARRAY); UINT(max_entries, COUNTERS); TYPE(key, u32); TYPE(value, u64); } counters SEC(".maps");
struct { UINT(type, BPF_MAP_TYPE_SK_STORAGE); UINT(map_flags, BPF_F_NO_PREALLOC); TYPE(key, u32); TYPE(value, struct applied); } sockets SEC(".maps");
struct { UINT(type, BPF_MAP_TYPE_SK_STORAGE); UINT(map_flags, BPF_F_NO_PREALLOC); TYPE(key, u32); TYPE(value, struct share); } shares SEC(".maps");
/* By the cookie of a network namespace; 0: a rule for all of them. */
struct { UINT(type, BPF_MAP_TYPE_HASH); UINT(max_entries, NAMESPACES_MAX); TYPE(key, u64); TYPE(value, struct fan_in); } fan_ins SEC(".maps");
struct { UINT(type, BPF_MAP_TYPE_RINGBUF); UINT(max_entries, 1 << 19); } records SEC(".maps");

inline_always void count(u32 which)
{
	u64 *counter = map_lookup(&counters, &which);

	if (counter)
		(*counter)++;
}

/* The value, read only here: the verifier requires that each field of the context is read at its own offset. */
#define READ(x) ({ u32 read = (x); asm volatile("" : "+r"(read)); read; })

/* The session's endpoints. */
struct session {
	u64 netns;
	u32 remote[4];		/* the other end's address, IPv4 as IPv6 */
	u32 local_port, remote_port;
	u64 fan_in;		/* the key of the rule that has a total */
};

inline_always void remote_of(const struct bpf_sock_ops *ctx, u32 remote[4])
{
	u32 is_v4 = READ(ctx->family) == IPV4, ip4 = READ(ctx->remote_ip4);
	u32 a = READ(ctx->remote_ip6[0]), b = READ(ctx->remote_ip6[1]);
	u32 c = READ(ctx->remote_ip6[2]), d = READ(ctx->remote_ip6[3]);

	remote[0] = is_v4 ? 0 : a;
	remote[1] = is_v4 ? 0 : b;
	remote[2] = is_v4 ? __builtin_bswap32(0xffff) : c;
	remote[3] = is_v4 ? ip4 : d;
}

inline_always void take(struct settings *to, const struct settings *from)
{
	u32 news = from->set & ~to->set;

	if (news & SET_INITIAL_CWND)
		to->initial_cwnd = from->initial_cwnd;
	if (news & SET_RTO_MIN)
		to->rto_min_us = from->rto_min_us;
	if (news & SET_DELACK_MAX)
		to->delack_max_us = from->delack_max_us;
	if (news & SET_CWND_CLAMP)
		to->cwnd_clamp = from->cwnd_clamp;
	if (news & SET_WINDOW_CLAMP)
		to->window_clamp = from->window_clamp;
	if (news & SET_PACING_RATE)
		to->pacing_rate = from->pacing_rate;
	if (news & SET_WINDOW_TOTAL)
		to->window_total = from->window_total;
	if (news & SET_ALGORITHM) {
		__builtin_memcpy(to->algorithm, from->algorithm, ALGORITHM_MAX);
		to->needs_ecn = from->needs_ecn;
	}
	if (!to->set)
		to->rule = from->rule;
	to->set |= news;
}

/* Whether the server's port, as far as the server's side is known, is this one. */
inline_always int serves(const struct session *session, u32 side, u32 port)
{
	if (side != SIDE_CONNECTED && session->local_port == port)
		return 1;
	return side != SIDE_ACCEPTED && session->remote_port == port;
}

/* The endpoints of a connection, also of one in its handshake. */
inline_always void session_of(struct bpf_sock_ops *ctx, struct session *session)
{
	session->netns = netns_cookie(ctx);
	remote_of(ctx, session->remote);
	session->local_port = ctx->local_port;
	session->remote_port = __builtin_bswap32(ctx->remote_port);
}

/* The settings that the session is to have now, and the earliest deadline among them. */
inline_always u64 wanted(struct session *session, u64 gen, u32 side, u64 now, struct settings *to)
{
	u32 which = gen & 1;
	const struct table *table = map_lookup(&tables, &which);
	const u32 *remote = session->remote;
	const u64 *own = map_lookup(&namespaces, &session->netns);
	u32 bits = own ? *own >> (which ? 32 : 0) : 0;
	u64 until = ~0ull;

	if (!table)
		return until;
	for (u32 i = 0; i < RULES_MAX && i < table->n; i++) {
		const struct rule *rule = &table->rules[i];
		const u32 *mask = (const u32 *)rule->mask, *prefix = (const u32 *)rule->remote;

		if (now >= rule->deadline_ns || !(rule->is_everywhere || (bits >> i & 1)))
			continue;
		if (rule->port && !serves(session, side, rule->port))
			continue;
		if ((remote[0] & mask[0]) != prefix[0] || (remote[1] & mask[1]) != prefix[1] ||
		    (remote[2] & mask[2]) != prefix[2] || (remote[3] & mask[3]) != prefix[3])
			continue;
		if (rule->settings.set & ~to->set & SET_WINDOW_TOTAL)
			session->fan_in = rule->is_everywhere ? 0 : session->netns;
		take(to, &rule->settings);
		if (rule->deadline_ns < until)
			until = rule->deadline_ns;
	}
	return until;
}

inline_always void set_number(void *ctx, int level, int name, int value)
{
	if (setsockopt_of(ctx, level, name, &value, sizeof(value)))
		count(COUNT_FAILED);
}

inline_always int number_or(void *ctx, int level, int name, int otherwise)
{
	int value;

	return getsockopt_of(ctx, level, name, &value, sizeof(value)) ? otherwise : value;
}

inline_always int same_name(const char *a, const char *b)
{
	u64 x[2], y[2];

	__builtin_memcpy(x, a, ALGORITHM_MAX);
	__builtin_memcpy(y, b, ALGORITHM_MAX);
	return x[0] == y[0] && x[1] == y[1];
}

inline_always void set_algorithm(void *ctx, const char *name)
{
	char copy[ALGORITHM_MAX];

	__builtin_memcpy(copy, name, ALGORITHM_MAX);
	if (setsockopt_of(ctx, SOL_TCP, TCP_CONGESTION, copy, ALGORITHM_MAX))
		count(COUNT_FAILED);
}

/* How far a connection has got. */
enum age { AGE_CONNECTING, AGE_FRESH, AGE_OPEN };

/* The settings to touch on the way from `now` to `to`. An unchanged one is not touched: a clamp of the congestion window also sets the
 * slow-start threshold, and what the application has set meanwhile is its own. */
inline_always u32 differing(const struct settings *now, const struct settings *to)
{
	u32 same = 0;

	if (now->rto_min_us == to->rto_min_us)
		same |= SET_RTO_MIN;
	if (now->delack_max_us == to->delack_max_us)
		same |= SET_DELACK_MAX;
	if (now->cwnd_clamp == to->cwnd_clamp)
		same |= SET_CWND_CLAMP;
	if (now->pacing_rate == to->pacing_rate)
		same |= SET_PACING_RATE;
	if (same_name(now->algorithm, to->algorithm))
		same |= SET_ALGORITHM;
	return (now->set | to->set) & ~(now->set & to->set & same);
}

/* Saves the connection's own values of the settings `news`, the application's choices included. */
inline_always void remember(void *ctx, const struct tcp_sock *tcp, u32 now, u32 news, struct own *own)
{
	if (news & SET_RTO_MIN)
		own->rto_min_us = number_or(ctx, SOL_TCP, TCP_BPF_RTO_MIN, RTO_MIN_US);
	if (news & SET_DELACK_MAX)
		own->delack_max_us = number_or(ctx, SOL_TCP, TCP_BPF_DELACK_MAX, DELACK_MAX_US);
	/* a route can set this one, a program cannot; Linux refuses its own default, all ones */
	if (news & SET_CWND_CLAMP)
		own->cwnd_clamp = tcp->snd_cwnd_clamp < CLAMP_NONE ? tcp->snd_cwnd_clamp : CLAMP_NONE;
	if ((news & (SET_WINDOW_CLAMP | SET_WINDOW_TOTAL)) && !(now & (SET_WINDOW_CLAMP | SET_WINDOW_TOTAL)))
		own->window_clamp = number_or(ctx, SOL_TCP, TCP_WINDOW_CLAMP, CLAMP_NONE);
	if (news & SET_PACING_RATE)
		own->pacing_rate = number_or(ctx, SOL_SOCKET, SO_MAX_PACING_RATE, PACING_NONE);
	if (news & SET_ALGORITHM)
		getsockopt_of(ctx, SOL_TCP, TCP_CONGESTION, own->algorithm, ALGORITHM_MAX);
}

/* Linux raises this clamp with the receive buffer. So each change of the rules sets it anew, and a value that Linux has raised
 * becomes the connection's own. */
inline_always void set_window_clamp(void *ctx, u32 ours, const struct own *own, struct settings *to)
{
	if (to->set & SET_WINDOW_CLAMP) {
		set_number(ctx, SOL_TCP, TCP_WINDOW_CLAMP, to->window_clamp);
		/* as Linux has rounded it */
		to->window_clamp = number_or(ctx, SOL_TCP, TCP_WINDOW_CLAMP, CLAMP_NONE);
	} else if (number_or(ctx, SOL_TCP, TCP_WINDOW_CLAMP, CLAMP_NONE) == (int)ours) {
		set_number(ctx, SOL_TCP, TCP_WINDOW_CLAMP, own->window_clamp);
	}
}

inline_always struct fan_in *fan_in_of(u64 key)
{
	struct fan_in none = {}, *fan_in = map_lookup(&fan_ins, &key);

	if (fan_in)
		return fan_in;
	map_update(&fan_ins, &key, &none, BPF_NOEXIST);
	return map_lookup(&fan_ins, &key);
}

/* An equal share in whole segments, at least one. A lone connection has half: it keeps what was announced when others come. */
inline_always u32 equal_share(u32 total, u64 connections, u32 segment)
{
	u32 segments = total / (u32)(connections < 2 ? 2 : connections) / segment;

	return (segments ? segments : 1) * segment;
}

/* The connection is not counted any more. */
inline_always void leave(struct share *share)
{
	struct fan_in *fan_in = map_lookup(&fan_ins, &share->key);

	if (share->window && fan_in) {
		__sync_fetch_and_add(&fan_in->connections, -1);
		__sync_fetch_and_add(&fan_in->given, -(u64)share->window);
	}
	share->window = 0;
}

/* Gives the connection its share as of now. What others have had is not given anew before they have it no more; but half of the share
 * always, and a segment: those that are idle keep theirs. */
inline_always void follow(void *ctx, const struct tcp_sock *tcp, struct share *share, struct own *own)
{
	struct fan_in *fan_in = fan_in_of(share->key);
	u32 segment = tcp->advmss ? tcp->advmss : SEGMENT_BYTES, clamp = tcp->window_clamp, window = share->window, now;
	u64 given;

	if (!fan_in)
		return;
	if (tcp->bytes_acked > tcp->bytes_received + SENDER_BYTES) {
		if (window && clamp == window)
			set_number(ctx, SOL_TCP, TCP_WINDOW_CLAMP, own->window_clamp);
		leave(share);
		return;
	}
	if (!window)
		__sync_fetch_and_add(&fan_in->connections, 1);
	else if (clamp != window)
		own->window_clamp = clamp;	/* Linux has raised it, or the application has set it */
	now = equal_share(share->total, fan_in->connections, segment);
	given = fan_in->given;
	if (now > window) {
		u32 left = given < share->total ? share->total - given : 0, least = now / 2 / segment * segment;

		if (now > window + left)
			now = (window + left) / segment * segment;
		if (now < least)
			now = least;
		if (now < segment)
			now = segment;
		if (now < window)
			now = window;
	}
	if (now > share->limit)
		now = share->limit;
	if (now != window || clamp != window) {
		set_number(ctx, SOL_TCP, TCP_WINDOW_CLAMP, now);
		/* as Linux has rounded it */
		now = tcp->window_clamp;
	}
	__sync_fetch_and_add(&fan_in->given, (u64)now - window);
	share->window = now;
}

/* Moves the connection's window from our present settings to `to`. */
inline_always void change_window(void *ctx, struct tcp_sock *tcp, struct applied *has, struct settings *to, u64 key)
{
	u32 had = has->now.set, ours = has->now.window_clamp, flags = tcp->bpf_sock_ops_cb_flags | CALLBACKS;
	struct share *share = 0;

	if ((had | to->set) & SET_WINDOW_TOTAL)
		share = storage_of(&shares, tcp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (share && (to->set & SET_WINDOW_TOTAL)) {
		if (share->key != key)
			leave(share);
		share->key = key;
		share->total = to->window_total;
		share->limit = to->set & SET_WINDOW_CLAMP ? to->window_clamp : CLAMP_NONE;
		follow(ctx, tcp, share, &has->own);
		share->asked |= ~flags & BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;
		flags |= BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;
	} else if (share) {
		flags &= ~share->asked;
		share->asked = 0;
		ours = share->window ? share->window : ours;
		leave(share);
		share->total = 0;
	}
	if (share)
		setsockopt_of(ctx, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags));
	if (!(to->set & SET_WINDOW_TOTAL))
		set_window_clamp(ctx, ours, &has->own, to);
}

/* The window that a SYN or SYN-ACK announces, in segments; 0: Linux's own. Handshakes that begin at the same time count together. */
inline_always u32 first_window(struct bpf_sock_ops *ctx)
{
	u32 zero = 0, window, left;
	u64 now = ktime_get_boot_ns(), *gen = map_lookup(&generation, &zero);
	struct session session = {};
	struct settings to = {};
	struct fan_in *fan_in;

	if (!gen)
		return 0;
	session_of(ctx, &session);
	wanted(&session, *gen, ctx->is_fullsock ? SIDE_CONNECTED : SIDE_ACCEPTED, now, &to);
	fan_in = to.set & SET_WINDOW_TOTAL ? fan_in_of(session.fan_in) : 0;
	if (!fan_in)
		return 0;
	if (now - fan_in->opening_ns > OPENING_NS) {
		fan_in->opening_ns = now;
		fan_in->opening = 0;
	}
	window = equal_share(to.window_total, fan_in->connections + 1, SEGMENT_BYTES);
	left = fan_in->given + fan_in->opening < to.window_total ? to.window_total - fan_in->given - fan_in->opening : 0;
	if (window > left)
		window = left;
	window /= SEGMENT_BYTES;
	__sync_fetch_and_add(&fan_in->opening, (u64)window * SEGMENT_BYTES);
	return window ? window : 1;
}

/* Moves the connection from our present settings to `to`. A fresh one has sent nothing yet, so its initial window can be set. */
inline_always void change(void *ctx, struct tcp_sock *tcp, struct applied *has, struct settings *to, enum age age, u64 key)
{
	const struct settings *now = &has->now;
	const struct own *own = &has->own;
	u32 changed;

	/* During the handshake ECN is negotiated, and the first RTT sets the RTO. Clamps wait: one would be overwritten
	 * by the route's, the other would choose the window scale, which is permanent. */
	if (age == AGE_CONNECTING)
		to->set &= SET_ALGORITHM | SET_RTO_MIN | SET_DELACK_MAX;
	/* an open connection that did not agree on ECN would be marked without an echo */
	if ((to->set & SET_ALGORITHM) && to->needs_ecn && age != AGE_CONNECTING && !(tcp->ecn_flags & TCP_ECN_OK)) {
		to->set &= ~SET_ALGORITHM;
		count(COUNT_ECN_REFUSED);
	}
	changed = differing(now, to);
	remember(ctx, tcp, now->set, to->set & ~now->set, &has->own);
	if (changed & SET_ALGORITHM)
		set_algorithm(ctx, to->set & SET_ALGORITHM ? to->algorithm : own->algorithm);
	if (age == AGE_FRESH && (to->set & SET_INITIAL_CWND))
		set_number(ctx, SOL_TCP, TCP_BPF_IW, to->initial_cwnd);
	/* Linux lowers the RTO of an open connection gradually, and raises it only once its RTTs vary */
	if (changed & SET_RTO_MIN)
		set_number(ctx, SOL_TCP, TCP_BPF_RTO_MIN, to->set & SET_RTO_MIN ? to->rto_min_us : own->rto_min_us);
	if (changed & SET_DELACK_MAX)
		set_number(ctx, SOL_TCP, TCP_BPF_DELACK_MAX, to->set & SET_DELACK_MAX ? to->delack_max_us : own->delack_max_us);
	if (changed & SET_CWND_CLAMP)
		set_number(ctx, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, to->set & SET_CWND_CLAMP ? to->cwnd_clamp : own->cwnd_clamp);
	if (changed & (SET_WINDOW_CLAMP | SET_WINDOW_TOTAL))
		change_window(ctx, tcp, has, to, key);
	if (changed & SET_PACING_RATE)
		set_number(ctx, SOL_SOCKET, SO_MAX_PACING_RATE, to->set & SET_PACING_RATE ? to->pacing_rate : own->pacing_rate);
	if (to->set)
		count(COUNT_APPLIED);
	else if (now->set)
		count(COUNT_REVERTED);
	has->now = *to;
}

/* Whether the connection may have other settings than the rules say. */
inline_always int is_late(const struct applied *has, u64 gen, u64 now, enum age age)
{
	return has->generation != gen || now >= has->deadline_ns || age == AGE_FRESH;
}

/* Applies the rules to the connection. */
inline_always void attend(struct bpf_sock_ops *ctx, struct applied *has, enum age age)
{
	u32 zero = 0;
	u64 now = ktime_get_boot_ns(), *gen = map_lookup(&generation, &zero);
	struct bpf_sock *sk = ctx->sk;
	struct session session = {};
	struct settings to = {};
	struct tcp_sock *tcp;

	if (!gen || !is_late(has, *gen, now, age))
		return;
	tcp = sk ? skc_to_tcp_sock(sk) : 0;
	if (!tcp)
		return;
	session_of(ctx, &session);
	has->generation = *gen;
	has->deadline_ns = wanted(&session, *gen, has->active, now, &to);
	change(ctx, tcp, has, &to, age, session.fan_in);
	if (age == AGE_FRESH)
		has->initial_cwnd = ctx->snd_cwnd;
}

inline_always struct applied *storage(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	return sk ? storage_of(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE) : 0;
}

/* A connection, perhaps seen for the first time. */
inline_always struct applied *begin(struct bpf_sock_ops *ctx, enum side side)
{
	struct applied *has = storage(ctx);

	if (!has || has->began_ns)
		return has;
	has->began_ns = ktime_get_boot_ns();
	has->active = side;
	return has;
}

inline_always void record_end(struct bpf_sock_ops *ctx)
{
	struct applied *has = storage(ctx);
	struct bpf_sock *sk = ctx->sk;
	struct bpf_tcp_sock *tcp = sk ? tcp_sock_of(sk) : 0;
	struct record record = {};

	if (!has || !tcp || !has->began_ns)
		return;
	record.netns = netns_cookie(ctx);
	record.began_ns = has->began_ns;
	record.ended_ns = ktime_get_boot_ns();
	record.bytes_acked = tcp->bytes_acked;
	record.bytes_received = tcp->bytes_received;
	remote_of(ctx, (u32 *)record.remote);
	record.local_port = ctx->local_port;
	record.remote_port = __builtin_bswap32(ctx->remote_port);
	record.active = has->active == SIDE_CONNECTED;
	record.rule = has->now.rule;
	record.segs_out = tcp->segs_out;
	record.data_segs_out = tcp->data_segs_out;
	record.retransmits = tcp->total_retrans;
	record.lost = tcp->lost_out;
	record.delivered = tcp->delivered;
	record.delivered_ce = tcp->delivered_ce;
	record.srtt_us = tcp->srtt_us >> 3;
	record.min_rtt_us = tcp->rtt_min;
	record.cwnd = tcp->snd_cwnd;
	record.ssthresh = tcp->snd_ssthresh;
	record.initial_cwnd = has->initial_cwnd;
	getsockopt_of(ctx, SOL_TCP, TCP_CONGESTION, record.algorithm, ALGORITHM_MAX);
	if (ring_output(&records, &record, sizeof(record), BPF_RB_NO_WAKEUP))
		count(COUNT_RECORDS_LOST);
}

/* Whether a connection in its handshake, outgoing or incoming, is to have an algorithm that needs ECN: Linux asks while
 * ECN can still be negotiated. */
inline_always u32 needs_ecn(struct bpf_sock_ops *ctx)
{
	u32 zero = 0;
	u64 now = ktime_get_boot_ns(), *gen = map_lookup(&generation, &zero);
	struct session session = {};
	struct settings to = {};

	if (!gen)
		return 0;
	session_of(ctx, &session);
	/* the client asks with its socket, the server has none yet */
	wanted(&session, *gen, ctx->is_fullsock ? SIDE_CONNECTED : SIDE_ACCEPTED, now, &to);
	return (to.set & SET_ALGORITHM) && to.needs_ecn;
}

/* A packet of a connection with a share is about to leave. */
inline_always void share_anew(struct bpf_sock_ops *ctx)
{
	struct applied *has = storage(ctx);
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tcp = sk ? skc_to_tcp_sock(sk) : 0;
	struct share *share;

	if (!has || !tcp)
		return;
	attend(ctx, has, AGE_OPEN);
	share = storage_of(&shares, tcp, 0, 0);
	if (share && share->total)
		follow(ctx, tcp, share, &has->own);
}

inline_always void give_up_share(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct share *share = sk ? storage_of(&shares, sk, 0, 0) : 0;

	if (share) {
		leave(share);
		share->total = 0;
	}
}

SEC("sockops") int agent(struct bpf_sock_ops *ctx)
{
	struct applied *has;

	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		has = begin(ctx, SIDE_CONNECTED);
		if (has)
			attend(ctx, has, AGE_CONNECTING);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		callbacks_set(ctx, ctx->bpf_sock_ops_cb_flags | CALLBACKS);
		has = begin(ctx, ctx->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB ? SIDE_CONNECTED : SIDE_ACCEPTED);
		if (has)
			attend(ctx, has, AGE_FRESH);
		break;
	/* where no rule says anything, what another program has answered stays */
	case BPF_SOCK_OPS_NEEDS_ECN:
		ctx->reply = needs_ecn(ctx) ?: ctx->reply;
		break;
	case BPF_SOCK_OPS_RWND_INIT:
		ctx->reply = first_window(ctx) ?: ctx->reply;
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		/* before the window of a packet is chosen; no option is added */
		if (ctx->args[0] != HEADER_CURRENT_MSS)
			share_anew(ctx);
		break;
	case BPF_SOCK_OPS_RTT_CB:
		has = begin(ctx, SIDE_UNKNOWN);
		if (has)
			attend(ctx, has, AGE_OPEN);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		/* the other end has sent all that it will */
		if (ctx->args[1] > TCP_STATE_FIN_WAIT2)
			give_up_share(ctx);
		if (ctx->args[1] == TCP_STATE_CLOSE)
			record_end(ctx);
		break;
	}
	return 1;
}

struct bpf_iter__tcp {
	void *meta;
	struct sock_common *sk_common;
	u32 uid;
};

/* Whether the socket is of the cgroup that the other program is attached to, or below: elsewhere nothing would restore it. */
inline_always int is_ours(struct tcp_sock *tcp)
{
	struct cgroup *cgroup = tcp->inet_conn.icsk_inet.sk.sk_cgrp_data.cgroup;
	u32 zero = 0;
	u64 *ours = map_lookup(&cgroup_id, &zero);

	for (int depth = 0; ours && cgroup && depth < CGROUP_DEPTH_MAX; depth++) {
		struct cgroup_subsys_state *parent = cgroup->self.parent;

		if (cgroup->kn->id == *ours)
			return 1;
		cgroup = parent ? parent->cgroup : 0;
	}
	return 0;
}

/* Runs in a network namespace, over all of its connections. */
SEC("iter/tcp") int adopt(struct bpf_iter__tcp *ctx)
{
	int flags;
	struct sock_common *sk = ctx->sk_common;
	struct tcp_sock *tcp = sk ? skc_to_tcp_sock(sk) : 0;
	u32 zero = 0, state;
	u64 now = ktime_get_boot_ns(), *gen = map_lookup(&generation, &zero);
	struct session session = {};
	struct settings to = {};
	struct applied *has;

	if (!tcp || !gen)
		return 0;
	state = sk->skc_state;
	if (state == TCP_STATE_LISTEN || state == TCP_STATE_SYN_SENT || state == TCP_STATE_SYN_RECV || state == TCP_STATE_CLOSE)
		return 0;
	if (!is_ours(tcp))
		return 0;
	flags = tcp->bpf_sock_ops_cb_flags | CALLBACKS;
	has = storage_of(&sockets, tcp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!has)
		return 0;
	/* another program may have taken them away */
	if (flags != tcp->bpf_sock_ops_cb_flags)
		setsockopt_of(tcp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags));
	if (!has->began_ns) {
		has->began_ns = now;
		has->active = SIDE_UNKNOWN;
	}
	if (!is_late(has, *gen, now, AGE_OPEN))
		return 0;
	session.netns = sk->skc_net.net->net_cookie;
	if (sk->skc_family == IPV4) {
		session.remote[2] = __builtin_bswap32(0xffff);
		session.remote[3] = sk->skc_daddr;
	} else {
		session.remote[0] = sk->skc_v6_daddr.in6_u.u6_addr32[0];
		session.remote[1] = sk->skc_v6_daddr.in6_u.u6_addr32[1];
		session.remote[2] = sk->skc_v6_daddr.in6_u.u6_addr32[2];
		session.remote[3] = sk->skc_v6_daddr.in6_u.u6_addr32[3];
	}
	session.local_port = sk->skc_num;
	session.remote_port = __builtin_bswap16(sk->skc_dport);
	has->generation = *gen;
	has->deadline_ns = wanted(&session, *gen, has->active, now, &to);
	change(tcp, tcp, has, &to, AGE_OPEN, session.fan_in);
	return 0;
}

char agent_license[] SEC("license") = "Dual BSD/GPL";
