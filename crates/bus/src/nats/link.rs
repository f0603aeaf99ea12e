//! A connection to the fleet's servers: it is made and made anew by itself, in the time that its owner waits.

use super::backoff::delay;
use super::joining::{Credentials, Joining};
use crate::BusError;
use async_nats::client::PublishErrorKind;
use async_nats::connection::State;
use async_nats::{Auth, AuthError, Client, ConnectOptions, Event, ReconnectToServer, Server, Subscriber};
use bytes::Bytes;
use futures_util::FutureExt as _;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use tokio::time::sleep;

/// Interval of pings. A server that answers none of three is gone.
const PING: Duration = Duration::from_secs(15);
/// How long connecting may take.
const CONNECTING: Duration = Duration::from_secs(5);
/// Longest nonce of a server: its own have 15 to 20 bytes.
const NONCE_MAX: usize = 64;
/// Tasks that run before it is looked whether what was waited for is there.
const TURN_TASKS: u32 = 4;
/// How often all tasks get a turn where nothing is waited for: to read, to handle what was read, and to write.
const TURNS: usize = 3;
/// Servers of which it is said why they are not connected.
const SHOWN_MAX: usize = 3;
/// Attempts to have a message written, with a turn for the connection's task between two.
const TRIES: usize = 4;
/// How often it is looked whether a server is connected, where that is waited for.
const LOOK: Duration = Duration::from_millis(5);
/// How long a helper thread, which reads a file or asks for a name, waits for more to do.
const HELPER_IDLE: Duration = Duration::from_secs(1);

/// What the connection's own tasks leave for its owner.
#[derive(Debug, Default)]
struct Shared {
    /// Messages that were dropped because they were not taken in time.
    slow: AtomicU64,
    /// Connections that were made.
    made: AtomicU64,
    gone: Mutex<Gone>,
}

/// How long the servers have been gone.
#[derive(Debug, Default)]
struct Gone {
    since: Option<Instant>,
    /// What the last attempt failed of.
    why: Option<String>,
}

/// The connection.
pub(super) struct Link {
    // dropped in this order: the client has tasks in the runtime
    client: Client,
    shared: Arc<Shared>,
    runtime: Arc<Runtime>,
}

/// How much one end holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    /// Messages that have come and were not taken.
    pub received: usize,
    /// Messages to be written.
    pub sent: usize,
}

impl Link {
    /// Begins to connect; returns at once.
    ///
    /// # Errors
    /// The system has no room for a runtime.
    pub(super) fn join(joining: Joining, capacity: Capacity) -> Result<Link, BusError> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .event_interval(TURN_TASKS)
            .max_blocking_threads(1)
            .thread_keep_alive(HELPER_IDLE)
            .build()?;
        Link::within(Arc::new(runtime), joining, capacity)
    }

    /// Another connection, which works whenever one of both waits. What comes by one does not delay what goes by the other: the client writes
    /// only when it has read all that there is.
    ///
    /// # Errors
    /// As [`Link::join`].
    pub(super) fn beside(&self, joining: Joining, capacity: Capacity) -> Result<Link, BusError> {
        Link::within(self.runtime.clone(), joining, capacity)
    }

    fn within(runtime: Arc<Runtime>, joining: Joining, capacity: Capacity) -> Result<Link, BusError> {
        let shared = Arc::new(Shared::default());
        let client = runtime.block_on(connect(joining, capacity, &shared))?;
        Ok(Link { client, shared, runtime })
    }

    /// The client, to be used within [`Link::run`] and by tasks.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Starts a task, which runs while the owner waits.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// Whether a server is connected now.
    pub(super) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Why no server is connected, if that is known.
    pub(super) fn trouble(&self) -> Option<String> {
        let gone = self.shared.gone.lock().unwrap_or_else(PoisonError::into_inner);
        gone.why.clone().filter(|_| !self.is_connected())
    }

    /// Connections that were made so far: one may end and another be made while the owner does not look.
    pub(super) fn made(&self) -> u64 {
        self.shared.made.load(Ordering::Relaxed)
    }

    /// Messages that were dropped because they were not taken in time.
    pub(super) fn slow(&self) -> u64 {
        self.shared.slow.load(Ordering::Relaxed)
    }

    /// Subscribes, from the next connection on.
    ///
    /// # Errors
    /// The connection's task has died.
    pub(super) fn subscribe(&self, subject: &str) -> Result<Subscriber, BusError> {
        self.runtime.block_on(self.client.subscribe(subject.to_string())).map_err(|_| BusError::Gone)
    }

    /// Subscribes as one of a group, of which each message goes to one.
    ///
    /// # Errors
    /// The connection's task has died.
    pub(super) fn subscribe_as_one_of(&self, group: &str, subject: &str) -> Result<Subscriber, BusError> {
        let subscribe = self.client.queue_subscribe(subject.to_string(), group.to_string());
        self.runtime.block_on(subscribe).map_err(|_| BusError::Gone)
    }

    /// Writes without waiting: what does not fit is not sent. Nothing is kept for a server that is gone, since it would be old by then.
    ///
    /// # Errors
    /// [`BusError::Full`], [`BusError::Long`]; [`BusError::Gone`] if the connection's task has died.
    pub(super) fn publish(&self, subject: &str, bytes: Vec<u8>) -> Result<(), BusError> {
        if !self.is_connected() {
            return Err(BusError::Full);
        }
        let bytes = Bytes::from(bytes);
        for _ in 0..TRIES {
            match self.client.publish(subject.to_string(), bytes.clone()).now_or_never() {
                Some(Ok(())) => return Ok(()),
                Some(Err(error)) if error.kind() == PublishErrorKind::MaxPayloadExceeded => {
                    return Err(BusError::Long(bytes.len()));
                }
                Some(Err(_)) => return Err(BusError::Gone),
                // what was to be written before is written now
                None => self.turn(),
            }
        }
        Err(BusError::Full)
    }

    /// Lets tasks read and write what they can without waiting.
    pub(super) fn turn(&self) {
        self.runtime.block_on(async {
            for _ in 0..TURNS {
                yield_now().await;
            }
        });
    }

    /// Waits until a server is connected, at most for `wait`.
    ///
    /// # Errors
    /// None is, and why.
    pub(super) fn reach(&self, wait: Duration) -> Result<(), String> {
        let connected = async {
            while !self.is_connected() {
                sleep(LOOK).await;
            }
        };
        let why = || self.trouble().unwrap_or_else(|| "it does not answer".to_string());
        self.run(wait, connected).ok_or_else(|| format!("no server of the fleet can be reached: {}", why()))
    }

    /// What `next` gives within `wait`. Tasks get a turn even if there is no time to wait.
    pub(super) fn run<T>(&self, wait: Duration, next: impl Future<Output = T>) -> Option<T> {
        self.runtime.block_on(async {
            let mut next = std::pin::pin!(next);
            for _ in 0..TURNS {
                if let Some(got) = next.as_mut().now_or_never() {
                    return Some(got);
                }
                yield_now().await;
            }
            if wait.is_zero() { next.now_or_never() } else { tokio::time::timeout(wait, next).await.ok() }
        })
    }
}

async fn connect(joining: Joining, capacity: Capacity, shared: &Arc<Shared>) -> Result<Client, BusError> {
    let Joining { name, servers, ca, inbox, credentials } = joining;
    let authenticate = move |nonce: Vec<u8>| {
        let signed = sign(&*credentials, &nonce);
        async move { signed }
    };
    let (events, waits) = (shared.clone(), shared.clone());
    let options = ConnectOptions::with_auth_callback(authenticate)
        .name(name)
        .require_tls(true)
        // the fleet's own authority and no other; read anew for each connection, so that it can be replaced
        .add_root_certificates(ca)
        .ignore_discovered_servers()
        .custom_inbox_prefix(inbox)
        .subscription_capacity(capacity.received)
        .client_capacity(capacity.sent)
        .read_buffer_capacity(4096)
        .ping_interval(PING)
        .connection_timeout(CONNECTING)
        .retry_on_initial_connect()
        .max_reconnects(None)
        .event_callback(move |event| {
            events.on_event(&event);
            async {}
        })
        .reconnect_to_server_callback(move |servers, _| {
            let next = waits.next(&servers);
            async move { next }
        });
    options.connect(servers).await.map_err(|error| BusError::Io(std::io::Error::other(error)))
}

impl Shared {
    fn on_event(&self, event: &Event) {
        match event {
            Event::Connected => {
                self.made.fetch_add(1, Ordering::Relaxed);
                *self.gone.lock().unwrap_or_else(PoisonError::into_inner) = Gone::default();
            }
            Event::SlowConsumer(_) => {
                self.slow.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// The server to try next, and when: one that has failed least often.
    fn next(&self, servers: &[Server]) -> Option<ReconnectToServer> {
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, now) = (gone.since, Instant::now());
        gone.since = since.or(Some(now));
        let failed =
            servers.iter().filter_map(|server| Some(format!("{server}: {}", cause(server.last_error.as_ref()?))));
        let failed: Vec<String> = failed.take(SHOWN_MAX).collect();
        gone.why = if failed.is_empty() { gone.why.take() } else { Some(failed.join("; ")) };
        let [draw, choice] = [(); 2].map(|()| crate::random().map_or(u32::MAX, u32::from_ne_bytes));
        let least = servers.iter().map(|server| server.failed_attempts).min()?;
        let best: Vec<&Server> = servers.iter().filter(|server| server.failed_attempts == least).collect();
        let chosen = best[choice as usize % best.len()];
        // a process that starts tries each server once without a wait
        let is_first = chosen.failed_attempts == 0 && servers.iter().all(|server| !server.did_connect);
        let away = since.map_or(Duration::ZERO, |since| now - since);
        let wait = if is_first { Duration::ZERO } else { delay(away, draw) };
        Some(ReconnectToServer { addr: chosen.addr.clone(), delay: Some(wait) })
    }
}

/// Why a server is not connected; where its certificate's time is the reason, that may as well be this machine's clock.
fn cause(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let is_of = |words: &[&str]| words.iter().any(|words| text.contains(words));
    if is_of(&["UnknownIssuer", "BadSignature"]) {
        format!(
            "{text}; the server's certificate is not of this fleet's authority (ca.pem in the identity folder): start it with the \
             fleet's `nats/nats-server.conf`, or enrol in its own fleet"
        )
    } else if is_of(&["not valid yet", "NotValidYet", "expired", "Expired"]) {
        format!("{text}; renew it (`opentcp fleet certificate`), or set this machine's clock if `date` is wrong")
    } else {
        text
    }
}

/// The credentials of now, which a renewal may have replaced, and the server's nonce signed.
fn sign(credentials: &Credentials, nonce: &[u8]) -> Result<Auth, AuthError> {
    // a nonce is short text: nothing else is signed with the key that signs messages
    if nonce.len() > NONCE_MAX || !nonce.iter().all(u8::is_ascii_graphic) {
        return Err(AuthError::new("the server's nonce is none"));
    }
    let (jwt, key) = credentials().map_err(AuthError::new)?;
    let mut auth = Auth::new();
    auth.jwt = Some(jwt);
    auth.signature = Some(key.sign(nonce).to_vec());
    Ok(auth)
}
