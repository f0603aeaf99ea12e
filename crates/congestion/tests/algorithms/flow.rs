//! A flow over a path of a fixed pipe and buffer, a round trip at a time.
//!
//! In a round of W segments every segment takes base × max(W, pipe) / pipe: what the pipe does not hold is
//! queued. Each segment is acknowledged by itself, evenly over the round; what an ACK allows is sent at once, or at the
//! algorithm's pacing rate.

use congestion::sock::{
    SK_PACING_NEEDED, TCP_CA_CWR, TCP_CA_LOSS, TCP_CA_OPEN, TCP_CA_RECOVERY, TCP_INFINITE_SSTHRESH, ack_flags, ecn,
};
use congestion::{AckSample, Algorithm, CaEvent, CongestionOps, RateSample, TcpSock};

pub const MSS: u32 = 1448;

/// A socket with everything that a host sets before `init`, and `init` called.
pub fn socket(algorithm: &Algorithm, cwnd: u32, ssthresh: u32) -> TcpSock {
    let mut sock = TcpSock {
        icsk_ca_ops: Some(algorithm.ops()),
        cc_random_state: 1,
        sk_pacing_rate: u64::MAX,
        sk_max_pacing_rate: u64::MAX,
        sk_gso_max_size: 65_536,
        sk_pacing_shift: 10,
        snd_cwnd: cwnd,
        snd_cwnd_clamp: u32::MAX,
        snd_ssthresh: ssthresh,
        mss_cache: MSS,
        is_cwnd_limited: 1,
        tcp_mstamp: 1_000_000,
        delivered: 100_000,
        ..TcpSock::default()
    };
    sock.rtt_min.s[0].v = u32::MAX;
    if algorithm.needs_ecn() {
        sock.ecn_flags = ecn::OK;
    }
    sock.ca_init();
    sock
}

#[derive(Clone, Copy)]
pub struct Path {
    /// Segments that the path holds with its queue empty.
    pub pipe: u32,
    /// µs, with the queue empty.
    pub base_rtt_us: u32,
    /// Segments of queue; one more is dropped.
    pub buffer: u32,
    /// Segments of queue above which all are marked; only for algorithms that negotiate ECN.
    pub mark_above: u32,
}

/// What happens in a round besides its ACKs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Nothing,
    /// A segment of the round before was lost: fast recovery.
    Loss,
    /// All was lost.
    Timeout,
    /// A mark was echoed.
    Mark,
}

pub struct Flow {
    pub sock: TcpSock,
    path: Path,
    dropped: bool,
    /// RTT of this round, µs.
    rtt_us: u32,
    /// The state that the host enters at the next ACK: Recovery or CWR.
    pending: Option<u8>,
    /// Bytes × 10^6 that the pacing rate has allowed and that were not sent.
    credit: u64,
    /// Segments that the next sample reports lost.
    pub losses: u32,
    /// Each change of the pacing rate: when (µs), and to what (bytes/s).
    pub rates: Vec<(u64, u64)>,
}

/// The result of a round.
pub struct Round {
    pub sent: u32,
    pub rtt_us: u32,
    pub event: &'static str,
}

impl Flow {
    pub fn new(algorithm: &Algorithm, path: Path) -> Flow {
        let mut sock = socket(algorithm, 10, TCP_INFINITE_SSTHRESH);
        sock.packets_out = 10;
        sock.snd_nxt = 10 * MSS;
        sock.ca_cwnd_event(CaEvent::TxStart);
        Flow {
            sock,
            path,
            dropped: false,
            rtt_us: path.base_rtt_us,
            pending: None,
            credit: 0,
            losses: 0,
            rates: Vec::new(),
        }
    }

    /// One round trip. A queue that overflowed in the round before is a loss in this one.
    pub fn round(&mut self, event: Event) -> Round {
        let event = if self.dropped && event == Event::Nothing { Event::Loss } else { event };
        self.dropped = false;
        let sent = self.sock.packets_out;
        let rtt_us =
            (u64::from(self.path.base_rtt_us) * u64::from(sent.max(self.path.pipe)) / u64::from(self.path.pipe)) as u32;
        let start = self.sock.tcp_mstamp;
        let ecn = self.sock.ecn_flags & ecn::OK != 0;
        let marked = ecn && sent > self.path.pipe + self.path.mark_above;
        self.rtt_us = rtt_us;
        match event {
            Event::Timeout => self.timeout(),
            Event::Loss => self.pending = Some(TCP_CA_RECOVERY),
            Event::Mark => self.pending = Some(TCP_CA_CWR),
            Event::Nothing if marked => self.pending = Some(TCP_CA_CWR),
            Event::Nothing => {}
        }
        if event != Event::Timeout {
            for i in 1..=sent {
                let now = start + u64::from(rtt_us) * u64::from(i) / u64::from(sent);
                self.credit += self.sock.sk_pacing_rate.min(1 << 40) * (now - self.sock.tcp_mstamp);
                self.sock.tcp_mstamp = now;
                self.acknowledge(sent, marked || event == Event::Mark);
            }
            self.leave();
        }
        self.dropped = self.sock.packets_out > self.path.pipe + self.path.buffer;
        let event = match event {
            Event::Loss => "loss",
            Event::Timeout => "timeout",
            Event::Mark => "mark",
            Event::Nothing if marked => "marks",
            Event::Nothing => "",
        };
        Round { sent, rtt_us, event }
    }

    /// One segment acknowledged, in the order of the contract.
    fn acknowledge(&mut self, round: u32, marked: bool) {
        let sock = &mut self.sock;
        let rtt = self.rtt_us;
        sock.packets_out -= 1;
        sock.snd_una = sock.snd_una.wrapping_add(MSS);
        sock.delivered += 1;
        sock.delivered_mstamp = sock.tcp_mstamp;
        sock.delivered_ce += u32::from(marked);
        sock.srtt_us = if sock.srtt_us == 0 { rtt << 3 } else { sock.srtt_us - (sock.srtt_us >> 3) + rtt };
        sock.rtt_min.s[0].v = sock.rtt_min.s[0].v.min(rtt);
        sock.ca_pkts_acked(&AckSample { pkts_acked: 1, rtt_us: rtt as i32, in_flight: round * MSS });
        sock.ca_in_ack_event(if marked { ack_flags::SLOWPATH | ack_flags::ECE } else { 0 });
        if let Some(state) = self.pending.take() {
            self.enter(state);
        }
        let sock = &mut self.sock;
        if sock.icsk_ca_ops.is_some_and(CongestionOps::has_cong_control) {
            let mut sample = rate_sample(sock, round, rtt);
            sample.losses = std::mem::take(&mut self.losses) as i32;
            sock.lost += sample.losses as u32;
            sock.ca_cong_control(sock.snd_una, 4, &sample);
            if self.rates.last().is_none_or(|&(_, rate)| rate != sock.sk_pacing_rate) {
                self.rates.push((sock.tcp_mstamp, sock.sk_pacing_rate));
            }
        } else if matches!(sock.icsk_ca_state, TCP_CA_CWR | TCP_CA_RECOVERY) {
            sock.snd_cwnd = sock.snd_ssthresh.max(sock.snd_cwnd - 1).min(sock.snd_cwnd);
        } else {
            sock.ca_cong_avoid(sock.snd_una, 1);
        }
        self.send();
    }

    /// Fill the window, as far as the pacing rate lets it; a flow with nothing in flight sends one segment at least.
    fn send(&mut self) {
        let sock = &mut self.sock;
        let paced = sock.sk_pacing_status == SK_PACING_NEEDED;
        let price = u64::from(MSS) * 1_000_000;
        while sock.packets_out < sock.snd_cwnd && (!paced || self.credit >= price || sock.packets_out == 0) {
            sock.packets_out += 1;
            sock.snd_nxt = sock.snd_nxt.wrapping_add(MSS);
            self.credit = self.credit.saturating_sub(price);
        }
        // a pacer does not accumulate credit for a burst: at most a segment or two
        self.credit = self.credit.min(2 * price);
        sock.max_packets_out = sock.packets_out;
        sock.tcp_clock_cache = sock.tcp_mstamp * 1000;
        sock.tcp_wstamp_ns = sock.tcp_clock_cache;
    }

    fn enter(&mut self, state: u8) {
        self.reduce();
        self.sock.ca_set_state(state);
        self.sock.icsk_ca_state = state;
    }

    fn reduce(&mut self) {
        self.sock.prior_cwnd = self.sock.snd_cwnd;
        self.sock.prior_ssthresh = self.sock.snd_ssthresh;
        self.sock.high_seq = self.sock.snd_nxt;
        self.sock.snd_ssthresh = self.sock.ca_ssthresh();
    }

    /// The end of a round ends recovery.
    fn leave(&mut self) {
        let sock = &mut self.sock;
        let reduced = !sock.icsk_ca_ops.is_some_and(CongestionOps::has_cong_control);
        let state = sock.icsk_ca_state;
        if state == TCP_CA_OPEN {
            return;
        }
        if reduced && matches!(state, TCP_CA_CWR | TCP_CA_RECOVERY) {
            sock.snd_cwnd = sock.snd_ssthresh;
            sock.ca_cwnd_event(CaEvent::CompleteCwr);
        }
        sock.ca_set_state(TCP_CA_OPEN);
        sock.icsk_ca_state = TCP_CA_OPEN;
    }

    fn timeout(&mut self) {
        self.sock.tcp_mstamp += 200_000;
        self.reduce();
        self.sock.ca_cwnd_event(CaEvent::Loss);
        self.sock.ca_set_state(TCP_CA_LOSS);
        self.sock.icsk_ca_state = TCP_CA_LOSS;
        self.sock.snd_cwnd = 1;
        self.sock.packets_out = 1;
        self.sock.snd_nxt = self.sock.snd_una.wrapping_add(MSS);
        self.sock.ca_cwnd_event(CaEvent::TxStart);
    }
}

/// Of a segment that was sent one round trip and one round of segments ago.
fn rate_sample(sock: &TcpSock, round: u32, rtt_us: u32) -> RateSample {
    RateSample {
        delivered: round as i32,
        prior_delivered: sock.delivered - round,
        interval_us: rtt_us.into(),
        snd_interval_us: rtt_us,
        rcv_interval_us: rtt_us,
        prior_mstamp: sock.tcp_mstamp - u64::from(rtt_us),
        rtt_us: rtt_us.into(),
        acked_sacked: 1,
        prior_in_flight: sock.packets_out + 1,
        ..RateSample::default()
    }
}
