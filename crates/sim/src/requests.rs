//! Requests of applications to hosts, from the moment of the request to the moment of its effect.
//!
//! An application has no access to a socket. It is called about an event, and its requests take effect a reaction time later,
//! as a process that is woken takes a while to answer. Its own clock is ahead by the same time, so that a timed action takes
//! effect exactly at its time. Applications are thus linked to hosts by a delay, as hosts are to each other, and a part of a
//! network can be simulated up to its lookahead without knowing the requests in another part.

use crate::calendar::{Event, kind};
use net::{LinkId, NodeId};
use plan::{FlowName, Message};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Time;

/// The longest that an application takes to react. In a network whose lookahead is longer, this is the lookahead of applications.
pub const REACTION_MAX: Time = Time::from_us(10);

/// A request.
#[derive(Debug)]
pub enum Request {
    /// So many more connections will be opened.
    Reserve(usize),
    /// A connection.
    Open(Box<Opened>),
    /// One end of a connection in a network of several parts.
    Join(Box<Joined>),
    /// See [`plan::Stage::write`].
    Write { flow: u32, bytes: u64 },
    /// See [`plan::Stage::set_deadline`].
    SetDeadline { flow: u32, due: Time },
    /// See [`plan::Stage::write_what_fits`].
    WriteWhatFits { flow: u32, bytes: u64 },
    /// See [`plan::Stage::send_datagram`].
    SendDatagram { flow: u32, bytes: u64 },
    /// See [`plan::Stage::stop_writing`].
    StopWriting { entry: u32 },
    /// See [`plan::Stage::notify_at`].
    NotifyAt { flow: u32, bytes: u64 },
    /// See [`plan::Stage::close`].
    Close { flow: u32 },
    /// The receiver closes.
    Finish { flow: u32 },
    /// This host controls the windows of its incoming connections.
    Share { host: u32 },
    /// A message that arrived then is entered with what the sender knows of it.
    Enter(Box<(Message, Time)>),
}

impl Request {
    /// The socket that it is for.
    fn socket(&self) -> u32 {
        match self {
            Request::Reserve(_) => 0,
            Request::Open(opened) => sender(opened.flow),
            Request::Write { flow, .. }
            | Request::SetDeadline { flow, .. }
            | Request::WriteWhatFits { flow, .. }
            | Request::SendDatagram { flow, .. }
            | Request::Close { flow } => sender(*flow),
            Request::NotifyAt { flow, .. } | Request::Finish { flow } => receiver(*flow),
            Request::Enter(message) => sender(message.0.flow),
            Request::Join(joined) => joined.socket,
            Request::StopWriting { .. } | Request::Share { .. } => u32::MAX,
        }
    }
}

/// Requests on their way, and the applications' clock.
pub struct Requests {
    reaction: Time,
    /// When a request made now takes effect.
    effect: Time,
    /// By number, which an event carries.
    pending: Vec<Option<Request>>,
    free: Vec<u32>,
    /// Requests that are not on the calendar yet.
    asked: Vec<(Time, Event)>,
    /// Actions of applications before they could have been called: when, which application, what.
    early: BinaryHeap<Reverse<(Time, u32, u32)>>,
}

impl Requests {
    /// None, of applications that react within `reaction`.
    pub fn new(reaction: Time) -> Requests {
        Requests {
            reaction,
            effect: Time::ZERO,
            pending: Vec::new(),
            free: Vec::new(),
            asked: Vec::new(),
            early: BinaryHeap::new(),
        }
    }

    /// An application hears of something that happens at `now`.
    pub fn begin(&mut self, now: Time) {
        self.effect = now + self.reaction;
    }

    /// When what the application hears of happens.
    pub fn heard_at(&self) -> Time {
        self.effect - self.reaction
    }

    /// When a request made now takes effect.
    pub fn effect(&self) -> Time {
        self.effect
    }

    /// Adds a request.
    pub fn ask(&mut self, request: Request) {
        self.ask_at(self.effect, request);
    }

    /// Adds a request that takes effect at `at`.
    pub fn ask_at(&mut self, at: Time, request: Request) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.pending.push(None);
            (self.pending.len() - 1) as u32
        });
        let socket = request.socket();
        self.asked.push((at, Event::host(kind::REQUEST, number, socket)));
        self.pending[number as usize] = Some(request);
    }

    /// The same for `socket`, whatever number it has in the request.
    pub fn ask_of(&mut self, socket: u32, at: Time, request: Request) {
        self.ask_at(at, request);
        if let Some((_, event)) = self.asked.last_mut() {
            *event = event.moved_to(socket);
        }
    }

    /// An application wants something to take effect at `at`, not before [`Requests::effect`].
    pub fn schedule(&mut self, at: Time, application: u32, which: u32) {
        if at < self.reaction {
            self.early.push(Reverse((at, application, which)));
        } else {
            self.asked.push((at - self.reaction, Event::host(kind::APP, which, application)));
        }
    }

    /// Before the run: the next thing that takes effect before any application could have been called; application and what it is.
    pub fn next_early(&mut self) -> Option<(u32, u32)> {
        let Reverse((at, application, which)) = self.early.pop()?;
        self.effect = at;
        Some((application, which))
    }

    /// Before the run: puts requests in the order of time and, at one instant, of applications and sockets, so that it
    /// does not matter in which order a file lists them.
    pub fn sort_asked(&mut self) {
        self.asked.sort_by_key(|(at, event)| (*at, event.place()));
    }

    /// Takes out the requests, with their due times.
    pub fn take_asked(&mut self) -> impl Iterator<Item = (Time, Event)> {
        self.asked.drain(..)
    }

    /// Request `number` takes effect.
    pub fn take(&mut self, number: u32) -> Request {
        self.free.push(number);
        self.pending[number as usize].take().expect("a request takes effect once")
    }
}

/// Between whom, and for which traffic entry.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub src: NodeId,
    pub dst: NodeId,
    pub entry: u32,
}

/// A requested connection.
#[derive(Debug)]
pub struct Opened {
    pub flow: u32,
    pub pair: Pair,
    pub name: FlowName,
    /// The links that data and acknowledgments pass.
    pub routes: [Vec<LinkId>; 2],
}

/// One end of a requested connection, for the part of the network that it is in.
#[derive(Debug)]
pub struct Joined {
    /// Its number in the whole network.
    pub socket: u32,
    pub entry: u32,
    pub name: FlowName,
    /// Where its route starts in the part's table.
    pub route: u32,
}

/// Socket of the sender of `flow`.
pub fn sender(flow: u32) -> u32 {
    flow * 2
}

/// Socket of the receiver of `flow`.
pub fn receiver(flow: u32) -> u32 {
    flow * 2 + 1
}

/// The flow of a socket.
pub fn flow_of(socket: u32) -> u32 {
    socket / 2
}
