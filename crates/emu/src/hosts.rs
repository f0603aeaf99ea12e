//! Real Linux hosts: a network namespace each, with a TAP as its network card.
//!
//! A namespace here has no name in the file system. It is held by a thread of this process (and by the files and processes
//! in it), so it ends with the process, however that ends: nothing is left to remove after Ctrl-C, a
//! panic or `kill -9`. Only programs that a host's programs have left in the background can outlive a killed run;
//! they keep their namespace, which is marked with its owner, and [`clean`] ends them.
//!
//! Hosts are on one subnet, know each other's Ethernet addresses beforehand and speak no IPv6, so nothing is on the wire but
//! what programs send.

mod error;
mod found;
mod host;
mod names;
mod namespace;
mod netlink;
mod settings;

pub use error::Error;
pub(crate) use found::Mark;
pub use found::{Cleaned, Found, clean, find, list};
pub use host::{Counters, Host, HostRoute, mac_of};
pub use names::with_names;
pub(crate) use settings::set_sysctl;
pub use settings::{CardRate, HostSettings};

/// The name of every host's interface, as a first network card is called.
pub const INTERFACE: &str = "eth0";
