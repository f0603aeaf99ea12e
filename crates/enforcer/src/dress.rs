//! What a buffered packet looks like when it leaves.

use crate::buffer::Newest;
use crate::packet::Packet;
use crate::seq::later;
use tcp::{Ecn, Leave, flags};

/// The header fields that change on a buffered packet.
#[derive(Clone, Copy)]
pub(crate) struct Dress {
    pub leave: Leave,
    pub floor: Option<u32>,
    pub newest: Newest,
    pub timestamps: bool,
    /// The ECN field; `None`: the packet's own.
    pub ecn: Option<Ecn>,
    pub ack: u32,
    pub scale: u8,
}

impl Dress {
    /// Acknowledgment number and window are the server's newest. The timestamp is the packet's own; if the client would
    /// refuse that as old, it is a later one of the server.
    pub fn put_on<P: Packet>(&self, mut packet: P, tsval: u32) -> P {
        packet.set_link(self.newest.link);
        if let Some(ecn) = self.ecn {
            packet.set_ecn(ecn);
        }
        packet.set_ack(self.ack);
        packet.set_window(self.newest.window, self.scale);
        if self.timestamps {
            packet.set_timestamps(self.floor.map_or(tsval, |floor| later(floor, tsval)), self.newest.tsecr);
        }
        if self.leave.cwr
            && let Some(header) = packet.header()
        {
            packet.set_flags(header.segment.flags | flags::CWR);
        }
        packet
    }
}
