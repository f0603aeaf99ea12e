//! Network namespaces other than the agent's own: a cgroup holds containers, too.

#[cfg(test)]
mod tests;

use nix::sched::{CloneFlags, setns};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread;

/// Where namespaces have names: those of iproute2, of Kubernetes, and of HAProxy's `namespace`; and Docker's. A process may have sockets in one
/// in which none is.
const NAMED: [&str; 2] = ["/run/netns", "/run/docker/netns"];

/// Calls a function in each network namespace in which a process of the cgroup is, and in each that has a name and open connections, on a
/// thread that has entered it; in the calling thread's own first. A namespace that cannot be entered is skipped: it ended meanwhile, or is
/// not ours to enter.
pub fn in_each(cgroup: &Path, mut work: impl FnMut() + Send) {
    work();
    let own = number("thread-self");
    let mut others = BTreeMap::new();
    collect(cgroup, &mut |process| {
        if let Some(namespace) = number(process).filter(|namespace| Some(*namespace) != own)
            && let Ok(file) = File::open(format!("/proc/{process}/ns/net"))
        {
            others.entry(namespace).or_insert(file);
        }
    });
    let with_processes: Vec<u64> = others.keys().copied().collect();
    for entry in NAMED.iter().flat_map(fs::read_dir).flatten().flatten() {
        let file = File::open(entry.path()).and_then(|file| Ok((file.metadata()?.ino(), file)));
        if let Some((namespace, file)) = file.ok().filter(|(namespace, _)| Some(*namespace) != own) {
            others.entry(namespace).or_insert(file);
        }
    }
    for (namespace, file) in others {
        let work = &mut work;
        let is_named = !with_processes.contains(&namespace);
        thread::scope(|scope| {
            scope.spawn(move || {
                if setns(file, CloneFlags::CLONE_NEWNET).is_ok() && (!is_named || has_connections()) {
                    work();
                }
            });
        });
    }
}

/// Whether the calling thread's namespace has TCP sockets: looking at each takes longer.
fn has_connections() -> bool {
    let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
    in_use(&(read("sockstat") + &read("sockstat6"))) > 0
}

/// TCP sockets in use, by the text of /proc/net/sockstat and sockstat6.
fn in_use(text: &str) -> u64 {
    let of_tcp = text.lines().filter_map(|line| line.strip_prefix("TCP: inuse ").or(line.strip_prefix("TCP6: inuse ")));
    of_tcp.filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok()).sum()
}

/// The number by which the kernel knows the network namespace of a process.
pub fn number(process: &str) -> Option<u64> {
    fs::metadata(format!("/proc/{process}/ns/net")).ok().map(|namespace| namespace.ino())
}

/// The processes of a cgroup and of those below.
fn collect(cgroup: &Path, take: &mut impl FnMut(&str)) {
    each_below(cgroup, &mut |folder| {
        let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        processes.lines().for_each(&mut *take);
    });
}

/// Calls `take` with the folder of a cgroup and with those below.
pub fn each_below(cgroup: &Path, take: &mut impl FnMut(&Path)) {
    take(cgroup);
    for entry in fs::read_dir(cgroup).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            each_below(&entry.path(), take);
        }
    }
}
