//! The program as root runs it on kernels: algorithms in the running kernel, and emulations, which need the machine for themselves.

#[path = "../cli/common.rs"]
mod common;
mod convergence;
mod doctor;
mod emulation;
mod emulator;
mod lacking;
mod loading;
mod names;
mod transfers;
