//! Replays a recorded script at a sender: the ACKs that must have arrived are worked out from the rows (what was
//! delivered by when, and in which order segments reached the receiver) and handed to the endpoint at the recorded
//! times. Which segments a receiver's stack and its network card merge into one ACK is arbitrary; what the sender does
//! with the ACKs is not.

use crate::peer::{MSS, Peer};
use crate::recorder::{self, Row, ms_of, time_of};
use std::sync::Arc;
use tcp::{Config, Endpoint, Segment, flags};
use units::Time;

/// One arrival of a data segment at the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// Its first transmission.
    First(u32),
    /// Its latest one.
    Latest(u32),
}

/// A recorded transmission that a timer caused. Linux's timers tick at 4 ms and start late by up to one tick each, so
/// what follows is shifted by as much as the endpoint's exact timer is earlier.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    /// The segment that was retransmitted.
    pub segment: u32,
    /// Which of its transmissions: 2 is the first retransmission.
    pub transmission: usize,
    /// When, in the recording.
    pub ms: f64,
}

/// What a script's title says, in terms of the replay.
#[derive(Clone, Debug)]
pub struct Script {
    pub number: u32,
    /// When the application writes how many segments.
    pub writes: Vec<(f64, u32)>,
    /// The receiver's arrivals, in order.
    pub arrivals: Vec<Arrival>,
    pub anchor: Option<Anchor>,
}

/// The longest that Linux's timers lag behind exact ones: a probe's slack is two ticks of 4 ms where it is 2 ms here, the
/// timeout after it is rounded up to a tick, and each of the two starts within the tick after its own.
const TIMER_LAG_MS: f64 = 18.0;

/// What a recorded ACK was.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// One ACK for all its arrivals.
    Merged,
    /// One ACK per arrival: duplicate ACKs that the sender's stack merged.
    OneByOne,
    /// The receiver's FIN.
    Fin,
    /// That of the sender's FIN.
    FinAcked,
}

/// An ACK, or several one by one, that the recording implies.
#[derive(Clone, Debug)]
struct Ack {
    ms: f64,
    kind: Kind,
    /// Arrivals that it reports beyond those of the ACKs before.
    arrivals: std::ops::Range<usize>,
    ece: bool,
    /// What leaves at it ends a packet of the application's writes after so many segments.
    cut: Option<u32>,
    /// Segments that the application may have written after it.
    written_segments_max: u32,
}

/// The rows of one ACK share a moment; the first of them shows the columns just after accounting.
struct Group<'a> {
    first: &'a Row,
    last: &'a Row,
    ece: bool,
}

fn groups(rows: &[Row]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let begin = rows.iter().position(|row| row.hook == "init").expect("every script has an init") + 1;
    let mut within: Option<&str> = None;
    for row in &rows[begin..] {
        let ece = row.hook == "in_ack_event" && row.arg("flags").is_some_and(|flags| flags & 4 != 0);
        let starts = match row.hook.as_str() {
            "pkts_acked" | "cong_control" => true,
            "in_ack_event" => within != Some("pkts_acked"),
            _ => false,
        };
        if starts {
            groups.push(Group { first: row, last: row, ece });
        } else if let Some(group) = groups.last_mut()
            && row.ms - group.first.ms < 0.2
        {
            group.last = row;
            group.ece |= ece;
        }
        within = Some(row.hook.as_str());
    }
    groups
}

/// Works the ACKs out of the rows.
fn acks(script: &Script, rows: &[Row], sack: bool) -> Vec<Ack> {
    let groups = groups(rows);
    let mut peer = Peer::new(sack, 0);
    let mut reported = 0;
    let mut fin = false;
    let mut acks = Vec::new();
    let mut sent = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let before = peer.in_order();
        let upto = if sack {
            group.first.delivered as usize - 1
        } else {
            reported + arrivals_without_sack(script, &groups, index, reported, before)
        };
        let upto = upto.min(script.arrivals.len());
        for arrival in &script.arrivals[reported..upto] {
            let (Arrival::First(number) | Arrival::Latest(number)) = *arrival;
            peer.arrive(number, 0);
        }
        let last = index + 1 == groups.len();
        let kind = if last {
            Kind::FinAcked
        } else if reported == upto && !fin {
            Kind::Fin
        } else if !sack && peer.in_order() == before {
            Kind::OneByOne
        } else {
            Kind::Merged
        };
        acks.push(Ack {
            ms: group.first.ms,
            kind,
            arrivals: reported..upto,
            ece: group.ece,
            cut: None,
            written_segments_max: 0,
        });
        fin |= kind == Kind::Fin;
        sent.push((before, peer.in_order() + last as u32 + group.first.out));
        reported = upto;
    }
    assert!(fin && reported == script.arrivals.len(), "script {}: the rows do not fit its arrivals", script.number);
    limit_writes(script, &groups, &sent, &mut acks);
    acks
}

/// Without SACK a duplicate ACK is counted after the row that shows it, and the row after it shows how many there were.
fn arrivals_without_sack(script: &Script, groups: &[Group<'_>], index: usize, reported: usize, before: u32) -> usize {
    let n = groups[index].first.arg("n").expect("pkts_acked has n") as u32;
    if n == 0 {
        let next = groups.get(index + 1).map_or(0, |group| group.first.sacked);
        let all = reported == script.arrivals.len();
        return if all { 0 } else { next.saturating_sub(groups[index].first.sacked).max(1) as usize };
    }
    let mut peer = Peer::new(false, 0);
    for (count, arrival) in script.arrivals.iter().enumerate() {
        let (Arrival::First(number) | Arrival::Latest(number)) = *arrival;
        peer.arrive(number, 0);
        if peer.in_order() >= before + n {
            return count + 1 - reported;
        }
    }
    script.arrivals.len() - reported
}

/// Where the recorded sender had room for two segments and sent none, its application had not written them yet (a send
/// buffer that was full, a thread that had not run): until its next transmission no more is written than was sent. Room for one
/// is not proof: Linux waits there for a second, to send a burst of two.
fn limit_writes(script: &Script, groups: &[Group<'_>], sent: &[(u32, u32)], acks: &mut [Ack]) {
    let total: u32 = script.writes.iter().map(|&(_, segments)| segments).sum();
    let mut short = vec![false; acks.len()];
    for index in 0..acks.len() - 1 {
        let next = groups[index + 1].first;
        let (acked, upto) = sent[index + 1];
        let before = sent[index].1;
        let written: u32 = script.writes.iter().filter(|write| write.0 < next.ms).map(|write| write.1).sum();
        let left_out = groups[index].last.sacked + groups[index].last.lost;
        let in_flight = (upto - acked + next.retrans).saturating_sub(left_out);
        let still = index > 0 && short[index - 1] && upto == before;
        // one by one, duplicates that Linux counted at once would let more go in between
        let merged = acks[index + 1].kind == Kind::OneByOne && acks[index + 1].arrivals.len() > 1;
        short[index] = upto < written && (in_flight + 2 <= next.cwnd || still) || merged;
        // a window filled by an odd number of segments: the last one went alone, because a packet of the application's
        // writes ended there
        let odd = upto > before + 2 && (upto - before) % 2 == 1;
        acks[index].cut = (odd && upto < written && in_flight == next.cwnd).then_some(upto);
    }
    let mut limit = total;
    for index in (0..acks.len()).rev() {
        if short[index] {
            limit = sent[index + 1].1;
        }
        acks[index].written_segments_max = limit;
        limit = acks[index].cut.unwrap_or(limit);
    }
}

struct Transmission {
    at: Time,
    number: u32,
    tsval: u32,
}

/// Everything that one replay moves.
pub struct Replay {
    endpoint: Endpoint,
    peer: Peer,
    iss: u32,
    sent: Vec<Transmission>,
    fin_sent: bool,
    written: u32,
    shift_ms: f64,
}

enum Action {
    Write(u32),
    Close,
    Ack(usize),
}

/// Runs `script` against an endpoint with `config`; returns its hooks and by how much the anchor shifted the script.
pub fn run(script: &Script, rows: &[Row], config: Config) -> Result<(Vec<Row>, f64), String> {
    let acks = acks(script, rows, config.sack);
    let config = Arc::new(config);
    let handshake_us = rows[0].arg("rtt").or(rows[0].arg("rtt_us")).expect("the SYN's RTT") as f64;
    let fin_rtt_ms =
        rows.iter().rev().find_map(|row| row.arg("rtt").or(row.arg("rtt_us"))).expect("an RTT") as f64 / 1e3;
    let close_ms = acks.last().expect("an ACK of the FIN").ms - fin_rtt_ms;

    let mut timeline: Vec<(f64, Action)> = acks.iter().enumerate().map(|(i, ack)| (ack.ms, Action::Ack(i))).collect();
    timeline.extend(script.writes.iter().map(|&(ms, segments)| (ms, Action::Write(segments))));
    timeline.push((close_ms, Action::Close));
    timeline.sort_by(|a, b| a.0.total_cmp(&b.0));

    recorder::take();
    let iss = 1_000_000;
    recorder::enter('S', time_of(-handshake_us / 1e3));
    let endpoint = Endpoint::connect(&config, iss, 1);
    let peer = Peer::new(config.sack, iss + 1);
    let mut replay = Replay { endpoint, peer, iss, sent: Vec::new(), fin_sent: false, written: 0, shift_ms: 0.0 };
    replay.handshake(time_of(-handshake_us / 1e3))?;

    let mut limit = acks[0].cut.unwrap_or(acks[0].written_segments_max);
    let mut offered = 0;
    let mut anchored = script.anchor.is_none();
    for (ms, action) in timeline {
        if let Some(anchor) = script.anchor
            && !anchored
            && ms > anchor.ms
        {
            replay.wait_for(anchor)?;
            anchored = true;
        }
        let now = time_of(ms + replay.shift_ms);
        replay.timers_until(now);
        recorder::enter('S', now);
        match action {
            Action::Write(segments) => offered += segments,
            Action::Close => replay.endpoint.close(now),
            Action::Ack(index) => {
                replay.acknowledge(now, &acks[index], script)?;
                if acks[index].cut.is_some() {
                    replay.transmit(now)?;
                }
                limit = acks[index].written_segments_max;
            }
        }
        replay.write(now, offered.min(limit));
        replay.transmit(now)?;
    }
    Ok((recorder::take(), replay.shift_ms))
}

impl Replay {
    fn handshake(&mut self, start: Time) -> Result<(), String> {
        let mut syn = Segment::default();
        recorder::enter('S', start);
        if !self.endpoint.poll_transmit(start, &mut syn) || syn.flags & flags::SYN == 0 {
            return Err("no SYN is sent".to_string());
        }
        let now = time_of(0.0);
        self.timers_until(now);
        let syn_ack = self.peer.syn_ack(now, &syn);
        recorder::enter('S', now);
        self.endpoint.on_segment(now, &syn_ack);
        self.transmit(now)
    }

    fn write(&mut self, now: Time, upto: u32) {
        if upto > self.written {
            let bytes = ((upto - self.written) * MSS) as u64;
            assert_eq!(self.endpoint.write(now, bytes), bytes, "the send buffer holds the script");
            self.written = upto;
        }
    }

    fn timers_until(&mut self, now: Time) {
        while self.endpoint.poll_timeout() <= now {
            self.timer().expect("a timer's segments are in order");
        }
    }

    fn timer(&mut self) -> Result<(), String> {
        let now = self.endpoint.poll_timeout();
        recorder::enter('S', now);
        self.endpoint.on_timer(now);
        self.transmit(now)
    }

    /// Lets timers run until the anchor's transmission, and shifts the rest of the script by its lag.
    fn wait_for(&mut self, anchor: Anchor) -> Result<(), String> {
        let transmission = |sent: &[Transmission]| {
            sent.iter().filter(|t| t.number == anchor.segment).nth(anchor.transmission - 1).map(|t| ms_of(t.at))
        };
        while transmission(&self.sent).is_none() {
            let next = self.endpoint.poll_timeout();
            if next == Time::NEVER || ms_of(next) > anchor.ms + TIMER_LAG_MS {
                return Err(format!("by {} ms segment {} is not retransmitted", anchor.ms, anchor.segment));
            }
            self.timer()?;
        }
        self.shift_ms = transmission(&self.sent).expect("just found") - anchor.ms;
        if self.shift_ms.abs() > TIMER_LAG_MS {
            return Err(format!("the timer at {} ms is off by {:.2} ms", anchor.ms, self.shift_ms));
        }
        Ok(())
    }

    fn transmit(&mut self, now: Time) -> Result<(), String> {
        let mut segment = Segment::default();
        while self.endpoint.poll_transmit(now, &mut segment) {
            self.fin_sent |= segment.flags & flags::FIN != 0;
            let offset = segment.seq.wrapping_sub(self.iss + 1);
            for part in 0..(segment.len as u32).div_ceil(MSS) {
                let number = offset / MSS + part + 1;
                self.sent.push(Transmission { at: now, number, tsval: segment.tsval });
            }
            if !(segment.len as u32).is_multiple_of(MSS) {
                return Err(format!("at {:.2} ms a segment of {} bytes leaves", ms_of(now), segment.len));
            }
        }
        Ok(())
    }

    fn acknowledge(&mut self, now: Time, ack: &Ack, script: &Script) -> Result<(), String> {
        for index in ack.arrivals.clone() {
            let arrival = script.arrivals[index];
            let (Arrival::First(number) | Arrival::Latest(number)) = arrival;
            let mut transmissions = self.sent.iter().filter(|t| t.number == number);
            let transmission = match arrival {
                Arrival::First(_) => transmissions.next(),
                Arrival::Latest(_) => transmissions.nth(1).map(|second| transmissions.next_back().unwrap_or(second)),
            };
            let Some(transmission) = transmission else {
                return Err(format!("the recording acknowledges {arrival:?} at {:.2} ms; it was not sent", ack.ms));
            };
            self.peer.arrive(number, transmission.tsval);
            if ack.kind == Kind::OneByOne {
                let segment = self.peer.ack(now, ack.ece);
                self.endpoint.on_segment(now, &segment);
                self.transmit(now)?;
            }
        }
        if ack.kind == Kind::OneByOne {
            return Ok(());
        }
        if ack.kind == Kind::FinAcked {
            if !self.fin_sent {
                return Err(format!("the recording acknowledges the FIN at {:.2} ms; it was not sent", ack.ms));
            }
            self.peer.arrive_fin();
        }
        let segment = if ack.kind == Kind::Fin { self.peer.fin(now, ack.ece) } else { self.peer.ack(now, ack.ece) };
        self.endpoint.on_segment(now, &segment);
        Ok(())
    }
}
