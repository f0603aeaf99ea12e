//! The rows of `--json` and of the report, the text output, and the figures.

use super::cases::Part;
use super::measured::{Measure, Measured};
use crate::statistics::median;
use crate::table::{Table, optional, paragraph};
use results::{Comparison, Curve, Figure, Panel, Scale};

/// A row for each quantity of each setting and variant, in the order of the runs: the medians of the seeds.
pub fn comparisons(measured: &[Measured]) -> Vec<Comparison> {
    let mut rows: Vec<(Comparison, Vec<f64>)> = Vec::new();
    for run in measured {
        for measure in &run.measures {
            let new = row(run, measure);
            let is_same = |(row, _): &&mut (Comparison, Vec<f64>)| {
                row.figure == new.figure && row.case == new.case && row.quantity == new.quantity
            };
            match rows.iter_mut().find(is_same) {
                Some((_, values)) => values.push(measure.ours),
                None => rows.push((new, vec![measure.ours])),
            }
        }
    }
    let of_seeds =
        |(row, values): (Comparison, Vec<f64>)| Comparison { ours: median(&values).unwrap_or(row.ours), ..row };
    rows.into_iter().map(of_seeds).filter(|row| row.ours.is_finite()).collect()
}

fn row(run: &Measured, measure: &Measure) -> Comparison {
    Comparison {
        figure: run.case.part.name().to_string(),
        case: case(&run.case.setting, &run.case.variant),
        quantity: measure.quantity.to_string(),
        unit: measure.unit.to_string(),
        paper: measure.paper,
        ours: measure.ours,
        note: String::new(),
    }
}

fn case(setting: &str, variant: &str) -> String {
    format!("{setting}/{variant}")
}

/// A number of the study.
pub fn ours(rows: &[Comparison], part: Part, (setting, variant): (&str, &str), quantity: &str) -> Option<f64> {
    let case = case(setting, variant);
    let is = |row: &&Comparison| row.figure == part.name() && row.case == case && row.quantity == quantity;
    rows.iter().find(is).map(|row| row.ours)
}

/// The settings of a part, and the variants of each, in order.
pub fn groups(rows: &[Comparison], part: Part) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows.iter().filter(|row| row.figure == part.name()) {
        let Some((setting, variant)) = split(&row.case) else { continue };
        match groups.iter_mut().find(|(known, _)| known == setting) {
            Some((_, variants)) if variants.iter().any(|known| known == variant) => {}
            Some((_, variants)) => variants.push(variant.to_string()),
            None => groups.push((setting.to_string(), vec![variant.to_string()])),
        }
    }
    groups
}

/// Setting and variant: a setting may have a slash, as in `Gbit/s`.
fn split(case: &str) -> Option<(&str, &str)> {
    case.rsplit_once('/')
}

/// A table for each part, and the findings.
pub fn render(rows: &[Comparison], findings: &[String]) -> String {
    const ENFORCED: [&str; 10] = [
        "queue, median",
        "queue, 99 %",
        "bottleneck in use",
        "drops",
        "marked",
        "marks taken off",
        "echoes",
        "ACKs",
        "short transfers, median",
        "short transfers, 99 %",
    ];
    const SLOWED: [&str; 6] = [
        "background",
        "bottleneck in use",
        "queue, median",
        "queue, 99 %",
        "short transfers, median",
        "short transfers, 99 %",
    ];
    let mut text = String::new();
    for (part, columns) in [(Part::Enforced, &ENFORCED[..]), (Part::Marks, &["window"]), (Part::Slowed, &SLOWED)] {
        let unit = |quantity: &&str| {
            let row = rows.iter().find(|row| row.figure == part.name() && row.quantity == **quantity);
            row.map_or(quantity.to_string(), |row| format!("{quantity} ({})", row.unit))
        };
        let theory = (part == Part::Marks).then(|| "by the equation".to_string());
        let headings = ["", ""].map(str::to_string).into_iter().chain(columns.iter().map(unit)).chain(theory);
        let mut table = Table::new(headings);
        for (setting, variants) in groups(rows, part) {
            for variant in variants {
                let place = (setting.as_str(), variant.as_str());
                let cells = columns.iter().map(|quantity| optional(ours(rows, part, place, quantity)));
                let theory = (part == Part::Marks).then(|| optional(equation(rows, place)));
                table.row([setting.clone(), variant.clone()].into_iter().chain(cells).chain(theory).collect());
            }
        }
        for piece in ["\n", part.name(), ":\n", &table.render()] {
            text.push_str(piece);
        }
    }
    for finding in findings {
        text.push('\n');
        text.push_str(&paragraph(finding));
        text.push('\n');
    }
    text
}

/// The window that the equation gives.
pub fn equation(rows: &[Comparison], (setting, variant): (&str, &str)) -> Option<f64> {
    let case = case(setting, variant);
    rows.iter().find(|row| row.figure == Part::Marks.name() && row.case == case).and_then(|row| row.paper)
}

/// The report's figures; of several seeds the first is drawn.
pub fn figures(measured: &[Measured], rows: &[Comparison]) -> Vec<Figure> {
    let enforced = |curve: fn(&Measured) -> &Option<Curve>, x: &str, y: &str, x_scale: Scale| {
        let mut panels: Vec<Panel> = Vec::new();
        for run in measured.iter().filter(|run| run.case.part == Part::Enforced && run.case.seed == 1) {
            let Some(curve) = curve(run).clone() else { continue };
            match panels.iter_mut().find(|panel| panel.title == run.case.setting) {
                Some(panel) => panel.curves.push(curve),
                None => panels.push(Panel {
                    title: run.case.setting.clone(),
                    x: x.to_string(),
                    y: y.to_string(),
                    x_scale,
                    curves: vec![curve],
                    ..Panel::default()
                }),
            }
        }
        panels
    };
    let figure = |title: &str, text: &str, panels: Vec<Panel>| Figure {
        title: title.to_string(),
        text: text.to_string(),
        panels,
    };
    vec![
        figure(
            "The queue over time",
            "N long flows and short transfers through one bottleneck, the first 20 ms after the warm-up.",
            enforced(|run| &run.queue, "time (ms)", "queue (packets)", Scale::Linear),
        ),
        figure(
            "The queue’s distribution",
            "Share of the samples in which the queue was at most this long.",
            enforced(|run| &run.queues, "queue (packets)", "samples (%)", Scale::Linear),
        ),
        figure(
            "Short transfers beside the long flows",
            "Share of the transfers of 20 kB that took at most this long.",
            enforced(|run| &run.times, "time (ms)", "transfers (%)", Scale::Log),
        ),
        figure(
            "Windows by the share of marks",
            "Mean window of one flow whose data is marked at random; dashed: the equation.",
            vec![windows(rows)],
        ),
        figure(
            "Background flows slowed by marks",
            "Four long flows whose data is marked, and requests of 50 kB beside them.",
            vec![
                by_share(rows, "background", "background (Mbit/s)"),
                by_share(rows, "short transfers, 99 %", "requests, 99 % (ms)"),
            ],
        ),
    ]
}

fn percent(variant: &str) -> f64 {
    variant.trim_end_matches(" %").parse().unwrap_or(f64::NAN)
}

fn windows(rows: &[Comparison]) -> Panel {
    let mut curves = Vec::new();
    for (algorithm, shares) in groups(rows, Part::Marks) {
        let points = |of: &dyn Fn((&str, &str)) -> Option<f64>| -> Vec<(f64, f64)> {
            shares.iter().filter_map(|share| Some((percent(share), of((&algorithm, share))?))).collect()
        };
        let measured = points(&|place| ours(rows, Part::Marks, place, "window"));
        let equation = points(&|place| equation(rows, place));
        curves.push(Curve { name: algorithm.clone(), points: measured, ..Curve::default() });
        let name = format!("{algorithm}, by the equation");
        curves.push(Curve { name, points: equation, dashed: true, ..Curve::default() });
    }
    Panel {
        title: "One flow, round trip of 1 ms".to_string(),
        x: "marked packets (%)".to_string(),
        y: "window (segments)".to_string(),
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        curves,
    }
}

fn by_share(rows: &[Comparison], quantity: &str, y: &str) -> Panel {
    let curve = |(algorithm, shares): (String, Vec<String>)| {
        let at = |share: &String| Some((percent(share), ours(rows, Part::Slowed, (&algorithm, share), quantity)?));
        let points = shares.iter().filter_map(at).filter(|(share, _)| *share > 0.0).collect();
        Curve { name: algorithm.clone(), points, ..Curve::default() }
    };
    Panel {
        title: y.to_string(),
        x: "marked packets (%)".to_string(),
        y: y.to_string(),
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        curves: groups(rows, Part::Slowed).into_iter().map(curve).collect(),
    }
}
