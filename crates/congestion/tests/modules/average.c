// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* A module that others take functions from: NewReno, with a running mean of the RTT. */
#include <linux/module.h>
#include <net/tcp.h>
#include "average.h"

u32 average_add(struct average *average, u32 rtt_us)
{
	u64 sum = (u64)average->rtt_us * average->samples + rtt_us;

	average->samples++;
	do_div(sum, average->samples);
	average->rtt_us = (u32)sum;
	return average->rtt_us;
}
EXPORT_SYMBOL_GPL(average_add);

static void average_acked(struct sock *sk, const struct ack_sample *sample)
{
	if (sample->rtt_us > 0)
		average_add(inet_csk_ca(sk), (u32)sample->rtt_us);
}

static struct tcp_congestion_ops average __read_mostly = {
	.ssthresh = tcp_reno_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.pkts_acked = average_acked,
	.owner = THIS_MODULE,
	.name = "average",
};

static int __init average_register(void)
{
	BUILD_BUG_ON(sizeof(struct average) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&average);
}

static void __exit average_unregister(void)
{
	tcp_unregister_congestion_control(&average);
}

module_init(average_register);
module_exit(average_unregister);
MODULE_LICENSE("Dual BSD/GPL");
