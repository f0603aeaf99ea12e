//! What is done between two windows: applications hear, and what they ask for goes to the parts that it concerns.

use super::layout::Layout;
use super::part::{Heard, Part, What};
use crate::calendar::kind;
use crate::core::Hear;
use crate::fabric::Onward;
use crate::flows::Flow;
use crate::requests::{Joined, Opened, Request, Requests, flow_of, receiver, sender};
use crate::traffic::Traffic;
use net::LinkId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Time;

/// Where everything is, and what applications wait for.
pub struct Director {
    /// By link: the part that has it, and its number there.
    near: Vec<(u32, LinkId)>,
    /// By link: the other parts where its packets arrive, and its far end's number there.
    far: Vec<Vec<(u32, LinkId)>>,
    /// By flow: its sender and its receiver.
    places: Vec<[Place; 2]>,
    /// By part: sockets that have been requested.
    sockets: Vec<u32>,
    pub requests: Requests,
    /// Actions of applications: when, in which order they were scheduled, which application, what.
    timers: BinaryHeap<Reverse<(Time, u64, u32, u32)>>,
    scheduled: u64,
    /// Requests that have not been handed on yet.
    asked: Vec<(Time, Request)>,
}

/// Where a socket is, or will be.
#[derive(Clone, Copy)]
struct Place {
    part: u32,
    /// Its number in the part.
    socket: u32,
    /// Where its route starts in the part's table.
    route: u32,
}

impl Director {
    /// `own` are the links of each part.
    pub fn new(layout: &Layout, own: &[Vec<LinkId>], requests: Requests) -> Director {
        let mut near = vec![(0, LinkId(0)); layout.owners.len()];
        for (part, links) in own.iter().enumerate() {
            for (number, link) in links.iter().enumerate() {
                near[link.index()] = (part as u32, LinkId(number as u32));
            }
        }
        Director {
            far: vec![Vec::new(); near.len()],
            near,
            places: Vec::new(),
            sockets: vec![0; layout.parts],
            requests,
            timers: BinaryHeap::new(),
            scheduled: 0,
            asked: Vec::new(),
        }
    }

    pub fn n_links(&self) -> usize {
        self.near.len()
    }

    pub fn near(&self, link: LinkId) -> (u32, LinkId) {
        self.near[link.index()]
    }

    pub fn far_ends(&self, link: LinkId) -> &[(u32, LinkId)] {
        &self.far[link.index()]
    }

    /// Calls `f` for each link of `part`, with its number there.
    pub fn for_each_near(&self, part: u32, mut f: impl FnMut(LinkId, LinkId)) {
        for (link, (_, number)) in self.near.iter().enumerate().filter(|(_, (owner, _))| *owner == part) {
            f(LinkId(link as u32), *number);
        }
    }

    /// The part of a requested socket, and its number there.
    pub fn place(&self, socket: u32) -> (u32, u32) {
        let Place { part, socket, .. } = self.of(socket);
        (part, socket)
    }

    fn of(&self, socket: u32) -> Place {
        self.places[flow_of(socket) as usize][socket as usize % 2]
    }

    /// Number of flows that have been opened, of those that are requested: they are opened in that order.
    pub fn opened(&self, parts: &[Part]) -> usize {
        self.places.partition_point(|[place, _]| parts[place.part as usize].socket(place.socket).is_some())
    }

    /// When an application acts next.
    pub fn next(&self) -> Time {
        self.timers.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at)
    }

    /// There are requests to be handed on.
    pub fn has_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Takes over what applications have just asked for.
    pub fn collect(&mut self) {
        let asked: Vec<_> = self.requests.take_asked().collect();
        for (at, event) in asked {
            if event.tag() & kind::MASK == kind::APP {
                self.scheduled += 1;
                self.timers.push(Reverse((at, self.scheduled, event.place(), event.what())));
            } else {
                let request = self.requests.take(event.what());
                self.asked.push((at, request));
            }
        }
    }

    /// Lets applications act, and hear what has happened, up to `until`: in the order of time, at one instant their own actions first and
    /// the rest by part.
    pub fn hear(&mut self, until: Time, traffic: &mut Traffic, parts: &mut [&mut Part]) {
        let mut heard: Vec<Heard> = parts.iter_mut().flat_map(|part| part.ends.heard.drain(..)).collect();
        heard.sort_by_key(|heard| heard.at);
        let mut heard = heard.into_iter().peekable();
        loop {
            let next = heard.peek().map_or(Time::NEVER, |heard| heard.at);
            if self.next() < until && self.next() <= next {
                let Reverse((at, _, application, which)) = self.timers.pop().expect("it is the next");
                self.requests.begin(at);
                traffic.on_app(&mut self.requests, application, which);
            } else if let Some(Heard { at, socket, what }) = heard.next() {
                self.requests.begin(at);
                match what {
                    What::Received => traffic.on_received(&mut self.requests, socket, at),
                    What::Room => traffic.on_room(&mut self.requests, socket),
                    What::Full => traffic.on_full(&mut self.requests, socket),
                }
            } else {
                return;
            }
            self.collect();
        }
    }

    /// Hands requests on to the parts that they concern; when the first of them takes effect.
    pub fn hand_on(&mut self, traffic: &mut Traffic, parts: &mut [&mut Part]) -> Time {
        let mut first = Time::NEVER;
        for (at, request) in std::mem::take(&mut self.asked) {
            first = first.min(at);
            let socket = match &request {
                Request::Write { flow, .. }
                | Request::SetDeadline { flow, .. }
                | Request::WriteWhatFits { flow, .. }
                | Request::SendDatagram { flow, .. }
                | Request::Close { flow } => sender(*flow),
                Request::Enter(message) => sender(message.0.flow),
                Request::NotifyAt { flow, .. } | Request::Finish { flow } => receiver(*flow),
                Request::Reserve(n) => {
                    traffic.flows.list.reserve_exact(*n);
                    self.places.reserve_exact(*n);
                    continue;
                }
                Request::StopWriting { entry } => {
                    let entry = *entry;
                    for part in parts.iter_mut() {
                        part.post(u32::MAX, at, Request::StopWriting { entry });
                    }
                    continue;
                }
                Request::Open(_) => {
                    let Request::Open(opened) = request else { unreachable!("it was just seen") };
                    self.open(at, &opened, traffic, parts);
                    continue;
                }
                Request::Share { .. } | Request::Join(_) => unreachable!("no application asks for it here"),
            };
            let (part, number) = self.place(socket);
            parts[part as usize].post(number, at, request);
        }
        first
    }

    /// Both ends of a connection, each for its part.
    fn open(&mut self, at: Time, opened: &Opened, traffic: &mut Traffic, parts: &mut [&mut Part]) {
        let Opened { flow, pair, name, routes } = opened;
        let list = &mut traffic.flows.list;
        assert_eq!(list.len() as u32, *flow, "flows are opened in the order in which they are asked for");
        let (src, dst) = (pair.src.0, pair.dst.0);
        list.push(Flow { entry: pair.entry, src, dst, arm: None, start: at, end: Time::NEVER, bytes: 0 });
        let places = routes.each_ref().map(|route| {
            let part = self.near(route[0]).0;
            let socket = self.sockets[part as usize];
            self.sockets[part as usize] += 1;
            (part, socket)
        });
        let ends = [(sender(*flow), 0, 1), (receiver(*flow), 1, 0)];
        let placed = ends.map(|(socket, own, peer)| {
            let route = self.lay(&routes[own], places[peer].1, parts);
            let joined = Joined { socket, entry: pair.entry, name: *name, route };
            let (part, number) = places[own];
            parts[part as usize].post(number, at, Request::Join(Box::new(joined)));
            Place { part, socket: number, route }
        });
        self.places.push(placed);
    }

    /// Puts the pieces of a route to the socket `peer` in the tables of the parts that it passes; where it starts in the first.
    fn lay(&mut self, route: &[LinkId], peer: u32, parts: &mut [&mut Part]) -> u32 {
        let mut onward = Onward::Socket(peer);
        let mut end = route.len();
        loop {
            let part = self.near(route[end - 1]).0;
            let start = route[..end].iter().rposition(|link| self.near(*link).0 != part).map_or(0, |last| last + 1);
            let before = start.checked_sub(1).map(|last| self.far_end(route[last], part, parts));
            let links: Vec<LinkId> =
                before.into_iter().chain(route[start..end].iter().map(|link| self.near(*link).1)).collect();
            let place = parts[part as usize].core.fabric.routes.add_piece(&links, onward);
            if start == 0 {
                return place;
            }
            (onward, end) = (Onward::Part { part, place }, start);
        }
    }

    /// The far end of `link` in `part`.
    fn far_end(&mut self, link: LinkId, part: u32, parts: &mut [&mut Part]) -> LinkId {
        if let Some((_, end)) = self.far[link.index()].iter().find(|(there, _)| *there == part) {
            return *end;
        }
        let (owner, near) = self.near(link);
        let epoch = parts[owner as usize].core.fabric.links.epoch(near);
        let end = parts[part as usize].core.fabric.links.add_far_end(epoch);
        self.far[link.index()].push((part, end));
        end
    }

    /// Gives every open flow, and every requested one, whose path has a link that is down a new path, if there is one.
    pub fn reroute(&mut self, traffic: &mut Traffic, parts: &mut [&mut Part]) {
        let mut opened = vec![0; traffic.names().len()];
        for flow in 0..traffic.flows.list.len() {
            let Flow { entry, .. } = traffic.flows.list[flow];
            let number = opened[entry as usize];
            opened[entry as usize] += 1;
            for forward in [true, false] {
                let own = usize::from(!forward);
                let (place, peer) = (self.places[flow][own], self.places[flow][1 - own]);
                let closed = |part: &Part| part.socket(place.socket).is_some_and(|socket| socket.tcp.is_closed());
                if closed(parts[place.part as usize]) || works(place, parts) {
                    continue;
                }
                let Some(path) = traffic.path(flow, number, forward) else { continue };
                let route = self.lay(&path, peer.socket, parts);
                self.places[flow][own].route = route;
                let part = &mut *parts[place.part as usize];
                if part.socket(place.socket).is_some() {
                    part.core.reroute_at(place.socket, route);
                } else {
                    part.ends.moved.insert(place.socket, route);
                }
            }
        }
    }
}

/// Whether all links of the route that starts at `place` work.
fn works(Place { part, route, .. }: Place, parts: &[&mut Part]) -> bool {
    let (mut part, mut place) = (part, route);
    loop {
        let fabric = &parts[part as usize].core.fabric;
        let (mut links, onward) = fabric.routes.piece(place);
        if links.any(|link| link.index() < fabric.links.len() && !fabric.links.is_up(link)) {
            return false;
        }
        match onward {
            Onward::Socket(_) => return true,
            Onward::Part { part: next, place: start } => (part, place) = (next, start),
        }
    }
}
