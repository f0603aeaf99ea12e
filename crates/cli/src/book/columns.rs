//! The columns of the result tables: names and types as they are written, meanings from the rows' fields.

use super::{plain, table};
use results::{RunResults, Table, Values};

const ROWS: &str = include_str!("../../../results/src/rows.rs");

pub(super) fn reference() -> String {
    let run = RunResults::default();
    Table::ALL.map(|table| described(&run, table)).join("\n")
}

fn described(run: &RunResults, of: Table) -> String {
    let row = match of {
        Table::Flows => "FlowRow",
        Table::Links => "LinkRow",
        Table::LinkSeries => "LinkSample",
        Table::Cwnd => "CwndSample",
        Table::Messages => "MessageRow",
        Table::Jobs => "JobRow",
        Table::Coflows => "CoflowRow",
        Table::Cues => "CueRow",
        Table::Enforcer => "EnforcerRow",
    };
    let columns = run.columns(of).into_iter().map(|column| {
        let kind = match column.values {
            Values::Int(_) => "int64",
            Values::IntOrNull(_) => "int64 or null",
            Values::Float(_) => "double",
            Values::FloatOrNull(_) => "double or null",
            Values::Bool(_) => "boolean",
            Values::Text(_) => "text",
        };
        [format!("`{}`", column.name), kind.to_string(), meaning(row, column.name)]
    });
    format!("## {}\n\n{}\n\n{}", of.name(), about(row), table(["column", "type", "meaning"], columns))
}

/// What precedes the row's type: its first paragraph.
fn about(row: &str) -> String {
    let text = ROWS.split_once(&format!("pub struct {row} {{")).expect("a table has its row").0;
    comment(text).split(" Table `").next().map(plain).unwrap_or_default()
}

/// The comment of the field, or of the method, that the column comes from.
fn meaning(row: &str, column: &str) -> String {
    let fields = ROWS.split_once(&format!("pub struct {row} {{")).expect("a table has its row").1;
    let fields = fields.split("\n}").next().unwrap_or_default();
    let methods = ROWS.split_once(&format!("impl {row} {{")).map_or("", |(_, rest)| rest);
    let methods = methods.split("\n}").next().unwrap_or_default();
    let field = fields.split_once(&format!("pub {column}:"));
    let found = field.or_else(|| methods.split_once(&format!("pub fn {column}(")));
    match found {
        Some((before, _)) => plain(&comment(before).replace("`None`", "null")),
        None if column == "fct_ns" => "`end_ns` less `start_ns`.".to_string(),
        None => panic!("the column {column} of {row} is not explained in rows.rs"),
    }
}

/// The comment that ends a text, attributes left out, as one line.
fn comment(text: &str) -> String {
    let lines = text.lines().rev().map(str::trim).skip_while(|line| line.is_empty() || line.starts_with("#["));
    let mut lines: Vec<&str> = lines.map_while(|line| line.strip_prefix("///")).map(str::trim).collect();
    lines.reverse();
    let paragraph: Vec<&str> = lines.into_iter().take_while(|line| !line.is_empty()).collect();
    paragraph.join(" ")
}
