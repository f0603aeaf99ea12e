//! Properties of every packet: nothing panics, and cutting undoes joining.

use crate::support::{Plan, checksums_are_right, cut, glued, slow_sum};
use packet_io::{Ethernet, Ip, TcpFlags, VnetHeader, complete, set_ce, tuple};
use proptest::prelude::*;

fn vnet_header() -> impl Strategy<Value = VnetHeader> {
    let small = || prop_oneof![Just(34u16), Just(16), 0u16..100, any::<u16>()];
    (0u8..4, prop_oneof![Just(0u8), Just(1), Just(4), Just(0x81), any::<u8>()], small(), any::<u16>(), small(), small())
        .prop_map(|(flags, gso_type, hdr_len, gso_size, csum_start, csum_offset)| VnetHeader {
            flags,
            gso_type,
            hdr_len,
            gso_size,
            csum_start,
            csum_offset,
        })
}

fn plan(payload: impl Strategy<Value = usize>) -> impl Strategy<Value = Plan> {
    (any::<bool>(), 0usize..3, any::<(u32, u16, u8, u16)>(), 0u16..512, 0usize..11, payload).prop_map(
        |(v6, tags, (seq, id, ecn, window), flags, options, payload)| Plan {
            v6,
            tags,
            seq,
            id,
            ecn: ecn & 3,
            window,
            flags: TcpFlags(flags),
            options: vec![1; options * 4],
            payload: (0..payload).map(|at| (at * 7) as u8).collect(),
            ..Plan::default()
        },
    )
}

/// Bytes that look like a frame in places: damaged, cut or padded.
fn nearly_a_frame() -> impl Strategy<Value = Vec<u8>> {
    let damage = prop::collection::vec((0usize..90, any::<u8>()), 0..6);
    (plan(0usize..200), damage, 0usize..300).prop_map(|(plan, damage, length)| {
        let (_, mut frame) = plan.packet();
        for (at, value) in damage {
            let at = at % frame.len();
            frame[at] = value;
        }
        frame.resize(length, 0x55);
        frame
    })
}

/// A step from one packet of a flow to the next: mostly what a sender would do, sometimes not.
fn step() -> impl Strategy<Value = (u32, u16, u16, u8, usize, bool)> {
    let mostly = |usual: u32| prop_oneof![12 => Just(usual), 1 => 0u32..3];
    (mostly(0), mostly(1), prop_oneof![12 => Just(0x10u16), 2 => 0u16..512], prop_oneof![12 => Just(2u8), 1 => 0u8..4])
        .prop_flat_map(|(gap, id, flags, ecn)| {
            let payload = prop_oneof![8 => Just(100usize), 2 => 0usize..101];
            (Just(gap), Just(id as u16), Just(flags), Just(ecn), payload, prop::bool::weighted(0.1))
        })
}

fn batch() -> impl Strategy<Value = Vec<(VnetHeader, Vec<u8>)>> {
    (any::<bool>(), any::<u32>(), any::<u16>(), prop::collection::vec(step(), 0..80)).prop_map(
        |(v6, seq, id, steps)| {
            let mut next = Plan { v6, seq, id, ..Plan::default() };
            let mut packets = Vec::new();
            for (gap, id, flags, ecn, payload, switch) in steps {
                next.ports.0 = if switch { 40_001 } else { 40_000 };
                (next.flags, next.ecn) = (TcpFlags(flags), ecn);
                next.payload = vec![payload as u8; payload];
                packets.push(next.packet());
                next.seq = next.seq.wrapping_add(payload as u32 + gap);
                next.id = next.id.wrapping_add(id);
            }
            packets
        },
    )
}

fn ask_everything(frame: &[u8]) {
    let _ = tuple(frame);
    let Some(ethernet) = Ethernet::parse(frame) else { return };
    let _ = (ethernet.destination(), ethernet.source(), ethernet.ethertype(), ethernet.payload());
    let Some(ip) = ethernet.ip() else { return };
    let _ = (ip.source(), ip.destination(), ip.ecn(), ip.protocol(), ip.payload());
    assert!(ip.headers_bytes() <= ip.bytes().len());
    if let Some(tcp) = ip.tcp() {
        let _ = (tcp.source_port(), tcp.seq(), tcp.ack(), tcp.flags(), tcp.window(), tcp.options(), tcp.payload());
    }
    if let Some(udp) = ip.udp() {
        let _ = (udp.source_port(), udp.destination_port(), udp.payload());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_cause_a_panic(header in vnet_header(), mut frame in nearly_a_frame(), mtu in 0usize..2000) {
        ask_everything(&frame);
        let _ = cut(&header, &frame, mtu);
        let joined = glued(&[(header, frame.clone()), (header, frame.clone())]);
        prop_assert!(!joined.is_empty());
        complete(&header, &mut frame);
        set_ce(&mut frame);
        ask_everything(&frame);
    }

    #[test]
    fn a_mark_changes_two_bits_and_keeps_the_checksum_as_right_as_it_was(plan in plan(0usize..50)) {
        let (_, frame) = plan.packet();
        let mut marked = frame.clone();
        prop_assert_eq!(set_ce(&mut marked), plan.ecn != 0);
        let again = Plan { ecn: if plan.ecn == 0 { 0 } else { 3 }, ..plan }.packet().1;
        prop_assert_eq!(marked, again);
    }

    #[test]
    fn cut_packets_carry_the_bytes_with_right_numbers_and_sums(
        plan in plan(1usize..20_000), gso_size in 1u16..3000, mtu in 150usize..3000,
    ) {
        prop_assume!(plan.payload.len() / usize::from(gso_size) < 400);
        let (header, frame) = plan.super_segment(gso_size);
        let packets = cut(&header, &frame, mtu).expect("150 bytes hold the headers");
        let (mut at, last) = (0usize, packets.len() - 1);
        for (index, (header, mut bytes)) in packets.into_iter().enumerate() {
            prop_assert_eq!(header, VnetHeader::partial(plan.tcp_at() as u16, 16));
            prop_assert!(bytes.len() - plan.ip_at() <= mtu);
            let payload = bytes.split_off(plan.headers_bytes());
            let flags = plan.flags
                .without(if index > 0 { TcpFlags::CWR } else { TcpFlags::default() })
                .without(if index < last { TcpFlags::PSH | TcpFlags::FIN } else { TcpFlags::default() });
            let expected = Plan {
                seq: plan.seq.wrapping_add(at as u32),
                id: plan.id.wrapping_add(index as u16),
                flags,
                payload: plan.payload[at..at + payload.len()].to_vec(),
                ..plan.clone()
            };
            at += payload.len();
            bytes.extend(payload);
            prop_assert_eq!(&bytes, &expected.packet().1);
            complete(&header, &mut bytes);
            prop_assert!(checksums_are_right(&expected, &bytes));
        }
        prop_assert_eq!(at, plan.payload.len());
    }

    #[test]
    fn cutting_undoes_joining(batch in batch()) {
        let frames = glued(&batch);
        let again: Vec<_> = frames.iter().flat_map(|(header, frame)| cut(header, frame, 9000).expect("it fits")).collect();
        prop_assert_eq!(again, batch);
    }

    #[test]
    fn joining_undoes_cutting(mut plan in plan(1usize..30_000), gso_size in 500u16..3000) {
        plan.flags = TcpFlags::ACK;
        let (header, frame) = plan.super_segment(gso_size);
        let packets = cut(&header, &frame, 9000).expect("it fits");
        let expected = if packets.len() == 1 { packets.clone() } else { vec![(header, frame)] };
        prop_assert_eq!(glued(&packets), expected);
    }

    #[test]
    fn a_completed_sum_is_that_of_the_words(bytes in prop::collection::vec(any::<u8>(), 20..200), start in 0u16..20) {
        let mut frame = bytes;
        frame[12] = 0;
        let header = VnetHeader::partial(start, 16 % (20 - start).max(1));
        let at = usize::from(header.csum_start + header.csum_offset);
        prop_assume!(at + 2 <= frame.len() && !matches!(Ethernet::parse(&frame).and_then(|e| e.ip()), Some(Ip::V4(_) | Ip::V6(_))));
        let expected = match !slow_sum(&frame[usize::from(start)..]) {
            0 if header.csum_offset == 6 => 0xffff,
            sum => sum,
        };
        complete(&header, &mut frame);
        prop_assert_eq!(u16::from_be_bytes([frame[at], frame[at + 1]]), expected);
    }
}

#[test]
fn batches_of_the_property_are_joined_at_all() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut packets, mut frames) = (0, 0);
    for _ in 0..100 {
        let batch = batch().new_tree(&mut runner).expect("a batch").current();
        packets += batch.len();
        frames += glued(&batch).len();
    }
    assert!(frames * 5 < packets * 4, "{packets} packets made {frames} frames: the property would be vacuous");
}
