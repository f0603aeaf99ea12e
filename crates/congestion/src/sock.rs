//! The socket that algorithms see: `struct tcp_sock` of `cc/include/tcp.h`, field for field.
//!
//! Hosts embed [`TcpSock`] as their own state, so nothing is copied when a hook is called. The C structure nests three
//! others; here they are flat, which has the same layout because each nested one is a multiple of 8 bytes.

use crate::ops::CongestionOps;

/// `enum tcp_ca_state`: Open.
pub const TCP_CA_OPEN: u8 = 0;
/// `enum tcp_ca_state`: Disorder.
pub const TCP_CA_DISORDER: u8 = 1;
/// `enum tcp_ca_state`: CWR.
pub const TCP_CA_CWR: u8 = 2;
/// `enum tcp_ca_state`: Recovery.
pub const TCP_CA_RECOVERY: u8 = 3;
/// `enum tcp_ca_state`: Loss.
pub const TCP_CA_LOSS: u8 = 4;

/// `enum tcp_ca_event`, the argument of `cwnd_event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CaEvent {
    /// A transmission with nothing in flight before it.
    TxStart = 0,
    /// The same after more than one RTO of idle time.
    CwndRestart = 1,
    /// A window reduction has ended.
    CompleteCwr = 2,
    /// A retransmission timeout.
    Loss = 3,
    /// Receiver: a data segment without CE.
    EcnNoCe = 4,
    /// Receiver: a data segment with CE.
    EcnIsCe = 5,
}

/// Flags of `in_ack_event`.
pub mod ack_flags {
    /// The ACK took the slow path, for example because it carries SACK or a new window.
    pub const SLOWPATH: u32 = 1;
    /// It changed the send window.
    pub const WIN_UPDATE: u32 = 2;
    /// It carried ECE.
    pub const ECE: u32 = 4;
}

/// Bits of [`TcpSock::ecn_flags`].
pub mod ecn {
    /// ECN was negotiated.
    pub const OK: u8 = 1;
    /// The next new segment carries CWR.
    pub const QUEUE_CWR: u8 = 2;
    /// ACKs carry ECE until a CWR arrives.
    pub const DEMAND_CWR: u8 = 4;
    /// The peer has sent an ECT segment.
    pub const SEEN: u8 = 8;
    /// AccECN was negotiated (RFC 9768).
    pub const ACCURATE: u8 = 16;
}

/// Bits of [`TcpSock::icsk_ack_pending`].
pub mod ack_pending {
    /// An ACK is pending.
    pub const SCHED: u8 = 1;
    /// The delayed-ACK timer runs.
    pub const TIMER: u8 = 2;
    /// Data with PSH arrived.
    pub const PUSHED: u8 = 4;
    /// The pending ACK is sent at once.
    pub const NOW: u8 = 16;
}

/// ssthresh before the first loss.
pub const TCP_INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// [`TcpSock::sk_pacing_status`]: TCP paces this flow.
pub const SK_PACING_NEEDED: u32 = 1;
/// A flag of an algorithm: negotiate ECN, send ECT.
pub const TCP_CONG_NEEDS_ECN: u32 = 2;
/// A flag of an algorithm: it uses deadlines ([`TcpSock::set_deadline`]).
pub const CC_TAKES_DEADLINES: u32 = 0x100;
/// A flag of an algorithm: send ECT(1) where AccECN was negotiated.
pub const CC_SENDS_ECT1: u32 = 0x200;
/// A flag of an algorithm: ask for AccECN.
pub const CC_WANTS_ACCECN: u32 = 0x400;
/// The word of the private state in which the host keeps the deadline.
pub(crate) const DEADLINE_WORD: usize = 12;

/// One sample of [`MinMax`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct MinMaxSample {
    /// When.
    pub t: u32,
    /// What.
    pub v: u32,
}

/// Best, second best and third best value of a sliding window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct MinMax {
    /// The samples, best first.
    pub s: [MinMaxSample; 3],
}

/// What algorithms can read of a flow. Names, units and meaning are Linux's; `cc/include/tcp.h` documents each field.
#[derive(Clone, Debug, Default)]
#[repr(C)]
#[allow(missing_docs, reason = "each field is documented where it is declared, in cc/include/tcp.h")]
pub struct TcpSock {
    pub sk_pacing_rate: u64,
    pub sk_max_pacing_rate: u64,
    pub sk_pacing_status: u32,
    pub sk_gso_max_size: u32,
    pub cc_ack_seq: u32,
    pub cc_ack_wanted: u8,
    pub cc_ack_ecn_flags: u8,
    pub sk_pacing_shift: u8,
    pub cc_accecn_rx: u8,
    pub icsk_ca_ops: Option<&'static CongestionOps>,
    pub cc_random_state: u32,
    pub icsk_ca_state: u8,
    pub icsk_retransmits: u8,
    pub icsk_ack_pending: u8,
    pub cc_accecn_tx: u8,
    pub icsk_ca_priv: [u64; 13],
    pub snd_cwnd: u32,
    pub snd_cwnd_cnt: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd_clamp: u32,
    pub packets_out: u32,
    pub sacked_out: u32,
    pub lost_out: u32,
    pub retrans_out: u32,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub lost: u32,
    pub app_limited: u32,
    pub max_packets_out: u32,
    pub cwnd_usage_seq: u32,
    pub srtt_us: u32,
    pub mdev_us: u32,
    pub rtt_min: MinMax,
    pub delivered_mstamp: u64,
    pub first_tx_mstamp: u64,
    pub tcp_wstamp_ns: u64,
    pub prior_cwnd: u32,
    pub prior_ssthresh: u32,
    pub high_seq: u32,
    pub undo_marker: u32,
    pub undo_retrans: i32,
    pub rate_delivered: u32,
    pub rate_interval_us: u32,
    pub snd_cwnd_stamp: u32,
    pub bytes_sent: u64,
    pub lsndtime: u32,
    pub advmss: u16,
    pub ecn_flags: u8,
    pub is_cwnd_limited: u8,
    pub tcp_mstamp: u64,
    pub tcp_clock_cache: u64,
    pub bytes_acked: u64,
    pub mss_cache: u32,
    pub rcv_nxt: u32,
    pub snd_una: u32,
    pub snd_nxt: u32,
}

impl TcpSock {
    /// Segments that left the network: selectively acknowledged, or lost.
    pub fn left_out(&self) -> u32 {
        self.sacked_out + self.lost_out
    }

    /// Segments in the network, as far as the sender knows.
    pub fn packets_in_flight(&self) -> u32 {
        self.packets_out - self.left_out() + self.retrans_out
    }

    /// Is the window below ssthresh?
    pub fn in_slow_start(&self) -> bool {
        self.snd_cwnd < self.snd_ssthresh
    }

    /// What precedes sequence number `end_seq` is to have arrived when the low 32 bits of `tcp_mstamp` are `due_us`; for
    /// an algorithm that takes deadlines.
    pub fn set_deadline(&mut self, due_us: u32, end_seq: u32) {
        // struct cc_deadline; 0 would be no deadline
        let [d0, d1, d2, d3] = due_us.max(1).to_ne_bytes();
        let [e0, e1, e2, e3] = end_seq.to_ne_bytes();
        self.icsk_ca_priv[DEADLINE_WORD] = u64::from_ne_bytes([d0, d1, d2, d3, e0, e1, e2, e3]);
    }

    /// Forgets the deadline, or what an algorithm without one kept in its place.
    pub fn clear_deadline(&mut self) {
        self.icsk_ca_priv[DEADLINE_WORD] = 0;
    }

    /// The minimum round-trip time of the window, µs; `u32::MAX` before the first sample.
    pub fn min_rtt_us(&self) -> u32 {
        self.rtt_min.s[0].v
    }
}

/// `struct ack_sample`, the argument of `pkts_acked`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct AckSample {
    /// Segments newly acknowledged cumulatively.
    pub pkts_acked: u32,
    /// µs; −1: no sample.
    pub rtt_us: i32,
    /// Bytes delivered between the send of the newest acknowledged segment and now.
    pub in_flight: u32,
}

/// `struct rate_sample`, the argument of `cong_control`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RateSample {
    /// Start of the interval, µs.
    pub prior_mstamp: u64,
    /// `delivered` at the start of the interval.
    pub prior_delivered: u32,
    /// `delivered_ce` at the start of the interval.
    pub prior_delivered_ce: u32,
    /// Segments delivered over the interval; −1: no sample.
    pub delivered: i32,
    /// Of these with an ECE echo.
    pub delivered_ce: i32,
    /// µs; −1: no sample.
    pub interval_us: i64,
    /// µs of the send phase.
    pub snd_interval_us: u32,
    /// µs of the receive phase.
    pub rcv_interval_us: u32,
    /// Of the newest segment acknowledged, µs; −1: none.
    pub rtt_us: i64,
    /// Segments marked lost by this ACK.
    pub losses: i32,
    /// Segments newly delivered by this ACK.
    pub acked_sacked: u32,
    /// Segments in flight before this ACK.
    pub prior_in_flight: u32,
    /// End of the newest segment acknowledged.
    pub last_end_seq: u32,
    /// Was the sender limited by its application during the interval?
    pub is_app_limited: bool,
    /// Is the sample of a retransmission?
    pub is_retrans: bool,
    /// Did the receiver probably delay the ACK?
    pub is_ack_delayed: bool,
    /// Padding of the C structure.
    pub cc_pad: [u8; 5],
}

impl Default for RateSample {
    /// No sample.
    fn default() -> RateSample {
        RateSample {
            prior_mstamp: 0,
            prior_delivered: 0,
            prior_delivered_ce: 0,
            delivered: -1,
            delivered_ce: 0,
            interval_us: -1,
            snd_interval_us: 0,
            rcv_interval_us: 0,
            rtt_us: -1,
            losses: 0,
            acked_sacked: 0,
            prior_in_flight: 0,
            last_end_seq: 0,
            is_app_limited: false,
            is_retrans: false,
            is_ack_delayed: false,
            cc_pad: [0; 5],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    unsafe extern "C" {
        static cc_layout: [u32; 74];
    }

    macro_rules! offsets {
        ($type:ty: $($field:ident),* $(,)?) => { [$(offset_of!($type, $field) as u32),*] };
    }

    #[test]
    fn rust_and_c_lay_the_socket_out_alike() {
        let mut ours = vec![
            size_of::<TcpSock>() as u32,
            size_of::<RateSample>() as u32,
            size_of::<AckSample>() as u32,
            size_of::<CongestionOps>() as u32,
        ];
        ours.extend(
            offsets!(TcpSock: sk_pacing_rate, sk_max_pacing_rate, sk_pacing_status, sk_gso_max_size, cc_ack_seq,
            cc_ack_wanted, cc_ack_ecn_flags, sk_pacing_shift, icsk_ca_ops, cc_random_state, icsk_ca_state,
            icsk_retransmits, icsk_ack_pending, icsk_ca_priv, snd_cwnd, snd_cwnd_cnt, snd_ssthresh, snd_cwnd_clamp,
            snd_una, snd_nxt, rcv_nxt, mss_cache, packets_out, sacked_out, lost_out, retrans_out, delivered,
            delivered_ce, lost, app_limited, max_packets_out, cwnd_usage_seq, srtt_us, mdev_us, rtt_min, tcp_mstamp,
            delivered_mstamp, first_tx_mstamp, tcp_clock_cache, tcp_wstamp_ns, prior_cwnd, prior_ssthresh, high_seq,
            undo_marker, undo_retrans, rate_delivered, rate_interval_us, snd_cwnd_stamp, lsndtime, advmss, ecn_flags,
            is_cwnd_limited, bytes_acked, bytes_sent),
        );
        ours.extend(offsets!(RateSample: prior_mstamp, prior_delivered, prior_delivered_ce, delivered, delivered_ce,
            interval_us, snd_interval_us, rcv_interval_us, rtt_us, losses, acked_sacked, prior_in_flight, last_end_seq,
            is_app_limited, is_retrans, is_ack_delayed));
        // SAFETY: src/layout.c defines the array; the length below is checked against what C made of it.
        let theirs = unsafe { &cc_layout };
        assert_eq!(ours, theirs, "size and offsets in the order of src/layout.c");
    }
}
