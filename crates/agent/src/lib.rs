//! The agent of a real host. [`policy::Agent`] decides what to set; this crate sets, watches, reports and restores it.
//!
//! ```text
//! bus ──▶ policy::Agent ──▶ Plan ──▶ Tuner ──▶ kernel::retune (bpf/agent.c)
//!              ▲                        └────▶ Reconciler ──▶ Journal ──▶ routes, sysctls
//!   counters of the host
//! ```
//!
//! No setting outlives its reason. Rules in the kernel have deadlines that the kernel checks by itself. Routes and sysctls have
//! none: they are in a journal on disk before they are changed; [`guard`], a process of its own, restores them when the agent dies, and
//! [`reset`] whenever it is called. All times count since boot: the wall clock is never read.
#![forbid(unsafe_code)]

mod config;
mod daemon;
mod effective;
mod error;
mod guard;
mod hex;
mod journal;
mod life;
mod lock;
mod measure;
mod namespaces;
mod netlink;
pub mod parsers;
mod plan;
mod reconcile;
mod routes;
mod status;
mod telemetry;
mod tuner;
mod watch;

pub use config::{Config, Means, Places, cgroup_mount, host_name};
pub use daemon::{dry_run, run};
pub use error::AgentError;
pub use guard::{Reset, guard, reset};
pub use life::Life;
pub use status::{Status, status};
pub use watch::METRICS;
