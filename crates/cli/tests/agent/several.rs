//! Several Oracles on one lease, and agents that come within a period.

use crate::world::{Start, THERE, World};
use policy::Epoch;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use testkit::{Running, eventually, policy_for_all};

fn prepare(world: &World, period: &str) {
    // values that are no default
    let policy = policy_for_all(period, r#"cc = "newreno", initial_cwnd = 20"#);
    fs::write(world.path("policy.toml"), policy).unwrap();
    let (code, _, error) = world.opentcp(&["keygen", "--out", "oracle.key"]);
    assert_eq!(code, Some(0), "{error}");
}

fn agent(world: &World, host: usize, places: &[String]) -> Running {
    let name = format!("h{host}");
    let mut arguments = vec!["agent", "--host", &name, "--key", "oracle.key.pub", "--socket", "oracle.sock"];
    arguments.extend(places.iter().map(String::as_str));
    world.start_as(Start { host, ..Start::default() }, &arguments)
}

/// An Oracle whose output and messages are in files of its own.
struct Oracle {
    process: Running,
    out: PathBuf,
    log: PathBuf,
}

impl Oracle {
    /// The `run`th of this number.
    fn start(world: &World, number: &str, run: u32, more: &[&str]) -> Oracle {
        let (out, log) = (format!("out-{number}-{run}"), format!("log-{number}-{run}"));
        let script = format!("exec \"$0\" \"$@\" >{out} 2>{log}");
        let state = format!("oracle-{number}");
        let arguments = ["oracle", "policy.toml", "--key", "oracle.key", "--socket", "oracle.sock", "--number", number];
        let arguments = [&arguments[..], &["--state", &state], more].concat();
        let process = world.start_as(Start { under: &["sh", "-c", &script], ..Start::default() }, &arguments);
        Oracle { process, out: world.path(&out), log: world.path(&log) }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn decisions(&self) -> Vec<Value> {
        let out = fs::read_to_string(&self.out).unwrap_or_default();
        out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

#[test]
fn an_agent_that_comes_within_a_period_need_not_wait_for_the_next() {
    let Some(world) = World::new() else { return };
    prepare(&world, "10 s");
    let first = agent(&world, 1, &world.places_of(1));
    let oracle = Oracle::start(&world, "0", 1, &[]);
    let open = world.connection(THERE);
    // a new one within the second after a decision that has sent something, so that the next one is far
    let decided = || oracle.decisions().len();
    assert!(
        eventually(|| oracle.decisions().last().is_some_and(|last| last["cues"][0]["rule"] == "always")),
        "{}",
        oracle.said()
    );
    let late = agent(&world, 0, &world.places_of(0));
    assert!(eventually(|| late.said().contains("connected to the Oracle")), "{}", late.said());
    // by now, since a busy machine may take a period to start it
    let (before, connected) = (decided(), Instant::now());
    let status = || world.opentcp(&["agent", "status", "--state", "state-a", "--json"]).1;
    let in_force = || {
        let status: Value = serde_json::from_str(&status()).unwrap_or_default();
        status["report"]["in_force"][0]["rule"] == "always"
    };
    assert!(eventually(in_force), "{}{}{}", late.said(), oracle.said(), status());
    let took = connected.elapsed();
    println!("in force {:.2} s after the agent had connected, in a period of 10 s", took.as_secs_f64());
    assert_eq!(decided(), before, "no period has ended since it connected: {}", late.said());
    assert!(took < Duration::from_secs(5), "the status file is up to a second old");
    drop(open);
    oracle.process.interrupt();
    [first, late].into_iter().for_each(Running::stop);
    world.assert_as_before();
}

#[test]
fn when_the_oracle_that_decides_is_killed_or_stopped_another_takes_its_place() {
    let Some(world) = World::new() else { return };
    prepare(&world, "2 s");
    let start = |number, run| Oracle::start(&world, number, run, &["--lease", "lease"]);
    let agent = agent(&world, 0, &world.places());
    let open = world.connection(THERE);
    let epoch = || Epoch::of(world.status()["report"]["epoch"].as_u64().unwrap_or(0));
    let mut last = Epoch::default();
    let mut follows = |term: u32, member: u8, oracles: &[&Oracle]| {
        let said = || oracles.iter().map(|oracle| oracle.said()).collect::<Vec<_>>().join("\n");
        let follows = eventually(|| {
            let now = epoch();
            assert!(now >= last, "{now} after {last}: {}", said());
            last = now;
            now.term == term && now.member == member && world.uses(&open.0, "reno")
        });
        assert!(follows, "{last}, not term {term} of Oracle {member}: {}\n{}", said(), agent.said());
    };
    let one = start("1", 1);
    follows(1, 1, &[&one]);
    let two = start("2", 1);
    assert!(eventually(|| two.said().contains("agents at")), "{}", two.said());
    one.process.kill();
    let killed = Instant::now();
    assert!(eventually(|| two.said().contains("Oracle 2 decides, in term 2")), "{}", two.said());
    println!("Oracle 1 killed -9: Oracle 2 decides after {:.2} s, T is 2 s", killed.elapsed().as_secs_f64());
    follows(2, 2, &[&two]);
    let one = start("1", 2);
    assert!(eventually(|| one.said().contains("agents at")), "{}", one.said());
    two.process.pause(true);
    let stopped = Instant::now();
    assert!(eventually(|| one.said().contains("Oracle 1 decides, in term 3")), "{}", one.said());
    println!("Oracle 2 stopped: Oracle 1 decides after {:.2} s", stopped.elapsed().as_secs_f64());
    follows(3, 1, &[&one, &two]);
    two.process.pause(false);
    assert!(eventually(|| two.said().contains("Oracle 2 does not decide: Oracle 1 has the lease")), "{}", two.said());
    follows(3, 1, &[&one, &two]);
    // a good end gives the lease up
    one.process.interrupt();
    follows(4, 2, &[&two]);
    two.process.interrupt();
    agent.stop();
    world.assert_as_before();
}
