//! `opentcp enforce`: congestion control for hosts that must not be changed, on the path between two interfaces.

mod flows;

use crate::failure::Failure;
use crate::identity::Meeting;
use crate::log::{Log, LogArgs};
use crate::stop;
use crate::terminal::{print, print_json};
use bus::Role;
use enforced::{Behalf, Config, EnforceError, Mirroring, Places, Status};
use enforcer::{Limits, Rule};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use units::Bytes;

/// Enforce congestion control on the path between servers and their clients
///
/// Stands between two interfaces: two ports of one Linux bridge, or two TAPs that no other program has open. For each TCP flow
/// that a rule matches, it buffers the server's data, forwards them as the rule's algorithm allows, and retransmits what is lost. In
/// the client's ACKs it replaces the receive window by the algorithm's window. Neither servers nor clients are changed.
///
/// All other packets pass through the bridge. Enforced packets pass by its filters (nftables) and by queue disciplines of its ports (tc): where
/// there are any, the start is refused unless --bypass-filters is given. When the enforcer ends, for whatever reason, everything passes through the bridge and
/// flows continue. (Two TAPs have no bridge: they lose their carrier.) After a restart, flows that are already open pass unenforced;
/// with --replace, a new enforcer takes over those of a running one.
///
/// Needs root, or CAP_BPF, CAP_NET_ADMIN, CAP_NET_RAW and CAP_IPC_LOCK. docs/enforcer.md has the details.
///
/// Exit codes: 0 stopped by a signal, 1 the kernel failed, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    opentcp enforce --between eth1 eth2 --rule bbr\n  \
    opentcp enforce --between eth1 eth2 --rule 'none port=22' --rule 'bbr clients=198.51.100.0/24' --rule cubic\n  \
    opentcp enforce --between eth1 eth2 --rule 'cubic clients=198.51.100.0/24 window_total=130kB'\n  \
    opentcp enforce --between eth1 eth2 --host db1=10.0.0.7/32 --host 'db2=10.0.0.8/32 role=storage'\n  \
    opentcp enforce --between eth1 eth2 --rule cubic --replace\n  \
    opentcp enforce --between eth1 eth2 --rule bbr --mirror-to 192.0.2.7:7009 --mirror-from 192.0.2.6:7009\n  \
    opentcp enforce --status\n  \
    opentcp enforce --status --flows --sort buffered --limit 20\n  \
    opentcp enforce --status --flows --filter '198.51.100.0/24 algorithm=bbr' --json\n  opentcp enforce --reset")]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Args {
    /// The interface on the servers' side, then the one on the clients' side
    #[arg(long, num_args = 2, value_names = ["SERVERS", "CLIENTS"], required_unless_present_any = ["status", "reset"])]
    between: Vec<String>,
    /// An algorithm, then conditions. The algorithm is a name of `opentcp cc list`, a C file of your own, or `none`. In its place, `echo`
    /// echoes ECN marks for clients without ECN, and `mark share=PERCENT%` marks data of hosts with ECN. Conditions are
    /// servers=PREFIX, clients=PREFIX, port=NUMBER (of either end) and dscp=NUMBER (of the SYN); all must hold. The first rule that
    /// matches a flow applies. Flows that no rule matches pass unenforced. window_total=BYTES bounds what may be on its way to a client,
    /// over all of its flows that the rule matches; of several matching rules with a total the first one's applies
    #[arg(long = "rule", value_name = "RULE", required_unless_present_any = ["hosts", "status", "reset"])]
    rules: Vec<String>,
    /// A host without an agent, for which the enforcer applies the Oracle's CUEs, before any --rule: its name in policies, its
    /// addresses and its labels, such as 'db1=10.0.0.7/32 role=storage'
    #[arg(long = "host", value_name = "NAME=PREFIX [KEY=VALUE]...", value_parser = behalf)]
    hosts: Vec<Behalf>,
    /// This enforcer's identity in a fleet, made by `opentcp enroll`: the Oracle is reached over the fleet's servers [default:
    /// /etc/opentcp/identity if it is there]
    #[arg(long, value_name = "DIR", conflicts_with = "oracle")]
    identity: Option<PathBuf>,
    /// The socket where an Oracle of this machine listens [default, without an identity: /run/opentcp/oracle.sock]
    #[arg(long, value_name = "FILE")]
    oracle: Option<PathBuf>,
    /// The Oracle's public key; only root may be able to write it [default: the identity's, or /etc/opentcp/oracle.key.pub]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The state folder: the highest epoch seen, and what guards have reverted
    #[arg(long, value_name = "DIR", default_value = "/var/lib/opentcp/enforce")]
    state: PathBuf,
    /// Memory for buffered packets
    #[arg(long, value_name = "BYTES", default_value = "1 GiB")]
    buffer: Bytes,
    /// The maximum of enforced flows; others pass unenforced [default: 1048576]. With --status and without a number: print a table of the
    /// enforced flows, one a line, with the columns that docs/monitor.md explains
    #[arg(long, value_name = "N", num_args = 0..=1, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    #[allow(clippy::option_option, reason = "clap's way to say: not given, given without a number, given with one")]
    flows: Option<Option<u32>>,
    /// Print the running enforcer's status and counters
    #[arg(long, conflicts_with_all = ["between", "rules", "reset"])]
    status: bool,
    /// One JSON object on stdout instead of text
    #[arg(long, requires = "status")]
    json: bool,
    #[command(flatten)]
    listing: flows::Listing,
    /// A standby on another machine that hears of this enforcer's flows, twenty times a second, by UDP
    #[arg(long, value_name = "ADDRESS:PORT", requires = "between")]
    mirror_to: Vec<SocketAddr>,
    /// Be a standby: hear of another enforcer's flows at this address, and enforce those whose packets come here
    #[arg(long, value_name = "ADDRESS:PORT", requires = "between")]
    mirror_from: Option<SocketAddr>,
    /// The key that enforcers have in common, of `opentcp keygen`; only root may be able to read it
    #[arg(long, value_name = "FILE", default_value = "/etc/opentcp/mirror.key")]
    mirror_key: PathBuf,
    /// Take the place of the enforcer that runs at these interfaces, with its flows, as a new version does; if none runs, start as
    /// usual. Packets wait for a few milliseconds; none bypasses the enforcer, and none is lost. Rules are this one's, also for open
    /// flows. CUEs are asked for anew
    #[arg(long, requires = "between")]
    replace: bool,
    /// Start although enforced packets pass by filters (nftables) and queue disciplines (tc) of the bridge and its ports. Without it, the start
    /// is refused where there are any
    #[arg(long, requires = "between")]
    bypass_filters: bool,
    /// Remove the program that a killed enforcer left in the kernel, which does nothing by itself
    #[arg(long, conflicts_with_all = ["between", "rules"])]
    reset: bool,
    /// Serve metrics to Prometheus at this address, at /metrics; 127.0.0.1:9817 is for this machine alone
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    log: LogArgs,
    /// The status socket
    #[arg(long, value_name = "FILE", default_value = "/run/opentcp/enforce.sock")]
    socket: PathBuf,
    /// The folder of pinned BPF objects, in a BPF file system
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/bpf/opentcp/enforce")]
    pins: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// As the exit codes say.
pub fn enforce(args: &Args) -> Result<(), Failure> {
    if args.status {
        match args.flows {
            Some(None) => return flows::list(&args.listing, &args.socket, args.json),
            Some(Some(_)) => return Err(Failure::Input("--flows takes no number with --status".to_string())),
            None => {}
        }
        let status = Status::ask(&args.socket).map_err(|error| {
            let socket = args.socket.display();
            Failure::Run(format!("{socket}: {error}; no enforcer listens there"))
        })?;
        return if args.json { print_json(&status) } else { print(&status.to_string()) };
    }
    if args.reset {
        let removed = enforced::reset(&args.socket, &args.pins).map_err(|error| failure(&error))?;
        return print(if removed { "the program was removed\n" } else { "there was no program to remove\n" });
    }
    let log = Log::new("enforcer", args.log);
    let mut say = |line: &str| log.say(line);
    let mut rule =
        |text: &String| enforced::rule(text, &mut say).map_err(|why| Failure::Input(format!("--rule '{text}': {why}")));
    let rules: Vec<Rule> = args.rules.iter().map(&mut rule).collect::<Result<_, _>>()?;
    let [servers, clients] = &args.between[..] else {
        return Err(Failure::Input("--between takes two interfaces".to_string()));
    };
    let meeting = meeting(args)?;
    let config = Config {
        between: [servers.clone(), clients.clone()],
        rules,
        hosts: args.hosts.clone(),
        places: Places {
            key: meeting.key(args.key.clone(), "oracle.pub", "/etc/opentcp/oracle.key.pub"),
            bus: meeting.bus,
            state: args.state.clone(),
        },
        limits: Limits {
            flows: flows_max(args.flows)?,
            buffer_bytes: usize::try_from(args.buffer.get()).unwrap_or(usize::MAX),
            ..Limits::default()
        },
        socket: args.socket.clone(),
        metrics: args.metrics,
        pins: args.pins.clone(),
        mirroring: Mirroring { to: args.mirror_to.clone(), from: args.mirror_from, key: args.mirror_key.clone() },
        replace: args.replace,
        bypass_filters: args.bypass_filters,
    };
    let stop = stop::on_signals();
    enforced::run(config, &|| stop.is_set(), &mut say).map_err(|error| failure(&error))
}

/// Where the Oracle is met; only for hosts whose CUEs are taken.
fn meeting(args: &Args) -> Result<Meeting, Failure> {
    if args.hosts.is_empty() && args.identity.is_none() {
        return Meeting::choose(None, Some(&super::SOCKET.into()), &[]);
    }
    let meeting = Meeting::choose(args.identity.as_ref(), args.oracle.as_ref(), &[Role::Enforcer])?;
    let Some((folder, identity)) = &meeting.identity else { return Ok(meeting) };
    let own = &identity.card.member().hosts;
    match args.hosts.iter().find(|host| !own.contains(&host.name)) {
        None => Ok(meeting),
        Some(host) => Err(Failure::Input(format!(
            "--host {}: the identity in {} is for the hosts {}; a token names them (`opentcp fleet token --role enforcer --host NAME`)",
            host.name,
            folder.display(),
            own.join(", ")
        ))),
    }
}

/// The maximum of enforced flows.
#[allow(clippy::option_option, reason = "as in the arguments")]
fn flows_max(flows: Option<Option<u32>>) -> Result<usize, Failure> {
    match flows {
        None => Ok(Limits::default().flows),
        Some(Some(flows)) => Ok(flows as usize),
        Some(None) => {
            Err(Failure::Input("--flows needs a number without --status: how many are enforced at most".to_string()))
        }
    }
}

fn failure(error: &EnforceError) -> Failure {
    if error.is_input() { Failure::Input(error.to_string()) } else { Failure::Run(error.to_string()) }
}

/// A host whose CUEs the enforcer takes.
fn behalf(text: &str) -> Result<Behalf, String> {
    let mut words = text.split_whitespace().map(|word| word.split_once('='));
    let (name, prefix) = words.next().flatten().ok_or("expected NAME=PREFIX, then labels as KEY=VALUE")?;
    let prefix = prefix.parse().map_err(|error: policy::PrefixError| error.to_string())?;
    let labels: Option<BTreeMap<String, String>> =
        words.map(|pair| pair.map(|(key, value)| (key.to_string(), value.to_string()))).collect();
    let labels = labels.ok_or("expected labels as KEY=VALUE")?;
    Ok(Behalf { name: name.to_string(), prefix, labels })
}
