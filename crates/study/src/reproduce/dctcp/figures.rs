//! The report's figures.

use super::cases::{Backend, Kind};
use super::measured::Measured;
use results::{Curve, Figure, Panel};

/// Points of the theory's sawtooth.
const THEORY_POINTS: u32 = 400;

/// The figures for which there are runs.
pub fn figures(measured: &[Measured]) -> Vec<Figure> {
    let figures =
        [queues(measured), distributions(measured), sawtooths(measured), shares(measured), variation(measured)];
    figures.into_iter().filter(|figure| !figure.panels.is_empty()).collect()
}

/// The runs of a kind by setting and backend, in order of the runs; only one seed is drawn.
fn groups(measured: &[Measured], is_kind: fn(Kind) -> bool) -> Vec<(String, Vec<&Measured>)> {
    let mut groups: Vec<(String, Vec<&Measured>)> = Vec::new();
    for run in measured.iter().filter(|run| is_kind(run.case.kind)) {
        let title = format!("{}, {}", links(run), name(run.case.backend));
        match groups.iter_mut().find(|(known, _)| *known == title) {
            Some((_, runs)) if runs.iter().all(|other| other.case.variant != run.case.variant) => runs.push(run),
            Some(_) => {}
            None => groups.push((title, vec![run])),
        }
    }
    groups.sort_by(|a, b| a.0.cmp(&b.0));
    for (title, runs) in &mut groups {
        if runs.iter().any(|run| run.check.as_ref().is_some_and(|check| !check.valid)) {
            title.insert_str(0, "NOT VALID: ");
        }
    }
    groups
}

fn links(run: &Measured) -> String {
    format!("{}bit/s", run.case.setting.replace('M', " M").replace('G', " G"))
}

fn name(backend: Backend) -> &'static str {
    match backend {
        Backend::Sim => "simulator",
        Backend::Kernel => "kernel",
    }
}

fn queues(measured: &[Measured]) -> Figure {
    let panel = |(title, runs): (String, Vec<&Measured>)| Panel {
        title,
        x: "time after the warm-up (s)".to_string(),
        y: "queue (packets)".to_string(),
        curves: runs.iter().flat_map(|run| run.curves.clone()).collect(),
        ..Panel::default()
    };
    Figure {
        title: "Figure 1: the queue over time".to_string(),
        text:
            "Two long flows into one port; lines are means of slices of time, bands their extremes. DCTCP stays near \
               K = 20 packets, TCP fills the buffer."
                .to_string(),
        panels: groups(measured, |kind| kind == Kind::Queue).into_iter().map(panel).collect(),
    }
}

fn distributions(measured: &[Measured]) -> Figure {
    let panel = |(title, runs): (String, Vec<&Measured>)| Panel {
        title,
        x: "queue (packets)".to_string(),
        y: "samples (%)".to_string(),
        curves: runs.iter().filter_map(|run| run.distribution.clone()).collect(),
        ..Panel::default()
    };
    Figure {
        title: "Figure 1: distribution of the queue".to_string(),
        text: "Share of the samples in which the queue was at most this long.".to_string(),
        panels: groups(measured, |kind| kind == Kind::Queue).into_iter().map(panel).collect(),
    }
}

fn sawtooths(measured: &[Measured]) -> Figure {
    let mut panels: Vec<Panel> = Vec::new();
    for (title, runs) in groups(measured, |kind| kind == Kind::Sawtooth) {
        panels.extend(runs.iter().map(|run| Panel {
            title: format!("{}, {title}", run.case.variant),
            x: "time (ms)".to_string(),
            y: "queue (packets)".to_string(),
            curves: run.curves.iter().cloned().chain([theory(run)]).collect(),
            ..Panel::default()
        }));
    }
    Figure {
        title: "Figure 12: the sawtooth".to_string(),
        text:
            "The queue and the equations (dashed) for N flows. The theory has no phase: its curve starts at a trough."
                .to_string(),
        panels,
    }
}

fn theory(run: &Measured) -> Curve {
    let saw = run.case.port.sawtooth();
    let end = run.curves.iter().flat_map(|curve| &curve.points).map(|(ms, _)| *ms).fold(0.0, f64::max);
    let at = |point: u32| f64::from(point) * end / f64::from(THEORY_POINTS);
    let points = (0..=THEORY_POINTS).map(|point| (at(point), saw.at(at(point) / 1e3))).collect();
    Curve { name: "theory".to_string(), points, dashed: true, ..Curve::default() }
}

fn shares(measured: &[Measured]) -> Figure {
    let mut panels: Vec<Panel> = Vec::new();
    for (title, runs) in groups(measured, |kind| matches!(kind, Kind::Convergence { .. })) {
        panels.extend(runs.iter().map(|run| Panel {
            title: format!("{}, {title}", run.case.variant),
            x: "time (s)".to_string(),
            y: "throughput (Mbit/s)".to_string(),
            curves: run.curves.clone(),
            ..Panel::default()
        }));
    }
    Figure {
        title: "Figure 16: convergence".to_string(),
        text: "Five flows to one receiver, started and then stopped one stage apart.".to_string(),
        panels,
    }
}

fn variation(measured: &[Measured]) -> Figure {
    let runs = || measured.iter().filter(|run| run.case.kind == Kind::Variation);
    let mut curves: Vec<Curve> = Vec::new();
    for run in runs() {
        let Some(value) = run.get("coefficient of variation") else { continue };
        let algorithm = run.case.scenario.tcp.cc.label();
        let (name, point) = (format!("{algorithm}, {}", name(run.case.backend)), (run.case.port.flows, value));
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) if curve.points.iter().all(|(flows, _)| *flows < point.0) => curve.points.push(point),
            Some(_) => {}
            None => curves.push(Curve { name, points: vec![point], ..Curve::default() }),
        }
    }
    let panel = Panel {
        title: "100 Mbit/s".to_string(),
        x: "flows".to_string(),
        y: "coefficient of variation".to_string(),
        curves,
        ..Panel::default()
    };
    Figure {
        title: "Figure 16: variation of each flow’s throughput".to_string(),
        text: "Standard deviation over mean of a flow’s throughput in intervals of 100 ms, mean over the flows."
            .to_string(),
        panels: if panel.curves.is_empty() { Vec::new() } else { vec![panel] },
    }
}
