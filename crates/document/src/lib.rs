//! User-written TOML as a tree in which every value has its place in the text, and diagnostics that point
//! there. Scenario and policy files are read through it.
//!
//! ```text
//! text ──▶ tree::parse_document ──▶ Section, Values ──▶ the caller's types
//!                                        └──▶ Problem ──▶ Diagnostic (line, column, help)
//! ```
#![forbid(unsafe_code)]

mod diagnostic;
mod file;
pub mod tree;
mod values;

pub use diagnostic::{Diagnostic, Located, Problem, Source, list, nearest, suggestion};
pub use file::{FILE_MAX, read_text};
pub use values::{INTEGER_MAX, Section, Values};
