//! Replacing the Oracle's CUE key, and the servers' certificate, in the folders.

use crate::files::{FileError, Guard, owned, replace};
use crate::identity::{ABOUT, Identity, ORACLE_PUB, content};
use crate::init::{CA_KEY, InitError, KEYS, NATS, OPERATOR, check_days};
use crate::keys::{KeyRing, KeysError, OracleKeys, STATEMENTS_MAX, Statement};
use crate::oracle::{NEXT_KEY, ORACLE_KEY, STATEMENTS};
use crate::server::{self, Server};
use crate::{ORACLES_MAX, UnixTime, random};
use data_encoding::HEXLOWER;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A step of replacing the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// A second key becomes valid; the first one still signs.
    Begin,
    /// The second key signs; the first one is not valid any more.
    Finish,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotated {
    /// The keys that agents are to trust now.
    pub ring: KeyRing,
    /// The folders that were changed.
    pub folders: Vec<PathBuf>,
    /// Whether this completed a step that was interrupted, instead of a new one.
    pub completed: bool,
}

/// Why the key is not replaced.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The keys.
    #[error("{}: {error}", folder.display())]
    Keys {
        /// In which folder.
        folder: PathBuf,
        /// Why.
        error: KeysError,
    },
    /// No random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(#[from] io::Error),
}

impl RotateError {
    /// Whether the request is wrong, and not the disk.
    pub fn is_input(&self) -> bool {
        !matches!(self, RotateError::Random(_) | RotateError::File(FileError::Io { .. }))
    }
}

/// The keys of one folder, and the statements about them.
struct Held {
    folder: PathBuf,
    keys: OracleKeys,
    statements: Vec<Statement>,
}

/// The identity folders of the Oracles: those in a fleet's folder, or the folder itself.
pub fn oracle_folders(folder: &Path) -> Vec<PathBuf> {
    let name = |number| folder.join(format!("oracle-{number}"));
    let there: Vec<PathBuf> = (0..ORACLES_MAX).map(name).filter(|one| one.is_dir()).collect();
    if there.is_empty() { vec![folder.to_path_buf()] } else { there }
}

/// Replaces the Oracle's CUE key by one step, in every folder of [`oracle_folders`], and in the operator's beside them. If it is
/// interrupted, another call completes the step.
///
/// # Errors
/// The step does not follow from what is there; the files cannot be read or written.
pub fn rotate(folder: &Path, step: Rotation) -> Result<Rotated, RotateError> {
    let folders = oracle_folders(folder);
    let held: Result<Vec<Held>, RotateError> = folders.iter().map(|folder| Held::load(folder)).collect();
    let mut held = held?;
    // the folder that is furthest ahead says what holds
    let latest = held.iter().map(|one| one.keys.ring.change).max().unwrap_or_default();
    let completed = held.iter().any(|one| one.keys.ring.change < latest);
    let at = held.iter().position(|one| one.keys.ring.change == latest).unwrap_or_default();
    let mut first = held.swap_remove(at);
    if !completed {
        first.step(step)?;
    }
    for folder in &folders {
        first.store(folder)?;
    }
    // the operator's commands are too short to be asked for changes
    let operator = folder.join(OPERATOR).join(ORACLE_PUB);
    if operator.exists() {
        replace(&operator, first.keys.ring.text().as_bytes())?;
    }
    Ok(Rotated { ring: first.keys.ring, folders, completed })
}

impl Held {
    fn load(folder: &Path) -> Result<Held, RotateError> {
        // only an Oracle's folder has these
        crate::OracleIdentity::load(folder)?;
        let ring_path = folder.join(ORACLE_PUB);
        let ring = owned(&ring_path, Guard::Trusted("other users can change it, and so send CUEs"))?;
        let ring = KeyRing::parse(&ring).map_err(|error| content(&ring_path, &error))?;
        let current = secret(&folder.join(ORACLE_KEY))?;
        let next_path = folder.join(NEXT_KEY);
        let next = if next_path.exists() { Some(secret(&next_path)?) } else { None };
        let path = folder.join(STATEMENTS);
        let statements = owned(&path, Guard::Trusted("other users can change it"))?;
        let statements = Statement::parse_all(&statements).map_err(|error| content(&path, &error))?;
        let keys = OracleKeys { ring, current, next };
        Ok(Held { folder: folder.to_path_buf(), keys, statements })
    }

    fn step(&mut self, step: Rotation) -> Result<(), RotateError> {
        let stated = match step {
            Rotation::Begin => {
                // a next key beside a ring without it is what an interrupted beginning left
                let left = self.keys.next.take_if(|_| self.keys.ring.keys().len() == 1);
                let next = match left {
                    Some(next) => next,
                    None => random()?,
                };
                self.keys.begin(next)
            }
            Rotation::Finish => self.keys.finish(),
        };
        let statement = stated.map_err(|error| RotateError::Keys { folder: self.folder.clone(), error })?;
        self.statements.push(statement);
        let surplus = self.statements.len().saturating_sub(STATEMENTS_MAX);
        self.statements.drain(..surplus);
        Ok(())
    }

    /// Writes what holds, in an order in which whatever interrupts it leaves keys that sign what agents trust.
    fn store(&self, folder: &Path) -> Result<(), RotateError> {
        let line = |secret: &[u8; 32]| format!("{}\n", HEXLOWER.encode(secret));
        let next_path = folder.join(NEXT_KEY);
        if let Some(next) = &self.keys.next {
            replace(&next_path, line(next).as_bytes())?;
        }
        replace(&folder.join(ORACLE_KEY), line(&self.keys.current).as_bytes())?;
        let mut lines = String::new();
        for statement in &self.statements {
            writeln!(lines, "{}", statement.text()).expect("writing to a string");
        }
        replace(&folder.join(STATEMENTS), lines.as_bytes())?;
        replace(&folder.join(ORACLE_PUB), self.keys.ring.text().as_bytes())?;
        if self.keys.next.is_none() && next_path.exists() {
            fs::remove_file(&next_path).map_err(crate::files::in_file(&next_path))?;
        }
        Ok(())
    }
}

fn secret(path: &Path) -> Result<[u8; 32], FileError> {
    let text = owned(path, Guard::Secret)?;
    let bytes = HEXLOWER.decode(text.trim().as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| content(path, &"a key is 64 hexadecimal digits"))
}

/// Makes a new key and certificate for the servers of a fleet's folder, signed by the authority in it. They have the names of `servers`,
/// or, if there are none, of the servers that members know. Returns the certificate's file.
///
/// # Errors
/// The folder is none, or lacks the authority's key.
pub fn renew_certificate(folder: &Path, servers: &[Server], days: u32, now: UnixTime) -> Result<PathBuf, InitError> {
    check_days(days)?;
    let authority_path = folder.join(KEYS).join(CA_KEY);
    let authority = owned(&authority_path, Guard::Secret)?;
    if !server::is_key(&authority) {
        let reason = "it holds no secret key in PEM; `opentcp fleet init` wrote one, and members trust no other";
        return Err(content(&authority_path, &reason).into());
    }
    let known;
    let servers = if servers.is_empty() {
        let place = folder.join(OPERATOR);
        let urls = Identity::load(&place)?.fleet.servers;
        let parse = |url: &String| url.trim_start_matches("tls://").parse::<Server>();
        known = urls.iter().map(parse).collect::<Result<Vec<Server>, String>>();
        known.as_ref().map_err(|error| content(&place.join(ABOUT), error))?
    } else {
        servers
    };
    let made = server::certificate(servers, &authority, now, days)?;
    let at = folder.join(NATS);
    replace(&at.join("server.key"), made.key.as_bytes())?;
    let path = at.join("server.pem");
    replace(&path, made.certificate.as_bytes())?;
    Ok(path)
}
