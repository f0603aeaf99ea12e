//! A flow over a path of a fixed pipe and buffer, a round trip at a time.
//!
//! In a round of W segments every segment takes base × max(W, pipe) / pipe: what the pipe does not hold stands in the
//! queue. Each segment is acknowledged by itself, evenly over the round; what an ACK allows is sent at once.

use congestion::sock::{
    SK_PACING_NEEDED, TCP_CA_CWR, TCP_CA_LOSS, TCP_CA_OPEN, TCP_CA_RECOVERY, TCP_INFINITE_SSTHRESH, ack_flags, ecn,
};
use congestion::{AckSample, Algorithm, CaEvent, RateSample, TcpSock};

pub const MSS: u32 = 1448;

/// A socket with everything that a host sets before `init`, and `init` called.
pub fn socket(algorithm: &Algorithm, cwnd: u32, ssthresh: u32) -> TcpSock {
    let mut sock = TcpSock::default();
    sock.icsk_ca_ops = Some(algorithm.ops());
    sock.cc_random_state = 1;
    sock.sk_pacing_rate = u64::MAX;
    sock.sk_max_pacing_rate = u64::MAX;
    sock.sk_gso_max_size = 65_536;
    sock.sk_pacing_shift = 10;
    sock.snd_cwnd = cwnd;
    sock.snd_cwnd_clamp = u32::MAX;
    sock.snd_ssthresh = ssthresh;
    sock.mss_cache = MSS;
    sock.is_cwnd_limited = 1;
    sock.rtt_min.s[0].v = u32::MAX;
    sock.tcp_mstamp = 1_000_000;
    sock.delivered = 100_000;
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
    /// RTT of the round before, µs.
    rtt_us: u32,
}

/// What a round was.
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
        Flow { sock, path, dropped: false, rtt_us: path.base_rtt_us }
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
            Event::Loss => self.enter(TCP_CA_RECOVERY),
            Event::Mark => self.enter(TCP_CA_CWR),
            Event::Nothing if marked => self.enter(TCP_CA_CWR),
            Event::Nothing => {}
        }
        if event != Event::Timeout {
            for i in 1..=sent {
                self.sock.tcp_mstamp = start + u64::from(rtt_us) * u64::from(i) / u64::from(sent);
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
        if sock.icsk_ca_ops.is_some_and(|ops| ops.has_cong_control()) {
            let sample = rate_sample(sock, round, rtt);
            sock.ca_cong_control(sock.snd_una, &sample);
        } else if matches!(sock.icsk_ca_state, TCP_CA_CWR | TCP_CA_RECOVERY) {
            sock.snd_cwnd = sock.snd_ssthresh.max(sock.snd_cwnd - 1).min(sock.snd_cwnd);
        } else {
            sock.ca_cong_avoid(sock.snd_una, 1);
        }
        self.send();
    }

    /// Fill the window, or what the pacing rate puts into a round trip.
    fn send(&mut self) {
        let sock = &mut self.sock;
        let mut allowed = sock.snd_cwnd;
        if sock.sk_pacing_status == SK_PACING_NEEDED {
            let paced = u128::from(sock.sk_pacing_rate) * u128::from(self.rtt_us) / 1_000_000 / u128::from(MSS);
            allowed = allowed.min(paced.clamp(1, u32::MAX.into()) as u32);
        }
        while sock.packets_out < allowed {
            sock.packets_out += 1;
            sock.snd_nxt = sock.snd_nxt.wrapping_add(MSS);
        }
        sock.max_packets_out = sock.packets_out;
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
        let reduced = !sock.icsk_ca_ops.is_some_and(|ops| ops.has_cong_control());
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
    let mut sample = RateSample::default();
    sample.delivered = round as i32;
    sample.prior_delivered = sock.delivered - round;
    sample.interval_us = rtt_us.into();
    sample.snd_interval_us = rtt_us;
    sample.rcv_interval_us = rtt_us;
    sample.prior_mstamp = sock.tcp_mstamp - u64::from(rtt_us);
    sample.rtt_us = rtt_us.into();
    sample.acked_sacked = 1;
    sample.prior_in_flight = sock.packets_out + 1;
    sample
}
