//! The token: one line with which a machine enrols.

use crate::identity::Fleet;
use crate::keys::KeyRing;
use crate::member::check_hosts;
use crate::nkey::{Nkey, NkeyKind, SecretNkey};
use crate::oracle::OracleIdentity;
use crate::{Card, JwtError, Kind, Member, NameError, Role, UnixTime, User, creds, random};
use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io;

/// What every token begins with.
const PREFIX: &str = "opentcp-token-1-";
/// Longest token that is read, bytes.
pub const TOKEN_MAX: usize = 32 * 1024;
/// Bytes of the checksum: a cut or mistyped line is noticed.
const CHECKSUM: usize = 4;
/// Longest life of a token, seconds: a week.
pub const TICKET_SECONDS_MAX: u64 = 7 * 86_400;
/// Most uses that can be counted.
pub const USES_MAX: u32 = 65_536;
/// Lines of base64 in PEM, characters.
const PEM_LINE: usize = 64;

/// What a machine needs to enrol.
#[derive(Clone, Debug)]
pub struct Token {
    /// The fleet.
    pub fleet: Fleet,
    /// The short-lived user that may ask to be enrolled; its JWT is the ticket.
    pub ticket: Card,
    /// Its secret key.
    pub seed: SecretNkey,
    /// The Oracle's CUE keys.
    pub oracle: KeyRing,
}

/// What a token is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRequest {
    /// The role that it gives.
    pub role: Role,
    /// The names that a member may take; any that is free if there are none. For an enforcer: the hosts that it may report for.
    pub hosts: Vec<String>,
    /// How long it is valid, seconds.
    pub seconds: u64,
    /// How often it may be used, if that is limited.
    pub uses: Option<u32>,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Not a token at all.
    #[error("this is not a token: a token begins with `{PREFIX}` (`opentcp fleet token` prints one)")]
    Prefix,
    /// Too long.
    #[error("the token has {0} characters; at most {TOKEN_MAX}")]
    Long(usize),
    /// Cut or changed.
    #[error("the token is cut or changed: copy the whole line")]
    Damaged,
    /// Whole, but with wrong contents.
    #[error("the token is whole, but its {0}: it was made by another version; make a new one (`opentcp fleet token`)")]
    Content(String),
    /// Its ticket.
    #[error("the token's ticket is {0}; make a new token (`opentcp fleet token`)")]
    Ticket(JwtError),
    /// A name.
    #[error("--host: {0}")]
    Host(#[from] NameError),
    /// An enforcer's hosts must be named.
    #[error("an enforcer's token names the hosts that it may report for: give --host once for each")]
    NoHosts,
    /// A life that is none, or too long.
    #[error("--for: {0} s; a token is valid for 1 s to {TICKET_SECONDS_MAX} s (a week)")]
    Seconds(u64),
    /// Uses.
    #[error("--uses: {0}; a token may be used 1 to {USES_MAX} times")]
    Uses(u32),
    /// An Oracle is not enrolled by a token.
    #[error("an Oracle's identity comes from `opentcp fleet init --oracles N`, not from a token")]
    Oracle,
    /// No random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(#[from] io::Error),
}

/// What the line holds.
#[derive(Serialize, Deserialize)]
struct Line {
    servers: Vec<String>,
    account: String,
    signing_keys: Vec<String>,
    /// Base64 of the DER certificate.
    ca: String,
    jwt: String,
    seed: String,
    oracle: Vec<String>,
    #[serde(default)]
    change: u64,
}

impl Token {
    /// Makes a token.
    ///
    /// # Errors
    /// What is wrong with the request.
    pub fn issue(oracle: &OracleIdentity, request: &TokenRequest, now: UnixTime) -> Result<Token, TokenError> {
        if request.role == Role::Oracle {
            return Err(TokenError::Oracle);
        }
        check_hosts(&request.hosts)?;
        if request.role == Role::Enforcer && request.hosts.is_empty() {
            return Err(TokenError::NoHosts);
        }
        if request.seconds == 0 || request.seconds > TICKET_SECONDS_MAX {
            return Err(TokenError::Seconds(request.seconds));
        }
        if let Some(uses) = request.uses.filter(|uses| *uses == 0 || *uses > USES_MAX) {
            return Err(TokenError::Uses(uses));
        }
        let seed = SecretNkey::generate(NkeyKind::User)?;
        let member = Member { name: "token".to_string(), role: request.role, hosts: request.hosts.clone() };
        let id = HEXLOWER.encode(&random::<16>()?);
        let user = User {
            kind: Kind::Ticket,
            ticket: Some(id),
            uses: request.uses,
            ..User::member(seed.public().clone(), member, now, now.saturating_add(request.seconds))
        };
        let fleet = oracle.identity.fleet.clone();
        let ticket = user.issue(&fleet.account, &oracle.signing);
        Ok(Token { fleet, ticket, seed, oracle: oracle.identity.oracle.clone() })
    }

    /// The line.
    pub fn text(&self) -> String {
        let line = Line {
            servers: self.fleet.servers.clone(),
            account: self.fleet.account.to_string(),
            signing_keys: self.fleet.signing.iter().map(Nkey::to_string).collect(),
            ca: self.fleet.ca.lines().filter(|line| !line.starts_with("-----")).collect(),
            jwt: self.ticket.jwt.clone(),
            seed: self.seed.seed(),
            oracle: self.oracle.keys().iter().map(|key| HEXLOWER.encode(key)).collect(),
            change: self.oracle.change,
        };
        let mut bytes = serde_json::to_vec(&line).expect("it is plain data");
        let sum = Sha256::digest(&bytes);
        bytes.extend_from_slice(&sum[..CHECKSUM]);
        format!("{PREFIX}{}", BASE64URL_NOPAD.encode(&bytes))
    }

    /// Reads the line. White space around it, and line breaks in it, do not matter.
    ///
    /// # Errors
    /// Why it is no token, or not a valid one at `now`.
    pub fn parse(text: &str, now: UnixTime) -> Result<Token, TokenError> {
        if text.len() > TOKEN_MAX {
            return Err(TokenError::Long(text.len()));
        }
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let coded = text.strip_prefix(PREFIX).ok_or(TokenError::Prefix)?;
        let bytes = BASE64URL_NOPAD.decode(coded.as_bytes()).map_err(|_| TokenError::Damaged)?;
        let (json, sum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(TokenError::Damaged)?;
        if Sha256::digest(json)[..CHECKSUM] != sum[..] {
            return Err(TokenError::Damaged);
        }
        let wrong = |what: String| TokenError::Content(what);
        let line: Line =
            serde_json::from_slice(json).map_err(|error| wrong(format!("contents are not a token's ({error})")))?;
        let fleet = Fleet::new(&line.servers, &line.account, &line.signing_keys, pem(&line.ca)?).map_err(wrong)?;
        let ticket = Card::verify(&line.jwt, &fleet.account, &fleet.signing, now).map_err(TokenError::Ticket)?;
        if ticket.user.kind != Kind::Ticket {
            return Err(wrong("ticket is a member's JWT".to_string()));
        }
        let seed =
            SecretNkey::from_seed(&line.seed, NkeyKind::User).map_err(|error| wrong(format!("seed is {error}")))?;
        if *seed.public() != ticket.user.key {
            return Err(wrong("seed is another key's than its ticket".to_string()));
        }
        let mut keys = format!("# change {}\n", line.change);
        line.oracle.iter().for_each(|key| writeln!(keys, "{key}").expect("writing to a string"));
        let oracle =
            KeyRing::parse(&keys).map_err(|error| wrong(format!("list of the Oracle's keys is wrong: {error}")))?;
        Ok(Token { fleet, ticket, seed, oracle })
    }

    /// The credentials of the short-lived user, as NATS's clients read them.
    pub fn creds(&self) -> String {
        creds(&self.ticket.jwt, &self.seed)
    }
}

/// A certificate in PEM, of its base64.
fn pem(base64: &str) -> Result<String, TokenError> {
    let wrong = || TokenError::Content("certificate is not base64".to_string());
    let der = BASE64.decode(base64.as_bytes()).map_err(|_| wrong())?;
    if der.is_empty() {
        return Err(wrong());
    }
    let coded = BASE64.encode(&der);
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in coded.as_bytes().chunks(PEM_LINE) {
        text.push_str(std::str::from_utf8(line).expect("base64 is ASCII"));
        text.push('\n');
    }
    text.push_str("-----END CERTIFICATE-----\n");
    Ok(text)
}
