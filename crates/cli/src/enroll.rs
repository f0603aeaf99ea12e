//! `opentcp enroll`: makes this machine a member of a fleet.

use crate::failure::Failure;
use crate::identity::FOLDER;
use crate::terminal::{note, print};
use bus::{EnrollError, enroll as join, unix_s};
use fleet::Identity;
use std::fs;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::Duration;

/// Longest token, bytes.
const TOKEN_MAX: u64 = 32 * 1024;
const DAY_S: u64 = 86_400;

/// Join a fleet with a token
///
/// Makes a key on this machine, has the Oracle enrol it under this host's name, and writes the identity that `opentcp agent`, `opentcp
/// enforce` and `opentcp collect` use. The key never leaves the machine. The token is a line that `opentcp fleet token` prints; it
/// names the servers and whom to trust, so nothing else is to be configured.
///
/// A token in the command line is visible to other users of this machine while the command runs: `-` reads it from standard input,
/// `@FILE` from a file.
///
/// The identity is valid for 90 days, and renewed by the daemon that uses it when half of them are over.
///
/// Exit codes: 0 done, 1 no server or no Oracle answered, 2 the token, the name or the folder is wrong, or the Oracle refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  opentcp enroll - < token\n  opentcp enroll @token --host web17\n  \
                        opentcp enroll - --host oracle1-agent --identity /etc/opentcp/identity < token")]
pub struct Args {
    /// The token: the line itself, `-` for standard input, or `@FILE`
    #[arg(value_name = "TOKEN")]
    token: String,
    /// This machine's name in the fleet, in policies and views [default: the host's name]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// The folder of the identity, which must not be there yet
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    identity: PathBuf,
    /// Do nothing if the folder has an identity that is valid
    #[arg(long)]
    if_needed: bool,
    /// How long to wait for a server and for the Oracle, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait: u64,
}

/// Runs the command.
///
/// # Errors
/// As the exit codes say.
pub fn enroll(args: &Args) -> Result<(), Failure> {
    if args.if_needed
        && let Ok(identity) = Identity::load(&args.identity)
        && identity.check(&args.identity, unix_s()).is_ok()
    {
        let member = identity.card.member();
        return print(&format!(
            "{}: the identity of {} {}, as before\n",
            args.identity.display(),
            member.role,
            member.name
        ));
    }
    let token = token(&args.token)?;
    let host = args.host.clone().unwrap_or_else(agent::host_name);
    note!("asking the fleet's Oracle to enrol {host}");
    let identity =
        join(&token, &host, &args.identity, Duration::from_secs(args.wait)).map_err(|error| failure(&error))?;
    let (member, days) = (identity.card.member(), identity.card.user.expires.saturating_sub(unix_s()) / DAY_S);
    print(&format!(
        "{}: the identity of {} {}, valid for {days} days\n",
        args.identity.display(),
        member.role,
        member.name
    ))
}

fn failure(error: &EnrollError) -> Failure {
    if error.is_input() { Failure::Input(error.to_string()) } else { Failure::Run(error.to_string()) }
}

/// The text of a token, as an argument says where it is.
///
/// # Errors
/// It cannot be read.
pub fn token(text: &str) -> Result<String, Failure> {
    let mut token = String::new();
    let read = match text.strip_prefix('@') {
        None if text != "-" => return Ok(text.to_string()),
        None => io::stdin().lock().take(TOKEN_MAX + 1).read_to_string(&mut token),
        Some(path) => fs::File::open(path).and_then(|file| file.take(TOKEN_MAX + 1).read_to_string(&mut token)),
    };
    read.map_err(|error| Failure::Input(format!("{}: {error}", text.trim_start_matches('@'))))?;
    Ok(token)
}
