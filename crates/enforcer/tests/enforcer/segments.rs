//! A server that cuts its stream anew in each transmission, as Linux does when it retransmits small segments: gaps never have
//! the expected boundaries. Packets are lost on every path, many in a row before the enforcer.

use crate::rig::{CLIENT_ISS, Rig, SERVER_ISS, STACK, Stack, rig, segment};
use enforcer::Limits;
use std::collections::VecDeque;
use tcp::{SackBlock, Segment};
use testkit::Random;
use units::Time;

const BYTES: u32 = 100_000;
const MSS: u32 = 1448;
/// The first byte of each end.
const S: u32 = SERVER_ISS + 1;
const C: u32 = CLIENT_ISS + 1;
/// Delay between the enforcer and the client, one way.
const WAY: Time = Time::from_ms(20);
const TICK: Time = Time::from_ms(1);
/// The server's RTO; it does not grow.
const RTO: Time = Time::from_ms(300);
/// One packet in so many is lost from the enforcer to the client, and one acknowledgment from it to the server.
const LOST: u64 = 5;
/// The server's packets begin to be lost once in so many ticks, and cease to be after so many, on average.
const CUT: (u64, u64) = (40, 10);
const LONGEST_PAUSE: Time = Time::from_secs(60);

/// Both ends, and packets between enforcer and client.
struct Ends {
    rig: Rig,
    random: Random,
    /// The server: acknowledged, sent, and allowed by the window.
    una: u32,
    nxt: u32,
    edge: u32,
    heard_at: Time,
    is_cut: bool,
    /// The client: which bytes it has, and the end of the contiguous ones.
    has: Vec<bool>,
    end: usize,
    to_client: VecDeque<(Time, Segment)>,
    from_client: VecDeque<(Time, Segment)>,
}

impl Ends {
    fn new(algorithm: &str, seed: u64) -> Ends {
        let mut rig = rig(algorithm, Limits::default(), Stack { sack: !seed.is_multiple_of(4), ..STACK });
        let third = rig.open(0);
        Ends {
            heard_at: rig.now,
            rig,
            random: Random(seed),
            una: S,
            nxt: S,
            edge: third.ack + third.window,
            is_cut: false,
            has: vec![false; BYTES as usize],
            end: 0,
            to_client: VecDeque::new(),
            from_client: VecDeque::new(),
        }
    }

    fn leave(&mut self, segments: Vec<Segment>) {
        for segment in segments {
            if self.random.below(LOST) > 0 {
                self.to_client.push_back((self.rig.now + WAY, segment));
            }
        }
    }

    /// The server sends from `seq` on, at most up to `to`; returns the number of bytes.
    fn send(&mut self, seq: u32, to: u32) -> u32 {
        let len = (1 + self.random.below(u64::from(MSS)) as u32).min(to - seq);
        if !self.is_cut {
            let left = self.rig.server(0, segment(seq, C, len as u16));
            self.leave(left);
        }
        len
    }

    fn server(&mut self) {
        let (cut, back) = CUT;
        self.is_cut = if self.is_cut { self.random.below(back) > 0 } else { self.random.below(cut) == 0 };
        let last = (S + BYTES).min(self.edge);
        if self.una < self.nxt && self.rig.now >= self.heard_at + RTO {
            self.heard_at = self.rig.now;
            let mut seq = self.una;
            for _ in 0..=self.random.below(4) {
                if seq < self.nxt {
                    seq += self.send(seq, self.nxt);
                }
            }
        }
        for _ in 0..self.random.below(4) {
            if self.nxt < last {
                self.nxt += self.send(self.nxt, last);
            }
        }
    }

    /// The client receives a segment and acknowledges it.
    fn client(&mut self, came: &Segment) {
        let at = |seq: u32| (seq - S) as usize;
        self.has[at(came.seq)..at(came.end_seq())].fill(true);
        self.end += self.has[self.end..].iter().take_while(|has| **has).count();
        let mut ack = segment(C, S + self.end as u32, 0);
        // the block of what has come (RFC 2018 4)
        if self.rig.stack.sack && at(came.seq) > self.end {
            let start = (self.end..at(came.seq)).rev().find(|at| !self.has[*at]).map_or(self.end, |lacks| lacks + 1);
            let stop = (start..self.has.len()).find(|at| !self.has[*at]).unwrap_or(self.has.len());
            ack.sack[0] = SackBlock { start: S + start as u32, end: S + stop as u32 };
            ack.sack_count = 1;
        }
        self.from_client.push_back((self.rig.now + WAY, ack));
    }

    fn tick(&mut self) {
        let left = self.rig.wait(TICK);
        self.leave(left);
        let now = self.rig.now;
        while let Some(came) = due(&mut self.to_client, now) {
            self.client(&came);
        }
        while let Some(ack) = due(&mut self.from_client, now) {
            let seen = self.rig.client(0, ack);
            let left = self.rig.leaves();
            self.leave(left);
            if let Some(seen) = seen.filter(|_| self.random.below(LOST) > 0) {
                self.edge = self.edge.max(seen.ack + seen.window);
                if seen.ack > self.una {
                    (self.una, self.heard_at) = (seen.ack, now);
                }
            }
        }
        self.server();
    }
}

/// Processes the arrivals until now.
fn due(way: &mut VecDeque<(Time, Segment)>, now: Time) -> Option<Segment> {
    way.front().is_some_and(|(at, _)| *at <= now).then(|| way.pop_front().expect("just seen").1)
}

#[test]
fn a_stream_that_is_cut_anew_each_time_arrives() {
    for seed in 0..1000 {
        let algorithm = ["newreno", "cubic", "bbr"][seed as usize % 3];
        let mut ends = Ends::new(algorithm, seed);
        let mut last = (ends.rig.now, 0);
        while ends.una < S + BYTES {
            ends.tick();
            if ends.end > last.1 {
                last = (ends.rig.now, ends.end);
            }
            let pause = ends.rig.now.saturating_sub(last.0);
            assert!(
                pause < LONGEST_PAUSE,
                "seed {seed}, {algorithm}: the client has {} and gets no more: {:?}",
                ends.end,
                ends.rig.enforcer.counters()
            );
        }
        assert_eq!(
            ends.rig.enforcer.counters().optimistic_dropped,
            0,
            "seed {seed}: only arrived data is acknowledged"
        );
    }
}
