//! Identities of a fleet's machines: keys, tokens, enrolment, rights on the bus, revocation.
//!
//! The bus between machines is a NATS server in its decentralised mode: an operator's key signs the account, the account's signing key
//! signs each member, and the server checks these signatures without a list of members. All of that is made and verified here, without
//! network and without clock: the time is an argument, in seconds since 1970 ([`UnixTime`]).
//!
//! - [`init()`] makes a fleet: keys, certificates, the server's configuration, and the identity folders of the Oracles and of the operator.
//! - [`Identity`] is such a folder: who a machine is, and what it needs to join.
//! - [`Token`] is one line with which a machine enrols: it proposes its own key ([`request`]), and the Oracle's [`Authority`] answers with
//!   the user JWT of that key ([`Card`]), or a [`Refusal`].
//! - [`Registry`] holds the members that an Oracle knows; every entry is signed by the account, so where it is stored need not be trusted.
//! - [`KeyRing`] are the Oracle's CUE keys that a machine trusts: two during a rotation.
//! - [`rights`] says what each role may publish and subscribe to.
#![forbid(unsafe_code)]

mod account;
mod commands;
mod enroll;
pub mod files;
mod identity;
mod init;
mod jwt;
mod keys;
mod member;
mod nkey;
mod oracle;
mod random;
mod registry;
pub mod rights;
mod rotation;
mod server;
mod token;
mod user;

pub use account::{ACCOUNT, AccountJwt, REVOCATIONS_MAX, RevokeError};
pub use commands::{Command, MEMBERS_PAGE, MemberLine, Reply, find, line, page};
pub use enroll::{
    ANSWER_MAX, Answer, AnswerError, Authority, Outcome, RENEW, RENEWED, REQUEST_MAX, Refusal, Renewed, enrolled,
    request,
};
pub use identity::{Fleet, Identity, SERVERS_MAX};
pub use init::{CERTIFICATE_DAYS, CERTIFICATE_DAYS_MAX, Init, InitError, ORACLES_MAX, init};
pub use jwt::JwtError;
pub use keys::{KeyRing, KeysError, Statement};
pub use member::{HOSTS_MAX, Member, NAME_MAX, NameError, Role, check_name};
pub use nkey::{Nkey, NkeyError, NkeyKind, SecretNkey};
pub use oracle::{ORACLE_KEY, OracleIdentity};
pub use random::random;
pub use registry::{Enrolled, Entry, LIFETIME_S, MEMBERS_MAX, NotMember, Registry, RegistryError, Revoked};
pub use rotation::{RotateError, Rotated, Rotation, oracle_folders, renew_certificate, rotate};
pub use server::{PORT, Server};
pub use token::{TICKET_SECONDS_MAX, TOKEN_MAX, Token, TokenError, TokenRequest};
pub use user::{Card, JWT_MAX, Kind, User, creds};

/// Seconds since 1970.
pub type UnixTime = u64;

/// Days for which a member's JWT is valid; it is renewed when half of them are over.
pub const MEMBER_DAYS: u64 = 90;
