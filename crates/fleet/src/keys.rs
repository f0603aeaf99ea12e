//! The Oracle's CUE keys that a machine trusts, and how they change.

use crate::random;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use ed25519_dalek::{SIGNATURE_LENGTH, Signature, Signer as _, SigningKey, VerifyingKey};
use std::fmt::Write as _;
use std::io;

/// Most keys that are valid at once.
pub const KEYS_MAX: usize = 2;
/// Most statements that are kept, so that a machine that was off for so many changes of keys still follows.
pub const STATEMENTS_MAX: usize = 16;
/// Prefix of what a statement's signature covers.
const DOMAIN: &[u8] = b"opentcp keys\0";
/// The line of a file that holds the number of the last change.
const NUMBER: &str = "# change ";

/// Why a text holds no keys, or why they cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// A line is no key.
    #[error("line {0} is not an Ed25519 public key of 64 hexadecimal digits")]
    Line(usize),
    /// None or too many.
    #[error("{0} keys: one, or two during a rotation")]
    Count(usize),
    /// Not a statement.
    #[error("not a statement of keys: {0}")]
    Statement(&'static str),
    /// Not the secret that the public keys name.
    #[error("the secret key is not one of the {0} public keys beside it")]
    Foreign(usize),
    /// A rotation has begun already.
    #[error("two keys are valid already: end that rotation first (`opentcp fleet rotate-key --finish`)")]
    Begun,
    /// No rotation has begun.
    #[error("one key is valid, so there is no rotation to finish: begin one (`opentcp fleet rotate-key`)")]
    NotBegun,
}

/// The Oracle's public keys: what a machine trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRing {
    /// How many changes there were.
    pub change: u64,
    /// One key, or two.
    keys: Vec<[u8; 32]>,
}

/// The Oracle's signed word that from now on these keys are valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    ring: KeyRing,
    signature: [u8; SIGNATURE_LENGTH],
}

impl KeyRing {
    /// One key, before any change.
    ///
    /// # Errors
    /// It is no key.
    pub fn new(key: [u8; 32]) -> Result<KeyRing, KeysError> {
        if is_key(&key) { Ok(KeyRing { change: 0, keys: vec![key] }) } else { Err(KeysError::Line(1)) }
    }

    /// From the file `oracle.pub`: a key a line, and the number of the last change.
    ///
    /// # Errors
    /// A line is no key; there is none, or more than two.
    pub fn parse(text: &str) -> Result<KeyRing, KeysError> {
        let mut ring = KeyRing { change: 0, keys: Vec::new() };
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if let Some(number) = line.strip_prefix(NUMBER) {
                ring.change = number.parse().map_err(|_| KeysError::Line(at + 1))?;
            } else if !line.is_empty() && !line.starts_with('#') {
                ring.keys.push(key_of(line).ok_or(KeysError::Line(at + 1))?);
            }
            if ring.keys.len() > KEYS_MAX {
                break;
            }
        }
        if ring.keys.is_empty() || ring.keys.len() > KEYS_MAX {
            return Err(KeysError::Count(ring.keys.len()));
        }
        Ok(ring)
    }

    /// The text of `oracle.pub`.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.change > 0 {
            writeln!(text, "{NUMBER}{}", self.change).expect("writing to a string");
        }
        for key in &self.keys {
            writeln!(text, "{}", HEXLOWER.encode(key)).expect("writing to a string");
        }
        text
    }

    /// The keys; while one replaces another, the one that signs comes first.
    pub fn keys(&self) -> &[[u8; 32]] {
        &self.keys
    }

    /// Takes the statements that follow from what is trusted already, in their order; others are ignored. Returns whether there were any.
    pub fn take(&mut self, statements: &[Statement]) -> bool {
        let mut changed = false;
        for statement in statements {
            if statement.ring.change > self.change && self.signed(statement) {
                *self = statement.ring.clone();
                changed = true;
            }
        }
        changed
    }

    fn signed(&self, statement: &Statement) -> bool {
        let (bytes, signature) = (statement.ring.signed_part(), Signature::from_bytes(&statement.signature));
        let by = |key: &[u8; 32]| {
            VerifyingKey::from_bytes(key).is_ok_and(|key| key.verify_strict(&bytes, &signature).is_ok())
        };
        self.keys.iter().any(by)
    }

    fn signed_part(&self) -> Vec<u8> {
        [DOMAIN, &self.change.to_le_bytes(), self.keys.as_flattened()].concat()
    }

    fn state(self, by: &SigningKey) -> Statement {
        let signature = by.sign(&self.signed_part()).to_bytes();
        Statement { ring: self, signature }
    }
}

impl Statement {
    /// What is valid from now on.
    pub fn ring(&self) -> &KeyRing {
        &self.ring
    }

    /// One line: base64url of the number of the change (u64, little-endian), the keys and the signature.
    pub fn text(&self) -> String {
        let change = self.ring.change.to_le_bytes();
        BASE64URL_NOPAD.encode(&[&change, self.ring.keys.as_flattened(), &self.signature[..]].concat())
    }

    /// From that line. The signature is verified where the statement is taken.
    ///
    /// # Errors
    /// It is no statement.
    pub fn parse(line: &str) -> Result<Statement, KeysError> {
        if line.len() > 300 {
            return Err(KeysError::Statement("it is too long"));
        }
        let bytes = BASE64URL_NOPAD.decode(line.as_bytes()).map_err(|_| KeysError::Statement("not base64url"))?;
        let cut = KeysError::Statement("a part is missing");
        let (body, signature) = bytes.split_last_chunk::<SIGNATURE_LENGTH>().ok_or(cut.clone())?;
        let (change, keys) = body.split_first_chunk::<8>().ok_or(cut.clone())?;
        let (keys, rest) = keys.as_chunks::<32>();
        if !rest.is_empty() || keys.is_empty() || keys.len() > KEYS_MAX {
            return Err(cut);
        }
        if !keys.iter().all(is_key) {
            return Err(KeysError::Statement("one of its keys is none"));
        }
        let ring = KeyRing { change: u64::from_le_bytes(*change), keys: keys.to_vec() };
        Ok(Statement { ring, signature: *signature })
    }

    /// From a file of such lines; the last [`STATEMENTS_MAX`] count.
    ///
    /// # Errors
    /// A line is no statement.
    pub fn parse_all(text: &str) -> Result<Vec<Statement>, KeysError> {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(STATEMENTS_MAX)..];
        last.iter().map(|line| Statement::parse(line.trim())).collect()
    }
}

/// The Oracle's secret keys: the one that signs CUEs, and during a rotation the one that will.
pub struct OracleKeys {
    /// What agents are to trust.
    pub ring: KeyRing,
    /// The key that signs.
    pub current: [u8; 32],
    /// The key that replaces it.
    pub next: Option<[u8; 32]>,
}

impl OracleKeys {
    /// A first key.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn generate() -> io::Result<OracleKeys> {
        let current = random()?;
        let ring = KeyRing { change: 0, keys: vec![public(&current)] };
        Ok(OracleKeys { ring, current, next: None })
    }

    /// Makes the next key valid beside the current one. CUEs are signed with the current one until [`OracleKeys::finish`].
    ///
    /// # Errors
    /// [`KeysError::Begun`], [`KeysError::Foreign`].
    pub fn begin(&mut self, next: [u8; 32]) -> Result<Statement, KeysError> {
        self.check()?;
        if self.next.is_some() || self.ring.keys.len() > 1 {
            return Err(KeysError::Begun);
        }
        let keys = vec![public(&self.current), public(&next)];
        self.ring = KeyRing { change: self.ring.change + 1, keys };
        self.next = Some(next);
        Ok(self.ring.clone().state(&SigningKey::from_bytes(&self.current)))
    }

    /// Signs with the next key from now on; the one before is not valid any more.
    ///
    /// # Errors
    /// [`KeysError::NotBegun`], [`KeysError::Foreign`].
    pub fn finish(&mut self) -> Result<Statement, KeysError> {
        self.check()?;
        let next = self.next.take().ok_or(KeysError::NotBegun)?;
        self.current = next;
        self.ring = KeyRing { change: self.ring.change + 1, keys: vec![public(&next)] };
        Ok(self.ring.clone().state(&SigningKey::from_bytes(&next)))
    }

    /// Whether the secret keys are those of the ring.
    pub(crate) fn check(&self) -> Result<(), KeysError> {
        let own = |secret: &[u8; 32]| self.ring.keys.contains(&public(secret));
        let known = own(&self.current) && self.next.as_ref().is_none_or(own);
        if known { Ok(()) } else { Err(KeysError::Foreign(self.ring.keys.len())) }
    }
}

fn public(secret: &[u8; 32]) -> [u8; 32] {
    SigningKey::from_bytes(secret).verifying_key().to_bytes()
}

fn is_key(bytes: &[u8; 32]) -> bool {
    VerifyingKey::from_bytes(bytes).is_ok_and(|key| !key.is_weak())
}

/// The key of 64 hexadecimal digits.
pub(crate) fn key_of(text: &str) -> Option<[u8; 32]> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok()?;
    <[u8; 32]>::try_from(bytes).ok().filter(is_key)
}
