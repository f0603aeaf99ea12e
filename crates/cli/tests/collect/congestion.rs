//! From the switch's counters to the Oracle's decision.

use crate::world::World;
use serde_json::Value;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use testkit::{command, eventually};

const POLICY: &str = r#"
mode = "enforce"
period = "2 s"
[[constraint]]
name = "calm"
holds = "network.max_link_utilization < 0.5"
[[constraint]]
name = "measured"
holds = 'links.exists(l, l.age <= duration("4 s"))'
[[rule]]
name = "faster"
when = "network.max_link_utilization >= 0"
set = { initial_cwnd = 20 }
"#;
const COLLECT: &str = r#"
name = "c1"
interval = "1 s"
[[switch]]
name = "sw"
protocol = "openflow"
address = "127.0.0.1:6653"
[switch.ports]
p1 = { end = "h1", rate = "100 Mbit/s" }
p2 = { end = "h2", rate = "100 Mbit/s" }
sw = { rate = "10 Gbit/s" }
"#;
/// 80 Mbit/s for ten seconds.
const LOAD: (u64, (usize, Duration)) = (100_000_000, (100_000, Duration::from_millis(10)));

/// The last decision: whether each constraint holds, and the number of CUEs.
fn last(decisions: &[Value]) -> Option<(Option<bool>, Option<bool>, usize)> {
    let last = decisions.last()?;
    let holds = |i: usize| last["constraints"][i]["holds"].as_bool();
    Some((holds(0), holds(1), last["cues"].as_array()?.len()))
}

#[test]
fn congestion_at_a_switch_withholds_cues_and_without_a_collector_it_is_unknown() {
    let Some(world) = World::new(&[]) else { return };
    world.set("set-controller sw ptcp:6653:127.0.0.1");
    fs::write(world.path("policy.toml"), POLICY).unwrap();
    fs::write(world.path("collect.toml"), COLLECT).unwrap();
    let hosts = r#"{"hosts": [{"name": "h1"}, {"name": "h2"}]}"#;
    fs::write(world.path("view.json"), hosts).unwrap();
    command(env!("CARGO_BIN_EXE_opentcp"), &format!("keygen --out {}", world.path("oracle.key").display()));
    let arguments = ["oracle", "policy.toml", "--key", "oracle.key", "--socket", "oracle.sock", "--state", "oracle"];
    let oracle = world.opentcp(1, "oracle", &[&arguments[..], &["--view", "view.json"]].concat());
    assert!(eventually(|| world.path("oracle.sock").exists()), "{}", oracle.said());
    let collector = world.opentcp(1, "collect", &["collect", "collect.toml", "--socket", "oracle.sock"]);
    let decisions = || last(&world.lines("oracle"));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // hosts without agents, whose file is written each second as a collector would
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::write(world.path("view.tmp"), hosts).unwrap();
                fs::rename(world.path("view.tmp"), world.path("view.json")).unwrap();
                thread::sleep(Duration::from_secs(1));
            }
        });
        let is_calm = eventually(|| decisions() == Some((Some(true), Some(true), 1)));
        let load = scope.spawn(|| world.carry(LOAD.0, LOAD.1));
        let is_withheld = eventually(|| decisions() == Some((Some(false), Some(true), 0)));
        let busy = world.lines("oracle").pop();
        load.join().unwrap();
        let is_calm_once_more = eventually(|| decisions() == Some((Some(true), Some(true), 1)));
        let heard = format!("{}{}{:?}", oracle.said(), collector.said(), world.lines("oracle").last());
        collector.interrupt();
        let is_unknown = eventually(|| decisions() == Some((None, Some(false), 0)));
        done.store(true, Ordering::Relaxed);
        assert!(is_calm, "CUEs while the network is calm: {heard}");
        assert!(is_withheld, "none under load: {heard}");
        println!("under load: {}", busy.unwrap()["constraints"][0]);
        assert!(is_calm_once_more, "and CUEs after it: {heard}");
        assert!(is_unknown, "what nobody measures is unknown: {}", oracle.said());
    });
    println!("{}", oracle.said());
    oracle.interrupt();
}
