//! `opentcp keygen`: the Oracle's key.

use crate::failure::Failure;
use crate::terminal::print;
use bus::files::{FileError, generate};
use std::path::PathBuf;

/// Make the Oracle's key
///
/// Writes two files with mode 0600: FILE, the secret key with which the Oracle signs CUEs, and FILE.pub, the public key for agents.
/// Copy FILE.pub to every host. Only root may be able to write it there, because whoever can change it can send CUEs. Existing files
/// are never overwritten.
///
/// Exit codes: 0 done, 1 a file cannot be written, 2 the file exists.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  opentcp keygen\n  opentcp keygen --out test.key")]
pub struct Args {
    /// The file of the secret key
    #[arg(long, value_name = "FILE", default_value = "/etc/opentcp/oracle.key")]
    out: PathBuf,
}

/// Runs the command.
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
    print(&format!(
        "{}: the secret key, for the Oracle\n{}: the public key, for the agents\n",
        args.out.display(),
        public.display()
    ))
}
