//! An Oracle and the agents of two hosts, one of which its rollout treats.

use crate::world::{Start, World};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;
use testkit::{PATIENCE, Running, eventually};

const HOSTS: [&str; 2] = ["h0", "h1"];

/// Sets values that are no default, whatever the network does, on half of the hosts. CUEs live for long enough to come late on a busy
/// machine.
const HALF: &str = r#"
mode = "enforce"
period = "1 s"
lifetime = "6 s"
allow_mixed_measures = true
[objective]
minimize = "network.fct_p50"
worse_at_most = "20 %"
[[rule]]
name = "always"
when = "network.live_flows >= 0"
set = { cc = "newreno", initial_cwnd = 20 }
guard = { revert_if = "host.drop_rate > 0.5", hold = "60 s" }
[rollout]
fraction = 0.5
"#;
/// At this rate [`work`] takes 16 ms, without it a tenth.
const HARMFUL: &str = r#"max_pacing_rate = "10 Mbit/s""#;

struct Rollout {
    agents: [Running; 2],
    oracle: Running,
    /// The hosts, by their numbers in the world.
    treated: usize,
    control: usize,
}

impl Rollout {
    /// The control group starts first: of one known host, a share of half treats none.
    fn begin(world: &World, policy: &str) -> Rollout {
        let (code, _, error) = world.opentcp(&["keygen", "--out", "oracle.key"]);
        assert_eq!(code, Some(0), "{error}");
        let treated = usize::from(policy::place_of("policy", HOSTS[1]) < policy::place_of("policy", HOSTS[0]));
        let control = 1 - treated;
        let first = agent(world, control);
        let oracle = oracle(world, policy);
        let alone = || decisions(world).iter().any(|decision| decision["hosts"] == 1);
        assert!(eventually(alone), "{}{}", oracle.said(), first.said());
        Rollout { agents: [first, agent(world, treated)], oracle, treated, control }
    }

    fn said(&self) -> String {
        let [one, other] = &self.agents;
        format!("{}{}{}", self.oracle.said(), one.said(), other.said())
    }

    fn end(self, world: &World) {
        self.oracle.interrupt();
        self.agents.into_iter().for_each(Running::stop);
        world.assert_as_before();
    }
}

fn agent(world: &World, host: usize) -> Running {
    let places = world.places_of(host);
    let mut arguments = vec!["agent", "--host", HOSTS[host], "--key", "oracle.key.pub", "--socket", "oracle.sock"];
    arguments.extend(places.iter().map(String::as_str));
    world.start_as(Start { host, ..Start::default() }, &arguments)
}

fn oracle(world: &World, policy: &str) -> Running {
    fs::write(world.path("policy.toml"), policy).unwrap();
    world.start(&["oracle", "policy.toml", "--key", "oracle.key", "--socket", "oracle.sock", "--state", "oracle"])
}

/// The Oracle's decisions; the last line may be half-written.
fn decisions(world: &World) -> Vec<Value> {
    let out = fs::read_to_string(world.path("out")).unwrap();
    out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// 200 short connections of a host to itself, which only its own settings affect.
fn work(world: &World, host: usize) {
    world.on(host, || {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        for _ in 0..20 {
            let ends: [(TcpStream, TcpStream); 10] =
                std::array::from_fn(|_| (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0));
            for (mut one, mut other) in ends {
                one.write_all(&vec![7; 20_000]).unwrap();
                drop(one);
                other.read_to_end(&mut Vec::new()).unwrap();
            }
        }
    });
}

/// Lets both hosts work until a decision is `right`.
fn work_until(world: &World, rollout: &Rollout, right: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    while began.elapsed() < 2 * PATIENCE {
        for host in [0, 1] {
            work(world, host);
        }
        if let Some(decision) = decisions(world).into_iter().find(|decision| right(decision)) {
            return decision;
        }
    }
    panic!("{:#?}{}", decisions(world).last(), rollout.said());
}

/// Algorithm and window of a new connection of the host.
fn fresh(world: &World, host: usize) -> (String, u32) {
    world.on(host, || {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let open = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let port = open.local_addr().unwrap().port();
        let seen = kernel::connections().unwrap().into_iter().find(|one| one.local_port == port).expect("it is open");
        (seen.algorithm, seen.cwnd)
    })
}

fn status(world: &World, host: usize) -> Value {
    let places = world.places_of(host);
    let (code, out, error) = world.opentcp(&["agent", "status", &places[0], &places[1], "--json"]);
    assert_eq!(code, Some(0), "{error}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn half_of_the_hosts_are_treated_and_compared_with_the_control_group() {
    let Some(world) = World::new() else { return };
    let before = [0, 1].map(|host| fresh(&world, host));
    let rollout = Rollout::begin(&world, HALF);
    let Rollout { treated, control, .. } = rollout;
    let is_set = || fresh(&world, treated) == ("reno".to_string(), 20);
    assert!(eventually(is_set), "{}", rollout.said());
    let decision = work_until(&world, &rollout, |decision| decision["verdict"]["quantities"][0]["pairs"] == 2);
    assert_eq!((&decision["hosts"], &decision["treated"]), (&Value::from(2), &Value::from(1)));
    assert_eq!(decision["cues"][0]["guard"]["revert_if"], "host.drop_rate > 0.5");
    assert!(decision["verdict"]["quantities"][0]["change"].is_number(), "{decision}");
    assert!(is_set(), "{}", rollout.said());
    assert_eq!(fresh(&world, control), before[control], "the control group is unchanged");
    let in_force = |host| status(&world, host)["report"]["in_force"].as_array().map(Vec::len);
    assert_eq!((in_force(treated), in_force(control)), (Some(1), Some(0)));
    let counts = |host| status(&world, host)["report"]["counts"].clone();
    assert!(counts(treated)["taken"].as_u64() > Some(1), "{}", counts(treated));
    assert_eq!(counts(control)["taken"], 0);
    let rejected = [treated, control].map(|host| counts(host)["rejected"].clone());
    assert_eq!(rejected, [0, 0].map(Value::from), "{}", rollout.said());
    rollout.end(&world);
}

#[test]
fn a_harmful_policy_is_rolled_back_and_stays_so_when_the_oracle_restarts() {
    let Some(world) = World::new() else { return };
    let harmful = HALF.replace("initial_cwnd = 20", HARMFUL);
    let mut rollout = Rollout::begin(&world, &harmful);
    let treated = rollout.treated;
    let withheld = |decision: &Value| decision["rules"][0]["withheld"].as_str().unwrap_or_default().to_string();
    let is_over = |decision: &Value| withheld(decision).starts_with("rolled back: more than 20 % worse; p50 FCT +");
    let decision = work_until(&world, &rollout, is_over);
    let change = &decision["verdict"]["quantities"][0];
    println!("rolled back in epoch {}: {}, interval {}", decision["epoch"], change["change"], change["interval"]);
    assert_eq!(
        (&decision["verdict"]["judgement"], &decision["verdict"]["roll_back"]),
        (&"hurting".into(), &true.into())
    );
    assert!(eventually(|| fresh(&world, treated).0 != "reno"), "{}", rollout.said());

    for _ in 0..2 {
        rollout.oracle.kill();
        rollout.oracle = oracle(&world, &harmful);
        let over = || decisions(&world).iter().filter(|decision| is_over(decision)).count();
        assert!(eventually(|| over() >= 2), "{}", rollout.said());
        for decision in decisions(&world) {
            assert_eq!(decision["cues"], Value::from(Vec::<Value>::new()), "{decision}");
            assert_eq!(decision["verdict"]["roll_back"], true);
            assert!(is_over(&decision), "{decision}");
            let reason = decision["verdict"]["reason"].as_str().unwrap();
            assert!(reason.contains("to try it again, change the policy or remove oracle/rollout.json)"), "{reason}");
        }
        assert!(rollout.oracle.said().contains("to try it again"), "{}", rollout.oracle.said());
        assert_ne!(fresh(&world, treated).0, "reno");
    }
    // another policy of the same name is not held responsible
    rollout.oracle.kill();
    rollout.oracle = oracle(&world, HALF);
    assert!(eventually(|| fresh(&world, treated) == ("reno".to_string(), 20)), "{}", rollout.said());
    rollout.end(&world);
}
