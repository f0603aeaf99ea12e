//! TLS of a connection to a switch: both ends show a certificate of the operator's authority.

use super::Error;
use super::channel::Stream;
use crate::trust::Trust;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Certificates and a key, read from PEM files. Clones are the same.
///
/// The other end must have a certificate of the authority, which should issue them to switches alone. Names in it are not compared, as those of
/// switches are no addresses (`ovs-pki` of Open vSwitch names random identities); so a switch could pose as another one.
#[derive(Debug, Clone)]
pub struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Tls {
    /// Reads the files: certificates of the switches' authority, our certificate (and what is between it and its authority), its key.
    ///
    /// # Errors
    /// A file cannot be read, or has not what it should; the message names it.
    pub fn from_files(authority: &Path, certificate: &Path, key: &Path) -> Result<Tls, Error> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        let listed = certificates(authority)?;
        for root in &listed {
            roots.add(root.clone()).map_err(|error| tls(&authority.display(), &error))?;
        }
        let roots = Arc::new(roots);
        let chain = certificates(certificate)?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| tls(&key.display(), &error))?;
        let clients = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
        let clients = clients.build().map_err(|error| tls(&authority.display(), &error))?;
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| tls(&"versions", &error))?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain.clone(), secret.clone_key())
            .map_err(|error| tls(&certificate.display(), &error))?;
        let switches = Trust::new(listed, true, &provider).map_err(|error| tls(&authority.display(), &error))?;
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| tls(&"versions", &error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(switches))
            .with_client_auth_cert(chain, secret)
            .map_err(|error| tls(&certificate.display(), &error))?;
        Ok(Tls { client: Arc::new(client), server: Arc::new(server) })
    }

    /// As the end that connected.
    pub(super) async fn connect(&self, stream: TcpStream) -> Result<Box<dyn Stream>, Error> {
        let name = ServerName::try_from("switch").expect("a host's name");
        let stream = TlsConnector::from(Arc::clone(&self.client)).connect(name, stream).await;
        Ok(Box::new(stream.map_err(|error| Error::Tls { why: error.to_string() })?))
    }

    /// As the end that listens.
    pub(super) async fn accept(&self, stream: TcpStream) -> Result<Box<dyn Stream>, Error> {
        let stream = TlsAcceptor::from(Arc::clone(&self.server)).accept(stream).await;
        Ok(Box::new(stream.map_err(|error| Error::Tls { why: error.to_string() })?))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|error| tls(&file.display(), &error))?;
    if all.is_empty() { Err(tls(&file.display(), &"it has no certificate")) } else { Ok(all) }
}

fn tls(what: &dyn std::fmt::Display, error: &dyn std::fmt::Display) -> Error {
    Error::Tls { why: format!("{what}: {error}") }
}
