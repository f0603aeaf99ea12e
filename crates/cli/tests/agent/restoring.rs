//! Settings after the agent has died.

use crate::world::{THERE, TestOracle, World, comes_within, cue, guardian, reno};
use bus::Hub as _;
use kernel::{Kernel, Loaded};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use policy::{Cue, Settings};
use std::fs;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use testkit::{Algorithms, Running, eventually, or_skip, talk};
use units::Time;

/// Reno, a larger window, and ECN by sysctl.
fn all() -> Settings {
    Settings { ecn: Some(true), ..reno() }
}

/// Waits until [`all`] is set, on the open connection too.
fn until_set(world: &World, open: &(TcpStream, TcpStream), agent: &Running) {
    let is_set = || world.uses(&open.0, "reno") && world.ip("route show").contains("initcwnd");
    assert!(eventually(is_set), "{}", agent.said());
}

#[test]
fn a_killed_agents_guardian_restores_everything_at_once() {
    // the guardian only waits for a process to end, but has a program to load; the CUE would last a minute
    comes_within(Duration::from_secs(20), after_the_agent_is_killed);
}

fn after_the_agent_is_killed() -> Option<Duration> {
    let world = World::new()?;
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &[]);
    let open = world.connection(THERE);
    oracle.send(&cue(1, all()));
    until_set(&world, &open, &agent);
    let killed = Instant::now();
    agent.kill();
    let log = world.path("log-agent");
    let is_back = eventually(|| !world.uses(&open.0, "reno") && !world.pins().exists());
    assert!(is_back, "{}", fs::read_to_string(log).unwrap());
    let took = killed.elapsed();
    println!("killed -9, everything is restored after {:.0} ms", took.as_secs_f64() * 1e3);
    world.assert_as_before();
    assert_eq!(world.reset(), "there was nothing to restore\n");
    assert_eq!(world.status()["running"], false);
    Some(took)
}

#[test]
fn what_a_killed_guardian_leaves_ends_with_its_cue_and_by_reset() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &[]);
    let open = world.connection(THERE);
    // a busy machine needs a moment to see that it is set
    oracle.send(&Cue { lifetime: Time::from_secs(4), ..cue(1, all()) });
    until_set(&world, &open, &agent);
    kill(Pid::from_raw(guardian(&agent)), Signal::SIGKILL).unwrap();
    agent.kill();
    let has_expired = || {
        talk(&open);
        !world.uses(&open.0, "reno")
    };
    assert!(eventually(has_expired), "no agent runs, and the kernel has not seen the lifetime expire");
    assert_ne!(world.seen(&world.connection(THERE).0).algorithm, "reno");
    assert!(world.ip("route show").contains("initcwnd 20"), "a route has no clock");
    let text = world.reset();
    assert!(text.contains("routes and sysctls were restored") && text.contains("BPF program was removed"), "{text}");
    assert_eq!(world.reset(), "there was nothing to restore\n");
    world.assert_as_before();
}

#[test]
fn a_restarted_agent_takes_over_and_remembers_the_epochs_it_has_seen() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &[]);
    let open = world.connection(THERE);
    let old = oracle.send(&cue(7, all()));
    until_set(&world, &open, &agent);
    kill(Pid::from_raw(guardian(&agent)), Signal::SIGKILL).unwrap();
    agent.kill();
    assert!(world.uses(&open.0, "reno"));

    let agent = world.agent(&mut oracle, &[]);
    assert!(!world.uses(&open.0, "reno"), "its guards were not watched meanwhile");
    assert!(!world.ip("route show").contains("initcwnd"));
    oracle.bus.send(&old).unwrap();
    let report = oracle.wait_for_reports(&agent);
    assert_eq!((report.counts.taken, report.counts.rejected, report.epoch), (0, 1, Some(7)), "replayed");
    oracle.send(&cue(8, all()));
    assert!(eventually(|| world.uses(&open.0, "reno")), "{}", agent.said());
    // a second one is refused while the first runs, and does not harm it
    let places = world.places();
    let mut second = vec!["agent", "reset"];
    second.extend(places.iter().map(String::as_str));
    let (code, _, error) = world.opentcp(&second);
    assert!(code == Some(2) && error.contains("another agent is running"), "{error}");
    assert!(world.uses(&open.0, "reno"));
    agent.interrupt();
    world.assert_as_before();
}

#[test]
fn an_agent_that_is_stopped_while_it_waits_for_another_has_not_failed() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &[]);
    let places = world.places();
    let mut arguments = vec!["agent", "--host", "h1", "--key", "oracle.key.pub", "--socket", "oracle.sock"];
    arguments.extend(places.iter().map(String::as_str));
    let second = world.start(&arguments);
    assert!(eventually(|| second.said().contains("waiting for 10 s for it to end")), "{}", second.said());
    second.stop();
    agent.stop();
    world.assert_as_before();
}

#[test]
fn what_others_have_changed_since_the_agent_was_killed_is_not_restored() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &["--means", "routes"]);
    oracle.send(&cue(1, all()));
    assert!(eventually(|| world.ip("route show default").contains("initcwnd 20")), "{}", agent.said());
    kill(Pid::from_raw(guardian(&agent)), Signal::SIGKILL).unwrap();
    agent.kill();
    world.ip(&format!("route replace default via {THERE} initcwnd 33"));
    world.here(|| fs::write("/proc/sys/net/ipv4/tcp_ecn", "0").unwrap());
    let said = world.reset();
    assert!(world.ip("route show default").contains("initcwnd 33"));
    assert_eq!(world.here(|| fs::read_to_string("/proc/sys/net/ipv4/tcp_ecn").unwrap()).trim(), "0");
    assert!(said.contains("route 0.0.0.0/0") && said.contains("net.ipv4.tcp_ecn is not restored"), "{said}");
    assert!(!world.ip("route show 10.98.0.0/16").contains("initcwnd"), "the rest is restored");
}

/// Another program has loaded it, and removes it: from then on the kernel does not name it where a route has it.
#[test]
fn a_route_whose_algorithm_is_gone_is_restored() {
    let Some(world) = World::new() else { return };
    let Some((_algorithms, loaded)) = load_yeah() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &["--means", "routes"]);
    let set = Settings { cc: Some("yeah".into()), initial_cwnd: Some(20), ..Settings::default() };
    oracle.send(&cue(1, set));
    assert!(eventually(|| world.ip("route show default").contains("congctl lock ot_yeah")), "{}", agent.said());
    unload(loaded);
    agent.stop();
    world.assert_as_before();
}

/// The kernel refuses the name of an algorithm that is not loaded.
#[test]
fn a_route_that_had_an_algorithm_which_is_gone_is_restored_without_it() {
    let Some(world) = World::new() else { return };
    let Some((_algorithms, loaded)) = load_yeah() else { return };
    world.ip(&format!("route replace default via {THERE} congctl ot_yeah"));
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &["--means", "routes"]);
    oracle.send(&cue(1, Settings { initial_cwnd: Some(20), ..Settings::default() }));
    assert!(eventually(|| world.ip("route show default").contains("initcwnd 20")), "{}", agent.said());
    unload(loaded);
    // a route of its own, made of the default one
    let mut near = cue(2, Settings { initial_cwnd: Some(30), ..Settings::default() });
    near.scope.sessions.remote = Some("10.97.0.0/16".parse().unwrap());
    oracle.send(&near);
    assert!(eventually(|| world.ip("route show 10.97.0.0/16").contains("initcwnd 30")), "{}", agent.said());
    let log = world.path("log-agent");
    agent.stop();
    let said = fs::read_to_string(log).unwrap();
    assert_eq!(world.ip("route show default").trim(), format!("default via {THERE} dev eth0"), "{said}");
    assert_eq!(world.ip("route show 10.97.0.0/16"), "", "{said}");
    assert!(said.contains("is restored without its algorithm"), "{said}");
}

fn load_yeah() -> Option<(Algorithms, Loaded)> {
    let algorithms = Algorithms::take();
    let kernel = or_skip(Kernel::probe())?;
    if available().contains("ot_yeah") {
        eprintln!("skipped: this machine has loaded it; opentcp cc unload yeah");
        return None;
    }
    Some((algorithms, kernel.load("yeah").expect("the kernel takes it")))
}

fn unload(loaded: Loaded) {
    drop(loaded);
    assert!(eventually(|| !available().contains("ot_yeah")), "{}", available());
}

fn available() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("Linux has it")
}
