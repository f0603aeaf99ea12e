//! The endpoint: its state, and what hosts call.

use crate::busy::Busy;
use crate::config::Config;
use crate::rare::Rare;
use crate::stats::Stats;
use congestion::sock::SK_PACING_NEEDED;
use congestion::{Algorithm, MinMax, MinMaxSample, TcpSock};
use std::sync::Arc;
use units::Time;

/// The connection's state (RFC 9293 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Over: given up, reset, or both FINs acknowledged.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// A SYN was sent.
    SynSent,
    /// A SYN was answered.
    SynReceived,
    /// Open.
    Established,
    /// FIN sent, not acknowledged.
    FinWait1,
    /// FIN acknowledged, the peer may still send.
    FinWait2,
    /// The peer has closed, this side may still send.
    CloseWait,
    /// Both FINs crossed.
    Closing,
    /// The peer has closed, FIN sent.
    LastAck,
    /// Both FINs exchanged; what still arrives is acknowledged.
    TimeWait,
}

/// Bits of [`Endpoint::bits`]; the lowest four hold the window scale of what this side offers.
pub(crate) mod bit {
    pub const WSCALE_MASK: u16 = 0xf;
    /// SACK was negotiated.
    pub const SACK: u16 = 1 << 4;
    /// Timestamps were negotiated.
    pub const TIMESTAMPS: u16 = 1 << 5;
    /// The application has closed: FIN follows the last byte.
    pub const FIN_QUEUED: u16 = 1 << 6;
    /// FIN was sent.
    pub const FIN_SENT: u16 = 1 << 7;
    /// The flow is two-way: ACKs ride on data.
    pub const PINGPONG: u16 = 1 << 8;
    /// Segments were sent since the end of the last batch: the window is to be validated, the probe timer set.
    pub const SENT: u16 = 1 << 9;
    /// ACKs need the full treatment: [`Rare`](crate::rare::Rare) holds a probe, a retransmitted record.
    pub const SLOW_ACK: u16 = 1 << 10;
    /// Data needs the full treatment: something is out of order or unread.
    pub const SLOW_DATA: u16 = 1 << 11;
    /// Lost segments may be retransmitted.
    pub const RETRANSMIT: u16 = 1 << 12;
    /// Something of the handshake or another segment beside the stream is to be sent; [`Rare`](crate::rare::Rare) says what.
    pub const SPECIAL: u16 = 1 << 13;
    /// The window last announced is less than the buffer, or was a SYN's.
    pub const NARROW: u16 = 1 << 14;
    /// The peer scales no windows.
    pub const NO_WSCALE: u16 = 1 << 15;
}

/// What [`Endpoint::timer`] is for. There is one such timer, as in Linux: each of these replaces the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TimerKind {
    None,
    /// Retransmission timeout, also of SYN, SYN-ACK and FIN.
    Retransmit,
    /// Tail-loss probe.
    Probe,
    /// RACK's reordering window.
    Reorder,
    /// Probe of a closed window.
    Persist,
}

/// Bytes of the timestamp option, padded.
pub(crate) const TIMESTAMP_BYTES: u32 = 12;

/// Most bytes of one burst: what Linux lets a TSO packet hold (64 KiB less headers).
const GSO_MAX_BYTES: u32 = 65_160;
/// A burst is `pacing rate >> 10`: about 1 ms.
const PACING_SHIFT: u8 = 10;

const UNKNOWN: MinMaxSample = MinMaxSample { t: 0, v: u32::MAX };
/// The minimum RTT before the first sample.
pub(crate) const NO_RTT_MIN: MinMax = MinMax { s: [UNKNOWN; 3] };

/// One end of a TCP connection; see the crate's documentation for how to drive it.
#[derive(Debug)]
pub struct Endpoint {
    /// What algorithms see, and most of what TCP itself keeps.
    pub(crate) sock: TcpSock,
    /// Queue, timer and all that an idle connection does without.
    pub(crate) busy: Busy,
    pub(crate) config: Arc<Config>,
    /// Payload bytes handed to the application in order.
    pub(crate) received: u64,
    pub(crate) ack_at: Time,
    /// The peer's window, bytes.
    pub(crate) snd_wnd: u32,
    /// rcv_nxt of the last ACK sent.
    pub(crate) rcv_wup: u32,
    /// Window of the last ACK sent, bytes.
    pub(crate) rcv_wnd: u32,
    /// Timestamp to echo.
    pub(crate) ts_recent: u32,
    /// Smoothed maximum of the mean deviation, µs.
    pub(crate) rttvar_us: u32,
    /// Its maximum in this round trip, µs.
    pub(crate) mdev_max_us: u32,
    /// Segments with payload sent so far.
    pub(crate) data_segments_sent: u32,
    pub(crate) bits: u16,
    /// When data last came, ticks of 4 ms (Linux's at HZ = 250).
    pub(crate) lrcvtime_ticks: u16,
    /// Estimate of the peer's segment size, bytes.
    pub(crate) rcv_mss: u16,
    /// Delay of ACKs, ms; 0 before the first data.
    pub(crate) ato_ms: u8,
    /// Quick ACKs left.
    pub(crate) quick: u8,
    /// Doublings of the retransmission timeout.
    pub(crate) backoff: u8,
    /// Segments that the burst under way has left.
    pub(crate) burst_left: u8,
    pub(crate) state: State,
    pub(crate) timer: TimerKind,
}

// 100,000 idle flows, both ends, in under 1 KB each
const _: () = assert!(size_of::<Endpoint>() <= 424);

impl Endpoint {
    /// The active end: its SYN comes from [`Endpoint::poll_transmit`]. `iss` is the initial sequence number; `seed` starts
    /// the algorithm's random stream.
    pub fn connect(config: &Arc<Config>, iss: u32, seed: u32) -> Endpoint {
        let mut endpoint = Endpoint::new(config, iss, seed, State::SynSent);
        endpoint.bits |= bit::SPECIAL;
        endpoint
    }

    /// The passive end: it waits for a SYN.
    pub fn listen(config: &Arc<Config>, iss: u32, seed: u32) -> Endpoint {
        Endpoint::new(config, iss, seed, State::Listen)
    }

    pub(crate) fn new(config: &Arc<Config>, iss: u32, seed: u32, state: State) -> Endpoint {
        let mss = config.mtu - 40;
        let wanted_scale = (0..14).find(|&scale| config.receive_buffer >> scale <= 65_535).unwrap_or(14);
        let sock = TcpSock {
            sk_pacing_rate: u64::MAX,
            sk_max_pacing_rate: config.max_pacing_rate,
            sk_pacing_status: if config.paces() { SK_PACING_NEEDED } else { 0 },
            sk_gso_max_size: GSO_MAX_BYTES.min(config.tso_segments.saturating_mul(mss)),
            sk_pacing_shift: PACING_SHIFT,
            icsk_ca_ops: Some(config.algorithm.ops()),
            cc_random_state: if seed == 0 { 1 } else { seed },
            snd_cwnd: config.initial_cwnd,
            snd_ssthresh: config.initial_ssthresh,
            snd_cwnd_clamp: config.cwnd_clamp,
            snd_una: iss,
            snd_nxt: iss,
            mss_cache: mss - if config.timestamps { TIMESTAMP_BYTES } else { 0 },
            rtt_min: NO_RTT_MIN,
            advmss: mss as u16,
            ..TcpSock::default()
        };
        Endpoint {
            sock,
            busy: Busy::default(),
            config: Arc::clone(config),
            received: 0,
            ack_at: Time::NEVER,
            snd_wnd: 0,
            rcv_wup: 0,
            rcv_wnd: 0,
            ts_recent: 0,
            rttvar_us: 0,
            mdev_max_us: 0,
            data_segments_sent: 0,
            bits: bit::NARROW
                | if config.window_scaling { wanted_scale } else { 0 }
                | if config.sack { bit::SACK } else { 0 }
                | if config.timestamps { bit::TIMESTAMPS } else { 0 },
            lrcvtime_ticks: 0,
            rcv_mss: 0,
            ato_ms: 0,
            quick: 0,
            backoff: 0,
            burst_left: 0,
            state,
            timer: TimerKind::None,
        }
    }

    /// Writes without blocking: takes what the send buffer has room for, and says how much that was.
    pub fn write(&mut self, now: Time, bytes: u64) -> u64 {
        let taken = bytes.min(self.send_room());
        if taken > 0 {
            self.before_write(now);
            self.busy.make(&self.sock).app_end += taken;
        }
        taken
    }

    /// An application that blocks in write: taken as room appears. `u64::MAX / 2` is as good as unlimited.
    pub fn write_all(&mut self, now: Time, bytes: u64) {
        if bytes > 0 && self.bits & bit::FIN_QUEUED == 0 {
            self.before_write(now);
            let work = self.busy.make(&self.sock);
            work.app_end = work.app_end.saturating_add(bytes);
        }
    }

    /// A writer that blocks in [`Endpoint::write_all`] gives up: what the send buffer has taken is still sent.
    pub fn stop_writing(&mut self) {
        let buffered = self.sock.bytes_acked + self.config.send_buffer as u64;
        if let Some(work) = self.busy.work_mut() {
            work.app_end = work.app_end.min(buffered);
        }
        if self.unsent() == 0 {
            self.burst_left = 0;
        }
    }

    /// All that was written by now is to have arrived at `due`; of use for an algorithm that takes deadlines.
    pub fn set_deadline(&mut self, due: Time) {
        if self.ops().takes_deadlines() {
            let end_seq = self.sock.snd_nxt.wrapping_add(self.unsent() as u32);
            self.sock.set_deadline((due.as_ns() / 1000) as u32, end_seq);
        }
    }

    /// FIN after all that was written; before the SYN is answered, once it is. A second call changes nothing.
    pub fn close(&mut self, now: Time) {
        self.refresh_clock(now);
        match self.state {
            State::Listen => self.finish(State::Closed),
            State::Closed => {}
            _ => self.bits |= bit::FIN_QUEUED,
        }
    }

    /// Does the application read what arrives? It does from the start. While it does not, the window closes.
    pub fn set_reading(&mut self, now: Time, reading: bool) {
        self.refresh_clock(now);
        if reading {
            self.drain_unread();
        } else {
            self.rare_mut().not_reading = true;
            self.bits |= bit::SLOW_DATA;
        }
    }

    /// Changes the algorithm of a live connection: release of the old one, private state zeroed, init of the new with the
    /// window and the congestion state as they stand.
    pub fn set_algorithm(&mut self, now: Time, algorithm: &'static Algorithm) {
        self.refresh_clock(now);
        let ready = self.algorithm_runs();
        if ready {
            self.sock.ca_release();
        }
        if !self.ops().takes_deadlines() {
            self.sock.clear_deadline();
        }
        self.sock.icsk_ca_ops = Some(algorithm.ops());
        if ready {
            self.sock.ca_init();
        }
    }

    /// The earliest moment at which [`Endpoint::on_timer`] has something to do; [`Time::NEVER`] if none.
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        let at = self.busy.work().map_or(self.ack_at, |work| work.timer_at.min(self.ack_at));
        if self.sock.sk_pacing_status == 0 { at } else { at.min(self.pacing_at()) }
    }

    /// Prefetches what an ACK touches beside the endpoint itself.
    #[inline]
    pub fn prefetch_work(&self) {
        if let Some(work) = self.busy.work() {
            memory::prefetch(std::slice::from_ref(work), 0);
        }
    }

    /// Prefetches the rest, once the first has arrived.
    #[inline]
    pub fn prefetch_ring(&self) {
        if let Some(work) = self.busy.work() {
            work.ring.prefetch(self.sock.packets_out);
        }
    }

    /// Both ways open for data.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Nothing more will be sent but answers to what arrives late.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed | State::TimeWait)
    }

    /// The connection's state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Payload bytes handed to the application, in order.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Payload bytes that the peer has acknowledged.
    pub fn acked(&self) -> u64 {
        self.sock.bytes_acked
    }

    /// Payload bytes written (those that a blocked writer holds included) and not sent.
    pub fn unsent(&self) -> u64 {
        self.app_end() - self.sent_end()
    }

    /// Payload bytes written and not acknowledged.
    pub fn queued(&self) -> u64 {
        self.app_end() - self.sock.bytes_acked
    }

    /// Bytes that [`Endpoint::write`] would take now.
    pub fn send_room(&self) -> u64 {
        if self.bits & bit::FIN_QUEUED != 0 || self.is_closed() {
            return 0;
        }
        (self.sock.bytes_acked + self.config.send_buffer as u64).saturating_sub(self.app_end())
    }

    /// What algorithms see.
    pub fn sock(&self) -> &TcpSock {
        &self.sock
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        let rare = self.busy.rare().map_or_else(Stats::default, |rare| rare.stats);
        Stats { data_segments_sent: self.data_segments_sent, ..rare }
    }

    /// Payload bytes that the application has written or wants to, since the beginning.
    #[inline]
    pub(crate) fn app_end(&self) -> u64 {
        self.busy.work().map_or(self.sock.bytes_acked, |work| work.app_end)
    }

    /// Payload offset of snd_nxt.
    #[inline]
    pub(crate) fn sent_end(&self) -> u64 {
        let outstanding = self.sock.snd_nxt.wrapping_sub(self.sock.snd_una);
        let control = self.bits & bit::FIN_SENT != 0 && self.fin_outstanding() || self.state == State::SynSent;
        self.sock.bytes_acked + outstanding.saturating_sub(control as u32) as u64
    }

    /// Between init and release.
    fn algorithm_runs(&self) -> bool {
        !matches!(self.state, State::Listen | State::SynSent | State::SynReceived) && !self.is_closed()
    }

    pub(crate) fn fin_outstanding(&self) -> bool {
        matches!(self.state, State::FinWait1 | State::Closing | State::LastAck)
    }

    /// The rarely used state, made when first needed.
    #[inline]
    pub(crate) fn rare_mut(&mut self) -> &mut Rare {
        self.busy.make(&self.sock).make_rare()
    }

    pub(crate) fn has(&self, bits: u16) -> bool {
        self.bits & bits != 0
    }

    /// The clocks that algorithms see, at every send and receive.
    #[inline]
    pub(crate) fn refresh_clock(&mut self, now: Time) {
        if now.as_ns() != self.sock.tcp_clock_cache {
            self.move_clock(now);
        }
    }

    /// Mostly a segment has just arrived, and the clocks are right.
    #[cold]
    fn move_clock(&mut self, now: Time) {
        self.set_clock(now);
    }

    /// The same without a look at what they were.
    #[inline]
    pub(crate) fn set_clock(&mut self, now: Time) {
        let ns = now.as_ns();
        self.sock.tcp_clock_cache = ns;
        self.sock.tcp_mstamp = ns / 1000;
    }

    /// The host's tick counter, ms.
    #[inline]
    pub(crate) fn now_ms(&self) -> u32 {
        (self.sock.tcp_mstamp / 1000) as u32
    }

    /// The connection ends, and the algorithm's `release` is called.
    pub(crate) fn finish(&mut self, state: State) {
        if self.algorithm_runs() {
            self.sock.ca_release();
        }
        self.state = state;
        self.disarm();
        // with nothing sent, nothing is in flight
        (self.sock.packets_out, self.sock.sacked_out) = (0, 0);
        (self.sock.lost_out, self.sock.retrans_out) = (0, 0);
        self.burst_left = 0;
        self.busy.free(&self.sock);
    }
}
