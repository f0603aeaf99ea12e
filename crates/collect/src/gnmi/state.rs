//! A target's state, from its notifications; and what it says of the ports.

use super::clock::TargetClock;
use super::proto::{Notification, Update};
use super::store::{Leaves, Level, Stamp, Store, Table, whole_path};
use super::value::{Scalar, scalars};
use crate::counters::is_virtual_kind;
use crate::text::clean;
use crate::{Counts, Neighbour, PORTS_MAX, PortCounters, QUEUES_MAX, QueueCounters, ReadError, SwitchCounters};
use units::{Bytes, Rate, Time};

/// Most entities that the deletes of one notification may look at: a hostile one must not occupy a CPU for minutes.
const LOOKS_MAX: usize = 1_000_000;

/// openconfig-interfaces and openconfig-if-ethernet.
static PORTS: Table = Table {
    entities_are: "ports",
    base: &[("interfaces", None), ("interface", Some("name"))],
    leaves: &[
        "state/counters/in-octets",
        "state/counters/out-octets",
        "state/counters/in-pkts",
        "state/counters/out-pkts",
        "state/counters/in-unicast-pkts",
        "state/counters/in-multicast-pkts",
        "state/counters/in-broadcast-pkts",
        "state/counters/out-unicast-pkts",
        "state/counters/out-multicast-pkts",
        "state/counters/out-broadcast-pkts",
        "state/counters/in-discards",
        "state/counters/out-discards",
        "state/counters/in-errors",
        "state/counters/out-errors",
        "state/counters/last-clear",
        "state/oper-status",
        "ethernet/state/port-speed",
        "state/type",
    ],
    numbers: 15,
    most: PORTS_MAX,
};
const IN_OCTETS: usize = 0;
const OUT_OCTETS: usize = 1;
const LAST_CLEAR: usize = 14;
const OPER_STATUS: usize = 15;
const PORT_SPEED: usize = 16;
const TYPE: usize = 17;
/// Packets in all, and by kind.
const IN_PACKETS: [usize; 4] = [2, 4, 5, 6];
const OUT_PACKETS: [usize; 4] = [3, 7, 8, 9];
/// In, out.
const DISCARDS: [usize; 2] = [10, 11];
const ERRORS: [usize; 2] = [12, 13];

/// openconfig-qos: the queues of a port's egress.
static QUEUES: Table = Table {
    entities_are: "queues",
    base: &[
        ("qos", None),
        ("interfaces", None),
        ("interface", Some("interface-id")),
        ("output", None),
        ("queues", None),
        ("queue", Some("name")),
    ],
    leaves: &["state/transmit-pkts", "state/dropped-pkts", "state/ecn-marked-pkts", "state/avg-queue-len"],
    numbers: 4,
    most: 8 * PORTS_MAX,
};

/// openconfig-lldp.
static NEIGHBOURS: Table = Table {
    entities_are: "neighbours",
    base: &[
        ("lldp", None),
        ("interfaces", None),
        ("interface", Some("name")),
        ("neighbors", None),
        ("neighbor", Some("id")),
    ],
    leaves: &["state/system-name", "state/port-id", "state/chassis-id", "state/port-description"],
    numbers: 0,
    most: 4 * PORTS_MAX,
};

/// Everything that a target has reported and not deleted.
pub(super) struct State {
    ports: Store,
    queues: Store,
    neighbours: Store,
    clock: TargetClock,
    /// The clock's generation at the last answer.
    answered: u32,
    /// Whether a byte counter has come since then.
    fresh: bool,
    ignored: u64,
}

impl State {
    pub(super) fn new() -> State {
        let [ports, queues, neighbours] = [&PORTS, &QUEUES, &NEIGHBOURS].map(Store::new);
        State { ports, queues, neighbours, clock: TargetClock::default(), answered: 0, fresh: false, ignored: 0 }
    }

    /// Whether a byte counter has come since [`State::answer`].
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Values that could not be read.
    pub(super) fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Takes a notification that came at `now`: its deletes, then its updates.
    pub(super) fn notify(&mut self, notification: &Notification, now: Time) -> Result<(), ReadError> {
        let Notification { prefix, update, delete, atomic, timestamp } = notification;
        let path_of = |path| whole_path(prefix.as_ref(), path);
        // A target without a clock is timed by this machine's.
        let ns = if *timestamp > 0 { *timestamp } else { now.as_ns() as i64 };
        let replaced = atomic.then(|| path_of(None)).into_iter();
        let mut looks = 0;
        for path in delete.iter().map(|path| path_of(Some(path))).chain(replaced).flatten() {
            looks += self.stores().map(|store| store.delete(&path)).iter().sum::<usize>();
            if looks > LOOKS_MAX {
                return Err(ReadError::Beyond { what: "entities that a notification deletes", most: LOOKS_MAX });
            }
        }
        let updates: Vec<(Vec<Level>, &Update)> =
            update.iter().filter_map(|update| Some((path_of(update.path.as_ref())?, update))).collect();
        self.ignored += (update.len() - updates.len()) as u64;
        // Other leaves may have the time of a change that was long ago.
        let of_counters = |path: &[Level]| path.iter().any(|level| level.name() == "counters");
        let generation = if updates.iter().any(|(path, _)| of_counters(path)) {
            self.clock.heard(ns, now)
        } else {
            self.clock.generation()
        };
        for (path, update) in updates {
            self.update(&path, update, Stamp { generation, ns })?;
        }
        Ok(())
    }

    fn update(&mut self, path: &[Level], update: &Update, stamp: Stamp) -> Result<(), ReadError> {
        let mut beyond = Ok(());
        let mut take = |below: &str, scalar: Option<Scalar>| {
            if let Err(error) = self.set(path, below, scalar.as_ref(), stamp) {
                beyond = Err(error);
            }
        };
        let value = update.val.as_ref();
        let is_read = value.is_some_and(|value| scalars(value, &mut |below, scalar| take(below, Some(scalar))));
        if !is_read {
            // no value replaces the one before: what is not understood is not known
            take("", None);
        }
        beyond
    }

    fn set(&mut self, path: &[Level], below: &str, scalar: Option<&Scalar>, stamp: Stamp) -> Result<(), ReadError> {
        let is_number = scalar.is_some_and(|scalar| scalar.number().is_some());
        if let Some((leaf, newer)) = self.ports.set(path, below, scalar, stamp)? {
            self.fresh |= newer && is_number && [IN_OCTETS, OUT_OCTETS].contains(&leaf);
            self.ignored += u64::from(leaf < PORTS.numbers && !is_number);
            return Ok(());
        }
        for store in [&mut self.queues, &mut self.neighbours] {
            if let Some((leaf, _)) = store.set(path, below, scalar, stamp)? {
                self.ignored += u64::from(leaf < store.table.numbers && !is_number);
                return Ok(());
            }
        }
        Ok(())
    }

    fn stores(&mut self) -> [&mut Store; 3] {
        [&mut self.ports, &mut self.queues, &mut self.neighbours]
    }

    /// What is known of the switch `switch` now.
    pub(super) fn answer(&mut self, switch: &str) -> SwitchCounters {
        // The clock was set: times of this answer are not comparable with those of the one before.
        let timed = self.clock.generation() == self.answered;
        self.answered = self.clock.generation();
        self.fresh = false;
        let port = |(number, (keys, leaves)): (usize, (&Vec<String>, &Leaves))| {
            let mut port = port(leaves);
            port.number = number as u32 + 1;
            port.name = clean(keys[0].as_bytes());
            for (counts, octets) in [(&mut port.received, IN_OCTETS), (&mut port.sent, OUT_OCTETS)] {
                let stamp = leaves.get(&octets).map(|leaf| leaf.stamp).filter(|_| timed);
                counts.at = stamp.and_then(|stamp| self.clock.time(stamp));
            }
            port.queues =
                of(&self.queues, &keys[0]).take(QUEUES_MAX).map(|(name, leaves)| queue(name, leaves)).collect();
            port.neighbour = neighbour(of(&self.neighbours, &keys[0]).map(|(_, leaves)| leaves));
            port
        };
        SwitchCounters { switch: switch.to_string(), ports: self.ports.entities.iter().enumerate().map(port).collect() }
    }
}

/// The entities of a port, each with its own key.
fn of<'a>(store: &'a Store, port: &str) -> impl Iterator<Item = (&'a String, &'a Leaves)> {
    let from = store.entities.range(vec![port.to_string()]..);
    let port = port.to_string();
    from.take_while(move |(keys, _)| keys[0] == port).map(|(keys, leaves)| (&keys[1], leaves))
}

fn number(leaves: &Leaves, leaf: usize) -> Option<u64> {
    leaves.get(&leaf)?.value.as_ref()?.number()
}

fn text(leaves: &Leaves, leaf: usize) -> Option<&str> {
    leaves.get(&leaf)?.value.as_ref()?.text().filter(|text| !text.is_empty())
}

fn port(leaves: &Leaves) -> PortCounters {
    let counts = |octets, packets, direction: usize| Counts {
        bytes: number(leaves, octets),
        packets: self::packets(leaves, packets),
        dropped: number(leaves, DISCARDS[direction]),
        errors: number(leaves, ERRORS[direction]),
        at: None,
    };
    PortCounters {
        is_virtual: text(leaves, TYPE).is_some_and(|kind| is_virtual_kind(identity(kind))),
        rate: text(leaves, PORT_SPEED).and_then(speed),
        up: text(leaves, OPER_STATUS).and_then(status),
        received: counts(IN_OCTETS, IN_PACKETS, 0),
        sent: counts(OUT_OCTETS, OUT_PACKETS, 1),
        width: 64,
        discontinuity: number(leaves, LAST_CLEAR),
        ..PortCounters::default()
    }
}

/// In all; else the sum of the kinds, which must contain unicast.
fn packets(leaves: &Leaves, [all, unicast, others @ ..]: [usize; 4]) -> Option<u64> {
    let sum =
        |unicast: u64| others.iter().fold(unicast, |sum, other| sum.wrapping_add(number(leaves, *other).unwrap_or(0)));
    number(leaves, all).or_else(|| number(leaves, unicast).map(sum))
}

fn identity(text: &str) -> &str {
    super::value::without_module(text)
}

fn status(text: &str) -> Option<bool> {
    match identity(text) {
        "UP" => Some(true),
        "DOWN" | "TESTING" | "DORMANT" | "NOT_PRESENT" | "LOWER_LAYER_DOWN" => Some(false),
        _ => None,
    }
}

/// `SPEED_100GB`, `SPEED_2500MB`.
fn speed(text: &str) -> Option<Rate> {
    let speed = identity(text).strip_prefix("SPEED_")?;
    let unit = speed.find(|c: char| !c.is_ascii_digit())?;
    let number: u32 = speed[..unit].parse().ok().filter(|number| *number > 0)?;
    match &speed[unit..] {
        "MB" => Some(Rate::from_mbps(number.into())),
        // 9.2 Ebit/s would overflow; no port has a Pbit/s
        "GB" if number <= 1_000_000 => Some(Rate::from_gbps(number.into())),
        _ => None,
    }
}

fn queue(name: &str, leaves: &Leaves) -> QueueCounters {
    let [packets, dropped, marked, length] = [0, 1, 2, 3].map(|leaf| number(leaves, leaf));
    QueueCounters { name: clean(name.as_bytes()), packets, dropped, marked, length: length.map(Bytes::new) }
}

/// The only one; several make a segment, not a neighbour.
fn neighbour<'a>(all: impl Iterator<Item = &'a Leaves>) -> Option<Neighbour> {
    let one = |leaves: &Leaves| {
        let system = text(leaves, 0).or_else(|| text(leaves, 2))?;
        let port = text(leaves, 1).or_else(|| text(leaves, 3)).unwrap_or_default();
        Some(Neighbour { system: system.to_string(), port: port.to_string() })
    };
    let mut found = all.filter_map(one);
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}
