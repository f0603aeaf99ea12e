//! Which certificate of a switch is believed.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// One that an authority of the operator's issued, or one of the operator's list itself: `openssl req -x509` makes a certificate that is its
/// own authority, and such a one is no end of a chain.
#[derive(Debug)]
pub(crate) struct Trust {
    issued: Arc<WebPkiServerVerifier>,
    listed: Vec<CertificateDer<'static>>,
    any_name: bool,
}

impl Trust {
    /// In what `listed` issued, and in those themselves. With `any_name` it may be of any name.
    ///
    /// # Errors
    /// One of them is no certificate, or there is none.
    pub fn new(
        listed: Vec<CertificateDer<'static>>,
        any_name: bool,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Trust, Box<dyn std::error::Error>> {
        let mut roots = RootCertStore::empty();
        for one in &listed {
            roots.add(one.clone())?;
        }
        let issued = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build()?;
        Ok(Trust { issued, listed, any_name })
    }

    /// Whether a certificate may be what the check of its chain says it is. Its times have been checked before.
    fn allows(&self, certificate: &CertificateDer<'_>, why: &CertificateError) -> bool {
        let is_listed = self.listed.iter().any(|one| one == certificate);
        match why {
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                self.any_name || is_listed
            }
            // the latter: an authority's certificate as a switch's
            CertificateError::UnknownIssuer | CertificateError::Other(_) => is_listed,
            _ => false,
        }
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.issued.verify_server_cert(end, between, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(why)) if self.allows(end, &why) => {
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.issued.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.issued.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.issued.supported_verify_schemes()
    }
}
