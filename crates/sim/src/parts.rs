//! One network on several cores: its parts run side by side, a window at a time.
//!
//! A window is as long as nothing in one part can have an effect in another ([`Layout`]). Within it each part runs alone: it owns its event
//! set, links, routes and sockets, and the packets that are there. At its end, behind a [`Barrier`], packets that cross are exchanged by
//! [`Mail`], and the [`Director`] lets the applications hear what has happened and hands on what they ask for. How many parts there are, and
//! what is done in which order, follows from the scenario: a result is the same on any number of threads.
//!
//! Packets that cross enter a part's event set by the part that they come from, and then in the order in which they were sent. That is
//! the order of those that arrive at the same instant, behind what had been scheduled there before.

mod barrier;
mod director;
mod layout;
mod mail;
mod part;
mod sync;
#[cfg(test)]
mod tests;

use crate::core::{Core, Framing};
use crate::packets::{Packets, Pool};
use crate::requests::Requests;
use crate::setup;
use crate::traffic::Traffic;
use barrier::Barrier;
pub use director::Director;
pub use layout::Layout;
use mail::Mail;
pub use mail::Outbox;
use net::{LinkCounters, LinkId, LinkTable, QueueLength, Topology};
use part::Ends;
pub use part::{Crossing, Part};
use plan::Arrived;
use scenario::Scenario;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use units::Time;

/// A network in parts.
pub struct Parts {
    list: Vec<Part>,
    pub director: Director,
    mail: Mail<Crossing>,
    /// Counts the windows that have ended: at the end of each, mail was sent for this turn.
    turn: usize,
    window: Time,
    now: Time,
    /// On how many threads it runs.
    pub threads: usize,
}

/// What the threads of a run share.
struct Shared<'a> {
    parts: Vec<Mutex<&'a mut Part>>,
    mail: &'a Mail<Crossing>,
    /// In the hands of the last thread at the barrier.
    head: Mutex<Head<'a>>,
    barrier: Barrier,
    /// To where all parts run, ps.
    target: AtomicU64,
    turn: AtomicUsize,
    done: AtomicBool,
    /// The earliest time of which a part knows that something may happen, ps.
    next: AtomicU64,
    /// Applications are to hear of something.
    heard: AtomicBool,
    window: Time,
    end: Time,
}

struct Head<'a> {
    director: &'a mut Director,
    traffic: &'a mut Traffic,
}

impl Parts {
    /// The parts of an idle network with these `links`. `stacks` has each entry's, and whether it sends datagrams.
    pub fn new(
        scenario: &Scenario,
        topology: &Topology,
        layout: &Layout,
        links: &LinkTable,
        stacks: &[Arc<tcp::Config>],
    ) -> Parts {
        let framing = plan::framing_bytes(scenario);
        let is_udp = scenario.traffic.iter().map(|entry| entry.kind.datagrams().is_some());
        let stacks: Arc<[_]> = stacks.iter().cloned().zip(is_udp).collect();
        let mut window = layout.window;
        let holds = links.any_holds();
        let pool = Arc::new(Pool::new(scenario.measure.packet_delay));
        let mut part = |number: usize, links: LinkTable| {
            let calendar = setup::calendar(topology, framing, holds, Some(layout));
            if calendar.sorts() {
                // a bucket that is open and sorted takes no packets: no window ends within one
                window = calendar.width() * (layout.window.as_ps() / calendar.width().as_ps());
            }
            let requests = Requests::new(setup::reaction(topology, framing));
            let packets = Packets::of_part(pool.clone(), number as u32);
            let mut core = Core::new(links, calendar, requests, Framing(framing), packets);
            core.fabric.outbox = Some(Outbox::new(layout.parts));
            Part::new(core, Ends::new(stacks.clone(), scenario.seed, scenario.measure.messages))
        };
        let own = layout.links();
        let parts: Vec<Part> = own.iter().enumerate().map(|(number, own)| part(number, links.subset(own))).collect();
        Parts {
            director: Director::new(layout, &own, Requests::new(setup::reaction(topology, framing))),
            mail: Mail::new(parts.len()),
            list: parts,
            turn: 0,
            window,
            now: Time::ZERO,
            threads: 1,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Hands on what applications have asked for before the run.
    pub fn begin(&mut self, traffic: &mut Traffic) {
        self.director.collect();
        let mut parts: Vec<&mut Part> = self.list.iter_mut().collect();
        self.director.hand_on(traffic, &mut parts);
    }

    pub fn now(&self) -> Time {
        self.now
    }

    /// Handles every event before `end`.
    pub fn run_to(&mut self, end: Time, traffic: &mut Traffic) {
        if end <= self.now {
            return;
        }
        let threads = self.threads.clamp(1, self.list.len());
        let n = self.list.len();
        let shared = Shared {
            parts: self.list.iter_mut().map(Mutex::new).collect(),
            mail: &self.mail,
            head: Mutex::new(Head { director: &mut self.director, traffic }),
            barrier: Barrier::new(threads),
            target: AtomicU64::new(window_end(self.now, self.window).min(end).as_ps()),
            turn: AtomicUsize::new(self.turn),
            done: AtomicBool::new(false),
            next: AtomicU64::new(u64::MAX),
            heard: AtomicBool::new(false),
            window: self.window,
            end,
        };
        let share = |thread: usize| thread * n / threads..(thread + 1) * n / threads;
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .map(|thread| {
                    let (shared, share) = (&shared, share(thread));
                    scope.spawn(move || shared.run(share))
                })
                .collect();
            shared.run(share(0));
            for other in others {
                other.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
        });
        self.turn = shared.turn.load(Ordering::Acquire);
        self.now = end;
    }

    /// Number of flows that have been opened.
    pub fn flows(&self) -> usize {
        self.director.opened(&self.list)
    }

    /// The part that `socket` is in, and its number there.
    pub fn place(&self, socket: u32) -> (&Core, u32) {
        let (part, number) = self.director.place(socket);
        (&self.list[part as usize].core, number)
    }

    /// Application bytes that the sender of `flow` is to send.
    pub fn bytes(&self, sender: u32) -> u64 {
        let (part, number) = self.director.place(sender);
        self.list[part as usize].ends.list[number as usize].bytes
    }

    /// Messages that have arrived, in the order in which they were entered.
    pub fn take_messages(&mut self) -> Vec<Arrived> {
        let lists = self.list.iter_mut().filter_map(|part| part.ends.messages.take());
        let mut all: Vec<(Time, Arrived)> = lists.flatten().collect();
        all.sort_by_key(|(at, _)| *at);
        all.into_iter().map(|(_, message)| message).collect()
    }

    pub fn accepted(&self, link: LinkId) -> u64 {
        let (part, near) = self.director.near(link);
        self.list[part as usize].core.fabric.links.counters(near).accepted
    }

    pub fn counters(&self, link: LinkId) -> LinkCounters {
        let (part, near) = self.director.near(link);
        let mut counters = self.list[part as usize].core.fabric.links.counters(near);
        for (part, end) in self.director.far_ends(link) {
            let (delivered, lost) = self.list[*part as usize].core.fabric.links.arrivals(*end);
            counters.delivered += delivered;
            counters.lost += lost;
        }
        counters
    }

    pub fn queue_len(&self, link: LinkId, at: Time) -> QueueLength {
        let (part, near) = self.director.near(link);
        self.list[part as usize].core.fabric.links.queue_len(near, at)
    }

    pub fn is_up(&self, link: LinkId) -> bool {
        let (part, near) = self.director.near(link);
        self.list[part as usize].core.fabric.links.is_up(near)
    }

    /// Packets under way on each link.
    pub fn in_flight(&self) -> Vec<u64> {
        let mut count = vec![0; self.director.n_links()];
        let mut arriving: Vec<Vec<u64>> = Vec::new();
        for (number, part) in self.list.iter().enumerate() {
            let own = part.core.in_flight();
            self.director.for_each_near(number as u32, |link, near| count[link.index()] += own[near.index()]);
            arriving.push(own);
        }
        let hop = |part: usize, crossing: &Crossing| self.list[part].core.fabric.routes.hop(crossing.event.place())[0];
        let mut cross = |to: usize, crossing: &Crossing| arriving[to][hop(to, crossing).link().index()] += 1;
        for (number, part) in self.list.iter().enumerate() {
            if !part.has_taken(self.turn) {
                self.mail.take(self.turn, number, |crossing| cross(number, crossing));
            }
            for (to, crossing) in part.core.fabric.outbox.iter().flat_map(Outbox::iter) {
                cross(to as usize, crossing);
            }
        }
        for (link, count) in count.iter_mut().enumerate() {
            let ends = self.director.far_ends(LinkId(link as u32)).iter();
            *count += ends.map(|(part, end)| arriving[*part as usize][end.index()]).sum::<u64>();
        }
        count
    }

    /// A link fails at `at`, or works again.
    pub fn fail(&mut self, link: LinkId, at: Time, fails: bool) {
        let (part, near) = self.director.near(link);
        let links = self.list[part as usize].links();
        if !fails {
            return links.restore(near);
        }
        links.fail(near, at);
        let epoch = links.epoch(near);
        for (part, end) in self.director.far_ends(link) {
            self.list[*part as usize].links().fail_far_end(*end, epoch);
        }
    }

    /// Gives every open flow whose path has a link that is down a new path, if there is one.
    pub fn reroute(&mut self, traffic: &mut Traffic) {
        let mut parts: Vec<&mut Part> = self.list.iter_mut().collect();
        self.director.reroute(traffic, &mut parts);
    }
}

/// Ends the other threads' wait if this one panics.
struct Present<'a>(&'a Barrier);

impl Drop for Present<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.break_up();
        }
    }
}

impl Shared<'_> {
    /// Runs the parts of one thread to the end.
    fn run(&self, share: std::ops::Range<usize>) {
        let _present = Present(&self.barrier);
        while !self.done.load(Ordering::Acquire) {
            let target = Time::from_ps(self.target.load(Ordering::Acquire));
            let turn = self.turn.load(Ordering::Acquire);
            let (mut next, mut heard) = (Time::NEVER, false);
            for number in share.clone() {
                let mut part = lock(&self.parts[number]);
                part.take_in(self.mail, turn, number);
                let Part { core, ends, .. } = &mut **part;
                core.run_to(target, ends);
                heard |= !ends.heard.is_empty();
                next = next.min(core.fabric.calendar.next_from(target));
                if self.is_window_end(target)
                    && core.fabric.outbox.as_mut().is_some_and(|outbox| self.mail.send(turn + 1, number, outbox))
                {
                    next = target;
                }
            }
            self.next.fetch_min(next.as_ps(), Ordering::AcqRel);
            if heard {
                self.heard.store(true, Ordering::Release);
            }
            if !self.barrier.wait(|| self.turn_over(target, turn)) {
                return;
            }
        }
    }

    /// While all parts stand at `target`: applications hear what has happened, and the next window is chosen.
    fn turn_over(&self, target: Time, turn: usize) {
        let mut head = lock(&self.head);
        let Head { director, traffic } = &mut *head;
        let mut next = Time::from_ps(self.next.swap(u64::MAX, Ordering::AcqRel));
        let heard = self.heard.swap(false, Ordering::AcqRel);
        if heard || director.next() < target {
            let mut guards: Vec<MutexGuard<'_, &mut Part>> = self.parts.iter().map(lock).collect();
            let mut parts: Vec<&mut Part> = guards.iter_mut().map(|guard| &mut ***guard).collect();
            director.hear(target, traffic, &mut parts);
        }
        if self.is_window_end(target) {
            self.turn.store(turn + 1, Ordering::Release);
            if director.has_asked() {
                let mut guards: Vec<MutexGuard<'_, &mut Part>> = self.parts.iter().map(lock).collect();
                let mut parts: Vec<&mut Part> = guards.iter_mut().map(|guard| &mut ***guard).collect();
                next = next.min(director.hand_on(traffic, &mut parts));
            }
        }
        // windows in which nothing happens are passed over
        let from = next.min(director.next()).max(target).min(self.end);
        let next_target = window_end(from, self.window).min(self.end);
        self.done.store(target == self.end, Ordering::Release);
        self.target.store(next_target.as_ps(), Ordering::Release);
    }

    fn is_window_end(&self, at: Time) -> bool {
        at.as_ps().is_multiple_of(self.window.as_ps())
    }
}

fn window_end(now: Time, window: Time) -> Time {
    Time::from_ps((now.as_ps() / window.as_ps() + 1) * window.as_ps())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // a thread that panics ends the run
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
