//! Open vSwitch of a test's own, in user space.

use crate::network::{command, inside, ip};
use crate::wait::{PATIENCE, until};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Its database and the daemon that forwards, without switches, in a network namespace. They end when this is dropped.
pub struct OpenVSwitch {
    namespace: String,
    folder: PathBuf,
    database: Child,
    vswitchd: Option<Child>,
}

impl OpenVSwitch {
    /// Whether it is installed; if not, a printed reason why the test is skipped.
    #[must_use]
    pub fn is_installed() -> bool {
        [("ovs-vswitchd", "openvswitch-switch"), ("ethtool", "ethtool")].iter().all(|(program, package)| {
            let found = Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
            if !found {
                eprintln!("skipped: {program} is not installed (apt-get install {package})");
            }
            found
        })
    }

    /// Starts it. Its sockets and files are in the folder.
    #[must_use]
    pub fn start(namespace: &str, folder: &Path) -> OpenVSwitch {
        let [database, socket] = ["conf.db", "db.sock"].map(|name| folder.join(name).display().to_string());
        command("ovsdb-tool", &format!("create {database} /usr/share/openvswitch/vswitch.ovsschema"));
        let server = daemon(namespace, folder, &format!("ovsdb-server {database} --remote=punix:{socket}"));
        let (namespace, folder) = (namespace.to_string(), folder.to_path_buf());
        let mut started = OpenVSwitch { namespace, folder, database: server, vswitchd: None };
        until("the switch's database answers", || Path::new(&socket).exists());
        started.vsctl("--no-wait init");
        let line = format!("ovs-vswitchd unix:{socket} --pidfile={}", started.file("vswitchd.pid").display());
        started.vswitchd = Some(daemon(&started.namespace, &started.folder, &line));
        started
    }

    /// Disables what a host leaves to its interface: the user-space datapath fills in no checksums, and takes no super-segments.
    pub fn disable_offloads(host: &str, interface: &str) {
        ip(&format!("netns exec {host} ethtool -K {interface} tx off tso off gso off"));
    }

    /// One of its files.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The process that forwards.
    #[must_use]
    pub fn vswitchd(&self) -> u32 {
        self.vswitchd.as_ref().expect("it was started").id()
    }

    /// Changes or shows the configuration, and waits until it is in force; returns what `ovs-vsctl` prints. The database's socket exists before it
    /// accepts connections: hence `--retry`.
    pub fn vsctl(&self, what: &str) -> String {
        let socket = self.file("db.sock").display().to_string();
        command("ovs-vsctl", &format!("--retry --db=unix:{socket} --timeout={} {what}", PATIENCE.as_secs()))
    }

    /// Changes or shows a switch's flow entries; returns what `ovs-ofctl` prints. `what` contains `SWITCH`, where its socket's address stands.
    pub fn ofctl(&self, switch: &str, what: &str) -> String {
        let address = format!("unix:{}", self.file(&format!("{switch}.mgmt")).display());
        command("ovs-ofctl", &format!("-OOpenFlow13 {}", what.replace("SWITCH", &address)))
    }
}

impl Drop for OpenVSwitch {
    fn drop(&mut self) {
        for daemon in self.vswitchd.iter_mut().chain([&mut self.database]) {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn daemon(namespace: &str, folder: &Path, line: &str) -> Child {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    for variable in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR"] {
        command.env(variable, folder);
    }
    inside(namespace, || command.spawn().expect("it is installed"))
}
