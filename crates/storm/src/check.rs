//! What must hold in every storm. Judged from outside: from what was sent, what arrived, what is in the kernel, and which rules the enforcer
//! has.

use crate::enforcer::Done;
use crate::host::{Did, InKernel, REVERTED, since};
use crate::oracles::Sent;
use crate::world::{FRACTION, HOLD, PERIOD};
use bus::Report;
use policy::{Addressees, Cue, CueError, PublicKeys, place_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use units::Time;

/// The rule that has a hold time.
const SWITCHED: &str = "fast";
/// How long an Oracle goes on to decide after it last renewed its lease: two thirds of a period (`oracle/lease.rs`).
const LEADS_FOR: Time = Time::from_ps(PERIOD.as_ps() / 3 * 2);
/// Messages that are kept with what they say.
const OPENED_MAX: usize = 256;
/// What an enforcer says behind the name of a host whose guard has tripped.
pub const REVERTING: &str = ": a guard has reverted";

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// No agent takes a CUE of an older epoch after one of a newer, restarts included, unless its disk forgot; and none twice in one life.
    /// Each decision has a higher epoch than all before, whichever Oracle decides, unless one of those that knew forgot, or the store forgot
    /// who leads: hosts would not follow it.
    Epoch,
    /// No agent takes what the Oracle's key has not signed.
    Signature,
    /// A host is at its defaults once the lifetime of the last CUE that it could take is over.
    Lifetime,
    /// A rule is switched on for a host at most once a hold time, whichever Oracle decides, unless all that knew forgot.
    Hold,
    /// What a guard has reverted stays so for its hold, whatever Oracles send and agents restart, unless the host's disk forgot.
    Guard,
    /// A rollout that was rolled back stays so, whichever Oracle decides, unless all that knew forgot.
    Rollback,
    /// Nobody is treated whom the rollout does not treat: at first no more hosts than its share, then none that was left out, and no agent
    /// that a CUE does not name.
    Share,
    /// What is kept has a limit: Oracles know no host that there is not, and the enforcer has no more flows than there are.
    Bounds,
    /// The audit log is whole unless its disk was damaged.
    Audit,
    /// Connections through the enforcer go on, whatever becomes of it. It acknowledges nothing that the client has not, and sends nothing
    /// that the server has not.
    Connection,
}

/// What did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What.
    pub invariant: Invariant,
    /// When.
    pub at: Time,
    /// How.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}: {}", self.invariant, self.at, self.what)
    }
}

/// What is known of a host from outside.
#[derive(Default)]
struct OfHost {
    /// The highest epoch of which a CUE was taken.
    highest: u64,
    /// Those taken in this life.
    taken: BTreeSet<(u64, u32)>,
    /// When the last CUE that it could take ends.
    until: Time,
    /// By rule: until when it stays reverted.
    reverted: BTreeMap<String, Time>,
}

/// Looks whether everything holds.
pub struct Checks {
    keys: PublicKeys,
    /// What messages say: most reach several hosts, and a signature takes longer than all else.
    opened: BTreeMap<Vec<u8>, Result<Cue, CueError>>,
    hosts: Vec<(String, OfHost)>,
    /// By host: whether [`SWITCHED`] was on by the last decision, and when it was switched on.
    on: BTreeMap<usize, (bool, Option<Time>)>,
    /// Who knows that the rollout was rolled back: Oracles by their disks, and the store (`usize::MAX`). `None`: it was not.
    rolled_back: Option<BTreeSet<usize>>,
    /// Since when the store knows.
    shared_at: Time,
    /// Hosts that are treated, by what was sent first.
    treated: Option<BTreeSet<usize>>,
    /// A disk or the store may have forgotten: what is sent next need not be the first.
    forgot: bool,
    /// The highest epoch that was sent since the store or an Oracle's disk forgot something.
    sent: u64,
    /// Until then two Oracles may decide: one that leads by a store that forgot its lease since, and one that leads by the store.
    both_until: Time,
    violations: Vec<Violation>,
    now: Time,
}

/// The store, among those who know of a rollback.
pub const STORE: usize = usize::MAX;

impl Checks {
    pub fn new(keys: PublicKeys, hosts: impl Iterator<Item = String>) -> Checks {
        Checks {
            keys,
            opened: BTreeMap::new(),
            hosts: hosts.map(|name| (name, OfHost::default())).collect(),
            on: BTreeMap::new(),
            rolled_back: None,
            shared_at: Time::NEVER,
            treated: None,
            forgot: false,
            sent: 0,
            both_until: Time::ZERO,
            violations: Vec::new(),
            now: Time::ZERO,
        }
    }

    pub fn tick(&mut self, now: Time) {
        self.now = now;
    }

    /// The first thing that did not hold.
    pub fn violation(&mut self) -> Option<Violation> {
        (!self.violations.is_empty()).then(|| self.violations.remove(0))
    }

    pub fn violated(&mut self, invariant: Invariant, what: String) {
        self.violations.push(Violation { invariant, at: self.now, what });
    }

    /// A new agent's life begins; its disk may have forgotten what it knew.
    pub fn begin_life(&mut self, host: usize, has_forgotten: bool) {
        let of = &mut self.hosts[host].1;
        of.taken.clear();
        if has_forgotten {
            (of.highest, of.reverted) = (0, BTreeMap::new());
        }
    }

    /// What it has reverted was not kept, or is not for long.
    pub fn forget_reverts(&mut self, host: usize) {
        self.hosts[host].1.reverted.clear();
    }

    /// A host's step. `before` and `after` are what was in its kernel.
    pub fn step(&mut self, host: usize, did: &Did, after: &[InKernel]) {
        for (bytes, taken) in &did.took {
            self.message(host, bytes, taken.is_ok());
        }
        let Some(judged) = &did.judged else { return };
        let until = self.now + Time::from_ns(REVERTED.as_nanos() as u64);
        for rule in judged {
            if after.iter().any(|there| there.rule == rule.rule) && did.ended.is_none() {
                self.violated(Invariant::Guard, format!("h{host} loses segments and keeps `{}`", rule.rule));
            }
            self.hosts[host].1.reverted.entry(rule.rule.clone()).or_insert(until);
        }
    }

    /// The step of an enforcer, whose hosts begin at number `first`. What it takes of what it has read is seen by what it reports, and by
    /// what is in force: a CUE could be taken if it is not of an older epoch than it has reported.
    pub fn enforcer(&mut self, first: usize, done: &Done) {
        let now = self.now;
        for bytes in &done.read {
            let Ok(cue) = self.open(bytes) else { continue };
            for (name, of) in &mut self.hosts[first..] {
                if names(&cue, name) && cue.epoch >= of.highest {
                    of.until = of.until.max(now + cue.lifetime);
                }
            }
        }
        for report in done.reports.iter().filter_map(|bytes| Report::from_bytes(bytes).ok()) {
            self.reported(first, &report);
        }
        let until = now + Time::from_ns(REVERTED.as_nanos() as u64);
        for line in &done.said {
            let reverting = line.split_once(REVERTING);
            let of = reverting.and_then(|(name, _)| self.hosts.iter_mut().find(|(of, _)| of == name));
            if let Some((_, of)) = of {
                of.reverted.entry(SWITCHED.into()).or_insert(until);
            }
        }
    }

    /// A report of an enforcer.
    fn reported(&mut self, first: usize, report: &Report) {
        let Some(host) = self.hosts.iter().position(|(name, _)| *name == report.host.name).filter(|at| *at >= first)
        else {
            return self.violated(Invariant::Bounds, format!("the enforcer reports of {}", report.host.name));
        };
        let (now, of) = (self.now, &mut self.hosts[host].1);
        let (highest, until) = (of.highest, of.until);
        of.highest = highest.max(report.epoch.unwrap_or(0));
        // one that begins names the epoch before, which the Oracle says to be over, until it hears of this one again
        if report.epoch.unwrap_or(0) + 1 < highest {
            self.violated(
                Invariant::Epoch,
                format!("h{host}'s enforcer knows epoch {:?} after {highest}", report.epoch),
            );
        }
        if let Some(rule) = report.in_force.iter().find(|rule| now + rule.left > until + Time::from_ms(1)) {
            let what =
                format!("h{host}'s enforcer says {} of `{}` are left; its CUEs end at {until}", rule.left, rule.rule);
            self.violated(Invariant::Lifetime, what);
        }
    }

    fn open(&mut self, bytes: &[u8]) -> Result<Cue, CueError> {
        if let Some(opened) = self.opened.get(bytes) {
            return opened.clone();
        }
        if self.opened.len() >= OPENED_MAX {
            self.opened.clear();
        }
        let opened = self.keys.open(bytes);
        self.opened.insert(bytes.to_vec(), opened.clone());
        opened
    }

    fn message(&mut self, host: usize, bytes: &[u8], is_taken: bool) {
        let cue = match self.open(bytes) {
            Ok(cue) => cue,
            Err(CueError::Forged) if is_taken && !bytes.starts_with(b"opentcp ") => {
                return self.violated(Invariant::Signature, format!("h{host} took what the Oracle has not signed"));
            }
            Err(_) => return,
        };
        let is_named = names(&cue, &self.hosts[host].0);
        let now = self.now;
        let of = &mut self.hosts[host].1;
        let id = (cue.epoch, cue.id);
        if is_named && cue.epoch >= of.highest && !of.taken.contains(&id) {
            of.until = of.until.max(now + cue.lifetime);
        }
        if !is_taken {
            return;
        }
        let (highest, is_first) = (of.highest, of.taken.insert(id));
        of.highest = highest.max(cue.epoch);
        let epoch = cue.epoch;
        if epoch < highest {
            self.violated(Invariant::Epoch, format!("h{host} took epoch {epoch} after {highest}"));
        }
        if !is_first {
            self.violated(Invariant::Epoch, format!("h{host} took number {} of epoch {epoch} twice", cue.id));
        }
        if !is_named {
            self.violated(Invariant::Share, format!("h{host} took a CUE for {:?}", cue.scope.hosts));
        }
    }

    /// What is in a host's kernel now.
    pub fn kernel(&mut self, host: usize, boot: Time, rules: &[InKernel]) {
        let now = self.now;
        let uptime = since(now, boot);
        let in_force: Vec<&InKernel> = rules.iter().filter(|rule| rule.until > uptime).collect();
        let of = &mut self.hosts[host].1;
        of.reverted.retain(|_, until| *until > now);
        let overruled = in_force.iter().find(|rule| of.reverted.contains_key(&rule.rule)).map(|rule| rule.rule.clone());
        let is_over = !in_force.is_empty() && now >= of.until + Time::from_ms(1);
        let until = of.until;
        if let Some(rule) = overruled {
            self.violated(Invariant::Guard, format!("h{host} has `{rule}`, which a guard has reverted"));
        }
        if is_over {
            self.violated(
                Invariant::Lifetime,
                format!("h{host} has {} rules; its CUEs ended at {until}", in_force.len()),
            );
        }
    }

    /// A decision that was sent.
    pub fn sent(&mut self, sent: &Sent, has_store: bool) {
        let hosts = self.hosts.len();
        if sent.known > hosts {
            self.violated(
                Invariant::Bounds,
                format!("Oracle {} knows of {} hosts of {hosts}", sent.oracle, sent.known),
            );
        }
        if sent.epoch <= self.sent && self.now > self.both_until {
            let what = format!("Oracle {} sends epoch {} after {}", sent.oracle, sent.epoch, self.sent);
            self.violated(Invariant::Epoch, what);
        }
        self.sent = self.sent.max(sent.epoch);
        self.follow_share(sent);
        self.follow_rollback(sent, has_store);
        self.follow_holds(sent);
    }

    /// What is sent first treats no more hosts than the share, and whom it leaves out is never treated.
    fn follow_share(&mut self, sent: &Sent) {
        let is_named = |host: &usize| sent.cues.iter().any(|cue| names(cue, &self.hosts[*host].0));
        let named: BTreeSet<usize> = (0..self.hosts.len()).filter(is_named).collect();
        if named.is_empty() {
            return;
        }
        let Sent { epoch, treated, hosts, .. } = sent;
        let found = match &self.treated {
            None if !self.forgot && *treated > (*hosts as f64 * FRACTION).ceil() as usize => {
                Some(format!("epoch {epoch} treats {treated} of {hosts} hosts"))
            }
            Some(before) if !named.is_subset(before) => Some(format!("epoch {epoch} treats {named:?}, not {before:?}")),
            _ => None,
        };
        // a CUE that names hosts says nothing of the others
        let is_of_all = sent.cues.iter().any(|cue| matches!(cue.scope.hosts, Addressees::UpTo(_)));
        if self.treated.is_none() && is_of_all {
            self.treated = Some(named);
        }
        if let Some(found) = found {
            self.violated(Invariant::Share, found);
        }
    }

    fn follow_rollback(&mut self, sent: &Sent, has_store: bool) {
        if sent.rolled_back && has_store {
            self.shared_at = self.shared_at.min(self.now);
        }
        let knows = |of: &BTreeSet<usize>| of.contains(&sent.oracle) || (has_store && of.contains(&STORE));
        match &mut self.rolled_back {
            None if sent.rolled_back => {
                self.rolled_back = Some([sent.oracle].into_iter().chain(has_store.then_some(STORE)).collect());
            }
            Some(known) if sent.rolled_back => {
                known.insert(sent.oracle);
                if has_store {
                    known.insert(STORE);
                }
            }
            Some(known) if knows(known) && !sent.cues.is_empty() => {
                let what = format!(
                    "Oracle {} treats hosts in epoch {}, though {known:?} know better",
                    sent.oracle, sent.epoch
                );
                self.violated(Invariant::Rollback, what);
            }
            _ => {}
        }
        if sent.rolled_back && !sent.cues.is_empty() {
            self.violated(Invariant::Rollback, format!("epoch {} treats hosts though it is over", sent.epoch));
        }
    }

    fn follow_holds(&mut self, sent: &Sent) {
        for host in 0..self.hosts.len() {
            let is_on = sent.cues.iter().any(|cue| cue.rule == SWITCHED && names(cue, &self.hosts[host].0));
            let now = self.now;
            let known = self.on.entry(host).or_default();
            let (was_on, at) = *known;
            *known = (is_on, if is_on && !was_on { Some(now) } else { at });
            if let Some(at) = at.filter(|at| is_on && !was_on && now.saturating_sub(*at) < HOLD) {
                let found = format!("`{SWITCHED}` was switched on for h{host} at {at}, and again now");
                self.violated(Invariant::Hold, found);
            }
        }
    }

    /// A disk, or the store, may have forgotten: holds, and rollbacks that it alone knew of.
    pub fn forget(&mut self, who: usize) {
        self.on.clear();
        self.sent = 0;
        (self.treated, self.forgot) = (None, true);
        if let Some(known) = &mut self.rolled_back {
            known.remove(&who);
        }
        if who == STORE {
            self.shared_at = Time::NEVER;
            self.both_until = self.now + LEADS_FOR;
        }
    }

    /// An Oracle has reached the store since `steady`: if it had time to learn from it what was rolled back, it knows.
    pub fn learn(&mut self, oracle: usize, steady: Time) {
        if self.now.saturating_sub(steady.max(self.shared_at)) <= PERIOD * 3 {
            return;
        }
        if let Some(known) = self.rolled_back.as_mut().filter(|known| known.contains(&STORE)) {
            known.insert(oracle);
        }
    }
}

/// Whether a CUE is for a host of this name, by its place in the policy's order.
fn names(cue: &Cue, host: &str) -> bool {
    match &cue.scope.hosts {
        Addressees::All => true,
        Addressees::UpTo(last) => place_of(&cue.policy, host) <= *last,
        Addressees::Named(hosts) => hosts.iter().any(|named| named == host),
    }
}
