//! ICTCP (Wu et al., CoNEXT 2010): a receiver controls the windows of its incoming connections by what each could receive and does.
//!
//! Time passes in slots of the mean round trip. In a slot's first half the receiver measures what comes in; what is left of its link
//! (nine tenths of it, alpha) is the quota by which windows may grow in the second half. A connection's window changes at most once
//! in two round trips, by the difference of its expected throughput, window / RTT, and the measured one, as a part of the expected:
//!
//! - up to gamma1 = 0.1, or no more than a segment of the window: the window grows, if the quota has room. It doubles at first, and
//!   grows by a segment after the first time that it could not.
//! - above gamma2 = 0.5 in three round trips in a row: it shrinks by a segment.
//! - otherwise it stays.
//!
//! Where less than a fifth of the link is left, windows above the mean shrink by a segment. No window is below two segments.
//! The round trip is the sender's estimate, where a receiver would take it from timestamps. Round trips without data are not judged.

use crate::core::Core;
use crate::flows::{Flows, receiver, sender};
use crate::requests::Request;
use crate::tuning::mss;
use std::collections::BTreeMap;
use std::sync::Arc;
use tcp::Config;
use units::Time;

/// Part of the link that windows may fill.
const ALPHA: f64 = 0.9;
/// Weight of the earlier measurement.
const BETA: f64 = 0.75;
const GAMMA1: f64 = 0.1;
const GAMMA2: f64 = 0.5;
/// Round trips in a row before a window shrinks.
const IN_A_ROW: u32 = 3;
/// Less than this part of the link left: windows become fair.
const SCARCE: f64 = 0.2;
/// Segments of the least window, and of the first.
const WINDOW_MIN: u64 = 2;
/// Bounds of a slot; the lower one also of a round trip.
const SLOT: (Time, Time) = (Time::from_us(20), Time::from_ms(10));

/// The receivers, by host, and stacks by their entry's and their window in segments.
#[derive(Default)]
pub struct Ictcp {
    hosts: BTreeMap<u32, Receiver>,
    stacks: BTreeMap<(u32, u64), Arc<Config>>,
}

/// A host that receives.
#[derive(Default)]
struct Receiver {
    members: Vec<Member>,
    /// A turn is on its way.
    due: bool,
    /// The next turn ends a slot's second half.
    second: bool,
    /// When the half began.
    since: Time,
    /// What windows may grow by, bytes a second.
    quota: f64,
    /// Less than [`SCARCE`] was left.
    scarce: bool,
}

/// A connection.
struct Member {
    flow: u32,
    entry: u32,
    /// Segments.
    window: u64,
    /// Payload at the last turn, and when the round trip that is measured began.
    received: u64,
    began: (Time, u64),
    /// Filtered, bytes a second.
    measured: f64,
    changed: Time,
    below: u32,
    doubles: bool,
}

impl Ictcp {
    /// The stack of a connection that `host` accepts.
    pub fn accept(&mut self, core: &mut Core, base: &Arc<Config>, (flow, host, entry): (u32, u32, u32)) -> Arc<Config> {
        let now = core.now();
        let known = self.hosts.entry(host).or_default();
        known.members.push(Member {
            flow,
            entry,
            window: WINDOW_MIN,
            received: 0,
            began: (now, 0),
            measured: 0.0,
            changed: now,
            below: 0,
            doubles: true,
        });
        if !std::mem::replace(&mut known.due, true) {
            (known.since, known.second) = (now, false);
            take_turn_at(core, host, now + SLOT.0);
        }
        self.stack(base, entry, WINDOW_MIN)
    }

    fn stack(&mut self, base: &Arc<Config>, entry: u32, window: u64) -> Arc<Config> {
        let make = || {
            let mut config = (**base).clone();
            config.window_clamp = u32::try_from(window * u64::from(mss(base))).unwrap_or(u32::MAX);
            // Linux announces at once a window that has doubled, of which a second segment would not always come
            if window < 3 {
                config.delayed_ack.segments = 1;
            }
            Arc::new(config)
        };
        self.stacks.entry((entry, window)).or_insert_with(make).clone()
    }
}

impl Flows {
    /// The receiver at `host` takes a turn.
    pub fn control(&mut self, core: &mut Core, host: u32, stacks: &[Arc<Config>]) {
        let Some(mut ictcp) = self.ictcp.take() else { return };
        if let Some(mut known) = ictcp.hosts.remove(&host) {
            known.members.retain(|member| !core.sockets[receiver(member.flow) as usize].tcp.is_closed());
            if let Some(first) = known.members.first() {
                let last_link = core.route(sender(first.flow)).last().expect("a route is at least one link");
                let link = self.topology.link(last_link).rate.as_bps() as f64 / 8.0;
                let changed = known.take_turn(core, link, stacks);
                for place in changed {
                    let Member { flow, entry, window, .. } = known.members[place];
                    let stack = ictcp.stack(&stacks[entry as usize], entry, window);
                    let now = core.now();
                    core.sockets[receiver(flow) as usize].tcp.retune(now, &stack);
                    core.pump(receiver(flow));
                }
                let slot = known.slot(core);
                take_turn_at(core, host, core.now() + slot / 2);
            } else {
                known.due = false;
            }
            ictcp.hosts.insert(host, known);
        }
        self.ictcp = Some(ictcp);
    }
}

/// A connection's round trip.
fn rtt(core: &Core, flow: u32) -> Time {
    let srtt_us = core.sockets[sender(flow) as usize].tcp.sock().srtt_us >> 3;
    Time::from_us(u64::from(srtt_us)).clamp(SLOT.0, SLOT.1)
}

impl Receiver {
    /// The mean round trip of those that have received.
    fn slot(&self, core: &Core) -> Time {
        let all: Vec<u64> = self.members.iter().map(|member| rtt(core, member.flow).as_ps()).collect();
        Time::from_ps(all.iter().sum::<u64>() / all.len().max(1) as u64)
    }

    /// Returns the places of those whose window is another now.
    fn take_turn(&mut self, core: &Core, link: f64, stacks: &[Arc<Config>]) -> Vec<usize> {
        let now = core.now();
        let mut news = 0;
        for member in &mut self.members {
            let received = core.sockets[receiver(member.flow) as usize].tcp.received();
            news += received - member.received;
            member.received = received;
            member.measure(now, rtt(core, member.flow), segment(stacks, member.entry));
        }
        self.second = !self.second;
        if self.second {
            let used = news as f64 / (now - self.since).as_secs_f64();
            self.quota = (ALPHA * link - used).max(0.0);
            self.scarce = self.quota < SCARCE * link;
            self.since = now;
            return Vec::new();
        }
        self.since = now;
        let mean = self.members.iter().map(|member| member.window).sum::<u64>() / self.members.len() as u64;
        let (mut changed, mut quota) = (Vec::new(), self.quota);
        for (place, member) in self.members.iter_mut().enumerate() {
            let round = rtt(core, member.flow);
            if now < member.changed + round * 2 {
                continue;
            }
            let before = member.window;
            member.adjust(round, segment(stacks, member.entry), &mut quota);
            if self.scarce && member.window > mean && member.window >= before {
                member.window = (before - 1).max(WINDOW_MIN);
            }
            member.changed = now;
            if member.window != before {
                changed.push(place);
            }
        }
        changed
    }
}

impl Member {
    /// The expected throughput less the measured one, as a part of it.
    fn difference(&self, round: Time, segment: f64) -> f64 {
        let expected = (self.window as f64 * segment / round.as_secs_f64()).max(self.measured);
        (expected - self.measured) / expected
    }

    /// Ends a measurement after a round trip.
    fn measure(&mut self, now: Time, round: Time, segment: f64) {
        let (began, before) = self.began;
        if now < began + round {
            return;
        }
        if self.received > before {
            let sample = (self.received - before) as f64 / (now - began).as_secs_f64();
            self.measured = sample.max(BETA * self.measured + (1.0 - BETA) * sample);
            self.below = if self.difference(round, segment) > GAMMA2 { self.below + 1 } else { 0 };
        }
        self.began = (now, self.received);
    }

    fn adjust(&mut self, round: Time, segment: f64, quota: &mut f64) {
        let difference = self.difference(round, segment);
        if difference <= GAMMA1 || difference <= 1.0 / self.window as f64 {
            let more = if self.doubles { self.window } else { 1 };
            let needs = more as f64 * segment / round.as_secs_f64();
            if needs <= *quota {
                *quota -= needs;
                self.window += more;
            } else {
                self.doubles = false;
            }
        } else if self.below >= IN_A_ROW {
            self.window = (self.window - 1).max(WINDOW_MIN);
            (self.below, self.doubles) = (0, false);
        } else {
            self.doubles = false;
        }
    }
}

/// Payload of a full segment.
fn segment(stacks: &[Arc<Config>], entry: u32) -> f64 {
    f64::from(mss(&stacks[entry as usize]))
}

fn take_turn_at(core: &mut Core, host: u32, at: Time) {
    core.requests.ask_at(at, Request::Share { host });
    core.post_requests();
}
