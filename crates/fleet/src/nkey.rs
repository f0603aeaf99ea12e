//! NATS's form of Ed25519 keys: 56 or 58 characters that begin with what they are for.

use crate::random;
use ed25519_dalek::{SIGNATURE_LENGTH, Signature, VerifyingKey};
use nkeys::{KeyPair, KeyPairType};
use std::fmt;
use std::io;

/// What a key is for; the first letter of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NkeyKind {
    /// `O`: signs accounts.
    Operator,
    /// `A`: signs users; an account's own key, and its signing keys.
    Account,
    /// `U`: a member, a token, an Oracle.
    User,
}

impl NkeyKind {
    fn of(prefix: &KeyPairType) -> Option<NkeyKind> {
        match prefix {
            KeyPairType::Operator => Some(NkeyKind::Operator),
            KeyPairType::Account => Some(NkeyKind::Account),
            KeyPairType::User => Some(NkeyKind::User),
            _ => None,
        }
    }

    fn pair_type(self) -> KeyPairType {
        match self {
            NkeyKind::Operator => KeyPairType::Operator,
            NkeyKind::Account => KeyPairType::Account,
            NkeyKind::User => KeyPairType::User,
        }
    }

    fn word(self) -> &'static str {
        match self {
            NkeyKind::Operator => "an operator's (O…)",
            NkeyKind::Account => "an account's (A…)",
            NkeyKind::User => "a user's (U…)",
        }
    }
}

/// Why a text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NkeyError {
    /// Its length, its characters or its checksum.
    #[error("not an nkey: its length, its letters or its checksum are wrong")]
    Shape,
    /// A key of another kind.
    #[error("not {} key", _0.word())]
    Kind(NkeyKind),
    /// No point of the curve, or one of low order, for which signatures of any message exist.
    #[error("these letters are not a public key")]
    Weak,
}

/// A public key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nkey {
    /// 56 letters and digits.
    text: String,
    raw: [u8; 32],
}

impl Nkey {
    /// From 56 letters and digits.
    ///
    /// # Errors
    /// It is no key of this kind.
    pub fn parse(text: &str, kind: NkeyKind) -> Result<Nkey, NkeyError> {
        let (prefix, raw) = nkeys::from_public_key(text).map_err(|_| NkeyError::Shape)?;
        if NkeyKind::of(&KeyPairType::from(prefix)) != Some(kind) || !text.starts_with(letter(kind)) {
            return Err(NkeyError::Kind(kind));
        }
        let key = VerifyingKey::from_bytes(&raw).map_err(|_| NkeyError::Weak)?;
        if key.is_weak() { Err(NkeyError::Weak) } else { Ok(Nkey { text: text.to_string(), raw }) }
    }

    /// A user's key from its 32 bytes.
    ///
    /// # Errors
    /// [`NkeyError::Weak`].
    pub fn user(raw: [u8; 32]) -> Result<Nkey, NkeyError> {
        let key = VerifyingKey::from_bytes(&raw).map_err(|_| NkeyError::Weak)?;
        if key.is_weak() { Err(NkeyError::Weak) } else { Ok(Nkey { text: encode(20 << 3, &raw), raw }) }
    }

    /// 56 letters and digits.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The 32 bytes of the key.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.raw
    }

    /// Whether this key signed these bytes.
    pub fn verifies(&self, bytes: &[u8], signature: &[u8]) -> bool {
        let Ok(signature) = <[u8; SIGNATURE_LENGTH]>::try_from(signature) else { return false };
        let Ok(key) = VerifyingKey::from_bytes(&self.raw) else { return false };
        key.verify_strict(bytes, &Signature::from_bytes(&signature)).is_ok()
    }
}

impl fmt::Display for Nkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Nkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn letter(kind: NkeyKind) -> char {
    match kind {
        NkeyKind::Operator => 'O',
        NkeyKind::Account => 'A',
        NkeyKind::User => 'U',
    }
}

/// NATS's text of a public key: base32 of the prefix, the key, and a CRC-16 (XMODEM), least significant byte first.
fn encode(prefix: u8, raw: &[u8; 32]) -> String {
    let mut bytes = vec![prefix];
    bytes.extend_from_slice(raw);
    let mut crc = 0_u16;
    for byte in &bytes {
        crc ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
        }
    }
    bytes.extend_from_slice(&crc.to_le_bytes());
    data_encoding::BASE32_NOPAD.encode(&bytes)
}

/// A secret key. Its `Debug` shows the public one.
#[derive(Clone)]
pub struct SecretNkey {
    pair: KeyPair,
    public: Nkey,
}

impl SecretNkey {
    /// A new key.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn generate(kind: NkeyKind) -> io::Result<SecretNkey> {
        Ok(SecretNkey::from_bytes(kind, random()?))
    }

    /// From 32 secret bytes.
    pub fn from_bytes(kind: NkeyKind, secret: [u8; 32]) -> SecretNkey {
        let pair = KeyPair::new_from_raw(kind.pair_type(), secret).expect("any 32 bytes are a secret key");
        let text = pair.public_key();
        let public = Nkey::parse(&text, kind).expect("a key's own public key is one");
        SecretNkey { pair, public }
    }

    /// From the 58 letters and digits of a seed.
    ///
    /// # Errors
    /// It is no seed of this kind.
    pub fn from_seed(seed: &str, kind: NkeyKind) -> Result<SecretNkey, NkeyError> {
        let (prefix, secret) = nkeys::decode_seed(seed.trim()).map_err(|_| NkeyError::Shape)?;
        if NkeyKind::of(&KeyPairType::from(prefix)) != Some(kind) || !seed.trim()[1..].starts_with(letter(kind)) {
            return Err(NkeyError::Kind(kind));
        }
        Ok(SecretNkey::from_bytes(kind, secret))
    }

    /// 58 letters and digits, for a file that only its owner reads.
    pub fn seed(&self) -> String {
        self.pair.seed().expect("a secret key has a seed")
    }

    /// The public key.
    pub fn public(&self) -> &Nkey {
        &self.public
    }

    /// The signature of these bytes.
    pub fn sign(&self, bytes: &[u8]) -> [u8; SIGNATURE_LENGTH] {
        let signature = self.pair.sign(bytes).expect("a secret key signs");
        signature.try_into().expect("an Ed25519 signature has 64 bytes")
    }
}

impl fmt::Debug for SecretNkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretNkey({})", self.public)
    }
}
