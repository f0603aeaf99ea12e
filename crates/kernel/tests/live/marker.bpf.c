/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A switch that marks one packet in eight (CE), at random and regardless of its queue: for tc's egress hook. */

static unsigned int (*const random_u32)(void) = (void *)7;	/* bpf_get_prandom_u32 */
static long (*const set_ce)(void *skb) = (void *)97;		/* bpf_skb_ecn_set_ce: leaves packets without ECT alone */

__attribute__((section("tc"), used)) int mark(void *skb)
{
	if (random_u32() % 8 == 0)
		set_ce(skb);
	return 0;	/* TC_ACT_OK */
}

char marker_license[] __attribute__((section("license"), used)) = "Dual BSD/GPL";
