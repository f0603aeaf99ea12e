//! Cores, folders, rights, mounts and tools.

use crate::{Check, Need};
use kernel::bpffs::{self, MountError};
use kernel::{Capability, Rights};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use nix::unistd::{AccessFlags, access, geteuid};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, thread};

/// Length of the busy loop.
const TIMED: Duration = Duration::from_millis(400);
/// A gap between two clock readings that the loop itself cannot cause.
const GAP: Duration = Duration::from_micros(50);
/// Runs in real time at some hundred Mbit/s are late too often if the loop loses more than this.
const LOST_MAX: f64 = 0.03;
const PAUSE_MAX: Duration = Duration::from_millis(5);
/// The emulator keeps one core for itself.
const CORES_MIN: usize = 2;

/// The number of cores, and how steadily one of them runs.
pub fn cores() -> Check {
    let check = Check::new("cores", &[Need::Emulate, Need::Shell]);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (lost, pause) = unsteadiness();
    let found = format!(
        "{cores}; a busy loop lost {:.1} % of its time, at most {:.1} ms at once",
        lost * 100.0,
        pause.as_secs_f64() * 1e3
    );
    if cores < CORES_MIN {
        return check.limited(found, "real time needs two cores, one of them for the network; the simulator needs one");
    }
    if lost > LOST_MAX || pause > PAUSE_MAX {
        let advice =
            "for runs in real time stop other programs, or lower the rates; each run checks and reports its lateness";
        return check.limited(found, advice);
    }
    check.ok(found)
}

/// The share of its time that a busy loop loses to other programs, and the longest pause.
fn unsteadiness() -> (f64, Duration) {
    let start = Instant::now();
    let (mut last, mut lost, mut longest) = (start, Duration::ZERO, Duration::ZERO);
    loop {
        let now = Instant::now();
        let gap = now - last;
        if gap > GAP {
            lost += gap;
            longest = longest.max(gap);
        }
        last = now;
        if now - start > TIMED {
            return (lost.as_secs_f64() / (now - start).as_secs_f64(), longest);
        }
    }
}

/// Folders for results and compiled files.
pub fn folders() -> Check {
    let check = Check::new("folders", &[Need::Simulate, Need::OwnAlgorithm]);
    let here = env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let refused: Vec<String> = [&here, &env::temp_dir()]
        .into_iter()
        .filter(|folder| access(*folder, AccessFlags::W_OK).is_err())
        .map(|folder| folder.display().to_string())
        .collect();
    if refused.is_empty() {
        return check.ok("this folder and the temporary one are writable");
    }
    let advice = "go to a folder of your own, or give --out; set TMPDIR for the temporary one";
    if refused.contains(&here.display().to_string()) && refused.len() == 1 {
        return check.limited(format!("{} is not writable", refused[0]), advice);
    }
    check.missing(format!("{} not writable", refused.join(" and ")), advice)
}

/// The rights of this process.
pub fn rights() -> Check {
    let needs = [Need::Load, Need::Emulate, Need::Shell, Need::Agent, Need::Enforce];
    let check = Check::new("rights", &needs);
    let wanted = [
        Capability::NetAdmin,
        Capability::NetRaw,
        Capability::IpcLock,
        Capability::SysAdmin,
        Capability::Bpf,
        Capability::Perfmon,
    ];
    let lacking: Vec<&str> = Rights::effective().lacking(&wanted).into_iter().map(Capability::name).collect();
    if lacking.is_empty() {
        return check.ok("root's");
    }
    let user = if geteuid().is_root() { "root without" } else { "not root:" };
    check.missing(format!("{user} {}", lacking.join(", ")), how_to_get_rights())
}

/// Advice for missing rights.
pub fn how_to_get_rights() -> &'static str {
    if geteuid().is_root() {
        "give the container the capabilities that `rights` names, or run the command outside of it"
    } else {
        "run the command with `sudo`"
    }
}

/// The file system of loaded programs.
pub fn bpffs() -> Check {
    let check = Check::new("bpffs", &[Need::Load, Need::Agent, Need::Enforce]);
    if bpffs::is_mounted() {
        return check.ok("mounted on /sys/fs/bpf");
    }
    if let Some(advice) = how_to_see_sys() {
        let found = "hidden by `ip netns exec`; enforce mounts one of its own, cc load and agent refuse";
        return Check { needed_by: vec![Need::Load, Need::Agent], ..check }.missing(found, advice);
    }
    if !Path::new(bpffs::BPFFS).is_dir() {
        return check.missing("no folder /sys/fs/bpf", "mount /sys; the kernel needs CONFIG_BPF_SYSCALL=y");
    }
    if Rights::effective().has(Capability::SysAdmin) {
        return check.ok("not mounted; the commands mount it");
    }
    check.missing("not mounted, and this process may not mount it", how_to_get_rights())
}

/// Advice where `ip netns exec` hides the machine's /sys.
fn how_to_see_sys() -> Option<String> {
    match bpffs::hidden()? {
        MountError::NetworkNamespace { namespace } => {
            Some(format!("start the command with `nsenter --net=/run/netns/{namespace}` instead"))
        }
        _ => None,
    }
}

/// The agent needs cgroups, and so do scenarios with a policy on real kernels; other scenarios do not.
pub fn cgroup() -> Check {
    let check = Check::new("cgroup v2", &[Need::Agent]);
    let Some(place) = kernel::cgroup_mounts().into_iter().next() else {
        let mount = "boot with systemd's unified hierarchy, or run `mount -t cgroup2 none DIR` as root";
        let advice = how_to_see_sys().unwrap_or_else(|| mount.to_string());
        let without = "without it: `agent --means routes`, and `run --backend emu` without a policy";
        return check.missing("not mounted", format!("{advice}; {without}"));
    };
    if statfs(&place).is_ok_and(|info| info.filesystem_type() != CGROUP2_SUPER_MAGIC) {
        return check.missing(
            format!("{} is hidden by another mount", place.display()),
            "run the command outside of this container",
        );
    }
    check.ok(format!("mounted on {}", place.display()))
}

/// Compilers for the user's own C files.
pub fn compilers() -> [Check; 2] {
    let native = Check::new("C compiler", &[Need::OwnAlgorithm]);
    let native = match congestion::native_compiler() {
        Some(words) => native.ok(words.join(" ")),
        None => native.missing("not found", "install gcc and libc6-dev"),
    };
    let clang = Check::new("clang", &[Need::OwnAlgorithm]);
    let clang = match congestion::bpf_compiler() {
        Some(name) => clang.ok(name),
        None => clang.missing(
            "not found",
            "install clang (any of clang-16, clang-19, clang); the built-in algorithms do not need it",
        ),
    };
    [native, clang]
}

/// `emu shell` enters hosts by it.
pub fn nsenter() -> Check {
    let check = Check::new("nsenter", &[Need::Shell]);
    let path = env::var_os("PATH").unwrap_or_default();
    match env::split_paths(&path).map(|folder| folder.join("nsenter")).find(|file| file.is_file()) {
        Some(file) => check.ok(file.display().to_string()),
        None => check.missing("not found", "install util-linux"),
    }
}
