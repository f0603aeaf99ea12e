//! The Oracle's end.
//!
//! Tasks of the connection take what comes from the server, and keep of it what the sender's budget admits ([`crate::members`]); the Oracle
//! verifies that, and nothing else, when it asks for the next message. So whatever one member sends, the queue holds a few messages of it.

use super::folder::Folder;
use super::kv;
use super::link::{Capacity, Link};
use crate::channel::fits;
use crate::members::Members;
use crate::sealed::{Key, SEALED_MAX};
use crate::{BusCounts, BusError, Clock, Hub, MESSAGE_MAX, Peer, Received, ReplyTo};
use async_nats::{Message, Subscriber};
use fleet::{Card, Kind, Nkey, NkeyKind};
use futures_util::StreamExt as _;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;
use tokio::task::unconstrained;

/// Messages that the connection's task may read at once, before the tasks that sort them get a turn: it stops after 128 reads.
const CAPACITY: Capacity = Capacity { received: 65_536, sent: 1024 };
/// Messages that wait for the Oracle, and their bytes.
const QUEUE_MAX: usize = 65_536;
const QUEUE_BYTES_MAX: usize = 64 << 20;
/// How long the register may take.
const REGISTER: Duration = Duration::from_secs(2);
/// The group of all Oracles: a newcomer is answered by one of them.
const ORACLES: &str = "oracles";
/// Requests of enrolment that wait.
const NEWCOMERS_MAX: usize = 256;

/// The Oracle's end.
pub struct NatsHub {
    folder: Arc<Folder>,
    link: Link,
    intake: Arc<Intake>,
}

/// What tasks and the Oracle share.
struct Intake {
    state: Mutex<State>,
    /// A message has been queued.
    ready: Notify,
}

struct State {
    clock: Clock,
    members: Members,
    queue: VecDeque<(Key, Vec<u8>)>,
    bytes: usize,
    /// Requests of enrolment, and where the answers go.
    newcomers: VecDeque<(String, Vec<u8>)>,
    long: u64,
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

    /// Takes an entry of the register of members. It is believed only as far as the account signed it.
    fn learn(&mut self, folder: &Folder, key: &str, value: Option<&[u8]>) {
        let Ok(key) = Nkey::parse(key, NkeyKind::User) else { return };
        let fleet = folder.fleet();
        let jwt = value.and_then(|value| std::str::from_utf8(value).ok());
        let card = jwt.and_then(|jwt| Card::verify(jwt, &fleet.account, &fleet.signing, unix_s()).ok());
        match card.filter(|card| card.user.key == key && card.user.kind == Kind::Member) {
            Some(card) => {
                self.members.insert(*key.as_bytes(), card.user.member, card.user.expires);
            }
            None => self.members.remove(key.as_bytes()),
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

    /// The next message that is worth it.
    fn next(&mut self) -> Option<Received> {
        if self.clock.is_old() {
            self.clock = Clock::begin();
            self.members.forget_times();
        }
        while let Some((key, bytes)) = self.queue.pop_front() {
            self.bytes -= bytes.len();
            if let Some((member, bytes)) = self.members.open(self.clock.now(), &key, &bytes) {
                return Some(Received { from: Peer::Member(member), bytes, reply: ReplyTo::Member(key) });
            }
        }
        None
    }
}

impl Intake {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what a subscription brings, as long as it brings anything without waiting.
    async fn pump(self: Arc<Intake>, mut from: Subscriber, mut take: impl FnMut(&mut State, Message)) {
        while let Some(message) = from.next().await {
            let mut state = self.lock();
            take(&mut state, message);
            drop(state);
            self.ready.notify_one();
        }
    }
}

impl NatsHub {
    /// Joins with the Oracle's identity in a folder; returns at once, whether a server is there or not.
    ///
    /// # Errors
    /// The folder has no identity of an Oracle that can be used.
    pub fn listen(folder: &Path) -> Result<NatsHub, BusError> {
        let folder = Arc::new(Folder::open(folder)?);
        if folder.from().is_some() {
            return Err(folder.broken("a member's identity, not an Oracle's"));
        }
        let link = Link::join(&folder, CAPACITY)?;
        let state = State {
            clock: Clock::begin(),
            members: Members::default(),
            queue: VecDeque::new(),
            bytes: 0,
            newcomers: VecDeque::new(),
            long: 0,
        };
        let intake = Arc::new(Intake { state: Mutex::new(state), ready: Notify::new() });
        for subject in ["opentcp.report.*", "opentcp.collect.*", "opentcp.request.*"] {
            let from = link.subscribe(subject)?;
            // without the runtime's own limit: as much as was read is sorted before more is read
            let pump = intake.clone().pump(from, |state, message| state.sort(&message));
            link.spawn(unconstrained(pump));
        }
        let newcomers = link.subscribe_as_one_of(ORACLES, fleet::rights::ENROLL)?;
        link.spawn(intake.clone().pump(newcomers, State::newcomer));
        let (taking, of) = (intake.clone(), folder.clone());
        let take = move |key: &str, value: Option<&[u8]>| taking.lock().learn(&of, key, value);
        link.spawn(kv::watch(link.client().clone(), fleet::rights::MEMBERS_BUCKET, take));
        Ok(NatsHub { folder, link, intake })
    }
}

impl NatsHub {
    /// Whether a server is connected now.
    pub fn is_connected(&self) -> bool {
        self.link.is_connected()
    }

    /// Why none is, if that is known.
    pub fn trouble(&self) -> Option<String> {
        self.link.trouble()
    }

    /// Enters a member into the register, from which all Oracles know it.
    ///
    /// # Errors
    /// The register cannot be reached in time, in words. This Oracle knows the member all the same.
    pub fn enter(&mut self, card: &Card) -> Result<(), String> {
        let (key, user) = (card.user.key.to_string(), &card.user);
        self.intake.lock().members.insert(*user.key.as_bytes(), user.member.clone(), user.expires);
        let client = self.link.client().clone();
        let put = async {
            let store = kv::bucket(&client, fleet::rights::MEMBERS_BUCKET).await?;
            store.put(key, card.jwt.clone().into()).await.map(drop).map_err(|error| error.to_string())
        };
        self.link.run(REGISTER, put).unwrap_or_else(|| Err("the server did not answer in time".to_string()))
    }
}

impl Hub for NatsHub {
    fn send(&mut self, message: &[u8]) -> Result<(), BusError> {
        fits(message)?;
        sent(self.link.publish(fleet::rights::CUE, message.to_vec()))
    }

    fn answer(&mut self, to: &ReplyTo, message: &[u8]) -> Result<(), BusError> {
        fits(message)?;
        let ReplyTo::Member(key) = to else { return Ok(()) };
        let Ok(key) = Nkey::user(*key) else { return Ok(()) };
        sent(self.link.publish(&fleet::rights::to(&key), message.to_vec()))
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Received>, BusError> {
        let intake = &self.intake;
        let next = async {
            loop {
                if let Some(received) = intake.lock().next() {
                    return received;
                }
                intake.ready.notified().await;
            }
        };
        Ok(self.link.run(wait, next))
    }

    fn epoch(&mut self, epoch: u64) {
        self.intake.lock().members.epoch(epoch);
    }

    fn counts(&self) -> BusCounts {
        let state = self.intake.lock();
        BusCounts {
            peers: state.members.len(),
            slow: self.link.slow(),
            long: state.long,
            refused: 0,
            rejected: state.members.rejected(),
        }
    }
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

/// The time of day, for what has an expiry.
pub(super) fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
