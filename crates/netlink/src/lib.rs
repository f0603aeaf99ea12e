//! Requests to the kernel about interfaces, addresses and routes (rtnetlink(7)), one at a time.
//!
//! The messages are those of `netlink-packet-route`; this crate sends them and reads the answers. [`Changes`] hears what changes, [`chains`] asks
//! about netfilter.

mod changes;
mod netfilter;
mod socket;

pub use changes::{Changed, Changes};
pub use netfilter::{Chain, Family, Hook, chains};
pub use socket::{Dump, Netlink};
