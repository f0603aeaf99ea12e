//! What tests of the bus between machines share.

use bus::{Bus, Hub, Peer, Received, Report};
use policy::Host;
use std::time::Duration;
use testkit::{eventually, until};

pub const SHORT: Duration = Duration::from_millis(20);

pub fn report(name: &str) -> Vec<u8> {
    Report { host: Host { name: name.into(), ..Host::default() }, ..Report::default() }.to_bytes()
}

/// Sends until it is received: what is sent before both ends are connected is lost.
pub fn sent(bus: &mut dyn Bus, hub: &mut dyn Hub, message: &[u8]) -> Received {
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
pub fn heard(bus: &mut dyn Bus, hub: &mut dyn Hub) -> Option<Vec<u8>> {
    let mut message = None;
    eventually(|| {
        let _ = hub.receive(SHORT).unwrap();
        message = bus.receive(SHORT).unwrap();
        message.is_some()
    });
    message
}

/// Takes what comes until this holds, and what comes within a while after it.
pub fn all_until<H: Hub>(hub: &mut H, what: &str, holds: impl Fn(&H, &[Received]) -> bool) -> Vec<Received> {
    let mut taken = Vec::new();
    until(what, || {
        taken.extend(hub.receive(SHORT).unwrap());
        holds(hub, &taken)
    });
    taken.extend(all(hub));
    taken
}

/// All that comes, at least a message.
pub fn some<H: Hub>(hub: &mut H) -> Vec<Received> {
    all_until(hub, "a message arrives", |_, taken| !taken.is_empty())
}

/// All that comes within a while.
pub fn all(hub: &mut dyn Hub) -> Vec<Received> {
    std::iter::from_fn(|| hub.receive(Duration::from_millis(300)).unwrap()).collect()
}

pub fn name(received: &Received) -> &str {
    match &received.from {
        Peer::Member(member) => &member.name,
        Peer::Local => panic!("a member's message"),
    }
}
