//! The program as users run it: arguments in; stdout, stderr, exit code and files out. What needs the kernel is in `tests/kernel`.

mod algorithms;
mod bad_input;
mod book;
mod collect;
mod common;
mod demo;
mod determinism;
mod fleet;
mod foreign;
mod history;
mod hosts;
mod init;
mod interrupt;
mod live;
mod manual;
mod metrics;
mod output;
mod outputs;
mod policy;
mod reproduce;
mod reproduce_dctcp;
mod reproduce_tcon;
mod scenarios;
mod shown;
mod sweep;
mod tune;
