//! The command's reference, from the same source as `--help`.

use super::{plain, table};
use crate::{Cli, EXIT_CODES};
use clap::{Arg, Command, CommandFactory as _};

pub(super) fn reference() -> String {
    let mut command = Cli::command();
    command.build();
    let mut parts = Vec::new();
    describe(&mut command, &mut parts);
    parts.join("\n\n")
}

pub(super) fn exit_codes() -> String {
    let line = EXIT_CODES.lines().next().expect("the codes come first").trim_start_matches("Exit codes: ");
    let codes = line.trim_end_matches('.').split(", ").map(|code| {
        let (number, what) = code.split_once(' ').expect("a number and what it means");
        [format!("`{number}`"), what.to_string()]
    });
    table(["exit code", "meaning"], codes)
}

/// A command and those below it, in paragraphs.
fn describe(command: &mut Command, parts: &mut Vec<String>) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_string();
    let usage = command.render_usage().to_string();
    parts.push(format!("## {name}"));
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        parts.push(plain(&about.to_string()));
    }
    parts.push(verbatim(usage.trim_start_matches("Usage:")));
    // the global ones are in the first command's table
    let global = |arg: &&Arg| arg.is_global_set() && name != "opentcp";
    let ours = |arg: &&Arg| !["help", "version"].contains(&arg.get_id().as_str());
    let shown = command.get_arguments().filter(|arg| ours(arg) && !arg.is_hide_set() && !global(arg));
    let rows: Vec<[String; 3]> = shown.map(row).collect();
    if !rows.is_empty() {
        parts.push(table(["argument", "default", "meaning"], rows).trim().to_string());
    }
    if let Some(examples) = command.get_after_long_help().or(command.get_after_help()) {
        parts.push(verbatim(&examples.to_string()));
    }
    for below in command.get_subcommands_mut().filter(|below| !below.is_hide_set()) {
        describe(below, parts);
    }
}

fn verbatim(text: &str) -> String {
    format!("```text\n{}\n```", text.trim())
}

fn row(arg: &Arg) -> [String; 3] {
    let flags = [arg.get_long().map(|long| format!("--{long}")), arg.get_short().map(|short| format!("-{short}"))];
    let mut name = flags.into_iter().flatten().collect::<Vec<_>>().join(", ");
    if arg.is_positional() || arg.get_action().takes_values() {
        let values = arg.get_value_names().unwrap_or_default().join(" ");
        name = [name, values].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    }
    let takes = arg.get_action().takes_values();
    let defaults: Vec<String> = arg.get_default_values().iter().map(|one| one.to_string_lossy().into_owned()).collect();
    let default = if takes && !defaults.is_empty() { format!("`{}`", defaults.join(" ")) } else { String::new() };
    let help = arg.get_long_help().or(arg.get_help()).map(|help| plain(&help.to_string())).unwrap_or_default();
    let values: Vec<String> =
        arg.get_possible_values().iter().filter(|_| takes).map(|one| format!("`{}`", one.get_name())).collect();
    let listed = !values.is_empty() && !arg.is_hide_possible_values_set();
    let help = if listed { format!("{help} ({})", values.join(", ")) } else { help };
    [format!("`{name}`"), default, help]
}
