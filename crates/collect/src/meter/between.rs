//! Two readings of one port, and what was in between.

use super::{MeterCounts, Moment, Port};
use crate::{Counts, PortCounters, QueueCounters};
use units::{Bytes, Rate, Time};

/// A counter may show so much more than the port's rate allows: clocks differ, and counters lag.
const TOLERANCE: f64 = 1.05;
/// Least bytes of a packet: an Ethernet header.
const PACKET_MIN: u64 = 14;
/// Most bytes of a packet: what a host's card may take as one.
const PACKET_MAX: u64 = 65_536;
/// Least bytes of a packet on an Ethernet cable.
const FRAME_MIN: u64 = 64;
/// Packets by which the counters of bytes and of packets may differ, since they are not read at the same instant.
const RACE: u64 = 1000;
/// So many packets without bytes are no accident of reading.
const STUCK_MIN: u64 = 10;
/// Two clocks may differ by this, and by a quarter of the interval, before one of them is wrong.
const CLOCKS: Time = Time::from_secs(1);

/// Answers in a shorter time say nothing.
const SHORTEST: Time = Time::from_ms(1);

/// The counters of one direction, as they were read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub counts: Counts,
    pub moment: Moment,
}

/// What is known of one direction of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Values {
    pub utilization: Option<f64>,
    pub drop_rate: Option<f64>,
    pub mark_rate: Option<f64>,
    pub queue: Option<Bytes>,
}

/// What became of one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It is not reported.
    Silent,
    Rose(u64),
    Wrapped(u64),
    /// It is lower, and has not wrapped.
    Fell,
}

impl Step {
    /// What it counted.
    fn count(self) -> Option<u64> {
        match self {
            Step::Rose(count) | Step::Wrapped(count) => Some(count),
            Step::Silent | Step::Fell => None,
        }
    }
}

/// How long it was between two readings.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// As far as is known.
    interval: Time,
    /// At most.
    longest: Time,
}

/// One direction.
#[derive(Clone, Copy, Debug)]
struct Direction {
    span: Span,
    bytes: Step,
    packets: Step,
    dropped: Step,
    /// What the port can have carried, bytes.
    most: Option<u64>,
    /// Its counter of bytes may have wrapped unseen.
    narrow: bool,
}

/// Two readings, compared.
#[derive(Clone, Debug)]
pub(super) struct Between {
    /// `None`: it was not read anew.
    sent: Option<Direction>,
    received: Option<Direction>,
    /// The port's rate is what it was.
    same_rate: bool,
    /// Packets that were marked, and of how many.
    marked: Option<(u64, u64)>,
    reset: bool,
}

impl Between {
    pub(super) fn of(port: &Port, now: &PortCounters, moment: Moment, counts: &mut MeterCounts) -> Between {
        let before = &port.counters;
        let mut direction = |last: &Reading, counts_now: Counts| {
            let reading = Reading { counts: counts_now, moment };
            Direction::of(last, &reading, (now.width, now.rate), counts)
        };
        let sent = direction(&port.sent.last, now.sent);
        let received = direction(&port.received.last, now.received);
        let said = before.discontinuity.zip(now.discontinuity).is_some_and(|(then, now)| then != now);
        let steps = [&sent, &received].into_iter().flatten().flat_map(|one| [one.bytes, one.packets]);
        let reset = said || steps.into_iter().any(|step| step == Step::Fell);
        counts.resets += u64::from(reset);
        let queued = queue_counts(&before.queues, &now.queues);
        let sent = sent.map(|sent| match queued.dropped {
            Some(dropped) if sent.dropped == Step::Silent => Direction { dropped: Step::Rose(dropped), ..sent },
            _ => sent,
        });
        let packets = || queued.packets.or(sent?.packets.count());
        let marked = queued.marked.and_then(|marked| Some((marked, packets()?)));
        Between { sent, received, same_rate: before.rate == now.rate, marked, reset }
    }

    /// Whether its counters began anew in between.
    pub(super) fn is_reset(&self) -> bool {
        self.reset
    }

    /// Whether packets were marked.
    pub(super) fn marked(&self) -> bool {
        !self.reset && self.marked.is_some_and(|(marked, _)| marked > 0)
    }

    /// What was sent and received; `None` of a direction that was not read anew. `any_reset`: a port of this switch was reset.
    pub(super) fn values(&self, now: &PortCounters, any_reset: bool, counts: &mut MeterCounts) -> [Option<Values>; 2] {
        let wrapped = [self.sent, self.received].iter().flatten().any(|one| matches!(one.bytes, Step::Wrapped(_)));
        let is_unknown = self.reset || (any_reset && wrapped);
        let rate = now.rate.filter(|_| self.same_rate);
        let mut values = |direction: Option<Direction>| match direction {
            Some(_) if is_unknown => Some(Values::default()),
            direction => direction.map(|direction| direction.values(rate, counts)),
        };
        let (sent, received) = (values(self.sent), values(self.received));
        let mark_rate = self.marked.filter(|_| !is_unknown).and_then(|(marked, packets)| {
            let is_possible = marked <= packets;
            counts.impossible += u64::from(!is_possible);
            is_possible.then(|| marked as f64 / packets.max(1) as f64)
        });
        [sent.map(|sent| Values { mark_rate, queue: queue(now), ..sent }), received]
    }
}

impl Span {
    /// `None`: nothing was read anew.
    fn of(then: &Reading, now: &Reading, counts: &mut MeterCounts) -> Option<Span> {
        let interval = now.moment.middle().saturating_sub(then.moment.middle());
        let longest = now.moment.answered.saturating_sub(then.moment.asked);
        let clocks = then.counts.at.zip(now.counts.at);
        if interval < SHORTEST || clocks.is_some_and(|(then, now)| then == now) {
            counts.repeated += 1;
            return None;
        }
        let Some((at_then, at_now)) = clocks else { return Some(Span { interval, longest }) };
        // less than before is a clock that was set
        let theirs = at_now.saturating_sub(at_then);
        let slack = CLOCKS + interval / 4;
        if theirs >= SHORTEST && theirs <= longest + slack && theirs + slack >= interval {
            return Some(Span { interval: theirs, longest: theirs });
        }
        counts.clock_jumps += 1;
        Some(Span { interval, longest })
    }
}

impl Direction {
    /// `None`: nothing was read anew.
    fn of(
        then: &Reading,
        now: &Reading,
        (width, rate): (u32, Option<Rate>),
        counts: &mut MeterCounts,
    ) -> Option<Direction> {
        let span = Span::of(then, now, counts)?;
        let most = rate.map(|rate| carried(rate, span.longest));
        let (before, now) = (&then.counts, &now.counts);
        let width = if width == 32 && is_narrow(now) { 32 } else { 64 };
        let packets_max = most.map(|bytes| bytes / FRAME_MIN + 1);
        let packets = step((before.packets, now.packets), width, packets_max);
        // more than once around is as likely as not at all, unless the packets were too few for it
        let by_packets = packets.count().map(|packets| (packets.saturating_add(RACE)).saturating_mul(PACKET_MAX));
        let bound = most.into_iter().chain(by_packets).min();
        let narrow = width == 32 && bound.is_some_and(|bound| bound > u64::from(u32::MAX));
        Some(Direction {
            span,
            bytes: step((before.bytes, now.bytes), width, bound),
            packets,
            dropped: step_of_discards(before.dropped, now.dropped),
            most,
            narrow,
        })
    }

    fn values(&self, rate: Option<Rate>, counts: &mut MeterCounts) -> Values {
        let packets = self.packets.count();
        if let (Some(bytes), Some(packets)) = (self.bytes.count(), packets)
            && packets >= STUCK_MIN
            && bytes < packets.saturating_mul(PACKET_MIN)
            && !self.narrow
        {
            counts.stuck += 1;
            return Values::default();
        }
        if let (Some(bytes), Some(most)) = (self.bytes.count(), self.most)
            && bytes > most
        {
            counts.impossible += 1;
            return Values::default();
        }
        counts.wraps += u64::from(matches!(self.bytes, Step::Wrapped(_)));
        counts.narrow += u64::from(self.narrow);
        let utilization = self.bytes.count().zip(rate).filter(|_| !self.narrow).map(|(bytes, rate)| {
            let could = rate.as_bps() as f64 / 8.0 * self.span.interval.as_secs_f64();
            (bytes as f64 / could).clamp(0.0, 1.0)
        });
        let drop_rate = self.dropped.count().zip(packets).map(|(dropped, packets)| {
            let offered = dropped as f64 + packets as f64;
            if offered > 0.0 { dropped as f64 / offered } else { 0.0 }
        });
        Values { utilization, drop_rate, ..Values::default() }
    }
}

/// Bytes that a port carries in a time, and a little more.
fn carried(rate: Rate, time: Time) -> u64 {
    // a float as large as can be saturates
    (rate.as_bps() as f64 / 8.0 * time.as_secs_f64() * TOLERANCE) as u64
}

/// Whether all of its counters fit into 32 bits.
fn is_narrow(counts: &Counts) -> bool {
    counts.bytes.into_iter().chain(counts.packets).all(|count| u32::try_from(count).is_ok())
}

/// What became of a counter that can have counted `most`.
fn step((before, now): (Option<u64>, Option<u64>), width: u32, most: Option<u64>) -> Step {
    let Some((before, now)) = before.zip(now) else { return Step::Silent };
    if now >= before {
        return Step::Rose(now - before);
    }
    let around =
        if width == 32 { u64::from((now as u32).wrapping_sub(before as u32)) } else { now.wrapping_sub(before) };
    // without a rate, less than half of the way round
    let most = most.unwrap_or(if width == 32 { 1 << 31 } else { 1 << 62 });
    if around <= most && (width == 64 || u32::try_from(before).is_ok()) { Step::Wrapped(around) } else { Step::Fell }
}

/// Dropped packets are counted in 32 bits also where others are in 64, and no rate bounds them.
fn step_of_discards(before: Option<u64>, now: Option<u64>) -> Step {
    let Some((before, now)) = before.zip(now) else { return Step::Silent };
    let half = 1 << 31;
    if now >= before {
        Step::Rose(now - before)
    } else if u32::try_from(before).is_ok() && before >= half && now < half {
        Step::Wrapped(u64::from((now as u32).wrapping_sub(before as u32)))
    } else {
        Step::Fell
    }
}

/// What all queues of a port counted; `None` where one does not say. Nothing, if a counter fell.
#[derive(Clone, Copy, Debug, Default)]
struct QueueCounts {
    packets: Option<u64>,
    dropped: Option<u64>,
    marked: Option<u64>,
}

fn queue_counts(before: &[QueueCounters], now: &[QueueCounters]) -> QueueCounts {
    if now.is_empty() {
        return QueueCounts::default();
    }
    let mut fell = false;
    let mut sum = |read: fn(&QueueCounters) -> Option<u64>| {
        let mut all = now.iter().map(|queue| {
            let then = before.iter().find(|then| then.name == queue.name)?;
            let step = step_of_discards(read(then), read(queue));
            fell |= step == Step::Fell;
            step.count()
        });
        all.try_fold(0u64, |sum, count| Some(sum.saturating_add(count?)))
    };
    let counts = QueueCounts { packets: sum(|q| q.packets), dropped: sum(|q| q.dropped), marked: sum(|q| q.marked) };
    if fell { QueueCounts::default() } else { counts }
}

/// What waits in all queues of a port.
pub(super) fn queue(port: &PortCounters) -> Option<Bytes> {
    let lengths = port.queues.iter().filter_map(|queue| queue.length);
    lengths.map(Bytes::get).reduce(u64::saturating_add).map(|bytes| Bytes::new(bytes.min(policy::COUNT_MAX)))
}
