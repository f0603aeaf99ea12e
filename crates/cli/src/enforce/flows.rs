//! `opentcp enforce --status --flows`: the enforced flows as a table.

use crate::failure::Failure;
use crate::terminal::{print, print_json};
use enforced::FlowRow;
use policy::Prefix;
use serde::Serialize;
use std::cmp::Ordering;
use std::net::IpAddr;
use std::path::Path;

/// What is listed, and how.
#[derive(Debug, clap::Args)]
pub struct Listing {
    /// With --status --flows: sort by a column, the largest number first, text from a to z; `-COLUMN` the other way round. Columns: server,
    /// client, algorithm, state, cwnd, ssthresh, rtt, in-flight, buffered, packets, sent, retransmitted, absorbed, acked, age
    #[arg(long, value_name = "COLUMN", requires = "flows", value_parser = sort, allow_hyphen_values = true)]
    sort: Option<Sort>,
    /// With --status --flows: only flows for which all of these words hold: server=PREFIX, client=PREFIX, port=NUMBER (of either end),
    /// algorithm=NAME, state=NAME; or only PREFIX (of either end), NUMBER or NAME
    #[arg(long, value_name = "EXPR", requires = "flows", value_parser = filter)]
    filter: Option<Filter>,
    /// With --status --flows: at most so many, the first by --sort
    #[arg(long, value_name = "N", requires = "flows", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

/// A column by which flows are sorted.
#[derive(Clone, Copy, Debug)]
struct Sort {
    column: &'static Column,
    reversed: bool,
}

/// Something of a flow that is shown, and compared.
struct Column {
    name: &'static str,
    compare: fn(&FlowRow, &FlowRow) -> Ordering,
    /// The largest first.
    descends: bool,
}

impl std::fmt::Debug for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A column of text, from a to z.
const fn text(name: &'static str, compare: fn(&FlowRow, &FlowRow) -> Ordering) -> Column {
    Column { name, compare, descends: false }
}

/// A column of numbers, the largest first.
const fn number(name: &'static str, compare: fn(&FlowRow, &FlowRow) -> Ordering) -> Column {
    Column { name, compare, descends: true }
}

static COLUMNS: [Column; 15] = [
    text("server", |a, b| a.server.cmp(&b.server)),
    text("client", |a, b| a.client.cmp(&b.client)),
    text("algorithm", |a, b| a.algorithm.cmp(&b.algorithm)),
    text("state", |a, b| a.state.cmp(&b.state)),
    number("cwnd", |a, b| a.cwnd.cmp(&b.cwnd)),
    number("ssthresh", |a, b| a.ssthresh.cmp(&b.ssthresh)),
    number("rtt", |a, b| a.srtt_us.cmp(&b.srtt_us)),
    number("in-flight", |a, b| a.in_flight.cmp(&b.in_flight)),
    number("buffered", |a, b| a.buffered_bytes.cmp(&b.buffered_bytes)),
    number("packets", |a, b| a.buffered_packets.cmp(&b.buffered_packets)),
    number("sent", |a, b| a.sent.cmp(&b.sent)),
    number("retransmitted", |a, b| a.retransmitted.cmp(&b.retransmitted)),
    number("absorbed", |a, b| a.absorbed.cmp(&b.absorbed)),
    number("acked", |a, b| a.bytes_acked.cmp(&b.bytes_acked)),
    number("age", |a, b| a.age_ms.cmp(&b.age_ms)),
];

fn sort(word: &str) -> Result<Sort, String> {
    let (name, reversed) = word.strip_prefix('-').map_or((word, false), |name| (name, true));
    let names = || COLUMNS.each_ref().map(|column| column.name).join(", ");
    let column = COLUMNS.iter().find(|column| column.name == name);
    column.map(|column| Sort { column, reversed }).ok_or_else(|| format!("no column `{name}`; there are {}", names()))
}

impl Sort {
    fn compare(self, a: &FlowRow, b: &FlowRow) -> Ordering {
        let order = (self.column.compare)(a, b);
        let order = if self.column.descends == self.reversed { order } else { order.reverse() };
        // two lists of the same flows are alike
        order.then_with(|| (a.server, a.client, a.vlan).cmp(&(b.server, b.client, b.vlan)))
    }
}

/// What must hold of a flow.
#[derive(Clone, Debug, Default)]
struct Filter(Vec<Condition>);

#[derive(Clone, Debug)]
enum Condition {
    Server(Prefix),
    Client(Prefix),
    Either(Prefix),
    Port(u16),
    Algorithm(String),
    State(String),
    /// An algorithm's name, or a state's.
    Named(String),
}

const STATES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];

fn filter(text: &str) -> Result<Filter, String> {
    let conditions: Result<Vec<Condition>, String> = text.split_whitespace().map(condition).collect();
    match conditions?.as_slice() {
        [] => Err("no condition; such as: 10.0.0.0/8 port=443 algorithm=bbr".to_string()),
        conditions => Ok(Filter(conditions.to_vec())),
    }
}

fn condition(word: &str) -> Result<Condition, String> {
    let prefix = |text: &str| {
        // an address alone is a prefix of all its bits
        let address = text.parse::<IpAddr>().ok();
        let alone = address.and_then(|address| Prefix::new(address, if address.is_ipv4() { 32 } else { 128 }));
        alone.map_or_else(|| text.parse::<Prefix>().map_err(|error| format!("`{word}`: {error}")), Ok)
    };
    let port = |text: &str| text.parse::<u16>().map_err(|_| format!("`{word}`: a port is a number up to 65535"));
    match word.split_once('=') {
        Some(("server", value)) => prefix(value).map(Condition::Server),
        Some(("client", value)) => prefix(value).map(Condition::Client),
        Some(("port", value)) => port(value).map(Condition::Port),
        Some(("algorithm", value)) => Ok(Condition::Algorithm(value.to_string())),
        Some(("state", value)) if STATES.contains(&value) => Ok(Condition::State(value.to_string())),
        Some(("state", value)) => Err(format!("no state `{value}`; there are {}", STATES.join(", "))),
        Some((key, _)) => {
            Err(format!("no condition `{key}=`; there are server=, client=, port=, algorithm= and state="))
        }
        None if word.bytes().all(|byte| byte.is_ascii_digit()) => port(word).map(Condition::Port),
        None if word.contains([':', '/']) || word.starts_with(|first: char| first.is_ascii_digit()) => {
            prefix(word).map(Condition::Either)
        }
        None => Ok(Condition::Named(word.to_string())),
    }
}

impl Condition {
    fn holds(&self, flow: &FlowRow) -> bool {
        match self {
            Condition::Server(prefix) => prefix.contains(flow.server.ip()),
            Condition::Client(prefix) => prefix.contains(flow.client.ip()),
            Condition::Either(prefix) => prefix.contains(flow.server.ip()) || prefix.contains(flow.client.ip()),
            Condition::Port(port) => *port == flow.server.port() || *port == flow.client.port(),
            Condition::Algorithm(name) => *name == flow.algorithm,
            Condition::State(name) => *name == flow.state,
            Condition::Named(name) => *name == flow.algorithm || *name == flow.state,
        }
    }
}

/// What is kept of a list.
#[derive(Debug, Default, Serialize)]
struct List {
    /// All flows of the enforcer.
    total: u64,
    /// Of these, those that the filter lets through.
    matched: u64,
    flows: Vec<FlowRow>,
}

impl List {
    /// Takes a flow. With a limit, memory is for about twice as many.
    fn take(&mut self, args: &Listing, flow: FlowRow) {
        self.total += 1;
        if args.filter.as_ref().is_some_and(|filter| !filter.0.iter().all(|condition| condition.holds(&flow))) {
            return;
        }
        self.matched += 1;
        self.flows.push(flow);
        if let Some(limit) = args.limit
            && self.flows.len() as u64 > limit.saturating_mul(2).max(1024)
        {
            self.cut(args);
        }
    }

    fn cut(&mut self, args: &Listing) {
        if let Some(sort) = args.sort {
            self.flows.sort_unstable_by(|a, b| sort.compare(a, b));
        }
        self.flows.truncate(args.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)));
    }
}

/// Prints them.
///
/// # Errors
/// No enforcer answers.
pub fn list(args: &Listing, socket: &Path, json: bool) -> Result<(), Failure> {
    let mut list = List::default();
    let listed = enforced::flows(socket, &mut |flow| list.take(args, flow));
    listed.map_err(|error| Failure::Run(format!("{}: {error}", socket.display())))?;
    list.cut(args);
    if json { print_json(&list) } else { print(&table(&list)) }
}

/// The table, its columns as wide as they need.
fn table(list: &List) -> String {
    const HEAD: [&str; 12] = [
        "SERVER",
        "CLIENT",
        "ALGORITHM",
        "STATE",
        "CWND",
        "SSTHRESH",
        "RTT",
        "IN-FLIGHT",
        "BUFFERED",
        "RETRANS",
        "ABSORBED",
        "ACKED",
    ];
    /// Columns of text; the others are numbers, and stand right.
    const TEXTS: usize = 4;
    let rows: Vec<[String; 12]> = list.flows.iter().map(cells).collect();
    let mut widths = HEAD.map(str::len);
    for row in &rows {
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = (*width).max(cell.chars().count()));
    }
    let mut text = String::new();
    for row in std::iter::once(HEAD.map(str::to_string)).chain(rows) {
        let cells = row.iter().zip(widths).enumerate();
        let cells = cells.map(
            |(at, (cell, width))| {
                if at < TEXTS { format!("{cell:width$}") } else { format!("{cell:>width$}") }
            },
        );
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    let List { total, matched, flows } = list;
    let shown = match flows.len() as u64 {
        shown if shown == *total => format!("{total} flows\n"),
        shown if shown == *matched => format!("{matched} of {total} flows\n"),
        shown => format!("{shown} of {matched} that match, of {total} flows\n"),
    };
    text + &shown
}

fn cells(flow: &FlowRow) -> [String; 12] {
    let vlan = if flow.vlan == 0 { String::new() } else { format!(" vlan {}", flow.vlan) };
    let ssthresh = flow.ssthresh.map_or("-".to_string(), |segments| segments.to_string());
    let buffered = match flow.buffered_packets {
        0 => "0".to_string(),
        packets => format!("{} ({packets})", size(flow.buffered_bytes as u64)),
    };
    [
        flow.server.to_string(),
        format!("{}{vlan}", flow.client),
        flow.algorithm.clone(),
        flow.state.clone(),
        flow.cwnd.to_string(),
        ssthresh,
        if flow.srtt_us == 0 { "-".to_string() } else { rtt(flow.srtt_us) },
        flow.in_flight.to_string(),
        buffered,
        flow.retransmitted.to_string(),
        flow.absorbed.to_string(),
        size(flow.bytes_acked),
    ]
}

/// `850us`, `12.3ms`, `1.20s`.
fn rtt(us: u32) -> String {
    match us {
        0..1_000 => format!("{us}us"),
        1_000..1_000_000 => format!("{:.1}ms", f64::from(us) / 1e3),
        _ => format!("{:.2}s", f64::from(us) / 1e6),
    }
}

/// `999`, `12.3k`, `4.5M`: bytes, in powers of a thousand.
fn size(bytes: u64) -> String {
    let units = [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    let unit = units.into_iter().find(|(unit, _)| bytes >= *unit);
    unit.map_or(bytes.to_string(), |(unit, name)| format!("{:.1}{name}", bytes as f64 / unit as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(server: &str, client: &str, algorithm: &str, buffered: usize) -> FlowRow {
        FlowRow {
            server: server.parse().unwrap(),
            client: client.parse().unwrap(),
            vlan: 0,
            algorithm: algorithm.to_string(),
            state: "open".to_string(),
            age_ms: 1,
            cwnd: 10,
            ssthresh: None,
            srtt_us: 12_345,
            min_rtt_us: Some(1),
            in_flight: 3,
            buffered_packets: u32::from(buffered > 0),
            buffered_bytes: buffered,
            bytes_acked: 1_234_567,
            sent: 9,
            retransmitted: 1,
            absorbed: 2,
        }
    }

    fn args(sorted: Option<&str>, filtered: Option<&str>, limit: Option<u64>) -> Listing {
        Listing {
            sort: sorted.map(|word| sort(word).unwrap()),
            filter: filtered.map(|text| filter(text).unwrap()),
            limit,
        }
    }

    fn listed(args: &Listing) -> List {
        let mut list = List::default();
        for n in 0..5000_u16 {
            let client = format!("198.51.{}.7:{}", n / 256, 1000 + n);
            let algorithm = if n % 2 == 0 { "bbr" } else { "cubic" };
            list.take(args, flow("192.0.2.1:80", &client, algorithm, usize::from(n) * 7919 % 5000));
        }
        list.take(args, flow("[2001:db8::1]:443", "[2001:db8::2]:5", "vegas", 1));
        list.cut(args);
        list
    }

    #[test]
    fn flows_are_filtered_sorted_and_cut() {
        let list = listed(&args(Some("buffered"), Some("algorithm=bbr"), Some(3)));
        assert_eq!((list.total, list.matched), (5001, 2500));
        let buffered: Vec<usize> = list.flows.iter().map(|flow| flow.buffered_bytes).collect();
        assert_eq!(buffered, [4998, 4996, 4994], "7919 and 5000 have no common factor: each number once");
        let least = listed(&args(Some("-buffered"), None, Some(1)));
        assert_eq!(least.flows[0].buffered_bytes, 0);
        let matched = |text: &str| listed(&args(None, Some(text), None)).matched;
        assert_eq!(matched("port=443"), 1);
        assert_eq!(matched("443 vegas"), 1);
        assert_eq!(matched("443 bbr"), 0);
        assert_eq!(matched("198.51.3.0/24"), 256);
        assert_eq!(matched("client=198.51.3.0/24 cubic"), 128);
        assert_eq!(matched("server=198.51.3.0/24"), 0);
        assert_eq!(matched("2001:db8::/32 state=open"), 1);
        assert_eq!(matched("192.0.2.1"), 5000);
    }

    #[test]
    fn mistakes_are_named() {
        let of = |text: &str| filter(text).unwrap_err();
        assert!(of("port=80000").contains("up to 65535"));
        assert!(of("10.0.0.0/99").contains("10.0.0.0/99"));
        assert!(of("host=a").contains("there are server="));
        assert!(of("state=busy").contains("recovery"));
        assert!(of(" ").contains("such as"));
        assert!(sort("window").unwrap_err().contains("no column `window`; there are server, client"));
    }

    #[test]
    fn a_table_is_as_wide_as_its_cells() {
        let args = args(Some("buffered"), Some("198.51.0.0/24"), Some(2));
        let shown = table(&listed(&args));
        let lines: Vec<&str> = shown.lines().collect();
        let expected = [
            "SERVER        CLIENT           ALGORITHM  STATE  CWND  SSTHRESH     RTT  IN-FLIGHT  BUFFERED  RETRANS  ABSORBED  ACKED",
            "192.0.2.1:80  198.51.0.7:1173  cubic      open     10         -  12.3ms          3  5.0k (1)        1         2   1.2M",
            "192.0.2.1:80  198.51.0.7:1161  cubic      open     10         -  12.3ms          3  5.0k (1)        1         2   1.2M",
            "2 of 256 that match, of 5001 flows",
        ];
        assert_eq!(lines, expected);
        assert_eq!([rtt(850), rtt(12_345), rtt(1_200_000)], ["850us", "12.3ms", "1.20s"]);
        assert_eq!([size(999), size(12_300), size(4_500_000_000)], ["999", "12.3k", "4.5G"]);
    }
}
