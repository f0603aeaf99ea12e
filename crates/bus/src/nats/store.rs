//! What several Oracles share, in a bucket of the server's: who of them decides, the policy, its rollout.

use super::folder::Folder;
use super::kv;
use super::link::{Capacity, Link};
use crate::BusError;
use async_nats::jetstream::kv::{CreateErrorKind, Operation, UpdateErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Longest value, bytes: one message of the bus holds it.
pub const STORED_MAX: usize = 60 * 1024;
/// How long a call may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// Why there is no answer.
const SILENT: &str = "the fleet's server did not answer within a second";
/// It has a connection of its own, for one question at a time.
const CAPACITY: Capacity = Capacity { received: 64, sent: 16 };

/// The store. Nothing is decided by it alone: a server may lose what it had, and agents follow the highest epoch.
pub struct NatsStore {
    link: Link,
}

impl NatsStore {
    /// With the Oracle's identity in a folder; returns at once, whether a server is there or not.
    ///
    /// # Errors
    /// The folder has no identity that can be used.
    pub fn open(folder: &Path) -> Result<NatsStore, BusError> {
        NatsStore::of(&Arc::new(Folder::open(folder)?))
    }

    pub(super) fn of(folder: &Arc<Folder>) -> Result<NatsStore, BusError> {
        Ok(NatsStore { link: Link::join(folder.joining()?, CAPACITY)? })
    }

    /// The value of a key and its revision; `None`: there is none.
    ///
    /// # Errors
    /// The server is not reached, or does not answer, within a second each; in words.
    pub fn get(&mut self, key: &str) -> Result<Option<(Vec<u8>, u64)>, String> {
        let (link, client) = (&self.link, self.link.client().clone());
        link.reach(PATIENCE)?;
        let ask = async {
            let entry = kv::bucket(&client, fleet::rights::ORACLE_BUCKET).await?.entry(key).await;
            let entry = entry.map_err(|error| error.to_string())?.filter(|entry| entry.operation == Operation::Put);
            Ok(entry.map(|entry| (entry.value.to_vec(), entry.revision)))
        };
        link.run(PATIENCE, ask).unwrap_or_else(|| Err(SILENT.to_string()))
    }

    /// Puts a value if it still has this revision (`None`: if there is none), and returns its new one. `Ok(None)`: somebody else was first.
    ///
    /// # Errors
    /// The value is too long; the server does not answer within a second: then it may have been put all the same.
    pub fn put(&mut self, key: &str, value: &[u8], revision: Option<u64>) -> Result<Option<u64>, String> {
        if value.len() > STORED_MAX {
            return Err(format!("a value of {} bytes; at most {STORED_MAX}", value.len()));
        }
        let (link, client, value) = (&self.link, self.link.client().clone(), value.to_vec());
        // what waited for a connection would be put when it is old
        link.reach(PATIENCE)?;
        let ask = async {
            let store = kv::bucket(&client, fleet::rights::ORACLE_BUCKET).await?;
            match revision {
                None => match store.create(key, value.into()).await {
                    Err(error) if error.kind() == CreateErrorKind::AlreadyExists => Ok(None),
                    outcome => outcome.map(Some).map_err(|error| error.to_string()),
                },
                Some(revision) => match store.update(key, value.into(), revision).await {
                    Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
                    outcome => outcome.map(Some).map_err(|error| error.to_string()),
                },
            }
        };
        link.run(PATIENCE, ask).unwrap_or_else(|| Err(SILENT.to_string()))
    }
}
