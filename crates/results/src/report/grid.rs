//! A study's small multiples and its table.

use maud::{Markup, html};

use crate::{
    Cell, Grid, Multiples,
    axis::{Axis, number},
    charts::{Bar, BarChart},
    palette::Palette,
};

/// Each quantity with its panels.
pub(super) fn multiples(all: &[Multiples]) -> Markup {
    let names = all.iter().flat_map(|multiples| &multiples.panels).flat_map(|(_, bars)| bars);
    let palette = Palette::of(names.map(|(name, _)| name.as_str()));
    html! {
        @for multiples in all {
            h2 { (multiples.title) }
            @if !multiples.text.is_empty() { p.sub { (multiples.text) } }
            (panels(multiples, &palette))
        }
    }
}

fn panels(multiples: &Multiples, palette: &Palette) -> Markup {
    let values = multiples.panels.iter().flat_map(|(_, bars)| bars).map(|(_, value)| *value);
    let axis = Axis::linear("", values.fold(0.0, f64::max));
    let bar = |(name, value): &(String, f64)| Bar {
        label: name.clone(),
        value: *value,
        range: None,
        paper: None,
        colour: palette.colour(name),
    };
    html! {
        div.panels {
            @for (panel, bars) in &multiples.panels {
                @let bars: Vec<Bar> = bars.iter().map(bar).collect();
                @let title = format!("{}, {panel}", multiples.title);
                figure {
                    figcaption { (panel) }
                    (BarChart { title: &title, axis: &axis, bars: &bars }.draw())
                }
            }
        }
    }
}

/// The table, and what its columns mean.
pub(super) fn table(grid: &Grid) -> Markup {
    let is_text = |column: usize| grid.rows.iter().all(|row| matches!(row[column], Cell::Text(_)));
    html! {
        h2 { (grid.title) }
        @if !grid.text.is_empty() { p.sub { (grid.text) } }
        div.scroll {
            table.runs {
                thead {
                    tr {
                        @for (column, (name, unit, _)) in grid.columns.iter().enumerate() {
                            th.n[!is_text(column)] { (name) @if !unit.is_empty() { br; "(" (unit) ")" } }
                        }
                    }
                }
                tbody { @for row in &grid.rows { tr { @for cell in row { (self::cell(cell)) } } } }
            }
        }
        h2 { "How it was measured" }
        dl {
            @for (name, _, meaning) in grid.columns.iter().filter(|(_, _, meaning)| !meaning.is_empty()) {
                dt { (name) }
                dd { (meaning) }
            }
        }
    }
}

fn cell(cell: &Cell) -> Markup {
    match cell {
        Cell::Text(text) => html! { td { (text) } },
        Cell::Number(value) => html! { td.n data-v=(value) { (number(*value)) } },
        Cell::AtLeast(value) => html! { td.n data-v=(value) { "≥ " (number(*value)) } },
        Cell::Absent => html! { td.n data-v="" { "–" } },
    }
}
