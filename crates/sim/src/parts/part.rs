//! A part of a network while it runs: its own event set, links, packets and sockets.

use super::mail::Mail;
use crate::calendar::Event;
use crate::core::{Core, Hear, Socket};
use crate::requests::{Joined, Request, Requests};
use net::LinkTable;
use plan::Arrived;
use std::collections::BTreeMap;
use std::sync::Arc;
use tcp::Endpoint;
use units::Time;

/// A packet between two parts.
#[derive(Clone, Copy)]
pub struct Crossing {
    /// When it reaches the far end of the link that it is on.
    pub arrives: Time,
    /// At its place in the table of the part that it comes to.
    pub event: Event,
}

/// A part.
pub struct Part {
    pub core: Core,
    pub ends: Ends,
    /// The last turn whose mail it has taken.
    taken: usize,
}

impl Part {
    /// Nothing has happened in it.
    pub fn new(core: Core, ends: Ends) -> Part {
        Part { core, ends, taken: 0 }
    }

    /// Takes in what other parts have sent for `turn` to this one, of this number, unless it has.
    pub fn take_in(&mut self, mail: &Mail<Crossing>, turn: usize, number: usize) {
        if !self.has_taken(turn) {
            mail.take(turn, number, |crossing| self.core.fabric.enter(crossing));
            self.taken = turn;
        }
    }

    /// Whether it has taken in what was sent for `turn`.
    pub fn has_taken(&self, turn: usize) -> bool {
        self.taken == turn
    }

    /// A socket that is here already.
    pub fn socket(&self, number: u32) -> Option<&Socket> {
        self.core.sockets.get(number as usize)
    }

    /// Requests `request` of a socket that is here at `at`, or of all if it is for none.
    pub fn post(&mut self, socket: u32, at: Time, request: Request) {
        self.core.requests.ask_of(socket, at, request);
        self.core.post_requests();
    }

    /// Its links, and the far ends of others.
    pub fn links(&mut self) -> &mut LinkTable {
        &mut self.core.fabric.links
    }
}

/// What of a connection is known at one of its ends.
pub struct End {
    /// Number of the socket in the whole network.
    pub socket: u32,
    /// The traffic entry.
    pub entry: u32,
    /// Application bytes to send.
    pub bytes: u64,
}

/// Something that an application hears of when the window ends.
#[derive(Clone, Copy)]
pub struct Heard {
    pub at: Time,
    /// Number of the socket in the whole network.
    pub socket: u32,
    pub what: What,
}

/// See [`Hear`], and [`plan::Applications::on_full`].
#[derive(Clone, Copy)]
pub enum What {
    Received,
    Room,
    Full,
}

/// The sockets of a part, where requests take effect; and what applications are to hear.
pub struct Ends {
    /// By number in the part.
    pub list: Vec<End>,
    pub heard: Vec<Heard>,
    /// Messages that have arrived, with the times at which they were entered; those that are asked for.
    pub messages: Option<Vec<(Time, Arrived)>>,
    /// Routes that have changed since sockets were requested, by socket.
    pub moved: BTreeMap<u32, u32>,
    /// As of [`crate::flows::Flows`], by socket.
    kept: BTreeMap<u32, u64>,
    /// Of each entry: its stack, and whether it sends datagrams.
    stacks: Arc<[(Arc<tcp::Config>, bool)]>,
    /// The run's.
    seed: u64,
}

impl Ends {
    /// No sockets yet.
    pub fn new(stacks: Arc<[(Arc<tcp::Config>, bool)]>, seed: u64, messages: bool) -> Ends {
        Ends {
            list: Vec::new(),
            heard: Vec::new(),
            messages: messages.then(Vec::new),
            moved: BTreeMap::new(),
            kept: BTreeMap::new(),
            stacks,
            seed,
        }
    }

    /// One end of a connection, as [`crate::flows::Flows::open`] makes both.
    fn join(&mut self, core: &mut Core, joined: &Joined) {
        let (config, is_udp) = &self.stacks[joined.entry as usize];
        let sends = joined.socket.is_multiple_of(2);
        let number = core.sockets.len() as u32;
        let route = self.moved.remove(&number).unwrap_or(joined.route);
        self.list.push(End { socket: joined.socket, entry: joined.entry, bytes: 0 });
        if *is_udp {
            core.add_socket_at(Endpoint::listen(config, 0, 0), route, false);
            if sends {
                core.datagrams.insert(number, 0);
            }
            return;
        }
        let mut random = joined.name.random(self.seed);
        let mut draw = || (random.bits(), random.bits());
        let active = draw();
        let (iss, seed) = if sends { active } else { draw() };
        let tcp = if sends { Endpoint::connect(config, iss, seed) } else { Endpoint::listen(config, iss, seed) };
        core.add_socket_at(tcp, route, config.limit_output);
        if sends {
            core.pump(number);
        }
    }

    fn hear(&mut self, at: Time, socket: u32, what: What) {
        self.heard.push(Heard { at, socket: self.list[socket as usize].socket, what });
    }
}

impl Hear for Ends {
    fn on_received(&mut self, _: &mut Requests, socket: u32, now: Time) {
        self.hear(now, socket, What::Received);
    }

    fn on_room(&mut self, requests: &mut Requests, socket: u32) {
        self.hear(requests.heard_at(), socket, What::Room);
    }

    fn on_app(&mut self, _: &mut Requests, _: u32, _: u32) {
        unreachable!("applications have the director's clock");
    }

    fn on_request(&mut self, core: &mut Core, request: Request, socket: u32) {
        match request {
            Request::Join(joined) => self.join(core, &joined),
            Request::Write { bytes, .. } => {
                self.list[socket as usize].bytes += bytes;
                core.write(socket, bytes);
            }
            Request::SetDeadline { due, .. } => core.sockets[socket as usize].tcp.set_deadline(due),
            Request::WriteWhatFits { bytes, .. } => {
                let (taken, room) = core.write_what_fits(socket, bytes);
                self.list[socket as usize].bytes += taken;
                if !room {
                    self.hear(core.now(), socket, What::Full);
                }
            }
            Request::SendDatagram { bytes, .. } => {
                self.list[socket as usize].bytes += bytes;
                core.send_datagram(socket, bytes);
            }
            Request::StopWriting { entry } => {
                for (number, end) in self.list.iter_mut().enumerate() {
                    if end.entry == entry && end.socket.is_multiple_of(2) {
                        end.bytes = core.stop_writing(number as u32, end.bytes);
                    }
                }
            }
            Request::NotifyAt { bytes, .. } => core.notify_at(socket, bytes),
            Request::Close { .. } | Request::Finish { .. } => core.close(socket),
            Request::Enter(message) => {
                let (message, end) = *message;
                let retransmits = u64::from(core.sockets[socket as usize].tcp.stats().retransmits);
                let before = self.kept.insert(socket, retransmits).unwrap_or(0);
                if let Some(messages) = &mut self.messages {
                    messages.push((core.now(), Arrived { message, end, retransmits: retransmits - before }));
                }
            }
            Request::Reserve(_) | Request::Open(_) | Request::Share { .. } => {
                unreachable!("the director keeps them")
            }
        }
    }
}
