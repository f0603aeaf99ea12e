/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the C compiler makes of the contract's structures; src/sock.rs is checked against it. */
#include "tcp.h"

#define SOCK(field) __builtin_offsetof(struct sock, field)
#define ICSK(field) __builtin_offsetof(struct inet_connection_sock, field)
#define TCP(field) __builtin_offsetof(struct tcp_sock, field)
#define RATE(field) __builtin_offsetof(struct rate_sample, field)

extern const u32 cc_layout[];
const u32 cc_layout[] = {
	sizeof(struct tcp_sock), sizeof(struct rate_sample), sizeof(struct ack_sample), sizeof(struct tcp_congestion_ops),
	SOCK(sk_pacing_rate), SOCK(sk_max_pacing_rate), SOCK(sk_pacing_status), SOCK(sk_gso_max_size),
	SOCK(cc_ack_seq), SOCK(cc_ack_wanted), SOCK(cc_ack_ecn_flags), SOCK(sk_pacing_shift),
	ICSK(icsk_ca_ops), ICSK(cc_random_state), ICSK(icsk_ca_state), ICSK(icsk_retransmits), ICSK(icsk_ack.pending),
	ICSK(icsk_ca_priv),
	TCP(snd_cwnd), TCP(snd_cwnd_cnt), TCP(snd_ssthresh), TCP(snd_cwnd_clamp), TCP(snd_una), TCP(snd_nxt),
	TCP(rcv_nxt), TCP(mss_cache), TCP(packets_out), TCP(sacked_out), TCP(lost_out), TCP(retrans_out),
	TCP(delivered), TCP(delivered_ce), TCP(lost), TCP(app_limited), TCP(max_packets_out), TCP(cwnd_usage_seq),
	TCP(srtt_us), TCP(mdev_us), TCP(rtt_min), TCP(tcp_mstamp), TCP(delivered_mstamp), TCP(first_tx_mstamp),
	TCP(tcp_clock_cache), TCP(tcp_wstamp_ns), TCP(prior_cwnd), TCP(prior_ssthresh), TCP(high_seq), TCP(undo_marker),
	TCP(undo_retrans), TCP(rate_delivered), TCP(rate_interval_us), TCP(snd_cwnd_stamp), TCP(lsndtime), TCP(advmss),
	TCP(ecn_flags), TCP(is_cwnd_limited), TCP(bytes_acked), TCP(bytes_sent),
	RATE(prior_mstamp), RATE(prior_delivered), RATE(prior_delivered_ce), RATE(delivered), RATE(delivered_ce),
	RATE(interval_us), RATE(snd_interval_us), RATE(rcv_interval_us), RATE(rtt_us), RATE(losses), RATE(acked_sacked),
	RATE(prior_in_flight), RATE(last_end_seq), RATE(is_app_limited), RATE(is_retrans), RATE(is_ack_delayed),
};
