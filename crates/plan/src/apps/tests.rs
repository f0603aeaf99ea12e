//! What applications ask for and when, on a stage of paper: a network in which every message takes the time that the test says, so that the
//! ends of rounds and jobs can be worked out by hand.

mod flows;
mod jobs;
mod rounds;

use super::*;
use crate::topology;
use net::Topology;
use std::collections::BTreeMap;

/// What is to come.
enum Due {
    /// An event of an entry.
    App { entry: u32, which: u32 },
    /// The bytes that an entry waits for have arrived.
    Received { entry: u32, flow: u32 },
}

/// What applications have asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Open(Opening, NodeId, NodeId),
    Write(u32, u64),
    NotifyAt(u32, u64),
    Close(u32),
    Finish(u32),
    Datagram(u32, u64),
    StopWriting(u32),
    Deadline(u32, Time),
}

/// The stage.
struct Paper {
    topology: Topology,
    hosts_per_pod: usize,
    now: Time,
    /// By time, and then in the order in which it was asked for.
    agenda: BTreeMap<(Time, usize), Due>,
    scheduled: usize,
    /// The entry of each flow.
    flows: Vec<u32>,
    reserved: usize,
    /// How long a message on a flow takes.
    takes: fn(u32) -> Time,
    /// Between these hosts there is no path.
    cut: Option<(u32, u32)>,
    asked: Vec<(Time, Asked)>,
    messages: Vec<(Message, Time)>,
}

impl Paper {
    fn add(&mut self, at: Time, due: Due) {
        self.agenda.insert((at, self.scheduled), due);
        self.scheduled += 1;
    }

    fn ask(&mut self, what: Asked) {
        self.asked.push((self.now, what));
    }
}

impl Stage for Paper {
    fn now(&self) -> Time {
        self.now
    }

    fn pairing(&self) -> Pairing<'_> {
        Pairing { topology: &self.topology, hosts_per_pod: self.hosts_per_pod }
    }

    fn schedule(&mut self, at: Time, entry: u32, which: u32) {
        self.add(at, Due::App { entry, which });
    }

    fn opened(&self) -> usize {
        self.flows.len()
    }

    fn reserve(&mut self, n: usize) {
        self.reserved += n;
    }

    fn open(&mut self, src: NodeId, dst: NodeId, opening: Opening) -> Option<u32> {
        if self.cut == Some((src.0, dst.0)) {
            return None;
        }
        self.ask(Asked::Open(opening, src, dst));
        self.flows.push(opening.entry);
        Some(self.flows.len() as u32 - 1)
    }

    fn write(&mut self, flow: u32, bytes: u64) {
        self.ask(Asked::Write(flow, bytes));
    }

    fn set_deadline(&mut self, _entry: u32, flow: u32, due: Time) {
        self.ask(Asked::Deadline(flow, due));
    }

    fn write_what_fits(&mut self, flow: u32, bytes: u64) {
        self.ask(Asked::Write(flow, bytes));
    }

    fn send_datagram(&mut self, flow: u32, bytes: u64) {
        self.ask(Asked::Datagram(flow, bytes));
    }

    fn stop_writing(&mut self, entry: u32) {
        self.ask(Asked::StopWriting(entry));
    }

    fn notify_at(&mut self, flow: u32, bytes: u64) {
        self.ask(Asked::NotifyAt(flow, bytes));
        let (at, entry) = (self.now + (self.takes)(flow), self.flows[flow as usize]);
        self.add(at, Due::Received { entry, flow });
    }

    fn close(&mut self, flow: u32) {
        self.ask(Asked::Close(flow));
    }

    fn finish(&mut self, flow: u32, _end: Time) {
        self.ask(Asked::Finish(flow));
    }

    fn on_message(&mut self, message: Message, end: Time) {
        self.messages.push((message, end));
    }
}

/// A run that has ended: what was asked for, and the applications.
struct Play {
    paper: Paper,
    applications: Applications,
}

/// Plays a scenario to its end.
fn play(scenario: &Scenario, takes: fn(u32) -> Time) -> Play {
    play_with(scenario, takes, None)
}

/// The same without a path between two hosts.
fn play_with(scenario: &Scenario, takes: fn(u32) -> Time, cut: Option<(u32, u32)>) -> Play {
    let topology = topology(scenario).expect("a checked scenario has a network");
    let hosts_per_pod = Pairing::of(scenario, &topology).hosts_per_pod;
    let mut paper = Paper {
        topology,
        hosts_per_pod,
        now: Time::ZERO,
        agenda: BTreeMap::new(),
        scheduled: 0,
        flows: Vec::new(),
        reserved: 0,
        takes,
        cut,
        asked: Vec::new(),
        messages: Vec::new(),
    };
    let mut applications = Applications::new(scenario, &mut paper);
    while let Some(((at, _), due)) = paper.agenda.pop_first() {
        if at > scenario.duration {
            break;
        }
        paper.now = at;
        match due {
            Due::App { entry, which } => applications.on_app(&mut paper, entry, which),
            Due::Received { entry, flow } => applications.on_received(&mut paper, (entry, flow), at),
        }
    }
    Play { paper, applications }
}

impl Play {
    /// When each flow was opened, from which host to which, numbered from 0.
    fn opened(&self) -> Vec<(Time, u32, u32)> {
        let open = |(at, asked): &(Time, Asked)| match asked {
            Asked::Open(_, src, dst) => Some((*at, src.0, dst.0)),
            _ => None,
        };
        self.paper.asked.iter().filter_map(open).collect()
    }

    /// What was written, when, to which flow.
    fn written(&self) -> Vec<(Time, u32, u64)> {
        let write = |(at, asked): &(Time, Asked)| match asked {
            Asked::Write(flow, bytes) => Some((*at, *flow, *bytes)),
            _ => None,
        };
        self.paper.asked.iter().filter_map(write).collect()
    }

    /// When this was asked for.
    fn times(&self, what: Asked) -> Vec<Time> {
        self.paper.asked.iter().filter(|(_, asked)| *asked == what).map(|(at, _)| *at).collect()
    }

    /// How often something of this kind was asked for.
    fn count(&self, is: fn(&Asked) -> bool) -> usize {
        self.paper.asked.iter().filter(|(_, asked)| is(asked)).count()
    }
}

/// A scenario on four hosts at one switch.
fn star(duration: &str, traffic: &str) -> Scenario {
    star_with(duration, traffic, &[])
}

fn star_with(duration: &str, traffic: &str, files: &[(&str, &str)]) -> Scenario {
    let text = format!("duration = \"{duration}\"\n[network]\ntopology = {{ star = {{ hosts = 4 }} }}\n{traffic}\n");
    testkit::scenario_with(&text, files)
}

/// One entry.
fn entry(of: &str) -> String {
    format!("[[traffic]]\n{of}\n")
}

const fn ms(ms: u64) -> Time {
    Time::from_ms(ms)
}

/// Every message takes a millisecond.
fn one_ms(_flow: u32) -> Time {
    ms(1)
}

/// A message on the first flow takes a millisecond, on the next two, and so on.
fn by_flow(flow: u32) -> Time {
    ms(u64::from(flow) + 1)
}
