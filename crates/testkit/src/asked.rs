//! How extensive a test is to be.

use std::env;
use std::str::FromStr;

/// The value of an environment variable, if set: `ENFORCER_TRANSFERS=100000`.
pub fn asked<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number that this test takes")))
}
