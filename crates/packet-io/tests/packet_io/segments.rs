//! Cutting and joining, case by case.

use crate::support::{Plan, checksums_are_right, cut, glued};
use packet_io::{Ethernet, GSO_ECN, GSO_TCPV4, Refused, TcpFlags, VnetHeader, segment};

fn counting(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| at as u8).collect()
}

/// (sequence number, IP id, flags, payload bytes) of a packet.
fn row(frame: &[u8]) -> (u32, u16, TcpFlags, usize) {
    let packet_io::Ip::V4(v4) = Ethernet::parse(frame).and_then(|ethernet| ethernet.ip()).expect("IP") else {
        panic!("IPv4 is expected");
    };
    let tcp = packet_io::Ip::V4(v4).tcp().expect("TCP");
    (tcp.seq(), v4.id(), tcp.flags(), tcp.payload().len())
}

#[test]
fn super_segments_are_numbered_as_by_a_card() {
    let flags = TcpFlags::ACK | TcpFlags::PSH | TcpFlags::FIN | TcpFlags::CWR | TcpFlags::ECE;
    let plan = Plan { seq: u32::MAX - 999, id: 0xffff, flags, payload: counting(3000), ..Plan::default() };
    let (mut header, frame) = plan.super_segment(1448);
    header.gso_type |= GSO_ECN;
    let packets = cut(&header, &frame, 1500).expect("it fits");
    let (ack, ece) = (TcpFlags::ACK, TcpFlags::ECE);
    assert_eq!(
        packets.iter().map(|(_, frame)| row(frame)).collect::<Vec<_>>(),
        [
            (u32::MAX - 999, 0xffff, ack | ece | TcpFlags::CWR, 1448),
            // 2^32 - 1000 + 1448 wraps to 448
            (448, 0, ack | ece, 1448),
            (1896, 1, ack | ece | TcpFlags::PSH | TcpFlags::FIN, 104),
        ]
    );
    let mut payload: Vec<u8> = Vec::new();
    for (header, mut frame) in packets {
        assert_eq!(header, VnetHeader::partial(34, 16));
        packet_io::complete(&header, &mut frame);
        assert!(checksums_are_right(&plan, &frame));
        payload.extend_from_slice(&frame[66..]);
    }
    assert_eq!(payload, counting(3000));
}

#[test]
fn packets_are_never_longer_than_the_links_mtu() {
    let (header, frame) = Plan { payload: counting(5000), ..Plan::default() }.super_segment(8948);
    // 1000 of IP less 20 and 32 of headers
    let sizes: Vec<_> = cut(&header, &frame, 1000).expect("it fits").iter().map(|(_, packet)| row(packet).3).collect();
    assert_eq!(sizes, [948, 948, 948, 948, 948, 260]);
    assert_eq!(cut(&header, &frame, 52), Err(Refused::TooLong), "no room for a byte of payload");
    assert_eq!(cut(&header, &frame, 53).map(|packets| packets.len()), Ok(5000));
}

#[test]
fn a_plain_frame_passes_unless_it_is_too_long() {
    let (header, frame) = Plan { payload: counting(1448), ..Plan::default() }.packet();
    assert_eq!(cut(&header, &frame, 1500), Ok(vec![(header, frame.clone())]));
    assert_eq!(cut(&header, &frame, 1499), Err(Refused::TooLong));
    let arp = [&[0xff; 12][..], &[8, 6], &[0; 46]].concat();
    assert_eq!(cut(&VnetHeader::default(), &arp, 46), Ok(vec![(VnetHeader::default(), arp.clone())]));
    assert_eq!(cut(&VnetHeader::default(), &arp, 45), Err(Refused::TooLong));
}

#[test]
fn malformed_frames_are_refused_before_any_output() {
    let (header, frame) = Plan { payload: counting(3000), ..Plan::default() }.super_segment(1448);
    let refused = |header: VnetHeader, frame: &[u8]| {
        let mut count = 0;
        assert_eq!(segment(&header, frame, 1500, &mut |_| count += 1), Err(Refused::Malformed));
        assert_eq!(count, 0);
    };
    refused(VnetHeader { gso_size: 0, ..header }, &frame);
    refused(VnetHeader { gso_type: 3, ..header }, &frame);
    refused(VnetHeader { gso_type: packet_io::GSO_TCPV6, ..header }, &frame);
    refused(VnetHeader { flags: 0, ..header }, &frame);
    refused(VnetHeader { csum_start: 33, ..header }, &frame);
    refused(VnetHeader { csum_offset: 6, ..header }, &frame);
    refused(header, &frame[..frame.len() - 1]);
    refused(header, &frame[..10]);
    let (header, frame) = Plan::default().packet();
    refused(VnetHeader { gso_type: GSO_TCPV4, gso_size: 1448, ..header }, &frame);
    refused(VnetHeader { csum_start: 60, ..header }, &frame);
    refused(header, &frame[..40]);
}

#[test]
fn a_train_of_equal_packets_becomes_the_super_segment_it_was() {
    for v6 in [false, true] {
        let plan = Plan { v6, payload: counting(44 * 1448 + 5), ..Plan::default() };
        let (header, frame) = plan.super_segment(1448);
        let packets = cut(&header, &frame, if v6 { 1520 } else { 1500 }).expect("it fits");
        assert_eq!(packets.len(), 45);
        assert_eq!(glued(&packets), vec![(header, frame)]);
    }
}

#[test]
fn a_super_segment_never_exceeds_ips_length_field() {
    // 52 bytes of headers and 45 × 1448 are 65,212; one packet more would be 66,660
    let packets: Vec<_> = (0..100u32)
        .map(|index| {
            Plan { seq: 1000 + index * 1448, id: index as u16, payload: counting(1448), ..Plan::default() }.packet()
        })
        .collect();
    let lengths: Vec<_> = glued(&packets).iter().map(|(_, frame)| (frame.len() - 66) / 1448).collect();
    assert_eq!(lengths, [45, 45, 10]);
    // The longest train is bounded in packets too.
    let small: Vec<_> = (0..100u32)
        .map(|index| Plan { seq: index * 10, id: index as u16, payload: counting(10), ..Plan::default() }.packet())
        .collect();
    assert_eq!(glued(&small).iter().map(|(_, frame)| (frame.len() - 66) / 10).collect::<Vec<_>>(), [64, 36]);
}

/// How many frames become of two packets, the second changed.
fn joined_with(change: impl Fn(&mut Plan)) -> bool {
    let first = Plan { payload: counting(100), ..Plan::default() };
    let mut second = Plan { seq: first.seq + 100, id: first.id + 1, ..first.clone() };
    change(&mut second);
    let packets = [first.packet(), second.packet()];
    let frames = glued(&packets);
    if frames.len() == 2 {
        assert_eq!(frames, packets, "what is not joined is not touched");
    }
    frames.len() == 1
}

#[test]
fn packets_that_differ_in_more_than_their_numbers_are_not_joined() {
    assert!(joined_with(|_| ()));
    assert!(joined_with(|second| second.payload.truncate(1)), "the last may be shorter");
    assert!(!joined_with(|second| second.payload.push(0)), "but not longer");
    assert!(!joined_with(|second| second.payload.clear()));
    assert!(!joined_with(|second| second.ecn = 3));
    assert!(!joined_with(|second| second.ecn = 1));
    assert!(!joined_with(|second| second.seq += 1), "a gap");
    assert!(!joined_with(|second| second.seq -= 100), "a repetition");
    assert!(!joined_with(|second| second.id += 1));
    assert!(!joined_with(|second| second.ack += 1));
    assert!(!joined_with(|second| second.window += 1));
    assert!(!joined_with(|second| second.ports.0 += 1));
    assert!(!joined_with(|second| second.hosts.1 += 1));
    assert!(!joined_with(|second| second.tags = 1));
    assert!(!joined_with(|second| second.v6 = true));
    assert!(!joined_with(|second| second.options[7] += 1), "another timestamp");
    assert!(!joined_with(|second| second.options.clear()));
    for flag in [TcpFlags::FIN, TcpFlags::PSH, TcpFlags::RST, TcpFlags::URG, TcpFlags::ECE, TcpFlags::CWR] {
        assert!(!joined_with(|second| second.flags = second.flags | flag), "{flag:?}");
    }
}

#[test]
fn packets_with_complete_or_wrong_checksums_pass_untouched() {
    let packets: Vec<_> = (0..3u32)
        .map(|index| Plan { seq: index * 100, id: index as u16, payload: counting(100), ..Plan::default() }.packet())
        .collect();
    assert_eq!(glued(&packets).len(), 1);
    let without_offload: Vec<_> = packets.iter().map(|(_, bytes)| (VnetHeader::default(), bytes.clone())).collect();
    assert_eq!(glued(&without_offload), without_offload);
    // the IP checksum, TCP's, and a byte of padding
    for (at, index) in [(24, 0), (24, 1), (50, 0), (50, 2)] {
        let mut wrong = packets.clone();
        wrong[index].1[at] ^= 1;
        assert!(glued(&wrong).contains(&wrong[index]), "byte {at} of packet {index}");
    }
    let mut padded = packets.clone();
    padded[1].1.push(0);
    assert_eq!(glued(&padded), padded);
}
