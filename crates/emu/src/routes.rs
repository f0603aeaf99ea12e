//! The links that a packet takes: found once per pair of hosts and hash, then cached.

use crate::port::Head;
use net::{LinkId, NodeId, Router};
use std::collections::BTreeMap;

/// Source, destination, hash.
type Key = (u32, u32, u32);

/// The routes in use.
pub struct Routes {
    router: Router,
    known: BTreeMap<Key, u32>,
    /// The last answer: packets come in bursts.
    last: Option<(Key, u32)>,
    /// Routes by number. Packets in flight keep theirs when a failure changes the route of later ones.
    links: Vec<Box<[LinkId]>>,
}

impl Routes {
    /// Routes that `router` finds.
    pub fn new(router: Router) -> Routes {
        Routes { router, known: BTreeMap::new(), last: None, links: Vec::new() }
    }

    /// The number of a packet's route; `None` if no working links lead to its destination.
    pub fn of(&mut self, head: &Head) -> Option<u32> {
        let key = (head.src, head.dst, head.hash);
        if let Some((last, route)) = self.last
            && last == key
        {
            return Some(route);
        }
        let route = match self.known.get(&key) {
            Some(route) => *route,
            None => self.find(key)?,
        };
        self.last = Some((key, route));
        Some(route)
    }

    fn find(&mut self, key: Key) -> Option<u32> {
        let mut path = Vec::new();
        self.router.path(NodeId(key.0), NodeId(key.1), key.2, &mut path).ok()?;
        let route = self.links.len() as u32;
        self.links.push(path.into());
        self.known.insert(key, route);
        Some(route)
    }

    /// The links of a route.
    pub fn links(&self, route: u32) -> &[LinkId] {
        &self.links[route as usize]
    }

    /// Links fail or recover; as in the simulator, a flow whose path works keeps it.
    pub fn change(&mut self, links: &[LinkId], fails: bool) {
        for &link in links {
            if fails { self.router.fail(link) } else { self.router.restore(link) }
        }
        if fails {
            self.last = None;
            let routes = &self.links;
            self.known.retain(|_, route| !routes[*route as usize].iter().any(|link| links.contains(link)));
        }
    }
}
