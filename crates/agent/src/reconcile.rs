//! Holds routes and sysctls as they are wanted while others change them.
//!
//! The kernel tells of each change of routes, nexthop objects, links, addresses and rules. What was set here and was set back is set again, what
//! was added because of another route follows that one, and a route that has come is set like the others. This costs a bounded share of a
//! core, however fast others change routes; only what a route that was added here depends on is looked at within a second in any case, since
//! packets that take it may be lost.

use crate::journal::{Applied, Journal};
use crate::netlink::is_of_main;
use crate::plan::Plan;
use crate::routes::{Table, destination};
use bus::files::FileError;
use netlink::Changes;
use policy::Prefix;
use std::collections::{BTreeMap, BTreeSet};
use units::Time;

/// How often it is looked whether others have changed something.
pub const FOLLOW: Time = Time::from_ms(500);
/// What others change within this time is looked at once.
const SOON: Time = Time::from_ms(250);
/// Following routes that change all the time may take one part in so many of a core's time.
const SHARE: u64 = 40;
/// How often something is set again that others set back, until the rules are set anew.
const AGAIN_MAX: usize = 3;

/// The routes and sysctls of the agent's namespace.
#[derive(Debug)]
pub struct Reconciler {
    journal: Journal,
    /// What is to be set.
    plan: Plan,
    changes: Option<Changes>,
    /// The routes as last seen.
    table: Table,
    /// Where those lead that were added here.
    added: Vec<Prefix>,
    notes: Vec<String>,
    /// Others have changed something since; and routes that were added here may depend on it.
    is_stale: bool,
    is_urgent: bool,
    /// When it is looked at them again: urgent changes, others, sysctls.
    soon_at: Time,
    later_at: Time,
    sysctls_at: Time,
    /// How often each was set again.
    again: BTreeMap<String, usize>,
}

impl Reconciler {
    /// With the journal of what is set.
    pub fn new(journal: Journal) -> Reconciler {
        Reconciler {
            journal,
            plan: Plan::default(),
            changes: None,
            table: Table::default(),
            added: Vec::new(),
            notes: Vec::new(),
            is_stale: true,
            is_urgent: true,
            soon_at: Time::ZERO,
            later_at: Time::ZERO,
            sysctls_at: Time::ZERO,
            again: BTreeMap::new(),
        }
    }

    /// Sets routes and sysctls as the plan says, and holds them so.
    ///
    /// # Errors
    /// The journal cannot be written; then nothing was changed.
    pub fn set(&mut self, plan: &Plan) -> Result<(), FileError> {
        self.hear();
        self.is_stale |= self.again.values().any(|times| *times >= AGAIN_MAX);
        self.again.clear();
        let wants = |plan: &Plan| (plan.wishes.clone(), plan.sysctls.clone(), plan.rules.is_empty());
        if wants(plan) != wants(&self.plan) {
            self.plan = plan.clone();
            // also where a new clock has begun
            (self.soon_at, self.later_at, self.sysctls_at) = (Time::ZERO, Time::ZERO, Time::ZERO);
            return self.apply();
        }
        // what others have changed meanwhile is looked at when its turn comes; where no changes are heard, now
        if self.is_stale && !self.is_active() { self.apply() } else { Ok(()) }
    }

    /// Whether there is anything to hold.
    pub fn is_active(&self) -> bool {
        self.changes.is_some() || !self.plan.sysctls.is_empty()
    }

    /// Sets again what others have changed; whether there was anything to do. `spent` is the CPU time that this thread has had.
    ///
    /// # Errors
    /// As of [`Reconciler::set`].
    pub fn follow(&mut self, now: Time, spent: impl Fn() -> Time) -> Result<bool, FileError> {
        if !self.is_active() {
            return Ok(false);
        }
        self.hear();
        if now >= self.sysctls_at {
            self.sysctls_at = now + FOLLOW;
            if self.journal.has_other_sysctls() {
                (self.is_stale, self.is_urgent) = (true, true);
            }
        }
        if !self.is_stale || now < if self.is_urgent { self.soon_at } else { self.later_at } {
            return Ok(false);
        }
        let began = spent();
        self.apply()?;
        self.soon_at = now + SOON;
        self.later_at = self.soon_at.max(now + spent().saturating_sub(began) * SHARE);
        Ok(true)
    }

    /// What could not be done.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The routes, if they are known.
    pub fn table(&self) -> Option<&Table> {
        self.changes.as_ref().map(|_| &self.table)
    }

    /// Restores everything. Returns what was left because it has been changed by others, and what cannot be restored now.
    ///
    /// # Errors
    /// The journal's.
    pub fn undo(&mut self) -> Result<(Vec<String>, Option<String>), FileError> {
        let notes = self.journal.undo()?;
        Ok((notes, self.journal.left()))
    }

    fn hear(&mut self) {
        let Some(changes) = &mut self.changes else { return };
        let changed = changes.take(self.journal.port());
        let mut routes = changed.routes.iter().filter(|route| is_of_main(route)).peekable();
        self.is_stale |= changed.more || routes.peek().is_some();
        let is_origin = |of: Prefix| self.added.iter().any(|added| of.covers(*added));
        let are_origins = || routes.filter_map(destination).any(is_origin);
        self.is_urgent |= !self.added.is_empty() && (changed.more || are_origins());
    }

    fn apply(&mut self) -> Result<(), FileError> {
        // first the ear, so that nothing happens unheard after the look
        if self.changes.is_none() && !(self.plan.wishes.is_empty() && self.journal.is_empty()) {
            self.changes = Changes::open().ok();
        }
        let contested = self.again.iter().filter(|(_, times)| **times >= AGAIN_MAX).map(|(name, _)| name.clone());
        let contested: BTreeSet<String> = contested.collect();
        let Applied { notes, table, again, is_whole } = self.journal.apply(&self.plan, &contested)?;
        for name in again {
            *self.again.entry(name).or_default() += 1;
        }
        (self.notes, self.table, self.added) = (notes, table, self.journal.added());
        if self.plan.wishes.is_empty() && self.journal.is_empty() {
            self.changes = None;
        }
        // without an ear, each setting looks
        self.is_stale = !is_whole || self.changes.is_none();
        self.is_urgent = false;
        Ok(())
    }
}
