//! `report.html`: one file that needs only a browser, for a screen, a phone or paper.
//!
//! Its bytes depend only on the runs and the story.

mod curves;
mod facets;
mod figures;
mod grid;
mod overview;
mod paper;
mod slowdown;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{Comparison, Figure, Grid, Multiples, RunResults, charts::Line, digest::Digest};
use facets::Facets;

/// The text of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Story {
    /// Heading of the report.
    pub title: String,
    /// One or two sentences under it: what was run, and after which paper.
    pub lead: String,
    /// Pictures of the story's own, before all else.
    pub figures: Vec<Figure>,
    /// What the numbers show, in words; plain text, a paragraph each.
    pub paragraphs: Vec<String>,
    /// Our numbers beside the paper's.
    pub comparisons: Vec<Comparison>,
}

impl Story {
    /// A story that has only a title.
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), ..Self::default() }
    }
}

/// The report of one run: a self-contained HTML page.
pub fn report_of(run: &RunResults) -> String {
    let story = Story::new(if run.title.is_empty() { &run.name } else { &run.title });
    report(&[Digest::of(run)], &story)
}

/// The page.
pub(crate) fn report(runs: &[Digest], story: &Story) -> String {
    let facets = Facets::of(runs);
    page(
        story,
        &html! {
            (not_valid(runs))
            (paper::section(&story.comparisons))
            (overview::section(runs, &facets))
            (slowdown::section(runs, &facets))
            (curves::completion_times(runs, &facets))
            (curves::queues(runs, &facets))
            (curves::windows(runs, &facets))
            (overview::settings(runs, &facets))
            (definitions())
            (footer(runs))
        },
    )
}

/// Runs that the report names as not valid at most.
const NOT_VALID: usize = 10;

/// Why runs are not valid, before their numbers.
fn not_valid(runs: &[Digest]) -> Markup {
    let reasons: Vec<(&Digest, &str)> =
        runs.iter().filter_map(|run| Some((run, run.parameter(facets::SELF_CHECK)?))).collect();
    html! {
        @for (run, why) in reasons.iter().take(NOT_VALID) {
            p { strong { "NOT VALID: " } (run.name) ": " (why.strip_prefix("not valid: ").unwrap_or(why)) "." }
        }
        @if reasons.len() > NOT_VALID { p { "And " (reasons.len() - NOT_VALID) " more runs are not valid." } }
    }
}

/// A page of many runs that shows none of them by itself: the story, its small multiples and its table. `version` is the program's.
pub fn study_report(story: &Story, multiples: &[Multiples], table: &Grid, version: &str) -> String {
    page(
        story,
        &html! {
            (grid::multiples(multiples))
            (grid::table(table))
            footer {
                "OpenTCP " (version) ". The numbers of all runs are in " code { "runs.parquet" } " beside this file. "
                code { "opentcp run runs/NAME/scenario.toml" } " repeats one of them."
            }
        },
    )
}

/// A page that begins with the story and goes on with `body`.
fn page(story: &Story, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (story.title) }
                style { (PreEscaped(crate::STYLE)) }
            }
            body {
                h1 { (story.title) }
                @if !story.lead.is_empty() { p.lead { (story.lead) } }
                (figures::section(&story.figures))
                @if !story.paragraphs.is_empty() {
                    h2 { "What the numbers show" }
                    @for paragraph in &story.paragraphs { p { (paragraph) } }
                }
                (body)
                script { (PreEscaped(include_str!("report.js"))) }
            }
        }
    };
    page.into_string()
}

fn definitions() -> Markup {
    let terms = [
        (
            "Throughput per flow",
            "IP bytes of data that reached the receiver, duplicates included, over the measured time; mean over flows.",
        ),
        ("Goodput", "Application bytes delivered in order over the measured time, all flows together."),
        (
            "Delay",
            "From the IP send at the host, its own queue included, to the IP receive; mean over the data packets that arrived. Delay per flow is the mean of the flows’ own means.",
        ),
        (
            "Drops",
            "Packets that the queues of switches refused. Those that hosts refused, which in BCube and DCell forward as well, are counted separately.",
        ),
        (
            "FCT",
            "Flow completion time: from opening a flow to the delivery of its last byte, over the flows that finished.",
        ),
        (
            "FCT slowdown",
            "Completion time divided by the ideal one: handshake, propagation, every packet stored and forwarded, all packets back to back at \
             the rate of the slowest link, headers included. Flows that did not finish count with a lower bound.",
        ),
        ("Packet-hops", "Data and ACK packets that a link sent, summed over all links."),
        (
            "Queue",
            "Packets waiting or being sent, on the sampled link with the longest mean queue; the line is the mean of a slice of time, \
             the band its lowest and highest sample.",
        ),
    ];
    html! {
        h2 { "How it was measured" }
        dl { @for (term, meaning) in terms { dt { (term) } dd { (meaning) } } }
    }
}

fn footer(runs: &[Digest]) -> Markup {
    let version = runs.first().map_or("", |run| run.summary.version.as_str());
    let alone = runs.len() == 1 && runs.iter().all(|run| run.folder.is_none());
    html! {
        footer {
            "OpenTCP " (version) ". The numbers are in " code { "summary.json" } " beside this file, the tables in "
            @if alone { code { "*.parquet" } ". " code { "opentcp run scenario.toml" } " repeats the run." }
            @else { "each run’s folder. " code { "opentcp run FOLDER/scenario.toml" } " repeats one of them." }
        }
    }
}

/// The legend of lines.
fn key(lines: &[Line]) -> Vec<(String, usize, Option<usize>)> {
    lines.iter().map(|line| (line.name.clone(), line.colour, Some(line.dash))).collect()
}

/// A key to colours: (name, colour, dash) each, dash `None` for a filled swatch.
fn legend(entries: &[(String, usize, Option<usize>)]) -> Markup {
    html! {
        ul.legend {
            @for (name, colour, dash) in entries {
                li {
                    svg viewBox="0 0 32 14" aria-hidden="true" {
                        @match dash {
                            Some(dash) => line.{ "s" (colour) " d" (dash) } x1="0" y1="8" x2="32" y2="8" stroke-width="3" {}
                            None => rect.{ "f" (colour) } width="32" height="14" {}
                        }
                    }
                    (name)
                }
            }
        }
    }
}
