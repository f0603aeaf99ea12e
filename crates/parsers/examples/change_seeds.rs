//! Has parsers read changed seeds for some seconds of CPU: `change_seeds SECONDS [PARSER …]`, as `tools/fuzz` calls it. Prints how many
//! inputs each has read; a parser that panics ends it, with the input in a file.
#![expect(clippy::disallowed_methods, reason = "it runs for a given time")]

use parsers::{Changes, PARSERS};
use rustix::time::{ClockId, clock_gettime};
use std::env::args;
use std::error::Error;
use std::fs;
use std::panic::catch_unwind;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Inputs of one number.
const INPUTS: u64 = 1000;
const USAGE: &str = "usage: change_seeds SECONDS [PARSER …]";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = args().skip(1);
    let each = Duration::from_secs(arguments.next().ok_or(USAGE)?.parse().map_err(|_| USAGE)?);
    let names: Vec<String> = arguments.collect();
    if let Some(unknown) = names.iter().find(|name| PARSERS.iter().all(|parser| parser.name != **name)) {
        let all: Vec<&str> = PARSERS.iter().map(|parser| parser.name).collect();
        return Err(format!("there is no parser `{unknown}`; there are {}", all.join(", ")).into());
    }
    let first = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() << 20;
    // what other programs do beside it shortens no parser's share
    let cpu = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime));
    for parser in PARSERS.iter().filter(|parser| names.is_empty() || names.iter().any(|name| name == parser.name)) {
        let (until, seeds, read) = (cpu()? + each, parser.seeds()?, parser.read);
        let (mut inputs, mut slowest) = (0, Duration::ZERO);
        for number in first.. {
            let mut changes = Changes::of(&seeds, number);
            for _ in 0..INPUTS {
                let (input, at) = (changes.next(), cpu()?);
                if catch_unwind(|| read(&input)).is_err() {
                    let path = format!("target/{}.fuzz", parser.name);
                    fs::write(&path, &input)?;
                    return Err(format!("{} panics at the {} bytes of {path}", parser.name, input.len()).into());
                }
                slowest = slowest.max(cpu()?.saturating_sub(at));
                inputs += 1;
            }
            if cpu()? >= until {
                break;
            }
        }
        println!("{}: {inputs} inputs, the slowest in {} us", parser.name, slowest.as_micros());
    }
    Ok(())
}
