//! The congestion-control algorithms of `cc/`, built natively: what they are, and how a host calls them.
//!
//! [`Algorithm::builtins`] lists them, [`Algorithm::named`] finds one, [`Algorithm::load`] compiles and opens a user's
//! file. [`check_invariants`] runs an algorithm through what can happen to flows and looks for violations. A host embeds
//! a [`TcpSock`], points its `icsk_ca_ops` at [`Algorithm::ops`], and calls the hooks (`ca_*` on [`TcpSock`]) in Linux's
//! order. [`Algorithm::register`] takes one that is not C ([`Hooks`]). This crate is the only one that crosses into C.
//!
//! Users' files and the checks want a compiler, a dynamic linker and processes; without an operating system, as in a
//! browser, there are the built-in algorithms only.

#![allow(unsafe_code, reason = "crossing into C is what this crate is for; each block says why it is sound")]

#[cfg(not(unix))]
mod builtin_only;
#[cfg(unix)]
mod check;
#[cfg(unix)]
mod confine;
#[cfg(unix)]
mod contract;
#[cfg(unix)]
mod elf;
mod error;
#[cfg(unix)]
mod foreign;
#[cfg(unix)]
mod guard;
mod helpers;
mod hook;
mod hooks;
#[cfg(unix)]
mod load;
#[cfg(unix)]
pub mod model;
mod ops;
mod registry;
pub mod replay;
pub mod replay_watch;
pub mod sock;
#[cfg(unix)]
mod table;
#[cfg(unix)]
mod toolchain;

#[cfg(unix)]
pub use check::{Report, check_invariants};
pub use error::LoadError;
#[cfg(unix)]
pub use guard::interrupted;
pub use hook::{HOOKS, Hook};
pub use hooks::{Call, Hooks, take_fault};
#[cfg(unix)]
pub use load::compile_for_bpf;
#[cfg(unix)]
pub use model::{Fault, Violation};
pub use ops::CongestionOps;
pub use registry::{Algorithm, Category};
pub use sock::{AckSample, CaEvent, MinMax, MinMaxSample, RateSample, TcpSock};
#[cfg(unix)]
pub use toolchain::{bpf_compiler, native_compiler};
