//! The end of agents, enforcers, collectors and operators.

use super::folder::Folder;
use super::link::{Capacity, Link};
use crate::channel::fits;
use crate::kind::{RENEW, ask};
use crate::sealed::Sealer;
use crate::{Bus, BusError, Clock, QUEUE_MAX, Role, random};
use async_nats::Subscriber;
use futures_util::StreamExt as _;
use policy::{Gate, Identity};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use units::Time;

/// How often the Oracle is asked for its epoch until it answers.
const ASK: Time = Time::from_secs(2);
/// How often it is looked meanwhile whether a server is connected.
const LOOK: Time = Time::from_ms(50);
/// Once connected, it is asked within this whether the identity and the Oracle's keys are to be renewed ...
const RENEW_FIRST: Time = Time::from_secs(3600);
/// ... or within this if half of the identity's time is over ...
const RENEW_SOON: Time = Time::from_secs(4);
/// ... and, if there is no answer, after about twice as long each time; after an answer, after half of this to the whole.
const RENEW_EACH: Time = Time::from_secs(86_400);
/// Messages that wait until an epoch is known.
const WAITING_MAX: usize = 16;

/// A member's end. It finds a server by itself, again and again; while there is none, [`Bus::send`] answers [`BusError::Full`].
pub struct NatsBus {
    folder: Arc<Folder>,
    link: Link,
    /// From the Oracle to all.
    cues: Subscriber,
    /// From the Oracle to this member.
    own: Subscriber,
    sealer: Sealer,
    subject: String,
    /// The highest epoch that is known to be the Oracle's.
    heard: Option<u64>,
    /// Of those that do not report, and so ask here.
    greeting: Option<Greeting>,
    /// When to ask next whether the identity or the Oracle's keys are to be renewed; zero: that is to be drawn.
    renew_at: Time,
    /// About how long after that it is asked again if there is no answer.
    renew_again: Time,
    /// Connections that had been made when that was decided.
    made: u64,
    clock: Clock,
}

/// What a member does to know an epoch of the Oracle: its messages must name one.
struct Greeting {
    gate: Gate,
    asked_at: Option<Time>,
    waiting: VecDeque<Vec<u8>>,
    /// Has asked to stay in the fleet.
    renewed: bool,
}

impl NatsBus {
    /// Joins with the identity of a folder; returns at once, whether a server is there or not.
    ///
    /// # Errors
    /// The folder has no identity that can be used.
    pub fn join(folder: &Path) -> Result<NatsBus, BusError> {
        let folder = Arc::new(Folder::open(folder)?);
        let capacity = Capacity { received: QUEUE_MAX, sent: QUEUE_MAX };
        let link = Link::join(folder.joining()?, capacity)?;
        let (cues, own) = (link.subscribe(fleet::rights::CUE)?, link.subscribe(&folder.to())?);
        let subject = folder.from().ok_or_else(|| folder.broken("an Oracle's identity, not a member's"))?;
        let sealer = Sealer::new(folder.secret(), random()?);
        let asks = matches!(folder.member().role, Role::Collector | Role::Operator);
        let greeting = if asks { Some(Greeting::new(&folder)?) } else { None };
        let (clock, renew_at, renew_again, made) = (Clock::begin(), Time::ZERO, Time::ZERO, 0);
        Ok(NatsBus {
            folder,
            link,
            cues,
            own,
            sealer,
            subject,
            heard: None,
            greeting,
            renew_at,
            renew_again,
            made,
            clock,
        })
    }

    /// Whose identity it is.
    pub fn member(&self) -> &fleet::Member {
        self.folder.member()
    }

    /// Messages that were dropped because they were not taken in time.
    pub fn slow(&self) -> u64 {
        self.link.slow()
    }

    /// Seals and writes a message as it is.
    fn write(&mut self, message: &[u8]) -> Result<(), BusError> {
        let sealed = self.sealer.seal(self.heard, message);
        self.link.publish(&self.subject, sealed)?;
        self.link.turn();
        Ok(())
    }

    /// Whether what a collector sends would not be taken, since it knows no epoch.
    fn lacks_epoch(&self) -> bool {
        self.heard.is_none() && self.folder.member().role == Role::Collector
    }

    /// Asks for an epoch, if it is time to; sends what has waited for one.
    fn greet(&mut self) -> Result<(), BusError> {
        let Some(greeting) = &mut self.greeting else { return Ok(()) };
        if !self.link.is_connected() {
            return Ok(());
        }
        if self.heard.is_some() {
            // a command ends when it has its reply, before it would be time to renew: what is asked first is answered first
            let renews = !std::mem::replace(&mut greeting.renewed, true) && self.folder.member().role == Role::Operator;
            if renews {
                self.write(RENEW)?;
            }
            while let Some(message) = self.greeting.as_mut().and_then(|greeting| greeting.waiting.pop_front()) {
                self.write(&message)?;
            }
            return Ok(());
        }
        let now = self.clock.now();
        if greeting.asked_at.is_some_and(|at| now < at + ASK) {
            return Ok(());
        }
        greeting.asked_at = Some(now);
        let question = random()?;
        greeting.gate.ask(question);
        self.write(&ask(&question))
    }

    /// Asks to stay in the fleet, and for changes of the Oracle's keys: some time after it is connected, soon if it is time to, and once a day.
    fn renew(&mut self) {
        let now = self.clock.now();
        if !self.link.is_connected() {
            // who was away may have missed something
            self.renew_at = Time::ZERO;
            return;
        }
        let made = self.link.made();
        if std::mem::replace(&mut self.made, made) != made {
            self.renew_at = Time::ZERO;
        }
        if now < self.renew_at {
            return;
        }
        let first = self.renew_at == Time::ZERO;
        if first {
            let within = if self.folder.is_due() { RENEW_SOON } else { RENEW_FIRST };
            self.renew_again = within;
            self.renew_at = now + drawn(within) + Time::from_ns(1);
        } else {
            // it may be lost: the Oracle may connect later than this member, and this one may not have heard its newest epoch
            self.renew_again = (self.renew_again * 2).min(RENEW_EACH);
            self.renew_at = now + self.renew_again / 2 + drawn(self.renew_again) / 2;
            let _ = self.write(RENEW);
        }
    }

    /// The next message within `wait`; those that were only for this end are `None`.
    fn next(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, BusError> {
        let (cues, own) = (&mut self.cues, &mut self.own);
        let next = async {
            tokio::select! {
                // the answer to a question comes before the CUEs that it is to let in
                biased;
                message = own.next() => message,
                message = cues.next() => message,
            }
        };
        let Some(message) = self.link.run(wait, next) else { return Ok(None) };
        let message = message.ok_or(BusError::Gone)?;
        let Ok(()) = fits(&message.payload) else { return Ok(None) };
        if message.payload.starts_with(fleet::RENEWED) {
            // a refusal may be forged; that an identity ends is seen when it does
            self.renew_at = self.clock.now() + RENEW_EACH / 2 + drawn(RENEW_EACH) / 2;
            self.renew_again = RENEW_EACH;
            let _ = self.folder.renew(&message.payload);
            if let (Some(greeting), Ok(keys)) = (&mut self.greeting, self.folder.stored_keys()) {
                greeting.gate.trust(keys);
            }
            return Ok(None);
        }
        if let Some(greeting) = &mut self.greeting
            && let Some(epoch) = greeting.epoch_of(&message.payload)
        {
            self.heard = self.heard.max(Some(epoch));
        }
        Ok(Some(message.payload.to_vec()))
    }
}

/// A time up to this: a fleet that was started at once does not ask at once.
fn drawn(within: Time) -> Time {
    let draw = random().map_or(u32::MAX, u32::from_ne_bytes);
    Time::from_ns((u128::from(within.as_ns()) * u128::from(draw) / u128::from(u32::MAX)) as u64)
}

impl Greeting {
    fn new(folder: &Folder) -> Result<Greeting, BusError> {
        let gate = Gate::new(folder.oracle_keys()?, Identity::default(), None);
        Ok(Greeting { gate, asked_at: None, waiting: VecDeque::new(), renewed: false })
    }

    /// The epoch that this message of the Oracle's proves to be one of its own.
    fn epoch_of(&mut self, message: &[u8]) -> Option<u64> {
        let is_heard =
            matches!(self.gate.answered(message), Some(Ok(()))) || matches!(self.gate.heard(message), Some(Ok(_)));
        is_heard.then(|| self.gate.highest()).flatten()
    }
}

impl Bus for NatsBus {
    fn send(&mut self, message: &[u8]) -> Result<(), BusError> {
        fits(message)?;
        if let Some(greeting) = self.greeting.as_mut().filter(|_| self.heard.is_none()) {
            // a measurement would grow old meanwhile
            if self.folder.member().role == Role::Collector || greeting.waiting.len() >= WAITING_MAX {
                return Err(BusError::Full);
            }
            greeting.waiting.push_back(message.to_vec());
            return self.greet();
        }
        self.write(message)
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, BusError> {
        if self.clock.is_old() {
            self.clock = Clock::begin();
            self.greeting.iter_mut().for_each(|greeting| greeting.asked_at = None);
            self.renew_at = Time::ZERO;
        }
        let until = self.clock.now() + Time::from_ns(wait.as_nanos() as u64);
        loop {
            let left = until.saturating_sub(self.clock.now());
            let left = if self.heard.is_none() && self.greeting.is_some() { left.min(LOOK) } else { left };
            self.greet()?;
            self.renew();
            let message = self.next(Duration::from_nanos(left.as_ns()))?;
            self.greet()?;
            if message.is_some() || self.clock.now() >= until {
                return Ok(message);
            }
        }
    }

    fn heard(&mut self, epoch: u64) {
        self.heard = self.heard.max(Some(epoch));
    }

    fn is_connected(&self) -> bool {
        self.link.is_connected() && !self.lacks_epoch()
    }

    fn trouble(&self) -> Option<String> {
        let unanswered = self.link.is_connected() && self.lacks_epoch();
        self.link.trouble().or_else(|| {
            unanswered.then(|| "no Oracle has answered yet: is one running (`opentcp oracle`)?".to_string())
        })
    }
}
