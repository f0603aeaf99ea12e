//! The JWT of a user: a member's card, or a token's ticket.

use crate::jwt::{self, Claims, JwtError, VERSION};
use crate::member::check_hosts;
use crate::nkey::{Nkey, NkeyKind, SecretNkey};
use crate::rights::{self, Rights};
use crate::{Member, Role, UnixTime, check_name};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Longest user JWT that is read, bytes: it must fit into the line of NATS's protocol that logs a client in.
pub const JWT_MAX: usize = 14 * 1024;
/// Most tags of a user: its hosts, and four of its own.
const TAGS_MAX: usize = crate::HOSTS_MAX + 8;
/// Longest id of a ticket, bytes.
const TICKET_MAX: usize = 64;

/// What a user JWT is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of a member: reports, CUEs, requests.
    Member,
    /// Of a token: may only ask to be enrolled.
    Ticket,
}

/// Who is to get a JWT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its public key.
    pub key: Nkey,
    /// Its name, role and hosts; a ticket's hosts are the names that it is bound to.
    pub member: Member,
    /// What it is for.
    pub kind: Kind,
    /// An Oracle's number; it is a part of its epochs.
    pub number: Option<u8>,
    /// The id of the ticket with which the member enrolled, or of this ticket.
    pub ticket: Option<String>,
    /// How often a ticket may be used, if that is limited.
    pub uses: Option<u32>,
    /// When it was issued.
    pub issued: UnixTime,
    /// When it expires.
    pub expires: UnixTime,
}

/// A user JWT whose signature was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// What it says.
    pub user: User,
    /// The JWT.
    pub jwt: String,
}

/// The part of the claims that is a user's.
#[derive(Serialize, Deserialize)]
struct UserClaims {
    #[serde(flatten)]
    rights: Rights,
    issuer_account: String,
    #[serde(default)]
    allowed_connection_types: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(rename = "type")]
    kind: String,
    version: u8,
}

impl User {
    /// A member.
    pub fn member(key: Nkey, member: Member, issued: UnixTime, expires: UnixTime) -> User {
        User { key, member, kind: Kind::Member, number: None, ticket: None, uses: None, issued, expires }
    }

    /// Its JWT, signed by the account's signing key.
    pub fn issue(self, account: &Nkey, signing: &SecretNkey) -> Card {
        let rights = rights::rights(self.kind, self.member.role, &self.key);
        let jwt = encode(&self, rights, account, signing);
        Card { user: self, jwt }
    }

    /// The JWT of the Oracle's user of the system account.
    pub(crate) fn issue_system(self, system: &Nkey, signing: &SecretNkey, account: &Nkey) -> Card {
        let rights = rights::system(&self.key, account);
        let jwt = encode(&self, rights, system, signing);
        Card { user: self, jwt }
    }

    /// The JWT of an Oracle's user that answers newcomers.
    pub(crate) fn issue_registrar(self, account: &Nkey, signing: &SecretNkey) -> Card {
        let jwt = encode(&self, rights::registrar(), account, signing);
        Card { user: self, jwt }
    }

    fn tags(&self) -> Vec<String> {
        let kind = match self.kind {
            Kind::Member => "member",
            Kind::Ticket => "ticket",
        };
        let mut tags = vec![format!("kind:{kind}"), format!("role:{}", self.member.role)];
        tags.extend(self.number.map(|number| format!("number:{number}")));
        tags.extend(self.ticket.as_ref().map(|ticket| format!("ticket:{ticket}")));
        tags.extend(self.uses.map(|uses| format!("uses:{uses}")));
        tags.extend(self.member.hosts.iter().map(|host| format!("host:{host}")));
        tags
    }
}

fn encode(user: &User, rights: Rights, account: &Nkey, signing: &SecretNkey) -> String {
    let claims = UserClaims {
        rights,
        issuer_account: account.to_string(),
        allowed_connection_types: vec!["STANDARD".to_string()],
        tags: user.tags(),
        kind: "user".to_string(),
        version: VERSION,
    };
    let claims = Claims {
        exp: user.expires,
        jti: String::new(),
        iat: user.issued,
        iss: String::new(),
        name: user.member.name.clone(),
        sub: user.key.to_string(),
        nats: claims,
    };
    jwt::encode(claims, signing)
}

impl Card {
    /// Reads a user JWT of this account, signed by one of its signing keys, that has not expired at `now`.
    ///
    /// # Errors
    /// Why it is not accepted.
    pub fn verify(jwt: &str, account: &Nkey, signing: &[Nkey], now: UnixTime) -> Result<Card, JwtError> {
        let card = Card::read(jwt, account, signing)?;
        if card.user.expires <= now {
            return Err(JwtError::Expired { ago: now - card.user.expires });
        }
        Ok(card)
    }

    /// As [`Card::verify`], whether it has expired or not.
    ///
    /// # Errors
    /// Why it is not accepted.
    pub fn read(jwt: &str, account: &Nkey, signing: &[Nkey]) -> Result<Card, JwtError> {
        let claims: Claims<UserClaims> = jwt::decode(jwt, signing, JWT_MAX)?;
        let nats = claims.nats;
        if nats.kind != "user" || nats.version != VERSION {
            return Err(JwtError::Claim("type"));
        }
        if nats.issuer_account != account.as_str() {
            return Err(JwtError::Claim("account"));
        }
        if claims.exp == 0 {
            return Err(JwtError::Claim("expiry"));
        }
        if nats.tags.len() > TAGS_MAX {
            return Err(JwtError::Claim("number of tags"));
        }
        let user = User {
            key: Nkey::parse(&claims.sub, NkeyKind::User)?,
            member: Member { name: claims.name, role: Role::Agent, hosts: Vec::new() },
            kind: Kind::Member,
            number: None,
            ticket: None,
            uses: None,
            issued: claims.iat,
            expires: claims.exp,
        };
        let user = tagged(user, &nats.tags)?;
        Ok(Card { user, jwt: jwt.to_string() })
    }

    /// The member, without its key.
    pub fn member(&self) -> &Member {
        &self.user.member
    }

    /// Whether half of its time is over: then it is to be renewed.
    pub fn is_due(&self, now: UnixTime) -> bool {
        now >= self.user.issued.saturating_add(self.user.expires.saturating_sub(self.user.issued) / 2)
    }
}

/// The user with what its tags say.
fn tagged(mut user: User, tags: &[String]) -> Result<User, JwtError> {
    let (mut kind, mut role) = (None, None);
    for tag in tags {
        let (name, value) = tag.split_once(':').ok_or(JwtError::Claim("list of tags"))?;
        match name {
            "kind" => kind = Some(value),
            "role" => role = Some(value.parse().map_err(|_| JwtError::Claim("role"))?),
            "number" => user.number = Some(value.parse().map_err(|_| JwtError::Claim("number"))?),
            "uses" => user.uses = Some(value.parse().map_err(|_| JwtError::Claim("number of uses"))?),
            "ticket" if value.len() <= TICKET_MAX => user.ticket = Some(value.to_string()),
            "host" => user.member.hosts.push(value.to_string()),
            // what a later version adds
            _ => {}
        }
    }
    user.kind = match kind {
        Some("member") => Kind::Member,
        Some("ticket") => Kind::Ticket,
        _ => return Err(JwtError::Claim("kind")),
    };
    user.member.role = role.ok_or(JwtError::Claim("role"))?;
    if user.kind == Kind::Member {
        check_name(&user.member.name)?;
    }
    check_hosts(&user.member.hosts)?;
    if (user.member.role == Role::Oracle) != user.number.is_some() {
        return Err(JwtError::Claim("number"));
    }
    Ok(user)
}

/// The file of a user's credentials, as NATS's own tools write it: the JWT and the seed.
pub fn creds(jwt: &str, seed: &SecretNkey) -> String {
    let mut text = String::new();
    for (what, body) in [("NATS USER JWT", jwt), ("USER NKEY SEED", &seed.seed())] {
        writeln!(text, "-----BEGIN {what}-----\n{body}\n------END {what}------\n").expect("writing to a string");
    }
    text
}
