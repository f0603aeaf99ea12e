//! The status file that an agent leaves for `opentcp agent --status` and others.

#[cfg(test)]
mod tests;

use crate::config::Places;
use crate::lock::lock;
use bus::files::{FileError, put_checked, read_checked};
use bus::{Report, Telemetry};
use kernel::retune::boot_time;
use policy::{Host, Link};
use serde::{Deserialize, Serialize};
use units::Time;

/// An agent's status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// An agent runs.
    pub running: bool,
    /// It is connected to the Oracle.
    pub connected: bool,
    /// How often the program in the kernel set a connection, and restored one.
    pub applied: u64,
    /// How often it restored one.
    pub reverted: u64,
    /// Algorithms withheld from connections that had not agreed on ECN.
    pub ecn_refused: u64,
    /// Settings that the kernel refused.
    pub failed: u64,
    /// Connections that ended unreported, because too many did at a time.
    pub records_lost: u64,
    /// Its last report, or the one that it would have sent.
    pub report: Option<Report>,
    /// When this was written, milliseconds since the machine's start.
    #[serde(default)]
    pub written_ms: u64,
    /// When something of the Oracle's came last, on the same clock.
    #[serde(default)]
    pub heard_ms: Option<u64>,
    /// The Oracle's period.
    #[serde(default)]
    pub period: Option<Time>,
}

/// The status of the agent of a folder.
///
/// # Errors
/// The folder cannot be read, or the file is malformed.
pub fn status(places: &Places) -> Result<Status, FileError> {
    let io = |source| FileError::Io { path: places.status(), source };
    if !places.state.exists() {
        return Ok(Status::default());
    }
    let running = lock(places)?.is_none();
    match read_checked(&places.status(), "The agent writes a new one within seconds")? {
        Some(bytes) => {
            let status: Status = serde_json::from_slice(&bytes).map_err(|error| io(error.into()))?;
            Ok(Status { running, ..status })
        }
        None => Ok(Status { running, ..Status::default() }),
    }
}

impl Status {
    /// How old it is now.
    pub fn age(&self) -> Time {
        Time::from_ms((boot_time().as_millis() as u64).saturating_sub(self.written_ms))
    }

    /// How long the Oracle had been silent when this was written.
    pub fn silence(&self) -> Option<Time> {
        self.heard_ms.map(|heard_ms| Time::from_ms(self.written_ms.saturating_sub(heard_ms)))
    }

    /// The same without values that change by themselves.
    pub(crate) fn without_time(&self) -> Status {
        let mut still = Status { written_ms: 0, heard_ms: None, ..self.clone() };
        if let Some(report) = &mut still.report {
            (report.host, report.links, report.telemetry) = <(Host, Vec<Link>, Vec<Telemetry>)>::default();
            report.in_force.iter_mut().for_each(|rule| rule.left = Time::ZERO);
        }
        still
    }

    /// Writes it for others to read. It is useless after a crash of the machine, so it is not synced to disk.
    pub(crate) fn write(&self, places: &Places) -> Result<(), FileError> {
        put_checked(&places.status(), &serde_json::to_vec(self).expect("a status is plain data"))
    }
}
