//! The congestion-control algorithms of `cc/`, built natively: what they are, and how a host calls them.
//!
//! [`Algorithm::builtins`] lists them, [`Algorithm::named`] finds one, [`Algorithm::load`] compiles and opens a user's
//! file. [`check_invariants`] runs an algorithm through what can happen to flows and looks for violations. A host embeds
//! a [`TcpSock`], points its `icsk_ca_ops` at [`Algorithm::ops`], and calls the hooks (`ca_*` on [`TcpSock`]) in Linux's
//! order. [`Algorithm::register`] takes one that is not C ([`Hooks`]). This crate is the only one that crosses into C.

#![allow(unsafe_code, reason = "crossing into C is what this crate is for; each block says why it is sound")]

mod check;
mod contract;
mod elf;
mod error;
mod foreign;
mod helpers;
mod hook;
mod hooks;
mod load;
pub mod model;
mod ops;
mod registry;
pub mod replay;
pub mod replay_watch;
pub mod sock;
mod table;
mod toolchain;

pub use check::{Report, check_invariants};
pub use error::LoadError;
pub use hook::{HOOKS, Hook};
pub use hooks::{Call, Hooks, take_fault};
pub use load::compile_for_bpf;
pub use model::{Fault, Violation};
pub use ops::CongestionOps;
pub use registry::{Algorithm, Category};
pub use sock::{AckSample, CaEvent, MinMax, MinMaxSample, RateSample, TcpSock};
pub use toolchain::{bpf_compiler, native_compiler};
