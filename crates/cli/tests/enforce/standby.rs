//! Two enforcers on two paths between a server and a client. One machine is gone, the other takes its flows.

use crate::killed::with_flows;
use crate::world::{World, connect, machine_with};
use serde_json::Value;
use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use testkit::{End, Machine, Namespaces, Running, cable, eventually, inside, ip};

const FLOWS: usize = 400;
/// The rounds of reports are that far apart.
const ROUND: Duration = Duration::from_millis(50);

/// The server and the client each have a bridge with a link to each machine in between. One path is up at a time.
struct Pair {
    place: TempDir,
    /// Server, the two machines in between, client.
    hosts: Namespaces<4>,
    _machine: Machine,
}

impl Pair {
    fn new() -> Option<Pair> {
        let (machine, hosts) = machine_with(["server", "one", "two", "client"])?;
        let [server, one, two, client] = &*hosts;
        for host in &*hosts {
            ip(&format!("-n {host} link add br0 type bridge"));
            ip(&format!("-n {host} link set br0 up"));
        }
        for (between, path) in [(one, "p1"), (two, "p2")] {
            for (host, port) in [(server, "s"), (client, "c")] {
                let there = End { host, name: path, address: None };
                cable([there, End { host: between, name: port, address: None }]);
                ip(&format!("-n {host} link set {path} master br0"));
                ip(&format!("-n {between} link set {port} master br0"));
            }
        }
        for (host, last) in [(server, 1), (client, 2)] {
            // the bridge's address must not change with its ports
            ip(&format!("-n {host} link set br0 address 02:00:00:00:97:0{last}"));
            ip(&format!("-n {host} address add 10.97.0.{last}/24 dev br0"));
        }
        cable([(one, 1), (two, 2)].map(|(host, last)| End {
            host,
            name: "mirror",
            address: Some(["", "10.98.0.1/24", "10.98.0.2/24"][last]),
        }));
        let pair = Pair { place: tempfile::tempdir().unwrap(), hosts, _machine: machine };
        fs::write(pair.path("slow.c"), crate::killed::SLOW).expect("there is room");
        let key = pair.opentcp(1, &["keygen", "--out", "mirror.key"]);
        assert_eq!(key.0, Some(0), "{}", key.2);
        pair.take_path(0);
        Some(pair)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Moves the traffic to path 0 or 1.
    fn take_path(&self, path: usize) {
        let [server, _, _, client] = &*self.hosts;
        for (name, state) in [(["p1", "p2"][1 - path], "down"), (["p1", "p2"][path], "up")] {
            for host in [server, client] {
                ip(&format!("-n {host} link set {name} {state}"));
            }
        }
    }

    fn pins(machine: usize) -> String {
        format!("/sys/fs/bpf/opentcp-test-standby-{}-{machine}", process::id())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opentcp"));
        command.args(arguments).stdin(Stdio::null()).current_dir(self.place.path());
        command
    }

    fn opentcp(&self, machine: usize, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = inside(&self.hosts[machine], || self.command(arguments).output().unwrap());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Starts the enforcer of machine 1 or 2, which mirrors to and from the other.
    fn enforce(&self, machine: usize) -> Running {
        let (pins, socket) = (Pair::pins(machine), format!("{machine}.sock"));
        let (own, other) = (format!("10.98.0.{machine}:7009"), format!("10.98.0.{}:7009", 3 - machine));
        let place = ["--socket", &socket, "--pins", &pins];
        let mirrors = ["--mirror-from", &own, "--mirror-to", &other, "--mirror-key", "mirror.key"];
        let mut command = self.command(&["enforce", "--between", "s", "c"]);
        command.args(crate::killed::SLOW_RULES).args(place).args(mirrors).stdout(Stdio::null());
        World::at_work(Running::start(&self.hosts[machine], &mut command, self.path(&format!("log{machine}"))))
    }

    fn status(&self, machine: usize) -> Value {
        let socket = format!("{machine}.sock");
        let (code, out, error) = self.opentcp(machine, &["enforce", "--status", "--json", "--socket", &socket]);
        assert_eq!(code, Some(0), "{error}");
        serde_json::from_str(&out).unwrap()
    }

    fn connection(&self, port: u16) -> (TcpStream, TcpStream) {
        connect([&self.hosts[0], &self.hosts[3]], format!("10.97.0.1:{port}").parse().unwrap())
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        (1..=2).for_each(|machine| drop(fs::remove_dir_all(Pair::pins(machine))));
    }
}

fn counter(status: &Value, name: &str) -> u64 {
    status["counters"][name].as_u64().unwrap_or_else(|| panic!("{name} is counted"))
}

#[test]
fn a_standby_takes_the_flows_of_a_machine_that_is_gone_and_gives_them_back() {
    let Some(pair) = Pair::new() else { return };
    let (first, second) = (pair.enforce(1), pair.enforce(2));
    with_flows(
        FLOWS,
        |port| pair.connection(port),
        |flows| {
            assert_eq!(pair.status(1)["flows"], FLOWS, "{}", pair.status(1));
            assert!(eventually(|| pair.status(2)["mirrored"] == FLOWS), "{}", pair.status(2));
            thread::sleep(ROUND);
            let (silence, _) = flows.silence_after("its machine is gone", || {
                first.kill();
                pair.take_path(1);
            });
            println!("nothing arrived for {silence:?}, in which the path was changed");
            let status = pair.status(2);
            let (promoted, caught_up) = (counter(&status, "flows_promoted"), counter(&status, "caught_up"));
            println!(
                "the standby took {promoted} flows, and caught up {caught_up} times; {} are enforced",
                status["flows"]
            );
            // idle flows send nothing: the standby has them until they do
            let idle = FLOWS as u64 / 5;
            assert!(promoted >= FLOWS as u64 - idle, "{status}");
            assert_eq!(
                status["flows"].as_u64().zip(status["mirrored"].as_u64()).map(|(a, b)| a + b),
                Some(FLOWS as u64)
            );
            assert!(counter(&status, "data_taken") > 1000 && counter(&status, "flows_astray") == 0, "{status}");

            // the machine is back, hears of the flows, and gets them
            let first = pair.enforce(1);
            assert!(eventually(|| pair.status(1)["mirrored"].as_u64() >= Some(promoted)), "{}", pair.status(1));
            thread::sleep(ROUND);
            flows.silence_after("it is back", || pair.take_path(0));
            let status = pair.status(1);
            assert!(counter(&status, "flows_promoted") >= FLOWS as u64 - idle, "{status}");
            assert_eq!(counter(&status, "flows_astray"), 0, "{status}");

            // and once more, where the standby has flows of its own that have gone on elsewhere
            flows.silence_after("gone again", || {
                first.kill();
                pair.take_path(1);
            });
            let status = pair.status(2);
            println!("gone again: {} flows are enforced", status["flows"]);
            assert!(status["flows"].as_u64() >= Some(FLOWS as u64 - idle), "{status}");
            assert_eq!((counter(&status, "flows_astray"), &status["mirror_refused"]), (0, &Value::from(0)), "{status}");
        },
    );
    second.stop();
}

#[test]
fn bad_input_names_what_to_do() {
    let Some(pair) = Pair::new() else { return };
    let refused = |more: &[&str], expected: &str| {
        let pins = Pair::pins(1);
        let all = [&["enforce", "--between", "s", "c", "--rule", "bbr", "--socket", "x.sock", "--pins", &pins], more]
            .concat();
        let (code, _, error) = pair.opentcp(1, &all);
        assert!(code == Some(2) && error.contains(expected), "{code:?}: {error}");
    };
    refused(&["--mirror-from", "10.98.0.9:7009", "--mirror-key", "mirror.key"], "an address of this machine");
    refused(&["--mirror-to", "10.98.0.2:7009", "--mirror-key", "none.key"], "none.key");
    refused(&["--mirror-to", "10.98.0.2:7009", "--mirror-key", "slow.c"], "slow.c");
    refused(&["--mirror-to", "two", "--mirror-key", "mirror.key"], "invalid socket address");
}
