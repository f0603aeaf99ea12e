//! Our numbers compared with the paper's: paired bars, and a table under them.

use maud::{Markup, html};

use super::facets::grouped;
use crate::{
    Comparison,
    axis::{Axis, number},
    charts::{Bar, BarChart},
    palette::Palette,
};

pub(super) fn section(rows: &[Comparison]) -> Markup {
    if rows.is_empty() {
        return html! {};
    }
    let palette = Palette::of(rows.iter().map(|row| split(&row.case).1));
    let groups = grouped(rows, heading);
    html! {
        h2 { "Compared with the paper" }
        p.sub { "Dashed bars are the paper’s numbers, filled bars ours." }
        @for (heading, members) in &groups {
            h3 { (heading) }
            (panels(heading, members, &palette))
            @for row in members.iter().filter(|row| !row.note.is_empty()) {
                p.sub { b { (row.case) } ": " (row.note) }
            }
        }
    }
}

/// `Figure 2: drops, packets`
fn heading(row: &Comparison) -> String {
    let named = format!("{}: {}", row.figure, row.quantity);
    if row.unit.is_empty() { named } else { format!("{named}, {}", row.unit) }
}

/// `environment/variant` into its two halves; the environment may be empty.
fn split(case: &str) -> (&str, &str) {
    case.rsplit_once('/').unwrap_or(("", case))
}

/// A chart and its table per environment; the notes are below, where they have room on a phone.
fn panels(heading: &str, rows: &[&Comparison], palette: &Palette) -> Markup {
    let values = rows.iter().flat_map(|row| [Some(row.ours), row.paper]);
    let max = values.flatten().fold(0.0, f64::max);
    let axis = Axis::linear("", max);
    let panels = grouped(rows.iter().copied(), |row| split(&row.case).0.to_owned());
    html! {
        div.panels {
            @for (environment, members) in &panels {
                @let bars = bars(members, palette);
                @let title = format!("{heading} {environment}");
                div {
                    figure {
                        @if !environment.is_empty() { figcaption { (environment) } }
                        (BarChart { title: &title, axis: &axis, bars: &bars }.draw())
                    }
                    (table(members))
                }
            }
        }
    }
}

fn bars(rows: &[&Comparison], palette: &Palette) -> Vec<Bar> {
    let bar = |row: &&Comparison| {
        let variant = split(&row.case).1;
        Bar {
            label: variant.to_owned(),
            value: row.ours,
            range: None,
            paper: row.paper,
            colour: palette.colour(variant),
        }
    };
    rows.iter().map(bar).collect()
}

fn table(rows: &[&Comparison]) -> Markup {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    html! {
        div.scroll {
            table {
                thead { tr { th { "Variant" } th.n { "Paper" } th.n { "Ours" } th.n { "Ours / paper" } } }
                tbody {
                    @for row in rows {
                        @let ratio = row.paper.filter(|paper| *paper != 0.0).map(|paper| row.ours / paper);
                        tr {
                            th scope="row" { (split(&row.case).1) }
                            td.n { (or_dash(row.paper.map(number))) }
                            td.n { (number(row.ours)) }
                            td.n { (or_dash(ratio.map(|ratio| format!("{ratio:.2}")))) }
                        }
                    }
                }
            }
        }
    }
}
