//! `opentcp emu`: an emulated network for the user's own programs, and cleaning up after killed runs.

use crate::failure::Failure;
use crate::operator::is_root;
use crate::stop;
use crate::terminal::{message, note, print};
use ::emu::{Furnished, Network, hosts};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process;
use study::Backend;
use study::emu::{Origin, failure};

/// Shown under `opentcp emu --help`.
pub const EXAMPLES: &str = "\
Examples:
  opentcp emu shell scenarios/dctcp-star.toml                 then, in the shell:
      h3 iperf3 -s -D; h1 iperf3 -c h3
  opentcp emu shell scenarios/dumbbell.toml --pcap captures   with captures for Wireshark
  opentcp emu clean                                           after a killed run or shell";

/// Prefix of the folder of a shell's host commands, before its process ID.
const FOLDER_PREFIX: &str = "opentcp-emu-";

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Open a scenario's network and start a shell
    ///
    /// The network exists until the shell ends: a network namespace for each host, set as the scenario's `[tcp]` says, the scenario's links,
    /// queues and failures, and the algorithms of all its runs in the kernel (`ot_NAME`). The scenario's traffic is not generated. `h1 PROGRAM`
    /// runs a program in host h1; all hosts resolve the name h1, and the variable $h1 is its address. Needs root.
    #[command(after_help = EXAMPLES)]
    Shell {
        /// The scenario file (TOML)
        scenario: PathBuf,
        /// Set a key of the scenario, dotted; may be given many times
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
        /// Capture the packets of each host into DIR/HOST.pcap
        #[arg(long, value_name = "DIR")]
        pcap: Option<PathBuf>,
        /// Run this command instead of an interactive shell
        #[arg(short, long, value_name = "COMMAND")]
        command: Option<String>,
    },
    /// End programs that a killed run left in its hosts
    ///
    /// It also removes the run's cgroup and the temporary folders of killed shells. A killed run leaves nothing else.
    Clean,
}

/// Runs the command.
///
/// # Errors
/// Bad input, a network that cannot be built, or a shell that fails.
pub fn emu(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Shell { scenario, sets, pcap, command } => {
            shell(&Origin { source: &scenario.as_path().into(), sets }, pcap.clone(), command.as_deref())
        }
        Command::Clean => clean(),
    }
}

fn clean() -> Result<(), Failure> {
    let cleaned = hosts::clean().map_err(|error| Failure::Run(format!("cannot clean: {error}")))?;
    let folders = remove_dead_folders();
    if cleaned.hosts + cleaned.cgroups + folders == 0 {
        return print("there was nothing to clean\n");
    }
    print(&format!(
        "ended {} programs in {} hosts of dead runs, removed {} of their cgroups and {folders} folders of dead shells\n",
        cleaned.processes, cleaned.hosts, cleaned.cgroups
    ))
}

/// Removes the command folders of killed shells.
fn remove_dead_folders() -> usize {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return 0 };
    let dead = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let owner =
            name.to_str().and_then(|name| name.strip_prefix(FOLDER_PREFIX)).and_then(|id| id.parse::<u32>().ok());
        owner.is_some_and(|owner| !Path::new("/proc").join(owner.to_string()).exists())
    };
    entries.flatten().filter(dead).filter(|entry| fs::remove_dir_all(entry.path()).is_ok()).count()
}

fn shell(origin: &Origin<'_>, pcap: Option<PathBuf>, command: Option<&str>) -> Result<(), Failure> {
    if !is_root() {
        let file = origin.source.name();
        return Err(Failure::Input(format!(
            "a network of Linux hosts needs root: sudo opentcp emu shell {file} (`opentcp run {file}` simulates without)"
        )));
    }
    let runs = study::read_scenario(origin.source, origin.sets, Backend::Emu)?;
    if runs.len() > 1 {
        note!("this scenario is a sweep; the network is that of its first run, {}", runs[0].name);
    }
    let mut scenarios = runs.into_iter().map(|run| run.scenario);
    let scenario = scenarios.next().expect("a scenario has a run");
    let others: Vec<_> = scenarios.collect();
    // Ctrl-C is meant for the program in the shell
    let _stop = stop::on_signals();
    let opened = ::emu::open_with(&scenario, &others, pcap, |network, furnished| {
        introduce(network, furnished);
        run_shell(network, command)
    });
    let (status, counted) = opened.map_err(|error| failure(error, *origin))?;
    let status = status.map_err(|error| Failure::Run(format!("the shell cannot be started: {error}")))?;
    let totals = counted.totals;
    note!("{} packets entered the network, {} were dropped by queues", totals.entered, totals.dropped);
    for gate in &counted.gates {
        for (name, count) in gate.counters().named().iter().filter(|(_, count)| *count > 0) {
            note!("enforcer: {name} {count}");
        }
    }
    if command.is_some() && !status.success() {
        return Err(Failure::Run(format!("the command ended with {status}")));
    }
    Ok(())
}

/// Says what is in the network.
fn introduce(network: &Network, furnished: &Furnished) {
    let Furnished { own, loaded, lacking } = furnished;
    for host in network.hosts() {
        note!("{:<12} {}", host.name(), host.address());
    }
    note!("algorithm    {own} on each host; another by TCP_CONGESTION, as in iperf3 -C: {}", choices(own, loaded));
    for lacking in lacking {
        note!("not as the scenario has it: {lacking}");
    }
    note!("`{} PROGRAM` runs a program in that host; `exit` closes the network", network.hosts()[0].name());
}

/// The algorithms that programs may choose beside the host's own: the scenario's first, then the kernel's.
fn choices(own: &str, loaded: &[String]) -> String {
    let of_kernel = kernel::algorithms().unwrap_or_default();
    let of_kernel = of_kernel.iter().filter_map(|name| name.strip_prefix(kernel::KERNEL_PREFIX));
    let all = loaded.iter().map(String::as_str).chain(of_kernel);
    let mut names: Vec<&str> = Vec::new();
    for name in all.filter(|name| *name != own) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// Runs the user's shell, with a command for each host in its PATH.
fn run_shell(network: &Network, command: Option<&str>) -> io::Result<process::ExitStatus> {
    let folder = Commands::create(network)?;
    for host in network.hosts() {
        // a host that has run a program kills all its programs at the end; those of the shell join it in another way
        host.command(&["true"])?.wait()?;
    }
    let shell = std::env::var_os("SHELL").filter(|shell| Path::new(shell).exists()).unwrap_or("/bin/sh".into());
    let path = std::env::var("PATH").unwrap_or_default();
    let mut process = process::Command::new(shell);
    process.env("PATH", format!("{}:{path}", folder.commands().display()));
    for host in network.hosts() {
        process.env(host.name(), host.address().to_string());
    }
    if let Some(command) = command {
        process.arg("-c").arg(command);
    }
    let names: Vec<_> = network.hosts().iter().map(|host| (host.name(), host.address())).collect();
    let mut child = hosts::with_names(&names, &folder.names(), |given| {
        if let Err(error) = given {
            message!("hosts' names do not resolve, use their addresses: {error}");
        }
        process.spawn()
    })??;
    child.wait()
}

/// A folder with a command for each host and their names, removed when dropped.
struct Commands(PathBuf);

impl Commands {
    fn create(network: &Network) -> io::Result<Commands> {
        let folder = std::env::temp_dir().join(format!("{FOLDER_PREFIX}{}", process::id()));
        fs::create_dir(&folder)?;
        let commands = Commands(folder);
        fs::create_dir(commands.commands())?;
        for host in network.hosts() {
            let path = commands.commands().join(host.name());
            fs::write(&path, format!("#!/bin/sh\nexec nsenter --net={} -- \"$@\"\n", host.namespace().display()))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        Ok(commands)
    }

    /// A command for each host.
    fn commands(&self) -> PathBuf {
        self.0.join("bin")
    }

    /// What stands in for /etc/hosts.
    fn names(&self) -> PathBuf {
        self.0.join("hosts")
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
