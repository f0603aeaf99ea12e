//! A standby on another machine hears of the flows, by datagrams, and has them when their packets come there.
//!
//! Each datagram is a [`Report`] on a few flows and its seal: HMAC-SHA-256 (RFC 2104) by a key that both have. Of each sender the time in
//! it rises, so none is taken twice, and none of this enforcer's own if it comes back. A lost one does not matter: what it had is reported
//! again. Both enforcers of a pair may report to each other.

#[cfg(test)]
mod tests;

use bus::files::secret_key;
use enforcer::{Checkpoint, Enforcer};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;
use nix::time::{ClockId, clock_gettime};
use packet_io::OwnedFrame;
use prost::Message;
use ring::hmac;
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;
use units::Time;

/// Bytes of reports in a datagram: with headers and the seal it fits any MTU of Ethernet.
const DATAGRAM_BYTES: usize = 1300;
/// Largest report of a flow, bytes: all of its numbers at their longest.
const FLOW_BYTES_MAX: usize = 400;
/// Bytes of a seal.
const SEAL: usize = 32;
/// Datagrams sent, and received, in one turn of the loop that carries the packets.
const TURN: usize = 4;
/// Room for datagrams that wait, bytes: a round of some thousand flows.
const WAITING_BYTES: usize = 4 << 20;
/// Interval of rounds: a standby's state is this old, and older if there are more changes than can be sent.
const ROUND: Time = Time::from_ms(50);
/// Interval at which flows are looked for that nothing was heard of any more.
const FORGET: Time = Time::from_secs(60);
/// Senders whose times are remembered: each restart of one is another.
const SENDERS_MAX: usize = 64;
/// Largest difference of the machines' clocks: what is older may be a repetition.
const SKEW: Duration = Duration::from_secs(60);

/// How flows are mirrored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirroring {
    /// The standbys that hear of this enforcer's flows.
    pub to: Vec<SocketAddr>,
    /// Where this enforcer hears of another's flows.
    pub from: Option<SocketAddr>,
    /// The file of the key that they have in common, as `opentcp keygen` writes it.
    pub key: PathBuf,
}

/// Some flows.
#[derive(Clone, PartialEq, Eq, Message)]
struct Report {
    /// Of the sender's clock, ns since 1970.
    #[prost(fixed64, tag = "1")]
    time_ns: u64,
    #[prost(message, repeated, tag = "2")]
    flows: Vec<Checkpoint>,
    /// The sending process, a random number.
    #[prost(fixed64, tag = "3")]
    sender: u64,
}

/// The exchange with other enforcers.
pub struct Mirror {
    key: hmac::Key,
    /// A socket for each standby.
    to: Vec<UdpSocket>,
    from: Option<UdpSocket>,
    /// This process in its reports, and the time in the last one.
    sender: u64,
    sent_ns: u64,
    heard: Heard,
    round_at: Time,
    forget_at: Time,
    /// Changes wait to be sent.
    has_more: bool,
    /// Datagrams that were not taken: forged, repeated, or of a clock that is far from this one.
    pub refused: u64,
}

impl Mirror {
    /// Opens the sockets.
    ///
    /// # Errors
    /// The key or an address cannot be used; the text says what to do.
    pub fn open(how: &Mirroring) -> Result<Mirror, String> {
        let key = secret_key(&how.key).map_err(|error| error.to_string())?.to_hex();
        let failed = |address: &SocketAddr| {
            let address = *address;
            move |error: io::Error| {
                format!("{address}: {error}; flows are mirrored by UDP, from an address of this machine")
            }
        };
        let to = how.to.iter().map(|address| connected(address).map_err(failed(address)));
        let from = how.from.as_ref().map(|address| listening(address).map_err(failed(address)));
        let sender = bus::random().map_err(|error| format!("the kernel has no random number: {error}"))?;
        Ok(Mirror {
            key: hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()),
            to: to.collect::<Result<_, _>>()?,
            from: from.transpose()?,
            sender: u64::from_ne_bytes(sender),
            sent_ns: 0,
            heard: Heard::default(),
            round_at: Time::ZERO,
            forget_at: Time::ZERO,
            has_more: false,
            refused: 0,
        })
    }

    /// Sends and takes some datagrams; whether there is more to send at once.
    pub fn turn(&mut self, now: Time, enforcer: &mut Enforcer<OwnedFrame>) -> bool {
        self.take(now, enforcer);
        if self.to.is_empty() {
            return false;
        }
        if self.round_at <= now {
            self.round_at = now + ROUND;
            enforcer.begin_reports();
            self.has_more = true;
        }
        for _ in 0..TURN {
            self.has_more = self.has_more && self.report(now, enforcer);
        }
        self.has_more
    }

    /// Begins anew with a new clock.
    pub fn begin_anew(&mut self) {
        (self.round_at, self.forget_at) = (Time::ZERO, Time::ZERO);
    }

    /// When the next round begins.
    pub fn poll_timeout(&self) -> Time {
        if self.to.is_empty() { Time::NEVER } else { self.round_at }
    }

    /// To be polled.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.from.as_ref().map(|socket| socket.as_fd())
    }

    /// Sends a datagram of changes; false: there are no more.
    fn report(&mut self, now: Time, enforcer: &mut Enforcer<OwnedFrame>) -> bool {
        let mut report = Report { time_ns: self.next_ns(), flows: Vec::new(), sender: self.sender };
        let mut bytes = 0;
        while bytes < DATAGRAM_BYTES - FLOW_BYTES_MAX
            && let Some(flow) = enforcer.poll_changed(now)
        {
            bytes += flow.encoded_len() + 4;
            report.flows.push(flow);
        }
        if report.flows.is_empty() {
            return false;
        }
        let mut datagram = report.encode_to_vec();
        let seal = hmac::sign(&self.key, &datagram);
        datagram.extend_from_slice(seal.as_ref());
        for socket in &self.to {
            // a standby may be away; it hears of each flow again
            let _ = socket.send(&datagram);
        }
        true
    }

    /// Takes what other enforcers report.
    fn take(&mut self, now: Time, enforcer: &mut Enforcer<OwnedFrame>) {
        let Some(socket) = &self.from else { return };
        let mut datagram = [0; 2048];
        for _ in 0..TURN {
            let Ok(len) = socket.recv(&mut datagram) else { break };
            let report = opened(&self.key, &datagram[..len]).filter(|report| report.sender != self.sender);
            match report.filter(|report| self.heard.is_new(report, real_ns())) {
                Some(report) => report.flows.into_iter().for_each(|flow| enforcer.mirror(now, flow)),
                None => self.refused += 1,
            }
        }
        if self.forget_at <= now {
            self.forget_at = now + FORGET;
            enforcer.forget_mirrored(now);
        }
    }

    /// A time that is later than that of every datagram before.
    fn next_ns(&mut self) -> u64 {
        self.sent_ns = real_ns().max(self.sent_ns + 1);
        self.sent_ns
    }
}

fn opened(key: &hmac::Key, datagram: &[u8]) -> Option<Report> {
    let (report, seal) = datagram.split_at(datagram.len().checked_sub(SEAL)?);
    hmac::verify(key, report, seal).ok()?;
    Report::decode(report).ok()
}

/// The newest time that each sender has reported; the sender that was heard last comes last.
#[derive(Default)]
struct Heard(VecDeque<(u64, u64)>);

impl Heard {
    /// Whether a report is neither repeated nor of a clock that is far from this one; notes it.
    fn is_new(&mut self, report: &Report, real_ns: u64) -> bool {
        let at = self.0.iter().position(|(sender, _)| *sender == report.sender);
        let newest_ns = at.map_or(0, |at| self.0[at].1);
        if report.time_ns <= newest_ns || report.time_ns.abs_diff(real_ns) > SKEW.as_nanos() as u64 {
            return false;
        }
        if let Some(at) = at {
            self.0.remove(at);
        } else if self.0.len() == SENDERS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((report.sender, report.time_ns));
        true
    }
}

fn real_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |time| Duration::from(time).as_nanos() as u64)
}

fn connected(to: &SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = if to.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn listening(at: &SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(at)?;
    socket.set_nonblocking(true)?;
    // less room loses reports, which come again
    let _ = setsockopt(&socket, RcvBufForce, &WAITING_BYTES);
    Ok(socket)
}
