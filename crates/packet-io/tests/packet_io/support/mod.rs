//! Packets for the tests, put together byte by byte, and sums taken the slow way.

use packet_io::{Segment, TcpFlags, VnetHeader};

/// A TCP packet to be made.
#[derive(Clone, Debug)]
pub struct Plan {
    pub v6: bool,
    pub tags: usize,
    pub hosts: (u8, u8),
    pub ports: (u16, u16),
    pub seq: u32,
    pub ack: u32,
    pub flags: TcpFlags,
    pub window: u16,
    pub ecn: u8,
    pub id: u16,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            v6: false,
            tags: 0,
            hosts: (1, 2),
            ports: (40_000, 5001),
            seq: 1000,
            ack: 77,
            flags: TcpFlags::ACK,
            window: 500,
            ecn: 2,
            id: 9,
            options: vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
            payload: Vec::new(),
        }
    }
}

impl Plan {
    pub fn headers_bytes(&self) -> usize {
        self.ip_at() + if self.v6 { 40 } else { 20 } + 20 + self.options.len()
    }

    pub fn ip_at(&self) -> usize {
        14 + 4 * self.tags
    }

    pub fn tcp_at(&self) -> usize {
        self.ip_at() + if self.v6 { 40 } else { 20 }
    }

    /// The frame, its TCP checksum partial, and the header that says so.
    pub fn packet(&self) -> (VnetHeader, Vec<u8>) {
        let mut frame = vec![2, 0, 10, 0, 0, self.hosts.1, 2, 0, 10, 0, 0, self.hosts.0];
        for tag in 0..self.tags {
            frame.extend([0x81, 0, 0, tag as u8]);
        }
        let tcp_bytes = 20 + self.options.len() + self.payload.len();
        frame.extend(if self.v6 { self.ipv6(tcp_bytes) } else { self.ipv4(tcp_bytes) });
        frame.extend(self.ports.0.to_be_bytes());
        frame.extend(self.ports.1.to_be_bytes());
        frame.extend(self.seq.to_be_bytes());
        frame.extend(self.ack.to_be_bytes());
        frame.extend((((5 + self.options.len() as u16 / 4) << 12) | self.flags.0).to_be_bytes());
        frame.extend(self.window.to_be_bytes());
        frame.extend(slow_pseudo_sum(&frame[self.ip_at()..], self.v6, tcp_bytes).to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(&self.options);
        frame.extend(&self.payload);
        (VnetHeader::partial(self.tcp_at() as u16, 16), frame)
    }

    /// The same as a super-segment whose packets are to carry `gso_size` bytes.
    pub fn super_segment(&self, gso_size: u16) -> (VnetHeader, Vec<u8>) {
        let (header, frame) = self.packet();
        let gso_type = if self.v6 { packet_io::GSO_TCPV6 } else { packet_io::GSO_TCPV4 };
        (VnetHeader { gso_type, gso_size, hdr_len: self.headers_bytes() as u16, ..header }, frame)
    }

    fn ipv4(&self, tcp_bytes: usize) -> Vec<u8> {
        let mut ip = vec![0x08, 0x00, 0x45, self.ecn];
        ip.extend((20 + tcp_bytes as u16).to_be_bytes());
        ip.extend(self.id.to_be_bytes());
        ip.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, self.hosts.0, 10, 0, 0, self.hosts.1]);
        let checksum = !slow_sum(&ip[2..]);
        ip[12..14].copy_from_slice(&checksum.to_be_bytes());
        ip
    }

    fn ipv6(&self, tcp_bytes: usize) -> Vec<u8> {
        let mut ip = vec![0x86, 0xdd, 0x60, self.ecn << 4, 0, 0];
        ip.extend((tcp_bytes as u16).to_be_bytes());
        ip.extend([6, 64]);
        for host in [self.hosts.0, self.hosts.1] {
            ip.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
        ip
    }
}

/// The one's complement sum, word by word.
pub fn slow_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The sum of TCP's pseudo-header.
pub fn slow_pseudo_sum(ip: &[u8], v6: bool, length: usize) -> u16 {
    let mut pseudo = if v6 { ip[8..40].to_vec() } else { ip[12..20].to_vec() };
    pseudo.extend([0, 6]);
    pseudo.extend((length as u16).to_be_bytes());
    slow_sum(&pseudo)
}

/// Whether a whole TCP checksum is right, and IPv4's too.
pub fn checksums_are_right(plan: &Plan, frame: &[u8]) -> bool {
    let (ip, tcp) = (&frame[plan.ip_at()..], &frame[plan.tcp_at()..]);
    let mut covered = slow_pseudo_sum(ip, plan.v6, tcp.len()).to_be_bytes().to_vec();
    covered.extend(tcp);
    slow_sum(&covered) == 0xffff && (plan.v6 || slow_sum(&ip[..20]) == 0xffff)
}

/// A segment as one piece.
pub fn whole(segment: &Segment<'_>) -> (VnetHeader, Vec<u8>) {
    let mut bytes = Vec::new();
    segment.append_to(&mut bytes);
    assert_eq!(bytes.len(), segment.frame_bytes());
    (segment.header, bytes)
}

/// `segment`, its packets collected.
pub fn cut(header: &VnetHeader, frame: &[u8], mtu: usize) -> Result<Vec<(VnetHeader, Vec<u8>)>, packet_io::Refused> {
    let mut packets = Vec::new();
    let count = packet_io::segment(header, frame, mtu, &mut |segment| packets.push(whole(&segment)))?;
    assert_eq!(count, packets.len());
    Ok(packets)
}

/// One batch through `Glue`.
pub fn glued(packets: &[(VnetHeader, Vec<u8>)]) -> Vec<(VnetHeader, Vec<u8>)> {
    let mut frames = Vec::new();
    let mut send = |header: &VnetHeader, parts: &[&[u8]]| {
        frames.push((*header, parts.concat()));
        Ok(())
    };
    let mut glue = packet_io::Glue::new();
    for (header, bytes) in packets {
        glue.push(*header, bytes, &mut send).expect("collecting does not fail");
    }
    glue.flush(&mut send).expect("collecting does not fail");
    frames
}
