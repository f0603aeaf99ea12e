//! The judgement: the best numbers, and their neighbours, on runs that the search has not seen.
//!
//! A pair is a seed. Runs of one seed under several values of the sweep draw from the same random streams, so they are no independent
//! pairs: their mean counts once. It is looked at once, so the interval is Student's and not the confidence sequence of a rollout.

use super::bench::{Bench, Case, Changes, Part, QUANTITIES, compared};
use super::{Answer, Best, Change, Tuned, TunedNumber, words};
use crate::failure::Failure;
use crate::statistics::{confident_mean, mean};
use policy::{ArmObservation, Verdict};
use std::collections::BTreeMap;

impl Bench<'_> {
    /// Says how good the best numbers are.
    ///
    /// # Errors
    /// A run failed, or the user stopped it.
    pub fn judge(self, best: &Best) -> Result<Tuned, Failure> {
        let cases = self.cases(&self.text, Part::HeldBack)?;
        let changed = best.values != self.written();
        let arms = if changed {
            self.arms(std::slice::from_ref(&best.values), Part::HeldBack, |_| "best".to_string())?.remove(0)
        } else {
            self.held_back.clone()
        };
        let changes = compared(&arms, &self.held_back);
        let quantities = Verdict::quantities();
        let all = |quantity: usize| estimate(quantities[quantity].0, &cases, &changes, quantity, |_| true);
        let gain = all(self.objective).filter(|_| changed);
        let exceeded = if changed { self.exceeded(&all) } else { Vec::new() };
        let answer = match &gain {
            _ if !changed => Answer::NoGain,
            None => Answer::CannotSay,
            Some(gain) if gain.interval.0 > 0.0 => Answer::Worse,
            Some(gain) if gain.interval.1 >= 0.0 => Answer::NoGain,
            Some(_) if !exceeded.is_empty() => Answer::BeyondLimit,
            Some(_) => Answer::Better,
        };
        let mut tuned = Tuned {
            policy: self.policy.name.clone(),
            objective: quantities[self.objective].0,
            answer,
            gain,
            quantities: (0..QUANTITIES).filter(|_| changed).filter_map(all).collect(),
            by_value: if changed { self.by_value(&cases, &changes) } else { Vec::new() },
            exceeded,
            numbers: self.neighbours(&best.values, &cases, &arms)?,
            trials: best.trials,
            training_runs: self.cases(&self.text, Part::Training)?.len(),
            held_back_seeds: self.request.held_back_seeds,
            training_change: libm::expm1(best.score),
            influence: best.influence,
            silent: self.silent.clone(),
            text: String::new(),
        };
        let taken = if answer == Answer::Better { self.policy_with(&best.values) } else { None };
        tuned.text = words::evidence(&tuned, self.request) + &taken.unwrap_or(self.text);
        Ok(tuned)
    }

    /// Limits that are not kept, in words.
    fn exceeded(&self, all: &dyn Fn(usize) -> Option<Change>) -> Vec<String> {
        let beyond = |(quantity, most): &(usize, f64)| {
            let (name, _) = Verdict::quantities()[*quantity];
            match all(*quantity) {
                Some(change) if change.change <= *most => None,
                Some(change) => Some(format!("{}, more than +{:.1} %", words::of(&change), most * 100.0)),
                None => Some(format!("{name} is unknown")),
            }
        };
        self.limits.iter().filter_map(beyond).collect()
    }

    /// The objective by the sweep's values, if there are several.
    fn by_value(&self, cases: &[Case], changes: &[Changes]) -> Vec<Change> {
        let mut values: Vec<&str> = Vec::new();
        for case in cases {
            if !values.contains(&case.value.as_str()) {
                values.push(&case.value);
            }
        }
        let of = |value: &&str| estimate(value, cases, changes, self.objective, |case| case.value == *value);
        if values.len() > 1 { values.iter().filter_map(of).collect() } else { Vec::new() }
    }

    /// The numbers, and how much larger the objective is beside the best, whose runs are `arms`.
    fn neighbours(&self, best: &[f64], cases: &[Case], arms: &[ArmObservation]) -> Result<Vec<TunedNumber>, Failure> {
        let mut beside = Vec::new();
        for (i, number) in self.numbers.iter().enumerate() {
            let step = libm::pow(number.range.1 / number.range.0, 0.1);
            for (side, factor) in [1.0 / step, step].into_iter().enumerate() {
                let mut values = best.to_vec();
                values[i] = number.rounded(best[i] * factor);
                // at an end of its range it has one neighbour, outside of it none
                let moved = if side == 0 { values[i] < best[i] } else { values[i] > best[i] };
                let searched = (number.range.0..=number.range.1).contains(&best[i]);
                if moved && searched && self.policy_with(&values).is_some() {
                    beside.push((i, side, values));
                }
            }
        }
        let proposals: Vec<Vec<f64>> = beside.iter().map(|(_, _, values)| values.clone()).collect();
        let name = |n: usize| {
            let (i, _, values) = &beside[n];
            format!("{} = {}", self.numbers[*i].name, self.numbers[*i].words(values[*i]))
        };
        let neighbours = self.arms(&proposals, Part::HeldBack, name)?;
        let tuned = |(number, best): (&super::numbers::Number, &f64)| TunedNumber {
            name: number.name.clone(),
            written: number.words(number.written),
            best: number.words(*best),
            range: (number.words(number.range.0), number.words(number.range.1)),
            beside: [None, None],
        };
        let mut numbers: Vec<TunedNumber> = self.numbers.iter().zip(best).map(tuned).collect();
        for ((i, side, values), of) in beside.iter().zip(&neighbours) {
            let value = self.numbers[*i].words(values[*i]);
            numbers[*i].beside[*side] = estimate(&value, cases, &compared(of, arms), self.objective, |_| true);
        }
        Ok(numbers)
    }
}

/// The change of a quantity over the cases that count: one value a seed. `None` if a run says nothing.
fn estimate(
    of: &str,
    cases: &[Case],
    changes: &[Changes],
    quantity: usize,
    counts: impl Fn(&Case) -> bool,
) -> Option<Change> {
    let mut by_seed: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (case, changes) in cases.iter().zip(changes).filter(|(case, _)| counts(case)) {
        by_seed.entry(case.seed()).or_default().push(changes[quantity]?);
    }
    let seeds: Vec<f64> = by_seed.into_values().filter_map(mean).collect();
    let (mean, (low, high)) = confident_mean(&seeds)?;
    let [change, low, high] = [mean, low, high].map(libm::expm1);
    Some(Change { of: of.to_string(), change, interval: (low, high) })
}
