//! The bus between machines: over NATS, with TLS, by the identities that [`fleet`] makes.

mod backoff;
mod bus;
mod enroll;
mod folder;
mod hub;
mod joining;
mod kv;
mod link;
mod register;
mod store;

pub use bus::NatsBus;
pub use enroll::{EnrollError, enroll};
pub use hub::NatsHub;
pub use register::ask_fleet;
pub use store::{NatsStore, STORED_MAX};

use std::time::{SystemTime, UNIX_EPOCH};

/// The time of day, for what has an expiry, seconds since 1970.
fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
