//! A scenario of a fleet's network, from what its collectors and agents reported.
//!
//! What was reported is taken as it is: hosts, racks, cables and their rates, round-trip times, the congestion control, and transfers by
//! racks and size. What nobody reported is assumed, and each assumption is a comment in the scenario, for its reader to change.

use crate::failure::Failure;
use policy::{Host, NetworkView, Transfers};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};
use units::{Bytes, Rate, Time};

/// Most hosts of a scenario that is made here: more would take hours to simulate.
pub const HOSTS_MAX: usize = 4096;
/// Decisions in a run.
const PERIODS: u64 = 20;
/// T is so many RTTs: a policy's rules need more than 100.
const RTTS: u64 = 150;
/// T at least; for a network whose RTTs were not reported as well.
const PERIOD_MIN: Time = Time::from_secs(1);
/// Of a cable whose rate was not reported.
const RATE: Rate = Rate::from_gbps(10);
/// One way, of each cable, if no RTTs were reported.
const DELAY: Time = Time::from_us(5);
/// Mean rate of a pair of racks below which its transfers are left out, a second: none would begin in a run.
const STARTS_MIN: f64 = 1e-3;

/// A scenario, and the files that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twin {
    /// The scenario file.
    pub toml: String,
    /// Names and texts of further files, to be written beside it.
    pub files: Vec<(String, String)>,
    /// What was assumed, a sentence each; they are comments in the scenario, too.
    pub assumed: Vec<String>,
    /// T for policies that are tried in it: a twentieth of a run.
    pub period: Time,
}

/// Why no scenario can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TwinError {
    /// Fewer than two hosts.
    #[error("{0} hosts have reported: a network has at least two")]
    Hosts(usize),
    /// Too many.
    #[error("{0} hosts have reported; a scenario is made of at most {HOSTS_MAX}")]
    Many(usize),
    /// Nothing to simulate.
    #[error("no transfer has been reported yet: agents report connections when they end")]
    Idle,
}

impl Twin {
    /// Of a view of a fleet. `simulated` says which algorithms the simulator has.
    ///
    /// # Errors
    /// Too little was reported, or of too many hosts.
    pub fn of(view: &NetworkView, simulated: &dyn Fn(&str) -> bool) -> Result<Twin, TwinError> {
        let hosts = view.hosts.len();
        if hosts < 2 {
            return Err(TwinError::Hosts(hosts));
        }
        if hosts > HOSTS_MAX {
            return Err(TwinError::Many(hosts));
        }
        let mut assumed = Vec::new();
        let network = Network::of(view, &mut assumed);
        let (traffic, files) = traffic(view, &network, &mut assumed)?;
        let rtts = rtts(&view.hosts);
        let delay = if let Some((shortest, _)) = rtts {
            // as many cables one way as a path of the network has, and back
            Time::from_ps((shortest.as_ps() / (2 * network.hops())).max(Time::from_ns(100).as_ps()))
        } else {
            assumed.push(format!("no round-trip time was reported: each cable takes {DELAY} one way"));
            DELAY
        };
        let period = rtts.map_or(PERIOD_MIN, |(_, longest)| (longest * RTTS).max(PERIOD_MIN));
        let cc = cc(&view.hosts, simulated, &mut assumed);
        let marks = view.links.iter().any(|link| link.marks == Some(true));
        let queue = if marks {
            assumed.push(
                "switches mark at 65 packets and have room for 250: they report that they mark, and no more".into(),
            );
            "{ threshold_ecn = { packets = 250, mark_packets = 65 } }"
        } else {
            assumed.push("queues hold 250 packets: switches do not report their buffers".into());
            "{ drop_tail = { packets = 250 } }"
        };
        let mut toml =
            String::from("# Made of what a fleet's collectors and agents reported. Change what you know better.\n#\n");
        line_of(
            &mut toml,
            format_args!(
                "#   opentcp policy try POLICY.toml --scenario THIS-FILE --set \"policy.period={period}\"\n#\n# Assumed:"
            ),
        );
        for line in &assumed {
            line_of(&mut toml, format_args!("#  - {line}"));
        }
        line_of(&mut toml, format_args!("\nduration = \"{}\"\n", period * PERIODS));
        line_of(&mut toml, format_args!("[network]\ndelay = \"{delay}\"\nqueue = {queue}\n"));
        toml.push_str(&network.toml());
        line_of(&mut toml, format_args!("[tcp]\ncc = \"{cc}\"\n"));
        toml.push_str(&traffic);
        Ok(Twin { toml, files, assumed, period })
    }

    /// Writes the scenario to `path`, and its files beside it. Files of earlier ones are replaced.
    ///
    /// # Errors
    /// The system's, with the file.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let failed = |file: &Path, error: io::Error| Failure::Input(format!("{}: {error}", file.display()));
        if folder != Path::new("") {
            fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        }
        let files = self.files.iter().map(|(name, text)| (folder.join(name), text));
        // the scenario last, so that what is there can be run
        for (file, text) in files.chain([(path.to_path_buf(), &self.toml)]) {
            fs::write(&file, text).map_err(|error| failed(&file, error))?;
        }
        Ok(())
    }
}

fn line_of(toml: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(toml, "{line}").expect("writing to a string");
}

/// Hosts, switches, and the cables between them.
struct Network {
    /// By its name in the view: its name in the scenario, and its rack.
    hosts: BTreeMap<String, (String, String)>,
    switches: BTreeSet<String>,
    /// By both ends, in order.
    cables: BTreeMap<(String, String), Rate>,
}

impl Network {
    fn of(view: &NetworkView, assumed: &mut Vec<String>) -> Network {
        let mut names = Names::default();
        let hosts: BTreeMap<String, (String, String)> =
            view.hosts.iter().map(|host| (host.name.clone(), (names.of(&host.name), host.rack.clone()))).collect();
        let mut network = Network { hosts, switches: BTreeSet::new(), cables: BTreeMap::new() };
        let mut cabled = BTreeSet::new();
        let (mut multihomed, mut unrated) = (0, 0);
        for link in &view.links {
            let ends = [&link.from, &link.to].map(|end| end.strip_prefix("host ").unwrap_or(end));
            let of_hosts = ends.map(|end| network.hosts.get(end).map(|(name, _)| name.clone()));
            if ends[0] == ends[1] || ends.iter().any(|end| end.is_empty()) || of_hosts.iter().all(Option::is_some) {
                continue;
            }
            let [a, b] = [0, 1].map(|i| of_hosts[i].clone().unwrap_or_else(|| names.of(ends[i])));
            let ends = if a < b { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) };
            let host = of_hosts.iter().flatten().next();
            if host.is_some_and(|host| !network.cables.contains_key(&ends) && !cabled.insert(host.clone())) {
                multihomed += 1;
                continue;
            }
            for (end, host) in [&a, &b].into_iter().zip(&of_hosts) {
                if host.is_none() {
                    network.switches.insert(end.clone());
                }
            }
            unrated += usize::from(link.rate.is_none());
            let rate = network.cables.entry(ends).or_insert(Rate::from_bps(0));
            *rate = (*rate).max(link.rate.unwrap_or(RATE));
        }
        if multihomed > 0 {
            assumed.push(format!(
                "{multihomed} further cables of hosts with several are left out: a simulated host has one"
            ));
        }
        if unrated > 0 {
            assumed.push(format!("{unrated} links did not report their rate: {RATE}"));
        }
        network.join(&mut names, &cabled, assumed);
        network
    }

    /// Connects what no reported cable connects: a switch for each rack, and one switch between all parts.
    fn join(&mut self, names: &mut Names, cabled: &BTreeSet<String>, assumed: &mut Vec<String>) {
        let lonely: Vec<(String, String)> =
            self.hosts.values().filter(|(name, _)| !cabled.contains(name)).cloned().collect();
        if !lonely.is_empty() {
            assumed.push(format!("{} hosts reported no link: each has {RATE} to its rack's switch", lonely.len()));
        }
        for (host, rack) in lonely {
            let switch = names.of(if rack.is_empty() { "rack" } else { &rack });
            self.switches.insert(switch.clone());
            self.cables.insert(if host < switch { (host, switch) } else { (switch, host) }, RATE);
        }
        let parts = self.parts();
        if parts.len() < 2 {
            return;
        }
        let core = names.of("core of the network");
        assumed.push(format!(
            "no cable was reported between {} parts of the network: one switch joins them, and is never the bottleneck",
            parts.len()
        ));
        for part in parts {
            // as much as all cables of the part's hosts together
            let hosts =
                self.cables.iter().filter(|((a, b), _)| part.contains(a) && (self.is_host(a) || self.is_host(b)));
            let rate = hosts.map(|(_, rate)| rate.as_bps()).sum::<u64>().max(RATE.as_bps());
            let edge = part.iter().find(|name| self.switches.contains(*name)).expect("each host has a switch").clone();
            let ends = if edge < core { (edge, core.clone()) } else { (core.clone(), edge) };
            self.cables.insert(ends, Rate::from_bps(rate.min(Rate::from_gbps(10_000).as_bps())));
        }
        self.switches.insert(core);
    }

    fn is_host(&self, name: &str) -> bool {
        !self.switches.contains(name)
    }

    /// What cables connect.
    fn parts(&self) -> Vec<BTreeSet<String>> {
        let mut near: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (a, b) in self.cables.keys() {
            near.entry(a).or_default().push(b);
            near.entry(b).or_default().push(a);
        }
        let (mut parts, mut seen) = (Vec::new(), BTreeSet::new());
        for start in near.keys().copied() {
            let (mut part, mut next) = (BTreeSet::new(), vec![start]);
            while let Some(name) = next.pop() {
                if seen.insert(name) {
                    part.insert(name.to_string());
                    next.extend(&near[name]);
                }
            }
            if !part.is_empty() {
                parts.push(part);
            }
        }
        parts
    }

    /// Cables of a path between two racks, about.
    fn hops(&self) -> u64 {
        let is_edge = |name: &str| {
            self.cables.keys().any(|(a, b)| (a == name && self.is_host(b)) || (b == name && self.is_host(a)))
        };
        match self.switches.iter().filter(|name| !is_edge(name)).count() {
            0 if self.switches.len() == 1 => 2,
            0 => 3,
            _ => 4,
        }
    }

    /// Names in the scenario of the hosts of a rack; of all hosts if the rack is not known.
    fn of_rack(&self, rack: &str) -> Vec<&str> {
        let named = |of: Option<&str>| {
            let hosts = self.hosts.values().filter(|(_, rack)| of.is_none_or(|of| of == rack));
            hosts.map(|(name, _)| name.as_str()).collect::<Vec<_>>()
        };
        let hosts = named(Some(rack));
        if hosts.is_empty() { named(None) } else { hosts }
    }

    fn toml(&self) -> String {
        let mut toml = String::from("[network.topology.explicit]\nnodes = [\n");
        let hosts = self.hosts.values().map(|(name, _)| (name.as_str(), "host"));
        for (name, kind) in hosts.chain(self.switches.iter().map(|name| (name.as_str(), "switch"))) {
            line_of(&mut toml, format_args!("    {{ name = \"{name}\", kind = \"{kind}\" }},"));
        }
        toml.push_str("]\nlinks = [\n");
        for ((a, b), rate) in &self.cables {
            line_of(&mut toml, format_args!("    {{ a = \"{a}\", b = \"{b}\", rate = \"{rate}\" }},"));
        }
        toml.push_str("]\n\n");
        toml
    }
}

/// Names of a scenario: letters, digits, `_` and `.`, each once.
#[derive(Default)]
struct Names {
    known: BTreeMap<String, String>,
    taken: BTreeSet<String>,
}

impl Names {
    fn of(&mut self, name: &str) -> String {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let plain: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' }).take(48).collect();
        let plain = if plain.starts_with('.') || plain.is_empty() { format!("_{plain}") } else { plain };
        let mut unique = plain.clone();
        let mut n = 2;
        while !self.taken.insert(unique.clone()) {
            unique = format!("{plain}_{n}");
            n += 1;
        }
        self.known.insert(name.to_string(), unique.clone());
        unique
    }
}

/// The lowest and the 99th percentile of the smoothed RTTs of all hosts.
fn rtts(hosts: &[Host]) -> Option<(Time, Time)> {
    let mut steps: BTreeMap<u32, u64> = BTreeMap::new();
    for (us, connections) in hosts.iter().flat_map(|host| &host.srtt_us) {
        *steps.entry(*us).or_default() += u64::from(*connections);
    }
    let all: u64 = steps.values().sum();
    let mut below = 0;
    let p99 = steps.iter().find(|(_, connections)| {
        below += **connections;
        below * 100 >= all * 99
    });
    let (shortest, _) = steps.iter().find(|(_, connections)| **connections > 0)?;
    Some((Time::from_us(u64::from(*shortest)), Time::from_us(u64::from(*p99?.0))))
}

/// The algorithm of most hosts.
fn cc(hosts: &[Host], simulated: &dyn Fn(&str) -> bool, assumed: &mut Vec<String>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for host in hosts.iter().filter(|host| !host.cc.is_empty()) {
        *counts.entry(host.cc.as_str()).or_default() += 1;
    }
    let most = counts.iter().max_by_key(|(_, hosts)| **hosts).map(|(cc, _)| *cc);
    match most {
        Some(cc) if simulated(cc) => {
            if counts.len() > 1 {
                assumed.push(format!("all hosts use {cc}, as most do"));
            }
            cc.to_string()
        }
        Some(cc) => {
            assumed.push(format!("hosts use `{cc}`, which the simulator does not have: cubic"));
            "cubic".to_string()
        }
        None => {
            assumed.push("hosts did not report their congestion control: cubic".to_string());
            "cubic".to_string()
        }
    }
}

/// Entries of traffic, one for each pair of racks, and their distributions of sizes.
fn traffic(
    view: &NetworkView,
    network: &Network,
    assumed: &mut Vec<String>,
) -> Result<(String, Vec<(String, String)>), TwinError> {
    let mut pairs: BTreeMap<(&str, &str), Vec<&Transfers>> = BTreeMap::new();
    for one in view.transfers.iter().filter(|one| one.starts > 0.0 && one.size > Bytes::new(0)) {
        pairs.entry((&one.from, &one.to)).or_default().push(one);
    }
    let (mut toml, mut files, mut rare) = (String::new(), Vec::new(), 0);
    for ((from, to), mut classes) in pairs {
        let starts: f64 = classes.iter().map(|one| one.starts).sum();
        let (senders, receivers) = (network.of_rack(from), network.of_rack(to));
        if starts < STARTS_MIN || (senders.len() == 1 && senders == receivers) {
            rare += 1;
            continue;
        }
        let name = format!("traffic-{}", files.len() + 1);
        let rack = |name: &str| {
            if name.is_empty() { "hosts without a rack".to_string() } else { name.escape_debug().to_string() }
        };
        let list = |hosts: &[&str]| hosts.iter().map(|host| format!("\"{host}\"")).collect::<Vec<_>>().join(", ");
        line_of(&mut toml, format_args!("# from {} to {}", rack(from), rack(to)));
        line_of(
            &mut toml,
            format_args!(
                "[[traffic]]\nname = \"{name}\"\n[traffic.poisson]\nflows_per_second = {starts:.6}\nsizes = \"{name}.csv\""
            ),
        );
        line_of(&mut toml, format_args!("from = [{}]\nto = [{}]\n", list(&senders), list(&receivers)));
        classes.sort_by_key(|one| one.size);
        let (mut csv, mut below) = (String::from("bytes,cdf\n"), 0.0);
        let last = classes.len() - 1;
        for (i, one) in classes.iter().enumerate() {
            // a jump: transfers of exactly the mean size of their class
            line_of(&mut csv, format_args!("{},{:.9}", one.size.get(), below / starts));
            below += one.starts;
            let share = if i == last { 1.0 } else { below / starts };
            line_of(&mut csv, format_args!("{},{share:.9}", one.size.get()));
        }
        files.push((format!("{name}.csv"), csv));
    }
    if files.is_empty() {
        return Err(TwinError::Idle);
    }
    assumed.push(
        "transfers begin at random, independently of each other (Poisson), and have the mean size of their class"
            .into(),
    );
    if rare > 0 {
        assumed.push(format!(
            "transfers of {rare} pairs of racks are left out: fewer than one in {} s, or within one host",
            1.0 / STARTS_MIN
        ));
    }
    Ok((toml, files))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::algorithm_names;
    use policy::Link;
    use scenario::{Disk, Input, Known, Scenario, TrafficKind};

    fn host(name: &str, rack: &str) -> Host {
        let srtt_us = vec![(80, 90), (400, 10)];
        Host { name: name.into(), rack: rack.into(), cc: "cubic".into(), srtt_us, ..Host::default() }
    }

    fn link(from: &str, to: &str, gbps: u64) -> Link {
        let (from, to, rate) = (from.to_string(), to.to_string(), Some(Rate::from_gbps(gbps)));
        Link { name: format!("{from} {to}"), from, to, rate, ..Link::default() }
    }

    fn transfers(from: &str, to: &str, starts: f64, bytes: u64) -> Transfers {
        Transfers { from: from.into(), to: to.into(), starts, size: Bytes::new(bytes) }
    }

    /// Two racks of two hosts, as collectors and agents report them.
    fn view() -> NetworkView {
        let mut links = Vec::new();
        for (one, other, gbps) in [
            ("db-1", "leaf 1", 10),
            ("db-2", "leaf 1", 10),
            ("web-1", "leaf 2", 1),
            ("web-2", "leaf 2", 1),
            ("leaf 1", "spine", 40),
            ("leaf 2", "spine", 40),
        ] {
            links.extend([link(one, other, gbps), link(other, one, gbps)]);
        }
        NetworkView {
            hosts: vec![host("db-1", "r1"), host("db-2", "r1"), host("web-1", "r2"), host("web-2", "r2")],
            links,
            transfers: vec![
                transfers("r1", "r2", 30.0, 200_000),
                transfers("r1", "r2", 70.0, 2_000),
                transfers("r2", "r1", 50.0, 500),
                transfers("r2", "", 1e-9, 500),
            ],
            ..NetworkView::default()
        }
    }

    fn parsed(twin: &Twin) -> Scenario {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.toml");
        twin.write(&path).unwrap();
        let (names, text) = (algorithm_names(), fs::read_to_string(&path).unwrap());
        let known = Known { algorithms: &names, ..Known::default() };
        let files = Disk { base: folder.path().to_path_buf() };
        let input = Input { name: "fleet.toml", text: &text, sets: &[], known, files: &files };
        let loaded = Scenario::parse(&input).unwrap_or_else(|error| panic!("{}\n{text}", error.render(false)));
        loaded.runs.into_iter().next().unwrap().scenario
    }

    fn of(view: &NetworkView) -> Twin {
        let names = algorithm_names();
        Twin::of(view, &|name| names.contains(&name)).unwrap()
    }

    #[test]
    fn what_was_reported_is_in_the_scenario() {
        let twin = of(&view());
        let scenario = parsed(&twin);
        assert_eq!(scenario.network.topology.hosts(), 4);
        // 150 RTTs of 400 us are less than a second
        assert_eq!((twin.period, scenario.duration), (Time::from_secs(1), Time::from_secs(20)));
        // of four cables there and four back
        assert!(twin.toml.contains("delay = \"10 us\""), "{}", twin.toml);
        assert!(twin.toml.contains("{ a = \"db_1\", b = \"leaf_1\", rate = \"10 Gbit/s\" }"), "{}", twin.toml);
        assert!(twin.toml.contains("{ a = \"leaf_2\", b = \"spine\", rate = \"40 Gbit/s\" }"), "{}", twin.toml);
        let rates: Vec<(f64, usize, f64)> = scenario
            .traffic
            .iter()
            .map(|entry| match &entry.kind {
                TrafficKind::Poisson { arrivals: scenario::Arrivals::FlowsPerSecond(rate), sizes, from, .. } => {
                    (*rate, from.as_ref().unwrap().len(), sizes.distribution.mean().round())
                }
                other => panic!("{other:?}"),
            })
            .collect();
        // 0.7 of 2 kB and 0.3 of 200 kB
        assert_eq!(rates, [(100.0, 2, 61_400.0), (50.0, 2, 500.0)]);
        let assumed = twin.assumed.join("\n");
        assert!(assumed.contains("1 pairs of racks are left out") && assumed.contains("250 packets"), "{assumed}");
    }

    #[test]
    fn what_no_cable_connects_is_joined_by_switches() {
        let alone = NetworkView { links: Vec::new(), ..view() };
        let twin = of(&alone);
        parsed(&twin);
        assert!(twin.assumed.iter().any(|line| line.starts_with("4 hosts reported no link")), "{:?}", twin.assumed);
        assert!(twin.assumed.iter().any(|line| line.contains("between 2 parts of the network")), "{:?}", twin.assumed);
        // agents report their own links only
        let own = vec![link("db-1", "r1", 25), link("r1", "db-1", 25), link("web-1", "switch of web-1", 1)];
        let twin = of(&NetworkView { links: own, ..view() });
        parsed(&twin);
        assert!(twin.toml.contains("{ a = \"db_1\", b = \"r1\", rate = \"25 Gbit/s\" }"), "{}", twin.toml);
    }

    #[test]
    fn odd_views_give_a_scenario_or_a_reason() {
        let few = NetworkView { hosts: vec![host("a", "")], ..view() };
        let names = |_: &str| true;
        assert_eq!(Twin::of(&few, &names), Err(TwinError::Hosts(1)));
        assert_eq!(Twin::of(&NetworkView { transfers: Vec::new(), ..view() }, &names), Err(TwinError::Idle));
        let odd = ["a-b", "a_b", "a b", ".", "\u{e4}", "", "spine"]
            .map(|name| host(if name.is_empty() { "-" } else { name }, ""));
        let mut links = view().links;
        links.push(link("a-b", "leaf 1", 1));
        links.push(link("a-b", "leaf 2", 1));
        links.push(Link { rate: None, ..link("a_b", "leaf 2", 1) });
        links.push(link("a-b", "a_b", 1));
        let mut hosts = odd.to_vec();
        for host in &mut hosts {
            host.cc = "kernel:nv".into();
        }
        let twin =
            of(&NetworkView { hosts, links, transfers: vec![transfers("", "", 5.0, 1)], ..NetworkView::default() });
        parsed(&twin);
        let assumed = twin.assumed.join("\n");
        assert!(assumed.contains("`kernel:nv`, which the simulator does not have"), "{assumed}");
        assert!(assumed.contains("did not report their rate") && assumed.contains("further cables"), "{assumed}");
    }
}
