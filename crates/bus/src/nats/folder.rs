//! The identity folder, as a connection uses it.

use super::joining::{Credentials, Joining, addresses};
use super::unix_s;
use crate::BusError;
use fleet::files::FileError;
use fleet::{Identity, Member, SecretNkey, rights};
use policy::PublicKeys;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file of the authority that signed the servers' certificates.
const CA: &str = "ca.pem";

/// A folder whose identity was read.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    identity: Identity,
}

impl Folder {
    /// Reads the folder.
    ///
    /// # Errors
    /// It has no identity, or one that cannot be used any more.
    pub(super) fn open(path: &Path) -> Result<Folder, BusError> {
        let failed = |error: FileError| broken(path, &error.to_string());
        let identity = Identity::load(path).map_err(failed)?;
        identity.check(path, unix_s()).map_err(failed)?;
        Ok(Folder { path: path.to_path_buf(), identity })
    }

    /// An error of this folder.
    pub(super) fn broken(&self, reason: &str) -> BusError {
        broken(&self.path, reason)
    }

    /// Whose it is.
    pub(super) fn member(&self) -> &Member {
        self.identity.card.member()
    }

    /// What a connection of this member needs.
    ///
    /// # Errors
    /// A server's address is none.
    pub(super) fn joining(self: &Arc<Folder>) -> Result<Joining, BusError> {
        let (name, folder) = (format!("opentcp {} {}", self.member().role, self.member().name), self.clone());
        let inbox = rights::inbox(self.identity.seed.public());
        self.joining_as(name, inbox, Box::new(move || folder.credentials()))
    }

    /// The same of somebody else who trusts the same authority.
    ///
    /// # Errors
    /// A server's address is none.
    pub(super) fn joining_as(
        &self,
        name: String,
        inbox: String,
        credentials: Box<Credentials>,
    ) -> Result<Joining, BusError> {
        let servers = addresses(&self.identity.fleet.servers).map_err(|error| self.broken(&error))?;
        Ok(Joining { name, servers, ca: self.path.join(CA), inbox, credentials })
    }

    /// Whether the identity is to be renewed.
    pub(super) fn is_due(&self) -> bool {
        Identity::load(&self.path).is_ok_and(|identity| identity.card.is_due(unix_s()))
    }

    /// Stores what the Oracle has answered to the wish to stay in the fleet. False if these bytes are no such answer.
    ///
    /// # Errors
    /// It is refused, or cannot be stored.
    pub(super) fn renew(&self, answer: &[u8]) -> Result<bool, BusError> {
        let failed = |error: &dyn std::fmt::Display| self.broken(&error.to_string());
        let mut identity = Identity::load(&self.path).map_err(|error| failed(&error))?;
        let Some(renewed) = identity.renewed(answer, unix_s()) else { return Ok(false) };
        let renewed = renewed.map_err(|error| failed(&error))?;
        if let Some(card) = renewed.card {
            identity.store_card(&self.path, card).map_err(|error| failed(&error))?;
        }
        if let Some(keys) = renewed.oracle {
            identity.store_keys(&self.path, keys).map_err(|error| failed(&error))?;
        }
        Ok(true)
    }

    /// The subject of what the Oracle sends to this member alone.
    pub(super) fn to(&self) -> String {
        rights::to(self.identity.seed.public())
    }

    /// The subject of what this member sends; none of an Oracle.
    pub(super) fn from(&self) -> Option<String> {
        rights::from(self.member().role, self.identity.seed.public())
    }

    /// The seed of the member's key.
    pub(super) fn secret(&self) -> [u8; 32] {
        nkeys::decode_seed(&self.identity.seed.seed()).expect("a key's own seed is one").1
    }

    /// The Oracle's keys.
    ///
    /// # Errors
    /// They are none.
    pub(super) fn oracle_keys(&self) -> Result<PublicKeys, BusError> {
        self.keys_of(&self.identity)
    }

    /// The Oracle's keys of now, which a renewal may have changed.
    ///
    /// # Errors
    /// The folder has changed otherwise.
    pub(super) fn stored_keys(&self) -> Result<PublicKeys, BusError> {
        let identity = Identity::load(&self.path).map_err(|error| self.broken(&error.to_string()))?;
        self.keys_of(&identity)
    }

    fn keys_of(&self, identity: &Identity) -> Result<PublicKeys, BusError> {
        PublicKeys::parse(&identity.oracle.text()).map_err(|error| self.broken(&error.to_string()))
    }

    /// The JWT of now, which may have been renewed since, and the key.
    ///
    /// # Errors
    /// The folder has changed otherwise.
    pub(super) fn credentials(&self) -> Result<(String, SecretNkey), String> {
        let identity = Identity::load(&self.path).map_err(|error| error.to_string())?;
        let same = identity.seed.public() == self.identity.seed.public();
        let another = || format!("{}: another identity than when this program started", self.path.display());
        if same { Ok((identity.card.jwt, identity.seed)) } else { Err(another()) }
    }
}

fn broken(folder: &Path, reason: &str) -> BusError {
    BusError::Identity { folder: folder.to_path_buf(), reason: reason.to_string() }
}
