//! The bus between machines, over a real server with TLS and the identities of a real fleet.

#[path = "nats/site.rs"]
mod site;

use bus::kind::{MEASUREMENT, REQUEST};
use bus::{Bus, BusError, Hub, MESSAGE_MAX, Peer, Received, Report, Role};
use policy::Host;
use site::Site;
use std::time::Duration;
use testkit::{eventually, until};

const SOON: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(20);

fn report(name: &str) -> Vec<u8> {
    Report { host: Host { name: name.into(), ..Host::default() }, ..Report::default() }.to_bytes()
}

/// Sends until it is received: what is sent before both ends are connected is lost.
fn sent(bus: &mut dyn Bus, hub: &mut dyn Hub, message: &[u8]) -> Received {
    let mut received = None;
    until("the message arrives", || {
        let _ = bus.send(message);
        let _ = bus.receive(SHORT);
        received = hub.receive(SHORT).unwrap();
        received.is_some()
    });
    received.unwrap()
}

/// The next message to a member; meanwhile the Oracle's end works as well.
fn heard(bus: &mut dyn Bus, hub: &mut dyn Hub) -> Option<Vec<u8>> {
    let mut message = None;
    eventually(|| {
        let _ = hub.receive(SHORT).unwrap();
        message = bus.receive(SHORT).unwrap();
        message.is_some()
    });
    message
}

fn name(received: &Received) -> &str {
    match &received.from {
        Peer::Member(member) => &member.name,
        Peer::Local => panic!("a member's message"),
    }
}

#[test]
fn messages_go_both_ways() {
    let Some(site) = Site::new() else { return };
    let mut hub = site.hub();
    let mut agents = ["h1", "h2"].map(|name| site.join(&mut hub, name, Role::Agent));
    agents.iter_mut().for_each(|agent| agent.heard(7));
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
    assert_eq!((hub.counts().peers, hub.counts().rejected.sum()), (2, 0));
}
