//! The agent of a real host. [`policy::Agent`] says what is to be set; here it is set, watched, reported and given back.
//!
//! ```text
//! bus ──▶ policy::Agent ──▶ Plan ──▶ Tuner ──▶ kernel::retune (bpf/agent.c)
//!              ▲                        └────▶ Journal ──▶ routes, sysctls
//!   counters of the host
//! ```
//!
//! Nothing that is set outlives its reason. Rules in the kernel have deadlines that the kernel looks at by itself. What has none, routes
//! and sysctls, stands in a journal on disk before it is changed; [`guard`], a process of its own, undoes it when the agent dies, and
//! [`reset`] whenever it is asked to. All times are those since the machine started: the clock of the wall is never read.
#![forbid(unsafe_code)]

mod config;
mod daemon;
mod effective;
mod error;
mod guard;
mod hex;
mod journal;
mod lock;
mod measure;
mod namespaces;
mod netlink;
mod plan;
mod routes;
mod status;
mod telemetry;
mod tuner;

pub use config::{Config, Means, Places, cgroup_mount, host_name};
pub use daemon::{dry_run, run};
pub use error::AgentError;
pub use guard::{Reset, guard, reset};
pub use status::{Status, status};
