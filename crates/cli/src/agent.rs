//! `opentcp agent`: sets this host's TCP by CUEs.

use crate::failure::Failure;
use crate::identity::Meeting;
use crate::log::{Log, LogArgs};
use crate::stop;
use crate::terminal::{message, print, print_json};
use agent::{AgentError, Config, Means, Places, Reset, Status};
use bus::Role;
use congestion::Algorithm;
use policy::{Identity, Prefix};
use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process;
use units::{Rate, Time};

/// An agent that works writes its status more often.
const LATE: Time = Time::from_secs(15);
/// An Oracle that says nothing for so many periods has stopped, or is not reached.
const SILENT: u64 = 3;

/// Set this host's TCP by the Oracle's CUEs
///
/// Takes CUEs signed with the Oracle's key, sets TCP's parameters of new and open connections, watches the guards, and reports the
/// effect of each setting. A CUE that is not renewed expires, and its settings end. When the agent ends, even if killed, everything
/// is restored, except for settings that stay on a connection until it closes (docs/agent.md lists them).
///
/// Needs root, or CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_SYS_ADMIN. If the kernel refuses BPF, the agent sets only routes and
/// sysctls, which needs only CAP_NET_ADMIN, and reports what it cannot set.
///
/// Exit codes: 0 stopped by a signal, and everything is restored; 1 something could not be restored, or the kernel or the disk failed; 2 bad
/// input.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  opentcp agent --rack r1 --label role=storage --link 'eth0=10 Gbit/s'\n  opentcp agent --identity /etc/opentcp/identity --link 'eth0=10 Gbit/s'\n  opentcp agent --dry-run\n  \
                  opentcp agent status\n  opentcp agent reset"
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print the agent's status: the CUEs in force and their effect
    ///
    /// The agent writes its status each second in which something changes, and at least every 5 s. Exit codes: 0 an agent runs, 3 none does, 1
    /// the status cannot be read.
    Status {
        #[command(flatten)]
        places: PlaceArgs,
        /// One JSON object on stdout instead of text
        #[arg(long)]
        json: bool,
    },
    /// Restore what a dead agent has left
    ///
    /// Restores routes, sysctls and the parameters of open connections, and removes the BPF program. A value that another program has
    /// changed since is reported and not restored. A second reset does nothing. Exit codes: 0 done, 1 something could not be restored,
    /// 2 an agent is running.
    Reset {
        #[command(flatten)]
        places: PlaceArgs,
    },
    /// Wait until standard input ends, then reset
    #[command(hide = true)]
    Guard {
        #[command(flatten)]
        places: PlaceArgs,
    },
}

#[derive(Debug, clap::Args)]
struct PlaceArgs {
    /// The state folder: the highest epoch seen, the journal of routes and sysctls, the status
    #[arg(long, value_name = "DIR", default_value = "/var/lib/opentcp/agent")]
    state: PathBuf,
    /// The folder of pinned BPF objects, in a BPF file system
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/bpf/opentcp/agent")]
    pins: PathBuf,
    /// Change only connections of processes in this cgroup (version 2) and below [default: all]
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Run {
    /// This machine's identity in a fleet, made by `opentcp enroll`: the Oracle is reached over the fleet's servers [default:
    /// /etc/opentcp/identity if it is there]
    #[arg(long, value_name = "DIR", conflicts_with = "socket")]
    identity: Option<PathBuf>,
    /// The socket where an Oracle of this machine listens [default, without an identity: /run/opentcp/oracle.sock]
    #[arg(long, value_name = "FILE")]
    socket: Option<PathBuf>,
    /// The Oracle's public key; only root may be able to write it [default: the identity's, or /etc/opentcp/oracle.key.pub]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    places: PlaceArgs,
    /// This host's name in policies and views [default: the identity's, or the host's name]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// This host's rack
    #[arg(long, value_name = "NAME", default_value = "")]
    rack: String,
    /// A label of this host, for `match.labels` of policies
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = pair)]
    labels: Vec<(String, String)>,
    /// The rack of other hosts, by address; reports are grouped by rack
    #[arg(long = "remote-rack", value_name = "PREFIX=NAME", value_parser = rack)]
    racks: Vec<(Prefix, String)>,
    /// An interface and its rate; the agent reports its utilization
    #[arg(long = "link", value_name = "INTERFACE=RATE", value_parser = link)]
    links: Vec<(String, Rate)>,
    /// Serve metrics to Prometheus at this address, at /metrics; 127.0.0.1:9816 is for this machine alone
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    log: LogArgs,
    /// How TCP is changed
    #[arg(long, value_name = "MEANS", value_enum, default_value_t = MeansArg::Both)]
    means: MeansArg,
    /// Take CUEs, print what they would change, and change nothing
    #[arg(long = "dry-run")]
    dry: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum MeansArg {
    /// By a BPF program, and by routes and sysctls for the rest; if BPF is not available, by these alone
    Both,
    /// By the BPF program alone
    Bpf,
    /// By routes and sysctls alone
    Routes,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.trim().to_string(), value.trim().to_string()))
}

fn rack(text: &str) -> Result<(Prefix, String), String> {
    let (prefix, rack) = pair(text)?;
    Ok((prefix.parse().map_err(|error: policy::PrefixError| error.to_string())?, rack))
}

fn link(text: &str) -> Result<(String, Rate), String> {
    let (interface, rate) = pair(text)?;
    let rate: Rate = rate.parse().map_err(|error: units::UnitError| error.to_string())?;
    if rate.as_bps() == 0 { Err("the rate must be above 0".to_string()) } else { Ok((interface, rate)) }
}

/// Becomes the program of the agent, which stands beside this one and takes the same arguments without `agent`. Returns why it could not.
pub fn become_agent(arguments: impl Iterator<Item = OsString>) -> Failure {
    let failed = |error: io::Error| Failure::Run(error.to_string());
    let program = match env::current_exe() {
        Ok(program) => program.with_file_name("opentcp-agent"),
        Err(error) => return failed(error),
    };
    let mut arguments: Vec<OsString> = arguments.skip(1).collect();
    let word = arguments.iter().position(|argument| argument == "agent").expect("the command was found in them");
    arguments.remove(word);
    let error = process::Command::new(&program).args(arguments).exec();
    if error.kind() == io::ErrorKind::NotFound {
        let words = "the agent's program is missing; install it beside opentcp";
        return Failure::Run(format!("{}: {words}", program.display()));
    }
    failed(error)
}

/// Runs the command.
///
/// # Errors
/// As the exit codes say.
pub fn agent(args: Args) -> Result<(), Failure> {
    match args.command {
        None => run(args.run),
        Some(Command::Status { places, json }) => {
            let status = agent::status(&places.places());
            let status = status.map_err(|error| Failure::Run(error.to_string()))?;
            if json { print_json(&status) } else { print(&text(&status, status.age())) }?;
            if status.running { Ok(()) } else { Err(Failure::NotRunning) }
        }
        Some(Command::Reset { places }) => {
            let reset = agent::reset(&places.places(), &places.cgroup()).map_err(|error| failure(&error))?;
            if let Some(hidden) = kernel::bpffs::hidden() {
                message!("routes and sysctls were checked, but not the BPF program: {hidden}");
            }
            print(&words(&reset))?;
            reset.left.map_or(Ok(()), |left| Err(Failure::Run(left)))
        }
        Some(Command::Guard { places }) => {
            let reset = agent::guard(io::stdin().lock(), &places.places(), &places.cgroup());
            let Reset { notes, left, .. } = reset.map_err(|error| failure(&error))?;
            notes.iter().chain(&left).for_each(|note| message!("guardian: {note}"));
            Ok(())
        }
    }
}

impl PlaceArgs {
    fn places(&self) -> Places {
        Places { state: self.state.clone(), pins: self.pins.clone() }
    }

    /// The cgroup asked for, or the root of the cgroup (version 2) file system.
    fn cgroup(&self) -> PathBuf {
        self.cgroup.clone().unwrap_or_else(agent::cgroup_mount)
    }
}

/// The name to report as. The Oracle takes no report of a member in another name.
fn host(asked: Option<String>, meeting: &Meeting) -> Result<String, Failure> {
    let Some((folder, identity)) = &meeting.identity else { return Ok(asked.unwrap_or_else(agent::host_name)) };
    let own = identity.card.member().name.clone();
    match asked {
        Some(asked) if asked != own => Err(Failure::Input(format!(
            "--host {asked}: this machine is {own} in the fleet ({}). Leave --host out, or enrol the machine as {asked} with a new token",
            folder.display()
        ))),
        _ => Ok(own),
    }
}

fn run(run: Run) -> Result<(), Failure> {
    let meeting = Meeting::choose(run.identity.as_ref(), run.socket.as_ref(), &[Role::Agent])?;
    let host = host(run.host, &meeting)?;
    let cgroup = run.places.cgroup();
    let means = match run.means {
        MeansArg::Both => Means::Both,
        MeansArg::Bpf => Means::Bpf,
        MeansArg::Routes => Means::Routes,
    };
    // a wrong --cgroup is a mistake; without one, a host may lack cgroups and so BPF
    if means.bpf() && run.places.cgroup.is_some() && !cgroup.join("cgroup.procs").exists() {
        return Err(Failure::Input(format!("{}: not a cgroup's folder (version 2)", cgroup.display())));
    }
    let places = run.places.places();
    let mut guardian = process::Command::new(env::current_exe().map_err(|error| Failure::Run(error.to_string()))?);
    guardian.args(["guard", "--state"]).arg(&places.state).arg("--pins").arg(&places.pins);
    // in a process group of its own, so that Ctrl-C reaches the agent alone
    guardian.arg("--cgroup").arg(&cgroup).process_group(0);
    let config = Config {
        identity: Identity { host, labels: run.labels.into_iter().collect() },
        rack: run.rack,
        key: meeting.key(run.key, "oracle.pub", "/etc/opentcp/oracle.key.pub"),
        bus: meeting.bus,
        places,
        cgroup,
        means,
        racks: run.racks,
        links: run.links,
        metrics: run.metrics,
        needs_ecn: Algorithm::builtins()
            .iter()
            .filter(|one| one.needs_ecn())
            .map(|one| one.name().to_string())
            .collect(),
        guardian: Some(guardian),
    };
    let stop = stop::on_signals();
    let (stopped, log) = (|| stop.is_set(), Log::new("agent", run.log));
    let outcome = if run.dry {
        agent::dry_run(&config, &stopped, &mut |line| drop(print(&format!("{line}\n"))))
    } else {
        agent::run(config, &stopped, &mut |line| log.say(line))
    };
    outcome.map_err(|error| failure(&error))
}

fn failure(error: &AgentError) -> Failure {
    if error.is_input() { Failure::Input(error.to_string()) } else { Failure::Run(error.to_string()) }
}

fn words(reset: &Reset) -> String {
    let mut text = String::new();
    if reset.program {
        text.push_str("the BPF program was removed, and open connections have their own parameters\n");
    }
    if reset.routes && reset.left.is_none() {
        text.push_str("routes and sysctls were restored\n");
    }
    if text.is_empty() && reset.left.is_none() {
        text.push_str("there was nothing to restore\n");
    }
    for note in &reset.notes {
        writeln!(text, "{note}").expect("writing to a string");
    }
    text
}

/// Whether the Oracle is there: that its server is connected says little.
fn oracle(status: &Status) -> String {
    let period =
        status.period.map_or("it has announced no period yet".to_string(), |period| format!("a period is {period}"));
    match (status.connected, status.silence()) {
        (false, None) => "Oracle: not connected, and not heard yet".to_string(),
        (false, Some(silence)) => format!("Oracle: not connected; last heard {silence} before that; {period}"),
        (true, None) => "Oracle: connected, and not heard yet".to_string(),
        (true, Some(silence)) if status.period.is_some_and(|period| silence >= period * SILENT) => {
            format!(
                "Oracle: silent; last heard {silence} before that; {period}; what it has set stays until it expires"
            )
        }
        (true, Some(silence)) => format!("Oracle: connected; last heard {silence} before that; {period}"),
    }
}

/// The status as text, when it is so old.
fn text(status: &Status, age: Time) -> String {
    let mut text = String::new();
    let mut line = |words: String| writeln!(text, "{words}").expect("writing to a string");
    line(match (status.running, status.report.is_some()) {
        (false, _) => "agent: not running".to_string(),
        (true, false) => "agent: running; it has no status yet".to_string(),
        (true, true) if age > LATE => format!("agent: running, but its status is {age} old: it hangs"),
        (true, true) => format!("agent: running; its status is {age} old"),
    });
    let Some(report) = status.report.as_ref().filter(|_| status.running) else { return text };
    line(oracle(status));
    let epoch = report.epoch.map_or("none yet".to_string(), |epoch| epoch.to_string());
    let counts = report.counts;
    line(format!(
        "CUEs: highest epoch {epoch}; {} taken, {} rejected, {} expired, {} reverted by guards",
        counts.taken, counts.rejected, counts.expired, counts.reverted
    ));
    line(format!(
        "connections: {} set, {} restored; {} algorithms not set for lack of ECN, {} settings refused by the kernel",
        status.applied, status.reverted, status.ecn_refused, status.failed
    ));
    if status.records_lost > 0 {
        line(format!("not counted: {} connections, because too many ended at once", status.records_lost));
    }
    if report.in_force.is_empty() {
        line("in force: nothing".to_string());
    }
    for rule in &report.in_force {
        line(format!("in force: {}/{}, {} left", rule.policy, rule.rule, rule.left));
        for setting in &rule.effective {
            let found = setting.found.as_deref().unwrap_or("no connection to read it from yet");
            let close = if setting.until_close { "; on those until they close" } else { "" };
            line(format!(
                "  {} = {}: {found} ({} connections{close})",
                setting.setting, setting.asked, setting.connections
            ));
        }
    }
    for of in &report.reverted {
        let why = if of.why.is_empty() { String::new() } else { format!(" at {}", of.why) };
        line(format!("guard: `{}` is reverted{why}; {} of {} left", of.rule, of.left, of.hold));
    }
    report.notes.iter().for_each(|note| line(format!("note: {note}")));
    text
}
