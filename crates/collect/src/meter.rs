//! From counters to links: what happened between two answers of a switch, and whether it can be known.
//!
//! ```text
//! SwitchCounters, Moment ──▶ Meter::take      what is between this answer and the one before
//!                            Meter::links ──▶ policy::Link: shares, queue, age
//! ```
//!
//! A counter that is lower than before has wrapped, or was reset. It has wrapped if what it would have counted fits through the port in
//! the time between the answers, and nothing else speaks of a reset: the switch's own mark of one, another counter of the port that
//! cannot have wrapped, or a port of the switch that was reset in the same interval. Of an interval with a reset nothing is known.
//! A counter that cannot be true (more than the port carries; packets without bytes) makes its direction unknown, and is counted.
//!
//! A missing answer changes no value: the link's age grows, and whoever reads the link says from which age on it means nothing.

mod between;
#[cfg(test)]
mod tests;

use crate::{Neighbour, PortCounters, SwitchCounters};
use between::{Between, Reading, Values};
use policy::Link;
use std::collections::{BTreeMap, BTreeSet};
use units::{Rate, Time};

/// Most ports of a switch.
pub const PORTS_MAX: usize = 4096;
/// Most queues of a port.
pub const QUEUES_MAX: usize = 64;
/// Longest name of a switch, bytes.
pub const SWITCH_NAME_MAX: usize = 100;
/// Longest name of a port, bytes; with its switch's, its number and the direction it is a link's name.
const PORT_NAME_MAX: usize = 120;
/// Longest name of a link's end, bytes.
const END_MAX: usize = 255;

/// When counters were read, on the clock of whoever asked: at some time from `asked` to `answered`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The question left.
    pub asked: Time,
    /// The answer was there. What came without a question was asked when it came.
    pub answered: Time,
}

impl Moment {
    /// Of what came without a question.
    pub fn at(now: Time) -> Moment {
        Moment { asked: now, answered: now }
    }

    fn middle(self) -> Time {
        self.asked + (self.answered.saturating_sub(self.asked)) / 2
    }
}

/// What the operator knows of a port and the switch does not say, or says wrongly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortSettings {
    /// The host or switch at its other end.
    pub end: Option<String>,
    /// What it can carry.
    pub rate: Option<Rate>,
    /// Whether its queue marks (ECN).
    pub marks: Option<bool>,
    /// It is no link.
    pub ignore: bool,
}

/// What a meter has met since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct MeterCounts {
    /// Answers.
    pub readings: u64,
    /// Directions that the switch had not read anew: their timestamp is that of the answer before.
    pub repeated: u64,
    /// Counters that wrapped.
    pub wraps: u64,
    /// Ports that were reset.
    pub resets: u64,
    /// Directions whose counter may have wrapped more than once: too narrow for the port's rate and the interval.
    pub narrow: u64,
    /// Directions that counted packets but no bytes.
    pub stuck: u64,
    /// Directions that counted more than the port carries, or more marks than packets.
    pub impossible: u64,
    /// Directions whose clock was set, or disagrees with this machine's.
    pub clock_jumps: u64,
    /// Ports that were ignored: more than [`PORTS_MAX`].
    pub ignored: u64,
}

impl MeterCounts {
    /// What was wrong with counters, each with a word.
    pub fn events(self) -> [(&'static str, u64); 8] {
        [
            ("repeated", self.repeated),
            ("wrap", self.wraps),
            ("reset", self.resets),
            ("narrow", self.narrow),
            ("stuck", self.stuck),
            ("impossible", self.impossible),
            ("clock_jump", self.clock_jumps),
            ("ignored", self.ignored),
        ]
    }

    /// Of two meters.
    #[must_use]
    pub fn plus(self, other: MeterCounts) -> MeterCounts {
        MeterCounts {
            readings: self.readings + other.readings,
            repeated: self.repeated + other.repeated,
            wraps: self.wraps + other.wraps,
            resets: self.resets + other.resets,
            narrow: self.narrow + other.narrow,
            stuck: self.stuck + other.stuck,
            impossible: self.impossible + other.impossible,
            clock_jumps: self.clock_jumps + other.clock_jumps,
            ignored: self.ignored + other.ignored,
        }
    }
}

/// One switch's counters, and what they say.
#[derive(Debug)]
pub struct Meter {
    switch: String,
    settings: BTreeMap<String, PortSettings>,
    /// How long a port is kept that is in no answer.
    keep: Time,
    /// By their names: numbers may change when the switch restarts.
    ports: BTreeMap<String, Port>,
    counts: MeterCounts,
}

/// A port, as it was last read.
#[derive(Debug)]
struct Port {
    counters: PortCounters,
    /// When each direction was read last, and what was in between.
    sent: Half,
    received: Half,
    /// It has marked packets.
    marks: bool,
}

/// One direction of a port.
#[derive(Clone, Copy, Debug)]
struct Half {
    last: Reading,
    values: Values,
}

impl Meter {
    /// Nothing yet, of `switch`; `settings` by the names of its ports. A port that is in no answer for `keep` is forgotten.
    pub fn new(switch: &str, settings: BTreeMap<String, PortSettings>, keep: Time) -> Meter {
        let switch = plain(switch, SWITCH_NAME_MAX);
        Meter { switch, settings, keep, ports: BTreeMap::new(), counts: MeterCounts::default() }
    }

    /// One more answer. `moment`s come in the order of time.
    pub fn take(&mut self, moment: Moment, answer: &SwitchCounters) {
        self.counts.readings += 1;
        let mut seen = BTreeSet::new();
        let mut read = Vec::new();
        for port in &answer.ports {
            let mut now = self.as_kept(port);
            if self.is_no_link(&now) {
                // its kind may have come after its first counters
                self.ports.remove(&now.name);
                continue;
            }
            if seen.contains(&now.name) {
                now.name = format!("{} #{}", now.name, now.number);
            }
            if seen.len() >= PORTS_MAX || !seen.insert(now.name.clone()) {
                self.counts.ignored += 1;
                continue;
            }
            match self.ports.get(&now.name) {
                Some(before) => read.push((Between::of(before, &now, moment, &mut self.counts), now)),
                None if self.ports.len() < PORTS_MAX => {
                    self.ports.insert(now.name.clone(), Port::new(now, moment));
                }
                None => self.counts.ignored += 1,
            }
        }
        // a reboot resets every port, also those whose counters look as if they had wrapped
        let any_reset = read.iter().any(|(between, _)| between.is_reset());
        for (between, now) in read {
            let port = self.ports.get_mut(&now.name).expect("it was compared with itself");
            port.marks |= between.marked();
            let values = between.values(&now, any_reset, &mut self.counts);
            for ((half, counts), values) in
                [(&mut port.sent, now.sent), (&mut port.received, now.received)].into_iter().zip(values)
            {
                if let Some(values) = values {
                    *half = Half { last: Reading { counts, moment }, values };
                }
            }
            port.counters = now;
        }
    }

    /// Both directions of every port, the names unique and every value in the range that [`Link::check`] allows.
    pub fn links(&mut self, now: Time) -> Vec<Link> {
        let keep = self.keep;
        self.ports.retain(|_, port| now.saturating_sub(port.sent.last.moment.asked) <= keep);
        let mut links = Vec::with_capacity(2 * self.ports.len());
        for (name, port) in &self.ports {
            let counters = &port.counters;
            let settings = self.settings.get(name);
            let configured = settings.and_then(|settings| settings.end.as_deref());
            let neighbour = counters.neighbour.as_ref().map(|neighbour| neighbour.system.as_str());
            let unknown = || format!("end of {} {name}", self.switch);
            let end = configured.or(neighbour).map_or_else(unknown, |end| plain(end, END_MAX));
            let marks = settings.and_then(|settings| settings.marks).or(port.marks.then_some(true));
            let link = |direction: &str, (from, to): (&str, &str), half: &Half| Link {
                name: format!("{} {name} {direction}", self.switch),
                from: from.to_string(),
                to: to.to_string(),
                rate: counters.rate,
                utilization: half.values.utilization,
                drop_rate: half.values.drop_rate,
                mark_rate: half.values.mark_rate,
                queue: half.values.queue,
                up: counters.up,
                age: Some(now.saturating_sub(half.last.moment.asked)),
                ..Link::default()
            };
            links.push(Link { marks, ..link("out", (&self.switch, &end), &port.sent) });
            links.push(link("in", (&end, &self.switch), &port.received));
        }
        links
    }

    /// The neighbours that the switch named, by the names of its ports.
    pub fn neighbours(&self) -> impl Iterator<Item = (&str, &Neighbour)> {
        self.ports.values().filter_map(|port| Some((port.counters.name.as_str(), port.counters.neighbour.as_ref()?)))
    }

    /// Whether no port is known.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// What it has met.
    pub fn counts(&self) -> MeterCounts {
        self.counts
    }

    /// Whether a port is none of the network's: what the operator says of it counts more than what the switch says.
    fn is_no_link(&self, port: &PortCounters) -> bool {
        self.settings.get(&port.name).map_or(port.is_virtual, |settings| settings.ignore)
    }

    /// A port as it is kept: its texts short and plain, and with what the operator says of it.
    fn as_kept(&self, port: &PortCounters) -> PortCounters {
        let mut name = plain(&port.name, PORT_NAME_MAX);
        if name.is_empty() {
            name = port.number.to_string();
        }
        let rate = self.settings.get(&name).and_then(|settings| settings.rate).or(port.rate);
        let neighbour = port.neighbour.as_ref().filter(|neighbour| !neighbour.system.is_empty());
        let neighbour = neighbour.map(|neighbour| Neighbour {
            system: plain(&neighbour.system, END_MAX),
            port: plain(&neighbour.port, END_MAX),
        });
        let rate = rate.filter(|rate| (1..=policy::COUNT_MAX).contains(&rate.as_bps()));
        let queues = port.queues.iter().take(QUEUES_MAX).cloned().collect();
        PortCounters { name, rate, neighbour, queues, ..port.clone() }
    }
}

impl Port {
    fn new(counters: PortCounters, moment: Moment) -> Port {
        let half =
            |counts, queue| Half { last: Reading { counts, moment }, values: Values { queue, ..Values::default() } };
        let (sent, received) = (half(counters.sent, between::queue(&counters)), half(counters.received, None));
        Port { counters, sent, received, marks: false }
    }
}

/// A text without control characters, of at most `most` bytes.
pub(crate) fn plain(text: &str, most: usize) -> String {
    let mut short = String::new();
    for c in text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }) {
        if short.len() + c.len_utf8() > most {
            break;
        }
        short.push(c);
    }
    short
}
