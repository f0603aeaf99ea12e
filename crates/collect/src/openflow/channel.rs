//! A connection of OpenFlow messages, over TCP or TLS.

use super::Error;
use super::wire::{self, HEADER, Message, VERSION, kind};
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout, timeout_at};

/// Bytes read at once.
const READ: usize = 16 * 1024;
/// A switch that takes none of our bytes for so long is given up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// What carries the bytes.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// One connection. After an error other than a timeout of an answer it is of no use.
pub(super) struct Channel {
    stream: Box<dyn Stream>,
    /// Received and not yet taken: less than a message and [`READ`].
    buffer: Vec<u8>,
    xid: u32,
    /// Of the datapath at the other end.
    pub features: wire::Features,
    /// When the last byte was received.
    pub heard: Instant,
}

impl Channel {
    /// Greets, and asks who is there.
    ///
    /// # Errors
    /// It does not answer in time, or does not speak 1.3.
    pub async fn open(stream: Box<dyn Stream>, until: Instant) -> Result<Channel, Error> {
        let features = wire::Features { datapath: 0, auxiliary: 0 };
        let mut channel = Channel { stream, buffer: Vec::new(), xid: 0, features, heard: Instant::now() };
        channel.send(&wire::hello(0)).await?;
        let hello = within(until, "hello", channel.next()).await?;
        match hello.kind {
            kind::HELLO if wire::speaks_ours(&hello)? => {}
            kind::HELLO => {
                channel.send(&wire::hello_failed(hello.xid)).await?;
                return Err(Error::Version { highest: hello.version });
            }
            kind::ERROR => return Err(refused("hello", &hello)),
            other => return Err(unexpected("hello", format!("a message of type {other} comes first"))),
        }
        let xid = channel.ask(kind::FEATURES_REQUEST, &[]).await?;
        let answer = async {
            loop {
                let message = channel.next_of_ours().await?;
                match message.kind {
                    kind::FEATURES_REPLY if message.xid == xid => return wire::features(&message.body),
                    kind::ERROR if message.xid == xid || message.xid == 0 => return Err(refused("features", &message)),
                    _ => {}
                }
            }
        };
        channel.features = within(until, "features", answer).await?;
        Ok(channel)
    }

    /// The next transaction's number.
    pub fn next_xid(&mut self) -> u32 {
        self.xid = self.xid.wrapping_add(1).max(1);
        self.xid
    }

    /// Sends a message of this type; returns its transaction.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn ask(&mut self, kind: u8, body: &[u8]) -> Result<u32, Error> {
        let xid = self.next_xid();
        self.send(&wire::message(kind, xid, body)).await?;
        Ok(xid)
    }

    /// Sends whole messages.
    ///
    /// # Errors
    /// The connection has ended, or takes nothing.
    pub async fn send(&mut self, messages: &[u8]) -> Result<(), Error> {
        let all = async {
            self.stream.write_all(messages).await?;
            self.stream.flush().await
        };
        match timeout(WRITE_TIMEOUT, all).await {
            Ok(sent) => sent.map_err(closed),
            Err(_) => Err(Error::Closed { why: "it takes no bytes".to_string() }),
        }
    }

    /// The next message of version 1.3. Questions whether we are alive are answered here. May be dropped before it is done.
    ///
    /// # Errors
    /// The connection has ended, or sends something else.
    pub async fn next_of_ours(&mut self) -> Result<Message, Error> {
        let message = self.next().await?;
        if message.version != VERSION {
            return Err(unexpected("message", format!("version {} after the hello", message.version)));
        }
        Ok(message)
    }

    /// The next message of any version. May be dropped before it is done.
    async fn next(&mut self) -> Result<Message, Error> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(message);
            }
            self.buffer.reserve(READ);
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) => return Err(Error::Closed { why: "closed by the switch".to_string() }),
                Ok(_) => self.heard = Instant::now(),
                Err(error) => return Err(closed(error)),
            }
        }
    }

    /// Takes a message from the buffer, if it has a whole one.
    fn take(&mut self) -> Result<Option<Message>, Error> {
        let Some(header) = self.buffer.first_chunk::<HEADER>() else { return Ok(None) };
        let length = wire::length(*header)?;
        if self.buffer.len() < length {
            return Ok(None);
        }
        let xid = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let (version, kind) = (header[0], header[1]);
        let body = self.buffer[HEADER..length].to_vec();
        self.buffer.drain(..length);
        Ok(Some(Message { version, kind, xid, body }))
    }
}

/// Waits for an answer.
///
/// # Errors
/// Its own, or that it has not come in time.
pub(super) async fn within<T>(
    until: Instant,
    what: &'static str,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    timeout_at(until, answer).await.unwrap_or(Err(Error::Timeout { what }))
}

/// The error that an error message stands for.
pub(super) fn refused(what: &'static str, message: &Message) -> Error {
    match wire::error(&message.body) {
        Ok((kind, code)) => Error::Refused { what, error: wire::error_name(kind, code) },
        Err(error) => error,
    }
}

pub(super) fn unexpected(what: &'static str, why: String) -> Error {
    Error::Malformed { what, why }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn closed(error: io::Error) -> Error {
    Error::Closed { why: error.to_string() }
}
