//! What an agent leaves written for whoever asks how it is.

use crate::config::Places;
use crate::lock::lock;
use bus::files::FileError;
use bus::{Report, Telemetry};
use policy::{Host, Link};
use serde::{Deserialize, Serialize};
use std::{fs, io};
use units::Time;

/// How an agent is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// There is one.
    pub running: bool,
    /// It reaches the Oracle.
    pub connected: bool,
    /// Times that the program in the kernel gave settings to a connection, and its own back.
    pub applied: u64,
    /// The same.
    pub reverted: u64,
    /// Algorithms withheld from connections that had not agreed on ECN.
    pub ecn_refused: u64,
    /// Settings that the kernel refused.
    pub failed: u64,
    /// Connections that ended and are not in any report, because too many did at a time.
    pub records_lost: u64,
    /// What it last reported, or would have.
    pub report: Option<Report>,
}

/// How the agent of a folder is.
///
/// # Errors
/// The folder cannot be read, or what is in it.
pub fn status(places: &Places) -> Result<Status, FileError> {
    let io = |source| FileError::Io { path: places.status(), source };
    if !places.state.exists() {
        return Ok(Status::default());
    }
    let running = lock(places)?.is_none();
    match fs::read(places.status()) {
        Ok(bytes) => {
            let status: Status = serde_json::from_slice(&bytes).map_err(|error| io(error.into()))?;
            Ok(Status { running, ..status })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Status { running, ..Status::default() }),
        Err(error) => Err(io(error)),
    }
}

impl Status {
    /// The same without what changes by itself.
    pub(crate) fn without_time(&self) -> Status {
        let mut still = self.clone();
        if let Some(report) = &mut still.report {
            (report.host, report.links, report.telemetry) = <(Host, Vec<Link>, Vec<Telemetry>)>::default();
            report.in_force.iter_mut().for_each(|rule| rule.left = Time::ZERO);
        }
        still
    }

    /// Writes it for others to read. It is of no use after the machine has stopped, so nobody waits for the disk.
    pub(crate) fn write(&self, places: &Places) -> io::Result<()> {
        let beside = places.status().with_extension("new");
        fs::write(&beside, serde_json::to_vec(self)?)?;
        fs::rename(&beside, places.status())
    }
}
