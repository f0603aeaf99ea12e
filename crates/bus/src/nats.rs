//! The bus between machines: over NATS, with TLS, by the identities that [`fleet`] makes.

mod backoff;
mod bus;
mod folder;
mod hub;
mod kv;
mod link;

pub use bus::NatsBus;
pub use hub::NatsHub;
