//! The emulator: real Linux hosts in network namespaces.

#![forbid(unsafe_code)]

pub mod hosts;
