//! What the audit log says of decisions: the lines that the Oracle writes, and what people want to know of them.
//!
//! ```text
//! Decision ──▶ DecisionLine ──▶ audit::Log ──▶ audit::read ──▶ Changes: what has changed from period to period
//!                                                    └──────▶ Observed: what a policy did, or would have done
//! ```

mod changes;
mod line;
mod observed;

pub(crate) use changes::reverted_words;
pub use changes::{Change, Changes, Tone};
pub use line::{ConstraintLine, CueLine, DecisionLine, HostsLine, RuleLine, VerdictLine};
pub use observed::{Observed, ObservedRule, Withheld};
