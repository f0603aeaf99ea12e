//! What the tests of several crates share. Only tests and benchmarks depend on it.
//!
//! - A test of the kernel, or in real time: [`root`] and [`or_skip`] say why it is skipped, [`Machine::take`] has tests wait for each
//!   other, [`Namespaces`] and [`cable`] make hosts, [`Running`] is a program that runs there, [`eventually`] waits for what it does.
//! - A test of a scenario: [`scenario()`] reads one from text, [`LossyDownload`] writes a usual one.
//! - A test by chance: [`Random`] gives a seed's numbers, [`Wire`] does to packets what wires do, [`asked`] reads how many cases somebody
//!   wants.
//!
//! What needs a crate of ours beside those that read scenarios is that crate's tests' own: a crate whose tests use this one must not be
//! among its dependencies.
#![forbid(unsafe_code)]

mod asked;
mod machine;
mod network;
mod random;
mod running;
mod scenarios;
mod wait;
mod wire;

pub use asked::asked;
pub use machine::{Machine, cgroups, or_skip, root};
pub use network::{End, Namespaces, cable, command, inside, ip, set_sysctl, talk};
pub use random::Random;
pub use running::Running;
pub use scenarios::{LossyDownload, scenario, scenario_in, scenario_set, scenario_with};
pub use wait::{PATIENCE, eventually, until};
pub use wire::{Bottleneck, Faults, Wire};
