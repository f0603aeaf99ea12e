//! The call to a target: address, TLS, login, and what its errors mean.

use super::proto::g_nmi_client::GNmiClient;
use super::proto::{SubscribeRequest, SubscribeResponse};
use super::{Options, Tls};
use crate::ReadError;
use crate::credentials::{self, CredentialError};
use crate::text::clean;
use crate::trust::Trust;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::Ipv4Addr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use tonic::codegen::http::uri::InvalidUri;
use tonic::codegen::tokio_stream::{self, StreamExt as _};
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};
use units::Time;

/// Largest message of a target, bytes.
const MESSAGE_MAX: usize = 4 << 20;
/// gNMI's port.
const PORT: u16 = 9339;
/// Largest file of a certificate or key, bytes.
const PEM_MAX: u64 = 1 << 20;
/// HTTP/2, in the negotiation of TLS.
const HTTP2: &[u8] = b"h2";
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
    let connect = async {
        match &options.tls {
            Some(tls) => Ok(endpoint.connect_with_connector(Secure::new(tls, &options.address)?).await),
            None => Ok(endpoint.connect().await),
        }
    };
    let connected: Result<Channel, _> =
        tokio::time::timeout(timeout, connect).await.unwrap_or_else(|_| Err(silent(options)))?;
    let channel = connected.map_err(|error| unreachable(&error))?;
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
    let address = crate::text::with_port(&options.address, PORT);
    if options.tls.is_none() && options.login.is_some() && !is_here(&address) {
        let what = "a password is sent through TLS only; give the certificate of the switch's authority (`tls.ca`)";
        return Err(ReadError::Refused(what.into()));
    }
    let wrong =
        |error: &dyn fmt::Display| ReadError::Unreachable(format!("`{}` is no address: {error}", options.address));
    // the connector speaks TLS: to tonic the connection is open, and the calls' origin is not
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let origin: Uri = format!("{scheme}://{address}").parse().map_err(|error: InvalidUri| wrong(&error))?;
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|error| wrong(&error))?;
    Ok(endpoint.origin(origin).http2_keep_alive_interval(PING).keep_alive_timeout(PONG).keep_alive_while_idle(true))
}

/// Whether an operator's address is this machine's.
pub(crate) fn is_here(address: &str) -> bool {
    let address = crate::text::with_port(address, PORT);
    let host = address.rsplit_once(':').map_or("", |(host, _)| host);
    host == "localhost" || host == "[::1]" || host.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
}

/// Connects to a target and speaks TLS with it.
struct Secure {
    address: String,
    name: ServerName<'static>,
    tls: TlsConnector,
}

impl Secure {
    fn new(tls: &Tls, address: &str) -> Result<Secure, ReadError> {
        let address = crate::text::with_port(address, PORT);
        let host = address.rsplit_once(':').map_or("", |(host, _)| host).trim_matches(['[', ']']);
        let name = ServerName::try_from(tls.name.as_deref().unwrap_or(host).to_string());
        let name = name.map_err(|error| ReadError::Io(format!("the name in the switch's certificate: {error}")))?;
        Ok(Secure { name, tls: TlsConnector::from(Arc::new(tls_config(tls)?)), address })
    }
}

impl Service<Uri> for Secure {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let (address, name, tls) = (self.address.clone(), self.name.clone(), self.tls.clone());
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let stream = tls.connect(name, stream).await?;
            match stream.get_ref().1.alpn_protocol() {
                Some(HTTP2) => Ok(TokioIo::new(stream)),
                _ => Err(io::Error::other("it speaks TLS, and not HTTP/2, at this port")),
            }
        })
    }
}

fn tls_config(tls: &Tls) -> Result<ClientConfig, ReadError> {
    let wrong = |path: &Path, error: &dyn fmt::Display| ReadError::Io(format!("{}: {error}", path.display()));
    let certificates = |path: &Path| {
        let bytes = pem(path)?;
        let all: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
        all.map_err(|error| wrong(path, &error))
    };
    let provider = Arc::new(ring::default_provider());
    let trust = Trust::new(certificates(&tls.ca)?, false, &provider).map_err(|error| wrong(&tls.ca, &error))?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ReadError::Io(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust));
    let mut config = match &tls.identity {
        Some((certificate, key)) => {
            let secret = PrivateKeyDer::from_pem_slice(&pem(key)?).map_err(|error| wrong(key, &error))?;
            config
                .with_client_auth_cert(certificates(certificate)?, secret)
                .map_err(|error| wrong(certificate, &error))?
        }
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![HTTP2.to_vec()];
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
