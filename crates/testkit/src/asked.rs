//! How much of a test somebody wants.

use std::env;
use std::str::FromStr;

/// What an environment variable says, if it is there: `ENFORCER_TRANSFERS=100000`.
pub fn asked<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number that this test takes")))
}
