//! What of the Oracle's answers is shown: rows with rounded numbers, so that a change that nobody sees is not sent.

use oracle::{EventLine, HostLine, LinkLine, Overview, Span};
use serde::Serialize;
use std::collections::VecDeque;

/// Most hosts.
pub const HOSTS_MAX: usize = 20_000;
/// Most links.
pub const LINKS_MAX: usize = 8192;
/// Points of a series.
pub const POINTS_MAX: usize = 720;

/// What of a host does not change while the list of hosts is the same: name, rack, algorithm without a policy, switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostFixed(pub String, pub String, pub String, pub String);

/// What does: treated, open connections, share of retransmissions, bits sent a second, rules in force by their bits, reverts by guards,
/// settings that differ, notes, seconds since its report, utilization. In this order, as a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostLive(
    pub u8,
    pub Option<f64>,
    pub Option<f64>,
    pub Option<f64>,
    pub Bits,
    pub u64,
    pub usize,
    pub usize,
    pub f64,
    pub Option<f64>,
);

/// 64 bits as two numbers of 32: JavaScript has 53.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bits(pub u32, pub u32);

/// Name, ends, whether it is at a host, capacity.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkFixed(pub String, pub String, pub String, pub u8, pub Option<u64>);

/// Utilization, share of drops, share of marks, bytes in the queue, whether it is up.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkLive(pub Option<f64>, pub Option<f64>, pub Option<f64>, pub Option<u64>, pub Option<bool>);

/// Time; share of retransmissions of treated and of control hosts; highest and mean utilization; bits a second that a treated and a
/// control host sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Point(
    pub f64,
    pub Option<f64>,
    pub Option<f64>,
    pub Option<f64>,
    pub Option<f64>,
    pub Option<f64>,
    pub Option<f64>,
);

/// A list whose entries have a part that stays and one that changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table<F, L> {
    /// What stays.
    pub fixed: Vec<F>,
    /// What changes, in the same order.
    pub live: Vec<L>,
    /// How many there are, if not all are here.
    pub total: usize,
}

impl<F, L> Default for Table<F, L> {
    fn default() -> Self {
        Table { fixed: Vec::new(), live: Vec::new(), total: 0 }
    }
}

/// Hosts.
pub type Hosts = Table<HostFixed, HostLive>;
/// Links.
pub type Links = Table<LinkFixed, LinkLive>;

/// Everything that is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Why there is nothing newer.
    pub trouble: Option<String>,
    /// When the Oracle answered last, in seconds since the Unix epoch.
    pub answered_unix_s: Option<f64>,
    /// When it decided last, by this machine's clock.
    pub decided_unix_s: Option<f64>,
    /// Its status, without lists that are here.
    pub overview: Option<Overview>,
    /// What is not shown, and why.
    pub note: Option<String>,
    /// By name.
    pub hosts: Hosts,
    /// Those between switches first.
    pub links: Links,
    /// What became of rules.
    pub spans: Vec<Span>,
    /// What happened beside.
    pub events: Vec<EventLine>,
    /// A point of each decision, the oldest first.
    pub series: VecDeque<Point>,
}

/// Rounded to so many significant digits.
fn rounded(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let unit = 10f64.powi(digits - 1 - value.abs().log10().floor() as i32);
    (value * unit).round() / unit
}

/// To a thousandth.
fn share(value: Option<f64>) -> Option<f64> {
    value.map(|value| (value * 1000.0).round() / 1000.0)
}

/// To three digits.
fn small(value: Option<f64>) -> Option<f64> {
    value.map(|value| rounded(value, 3))
}

/// Rows of hosts.
pub fn hosts(lines: Vec<HostLine>, total: usize) -> Hosts {
    let mut table = Hosts { total, ..Hosts::default() };
    for line in lines {
        table.live.push(HostLive(
            u8::from(line.treated),
            small(line.flows),
            small(line.retransmits),
            small(line.send_bps.map(|bps| bps as f64)),
            Bits(line.in_force as u32, (line.in_force >> 32) as u32),
            line.guard_trips,
            line.differing,
            line.notes,
            rounded(line.heard_s, 2),
            share(line.utilization),
        ));
        table.fixed.push(HostFixed(line.name, line.rack, line.cc, line.leaf));
    }
    table
}

/// Rows of links.
pub fn links(lines: Vec<LinkLine>, total: usize) -> Links {
    let mut table = Links { total, ..Links::default() };
    for line in lines {
        let queue = line.queue_bytes.map(|bytes| rounded(bytes as f64, 2) as u64);
        table.live.push(LinkLive(
            share(line.utilization),
            small(line.drop_rate),
            small(line.mark_rate),
            queue,
            line.up,
        ));
        table.fixed.push(LinkFixed(line.name, line.from, line.to, u8::from(line.at_host), line.rate_bps));
    }
    table
}

/// The mean of what is known.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let (sum, count) = values.flatten().fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| rounded(sum / f64::from(count), 4))
}

/// A point of the series at a decision.
pub fn point(unix_s: f64, hosts: &Hosts, links: &Links) -> Point {
    let arm = |treated: u8| hosts.live.iter().filter(move |host| host.0 == treated);
    // of all links, as the policy's `network.max_link_utilization` and `network.mean_link_utilization`
    let used: Vec<f64> = links.live.iter().filter_map(|link| link.0).collect();
    let used = if used.is_empty() { hosts.live.iter().filter_map(|host| host.9).collect() } else { used };
    let most = used.iter().copied().reduce(f64::max);
    Point(
        unix_s,
        mean(arm(1).map(|host| host.2)),
        mean(arm(0).map(|host| host.2)),
        most,
        mean(used.iter().map(|used| Some(*used))),
        mean(arm(1).map(|host| host.3)),
        mean(arm(0).map(|host| host.3)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_what_is_shown() {
        let shown = |value: f64| rounded(value, 3).to_string();
        let values = [0.0, 123_456.0, 0.000_123_456, 1.0, -9.996, f64::NAN];
        assert_eq!(values.map(shown), ["0", "123000", "0.000123", "1", "-10", "0"]);
        assert_eq!(share(Some(0.123_49)), Some(0.123));
    }

    #[test]
    fn a_point_compares_the_arms_and_has_all_links() {
        let host = |treated: bool, retransmits: f64, used: f64| HostLine {
            treated,
            retransmits: Some(retransmits),
            utilization: Some(used),
            send_bps: Some(1_000_000),
            ..HostLine::default()
        };
        let lines = vec![host(true, 0.01, 0.5), host(true, 0.03, 0.7), host(false, 0.04, 0.9)];
        let hosts = hosts(lines, 3);
        let seen = point(7.0, &hosts, &Links::default());
        assert_eq!(seen, Point(7.0, Some(0.02), Some(0.04), Some(0.9), Some(0.7), Some(1e6), Some(1e6)));
        let link = |at_host, used| LinkLine { at_host, utilization: used, ..LinkLine::default() };
        let all = links(vec![link(false, Some(0.2)), link(false, None), link(true, Some(1.0))], 3);
        let seen = point(7.0, &hosts, &all);
        assert_eq!((seen.3, seen.4), (Some(1.0), Some(0.6)));
        // two hosts that send through a switch: their links carry nothing back
        let of_hosts = links([0.6, 0.6, 0.0, 0.0].map(|used| link(true, Some(used))).to_vec(), 4);
        assert_eq!(point(7.0, &hosts, &of_hosts).4, Some(0.3));
    }
}
