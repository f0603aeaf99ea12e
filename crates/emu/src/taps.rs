//! [`TapPorts`]: the hosts' TAP devices as the engine's ports.

use crate::address::{FlowPorts, host_of};
use crate::port::{FlowPacket, Head, Ports};
use net::Ecn;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use packet_io::{
    Ethernet, Glue, Ip, OwnedFrame, Pcap, READ_BYTES_MAX, Segment, Tap, TcpFlags, VnetHeader, segment, set_ce,
};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Ethernet's header.
const ETHERNET_BYTES: usize = 14;

/// Problems outside of the network model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// Frames that are not IPv4 to a host of the network.
    pub strangers: u64,
    /// Frames that could not be read or cut.
    pub unreadable: u64,
    /// Packets that a host's interface refused.
    pub refused: u64,
    /// Packets that did not fit the capture's buffer.
    pub uncaptured: u64,
    /// Packets that hosts lost because their TAP was not read in time, or that they had no room for.
    pub lost_in_hosts: u64,
}

/// A packet in the network.
struct Slot {
    header: VnetHeader,
    bytes: Vec<u8>,
}

/// The TAPs of all hosts, by number. The engine's packet is the index of a slot.
pub struct TapPorts {
    taps: Vec<Tap>,
    /// By host: its capture, if there is one.
    captures: Vec<Option<Pcap>>,
    epoll: Epoll,
    mtu: usize,
    slots: Vec<Slot>,
    free: Vec<u32>,
    buffer: Vec<u8>,
    flows: Arc<FlowPorts>,
    /// Whether neighbours leave as one super-segment.
    glue: bool,
    /// By host: packets for the next flush.
    leaving: Vec<Vec<u32>>,
    trouble: Trouble,
}

impl TapPorts {
    /// The ports `taps`, one for each host. `glue`: join what leaves together, for links above 2.5 Gbit/s.
    ///
    /// # Errors
    /// The error of `epoll(7)`.
    pub fn new(taps: Vec<Tap>, mtu: u32, flows: Arc<FlowPorts>, glue: bool) -> io::Result<TapPorts> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for (i, tap) in taps.iter().enumerate() {
            epoll.add(tap, EpollEvent::new(EpollFlags::EPOLLIN, i as u64))?;
        }
        let n = taps.len();
        Ok(TapPorts {
            taps,
            captures: (0..n).map(|_| None).collect(),
            epoll,
            mtu: mtu as usize,
            slots: Vec::new(),
            free: Vec::new(),
            buffer: vec![0; READ_BYTES_MAX],
            flows,
            glue,
            leaving: vec![Vec::new(); n],
            trouble: Trouble::default(),
        })
    }

    /// Everything that `host` sends and receives goes into `capture` as well.
    pub fn capture(&mut self, host: usize, capture: Pcap) {
        self.captures[host] = Some(capture);
    }

    /// Ends the captures and returns the problems and the TAPs: the hosts' interfaces vanish when those are dropped.
    ///
    /// # Errors
    /// A capture could not be written.
    pub fn finish(mut self) -> io::Result<(Trouble, Vec<Tap>)> {
        for capture in self.captures.drain(..).flatten() {
            self.trouble.uncaptured += capture.dropped();
            capture.finish()?;
        }
        Ok((self.trouble, self.taps))
    }

    /// Reads one frame of `host` and passes its packets to `take`; false if there was none.
    fn read(&mut self, host: usize, take: &mut impl FnMut(&mut Self, u32, Head)) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let found = match self.taps[host].read(&mut buffer) {
            Ok(Some(frame)) => {
                self.record(host, &frame.header, &[frame.bytes]);
                self.enter(host, &frame.header, frame.bytes, take);
                true
            }
            Ok(None) => false,
            Err(_) => {
                self.trouble.unreadable += 1;
                false
            }
        };
        self.buffer = buffer;
        found
    }

    fn enter(&mut self, host: usize, header: &VnetHeader, frame: &[u8], take: &mut impl FnMut(&mut Self, u32, Head)) {
        let Some(head) = self.head(host, frame) else {
            self.trouble.strangers += 1;
            return;
        };
        let cut = segment(header, frame, self.mtu, &mut |packet: Segment<'_>| {
            let ip_len = (packet.frame_bytes() - ETHERNET_BYTES) as u16;
            // all packets of a super-segment have headers as long as its own
            let headers = |flow: &FlowPacket| head.ip_len - flow.payload;
            let flow = head.flow.map(|flow| FlowPacket { payload: ip_len - headers(&flow), ..flow });
            let slot = self.keep(&packet);
            take(self, slot, Head { ip_len, flow, ..head });
        });
        if cut.is_err() {
            self.trouble.unreadable += 1;
        }
    }

    /// The engine's description of a frame; `None` if it has no destination.
    fn head(&self, host: usize, frame: &[u8]) -> Option<Head> {
        let ip = Ethernet::parse(frame)?.ip()?;
        let Ip::V4(v4) = ip else { return None };
        let dst = host_of(v4.destination(), self.taps.len() as u32)?;
        let tcp = if v4.is_fragment() { None } else { ip.tcp() };
        let payload = tcp.as_ref().map_or(0, |tcp| tcp.payload().len() as u16);
        let ports = tcp.as_ref().map_or((0, 0), |tcp| (tcp.source_port(), tcp.destination_port()));
        let flow = self.flows.of(ports.0, ports.1).map(|(flow, forward)| FlowPacket {
            flow,
            forward,
            payload,
            ece: tcp.is_some_and(|tcp| is_echo(tcp.flags())),
        });
        let hash = match flow {
            Some(FlowPacket { flow, forward, .. }) => self.flows.path_hash(flow, forward),
            None => mix(&[ip.source(), ip.destination()], ports),
        };
        // a super-segment's own length may be more than IP can say; only its difference to the payload is used
        let ip_len = (frame.len() - ETHERNET_BYTES).min(usize::from(u16::MAX)) as u16;
        Some(Head { src: host as u32, dst, hash, ip_len, ecn: ecn(ip.ecn()), flow })
    }

    /// A free slot.
    fn slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots
                .push(Slot { header: VnetHeader::default(), bytes: Vec::with_capacity(self.mtu + ETHERNET_BYTES) });
            (self.slots.len() - 1) as u32
        })
    }

    fn keep(&mut self, packet: &Segment<'_>) -> u32 {
        let slot = self.slot();
        let kept = &mut self.slots[slot as usize];
        kept.header = packet.header;
        kept.bytes.clear();
        packet.append_to(&mut kept.bytes);
        slot
    }

    fn record(&mut self, host: usize, header: &VnetHeader, parts: &[&[u8]]) {
        if let Some(capture) = &mut self.captures[host] {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
            capture.record(now, header, parts);
        }
    }

    fn write(&mut self, host: usize, slot: u32) {
        let Slot { header, bytes } = &self.slots[slot as usize];
        if self.taps[host].write(header, &[bytes]).is_err() {
            self.trouble.refused += 1;
        }
        if self.captures[host].is_some() {
            let header = *header;
            let bytes = std::mem::take(&mut self.slots[slot as usize].bytes);
            self.record(host, &header, &[&bytes]);
            self.slots[slot as usize].bytes = bytes;
        }
        self.free.push(slot);
    }

    /// Writes the packets for `host` that leave together, neighbours joined.
    fn write_glued(&mut self, host: usize) {
        let leaving = std::mem::take(&mut self.leaving[host]);
        let mut glue = Glue::new();
        let tap = &mut self.taps[host];
        let mut send = |header: &VnetHeader, parts: &[&[u8]]| tap.write(header, parts);
        for slot in &leaving {
            let Slot { header, bytes } = &self.slots[*slot as usize];
            if glue.push(*header, bytes, &mut send).is_err() {
                self.trouble.refused += 1;
            }
        }
        if glue.flush(&mut send).is_err() {
            self.trouble.refused += 1;
        }
        if self.captures[host].is_some() {
            for slot in &leaving {
                let Slot { header, ref mut bytes } = self.slots[*slot as usize];
                let bytes_out = std::mem::take(bytes);
                self.record(host, &header, &[&bytes_out]);
                self.slots[*slot as usize].bytes = bytes_out;
            }
        }
        self.free.extend(&leaving);
        self.leaving[host] = leaving;
        self.leaving[host].clear();
    }
}

impl Ports for TapPorts {
    type Packet = u32;

    fn mark(&mut self, packet: &mut u32) {
        let marked = set_ce(&mut self.slots[*packet as usize].bytes);
        debug_assert!(marked, "the model marks only what is ECN-capable");
    }

    fn lift(&mut self, packet: u32) -> OwnedFrame {
        let Slot { header, bytes } = &self.slots[packet as usize];
        let frame = OwnedFrame::new(*header, bytes);
        self.free.push(packet);
        frame
    }

    fn lower(&mut self, frame: OwnedFrame) -> u32 {
        let number = self.slot();
        let slot = &mut self.slots[number as usize];
        slot.header = *frame.vnet_header();
        slot.bytes.clear();
        frame.parts().into_iter().for_each(|part| slot.bytes.extend_from_slice(part));
        number
    }

    fn release(&mut self, host: u32, packet: u32) {
        if self.glue {
            self.leaving[host as usize].push(packet);
        } else {
            self.write(host as usize, packet);
        }
    }

    fn discard(&mut self, packet: u32) {
        self.free.push(packet);
    }

    fn holds_back(&self) -> bool {
        self.glue
    }

    fn flush(&mut self, host: u32) {
        self.write_glued(host as usize);
    }

    fn receive(&mut self, take: &mut impl FnMut(&mut Self, u32, Head)) -> bool {
        let mut events = [EpollEvent::empty(); 64];
        // interrupted or not, the next poll comes soon
        let ready = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        let mut found = false;
        for event in &events[..ready] {
            // one frame, which may have 64 KB: then the other hosts and due packets have their turn
            found |= self.read(event.data() as usize, take);
        }
        found
    }
}

/// Whether the packet is an echo of a mark: ECE outside of the handshake, where it negotiates.
fn is_echo(flags: TcpFlags) -> bool {
    flags.contains(TcpFlags::ECE) && !flags.contains(TcpFlags::SYN)
}

fn ecn(bits: packet_io::Ecn) -> Ecn {
    match bits {
        packet_io::Ecn::NotEct => Ecn::NotEct,
        packet_io::Ecn::Ect1 => Ecn::Ect1,
        packet_io::Ecn::Ect0 => Ecn::Ect0,
        packet_io::Ecn::Ce => Ecn::Ce,
    }
}

/// A hash of addresses and ports (FNV-1a), for traffic that is not the scenario's.
fn mix(addresses: &[IpAddr], ports: (u16, u16)) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    };
    for address in addresses {
        if let IpAddr::V4(v4) = address {
            add(&v4.octets());
        }
    }
    add(&ports.0.to_be_bytes());
    add(&ports.1.to_be_bytes());
    hash
}
