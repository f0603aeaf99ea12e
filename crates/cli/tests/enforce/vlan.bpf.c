/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Puts a host into VLAN 5, also on kernels without VLAN interfaces: frames sent get the tag, beside the frame; of frames received only
 * those with it pass.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#define SEC(name) __attribute__((section(name), used))

static long (*const vlan_push)(struct __sk_buff *skb, __u16 protocol, __u16 tag) = (void *)18;
static long (*const vlan_pop)(struct __sk_buff *skb) = (void *)19;

enum { VLAN = 5 };

SEC("push")
int put_on(struct __sk_buff *skb)
{
	return vlan_push(skb, __builtin_bswap16(0x8100), VLAN) ? TC_ACT_SHOT : TC_ACT_OK;
}

SEC("pop")
int take_off(struct __sk_buff *skb)
{
	if (!skb->vlan_present || (skb->vlan_tci & 0xfff) != VLAN)
		return TC_ACT_SHOT;
	return vlan_pop(skb) ? TC_ACT_SHOT : TC_ACT_OK;
}

char vlan_license[] SEC("license") = "Dual BSD/GPL";
