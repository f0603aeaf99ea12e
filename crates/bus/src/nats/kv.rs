//! Buckets of keys and values that the Oracles share (JetStream).

use async_nats::Client;
use async_nats::jetstream;
use async_nats::jetstream::context::{CreateStreamErrorKind, KeyValueErrorKind};
use async_nats::jetstream::kv::{CreateErrorKind, Operation, Store};
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use futures_util::StreamExt as _;
use std::time::Duration;
use tokio::time::sleep;

/// Longest value, bytes.
const VALUE_MAX: i32 = 64 * 1024;
/// Longest bucket, bytes: all members, and more than the shared state.
const BUCKET_BYTES_MAX: i64 = 512 << 20;
/// How long until a watch that ended is begun anew.
const AGAIN: Duration = Duration::from_secs(2);

/// The bucket; it is made if there is none.
///
/// # Errors
/// The server is not there, has no JetStream, or refuses, in words.
pub(super) async fn bucket(client: &Client, name: &str) -> Result<Store, String> {
    let context = jetstream::new(client.clone());
    match context.get_key_value(name).await {
        Ok(store) => return Ok(store),
        Err(error) if error.kind() == KeyValueErrorKind::GetBucket => {}
        Err(error) => return Err(error.to_string()),
    }
    let config = Config {
        name: format!("KV_{name}"),
        subjects: vec![format!("$KV.{name}.>")],
        max_messages_per_subject: 1,
        max_message_size: VALUE_MAX,
        max_bytes: BUCKET_BYTES_MAX,
        storage: StorageType::File,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: true,
        ..Config::default()
    };
    match context.create_stream(config).await {
        Err(error) if !matches!(error.kind(), CreateStreamErrorKind::JetStream(_)) => return Err(error.to_string()),
        // another Oracle may have made it meanwhile
        _ => {}
    }
    context.get_key_value(name).await.map_err(|error| error.to_string())
}

/// Hands on every key and its value, `None` if it was removed: first those that are there, then each change. Never ends. The keys and values
/// of `first` are put where there are none.
pub(super) async fn watch(
    client: Client,
    name: &'static str,
    first: Vec<(String, String)>,
    mut take: impl FnMut(&str, Option<&[u8]>),
) {
    loop {
        // what went wrong shows in what is not known: members count as unknown until their entry is there
        let _ = follow(&client, name, &first, &mut take).await;
        sleep(AGAIN).await;
    }
}

async fn follow(
    client: &Client,
    name: &str,
    first: &[(String, String)],
    take: &mut impl FnMut(&str, Option<&[u8]>),
) -> Result<(), String> {
    let store = bucket(client, name).await?;
    for (key, value) in first {
        match store.create(key, value.clone().into()).await {
            Err(error) if error.kind() != CreateErrorKind::AlreadyExists => return Err(error.to_string()),
            _ => {}
        }
    }
    let mut entries = store.watch_with_history(">").await.map_err(|error| error.to_string())?;
    while let Some(entry) = entries.next().await {
        let entry = entry.map_err(|error| error.to_string())?;
        let value = (entry.operation == Operation::Put).then_some(&entry.value[..]);
        take(&entry.key, value);
    }
    Ok(())
}
