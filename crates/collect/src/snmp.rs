//! SNMP v2c and v3: what a switch says in IF-MIB and LLDP-MIB.
//!
//! ```text
//! Reader::read ──▶ GET sysUpTime, sysName        who answers, and may we ask?
//!              ──▶ GET of a few counters          until one changes: the switch has just refreshed them
//!              ──▶ walk of IF-MIB                 all counters of a port in one answer, with its time
//!              ──▶ walk of ifIn/OutOctets         only if some port lacks 64-bit counters
//!              ──▶ walks of LLDP-MIB              neighbours, if the switch has any
//! ```
//!
//! An agent does not answer what it does not accept: a wrong community and a wrong password look like a switch that is not there. So when
//! nothing came, the reader asks what every agent of SNMPv3 answers, the discovery of its engine (RFC 3414, section 4), and tells the cases
//! apart.

mod access;
mod interfaces;
mod lldp;
mod refresh;
mod uptime;
mod walk;

pub use access::{Access, User};

use crate::text::{clean, with_port};
use crate::{PORTS_MAX, ReadError, SwitchCounters};
use async_snmp::ber::Decoder;
use async_snmp::varbind::decode_varbind_list;
use async_snmp::{Auth, Client, ErrorKind, ErrorStatus, Oid, Retry, VarBind};
use bus::Clock;
use refresh::{LOOK, Refresh};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::net::UdpSocket;
use units::Time;
use uptime::Uptime;
use walk::{Index, Row, Walk};

const SYS_UPTIME: [u32; 8] = [1, 3, 6, 1, 2, 1, 1, 3];
const SYS_NAME: [u32; 8] = [1, 3, 6, 1, 2, 1, 1, 5];
/// Most neighbours that are read: a few for each port.
const NEIGHBOURS_MAX: usize = 4 * PORTS_MAX;
/// Most requests of a walk: a switch that answers a value at a time does not keep the reader for ever.
const REQUESTS_MAX: usize = 8 * PORTS_MAX;
/// SNMP's port.
const PORT: u16 = 161;
/// Longest wait for "nobody listens here".
const REFUSAL_WAIT: Duration = Duration::from_millis(300);

/// Which switch, and how it is asked.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name in views; `None`: what it calls itself (sysName).
    pub switch: Option<String>,
    /// `HOST` or `HOST:PORT`; port 161 if there is none.
    pub address: String,
    /// Community or user.
    pub access: Access,
    /// Longest wait for one answer.
    pub timeout: Time,
    /// Requests that are repeated after such a wait, for each.
    pub retries: u32,
    /// Longest time for all requests of a reading.
    pub reading: Time,
    /// Longest wait for the switch to refresh its counters, which many do by a timer; zero: read what they are. It is over as soon as a
    /// counter changes: at once with a switch whose counters are always current.
    pub refresh: Time,
}

impl Options {
    /// A timeout of 2 s, one retry, 30 s for a reading, up to 5 s of them for refreshed counters.
    pub fn new(address: impl Into<String>, access: Access) -> Options {
        Options {
            switch: None,
            address: address.into(),
            access,
            timeout: Time::from_secs(2),
            retries: 1,
            reading: Time::from_secs(30),
            refresh: Time::from_secs(5),
        }
    }
}

/// Reads one switch.
pub struct Reader {
    options: Options,
    clock: Clock,
    /// After an answer; a new one after an error, since an agent may have another engine ID then.
    client: Option<Client>,
    uptime: Uptime,
    refresh: Refresh,
}

impl Reader {
    /// Sends nothing yet.
    pub fn new(options: Options) -> Reader {
        Reader { options, clock: Clock::begin(), client: None, uptime: Uptime::default(), refresh: Refresh::default() }
    }
}

impl crate::Reader for Reader {
    /// Asks for everything once.
    ///
    /// # Errors
    /// The switch did not answer, refused, answered something else, or took longer than [`Options::reading`].
    async fn read(&mut self) -> Result<SwitchCounters, ReadError> {
        if self.clock.is_old() {
            self.clock = Clock::begin();
            self.uptime.forget_times();
        }
        // Taken out, and returned after success only.
        let known = self.client.take();
        let is_known = known.is_some();
        let client = match known {
            Some(client) => client,
            None => self.connect(self.options.access.auth().map_err(ReadError::Refused)?, self.options.retries).await?,
        };
        let within = self.options.reading;
        let slow = |_| ReadError::Interrupted(format!("{within} are over; ask it less often, with a longer `reading`"));
        let counters = tokio::time::timeout(duration(within), self.all(&client, is_known)).await.map_err(slow)??;
        self.client = Some(client);
        Ok(counters)
    }
}

impl Reader {
    async fn connect(&self, auth: Auth, retries: u32) -> Result<Client, ReadError> {
        let timeout = duration(self.options.timeout);
        let retry = Retry::fixed(retries, Duration::ZERO).map_err(|error| ReadError::Io(error.to_string()))?;
        let builder = Client::builder(with_port(&self.options.address, PORT), auth).retry(retry);
        let connected = builder.request_timeout(timeout).construction_timeout(timeout).connect().await;
        connected.map_err(|error| ReadError::Unreachable(error.to_string()))
    }

    async fn all(&mut self, client: &Client, is_known: bool) -> Result<SwitchCounters, ReadError> {
        let name = match self.greet(client).await {
            // It answered before: it may have restarted, and the failure's search has found its new engine.
            Err(ReadError::Refused(_)) if is_known => self.greet(client).await?,
            name => name?,
        };
        // Only a reading tells which counters to watch, so the first is taken twice.
        if self.refresh.watched().is_empty() && self.options.refresh > Time::ZERO {
            self.ports(client).await?;
        }
        self.await_refresh(client).await?;
        let mut ports = self.ports(client).await?;
        let remote = self.walk(client, Walk::new("neighbours", NEIGHBOURS_MAX, lldp::remote_columns())).await?;
        if !remote.is_empty() {
            let local = self.walk(client, Walk::new("ports of LLDP", PORTS_MAX, lldp::local_columns())).await?;
            lldp::join(&mut ports, &local, &remote);
        }
        let switch = self.options.switch.clone().unwrap_or(name);
        Ok(SwitchCounters { switch, ports: ports.into_iter().map(|port| port.counters).collect() })
    }

    /// The counters of all ports.
    async fn ports(&mut self, client: &Client) -> Result<Vec<interfaces::Port>, ReadError> {
        let rows = self.walk(client, Walk::new("ports", PORTS_MAX, interfaces::columns())).await?;
        let narrow = if interfaces::some_are_narrow(&rows) {
            self.walk(client, Walk::new("ports", PORTS_MAX, interfaces::narrow_columns())).await?
        } else {
            BTreeMap::new()
        };
        let ports = interfaces::ports(&rows, &narrow, &self.uptime);
        if ports.is_empty() {
            let what = "IF-MIB: it shows no ports. Its view for this community or user must contain 1.3.6.1.2.1.2 and 1.3.6.1.2.1.31";
            return Err(ReadError::Unsupported(what.into()));
        }
        self.refresh.read(ports.iter().map(|port| &port.counters), interfaces::octets);
        Ok(ports)
    }

    /// The first request of a reading: what the switch calls itself.
    async fn greet(&mut self, client: &Client) -> Result<String, ReadError> {
        let scalars = [SYS_UPTIME, SYS_NAME].map(|oid| Oid::from_slice(&oid).child(0));
        let asked = self.clock.now();
        let answer = match client.get_many(&scalars).await {
            Ok(answer) => answer,
            Err(error) if error.kind() == ErrorKind::Timeout => return Err(self.why_silent(client).await),
            Err(error) => return Err(read_error(&error)),
        };
        self.heard(&answer.varbinds, asked);
        let name = answer.varbinds.iter().find(|varbind| varbind.oid == scalars[1]);
        let name = name.and_then(|varbind| varbind.value.as_bytes()).map(clean).unwrap_or_default();
        Ok(if name.is_empty() { clean(self.options.address.as_bytes()) } else { name })
    }

    /// Waits until a counter changes, or for [`Options::refresh`].
    async fn await_refresh(&self, client: &Client) -> Result<(), ReadError> {
        let began = self.clock.now();
        let watched = self.refresh.watched();
        if watched.is_empty() || self.options.refresh == Time::ZERO {
            return Ok(());
        }
        let look = async || {
            let answer = client.get_many(watched).await;
            answer.map(|answer| answer.varbinds).map_err(|error| self.failed(&error, "watched counters"))
        };
        let first = look().await?;
        while self.clock.now().saturating_sub(began) < self.options.refresh {
            tokio::time::sleep(LOOK).await;
            if Refresh::changed(&first, &look().await?) {
                break;
            }
        }
        Ok(())
    }

    async fn walk(&mut self, client: &Client, mut walk: Walk) -> Result<BTreeMap<Index, Row>, ReadError> {
        let mut requests = 0;
        while let Some((columns, rows)) = walk.request() {
            requests += 1;
            if requests > REQUESTS_MAX {
                return Err(ReadError::Beyond { what: "answers of a reading", most: REQUESTS_MAX });
            }
            let mut names = vec![Oid::from_slice(&SYS_UPTIME)];
            names.extend(columns);
            let asked = self.clock.now();
            let answer = match client.get_bulk(&names, 1, rows).await {
                Ok(answer) => answer,
                Err(error) if is_too_big(&error) && walk.shrink() => continue,
                Err(error) => return Err(self.failed(&error, &format!("{} {}", walk.len(), walk.rows_are()))),
            };
            let at = asked + self.clock.now().saturating_sub(asked) / 2;
            self.heard(&answer, at);
            walk.answer(answer.get(1..).unwrap_or_default(), at)?;
        }
        Ok(walk.into_rows())
    }

    fn heard(&mut self, answer: &[VarBind], at: Time) {
        let uptime = answer.first().filter(|varbind| varbind.oid.arcs().starts_with(&SYS_UPTIME));
        if let Some(ticks) = uptime.and_then(|varbind| varbind.value.as_u32()) {
            self.uptime.heard(ticks, at);
        }
    }

    /// Why a later request failed; `after` says how far the reading came.
    fn failed(&self, error: &async_snmp::Error, after: &str) -> ReadError {
        match error.kind() {
            ErrorKind::Timeout => ReadError::Interrupted(format!("no answer within {} after {after}", self.waited())),
            _ => read_error(error),
        }
    }

    /// How long a request without an answer takes.
    fn waited(&self) -> Time {
        self.options.timeout * (u64::from(self.options.retries) + 1)
    }

    /// Why the first request was not answered.
    async fn why_silent(&self, client: &Client) -> ReadError {
        let waited = self.waited();
        match &self.options.access {
            Access::User(_) if client.rediscover_engine().await.is_ok() => ReadError::Refused(format!(
                "an agent answers there, but not to this user (no answer within {waited}): the name, a password or a protocol is wrong, or \
                 the user may read nothing"
            )),
            Access::Community(_) if self.speaks_v3().await => ReadError::Refused(format!(
                "an agent answers there, but not to this community (no answer within {waited}): the community is wrong, is not for this \
                 machine's address, or SNMPv2c is off"
            )),
            _ if self.is_closed().await => {
                ReadError::Unreachable("no program listens at this UDP port; is SNMP on, and at this address?".into())
            }
            Access::User(_) => ReadError::Unreachable(format!(
                "no answer within {waited}; is the address right, and does the switch (or a filter on the way) accept SNMP from here?"
            )),
            Access::Community(_) => ReadError::Unreachable(format!(
                "no answer within {waited}; is the address right, and does the switch (or a filter on the way) accept SNMP from here? A switch \
                 without SNMPv3 does not answer a wrong community either"
            )),
        }
    }

    async fn speaks_v3(&self) -> bool {
        match self.connect(Auth::usm("opentcp"), 0).await {
            Ok(client) => client.rediscover_engine().await.is_ok(),
            Err(_) => false,
        }
    }

    /// Whether the host says that nobody has the port. An agent ignores the empty packet.
    async fn is_closed(&self) -> bool {
        let refused = async {
            let target = with_port(&self.options.address, PORT);
            let target = tokio::net::lookup_host(&target).await.ok()?.next()?;
            let any = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any).await.ok()?;
            socket.connect(target).await.ok()?;
            socket.send(&[]).await.ok()?;
            socket.recv(&mut [0]).await.err()
        };
        tokio::time::timeout(REFUSAL_WAIT, refused)
            .await
            .is_ok_and(|error| error.is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused))
    }
}

/// Whether an agent could not put all values into one answer. GETBULK asks it to leave out what does not fit (RFC 3416, section 4.2.3), but
/// net-snmp answers genErr in SNMPv3.
fn is_too_big(error: &async_snmp::Error) -> bool {
    let status = |status| matches!(status, ErrorStatus::TooBig | ErrorStatus::GenErr);
    matches!(error.exchange_source(), async_snmp::Error::Snmp { status: is, .. } if status(*is))
}

fn read_error(error: &async_snmp::Error) -> ReadError {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Network | ErrorKind::ConstructionTimeout => ReadError::Unreachable(text),
        ErrorKind::Closed => ReadError::Closed,
        ErrorKind::Auth | ErrorKind::Report => {
            ReadError::Refused(format!("{text}; check the user's name, its passwords and protocols"))
        }
        ErrorKind::Config | ErrorKind::Privacy | ErrorKind::RandomSource => ReadError::Io(text),
        _ => ReadError::Protocol(text),
    }
}

fn duration(time: Time) -> Duration {
    Duration::from_nanos(time.as_ns())
}

/// Reads bytes of a switch as its answers to GETBULK are read: a list of variables, as rows of each table.
pub fn parsed(bytes: &[u8]) {
    let decoded = decode_varbind_list(&mut Decoder::new(bytes.to_vec().into()));
    let Ok(values) = decoded else { return };
    let rows = |columns: Vec<Oid>| {
        let mut walk = Walk::new("rows", PORTS_MAX, columns);
        let _ = walk.answer(&values, Time::ZERO);
        walk.into_rows()
    };
    let [wide, narrow] = [interfaces::columns().collect(), interfaces::narrow_columns().collect()].map(rows);
    let mut ports = interfaces::ports(&wide, &narrow, &Uptime::default());
    lldp::join(&mut ports, &rows(lldp::local_columns().collect()), &rows(lldp::remote_columns().collect()));
}

#[cfg(test)]
mod tests;
