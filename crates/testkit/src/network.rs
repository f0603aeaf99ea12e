//! Hosts that are network namespaces, and cables between them, by `ip` of Debian's iproute2.

use nix::sched::{CloneFlags, setns};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::ops::Deref;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{self, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// Names of network namespaces, which are deleted when this is dropped, also by a failing test.
pub struct Namespaces<const N: usize>([String; N]);

impl<const N: usize> Namespaces<N> {
    /// Creates them; each name gets a unique suffix.
    pub fn new(names: [&str; N]) -> Namespaces<N> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let own = format!("{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let namespaces = Namespaces(names.map(|name| format!("opentcp-{name}-{own}")));
        for name in &namespaces.0 {
            ip(&format!("netns add {name}"));
        }
        namespaces
    }
}

impl<const N: usize> Deref for Namespaces<N> {
    type Target = [String; N];

    fn deref(&self) -> &[String; N] {
        &self.0
    }
}

impl<const N: usize> Drop for Namespaces<N> {
    fn drop(&mut self) {
        for name in &self.0 {
            // not ip(): a panic while panicking would abort, and leave the others undeleted
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

/// One end of a cable.
#[derive(Clone, Copy)]
pub struct End<'a> {
    /// Its namespace.
    pub host: &'a str,
    /// Its interface's name.
    pub name: &'a str,
    /// Its address with prefix length, if any.
    pub address: Option<&'a str>,
}

/// A cable: a pair of virtual interfaces, both up.
pub fn cable([a, b]: [End<'_>; 2]) {
    ip(&format!("-n {} link add {} type veth peer name {} netns {}", a.host, a.name, b.name, b.host));
    for End { host, name, address } in [a, b] {
        // no automatic IPv6 address, which would appear later
        ip(&format!("-n {host} link set {name} addrgenmode none"));
        if let Some(address) = address {
            ip(&format!("-n {host} address add {address} dev {name}"));
        }
        ip(&format!("-n {host} link set {name} up"));
    }
}

/// Runs `work` on a thread of its own in a namespace: sockets that it opens belong there.
pub fn inside<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> T {
    let enter = || {
        let file = File::open(Path::new("/run/netns").join(namespace)).expect("the namespace exists");
        setns(file, CloneFlags::CLONE_NEWNET).expect("root may enter a namespace");
        work()
    };
    thread::scope(|scope| scope.spawn(enter).join().unwrap_or_else(|panic| resume_unwind(panic)))
}

/// Runs a command in a namespace, with a text on its standard input.
pub fn run_inside(namespace: &str, mut command: Command, input: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    inside(namespace, || {
        let mut child = command.spawn().expect("the program is there");
        // it may end before it has read all
        let _ = child.stdin.take().expect("it is a pipe").write_all(input.as_bytes());
        child.wait_with_output().expect("it ends")
    })
}

/// A few round trips with data between both ends of a connection, so that both measure them.
pub fn talk((one, other): &(TcpStream, TcpStream)) {
    let mut bytes = [0; 1000];
    for _ in 0..20 {
        for (mut from, mut to) in [(one, other), (other, one)] {
            from.write_all(&bytes).expect("it is open");
            to.read_exact(&mut bytes).expect("it is open");
        }
    }
}

/// Writes a sysctl (`net/ipv4/ip_forward`) of the namespace that the thread is in.
pub fn set_sysctl(name: &str, value: &str) {
    fs::write(format!("/proc/sys/{name}"), value).unwrap_or_else(|error| panic!("{name} = {value}: {error}"));
}

/// Runs `ip ARGUMENTS`; returns its output.
pub fn ip(arguments: &str) -> String {
    command("ip", arguments)
}

/// Linux's counters by name, from the text of /proc/net/snmp or netstat: pairs of lines, names and values. A value that is no count is left out.
pub fn counters(text: &str) -> BTreeMap<String, u64> {
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let pairs = lines.chunks_exact(2).flat_map(|pair| pair[0].iter().zip(&pair[1]));
    pairs.filter_map(|(name, value)| Some((name.to_string(), value.parse().ok()?))).collect()
}

/// Runs a command, which must succeed; returns its output.
pub fn command(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split_whitespace()).output();
    let output = output.unwrap_or_else(|error| panic!("{program} cannot be run: {error}"));
    assert!(output.status.success(), "{program} {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
