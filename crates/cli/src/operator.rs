//! An operator's end of the bus.

use crate::failure::Failure;
use bus::{Address, Ask, AskError, BusError, Outcome, Request};
use serde::de::DeserializeOwned;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs};

/// How long the Oracle may take for its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the Oracle is.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// The socket where the Oracle listens
    #[arg(long, value_name = "FILE", default_value = super::SOCKET)]
    socket: PathBuf,
}

impl Place {
    /// What the Oracle answers.
    ///
    /// # Errors
    /// It cannot be reached, refuses, or answers something else.
    pub fn ask<T: DeserializeOwned>(&self, ask: Ask) -> Result<T, Failure> {
        let unreachable = |error: BusError| {
            Failure::Run(format!(
                "{error}; is the Oracle running? --socket names its socket, and only its user and root may ask"
            ))
        };
        let mut bus = Address::Unix(self.socket.clone()).connect().map_err(unreachable)?;
        let request = Request::new(operator(), ask).map_err(|error| Failure::Run(error.to_string()))?;
        let outcome = bus::ask(&mut *bus, &request, PATIENCE).map_err(|error| match error {
            AskError::Bus(error @ BusError::Long(_)) => Failure::Input(error.to_string()),
            error => Failure::Run(error.to_string()),
        })?;
        match outcome {
            Outcome::Answer(answer) => serde_json::from_value(answer).map_err(|error| {
                Failure::Run(format!("the Oracle answers otherwise than this version expects: {error}"))
            }),
            Outcome::Refused(refusal) if refusal.is_input => Err(Failure::Input(refusal.why)),
            Outcome::Refused(refusal) => Err(Failure::Run(refusal.why)),
        }
    }
}

/// Who runs this program: `alice (uid 0, by sudo)`.
fn operator() -> String {
    let uid = fs::metadata("/proc/self").map(|about| about.uid());
    let uid = uid.map_or_else(|_| "uid unknown".to_string(), |uid| format!("uid {uid}"));
    let variable = |name: &str| env::var(name).ok().filter(|name| !name.is_empty() && !name.contains(char::is_control));
    let (name, by) = match variable("SUDO_USER") {
        Some(name) => (name, ", by sudo"),
        None => (variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_else(|| "unnamed".to_string()), ""),
    };
    format!("{} ({uid}{by})", name.chars().take(48).collect::<String>())
}
