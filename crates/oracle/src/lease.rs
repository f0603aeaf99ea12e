//! Who of several Oracles decides.
//!
//! A lease is an entry in a store that they share: the term, who holds it, and a number that the holder counts up. Another takes it, with
//! the next term, once that number has stood still for three intervals by its own clock. No time is written down, so clocks need not agree.
//!
//! A lease is a hint. A holder that is stopped and wakes, or a store that was parted, can leave two that believe to hold it. What keeps
//! agents from taking an older decision after a newer is the epoch: its first part is the term ([`policy::Epoch`]).

use crate::memory::Pause;
use bus::{Entry, Store, StoreError};
use policy::{Progress, TERM_MAX};
use serde::{Deserialize, Serialize};
use units::Time;

/// The lease.
const LEASE: &str = "lease";
/// What Oracles share beside it.
const SHARED: &str = "shared";
/// The holder renews it so many times in a period ...
const IN_PERIOD: u64 = 3;
/// ... and at least this often.
const INTERVAL_MAX: Time = Time::from_secs(5);
/// Intervals without a sign of the holder after which another takes its place.
const EXPIRES: u64 = 3;
/// Intervals without a renewal after which the holder itself does nothing any more.
const VALID: u64 = 2;

/// As it is in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    /// The term of the holder, or of the last one.
    term: u32,
    /// The number of the Oracle that holds it; `None`: it was given up.
    holder: Option<u8>,
    /// How often it was renewed.
    renewed: u64,
    /// The holder's last decision.
    epoch: u64,
}

/// What an Oracle that begins to decide must know of the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// The policy in force: the text of its file.
    pub policy: String,
    /// The name of that file: a policy that does not name itself has its name, by which hosts are chosen.
    #[serde(default)]
    pub file: String,
    /// How far its rollout has come.
    pub progress: Progress,
    /// No CUEs are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    /// The epoch in which the policy was applied; 0: it is that of a file.
    #[serde(default)]
    pub began: u64,
}

/// What an Oracle is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Decide, in this term.
    Leads {
        /// Above all earlier ones.
        term: u32,
    },
    /// Listen. `None`: nobody is known to decide.
    Follows {
        /// Who decides.
        holder: Option<u8>,
    },
}

/// Why a lease cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The store.
    #[error("the lease: {0}")]
    Store(#[from] StoreError),
    /// The last term.
    #[error(
        "the lease: term {TERM_MAX} is the last one; make a new key for the Oracle, and remove the epochs of Oracles and agents"
    )]
    Terms,
}

/// One Oracle's side of the lease.
pub struct Lease {
    store: Box<dyn Store>,
    /// This Oracle's.
    number: u8,
    interval: Time,
    /// As last seen, with its revision, and since when it is so. `None`: never looked.
    seen: Option<(Option<(Content, u64)>, Time)>,
    /// The highest term seen: a store that was emptied, or is older, does not know it.
    highest: u32,
    /// The term that it holds, and when it began to renew it last.
    held: Option<(u32, Time)>,
    look_at: Time,
    /// When the holder's last decision was first seen.
    decided_at: Option<Time>,
    /// Revision of what is shared, since this Oracle holds the lease.
    shared: Option<u64>,
    /// What was found in the store that no Oracle has put there, not yet said.
    damage: Option<String>,
}

impl Lease {
    /// Of the Oracle of this number, which decides every `period`. Does not ask for it yet.
    pub fn new(store: Box<dyn Store>, number: u8, period: Time) -> Lease {
        let interval = Lease::interval(period);
        let (seen, highest, held, look_at) = (None, 0, None, Time::ZERO);
        Lease { store, number, interval, seen, highest, held, look_at, decided_at: None, shared: None, damage: None }
    }

    fn interval(period: Time) -> Time {
        Time::from_ps(period.as_ps() / IN_PERIOD).min(INTERVAL_MAX)
    }

    /// The period is another one.
    pub fn set_period(&mut self, period: Time) {
        self.interval = Lease::interval(period);
    }

    /// Starts with a new clock: forgets all times.
    pub fn begin_anew(&mut self) {
        (self.seen, self.look_at, self.decided_at) = (None, Time::ZERO, None);
        if let Some((_, renewed_at)) = &mut self.held {
            *renewed_at = Time::ZERO;
        }
    }

    /// When to call [`Lease::keep`] at the latest.
    pub fn next(&self) -> Time {
        self.look_at
    }

    /// When the one that decided before was seen to decide last; `None`: it was not seen.
    pub fn decided_at(&self) -> Option<Time> {
        self.decided_at
    }

    /// The last decision of the one that decides, as far as the lease says; 0: none is known.
    pub fn epoch(&self) -> u64 {
        let content = self.seen.as_ref().and_then(|(seen, _)| seen.as_ref());
        content.map_or(0, |(content, _)| content.epoch)
    }

    /// Renews the lease, or looks whether it is free and takes it, if that is due: with a term above `above` and all earlier ones.
    /// `epoch` is this Oracle's last. Before it sends something, an Oracle calls this; `now` must be no earlier than the call.
    ///
    /// # Errors
    /// The store does not answer, or terms have run out. The standing is still that of [`Lease::standing`].
    pub fn keep(&mut self, now: Time, above: u32, epoch: u64) -> Result<Standing, LeaseError> {
        if now >= self.look_at {
            self.look_at = now + self.interval;
            match self.held {
                Some((term, _)) => self.renew(now, term, epoch)?,
                None => self.look(now, above, epoch)?,
            }
        }
        Ok(self.standing(now))
    }

    /// What it is to do now.
    pub fn standing(&self, now: Time) -> Standing {
        match self.held {
            Some((term, renewed_at)) if now <= renewed_at + self.interval * VALID => Standing::Leads { term },
            _ => {
                let content = self.seen.as_ref().and_then(|(seen, _)| seen.as_ref());
                let holder = content.and_then(|(content, _)| content.holder);
                Standing::Follows { holder: holder.filter(|holder| *holder != self.number) }
            }
        }
    }

    fn renew(&mut self, now: Time, term: u32, epoch: u64) -> Result<(), LeaseError> {
        let Some((Some((content, revision)), _)) = &self.seen else { unreachable!("what is held was seen") };
        let next = Content { renewed: content.renewed + 1, epoch, ..content.clone() };
        if let Some(revision) = self.put(&next, Some(*revision))? {
            self.seen = Some((Some((next, revision)), now));
            self.held = Some((term, now));
        } else {
            // another has put something, or the answer to this Oracle's own renewal was lost
            self.see(now)?;
            let seen = self.seen.as_ref().and_then(|(seen, _)| seen.as_ref());
            let is_own = seen.is_some_and(|(there, _)| there.term == term && there.holder == Some(self.number));
            self.held = is_own.then_some((term, now));
        }
        Ok(())
    }

    /// Looks at the lease.
    fn see(&mut self, now: Time) -> Result<(), LeaseError> {
        let there = self.store.get(LEASE)?.map(|entry| {
            // what no Oracle has put there is nobody's lease, and the next one to take it writes over it
            let content = self.read::<Content>(LEASE, &entry).filter(|content| content.term <= TERM_MAX);
            (content.unwrap_or_default(), entry.revision)
        });
        self.highest = self.highest.max(there.as_ref().map_or(0, |(content, _)| content.term));
        let before = self.seen.as_ref().and_then(|(seen, _)| seen.as_ref()).map(|(content, _)| content.epoch);
        if before.is_some_and(|before| there.as_ref().is_some_and(|(content, _)| content.epoch != before)) {
            self.decided_at = Some(now);
        }
        let is_same = self.seen.as_ref().is_some_and(|(seen, _)| *seen == there);
        if !is_same {
            self.seen = Some((there, now));
        }
        Ok(())
    }

    fn look(&mut self, now: Time, above: u32, epoch: u64) -> Result<(), LeaseError> {
        self.see(now)?;
        let Some((seen, since)) = &self.seen else { unreachable!("it was just looked at") };
        let (content, revision) = match seen {
            Some((content, revision)) => (content.clone(), Some(*revision)),
            None => (Content::default(), None),
        };
        let is_free = content.holder.is_none() || now.saturating_sub(*since) >= self.interval * EXPIRES;
        if !is_free {
            return Ok(());
        }
        let term = self.highest.max(above) + 1;
        if term > TERM_MAX {
            return Err(LeaseError::Terms);
        }
        let taken = Content { term, holder: Some(self.number), renewed: 0, epoch };
        if let Some(revision) = self.put(&taken, revision)? {
            self.seen = Some((Some((taken, revision)), now));
            (self.highest, self.held) = (term, Some((term, now)));
        } else {
            // somebody was quicker
            self.see(now)?;
        }
        Ok(())
    }

    fn put(&mut self, content: &Content, revision: Option<u64>) -> Result<Option<u64>, LeaseError> {
        let value = serde_json::to_vec(content).expect("a lease is plain data");
        Ok(self.store.put(LEASE, &value, revision)?)
    }

    /// Gives it up, so that another can take it at once.
    pub fn give_up(&mut self) {
        let Some((term, _)) = self.held.take() else { return };
        if let Some((Some((content, revision)), _)) = self.seen.take() {
            let free = Content { term, holder: None, ..content };
            // it expires if the store does not answer
            let _ = self.put(&free, Some(revision));
        }
        self.look_at = Time::ZERO;
    }

    /// What the Oracle before has shared; to be read by one that has just begun to decide. `None`: there was nothing, or something that no
    /// Oracle has put there, which the next to be shared replaces.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn shared(&mut self) -> Result<Option<Shared>, LeaseError> {
        let entry = self.store.get(SHARED)?;
        self.shared = entry.as_ref().map(|entry| entry.revision);
        Ok(entry.and_then(|entry| self.read(SHARED, &entry)))
    }

    /// What was found in the store that no Oracle has put there; each time once.
    pub fn damage(&mut self) -> Option<String> {
        self.damage.take()
    }

    /// The highest term seen.
    pub fn highest(&self) -> u32 {
        self.highest
    }

    fn read<T: for<'a> Deserialize<'a>>(&mut self, key: &str, entry: &Entry) -> Option<T> {
        let content = serde_json::from_slice(&entry.value);
        content
            .map_err(|error| {
                let what = format!("the lease: the entry `{key}` of the store is not one of an Oracle's: {error}");
                self.damage = Some(format!("{what}; it counts as none, and is written anew"));
            })
            .ok()
    }

    /// Whether this is what the store has, as far as it says: one that does not answer may have it.
    pub fn has(&mut self, shared: &Shared) -> bool {
        let entry = self.store.get(SHARED);
        entry.map_or(true, |entry| entry.is_some_and(|entry| entry.value == value_of(shared)))
    }

    /// Shares what another would need; `false`: another has shared something since, so it decides.
    ///
    /// # Errors
    /// The store does not answer. Then nothing may be sent that follows from it.
    pub fn share(&mut self, shared: &Shared) -> Result<bool, LeaseError> {
        let Some(revision) = self.store.put(SHARED, &value_of(shared), self.shared)? else {
            self.held = None;
            return Ok(false);
        };
        self.shared = Some(revision);
        Ok(true)
    }
}

fn value_of(shared: &Shared) -> Vec<u8> {
    serde_json::to_vec_pretty(shared).expect("what is shared is plain data")
}
