//! The enforcer's CPU use, by open connections and requests per second: nginx on a host, thousands of connections to it from another, and
//! `opentcp enforce` between the TAPs of both.

use super::nginx::{self, Site};
use super::{BBR, File};
use crate::failure::Failure;
use crate::monitor::{Monitor, Progress};
use crate::stop::Stop;
use ::emu::hosts::{Host, HostSettings};
use nix::sched::{CloneFlags, unshare};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::gettid;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

/// The requested file, 10 kB.
const FILE: File = File { kilobytes: 10, downloads: 1 };
const REQUEST: &[u8] = b"GET /0.01MB HTTP/1.1\r\nHost: server\r\n\r\n";
const PORT: u16 = 8080;
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Client threads and server processes; each has its share of the connections, and at most this many files.
const PARTS: usize = 2;
const FILES: u64 = 20_000;
/// Timeout of an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Allowed lateness of a request, ms.
const LATE_MS: u16 = 1;
/// Interval of polling the stop flag, ms.
const LOOK_MS: u16 = 100;
/// Reads of an answer are at most this long.
const PIECE: usize = 1 << 16;

/// A number of open connections, and request rates on them.
#[derive(Clone, Copy)]
pub struct Step {
    pub connections: usize,
    pub rates: &'static [u32],
}

/// The study's steps, and the time for each rate. 12,000 answers per second are 1 Gbit/s.
pub const STEPS: [Step; 3] = [
    Step { connections: 1000, rates: &[0, 2500] },
    Step { connections: 10_000, rates: &[0, 2500] },
    Step { connections: 20_000, rates: &[0, 1000, 2500, 5000, 12_000] },
];
pub const LASTS: Duration = Duration::from_secs(8);

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    pub connections: usize,
    /// Requests per second, requested and answered.
    pub asked: u32,
    pub answered: f64,
    /// 99th percentile of answer times, ms.
    pub p99_ms: Option<f64>,
    /// CPU use in % of a core, including Linux's work in the enforcer's calls.
    pub cpu: f64,
}

/// Runs the steps; connections are only added.
///
/// # Errors
/// The hosts or the server cannot be created, an answer is missing, or the user stopped it.
pub fn measure(steps: &[Step], lasts: Duration, monitor: Monitor<'_>) -> Result<Vec<Load>, Failure> {
    let failed = |error: io::Error| Failure::Run(format!("load: {error}"));
    let stop = monitor.stop();
    allow_files();
    // the hosts are on this machine, so waking their CPUs would count as the enforcer's work
    let _awake = ::emu::Awake::ask();
    let place = Place(env::temp_dir().join(format!("opentcp-load-{}", process::id())));
    let mut hosts = [host("server", SERVER)?, host("client", CLIENT)?];
    let [Some(servers), Some(clients)] = hosts.each_mut().map(Host::take_tap) else {
        unreachable!("the hosts are new")
    };
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (send_id, id) = channel();
        let (socket, over) = (place.0.join("enforce.sock"), &over);
        let enforcer = scope.spawn(move || {
            let _ = send_id.send(gettid().as_raw());
            let (stopped, mut say) = (|| over.load(Ordering::Relaxed), |line: &str| monitor.note(line));
            enforced::between_taps([servers, clients], BBR, &socket, &stopped, &mut say)
        });
        // also on early return
        let end = End(over);
        let enforcer_id = id.recv().map_err(|_| failed(io::Error::other("the enforcer does not start")))?;
        let folder = &place.0.join("server");
        let site = Site { folder, files: &[FILE], processes: PARTS as u32, ports: PORT..=PORT };
        nginx::serve(&hosts[0], site, stop)?;
        let clients =
            (0..PARTS).map(|_| Client::start(&hosts[1], stop)).collect::<io::Result<Vec<_>>>().map_err(failed)?;
        let progress = Progress::of(monitor, steps.iter().map(|step| step.rates.len()).sum());
        let mut loads = Vec::new();
        for Step { connections, rates } in steps {
            all(&clients, Work::Open { connections: connections / PARTS }).map_err(failed)?;
            for rate in *rates {
                let before = ran(enforcer_id).map_err(failed)?;
                let asked = all(&clients, Work::Ask { rate: rate / PARTS as u32, lasts }).map_err(failed)?;
                let ran = ran(enforcer_id).map_err(failed)?.saturating_sub(before);
                let load = Load::of(*connections, *rate, &asked, ran);
                if stop.is_set() {
                    return Err(Failure::Interrupted);
                }
                progress.advance(Progress::STEPS);
                progress.finished(&load.name(), &format!("{:.1} % of a core", load.cpu));
                loads.push(load);
            }
        }
        drop(end);
        let outcome = enforcer.join().expect("the enforcer does not panic");
        outcome.map_err(|error| Failure::Run(error.to_string()))?;
        Ok(loads)
    })
}

impl Load {
    fn of(connections: usize, rate: u32, asked: &[Asked], ran: Duration) -> Load {
        let mut times: Vec<Duration> = asked.iter().flat_map(|part| part.times.iter().copied()).collect();
        times.sort_unstable();
        let took = asked.iter().map(|part| part.took).max().unwrap_or_default().as_secs_f64();
        Load {
            connections,
            asked: rate,
            answered: times.len() as f64 / took,
            p99_ms: times.get(times.len() * 99 / 100).map(|time| time.as_secs_f64() * 1e3),
            cpu: ran.as_secs_f64() / took * 100.0,
        }
    }

    pub fn name(&self) -> String {
        format!("{} connections, {} requests/s", self.connections, self.asked)
    }
}

fn host(name: &str, address: Ipv4Addr) -> Result<Host, Failure> {
    // the machine's default may be another algorithm
    let congestion_control = Some("cubic".to_string());
    let settings = HostSettings { neighbours: vec![SERVER, CLIENT], congestion_control, ..HostSettings::new(address) };
    Host::new(name, &settings).map_err(|error| Failure::Run(error.to_string()))
}

/// Raises the file limits of this process and its children. If that is refused, opening connections will fail.
fn allow_files() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most.max(FILES), most.max(FILES));
    }
}

/// CPU time of a thread of this process.
fn ran(thread: i32) -> io::Result<Duration> {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"))?;
    let word = text.split_whitespace().next().and_then(|word| word.parse().ok());
    word.map(Duration::from_nanos).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The folder of nginx and of the enforcer's socket.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Stops the enforcer on drop.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A command for a client.
#[derive(Clone, Copy)]
enum Work {
    /// Open connections up to this number.
    Open { connections: usize },
    /// Send requests on the connections in turn.
    Ask { rate: u32, lasts: Duration },
}

/// A client's results.
#[derive(Default)]
struct Asked {
    /// Time of each answer.
    times: Vec<Duration>,
    /// Time until the last answer.
    took: Duration,
}

/// A thread in the client's host, which ends when its command channel closes.
struct Client {
    work: Sender<Work>,
    done: Receiver<io::Result<Asked>>,
}

/// Gives all clients the same command at once.
fn all(clients: &[Client], work: Work) -> io::Result<Vec<Asked>> {
    let ended = || io::Error::other("a client has ended");
    for client in clients {
        client.work.send(work).map_err(|_| ended())?;
    }
    clients.iter().map(|client| client.done.recv().map_err(|_| ended())?).collect()
}

impl Client {
    fn start(host: &Host, stop: &Stop) -> io::Result<Client> {
        let (work, to_do) = channel::<Work>();
        let (send_id, done) = channel();
        let stop = stop.clone();
        host.spawn(move || {
            // unshared, so that it may have as many files as a whole process
            let alone = unshare(CloneFlags::CLONE_FILES).map_err(io::Error::from);
            let mut connections = match alone.and_then(|()| Connections::new(stop)) {
                Ok(connections) => connections,
                Err(error) => return drop(send_id.send(Err(error))),
            };
            for work in to_do {
                let done = match work {
                    Work::Open { connections: n } => connections.open(n),
                    Work::Ask { rate, lasts } => connections.ask(rate, lasts),
                };
                let _ = send_id.send(done);
            }
        })?;
        Ok(Client { work, done })
    }
}

struct Connection {
    stream: TcpStream,
    /// If the answer is pending: the time of the request, and the number of bytes missing.
    asked: Option<Instant>,
    missing: usize,
}

/// A client's state.
struct Connections {
    epoll: Epoll,
    open: Vec<Connection>,
    /// Bytes of an answer, headers included.
    answer: usize,
    stop: Stop,
}

impl Connections {
    fn new(stop: Stop) -> io::Result<Connections> {
        Ok(Connections { epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?, open: Vec::new(), answer: 0, stop })
    }

    fn open(&mut self, connections: usize) -> io::Result<Asked> {
        while self.open.len() < connections && !self.stop.is_set() {
            let stream = TcpStream::connect_timeout(&SocketAddr::from((SERVER, PORT)), PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            if self.answer == 0 {
                self.answer = length_of_answer(&stream)?;
            }
            self.epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, self.open.len() as u64))?;
            self.open.push(Connection { stream, asked: None, missing: 0 });
        }
        Ok(Asked::default())
    }

    fn ask(&mut self, rate: u32, lasts: Duration) -> io::Result<Asked> {
        let (began, total) = (Instant::now(), (f64::from(rate) * lasts.as_secs_f64()) as usize);
        let (mut times, mut sent, mut heard) = (Vec::with_capacity(total), 0, began);
        let mut buffer = vec![0; PIECE];
        let mut events = [EpollEvent::empty(); 64];
        while (times.len() < total || began.elapsed() < lasts) && !self.stop.is_set() {
            let due = total.min((began.elapsed().as_secs_f64() * f64::from(rate)) as usize + 1);
            while sent < due {
                let n = self.open.len();
                let Connection { stream, asked, missing } = &mut self.open[sent % n];
                if asked.is_some() {
                    break;
                }
                stream.write_all(REQUEST)?;
                (*asked, *missing) = (Some(Instant::now()), self.answer);
                sent += 1;
            }
            let left = lasts.saturating_sub(began.elapsed()).as_millis().clamp(LATE_MS.into(), LOOK_MS.into());
            let timeout = if sent < total { LATE_MS } else { left as u16 };
            let ready = self.epoll.wait(&mut events, timeout)?;
            if ready > 0 || times.len() == sent {
                heard = Instant::now();
            } else if heard.elapsed() > PATIENCE {
                return Err(io::ErrorKind::TimedOut.into());
            }
            for event in &events[..ready] {
                let Connection { stream, asked, missing } = &mut self.open[event.data() as usize];
                let n = stream.read(&mut buffer)?;
                *missing = missing.checked_sub(n).filter(|_| n > 0).ok_or(io::ErrorKind::InvalidData)?;
                if *missing == 0 {
                    times.extend(asked.take().map(|asked| asked.elapsed()));
                }
            }
        }
        Ok(Asked { times, took: began.elapsed() })
    }
}

/// Sends one request and reads the answer.
fn length_of_answer(mut stream: &TcpStream) -> io::Result<usize> {
    stream.write_all(REQUEST)?;
    let mut answer = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let n = stream.read(&mut buffer)?;
        answer.extend_from_slice(&buffer[..n]);
        let head = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let whole = head.map(|head| head + 4 + FILE.kilobytes as usize * 1000);
        match whole {
            Some(whole) if answer.len() == whole && answer.starts_with(b"HTTP/1.1 200") => return Ok(whole),
            Some(whole) if answer.len() >= whole => return Err(io::ErrorKind::InvalidData.into()),
            _ if n == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Event;

    #[test]
    fn answers_come_through_the_enforcer_at_the_rate_that_was_asked_for() {
        if let Some(reason) = super::super::kernel::absent() {
            eprintln!("skipped: {reason}");
            return;
        }
        let steps = [Step { connections: 20, rates: &[0, 500] }];
        let (unheard, stop) = (|_: Event<'_>| {}, Stop::default());
        let loads = measure(&steps, Duration::from_secs(1), Monitor::new(&unheard, &stop));
        let loads = loads.expect("the hosts are made and nginx answers");
        assert_eq!(
            loads.iter().map(|load| (load.asked, load.answered > 0.0)).collect::<Vec<_>>(),
            [(0, false), (500, true)]
        );
        // a busy machine answers more slowly, but never faster
        assert!(loads[1].answered < 501.0 && loads[1].cpu > loads[0].cpu, "{loads:?}");
    }
}
