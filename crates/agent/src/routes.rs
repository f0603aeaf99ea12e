//! Which routes get which metrics.
//!
//! A wish for a prefix applies to every route whose destination lies in it. Where only a wider route leads there, a route of its own is
//! added for the prefix, with the same next hop.

#[cfg(test)]
mod tests;

use crate::plan::{Metrics, Wish};
use netlink_packet_core::{Emitable as _, Parseable as _};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteMetric, RouteNextHopFlags, RouteProtocol, RouteType,
};
use policy::Prefix;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

// linux/rtnetlink.h
const RTAX_CWND: u32 = 7;
const RTAX_RTO_MIN: u32 = 13;
const RTAX_CC_ALGO: u32 = 16;
const RTAX_FEATURE_ECN: u32 = 1;
/// How many routes a note names.
const NAMED: usize = 3;

/// A namespace's routes, by destination.
#[derive(Clone, Debug, Default)]
pub struct Table {
    routes: BTreeMap<String, RouteMessage>,
    /// Those that are ambiguous, or could not be restored exactly.
    left_alone: BTreeSet<String>,
}

/// A change to a route.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    /// The route before any change; `None`: there was none.
    pub before: Option<RouteMessage>,
    /// The route as wanted.
    pub after: RouteMessage,
}

impl Table {
    /// From the kernel's dump.
    pub fn new(all: Vec<RouteMessage>) -> Table {
        let mut table = Table::default();
        for route in all {
            let Some(name) = name(&route) else { continue };
            let odd = route.header.kind != RouteType::Unicast
                || route
                    .attributes
                    .iter()
                    .any(|attribute| matches!(attribute, RouteAttribute::NhId(_) | RouteAttribute::Other(_)));
            if odd || table.routes.insert(name.clone(), cleaned(route)).is_some() {
                table.left_alone.insert(name);
            }
        }
        table.routes.retain(|name, _| !table.left_alone.contains(name));
        table
    }

    /// The route of that name.
    pub fn route(&self, name: &str) -> Option<&RouteMessage> {
        self.routes.get(name)
    }

    /// The table without a change that was made.
    pub fn put_back(&mut self, name: &str, before: Option<RouteMessage>) {
        match before {
            Some(route) => self.routes.insert(name.to_string(), route),
            None => self.routes.remove(name),
        };
    }

    /// The changes that the wishes require, by the routes' names; and which routes cannot be touched. `by_bpf`: the BPF program sets
    /// connections, too.
    pub fn changes(&self, wishes: &[Wish], by_bpf: bool) -> (BTreeMap<String, Change>, Vec<String>) {
        let (mut changes, mut kept) = (BTreeMap::new(), Vec::new());
        let mut notes = Vec::new();
        let within = |wish: &Wish, of: Prefix| wish.remote.is_none_or(|remote| remote.covers(of));
        let wanted = |of: Prefix| {
            let matching = wishes.iter().filter(|wish| within(wish, of));
            matching.fold(Metrics::default(), |metrics, wish| metrics.or(&wish.metrics))
        };
        let change = |before: Option<&RouteMessage>, after: RouteMessage, wanted: &Metrics| {
            let after = with_metrics(after, wanted);
            (before.is_none_or(|before| essence(before) != essence(&after)))
                .then(|| Change { before: before.cloned(), after })
        };
        for (name, route) in &self.routes {
            let of = destination(route).expect("a route in the table has a destination");
            match change(Some(route), route.clone(), &wanted(of)) {
                Some(_) if is_kernels(route) => kept.push(name.as_str()),
                change => changes.extend(change.map(|change| (name.clone(), change))),
            }
        }
        for remote in wishes.iter().filter_map(|wish| wish.remote) {
            let there = |route: &&RouteMessage| destination(route) == Some(remote);
            let wider = |route: &&RouteMessage| destination(route).is_some_and(|of| of.covers(remote));
            if self.routes.values().any(|route| there(&route)) {
                continue;
            }
            // the longest prefix, and of these the lowest priority, is the way that packets take
            let ways = self.routes.values().filter(wider);
            let way =
                ways.max_by_key(|route| (destination(route).map(Prefix::bits), std::cmp::Reverse(priority(route))));
            // a copy has no lifetime, so it would lead to a router that has gone
            if let Some(way) = way {
                if !is_lasting(way) {
                    notes.push(format!("no route to {remote} is added: the one that leads there has a lifetime"));
                    continue;
                }
                let own = towards(way, remote);
                let name = name(&own).expect("it has a destination");
                changes.extend(change(None, own, &wanted(remote)).map(|change| (name, change)));
            }
        }
        let wished = |name: &&String| !wishes.is_empty() && !name.contains("fe80:");
        let odd = self.left_alone.iter().filter(wished);
        notes.extend(odd.map(|name| format!("route {name}: left as it is: it could not be restored exactly")));
        notes.extend(of_kept(&kept, by_bpf));
        (changes, notes)
    }

    /// Initial windows of routes under a prefix, segments.
    pub fn initial_windows(&self, remote: Option<Prefix>) -> BTreeSet<u32> {
        let under = self
            .routes
            .values()
            .filter(|route| destination(route).is_some_and(|of| remote.is_none_or(|remote| remote.covers(of))));
        let metrics = under.flat_map(|route| &route.attributes).filter_map(|attribute| match attribute {
            RouteAttribute::Metrics(metrics) => Some(metrics),
            _ => None,
        });
        let windows = metrics.flatten().filter_map(|metric| match metric {
            RouteMetric::InitCwnd(segments) => Some(*segments),
            _ => None,
        });
        windows.collect()
    }
}

/// Destination, type of service, priority: the kernel's key of a route. `None` of routes that the agent leaves alone: link-local
/// and multicast ones.
fn name(route: &RouteMessage) -> Option<String> {
    let to = destination(route)?;
    let local = match to.address() {
        IpAddr::V4(to) => to.is_multicast() || to.is_link_local(),
        IpAddr::V6(to) => to.is_multicast() || to.is_unicast_link_local(),
    };
    let (tos, priority) = (route.header.tos, priority(route));
    (!local).then(|| format!("{to} tos {tos} priority {priority}"))
}

/// Whether the kernel made the route, or will end it. A replacement has no lifetime, and lacks marks that no dump shows (`RTF_ADDRCONF`), by which
/// the kernel knows such routes again: router advertisements would no longer renew or end it.
fn is_kernels(route: &RouteMessage) -> bool {
    route.header.protocol == RouteProtocol::Kernel || !is_lasting(route)
}

/// Whether the route stays until somebody removes it.
fn is_lasting(route: &RouteMessage) -> bool {
    let expires = |attribute: &RouteAttribute| match attribute {
        RouteAttribute::CacheInfo(info) => info.expires != 0,
        RouteAttribute::Expires(_) => true,
        _ => false,
    };
    route.header.protocol != RouteProtocol::Ra && !route.attributes.iter().any(expires)
}

/// What is reported of routes that a wish is for and that only the kernel may change.
fn of_kept(kept: &[&str], by_bpf: bool) -> Option<String> {
    let first = kept.first()?;
    let rest = kept.iter().skip(1).take(NAMED - 1).fold(String::new(), |rest, name| rest + "; " + name);
    let more = if kept.len() > NAMED { "; ..." } else { "" };
    let from =
        if by_bpf { "new connections there get from BPF what it can set" } else { "connections there are not set" };
    let count = if kept.len() == 1 { "1 route".to_string() } else { format!("{} routes", kept.len()) };
    Some(format!("{count} of the kernel or with a lifetime left unchanged ({first}{rest}{more}): {from}"))
}

fn priority(route: &RouteMessage) -> u32 {
    let priority = |attribute: &RouteAttribute| match attribute {
        RouteAttribute::Priority(priority) => Some(*priority),
        _ => None,
    };
    route.attributes.iter().find_map(priority).unwrap_or(0)
}

fn destination(route: &RouteMessage) -> Option<Prefix> {
    let address = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Destination(RouteAddress::Inet(address)) => Some(IpAddr::from(*address)),
        RouteAttribute::Destination(RouteAddress::Inet6(address)) => Some(IpAddr::from(*address)),
        _ => None,
    });
    let everywhere = match route.header.address_family {
        AddressFamily::Inet => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        AddressFamily::Inet6 => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        _ => return None,
    };
    Prefix::new(address.unwrap_or(everywhere), route.header.destination_prefix_length)
}

/// In the form in which the kernel accepts it, and which is the same whatever the state of links: the kernel sets flags (dead, linkdown, offload)
/// as links change, and refuses some of them in a request. A lifetime stays, since it tells which routes must not be replaced.
fn cleaned(mut route: RouteMessage) -> RouteMessage {
    route.header.flags &= RouteFlags::Onlink;
    route.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::CacheInfo(info) if info.expires == 0));
    for attribute in &mut route.attributes {
        if let RouteAttribute::MultiPath(hops) = attribute {
            for hop in hops {
                hop.flags &= RouteNextHopFlags::Onlink;
            }
        }
    }
    route
}

/// A copy of `route` for a prefix of its own.
fn towards(route: &RouteMessage, remote: Prefix) -> RouteMessage {
    let mut own = route.clone();
    if own.header.protocol == RouteProtocol::Kernel {
        own.header.protocol = RouteProtocol::Static;
    }
    own.header.destination_prefix_length = remote.bits();
    own.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::Destination(_)));
    own.attributes.insert(0, RouteAttribute::Destination(remote.address().into()));
    own
}

fn with_metrics(mut route: RouteMessage, wanted: &Metrics) -> RouteMessage {
    let at = route.attributes.iter().position(|attribute| matches!(attribute, RouteAttribute::Metrics(_)));
    let mut metrics = match at.map(|at| route.attributes.remove(at)) {
        Some(RouteAttribute::Metrics(metrics)) => metrics,
        _ => Vec::new(),
    };
    let mut lock = 0;
    let mut set = |metric: RouteMetric| {
        let same = |other: &RouteMetric| std::mem::discriminant(other) == std::mem::discriminant(&metric);
        metrics.retain(|other| !same(other));
        metrics.push(metric);
    };
    if let Some(segments) = wanted.initial_cwnd {
        set(RouteMetric::InitCwnd(segments));
    }
    if let Some(ms) = wanted.rto_min_ms {
        // Linux reads this one, and the next two, only where the route locks it
        set(RouteMetric::RtoMin(ms));
        lock |= 1 << RTAX_RTO_MIN;
    }
    if let Some(name) = &wanted.cc {
        set(RouteMetric::CcAlgo(name.clone()));
        lock |= 1 << RTAX_CC_ALGO;
    }
    if let Some(segments) = wanted.cwnd_clamp {
        set(RouteMetric::Cwnd(segments));
        lock |= 1 << RTAX_CWND;
    }
    if let Some(bytes) = wanted.window {
        set(RouteMetric::Window(bytes));
    }
    for (bits, is_it) in [(lock, true), (if wanted.ecn { RTAX_FEATURE_ECN } else { 0 }, false)] {
        let had = metrics.iter().find_map(|metric| match metric {
            RouteMetric::Lock(had) if is_it => Some(*had),
            RouteMetric::Features(had) if !is_it => Some(*had),
            _ => None,
        });
        let bits = bits | had.unwrap_or(0);
        metrics.retain(|metric| {
            !matches!((metric, is_it), (RouteMetric::Lock(_), true) | (RouteMetric::Features(_), false))
        });
        if bits != 0 {
            metrics.push(if is_it { RouteMetric::Lock(bits) } else { RouteMetric::Features(bits) });
        }
    }
    if !metrics.is_empty() {
        route.attributes.push(RouteAttribute::Metrics(metrics));
    }
    route
}

/// A normal form, whatever the order of the kernel's attributes.
pub fn essence(route: &RouteMessage) -> (Vec<String>, Vec<String>) {
    let mut ways: Vec<String> = Vec::new();
    let mut metrics: Vec<String> = Vec::new();
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Metrics(list) => metrics.extend(list.iter().map(|metric| format!("{metric:?}"))),
            other => ways.push(format!("{other:?}")),
        }
    }
    ways.sort();
    metrics.sort();
    (ways, metrics)
}

/// The route without the name of an algorithm; `None` if it has none. Linux shows it so once the algorithm is unloaded, and refuses the name.
pub fn without_algorithm(route: &RouteMessage) -> Option<RouteMessage> {
    let mut route = route.clone();
    let mut had = 0;
    for attribute in &mut route.attributes {
        if let RouteAttribute::Metrics(metrics) = attribute {
            had += metrics.extract_if(.., |metric| matches!(metric, RouteMetric::CcAlgo(_))).count();
        }
    }
    (had > 0).then_some(route)
}

/// Whether `now`, from the kernel, is the route that was set as `own`.
pub fn shows(now: &RouteMessage, own: &RouteMessage) -> bool {
    let now = essence(now);
    now == essence(own) || without_algorithm(own).is_some_and(|own| now == essence(&own))
}

/// The metrics as text: `InitCwnd(20), Lock(8192), RtoMin(2)`.
pub fn metrics_of(route: &RouteMessage) -> String {
    essence(route).1.join(", ")
}

/// For the journal.
pub fn to_bytes(route: &RouteMessage) -> Vec<u8> {
    let mut bytes = vec![0; route.buffer_len()];
    route.emit(&mut bytes);
    bytes
}

/// From the journal; `None` if it is not a route. Earlier versions wrote down flags of next hops.
pub fn from_bytes(bytes: &[u8]) -> Option<RouteMessage> {
    RouteMessage::parse(bytes).ok().map(cleaned)
}
