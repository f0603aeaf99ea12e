/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Makes a TCP sender ignore its window: every segment to it gets a window of 65,535, whatever the other end has set. Only IPv4
 * without options.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#define SEC(name) __attribute__((section(name), used))

static long (*const skb_load_bytes)(const void *skb, __u32 offset, void *to, __u32 len) = (void *)26;
static long (*const skb_store_bytes)(struct __sk_buff *skb, __u32 offset, const void *from, __u32 len, __u64 flags) = (void *)9;
static long (*const l4_csum_replace)(struct __sk_buff *skb, __u32 offset, __u64 from, __u64 to, __u64 flags) = (void *)11;

enum { PROTOCOL = 14 + 9, TCP = 14 + 20, FLAGS = TCP + 13, WINDOW = TCP + 14, CHECKSUM = TCP + 16 };
enum { SYN = 2, IS_TCP = 6 };

SEC("tc")
int widen(struct __sk_buff *skb)
{
	const __u16 widest = 0xffff;
	__u8 protocol, flags;
	__u16 window;

	if (skb->protocol != __builtin_bswap16(0x0800) || skb_load_bytes(skb, PROTOCOL, &protocol, 1) || protocol != IS_TCP)
		return TC_ACT_OK;
	if (skb_load_bytes(skb, FLAGS, &flags, 1) || flags & SYN || skb_load_bytes(skb, WINDOW, &window, 2))
		return TC_ACT_OK;
	if (l4_csum_replace(skb, CHECKSUM, window, widest, 2) || skb_store_bytes(skb, WINDOW, &widest, 2, 0))
		return TC_ACT_SHOT;
	return TC_ACT_OK;
}

char blind_license[] SEC("license") = "Dual BSD/GPL";
