//! The identity folder: who a machine is, and what it needs to join the fleet.

use crate::files::{FileError, Guard, create, in_file, owned, owned_folder, replace};
use crate::keys::KeyRing;
use crate::nkey::{Nkey, NkeyKind, SecretNkey};
use crate::{Card, Role, UnixTime, creds, server};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Most servers of a fleet.
pub const SERVERS_MAX: usize = 16;
/// Most signing keys of an account: during a rotation there are two.
const SIGNING_MAX: usize = 4;
/// The JWT and the secret key.
pub const CREDS: &str = "creds";
/// Servers, account, name, role, hosts.
pub const ABOUT: &str = "fleet.json";
/// The certificate of the authority that signs the servers' certificates.
pub const CA: &str = "ca.pem";
/// The Oracle's CUE keys.
pub const ORACLE_PUB: &str = "oracle.pub";
/// What a changed file would allow.
const CHANGE: &str = "other users can change it, and so send CUEs or take this machine's place";
/// Nothing is overwritten.
const KEPT: &str = "this machine has an identity. To replace it, stop what uses it and remove the folder";

/// Who a machine is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The fleet that it belongs to.
    pub fleet: Fleet,
    /// Its JWT. When it is loaded, its signature is verified; it may have expired.
    pub card: Card,
    /// Its secret key.
    pub seed: SecretNkey,
    /// The Oracle's CUE keys.
    pub oracle: KeyRing,
}

/// What all members of a fleet know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// The servers, as `tls://HOST:PORT`.
    pub servers: Vec<String>,
    /// The account's public key.
    pub account: Nkey,
    /// The keys that sign its members.
    pub signing: Vec<Nkey>,
    /// The certificate of the authority that signs the servers' certificates, PEM.
    pub ca: String,
}

/// `fleet.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    servers: Vec<String>,
    account: String,
    signing_keys: Vec<String>,
    name: String,
    role: Role,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
}

impl Identity {
    /// Reads the folder. Whether the JWT has expired is for [`Identity::check`].
    ///
    /// # Errors
    /// A file is missing, is not guarded, or holds something else; the files do not belong together.
    pub fn load(folder: &Path) -> Result<Identity, FileError> {
        owned_folder(folder)?;
        let about_path = folder.join(ABOUT);
        let about = owned(&about_path, Guard::Trusted(CHANGE))?;
        let about: About = serde_json::from_str(&about).map_err(|error| content(&about_path, &error))?;
        let ca = owned(&folder.join(CA), Guard::Trusted(CHANGE))?;
        let fleet = Fleet::new(&about.servers, &about.account, &about.signing_keys, ca);
        let fleet = fleet.map_err(|reason| content(&about_path, &reason))?;
        let creds_path = folder.join(CREDS);
        let (card, seed) = read_creds(&creds_path, &fleet.account, &fleet.signing)?;
        let member = card.member();
        if (member.name.as_str(), member.role, &member.hosts) != (about.name.as_str(), about.role, &about.hosts) {
            let reason = format!(
                "it names {} {}, and {CREDS} beside it {} {}",
                about.role, about.name, member.role, member.name
            );
            return Err(content(&about_path, &reason));
        }
        let keys_path = folder.join(ORACLE_PUB);
        let keys = owned(&keys_path, Guard::Trusted(CHANGE))?;
        let oracle = KeyRing::parse(&keys).map_err(|error| content(&keys_path, &error))?;
        Ok(Identity { fleet, card, seed, oracle })
    }

    /// Makes the folder, which must not be there yet or be empty. It is there whole or not at all.
    ///
    /// # Errors
    /// It has files; the system's.
    pub fn save(&self, folder: &Path) -> Result<(), FileError> {
        put_in_place(folder, KEPT, |beside| self.write(beside))
    }

    /// Writes the files into a folder that is there.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), FileError> {
        create(&folder.join(CREDS), &creds(&self.card.jwt, &self.seed), KEPT)?;
        create(&folder.join(ABOUT), &self.about(), KEPT)?;
        create(&folder.join(CA), &self.fleet.ca, KEPT)?;
        create(&folder.join(ORACLE_PUB), &self.oracle.text(), KEPT)
    }

    /// Puts a renewed JWT into the folder, in place of the one before.
    ///
    /// # Errors
    /// The system's.
    pub fn store_card(&mut self, folder: &Path, card: Card) -> Result<(), FileError> {
        replace(&folder.join(CREDS), creds(&card.jwt, &self.seed).as_bytes())?;
        let hosts_changed = card.member().hosts != self.card.member().hosts;
        self.card = card;
        if hosts_changed { replace(&folder.join(ABOUT), self.about().as_bytes()) } else { Ok(()) }
    }

    /// Puts changed keys of the Oracle into the folder.
    ///
    /// # Errors
    /// The system's.
    pub fn store_keys(&mut self, folder: &Path, keys: KeyRing) -> Result<(), FileError> {
        replace(&folder.join(ORACLE_PUB), keys.text().as_bytes())?;
        self.oracle = keys;
        Ok(())
    }

    /// Whether the JWT is still valid at `now`.
    ///
    /// # Errors
    /// It has expired.
    pub fn check(&self, folder: &Path, now: UnixTime) -> Result<(), FileError> {
        let expires = self.card.user.expires;
        if expires > now {
            return Ok(());
        }
        let days = (now - expires) / 86_400;
        let reason = format!(
            "the identity of {} expired {days} days ago, as nothing has renewed it; set this machine's clock if `date` is wrong, \
             or enrol the machine with a new token (`opentcp fleet token`)",
            self.card.member().name
        );
        Err(content(&folder.join(CREDS), &reason))
    }

    /// The credentials as NATS's clients read them.
    pub fn creds(&self) -> String {
        creds(&self.card.jwt, &self.seed)
    }

    fn about(&self) -> String {
        let member = self.card.member();
        let about = About {
            servers: self.fleet.servers.clone(),
            account: self.fleet.account.to_string(),
            signing_keys: self.fleet.signing.iter().map(Nkey::to_string).collect(),
            name: member.name.clone(),
            role: member.role,
            hosts: member.hosts.clone(),
        };
        serde_json::to_string_pretty(&about).expect("it is plain data") + "\n"
    }
}

impl Fleet {
    /// From texts.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub(crate) fn new(servers: &[String], account: &str, signing: &[String], ca: String) -> Result<Fleet, String> {
        if servers.is_empty() || servers.len() > SERVERS_MAX {
            return Err(format!("`servers` has {} entries: from 1 to {SERVERS_MAX}", servers.len()));
        }
        for one in servers {
            let host =
                one.strip_prefix("tls://").ok_or_else(|| format!("`servers`: {one:?} does not begin with tls://"))?;
            host.parse::<server::Server>().map_err(|error| format!("`servers`: {error}"))?;
        }
        let key = |text: &str, what| Nkey::parse(text, NkeyKind::Account).map_err(|error| format!("`{what}`: {error}"));
        if signing.is_empty() || signing.len() > SIGNING_MAX {
            return Err(format!("`signing_keys` has {} entries: from 1 to {SIGNING_MAX}", signing.len()));
        }
        let account = key(account, "account")?;
        let signing = signing.iter().map(|text| key(text, "signing_keys")).collect::<Result<_, _>>()?;
        if !ca.contains("-----BEGIN CERTIFICATE-----") {
            return Err(format!("{CA} beside it holds no certificate in PEM"));
        }
        Ok(Fleet { servers: servers.to_vec(), account, signing, ca })
    }
}

/// The JWT and the secret key of a file of credentials.
pub(crate) fn read_creds(path: &Path, account: &Nkey, signing: &[Nkey]) -> Result<(Card, SecretNkey), FileError> {
    let text = owned(path, Guard::Secret)?;
    let missing = |what: &str| content(path, &format!("it has no part `{what}`; `opentcp enroll` writes such files"));
    let jwt = part(&text, "NATS USER JWT").ok_or_else(|| missing("NATS USER JWT"))?;
    let seed = part(&text, "USER NKEY SEED").ok_or_else(|| missing("USER NKEY SEED"))?;
    let card = Card::read(jwt, account, signing).map_err(|error| content(path, &error))?;
    let seed =
        SecretNkey::from_seed(seed, NkeyKind::User).map_err(|error| content(path, &format!("its seed is {error}")))?;
    if *seed.public() != card.user.key {
        return Err(content(path, &"its JWT is another key's than its seed"));
    }
    Ok((card, seed))
}

/// A part of a file of credentials.
pub(crate) fn part<'a>(text: &'a str, what: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {what}-----"))?;
    Some(rest.split_once("-----")?.0.trim())
}

/// A file that holds something else than it should.
pub(crate) fn content(path: &Path, reason: &dyn Display) -> FileError {
    FileError::Content { path: path.to_path_buf(), reason: reason.to_string() }
}

/// A folder of mode 0700.
pub(crate) fn make_folder(path: &Path) -> Result<(), FileError> {
    DirBuilder::new().mode(0o700).create(path).map_err(in_file(path))
}

/// Fills a new folder beside `folder` and renames it: it is there whole or not at all. `folder` must not be there yet, or be empty.
pub(crate) fn put_in_place(
    folder: &Path,
    why: &'static str,
    fill: impl FnOnce(&Path) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let exists = || FileError::Exists { path: folder.to_path_buf(), why };
    let occupied = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => folder.symlink_metadata().is_ok(),
    };
    if occupied {
        return Err(exists());
    }
    if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(in_file(parent))?;
    }
    let name = folder.file_name().ok_or_else(exists)?.to_string_lossy();
    let beside = Beside(folder.with_file_name(format!(".{name}.{}", std::process::id())));
    make_folder(&beside.0)?;
    fill(&beside.0)?;
    crate::files::sync_folder(&beside.0.join("any")).map_err(in_file(&beside.0))?;
    // rename(2) takes the place of an empty folder, and of nothing else
    match rustix::fs::rename(&beside.0, folder) {
        Ok(()) => crate::files::sync_folder(folder).map_err(in_file(folder)),
        Err(rustix::io::Errno::NOTEMPTY | rustix::io::Errno::EXIST | rustix::io::Errno::NOTDIR) => Err(exists()),
        Err(error) => Err(in_file(folder)(error.into())),
    }
}

/// A folder that is removed unless it was moved.
struct Beside(PathBuf);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
