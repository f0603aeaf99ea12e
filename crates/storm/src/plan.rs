//! What goes wrong in a storm, and when; drawn from a seed.

use testkit::Random;
use units::Time;

/// A storm's length.
pub const LASTS: Time = Time::from_secs(180);
/// A step of the clock.
pub const TICK: Time = Time::from_ms(100);
/// Seeds of storms without an enforcer ([`Plan::of_agents`]) that have found defects: of the hold of a rollout's share when hosts come and go, all
/// but the last four; of a rollback when the store goes back in time more than once; of the check itself; and of the order of epochs when the
/// store is emptied.
const FOUND: [u64; 21] = [
    496, 562, 1879, 2271, 2406, 3271, 5454, 5694, 6549, 6599, 7532, 8671, 8778, 8808, 9434, 9444, 9669, 3701, 9359,
    6918, 766,
];
/// One storm in so many is about what must be remembered.
const FORGETFUL: u64 = 18;
/// The same of those with an enforcer.
const ENFORCER_FORGETS: f64 = 0.2;

/// Storms that have found defects.
pub fn found() -> Vec<Plan> {
    FOUND.map(Plan::of_agents).into()
}

/// A storm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// From which it was drawn; messages draw their fate from it too.
    pub seed: u64,
    /// With agents.
    pub hosts: usize,
    /// Without, behind an enforcer; 0: there is none.
    pub behind: usize,
    /// With a lease if there are several.
    pub oracles: usize,
    /// Treated hosts complete their flows so much later, in percent: a rollout that is to be ended.
    pub hurts: u64,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Since when.
    pub from: Time,
    /// Until when.
    pub until: Time,
    /// What.
    pub kind: Kind,
}

/// What becomes of a disk while its process is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// Nothing.
    Kept,
    /// It is as it was some time ago.
    Old,
    /// It is empty.
    Lost,
    /// The end of a file is missing.
    Torn,
    /// A bit of a file has changed.
    Flipped,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Messages are lost, of a hundred so many.
    Loss(u64),
    /// Messages are late by up to this, and overtake each other.
    Delay(Time),
    /// Messages to hosts arrive twice, of a hundred so many.
    Twice(u64),
    /// Messages have a bit changed, of a hundred so many.
    Damage(u64),
    /// Somebody sends hosts recorded messages.
    Replay,
    /// Somebody sends hosts messages that another key has signed.
    Forge,
    /// A host and the Oracles do not hear each other.
    HostCut(usize),
    /// An Oracle and the hosts do not hear each other.
    OracleCut(usize),
    /// An Oracle does not reach the store.
    StoreCut(usize),
    /// The store is as it was some time ago.
    StoreOld,
    /// The store is empty.
    StoreLost,
    /// An agent is killed, and started again at the end.
    AgentDown(usize, Disk),
    /// The same, and the guardian with it.
    BothDown(usize, Disk),
    /// A machine with an agent is restarted.
    Reboot(usize),
    /// An agent's disk is full.
    AgentFull(usize),
    /// An Oracle is killed, and started again at the end.
    OracleDown(usize, Disk),
    /// An Oracle's disk is full.
    OracleFull(usize),
    /// An Oracle's wall clock is wrong by so many hours.
    WallClock(usize, i64),
    /// A host reports nonsense.
    Lies(usize),
    /// A host loses segments: more than its guard allows.
    Losses(usize),
    /// A link is busy: the rule's condition does not hold.
    Busy,
    /// The collector says nothing.
    Blind,
    /// The enforcer is killed, and started again at the end.
    EnforcerDown(Disk),
    /// Its machine is restarted.
    EnforcerReboot,
    /// Another enforcer prepares to take its place, and does so at the end.
    EnforcerReplaced,
    /// Its disk is full.
    EnforcerFull,
    /// Its disk takes nothing and says nothing.
    EnforcerHung,
    /// It and the Oracles do not hear each other.
    EnforcerCut,
    /// The path of a host behind the enforcer loses segments: more than its guard allows.
    PathLosses(usize),
}

impl Plan {
    /// The storm of a seed.
    pub fn of(seed: u64) -> Plan {
        let mut plan = Plan::of_agents(seed);
        let mut random = Random(seed ^ 0x5745_4e46_4f52_4345);
        plan.behind = random.below(3) as usize;
        if plan.behind > 0 {
            let count = 1 + random.below(6);
            plan.faults.extend((0..count).map(|_| enforcer_fault(&mut random, plan.behind)));
            if random.chance(ENFORCER_FORGETS) {
                plan.faults.extend(enforcer_forgetting(&mut random, plan.behind));
            }
        }
        plan
    }

    /// The storm of a seed, without an enforcer.
    pub fn of_agents(seed: u64) -> Plan {
        let mut random = Random(seed);
        let hosts = 2 + random.below(4) as usize;
        let oracles = 1 + random.below(3) as usize;
        let hurts = *random.any(&[0, 0, 100, 200]);
        let count = 3 + random.below(10);
        let mut faults: Vec<Fault> = (0..count).map(|_| fault(&mut random, hosts, oracles)).collect();
        if seed % FORGETFUL == FORGETFUL / 2 {
            faults.extend(forgetting(&mut random, hosts, oracles));
        }
        Plan { seed, hosts, behind: 0, oracles, hurts, faults }
    }

    /// The same with fewer hosts, and without what goes wrong at others.
    #[must_use]
    pub fn with_hosts(&self, hosts: usize) -> Plan {
        let is_there = |fault: &&Fault| fault.kind.host().is_none_or(|host| host < hosts);
        Plan { hosts, faults: self.faults.iter().filter(is_there).cloned().collect(), ..self.clone() }
    }

    /// The same with fewer hosts behind the enforcer, or without it.
    #[must_use]
    pub fn with_behind(&self, behind: usize) -> Plan {
        let is_there = |fault: &&Fault| match fault.kind {
            Kind::PathLosses(host) => host < behind,
            kind => behind > 0 || !kind.is_of_enforcer(),
        };
        Plan { behind, faults: self.faults.iter().filter(is_there).cloned().collect(), ..self.clone() }
    }

    /// What goes wrong at `now`.
    pub(crate) fn at(&self, now: Time) -> impl Iterator<Item = Kind> {
        self.faults.iter().filter(move |fault| fault.from <= now && now < fault.until).map(|fault| fault.kind)
    }
}

impl Kind {
    fn is_of_enforcer(self) -> bool {
        matches!(
            self,
            Kind::EnforcerDown(_)
                | Kind::EnforcerReboot
                | Kind::EnforcerReplaced
                | Kind::EnforcerFull
                | Kind::EnforcerHung
                | Kind::EnforcerCut
                | Kind::PathLosses(_)
        )
    }

    fn host(self) -> Option<usize> {
        match self {
            Kind::HostCut(host)
            | Kind::AgentDown(host, _)
            | Kind::BothDown(host, _)
            | Kind::Reboot(host)
            | Kind::AgentFull(host)
            | Kind::Lies(host)
            | Kind::Losses(host) => Some(host),
            _ => None,
        }
    }
}

/// As [`forgetting`], of the enforcer.
fn enforcer_forgetting(random: &mut Random, behind: usize) -> Vec<Fault> {
    let from = Time::from_secs(8 + random.below(100));
    let losses = (0..behind).map(|host| Fault { from, until: from + Time::from_secs(8), kind: Kind::PathLosses(host) });
    let restarts = [Kind::EnforcerDown(Disk::Kept), Kind::EnforcerReboot, Kind::EnforcerReplaced];
    let again = from + Time::from_secs(8 + random.below(3));
    let restart = Fault { from: again, until: again + Time::from_secs(1), kind: *random.any(&restarts) };
    losses.chain([restart]).collect()
}

fn enforcer_fault(random: &mut Random, behind: usize) -> Fault {
    let (from, lasts) = span(random);
    let disk = any_disk(random);
    let kind = match random.below(9) {
        0 | 1 => Kind::EnforcerDown(disk),
        2 => Kind::EnforcerReboot,
        3 => Kind::EnforcerReplaced,
        4 => Kind::EnforcerFull,
        5 => Kind::EnforcerHung,
        6 => Kind::EnforcerCut,
        _ => Kind::PathLosses(random.below(behind as u64) as usize),
    };
    Fault { from, until: from + lasts, kind }
}

/// A time in the storm, and how long something lasts.
fn span(random: &mut Random) -> (Time, Time) {
    let ms = TICK.as_ns() / 1_000_000;
    let from = Time::from_ms(random.below(LASTS.as_ns() / 1_000_000 / ms) * ms);
    (from, Time::from_ms((1 + random.below(300)) * ms))
}

fn any_disk(random: &mut Random) -> Disk {
    *random.any(&[Disk::Kept, Disk::Kept, Disk::Kept, Disk::Old, Disk::Lost, Disk::Torn, Disk::Flipped])
}

/// Something happens that must be remembered, and soon after everybody who should remember it is started again. By chance alone both
/// come together in one storm of thousands.
fn forgetting(random: &mut Random, hosts: usize, oracles: usize) -> Vec<Fault> {
    let s = |s: u64| Time::from_secs(s);
    let all = |count: usize, kind: fn(usize) -> Kind, from: Time, lasts: Time| {
        (0..count).map(|who| Fault { from, until: from + lasts, kind: kind(who) }).collect::<Vec<_>>()
    };
    if random.chance(0.5) {
        // guards revert, and what they have reverted is held for longer than it takes to start again
        let restarts: [fn(usize) -> Kind; 3] =
            [|host| Kind::AgentDown(host, Disk::Kept), |host| Kind::BothDown(host, Disk::Kept), Kind::Reboot];
        let begins = s(8 + random.below(100));
        let again = begins + s(3 + random.below(3));
        [all(hosts, Kind::Losses, begins, s(2)), all(hosts, *random.any(&restarts), again, s(1))].concat()
    } else {
        // just after a rule was switched on for the first time, measurements are missing: only who knows since when it is on leaves it so
        let (again, lasts) = (Time::from_ms(3500 + random.below(3000)), s(4 + random.below(3)));
        let down = |oracle| Kind::OracleDown(oracle, Disk::Kept);
        [all(1, |_| Kind::Blind, again, lasts), all(oracles, down, again, s(1))].concat()
    }
}

fn fault(random: &mut Random, hosts: usize, oracles: usize) -> Fault {
    let (from, lasts) = span(random);
    let host = random.below(hosts as u64) as usize;
    let oracle = random.below(oracles as u64) as usize;
    let disk = any_disk(random);
    let kind = match random.below(24) {
        0 => Kind::Loss(5 + random.below(90)),
        1 => Kind::Delay(Time::from_ms(200 + random.below(8000))),
        2 => Kind::Twice(5 + random.below(90)),
        3 => Kind::Damage(5 + random.below(90)),
        4 => Kind::Replay,
        5 => Kind::Forge,
        6 => Kind::HostCut(host),
        7 => Kind::OracleCut(oracle),
        8 => Kind::StoreCut(oracle),
        9 => Kind::StoreOld,
        10 => Kind::StoreLost,
        11 | 12 => Kind::AgentDown(host, disk),
        13 => Kind::BothDown(host, disk),
        14 => Kind::Reboot(host),
        15 => Kind::AgentFull(host),
        16 | 17 => Kind::OracleDown(oracle, disk),
        18 => Kind::OracleFull(oracle),
        19 => Kind::WallClock(oracle, random.below(100) as i64 - 50),
        20 => Kind::Lies(host),
        21 => Kind::Losses(host),
        22 => Kind::Busy,
        _ => Kind::Blind,
    };
    Fault { from, until: from + lasts, kind }
}
