//! Identities, tokens and enrolment; and a real nats-server that enforces what they allow.

mod common;
mod server;
