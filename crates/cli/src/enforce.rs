//! `opentcp enforce`: congestion control for hosts that nobody may change, on the way between two interfaces.

use crate::failure::Failure;
use crate::stop;
use crate::terminal::{print, print_json, talk};
use enforced::{Behalf, Config, EnforceError, Places, Status};
use enforcer::{Limits, Rule};
use std::collections::BTreeMap;
use std::path::PathBuf;
use units::Bytes;

/// Enforce congestion control on the way between servers and their clients
///
/// Stands between two interfaces, both of them ports of one Linux bridge, or both TAPs of which nobody else has the other end. Of the
/// TCP flows that a rule is for, what the servers send goes on by the rule's algorithm: the window that servers see is the
/// algorithm's, and what is lost behind the enforcer is sent again from its copy. Servers and clients stay as they are.
///
/// All other packets take their way through the bridge, and so does everything when the enforcer is not there, however it
/// ended: flows go on. (Between TAPs it is the wire.) After a restart, flows that it has not seen begin pass untouched.
///
/// Needs root, or CAP_BPF, CAP_NET_ADMIN, CAP_NET_RAW and CAP_IPC_LOCK. docs/enforcer.md tells more.
///
/// Exit codes: 0 stopped by a signal, 1 the kernel failed, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    opentcp enforce --between eth1 eth2 --rule bbr\n  \
    opentcp enforce --between eth1 eth2 --rule 'none port=22' --rule 'bbr clients=198.51.100.0/24' --rule cubic\n  \
    opentcp enforce --between eth1 eth2 --host db1=10.0.0.7/32 --host 'db2=10.0.0.8/32 role=storage'\n  \
    opentcp enforce --status\n  opentcp enforce --reset")]
pub struct Args {
    /// The interface on the servers' side, then that on the clients'
    #[arg(long, num_args = 2, value_names = ["SERVERS", "CLIENTS"], required_unless_present_any = ["status", "reset"])]
    between: Vec<String>,
    /// Which algorithm for which flows, the first that fits: a name of `opentcp cc list`, a file of your own, or `none`; then, as
    /// wanted, servers=PREFIX, clients=PREFIX, port=NUMBER (of either end), dscp=NUMBER (of the SYN). Flows that none fits pass untouched
    #[arg(long = "rule", value_name = "RULE", required_unless_present_any = ["hosts", "status", "reset"])]
    rules: Vec<String>,
    /// A server that has no agent: the Oracle's CUEs for it are taken here, and come before the rules. Its name in policies, its
    /// addresses, and labels as wanted: 'db1=10.0.0.7/32 role=storage'
    #[arg(long = "host", value_name = "NAME=PREFIX [KEY=VALUE]...", value_parser = behalf)]
    hosts: Vec<Behalf>,
    /// The socket where the Oracle listens
    #[arg(long, value_name = "FILE", default_value = super::SOCKET)]
    oracle: PathBuf,
    /// The Oracle's public key, which nobody but root may write
    #[arg(long, value_name = "FILE", default_value = "/etc/opentcp/oracle.key.pub")]
    key: PathBuf,
    /// Where the highest epoch that was seen is kept
    #[arg(long, value_name = "DIR", default_value = "/var/lib/opentcp/enforce")]
    state: PathBuf,
    /// Memory of all packets that are kept until they are acknowledged
    #[arg(long, value_name = "BYTES", default_value = "1 GiB")]
    buffer: Bytes,
    /// Flows that are enforced at a time; others pass untouched
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    flows: u32,
    /// Tell how the enforcer is and everything that it has counted
    #[arg(long, conflicts_with_all = ["between", "rules", "reset"])]
    status: bool,
    /// One JSON object on stdout instead of text
    #[arg(long, requires = "status")]
    json: bool,
    /// Take out of the kernel what an enforcer that was killed has left there; it does nothing without its enforcer
    #[arg(long, conflicts_with_all = ["between", "rules"])]
    reset: bool,
    /// The socket that tells its status
    #[arg(long, value_name = "FILE", default_value = "/run/opentcp/enforce.sock")]
    socket: PathBuf,
    /// The folder of what stays in the kernel; it must be in a BPF file system
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/bpf/opentcp/enforce")]
    pins: PathBuf,
}

/// Does what was asked for.
///
/// # Errors
/// As the exit codes say.
pub fn enforce(args: &Args) -> Result<(), Failure> {
    if args.status {
        let status = Status::ask(&args.socket).map_err(|error| {
            let socket = args.socket.display();
            Failure::Run(format!("{socket}: {error}; no enforcer runs that could be asked there"))
        })?;
        return if args.json { print_json(&status) } else { print(&status.to_string()) };
    }
    if args.reset {
        let removed = enforced::reset(&args.socket, &args.pins).map_err(|error| failure(&error))?;
        return print(if removed { "the program is taken out\n" } else { "nothing was left\n" });
    }
    let mut say = |line: &str| talk!("{line}");
    let mut rule =
        |text: &String| enforced::rule(text, &mut say).map_err(|why| Failure::Input(format!("--rule '{text}': {why}")));
    let rules: Vec<Rule> = args.rules.iter().map(&mut rule).collect::<Result<_, _>>()?;
    let [servers, clients] = &args.between[..] else { return Err(Failure::Input("--between takes two".to_string())) };
    let config = Config {
        between: [servers.clone(), clients.clone()],
        rules,
        hosts: args.hosts.clone(),
        places: Places { oracle: args.oracle.clone(), key: args.key.clone(), epoch: args.state.join("epoch") },
        limits: Limits {
            flows: args.flows as usize,
            buffer_bytes: usize::try_from(args.buffer.get()).unwrap_or(usize::MAX),
            ..Limits::default()
        },
        socket: args.socket.clone(),
        pins: args.pins.clone(),
    };
    let stop = stop::on_signals();
    enforced::run(config, &|| stop.is_set(), &mut say).map_err(|error| failure(&error))
}

fn failure(error: &EnforceError) -> Failure {
    if error.is_input() { Failure::Input(error.to_string()) } else { Failure::Run(error.to_string()) }
}

/// A host for which CUEs are taken.
fn behalf(text: &str) -> Result<Behalf, String> {
    let mut words = text.split_whitespace().map(|word| word.split_once('='));
    let (name, prefix) = words.next().flatten().ok_or("write it as NAME=PREFIX, then labels as KEY=VALUE")?;
    let prefix = prefix.parse().map_err(|error: policy::PrefixError| error.to_string())?;
    let labels: Option<BTreeMap<String, String>> =
        words.map(|pair| pair.map(|(key, value)| (key.to_string(), value.to_string()))).collect();
    let labels = labels.ok_or("write labels as KEY=VALUE")?;
    Ok(Behalf { name: name.to_string(), prefix, labels })
}
