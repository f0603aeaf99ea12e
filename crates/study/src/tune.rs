//! Searches the numbers of a policy in the simulator, and says on runs that the search has not seen whether they are better.
//!
//! A trial simulates the training runs with other numbers. Each run is a pair with the same run under the policy as it is written, and the
//! score is the mean logarithm of the ratio of the objective. The best numbers are then judged on held-back runs: other seeds, and values
//! of the scenario's sweep that the search was not shown. Only that judgement has an interval; the training's gain is that of the luckiest
//! of many trials.

mod numbers;
mod search;
mod words;

use crate::failure::Failure;
use crate::known::{check_algorithm_files, parse_policy, parse_scenario, read_policy};
use crate::monitor::Monitor;
use crate::request::all_cores;
use crate::source::Source;
use crate::sweep::{Job, run_all};
use crate::trial::{WithPolicy, observed, written};
use numbers::{Number, is_searched_by_default, numbers, with_values};
use policy::{ArmObservation, Judgement, PeriodObservation, Policy, QuantityReport, Verdict, VerdictReport};
use search::Search;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::{fs, io};
use units::Time;

/// What to search, and where.
#[derive(Clone, Debug)]
pub struct TuneRequest {
    /// The policy.
    pub policy: Source,
    /// The network and its traffic; a policy in it is ignored. Its sweep, if it has one, gives the runs: loads, for example.
    pub scenario: Source,
    /// Overrides of the scenario, dotted: `KEY=VALUE`.
    pub sets: Vec<String>,
    /// Numbers to search: `KEY` or `KEY=LOW..HIGH`, as `rule.calm network.when=0.5..0.9`. None: those of all conditions and of all that
    /// is set, from a quarter of their value to four times it.
    pub vary: Vec<String>,
    /// Runs of the sweep that are held back: `KEY=VALUE`.
    pub hold_back: Vec<String>,
    /// How much worse another quantity may become in the training: `network.fct_p50=5 %`.
    pub limits: Vec<String>,
    /// Numbers of values tried.
    pub trials: u32,
    /// Seeds 1 to N of each run are the training.
    pub seeds: u32,
    /// So many more seeds are held back. Fewer than [`TrialRequest::SEEDS_MIN`](crate::TrialRequest::SEEDS_MIN) are refused.
    pub held_back_seeds: u32,
    /// Simulations in parallel. The answer does not depend on it.
    pub workers: usize,
}

impl TuneRequest {
    /// Forty trials on five seeds, judged on ten others, on all CPUs.
    pub fn new(policy: impl Into<Source>, scenario: impl Into<Source>) -> TuneRequest {
        TuneRequest {
            policy: policy.into(),
            scenario: scenario.into(),
            sets: Vec::new(),
            vary: Vec::new(),
            hold_back: Vec::new(),
            limits: Vec::new(),
            trials: 40,
            seeds: 5,
            held_back_seeds: 10,
            workers: all_cores(),
        }
    }
}

/// The outcome.
#[derive(Clone, Debug, Serialize)]
pub struct Tuned {
    /// The policy's name.
    pub policy: String,
    /// What was minimised.
    pub objective: &'static str,
    /// The numbers, in the order of the file.
    pub numbers: Vec<TunedNumber>,
    /// Values that were simulated.
    pub trials: u32,
    /// Training runs of a trial.
    pub training_runs: usize,
    /// The best numbers against the policy as it is written, on the training runs: it flatters them.
    pub training: QuantityReport,
    /// The same on held-back runs, all quantities. Absent if no trial was better than the policy as it is written.
    pub held_back: Option<VerdictReport>,
    /// On held-back runs: `better`, `worse`, `no difference`, or `cannot say`; `unchanged` if no trial was better.
    pub answer: &'static str,
    /// The policy's text with the best numbers, and what is known of them above it.
    #[serde(skip)]
    pub text: String,
}

impl Tuned {
    /// Writes the policy with the best numbers to `path`, which is there whole or not at all.
    ///
    /// # Errors
    /// The system's, with the file.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::Input(format!("{}: {error}", path.display()));
        let partial = path.with_extension("toml.partial");
        fs::write(&partial, &self.text).and_then(|()| fs::rename(&partial, path)).map_err(failed)
    }
}

/// A number that was searched.
#[derive(Clone, Debug, Serialize)]
pub struct TunedNumber {
    /// Its key.
    pub name: String,
    /// As the policy has it.
    pub written: String,
    /// The best.
    pub tuned: String,
    /// Least and largest value searched.
    pub range: (String, String),
    /// On either side of the best, a tenth of the range away: the value, and how much worse the objective is with it on the training
    /// runs, as a share. Absent where the best is at that end of the range.
    pub beside: [Option<(String, f64)>; 2],
}

/// Searches a policy's numbers.
///
/// # Errors
/// The input is wrong, a run failed, or the user stopped it.
pub fn tune(request: &TuneRequest, monitor: Monitor<'_>) -> Result<Tuned, Failure> {
    let mut bench = Bench::new(request, monitor)?;
    let mut search = Search::new(&bench.numbers, 1);
    let mut best = (bench.written.clone(), 0.0);
    search.tell(&best.0, best.1);
    for trial in 1..=request.trials {
        let proposed = search.ask();
        let values: Vec<f64> =
            bench.numbers.iter().zip(proposed).map(|(number, value)| number.rounded(value)).collect();
        let score = bench.score(&values)?;
        search.tell(&values, score);
        if score < best.1 {
            monitor.note(&format!("trial {trial} of {}: {}", request.trials, bench.words(&values, score)));
            best = (values, score);
        }
    }
    bench.judge(&best.0)
}

/// The runs, and what was measured in them.
struct Bench<'a> {
    request: &'a TuneRequest,
    monitor: Monitor<'a>,
    name: String,
    text: String,
    policy: Policy,
    objective: usize,
    limits: Vec<(usize, f64)>,
    numbers: Vec<Number>,
    /// Of `numbers`, as the policy has them.
    written: Vec<f64>,
    /// The training under the policy as it is written.
    base: Vec<ArmObservation>,
    /// By the bits of the values.
    scores: BTreeMap<Vec<u64>, f64>,
}

/// Above every score of values that keep the limits.
const OUT_OF_LIMITS: f64 = 100.0;

impl<'a> Bench<'a> {
    fn new(request: &'a TuneRequest, monitor: Monitor<'a>) -> Result<Bench<'a>, Failure> {
        // the policy's mistakes are reported as by `check`
        let policy = read_policy(&request.policy)?;
        let text = request.policy.text("policy")?;
        if request.held_back_seeds < crate::TrialRequest::SEEDS_MIN || request.seeds == 0 {
            let least = crate::TrialRequest::SEEDS_MIN;
            return Err(Failure::Input(format!(
                "tuning needs a seed to train on, and at least {least} that are held back"
            )));
        }
        let numbers = searched(&text, &request.vary)?;
        let mut bench = Bench {
            request,
            monitor,
            name: written(&request.policy)?,
            objective: Verdict::of_pairs(&policy).judged_by().unwrap_or_default(),
            limits: limits(&request.limits)?,
            written: numbers.iter().map(|number| number.written).collect(),
            text,
            policy,
            numbers,
            base: Vec::new(),
            scores: BTreeMap::new(),
        };
        let training = bench.training(&bench.text)?;
        check_algorithm_files(&training, monitor)?;
        bench.base = bench.observe(&training)?;
        let report = bench.compared(&bench.base).report();
        if report.quantities[bench.objective].change.is_none() {
            return Err(Failure::Input(format!(
                "too few flows end in the {} training runs for a percentile: at least {} are needed in all. Make `duration` longer, or \
                 give more seeds",
                training.len(),
                policy::FLOWS_MIN
            )));
        }
        Ok(bench)
    }

    /// The scenario's runs with the policy of this text. `held_back`: those that the search may not see, else the others.
    fn runs(&self, text: &str, seeds: RangeInclusive<u32>, all: bool) -> Result<Vec<Job>, Failure> {
        let scenario = &self.request.scenario;
        let files = WithPolicy { disk: scenario.disk(), name: &self.name, text: text.to_string() };
        let seeds: Vec<String> = seeds.map(|seed| seed.to_string()).collect();
        let mut sets = vec![format!("policy.file={}", self.name), format!("sweep.seed=[{}]", seeds.join(", "))];
        sets.extend_from_slice(&self.request.sets);
        let runs = parse_scenario(&scenario.name(), &scenario.text("scenario")?, &sets, &files)?;
        let held_back = |parameters: &[(String, String)]| {
            let matches = |asked: &String| parameters.iter().any(|(key, value)| *asked == format!("{key}={value}"));
            self.request.hold_back.iter().any(matches)
        };
        for asked in &self.request.hold_back {
            if !runs.iter().any(|run| run.parameters.iter().any(|(key, value)| *asked == format!("{key}={value}"))) {
                let known: Vec<String> = distinct(&runs);
                return Err(Failure::Input(match &known[..] {
                    [] => format!("no run has `{asked}` to hold back: the scenario has no [sweep]"),
                    known => format!("no run has `{asked}` to hold back; the sweep has {}", known.join(", ")),
                }));
            }
        }
        let period = parse_policy(&self.name, text, &[]).map_or(self.policy.period, |policy| policy.period);
        let jobs = runs.into_iter().filter(|run| all || !held_back(&run.parameters)).map(|run| {
            let mut scenario = run.scenario;
            scenario.measure.messages = true;
            // a run has a time scale of its own: another T of the policy is another T in it
            if let Some(control) = scenario.policy.as_mut().filter(|_| period != self.policy.period) {
                let scaled = u128::from(control.policy.period.as_ps()) * u128::from(period.as_ps());
                let scaled = scaled / u128::from(self.policy.period.as_ps());
                let given = control.period.is_some();
                if given {
                    control.policy = control.policy.clone().with_period(Time::from_ps(scaled.max(1) as u64));
                }
            }
            Job { name: run.name, parameters: run.parameters, scenario }
        });
        Ok(jobs.collect())
    }

    fn training(&self, text: &str) -> Result<Vec<Job>, Failure> {
        let jobs = self.runs(text, 1..=self.request.seeds, false)?;
        if jobs.is_empty() {
            return Err(Failure::Input("all runs are held back: there is none to train on".to_string()));
        }
        Ok(jobs)
    }

    fn observe(&self, jobs: &[Job]) -> Result<Vec<ArmObservation>, Failure> {
        let mut arms = Vec::new();
        run_all(jobs, self.request.workers, self.monitor, |run| {
            arms.push(observed(&run));
            Ok(())
        })?;
        Ok(arms)
    }

    /// The training with other numbers against the training as it is written.
    fn compared(&self, arms: &[ArmObservation]) -> Verdict {
        pairs(&self.policy, arms, &self.base)
    }

    /// How good numbers are, less being better; the policy as it is written has zero.
    fn score(&mut self, values: &[f64]) -> Result<f64, Failure> {
        let key: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        if let Some(score) = self.scores.get(&key) {
            return Ok(*score);
        }
        let score = self.simulated(values)?;
        self.scores.insert(key, score);
        Ok(score)
    }

    fn simulated(&self, values: &[f64]) -> Result<f64, Failure> {
        let text = with_values(&self.text, &self.numbers, values);
        if parse_policy(&self.name, &text, &[]).is_err() {
            // such as a lifetime that ends before the period
            return Ok(2.0 * OUT_OF_LIMITS);
        }
        let report = self.compared(&self.observe(&self.training(&text)?)?).report();
        let log = |quantity: usize| report.quantities[quantity].change.map_or(0.0, f64::ln_1p);
        let beyond = self.limits.iter().map(|(quantity, most)| log(*quantity) - most.ln_1p()).fold(0.0, f64::max);
        Ok(if beyond > 0.0 { OUT_OF_LIMITS + beyond } else { log(self.objective) })
    }

    /// Says how good the best numbers are.
    fn judge(mut self, best: &[f64]) -> Result<Tuned, Failure> {
        let text = with_values(&self.text, &self.numbers, best);
        let base = pairs(&self.policy, &self.observe(&self.training(&text)?)?, &self.base).report();
        let held_back = match best == self.written {
            true => None,
            false => Some(self.held_back(&text)?),
        };
        let answer = held_back.as_ref().map_or("unchanged", |report| match report.judgement {
            Judgement::Helping => "better",
            Judgement::Hurting => "worse",
            Judgement::Unclear if report.quantities[self.objective].interval.is_some() => "no difference",
            Judgement::Unclear => "cannot say",
        });
        let numbers = (0..self.numbers.len()).map(|i| self.tuned(best, i)).collect::<Result<Vec<_>, Failure>>()?;
        let mut tuned = Tuned {
            policy: self.policy.name.clone(),
            objective: base.quantities[self.objective].name,
            numbers,
            trials: self.request.trials,
            training_runs: self.base.len(),
            training: base.quantities[self.objective].clone(),
            held_back,
            answer,
            text: String::new(),
        };
        tuned.text = words::evidence(&tuned, self.request) + &text;
        Ok(tuned)
    }

    /// Runs that the search has not seen: all values of the sweep, with other seeds.
    fn held_back(&self, text: &str) -> Result<VerdictReport, Failure> {
        let first = self.request.seeds + 1;
        let seeds = first..=first + self.request.held_back_seeds - 1;
        let [written, tuned] =
            [&self.text[..], text].map(|text| self.observe(&self.runs(text, seeds.clone(), true)?));
        Ok(pairs(&self.policy, &tuned?, &written?).report())
    }

    /// A number, and what its neighbours would be worth.
    fn tuned(&mut self, best: &[f64], i: usize) -> Result<TunedNumber, Failure> {
        let number = self.numbers[i].clone();
        let at_best = self.score(best)?;
        let step = (number.range.1 / number.range.0).powf(0.1);
        let mut beside = [None, None];
        for (beside, factor) in beside.iter_mut().zip([1.0 / step, step]) {
            let mut values = best.to_vec();
            values[i] = number.rounded(best[i] * factor);
            if values[i].total_cmp(&best[i]).is_ne() {
                let score = self.score(&values)?;
                *beside = (score < OUT_OF_LIMITS).then(|| (number.words(values[i]), (score - at_best).exp_m1()));
            }
        }
        Ok(TunedNumber {
            written: number.words(number.written),
            tuned: number.words(best[i]),
            range: (number.words(number.range.0), number.words(number.range.1)),
            name: number.name,
            beside,
        })
    }

    /// `p99 FCT -12.0 % with rule.calm network.when = 0.83, …`.
    fn words(&self, values: &[f64], score: f64) -> String {
        let name = self.compared(&[]).report().quantities[self.objective].name;
        let set = self.numbers.iter().zip(values);
        let set: Vec<String> =
            set.map(|(number, value)| format!("{} = {}", number.name, number.words(*value))).collect();
        format!("{name} {:+.1} % with {}", score.exp_m1() * 100.0, set.join(", "))
    }
}

/// Pairs of runs, of which the second is the policy as it is written.
fn pairs(policy: &Policy, arms: &[ArmObservation], base: &[ArmObservation]) -> Verdict {
    let mut verdict = Verdict::of_pairs(policy);
    for (treated, control) in arms.iter().zip(base) {
        verdict.observe(&PeriodObservation { treated: treated.clone(), control: control.clone(), acting: true });
    }
    verdict
}

/// Parameters of a sweep beside the seed, each once.
fn distinct(runs: &[scenario::Run]) -> Vec<String> {
    let all = runs.iter().flat_map(|run| &run.parameters).filter(|(key, _)| key != "seed");
    let mut known: Vec<String> = all.map(|(key, value)| format!("{key}={value}")).collect();
    known.sort_unstable();
    known.dedup();
    known
}

/// The numbers to search.
fn searched(text: &str, vary: &[String]) -> Result<Vec<Number>, Failure> {
    let all = numbers(text);
    if all.is_empty() {
        return Err(Failure::Input("the policy has no number to search".to_string()));
    }
    if vary.is_empty() {
        return Ok(all.into_iter().filter(is_searched_by_default).collect());
    }
    let mut found: Vec<Number> = Vec::new();
    for asked in vary {
        let (key, range) =
            asked.split_once('=').map_or((asked.as_str(), None), |(key, range)| (key.trim(), Some(range)));
        let Some(number) = all.iter().find(|number| number.name == key) else {
            let known: Vec<&str> = all.iter().map(|number| number.name.as_str()).collect();
            return Err(Failure::Input(format!("the policy has no number `{key}`; it has: {}", known.join(", "))));
        };
        let mut number = number.clone();
        if let Some(range) = range {
            number.restrict(range).map_err(|error| Failure::Input(format!("`{asked}`: {error}")))?;
        }
        found.retain(|other| other.name != number.name);
        found.push(number);
    }
    Ok(found)
}

/// Quantities by their place, and how much worse each may become, as a share.
fn limits(asked: &[String]) -> Result<Vec<(usize, f64)>, Failure> {
    let read = |asked: &String| {
        let (variable, most) = asked.split_once('=').unwrap_or((asked, ""));
        let place = Verdict::variables().position(|known| known == variable.trim());
        let most = most.trim().strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
        match (place, most) {
            (Some(place), Some(most)) if most >= 0.0 && most.is_finite() => Ok((place, most / 100.0)),
            _ => {
                let known: Vec<&str> = Verdict::variables().collect();
                Err(Failure::Input(format!(
                    "`{asked}` is no limit: write a quantity and how much larger it may become, such as `network.fct_p50=5 %`; \
                     quantities are {}",
                    known.join(", ")
                )))
            }
        }
    };
    asked.iter().map(read).collect()
}
