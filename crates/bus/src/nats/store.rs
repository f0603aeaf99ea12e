//! What several Oracles share, in a bucket of the server's: who of them decides, the policy, its rollout.

use super::folder::Folder;
use super::kv;
use super::link::{Capacity, Link};
use crate::{BusError, Entry, Store, StoreError};
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
}

impl Store for NatsStore {
    fn get(&mut self, key: &str) -> Result<Option<Entry>, StoreError> {
        let (link, client) = (&self.link, self.link.client().clone());
        link.reach(PATIENCE).map_err(StoreError::Away)?;
        let ask = async {
            let entry = kv::bucket(&client, fleet::rights::ORACLE_BUCKET).await?.entry(key).await;
            let entry = entry.map_err(|error| error.to_string())?.filter(|entry| entry.operation == Operation::Put);
            Ok(entry.map(|entry| Entry { value: entry.value.to_vec(), revision: entry.revision }))
        };
        link.run(PATIENCE, ask).unwrap_or_else(|| Err(SILENT.to_string())).map_err(StoreError::Away)
    }

    fn put(&mut self, key: &str, value: &[u8], revision: Option<u64>) -> Result<Option<u64>, StoreError> {
        if value.len() > STORED_MAX {
            return Err(StoreError::Away(format!(
                "a value of {} bytes: the fleet's server keeps at most {STORED_MAX}; share a folder instead (--lease DIR)",
                value.len()
            )));
        }
        let (link, client, value) = (&self.link, self.link.client().clone(), value.to_vec());
        // what waited for a connection would be put when it is old
        link.reach(PATIENCE).map_err(StoreError::Away)?;
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
        link.run(PATIENCE, ask).unwrap_or_else(|| Err(SILENT.to_string())).map_err(StoreError::Away)
    }
}
