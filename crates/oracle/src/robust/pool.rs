//! What all hosts' connections did together, where one host in fifty may say anything.
//!
//! Of every share (of connections that took longer than some time, of segments that were retransmissions) the hosts that add the most to
//! it, and those that take the most from it, are left out, as many as may lie. What a host counts is at most what the honest host with most
//! counts. So what liars say is left out, or lies within what honest hosts say.

use super::bins::{BINS, Bins, longest_us};
use policy::{ArmObservation, GROUPS, Percentiles, Rest};
use units::Time;

/// Over so many values the times of a bin are spread.
const SPREAD: u64 = 16;

/// A host's part.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// On which side it counts: 0 or 1.
    pub side: usize,
    /// In which group of the side's hosts.
    pub group: usize,
    /// Completion times.
    pub times: &'a Bins,
    /// Segments sent with data.
    pub segments: u64,
    /// Of these, retransmissions.
    pub retransmits: u64,
}

/// A host's weight in a share, and its own.
#[derive(Clone, Copy, Debug)]
struct Vote {
    side: usize,
    group: usize,
    weight: f64,
    share: f64,
}

/// A sum of shares, weighted, and of the weights.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    shares: f64,
    weights: f64,
}

impl Sum {
    fn share(self) -> Option<f64> {
        (self.weights > 1e-9).then(|| self.shares / self.weights)
    }
}

/// The votes that count; none if too few are left who say something of it.
fn counting(votes: &mut [Vote], liars: usize) -> &[Vote] {
    let (sum, weight) = votes.iter().fold((0.0, 0.0), |(s, w), vote| (s + vote.weight * vote.share, w + vote.weight));
    if votes.len() <= 2 * liars || weight <= 0.0 {
        return &[];
    }
    let pooled = sum / weight;
    let adds = |vote: &Vote| vote.weight * (vote.share - pooled);
    if liars == 0 {
        return votes;
    }
    let by_what_it_adds = |one: &Vote, other: &Vote| adds(one).total_cmp(&adds(other));
    let last = votes.len() - liars;
    votes.select_nth_unstable_by(last, by_what_it_adds);
    let kept = &mut votes[..last];
    kept.select_nth_unstable_by(liars - 1, by_what_it_adds);
    &kept[liars..]
}

/// Sums of each side, and of each group of it.
fn sums(votes: &[Vote]) -> ([Sum; 2], [[Sum; GROUPS]; 2]) {
    let (mut sides, mut groups) = ([Sum::default(); 2], [[Sum::default(); GROUPS]; 2]);
    for vote in votes {
        for sum in [&mut sides[vote.side], &mut groups[vote.side][vote.group]] {
            sum.shares += vote.weight * vote.share;
            sum.weights += vote.weight;
        }
    }
    (sides, groups)
}

/// Of each side its share. `None`: nobody is left who says something of it.
fn shares(votes: &mut [Vote], liars: usize) -> [Option<f64>; 2] {
    sums(counting(votes, liars)).0.map(Sum::share)
}

/// Of a side, its share without each of its groups.
fn without(side: Sum, groups: &[Sum; GROUPS]) -> [Option<f64>; GROUPS] {
    groups.map(|group| Sum { shares: side.shares - group.shares, weights: side.weights - group.weights }.share())
}

/// Cuts weights to that of the largest host that must be honest.
fn cap(weights: &mut [f64], liars: usize) {
    if liars == 0 || weights.len() <= liars {
        return;
    }
    let mut sorted = weights.to_vec();
    let at = sorted.len() - 1 - liars;
    let (_, most, _) = sorted.select_nth_unstable_by(at, f64::total_cmp);
    let most = *most;
    for weight in weights {
        *weight = weight.min(most);
    }
}

/// The completion times of some hosts, ready for questions.
struct Times<'a> {
    parts: Vec<&'a Part<'a>>,
    /// How many count of each.
    weights: Vec<f64>,
    /// How many there are in each, as said.
    totals: Vec<f64>,
    liars: usize,
}

impl<'a> Times<'a> {
    fn of(parts: &'a [Part<'a>], liars: usize) -> Times<'a> {
        let parts: Vec<&Part<'_>> = parts.iter().filter(|part| part.times.total() > 0).collect();
        let totals: Vec<f64> = parts.iter().map(|part| part.times.total() as f64).collect();
        let mut weights = totals.clone();
        cap(&mut weights, liars);
        Times { parts, weights, totals, liars }
    }

    /// Of each side, the share of connections that took longer than any of this bin.
    fn longer(&self, bin: u16, votes: &mut Vec<Vote>) -> [Option<f64>; 2] {
        votes.clear();
        for ((part, weight), total) in self.parts.iter().zip(&self.weights).zip(&self.totals) {
            let longer: u64 = part.times.iter().filter(|(of, _)| *of > bin).map(|(_, count)| u64::from(count)).sum();
            let share = longer as f64 / total;
            votes.push(Vote { side: part.side, group: part.group, weight: *weight, share });
        }
        shares(votes, self.liars)
    }
}

/// Percentiles of all completion times; empty if too few hosts say something. All parts are on side 0.
pub fn percentiles(parts: &[Part<'_>], liars: usize) -> Percentiles {
    let times = Times::of(parts, liars);
    let mut votes = Vec::with_capacity(times.parts.len());
    if times.longer(0, &mut votes)[0].is_none() {
        return Percentiles::default();
    }
    let mut at = |share: f64| {
        // the first bin that no more than the rest exceeds
        let (mut low, mut high) = (0, BINS as u16 - 1);
        while low < high {
            let middle = low.midpoint(high);
            let longer = times.longer(middle, &mut votes)[0].unwrap_or(0.0);
            if longer <= 1.0 - share + 1e-12 { high = middle } else { low = middle + 1 }
        }
        Some(Time::from_us(longest_us(low)))
    };
    Percentiles { p50: at(0.5), p90: at(0.9), p99: at(0.99) }
}

/// What hosts say of segments, and the weights of both sides.
fn segment_votes(parts: &[Part<'_>], liars: usize) -> (Vec<Vote>, [f64; 2]) {
    let parts: Vec<&Part<'_>> = parts.iter().filter(|part| part.segments > 0).collect();
    let mut weights: Vec<f64> = parts.iter().map(|part| part.segments as f64).collect();
    cap(&mut weights, liars);
    let vote = |(part, weight): (&&Part<'_>, &f64)| Vote {
        side: part.side,
        group: part.group,
        weight: *weight,
        share: part.retransmits as f64 / part.segments as f64,
    };
    let votes: Vec<Vote> = parts.iter().zip(&weights).map(vote).collect();
    let mut all = [0.0; 2];
    for vote in &votes {
        all[vote.side] += vote.weight;
    }
    (votes, all)
}

/// Segments that count, and retransmissions among them, of both sides.
fn segments(parts: &[Part<'_>], liars: usize) -> [(u64, u64); 2] {
    let (mut votes, all) = segment_votes(parts, liars);
    let shares = shares(&mut votes, liars);
    [0, 1].map(|side| match shares[side] {
        Some(share) => (all[side] as u64, (share * all[side]).round() as u64),
        None => (0, 0),
    })
}

/// The share of segments that were retransmissions, over all.
pub fn retransmit_rate(parts: &[Part<'_>], liars: usize) -> Option<f64> {
    let [(all, again), _] = segments(parts, liars);
    (all > 0).then(|| (again as f64 / all as f64).min(1.0))
}

/// How many connections count, of all hosts.
pub fn connections(counts: &mut [f64], liars: usize) -> f64 {
    cap(counts, liars);
    counts.iter().sum()
}

/// What the two sides did.
pub fn arms(parts: &[Part<'_>], liars: usize) -> [ArmObservation; 2] {
    let mut arms: [ArmObservation; 2] = Default::default();
    for part in parts.iter().filter(|part| part.times.total() > 0) {
        let arm = &mut arms[part.side];
        (arm.hosts, arm.groups) = (arm.hosts + 1, arm.groups | 1 << part.group);
        arm.without.resize_with(GROUPS, Rest::default);
    }
    count_segments(parts, liars, &mut arms);
    count_times(parts, liars, &mut arms);
    arms
}

fn count_segments(parts: &[Part<'_>], liars: usize, arms: &mut [ArmObservation; 2]) {
    for (arm, (segments, retransmits)) in arms.iter_mut().zip(segments(parts, liars)) {
        (arm.segments, arm.retransmits) = (segments, retransmits);
    }
    let (mut votes, _) = segment_votes(parts, liars);
    let (sides, groups) = sums(counting(&mut votes, liars));
    for (side, arm) in arms.iter_mut().enumerate() {
        let shares = without(sides[side], &groups[side]);
        for ((rest, share), group) in arm.without.iter_mut().zip(shares).zip(&groups[side]) {
            rest.segments = sides[side].weights - group.weights;
            rest.retransmits = share.unwrap_or(0.0) * rest.segments;
        }
    }
}

/// A side's times, or those without a group, from bin to bin.
#[derive(Clone, Copy)]
struct Beyond {
    /// The share that takes longer.
    longer: f64,
    /// How many there are up to here.
    counted: f64,
}

impl Beyond {
    const NOTHING: Beyond = Beyond { longer: 1.0, counted: 0.0 };

    /// How many of `all` are in the next bin, of which this share takes longer. Who is left out differs from bin to bin, and a side may be
    /// left out as a whole: then it is as before.
    fn step(&mut self, longer: Option<f64>, all: f64) -> f64 {
        self.longer = longer.unwrap_or(self.longer).min(self.longer);
        let so_far = all * (1.0 - self.longer);
        so_far - std::mem::replace(&mut self.counted, so_far)
    }
}

fn count_times(parts: &[Part<'_>], liars: usize, arms: &mut [ArmObservation; 2]) {
    let times = Times::of(parts, liars);
    let (mut all, mut of_groups) = ([0.0; 2], [[0.0; GROUPS]; 2]);
    for (part, weight) in times.parts.iter().zip(&times.weights) {
        all[part.side] += weight;
        of_groups[part.side][part.group] += weight;
    }
    let mut used = [false; BINS];
    times.parts.iter().flat_map(|part| part.times.iter()).for_each(|(bin, _)| used[usize::from(bin)] = true);
    // of each host: where it is in its bins, and how many connections are beyond
    let mut places = vec![(0_usize, 0_u64); times.parts.len()];
    places.iter_mut().zip(&times.parts).for_each(|((_, left), part)| *left = part.times.total());
    let mut votes = Vec::with_capacity(times.parts.len());
    let is_known = times.longer(0, &mut votes).map(|share| share.is_some());
    let (mut whole, mut rests) = ([Beyond::NOTHING; 2], [[Beyond::NOTHING; GROUPS]; 2]);
    for bin in (0..BINS as u16).filter(|bin| used[usize::from(*bin)]) {
        votes.clear();
        for (i, (place, left)) in places.iter_mut().enumerate() {
            let part = times.parts[i];
            if let Some(count) = part.times.at(*place, bin) {
                (*place, *left) = (*place + 1, *left - u64::from(count));
            }
            let share = *left as f64 / times.totals[i];
            votes.push(Vote { side: part.side, group: part.group, weight: times.weights[i], share });
        }
        let (sides, groups) = sums(counting(&mut votes, liars));
        let ns = (if bin == 0 { 0 } else { longest_us(bin - 1) * 1000 }, longest_us(bin) * 1000);
        for side in [0, 1].into_iter().filter(|side| is_known[*side]) {
            let before = whole[side].counted.round() as u64;
            whole[side].step(sides[side].share(), all[side]);
            record(&mut arms[side], ns, whole[side].counted.round() as u64 - before);
            let longer = without(sides[side], &groups[side]);
            for (group, rest) in arms[side].without.iter_mut().enumerate() {
                let here = rests[side][group].step(longer[group], all[side] - of_groups[side][group]);
                if here > 0.0 {
                    rest.times.insert(ns.1, (ns.0, here));
                }
            }
        }
    }
}

/// Records so many times spread over a bin: its ends are no values that times have more often than others.
fn record(arm: &mut ArmObservation, (shortest, longest): (u64, u64), count: u64) {
    let steps = count.min(SPREAD);
    for step in 1..=steps {
        let here = count * step / steps - count * (step - 1) / steps;
        let ns = shortest + (longest - shortest) * step / steps;
        arm.fct_ns.record_n(ns.max(1), here).expect("a histogram grows as it must");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bins(times: &[(u32, u32)]) -> Bins {
        let mut bins = Bins::default();
        for (us, count) in times {
            bins.add(*us, *count);
        }
        bins
    }

    fn part(side: usize, times: &Bins, retransmits: u64) -> Part<'_> {
        Part { side, group: 0, times, segments: 1000, retransmits }
    }

    #[test]
    fn without_liars_everything_is_added_up() {
        let (fast, slow) = (bins(&[(1000, 98), (9000, 2)]), bins(&[(2000, 100)]));
        let [treated, control] = arms(&[part(0, &fast, 5), part(1, &slow, 7), part(1, &slow, 9)], 0);
        assert_eq!((treated.segments, treated.retransmits, control.segments, control.retransmits), (1000, 5, 2000, 16));
        assert_eq!((treated.fct_ns.len(), control.fct_ns.len()), (100, 200));
        // 9 ms are between 8.704 and 9.215
        assert!((8704..9216).contains(&(treated.fct_ns.value_at_percentile(99.0) / 1000)));
        assert_eq!(treated.fct_ns.value_at_percentile(98.0) / 10_000, 102);
        let all = percentiles(&[part(0, &fast, 5), part(0, &slow, 7), part(0, &slow, 9)], 0);
        assert_eq!(all.p50, Some(Time::from_us(2047)));
        assert_eq!(retransmit_rate(&[part(0, &fast, 5), part(0, &slow, 15)], 0), Some(0.01));
        assert_eq!((percentiles(&[], 0), retransmit_rate(&[], 0)), (Percentiles::default(), None));
    }

    #[test]
    fn one_of_five_changes_nothing_whatever_it_says() {
        let honest = bins(&[(1000, 900), (5000, 95), (20_000, 5)]);
        let lies = [
            bins(&[(u32::MAX, u32::MAX)]),
            bins(&[(0, u32::MAX)]),
            bins(&[(20_000, 1_000_000)]),
            bins(&[(900, 1)]),
            Bins::default(),
        ];
        for liar in &lies {
            for again in [0, u64::MAX >> 11] {
                for side in [0, 1] {
                    let lie = Part { side, group: 0, times: liar, segments: u64::MAX >> 11, retransmits: again };
                    let others = [0, 0, 1, 1].map(|side| part(side, &honest, 3));
                    let all: Vec<Part<'_>> = others.iter().copied().chain([lie]).collect();
                    for arm in arms(&all, 1) {
                        let at = |p| arm.fct_ns.value_at_percentile(p) / 100_000;
                        assert_eq!((at(50.0), at(90.0), at(99.0)), (10, 10, 51), "{liar:?}");
                        assert_eq!(arm.retransmits * 1000, 3 * arm.segments);
                        assert!(arm.segments <= 3000 && arm.fct_ns.len() <= 3000);
                    }
                }
            }
        }
    }

    #[test]
    fn a_change_that_all_treated_hosts_see_is_seen() {
        let (before, after) = (bins(&[(1000, 990), (8000, 10)]), bins(&[(3000, 990), (24_000, 10)]));
        let parts: Vec<Part<'_>> =
            (0..20).map(|i| if i < 10 { part(0, &after, 30) } else { part(1, &before, 3) }).collect();
        let [treated, control] = arms(&parts, 1);
        assert_eq!(
            (treated.retransmits * 1000 / treated.segments, control.retransmits * 1000 / control.segments),
            (30, 3)
        );
        assert_eq!(
            (
                treated.fct_ns.value_at_percentile(50.0) / 1_000_000,
                control.fct_ns.value_at_percentile(50.0) / 1_000_000
            ),
            (3, 1)
        );
    }

    #[test]
    fn of_too_few_nothing_is_known() {
        let times = bins(&[(1000, 900)]);
        let [treated, control] = arms(&[part(0, &times, 1), part(1, &times, 1)], 1);
        assert_eq!((treated.fct_ns.len(), treated.segments, control.fct_ns.len(), control.segments), (0, 0, 0, 0));
        assert_eq!(percentiles(&[part(0, &times, 1), part(0, &times, 1)], 1), Percentiles::default());
    }
}
