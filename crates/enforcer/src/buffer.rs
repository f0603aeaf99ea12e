//! A server's data that its client has not acknowledged, in sequence order.

use crate::answers::Answers;
use crate::checkpoint::{self, Buffered};
use crate::packet::Packet;
use crate::seq::{after, before, later};
use bytes::Bytes;
use std::collections::VecDeque;
use tcp::{Next, SackBlock, Segment};
use units::Time;

/// Largest number of blocks that arrived twice and are still to be reported to the server.
const TWICE_MAX: usize = 8;

/// Most sequence numbers of a piece that is restored: gaps are as long as windows (RFC 7323 2.3).
const PIECE_MAX: u32 = 1 << 30;

/// A piece of the stream.
#[derive(Debug)]
struct Piece<P> {
    seq: u32,
    len: u32,
    /// Its timestamp.
    tsval: u32,
    /// When the server sent it, µs.
    came_us: u32,
    /// `None`: a gap, which has no copy.
    packet: Option<P>,
}

impl<P> Piece<P> {
    fn end(&self) -> u32 {
        self.seq.wrapping_add(self.len)
    }
}

/// Header fields for buffered packets: those of the server's newest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newest {
    /// Timestamp echo.
    pub tsecr: u32,
    /// The window as written.
    pub window: u16,
    /// The link addresses of its packets.
    pub link: [u8; 12],
}

/// The data in flight of one flow, and the state that only such a flow needs.
#[derive(Debug)]
pub(crate) struct Buffer<P> {
    pieces: VecDeque<Piece<P>>,
    /// How many of them were sent completely.
    sent: usize,
    /// The number after the last that the server has sent.
    pub nxt: u32,
    /// Memory of the packets, bytes.
    pub bytes: usize,
    /// Pieces that are gaps.
    pub gaps: u32,
    /// The flow's scheduled timers: the earliest, and a later one.
    pub timers_at: [Time; 2],
    /// The server has retransmitted its oldest data or what the client has, or filled a gap: the next ACK is for it.
    pub owes_ack: bool,
    /// What it has retransmitted, to be reported by D-SACK once the client has acknowledged it; the oldest first.
    twice: Vec<SackBlock>,
    /// When the newest acknowledged data arrived from the server, µs.
    pub acked_came_us: u32,
    /// The ACKs forwarded to the server.
    pub answers: Answers,
    /// The last acknowledgment number that was sent to the client.
    pub acked_to_client: u32,
    /// The header fields of the server's newest packet.
    pub newest: Newest,
    /// The client would refuse timestamps below this as old (RFC 7323 5).
    pub tsval_floor: Option<u32>,
    /// The newest timestamp of the server.
    pub tsval_newest: u32,
    /// The right edge that the server was offered some time ago, and when that was, µs.
    pub offered_then: u32,
    /// The same, earlier.
    pub offered_at_us: u32,
}

impl<P: Packet> Buffer<P> {
    /// Nothing is in flight: all up to `nxt` is acknowledged. `segment` is the first to come.
    pub fn new(nxt: u32, offered: u32, now_us: u32, segment: &Segment, newest: Newest) -> Buffer<P> {
        Buffer {
            pieces: VecDeque::new(),
            sent: 0,
            nxt,
            bytes: 0,
            gaps: 0,
            timers_at: [Time::NEVER; 2],
            owes_ack: false,
            twice: Vec::new(),
            acked_came_us: now_us,
            answers: Answers::new(nxt, now_us),
            acked_to_client: segment.ack,
            newest,
            tsval_floor: None,
            tsval_newest: segment.tsval,
            offered_then: offered,
            offered_at_us: now_us,
        }
    }

    /// The state to [`Buffer::restore`]. `write` makes bytes of a packet.
    pub fn checkpoint(&self, now_us: u32, write: &impl Fn(&P) -> Vec<u8>) -> Buffered {
        let piece = |piece: &Piece<P>| checkpoint::Piece {
            len: piece.len,
            tsval: piece.tsval,
            age_us: now_us.wrapping_sub(piece.came_us),
            packet: piece.packet.as_ref().map(|packet| write(packet).into()),
        };
        Buffered {
            first: self.pieces.front().map_or(self.nxt, |piece| piece.seq),
            pieces: self.pieces.iter().map(piece).collect(),
            owes_ack: self.owes_ack,
            twice: self.twice.iter().flat_map(|block| [block.start, block.end]).collect(),
            acked_age_us: now_us.wrapping_sub(self.acked_came_us),
            reported: self.answers.reported,
            acked_to_client: self.acked_to_client,
            tsecr: self.newest.tsecr,
            window: self.newest.window.into(),
            link: Bytes::copy_from_slice(&self.newest.link),
            tsval_floor: self.tsval_floor,
            tsval_newest: self.tsval_newest,
            offered_then: self.offered_then,
            offered_age_us: now_us.wrapping_sub(self.offered_at_us),
        }
    }

    /// The buffer of a checkpoint, nothing of it sent yet; `read` makes a packet of its bytes. `None`: none can be in that state.
    pub fn restore(now_us: u32, from: &Buffered, read: &impl Fn(&[u8]) -> Option<P>) -> Option<Buffer<P>> {
        let newest = Newest {
            tsecr: from.tsecr,
            window: from.window.try_into().ok()?,
            link: from.link.as_ref().try_into().ok()?,
        };
        let mut buffer = Buffer {
            pieces: VecDeque::with_capacity(from.pieces.len()),
            sent: 0,
            nxt: from.first,
            bytes: 0,
            gaps: 0,
            timers_at: [Time::NEVER; 2],
            owes_ack: from.owes_ack,
            twice: from
                .twice
                .as_chunks()
                .0
                .iter()
                .map(|&[start, end]| SackBlock { start, end })
                .take(TWICE_MAX)
                .collect(),
            acked_came_us: now_us.wrapping_sub(from.acked_age_us),
            answers: Answers::new(from.reported, now_us),
            acked_to_client: from.acked_to_client,
            newest,
            tsval_floor: from.tsval_floor,
            tsval_newest: from.tsval_newest,
            offered_then: from.offered_then,
            offered_at_us: now_us.wrapping_sub(from.offered_age_us),
        };
        for piece in &from.pieces {
            if piece.len == 0 || piece.len > PIECE_MAX {
                return None;
            }
            let packet = piece.packet.as_ref().and_then(|bytes| read(bytes));
            buffer.push(now_us.wrapping_sub(piece.age_us), piece.len, (piece.tsval, packet));
        }
        Some(buffer)
    }

    /// Lengths of the pieces of `[una, snd_nxt)`, and that much is marked as sent.
    pub fn lengths(&mut self, una: u32, snd_nxt: u32) -> impl Iterator<Item = u32> {
        self.mark_sent(snd_nxt);
        self.pieces.iter().filter_map(move |piece| {
            let start = later(piece.seq, una);
            let stop = if before(piece.end(), snd_nxt) { piece.end() } else { snd_nxt };
            before(start, stop).then(|| stop.wrapping_sub(start))
        })
    }

    /// The client's newest timestamp is the one that it echoes, if the server has sent that.
    pub fn note_tsecr(&mut self, ack: &Segment) {
        if ack.has_timestamp && !after(ack.tsecr, self.tsval_newest) {
            self.raise_floor(ack.tsecr);
        }
    }

    /// Raises the lower bound of timestamps.
    pub fn raise_floor(&mut self, tsval: u32) {
        self.tsval_floor = Some(self.tsval_floor.map_or(tsval, |floor| later(floor, tsval)));
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether the client's next data is in a gap.
    pub fn lacks_next(&self) -> bool {
        self.pieces.front().is_some_and(|piece| piece.packet.is_none())
    }

    /// Number of buffered packets.
    pub fn packets(&self) -> u32 {
        self.pieces.len() as u32 - self.gaps
    }

    /// Whether all of the server's data was sent.
    pub fn holds_nothing_back(&self) -> bool {
        self.sent == self.pieces.len()
    }

    /// Appends the `len` sequence numbers from [`Buffer::nxt`] on, which arrived at `came_us`; without a packet they are a gap. Returns
    /// the memory used.
    pub fn push(&mut self, came_us: u32, len: u32, (tsval, packet): (u32, Option<P>)) -> usize {
        let bytes = packet.as_ref().map_or(0, Packet::bytes);
        self.gaps += u32::from(packet.is_none());
        self.pieces.push_back(Piece { seq: self.nxt, len, tsval, came_us, packet });
        self.nxt = self.nxt.wrapping_add(len);
        self.bytes += bytes;
        bytes
    }

    /// The newest packet.
    pub fn last(&self) -> Option<&P> {
        self.pieces.back()?.packet.as_ref()
    }

    /// The next piece from `snd_nxt` on. If the client's next data is in a gap, that is urgent, with `behind` sequence numbers after it.
    #[inline]
    pub fn next(&self, snd_nxt: u32, behind: u32) -> Next {
        let len = self.pieces.get(self.sent).map_or(0, |piece| piece.end().wrapping_sub(snd_nxt));
        let urgent =
            self.lacks_next() && self.pieces.front().is_some_and(|gap| before(snd_nxt, gap.end().wrapping_add(behind)));
        Next { len, urgent }
    }

    /// All before `snd_nxt` was sent.
    pub fn mark_sent(&mut self, snd_nxt: u32) {
        while self.pieces.get(self.sent).is_some_and(|piece| !after(piece.end(), snd_nxt)) {
            self.sent += 1;
        }
    }

    /// `[start, end)` has arrived once more.
    pub fn note_twice(&mut self, start: u32, end: u32) {
        if let Some(last) = self.twice.last_mut().filter(|last| last.end == start) {
            last.end = end;
        } else if self.twice.len() < TWICE_MAX {
            self.twice.push(SackBlock { start, end });
        }
    }

    /// The first block below `ack` that arrived twice.
    pub fn twice(&self, ack: u32) -> Option<SackBlock> {
        self.twice.iter().find(|block| !after(block.end, ack)).copied()
    }

    /// The server has received the report.
    pub fn reported_twice(&mut self, block: SackBlock) {
        self.twice.retain(|other| *other != block);
    }

    /// The client has acknowledged all before `una`. Returns the memory that was freed.
    pub fn acknowledge(&mut self, una: u32) -> usize {
        let prior = self.bytes;
        while let Some(piece) = self.pieces.front() {
            if after(piece.end(), una) {
                break;
            }
            self.drop_front();
        }
        prior - self.bytes
    }

    fn drop_front(&mut self) {
        let Some(piece) = self.pieces.pop_front() else { return };
        self.sent = self.sent.saturating_sub(1);
        self.acked_came_us = piece.came_us;
        match piece.packet {
            Some(packet) => self.bytes -= packet.bytes(),
            None => self.gaps -= 1,
        }
    }

    /// Passes the packets of `[seq, seq + len)` to `take`, one for each buffered piece of it, with its
    /// timestamp.
    pub fn copy(&self, seq: u32, len: u32, mut take: impl FnMut(P, u32)) {
        let end = seq.wrapping_add(len);
        let mut at = self.pieces.partition_point(|piece| !after(piece.end(), seq));
        while let Some(piece) = self.pieces.get(at).filter(|piece| before(piece.seq, end)) {
            if let Some(packet) = &piece.packet {
                let start = later(piece.seq, seq);
                let stop = if before(piece.end(), end) { piece.end() } else { end };
                let whole = start == piece.seq && stop == piece.end();
                let offset = start.wrapping_sub(piece.seq);
                let copy = if whole { packet.clone() } else { packet.part(offset, stop.wrapping_sub(start)) };
                take(copy, piece.tsval);
            }
            at += 1;
        }
    }

    /// Whether `[seq, end)` has copies whose packets are larger than `each`. Of a lone packet of this size (`alone`) that is
    /// certain only within a copy: at a copy's end it may be the remainder.
    pub fn has_larger(&self, (seq, end): (u32, u32), each: u32, alone: bool) -> bool {
        let first = self.pieces.partition_point(|piece| !after(piece.end(), seq));
        let there = self.pieces.range(first..).take_while(|piece| before(piece.seq, end));
        there
            .filter(|piece| !alone || before(end, piece.end()))
            .any(|piece| piece.packet.as_ref().is_some_and(|packet| packet.each() > each))
    }

    /// Drops the copies of `[seq, end)`: they become gaps.
    pub fn forget(&mut self, (seq, end): (u32, u32)) {
        let mut at = self.pieces.partition_point(|piece| !after(piece.end(), seq));
        while let Some(piece) = self.pieces.get(at).filter(|piece| before(piece.seq, end)) {
            if piece.packet.is_some() {
                let start = later(piece.seq, seq);
                let stop = if before(piece.end(), end) { piece.end() } else { end };
                at += self.split_out(at, start, stop);
                self.put(at, None);
            }
            at += 1;
        }
    }

    /// Fills gaps with the data of `packet`, from `seq` to `end`; awaited data before `snd_nxt` goes to `take` too. False: none was filled.
    pub fn fill(
        &mut self,
        (seq, end): (u32, u32),
        (packet, tsval): (&P, u32),
        snd_nxt: u32,
        mut take: impl FnMut(P),
    ) -> bool {
        let mut fills = false;
        let mut at = self.pieces.partition_point(|piece| !after(piece.end(), seq));
        while let Some(piece) = self.pieces.get(at).filter(|piece| before(piece.seq, end)) {
            if piece.packet.is_none() {
                let start = later(piece.seq, seq);
                let stop = if before(piece.end(), end) { piece.end() } else { end };
                let part = packet.part(start.wrapping_sub(seq), stop.wrapping_sub(start));
                at += self.split_out(at, start, stop);
                if before(start, snd_nxt) {
                    // the part known to be sent may end within it, and the client must not acknowledge more
                    take(if after(stop, snd_nxt) { part.part(0, snd_nxt.wrapping_sub(start)) } else { part.clone() });
                }
                self.pieces[at].tsval = tsval;
                self.put(at, Some(part));
                fills = true;
            }
            at += 1;
        }
        self.mark_sent(snd_nxt);
        fills
    }

    /// Makes this packet the copy of piece number `at`.
    fn put(&mut self, at: usize, packet: Option<P>) {
        let count = |packet: &Option<P>| (packet.as_ref().map_or(0, Packet::bytes), u32::from(packet.is_none()));
        let (bytes, gaps) = count(&packet);
        let (prior_bytes, prior_gaps) = count(&self.pieces[at].packet);
        self.bytes = self.bytes - prior_bytes + bytes;
        self.gaps = self.gaps - prior_gaps + gaps;
        self.pieces[at].packet = packet;
    }

    /// Cuts piece number `at` so that `[start, stop)` is a piece of its own; returns its distance from `at`.
    fn split_out(&mut self, at: usize, start: u32, stop: u32) -> usize {
        let (seq, end) = (self.pieces[at].seq, self.pieces[at].end());
        if after(end, stop) {
            self.split(at, stop);
        }
        if before(seq, start) {
            self.split(at, start);
            return 1;
        }
        0
    }

    /// Cuts piece number `at` in two.
    fn split(&mut self, at: usize, middle: u32) {
        let Piece { seq, tsval, came_us, .. } = self.pieces[at];
        let end = self.pieces[at].end();
        let parts = [(seq, middle), (middle, end)].map(|(start, stop)| {
            let (from, len) = (start.wrapping_sub(seq), stop.wrapping_sub(start));
            let packet = self.pieces[at].packet.as_ref().map(|packet| packet.part(from, len));
            Piece { seq: start, len, tsval, came_us, packet }
        });
        let [first, second] = parts;
        (self.pieces[at].len, self.gaps) = (first.len, self.gaps + u32::from(second.packet.is_none()));
        self.bytes += second.packet.as_ref().map_or(0, Packet::bytes);
        self.pieces.insert(at + 1, second);
        self.put(at, first.packet);
        self.sent += usize::from(at < self.sent);
    }
}
