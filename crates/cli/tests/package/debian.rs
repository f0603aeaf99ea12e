//! A Debian with systemd, in namespaces and a cgroup of its own.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;
use testkit::{Cgroup, Entered, Machine, command_in, eventually, or_skip, root};

/// A mirror that every Debian machine can reach.
const MIRROR: &str = "http://deb.debian.org/debian";
/// What dpkg, apt and systemd write about any package.
const OF_THE_SYSTEM: [&str; 5] = ["/var/lib/dpkg", "/var/log", "/var/cache", "/var/lib/systemd", "/root"];

pub struct Debian {
    folder: TempDir,
    unshare: Child,
    /// Its first process.
    init: u32,
    cgroup: Cgroup,
    _machine: Machine,
}

impl Debian {
    /// One that has booted; or a printed reason why the test is skipped.
    pub fn boot() -> Option<Debian> {
        let skipped = |why: &str| {
            eprintln!("skipped: {why}");
            None
        };
        or_skip(root())?;
        if Command::new("debootstrap").arg("--version").output().is_err() {
            return skipped("debootstrap is not installed (apt-get install debootstrap)");
        }
        let Some(base) = base() else {
            return skipped("debootstrap could not make a Debian: is this machine offline?");
        };
        let machine = Machine::share();
        // its agent treats every connection of the cgroup that it takes for the root
        let cgroup = or_skip(Cgroup::new("package"))?;
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("root");
        let copied = Command::new("cp").args(["-a", "--reflink=auto"]).args([&base, &root]).status();
        assert!(copied.expect("cp is there").success());
        let log = File::create(folder.path().join("log")).expect("a file");
        let mut unshare = command_in(cgroup.path(), "unshare");
        unshare.args(["--mount", "--pid", "--fork", "--kill-child", "--cgroup", "--uts", "--ipc", "--net", "bash"]);
        unshare.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/package/boot.sh")).arg(&root);
        unshare.stdin(Stdio::null()).stdout(log.try_clone().expect("a file")).stderr(log);
        let unshare = unshare.spawn().expect("util-linux is everywhere");
        let mut debian = Debian { folder, unshare, init: 0, cgroup, _machine: machine };
        let children = format!("/proc/{0}/task/{0}/children", debian.unshare.id());
        let mut init = 0;
        assert!(
            eventually(|| {
                init = fs::read_to_string(&children).unwrap_or_default().trim().parse().unwrap_or(0);
                init > 0
            }),
            "unshare starts a process"
        );
        debian.init = init;
        let running = || debian.output("systemctl is-system-running").stdout.starts_with(b"running");
        assert!(eventually(running), "systemd starts: {}", debian.log());
        Some(debian)
    }

    /// The place of a file outside.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join("root").join(inside.trim_start_matches('/'))
    }

    /// What systemd and the units said.
    pub fn log(&self) -> String {
        let units = self.output("journalctl --no-pager --lines=100").stdout;
        let own = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        format!("{own}{}", String::from_utf8_lossy(&units))
    }

    fn output(&self, command: &str) -> Output {
        let mut enter = Command::new("nsenter");
        enter.args(["--target", &self.init.to_string(), "--all", "--root", "--wd"]);
        enter.args([
            "env",
            "-i",
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            "DEBIAN_FRONTEND=noninteractive",
            "bash",
            "-c",
            command,
        ]);
        enter.stdin(Stdio::null()).output().expect("util-linux is everywhere")
    }

    /// Runs a command inside; its standard output.
    pub fn run(&self, command: &str) -> String {
        let output = self.output(command);
        let said = || format!("{}\n{}", String::from_utf8_lossy(&output.stderr), self.log());
        assert!(output.status.success(), "{command}: {}", said());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The same of a command that must fail.
    pub fn fails(&self, command: &str) -> String {
        let output = self.output(command);
        assert!(!output.status.success(), "{command} succeeds");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Works in its network, as a process of its cgroup.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let _entered = Entered::into(self.cgroup.path());
        let network = File::open(format!("/proc/{}/ns/net", self.init)).expect("it runs");
        std::thread::scope(|scope| {
            let entered = || {
                nix::sched::setns(&network, nix::sched::CloneFlags::CLONE_NEWNET).expect("root may");
                work()
            };
            scope.spawn(entered).join().expect("the work is done")
        })
    }

    /// Its files, but for those that dpkg and systemd write about any package.
    pub fn files(&self) -> BTreeSet<PathBuf> {
        let found = self.run("find / -xdev -path /proc -prune -o -print");
        let found = found.lines().map(PathBuf::from);
        found.filter(|path| OF_THE_SYSTEM.iter().all(|folder| !path.starts_with(folder))).collect()
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        // its first process takes all others with it, and its mounts
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
    }
}

/// A fresh Debian, made once for each target folder.
fn base() -> Option<PathBuf> {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bookworm");
    if !base.exists() {
        let making = base.with_extension("new");
        let _ = fs::remove_dir_all(&making);
        let mut debootstrap = Command::new("debootstrap");
        debootstrap.args(["--variant=minbase", "--include=systemd,iproute2,libelf1,zlib1g", "bookworm"]);
        let made = debootstrap.arg(&making).arg(MIRROR).stdout(Stdio::null()).status();
        if !made.is_ok_and(|status| status.success()) {
            return None;
        }
        fs::rename(&making, &base).expect("a folder of our own");
    }
    Some(base)
}
