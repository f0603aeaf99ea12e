//! The model's host: it keeps the socket as Linux does and calls the hooks in Linux's order.

use super::rng::Rng;
use super::{Fault, Progress, Run, Violation, WINDOW_MAX};
use crate::hook::{HOOKS, Hook};
use crate::ops::CongestionOps;
use crate::registry::Algorithm;
use crate::sock::{
    AckSample, CaEvent, RateSample, TCP_CA_CWR, TCP_CA_DISORDER, TCP_CA_LOSS, TCP_CA_OPEN, TCP_CA_RECOVERY,
    TCP_INFINITE_SSTHRESH, TcpSock, ack_flags, ecn,
};

/// The longest RTT, µs.
const RTT_MAX_US: u32 = i32::MAX as u32;
/// Any algorithm may return to this window at once, segments: BBR's minimum.
const SMALL_WINDOW: u32 = 4;
/// The initial window (RFC 6928), segments.
const INITIAL_WINDOW: u32 = 10;
/// Of `cong_control`'s flag: the ACK is of new data.
const FLAG_DATA_ACKED: u32 = 4;

pub(super) struct Host<'a> {
    sock: TcpSock,
    ops: &'static CongestionOps,
    progress: &'a Progress,
    rng: Rng,
    /// The path's RTT until it changes.
    rtt_us: u32,
    /// Segments that the application keeps in flight at most.
    app_limit: u32,
    window_max: u32,
    calls: [u64; HOOKS],
    digest: u64,
}

type Step = Result<(), Violation>;

impl<'a> Host<'a> {
    pub(super) fn new(algorithm: &Algorithm, seed: u64, progress: &'a Progress) -> Result<Host<'a>, Violation> {
        let mut rng = Rng::new(seed);
        let clamp = if rng.once_in(4) { SMALL_WINDOW + rng.magnitude(WINDOW_MAX) } else { WINDOW_MAX };
        let clamp = clamp.min(WINDOW_MAX);
        let mut sock = TcpSock {
            icsk_ca_ops: Some(algorithm.ops()),
            cc_random_state: rng.next() as u32 | 1,
            sk_pacing_rate: u64::MAX,
            sk_max_pacing_rate: u64::MAX,
            sk_gso_max_size: 65_536,
            sk_pacing_shift: 10,
            snd_cwnd_clamp: clamp,
            snd_cwnd: INITIAL_WINDOW.min(clamp),
            snd_ssthresh: TCP_INFINITE_SSTHRESH,
            mss_cache: 1448,
            advmss: 1448,
            snd_una: rng.next() as u32,
            rcv_nxt: rng.next() as u32,
            ..TcpSock::default()
        };
        sock.snd_nxt = sock.snd_una;
        sock.rtt_min.s[0].v = u32::MAX;
        sock.tcp_mstamp = 1 + rng.below(1 << 40);
        if algorithm.needs_ecn() && !rng.once_in(4) {
            sock.ecn_flags = ecn::OK;
        }
        let rtt_us = rng.magnitude(RTT_MAX_US);
        let mut host = Host {
            window_max: sock.snd_cwnd,
            sock,
            ops: algorithm.ops(),
            progress,
            rng,
            rtt_us,
            app_limit: u32::MAX,
            calls: [0; HOOKS],
            digest: 0,
        };
        // sometimes no init at all: every hook must be safe on a zeroed state
        if !host.rng.once_in(8) {
            host.call(Hook::Init, 0, TcpSock::ca_init)?;
        }
        Ok(host)
    }

    pub(super) fn finish(mut self, operations: u32) -> Result<Run, Violation> {
        self.call(Hook::Release, 0, TcpSock::ca_release)?;
        Ok(Run { operations, calls: self.calls, window_max: self.window_max, digest: self.digest })
    }

    /// One operation, chosen by the seed.
    pub(super) fn operate(&mut self) -> Step {
        match self.rng.below(64) {
            0..=31 => {
                self.send()?;
                self.ack()
            }
            32..=37 => {
                self.send()?;
                self.duplicate_ack()
            }
            38..=41 => self.loss(),
            42..=43 => self.congestion_mark(),
            44..=46 => self.timeout(),
            47..=49 => self.undo(),
            50..=52 => self.idle(),
            53..=55 => self.receive(),
            56..=58 => {
                self.change_path();
                Ok(())
            }
            59 => {
                self.app_limit = if self.rng.once_in(2) { u32::MAX } else { self.rng.magnitude(64) };
                Ok(())
            }
            60 => {
                // a window that the host sets by itself
                self.sock.snd_cwnd = self.rng.magnitude(self.sock.snd_cwnd_clamp);
                self.window_max = self.window_max.max(self.sock.snd_cwnd);
                Ok(())
            }
            61 => self.change_algorithm(),
            62 => self.ask(),
            _ => {
                self.sock.icsk_ca_priv = [0; 13];
                Ok(())
            }
        }
    }

    /// Fill the window, or as much of it as the application has data for.
    fn send(&mut self) -> Step {
        let allowed = self.sock.snd_cwnd.min(self.app_limit);
        let room = allowed.saturating_sub(self.sock.packets_in_flight()).min(2 * WINDOW_MAX - self.sock.packets_out);
        if self.sock.packets_out == 0 && room > 0 {
            self.call(Hook::CwndEvent, 0, |sock| sock.ca_cwnd_event(CaEvent::TxStart))?;
        }
        let sock = &mut self.sock;
        sock.packets_out += room;
        sock.snd_nxt = sock.snd_nxt.wrapping_add(room.wrapping_mul(sock.mss_cache));
        sock.max_packets_out = sock.packets_out;
        sock.is_cwnd_limited = u8::from(sock.packets_in_flight() >= sock.snd_cwnd);
        sock.app_limited = if sock.is_cwnd_limited == 0 { sock.delivered.wrapping_add(1) } else { 0 };
        Ok(())
    }

    /// A cumulative ACK of one segment, of a few, or of all.
    fn ack(&mut self) -> Step {
        if self.sock.packets_out == 0 {
            return Ok(());
        }
        let acked = match self.rng.below(4) {
            0 => 1,
            1 => 2,
            2 => self.rng.magnitude(self.sock.packets_out),
            _ => self.sock.packets_out,
        }
        .min(self.sock.packets_out);
        let rtt_us = self.pass_time();
        let prior_in_flight = self.sock.packets_in_flight();
        let already = self.sock.sacked_out.min(acked);
        let sock = &mut self.sock;
        sock.packets_out -= acked;
        sock.sacked_out -= already;
        sock.lost_out = sock.lost_out.min(sock.packets_out - sock.sacked_out);
        sock.retrans_out = sock.retrans_out.min(sock.lost_out);
        sock.snd_una = sock.snd_una.wrapping_add(acked.wrapping_mul(sock.mss_cache));
        let delivered = acked - already;
        self.acknowledge(acked, delivered, rtt_us, prior_in_flight)
    }

    /// A duplicate ACK, with or without SACK.
    fn duplicate_ack(&mut self) -> Step {
        let open = self.sock.packets_out.saturating_sub(self.sock.left_out());
        if self.sock.packets_out == 0 {
            return Ok(());
        }
        let sacked = if self.rng.once_in(3) { 0 } else { self.rng.magnitude(8).min(open) };
        let rtt_us = if sacked > 0 { self.pass_time() } else { -1 };
        let prior_in_flight = self.sock.packets_in_flight();
        self.sock.sacked_out += sacked;
        if self.sock.icsk_ca_state == TCP_CA_OPEN {
            self.set_state(TCP_CA_DISORDER)?;
        }
        self.acknowledge(0, sacked, rtt_us, prior_in_flight)
    }

    /// What follows on every ACK, in the order of the contract.
    fn acknowledge(&mut self, acked: u32, delivered: u32, rtt_us: i32, prior_in_flight: u32) -> Step {
        let marked = self.sock.ecn_flags & ecn::OK != 0 && self.rng.once_in(3);
        let prior_delivered = self.sock.delivered;
        self.sock.delivered = prior_delivered.wrapping_add(delivered);
        self.sock.delivered_mstamp = self.sock.tcp_mstamp;
        self.sock.bytes_acked += u64::from(acked) * u64::from(self.sock.mss_cache);
        if marked {
            self.sock.delivered_ce = self.sock.delivered_ce.wrapping_add(delivered);
        }
        self.measure(rtt_us);
        let in_flight = self.sock.mss_cache.saturating_mul(prior_in_flight);
        let sample = AckSample { pkts_acked: acked, rtt_us, in_flight };
        self.call(Hook::PktsAcked, 0, |sock| sock.ca_pkts_acked(&sample))?;
        let mut flags = self.rng.below(4) as u32;
        if marked {
            flags |= ack_flags::ECE;
        }
        self.call(Hook::InAckEvent, 0, |sock| sock.ca_in_ack_event(flags))?;
        self.end_episode()?;
        if self.ops.has_cong_control() {
            let rate = self.rate_sample(delivered, rtt_us, prior_in_flight);
            let ack = self.sock.snd_una;
            let brought = if delivered > 0 { FLAG_DATA_ACKED } else { 0 };
            return self.call(Hook::CongControl, delivered, |sock| sock.ca_cong_control(ack, brought, &rate));
        }
        if matches!(self.sock.icsk_ca_state, TCP_CA_CWR | TCP_CA_RECOVERY) {
            self.reduce_window();
        } else if delivered > 0 {
            let ack = self.sock.snd_una;
            self.call(Hook::CongAvoid, delivered, |sock| sock.ca_cong_avoid(ack, delivered))?;
        }
        self.pace();
        Ok(())
    }

    /// Time since the last ACK, and the RTT that this one measures, µs; −1: none.
    fn pass_time(&mut self) -> i32 {
        let gap_us = if self.rng.once_in(8) { 0 } else { self.rng.below(u64::from(self.rtt_us)) };
        self.sock.tcp_mstamp += gap_us;
        match self.rng.below(8) {
            0 => -1,
            1 => 0,
            2 => self.rng.magnitude(RTT_MAX_US) as i32,
            _ => {
                (u64::from(self.rtt_us) + self.rng.below(1 + u64::from(self.rtt_us) / 2)).min(RTT_MAX_US.into()) as i32
            }
        }
    }

    /// Smoothed and minimum RTT (RFC 6298; kept within the 32 bits that hold 8 times it).
    fn measure(&mut self, rtt_us: i32) {
        let Ok(rtt) = u32::try_from(rtt_us) else { return };
        let sock = &mut self.sock;
        let sum = u64::from(sock.srtt_us) - u64::from(sock.srtt_us >> 3) + u64::from(rtt);
        sock.srtt_us = if sock.srtt_us == 0 { rtt.saturating_mul(8) } else { sum.min(u32::MAX.into()) as u32 }.max(1);
        sock.rtt_min.s[0].v = sock.rtt_min.s[0].v.min(rtt.max(1));
    }

    fn rate_sample(&mut self, acked_sacked: u32, rtt_us: i32, prior_in_flight: u32) -> RateSample {
        let losses = self.rng.below(3) as i32 * i32::from(self.rng.once_in(8));
        let mut sample = RateSample {
            rtt_us: rtt_us.into(),
            acked_sacked,
            prior_in_flight,
            losses,
            prior_delivered: self.sock.delivered,
            is_app_limited: self.sock.app_limited != 0,
            is_retrans: self.rng.once_in(16),
            is_ack_delayed: self.rng.once_in(16),
            ..RateSample::default()
        };
        if self.rng.once_in(6) {
            return sample;
        }
        let delivered = self.rng.below(2 + 2 * u64::from(prior_in_flight)) as u32;
        sample.delivered = delivered as i32;
        sample.delivered_ce = self.rng.below(1 + u64::from(delivered)) as i32;
        sample.prior_delivered = self.sock.delivered.wrapping_sub(delivered);
        // mostly around the RTT, but a burst that is acknowledged at once is an interval of 0 or 1 µs
        let longest_us = if self.rng.once_in(8) { 2 } else { u64::from(self.rtt_us) * 2 };
        sample.interval_us = self.rng.below(longest_us) as i64;
        sample.prior_mstamp = self.sock.tcp_mstamp.saturating_sub(sample.interval_us as u64);
        sample
    }

    /// Segments are found lost: fast recovery.
    fn loss(&mut self) -> Step {
        let open = self.sock.packets_out - self.sock.left_out();
        if open == 0 {
            return Ok(());
        }
        let lost = self.rng.magnitude(open);
        self.sock.lost_out += lost;
        self.sock.lost = self.sock.lost.wrapping_add(lost);
        if matches!(self.sock.icsk_ca_state, TCP_CA_OPEN | TCP_CA_DISORDER) {
            self.begin_episode()?;
        }
        if matches!(self.sock.icsk_ca_state, TCP_CA_RECOVERY | TCP_CA_LOSS) {
            return Ok(());
        }
        self.set_state(TCP_CA_RECOVERY)
    }

    /// An echo of a mark, for a sender that takes it as a loss.
    fn congestion_mark(&mut self) -> Step {
        if !matches!(self.sock.icsk_ca_state, TCP_CA_OPEN | TCP_CA_DISORDER) || self.sock.packets_out == 0 {
            return Ok(());
        }
        self.begin_episode()?;
        self.sock.undo_marker = 0;
        self.sock.ecn_flags |= ecn::QUEUE_CWR & (self.sock.ecn_flags << 1);
        self.set_state(TCP_CA_CWR)
    }

    fn timeout(&mut self) -> Step {
        if self.sock.packets_out == 0 {
            return Ok(());
        }
        self.sock.tcp_mstamp += u64::from(self.rtt_us) * 2;
        if matches!(self.sock.icsk_ca_state, TCP_CA_OPEN | TCP_CA_DISORDER) {
            self.begin_episode()?;
            self.call(Hook::CwndEvent, 0, |sock| sock.ca_cwnd_event(CaEvent::Loss))?;
        }
        let sock = &mut self.sock;
        sock.retrans_out = 0;
        sock.lost_out = sock.packets_out - sock.sacked_out;
        sock.icsk_retransmits = sock.icsk_retransmits.saturating_add(1);
        sock.high_seq = sock.snd_nxt;
        self.set_state(TCP_CA_LOSS)?;
        self.sock.snd_cwnd = 1;
        self.call(Hook::CwndEvent, 0, |sock| sock.ca_cwnd_event(CaEvent::TxStart))
    }

    /// Common part of entering Recovery, CWR and Loss.
    fn begin_episode(&mut self) -> Step {
        let sock = &mut self.sock;
        sock.prior_cwnd = sock.snd_cwnd;
        sock.prior_ssthresh = sock.snd_ssthresh;
        sock.high_seq = sock.snd_nxt;
        sock.undo_marker = sock.snd_una.max(1);
        let ssthresh = self.call(Hook::Ssthresh, 0, TcpSock::ca_ssthresh)?;
        if ssthresh < 2 {
            return Err(self.progress.violation(Fault::Threshold { ssthresh }));
        }
        self.sock.snd_ssthresh = ssthresh;
        Ok(())
    }

    /// The ACK that covers what was outstanding ends recovery.
    fn end_episode(&mut self) -> Step {
        let covered = self.sock.high_seq.wrapping_sub(self.sock.snd_una) as i32 <= 0;
        let state = self.sock.icsk_ca_state;
        if state == TCP_CA_OPEN || (!covered && self.sock.packets_out > 0) {
            return Ok(());
        }
        let reduced = matches!(state, TCP_CA_CWR | TCP_CA_RECOVERY) && !self.ops.has_cong_control();
        if reduced && self.sock.snd_ssthresh < TCP_INFINITE_SSTHRESH {
            self.sock.snd_cwnd = self.sock.snd_ssthresh.min(self.sock.snd_cwnd_clamp);
            self.window_max = self.window_max.max(self.sock.snd_cwnd);
        }
        if state == TCP_CA_CWR && reduced {
            self.call(Hook::CwndEvent, 0, |sock| sock.ca_cwnd_event(CaEvent::CompleteCwr))?;
        }
        self.sock.icsk_retransmits = 0;
        self.sock.undo_marker = 0;
        self.set_state(TCP_CA_OPEN)?;
        if state == TCP_CA_RECOVERY && reduced {
            self.call(Hook::CwndEvent, 0, |sock| sock.ca_cwnd_event(CaEvent::CompleteCwr))?;
        }
        Ok(())
    }

    /// Proportional rate reduction, by its outcome: one segment an ACK towards the threshold.
    fn reduce_window(&mut self) {
        if self.sock.snd_cwnd > self.sock.snd_ssthresh {
            self.sock.snd_cwnd -= 1;
        }
    }

    /// The loss was spurious: restore window and threshold.
    fn undo(&mut self) -> Step {
        if self.sock.undo_marker == 0 {
            return Ok(());
        }
        let cwnd = self.call(Hook::UndoCwnd, 0, TcpSock::ca_undo_cwnd)?;
        let clamp = self.sock.snd_cwnd_clamp;
        if cwnd == 0 || cwnd > clamp {
            return Err(self.progress.violation(Fault::Undo { cwnd, clamp }));
        }
        self.sock.snd_cwnd = cwnd;
        self.sock.snd_ssthresh = self.sock.snd_ssthresh.max(self.sock.prior_ssthresh);
        self.sock.undo_marker = 0;
        self.sock.lost_out = 0;
        self.sock.retrans_out = 0;
        self.set_state(TCP_CA_OPEN)
    }

    /// Everything is acknowledged, and then the application is silent.
    fn idle(&mut self) -> Step {
        while self.sock.packets_out > 0 {
            self.ack()?;
        }
        let rtts = 1 + self.rng.below(1000);
        self.sock.tcp_mstamp += u64::from(self.rtt_us) * rtts;
        if rtts > 3 {
            self.call(Hook::CwndEvent, 0, |sock| sock.ca_cwnd_event(CaEvent::CwndRestart))?;
            if !self.ops.has_cong_control() {
                let restart = INITIAL_WINDOW.min(self.sock.snd_cwnd);
                self.sock.snd_cwnd = (self.sock.snd_cwnd >> rtts.min(20)).max(restart);
            }
        }
        self.send()
    }

    /// The receiver's side: data with or without a mark.
    fn receive(&mut self) -> Step {
        if self.sock.ecn_flags & ecn::OK == 0 {
            return Ok(());
        }
        for _ in 0..=self.rng.below(4) {
            self.sock.icsk_ack_pending = self.rng.next() as u8 & 7;
            let event = if self.rng.once_in(2) { CaEvent::EcnIsCe } else { CaEvent::EcnNoCe };
            self.call(Hook::CwndEvent, 0, |sock| sock.ca_cwnd_event(event))?;
            self.sock.cc_ack_wanted = 0;
            self.sock.rcv_nxt = self.sock.rcv_nxt.wrapping_add(self.sock.mss_cache);
        }
        Ok(())
    }

    /// Another route: another RTT, another segment size.
    fn change_path(&mut self) {
        self.rtt_us = self.rng.magnitude(RTT_MAX_US);
        if self.rng.once_in(4) {
            self.sock.mss_cache = [88, 536, 1448, 8948][self.rng.below(4) as usize];
        }
    }

    /// The algorithm is set once more on the open socket.
    fn change_algorithm(&mut self) -> Step {
        self.call(Hook::Release, 0, TcpSock::ca_release)?;
        self.call(Hook::Init, 0, TcpSock::ca_init)
    }

    fn ask(&mut self) -> Step {
        self.call(Hook::MinTsoSegs, 0, TcpSock::ca_min_tso_segs)?;
        self.call(Hook::SndbufExpand, 0, TcpSock::ca_sndbuf_expand)?;
        Ok(())
    }

    fn set_state(&mut self, state: u8) -> Step {
        self.call(Hook::SetState, 0, |sock| sock.ca_set_state(state))?;
        self.sock.icsk_ca_state = state;
        Ok(())
    }

    /// The host's own pacing rate, for algorithms that leave it to the host.
    fn pace(&mut self) {
        let bytes = u64::from(self.sock.mss_cache) * u64::from(self.sock.snd_cwnd) * 8_000_000 * 2;
        self.sock.sk_pacing_rate = (bytes / u64::from(self.sock.srtt_us.max(1))).max(1);
    }

    /// Calls a hook, then looks for violations.
    fn call<R>(&mut self, hook: Hook, acked: u32, body: impl FnOnce(&mut TcpSock) -> R) -> Result<R, Violation> {
        self.progress.enter(hook);
        let before = self.sock.clone();
        let answer = body(&mut self.sock);
        self.calls[hook as usize] += u64::from(has(self.ops, hook));
        self.verify(&before, acked).map_err(|fault| self.progress.violation(fault))?;
        self.window_max = self.window_max.max(self.sock.snd_cwnd);
        self.fold();
        Ok(answer)
    }

    fn verify(&self, before: &TcpSock, acked: u32) -> Result<(), Fault> {
        let sock = &self.sock;
        if let Some(field) = changed_host_field(before, sock) {
            return Err(Fault::HostField { field });
        }
        let (from, to) = (before.snd_cwnd, sock.snd_cwnd);
        if to == 0 || to > sock.snd_cwnd_clamp {
            return Err(Fault::Window { cwnd: to, clamp: sock.snd_cwnd_clamp });
        }
        let doubled = from.saturating_mul(2).saturating_add(acked).max(SMALL_WINDOW);
        // one that runs recovery itself can set the window to what is in flight, restore it, and grow it, all in one call
        let recovered = self.window_max.max(sock.packets_in_flight()) + acked;
        if to > doubled && !(self.ops.has_cong_control() && to <= recovered) {
            return Err(Fault::Jump { from, to, acked });
        }
        if sock.snd_ssthresh < 2 {
            return Err(Fault::Threshold { ssthresh: sock.snd_ssthresh });
        }
        Ok(())
    }

    /// FNV-1a over words.
    fn fold(&mut self) {
        let sock = &self.sock;
        let words = [u64::from(sock.snd_cwnd), u64::from(sock.snd_ssthresh), sock.sk_pacing_rate];
        for word in words.into_iter().chain(sock.icsk_ca_priv) {
            self.digest = (self.digest ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

fn has(ops: &CongestionOps, hook: Hook) -> bool {
    match hook {
        Hook::Init => ops.init.is_some(),
        Hook::Release => ops.release.is_some(),
        Hook::Ssthresh => ops.ssthresh.is_some(),
        Hook::CongAvoid => ops.cong_avoid.is_some(),
        Hook::SetState => ops.set_state.is_some(),
        Hook::CwndEvent => ops.cwnd_event.is_some(),
        Hook::InAckEvent => ops.in_ack_event.is_some(),
        Hook::PktsAcked => ops.pkts_acked.is_some(),
        Hook::CongControl => ops.cong_control.is_some(),
        Hook::UndoCwnd => ops.undo_cwnd.is_some(),
        Hook::MinTsoSegs => ops.min_tso_segs.is_some(),
        Hook::SndbufExpand => ops.sndbuf_expand.is_some(),
    }
}

/// The first field that only a host may write and that differs. The kernel refuses files that write one.
fn changed_host_field(before: &TcpSock, after: &TcpSock) -> Option<&'static str> {
    macro_rules! first_changed {
        ($($field:ident),* $(,)?) => {
            $(if before.$field != after.$field {
                return Some(stringify!($field));
            })*
        };
    }
    first_changed!(
        snd_cwnd_clamp,
        snd_una,
        snd_nxt,
        rcv_nxt,
        mss_cache,
        packets_out,
        sacked_out,
        lost_out,
        retrans_out,
        delivered,
        delivered_ce,
        lost,
        max_packets_out,
        cwnd_usage_seq,
        srtt_us,
        mdev_us,
        rtt_min,
        tcp_mstamp,
        delivered_mstamp,
        first_tx_mstamp,
        tcp_clock_cache,
        tcp_wstamp_ns,
        prior_cwnd,
        prior_ssthresh,
        high_seq,
        undo_marker,
        undo_retrans,
        rate_delivered,
        rate_interval_us,
        lsndtime,
        advmss,
        is_cwnd_limited,
        bytes_acked,
        bytes_sent,
        sk_max_pacing_rate,
        sk_gso_max_size,
        sk_pacing_shift,
        icsk_ca_state,
        icsk_retransmits,
    );
    None
}
