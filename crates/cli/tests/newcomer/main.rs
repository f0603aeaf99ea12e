//! The page for newcomers, command by command, as it is printed, on three machines: each has file systems, a cgroup, a name and a network
//! of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use testkit::{Cgroup, Namespaces, command_in, eventually, ip, nats_program, or_skip, root, until};

const PAGE: &str = "docs/three-machines.md";
const MACHINES: [&str; 3] = ["m1", "m2", "m3"];

/// A line of the page that matters here.
enum Step {
    /// A command on this machine.
    Run(usize, String),
    /// The reader copies the token.
    Copy,
}

#[test]
fn ten_commands_lead_to_a_policy_that_observes_three_machines() {
    let (Some(()), Some(nats)) = (or_skip(root()), nats_program()) else { return };
    let cgroups: Option<Vec<Cgroup>> = MACHINES.iter().map(|name| or_skip(Cgroup::new(name))).collect();
    let Some(cgroups) = cgroups else { return };
    let steps = steps(&fs::read_to_string(repository().join(PAGE)).expect("the page is there"));
    assert_eq!(steps.iter().filter(|step| matches!(step, Step::Run(..))).count(), 10);
    let folder = tempfile::tempdir().expect("a folder");
    // the package's policy; only T is shorter, so that nobody waits for a minute here
    let policy = fs::read_to_string(repository().join("dist/etc/policy.toml")).expect("the package has one");
    let policy = policy.replace("period = \"60 s\"", "period = \"2 s\"");
    fs::write(folder.path().join("policy.toml"), &policy).expect("a file of our own");
    let switch = Namespaces::new(["switch"]);
    let [switch] = &*switch;
    ip(&format!("-n {switch} link add br0 type bridge"));
    ip(&format!("-n {switch} link set br0 up"));
    let start = |(i, cgroup)| Machine::start(i, cgroup, &nats, (folder.path(), switch));
    let machines: Vec<Machine> = cgroups.into_iter().enumerate().map(start).collect();
    let mut said = String::new();
    for step in &steps {
        match step {
            Step::Run(machine, command) => said = machines[*machine].run(command),
            Step::Copy => {
                let token = machines[0].run("cat token");
                for machine in &machines[1..] {
                    machine.run(&format!("umask 077; echo '{}' >token", token.trim()));
                }
            }
        }
    }
    println!("{said}");
    let operator = "opentcp status --json --identity /etc/opentcp/fleet/operator";
    let status = || serde_json::from_str::<serde_json::Value>(&machines[0].run(operator)).expect("JSON");
    assert!(eventually(|| status()["hosts"] == 2), "{}\n{}", status(), machines[0].logs());
    assert_eq!(status()["mode"], "observe");
    let listed = machines[0].run("opentcp fleet list --identity /etc/opentcp/fleet/operator");
    for name in &MACHINES[1..] {
        assert!(listed.contains(name), "{listed}");
    }
    until("both agents are connected", || {
        machines[1..].iter().all(|machine| machine.run("opentcp agent status").contains("Oracle: connected"))
    });
    for machine in &machines[1..] {
        let status = machine.run("opentcp agent status");
        assert!(status.contains("in force: nothing"), "it observes: {status}");
    }
    assert!(
        machines[0].run("opentcp history --all").contains("calm network"),
        "{}",
        machines[0].run("opentcp history --all")
    );
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The commands of the page's first part.
fn steps(page: &str) -> Vec<Step> {
    let (mut machine, mut steps) = (0, Vec::new());
    for line in page.lines().take_while(|line| !line.starts_with("## ")) {
        if let Some(rest) = line.strip_prefix("On `") {
            let name = rest.split('`').next().expect("a name");
            machine = MACHINES.iter().position(|one| *one == name).expect("one of the three");
        } else if line.starts_with("Copy the file `token`") {
            steps.push(Step::Copy);
        } else if let Some(command) = line.strip_prefix("    ") {
            steps.push(Step::Run(machine, command.to_string()));
        }
    }
    steps
}

struct Machine {
    name: &'static str,
    /// Keeps the namespaces.
    holder: Child,
    cgroup: Cgroup,
    path: String,
}

impl Machine {
    fn start(i: usize, cgroup: Cgroup, nats: &Path, (folder, switch): (&Path, &str)) -> Machine {
        let name = MACHINES[i];
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/newcomer/machine.sh");
        let mut holder = command_in(cgroup.path(), "unshare");
        holder.args(["--mount", "--uts", "--ipc", "--net", "--cgroup", "--propagation", "private", "bash"]);
        holder.arg(script).arg(name).arg(folder.join("policy.toml"));
        let holder = holder.stdin(Stdio::null()).spawn().expect("util-linux is everywhere");
        let folders =
            [Path::new(env!("CARGO_BIN_EXE_opentcp")), nats].map(|program| program.parent().expect("a folder"));
        let path = format!("{}:{}:/usr/sbin:/usr/bin:/sbin:/bin", folders[0].display(), folders[1].display());
        let machine = Machine { name, holder, cgroup, path };
        until("the machine is there", || machine.output("test -e ready").status.success());
        ip(&format!("-n {switch} link add {name} type veth peer name eth0 netns {}", machine.holder.id()));
        ip(&format!("-n {switch} link set {name} master br0 up"));
        machine.run(&format!("ip address add 10.9.0.{}/24 dev eth0; ip link set eth0 up", i + 1));
        machine
    }

    fn output(&self, command: &str) -> Output {
        // in the machine's cgroup, so that it ends with the machine
        let mut enter = command_in(self.cgroup.path(), "nsenter");
        enter.args(["--target", &self.holder.id().to_string(), "--mount", "--uts", "--ipc", "--net", "--cgroup"]);
        enter.args(["env", "-i", &format!("PATH={}", self.path), "HOME=/mnt/home", "bash", "-c"]);
        // a daemon's output goes into a file
        let command = match command.strip_suffix(" &") {
            Some(daemon) => format!("cd /mnt/home; {{ {daemon} ; }} </dev/null 2>>/var/log/daemons >&2 &"),
            None => format!("cd /mnt/home; {command}"),
        };
        enter.arg(command).stdin(Stdio::null()).output().expect("util-linux is everywhere")
    }

    /// Runs a command; its standard output.
    fn run(&self, command: &str) -> String {
        let output = self.output(command);
        let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}: {command}: {said}{error}\n{}", self.name, self.logs());
        said.into_owned()
    }

    fn logs(&self) -> String {
        String::from_utf8_lossy(&self.output("cat /var/log/daemons").stdout).into_owned()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
