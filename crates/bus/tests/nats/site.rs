//! A fleet of a test's own: its keys, its server, and members made without a token.

use async_nats::connection::State;
use async_nats::{Client, ConnectOptions};
use bus::sealed::Sealer;
use bus::{Hub as _, NatsBus, NatsHub, Role};
use fleet::{Identity, Init, Member, NkeyKind, OracleIdentity, SecretNkey, User, init};
use futures_util::StreamExt as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use testkit::{NatsServer, free_port, nats_program, until};
use tokio::runtime::{Builder, Runtime};

const DAY_S: u64 = 86_400;

pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

pub struct Site {
    folder: TempDir,
    pub server: NatsServer,
    pub oracle: OracleIdentity,
    pub port: u16,
}

impl Site {
    /// A new fleet and its server; `None` where there is no nats-server.
    pub fn new() -> Option<Site> {
        Site::with(|_| {})
    }

    /// The same, with something changed in what is asked for.
    pub fn with(change: impl FnOnce(&mut Init)) -> Option<Site> {
        let program = nats_program()?;
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let servers = vec![format!("127.0.0.1:{port}").parse().unwrap()];
        let mut asked = Init { servers, oracles: 2, certificate_days: 10, now: now() };
        change(&mut asked);
        init(&folder.path().join("fleet"), &asked).unwrap();
        let configuration = folder.path().join("fleet/nats/nats-server.conf");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let server = NatsServer::start(&program, &configuration, address, None);
        let oracle = OracleIdentity::load(&folder.path().join("fleet/oracle-0")).unwrap();
        Some(Site { folder, server, oracle, port })
    }

    /// The folder of one of the fleet's own identities: `oracle-0`, `operator`.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.folder.path().join("fleet").join(name)
    }

    /// The Oracle's end, connected, in epoch 7.
    pub fn hub(&self) -> NatsHub {
        let mut hub = NatsHub::listen(&self.folder("oracle-0")).unwrap();
        hub.epoch(7);
        until("the Oracle is connected", || {
            let _ = hub.receive(Duration::from_millis(20)).unwrap();
            hub.is_connected()
        });
        hub
    }

    /// The identity of a new member, signed by the fleet's account.
    pub fn identity(&self, name: &str, role: Role, hosts: &[&str]) -> Identity {
        self.identity_until(name, role, hosts, now() + DAY_S)
    }

    /// The same, until then.
    pub fn identity_until(&self, name: &str, role: Role, hosts: &[&str], until: u64) -> Identity {
        self.made(name, role, hosts, [now() - 10, until])
    }

    /// The same, for 90 days of which 60 are over.
    pub fn identity_that_is_due(&self, name: &str, role: Role) -> Identity {
        self.made(name, role, &[], [now() - 60 * DAY_S, now() + 30 * DAY_S])
    }

    fn made(&self, name: &str, role: Role, hosts: &[&str], [from, until]: [u64; 2]) -> Identity {
        let seed = SecretNkey::generate(NkeyKind::User).unwrap();
        let hosts = hosts.iter().map(|host| (*host).to_string()).collect();
        let member = Member { name: name.into(), role, hosts };
        let fleet = self.oracle.identity.fleet.clone();
        let user = User::member(seed.public().clone(), member, from, until);
        let card = user.issue(&fleet.account, &self.oracle.signing);
        Identity { fleet, card, seed, oracle: self.oracle.identity.oracle.clone() }
    }

    /// Saves an identity in a folder of its own.
    pub fn saved(&self, identity: &Identity) -> PathBuf {
        let folder = self.folder.path().join(format!("{}-{}", identity.card.member().name, identity.card.user.key));
        identity.save(&folder).unwrap();
        folder
    }

    /// A new member's end; the Oracle knows it.
    pub fn join(&self, hub: &mut NatsHub, name: &str, role: Role) -> NatsBus {
        let identity = self.identity(name, role, &[]);
        hub.enter(&identity.card).unwrap();
        NatsBus::join(&self.saved(&identity)).unwrap()
    }
}

/// A client that says what it likes, with a member's credentials: a stolen key, or the server itself.
pub struct Raw {
    runtime: Runtime,
    client: Client,
    /// What the server objected to.
    objections: Arc<Mutex<Vec<String>>>,
}

impl Raw {
    pub fn connect(site: &Site, identity: &Identity) -> Raw {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let objections = Arc::<Mutex<Vec<String>>>::default();
        let noted = objections.clone();
        let options = ConnectOptions::with_credentials(&identity.creds()).unwrap();
        let options = options
            .require_tls(true)
            .add_root_certificates(site.folder("oracle-0/ca.pem"))
            .custom_inbox_prefix(fleet::rights::inbox(identity.seed.public()))
            .event_callback(move |event| {
                noted.lock().unwrap().push(event.to_string());
                async {}
            });
        let client = runtime.block_on(options.connect(format!("tls://127.0.0.1:{}", site.port))).unwrap();
        Raw { runtime, client, objections }
    }

    /// Publishes, and waits until the server has seen it.
    pub fn publish(&self, subject: &str, bytes: &[u8]) {
        self.flood(subject, bytes, 1);
    }

    /// The same many times, as fast as it goes.
    pub fn flood(&self, subject: &str, bytes: &[u8], times: usize) {
        self.runtime.block_on(async {
            let (subject, bytes) = (subject.to_string(), bytes.to_vec());
            for _ in 0..times {
                self.client.publish(subject.clone(), bytes.clone().into()).await.unwrap();
            }
            let _ = self.client.flush().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        });
    }

    /// Publishes a request whose answer is to go to `reply`.
    pub fn ask(&self, subject: &str, reply: &str, bytes: &[u8]) {
        let (subject, reply, bytes) = (subject.to_string(), reply.to_string(), bytes.to_vec());
        self.runtime.block_on(async {
            self.client.publish_with_reply(subject, reply, bytes.into()).await.unwrap();
            let _ = self.client.flush().await;
        });
    }

    /// The same; whether anything comes there within this time.
    pub fn is_answered(&self, subject: &str, reply: &str, bytes: &[u8], within: Duration) -> bool {
        let heard = self.client.subscribe(reply.to_string());
        let mut heard = self.runtime.block_on(heard).unwrap();
        self.ask(subject, reply, bytes);
        let next = async { tokio::time::timeout(within, heard.next()).await.is_ok() };
        self.runtime.block_on(next)
    }

    /// Whether it hears anything at a subject within this time.
    pub fn hears(&self, subject: &str, within: Duration) -> bool {
        self.runtime.block_on(async {
            let mut heard = self.client.subscribe(subject.to_string()).await.unwrap();
            tokio::time::timeout(within, heard.next()).await.is_ok()
        })
    }

    /// Waits until the server has objected to something.
    pub fn is_refused(&self, what: &str) {
        until(what, || {
            self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(20)).await });
            self.objections.lock().unwrap().iter().any(|objection| objection.contains(what))
        });
    }

    pub fn is_connected(&self) -> bool {
        self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(20)).await });
        self.client.connection_state() == State::Connected
    }
}

/// The subject on which an identity sends.
pub fn subject(identity: &Identity) -> String {
    fleet::rights::from(identity.card.member().role, identity.seed.public()).unwrap()
}

/// Seals as this identity.
pub fn sealer(identity: &Identity, session: u8) -> Sealer {
    let (_, secret) = nkeys::decode_seed(&identity.seed.seed()).unwrap();
    Sealer::new(secret, [session; 8])
}
