//! An observer at both ends; reports violations.

use packet_io::OwnedFrame;
use std::collections::BTreeMap;
use tcp::{Segment, flags};

/// The state of a connection as sent by its ends.
#[derive(Clone, Debug, Default)]
struct Said {
    /// The highest number that the client acknowledged, and the right edges of its windows.
    client_ack: Option<u32>,
    client_edge: Option<u32>,
    /// The newest timestamp of the server.
    server_tsval: Option<u32>,
    /// Window scale options of server and client, plus one.
    scales: [u8; 2],
}

impl Said {
    /// The right edge of the client's window.
    fn edge(&self, segment: &Segment) -> u32 {
        let is_scaled = segment.flags & flags::SYN == 0 && self.scales.iter().all(|scale| *scale > 0);
        segment.ack.wrapping_add(segment.window << if is_scaled { self.scales[1] - 1 } else { 0 })
    }
}

/// The state of each connection, and the first violation.
#[derive(Debug, Default)]
pub struct Watch {
    said: BTreeMap<(u16, u16), Said>,
    pub complaint: Option<String>,
    /// Window scales that a host has announced; the last place is for none.
    pub scales: [u32; 16],
    /// ACKs that were compared.
    pub compared: u64,
}

fn after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

fn raise(mark: &mut Option<u32>, to: u32) {
    if mark.is_none_or(|old| after(to, old)) {
        *mark = Some(to);
    }
}

/// The ports of server and client, and the segment's headers.
fn read(frame: &OwnedFrame, by_server: bool) -> Option<((u16, u16), Segment)> {
    let header = enforcer::Packet::header(frame)?;
    let (source, destination) = (header.source.port, header.destination.port);
    Some((if by_server { (source, destination) } else { (destination, source) }, header.segment))
}

impl Watch {
    /// A host has sent this.
    pub fn on_sent(&mut self, by_server: bool, frame: &OwnedFrame) {
        let Some((ports, segment)) = read(frame, by_server) else { return };
        let said = self.said.entry(ports).or_default();
        if segment.flags & flags::SYN != 0 {
            said.scales[usize::from(!by_server)] = segment.window_scale;
            self.scales[usize::from(segment.window_scale).checked_sub(1).unwrap_or(15)] += 1;
        }
        if by_server && segment.has_timestamp {
            raise(&mut said.server_tsval, segment.tsval);
        } else if !by_server && segment.flags & flags::ACK != 0 {
            raise(&mut said.client_ack, segment.ack);
            let edge = said.edge(&segment);
            raise(&mut said.client_edge, edge);
        }
    }

    /// A frame is forwarded to the server.
    pub fn on_way_to_server(&mut self, frame: &OwnedFrame) {
        let Some((ports, segment)) = read(frame, false) else { return };
        if segment.flags & flags::ACK == 0 {
            return;
        }
        self.compared += 1;
        let said = self.said.entry(ports).or_default();
        let too_far = |mark: Option<u32>, to: u32| mark.is_none_or(|mark| after(to, mark));
        let what = if too_far(said.client_ack, segment.ack) {
            "the server sees acknowledged what the client did not acknowledge"
        } else if too_far(said.client_edge, said.edge(&segment)) {
            "the server is offered more than the client offered"
        } else if segment.has_timestamp && segment.tsecr != 0 && too_far(said.server_tsval, segment.tsecr) {
            "the server sees a timestamp echoed that it did not send"
        } else {
            return;
        };
        self.complaint.get_or_insert_with(|| format!("{what}: {segment:?}; {said:?}"));
    }
}
