//! What `opentcp collect` reads: the switches and exporters, and how.

#[cfg(test)]
mod tests;

use crate::flows::{self, EXPORTERS_MAX, Exporter, Protocol, RACKS_MAX, Racks};
use crate::openflow::Expected;
use crate::{PortSettings, SWITCH_NAME_MAX};
use crate::{gnmi, snmp};
use document::tree::{Entry, Node, Origin, Value, parse_document};
use document::{Diagnostic, Problem, Source, Values};
use policy::Prefix;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use units::{Rate, Time};

type Section<'n, 'a> = document::Section<'n, Reader<'a>>;

/// Most switches of a collector.
const SWITCHES_MAX: usize = 1024;
/// Most receivers of flow export.
const RECEIVERS_MAX: usize = 16;
/// Most ports with settings.
const PORTS_MAX: usize = crate::PORTS_MAX;
/// Shortest and longest interval.
const INTERVAL_MIN: Time = Time::from_secs(1);
const INTERVAL_MAX: Time = Time::from_secs(3600);
/// Default of `interval`.
const INTERVAL: Time = Time::from_secs(10);
/// Longest `timeout`.
const TIMEOUT_MAX: Time = Time::from_secs(60);
/// Longest `window`.
const WINDOW_MAX: Time = Time::from_secs(3600);
/// Longest text of a name or an address, bytes.
const TEXT_MAX: usize = 255;

/// A collector's configuration.
#[derive(Debug)]
pub struct Config {
    /// What it calls itself, if the file says it.
    pub name: Option<String>,
    /// How often it measures.
    pub interval: Time,
    /// The Oracle's Unix socket, if the file names one.
    pub bus: Option<PathBuf>,
    /// Which rack an address is in.
    pub racks: Vec<(Prefix, String)>,
    /// Switches that are asked.
    pub switches: Vec<Switch>,
    /// Receivers of flow export.
    pub flows: Vec<Receiver>,
}

/// A switch that is asked.
#[derive(Debug)]
pub struct Switch {
    /// Its name in views.
    pub name: String,
    /// How often it is asked.
    pub interval: Time,
    /// What is known of its ports.
    pub ports: BTreeMap<String, PortSettings>,
    /// How it is asked.
    pub way: Way,
}

/// How a switch is asked.
#[derive(Debug)]
pub enum Way {
    /// By SNMP.
    Snmp(Box<snmp::Options>),
    /// By OpenFlow.
    OpenFlow(Box<OpenFlow>),
    /// By gNMI: it sends its counters by itself.
    Gnmi(Box<gnmi::Options>),
}

impl Way {
    /// The protocol, for people.
    pub fn protocol(&self) -> &'static str {
        match self {
            Way::Snmp(_) => "SNMP",
            Way::OpenFlow(_) => "OpenFlow",
            Way::Gnmi(_) => "gNMI",
        }
    }
}

/// How a switch is asked by OpenFlow.
#[derive(Debug)]
pub struct OpenFlow {
    /// Who connects to whom.
    pub end: End,
    /// The switch's number, if another is to be refused.
    pub datapath: Option<u64>,
    /// Longest wait.
    pub timeout: Time,
    /// Find neighbours; this adds a flow entry to the switch while it is read.
    pub lldp: bool,
    /// Racks whose traffic its flow entries count.
    pub matrix: Vec<String>,
    /// Certificates.
    pub tls: Option<Tls>,
}

/// Who connects.
#[derive(Debug)]
pub enum End {
    /// The collector, to this address.
    Connect(String),
    /// The switch, from one of these addresses; `None`: from any.
    Listen(SocketAddr, Option<Vec<IpAddr>>),
}

/// Files of certificates, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Who signs the switch's certificate.
    pub ca: PathBuf,
    /// The collector's.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// A receiver of flow export.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Where datagrams come.
    pub listen: SocketAddr,
    /// From whom, and how they are counted.
    pub settings: flows::Settings,
}

impl Config {
    /// Checks a configuration's text, and reads the files of credentials that it names; they are looked for beside `name`, the file.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place.
    pub fn parse(name: &str, text: &str) -> Result<Config, Diagnostic> {
        let sources = [Source { name: name.to_string(), text: text.into() }];
        let failed = |problems| Diagnostic::new(problems, &sources);
        let root = parse_document(0, text).map_err(|errors| {
            let problem = |error: document::tree::Syntax| Problem {
                message: format!("this is not TOML: {}", error.message),
                at: Origin { source: 0, span: error.span },
                help: None,
            };
            failed(errors.into_iter().map(problem).collect())
        })?;
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        let reader = Reader { values: Values::default(), folder };
        let config = reader.config(&root);
        let problems = reader.values.into_problems();
        match config {
            Some(config) if problems.is_empty() => Ok(config),
            _ => Err(failed(problems)),
        }
    }

    /// Racks by prefix.
    pub fn racks(&self) -> Racks {
        Racks::new(&self.racks)
    }
}

/// How a switch is asked, as the file names it.
#[derive(Clone, Copy)]
enum Asked {
    Snmp,
    OpenFlow,
    Gnmi,
}

struct Reader<'a> {
    values: Values,
    /// Beside which relative paths are looked for.
    folder: &'a Path,
}

impl Deref for Reader<'_> {
    type Target = Values;
    fn deref(&self) -> &Values {
        &self.values
    }
}

impl<'a> Reader<'a> {
    fn config(&self, root: &Node) -> Option<Config> {
        let section = Section::of(self, root, "the configuration")?;
        let name = section.get("name", |reader, node| reader.identifier(node));
        let interval = section.get("interval", Reader::interval).unwrap_or(INTERVAL);
        let bus = section.get("bus", Reader::path);
        let racks = section.get("racks", Reader::racks).unwrap_or_default();
        // also those whose prefix is wrong, so that a mistake is reported once
        let known = section.take("racks").map(names_of).unwrap_or_default();
        let read = |node: &Node| self.switch(node, interval, &known);
        let switches = section.get("switch", |_, node| self.list(node, SWITCHES_MAX, read)).unwrap_or_default();
        let read = |node: &Node| self.receiver(node, interval, &known);
        let flows = section.get("flows", |_, node| self.list(node, RECEIVERS_MAX, read)).unwrap_or_default();
        if !section.has("switch") && !section.has("flows") {
            let help = "add a `[[switch]]` that is asked, or a `[[flows]]` that receives flow export".to_string();
            return self.problem(&root.at, "nothing is collected", Some(help));
        }
        if !flows.is_empty() && racks.is_empty() && !section.has("racks") {
            let help = "add `[racks]`, for example `\"10.1.0.0/16\" = \"r1\"`".to_string();
            let counts = flows.iter().any(|one: &Receiver| one.settings.exporters.iter().any(|e| e.switch.is_none()));
            if counts {
                section.problem::<()>("flows", "flow export without racks: no traffic can be counted", Some(help));
            }
        }
        let mut names = BTreeSet::new();
        let of_flows = flows.iter().flat_map(|one| &one.settings.exporters).filter_map(|e| e.switch.as_deref());
        for name in switches.iter().map(|switch| switch.name.as_str()).chain(of_flows) {
            if !names.insert(name) {
                let help = "its links would have the same names; one source per switch".to_string();
                section.problem::<()>("switch", format!("two sources are called `{name}`"), Some(help));
            }
        }
        Reader::shared_listeners(&section, &switches);
        section.finish();
        Some(Config { name, interval, bus, racks, switches, flows })
    }

    fn switch(&self, node: &Node, interval: Time, racks: &BTreeSet<&str>) -> Option<Switch> {
        let section = Section::of(self, node, "`[[switch]]`")?;
        let name = section.require("name", Reader::switch_name);
        let interval = section.get("interval", Reader::interval).unwrap_or(interval);
        let ports = section.get("ports", Reader::ports).unwrap_or_default();
        let words = [("snmp", Asked::Snmp), ("openflow", Asked::OpenFlow), ("gnmi", Asked::Gnmi)];
        let way = match section.require("protocol", |reader, node| reader.word(node, &words))? {
            Asked::Snmp => Reader::snmp(&section),
            Asked::OpenFlow => self.openflow(&section, racks),
            Asked::Gnmi => Reader::gnmi(&section, name.as_deref().unwrap_or_default(), interval),
        };
        section.finish();
        Some(Switch { name: name?, interval, ports, way: way? })
    }

    fn snmp(section: &Section<'_, 'a>) -> Option<Way> {
        let address = section.require("address", Reader::address);
        let access = section.require("credentials", |reader, node| {
            let path = reader.path(node)?;
            let read = snmp::Access::from_file(&path);
            read.map_or_else(|error| reader.problem(&node.at, error.to_string(), None), Some)
        });
        let timeout = section.get("timeout", Reader::timeout);
        let retries = section.get("retries", |reader, node| reader.count(node, 0, 5));
        let mut options = snmp::Options::new(address?, access?);
        options.timeout = timeout.unwrap_or(options.timeout);
        options.retries = retries.unwrap_or(options.retries);
        Some(Way::Snmp(Box::new(options)))
    }

    fn gnmi(section: &Section<'_, 'a>, switch: &str, interval: Time) -> Option<Way> {
        let address = section.require("address", Reader::address);
        let login = section.get("credentials", |reader, node| {
            let read = gnmi::Login::from_file(&reader.path(node)?);
            read.map_or_else(|error| reader.problem(&node.at, error.to_string(), None), Some)
        });
        let tls = section.get("tls", Reader::gnmi_tls);
        let is_open = address.as_deref().is_some_and(|address| !gnmi::is_here(address)) && !section.has("tls");
        if is_open && section.has("credentials") {
            let help = "add `tls = { ca = FILE }`, the certificate of the authority of the switch's certificate";
            section.problem::<()>("credentials", "a password is sent through TLS only", Some(help.to_string()));
        }
        let timeout = section.get("timeout", Reader::timeout);
        let [queues, neighbours] = ["queues", "neighbours"].map(|key| section.get(key, |r, node| r.boolean(node)));
        let words = gnmi::Encoding::ALL.map(|encoding| (encoding.word(), encoding));
        let encoding = section.get("encoding", |reader, node| reader.word(node, &words));
        let mut options = gnmi::Options::new(switch, address?, interval);
        options.timeout = timeout.unwrap_or(options.timeout);
        options.queues = queues.unwrap_or(options.queues);
        options.neighbours = neighbours.unwrap_or(options.neighbours);
        options.encoding = encoding.unwrap_or(options.encoding);
        Some(Way::Gnmi(Box::new(gnmi::Options { tls, login, ..options })))
    }

    fn gnmi_tls(&self, node: &Node) -> Option<gnmi::Tls> {
        let section = Section::of(self, node, "`tls`")?;
        let ca = section.require("ca", Reader::file);
        let name = section.get("name", Reader::plain);
        let [certificate, key] = ["certificate", "key"].map(|key| section.get(key, Reader::file));
        for (one, other) in [("certificate", "key"), ("key", "certificate")] {
            if section.has(one) && !section.has(other) {
                let help = "the collector's certificate is used with its key: give both, or none".to_string();
                section.problem::<()>(one, format!("`{one}` without `{other}`"), Some(help));
            }
        }
        section.finish();
        Some(gnmi::Tls { ca: ca?, name, identity: certificate.zip(key) })
    }

    fn openflow(&self, section: &Section<'_, 'a>, racks: &BTreeSet<&str>) -> Option<Way> {
        section.exclusive("address", "listen");
        let address = section.get("address", Reader::address);
        let listen = section.get("listen", Reader::socket);
        let peers = section.get("peers", Reader::peers);
        if section.has("peers") && !section.has("listen") {
            let help = "`peers` says which switches may connect; it belongs to `listen`".to_string();
            section.problem::<()>("peers", "`peers` without `listen`", Some(help));
        }
        let datapath = section.get("datapath", Reader::datapath);
        let timeout = section.get("timeout", Reader::timeout).unwrap_or(Time::from_secs(5));
        let lldp = section.get("lldp", |reader, node| reader.boolean(node)).unwrap_or(false);
        let matrix = section.get("racks", |reader, node| reader.each(node, |node| reader.rack(node, racks)));
        let tls = section.get("tls", Reader::tls);
        let end = match (address, listen) {
            (Some(address), _) => End::Connect(address),
            // its mistake has been reported
            (None, Some(_)) if section.has("peers") && peers.is_none() => return None,
            (None, Some(listen)) => End::Listen(listen, peers),
            (None, None) if section.has("address") || section.has("listen") => return None,
            (None, None) => {
                let help = "write `address = \"10.0.0.1:6653\"` (the switch listens), or `listen = \"0.0.0.0:6653\"` (the switch connects)";
                return self.problem(&section.at, "`[[switch]]` lacks `address` or `listen`", Some(help.to_string()));
            }
        };
        let matrix = matrix.unwrap_or_default();
        Some(Way::OpenFlow(Box::new(OpenFlow { end, datapath, timeout, lldp, matrix, tls })))
    }

    /// Addresses from which a switch may connect, at least one.
    fn peers(&self, node: &Node) -> Option<Vec<IpAddr>> {
        let peers: Vec<IpAddr> = self.each(node, |node| Some(self.ip(node)?.to_canonical()))?;
        if peers.is_empty() {
            let help = "name the switch's address, or leave `peers` out: then any address may connect".to_string();
            return self.problem(&node.at, "`peers` is empty: no switch could connect", Some(help));
        }
        Some(peers)
    }

    /// Switches that connect to one address: they must be distinguished, and one certificate is shown there.
    fn shared_listeners(section: &Section<'_, 'a>, switches: &[Switch]) {
        let listens = |switch: &'_ Switch| match &switch.way {
            Way::OpenFlow(openflow) => match &openflow.end {
                End::Listen(at, peers) => {
                    let expected = Expected { peers: peers.clone(), datapath: openflow.datapath };
                    Some((switch.name.clone(), *at, expected, openflow.tls.clone()))
                }
                End::Connect(_) => None,
            },
            Way::Snmp(_) | Way::Gnmi(_) => None,
        };
        let mut before: Vec<(String, SocketAddr, Expected, Option<Tls>)> = Vec::new();
        for (name, at, expected, tls) in switches.iter().filter_map(listens) {
            for (other, _, theirs, their_tls) in before.iter().filter(|other| other.1 == at) {
                if expected.is_ambiguous_with(theirs) {
                    let help = "give each its `datapath`, or `peers` that no other has".to_string();
                    let what = format!("nothing tells `{other}` and `{name}` apart, which both connect to {at}");
                    section.problem::<()>("switch", what, Some(help));
                }
                if tls != *their_tls {
                    let help = "give both the same `tls`, or another port each".to_string();
                    let what = format!("`{other}` and `{name}` connect to {at} with different `tls`");
                    section.problem::<()>("switch", what, Some(help));
                }
            }
            before.push((name, at, expected, tls));
        }
    }

    fn tls(&self, node: &Node) -> Option<Tls> {
        let section = Section::of(self, node, "`tls`")?;
        let ca = section.require("ca", Reader::file);
        let certificate = section.require("certificate", Reader::file);
        let key = section.require("key", Reader::file);
        section.finish();
        Some(Tls { ca: ca?, certificate: certificate?, key: key? })
    }

    fn receiver(&self, node: &Node, interval: Time, racks: &BTreeSet<&str>) -> Option<Receiver> {
        let section = Section::of(self, node, "`[[flows]]`")?;
        let words = [("sflow", Protocol::Sflow), ("ipfix", Protocol::Ipfix), ("netflow", Protocol::Ipfix)];
        let protocol = section.require("protocol", |reader, node| reader.word(node, &words));
        let listen = section.require("listen", Reader::socket);
        let window = section.get("window", |reader, node| {
            reader.within(node, |time| *time >= INTERVAL_MIN && *time <= WINDOW_MAX, "from 1 s to 1 h")
        });
        let read = |node: &Node| self.exporter(node, racks);
        let exporters = section.require("exporter", |_, node| self.list(node, EXPORTERS_MAX, read))?;
        let all = exporters.iter().filter(|one| one.racks.is_empty() && one.ports.is_empty()).count();
        if exporters.len() > 1 && all > 0 {
            let help = "with several exporters a packet would be counted at each of them: give each its `racks`, or the `ports` at which hosts are";
            section.problem::<()>(
                "exporter",
                "an exporter that counts all packets, among several",
                Some(help.to_string()),
            );
        }
        let mut addresses = BTreeSet::new();
        if let Some(twice) = exporters.iter().find(|one| !addresses.insert(one.address)) {
            section.problem::<()>("exporter", format!("a second exporter `{}`", twice.address), None);
        }
        section.finish();
        let window = window.unwrap_or(interval).max(interval);
        let settings = flows::Settings { protocol: protocol?, exporters, window, keep: INTERVAL_MAX };
        Some(Receiver { listen: listen?, settings })
    }

    fn exporter(&self, node: &Node, racks: &BTreeSet<&str>) -> Option<Exporter> {
        let section = Section::of(self, node, "`[[flows.exporter]]`")?;
        let address = section.require("address", Reader::ip);
        let switch = section.get("switch", Reader::switch_name);
        let counted = section.get("racks", |reader, node| reader.each(node, |node| reader.rack(node, racks)));
        let port = |reader: &Reader<'_>, node: &Node| reader.count(node, 0, u32::MAX);
        let ports = section.get("ports", |reader, node| reader.each(node, |node| port(reader, node)));
        let sampling = section.get("sampling", |reader, node| reader.count(node, 1, flows::SAMPLING_MAX));
        let rate = section.get("rate", Reader::rate);
        let settings = section.get("port_settings", Reader::ports).unwrap_or_default();
        section.finish();
        Some(Exporter {
            address: address?,
            switch,
            racks: counted.unwrap_or_default(),
            ports: ports.unwrap_or_default(),
            sampling,
            rate,
            settings,
        })
    }

    fn ports(&self, node: &Node) -> Option<BTreeMap<String, PortSettings>> {
        let entries = self.table(node, "`ports`", PORTS_MAX)?;
        let port = |entry: &Entry| {
            let section = Section::of(self, &entry.value, "a port")?;
            let end = section.get("end", Reader::plain);
            let rate = section.get("rate", Reader::rate);
            let [marks, ignore] = ["marks", "ignore"].map(|key| section.get(key, |r, node| r.boolean(node)));
            for other in ["end", "rate", "marks"] {
                if ignore == Some(true) && section.has(other) {
                    section.problem::<()>(other, format!("`{other}` of a port that is ignored"), None);
                }
            }
            section.finish();
            Some((entry.key.clone(), PortSettings { end, rate, marks, ignore: ignore.unwrap_or(false) }))
        };
        Some(entries.iter().filter_map(port).collect())
    }

    fn rate(&self, node: &Node) -> Option<Rate> {
        let is_rate = |rate: &Rate| (1..=policy::COUNT_MAX).contains(&rate.as_bps());
        self.within(node, is_rate, "more than zero, at most 9 Pbit/s")
    }

    fn racks(&self, node: &Node) -> Option<Vec<(Prefix, String)>> {
        let entries = self.table(node, "`[racks]`", RACKS_MAX)?;
        let rack = |entry: &Entry| {
            let prefix: Prefix = match entry.key.parse() {
                Ok(prefix) => prefix,
                Err(error) => return self.problem(&entry.key_at, format!("{error}"), None),
            };
            Some((prefix, self.plain(&entry.value)?))
        };
        Some(entries.iter().filter_map(rack).collect())
    }

    /// The entries of a table, at least one.
    fn table<'n>(&self, node: &'n Node, what: &str, most: usize) -> Option<&'n [Entry]> {
        match &node.value {
            Value::Table(entries) if entries.len() > most => {
                self.problem(&node.at, format!("{what} has {} entries; at most {most}", entries.len()), None)
            }
            Value::Table(entries) => Some(entries),
            _ => self.expected(node, &format!("{what} is a table")),
        }
    }

    /// The tables of a list, those that can be read.
    fn list<T>(&self, node: &Node, most: usize, read: impl Fn(&Node) -> Option<T>) -> Option<Vec<T>> {
        match &node.value {
            Value::Array(items) if items.len() > most => {
                self.problem(&node.at, format!("{} are too many; at most {most}", items.len()), None)
            }
            Value::Array(items) => Some(items.iter().filter_map(read).collect()),
            _ => self.expected(node, "this is a list of tables, each under a header in double brackets"),
        }
    }

    fn interval(&self, node: &Node) -> Option<Time> {
        self.within(node, |time| *time >= INTERVAL_MIN && *time <= INTERVAL_MAX, "from 1 s to 1 h")
    }

    fn timeout(&self, node: &Node) -> Option<Time> {
        self.within(node, |time| *time >= Time::from_ms(100) && *time <= TIMEOUT_MAX, "from 100 ms to 1 min")
    }

    fn switch_name(&self, node: &Node) -> Option<String> {
        let name = self.plain(node)?;
        if name.contains(char::is_whitespace) || name.len() > SWITCH_NAME_MAX {
            let help = format!(
                "a switch's name has no space and at most {SWITCH_NAME_MAX} bytes; links are called `NAME PORT out`"
            );
            return self.problem(&node.at, format!("`{name}` is not a switch's name"), Some(help));
        }
        Some(name)
    }

    /// A text of one line that is not empty.
    fn plain(&self, node: &Node) -> Option<String> {
        let text = self.text(node)?;
        if text.trim().is_empty() || text.len() > TEXT_MAX || text.contains(char::is_control) {
            return self.problem(&node.at, format!("this has 1 to {TEXT_MAX} bytes, and no control characters"), None);
        }
        Some(text.to_string())
    }

    fn rack(&self, node: &Node, racks: &BTreeSet<&str>) -> Option<String> {
        let name = self.plain(node)?;
        if racks.contains(name.as_str()) {
            return Some(name);
        }
        let names: Vec<&str> = racks.iter().copied().collect();
        let help =
            if names.is_empty() { "add it to `[racks]`".to_string() } else { document::suggestion(&name, &names) };
        self.problem(&node.at, format!("`[racks]` has no rack `{name}`"), Some(help))
    }

    fn address(&self, node: &Node) -> Option<String> {
        let text = self.plain(node)?;
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
            _ => (text.as_str(), None),
        };
        let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
        if host.is_empty() || host.contains(char::is_whitespace) || host.contains('/') || !is_port {
            let help = "write for example `10.0.0.1`, `tor1.example:161` or `[fd00::1]:6653`".to_string();
            return self.problem(&node.at, format!("`{text}` is not an address"), Some(help));
        }
        Some(text)
    }

    fn ip(&self, node: &Node) -> Option<IpAddr> {
        let text = self.text(node)?;
        let help = || Some("write for example `10.0.0.1` or `fd00::1`; names are not looked up here".to_string());
        text.parse().map_or_else(|_| self.problem(&node.at, format!("`{text}` is not an IP address"), help()), Some)
    }

    fn socket(&self, node: &Node) -> Option<SocketAddr> {
        let text = self.text(node)?;
        let help = || Some("write for example `0.0.0.0:6343` or `[::]:4739`".to_string());
        let wrong = || self.problem(&node.at, format!("`{text}` is not an address and a port"), help());
        text.parse().map_or_else(|_| wrong(), Some)
    }

    /// A datapath's number: an integer, or hexadecimal digits as switches print it.
    fn datapath(&self, node: &Node) -> Option<u64> {
        if let Value::Integer(_) = node.value {
            return self.integer(node, 1, document::INTEGER_MAX);
        }
        let text = self.text(node)?;
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let help = || Some("write it as the switch prints it, for example `\"00000000000000a1\"`".to_string());
        let wrong = || self.problem(&node.at, format!("`{text}` is not the number of a datapath"), help());
        u64::from_str_radix(digits, 16).map_or_else(|_| wrong(), Some)
    }

    /// A path, relative to the configuration's file.
    fn path(&self, node: &Node) -> Option<PathBuf> {
        self.plain(node).map(|text| self.folder.join(text))
    }

    /// A file that can be read.
    fn file(&self, node: &Node) -> Option<PathBuf> {
        let path = self.path(node)?;
        match std::fs::metadata(&path) {
            Ok(about) if about.is_file() => Some(path),
            Ok(_) => self.problem(&node.at, format!("`{}` is not a file", path.display()), None),
            Err(error) => self.problem(&node.at, format!("`{}`: {error}", path.display()), None),
        }
    }
}

/// The texts in a table.
fn names_of(node: &Node) -> BTreeSet<&str> {
    let Value::Table(entries) = &node.value else { return BTreeSet::new() };
    entries
        .iter()
        .filter_map(|entry| match &entry.value.value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}
