//! The table of flows, and the handling of a packet.

use crate::counters::{Counters, Ending, Record, Sent};
use crate::echo::{Echo, Echoes, Echoing};
use crate::flow::{Context, Flow, bit, in_flight};
use crate::half_open::{Answered, HalfOpens};
use crate::index::{Index, Key};
use crate::kept::Kept;
use crate::limits::Limits;
use crate::mark::Marks;
use crate::packet::{Action, Direction, End, Header, Packet};
use crate::receivers::Receivers;
use crate::rules::{Rule, Rules, Treatment};
use crate::standby::{Changes, Mirrored};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::IpAddr;
use tcp::{Ecn, Segment, flags};
use units::Time;

/// Ticks in which idle time is counted.
const IDLE_TICK: Time = Time::from_secs(4);
/// After so long without a packet a flow rests.
const REST_TICKS: u64 = 2;
/// After so long an echo is forgotten whose ends have apparently closed.
const OVER_TICKS: u16 = 2;
/// A flow whose client has apparently closed is forgotten after so long: packets in flight have arrived by then (RFC 9293 3.4.1).
const ABORTED_IDLE: Time = Time::from_secs(120);
/// One more flow is checked for idleness after so many packets: each check loads a cache line that nothing else needs.
const LOOK_EVERY: usize = 16;
/// The same for each new flow: short flows must not be opened faster than they are checked.
const LOOKS_PER_FLOW: usize = 2;
/// Records that wait to be fetched.
const RECORDS_MAX: usize = 1 << 16;

/// The enforcer; see the crate's documentation for how to drive it.
#[derive(Debug)]
pub struct Enforcer<P> {
    pub(crate) limits: Limits,
    pub(crate) rules: Rules,
    pub(crate) seed: u64,
    pub(crate) index: Index,
    pub(crate) echoes: Echoes,
    /// Marks on what clients send, which are echoed in the places of enforced servers, by flows' slots.
    pub(crate) uploads: BTreeMap<u32, Echoing>,
    marks: Marks,
    pub(crate) flows: Vec<Option<Flow<P>>>,
    /// How many of them run each algorithm.
    by_algorithm: Vec<(&'static str, usize)>,
    free: Vec<u32>,
    pub(crate) half_opens: HalfOpens,
    receivers: Receivers,
    timers: BinaryHeap<Reverse<(Time, u32)>>,
    pub(crate) out: VecDeque<(Direction, P)>,
    records: VecDeque<Record>,
    pub(crate) counters: Counters,
    pub(crate) buffered: usize,
    /// Most bytes buffered at a time.
    pub(crate) buffered_max: usize,
    kept: Kept,
    /// The flow that was last checked for idleness, and packets since.
    hand: usize,
    since_look: usize,
    /// For standbys.
    pub(crate) changes: Changes,
    /// Of the enforcer whose standby this is.
    pub(crate) mirrored: Mirrored,
}

impl<P: Packet> Enforcer<P> {
    /// An enforcer with these rules. `seed` keys its tables, so it should be unpredictable.
    pub fn new(limits: Limits, rules: Vec<Rule>, seed: u64) -> Enforcer<P> {
        Enforcer {
            limits,
            rules: Rules::new(rules),
            seed,
            index: Index::default(),
            echoes: Echoes::default(),
            uploads: BTreeMap::new(),
            marks: Marks::default(),
            // address space, not memory yet: growth by doubling would copy every flow, and need three times their memory meanwhile
            flows: Vec::with_capacity(limits.flows),
            by_algorithm: Vec::new(),
            free: Vec::new(),
            half_opens: HalfOpens::new(limits.half_open),
            receivers: Receivers::default(),
            timers: BinaryHeap::new(),
            out: VecDeque::new(),
            records: VecDeque::new(),
            counters: Counters::default(),
            buffered: 0,
            buffered_max: 0,
            kept: Kept::default(),
            hand: 0,
            since_look: 0,
            changes: Changes::default(),
            mirrored: Mirrored::default(),
        }
    }

    /// Replaces the rules, also for open flows. Those that no rule matches any more pass untouched from now on, with what was delayed.
    pub fn set_rules(&mut self, now: Time, rules: Vec<Rule>) {
        self.rules = Rules::new(rules);
        self.receivers.clear();
        for slot in 0..self.flows.len() as u32 {
            if self.flows[slot as usize].is_some() && self.retune(now, slot) {
                let (flow, cx) = self.parts(now, slot);
                if let Some((receiver, slot)) = cx.receiver {
                    receiver.note(slot, (in_flight(&flow.relay), 0), flow.relay.sock().mss_cache);
                }
            }
        }
        // only now is known what is on its way to a client
        for slot in 0..self.flows.len() as u32 {
            if self.flows[slot as usize].is_some() {
                let (flow, mut cx) = self.parts(now, slot);
                flow.drain(&mut cx);
                self.schedule(slot);
            }
        }
    }

    /// Gives a flow the settings of the rule that matches it; false: none does, and the flow passes untouched from now on.
    fn retune(&mut self, now: Time, slot: u32) -> bool {
        let flow = self.flows[slot as usize].as_mut().expect("asked only for flows");
        let Some(config) = self.rules.config(flow.key.server, flow.key.client, flow.dscp) else {
            let (flow, mut cx) = self.parts(now, slot);
            flow.release(&mut cx);
            self.end(now, slot, Ending::Astray);
            return false;
        };
        let before = flow.relay.config().algorithm.name();
        flow.relay.retune(now, config);
        let after = flow.relay.config().algorithm.name();
        *count_of(&mut self.by_algorithm, before) -= 1;
        *count_of(&mut self.by_algorithm, after) += 1;
        true
    }

    /// Flows whose data waits for room on the way to this client send what there is room for.
    fn pass_on(&mut self, now: Time, client: IpAddr) {
        // once each: one whose own window is full waits again
        for _ in 0..self.receivers.waiting(client) {
            let Some(slot) = self.receivers.next(client) else { return };
            let (flow, mut cx) = self.parts(now, slot);
            flow.drain(&mut cx);
            self.schedule(slot);
        }
    }

    /// Sends everything that is delayed: after the end nothing would send it.
    pub fn release(&mut self, now: Time) {
        for slot in 0..self.flows.len() as u32 {
            if self.flows[slot as usize].is_some() {
                let (flow, mut cx) = self.parts(now, slot);
                flow.release(&mut cx);
            }
        }
    }

    /// Forgets all enforced flows and handshakes: their packets took another path, and both ends have advanced beyond what is known here. Marks are
    /// echoed as before: nothing of the past is needed for that, and senders count on it.
    pub fn forget(&mut self, now: Time) {
        // the end of one must not send what another has
        self.receivers.clear();
        for slot in 0..self.flows.len() as u32 {
            self.end(now, slot, Ending::Astray);
        }
        self.half_opens = HalfOpens::new(self.limits.half_open);
    }

    /// Whether a rule matches a connection between these ends, by their addresses and ports.
    pub fn is_for(&self, server: End, client: End) -> bool {
        !matches!(self.rules.treatment(server, client, 0), Treatment::Pass)
    }

    /// A packet has arrived.
    pub fn on_packet(&mut self, now: Time, direction: Direction, packet: P) -> Action<P> {
        let action = self.judge(now, direction, packet);
        *match action {
            Action::Forward(_) => &mut self.counters.forwarded,
            Action::Rewritten(_) => &mut self.counters.rewritten,
            Action::Held => &mut self.counters.held,
            Action::Dropped => &mut self.counters.dropped,
        } += 1;
        action
    }

    fn judge(&mut self, now: Time, direction: Direction, packet: P) -> Action<P> {
        let Some(header) = packet.header() else {
            self.counters.passed_malformed += 1;
            return Action::Forward(packet);
        };
        self.since_look += 1;
        if self.since_look == LOOK_EVERY {
            self.since_look = 0;
            self.look_for_idle(now);
        }
        let (server, client) = match direction {
            Direction::Out => (header.source, header.destination),
            Direction::In => (header.destination, header.source),
        };
        let key = Key { server, client, vlan: header.vlan };
        let hash = key.hash(self.seed);
        let known = self.find(hash, key);
        if header.segment.flags & flags::SYN != 0 {
            let (is_answer, flags) = self.on_syn(now, direction, (key, hash), &header, known.is_some());
            // a host with an open connection does not answer a SYN with a SYN (RFC 5961 4)
            if let Some(slot) = known.filter(|_| is_answer)
                && self.flow(slot).is_another(direction, &header.segment)
            {
                self.end(now, slot, Ending::Replaced);
            }
            if is_answer && self.echoes.find(hash, key).is_some_and(|echo| echo.on_answer(direction, &header.segment)) {
                self.echoes.remove(self.seed, key);
                self.changes.note_end(key);
            }
            return with_flags(&header.segment, flags, packet);
        }
        if header.untouchable {
            self.counters.passed_by_option += 1;
            return Action::Forward(packet);
        }
        if known.is_none()
            && direction == Direction::Out
            && let Some(share) = self.rules.mark(server, client, header.dscp)
        {
            return self.mark(share, &header, packet);
        }
        let open = known.or_else(|| {
            let echoes = self.echoes.find(hash, key).is_some();
            if echoes { None } else { self.open(now, direction, (key, hash), &header, &packet) }
        });
        if let Some(slot) = open {
            return self.on_flow(now, direction, slot, &header, packet);
        }
        if let Some(echo) = self.echoes.find(hash, key) {
            echo.seen = tick(now);
            return echo.on_packet(&mut self.counters, direction, &header.segment, packet);
        }
        if direction == Direction::Out && header.segment.seq_len() > 0 {
            self.half_opens.on_passed(hash);
        }
        Action::Forward(packet)
    }

    fn on_flow(&mut self, now: Time, direction: Direction, slot: u32, header: &Header, mut packet: P) -> Action<P> {
        if let Some(flow) = &mut self.flows[slot as usize] {
            self.changes.note(slot, &mut flow.bits);
        }
        self.speak(direction, slot, &header.segment, &mut packet);
        let (flow, mut cx) = self.parts(now, slot);
        let client = flow.key.client.ip();
        if direction == Direction::In {
            flow.bits &= !bit::ABORTED;
        }
        if !flow.has(bit::ABORTED) {
            flow.seen = tick(now);
        }
        let action = match direction {
            Direction::Out => flow.outward(&mut cx, &header.segment, packet),
            Direction::In => flow.inward(&mut cx, &header.segment, packet),
        };
        if let (Direction::In, Action::Forward(_)) = (direction, &action) {
            cx.counters.unchanged += 1;
        }
        let ending = cx.ending.or_else(|| flow.is_over().then_some(Ending::Closed));
        self.buffered_max = self.buffered_max.max(self.buffered);
        if let Some(ending) = ending {
            self.end(now, slot, ending);
        } else {
            self.schedule(slot);
            self.pass_on(now, client);
        }
        action
    }

    fn mark(&mut self, share: f64, header: &Header, mut packet: P) -> Action<P> {
        if self.marks.put_on(self.seed, share, header, &mut packet) {
            self.counters.marked += 1;
            return Action::Rewritten(packet);
        }
        self.counters.passed_by_rule += 1;
        Action::Forward(packet)
    }

    /// A SYN or its answer: whether it answers a SYN that has passed, and the flags with which it is forwarded.
    fn on_syn(
        &mut self,
        now: Time,
        direction: Direction,
        (key, hash): (Key, u64),
        header: &Header,
        known: bool,
    ) -> (bool, u8) {
        let segment = &header.segment;
        let is_answer = segment.flags & flags::ACK != 0;
        if segment.flags & (flags::RST | flags::FIN) != 0 {
            self.counters.passed_malformed += 1;
            return (false, segment.flags);
        }
        let treatment = self.rules.treatment(key.server, key.client, header.dscp);
        let has_rule = is_answer || !matches!(treatment, Treatment::Pass | Treatment::Mark(_));
        let proxies = !header.untouchable && treatment.proxies(direction);
        let (now_us, by_server) = (now.as_us() as u32, direction == Direction::Out);
        let mut answered = Answered::default();
        if is_answer {
            answered = self.half_opens.on_answer(hash, now_us, by_server, proxies, segment);
            if header.untouchable {
                self.half_opens.on_passed(hash);
                answered.accepts = None;
            }
        } else if known || has_rule && !header.untouchable {
            let asked = self.half_opens.on_syn(hash, now_us, by_server, proxies, header);
            self.counters.half_open_lost += u64::from(asked.evicted);
            answered.accepts = asked.asks.then_some(true);
        }
        let flags = answered.flags_of(segment);
        let counters = &mut self.counters;
        *match (header.untouchable, has_rule) {
            (true, _) => &mut counters.passed_by_option,
            (false, false) => &mut counters.passed_by_rule,
            (false, true) if flags != segment.flags => &mut counters.ecn_handshakes,
            (false, true) => &mut counters.handshakes,
        } += 1;
        (answered.is_answer, flags)
    }

    /// A packet of a flow that is not in the table: does it end a handshake?
    fn open(
        &mut self,
        now: Time,
        direction: Direction,
        (key, hash): (Key, u64),
        header: &Header,
        packet: &P,
    ) -> Option<u32> {
        let segment = &header.segment;
        let by_server = direction == Direction::Out;
        let agreed = if segment.flags & (flags::RST | flags::ACK) == flags::ACK {
            self.half_opens.on_open(hash, now.as_us() as u32, by_server, segment)
        } else {
            None
        };
        let Some(agreed) = agreed else {
            let slot = self.promote(now, key);
            if slot.is_none() && self.echoes.find(hash, key).is_none() {
                self.counters.passed_unknown += 1;
            }
            return slot;
        };
        let config = match self.rules.treatment(key.server, key.client, agreed.dscp) {
            Treatment::Enforce(config) => config,
            Treatment::Echo if agreed.proxied => {
                (0..LOOKS_PER_FLOW).for_each(|_| self.look_for_idle(now));
                if self.echoes.len() >= self.limits.flows {
                    // its sender hears of no mark, and stops sending ECT at losses
                    self.counters.passed_table_full += 1;
                    return None;
                }
                self.counters.ecn_agreed += 1;
                self.mirrored.take(now, key);
                self.echoes.insert(self.seed, Echo::new(key, agreed.dscp, tick(now)));
                self.changes.note_echoing(key);
                return None;
            }
            Treatment::Echo | Treatment::Mark(_) | Treatment::Pass => {
                self.counters.passed_by_rule += 1;
                return None;
            }
        };
        let window = if by_server { u32::from(u16::MAX) } else { packet.window(agreed.client_scale) };
        let flow = Flow::new(now, config, key, &agreed, window);
        (0..LOOKS_PER_FLOW).for_each(|_| self.look_for_idle(now));
        if self.flows.len() - self.free.len() >= self.limits.flows {
            self.counters.passed_table_full += 1;
            return None;
        }
        self.counters.flows_opened += 1;
        self.counters.ecn_agreed += u64::from(agreed.proxied);
        // another enforcer's, of the same ends, is over
        self.mirrored.take(now, key);
        Some(self.insert(hash, flow))
    }

    /// Puts a flow into the table; returns its slot.
    pub(crate) fn insert(&mut self, hash: u64, flow: Flow<P>) -> u32 {
        *count_of(&mut self.by_algorithm, flow.relay.config().algorithm.name()) += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.flows.push(None);
            self.flows.len() as u32 - 1
        });
        self.flows[slot as usize] = Some(flow);
        let (flows, seed) = (&self.flows, self.seed);
        self.index.insert(hash, slot, |slot| hash_of(flows, seed, slot));
        slot
    }

    /// The earliest time at which [`Enforcer::on_timer`] may have work; [`Time::NEVER`] if none.
    pub fn poll_timeout(&self) -> Time {
        self.timers.peek().map_or(Time::NEVER, |Reverse((at, _))| *at)
    }

    /// To be called when [`Enforcer::poll_timeout`] has come; harmless when early.
    pub fn on_timer(&mut self, now: Time) {
        while let Some(&Reverse((at, slot))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            let Some(flow) = self.flows[slot as usize].as_mut() else { continue };
            let Some(buffer) = flow.buffer.as_mut().filter(|buffer| buffer.timers_at[0] == at) else { continue };
            buffer.timers_at = [buffer.timers_at[1], Time::NEVER];
            let client = flow.key.client.ip();
            if flow.relay.poll_timeout() <= now {
                let (flow, mut cx) = self.parts(now, slot);
                flow.on_timer(&mut cx);
                if let Some(ending) = cx.ending {
                    self.end(now, slot, ending);
                    continue;
                }
            }
            self.schedule(slot);
            self.pass_on(now, client);
        }
    }

    /// The next packet to send, and its direction. To be called after every input until it returns `None`.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<(Direction, P)> {
        self.out.pop_front()
    }

    /// The next flow that has ended.
    pub fn poll_record(&mut self) -> Option<Record> {
        self.records.pop_front()
    }

    /// The state at `now` of the enforced flows.
    pub fn open_records(&self, now: Time) -> impl Iterator<Item = Record> {
        self.flows.iter().flatten().map(move |flow| record(now, flow, None))
    }

    /// The algorithms that enforced flows run, and how many run each.
    pub fn algorithms(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.by_algorithm.iter().copied().filter(|(_, flows)| *flows > 0)
    }

    /// What each enforced flow has sent so far, by its server.
    pub fn sent(&self) -> impl Iterator<Item = (End, Sent)> {
        self.flows.iter().flatten().map(|flow| {
            let stats = flow.relay.stats();
            let sent = Sent {
                flows: 1,
                bytes: flow.relay.sock().bytes_acked,
                segments: stats.data_segments_sent.into(),
                retransmits: stats.retransmits.into(),
            };
            (flow.key.server, sent)
        })
    }

    /// The client of each enforced flow.
    pub fn clients(&self) -> impl Iterator<Item = End> {
        self.flows.iter().flatten().map(|flow| flow.key.client)
    }

    /// Number of flows whose marks are echoed.
    pub fn echoes(&self) -> usize {
        self.echoes.len()
    }

    /// The counters so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Number of enforced flows.
    pub fn flows(&self) -> usize {
        self.flows.len() - self.free.len()
    }

    /// Memory of the buffered packets, bytes.
    pub fn buffered_bytes(&self) -> usize {
        self.buffered
    }

    /// Largest memory of buffered packets so far, bytes.
    pub fn buffered_bytes_max(&self) -> usize {
        self.buffered_max
    }

    /// Distribution of the number of buffered packets per flow.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    pub(crate) fn find(&self, hash: u64, key: Key) -> Option<u32> {
        let is = |slot: u32| self.flows[slot as usize].as_ref().is_some_and(|flow| flow.key == key);
        self.index.find(hash, is)
    }

    fn flow(&mut self, slot: u32) -> &mut Flow<P> {
        self.flows[slot as usize].as_mut().expect("the index knows only flows")
    }

    /// A flow, and its environment.
    pub(crate) fn parts(&mut self, now: Time, slot: u32) -> (&mut Flow<P>, Context<'_, P>) {
        let flow = self.flows[slot as usize].as_mut().expect("asked only for flows");
        let (server, client) = (flow.key.server, flow.key.client);
        let total = self.rules.window_total(server, client, flow.dscp);
        let cx = Context {
            now,
            out: &mut self.out,
            counters: &mut self.counters,
            buffered: &mut self.buffered,
            kept: &mut self.kept,
            limits: &self.limits,
            receiver: total.map(|total| (self.receivers.of(client.ip(), total), slot)),
            ending: None,
        };
        (flow, cx)
    }

    /// Schedules the flow's next timer. An earlier one stays: it will find that there is more time. So does a later one, mostly
    /// of a retransmission, while a paced packet leaves: otherwise every packet would leave one behind.
    pub(crate) fn schedule(&mut self, slot: u32) {
        let flow = self.flows[slot as usize].as_mut().expect("it has just handled a packet");
        let Some(buffer) = &mut flow.buffer else { return };
        let at = flow.relay.poll_timeout();
        let [next, later] = buffer.timers_at;
        if at < next {
            buffer.timers_at = [at, if later == Time::NEVER { next } else { later }];
            self.timers.push(Reverse((at, slot)));
        } else if buffer.is_empty() && next == Time::NEVER {
            flow.buffer = None;
        }
    }

    /// Checks one flow for idleness; all are checked in turn.
    fn look_for_idle(&mut self, now: Time) {
        let most = (self.limits.idle.as_ps() / IDLE_TICK.as_ps()) as u16;
        if let Some(echo) = self.echoes.next()
            && tick(now).wrapping_sub(echo.seen) > if echo.is_over() { OVER_TICKS } else { most }
        {
            let key = echo.key;
            self.echoes.remove(self.seed, key);
            self.changes.note_end(key);
        }
        self.hand = if self.hand + 1 < self.flows.len() { self.hand + 1 } else { 0 };
        let Some(Some(flow)) = self.flows.get_mut(self.hand) else { return };
        let idle = u64::from(tick(now).wrapping_sub(flow.seen));
        if idle >= REST_TICKS && flow.buffer.is_none() {
            flow.relay.rest();
        }
        let most = if flow.has(bit::ABORTED) { ABORTED_IDLE.min(self.limits.idle) } else { self.limits.idle };
        if idle > most.as_ps() / IDLE_TICK.as_ps() {
            self.end(now, self.hand as u32, Ending::Idle);
        }
    }

    /// A flow has ended: its packets pass untouched.
    pub(crate) fn end(&mut self, now: Time, slot: u32, ending: Ending) {
        let Some(mut flow) = self.flows[slot as usize].take() else { return };
        self.changes.note_end(flow.key);
        let hash = flow.key.hash(self.seed);
        let (flows, seed) = (&self.flows, self.seed);
        self.index.remove(hash, slot, |slot| hash_of(flows, seed, slot));
        self.free.push(slot);
        self.uploads.remove(&slot);
        *count_of(&mut self.by_algorithm, flow.relay.config().algorithm.name()) -= 1;
        self.buffered -= flow.buffer.as_ref().map_or(0, |buffer| buffer.bytes);
        let counters = &mut self.counters;
        *match ending {
            Ending::Closed => &mut counters.flows_closed,
            Ending::Reset => &mut counters.flows_reset,
            Ending::Idle => &mut counters.flows_idle,
            Ending::GivenUp => &mut counters.flows_given_up,
            Ending::Replaced => &mut counters.flows_replaced,
            Ending::Silent => &mut counters.flows_silent,
            Ending::Astray => &mut counters.flows_astray,
            Ending::Moved => &mut counters.flows_moved,
        } += 1;
        flow.relay.finish();
        let client = flow.key.client.ip();
        self.receivers.forget(client, slot);
        if self.records.len() == RECORDS_MAX {
            self.records.pop_front();
            self.counters.records_lost += 1;
        }
        self.records.push_back(record(now, &flow, Some(ending)));
        self.pass_on(now, client);
    }
}

/// A SYN or its answer, with other flags. Who asks for ECN in a host's place does so as DCTCP's hosts do (RFC 8257 3.6).
fn with_flags<P: Packet>(segment: &Segment, flags: u8, mut packet: P) -> Action<P> {
    if flags == segment.flags {
        return Action::Forward(packet);
    }
    packet.set_flags(flags);
    if flags & flags::ACK == 0 {
        packet.set_ecn(Ecn::Ect0);
    }
    Action::Rewritten(packet)
}

/// The count of an algorithm. The list is as long as there are algorithms in rules: a few, so it is gone through.
fn count_of<'a>(counts: &'a mut Vec<(&'static str, usize)>, name: &'static str) -> &'a mut usize {
    let at = counts.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
        counts.push((name, 0));
        counts.len() - 1
    });
    &mut counts[at].1
}

/// The hash of the flow in a slot.
fn hash_of<P>(flows: &[Option<Flow<P>>], seed: u64, slot: u32) -> u64 {
    flows[slot as usize].as_ref().map_or(0, |flow| flow.key.hash(seed))
}

pub(crate) fn tick(now: Time) -> u16 {
    (now.as_ps() / IDLE_TICK.as_ps()) as u16
}

fn record<P>(now: Time, flow: &Flow<P>, ending: Option<Ending>) -> Record {
    let (sock, stats) = (flow.relay.sock(), flow.relay.stats());
    let lasted_ms = ((now.as_us() / 1000) as u32).wrapping_sub(flow.began_ms);
    Record {
        server: flow.key.server,
        client: flow.key.client,
        began: now.saturating_sub(Time::from_ms(u64::from(lasted_ms))),
        ended: now,
        ending,
        bytes_acked: sock.bytes_acked,
        data_segments_sent: stats.data_segments_sent,
        retransmits: stats.retransmits,
        rtos: stats.rtos,
        delivered: sock.delivered,
        delivered_ce: sock.delivered_ce,
        absorbed: u32::from(flow.absorbed),
        hidden: flow.hidden,
        srtt_us: sock.srtt_us >> 3,
        min_rtt_us: sock.min_rtt_us(),
        cwnd: sock.snd_cwnd,
        algorithm: flow.relay.config().algorithm.name().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Simulated;
    use congestion::Algorithm;
    use std::net::Ipv4Addr;
    use std::sync::Arc;
    use tcp::Config;

    #[test]
    fn a_flow_has_few_timers_however_often_it_sends() {
        let config = Arc::new(Config::linux(Algorithm::named("bbr").expect("it is built in")));
        let mut enforcer = Enforcer::new(Limits { flows: 1, ..Limits::default() }, vec![Rule::all(&config)], 1);
        let ends = [80, 4000].map(|port| End::new(Ipv4Addr::LOCALHOST.into(), port));
        let mut now = Time::from_secs(1);
        let mut put = |now: Time, direction: Direction, segment: Segment| {
            let [server, client] = ends;
            let (source, destination) = if direction == Direction::Out { (server, client) } else { (client, server) };
            while enforcer.poll_timeout() <= now {
                enforcer.on_timer(now);
            }
            enforcer.on_packet(now, direction, Simulated { source, destination, dscp: 0, corrupt: false, segment });
            while enforcer.poll_transmit().is_some() {}
            enforcer.timers.len()
        };
        let (round_trip, len) = (Time::from_ms(20), 1000);
        let syn = Segment { seq: 7, flags: flags::SYN, window: 65_535, mss: 1460, ..Segment::default() };
        put(now, Direction::In, syn);
        put(now, Direction::Out, Segment { seq: 9, ack: 8, flags: flags::SYN | flags::ACK, ..syn });
        now += round_trip;
        let ack = |n: u32| Segment { seq: 8, ack: 10 + n, flags: flags::ACK, window: 65_535, ..Segment::default() };
        put(now, Direction::In, ack(0));
        for n in (0..100 * len).step_by(4 * len as usize) {
            for n in (n..n + 4 * len).step_by(len as usize) {
                let data = Segment { seq: 10 + n, ack: 8, len: len as u16, flags: flags::ACK, ..Segment::default() };
                put(now, Direction::Out, data);
            }
            now += round_trip;
            let timers = put(now, Direction::In, ack(n + 4 * len));
            assert!((1..=3).contains(&timers), "{timers} timers after {n} bytes");
        }
    }
}
