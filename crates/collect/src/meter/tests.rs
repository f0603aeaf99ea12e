use super::*;
use crate::{Counts, QueueCounters};
use proptest::prelude::*;
use units::Bytes;

const GBIT: Rate = Rate::from_gbps(1);

fn s(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

/// A port of 1 Gbit/s that has sent so much, and received a tenth of it.
fn port(bytes: u64, packets: u64) -> PortCounters {
    let counts = |part: u64| Counts {
        bytes: Some(bytes / part),
        packets: Some(packets / part),
        dropped: Some(0),
        ..Counts::default()
    };
    PortCounters {
        number: 1,
        name: "p1".into(),
        rate: Some(GBIT),
        up: Some(true),
        received: counts(10),
        sent: counts(1),
        width: 64,
        ..PortCounters::default()
    }
}

fn narrow(bytes: u64, packets: u64) -> PortCounters {
    let mut port = PortCounters { width: 32, ..port(bytes, packets) };
    for counts in [&mut port.sent, &mut port.received] {
        counts.bytes = counts.bytes.map(|bytes| bytes & u64::from(u32::MAX));
        counts.packets = counts.packets.map(|packets| packets & u64::from(u32::MAX));
    }
    port
}

fn meter() -> Meter {
    Meter::new("s1", BTreeMap::new(), s(3600))
}

fn take(meter: &mut Meter, at: Time, ports: impl IntoIterator<Item = PortCounters>) {
    let answer = SwitchCounters { switch: "s1".into(), ports: ports.into_iter().collect() };
    meter.take(Moment::at(at), &answer);
}

/// What the first port sends after answers at these seconds.
fn sends(answers: &[(u64, PortCounters)]) -> (Link, MeterCounts) {
    let mut meter = meter();
    for (at, port) in answers {
        take(&mut meter, s(*at), [port.clone()]);
    }
    let links = meter.links(s(answers.last().unwrap().0));
    for link in &links {
        link.check().unwrap();
    }
    (links[0].clone(), meter.counts())
}

#[test]
fn two_answers_make_both_directions_of_a_link() {
    let mut first = port(0, 0);
    first.neighbour = Some(Neighbour { system: "s2".into(), port: "p7".into() });
    // 62.5 MB in ten seconds are 50 Mbit/s
    let mut second = PortCounters { neighbour: first.neighbour.clone(), ..port(62_500_000, 99_000) };
    second.sent.dropped = Some(1000);
    let mut meter = meter();
    take(&mut meter, s(10), [first]);
    let link = &meter.links(s(10))[0];
    assert_eq!(
        (link.utilization, link.drop_rate, link.age),
        (None, None, Some(Time::ZERO)),
        "one answer says nothing yet"
    );
    take(&mut meter, s(20), [second]);
    let [out, into] = &meter.links(s(23))[..] else { panic!("two directions") };
    assert_eq!((out.name.as_str(), out.from.as_str(), out.to.as_str()), ("s1 p1 out", "s1", "s2"));
    assert_eq!((into.name.as_str(), into.from.as_str(), into.to.as_str()), ("s1 p1 in", "s2", "s1"));
    assert_eq!((out.utilization, into.utilization), (Some(0.05), Some(0.005)));
    assert_eq!((out.drop_rate, into.drop_rate), (Some(0.01), Some(0.0)));
    assert_eq!((out.rate, out.up, out.age), (Some(GBIT), Some(true), Some(s(3))));
}

#[test]
fn a_missing_answer_changes_no_value_and_the_age_grows() {
    let mut meter = meter();
    take(&mut meter, s(0), [port(0, 0)]);
    take(&mut meter, s(10), [port(125_000_000, 100_000)]);
    assert_eq!((meter.links(s(75))[0].utilization, meter.links(s(75))[0].age), (Some(0.1), Some(s(65))));
    // the interval of the next answer is the true one: 375 MB in 100 s
    take(&mut meter, s(110), [port(500_000_000, 400_000)]);
    assert_eq!((meter.links(s(110))[0].utilization, meter.links(s(110))[0].age), (Some(0.03), Some(Time::ZERO)));
    assert!(meter.links(s(110 + 3601)).is_empty(), "after an hour it is forgotten");
}

#[test]
fn a_slow_switch_is_measured_over_the_time_between_the_middles_of_its_answers() {
    let mut meter = meter();
    let at = |asked: u64, answered: u64| Moment { asked: s(asked), answered: s(answered) };
    let answer = |bytes| SwitchCounters { switch: "s1".into(), ports: vec![port(bytes, bytes / 1000)] };
    meter.take(at(0, 4), &answer(0));
    meter.take(at(10, 18), &answer(150_000_000));
    // 150 MB in the 12 s from 2 to 14; its counters are at most as old as the question
    assert_eq!((meter.links(s(18))[0].utilization, meter.links(s(18))[0].age), (Some(0.1), Some(s(8))));
    // 2.1 GB in 10 s is too much for the port, but not in the 18 s that it may have been
    meter.take(at(20, 28), &answer(2_250_000_000));
    assert_eq!((meter.links(s(28))[0].utilization, meter.counts().impossible), (Some(1.0), 0));
}

#[test]
fn narrow_counters_wrap() {
    let almost = u64::from(u32::MAX) - 999_999;
    let (link, counts) = sends(&[(0, narrow(almost, 1000)), (10, narrow(almost + 125_000_000, 100_000))]);
    assert_eq!((link.utilization, counts.wraps, counts.resets), (Some(0.1), 1, 0));
    // wide ones too, after some centuries
    let almost = u64::MAX - 999_999;
    let mut wide = [port(0, 1000), port(0, 100_000)];
    (wide[0].sent.bytes, wide[1].sent.bytes) = (Some(almost), Some(almost.wrapping_add(125_000_000)));
    let (link, counts) = sends(&[(0, wide[0].clone()), (10, wide[1].clone())]);
    assert_eq!((link.utilization, counts.wraps, counts.resets), (Some(0.1), 1, 0));
}

#[test]
fn a_counter_too_narrow_for_the_interval_says_nothing_unless_the_packets_were_few() {
    // 60 s at 1 Gbit/s are 7.5 GB: nearly twice around
    let (link, counts) = sends(&[(0, narrow(0, 0)), (60, narrow(125_000_000, 100_000))]);
    assert_eq!((link.utilization, counts.narrow), (None, 1));
    let (link, counts) = sends(&[(0, narrow(0, 0)), (60, narrow(75_000_000, 50_000))]);
    assert_eq!((link.utilization, counts.narrow), (Some(0.01), 0));
}

#[test]
fn a_reset_is_no_wrap() {
    let unknown = |name: &str, before: PortCounters, after: PortCounters| {
        let again = PortCounters {
            sent: Counts { bytes: Some(250_000_000), packets: Some(200_000), ..after.sent },
            ..after.clone()
        };
        let (link, counts) = sends(&[(0, before.clone()), (10, after.clone())]);
        assert_eq!((link.utilization, link.drop_rate, counts.resets, counts.wraps), (None, None, 1, 0), "{name}");
        let (link, counts) = sends(&[(0, before), (10, after), (20, again)]);
        assert!(link.utilization.is_some() && counts.resets == 1, "{name}: the next interval is known: {link:?}");
    };
    unknown("a wide counter fell", port(9_000_000_000, 9_000_000), port(125_000_000, 100_000));
    unknown("too much for a wrap", narrow(1_000_000_000, 1_000_000), narrow(125_000_000, 100_000));
    // the bytes could have wrapped, but the packets cannot
    let almost = u64::from(u32::MAX) - 999_999;
    unknown("packets fell", narrow(almost, 4_000_000), narrow(124_000_000, 100_000));
    let marked = |port: PortCounters, at| PortCounters { discontinuity: Some(at), ..port };
    unknown("the switch says so", marked(port(0, 0), 7), marked(port(125_000_000, 100_000), 8));
}

#[test]
fn a_reboot_resets_also_the_port_that_looks_as_if_it_had_wrapped() {
    let mut meter = meter();
    let almost = u64::from(u32::MAX) - 999_999;
    let second = |port: PortCounters| PortCounters { number: 2, name: "p2".into(), ..port };
    let silent = |mut port: PortCounters| {
        (port.sent.packets, port.received.packets) = (None, None);
        port
    };
    take(&mut meter, s(0), [silent(narrow(almost, 0)), second(silent(narrow(2_000_000_000, 0)))]);
    take(&mut meter, s(10), [silent(narrow(100_000_000, 0)), second(silent(narrow(1_000_000, 0)))]);
    let links = meter.links(s(10));
    assert_eq!((links[0].utilization, links[2].utilization, meter.counts().wraps), (None, None, 0));
}

#[test]
fn counters_that_cannot_be_true_are_counted_and_say_nothing() {
    // 1.4 GB in ten seconds at 1 Gbit/s; 1.3 GB is within the tolerance
    let (link, counts) = sends(&[(0, port(0, 0)), (10, port(1_400_000_000, 1_000_000))]);
    assert_eq!((link.utilization, link.drop_rate, counts.impossible), (None, None, 1));
    let (link, counts) = sends(&[(0, port(0, 0)), (10, port(1_300_000_000, 1_000_000))]);
    assert_eq!((link.utilization, counts.impossible), (Some(1.0), 0));
    // packets without bytes
    let (link, counts) = sends(&[(0, port(7, 0)), (10, port(7, 9_999))]);
    assert_eq!((link.utilization, link.drop_rate, counts.stuck), (None, None, 2), "both directions");
    let (link, counts) = sends(&[(0, port(7, 0)), (10, port(7, 9))]);
    assert_eq!((link.utilization, counts.stuck), (Some(0.0), 0), "nine packets may be an accident of reading");
    let (link, _) = sends(&[(0, port(7, 5)), (10, port(7, 5))]);
    assert_eq!((link.utilization, link.drop_rate), (Some(0.0), Some(0.0)), "nothing moves");
}

#[test]
fn without_a_rate_the_utilization_is_unknown_unless_the_operator_says_the_rate() {
    let of = |rate, port: PortCounters| PortCounters { rate, ..port };
    let answers = [(0, of(None, port(0, 0))), (10, of(None, port(125_000_000, 100_000)))];
    let (link, counts) = sends(&answers);
    assert_eq!((link.utilization, link.drop_rate, counts.impossible), (None, Some(0.0), 0));
    let settings = PortSettings {
        rate: Some(Rate::from_gbps(10)),
        end: Some("h1".into()),
        marks: Some(true),
        ..PortSettings::default()
    };
    let mut meter = Meter::new("s1", BTreeMap::from([("p1".to_string(), settings)]), s(3600));
    for (at, port) in answers {
        take(&mut meter, s(at), [port]);
    }
    let link = &meter.links(s(10))[0];
    assert_eq!((link.utilization, link.to.as_str(), link.marks), (Some(0.01), "h1", Some(true)));
    // a rate that changed in between
    let (link, _) = sends(&[(0, port(0, 0)), (10, of(Some(Rate::from_gbps(10)), port(125_000_000, 100_000)))]);
    assert_eq!(link.utilization, None);
}

#[test]
fn a_clock_that_jumps_is_not_believed() {
    let at = |mut port: PortCounters, seconds: u64| {
        (port.sent.at, port.received.at) = (Some(s(seconds)), Some(s(seconds)));
        port
    };
    let of = |then, now| {
        let (link, counts) = sends(&[(0, at(port(0, 0), then)), (10, at(port(125_000_000, 100_000), now))]);
        (link.utilization, counts.clock_jumps, counts.resets)
    };
    assert_eq!(of(1000, 1008), (Some(0.125), 0, 0), "it read its counters every eight seconds");
    assert_eq!(of(1000, 87_400), (Some(0.1), 2, 0), "a day ahead");
    assert_eq!(of(87_400, 1010), (Some(0.1), 2, 0), "a day behind");
    let same =
        [(0, at(port(0, 0), 5)), (10, at(port(125_000_000, 100_000), 15)), (20, at(port(125_000_000, 100_000), 15))];
    let (link, counts) = sends(&same);
    assert_eq!(
        (link.utilization, link.age, counts.repeated),
        (Some(0.1), Some(s(10)), 2),
        "the same reading once more"
    );
}

#[test]
fn marks_and_queues() {
    let queue = |name: &str, packets, marked, length| QueueCounters {
        name: name.into(),
        packets: Some(packets),
        marked: Some(marked),
        dropped: Some(marked / 2),
        length: Some(Bytes::new(length)),
    };
    let with = |bytes, queues: Vec<QueueCounters>| {
        let mut port = PortCounters { queues, ..port(bytes, bytes / 1000) };
        port.sent.dropped = None;
        port
    };
    let first = with(0, vec![queue("a", 0, 0, 10), queue("b", 100, 0, 0)]);
    let (link, _) =
        sends(&[(0, first.clone()), (10, with(98_000, vec![queue("a", 50, 4, 3000), queue("b", 150, 0, 500)]))]);
    assert_eq!((link.mark_rate, link.queue, link.marks), (Some(0.04), Some(Bytes::new(3500)), Some(true)));
    assert_eq!(link.drop_rate, Some(0.02), "2 dropped of 98 + 2");
    let (link, counts) =
        sends(&[(0, first.clone()), (10, with(98_000, vec![queue("a", 5, 40, 0), queue("b", 100, 0, 0)]))]);
    assert_eq!((link.mark_rate, counts.impossible), (None, 1), "more marks than packets");
    let (link, _) = sends(&[(0, first), (10, with(98_000, vec![queue("a", 50, 0, 0), queue("b", 90, 0, 0)]))]);
    assert_eq!((link.mark_rate, link.marks), (None, None), "a queue's counter fell");
}

#[test]
fn names_are_plain_short_and_unique_and_ports_are_bounded() {
    let long = |number, name: &str| PortCounters { number, name: name.into(), ..port(0, 0) };
    let mut meter = Meter::new(&"s".repeat(500), BTreeMap::new(), s(60));
    let ports =
        [long(1, "a\u{7}b"), long(2, "a b"), long(2, "other"), long(2, "a b"), long(3, ""), long(4, &"é".repeat(300))];
    take(&mut meter, s(0), ports);
    let names: Vec<String> = meter.links(s(0)).iter().step_by(2).map(|link| link.name.replace("ss", "")).collect();
    assert_eq!(names[..4], [" 3 out", " a b out", " a b #2 out", " other out"]);
    meter.links(s(0)).iter().for_each(|link| link.check().unwrap());
    take(&mut meter, s(1), (0..10_000).map(|number| long(number, "p")));
    assert_eq!((meter.links(s(1)).len(), meter.counts().ignored), (2 * PORTS_MAX, 1 + 10_000 - (4096 - 5)));
    assert!(meter.links(s(62)).is_empty());
}

#[test]
fn a_port_is_known_by_its_name() {
    let renamed = PortCounters { name: "p0".into(), ..port(125_000_000, 100_000) };
    let (link, counts) = sends(&[(0, port(0, 0)), (10, renamed)]);
    assert_eq!((link.name.as_str(), link.utilization, counts.resets), ("s1 p0 out", None, 0));
    let renumbered = PortCounters { number: 99, ..port(125_000_000, 100_000) };
    let (link, _) = sends(&[(0, port(0, 0)), (10, renumbered)]);
    assert_eq!((link.name.as_str(), link.utilization), ("s1 p1 out", Some(0.1)));
}

fn any_count() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        Just(None),
        (0u64..10_000).prop_map(Some),
        any::<u32>().prop_map(|n| Some(n.into())),
        any::<u64>().prop_map(Some),
        (0u64..1000).prop_map(|n| Some(u64::MAX - n)),
    ]
}

prop_compose! {
    fn any_counts()(bytes in any_count(), packets in any_count(), dropped in any_count(), at in any_count()) -> Counts {
        Counts { bytes, packets, dropped, errors: None, at: at.map(Time::from_ps) }
    }
}

prop_compose! {
    fn any_port()(
        (number, name) in (0u32..3, "\\PC{0,3}"),
        rate in prop_oneof![Just(None), any::<u64>().prop_map(|bps| Some(Rate::from_bps(bps)))],
        (sent, received) in (any_counts(), any_counts()),
        queue in (any_count(), any_count(), any_count(), any_count()),
        (width, discontinuity) in (prop_oneof![Just(32u32), Just(64), any::<u32>()], any_count()),
    ) -> PortCounters {
        let (packets, dropped, marked, length) = queue;
        let queues = vec![QueueCounters { name: "q".into(), packets, dropped, marked, length: length.map(Bytes::new) }];
        PortCounters { number, name, rate, received, sent, queues, width, discontinuity, ..PortCounters::default() }
    }
}

proptest! {
    #[test]
    fn whatever_a_switch_says_every_value_is_in_range(answers in prop::collection::vec((0u64..100_000, 0u64..5000, prop::collection::vec(any_port(), 0..4)), 1..8)) {
        let mut meter = meter();
        let mut now = Time::ZERO;
        for (wait, took, ports) in answers {
            let asked = now + Time::from_ms(wait);
            now = asked + Time::from_ms(took);
            meter.take(Moment { asked, answered: now }, &SwitchCounters { switch: "s1".into(), ports });
            let links = meter.links(now);
            let names: BTreeSet<&str> = links.iter().map(|link| link.name.as_str()).collect();
            prop_assert_eq!(names.len(), links.len());
            for link in &links {
                prop_assert_eq!(link.check(), Ok(()));
            }
        }
    }

    /// Loads below the rate, read at any intervals through a counter of either width: what is known is true.
    #[test]
    fn what_is_known_of_an_honest_switch_is_true(
        start in any::<u64>(),
        wide in any::<bool>(),
        steps in prop::collection::vec((1u64..120, 0.0f64..1.0, 0u64..20), 2..20),
    ) {
        let mask = if wide { u64::MAX } else { u64::from(u32::MAX) };
        let (mut bytes, mut packets, mut discontinuity, mut now) = (start, start / 1000, 0, 0);
        let mut meter = meter();
        let mut first = true;
        for (seconds, load, event) in steps {
            now += seconds;
            let sent = (load * 125_000_000.0 * seconds as f64) as u64;
            bytes = bytes.wrapping_add(sent);
            packets = packets.wrapping_add(sent / 1000);
            let was_reset = event == 0;
            if was_reset {
                (bytes, packets, discontinuity) = (sent / 2, sent / 2000, discontinuity + 1);
            }
            let counts = Counts { bytes: Some(bytes & mask), packets: Some(packets & mask), ..Counts::default() };
            let port = PortCounters {
                sent: counts,
                width: if wide { 64 } else { 32 },
                discontinuity: Some(discontinuity),
                ..port(0, 0)
            };
            take(&mut meter, s(now), [port]);
            let known = meter.links(s(now))[0].utilization;
            if first || was_reset {
                prop_assert_eq!(known, None);
            } else if let Some(known) = known {
                prop_assert!((known - load).abs() < 1e-6, "{} of {}", known, load);
            } else {
                // only a narrow counter may say nothing: one whose interval is too long, or whose wrap is in doubt
                prop_assert!(!wide);
            }
            if !wide && !first && !was_reset && seconds <= 30 {
                prop_assert!(known.is_some(), "30 s at 1 Gbit/s are less than once around");
            }
            first = false;
        }
    }
}

#[test]
fn what_no_cable_is_in_is_no_link_unless_the_operator_says_so() {
    let named = |name: &str, is_virtual| PortCounters { name: name.into(), is_virtual, ..port(0, 0) };
    let ignored = PortSettings { ignore: true, ..PortSettings::default() };
    let settings = [("br0", ignored), ("tunnel1", PortSettings::default())];
    let settings = settings.map(|(name, settings)| (name.to_string(), settings));
    let mut meter = Meter::new("s1", BTreeMap::from(settings), s(3600));
    let all = [named("p1", false), named("lo", true), named("br0", false), named("tunnel1", true)];
    take(&mut meter, s(0), all.clone());
    let names = |meter: &mut Meter| meter.links(s(1)).into_iter().map(|link| link.name).collect::<Vec<_>>();
    assert_eq!(names(&mut meter), ["s1 p1 out", "s1 p1 in", "s1 tunnel1 out", "s1 tunnel1 in"]);
    take(&mut meter, s(1), [named("p1", true)]);
    assert_eq!(names(&mut meter), ["s1 tunnel1 out", "s1 tunnel1 in"], "its kind came late");
}
