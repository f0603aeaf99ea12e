//! Reads switches by OpenFlow 1.3: counters of ports and queues, neighbours by LLDP, and a matrix of traffic from flow entries.
//!
//! [`OpenFlow`] is the controller's side for one switch. Either it connects to the switch's passive listener, or the switch connects to a
//! [`Listener`]. A task keeps the connection between readings, answers echo requests and receives LLDP.
//!
//! A switch may have another controller. Nothing of it is touched:
//!
//! - Without LLDP we take the role SLAVE: the switch refuses every change that we could ask for. Statistics are not concerned.
//! - LLDP needs the role EQUAL, since a slave cannot send packets. Then one flow entry is added to table 0, with a cookie of its own:
//!   Ethernet type 0x88cc to the controller, priority 60,000. It is removed when the reader is closed, and by the switch itself, four intervals
//!   of LLDP after the last renewal, when nobody closes it. Where another controller has an entry of the same match and priority, ours is
//!   not added. Packets that other entries, or a table miss, send to controllers are not asked for.
//!
//! Bounds: a message has at most 65,535 bytes; a switch [`PORTS_MAX`] ports, [`QUEUES_MAX`] queues, [`FLOWS_MAX`] flow entries in a reading, of
//! which 16 bytes each are kept for two readings. A reading takes at most its timeout, and as much again where an attempt to connect or a round of
//! LLDP is under way.
//!
//! ```no_run
//! # async fn example() -> Result<(), collect::openflow::Error> {
//! use collect::openflow::{LldpKey, OpenFlow, Settings};
//!
//! let key = LldpKey::random();
//! let settings = Settings { name: "tor1".into(), lldp: Some(key.into()), ..Settings::default() };
//! let mut switch = OpenFlow::connect(settings, "192.0.2.1:6653".into(), None);
//! for port in switch.read().await?.ports {
//!     println!("{}: {:?} bytes sent, to {:?}", port.name, port.sent.bytes, port.neighbour);
//! }
//! switch.close().await;
//! # Ok(())
//! # }
//! ```

mod channel;
mod error;
mod listener;
mod lldp;
mod oxm;
mod session;
mod statistics;
#[cfg(test)]
pub(crate) mod tests;
mod tls;
mod traffic;
mod wire;

pub use error::Error;
pub use listener::{Expected, Listener};
pub use lldp::LldpKey;
pub use tls::Tls;
pub use traffic::{FLOWS_MAX, MatrixSettings, RACKS_MAX, Rack, Traffic};

use crate::SwitchCounters;
use session::{Ask, Session, Source};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use units::Rate;

/// Most ports of a switch.
pub const PORTS_MAX: usize = 4096;
/// Most queues of a switch.
pub const QUEUES_MAX: usize = 65_536;

/// How a switch is read.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its name in views, and what it calls itself to neighbours. Empty: `dpid:` and its datapath's number.
    pub name: String,
    /// Refuse another datapath than this.
    pub datapath: Option<u64>,
    /// Find neighbours. `None`: the switch is only read, as a slave.
    pub lldp: Option<LldpSettings>,
    /// Make a matrix.
    pub matrix: Option<MatrixSettings>,
    /// Rates of ports by their names, where the switch does not know better.
    pub rates: BTreeMap<String, Rate>,
    /// Longest wait of a reading.
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            name: String::new(),
            datapath: None,
            lldp: None,
            matrix: None,
            rates: BTreeMap::new(),
            timeout: Duration::from_secs(5),
        }
    }
}

/// How neighbours are found.
#[derive(Debug, Clone)]
pub struct LldpSettings {
    /// The same for all switches of a network.
    pub key: LldpKey,
    /// Between frames, once the network is known; a neighbour holds for four of them.
    pub interval: Duration,
    /// Believe what hosts and switches that are not read with this key say of themselves. Anybody who may send to a port can say anything.
    pub foreign: bool,
}

/// The reader of one switch. When it is dropped its task removes our flow entry, if the runtime still runs; [`OpenFlow::close`] waits for it.
#[derive(Debug)]
pub struct OpenFlow {
    asks: mpsc::Sender<Ask>,
}

impl OpenFlow {
    /// A switch that listens at `address`, a host's name or address with a port. Must be called within a tokio runtime; the first attempt to
    /// connect begins at once.
    pub fn connect(settings: Settings, address: String, tls: Option<Tls>) -> OpenFlow {
        OpenFlow::start(Session::new(settings, Source::Connect { address, tls }))
    }

    /// A switch that connects to the listener. A newer connection of the same switch replaces an older one.
    pub fn listen(settings: Settings, listener: &Listener, expected: Expected) -> OpenFlow {
        let settings = Settings { datapath: settings.datapath.or(expected.datapath), ..settings };
        OpenFlow::start(Session::new(settings, Source::Listen(listener.expect(expected))))
    }

    fn start(session: Session) -> OpenFlow {
        let (asks, asked) = mpsc::channel(1);
        tokio::spawn(session.run(asked));
        OpenFlow { asks }
    }

    /// Reads ports, their neighbours and queues. The switch's own port (LOCAL) is left out, since no cable is in it.
    ///
    /// # Errors
    /// Of this reading; the next may succeed.
    pub async fn read(&mut self) -> Result<SwitchCounters, Error> {
        self.ask(Ask::Counters).await?
    }

    /// Reads flow entries: traffic since the reading before. Without [`Settings::matrix`], it is empty.
    ///
    /// # Errors
    /// Of this reading; the next may succeed, and then covers the time of both.
    pub async fn matrix(&mut self) -> Result<Traffic, Error> {
        self.ask(Ask::Traffic).await?
    }

    /// What keeps neighbours from being found, and other errors of the switch that belong to no reading.
    ///
    /// # Errors
    /// The task has ended.
    pub async fn problem(&mut self) -> Result<Option<String>, Error> {
        self.ask(Ask::Problem).await
    }

    /// Removes our flow entry, and disconnects. Takes at most two seconds, or a timeout if a connection attempt is under way.
    pub async fn close(self) {
        let _ = self.ask(Ask::Close).await;
    }

    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.asks.send(ask(reply)).await.map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)
    }
}

/// Reads bytes of a switch, without their header, as every message that they could be.
pub fn parsed(bytes: &[u8]) {
    let _ = wire::features(bytes);
    let _ = wire::generation(bytes);
    let _ = wire::error(bytes).map(|(kind, code)| wire::error_name(kind, code));
    let _ = wire::speaks_ours(&wire::Message { version: 4, kind: wire::kind::HELLO, xid: 0, body: bytes.to_vec() });
    let _ = lldp::read(bytes, &LldpKey::of([1; 32]));
    let _ = oxm::read(bytes);
    let _ = wire::packet_in(bytes).and_then(|arrived| {
        let _ = lldp::read(arrived.packet, &LldpKey::of([1; 32]));
        oxm::read(arrived.fields)
    });
    let _ = statistics::removed(bytes).and_then(|entry| oxm::read(entry.fields));
    let bodies = [Some(bytes), wire::part(bytes).ok().map(|part| part.body)];
    for mut cursor in bodies.into_iter().flatten().map(|body| wire::Cursor::new("anything", body)) {
        let (mut ports, mut counted, mut queues) = (cursor, cursor, cursor);
        while statistics::description(&mut ports).is_ok() {}
        while statistics::port(&mut counted).is_ok() {}
        while statistics::queue(&mut queues).is_ok() {}
        while let Ok(entry) = statistics::flow(&mut cursor) {
            let _ = oxm::read(entry.fields);
        }
    }
}
