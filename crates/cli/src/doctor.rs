//! `opentcp doctor`: what this machine can do.

use crate::failure::Failure;
use crate::terminal::{is_coloured, print, print_json};
use ::doctor::{Ability, Check, Examination, Need, State, examine};
use std::fmt::Write as _;
use std::io;

/// Check what this machine can do, and how to get what is missing
///
/// Tries cores, rights, the kernel (BTF, struct_ops, AF_XDP), mounts (BPF file system, cgroup v2), TAPs and compilers as the
/// commands use them. Each line names the commands that need it. It takes half a second and leaves nothing behind.
///
/// Exit codes: 0 the simulator works here (`opentcp run`), whatever else is missing; 1 it does not. The last lines, with --json the
/// key `commands`, say which other commands work.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  opentcp doctor\n  sudo opentcp doctor                 what root can do here\n  \
                        opentcp doctor --json | jq '.commands[] | select(.command == \"enforce\").works'")]
pub struct Args {
    /// One JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

/// Does it.
///
/// # Errors
/// The simulator does not work here.
pub fn doctor(args: &Args) -> Result<(), Failure> {
    let examined = examine();
    if args.json { print_json(&examined) } else { print(&text(&examined, is_coloured(&io::stdout()))) }?;
    if examined.fit {
        return Ok(());
    }
    let lacks =
        examined.commands.iter().find(|one| one.command == Need::Simulate.command()).map(|one| one.lacks.join(", "));
    Err(Failure::Run(format!("the simulator does not work here: {}", lacks.unwrap_or_default())))
}

fn text(examined: &Examination, colours: bool) -> String {
    let mut text = String::new();
    for check in &examined.checks {
        line(&mut text, check, colours);
    }
    text.push('\n');
    for ability in &examined.commands {
        let mark = painted(if ability.works { State::Ok } else { State::Missing }, word(ability), colours);
        writeln!(text, "{mark} {}", format!("opentcp {:<20} {}", ability.command, reasons(ability)).trim_end())
            .expect("writing to a string");
    }
    text
}

fn line(text: &mut String, check: &Check, colours: bool) {
    let word = match check.state {
        State::Ok => "ok",
        State::Limited => "limited",
        State::Missing => "missing",
        State::Untried => "not tried",
    };
    let needed: Vec<&str> = check.needed_by.iter().map(|need| need.command()).collect();
    let mark = painted(check.state, word, colours);
    writeln!(text, "{mark} {:<11} {}   [{}]", check.name, check.found, needed.join(", ")).expect("writing to a string");
    if let Some(advice) = &check.advice {
        writeln!(text, "{:>21} → {advice}", "").expect("writing to a string");
    }
}

fn word(ability: &Ability) -> &'static str {
    if ability.works { "works" } else { "does not" }
}

fn reasons(ability: &Ability) -> String {
    match (&ability.lacks[..], &ability.limits[..]) {
        ([], []) => String::new(),
        ([], limits) => format!("limited by: {}", limits.join(", ")),
        (lacks, _) => format!("lacks: {}", lacks.join(", ")),
    }
}

/// As wide as the widest, green, yellow, red or grey.
fn painted(state: State, word: &str, colours: bool) -> String {
    let colour = match state {
        State::Ok => 32,
        State::Limited => 33,
        State::Missing => 31,
        State::Untried => 90,
    };
    if colours { format!("\x1b[{colour}m{word:<9}\x1b[0m") } else { format!("{word:<9}") }
}
