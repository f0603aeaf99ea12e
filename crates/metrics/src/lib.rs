//! Serves a process's metrics to Prometheus.
//!
//! A daemon describes each of its metrics once, as a [`Metric`] in a table. From that table come the text that Prometheus reads and the
//! reference in the documentation ([`reference()`]). Once in a while the daemon's loop fills a [`Page`], which is plain data, and gives it
//! to [`Server::publish`]; that costs the loop a pointer. The server is a thread of its own: it makes the text when it is asked, so a loop
//! that carries packets waits neither for Prometheus nor for whoever else connects.
//!
//! Labels are bounded: a page holds at most [`SERIES_MAX`] series, and no metric of this project has a label for a connection or
//! a remote address.
#![forbid(unsafe_code)]

mod page;
mod process;
mod reference;
mod request;
mod server;

pub use page::{Kind, LABEL_MAX, Metric, Page, SERIES_MAX, Unit};
pub use process::COMMON;
pub use reference::reference;
pub use request::{Answer, HEAD_MAX, answer};
pub use server::{MetricsError, Server};
