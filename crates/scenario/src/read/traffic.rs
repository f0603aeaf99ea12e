//! The `[[traffic]]` list.

use super::network::RATE_MAX;
use super::{INTEGER_MAX, Reader, Section};
use crate::model::{
    Across, Arrivals, Collective, Connections, DataFile, Datagrams, Pace, Scenario, Senders, Sizes, SizesSource, Tcp,
    Think, Topology, TraceFlow, Traffic, TrafficKind, Workload,
};
use crate::sizes::{PUBLISHED, SizeDistribution};
use document::suggestion;
use document::tree::{Node, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use units::{Bytes, Rate, Time};

const KINDS: [&str; 11] = [
    "random_pairs",
    "permutation",
    "bulk",
    "udp",
    "incast",
    "all_to_all",
    "exchange",
    "poisson",
    "trace",
    "job",
    "idle",
];

/// Most connections that one entry may have open.
const CONNECTIONS_MAX: u32 = 1 << 24;
/// Most bytes of one flow: sums over many flows stay within 64 bits.
pub(super) const FLOW_BYTES_MAX: u64 = 1_000_000_000_000_000;

/// Minimum rate and maximum size of an application's writes: two are at most hours apart.
const WRITE_RATE_MIN: Rate = Rate::from_bps(1000);
const WRITE_BYTES_MAX: u64 = 1_000_000;
/// Bytes of an IP and a UDP header.
const UDP_HEADERS: u64 = 28;
/// Minimum rate of a Poisson process, per second: two flows are hardly ever further apart than a run may last.
const ARRIVALS_MIN: f64 = 1e-5;

/// The scenario's values that a traffic entry is checked with.
struct Around<'t> {
    topology: &'t Topology,
    /// The end of the run.
    end: Time,
    tcp: &'t Tcp,
}

impl Reader<'_, '_> {
    /// The list of traffic; never empty.
    pub(super) fn traffic_list(&self, node: &Node, end: Time, topology: &Topology, tcp: &Tcp) -> Option<Vec<Traffic>> {
        let around = Around { topology, end, tcp };
        let Value::Array(items) = &node.value else {
            return self.problem(&node.at, "traffic is a list: write `[[traffic]]`", None);
        };
        if items.is_empty() {
            return self.problem(&node.at, "there is no traffic", Some("add a `[[traffic]]` entry".to_string()));
        }
        let entries: Vec<Option<Traffic>> = items.iter().map(|item| self.traffic(item, &around)).collect();
        let mut entries: Vec<Traffic> = entries.into_iter().collect::<Option<_>>()?;
        let mut names = BTreeSet::new();
        for (entry, item) in entries.iter().zip(items) {
            if !entry.name.is_empty() && !names.insert(entry.name.clone()) {
                return self.problem(&item.at, format!("a second traffic entry `{}`", entry.name), None);
            }
        }
        for entry in &mut entries {
            if entry.name.is_empty() {
                entry.name = free_name(entry.kind.key(), &names);
                names.insert(entry.name.clone());
            }
            if entry.label.is_empty() {
                entry.label.clone_from(&entry.name);
            }
        }
        Some(entries)
    }

    /// One entry; name and label are empty if not given.
    fn traffic(&self, node: &Node, around: &Around) -> Option<Traffic> {
        let section = self.section(node, "this traffic")?;
        let name = section.get("name", |r, n| r.identifier(n)).unwrap_or_default();
        let label = section.get("label", |r, n| r.text(n).map(str::to_string)).unwrap_or_default();
        let start = section.get("start", |r, n| r.until(n, around.end)).unwrap_or(Time::ZERO);
        let stop = section.get("stop", Self::span);
        let cc = section.get("cc", Self::algorithm);
        if let Some(stop) = stop.filter(|stop| *stop <= start) {
            section.problem::<()>("stop", format!("`stop` ({stop}) is not after `start` ({start})"), None);
        }
        let kinds: Vec<&'static str> = KINDS.into_iter().filter(|kind| section.take(kind).is_some()).collect();
        let all_known = section.finish();
        match kinds[..] {
            [kind] => {
                let inner = self.section(section.take(kind)?, &format!("`{kind}`"))?;
                let kind = read_kind(kind, &inner, around);
                inner.finish();
                let kind = kind?;
                if cc.is_some() && kind.datagrams().is_some() {
                    let help = Some("leave out `cc`".to_string());
                    return section.problem("cc", "UDP has no congestion control", help);
                }
                Some(Traffic { name, label, start, stop, cc, kind })
            }
            // A misspelled kind has been reported.
            [] if !all_known => None,
            [] => {
                let help = Some(format!("it has one of {}", document::list(KINDS)));
                self.problem(&node.at, "this traffic does not say what is sent", help)
            }
            [first, second, ..] => {
                let help = Some("write a `[[traffic]]` entry for each".to_string());
                section.problem(second, format!("this traffic is already `{first}`"), help)
            }
        }
    }

    fn host(&self, node: &Node, topology: &Topology) -> Option<String> {
        let name = self.text(node)?;
        match topology.host_index(name) {
            Some(_) => Some(name.to_string()),
            None => self.unknown_node(node, name, topology, true),
        }
    }

    /// A list of different hosts.
    pub(super) fn hosts(&self, node: &Node, topology: &Topology) -> Option<Vec<String>> {
        let hosts = self.each(node, |r, n| r.host(n, topology))?;
        let mut seen = BTreeSet::new();
        match hosts.iter().find(|host| !seen.insert(*host)) {
            Some(twice) => self.problem(&node.at, format!("`{twice}` is listed twice"), None),
            None => Some(hosts),
        }
    }

    fn flow_bytes(&self, node: &Node) -> Option<Bytes> {
        self.within(node, |bytes: &Bytes| (1..=FLOW_BYTES_MAX).contains(&bytes.get()), "from 1 B to 1000000 GB")
    }

    fn sizes(&self, node: &Node) -> Option<Sizes> {
        let text = self.text(node)?;
        if let Some(name) = PUBLISHED.into_iter().find(|name| *name == text) {
            let distribution = SizeDistribution::published(name)?;
            return Some(Sizes { source: SizesSource::Published(name), distribution });
        }
        if !has_extension(text, "csv") {
            let help = format!("{}; or the path of a .csv file", suggestion(text, &PUBLISHED));
            return self.problem(&node.at, format!("unknown distribution of sizes `{text}`"), Some(help));
        }
        let file = self.file(node)?;
        let cached = self.context.sizes.borrow().get(&file.file.path).cloned();
        let distribution = match cached {
            Some(distribution) => distribution,
            None => match SizeDistribution::parse(&file.text) {
                Ok(distribution) => Arc::new(distribution),
                Err(error) => return self.problem_in_file(&file, error.line, &error.message),
            },
        };
        self.context.sizes.borrow_mut().insert(file.file.path.clone(), distribution.clone());
        Some(Sizes { source: SizesSource::File(file), distribution })
    }
}

/// The kind's name, numbered from 2 if it is taken.
fn free_name(kind: &str, taken: &BTreeSet<String>) -> String {
    let numbered = (2..).map(|n: u32| format!("{kind}-{n}"));
    std::iter::once(kind.to_string()).chain(numbered).find(|name| !taken.contains(name)).expect("numbers do not end")
}

pub(super) fn has_extension(path: &str, extension: &str) -> bool {
    std::path::Path::new(path).extension().is_some_and(|found| found == extension)
}

impl TrafficKind {
    /// Its key in the file.
    pub fn key(&self) -> &'static str {
        match self {
            TrafficKind::RandomPairs { .. } => "random_pairs",
            TrafficKind::Permutation { .. } => "permutation",
            TrafficKind::Bulk { .. } => "bulk",
            TrafficKind::Udp { .. } => "udp",
            TrafficKind::Incast { .. } => "incast",
            TrafficKind::AllToAll(_) => "all_to_all",
            TrafficKind::Exchange(_) => "exchange",
            TrafficKind::Poisson { .. } => "poisson",
            TrafficKind::Trace { .. } => "trace",
            TrafficKind::Job(_) => "job",
            TrafficKind::Idle { .. } => "idle",
        }
    }
}

fn read_kind(kind: &str, section: &Section, around: &Around) -> Option<TrafficKind> {
    match kind {
        "random_pairs" => {
            let flows = flows(section);
            let workload = workload(section, around.tcp);
            Some(TrafficKind::RandomPairs { flows: flows?, workload: workload? })
        }
        "permutation" => permutation(section, around),
        "bulk" => bulk(section, around.topology),
        "udp" => udp(section, around),
        "incast" => incast(section, around.topology),
        "all_to_all" => all_to_all(section, around.topology),
        "exchange" => collective(section, around.topology, |n| 2 * n).map(TrafficKind::Exchange),
        "poisson" => poisson(section, around.topology),
        "trace" => trace(section, around),
        "job" => super::job::job(section, around.topology),
        _ => Some(TrafficKind::Idle { flows: flows(section)? }),
    }
}

fn flows(section: &Section) -> Option<u32> {
    section.require("flows", |r, n| r.count(n, 1, CONNECTIONS_MAX))
}

/// `on_off`, `bulk` or `udp`.
fn workload(section: &Section, tcp: &Tcp) -> Option<Workload> {
    section.exclusive("on_off", "bulk");
    section.exclusive("on_off", "udp");
    section.exclusive("bulk", "udp");
    let udp = section.get("udp", |r, n| {
        let inner = r.section(n, "workload `udp`")?;
        let datagrams = datagrams(&inner, tcp);
        inner.finish();
        datagrams.map(Workload::Udp)
    });
    let bulk = section.get("bulk", |r, n| {
        let inner = r.section(n, "workload `bulk`")?;
        let bytes = inner.get("bytes", Reader::flow_bytes);
        inner.finish();
        Some(Workload::Bulk { bytes })
    });
    let on_off = section.get("on_off", |r, n| {
        let inner = r.section(n, "workload `on_off`")?;
        let workload = on_off(&inner, tcp.mss);
        inner.finish();
        workload
    });
    if !["on_off", "bulk", "udp"].into_iter().any(|key| section.has(key)) {
        let help = "add `bulk = {}`, `on_off = { rate = \"50 Mbit/s\", on = \"1 s\", off = \"1 s\" }` or `udp = { rate = \"50 Mbit/s\" }`";
        return section.reader.problem(
            &section.at,
            "this entry does not say what its flows send",
            Some(help.to_string()),
        );
    }
    on_off.or(bulk).or(udp)
}

/// The rate at which an application writes.
fn write_rate(section: &Section) -> Option<Rate> {
    section.require("rate", |r, n| {
        let rule = format!("from {WRITE_RATE_MIN} to {RATE_MAX}");
        r.within(n, |rate: &Rate| (WRITE_RATE_MIN..=RATE_MAX).contains(rate), &rule)
    })
}

fn datagrams(section: &Section, tcp: &Tcp) -> Option<Datagrams> {
    let rate = write_rate(section);
    let most = u64::from(tcp.mtu()) - UDP_HEADERS;
    let packet = section.get("packet", |r, n| {
        let rule = format!("from 1 B to {most} B, which with IP and UDP headers are the MTU");
        r.within(n, |bytes: &Bytes| (1..=most).contains(&bytes.get()), &rule)
    });
    Some(Datagrams { rate: rate?, packet: packet.unwrap_or(Bytes::new(most)) })
}

fn on_off(section: &Section, mss: u32) -> Option<Workload> {
    let rate = write_rate(section);
    let on = section.get("on", Reader::span).unwrap_or(Time::from_secs(1));
    let off = section.get("off", |r, n| {
        let most = Scenario::DURATION_MAX;
        r.within(n, |off: &Time| *off <= most, &format!("at most {most}"))
    });
    let packet = section.get("packet", |r, n| {
        r.within(n, |bytes: &Bytes| (1..=WRITE_BYTES_MAX).contains(&bytes.get()), "from 1 B to 1 MB")
    });
    let packet = packet.unwrap_or(Bytes::new(u64::from(mss)));
    Some(Workload::OnOff { rate: rate?, on, off: off.unwrap_or(Time::from_secs(1)), packet })
}

fn permutation(section: &Section, around: &Around) -> Option<TrafficKind> {
    let across = section
        .get("across", |r, n| r.word(n, &[("hosts", Across::Hosts), ("pods", Across::Pods)]))
        .unwrap_or(Across::Hosts);
    let workload = workload(section, around.tcp);
    if across == Across::Pods && around.topology.pods().is_none_or(|pods| pods < 2) {
        let help =
            Some("use a fat tree, a leaf–spine network, where each leaf is a pod, or another with groups".to_string());
        return section.problem("across", "this topology has fewer than two pods", help);
    }
    Some(TrafficKind::Permutation { across, workload: workload? })
}

/// Two different hosts, `from` and `to`.
fn ends(section: &Section, topology: &Topology) -> Option<(String, String)> {
    let from = section.require("from", |r, n| r.host(n, topology));
    let to = section.require("to", |r, n| r.host(n, topology));
    let (from, to) = (from?, to?);
    if from == to {
        return section.problem("to", format!("`{to}` would send to itself"), None);
    }
    Some((from, to))
}

fn udp(section: &Section, around: &Around) -> Option<TrafficKind> {
    let ends = ends(section, around.topology);
    let datagrams = datagrams(section, around.tcp);
    let (from, to) = ends?;
    Some(TrafficKind::Udp { from, to, datagrams: datagrams? })
}

fn bulk(section: &Section, topology: &Topology) -> Option<TrafficKind> {
    let ends = ends(section, topology);
    let count = section.get("count", |r, n| r.count(n, 1, CONNECTIONS_MAX)).unwrap_or(1);
    let bytes = section.get("bytes", Reader::flow_bytes);
    let (from, to) = ends?;
    Some(TrafficKind::Bulk { from, to, count, bytes })
}

fn incast(section: &Section, topology: &Topology) -> Option<TrafficKind> {
    let receiver = section.get("receiver", |r, n| r.host(n, topology)).unwrap_or_else(|| topology.host_name(0));
    let senders = section.require("senders", |r, n| match n.value {
        Value::Array(_) => r.hosts(n, topology).map(Senders::Named),
        _ => r.count(n, 1, (topology.hosts() - 1) as u32).map(Senders::First),
    });
    let bytes = section.require("bytes", Reader::flow_bytes);
    let repeat = section.get("repeat", |r, n| r.count(n, 1, u32::MAX)).unwrap_or(1);
    let interval = section.get("interval", Reader::span);
    let deadline = section.get("deadline", Reader::span);
    let barrier = section.get("barrier", |r, n| r.boolean(n));
    let pace = match (interval, barrier) {
        (Some(_), Some(true)) => {
            return section.problem("barrier", "`barrier` and `interval` exclude each other", None);
        }
        (None, Some(false)) if !section.has("interval") => {
            let help = Some("add `interval = \"10 ms\"`".to_string());
            return section.problem("barrier", "without a barrier, rounds need an interval", help);
        }
        (Some(interval), _) => Pace::Interval(interval),
        (None, _) => Pace::Barrier,
    };
    let senders = senders?;
    match &senders {
        Senders::Named(names) if names.contains(&receiver) => {
            return section.problem("senders", format!("`{receiver}` would send to itself"), None);
        }
        Senders::Named(names) if names.is_empty() => return section.problem("senders", "`senders` is empty", None),
        _ => {}
    }
    Some(TrafficKind::Incast { senders, receiver, bytes: bytes?, repeat, pace, deadline })
}

fn all_to_all(section: &Section, topology: &Topology) -> Option<TrafficKind> {
    let pairwise = section.get("pairwise", Reader::flow_bytes);
    let collective = collective(section, topology, |n| n * (n - 1))?;
    if pairwise.is_some() && collective.connections == Connections::New {
        let help = Some("leave out `pairwise`, or `connections`".to_string());
        return section.problem("pairwise", "messages are exchanged in pairs on connections that are kept", help);
    }
    Some(TrafficKind::AllToAll(Collective { pairwise, ..collective }))
}

/// `connections` is how many a job of so many hosts has.
fn collective(section: &Section, topology: &Topology, connections: fn(u128) -> u128) -> Option<Collective> {
    let bytes = section.require("bytes", |r, n| match &n.value {
        Value::Array(items) if items.is_empty() => r.problem(&n.at, "the list of message sizes is empty", None),
        Value::Array(_) => r.each(n, Reader::flow_bytes),
        _ => r.flow_bytes(n).map(|one| vec![one]),
    });
    let rounds = section.get("rounds", |r, n| r.count(n, 1, u32::MAX)).unwrap_or(1);
    let hosts = section.get("hosts", |r, n| r.hosts(n, topology));
    let jobs = section.get("jobs", |r, n| r.count(n, 1, CONNECTIONS_MAX)).unwrap_or(1);
    let words = [("reuse", Connections::Reuse), ("new", Connections::New)];
    let reused = section.get("connections", |r, n| r.word(n, &words)).unwrap_or(Connections::Reuse);
    let think = section.get("think", think);
    let count = hosts.as_ref().map_or(topology.hosts(), |hosts| hosts.len() as u64);
    if count < 2 {
        return section.problem("hosts", "a collective needs at least 2 hosts", None);
    }
    if count / u64::from(jobs) < 2 {
        let message = format!("{count} hosts are too few for {jobs} jobs: a job has at least 2");
        return section.problem("jobs", message, None);
    }
    let all = connections(u128::from(count.div_ceil(u64::from(jobs)))) * u128::from(jobs);
    if all > u128::from(CONNECTIONS_MAX) {
        let help = Some("name fewer `hosts`, or make more `jobs` of them".to_string());
        let message = format!("{count} hosts make {all} connections, too many: at most {CONNECTIONS_MAX}");
        return section.problem("hosts", message, help);
    }
    Some(Collective { bytes: bytes?, rounds, hosts, jobs, connections: reused, think, pairwise: None })
}

pub(super) fn think(reader: &Reader, node: &Node) -> Option<Think> {
    let Value::Table(_) = &node.value else { return reader.span(node).map(Think::Fixed) };
    let section = reader.section(node, "`think`")?;
    let mean = section.require("exponential", Reader::span);
    section.finish();
    mean.map(Think::Exponential)
}

fn poisson(section: &Section, topology: &Topology) -> Option<TrafficKind> {
    section.exclusive("load", "flows_per_second");
    let load = section.get("load", Reader::percentage).map(Arrivals::Load);
    let rate = section.get("flows_per_second", |r, n| match r.number(n, 1e9)? {
        rate if rate < ARRIVALS_MIN => {
            r.problem(&n.at, format!("`{rate}` is out of range: at least {ARRIVALS_MIN}"), None)
        }
        rate => Some(Arrivals::FlowsPerSecond(rate)),
    });
    let sizes = section.require("sizes", Reader::sizes);
    let from = section.get("from", |r, n| r.hosts(n, topology));
    let to = section.get("to", |r, n| r.hosts(n, topology));
    let flows = section.get("flows", |r, n| r.integer(n, 1, INTEGER_MAX));
    if !section.has("load") && !section.has("flows_per_second") {
        let help = Some("say `load = \"30 %\"` or `flows_per_second = 1000`".to_string());
        return section.reader.problem(&section.at, "the arrival rate is missing", help);
    }
    if let (Some(from), Some(to)) = (&from, &to)
        && from.len() == 1
        && from == to
    {
        return section.problem("to", format!("`{}` would send to itself", from[0]), None);
    }
    if let Some(key) =
        [("from", &from), ("to", &to)].into_iter().find(|(_, hosts)| hosts.as_ref().is_some_and(Vec::is_empty))
    {
        return section.problem(key.0, format!("`{}` lists no host", key.0), None);
    }
    Some(TrafficKind::Poisson { arrivals: load.or(rate)?, sizes: sizes?, from, to, flows })
}

fn trace(section: &Section, around: &Around) -> Option<TrafficKind> {
    let file = section.require("file", Reader::file)?;
    let flows = read_trace(section.reader, &file, around)?;
    Some(TrafficKind::Trace { file, flows })
}

fn read_trace(reader: &Reader, file: &DataFile, around: &Around) -> Option<Arc<[TraceFlow]>> {
    let mut lines = file
        .text
        .lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let header = lines.next();
    if header.is_none_or(|(_, header)| header.replace(' ', "") != "time_s,src,dst,bytes") {
        let line = header.map_or(1, |(line, _)| line);
        return reader.problem_in_file(file, line, "the header of a trace is `time_s,src,dst,bytes`");
    }
    let names: BTreeSet<&str> = around.topology.listed_names(true).into_iter().collect();
    let known = |name: &str| names.contains(name) || (names.is_empty() && around.topology.host_index(name).is_some());
    let mut flows: Vec<TraceFlow> = Vec::new();
    for (line, row) in lines {
        match trace_flow(row, around, &known) {
            Ok(flow) if flows.last().is_some_and(|before| flow.at < before.at) => {
                return reader.problem_in_file(file, line, "this flow begins before the one above: sort by time");
            }
            Ok(flow) => flows.push(flow),
            Err(message) => return reader.problem_in_file(file, line, &message),
        }
    }
    Some(flows.into())
}

fn trace_flow(row: &str, around: &Around, known: &dyn Fn(&str) -> bool) -> Result<TraceFlow, String> {
    let cells: Vec<&str> = row.split(',').map(str::trim).collect();
    let [at, from, to, bytes] = cells[..] else {
        return Err(format!("{} columns; a flow has 4: time_s,src,dst,bytes", cells.len()));
    };
    let seconds = at.parse::<f64>().ok().filter(|seconds| *seconds >= 0.0 && *seconds <= around.end.as_secs_f64());
    let at = seconds
        .map(Time::from_secs_f64)
        .ok_or_else(|| format!("`{at}` is not a time in seconds within the run of {}", around.end))?;
    for name in [from, to] {
        if !known(name) {
            return Err(format!("there is no host `{name}`; {}", around.topology.describe_hosts()));
        }
    }
    if from == to {
        return Err(format!("`{from}` would send to itself"));
    }
    let bytes = bytes
        .parse()
        .ok()
        .filter(|bytes| (1..=FLOW_BYTES_MAX).contains(bytes))
        .ok_or_else(|| format!("`{bytes}` is not a number of bytes, from 1 to {FLOW_BYTES_MAX}"))?;
    Ok(TraceFlow { at, from: from.into(), to: to.into(), bytes: Bytes::new(bytes) })
}
