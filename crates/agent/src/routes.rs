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
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use policy::Prefix;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

// linux/rtnetlink.h
const RT_TABLE_DEFAULT: u32 = 253;
const RT_TABLE_MAIN: u32 = 254;
const RT_TABLE_LOCAL: u32 = 255;
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
    left_alone: BTreeMap<String, Way>,
    /// Those that TCP does not take: blackhole, unreachable, prohibit, throw.
    closed: Vec<(String, Way)>,
    /// Tables besides this one to which rules lead.
    others: BTreeSet<String>,
    /// A rule takes no route of a short prefix from this table.
    is_suppressed: bool,
}

/// Where a route leads, and its priority: of several ways, packets take that of the longest prefix, and of these the lowest priority.
type Way = (Prefix, u32);

/// A change to a route.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    /// The route before any change; `None`: there was none.
    pub before: Option<RouteMessage>,
    /// The route as wanted.
    pub after: RouteMessage,
}

impl Table {
    /// From the kernel's dumps. A route is in several of them, or twice in one of a table that changed meanwhile.
    pub fn new(all: Vec<RouteMessage>) -> Table {
        let mut table = Table::default();
        for route in all {
            let Some((name, to)) = name(&route).zip(destination(&route)) else { continue };
            let to = (to, priority(&route));
            if route.header.kind != RouteType::Unicast {
                table.closed.push((name, to));
                continue;
            }
            let is_odd = route.attributes.iter().any(|attribute| matches!(attribute, RouteAttribute::Other(_)));
            let route = cleaned(route);
            let is_another = table.routes.get(&name).is_some_and(|known| !is_same(&lasting(known), &lasting(&route)));
            if is_odd || is_another {
                table.left_alone.insert(name.clone(), to);
            }
            table.routes.insert(name, route);
        }
        for (name, to) in &table.closed {
            if table.routes.contains_key(name) {
                table.left_alone.insert(name.clone(), *to);
            }
        }
        table.routes.retain(|name, _| !table.left_alone.contains_key(name));
        table
    }

    /// Takes the rules into account that say which packets use which table.
    pub fn ruled(&mut self, rules: &[RuleMessage]) {
        const OWN: [u32; 3] = [RT_TABLE_DEFAULT, RT_TABLE_MAIN, RT_TABLE_LOCAL];
        for rule in rules {
            let table = rule.attributes.iter().find_map(|attribute| match attribute {
                RuleAttribute::Table(table) => Some(*table),
                _ => None,
            });
            let table = table.unwrap_or(u32::from(rule.header.table));
            if rule.attributes.iter().any(|attribute| matches!(attribute, RuleAttribute::L3MDev(true))) {
                self.others.insert("those of VRFs".to_string());
            } else if rule.header.action == RuleAction::ToTable && !OWN.contains(&table) {
                self.others.insert(table.to_string());
            }
            // none is -1
            let suppresses =
                |attribute: &RuleAttribute| matches!(attribute, RuleAttribute::SuppressPrefixLen(bits) if *bits < 128);
            self.is_suppressed |= table == RT_TABLE_MAIN && rule.attributes.iter().any(suppresses);
        }
    }

    /// Takes what the kernel answered when it was asked for a route that a dump lacked: whether that is gone; `None`: it is unknown.
    pub fn answered(&mut self, wanted: &str, bits: u8, answer: Option<RouteMessage>) -> Option<bool> {
        if self.left_alone.contains_key(wanted) {
            return None;
        }
        let Some(route) = answer else { return Some(true) };
        if name(&route).is_some_and(|name| name == wanted) {
            self.routes.insert(wanted.to_string(), cleaned(route));
            return Some(false);
        }
        // one of the same length, or a longer one, may hide it
        (route.header.destination_prefix_length < bits).then_some(true)
    }

    /// The routes, with their names.
    pub fn routes(&self) -> impl Iterator<Item = (&String, &RouteMessage)> {
        self.routes.iter()
    }

    /// Whether there are several of that name, of which none can be replaced.
    pub fn is_ambiguous(&self, name: &str) -> bool {
        self.left_alone.contains_key(name)
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
            (before.is_none_or(|before| !is_same(before, &after))).then(|| Change { before: before.cloned(), after })
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
            if let Some(way) = way {
                if let Some(why) = self.not_added(remote, way) {
                    notes.push(format!("no route to {remote} is added: {why}"));
                    continue;
                }
                let own = towards(way, remote);
                let name = name(&own).expect("it has a destination");
                changes.extend(change(None, own, &wanted(remote)).map(|change| (name, change)));
            }
        }
        if wishes.is_empty() {
            return (changes, notes);
        }
        let odd = self.left_alone.iter().filter(|(_, (to, _))| wanted(*to) != Metrics::default());
        let odd: Vec<&str> = odd.map(|(name, _)| name.as_str()).collect();
        notes.extend(of_kept(&odd, "that could not be restored exactly", by_bpf));
        notes.extend(of_kept(&kept, "of the kernel or with a lifetime", by_bpf));
        if !self.others.is_empty() {
            let tables: Vec<&str> = self.others.iter().map(String::as_str).collect();
            notes.push(format!("rules lead to tables besides main ({}): {}", named(&tables, ", "), instead(by_bpf)));
        }
        (changes, notes)
    }

    /// Why no copy of `way` is added for a prefix in it.
    fn not_added(&self, remote: Prefix, way: &RouteMessage) -> Option<&'static str> {
        let bits = destination(way).map_or(0, Prefix::bits);
        let is_nearer = |(to, at): &Way| {
            to.covers(remote) && (to.bits(), std::cmp::Reverse(*at)) > (bits, std::cmp::Reverse(priority(way)))
        };
        if self.closed.iter().any(|(_, to)| is_nearer(to)) {
            return Some("packets do not get there");
        }
        if self.left_alone.values().any(is_nearer) {
            return Some("the one that leads there could not be restored exactly");
        }
        // a copy has no lifetime, so it would lead to a router that has gone
        if !is_lasting(way) {
            return Some("the one that leads there has a lifetime");
        }
        // such as of a tunnel, which takes what only a default route is for: a longer prefix would lead past it
        self.is_suppressed.then_some("a rule sends packets elsewhere by the length of a route's prefix")
    }

    /// Initial windows of routes under a prefix, segments, and on how many of these each is; and how many routes there are.
    pub fn initial_windows(&self, remote: Option<Prefix>) -> (BTreeMap<u32, usize>, usize) {
        let is_under = |to: Prefix| remote.is_none_or(|remote| remote.covers(to));
        let (mut windows, mut total) = (BTreeMap::new(), 0);
        for route in self.routes.values().filter(|route| destination(route).is_some_and(is_under)) {
            total += 1;
            let metrics = route.attributes.iter().filter_map(|attribute| match attribute {
                RouteAttribute::Metrics(metrics) => Some(metrics),
                _ => None,
            });
            for metric in metrics.flatten() {
                if let RouteMetric::InitCwnd(segments) = metric {
                    *windows.entry(*segments).or_default() += 1;
                }
            }
        }
        (windows, total + self.left_alone.values().filter(|(to, _)| is_under(*to)).count())
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

/// What is reported of routes that a wish is for and that stay as they are.
fn of_kept(kept: &[&str], which: &str, by_bpf: bool) -> Option<String> {
    let count = match kept.len() {
        0 => return None,
        1 => "1 route".to_string(),
        many => format!("{many} routes"),
    };
    Some(format!("{count} {which} left unchanged ({}): {}", named(kept, "; "), instead(by_bpf)))
}

/// What becomes of connections whose route is not set.
fn instead(by_bpf: bool) -> &'static str {
    if by_bpf { "new connections there get from BPF what it can set" } else { "connections there are not set" }
}

/// The first of many names.
pub fn named(names: &[impl AsRef<str>], between: &str) -> String {
    let first = names.iter().take(NAMED).map(AsRef::as_ref).collect::<Vec<_>>().join(between);
    if names.len() > NAMED { format!("{first}{between}...") } else { first }
}

fn priority(route: &RouteMessage) -> u32 {
    let priority = |attribute: &RouteAttribute| match attribute {
        RouteAttribute::Priority(priority) => Some(*priority),
        _ => None,
    };
    route.attributes.iter().find_map(priority).unwrap_or(0)
}

/// Where a route leads; `None`: of a family that has no addresses of the Internet.
pub fn destination(route: &RouteMessage) -> Option<Prefix> {
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
/// as links change, and refuses some of them in a request. Of a nexthop object, which has its gateway and flags, the number stays. A lifetime stays,
/// since it tells which routes must not be replaced.
fn cleaned(mut route: RouteMessage) -> RouteMessage {
    route.header.flags &= RouteFlags::Onlink;
    if route.attributes.iter().any(|attribute| matches!(attribute, RouteAttribute::NhId(_))) {
        route.header.flags = RouteFlags::empty();
        route.attributes.retain(|attribute| !is_of_nexthop(attribute));
    }
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

/// What the kernel shows of a nexthop object with each of its routes.
fn is_of_nexthop(attribute: &RouteAttribute) -> bool {
    matches!(
        attribute,
        RouteAttribute::Gateway(_)
            | RouteAttribute::Via(_)
            | RouteAttribute::Oif(_)
            | RouteAttribute::MultiPath(_)
            | RouteAttribute::Encap(_)
            | RouteAttribute::EncapType(_)
    )
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
        // Linux reads this one, and the next, only where the route locks it
        set(RouteMetric::RtoMin(ms));
        lock |= 1 << RTAX_RTO_MIN;
    }
    if let Some(name) = &wanted.cc {
        set(RouteMetric::CcAlgo(name.clone()));
        lock |= 1 << RTAX_CC_ALGO;
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

/// What two routes of nexthop objects of IPv4 have in common if Linux gives one that comes without metrics the other's; `None` of others.
pub fn description(route: &RouteMessage) -> Option<(u32, u8, u32)> {
    let object = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::NhId(number) if route.header.address_family == AddressFamily::Inet => Some(*number),
        _ => None,
    });
    object.map(|number| (number, route.header.protocol.into(), priority(route)))
}

/// The route without metrics; `None` if it has none.
pub fn bare(route: &RouteMessage) -> Option<RouteMessage> {
    let mut bare = route.clone();
    bare.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::Metrics(_)));
    (bare.attributes.len() < route.attributes.len()).then_some(bare)
}

/// The route without its lifetime, which counts down.
fn lasting(route: &RouteMessage) -> RouteMessage {
    let mut route = route.clone();
    route.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::CacheInfo(_)));
    route
}

/// Whether two routes say the same, whatever the order of the kernel's attributes.
pub fn is_same(one: &RouteMessage, other: &RouteMessage) -> bool {
    fn all_in<T: PartialEq>(these: &[T], those: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
        these.len() == those.len() && these.iter().all(|this| those.iter().any(|that| same(this, that)))
    }
    all_in(&one.attributes, &other.attributes, |one, other| match (one, other) {
        (RouteAttribute::Metrics(one), RouteAttribute::Metrics(other)) => all_in(one, other, PartialEq::eq),
        (one, other) => one == other,
    })
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
    is_same(now, own) || without_algorithm(own).is_some_and(|own| is_same(now, &own))
}

/// The metrics as text: `InitCwnd(20), Lock(8192), RtoMin(2)`.
pub fn metrics_of(route: &RouteMessage) -> String {
    let of = |attribute: &RouteAttribute| match attribute {
        RouteAttribute::Metrics(metrics) => metrics.iter().map(|metric| format!("{metric:?}")).collect(),
        _ => Vec::new(),
    };
    let mut metrics: Vec<String> = route.attributes.iter().flat_map(of).collect();
    metrics.sort();
    metrics.join(", ")
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
