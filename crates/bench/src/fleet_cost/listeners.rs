//! Many subscriptions to what the Oracle says to all, by few connections: the server writes each message once for each.

use super::boot_ns;
use async_nats::{Auth, AuthError, ConnectOptions, ServerAddr};
use fleet::Identity;
use futures_util::StreamExt as _;
use futures_util::stream::select_all;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

/// Connections that are made at once.
const AT_ONCE: usize = 16;
/// Of a period: the beacon and two CUEs.
const MESSAGES: usize = 3;

/// The subscriptions. Their thread ends with the process.
pub(super) struct Listeners {
    all: usize,
    heard: Arc<Heard>,
}

#[derive(Default)]
struct Heard {
    /// Messages that have come.
    count: AtomicUsize,
    /// When the last of them came, since the machine started.
    last_ns: AtomicU64,
}

impl Listeners {
    /// Joins with an Oracle's identity, which may have any number of subscriptions; returns when the server has all of them.
    pub(super) fn start(folder: &Path, connections: usize, each: usize) -> Listeners {
        let heard = Arc::new(Heard::default());
        let ready = Arc::new(Barrier::new(2));
        let (of_thread, is_ready, folder) = (heard.clone(), ready.clone(), folder.to_path_buf());
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let joining =
                    futures_util::stream::iter(0..connections).map(|_| listen(&folder, each, of_thread.clone()));
                let tasks: Vec<_> = joining.buffer_unordered(AT_ONCE).collect().await;
                is_ready.wait();
                futures_util::future::join_all(tasks).await;
            });
        });
        ready.wait();
        Listeners { all: connections * each * MESSAGES, heard }
    }

    /// How long after `sent_ns` the last subscription had all messages of a period, seconds.
    pub(super) fn all_have_heard(&self, sent_ns: u128, patience: Duration) -> f64 {
        let began = Instant::now();
        while self.heard.count.load(Ordering::SeqCst) < self.all {
            assert!(began.elapsed() < patience, "{} have heard", self.heard.count.load(Ordering::SeqCst));
            thread::sleep(Duration::from_millis(1));
        }
        u128::from(self.heard.last_ns.load(Ordering::SeqCst)).saturating_sub(sent_ns) as f64 / 1e9
    }
}

/// One connection; the task that hears the messages of a period by each of its subscriptions.
async fn listen(folder: &Path, each: usize, heard: Arc<Heard>) -> tokio::task::JoinHandle<()> {
    let identity = Identity::load(folder).expect("it was made");
    let servers: Vec<ServerAddr> =
        identity.fleet.servers.iter().map(|text| text.parse().expect("an address")).collect();
    let sign = move |nonce: Vec<u8>| {
        let mut auth = Auth::new();
        auth.jwt = Some(identity.card.jwt.clone());
        auth.signature = Some(identity.seed.sign(&nonce).to_vec());
        async move { Ok::<Auth, AuthError>(auth) }
    };
    let options = ConnectOptions::with_auth_callback(sign)
        .require_tls(true)
        .add_root_certificates(folder.join("ca.pem"))
        .subscription_capacity(4);
    let client = options.connect(servers).await.expect("the server is there");
    let mut subscriptions = Vec::new();
    for _ in 0..each {
        subscriptions.push(client.subscribe(fleet::rights::CUE).await.expect("it is connected").take(MESSAGES));
    }
    client.flush().await.expect("it is connected");
    tokio::spawn(async move {
        let mut messages = select_all(subscriptions);
        while messages.next().await.is_some() {
            heard.count.fetch_add(1, Ordering::SeqCst);
            heard.last_ns.fetch_max(boot_ns() as u64, Ordering::SeqCst);
        }
        drop(client);
    })
}
