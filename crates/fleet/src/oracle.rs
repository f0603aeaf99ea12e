//! An Oracle's identity folder: beside what every member has, the keys to sign CUEs, members and revocations.

use crate::files::{FileError, Guard, owned};
use crate::identity::{Identity, content};
use crate::keys::Statement;
use crate::nkey::{Nkey, NkeyKind, SecretNkey};
use crate::registry::LIFETIME_S;
use crate::{Card, Member, Role, UnixTime, User, identity};
use std::path::Path;

/// The key that signs CUEs.
pub const ORACLE_KEY: &str = "oracle.key";
/// During a rotation, the key that will sign them.
pub const NEXT_KEY: &str = "oracle.key.next";
/// The key that signs members.
pub const SIGNING_SEED: &str = "account.seed";
/// The key that signs the account, and so its revocations.
pub const OPERATOR_SEED: &str = "operator.seed";
/// The credentials of a user of the system account, who gives the server the account's JWT.
pub const SYSTEM_CREDS: &str = "system.creds";
/// Signed statements of the changes of the CUE keys, for machines that missed them.
pub const STATEMENTS: &str = "oracle.keys";

/// JWTs of members that did not enrol: of the operator that came with the fleet. One a line.
pub const FIRST_MEMBERS: &str = "first-members";
/// Longest list of these that is read.
const FIRST_MAX: usize = 16;

/// What an Oracle's folder holds.
#[derive(Clone, Debug)]
pub struct OracleIdentity {
    /// What every member has.
    pub identity: Identity,
    /// Its number, a part of its epochs.
    pub number: u8,
    /// The key that signs members and tokens.
    pub signing: SecretNkey,
    /// The key that signs the account.
    pub operator: SecretNkey,
    /// The credentials of its user of the system account, as NATS's clients read them.
    pub system: String,
    /// That user's key.
    pub system_key: Nkey,
    /// The changes of the CUE keys.
    pub statements: Vec<Statement>,
    /// Members that did not enrol. The Oracle puts each into the bucket of members where its key is not there yet.
    pub first_members: Vec<Card>,
}

impl OracleIdentity {
    /// Reads the folder, except for the keys that sign CUEs.
    ///
    /// # Errors
    /// As [`Identity::load`]; it is another role's; a key does not belong to the others.
    pub fn load(folder: &Path) -> Result<OracleIdentity, FileError> {
        let identity = Identity::load(folder)?;
        let (Role::Oracle, Some(number)) = (identity.card.member().role, identity.card.user.number) else {
            let reason = format!(
                "it is the identity of {} {}, not of an Oracle",
                article(identity.card.member().role),
                identity.card.member().name
            );
            return Err(content(&folder.join(identity::ABOUT), &reason));
        };
        let signing = seed(&folder.join(SIGNING_SEED), NkeyKind::Account)?;
        if !identity.fleet.signing.contains(signing.public()) {
            let reason = format!("it is not one of the fleet's signing keys that {} names", identity::ABOUT);
            return Err(content(&folder.join(SIGNING_SEED), &reason));
        }
        let operator = seed(&folder.join(OPERATOR_SEED), NkeyKind::Operator)?;
        let path = folder.join(SYSTEM_CREDS);
        let (system, system_key) = system(&path)?;
        let path = folder.join(STATEMENTS);
        let text = owned(&path, Guard::Trusted("other users can change it"))?;
        let statements = Statement::parse_all(&text).map_err(|error| content(&path, &error))?;
        let first_members = first_members(&folder.join(FIRST_MEMBERS), &identity)?;
        Ok(OracleIdentity { identity, number, signing, operator, system, system_key, statements, first_members })
    }
}

impl OracleIdentity {
    /// The JWT of the user of this key, for a connection that answers newcomers and can do nothing else.
    pub fn registrar(&self, key: &Nkey, now: UnixTime) -> Card {
        let own = self.identity.card.member();
        let member = Member { name: own.name.clone(), role: Role::Oracle, hosts: Vec::new() };
        let user = User::member(key.clone(), member, now, now.saturating_add(LIFETIME_S));
        let user = User { number: Some(self.number), ..user };
        user.issue_registrar(&self.identity.fleet.account, &self.signing)
    }
}

fn first_members(path: &Path, identity: &Identity) -> Result<Vec<Card>, FileError> {
    let text = owned(path, Guard::Trusted("other users can change it"))?;
    let fleet = &identity.fleet;
    let read = |line: &str| Card::read(line, &fleet.account, &fleet.signing).map_err(|error| content(path, &error));
    text.lines().filter(|line| !line.trim().is_empty()).take(FIRST_MAX).map(|line| read(line.trim())).collect()
}

fn article(role: Role) -> String {
    match role {
        Role::Agent | Role::Enforcer | Role::Operator | Role::Oracle => format!("an {role}"),
        Role::Collector => format!("a {role}"),
    }
}

/// The credentials of the system account's user; only the server verifies them.
fn system(path: &Path) -> Result<(String, Nkey), FileError> {
    let text = owned(path, Guard::Secret)?;
    let seed =
        identity::part(&text, "USER NKEY SEED").ok_or_else(|| content(path, &"it has no part `USER NKEY SEED`"))?;
    let seed =
        SecretNkey::from_seed(seed, NkeyKind::User).map_err(|error| content(path, &format!("its seed is {error}")))?;
    Ok((text, seed.public().clone()))
}

fn seed(path: &Path, kind: NkeyKind) -> Result<SecretNkey, FileError> {
    let text = owned(path, Guard::Secret)?;
    SecretNkey::from_seed(&text, kind).map_err(|error| content(path, &error))
}
