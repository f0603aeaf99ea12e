//! Real switches by SNMP and OpenFlow, and what the collector leaves behind.

use crate::world::{RACKS, World};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;
use testkit::{End, Namespaces, Running, cable, eventually, inside, ip, or_skip, root, until};

/// A machine with agents of net-snmp, each at an address of its own.
struct Agents {
    place: TempDir,
    /// The machine, and a host at its port `swp1`.
    names: Namespaces<2>,
}

impl Agents {
    fn new() -> Option<Agents> {
        or_skip(root())?;
        if Command::new("snmpd").arg("-v").output().is_err() {
            println!("skipped: snmpd is not installed");
            return None;
        }
        let names = Namespaces::new(["switch", "host"]);
        let [switch, host] = &*names;
        ip(&format!("-n {switch} link set lo up"));
        cable([
            End { host: switch, name: "swp1", address: Some("10.94.0.1/24") },
            End { host, name: "eth0", address: Some("10.94.0.2/24") },
        ]);
        let place = tempfile::tempdir().unwrap();
        let access = place.path().join("access");
        fs::write(&access, "community = \"wide\"\n").unwrap();
        fs::set_permissions(&access, fs::Permissions::from_mode(0o600)).unwrap();
        Some(Agents { place, names })
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.place.path().join(name)
    }

    /// An agent at this address.
    fn start(&self, address: &str) -> Running {
        let folder = self.path(address);
        fs::create_dir(&folder).unwrap();
        let text = format!("agentaddress udp:{address}:161\nrocommunity wide 127.0.0.0/8\nsysName of-{address}\n");
        fs::write(folder.join("snmpd.conf"), text).unwrap();
        let mut command = Command::new("snmpd");
        command.args(["-f", "-Le", "-C", "-c"]).arg(folder.join("snmpd.conf"));
        command.env("SNMP_PERSISTENT_DIR", folder.join("persistent")).env("MIBS", "");
        let agent = Running::start(&self.names[0], &mut command, folder.join("log"));
        until("snmpd listens", || agent.said().contains("NET-SNMP version"));
        agent
    }

    /// The configuration of a switch.
    fn switch(name: &str, address: &str, more: &str) -> String {
        format!(
            "[[switch]]\nname = \"{name}\"\nprotocol = \"snmp\"\naddress = \"{address}\"\ncredentials = \"access\"\n{more}\n"
        )
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opentcp"));
        command.args(arguments).current_dir(&self.place);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        inside(&self.names[0], || command.output().unwrap())
    }
}

/// The last line of JSON.
fn last(path: &Path) -> Option<Value> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().rev().find_map(|line| serde_json::from_str(line).ok())
}

#[test]
fn a_switch_is_measured_once_by_snmp() {
    let Some(agents) = Agents::new() else { return };
    let _agent = agents.start("127.0.0.1");
    let ports = "[switch.ports]\nswp1 = { end = \"h1\", rate = \"1 Gbit/s\" }";
    fs::write(agents.path("c.toml"), format!("interval = \"5 s\"\n{}", Agents::switch("tor1", "127.0.0.1", ports)))
        .unwrap();
    let done = agents.run(&["collect", "c.toml", "--once", "--json"]);
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{error}");
    let view: Value = serde_json::from_slice(&done.stdout).unwrap();
    let link = view["links"].as_array().unwrap().iter().find(|link| link["name"] == "tor1 swp1 out");
    let link = link.unwrap_or_else(|| panic!("{view}"));
    println!("{link}");
    assert_eq!((&link["from"], &link["to"]), (&Value::from("tor1"), &Value::from("h1")));
    assert!(link["rate"].as_str().unwrap().contains("Gbit/s"), "{link}");
    assert!(link["utilization"].as_f64().is_some_and(|used| used < 0.5), "two answers make a value: {link}");
}

#[test]
fn a_switch_that_does_not_answer_delays_no_other() {
    let Some(agents) = Agents::new() else { return };
    let (_quick, slow) = (agents.start("127.0.0.1"), agents.start("127.0.0.2"));
    slow.pause(true);
    let switches =
        Agents::switch("quick", "127.0.0.1", "") + &Agents::switch("slow", "127.0.0.2", "timeout = \"25 s\"");
    fs::write(agents.path("c.toml"), format!("interval = \"1 s\"\n{switches}")).unwrap();
    let mut command = agents.command(&["collect", "c.toml", "--dry-run", "--json"]);
    command.stdout(fs::File::create(agents.path("out")).unwrap());
    let collector = Running::start(&agents.names[0], &mut command, agents.path("collect.log"));
    let sources = || -> Option<[[u64; 2]; 2]> {
        let line = last(&agents.path("out"))?;
        let of = |i: usize| ["answers", "failures"].map(|what| line["sources"][i][what].as_u64().unwrap());
        Some([of(0), of(1)])
    };
    let answered = || sources().is_some_and(|[[answers, _], _]| answers >= 3);
    assert!(eventually(answered), "{:?}{}", sources(), collector.said());
    let seen = sources().unwrap();
    println!("answers and failures of the quick one and the slow one: {seen:?}");
    // had it waited for the slow one's first reading, there would be at most one
    assert_eq!(seen[1], [0, 0], "the slow one's first question is still open");
    assert_eq!(seen[0][1], 0, "the quick one never fails");
    let known = last(&agents.path("out")).unwrap()["links"]
        .as_array()
        .unwrap()
        .iter()
        .any(|link| link["name"] == "quick swp1 out");
    assert!(known, "its links are reported meanwhile");
    slow.pause(false);
    assert!(eventually(|| sources().is_some_and(|[_, [answers, _]]| answers >= 1)), "{:?}", sources());
    collector.interrupt();
}

#[test]
fn a_collector_that_ends_removes_its_flow_entry() {
    let Some(world) = World::new(&["ovs-ofctl"]) else { return };
    world.set("set-controller sw ptcp:6653:127.0.0.1");
    let switch = "[[switch]]\nname = \"sw\"\nprotocol = \"openflow\"\naddress = \"127.0.0.1:6653\"\nlldp = true\n";
    fs::write(world.path("collect.toml"), format!("interval = \"1 s\"\n{RACKS}{switch}")).unwrap();
    let before = world.entries();
    assert!(!before.contains("0x88cc"), "{before}");
    let collector = world.opentcp(1, "collect", &["collect", "collect.toml", "--dry-run", "--json"]);
    let has_entry = || world.entries().contains("dl_type=0x88cc");
    assert!(eventually(has_entry), "{}{}", world.entries(), collector.said());
    println!("{}", world.entries());
    collector.interrupt();
    // the switch may take the connection's last message later than the collector ends
    let is_as_before = eventually(|| world.entries() == before);
    assert!(is_as_before, "what was there before is there, and nothing else: {}", world.entries());
}
