//! How an Oracle is.

use crate::gather::Intake;
use crate::links::MeasurementIntake;
use crate::robust::Outliers;
use bus::{BusCounts, Rejected};
use serde::Serialize;

/// How an Oracle is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Status {
    /// Agents on the bus.
    pub agents: usize,
    /// Hosts that reported within the last two periods.
    pub hosts: usize,
    /// The number of this Oracle.
    pub oracle: u8,
    /// The term in which it decides; 0 of an Oracle that decides alone.
    pub term: u32,
    /// What the bus has refused.
    #[serde(flatten)]
    pub bus: Refused,
    /// What has become of reports.
    pub reports: Intake,
    /// What has become of collectors' measurements.
    pub measurements: MeasurementIntake,
    /// Hosts that say what no other does.
    pub outliers: Outliers,
    /// Lines of the audit log that could not be written; 0 once they are recorded as missing.
    pub audit_lost: u64,
}

/// What the bus has refused since the Oracle began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Agents that were dropped because they did not read.
    pub slow: u64,
    /// Agents that were dropped because a message was too long.
    pub long: u64,
    /// Processes that were turned away: another user's, or more than the bus has room for.
    pub turned_away: u64,
    /// Messages of a fleet, by the reason.
    pub rejected: Rejected,
}

impl From<BusCounts> for Refused {
    fn from(counts: BusCounts) -> Refused {
        let BusCounts { slow, long, refused, rejected, .. } = counts;
        Refused { slow, long, turned_away: refused, rejected }
    }
}

impl Status {
    /// The same without what changes as long as all is well.
    pub(crate) fn trouble(&self) -> Status {
        let outliers = Outliers { hosts: self.outliers.hosts, ..Outliers::default() };
        let measurements = MeasurementIntake { taken: 0, ..self.measurements };
        // of the audit log people hear by itself
        let (hosts, audit_lost) = (0, 0);
        Status { hosts, reports: Intake { taken: 0, ..self.reports }, measurements, outliers, audit_lost, ..*self }
    }

    /// In a line.
    pub(crate) fn words(&self) -> String {
        let Refused { slow, long, turned_away, rejected } = self.bus;
        let Intake { refused, impostors, hosts_beyond, links_beyond, links_foreign, groups_other, racks_other, .. } =
            self.reports;
        let measured = self.measurements;
        let counts = [
            (slow, "agents dropped because they did not read"),
            (long, "agents dropped because of too long a message"),
            (turned_away, "processes refused"),
            (rejected.sum(), "messages of the fleet refused"),
            (refused, "reports refused"),
            (impostors, "reports refused: of another host than the sender"),
            (hosts_beyond, "reports refused: too many hosts"),
            (links_beyond, "links ignored: too many"),
            (links_foreign, "links ignored: not the host's own"),
            (groups_other, "groups counted as `other`"),
            (racks_other, "pairs of racks counted as `other`"),
            (measured.refused, "measurements refused"),
            (measured.not_allowed, "measurements refused: not from a collector"),
            (measured.collectors_beyond, "measurements refused: too many collectors"),
            (measured.links_beyond, "switches' links ignored: too many"),
            (measured.pairs_beyond, "collectors' pairs of racks ignored: too many"),
            (self.outliers.hosts as u64, "hosts report what no other does"),
            (self.audit_lost, "lines of the audit log could not be written"),
        ];
        let agents = format!("{} agents", self.agents);
        let counted = counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
        std::iter::once(agents).chain(counted).collect::<Vec<_>>().join(", ")
    }
}
