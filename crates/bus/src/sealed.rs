//! Sealed messages: what a member of the fleet sends to the Oracle over a server that neither of them trusts.
//!
//! | bytes | what |
//! |---|---|
//! | 15 | `opentcp sealed\0` |
//! | 1 | version: 1 |
//! | 32 | the member's public key |
//! | 8 | session: random, a new one for each process |
//! | 8 | counter, which rises within a session |
//! | 8 | the last epoch that the member has heard of; 2^64 - 1: none |
//! | 4 | length of the body |
//! | ... | the body |
//! | ... | fields that a later program may add: signed, and not read here |
//! | 64 | Ed25519 signature of all before, with the byte 0xff in front |
//!
//! Numbers are little-endian. The same key signs the server's nonces when a member connects, and it is the server that chooses those. A nonce is
//! text, and no text contains 0xff (RFC 3629, section 1): so no signature of a nonce is one of a message.

use crate::MESSAGE_MAX;
use ed25519_dalek::{SIGNATURE_LENGTH, Signature, Signer as _, SigningKey, VerifyingKey};

/// A member's public key.
pub type Key = [u8; 32];

/// What every sealed message begins with.
pub const SEALED: &[u8] = b"opentcp sealed\0";
/// The version that is written and read here.
pub const VERSION: u8 = 1;
/// Bytes before the body.
const HEAD: usize = SEALED.len() + 1 + 32 + 8 + 8 + 8 + 4;
/// Bytes that a later program may add after the body.
const ADDED_MAX: usize = 512;
/// Longest sealed message, bytes.
pub const SEALED_MAX: usize = HEAD + MESSAGE_MAX + ADDED_MAX + SIGNATURE_LENGTH;
/// In the place of an epoch, of which there are fewer than 2^63.
const NONE: u64 = u64::MAX;
/// Stands in front of what is signed.
const NO_TEXT: u8 = 0xff;

/// Seals a member's messages.
pub struct Sealer {
    key: SigningKey,
    session: u64,
    counter: u64,
}

impl Sealer {
    /// A new session: `session` is random. `secret` is the seed of the member's nkey.
    pub fn new(secret: [u8; 32], session: [u8; 8]) -> Sealer {
        Sealer { key: SigningKey::from_bytes(&secret), session: u64::from_le_bytes(session), counter: 0 }
    }

    /// The public key.
    pub fn key(&self) -> Key {
        self.key.verifying_key().to_bytes()
    }

    /// The message to send: `body`, of a member that has heard of `epoch` at last.
    pub fn seal(&mut self, epoch: Option<u64>, body: &[u8]) -> Vec<u8> {
        self.counter += 1;
        let mut bytes = Vec::with_capacity(1 + HEAD + body.len() + SIGNATURE_LENGTH);
        bytes.push(NO_TEXT);
        bytes.extend_from_slice(SEALED);
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.key());
        bytes.extend_from_slice(&self.session.to_le_bytes());
        bytes.extend_from_slice(&self.counter.to_le_bytes());
        bytes.extend_from_slice(&epoch.unwrap_or(NONE).to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(body);
        let signature = self.key.sign(&bytes);
        bytes.extend_from_slice(&signature.to_bytes());
        bytes.remove(0);
        bytes
    }
}

/// What a sealed message says, once its signature is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened<'a> {
    /// Of the sender's process.
    pub session: u64,
    /// Within that session.
    pub counter: u64,
    /// The last epoch that the sender had heard of.
    pub epoch: Option<u64>,
    /// The message itself.
    pub body: &'a [u8],
}

/// Why a message is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Too short, too long, or with lengths that do not fit.
    #[error("not a sealed message")]
    Malformed,
    /// Of a version that is not read here.
    #[error("a sealed message of version {0}; version {VERSION} is read here")]
    Version(u8),
    /// It names another sender than the one from whom it came.
    #[error("a message of another member")]
    Foreign,
    /// The member's key did not sign these bytes.
    #[error("the member's key did not sign these bytes")]
    Forged,
}

/// Opens what came from the member `from`.
///
/// # Errors
/// It is not a sealed message of this member. What costs least is checked first.
pub fn open<'a>(bytes: &'a [u8], from: &Key) -> Result<Opened<'a>, SealError> {
    let rest = bytes.strip_prefix(SEALED).filter(|_| bytes.len() <= SEALED_MAX).ok_or(SealError::Malformed)?;
    let (version, rest) = rest.split_first().ok_or(SealError::Malformed)?;
    if *version != VERSION {
        return Err(SealError::Version(*version));
    }
    let (signed, signature) = bytes.split_last_chunk::<SIGNATURE_LENGTH>().ok_or(SealError::Malformed)?;
    let (key, rest) = rest.split_first_chunk::<32>().ok_or(SealError::Malformed)?;
    let (numbers, rest) = rest.split_first_chunk::<24>().ok_or(SealError::Malformed)?;
    let (length, rest) = rest.split_first_chunk::<4>().ok_or(SealError::Malformed)?;
    let length = u32::from_le_bytes(*length) as usize;
    // what is left holds the body, fields that are not known here, and the signature
    let added = rest.len().checked_sub(SIGNATURE_LENGTH).and_then(|left| left.checked_sub(length));
    if length > MESSAGE_MAX || added.is_none_or(|added| added > ADDED_MAX) {
        return Err(SealError::Malformed);
    }
    if key != from {
        return Err(SealError::Foreign);
    }
    let verifying = VerifyingKey::from_bytes(key).map_err(|_| SealError::Forged)?;
    let signed = [&[NO_TEXT], signed].concat();
    verifying.verify_strict(&signed, &Signature::from_bytes(signature)).map_err(|_| SealError::Forged)?;
    let [session, counter, epoch] = [0, 8, 16].map(|at| {
        let number = numbers[at..].first_chunk::<8>().expect("there are three numbers of 8 bytes");
        u64::from_le_bytes(*number)
    });
    Ok(Opened { session, counter, epoch: (epoch != NONE).then_some(epoch), body: &rest[..length] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer() -> Sealer {
        Sealer::new([7; 32], [1, 0, 0, 0, 0, 0, 0, 0])
    }

    #[test]
    fn what_was_sealed_is_opened() {
        let mut sealer = sealer();
        let key = sealer.key();
        let body = vec![b'x'; MESSAGE_MAX];
        for (counter, epoch) in (1..).zip([None, Some(0), Some(u64::MAX / 2)]) {
            let sealed = sealer.seal(epoch, &body);
            assert!(sealed.len() <= SEALED_MAX);
            assert_eq!(open(&sealed, &key), Ok(Opened { session: 1, counter, epoch, body: &body }));
        }
        assert_eq!(open(&sealer.seal(None, b""), &key).unwrap().body, b"");
    }

    #[test]
    fn no_byte_can_be_changed_and_none_left_out() {
        let mut sealer = sealer();
        let (key, sealed) = (sealer.key(), sealer.seal(Some(5), b"a body"));
        for at in 0..sealed.len() {
            for bit in [1, 0x80] {
                let mut changed = sealed.clone();
                changed[at] ^= bit;
                assert!(open(&changed, &key).is_err(), "byte {at}");
            }
            assert!(open(&sealed[..at], &key).is_err(), "cut at {at}");
        }
        let longer = [&sealed[..], &[0]].concat();
        assert!(open(&longer, &key).is_err());
    }

    #[test]
    fn why_it_is_not_opened_is_distinguished() {
        let mut sealer = sealer();
        let (key, sealed) = (sealer.key(), sealer.seal(Some(5), b"a body"));
        let at = |position: usize, value: u8| {
            let mut changed = sealed.clone();
            changed[position] = value;
            changed
        };
        assert_eq!(open(b"opentcp sealed\0", &key), Err(SealError::Malformed));
        assert_eq!(open(b"{}", &key), Err(SealError::Malformed));
        assert_eq!(open(&at(SEALED.len(), 2), &key), Err(SealError::Version(2)));
        assert_eq!(open(&sealed, &[9; 32]), Err(SealError::Foreign));
        assert_eq!(open(&at(HEAD, b'A'), &key), Err(SealError::Forged));
        // a length beyond the message, and one beyond every message
        assert_eq!(open(&at(HEAD - 3, 1), &key), Err(SealError::Malformed));
        assert_eq!(open(&at(HEAD - 1, 255), &key), Err(SealError::Malformed));
    }

    /// Signs as a later program would: with more after the body.
    fn later(sealed: &[u8], added: &[u8]) -> Vec<u8> {
        let (signed, _) = sealed.split_last_chunk::<SIGNATURE_LENGTH>().unwrap();
        let signed = [signed, added].concat();
        let signature = SigningKey::from_bytes(&[7; 32]).sign(&[&[NO_TEXT], &signed[..]].concat());
        [&signed[..], &signature.to_bytes()].concat()
    }

    #[test]
    fn fields_of_a_later_program_are_signed_and_not_read() {
        let mut sealer = sealer();
        let (key, sealed) = (sealer.key(), sealer.seal(Some(5), b"a body"));
        assert_eq!(open(&later(&sealed, &[1; ADDED_MAX]), &key), open(&sealed, &key));
        assert_eq!(open(&later(&sealed, &[1; ADDED_MAX + 1]), &key), Err(SealError::Malformed));
    }

    #[test]
    fn a_signature_of_a_servers_nonce_is_none_of_a_message() {
        let mut sealer = sealer();
        let (key, sealed) = (sealer.key(), sealer.seal(Some(5), b"apply"));
        let (signed, _) = sealed.split_last_chunk::<SIGNATURE_LENGTH>().unwrap();
        // what a member's client does with a nonce: it signs the nonce's own bytes
        let signature = SigningKey::from_bytes(&[7; 32]).sign(signed);
        assert_eq!(open(&[signed, &signature.to_bytes()].concat(), &key), Err(SealError::Forged));
    }
}
