//! One host of five, or one in fifty, says whatever a report can hold; what is decided for all is as if it did not.

use bus::{FctTimes, Peer, Report, Telemetry};
use oracle::Gathered;
use policy::{
    AlgorithmFacts, COUNT_MAX, History, Host, Known, Link, Measures, NetworkView, Oracle, OracleKey, Percentiles,
    Policy,
};
use testkit::Random;
use units::{Bytes, Rate, Time};

const POLICIES: [(&str, &str); 5] = [
    ("opentcp1.toml", include_str!("../../../../policies/opentcp1.toml")),
    ("opentcp2.toml", include_str!("../../../../policies/opentcp2.toml")),
    ("paced.toml", include_str!("../../../../policies/paced.toml")),
    ("diurnal.toml", include_str!("../../../../policies/diurnal.toml")),
    ("dctcp-when-ecn.toml", include_str!("../../../../policies/dctcp-when-ecn.toml")),
];

fn policy(i: usize) -> Policy {
    let (name, text) = POLICIES[i];
    let loss = Measures { loss: true, ..Measures::default() };
    let facts = |name, measures, needs_ecn| AlgorithmFacts { name, measures, needs_ecn };
    let algorithms = [
        facts("cubic", loss, false),
        facts("dctcp", Measures { ecn: true, ..loss }, true),
        facts("bbr", Measures { model: true, ..Measures::default() }, false),
    ];
    Policy::parse(name, text, Known { algorithms: &algorithms }).unwrap()
}

/// How the network is.
#[derive(Clone, Copy)]
struct Weather {
    /// Of the hosts' links.
    utilization: f64,
    /// Of all hosts together.
    flows: f64,
    /// Completion times of treated hosts against those of the others.
    harm: f64,
}

/// With these the smoothed number of flows passes the thresholds of `paced.toml` in one step, and is never near one.
const CALM: Weather = Weather { utilization: 0.2, flows: 200.0, harm: 1.0 };
const BUSY: Weather = Weather { utilization: 0.9, flows: 10_500.0, harm: 1.0 };

struct Fleet {
    random: Random,
    hosts: usize,
    /// The first so many lie.
    liars: usize,
    gathered: Gathered,
    oracle: Oracle,
    epoch: Option<u64>,
    treated: Vec<bool>,
    at: Time,
}

/// What is decided for all, in words.
type Decided = Vec<String>;

impl Fleet {
    fn new(i: usize, hosts: usize, liars: usize, seed: u64) -> Fleet {
        let policy = policy(i);
        let gathered = Gathered::new(&policy);
        let oracle = Oracle::new(policy, OracleKey::from_secret([1; 32]), History::default());
        Fleet {
            random: Random(seed),
            hosts,
            liars,
            gathered,
            oracle,
            epoch: None,
            treated: vec![false; hosts],
            at: Time::ZERO,
        }
    }

    fn honest(&mut self, i: usize, weather: Weather) -> Report {
        let random = &mut self.random;
        let spread = |random: &mut Random| 0.8 + 0.4 * random.unit();
        let name = format!("h{i:04}");
        let mut times = FctTimes::default();
        let slower = if self.treated[i] { weather.harm } else { 1.0 };
        for _ in 0..100 {
            // exponential, of a mean of 2 ms
            times.record((-2000.0 * slower * (1.0 - random.unit()).ln()) as u64);
        }
        let segments = (10_000.0 * spread(random)) as u64;
        let telemetry = Telemetry {
            group: "default".into(),
            remote_rack: "r2".into(),
            size: "under 10 kB".into(),
            received: false,
            flows: 100,
            bytes: segments * 1448,
            segments,
            retransmits: random.below(8),
            fct_us: times.bins(),
        };
        let link = |direction: &str, from: &str, to: &str, random: &mut Random| Link {
            name: format!("{name} eth0 {direction}"),
            from: from.into(),
            to: to.into(),
            rate: Some(Rate::from_bps(10_000_000_000)),
            utilization: Some(weather.utilization * (0.95 + 0.1 * random.unit())),
            drop_rate: Some(0.0001 * random.unit()),
            ..Link::default()
        };
        let links = vec![link("out", &name, "r1", random), link("in", "r1", &name, random)];
        let host = Host {
            rack: "r1".into(),
            cc: "cubic".into(),
            algorithms: vec!["cubic".into(), "dctcp".into(), "newreno".into()],
            live_flows: Some(weather.flows / self.hosts as f64 * spread(random)),
            flow_starts: Some(20.0 * spread(random)),
            sent_segments: Some(segments),
            retransmitted_segments: Some(random.below(8)),
            send_rate: Some(Rate::from_bps(1_000_000_000)),
            srtt_us: vec![(200, 90), (400 + random.below(100) as u32, 10)],
            fct: Percentiles { p50: Some(Time::from_ms(1)), p90: Some(Time::from_ms(4)), p99: Some(Time::from_ms(9)) },
            name,
            ..Host::default()
        };
        Report { host, links, telemetry: vec![telemetry], epoch: self.epoch, of_epoch: self.epoch, ..Report::default() }
    }

    /// Any report that a host may send as itself.
    fn lie(&mut self, i: usize, honest: &Report) -> Report {
        let random = &mut self.random;
        let name = honest.host.name.clone();
        let share = |random: &mut Random| match random.below(3) {
            0 => Some(0.0),
            1 => Some(1.0),
            _ => Some(random.unit()),
        };
        // some always say the same: that all is slow, or fast
        let stubborn =
            [Some((u32::MAX, u32::MAX)), Some((1, u32::MAX)), Some((40_000, 100)), Some((1, 100)), None][i % 5];
        let bins = |random: &mut Random| match stubborn {
            Some(bin) => vec![bin],
            None => (0..random.below(30)).map(|_| (random.next() as u32, random.next() as u32)).collect(),
        };
        let sent = number(random);
        let names = [format!("{name} eth0 in"), format!("{name} x"), "leaf1 1 out".into(), "h0001 eth0 in".into()];
        let far = ["r1".to_string(), format!("switch of {name}"), "leaf1".into(), "h0001".into(), name.clone()];
        let links = (0..random.below(64)).map(|n| {
            let (one, other) = (name.clone(), far[random.below(5) as usize].clone());
            let (from, to) = if random.chance(0.5) { (one, other) } else { (other, one) };
            Link {
                name: format!("{}{n}", names[random.below(4) as usize]),
                from,
                to,
                rate: Some(Rate::from_bps(number(random))),
                utilization: share(random),
                drop_rate: share(random),
                mark_rate: share(random),
                queue: Some(Bytes::new(number(random))),
                marks: Some(random.chance(0.5)),
                up: Some(random.chance(0.5)),
                ..Link::default()
            }
        });
        let links = links.collect();
        let time = |random: &mut Random| Some(Time::from_us(*random.any(&[0, 1, 1_000_000, 3_600_000_000])));
        let kind = any_kind(bins(random), random);
        let host = Host {
            name,
            rack: random.any(&["", "r1", "r9"]).to_string(),
            labels: [("role".to_string(), "odd".to_string())].into(),
            cc: random.any(&["", "bbr", "dctcp", "cubic", "nonsense"]).to_string(),
            algorithms: honest.host.algorithms.clone(),
            live_flows: Some(number(random) as f64),
            flow_starts: Some(number(random) as f64),
            fan_in: Some(sent as f64),
            sent_segments: Some(sent),
            retransmitted_segments: Some(*random.any(&[0, sent])),
            send_rate: Some(Rate::from_bps(number(random))),
            srtt_us: vec![(1, random.next() as u32), (u32::MAX, random.next() as u32)],
            fct: Percentiles { p50: time(random), p90: time(random), p99: time(random) },
        };
        let of_epoch = *random.any(&[self.epoch, None, Some(0), Some(u64::MAX >> 1)]);
        let of_epoch = if stubborn.is_some() { self.epoch } else { of_epoch };
        Report { host, links, telemetry: vec![kind], epoch: Some(u64::MAX >> 1), of_epoch, ..Report::default() }
    }

    /// A period, and what is decided at its end.
    fn period(&mut self, weather: Weather, base: &NetworkView) -> Decided {
        let period = self.oracle.policy().period;
        self.at += period;
        for i in 0..self.hosts {
            let mut report = self.honest(i, weather);
            if i < self.liars {
                report = self.lie(i, &report);
            }
            self.gathered.take(self.at, &Peer::Local, &report.to_bytes());
        }
        let view = self.gathered.view(self.at, period, base.clone());
        assert_eq!(view.hosts.len(), self.hosts, "every report was taken");
        for (epoch, arms) in self.gathered.take_arms() {
            self.oracle.observe(epoch, arms);
        }
        let (decision, _) = self.oracle.decide(&view);
        self.treated = (0..self.hosts).map(|i| self.oracle.treats(i)).collect();
        let treated = view.hosts.iter().zip(&self.treated).filter(|(_, treated)| **treated);
        self.gathered.begin(decision.epoch, treated.map(|(host, _)| host.name.as_str()));
        self.epoch = Some(decision.epoch);
        let constraints = decision.constraints.iter().map(|one| format!("{}: {:?}", one.name, one.holds));
        let rules = decision.rules.iter().map(|rule| {
            let on = rule.turn.map(policy::Turn::is_on);
            let why = rule.withheld.as_ref().map(|why| why.split(':').next().unwrap_or_default().to_string());
            format!("{}: {on:?}, {} on, {why:?}", rule.name, rule.hosts.on + rule.hosts.held_on)
        });
        constraints.chain(rules).chain([format!("treated {}", decision.treated)]).collect()
    }

    fn is_rolled_back(&self) -> bool {
        self.oracle.verdict().roll_back
    }
}

/// What else is known: the time of day, and for the policy that asks for marks the switches.
fn base(i: usize, hosts: usize) -> NetworkView {
    let mut view = NetworkView { hour: Some(14.0), weekday: Some(2), ..NetworkView::default() };
    if POLICIES[i].0 == "dctcp-when-ecn.toml" {
        let link = |n: usize| Link {
            name: format!("leaf1 {n} out"),
            from: "leaf1".into(),
            to: format!("host h{n:04}"),
            utilization: Some(0.2),
            marks: Some(true),
            ..Link::default()
        };
        view.links = (0..hosts).map(link).collect();
        for link in &mut view.links {
            link.to = link.to.trim_start_matches("host ").to_string();
        }
    }
    view
}

/// Fleets of a size with and without liars, through the same weather.
fn decide_alike(hosts: usize, liars: usize, weathers: &[Weather], seeds: u64) {
    for (i, (name, _)) in POLICIES.iter().enumerate() {
        let base = base(i, hosts);
        let mut kinds = std::collections::BTreeSet::new();
        for seed in 0..seeds {
            let (mut honest, mut odd) = (Fleet::new(i, hosts, 0, seed), Fleet::new(i, hosts, liars, seed));
            for (period, weather) in weathers.iter().enumerate() {
                let (right, decided) = (honest.period(*weather, &base), odd.period(*weather, &base));
                assert_eq!(right, decided, "{name}, {liars} of {hosts}, seed {seed}, period {period}");
                kinds.insert(right);
            }
            assert_eq!((honest.is_rolled_back(), odd.is_rolled_back()), (false, false), "{name}, seed {seed}");
            assert!(odd.gathered.outliers().total > 0 && odd.gathered.outliers().list.len() <= 8);
            // 10^15 claims of the last epoch are not believed
            assert!(odd.gathered.epoch(0) <= honest.gathered.epoch(0).max(Some(0)));
        }
        // something was decided that another weather changes, but where only marks count
        assert!(kinds.len() > 1 || *name == "dctcp-when-ecn.toml", "{name}: {kinds:?}");
    }
}

fn weathers(calm: usize, busy: usize) -> Vec<Weather> {
    let mut all = vec![CALM; calm];
    all.extend(vec![BUSY; busy]);
    all.extend(vec![CALM; calm]);
    all
}

fn number(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => 0,
        1 => COUNT_MAX,
        2 => random.below(COUNT_MAX),
        _ => random.below(10_000),
    }
}

/// Connections of a liar.
fn any_kind(fct_us: Vec<(u32, u32)>, random: &mut Random) -> Telemetry {
    let segments = number(random);
    Telemetry {
        group: random.any(&["default", "opentcp1/calm network", "nonsense"]).to_string(),
        remote_rack: random.any(&["", "r1", "r2", "r9"]).to_string(),
        size: "all".into(),
        received: random.chance(0.5),
        flows: number(random),
        bytes: number(random),
        segments,
        retransmits: *random.any(&[0, segments]),
        fct_us,
    }
}

#[test]
fn one_liar_of_five_changes_no_decision() {
    decide_alike(5, 1, &weathers(30, 10), 8);
}

#[test]
fn two_liars_of_a_hundred_change_no_decision() {
    decide_alike(100, 2, &weathers(20, 10), 2);
}

#[test]
fn eighty_liars_of_four_thousand_change_no_decision() {
    decide_alike(4000, 80, &weathers(2, 2), 1);
}

#[test]
fn a_change_that_all_see_counts_in_the_same_period_with_liars_or_without() {
    for (hosts, liars) in [(5, 1), (100, 2)] {
        // opentcp1: on while calm, off in the first busy period
        let mut fleet = Fleet::new(0, hosts, liars, 1);
        let base = base(0, hosts);
        let is_on = |decided: &Decided| decided[0].contains("Some(true)");
        for _ in 0..3 {
            assert!(is_on(&fleet.period(CALM, &base)));
        }
        assert!(!is_on(&fleet.period(BUSY, &base)));
        assert!(is_on(&fleet.period(CALM, &base)));
    }
}

#[test]
fn a_rollout_that_hurts_is_rolled_back_with_liars_as_without() {
    for (hosts, liars) in [(10, 1), (100, 2)] {
        let rolled_back = |liars, seed| {
            let mut fleet = Fleet::new(1, hosts, liars, seed);
            let base = base(1, hosts);
            (0..60).position(|_| {
                fleet.period(Weather { harm: 2.0, ..CALM }, &base);
                fleet.is_rolled_back()
            })
        };
        for seed in 0..4 {
            let (without, with) = (rolled_back(0, seed), rolled_back(liars, seed));
            println!("{hosts} hosts: rolled back after {without:?} periods, with {liars} liars after {with:?}");
            assert!(
                without.is_some() && with.is_some_and(|with| with <= without.unwrap() + 10),
                "{without:?} {with:?}"
            );
        }
    }
}
