//! A rule that bounds the sum of the receive windows of a host's incoming connections (`window_total`), as the host's agent
//! carries it out between two CUEs.
//!
//! A new connection has its share from its handshake on, counted with its SYN. The agent gives the others theirs [`DELAY`]
//! later. No window shrinks below what was announced: a share falls as data arrives. What an idle connection was announced is taken from
//! the others' shares, up to half of the total.
//!
//! Where the total is less than a segment for each, only as many connections as it carries have an open window. At each turn some are
//! withdrawn, idle ones first, and a turn later as many of those that wait are opened. What a sender has sent meanwhile is taken.

use crate::core::Core;
use crate::flows::{Flows, receiver};
use crate::requests::Request;
use crate::tuning::{Tuning, mss};
use policy::Share;
use std::collections::VecDeque;
use std::sync::Arc;
use tcp::Config;
use units::{Bytes, Time};

/// From a change of the number of connections to the last window that follows it.
pub const DELAY: Time = Time::from_us(500);
/// Between two turns where only some windows are open: this, or a part of the time without data.
const TURN: Time = Time::from_us(100);
const TURN_MAX: Time = Time::from_ms(10);
const QUIET_TURNS: u64 = 16;
/// Of the open windows, the part that changes hands at a turn: of idle connections, and of others.
const IDLE_PART: u64 = 8;
const BUSY_PART: u64 = 32;

/// The incoming connections of a host.
#[derive(Default)]
pub struct FanIn {
    /// In order of opening.
    members: Vec<Member>,
    /// Those whose windows are closed, the next to be opened first.
    waiting: VecDeque<u32>,
    /// A turn is on its way.
    due: bool,
}

/// A connection.
struct Member {
    flow: u32,
    /// What its window was set to last.
    window: u64,
    /// Its payload, and when it was last seen to have changed.
    received: (u64, Time),
    /// Its window may be open, since then.
    open: Option<Time>,
}

impl Tuning {
    /// The stack of a connection that `host` accepts; it counts from now on. `of`: the flow, the host, the other one, the entry.
    pub fn incoming(&mut self, core: &mut Core, base: &Arc<Config>, of: (u32, u32, u32, u32)) -> Arc<Config> {
        let (flow, host, remote, entry) = of;
        let settings = self.settings(host, remote, entry);
        let Some((fan_in, total)) = self.hosts[host as usize].fan_in.as_mut().zip(settings.window_total) else {
            return self.made_of(base, &settings, None);
        };
        let n = fan_in.members.len() + 1;
        let share = share(total, n, base);
        let fits = share.at_a_time == n as u64;
        let window = if fits { fan_in.left(core, total).clamp(u64::from(mss(base)), share.window) } else { 0 };
        fan_in.members.push(Member::new(flow, window, core.now()));
        if !fits {
            // before those that have had a turn: it may be short
            fan_in.waiting.push_front(flow);
        }
        take_turn_later(core, fan_in, host, DELAY);
        self.made_of(base, &settings, Some(window as u32))
    }

    /// A connection that `host` accepted has ended.
    pub fn ended(&mut self, core: &mut Core, host: u32) {
        if let Some(fan_in) = &mut self.hosts[host as usize].fan_in {
            take_turn_later(core, fan_in, host, DELAY);
        }
    }

    /// The rules of `host` have changed, which has these `incoming` connections open: the flow, the other host, the entry.
    pub fn follow(&mut self, core: &mut Core, host: u32, incoming: impl Iterator<Item = (u32, u32, u32)>) {
        if self.hosts[host as usize].rules.iter().all(|rule| rule.set.window_total.is_none()) {
            self.hosts[host as usize].fan_in = None;
            return;
        }
        let bounded: Vec<u32> = incoming
            .filter(|(_, remote, entry)| self.settings(host, *remote, *entry).window_total.is_some())
            .map(|(flow, ..)| flow)
            .collect();
        let fan_in = self.hosts[host as usize].fan_in.get_or_insert_default();
        fan_in.members.retain(|member| bounded.binary_search(&member.flow).is_ok());
        for flow in bounded {
            if let Err(place) = fan_in.members.binary_search_by_key(&flow, |member| member.flow) {
                fan_in.members.insert(place, Member::new(flow, u64::from(u32::MAX), core.now()));
            }
        }
        take_turn_later(core, fan_in, host, DELAY);
    }
}

impl Flows {
    /// The agent of `host` gives each incoming connection its share.
    pub fn share(&mut self, core: &mut Core, host: u32, stacks: &[Arc<Config>]) {
        let Some(mut tuning) = self.tuning.take() else { return };
        if let Some(mut fan_in) = tuning.hosts[host as usize].fan_in.take() {
            fan_in.due = false;
            if let Some(delay) = self.take_turn(core, &mut tuning, &mut fan_in, (host, stacks)) {
                take_turn_later(core, &mut fan_in, host, delay);
            }
            tuning.hosts[host as usize].fan_in = Some(fan_in);
        }
        self.tuning = Some(tuning);
    }

    /// Returns when to take the next turn, if there is need of one.
    fn take_turn(
        &self,
        core: &mut Core,
        tuning: &mut Tuning,
        fan_in: &mut FanIn,
        (host, stacks): (u32, &[Arc<Config>]),
    ) -> Option<Time> {
        let is_over = |core: &Core, flow: u32| {
            let tcp = &core.sockets[receiver(flow) as usize].tcp;
            tcp.is_closed()
                || self.list[flow as usize].end != Time::NEVER && tcp.received() >= self.list[flow as usize].bytes
        };
        fan_in.members.retain(|member| !is_over(core, member.flow));
        let of = |flow: u32| &self.list[flow as usize];
        let first = fan_in.members.first()?.flow;
        let total = tuning.settings(host, of(first).src, of(first).entry).window_total?;
        let base = &stacks[of(first).entry as usize];
        let share = share(total, fan_in.members.len(), base);
        let mut set = |core: &mut Core, flow: u32, window: u64| {
            let settings = tuning.settings(host, of(flow).src, of(flow).entry);
            let window = settings.window_total.map(|_| window as u32);
            let stack = tuning.made_of(&stacks[of(flow).entry as usize], &settings, window);
            let now = core.now();
            let tcp = &mut core.sockets[receiver(flow) as usize].tcp;
            if tcp.config().window_clamp != stack.window_clamp {
                tcp.retune(now, &stack);
                core.pump(receiver(flow));
            }
        };
        fan_in.hear(core);
        if share.at_a_time < fan_in.members.len() as u64 {
            return Some(fan_in.pass_on(core, &share, set));
        }
        let window = fan_in.window(core, (total, u64::from(mss(base))), share.window);
        fan_in.waiting.clear();
        // a window that falls does so as data arrives: others rise a turn later
        let falls = fan_in.members.iter().any(|member| member.window > window);
        for member in &mut fan_in.members {
            member.window = if falls { window.min(member.window) } else { window };
            member.open.get_or_insert(core.now());
            set(core, member.flow, member.window);
        }
        (falls || window < share.window).then_some(DELAY)
    }
}

impl Member {
    fn new(flow: u32, window: u64, now: Time) -> Member {
        Member { flow, window, received: (0, now), open: (window > 0).then_some(now) }
    }

    /// Payload that the sender may send and has not sent, or that is on its way.
    fn offered(&self, core: &Core) -> u64 {
        let tcp = &core.sockets[receiver(self.flow) as usize].tcp;
        // one that is withdrawn, or will be announced with the handshake
        if self.window == 0 || !tcp.is_established() { self.window } else { u64::from(tcp.offered()) }
    }

    /// It has not used what it is offered.
    fn idles(&self, now: Time) -> bool {
        now >= self.received.1.max(self.open.unwrap_or(Time::ZERO)) + DELAY
    }
}

impl FanIn {
    /// Sees from which connections data came.
    fn hear(&mut self, core: &Core) {
        for member in &mut self.members {
            let received = core.sockets[receiver(member.flow) as usize].tcp.received();
            if received != member.received.0 {
                member.received = (received, core.now());
            }
        }
    }

    /// What may be offered beside what is offered. Idle connections keep at most half of the total from the others.
    fn left(&self, core: &Core, total: Bytes) -> u64 {
        let (mut idle, mut busy) = (0, 0);
        for member in &self.members {
            *if member.idles(core.now()) { &mut idle } else { &mut busy } += member.offered(core);
        }
        total.get().saturating_sub(busy + idle.min(total.get() / 2))
    }

    /// The window of each, where they fit: an equal share, less what idle ones keep beyond theirs.
    fn window(&self, core: &Core, (total, segment): (Bytes, u64), share: u64) -> u64 {
        let now = core.now();
        let keeps = |member: &&Member| member.idles(now) && member.offered(core) > share;
        let kept: Vec<u64> = self.members.iter().filter(keeps).map(|member| member.offered(core)).collect();
        let left = total.get() - kept.iter().sum::<u64>().min(total.get() / 2);
        let others = (self.members.len() - kept.len()).max(1) as u64;
        Share::of(Bytes::new(left), others, segment).window.min(share)
    }

    /// Withdraws some windows, and opens those of as many connections that wait. Returns when to do so again.
    fn pass_on(&mut self, core: &mut Core, share: &Share, mut set: impl FnMut(&mut Core, u32, u64)) -> Time {
        let now = core.now();
        let FanIn { members, waiting, .. } = self;
        waiting.retain(|flow| members.binary_search_by_key(flow, |member| member.flow).is_ok());
        let mut open: Vec<usize> = (0..members.len()).filter(|place| members[*place].open.is_some()).collect();
        // idle ones first, then those that were opened first
        open.sort_by_key(|place| (!members[*place].idles(now), members[*place].open, *place));
        let idle = open.iter().filter(|place| members[**place].idles(now)).count() as u64;
        let part = |part: u64| (share.at_a_time / part).max(1);
        let turn = if idle > 0 { idle.min(part(IDLE_PART)) } else { part(BUSY_PART) };
        let excess = (open.len() as u64).saturating_sub(share.at_a_time);
        let gone = (open.len() as u64).min(excess + turn.min(waiting.len() as u64)) as usize;
        for place in open.drain(..gone) {
            let member = &mut members[place];
            (member.window, member.open) = (0, None);
            waiting.push_back(member.flow);
            set(core, member.flow, 0);
        }
        for place in &open {
            if members[*place].window != share.window {
                members[*place].window = share.window;
                set(core, members[*place].flow, share.window);
            }
        }
        // what was sent into a withdrawn window is on its way: the next turn opens others for it
        for _ in (open.len() + gone) as u64..share.at_a_time {
            let Some(flow) = waiting.pop_front() else { break };
            let place = members.binary_search_by_key(&flow, |member| member.flow).expect("it was retained");
            (members[place].window, members[place].open) = (share.window, Some(now));
            set(core, flow, share.window);
        }
        let heard = members.iter().map(|member| member.received.1).max().unwrap_or(now);
        ((now - heard) / QUIET_TURNS).clamp(TURN, TURN_MAX)
    }
}

/// The share of each of so many connections.
fn share(total: Bytes, connections: usize, base: &Config) -> Share {
    Share::of(total, connections as u64, u64::from(mss(base)))
}

/// The agent takes a turn after a delay, unless one is on its way.
fn take_turn_later(core: &mut Core, fan_in: &mut FanIn, host: u32, delay: Time) {
    if !std::mem::replace(&mut fan_in.due, true) {
        let at = core.now() + delay;
        core.requests.ask_at(at, Request::Share { host });
        core.post_requests();
    }
}
