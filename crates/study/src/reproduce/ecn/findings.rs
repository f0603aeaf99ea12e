//! What follows from the numbers, in sentences.

use super::cases::Part;
use results::Comparison;

/// Sentences, each with whether it holds.
pub fn findings(_rows: &[Comparison]) -> Vec<String> {
    let _ = Part::Enforced;
    Vec::new()
}
