//! The thread that answers Prometheus.

use crate::page::Page;
use crate::process;
use crate::request::{Answer, HEAD_MAX, answer};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Most connections at a time: one more and the oldest is closed.
const CONNECTIONS_MAX: usize = 16;
/// A connection is closed after so long, whatever it does.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long accepting rests where the process has no more files.
const REST: Duration = Duration::from_millis(100);
/// What is read of a connection after its answer, so that closing it does not take the answer away: bytes.
const DRAIN_MAX: usize = 64 * 1024;
/// As Prometheus negotiates it; it is the only format that this server has.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Why metrics are not served.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The address cannot be used.
    #[error("{address}: {source}; metrics need an address of this machine and a port that no other program has")]
    Bind {
        /// Which.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The system's.
    #[error("metrics: {0}")]
    Io(#[from] io::Error),
}

/// A page, and since when it is served.
#[derive(Clone, Debug)]
struct Published {
    page: Arc<Page>,
    at: Instant,
}

impl Published {
    fn now(page: Page) -> Published {
        Published { page: Arc::new(page), at: Instant::now() }
    }
}

type Shared = Arc<Mutex<Published>>;

/// A process's metrics at an address, until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    page: Shared,
    /// Closed, it ends the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves at an address, from a thread of its own: `/metrics`, and `/healthz`, which says that the process lives. Anybody who
    /// reaches the address can read; so it should be a loopback address, or one of a network that only operators reach.
    ///
    /// # Errors
    /// The address cannot be used, or the system has no thread.
    pub fn bind(address: SocketAddr) -> Result<Server, MetricsError> {
        let listener = TcpListener::bind(address).map_err(|source| MetricsError::Bind { address, source })?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = UnixStream::pair()?;
        let page = Arc::new(Mutex::new(Published::now(Page::default())));
        let shared = Arc::clone(&page);
        let work = move || Work { listener, stopped, page: shared, open: VecDeque::new() }.run();
        let thread = thread::Builder::new().name("metrics".to_string()).spawn(work)?;
        Ok(Server { address, page, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it serves; of port 0 the one that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves this page from now on.
    pub fn publish(&self, page: Page) {
        let page = Published::now(page);
        // the other side holds the lock for as long as a pointer is copied
        let before = std::mem::replace(&mut *self.page.lock().unwrap_or_else(PoisonError::into_inner), page);
        drop(before);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// The thread's state.
struct Work {
    listener: TcpListener,
    stopped: UnixStream,
    page: Shared,
    /// The oldest first.
    open: VecDeque<Connection>,
}

/// A connection.
struct Connection {
    stream: TcpStream,
    until: Instant,
    /// What has come, until it is answered; after that, how much was read.
    came: Vec<u8>,
    drained: usize,
    /// What has not been sent of the answer; `None`: not answered yet.
    answer: Option<Vec<u8>>,
    sent: usize,
}

/// What becomes of a connection.
#[derive(PartialEq, Eq)]
enum Next {
    Wait,
    Close,
}

impl Work {
    fn run(mut self) {
        let mut accepting = true;
        loop {
            let Ok(ready) = self.wait(accepting) else { return };
            accepting = true;
            if ready.stopped {
                return;
            }
            if ready.accept {
                accepting = self.accept();
            }
            let now = Instant::now();
            let page = &self.page;
            self.open.retain_mut(|connection| connection.until > now && connection.step(page) == Next::Wait);
        }
    }

    /// Waits until there is something to do. A process without files to open does not spin: accepting rests a moment.
    fn wait(&self, accepting: bool) -> Result<Ready, Errno> {
        let mut fds = vec![PollFd::new(self.stopped.as_fd(), PollFlags::POLLIN)];
        if accepting {
            fds.push(PollFd::new(self.listener.as_fd(), PollFlags::POLLIN));
        }
        for connection in &self.open {
            let is_sending = connection.answer.is_some() && !connection.is_sent();
            let flags = if is_sending { PollFlags::POLLOUT } else { PollFlags::POLLIN };
            fds.push(PollFd::new(connection.stream.as_fd(), flags));
        }
        let oldest = self.open.iter().map(|connection| connection.until).min();
        let mut wait = oldest.map(|until| until.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
        if !accepting {
            wait = Some(wait.map_or(REST, |wait| wait.min(REST)));
        }
        let timeout = wait.map_or(PollTimeout::NONE, |wait| PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX));
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
        let is_ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
        Ok(Ready { stopped: is_ready(&fds[0]), accept: accepting && is_ready(&fds[1]) })
    }

    /// Takes the connections that wait; false: the process has no more files.
    fn accept(&mut self) -> bool {
        for _ in 0..CONNECTIONS_MAX {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(_) => return false,
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.open.len() >= CONNECTIONS_MAX {
                self.open.pop_front();
            }
            let until = Instant::now() + PATIENCE;
            self.open.push_back(Connection { stream, until, came: Vec::new(), drained: 0, answer: None, sent: 0 });
        }
        true
    }
}

/// What [`Work::wait`] saw.
struct Ready {
    stopped: bool,
    accept: bool,
}

impl Connection {
    fn is_sent(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| self.sent == answer.len())
    }

    /// Does what can be done without waiting.
    fn step(&mut self, page: &Mutex<Published>) -> Next {
        self.advance(page).unwrap_or_else(|error| {
            let waits = [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted].contains(&error.kind());
            if waits { Next::Wait } else { Next::Close }
        })
    }

    fn advance(&mut self, page: &Mutex<Published>) -> io::Result<Next> {
        let mut buffer = [0; HEAD_MAX];
        while self.answer.is_none() {
            let n = self.stream.read(&mut buffer[..HEAD_MAX - self.came.len()])?;
            if n == 0 {
                return Ok(Next::Close);
            }
            self.came.extend_from_slice(&buffer[..n]);
            self.answer = answer(&self.came).map(|answer| response(answer, page));
        }
        let answer = self.answer.as_deref().unwrap_or_default();
        while self.sent < answer.len() {
            self.sent += self.stream.write(&answer[self.sent..])?;
            if self.sent == answer.len() {
                self.stream.shutdown(Shutdown::Write)?;
            }
        }
        // closing while something unread is there would reset the connection, and the reader might lose the answer
        while self.drained < DRAIN_MAX {
            match self.stream.read(&mut buffer)? {
                0 => return Ok(Next::Close),
                n => self.drained += n,
            }
        }
        Ok(Next::Close)
    }
}

/// The whole response to a request.
fn response(answer: Answer, page: &Mutex<Published>) -> Vec<u8> {
    let metrics = || {
        let Published { page, at } = page.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut page = Arc::unwrap_or_clone(page);
        process::add(&mut page, at.elapsed());
        Arc::new(page).text()
    };
    let no = |what: &str| (format!("{what}\n"), PLAIN, false);
    let (status, (body, content, head_only)) = match answer {
        Answer::Metrics { head_only } => ("200 OK", (metrics(), OPENMETRICS, head_only)),
        Answer::Health { head_only } => ("200 OK", ("ok\n".to_string(), PLAIN, head_only)),
        Answer::Bad => ("400 Bad Request", no("this is no HTTP/1 request")),
        Answer::NotFound => ("404 Not Found", no("there is /metrics and /healthz")),
        Answer::Method => ("405 Method Not Allowed", no("only GET and HEAD")),
        Answer::Long => ("431 Request Header Fields Too Large", no("the request's head is too long")),
    };
    let mut text = format!("HTTP/1.1 {status}\r\nContent-Type: {content}\r\nContent-Length: {}\r\n", body.len());
    if answer == Answer::Method {
        text.push_str("Allow: GET, HEAD\r\n");
    }
    text.push_str("Cache-Control: no-store\r\nConnection: close\r\n\r\n");
    if !head_only {
        write!(text, "{body}").expect("a string takes all that is written to it");
    }
    text.into_bytes()
}
