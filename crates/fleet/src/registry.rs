//! The members that an Oracle knows. Every entry is signed by the account, so where it is stored need not be trusted.

use crate::identity::Fleet;
use crate::jwt::JwtError;
use crate::nkey::{Nkey, NkeyError, NkeyKind, SecretNkey};
use crate::user::JWT_MAX;
use crate::{Card, Kind, MEMBER_DAYS, Member, Role, UnixTime, User};
use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most entries: members, and those who were revoked within [`MEMBER_DAYS`].
pub const MEMBERS_MAX: usize = 131_072;
/// What the text of a revocation begins with.
const REVOKED: &str = "revoked.";
/// Prefix of what its signature covers.
const DOMAIN: &[u8] = b"opentcp revoked\0";
/// For how long a JWT can be valid, seconds.
pub const LIFETIME_S: u64 = MEMBER_DAYS * 86_400;

/// What the bucket of members says about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A member.
    Member(Enrolled),
    /// It was one.
    Revoked(Revoked),
}

/// A member, and its term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolled {
    /// Who it is.
    pub member: Arc<Member>,
    /// The ticket with which it enrolled.
    pub ticket: Option<String>,
    /// When its JWT was issued.
    pub issued: UnixTime,
    /// When its JWT expires.
    pub expires: UnixTime,
}

/// A member that was revoked: the account's signed word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// Its key.
    pub key: String,
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// When.
    pub at: UnixTime,
    /// The ticket with which it had enrolled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

/// Why an entry of the bucket is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Its key is none.
    #[error("the entry's key is {0}")]
    Key(#[from] NkeyError),
    /// Its JWT.
    #[error("the entry is {0}")]
    Jwt(#[from] JwtError),
    /// Its revocation.
    #[error("the entry is a revocation, but {0}")]
    Revoked(&'static str),
    /// Of another key.
    #[error("the entry is of another key than it is stored under")]
    Other,
    /// Not a member.
    #[error("the entry is not a member's JWT")]
    Kind,
    /// No room.
    #[error("{MEMBERS_MAX} members are known, and no more are kept")]
    Full,
}

/// Why a key is not a member's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotMember {
    /// Never heard of.
    #[error("not enrolled")]
    Unknown,
    /// Revoked.
    #[error("revoked")]
    Revoked,
    /// Its JWT has expired.
    #[error("expired")]
    Expired,
}

/// The members.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    entries: BTreeMap<Nkey, Entry>,
    /// Who has a name in a role.
    names: BTreeMap<(Role, String), Nkey>,
    /// Who reports for a host.
    hosts: BTreeMap<String, Nkey>,
    /// How many members have enrolled with a ticket.
    tickets: BTreeMap<String, usize>,
}

impl Registry {
    /// Takes an entry of the bucket, in place of what was known of this key. Whether a JWT has expired is decided when it is used.
    ///
    /// # Errors
    /// Why it is not taken; what was known remains.
    pub fn put(&mut self, key: &str, value: &[u8], fleet: &Fleet) -> Result<(), RegistryError> {
        let key = Nkey::parse(key, NkeyKind::User)?;
        let text = std::str::from_utf8(value).map_err(|_| JwtError::Shape("it is not text"))?;
        let entry = Entry::read(&key, text, fleet)?;
        if self.entries.len() >= MEMBERS_MAX && !self.entries.contains_key(&key) {
            return Err(RegistryError::Full);
        }
        self.forget(&key);
        self.index(&key, &entry);
        self.entries.insert(key, entry);
        Ok(())
    }

    /// Forgets what was known of a key, whose entry has left the bucket.
    pub fn remove(&mut self, key: &str) {
        if let Ok(key) = Nkey::parse(key, NkeyKind::User) {
            self.forget(&key);
        }
    }

    /// The member of this key.
    ///
    /// # Errors
    /// Why it is none at `now`.
    pub fn member(&self, key: &Nkey, now: UnixTime) -> Result<&Enrolled, NotMember> {
        match self.entries.get(key) {
            None => Err(NotMember::Unknown),
            Some(Entry::Revoked(_)) => Err(NotMember::Revoked),
            Some(Entry::Member(enrolled)) if enrolled.expires <= now => Err(NotMember::Expired),
            Some(Entry::Member(enrolled)) => Ok(enrolled),
        }
    }

    /// All entries, in the order of their keys.
    pub fn entries(&self) -> impl Iterator<Item = (&Nkey, &Entry)> {
        self.entries.iter()
    }

    /// Entries behind this key, or all.
    pub fn after(&self, key: Option<&Nkey>) -> impl Iterator<Item = (&Nkey, &Entry)> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.entries.range((key.map_or(Unbounded, Excluded), Unbounded))
    }

    /// How many entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Entries that say nothing any more, to be deleted from the bucket: members whose JWTs have expired for as long as they were valid, and
    /// revocations of JWTs that have all expired.
    pub fn stale(&self, now: UnixTime) -> Vec<Nkey> {
        let over = |entry: &Entry| match entry {
            Entry::Member(enrolled) => enrolled.expires.saturating_add(LIFETIME_S) <= now,
            Entry::Revoked(revoked) => revoked.at.saturating_add(LIFETIME_S) <= now,
        };
        self.entries.iter().filter(|(_, entry)| over(entry)).map(|(key, _)| key.clone()).collect()
    }

    /// Who else has this name in this role at `now`.
    pub(crate) fn holder(&self, role: Role, name: &str, but: &Nkey, now: UnixTime) -> Option<&Nkey> {
        let key = self.names.get(&(role, name.to_string()))?;
        (key != but && self.member(key, now).is_ok()).then_some(key)
    }

    /// Who else reports for this host at `now`.
    pub(crate) fn reporter(&self, host: &str, but: &Nkey, now: UnixTime) -> Option<&Member> {
        let key = self.hosts.get(host)?;
        let enrolled = (key != but).then(|| self.member(key, now).ok()).flatten()?;
        Some(&enrolled.member)
    }

    /// How many other keys have enrolled with this ticket.
    pub(crate) fn uses(&self, ticket: &str, but: &Nkey) -> usize {
        let own = self.entries.get(but).is_some_and(|entry| ticket_of(entry) == Some(ticket));
        self.tickets.get(ticket).copied().unwrap_or_default() - usize::from(own)
    }

    /// What is known of a key.
    pub fn entry(&self, key: &Nkey) -> Option<&Entry> {
        self.entries.get(key)
    }

    fn forget(&mut self, key: &Nkey) {
        let Some(entry) = self.entries.remove(key) else { return };
        if let Some(uses) = ticket_of(&entry).and_then(|ticket| self.tickets.get_mut(ticket)) {
            *uses -= 1;
        }
        if let Some(ticket) = ticket_of(&entry)
            && self.tickets.get(ticket) == Some(&0)
        {
            self.tickets.remove(ticket);
        }
        if let Entry::Member(Enrolled { member, .. }) = &entry {
            let name = (member.role, member.name.clone());
            if self.names.get(&name) == Some(key) {
                self.names.remove(&name);
            }
            for host in reported(member) {
                if self.hosts.get(host) == Some(key) {
                    self.hosts.remove(host);
                }
            }
        }
    }

    fn index(&mut self, key: &Nkey, entry: &Entry) {
        if let Some(ticket) = ticket_of(entry) {
            *self.tickets.entry(ticket.to_string()).or_default() += 1;
        }
        if let Entry::Member(Enrolled { member, .. }) = entry {
            self.names.insert((member.role, member.name.clone()), key.clone());
            for host in reported(member) {
                self.hosts.insert(host.clone(), key.clone());
            }
        }
    }
}

impl Entry {
    fn read(key: &Nkey, text: &str, fleet: &Fleet) -> Result<Entry, RegistryError> {
        if let Some(rest) = text.strip_prefix(REVOKED) {
            let revoked = Revoked::read(rest, fleet)?;
            return if revoked.key == key.as_str() { Ok(Entry::Revoked(revoked)) } else { Err(RegistryError::Other) };
        }
        let card = Card::read(text, &fleet.account, &fleet.signing)?;
        if card.user.key == *key { Ok(Entry::Member(enrolled(card.user)?)) } else { Err(RegistryError::Other) }
    }
}

fn enrolled(user: User) -> Result<Enrolled, RegistryError> {
    if user.kind != Kind::Member || user.member.role == Role::Oracle {
        return Err(RegistryError::Kind);
    }
    let member = Arc::new(user.member);
    Ok(Enrolled { member, ticket: user.ticket, issued: user.issued, expires: user.expires })
}

fn ticket_of(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::Member(enrolled) => enrolled.ticket.as_deref(),
        Entry::Revoked(revoked) => revoked.ticket.as_deref(),
    }
}

/// The hosts for which a member reports.
pub(crate) fn reported(member: &Member) -> &[String] {
    match member.role {
        Role::Agent => std::slice::from_ref(&member.name),
        Role::Enforcer => &member.hosts,
        Role::Collector | Role::Operator | Role::Oracle => &[],
    }
}

impl Revoked {
    /// Its text for the bucket, signed by the account's signing key.
    pub fn text(&self, signing: &SecretNkey) -> String {
        let json = serde_json::to_vec(self).expect("it is plain data");
        let signature = signing.sign(&[DOMAIN, &json].concat());
        format!("{REVOKED}{}.{}", BASE64URL_NOPAD.encode(&json), BASE64URL_NOPAD.encode(&signature))
    }

    fn read(rest: &str, fleet: &Fleet) -> Result<Revoked, RegistryError> {
        let wrong = RegistryError::Revoked;
        if rest.len() > JWT_MAX {
            return Err(wrong("it is too long"));
        }
        let (json, signature) = rest.split_once('.').ok_or(wrong("it has no signature"))?;
        let plain = |part: &str| BASE64URL_NOPAD.decode(part.as_bytes()).map_err(|_| wrong("it is not base64url"));
        let (json, signature) = (plain(json)?, plain(signature)?);
        let signed = [DOMAIN, &json].concat();
        if !fleet.signing.iter().any(|key| key.verifies(&signed, &signature)) {
            return Err(wrong("this fleet's account did not sign it"));
        }
        serde_json::from_slice(&json).map_err(|_| wrong("its contents are not one"))
    }
}
