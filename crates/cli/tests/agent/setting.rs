//! What an agent sets and reports.

use crate::world::{HERE, REFUSING_BPF, Start, THERE, TestOracle, World, cue, reno};
use bus::Hub as _;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use policy::{CueError, Settings};
use serde_json::Value;
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use std::{fs, thread};
use testkit::{PATIENCE, eventually, talk};
use units::Time;

/// The effective value of a setting of the only rule, by the status.
fn found(status: &Value, setting: &str) -> String {
    let effective = status["report"]["in_force"][0]["effective"].as_array().cloned().unwrap_or_default();
    let row = effective.into_iter().find(|row| row["setting"] == setting);
    row.map_or_else(String::new, |row| row["found"].as_str().unwrap_or_default().to_string())
}

#[test]
fn a_cue_reaches_new_and_open_connections_routes_and_the_report() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent =
        world.agent(&mut oracle, &["--rack", "r1", "--remote-rack", "10.99.0.0/24=r2", "--link", "eth0=1 Gbit/s"]);
    let open = world.connection(THERE);
    talk(&open);
    let before = world.seen(&open.0);
    assert_ne!(before.algorithm, "reno", "this machine's default is the test's setting");

    let set = Settings { rto_min: Some(Time::from_ms(20)), pacing: Some(true), ecn: Some(true), ..reno() };
    oracle.send(&cue(1, set));
    assert!(eventually(|| world.uses(&open.0, "reno")), "idle as it is; {}", agent.said());
    assert_eq!(world.at_work(), (1, 2), "a program, an agent and its guardian");
    talk(&open);
    let after = world.seen(&open.0);
    assert!(after.rto_us < before.rto_us && after.max_pacing_rate == u64::from(u32::MAX) - 1, "{after:?}");
    let fresh = world.connection(THERE);
    let seen = world.seen(&fresh.0);
    assert_eq!((seen.cwnd, seen.algorithm.as_str()), (20, "reno"));
    drop(fresh);
    for route in ["10.99.0.0/24", "default"] {
        let shown = world.ip(&format!("route show {route}"));
        assert!(shown.contains("initcwnd 20") && shown.contains("rto_min lock 20ms"), "{shown}");
    }
    assert!(world.ip("-6 route show fd98::/16").contains("initcwnd 20"));
    assert!(!world.ip("-6 route show fd99::/64").contains("initcwnd"), "the kernel's own: replaced, it would stay");
    let other = world.ip("route show 10.98.0.0/16");
    assert!(
        other.contains("mtu lock 1400") && other.contains("initrwnd 20") && other.contains("initcwnd 20"),
        "{other}"
    );
    assert_eq!(world.here(|| fs::read_to_string("/proc/sys/net/ipv4/tcp_ecn").unwrap()).trim(), "1");

    // the connection that ended is in the next report
    let mut racks = Vec::new();
    assert!(eventually(|| {
        let report = oracle.receive(PATIENCE).expect("a report");
        racks.extend(report.telemetry.into_iter().map(|kind| (kind.group, kind.remote_rack)));
        racks.contains(&("test/rule".to_string(), "r2".to_string()))
    }));
    let report = oracle.wait_for_reports(&agent);
    assert_eq!((report.host.rack.as_str(), report.epoch, report.links.len()), ("r1", Some(1), 2));
    let mut status = world.status();
    assert_eq!((status["running"].as_bool(), status["connected"].as_bool()), (Some(true), Some(true)));
    assert_eq!(status["failed"], 0, "the kernel has refused a setting");
    // connections are sampled less often than reports are sent if sampling takes long
    assert!(
        eventually(|| {
            status = world.status();
            found(&status, "cc").starts_with("reno on ")
        }),
        "{status}"
    );
    assert!(found(&status, "initial_cwnd").contains("20 by the route"), "{status}");
    assert!(found(&status, "rto_min").starts_with("RTOs from "), "{status}");
    assert!(found(&status, "pacing").contains("pace"), "{status}");
    assert!(found(&status, "ecn").contains("net.ipv4.tcp_ecn is 1"), "{status}");

    agent.interrupt();
    assert!(world.uses(&open.0, &before.algorithm), "restored although idle");
    world.assert_as_before();
}

/// Sends until the connection's window is large, then nothing for longer than any RTO: its window before, and with the next byte.
fn pause((one, other): &mut (TcpStream, TcpStream), world: &World) -> (u32, u32) {
    let grown = |socket: &TcpStream| world.seen(socket).cwnd;
    for _ in 0..100 {
        let both = (&*one, &*other);
        thread::scope(|scope| {
            scope.spawn(move || (&mut { both.0 }).write_all(&vec![0; 1 << 20]).unwrap());
            (&mut { both.1 }).read_exact(&mut vec![0; 1 << 20]).unwrap();
        });
        if grown(one) > 60 {
            break;
        }
    }
    let before = grown(one);
    // the window is halved for each RTO that passes
    thread::sleep(Duration::from_secs(3));
    one.write_all(&[0]).unwrap();
    other.read_exact(&mut [0]).unwrap();
    (before, grown(one))
}

#[test]
fn a_connection_restarts_after_idle_with_the_rules_window_and_afterwards_with_its_own() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &[]);
    let mut open = world.connection(THERE);
    // algorithms that set their window themselves, such as bbr, do not restart
    setsockopt(&open.0, TcpCongestion, &OsString::from("reno")).unwrap();
    let own = world.before_window();
    let (grown, again) = pause(&mut open, &world);
    assert!(grown > 60 && again == own, "{grown}, then {again}: a kernel that restarts after a pause, with {own}");
    let window = policy::Cue { lifetime: Time::from_secs(8), ..cue(1, Settings { cc: None, ..reno() }) };
    oracle.send(&window);
    assert!(eventually(|| world.ip("route show default").contains("initcwnd 20")), "{}", agent.said());
    let (grown, again) = pause(&mut open, &world);
    println!("idle for 3 s with an initial window of 20: {grown} segments before, {again} with the next byte");
    assert!(grown > 60 && again == 20, "{grown}, then {again}");
    assert!(eventually(|| !world.ip("route show default").contains("initcwnd")), "it ends: {}", agent.said());
    let (grown, again) = pause(&mut open, &world);
    assert!(grown > 60 && again == own, "{grown}, then {again}");
    agent.interrupt();
    world.assert_as_before();
}

#[test]
fn a_rule_for_some_sessions_leaves_others_unchanged() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &[]);
    let mut near = cue(1, reno());
    near.scope.sessions.remote = Some("10.99.0.2/32".parse().unwrap());
    oracle.send(&near);
    assert!(eventually(|| world.uses(&world.connection(THERE).0, "reno")), "{}", agent.said());
    assert!(!world.uses(&world.connection(HERE).0, "reno"), "another prefix");
    // no route leads only there, so one is added with the same next hop
    let own = world.ip("route show 10.99.0.2");
    assert!(own.contains("dev eth0") && own.contains("initcwnd 20"), "{own}");
    assert!(!world.ip("route show default").contains("initcwnd"));
    agent.interrupt();
    world.assert_as_before();
}

#[test]
fn without_bpf_routes_do_what_they_can() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &["--means", "routes"]);
    let set = Settings { cwnd_clamp: Some(64), pacing: Some(true), ..reno() };
    oracle.send(&cue(1, set));
    assert!(eventually(|| world.ip("route show default").contains("initcwnd 20")), "{}", agent.said());
    let seen = world.seen(&world.connection(THERE).0);
    assert_eq!((seen.algorithm.as_str(), seen.cwnd), ("reno", 20), "by the route");
    assert!(!world.pins().exists(), "nothing is in bpffs");
    assert!(eventually(|| agent.said().contains("pacing is not set: it needs BPF")), "{}", agent.said());
    agent.interrupt();
    world.assert_as_before();
}

#[test]
fn without_bpf_an_agent_reports_it_uses_routes_and_restores_everything() {
    let Some(world) = World::without_bpf() else { return };
    let refused = Start { under: REFUSING_BPF, ..Start::default() };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent_as(refused, &mut oracle, &[]);
    let lacks = |text: &str| {
        text.contains("the kernel refuses the agent's program") && text.contains("only routes and sysctls are set")
    };
    assert!(lacks(&agent.said()), "{}", agent.said());
    let kept = world.connection(THERE);
    let before = world.seen(&kept.0).algorithm;
    let set = Settings { rto_min: Some(Time::from_ms(20)), pacing: Some(true), ecn: Some(true), ..reno() };
    oracle.send(&cue(1, set.clone()));
    assert!(eventually(|| world.ip("route show default").contains("initcwnd 20")), "{}", agent.said());
    let fresh = world.connection(THERE);
    let seen = world.seen(&fresh.0);
    assert_eq!((seen.algorithm.as_str(), seen.cwnd), ("reno", 20), "by the route");
    talk(&fresh);
    assert!(world.seen(&fresh.0).rto_us < 100_000, "the route's RTO, too");
    assert!(world.uses(&kept.0, &before), "routes do not change open connections");
    // the report has what was found, not what was asked for
    let report = oracle.wait_for_reports(&agent);
    assert!(report.notes.iter().any(|note| lacks(note)), "{:?}", report.notes);
    assert!(report.notes.iter().any(|note| note.contains("pacing is not set: it needs BPF")), "{:?}", report.notes);
    assert!(
        eventually(|| {
            let status = world.status();
            found(&status, "pacing") == "no limit, none paces by it"
                && found(&status, "initial_cwnd").starts_with("20 by the route (")
        }),
        "{}",
        world.status()
    );
    let (_, text, _) = world.opentcp(&["agent", "status", "--state", "state"]);
    assert!(lacks(&text), "{text}");
    drop(fresh);

    agent.kill();
    assert!(eventually(|| !world.ip("route show").contains("initcwnd")), "the guardian needs no BPF either");
    world.assert_as_before();
    // whoever asks for BPF alone learns of the alternative
    let places = world.places();
    let mut arguments = vec!["agent", "--key", "oracle.key.pub", "--means", "bpf"];
    arguments.extend(places.iter().map(String::as_str));
    let (code, _, error) = world.opentcp_as(refused, &arguments);
    assert!(code == Some(2) && error.contains("without BPF: --means routes"), "{error}");
    let agent = world.agent_as(refused, &mut oracle, &[]);
    oracle.send(&cue(2, set));
    assert!(eventually(|| world.ip("route show default").contains("initcwnd 20")), "{}", agent.said());
    agent.interrupt();
    world.assert_as_before();
}

#[test]
fn a_dry_run_prints_changes_and_makes_none() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let before = world.snapshot();
    let places = world.places();
    let mut arguments =
        vec!["agent", "--dry-run", "--host", "h1", "--key", "oracle.key.pub", "--socket", "oracle.sock"];
    arguments.extend(places.iter().map(String::as_str));
    let dry = world.start(&arguments);
    let printed = || fs::read_to_string(world.path("out")).unwrap();
    // a bus does not store messages: what is sent before the agent connects does not reach it
    let mut epoch = 0;
    assert!(
        eventually(|| {
            epoch += 1;
            oracle.send(&cue(epoch, reno()));
            printed().contains("route default") || printed().contains("route 0.0.0.0/0")
        }),
        "{}{}",
        printed(),
        dry.said()
    );
    assert!(printed().contains("would attach the BPF program") && printed().contains("\"reno\""), "{}", printed());
    dry.interrupt();
    assert!(world.snapshot() == before && !world.path("state").exists(), "nothing was changed, nothing was written");
}

#[test]
fn an_agent_refuses_untrusted_and_unusable_input() {
    let Some(world) = World::new() else { return };
    let _oracle = TestOracle::new(&world);
    let places = world.places();
    let (code, _, error) = world.opentcp(&["agent", "--key", "oracle.key.pub", "--cgroup", "/proc"]);
    assert!(code == Some(2) && error.contains("/proc: not a cgroup's folder"), "{error}");
    let run = |more: &[&str]| {
        let mut arguments = vec!["agent", "--key", "oracle.key.pub", "--socket", "oracle.sock"];
        arguments.extend(places.iter().map(String::as_str));
        arguments.extend(more);
        let (code, _, error) = world.opentcp(&arguments);
        assert_eq!(code, Some(2), "{error}");
        error
    };
    let key = world.path("oracle.key.pub");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600, "root's alone");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(run(&[]).contains("other users can change it"));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(run(&["--remote-rack", "10.0.0.1/8=r"]).contains("10.0.0.0/8"), "the message says what to write instead");
    assert!(run(&["--link", "eth0=0 bit/s"]).contains("the rate must be above 0"));

    // a clock other than the kernel's, by which settings would end too late
    let shifted = world.here(|| {
        let mut command = std::process::Command::new("unshare");
        command.args(["--time", "--boottime", "1000", "--fork", env!("CARGO_BIN_EXE_opentcp"), "agent", "--key"]);
        command.arg(&key).arg("--socket").arg(world.path("oracle.sock")).args(&places).current_dir(world.place.path());
        command.output().unwrap()
    });
    let error = String::from_utf8_lossy(&shifted.stderr);
    assert!(shifted.status.code() == Some(2) && error.contains("time namespace"), "{error}");
    world.assert_as_before();
}

#[test]
fn an_agent_accepts_nothing_from_before_it_started() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    // somebody has recorded an hour's CUEs, and replays them
    let recorded = oracle.key.sign(&cue(40, reno()));
    let answer = oracle.key.answer(0, &[[7; 32]]);
    oracle.answers = false;
    let agent = world.agent(&mut oracle, &[]);
    for message in [&recorded, &answer, &recorded] {
        oracle.bus.send(message).unwrap();
    }
    let report = oracle.wait_for_reports(&agent);
    assert_eq!((report.counts.taken, report.counts.rejected), (0, 2), "{}", agent.said());
    assert!(agent.said().contains(&CueError::Unanswered(40).to_string()), "{}", agent.said());
    (oracle.answers, oracle.epoch) = (true, 40);
    assert!(eventually(|| oracle.wait_for_reports(&agent).question.is_none()), "{}", agent.said());
    oracle.bus.send(&recorded).unwrap();
    assert_eq!(oracle.wait_for_reports(&agent).counts.rejected, 3, "{}", agent.said());
    oracle.send(&cue(41, reno()));
    assert!(eventually(|| world.uses(&world.connection(THERE).0, "reno")), "{}", agent.said());
    agent.interrupt();
    world.assert_as_before();
}

#[test]
fn forged_replayed_expired_and_corrupted_cues_are_rejected_and_counted() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &[]);
    let reject = |oracle: &mut TestOracle, bytes: &[u8], count: u64| {
        oracle.bus.send(bytes).unwrap();
        let report = oracle.wait_for_reports(&agent);
        assert_eq!(report.counts.rejected, count, "{}", agent.said());
        report
    };
    let forged = policy::OracleKey::from_secret([9; 32]).sign(&cue(1, reno()));
    reject(&mut oracle, &forged, 1);
    let mut corrupted = oracle.key.sign(&cue(1, reno()));
    corrupted[20] ^= 1;
    reject(&mut oracle, &corrupted, 2);
    reject(&mut oracle, b"no CUE at all", 3);
    assert!(!world.uses(&world.connection(THERE).0, "reno"), "nothing was accepted");

    let short = policy::Cue { lifetime: Time::from_ms(300), ..cue(2, reno()) };
    let bytes = oracle.send(&short);
    assert!(eventually(|| oracle.wait_for_reports(&agent).counts.expired == 1), "{}", agent.said());
    let report = reject(&mut oracle, &bytes, 4);
    assert!(report.in_force.is_empty(), "replayed after its lifetime");
    let report = reject(&mut oracle, &forged, 5);
    assert_eq!((report.counts.taken, report.epoch), (1, Some(2)));
    let said = agent.said();
    for error in [CueError::Forged.to_string(), CueError::Replayed { epoch: 2, id: 0 }.to_string()] {
        assert!(said.contains(&error), "{error}: {said}");
    }
    agent.interrupt();
    world.assert_as_before();
}

#[test]
fn a_cgroup_that_is_made_anew_is_set_again_and_connections_outside_of_it_do_not_count() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let folder = world.cgroup_of(0);
    let places = world.places_of(0);
    let mut arguments = vec!["agent", "--host", "h1", "--key", "oracle.key.pub", "--socket", "oracle.sock"];
    arguments.extend(places.iter().map(String::as_str));
    let agent = world.start(&arguments);
    oracle.wait_for_reports(&agent);
    oracle.send(&cue(1, reno()));
    let is_set = || world.on(0, || world.uses(&world.connection(THERE).0, "reno"));
    assert!(eventually(is_set), "{}", agent.said());
    // as a service manager does when it restarts the service
    assert!(eventually(|| fs::remove_dir(&folder).is_ok()));
    let gone = format!("{}: there is no such cgroup: no connection is set", folder.display());
    assert!(eventually(|| agent.said().contains(&gone)), "{}", agent.said());
    fs::create_dir(&folder).unwrap();
    assert!(eventually(is_set), "{}", agent.said());
    let inside = world.on(0, || world.connection(THERE));
    let outside = world.connection(THERE);
    assert!(world.uses(&inside.0, "reno") && !world.uses(&outside.0, "reno"));
    let counts = || {
        let report = oracle.wait_for_reports(&agent);
        let cc = report.in_force[0].effective.iter().find(|setting| setting.setting == "cc").unwrap().clone();
        (cc.connections, cc.differing)
    };
    let mut seen = (0, 0);
    let mut counts = counts;
    assert!(
        eventually(|| {
            seen = counts();
            seen == (1, 0)
        }),
        "{seen:?}"
    );
    agent.stop();
    world.assert_as_before();
}
