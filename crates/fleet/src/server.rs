//! The server: its addresses, its certificate, its configuration.

use crate::account::CONNECTIONS_MAX;
use crate::rights::PAYLOAD_MAX;
use crate::{UnixTime, check_name};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, date_time_ymd,
};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

/// NATS's port.
pub const PORT: u16 = 4222;
/// Days for which the authority's certificate is valid.
const CA_DAYS: u32 = 3650;
/// Days before now from which certificates are valid: clocks differ.
const EARLIER_DAYS: u32 = 1;
/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Server {
    /// A DNS name or an IP address, without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl Server {
    /// Its address for clients.
    pub fn url(&self) -> String {
        format!("tls://{self}")
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Server {
    type Err = String;

    fn from_str(text: &str) -> Result<Server, String> {
        let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(Some((host, rest))) => (host, rest.strip_prefix(':').or((!rest.is_empty()).then_some("?"))),
            Some(None) => return Err(format!("{text:?} has `[` without `]`")),
            None if text.parse::<IpAddr>().is_ok() => (text, None),
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = match port {
            None => PORT,
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| format!("{text:?}: {port:?} is no port: a number from 1 to 65535"))?,
        };
        if host.parse::<IpAddr>().is_err() {
            check_name(host)
                .map_err(|error| format!("{text:?} is not HOST:PORT with a DNS name or an IP address: {error}"))?;
        }
        Ok(Server { host: host.to_string(), port })
    }
}

/// Why a certificate cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("the certificate cannot be made: {0}")]
pub struct CertificateError(#[from] rcgen::Error);

/// A key and its certificate, PEM.
pub struct Certified {
    /// The certificate.
    pub certificate: String,
    /// The secret key.
    pub key: String,
}

/// The certificate authority of a fleet's servers, valid for ten years.
///
/// # Errors
/// The key cannot be made.
pub fn authority(now: UnixTime) -> Result<Certified, CertificateError> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = authority_params(now).self_signed(&key)?;
    Ok(Certified { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn authority_params(now: UnixTime) -> CertificateParams {
    let mut params = valid(CertificateParams::default(), now, CA_DAYS);
    params.distinguished_name.push(DnType::CommonName, "OpenTCP fleet");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn valid(mut params: CertificateParams, now: UnixTime, days: u32) -> CertificateParams {
    let moment = |seconds| date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    params.not_before = moment(now.saturating_sub(u64::from(EARLIER_DAYS) * DAY_S));
    params.not_after = moment(now + u64::from(days) * DAY_S);
    params
}

/// Whether a text is a secret key in PEM.
pub(crate) fn is_key(text: &str) -> bool {
    KeyPair::from_pem(text).is_ok()
}

/// A certificate of the servers: one for all of them, with their names and addresses. `authority` is the secret key of [`authority`].
///
/// # Errors
/// A name cannot be in a certificate, or the key is none.
pub fn certificate(
    servers: &[Server],
    authority: &str,
    now: UnixTime,
    days: u32,
) -> Result<Certified, CertificateError> {
    let mut names: Vec<String> = servers.iter().map(|server| server.host.clone()).collect();
    names.sort();
    names.dedup();
    let mut params = valid(CertificateParams::new(names)?, now, days);
    params.distinguished_name.push(DnType::CommonName, servers.first().map_or("nats", |first| &first.host));
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    // also a client's: the servers of a cluster connect to each other
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let issuer = Issuer::new(authority_params(now), KeyPair::from_pem(authority)?);
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Certified { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// The configuration of nats-server. Its paths are relative to the folder in which the server is started.
pub(crate) fn configuration(port: u16, operator: &str, system_account: &str) -> String {
    let payload = PAYLOAD_MAX;
    format!(
        "\
# nats-server for an OpenTCP fleet, version 2.11 or later. Start it in this folder, since the paths below are relative:
#   cd THIS-FOLDER && nats-server -c nats-server.conf
# The server needs to read everything here, and to write to jwt/ and jetstream/. It holds no key that signs CUEs or members.

# Where members connect.
listen: \"0.0.0.0:{port}\"
server_name: \"opentcp\"

# TLS alone. `opentcp fleet certificate` renews server.pem and server.key; `nats-server --signal reload` takes them.
tls {{
  cert_file: \"server.pem\"
  key_file: \"server.key\"
  # seconds for the handshake
  timeout: 5
}}

# Who may connect: whoever has a JWT of the account in jwt/, which the operator's key signed. So members come and go without a change
# of this file. The Oracle replaces the account's JWT when it revokes one.
operator: \"{operator}\"
system_account: \"{system_account}\"
resolver {{
  type: full
  dir: \"jwt\"
  allow_delete: false
  # how often servers of a cluster compare their JWTs
  interval: \"2m\"
  limit: 16
}}

# Seconds in which a client must have logged in.
authorization {{
  timeout: 5
}}

# Limits, so that nobody takes the server's memory. Each connection is an open file: the service needs LimitNOFILE above their number.
max_connections: {CONNECTIONS_MAX}
# a message of the bus, sealed: 64 KiB and 1 KiB
max_payload: {payload}
# a line of the protocol: the login of an enforcer for {hosts} hosts is the longest
max_control_line: 32KB
# what waits for a member that does not read, before it is disconnected
max_pending: 8MB
write_deadline: \"5s\"
max_subscriptions: 256
# a member that is gone is noticed after a minute
ping_interval: \"20s\"
ping_max: 2

# The register of members and the Oracles' lease: small.
jetstream {{
  store_dir: \"jetstream\"
  max_memory_store: 64MB
  max_file_store: 1100MB
}}

# Figures for monitoring (`/varz`, `/connz`), on this machine alone: remove the # to switch it on.
# http: \"127.0.0.1:8222\"

# Several servers: one folder for each, with another server_name, and a cluster. JetStream needs at least three.
# cluster {{
#   name: \"opentcp\"
#   listen: \"0.0.0.0:6222\"
#   routes: [\"tls://OTHER-SERVER:6222\"]
#   tls {{ cert_file: \"server.pem\", key_file: \"server.key\", ca_file: \"ca.pem\", verify: true }}
# }}
",
        hosts = crate::HOSTS_MAX,
    )
}
