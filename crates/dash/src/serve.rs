//! The thread that serves: connections are bounded, who has many makes room for others, and each has to make progress.

use crate::places::{Beyond, Places};
use axum::Router;
use axum::extract::Extension;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};

/// Most connections at a time, beside those that follow a stream; a browser has up to six.
pub const CONNECTIONS_MAX: usize = 128;
/// How long a connection has its place at least.
const HELD: Duration = Duration::from_millis(250);
/// How long a connection may take for the head of a request, its first or another.
const HEAD: Duration = Duration::from_secs(20);
/// How long a connection may take nothing of what it is sent.
const STALLED: Duration = Duration::from_secs(15);
/// How long accepting rests where the process has no more files.
const REST: Duration = Duration::from_millis(100);

/// Where a request comes from.
#[derive(Clone)]
pub struct From {
    /// The other end's address.
    pub address: SocketAddr,
    places: Arc<Places>,
    place: u64,
}

impl From {
    /// Its connection follows a stream from now on, and has a place there instead of one here.
    pub fn follows(&self) {
        self.places.release(self.place);
    }
}

/// Serves from a thread of its own, until it is dropped.
pub struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves what comes at a listener that does not block.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(listener: std::net::TcpListener, router: Router) -> io::Result<Server> {
        let runtime = runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let listener = runtime.block_on(async { TcpListener::from_std(listener) })?;
        let (stop, stopped) = oneshot::channel();
        let work = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, router) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = thread::Builder::new().name("dash".to_string()).spawn(work)?;
        Ok(Server { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

async fn accept(listener: TcpListener, router: Router) {
    let places = Places::new(CONNECTIONS_MAX, Beyond::Replaces);
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            sleep(REST).await;
            continue;
        };
        // who comes in great number must not end those that have asked before they are answered
        while let Some(left) = places.held(address.ip(), HELD) {
            sleep(left).await;
        }
        let Some(mut place) = places.take(address.ip()) else { continue };
        let from = From { address, places: Arc::clone(&places), place: place.number() };
        let service = TowerToHyperService::new(router.clone().layer(Extension(from)));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .serve_connection(TokioIo::new(Patient::new(stream)), service);
        tokio::spawn(async move {
            tokio::select! {
                // a browser that goes away is no error
                _ = connection => {}
                () = place.lost() => {}
            }
        });
    }
}

/// A connection that ends if the other side takes nothing for a while.
struct Patient {
    stream: TcpStream,
    /// Runs while something waits to be written.
    waits: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn new(stream: TcpStream) -> Patient {
        // small changes are to arrive at once; where that cannot be set they come later
        let _ = stream.set_nodelay(true);
        Patient { stream, waits: None }
    }

    /// What became of a write, or the end of the patience.
    fn judged<T>(&mut self, context: &mut Context<'_>, became: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if became.is_ready() {
            self.waits = None;
            return became;
        }
        let waits = self.waits.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + STALLED)));
        match waits.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let became = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judged(context, became)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let became = Pin::new(&mut self.stream).poll_flush(context);
        self.judged(context, became)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
