//! A server and a client that are network namespaces, a third one between them with a bridge, and enforcers that run there.

use crate::lossy;
use serde_json::Value;
use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use tempfile::TempDir;
use testkit::{End, Machine, Namespaces, PATIENCE, Running, cable, command, counters, eventually, inside, ip, or_skip};

const SERVER: &str = "10.97.0.1";
const BPFFS: &str = "/sys/fs/bpf";

/// The machine for this test, and namespaces of these names; or a printed reason why the test is skipped.
pub fn machine_with<const N: usize>(names: [&str; N]) -> Option<(Machine, Namespaces<N>)> {
    or_skip(kernel::Kernel::probe())?;
    let machine = Machine::share();
    drop(kernel::Pins::open().unwrap_or_else(|error| panic!("{error}")));
    Some((machine, Namespaces::new(names)))
}

/// The test's network; removed on drop, also by a failing test.
pub struct World {
    place: TempDir,
    /// Server, in between, client.
    hosts: Namespaces<3>,
    _machine: Machine,
}

impl World {
    /// Or a printed reason why the test is skipped.
    pub fn new() -> Option<World> {
        let (machine, hosts) = machine_with(["server", "between", "client"])?;
        let world = World { place: tempfile::tempdir().unwrap(), hosts, _machine: machine };
        let [server, between, client] = &*world.hosts;
        ip(&format!("-n {between} link add br0 type bridge"));
        ip(&format!("-n {between} link set br0 up"));
        for host in [server, client] {
            ip(&format!("-n {host} link set lo up"));
        }
        world.link(0, "s", 1);
        world.link(2, "c", 2);
        Some(world)
    }

    /// Adds a host's link to the bridge.
    fn link(&self, host: usize, port: &str, last: u8) {
        let (host, between) = (&self.hosts[host], &self.hosts[1]);
        let address = format!("10.97.0.{last}/24");
        let there = End { host, name: "eth0", address: Some(&address) };
        cable([there, End { host: between, name: port, address: None }]);
        ip(&format!("-n {between} link set {port} master br0"));
        // as if an administrator had made it: agents leave the kernel's own routes alone
        ip(&format!("-n {host} route delete 10.97.0.0/24 dev eth0"));
        ip(&format!("-n {host} route add 10.97.0.0/24 dev eth0 proto static scope link src 10.97.0.{last}"));
    }

    /// Deletes the client's link and adds one of the same name.
    pub fn renew_link_of_client(&self) {
        ip(&format!("-n {} link delete c", self.hosts[1]));
        self.link(2, "c", 2);
    }

    /// Sets the MTU of every link on the path.
    pub fn set_mtu(&self, bytes: u32) {
        for (host, links) in [(0, &["eth0"][..]), (1, &["s", "c", "br0"]), (2, &["eth0"])] {
            for link in links {
                self.run(host, &format!("ip link set {link} mtu {bytes}"));
            }
        }
    }

    /// The namespaces: server, in between, client.
    pub fn hosts(&self) -> &[String; 3] {
        &self.hosts
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn pins() -> PathBuf {
        Path::new(BPFFS).join(format!("opentcp-test-enforce-{}", process::id()))
    }

    /// Starts an enforcer with these rules, and waits until it enforces.
    pub fn enforce(&self, rules: &[&str]) -> Running {
        self.enforce_between(["s", "c"], rules)
    }

    /// The same, between two TAPs that are the server's and the client's network, 10.99.0.0/24.
    pub fn enforce_between_taps(&self, rules: &[&str]) -> Running {
        let [server, between, client] = &*self.hosts;
        for name in ["ts", "tc"] {
            self.add_tap_in_between(name);
        }
        let running = self.enforce_between(["ts", "tc"], rules);
        for (host, name, last) in [(server, "ts", 1), (client, "tc", 2)] {
            ip(&format!("-n {between} link set {name} netns {host}"));
            ip(&format!("-n {host} address add 10.99.0.{last}/24 dev {name}"));
            ip(&format!("-n {host} link set {name} up"));
        }
        running
    }

    /// A TAP whose near end no program has open.
    pub fn add_tap_in_between(&self, name: &str) {
        ip(&format!("-n {} tuntap add {name} mode tap", self.hosts[1]));
    }

    /// Opens the near end of a TAP in between.
    pub fn hold_tap(&self, name: &str) -> packet_io::Tap {
        inside(&self.hosts[1], || packet_io::Tap::open(name).unwrap())
    }

    /// The same, between two other interfaces.
    pub fn enforce_between(&self, [servers, clients]: [&str; 2], rules: &[&str]) -> Running {
        let log = self.path("log");
        let pins = World::pins().display().to_string();
        let mut command =
            self.command(&["enforce", "--between", servers, clients, "--socket", "enforce.sock", "--pins", &pins]);
        command.args(rules).stdout(Stdio::null());
        Self::at_work(Running::start(&self.hosts[1], &mut command, log))
    }

    /// The same, as a user begins: by `ip netns exec`, where no BPF file system is.
    pub fn enforce_by_ip_netns_exec(&self, rules: &[&str]) -> Running {
        let log = self.path("log");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.hosts[1], env!("CARGO_BIN_EXE_opentcp"), "enforce"]);
        command.args(["--between", "s", "c", "--socket", "enforce.sock"]).args(rules);
        command.stdin(Stdio::null()).stdout(Stdio::null()).current_dir(self.place.path());
        Self::at_work(Running::start(&self.hosts[1], &mut command, log))
    }

    /// Waits until an enforcer says that it enforces.
    pub fn at_work(mut running: Running) -> Running {
        let has_said = |running: &Running| running.said().contains("enforcing between");
        eventually(|| has_said(&running) || running.has_ended());
        assert!(has_said(&running), "{}", running.said());
        running
    }

    /// Starts a program on the server (0), in between (1) or on the client (2).
    pub fn start(&self, host: usize, command: &mut Command) -> Child {
        inside(&self.hosts[host], || command.spawn().unwrap())
    }

    /// Runs `work` on the server (0), in between (1) or on the client (2): sockets that it opens belong there.
    pub fn on<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        inside(&self.hosts[host], work)
    }

    /// Runs a command there to completion: its stdout.
    pub fn run(&self, host: usize, line: &str) -> String {
        ip(&format!("netns exec {} {line}", self.hosts[host]))
    }

    /// Starts an agent on the client, which changes only routes there.
    pub fn agent_at_client(&self, more: &[&str]) -> Running {
        let log = self.path("agent-log");
        let place = ["--key", "oracle.key.pub", "--socket", "oracle.sock", "--state", "agent", "--cgroup", "/"];
        let mut command = self.command(&["agent", "--means", "routes"]);
        command.args(place).args(more).stdout(Stdio::null());
        Running::start(&self.hosts[2], &mut command, log)
    }

    /// Starts the program in between; `name` is its log's.
    pub fn start_in_between(&self, name: &str, arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        command.stdout(Stdio::null());
        self.run_in_between(name, &mut command)
    }

    /// Starts another program in between.
    pub fn run_in_between(&self, name: &str, command: &mut Command) -> Running {
        command.stdin(Stdio::null()).current_dir(self.place.path());
        Running::start(&self.hosts[1], command, self.path(name))
    }

    /// The client kernel's view of a connection.
    pub fn shown_at_client(&self, client: &TcpStream) -> String {
        let port = client.local_addr().unwrap().port();
        ip(&format!("netns exec {} ss -Htin sport = :{port}", self.hosts[2]))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opentcp"));
        command.args(arguments).stdin(Stdio::null()).current_dir(self.place.path());
        command
    }

    /// Runs the program in between to completion: exit code, stdout, stderr.
    pub fn opentcp(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = inside(&self.hosts[1], || self.command(arguments).output().unwrap());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// The enforcer's status.
    pub fn status(&self) -> Value {
        let (code, out, error) = self.opentcp(&["enforce", "--status", "--json", "--socket", "enforce.sock"]);
        assert_eq!(code, Some(0), "{error}");
        serde_json::from_str(&out).unwrap()
    }

    /// Whether an XDP program is attached to the bridge's port.
    pub fn has_xdp(&self) -> bool {
        ip(&format!("-n {} link show s", self.hosts[1])).contains("xdp")
    }

    /// A connection: the client's end, the server's.
    pub fn connection(&self) -> (TcpStream, TcpStream) {
        self.connection_to(0)
    }

    /// To this port of the server.
    pub fn connection_to(&self, port: u16) -> (TcpStream, TcpStream) {
        self.connection_to_address(format!("{SERVER}:{port}").parse().unwrap())
    }

    fn connection_to_address(&self, address: SocketAddr) -> (TcpStream, TcpStream) {
        connect([&self.hosts[0], &self.hosts[2]], address)
    }

    /// A connection to an address of the server.
    pub fn connection_at(&self, address: IpAddr) -> (TcpStream, TcpStream) {
        self.connection_to_address((address, 0).into())
    }

    /// IPv6 addresses for both, fd97::1 and fd97::2.
    pub fn add_ipv6_addresses(&self) {
        for (host, number) in [(&self.hosts[0], 1), (&self.hosts[2], 2)] {
            ip(&format!("-n {host} address add fd97::{number}/64 dev eth0 nodad"));
        }
    }

    /// Sends a datagram from the client to the server: what is not TCP passes, too.
    pub fn datagram(&self) {
        let server = inside(&self.hosts[0], || UdpSocket::bind((SERVER, 0)).unwrap());
        let client = inside(&self.hosts[2], || UdpSocket::bind(("0.0.0.0", 0)).unwrap());
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        client.send_to(b"hello", server.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 16];
        let n = server.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..n], b"hello");
    }

    /// Drops one in a hundred of the client's incoming packets from here on.
    pub fn lose_at_client(&self) {
        self.lose_at(&self.hosts[2], "eth0", "ingress");
    }

    /// The same at an interface of a namespace, of incoming packets (`ingress`) or outgoing ones (`egress`).
    pub fn lose_at(&self, namespace: &str, interface: &str, way: &str) {
        let object = self.path("path.o");
        lossy::compile(&object);
        command("tc", &format!("-n {namespace} qdisc add dev {interface} clsact"));
        let (filter, object) = (format!("-n {namespace} filter add dev {interface} {way}"), object.display());
        command("tc", &format!("{filter} bpf direct-action object-file {object} section tc"));
    }

    /// Moves both hosts into a VLAN that their bridge does not know.
    pub fn put_hosts_in_vlan(&self) {
        self.put_in_vlan([&self.hosts[0], &self.hosts[2]]);
    }

    /// The same with two other hosts.
    pub fn put_in_vlan(&self, hosts: [&str; 2]) {
        let object = self.path("vlan.o");
        lossy::compile_source("tests/enforce/vlan.bpf.c", &object);
        let object = object.display();
        for host in hosts {
            command("tc", &format!("-n {host} qdisc add dev eth0 clsact"));
            for (way, program) in [("egress", "push"), ("ingress", "pop")] {
                let filter = format!("-n {host} filter add dev eth0 {way} bpf direct-action object-file {object}");
                command("tc", &format!("{filter} section {program}"));
            }
        }
    }

    /// Lets the client receive only packets of the VLAN.
    pub fn let_vlan_in_at_client(&self) {
        let (client, object) = (&self.hosts[2], self.path("vlan.o"));
        lossy::compile_source("tests/enforce/vlan.bpf.c", &object);
        command("tc", &format!("-n {client} qdisc add dev eth0 clsact"));
        let filter = format!("-n {client} filter add dev eth0 ingress bpf direct-action object-file");
        command("tc", &format!("{filter} {} section pop", object.display()));
    }

    /// Rewrites the window that the server's TCP sees to the widest there is.
    pub fn blind_server_to_its_window(&self) {
        let object = self.path("blind.o");
        lossy::compile_source("tests/enforce/blind.bpf.c", &object);
        let (server, object) = (&self.hosts[0], object.display());
        command("tc", &format!("-n {server} qdisc add dev eth0 clsact"));
        command(
            "tc",
            &format!("-n {server} filter add dev eth0 ingress bpf direct-action object-file {object} section tc"),
        );
    }

    /// Segments that the server has retransmitted on this connection.
    pub fn retransmits(&self, server: &TcpStream) -> u64 {
        let word = self.shown(server, "retrans:");
        word.and_then(|word| word.split('/').nth(1)?.parse().ok()).unwrap_or(0)
    }

    /// Those of all of the server's connections that are no tail loss probes: a probe follows every pause of a slow machine.
    pub fn retransmits_for_losses(&self) -> u64 {
        let read = || std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
        let counters = counters(&inside(&self.hosts[0], read));
        ["TCPFastRetrans", "TCPSlowStartRetrans", "TCPTimeouts"].iter().map(|name| counters[*name]).sum()
    }

    /// Of these, the ones that the client had already, as its DSACKs say.
    pub fn duplicates(&self, server: &TcpStream) -> u64 {
        self.shown(server, "dsack_dups:").and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    /// A value that the server's ss(8) shows of this connection.
    fn shown(&self, server: &TcpStream, name: &str) -> Option<String> {
        let port = server.local_addr().unwrap().port();
        let shown = ip(&format!("netns exec {} ss -Htin sport = :{port}", self.hosts[0]));
        shown.split_whitespace().find_map(|word| word.strip_prefix(name)).map(str::to_string)
    }
}

/// A connection between two namespaces, to an address of the first: the client's end, the server's.
pub fn connect([server, client]: [&str; 2], address: SocketAddr) -> (TcpStream, TcpStream) {
    let listener = inside(server, || TcpListener::bind(address).unwrap());
    let address = listener.local_addr().unwrap();
    let client = inside(client, || TcpStream::connect_timeout(&address, PATIENCE).unwrap());
    let (server, _) = listener.accept().unwrap();
    for end in [&client, &server] {
        end.set_read_timeout(Some(PATIENCE)).unwrap();
        end.set_write_timeout(Some(PATIENCE)).unwrap();
    }
    (client, server)
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(World::pins());
    }
}
