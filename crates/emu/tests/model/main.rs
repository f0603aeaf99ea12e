//! What the emulator computes and refuses, without a host.

mod engine;
mod refusals;
