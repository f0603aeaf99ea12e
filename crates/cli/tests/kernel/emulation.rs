//! An emulation leaves nothing behind, however it ends; and users' programs run in it. Only root can run these tests.

use crate::common::Place;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use testkit::{Burners, Machine, or_skip, until};

/// The algorithm of the scenarios below, which nothing else uses.
const ALGORITHM: &str = "ot_leftover";

/// Two hosts with an algorithm of their own, whose flows last for a minute unless interrupted.
const MINUTE: &str = r#"duration = "60 s"
[network]
topology = { star = { hosts = 2 } }
rate = "20 Mbit/s"
delay = "1 ms"
[tcp]
cc = "leftover.c"
[[traffic]]
bulk = { from = "h1", to = "h2" }
"#;

/// The machine, for one real-time test at a time, and a folder with [`MINUTE`] in it; or a printed reason why the test is
/// skipped.
pub fn machine() -> Option<(Machine, Place)> {
    or_skip(kernel::Kernel::probe())?;
    or_skip(emu::hosts::Host::new("probe", &emu::hosts::HostSettings::new(emu::address::address(0))))?;
    let machine = Machine::take();
    let place = Place::with(MINUTE);
    let newreno = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cc/newreno.c");
    place.write("leftover.c", &fs::read_to_string(newreno).unwrap().replace("newreno", "leftover"));
    Some((machine, place))
}

/// The network namespaces of a process's threads and of those of all others, by inode.
fn namespaces(processes: impl Iterator<Item = String>) -> BTreeSet<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let tasks = processes.filter_map(|process| fs::read_dir(format!("/proc/{process}/task")).ok()).flatten().flatten();
    tasks.filter_map(|task| fs::metadata(task.path().join("ns/net")).ok()).map(|file| file.ino()).collect()
}

fn all_namespaces() -> BTreeSet<u64> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    namespaces(entries.filter_map(|entry| entry.file_name().into_string().ok()))
}

fn is_loaded() -> bool {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap().contains(ALGORITHM)
}

/// A running run or shell, and the namespaces of its hosts.
struct UnderWay {
    child: Child,
    hosts: BTreeSet<u64>,
}

impl UnderWay {
    fn start(place: &Place, args: &[&str]) -> UnderWay {
        assert!(!is_loaded(), "an earlier test left {ALGORITHM} in the kernel");
        let child = place.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let own = namespaces(std::iter::once("self".to_string()));
        let hosts = || {
            let all = namespaces(std::iter::once(child.id().to_string()));
            all.difference(&own).copied().collect::<BTreeSet<u64>>()
        };
        until("the hosts are made", || hosts().len() == 2 && is_loaded());
        // into the run proper
        thread::sleep(Duration::from_millis(500));
        let hosts = hosts();
        UnderWay { child, hosts }
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }

    /// Waits until nothing of it is in the kernel; returns its exit code.
    fn until_gone(mut self) -> Option<i32> {
        let status = self.child.wait().unwrap();
        until("the hosts are gone", || all_namespaces().is_disjoint(&self.hosts));
        until("the algorithm is gone", || !is_loaded());
        status.code()
    }
}

#[test]
fn ctrl_c_ends_an_emulation_and_leaves_nothing() {
    let Some((_machine, place)) = machine() else { return };
    let run = UnderWay::start(&place, &["run", "a.toml", "--backend", "emu"]);
    run.signal("-INT");
    assert_eq!(run.until_gone(), Some(130));
    assert_eq!(place.entries(), ["a.toml", "leftover.c"]);
}

#[test]
fn a_killed_emulation_leaves_nothing_and_the_next_starts_clean() {
    let Some((_machine, place)) = machine() else { return };
    let run = UnderWay::start(&place, &["run", "a.toml", "--backend", "emu"]);
    run.signal("-KILL");
    assert_eq!(run.until_gone(), None);
    place.succeed(&["run", "a.toml", "--backend", "emu", "--set", "duration=500 ms", "--allow-distorted"]);
    until("the next run's algorithm is gone", || !is_loaded());
}

#[test]
fn clean_ends_programs_that_a_killed_shell_left_running() {
    let Some((_machine, place)) = machine() else { return };
    let ready = place.join("ready");
    let command = format!("h1 sh -c 'sleep 1000 & echo $! > ready.new; mv ready.new {}; wait'", ready.display());
    let mut shell = UnderWay::start(&place, &["emu", "shell", "a.toml", "-c", &command]);
    until("the program runs", || ready.exists());
    let sleeper = fs::read_to_string(&ready).unwrap().trim().to_string();
    shell.signal("-KILL");
    shell.child.wait().unwrap();
    assert!(Path::new("/proc").join(&sleeper).exists(), "this is what `clean` is for");
    let cleaned = place.succeed(&["emu", "clean"]).stdout;
    assert!(cleaned.starts_with("ended "), "{cleaned}");
    // the parent of orphans may reap them later; an ended program has no namespace any more
    until("the program has ended", || fs::read_link(format!("/proc/{sleeper}/ns/net")).is_err());
    assert_eq!(shell.until_gone(), None);
    assert_eq!(place.succeed(&["emu", "clean"]).stdout, "there was nothing to clean\n");
}

/// The cgroups of runs.
fn cgroups() -> BTreeSet<String> {
    let folders = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].map(Path::new).into_iter().map(walk);
    folders.flatten().filter(|name| name.starts_with("opentcp-") && name.ends_with("-run")).collect()
}

fn walk(folder: &Path) -> Vec<String> {
    let below = |entry: fs::DirEntry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name().to_string_lossy().into_owned();
        is_folder.then(|| [walk(&entry.path()), vec![name]].concat())
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(below).flatten().collect()
}

#[test]
fn a_run_with_a_policy_leaves_no_cgroup() {
    let Some((_machine, place)) = machine() else { return };
    let policy = "mode = \"enforce\"\nperiod = \"60 s\"\n[[rule]]\nname = \"fast\"\n\
                  when = \"network.max_link_utilization <= 1.0\"\nset = { initial_cwnd = 20 }\n";
    place.write("p.toml", policy);
    place.write("a.toml", &format!("{MINUTE}[policy]\nfile = \"p.toml\"\nperiod = \"1 s\"\n"));
    let before = cgroups();
    let begun = place.opentcp(&["run", "a.toml", "--backend", "emu", "--set", "duration=1 s", "--allow-distorted"]);
    if begun.code == Some(2) && begun.stderr.contains("cgroup") {
        eprintln!("skipped: {}", begun.stderr);
        return;
    }
    assert_eq!((begun.code, cgroups()), (Some(0), before.clone()), "{}", begun.stderr);
    until("the algorithm is gone", || !is_loaded());
    for (signal, code) in [("-INT", Some(130)), ("-KILL", None)] {
        let run = UnderWay::start(&place, &["run", "a.toml", "--backend", "emu"]);
        until("the run has a cgroup", || cgroups().len() > before.len());
        run.signal(signal);
        assert_eq!(run.until_gone(), code);
        if code.is_none() {
            assert!(cgroups().len() > before.len(), "this is what `clean` is for");
            place.succeed(&["emu", "clean"]);
        }
        assert_eq!(cgroups(), before, "{signal}");
    }
}

#[test]
fn a_run_beside_programs_that_use_all_cpus_is_not_valid() {
    let Some((_machine, place)) = machine() else { return };
    let args = ["run", "a.toml", "--backend", "emu", "--set", "duration=3 s", "--set", "tcp.cc=kernel:reno"];
    let burners = Burners::start(thread::available_parallelism().map_or(1, usize::from));
    let done = place.opentcp(&args);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("is not valid: "), "{}", done.stderr);
    let run = fs::read_to_string(place.join("opentcp-results/a/run.json")).unwrap();
    assert!(run.contains("\"valid\": false"), "{run}");
    place.succeed(&[&args[..], &["--allow-distorted"]].concat());
    drop(burners);
}

/// Whether a program is installed; prints if not.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        eprintln!("skipped in part: no {program} here");
    }
    found
}

#[test]
fn a_web_page_is_fetched_in_a_shell_and_its_packets_can_be_read() {
    let Some((_machine, place)) = machine() else { return };
    if !has("curl") || !has("python3") {
        return;
    }
    place.write("page.txt", "a page\n");
    let command = "h2 python3 -m http.server 80 > log 2>&1 & server=$!; \
                   until h1 curl -sf http://$h2/page.txt; do sleep 0.1; done; kill $server";
    let done = place.succeed(&["emu", "shell", "a.toml", "--pcap", "captures", "-c", command]);
    assert_eq!(done.stdout, "a page\n", "{}", done.stderr);
    for host in ["h1", "h2"] {
        let capture = place.join("captures").join(format!("{host}.pcap"));
        assert!(fs::metadata(&capture).unwrap().len() > 500);
        if !has("tshark") {
            continue;
        }
        let output = Command::new("tshark")
            .args(["-o", "tcp.check_checksum:TRUE", "-Y", "http.response", "-T", "fields", "-e", "http.response.code"])
            .args(["-e", "tcp.checksum.status", "-r"])
            .arg(&capture)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.lines().any(|line| line.starts_with("200\t1")), "{host}: {text:?}");
    }
    until("the algorithm is gone", || !is_loaded());
}

/// A connection between two hosts, which choose nothing: what its sender's socket has. The sixth byte of TCP_INFO has its options: 1 is
/// timestamps, 8 is ECN.
const CONNECT: &str = "h2 python3 -c 'import socket; s = socket.create_server((\"\", 80)); print(flush=True, file=open(\"ready\", \"w\")); \
                       s.accept()[0].recv(1)' & until [ -e ready ]; do sleep 0.1; done; \
                       h1 python3 -c 'import os, socket; s = socket.create_connection((os.environ[\"h2\"], 80)); \
                       print(s.getsockopt(6, 13, 16).rstrip(b\"\\0\").decode(), s.getsockopt(6, 11, 8)[5] & 9); s.send(b\"x\")'; wait";

#[test]
fn programs_in_a_shell_run_on_the_scenarios_tcp() {
    let Some((_machine, place)) = machine() else { return };
    if !has("python3") {
        return;
    }
    let dctcp = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cc/dctcp.c");
    place.write("leftover.c", &fs::read_to_string(dctcp).unwrap().replace("dctcp", "leftover"));
    let tcp = "[tcp]\nrto_min = \"7 ms\"\ntimestamps = false\nsend_buffer = \"123 kB\"\nrto_initial = \"3 s\"\n";
    place.write("a.toml", &MINUTE.replace("[tcp]\n", tcp).replace("\"leftover.c\"", "\"kernel:reno\""));
    let sysctl = ["congestion_control", "rto_min_us", "wmem"].map(|name| format!("/proc/sys/net/ipv4/tcp_{name}"));
    let sweep = "sweep.tcp.cc=[\"leftover.c\", \"kernel:cubic\"]";
    let command = format!("h1 cat {}; {CONNECT}", sysctl.join(" "));
    let done = place.succeed(&["emu", "shell", "a.toml", "--set", sweep, "-c", &command]);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(lines, [ALGORITHM, "7000", "4096\t16384\t123000", &format!("{ALGORITHM} 8")], "{}", done.stderr);
    for said in [
        "h1           10.64.0.1",
        "algorithm    ot_leftover on each host",
        "cubic",
        "not as the scenario has it: tcp.rto_initial: Linux's is 1 s and cannot be set, here it is 3 s",
    ] {
        assert!(done.stderr.contains(said), "{said}: {}", done.stderr);
    }
    // the first run's network, with the algorithms of all
    fs::remove_file(place.join("ready")).unwrap();
    let sweep = "sweep.tcp.cc=[\"kernel:reno\", \"leftover.c\"]";
    let available = "cat /proc/sys/net/ipv4/tcp_available_congestion_control";
    let done = place.succeed(&["emu", "shell", "a.toml", "--set", sweep, "-c", &format!("{available}; {CONNECT}")]);
    assert!(done.stdout.contains(ALGORITHM) && done.stdout.ends_with("\nreno 0\n"), "{}", done.stdout);
    until("the algorithm is gone", || !is_loaded());
}
