//! Verdicts over random periods: how often they are wrong, how soon they are right.

use crate::common::{GOOD, Random, parse};
use policy::{
    ArmObservation, FLOWS_MIN, History, Host, Judgement, NetworkView, Oracle, OracleKey, PeriodObservation, Policy,
    Progress, Verdict, decide,
};
use units::Time;

/// Periods that are looked at, each.
const PERIODS: usize = 60;

impl Random {
    /// A completion time of mean size 10 ms with a tail as heavy as those of data centres: Pareto of shape 1.2.
    fn fct_ns(&mut self) -> u64 {
        (2e6 / libm::pow(1.0 - self.unit(), 1.0 / 1.2)) as u64
    }

    /// A side that finishes `FLOWS_MIN` flows, each `times` as long, and sends one segment in a hundred again.
    fn arm(&mut self, times: f64) -> ArmObservation {
        let mut arm = ArmObservation { segments: 5000, ..ArmObservation::default() };
        for _ in 0..FLOWS_MIN {
            arm.fct_ns.record((self.fct_ns() as f64 * times) as u64).unwrap();
        }
        arm.retransmits = (0..arm.segments).filter(|_| self.unit() < 0.01).count() as u64;
        arm
    }

    /// A period in which the network makes everything up to five times slower, and the policy `times`.
    fn period(&mut self, times: f64) -> PeriodObservation {
        let epoch = libm::pow(5.0, self.unit());
        PeriodObservation { treated: self.arm(epoch * times), control: self.arm(epoch), acting: true }
    }
}

fn policy() -> Policy {
    parse(GOOD).unwrap()
}

/// The z test that a single look would be entitled to, at every look.
#[derive(Default)]
struct Naive {
    x: Vec<f64>,
    was_sure: bool,
}

impl Naive {
    fn look(&mut self, period: &PeriodObservation) {
        let p99 = |arm: &ArmObservation| (arm.fct_ns.value_at_percentile(99.0) as f64).ln();
        self.x.push(p99(&period.treated) - p99(&period.control));
        let n = self.x.len() as f64;
        let mean = self.x.iter().sum::<f64>() / n;
        let deviation = (self.x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
        self.was_sure |= n >= 5.0 && mean.abs() > 1.96 * deviation / n.sqrt();
    }
}

#[test]
fn looking_after_every_period_is_wrong_in_at_most_one_of_twenty_runs() {
    const RUNS: u64 = 300;
    // median, 90th, 99th percentile, drops, and the test that may be looked at once
    let (mut wrong, mut naive_wrong, mut rolled_back) = ([0u64; 4], 0, 0);
    for seed in 0..RUNS {
        let mut random = Random(seed << 32);
        let (mut verdict, mut naive, mut ever) = (Verdict::new(&policy()), Naive::default(), [false; 4]);
        for _ in 0..PERIODS {
            let period = random.period(1.0);
            verdict.observe(&period);
            naive.look(&period);
            for (ever, quantity) in ever.iter_mut().zip(&verdict.report().quantities) {
                *ever |= quantity.judgement != Judgement::Unclear;
            }
        }
        wrong.iter_mut().zip(ever).for_each(|(wrong, ever)| *wrong += u64::from(ever));
        naive_wrong += u64::from(naive.was_sure);
        rolled_back += u64::from(verdict.report().roll_back);
    }
    println!(
        "of {RUNS} runs: p50, p90, p99, drops {wrong:?} wrong once; single looks {naive_wrong}; rolled back {rolled_back}"
    );
    assert!(wrong.iter().all(|wrong| *wrong * 20 <= RUNS), "{wrong:?} of {RUNS}");
    // the same data: what it protects from is there
    assert!(naive_wrong * 20 > 3 * RUNS, "{naive_wrong} of {RUNS}");
    assert!(rolled_back * 20 <= RUNS);
}

#[test]
fn a_policy_that_hurts_is_rolled_back_and_one_that_helps_is_reported() {
    let mut random = Random(7);
    let (mut hurts, mut helps) = (Verdict::new(&policy()), Verdict::new(&policy()));
    let mut rolled_back_after = None;
    for n in 1..=PERIODS {
        hurts.observe(&random.period(2.0));
        helps.observe(&random.period(0.5));
        if hurts.report().roll_back {
            rolled_back_after.get_or_insert(n);
        }
    }
    assert!(rolled_back_after.is_some_and(|n| n < 25), "{rolled_back_after:?}");
    let (hurts, helps) = (hurts.report(), helps.report());
    assert_eq!((hurts.judgement, hurts.roll_back), (Judgement::Hurting, true));
    assert!(hurts.reason.starts_with("rolled back: more than 5 % worse; p99 FCT +"), "{}", hurts.reason);
    assert_eq!((helps.judgement, helps.roll_back), (Judgement::Helping, false));
    let (low, high) = helps.quantities[2].interval.unwrap();
    assert!(low < -0.5 && -0.5 < high && high < 0.0, "{low} {high}");
    // more time does not change who sends how much again
    assert_eq!(helps.quantities[3].judgement, Judgement::Unclear);
}

#[test]
fn a_loss_within_the_bound_is_reported_and_not_rolled_back() {
    let text =
        GOOD.replace("minimize = \"network.fct_p99\"", "minimize = \"network.fct_p50\"\nworse_at_most = \"30 %\"");
    let mut verdict = Verdict::new(&parse(&text).unwrap());
    let mut random = Random(3);
    (0..PERIODS).for_each(|_| verdict.observe(&random.period(1.2)));
    let report = verdict.report();
    assert_eq!((report.judgement, report.roll_back), (Judgement::Hurting, false), "{}", report.reason);
}

#[test]
fn the_interval_is_that_of_the_mixture_t_test() {
    // Five equal periods with no noise but one: differences of ln 2 four times and 0 once. m = 0.8 ln 2 = 0.5545; the squared
    // deviations are 5·0.8·0.2·(ln 2)² = 0.3844; r = 6, k = (20·6^½)^0.4 = 4.743; half the interval's width is
    // (0.3844·3.743/(5·(1 - 4.743/6)))^½ = 1.172. As shares: e^(0.5545±1.172) - 1 = -0.461 and 4.618.
    let arm = |fct_ns: u64| {
        let mut arm = ArmObservation { segments: 1000, ..ArmObservation::default() };
        arm.fct_ns.record_n(fct_ns, FLOWS_MIN).unwrap();
        arm
    };
    let mut verdict = Verdict::new(&policy());
    for treated in [2048, 2048, 1024, 2048, 2048] {
        assert_eq!(verdict.report().quantities[2].interval, None);
        verdict.observe(&PeriodObservation { treated: arm(treated), control: arm(1024), acting: true });
    }
    let p99 = &verdict.report().quantities[2];
    let (low, high) = p99.interval.unwrap();
    assert!((low - -0.461).abs() < 0.002 && (high - 4.618).abs() < 0.01, "{low} {high}");
    assert!((p99.change.unwrap() - 0.741).abs() < 0.002, "{:?}", p99.change);
}

#[test]
fn short_periods_are_put_together_and_blocks_of_a_switchback_too() {
    let mut random = Random(1);
    let mut half = random.period(1.0);
    for arm in [&mut half.treated, &mut half.control] {
        arm.fct_ns.reset();
        arm.fct_ns.record_n(1000, FLOWS_MIN / 2).unwrap();
    }
    let mut verdict = Verdict::new(&policy());
    let pairs = |verdict: &Verdict| verdict.report().quantities[0].pairs;
    verdict.observe(&half);
    assert_eq!(pairs(&verdict), 0);
    verdict.observe(&half);
    assert_eq!(pairs(&verdict), 1);

    let text = GOOD.replace("fraction = 0.5", "design = \"switchback\"\nperiods = 2");
    let mut verdict = Verdict::new(&parse(&text).unwrap());
    for (periods, is_treated) in
        [(1, true), (1, true), (0, false), (0, false), (1, true), (1, true), (1, false), (1, false)]
    {
        let all = random.period(1.0).control;
        let none = ArmObservation::default();
        let (treated, control) = if is_treated { (all, none) } else { (none, all) };
        // a block without traffic is waited for
        let quiet = PeriodObservation::default();
        let period = PeriodObservation { treated, control, acting: is_treated };
        verdict.observe(if periods == 0 { &quiet } else { &period });
    }
    assert_eq!(pairs(&verdict), 1);
}

#[test]
fn the_control_is_compared_with_its_own_past() {
    let mut random = Random(5);
    let mut verdict = Verdict::new(&policy());
    let mut steady =
        |times: f64, acting: bool| PeriodObservation { treated: random.arm(times), control: random.arm(times), acting };
    (0..10).for_each(|_| verdict.observe(&steady(1.0, false)));
    assert_eq!(verdict.report().quantities[0].control_against_past, None);
    (0..10).for_each(|_| verdict.observe(&steady(3.0, true)));
    let p50 = &verdict.report().quantities[0];
    // treated hosts slow everybody down: between the two groups there is no difference to see
    assert_eq!((p50.judgement, p50.pairs), (Judgement::Unclear, 10));
    let change = p50.control_against_past.unwrap();
    assert!((1.7..2.3).contains(&change), "{change}");
    let reason = verdict.report().reason;
    assert!(
        reason.contains("; the control group changed by +") && reason.ends_with(" % since no host was treated"),
        "{reason}"
    );
}

#[test]
fn an_objective_that_two_sides_cannot_differ_in_is_not_judged_by() {
    for objective in ["minimize = \"network.max_link_utilization\"", "maximize = \"network.fct_p99\""] {
        let policy = parse(&GOOD.replace("minimize = \"network.fct_p99\"", objective)).unwrap();
        let mut verdict = Verdict::new(&policy);
        let mut random = Random(9);
        (0..PERIODS).for_each(|_| verdict.observe(&random.period(3.0)));
        let report = verdict.report();
        assert_eq!((report.judgement, report.roll_back), (Judgement::NotJudged, false));
        assert_eq!(report.quantities[2].judgement, Judgement::Hurting);
        assert!(report.reason.contains("cannot be compared by") || report.reason.contains("can be compared by"));
    }
}

#[test]
fn a_rollout_that_is_over_sets_nothing_and_says_why() {
    let policy = policy();
    let view = NetworkView::from_json(include_str!("../../../../policies/example-view.json")).unwrap();
    let mut history = History::default();
    assert!(!decide(&policy, &view, &mut history).cues.is_empty());
    history.roll_back("rolled back: it hurts".to_string());
    let decision = decide(&policy, &view, &mut history);
    assert!(decision.cues.is_empty());
    assert_eq!(decision.rules[0].withheld.as_deref(), Some("rolled back: it hurts"));
}

#[test]
fn a_restarted_oracle_continues_the_rollout() {
    let text = GOOD.replace("fraction = 0.5", "stages = [{ fraction = 0.1 }, { after = \"10 min\", fraction = 1 }]");
    let key = || OracleKey::from_secret([1; 32]);
    let hosts = |at: u64| {
        let host = |i: u64| Host { name: format!("h{i}"), ..Host::default() };
        NetworkView { at: Time::from_secs(at), hosts: (0..10).map(host).collect(), ..NetworkView::default() }
    };
    let treated = |oracle: &mut Oracle, at| oracle.turn(&hosts(at), Default::default()).0.treated;
    let mut first = Oracle::new(parse(&text).unwrap(), key(), History::default());
    assert_eq!((treated(&mut first, 60), treated(&mut first, 600)), (1, 1));
    assert_eq!(first.progress().lasted, Time::ZERO);
    assert_eq!(treated(&mut first, 660), 10, "ten minutes after the first decision");
    // nothing was sent, so nobody has a side to keep
    let all = Progress { lasted: Time::from_secs(600), ..Progress::default() };
    assert_eq!(first.progress(), all);
    let history = History::after(first.epoch()).resume(first.progress());
    let mut second = Oracle::new(parse(&text).unwrap(), key(), history);
    assert_eq!((treated(&mut second, 60), second.epoch()), (10, 4), "the last stage at once");
    let mut new = Oracle::new(parse(&text).unwrap(), key(), History::after(4));
    assert_eq!(treated(&mut new, 60), 1, "which is not so by itself");
}

#[test]
fn a_rollout_that_an_earlier_oracle_ended_stays_so() {
    let view = NetworkView::from_json(include_str!("../../../../policies/example-view.json")).unwrap();
    let ended = Some("rolled back: it hurts".to_string());
    let history = History::after(7).resume(Progress { ended: ended.clone(), ..Progress::default() });
    let mut oracle = Oracle::new(policy(), OracleKey::from_secret([1; 32]), history);
    let (decision, messages) = oracle.turn(&view, Default::default());
    assert!(messages.is_empty() && decision.rules[0].withheld == ended, "{decision:?}");
    let verdict = oracle.verdict();
    assert_eq!((verdict.judgement, verdict.roll_back, Some(verdict.reason)), (Judgement::Hurting, true, ended.clone()));
    assert_eq!(oracle.progress().ended, ended);
}
