//! Packets of real hosts, in memory.

mod abuse;
mod capture;
mod headers;
mod owned;
mod properties;
mod segments;
mod support;
