//! A fleet in good order: machines join, are steered, outlive their server and leave; operators and collectors reach the Oracle.

use crate::world::{POLICY, World};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use testkit::{PATIENCE, eventually, inside, ip, until};

#[test]
fn machines_join_are_steered_outlive_their_server_and_leave() {
    let Some(mut world) = World::new() else { return };
    let token = world.token();
    let early = ["enroll", "-", "--host", "h1", "--identity", "h1", "--wait", "1"];
    // a busy machine's server may not be connected in so short a time
    until("no Oracle has answered", || world.fails(1, &early, &token, 1).contains("no Oracle has answered"));
    let oracle = world.oracle();
    world.enroll(1, &token);
    let message = world.fails(1, &early, &token, 2);
    assert!(message.contains("this machine has an identity"), "{message}");
    let message = world.fails(2, &["enroll", "-", "--host", "h1", "--identity", "h2"], &token, 2);
    assert!(message.contains("the name h1 is taken"), "{message}");
    world.enroll(2, &token);
    let message = world.fails(1, &["agent", "--identity", "h1", "--host", "other"], "", 2);
    assert!(message.contains("--host other: this machine is h1 in the fleet"), "{message}");
    let message = world.fails(1, &["agent", "--identity", "fleet/operator"], "", 2);
    assert!(message.contains("the identity of operator operator"), "{message}");

    let agents = [world.agent(1), world.agent(2)];
    let said = || format!("{}{}{}", oracle.said(), agents[0].said(), agents[1].said());
    for machine in [1, 2] {
        assert!(eventually(|| world.is_set(machine)), "h{machine} is not steered: {}", said());
        until("its status says so", || world.status(machine)["connected"] == Value::Bool(true));
    }
    // the RTT of agents' own connections says nothing of the hosts' traffic, and must not withhold a rule
    let decision = world.decisions("oracle").pop().expect("it has decided");
    assert_eq!(decision["rules"][0]["values"], serde_json::json!(["network.live_flows = 0"]), "{}", said());

    world.server.kill();
    for machine in [1, 2] {
        until("what is not renewed ends", || !world.is_set(machine));
        until("the loss is seen", || world.status(machine)["connected"] == Value::Bool(false));
    }
    world.server.again();
    for machine in [1, 2] {
        assert!(eventually(|| world.is_set(machine)), "h{machine} is not steered once more: {}", said());
    }

    let members: Vec<String> = world.list().into_iter().map(|(name, _)| name).collect();
    assert_eq!(members, ["h1", "h2", "operator"]);
    let message = world.fails(0, &["fleet", "revoke", "h9", "--identity", "fleet/operator"], "", 2);
    assert!(message.contains("no member is called h9"), "{message}");
    world.done(0, &["fleet", "revoke", "h1", "--identity", "fleet/operator"], "");
    assert_eq!(world.list()[0], ("h1".to_string(), true));
    until("it is no longer steered", || !world.is_set(1));
    std::thread::sleep(Duration::from_secs(3));
    assert!(!world.is_set(1));
    until("the other one still is", || world.is_set(2));
    assert!(oracle.said().contains("revoked: agent h1, by operator"), "{}", oracle.said());

    for agent in agents {
        agent.stop();
    }
    assert!(!world.is_set(1) && !world.is_set(2));
    oracle.stop();
}

#[test]
fn an_operator_applies_pauses_and_returns_over_the_servers() {
    let Some(world) = World::new() else { return };
    let token = world.token();
    let oracle = world.oracle();
    world.enroll(1, &token);
    let agent = world.agent(1);
    let said = || format!("{}{}", oracle.said(), agent.said());
    let window = || ip(&format!("-n {} route show default", &world.machines[1]));
    let gets = |initcwnd: &str| eventually(|| window().contains(&format!("initcwnd {initcwnd}")));
    assert!(gets("20"), "{}", said());
    let ask = |arguments: &[&str]| world.done(0, &[arguments, &["--identity", "fleet/operator"]].concat(), "");
    std::fs::write(world.path("new.toml"), POLICY.replace("20", "30")).unwrap();
    let applied = ask(&["policy", "apply", "new.toml", "--yes"]);
    assert!(
        applied.contains("initial_cwnd: 20 → 30")
            && applied.contains("1 hosts have it and would get the new values: h1"),
        "{applied}"
    );
    assert!(gets("30"), "{}", said());
    ask(&["policy", "pause"]);
    until("what is not renewed ends", || !window().contains("initcwnd"));
    ask(&["policy", "resume"]);
    ask(&["policy", "rollback", "--yes"]);
    assert!(gets("20"), "{}", said());
    until("it is treated", || ask(&["status"]).contains("1 of 1 hosts treated"));
    // an agent is no operator
    let refused = world.fails(1, &["policy", "pause", "--identity", "h1"], "", 2);
    assert!(refused.contains("the identity of agent h1; this command needs that of: operator"), "{refused}");
    let history = world.done(0, &["history", "--state", "oracle"], "");
    for part in [
        "applied by operator (",
        "rolled back by operator (",
        "paused by operator until",
        "resumed by operator",
        "enrolled: ",
    ] {
        assert!(history.contains(part), "{part}: {history}");
    }
    agent.stop();
    oracle.stop();
}

#[test]
fn a_collectors_measurements_reach_the_oracle_over_the_servers() {
    let Some(world) = World::new() else { return };
    let oracle = world.oracle();
    let token = world.done(0, &["fleet", "token", "--fleet", "fleet", "--role", "collector", "--for", "1h"], "");
    world.done(1, &["enroll", "-", "--host", "c1", "--identity", "c1"], &token);
    // the exporter is this test: one record of NetFlow 5 each second
    let flows = "[racks]\n\"10.1.0.0/16\" = \"r1\"\n\"10.2.0.0/16\" = \"r2\"\n[[flows]]\nprotocol = \"netflow\"\n\
                 listen = \"127.0.0.1:2055\"\n[[flows.exporter]]\naddress = \"127.0.0.1\"\n";
    let file = |name: &str, more: &str| {
        fs::write(world.path(name), format!("{more}interval = \"1 s\"\n{flows}")).unwrap();
    };
    file("other.toml", "name = \"c2\"\n");
    let message = world.fails(1, &["collect", "other.toml", "--identity", "c1"], "", 2);
    assert!(message.contains("this collector is c1 in the fleet"), "{message}");
    file("bus.toml", "bus = \"oracle.sock\"\n");
    let message = world.fails(1, &["collect", "bus.toml", "--identity", "c1"], "", 2);
    assert!(message.contains("exclude each other"), "{message}");
    file("collect.toml", "");
    let message = world.fails(1, &["collect", "collect.toml", "--identity", "fleet/operator"], "", 2);
    assert!(message.contains("the identity of operator operator"), "{message}");

    let metrics = ["--metrics", "127.0.0.1:9818", "--identity", "c1"];
    let collector = world.start(1, "c1", &[&["collect", "collect.toml"][..], &metrics].concat());
    let exporter = inside(&world.machines[1], || UdpSocket::bind("127.0.0.1:0").unwrap());
    let mut sequence = 0;
    let mut rate = || -> Option<u64> {
        exporter.send_to(&netflow(sequence), "127.0.0.1:2055").unwrap();
        sequence += 1;
        std::thread::sleep(Duration::from_millis(200));
        // before its first decision the Oracle has no network to show
        let output = world.run(0, &["policy", "network", "--identity", "fleet/operator"], "");
        let view: Value = serde_json::from_slice(&output.stdout).ok()?;
        let pair = view["matrix"].as_array()?.iter().find(|pair| pair["from"] == "r1" && pair["to"] == "r2")?;
        Some(pair["rate"].as_str()?.parse::<units::Rate>().unwrap().as_bps())
    };
    let is_seen = eventually(|| rate().is_some_and(|rate| rate > 0));
    assert!(is_seen, "{}{}", oracle.said(), collector.said());
    // the page is of an interval, and what is sent is counted in the next
    let page = || scrape(&world.machines[1], "127.0.0.1:9818");
    until("what was sent is counted", || !page().contains("opentcp_collector_measurements_total 0"));
    let page = page();
    for line in
        ["opentcp_collector_connected 1", "opentcp_collector_flow_records_total{protocol=\"ipfix\",result=\"taken\"}"]
    {
        assert!(page.contains(line), "{line}: {page}");
    }
    let history = oracle.said();
    assert!(!history.contains("refused"), "{history}");
    collector.stop();
    oracle.stop();
}

/// A datagram of NetFlow 5 with one flow of 1 MB from 10.1.0.1 to 10.2.0.1.
fn netflow(sequence: u32) -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as u32;
    let mut datagram = Vec::new();
    // version, count; uptime, seconds, nanoseconds, sequence; engine, sampling
    datagram.extend([0, 5, 0, 1]);
    for word in [100_000_u32, now, 0, sequence] {
        datagram.extend(word.to_be_bytes());
    }
    datagram.extend([0; 4]);
    // addresses and next hop, interfaces, packets, bytes, first and last; ports and the rest
    datagram.extend([10, 1, 0, 1, 10, 2, 0, 1, 0, 0, 0, 0, 0, 1, 0, 2]);
    for word in [1000_u32, 1_000_000, 99_000, 100_000] {
        datagram.extend(word.to_be_bytes());
    }
    datagram.extend([0x1f, 0x90, 0x04, 0xd2, 0, 0x18, 6, 0, 0, 0, 0, 0, 16, 16, 0, 0]);
    datagram
}

/// What a machine's daemon serves to Prometheus.
fn scrape(machine: &str, address: &str) -> String {
    let mut stream = inside(machine, || TcpStream::connect(address).unwrap());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// Resident memory that is the process's own, kB, and CPU time, milliseconds.
fn cost(process: u32) -> (u64, u64, f64) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let of = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let stat = fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap();
    let ns: f64 = stat.split_whitespace().next().unwrap().parse().unwrap();
    (of("VmRSS:"), of("RssAnon:"), ns / 1e6)
}

#[test]
fn an_agent_of_a_fleet_costs_little() {
    let Some(world) = World::new() else { return };
    // a period as in production: one report a minute
    fs::write(world.path("policy.toml"), POLICY.replace("1 s", "60 s")).unwrap();
    let token = world.token();
    let oracle = world.oracle();
    world.enroll(1, &token);
    let agent = world.agent(1);
    until("it is connected", || agent.said().contains("connected to the Oracle"));
    std::thread::sleep(Duration::from_secs(2));
    let (_, _, before) = cost(agent.id());
    std::thread::sleep(Duration::from_secs(5));
    let (resident, own, after) = cost(agent.id());
    println!(
        "an idle agent over TLS: {:.1} MB resident, of which {:.1} MB its own and the rest the program's file; {:.3} % of a core",
        resident as f64 / 1024.0,
        own as f64 / 1024.0,
        (after - before) / 5_000.0 * 100.0
    );
    assert!(resident < 12 * 1024, "{resident} kB");
    agent.stop();
    oracle.stop();
}
