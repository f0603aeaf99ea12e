//! The bus between machines: over NATS, with TLS, by the identities that [`fleet`] makes.

mod backoff;
mod bus;
mod folder;
mod hub;
mod kv;
mod link;
mod store;

pub use bus::NatsBus;
pub use hub::NatsHub;
pub use store::{NatsStore, STORED_MAX};
