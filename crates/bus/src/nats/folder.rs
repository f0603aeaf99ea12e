//! The identity folder, as a connection uses it.

use super::hub::unix_s;
use crate::BusError;
use async_nats::ServerAddr;
use fleet::files::FileError;
use fleet::{Fleet, Identity, Member, SecretNkey, rights};
use policy::PublicKeys;
use std::path::{Path, PathBuf};

/// The file of the authority that signed the servers' certificates.
const CA: &str = "ca.pem";

/// A folder whose identity was read.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    identity: Identity,
    servers: Vec<ServerAddr>,
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
        let address = |text: &String| text.parse().map_err(|error| broken(path, &format!("{text}: {error}")));
        let servers = identity.fleet.servers.iter().map(address).collect::<Result<_, _>>()?;
        Ok(Folder { path: path.to_path_buf(), identity, servers })
    }

    /// An error of this folder.
    pub(super) fn broken(&self, reason: &str) -> BusError {
        broken(&self.path, reason)
    }

    /// Whose it is.
    pub(super) fn member(&self) -> &Member {
        self.identity.card.member()
    }

    /// The fleet.
    pub(super) fn fleet(&self) -> &Fleet {
        &self.identity.fleet
    }

    /// For the server's lists of connections.
    pub(super) fn name(&self) -> String {
        format!("opentcp {} {}", self.member().role, self.member().name)
    }

    /// Where the servers are.
    pub(super) fn servers(&self) -> &[ServerAddr] {
        &self.servers
    }

    /// The file of the authority that signed the servers' certificates.
    pub(super) fn ca(&self) -> PathBuf {
        self.path.join(CA)
    }

    /// Prefix of the subjects of answers to this client.
    pub(super) fn inbox(&self) -> String {
        rights::inbox(self.identity.seed.public())
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
        PublicKeys::parse(&self.identity.oracle.text()).map_err(|error| self.broken(&error.to_string()))
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
