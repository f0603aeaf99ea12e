//! Who asks: a community (SNMPv2c), or a user with passwords (SNMPv3's USM, RFC 3414).

use crate::credentials::{self, CredentialError, Reader};
use async_snmp::{Auth, AuthProtocol, PrivProtocol, UsmConfig};
use document::Section;
use std::fmt;
use std::path::Path;

/// USM's shortest password, bytes (RFC 3414, section 11.2).
const PASSWORD_MIN: usize = 8;

/// Authentication protocols. MD5 is not among them: who can send packets can break it.
const AUTHENTICATION: [(&str, AuthProtocol); 5] = [
    ("SHA-1", AuthProtocol::Sha1),
    ("SHA-224", AuthProtocol::Sha224),
    ("SHA-256", AuthProtocol::Sha256),
    ("SHA-384", AuthProtocol::Sha384),
    ("SHA-512", AuthProtocol::Sha512),
];

/// Privacy protocols. Switches extend a short key to 256 bits in two ways, Blumenthal's draft and Reeder's (Cisco).
const PRIVACY: [(&str, PrivProtocol); 3] = [
    ("AES-128", PrivProtocol::Aes128),
    ("AES-256", PrivProtocol::Aes256Blumenthal),
    ("AES-256-Cisco", PrivProtocol::Aes256Reeder),
];

/// What a switch is asked with. Its `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Access {
    /// SNMPv2c. Whoever sees a packet sees the community.
    Community(String),
    /// SNMPv3.
    User(User),
}

/// A user of SNMPv3.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    name: String,
    authentication: (AuthProtocol, String),
    privacy: Option<(PrivProtocol, String)>,
}

impl Access {
    /// Reads a file of credentials, which nobody else may read:
    ///
    /// ```toml
    /// community = "…"                 # SNMPv2c
    /// ```
    /// or
    /// ```toml
    /// user = "opentcp"                # SNMPv3
    /// auth = "SHA-256"                # SHA-1, SHA-224, SHA-256 (default), SHA-384, SHA-512
    /// auth_password = "…"
    /// privacy = "AES-128"             # AES-128 (default), AES-256, AES-256-Cisco
    /// privacy_password = "…"          # without it packets are authenticated, not encrypted
    /// ```
    ///
    /// # Errors
    /// It cannot be read, others may read it, or something in it is wrong.
    pub fn from_file(path: &Path) -> Result<Access, CredentialError> {
        credentials::read(path, access)
    }

    /// The library's form.
    pub(super) fn auth(&self) -> Result<Auth, String> {
        let User { name, authentication: (auth, password), privacy } = match self {
            Access::Community(community) => return Ok(Auth::v2c(community.as_str())),
            Access::User(user) => user,
        };
        let config = UsmConfig::new(name.clone().into_bytes());
        let config = match privacy {
            Some((privacy, secret)) => config.auth_priv(*auth, password, *privacy, secret),
            None => config.auth(*auth, password),
        };
        config.map(Auth::from).map_err(|error| error.to_string())
    }
}

fn access(section: &Section<'_, Reader>) -> Option<Access> {
    section.exclusive("community", "user");
    let community = section.get("community", |r, n| r.secret(n, 1));
    let name = section.get("user", |r, n| r.secret(n, 1));
    let auth = section.get("auth", |r, n| r.word(n, &AUTHENTICATION)).unwrap_or(AuthProtocol::Sha256);
    let privacy = section.get("privacy", |r, n| r.word(n, &PRIVACY)).unwrap_or(PrivProtocol::Aes128);
    let secret = section.get("privacy_password", |r, n| r.secret(n, PASSWORD_MIN));
    if section.has("privacy") && !section.has("privacy_password") {
        section.problem::<()>("privacy", "`privacy` without `privacy_password`", None);
    }
    if section.has("user") {
        let password = section.require("auth_password", |r, n| r.secret(n, PASSWORD_MIN))?;
        let privacy = secret.map(|secret| (privacy, secret));
        return Some(Access::User(User { name: name?, authentication: (auth, password), privacy }));
    }
    for key in ["auth", "auth_password", "privacy", "privacy_password"] {
        // these two calls name the key to `finish` too: it is allowed, but not here
        section.take(key);
        if section.has(key) {
            return section.problem(key, format!("`{key}` is of a `user`, and there is none"), None);
        }
    }
    if !section.has("community") {
        let help =
            Some("write `community` (SNMPv2c), or `user`, `auth_password` and `privacy_password` (SNMPv3)".into());
        return section.problem("community", "the file names neither a community nor a user", help);
    }
    Some(Access::Community(community?))
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Community(_) => "Community(…)",
            Access::User(_) => "User(…)",
        })
    }
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("User(…)")
    }
}
