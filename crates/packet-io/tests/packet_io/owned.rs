//! Frames changed in transit: their fields afterwards, and their checksums.

use crate::support::{Plan, checksums_are_right, slow_pseudo_sum};
use enforcer::Packet;
use packet_io::{GSO_ECN, OwnedFrame, TcpFlags, VnetHeader, complete, segment};
use proptest::prelude::*;
use std::sync::Arc;
use tcp::{Ecn, SackBlock, flags};

/// Timestamps, then two SACK blocks.
const SACKED: [u8; 32] =
    [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 18, 0, 0, 0, 50, 0, 0, 0, 60, 0, 0, 0, 70, 0, 0, 0, 80];

/// The frame of `plan`, its TCP checksum partial or whole.
fn frame(plan: &Plan, is_partial: bool) -> OwnedFrame {
    let (header, mut bytes) = plan.packet();
    if is_partial {
        return OwnedFrame::new(header, &bytes);
    }
    complete(&header, &mut bytes);
    OwnedFrame::new(VnetHeader::default(), &bytes)
}

/// Checksums as the frame's `header` says: whole and right, or partial for its length.
fn sums_are_right(plan: &Plan, frame: &OwnedFrame) -> bool {
    let bytes = frame.to_vec();
    let (ip, tcp) = (&bytes[plan.ip_at()..], &bytes[plan.tcp_at()..]);
    let partial = slow_pseudo_sum(ip, plan.v6, tcp.len()).to_be_bytes();
    let is_partial = frame.vnet_header().needs_csum();
    let mut whole = bytes.clone();
    complete(frame.vnet_header(), &mut whole);
    (!is_partial || tcp[16..18] == partial) && checksums_are_right(plan, &whole)
}

fn plans() -> impl Strategy<Value = Plan> {
    let options = prop_oneof![Just(Vec::new()), Just(SACKED[..12].to_vec()), Just(SACKED.to_vec())];
    let payload = proptest::collection::vec(any::<u8>(), 0..64);
    (any::<(bool, bool, u32, u32, u16)>(), options, payload, 0..4_u8).prop_map(
        |((v6, is_tagged, seq, ack, window), options, payload, ecn)| Plan {
            v6,
            tags: usize::from(is_tagged),
            seq,
            ack,
            window,
            ecn,
            options,
            payload,
            flags: TcpFlags(TcpFlags::ACK.0 | TcpFlags::PSH.0 | TcpFlags::FIN.0),
            ..Plan::default()
        },
    )
}

proptest! {
    #[test]
    fn what_is_changed_is_said_and_summed(plan in plans(), partial: bool, new: (u32, u16, u32, u32), ecn in 0..4_usize) {
        let mut packet = frame(&plan, partial);
        let before = packet.header().expect("it is right").segment;
        packet.set_ack(new.0);
        packet.set_window(new.1, 7);
        packet.set_timestamps(new.2, new.3);
        packet.set_flags(flags::ACK | flags::CWR);
        packet.set_ecn([Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][ecn]);
        packet.strip_sack();
        prop_assert!(sums_are_right(&plan, &packet));
        let after = packet.header().expect("it still is").segment;
        let has = before.has_timestamp;
        let expected = tcp::Segment {
            ack: new.0,
            window: u32::from(new.1),
            tsval: if has { new.2 } else { 0 },
            tsecr: if has { new.3 } else { 0 },
            flags: flags::ACK | flags::CWR,
            ecn: [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][ecn],
            sack_count: 0,
            sack: [SackBlock::default(); 3],
            ..before
        };
        prop_assert_eq!(after, expected);
        prop_assert_eq!(packet.window(7), u32::from(new.1) << 7);
        prop_assert_eq!(packet.frame_bytes(), frame(&plan, partial).frame_bytes());
    }

    #[test]
    fn a_block_is_put_in_where_there_is_room(mut plan in plans(), partial: bool, block: (u32, u32), has_payload: bool) {
        if !has_payload {
            plan.payload.clear();
        }
        let mut packet = frame(&plan, partial);
        let before = packet.header().expect("it is right").segment;
        let block = SackBlock { start: block.0, end: block.1 };
        let is_in = packet.set_sack(block);
        prop_assert_eq!(is_in, plan.payload.is_empty());
        let sacked = Plan { options: vec![0; packet.frame_bytes() - plan.tcp_at() - 20], ..plan.clone() };
        prop_assert!(!is_in || sums_are_right(&sacked, &packet));
        let mut blocks = [SackBlock::default(); 3];
        blocks[0] = block;
        let expected = tcp::Segment { sack_count: 1, sack: blocks, ..before };
        let after = packet.header().expect("it still is").segment;
        prop_assert_eq!(after, if is_in { expected } else { before });
    }

    #[test]
    fn parts_put_together_are_the_whole(plan in plans(), partial: bool, cut: proptest::sample::Index) {
        let packet = frame(&plan, partial);
        let whole = packet.header().expect("it is right").segment;
        let at = cut.index(whole.seq_len() as usize + 1) as u32;
        let parts = [packet.part(0, at), packet.part(at, whole.seq_len() - at)];
        let said = parts.each_ref().map(|part| part.header().expect("a part is a packet").segment);
        prop_assert!(parts.iter().all(|part| sums_are_right(&plan, part)));
        prop_assert_eq!(u32::from(said[0].len) + u32::from(said[1].len), u32::from(whole.len));
        prop_assert_eq!((said[0].seq, said[1].seq), (whole.seq, whole.seq.wrapping_add(at)));
        let payload = |part: &OwnedFrame| part.to_vec()[plan.headers_bytes()..].to_vec();
        prop_assert_eq!([payload(&parts[0]), payload(&parts[1])].concat(), plan.payload.clone());
        if at < whole.seq_len() {
            prop_assert_eq!((said[0].flags & flags::FIN, said[1].flags), (0, whole.flags));
        }
    }

    #[test]
    fn parts_of_a_super_segment_cut_into_the_same_packets_as_the_whole(
        plan in plans(),
        payload in proptest::collection::vec(any::<u8>(), 300..900),
        packets in 0..10_u32,
        has_cwr: bool,
    ) {
        const SIZE: u16 = 100;
        let cwr = if has_cwr { TcpFlags::CWR } else { TcpFlags::default() };
        let plan = Plan { payload, flags: plan.flags | cwr, ..plan };
        let (header, bytes) = plan.super_segment(SIZE);
        let header = VnetHeader { gso_type: header.gso_type | if has_cwr { GSO_ECN } else { 0 }, ..header };
        let packets_of = |frame: &OwnedFrame| {
            let mut packets = Vec::new();
            let mut take = |packet: packet_io::Segment<'_>| packets.push([packet.headers, packet.payload].concat());
            segment(frame.vnet_header(), &frame.to_vec(), 1500, &mut take).expect("it can be cut");
            packets
        };
        let whole = OwnedFrame::new(header, &bytes);
        let length = whole.header().expect("it is right").segment.seq_len();
        let at = (packets * u32::from(SIZE)).min(length);
        let parts = [whole.part(0, at), whole.part(at, length - at)];
        let carrying = parts.iter().filter(|part| part.frame_bytes() > plan.headers_bytes());
        let of_parts: Vec<_> = carrying.flat_map(packets_of).collect();
        prop_assert_eq!(of_parts, packets_of(&whole));
    }

    #[test]
    fn a_bare_header_acknowledges_and_no_more(plan in plans(), partial: bool) {
        let bare = frame(&plan, partial).bare();
        prop_assert!(sums_are_right(&plan, &bare));
        let said = bare.header().expect("it is a packet").segment;
        prop_assert_eq!((said.len, said.flags, said.ack, said.ecn), (0, flags::ACK, plan.ack, Ecn::NotEct));
    }

    #[test]
    fn a_packet_with_a_flipped_bit_is_not_parsed(plan in plans(), at: proptest::sample::Index, bit in 0..8_u32) {
        let whole = frame(&plan, false);
        let (header, mut bytes) = (*whole.vnet_header(), whole.to_vec());
        // no checksum covers the header of IPv6, but for its addresses
        let from = if plan.v6 { plan.tcp_at() } else { plan.ip_at() };
        let at = from + at.index(bytes.len() - from);
        bytes[at] ^= 1 << bit;
        prop_assert!(OwnedFrame::new(header, &bytes).header().is_none());
        prop_assert!(OwnedFrame::received(&bytes, false).header().is_none());
    }

    #[test]
    fn no_bytes_cause_a_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), plan in plans(), keep in 0..120_usize) {
        let (header, good) = plan.packet();
        // half of the time headers that begin well
        let n = keep.min(good.len()).min(bytes.len());
        bytes[..n].copy_from_slice(&good[..n]);
        let mut packet = OwnedFrame::new(header, &bytes);
        let _ = packet.header();
        packet.set_ack(1);
        packet.set_window(1, 0);
        packet.set_timestamps(1, 2);
        packet.set_flags(0);
        packet.set_ecn(Ecn::Ce);
        packet.set_sack(SackBlock { start: 1, end: 2 });
        packet.strip_sack();
        let _ = (packet.part(1, 2), packet.bare());
    }
}

#[test]
fn a_syns_options_are_parsed() {
    let options = vec![2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7];
    let plan = Plan { flags: TcpFlags::SYN, options, ..Plan::default() };
    let header = frame(&plan, true).header().expect("a SYN");
    let syn = header.segment;
    assert_eq!((syn.mss, syn.sack_permitted, syn.window_scale, syn.has_timestamp), (1460, true, 8, true));
    assert_eq!((syn.tsval, syn.flags), (9, flags::SYN));
    assert_eq!((header.source.ip().to_string(), header.source.port), ("10.0.0.1".to_string(), 40_000));
    let malformed = Plan { options: vec![8, 4, 0, 0], ..Plan::default() };
    assert!(frame(&malformed, true).header().is_none(), "a timestamp of two bytes");
}

#[test]
fn what_pads_a_short_packet_is_left_out() {
    let (header, mut bytes) = Plan { payload: Vec::new(), options: Vec::new(), ..Plan::default() }.packet();
    complete(&header, &mut bytes);
    assert_eq!(bytes.len(), 54, "an acknowledgment without options");
    let padded = [&bytes[..], &[0; 6]].concat();
    let packet = OwnedFrame::received(&padded, false);
    assert!(packet.header().is_some_and(|header| header.segment.len == 0));
    assert_eq!(packet.to_vec(), bytes);
}

#[test]
fn copies_and_parts_of_a_frame_share_its_payload() {
    let plan = Plan { payload: vec![7; 1000], ..Plan::default() };
    let packet = frame(&plan, false);
    let at = |packet: &OwnedFrame| packet.parts()[1].as_ptr_range();
    assert_eq!(at(&packet.clone()), at(&packet));
    assert_eq!(at(&packet.part(400, 600)).end, at(&packet).end);
    assert!(packet.part(999, 1).bytes() >= 1000, "a part keeps all of it");
    assert!(packet.bare().bytes() < 1000);
    let buffer: Arc<[u8]> = [&[9; 10][..], &packet.to_vec()].concat().into();
    let end = buffer.len();
    let within = OwnedFrame::within(VnetHeader::default(), buffer.clone(), 10..end);
    assert_eq!((within.to_vec(), at(&within).end), (packet.to_vec(), buffer.as_ptr_range().end));
    assert!(within.header().is_some() && within.bytes() >= end);
}

#[test]
fn a_tag_names_the_vlan_and_frames_with_two_tags_pass() {
    let vlan_of = |tags: usize, tag: [u8; 2]| {
        let (header, mut bytes) = Plan { tags, ..Plan::default() }.packet();
        if tags > 0 {
            bytes[14..16].copy_from_slice(&tag);
        }
        OwnedFrame::new(header, &bytes).header().map(|header| header.vlan)
    };
    assert_eq!(vlan_of(0, [0, 0]), Some(0));
    // priority 7 is not the VLAN's
    assert_eq!(vlan_of(1, [0xe1, 0x23]), Some(0x123));
    assert_eq!(vlan_of(2, [0, 5]), None);
}

#[test]
fn the_urgent_byte_of_a_part_is_where_it_was() {
    let plan = Plan {
        seq: 1000,
        payload: vec![7; 300],
        flags: TcpFlags(TcpFlags::ACK.0 | TcpFlags::URG.0),
        ..Plan::default()
    };
    let (header, mut bytes) = plan.packet();
    let tcp = plan.tcp_at();
    bytes[tcp + 18..tcp + 20].copy_from_slice(&150_u16.to_be_bytes());
    complete(&header, &mut bytes);
    let whole = OwnedFrame::new(VnetHeader::default(), &bytes);
    let urgent = |part: &OwnedFrame| {
        let (bytes, segment) = (part.to_vec(), part.header().expect("a packet whose checksum is right").segment);
        let pointer = u32::from(u16::from_be_bytes([bytes[tcp + 18], bytes[tcp + 19]]));
        (bytes[tcp + 13] & 0x20 != 0).then_some(segment.seq + pointer)
    };
    assert_eq!(urgent(&whole), Some(1150));
    assert_eq!(urgent(&whole.part(0, 100)), Some(1150));
    assert_eq!(urgent(&whole.part(100, 200)), Some(1150));
    assert_eq!(urgent(&whole.part(200, 100)), None, "it lies before");
}
