//! The documentation is that of the code: parts of its pages are written from it, and the commands that it shows exist.
//!
//! A page has a part between the lines `<!-- generated: NAME -->` and `<!-- end -->`. `make reference` writes them.

mod columns;
mod commands;
mod errors;
mod options;
#[path = "../tests/cli/shown.rs"]
mod shown;

use ::policy::{Setting, Variable};
use shown::repository;
use std::fs;

/// Each part: its page, its name, and the text.
fn parts() -> Vec<(&'static str, &'static str, String)> {
    vec![
        ("docs/reference/command.md", "options", options::reference()),
        ("docs/reference/policy.md", "variables", variables()),
        ("docs/reference/policy.md", "settings", settings()),
        ("docs/reference/columns.md", "columns", columns::reference()),
        ("docs/reference/errors.md", "exit codes", options::exit_codes()),
        ("docs/reference/errors.md", "errors", errors::reference()),
    ]
}

#[test]
fn the_reference_is_what_the_code_says() {
    let write = std::env::var_os("OPENTCP_WRITE_DOCS").is_some();
    for (page, name, made) in parts() {
        let path = repository().join(page);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
        let begin = format!("<!-- generated: {name} -->\n");
        let from = text.find(&begin).unwrap_or_else(|| panic!("{page} lacks {begin}")) + begin.len();
        let to = from + text[from..].find("<!-- end -->").expect("each part ends");
        let right = format!("{}\n{}\n\n{}", &text[..from], made.trim(), &text[to..]);
        if write {
            fs::write(&path, right).expect("the page can be written");
        } else {
            assert!(text == right, "{page}, {name}: not what the code says; run `make reference`");
        }
    }
}

/// What conditions can ask for, as `opentcp policy check --list` has it.
fn variables() -> String {
    let row = |variable: &Variable| {
        let guard = if variable.at_agent { "yes" } else { "" };
        let (name, unit) = (format!("`{}`", variable.name), variable.unit.to_string());
        [name, unit, variable.scope().name().to_string(), guard.to_string(), plain(variable.doc)]
    };
    table(["variable", "type", "scope", "guard", "what it is"], Variable::all().iter().map(row))
}

/// What a rule can set.
fn settings() -> String {
    let row = |setting: &Setting| {
        let (name, example) = (format!("`{}`", setting.name), format!("`{}`", setting.example));
        [name, example, plain(setting.doc), plain(setting.reaches)]
    };
    table(["setting", "written", "what it does", "reaches"], Setting::all().iter().map(row))
}

/// A table in Markdown.
fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&head.map(str::to_string)) + &line(&head.map(|_| "---".to_string())).replace(' ', "");
    for row in rows {
        text += &line(&row.map(|cell| cell.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")));
    }
    text
}

/// Plain text for Markdown: nothing in it is markup.
fn plain(text: &str) -> String {
    // in code spans these characters stand for themselves
    let outside = |part: &str| part.replace('<', "&lt;").replace('*', "\\*").replace('_', "\\_");
    text.split('`').enumerate().map(|(i, part)| if i % 2 == 0 { outside(part) } else { format!("`{part}`") }).collect()
}
