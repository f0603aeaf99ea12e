//! The call to a target: address, TLS, login, and what its errors mean.

use super::proto::g_nmi_client::GNmiClient;
use super::proto::{SubscribeRequest, SubscribeResponse};
use super::{Options, Tls};
use crate::ReadError;
use crate::credentials::{self, CredentialError};
use crate::text::clean;
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;
use tonic::codegen::tokio_stream::{self, StreamExt as _};
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status, Streaming};
use units::Time;

/// Largest message of a target, bytes.
const MESSAGE_MAX: usize = 4 << 20;
/// gNMI's port.
const PORT: u16 = 9339;
/// Largest file of a certificate or key, bytes.
const PEM_MAX: u64 = 1 << 20;
/// The end of a connection before the subscription was answered.
const AT_ONCE: &str = "it closed the connection at once";
/// A connection without answers to pings is closed.
const PING: Duration = Duration::from_secs(20);
const PONG: Duration = Duration::from_secs(10);

/// User and password, sent with the call as gNMI's authentication specifies. Its `Debug` shows neither.
#[derive(Clone)]
pub struct Login {
    user: AsciiMetadataValue,
    password: AsciiMetadataValue,
}

impl Login {
    /// Reads a file of credentials, which nobody else may read: `user = "…"` and `password = "…"`.
    ///
    /// # Errors
    /// It cannot be read, others may read it, or something in it is wrong.
    pub fn from_file(path: &Path) -> Result<Login, CredentialError> {
        credentials::read(path, |section| {
            let [user, password] = ["user", "password"].map(|key| {
                let text = section.require(key, |r, n| r.secret(n, 1))?;
                let value: Option<AsciiMetadataValue> = text.parse().ok();
                value.or_else(|| section.problem(key, "only printable ASCII can be sent", None))
            });
            Some(Login { user: user?, password: password? })
        })
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(…)")
    }
}

/// Connects and subscribes; both within `options.timeout`.
pub(super) async fn subscribe(
    options: &Options,
    request: SubscribeRequest,
) -> Result<Streaming<SubscribeResponse>, ReadError> {
    let endpoint = endpoint(options)?;
    let timeout = duration(options.timeout);
    let connected = tokio::time::timeout(timeout, endpoint.connect()).await;
    let channel = connected.map_err(|_| silent(options))?.map_err(|error| unreachable(&error))?;
    // The stream of requests stays open: some targets end the call with it.
    let mut requests = Request::new(tokio_stream::once(request).chain(tokio_stream::pending()));
    if let Some(Login { user, password }) = &options.login {
        requests.metadata_mut().insert("username", user.clone());
        requests.metadata_mut().insert("password", password.clone());
    }
    let mut client: GNmiClient<Channel> = GNmiClient::new(channel).max_decoding_message_size(MESSAGE_MAX);
    let answered = tokio::time::timeout(timeout, client.subscribe(requests)).await;
    let stream = answered.map_err(|_| silent(options))?.map_err(|status| match (refused(&status), &options.tls) {
        (ReadError::Closed, None) => {
            ReadError::Refused(format!("{AT_ONCE}; it may accept TLS only: give its authority (`tls.ca`)"))
        }
        // in TLS 1.3 that comes after the handshake
        (ReadError::Closed, Some(Tls { identity: None, .. })) => ReadError::Refused(format!(
            "{AT_ONCE}; it may ask for a certificate of this side (`tls.certificate`, `tls.key`)"
        )),
        (error, _) => error,
    })?;
    Ok(stream.into_inner())
}

fn silent(options: &Options) -> ReadError {
    ReadError::Unreachable(format!(
        "no answer within {}; is the address right, and does the switch accept gNMI from here?",
        options.timeout
    ))
}

fn endpoint(options: &Options) -> Result<Endpoint, ReadError> {
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let address = crate::text::with_port(&options.address, PORT);
    if options.tls.is_none() && options.login.is_some() && !is_here(&address) {
        let what = "a password is sent through TLS only; give the certificate of the switch's authority (`tls.ca`)";
        return Err(ReadError::Refused(what.into()));
    }
    let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
        .map_err(|error| ReadError::Unreachable(format!("`{}` is no address: {error}", options.address)))?
        .connect_timeout(duration(options.timeout))
        .http2_keep_alive_interval(PING)
        .keep_alive_timeout(PONG)
        .keep_alive_while_idle(true);
    match &options.tls {
        Some(tls) => endpoint.tls_config(tls_config(tls)?).map_err(|error| ReadError::Io(chain(&error))),
        None => Ok(endpoint),
    }
}

/// Whether an operator's address is this machine's.
pub(crate) fn is_here(address: &str) -> bool {
    let address = crate::text::with_port(address, PORT);
    let host = address.rsplit_once(':').map_or("", |(host, _)| host);
    host == "localhost" || host == "[::1]" || host.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
}

fn tls_config(tls: &Tls) -> Result<ClientTlsConfig, ReadError> {
    let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem(&tls.ca)?));
    if let Some(name) = &tls.name {
        config = config.domain_name(name);
    }
    if let Some((certificate, key)) = &tls.identity {
        config = config.identity(Identity::from_pem(pem(certificate)?, pem(key)?));
    }
    Ok(config)
}

fn pem(path: &Path) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(PEM_MAX).read_to_end(&mut bytes));
    read.map_err(|error| ReadError::Io(format!("{}: {error}", path.display())))?;
    if bytes.windows(11).any(|window| window == b"-----BEGIN ") {
        return Ok(bytes);
    }
    Err(ReadError::Io(format!("{}: this is not PEM", path.display())))
}

/// An error with its causes, each once: the last says most.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

fn unreachable(error: &tonic::transport::Error) -> ReadError {
    let text = chain(error);
    if text.contains("InvalidContentType") {
        return ReadError::Refused(format!("{text}; it does not speak TLS at this port"));
    }
    if text.contains("certificate") || text.contains("HandshakeFailure") {
        let help = "does `tls.ca` hold the authority that signed the switch's certificate, and does the certificate name this address?";
        return ReadError::Refused(format!("{text}; {help}"));
    }
    ReadError::Unreachable(text)
}

/// What the end of a call means.
pub(super) fn refused(status: &Status) -> ReadError {
    let text = clean(status.message().as_bytes());
    match status.code() {
        Code::Unauthenticated | Code::PermissionDenied => {
            ReadError::Refused(format!("{text}; check the user and the password, and that the user may subscribe"))
        }
        Code::OutOfRange if text.contains("message length too large") => {
            ReadError::Beyond { what: "bytes of a message", most: MESSAGE_MAX }
        }
        Code::Unimplemented | Code::InvalidArgument | Code::NotFound | Code::OutOfRange | Code::FailedPrecondition => {
            ReadError::Unsupported(format!(
                "this subscription: {text}. Try another `encoding`, or leave out what it lacks (`queues = false`, `neighbours = false`)"
            ))
        }
        Code::Ok | Code::Unavailable | Code::Cancelled | Code::Aborted => ReadError::Closed,
        // a connection that ends within a message
        Code::Unknown | Code::Internal if status.source().is_some() => ReadError::Closed,
        code => ReadError::Protocol(format!("{code:?}: {text}")),
    }
}

pub(super) fn duration(time: Time) -> Duration {
    Duration::from_nanos(time.as_ns())
}
