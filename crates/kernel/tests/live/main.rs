//! The running kernel: root only, one of these tests at a time, and some of them beside no other test of the machine.

mod beside;
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
