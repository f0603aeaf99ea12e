//! The way to the Oracle, on a thread of its own: joining the bus, and taking what it sends, may wait, and sources must not.

use bus::{Address, Bus, BusError, Clock, Measurement};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use units::Time;

/// The longest wait before a measurement is looked for.
const LOOK: Duration = Duration::from_millis(100);
/// Shortest and longest wait before the bus is joined once more.
const RETRY_MIN: Time = Time::from_secs(1);
const RETRY_MAX: Time = Time::from_secs(30);
/// How often a full bus is tried with one message.
const FULL_TRIES: u32 = 50;
const FULL_WAIT: Duration = Duration::from_millis(20);
/// Most messages of the Oracle's that are taken at once.
const DRAIN_MAX: u32 = 1000;
/// Most lines that wait to be said.
const SAID_MAX: usize = 64;

/// Sends measurements until it is dropped.
pub(super) struct Sender {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What both threads see.
#[derive(Default)]
struct Shared {
    /// The measurement that is sent next, and when it was made: a newer one takes the place of one that could not be sent.
    next: Mutex<Option<(Time, Measurement)>>,
    said: Mutex<Vec<String>>,
    connected: AtomicBool,
    sent: AtomicU64,
    end: AtomicBool,
}

impl Sender {
    /// Begins to join the bus.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(address: Address, clock: Clock) -> io::Result<Sender> {
        let shared = Arc::new(Shared::default());
        let seen = shared.clone();
        let work = move || {
            // the bus stays on this thread
            let (retry_at, wait) = (Time::ZERO, RETRY_MIN);
            Work { shared: seen, address, clock, bus: None, retry_at, wait, trouble: None }.run();
        };
        let thread = thread::Builder::new().name("sender".to_string()).spawn(work)?;
        Ok(Sender { shared, thread: Some(thread) })
    }

    /// Sends what was measured at `now`, as soon as the bus takes it.
    pub fn send(&self, measurement: Measurement, now: Time) {
        *lock(&self.shared.next) = Some((now, measurement));
    }

    /// What is to be said of the bus.
    pub fn said(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.shared.said))
    }

    /// Whether the bus is there now.
    pub fn is_connected(&self) -> bool {
        self.shared.connected.load(Ordering::Relaxed)
    }

    /// Measurements that were sent.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::Relaxed);
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread's state.
struct Work {
    shared: Arc<Shared>,
    address: Address,
    clock: Clock,
    bus: Option<Box<dyn Bus>>,
    /// When the bus is joined next, and the wait after that.
    retry_at: Time,
    wait: Time,
    /// What was said of it.
    trouble: Option<String>,
}

impl Work {
    fn run(mut self) {
        while !self.shared.end.load(Ordering::Relaxed) {
            if self.bus.is_none() && self.clock.now() >= self.retry_at {
                self.join();
            }
            self.drain();
            let connected = self.bus.as_ref().is_some_and(|bus| bus.is_connected());
            if connected != self.shared.connected.swap(connected, Ordering::Relaxed) && connected {
                self.say(format!("sends to {}", self.address));
                self.trouble = None;
            }
            if connected {
                self.send();
            } else if let Some(trouble) = self.bus.as_ref().and_then(|bus| bus.trouble()) {
                self.lament(format!("{}: {trouble}", self.address));
            }
        }
    }

    fn say(&self, line: String) {
        let mut said = lock(&self.shared.said);
        if said.len() < SAID_MAX {
            said.push(line);
        }
    }

    /// Says what is wrong, once.
    fn lament(&mut self, trouble: String) {
        if self.trouble.as_ref() != Some(&trouble) {
            self.say(format!("<4>{trouble}; trying on"));
            self.trouble = Some(trouble);
        }
    }

    fn join(&mut self) {
        match self.address.connect() {
            Ok(bus) => (self.bus, self.wait) = (Some(bus), RETRY_MIN),
            Err(error) => {
                self.lament(error.to_string());
                self.retry_at = self.clock.now() + self.wait;
                self.wait = (self.wait * 2).min(RETRY_MAX);
            }
        }
    }

    /// Takes what the Oracle sends to all, which is not for collectors: it would drop one that does not read. Waits if there is nothing.
    fn drain(&mut self) {
        let Some(bus) = &mut self.bus else { return thread::sleep(LOOK) };
        match bus.receive(LOOK) {
            Ok(Some(_)) => drop((0..DRAIN_MAX).find(|_| !matches!(bus.receive(Duration::ZERO), Ok(Some(_))))),
            Ok(None) => (),
            Err(error) => self.lost(&error),
        }
    }

    fn lost(&mut self, error: &BusError) {
        self.lament(format!("{}: {error}", self.address));
        (self.bus, self.retry_at) = (None, self.clock.now() + self.wait);
    }

    fn send(&mut self) {
        let Some((at, mut measurement)) = lock(&self.shared.next).take() else { return };
        let Some(bus) = &mut self.bus else { return };
        // it has waited, and so it is older
        let waited = self.clock.now().saturating_sub(at);
        for link in &mut measurement.links {
            link.age = link.age.map(|age| age + waited);
        }
        for message in measurement.to_messages() {
            let mut result = bus.send(&message);
            for _ in 0..FULL_TRIES {
                if !matches!(result, Err(BusError::Full)) || self.shared.end.load(Ordering::Relaxed) {
                    break;
                }
                thread::sleep(FULL_WAIT);
                result = bus.send(&message);
            }
            match result {
                Ok(()) => (),
                Err(BusError::Full) => return self.lament(format!("{}: {}", self.address, BusError::Full)),
                Err(error) => return self.lost(&error),
            }
        }
        self.shared.sent.fetch_add(1, Ordering::Relaxed);
    }
}
