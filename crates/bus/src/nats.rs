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

use crate::clock::unix_s;
