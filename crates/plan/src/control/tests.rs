//! The Oracle and its agents on a network of paper: when CUEs are sent and taken, when they end, and what the hosts are reported.

use super::*;
use net::NodeId;

/// Two hosts at one switch, whose counters the test sets.
#[derive(Default)]
struct Paper {
    /// Bytes that every link has sent so far.
    sent_bytes: u64,
    /// By host: what it has sent so far.
    segments: [Segments; 2],
    flows: Vec<FlowState>,
    /// When which host was reported to follow how many rules.
    retuned: Vec<(Time, u32, usize)>,
    assigned: Vec<(u32, Arm)>,
    now: Time,
}

impl Managed for Paper {
    fn link(&self, _link: LinkId) -> (LinkCounters, QueueLength) {
        let counters = LinkCounters { accepted_bytes: self.sent_bytes, ..LinkCounters::default() };
        (counters, QueueLength { packets: 0, bytes: 0 })
    }

    fn flows(&mut self, take: &mut dyn FnMut(FlowState)) {
        self.flows.iter().copied().for_each(take);
    }

    fn segments(&mut self, hosts: &mut [Segments]) {
        hosts.copy_from_slice(&self.segments);
    }

    fn completed(&mut self, _take: &mut dyn FnMut(Completed)) {}

    fn retune(&mut self, host: u32, rules: &[AgentRule]) {
        self.retuned.push((self.now, host, rules.len()));
    }

    fn assign(&mut self, host: u32, arm: Arm) {
        self.assigned.push((host, arm));
    }
}

fn control(policy: &str) -> (Control, Topology) {
    let text = "duration = \"60 s\"\n[network]\ntopology = { star = { hosts = 2 } }\nrate = \"8 Mbit/s\"\n[policy]\nfile = \"p.toml\"\n\
                [[traffic]]\nbulk = { from = \"h1\", to = \"h2\" }\n";
    let scenario = testkit::scenario_with(text, &[("p.toml", policy)]);
    let topology = crate::topology(&scenario).expect("a checked scenario has a network");
    (Control::of(&scenario, &topology).expect("it has a policy"), topology)
}

const CALM: &str = "mode = \"enforce\"\nperiod = \"10 s\"\n[[rule]]\nname = \"calm\"\nwhen = \"network.max_link_utilization < 0.5\"\n\
                    match = { hosts = \"all\" }\nset = { initial_cwnd = 20 }\n";

/// Lets it act until `end` whenever it wants to; `world` sets the counters before.
fn run(control: &mut Control, paper: &mut Paper, end: Time, world: impl Fn(Time, &mut Paper)) {
    while control.next() <= end {
        paper.now = control.next();
        world(paper.now, paper);
        control.on_time(paper.now, paper);
    }
}

/// When this happened at a host, or at the Oracle if it is about all of them, in milliseconds.
fn times(control: &Control, event: CueEvent) -> Vec<u64> {
    control.rows.iter().filter(|row| row.event == event).map(|row| row.time_ns / 1_000_000).collect()
}

#[test]
fn a_rule_is_sent_while_it_holds_and_ends_half_a_period_after_it_was_to_be_renewed() {
    let (mut control, topology) = control(CALM);
    let mut paper = Paper::default();
    assert_eq!(control.next(), Time::ZERO, "it decides at once");
    // a byte a microsecond fills the links: nothing is sent until 25 s, then as much as they take
    let world = |now: Time, paper: &mut Paper| paper.sent_bytes = now.saturating_sub(Time::from_secs(25)).as_us();
    run(&mut control, &mut paper, Time::from_secs(45), world);
    // at first nothing is known; at 30 s half of the period was busy
    assert_eq!(times(&control, CueEvent::Sent), [10_000, 20_000]);
    assert_eq!(times(&control, CueEvent::Withheld), [0, 30_000, 40_000]);
    assert_eq!(times(&control, CueEvent::Taken), [10_000; 2], "a renewal is nothing new");
    // the CUE of 20 s lives for one and a half periods
    assert_eq!(times(&control, CueEvent::Expired), [35_000; 2]);
    let reported = |seconds, rules| [0, 1].map(|host| (Time::from_secs(seconds), host, rules));
    assert_eq!(
        paper.retuned,
        [reported(10, 1), reported(20, 1), reported(35, 0)].concat(),
        "a renewal moves the deadline"
    );
    let hosts: Vec<&str> =
        control.rows.iter().filter(|row| row.event == CueEvent::Expired).map(|row| &*row.host).collect();
    assert_eq!(hosts, [0, 1].map(|host| topology.node(NodeId(host)).name.as_str()));
    let sent = control.rows.iter().find(|row| row.event == CueEvent::Sent).expect("it was sent");
    assert_eq!((sent.hosts, &*sent.rule, &*sent.host), (2, "calm", ""));
    assert!(sent.set.contains("initial_cwnd"), "{}", sent.set);
}

#[test]
fn decisions_are_counted_by_their_outcome() {
    let (mut control, _) = control(CALM);
    let world = |now: Time, paper: &mut Paper| paper.sent_bytes = now.saturating_sub(Time::from_secs(25)).as_us();
    run(&mut control, &mut Paper::default(), Time::from_secs(45), world);
    let [row] = control.rules() else { panic!("there is one rule") };
    assert_eq!((row.decisions, row.unknown, row.on, row.off), (5, 1, 2, 2), "{row:?}");
    assert_eq!((row.no_host, row.left_out, row.withheld), (0, 0, 0));
    let (name, range) = &row.seen[0];
    // idle, and at the last decision fully used
    assert_eq!((name.as_str(), *range), ("network.max_link_utilization", Some((0.0, 1.0))));
}

#[test]
fn a_guard_reverts_at_its_host_alone_and_lets_go_after_its_hold() {
    let guarded = CALM.replace("set =", "guard = { revert_if = \"host.drop_rate > 0.01\", hold = \"3 s\" }\nset =");
    let (mut control, _) = control(&guarded);
    let mut paper = Paper::default();
    // Both hosts send 10,000 segments a second. From 12 s to 13 s one of them loses a tenth: of the window of a second that ends at
    // 12.1 s that is 100 of 10,000, which is not more than 1 %; of the one that ends at 12.2 s it is 2 %.
    let world = |now: Time, paper: &mut Paper| {
        let sent = now.as_us() / 100;
        let lossy = now.saturating_sub(Time::from_secs(12)).min(Time::from_secs(1));
        paper.segments = [Segments { sent, retransmitted: lossy.as_us() / 1000 }, Segments { sent, retransmitted: 0 }];
    };
    run(&mut control, &mut paper, Time::from_secs(19), world);
    assert_eq!(times(&control, CueEvent::Taken), [10_000; 2]);
    assert_eq!(times(&control, CueEvent::Reverted), [12_200]);
    assert_eq!(times(&control, CueEvent::Recovered), [15_200]);
    assert!(times(&control, CueEvent::Expired).is_empty(), "{:?}", control.rows);
    let second: Vec<usize> = paper.retuned.iter().filter(|(_, host, _)| *host == 1).map(|(.., rules)| *rules).collect();
    assert_eq!(second, [1], "the other host keeps it");
    let first: Vec<usize> = paper.retuned.iter().filter(|(_, host, _)| *host == 0).map(|(.., rules)| *rules).collect();
    assert_eq!(first, [1, 0, 1]);
}

#[test]
fn guards_are_looked_at_ten_times_a_second_while_there_are_any() {
    let (mut calm, _) = control(CALM);
    let mut paper = Paper::default();
    run(&mut calm, &mut paper, Time::from_secs(10), |_, _| {});
    assert_eq!(calm.next(), Time::from_secs(20), "without a guard there is nothing to look at");
    let guarded = CALM.replace("set =", "guard = { revert_if = \"host.drop_rate > 0.01\", hold = \"3 s\" }\nset =");
    let (mut guarded, _) = control(&guarded);
    run(&mut guarded, &mut paper, Time::from_secs(10), |_, _| {});
    assert_eq!(guarded.next(), Time::from_ms(10_100));
}

#[test]
fn hosts_hear_on_which_side_of_the_experiment_they_are() {
    let (mut all, _) = control(CALM);
    let mut paper = Paper::default();
    run(&mut all, &mut paper, Time::from_secs(10), |_, _| {});
    assert_eq!(paper.assigned, [(0, Arm::Treated), (1, Arm::Treated)], "once, not at each decision");
    let half = CALM.replace("match = { hosts = \"all\" }\n", "") + "[rollout]\nfraction = 0.5\n";
    let (mut half, _) = control(&half);
    let mut paper = Paper::default();
    run(&mut half, &mut paper, Time::from_secs(10), |_, _| {});
    let treated: Vec<u32> = paper.assigned.iter().map(|(host, _)| *host).collect();
    let reported: Vec<u32> = paper.retuned.iter().map(|(_, host, _)| *host).collect();
    assert_eq!((treated.len(), &treated), (1, &reported), "the one that is treated, and no other, follows the rule");
}
