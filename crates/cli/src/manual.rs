//! `opentcp completions` and `opentcp man`: from the same source as `--help`.

use crate::Cli;
use crate::failure::Failure;
use crate::terminal::{note, print};
use clap::CommandFactory as _;
use clap_complete::{Shell, generate};
use std::fs;
use std::path::PathBuf;

/// Print a shell's completions
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  opentcp completions bash > /etc/bash_completion.d/opentcp\n  \
                        opentcp completions zsh > ~/.zfunc/_opentcp                   with ~/.zfunc in fpath\n  \
                        opentcp completions fish > ~/.config/fish/completions/opentcp.fish")]
pub struct CompletionsArgs {
    /// For which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Write the manual pages, one for each command
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  opentcp man /usr/local/share/man/man1\n  man opentcp-cc-load")]
pub struct ManArgs {
    /// The folder, which is made if need be
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints them.
///
/// # Errors
/// Stdout cannot be written.
pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut text = Vec::new();
    generate(args.shell, &mut Cli::command(), "opentcp", &mut text);
    print(&String::from_utf8_lossy(&text))
}

/// Writes them.
///
/// # Errors
/// The folder cannot be made or written.
pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let folder = &args.folder;
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    written.map_err(|error| Failure::Input(format!("{}: {error}", folder.display())))?;
    note!("{}: manual pages, `man {}/opentcp.1`", folder.display(), folder.display());
    Ok(())
}
