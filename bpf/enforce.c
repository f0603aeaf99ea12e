/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The enforcer's part in the kernel: at a bridge port's ingress it redirects TCP packets to the AF_XDP socket
 * that the enforcer has for their queue.
 *
 * All other packets pass through the bridge. So does everything while there is no socket, or the enforcer is stuck: a
 * socket leaves the map when its process ends, however that happens, and a process that hangs sends no heartbeat for a second.
 * Packets addressed to this machine itself pass too.
 *
 * A frame's VLAN tag is part of it, but a sender on this machine (behind a veth) leaves the tag in the metadata, where a socket
 * would not see it: enforce_tagged puts it into the frame first. This needs a driver that reports the tag, and a program bound to
 * the interface. Frames with two tags pass.
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
static u64 (*const ktime_get_ns)(void) = (void *)5;
static long (*const adjust_head)(struct xdp_md *ctx, int bytes) = (void *)44;
static long (*const redirect_map)(void *map, u64 key, u64 flags) = (void *)51;

/* The tag in the metadata, its protocol in network byte order; kernels before 6.8 have no such function. */
extern int bpf_xdp_metadata_rx_vlan_tag(const struct xdp_md *ctx, u16 *protocol, u16 *tag) __attribute__((section(".ksyms"), weak));

enum {
	QUEUES_MAX = 64, OWN_MAX = 4,
	ADDRESSES_BYTES = 12, ETHERNET_BYTES = 14, ETHERTYPE_IPV4 = 0x0800, ETHERTYPE_IPV6 = 0x86dd, PROTOCOL_TCP = 6,
	/* IEEE 802.1Q */
	ETHERTYPE_TAG = 0x8100, TAG_BYTES = 4,
	/* more fragments, or not the first */
	FRAGMENT = 0x3fff,
	/* of heartbeats: longer than a busy machine delays a process */
	PATIENCE_NS = 1000000000,
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

/* The enforcer's last heartbeat, by CLOCK_MONOTONIC, ns. */
struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u64);
} heartbeat SEC(".maps");

/* Frames that passed through the bridge. */
struct {
	UINT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u64);
} bridged SEC(".maps");

static inline __attribute__((always_inline)) int bridge(void)
{
	u32 zero = 0;
	u64 *frames = map_lookup(&bridged, &zero);
	if (frames)
		(*frames)++;
	return XDP_PASS;
}

/* To the queue's socket, or through the bridge if there is none. */
static inline __attribute__((always_inline)) int redirect(struct xdp_md *ctx)
{
	long action = redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
	return action == XDP_PASS ? bridge() : (int)action;
}

static u16 word(const u8 *at)
{
	return (u16)(at[0] << 8 | at[1]);
}

/* Is it a TCP packet to another machine? */
static inline __attribute__((always_inline)) int is_wanted(struct xdp_md *ctx)
{
	const u8 *frame = (const u8 *)(long)ctx->data;
	const u8 *end = (const u8 *)(long)ctx->data_end;
	const u8 *ip = frame + ETHERNET_BYTES;

	/* the shorter of the two IP headers */
	if (ip + 20 > end)
		return 0;
	u16 type = word(frame + ADDRESSES_BYTES);
	if (type == ETHERTYPE_TAG) {
		type = word(ip + 2);
		ip += TAG_BYTES;
		if (ip + 20 > end)
			return 0;
	}
	switch (type) {
	case ETHERTYPE_IPV4:
		if (ip[9] != PROTOCOL_TCP || (word(ip + 6) & FRAGMENT))
			return 0;
		break;
	case ETHERTYPE_IPV6:
		if (ip[6] != PROTOCOL_TCP)
			return 0;
		break;
	default:
		return 0;
	}

	u32 zero = 0;
	const struct addresses *ours = map_lookup(&own, &zero);
	if (!ours)
		return 0;
	u64 to = (u64)word(frame) << 32 | (u64)word(frame + 2) << 16 | word(frame + 4);
#pragma unroll
	for (u32 i = 0; i < OWN_MAX; i++)
		if (ours->address[i] == to)
			return 0;
	return 1;
}

static inline __attribute__((always_inline)) int is_alive(void)
{
	u32 zero = 0;
	const u64 *said = map_lookup(&heartbeat, &zero);
	return said && ktime_get_ns() - *said < PATIENCE_NS;
}

SEC("xdp")
int enforce(struct xdp_md *ctx)
{
	return is_wanted(ctx) && is_alive() ? redirect(ctx) : bridge();
}

SEC("xdp")
int enforce_tagged(struct xdp_md *ctx)
{
	u16 protocol, tag;

	if (!is_wanted(ctx) || !is_alive())
		return bridge();
	if (bpf_xdp_metadata_rx_vlan_tag(ctx, &protocol, &tag))
		return redirect(ctx);

	/* only for the socket: a frame that passes through the bridge keeps its tag in the metadata */
	u8 *frame = (u8 *)(long)ctx->data;
	u32 queue = ctx->rx_queue_index;
	if (frame + ETHERNET_BYTES > (u8 *)(long)ctx->data_end || word(frame + ADDRESSES_BYTES) == ETHERTYPE_TAG)
		return bridge();
	if (word((u8 *)&protocol) != ETHERTYPE_TAG || !map_lookup(&sockets, &queue) || adjust_head(ctx, -TAG_BYTES))
		return bridge();
	frame = (u8 *)(long)ctx->data;
	if (frame + ADDRESSES_BYTES + TAG_BYTES > (u8 *)(long)ctx->data_end)
		return XDP_DROP;
#pragma unroll
	for (u32 i = 0; i < ADDRESSES_BYTES; i++)
		frame[i] = frame[i + TAG_BYTES];
	*(u16 *)(frame + ADDRESSES_BYTES) = protocol;
	frame[ADDRESSES_BYTES + 2] = tag >> 8;
	frame[ADDRESSES_BYTES + 3] = tag & 0xff;
	return redirect_map(&sockets, queue, XDP_DROP);
}

char enforce_license[] SEC("license") = "Dual BSD/GPL";
