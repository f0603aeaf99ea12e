/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The inline functions of the contract that algorithms use, for those that are not written in C. */
#include "tcp.h"

u32 cc_slow_start(struct sock *sk, u32 acked);
void cc_cong_avoid_ai(struct sock *sk, u32 w, u32 acked);
bool cc_is_cwnd_limited(const struct sock *sk);
u32 cc_reno_ssthresh(const struct sock *sk);
void cc_reno_cong_avoid(struct sock *sk, u32 acked);
u32 cc_reno_undo_cwnd(const struct sock *sk);
u32 cc_random(struct sock *sk);
void cc_send_ack_at(struct sock *sk, u32 rcv_nxt);

u32 cc_slow_start(struct sock *sk, u32 acked)
{
	return tcp_slow_start(tcp_sk(sk), acked);
}

void cc_cong_avoid_ai(struct sock *sk, u32 w, u32 acked)
{
	tcp_cong_avoid_ai(tcp_sk(sk), w, acked);
}

bool cc_is_cwnd_limited(const struct sock *sk)
{
	return tcp_is_cwnd_limited(sk);
}

u32 cc_reno_ssthresh(const struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

void cc_reno_cong_avoid(struct sock *sk, u32 acked)
{
	tcp_reno_cong_avoid(sk, acked);
}

u32 cc_reno_undo_cwnd(const struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

u32 cc_random(struct sock *sk)
{
	return cc_random_u32(sk);
}

void cc_send_ack_at(struct sock *sk, u32 rcv_nxt)
{
	tcp_send_ack_at(sk, rcv_nxt);
}
