//! The runs: the policy with some numbers in the scenario, of the training or held-back.

use super::numbers::{Number, numbers, with_values};
use super::search::Search;
use super::{Best, KEPT, TuneRequest};
use crate::failure::Failure;
use crate::known::{check_algorithm_files, parse_policy, parse_scenario, read_policy};
use crate::monitor::Monitor;
use crate::statistics::mean;
use crate::sweep::{Job, run_all};
use crate::trial::{WithPolicy, observed, silent, written};
use document::suggestion;
use policy::{ArmObservation, FLOWS_MIN, Policy, Verdict};
use results::RuleRow;
use scenario::{Control, Run};
use std::collections::BTreeSet;
use units::Time;

/// What is compared, by its place.
pub(super) const QUANTITIES: usize = 4;
/// Logarithms of the quantities of a run over those of another; `None` where too few flows end.
pub(super) type Changes = [Option<f64>; QUANTITIES];

/// Which runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Training,
    HeldBack,
}

/// A run, and its place among the others.
pub(super) struct Case {
    job: Job,
    /// The sweep's values beside the seed, in words.
    pub value: String,
}

impl Case {
    pub fn seed(&self) -> u64 {
        self.job.scenario.seed
    }
}

/// How some numbers did in the training.
pub(super) struct Outcome {
    /// Less is better; the policy as it is written has zero.
    pub score: f64,
    /// Whether anything differed from the policy as it is written.
    pub influence: bool,
}

pub(super) struct Bench<'a> {
    pub request: &'a TuneRequest,
    pub monitor: Monitor<'a>,
    name: String,
    pub text: String,
    pub policy: Policy,
    /// What is minimised, among the quantities.
    pub objective: usize,
    /// Quantities, and how much larger each may become, as a share.
    pub limits: Vec<(usize, f64)>,
    pub numbers: Vec<Number>,
    /// The training under the policy as it is written.
    training: Vec<ArmObservation>,
    /// The held-back runs under the policy as it is written.
    pub held_back: Vec<ArmObservation>,
    /// Why rules were never on in the training.
    pub silent: Vec<String>,
    /// Values that were proposed, by their bits.
    proposed: BTreeSet<Vec<u64>>,
}

/// Above every score of values that keep the limits.
const OUT_OF_LIMITS: f64 = 100.0;
/// Proposals in a row that were proposed before, or make no right policy, after which there is nothing left to propose.
const ASKS: u32 = 100;

impl<'a> Bench<'a> {
    /// Checks the request; nothing is simulated.
    ///
    /// # Errors
    /// What is wrong.
    pub fn new(request: &'a TuneRequest, monitor: Monitor<'a>) -> Result<Bench<'a>, Failure> {
        // the policy's mistakes are reported as by `check`
        let policy = read_policy(&request.policy)?;
        let text = request.policy.text("policy")?;
        let least = TuneRequest::HELD_BACK_MIN;
        if request.held_back_seeds < least || request.seeds == 0 || request.trials == 0 {
            let needed = format!("tuning needs a trial, a seed to train on, and at least {least} held-back seeds");
            return Err(Failure::Input(needed));
        }
        for set in &request.sets {
            let key = set.split('=').next().unwrap_or_default().trim();
            if ["seed", "policy", "sweep", "policy.file", "sweep.seed", "sweep.policy.file"].contains(&key) {
                return Err(Failure::Input(format!(
                    "--set {set}: `{key}` belongs to the search. Give seeds by --seeds and --held-back-seeds, and other keys one by one"
                )));
            }
        }
        let bench = Bench {
            name: written(&request.policy)?,
            objective: Verdict::of_pairs(&policy).judged_by().unwrap_or_default(),
            limits: limits(&request.limits)?,
            numbers: searched(&request.policy.name(), &text, &request.vary)?,
            training: Vec::new(),
            held_back: Vec::new(),
            silent: Vec::new(),
            proposed: BTreeSet::new(),
            request,
            monitor,
            text,
            policy,
        };
        let training: Vec<Job> = bench.cases(&bench.text, Part::Training)?.into_iter().map(|case| case.job).collect();
        if training.is_empty() {
            return Err(Failure::Input("--hold-back names all runs: there is none to train on".to_string()));
        }
        check_algorithm_files(&training, monitor)?;
        if Verdict::new(&bench.policy).judged_by().is_none() {
            let (name, _) = Verdict::quantities()[bench.objective];
            monitor.note(&format!(
                "the policy has no objective by which two networks can be compared: {name} is minimised"
            ));
        }
        Ok(bench)
    }

    /// How many runs there will be at most.
    pub fn runs_in_all(&self) -> usize {
        let cases = |part| self.cases(&self.text, part).map_or(0, |cases| cases.len());
        let (training, held_back) = (cases(Part::Training), cases(Part::HeldBack));
        let numbers = self.numbers.len();
        // everything as it is, each trial, the best without each of its numbers, the best, and its neighbours
        training * (1 + self.request.trials as usize + numbers) + held_back * (2 + 2 * numbers)
    }

    /// Simulates everything under the policy as it is written, so that too few flows are noticed at once.
    ///
    /// # Errors
    /// The input is wrong, a run failed, or the user stopped it.
    pub fn begin(&mut self, monitor: Monitor<'a>) -> Result<(), Failure> {
        self.monitor = monitor;
        let training = self.cases(&self.text, Part::Training)?;
        let scenario = training[0].job.scenario.clone();
        let mut rules: Vec<RuleRow> = Vec::new();
        self.training = self.simulate("as it is", &training, &mut rules)?;
        self.silent = silent(&self.policy, &rules, &scenario);
        let held_back = self.cases(&self.text, Part::HeldBack)?;
        self.held_back = self.simulate("as it is", &held_back, &mut Vec::new())?;
        let judged = || [self.objective].into_iter().chain(self.limits.iter().map(|(quantity, _)| *quantity));
        for (case, arm) in training.iter().chain(&held_back).zip(self.training.iter().chain(&self.held_back)) {
            let same = arm.against(arm);
            if judged().any(|quantity| same[quantity].is_none()) {
                return Err(Failure::Input(format!(
                    "{}: run {} ends {} flows, which are too few for a percentile: {FLOWS_MIN} are needed. Make `duration` longer",
                    self.request.scenario.name(),
                    case.job.name,
                    arm.fct_ns.len()
                )));
            }
        }
        Ok(())
    }

    /// The numbers as the policy has them.
    pub fn written(&self) -> Vec<f64> {
        self.numbers.iter().map(|number| number.written).collect()
    }

    /// The policy's text with these numbers; `None` if that is no right policy, such as one whose lifetime ends before its period.
    pub fn policy_with(&self, values: &[f64]) -> Option<String> {
        let text = with_values(&self.text, &self.numbers, values);
        parse_policy(&self.name, &text, &[]).is_ok().then_some(text)
    }

    /// As many values as are asked for that were not proposed before, or fewer if there are no others.
    pub fn proposals(&mut self, search: &mut Search, asked_for: u32) -> Vec<Vec<f64>> {
        let bits = |values: &[f64]| -> Vec<u64> { values.iter().map(|value| value.to_bits()).collect() };
        self.proposed.insert(bits(&self.written()));
        let mut proposals: Vec<Vec<f64>> = Vec::new();
        for _ in 0..asked_for {
            let fresh = (0..ASKS).find_map(|_| {
                let values: Vec<f64> =
                    self.numbers.iter().zip(search.ask()).map(|(number, value)| number.rounded(value)).collect();
                if !self.proposed.insert(bits(&values)) {
                    return None;
                }
                if self.policy_with(&values).is_none() {
                    search.tell(&values, 2.0 * OUT_OF_LIMITS);
                    return None;
                }
                Some(values)
            });
            proposals.extend(fresh);
        }
        proposals
    }

    /// Simulates the training with several proposals at once; `tried` were before.
    ///
    /// # Errors
    /// A run failed, or the user stopped it.
    pub fn train(&self, proposals: &[Vec<f64>], tried: u32) -> Result<Vec<Outcome>, Failure> {
        let name = |i: usize| format!("trial {}", tried as usize + i + 1);
        let arms = self.arms(proposals, Part::Training, name)?;
        let outcome = |arms: &Vec<ArmObservation>| {
            let changes = compared(arms, &self.training);
            let influence = changes.iter().flatten().any(|change| change.is_none_or(|log| log != 0.0));
            Outcome { score: self.score(&changes), influence }
        };
        Ok(arms.iter().map(outcome).collect())
    }

    /// The best numbers without changes that gain little: what does not matter stays as it is written.
    ///
    /// # Errors
    /// A run failed, or the user stopped it.
    pub fn simplest(&self, mut best: Best) -> Result<Best, Failure> {
        let enough = KEPT * best.score;
        for (i, number) in self.numbers.iter().enumerate() {
            let mut values = best.values.clone();
            values[i] = number.written;
            // never back to the policy as it is: that keeps nothing of a gain
            if values == best.values || values == self.written() || self.policy_with(&values).is_none() {
                continue;
            }
            let name = |_| format!("{} as it is", number.name);
            let arms = self.arms(std::slice::from_ref(&values), Part::Training, name)?.remove(0);
            let score = self.score(&compared(&arms, &self.training));
            if score <= enough {
                best = Best { values, score, ..best };
            }
        }
        Ok(best)
    }

    /// What each run of a part shows with each of these numbers.
    ///
    /// # Errors
    /// A run failed, or the user stopped it.
    pub fn arms(
        &self,
        proposals: &[Vec<f64>],
        part: Part,
        name: impl Fn(usize) -> String,
    ) -> Result<Vec<Vec<ArmObservation>>, Failure> {
        let mut jobs = Vec::new();
        for (i, values) in proposals.iter().enumerate() {
            let text = with_values(&self.text, &self.numbers, values);
            jobs.extend(self.cases(&text, part)?.into_iter().map(|case| named(case.job, &name(i))));
        }
        let mut arms = Vec::new();
        run_all(&jobs, self.request.workers, self.monitor, |run| {
            arms.push(observed(&run));
            Ok(())
        })?;
        Ok(arms.chunks((jobs.len() / proposals.len().max(1)).max(1)).map(<[_]>::to_vec).collect())
    }

    fn simulate(&self, name: &str, cases: &[Case], rules: &mut Vec<RuleRow>) -> Result<Vec<ArmObservation>, Failure> {
        let jobs: Vec<Job> = cases.iter().map(|case| named(case.job.clone(), name)).collect();
        let mut arms = Vec::new();
        run_all(&jobs, self.request.workers, self.monitor, |run| {
            rules.resize_with(run.rules.len(), RuleRow::default);
            rules.iter_mut().zip(&run.rules).for_each(|(sum, row)| sum.add(row));
            arms.push(observed(&run));
            Ok(())
        })?;
        Ok(arms)
    }

    /// How good a training is.
    fn score(&self, changes: &[Changes]) -> f64 {
        let log = |quantity| mean_of(changes, quantity);
        let Some(score) = log(self.objective) else { return 2.0 * OUT_OF_LIMITS };
        let beyond = |(quantity, most): &(usize, f64)| log(*quantity).map_or(OUT_OF_LIMITS, |log| log - most.ln_1p());
        let beyond = self.limits.iter().map(beyond).fold(0.0, f64::max);
        if beyond > 0.0 { OUT_OF_LIMITS + beyond } else { score }
    }

    /// The runs of a part with the policy of this text.
    pub fn cases(&self, text: &str, part: Part) -> Result<Vec<Case>, Failure> {
        let TuneRequest { scenario, hold_back, seeds, held_back_seeds, .. } = self.request;
        let files = WithPolicy { disk: scenario.disk(), name: &self.name, text: text.to_string() };
        let seeds = match part {
            Part::Training => 1..=*seeds,
            Part::HeldBack => seeds + 1..=seeds + held_back_seeds,
        };
        let seeds: Vec<String> = seeds.map(|seed| seed.to_string()).collect();
        let mut sets = self.request.sets.clone();
        sets.extend([format!("policy.file={}", self.name), format!("sweep.seed=[{}]", seeds.join(", "))]);
        let runs = parse_scenario(&scenario.name(), &scenario.text("scenario")?, &sets, &files)?;
        known_hold_back(&runs, hold_back)?;
        let period = parse_policy(&self.name, text, &[]).map_or(self.policy.period, |policy| policy.period);
        let of_part = runs.into_iter().filter(|run| part == Part::HeldBack || !has_any(&run.parameters, hold_back));
        let case = |run: Run| {
            let mut scenario = run.scenario;
            scenario.measure.messages = true;
            if let Some(control) = &mut scenario.policy {
                rescale(control, period, self.policy.period);
            }
            let values: Vec<String> = swept(&run.parameters).map(|(key, value)| format!("{key}={value}")).collect();
            let new = if has_any(&run.parameters, hold_back) { " (not in the training)" } else { "" };
            let job = Job { name: run.name, parameters: run.parameters, scenario };
            Case { job, value: values.join(", ") + new }
        };
        Ok(of_part.map(case).collect())
    }

    /// `p99 FCT -12.0 % with rule.calm network.when = 0.83, …`.
    pub fn words(&self, values: &[f64], score: f64) -> String {
        let (name, _) = Verdict::quantities()[self.objective];
        let set = self.numbers.iter().zip(values);
        let set: Vec<String> =
            set.map(|(number, value)| format!("{} = {}", number.name, number.words(*value))).collect();
        format!("{name} {:+.1} % with {}", libm::expm1(score) * 100.0, set.join(", "))
    }
}

/// A run has a time scale of its own, so another T of the policy is another T in it, by the same factor.
fn rescale(control: &mut Control, period: Time, written: Time) {
    if control.period.is_some() && period != written {
        let scaled = u128::from(control.policy.period.as_ps()) * u128::from(period.as_ps());
        let scaled = scaled / u128::from(written.as_ps());
        let scaled = u64::try_from(scaled).unwrap_or(u64::MAX).max(1);
        control.policy = control.policy.clone().with_period(Time::from_ps(scaled));
    }
}

fn named(job: Job, what: &str) -> Job {
    Job { name: format!("{what}, {}", job.name), ..job }
}

/// Each run against the same run of the base.
pub(super) fn compared(arms: &[ArmObservation], base: &[ArmObservation]) -> Vec<Changes> {
    arms.iter().zip(base).map(|(arm, base)| arm.against(base)).collect()
}

/// The mean over all runs; `None` if one of them says nothing.
fn mean_of(changes: &[Changes], quantity: usize) -> Option<f64> {
    let logs: Option<Vec<f64>> = changes.iter().map(|changes| changes[quantity]).collect();
    mean(logs?)
}

/// The parameters of a run beside the seed.
fn swept(parameters: &[(String, String)]) -> impl Iterator<Item = &(String, String)> {
    parameters.iter().filter(|(key, _)| key != "seed")
}

/// Whether these parameters have one of these `KEY=VALUE`.
fn has_any(parameters: &[(String, String)], asked: &[String]) -> bool {
    let is = |asked: &String, (key, value): &(String, String)| {
        asked.split_once('=').is_some_and(|(k, v)| k.trim() == key && v.trim() == value)
    };
    asked.iter().any(|asked| swept(parameters).any(|parameter| is(asked, parameter)))
}

/// Refuses what no run has.
fn known_hold_back(runs: &[Run], hold_back: &[String]) -> Result<(), Failure> {
    let is_known = |asked: &&String| runs.iter().any(|run| has_any(&run.parameters, std::slice::from_ref(*asked)));
    let Some(unknown) = hold_back.iter().find(|asked| !is_known(asked)) else { return Ok(()) };
    let swept = runs.iter().flat_map(|run| swept(&run.parameters)).map(|(key, value)| format!("{key}={value}"));
    let known: BTreeSet<String> = swept.collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Err(Failure::Input(match &known[..] {
        [] => format!("--hold-back {unknown}: the scenario sweeps nothing, so no run has it"),
        known => format!("--hold-back {unknown}: no run of the sweep has it; {}", suggestion(unknown, known)),
    }))
}

/// The numbers to search.
fn searched(policy: &str, text: &str, vary: &[String]) -> Result<Vec<Number>, Failure> {
    let all = numbers(text);
    let names: Vec<&str> = all.iter().map(|number| number.name.as_str()).collect();
    if vary.is_empty() {
        let searched: Vec<Number> = all.iter().filter(|number| number.by_default).cloned().collect();
        return if !searched.is_empty() {
            Ok(searched)
        } else if all.is_empty() {
            Err(Failure::Input(format!("{policy}: the policy has no number to search")))
        } else {
            let others = names.join(", ");
            let why = "no condition and nothing that is set has a number";
            Err(Failure::Input(format!("{policy}: {why}; name others by --vary: {others}")))
        };
    }
    let mut found: Vec<Number> = Vec::new();
    for asked in vary {
        let wrong = |what: String| Failure::Input(format!("--vary {asked}: {what}"));
        // a rule's name may contain a sign of equality
        let split = asked.rsplit_once('=').filter(|_| !names.contains(&asked.as_str()));
        let (key, range) = split.map_or((asked.as_str(), None), |(key, range)| (key.trim(), Some(range)));
        let Some(number) = all.iter().find(|number| number.name == key) else {
            return Err(wrong(format!("the policy has no number `{key}`; {}", suggestion(key, &names))));
        };
        let mut number = number.clone();
        if let Some(range) = range {
            number.restrict(range).map_err(wrong)?;
            for end in [number.range.0, number.range.1] {
                let text = with_values(text, std::slice::from_ref(&number), &[end]);
                if let Err(diagnostic) = parse_policy(policy, &text, &[]) {
                    let problem = &diagnostic.problems()[0];
                    return Err(wrong(format!("{} is not possible there: {}", number.words(end), problem.message)));
                }
            }
        }
        if found.iter().any(|other| other.name == number.name) {
            return Err(wrong("this number was named before; name it once".to_string()));
        }
        found.push(number);
    }
    Ok(found)
}

/// Quantities by their place, and how much larger each may become, as a share.
fn limits(asked: &[String]) -> Result<Vec<(usize, f64)>, Failure> {
    let known = Verdict::quantities().map(|(_, variable)| variable);
    let read = |asked: &String| {
        let (variable, most) = asked.split_once('=').unwrap_or((asked, ""));
        let place = known.iter().position(|known| *known == variable.trim());
        let most = most.trim().strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
        match (place, most) {
            (None, _) => Err(Failure::Input(format!(
                "--limit {asked}: no quantity is called `{}`; {}",
                variable.trim(),
                suggestion(variable.trim(), &known)
            ))),
            (Some(place), Some(most)) if most >= 0.0 && most.is_finite() => Ok((place, most / 100.0)),
            _ => Err(Failure::Input(format!(
                "--limit {asked}: write how much larger it may become, in percent from 0 on, such as `{}=5 %`",
                variable.trim()
            ))),
        }
    };
    asked.iter().map(read).collect()
}
