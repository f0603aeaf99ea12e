//! The simulator's side: an endpoint to which the recorded ACKs arrive as they arrived at the kernel.

use super::peer::{MSS, Peer};
use super::recorded::{Happening, Recording};
use super::row::{self, Row};
use super::script::Script;
use congestion::Algorithm;
use std::sync::Arc;
use tcp::{Config, EcnMode, Endpoint, Segment};
use units::Time;

/// The zero of a recording, on the endpoint's clock.
const EPOCH: Time = Time::from_secs(1);

/// The longest lag of Linux's timers behind exact ones: a probe's slack is two ticks of 4 ms where it is 2 ms here, the
/// timeout after it is rounded up to a tick, and each of the two starts within the tick after its own.
const TIMER_LAG: Time = Time::from_ms(18);

/// Events closer than this may come in either order.
const CLOSE: Time = Time::from_us(100);

/// A difference beyond any timer's lag.
const JITTER: Time = Time::from_ms(1);

struct Replay<'a> {
    endpoint: Endpoint,
    peer: Peer,
    iss: u32,
    recording: &'a Recording,
    /// The endpoint's own transmissions: segment and timestamp.
    sent: Vec<(u32, u32)>,
    /// By how much timers expired before (−) or after (+) Linux's, µs.
    shift_us: i64,
    /// Time of the endpoint's last event.
    now: Time,
}

/// Replays a recording; returns the endpoint's rows.
pub fn run(script: &Script, recording: &Recording, algorithm: &'static Algorithm) -> Result<Vec<Row>, String> {
    let config =
        Config { ecn: EcnMode::On, sack: script.sack, tso_segments: 1, ..Config::linux(row::recorder(algorithm)) };
    row::take();
    row::enter(EPOCH);
    let iss = 1_000_000;
    let endpoint = Endpoint::connect(&Arc::new(config), iss, 1);
    let peer = Peer::new(script.sack, iss + 1);
    let mut replay = Replay { endpoint, peer, iss, recording, sent: Vec::new(), shift_us: 0, now: EPOCH };
    let mut syn = Segment::default();
    if !replay.endpoint.poll_transmit(EPOCH, &mut syn) {
        return Err("no SYN is sent".to_string());
    }
    for &(at, happening) in &recording.happenings {
        replay.until(at, happening)?;
        let now = replay.time(at).max(replay.now);
        row::enter(now);
        match happening {
            Happening::SynAck => {
                let answer = replay.peer.syn_ack(now, &syn);
                replay.endpoint.on_segment(now, &answer);
            }
            Happening::Write(segments) => replay.endpoint.write_all(now, u64::from(segments * MSS)),
            Happening::Ack { number, transmission, ece } => {
                let tsval = replay.transmission(number, transmission).expect("waited for");
                replay.peer.arrive(number, tsval);
                let ack = replay.peer.ack(now, ece);
                replay.endpoint.on_segment(now, &ack);
            }
        }
        replay.transmit(now)?;
    }
    Ok(row::take())
}

impl Replay<'_> {
    /// A recorded moment on the endpoint's clock.
    fn time(&self, at: Time) -> Time {
        let shift = Time::from_us(self.shift_us.unsigned_abs());
        if self.shift_us < 0 { (EPOCH + at).saturating_sub(shift) } else { EPOCH + at + shift }
    }

    /// The timestamp of a segment's transmission.
    fn transmission(&self, number: u32, transmission: usize) -> Option<u32> {
        self.sent.iter().filter(|sent| sent.0 == number).nth(transmission - 1).map(|sent| sent.1)
    }

    /// Advances to the next event; if that is an ACK, at least until what it acknowledges was sent.
    fn until(&mut self, at: Time, happening: Happening) -> Result<(), String> {
        while self.next_timer() <= self.time(at) || self.is_close(at) {
            self.timer()?;
        }
        let Happening::Ack { number, transmission, .. } = happening else { return Ok(()) };
        while self.transmission(number, transmission).is_none() {
            let next = self.next_timer();
            if next == Time::NEVER || next > self.time(at) + TIMER_LAG {
                let ms = at.as_secs_f64() * 1e3;
                return Err(format!(
                    "at {ms:.2} ms transmission {transmission} of segment {number} is acknowledged, not sent"
                ));
            }
            self.timer()?;
        }
        Ok(())
    }

    /// When the next timer expires. One of Linux's that sent the next segment may have been slightly late, a pacing timer
    /// above all, and ACKs may have come in that time: this one is late by as much.
    fn next_timer(&self) -> Time {
        let exact = self.endpoint.poll_timeout();
        let Some(&(sent, _)) = self.recording.transmissions.get(self.sent.len()) else { return exact };
        let late = self.time(sent);
        if exact < late && late <= exact + JITTER { late } else { exact }
    }

    /// Whether Linux's timer sent just before `at` what the endpoint's will send just after it. The clocks of two hosts are
    /// never equal to the microsecond; only the order counts.
    fn is_close(&self, at: Time) -> bool {
        let next = self.recording.transmissions.get(self.sent.len());
        next.is_some_and(|&(sent, _)| sent <= at) && self.endpoint.poll_timeout() <= self.time(at) + CLOSE
    }

    /// The next timer. If it retransmits what Linux's own timer retransmitted, the rest of the recording shifts along.
    fn timer(&mut self) -> Result<(), String> {
        let now = self.next_timer().max(self.now);
        let known = self.sent.len();
        row::enter(now);
        self.endpoint.on_timer(now);
        self.transmit(now)?;
        let Some(&(number, _)) = self.sent.get(known) else { return Ok(()) };
        let transmission = self.sent.iter().filter(|sent| sent.0 == number).count();
        let recorded = self.recording.transmissions.iter().filter(|sent| sent.1 == number).nth(transmission - 1);
        if let Some(&(at, _)) = recorded.filter(|_| transmission > 1) {
            let lag_us = now.as_us() as i64 - (EPOCH + at).as_us() as i64;
            if (lag_us - self.shift_us).unsigned_abs() > JITTER.as_us() {
                self.shift_us = lag_us;
            }
        }
        Ok(())
    }

    fn transmit(&mut self, now: Time) -> Result<(), String> {
        self.now = now;
        let mut segment = Segment::default();
        while self.endpoint.poll_transmit(now, &mut segment) {
            let offset = segment.seq.wrapping_sub(self.iss + 1);
            if !u32::from(segment.len).is_multiple_of(MSS) {
                return Err(format!("a segment of {} bytes leaves", segment.len));
            }
            for part in 0..u32::from(segment.len) / MSS {
                self.sent.push((offset / MSS + part + 1, segment.tsval));
            }
        }
        Ok(())
    }
}
