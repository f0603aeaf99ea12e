//! Our numbers beside the paper's: paired bars, and the table of all of them.

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
        h2 { "Beside the paper" }
        p.sub { "Dashed bars are the paper’s numbers, filled bars ours." }
        @for (heading, members) in &groups {
            h3 { (heading) }
            (charts(heading, members, &palette))
        }
        h3 { "All numbers" }
        (table(rows))
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

fn charts(heading: &str, rows: &[&Comparison], palette: &Palette) -> Markup {
    let values = rows.iter().flat_map(|row| [Some(row.ours), row.paper]);
    let max = values.flatten().fold(0.0, f64::max);
    let axis = Axis::linear(axis_label(rows[0]), max);
    let panels = grouped(rows.iter().copied(), |row| split(&row.case).0.to_owned());
    html! {
        div.panels {
            @for (environment, members) in &panels {
                @let bars = bars(members, palette);
                @let title = format!("{heading} {environment}");
                figure {
                    @if !environment.is_empty() { figcaption { (environment) } }
                    (BarChart { title: &title, axis: &axis, bars: &bars }.draw())
                }
            }
        }
    }
}

fn axis_label(row: &Comparison) -> String {
    if row.unit.is_empty() { row.quantity.clone() } else { format!("{} ({})", row.quantity, row.unit) }
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

fn table(rows: &[Comparison]) -> Markup {
    let with_notes = rows.iter().any(|row| !row.note.is_empty());
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th { "Case" } th { "Where" } th { "Quantity" } th.n { "Paper" } th.n { "Ours" } th { "Unit" } th.n { "Ours / paper" }
                        @if with_notes { th { "Note" } }
                    }
                }
                tbody {
                    @for row in rows {
                        @let paper = row.paper.map_or_else(|| "–".to_owned(), number);
                        @let ratio = row.paper.filter(|paper| *paper != 0.0).map(|paper| row.ours / paper);
                        tr {
                            th scope="row" { (row.case) } td { (row.figure) } td { (row.quantity) }
                            td.n { (paper) } td.n { (number(row.ours)) } td { (row.unit) }
                            td.n { (ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"))) }
                            @if with_notes { td.note { (row.note) } }
                        }
                    }
                }
            }
        }
    }
}
