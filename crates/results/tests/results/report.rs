//! The report as text: the same every time, self-contained, small, and safe with any name.

use crate::common;
use std::fs;

use results::{Cell, Curve, Figure, Grid, Multiples, Panel, RunResults, Story, study_report, write_run, write_sweep};

fn sweep_html(runs: &[RunResults], story: &Story) -> String {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    write_sweep(&out, runs, story, None).unwrap();
    fs::read_to_string(out.join("report.html")).unwrap()
}

fn run_html(run: &RunResults) -> String {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    write_run(&out, run, None).unwrap();
    fs::read_to_string(out.join("report.html")).unwrap()
}

#[test]
fn a_report_refers_to_nothing_outside_itself() {
    let runs = common::study(1);
    for html in [sweep_html(&runs, &common::story(&runs)), run_html(&runs[0])] {
        for outside in ["http:", "https:", "//", "src=", "<link", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}

#[test]
fn a_report_is_the_same_every_time_and_without_odd_numbers() {
    let runs = common::study(1);
    let html = sweep_html(&runs, &common::story(&runs));
    assert_eq!(html, sweep_html(&runs, &common::story(&runs)));
    for odd in ["NaN", "inf\"", "-0.0\""] {
        assert!(!html.contains(odd), "{odd}");
    }
}

#[test]
fn a_story_draws_its_own_figures() {
    let runs = common::study(1);
    let ramp: Vec<(f64, f64)> = (0..1000).map(|i| (f64::from(i), f64::from(i % 50))).collect();
    let theory =
        Curve { name: "a < b".to_owned(), points: vec![(0.0, 1.0), (9.0, 2.0)], dashed: true, ..Curve::default() };
    let panel = Panel {
        title: "measured & computed".to_owned(),
        x: "time (s)".to_owned(),
        y: "queue (packets)".to_owned(),
        curves: vec![Curve::thinned("measured", &ramp), theory],
        ..Panel::default()
    };
    let empty = Panel { title: "nothing".to_owned(), ..Panel::default() };
    let figure = Figure { title: "Figure 7".to_owned(), text: "A ramp.".to_owned(), panels: vec![panel, empty] };
    let html = sweep_html(&runs, &Story { figures: vec![figure], ..common::story(&runs) });
    for part in ["<h2>Figure 7</h2>", "A ramp.", "measured &amp; computed", "a &lt; b", "queue (packets)", "s1 d1"] {
        assert!(html.contains(part), "{part}");
    }
    assert!(html.contains("class=\"band f0\"") && !html.contains("NaN"), "the ramp's extremes are a band");
}

#[test]
fn a_sweep_shows_every_section() {
    let runs = common::study(2);
    let html = sweep_html(&runs, &common::story(&runs));
    for heading in [
        "Compared with the paper",
        "Figure 2: drops, packets",
        "The runs compared",
        "<h2>FCT slowdown</h2>",
        "median size",
        "Flow completion times",
        "at least this long (%), log scale",
        "Queue over time",
        "Congestion windows",
        "What was run",
        "medians over the seeds",
        "routing: ecmp",
    ] {
        assert!(html.contains(heading), "{heading}");
    }
}

#[test]
fn a_run_shows_slowdown_by_size_and_its_unfinished_flows() {
    let html = run_html(&common::run(0, "ecmp", 1));
    for part in [
        "<h2>FCT slowdown</h2>",
        "Slowdown by flow size",
        "6 of 300 flows (2 %) had not finished",
        "<th scope=\"row\">≥ 1 MB</th>",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let mut few = common::run(0, "ecmp", 1);
    few.flows.truncate(100);
    few.summary = results::Summary::of(results::Identity::default(), &few.flows, &few.links);
    assert!(!run_html(&few).contains("<h2>FCT slowdown</h2>"), "a hundred flows are too few");
}

#[test]
fn a_run_that_is_not_valid_says_why_first_and_is_marked_in_each_chart() {
    let mut runs = common::study(1);
    let charts = |html: &str, mark: &str| html.matches(&format!("<figcaption>{mark}")).count();
    let valid = run_html(&runs[0]);
    assert_eq!(charts(&valid, "NOT VALID: "), 0);
    for run in &mut runs[..2] {
        run.parameters.push(("self-check".to_owned(), format!("not valid: {} was late", run.name)));
    }
    let html = run_html(&runs[0]);
    let (why, numbers) = (html.find("was late.").expect("the reason"), html.find("<h2>The run</h2>").expect("numbers"));
    assert!(why < numbers, "the reason comes first");
    assert_eq!(charts(&html, "NOT VALID: "), charts(&html, ""), "each chart has the mark");
    let sweep = sweep_html(&runs, &common::story(&runs));
    let (valid, marked) = (common::study(1).len() - 2, charts(&sweep, "NOT VALID: "));
    assert!(marked > 0 && valid > 0 && marked < charts(&sweep, ""), "{marked} of {}", charts(&sweep, ""));
    assert!(!sweep.contains("self-check: not valid"), "the reason is no heading of charts");
}

#[test]
fn every_line_chart_is_described_and_can_be_read_back() {
    let runs = common::study(1);
    let html = sweep_html(&runs, &common::story(&runs));
    let charts = html.matches("<svg viewBox").count();
    let legends = html.matches("aria-hidden=\"true\"").count();
    let with_axes = html.matches("data-x=\"").count();
    assert!(with_axes > 20, "{with_axes} line charts");
    assert_eq!(html.matches("<desc>").count(), charts - legends, "each chart but legends is described");
    assert_eq!(html.matches("tabindex=\"0\"").count(), with_axes, "each line chart takes the focus");
    let name = html.matches("data-name=\"newreno\"").count();
    assert!(name > 2, "lines have their names: {name}");
}

#[test]
fn a_large_sweep_of_long_series_stays_small() {
    let runs = common::study(4);
    let html = sweep_html(&runs, &common::story(&runs[..16]));
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    assert!(html.contains("16 more runs are not drawn"), "64 runs, 48 panels");
}

#[test]
fn a_run_is_headed_by_its_title_or_else_its_name() {
    let run = common::run(0, "ecmp", 1);
    assert!(run_html(&run).contains("<h1>ecmp/newreno-1</h1>"));
    let titled = RunResults { title: "Two < three".to_owned(), ..run };
    assert!(run_html(&titled).contains("<h1>Two &lt; three</h1>"));
}

#[test]
fn names_are_text_not_markup() {
    let mut run = common::run(0, "ecmp", 1);
    run.parameters[0].1 = "<script>alert(1)</script>".to_owned();
    run.links[6].link = "a\"><b>&".into();
    run.name = "x<i>".to_owned();
    let html = run_html(&run);
    for markup in ["<script>alert", "<b>", "<i>"] {
        assert!(!html.contains(markup), "{markup}");
    }
}

#[test]
fn an_empty_run_and_a_sweep_of_nothing_still_make_a_page() {
    assert!(run_html(&RunResults::default()).contains("How it was measured"));
    assert!(sweep_html(&[], &Story::new("nothing")).contains("nothing"));
}

#[test]
fn a_study_has_its_bars_and_a_table_that_sorts_by_number() {
    let bars = vec![("cubic".to_owned(), 4.0), ("dctcp".to_owned(), 2.5)];
    let multiples =
        Multiples { title: "Goodput (Gbit/s)".into(), text: String::new(), panels: vec![("VL2".into(), bars)] };
    let column = |name: &str, unit: &str, meaning: &str| (name.to_owned(), unit.to_owned(), meaning.to_owned());
    let row = |name: &str, cell| vec![Cell::Text(name.to_owned()), cell];
    let grid = Grid {
        title: "All".into(),
        text: "One seed.".into(),
        columns: vec![column("network", "", ""), column("job time", "ms", "Of a job.")],
        rows: vec![row("VL2", Cell::Number(1235.0)), row("BCube", Cell::AtLeast(8.0)), row("DCell", Cell::Absent)],
    };
    let html = study_report(&Story::new("Networks"), &[multiples], &grid, "1.2.3");
    for part in [
        "<h1>Networks</h1>",
        "<figcaption>VL2</figcaption>",
        "cubic: 4",
        "<table class=\"runs\">",
        "<th class=\"n\">job time<br>(ms)</th>",
        "<td class=\"n\" data-v=\"1235\">1,235</td>",
        "<td class=\"n\" data-v=\"8\">≥ 8</td>",
        "<td class=\"n\" data-v=\"\">–</td>",
        "<dt>job time</dt><dd>Of a job.</dd>",
        "OpenTCP 1.2.3",
    ] {
        assert!(html.contains(part), "{part} is not in\n{html}");
    }
}
