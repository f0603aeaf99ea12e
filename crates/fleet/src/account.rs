//! The JWTs that a server is set up with: the operator's, the system account's, and the fleet's account with its revocations.

use crate::UnixTime;
use crate::jwt::{self, Claims, JwtError, VERSION};
use crate::nkey::{Nkey, SecretNkey};
use crate::rights::PAYLOAD_MAX;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Name of the fleet's account.
pub const ACCOUNT: &str = "OPENTCP";
/// Longest account JWT that is read, bytes: it must fit into a message of the server's.
pub const ACCOUNT_MAX: usize = 60 * 1024;
/// Most revocations that the server is given; the Oracle itself refuses any number.
pub const REVOCATIONS_MAX: usize = 512;
/// What the buckets of members and Oracles may take on the server's disk, bytes.
const DISK_MAX: u64 = 1 << 30;
/// Memory of their consumers, bytes.
const MEMORY_MAX: u64 = 64 << 20;
/// Streams of the account: two buckets, and one for a change of their form.
const STREAMS_MAX: u32 = 3;
/// Watchers of the buckets.
const CONSUMERS_MAX: u32 = 256;
/// Most connections: agents, enforcers, collectors, operators and Oracles.
pub(crate) const CONNECTIONS_MAX: u32 = 135_000;

/// The claims of an operator or an account.
fn claims(name: &str, subject: &Nkey, issued: UnixTime, nats: Value) -> Claims<Value> {
    let (name, sub) = (name.to_string(), subject.to_string());
    Claims { exp: 0, jti: String::new(), iat: issued, iss: String::new(), name, sub, nats }
}

/// The operator's JWT, which the server's configuration holds: who may sign accounts.
pub(crate) fn operator(operator: &SecretNkey, signing: &Nkey, system: &Nkey, now: UnixTime) -> String {
    let nats = json!({
        "signing_keys": [signing.as_str()],
        "system_account": system.as_str(),
        // neither the operator's nor the account's own key signs anything in daily use: they stay off the machines
        "strict_signing_key_usage": true,
        "type": "operator",
        "version": VERSION,
    });
    jwt::encode(claims("OpenTCP", operator.public(), now, nats), operator)
}

/// The system account's JWT: the server's own messages, and no JetStream.
pub(crate) fn system(system: &Nkey, signing: &Nkey, operator: &SecretNkey, now: UnixTime) -> String {
    let nats = json!({
        "limits": limits(16, Map::new()),
        "signing_keys": [signing.as_str()],
        "default_permissions": nothing(),
        "type": "account",
        "version": VERSION,
    });
    jwt::encode(claims("SYS", system, now, nats), operator)
}

/// The fleet's account.
pub(crate) fn account(account: &Nkey, signing: &Nkey, operator: &SecretNkey, now: UnixTime) -> String {
    let Value::Object(storage) = json!({
        "mem_storage": MEMORY_MAX,
        "disk_storage": DISK_MAX,
        "streams": STREAMS_MAX,
        "consumer": CONSUMERS_MAX,
    }) else {
        unreachable!("it is an object")
    };
    let nats = json!({
        "limits": limits(CONNECTIONS_MAX, storage),
        "signing_keys": [signing.as_str()],
        "default_permissions": nothing(),
        "type": "account",
        "version": VERSION,
    });
    jwt::encode(claims(ACCOUNT, account, now, nats), operator)
}

/// Limits of an account. A limit that is absent is 0 for NATS.
fn limits(connections: u32, mut more: Map<String, Value>) -> Value {
    let Value::Object(base) = json!({
        "subs": -1,
        "data": -1,
        "payload": PAYLOAD_MAX,
        "imports": 0,
        "exports": 0,
        "wildcards": false,
        // a JWT alone is no proof: its holder signs the server's challenge
        "disallow_bearer": true,
        "conn": connections,
        "leaf": 0,
    }) else {
        unreachable!("it is an object")
    };
    more.extend(base);
    Value::Object(more)
}

/// Rights of a user whose JWT names none: every JWT of a fleet names some.
fn nothing() -> Value {
    json!({ "pub": { "deny": [">"] }, "sub": { "deny": [">"] } })
}

/// A verified JWT of the fleet's account: who is revoked.
#[derive(Clone, Debug)]
pub struct AccountJwt {
    claims: Claims<Value>,
    revoked: BTreeMap<String, UnixTime>,
}

/// Why somebody cannot be revoked at the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevokeError {
    /// The list is full.
    #[error(
        "the server's list of revocations is full ({REVOCATIONS_MAX}); entries leave it when the revoked JWTs have expired. The Oracle refuses \
         this member all the same"
    )]
    Full,
}

impl AccountJwt {
    /// Reads an account's JWT that one of the operator's signing keys signed.
    ///
    /// # Errors
    /// Why it is not accepted.
    pub fn read(text: &str, account: &Nkey, operators: &[Nkey]) -> Result<AccountJwt, JwtError> {
        let claims: Claims<Value> = jwt::decode(text.trim(), operators, ACCOUNT_MAX)?;
        if claims.nats["type"] != "account" {
            return Err(JwtError::Claim("type"));
        }
        if claims.sub != account.as_str() {
            return Err(JwtError::Claim("account"));
        }
        let revoked = match claims.nats.get("revocations") {
            None => BTreeMap::new(),
            Some(list) => serde_json::from_value(list.clone()).map_err(|_| JwtError::Claim("list of revocations"))?,
        };
        Ok(AccountJwt { claims, revoked })
    }

    /// Since when this key's JWTs are not accepted: those issued until then.
    pub fn revoked(&self, key: &Nkey) -> Option<UnixTime> {
        self.revoked.get(key.as_str()).copied()
    }

    /// Refuses this key's JWTs that were issued until `now`, and forgets revocations of JWTs that have all expired: none is valid for longer
    /// than `lifetime` seconds. Returns the account's new JWT for the server.
    ///
    /// # Errors
    /// [`RevokeError::Full`].
    pub fn revoke(
        &mut self,
        key: &Nkey,
        operator: &SecretNkey,
        now: UnixTime,
        lifetime: u64,
    ) -> Result<String, RevokeError> {
        self.revoked.retain(|_, at| at.saturating_add(lifetime) >= now);
        if self.revoked.len() >= REVOCATIONS_MAX && !self.revoked.contains_key(key.as_str()) {
            return Err(RevokeError::Full);
        }
        self.revoked.insert(key.to_string(), now);
        self.claims.nats["revocations"] = json!(self.revoked);
        // the server keeps the JWT that was issued last
        self.claims.iat = now.max(self.claims.iat.saturating_add(1));
        Ok(jwt::encode(self.claims.clone(), operator))
    }
}
