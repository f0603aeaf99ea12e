//! Open vSwitch of a test's own, in user space, in a network namespace.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use testkit::{PATIENCE, eventually, inside};

/// A bridge `sw`; its daemons end when this is dropped.
pub struct Switch {
    namespace: String,
    folder: PathBuf,
    daemons: Vec<Child>,
}

/// Whether these programs are installed; if not, a printed reason why the test is skipped.
pub fn are_installed(programs: &[&str]) -> bool {
    programs.iter().all(|program| {
        let found = Command::new("which").arg(program).stdout(Stdio::null()).status();
        let is_missing = found.is_ok_and(|status| !status.success());
        if is_missing {
            eprintln!("skipped: {program} is not installed");
        }
        !is_missing
    })
}

impl Switch {
    /// A bridge of these interfaces of the namespace; its sockets and files are in the folder.
    pub fn start(namespace: &str, folder: &Path, ports: &[&str]) -> Switch {
        let mut switch = Switch { namespace: namespace.to_string(), folder: folder.to_path_buf(), daemons: Vec::new() };
        let (database, socket) = (switch.file("conf.db"), switch.file("db.sock"));
        run(namespace, folder, &format!("ovsdb-tool create {database} /usr/share/openvswitch/vswitch.ovsschema"));
        switch.daemon(&format!("ovsdb-server {database} --remote=punix:{socket}"));
        assert!(eventually(|| folder.join("db.sock").exists()), "the switch's database answers");
        switch.set("--no-wait init");
        switch.daemon(&format!("ovs-vswitchd unix:{socket}"));
        switch.set("add-br sw -- set bridge sw datapath_type=netdev protocols=OpenFlow13");
        let ports: Vec<String> = ports.iter().map(|port| format!("add-port sw {port}")).collect();
        switch.set(&ports.join(" -- "));
        switch
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn daemon(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        for folder in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR"] {
            command.env(folder, &self.folder);
        }
        let child = inside(&self.namespace, || command.spawn().unwrap());
        self.daemons.push(child);
    }

    /// Changes its configuration, and waits until it is in force. The database's socket exists before it accepts connections: hence `--retry`.
    pub fn set(&self, what: &str) {
        let socket = self.file("db.sock");
        let line = format!("ovs-vsctl --retry --db=unix:{socket} --timeout={} {what}", PATIENCE.as_secs());
        run(&self.namespace, &self.folder, &line);
    }

    /// Its flow entries, without their counts.
    pub fn entries(&self) -> String {
        let switch = format!("unix:{}", self.file("sw.mgmt"));
        testkit::command("ovs-ofctl", &format!("-OOpenFlow13 --no-stats dump-flows {switch}"))
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Runs a command in a namespace, in a folder; it must succeed.
pub fn run(namespace: &str, folder: &Path, line: &str) {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().expect("a program"));
    let output = inside(namespace, || command.args(words).current_dir(folder).output().unwrap());
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Takes from a host's card what a switch in user space cannot do: it fills in no checksums, and takes no joined packets.
pub fn plain_packets(host: &str, folder: &Path) {
    run(host, folder, "ethtool -K eth0 tx off tso off gso off");
}
