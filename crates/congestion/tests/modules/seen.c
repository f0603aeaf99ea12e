// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* A module that notes what the kernel's headers answer, in its private state, for a test to look at. */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/math64.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/random.h>
#include <net/tcp.h>
#include <linux/inet_diag.h>
#include "average.h"

static int scale __read_mostly = 41;
static unsigned int table[4] __read_mostly;	/* filled at the module's start */

module_param(scale, int, 0644);
MODULE_PARM_DESC(scale, "what is added to 1");

struct seen {
	struct average rtt;
	u32 ticks;
	u32 random, below;
	u32 start;
	u32 events, tx_starts;
	u32 state;
	u32 quotient;
	u8 one : 1, three : 3;
};

__bpf_kfunc static void seen_init(struct sock *sk)
{
	struct seen *ca = inet_csk_ca(sk);

	ca->ticks = tcp_jiffies32;
	ca->random = get_random_u32();
	ca->below = get_random_u32_below(10);
	ca->start = table[3];
	ca->state = sk->sk_state;
	ca->quotient = (u32)div64_u64(1ull << 40, 1ull << 38) + max_t(u32, 3, min(4, 5)) + clamp(9, 1, 2) + fls64(8);
	ca->one = 1;
	ca->three = 5;
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static void seen_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct seen *ca = inet_csk_ca(sk);

	if (event != CA_EVENT_TX_START)
		ca->events++;
}

static void seen_cwnd_event_tx_start(struct sock *sk)
{
	struct seen *ca = inet_csk_ca(sk);

	ca->tx_starts++;
}

static void seen_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct seen *ca = inet_csk_ca(sk);

	if (sample->rtt_us > 0)
		average_add(&ca->rtt, (u32)sample->rtt_us);
}

static size_t seen_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct seen *ca = inet_csk_ca(sk);

	if (!(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	info->vegas.tcpv_rtt = ca->rtt.rtt_us;
	*attr = INET_DIAG_VEGASINFO;
	return sizeof(struct tcpvegas_info);
}

static struct tcp_congestion_ops seen __read_mostly = {
	.flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
	.init = seen_init,
	.ssthresh = tcp_reno_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.cwnd_event = seen_cwnd_event,
	.cwnd_event_tx_start = seen_cwnd_event_tx_start,
	.pkts_acked = seen_acked,
	.get_info = seen_info,
	.owner = THIS_MODULE,
	.name = "seen",
};

BTF_KFUNCS_START(seen_kfunc_ids)
BTF_ID_FLAGS(func, seen_init)
BTF_KFUNCS_END(seen_kfunc_ids)

static const struct btf_kfunc_id_set seen_kfunc_set = {
	.owner = THIS_MODULE,
	.set = &seen_kfunc_ids,
};

static int __init seen_register(void)
{
	int ret;

	BUILD_BUG_ON(sizeof(struct seen) > ICSK_CA_PRIV_SIZE);
	table[3] = scale + 1;
	ret = register_btf_kfunc_id_set(BPF_PROG_TYPE_STRUCT_OPS, &seen_kfunc_set);
	if (ret < 0)
		return ret;
	return tcp_register_congestion_control(&seen);
}

static void __exit seen_unregister(void)
{
	tcp_unregister_congestion_control(&seen);
}

module_init(seen_register);
module_exit(seen_unregister);

MODULE_AUTHOR("OpenTCP");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("What a module sees");
MODULE_VERSION("1.0");
