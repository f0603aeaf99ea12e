//! Network namespaces other than the agent's own: a cgroup holds containers, too.

#[cfg(test)]
mod tests;

use nix::sched::{CloneFlags, setns};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread;

/// Calls a function in each network namespace in which a process of the cgroup is, on a thread that has entered it; in the calling
/// thread's own first. A namespace that cannot be entered is skipped: it ended meanwhile, or is not ours to enter.
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
    for file in others.into_values() {
        let work = &mut work;
        thread::scope(|scope| {
            scope.spawn(move || {
                if setns(file, CloneFlags::CLONE_NEWNET).is_ok() {
                    work();
                }
            });
        });
    }
}

/// The number by which the kernel knows the network namespace of a process.
pub fn number(process: &str) -> Option<u64> {
    fs::metadata(format!("/proc/{process}/ns/net")).ok().map(|namespace| namespace.ino())
}

/// The processes of a cgroup and of those below.
fn collect(cgroup: &Path, take: &mut impl FnMut(&str)) {
    let processes = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    processes.lines().for_each(&mut *take);
    for entry in fs::read_dir(cgroup).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&entry.path(), take);
        }
    }
}
