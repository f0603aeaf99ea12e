//! A packet of which the enforcer's host knows more than it carries.

use crate::packet::{Header, Packet};
use tcp::{Ecn, SackBlock};

/// A packet, and a note of the host's, as its position on a route. Parts and bare copies of it have the same note.
#[derive(Clone, Debug)]
pub struct Annotated<P, N> {
    /// The packet.
    pub packet: P,
    /// The note.
    pub note: N,
}

impl<P: Packet, N: Copy> Packet for Annotated<P, N> {
    fn header(&self) -> Option<Header> {
        self.packet.header()
    }

    fn window(&self, scale: u8) -> u32 {
        self.packet.window(scale)
    }

    fn set_window(&mut self, written: u16, scale: u8) {
        self.packet.set_window(written, scale);
    }

    fn set_seq(&mut self, seq: u32) {
        self.packet.set_seq(seq);
    }

    fn set_ack(&mut self, ack: u32) {
        self.packet.set_ack(ack);
    }

    fn set_timestamps(&mut self, tsval: u32, tsecr: u32) {
        self.packet.set_timestamps(tsval, tsecr);
    }

    fn set_flags(&mut self, flags: u8) {
        self.packet.set_flags(flags);
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.packet.set_ecn(ecn);
    }

    fn each(&self) -> u32 {
        self.packet.each()
    }

    fn link(&self) -> [u8; 12] {
        self.packet.link()
    }

    fn set_link(&mut self, link: [u8; 12]) {
        self.packet.set_link(link);
    }

    fn strip_sack(&mut self) {
        self.packet.strip_sack();
    }

    fn set_sack(&mut self, block: SackBlock) -> bool {
        self.packet.set_sack(block)
    }

    fn part(&self, from: u32, len: u32) -> Self {
        Annotated { packet: self.packet.part(from, len), note: self.note }
    }

    fn bare(&self) -> Self {
        Annotated { packet: self.packet.bare(), note: self.note }
    }

    fn bytes(&self) -> usize {
        self.packet.bytes()
    }
}
