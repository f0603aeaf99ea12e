/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The enforcer's half in the kernel: it stands at the entrance of a port of a bridge, and hands TCP's packets to the socket (AF_XDP)
 * that the enforcer has for their queue.
 *
 * Whatever else comes takes its way through the bridge, and so does everything while there is no socket: a socket leaves the map with
 * its process, however that ends. What is addressed to this machine itself is the machine's.
 */
#include <linux/bpf.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define UINT(name, value) int (*name)[value]
#define TYPE(name, type) type *name

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const redirect_map)(void *map, u64 key, u64 flags) = (void *)51;

enum {
	QUEUES_MAX = 64, OWN_MAX = 4,
	ETHERNET_BYTES = 14, ETHERTYPE_IPV4 = 0x0800, ETHERTYPE_IPV6 = 0x86dd, PROTOCOL_TCP = 6,
	/* more fragments, or not the first */
	FRAGMENT = 0x3fff,
};

struct {
	UINT(type, BPF_MAP_TYPE_XSKMAP);
	UINT(max_entries, QUEUES_MAX);
	TYPE(key, u32);
	TYPE(value, u32);
} sockets SEC(".maps");

/* Addresses of this machine on the bridge, each in the lowest six bytes, the first byte highest; zero for none. */
struct addresses {
	u64 address[OWN_MAX];
};
struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct addresses);
} own SEC(".maps");

static u16 word(const u8 *at)
{
	return (u16)(at[0] << 8 | at[1]);
}

SEC("xdp")
int enforce(struct xdp_md *ctx)
{
	const u8 *frame = (const u8 *)(long)ctx->data;
	const u8 *end = (const u8 *)(long)ctx->data_end;
	const u8 *ip = frame + ETHERNET_BYTES;

	/* the shorter of the two IP headers */
	if (ip + 20 > end)
		return XDP_PASS;
	switch (word(frame + 12)) {
	case ETHERTYPE_IPV4:
		if (ip[9] != PROTOCOL_TCP || (word(ip + 6) & FRAGMENT))
			return XDP_PASS;
		break;
	case ETHERTYPE_IPV6:
		if (ip[6] != PROTOCOL_TCP)
			return XDP_PASS;
		break;
	default:
		return XDP_PASS;
	}

	u32 zero = 0;
	const struct addresses *ours = map_lookup(&own, &zero);
	if (!ours)
		return XDP_PASS;
	u64 to = (u64)word(frame) << 32 | (u64)word(frame + 2) << 16 | word(frame + 4);
#pragma unroll
	for (u32 i = 0; i < OWN_MAX; i++)
		if (ours->address[i] == to)
			return XDP_PASS;
	return redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
}

char enforce_license[] SEC("license") = "Dual BSD/GPL";
