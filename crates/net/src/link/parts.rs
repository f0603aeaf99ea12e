//! The links of a network that is simulated in parts: a table for each part, of the links whose near ends it has. A link whose far end is
//! in another part arrives there in a record of its own.

use super::{Far, LinkTable};
use crate::LinkId;

impl LinkTable {
    /// A table of these `links` alone, as they are, numbered from 0 in this order. A switch's shared buffer comes along if its ports do.
    ///
    /// # Panics
    /// If some ports of a shared buffer are among them, and others are not.
    #[must_use]
    pub fn subset(&self, links: &[LinkId]) -> LinkTable {
        let mut part = LinkTable::default();
        for &link in links {
            part.copy_of(self, link);
        }
        let mut places = vec![None; self.hot.len()];
        for (place, link) in links.iter().enumerate() {
            places[link.index()] = Some(LinkId(place as u32));
        }
        for buffer in &self.buffers {
            let ports = &buffer.ports;
            if ports.iter().all(|port| places[port.index()].is_none()) {
                continue;
            }
            let own = |port: &LinkId| places[port.index()].expect("the ports of a buffer are in one part");
            let ports: Vec<LinkId> = ports.iter().map(own).collect();
            for port in &ports {
                part.cold[port.index()].buffer = Some(part.buffers.len() as u32);
            }
            part.buffers.push(buffer.at(ports));
        }
        part
    }

    fn copy_of(&mut self, whole: &LinkTable, link: LinkId) {
        let old = &whole.hot[link.index()];
        let mut hot = old.clone();
        hot.ring = self.rings.claim((old.ring_mask + 1).ilog2() as u8);
        for n in old.accepted - u64::from(old.queued)..old.accepted {
            self.rings.lengths[hot.slot(n)] = whole.rings.lengths[old.slot(n)];
        }
        self.hot.push(hot);
        self.far.push(whole.far[link.index()].clone());
        self.warm.push(whole.warm[link.index()].clone());
        self.cold.push(whole.cold[link.index()].clone());
    }

    /// Adds the far end of a link whose near end is in another table: packets [arrive](LinkTable::arrived) there, and none are offered.
    /// `epoch` is the link's. No link can be added after it.
    pub fn add_far_end(&mut self, epoch: u8) -> LinkId {
        self.far.push(Far { delivered: 0, lost: 0, epoch });
        LinkId((self.far.len() - 1) as u32)
    }

    /// The link of this far end has failed, and has a new epoch.
    pub fn fail_far_end(&mut self, link: LinkId, epoch: u8) {
        self.far[link.index()].epoch = epoch;
    }

    /// Packets that have arrived at a far end, or of any link, and those that were under way there when it failed.
    pub fn arrivals(&self, link: LinkId) -> (u64, u64) {
        let far = &self.far[link.index()];
        (far.delivered, u64::from(far.lost))
    }

    /// Number of links and far ends.
    pub fn ends(&self) -> usize {
        self.far.len()
    }
}

#[cfg(test)]
mod tests {
    use crate::{BufferSpec, Ecn, LinkId, LinkParams, LinkTable, Outcome, QueueSpec, SharedSpec, Topology};
    use units::{Rate, Time};

    fn star() -> Topology {
        let queue = QueueSpec::drop_tail(3);
        Topology::star(3, |_| LinkParams { rate: Rate::from_gbps(10), delay: Time::from_us(1), queue }).unwrap()
    }

    /// Links 1, 3 and 5 leave the switch.
    const PORTS: [LinkId; 3] = [LinkId(1), LinkId(3), LinkId(5)];

    fn offer(table: &mut LinkTable, link: LinkId) -> Outcome {
        table.offer(link, Time::ZERO, 1538, Ecn::NotEct)
    }

    #[test]
    fn a_part_has_its_links_as_they_were() {
        let mut whole = LinkTable::new(&star(), 1).unwrap();
        whole.lose(LinkId(5), 0.5, 7);
        for _ in 0..2 {
            assert!(matches!(offer(&mut whole, LinkId(3)), Outcome::Accepted { .. }));
        }
        let mut part = whole.subset(&PORTS);
        assert_eq!(part.queue_len(LinkId(1), Time::ZERO), whole.queue_len(LinkId(3), Time::ZERO));
        for _ in 0..20 {
            for (place, link) in PORTS.iter().enumerate() {
                assert_eq!(offer(&mut part, LinkId(place as u32)), offer(&mut whole, *link));
                assert_eq!(part.counters(LinkId(place as u32)), whole.counters(*link));
            }
        }
    }

    #[test]
    fn a_shared_buffer_stays_shared() {
        let mut topology = star();
        topology.set_switch_buffers(BufferSpec::Shared(SharedSpec::new(units::Bytes::new(4000), 8.0)));
        let whole = LinkTable::new(&topology, 1).unwrap();
        let mut part = whole.subset(&PORTS);
        assert!(matches!(offer(&mut part, LinkId(0)), Outcome::Accepted { .. }));
        assert!(matches!(offer(&mut part, LinkId(1)), Outcome::Accepted { .. }));
        assert_eq!(offer(&mut part, LinkId(2)), Outcome::Dropped, "1538 bytes do not fit 4000 with 3076");
    }

    #[test]
    fn a_far_end_knows_packets_that_a_failure_has_lost() {
        let mut near = LinkTable::new(&star(), 1).unwrap();
        let mut far = near.subset(&PORTS[..1]);
        let end = far.add_far_end(near.epoch(LinkId(3)));
        let Outcome::Accepted { epoch, .. } = offer(&mut near, LinkId(3)) else { panic!("it is accepted") };
        assert!(far.arrived(end, epoch));
        let Outcome::Accepted { epoch, .. } = offer(&mut near, LinkId(3)) else { panic!("it is accepted") };
        near.fail(LinkId(3), Time::from_us(1));
        far.fail_far_end(end, near.epoch(LinkId(3)));
        assert!(!far.arrived(end, epoch));
        assert_eq!(far.arrivals(end), (1, 1));
    }
}
