//! gNMI: a switch's counters as a stream, in the paths of OpenConfig's models.
//!
//! ```text
//! Subscribe, STREAM:   SAMPLE     /interfaces/interface[name=*]/state/counters
//!                                 /qos/interfaces/interface[interface-id=*]/output/queues/queue[name=*]/state
//!                      ON_CHANGE  …/state/oper-status, …/ethernet/state/port-speed, /lldp/…/neighbor[id=*]/state
//!                      as it likes  …/state/type
//! notifications ──▶ State ──▶ an answer when the sample is complete: no more of it came for a while
//! ```
//!
//! A sample comes as one notification or as thousands, so an answer waits until they pause. Counters have the target's own time, so a late
//! notification changes no rate.

mod clock;
mod connection;
#[allow(clippy::all, clippy::pedantic, missing_docs, reason = "generated from gnmi.proto")]
mod proto;
mod state;
mod store;
mod value;

pub use connection::Login;
pub(crate) use connection::is_here;

use crate::{ReadError, SwitchCounters};
use bus::Clock;
use connection::{duration, refused, subscribe};
use prost::Message as _;
use proto::subscribe_response::Response;
use proto::{Path, PathElem, SubscribeRequest, SubscribeResponse, Subscription, SubscriptionList, SubscriptionMode};
use state::State;
use std::path::PathBuf;
use tonic::Streaming;
use units::Time;

/// Most messages between two answers: the largest switch sends one for each leaf.
const MESSAGES_MAX: u32 = 1_000_000;
/// Shortest and longest pause that ends a sample.
const PAUSE: [Time; 2] = [Time::from_ms(50), Time::from_secs(1)];

/// Which target, and what of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name in views.
    pub switch: String,
    /// `HOST` or `HOST:PORT`; port 9339 if there is none.
    pub address: String,
    /// `None`: without encryption, and so without a password.
    pub tls: Option<Tls>,
    /// User and password.
    pub login: Option<Login>,
    /// Interval of samples.
    pub interval: Time,
    /// Subscribe to queues too (openconfig-qos).
    pub queues: bool,
    /// Subscribe to neighbours too (openconfig-lldp).
    pub neighbours: bool,
    /// How the target shall write values; it may do otherwise.
    pub encoding: Encoding,
    /// Longest wait for the connection, for the answer to the subscription, and for a sample that is due.
    pub timeout: Time,
}

/// How a target is trusted.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Certificates of the authorities, in PEM: no other is trusted.
    pub ca: PathBuf,
    /// The name in the target's certificate, if it is not that of the address.
    pub name: Option<String>,
    /// This side's certificate and key, in PEM, for targets that ask for them.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Encodings of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Numbers of protobuf.
    Proto,
    /// JSON.
    Json,
    /// JSON as RFC 7951 defines it.
    JsonIetf,
}

impl Encoding {
    /// All of them.
    pub const ALL: [Encoding; 3] = [Encoding::JsonIetf, Encoding::Json, Encoding::Proto];

    /// Its word in configurations.
    pub fn word(self) -> &'static str {
        match self {
            Encoding::Proto => "proto",
            Encoding::Json => "json",
            Encoding::JsonIetf => "json_ietf",
        }
    }
}

impl Options {
    /// With queues and neighbours, in JSON of RFC 7951 (what most switches offer), a timeout of 10 s.
    pub fn new(switch: impl Into<String>, address: impl Into<String>, interval: Time) -> Options {
        Options {
            switch: switch.into(),
            address: address.into(),
            tls: None,
            login: None,
            interval,
            queues: true,
            neighbours: true,
            encoding: Encoding::JsonIetf,
            timeout: Time::from_secs(10),
        }
    }
}

/// Reads one target. After an error the next call connects anew: when, is the caller's decision.
pub struct Reader {
    options: Options,
    clock: Clock,
    session: Option<Session>,
}

/// A subscription that runs.
struct Session {
    stream: Streaming<SubscribeResponse>,
    state: State,
    /// Whether the first state is complete.
    synced: bool,
    /// When the last answer was given, or the session began.
    answered: Time,
    /// When the first counter after it came.
    began: Option<Time>,
    /// When the last message came.
    heard: Time,
    messages: u32,
}

impl Reader {
    /// Connects not yet.
    pub fn new(options: Options) -> Reader {
        Reader { options, clock: Clock::begin(), session: None }
    }

    /// Values and paths of this session that could not be read: a target with many speaks another model.
    pub fn ignored(&self) -> u64 {
        self.session.as_ref().map_or(0, |session| session.state.ignored())
    }
}

impl crate::Reader for Reader {
    /// Waits for the next sample: it takes about [`Options::interval`].
    ///
    /// # Errors
    /// There is no connection, it ended, no sample came when three were due, or what came is beyond a limit.
    async fn read(&mut self) -> Result<SwitchCounters, ReadError> {
        if self.session.is_none() {
            if self.clock.is_old() {
                self.clock = Clock::begin();
            }
            let stream = subscribe(&self.options, request(&self.options)).await?;
            let now = self.clock.now();
            let (answered, heard) = (now, now);
            let state = State::new();
            self.session = Some(Session { stream, state, synced: false, answered, began: None, heard, messages: 0 });
        }
        let session = self.session.as_mut().expect("it has just been made");
        let answer = session.next(&self.options, self.clock).await;
        if answer.is_err() || self.clock.is_old() {
            self.session = None;
        }
        answer
    }
}

impl Session {
    /// Takes messages until a sample is complete.
    async fn next(&mut self, options: &Options, clock: Clock) -> Result<SwitchCounters, ReadError> {
        loop {
            let now = clock.now();
            let deadline = self.deadline(options);
            if now >= deadline {
                return self.due(options, now);
            }
            let message = tokio::time::timeout(duration(deadline - now), self.stream.message()).await;
            let Ok(message) = message else { continue };
            let message = message.map_err(|status| refused(&status))?.ok_or(ReadError::Closed)?;
            self.take(message, clock.now())?;
        }
    }

    /// When there is something to do without a message.
    fn deadline(&self, options: &Options) -> Time {
        let interval = options.interval;
        match self.began.filter(|_| self.synced) {
            // the sample is complete after a pause, or half an interval after it began
            Some(began) => {
                let pause = (interval / 10).clamp(PAUSE[0], PAUSE[1]);
                (self.heard + pause).min(began + interval / 2)
            }
            None if self.synced => self.answered + interval * 3 + options.timeout,
            None => self.answered + interval + options.timeout,
        }
    }

    fn due(&mut self, options: &Options, now: Time) -> Result<SwitchCounters, ReadError> {
        if !self.synced {
            let what = if self.began.is_some() { "some values came" } else { "it accepted the subscription" };
            return Err(ReadError::Interrupted(format!(
                "{what}, and no end of the first state (sync_response) within {}",
                now.saturating_sub(self.answered)
            )));
        }
        if self.began.take().is_none() {
            return Err(ReadError::Interrupted(format!(
                "no byte counters for {}, at an interval of {}",
                now.saturating_sub(self.answered),
                options.interval
            )));
        }
        self.answered = now;
        self.messages = 0;
        Ok(self.state.answer(&options.switch))
    }

    fn take(&mut self, SubscribeResponse { response }: SubscribeResponse, now: Time) -> Result<(), ReadError> {
        self.heard = now;
        self.messages += 1;
        if self.messages > MESSAGES_MAX {
            return Err(ReadError::Beyond { what: "messages of a sample", most: MESSAGES_MAX as usize });
        }
        match response {
            Some(Response::Update(notification)) => self.state.notify(&notification, now)?,
            Some(Response::SyncResponse(synced)) => self.synced |= synced,
            Some(Response::Error(error)) => {
                let code = tonic::Code::from_i32(error.code as i32);
                return Err(refused(&tonic::Status::new(code, error.message)));
            }
            None => {}
        }
        if self.state.is_fresh() {
            self.began.get_or_insert(now);
        }
        Ok(())
    }
}

/// Each element with the key that stands for all, if it is a list.
type Pattern = &'static [(&'static str, Option<&'static str>)];

const COUNTERS: Pattern = &[("interfaces", None), ("interface", Some("name")), ("state", None), ("counters", None)];
const STATUS: Pattern = &[("interfaces", None), ("interface", Some("name")), ("state", None), ("oper-status", None)];
const SPEED: Pattern =
    &[("interfaces", None), ("interface", Some("name")), ("ethernet", None), ("state", None), ("port-speed", None)];
const TYPE: Pattern = &[("interfaces", None), ("interface", Some("name")), ("state", None), ("type", None)];
const QUEUES: Pattern = &[
    ("qos", None),
    ("interfaces", None),
    ("interface", Some("interface-id")),
    ("output", None),
    ("queues", None),
    ("queue", Some("name")),
    ("state", None),
];
const NEIGHBOURS: Pattern = &[
    ("lldp", None),
    ("interfaces", None),
    ("interface", Some("name")),
    ("neighbors", None),
    ("neighbor", Some("id")),
    ("state", None),
];

fn request(options: &Options) -> SubscribeRequest {
    let mut paths = vec![
        (COUNTERS, SubscriptionMode::Sample),
        (STATUS, SubscriptionMode::OnChange),
        (SPEED, SubscriptionMode::OnChange),
        // it never changes, so some targets have no event of it
        (TYPE, SubscriptionMode::TargetDefined),
    ];
    if options.queues {
        paths.push((QUEUES, SubscriptionMode::Sample));
    }
    if options.neighbours {
        paths.push((NEIGHBOURS, SubscriptionMode::OnChange));
    }
    let subscription = |(pattern, mode): (Pattern, SubscriptionMode)| Subscription {
        path: Some(Path { elem: pattern.iter().map(element).collect(), ..Path::default() }),
        mode: mode.into(),
        sample_interval: if mode == SubscriptionMode::Sample { options.interval.as_ns() } else { 0 },
    };
    let encoding = match options.encoding {
        Encoding::Proto => proto::Encoding::Proto,
        Encoding::Json => proto::Encoding::Json,
        Encoding::JsonIetf => proto::Encoding::JsonIetf,
    };
    let list = SubscriptionList {
        prefix: None,
        subscription: paths.into_iter().map(subscription).collect(),
        mode: proto::subscription_list::Mode::Stream.into(),
        encoding: encoding.into(),
    };
    SubscribeRequest { request: Some(proto::subscribe_request::Request::Subscribe(list)) }
}

fn element((name, key): &(&str, Option<&str>)) -> PathElem {
    PathElem { name: (*name).to_string(), key: key.iter().map(|key| ((*key).to_string(), "*".to_string())).collect() }
}

/// Reads bytes of a target as its messages are read: one of the stream.
pub fn parsed(bytes: &[u8]) {
    let mut state = State::new();
    let response = SubscribeResponse::decode(bytes).ok().and_then(|message| message.response);
    if let Some(Response::Update(notification)) = response {
        let _ = state.notify(&notification, Time::ZERO);
        let _ = state.answer("s");
    }
}

#[cfg(test)]
mod tests;
