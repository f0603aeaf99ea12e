//! A whole fleet: machines that talk over TLS, a switch that three collectors read by different protocols, hosts under load, and a policy
//! that acts while the network is calm.

use crate::gnmi::{certify, target};
use crate::machines::{COLLECTORS, HOSTS, Machines, NAMES, ORACLE, SWITCH, address};
use crate::switch::are_installed;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use testkit::{Cgroup, Running, eventually, ip, nats_program, or_skip, root, until};

const POLICY: &str = r#"
name = "calm"
mode = "enforce"
period = "4 s"
lifetime = "6 s"
# whatever the machine's own algorithm is
allow_mixed_measures = true
[[constraint]]
name = "no congestion"
holds = "network.max_link_utilization < 0.5"
[[rule]]
name = "larger windows"
when = "network.max_link_utilization >= 0"
match = { hosts = "all" }
set = { initial_cwnd = 20, rto_min = "20 ms", cc = "kernel:reno" }
"#;
/// The rate of the switch's ports to hosts, bit/s: what it says, and what the kernel lets through.
const RATE: f64 = 100e6;
/// Load from the first host to the second, of iperf3: below half of the rate.
const LOAD: &str = "-b 30M -l 8K";
const H1: usize = HOSTS[0];
const H2: usize = HOSTS[1];
const H3: usize = HOSTS[2];
/// Ports of the second host: of the load, of what causes congestion, and of nobody who accepts.
const LOADED: u16 = 5201;
const CONGESTED: u16 = 5202;
const SILENT: u16 = 5203;
/// Collectors, each with its name for the switch, and how it asks the switch.
const COLLECTED: [(&str, &str); 3] = [
    ("openflow", "interval = \"2 s\"\nprotocol = \"openflow\"\naddress = \"10.96.0.1:6653\""),
    ("gnmi", "interval = \"2 s\"\nprotocol = \"gnmi\"\naddress = \"10.96.0.1:9339\"\ntls = { ca = \"ca.pem\" }"),
    // twice what an agent of net-snmp takes to renew its counters
    ("snmp", "interval = \"6 s\"\nprotocol = \"snmp\"\naddress = \"10.96.0.1\"\ncredentials = \"access\""),
];
/// How far a collector's utilization may be from the links' own counters.
const ERROR: f64 = 0.02;
/// Decisions over which both are compared.
const COMPARED: usize = 4;
/// Comparisons until the load has a constant rate, at most.
const ATTEMPTS: usize = 3;
/// Ratio of the highest to the lowest rate over 2 s that is constant.
const STEADY: f64 = 1.05;

#[test]
fn a_policy_acts_on_live_connections_while_three_collectors_see_a_calm_network() {
    let Some(mut machines) = machines() else { return };
    let _switch = offer(&machines);
    fs::write(machines.path("policy.toml"), POLICY).unwrap();
    let oracle = ["oracle", "policy.toml", "--identity", "fleet/oracle-0", "--state", "oracle"];
    machines.found(&nats_program().expect("it was there"));
    let oracle = machines.opentcp(ORACLE, "oracle", &oracle);
    machines.enroll("agent", &HOSTS.map(|host| (host, NAMES[host])));
    machines.enroll("collector", &COLLECTED.map(|(name, _)| (COLLECTORS, name)));
    let _servers = [LOADED, CONGESTED].map(|port| server(&machines, port));
    let _load = machines.program(H1, "load", &format!("exec iperf3 -c {} -p {LOADED} -t 300 {LOAD}", address(H2)));
    until("the load's connections are open", || machines.connections(H1, (H2, LOADED)).len() == 2);
    let own = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap().trim().to_string();
    assert_ne!(own, "reno", "this machine's default is the test's setting");
    println!("before: {}", shown(&machines.connections(H1, (H2, LOADED))));
    assert!(uses(&machines, &own), "{:?}", machines.connections(H1, (H2, LOADED)));
    let collectors = COLLECTED.map(|(name, how)| collector(&machines, name, how));
    let agents = HOSTS.map(|host| machines.agent(host));
    let said = || {
        let all = agents.iter().chain(&collectors).chain([&oracle]);
        let said = all.fold(String::new(), |all, one| all + &one.said());
        format!("{said}{:?}", machines.lines("oracle").last())
    };

    assert!(eventually(|| uses(&machines, "reno")), "the open connections: {}", said());
    assert_set(&machines);
    compare(&machines, &said);
    println!("{}", machines.agent_status(H1));

    let congestion =
        machines.program(H3, "congestion", &format!("exec iperf3 -c {} -p {CONGESTED} -t 100", address(H2)));
    let is_withheld = eventually(|| decided(&machines) == Some((Some(false), 0)));
    assert!(
        is_withheld,
        "congestion withholds CUEs: {}{}{:?}",
        said(),
        fs::read_to_string(machines.path("congestion.out")).unwrap(),
        view(&machines).map(|view| utilizations(&view))
    );
    println!("congestion, by the Oracle's last decision: {}", words(&machines));
    assert!(eventually(|| uses(&machines, &own)), "what is not renewed ends: {}", said());
    println!("{}", utilizations(&view(&machines).expect("it has decided")));
    println!("withheld: {}", shown(&machines.connections(H1, (H2, LOADED))));
    let history = machines.run(ORACLE, &["history", "--state", "oracle"], "");
    assert!(history.contains("withheld: the constraint `no congestion` does not hold"), "{history}");

    congestion.kill();
    let acts = || decided(&machines).is_some_and(|(holds, cues)| holds == Some(true) && cues > 0);
    assert!(eventually(acts), "CUEs once more: {}", said());
    assert!(eventually(|| uses(&machines, "reno")), "the open connections once more: {}", said());
    assert_set(&machines);
    println!("{}", machines.run(ORACLE, &["history", "--state", "oracle"], ""));
    println!("{}", machines.run(ORACLE, &["status", "--identity", "fleet/operator"], ""));
    for agent in agents {
        agent.stop();
    }
    assert!(uses(&machines, &own), "agents restore what was");
    for collector in collectors {
        collector.stop();
    }
    oracle.stop();
}

/// Machines that are not yet a fleet, and what they need; or a printed reason why the test is skipped.
fn machines() -> Option<Machines> {
    or_skip(root())?;
    or_skip(kernel::Kernel::probe())?;
    drop(kernel::Pins::open().unwrap_or_else(|error| panic!("{error}")));
    let cgroup = or_skip(Cgroup::new("fleet"))?;
    nats_program()?;
    if !are_installed(&["tc", "ss", "iperf3", "snmpd", "snmpget"]) {
        return None;
    }
    or_skip(target())?;
    let machines = Machines::new(cgroup, "100mbit");
    or_skip(certify(machines.place.path(), &address(SWITCH)))?;
    Some(machines)
}

/// Lets the switch answer by three protocols.
fn offer(machines: &Machines) -> [Running; 2] {
    let here = address(SWITCH);
    machines
        .switch
        .vsctl(&format!("-- --id=@c create controller target=\"ptcp:6653:{here}\" -- add bridge sw controller @c"));
    let access = machines.path("access");
    fs::write(&access, "community = \"wide\"\n").unwrap();
    fs::set_permissions(&access, fs::Permissions::from_mode(0o600)).unwrap();
    let text = format!("agentaddress udp:{here}:161\nrocommunity wide 10.96.0.0/24\n");
    fs::write(machines.path("snmpd.conf"), text).unwrap();
    let mut snmpd = Command::new("snmpd");
    snmpd.args(["-f", "-Le", "-C", "-c", "snmpd.conf"]).env("MIBS", "");
    snmpd.env("SNMP_PERSISTENT_DIR", machines.path("persistent"));
    let snmpd = machines.start(SWITCH, "snmpd", snmpd);
    until("snmpd listens", || snmpd.said().contains("NET-SNMP version"));
    // as an agent that runs for long: from its first answer on it renews its counters by a timer
    ip(&format!("netns exec {} snmpget -v2c -c wide {here} 1.3.6.1.2.1.31.1.1.1.6.1", machines.namespace(SWITCH)));
    let mut gnmi = Command::new(target().expect("it was built"));
    gnmi.args(["-listen", &format!("{here}:9339"), "-interval", "2s"]);
    let gnmi = machines.start(SWITCH, "target", gnmi);
    until("the gNMI target listens", || fs::read_to_string(machines.path("target.out")).unwrap().contains(":9339"));
    [snmpd, gnmi]
}

/// A collector with an identity and a file of its own. It calls the switch by its own name, so that the Oracle has three switches.
fn collector(machines: &Machines, name: &str, how: &str) -> Running {
    let ports = NAMES[1..].iter().fold(String::new(), |mut text, port| {
        writeln!(text, "{port} = {{ end = \"{port}\", rate = \"100 Mbit/s\" }}").unwrap();
        text
    });
    // other interfaces of the switch's machine, whose rates SNMP and gNMI do not know or make up
    let others = ["lo", "sw", "ovs-netdev"].map(|port| format!("{port} = {{ rate = \"10 Gbit/s\" }}\n")).concat();
    let text = format!("interval = \"2 s\"\n[[switch]]\nname = \"{name}\"\n{how}\n[switch.ports]\n{ports}{others}");
    fs::write(machines.path(&format!("{name}.toml")), text).unwrap();
    let log = format!("collect-{name}");
    machines.opentcp(COLLECTORS, &log, &["collect", &format!("{name}.toml"), "--identity", name])
}

fn server(machines: &Machines, port: u16) -> Running {
    let server = machines.program(H2, &format!("server-{port}"), &format!("exec iperf3 -s -p {port} --forceflush"));
    let listens = || fs::read_to_string(machines.path(&format!("server-{port}.out"))).unwrap().contains("listening");
    until("iperf3 listens", listens);
    server
}

/// Whether all connections of the load use this algorithm.
fn uses(machines: &Machines, algorithm: &str) -> bool {
    let all = machines.connections(H1, (H2, LOADED));
    assert_eq!(all.len(), 2, "the load goes on: {all:?}");
    all.iter().all(|line| line.split_whitespace().any(|word| word == algorithm))
}

/// A number of a connection, by `ss`.
fn number(line: &str, name: &str) -> f64 {
    let found = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'));
    found.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{name}: {line}"))
}

/// What matters here of connections.
fn shown(lines: &[String]) -> String {
    let names = ["rto:", "cwnd:", "cubic", "bbr", "reno"];
    let of = |line: &String| -> String {
        line.split_whitespace()
            .filter(|word| names.iter().any(|name| word.starts_with(name) && !word.contains('(')))
            .fold(String::new(), |all, word| all + " " + word)
    };
    lines.iter().map(of).collect::<Vec<_>>().join(";")
}

/// The policy's settings are those of the load's open connections and of a new one.
fn assert_set(machines: &Machines) {
    let open = machines.connections(H1, (H2, LOADED));
    let line = format!("exec 3<>/dev/tcp/{}/{SILENT}; sleep 100", address(H2));
    let listener =
        testkit::inside(machines.namespace(H2), || std::net::TcpListener::bind((address(H2), SILENT)).unwrap());
    let new = machines.program(H1, "new", &line);
    let mut fresh = Vec::new();
    until("a new connection is open", || {
        fresh = machines.connections(H1, (H2, SILENT));
        !fresh.is_empty()
    });
    new.kill();
    drop(listener);
    println!("set, open connections: {}; a new one: {}", shown(&open), shown(&fresh));
    // An RTO is an RTT and at least the minimum, 200 ms without the policy; after a timeout it is twice as long until the next ACK. iperf3 has a
    // connection for control too: as it is idle, TCP has not computed its RTO anew.
    until("the busy connection has a short RTO", || {
        let open = machines.connections(H1, (H2, LOADED));
        let busy = open.iter().max_by_key(|line| number(line, "segs_out") as u64).expect("it goes on");
        (20.0..200.0).contains(&number(busy, "rto"))
    });
    assert_eq!((number(&fresh[0], "cwnd"), fresh[0].contains(" reno ")), (20.0, true), "{}", fresh[0]);
}

/// The Oracle's view of the network at its last decision.
fn view(machines: &Machines) -> Option<Value> {
    let text = machines.tried(ORACLE, &["policy", "network", "--identity", "fleet/operator"])?;
    serde_json::from_str(&text).ok()
}

fn utilization(view: &Value, name: &str) -> Option<f64> {
    view["links"].as_array()?.iter().find(|link| link["name"] == name)?["utilization"].as_f64()
}

/// The links that carry the load: its first, by the host's port, and its last.
fn links(collector: &str) -> [String; 2] {
    [format!("{collector} h1 in"), format!("{collector} h2 out")]
}

fn utilizations(view: &Value) -> String {
    let of = |(name, _): &(&str, &str)| {
        let [_, last] = links(name);
        format!("`{last}` {:.1} %", 100.0 * utilization(view, &last).unwrap_or(f64::NAN))
    };
    COLLECTED.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// What the Oracle decided last: whether its constraint holds, and the number of CUEs.
fn decided(machines: &Machines) -> Option<(Option<bool>, usize)> {
    let last = machines.lines("oracle").pop()?;
    Some((last["constraints"][0]["holds"].as_bool(), last["cues"].as_array()?.len()))
}

fn words(machines: &Machines) -> String {
    let last = machines.lines("oracle").pop().expect("it has decided");
    format!("{} {}", last["constraints"], last["rules"])
}

/// Compares what the Oracle has of each collector with the links' counters.
///
/// A collector's utilization is the mean between two of its readings, whose times nobody else knows. So the load has a constant rate, and both
/// sides are means: of the collector's values at some decisions in a row, and of the counters over the whole time. Where a busy machine holds the
/// load up meanwhile, that is measured again.
fn compare(machines: &Machines, said: &dyn Fn() -> String) {
    for attempt in 1..=ATTEMPTS {
        let (is_steady, wrong) = compared(machines, said);
        if wrong.is_empty() {
            return;
        }
        assert!(!is_steady && attempt < ATTEMPTS, "{wrong:?}: {}", said());
    }
}

/// Whether the load had a constant rate, and the links of which a collector is wrong.
fn compared(machines: &Machines, said: &dyn Fn() -> String) -> (bool, Vec<String>) {
    let names: Vec<String> = COLLECTED.iter().flat_map(|(name, _)| links(name)).collect();
    let all = |view: &Value| -> Option<Vec<f64>> { names.iter().map(|name| utilization(view, name)).collect() };
    let carried = || (Instant::now(), [machines.carried(H1).0, machines.carried(H2).1]);
    let share = |from: &(Instant, [u64; 2]), to: &(Instant, [u64; 2]), link: usize| {
        (to.1[link] - from.1[link]) as f64 * 8.0 / (to.0 - from.0).as_secs_f64() / RATE
    };
    let (mut values, mut counters, mut at) = (Vec::new(), vec![carried()], Value::Null);
    let is_done = eventually(|| {
        thread::sleep(Duration::from_millis(500));
        counters.push(carried());
        if let Some(view) = view(machines)
            && view["at"] != at
        {
            at = view["at"].clone();
            values.extend(all(&view));
        }
        values.len() == COMPARED
    });
    assert!(is_done, "{values:?} {}", said());
    let [first, last] = [&counters[0], &counters[counters.len() - 1]];
    let steady = counters.windows(5).map(|few| share(&few[0], &few[4], 1));
    let (least, most) = steady.fold((1.0_f64, 0.0_f64), |(least, most), one| (least.min(one), most.max(one)));
    println!("the kernel's counters at h2 over any 2 s: {:.3} to {:.3} %", 100.0 * least, 100.0 * most);
    let mut wrong = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let own = share(first, last, i % 2);
        let each: Vec<f64> = values.iter().map(|at| at[i]).collect();
        let mean = each.iter().sum::<f64>() / each.len() as f64;
        let error = |value: f64| 100.0 * (value / own - 1.0);
        let each: Vec<String> = each.into_iter().map(|one| format!("{:+.2}", error(one))).collect();
        println!(
            "`{name}`: {:.3} %, the link's own counters {:.3} %: {:+.2} %; at each decision {}",
            100.0 * mean,
            100.0 * own,
            error(mean),
            each.join(", ")
        );
        if (mean / own - 1.0).abs() >= ERROR {
            wrong.push(name.clone());
        }
    }
    (most < STEADY * least, wrong)
}
