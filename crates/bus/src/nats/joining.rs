//! What a connection needs: where the servers are, whom to trust, and who joins.

use async_nats::ServerAddr;
use fleet::SecretNkey;
use std::path::PathBuf;

/// Gives the JWT of now and its key, or says why there are none.
pub(super) type Credentials = dyn Fn() -> Result<(String, SecretNkey), String> + Send + Sync;

/// What a connection needs.
pub(super) struct Joining {
    /// For the server's lists of connections.
    pub name: String,
    /// Where the servers are.
    pub servers: Vec<ServerAddr>,
    /// The file of the authority that signed the servers' certificates.
    pub ca: PathBuf,
    /// Prefix of the subjects of answers to this client.
    pub inbox: String,
    /// Who joins.
    pub credentials: Box<Credentials>,
}

/// The servers' addresses, of `tls://HOST:PORT`.
///
/// # Errors
/// One of them is none.
pub(super) fn addresses(servers: &[String]) -> Result<Vec<ServerAddr>, String> {
    servers.iter().map(|text| text.parse().map_err(|error| format!("{text}: {error}"))).collect()
}

/// The JWT and the key of credentials as NATS's tools write them.
///
/// # Errors
/// A part is missing.
pub(super) fn parts(creds: &str) -> Result<(String, SecretNkey), String> {
    let part = |what: &str| {
        let (_, rest) = creds.split_once(&format!("-----BEGIN {what}-----"))?;
        Some(rest.split_once("-----")?.0.trim())
    };
    let jwt = part("NATS USER JWT").ok_or("the credentials have no JWT")?;
    let seed = part("USER NKEY SEED").ok_or("the credentials have no seed")?;
    let seed = SecretNkey::from_seed(seed, fleet::NkeyKind::User).map_err(|error| error.to_string())?;
    Ok((jwt.to_string(), seed))
}
