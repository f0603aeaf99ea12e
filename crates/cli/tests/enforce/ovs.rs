//! An Open vSwitch that steers the flows of chosen servers through an enforcer, as in docs/enforcer.md.

use crate::wire::Wire;
use crate::world::{World, connect};
use crate::{LONG, SHORT, check, exchange, send};
use nix::sys::socket::SockProtocol;
use packet_io::tuple;
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use testkit::{End, Namespaces, OpenVSwitch, PATIENCE, cable, eventually, ip};

/// The port whose flows take the detour; the others do not.
const STEERED: u16 = 7001;
const DIRECT: u16 = 7002;
/// Its flows take the detour, and a rule of the enforcer exempts them.
const EXEMPT: u16 = 7003;

/// A switch between hosts, with the detour's ports `to-es` and `to-ec`.
struct Switch(OpenVSwitch);

impl Switch {
    /// Between these ports, of which `s` and `c` were the bridge's; or a printed reason why the test is skipped.
    fn between(world: &World, ports: &[&str]) -> Option<Switch> {
        if !OpenVSwitch::is_installed() {
            return None;
        }
        for port in ["s", "c"] {
            world.run(1, &format!("ip link set {port} nomaster"));
        }
        for port in ["es", "ec"] {
            world.run(1, &format!("ip link add {port} type veth peer name to-{port}"));
            world.run(1, &format!("ip link set {port} master br0 up"));
            world.run(1, &format!("ip link set to-{port} up"));
        }
        for host in [0, 2] {
            OpenVSwitch::disable_offloads(&world.hosts()[host], "eth0");
        }
        let started = OpenVSwitch::start(&world.hosts()[1], &world.path(""));
        started.vsctl("add-br sw -- set bridge sw datapath_type=netdev");
        for port in ports.iter().chain(&["to-es tag=4001", "to-ec tag=4002"]) {
            started.vsctl(&format!("add-port sw {port}"));
        }
        Some(Switch(started))
    }

    /// Steers the flows of the chosen port through the enforcer, and no others. What returns from it is output to a named port, so that the
    /// switch does not learn that the hosts are behind the detour.
    fn steer(&self) {
        for flow in [
            &format!("priority=20,tcp,in_port=s,nw_src=10.97.0.1,tp_src={STEERED},actions=output:to-es"),
            &format!("priority=20,tcp,in_port=c,nw_dst=10.97.0.1,tp_dst={STEERED},actions=output:to-ec"),
            "priority=20,in_port=to-es,actions=output:s",
            "priority=20,in_port=to-ec,actions=output:c",
        ] {
            self.change_flows("add-flow", flow);
        }
    }

    /// The same for several servers, IPv4 and IPv6. What returns is output to the port of the host that it is for, by a rule of higher priority.
    fn steer_all(&self, servers: &[Host], clients: &[Host]) {
        let mut flows = Vec::new();
        for (hosts, detour) in [(servers, "to-es"), (clients, "to-ec")] {
            for host in hosts {
                let (address, port) = (host.hardware_address(), host.port);
                flows.push(format!("priority=30,in_port={detour},dl_dst={address},actions=output:{port}"));
            }
        }
        for server in servers {
            for (protocol, field, address) in [("tcp", "nw", server.ipv4()), ("tcp6", "ipv6", server.ipv6())] {
                for port in [STEERED, EXEMPT] {
                    flows.push(format!(
                        "priority=20,{protocol},{field}_src={address},tp_src={port},actions=output:to-es"
                    ));
                    flows.push(format!(
                        "priority=20,{protocol},{field}_dst={address},tp_dst={port},actions=output:to-ec"
                    ));
                }
            }
        }
        let file = self.0.file("flows");
        fs::write(&file, flows.join("\n")).expect("there is room");
        self.change_flows("add-flows", &file.display().to_string());
    }

    fn change_flows(&self, how: &str, flow: &str) {
        self.0.ofctl("sw", &format!("{how} SWITCH {flow}"));
    }
}

/// A host at a port of the switch. Its number ends its addresses.
struct Host {
    namespace: String,
    port: &'static str,
    number: u8,
}

impl Host {
    fn ipv4(&self) -> IpAddr {
        Ipv4Addr::new(10, 97, 0, self.number).into()
    }

    fn ipv6(&self) -> IpAddr {
        Ipv6Addr::new(0xfd97, 0, 0, 0, 0, 0, 0, self.number.into()).into()
    }

    fn hardware_address(&self) -> String {
        format!("02:97:00:00:00:{:02x}", self.number)
    }
}

/// Three servers and three clients, of which the last two are in a VLAN.
fn hosts(world: &World, more: &Namespaces<4>) -> [[Host; 3]; 2] {
    let [server, between, client] = world.hosts();
    let host = |namespace: &String, port, number| Host { namespace: namespace.clone(), port, number };
    let servers = [host(server, "s", 1), host(&more[0], "s2", 3), host(&more[1], "s3", 5)];
    let clients = [host(client, "c", 2), host(&more[2], "c2", 4), host(&more[3], "c3", 6)];
    for Host { namespace, port, number } in servers[1..].iter().chain(&clients[1..]) {
        let address = format!("10.97.0.{number}/24");
        let there = End { host: namespace, name: "eth0", address: Some(&address) };
        cable([there, End { host: between, name: port, address: None }]);
        OpenVSwitch::disable_offloads(namespace, "eth0");
    }
    for host in servers.iter().chain(&clients) {
        let on = format!("-n {}", host.namespace);
        ip(&format!("{on} link set eth0 address {}", host.hardware_address()));
        ip(&format!("{on} address add {}/64 dev eth0 nodad", host.ipv6()));
    }
    world.put_in_vlan([&servers[2].namespace, &clients[2].namespace]);
    [servers, clients]
}

/// Frames of this port's connections that both ends sent, and those that an end received but the other did not send.
fn compared([server, client]: [&Wire; 2], port: u16) -> [usize; 2] {
    let frames = |wire: &Wire, by_server: bool| {
        let is_its = |frame: &&Vec<u8>| {
            tuple(frame).is_some_and(|ends| port == if by_server { ends.source_port } else { ends.destination_port })
        };
        wire.seen.iter().filter(is_its).cloned().collect::<Vec<Vec<u8>>>()
    };
    let mut both = [0, 0];
    for (by_server, [from, to]) in [(true, [server, client]), (false, [client, server])] {
        let [sent, received] = [from, to].map(|wire| frames(wire, by_server));
        let least = if by_server { SHORT / 1460 } else { 1 };
        assert!(received.len() >= least, "port {port}, by the server: {by_server}: {} frames", received.len());
        both[0] += sent.len();
        let sent: HashSet<Vec<u8>> = sent.into_iter().collect();
        both[1] += received.iter().filter(|frame| !sent.contains(*frame)).count();
    }
    both
}

/// Broadcasts of the client reach the server once: the detour is no second path.
fn assert_broadcasts_come_once(world: &World) {
    let server = world.on(0, || UdpSocket::bind("0.0.0.0:7003").expect("the port is free"));
    let client = world.on(2, || UdpSocket::bind("0.0.0.0:0").expect("a port is free"));
    client.set_broadcast(true).expect("a UDP socket may");
    server.set_read_timeout(Some(PATIENCE)).expect("it is not 0");
    client.send_to(b"hello", "10.97.0.255:7003").expect("there is a network");
    let mut buffer = [0; 16];
    assert_eq!(server.recv(&mut buffer).expect("it comes"), 5);
    server.set_read_timeout(Some(Duration::from_millis(200))).expect("it is not 0");
    assert!(server.recv(&mut buffer).is_err(), "it comes twice");
}

/// Runs `act` while the server sends.
fn send_while(server: &mut TcpStream, client: &mut TcpStream, act: impl FnOnce()) {
    let seen = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| send(server, LONG, Some(LONG)));
        scope.spawn(|| check(client, LONG, &seen));
        assert!(eventually(|| seen.load(Ordering::Relaxed) > (LONG / 4) as u64), "it flows");
        act();
        assert!(seen.load(Ordering::Relaxed) < LONG as u64, "it happened while they sent");
    });
}

#[test]
fn flows_that_an_open_vswitch_steers_are_enforced_and_outlive_the_enforcer() {
    let Some(world) = World::new() else { return };
    let Some(switch) = Switch::between(&world, &["s", "c"]) else { return };
    switch.steer();
    assert_broadcasts_come_once(&world);
    let enforcer = world.enforce_between(["es", "ec"], &["--rule", "bbr"]);
    let (mut client, mut server) = world.connection_to(STEERED);
    exchange(&mut client, &mut server, LONG);
    let counted = |name: &str| world.status()["counters"][name].as_u64().expect("it is counted");
    assert_eq!(counted("flows_opened"), 1, "{}", world.status());
    // the switch loses packets, and retransmissions that fill gaps are counted separately
    let taken = counted("data_taken");
    assert!(taken > (LONG / 1460 / 2) as u64, "{}", world.status());
    let (mut direct_client, mut direct_server) = world.connection_to(DIRECT);
    exchange(&mut direct_client, &mut direct_server, SHORT);
    let seen_of_direct = counted("passed_unknown") + counted("passed_by_rule") + counted("flows_opened") - 1;
    assert!(seen_of_direct == 0 && counted("data_taken") == taken, "{}", world.status());

    send_while(&mut server, &mut client, || enforcer.kill());
    let (mut new_client, mut new_server) = world.connection_to(STEERED);
    exchange(&mut new_client, &mut new_server, LONG);

    let _enforcer = world.enforce_between(["es", "ec"], &["--rule", "bbr"]);
    exchange(&mut client, &mut server, SHORT);
    assert_eq!(counted("flows_opened"), 0, "this one began before: {}", world.status());
    drop((client, server));
    let (mut client, mut server) = world.connection_to(STEERED);
    send_while(&mut server, &mut client, || switch.change_flows("del-flows", "tcp"));
    assert_eq!(counted("flows_opened"), 1, "{}", world.status());
    // on the detour again, farther than the enforcer has seen it
    switch.steer();
    exchange(&mut client, &mut server, SHORT);
    assert_eq!(counted("flows_astray"), 1, "{}", world.status());
    switch.change_flows("del-flows", "tcp");
    for port in ["to-es", "to-ec"] {
        switch.change_flows("del-flows", &format!("in_port={port}"));
    }
    assert_broadcasts_come_once(&world);
}

/// What each server's flows run.
const ALGORITHMS: [&str; 3] = ["bbr", "newreno", "cubic"];

/// A rule for each address of each server, and one for the exempt port.
fn rules(servers: &[Host; 3]) -> Vec<String> {
    let of = |(server, algorithm): (&Host, &str)| {
        [(server.ipv4(), 32), (server.ipv6(), 128)]
            .map(|(address, bits)| format!("{algorithm} servers={address}/{bits}"))
    };
    let rules = servers.iter().zip(ALGORITHMS).flat_map(of);
    [format!("none port={EXEMPT}")].into_iter().chain(rules).flat_map(|rule| ["--rule".to_string(), rule]).collect()
}

fn connected(server: &Host, client: &Host, address: IpAddr, port: u16) -> (TcpStream, TcpStream) {
    connect([&server.namespace, &client.namespace], (address, port).into())
}

/// Connections that take the detour, to both addresses of each server; each runs its server's algorithm.
fn steered(world: &World, servers: &[Host; 3], clients: &[Host; 3]) -> Vec<(TcpStream, TcpStream)> {
    let mut connections = Vec::new();
    let mut expected = BTreeMap::<&str, u64>::new();
    for (at, (server, algorithm)) in servers.iter().zip(ALGORITHMS).enumerate() {
        // the VLAN's server has the VLAN's client
        for client in if at == 2 { &clients[2..] } else { &clients[..2] } {
            for address in [server.ipv4(), server.ipv6()] {
                connections.push(connected(server, client, address, STEERED));
                *expected.entry(algorithm).or_default() += 1;
                let is_expected = || world.status()["flows_by_algorithm"] == json!(expected);
                assert!(eventually(is_expected), "{address} by {algorithm}: {}", world.status());
            }
        }
    }
    connections
}

#[test]
fn flows_of_several_servers_that_an_open_vswitch_steers_follow_their_rules_and_others_pass_unchanged() {
    let Some(world) = World::new() else { return };
    let more = Namespaces::new(["server-2", "server-3", "client-2", "client-3"]);
    let [servers, clients] = hosts(&world, &more);
    let ports: Vec<&str> = servers.iter().chain(&clients).map(|host| host.port).collect();
    let Some(switch) = Switch::between(&world, &ports) else { return };
    switch.steer_all(&servers, &clients);
    for client in &clients {
        world.lose_at(&world.hosts()[1], client.port, "egress");
    }
    let rules = rules(&servers);
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let _enforcer = world.enforce_between(["es", "ec"], &rules);
    let wire = |host: &Host| Wire::of(&host.namespace, SockProtocol::EthAll);
    let [mut server_wires, mut client_wires] = [&servers, &clients].map(|hosts| hosts.each_ref().map(wire));
    let mut connections = steered(&world, &servers, &clients);
    let enforced = connections.len();
    for (at, (server, client)) in servers.iter().zip(&clients).enumerate() {
        let [direct, exempt] = if at == 1 { [server.ipv6(), server.ipv4()] } else { [server.ipv4(), server.ipv6()] };
        connections.push(connected(server, client, direct, DIRECT));
        connections.push(connected(server, client, exempt, EXEMPT));
    }
    thread::scope(|scope| {
        for (client, server) in &mut connections {
            scope.spawn(|| send(server, SHORT, None));
            scope.spawn(|| check(client, SHORT, &AtomicU64::new(0)));
        }
    });

    // the last ACKs and probes
    thread::sleep(Duration::from_millis(500));
    let status = world.status();
    let counter = |name: &str| status["counters"][name].as_u64().expect("it is counted");
    let packets = (enforced * SHORT / 1460) as u64;
    println!("{enforced} flows, {packets} packets or more: {status}");
    assert_eq!((counter("flows_opened"), counter("passed_malformed")), (enforced as u64, 0), "{status}");
    assert!(counter("data_taken") > packets / 2 && counter("retransmitted") > packets / 200, "{status}");
    let mut exempt = 0;
    for (server, client) in server_wires.iter_mut().zip(&mut client_wires) {
        server.read();
        client.read();
        let [sent, changed] = compared([server, client], DIRECT);
        let [exempt_sent, exempt_changed] = compared([server, client], EXEMPT);
        println!("{sent} frames past the enforcer, {exempt_sent} through it");
        assert_eq!([changed, exempt_changed], [0, 0], "they arrive as they were sent");
        exempt += exempt_sent as u64;
    }
    let [_, changed] = compared([&server_wires[2], &client_wires[2]], STEERED);
    assert!(changed > 0, "the enforcer writes windows");
    let passed = counter("passed_by_rule") + counter("passed_unknown");
    assert!(passed > exempt / 2 && passed <= exempt, "only the exempt ones' come, {passed} of {exempt}: {status}");
}
