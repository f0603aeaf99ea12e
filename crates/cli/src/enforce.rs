//! `opentcp enforce`: congestion control for hosts that nobody may change, on the way between two interfaces.

mod cues;
mod daemon;
mod epoch;
mod port;
mod settings;
mod status;

use crate::failure::Failure;
use crate::stop::Stop;
use crate::terminal::{print, print_json};
use congestion::{Algorithm, check_invariants};
use cues::{Behalf, Cues, Places};
use daemon::Daemon;
use enforcer::{Limits, Rule};
use kernel::steer::Steering;
use packet_io::Tap;
use policy::Prefix;
use port::{Place, Port};
use status::{Listener, Status};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::Bytes;

/// The word for flows that a rule leaves alone.
const UNTOUCHED: &str = "none";

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
        return reset(args);
    }
    let rules =
        args.rules.iter().map(|text| rule(text).map_err(|why| Failure::Input(format!("--rule '{text}': {why}"))));
    let rules: Vec<Rule> = rules.collect::<Result<_, _>>()?;
    let cues = cues(args)?;
    let limits = Limits {
        flows: args.flows as usize,
        buffer_bytes: usize::try_from(args.buffer.get()).unwrap_or(usize::MAX),
        ..Limits::default()
    };
    let [servers, clients] = &args.between[..] else { return Err(Failure::Input("--between takes two".to_string())) };
    let place = Place::find(servers, clients).map_err(Failure::Input)?;
    let listener =
        Listener::bind(&args.socket).map_err(|why| Failure::Input(format!("{}: {why}", args.socket.display())))?;
    let stop = Stop::on_signals();
    let ports = place.open(&args.pins).map_err(Failure::Run)?;
    let daemon = Daemon::new(ports, limits, rules, cues, listener);
    daemon.take_over().map_err(Failure::Run)?;
    let bridge = place.bridge.as_ref().map(|name| format!(" of the bridge {name}")).unwrap_or_default();
    eprintln!("enforcing between {servers} and {clients}{bridge}");
    daemon.run(&|| stop.is_set()).map_err(|error| Failure::Run(error.to_string()))
}

/// Enforces an algorithm on everything between the near ends of two TAPs, the servers' and the clients', until `stopped` says so. Its status
/// is told at `socket`.
///
/// # Errors
/// There is no such algorithm, or nothing can be told there; the kernel fails.
pub fn between_taps(
    [servers, clients]: [Tap; 2],
    algorithm: &str,
    socket: &Path,
    stopped: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let rules = vec![rule(algorithm).map_err(Failure::Input)?];
    let ports = [Port::of_tap("servers", servers), Port::of_tap("clients", clients)];
    let listener = Listener::bind(socket).map_err(Failure::Run)?;
    let outcome = Daemon::new(ports, Limits::default(), rules, None, listener).run(stopped);
    outcome.map_err(|error| Failure::Run(error.to_string()))
}

/// The CUEs that are taken for hosts, if any are.
fn cues(args: &Args) -> Result<Option<Cues>, Failure> {
    if args.hosts.is_empty() {
        return Ok(None);
    }
    let failed = |why: &dyn std::fmt::Display| Failure::Input(why.to_string());
    std::fs::create_dir_all(&args.state).map_err(|error| failed(&format!("{}: {error}", args.state.display())))?;
    let places = Places { oracle: args.oracle.clone(), key: args.key.clone(), epoch: args.state.join("epoch") };
    Cues::new(&args.hosts, places).map(Some).map_err(|error| failed(&error))
}

fn reset(args: &Args) -> Result<(), Failure> {
    if Status::ask(&args.socket).is_ok() {
        return Err(Failure::Input("an enforcer runs; stop it, and it takes its program out itself".to_string()));
    }
    let removed = Steering::remove(&args.pins).map_err(|error| Failure::Run(error.to_string()))?;
    print(if removed { "the program is taken out\n" } else { "nothing was left\n" })
}

/// A rule: an algorithm and what it is for.
fn rule(text: &str) -> Result<Rule, String> {
    let mut words = text.split_whitespace();
    let name = words.next().ok_or("name an algorithm")?;
    let config = match name {
        UNTOUCHED => None,
        name => Some(Arc::new(tcp::Config::linux(algorithm(name)?))),
    };
    let mut rule = Rule { servers: None, clients: None, port: None, dscp: None, config };
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not KEY=VALUE"))?;
        let prefix = || value.parse::<Prefix>().map(Some).map_err(|error| error.to_string());
        match key {
            "servers" => rule.servers = prefix()?,
            "clients" => rule.clients = prefix()?,
            "port" => rule.port = Some(value.parse().ok().filter(|port| *port > 0).ok_or("a port is from 1 to 65535")?),
            "dscp" => rule.dscp = Some(value.parse().ok().filter(|dscp| *dscp < 64).ok_or("a DSCP is from 0 to 63")?),
            _ => return Err(format!("`{key}` is not known; a rule has servers, clients, port and dscp")),
        }
    }
    Ok(rule)
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

/// An algorithm, or one in a file.
fn algorithm(name: &str) -> Result<&'static Algorithm, String> {
    if Path::new(name).extension().is_some_and(|extension| extension == "c") {
        let algorithm = Algorithm::load(Path::new(name)).map_err(|error| error.to_string())?;
        if let Err(violation) = check_invariants(algorithm) {
            eprintln!("warning: {violation}\n`opentcp cc check {name}` tells more");
        }
        return Ok(algorithm);
    }
    built_in(name).map_err(|why| format!("{why}, and files of your own (*.c)"))
}

fn built_in(name: &str) -> Result<&'static Algorithm, String> {
    Algorithm::named(name).ok_or_else(|| {
        let names: Vec<&str> = Algorithm::builtins().iter().map(Algorithm::name).collect();
        format!("there is no algorithm `{name}`; there are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_says_which_algorithm_for_which_flows() {
        let all = rule("bbr servers=10.0.0.0/8 clients=2001:db8::/32 port=443 dscp=46").expect("a rule");
        assert_eq!(all.config.map(|config| config.algorithm.name()), Some("bbr"));
        assert_eq!(all.servers, "10.0.0.0/8".parse().ok());
        assert_eq!(all.clients, "2001:db8::/32".parse().ok());
        assert_eq!((all.port, all.dscp), (Some(443), Some(46)));
        assert!(rule("none port=22").is_ok_and(|rule| rule.config.is_none()));
        for (text, why) in [
            ("", "name an algorithm"),
            ("bbr2", "no algorithm `bbr2`"),
            ("bbr port=0", "1 to 65535"),
            ("bbr port", "KEY=VALUE"),
            ("bbr dscp=64", "0 to 63"),
            ("bbr host=h1", "`host` is not known"),
            ("bbr servers=10.0.0.0/33", "33"),
        ] {
            let error = rule(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
