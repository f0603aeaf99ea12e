//! When a switch refreshes its counters.
//!
//! Many agents answer from a copy that they renew by a timer (net-snmp: every 3 s), and IF-MIB does not say when. Two readings 10 s apart
//! may so be 7 s or 13 s of traffic. A reading that begins when a counter has just changed begins just after a renewal.

use crate::{Counts, PortCounters};
use async_snmp::{Oid, VarBind};
use std::collections::BTreeMap;
use std::time::Duration;

/// Ports that are watched: those with the most bytes since the last reading.
const WATCHED: usize = 4;
/// Interval of looks: what a renewal's time is known to.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// Which counters are watched for a change.
#[derive(Debug, Default)]
pub(super) struct Refresh {
    /// Bytes in both directions at the last reading, by port.
    bytes: BTreeMap<u32, u64>,
    watched: Vec<Oid>,
}

impl Refresh {
    /// The counters to watch before the next reading; none before the first.
    pub(super) fn watched(&self) -> &[Oid] {
        &self.watched
    }

    /// Takes a reading: the busiest ports are watched from now on.
    pub(super) fn read<'a>(
        &mut self,
        ports: impl Iterator<Item = &'a PortCounters>,
        column: impl Fn(u32, bool) -> [Oid; 2],
    ) {
        let both = |Counts { bytes, .. }: &Counts| bytes.unwrap_or(0);
        let mut busiest = Vec::new();
        let mut bytes = BTreeMap::new();
        for port in ports {
            let total = both(&port.received).wrapping_add(both(&port.sent));
            let before = self.bytes.get(&port.number).copied().unwrap_or(0);
            busiest.push((total.wrapping_sub(before), port.number, port.width == 32));
            bytes.insert(port.number, total);
        }
        busiest.sort_unstable_by(|a, b| b.cmp(a));
        self.watched = busiest.iter().take(WATCHED).flat_map(|(_, port, narrow)| column(*port, *narrow)).collect();
        self.bytes = bytes;
    }

    /// Whether the answers to two looks differ.
    pub(super) fn changed(before: &[VarBind], after: &[VarBind]) -> bool {
        before.iter().zip(after).any(|(before, after)| before.value != after.value)
    }
}
