//! `opentcp oracle`: decides by a policy and sends CUEs.

use crate::failure::Failure;
use crate::identity::Meeting;
use crate::log::{Log, LogArgs};
use crate::stop;
use crate::terminal::print;
use bus::Role;
use document::Diagnostic;
use oracle::{AuditLog, Config, LeaseAt, OracleError, Parse, Record, run};
use serde::Serialize;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use study::parse_policy;

/// Decide by a policy, every period, and send CUEs to this machine's agents
///
/// Collects the agents' reports, decides at the end of each period T of the policy, and sends signed CUEs. Each decision is one line of
/// JSON on stdout: the reason for every rule, the comparison of treated hosts with the control group so far (`verdict`), and the Oracle's
/// own state, with counts of what it refused (`status`).
///
/// A rollout that does more harm than the policy allows is rolled back. A restarted Oracle does not repeat it until the policy's file
/// is changed, or the file that the message names is removed. With `mode = "observe"` it sends nothing. When the Oracle ends, even if
/// killed, its CUEs expire and agents restore the settings.
///
/// Operators apply, compare, pause and roll back policies at the same socket (`opentcp policy apply --help`). What was applied stays in force
/// over restarts until the policy's file is changed. Every decision, every CUE and every request is in the audit log in the state folder
/// (`opentcp history`).
///
/// Several Oracles share the work with `--lease`: one decides, and the others take its place when it ends, hangs or loses its network,
/// within two periods. Each has a `--number` and a state folder of its own, and the same key.
///
/// Hour and weekday come from the view, or else from this machine's clock in the policy's `time_zone` (default UTC).
///
/// Exit codes: 0 stopped by a signal, 1 the bus or the disk failed, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  opentcp oracle policies/opentcp2.toml\n  opentcp oracle policies/opentcp1.toml --view \
                        /run/collector/links.json | tee decisions.jsonl\n  opentcp oracle policies/opentcp2.toml --number 1 --lease \
                        /mnt/shared/opentcp"
)]
pub struct Args {
    /// The policy file (TOML)
    policy: PathBuf,
    /// This Oracle's identity in a fleet, made by `opentcp fleet init`: members reach it over the fleet's servers [default:
    /// /etc/opentcp/identity if an Oracle's is there]
    #[arg(long, value_name = "DIR", conflicts_with = "socket")]
    identity: Option<PathBuf>,
    /// The socket where agents of this machine reach it [default, without an identity: /run/opentcp/oracle.sock]
    #[arg(long, value_name = "FILE")]
    socket: Option<PathBuf>,
    /// The secret key, made by `opentcp keygen` [default: the identity's, or /etc/opentcp/oracle.key]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The state folder: the last epoch, the rollout's progress, the policies that were in force, the audit log
    #[arg(long, value_name = "DIR", default_value = "/var/lib/opentcp/oracle")]
    state: PathBuf,
    /// More measurements of the network, as for `opentcp policy explain`. Read each period; ignored if older than two periods
    #[arg(long, value_name = "VIEW.json")]
    view: Option<PathBuf>,
    /// This Oracle's number; several Oracles of one fleet have different ones
    #[arg(long, value_name = "N", default_value_t = 0)]
    number: u8,
    /// Share the decisions with other Oracles: a folder that all of them reach, or `nats` for the bus's own store
    #[arg(long, value_name = "DIR|nats")]
    lease: Option<PathBuf>,
    /// An algorithm of your own that hosts have loaded and this machine has not; may be given many times. Names that hosts have
    /// reported are known without it
    #[arg(long = "algorithm", value_name = "NAME")]
    algorithms: Vec<String>,
    /// Serve metrics to Prometheus at this address, at /metrics; 127.0.0.1:9815 is for this machine alone
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    log: LogArgs,
}

/// A line of output.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    decision: &'a policy::Decision,
    verdict: &'a policy::VerdictReport,
    status: &'a oracle::Status,
}

/// Runs until stopped.
///
/// # Errors
/// As the exit codes say.
pub fn oracle(args: Args) -> Result<(), Failure> {
    let Args { policy: path, key, socket, identity, state, view, number, lease, algorithms, metrics, log } = args;
    let log = Log::new("oracle", log);
    let meeting = Meeting::choose(identity.as_ref(), socket.as_ref(), &[Role::Oracle])?;
    let key = meeting.key(key, fleet::ORACLE_KEY, "/etc/opentcp/oracle.key");
    // the number is a part of the identity: no two Oracles of a fleet have the same
    let number = meeting.identity.as_ref().and_then(|(_, identity)| identity.card.user.number).unwrap_or(number);
    let file = path.display().to_string();
    let unreadable = |error| Failure::Located(vec![Diagnostic::unreadable("policy", &file, &error)]);
    let text = document::read_text(&path).map_err(unreadable)?;
    let known: Vec<String> = oracle::reported(&state).into_iter().chain(algorithms.clone()).collect();
    let policy = parse_policy(&file, &text, &known).map_err(|diagnostic| Failure::Located(vec![diagnostic]))?;
    let parse: Parse = Box::new(move |name, text, reported| {
        let known: Vec<String> = reported.iter().chain(&algorithms).cloned().collect();
        parse_policy(name, text, &known).map_err(|diagnostic| diagnostic.render(false))
    });
    let mut audit = AuditLog::open(&state).map_err(|error| Failure::Input(error.to_string()))?;
    let record: Record = Box::new(move |event| {
        if let Some(notice) = audit.on(event) {
            log.say(&notice);
        }
        Ok(audit.lost())
    });
    let lease = lease.map(|at| if at.as_os_str() == "nats" { LeaseAt::Bus } else { LeaseAt::Folder(at) });
    let stop = stop::on_signals();
    let mut decided = |decision: &policy::Decision, verdict: &policy::VerdictReport, status: &oracle::Status| {
        let json = serde_json::to_string(&Line { decision, verdict, status }).map_err(io::Error::other)?;
        print(&format!("{json}\n")).map_err(|failure| io::Error::other(failure.message(false)))
    };
    let mut say = |line: &str| log.say(line);
    let config = Config::new(policy, text, (key, state), meeting.bus, parse);
    let config = Config { file, view, number, lease, metrics, record: Some(record), ..config };
    run(config, &|| stop.is_set(), &mut decided, &mut say).map_err(|error| match error {
        OracleError::File(_)
        | OracleError::Policy(_)
        | OracleError::Metrics(_)
        | OracleError::Bus(bus::BusError::Socket { .. }) => Failure::Input(error.to_string()),
        _ => Failure::Run(error.to_string()),
    })
}
