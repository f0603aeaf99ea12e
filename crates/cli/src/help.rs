//! `--help` with the commands in groups, `opentcp help`, `opentcp version`, and what to type instead of a command that does not exist.

use crate::Cli;
use crate::failure::Failure;
use crate::terminal::print;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _};
use document::nearest;
use std::fmt::Write as _;
use std::path::Path;

/// The groups of commands, in the order in which a reader needs them.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Start here", &["doctor", "init", "dash", "demo"]),
    ("Simulate and emulate", &["run", "sweep", "scenario", "emu"]),
    ("Algorithms and policies", &["cc", "policy"]),
    ("Live hosts", &["oracle", "agent", "enforce", "collect", "keygen", "status", "top", "history"]),
    ("A fleet of machines", &["fleet", "enroll"]),
    ("Published studies", &["reproduce"]),
    ("About", &["help", "version", "completions", "man"]),
];

/// Columns of a line of help: as wide as the terminal, in these bounds.
const COLUMNS: (usize, usize) = (60, 100);

/// Show what a command does and takes, as COMMAND --help
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  opentcp help run\n  opentcp help policy try")]
pub struct Args {
    /// The command; without one, all are listed
    #[arg(value_name = "COMMAND")]
    path: Vec<String>,
}

/// The command line, with its commands in groups.
pub fn command() -> Command {
    let command = Cli::command();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{}\n{{options}}{{after-help}}",
        groups(&command),
        heading(&command, "Options")
    );
    command.help_template(template)
}

fn heading(command: &Command, words: &str) -> String {
    let style = command.get_styles().get_header();
    format!("{style}{words}:{style:#}")
}

fn groups(command: &Command) -> String {
    let columns = terminal_columns().clamp(COLUMNS.0, COLUMNS.1);
    let longest = command.get_subcommands().map(|one| one.get_name().len()).max().unwrap_or_default();
    let literal = command.get_styles().get_literal();
    let mut text = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(text, "{}", heading(command, group));
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            let lines = wrapped(&about.unwrap_or_default(), columns - longest - 4);
            let indent = " ".repeat(longest + 4);
            let padding = " ".repeat(longest - name.len());
            let _ = writeln!(text, "  {literal}{name}{literal:#}{padding}  {}", lines.join(&format!("\n{indent}")));
        }
        text.push('\n');
    }
    text
}

/// Columns of the terminal, if the shell says how many.
fn terminal_columns() -> usize {
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(COLUMNS.1)
}

fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_string());
        }
    }
    lines
}

/// Prints the help of a command, as `--help` after it does.
///
/// # Errors
/// There is no such command.
pub fn help(args: &Args) -> Result<(), Failure> {
    let line = [&["opentcp".to_string()], &args.path[..], &["--help".to_string()]].concat();
    let Err(answer) = command().try_get_matches_from(&line) else { return Ok(()) };
    if let Some(words) = refused(&answer, &args.path) {
        return Err(Failure::Input(words));
    }
    let text = answer.render();
    let coloured = crate::terminal::is_coloured(&std::io::stdout());
    print(&if coloured { text.ansi().to_string() } else { text.to_string() })
}

/// Prints the version, as `--version` does.
///
/// # Errors
/// Stdout cannot be written.
pub fn version() -> Result<(), Failure> {
    print(&Cli::command().render_version())
}

/// What to say of a command line that clap refuses, if it names a command that does not exist; of others clap says enough.
pub fn refused(error: &clap::Error, args: &[String]) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let place = args.iter().position(|arg| arg == word)?;
    let all = command();
    let mut before = Vec::new();
    let mut at = &all;
    for arg in &args[..place] {
        if let Some(below) = at.find_subcommand(arg) {
            before.push(arg.clone());
            at = below;
        }
    }
    Some(unknown(&all, &before, word))
}

/// There is no command `word` below those of `before`: what it may have meant.
fn unknown(all: &Command, before: &[String], word: &str) -> String {
    let at = before.iter().fold(all, |at, name| at.find_subcommand(name).unwrap_or(at));
    let path = |names: &[String]| [&["opentcp".to_string()], names].concat().join(" ");
    let of = path(before);
    let is_file = Path::new(word).extension().is_some() || Path::new(word).is_file();
    let meant = if before.is_empty() && is_file {
        vec![format!("opentcp run {word}")]
    } else {
        // a command's command, without the first
        let below = all.get_subcommands().filter(|group| before.is_empty() && group.find_subcommand(word).is_some());
        let mut meant: Vec<String> = below.map(|group| format!("opentcp {} {word}", group.get_name())).collect();
        if meant.is_empty() {
            let near = nearest(word, at.get_subcommands().map(Command::get_name));
            meant.extend(near.map(|near| format!("{of} {near}")));
        }
        meant
    };
    let meant: Vec<String> = meant.into_iter().map(|command| format!("`{command}`")).collect();
    let list = if before.is_empty() { "opentcp help".to_string() } else { format!("{of} --help") };
    if meant.is_empty() {
        return format!("there is no command `{of} {word}`; `{list}` lists all");
    }
    format!("there is no command `{of} {word}`\ndid you mean {}? `{list}` lists all", meant.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        for shown in command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name) {
            let groups = GROUPS.iter().filter(|(_, names)| names.contains(&shown)).count();
            assert_eq!(groups, 1, "{shown}");
        }
        for name in GROUPS.iter().flat_map(|(_, names)| *names) {
            assert!(command.find_subcommand(name).is_some_and(|one| one.get_about().is_some()), "{name}");
        }
    }

    #[test]
    fn what_was_meant_is_found() {
        let all = command();
        let said = |before: &[&str], word: &str| {
            unknown(&all, &before.iter().map(ToString::to_string).collect::<Vec<_>>(), word)
        };
        for (before, word, meant) in [
            (&[][..], "rnu", "`opentcp run`"),
            (&[], "polcy", "`opentcp policy`"),
            (&[], "shell", "`opentcp emu shell`"),
            (
                &[],
                "check",
                "`opentcp scenario check` or `opentcp cc check` or `opentcp policy check` or `opentcp collect check`",
            ),
            (&[], "dumbbell.toml", "`opentcp run dumbbell.toml`"),
            (&["policy"], "tyr", "`opentcp policy try`"),
        ] {
            let said = said(before, word);
            assert!(said.contains(&format!("did you mean {meant}?")), "{said}");
        }
        assert_eq!(said(&[], "xyzzyx"), "there is no command `opentcp xyzzyx`; `opentcp help` lists all");
    }
}
