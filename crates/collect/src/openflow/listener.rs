//! Switches that connect to us.

use super::Tls;
use super::channel::{Channel, Stream};
use super::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

/// Most connections at once that have not yet said who they are; more are closed.
const UNKNOWN_MAX: usize = 64;
/// How long one may take to say it.
const GREETING: Duration = Duration::from_secs(5);

/// Which switch a reader waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The addresses that it may come from; from others nothing is read. `None`: any.
    pub peers: Option<Vec<IpAddr>>,
    /// Its datapath's number. `None`: any, where a peer is one switch.
    pub datapath: Option<u64>,
}

impl Expected {
    fn may_come_from(&self, peer: IpAddr) -> bool {
        self.peers.as_ref().is_none_or(|peers| peers.contains(&peer))
    }

    /// Whether a connection may be either's: nothing tells the two apart.
    pub(crate) fn is_ambiguous_with(&self, other: &Expected) -> bool {
        let has_same_peer = match (&self.peers, &other.peers) {
            (Some(ours), Some(theirs)) => ours.iter().any(|peer| theirs.contains(peer)),
            _ => true,
        };
        has_same_peer && self.datapath == other.datapath
    }
}

/// Where the connection of one expected switch is put.
pub(super) struct Seat {
    expected: Expected,
    arrived: Mutex<Option<Channel>>,
    notify: Notify,
}

impl Seat {
    /// Waits for a connection. May be dropped before it is done.
    pub async fn arrival(&self) -> Channel {
        loop {
            if let Some(channel) = locked(&self.arrived).take() {
                return channel;
            }
            self.notify.notified().await;
        }
    }

    fn put(&self, channel: Channel) {
        *locked(&self.arrived) = Some(channel);
        self.notify.notify_one();
    }
}

/// Listens for switches. When dropped, it stops; connections that readers have taken stay.
pub struct Listener {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    seats: Mutex<Vec<Arc<Seat>>>,
    refused: AtomicU64,
}

impl Listener {
    /// Listens at this address, within a tokio runtime. With `tls`, nothing but TLS is accepted.
    ///
    /// # Errors
    /// The address is not ours, or in use.
    pub async fn bind(address: SocketAddr, tls: Option<Tls>) -> io::Result<Listener> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?;
        let shared = Arc::new(Shared::default());
        let task = tokio::spawn(accept(socket, tls, Arc::clone(&shared)));
        Ok(Listener { address, shared, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections that were closed because nobody expects them, they were too many, or did not say who they are.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    pub(super) fn expect(&self, expected: Expected) -> Arc<Seat> {
        let seat = Arc::new(Seat { expected, arrived: Mutex::new(None), notify: Notify::new() });
        let mut seats = locked(&self.shared.seats);
        // of readers that are gone
        seats.retain(|seat| Arc::strong_count(seat) > 1);
        seats.push(Arc::clone(&seat));
        seat
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listener({})", self.address)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(socket: TcpListener, tls: Option<Tls>, shared: Arc<Shared>) {
    let unknown = Arc::new(Semaphore::new(UNKNOWN_MAX));
    loop {
        let Ok((stream, peer)) = socket.accept().await else {
            // for want of descriptors, for example
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let peer = peer.ip().to_canonical();
        let is_expected = locked(&shared.seats).iter().any(|seat| seat.expected.may_come_from(peer));
        let Some(permit) = is_expected.then(|| Arc::clone(&unknown).try_acquire_owned().ok()).flatten() else {
            shared.refused.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let (tls, shared) = (tls.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            let until = Instant::now() + GREETING;
            let greeted = timeout_at(until, greet(stream, tls, until)).await;
            drop(permit);
            let seated = greeted.ok().and_then(Result::ok).is_some_and(|channel| seat(channel, peer, &shared));
            if !seated {
                shared.refused.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

async fn greet(stream: TcpStream, tls: Option<Tls>, until: Instant) -> Result<Channel, Error> {
    let _ = stream.set_nodelay(true);
    let stream: Box<dyn Stream> = match tls {
        Some(tls) => tls.accept(stream).await?,
        None => Box::new(stream),
    };
    Channel::open(stream, until).await
}

/// Gives the connection to the reader that expects it: the one that names the datapath, before one that takes any.
fn seat(channel: Channel, peer: IpAddr, shared: &Shared) -> bool {
    let found = channel.features;
    if found.auxiliary != 0 {
        return false;
    }
    let seats = locked(&shared.seats);
    let fits = |wanted: Option<u64>| {
        seats.iter().find(|seat| seat.expected.may_come_from(peer) && seat.expected.datapath == wanted)
    };
    let Some(seat) = fits(Some(found.datapath)).or_else(|| fits(None)) else { return false };
    seat.put(channel);
    true
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // nothing panics while one is locked
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
