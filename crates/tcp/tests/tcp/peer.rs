//! A receiver that is scripted, not simulated: which segments have arrived is the test's to say; it knows what ACK a
//! receiver would answer with (cumulative number, SACK blocks most recent first, D-SACK, echoed timestamp).

use tcp::{SACK_BLOCKS_MAX, SackBlock, Segment, flags};
use units::Time;

/// Payload of a full segment: 1500 - 40 - 12 of timestamps.
pub const MSS: u32 = 1448;

/// Its own first data byte; nothing depends on it.
const PEER_DATA: u32 = 700_001;

/// The receiver of a one-way transfer of segments numbered from 1.
#[derive(Debug)]
pub struct Peer {
    pub sack: bool,
    /// Sequence number of segment 1.
    data: u32,
    received: Vec<bool>,
    /// Segments in the order of their arrival, the last one first.
    recent: Vec<u32>,
    duplicate: Option<u32>,
    acknowledged: u32,
    ts_recent: u32,
    fin_received: bool,
    fin_sent: bool,
}

/// Wall clock of the scripted end's timestamps, ms.
fn tsval(now: Time) -> u32 {
    (now.as_us() / 1000) as u32 + 7_000_000
}

impl Peer {
    /// A receiver for data that begins at `data`.
    pub fn new(sack: bool, data: u32) -> Peer {
        Peer {
            sack,
            data,
            received: Vec::new(),
            recent: Vec::new(),
            duplicate: None,
            acknowledged: 0,
            ts_recent: 0,
            fin_received: false,
            fin_sent: false,
        }
    }

    /// Segments received without a gap from the first.
    pub fn in_order(&self) -> u32 {
        self.received.iter().take_while(|&&yes| yes).count() as u32
    }

    /// Segment `number`, sent at the sender's timestamp `tsval`, has arrived.
    pub fn arrive(&mut self, number: u32, tsval: u32) {
        let index = (number - 1) as usize;
        if number <= self.acknowledged + 1 {
            self.ts_recent = self.ts_recent.max(tsval);
        }
        if self.received.len() <= index {
            self.received.resize(index + 1, false);
        }
        if self.received[index] {
            self.duplicate = Some(number);
        }
        self.received[index] = true;
        self.recent.retain(|&n| n != number);
        self.recent.insert(0, number);
    }

    /// The sender's FIN has arrived.
    pub fn arrive_fin(&mut self) {
        self.fin_received = true;
    }

    /// The ACK that leaves now.
    pub fn ack(&mut self, now: Time, ece: bool) -> Segment {
        let in_order = self.in_order();
        self.acknowledged = in_order;
        let mut ack = Segment {
            seq: PEER_DATA + self.fin_sent as u32,
            ack: self.start(in_order + 1).wrapping_add(self.fin_received as u32),
            window: 4 << 20,
            tsval: tsval(now),
            tsecr: self.ts_recent,
            flags: flags::ACK | if ece { flags::ECE } else { 0 },
            has_timestamp: true,
            ..Segment::default()
        };
        if self.sack {
            self.add_blocks(&mut ack);
        }
        ack
    }

    /// The FIN of this side; the ACK in it is that of [`Peer::ack`].
    pub fn fin(&mut self, now: Time, ece: bool) -> Segment {
        let mut fin = self.ack(now, ece);
        fin.flags |= flags::FIN;
        self.fin_sent = true;
        fin
    }

    /// The answer to `syn`, Linux's options in it.
    pub fn syn_ack(&self, now: Time, syn: &Segment) -> Segment {
        let ece = syn.flags & flags::ECE;
        Segment {
            seq: PEER_DATA - 1,
            ack: syn.seq.wrapping_add(1),
            window: 65_160,
            tsval: tsval(now),
            tsecr: syn.tsval,
            mss: 1460,
            flags: flags::SYN | flags::ACK | ece,
            has_timestamp: syn.has_timestamp,
            sack_permitted: self.sack && syn.sack_permitted,
            window_scale: syn.window_scale.min(8),
            ..Segment::default()
        }
    }

    fn start(&self, number: u32) -> u32 {
        self.data.wrapping_add((number - 1) * MSS)
    }

    fn add_blocks(&mut self, ack: &mut Segment) {
        let mut blocks = Vec::new();
        if let Some(number) = self.duplicate.take() {
            blocks.push(SackBlock { start: self.start(number), end: self.start(number + 1) });
        }
        let above = self.in_order() + 1;
        for &number in &self.recent {
            if number < above || blocks.len() == SACK_BLOCKS_MAX {
                continue;
            }
            let held = |n: u32| self.received.get((n - 1) as usize).copied().unwrap_or(false);
            let first = (above..=number).rev().take_while(|&n| held(n)).last().expect("the segment itself is held");
            let end = (number..=self.received.len() as u32).find(|&n| !held(n));
            let end = end.unwrap_or(self.received.len() as u32 + 1);
            let block = SackBlock { start: self.start(first), end: self.start(end) };
            if !blocks.contains(&block) {
                blocks.push(block);
            }
        }
        ack.sack_count = blocks.len() as u8;
        ack.sack[..blocks.len()].copy_from_slice(&blocks);
    }
}
