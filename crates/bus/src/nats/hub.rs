//! The Oracle's end.
//!
//! Tasks of the connection take what comes from the server, and keep of it what the sender's budget admits ([`crate::members`]); the Oracle
//! verifies that, and nothing else, when it asks for the next message. So whatever one member sends, the queue holds a few messages of it.
//!
//! Enrolment, renewal and revocation are answered here, by the fleet's keys in the Oracle's folder; the Oracle's loop only hears of them.

use super::folder::Folder;
use super::joining::Joining;
use super::kv;
use super::link::{Capacity, Link};
use super::store::NatsStore;
use super::{register, unix_s};
use crate::channel::fits;
use crate::kind::Kind;
use crate::members::Members;
use crate::sealed::{Key, SEALED_MAX};
use crate::{BusCounts, BusError, Clock, Hub, MESSAGE_MAX, Notice, Peer, Received, ReplyTo, Store};
use async_nats::{Client, Message, Subscriber};
use fleet::{
    Authority, Card, Entry, Fleet, Nkey, NkeyKind, OracleIdentity, Outcome, Registry, RegistryError, SecretNkey, rights,
};
use futures_util::StreamExt as _;
use policy::Gate;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::unconstrained;
use tokio::time::sleep;

/// Messages that the connection's task may read at once, before the tasks that sort them get a turn: it stops after 128 reads.
const CAPACITY: Capacity = Capacity { received: 65_536, sent: 1024 };
/// The same of requests of enrolment.
const CAPACITY_OF_DOOR: Capacity = Capacity { received: 1024, sent: 64 };
/// Messages that wait for the Oracle, and their bytes.
const QUEUE_MAX: usize = 65_536;
const QUEUE_BYTES_MAX: usize = 64 << 20;
/// How long the register may take.
const REGISTER: Duration = Duration::from_secs(2);
/// How often entries that ended long ago are deleted from the register.
const TIDY: Duration = Duration::from_secs(3600);
/// For how long nobody is admitted after the register did not answer.
const CLOSED: Duration = Duration::from_secs(10);
/// The group of all Oracles: a newcomer is answered by one of them.
const ORACLES: &str = "oracles";
/// Requests of enrolment that wait.
const NEWCOMERS_MAX: usize = 256;

/// Entries of the register that wait to be put right.
const DAMAGED_MAX: usize = 256;
/// What the text of a revocation begins with.
const REVOKED: &[u8] = b"revoked.";

/// What has happened to members, for the log.
const NOTICES_MAX: usize = 1024;

/// The Oracle's end.
pub struct NatsHub {
    pub(super) folder: Arc<Folder>,
    pub(super) oracle: OracleIdentity,
    /// By which messages come.
    from: Link,
    /// By which messages go, and by which the register is kept.
    pub(super) out: Link,
    /// By which newcomers ask and are answered. Its user reaches inboxes and nothing else.
    door: Link,
    intake: Arc<Intake>,
    notices: Vec<Notice>,
    /// Refusals of token holders and members, of which only the 1st, 2nd, 4th ... is noted: a log is not theirs to fill.
    refusals: u64,
    /// After the register did not answer, nobody is admitted until then: each attempt would delay the Oracle.
    closed_until: Option<Instant>,
}

/// What tasks and the Oracle share.
struct Intake {
    state: Mutex<State>,
    /// A message has been queued.
    ready: Notify,
}

pub(super) struct State {
    clock: Clock,
    pub(super) members: Members,
    pub(super) registry: Registry,
    queue: VecDeque<(Key, Vec<u8>)>,
    bytes: usize,
    /// For the beacons of the Oracle that decides.
    gate: Gate,
    /// Requests of enrolment, and where the answers go.
    newcomers: VecDeque<(String, Vec<u8>)>,
    /// Entries of the register in whose place the bucket has something that the account did not sign.
    damaged: VecDeque<Nkey>,
    long: u64,
    /// Nothing comes any more.
    has_ended: bool,
}

impl State {
    /// Keeps a member's message, if there is reason to.
    fn sort(&mut self, message: &Message) {
        let Some(key) = sender(&message.subject) else {
            self.members.rejected_mut().unknown += 1;
            return;
        };
        if !self.members.admit(self.clock.now(), unix_s(), &key) {
            return;
        }
        let length = message.payload.len();
        if length > SEALED_MAX {
            self.long += 1;
            return;
        }
        if self.queue.len() >= QUEUE_MAX || self.bytes + length > QUEUE_BYTES_MAX {
            self.members.rejected_mut().full += 1;
            return;
        }
        self.bytes += length;
        // a copy: the payload is a part of the buffer in which all that was read at once stands
        self.queue.push_back((key, message.payload.to_vec()));
    }

    /// Takes what the Oracle that decides says to all: its epoch.
    fn hear(&mut self, message: &[u8]) {
        if let Some(Ok(beacon)) = self.gate.heard(message) {
            self.members.epoch(beacon.epoch);
        }
    }

    /// Takes an entry of the register of members. It is believed only as far as the account signed it, and a revocation stays.
    pub(super) fn learn(&mut self, fleet: &Fleet, text: &str, value: Option<&[u8]>) {
        let Ok(key) = Nkey::parse(text, NkeyKind::User) else { return };
        let is_revoked = self.registry.entry(&key).is_some_and(|entry| matches!(entry, Entry::Revoked(_)));
        let is_right = match value {
            // a server may repeat what the account signed before it revoked the key
            Some(value) if is_revoked && !value.starts_with(REVOKED) => false,
            Some(value) => match self.registry.put(text, value, fleet) {
                Ok(()) | Err(RegistryError::Full) => true,
                Err(_) => false,
            },
            None if is_revoked => true,
            None => {
                self.registry.remove(text);
                true
            }
        };
        if !is_right && self.damaged.len() < DAMAGED_MAX && !self.damaged.contains(&key) {
            self.damaged.push_back(key.clone());
        }
        match self.registry.member(&key, unix_s()) {
            Ok(enrolled) => {
                self.members.insert(*key.as_bytes(), enrolled.member.clone(), enrolled.expires);
            }
            Err(_) => self.members.remove(key.as_bytes()),
        }
    }

    fn newcomer(&mut self, message: Message) {
        let Some(reply) = message.reply else { return };
        if message.payload.len() > MESSAGE_MAX || self.newcomers.len() >= NEWCOMERS_MAX {
            self.members.rejected_mut().full += 1;
            return;
        }
        self.newcomers.push_back((reply.to_string(), message.payload.to_vec()));
    }

    /// The next that is worth it.
    fn next(&mut self) -> Option<Arrived> {
        if self.clock.is_old() {
            self.clock = Clock::begin();
            self.members.forget_times();
        }
        while let Some((key, bytes)) = self.queue.pop_front() {
            self.bytes -= bytes.len();
            if let Some((member, bytes)) = self.members.open(self.clock.now(), &key, &bytes) {
                return Some(Arrived::Message(Received {
                    from: Peer::Member(member),
                    bytes,
                    reply: ReplyTo::Member(key),
                }));
            }
        }
        if let Some(key) = self.damaged.pop_front() {
            return Some(Arrived::Damaged(key));
        }
        let newcomer = self.newcomers.pop_front().map(|(reply, request)| Arrived::Newcomer { reply, request });
        newcomer.or(self.has_ended.then_some(Arrived::End))
    }
}

/// What the Oracle's end has to do next.
enum Arrived {
    Message(Received),
    Newcomer {
        reply: String,
        request: Vec<u8>,
    },
    /// Something is in the place of this key's entry of the register.
    Damaged(Nkey),
    End,
}

impl Intake {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes, once an hour, entries of the register that say nothing any more: of members and revocations that ended long ago.
    async fn tidy(self: Arc<Intake>, client: Client) {
        loop {
            sleep(TIDY).await;
            let stale = self.lock().registry.stale(unix_s());
            let Ok(store) = kv::bucket(&client, rights::MEMBERS_BUCKET).await else { continue };
            for key in stale {
                if store.purge(key.as_str()).await.is_ok() {
                    self.lock().registry.remove(key.as_str());
                }
            }
        }
    }

    /// Takes what a subscription brings, as long as it brings anything without waiting.
    async fn pump(self: Arc<Intake>, mut from: Subscriber, mut take: impl FnMut(&mut State, Message)) {
        while let Some(message) = from.next().await {
            let mut state = self.lock();
            take(&mut state, message);
            drop(state);
            self.ready.notify_one();
        }
        // the client never ends by itself: its task has died
        self.lock().has_ended = true;
        self.ready.notify_one();
    }
}

impl NatsHub {
    /// Joins with the Oracle's identity in a folder; returns at once, whether a server is there or not.
    ///
    /// # Errors
    /// The folder has no identity of an Oracle that can be used.
    pub fn listen(folder: &Path) -> Result<NatsHub, BusError> {
        let oracle = OracleIdentity::load(folder)
            .map_err(|error| BusError::Identity { folder: folder.to_path_buf(), reason: error.to_string() })?;
        let folder = Arc::new(Folder::open(folder)?);
        let from = Link::join(folder.joining()?, CAPACITY)?;
        let out = from.beside(folder.joining()?, CAPACITY)?;
        let door = from.beside(registrar(&folder, &oracle)?, CAPACITY_OF_DOOR)?;
        let state = State {
            clock: Clock::begin(),
            members: Members::default(),
            registry: Registry::default(),
            queue: VecDeque::new(),
            bytes: 0,
            gate: Gate::new(folder.oracle_keys()?, policy::Identity::default(), None),
            newcomers: VecDeque::new(),
            damaged: VecDeque::new(),
            long: 0,
            has_ended: false,
        };
        let intake = Arc::new(Intake { state: Mutex::new(state), ready: Notify::new() });
        for subject in ["opentcp.report.*", "opentcp.collect.*", "opentcp.request.*"] {
            let messages = from.subscribe(subject)?;
            // without the runtime's own limit: as much as was read is sorted before more is read
            let pump = intake.clone().pump(messages, |state, message| state.sort(&message));
            from.spawn(unconstrained(pump));
        }
        let heard = from.subscribe(rights::CUE)?;
        from.spawn(intake.clone().pump(heard, |state, message| state.hear(&message.payload)));
        let newcomers = door.subscribe_as_one_of(ORACLES, rights::ENROLL)?;
        door.spawn(intake.clone().pump(newcomers, State::newcomer));
        let (taking, of) = (intake.clone(), oracle.identity.fleet.clone());
        let take = move |key: &str, value: Option<&[u8]>| taking.lock().learn(&of, key, value);
        let first = oracle.first_members.iter().map(|card| (card.user.key.to_string(), card.jwt.clone())).collect();
        out.spawn(kv::watch(out.client().clone(), rights::MEMBERS_BUCKET, first, take));
        out.spawn(intake.clone().tidy(out.client().clone()));
        Ok(NatsHub { folder, oracle, from, out, door, intake, notices: Vec::new(), refusals: 0, closed_until: None })
    }
}

impl NatsHub {
    /// Whether a server is connected now.
    pub fn is_connected(&self) -> bool {
        self.from.is_connected() && self.out.is_connected() && self.door.is_connected()
    }

    /// Enters a member into the register, from which all Oracles know it.
    ///
    /// # Errors
    /// The register cannot be reached in time, in words. This Oracle knows the member all the same.
    pub fn enter(&mut self, card: &Card) -> Result<(), String> {
        self.record(card.user.key.as_str(), &card.jwt)
    }

    /// Puts an entry into the register.
    pub(super) fn record(&mut self, key: &str, value: &str) -> Result<(), String> {
        let mut state = self.intake.lock();
        state.learn(&self.oracle.identity.fleet, key, Some(value.as_bytes()));
        let nkey = Nkey::parse(key, NkeyKind::User).map_err(|error| error.to_string())?;
        if state.registry.entry(&nkey).is_some_and(|entry| matches!(entry, Entry::Revoked(_)))
            && !value.as_bytes().starts_with(REVOKED)
        {
            return Err("this key was revoked".to_string());
        }
        drop(state);
        let (client, value) = (self.out.client().clone(), value.to_string());
        let put = async {
            let store = kv::bucket(&client, rights::MEMBERS_BUCKET).await?;
            store.put(key, value.into()).await.map(drop).map_err(|error| error.to_string())
        };
        self.out.reach(REGISTER)?;
        self.out.run(REGISTER, put).unwrap_or_else(|| Err("the server did not answer in time".to_string()))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.intake.lock()
    }

    pub(super) fn note(&mut self, what: &'static str, about: String) {
        if self.notices.len() < NOTICES_MAX {
            self.notices.push(Notice { what, about });
        }
    }

    /// Answers a token holder, or a member who wants to stay. What is not in the register was not granted.
    fn grant(&mut self, what: &'static str, outcome: Outcome) -> Option<Vec<u8>> {
        let Some((key, value)) = &outcome.record else {
            if let Err(why) = &outcome.result {
                self.refuse(&why.to_string());
            }
            return Some(outcome.answer);
        };
        if self.closed_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        if let Err(why) = self.record(key, value) {
            self.refuse(&format!("the register of members: {why}"));
            self.closed_until = Some(Instant::now() + CLOSED);
            return None;
        }
        if let Ok(member) = &outcome.result {
            self.note(what, format!("{} {}", member.role, member.name));
        }
        Some(outcome.answer)
    }

    /// Answers a newcomer, if the answer is for the one who has signed the request: else whoever holds a token would choose where an Oracle
    /// writes. Who gets no answer asks once more.
    fn welcome(&mut self, reply: &str, outcome: Outcome) -> Result<(), BusError> {
        let is_own = outcome.asker.as_ref().is_some_and(|asker| rights::is_in_inbox(asker, reply));
        if !is_own {
            let elsewhere = "its answer is to go elsewhere than to the inbox of its token's user";
            let why = outcome.result.err().map_or_else(|| elsewhere.to_string(), |refusal| refusal.to_string());
            self.refuse(&format!("a request of enrolment, without an answer: {why}"));
            return Ok(());
        }
        match self.grant("enrolled", outcome) {
            Some(answer) => sent(self.door.publish(reply, answer)),
            None => Ok(()),
        }
    }

    /// Puts an entry of the register right in whose place something else is: by what this Oracle knows, or for a member that came with the
    /// fleet by what it came with. If neither is known, it is as if there were no entry.
    fn mend(&mut self, key: &Nkey) {
        if self.closed_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        let text = Authority { oracle: &self.oracle }.known_text(&self.intake.lock().registry, key);
        let first = self.oracle.first_members.iter().find(|card| card.user.key == *key);
        let Some(text) = text.or_else(|| first.map(|card| card.jwt.clone())) else {
            return self.note("damaged", format!("the register's entry of {key} is not one of this fleet's: ignored"));
        };
        match self.record(key.as_str(), &text) {
            Ok(()) => {
                self.note("repaired", format!("the register's entry of {key}, which something else had replaced"));
            }
            Err(why) => {
                self.refuse(&format!("the register's entry of {key} is damaged and cannot be put right: {why}"));
                self.closed_until = Some(Instant::now() + CLOSED);
            }
        }
    }

    fn refuse(&mut self, why: &str) {
        self.refusals += 1;
        if self.refusals.is_power_of_two() {
            self.note("refused", format!("{why} ({} so far)", self.refusals));
        }
    }

    /// Handles what is not for the Oracle's loop; returns the rest.
    fn handle(&mut self, arrived: Arrived) -> Result<Option<Received>, BusError> {
        let authority = Authority { oracle: &self.oracle };
        let (key, outcome) = match arrived {
            Arrived::Newcomer { reply, request } => {
                let outcome = authority.enroll(&self.intake.lock().registry, &request, unix_s());
                return self.welcome(&reply, outcome).map(|()| None);
            }
            Arrived::Damaged(key) => {
                self.mend(&key);
                return Ok(None);
            }
            Arrived::Message(Received { bytes, from, reply: ReplyTo::Member(key) }) => match Kind::of(&bytes) {
                Some(Kind::Renew) => {
                    let Ok(nkey) = Nkey::user(key) else { return Ok(None) };
                    let outcome = authority.renew(&self.intake.lock().registry, &nkey, unix_s());
                    (key, self.grant("renewed", outcome))
                }
                Some(Kind::Fleet) => (key, Some(register::answer(self, &from, &bytes))),
                _ => return Ok(Some(Received { bytes, from, reply: ReplyTo::Member(key) })),
            },
            Arrived::Message(received) => return Ok(Some(received)),
            Arrived::End => return Err(BusError::Gone),
        };
        match outcome.map(|answer| self.answer(&ReplyTo::Member(key), &answer)) {
            // what is done for one member ends nothing for the others
            None | Some(Ok(()) | Err(BusError::Long(_))) => {}
            Some(Err(error)) => return Err(error),
        }
        Ok(None)
    }
}

impl Hub for NatsHub {
    fn trouble(&self) -> Option<String> {
        self.from.trouble().or_else(|| self.out.trouble()).or_else(|| self.door.trouble())
    }

    fn send(&mut self, message: &[u8]) -> Result<(), BusError> {
        fits(message)?;
        sent(self.out.publish(rights::CUE, message.to_vec()))
    }

    fn answer(&mut self, to: &ReplyTo, message: &[u8]) -> Result<(), BusError> {
        fits(message)?;
        let ReplyTo::Member(key) = to else { return Ok(()) };
        let Ok(key) = Nkey::user(*key) else { return Ok(()) };
        sent(self.out.publish(&rights::to(&key), message.to_vec()))
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Received>, BusError> {
        let until = Instant::now() + wait;
        loop {
            let intake = &self.intake;
            let next = async {
                loop {
                    if let Some(arrived) = intake.lock().next() {
                        return arrived;
                    }
                    intake.ready.notified().await;
                }
            };
            let left = until.saturating_duration_since(Instant::now());
            let Some(arrived) = self.from.run(left, next) else { return Ok(None) };
            if let Some(received) = self.handle(arrived)? {
                return Ok(Some(received));
            }
            if Instant::now() >= until {
                return Ok(None);
            }
        }
    }

    fn store(&mut self) -> Option<Box<dyn Store>> {
        let store = NatsStore::of(&self.folder).ok()?;
        Some(Box::new(store))
    }

    fn notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    fn epoch(&mut self, epoch: u64) {
        self.intake.lock().members.epoch(epoch);
    }

    fn counts(&self) -> BusCounts {
        let state = self.intake.lock();
        BusCounts {
            peers: state.members.len(),
            reporters: state.members.reporters(),
            slow: self.from.slow() + self.out.slow(),
            long: state.long,
            refused: 0,
            rejected: state.members.rejected(),
        }
    }
}

/// What the connection for newcomers needs: a user of its own, made for this process.
fn registrar(folder: &Folder, oracle: &OracleIdentity) -> Result<Joining, BusError> {
    let seed = SecretNkey::generate(NkeyKind::User).map_err(|error| folder.broken(&error.to_string()))?;
    let (name, inbox) = (format!("opentcp newcomers {}", folder.member().name), rights::inbox(seed.public()));
    let oracle = oracle.clone();
    // a JWT of now for each connection: the last one may have expired
    let credentials = move || Ok((oracle.registrar(seed.public(), unix_s()).jwt, seed.clone()));
    folder.joining_as(name, inbox, Box::new(credentials))
}

/// What has no room, or no server, is lost: the next period sends anew.
fn sent(outcome: Result<(), BusError>) -> Result<(), BusError> {
    match outcome {
        Err(BusError::Full) => Ok(()),
        outcome => outcome,
    }
}

/// Whose subject it is.
fn sender(subject: &str) -> Option<Key> {
    let (_, key) = subject.rsplit_once('.').filter(|(_, key)| key.starts_with('U'))?;
    // whether it is a point of the curve is known of members, and costs too much in a flood
    nkeys::from_public_key(key).ok().map(|(_, key)| key)
}
