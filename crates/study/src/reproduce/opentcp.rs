//! OpenTCP in a data center (HotNets 2012): Figures 1, 4 and 5, and the text's statements on windows and jobs.
//!
//! Runs the scenario `scenarios/opentcp-scinet.toml`, which is compiled in, without a policy and with the policies opentcp1 and opentcp2 on
//! half of the hosts. Compares the treated hosts with a network without a policy, as the paper does, and with the control group, as it
//! does not. A small network follows, simulated and, with the rights to emulate, on real kernels; and a day of a core link.

mod cases;
mod day;
mod findings;
mod measured;
mod paper;
mod rows;
mod tables;

use super::{Reproduced, Request, Study, Wanted};
use crate::emu::{self, Attempts, Origin};
use crate::failure::Failure;
use crate::monitor::Monitor;
use crate::run::{Words as _, speed};
use crate::slower::Slower;
use crate::source::Source;
use crate::sweep::{Job, run_all};
use cases::{Case, Cases, KERNEL, PAPER, PARTS, SMALL, Setting, Variant, WHOLE};
use day::Day;
use measured::Run;
use results::{Comparison, Curve, Figure, Panel, RunInfo, Story, SweepWriter};
use std::time::Instant;
use units::Time;

/// The study.
pub const STUDY: Study = Study {
    name: "opentcp",
    about: "OpenTCP in a data centre (HotNets 2012): Figures 1, 4 and 5, windows, jobs; simulated, as root also on kernels (smaller)",
    reproduce,
};

/// Runs the study.
fn reproduce(request: &Request, monitor: Monitor<'_>) -> Result<Reproduced, Failure> {
    let wanted = request.backend;
    let absent = wanted.absent_kernels(emu::absent, monitor)?;
    let mut settings: Vec<&Setting> = Vec::new();
    if wanted != Wanted::Kernel {
        settings.extend([PAPER, SMALL]);
        if request.full {
            settings.extend([PARTS, WHOLE]);
        }
    }
    let mut jobs = Vec::new();
    for setting in &settings {
        jobs.extend(cases::jobs(request, setting)?);
    }
    let simulated = jobs.len();
    if wanted != Wanted::Kernel {
        jobs.push(cases::day()?);
    }
    let emulated = if absent.is_none() { cases::jobs(request, KERNEL)? } else { Vec::new() };
    let warmup = jobs.iter().chain(&emulated).next().map_or(Time::ZERO, |job| job.scenario.measure.warmup);
    let mut writer = SweepWriter::create(&request.out).map_err(|error| Failure::bad_out(&error))?;
    let (began, mut hops) = (Instant::now(), 0);
    let (mut runs, mut day, mut checks) = (Vec::new(), None, Vec::new());
    if !jobs.is_empty() {
        run_all(&jobs, request.workers, monitor, |run| {
            hops += run.summary.packet_hops;
            // results come in the order of the jobs
            if runs.len() < simulated {
                runs.push(Run::of(&run, warmup));
            } else {
                day = Some(Day::of(&run));
            }
            writer.add(&run).map_err(|error| Failure::writing(&error))
        })?;
    }
    if !emulated.is_empty() {
        tell_time(&emulated, request.slower, monitor);
        settings.push(KERNEL);
        let attempts = Attempts { slower: request.slower, repeats: emulated.len() as u32 / 2 };
        let source = Source::built_in(cases::SCINET.0, cases::SCINET.1);
        let origin = Origin { source: &source, sets: &request.sets };
        emu::run_all(&emulated, origin, monitor, attempts, |run, check| {
            hops += run.summary.packet_hops;
            runs.push(Run::of(&run, warmup));
            checks.push(check);
            writer.add(&run).map_err(|error| Failure::writing(&error))
        })?;
    }
    let cases = gathered(&settings, runs, request.seeds);
    let mut comparisons = rows::comparisons(&cases);
    comparisons.extend(day.iter().flat_map(Day::comparisons));
    let findings = findings::findings(&cases, day.as_ref(), &checks);
    let info = RunInfo { emulations: checks, ..speed(began, hops, request.workers.min(jobs.len().max(1))) };
    let story = story(&cases, day.as_ref(), &comparisons, &findings);
    writer.finish(&story, Some(&info)).map_err(|error| Failure::writing(&error))?;
    monitor.note(&info.words());
    Ok(Reproduced { tables: tables::render(&cases, &findings), findings, comparisons, wall_s: info.wall_s })
}

fn tell_time(emulated: &[Job], slower: Slower, monitor: Monitor<'_>) {
    let seconds: f64 = emulated.iter().map(|job| slower.first().real(job.scenario.duration).as_secs_f64()).sum();
    monitor.note(&format!("kernel: {} runs {} {seconds:.0} s", emulated.len(), slower.pace()));
}

/// The runs in the order of their jobs, by setting and variant.
fn gathered(settings: &[&'static Setting], runs: Vec<Run>, seeds: u32) -> Cases {
    let mut runs = runs.into_iter();
    let mut cases = Vec::new();
    for setting in settings {
        for variant in setting.variants {
            let runs = runs.by_ref().take(seeds as usize).collect();
            cases.push(Case { setting, variant: *variant, runs });
        }
    }
    Cases(cases)
}

/// The report's text and figures.
fn story(cases: &Cases, day: Option<&Day>, comparisons: &[Comparison], findings: &[String]) -> Story {
    let curves = |setting: &Setting, of: fn(&Run) -> &Vec<f64>| -> Vec<Curve> {
        let curve = |case: &Case| Curve::distribution(case.variant.name(), of(&case.runs[0]));
        cases.0.iter().filter(|case| case.setting == setting && !of(&case.runs[0]).is_empty()).map(curve).collect()
    };
    let paper = |variant: Variant| Curve {
        name: format!("{}, paper", variant.name()),
        points: paper::drops(variant.name()).into_iter().map(|(drops, share)| (drops, share * 100.0)).collect(),
        dashed: true,
        ..Curve::default()
    };
    let panel = |x: &str, title: &str, curves| Panel {
        title: title.to_string(),
        x: x.to_string(),
        y: "share (%)".to_string(),
        curves,
        ..Panel::default()
    };
    let times = |setting: &Setting, title: &str, of: fn(&Run) -> &Vec<f64>| {
        let cases = cases.0.iter().filter(|case| case.setting == setting && !of(&case.runs[0]).is_empty());
        let groups: Vec<_> = cases.map(|case| (case.variant.name(), of(&case.runs[0]).as_slice())).collect();
        Panel::distributions(title, "completion time (ms)", "messages", &groups)
    };
    let figure_4 = Figure {
        title: "Figure 4: flow completion times".to_string(),
        text: "SIMULATED. Messages of treated hosts under opentcp1 and opentcp2; of all hosts in a network without a policy."
            .to_string(),
        panels: [
            times(PAPER, "all-to-all", |run| &run.treated.fct_ms),
            times(PAPER, "exchange", |run| &run.treated.exchange_ms),
        ]
        .concat(),
    };
    let figure_5 = Figure {
        title: "Figure 5: drops".to_string(),
        text: "Retransmitted segments, by connection, and the paper’s data, which does not state what a flow is."
            .to_string(),
        panels: vec![
            panel("drops", "ours, simulated", curves(PAPER, |run| &run.treated.drops)),
            panel("drops", "the paper’s", [Variant::Default, Variant::OpenTcp1, Variant::OpenTcp2].map(paper).to_vec()),
        ],
    };
    let in_small = |setting: &Setting, title: &str| times(setting, title, |run| &run.treated.fct_ms);
    let small = Figure {
        title: "A small network".to_string(),
        text:
            "Sixteen hosts at 100 Mbit/s with today’s Linux: messages of treated hosts, simulated and on real kernels."
                .to_string(),
        panels: [in_small(SMALL, "simulated"), in_small(KERNEL, "real kernels")].concat(),
    };
    let mut figures: Vec<Figure> = day.iter().map(|day| day.figure()).chain([figure_4, figure_5, small]).collect();
    for figure in &mut figures {
        figure.panels.retain(|panel| !panel.curves.is_empty());
    }
    figures.retain(|figure| !figure.panels.is_empty());
    Story {
        title: "OpenTCP in a data centre".to_string(),
        lead: "SIMULATED, except the runs called kernel. Racks of 42 hosts at 1 Gbit/s, a 10 Gbit/s uplink each (an assumption), Linux 2.6.18 \
               with BIC, all-to-all and exchange of the Intel MPI Benchmarks with a file system's traffic; after “Rethinking End-to-End Congestion \
               Control in Software-Defined Networks” (HotNets 2012)."
            .to_string(),
        figures,
        paragraphs: findings.to_vec(),
        comparisons: comparisons.to_vec(),
    }
}
