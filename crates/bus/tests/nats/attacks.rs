//! What a stolen key, a member or the server itself may try over the bus between machines.

use crate::site::{Raw, Site, sealer, subject};
use crate::talk::{SHORT, all, all_until, name, report, sent, some};
use bus::kind::{MEASUREMENT, REQUEST, ask};
use bus::sealed::{SEALED, SEALED_MAX};
use bus::{Bus, Hub, MESSAGE_MAX, NatsBus, NatsHub, Received, Rejected, Report, Role};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testkit::{PATIENCE, until};

/// What of `Rejected` has grown.
fn grown(before: Rejected, after: Rejected) -> Rejected {
    Rejected {
        unknown: after.unknown - before.unknown,
        frequent: after.frequent - before.frequent,
        malformed: after.malformed - before.malformed,
        version: after.version - before.version,
        foreign: after.foreign - before.foreign,
        forged: after.forged - before.forged,
        replayed: after.replayed - before.replayed,
        stale: after.stale - before.stale,
        role: after.role - before.role,
        full: after.full - before.full,
    }
}

#[test]
fn what_is_forged_replayed_or_anothers_is_refused_and_counted_apart() {
    let Some(site) = Site::new() else { return };
    let mut hub = site.hub();
    let roles = [("h1", Role::Agent), ("c1", Role::Collector), ("o1", Role::Operator)];
    let bodies = [report("h1"), [MEASUREMENT, b"{}"].concat(), [REQUEST, b"{}"].concat()];
    let other = site.identity("h2", Role::Agent, &[]);
    hub.enter(&other.card).unwrap();
    for ((name, role), body) in roles.into_iter().zip(&bodies) {
        let identity = site.identity(name, role, &[]);
        hub.enter(&identity.card).unwrap();
        let (raw, mut sealer, subject) = (Raw::connect(&site, &identity), sealer(&identity, 1), subject(&identity));
        let sealed = sealer.seal(Some(7), body);
        raw.publish(&subject, &sealed);
        let taken = some(&mut hub);
        assert_eq!((taken.len(), &taken[0].bytes), (1, body), "{role}");
        let mut version = sealed.clone();
        version[SEALED.len()] = 2;
        let mut forged = sealer.seal(Some(7), body);
        *forged.last_mut().unwrap() ^= 1;
        let wrong = if role == Role::Agent { &bodies[1] } else { &bodies[0] };
        let none = Rejected::default();
        let attempts = [
            (sealed.clone(), Rejected { replayed: 1, ..none }),
            (forged, Rejected { forged: 1, ..none }),
            (crate::site::sealer(&other, 1).seal(Some(7), body), Rejected { foreign: 1, ..none }),
            (version, Rejected { version: 1, ..none }),
            (body.clone(), Rejected { malformed: 1, ..none }),
            (sealer.seal(Some(7), b"anything"), Rejected { malformed: 1, ..none }),
            (sealer.seal(Some(6), body), Rejected { stale: 1, ..none }),
            (sealer.seal(Some(7), wrong), Rejected { role: 1, ..none }),
        ];
        for (message, expected) in attempts {
            let before = hub.counts().rejected;
            raw.publish(&subject, &message);
            let is_counted = |hub: &NatsHub, _: &[Received]| grown(before, hub.counts().rejected) != none;
            assert_eq!(all_until(&mut hub, "it is counted", is_counted), [], "{role}: {expected:?}");
            assert_eq!(grown(before, hub.counts().rejected), expected, "{role}");
        }
        raw.publish(&subject, &sealer.seal(Some(7), &ask(&[1; 32])));
        assert_eq!(some(&mut hub).len(), 1, "an honest message still passes");
    }
}

#[test]
fn the_server_carries_nothing_on_anothers_subject() {
    let Some(site) = Site::new() else { return };
    let mut hub = site.hub();
    let [one, other] = ["h1", "h2"].map(|name| site.identity(name, Role::Agent, &[]));
    hub.enter(&one.card).unwrap();
    hub.enter(&other.card).unwrap();
    let mut agent = NatsBus::join(&site.saved(&other)).unwrap();
    agent.heard(7);
    sent(&mut agent, &mut hub, &report("h2"));
    let raw = Raw::connect(&site, &one);
    let sealed = sealer(&one, 1).seal(Some(7), &report("h1"));
    let to_other = fleet::rights::to(other.seed.public());
    for subject in [subject(&other).as_str(), &to_other, fleet::rights::CUE, "opentcp.enroll", "$JS.API.STREAM.LIST"] {
        raw.publish(subject, &sealed);
        raw.is_refused(&format!("Permissions Violation for Publish to \"{subject}\""));
    }
    assert_eq!((all(&mut hub), agent.receive(SHORT).unwrap()), (Vec::new(), None));
    assert_eq!(hub.counts().rejected, Rejected::default());
    // it hears what is said to all, and not what is said to others
    let reply = sent(&mut agent, &mut hub, &report("h2")).reply;
    let (over, began) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        let (hub, agent, over) = (&mut hub, &mut agent, &over);
        let talking = scope.spawn(move || {
            while !over.load(Ordering::Relaxed) && began.elapsed() < 2 * PATIENCE {
                hub.send(b"for all").unwrap();
                hub.answer(&reply, b"for h2").unwrap();
                let _ = agent.send(&report("h2"));
                let _ = hub.receive(SHORT).unwrap();
                while agent.receive(SHORT).unwrap().is_some() {}
            }
        });
        let to_all = raw.hears(fleet::rights::CUE, PATIENCE);
        let a_moment = Duration::from_millis(500);
        let to_others = [&to_other, "opentcp.report.*", ">"].map(|subject| raw.hears(subject, a_moment));
        over.store(true, Ordering::Relaxed);
        talking.join().unwrap();
        assert_eq!((to_all, to_others), (true, [false, false, false]));
    });
}

#[test]
fn a_host_that_claims_anothers_name_is_known_by_its_own() {
    let Some(site) = Site::new() else { return };
    let mut hub = site.hub();
    let mut agent = site.join(&mut hub, "h1", Role::Agent);
    agent.heard(7);
    let received = sent(&mut agent, &mut hub, &report("h2"));
    assert_eq!(name(&received), "h1");
    let claimed = Report::from_bytes(&received.bytes).unwrap().host.name;
    assert!(!received.from.may_report_as(&claimed) && received.from.may_report_as("h1"));
}

#[test]
fn numbers_that_are_none_are_refused_where_a_report_is_read() {
    let with = |number: &str| format!(r#"{{"host": {{"name": "h1", "live_flows": {number}}}}}"#).into_bytes();
    assert!(Report::from_bytes(&with("1.0")).is_ok());
    for number in ["1e308", "-1e308", "1e999", "NaN", "Infinity", "-1.0"] {
        assert!(Report::from_bytes(&with(number)).is_err(), "{number}");
    }
}

#[test]
fn a_message_that_is_too_long_is_not_taken() {
    let Some(site) = Site::new() else { return };
    let mut hub = site.hub();
    let identity = site.identity("h1", Role::Agent, &[]);
    hub.enter(&identity.card).unwrap();
    let raw = Raw::connect(&site, &identity);
    raw.publish(&subject(&identity), &vec![b'x'; SEALED_MAX + 1]);
    let taken = all_until(&mut hub, "it is counted", |hub, _| hub.counts().long > 0);
    assert_eq!((taken, hub.counts().long), (Vec::new(), 1));
    let body = vec![b'{'; MESSAGE_MAX];
    raw.publish(&subject(&identity), &sealer(&identity, 1).seal(Some(7), &body));
    assert_eq!(some(&mut hub)[0].bytes.len(), MESSAGE_MAX, "one of full length passes");
}

/// Messages of the flood at a time.
const AT_ONCE: usize = 10_000;

#[test]
fn a_member_that_floods_delays_nobody() {
    let Some(site) = Site::new() else { return };
    let mut hub = site.hub();
    let flooding = site.identity("h1", Role::Agent, &[]);
    hub.enter(&flooding.card).unwrap();
    let mut agent = site.join(&mut hub, "h2", Role::Agent);
    agent.heard(7);
    sent(&mut agent, &mut hub, &report("h2"));
    all(&mut hub);
    let (stop, mut slowest, mut latest_cue, mut rounds) = (AtomicBool::new(false), 0.0_f64, 0.0_f64, 0);
    let before = hub.counts().rejected;
    std::thread::scope(|scope| {
        let flood = scope.spawn(|| {
            let raw = Raw::connect(&site, &flooding);
            let sealed = sealer(&flooding, 1).seal(Some(7), &report("h1"));
            let began = Instant::now();
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(30) {
                raw.flood(&subject(&flooding), &sealed, AT_ONCE);
                n += AT_ONCE;
            }
            (n, began.elapsed().as_secs_f64(), raw.is_connected())
        });
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(6) {
            // as often as its budget allows, the other one reports, and each of its reports is answered
            let asked = Instant::now();
            agent.send(&report("h2")).unwrap();
            until("the report arrives", || {
                let _ = agent.receive(Duration::ZERO).unwrap();
                hub.receive(SHORT).unwrap().is_some_and(|received| name(&received) == "h2")
            });
            slowest = slowest.max(asked.elapsed().as_secs_f64());
            let asked = Instant::now();
            hub.send(b"cue").unwrap();
            until("the CUE arrives", || {
                while hub.receive(Duration::ZERO).unwrap().is_some() {}
                agent.receive(Duration::from_millis(1)).unwrap().is_some()
            });
            latest_cue = latest_cue.max(asked.elapsed().as_secs_f64());
            rounds += 1;
            std::thread::sleep(Duration::from_millis(500));
        }
        stop.store(true, Ordering::Relaxed);
        let (n, seconds, connected) = flood.join().unwrap();
        let refused = grown(before, hub.counts().rejected);
        println!(
            "a flood of {:.0} messages/s, {} refused by budget: the slowest of {rounds} reports of another host took {:.0} ms, the \
             slowest CUE {:.0} ms; the flooding client is connected: {connected}",
            n as f64 / seconds,
            refused.frequent,
            slowest * 1000.0,
            latest_cue * 1000.0
        );
        assert!(refused.frequent > 10_000, "{refused:?}");
        assert_eq!(
            Rejected { frequent: 0, replayed: 0, ..refused },
            Rejected::default(),
            "of the others none was dropped"
        );
        // of what the budget let pass, each but the first is a copy
        assert!(refused.replayed < 100, "{refused:?}");
    });
    assert!(rounds >= 3, "{rounds}");
    assert_eq!((hub.is_connected(), hub.counts().slow), (true, 0));
}
