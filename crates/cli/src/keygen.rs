//! `opentcp keygen`: the Oracle's key.

use crate::failure::Failure;
use crate::terminal::print;
use bus::files::{FileError, generate};
use std::path::PathBuf;

/// Make the Oracle's key
///
/// Writes the secret, with which the Oracle signs CUEs, to FILE, and beside it FILE.pub for the agents, both for their owner's eyes only
/// (mode 0600). Copy FILE.pub to every host, to a place where only root can write: whoever can change it can send CUEs. Neither file is
/// ever overwritten.
///
/// Exit codes: 0 done, 1 a file cannot be written, 2 there is a key already.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  opentcp keygen\n  opentcp keygen --out test.key")]
pub struct Args {
    /// The secret's file
    #[arg(long, value_name = "FILE", default_value = "/etc/opentcp/oracle.key")]
    out: PathBuf,
}

/// Does it.
///
/// # Errors
/// As the exit codes say.
pub fn keygen(args: &Args) -> Result<(), Failure> {
    if let Some(folder) = args.out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let failed = |source| Failure::Run(FileError::Io { path: folder.to_path_buf(), source }.to_string());
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let public = generate(&args.out).map_err(|error| match error {
        FileError::Exists { .. } => Failure::Input(error.to_string()),
        _ => Failure::Run(error.to_string()),
    })?;
    print(&format!("{}: the secret, for the Oracle\n{}: for the agents\n", args.out.display(), public.display()))
}
