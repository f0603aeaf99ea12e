//! Searches the numbers of a policy in the simulator, and says on runs that the search has not seen whether they are better.
//!
//! A trial simulates the training runs with other numbers. Each run is a pair with the same run under the policy as it is written, and the
//! score is the mean logarithm of the ratio of the objective. The best numbers are then judged on held-back runs: other seeds, also of
//! values of the scenario's sweep that the search was not shown. The gain, its interval and the sensitivity are measured there alone. On the
//! training runs the best of many trials looks better than it is, because it was chosen there.

mod bench;
mod judge;
mod numbers;
mod search;
mod words;

use crate::failure::Failure;
use crate::monitor::{Monitor, Parts, Progress};
use crate::request::all_cores;
use crate::source::Source;
use bench::Bench;
use search::Search;
use serde::Serialize;
use std::path::Path;
use std::{fs, io};

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
    /// Runs of the sweep that the training may not see: `KEY=VALUE`.
    pub hold_back: Vec<String>,
    /// How much more of another quantity there may be than with the policy as it is written: `network.fct_p50=5 %`.
    pub limits: Vec<String>,
    /// Sets of numbers tried.
    pub trials: u32,
    /// Seeds 1 to N of each run are the training.
    pub seeds: u32,
    /// So many held-back seeds follow. Fewer than [`TuneRequest::HELD_BACK_MIN`] are refused.
    pub held_back_seeds: u32,
    /// Simulations in parallel. The answer does not depend on it.
    pub workers: usize,
}

impl TuneRequest {
    /// Fewer pairs say little of how much pairs differ.
    pub const HELD_BACK_MIN: u32 = 5;

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
    /// What the held-back runs say.
    pub answer: Answer,
    /// The objective on held-back runs with the best numbers, against the policy as it is written. Absent if no trial was better in the
    /// training, or if too few flows end.
    pub gain: Option<Change>,
    /// All quantities there.
    pub quantities: Vec<Change>,
    /// The objective there by the sweep's values, if it has several.
    pub by_value: Vec<Change>,
    /// Limits that are exceeded there, in words.
    pub exceeded: Vec<String>,
    /// The numbers, in the order of the file.
    pub numbers: Vec<TunedNumber>,
    /// Sets of numbers that were simulated.
    pub trials: u32,
    /// Training runs of a trial.
    pub training_runs: usize,
    /// Held-back seeds.
    pub held_back_seeds: u32,
    /// How much larger the objective was on the training runs that chose the best numbers, as a share. It flatters them.
    pub training_change: f64,
    /// Whether any trial changed anything on any training run.
    pub influence: bool,
    /// Why rules that were never on in the training were not, a line each.
    pub silent: Vec<String>,
    /// The policy's text, and what is known above it. It has the best numbers if they are better, else those that it had.
    #[serde(skip)]
    pub text: String,
}

/// What the held-back runs say of the best numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Answer {
    /// The whole interval is below zero, and the limits are kept.
    #[serde(rename = "better")]
    Better,
    /// The interval holds zero, or no trial was better in the training.
    #[serde(rename = "no gain")]
    NoGain,
    /// The whole interval is above zero.
    #[serde(rename = "worse")]
    Worse,
    /// They would be better, but a limit is exceeded.
    #[serde(rename = "beyond a limit")]
    BeyondLimit,
    /// Too few flows end in a run.
    #[serde(rename = "cannot say")]
    CannotSay,
}

/// How much larger something is with some numbers than with others on the same held-back runs. A pair is a seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Of what: a quantity, or a value of the sweep.
    pub of: String,
    /// As a share: -0.5 is half.
    pub change: f64,
    /// The interval that holds the true one with 95 %.
    pub interval: (f64, f64),
}

/// A number that was searched.
#[derive(Clone, Debug, Serialize)]
pub struct TunedNumber {
    /// Its key.
    pub name: String,
    /// As the policy has it.
    pub written: String,
    /// The best.
    pub best: String,
    /// Least and largest value searched.
    pub range: (String, String),
    /// A tenth of the range (of logarithms) below and above the best: the value, and how much larger the objective is with it on held-back
    /// runs than with the best. Absent where the best is at that end of the range, or outside of it.
    pub beside: [Option<Change>; 2],
}

impl Tuned {
    /// Writes the policy to `path`, which is there whole or not at all.
    ///
    /// # Errors
    /// The system's, with the file.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::Run(format!("{}: {error}", path.display()));
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let written = fs::write(&partial, &self.text).and_then(|()| fs::rename(&partial, path));
        written.map_err(|error| {
            let _ = fs::remove_file(&partial);
            failed(error)
        })
    }
}

/// The search's own random numbers; a run's come from its seed.
const SEARCH_SEED: u64 = 1;
/// Trials whose runs are simulated together, so that cores do not wait for each other after every trial. It is part of the answer: what
/// the first of them shows does not yet guide the last.
const ROUND: u32 = 4;
/// A number stays as it is written if the others alone keep this share of the training's gain.
const KEPT: f64 = 0.95;

/// Searches a policy's numbers.
///
/// # Errors
/// The input is wrong, a run failed, or the user stopped it.
pub fn tune(request: &TuneRequest, monitor: Monitor<'_>) -> Result<Tuned, Failure> {
    let mut bench = Bench::new(request, monitor)?;
    let progress = Progress::of(monitor, bench.runs_in_all());
    let parts = Parts(monitor.sink());
    bench.begin(Monitor::new(&parts, monitor.stop()))?;
    let mut search = Search::new(&bench.numbers, SEARCH_SEED);
    let mut best = Best { values: bench.written(), score: 0.0, trials: 0, influence: false };
    search.tell(&best.values, best.score);
    while best.trials < request.trials {
        let proposals = bench.proposals(&mut search, ROUND.min(request.trials - best.trials));
        if proposals.is_empty() {
            progress.note(&format!("there are no other values in these ranges: {} were tried", best.trials));
            break;
        }
        for (values, outcome) in proposals.iter().zip(bench.train(&proposals, best.trials)?) {
            best.trials += 1;
            best.influence |= outcome.influence;
            search.tell(values, outcome.score);
            if outcome.score < best.score {
                let words = bench.words(values, outcome.score);
                progress.note(&format!("trial {} of {}: {words}", best.trials, request.trials));
                best = Best { values: values.clone(), score: outcome.score, ..best };
            }
        }
    }
    let best = bench.simplest(best)?;
    bench.judge(&best)
}

/// The best numbers so far.
struct Best {
    values: Vec<f64>,
    /// A mean logarithm; zero for the policy as it is written.
    score: f64,
    /// So many were tried.
    trials: u32,
    /// Whether any changed anything.
    influence: bool,
}
