//! Header views: what they parse, what they refuse, and how a mark is set.

use crate::support::{Plan, checksums_are_right, slow_sum};
use packet_io::{Ecn, Ethernet, Ip, TcpFlags, VnetHeader, complete, protocol, set_ce, tuple};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn hello() -> Plan {
    Plan { payload: b"hello".to_vec(), flags: TcpFlags::ACK | TcpFlags::PSH | TcpFlags::ECE, ..Plan::default() }
}

#[test]
fn fields_of_tcp_over_ipv4_are_read() {
    let (_, mut frame) = hello().packet();
    frame.extend([0; 7]);
    let ethernet = Ethernet::parse(&frame).expect("a frame");
    assert_eq!(ethernet.destination(), [2, 0, 10, 0, 0, 2]);
    assert_eq!(ethernet.source(), [2, 0, 10, 0, 0, 1]);
    assert_eq!((ethernet.ethertype(), ethernet.headers_bytes()), (0x0800, 14));
    let ip = ethernet.ip().expect("an IP packet");
    assert_eq!(ip.source(), IpAddr::from([10, 0, 0, 1]));
    assert_eq!(ip.destination(), IpAddr::from([10, 0, 0, 2]));
    // 20 of IP, 20 and 12 of TCP, 5 of payload: the padding is not part of it
    assert_eq!((ip.bytes().len(), ip.protocol(), ip.ecn()), (57, protocol::TCP, Ecn::Ect0));
    let tcp = ip.tcp().expect("a segment");
    assert_eq!((tcp.source_port(), tcp.destination_port()), (40_000, 5001));
    assert_eq!((tcp.seq(), tcp.ack(), tcp.window()), (1000, 77, 500));
    assert_eq!(tcp.flags(), TcpFlags::ACK | TcpFlags::PSH | TcpFlags::ECE);
    assert_eq!((tcp.options().len(), tcp.payload()), (12, &b"hello"[..]));
    assert!(ip.udp().is_none());
}

#[test]
fn tags_and_ipv6_are_stepped_over() {
    let (_, frame) = Plan { v6: true, tags: 2, ecn: 1, ..hello() }.packet();
    let ip = Ethernet::parse(&frame).and_then(|ethernet| ethernet.ip()).expect("an IP packet");
    assert!(matches!(ip, Ip::V6(_)));
    assert_eq!(ip.ecn(), Ecn::Ect1);
    let host = |last| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last));
    let flow = tuple(&frame).expect("a flow");
    assert_eq!((flow.source, flow.destination), (host(1), host(2)));
    assert_eq!((flow.source_port, flow.destination_port, flow.protocol), (40_000, 5001, protocol::TCP));
}

#[test]
fn tcp_behind_an_extension_header_is_found_and_that_of_a_fragment_is_not() {
    let plan = Plan { v6: true, ..hello() };
    let (_, plain) = plan.packet();
    let with_extension = |number: u8, extension: [u8; 8]| {
        let mut frame = plain.clone();
        frame.splice(54..54, extension);
        frame[20] = number;
        frame[19] += 8;
        frame
    };
    let ports = |frame: &[u8]| tuple(frame).map(|flow| (flow.protocol, flow.source_port));
    // destination options, padded
    assert_eq!(ports(&with_extension(60, [6, 0, 1, 4, 0, 0, 0, 0])), Some((6, 40_000)));
    // offset 8 bytes
    assert_eq!(ports(&with_extension(44, [6, 0, 0, 8, 0, 0, 0, 1])), Some((6, 0)));
    // the only fragment
    assert_eq!(ports(&with_extension(44, [6, 0, 0, 0, 0, 0, 0, 1])), Some((6, 40_000)));
    // an extension longer than the packet
    assert_eq!(ports(&with_extension(60, [6, 200, 1, 4, 0, 0, 0, 0])), None);
}

#[test]
fn udp_is_read_up_to_its_own_length() {
    let mut frame = hello().packet().1;
    frame[23] = protocol::UDP;
    frame.splice(34.., [0x13, 0x88, 0, 53, 0, 10, 0, 0, b'h', b'i', b'!']);
    frame[17] = 31;
    let ip = Ethernet::parse(&frame).and_then(|ethernet| ethernet.ip()).expect("an IP packet");
    let udp = ip.udp().expect("a datagram");
    assert_eq!((udp.source_port(), udp.destination_port(), udp.payload()), (5000, 53, &b"hi"[..]));
    assert!(ip.tcp().is_none());
    frame[39] = 12;
    let ip = Ethernet::parse(&frame).and_then(|ethernet| ethernet.ip()).expect("an IP packet");
    assert!(ip.udp().is_none(), "12 bytes are announced, 11 are there");
}

#[test]
fn contradictions_are_refused() {
    let (_, frame) = hello().packet();
    let with = |at: usize, value: u8| {
        let mut frame = frame.clone();
        frame[at] = value;
        frame
    };
    let tcp_of = |frame: &[u8]| Ethernet::parse(frame)?.ip()?.tcp().map(|tcp| tcp.seq());
    assert_eq!(tcp_of(&frame), Some(1000));
    for (what, broken) in [
        ("version 6 under IPv4's ethertype", with(14, 0x65)),
        ("header of 16 bytes", with(14, 0x44)),
        ("length of 58 where 57 are there", with(17, 58)),
        ("length of 19, below the header's", with(17, 19)),
        ("fragment", with(21, 1)),
        ("TCP header of 16 bytes", with(46, 0x40)),
        ("TCP header longer than the segment", with(46, 0xf0)),
    ] {
        assert_eq!(tcp_of(&broken), None, "{what}");
    }
    for length in 0..frame.len() {
        assert_eq!(tcp_of(&frame[..length]), None, "cut to {length} bytes");
    }
    assert!(Ethernet::parse(&frame[..13]).is_none());
}

#[test]
fn a_mark_is_set_where_it_may_be_and_the_checksum_follows() {
    for (ecn, marked) in [(0, false), (1, true), (2, true), (3, true)] {
        for v6 in [false, true] {
            let plan = Plan { v6, ecn, ..hello() };
            let (header, mut frame) = plan.packet();
            let before = frame.clone();
            assert_eq!(set_ce(&mut frame), marked);
            assert_eq!(frame != before, ecn == 1 || ecn == 2);
            let now = Ethernet::parse(&frame).and_then(|ethernet| ethernet.ip()).expect("still IP").ecn();
            assert_eq!(now, if marked { Ecn::Ce } else { Ecn::NotEct });
            complete(&header, &mut frame);
            assert!(checksums_are_right(&plan, &frame));
        }
    }
    let mut arp = vec![0xff; 42];
    arp[12..14].copy_from_slice(&[8, 6]);
    assert!(!set_ce(&mut arp));
    assert_eq!(&arp[14..], &[0xff; 28]);
}

#[test]
fn a_partial_checksum_is_completed_without_the_padding() {
    let plan = Plan { options: Vec::new(), ..Plan::default() };
    let (header, mut frame) = plan.packet();
    frame.extend([0xaa; 6]);
    complete(&header, &mut frame);
    assert!(checksums_are_right(&plan, &frame[..54]));
    assert_eq!(frame[54..], [0xaa; 6]);

    let complete_already = frame.clone();
    complete(&VnetHeader::default(), &mut frame);
    assert_eq!(frame, complete_already);
    complete(&VnetHeader::partial(60, 16), &mut frame);
    assert_eq!(frame, complete_already, "a place beyond the frame is left alone");
}

#[test]
fn an_ipv4_checksum_worked_out_by_hand() {
    // 4500 0039 0009 4000 4006 → 10.0.0.1, 10.0.0.2 with ECT(0): 4502+0039+0009+4000+4006+0a00+0001+0a00+0002 = d94d
    let (_, frame) = hello().packet();
    assert_eq!(&frame[24..26], &(!0xd94d_u16).to_be_bytes());
    assert_eq!(slow_sum(&frame[14..34]), 0xffff);
    let source = Ethernet::parse(&frame).and_then(|ethernet| ethernet.ip()).map(|ip| ip.source());
    assert_eq!(source, Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))));
}
