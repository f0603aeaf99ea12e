//! How a machine joins the fleet: with a token, once.

use super::joining::{Joining, addresses};
use super::link::{Capacity, Link};
use super::unix_s;
use crate::random;
use fleet::files::FileError;
use fleet::{AnswerError, Identity, NkeyKind, Refusal, SecretNkey, Token, TokenError, rights};
use futures_util::StreamExt as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// One question and its answer.
const CAPACITY: Capacity = Capacity { received: 8, sent: 8 };
/// How long the Oracle may take to answer before it is asked once more.
const ANSWER: Duration = Duration::from_secs(5);

/// Why a machine is not enrolled.
#[derive(Debug, thiserror::Error)]
pub enum EnrollError {
    /// The token is none, or not valid.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The name, or the token's rights.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The Oracle's answer.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// The folder.
    #[error(transparent)]
    File(#[from] FileError),
    /// No server, or no Oracle.
    #[error("{0}")]
    Away(String),
    /// The system's.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl EnrollError {
    /// Whether the request is wrong, and not the fleet away.
    pub fn is_input(&self) -> bool {
        !matches!(self, EnrollError::Away(_) | EnrollError::Io(_) | EnrollError::Answer(AnswerError::Shape(_)))
    }
}

/// A file that is removed when this is dropped.
struct Beside(PathBuf);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Makes a key, has it enrolled under `name`, and saves the identity in `folder`. The key's seed stays on this machine. `wait` is how long
/// servers and the Oracle may take.
///
/// # Errors
/// Why not; nothing is left then.
pub fn enroll(token: &str, name: &str, folder: &Path, wait: Duration) -> Result<Identity, EnrollError> {
    let token = Token::parse(token, unix_s())?;
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        // what is there is not overwritten, and no use of the token is lost
        let why = "this machine has an identity. To replace it, stop what uses it and remove the folder";
        return Err(FileError::Exists { path: folder.to_path_buf(), why }.into());
    }
    let machine = SecretNkey::generate(NkeyKind::User)?;
    let request = fleet::request(&token, &machine, name)?;
    let answer = ask(&token, &request, wait)?;
    let identity = fleet::enrolled(&token, &machine, name, &answer, unix_s())?;
    identity.save(folder)?;
    Ok(identity)
}

/// Asks until there is an answer.
fn ask(token: &Token, request: &[u8], wait: Duration) -> Result<Vec<u8>, EnrollError> {
    let unique = u64::from_le_bytes(random()?);
    let ca = Beside(std::env::temp_dir().join(format!("opentcp-ca-{unique:016x}.pem")));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&ca.0)?;
    file.write_all(token.fleet.ca.as_bytes())?;
    let (jwt, seed) = (token.ticket.jwt.clone(), token.seed.clone());
    let inbox = rights::inbox(token.seed.public());
    let joining = Joining {
        name: "opentcp enroll".to_string(),
        servers: addresses(&token.fleet.servers).map_err(EnrollError::Away)?,
        ca: ca.0.clone(),
        inbox: inbox.clone(),
        credentials: Box::new(move || Ok((jwt.clone(), seed.clone()))),
    };
    let began = Instant::now();
    let link = Link::join(joining, CAPACITY).map_err(|error| EnrollError::Away(error.to_string()))?;
    link.reach(wait).map_err(EnrollError::Away)?;
    // machines enrol at the same time with one token
    let reply = format!("{inbox}.{unique:016x}");
    let mut answers = link.subscribe(&reply).map_err(|error| EnrollError::Away(error.to_string()))?;
    while began.elapsed() < wait {
        let left = wait.saturating_sub(began.elapsed()).min(ANSWER);
        let asked = async {
            let publish = link.client().publish_with_reply(rights::ENROLL, reply.clone(), request.to_vec().into());
            publish.await.map_err(|error| EnrollError::Away(error.to_string()))?;
            // an answer without bytes is the server's: nobody listens
            loop {
                match answers.next().await {
                    Some(message) if message.payload.is_empty() => {}
                    Some(message) => return Ok(message.payload.to_vec()),
                    None => return Err(EnrollError::Away("the connection has ended".to_string())),
                }
            }
        };
        if let Some(answer) = link.run(left, asked) {
            return answer;
        }
    }
    let why = "the server is there, but no Oracle has answered: is one running (`opentcp oracle`)? The token can be used again";
    Err(EnrollError::Away(why.to_string()))
}
