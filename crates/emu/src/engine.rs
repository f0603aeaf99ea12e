//! [`Engine`]: the network between the hosts, as a state machine driven by timestamps.
//!
//! A packet that a host sends enters the host's own link when it is read (or, if the reading thread was paused
//! until then, at an estimated time). From then on the model says when it arrives at each node, and it enters the next link at
//! exactly that instant, however late the machine computes it. Only two things depend on the machine: when a packet is read, and how much later than
//! its arrival it is delivered to the receiving host. The second is measured for each packet ([`Engine::lateness`]).
//!
//! Links deliver in order, so packets in flight form a queue per link, and only the first of each queue is in the
//! heap.

use crate::agenda::Agenda;
use crate::flowcount::FlowCounts;
use crate::gate::{self, Gate, Passing, Way};
use crate::gauges::Gauges;
use crate::lateness::Lateness;
use crate::port::{Clock, Head, Ports};
use crate::routes::Routes;
use net::{Ecn, LinkCounters, LinkId, LinkTable, Outcome};
use plan::Series;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use units::Time;

/// How long a packet may be delayed for those that arrive right after it, so that they leave as one, as network cards do
/// that moderate their interrupts: at 10 Gbit/s eight packets, and the hosts' TCP runs once for all of them.
const JOIN_WITHIN: Time = Time::from_us(10);

/// A packet on a link, or in the queue in front of it.
struct InFlight<P> {
    /// When its last bit reaches the far end.
    arrives: Time,
    /// When it was read.
    sent: Time,
    packet: P,
    head: Head,
    /// Number of its route, and its position there: the link that it is on.
    route: u32,
    hop: u16,
    /// The link's epoch when it was accepted.
    epoch: u8,
}

/// The network on the wall clock. `P` is the ports' packet.
pub struct Engine<P> {
    links: LinkTable,
    routes: Routes,
    /// Bytes on the wire beside the IP packet.
    framing: u32,
    /// By link: packets in flight, in order of arrival.
    lines: Vec<VecDeque<InFlight<P>>>,
    /// The first arrival of each queue; may hold entries that a failure has invalidated.
    next: BinaryHeap<Reverse<(Time, u32)>>,
    /// Arrival time of a queue's valid entry in `next`, if any.
    listed: Vec<Time>,
    agenda: Agenda,
    series: Series,
    flows: FlowCounts,
    lateness: Lateness,
    /// Hosts, and arrivals of packets that were delivered to the ports and not flushed yet.
    unflushed: Vec<(u32, Time)>,
    /// The instant up to which everything is computed.
    now: Time,
    totals: Totals,
    gauges: Arc<Gauges>,
    /// The enforcers.
    gates: Vec<Gate>,
}

/// Packet counts. Without an enforcer, `entered = released + dropped + lost + no_route + in flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets read from hosts.
    pub entered: u64,
    /// Delivered to hosts.
    pub released: u64,
    /// Dropped by a queue, or lost at random.
    pub dropped: u64,
    /// Lost with a link, or refused by one that was down.
    pub lost: u64,
    /// Without a working path to their destination.
    pub no_route: u64,
}

impl<P> Engine<P> {
    /// An empty network. `framing` is what the wire adds to the IP packet, bytes.
    pub fn new(links: LinkTable, routes: Routes, framing: u32, agenda: Agenda, series: Series) -> Engine<P> {
        let n = links.len();
        Engine {
            links,
            routes,
            framing,
            lines: (0..n).map(|_| VecDeque::new()).collect(),
            next: BinaryHeap::new(),
            listed: vec![Time::NEVER; n],
            agenda,
            series,
            flows: FlowCounts::default(),
            lateness: Lateness::default(),
            unflushed: Vec::new(),
            now: Time::ZERO,
            totals: Totals::default(),
            gauges: Arc::default(),
            gates: Vec::new(),
        }
    }

    /// With enforcers at some of its nodes.
    #[must_use]
    pub fn with_gates(self, gates: Vec<Gate>) -> Engine<P> {
        Engine { gates, ..self }
    }

    /// With gauges by which another thread reads the links' counters.
    #[must_use]
    pub fn with_gauges(self, gauges: Arc<Gauges>) -> Engine<P> {
        Engine { gauges, ..self }
    }

    /// Answers a pending request of the gauges.
    pub fn answer(&self) {
        self.gauges.answer(|| {
            let reading = |link| (self.links.counters(link), self.links.queue_len(link, self.now));
            (0..self.links.len() as u32).map(|link| reading(LinkId(link))).collect()
        });
    }

    /// When the next scheduled event is; [`Time::NEVER`] if none.
    pub fn next_due(&self) -> Time {
        self.next.peek().map_or(Time::NEVER, |Reverse((at, _))| *at).min(self.agenda.next()).min(self.gate_due())
    }

    /// The instant up to which everything is computed.
    pub fn now(&self) -> Time {
        self.now
    }

    /// A host has sent a packet, read at `now`, which must not be before the last call's.
    pub fn enter(&mut self, now: Time, packet: P, head: Head, ports: &mut impl Ports<Packet = P>, clock: &impl Clock) {
        self.run_to(now, ports, clock);
        self.totals.entered += 1;
        let Some(route) = self.routes.of(&head) else {
            self.totals.no_route += 1;
            return ports.discard(packet);
        };
        self.reach(now, packet, Way { sent: now, head, route, hop: 0 }, ports, clock);
    }

    /// Computes everything up to `now`.
    pub fn run_to(&mut self, now: Time, ports: &mut impl Ports<Packet = P>, clock: &impl Clock) {
        loop {
            let next = self.next.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
            if self.gate_due() <= next.min(now) {
                // its packets may arrive before the next event
                self.run_gate(ports, clock);
                continue;
            }
            if next > now {
                break;
            }
            self.run_agenda(next, ports);
            self.now = self.now.max(next);
            let Some(Reverse((at, link))) = self.next.pop() else { break };
            if self.listed[link as usize] == at {
                self.listed[link as usize] = Time::NEVER;
                self.arrive(LinkId(link), at, ports, clock);
                self.list(LinkId(link));
            }
        }
        self.run_agenda(now, ports);
        self.now = self.now.max(now);
    }

    /// When an enforcer's next timer is due.
    fn gate_due(&self) -> Time {
        self.gates.iter().map(Gate::next_due).min().unwrap_or(Time::NEVER)
    }

    /// Runs the timers of enforcers that are due.
    fn run_gate(&mut self, ports: &mut impl Ports<Packet = P>, clock: &impl Clock) {
        let at = self.gate_due().max(self.now);
        self.run_agenda(at, ports);
        self.now = at;
        for index in 0..self.gates.len() {
            if self.gates[index].next_due() <= at {
                self.gates[index].on_timer(at);
                self.leave_gate(at, index, ports, clock);
            }
        }
    }

    /// Forwards what an enforcer sends.
    fn leave_gate(&mut self, now: Time, index: usize, ports: &mut impl Ports<Packet = P>, clock: &impl Clock) {
        while let Some(passing) = self.gates[index].poll_transmit() {
            let way = gate::leaving(&passing);
            let packet = ports.lower(passing.packet);
            self.pass_on(now, packet, way, ports, clock);
        }
    }

    /// A packet is at the near end of the link `way.hop` of its route, or at its host; an enforcer there sees it first.
    fn reach(&mut self, now: Time, packet: P, way: Way, ports: &mut impl Ports<Packet = P>, clock: &impl Clock) {
        let Some(gate) = self.gates.first() else { return self.pass_on(now, packet, way, ports, clock) };
        let links = self.routes.links(way.route);
        let node = match links.get(usize::from(way.hop)) {
            Some(link) => gate.ends(*link)[0],
            None => gate.ends(links[links.len() - 1])[1],
        };
        let Some(index) = self.gates.iter().position(|gate| gate.is_at(node)) else {
            return self.pass_on(now, packet, way, ports, clock);
        };
        if let Some(passing) = self.gates[index].on_packet(now, Passing { packet: ports.lift(packet), note: way }) {
            let way = gate::leaving(&passing);
            let packet = ports.lower(passing.packet);
            self.pass_on(now, packet, way, ports, clock);
        }
        self.leave_gate(now, index, ports, clock);
    }

    /// Puts the packet onto the next link, or delivers it to its host.
    fn pass_on(&mut self, now: Time, packet: P, way: Way, ports: &mut impl Ports<Packet = P>, clock: &impl Clock) {
        let Way { sent, head, route, hop } = way;
        if usize::from(hop) < self.routes.links(route).len() {
            return self.offer(now, InFlight { arrives: now, sent, packet, head, route, hop, epoch: 0 }, ports);
        }
        self.totals.released += 1;
        self.flows.arrived(&head, now - sent);
        let host = head.dst;
        if !ports.holds_back() {
            self.lateness.release.record(clock.now().saturating_sub(now));
            return ports.release(host, packet);
        }
        self.unflushed.push((host, now));
        ports.release(host, packet);
        let first = self.unflushed.iter().find(|(of, _)| *of == host).map_or(now, |(_, at)| *at);
        let last_link = self.routes.links(route)[usize::from(hop) - 1];
        // on a machine that is later than that, late packets are joined
        let until = clock.now().max(first + JOIN_WITHIN);
        let has_company = self.lines[last_link.index()].front().is_some_and(|next| next.arrives <= until);
        if !has_company {
            self.flush(host, ports, clock);
        }
    }

    /// Flushes what the ports have delayed for long enough: the awaited packet did not come, for example because a link
    /// failed.
    pub fn flush_if_due(&mut self, ports: &mut impl Ports<Packet = P>, clock: &impl Clock) {
        while let Some(&(host, first)) = self.unflushed.first()
            && clock.now() >= first + JOIN_WITHIN
        {
            self.flush(host, ports, clock);
        }
    }

    /// Flushes what the ports delay for `host`, and records the lateness.
    fn flush(&mut self, host: u32, ports: &mut impl Ports<Packet = P>, clock: &impl Clock) {
        // as for a single packet: at the start of the delivery, the rest is the host's time
        let now = clock.now();
        ports.flush(host);
        for (_, due) in self.unflushed.extract_if(.., |(of, _)| *of == host) {
            self.lateness.release.record(now.saturating_sub(due));
        }
    }

    /// Samples, failures and the end of the warm-up that are due by `now`; one that is due at the same instant as an arrival
    /// comes first.
    fn run_agenda(&mut self, now: Time, ports: &mut impl Ports<Packet = P>) {
        while self.agenda.next() <= now {
            let at = self.agenda.next();
            self.now = self.now.max(at);
            if self.agenda.take_warmup(at) {
                self.series.begin_counting(&self.links, self.links.len(), at);
                self.flows.begin_counting();
            }
            if self.agenda.take_sample(at) {
                self.series.sample(&self.links, at);
            }
            while let Some((links, fails)) = self.agenda.take_failure(at) {
                self.fail(at, &links, fails, ports);
            }
        }
    }

    /// The first packet in the queue of `link` reaches the far end at `at`.
    fn arrive(&mut self, link: LinkId, at: Time, ports: &mut impl Ports<Packet = P>, clock: &impl Clock) {
        let flight = self.lines[link.index()].pop_front().expect("a listed queue is not empty");
        if !self.links.arrived(link, flight.epoch) {
            self.totals.lost += 1;
            return ports.discard(flight.packet);
        }
        let InFlight { sent, packet, head, route, hop, .. } = flight;
        self.reach(at, packet, Way { sent, head, route, hop: hop + 1 }, ports, clock);
    }

    /// The packet is at the near end of the link `flight.hop` of its route.
    fn offer(&mut self, now: Time, mut flight: InFlight<P>, ports: &mut impl Ports<Packet = P>) {
        let link = self.routes.links(flight.route)[usize::from(flight.hop)];
        let len = u32::from(flight.head.ip_len) + self.framing;
        let was_up = self.links.is_up(link);
        match self.links.offer(link, now, u16::try_from(len).unwrap_or(u16::MAX), flight.head.ecn) {
            // links that hold their packets are refused before a run
            Outcome::Dropped | Outcome::Held => {
                if was_up {
                    self.totals.dropped += 1;
                } else {
                    self.totals.lost += 1;
                }
                ports.discard(flight.packet);
            }
            Outcome::Accepted { arrives, marked, epoch, .. } => {
                if marked {
                    ports.mark(&mut flight.packet);
                    flight.head.ecn = Ecn::Ce;
                }
                self.lines[link.index()].push_back(InFlight { arrives, epoch, ..flight });
                self.list(link);
            }
        }
    }

    /// Makes sure that the queue's first arrival is in the heap.
    fn list(&mut self, link: LinkId) {
        if let Some(first) = self.lines[link.index()].front()
            && self.listed[link.index()] == Time::NEVER
        {
            self.listed[link.index()] = first.arrives;
            self.next.push(Reverse((first.arrives, link.0)));
        }
    }

    fn fail(&mut self, at: Time, links: &[LinkId], fails: bool, ports: &mut impl Ports<Packet = P>) {
        for &link in links {
            if !fails {
                self.links.restore(link);
                continue;
            }
            self.links.fail(link, at);
            for flight in std::mem::take(&mut self.lines[link.index()]) {
                let arrived = self.links.arrived(link, flight.epoch);
                debug_assert!(!arrived, "what a failed link held is lost");
                self.totals.lost += 1;
                ports.discard(flight.packet);
            }
            self.listed[link.index()] = Time::NEVER;
        }
        self.routes.change(links, fails);
    }

    /// How late packets were delivered to their hosts.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// How long packets may have waited to be read: the time between the two polls of the ports.
    pub fn note_reading_gap(&mut self, gap: Time) {
        self.lateness.reading.record(gap);
    }

    /// The packet counts.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// A link's counters.
    pub fn counters(&self, link: LinkId) -> LinkCounters {
        self.links.counters(link)
    }

    /// Packets that each link holds.
    pub fn under_way(&self) -> Vec<u64> {
        self.lines.iter().map(|line| line.len() as u64).collect()
    }

    /// Ends the run: discards everything in flight and returns the counters.
    pub fn finish(mut self, ports: &mut impl Ports<Packet = P>) -> Counted {
        let under_way = self.under_way();
        for flight in self.lines.drain(..).flatten() {
            ports.discard(flight.packet);
        }
        Counted {
            links: self.links,
            under_way,
            series: self.series,
            flows: self.flows,
            lateness: self.lateness,
            gates: self.gates,
            totals: self.totals,
            ended: self.now,
        }
    }
}

/// An engine's counters at its end.
pub struct Counted {
    /// The links, as they were at the end.
    pub links: LinkTable,
    /// By link: packets queued or on the wire at the end.
    pub under_way: Vec<u64>,
    /// Samples and baselines of links.
    pub series: Series,
    /// Packets per flow.
    pub flows: FlowCounts,
    /// How late packets were.
    pub lateness: Lateness,
    /// The enforcers.
    pub gates: Vec<Gate>,
    /// Packets in all.
    pub totals: Totals,
    /// The instant up to which the network ran.
    pub ended: Time,
}
