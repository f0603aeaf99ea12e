//! The BPF file system, whose files keep loaded programs beyond the process that loaded them.
//!
//! `ip netns exec` and services with private mounts may not see the machine's. What must last is refused there
//! ([`mount_to_last`]); what may end with its process is pinned in a file system of its own ([`mount_for_process`]).

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use std::fs;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};

/// Where every Linux tool expects it.
pub const BPFFS: &str = "/sys/fs/bpf";

/// Why there is no BPF file system.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// There is nowhere to mount one.
    #[error(
        "there is no folder {BPFFS}: the kernel has no BPF file system (CONFIG_BPF_SYSCALL), or /sys is not mounted"
    )]
    NoFolder,
    /// It could not be mounted.
    #[error(
        "{BPFFS} is not a BPF file system, and mounting one there failed ({reason}): run `mount -t bpf bpf {BPFFS}` as root"
    )]
    Mount {
        /// The system call's error.
        reason: String,
    },
    /// The process runs under `ip netns exec`.
    #[error(
        "`ip netns exec {namespace}` hides the machine's BPF file system behind a /sys of its own, where what is loaded is lost \
         when the command ends: start the command with `nsenter --net=/run/netns/{namespace}` instead"
    )]
    NetworkNamespace {
        /// The network namespace.
        namespace: String,
    },
    /// The process has mounts of its own.
    #[error(
        "this process has mounts of its own (`unshare`, or a service with private mounts) without a BPF file system on \
         {BPFFS}; what is loaded here would be lost when it ends: start the command outside of it"
    )]
    PrivateMounts,
    /// The caller's folder is in another file system.
    #[error("{}: not in a BPF file system; choose a folder below {BPFFS}, or run `mount -t bpf bpf DIR` for one of your own", .0.display())]
    Elsewhere(PathBuf),
}

/// How long a pinned file lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// Until it is removed, or the machine restarts.
    ForGood,
    /// As long as this process, however it ends.
    WithProcess,
}

/// Whether one is mounted in the usual place.
pub fn is_mounted() -> bool {
    is_bpffs(Path::new(BPFFS))
}

/// Mounts one in the usual place if there is none, as other BPF tools do; whether that was necessary.
///
/// # Errors
/// It cannot be mounted, or would not outlive the caller.
pub fn mount_to_last() -> Result<bool, MountError> {
    if is_mounted() {
        return Ok(false);
    }
    if !Path::new(BPFFS).is_dir() {
        return Err(MountError::NoFolder);
    }
    if let Some(error) = hidden() {
        return Err(error);
    }
    if has_private_mounts() {
        return Err(MountError::PrivateMounts);
    }
    mount_here().map(|()| true)
}

/// Makes sure that `folder` is in a BPF file system, for what may end with this process. Where none that lasts is available, the calling
/// thread, and every thread that it starts afterwards, gets mounts of its own with one, which are private and end with them.
///
/// # Errors
/// It cannot be mounted, or `folder` is somewhere else.
pub fn mount_for_process(folder: &Path) -> Result<Lasts, MountError> {
    let nearest = folder.ancestors().find(|folder| folder.exists());
    if nearest.is_some_and(is_bpffs) {
        return Ok(Lasts::ForGood);
    }
    if !folder.starts_with(BPFFS) {
        return Err(MountError::Elsewhere(folder.to_path_buf()));
    }
    match mount_to_last() {
        Err(MountError::NetworkNamespace { .. } | MountError::PrivateMounts) => {}
        outcome => return outcome.map(|_| Lasts::ForGood),
    }
    let refused = |errno: nix::Error| MountError::Mount { reason: errno.desc().to_string() };
    unshare(CloneFlags::CLONE_NEWNS).map_err(refused)?;
    // mounts made here must not propagate to others
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_SLAVE | MsFlags::MS_REC, none).map_err(refused)?;
    mount_here().map(|()| Lasts::WithProcess)
}

/// Why pinned files of others cannot be seen here, though there may be some: the process runs under `ip netns exec`.
pub fn hidden() -> Option<MountError> {
    if is_mounted() {
        return None;
    }
    network_namespace_of_sys().map(|namespace| MountError::NetworkNamespace { namespace })
}

pub(crate) fn is_bpffs(path: &Path) -> bool {
    statfs(path).is_ok_and(|info| info.filesystem_type() == BPF_FS_MAGIC)
}

fn mount_here() -> Result<(), MountError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("bpf"), BPFFS, Some("bpf"), flags, Some("mode=0700"))
        .map_err(|errno| MountError::Mount { reason: errno.desc().to_string() })
}

/// `ip netns exec NAME` mounts a /sys of the namespace, whose source it calls NAME.
fn network_namespace_of_sys() -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let source = source_of_sys(&mounts)?;
    let known = ["/run/netns", "/var/run/netns"].iter().any(|folder| Path::new(folder).join(source).exists());
    known.then(|| source.to_string())
}

/// The source of the last mount on /sys, which is the visible one.
fn source_of_sys(mountinfo: &str) -> Option<&str> {
    let mut on_sys = mountinfo.lines().filter(|line| line.split(' ').nth(4) == Some("/sys"));
    on_sys.next_back()?.split_once(" - ")?.1.split(' ').nth(1)
}

/// Whether process 1, or the parent, sees other mounts; false if that is unknown.
fn has_private_mounts() -> bool {
    let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let Some(own) = of("self") else { return false };
    let others = ["1".to_string(), parent_id().to_string()];
    others.iter().filter_map(|process| of(process)).any(|mounts| mounts != own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mount_on_sys_counts() {
        let mounts = "\
22 28 0:21 / /sys rw,nosuid - sysfs sysfs rw
23 22 0:25 / /sys/fs/bpf rw - bpf bpf rw,mode=700
60 28 0:44 / /sys rw,relatime shared:7 - sysfs h1 rw
";
        assert_eq!(source_of_sys(mounts), Some("h1"));
        assert_eq!(source_of_sys("22 28 0:21 / /proc rw - proc proc rw\n"), None);
    }

    #[test]
    fn a_folder_of_another_file_system_is_refused() {
        let error = mount_for_process(Path::new("/proc/self")).expect_err("no BPF file system");
        assert!(error.to_string().starts_with("/proc/self: not in a BPF file system"), "{error}");
    }
}
