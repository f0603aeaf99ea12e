//! The heart of OpenTCP: the operator's policy, the decisions that follow from what was observed, and the messages
//! (CUEs, congestion update epistles) that carry them to the hosts.
#![forbid(unsafe_code)]

mod algorithm;
mod expression;
mod model;
mod program;
mod read;
mod select;
mod settings;
mod unit;
mod variable;
mod view;

pub use algorithm::{AlgorithmFacts, Known, Measures};
pub use document::{Diagnostic, Located};
pub use expression::{Expression, ExpressionError, Place};
pub use model::*;
pub use select::{Hosts, Prefix, PrefixError, Sessions, fits};
pub use settings::{Setting, Settings};
pub use unit::Unit;
pub use variable::{Scope, Variable};
pub use view::*;
