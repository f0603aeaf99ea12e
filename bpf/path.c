/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A path that loses and marks packets, for tc's egress hook. The choice is a function of SEED and of the number of earlier packets:
 *
 *   -DSEED=n   which sequence
 *   -DLOSS=n   n of 65536 packets are lost
 *   -DMARK=n   n of 65536 packets are marked (CE), if they say ECT
 *
 * One block of 16 packets in 128 loses every second of its packets, where LOSS is not 0: losses come in bursts too.
 */
typedef unsigned int u32;

static long (*const set_ce)(void *skb) = (void *)97;	/* bpf_skb_ecn_set_ce: leaves packets without ECT alone */

enum { VERDICT_OK = 0, VERDICT_DROP = 2 };

u32 packets;

/* Every bit of the result depends on every bit of x: multiply and fold, twice (the constants are of MurmurHash3's end). */
static inline __attribute__((always_inline)) u32 mix(u32 x)
{
	x ^= x >> 16;
	x *= 0x85ebca6bu;
	x ^= x >> 13;
	x *= 0xc2b2ae35u;
	return x ^ x >> 16;
}

__attribute__((section("tc"), used)) int path(void *skb)
{
	u32 number = __sync_fetch_and_add(&packets, 1);
	u32 random = mix(mix(SEED) + number);
	u32 block = mix(mix(SEED + 1) + number / 16);
	u32 loss = LOSS && block % 128 == 0 ? 32768 : LOSS;

	if ((random & 0xffff) < loss)
		return VERDICT_DROP;
	if (random >> 16 < MARK)
		set_ce(skb);
	return VERDICT_OK;
}

char path_license[] __attribute__((section("license"), used)) = "Dual BSD/GPL";
