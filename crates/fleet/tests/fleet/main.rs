//! Identities, tokens and enrolment; and a real nats-server that enforces what they allow.

mod bad_input;
mod bounds;
mod certificates;
mod common;
mod enrolment;
mod folders;
mod rotation;
mod server;
