//! Which reports of another enforcer are taken.

use super::*;

fn sealed(key: &hmac::Key, report: &Report) -> Vec<u8> {
    let report = report.encode_to_vec();
    [&report[..], hmac::sign(key, &report).as_ref()].concat()
}

#[test]
fn only_what_has_the_right_seal_is_opened() {
    let [ours, other] = [&[1; 32], &[2; 32]].map(|key| hmac::Key::new(hmac::HMAC_SHA256, key));
    let report = Report { time_ns: 7, flows: vec![Checkpoint { over: true, ..Checkpoint::default() }], sender: 1 };
    let datagram = sealed(&ours, &report);
    assert_eq!(opened(&ours, &datagram), Some(report));
    assert_eq!(opened(&other, &datagram), None);
    for at in 0..datagram.len() {
        let mut changed = datagram.clone();
        changed[at] ^= 1;
        assert_eq!(opened(&ours, &changed), None, "byte {at}");
    }
    (0..datagram.len()).for_each(|len| assert_eq!(opened(&ours, &datagram[..len]), None, "{len} bytes"));
}

#[test]
fn nothing_is_taken_twice_or_from_long_ago() {
    let (hour, now) = (3_600_000_000_000, 1_800_000_000_000_000_000);
    let mut heard = Heard::default();
    let mut is_new = |sender, time_ns| heard.is_new(&Report { time_ns, flows: Vec::new(), sender }, now);
    assert!(is_new(1, now - 10) && is_new(1, now));
    assert!(!is_new(1, now) && !is_new(1, now - 1));
    // another's clock is behind
    assert!(is_new(2, now - 20) && !is_new(2, now - 20) && is_new(1, now + 1));
    assert!(!is_new(3, now - hour) && !is_new(3, now + hour));
    for restarts in 10..1000 {
        assert!(is_new(restarts, now));
    }
    assert!(heard.0.len() <= SENDERS_MAX);
}

#[test]
fn the_largest_report_of_a_flow_fits() {
    let most = tcp::Checkpoint {
        una: u32::MAX,
        nxt: u32::MAX,
        rcv_nxt: u32::MAX,
        rcv_wnd: u32::MAX,
        window: u32::MAX,
        mss: u32::MAX,
        sack: true,
        ecn: true,
        cwnd: u32::MAX,
        ssthresh: u32::MAX,
        srtt_us: u32::MAX,
        mdev_us: u32::MAX,
        rttvar_us: u32::MAX,
        min_rtt_us: u32::MAX,
        bytes_acked: u64::MAX,
        delivered: u32::MAX,
        delivered_ce: u32::MAX,
        data_segments_sent: u32::MAX,
        retransmits: u32::MAX,
        rtos: u32::MAX,
        timeout_us: Some(u64::MAX),
        backoff: u32::MAX,
    };
    // the rest: two addresses, and fifteen numbers of up to five bytes, with their tags
    assert!(most.encoded_len() + 2 * 18 + 15 * 7 + 12 * 3 < FLOW_BYTES_MAX, "{}", most.encoded_len());
}

/// A standby that hears at an address of this machine, and what it needs.
struct Standby {
    _folder: tempfile::TempDir,
    mirror: Mirror,
    at: SocketAddr,
    enforcer: Enforcer<OwnedFrame>,
}

fn standby() -> Standby {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    bus::files::generate(&key).expect("a key");
    let from = Some("127.0.0.1:0".parse().expect("an address"));
    let mirror = Mirror::open(&Mirroring { to: Vec::new(), from, key }).expect("a free port");
    let at = mirror.from.as_ref().expect("it listens").local_addr().expect("it has one");
    let enforcer = Enforcer::new(enforcer::Limits::default(), Vec::new(), 1);
    Standby { _folder: folder, mirror, at, enforcer }
}

/// A flow between hosts of these numbers.
fn flow(number: u8) -> Checkpoint {
    let address = |last: u8| {
        let address = std::net::Ipv4Addr::new(10, 0, 0, last).to_ipv6_mapped();
        address.octets().to_vec().into()
    };
    Checkpoint {
        server_address: address(1),
        server_port: 80,
        client_address: address(number),
        client_port: 40_000,
        ..Checkpoint::default()
    }
}

#[test]
fn a_standby_knows_the_flows_of_reports_that_it_can_trust() {
    let Standby { mut mirror, at, mut enforcer, .. } = standby();
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let (now, ours) = (real_ns(), mirror.sender);
    let report =
        |time_ns, sender, flows: &[u8]| Report { time_ns, sender, flows: flows.iter().map(|n| flow(*n)).collect() };
    let other = ours.wrapping_add(1);
    let send = |report: &Report, key: &hmac::Key| {
        sender.send_to(&sealed(key, report), at).expect("it is this machine");
    };
    send(&report(now, other, &[2, 3]), &mirror.key);
    mirror.take(Time::ZERO, &mut enforcer);
    assert_eq!((enforcer.mirrored(), mirror.refused), (2, 0));
    // repeated, its own that came back, forged, and noise
    send(&report(now, other, &[4]), &mirror.key);
    send(&report(now + 1, ours, &[4]), &mirror.key);
    send(&report(now + 2, other, &[4]), &hmac::Key::new(hmac::HMAC_SHA256, &[2; 32]));
    sender.send_to(b"noise", at).expect("it is this machine");
    mirror.take(Time::ZERO, &mut enforcer);
    assert_eq!((enforcer.mirrored(), mirror.refused), (2, 4));
    // a flow that is over is forgotten
    let over = Checkpoint { over: true, ..flow(2) };
    send(&Report { time_ns: now + 3, flows: vec![over], sender: other }, &mirror.key);
    mirror.take(Time::ZERO, &mut enforcer);
    assert_eq!((enforcer.mirrored(), mirror.refused), (1, 4));
}

#[test]
fn a_few_reports_are_taken_in_a_turn_so_that_packets_do_not_wait() {
    let Standby { mut mirror, at, mut enforcer, .. } = standby();
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let (now, other) = (real_ns(), mirror.sender.wrapping_add(1));
    for n in 0..=TURN as u8 {
        let report = Report { time_ns: now + u64::from(n), flows: vec![flow(n + 2)], sender: other };
        sender.send_to(&sealed(&mirror.key, &report), at).expect("it is this machine");
    }
    assert!(!mirror.turn(Time::ZERO, &mut enforcer), "it has nothing to send");
    assert_eq!(enforcer.mirrored(), TURN);
    mirror.turn(Time::ZERO, &mut enforcer);
    assert_eq!(enforcer.mirrored(), TURN + 1);
}

#[test]
fn each_datagram_is_later_than_the_one_before_whatever_the_clock_says() {
    let Standby { mut mirror, .. } = standby();
    mirror.sent_ns = real_ns() + 3_600_000_000_000;
    let ahead = mirror.sent_ns;
    assert_eq!((mirror.next_ns(), mirror.next_ns()), (ahead + 1, ahead + 2));
}

#[test]
fn who_only_listens_has_no_rounds() {
    let Standby { mirror, .. } = standby();
    assert_eq!(mirror.poll_timeout(), Time::NEVER);
    assert!(mirror.fd().is_some());
}

#[test]
fn an_address_of_another_machine_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    let from = Some("192.0.2.1:5000".parse().expect("an address"));
    let how = Mirroring { to: Vec::new(), from, key: key.clone() };
    assert!(Mirror::open(&how).is_err_and(|why| why.contains("key")), "there is none yet");
    bus::files::generate(&key).expect("a key");
    let why = Mirror::open(&how).err().expect("it is for documentation");
    assert!(why.starts_with("192.0.2.1:5000: ") && why.ends_with("from an address of this machine"), "{why}");
}
