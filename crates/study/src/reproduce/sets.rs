//! Overrides that a study cannot take, because it sets the keys itself.

use super::Request;
use crate::failure::Failure;

/// Refuses overrides of the study's `own` keys, with which its rows would be mislabelled, and of the seed beside several seeds. `instead` is
/// a scenario in which they may be changed.
///
/// # Errors
/// There is such an override.
pub fn check(request: &Request, own: &[&str], seeds: u32, instead: &str) -> Result<(), Failure> {
    for set in &request.sets {
        let key = set.split('=').next().unwrap_or_default().trim();
        let within = |own: &&str| key == *own || key.strip_prefix(*own).is_some_and(|rest| rest.starts_with('.'));
        if own.iter().any(within) {
            return Err(Failure::Input(format!(
                "reproduce {} sets `{key}` itself; to change it use `opentcp run {instead} --set …`",
                request.study
            )));
        }
        if key == "seed" && seeds > 1 {
            return Err(Failure::Input(format!(
                "seeds 1 to {seeds} are run, --set seed=… runs one: keep one of the two"
            )));
        }
    }
    Ok(())
}
