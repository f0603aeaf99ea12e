//! An operator's end of the bus.

use crate::failure::Failure;
use crate::identity::Meeting;
use crate::terminal::note;
use bus::{Address, Ask, AskError, BusError, Outcome, Request, Role};
use oracle::NetworkPart;
use policy::NetworkView;
use serde::de::DeserializeOwned;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{env, fs, thread};

/// How long the Oracle may take for its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// A longer wait is said.
const SAID_AFTER: Duration = Duration::from_millis(700);

/// Attempts to read a view within one period.
const TRIES: u32 = 5;
/// Longest view, bytes.
const VIEW_MAX: usize = 1 << 30;

/// Where the Oracle is.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// An operator's identity in a fleet, made by `opentcp fleet init` or `opentcp enroll` [default: the folder that the variable
    /// OPENTCP_IDENTITY names, or /etc/opentcp/identity if an operator's is there]
    #[arg(long, value_name = "DIR", conflicts_with = "socket")]
    identity: Option<PathBuf>,
    /// The socket where the Oracle of this machine listens [default, without an identity: /run/opentcp/oracle.sock]
    #[arg(long, value_name = "FILE")]
    socket: Option<PathBuf>,
}

impl Place {
    /// Where it is met.
    ///
    /// # Errors
    /// There is no such identity, or it is no operator's.
    pub fn address(&self) -> Result<Address, Failure> {
        Meeting::choose(self.identity.as_ref(), self.socket.as_ref(), &[Role::Operator]).map(|meeting| meeting.bus)
    }

    /// What the Oracle answers.
    ///
    /// # Errors
    /// It cannot be reached, refuses, or answers something else.
    pub fn ask<T: DeserializeOwned>(&self, ask: Ask) -> Result<T, Failure> {
        let meeting = Meeting::choose(self.identity.as_ref(), self.socket.as_ref(), &[Role::Operator])?;
        let unreachable = |error: BusError| match &meeting.bus {
            Address::Unix(_) if self.socket.is_some() => {
                Failure::Run(format!("{error}; is the Oracle running? Only its user and root may ask"))
            }
            Address::Unix(_) => Failure::Run(format!(
                "{error}; is the Oracle running? Only its user and root may ask\n{}",
                Meeting::tried()
            )),
            Address::Nats(_) => Failure::Input(error.to_string()),
        };
        let request = Request::new(operator(), ask).map_err(|error| Failure::Run(error.to_string()))?;
        let outcome = saying_that_it_waits(|| {
            let mut bus = meeting.bus.connect().map_err(unreachable)?;
            bus::ask(&mut *bus, &request, PATIENCE).map_err(|error| match error {
                AskError::Bus(error @ BusError::Long(_)) => Failure::Input(error.to_string()),
                error => Failure::Run(error.to_string()),
            })
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

impl Place {
    /// The view of the Oracle's last decision, part by part.
    ///
    /// # Errors
    /// As [`Place::ask`], or a new period begins again and again before all of it has come.
    pub fn network(&self) -> Result<NetworkView, Failure> {
        for _ in 0..TRIES {
            let (mut text, mut first) = (String::new(), None);
            loop {
                let part: NetworkPart = self.ask(Ask::Network { from: text.len() })?;
                if *first.get_or_insert(part.epoch) != part.epoch {
                    break;
                }
                text.push_str(&part.text);
                if text.len() >= part.length {
                    return NetworkView::from_json(&text)
                        .map_err(|error| Failure::Run(format!("the Oracle's view cannot be read: {error}")));
                }
                if part.text.is_empty() || text.len() > VIEW_MAX {
                    return Err(Failure::Run("the Oracle's view does not end".to_string()));
                }
            }
        }
        Err(Failure::Run(format!(
            "the view changed {TRIES} times while it was read: the policy's period is too short for that"
        )))
    }
}

/// Whether this program runs as root.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0)
}

/// Does what may wait for the Oracle, and says so if it takes long.
fn saying_that_it_waits<T>(work: impl FnOnce() -> T) -> T {
    let (done, waits) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if waits.recv_timeout(SAID_AFTER) == Err(RecvTimeoutError::Timeout) {
                note!("no answer of an Oracle yet; waiting up to {} s (Ctrl-C ends it)", PATIENCE.as_secs());
            }
        });
        // dropped when the work ends, also by a panic
        let _done = done;
        work()
    })
}

/// Who runs this program: `alice (uid 0, by sudo)`.
pub fn operator() -> String {
    let uid = fs::metadata("/proc/self").map(|about| about.uid());
    let uid = uid.map_or_else(|_| "uid unknown".to_string(), |uid| format!("uid {uid}"));
    let variable = |name: &str| env::var(name).ok().filter(|name| !name.is_empty() && !name.contains(char::is_control));
    let (name, by) = match variable("SUDO_USER") {
        Some(name) => (name, ", by sudo"),
        None => (variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_else(|| "unnamed".to_string()), ""),
    };
    format!("{} ({uid}{by})", name.chars().take(48).collect::<String>())
}
