//! An Open vSwitch that steers the flows of chosen servers through an enforcer, as in docs/enforcer.md.

use crate::world::World;
use crate::{LONG, SHORT, check, exchange, send};
use std::net::{TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use testkit::{PATIENCE, eventually};

/// The port whose flows take the detour; the others do not.
const STEERED: u16 = 7001;
const DIRECT: u16 = 7002;

/// A switch between the hosts: ports `s` and `c`, and the detour's `to-es` and `to-ec`.
struct Switch<'a> {
    world: &'a World,
    daemons: Vec<Child>,
}

impl Switch<'_> {
    /// Or a printed reason why the test is skipped.
    fn between_hosts_of(world: &World) -> Option<Switch<'_>> {
        for (program, package) in [("ovs-vswitchd", "openvswitch-switch"), ("ethtool", "ethtool")] {
            let found = Command::new(program).arg("--version").stdout(Stdio::null()).status();
            if found.is_err() {
                eprintln!("skipped: {program} is not installed (apt-get install {package})");
                return None;
            }
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
            world.run(host, "ethtool -K eth0 tx off");
        }
        let mut switch = Switch { world, daemons: Vec::new() };
        let database = switch.file("conf.db");
        world.run(1, &format!("ovsdb-tool create {database} /usr/share/openvswitch/vswitch.ovsschema"));
        let socket = switch.file("db.sock");
        switch.start(&format!("ovsdb-server {database} --remote=punix:{socket}"));
        assert!(eventually(|| world.path("db.sock").exists()), "the switch's database answers");
        switch.set("--no-wait init");
        switch.start(&format!("ovs-vswitchd unix:{socket}"));
        switch.set("add-br sw -- set bridge sw datapath_type=netdev");
        for port in ["s", "c", "to-es tag=4001", "to-ec tag=4002"] {
            switch.set(&format!("add-port sw {port}"));
        }
        switch.steer();
        Some(switch)
    }

    fn file(&self, name: &str) -> String {
        self.world.path(name).display().to_string()
    }

    fn start(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let place = self.file("");
        for folder in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR"] {
            command.env(folder, &place);
        }
        self.daemons.push(self.world.start(1, &mut command));
    }

    /// Changes the configuration, and waits until it is in force.
    fn set(&self, what: &str) {
        let socket = self.file("db.sock");
        self.world.run(1, &format!("ovs-vsctl --db=unix:{socket} --timeout={} {what}", PATIENCE.as_secs()));
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

    fn change_flows(&self, how: &str, flow: &str) {
        self.world.run(1, &format!("ovs-ofctl {how} unix:{} {flow}", self.file("sw.mgmt")));
    }
}

impl Drop for Switch<'_> {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
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
    let Some(switch) = Switch::between_hosts_of(&world) else { return };
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
