//! Who may send CUEs: the Oracle's key, and the agent's memory of what it has taken.

use crate::beacon::{Beacon, PERIOD};
use crate::cue::Cue;
use crate::wire::WireError;
use ed25519_dalek::{SIGNATURE_LENGTH, Signature, Signer as _, SigningKey, VerifyingKey};
use std::collections::{BTreeMap, BTreeSet};

/// Prefix of what is signed: a signature made for another purpose is not valid here.
const DOMAIN: &[u8] = b"opentcp cue\0";
/// Prefix of an answer to agents' questions, which no CUE has; the epoch, the questions, and the signature of all of it follow.
const ANSWER: &[u8] = b"opentcp answer\0";
/// Bytes of a question.
pub const QUESTION_BYTES: usize = 32;
/// Most questions in an answer.
pub const QUESTIONS_MAX: usize = 512;
/// Longest signed CUE, bytes: 64 names of 255 bytes and the rest.
pub const SIGNED_MAX: usize = 32 * 1024;
/// Most keys of the Oracle that are valid at once: while one replaces another, both are.
pub const KEYS_MAX: usize = 2;
/// Most CUEs of one epoch that an agent takes.
const TAKEN_MAX: usize = 1024;

/// A nonce: random bytes that prove an answer to be new.
pub type Question = [u8; QUESTION_BYTES];

/// The Oracle's secret key.
pub struct OracleKey(SigningKey);

/// Its public key, for agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// The Oracle's public keys: one, or two while one replaces the other. What any of them signed is the Oracle's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKeys(Vec<PublicKey>);

/// Why a text is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No line has a key.
    #[error("there is no key")]
    None,
    /// More keys than are ever valid at once.
    #[error("there are more than {KEYS_MAX} keys: two are valid while one replaces the other, and never more")]
    Many,
    /// Not 64 hexadecimal digits.
    #[error("a key is 64 hexadecimal digits")]
    Shape,
    /// Not a point of the curve, or one of low order, for which signatures of any message exist.
    #[error("these digits are not a public key")]
    Weak,
}

impl OracleKey {
    /// From 32 random bytes.
    pub fn from_secret(secret: [u8; 32]) -> OracleKey {
        OracleKey(SigningKey::from_bytes(&secret))
    }

    /// From what [`OracleKey::to_hex`] wrote.
    ///
    /// # Errors
    /// If the text is not a key.
    pub fn from_hex(text: &str) -> Result<OracleKey, KeyError> {
        from_hex(text).map(OracleKey::from_secret)
    }

    /// The secret key, for a file that only root reads.
    pub fn to_hex(&self) -> String {
        to_hex(&self.0.to_bytes())
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// The bytes to send: the CUE and its signature.
    pub fn sign(&self, cue: &Cue) -> Vec<u8> {
        let mut bytes = cue.to_bytes();
        let signature = self.0.sign(&signed_part(&bytes));
        bytes.extend_from_slice(&signature.to_bytes());
        bytes
    }

    /// The bytes of a beacon and their signature.
    pub fn beacon(&self, beacon: Beacon) -> Vec<u8> {
        let mut bytes = beacon.to_bytes();
        let signature = self.0.sign(&bytes);
        bytes.extend_from_slice(&signature.to_bytes());
        bytes
    }

    /// The answer to agents' questions: `epoch` and those before it were over when these came.
    pub fn answer(&self, epoch: u64, questions: &[Question]) -> Vec<u8> {
        let mut bytes = [ANSWER, &epoch.to_le_bytes(), questions.as_flattened()].concat();
        let signature = self.0.sign(&bytes);
        bytes.extend_from_slice(&signature.to_bytes());
        bytes
    }
}

impl PublicKey {
    /// From what [`PublicKey::to_hex`] wrote.
    ///
    /// # Errors
    /// If the text is not a key.
    pub fn from_hex(text: &str) -> Result<PublicKey, KeyError> {
        let key = VerifyingKey::from_bytes(&from_hex(text)?).map_err(|_| KeyError::Weak)?;
        if key.is_weak() { Err(KeyError::Weak) } else { Ok(PublicKey(key)) }
    }

    /// 64 digits.
    pub fn to_hex(&self) -> String {
        to_hex(self.0.as_bytes())
    }

    /// The CUE of signed bytes; its epoch and its hosts are not checked.
    ///
    /// # Errors
    /// If this key did not sign them, or they are not a CUE.
    pub fn open(&self, bytes: &[u8]) -> Result<Cue, CueError> {
        PublicKeys::from(*self).open(bytes)
    }
}

impl From<PublicKey> for PublicKeys {
    fn from(key: PublicKey) -> PublicKeys {
        PublicKeys(vec![key])
    }
}

impl PublicKeys {
    /// From the lines of a file, one key each; empty lines and those that begin with `#` hold none.
    ///
    /// # Errors
    /// A line is no key; no line is one; there are more than [`KEYS_MAX`].
    pub fn parse(text: &str) -> Result<PublicKeys, KeyError> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut keys = Vec::new();
        for line in lines {
            if keys.len() == KEYS_MAX {
                return Err(KeyError::Many);
            }
            keys.push(PublicKey::from_hex(line)?);
        }
        if keys.is_empty() { Err(KeyError::None) } else { Ok(PublicKeys(keys)) }
    }

    /// The keys.
    pub fn keys(&self) -> &[PublicKey] {
        &self.0
    }

    /// As [`PublicKey::open`], by any of these keys.
    ///
    /// # Errors
    /// If none of these keys signed them, or they are not a CUE.
    pub fn open(&self, bytes: &[u8]) -> Result<Cue, CueError> {
        if bytes.len() > SIGNED_MAX {
            return Err(CueError::Long(bytes.len()));
        }
        let (body, signature) = bytes.split_last_chunk::<SIGNATURE_LENGTH>().ok_or(CueError::Forged)?;
        if !self.signed(&signed_part(body), signature) {
            return Err(CueError::Forged);
        }
        Cue::from_bytes(body).map_err(CueError::Wire)
    }

    fn signed(&self, bytes: &[u8], signature: &[u8; SIGNATURE_LENGTH]) -> bool {
        let signature = Signature::from_bytes(signature);
        self.0.iter().any(|key| key.0.verify_strict(bytes, &signature).is_ok())
    }
}

fn signed_part(body: &[u8]) -> Vec<u8> {
    [DOMAIN, body].concat()
}

fn to_hex(bytes: &[u8; 32]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).expect("a nibble is a digit");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn from_hex(text: &str) -> Result<[u8; 32], KeyError> {
    let text = text.trim().as_bytes();
    let mut bytes = [0; 32];
    if text.len() != 64 {
        return Err(KeyError::Shape);
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let digit = |c: u8| char::from(c).to_digit(16).ok_or(KeyError::Shape);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Ok(bytes)
}

/// Why a CUE is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CueError {
    /// More bytes than a CUE has.
    #[error("it has {0} bytes; a CUE has at most {SIGNED_MAX}")]
    Long(usize),
    /// Not signed by the Oracle's key, or changed since.
    #[error("the Oracle's key did not sign these bytes: they are forged or corrupted")]
    Forged,
    /// Signed, but not of this format.
    #[error("it is signed, but not a CUE: {0}")]
    Wire(WireError),
    /// Of an epoch before one that was taken.
    #[error("it is of epoch {epoch}; epoch {highest} was taken already: it is replayed or late")]
    Old {
        /// Its epoch.
        epoch: u64,
        /// The highest seen.
        highest: u64,
    },
    /// Taken already.
    #[error("number {id} of epoch {epoch} was taken already: it is replayed")]
    Replayed {
        /// Its epoch.
        epoch: u64,
        /// Its number.
        id: u32,
    },
    /// More CUEs than an agent keeps, in an epoch or in force.
    #[error("more CUEs than an agent takes, in epoch {0}")]
    TooMany(u64),
    /// Its guard is not an expression that an agent can evaluate.
    #[error("its guard is wrong: {0}")]
    Guard(String),
    /// The Oracle has not yet answered with its epoch.
    #[error("it is of epoch {0}, and the Oracle has not answered yet which epochs are over: it may be replayed")]
    Unanswered(u64),
    /// It has a value that no policy can set.
    #[error("its {0} is out of range")]
    Setting(&'static str),
    /// Valid, for other hosts.
    #[error("it is for other hosts")]
    NotOurs,
}

/// Who an agent is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The host's name in the view.
    pub host: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// What an agent takes: signed by the Oracle, for this host, and each CUE once.
#[derive(Debug, Clone)]
pub struct Gate {
    keys: PublicKeys,
    identity: Identity,
    /// Epochs up to this were taken before the agent was restarted.
    stored: Option<u64>,
    /// The highest epoch since.
    current: Option<u64>,
    /// CUEs taken of it.
    taken: BTreeSet<u32>,
    /// The question that the Oracle has not answered.
    question: Option<Question>,
}

impl Gate {
    /// `stored` is what [`Gate::highest`] was before the agent was restarted: all of that epoch counts as taken, since which of its
    /// CUEs were taken is not stored, unless the Oracle answers that it is not over.
    pub fn new(keys: impl Into<PublicKeys>, identity: Identity, stored: Option<u64>) -> Gate {
        Gate { keys: keys.into(), identity, stored, current: None, taken: BTreeSet::new(), question: None }
    }

    /// Trusts these keys from now on, and no others. Epochs and CUEs that were taken stay taken.
    pub fn trust(&mut self, keys: PublicKeys) {
        self.keys = keys;
    }

    /// Takes nothing until the Oracle has answered this random question: an agent that heard of nothing for
    /// a while cannot know otherwise which CUEs are recorded ones.
    pub fn ask(&mut self, question: Question) {
        self.question = Some(question);
    }

    /// The question to send to the Oracle.
    pub fn question(&self) -> Option<Question> {
        self.question
    }

    /// Takes an answer; `None` if these bytes are not one.
    ///
    /// # Errors
    /// [`CueError::NotOurs`] of an answer to others, [`CueError::Forged`].
    pub fn answered(&mut self, bytes: &[u8]) -> Option<Result<(), CueError>> {
        let (body, signature) = bytes.split_last_chunk::<SIGNATURE_LENGTH>()?;
        let (epoch, questions) = body.strip_prefix(ANSWER)?.split_first_chunk::<8>()?;
        let (questions, _) = questions.as_chunks::<QUESTION_BYTES>();
        if self.question.is_none_or(|own| !questions.contains(&own)) {
            return Some(Err(CueError::NotOurs));
        }
        if !self.keys.signed(body, signature) {
            return Some(Err(CueError::Forged));
        }
        self.question = None;
        let over = u64::from_le_bytes(*epoch);
        // A restarted agent has lost what it set by the CUEs of the epoch that it had stored. The Oracle says, now, that this epoch is
        // not over: they may come again. They are the decision that is in force, so none is taken after a newer one.
        let is_in_force = self.current.is_none() && over.checked_add(1).is_some_and(|next| self.stored == Some(next));
        self.stored = if is_in_force { Some(over) } else { self.stored.max(Some(over)) };
        Some(Ok(()))
    }

    /// Takes a beacon; `None` if these bytes are not one. CUEs of earlier epochs are too old from then on.
    ///
    /// # Errors
    /// As [`Gate::take`]. A beacon of the current epoch is taken as often as it comes.
    pub fn heard(&mut self, bytes: &[u8]) -> Option<Result<Beacon, CueError>> {
        let (body, signature) = bytes.split_last_chunk::<SIGNATURE_LENGTH>()?;
        let fields = body.strip_prefix(PERIOD)?;
        if !self.keys.signed(body, signature) {
            return Some(Err(CueError::Forged));
        }
        let beacon = match Beacon::from_bytes(fields) {
            Ok(beacon) => beacon,
            Err(error) => return Some(Err(CueError::Wire(error))),
        };
        // a restarted agent takes no CUE of the epoch that it had stored, but may know when that began
        let is_stored = self.question.is_none() && self.highest() == Some(beacon.epoch);
        let begun = if is_stored { Ok(()) } else { self.begin(beacon.epoch) };
        Some(begun.map(|()| beacon))
    }

    /// Makes `epoch` the current one, unless it is over.
    fn begin(&mut self, epoch: u64) -> Result<(), CueError> {
        if self.question.is_some() {
            return Err(CueError::Unanswered(epoch));
        }
        let over = self.stored.filter(|stored| epoch <= *stored).or(self.current.filter(|current| epoch < *current));
        if let Some(highest) = over {
            return Err(CueError::Old { epoch, highest });
        }
        if self.current != Some(epoch) {
            self.current = Some(epoch);
            self.taken.clear();
        }
        Ok(())
    }

    /// The highest epoch seen, to be stored; `None` before the first.
    pub fn highest(&self) -> Option<u64> {
        self.current.max(self.stored)
    }

    /// Takes a CUE.
    ///
    /// # Errors
    /// Why not. Only the Oracle's own CUEs, also those for other hosts, raise the highest epoch: a CUE that was
    /// delayed is too old once a later one is known.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Cue, CueError> {
        let cue = self.keys.open(bytes)?;
        let (epoch, id) = (cue.epoch, cue.id);
        self.begin(epoch)?;
        if !cue.is_for(&self.identity.host, &self.identity.labels) {
            return Err(CueError::NotOurs);
        }
        if self.taken.contains(&id) {
            return Err(CueError::Replayed { epoch, id });
        }
        if self.taken.len() >= TAKEN_MAX {
            return Err(CueError::TooMany(epoch));
        }
        self.taken.insert(id);
        Ok(cue)
    }
}
