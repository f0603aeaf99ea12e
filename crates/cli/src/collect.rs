//! `opentcp collect`: asks switches, receives flow export, and reports to the Oracle.

use crate::failure::Failure;
use crate::identity::Meeting;
use crate::log::{Log, LogArgs};
use crate::stop;
use crate::terminal::print;
use collect::config::Config;
use collect::{CollectError, Seen, Status, Target, run};
use document::Diagnostic;
use fleet::Role;
use policy::{Link, NetworkView};
use serde::Serialize;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Longest configuration, bytes.
const CONFIG_MAX: u64 = 1 << 20;

/// Ask switches for their counters, receive flow export, and report links and traffic to the Oracle
///
/// Switches are asked by OpenFlow 1.3, gNMI or SNMP; sFlow 5, NetFlow 5 and 9, and IPFIX are received. Each
/// source is measured by itself, so a switch that does not answer delays no other. Every link that is reported has an age, the time since
/// its counters were read; for a policy, a link whose age is more than two periods is unknown (`link.age`).
///
/// `opentcp collect check FILE` only checks the file. The format is described in docs/collect.md.
///
/// Exit codes: 0 stopped by a signal, or printed once; 1 a socket cannot be opened, or with `--once` a switch was not measured; 2 bad input.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  opentcp collect check collect.toml\n  opentcp collect collect.toml --once\n  opentcp collect \
                  collect.toml --dry-run --json | jq .links\n  opentcp collect /etc/opentcp/collect.toml\n  opentcp collect collect.toml --identity \
                  /etc/opentcp/identity --metrics 127.0.0.1:9818"
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The configuration (TOML)
    #[arg(required = true)]
    file: Option<PathBuf>,
    /// This collector's identity in a fleet, made by `opentcp enroll`: the Oracle is reached over the fleet's servers [default:
    /// /etc/opentcp/identity if a collector's is there, and neither `--socket` nor the configuration's `bus`]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["socket", "once", "dry_run"])]
    identity: Option<PathBuf>,
    /// The socket where an Oracle of this machine is, instead of the configuration's `bus` [default, without an identity:
    /// /run/opentcp/oracle.sock]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["once", "dry_run"])]
    socket: Option<PathBuf>,
    /// Serve metrics to Prometheus at this address, at /metrics; 127.0.0.1:9818 is for this machine alone
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "once")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    log: LogArgs,
    /// Measure until each switch has answered twice, or for three intervals and until it is known which do not; print, and end
    #[arg(long)]
    once: bool,
    /// Print each interval instead of sending
    #[arg(long, conflicts_with = "once")]
    dry_run: bool,
    /// Print a view as `opentcp policy explain` reads it, with the state of the sources; with `--dry-run`, a line each interval
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check a configuration, and the files of credentials that it names
    Check {
        /// The configuration (TOML)
        file: PathBuf,
    },
}

/// Runs until stopped.
///
/// # Errors
/// As the exit codes say.
pub fn collect(args: &Args) -> Result<(), Failure> {
    if let Some(Command::Check { file }) = &args.command {
        let config = load(file)?;
        let (switches, receivers) = (config.switches.len(), config.flows.len());
        return print(&format!("{}: {switches} switches, {receivers} receivers of flow export\n", file.display()));
    }
    let file = args.file.as_deref().expect("clap requires it");
    let mut config = load(file)?;
    let target = match (args.once, args.dry_run) {
        (true, _) => Target::Once,
        (_, true) => Target::Print,
        _ => Target::Oracle(meet(args, file, &mut config)?),
    };
    let is_printed = args.once || args.dry_run;
    let mut seen = |seen: &Seen| {
        if !is_printed {
            return Ok(());
        }
        let text = if args.json { json(seen, args.once)? } else { table(seen) };
        print(&text).map_err(|failure| io::Error::other(failure.message(false)))
    };
    let (stop, log) = (stop::on_signals(), Log::new("collect", args.log));
    let outcome = run(config, &target, args.metrics, &|| stop.is_set(), &mut seen, &mut |line| log.say(line));
    outcome.map_err(|error| match error {
        CollectError::Tls(_) | CollectError::Metrics(_) => Failure::Input(error.to_string()),
        _ => Failure::Run(error.to_string()),
    })
}

/// Where the Oracle is. In a fleet the collector has its identity's name: the Oracle takes nothing of it in another.
fn meet(args: &Args, file: &Path, config: &mut Config) -> Result<bus::Address, Failure> {
    let file = file.display();
    if let (Some(folder), Some(_)) = (&args.identity, &config.bus) {
        let folder = folder.display();
        return Err(Failure::Input(format!(
            "--identity {folder} and `bus` in {file} exclude each other: keep one of the two"
        )));
    }
    let socket = args.socket.as_ref().or(config.bus.as_ref());
    let meeting = Meeting::choose(args.identity.as_ref(), socket, &[Role::Collector])?;
    if let Some((folder, identity)) = meeting.identity {
        let own = identity.card.member().name.clone();
        if let Some(asked) = config.name.as_ref().filter(|asked| **asked != own) {
            return Err(Failure::Input(format!(
                "name = \"{asked}\" in {file}: this collector is {own} in the fleet ({}). Leave `name` out, or enrol it as {asked} with a new token",
                folder.display()
            )));
        }
        config.name = Some(own);
    }
    Ok(meeting.bus)
}

fn load(path: &Path) -> Result<Config, Failure> {
    let name = path.display().to_string();
    let text = document::read_text(path)
        .map_err(|error| Failure::Located(vec![Diagnostic::unreadable("configuration", &name, &error)]))?;
    if text.len() as u64 > CONFIG_MAX {
        return Err(Failure::Input(format!("{name} has more than {CONFIG_MAX} bytes")));
    }
    Config::parse(&name, &text).map_err(|diagnostic| Failure::Located(vec![diagnostic]))
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    view: &'a NetworkView,
    sources: &'a [Status],
}

fn json(seen: &Seen, is_view: bool) -> io::Result<String> {
    if is_view {
        // a view and nothing else, so that other commands read it
        return Ok(format!("{}\n", seen.view.to_json()));
    }
    let line = serde_json::to_string(&Line { view: &seen.view, sources: &seen.sources }).map_err(io::Error::other)?;
    Ok(format!("{line}\n"))
}

/// Links, traffic from rack to rack, and the sources.
fn table(seen: &Seen) -> String {
    let mut out = String::new();
    let width = seen.view.links.iter().map(|link| link.name.chars().count()).max().unwrap_or(4).max(4);
    let ends = seen.view.links.iter().map(|link| link.from.chars().count() + link.to.chars().count() + 4);
    let ends = ends.max().unwrap_or(4).max(4);
    let line = |out: &mut String, cells: [&str; 7]| {
        let [name, between, rate, used, dropped, marked, age] = cells;
        let row =
            format!("{name:<width$}  {between:<ends$}  {rate:>13}  {used:>6}  {dropped:>7}  {marked:>7}  {age:>8}");
        let _ = writeln!(out, "{}", row.trim_end());
    };
    line(&mut out, ["link", "ends", "rate", "used", "dropped", "marked", "age"]);
    for link in &seen.view.links {
        let Link { name, from, to, rate, utilization, drop_rate, mark_rate, age, .. } = link;
        let between = format!("{from} -> {to}");
        let rate = rate.map_or_else(unknown, |rate| rate.to_string());
        let age = age.map_or_else(unknown, |age| format!("{:.1} s", age.as_secs_f64()));
        let [used, dropped, marked] =
            [(utilization, 1), (drop_rate, 3), (mark_rate, 3)].map(|(share, digits)| percent(*share, digits));
        line(&mut out, [name, &between, &rate, &used, &dropped, &marked, &age]);
    }
    if !seen.view.matrix.is_empty() {
        let _ = writeln!(out, "\nfrom rack -> to rack: rate");
    }
    for pair in &seen.view.matrix {
        let _ = writeln!(out, "{} -> {}: {}", pair.from, pair.to, pair.rate);
    }
    out.push('\n');
    for Status { name, protocol, answers, failures, problems, .. } in &seen.sources {
        let state = if problems.is_empty() { "ok".to_string() } else { problems.join("; ") };
        let _ = writeln!(out, "{name} ({protocol}): {answers} answers, {failures} failures, {state}");
    }
    out
}

fn unknown() -> String {
    "-".to_string()
}

fn percent(share: Option<f64>, digits: usize) -> String {
    share.map_or_else(unknown, |share| format!("{:.digits$} %", 100.0 * share))
}
