//! Networks small enough to compute by hand.

use net::{Ecn, LinkId, LinkParams, LinkTable, Outcome, QueueSpec, Topology};
use units::{Rate, Time};

/// At 8 Gbit/s a byte lasts 1 ns, which makes sums readable.
pub fn gbps8() -> Rate {
    Rate::from_gbps(8)
}

pub fn params(rate: Rate, queue: QueueSpec) -> LinkParams {
    LinkParams { rate, delay: Time::from_us(5), queue }
}

/// A network whose link 0 is as given.
pub fn one_link(rate: Rate, queue: QueueSpec) -> LinkTable {
    let params = params(rate, queue);
    LinkTable::new(&Topology::star(1, |_| params).unwrap(), 42).unwrap()
}

pub const LINK: LinkId = LinkId(0);

/// Offers a packet that is not ECN-capable; when it departs, if it is accepted.
pub fn offer(links: &mut LinkTable, link: LinkId, now: Time, len: u16) -> Option<Time> {
    match links.offer(link, now, len, Ecn::NotEct) {
        Outcome::Dropped | Outcome::Held => None,
        Outcome::Accepted { departs, .. } => Some(departs),
    }
}

/// Offers a packet with these ECN bits; whether it is marked, if it is accepted.
pub fn offer_ecn(links: &mut LinkTable, link: LinkId, now: Time, len: u16, ecn: Ecn) -> Option<bool> {
    match links.offer(link, now, len, ecn) {
        Outcome::Dropped | Outcome::Held => None,
        Outcome::Accepted { marked, .. } => Some(marked),
    }
}
