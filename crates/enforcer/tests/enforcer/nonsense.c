/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* An algorithm with arbitrary return values, as a faulty file may have. */
#include "tcp.h"

struct nonsense {
	u32 state;
};
CC_ASSERT_STATE_FITS(struct nonsense);

CC_INLINE u32 any(struct sock *sk)
{
	struct nonsense *nonsense = inet_csk_ca(sk);

	nonsense->state = nonsense->state * 1664525 + 1013904223;
	return nonsense->state >> 8;
}

/* Nothing, one, everything, or anything between. */
CC_INLINE u32 extreme(struct sock *sk)
{
	switch (any(sk) & 7) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return ~0U;
	default:
		return any(sk) >> (any(sk) & 15);
	}
}

CC_HOOK(void, nonsense_init, struct sock *sk)
{
	struct nonsense *nonsense = inet_csk_ca(sk);

	nonsense->state = tcp_sk(sk)->snd_una;
	sk->sk_pacing_status = SK_PACING_NEEDED;
}

CC_HOOK(void, nonsense_cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	(void)ack, (void)flag, (void)rs;
	tcp_sk(sk)->snd_cwnd = extreme(sk);
	tcp_sk(sk)->snd_ssthresh = extreme(sk);
	sk->sk_pacing_rate = any(sk) & 3 ? (u64)any(sk) << (any(sk) & 15) : extreme(sk);
}

CC_HOOK(u32, nonsense_ssthresh, struct sock *sk)
{
	return extreme(sk);
}

CC_HOOK(u32, nonsense_undo_cwnd, struct sock *sk)
{
	return extreme(sk);
}

CC_INFO(nonsense, .title = "Nonsense", .environment = "a test", .reference = "none", .category = CC_LOSS_BASED,
	.measures = CC_MEASURES_LOSS);

CC_OPS(nonsense, .init = nonsense_init, .ssthresh = nonsense_ssthresh, .cong_control = nonsense_cong_control,
       .undo_cwnd = nonsense_undo_cwnd, .flags = TCP_CONG_NON_RESTRICTED);
