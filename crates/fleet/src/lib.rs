//! Identities of a fleet's machines: keys, tokens, enrolment, rights on the bus, revocation.
#![forbid(unsafe_code)]

mod member;

pub use member::{Member, Role};
