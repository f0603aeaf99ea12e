//! Finds hosts from outside: those of live runs, to enter them, and remains of dead ones, to end them.

use crate::hosts::namespace::inside;
use crate::hosts::netlink::{LOOPBACK, Network};
use crate::scheduling::Precedence;
use netlink_packet_route::link::LinkAttribute;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command};

const PREFIX: &str = "opentcp-";

/// A killed process is gone when its memory is freed: large ones take a moment.
const PATIENCE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// An owner's mark. For a namespace it is the alias of its loopback interface, which lasts as long as the namespace; for a
/// cgroup it is the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    owner: u32,
    /// In the kernel's ticks since boot: distinguishes the owner from a later process of the same number.
    owner_started: u64,
    host: String,
}

impl Mark {
    /// For `host` of this process.
    pub fn of_this_process(host: &str) -> io::Result<Mark> {
        let owner = process::id();
        let owner_started = started(owner).ok_or(io::ErrorKind::NotFound)?;
        Ok(Mark { owner, owner_started, host: host.to_owned() })
    }

    /// Parses a mark, if `text` is one.
    pub fn parse(text: &str) -> Option<Mark> {
        let mut parts = text.strip_prefix(PREFIX)?.splitn(3, '-');
        let owner = parts.next()?.parse().ok()?;
        let owner_started = parts.next()?.parse().ok()?;
        Some(Mark { owner, owner_started, host: parts.next()?.to_owned() })
    }

    /// Whether its owner is still alive.
    pub fn owner_lives(&self) -> bool {
        started(self.owner) == Some(self.owner_started)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PREFIX}{}-{}-{}", self.owner, self.owner_started, self.host)
    }
}

/// A host of a live run, possibly of another process.
#[derive(Clone, Debug)]
pub struct Found {
    name: String,
    owner: u32,
    namespace: PathBuf,
}

impl Found {
    /// The host's name in its run.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process that owns it.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// The file by which it can be entered during the run.
    pub fn namespace(&self) -> &Path {
        &self.namespace
    }

    /// Starts a program inside the host.
    ///
    /// # Errors
    /// The host is gone, `argv` is empty, or what starting the program says.
    pub fn command(&self, argv: &[impl AsRef<OsStr>]) -> io::Result<Child> {
        let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments);
        inside(&self.namespace, move || command.spawn())?
    }
}

/// The hosts of all live runs, by owner and name.
///
/// # Errors
/// /proc cannot be read. Namespaces that may not be entered are skipped.
pub fn list() -> io::Result<Vec<Found>> {
    let mut hosts: Vec<_> = marked_namespaces()?
        .into_iter()
        .filter(|(mark, _)| mark.owner_lives())
        .map(|(mark, tasks)| Found { name: mark.host, owner: mark.owner, namespace: tasks[0].namespace() })
        .collect();
    hosts.sort_by(|a, b| (a.owner, &a.name).cmp(&(b.owner, &b.name)));
    Ok(hosts)
}

/// The host `name` of the latest run.
///
/// # Errors
/// As [`list`]; `NotFound` when no run has such a host.
pub fn find(name: &str) -> io::Result<Found> {
    let hosts = list()?.into_iter().filter(|host| host.name == name);
    let latest = hosts.max_by_key(|host| started(host.owner));
    latest.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no run has a host '{name}'")))
}

/// The result of [`clean`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Hosts of dead runs.
    pub hosts: usize,
    /// Processes that kept them alive.
    pub processes: usize,
    /// Control groups of dead runs.
    pub cgroups: usize,
}

/// Ends the processes that dead runs have left in their hosts; the hosts vanish with them. Other hosts, and those
/// of live runs, are not touched. Removes dead runs' cgroups. If no run is alive, restores this session's scheduling priority.
///
/// # Errors
/// /proc cannot be read.
pub fn clean() -> io::Result<Cleaned> {
    let mut cleaned = Cleaned::default();
    let mut lives = false;
    for (mark, tasks) in marked_namespaces()? {
        if mark.owner_lives() {
            lives = true;
        } else {
            cleaned.hosts += 1;
            cleaned.processes += end_processes_in(tasks[0].inode);
        }
    }
    if !lives {
        Precedence::forget();
    }
    cleaned.cgroups = crate::cgroup::clean();
    Ok(cleaned)
}

/// Kills the processes whose main thread is in the namespace of this inode, and waits for their end. Returns their number.
pub(super) fn end_processes_in(inode: u64) -> usize {
    let mut ended = 0;
    // Repeated, since they may start others meanwhile; endless forking is beyond this.
    for _ in 0..10 {
        let Ok(all) = tasks() else { break };
        let killed = all.iter().filter(|task| task.is_main() && task.inode == inode && kill(task)).count();
        ended += killed;
        if killed == 0 {
            break;
        }
    }
    ended
}

/// Kills a process, unless its number has been reused meanwhile. Returns whether it existed and is gone.
fn kill(task: &Task) -> bool {
    let Some(pid) = Pid::from_raw(task.process as i32) else { return false };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    let is_still_there = task.process != process::id() && inode_of(&task.namespace()) == Some(task.inode);
    is_still_there
        && pidfd_send_signal(&handle, Signal::KILL).is_ok()
        && poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&PATIENCE)) == Ok(1)
}

/// A thread, and the network namespace that it is in.
#[derive(Clone, Copy, Debug)]
struct Task {
    process: u32,
    thread: u32,
    inode: u64,
}

impl Task {
    fn is_main(&self) -> bool {
        self.process == self.thread
    }

    fn namespace(&self) -> PathBuf {
        namespace_of(self.process, self.thread)
    }
}

/// The namespaces with our mark, each with its threads.
fn marked_namespaces() -> io::Result<Vec<(Mark, Vec<Task>)>> {
    let own = inode_of(Path::new("/proc/thread-self/ns/net"));
    let mut namespaces: BTreeMap<u64, Vec<Task>> = BTreeMap::new();
    for task in tasks()? {
        if Some(task.inode) != own {
            namespaces.entry(task.inode).or_default().push(task);
        }
    }
    let mark_of = |tasks: &[Task]| inside(&tasks[0].namespace(), read_mark).ok().flatten();
    Ok(namespaces.into_values().filter_map(|tasks| Some((mark_of(&tasks)?, tasks))).collect())
}

fn read_mark() -> Option<Mark> {
    let attributes = Network::open().ok()?.link(LOOPBACK).ok()?;
    attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfAlias(alias) => Mark::parse(alias),
        _ => None,
    })
}

/// Every thread of the machine that has not ended yet.
fn tasks() -> io::Result<Vec<Task>> {
    let mut all = Vec::new();
    for process in numbers_in(Path::new("/proc"))? {
        // It may end meanwhile.
        let Ok(threads) = numbers_in(&Path::new("/proc").join(process.to_string()).join("task")) else { continue };
        all.extend(
            threads
                .into_iter()
                .filter_map(|thread| Some(Task { process, thread, inode: inode_of(&namespace_of(process, thread))? })),
        );
    }
    Ok(all)
}

fn numbers_in(folder: &Path) -> io::Result<Vec<u32>> {
    let names = fs::read_dir(folder)?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(names.collect())
}

fn namespace_of(process: u32, thread: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{process}/task/{thread}/ns/net"))
}

fn inode_of(namespace: &Path) -> Option<u64> {
    fs::metadata(namespace).ok().map(|file| file.ino())
}

/// Start of a process, in ticks since boot; `None` if it has ended, though its parent may not have reaped it.
fn started(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the program's name in parentheses, and may hold any character. After it the first field is the state,
    // and this the 20th.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let has_ended = matches!(fields.next()?, "Z" | "X");
    let started = fields.nth(18)?.parse().ok()?;
    (!has_ended).then_some(started)
}
