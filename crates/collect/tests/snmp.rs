//! The SNMP reader against net-snmp's agent (snmpd) and lldpd, each in a network namespace that is a switch.
//!
//! Debian: `apt install snmpd lldpd`. As root.

use collect::snmp::{Access, Options, Reader};
use collect::{Neighbour, PortCounters, ReadError, Reader as _, SwitchCounters};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::{End, Namespaces, Running, cable, inside, ip, or_skip, root, until};
use units::{Rate, Time};

const COMMUNITY: &str = "community = \"wide\"";
/// Readings until one is answered in time, and comparisons until the machine lets one be right, at most.
const TRIES: usize = 4;
/// What a machine that has the time does not hold traffic up for.
const HELD_UP: Duration = Duration::from_millis(30);
const USER: &str = "user = \"operator\"\nauth_password = \"authentication\"\nprivacy_password = \"encryption\"";

/// A switch: snmpd with its own configuration on the loopback address of its namespace, and a cable to a host.
struct Switch {
    agent: Running,
    folder: TempDir,
    // last: what runs in them must end first
    names: Namespaces<2>,
}

impl Switch {
    fn start(more: &str) -> Option<Switch> {
        or_skip(root())?;
        or_skip(installed("snmpd"))?;
        let names = Namespaces::new(["snmp", "host"]);
        let [switch, host] = &*names;
        ip(&format!("-n {switch} link set lo up"));
        cable([
            End { host: switch, name: "swp1", address: Some("10.9.0.1/24") },
            End { host, name: "eth7", address: Some("10.9.0.2/24") },
        ]);
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let configuration = format!(
            "agentaddress udp:127.0.0.1:161\nrocommunity wide 127.0.0.1\nview narrow included .1\n\
             view narrow excluded .1.3.6.1.2.1.31\nrocommunity narrow 127.0.0.1 -V narrow\n\
             view nothing included .1.3.6.1.2.1.1\nrocommunity nothing 127.0.0.1 -V nothing\n\
             createUser operator SHA-256 \"authentication\" AES \"encryption\"\nrouser operator priv\n\
             sysName switch-1\n{more}"
        );
        fs::write(folder.path().join("snmpd.conf"), configuration).expect("the folder is ours");
        let agent = snmpd(switch, folder.path());
        Some(Switch { agent, folder, names })
    }

    fn reader(&self, access: &str) -> Reader {
        Reader::new(self.options(access))
    }

    /// With waits that suit a test.
    fn options(&self, access: &str) -> Options {
        let file = self.folder.path().join("access.toml");
        fs::write(&file, access).expect("the folder is ours");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("the file is ours");
        let access = Access::from_file(&file).expect("these are credentials");
        Options { timeout: Time::from_ms(500), ..Options::new("127.0.0.1", access) }
    }

    /// Runs `work` in the switch's namespace.
    fn run<T: Send>(&self, work: impl AsyncFnOnce() -> T + Send) -> T {
        inside(&self.names[0], || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("there are descriptors").block_on(work())
        })
    }

    fn error(&self, access: &str) -> ReadError {
        self.run(async || self.reader(access).read().await.expect_err("it must not answer"))
    }

    /// The same of an agent that does answer, if not in time then at the next reading.
    fn answered_error(&self, access: &str) -> ReadError {
        (1..TRIES).map(|_| self.error(access)).find(|error| !is_late(error)).unwrap_or_else(|| self.error(access))
    }

    /// What the kernel counts of a port: bytes in, bytes out, packets in, packets out. Read without a program's help, which would take time.
    fn statistics(&self, port: &str) -> [u64; 4] {
        let read = || fs::read_to_string("/proc/thread-self/net/dev").expect("every namespace has it");
        let text = inside(&self.names[0], read);
        let line = text.lines().find_map(|line| line.trim().strip_prefix(port)?.strip_prefix(':'));
        let line = line.unwrap_or_else(|| panic!("{port} is not in {text}"));
        let numbers: Vec<u64> =
            line.split_whitespace().map(|number| number.parse().expect("the kernel writes numbers")).collect();
        // eight columns of what came in, then those of what went out
        [0, 8, 1, 9].map(|column| numbers[column])
    }
}

fn snmpd(namespace: &str, folder: &Path) -> Running {
    let mut command = Command::new("snmpd");
    command.args(["-f", "-Le", "-C", "-c"]).arg(folder.join("snmpd.conf"));
    command.env("SNMP_PERSISTENT_DIR", folder.join("persistent")).env("MIBS", "");
    let agent = Running::start(namespace, &mut command, folder.join("snmpd.log"));
    until("snmpd listens", || agent.said().contains("NET-SNMP version"));
    agent
}

fn installed(program: &str) -> Result<(), String> {
    let found =
        Command::new("sh").args(["-c", &format!("command -v {program}")]).output().is_ok_and(|o| o.status.success());
    if found { Ok(()) } else { Err(format!("{program} is not installed")) }
}

/// Whether an agent did not answer in time, which one on a busy machine may do once in a while.
fn is_late(error: &ReadError) -> bool {
    matches!(error, ReadError::Unreachable(text) | ReadError::Interrupted(text) if text.contains("no answer within"))
}

/// A reading of an agent that answers. If it was late the reader says so, and is asked again, as by the collector.
async fn answer(reader: &mut Reader) -> SwitchCounters {
    for _ in 1..TRIES {
        match reader.read().await {
            // a late agent that then answers who it is seems to refuse
            Err(ReadError::Refused(late)) if late.contains("no answer within") => println!("late: {late}"),
            Err(late) if is_late(&late) => println!("late: {late}"),
            read => return read.expect("snmpd answers"),
        }
    }
    reader.read().await.expect("snmpd answers")
}

fn port<'a>(switch: &'a SwitchCounters, name: &str) -> &'a PortCounters {
    switch.ports.iter().find(|port| port.name == name).unwrap_or_else(|| panic!("{name} is not in {switch:?}"))
}

fn counted(port: &PortCounters) -> [u64; 4] {
    [port.received.bytes, port.sent.bytes, port.received.packets, port.sent.packets]
        .map(|number| number.expect("it is counted"))
}

/// Real TCP from the host to the switch, until dropped.
struct Traffic {
    over: Arc<AtomicBool>,
    /// The longest time between two looks of its sender at the clock, microseconds.
    longest_us: Arc<AtomicU64>,
    ends: Vec<thread::JoinHandle<()>>,
}

impl Traffic {
    fn start(switch: &Switch, rate: Rate) -> Traffic {
        let listener = inside(&switch.names[0], || TcpListener::bind("10.9.0.1:0").expect("a port is free"));
        let to = listener.local_addr().expect("it is bound");
        let mut stream = inside(&switch.names[1], || TcpStream::connect(to).expect("the switch listens"));
        let drain = thread::spawn(move || {
            let (mut from, _) = listener.accept().expect("the host connects");
            let mut bytes = vec![0; 1 << 16];
            while from.read(&mut bytes).is_ok_and(|n| n > 0) {}
        });
        let over = Arc::new(AtomicBool::new(false));
        let longest_us = Arc::<AtomicU64>::default();
        let (is_over, longest) = (over.clone(), longest_us.clone());
        let send = thread::spawn(move || {
            let began = Instant::now();
            let (mut sent, mut last) = (0, began);
            let chunk = vec![0; 16_000];
            while !is_over.load(Ordering::Relaxed) {
                longest.fetch_max(last.elapsed().as_micros() as u64, Ordering::Relaxed);
                last = Instant::now();
                let due = began.elapsed().as_secs_f64() * rate.as_bps() as f64 / 8.0;
                if (sent as f64) < due {
                    stream.write_all(&chunk).expect("the switch reads");
                    sent += chunk.len();
                } else {
                    thread::sleep(Duration::from_millis(2));
                }
            }
        });
        Traffic { over, longest_us, ends: vec![send, drain] }
    }

    /// For how long at a time the machine has held it up since the last call.
    fn held_up(&self) -> Duration {
        Duration::from_micros(self.longest_us.swap(0, Ordering::Relaxed))
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for end in self.ends.drain(..) {
            let _ = end.join();
        }
    }
}

#[test]
fn counters_are_the_kernels() {
    let Some(switch) = Switch::start("") else { return };
    for access in [COMMUNITY, USER] {
        inside(&switch.names[1], || {
            let to = TcpListener::bind("10.9.0.2:0").expect("a port is free");
            let address = to.local_addr().expect("it is bound");
            let [one, other] =
                [inside(&switch.names[0], || TcpStream::connect(address)), to.accept().map(|(other, _)| other)];
            testkit::talk(&(one.expect("it listens"), other.expect("it connects")));
        });
        // snmpd renews its copy of quiet counters every 3 s
        thread::sleep(Duration::from_millis(3_500));
        let before = switch.statistics("lo");
        thread::sleep(Duration::from_millis(3_500));
        let (name, read) = switch.run(async || {
            let read = answer(&mut switch.reader(access)).await;
            (read.switch.clone(), read)
        });
        assert_eq!(name, "switch-1");
        let cable = port(&read, "swp1");
        assert_eq!(counted(cable), switch.statistics("swp1"));
        assert!(cable.received.bytes > Some(20_000), "{cable:?}");
        assert_eq!((cable.rate, cable.up, cable.width), (Some(Rate::from_gbps(10)), Some(true), 64));
        // the reading itself runs over the loopback interface
        let (loopback, after) = (counted(port(&read, "lo")), switch.statistics("lo"));
        for i in 0..4 {
            assert!((before[i]..=after[i]).contains(&loopback[i]), "{before:?} {loopback:?} {after:?}");
        }
        println!("{access:.9}…: {} ports, swp1 {:?}", read.ports.len(), counted(cable));
    }
}

#[test]
fn utilization_under_traffic_is_the_kernels() {
    let Some(switch) = Switch::start("") else { return };
    let traffic = Traffic::start(&switch, Rate::from_mbps(200));
    let read = async |reader: &mut Reader| {
        let read = answer(reader).await;
        let swp1 = port(&read, "swp1");
        let at = swp1.received.at.expect("an answer has a time");
        (swp1.received.bytes.expect("it is counted"), at, switch.statistics("swp1")[0], Instant::now())
    };
    switch.run(async || {
        let mut reader = switch.reader(COMMUNITY);
        // the first reading chooses what to watch, the second begins at a renewal
        read(&mut reader).await;
        let mut before = read(&mut reader).await;
        for pause in [5_100, 9_700] {
            for attempt in 1..=TRIES {
                traffic.held_up();
                tokio::time::sleep(Duration::from_millis(pause)).await;
                let after = read(&mut reader).await;
                let snmp = (after.0 - before.0) as f64 / (after.1.as_secs_f64() - before.1.as_secs_f64());
                let kernel = (after.2 - before.2) as f64 / (after.3 - before.3).as_secs_f64();
                before = after;
                let [snmp_of_10g, kernel_of_10g] = [snmp, kernel].map(|rate| rate * 8.0 / 1e10);
                let (error, held_up) = (snmp / kernel - 1.0, traffic.held_up());
                println!(
                    "utilization by SNMP {snmp_of_10g:.5}, by the kernel {kernel_of_10g:.5}, off by {:.2} %; held up for {held_up:?}",
                    error * 100.0
                );
                assert!(kernel > 15e6, "the traffic runs: {kernel} B/s");
                if error.abs() < 0.02 {
                    break;
                }
                // both are of about the same time, and a busy machine's traffic has no constant rate
                let again = held_up > HELD_UP && attempt < TRIES;
                assert!(again, "SNMP {snmp} B/s, kernel {kernel} B/s, held up for {held_up:?}");
            }
        }
    });
}

#[test]
fn ports_without_64_bit_counters_have_32_bit_ones() {
    let Some(switch) = Switch::start("") else { return };
    let read = switch.run(async || answer(&mut switch.reader("community = \"narrow\"")).await);
    let swp1 = port(&read, "swp1");
    assert_eq!((swp1.width, swp1.rate), (32, None), "10 Gbit/s is beyond ifSpeed");
    assert!(swp1.received.bytes.is_some() && swp1.received.packets.is_none(), "{swp1:?}");
}

#[test]
fn a_restart_of_the_agent_is_a_reset() {
    let Some(mut switch) = Switch::start("") else { return };
    let folder = switch.folder.path().to_path_buf();
    let mut reader = switch.reader(USER);
    // one runtime, since the reader's socket belongs to it
    let namespace = switch.names[0].clone();
    let agent = &mut switch.agent;
    inside(&namespace, || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("there are descriptors");
        runtime.block_on(async {
            let first = answer(&mut reader).await;
            tokio::time::sleep(Duration::from_secs(7)).await;
            let second = answer(&mut reader).await;
            let reset = |one: &SwitchCounters, other: &SwitchCounters| {
                port(one, "swp1").discontinuity != port(other, "swp1").discontinuity
            };
            assert!(!reset(&first, &second));
            let old = std::mem::replace(
                agent,
                Running::start(&namespace, &mut Command::new("true"), folder.join("true.log")),
            );
            old.stop();
            *agent = snmpd(&namespace, &folder);
            let third = match reader.read().await {
                Err(late) if is_late(&late) => reader.read().await,
                third => third,
            };
            let third = third.expect("it finds the agent's new engine");
            assert!(reset(&second, &third));
        });
    });
}

#[test]
fn each_failure_has_its_own_message() {
    let Some(switch) = Switch::start("") else { return };
    let refused = |error: &ReadError, part: &str| matches!(error, ReadError::Refused(text) if text.contains(part));
    let unreachable =
        |error: &ReadError, part: &str| matches!(error, ReadError::Unreachable(text) if text.contains(part));

    let error = switch.answered_error("community = \"wrong\"");
    assert!(refused(&error, "not to this community"), "{error}");
    println!("wrong community: {error}");
    for (what, access) in [
        ("authentication", USER.replace("authentication", "authenticatiom")),
        ("privacy", USER.replace("encryption", "encryptiom")),
        ("user", USER.replace("operator", "stranger")),
    ] {
        let error = switch.answered_error(&access);
        assert!(matches!(&error, ReadError::Refused(text) if text.contains("user")), "{what}: {error}");
        println!("wrong {what}: {error}");
    }
    let error = switch.answered_error("community = \"nothing\"");
    assert!(matches!(&error, ReadError::Unsupported(text) if text.contains("IF-MIB")), "{error}");
    println!("a view without ports: {error}");

    switch.agent.pause(true);
    for access in [COMMUNITY, USER] {
        let error = switch.error(access);
        assert!(unreachable(&error, "no answer within 1 s"), "{error}");
        println!("stopped agent: {error}");
    }
    switch.agent.pause(false);

    let mut options = switch.options(COMMUNITY);
    options.address = "127.0.0.1:9".into();
    let error = switch.run(async || Reader::new(options).read().await.expect_err("nobody listens"));
    assert!(unreachable(&error, "no program listens"), "{error}");
    println!("no agent: {error}");

    let mut options = switch.options(COMMUNITY);
    options.address = "no-such-host.invalid".into();
    let error = switch.run(async || Reader::new(options).read().await.expect_err("there is no such host"));
    assert!(matches!(error, ReadError::Unreachable(_)), "{error}");
    println!("no such name: {error}");
}

#[test]
fn an_agent_that_stops_in_the_middle_is_said_to() {
    let Some(switch) = Switch::start("") else { return };
    let [at_switch, _] = &*switch.names;
    // enough ports that a reading takes many requests
    let links: Vec<String> = (0..200).map(|i| format!("link add d{i} type veth peer name e{i}")).collect();
    let batch = switch.folder.path().join("links");
    fs::write(&batch, links.join("\n")).expect("the folder is ours");
    ip(&format!("-n {at_switch} -batch {}", batch.display()));
    thread::sleep(Duration::from_millis(3_500));
    switch.run(async || {
        // without waiting for a renewal all its time goes into the walk
        let options = Options { refresh: Time::ZERO, ..switch.options(COMMUNITY) };
        let mut reader = Reader::new(options.clone());
        let began = Instant::now();
        let read = answer(&mut reader).await;
        let mut whole = began.elapsed();
        println!("{} ports in {whole:?}", read.ports.len());
        assert_eq!(read.ports.len(), 402);
        assert!(read.ports.iter().map(|port| port.number).is_sorted());

        // a walk of some milliseconds is not always hit in the middle
        let mut reader = Reader::new(options.clone());
        let (mut interrupted, mut quickest) = (None, whole);
        for attempt in 1..=20 {
            let began = Instant::now();
            answer(&mut reader).await;
            whole = began.elapsed();
            quickest = quickest.min(whole);
            let (read, ()) = tokio::join!(reader.read(), async {
                tokio::time::sleep(whole * (attempt % 4 + 1) / 6).await;
                switch.agent.pause(true);
            });
            if let Err(error @ ReadError::Interrupted(_)) = read {
                interrupted = Some(error);
                break;
            }
            switch.agent.pause(false);
        }
        let error = interrupted.expect("one of the readings was stopped");
        assert!(error.to_string().contains("ports"), "{error}");
        println!("stopped in the middle: {error}");
        switch.agent.pause(false);
        answer(&mut reader).await;

        // the next may be quicker than those that a busy machine delayed
        let reading = Time::from_ns(quickest.as_nanos() as u64 / 4);
        let error = Reader::new(Options { reading, ..options }).read().await.expect_err("it takes longer");
        assert!(matches!(&error, ReadError::Interrupted(text) if text.contains("are over")), "{error}");
        println!("slow: {error}");
    });
}

#[test]
fn neighbours_are_lldpds() {
    if or_skip(installed("lldpd")).is_none() {
        return;
    }
    for named_by in ["ifname", "macaddress"] {
        let agentx = tempfile::tempdir().expect("there is room for a folder");
        let socket = agentx.path().join("agentx").display().to_string();
        let Some(switch) = Switch::start(&format!("master agentx\nagentXSocket {socket}\n")) else { return };
        let start = |namespace: usize, name: &str, port: &str, more: &[&str]| {
            let folder = switch.folder.path();
            let file = folder.join(format!("{name}.conf"));
            let text = format!(
                "configure system hostname {name}\nconfigure lldp tx-interval 1\nconfigure lldp portidsubtype {named_by}\n"
            );
            fs::write(&file, text).expect("the folder is ours");
            let mut command = Command::new("lldpd");
            command
                .arg("-d")
                .args(more)
                .args(["-I", port, "-u"])
                .arg(folder.join(format!("{name}.socket")))
                .arg("-O")
                .arg(file);
            Running::start(&switch.names[namespace], &mut command, folder.join(format!("{name}.log")))
        };
        let _of_switch = start(0, "switch-1", "swp1", &["-x", "-X", &socket]);
        let _of_host = start(1, "leaf-2", "eth7", &[]);
        let mut options = switch.options(COMMUNITY);
        options.refresh = Time::ZERO;
        let expected = Neighbour { system: "leaf-2".into(), port: "eth7".into() };
        let mut found = None;
        until("the neighbour is heard", || {
            thread::sleep(Duration::from_millis(200));
            let read = switch.run(async || answer(&mut Reader::new(options.clone())).await);
            found = port(&read, "swp1").neighbour.clone();
            found.is_some()
        });
        assert_eq!(found, Some(expected), "ports named by {named_by}");
    }
}
