//! What a fleet says, where one host in fifty may say anything.
//!
//! A value that enters a decision for all is at most that of the host after those that may lie, and at least that of the host before
//! them: each number of a host is cut to what the rest of the fleet says (winsorizing), so that no value of a liar is outside of what
//! honest hosts say. Under five hosts nothing is cut, since one cannot tell who is odd. A number that so few hosts report that most of
//! these may lie is not known.
//!
//! What it cannot do: more than one host in fifty that agree may lie as they like; and what only so few hosts see in truth does not count
//! for the others, unless a collector sees it too.

mod bins;
mod pool;

pub use bins::Bins;
pub use pool::{Part, arms, connections, percentiles, retransmit_rate};

use policy::{Epoch, Host, Link, TERM_MAX};
use serde::Serialize;
use std::collections::BTreeMap;
use units::{Bytes, Rate, Time};

/// One host in so many may lie.
const ONE_IN: usize = 50;
/// Fewest hosts among which one can be odd.
const HOSTS_MIN: usize = 5;
/// In a register of so many hosts no epoch counts by the word of one. Of two, either may be the one that is right.
const WITNESS_FROM: usize = 3;
/// A value is an outlier beyond so many deviations (1.4826 times the median deviation from the median) ...
const DEVIATIONS: f64 = 8.0;
/// ... each of which is at least this share of the median.
const SPREAD: f64 = 0.1;
/// Most outliers that are listed.
const LISTED_MAX: usize = 8;

/// How many of so many hosts may lie.
pub fn liars(hosts: usize) -> usize {
    if hosts < HOSTS_MIN { 0 } else { hosts.div_ceil(ONE_IN) }
}

/// Hosts that say something far from what the others do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outliers {
    /// Values so far, each counted in each period.
    pub total: u64,
    /// Hosts in the last period.
    pub hosts: usize,
    /// The first of them.
    pub list: Vec<Outlier>,
}

/// One such value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outlier {
    /// The host.
    pub host: String,
    /// What it says something of.
    pub what: &'static str,
    /// What it says.
    pub said: f64,
    /// The median of all hosts.
    pub median: f64,
}

impl Outliers {
    /// Begins a period.
    pub fn begin(&mut self) {
        (self.hosts, self.list) = (0, Vec::new());
    }

    fn add(&mut self, found: Vec<Outlier>) {
        self.hosts += usize::from(!found.is_empty());
        self.total += found.len() as u64;
        self.list.extend(found);
        self.list.truncate(LISTED_MAX);
    }
}

/// The values of a quantity that count.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    low: f64,
    high: f64,
    median: f64,
    /// How far from the median is odd.
    far: f64,
}

impl Range {
    /// Of what hosts report; `None`: too few do. `small` is a deviation that is never odd.
    fn of(mut values: Vec<f64>, liars: usize, small: f64) -> Option<Range> {
        if values.len() <= 2 * liars {
            return None;
        }
        values.sort_unstable_by(f64::total_cmp);
        let middle = |sorted: &[f64]| sorted[sorted.len() / 2];
        let (low, high, median) = (values[liars], values[values.len() - 1 - liars], middle(&values));
        for value in &mut values {
            *value = (*value - median).abs();
        }
        values.sort_unstable_by(f64::total_cmp);
        let deviation = (1.4826 * middle(&values)).max(SPREAD * median.abs());
        Some(Range { low, high, median, far: (DEVIATIONS * deviation).max(small) })
    }

    fn cut(self, value: f64) -> f64 {
        value.clamp(self.low, self.high)
    }

    fn cuts(self, value: f64) -> bool {
        value < self.low || value > self.high
    }

    fn is_odd(self, value: f64) -> bool {
        self.cuts(value) && (value - self.median).abs() > self.far
    }
}

/// A number of a host.
struct Quantity {
    what: &'static str,
    get: fn(&Host) -> Option<f64>,
    set: fn(&mut Host, Option<f64>),
    small: f64,
}

fn seconds(time: Option<Time>) -> Option<f64> {
    time.map(Time::as_secs_f64)
}

fn time(seconds: Option<f64>) -> Option<Time> {
    seconds.map(Time::from_secs_f64)
}

const QUANTITIES: [Quantity; 10] = [
    Quantity { what: "live_flows", get: |h| h.live_flows, set: |h, v| h.live_flows = v, small: 100.0 },
    Quantity { what: "flow_starts", get: |h| h.flow_starts, set: |h, v| h.flow_starts = v, small: 100.0 },
    Quantity { what: "fan_in", get: |h| h.fan_in, set: |h, v| h.fan_in = v, small: 100.0 },
    Quantity {
        what: "sent_segments",
        get: |h| h.sent_segments.map(|n| n as f64),
        set: |h, v| h.sent_segments = v.map(|v| v as u64),
        small: 1e6,
    },
    Quantity {
        what: "retransmitted_segments",
        get: |h| h.retransmitted_segments.map(|n| n as f64),
        set: |h, v| h.retransmitted_segments = v.map(|v| v as u64),
        small: 1000.0,
    },
    // behind the counts that it changes
    Quantity {
        what: "drop_rate",
        get: Host::drop_rate,
        set: |h, v| {
            // not known together: with either count alone it is no share
            match (v, h.sent_segments) {
                (Some(share), Some(sent)) => h.retransmitted_segments = Some((share * sent as f64) as u64),
                _ => h.retransmitted_segments = None,
            }
        },
        small: 0.01,
    },
    Quantity {
        what: "send_rate",
        get: |h| h.send_rate.map(|rate| rate.as_bps() as f64),
        set: |h, v| h.send_rate = v.map(|v| Rate::from_bps(v as u64)),
        small: 1e9,
    },
    Quantity { what: "fct_p50", get: |h| seconds(h.fct.p50), set: |h, v| h.fct.p50 = time(v), small: 0.1 },
    Quantity { what: "fct_p90", get: |h| seconds(h.fct.p90), set: |h, v| h.fct.p90 = time(v), small: 0.1 },
    Quantity { what: "fct_p99", get: |h| seconds(h.fct.p99), set: |h, v| h.fct.p99 = time(v), small: 0.1 },
];

/// Cuts what hosts say to what counts for the others. Returns what each host that was cut says of itself, by its place.
pub fn cut_hosts(hosts: &mut [Host], outliers: &mut Outliers) -> BTreeMap<usize, Host> {
    let liars = liars(hosts.len());
    let mut own = BTreeMap::new();
    if liars == 0 {
        return own;
    }
    let ranges = QUANTITIES
        .each_ref()
        .map(|quantity| Range::of(hosts.iter().filter_map(quantity.get).collect(), liars, quantity.small));
    let sessions = Sessions::of(hosts, liars);
    let mut algorithms: BTreeMap<String, usize> = BTreeMap::new();
    for host in hosts.iter() {
        *algorithms.entry(host.cc.clone()).or_default() += 1;
    }
    for (place, host) in hosts.iter_mut().enumerate() {
        let mut cut = host.clone();
        let mut odd = Vec::new();
        for (quantity, range) in QUANTITIES.iter().zip(&ranges) {
            let Some(said) = (quantity.get)(&cut) else { continue };
            match range {
                Some(range) if range.cuts(said) => (quantity.set)(&mut cut, Some(range.cut(said))),
                Some(_) => {}
                None => (quantity.set)(&mut cut, None),
            }
            let said = (quantity.get)(host).unwrap_or(said);
            if let Some(range) = range.filter(|range| range.is_odd(said)) {
                odd.push(Outlier { host: host.name.clone(), what: quantity.what, said, median: range.median });
            }
        }
        cut.retransmitted_segments = cut.retransmitted_segments.min(cut.sent_segments);
        odd.extend(sessions.cut(&mut cut));
        if algorithms[&cut.cc] <= liars {
            cut.cc.clear();
        }
        outliers.add(odd);
        if cut != *host {
            own.insert(place, std::mem::replace(host, cut));
        }
    }
    own
}

/// How many open connections hosts have, and with which RTTs.
struct Sessions {
    count: Option<Range>,
    /// Of the 99th percentile of hosts, and of their median, microseconds.
    p99: Option<Range>,
    p50: Option<Range>,
}

impl Sessions {
    fn of(hosts: &[Host], liars: usize) -> Sessions {
        let of = |value: &dyn Fn(&Host) -> Option<f64>, small| {
            Range::of(hosts.iter().filter_map(value).collect(), liars, small)
        };
        Sessions {
            count: of(&|host| (!host.srtt_us.is_empty()).then(|| sessions(host) as f64), 100.0),
            p99: of(&|host| srtt_us(host, 0.99), 10_000.0),
            p50: of(&|host| srtt_us(host, 0.5), 10_000.0),
        }
    }

    fn cut(&self, host: &mut Host) -> Option<Outlier> {
        let (Some(high), Some(low)) = (srtt_us(host, 0.99), srtt_us(host, 0.5)) else { return None };
        let (Some(count), Some(p99), Some(p50)) = (self.count, self.p99, self.p50) else {
            host.srtt_us.clear();
            return None;
        };
        let odd = p99.is_odd(high).then(|| Outlier {
            host: host.name.clone(),
            what: "srtt_p99",
            said: high / 1e6,
            median: p99.median / 1e6,
        });
        let all = sessions(host) as f64;
        let scale = count.high / all;
        let (above, below) = (high > p99.high, low < p50.low);
        if scale < 1.0 || above || below {
            let mut steps: BTreeMap<u32, u32> = BTreeMap::new();
            for (us, n) in &host.srtt_us {
                let us = if above { (*us).min(p99.high as u32) } else { *us };
                let us = if below { us.max(p50.low as u32) } else { us };
                let n = if scale < 1.0 { (f64::from(*n) * scale).ceil() as u32 } else { *n };
                let sum = steps.entry(us).or_default();
                *sum = sum.saturating_add(n);
            }
            host.srtt_us = steps.into_iter().collect();
        }
        odd
    }
}

fn sessions(host: &Host) -> u64 {
    host.srtt_us.iter().map(|(_, n)| u64::from(*n)).sum()
}

/// A quantile of a host's RTTs, microseconds.
fn srtt_us(host: &Host, q: f64) -> Option<f64> {
    let rank = (sessions(host) as f64 * q).ceil().max(1.0) as u64;
    let mut below = 0;
    let step = host.srtt_us.iter().find(|(_, n)| {
        below += u64::from(*n);
        below >= rank
    });
    step.map(|(us, _)| f64::from(*us))
}

/// A number of a link.
struct OfLink {
    what: &'static str,
    get: fn(&Link) -> Option<f64>,
    set: fn(&mut Link, Option<f64>),
    small: f64,
}

const OF_LINK: [OfLink; 5] = [
    OfLink { what: "link.utilization", get: |l| l.utilization, set: |l, v| l.utilization = v, small: 0.3 },
    OfLink { what: "link.drop_rate", get: |l| l.drop_rate, set: |l, v| l.drop_rate = v, small: 0.01 },
    OfLink { what: "link.mark_rate", get: |l| l.mark_rate, set: |l, v| l.mark_rate = v, small: 0.1 },
    OfLink {
        what: "link.queue",
        get: |l| l.queue.map(|queue| queue.get() as f64),
        set: |l, v| l.queue = v.map(|v| Bytes::new(v as u64)),
        small: 1e6,
    },
    OfLink {
        what: "link.rate",
        get: |l| l.rate.map(|rate| rate.as_bps() as f64),
        set: |l, v| l.rate = v.map(|v| Rate::from_bps(v as u64)),
        small: 1e11,
    },
];

/// Cuts what hosts say of their own links: a host's largest and smallest value to those of the rest, and how many links count. `hosts` is
/// how many hosts there are, with links or without.
pub fn cut_links(links: &mut [(String, Vec<Link>)], hosts: usize, outliers: &mut Outliers) {
    let liars = liars(hosts);
    if liars == 0 {
        return;
    }
    let Some(number) = Range::of(links.iter().map(|(_, links)| links.len() as f64).collect(), liars, 8.0) else {
        for (_, links) in links.iter_mut() {
            links.clear();
        }
        return;
    };
    for (_, links) in links.iter_mut() {
        links.truncate(number.high as usize);
    }
    for OfLink { what, get, set, small } in &OF_LINK {
        let of_hosts = |fold: fn(f64, f64) -> f64| {
            let of_host = |(_, links): &(String, Vec<Link>)| links.iter().filter_map(get).reduce(fold);
            Range::of(links.iter().filter_map(of_host).collect(), liars, *small)
        };
        let range = of_hosts(f64::min).zip(of_hosts(f64::max));
        let range = range.map(|(least, most)| Range { low: least.low.min(most.high), ..most });
        for (host, links) in links.iter_mut() {
            let mut odd = Vec::new();
            for link in links {
                let Some(said) = get(link) else { continue };
                let Some(range) = range else {
                    set(link, None);
                    continue;
                };
                if range.is_odd(said) && odd.is_empty() {
                    odd.push(Outlier { host: host.clone(), what, said, median: range.median });
                }
                if range.cuts(said) {
                    set(link, Some(range.cut(said)));
                }
            }
            outliers.add(odd);
        }
    }
}

/// Whether a host may say something of this link: it is named by the host, and joins it with its rack's switch or its own.
pub fn is_own(host: &Host, link: &Link) -> bool {
    let far = match (link.from == host.name, link.to == host.name) {
        (true, false) => &link.to,
        (false, true) => &link.from,
        _ => return false,
    };
    let is_edge = (!host.rack.is_empty() && *far == host.rack) || far.strip_prefix("switch of ") == Some(&*host.name);
    is_edge && link.name.strip_prefix(&*host.name).is_some_and(|rest| rest.starts_with(' '))
}

/// The highest of some epochs that more hosts know of than may lie, of `hosts` that have reported and of the `register`, in which so many
/// may report (0: not known). Who is heard first after a restart is few, and can be the one that lies.
pub fn known_epoch(mut epochs: Vec<u64>, hosts: usize, register: usize) -> Option<u64> {
    let liars = liars(hosts.max(register)).max(usize::from(register >= WITNESS_FROM));
    let said = epochs.len();
    let most = Epoch { term: TERM_MAX / 2, member: u8::MAX, sequence: u32::MAX }.number();
    epochs.retain(|epoch| *epoch <= most);
    let liars = liars.saturating_sub(said - epochs.len());
    epochs.sort_unstable();
    epochs.len().checked_sub(1 + liars).map(|at| epochs[at])
}

/// Cuts each host's sum to that of the largest that must be honest: the factors.
pub fn factors(sums: &[f64], liars: usize) -> Vec<f64> {
    let most = if sums.len() <= liars { 0.0 } else { largest_honest(sums, liars) };
    let most = if liars == 0 { f64::INFINITY } else { most };
    sums.iter().map(|sum| if *sum > most { most / sum } else { 1.0 }).collect()
}

fn largest_honest(sums: &[f64], liars: usize) -> f64 {
    let mut sorted = sums.to_vec();
    let at = sorted.len() - 1 - liars;
    *sorted.select_nth_unstable_by(at, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(n: usize) -> Vec<Host> {
        let host = |i: usize| Host {
            name: format!("h{i}"),
            cc: "cubic".into(),
            live_flows: Some(100.0 + i as f64),
            sent_segments: Some(10_000 + i as u64),
            retransmitted_segments: Some(10),
            srtt_us: vec![(200, 90), (1000 + i as u32, 10)],
            ..Host::default()
        };
        (0..n).map(host).collect()
    }

    #[test]
    fn an_absurd_value_is_cut_to_the_others_and_listed_and_kept_for_the_host_itself() {
        let mut all = hosts(5);
        all[2].live_flows = Some(9e15);
        all[2].cc = "bbr".into();
        all[2].srtt_us = vec![(u32::MAX, u32::MAX)];
        let mut outliers = Outliers::default();
        let own = cut_hosts(&mut all, &mut outliers);
        assert_eq!((all[2].live_flows, own[&2].live_flows), (Some(104.0), Some(9e15)));
        assert_eq!((all[2].cc.as_str(), own[&2].cc.as_str()), ("", "bbr"));
        assert_eq!(all[2].srtt_us, [(1004, 100)]);
        assert_eq!(
            (outliers.hosts, outliers.list.iter().map(|one| one.what).collect::<Vec<_>>()),
            (1, vec!["live_flows", "srtt_p99"])
        );
        // the lowest is an honest host, cut to the next one, and no outlier
        assert_eq!((all[0].live_flows, own[&0].live_flows), (Some(101.0), Some(100.0)));
    }

    #[test]
    fn few_hosts_are_left_as_they_are() {
        let mut all = hosts(4);
        all[0].live_flows = Some(9e15);
        let before = all.clone();
        assert!(cut_hosts(&mut all, &mut Outliers::default()).is_empty());
        assert_eq!(all, before);
    }

    #[test]
    fn what_only_those_say_who_may_lie_is_not_known() {
        let mut all = hosts(100);
        all[0].fct.p99 = Some(Time::from_secs(9));
        all[1].fct.p99 = Some(Time::from_secs(9));
        cut_hosts(&mut all, &mut Outliers::default());
        assert!(all.iter().all(|host| host.fct.p99.is_none()));
    }

    #[test]
    fn the_number_of_listed_outliers_is_bounded() {
        let mut outliers = Outliers::default();
        for _ in 0..3 {
            outliers.begin();
            let mut all = hosts(4000);
            all.iter_mut().take(80).for_each(|host| host.live_flows = Some(1e9));
            cut_hosts(&mut all, &mut outliers);
        }
        assert_eq!((outliers.total, outliers.hosts, outliers.list.len()), (240, 80, LISTED_MAX));
    }

    #[test]
    fn a_host_speaks_of_its_own_links_only() {
        let host = Host { name: "h1".into(), rack: "r1".into(), ..Host::default() };
        let link = |name: &str, from: &str, to: &str| Link {
            name: name.into(),
            from: from.into(),
            to: to.into(),
            ..Link::default()
        };
        assert!(is_own(&host, &link("h1 eth0 out", "h1", "r1")));
        assert!(is_own(&host, &link("h1 eth0 in", "switch of h1", "h1")));
        for foreign in [
            link("h2 eth0 out", "h1", "r1"),
            link("h1", "h1", "r1"),
            link("h1 eth0 out", "h2", "r1"),
            link("h1 eth0 out", "h1", "r2"),
            link("h1 eth0 out", "h1", "h1"),
            link("h1 eth0 out", "leaf1", "spine"),
            link("h1 eth0 in", "switch of h2", "h1"),
        ] {
            assert!(!is_own(&host, &foreign), "{foreign:?}");
        }
    }

    #[test]
    fn the_second_half_of_terms_is_never_reached_by_the_word_of_hosts() {
        let half = Epoch { term: TERM_MAX / 2, member: u8::MAX, sequence: u32::MAX }.number();
        for lie in [half + 1, policy::EPOCH_MAX - 1, policy::EPOCH_MAX] {
            // even if all say so; and who says so uses up the share of liars
            assert_eq!(known_epoch(vec![lie, lie], 2, 2), None, "{lie}");
            assert_eq!(known_epoch(vec![lie, 7, 8, 8, 9], 5, 5), Some(9), "{lie}");
        }
        assert_eq!(known_epoch(vec![half], 1, 1), Some(half));
    }

    #[test]
    fn an_epoch_counts_if_more_know_of_it_than_may_lie() {
        assert_eq!(known_epoch(vec![3, 9, 4], 3, 0), Some(9));
        assert_eq!(known_epoch(vec![90, 7, 7, 6, 7], 5, 5), Some(7));
        assert_eq!((known_epoch(vec![9], 100, 0), known_epoch(vec![], 0, 0)), (None, None));
        // the liar is heard first: of a hundred hosts two may lie, so three must say it
        assert_eq!((known_epoch(vec![90], 1, 100), known_epoch(vec![90, 7], 2, 100)), (None, None));
        assert_eq!(known_epoch(vec![90, 7, 7, 8], 4, 100), Some(7));
        // in a small fleet one is not enough, where there are others who could say it
        assert_eq!((known_epoch(vec![9], 1, 1), known_epoch(vec![9, 7], 2, 2)), (Some(9), Some(9)));
        assert_eq!((known_epoch(vec![9], 1, 3), known_epoch(vec![9, 7, 7], 3, 3)), (None, Some(7)));
    }
}
