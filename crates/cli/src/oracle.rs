//! `opentcp oracle`: decides and sends.

use crate::failure::Failure;
use crate::stop;
use crate::terminal::{print, talk};
use oracle::{Config, OracleError, run};
use serde::Serialize;
use std::fs;
use std::io;
use std::path::PathBuf;
use study::load_policy;

/// Decide by a policy, every period, and send CUEs to this machine's agents
///
/// Gathers what agents report, decides at the end of each period T of the policy, signs what is to be sent and sends it. Each decision
/// is one line of JSON on stdout, with the reason for every rule, and what treated hosts and the others show so far (`verdict`). A rollout
/// that hurts more than the policy bears is rolled back, and stays so for an Oracle that is started again, until the policy's file is changed
/// or the file that this names is removed. A policy in the mode "observe" sends nothing. When this ends, or is
/// killed, what it sent lasts until its lifetime is over, and agents give it back by themselves.
///
/// Hour and weekday are those of UTC, unless the view says otherwise.
///
/// Exit codes: 0 stopped by a signal, 1 the bus or the disk failed, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  opentcp oracle policies/opentcp2.toml\n  opentcp oracle policies/opentcp1.toml --view \
                        /run/collector/links.json | tee decisions.jsonl"
)]
pub struct Args {
    /// The policy file (TOML)
    policy: PathBuf,
    /// The secret of `opentcp keygen`
    #[arg(long, value_name = "FILE", default_value = "/etc/opentcp/oracle.key")]
    key: PathBuf,
    /// The socket where agents reach it
    #[arg(long, value_name = "FILE", default_value = super::SOCKET)]
    socket: PathBuf,
    /// Its folder, in which it keeps the last epoch and how far the rollout has come
    #[arg(long, value_name = "DIR", default_value = "/var/lib/opentcp/oracle")]
    state: PathBuf,
    /// What else is known of the network, as for `opentcp policy explain`; read each period, and ignored once nobody has written it
    /// for two
    #[arg(long, value_name = "VIEW.json")]
    view: Option<PathBuf>,
}

/// A line of stdout.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    decision: &'a policy::Decision,
    verdict: &'a policy::VerdictReport,
}

/// Runs until it is stopped.
///
/// # Errors
/// As the exit codes say.
pub fn oracle(args: Args) -> Result<(), Failure> {
    let policy = load_policy(&args.policy)?;
    let text = fs::read_to_string(&args.policy)
        .map_err(|error| Failure::Input(format!("{}: {error}", args.policy.display())))?;
    let Args { key, socket, state, view, .. } = args;
    let stop = stop::on_signals();
    let mut decided = |decision: &policy::Decision, verdict: &policy::VerdictReport| {
        let json = serde_json::to_string(&Line { decision, verdict }).map_err(io::Error::other)?;
        print(&format!("{json}\n")).map_err(|failure| io::Error::other(failure.message(false)))
    };
    let mut say = |line: &str| talk!("oracle: {line}");
    let config = Config { policy, text, key, socket, state, view };
    run(config, &|| stop.is_set(), &mut decided, &mut say).map_err(|error| match error {
        OracleError::File(_) | OracleError::Bus(bus::BusError::Socket { .. }) => Failure::Input(error.to_string()),
        _ => Failure::Run(error.to_string()),
    })
}
