//! Real hosts, in real time: root only, one test at a time on a machine.

mod acceptance;
mod enforcer;
mod hosts;
mod hosts_support;
mod hosts_traffic;
mod incast;
mod policy;
mod records;
mod run_support;
mod server_window;
mod slower;
