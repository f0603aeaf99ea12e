//! Where a command meets the Oracle: over the servers of a fleet, with an identity, or at a socket of this machine.

use crate::failure::Failure;
use crate::terminal::note;
use bus::{Address, unix_s};
use fleet::{Identity, Role};
use std::path::{Path, PathBuf};

/// The variable that names an operator's identity.
pub const VARIABLE: &str = "OPENTCP_IDENTITY";

/// Where `opentcp enroll` puts a machine's identity.
pub const FOLDER: &str = "/etc/opentcp/identity";

/// Where the Oracle is met.
pub struct Meeting {
    /// The bus.
    pub bus: Address,
    /// Who this machine is there; on the socket of one machine it is nobody.
    pub identity: Option<(PathBuf, Identity)>,
}

impl Meeting {
    /// By `--identity`, or `--socket`, or what is in the usual folder, or the usual socket. An operator's may also be named by the variable
    /// OPENTCP_IDENTITY, which counts before the usual folder.
    ///
    /// # Errors
    /// The identity cannot be used, or is one of another role.
    pub fn choose(identity: Option<&PathBuf>, socket: Option<&PathBuf>, roles: &[Role]) -> Result<Meeting, Failure> {
        let usual = Path::new(FOLDER);
        let named = Some(roles).filter(|roles| *roles == [Role::Operator] && socket.is_none()).and_then(|_| named());
        let identity = identity.or(named.as_ref());
        let folder = match (identity, socket) {
            (Some(folder), _) => folder,
            (None, None) if usual.join("fleet.json").exists() => usual,
            (None, socket) => {
                let socket = socket.cloned().unwrap_or_else(|| super::SOCKET.into());
                return Ok(Meeting { bus: Address::Unix(socket), identity: None });
            }
        };
        let input = |error: fleet::files::FileError| Failure::Input(error.to_string());
        let found = Identity::load(folder).map_err(input)?;
        let role = found.card.member().role;
        if !roles.contains(&role) {
            let wanted: Vec<&str> = roles.iter().map(|role| role.word()).collect();
            let words = format!(
                "{}: the identity of {role} {}; this command needs that of: {}",
                folder.display(),
                found.card.member().name,
                wanted.join(", ")
            );
            if identity.is_some() {
                return Err(Failure::Input(words));
            }
            // on an Oracle's machine the usual folder may be its agent's
            note!("{words}. It is not used");
            return Ok(Meeting { bus: Address::Unix(super::SOCKET.into()), identity: None });
        }
        found.check(folder, unix_s()).map_err(input)?;
        Ok(Meeting { bus: Address::Nats(folder.to_path_buf()), identity: Some((folder.to_path_buf(), found)) })
    }

    /// What was tried to find it, where neither an identity nor a socket was named.
    pub fn tried() -> String {
        let there = if Path::new(FOLDER).join("fleet.json").exists() { "not an operator's" } else { "not there" };
        format!("tried: --identity (not given), {VARIABLE} (not set), {FOLDER} ({there}), the socket {}", super::SOCKET)
    }

    /// A file of a key: as asked for, or the identity's own, or the usual one.
    pub fn key(&self, asked: Option<PathBuf>, own: &str, usual: &str) -> PathBuf {
        let own = self.identity.as_ref().map(|(folder, _)| folder.join(own));
        asked.or(own).unwrap_or_else(|| usual.into())
    }
}

/// The operator's identity that the variable names.
fn named() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}
