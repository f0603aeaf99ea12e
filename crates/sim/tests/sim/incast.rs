//! Incast, and a policy that bounds the sum of a host's receive windows.

use crate::support::{run, run_with};
use results::RunResults;

/// The shipped scenario and policy, changed.
fn network(policy: bool, changes: &[(&str, &str)]) -> RunResults {
    let shipped = |path: &str| {
        let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).expect("it is shipped")
    };
    let scenario = shipped("scenarios/incast-policy.toml");
    let mut text = scenario.split("[sweep]").next().expect("it has a beginning").to_string();
    text = text.replace("\"../policies/incast.toml\"", if policy { "\"p.toml\"" } else { "\"none\"" });
    let mut rules = shipped("policies/incast.toml");
    for (from, to) in changes {
        assert!(text.contains(from) || rules.contains(from), "{from}");
        (text, rules) = (text.replace(from, to), rules.replace(from, to));
    }
    run_with(&text, &[("p.toml", &rules)])
}

/// What a run has shown.
#[derive(Debug)]
struct Shown {
    rounds: f64,
    p50_ms: f64,
    p99_ms: f64,
    dropped: u64,
    mice_p99_ms: f64,
}

fn shown(run: &RunResults) -> Shown {
    let extra = |name: &str| run.summary.extra.get(name).copied().unwrap_or(f64::NAN);
    let mut mice: Vec<u64> = run
        .flows
        .iter()
        .filter(|flow| &*flow.group == "background" && flow.bytes.is_some_and(|bytes| bytes < 100_000))
        .filter_map(|flow| Some(flow.end_ns? - flow.start_ns))
        .collect();
    mice.sort_unstable();
    let p99 = mice.get((mice.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0);
    Shown {
        rounds: extra("reads.rounds_completed"),
        p50_ms: extra("reads.round_ms_median"),
        p99_ms: extra("reads.round_ms_p99"),
        dropped: run.links.iter().map(|link| link.dropped).sum(),
        mice_p99_ms: p99 as f64 / 1e6,
    }
}

/// The next round begins while a message of the one before is on its way.
#[test]
fn a_message_that_takes_longer_than_the_interval_is_counted_once() {
    let run = run(r#"
duration = "3 s"
[network]
topology = { star = { hosts = 2 } }
rate = "10 Mbit/s"
delay = "1 ms"
[tcp]
[[traffic]]
incast = { senders = ["h1"], receiver = "h2", bytes = "20 kB", repeat = 40, interval = "10 ms", barrier = false }
[measure]
messages = true
"#);
    let rounds: Vec<u64> = run.messages.iter().map(|message| message.round).collect();
    assert_eq!(rounds, (0..40).collect::<Vec<u64>>());
    assert!(
        run.messages.iter().any(|message| message.end_ns - message.start_ns > 10_000_000),
        "none overlaps the next"
    );
}

#[test]
fn a_total_of_windows_prevents_incast() {
    const FAST: (&str, &str) = ("rto_min = \"200 ms\"", "rto_min = \"2 ms\"");
    const DCTCP: (&str, &str) = ("cc = \"cubic\"", "cc = \"dctcp\"");
    let see = |name: &str, policy: bool, changes: &[(&str, &str)]| {
        let shown = shown(&network(policy, changes));
        println!("{name:28} {shown:?}");
        shown
    };
    let slow = see("cubic, 200 ms", false, &[]);
    let fast = see("cubic, 2 ms", false, &[FAST]);
    let dctcp = see("dctcp, 200 ms", false, &[DCTCP]);
    let ours = see("cubic, 200 ms, policy", true, &[]);
    let both = see("dctcp, 200 ms, policy", true, &[DCTCP]);
    assert!(ours.rounds > 500.0 && ours.p50_ms > 3.3, "no more than the link carries");
    assert!(ours.p99_ms <= slow.p99_ms.min(fast.p99_ms) / 2.0, "half of the better");
    assert!(ours.p99_ms <= dctcp.p99_ms && both.p99_ms <= dctcp.p99_ms);
    assert_eq!((ours.dropped, both.dropped), (0, 0), "no packet is lost in the steady state");
    assert!(ours.mice_p99_ms <= slow.mice_p99_ms.min(fast.mice_p99_ms) * 1.05);
}

#[test]
fn any_number_of_servers_is_carried_without_a_loss() {
    // opened at once, 128 connections lose SYNs, for a second, and 256 for three; the steady state comes after
    for (senders, warmup, duration) in [
        ("8", "0.2 s", "1 s"),
        ("16", "0.2 s", "1 s"),
        ("32", "0.2 s", "1 s"),
        ("96", "0.2 s", "2 s"),
        ("128", "1.5 s", "3 s"),
        ("256", "3.5 s", "5 s"),
    ] {
        let with = |policy| {
            let changes = [
                ("senders = 64", format!("senders = {senders}")),
                ("\"5 s\"", format!("\"{duration}\"")),
                ("warmup = \"200 ms\"", format!("warmup = \"{warmup}\"")),
            ];
            shown(&network(policy, &changes.each_ref().map(|(from, to)| (*from, &**to))))
        };
        let (without, ours) = (with(false), with(true));
        println!("{senders:>4} servers: {without:?}\n     with policy: {ours:?}");
        assert_eq!(ours.dropped, 0, "{senders} servers");
        assert!(ours.rounds > 10.0 * without.rounds, "{senders} servers");
    }
}

#[test]
fn an_enforcer_in_front_of_the_port_prevents_it_for_hosts_that_do_not() {
    const SHORT: (&str, &str) = ("\"5 s\"", "\"1 s\"");
    let enforced = |total: &str| {
        let enforcer = format!("[enforcer]\nat = \"s1\"\n[[enforcer.rule]]\ncc = \"cubic\"\n{total}\n[measure]");
        shown(&network(false, &[SHORT, ("[measure]", &enforcer)]))
    };
    let (agents, without) = (shown(&network(true, &[SHORT])), enforced(""));
    let ours = enforced("window_total = \"130 kB\"");
    println!("agents: {agents:?}\nenforcer without a total: {without:?}\nwith: {ours:?}");
    assert!(without.dropped > 1000 && without.p99_ms > 100.0);
    assert_eq!(ours.dropped, 0);
    assert!(ours.p99_ms < agents.p99_ms && ours.rounds > agents.rounds, "it withdraws no window");
}

#[test]
fn a_policy_aims_at_the_hosts_that_many_send_to() {
    let shipped = |path: &str| {
        let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).expect("it is shipped")
    };
    let text = shipped("scenarios/incast-aimed.toml");
    let text = text.split("[sweep]").next().expect("it has a beginning");
    let with = |policy: &str| {
        let text = text.replace("../policies/incast-aimed.toml", policy);
        run_with(&text, &[("p.toml", &shipped("policies/incast-aimed.toml"))])
    };
    let (without, ours) = (with("none"), with("p.toml"));
    let p99 =
        |run: &RunResults| ["reads-1", "reads-2"].map(|entry| run.summary.extra[&format!("{entry}.round_ms_p99")]);
    let dropped = |run: &RunResults| {
        let ports = run.links.iter().filter(|link| ["h39", "h40"].contains(&&*link.to));
        ports.map(|link| link.dropped).sum::<u64>()
    };
    println!("without: {:?} {}, aimed: {:?} {}", p99(&without), dropped(&without), p99(&ours), dropped(&ours));
    assert!(p99(&without).iter().zip(p99(&ours)).all(|(before, now)| now < before / 10.0), "timeouts end");
    assert!(dropped(&without) > 1000);
    assert_eq!(dropped(&ours), 0, "no packet is lost in the steady state");
    // all others are as they were, to the nanosecond
    let others = |run: &RunResults| {
        let flows = run.flows.iter().filter(|flow| &*flow.group == "web");
        flows.map(|flow| (flow.start_ns, flow.end_ns)).collect::<Vec<_>>()
    };
    assert!(others(&ours).len() > 100);
    assert_eq!(others(&without), others(&ours));
}

#[test]
fn short_flows_do_not_suffer_where_there_is_no_incast() {
    const ONCE: (&str, &str) = ("repeat = 100000", "repeat = 1");
    let (without, ours) = (shown(&network(false, &[ONCE])), shown(&network(true, &[ONCE])));
    println!("web search alone: {without:?}\n     with policy: {ours:?}");
    assert!(ours.mice_p99_ms <= 1.05 * without.mice_p99_ms);
}

#[test]
fn a_receiver_that_follows_ictcp_loses_less_than_one_that_does_not() {
    let ictcp = ("rto_min = \"200 ms\"", "rto_min = \"200 ms\"\nictcp = true");
    for senders in ["8", "32"] {
        let senders = format!("senders = {senders}");
        let with = |changes: &[(&str, &str)]| shown(&network(false, changes));
        let (without, ictcp) = (with(&[("senders = 64", &senders)]), with(&[("senders = 64", &senders), ictcp]));
        println!("{senders}: {without:?}\n  ICTCP: {ictcp:?}");
        assert!(ictcp.rounds > without.rounds && ictcp.dropped < without.dropped, "{senders}");
    }
}
