//! `opentcp policy try`: a policy in the simulator, against the same network without it.
//!
//! Each seed is run twice, and the two runs make one pair of the verdict's test: the whole network with the policy, treated hosts
//! and the others, against the whole network without. So what treated hosts do to the others counts.

use super::algorithm_facts;
use crate::failure::Failure;
use crate::stop::Stop;
use crate::sweep::{Job, algorithm_names, check_algorithm_files, run_all};
use crate::table::Table;
use crate::terminal::{print, print_json};
use policy::{ArmObservation, Judgement, PeriodObservation, Policy, Verdict, VerdictReport};
use results::{CueEvent, RunResults};
use scenario::{Known, Scenario};
use serde::Serialize;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// The answer where there is too little to compare.
const CANNOT_SAY: &str = "cannot say";

/// Fewer pairs have no interval.
const SEEDS_MIN: u32 = 5;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The policy file (TOML)
    file: PathBuf,
    /// The network and its traffic (TOML); a policy that it names is not used
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,
    /// Seeds 1 to N, each with the policy and without
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(i64::from(SEEDS_MIN)..=1000))]
    seeds: u32,
    /// Set a key of the scenario, dotted; may be given many times. `policy.period` is T in the simulated network
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Runs at the same time [default: as many as there are cores]. Results do not depend on it
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// One JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Tried {
    policy: String,
    answer: &'static str,
    seeds: u32,
    /// Of these, in how many CUEs were sent.
    acted: u32,
    /// Of these, in how many the Oracle ended the rollout by itself.
    rolled_back: u32,
    verdict: VerdictReport,
}

/// Tries a policy.
///
/// # Errors
/// What is wrong with the input, or that a run failed, or that the user stopped it.
pub fn try_policy(args: &Args) -> Result<(), Failure> {
    let (jobs, policy) = jobs(args)?;
    check_algorithm_files(&jobs)?;
    let workers = args.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let mut verdict = Verdict::of_pairs(&policy);
    let mut without = None;
    let (mut acted, mut rolled_back) = (0, 0);
    run_all(&jobs, workers, &Stop::on_signals(), |run| {
        // without the policy, then with it, seed by seed
        let Some(control) = without.take() else {
            without = Some(observed(&run));
            return Ok(());
        };
        acted += u32::from(run.cues.iter().any(|cue| cue.event == CueEvent::Sent));
        rolled_back += u32::from(run.summary.extra.get("policy.rolled_back").is_some_and(|flag| *flag > 0.0));
        verdict.observe(&PeriodObservation { treated: observed(&run), control, acting: true });
        Ok(())
    })?;
    let verdict = verdict.report();
    let tried =
        Tried { policy: policy.name.clone(), answer: answer(&verdict), seeds: args.seeds, acted, rolled_back, verdict };
    if args.json { print_json(&tried) } else { print(&words(&tried)) }
}

/// Two runs a seed: without the policy, and with it.
fn jobs(args: &Args) -> Result<(Vec<Job>, Policy), Failure> {
    // a policy's own mistakes are told as those of `check`
    let policy = super::load(&args.file)?;
    let path = std::path::absolute(&args.file).map_err(|error| Failure::Input(error.to_string()))?;
    let seeds: Vec<String> = (1..=args.seeds).map(|seed| seed.to_string()).collect();
    let mut sets = vec![format!("policy.file={}", path.display()), format!("sweep.seed=[{}]", seeds.join(", "))];
    sets.extend_from_slice(&args.sets);
    let (names, facts) = (algorithm_names(), algorithm_facts());
    let known = Known { algorithms: &names, policy: policy::Known { algorithms: &facts } };
    let loaded = Scenario::load(&args.scenario, &sets, known).map_err(|diagnostic| Failure::located(&diagnostic))?;
    if let Some((key, _)) = loaded.runs.iter().flat_map(|run| &run.parameters).find(|(key, _)| key != "seed") {
        return Err(Failure::Input(format!(
            "try compares one network with and without a policy: the scenario sweeps `{key}`"
        )));
    }
    let mut jobs = Vec::new();
    for run in loaded.runs {
        let mut scenario = run.scenario;
        scenario.measure.messages = true;
        let without = Scenario { policy: None, ..scenario.clone() };
        for (scenario, words) in [(without, "without"), (scenario, "with")] {
            jobs.push(Job {
                name: format!("seed {}, {words} the policy", scenario.seed),
                parameters: Vec::new(),
                scenario,
            });
        }
    }
    Ok((jobs, policy))
}

/// A whole run, as one side of a comparison.
fn observed(run: &RunResults) -> ArmObservation {
    let mut arm = ArmObservation::default();
    let mut record = |ns: u64| arm.fct_ns.record(ns).expect("a histogram grows as it must");
    run.messages.iter().for_each(|message| record(message.end_ns - message.start_ns));
    // what is waited for on a connection with messages is a message
    let kept: BTreeSet<u64> = run.messages.iter().map(|message| message.flow).collect();
    let flows = run.flows.iter().filter(|flow| !kept.contains(&flow.flow));
    flows.filter_map(results::FlowRow::fct_ns).for_each(record);
    arm.segments = run.flows.iter().map(|flow| flow.data_packets_sent).sum();
    arm.retransmits = run.flows.iter().map(|flow| flow.retransmits).sum();
    arm
}

fn answer(verdict: &VerdictReport) -> &'static str {
    match verdict.judgement {
        Judgement::Helping => "helps",
        Judgement::Hurting => "hurts",
        Judgement::Unclear if verdict.is_bounded() => "no difference",
        Judgement::Unclear => CANNOT_SAY,
    }
}

fn words(tried: &Tried) -> String {
    let mut table = Table::new(["quantity", "change %", "from", "to", "pairs"]);
    for quantity in &tried.verdict.quantities {
        let percent = |share: Option<f64>| share.map_or("–".to_string(), |share| format!("{:+.1}", share * 100.0));
        table.row(vec![
            quantity.name.to_string(),
            percent(quantity.change),
            percent(quantity.interval.map(|(low, _)| low)),
            percent(quantity.interval.map(|(_, high)| high)),
            quantity.pairs.to_string(),
        ]);
    }
    let Tried { policy, answer, seeds, acted, rolled_back, verdict } = tried;
    let ended = match rolled_back {
        0 => String::new(),
        _ => format!(" In {rolled_back} it was rolled back."),
    };
    let seen = match verdict.judgement {
        Judgement::Unclear if verdict.is_bounded() => "makes no difference that can be seen",
        Judgement::Unclear => "cannot be judged here: too few flows end in a run",
        _ => answer,
    };
    format!(
        "SIMULATED: `{policy}` {seen}: {}\n\n{}\nThe whole network with the policy against the same without it; from, to: with 95 % \
         confidence. The policy acted in {acted} of {seeds} seeds.{ended}\n",
        verdict.reason,
        table.render()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::{Disk, Input};

    const POLICY: &str = "mode = \"enforce\"\nperiod = \"20 ms\"\n[objective]\nminimize = \"network.fct_p99\"\n[[rule]]\nname = \"r\"\n\
                          when = \"network.max_link_utilization < 0.99\"\nset = { SET }\n";

    fn policy(set: &str) -> Policy {
        let facts = algorithm_facts();
        let known = policy::Known { algorithms: &facts };
        Policy::parse("p.toml", &POLICY.replace("SET", set), known).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// A run of some three hundred flows.
    fn run(seed: u32) -> ArmObservation {
        let text = "duration = \"150 ms\"\n[network]\ntopology = { star = { hosts = 4 } }\nrate = \"1 Gbit/s\"\ndelay = \"2 us\"\n\
                    queue = { drop_tail = { packets = 20 } }\n[[traffic]]\npoisson = { flows_per_second = 2500, sizes = \"sizes.csv\" }\n";
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("sizes.csv"), "bytes,cdf\n1000,0\n20000,0.9\n200000,1\n").unwrap();
        let names = algorithm_names();
        let known = Known { algorithms: &names, ..Known::default() };
        let files = Disk { base: folder.path().to_path_buf() };
        let sets = [format!("seed={seed}")];
        let input = Input { name: "s.toml", text, sets: &sets, known, files: &files };
        let loaded = Scenario::parse(&input).unwrap_or_else(|error| panic!("{}", error.render(false)));
        observed(&sim::simulate(&loaded.runs[0].scenario, &mut ()).unwrap())
    }

    #[test]
    fn two_networks_of_which_neither_has_a_policy_differ_in_at_most_five_of_a_hundred_trials() {
        const PAIRS: u32 = 6;
        let policy = policy("initial_cwnd = 10");
        let mut differ = [0; 4];
        for trial in 0..100 {
            let mut verdict = Verdict::of_pairs(&policy);
            for pair in 0..PAIRS {
                let seed = (trial * PAIRS + pair) * 2 + 1;
                verdict.observe(&PeriodObservation { treated: run(seed), control: run(seed + 1), acting: true });
            }
            let report = verdict.report();
            assert!(report.quantities.iter().all(|quantity| quantity.interval.is_some()), "{report:?}");
            for (differ, quantity) in differ.iter_mut().zip(&report.quantities) {
                *differ += u32::from(quantity.judgement != Judgement::Unclear);
            }
        }
        println!("of 100 trials: p50, p90, p99, drops {differ:?} differ");
        assert!(differ.iter().all(|trials| *trials <= 5), "{differ:?}");
    }
}
