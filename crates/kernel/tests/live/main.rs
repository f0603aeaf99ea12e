//! The running kernel: root only, one test at a time on a machine.

mod cost;
mod foreign;
mod pins;
mod probe;
mod retune;
mod sequence_parity;
mod state_parity;
mod support;
mod transfer;
mod verifier;
mod window_total;
