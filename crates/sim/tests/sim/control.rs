//! A policy in the simulated network.

use crate::support::run_with;
use results::{Arm, CueEvent, RunResults};

/// Six hosts at one switch.
fn network(policy: &str, tcp: &str, traffic: &str) -> RunResults {
    let text = format!(
        "duration = \"60 s\"\n[network]\ntopology = {{ star = {{ hosts = 6 }} }}\nrate = \"100 Mbit/s\"\ndelay = \"20 us\"\n\
         queue = {{ drop_tail = {{ packets = 50 }} }}\n[tcp]\nsend_buffer = \"64 kB\"\n{tcp}\n[policy]\nfile = \"p.toml\"\n{traffic}"
    );
    run_with(&text, &[("p.toml", policy), ("small.csv", "bytes,cdf\n1000,0\n20000,0.9\n60000,1\n")])
}

/// Two answers every 10 ms, and 20 s in which eight flows fill the same port.
const EPOCH: &str = "[[traffic]]\nname = \"answers\"\nincast = { senders = 2, receiver = \"h6\", bytes = \"20 kB\", repeat = 6000, \
                     interval = \"10 ms\" }\n[[traffic]]\nstart = \"20 s\"\nstop = \"40 s\"\nbulk = { from = \"h3\", to = \"h6\", \
                     count = 4 }\n[[traffic]]\nstart = \"20 s\"\nstop = \"40 s\"\nbulk = { from = \"h4\", to = \"h6\", count = 4 }\n";

const CALM: &str = "mode = \"enforce\"\nperiod = \"5 s\"\n[[rule]]\nname = \"calm\"\nwhen = \
                    \"network.max_link_utilization < 0.9\"\nhold = \"5 s\"\nset = { initial_cwnd = 20, rto_min = \"60 ms\" }\n";

fn events(run: &RunResults, event: CueEvent) -> Vec<u64> {
    run.cues.iter().filter(|row| row.event == event).map(|row| row.time_ns / 1_000_000).collect()
}

#[test]
fn a_rule_follows_the_network_and_its_cues_end() {
    let run = network(CALM, "cc = \"cubic\"", EPOCH);
    // the last ten seconds make up for what the congestion episode delayed
    let withheld: Vec<u64> = events(&run, CueEvent::Withheld).into_iter().filter(|at| *at < 50_000).collect();
    assert_eq!(withheld, [0, 25_000, 30_000, 35_000, 40_000], "at first nothing is known, then it is busy");
    // by all six hosts, and for 7.5 s from the last CUE
    assert_eq!(events(&run, CueEvent::Taken), [[5000; 6], [45_000; 6]].concat());
    assert_eq!(events(&run, CueEvent::Expired), [27_500; 6]);
    assert!(run.flows.iter().all(|flow| flow.arm.is_some()));
}

#[test]
fn the_same_seed_gives_the_same_run_and_without_a_policy_there_is_none() {
    let half = format!("{CALM}[rollout]\nfraction = 0.5\n");
    let one = network(&half, "cc = \"cubic\"", EPOCH);
    assert_eq!(one, network(&half, "cc = \"cubic\"", EPOCH));
    let treated: std::collections::BTreeSet<_> =
        one.flows.iter().filter(|flow| flow.arm == Some(Arm::Treated)).map(|flow| flow.src.clone()).collect();
    assert!((1..=3).contains(&treated.len()), "{treated:?} of six hosts");
}

#[test]
fn a_connection_is_of_the_arm_of_the_host_on_which_what_is_set_acts() {
    let traffic =
        "[[traffic]]\nstart = \"11 s\"\nstop = \"30 s\"\npoisson = { flows_per_second = 150, sizes = \"small.csv\" }\n";
    for (set, received) in [("rto_min = \"60 ms\"", false), ("window_clamp = \"64 kB\"", true)] {
        let policy = CALM.replace("initial_cwnd = 20, rto_min = \"60 ms\"", set);
        let run = network(&format!("{policy}[rollout]\nfraction = 0.5\n"), "cc = \"cubic\"", traffic);
        let taken = |host: &str| run.cues.iter().any(|row| row.event == CueEvent::Taken && &*row.host == host);
        for flow in &run.flows {
            let host = if received { &flow.dst } else { &flow.src };
            assert_eq!(flow.arm == Some(Arm::Treated), taken(host), "{set}: {flow:?}");
        }
        assert!(run.flows.iter().any(|flow| taken(&flow.src) != taken(&flow.dst)), "{set}");
        // receivers count no retransmissions
        assert_eq!(!run.summary.extra.contains_key("policy.drops.change"), received, "{set}: {:?}", run.summary.extra);
    }
}

#[test]
fn a_policy_that_only_observes_changes_nothing() {
    let observe = CALM.replace("enforce", "observe");
    let (watched, set) = (network(&observe, "cc = \"cubic\"", EPOCH), network(CALM, "cc = \"cubic\"", EPOCH));
    assert!(events(&watched, CueEvent::Sent).is_empty() && events(&watched, CueEvent::Taken).is_empty());
    assert_ne!(watched.summary.rtos, set.summary.rtos, "a minimum RTO of 60 ms is not one of 200 ms");
}

#[test]
fn a_guard_reverts_within_its_second_and_comes_back_after_its_hold() {
    let guarded = CALM.replace("hold = \"5 s\"", "guard = { revert_if = \"host.drop_rate > 0.001\", hold = \"3 s\" }");
    let guarded = guarded.replace("< 0.9", "<= 1.0");
    let run = network(&guarded, "cc = \"cubic\"", EPOCH);
    let (reverted, recovered) = (events(&run, CueEvent::Reverted), events(&run, CueEvent::Recovered));
    let first = *reverted.first().expect("twelve flows on one port lose packets");
    assert!((20_000..21_200).contains(&first), "the epoch begins at 20 s, reverted at {first} ms");
    assert!(recovered.contains(&(first + 3000)), "{recovered:?}");
}

#[test]
fn open_connections_change_their_algorithm_and_lose_nothing() {
    let policy = "mode = \"enforce\"\nperiod = \"10 s\"\nallow_mixed_measures = true\n[[rule]]\nname = \"late\"\nwhen = \
                  \"network.live_flows > 3\"\nset = { cc = \"vegas\", cwnd_clamp = 40 }\n";
    let traffic = "[[traffic]]\nbulk = { from = \"h1\", to = \"h2\", count = 2, bytes = \"60 MB\" }\n[[traffic]]\nstart = \"1 \
                   s\"\nbulk = { from = \"h3\", to = \"h2\", count = 2, bytes = \"60 MB\" }\n";
    let run = network(policy, "cc = \"newreno\"", traffic);
    let [taken, ..] = events(&run, CueEvent::Taken)[..] else { panic!("nobody took it: {:?}", run.cues) };
    assert_eq!(taken, 10_000);
    for flow in &run.flows {
        assert_eq!(flow.delivered_bytes, 60_000_000);
        assert!(flow.end_ns.is_some());
    }
    // those that ended while it was in force
    assert!(run.flows.iter().any(|flow| &*flow.algorithm == "vegas"), "{:?}", run.flows);
}

#[test]
fn ecn_is_not_assumed() {
    let policy = "mode = \"enforce\"\nperiod = \"10 s\"\nallow_mixed_measures = true\n[[rule]]\nname = \"all\"\nwhen = \
                  \"network.live_flows > 0\"\nset = { cc = \"dctcp\", ecn = true }\n";
    let marking = "queue = { threshold_ecn = { mark_packets = 20, packets = 50 } }";
    let text = |queue: &str| {
        format!(
            "duration = \"40 s\"\n[network]\ntopology = {{ star = {{ hosts = 4 }} }}\nrate = \"100 Mbit/s\"\n{queue}\n[tcp]\nsend_buffer = \"64 kB\"\ncc = \
             \"newreno\"\n[policy]\nfile = \"p.toml\"\n[[traffic]]\nbulk = {{ from = \"h1\", to = \"h2\" }}\n[[traffic]]\nstart = \"20 \
             s\"\nbulk = {{ from = \"h3\", to = \"h4\" }}\n"
        )
    };
    let algorithms = |run: &RunResults| run.flows.iter().map(|flow| flow.algorithm.to_string()).collect::<Vec<_>>();
    let run = run_with(&text(marking), &[("p.toml", policy)]);
    assert_eq!(algorithms(&run), ["newreno", "dctcp"], "the first had not negotiated ECN");
    let run = run_with(&text("queue = { drop_tail = { packets = 50 } }"), &[("p.toml", policy)]);
    assert_eq!(algorithms(&run), ["newreno", "newreno"], "no port marks");
}

#[test]
fn a_policy_that_hurts_is_rolled_back() {
    // 20 kB take 32 ms at this rate, and less than 2 ms without it
    let policy = "mode = \"enforce\"\nperiod = \"2 s\"\n[objective]\nminimize = \"network.fct_p99\"\nworse_at_most = \"10 %\"\n\
                  [[rule]]\nname = \"harm\"\nwhen = \"network.max_link_utilization < 0.9\"\nset = { max_pacing_rate = \"5 Mbit/s\" }\n[rollout]\n\
                  fraction = 0.5\n";
    let traffic = "[[traffic]]\nstart = \"1 ms\"\npoisson = { flows_per_second = 400, sizes = \"small.csv\" }\n";
    let run = network(policy, "cc = \"cubic\"", traffic);
    assert_eq!(run.summary.extra.get("policy.rolled_back"), Some(&1.0), "{:?}", run.summary.extra);
    let over = |row: &&results::CueRow| row.reason.starts_with("rolled back: more than 10 % worse; p99 FCT +");
    let first = run.cues.iter().find(over).expect("the reason is reported").time_ns;
    let last_sent = run.cues.iter().filter(|row| row.event == CueEvent::Sent).map(|row| row.time_ns).max().unwrap();
    assert_eq!(first - last_sent, 2_000_000_000, "the next decision sends nothing");
    assert!(run.cues.iter().filter(|row| row.host.is_empty() && row.time_ns >= first).all(|row| over(&row)));
    // a verdict needs at least five pairs, and must not take much longer
    assert!(first <= 30_000_000_000, "{first}");
}

/// The shipped policy of that name.
fn shipped(name: &str) -> String {
    let path = format!("{}/../../policies/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("it is shipped")
}

/// When a rule was sent for the first time, or no longer, in seconds; in between nothing changes.
fn changes(run: &RunResults, rule: &str) -> Vec<(u64, bool)> {
    let rows = run.cues.iter().filter(|row| row.host.is_empty() && &*row.rule == rule);
    let mut changes: Vec<(u64, bool)> = Vec::new();
    for row in rows {
        let sent = row.event == CueEvent::Sent;
        if changes.last().map_or(sent, |(_, last)| *last != sent) {
            changes.push((row.time_ns / 1_000_000_000, sent));
        }
    }
    changes
}

#[test]
fn pacing_goes_with_few_connections() {
    // on below 5 open connections, off above 10; the policy's 30 s are 3, so its hold time is 12 s, and all of the run
    // lies in the switchback's first treated part
    let policy =
        shipped("paced").replace("< 2000", "< 5").replace("> 2500", "> 10").replace("periods = 10", "periods = 40");
    let text = "duration = \"110 s\"\n[network]\ntopology = { star = { hosts = 4 } }\nrate = \"100 Mbit/s\"\n[tcp]\nsend_buffer = \"32 \
                kB\"\n[policy]\nfile = \"p.toml\"\nperiod = \"3 s\"\n[[traffic]]\nstart = \"40 s\"\nbulk = { from = \
                \"h1\", to = \"h2\", count = 12, bytes = \"30 MB\" }\n[[traffic]]\nbulk = { from = \"h3\", to = \"h4\", count = 2 }\n";
    let run = run_with(text, &[("p.toml", &policy)]);
    let seen = changes(&run, "pace while few flows are open");
    let [(on, true), (off, false), (again, true)] = seen[..] else { panic!("{seen:?}") };
    // once something is known; when the average over 6 s has passed 10 of 14; and back below 5 of 2
    assert!((3..=6).contains(&on) && (42..=54).contains(&off) && (72..=90).contains(&again), "{seen:?}");
}

#[test]
fn windows_follow_the_hours_of_the_day() {
    // the policy's 5 min are 1 s, so its day is 288 s
    let text = "duration = \"300 s\"\n[network]\ntopology = { star = { hosts = 6 } }\nrate = \"100 Mbit/s\"\n[policy]\nfile = \
                \"p.toml\"\nperiod = \"1 s\"\n[[traffic]]\nincast = { senders = 3, receiver = \"h6\", bytes = \"20 kB\", repeat = \
                6000, interval = \"50 ms\" }\n";
    let run = run_with(text, &[("p.toml", &shipped("diurnal"))]);
    let night = changes(&run, "night");
    // six hours are 72 periods, 22 h are 264
    assert_eq!(night.iter().map(|(_, on)| *on).collect::<Vec<_>>(), [true, false, true], "{night:?}");
    assert!(
        (1..=12).contains(&night[0].0) && (72..=75).contains(&night[1].0) && (264..=267).contains(&night[2].0),
        "{night:?}"
    );
    assert!(changes(&run, "calm hours of the day").first().is_some_and(|(_, on)| *on));
}

#[test]
fn dctcp_is_given_where_every_hop_marks_and_cubic_elsewhere() {
    let of = |queue: &str| {
        let text = format!(
            "duration = \"20 s\"\n[network]\ntopology = {{ star = {{ hosts = 4 }} }}\nrate = \"100 Mbit/s\"\nqueue = {{ {queue} \
             }}\n[tcp]\nsend_buffer = \"64 kB\"\ncc = \"newreno\"\n[policy]\nfile = \"p.toml\"\nperiod = \"4 s\"\n[[traffic]]\nbulk = {{ \
             from = \"h1\", to = \"h2\", count = 2 }}\n[[traffic]]\nstart = \"10 s\"\nbulk = {{ from = \"h3\", to = \"h4\" }}\n"
        );
        let run = run_with(&text, &[("p.toml", &shipped("dctcp-when-ecn"))]);
        run.flows.last().map(|flow| flow.algorithm.to_string()).expect("the late flow")
    };
    assert_eq!(of("threshold_ecn = { mark_packets = 20, packets = 100 }"), "dctcp");
    assert_eq!(of("drop_tail = { packets = 100 }"), "cubic");
}

#[test]
fn dctcp_goes_when_marking_fails_and_comes_back_with_it() {
    // leaves mark and the spine does not: while the first leaf is cut off from it, every hop of its two hosts marks
    let text = "duration = \"100 s\"\n[network]\ntopology = { leaf_spine = { leaves = 2, spines = 1, hosts_per_leaf = 2 } }\nrate = \
                \"100 Mbit/s\"\nqueue = { threshold_ecn = { mark_packets = 20, packets = 100 } }\n[network.tier.spine]\nqueue = { \
                drop_tail = { packets = 100 } }\n[[network.failure]]\nlink = \"l1-s1\"\nat = \"30 s\"\nuntil = \"60 \
                s\"\n[tcp]\nsend_buffer = \"64 kB\"\ncc = \"newreno\"\n[policy]\nfile = \"p.toml\"\nperiod = \"2 s\"\n[[traffic]]\nall_to_all = { hosts = [\"h1\", \"h2\"], bytes = \"100 kB\", rounds = 1000, connections = \"new\", think = { exponential = \"500 ms\" } }\n[[traffic]]\nall_to_all = { hosts = [\"h3\", \"h4\"], bytes = \"100 kB\", rounds = 1000, connections = \"new\", think = { exponential = \"500 ms\" } }\n";
    let run = run_with(text, &[("p.toml", &shipped("dctcp-when-ecn"))]);
    // by sender: what new connections have, and since when, in seconds
    let timeline = |host: &str| {
        let mut seen: Vec<(String, u64)> = Vec::new();
        for flow in run.flows.iter().filter(|flow| &*flow.src == host) {
            if seen.last().is_none_or(|(last, _)| *last != *flow.algorithm) {
                seen.push((flow.algorithm.to_string(), flow.start_ns / 1_000_000_000));
            }
        }
        seen
    };
    let cut_off = timeline("h1");
    let names: Vec<&str> = cut_off.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["cubic", "dctcp", "cubic"], "{cut_off:?}");
    // at the next decision
    assert!((30..=34).contains(&cut_off[1].1) && (60..=64).contains(&cut_off[2].1), "{cut_off:?}");
    let others: Vec<String> = timeline("h3").into_iter().map(|(name, _)| name).collect();
    assert_eq!(others, ["cubic"], "the other leaf stays with the spine");
}

#[test]
fn rules_choose_hosts_by_their_labels() {
    let policy = "mode = \"enforce\"\nperiod = \"2 s\"\n[[rule]]\nname = \"storage\"\nwhen = \"true\"\nmatch = { labels = { role = \
                  \"storage\" } }\nset = { cwnd_clamp = 9 }\n";
    let labels = "[[policy.label]]\nhosts = [\"h*\"]\nset = { role = \"compute\" }\n[[policy.label]]\nhosts = [\"h2\", \"h5\"]\nset = { role = \
                  \"storage\" }\n";
    let run =
        network(policy, "cc = \"cubic\"", &format!("{labels}[[traffic]]\nbulk = {{ from = \"h1\", to = \"h3\" }}\n"));
    let took = |row: &&results::CueRow| row.event == CueEvent::Taken;
    let hosts: Vec<&str> = run.cues.iter().filter(took).map(|row| &*row.host).collect();
    assert_eq!(hosts, ["h2", "h5"]);
}

#[test]
fn a_rule_at_its_threshold_changes_once_a_hold_time() {
    // the load crosses the threshold about every other period
    let policy = "mode = \"enforce\"\nperiod = \"2 s\"\n[[rule]]\nname = \"edge\"\nwhen = \"network.max_link_utilization < \
                  0.5\"\nhold = \"20 s\"\nset = { cwnd_clamp = 400 }\n";
    let text = "duration = \"240 s\"\n[network]\ntopology = { star = { hosts = 6 } }\nrate = \"100 Mbit/s\"\n[tcp]\nsend_buffer = \
                \"64 kB\"\n[policy]\nfile = \"p.toml\"\n[[traffic]]\nrandom_pairs = { flows = 1, on_off = { rate = \"90 Mbit/s\", on = \
                \"2 s\", off = \"2 s\" } }\n";
    let changes_with = |policy: &str| changes(&run_with(text, &[("p.toml", policy)]), "edge").len();
    let free = changes_with(&policy.replace("20 s", "2 s"));
    let held = changes_with(policy);
    assert!(free > 20, "with a hold of one period it changes {free} times");
    assert!((3..=13).contains(&held), "in 240 s of 20 s it changes {held} times");
}
