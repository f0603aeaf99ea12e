//! The command's reference, from the same source as `--help`.

use super::{plain, table};
use crate::{Cli, EXIT_CODES};
use clap::{Arg, Command, CommandFactory as _};

pub(super) fn reference() -> String {
    let mut command = Cli::command();
    command.build();
    let mut text = String::new();
    describe(&mut command, &mut text);
    text
}

/// As lines of a list.
pub(super) fn exit_codes() -> String {
    let line = EXIT_CODES.lines().next().expect("the codes come first").trim_start_matches("Exit codes: ");
    let codes = line.trim_end_matches('.').split(", ").map(|code| {
        let (number, what) = code.split_once(' ').expect("a number and what it means");
        [format!("`{number}`"), what.to_string()]
    });
    table(["exit code", "meaning"], codes)
}

/// A command and those below it.
fn describe(command: &mut Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_string();
    let usage = command.render_usage().to_string();
    *text += &format!("## {name}\n\n");
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        *text += &format!("{}\n\n", plain(&about.to_string()));
    }
    *text += &format!("```text\n{}\n```\n\n", usage.trim_start_matches("Usage:").trim());
    // the global ones are in the first command's table
    let global = |arg: &&Arg| arg.is_global_set() && name != "opentcp";
    let shown =
        |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()) && !global(arg);
    let rows: Vec<[String; 3]> = command.get_arguments().filter(shown).map(row).collect();
    if !rows.is_empty() {
        *text += &format!("{}\n", table(["argument", "default", "meaning"], rows));
    }
    if let Some(examples) = command.get_after_long_help().or(command.get_after_help()) {
        *text += &format!("```text\n{}\n```\n\n", examples.to_string().trim());
    }
    let below: Vec<&mut Command> = command.get_subcommands_mut().filter(|below| !below.is_hide_set()).collect();
    for below in below {
        describe(below, text);
    }
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
    let mut help = arg.get_long_help().or(arg.get_help()).map(|help| plain(&help.to_string())).unwrap_or_default();
    let values: Vec<String> =
        arg.get_possible_values().iter().filter(|_| takes).map(|one| format!("`{}`", one.get_name())).collect();
    if !values.is_empty() && !arg.is_hide_possible_values_set() {
        help += &format!(" ({})", values.join(", "));
    }
    [format!("`{name}`"), default, help]
}
