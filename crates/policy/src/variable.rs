//! Every variable of the policy language: the one table from which expressions are checked, evaluated and documented.

use crate::unit::Unit;
use crate::view::{FlowGroup, Host, Link, NetworkView};
use units::Time;

/// Whose variable it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The whole network: `network.…` and `clock.…`.
    Network,
    /// One link, inside `links.exists(l, …)` or `links.all(l, …)`.
    Link,
    /// The host that is decided for, or inside `hosts.exists(h, …)`.
    Host,
    /// One flow group, inside `groups.exists(g, …)`.
    Group,
}

impl Scope {
    /// In the words of `--list`.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Network => "network",
            Scope::Link => "link",
            Scope::Host => "host",
            Scope::Group => "flow group",
        }
    }
}

/// Where a number comes from. Not known: NaN.
#[derive(Clone, Copy)]
pub(crate) enum Read {
    Network(fn(&NetworkView) -> f64),
    Link(fn(&Link) -> f64),
    Host(fn(&Host) -> f64),
    Group(fn(&FlowGroup) -> f64),
    LinkText(fn(&Link) -> &str),
    HostText(fn(&Host) -> &str),
    GroupText(fn(&FlowGroup) -> &str),
    /// Whether every switch port in the host's part of the network marks: a question to the topology.
    EveryHopMarks,
    /// Of the switch ports in front of the host: the largest.
    Port(fn(&Link) -> Option<f64>),
}

/// A variable.
pub struct Variable {
    /// As it is written: `host.drop_rate`.
    pub name: &'static str,
    /// What it is.
    pub unit: Unit,
    /// One sentence.
    pub doc: &'static str,
    /// Whether an agent knows it by itself, so that a guard may ask for it.
    pub at_agent: bool,
    pub(crate) read: Read,
}

impl Variable {
    /// Whose it is.
    pub fn scope(&self) -> Scope {
        match self.read {
            Read::Network(_) => Scope::Network,
            Read::Link(_) | Read::LinkText(_) => Scope::Link,
            Read::Host(_) | Read::HostText(_) | Read::EveryHopMarks | Read::Port(_) => Scope::Host,
            Read::Group(_) | Read::GroupText(_) => Scope::Group,
        }
    }

    /// The name without whose it is: `drop_rate`.
    pub fn field(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, field)| field)
    }

    /// Who would say it, where it is not known.
    pub fn advice(&self) -> Option<&'static str> {
        let name = self.name;
        let any = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        Some(match () {
            () if name.starts_with("link.") || name.contains("_link_") => LINKS_ADVICE,
            () if any(&["port_", "every_hop"]) => "run `opentcp collect` on the switches",
            () if any(&["rack_"]) => "name racks to agents by --rack and --remote-rack, or run `opentcp collect`",
            () if any(&["fct_"]) => "no connection has ended in the period",
            () if any(&["drop_rate", "retransmit_rate"]) => "fewer than 1000 segments were sent",
            () if name.starts_with("host.") || name.starts_with("network.") => "no agent has reported it yet",
            () => return None,
        })
    }

    /// All variables, sorted by scope.
    pub fn all() -> &'static [Variable] {
        VARIABLES
    }

    /// The variable of that name.
    pub fn named(name: &str) -> Option<&'static Variable> {
        VARIABLES.iter().find(|variable| variable.name == name)
    }
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Variable {
    fn eq(&self, other: &Variable) -> bool {
        self.name == other.name
    }
}

/// Who measures links.
pub const LINKS_ADVICE: &str =
    "no link is measured: name one to an agent by --link INTERFACE=RATE, or run `opentcp collect`";

const fn variable(name: &'static str, unit: Unit, read: Read, doc: &'static str) -> Variable {
    Variable { name, unit, doc, at_agent: false, read }
}

const fn of_agent(name: &'static str, unit: Unit, read: Read, doc: &'static str) -> Variable {
    Variable { name, unit, doc, at_agent: true, read }
}

fn known(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

fn seconds(time: Option<Time>) -> f64 {
    time.map_or(f64::NAN, Time::as_secs_f64)
}

/// The largest of what is known; NaN if nothing is.
fn largest(values: impl Iterator<Item = Option<f64>>) -> f64 {
    values.flatten().fold(f64::NAN, f64::max)
}

/// The sum of what is known; NaN if nothing is.
fn sum(values: impl Iterator<Item = Option<f64>>) -> f64 {
    values.flatten().fold(f64::NAN, |sum, value| if sum.is_nan() { value } else { sum + value })
}

fn mean(values: impl Iterator<Item = Option<f64>>) -> f64 {
    let (sum, n) = values.flatten().fold((0.0, 0u32), |(sum, n), value| (sum + value, n + 1));
    if n == 0 { f64::NAN } else { sum / f64::from(n) }
}

/// Retransmitted over sent segments of all hosts; not known under [`crate::view::SEGMENTS_MIN`].
fn network_drop_rate(view: &NetworkView) -> f64 {
    let counts = |host: &Host| Some((host.sent_segments?, host.retransmitted_segments?));
    let hosts = view.hosts.iter().filter_map(counts);
    // no integer: a sum over hosts could overflow one
    let (sent, again) = hosts.fold((0.0, 0.0), |(s, a), (sent, again)| (s + sent as f64, a + again as f64));
    if sent < crate::view::SEGMENTS_MIN as f64 { f64::NAN } else { again / sent }
}

/// The largest share of all traffic that one rack sends to one other.
fn matrix_share(view: &NetworkView) -> f64 {
    let total: f64 = view.matrix.iter().map(|pair| pair.rate.as_bps() as f64).sum();
    let most = view.matrix.iter().filter(|pair| pair.from != pair.to).map(|pair| pair.rate.as_bps()).max();
    if total == 0.0 { f64::NAN } else { most.unwrap_or(0) as f64 / total }
}

fn matrix_sum(view: &NetworkView, between: bool) -> f64 {
    let pairs = view.matrix.iter().filter(|pair| (pair.from != pair.to) == between);
    if view.matrix.is_empty() { f64::NAN } else { pairs.map(|pair| pair.rate.as_bps() as f64).sum() }
}

/// The quantile `q` of a host's smoothed RTTs.
fn srtt(host: &Host, q: f64) -> f64 {
    let total: u64 = host.srtt_us.iter().map(|(_, n)| u64::from(*n)).sum();
    if total == 0 {
        return f64::NAN;
    }
    let rank = ((total as f64 * q).ceil() as u64).max(1);
    let mut below = 0;
    for (us, n) in &host.srtt_us {
        below += u64::from(*n);
        if below >= rank {
            return f64::from(*us) / 1e6;
        }
    }
    f64::NAN
}

static VARIABLES: &[Variable] = &[
    variable(
        "clock.hour",
        Unit::Number,
        Read::Network(|v| known(v.hour)),
        "time of day in the policy's `time_zone` (UTC without one), in hours from 0 to 24: 17.5 is half past five",
    ),
    variable(
        "clock.weekday",
        Unit::Number,
        Read::Network(|v| v.weekday.map_or(f64::NAN, f64::from)),
        "day of the week in the policy's `time_zone`, 1 (Monday) to 7",
    ),
    variable(
        "network.max_link_utilization",
        Unit::Fraction,
        Read::Network(|v| largest(v.links.iter().map(|l| l.utilization))),
        "utilization of the busiest link",
    ),
    variable(
        "network.mean_link_utilization",
        Unit::Fraction,
        Read::Network(|v| mean(v.links.iter().map(|l| l.utilization))),
        "mean utilization over all links",
    ),
    variable(
        "network.max_link_drop_rate",
        Unit::Fraction,
        Read::Network(|v| largest(v.links.iter().map(|l| l.drop_rate))),
        "share of packets dropped at the link that drops most",
    ),
    variable(
        "network.max_link_mark_rate",
        Unit::Fraction,
        Read::Network(|v| largest(v.links.iter().map(|l| l.mark_rate))),
        "share of packets marked (ECN) at the link that marks most",
    ),
    variable(
        "network.drop_rate",
        Unit::Fraction,
        Read::Network(network_drop_rate),
        "retransmitted over sent segments of all hosts; unknown under 1000 sent segments",
    ),
    variable(
        "network.live_flows",
        Unit::Number,
        Read::Network(|v| sum(v.hosts.iter().map(|h| h.live_flows))),
        "open connections of all hosts",
    ),
    variable(
        "network.flow_starts",
        Unit::PerSecond,
        Read::Network(|v| sum(v.hosts.iter().map(|h| h.flow_starts))),
        "connections begun per second by all hosts",
    ),
    variable("network.fct_p50", Unit::Duration, Read::Network(|v| seconds(v.fct.p50)), "median flow completion time"),
    variable(
        "network.fct_p90",
        Unit::Duration,
        Read::Network(|v| seconds(v.fct.p90)),
        "90th percentile of the flow completion time",
    ),
    variable(
        "network.fct_p99",
        Unit::Duration,
        Read::Network(|v| seconds(v.fct.p99)),
        "99th percentile of the flow completion time",
    ),
    variable(
        "network.inter_rack_rate",
        Unit::Rate,
        Read::Network(|v| matrix_sum(v, true)),
        "traffic between different racks",
    ),
    variable(
        "network.intra_rack_rate",
        Unit::Rate,
        Read::Network(|v| matrix_sum(v, false)),
        "traffic that stays in its rack",
    ),
    variable(
        "network.max_rack_pair_share",
        Unit::Fraction,
        Read::Network(matrix_share),
        "share of all traffic that goes from one rack to one other, of the pair with most",
    ),
    variable("link.name", Unit::Text, Read::LinkText(|l| &l.name), "its name"),
    variable("link.sender", Unit::Text, Read::LinkText(|l| &l.from), "the switch or host that sends into it"),
    variable("link.receiver", Unit::Text, Read::LinkText(|l| &l.to), "the switch or host at its end"),
    variable("link.rate", Unit::Rate, Read::Link(|l| l.rate.map_or(f64::NAN, |r| r.as_bps() as f64)), "its capacity"),
    variable(
        "link.utilization",
        Unit::Fraction,
        Read::Link(|l| known(l.utilization)),
        "share of its capacity that is used",
    ),
    variable(
        "link.drop_rate",
        Unit::Fraction,
        Read::Link(|l| known(l.drop_rate)),
        "share of the packets offered to it that it drops",
    ),
    variable(
        "link.mark_rate",
        Unit::Fraction,
        Read::Link(|l| known(l.mark_rate)),
        "share of the packets sent that it marks (ECN)",
    ),
    variable(
        "link.queue",
        Unit::Size,
        Read::Link(|l| l.queue.map_or(f64::NAN, |q| q.get() as f64)),
        "mean length of its queue",
    ),
    variable(
        "link.marks",
        Unit::Flag,
        Read::Link(|l| l.marks.map_or(f64::NAN, f64::from)),
        "whether its queue marks (ECN)",
    ),
    variable(
        "link.age",
        Unit::Duration,
        Read::Link(|l| seconds(l.age)),
        "how long ago it was measured; from two periods on, its utilization, drop rate, mark rate and queue are unknown",
    ),
    variable("host.name", Unit::Text, Read::HostText(|h| &h.name), "its name"),
    variable("host.rack", Unit::Text, Read::HostText(|h| &h.rack), "the rack that it is in"),
    variable("host.cc", Unit::Text, Read::HostText(|h| &h.cc), "the congestion control that it uses without a policy"),
    of_agent(
        "host.live_flows",
        Unit::Number,
        Read::Host(|h| known(h.live_flows)),
        "its open connections, its agent's own left out",
    ),
    of_agent(
        "host.flow_starts",
        Unit::PerSecond,
        Read::Host(|h| known(h.flow_starts)),
        "connections that it begins per second",
    ),
    of_agent(
        "host.fan_in",
        Unit::Number,
        Read::Host(|h| known(h.fan_in)),
        "other hosts from which data came to it: in the last second as its agent sees it, in the period in a scenario",
    ),
    of_agent(
        "host.drop_rate",
        Unit::Fraction,
        Read::Host(|h| known(h.drop_rate())),
        "retransmitted over sent segments of the last second; unknown under 1000 sent segments",
    ),
    of_agent(
        "host.sent_segments",
        Unit::Number,
        Read::Host(|h| h.sent_segments.map_or(f64::NAN, |n| n as f64)),
        "data segments sent in the last second, retransmissions included",
    ),
    of_agent(
        "host.retransmitted_segments",
        Unit::Number,
        Read::Host(|h| h.retransmitted_segments.map_or(f64::NAN, |n| n as f64)),
        "segments retransmitted in the last second",
    ),
    of_agent(
        "host.srtt_p50",
        Unit::Duration,
        Read::Host(|h| srtt(h, 0.5)),
        "median of the smoothed RTTs (srtt) of its connections",
    ),
    of_agent(
        "host.srtt_p99",
        Unit::Duration,
        Read::Host(|h| srtt(h, 0.99)),
        "99th percentile of the smoothed RTTs (srtt) of its connections",
    ),
    of_agent(
        "host.send_rate",
        Unit::Rate,
        Read::Host(|h| h.send_rate.map_or(f64::NAN, |r| r.as_bps() as f64)),
        "what it sends",
    ),
    of_agent("host.fct_p50", Unit::Duration, Read::Host(|h| seconds(h.fct.p50)), "median completion time of its flows"),
    of_agent(
        "host.fct_p99",
        Unit::Duration,
        Read::Host(|h| seconds(h.fct.p99)),
        "99th percentile of the completion time of its flows",
    ),
    variable(
        "host.port_queue",
        Unit::Size,
        Read::Port(|l| l.queue.map(|q| q.get() as f64)),
        "mean queue at the switch port in front of it, as `link.queue`: of several ports the longest",
    ),
    variable(
        "host.port_drop_rate",
        Unit::Fraction,
        Read::Port(|l| l.drop_rate),
        "share of the packets that this port drops, as `link.drop_rate`: of several ports the largest",
    ),
    variable(
        "host.every_hop_marks",
        Unit::Flag,
        Read::EveryHopMarks,
        "whether every switch port in its part of the network marks (ECN)",
    ),
    variable("group.name", Unit::Text, Read::GroupText(|g| &g.name), "its name"),
    variable("group.live_flows", Unit::Number, Read::Group(|g| known(g.live_flows)), "its open connections"),
    variable(
        "group.flow_starts",
        Unit::PerSecond,
        Read::Group(|g| known(g.flow_starts)),
        "its connections begun per second",
    ),
    variable(
        "group.retransmit_rate",
        Unit::Fraction,
        Read::Group(|g| known(g.retransmit_rate)),
        "share of its data segments that are retransmissions",
    ),
    variable(
        "group.fct_p50",
        Unit::Duration,
        Read::Group(|g| seconds(g.fct.p50)),
        "median completion time of its flows",
    ),
    variable(
        "group.fct_p99",
        Unit::Duration,
        Read::Group(|g| seconds(g.fct.p99)),
        "99th percentile of the completion time of its flows",
    ),
];

/// The variables of links and hosts that a variable is made of; itself, if it is measured as such.
pub(crate) fn sources(variable: &'static Variable) -> Vec<&'static Variable> {
    let names: &[&str] = match variable.name {
        "network.max_link_utilization" | "network.mean_link_utilization" => &["link.utilization"],
        "network.max_link_drop_rate" | "host.port_drop_rate" => &["link.drop_rate"],
        "network.max_link_mark_rate" => &["link.mark_rate"],
        "network.drop_rate" | "host.drop_rate" => &["host.sent_segments", "host.retransmitted_segments"],
        "network.live_flows" => &["host.live_flows"],
        "network.flow_starts" => &["host.flow_starts"],
        "network.fct_p50" => &["host.fct_p50"],
        "network.fct_p90" | "network.fct_p99" => &["host.fct_p99"],
        "network.inter_rack_rate" | "network.intra_rack_rate" | "network.max_rack_pair_share" => &["host.send_rate"],
        "host.every_hop_marks" => &["link.marks"],
        "host.port_queue" => &["link.queue"],
        name if name.starts_with("clock.") => &[],
        _ => return vec![variable],
    };
    names.iter().map(|name| Variable::named(name).expect("a variable of the table")).collect()
}
