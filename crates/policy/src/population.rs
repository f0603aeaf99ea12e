//! The hosts of a network in the order in which a policy treats them, and the parts of the network that they are in.

use crate::cue::place_of;
use crate::model::Rollout;
use crate::view::NetworkView;
use std::collections::BTreeMap;
use units::Time;

/// Hosts by their place in the policy's order. Kept from period to period: sorting is for when hosts come or go.
#[derive(Debug, Clone, Default)]
pub(crate) struct Population {
    /// Of the view's hosts, in its order.
    pub places: Vec<u64>,
    /// Of the view before.
    pub before: Vec<u64>,
    /// Whether the rollout's labels let a host be treated.
    pub eligible: Vec<bool>,
    /// The places of the eligible, ascending.
    sorted: Vec<u64>,
    digest: u64,
}

impl Population {
    /// Takes a view's hosts; whether they are others than before.
    pub(crate) fn update(&mut self, policy: &str, labels: &BTreeMap<String, String>, view: &NetworkView) -> bool {
        let digest = self.digest;
        std::mem::swap(&mut self.places, &mut self.before);
        self.places.clear();
        self.eligible.clear();
        self.digest = 0;
        for host in &view.hosts {
            let place = place_of(policy, &host.name);
            let eligible = has_labels(&host.labels, labels);
            self.places.push(place);
            self.eligible.push(eligible);
            self.digest = self.digest.rotate_left(5).wrapping_add(place ^ u64::from(eligible));
        }
        let changed = self.digest != digest || self.sorted.is_empty();
        if changed {
            let pairs = self.places.iter().zip(&self.eligible);
            self.sorted = pairs.filter(|(_, eligible)| **eligible).map(|(place, _)| *place).collect();
            self.sorted.sort_unstable();
        }
        changed
    }

    /// The last place of this share: of the eligible hosts that are there it has as many as the share asks for, rounded, and leaves at least
    /// one out; of all such places it is the one closest to the same share of all places, so that hosts that come later keep
    /// about the share. The whole of them has no end. `None`: there are too few for anyone to belong to it.
    pub(crate) fn last_place(&self, fraction: f64) -> Option<u64> {
        if fraction >= 1.0 {
            return self.sorted.last().map(|_| u64::MAX);
        }
        let others = self.sorted.len().saturating_sub(1);
        let n = ((self.sorted.len() as f64 * fraction).round() as usize).min(others);
        let (last, next) = (*self.sorted.get(n.checked_sub(1)?)?, *self.sorted.get(n)?);
        Some(((fraction * 2f64.powi(64)) as u64).clamp(last, next.saturating_sub(1).max(last)))
    }
}

/// The place up to which hosts are treated. It is found among the hosts that are there when a stage of a rollout first sends something, and
/// then stays: whoever goes, comes back or is new, only the names of policy and host decide on which side a host is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Boundary {
    /// `None`: no host is treated.
    pub last: Option<u64>,
    /// The stage for which it was found, by its `after`.
    pub stage: Time,
    /// Something was sent to the hosts up to it; until then nobody changes sides if it moves.
    pub is_kept: bool,
}

impl Boundary {
    /// Where it stays.
    pub(crate) fn kept(self) -> Option<u64> {
        self.last.filter(|_| self.is_kept)
    }

    /// Follows a rollout that has lasted so long. A larger share keeps the hosts of a smaller one; where a share of the
    /// hosts that are there is nobody, it waits for more.
    pub(crate) fn follow(&mut self, population: &Population, rollout: &Rollout, lasted: Time) {
        let Some(stage) = rollout.stage(lasted) else { return };
        if self.is_kept && self.stage == stage.after {
            return;
        }
        let Some(asked) = population.last_place(stage.fraction) else {
            self.last = self.kept();
            return;
        };
        let is_larger = rollout.stage(self.stage).is_some_and(|before| before.fraction <= stage.fraction);
        let last = self.kept().map(|last| if is_larger { last.max(asked) } else { last.min(asked) });
        *self = Boundary { last: last.or(Some(asked)), stage: stage.after, ..*self };
    }
}

/// Whether all of `asked` are among `labels`.
pub(crate) fn has_labels(labels: &BTreeMap<String, String>, asked: &BTreeMap<String, String>) -> bool {
    asked.iter().all(|(label, value)| labels.get(label) == Some(value))
}

/// `host.every_hop_marks` of each host: 1 where every link that leaves a switch, in the part of the network that the host is
/// connected to, marks; 0 where one does not; NaN where one does not say, or the host has no link. A link that has failed joins
/// nothing and is not asked.
pub(crate) fn every_hop_marks(view: &NetworkView) -> Vec<f64> {
    let mut nodes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut parents: Vec<usize> = Vec::new();
    let links = || view.links.iter().filter(|link| link.up != Some(false));
    let ends: Vec<(usize, usize)> = links()
        .map(|link| {
            let mut number = |name| {
                *nodes.entry(name).or_insert_with(|| {
                    parents.push(parents.len());
                    parents.len() - 1
                })
            };
            (number(link.from.as_str()), number(link.to.as_str()))
        })
        .collect();
    for (from, to) in &ends {
        let (a, b) = (root(&mut parents, *from), root(&mut parents, *to));
        parents[a] = b;
    }
    let hosts: Vec<Option<usize>> = view.hosts.iter().map(|host| nodes.get(host.name.as_str()).copied()).collect();
    let mut is_host = vec![false; parents.len()];
    hosts.iter().flatten().for_each(|node| is_host[*node] = true);
    let mut marks = vec![1.0; parents.len()];
    for (link, (from, _)) in links().zip(&ends) {
        // A host's own queue needs no marks: it waits.
        if is_host[*from] {
            continue;
        }
        let part = root(&mut parents, *from);
        if link.marks == Some(false) {
            marks[part] = 0.0;
        } else if link.marks.is_none() && marks[part] > 0.0 {
            marks[part] = f64::NAN;
        }
    }
    hosts.into_iter().map(|node| node.map_or(f64::NAN, |node| marks[root(&mut parents, node)])).collect()
}

/// The part of the network that a node is in.
fn root(parents: &mut [usize], mut node: usize) -> usize {
    while parents[node] != node {
        parents[node] = parents[parents[node]];
        node = parents[node];
    }
    node
}

/// RTTs in bins of an eighth of an octave, to find a quantile of many hosts' at once.
pub(crate) struct RttBins([u64; RttBins::COUNT]);

impl RttBins {
    /// 32 octaves of microseconds.
    const COUNT: usize = 32 * 8;

    pub(crate) fn new() -> RttBins {
        RttBins([0; RttBins::COUNT])
    }

    pub(crate) fn add(&mut self, us: u32, sessions: u32) {
        let bin = &mut self.0[RttBins::bin(us)];
        *bin = bin.saturating_add(u64::from(sessions));
    }

    fn bin(us: u32) -> usize {
        let us = us.max(1);
        let octave = us.ilog2();
        // the three bits behind the leading one
        let eighth = if octave >= 3 { us >> (octave - 3) & 7 } else { us << (3 - octave) & 7 };
        (octave * 8 + eighth) as usize
    }

    /// The 99th percentile in microseconds, rounded up to the end of its bin (at most an eighth more); `None` of nothing.
    pub(crate) fn p99_us(&self) -> Option<f64> {
        let total: u128 = self.0.iter().map(|sessions| u128::from(*sessions)).sum();
        let rank = (total * 99).div_ceil(100);
        let mut below = 0u128;
        let bin = self.0.iter().position(|n| {
            below += u128::from(*n);
            total > 0 && below >= rank
        })?;
        let (octave, eighth) = (bin / 8, bin % 8);
        Some((1u64 << octave) as f64 * (1.0 + (eighth + 1) as f64 / 8.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Design, Stage};
    use crate::view::{Host, Link};

    fn hosts(names: impl IntoIterator<Item = String>) -> Vec<Host> {
        names.into_iter().map(|name| Host { name, ..Host::default() }).collect()
    }

    #[test]
    fn a_share_is_met_exactly_and_a_larger_one_keeps_the_hosts_of_a_smaller() {
        let view = NetworkView { hosts: hosts((0..16).map(|i| format!("h{i}"))), ..NetworkView::default() };
        let mut population = Population::default();
        assert!(population.update("p", &BTreeMap::new(), &view));
        assert!(!population.update("p", &BTreeMap::new(), &view), "nothing has changed");
        let treated = |fraction| {
            let last = population.last_place(fraction);
            let of = |place: &u64| last.is_some_and(|last| *place <= last);
            population.places.iter().map(of).collect::<Vec<_>>()
        };
        let (quarter, half) = (treated(0.25), treated(0.5));
        assert_eq!(quarter.iter().filter(|treated| **treated).count(), 4);
        assert_eq!(half.iter().filter(|treated| **treated).count(), 8);
        assert!(quarter.iter().zip(&half).all(|(quarter, half)| !quarter || *half));
        assert_eq!(population.last_place(0.01), None, "a hundredth of 16 hosts is nobody");
        assert_eq!(treated(0.99).iter().filter(|treated| **treated).count(), 15, "one is left to compare with");
        assert_eq!(population.last_place(1.0), Some(u64::MAX));
    }

    #[test]
    fn a_host_that_comes_first_is_treated_alone_only_where_all_are() {
        let view = NetworkView { hosts: hosts(["h".to_string()]), ..NetworkView::default() };
        let mut population = Population::default();
        assert_eq!(population.last_place(0.5), None);
        population.update("p", &BTreeMap::new(), &view);
        assert_eq!([0.5, 0.99].map(|fraction| population.last_place(fraction)), [None; 2]);
        assert_eq!(population.last_place(1.0), Some(u64::MAX));
    }

    /// Which of some hosts, by their places' order, are treated at a stage by these present.
    fn treated(
        boundary: &mut Boundary,
        rollout: &Rollout,
        (s, names, present): (u64, &[String], &[usize]),
    ) -> Vec<usize> {
        let view =
            NetworkView { hosts: hosts(present.iter().map(|host| names[*host].clone())), ..NetworkView::default() };
        let mut population = Population::default();
        population.update("p", &BTreeMap::new(), &view);
        boundary.follow(&population, rollout, Time::from_secs(s));
        boundary.is_kept = boundary.last.is_some();
        let is_treated = |name: &String| boundary.last.is_some_and(|last| place_of("p", name) <= last);
        (0..names.len()).filter(|host| is_treated(&names[*host])).collect()
    }

    fn rollout(stages: &[(u64, f64)]) -> Rollout {
        let stage = |(after, fraction): &(u64, f64)| Stage { after: Time::from_secs(*after), fraction: *fraction };
        let stages = stages.iter().map(stage).collect();
        Rollout { design: Design::Split, stages, labels: BTreeMap::new() }
    }

    fn by_place(names: impl IntoIterator<Item = String>) -> Vec<String> {
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort_by_key(|name| place_of("p", name));
        names
    }

    #[test]
    fn nobody_changes_sides_while_others_go_and_come() {
        let names = by_place(["a", "b", "c", "d"].map(String::from));
        let (half, mut boundary) = (rollout(&[(0, 0.5)]), Boundary::default());
        let mut at = |s, present: &[usize]| treated(&mut boundary, &half, (s, &names, present));
        assert!(at(0, &[3]).is_empty(), "of one host nobody is treated");
        assert_eq!(at(1, &[0, 1, 2, 3]), [0, 1]);
        // an outage of those that are treated, or of those that are not, of all but one, and of all
        for present in [&[2, 3][..], &[0, 1], &[3], &[], &[0, 2, 3], &[0, 1, 2, 3]] {
            assert_eq!(at(2, present), [0, 1], "{present:?}");
        }
    }

    #[test]
    fn before_anything_was_sent_the_share_is_that_of_the_hosts_that_are_there() {
        let names = by_place((0..10).map(|i| format!("h{i}")));
        let (half, mut boundary) = (rollout(&[(0, 0.5)]), Boundary::default());
        for n in [3, 10, 1, 4] {
            boundary.is_kept = false;
            // those that come last in the order are there first
            let present: Vec<usize> = (10 - n..10).collect();
            let treated = treated(&mut boundary, &half, (0, &names, &present));
            let here = treated.iter().filter(|host| present.contains(host)).count();
            assert_eq!(here, if n == 1 { 0 } else { n.div_ceil(2) }, "of {n} hosts");
        }
    }

    #[test]
    fn a_larger_share_keeps_those_of_a_smaller_and_waits_for_hosts() {
        let names = by_place((0..10).map(|i| format!("h{i}")));
        let (staged, mut boundary) = (rollout(&[(0, 0.1), (10, 0.5), (20, 1.0)]), Boundary::default());
        let all: Vec<usize> = (0..10).collect();
        let mut at = |s, present: &[usize]| treated(&mut boundary, &staged, (s, &names, present)).len();
        assert_eq!((at(0, &all), at(9, &[5, 6])), (1, 1));
        assert_eq!(at(10, &[9]), 1, "one host has no half");
        assert_eq!((at(11, &all), at(12, &[1])), (5, 5));
        assert_eq!((at(20, &[]), at(21, &[3])), (5, 10), "also of those that are away");
        let (falling, mut boundary) = (rollout(&[(0, 0.5), (10, 0.2)]), Boundary::default());
        let mut at = |s, present: &[usize]| treated(&mut boundary, &falling, (s, &names, present)).len();
        assert_eq!((at(0, &all), at(10, &all)), (5, 2));
    }

    #[test]
    fn hosts_that_autoscaling_adds_keep_about_the_share() {
        // of 20 groups that begin with so many hosts and grow to 1000: the least and the most share that is treated then
        let shares = |first: usize, fraction| {
            let share = |group: usize| {
                let names = (0..1000).map(|i| format!("g{group}-{i}")).collect::<Vec<_>>();
                let mut boundary = Boundary::default();
                let (few, all) = ((0..first).collect::<Vec<_>>(), (0..1000).collect::<Vec<_>>());
                let rollout = rollout(&[(0, fraction)]);
                let before = treated(&mut boundary, &rollout, (0, &names, &few));
                let after = treated(&mut boundary, &rollout, (1, &names, &all));
                assert_eq!(before, after);
                after.len() as f64 / 1000.0
            };
            let all: Vec<f64> = (0..20).map(share).collect();
            [all.iter().copied().fold(1.0, f64::min), all.iter().copied().fold(0.0, f64::max)]
        };
        let table = [(2, 0.5), (4, 0.5), (20, 0.5), (100, 0.5), (10, 0.1), (100, 0.1)].map(|(first, fraction)| {
            let [least, most] = shares(first, fraction);
            format!("{first} hosts, {fraction}: {least:.2} to {most:.2}")
        });
        // docs/policies.md has these
        let shown = [
            "2 hosts, 0.5: 0.08 to 0.85",
            "4 hosts, 0.5: 0.05 to 0.82",
            "20 hosts, 0.5: 0.30 to 0.68",
            "100 hosts, 0.5: 0.45 to 0.54",
            "10 hosts, 0.1: 0.01 to 0.28",
            "100 hosts, 0.1: 0.07 to 0.14",
        ];
        assert_eq!(table, shown);
    }

    #[test]
    fn one_port_without_marks_spoils_its_part_of_the_network_only() {
        let link = |from: &str, to: &str, marks| Link {
            name: format!("{from}-{to}"),
            from: from.into(),
            to: to.into(),
            marks,
            ..Link::default()
        };
        let view = NetworkView {
            hosts: hosts(["a1", "a2", "b1", "c1", "lone"].map(String::from)),
            links: vec![
                link("a1", "s", None),
                link("s", "a1", Some(true)),
                link("s", "a2", Some(true)),
                link("t", "b1", Some(false)),
                link("u", "c1", None),
            ],
            ..NetworkView::default()
        };
        let marks = every_hop_marks(&view);
        assert_eq!(marks[..3], [1.0, 1.0, 0.0]);
        assert!(marks[3].is_nan() && marks[4].is_nan());
    }

    #[test]
    fn a_link_that_failed_is_not_asked_and_parts_the_network() {
        let link = |from: &str, to: &str, marks, up| Link {
            name: format!("{from}->{to}"),
            from: from.into(),
            to: to.into(),
            marks: Some(marks),
            up,
            ..Link::default()
        };
        let marks = |up| {
            let links = vec![link("s", "a", true, None), link("s", "t", false, up), link("t", "b", false, None)];
            every_hop_marks(&NetworkView {
                hosts: hosts(["a", "b"].map(String::from)),
                links,
                ..NetworkView::default()
            })
        };
        assert_eq!(marks(Some(true)), [0.0, 0.0]);
        assert_eq!(marks(Some(false)), [1.0, 0.0]);
    }

    #[test]
    fn the_p99_of_many_hosts_is_at_most_an_eighth_too_large() {
        let mut bins = RttBins::new();
        bins.add(200, 98);
        bins.add(9000, 2);
        // the 99th of 100 is 9000: between 8192 and 9216, the end of its eighth
        assert_eq!(bins.p99_us(), Some(9216.0));
        assert_eq!(RttBins::new().p99_us(), None);
        bins.add(u32::MAX, 1);
        bins.add(0, 1);
    }
}
