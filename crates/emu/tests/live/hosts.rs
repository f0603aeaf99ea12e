//! Hosts: their settings, their programs, and that nothing is left of them.

use crate::hosts_support::{Cable, address, exclusive, pair, settings};
use emu::hosts::{Cleaned, Error, Found, Host, HostSettings, clean, find, list, mac_of};
use packet_io::{Ethernet, READ_BYTES_MAX};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use testkit::{PATIENCE, eventually};

/// The output of a program inside a host.
fn says(host: &Host, argv: &[&str]) -> String {
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).stdout(Stdio::piped());
    let child = host.start(command).unwrap_or_else(|error| panic!("{argv:?}: {error}"));
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{argv:?}: {output:?}");
    String::from_utf8(output.stdout).expect("plain text")
}

/// The network namespaces with any thread.
fn namespaces() -> BTreeSet<PathBuf> {
    let threads = |process: PathBuf| fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    let processes = fs::read_dir("/proc").expect("Linux has it").flatten().map(|entry| entry.path());
    processes.flat_map(threads).filter_map(|thread| fs::read_link(thread.path().join("ns/net")).ok()).collect()
}

fn is_running(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn settings_are_the_hosts_own_and_take_effect() {
    let Some(_lock) = exclusive() else { return };
    let outside = || {
        ["tcp_ecn", "tcp_rmem", "tcp_wmem", "tcp_sack", "tcp_congestion_control", "tcp_no_metrics_save"]
            .map(|name| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).expect("Linux has it"))
    };
    let before = outside();
    let host = Host::new(
        "h1",
        &HostSettings {
            mtu: 4000,
            ecn: Some(1),
            congestion_control: Some("reno".into()),
            rto_min: Some(Duration::from_micros(4500)),
            initial_cwnd: Some(20),
            initial_rwnd: Some(30),
            quick_ack: true,
            gso_max_segs: Some(7),
            rmem: Some([4096, 200_000, 3_000_000]),
            wmem: Some([4096, 100_000, 2_000_000]),
            sysctls: vec![("net.ipv4.tcp_sack".into(), "0".into())],
            rps_cpus: Some(1),
            tx_queue_frames: 1234,
            ..settings(1, 3)
        },
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let sysctl = |name: &str| {
        let path = format!("/proc/sys/net/ipv4/{name}");
        host.enter(|| fs::read_to_string(path)).and_then(|text| text).expect("Linux has it").trim().to_owned()
    };
    assert_eq!(sysctl("tcp_ecn"), "1");
    assert_eq!(sysctl("tcp_rmem"), "4096\t200000\t3000000");
    assert_eq!(sysctl("tcp_wmem"), "4096\t100000\t2000000");
    assert_eq!(sysctl("tcp_sack"), "0");
    assert_eq!(sysctl("tcp_no_metrics_save"), "1");
    assert_eq!(sysctl("tcp_congestion_control"), "reno");

    let link = says(&host, &["ip", "-d", "link", "show", "eth0"]);
    for part in ["mtu 4000", "qlen 1234", "LOWER_UP", "02:00:0a:00:00:01", "type tap", "gso_max_segs 7 "] {
        assert!(link.contains(part), "{part}: {link}");
    }
    assert!(says(&host, &["ip", "link", "show", "lo"]).contains("UP,LOWER_UP"));
    let route = says(&host, &["ip", "-4", "route"]);
    for part in ["10.0.0.0/8 dev eth0", "src 10.0.0.1", "rto_min lock 5ms", "initcwnd 20", "initrwnd 30", "quickack 1"]
    {
        assert!(route.contains(part), "{part}: {route}");
    }
    assert_eq!(route.lines().count(), 1, "{route}");
    let neighbours = says(&host, &["ip", "neighbour"]);
    assert_eq!(neighbours.lines().filter(|line| line.contains("PERMANENT")).count(), 2, "{neighbours}");
    assert!(neighbours.contains("10.0.0.3 dev eth0 lladdr 02:00:0a:00:00:03"), "{neighbours}");
    // /sys shows the namespace of its mounter.
    let show = "mount -t sysfs none /sys && cat /sys/class/net/eth0/queues/rx-0/rps_cpus";
    let cpus = says(&host, &["unshare", "--mount", "sh", "-c", show]);
    assert_eq!(u64::from_str_radix(&cpus.trim().replace(',', ""), 16), Ok(1));
    assert_eq!(outside(), before);
}

#[test]
fn an_algorithm_that_namespaces_may_not_choose_is_put_into_the_route() {
    let Some(_lock) = exclusive() else { return };
    let host = Host::new("h1", &HostSettings { congestion_control: Some("cubic".into()), ..settings(1, 2) })
        .unwrap_or_else(|error| panic!("{error}"));
    let algorithm = host
        .enter(|| fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control"))
        .and_then(|text| text)
        .expect("Linux has it");
    let route = says(&host, &["ip", "-4", "route"]);
    assert!(algorithm.trim() == "cubic" || route.contains("congctl cubic"), "{algorithm}{route}");
}

#[test]
fn only_programs_packets_are_on_the_wire() {
    let Some(_lock) = exclusive() else { return };
    let mut hosts = pair();
    let mut tap = hosts[0].take_tap().expect("it was not taken yet");
    let mut buffer = vec![0; READ_BYTES_MAX];
    thread::sleep(Duration::from_millis(700));
    let first = tap.read(&mut buffer).expect("it can be read").map(|frame| frame.bytes.to_vec());
    assert_eq!(first, None, "the host speaks unasked");

    let socket = hosts[0].enter(|| UdpSocket::bind((address(1), 7))).and_then(|it| it).expect("a port");
    socket.send_to(b"hello", (address(2), 9)).expect("it is sent");
    let frame = tap.read(&mut buffer).expect("it can be read").expect("no question about addresses comes first");
    let ethernet = Ethernet::parse(frame.bytes).expect("a frame");
    assert_eq!((ethernet.source(), ethernet.destination()), (hosts[0].mac(), mac_of(address(2))));
    let udp = ethernet.ip().and_then(|ip| ip.udp()).expect("a datagram");
    assert_eq!((udp.source_port(), udp.destination_port(), udp.payload()), (7, 9, &b"hello"[..]));
    assert!(tap.read(&mut buffer).expect("it can be read").is_none());
}

#[test]
fn threads_and_programs_run_inside() {
    let Some(_lock) = exclusive() else { return };
    let mut hosts = pair();
    let taps = [0, 1].map(|index| hosts[index].take_tap().expect("it was not taken yet"));
    let cable = Cable::plug(taps, false, None);
    let server = hosts[1].spawn(|| {
        let socket = UdpSocket::bind((address(2), 9)).expect("a port");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket takes it");
        let mut buffer = [0; 16];
        let (length, from) = socket.recv_from(&mut buffer).expect("a datagram comes");
        (buffer[..length].to_vec(), from)
    });
    let server = server.expect("a thread");
    // The datagram may come before the socket is there.
    let client = hosts[0].enter(|| UdpSocket::bind((address(1), 7))).and_then(|it| it).expect("a port");
    let arrived = eventually(|| {
        let _ = client.send_to(b"inside", (address(2), 9));
        server.is_finished()
    });
    assert!(arrived);
    let (bytes, from) = server.join().expect("it does not panic");
    assert_eq!((bytes, from), (b"inside".to_vec(), SocketAddr::from((address(1), 7))));

    assert!(says(&hosts[1], &["ip", "-4", "address", "show", "eth0"]).contains("10.0.0.2/8"));
    let file = hosts[0].namespace();
    let entered = Command::new("nsenter").arg(format!("--net={}", file.display())).args(["ip", "address"]).output();
    if let Ok(output) = entered {
        assert!(String::from_utf8_lossy(&output.stdout).contains("10.0.0.1/8"));
    }
    assert!(matches!(hosts[0].command(&[] as &[&str]), Err(error) if error.kind() == std::io::ErrorKind::InvalidInput));
    assert!(hosts[0].command(&["/no/such/program"]).is_err());
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hosts[0].enter(|| panic!("as meant"))));
    assert!(panic.is_err());
    assert_eq!(hosts[0].enter(|| 7).expect("a job's panic does not end the host"), 7);
    cable.unplug();
}

#[test]
fn a_dropped_host_takes_its_programs_along_even_those_in_the_background() {
    let Some(_lock) = exclusive() else { return };
    let before = namespaces();
    let host = Host::new("h1", &settings(1, 1)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(namespaces().len(), before.len() + 1);
    let mut near = host.command(&["sleep", "1000"]).expect("it starts");
    let far: u32 =
        says(&host, &["sh", "-c", "setsid sleep 1000 >/dev/null & echo $!"]).trim().parse().expect("a number");
    assert!(is_running(near.id()) && is_running(far));
    drop(host);
    assert!(eventually(|| !is_running(near.id()) && !is_running(far)));
    let status = near.wait().expect("it has ended");
    assert!(!status.success());
    assert!(eventually(|| namespaces() == before), "{:?} {before:?}", namespaces());
}

const ROLE: &str = "OPENTCP_TEST_ROLE";

/// The process that will be killed: sixteen hosts, a program in each, and one program that leaves its parent.
fn live_until_killed() -> ! {
    let hosts: Vec<_> = (1..=16)
        .map(|own| Host::new(&format!("h{own}"), &settings(own, 16)).unwrap_or_else(|error| panic!("{error}")))
        .collect();
    let mut sleepers = Vec::new();
    for host in &hosts {
        sleepers.push(host.command(&["sleep", "1000"]).expect("it starts").id());
    }
    sleepers.push(
        says(&hosts[4], &["sh", "-c", "setsid sleep 1000 >/dev/null & echo $!"]).trim().parse().expect("a number"),
    );
    println!("\nsleepers {}", sleepers.iter().map(u32::to_string).collect::<Vec<_>>().join(" "));
    loop {
        thread::park();
    }
}

/// Starts this very test in a process of its own, which makes hosts; returns it and its programs.
fn start_victim(test: &str) -> (Child, Vec<u32>) {
    let mut command = Command::new(env::current_exe().expect("this program has a file"));
    command.args(["--exact", test, "--nocapture"]).env(ROLE, "victim").stdout(Stdio::piped()).stderr(Stdio::null());
    let mut victim = command.spawn().expect("it starts");
    let lines = BufReader::new(victim.stdout.take().expect("it is a pipe")).lines();
    let line = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("sleepers ").map(str::to_owned));
    let sleepers =
        line.expect("the victim makes its hosts").split(' ').map(|id| id.parse().expect("a number")).collect();
    (victim, sleepers)
}

#[test]
fn nothing_is_left_of_a_killed_process_with_sixteen_hosts() {
    if env::var_os(ROLE).is_some() {
        live_until_killed();
    }
    let Some(_lock) = exclusive() else { return };
    clean().expect("/proc can be read");
    let before = namespaces();
    let (mut victim, sleepers) = start_victim("hosts::nothing_is_left_of_a_killed_process_with_sixteen_hosts");
    assert_eq!(namespaces().len(), before.len() + 16);
    assert_eq!(sleepers.len(), 17);
    assert!(sleepers.iter().all(|sleeper| is_running(*sleeper)));

    // While it lives, its hosts are found from outside, and not cleaned away.
    let own = |found: &Found| found.owner() == victim.id();
    assert_eq!(list().expect("/proc can be read").iter().filter(|found| own(found)).count(), 16);
    let h7 = find("h7").expect("it is there");
    assert!(own(&h7) && h7.name() == "h7" && h7.namespace().exists());
    let mut shown = h7.command(&["grep", "-q", "eth0", "/proc/self/net/dev"]).expect("it starts");
    assert!(shown.wait().expect("it ends").success());
    assert!(find("h17").is_err());
    assert_eq!(clean().expect("/proc can be read"), Cleaned::default());
    assert!(sleepers.iter().all(|sleeper| is_running(*sleeper)));

    kill_process(Pid::from_raw(victim.id() as i32).expect("a number"), Signal::KILL).expect("it is ours");
    // Not waited for yet: even an unreaped process is dead.
    let (runaway, children) = sleepers.split_last().expect("there are 17");
    assert!(
        eventually(|| children.iter().all(|child| !is_running(*child))),
        "programs die with the one that started them"
    );
    assert!(is_running(*runaway), "one had left its parent: the reason for clean()");
    assert!(eventually(|| !is_running(victim.id())));
    assert_eq!(namespaces().len(), before.len() + 1);
    assert_eq!(clean().expect("/proc can be read"), Cleaned { hosts: 1, processes: 1, cgroups: 0 });
    assert!(!is_running(*runaway));
    assert_eq!(namespaces(), before);
    assert_eq!(clean().expect("/proc can be read"), Cleaned::default());
    victim.wait().expect("it has ended");
}

#[test]
fn mistakes_are_reported_and_leave_nothing() {
    let Some(_lock) = exclusive() else { return };
    let before = namespaces();
    let base = settings(1, 2);
    let message = |name: &str, settings: &HostSettings| match Host::new(name, settings) {
        Ok(_) => panic!("{name} {settings:?} was taken"),
        Err(error) => error.to_string(),
    };
    assert!(message("", &base).contains("a host's name"));
    assert!(message("a/b", &base).contains("a host's name"));
    assert!(message("h1", &HostSettings { mtu: 60, ..base.clone() }).contains("68 to 65521 bytes, not 60"));
    assert!(message("h1", &HostSettings { prefix_len: 0, ..base.clone() }).contains("1 to 30 bits, not 0"));
    let with_sysctl =
        |name: &str, value: &str| HostSettings { sysctls: vec![(name.into(), value.into())], ..base.clone() };
    assert!(message("h1", &with_sysctl("kernel.hostname", "x")).contains("is not a sysctl of a network namespace"));
    assert!(message("h1", &with_sysctl("net.ipv4.nonsense", "1")).contains("net.ipv4.nonsense = 1"));
    assert!(message("h1", &with_sysctl("net.ipv4.tcp_sack", "maybe")).contains("net.ipv4.tcp_sack = maybe"));
    let unknown = HostSettings { congestion_control: Some("nonesuch".into()), ..base.clone() };
    assert!(message("h1", &unknown).contains("no congestion control 'nonesuch'"));
    let stranger = HostSettings { neighbours: vec!["11.0.0.1".parse().expect("an address")], ..base.clone() };
    assert!(message("h1", &stranger).contains("11.0.0.1 is not in the subnet of 10.0.0.1/8"));
    let cpus = HostSettings { rps_cpus: Some(u64::MAX), ..base.clone() };
    // A machine with 64 CPUs or more takes them all.
    let refused = Host::new("h1", &cpus).err().map(|error| error.to_string());
    assert!(refused.is_none_or(|error| error.contains("the kernel refuses rps_cpus")));
    assert!(eventually(|| namespaces() == before));
}

#[test]
fn without_root_one_line_says_what_is_missing() {
    let Some(_lock) = exclusive() else { return };
    let host = thread::spawn(|| {
        // For this thread only; the process would lose the right for the other tests.
        let none = rustix::thread::CapabilitySet::empty();
        let sets = rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none };
        rustix::thread::set_capabilities(None, sets).expect("rights can be given up");
        Host::new("h1", &settings(1, 1)).map(|_| ())
    });
    let error = host.join().expect("it does not panic").expect_err("it has no right to");
    assert!(matches!(error, Error::NotRoot), "{error}");
    assert!(error.to_string().contains("need root"), "{error}");
}
