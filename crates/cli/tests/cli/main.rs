//! The program as users run it: arguments in; stdout, stderr, exit code and files out.

mod algorithms;
mod bad_input;
mod collect;
mod common;
mod demo;
mod determinism;
mod doctor;
mod emulation;
mod emulator;
mod foreign;
mod init;
mod interrupt;
mod lacking;
mod loading;
mod manual;
mod names;
mod output;
mod policy;
mod reproduce;
mod reproduce_dctcp;
mod reproduce_tcon;
mod scenarios;
mod transfers;
