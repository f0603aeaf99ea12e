//! NATS's JWT, version 2: three parts of base64url; the last is the Ed25519 signature of the first two.

use crate::nkey::{Nkey, SecretNkey};
use crate::{NameError, NkeyError, UnixTime};
use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha512_256};

/// Version of the claims.
pub(crate) const VERSION: u8 = 2;

/// Why a JWT is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwtError {
    /// Too long to be read.
    #[error("the JWT has {bytes} bytes; at most {max}")]
    Long {
        /// Its length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// Not three parts of base64url with a header of NATS's.
    #[error("not a JWT of NATS's: {0}")]
    Shape(&'static str),
    /// Signed by another key, or changed since.
    #[error("not signed by this fleet's account: forged, changed, or of another fleet")]
    Signature,
    /// Signed, but not what is expected here.
    #[error("signed, but its {0} is wrong")]
    Claim(&'static str),
    /// Signed, but with a name that is none.
    #[error("signed, but {0}")]
    Name(#[from] NameError),
    /// Signed, but with a key that is none.
    #[error("signed, but its subject is {0}")]
    Key(#[from] NkeyError),
    /// Of a token where a member's is expected, or the reverse.
    #[error("signed, but {found}; expected {expected}")]
    Kind {
        /// What it is.
        found: &'static str,
        /// What is wanted.
        expected: &'static str,
    },
    /// Its time is over.
    #[error("expired {ago} s ago")]
    Expired {
        /// Seconds since its expiry.
        ago: u64,
    },
}

#[derive(Serialize, Deserialize)]
struct Header {
    typ: String,
    alg: String,
}

/// The claims that all kinds share; `nats` is the kind's own part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Claims<N> {
    /// Expiry; 0 is never.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub exp: UnixTime,
    #[serde(default)]
    pub jti: String,
    pub iat: UnixTime,
    #[serde(default)]
    pub iss: String,
    #[serde(default)]
    pub name: String,
    pub sub: String,
    pub nats: N,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(time: &UnixTime) -> bool {
    *time == 0
}

/// The text of claims, signed; `iss` and `jti` are filled in.
pub(crate) fn encode<N: Serialize>(mut claims: Claims<N>, issuer: &SecretNkey) -> String {
    let json = |value: &Claims<N>| serde_json::to_vec(value).expect("claims are plain data");
    claims.iss = issuer.public().to_string();
    claims.jti.clear();
    claims.jti = BASE32_NOPAD.encode(&Sha512_256::digest(json(&claims)));
    let header = Header { typ: "JWT".into(), alg: "ed25519-nkey".into() };
    let header = serde_json::to_vec(&header).expect("a header is plain data");
    let body = format!("{}.{}", BASE64URL_NOPAD.encode(&header), BASE64URL_NOPAD.encode(&json(&claims)));
    let signature = issuer.sign(body.as_bytes());
    format!("{body}.{}", BASE64URL_NOPAD.encode(&signature))
}

/// The claims of a text of at most `max` bytes that one of `issuers` signed.
pub(crate) fn decode<N: DeserializeOwned>(text: &str, issuers: &[Nkey], max: usize) -> Result<Claims<N>, JwtError> {
    if text.len() > max {
        return Err(JwtError::Long { bytes: text.len(), max });
    }
    let (body, signature) = text.rsplit_once('.').ok_or(JwtError::Shape("it has no signature"))?;
    let (header, claims) = body.split_once('.').ok_or(JwtError::Shape("it has no claims"))?;
    let plain = |part: &str, what| BASE64URL_NOPAD.decode(part.as_bytes()).map_err(|_| JwtError::Shape(what));
    let header: Header = serde_json::from_slice(&plain(header, "its header is not base64url")?)
        .map_err(|_| JwtError::Shape("its header is not a JWT's"))?;
    if header.typ != "JWT" || header.alg != "ed25519-nkey" {
        return Err(JwtError::Shape("its header names another algorithm than ed25519-nkey"));
    }
    let signature = plain(signature, "its signature is not base64url")?;
    let issuer = issuers.iter().find(|key| key.verifies(body.as_bytes(), &signature)).ok_or(JwtError::Signature)?;
    let claims: Claims<N> = serde_json::from_slice(&plain(claims, "its claims are not base64url")?)
        .map_err(|_| JwtError::Claim("list of claims"))?;
    if claims.iss == issuer.as_str() { Ok(claims) } else { Err(JwtError::Claim("issuer")) }
}
