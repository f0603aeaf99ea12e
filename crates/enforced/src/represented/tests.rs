//! What is counted and reported for a host without an agent.

use super::*;

#[test]
fn retransmissions_are_measured_over_enough_segments() {
    let mut measured = Measured::default();
    let sent = |segments, retransmits| Sent { flows: 3, bytes: segments * 1000, segments, retransmits };
    let second = |n| Time::from_secs(n);
    // what was sent before the first look is of no known time
    measured.sample(second(1), sent(500, 90));
    measured.sample(second(2), sent(1400, 180));
    assert_eq!((measured.host.drop_rate(), measured.host.live_flows), (None, Some(3.0)));
    measured.sample(second(3), sent(2500, 190));
    assert_eq!((measured.host.drop_rate(), measured.host.send_rate), (Some(0.05), Some(Rate::from_bps(8_000_000))));
    // one flow ends, the others continue
    measured.ended += Sent { flows: 0, ..sent(2500, 190) };
    measured.sample(second(4), sent(1000, 0));
    assert_eq!(measured.host.drop_rate(), Some(0.0));
}

/// A host whose Oracle has answered, and its end of a bus within the process.
struct Scene {
    host: Represented,
    key: policy::OracleKey,
    oracle: bus::ChannelOracle,
    agent: bus::ChannelAgent,
}

impl Scene {
    fn new() -> Scene {
        let key = policy::OracleKey::from_secret([1; 32]);
        let behalf =
            Behalf { name: "h".into(), prefix: "10.0.0.0/8".parse().expect("a prefix"), labels: BTreeMap::new() };
        let mut host = Represented::new(&behalf, key.public().into(), None);
        host.agent.ask([7; 32]);
        assert!(!host.take(Time::ZERO, &key.answer(0, &[[7; 32]]), &mut |line| panic!("{line}")));
        let mut oracle = bus::channel();
        let agent = oracle.agent().expect("there is room");
        Scene { host, key, oracle, agent }
    }

    fn take(&mut self, now: u64, message: &[u8]) -> bool {
        self.host.take(Time::from_secs(now), message, &mut |_| {})
    }

    /// Counts so many flows that have ended.
    fn end(&mut self, flows: u32, algorithm: &str, client: &str) {
        (0..flows).for_each(|_| self.host.ended(&record(algorithm, client)));
    }

    /// The epochs of the reports that have come, and how many flows each has.
    fn reported(&mut self) -> Vec<(Option<u64>, u64)> {
        use bus::Hub as _;
        let mut all = Vec::new();
        while let Some(message) = self.oracle.receive(std::time::Duration::ZERO).expect("a bus") {
            let report = Report::from_bytes(&message.bytes).expect("a report");
            all.push((report.of_epoch, report.telemetry.iter().map(|kind| kind.flows).sum()));
        }
        all
    }
}

fn record(algorithm: &str, client: &str) -> Record {
    let end = |address: &str, port| enforcer::End::new(address.parse().expect("an address"), port);
    Record {
        server: end("10.0.0.1", 443),
        client: end(client, 40_000),
        began: Time::ZERO,
        ended: Time::from_ms(5),
        ending: None,
        bytes_acked: 1000,
        data_segments_sent: 4,
        retransmits: 9,
        rtos: 0,
        delivered: 1,
        delivered_ce: 0,
        absorbed: 0,
        hidden: 0,
        srtt_us: 1000,
        min_rtt_us: 1000,
        cwnd: 10,
        algorithm: algorithm.to_string(),
    }
}

fn cue(rule: &str, cc: &str, lifetime: u64) -> policy::Cue {
    policy::Cue {
        epoch: 1,
        id: 0,
        policy: "p".into(),
        rule: rule.into(),
        rank: 0,
        lifetime: Time::from_secs(lifetime),
        scope: policy::CueScope::default(),
        set: policy::Settings { cc: Some(cc.into()), ..policy::Settings::default() },
        guard: None,
        reason: "a test".into(),
    }
}

#[test]
fn a_flow_counts_for_the_rule_whose_algorithm_it_had() {
    let mut scene = Scene::new();
    let mut web = cue("web", "bbr", 60);
    web.scope.sessions.port = Some(443);
    web.scope.sessions.remote = Some("192.0.2.0/24".parse().expect("a prefix"));
    assert!(scene.take(0, &scene.key.sign(&web)));
    scene.end(2, "bbr", "192.0.2.7");
    scene.end(3, "bbr", "198.51.100.7");
    scene.end(4, "cubic", "192.0.2.7");
    let counted: Vec<(&str, u64)> = scene.host.ended.iter().map(|(name, kind)| (name.as_str(), kind.flows)).collect();
    assert_eq!(counted, [("default", 7), ("p/web", 2)]);
    // of four segments no more than four can have been retransmitted, or an Oracle refuses the report
    let kind = &scene.host.ended["p/web"];
    assert_eq!((kind.bytes, kind.segments, kind.retransmits), (2000, 8, 8));
}

#[test]
fn until_an_epoch_is_on_disk_what_was_in_force_stays_without_what_has_ended() {
    let mut scene = Scene::new();
    assert!(scene.take(0, &scene.key.sign(&cue("short", "bbr", 10))));
    let long = policy::Cue { id: 1, ..cue("long", "cubic", 60) };
    assert!(scene.take(0, &scene.key.sign(&long)));
    let names = |scene: &Scene| scene.host.in_force.iter().map(|rule| rule.rule.clone()).collect::<Vec<_>>();
    scene.host.settle(Time::ZERO, false);
    assert!(names(&scene).is_empty(), "nothing takes effect yet");
    scene.host.settle(Time::ZERO, true);
    assert_eq!(names(&scene), ["long", "short"], "of one rank, by name");
    scene.host.settle(Time::from_secs(10), false);
    assert_eq!(names(&scene), ["long"]);
    let reverted = policy::Reverted {
        policy: "p".into(),
        rule: "long".into(),
        until: Time::from_secs(99),
        hold: Time::from_secs(99),
        why: String::new(),
    };
    scene.host.agent.remember([reverted]);
    scene.host.settle(Time::from_secs(10), false);
    assert!(names(&scene).is_empty(), "a guard does not wait for a disk");
}

#[test]
fn earlier_periods_are_reported_first_and_the_last_two_wait_for_an_oracle() {
    let mut scene = Scene::new();
    let beacon =
        |scene: &Scene, epoch| scene.key.beacon(policy::Beacon { epoch, period: Time::from_secs(2), oracle: 1 });
    for epoch in 1..=4 {
        scene.take(epoch, &beacon(&scene, epoch));
        scene.end(epoch as u32 * 10, "bbr", "192.0.2.7");
    }
    // the fourth period goes on; in the first nobody could know when it had begun
    let waiting: Vec<u64> = scene.host.earlier.iter().map(|(epoch, _)| *epoch).collect();
    assert_eq!(waiting, [2, 3]);
    while scene.agent.send(b"noise").is_ok() {}
    assert!(matches!(scene.host.send(Time::from_secs(5), &mut scene.agent), Err(BusError::Full)));
    while bus::Hub::receive(&mut scene.oracle, std::time::Duration::ZERO).expect("a bus").is_some() {}
    scene.host.send(Time::from_secs(5), &mut scene.agent).expect("there is room");
    assert_eq!(scene.reported(), [(Some(2), 20), (Some(3), 30), (Some(4), 40)]);
    scene.host.send(Time::from_secs(6), &mut scene.agent).expect("there is room");
    assert_eq!(scene.reported(), [(Some(4), 0)], "nothing twice");
}
