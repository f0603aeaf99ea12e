//! Shared by the tests of several crates. Only tests and benchmarks depend on it.
//!
//! - A test of the kernel, or in real time: [`root`] and [`or_skip`] print why it is skipped, [`Machine::take`], [`Machine::share`] and
//!   [`Algorithms`] serialise tests, [`Namespaces`], [`cable`] and [`Cgroup`] make hosts, [`Running`] is a program that runs there, [`Burners`] take CPUs
//!   from it, [`eventually`] waits for an effect. [`NatsServer`] carries messages between them, [`OpenVSwitch`] their packets. [`WallClock`] is
//!   wrong for one process. [`browser`] is one of the machine's.
//! - A test of a scenario: [`scenario()`] parses a text, [`LossyDownload`] writes a common one. [`policy_for_all`] writes a policy.
//! - A randomised test: [`Random`] generates numbers from a seed, [`Wire`] loses, delays and damages packets, [`asked`] reads how many
//!   cases to run.
//!
//! Helpers that need one of our crates, other than the scenario parser, belong to that crate's tests: this one must not depend on a
//! crate whose tests use it.
#![forbid(unsafe_code)]

mod asked;
mod cgroup;
mod machine;
mod nats;
mod network;
mod open_vswitch;
mod policies;
mod programs;
mod random;
mod running;
mod scenarios;
mod wait;
mod wall_clock;
mod wire;

pub use asked::asked;
pub use cgroup::{Cgroup, Entered, command_in};
pub use machine::{Algorithms, Machine, cgroups, or_skip, root};
pub use nats::{NatsServer, free_port, nats_program};
pub use network::{End, Namespaces, cable, command, counters, inside, ip, run_inside, set_sysctl, talk};
pub use open_vswitch::OpenVSwitch;
pub use policies::policy_for_all;
pub use programs::{browser, on_path};
pub use random::Random;
pub use running::{Burners, Running};
pub use scenarios::{LossyDownload, scenario, scenario_in, scenario_set, scenario_with};
pub use wait::{PATIENCE, eventually, until};
pub use wall_clock::WallClock;
pub use wire::{Bottleneck, Faults, Wire};
