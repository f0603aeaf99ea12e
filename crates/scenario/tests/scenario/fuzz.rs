//! Any text gives a scenario or an error.

use crate::common::{RICH, parse_with, rich_files};
use proptest::prelude::*;

/// Tokens that the reader knows, so that mutations test more than the syntax.
const PIECES: [&str; 24] = [
    "\"",
    "{",
    "}",
    "[",
    "]",
    "=",
    ".",
    "\n",
    "-",
    "->",
    "0",
    "99999999999999999999",
    "1e308",
    "nan",
    "true",
    "\"-5 s\"",
    "\"30 %\"",
    "[sweep]\nseed = [1, 2]\n",
    "é",
    "\u{0}",
    "h1",
    "inf",
    "[[traffic]]\n",
    "tcp",
];

fn mutated() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0usize..12, prop::sample::select(&PIECES[..]));
    prop::collection::vec(edit, 1..6).prop_map(|edits| {
        let mut text: Vec<char> = RICH.chars().collect();
        for (at, cut, piece) in edits {
            let at = at.index(text.len());
            let end = (at + cut).min(text.len());
            text.splice(at..end, piece.chars());
        }
        text.into_iter().collect()
    })
}

/// Drops, doubles or swaps whole lines: still TOML, often wrong in meaning.
fn shuffled() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..3);
    prop::collection::vec(edit, 1..5).prop_map(|edits| {
        let mut lines: Vec<&str> = RICH.lines().collect();
        for (a, b, operation) in edits {
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            match operation {
                0 => drop(lines.remove(a)),
                1 => lines.insert(b, lines[a]),
                _ => lines.swap(a, b),
            }
        }
        lines.join("\n")
    })
}

fn answer(text: &str, sets: &[&str]) {
    match parse_with(text, sets, &rich_files()) {
        Ok(loaded) => assert!(!loaded.runs.is_empty()),
        Err(error) => {
            assert!(!error.problems().is_empty());
            assert!(!error.to_string().contains('\u{1b}'));
            assert!(!error.render(true).is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_mutation_of_a_scenario_panics(text in mutated()) {
        answer(&text, &[]);
    }

    #[test]
    fn no_order_of_lines_panics(text in shuffled()) {
        answer(&text, &[]);
    }

    #[test]
    fn no_override_panics(key in "[a-z_.\"0-9]{0,20}", value in "[ -~é]{0,20}") {
        answer(RICH, &[&format!("{key}={value}")]);
        answer(RICH, &[&value]);
        answer(RICH, &[&format!("network.topology.fat_tree.k={value}")]);
    }
}
