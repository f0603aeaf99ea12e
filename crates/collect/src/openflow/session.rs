//! The task of one switch: keeps the connection, answers readings, finds neighbours.

use super::channel::{Channel, Stream, refused, unexpected, within};
use super::listener::Seat;
use super::lldp::{self, Heard, LldpKey};
use super::statistics::{self, Description, FlowEntry};
use super::traffic::{Matrix, Traffic};
use super::wire::{self, Cursor, Entry, Message, PORT_MAX, Question, Role, kind};
use super::{Error, LldpSettings, PORTS_MAX, QUEUES_MAX, Settings, Tls, oxm};
use crate::{Counts, PortCounters, QueueCounters, SwitchCounters};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Place;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

/// Marks our flow entry.
pub(super) const COOKIE: u64 = 0x4f70_656e_5443_5001;
/// Of our flow entry: above what forwards packets, below what others reserve for the highest.
pub(super) const PRIORITY: u16 = 60_000;
/// A connection that is silent for so long is asked whether it is alive.
const SILENCE: Duration = Duration::from_secs(15);
/// And is given up after so long.
const DEATH: Duration = Duration::from_secs(45);
/// Between attempts to connect: doubled from the first to the second.
const RETRY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// For the removal of our flow entry.
const FAREWELL: Duration = Duration::from_secs(2);
/// The longest frame that is looked at as LLDP.
const FRAME_MAX: usize = 2048;

/// What a reader asks its task.
pub(super) enum Ask {
    Counters(oneshot::Sender<Result<SwitchCounters, Error>>),
    Traffic(oneshot::Sender<Result<Traffic, Error>>),
    Problem(oneshot::Sender<Option<String>>),
    Close(oneshot::Sender<()>),
}

/// Where connections come from.
pub(super) enum Source {
    Connect { address: String, tls: Option<Tls> },
    Listen(Arc<Seat>),
}

/// One switch.
pub(super) struct Session {
    settings: Settings,
    source: Source,
    channel: Option<Channel>,
    /// Why the last connection ended.
    last: Option<Error>,
    retry_at: Instant,
    retry_after: Duration,
    /// As last described.
    ports: BTreeMap<u32, Description>,
    ages: BTreeMap<u32, Age>,
    neighbours: BTreeMap<u32, (Heard, Instant)>,
    lldp_at: Instant,
    lldp_after: Duration,
    /// What goes wrong with LLDP.
    problem: Option<String>,
    matrix: Option<Matrix>,
    /// When the last complete reading of flow entries began.
    flows_at: Option<Instant>,
    /// When the switch was last heard before it was asked whether it is alive.
    echoed: Option<Instant>,
}

/// For how long a switch has had a port, and how often that began anew.
#[derive(Default)]
struct Age {
    seconds: u32,
    resets: u64,
}

impl Session {
    pub fn new(settings: Settings, source: Source) -> Session {
        let now = Instant::now();
        let matrix = settings.matrix.clone().map(Matrix::new);
        Session {
            settings,
            source,
            channel: None,
            last: None,
            retry_at: now,
            retry_after: RETRY[0],
            ports: BTreeMap::new(),
            ages: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            lldp_at: now,
            lldp_after: RETRY[0],
            problem: None,
            matrix,
            flows_at: None,
            echoed: None,
        }
    }

    /// Until the reader is closed or dropped.
    pub async fn run(mut self, mut asks: mpsc::Receiver<Ask>) {
        loop {
            let wake = self.wake_at();
            tokio::select! {
                ask = asks.recv() => match ask {
                    Some(Ask::Close(done)) => {
                        self.leave().await;
                        let _ = done.send(());
                        return;
                    }
                    Some(ask) => self.answer(ask).await,
                    None => return self.leave().await,
                },
                message = next(&mut self.channel) => {
                    let handled = match message {
                        Ok(message) => self.handle(&message).await,
                        Err(error) => Err(error),
                    };
                    self.note(&handled);
                }
                channel = arrival(&self.source) => {
                    let until = Instant::now() + self.settings.timeout;
                    // one that cannot be used leaves the one that there is
                    if let Err(error) = self.adopt(channel, until).await {
                        self.last = Some(error);
                    }
                }
                () = sleep_until(wake) => self.wake().await,
            }
        }
    }

    async fn answer(&mut self, ask: Ask) {
        let began = Instant::now();
        let until = began + self.settings.timeout;
        // a reader that is gone meanwhile misses nothing
        match ask {
            Ask::Counters(reply) => {
                let answer = self.counters(until).await;
                self.judge(answer.as_ref().err(), began);
                let _ = reply.send(answer);
            }
            Ask::Traffic(reply) => {
                let answer = self.traffic(until).await;
                self.judge(answer.as_ref().err(), began);
                let _ = reply.send(answer);
            }
            Ask::Problem(reply) => {
                let _ = reply.send(self.problem.clone());
            }
            Ask::Close(_) => {}
        }
    }

    /// What an error means for the connection.
    fn judge(&mut self, error: Option<&Error>, began: Instant) {
        let Some(error) = error else { return };
        let is_lost = match error {
            // a slow switch may still be there; one that said nothing at all is given up
            Error::Timeout { .. } => self.channel.as_ref().is_some_and(|channel| channel.heard < began),
            Error::Refused { .. } | Error::TooMany { .. } | Error::NotConnected { .. } | Error::Stopped => false,
            Error::Connect { .. }
            | Error::Closed { .. }
            | Error::Malformed { .. }
            | Error::Version { .. }
            | Error::WrongSwitch { .. }
            | Error::Tls { .. } => true,
        };
        if is_lost {
            self.lose(error.clone());
        }
    }

    fn note(&mut self, handled: &Result<(), Error>) {
        self.judge(handled.as_ref().err(), Instant::now());
    }

    fn lose(&mut self, why: Error) {
        self.channel = None;
        self.last = Some(why);
        self.retry_at = Instant::now() + self.retry_after;
        self.retry_after = (self.retry_after * 2).min(RETRY[1]);
    }

    fn wake_at(&self) -> Instant {
        let never = Instant::now() + Duration::from_secs(3600);
        match (&self.channel, &self.source) {
            (None, Source::Connect { .. }) => self.retry_at,
            (None, Source::Listen(_)) => never,
            (Some(channel), _) => {
                let silent = channel.heard + if self.echoed == Some(channel.heard) { DEATH } else { SILENCE };
                if self.settings.lldp.is_some() { silent.min(self.lldp_at) } else { silent }
            }
        }
    }

    async fn wake(&mut self) {
        let now = Instant::now();
        let until = now + self.settings.timeout;
        let Some(channel) = &mut self.channel else {
            let connected = self.connect(until).await;
            self.note(&connected);
            return;
        };
        let silence = now.saturating_duration_since(channel.heard);
        if silence >= DEATH {
            self.lose(Error::Closed { why: "it does not answer an echo request".to_string() });
            return;
        }
        if silence >= SILENCE && self.echoed != Some(channel.heard) {
            self.echoed = Some(channel.heard);
            let asked = channel.ask(kind::ECHO_REQUEST, &[]).await.map(|_| ());
            self.note(&asked);
        }
        if let Some(lldp) = self.settings.lldp.clone()
            && self.channel.is_some()
            && now >= self.lldp_at
        {
            self.lldp_at = now + self.lldp_after;
            self.lldp_after = (self.lldp_after * 2).min(lldp.interval);
            if let Err(error) = self.discover(&lldp, until).await {
                self.problem = Some(format!("LLDP: {error}"));
                self.judge(Some(&error), now);
            }
        }
    }

    /// Connects, or waits until the switch does, unless there is a connection.
    async fn connect(&mut self, until: Instant) -> Result<(), Error> {
        if self.channel.is_some() {
            return Ok(());
        }
        let channel = match &self.source {
            Source::Connect { address, tls } => within(until, "connection", open(address, tls.as_ref(), until)).await,
            Source::Listen(seat) => {
                let last = self.last.as_ref().map(|error| format!(" (the last time: {error})")).unwrap_or_default();
                let arrived = within(until, "connection", async { Ok(seat.arrival().await) }).await;
                arrived.map_err(|_| Error::NotConnected { last })
            }
        };
        self.adopt(channel?, until).await
    }

    /// Takes a connection into use: which switch, which role, which messages.
    async fn adopt(&mut self, mut channel: Channel, until: Instant) -> Result<(), Error> {
        let found = channel.features.datapath;
        if let Some(expected) = self.settings.datapath
            && expected != found
        {
            return Err(Error::WrongSwitch { expected, found });
        }
        let finds_neighbours = self.settings.lldp.is_some();
        within(until, "role", take_role(&mut channel, finds_neighbours)).await?;
        let xid = channel.next_xid();
        channel.send(&wire::asynchronous(xid, finds_neighbours, self.matrix.is_some())).await?;
        self.channel = Some(channel);
        self.echoed = None;
        self.retry_after = RETRY[0];
        (self.lldp_at, self.lldp_after) = (Instant::now(), RETRY[0]);
        self.problem = None;
        Ok(())
    }

    /// Asks, and hands each part of the answer to `each`. Other messages that come meanwhile are handled.
    async fn inquire(
        &mut self,
        question: Question<'_>,
        until: Instant,
        mut each: impl FnMut(&mut Session, Cursor<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let what = question.name();
        let xid = match &mut self.channel {
            Some(channel) => {
                let xid = channel.next_xid();
                channel.send(&wire::question(xid, question)).await?;
                xid
            }
            None => return Err(self.gone()),
        };
        loop {
            let message = within(until, what, next(&mut self.channel)).await?;
            match message.kind {
                kind::MULTIPART_REPLY if message.xid == xid => {
                    let part = wire::part(&message.body)?;
                    if part.number != question.number() {
                        return Err(unexpected(what, format!("multipart type {} is the answer", part.number)));
                    }
                    each(self, Cursor::new(what, part.body))?;
                    if !part.more {
                        return Ok(());
                    }
                }
                kind::ERROR if message.xid == xid => return Err(refused(what, &message)),
                _ => self.handle(&message).await?,
            }
        }
    }

    fn gone(&self) -> Error {
        Error::Closed { why: self.last.as_ref().map_or("it is gone".to_string(), ToString::to_string) }
    }

    async fn describe(&mut self, until: Instant) -> Result<(), Error> {
        let mut ports = BTreeMap::new();
        self.inquire(Question::Descriptions, until, |_, mut part| {
            while !part.is_empty() {
                let port = statistics::description(&mut part)?;
                bounded(&mut ports, port.number, port)?;
            }
            Ok(())
        })
        .await?;
        self.ports = ports;
        Ok(())
    }

    async fn counters(&mut self, until: Instant) -> Result<SwitchCounters, Error> {
        self.connect(until).await?;
        self.describe(until).await?;
        let mut counted = BTreeMap::new();
        self.inquire(Question::Ports, until, |_, mut part| {
            while !part.is_empty() {
                let port = statistics::port(&mut part)?;
                bounded(&mut counted, port.number, port)?;
            }
            Ok(())
        })
        .await?;
        let mut queues = BTreeMap::<u32, BTreeMap<u32, QueueCounters>>::new();
        let mut total = 0;
        let asked = self.inquire(Question::Queues, until, |_, mut part| {
            while !part.is_empty() {
                let queue = statistics::queue(&mut part)?;
                total += 1;
                if total > QUEUES_MAX {
                    return Err(Error::TooMany { what: "queues", most: QUEUES_MAX });
                }
                let counters = QueueCounters {
                    name: queue.queue.to_string(),
                    packets: queue.packets,
                    dropped: queue.dropped,
                    ..QueueCounters::default()
                };
                queues.entry(queue.port).or_default().insert(queue.queue, counters);
            }
            Ok(())
        });
        match asked.await {
            // some have none to count
            Ok(()) | Err(Error::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
        let numbers = self.ports.keys().chain(counted.keys()).copied().filter(|number| (1..PORT_MAX).contains(number));
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        numbers.dedup();
        self.forget(&numbers);
        let port = |number: u32| {
            let queues = queues.remove(&number).unwrap_or_default().into_values().collect();
            self.port(number, counted.get(&number), queues)
        };
        let ports = numbers.into_iter().map(port).collect();
        Ok(SwitchCounters { switch: self.name(), ports })
    }

    fn name(&self) -> String {
        let found = || self.channel.as_ref().map(|channel| lldp::chassis(channel.features.datapath));
        if self.settings.name.is_empty() { found().unwrap_or_default() } else { self.settings.name.clone() }
    }

    fn port(
        &mut self,
        number: u32,
        counted: Option<&statistics::PortStatistics>,
        queues: Vec<QueueCounters>,
    ) -> PortCounters {
        let described = self.ports.get(&number);
        let name = described.map(|port| port.name.clone()).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| number.to_string());
        let [received, sent] = counted.map_or([Counts::default(); 2], |port| [port.received, port.sent]);
        let discontinuity = counted.and_then(|port| port.age_s).map(|seconds| {
            let age = self.ages.entry(number).or_default();
            age.resets += u64::from(seconds < age.seconds);
            age.seconds = seconds;
            age.resets
        });
        PortCounters {
            number,
            is_virtual: false,
            rate: self.settings.rates.get(&name).copied().or_else(|| described.and_then(|port| port.rate)),
            up: described.map(|port| port.up),
            neighbour: self.neighbours.get(&number).map(|(heard, _)| heard.neighbour.clone()),
            received,
            sent,
            queues,
            width: 64,
            discontinuity,
            name,
        }
    }

    /// Forgets neighbours whose time is over, and what is known of ports that are gone.
    fn forget(&mut self, numbers: &[u32]) {
        let now = Instant::now();
        let is_there = |number: &u32| numbers.binary_search(number).is_ok();
        self.neighbours.retain(|number, (_, until)| is_there(number) && *until > now);
        self.ages.retain(|number, _| is_there(number));
    }

    async fn traffic(&mut self, until: Instant) -> Result<Traffic, Error> {
        self.connect(until).await?;
        let Some(matrix) = &mut self.matrix else { return Ok(Traffic::default()) };
        matrix.begin();
        let question = Question::Flows { table: matrix.table(), fields: &[] };
        let began = Instant::now();
        self.inquire(question, until, |session, mut part| {
            let Some(matrix) = &mut session.matrix else { return Ok(()) };
            while !part.is_empty() {
                matrix.add(&statistics::flow(&mut part)?)?;
            }
            Ok(())
        })
        .await?;
        let interval = self.flows_at.replace(began).map(|before| began - before);
        Ok(self.matrix.as_mut().map(|matrix| matrix.end(interval)).unwrap_or_default())
    }

    /// What a switch says unasked, or too late.
    async fn handle(&mut self, message: &Message) -> Result<(), Error> {
        match message.kind {
            kind::ECHO_REQUEST => {
                if let Some(channel) = &mut self.channel {
                    channel.send(&wire::message(kind::ECHO_REPLY, message.xid, &message.body)).await?;
                }
            }
            kind::PACKET_IN => {
                let arrived = wire::packet_in(&message.body)?;
                let port = oxm::read(arrived.fields)?.in_port;
                if let (Some(lldp), Some(port)) = (self.settings.lldp.clone(), port)
                    && arrived.packet.len() <= FRAME_MAX
                {
                    // a frame that a host damaged is the host's matter
                    if let Ok(Some(heard)) = lldp::read(arrived.packet, &lldp.key) {
                        self.hear(port, heard, &lldp);
                    }
                }
            }
            kind::PORT_STATUS => {
                const DELETED: u8 = 1;
                let mut cursor = Cursor::new("port status", &message.body);
                let reason = cursor.u8()?;
                cursor.skip(7)?;
                let port = statistics::description(&mut cursor)?;
                if reason == DELETED || !port.up {
                    self.neighbours.remove(&port.number);
                } else {
                    self.lldp_at = self.lldp_at.min(Instant::now() + RETRY[0]);
                }
            }
            kind::FLOW_REMOVED => {
                if let Some(matrix) = &mut self.matrix {
                    matrix.remove(&statistics::removed(&message.body)?)?;
                }
            }
            kind::ERROR => {
                let (kind, code) = wire::error(&message.body)?;
                self.problem = Some(format!("the switch answers with an error: {}", wire::error_name(kind, code)));
            }
            _ => {}
        }
        Ok(())
    }

    fn hear(&mut self, port: u32, heard: Heard, lldp: &LldpSettings) {
        let now = Instant::now();
        let is_own = |port: &Description| heard.neighbour.system == self.name() && heard.neighbour.port == port.name;
        // a frame that returns by the port that sent it: a loop behind it
        if !(1..PORT_MAX).contains(&port) || self.ports.get(&port).is_some_and(is_own) {
            return;
        }
        let known = self.neighbours.get(&port).filter(|(_, until)| *until > now);
        let is_better = known.is_some_and(|(known, _)| known.sealed && !heard.sealed);
        if is_better || !(heard.sealed || lldp.foreign) {
            return;
        }
        if heard.ttl.is_zero() {
            self.neighbours.remove(&port);
        } else if known.is_some() || self.neighbours.len() < PORTS_MAX {
            let until = now + heard.ttl;
            self.neighbours.insert(port, (heard, until));
        }
    }

    /// Sees to the flow entry that sends LLDP to us, and sends a frame out of every port.
    async fn discover(&mut self, lldp: &LldpSettings, until: Instant) -> Result<(), Error> {
        self.describe(until).await?;
        let mut others = None;
        self.inquire(Question::Flows { table: 0, fields: &oxm::LLDP }, until, |_, mut part| {
            while !part.is_empty() {
                let entry = statistics::flow(&mut part)?;
                if is_in_our_place(&entry) {
                    others = Some(entry.cookie);
                }
            }
            Ok(())
        })
        .await?;
        let lifetime_s = lldp.lifetime_s();
        self.problem = match others {
            // it sends LLDP to the controllers too, in all likelihood
            Some(cookie) => Some(format!(
                "LLDP: a flow entry of another controller (cookie {cookie:#x}) has the match and priority of ours, so ours was not added"
            )),
            None => self.confirm(lifetime_s, until).await?,
        };
        let mut frames = Vec::new();
        let system = self.name();
        let Some(channel) = &mut self.channel else { return Err(self.gone()) };
        for port in self.ports.values().filter(|port| port.up && (1..PORT_MAX).contains(&port.number)) {
            let sender = lldp::Sender {
                datapath: channel.features.datapath,
                system: &system,
                port: &port.name,
                address: port.address,
                ttl_s: lifetime_s,
            };
            let xid = channel.next_xid();
            frames.extend(wire::packet_out(xid, port.number, &lldp::frame(&sender, &lldp.key)));
        }
        channel.send(&frames).await
    }

    /// Adds our entry, or restarts its lifetime; returns what the switch has against it.
    async fn confirm(&mut self, lifetime_s: u16, until: Instant) -> Result<Option<String>, Error> {
        let Some(channel) = &mut self.channel else { return Err(self.gone()) };
        let added = channel.next_xid();
        channel.send(&wire::add_entry(added, &own_entry(lifetime_s))).await?;
        let barrier = channel.ask(kind::BARRIER_REQUEST, &[]).await?;
        let mut problem = None;
        loop {
            let message = within(until, "flow entry for LLDP", next(&mut self.channel)).await?;
            match message.kind {
                kind::BARRIER_REPLY if message.xid == barrier => return Ok(problem),
                kind::ERROR if message.xid == added => {
                    problem = Some(refused("flow entry for LLDP", &message).to_string());
                }
                _ => self.handle(&message).await?,
            }
        }
    }

    /// Removes our entry, and closes the connection.
    async fn leave(&mut self) {
        let (Some(channel), true) = (&mut self.channel, self.settings.lldp.is_some()) else { return };
        let until = Instant::now() + FAREWELL;
        let gone = async {
            let xid = channel.next_xid();
            channel.send(&wire::delete_entries(xid, &own_entry(0))).await?;
            let barrier = channel.ask(kind::BARRIER_REQUEST, &[]).await?;
            loop {
                let message = channel.next_of_ours().await?;
                if message.kind == kind::BARRIER_REPLY && message.xid == barrier {
                    return Ok(());
                }
            }
        };
        // else the entry ends by its lifetime
        let _ = within(until, "removal of the flow entry", gone).await;
    }
}

fn own_entry(lifetime_s: u16) -> Entry<'static> {
    Entry { cookie: COOKIE, priority: PRIORITY, lifetime_s, fields: &oxm::LLDP }
}

/// Whether adding ours would replace it.
fn is_in_our_place(entry: &FlowEntry<'_>) -> bool {
    entry.table == 0 && entry.priority == PRIORITY && entry.fields == oxm::LLDP && entry.cookie != COOKIE
}

fn bounded<T>(ports: &mut BTreeMap<u32, T>, number: u32, port: T) -> Result<(), Error> {
    let most = PORTS_MAX;
    if ports.len() >= most && !ports.contains_key(&number) {
        return Err(Error::TooMany { what: "ports", most });
    }
    match ports.entry(number) {
        Place::Occupied(_) => Err(unexpected("ports", format!("port {number} is there twice"))),
        Place::Vacant(place) => {
            place.insert(port);
            Ok(())
        }
    }
}

async fn next(channel: &mut Option<Channel>) -> Result<Message, Error> {
    match channel {
        Some(channel) => channel.next_of_ours().await,
        None => pending().await,
    }
}

async fn arrival(source: &Source) -> Channel {
    match source {
        Source::Listen(seat) => seat.arrival().await,
        Source::Connect { .. } => pending().await,
    }
}

async fn open(address: &str, tls: Option<&Tls>, until: Instant) -> Result<Channel, Error> {
    let failed = |why: String| Error::Connect { address: address.to_string(), why };
    let stream = TcpStream::connect(address).await.map_err(|error| failed(error.to_string()))?;
    let _ = stream.set_nodelay(true);
    let stream: Box<dyn Stream> = match tls {
        Some(tls) => tls.connect(stream).await?,
        None => Box::new(stream),
    };
    let channel = Channel::open(stream, until).await?;
    if channel.features.auxiliary == 0 { Ok(channel) } else { Err(failed("an auxiliary connection".to_string())) }
}

/// Equal, to send packets; else slave, so that the switch itself refuses every change.
async fn take_role(channel: &mut Channel, sends_packets: bool) -> Result<(), Error> {
    let (role, generation) = if sends_packets {
        (Role::Equal, 0)
    } else {
        // a generation that is not older than the last that the switch has seen
        (Role::Slave, ask_role(channel, Role::Same, 0).await?.flatten().unwrap_or(0))
    };
    // a switch without roles has one controller, which may do everything
    ask_role(channel, role, generation).await.map(|_| ())
}

/// The generation in the answer; `None` if the switch refuses.
async fn ask_role(channel: &mut Channel, role: Role, generation: u64) -> Result<Option<Option<u64>>, Error> {
    let xid = channel.next_xid();
    channel.send(&wire::role(xid, role, generation)).await?;
    loop {
        let message = channel.next_of_ours().await?;
        match message.kind {
            kind::ROLE_REPLY if message.xid == xid => return wire::generation(&message.body).map(Some),
            kind::ERROR if message.xid == xid => return Ok(None),
            kind::ECHO_REQUEST => {
                channel.send(&wire::message(kind::ECHO_REPLY, message.xid, &message.body)).await?;
            }
            _ => {}
        }
    }
}

impl LldpSettings {
    /// For how long a neighbour, and our entry, hold without renewal.
    fn lifetime_s(&self) -> u16 {
        (self.interval.as_secs().saturating_mul(4)).clamp(8, 3600) as u16
    }
}

/// A key stands alone in settings, so that two readers share it.
impl From<LldpKey> for LldpSettings {
    fn from(key: LldpKey) -> LldpSettings {
        LldpSettings { key, interval: Duration::from_secs(30), foreign: false }
    }
}
