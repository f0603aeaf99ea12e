/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Counters of TCP connections at the instants at which they open and close, by their local ports. */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define KERNEL __attribute__((preserve_access_index))

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static struct tcp_sock *(*const skc_to_tcp_sock)(void *sk) = (void *)137;

enum { MAP_TYPE_HASH = 1, ESTABLISHED = 1, CLOSE = 7 };

struct sock_common { u16 skc_num; } KERNEL;
struct sock { struct sock_common __sk_common; } KERNEL;
struct inet_sock { struct sock sk; } KERNEL;
struct inet_connection_sock { struct inet_sock icsk_inet; } KERNEL;
struct minmax_sample { u32 t, v; } KERNEL;
struct minmax { struct minmax_sample s[3]; } KERNEL;
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 total_retrans, data_segs_out, snd_cwnd, srtt_us;
	u16 total_rto;
	struct minmax rtt_min;
} KERNEL;

struct connection {
	u64 socket;	/* an earlier emulation may have left one with the same port, which closes meanwhile */
	u32 syn_retransmits, syn_rtos;	/* when it opened */
	u32 retransmits, rtos, data_segments, cwnd, srtt_us, min_rtt_us;	/* when it closed */
	u32 closed_from;	/* its state before */
};

struct {
	int (*type)[MAP_TYPE_HASH];
	int (*max_entries)[65536];
	u32 *key;
	struct connection *value;
} connections SEC(".maps");

/* inet_sock_set_state(sk, old state, new state) */
SEC("tp_btf/inet_sock_set_state") int on_state(u64 *ctx)
{
	struct tcp_sock *tcp = skc_to_tcp_sock((void *)ctx[0]);
	u32 from = ctx[1], to = ctx[2], port;
	struct connection new = {}, *known;

	if (!tcp || (to != ESTABLISHED && to != CLOSE))
		return 0;
	port = tcp->inet_conn.icsk_inet.sk.__sk_common.skc_num;
	known = map_lookup(&connections, &port);
	if (known)
		new = *known;
	if (to == ESTABLISHED) {
		new.socket = ctx[0];
		new.syn_retransmits = tcp->total_retrans;
		new.syn_rtos = tcp->total_rto;
	} else if (new.socket != ctx[0]) {
		return 0;
	} else {
		new.retransmits = tcp->total_retrans;
		new.rtos = tcp->total_rto;
		new.data_segments = tcp->data_segs_out;
		new.cwnd = tcp->snd_cwnd;
		new.srtt_us = tcp->srtt_us >> 3;
		new.min_rtt_us = tcp->rtt_min.s[0].v;
		new.closed_from = from;
	}
	map_update(&connections, &port, &new, 0);
	return 0;
}

char closes_license[] SEC("license") = "Dual BSD/GPL";
