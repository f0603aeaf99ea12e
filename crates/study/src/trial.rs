//! A policy in the simulator, compared with the same network without it.
//!
//! Each seed is run with and without the policy, and the two runs are a pair of the verdict's test. They are compared over all hosts, so
//! the policy's effect on hosts that it does not treat counts, too.
//!
//! A rule that was never on has a reason: what its condition asked for, which values were seen, and what withheld it.

use crate::failure::Failure;
use crate::fast::model_of;
use crate::known::{check_algorithm_files, parse_scenario, read_policy};
use crate::monitor::Monitor;
use crate::request::all_cores;
use crate::source::Source;
use crate::sweep::{Job, run_all};
use crate::table::Table;
use policy::{ArmObservation, Judgement, Mode, PeriodObservation, Policy, Rule, Seen, Verdict, VerdictReport};
use results::{CueEvent, RuleRow, RunResults};
use scenario::{Disk, FileRef, Files, Scenario};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// A policy to try, and the network to try it in.
#[derive(Clone, Debug)]
pub struct TrialRequest {
    /// The policy.
    pub policy: Source,
    /// The network and its traffic; a policy in it is ignored.
    pub scenario: Source,
    /// Seeds 1 to N, each run with and without the policy. Fewer than [`TrialRequest::SEEDS_MIN`] are refused.
    pub seeds: u32,
    /// Overrides of the scenario, dotted: `KEY=VALUE`.
    pub sets: Vec<String>,
    /// Simulations in parallel. The answer does not depend on it.
    pub workers: usize,
    /// Simulate a scale model instead; see [`run_fast`](crate::run_fast).
    pub fast: bool,
}

impl TrialRequest {
    /// Fewer pairs give no interval.
    pub const SEEDS_MIN: u32 = 5;

    /// Ten seeds, on all CPUs.
    pub fn new(policy: impl Into<Source>, scenario: impl Into<Source>) -> TrialRequest {
        let (policy, scenario) = (policy.into(), scenario.into());
        TrialRequest { policy, scenario, seeds: 10, sets: Vec::new(), workers: all_cores(), fast: false }
    }
}

/// The outcome.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// The policy's name.
    pub policy: String,
    /// `helps`, `hurts`, `no difference`, or `cannot say`: too few data.
    pub answer: &'static str,
    /// A scale model was simulated.
    pub model: bool,
    /// Pairs of runs.
    pub seeds: u32,
    /// Pairs in which CUEs were sent.
    pub acted: u32,
    /// Pairs in which the Oracle rolled the policy back.
    pub rolled_back: u32,
    /// The changes with their intervals.
    pub verdict: VerdictReport,
    /// Why rules that were never on were not, a line each.
    pub silent: Vec<String>,
}

impl Tried {
    /// The answer in words, with a table of the changes.
    pub fn words(&self) -> String {
        let mut table = Table::new(["quantity", "change %", "from", "to", "pairs"]);
        for quantity in &self.verdict.quantities {
            let percent =
                |share: Option<f64>| share.map_or("–".to_string(), |share| format!("{:+.1}", share * 100.0));
            table.row(vec![
                quantity.name.to_string(),
                percent(quantity.change),
                percent(quantity.interval.map(|(low, _)| low)),
                percent(quantity.interval.map(|(_, high)| high)),
                quantity.pairs.to_string(),
            ]);
        }
        let Tried { policy, answer, model, seeds, acted, rolled_back, verdict, silent } = self;
        let silent = silent.iter().flat_map(|line| ["\n", line.as_str(), "\n"]).collect::<String>();
        let ended = match rolled_back {
            0 => String::new(),
            _ => format!(" In {rolled_back} it was rolled back."),
        };
        let seen = match verdict.judgement {
            Judgement::Unclear if verdict.is_bounded() => "makes no difference that can be detected",
            Judgement::Unclear => "cannot be judged here: too few flows end in a run",
            _ => answer,
        };
        format!(
            "{}: `{policy}` {seen}: {}\n\n{}\nThe whole {} with the policy compared with the same without it; from, to: the 95 % \
             confidence interval. The policy acted in {acted} of {seeds} seeds.{ended}\n{silent}",
            if *model { "SCALE MODEL" } else { "SIMULATED" },
            verdict.reason,
            table.render(),
            if *model { "model" } else { "network" },
        )
    }
}

/// Tries a policy.
///
/// # Errors
/// The input is wrong, a run failed, or the user stopped it.
pub fn try_policy(request: &TrialRequest, monitor: Monitor<'_>) -> Result<Tried, Failure> {
    if request.seeds < TrialRequest::SEEDS_MIN {
        return Err(Failure::Input(format!("a trial needs at least {} seeds", TrialRequest::SEEDS_MIN)));
    }
    let (jobs, policy) = jobs(request)?;
    check_algorithm_files(&jobs, monitor)?;
    let mut verdict = Verdict::of_pairs(&policy);
    let mut without = None;
    let mut rules: Vec<RuleRow> = Vec::new();
    let (mut acted, mut rolled_back) = (0, 0);
    run_all(&jobs, request.workers, monitor, |run| {
        // without the policy, then with it, seed by seed
        let Some(control) = without.take() else {
            without = Some(observed(&run));
            return Ok(());
        };
        rules.resize_with(run.rules.len(), RuleRow::default);
        rules.iter_mut().zip(&run.rules).for_each(|(sum, row)| sum.add(row));
        acted += u32::from(run.cues.iter().any(|cue| cue.event == CueEvent::Sent));
        rolled_back += u32::from(run.summary.extra.get("policy.rolled_back").is_some_and(|flag| *flag > 0.0));
        verdict.observe(&PeriodObservation { treated: observed(&run), control, acting: true });
        Ok(())
    })?;
    let verdict = verdict.report();
    let silent = silent(&policy, &rules, &jobs[1].scenario);
    let (policy, answer) = (policy.name, answer(&verdict));
    Ok(Tried { policy, answer, model: request.fast, seeds: request.seeds, acted, rolled_back, verdict, silent })
}

/// The scenario's files, and the policy by its name.
pub(crate) struct WithPolicy<'a> {
    /// Where the scenario's files are.
    pub disk: Disk,
    /// The policy's.
    pub name: &'a str,
    /// The policy's.
    pub text: String,
}

impl Files for WithPolicy<'_> {
    fn resolve(&self, written: &str) -> FileRef {
        if written == self.name {
            return FileRef { written: written.to_string(), path: PathBuf::from(written) };
        }
        self.disk.resolve(written)
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        if path == Path::new(self.name) { Ok(self.text.clone()) } else { self.disk.read(path) }
    }
}

/// The name by which a scenario elsewhere names the policy.
pub(crate) fn written(policy: &Source) -> Result<String, Failure> {
    match policy {
        Source::File(path) => {
            let path = std::path::absolute(path).map_err(|error| Failure::Input(error.to_string()))?;
            Ok(path.display().to_string())
        }
        Source::Text { name, .. } => Ok(name.clone()),
    }
}

/// Two runs per seed: without the policy, then with it.
fn jobs(request: &TrialRequest) -> Result<(Vec<Job>, Policy), Failure> {
    // a policy's mistakes are reported as by `check`
    let policy = read_policy(&request.policy)?;
    let written = written(&request.policy)?;
    let files = WithPolicy { disk: request.scenario.disk(), text: request.policy.text("policy")?, name: &written };
    let seeds: Vec<String> = (1..=request.seeds).map(|seed| seed.to_string()).collect();
    let mut sets = vec![format!("policy.file={written}"), format!("sweep.seed=[{}]", seeds.join(", "))];
    sets.extend_from_slice(&request.sets);
    let text = request.scenario.text("scenario")?;
    let runs = parse_scenario(&request.scenario.name(), &text, &sets, &files)?;
    if let Some((key, _)) = runs.iter().flat_map(|run| &run.parameters).find(|(key, _)| key != "seed") {
        return Err(Failure::Input(format!(
            "try compares one network with and without a policy: the scenario sweeps `{key}`"
        )));
    }
    let mut jobs = Vec::new();
    for run in runs {
        let mut scenario = if request.fast { model_of(&run.scenario)? } else { run.scenario };
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

/// A whole run, as one arm of the comparison.
pub(crate) fn observed(run: &RunResults) -> ArmObservation {
    let mut arm = ArmObservation::default();
    let mut record = |ns: u64| arm.fct_ns.record(ns).expect("the histogram resizes itself");
    run.messages.iter().for_each(|message| record(message.end_ns - message.start_ns));
    // on a connection with messages, completion times are those of messages
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
        Judgement::Unclear | Judgement::NotJudged => "cannot say",
    }
}

/// Of each rule that was on for nobody in any seed, why.
pub(crate) fn silent(policy: &Policy, rows: &[RuleRow], scenario: &Scenario) -> Vec<String> {
    let mut lines = Vec::new();
    if policy.mode == Mode::Observe {
        lines.push("the policy's mode is \"observe\": it sends nothing".to_string());
    }
    let period = scenario.policy.as_ref().map_or(policy.period, |control| control.policy.period);
    if period >= scenario.duration {
        lines.push(format!(
            "T = {period}, and a run lasts {}, so the only decision is at its start, before anything is measured. Set \
             \"policy.period\", such as --set \"policy.period={}\"",
            scenario.duration,
            scenario.duration / 20
        ));
    }
    for (rule, row) in policy.rules.iter().zip(rows).filter(|(_, row)| row.on == 0) {
        lines.push(format!("rule `{}`: {}", rule.name, reasons(rule, row)));
    }
    lines
}

fn reasons(rule: &Rule, row: &RuleRow) -> String {
    let when = rule.when.text().trim();
    let seen = |known: bool| {
        let of = row.seen.iter().filter(|(_, range)| range.is_some() == known);
        of.map(|(what, range)| Seen::named(what, *range).to_string()).collect::<Vec<_>>().join(", ")
    };
    let unknown = match seen(false) {
        never if never.is_empty() => "some value was missing".to_string(),
        never => never,
    };
    let counted = [
        (row.off, format!("`{when}` was false, or the hold time kept it off: {}", seen(true))),
        (row.unknown, format!("`{when}` was not known: {unknown}")),
        (row.no_host, "it matched no treated host".to_string()),
        (row.left_out, "no host had what the algorithm needs".to_string()),
        (row.withheld, format!("withheld: {}", row.withheld_why)),
    ];
    let parts = counted.into_iter().filter(|(n, _)| *n > 0);
    let parts = parts.map(|(n, why)| format!("in {n} of {} decisions {why}", row.decisions));
    parts.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::{algorithm_facts, algorithm_names};
    use scenario::{Disk, Input, Known};

    const POLICY: &str = "mode = \"enforce\"\nperiod = \"20 ms\"\n[objective]\nminimize = \"network.fct_p99\"\n[[rule]]\nname = \"r\"\n\
                          when = \"network.max_link_utilization < 0.99\"\nset = { SET }\n";

    fn policy(set: &str) -> Policy {
        let facts = algorithm_facts();
        let known = policy::Known { algorithms: &facts };
        Policy::parse("p.toml", &POLICY.replace("SET", set), known).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// A run of about three hundred flows.
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
