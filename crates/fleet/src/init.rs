//! A new fleet: its keys, certificates and folders.

use crate::account;
use crate::files::{FileError, create};
use crate::identity::{Fleet, Identity, SERVERS_MAX, make_folder, put_in_place};
use crate::keys::{KeyRing, OracleKeys};
use crate::nkey::{Nkey, NkeyKind, SecretNkey};
use crate::oracle::{FIRST_MEMBERS, OPERATOR_SEED, ORACLE_KEY, SIGNING_SEED, STATEMENTS, SYSTEM_CREDS};
use crate::server::{self, CertificateError, Certified, Server};
use crate::{Card, MEMBER_DAYS, Member, Role, UnixTime, User, creds};
use data_encoding::HEXLOWER;
use std::io;
use std::path::{Path, PathBuf};

/// Most Oracles: an epoch has eight bits for their number.
pub const ORACLES_MAX: usize = 256;
/// Days for which a server's certificate is valid, unless another number is asked for.
pub const CERTIFICATE_DAYS: u32 = 825;
/// Longest validity of a certificate, days: the authority's own.
pub const CERTIFICATE_DAYS_MAX: u32 = 3650;
/// Days for which an Oracle's own JWTs are valid. With its folder it could sign new ones at any time, so a shorter time would protect nobody.
const ORACLE_DAYS: u64 = 3650;
const DAY_S: u64 = 86_400;
const KEPT: &str = "it may hold the keys of a fleet. Name a folder that is not there yet";

/// Parts of a fleet's folder.
pub(crate) const NATS: &str = "nats";
pub(crate) const OPERATOR: &str = "operator";
pub(crate) const KEYS: &str = "keys";
pub(crate) const CA_KEY: &str = "ca.key";

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Init {
    /// The servers; the certificate has all their names.
    pub servers: Vec<Server>,
    /// How many Oracles.
    pub oracles: usize,
    /// For how many days the servers' certificate is valid.
    pub certificate_days: u32,
    /// Now.
    pub now: UnixTime,
}

/// Why a fleet is not made.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// No server, or too many.
    #[error("{0} servers: name from 1 to {SERVERS_MAX} with --server")]
    Servers(usize),
    /// A server twice.
    #[error("the server {0} is named twice")]
    Twice(Server),
    /// No Oracle, or too many.
    #[error("{0} Oracles: from 1 to {ORACLES_MAX}")]
    Oracles(usize),
    /// No day, or too many.
    #[error("{0} days: a certificate is valid for 1 to {CERTIFICATE_DAYS_MAX} days")]
    Days(u32),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// No random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(#[from] io::Error),
}

impl InitError {
    /// Whether the request is wrong, and not the disk.
    pub fn is_input(&self) -> bool {
        match self {
            InitError::File(error) => matches!(error, FileError::Exists { .. }),
            InitError::Random(_) => false,
            _ => true,
        }
    }
}

/// The keys of a new fleet, in memory.
struct Keys {
    operator: SecretNkey,
    operator_signing: SecretNkey,
    account: SecretNkey,
    signing: SecretNkey,
    system: SecretNkey,
    system_signing: SecretNkey,
    cue: OracleKeys,
    authority: Certified,
    server: Certified,
}

/// Makes the folder of a new fleet. It is there whole or not at all.
///
/// - `nats/`: for the server: configuration, certificate, the accounts' JWTs.
/// - `oracle-0/`, …: the identity folders of the Oracles, each with the keys to sign CUEs, members and revocations.
/// - `operator/`: the identity folder of an operator.
/// - `keys/`: what is needed only to recover, and to renew the servers' certificate: to be kept elsewhere.
///
/// # Errors
/// The request is wrong; the folder exists; the system's.
pub fn init(folder: &Path, init: &Init) -> Result<(), InitError> {
    if init.servers.is_empty() || init.servers.len() > SERVERS_MAX {
        return Err(InitError::Servers(init.servers.len()));
    }
    let twice = (1..init.servers.len()).find(|at| init.servers[..*at].contains(&init.servers[*at]));
    if let Some(at) = twice {
        return Err(InitError::Twice(init.servers[at].clone()));
    }
    if init.oracles == 0 || init.oracles > ORACLES_MAX {
        return Err(InitError::Oracles(init.oracles));
    }
    check_days(init.certificate_days)?;
    let keys = Keys::generate(init)?;
    let fleet = Fleet {
        servers: init.servers.iter().map(Server::url).collect(),
        account: keys.account.public().clone(),
        signing: vec![keys.signing.public().clone()],
        ca: keys.authority.certificate.clone(),
    };
    // identities need random bytes; what follows only writes
    let operator = keys.identity(&fleet, OPERATOR, None, init.now)?;
    let oracles: Result<Vec<Identity>, io::Error> = (0..init.oracles)
        .map(|number| keys.identity(&fleet, &format!("oracle-{number}"), Some(number as u8), init.now))
        .collect();
    let oracles = oracles?;
    let systems: Result<Vec<(Card, SecretNkey)>, io::Error> =
        (0..init.oracles).map(|number| keys.system_user(number as u8, init.now)).collect();
    let systems = systems?;
    put_in_place(folder, KEPT, |at| {
        keys.write_server(&made(at, NATS)?, init)?;
        operator.write(&made(at, OPERATOR)?)?;
        for ((number, oracle), system) in oracles.iter().enumerate().zip(&systems) {
            let at = made(at, &format!("oracle-{number}"))?;
            oracle.write(&at)?;
            keys.write_oracle(&at, system)?;
            write(&at, FIRST_MEMBERS, &format!("{}\n", operator.card.jwt))?;
        }
        keys.write_offline(&made(at, KEYS)?)
    })?;
    Ok(())
}

/// Whether a certificate can be valid for so many days.
///
/// # Errors
/// [`InitError::Days`].
pub fn check_days(days: u32) -> Result<(), InitError> {
    if (1..=CERTIFICATE_DAYS_MAX).contains(&days) { Ok(()) } else { Err(InitError::Days(days)) }
}

fn made(at: &Path, name: &str) -> Result<PathBuf, FileError> {
    let folder = at.join(name);
    make_folder(&folder)?;
    Ok(folder)
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), FileError> {
    create(&folder.join(name), text, KEPT)
}

impl Keys {
    fn generate(init: &Init) -> Result<Keys, InitError> {
        let authority = server::authority(init.now)?;
        let server = server::certificate(&init.servers, &authority.key, init.now, init.certificate_days)?;
        Ok(Keys {
            operator: SecretNkey::generate(NkeyKind::Operator)?,
            operator_signing: SecretNkey::generate(NkeyKind::Operator)?,
            account: SecretNkey::generate(NkeyKind::Account)?,
            signing: SecretNkey::generate(NkeyKind::Account)?,
            system: SecretNkey::generate(NkeyKind::Account)?,
            system_signing: SecretNkey::generate(NkeyKind::Account)?,
            cue: OracleKeys::generate()?,
            authority,
            server,
        })
    }

    fn identity(&self, fleet: &Fleet, name: &str, number: Option<u8>, now: UnixTime) -> io::Result<Identity> {
        let seed = SecretNkey::generate(NkeyKind::User)?;
        let (role, days) = if number.is_some() { (Role::Oracle, ORACLE_DAYS) } else { (Role::Operator, MEMBER_DAYS) };
        let member = Member { name: name.to_string(), role, hosts: Vec::new() };
        let user = User { number, ..User::member(seed.public().clone(), member, now, now + days * DAY_S) };
        let card = user.issue(&fleet.account, &self.signing);
        Ok(Identity { fleet: fleet.clone(), card, seed, oracle: self.ring() })
    }

    fn system_user(&self, number: u8, now: UnixTime) -> io::Result<(Card, SecretNkey)> {
        let seed = SecretNkey::generate(NkeyKind::User)?;
        let member = Member { name: format!("oracle-{number}"), role: Role::Oracle, hosts: Vec::new() };
        let user = User::member(seed.public().clone(), member, now, now + ORACLE_DAYS * DAY_S);
        let user = User { number: Some(number), ..user };
        let card = user.issue_system(self.system.public(), &self.system_signing, self.account.public());
        Ok((card, seed))
    }

    fn ring(&self) -> KeyRing {
        self.cue.ring.clone()
    }

    fn write_server(&self, at: &Path, init: &Init) -> Result<(), FileError> {
        let now = init.now;
        let (signing, system) = (self.operator_signing.public(), self.system.public());
        let operator = account::operator(&self.operator, signing, system, now);
        let port = init.servers[0].port;
        write(at, "nats-server.conf", &server::configuration(port, &operator, system.as_str()))?;
        write(at, "ca.pem", &self.authority.certificate)?;
        write(at, "server.pem", &self.server.certificate)?;
        write(at, "server.key", &self.server.key)?;
        let jwts = made(at, "jwt")?;
        let by = &self.operator_signing;
        let system_jwt = account::system(system, self.system_signing.public(), by, now);
        let account_jwt = account::account(self.account.public(), self.signing.public(), by, now);
        let name = |key: &Nkey| format!("{key}.jwt");
        write(&jwts, &name(system), &system_jwt)?;
        write(&jwts, &name(self.account.public()), &account_jwt)
    }

    fn write_oracle(&self, at: &Path, (card, seed): &(Card, SecretNkey)) -> Result<(), FileError> {
        write(at, ORACLE_KEY, &format!("{}\n", HEXLOWER.encode(&self.cue.current)))?;
        write(at, SIGNING_SEED, &format!("{}\n", self.signing.seed()))?;
        write(at, OPERATOR_SEED, &format!("{}\n", self.operator_signing.seed()))?;
        write(at, SYSTEM_CREDS, &creds(&card.jwt, seed))?;
        write(at, STATEMENTS, "")
    }

    fn write_offline(&self, at: &Path) -> Result<(), FileError> {
        write(at, "operator.seed", &format!("{}\n", self.operator.seed()))?;
        write(at, "account.seed", &format!("{}\n", self.account.seed()))?;
        write(at, "system.seed", &format!("{}\n", self.system.seed()))?;
        write(at, "system-signing.seed", &format!("{}\n", self.system_signing.seed()))?;
        write(at, CA_KEY, &self.authority.key)
    }
}
