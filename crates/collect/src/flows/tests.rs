//! Whatever exporters send: nothing panics, memory is bounded, losses are seen, and a packet counts once.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// A message of IPFIX from Open vSwitch's fields: templates (number 280), then two records; sequence number and domain as given.
fn message(form: netflow::tests::Message, number: u32) -> Vec<u8> {
    netflow::tests::message(form, number, 7)
}

fn flows(protocol: Protocol, exporters: &[(&str, &[&str])]) -> Flows {
    let exporters = exporters.iter().map(|(address, racks)| Exporter {
        address: address.parse().unwrap(),
        switch: None,
        racks: racks.iter().map(|rack| (*rack).to_string()).collect(),
        ports: Vec::new(),
        sampling: None,
        rate: None,
        settings: BTreeMap::new(),
    });
    let (window, keep) = (Time::from_secs(1), Time::from_secs(60));
    let settings = Settings { protocol, exporters: exporters.collect(), window, keep };
    let prefixes = [("10.1.0.0/16", "r1"), ("10.2.0.0/16", "r2")];
    let racks = Racks::new(&prefixes.map(|(prefix, rack)| (prefix.parse().unwrap(), rack.to_string())));
    Flows::new(&settings, racks, Time::ZERO)
}

/// The socket that an exporter sends from.
fn at(address: &str) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), 4000)
}

/// Bytes per second from rack to rack.
fn bytes(round: &Round) -> Vec<(&str, &str, u64)> {
    round.pairs.iter().map(|pair| (pair.from.as_str(), pair.to.as_str(), pair.rate.as_bps() / 8)).collect()
}

/// A datagram of sFlow from `agent`: a packet of 1000 bytes from 10.1.0.1 to 10.2.0.1, sampled 1 in 100.
fn sampled(agent: u8, number: u32) -> Vec<u8> {
    sampled_as(agent, number, (1000, 100))
}

/// The same with another length and sampling.
fn sampled_as(agent: u8, number: u32, (bytes, sampling): (u32, u32)) -> Vec<u8> {
    let sample = [1, 3, sampling, 0, 0, 1, 2, 1];
    let packet = [3, 32, bytes, 6, 0x0a01_0001, 0x0a02_0001, 1, 2, 0, 0];
    let length = 4 * (sample.len() + packet.len()) as u32;
    let head = [5, 1, 0x0a63_0000 + u32::from(agent), 0, number, 9, 1, 1, length];
    head.iter().chain(&sample).chain(&packet).flat_map(|word: &u32| word.to_be_bytes()).collect()
}

#[test]
fn packets_that_two_switches_sample_count_once() {
    let (first, second) = ("10.99.0.1", "10.99.0.2");
    let sums = |exporters: &[(&str, &[&str])]| {
        let mut flows = flows(Protocol::Sflow, exporters);
        for number in 0..10 {
            flows.take(Time::ZERO, at(first), &sampled(1, number));
            flows.take(Time::ZERO, at(second), &sampled(2, number));
        }
        let round = flows.round(Time::from_secs(1));
        (bytes(&round).iter().map(|pair| pair.2).sum::<u64>(), flows.counts())
    };
    let (once, counts) = sums(&[(first, &["r1"]), (second, &["r2"])]);
    assert_eq!((once, counts.counted, counts.elsewhere, counts.malformed), (10 * 100 * 1000, 10, 10, 0));
    let (twice, counts) = sums(&[(first, &[]), (second, &[])]);
    assert_eq!((twice, counts.counted), (2 * once, 20), "both count, if nobody says where hosts are");
}

#[test]
fn a_burst_counts_once_though_rounds_are_not_exactly_as_long_as_the_window() {
    let mut flows = flows(Protocol::Sflow, &[("10.99.0.1", &[])]);
    let (mut now, mut seen) = (Time::ZERO, 0.0);
    for (number, ms) in [1_002, 998, 1_003, 997, 1_300, 700, 1_000, 1_000].into_iter().enumerate() {
        if number == 3 {
            flows.take(now, at("10.99.0.1"), &sampled(1, 0));
        }
        now += Time::from_ms(ms);
        let rate = flows.round(now).pairs.iter().map(|pair| pair.rate.as_bps()).sum::<u64>();
        seen += rate as f64 / 8.0 * ms as f64 / 1e3;
    }
    assert!((seen - 100_000.0).abs() < 10.0, "{seen} bytes of 100,000");
}

#[test]
fn lost_datagrams_are_seen_and_the_rest_is_scaled() {
    use netflow::tests::Message;
    for (form, each) in [(Message::V5, 1), (Message::V9, 1), (Message::Ipfix, 2)] {
        let mut flows = flows(Protocol::Ipfix, &[("10.99.0.1", &[])]);
        let each: u32 = if form == Message::V5 { 2 } else { each };
        for number in [0, 1, 2, 5, 6, 7, 8, 9] {
            flows.take(Time::ZERO, at("10.99.0.1"), &message(form, number * each));
        }
        let round = flows.round(Time::from_secs(1));
        let counts = flows.counts();
        assert_eq!((counts.lost, counts.counted, counts.malformed), (u64::from(2 * each), 16, 0), "{form:?}");
        // eight datagrams of 2 × 1500 bytes came, of ten
        assert_eq!(bytes(&round), [("r1", "r2", 10 * 3000)], "{form:?}");
        assert!(round.problems.iter().any(|problem| problem.contains("20 %")), "{:?}", round.problems);
    }
}

#[test]
fn programs_at_one_address_are_streams_of_their_own() {
    use netflow::tests::Message;
    let mut flows = flows(Protocol::Ipfix, &[("10.99.0.1", &[])]);
    let from = |port| SocketAddr::new("10.99.0.1".parse().unwrap(), port);
    for number in 0..10 {
        // two records each; one began earlier
        for (port, ahead) in [(4000, 0), (4001, 20_000), (4002, 300)] {
            flows.take(Time::ZERO, from(port), &message(Message::Ipfix, ahead + 2 * number));
        }
    }
    // one is restarted, and sends from another port
    flows.take(Time::ZERO, from(4003), &message(Message::Ipfix, 0));
    let round = flows.round(Time::from_secs(1));
    assert_eq!((flows.counts().lost, &round.problems[..]), (0, &[][..]));
    assert_eq!(bytes(&round), [("r1", "r2", 31 * 3000)]);
}

#[test]
fn one_datagram_makes_no_rate_that_cannot_be() {
    // what came before, then what somebody forged, each as length and sampling
    let after = |before: &[(u32, u32)], forged: &[(u32, u32)]| {
        let mut flows = flows(Protocol::Sflow, &[("10.99.0.1", &[])]);
        let mut number = 0;
        for form in before {
            flows.take(Time::ZERO, at("10.99.0.1"), &sampled_as(1, number, *form));
            number += 1;
        }
        let first = flows.round(Time::from_secs(1));
        assert_eq!(first.problems.is_empty(), !before.is_empty(), "{first:?}");
        for form in forged {
            flows.take(Time::from_secs(1), at("10.99.0.1"), &sampled_as(1, number, *form));
            number += 1;
        }
        let round = flows.round(Time::from_secs(2));
        (bytes(&round).iter().map(|pair| pair.2).sum::<u64>(), flows.counts().implausible, round.problems)
    };
    let most = u32::MAX;
    let (rate, implausible, _) = after(&[], &[(most, 100), (1000, most), (most, most)]);
    assert_eq!((rate, implausible), (0, 3), "no frame is that long, nobody samples so few");
    // 64 KiB of a sampling that the exporter has never said
    let (rate, implausible, problems) = after(&[(1000, 100)], &[(65_535, 1 << 24)]);
    assert_eq!((rate, implausible), (65_535 * 100, 0), "as before");
    let said =
        "10.99.0.1: its sampling jumped from 1 in 100 to 1 in 16777216, and counts as 1 in 100 until it says so again";
    assert_eq!(problems, [said]);
    // less than a jump
    assert_eq!(after(&[(1000, 100)], &[(1000, 400)]).0, 400_000);
}

#[test]
fn a_sampling_that_is_said_again_counts() {
    let mut flows = flows(Protocol::Sflow, &[("10.99.0.1", &[])]);
    let mut rates = Vec::new();
    for (number, sampling) in [(0, 100), (1, 10_000), (2, 10_000), (3, 100), (4, 10_000)] {
        flows.take(Time::from_secs(number), at("10.99.0.1"), &sampled_as(1, number as u32, (1000, sampling)));
        rates.push(bytes(&flows.round(Time::from_secs(number + 1)))[0].2 / 1000);
    }
    assert_eq!(rates, [100, 100, 10_000, 100, 100]);
}

#[test]
fn a_pair_is_no_more_than_its_hosts_can_send() {
    let round = |bps: u64| {
        let mut flows = flows(Protocol::Ipfix, &[("10.99.0.1", &["r1"])]);
        flows.exporters.values_mut().for_each(|source| source.most = carried(Rate::from_bps(bps), flows.window));
        flows.take(Time::ZERO, at("10.99.0.1"), &message(netflow::tests::Message::Ipfix, 0));
        (flows.round(Time::from_secs(1)), flows.counts().implausible)
    };
    // 1000 bytes/s: less than a flow of 1500 bytes in a window of a second
    let (refused, implausible) = round(8000);
    assert_eq!((bytes(&refused), implausible), (Vec::new(), 2));
    // 2000 bytes/s: two such flows are more
    let (capped, implausible) = round(16_000);
    assert_eq!((bytes(&capped), implausible), (vec![("r1", "r2", 2000)], 0));
    let said = "r1 to r2: flow export says more than the `rate` of its exporters, and counts as 16 kbit/s";
    assert_eq!(capped.problems, [said]);
    assert_eq!(round(24_000).0.problems, [""; 0]);
}

#[test]
fn records_without_a_template_are_no_loss() {
    let mut flows = flows(Protocol::Ipfix, &[("10.99.0.1", &[])]);
    let whole = message(netflow::tests::Message::Ipfix, 0);
    // without its set of templates
    let template = usize::from(u16::from_be_bytes([whole[18], whole[19]]));
    let mut bare = [&whole[..16], &whole[16 + template..]].concat();
    bare[3] -= template as u8;
    flows.take(Time::ZERO, at("10.99.0.1"), &bare);
    flows.take(Time::ZERO, at("10.99.0.1"), &message(netflow::tests::Message::Ipfix, 2));
    flows.take(Time::ZERO, at("10.99.0.1"), &message(netflow::tests::Message::Ipfix, 4));
    assert_eq!(flows.round(Time::from_secs(1)).problems, [""; 0]);
    let counts = flows.counts();
    assert_eq!((counts.no_template, counts.counted, counts.lost), (1, 4, 0));
}

/// A datagram that an exporter could send, some bytes of it changed, and cut off.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    use netflow::tests::Message;
    let whole = prop_oneof![
        any::<u32>().prop_map(|number| message(Message::V5, number)),
        any::<u32>().prop_map(|number| message(Message::V9, number)),
        any::<u32>().prop_map(|number| message(Message::Ipfix, number)),
        any::<u32>().prop_map(|number| sampled(1, number)),
        // what Open vSwitch 3.1 sent
        proptest::sample::select(netflow::tests::recorded()),
    ];
    let changes = vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (whole, changes, any::<prop::sample::Index>(), any::<bool>()).prop_map(|(mut bytes, changes, end, cut)| {
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if cut {
            bytes.truncate(end.index(bytes.len()));
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_datagram_panics_and_memory_is_bounded(
        datagrams in vec(prop_oneof![mutated(), vec(any::<u8>(), 0..600)], 1..40)
    ) {
        for protocol in [Protocol::Sflow, Protocol::Ipfix] {
            let mut flows = flows(protocol, &[("10.99.0.1", &[])]);
            for datagram in &datagrams {
                flows.take(Time::ZERO, at("10.99.0.1"), datagram);
            }
            prop_assert_eq!(flows.counts().datagrams, datagrams.len() as u64);
            let round = flows.round(Time::from_secs(1));
            prop_assert!(round.pairs.len() <= 4, "two racks");
            for source in flows.exporters.values() {
                if let Decoder::Netflow(netflow) = &source.decoder {
                    let (domains, sizes) = netflow.size();
                    prop_assert!(domains <= sequence::STREAMS_MAX);
                    prop_assert!(sizes.iter().all(|size| size.0 <= template::TEMPLATES_MAX && size.1 <= template::PARTS_MAX));
                }
            }
        }
    }
}

#[test]
fn as_many_templates_as_can_be_sent_are_bounded() {
    let mut netflow = netflow::Netflow::default();
    let (mut sequence, mut counts) = (sequence::Sequence::default(), FlowCounts::default());
    for number in 256..=u16::MAX {
        // fields that are used and do not join: of 400 bytes each, 100 fields
        let fields: Vec<u8> = (0..100).flat_map(|_| [0, 8, 0, 4]).collect();
        let length = 4 + 4 + fields.len() as u16;
        let mut message = [&10_u16.to_be_bytes()[..], &(16 + length).to_be_bytes(), &[0; 12]].concat();
        message.extend([2_u16, length, number, 100].iter().flat_map(|word| word.to_be_bytes()));
        message.extend(fields);
        assert!(netflow.read(Datagram::of(&message), &mut sequence, &mut counts, &mut |_, _| ()));
    }
    assert_eq!(netflow.size(), (1, vec![(81, 8100)]));
    assert_eq!(counts.ignored, 65_536 - 256 - 81);
}
