//! What all hosts' connections did together, where one host in fifty may say anything.
//!
//! Of every share (of connections that took longer than some time, of segments that were retransmissions) the hosts that add the most to
//! it, and those that take the most from it, are left out, as many as may lie. What a host counts is at most what the honest host with most
//! counts. So what liars say is left out, or lies within what honest hosts say.

use super::bins::{BINS, Bins, longest_us};
use policy::{ArmObservation, Percentiles};
use units::Time;

/// A host's part.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// On which side it counts: 0 or 1.
    pub side: usize,
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
    weight: f64,
    share: f64,
}

/// Of each side its share. `None`: nobody is left who says something of it.
fn shares(votes: &mut [Vote], liars: usize) -> [Option<f64>; 2] {
    let (sum, weight) = votes.iter().fold((0.0, 0.0), |(s, w), vote| (s + vote.weight * vote.share, w + vote.weight));
    if votes.len() <= 2 * liars || weight <= 0.0 {
        return [None; 2];
    }
    let pooled = sum / weight;
    let adds = |vote: &Vote| vote.weight * (vote.share - pooled);
    let mut kept = &mut votes[..];
    if liars > 0 {
        let by_what_it_adds = |one: &Vote, other: &Vote| adds(one).total_cmp(&adds(other));
        let last = kept.len() - liars;
        kept.select_nth_unstable_by(last, by_what_it_adds);
        kept = &mut kept[..last];
        kept.select_nth_unstable_by(liars - 1, by_what_it_adds);
        kept = &mut kept[liars..];
    }
    let mut sums = [(0.0, 0.0); 2];
    for vote in kept.iter() {
        let (share, weight) = &mut sums[vote.side];
        *share += vote.weight * vote.share;
        *weight += vote.weight;
    }
    sums.map(|(share, weight)| (weight > 0.0).then(|| share / weight))
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
            votes.push(Vote { side: part.side, weight: *weight, share: longer as f64 / total });
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

/// Segments that count, and retransmissions among them, of both sides.
fn segments(parts: &[Part<'_>], liars: usize) -> [(u64, u64); 2] {
    let parts: Vec<&Part<'_>> = parts.iter().filter(|part| part.segments > 0).collect();
    let mut weights: Vec<f64> = parts.iter().map(|part| part.segments as f64).collect();
    cap(&mut weights, liars);
    let vote = |(part, weight): (&&Part<'_>, &f64)| Vote {
        side: part.side,
        weight: *weight,
        share: part.retransmits as f64 / part.segments as f64,
    };
    let mut votes: Vec<Vote> = parts.iter().zip(&weights).map(vote).collect();
    let mut all = [0.0; 2];
    for vote in &votes {
        all[vote.side] += vote.weight;
    }
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
    for (arm, (segments, retransmits)) in arms.iter_mut().zip(segments(parts, liars)) {
        (arm.segments, arm.retransmits) = (segments, retransmits);
    }
    let times = Times::of(parts, liars);
    let mut all = [0.0; 2];
    times.parts.iter().zip(&times.weights).for_each(|(part, weight)| all[part.side] += weight);
    let mut used = [false; BINS];
    times.parts.iter().flat_map(|part| part.times.iter()).for_each(|(bin, _)| used[usize::from(bin)] = true);
    // of each host: where it is in its bins, and how many connections are beyond
    let mut places = vec![(0_usize, 0_u64); times.parts.len()];
    places.iter_mut().zip(&times.parts).for_each(|((_, left), part)| *left = part.times.total());
    let mut votes = Vec::with_capacity(times.parts.len());
    let is_known = times.longer(0, &mut votes).map(|share| share.is_some());
    let (mut longer, mut counted) = ([1.0_f64; 2], [0_u64; 2]);
    for bin in (0..BINS as u16).filter(|bin| used[usize::from(*bin)]) {
        votes.clear();
        for (i, (place, left)) in places.iter_mut().enumerate() {
            let part = times.parts[i];
            if let Some(count) = part.times.at(*place, bin) {
                (*place, *left) = (*place + 1, *left - u64::from(count));
            }
            let share = *left as f64 / times.totals[i];
            votes.push(Vote { side: part.side, weight: times.weights[i], share });
        }
        let now = shares(&mut votes, liars);
        for side in [0, 1].into_iter().filter(|side| is_known[*side]) {
            // who is left out differs from bin to bin, and a side may be left out as a whole: then it is as before
            longer[side] = now[side].unwrap_or(longer[side]).min(longer[side]);
            let so_far = (all[side] * (1.0 - longer[side])).round() as u64;
            let here = so_far - std::mem::replace(&mut counted[side], so_far);
            // none would still be the largest
            if here > 0 {
                let recorded = arms[side].fct_ns.record_n(longest_us(bin) * 1000, here);
                recorded.expect("a histogram grows as it must");
            }
        }
    }
    arms
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
        Part { side, times, segments: 1000, retransmits }
    }

    #[test]
    fn without_liars_everything_is_added_up() {
        let (fast, slow) = (bins(&[(1000, 98), (9000, 2)]), bins(&[(2000, 100)]));
        let [treated, control] = arms(&[part(0, &fast, 5), part(1, &slow, 7), part(1, &slow, 9)], 0);
        assert_eq!((treated.segments, treated.retransmits, control.segments, control.retransmits), (1000, 5, 2000, 16));
        assert_eq!((treated.fct_ns.len(), control.fct_ns.len()), (100, 200));
        // 9 ms are between 8.704 and 9.215
        assert_eq!(treated.fct_ns.value_at_percentile(99.0) / 1_000_000, 9);
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
                    let lie = Part { side, times: liar, segments: u64::MAX >> 11, retransmits: again };
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
