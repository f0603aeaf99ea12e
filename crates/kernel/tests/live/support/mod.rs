//! Shared by the tests: the kernel, a path of network namespaces, a transfer along it.

use kernel::{Change, Kernel, Pins};
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo, MapInfo, MapInfoIter, ProgInfoIter};
use libbpf_rs::{MapType, ProgramType};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::sockopt::TcpCongestion;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, getsockopt, setsockopt, socket};
use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use testkit::{
    Algorithms, End, Machine, Namespaces, PATIENCE, cable, command, eventually, inside, ip, or_skip, set_sysctl,
};

const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 1);

/// The kernel, for one test at a time: its algorithms' names are unique.
pub struct Exclusive {
    kernel: Kernel,
    _algorithms: Option<Algorithms>,
    _machine: Machine,
}

impl Deref for Exclusive {
    type Target = Kernel;
    fn deref(&self) -> &Kernel {
        &self.kernel
    }
}

/// The kernel, or a printed reason why the test is skipped. Daemons' tests may run beside this one.
pub fn kernel() -> Option<Exclusive> {
    let (kernel, machine) = (or_skip(Kernel::probe())?, Machine::share());
    Some(Exclusive { kernel, _algorithms: Some(Algorithms::take()), _machine: machine })
}

/// The same without any other test, for one that measures times or rates, or compares the machine before and after.
pub fn quiet_kernel() -> Option<Exclusive> {
    Some(Exclusive { kernel: or_skip(Kernel::probe())?, _algorithms: None, _machine: Machine::take() })
}

/// The kernel and the folder of its pinned algorithms, emptied when dropped, also by a failing test.
pub struct Pinning {
    pub kernel: Exclusive,
    pub pins: Pins,
}

/// As [`quiet_kernel()`], for a test that pins: agents wait for the folder of pins, which it has locked. The test must not remove what a user
/// has loaded on this machine.
pub fn pinning() -> Option<Pinning> {
    let kernel = quiet_kernel()?;
    assert_eq!(kernel::pinned(), [""; 0], "first unload the algorithms of this machine: opentcp cc unload all");
    let pins = Pins::open().unwrap_or_else(|error| panic!("{error}"));
    Some(Pinning { kernel, pins })
}

impl Pinning {
    /// Loads a built-in algorithm for good.
    pub fn load(&self, name: &str) -> Change {
        self.load_object(kernel::object(name).expect("a built-in algorithm"))
    }

    /// Loads a compiled one.
    pub fn load_object(&self, object: &[u8]) -> Change {
        let prepared = self.kernel.prepare(object, "the algorithm").unwrap_or_else(|error| panic!("{error}"));
        self.pins.load(prepared).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn unload(&self, name: &str) {
        self.pins.unload(name).unwrap_or_else(|error| panic!("{error}"));
    }
}

impl Drop for Pinning {
    fn drop(&mut self) {
        for name in kernel::pinned() {
            // A failing test has reported its error already.
            let _ = self.pins.unload(&name);
        }
    }
}

/// The kernel's algorithms, as text: names that can be chosen; registrations, programs, tables and
/// constants, each with its number.
pub fn holdings() -> BTreeSet<String> {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("Linux has it");
    let links = LinkInfoIter::default().filter(|link| matches!(link.info, LinkTypeInfo::StructOps(_)));
    let programs = ProgInfoIter::default().filter(|program| program.ty == ProgramType::StructOps);
    let kept = |map: &MapInfo| map.ty == MapType::StructOps || map.name.as_bytes().ends_with(b".rodata");
    let maps = MapInfoIter::default().filter(kept);
    let names = available.split_whitespace().map(str::to_string);
    let links = links.map(|link| format!("link {}", link.id));
    let programs = programs.map(|program| format!("program {} {}", program.id, program.name.display()));
    names.chain(links).chain(programs).chain(maps.map(|map| format!("map {} {}", map.id, map.name.display()))).collect()
}

/// What was added, once the kernel has had the time to free unused objects. An earlier
/// test's objects may have gone meanwhile, so there may be less.
pub fn left_behind(before: &BTreeSet<String>) -> Vec<String> {
    let left = || -> Vec<String> { holdings().difference(before).cloned().collect() };
    eventually(|| left().is_empty());
    left()
}

/// Compiles C for BPF, as the build does with `cc/`; returns the object file.
pub fn compile(name: &str, source: &str) -> Vec<u8> {
    fs::read(compile_to_file(name, source)).expect("the compiler has written the object")
}

/// The same, as a file for tools.
pub fn compile_to_file(name: &str, source: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (input, output) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.o")));
    fs::write(&input, source).expect("the test's folder can be written");
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cc/include");
    // those of the kernel's interface, which clang finds by itself for no target but its own
    let headers = format!("-I {include} -I /usr/include -I /usr/include/{}-linux-gnu", env::consts::ARCH);
    let flags = format!("-target bpf -mcpu=v3 -O2 -g {headers} -c {} -o {}", input.display(), output.display());
    command(env!("OPENTCP_BPF_CLANG"), &flags);
    output
}

/// Bytes as a file, for tools.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).expect("the test's folder can be written");
    path
}

/// Two hosts and a router between them, each a network namespace; removed when dropped, also by a failing test.
///
/// ```text
/// sender 10.77.0.1 --- 10.77.0.2 router 10.77.1.2 --- 10.77.1.1 receiver
///                                       the bottleneck
/// ```
///
/// The bottleneck is not the sender's own interface: a host does not count drops of its own queue as losses.
pub struct Path {
    /// Sender, router, receiver.
    hosts: Namespaces<3>,
}

impl Path {
    /// A bottleneck of `rate_mbit` with a drop-tail queue of `queue_bytes`.
    pub fn new(rate_mbit: u32, queue_bytes: u32) -> Path {
        let path = Path { hosts: Namespaces::new(["sender", "router", "receiver"]) };
        let [sender, router, receiver] = &*path.hosts;
        for (host, near, subnet) in [(sender, "veth0", 0), (receiver, "veth1", 1)] {
            let [there, here] = [1, 2].map(|last| format!("10.77.{subnet}.{last}/24"));
            cable([
                End { host, name: "host0", address: Some(&there) },
                End { host: router, name: near, address: Some(&here) },
            ]);
            ip(&format!("-n {host} route add default via 10.77.{subnet}.2"));
            // No connection may start from the metrics that an earlier one saved.
            inside(host, || set_sysctl("net/ipv4/tcp_no_metrics_save", "1"));
        }
        inside(router, || set_sysctl("net/ipv4/ip_forward", "1"));
        path.tc_at_bottleneck(&format!(
            "qdisc add dev veth1 root tbf rate {rate_mbit}mbit burst 32kb limit {queue_bytes}"
        ));
        path
    }

    /// Runs `tc ARGUMENTS` in the router's namespace, whose interface `veth1` is the bottleneck.
    pub fn tc_at_bottleneck(&self, arguments: &str) -> String {
        command("tc", &format!("-n {} {arguments}", self.hosts[1]))
    }

    /// Runs `ip ARGUMENTS` in both hosts' namespaces, whose interface is `host0`.
    pub fn ip_at_hosts(&self, arguments: &str) {
        for host in [&self.hosts[0], &self.hosts[2]] {
            ip(&format!("-n {host} {arguments}"));
        }
    }

    /// Runs `work` in the sender's namespace.
    pub fn at_sender<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        inside(&self.hosts[0], work)
    }

    /// Output of `ss` for the sender's connections.
    pub fn sender_sockets(&self) -> String {
        command("ss", &format!("-N {} -tinoH", self.hosts[0]))
    }

    /// A connection whose ends use the algorithms given; the sender's is chosen before connecting.
    pub fn connect(&self, sender: &str, receiver: &str) -> Connection {
        let receiver = OsString::from(receiver);
        let listener = inside(&self.hosts[2], || {
            let listener = TcpListener::bind((RECEIVER, 0)).expect("the receiver's address is up");
            setsockopt(&listener, TcpCongestion, &receiver).expect("the receiver's algorithm exists");
            listener
        });
        let port = listener.local_addr().expect("it is bound").port();
        let source = inside(&self.hosts[0], || {
            let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
            setsockopt(&fd, TcpCongestion, &OsString::from(sender)).expect("the sender's algorithm exists");
            TcpStream::from(fd)
        });
        // A socket stays in the namespace that it was made in, so the rest needs no entering.
        let address = SockaddrIn::from(SocketAddrV4::new(RECEIVER, port));
        connect(source.as_raw_fd(), &address).expect("the receiver listens");
        let (sink, _) = listener.accept().expect("a connection waits");
        source.set_write_timeout(Some(PATIENCE)).expect("a socket takes a timeout");
        sink.set_read_timeout(Some(PATIENCE)).expect("a socket takes a timeout");
        Connection { source, sink }
    }
}

/// Both ends of a connection.
pub struct Connection {
    pub source: TcpStream,
    pub sink: TcpStream,
}

impl Connection {
    /// Sends `bytes` bytes of a known pattern, and checks each at the other end. Returns the time it took.
    pub fn carry(&mut self, bytes: usize) -> Duration {
        let start = Instant::now();
        thread::scope(|scope| {
            let source = &mut self.source;
            let sender = scope.spawn(move || send_pattern(source, bytes));
            receive_pattern(&mut self.sink, bytes).expect("the bytes arrive in time");
            sender.join().expect("the sender does not panic").expect("the bytes leave in time");
        });
        start.elapsed()
    }

    /// Closes both ends; the sender's FIN first.
    pub fn close(mut self) {
        self.source.shutdown(Shutdown::Write).expect("an open connection");
        let rest = self.sink.read(&mut [0; 16]).expect("the end arrives");
        assert_eq!(rest, 0, "only checked bytes were sent");
    }
}

/// The algorithm that a socket uses.
pub fn algorithm(socket: &impl AsFd) -> String {
    let name = getsockopt(socket, TcpCongestion).expect("a TCP socket has an algorithm");
    name.to_string_lossy().trim_end_matches('\0').to_string()
}

/// Changes a socket's algorithm.
pub fn choose(socket: &impl AsFd, name: &str) -> nix::Result<()> {
    setsockopt(socket, TcpCongestion, &OsString::from(name))
}

/// The number after `key` in the output of `ss`.
pub fn number(text: &str, key: &str) -> Option<u64> {
    text.split_whitespace().find_map(|word| word.strip_prefix(key)).and_then(|number| number.parse().ok())
}

/// Raises this process's limit of open files. Root may.
pub fn allow_open_files(wanted: u64) {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("Linux has it");
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted)).expect("root may open more files");
    }
}

/// Names of the maps in the kernel; each algorithm's table of operations is one.
pub fn maps() -> Vec<String> {
    MapInfoIter::default().map(|map| map.name.to_string_lossy().into_owned()).collect()
}

/// Names of the programs in the kernel.
pub fn programs() -> Vec<String> {
    ProgInfoIter::default().map(|program| program.name.to_string_lossy().into_owned()).collect()
}

/// Numbers of the links in the kernel.
pub fn links() -> Vec<u32> {
    LinkInfoIter::default().map(|link| link.id).collect()
}

/// Names of the network namespaces, sorted.
pub fn namespaces() -> Vec<String> {
    let mut names: Vec<String> = ip("netns list").lines().map(str::to_string).collect();
    names.sort();
    names
}

/// Pseudo-random but reproducible: a repeated or lost block does not match.
fn pattern(position: usize) -> u8 {
    ((position as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn send_pattern(stream: &mut TcpStream, bytes: usize) -> io::Result<()> {
    let mut block = vec![0; 1 << 16];
    let mut sent = 0;
    while sent < bytes {
        let length = block.len().min(bytes - sent);
        for (i, byte) in block[..length].iter_mut().enumerate() {
            *byte = pattern(sent + i);
        }
        stream.write_all(&block[..length])?;
        sent += length;
    }
    Ok(())
}

fn receive_pattern(stream: &mut TcpStream, bytes: usize) -> io::Result<()> {
    let mut block = vec![0; 1 << 16];
    let mut received = 0;
    while received < bytes {
        let wanted = block.len().min(bytes - received);
        let length = stream.read(&mut block[..wanted])?;
        if length == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{received} of {bytes} bytes arrived")));
        }
        for (i, &byte) in block[..length].iter().enumerate() {
            assert_eq!(byte, pattern(received + i), "the byte at {}", received + i);
        }
        received += length;
    }
    Ok(())
}
