//! The bus between machines, over a real server with TLS and the identities of a real fleet.

use crate::site::{Site, now};
use crate::talk::{SHORT, all, heard, name, report, sent};
use bus::kind::{HELLO, MEASUREMENT, REPLY, REQUEST, hello};
use bus::{Bus, BusError, Hub, MESSAGE_MAX, NatsBus, NatsHub, Report, Role};
use policy::{Gate, Identity, OracleKey};
use std::time::Duration;
use testkit::until;

const DAY_S: u64 = 86_400;

/// The Oracle's key of the fleet.
fn key(site: &Site) -> OracleKey {
    bus::files::secret_key(&site.folder("oracle-0").join(fleet::ORACLE_KEY)).unwrap()
}

#[test]
fn messages_go_both_ways() {
    let Some(site) = Site::new() else { return };
    let mut hub = site.hub();
    let mut agents = ["h1", "h2"].map(|name| site.join(&mut hub, name, Role::Agent));
    for agent in &mut agents {
        agent.heard(7);
    }
    let received = sent(&mut agents[0], &mut hub, &report("h1"));
    assert_eq!((name(&received), &received.bytes), ("h1", &report("h1")));
    assert!(received.from.may_report_as("h1") && !received.from.may_report_as("h2"));
    sent(&mut agents[1], &mut hub, &report("h2"));
    hub.answer(&received.reply, b"for h1").unwrap();
    hub.send(b"for all").unwrap();
    hub.send(&vec![7; MESSAGE_MAX]).unwrap();
    assert_eq!(heard(&mut agents[0], &mut hub).unwrap(), b"for h1");
    for agent in &mut agents {
        assert_eq!(heard(agent, &mut hub).unwrap(), b"for all");
        assert_eq!(heard(agent, &mut hub).unwrap(), vec![7; MESSAGE_MAX], "whole");
        assert_eq!(agent.receive(SHORT).unwrap(), None);
        assert!(matches!(agent.send(&vec![0; MESSAGE_MAX + 1]), Err(BusError::Long(_))));
    }
    assert!(matches!(hub.send(&vec![0; MESSAGE_MAX + 1]), Err(BusError::Long(_))));
    // the register comes when it comes
    until("both and the operator are known", || hub.receive(SHORT).is_ok() && hub.counts().peers == 3);
    assert_eq!(hub.counts().rejected.sum(), 0);
}

#[test]
fn who_knows_no_epoch_asks_and_is_taken_once_it_is_answered() {
    let Some(site) = Site::new() else { return };
    let (mut hub, key) = (site.hub(), key(&site));
    // an agent asks by its report: nothing else of it passes
    let mut agent = site.join(&mut hub, "h1", Role::Agent);
    let mut gate = Gate::new(key.public(), Identity::default(), None);
    gate.ask([5; 32]);
    let mut asking = Report::from_bytes(&report("h1")).unwrap();
    (asking.host.rack, asking.question) = ("r1".into(), gate.question());
    let received = sent(&mut agent, &mut hub, &asking.clone().to_bytes());
    assert_eq!(hello(&received.bytes), Some([5; 32]), "nothing else of it");
    hub.answer(&received.reply, &key.answer(7, &[[5; 32]])).unwrap();
    let answer = heard(&mut agent, &mut hub).unwrap();
    gate.answered(&answer).unwrap().unwrap();
    agent.heard(gate.highest().unwrap());
    let received = sent(&mut agent, &mut hub, &asking.to_bytes());
    assert_eq!(Report::from_bytes(&received.bytes).unwrap().host.rack, "r1", "now it is believed");

    // an operator's bus asks by itself, and what was to be sent waits so long
    let mut operator = NatsBus::join(&site.folder("operator")).unwrap();
    let request = [REQUEST, br#"{"command": "status"}"#].concat();
    operator.send(&request).unwrap();
    let mut received = Vec::new();
    until("the request arrives", || {
        let _ = operator.receive(SHORT).unwrap();
        let Some(message) = hub.receive(SHORT).unwrap() else { return false };
        if let Some(question) = hello(&message.bytes) {
            hub.answer(&message.reply, &key.answer(7, &[question])).unwrap();
        } else {
            received.push(message);
        }
        !received.is_empty()
    });
    assert_eq!((name(&received[0]), &received[0].bytes), ("operator", &request));
    assert!(received[0].from.is(Role::Operator) && !received[0].bytes.starts_with(HELLO));
    hub.answer(&received[0].reply, &[REPLY, b"{}"].concat()).unwrap();
    let is_reply = |message: &Option<Vec<u8>>| message.as_ref().is_some_and(|message| message.starts_with(REPLY));
    until("the reply arrives", || {
        let _ = hub.receive(SHORT).unwrap();
        is_reply(&operator.receive(SHORT).unwrap())
    });

    // a measurement would grow old in the bus: its collector keeps it until the Oracle has answered
    let mut collector = site.join(&mut hub, "c1", Role::Collector);
    let measured = [MEASUREMENT, b"{}"].concat();
    until("a server is connected", || {
        let _ = collector.receive(SHORT).unwrap();
        collector.trouble().is_some_and(|why| why.contains("no Oracle has answered"))
    });
    assert!(!collector.is_connected() && matches!(collector.send(&measured), Err(BusError::Full)));
    until("it knows the epoch", || {
        let _ = collector.receive(SHORT).unwrap();
        if let Some(message) = hub.receive(SHORT).unwrap() {
            let question = hello(&message.bytes).expect("nothing else is sent");
            hub.answer(&message.reply, &key.answer(7, &[question])).unwrap();
        }
        collector.is_connected()
    });
    assert_eq!(sent(&mut collector, &mut hub, &measured).bytes, measured);
}

#[test]
fn a_server_that_is_away_ends_nobody_and_its_return_is_found() {
    let Some(mut site) = Site::new() else { return };
    site.server.kill();
    let mut hub = NatsHub::listen(&site.folder("oracle-0")).unwrap();
    hub.epoch(7);
    let identities = ["h1", "h2", "h3"].map(|name| site.identity(name, Role::Agent, &[]));
    let mut agents = identities.each_ref().map(|identity| NatsBus::join(&site.saved(identity)).unwrap());
    for agent in &mut agents {
        agent.heard(7);
        assert!(matches!(agent.send(&report("old")), Err(BusError::Full)), "nothing is kept for later");
        assert_eq!((agent.receive(SHORT).unwrap(), agent.is_connected()), (None, false));
    }
    hub.send(b"old").unwrap();
    until("the reason is known", || {
        let _ = agents[0].receive(SHORT);
        agents[0].trouble().is_some_and(|why| why.contains("refused"))
    });
    for round in 0..2 {
        site.server.again();
        until("all are connected", || {
            let _ = hub.receive(SHORT).unwrap();
            for agent in &mut agents {
                drop(agent.receive(SHORT).unwrap());
            }
            hub.is_connected() && agents.iter().all(bus::Bus::is_connected)
        });
        assert_eq!(agents[0].trouble(), None);
        for identity in &identities {
            hub.enter(&identity.card).unwrap();
        }
        for (agent, name) in agents.iter_mut().zip(["h1", "h2", "h3"]) {
            assert_eq!(sent(agent, &mut hub, &report(name)).bytes, report(name), "round {round}");
        }
        all(&mut hub);
        hub.send(b"new").unwrap();
        for agent in &mut agents {
            assert_eq!(heard(agent, &mut hub).unwrap(), b"new");
        }
        site.server.kill();
        until("the loss is seen", || {
            let _ = hub.receive(SHORT).unwrap();
            for agent in &mut agents {
                drop(agent.receive(SHORT).unwrap());
            }
            !hub.is_connected() && agents.iter().all(|agent| !agent.is_connected())
        });
    }
    assert_eq!(hub.counts().rejected.sum(), 0);
}

#[test]
fn the_register_outlives_the_server_and_the_oracle() {
    let Some(mut site) = Site::new() else { return };
    let identity = site.identity("h1", Role::Agent, &[]);
    let mut hub = site.hub();
    hub.enter(&identity.card).unwrap();
    drop(hub);
    site.server.kill();
    site.server.again();
    // another Oracle of the fleet
    let mut hub = NatsHub::listen(&site.folder("oracle-1")).unwrap();
    hub.epoch(7);
    until("it knows the member, and the operator", || {
        let _ = hub.receive(SHORT).unwrap();
        hub.counts().peers == 2
    });
    let mut agent = NatsBus::join(&site.saved(&identity)).unwrap();
    agent.heard(7);
    assert_eq!(name(&sent(&mut agent, &mut hub, &report("h1"))), "h1");
}

/// Whether a member cannot connect, and why.
fn is_refused(folder: &std::path::Path) -> String {
    let mut agent = NatsBus::join(folder).unwrap();
    let mut why = String::new();
    until("it is refused", || {
        let _ = agent.receive(SHORT).unwrap();
        why = agent.trouble().unwrap_or_default();
        !why.is_empty()
    });
    let _ = agent.receive(Duration::from_secs(1)).unwrap();
    assert!(!agent.is_connected());
    why
}

#[test]
fn a_server_of_another_authority_is_not_trusted() {
    let (Some(site), Some(other)) = (Site::new(), Site::new()) else { return };
    let folder = site.saved(&site.identity("h1", Role::Agent, &[]));
    std::fs::copy(other.folder("oracle-0/ca.pem"), folder.join("ca.pem")).unwrap();
    let why = is_refused(&folder);
    assert!(why.contains("certificate"), "{why}");
    // nor does a server of another fleet take this member
    let mut stranger = other.identity("h1", Role::Agent, &[]);
    stranger.fleet.servers.clone_from(&site.oracle.identity.fleet.servers);
    stranger.fleet.ca.clone_from(&site.oracle.identity.fleet.ca);
    let why = is_refused(&site.saved(&stranger));
    assert!(why.contains("authorization"), "{why}");
}

#[test]
fn a_server_whose_certificate_has_expired_is_not_trusted() {
    let Some(site) = Site::with(|init| init.now = now() - 20 * DAY_S) else { return };
    let why = is_refused(&site.saved(&site.identity("h1", Role::Agent, &[])));
    assert!(why.contains("expired"), "{why}");
}

#[test]
fn an_identity_that_has_expired_is_an_error_of_the_folder() {
    let Some(site) = Site::new() else { return };
    let folder = site.saved(&site.identity_until("h1", Role::Agent, &[], now() - 3 * DAY_S));
    let Err(error) = NatsBus::join(&folder) else { panic!("it has expired") };
    assert!(error.to_string().contains("expired 3 days ago"), "{error}");
    let Err(error) = NatsBus::join(&site.folder("oracle-0")) else { panic!("an Oracle is no member") };
    assert!(error.to_string().contains("not a member's"), "{error}");
    let Err(error) = NatsHub::listen(&site.folder("operator")) else { panic!("a member is no Oracle") };
    assert!(error.to_string().contains("not of an Oracle"), "{error}");
    let Err(error) = NatsBus::join(&site.folder("none")) else { panic!("nothing is there") };
    assert!(error.to_string().contains("none"), "{error}");
}

#[test]
fn a_member_whose_time_ends_is_cut_off() {
    let Some(site) = Site::new() else { return };
    let mut hub = site.hub();
    let identity = site.identity_until("h1", Role::Agent, &[], now() + 3);
    hub.enter(&identity.card).unwrap();
    let mut agent = NatsBus::join(&site.saved(&identity)).unwrap();
    agent.heard(7);
    sent(&mut agent, &mut hub, &report("h1"));
    until("the server cuts it off", || {
        let _ = hub.receive(SHORT).unwrap();
        let _ = agent.receive(SHORT).unwrap();
        !agent.is_connected()
    });
}
