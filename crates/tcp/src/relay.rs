//! A sender whose segments another host makes: window, pacing, loss detection and retransmission for data that comes in
//! pieces with boundaries of their own.
//!
//! A [`Relay`] is between a connection's ends and forwards one end's data: it has an [`Endpoint`]'s sender, hooks
//! included, and decides when which sequence numbers leave. Its host stores the bytes.
//! SYN and FIN are sequence numbers like any other: to a relay the connection is always established.
//!
//! After [`Relay::write`], [`Relay::on_ack`] and [`Relay::on_timer`] the host calls [`Relay::poll_transmit`] until it says
//! `None`, then looks at [`Relay::poll_timeout`].

use crate::config::Config;
use crate::endpoint::{Endpoint, State, TimerKind, bit};
use crate::scoreboard::mark;
use crate::segment::{Segment, flags};
use crate::seq::{after, before};
use crate::stats::Stats;
use congestion::TcpSock;
use congestion::sock::{TCP_CA_OPEN, ack_flags, ecn};
use std::sync::Arc;
use units::Time;

/// Maximum delay of a segment by pacing: a relayed connection must not stall, whatever rate an algorithm computes after a
/// minute in which its sender was silent.
const PACING_WAIT_MAX: Time = Time::from_secs(10);

/// A window may have been larger than it is now by more than is known here: with it, data in a SYN, and what a scale rounds.
const ACKNOWLEDGED_SLACK: u32 = 1 << 16;

/// What the ends of the connection agreed on, seen from the end whose data is relayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Its first sequence number after the SYN.
    pub una: u32,
    /// What it has acknowledged of the other end.
    pub rcv_nxt: u32,
    /// The other end's window, bytes.
    pub window: u32,
    /// Most payload in a segment, bytes.
    pub mss: u32,
    /// Both permit SACK.
    pub sack: bool,
    /// Both do ECN.
    pub ecn: bool,
    /// What the handshake took toward the other end and back, microseconds.
    pub rtt_us: Option<u32>,
    /// Starts the algorithm's random stream.
    pub seed: u32,
}

/// The next piece that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// How many sequence numbers it has, 0 if there is none. Of more than a segment the first segments may leave alone.
    pub len: u32,
    /// It leaves whatever the algorithm's window and pacing say: what is in flight will bring no acknowledgment.
    pub urgent: bool,
}

/// Sequence numbers that leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    /// The first.
    pub seq: u32,
    /// How many.
    pub len: u32,
    /// For the first time.
    pub fresh: bool,
    /// With CWR.
    pub cwr: bool,
}

/// One direction of a connection that others have; see the module's documentation for how to drive it.
///
/// It receives nothing. Its endpoint's `received` holds the retransmissions, in the upper half, and timeouts from before
/// [`Relay::rest`].
#[derive(Debug)]
pub struct Relay(Endpoint);

impl Relay {
    pub(crate) fn of(endpoint: Endpoint) -> Relay {
        Relay(endpoint)
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.0
    }

    pub(crate) fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.0
    }

    /// The connection is open; nothing of its data has been sent.
    pub fn new(now: Time, config: &Arc<Config>, opening: &Opening) -> Relay {
        let mut end = Endpoint::new(config, opening.una, opening.seed, State::SynReceived);
        end.refresh_clock(now);
        // timestamps are the sending host's: they say nothing on this clock
        end.bits = if opening.sack { bit::SACK } else { 0 };
        end.sock.ecn_flags = if opening.ecn { ecn::OK } else { 0 };
        end.sock.mss_cache = opening.mss;
        end.sock.rcv_nxt = opening.rcv_nxt;
        end.rcv_wup = opening.rcv_nxt;
        end.snd_wnd = opening.window;
        end.rcv_mss = 1;
        end.sock.ca_set_state(TCP_CA_OPEN);
        end.sock.ca_in_ack_event(ack_flags::SLOWPATH | ack_flags::WIN_UPDATE);
        end.sock.delivered += 1;
        if let Some(rtt_us) = opening.rtt_us {
            end.update_rtt_min(rtt_us, false);
            end.estimate_rtt(rtt_us);
        }
        end.establish(now);
        Relay(end)
    }

    /// `len` sequence numbers more are to be sent. `starved`: they come after a time in which the sender sent nothing
    /// although it could have; rate samples and the validation of an unused window account for that.
    pub fn write(&mut self, now: Time, len: u32, starved: bool) {
        let end = &mut self.0;
        if starved {
            end.before_write(now);
        }
        end.busy.make(&end.sock).app_end += len as u64;
    }

    /// The sending end has acknowledged up to `rcv_nxt` and offers `window` bytes from there on: by these
    /// [`Relay::accepts`] distinguishes the other end's segments from forged ones.
    #[inline]
    pub fn note_receiver(&mut self, rcv_nxt: u32, window: u32) {
        let end = &mut self.0;
        if !after(end.sock.rcv_nxt, rcv_nxt) {
            end.sock.rcv_nxt = rcv_nxt;
            end.rcv_wup = rcv_nxt;
            end.rcv_wnd = window;
        }
    }

    /// Whether the sending end may acknowledge that: what the other end may have sent, or had acknowledged a window ago. Anything
    /// else is forged (RFC 5961 5.2).
    #[inline]
    pub fn may_acknowledge(&self, ack: u32) -> bool {
        let end = &self.0;
        let far = end.rcv_wnd.saturating_add(ACKNOWLEDGED_SLACK).min(i32::MAX as u32);
        let (least, most) = (end.sock.rcv_nxt.wrapping_sub(far), end.sock.rcv_nxt.wrapping_add(far));
        !before(ack, least) && !after(ack, most)
    }

    /// What the sending end has acknowledged.
    pub fn rcv_nxt(&self) -> u32 {
        self.0.sock.rcv_nxt
    }

    /// Whether a segment of the other end lies in the window that it was offered (RFC 9293 3.4).
    #[inline]
    pub fn accepts(&self, segment: &Segment) -> bool {
        self.0.is_in_window(segment)
    }

    /// The other end acknowledges, what was sent and no more. `segment` has been accepted; its window is in bytes.
    #[inline]
    pub fn on_ack(&mut self, now: Time, segment: &Segment) {
        let end = &mut self.0;
        end.refresh_clock(now);
        let (una, backoff) = (end.sock.snd_una, end.backoff);
        let closed = end.sock.packets_out > 0 && after(head_end(end), right_edge(end));
        let plain = segment.len == 0 && segment.flags & (flags::FIN | flags::SYN | flags::RST | flags::CWR) == 0;
        if !(plain && end.fast_ack(now, segment)) {
            end.burst_left = 0;
            end.slow_ack(now, segment);
        }
        if end.timer == TimerKind::Retransmit && backoff > 0 && end.backoff == backoff && end.sock.snd_una != una {
            // without timestamps a retransmission gives no RTT sample, so that on a path with losses Karn's rule
            // (RFC 6298 5) might keep the longest timeout for minutes; progress halves it
            end.backoff -= 1;
            end.rearm_rto(now);
        }
        if closed && end.sock.packets_out > 0 && !after(head_end(end), right_edge(end)) {
            // what was sent into a closed window was refused: it has opened
            end.rare_mut().retransmit_head = true;
            end.bits |= bit::RETRANSMIT;
        }
    }

    /// How long ago the oldest segment that is not acknowledged was last sent, microseconds; 0 if there is none.
    pub fn head_age_us(&self, now: Time) -> u32 {
        let end = &self.0;
        if end.sock.packets_out == 0 { 0 } else { (now.as_us() as u32).wrapping_sub(end.busy.at(0).sent_us) }
    }

    /// Other settings from now on, as [`Endpoint::retune`] has them.
    pub fn retune(&mut self, now: Time, config: &Arc<Config>) {
        self.0.refresh_clock(now);
        self.0.retune(now, config);
    }

    /// The earliest moment at which [`Relay::on_timer`] has something to do; [`Time::NEVER`] if none.
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        self.0.poll_timeout()
    }

    /// To be called when [`Relay::poll_timeout`] has come; harmless when early.
    pub fn on_timer(&mut self, now: Time) {
        self.0.on_timer(now);
    }

    /// The missing data of `[seq, end)`, which counts as in flight here, has come and leaves now: its RTT begins, as far as
    /// it can be distinguished from that of the copy that was never sent, and its timeout restarts. Data delivered with it
    /// and behind it has waited for it, so such samples are below the path's rate.
    pub fn on_filled(&mut self, now: Time, seq: u32, end: u32) {
        let endpoint = &mut self.0;
        endpoint.refresh_clock(now);
        let now_us = endpoint.sock.tcp_mstamp as u32;
        let len = endpoint.sock.packets_out;
        let mut index = if len > 0 { endpoint.busy.ring().find(len, seq) } else { 0 };
        while index < len {
            let record = endpoint.busy.at_mut(index);
            record.flags |= mark::APP_LIMITED;
            if before(record.seq, end) && !record.is(mark::SACKED) {
                record.sent_us = now_us;
                record.flags |= mark::EVER_RETRANS;
            }
            index += 1;
        }
        endpoint.sock.app_limited = endpoint.sock.delivered.wrapping_add(endpoint.sock.packets_in_flight()).max(1);
        if let Some(rare) = endpoint.busy.rare_mut() {
            // sending times are no longer in the order that the search for losses remembers
            rare.rack.frontier = None;
        }
        endpoint.backoff = 0;
        endpoint.sock.icsk_retransmits = 0;
        endpoint.timer = TimerKind::Retransmit;
        endpoint.rearm_rto(now);
    }

    /// What leaves now.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, next: Next) -> Option<Leave> {
        self.0.refresh_clock(now);
        if self.0.has(bit::RETRANSMIT)
            && let Some(leave) = self.out_of_turn(now, next)
        {
            return Some(leave);
        }
        if next.len > 0
            && let Some(leave) = self.send_new(now, next)
        {
            return Some(leave);
        }
        let end = &mut self.0;
        end.burst_left = 0;
        let latest_ns = end.sock.tcp_clock_cache + PACING_WAIT_MAX.as_ns();
        if end.sock.tcp_wstamp_ns > latest_ns {
            end.sock.tcp_wstamp_ns = latest_ns;
            if end.timer == TimerKind::Retransmit {
                // a timeout begins when pacing ends
                end.rearm_rto(now);
            }
        }
        if end.has(bit::SENT) {
            end.end_batch(now);
        }
        None
    }

    /// Probes, retransmissions, F-RTO's test: in the order of an endpoint.
    fn out_of_turn(&mut self, now: Time, next: Next) -> Option<Leave> {
        if self.0.is_closed() || self.0.forget_retransmissions() {
            return None;
        }
        let mut again = Segment::default();
        if std::mem::take(&mut self.0.rare_mut().probe_now) {
            return Some(self.probe(now, next.len, &mut again));
        }
        let sent = self.0.retransmit_head(&mut again) || {
            if self.0.rare_mut().frto_new {
                if next.len > 0
                    && let Some(leave) = self.send_new(now, next)
                {
                    return Some(leave);
                }
                if self.0.end_frto_test() {
                    return None;
                }
            }
            self.0.retransmit_lost(now, &mut again)
        };
        sent.then_some(Leave { seq: again.seq, len: again.len as u32, fresh: false, cwr: false })
    }

    /// The tail-loss probe: new data if there is any.
    fn probe(&mut self, now: Time, next: u32, again: &mut Segment) -> Leave {
        if next == 0 {
            self.0.emit_probe(now, again);
            return Leave { seq: again.seq, len: again.len as u32, fresh: false, cwr: false };
        }
        let leave = self.enter(now, next, 1);
        self.0.bits &= !bit::SENT;
        let limited = self.0.sock.packets_in_flight() >= self.0.sock.snd_cwnd;
        self.0.validate_window(limited);
        self.0.note_probe(now, true);
        leave
    }

    /// New data, as much of it as window and pacing allow.
    #[inline]
    fn send_new(&mut self, now: Time, Next { len: next, urgent }: Next) -> Option<Leave> {
        let end = &mut self.0;
        if end.is_closed() {
            return None;
        }
        if end.burst_left == 0 {
            if !urgent && end.pacing_blocks() {
                return None;
            }
            end.burst_left = end.largest_burst().segments(end.sock.mss_cache).min(u8::MAX as u32) as u8;
        }
        let room = room(&end.sock).max(u32::from(urgent));
        if room == 0 {
            end.note_window_limited();
            return None;
        }
        // data beyond the window is delayed, but a probe of the closed window may leave
        if end.sock.packets_out > 0
            && after(end.sock.snd_nxt.wrapping_add(next.min(end.sock.mss_cache)), right_edge(end))
        {
            return None;
        }
        let segments = room.min(end.burst_left.max(1) as u32);
        Some(self.enter(now, next, segments))
    }

    /// Up to `most` segments of the next piece are in flight from now on.
    #[inline]
    pub(crate) fn enter(&mut self, now: Time, next: u32, most: u32) -> Leave {
        let end = &mut self.0;
        let now_ms = end.now_ms();
        let seq = end.sock.snd_nxt;
        let mss = end.sock.mss_cache;
        let cwr = end.sock.ecn_flags & (ecn::OK | ecn::QUEUE_CWR) == ecn::OK | ecn::QUEUE_CWR;
        if cwr {
            end.sock.ecn_flags &= !ecn::QUEUE_CWR;
        }
        end.bits |= bit::SENT;
        let (mut left, mut segments) = (next, 0);
        while left > 0 && segments < most {
            // a FIN after a full segment stays with it
            let len = if left <= mss + 1 { left } else { mss };
            end.count_sent(len as u16, now_ms);
            if end.enter_new(len as u16, 0) {
                end.rearm_rto(now);
            }
            end.pace(len as u64, 1);
            left -= len;
            segments += 1;
        }
        end.burst_left = end.burst_left.saturating_sub(segments as u8);
        Leave { seq, len: next - left, fresh: true, cwr }
    }

    /// The number after the last that the sending host may send by the window of the algorithm: as far as the segments in
    /// flight leave room. Data waiting behind a gap is not in flight.
    #[inline]
    pub fn window_edge(&self) -> u32 {
        let sock = &self.0.sock;
        let in_flight = sock.snd_nxt.wrapping_sub(sock.snd_una);
        // from what is acknowledged on no more than a sequence number can be ahead of another
        let most = (i32::MAX as u32).saturating_sub(in_flight);
        sock.snd_nxt.wrapping_add(room(sock).saturating_mul(sock.mss_cache).min(most))
    }

    /// Nothing has been in flight for a while: frees memory, and forgets the reordering seen at the last losses.
    pub fn rest(&mut self) {
        let end = &mut self.0;
        let is_quiet = end.sock.packets_out == 0
            && end.timer == TimerKind::None
            && end.sock.icsk_ca_state == TCP_CA_OPEN
            && !end.has(bit::RETRANSMIT | bit::SLOW_ACK);
        if is_quiet {
            let Stats { retransmits, rtos, .. } = end.busy.rest(&end.sock);
            end.received += u64::from(retransmits) << 32 | u64::from(rtos);
        }
    }

    /// The connection is over, and the algorithm's `release` is called.
    pub fn finish(&mut self) {
        self.0.finish(State::Closed);
    }

    /// The sender gave up: what it sent was never acknowledged.
    pub fn is_given_up(&self) -> bool {
        self.0.is_closed()
    }

    /// What algorithms see.
    #[inline]
    pub fn sock(&self) -> &TcpSock {
        &self.0.sock
    }

    /// Timeouts since the other end last acknowledged anything.
    pub fn backoff(&self) -> u8 {
        self.0.backoff
    }

    /// Counts so far; of those about losses, only retransmissions and timeouts survive a rest.
    pub fn stats(&self) -> Stats {
        let (stats, before) = (self.0.stats(), self.0.received);
        Stats {
            retransmits: stats.retransmits.wrapping_add((before >> 32) as u32),
            rtos: stats.rtos.wrapping_add(before as u32),
            ..stats
        }
    }

    /// The settings that hold.
    pub fn config(&self) -> &Config {
        self.0.config()
    }
}

/// Segments that the window leaves room for: at least one if none is in flight, whatever the algorithm says, or nothing would
/// ever come back.
fn room(sock: &TcpSock) -> u32 {
    let in_flight = sock.packets_in_flight();
    sock.snd_cwnd.max(u32::from(in_flight == 0)).saturating_sub(in_flight)
}

/// The number after the oldest segment in flight.
fn head_end(end: &Endpoint) -> u32 {
    end.busy.at(0).end_seq()
}

/// The number after the last that the other end's window takes.
fn right_edge(end: &Endpoint) -> u32 {
    end.sock.snd_una.wrapping_add(end.snd_wnd)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use congestion::Algorithm;

    /// Payload of a segment.
    pub(crate) const LEN: u32 = 1000;
    pub(crate) const OPENING: Opening = Opening {
        una: 0,
        rcv_nxt: 0,
        window: 1 << 20,
        mss: LEN,
        sack: true,
        ecn: false,
        rtt_us: Some(20_000),
        seed: 1,
    };

    #[test]
    fn a_window_of_everything_is_not_taken_for_none() {
        let config = Arc::new(Config::linux(Algorithm::named("newreno").expect("built in")));
        let opening = Opening { mss: 1448, rtt_us: None, ..OPENING };
        let now = Time::from_secs(1);
        let mut relay = Relay::new(now, &config, &opening);
        relay.write(now, 1448, false);
        relay.poll_transmit(now, Next { len: 1448, urgent: false });
        relay.0.sock.snd_cwnd = 3_000_000;
        assert!(after(relay.window_edge(), 1 << 30), "{}", relay.window_edge());
    }

    #[test]
    fn a_wait_for_missing_data_gives_no_sample_of_the_path() {
        let config = Arc::new(Config::linux(Algorithm::named("newreno").expect("built in")));
        let mut now = Time::from_secs(1);
        let mut relay = Relay::new(now, &config, &OPENING);
        let send = |relay: &mut Relay, now, from: u32, to: u32| {
            for _ in from..to {
                relay.write(now, LEN, false);
            }
            for n in from..to {
                let leave = relay.poll_transmit(now, Next { len: LEN, urgent: false });
                assert_eq!(leave.map(|leave| leave.seq), Some(n * LEN));
            }
        };
        let ack = |upto: u32| Segment { ack: upto * LEN, flags: flags::ACK, window: 1 << 20, ..Segment::default() };
        send(&mut relay, now, 0, 10);
        now += Time::from_ms(20);
        relay.on_ack(now, &ack(10));
        let rate = |relay: &Relay| (relay.sock().rate_delivered, relay.sock().rate_interval_us);
        let before = rate(&relay);
        assert_eq!(before, (10, 20_000));
        // the first of five has not come yet, and does so a minute later
        send(&mut relay, now, 10, 15);
        now += Time::from_secs(60);
        relay.on_filled(now, 10 * LEN, 11 * LEN);
        now += Time::from_ms(20);
        relay.on_ack(now, &ack(15));
        assert_eq!(rate(&relay), before, "five in a minute");
    }
}
