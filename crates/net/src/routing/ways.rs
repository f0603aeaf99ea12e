//! All ways between two hosts with their shares, for flows whose packets are spread over several.

use super::{FAR, Router};
use crate::mix::mix64;
use crate::{LinkId, NodeId};

/// One of the ways between two hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// Its links.
    pub links: Vec<LinkId>,
    /// The share of packets that takes it, if each switch chooses for each packet; those of all ways add up to one.
    pub share: f64,
}

/// Ways, as far as they are found; none: there are more than `most`.
struct Found {
    ways: Vec<Way>,
    most: usize,
    /// Those being found: the links so far.
    links: Vec<LinkId>,
}

impl Router {
    /// The ways that packets from `src` to `dst` may take by the routing, at most `most`: if there are more, so many are drawn
    /// by `hash`. Empty if there is none.
    pub fn ways(&self, src: NodeId, dst: NodeId, hash: u32, most: usize) -> Vec<Way> {
        let mut path = Vec::new();
        if self.path(src, dst, hash, &mut path).is_err() {
            return Vec::new();
        }
        let mut found = Found { ways: Vec::new(), most, links: Vec::new() };
        if self.servers.is_none() && self.scaled.is_none() && self.find(src, dst, &mut found).is_some() {
            return found.ways;
        }
        let share = 1.0 / most as f64;
        let drawn = (0..most as u64).filter_map(|i| {
            let mut links = Vec::new();
            let hash = (mix64((u64::from(hash) << 32) | i) >> 32) as u32;
            self.path(src, dst, hash, &mut links).ok().map(|()| Way { links, share })
        });
        drawn.collect()
    }

    /// None: there are too many.
    fn find(&self, src: NodeId, dst: NodeId, found: &mut Found) -> Option<()> {
        let ((nic, start), (back, end)) = (self.attachments[src.index()], self.attachments[dst.index()]);
        found.links.push(nic);
        let (Some(start), Some(end)) = (self.switch(start), self.switch(end)) else {
            found.ways.push(Way { links: found.links.clone(), share: 1.0 });
            return Some(());
        };
        let vias: Vec<u32> = match self.detours(start, end) {
            Some(vias) => vias.iter().copied().filter(|via| self.is_between(start, *via, end)).collect(),
            None => vec![end],
        };
        for via in &vias {
            self.descend(start, &[*via, end], 1.0 / vias.len() as f64, (back.reverse(), found))?;
        }
        Some(())
    }

    /// All ways on from `at` over the switches `ends`, one after the other, and then `last`.
    fn descend(&self, at: u32, ends: &[u32], share: f64, (last, found): (LinkId, &mut Found)) -> Option<()> {
        let Some((end, rest)) = ends.split_first() else {
            let links = found.links.iter().copied().chain([last]).collect();
            found.ways.push(Way { links, share });
            return (found.ways.len() <= found.most).then_some(());
        };
        if at == *end {
            return self.descend(at, rest, share, (last, found));
        }
        let distances = self.distances(*end);
        if distances[at as usize] == FAR {
            return Some(());
        }
        let nearer: Vec<(LinkId, u32)> = self.nearer(at, distances).copied().collect();
        let weight = |link: LinkId| self.weights.as_ref().map_or(1.0, |rates| rates[link.index()] as f64);
        let all: f64 = nearer.iter().map(|(link, _)| weight(*link)).sum();
        for (link, to) in nearer {
            found.links.push(link);
            self.descend(to, ends, share * weight(link) / all, (last, found))?;
            found.links.pop();
        }
        Some(())
    }
}
