//! The list of enforced flows, for whoever asks at the status socket.
//!
//! The loop that carries the packets copies the state of at most [`SLICE`] flows a turn and hands them to a thread of the listing's own,
//! which makes text of them and writes it. A reader that is slow makes that thread wait, and then the loop copies nothing.

#[cfg(test)]
mod tests;

use crate::status::{PATIENCE, connect};
use bus::Clock;
use enforcer::{Enforcer, FlowState};
use packet_io::OwnedFrame;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use units::Time;

/// Flows whose state is copied in one turn of the loop: about 20 microseconds.
pub const SLICE: usize = 128;
/// Slices that wait to be written.
const SLICES_MAX: usize = 8;
/// Listings at a time; the next is refused.
const LISTINGS_MAX: usize = 2;
/// Longest line of a listing, bytes.
const LINE_MAX: u64 = 4096;

/// An enforced flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRow {
    /// The enforced end.
    pub server: SocketAddr,
    /// The other end.
    pub client: SocketAddr,
    /// Its VLAN, 0 for none.
    pub vlan: u16,
    /// The algorithm.
    pub algorithm: String,
    /// The state of its congestion control: open, disorder, cwr, recovery, loss.
    pub state: String,
    /// Time since its handshake, milliseconds.
    pub age_ms: u64,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow-start threshold, segments; `None`: not set yet.
    pub ssthresh: Option<u32>,
    /// Smoothed RTT between the enforcer and the client, microseconds; 0: not measured yet.
    pub srtt_us: u32,
    /// The shortest RTT there, microseconds; `None`: not measured yet.
    pub min_rtt_us: Option<u32>,
    /// Segments in flight to the client.
    pub in_flight: u32,
    /// Packets buffered.
    pub buffered_packets: u32,
    /// Their memory, bytes.
    pub buffered_bytes: usize,
    /// Bytes that the client acknowledged.
    pub bytes_acked: u64,
    /// Segments sent to the client.
    pub sent: u32,
    /// Of these, retransmitted.
    pub retransmitted: u32,
    /// Retransmissions of the server that were absorbed.
    pub absorbed: u32,
}

/// A line of the answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Flow(FlowRow),
    /// The last, with the number of flows before it.
    End(u64),
    /// Why there is no list.
    Refused(String),
}

impl From<&FlowState> for FlowRow {
    fn from(flow: &FlowState) -> FlowRow {
        FlowRow {
            server: SocketAddr::new(flow.server.ip(), flow.server.port),
            client: SocketAddr::new(flow.client.ip(), flow.client.port),
            vlan: flow.vlan,
            algorithm: flow.algorithm.to_string(),
            state: flow.ca_state.as_str().to_string(),
            age_ms: flow.age.as_us() / 1000,
            cwnd: flow.cwnd,
            ssthresh: flow.ssthresh,
            srtt_us: flow.srtt_us,
            min_rtt_us: flow.min_rtt_us,
            in_flight: flow.in_flight,
            buffered_packets: flow.buffered_packets,
            buffered_bytes: flow.buffered_bytes,
            bytes_acked: flow.bytes_acked,
            sent: flow.sent,
            retransmitted: flow.retransmitted,
            absorbed: flow.absorbed,
        }
    }
}

/// Asks the enforcer that listens at `socket` for its flows; `take` gets each, in no particular order.
///
/// # Errors
/// No enforcer answers, it does not list flows, or its answer breaks off.
pub fn flows(socket: &Path, take: &mut dyn FnMut(FlowRow)) -> io::Result<()> {
    let mut answer = BufReader::new(connect(socket, "flows")?);
    let (mut line, mut count) = (Vec::new(), 0);
    loop {
        line.clear();
        answer.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            let what = match count {
                0 => "the enforcer does not list its flows: it is of an earlier version, or it ends",
                _ => "the list breaks off: the enforcer ends",
            };
            return Err(io::Error::other(what));
        }
        match serde_json::from_slice(&line)? {
            Line::Flow(row) => {
                count += 1;
                take(row);
            }
            Line::End(all) if all == count => return Ok(()),
            Line::End(all) => return Err(io::Error::other(format!("{count} flows came, of {all}"))),
            Line::Refused(why) => return Err(io::Error::other(why)),
        }
    }
}

/// The listings that are asked for.
#[derive(Default)]
pub struct Listings {
    open: Vec<Listing>,
    /// The longest that a slice has taken.
    pub slice_max: Time,
}

/// A listing.
struct Listing {
    /// The place in the table of flows from which to continue; `None`: all are copied.
    next: Option<usize>,
    /// What the channel had no room for.
    waiting: Option<Piece>,
    to: SyncSender<Piece>,
}

enum Piece {
    Flows(Vec<FlowState>),
    End,
}

/// What the loop does about listings after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There are none.
    Nothing,
    /// There is more to copy at once.
    More,
    /// A reader is slow.
    Blocked,
}

impl Listings {
    /// Begins to answer somebody.
    pub fn begin(&mut self, stream: UnixStream) {
        if self.open.len() >= LISTINGS_MAX {
            let refusal = Line::Refused(format!("{LISTINGS_MAX} others list the flows now; try again in a moment"));
            let mut text = serde_json::to_string(&refusal).unwrap_or_default();
            text.push('\n');
            // it fits the socket's buffer
            let _ = (&stream).write_all(text.as_bytes());
            return;
        }
        let (to, from) = sync_channel(SLICES_MAX);
        let name = thread::Builder::new().name("flows".to_string());
        // without a thread nobody is answered, who then sees that the connection closes
        if name.spawn(move || drop(write(stream, &from))).is_ok() {
            self.open.push(Listing { next: Some(0), waiting: None, to });
        }
    }

    /// Copies a slice for each listing that has room.
    pub fn turn(&mut self, clock: &Clock, enforcer: &Enforcer<OwnedFrame>) -> Turn {
        if self.open.is_empty() {
            return Turn::Nothing;
        }
        let (mut more, slice_max) = (false, &mut self.slice_max);
        self.open.retain_mut(|listing| {
            if listing.waiting.is_none() {
                let began = clock.now();
                listing.waiting = Some(listing.copy(began, enforcer));
                *slice_max = (*slice_max).max(clock.now().saturating_sub(began));
            }
            let Some(piece) = listing.waiting.take() else { return false };
            let is_last = matches!(piece, Piece::End);
            match listing.to.try_send(piece) {
                Ok(()) => more |= !is_last,
                Err(TrySendError::Full(piece)) => {
                    listing.waiting = Some(piece);
                    return true;
                }
                Err(TrySendError::Disconnected(_)) => return false,
            }
            !is_last
        });
        match (self.open.is_empty(), more) {
            (true, _) => Turn::Nothing,
            (false, true) => Turn::More,
            (false, false) => Turn::Blocked,
        }
    }
}

impl Listing {
    fn copy(&mut self, now: Time, enforcer: &Enforcer<OwnedFrame>) -> Piece {
        let Some(from) = self.next else { return Piece::End };
        let mut flows = Vec::with_capacity(SLICE);
        self.next = enforcer.list(now, from, SLICE, &mut flows);
        Piece::Flows(flows)
    }
}

/// Writes what comes to the one who asked, until the list ends or breaks off, or nobody reads.
fn write(stream: UnixStream, from: &Receiver<Piece>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (mut to, mut count) = (BufWriter::new(stream), 0);
    while let Ok(piece) = from.recv() {
        match piece {
            Piece::Flows(flows) => {
                count += flows.len() as u64;
                flows.iter().try_for_each(|flow| line(&mut to, &Line::Flow(FlowRow::from(flow))))?;
            }
            Piece::End => {
                line(&mut to, &Line::End(count))?;
                return to.flush();
            }
        }
    }
    Ok(())
}

fn line(to: &mut impl io::Write, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}
