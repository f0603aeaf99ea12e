//! `opentcp cc`: lists algorithms, checks a user's file, and loads algorithms into the running kernel.

mod check;
mod install;
mod list;

use crate::failure::Failure;
use std::path::PathBuf;

/// Shown under `opentcp cc --help`.
pub const EXAMPLES: &str = "\
Examples:
  opentcp cc list                 what each algorithm is, and what the running kernel has of them
  opentcp cc list --json          the same for a program
  opentcp cc check my_reno.c      native build, BPF build, invariants, and the kernel's verifier
  opentcp cc load cubic my_reno.c into the running kernel, until `opentcp cc unload` or a restart";

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List the algorithms, and what the running kernel has
    ///
    /// For each built-in algorithm: its name in scenarios, its category, its congestion signals, whether it needs ECN, whether it is
    /// loaded into the running kernel and how many sockets of this network namespace use it there, the environment it was designed for,
    /// and the paper or RFC that describes it. A second table lists the kernel's other algorithms: its own, and loaded files of users.
    #[command(after_help = "Examples:\n  opentcp cc list\n  opentcp cc list --json\n  nsenter --net=/run/netns/h1 \
                            opentcp cc list     sockets of another network namespace")]
    List {
        /// One JSON object on stdout instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Check a C file of your own
    ///
    /// Compiles it natively (what the simulator runs) and for BPF (what the Linux kernel runs). Then runs it through thousands of ACKs,
    /// losses and timeouts in a separate process and checks invariants. If this process may load BPF programs, the kernel's verifier
    /// checks it too. Each step is one line; a failed one shows the compiler's or the verifier's message. The contract is the header
    /// cc/include/tcp.h; docs/algorithms.md explains it.
    ///
    /// It is native code. Checking confines it: no files, no network, no processes, 5 s of CPU time and 1 GiB of memory; a run does not, so
    /// run others' files as a user without rights. Exit codes: 0 all passed, 1 a check failed, 2 the file cannot be
    /// read, does not compile or declares no algorithm.
    #[command(after_help = "Examples:\n  opentcp cc check my_reno.c\n  opentcp run scenarios/dumbbell.toml --set \
                            traffic.new.cc=\"$PWD/my_reno.c\"")]
    Check {
        /// The C file
        file: PathBuf,
    },
    /// Load algorithms into the running kernel
    ///
    /// Each becomes a TCP congestion control of the running kernel, under the name ot_NAME, for every network namespace
    /// and every user. Choose it by the socket option TCP_CONGESTION, by `ip route ... congctl`, or by a namespace's sysctl. It stays
    /// until `opentcp cc unload` or a restart; its BPF link is the file /sys/fs/bpf/opentcp/cc/ot_NAME.
    ///
    /// An algorithm that is already loaded is replaced in one step: new connections use the new version, open ones keep the version
    /// that they started with. Everything is compiled and verified before anything changes.
    ///
    /// Needs root (or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN) and Linux 6.4 or newer with BTF; algorithms with
    /// cong_control need 6.10. Exit codes: 0 done, 1 the kernel failed to do it, 2 bad input, or a kernel without support.
    #[command(after_help = "Examples:\n  opentcp cc load cubic dctcp\n  opentcp cc load all\n  opentcp cc load \
                            my_reno.c\n  iperf3 -c HOST -C ot_cubic     a connection that uses one")]
    Load {
        /// Names (as in `opentcp cc list`), `all`, or C files
        #[arg(required = true, value_name = "NAME|all|FILE.c")]
        algorithms: Vec<String>,
    },
    /// Unload algorithms from the running kernel
    ///
    /// New connections can no longer choose them; open connections keep theirs until they close. `all` means everything that
    /// `opentcp cc load` has loaded, users' files included.
    #[command(after_help = "Examples:\n  opentcp cc unload cubic\n  opentcp cc unload all")]
    Unload {
        /// Names, `all`, or C files
        #[arg(required = true, value_name = "NAME|all|FILE.c")]
        algorithms: Vec<String>,
    },
}

/// Runs the command.
///
/// # Errors
/// Not an algorithm, or a kernel without support (bad input); or the work failed.
pub fn cc(command: &Command) -> Result<(), Failure> {
    match command {
        Command::List { json } => list::list(*json),
        Command::Check { file } => check::check(file),
        Command::Load { algorithms } => install::load(algorithms),
        Command::Unload { algorithms } => install::unload(algorithms),
    }
}
