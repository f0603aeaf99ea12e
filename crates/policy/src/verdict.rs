//! Whether a policy helps: treated against control, looked at after every period, for as long as it runs.
//!
//! Whoever looks at a comparison again and again and stops when it looks significant is wrong far more often than the 5 % of
//! a single look. So what is computed here is a *confidence sequence*: intervals of which all, at every look together,
//! contain the true value with a probability of 95 %.
//!
//! A pair of periods gives one difference `x`, the logarithm of treated over control: of the median, the 90th and the 99th
//! percentile of completion times, and of the share of segments retransmitted. What happens to the whole network, such as a
//! congestion episode, happens to both sides and cancels out. Of `n` differences with mean `m` and squared deviations `a`, the effect `u`
//! is tested by the mixture t-test (Lai, "On confidence sequences", Ann. Stat. 1976; Wang and Ramdas, "Anytime-valid t-tests and
//! confidence sequences for Gaussian means with unknown variance", 2024, theorem 4.9): effects of `u + d` against the effect `u`, `d`
//! in units of the unknown deviation being normal with variance `1/C2`. The likelihood ratio
//!
//! ```text
//! (C2 / (n + C2))^½ · ((a + n (m - u)²) / (a + n (m - u)² C2 / (n + C2)))^(n/2)
//! ```
//!
//! is a martingale if `u` is the effect, whatever the deviation, so by Ville's inequality it reaches 20 in at most 5 % of all
//! endless series. The interval holds every `u` for which it is below 20. A sequential test of known variance would need a
//! guess; the asymptotic sequences that need none are not to be trusted for the first dozens of periods, which is where a rollout
//! that hurts must be caught. The price of exactness is that differences are taken to be normal: the logarithm and the percentile
//! of many flows bring them near it, and `tests/policy/judging.rs` measures the errors of heavy tails.
//!
//! Hosts differ for other reasons too, such as their place or their load, and those that are treated stay the same. So where it is known what
//! hosts did, the interval is wider by what hosts of one side differ by (`spread.rs`); each of both errors has half of the 5 %. Of one
//! host a side that is not known. It cannot see what treated hosts do to the control, with which they share links. For that the control's
//! change against its own past is shown.

use crate::model::{Design, Policy};
use crate::spread::{GROUPS, Rest, Spread, apart};
use hdrhistogram::Histogram;
use serde::Serialize;

/// Probability of an error, over all looks together.
const ALPHA: f64 = 0.05;
/// Inverse variance of effects, in squared deviations, that the test is best for: effects of about one deviation.
const C2: f64 = 1.0;
/// Flows that each side must have finished before percentiles are compared; shorter periods are put together. With fewer, the
/// 99th percentile is the largest or the one after.
pub const FLOWS_MIN: u64 = 200;

/// What one side did in a period.
#[derive(Debug, Clone)]
pub struct ArmObservation {
    /// Completion times of the flows that ended, in nanoseconds.
    pub fct_ns: Histogram<u64>,
    /// Data segments sent, retransmissions included.
    pub segments: u64,
    /// Of these, retransmissions.
    pub retransmits: u64,
    /// The same without each group of its hosts; empty where hosts are not known.
    pub without: Vec<Rest>,
    /// Bit `i`: there are hosts in group `i`.
    pub groups: u8,
    /// How many hosts there are.
    pub hosts: u32,
}

impl Default for ArmObservation {
    fn default() -> ArmObservation {
        let fct_ns = Histogram::new(3).expect("three digits are allowed");
        ArmObservation { fct_ns, segments: 0, retransmits: 0, without: Vec::new(), groups: 0, hosts: 0 }
    }
}

impl ArmObservation {
    /// Whether nothing was sent and nothing ended.
    fn is_empty(&self) -> bool {
        self.segments == 0 && self.fct_ns.is_empty()
    }

    /// Logarithms of this over `control`, in the order of [`VerdictReport::quantities`]; `None` where a side has too little.
    pub fn against(&self, control: &ArmObservation) -> [Option<f64>; QUANTITIES.len()] {
        QUANTITIES.each_ref().map(|quantity| quantity.difference(self, control))
    }

    /// Adds segments that were sent, and how many of them were retransmissions.
    pub fn add_segments(&mut self, sent: u64, retransmits: u64) {
        self.segments += sent;
        self.retransmits += retransmits;
    }

    fn add(&mut self, other: &ArmObservation) {
        self.fct_ns.add(&other.fct_ns).expect("a histogram grows as it must");
        self.segments = self.segments.saturating_add(other.segments);
        self.retransmits = self.retransmits.saturating_add(other.retransmits);
        self.without.resize(self.without.len().max(other.without.len()), Rest::default());
        self.without.iter_mut().zip(&other.without).for_each(|(rest, other)| rest.add(other));
        self.groups |= other.groups;
        self.hosts = self.hosts.max(other.hosts);
    }
}

/// What a period showed.
#[derive(Debug, Clone, Default)]
pub struct PeriodObservation {
    /// Of the treated hosts. In a switchback: of all hosts in a period in which they are treated, else empty.
    pub treated: ArmObservation,
    /// Of the others. In a switchback: of all hosts in a period in which they are not treated, else empty.
    pub control: ArmObservation,
    /// Whether CUEs were in force for treated hosts.
    pub acting: bool,
}

/// The comparison of a policy's treated hosts with its control group so far.
#[derive(Debug, Clone)]
pub struct Verdict {
    objective: Option<usize>,
    /// Why there is nothing to judge by.
    without: &'static str,
    /// A loss beyond which it is rolled back, as a logarithm.
    bound: f64,
    /// Periods in a block of a switchback; `None`: both sides are there in every period.
    block: Option<u32>,
    treated: Side,
    control: Side,
    tracks: [Track; QUANTITIES.len()],
    rolled_back: bool,
}

/// What is not compared yet.
#[derive(Debug, Clone, Default)]
struct Side {
    arm: ArmObservation,
    periods: u32,
}

impl Side {
    fn add(&mut self, arm: &ArmObservation) {
        self.periods += u32::from(!arm.is_empty());
        self.arm.add(arm);
    }

    fn is_ready(&self, block: Option<u32>) -> bool {
        self.periods >= block.unwrap_or(1) && self.arm.fct_ns.len() >= FLOWS_MIN
    }
}

/// What is known of one quantity.
#[derive(Debug, Clone, Copy, Default)]
struct Track {
    /// Logarithms of treated over control.
    difference: Sequence,
    /// What hosts of the treated side and of the control differ by.
    spreads: [Spread; 2],
    /// Logarithm of the control while CUEs were in force for the others.
    control: Sequence,
    /// The same while nothing was.
    past: Sequence,
}

/// Something that is compared; less of it is better.
struct Quantity {
    name: &'static str,
    /// The network's variable of which it is the part of a side.
    variable: &'static str,
    of: Of,
}

enum Of {
    Percentile(f64),
    Retransmits,
}

const QUANTITIES: [Quantity; 4] = [
    Quantity { name: "p50 FCT", variable: "network.fct_p50", of: Of::Percentile(50.0) },
    Quantity { name: "p90 FCT", variable: "network.fct_p90", of: Of::Percentile(90.0) },
    Quantity { name: "p99 FCT", variable: "network.fct_p99", of: Of::Percentile(99.0) },
    Quantity { name: "drops", variable: "network.drop_rate", of: Of::Retransmits },
];

/// What a comparison of one host with one other cannot tell.
const OF_TWO_HOSTS: &str = "one host a side: what else makes them differ counts as the policy's";

/// The 99th percentile of completion times, for policies that say nothing else that networks can be compared by.
const INSTEAD: usize = 2;

/// A judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Treated hosts have less of it than the control.
    Helping,
    /// They have more of it.
    Hurting,
    /// The interval holds no difference, or is not there yet.
    Unclear,
    /// There is no objective by which two sides can be compared.
    NotJudged,
}

impl Judgement {
    /// As in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Judgement::Helping => "helping",
            Judgement::Hurting => "hurting",
            Judgement::Unclear => "unclear",
            Judgement::NotJudged => "none",
        }
    }
}

/// A verdict so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictReport {
    /// By the policy's objective.
    pub judgement: Judgement,
    /// Whether the rollout is over. Once true it stays so.
    pub roll_back: bool,
    /// In words.
    pub reason: String,
    /// Median, 90th and 99th percentile of completion times, and drops.
    pub quantities: Vec<QuantityReport>,
}

/// One quantity of treated hosts against the control.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuantityReport {
    /// What.
    pub name: &'static str,
    /// By itself, whatever the objective is.
    pub judgement: Judgement,
    /// Pairs of periods that were compared.
    pub pairs: u64,
    /// How much larger it is with treated hosts, as a share of the control's: -0.5 is half. `None` before the first pair.
    pub change: Option<f64>,
    /// The interval around it that holds, at every look together, with 95 %; `None` while it is unbounded.
    pub interval: Option<(f64, f64)>,
    /// How much larger the control group's is while others are treated than it was before; `None` without either.
    pub control_against_past: Option<f64>,
}

impl Verdict {
    /// A verdict on a policy of which nothing has been seen.
    pub fn new(policy: &Policy) -> Verdict {
        let (mut objective, mut without, mut bound) = (None, "the policy has no objective", f64::INFINITY);
        if let Some(of) = &policy.objective {
            without = "treated hosts and control group cannot be compared by this objective";
            objective = QUANTITIES.iter().position(|quantity| quantity.variable == of.of.text() && of.minimize);
            bound = libm::log(1.0 + of.worse_at_most);
        }
        let block = match policy.rollout.design {
            Design::Split => None,
            Design::Switchback { periods } => Some(periods),
        };
        let (treated, control) = (Side::default(), Side::default());
        let tracks = Default::default();
        Verdict { objective, without, bound, block, treated, control, tracks, rolled_back: false }
    }

    /// A verdict on pairs of networks, one with the policy and one without, whatever its rollout is: nothing is rolled back. By
    /// [`INSTEAD`] if the policy's objective is not among what is compared.
    pub fn of_pairs(policy: &Policy) -> Verdict {
        let verdict = Verdict::new(policy);
        Verdict { block: None, bound: f64::INFINITY, objective: verdict.objective.or(Some(INSTEAD)), ..verdict }
    }

    /// What judges: its place among [`VerdictReport::quantities`].
    pub fn judged_by(&self) -> Option<usize> {
        self.objective
    }

    /// Names of what is compared and the network's variables of which it is a counterpart, in the order of
    /// [`VerdictReport::quantities`].
    pub fn quantities() -> [(&'static str, &'static str); QUANTITIES.len()] {
        QUANTITIES.each_ref().map(|quantity| (quantity.name, quantity.variable))
    }

    /// Takes what a period showed.
    pub fn observe(&mut self, period: &PeriodObservation) {
        if !period.acting {
            for (track, quantity) in self.tracks.iter_mut().zip(&QUANTITIES) {
                quantity.level(&period.control).into_iter().for_each(|level| track.past.add(level));
            }
        }
        // The blocks of a switchback are compared as they were drawn, whatever the rules made of them: the periods in which
        // a rule is off are the busy ones.
        if self.block.is_none() && !period.acting {
            return;
        }
        self.treated.add(&period.treated);
        self.control.add(&period.control);
        if self.treated.is_ready(self.block) && self.control.is_ready(self.block) {
            self.compare();
        }
    }

    /// Makes one pair of what has gathered on both sides.
    fn compare(&mut self) {
        let (treated, control) = (std::mem::take(&mut self.treated).arm, std::mem::take(&mut self.control).arm);
        for (track, quantity) in self.tracks.iter_mut().zip(&QUANTITIES) {
            quantity.difference(&treated, &control).into_iter().for_each(|difference| track.difference.add(difference));
            quantity.level(&control).into_iter().for_each(|level| track.control.add(level));
            // the hosts of a switchback are the same on both sides
            if self.block.is_none() {
                for (spread, arm) in track.spreads.iter_mut().zip([&treated, &control]) {
                    quantity.without(arm).into_iter().for_each(|levels| spread.add(&levels, arm.groups, arm.hosts));
                }
            }
        }
        let interval = self.objective.and_then(|objective| self.tracks[objective].interval());
        self.rolled_back |= interval.is_some_and(|(low, _)| low > self.bound);
    }

    /// Whether there is one host on each side.
    fn is_of_two_hosts(&self) -> bool {
        self.objective.is_some_and(|objective| self.tracks[objective].spreads.iter().all(Spread::is_of_one))
    }

    /// The verdict so far.
    pub fn report(&self) -> VerdictReport {
        let quantities: Vec<QuantityReport> =
            self.tracks.iter().zip(&QUANTITIES).map(|(track, quantity)| track.report(quantity.name)).collect();
        let objective = self.objective.map(|objective| &quantities[objective]);
        let reason = match objective {
            None => self.without.to_string(),
            Some(of) if self.is_of_two_hosts() => format!("{}; {OF_TWO_HOSTS}", of.words()),
            Some(of) => of.words(),
        };
        let judgement = match objective {
            Some(_) if self.rolled_back => Judgement::Hurting,
            Some(of) => of.judgement,
            None => Judgement::NotJudged,
        };
        let reason = if self.rolled_back {
            let worse = (libm::exp(self.bound) - 1.0) * 100.0;
            format!("rolled back: more than {worse:.0} % worse; {reason}")
        } else {
            reason
        };
        VerdictReport { judgement, roll_back: self.rolled_back, reason, quantities }
    }
}

impl VerdictReport {
    /// Whether there was enough for an interval around any quantity: without one, unclear does not mean alike.
    pub fn is_bounded(&self) -> bool {
        self.quantities.iter().any(|quantity| quantity.interval.is_some())
    }
}

impl Quantity {
    /// Logarithm of treated over control; `None` if a side has too little.
    fn difference(&self, treated: &ArmObservation, control: &ArmObservation) -> Option<f64> {
        match self.of {
            Of::Percentile(_) => Some(self.level(treated)? - self.level(control)?),
            Of::Retransmits => {
                let all = treated.segments as f64 + control.segments as f64;
                // One retransmission is added, shared as the segments are: so none on both sides is no difference.
                let share = |arm: &ArmObservation| log_share(arm, arm.segments as f64 / all);
                Some(share(treated)? - share(control)?)
            }
        }
    }

    /// Its logarithm on one side without each group of hosts.
    fn without(&self, arm: &ArmObservation) -> Option<[f64; GROUPS]> {
        let mut levels = [0.0; GROUPS];
        for (level, rest) in levels.iter_mut().zip(&arm.without) {
            *level = match self.of {
                Of::Percentile(p) => libm::log(rest.percentile(p)?.max(1.0)),
                Of::Retransmits if rest.segments < 1.0 => return None,
                Of::Retransmits => libm::log((rest.retransmits + 0.5) / rest.segments),
            };
        }
        (!arm.without.is_empty()).then_some(levels)
    }

    /// Its logarithm on one side.
    fn level(&self, arm: &ArmObservation) -> Option<f64> {
        match self.of {
            Of::Percentile(p) if arm.fct_ns.len() >= FLOWS_MIN => {
                Some(libm::log(arm.fct_ns.value_at_percentile(p).max(1) as f64))
            }
            Of::Percentile(_) => None,
            Of::Retransmits => log_share(arm, 0.5),
        }
    }
}

/// Logarithm of the share retransmitted, with `more` retransmissions, since none has no logarithm.
fn log_share(arm: &ArmObservation, more: f64) -> Option<f64> {
    (arm.segments > 0).then(|| libm::log((arm.retransmits as f64 + more) / arm.segments as f64))
}

impl Track {
    /// What the difference is not ruled out to be: [`Sequence::interval`], and what hosts differ by.
    fn interval(&self) -> Option<(f64, f64)> {
        let [treated, control] = &self.spreads;
        match apart([treated, control], 1.0 - ALPHA / 2.0) {
            None => self.difference.interval(ALPHA),
            Some(half) => self.difference.interval(ALPHA / 2.0).map(|(low, high)| (low - half, high + half)),
        }
    }

    fn report(&self, name: &'static str) -> QuantityReport {
        let share = |log: f64| libm::exp(log) - 1.0;
        let interval = self.interval();
        let judgement = match interval {
            Some((_, high)) if high < 0.0 => Judgement::Helping,
            Some((low, _)) if low > 0.0 => Judgement::Hurting,
            _ => Judgement::Unclear,
        };
        let has_past = self.past.n > 0.0 && self.control.n > 0.0;
        QuantityReport {
            name,
            judgement,
            pairs: self.difference.n as u64,
            change: (self.difference.n > 0.0).then(|| share(self.difference.mean)),
            interval: interval.map(|(low, high)| (share(low), share(high))),
            control_against_past: has_past.then(|| share(self.control.mean - self.past.mean)),
        }
    }
}

impl QuantityReport {
    /// `p99 FCT -32 % (-45 % to -15 %) over 12 pairs; the control group changed by +3 % since no host was treated`.
    pub fn words(&self) -> String {
        let percent = |share: f64| format!("{:+.1} %", share * 100.0);
        let Some(change) = self.change else { return format!("{}: nothing to compare yet", self.name) };
        let interval = match self.interval {
            Some((low, high)) => format!("{} to {}", percent(low), percent(high)),
            None => "no bound yet".to_string(),
        };
        let plural = if self.pairs == 1 { "" } else { "s" };
        let past = self
            .control_against_past
            .map(|change| format!("; the control group changed by {} since no host was treated", percent(change)));
        let past = past.unwrap_or_default();
        format!("{} {} ({interval}) over {} pair{plural}{past}", self.name, percent(change), self.pairs)
    }
}

/// Mean and squared deviations of numbers that come one by one (Welford).
#[derive(Debug, Clone, Copy, Default)]
struct Sequence {
    n: f64,
    mean: f64,
    squares: f64,
}

impl Sequence {
    fn add(&mut self, value: f64) {
        self.n += 1.0;
        let off = value - self.mean;
        self.mean += off / self.n;
        self.squares += off * (value - self.mean);
    }

    /// The means that the mixture t-test has not ruled out. With `r = (C2 + n)/C2`, what is at the head of this file reaches
    /// `1/alpha` where `(a + n d²)/(a + n d²/r) = k = (r^½/alpha)^(2/n)`, hence at `d² = a (k - 1) / (n (1 - k/r))`: nowhere while
    /// `k >= r`, which is so up to four values (five for half of [`ALPHA`]).
    fn interval(&self, alpha: f64) -> Option<(f64, f64)> {
        let r = (C2 + self.n) / C2;
        let k = libm::pow(libm::sqrt(r) / alpha, 2.0 / self.n);
        if self.n < 2.0 || k >= r {
            return None;
        }
        let half = libm::sqrt(self.squares * (k - 1.0) / (self.n * (1.0 - k / r)));
        Some((self.mean - half, self.mean + half))
    }
}
