//! Reports of long periods: what ended in one period is counted on the side on which its host was in that period.

use bus::{FctTimes, Peer, Report, Telemetry, Timetable};
use oracle::Gathered;
use policy::{Beacon, Host, Known, NetworkView, Policy, place_of};
use std::collections::{BTreeMap, VecDeque};
use testkit::Random;
use units::Time;

const T: Time = Time::from_secs(60);
const HOSTS: usize = 40;
const PERIODS: u64 = 25;
const STEP: Time = Time::from_ms(100);

/// What a connection took: it tells in which epoch it ended, and whether its host was treated.
fn mark(epoch: u64, treated: bool) -> u64 {
    (1 + epoch % 8) * if treated { 1000 } else { 100_000 }
}

/// Half of the hosts, others in each epoch.
fn is_treated(epoch: u64, host: usize) -> bool {
    place_of(&epoch.to_string(), &host.to_string()).is_multiple_of(2)
}

struct Agent {
    timetable: Timetable,
    beacon: Option<Beacon>,
    ended: FctTimes,
    flows: u64,
    earlier: VecDeque<(u64, FctTimes, u64)>,
    reports: u64,
}

impl Agent {
    fn report(&mut self, host: usize, of_epoch: Option<u64>, times: &FctTimes, flows: u64) -> Vec<u8> {
        self.reports += 1;
        let kind =
            Telemetry { group: "default".into(), flows, segments: flows, fct_us: times.bins(), ..Telemetry::default() };
        let telemetry = if flows > 0 { vec![kind] } else { Vec::new() };
        let host = Host { name: format!("h{host}"), ..Host::default() };
        Report { host, of_epoch, telemetry, ..Report::default() }.to_bytes()
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "a simulation of a fleet, step by step")]
fn nothing_of_one_epoch_is_counted_on_another_side() {
    for (seed, loss) in [(1, 0.0), (2, 0.05), (3, 0.3)] {
        let text = "name = \"p\"\nmode = \"observe\"\nperiod = \"60 s\"\n[[rule]]\nname = \"r\"\nwhen = \"true\"\nset = { initial_cwnd = 20 }\n";
        let mut gathered = Gathered::new(&Policy::parse("p.toml", text, Known::default()).unwrap());
        let mut random = Random(seed);
        let agent = |i: usize| {
            let mut timetable = Timetable::new(&format!("h{i}"));
            timetable.asked(Time::ZERO);
            Agent {
                timetable,
                beacon: None,
                ended: FctTimes::default(),
                flows: 0,
                earlier: VecDeque::new(),
                reports: 0,
            }
        };
        let mut agents: Vec<Agent> = (0..HOSTS).map(agent).collect();
        // on their way: beacons to hosts, and reports to the Oracle
        let mut beacons: BTreeMap<(Time, usize), Beacon> = BTreeMap::new();
        let mut reports: BTreeMap<(Time, u64), Vec<u8>> = BTreeMap::new();
        let (mut now, mut epoch, mut next) = (Time::ZERO, 0, T);
        let (mut sent, mut counted) = (0, 0);
        while epoch < PERIODS {
            now += STEP;
            if now >= next {
                next += T;
                gathered.view(now, T, NetworkView::default());
                for (of, arms) in gathered.take_arms() {
                    // what ended before the first beacon has no epoch, and no side
                    let Some(of) = of else { continue };
                    for (arm, treated) in arms.iter().zip([true, false]).filter(|(arm, _)| !arm.fct_ns.is_empty()) {
                        let right = mark(of, treated) * 1000;
                        let (least, most) = (arm.fct_ns.min(), arm.fct_ns.max());
                        assert!(
                            least * 17 >= right * 16 && most * 16 <= right * 17,
                            "epoch {of}, treated {treated}: {least} to {most} ns, not {right}"
                        );
                        counted += arm.fct_ns.len();
                    }
                }
                epoch += 1;
                let names: Vec<String> =
                    (0..HOSTS).filter(|host| is_treated(epoch, *host)).map(|host| format!("h{host}")).collect();
                gathered.begin(epoch, names.iter().map(String::as_str));
                let beacon = Beacon { epoch, period: T, oracle: 0 };
                for host in 0..HOSTS {
                    if !random.chance(loss) {
                        beacons.insert((now + Time::from_ms(random.below(400)), host), beacon);
                    }
                }
            }
            while let Some(((at, host), beacon)) = beacons.first_key_value().map(|(key, beacon)| (*key, *beacon)) {
                if at > now {
                    break;
                }
                beacons.pop_first();
                agents[host].beacon = Some(beacon);
            }
            for (host, agent) in agents.iter_mut().enumerate() {
                if let Some(of_epoch) = agent.timetable.heard(now, agent.beacon) {
                    let ended = std::mem::take(&mut agent.ended);
                    agent.earlier.push_back((of_epoch, ended, std::mem::take(&mut agent.flows)));
                }
                if random.chance(0.1) {
                    let (in_force, flow) = (agent.beacon.map_or(0, |beacon| beacon.epoch), 1);
                    agent.ended.record(mark(in_force, is_treated(in_force, host)));
                    agent.flows += flow;
                    sent += u64::from(in_force > 0);
                }
                if agent.timetable.is_due(now) {
                    while let Some((of_epoch, ended, flows)) = agent.earlier.pop_front() {
                        let bytes = agent.report(host, Some(of_epoch), &ended, flows);
                        reports.insert((now + Time::from_ms(random.below(900)), random.next()), bytes);
                    }
                    if agent.timetable.has_current(now) {
                        let (of_epoch, ended) = (agent.timetable.epoch(), std::mem::take(&mut agent.ended));
                        let flows = std::mem::take(&mut agent.flows);
                        let bytes = agent.report(host, of_epoch, &ended, flows);
                        reports.insert((now + Time::from_ms(random.below(900)), random.next()), bytes);
                    }
                    agent.timetable.reported(now);
                }
            }
            while let Some((key, _)) = reports.first_key_value().filter(|((at, _), _)| *at <= now) {
                let bytes = reports.remove(&{ *key }).expect("it is there");
                gathered.take(now, &Peer::Local, &bytes);
            }
        }
        let most = agents.iter().map(|agent| agent.reports).max().unwrap();
        println!(
            "loss {loss}: {counted} of {sent} connections counted, at most {most} reports in {PERIODS} periods of a host"
        );
        assert!(counted > 0);
        if loss == 0.0 {
            // of the last two periods reports are still awaited; one host of forty at each end of each share is left out, not its weight
            assert!(counted * 100 > sent * 85, "{counted} of {sent}");
            // each second until the first beacon, then once a period
            assert!(most <= 60 + PERIODS + 3);
        } else {
            assert!(gathered.intake().of_other_periods > 0, "what ended in several periods is on no side");
        }
    }
}
