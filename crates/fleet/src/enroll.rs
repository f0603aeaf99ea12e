//! How a machine joins, and renews its JWT: what it sends, and what the Oracle answers.

use crate::identity::{Fleet, Identity};
use crate::jwt::JwtError;
use crate::keys::{KeyRing, STATEMENTS_MAX, Statement};
use crate::member::{NAME_MAX, NameError, check_name};
use crate::nkey::{Nkey, NkeyKind, SecretNkey};
use crate::oracle::OracleIdentity;
use crate::registry::{Entry, LIFETIME_S, MEMBERS_MAX, Registry, Revoked, reported};
use crate::token::Token;
use crate::user::JWT_MAX;
use crate::{Card, Kind, Member, Role, UnixTime, User};
use serde::{Deserialize, Serialize};

/// A member's message that asks for a new JWT and for changes of the Oracle's keys: this, and nothing else.
pub const RENEW: &[u8] = b"opentcp renew\0";
/// What its answer begins with; the JSON of an [`Answer`] follows.
pub const RENEWED: &[u8] = b"opentcp renewed\0";
/// What a request of enrolment begins with. JSON follows, and two signatures of all before them: by the machine's key and by the token's.
const ENROLL: &[u8] = b"opentcp enroll\0";
/// What its answer begins with; the JSON of an [`Answer`] follows.
const ENROLLED: &[u8] = b"opentcp enrolled\0";
/// Bytes of a signature.
const SIGNATURE: usize = 64;
/// Longest request, bytes.
pub const REQUEST_MAX: usize = JWT_MAX + 1024;
/// Longest answer, bytes.
pub const ANSWER_MAX: usize = JWT_MAX + STATEMENTS_MAX * 320 + 1024;

/// What a machine asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// The token's JWT.
    ticket: String,
    /// The machine's own public key.
    key: String,
    /// The name that it is to have.
    name: String,
}

/// What the Oracle answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is a member.
    Granted {
        /// Its JWT; none if the one that it has is not to be renewed yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        jwt: Option<String>,
        /// The changes of the Oracle's keys, each a line of [`Statement::text`].
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        statements: Vec<String>,
    },
    /// It is not.
    Refused(Refusal),
}

/// Why a machine is not a member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Not a request.
    #[error("the request is not understood: {0}")]
    Request(String),
    /// Its ticket.
    #[error("the token is {0}; make a new one (`opentcp fleet token`)")]
    Ticket(String),
    /// A signature of the machine's key or of the token's.
    #[error("the request is not signed by {0}: it is forged or changed")]
    Proof(String),
    /// Its name.
    #[error("{0}")]
    Name(String),
    /// A name that the token does not allow.
    #[error("the token does not allow the name {name}, but: {}", allowed.join(", "))]
    NotAllowed {
        /// The name.
        name: String,
        /// The names that it allows; the first few.
        allowed: Vec<String>,
    },
    /// Another machine has the name.
    #[error(
        "the name {name} is taken by another {role} ({key}). If that machine is gone, run `opentcp fleet revoke {name}` first; else choose another \
         name"
    )]
    Taken {
        /// The name.
        name: String,
        /// The role.
        role: Role,
        /// Whose it is.
        key: String,
    },
    /// Somebody else reports for one of its hosts.
    #[error(
        "the {role} {name} reports for the host {host} already: revoke it first (`opentcp fleet revoke {name}`), or leave the host out"
    )]
    Reported {
        /// The host.
        host: String,
        /// Who reports.
        name: String,
        /// Its role.
        role: Role,
    },
    /// The key was revoked.
    #[error("this machine's key was revoked: remove its identity folder and enrol with a new key")]
    Revoked,
    /// The key has another role or name.
    #[error("this machine's key belongs to the {role} {name}: a key has one name and one role; enrol with a new key")]
    Other {
        /// Its name.
        name: String,
        /// Its role.
        role: Role,
    },
    /// The ticket has been used as often as it may.
    #[error("the token has been used {0} times, as often as it may; make a new one (`opentcp fleet token`)")]
    Used(u32),
    /// Not a member (any more).
    #[error("this machine is {0}; enrol it with a new token (`opentcp fleet token`)")]
    NotMember(String),
    /// No room.
    #[error("the fleet has {MEMBERS_MAX} members, and no more")]
    Full,
}

/// Why an answer is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Not an answer.
    #[error("the answer is not understood: {0}")]
    Shape(String),
    /// Refused.
    #[error("the Oracle refused: {0}")]
    Refused(Refusal),
    /// The JWT is not what was asked for.
    #[error("the answer's JWT is {0}: the server or the Oracle is not this fleet's")]
    Jwt(JwtError),
    /// The JWT is somebody else's.
    #[error("the answer's JWT is not this machine's: its {0} differs")]
    Other(&'static str),
}

/// A machine's request of enrolment, for [`crate::rights::ENROLL`]. A server that sees it can do nothing with it.
///
/// # Errors
/// The name is none, or the token does not allow it.
pub fn request(token: &Token, machine: &SecretNkey, name: &str) -> Result<Vec<u8>, Refusal> {
    allowed(&token.ticket.user.member, name)?;
    let request =
        Request { ticket: token.ticket.jwt.clone(), key: machine.public().to_string(), name: name.to_string() };
    let mut bytes = ENROLL.to_vec();
    bytes.extend(serde_json::to_vec(&request).expect("it is plain data"));
    let signature = machine.sign(&bytes);
    bytes.extend_from_slice(&signature);
    let signature = token.seed.sign(&bytes);
    bytes.extend_from_slice(&signature);
    Ok(bytes)
}

/// Whether a ticket allows a name.
fn allowed(ticket: &Member, name: &str) -> Result<(), Refusal> {
    check_name(name).map_err(|error: NameError| Refusal::Name(error.to_string()))?;
    // an enforcer's hosts are those that it reports for; its own name is free
    if ticket.role == Role::Enforcer || ticket.hosts.is_empty() || ticket.hosts.iter().any(|host| host == name) {
        return Ok(());
    }
    let allowed = ticket.hosts.iter().take(8).cloned().collect();
    Err(Refusal::NotAllowed { name: name.to_string(), allowed })
}

/// What an Oracle is to do about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The key and the value that are to be put into the bucket of members, before the answer is sent.
    pub record: Option<(String, String)>,
    /// The bytes of the answer.
    pub answer: Vec<u8>,
    /// The user of the token that signed a request of enrolment. An answer may go to its inbox and nowhere else; `None`: nobody has proved
    /// to have asked, so there is nobody to answer.
    pub asker: Option<Nkey>,
    /// Who joined or renewed, or why not: for the log.
    pub result: Result<Member, Refusal>,
}

/// A request of enrolment whose token has signed it.
struct Asked<'a> {
    ticket: Card,
    /// The machine's key, as it is written there.
    key: String,
    /// The name that the machine is to have.
    name: String,
    /// What the machine has signed, and its signature.
    signed: &'a [u8],
    by_machine: &'a [u8; SIGNATURE],
}

/// Answers enrolments and renewals, with the account's signing key.
pub struct Authority<'a> {
    /// Whose.
    pub oracle: &'a OracleIdentity,
}

impl Authority<'_> {
    /// Answers a request of enrolment.
    pub fn enroll(&self, registry: &Registry, bytes: &[u8], now: UnixTime) -> Outcome {
        let asked = self.opened(bytes);
        let asker = asked.as_ref().ok().map(|asked| asked.ticket.user.key.clone());
        let granted = asked.and_then(|asked| self.admit(registry, asked, now));
        Outcome { asker, ..self.outcome(ENROLLED, granted.map(|card| (card.user.member.clone(), Some(card)))) }
    }

    /// The text of an entry of the register as it is known here, to be put where the bucket has something else; `None`: it is not known.
    pub fn known_text(&self, registry: &Registry, key: &Nkey) -> Option<String> {
        Some(match registry.entry(key)? {
            Entry::Revoked(revoked) => revoked.text(&self.oracle.signing),
            Entry::Member(enrolled) => {
                let member = Member::clone(&enrolled.member);
                let user = User {
                    ticket: enrolled.ticket.clone(),
                    ..User::member(key.clone(), member, enrolled.issued, enrolled.expires)
                };
                self.sign(user).jwt
            }
        })
    }

    /// Answers a member's [`RENEW`], whose key was verified.
    pub fn renew(&self, registry: &Registry, key: &Nkey, now: UnixTime) -> Outcome {
        let enrolled = match registry.member(key, now) {
            Ok(enrolled) => enrolled,
            Err(why) => return self.outcome(RENEWED, Err(Refusal::NotMember(why.to_string()))),
        };
        let user = User {
            ticket: enrolled.ticket.clone(),
            ..User::member(key.clone(), Member::clone(&enrolled.member), now, now.saturating_add(LIFETIME_S))
        };
        let due = now >= enrolled.issued.saturating_add(enrolled.expires.saturating_sub(enrolled.issued) / 2);
        self.outcome(RENEWED, Ok((Member::clone(&enrolled.member), due.then(|| self.sign(user)))))
    }

    /// Revokes a member: what is to be put into the bucket. The server is informed by [`crate::AccountJwt::revoke`].
    ///
    /// # Errors
    /// It is none.
    pub fn revoke(&self, registry: &Registry, key: &Nkey, now: UnixTime) -> Result<(String, String), Refusal> {
        let Some(Entry::Member(enrolled)) = registry.entry(key) else {
            return Err(Refusal::NotMember("not enrolled, or revoked already".to_string()));
        };
        let revoked = Revoked {
            key: key.to_string(),
            name: enrolled.member.name.clone(),
            role: enrolled.member.role,
            at: now,
            ticket: enrolled.ticket.clone(),
        };
        Ok((key.to_string(), revoked.text(&self.oracle.signing)))
    }

    /// Revokes a token by its ticket: its key, and what is to be put into the bucket. Who has enrolled with it stays.
    ///
    /// # Errors
    /// It is no ticket of this fleet.
    pub fn revoke_token(&self, ticket: &str, now: UnixTime) -> Result<(Nkey, String), Refusal> {
        let User { key, member, .. } = self.ticket(ticket)?.user;
        let revoked = Revoked { key: key.to_string(), name: member.name, role: member.role, at: now, ticket: None };
        Ok((key, revoked.text(&self.oracle.signing)))
    }

    fn admit(&self, registry: &Registry, asked: Asked<'_>, now: UnixTime) -> Result<Card, Refusal> {
        let (ticket, key) = (&asked.ticket.user, self.machine(&asked, now)?);
        if registry.entry(&ticket.key).is_some() {
            return Err(Refusal::Ticket("revoked".to_string()));
        }
        let granted = &ticket.member;
        allowed(granted, &asked.name)?;
        let hosts = if granted.role == Role::Enforcer { granted.hosts.clone() } else { Vec::new() };
        let member = Member { name: asked.name, role: granted.role, hosts };
        free(registry, ticket, &member, &key, now)?;
        let user =
            User { ticket: ticket.ticket.clone(), ..User::member(key, member, now, now.saturating_add(LIFETIME_S)) };
        Ok(self.sign(user))
    }

    /// A request that is signed by the key of a token of this fleet, whether that has expired or not.
    fn opened<'a>(&self, bytes: &'a [u8]) -> Result<Asked<'a>, Refusal> {
        let wrong = |what: &str| Refusal::Request(what.to_string());
        if bytes.len() > REQUEST_MAX {
            return Err(wrong("it is too long"));
        }
        let (signed_twice, by_token) = bytes.split_last_chunk::<SIGNATURE>().ok_or(wrong("it is cut"))?;
        let (signed, by_machine) = signed_twice.split_last_chunk::<SIGNATURE>().ok_or(wrong("it is cut"))?;
        let json = signed.strip_prefix(ENROLL).ok_or(wrong("it is of another kind or version"))?;
        let request: Request = serde_json::from_slice(json).map_err(|_| wrong("its contents are wrong"))?;
        let ticket = self.ticket(&request.ticket)?;
        if !ticket.user.key.verifies(signed_twice, by_token) {
            return Err(Refusal::Proof("the token's key".to_string()));
        }
        Ok(Asked { ticket, key: request.key, name: request.name, signed, by_machine })
    }

    /// A ticket of this fleet, whether it has expired or not.
    fn ticket(&self, jwt: &str) -> Result<Card, Refusal> {
        let fleet = &self.oracle.identity.fleet;
        let ticket = Card::read(jwt, &fleet.account, &fleet.signing);
        let ticket = ticket.map_err(|error| Refusal::Ticket(error.to_string()))?;
        if ticket.user.kind != Kind::Ticket || ticket.user.member.role == Role::Oracle {
            return Err(Refusal::Ticket("the JWT of a member, which is none".to_string()));
        }
        Ok(ticket)
    }

    /// The key of the machine that asks, if it may be one's.
    fn machine(&self, asked: &Asked<'_>, now: UnixTime) -> Result<Nkey, Refusal> {
        let wrong = |what: &str| Refusal::Request(what.to_string());
        let ticket = &asked.ticket.user;
        if ticket.expires <= now {
            return Err(Refusal::Ticket(JwtError::Expired { ago: now - ticket.expires }.to_string()));
        }
        let key = Nkey::parse(&asked.key, NkeyKind::User).map_err(|_| wrong("the machine's key is none"))?;
        if !key.verifies(asked.signed, asked.by_machine) {
            return Err(Refusal::Proof("the machine's key".to_string()));
        }
        if key == ticket.key || key == self.oracle.identity.card.user.key {
            return Err(wrong("a machine needs a key of its own"));
        }
        if asked.name.len() > NAME_MAX {
            return Err(wrong("the name is too long"));
        }
        Ok(key)
    }

    fn sign(&self, user: User) -> Card {
        user.issue(&self.oracle.identity.fleet.account, &self.oracle.signing)
    }

    fn outcome(&self, prefix: &[u8], granted: Result<(Member, Option<Card>), Refusal>) -> Outcome {
        let (record, answer, result) = match granted {
            Err(refusal) => (None, Answer::Refused(refusal.clone()), Err(refusal)),
            Ok((member, card)) => {
                let record = card.as_ref().map(|card| (card.user.key.to_string(), card.jwt.clone()));
                let statements = self.oracle.statements.iter().map(Statement::text).collect();
                (record, Answer::Granted { jwt: card.map(|card| card.jwt), statements }, Ok(member))
            }
        };
        let mut bytes = prefix.to_vec();
        bytes.extend(serde_json::to_vec(&answer).expect("it is plain data"));
        Outcome { record, answer: bytes, asker: None, result }
    }
}

/// Whether the name, the key and the ticket are free.
fn free(registry: &Registry, ticket: &User, member: &Member, key: &Nkey, now: UnixTime) -> Result<(), Refusal> {
    match registry.entry(key) {
        None if registry.len() >= MEMBERS_MAX => return Err(Refusal::Full),
        Some(Entry::Revoked(_)) => return Err(Refusal::Revoked),
        Some(Entry::Member(own)) if own.member.role != member.role || own.member.name != member.name => {
            return Err(Refusal::Other { name: own.member.name.clone(), role: own.member.role });
        }
        _ => {}
    }
    if let Some(other) = registry.holder(member.role, &member.name, key, now) {
        let (name, role) = (member.name.clone(), member.role);
        return Err(Refusal::Taken { name, role, key: other.to_string() });
    }
    for host in reported(member) {
        if let Some(other) = registry.reporter(host, key, now) {
            let (host, name, role) = (host.clone(), other.name.clone(), other.role);
            return Err(Refusal::Reported { host, name, role });
        }
    }
    if let (Some(uses), Some(id)) = (ticket.uses, &ticket.ticket)
        && registry.uses(id, key) >= uses as usize
    {
        return Err(Refusal::Used(uses));
    }
    Ok(())
}

/// What an answer changes for a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// Its new JWT.
    pub card: Option<Card>,
    /// The Oracle's keys, if they have changed.
    pub oracle: Option<KeyRing>,
}

/// The identity that an answer to [`request`] gives.
///
/// # Errors
/// It is refused, or the answer is not what was asked for.
pub fn enrolled(
    token: &Token,
    machine: &SecretNkey,
    name: &str,
    bytes: &[u8],
    now: UnixTime,
) -> Result<Identity, AnswerError> {
    let (jwt, statements) = granted(bytes, ENROLLED)?;
    let jwt = jwt.ok_or_else(|| AnswerError::Shape("it has no JWT".to_string()))?;
    let card = own_card(&jwt, &token.fleet, machine.public(), now)?;
    if card.user.member.name != name {
        return Err(AnswerError::Other("name"));
    }
    if card.user.member.role != token.ticket.user.member.role {
        return Err(AnswerError::Other("role"));
    }
    let mut oracle = token.oracle.clone();
    oracle.take(&statements);
    Ok(Identity { fleet: token.fleet.clone(), card, seed: machine.clone(), oracle })
}

impl Identity {
    /// What an answer to [`RENEW`] changes, to be stored by [`Identity::store_card`] and [`Identity::store_keys`]. `None` if these bytes are not
    /// such an answer.
    ///
    /// # Errors
    /// It is refused, or the answer is not what was asked for.
    pub fn renewed(&self, bytes: &[u8], now: UnixTime) -> Option<Result<Renewed, AnswerError>> {
        bytes.starts_with(RENEWED).then(|| self.renewal(bytes, now))
    }

    fn renewal(&self, bytes: &[u8], now: UnixTime) -> Result<Renewed, AnswerError> {
        let (jwt, statements) = granted(bytes, RENEWED)?;
        let card = jwt.map(|jwt| own_card(&jwt, &self.fleet, self.seed.public(), now)).transpose()?;
        if let Some(card) = &card {
            let (new, own) = (card.member(), self.card.member());
            if new.name != own.name {
                return Err(AnswerError::Other("name"));
            }
            if new.role != own.role {
                return Err(AnswerError::Other("role"));
            }
        }
        // a recorded answer has an older JWT
        let card = card.filter(|card| card.user.expires > self.card.user.expires);
        let mut oracle = self.oracle.clone();
        let oracle = oracle.take(&statements).then_some(oracle);
        Ok(Renewed { card, oracle })
    }
}

fn own_card(jwt: &str, fleet: &Fleet, key: &Nkey, now: UnixTime) -> Result<Card, AnswerError> {
    let card = Card::verify(jwt, &fleet.account, &fleet.signing, now).map_err(AnswerError::Jwt)?;
    if card.user.key != *key {
        return Err(AnswerError::Other("key"));
    }
    if card.user.kind != Kind::Member {
        return Err(AnswerError::Other("kind"));
    }
    Ok(card)
}

fn granted(bytes: &[u8], prefix: &[u8]) -> Result<(Option<String>, Vec<Statement>), AnswerError> {
    let wrong = |what: &str| AnswerError::Shape(what.to_string());
    if bytes.len() > ANSWER_MAX {
        return Err(wrong("it is too long"));
    }
    let json = bytes.strip_prefix(prefix).ok_or_else(|| wrong("it is of another kind or version"))?;
    match serde_json::from_slice(json).map_err(|error| wrong(&format!("its contents are wrong ({error})")))? {
        Answer::Refused(refusal) => Err(AnswerError::Refused(refusal)),
        Answer::Granted { jwt, statements } => {
            if statements.len() > STATEMENTS_MAX {
                return Err(wrong("it has too many statements of keys"));
            }
            let statements: Result<Vec<Statement>, _> = statements.iter().map(|line| Statement::parse(line)).collect();
            Ok((jwt, statements.map_err(|error| wrong(&error.to_string()))?))
        }
    }
}
