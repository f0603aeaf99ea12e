//! A rule that bounds the sum of the receive windows of a host's incoming connections (`window_total`), as the host's agent
//! carries it out between two CUEs.
//!
//! A new connection has its share from its handshake on, counted with its SYN. The agent gives the others theirs [`DELAY`]
//! later, and no window shrinks below what was announced: a share falls as data arrives. Where the total is less than a segment for
//! each, only as many connections as it carries have an open window; at each turn, a delay long, those whose burst has ended give it
//! to those that wait.

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
/// Turns without data after which idle connections give up their windows all the same: another may wait to send.
const QUIET_TURNS: u32 = 16;

/// The incoming connections of a host.
#[derive(Default)]
pub struct FanIn {
    /// In order of opening.
    members: Vec<Member>,
    /// Those of closed windows, the next to be opened first.
    waiting: VecDeque<u32>,
    /// A turn is on its way.
    due: bool,
    /// Turns since data last came.
    quiet: u32,
}

/// A connection.
struct Member {
    flow: u32,
    /// Its payload at the last turn.
    received: u64,
    /// Its window may be open.
    open: bool,
    /// What it was set to last.
    window: u64,
}

impl FanIn {
    fn join(&mut self, flow: u32, (open, window): (bool, u64), received: u64) {
        self.members.push(Member { flow, received, open, window });
        if !open {
            // before those that have had a turn: it may be short
            self.waiting.push_front(flow);
        }
    }
}

impl Tuning {
    /// The stack of a connection that `host` accepts; it counts from now on. `of`: the flow, the host, the other one, the entry.
    pub fn incoming(&mut self, core: &mut Core, base: &Arc<Config>, of: (u32, u32, u32, u32)) -> Arc<Config> {
        let (flow, host, remote, entry) = of;
        let settings = self.settings(host, remote, entry);
        let Some((fan_in, total)) = self.hosts[host as usize].fan_in.as_mut().zip(settings.window_total) else {
            return self.made_of(base, &settings, None);
        };
        let share = share(total, fan_in.members.len() + 1, base);
        let taken = fan_in.members.iter().filter(|member| member.open).count() as u64;
        let open = taken < share.at_a_time;
        // the others keep what they were announced until the next turn
        let announced: u64 = fan_in.members.iter().filter(|member| member.open).map(|member| member.window).sum();
        let left = total.get().saturating_sub(announced).clamp(u64::from(mss(base)), share.window);
        let window = if open { left } else { 0 };
        fan_in.join(flow, (open, window), 0);
        take_turn_later(core, fan_in, host);
        self.made_of(base, &settings, Some(window as u32))
    }

    /// A connection that `host` accepted has ended.
    pub fn ended(&mut self, core: &mut Core, host: u32) {
        if let Some(fan_in) = &mut self.hosts[host as usize].fan_in {
            take_turn_later(core, fan_in, host);
        }
    }

    /// The rules of `host` have changed, which has these `incoming` connections open.
    pub fn follow(&mut self, core: &mut Core, host: u32, incoming: impl Iterator<Item = u32>) {
        let host_state = &mut self.hosts[host as usize];
        if host_state.rules.iter().all(|rule| rule.set.window_total.is_none()) {
            host_state.fan_in = None;
            return;
        }
        let fan_in = host_state.fan_in.get_or_insert_default();
        for flow in incoming {
            if fan_in.members.iter().all(|member| member.flow != flow) {
                fan_in.join(flow, (true, u64::from(u32::MAX)), core.sockets[receiver(flow) as usize].tcp.received());
            }
        }
        take_turn_later(core, fan_in, host);
    }
}

impl Flows {
    /// The agent of `host` gives each incoming connection its share.
    pub fn share(&mut self, core: &mut Core, host: u32, stacks: &[Arc<Config>]) {
        let Some(mut tuning) = self.tuning.take() else { return };
        if let Some(mut fan_in) = tuning.hosts[host as usize].fan_in.take() {
            fan_in.due = false;
            if self.take_turn(core, &mut tuning, &mut fan_in, (host, stacks)) {
                take_turn_later(core, &mut fan_in, host);
            }
            tuning.hosts[host as usize].fan_in = Some(fan_in);
        }
        self.tuning = Some(tuning);
    }

    /// Returns whether some wait for another turn.
    fn take_turn(
        &self,
        core: &mut Core,
        tuning: &mut Tuning,
        fan_in: &mut FanIn,
        (host, stacks): (u32, &[Arc<Config>]),
    ) -> bool {
        let is_over = |core: &Core, flow: u32| {
            let tcp = &core.sockets[receiver(flow) as usize].tcp;
            tcp.is_closed()
                || self.list[flow as usize].end != Time::NEVER && tcp.received() >= self.list[flow as usize].bytes
        };
        fan_in.members.retain(|member| !is_over(core, member.flow));
        let FanIn { members, waiting, quiet, .. } = fan_in;
        waiting.retain(|flow| members.binary_search_by_key(flow, |member| member.flow).is_ok());
        let of = |flow: u32| &self.list[flow as usize];
        let Some(first) = members.first() else { return false };
        let settings = |tuning: &Tuning, flow: u32| tuning.settings(host, of(flow).src, of(flow).entry);
        let Some(total) = settings(tuning, first.flow).window_total else { return false };
        let share = share(total, members.len(), &stacks[of(first.flow).entry as usize]);

        let mut idle = Vec::new();
        let mut heard = false;
        for (place, member) in members.iter_mut().enumerate() {
            let received = core.sockets[receiver(member.flow) as usize].tcp.received();
            if received > member.received {
                heard = true;
            } else if member.open {
                idle.push(place);
            }
            member.received = received;
        }
        *quiet = if heard { 0 } else { *quiet + 1 };
        let mut open = members.iter().filter(|member| member.open).count() as u64;
        let close = |member: &mut Member, waiting: &mut VecDeque<u32>| {
            member.open = false;
            waiting.push_back(member.flow);
        };
        // idle ones give up their windows to as many as wait, and any to what the total carries
        let rotate = if heard || quiet.is_multiple_of(QUIET_TURNS) { waiting.len() } else { 0 };
        for place in idle.into_iter().take(rotate) {
            close(&mut members[place], waiting);
            open -= 1;
        }
        let excess = (open.saturating_sub(share.at_a_time)) as usize;
        for member in members.iter_mut().rev().filter(|member| member.open).take(excess) {
            close(member, waiting);
            open -= 1;
        }
        // a window that falls does so as data arrives: others rise a turn later
        let falls = members.iter().any(|member| member.window > if member.open { share.window } else { 0 });
        while !falls
            && open < share.at_a_time
            && let Some(flow) = waiting.pop_front()
        {
            if let Ok(place) = members.binary_search_by_key(&flow, |member| member.flow) {
                members[place].open = true;
                open += 1;
            }
        }
        for member in &mut *members {
            let flow = member.flow;
            let target = if member.open { share.window } else { 0 };
            member.window = if falls { target.min(member.window) } else { target };
            let settings = settings(tuning, flow);
            let window = settings.window_total.map(|_| member.window as u32);
            let stack = tuning.made_of(&stacks[of(flow).entry as usize], &settings, window);
            let tcp = &mut core.sockets[receiver(flow) as usize].tcp;
            if tcp.config().window_clamp != stack.window_clamp {
                let now = core.now();
                core.sockets[receiver(flow) as usize].tcp.retune(now, &stack);
                core.pump(receiver(flow));
            }
        }
        falls || !waiting.is_empty()
    }
}

/// The share of each of so many connections.
fn share(total: Bytes, connections: usize, base: &Config) -> Share {
    Share::of(total, connections as u64, u64::from(mss(base)))
}

/// The agent takes a turn after its delay, unless one is on its way.
fn take_turn_later(core: &mut Core, fan_in: &mut FanIn, host: u32) {
    if !std::mem::replace(&mut fan_in.due, true) {
        let at = core.now() + DELAY;
        core.requests.ask_at(at, Request::Share { host });
        core.post_requests();
    }
}
