//! Two network namespaces without names and a pair of veth interfaces between them.

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::sockopt::TcpCongestion;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, setsockopt, socket};
use nix::time::{ClockId, clock_gettime};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);

/// A connection without progress for this long is broken.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes written and read at once.
const BLOCK_BYTES: usize = 1 << 17;

/// Result of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    /// Goodput, Mbit/s.
    pub mbit: f64,
    /// CPU time of both ends, ns per 1000 bytes received.
    pub cpu_ns_per_kb: f64,
}

/// Two hosts, as long as this lives: without an open descriptor a namespace vanishes, with its interfaces.
pub(super) struct Cable {
    sender: File,
    receiver: File,
}

impl Cable {
    /// Both ends up, with addresses. The error is a text.
    pub(super) fn new() -> Result<Cable, String> {
        let cable = Cable { sender: namespace()?, receiver: namespace()? };
        let peer = format!("/proc/{}/fd/{}", std::process::id(), cable.receiver.as_raw_fd());
        inside(&cable.sender, || ip(&format!("link add cable type veth peer name cable netns {peer}")))?;
        for (host, address) in [(&cable.sender, SENDER), (&cable.receiver, RECEIVER)] {
            inside(host, || {
                ip(&format!("address add {address}/24 dev cable"))?;
                ip("link set cable up")?;
                // No connection may start from the metrics that an earlier one saved.
                fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1").map_err(|error| error.to_string())
            })?;
        }
        Ok(cable)
    }

    /// One connection whose sender uses `algorithm` sends for the length of `run`.
    pub(super) fn carry(&self, algorithm: &str, run: Duration) -> io::Result<Carried> {
        let listener = inside(&self.receiver, || TcpListener::bind((RECEIVER, 0)))?;
        let address = SockaddrIn::from(SocketAddrV4::new(RECEIVER, listener.local_addr()?.port()));
        let source = inside(&self.sender, || -> io::Result<TcpStream> {
            let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
            setsockopt(&fd, TcpCongestion, &OsString::from(algorithm))?;
            Ok(TcpStream::from(fd))
        })?;
        connect(source.as_raw_fd(), &address)?;
        let (sink, _) = listener.accept()?;
        source.set_write_timeout(Some(PATIENCE))?;
        sink.set_read_timeout(Some(PATIENCE))?;
        let start = Instant::now();
        let sender = thread::spawn(move || send_until(source, start + run));
        let receiver = thread::spawn(move || receive_all(sink));
        let panicked = |_| io::Error::other("a thread panicked");
        let (received, receiving) = receiver.join().map_err(panicked)??;
        let took = start.elapsed();
        let sending = sender.join().map_err(panicked)??;
        let bytes = received as f64;
        Ok(Carried {
            mbit: bytes * 8e-6 / took.as_secs_f64(),
            cpu_ns_per_kb: (sending + receiving).as_nanos() as f64 / (bytes / 1000.0),
        })
    }
}

impl Cable {
    /// A number of connections, one after the other: each sends `rounds` blocks each way, and closes.
    pub(super) fn exchange(&self, connections: usize, rounds: usize) -> io::Result<()> {
        let listener = inside(&self.receiver, || TcpListener::bind((RECEIVER, 0)))?;
        let address = listener.local_addr()?;
        inside(&self.sender, || {
            let mut block = [0; 1000];
            for _ in 0..connections {
                let mut active = TcpStream::connect(address)?;
                let mut passive = listener.accept()?.0;
                for _ in 0..rounds {
                    active.write_all(&block)?;
                    passive.read_exact(&mut block)?;
                    passive.write_all(&block)?;
                    active.read_exact(&mut block)?;
                }
            }
            Ok(())
        })
    }
}

impl Cable {
    /// A number of connections, one after the other: each sends `bytes` one way, and closes.
    pub(super) fn send(&self, connections: usize, bytes: usize) -> io::Result<()> {
        let listener = inside(&self.receiver, || TcpListener::bind((RECEIVER, 0)))?;
        let address = listener.local_addr()?;
        for _ in 0..connections {
            let mut source = inside(&self.sender, || TcpStream::connect(address))?;
            let (sink, _) = listener.accept()?;
            let receiver = thread::spawn(move || receive_all(sink));
            source.write_all(&vec![0; bytes])?;
            drop(source);
            receiver.join().map_err(|_| io::Error::other("a thread panicked"))??;
        }
        Ok(())
    }
}

/// Sends until the deadline; returns the CPU time used.
fn send_until(mut source: TcpStream, end: Instant) -> io::Result<Duration> {
    let block = vec![0; BLOCK_BYTES];
    while Instant::now() < end {
        source.write_all(&block)?;
    }
    drop(source);
    processor_time()
}

/// Bytes until the other side closes, and the CPU time used.
fn receive_all(mut sink: TcpStream) -> io::Result<(u64, Duration)> {
    let mut block = vec![0; BLOCK_BYTES];
    let mut received = 0;
    loop {
        match sink.read(&mut block)? {
            0 => return Ok((received, processor_time()?)),
            bytes => received += bytes as u64,
        }
    }
}

/// CPU time of this thread since it began, kernel time and packet reception included.
fn processor_time() -> io::Result<Duration> {
    Ok(Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?))
}

/// A new network namespace: a thread creates it, and its descriptor keeps it when the thread has ended.
fn namespace() -> Result<File, String> {
    let made = thread::spawn(|| -> io::Result<File> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        File::open("/proc/thread-self/ns/net")
    });
    let made = made.join().map_err(|_| "a thread panicked".to_string())?;
    made.map_err(|error| format!("unshare: {error}"))
}

/// Runs `work` on a thread of its own that has entered the namespace.
fn inside<T: Send>(namespace: &File, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            setns(namespace, CloneFlags::CLONE_NEWNET).expect("the creator of a namespace may enter it");
            work()
        });
        worker.join().expect("the work does not panic")
    })
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
