//! Every parser, with its seeds and what changes make of them.

use parsers::{Changes, PARSERS, Parser};
use std::io::Write as _;
use std::panic::catch_unwind;
use std::time::{Duration, Instant};

/// Inputs of each parser: some four seconds for all, and `tools/fuzz parsers` goes on.
const INPUTS: usize = 15_000;
/// Far longer than any parser may take for 128 kB on a busy machine.
const SLOW: Duration = Duration::from_secs(5);

#[test]
fn every_parser_has_seeds_and_returns_whatever_they_are_changed_to() {
    for parser in PARSERS {
        let seeds = seeds(parser);
        for (name, seed) in &seeds {
            tried(parser, seed, name);
        }
        let mut changes = Changes::of(&seeds, 1);
        for i in 0..INPUTS {
            tried(parser, &changes.next(), &format!("input {i} of number 1"));
        }
    }
}

#[test]
fn a_number_gives_the_same_inputs_again() {
    let seeds = seeds(&PARSERS[0]);
    let inputs = |number| {
        let mut changes = Changes::of(&seeds, number);
        (0..20).map(|_| changes.next()).collect::<Vec<Vec<u8>>>()
    };
    assert_eq!(inputs(7), inputs(7));
    assert_ne!(inputs(7), inputs(8));
}

fn seeds(parser: &Parser) -> Vec<(String, Vec<u8>)> {
    let seeds = parser.seeds().unwrap_or_else(|error| panic!("the seeds of {}: {error}", parser.name));
    assert!(!seeds.is_empty(), "{} has no seeds", parser.name);
    seeds
}

/// Has it read; what it panics at is written to a file.
#[expect(clippy::disallowed_methods, reason = "a parser that does not end is as bad as one that panics")]
fn tried(parser: &Parser, bytes: &[u8], input: &str) {
    let began = Instant::now();
    let read = parser.read;
    if catch_unwind(|| read(bytes)).is_err() || began.elapsed() > SLOW {
        let file = tempfile::NamedTempFile::new().and_then(|mut file| {
            file.write_all(bytes)?;
            Ok(file.keep()?.1)
        });
        panic!("{} panics at {input}, or takes seconds; the bytes are in {file:?}", parser.name);
    }
}
