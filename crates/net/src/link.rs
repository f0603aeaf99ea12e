//! [`LinkTable`]: every link of a network, and what happens to a packet that is offered to one.
//!
//! A link sends in order of arrival, so the moment at which a packet leaves is known when it arrives: the link needs no
//! event of its own. What the table keeps per link is when it will have sent everything (`busy_until`), when it will
//! have sent the oldest queued packet (`head_departs`), and a ring with the lengths of the queued packets, from which
//! the departures in between follow. So the queue length is exact at every instant, in packets and in bytes.
//!
//! Three things make it fast. An offer touches one cache line per link ([`Hot`]) and two bytes of ring. In the common
//! case, a packet limit with or without a packet threshold for marking, departed packets stay on the ring and are taken
//! off many at a time, when the count reaches `trigger`: the lesser of the marking threshold and the longest queue so far.
//! (A link with anything unusual has a trigger of zero.) Rates of whole picoseconds per byte, as all usual ones, need no division.

mod failure;
mod held;
pub(crate) mod hold;
mod parts;
mod shared;

pub use held::QueueLength;

use crate::ecn::Ecn;
use crate::mix::SplitMix64;
use crate::pie::Pie;
use crate::queue::{Aqm, BufferSpec, Depth, Limit, QueueSpec, Red};
use crate::verdict::Verdict;
use crate::{LinkId, LinkSpec, LinkTier, NetError, NodeId, Topology};
use held::Held;
use memory::prefetch;
use shared::SharedBuffer;
use std::hint::select_unpredictable;
use units::{Rate, Time};

/// The result of offering a packet to a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Dropped: no room, an early drop, or a link that is down.
    Dropped,
    /// Nothing yet: the link holds its packets, so hand this one over by [`LinkTable::hold`].
    Held,
    /// It will be sent.
    Accepted {
        /// When its last bit leaves the link's near end.
        departs: Time,
        /// When its last bit reaches the far end.
        arrives: Time,
        /// This link sets the packet to [`Ecn::Ce`]; false for one that is so already.
        marked: bool,
        /// The link's epoch, for [`LinkTable::arrived`].
        epoch: u8,
    },
}

/// A packet that a link will send, unmarked.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// When its last bit leaves the link's near end.
    pub departs: Time,
    /// When its last bit reaches the far end.
    pub arrives: Time,
    /// The link's epoch, for [`LinkTable::arrived`].
    pub epoch: u8,
}

/// What a link has done since the start.
///
/// `accepted = delivered + lost + in flight`: see [`LinkCounters::conserves`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounters {
    /// Packets accepted.
    pub accepted: u64,
    /// Their bytes.
    pub accepted_bytes: u64,
    /// Packets that arrived at the far end.
    pub delivered: u64,
    /// Packets dropped by the queue, its limit, the shared buffer, or early; and those that the line lost by chance.
    pub dropped: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Packets that this link set to [`Ecn::Ce`].
    pub marked: u64,
    /// Packets accepted and then lost because the link failed before they arrived.
    pub lost: u64,
    /// Packets offered while the link was down; not among `accepted` or `dropped`.
    pub refused: u64,
    /// The longest queue so far, in packets.
    pub queue_max: u32,
}

impl LinkCounters {
    /// Whether every accepted packet is accounted for when `in_flight` of them are queued or under way.
    pub const fn conserves(&self, in_flight: u64) -> bool {
        self.accepted == self.delivered + self.lost + in_flight
    }

    /// Packets dropped because the link failed or was down.
    pub const fn dropped_by_failure(&self) -> u64 {
        self.lost + self.refused
    }
}

/// What an offer reads and writes.
#[derive(Debug, Clone)]
#[repr(align(64))]
struct Hot {
    /// When everything accepted so far will have left.
    busy_until: Time,
    /// When the oldest queued packet will have left; meaningless while none is queued.
    head_departs: Time,
    /// Propagation.
    delay: Time,
    /// Packets accepted so far; also the position in the ring where the next one goes.
    accepted: u64,
    accepted_bytes: u64,
    /// Picoseconds per byte, 0 if that is not a whole number below 2^32.
    ps_per_byte: u32,
    /// Packets that had not left when last looked at: at least as many as there are.
    queued: u32,
    /// With fewer queued than this, a packet is accepted and not marked, whether or not others have left meanwhile; with 0
    /// every offer takes the long path.
    trigger: u32,
    /// Where the ring starts in the arena.
    ring: u32,
    /// Its capacity, a power of two, less one.
    ring_mask: u32,
    /// Changes when the link fails.
    epoch: u8,
}

const _: () = assert!(size_of::<Hot>() == 64, "the hot state of a link is one cache line");

/// Fields for an arrival: separate from [`Hot`], and four to a cache line.
#[derive(Debug, Clone, Default)]
struct Far {
    delivered: u64,
    /// Packets under way when the link failed.
    lost: u32,
    /// A copy of [`Hot::epoch`].
    epoch: u8,
}

/// What an offer to a plain queue at its trigger touches besides, close together.
#[derive(Debug, Clone)]
struct Warm {
    marked: u64,
    /// An ECN-capable packet that finds this many is marked, if the link is plain; `u32::MAX` for never.
    mark_at: u32,
    queue_max: u32,
    /// Only the queue in packets decides, and the rate is exact.
    plain: bool,
    down: bool,
}

/// The rest.
#[derive(Debug, Clone)]
struct Cold {
    rate: Rate,
    limit: Limit,
    aqm: AqmState,
    /// The shared buffer that this port draws on.
    buffer: Option<u32>,
    /// The packets in front of a link that holds them.
    held: Option<Box<Held>>,
    /// Losses of the line.
    loss: Option<Loss>,
    /// What delays the packets at the far end.
    jitter: Option<Jitter>,
    dropped: u64,
    dropped_bytes: u64,
    lost: u64,
    refused: u64,
}

/// A line that loses packets by chance.
#[derive(Debug, Clone)]
struct Loss {
    probability: f64,
    random: SplitMix64,
}

/// A far end that takes a random time for each packet, and takes them in order.
#[derive(Debug, Clone)]
struct Jitter {
    most: Time,
    random: SplitMix64,
    /// When it is done with the last packet.
    done: Time,
}

#[derive(Debug, Clone)]
enum AqmState {
    None,
    Threshold(Depth),
    Red(Box<Red>),
    Pie(Box<Pie>),
}

/// All links of a network.
///
/// Inputs: [`offer`](LinkTable::offer) when a packet reaches the near end, [`arrived`](LinkTable::arrived) when it
/// reaches the far end, [`fail`](LinkTable::fail) and [`restore`](LinkTable::restore). Times of offers must not
/// decrease: per link, and among the links of a switch with a shared buffer.
#[derive(Debug, Clone, Default)]
pub struct LinkTable {
    hot: Vec<Hot>,
    far: Vec<Far>,
    warm: Vec<Warm>,
    cold: Vec<Cold>,
    buffers: Vec<SharedBuffer>,
    rings: Rings,
}

impl LinkTable {
    /// The links of `topology`, all idle. `seed` is what random early detection draws from, each link its own stream.
    ///
    /// # Errors
    /// [`NetError::ZeroRate`], [`NetError::ZeroLimit`], [`NetError::Red`], [`NetError::Queue`] and [`NetError::Buffer`].
    pub fn new(topology: &Topology, seed: u64) -> Result<LinkTable, NetError> {
        let n = topology.links().len();
        let mut table = LinkTable {
            hot: Vec::with_capacity(n),
            far: vec![Far::default(); n],
            warm: topology.links().iter().map(Warm::new).collect(),
            cold: Vec::with_capacity(n),
            buffers: Vec::new(),
            rings: Rings::default(),
        };
        for (i, spec) in topology.links().iter().enumerate() {
            let id = LinkId(i as u32);
            if let Some(error) = fault(topology, id, spec) {
                return Err(error);
            }
            table.hot.push(Hot::new(spec, table.rings.claim(Rings::FIRST_LOG2)));
            table.cold.push(Cold::new(spec, SplitMix64::new(seed, i as u64)));
        }
        for (i, node) in topology.nodes().iter().enumerate() {
            if let BufferSpec::Shared(spec) = node.buffer {
                let ports = topology.out_links(NodeId(i as u32)).to_vec();
                for port in &ports {
                    table.cold[port.index()].buffer = Some(table.buffers.len() as u32);
                    table.warm[port.index()].plain = false;
                }
                let buffer = SharedBuffer::new(spec, ports);
                table.buffers.push(buffer.map_err(|why| NetError::Buffer { switch: node.name.clone(), why })?);
            }
        }
        Ok(table)
    }

    /// From now on `link` loses each packet that it is offered with this `probability`: it drops them before the queue, as
    /// Linux's netem does. `seed` is the run's; each link draws from its own stream.
    pub fn lose(&mut self, link: LinkId, probability: f64, seed: u64) {
        let i = link.index();
        self.cold[i].loss = Some(Loss { probability, random: SplitMix64::new(seed, Loss::STREAMS + i as u64) });
        self.warm[i].plain = false;
        self.hot[i].trigger = 0;
    }

    /// From now on each packet of `link` arrives later by a random time, uniform from zero to `most`, but never before the
    /// packet that was sent before it. `seed` is the run's; each link draws from its own stream.
    pub fn vary(&mut self, link: LinkId, most: Time, seed: u64) {
        let i = link.index();
        self.cold[i].jitter =
            Some(Jitter { most, random: SplitMix64::new(seed, Jitter::STREAMS + i as u64), done: Time::ZERO });
        self.warm[i].plain = false;
        self.hot[i].trigger = 0;
    }

    /// Adds a link that is in no topology and takes nothing: [`offer_short`](LinkTable::offer_short) never decides, and
    /// [`offer_exact`](LinkTable::offer_exact) drops every packet. It stands for a place on a route that is not a link.
    pub fn add_closed(&mut self) -> LinkId {
        let id = self.add(Rate::from_gbps(1), Time::ZERO);
        self.warm[id.index()].down = true;
        id
    }

    /// Adds a link that is in no topology and only holds each packet back for `delay` and 1 ps a byte: a server's forwarding.
    pub fn add_delay(&mut self, delay: Time) -> LinkId {
        self.add(Rate::from_gbps(8000), delay)
    }

    fn add(&mut self, rate: Rate, delay: Time) -> LinkId {
        let id = LinkId(self.hot.len() as u32);
        let (from, to, queue, tier) = (NodeId(0), NodeId(0), QueueSpec::unlimited(), LinkTier::Switches);
        let spec = LinkSpec { from, to, rate, delay, queue, tier };
        self.hot.push(Hot::new(&spec, self.rings.claim(Rings::FIRST_LOG2)));
        self.far.push(Far::default());
        self.warm.push(Warm::new(&spec));
        self.cold.push(Cold::new(&spec, SplitMix64::new(0, 0)));
        id
    }

    /// Prefetches what [`offer`](LinkTable::offer) on `link` touches first; call it some ten offers ahead.
    #[inline]
    pub fn prefetch(&self, link: LinkId) {
        prefetch(&self.hot, link.index());
    }

    /// Prefetches the rest, once the first has arrived; call it some five offers ahead.
    #[inline]
    pub fn prefetch_ring(&self, link: LinkId) {
        if let Some(hot) = self.hot.get(link.index()) {
            prefetch(&self.rings.lengths, hot.slot(hot.accepted));
        }
    }

    /// Prefetches what [`arrived`](LinkTable::arrived) on `link` touches.
    #[inline]
    pub fn prefetch_far(&self, link: LinkId) {
        prefetch(&self.far, link.index());
    }

    /// Offers a packet of `len` bytes on the wire to `link` at `now`.
    #[inline]
    pub fn offer(&mut self, link: LinkId, now: Time, len: u16, ecn: Ecn) -> Outcome {
        match self.offer_short(link, now, len) {
            Some(Sent { departs, arrives, epoch }) => Outcome::Accepted { departs, arrives, marked: false, epoch },
            None => self.offer_exact(link, now, len, ecn),
        }
    }

    /// Offers a packet to a queue that certainly neither drops nor marks it. `None`: that is not certain, so offer
    /// the packet by [`offer_exact`](LinkTable::offer_exact). [`offer`](LinkTable::offer) is in two functions so that a
    /// caller can continue at once in the common case.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "once a packet-hop, and the call would be a third of the work")]
    pub fn offer_short(&mut self, link: LinkId, now: Time, len: u16) -> Option<Sent> {
        let hot = &mut self.hot[link.index()];
        hot.forget_if_idle(now);
        // `queued` includes packets that have left since the last look: below the trigger that does not matter
        if hot.queued >= hot.trigger {
            return None;
        }
        Some(hot.accept(now, len, hot.exact(len), &mut self.rings))
    }

    /// Offers to a queue that may be at its trigger: packets that have left are taken off first.
    pub fn offer_exact(&mut self, link: LinkId, now: Time, len: u16, ecn: Ecn) -> Outcome {
        let (hot, warm) = (&mut self.hot[link.index()], &mut self.warm[link.index()]);
        if !warm.plain || warm.down {
            return self.offer_long(link, now, len, ecn);
        }
        hot.release_exact(now, &self.rings);
        if hot.queued >= warm.queue_max {
            return self.offer_long(link, now, len, ecn);
        }
        let marked = hot.queued >= warm.mark_at && warm.mark(ecn);
        let Sent { departs, arrives, epoch } = hot.accept(now, len, hot.exact(len), &mut self.rings);
        Outcome::Accepted { departs, arrives, marked, epoch }
    }

    /// Offers that the short path does not decide: links that are down, have an unusual discipline, rate or buffer, and
    /// queues that are full or become longer than ever.
    #[cold]
    #[inline(never)]
    fn offer_long(&mut self, link: LinkId, now: Time, len: u16, ecn: Ecn) -> Outcome {
        let i = link.index();
        if self.warm[i].down {
            self.cold[i].refused += 1;
            return Outcome::Dropped;
        }
        if self.cold[i].held.is_some() {
            return Outcome::Held;
        }
        let Some(marked) = self.admit(link, now, len, ecn) else {
            self.cold[i].dropped += 1;
            self.cold[i].dropped_bytes += u64::from(len);
            return Outcome::Dropped;
        };
        let (hot, warm) = (&mut self.hot[i], &mut self.warm[i]);
        warm.marked += u64::from(marked);
        warm.queue_max = warm.queue_max.max(hot.queued + 1);
        hot.trigger = warm.trigger();
        if hot.queued > hot.ring_mask {
            self.rings.grow(hot);
        }
        let serialization = hot.serialization(len, self.cold[i].rate);
        let Sent { departs, arrives, epoch } = hot.accept(now, len, serialization, &mut self.rings);
        let arrives = self.cold[i].jitter.as_mut().map_or(arrives, |jitter| jitter.delayed(arrives));
        Outcome::Accepted { departs, arrives, marked, epoch }
    }

    /// Whether the packet is accepted, and if so, whether it is marked.
    fn admit(&mut self, link: LinkId, now: Time, len: u16, ecn: Ecn) -> Option<bool> {
        let i = link.index();
        if self.cold[i].loss.as_mut().is_some_and(Loss::strikes) {
            return None;
        }
        self.release(link, now);
        let hot = &self.hot[i];
        let packets = hot.queued;
        let bytes = || hot.bytes(&self.rings);
        // The average of random early detection is over all arrivals, so it comes before the limits.
        let verdict = match &mut self.cold[i].aqm {
            AqmState::None => Verdict::Pass,
            AqmState::Threshold(depth) => {
                let reached = match *depth {
                    Depth::Packets(k) => packets >= k,
                    Depth::Bytes(k) => bytes() >= k.get(),
                };
                if reached && ecn.is_capable() { Verdict::Mark } else { Verdict::Pass }
            }
            AqmState::Red(red) => red.on_arrival(packets, now.saturating_sub(hot.busy_until), ecn),
            AqmState::Pie(pie) => pie.on_arrival(now, hot.busy_until, bytes(), ecn),
        };
        let len = u64::from(len);
        let fits = match self.cold[i].limit {
            Limit::Unlimited => true,
            Limit::Packets(limit) => packets < limit,
            Limit::Bytes(limit) => bytes() + len <= limit.get(),
        };
        if verdict == Verdict::Drop || !fits || !self.buffer_has_room(link, now, len, ecn) {
            if let AqmState::Pie(pie) = &mut self.cold[i].aqm {
                pie.on_overflow();
            }
            return None;
        }
        Some(verdict == Verdict::Mark && ecn != Ecn::Ce)
    }

    /// Whether the switch's memory, if it is shared, takes the packet.
    fn buffer_has_room(&mut self, link: LinkId, now: Time, len: u64, ecn: Ecn) -> bool {
        let Some(buffer) = self.cold[link.index()].buffer.map(|n| n as usize) else { return true };
        let mut pooled = 0;
        for n in 0..self.buffers[buffer].ports.len() {
            let port = self.buffers[buffer].ports[n];
            self.release(port, now);
            pooled += self.buffers[buffer].pooled(self.port_bytes(port, now));
        }
        let queued = self.port_bytes(link, now);
        self.buffers[buffer].takes(queued, len, pooled, ecn)
    }

    /// Takes what has left by `now` off the ring.
    fn release(&mut self, link: LinkId, now: Time) {
        let hot = &mut self.hot[link.index()];
        hot.release(now, self.cold[link.index()].rate, &self.rings);
    }

    /// A packet accepted by `link` under `epoch` reaches the far end; false if the link failed under way, in which case
    /// the packet is lost.
    #[inline]
    #[must_use]
    pub fn arrived(&mut self, link: LinkId, epoch: u8) -> bool {
        let far = &mut self.far[link.index()];
        if far.epoch != epoch {
            far.lost += 1;
            return false;
        }
        far.delivered += 1;
        true
    }

    /// The epoch to stamp on the packets that `link` accepts now. It wraps: a packet must not be under way over 256
    /// failures.
    #[inline]
    pub fn epoch(&self, link: LinkId) -> u8 {
        self.hot[link.index()].epoch
    }

    /// Propagation of `link`.
    #[inline]
    pub fn delay(&self, link: LinkId) -> Time {
        self.hot[link.index()].delay
    }

    /// Number of links.
    pub fn len(&self) -> usize {
        self.hot.len()
    }

    /// Whether there is no link.
    pub fn is_empty(&self) -> bool {
        self.hot.is_empty()
    }

    /// What is queued at `now`, which must not be before the link's last offer. It changes nothing: later offers may
    /// come before `now`.
    pub fn queue_len(&self, link: LinkId, now: Time) -> QueueLength {
        if let Some(held) = &self.cold[link.index()].held {
            return held.queue_len(now, self.hot[link.index()].busy_until);
        }
        let mut hot = self.hot[link.index()].clone();
        hot.release(now, self.cold[link.index()].rate, &self.rings);
        QueueLength { packets: hot.queued, bytes: hot.bytes(&self.rings) }
    }

    /// What `link` has done so far.
    pub fn counters(&self, link: LinkId) -> LinkCounters {
        let (hot, far) = (&self.hot[link.index()], &self.far[link.index()]);
        let (warm, cold) = (&self.warm[link.index()], &self.cold[link.index()]);
        LinkCounters {
            accepted: hot.accepted,
            accepted_bytes: hot.accepted_bytes,
            delivered: far.delivered,
            dropped: cold.dropped,
            dropped_bytes: cold.dropped_bytes,
            marked: warm.marked,
            lost: cold.lost + u64::from(far.lost),
            refused: cold.refused,
            queue_max: warm.queue_max,
        }
    }

    /// The average queue, in packets, of a link with random early detection, as of its last arrival.
    pub fn red_average(&self, link: LinkId) -> Option<f64> {
        match &self.cold[link.index()].aqm {
            AqmState::Red(red) => Some(red.average()),
            _ => None,
        }
    }

    /// The drop probability of a link with PIE, as of its last arrival.
    pub fn pie_probability(&self, link: LinkId) -> Option<f64> {
        match &self.cold[link.index()].aqm {
            AqmState::Pie(pie) => Some(pie.probability()),
            _ => None,
        }
    }
}

impl Hot {
    fn new(spec: &LinkSpec, ring: u32) -> Hot {
        Hot {
            busy_until: Time::ZERO,
            head_departs: Time::ZERO,
            delay: spec.delay,
            accepted: 0,
            accepted_bytes: 0,
            ps_per_byte: ps_per_byte(spec.rate),
            queued: 0,
            trigger: 0,
            ring,
            ring_mask: (1 << Rings::FIRST_LOG2) - 1,
            epoch: 0,
        }
    }

    /// Serialization at a rate of whole picoseconds per byte: below 2^16 * 2^32.
    #[inline]
    fn exact(&self, len: u16) -> Time {
        Time::from_ps(u64::from(self.ps_per_byte) * u64::from(len))
    }

    fn serialization(&self, len: u16, rate: Rate) -> Time {
        if self.ps_per_byte == 0 { rate.serialization(u64::from(len)) } else { self.exact(len) }
    }

    /// Where the packet accepted as number `n` is in the arena.
    #[inline]
    fn slot(&self, n: u64) -> usize {
        (self.ring + (n as u32 & self.ring_mask)) as usize
    }

    /// Length of the oldest queued packet.
    #[inline]
    fn head_len(&self, rings: &Rings) -> u16 {
        rings.lengths[self.slot(self.accepted - u64::from(self.queued))]
    }

    #[inline]
    fn release_exact(&mut self, now: Time, rings: &Rings) {
        self.release_by(now, rings, Hot::exact);
    }

    fn release(&mut self, now: Time, rate: Rate, rings: &Rings) {
        self.release_by(now, rings, |hot, len| hot.serialization(len, rate));
    }

    /// Nothing is queued on a link that has sent everything.
    #[inline]
    fn forget_if_idle(&mut self, now: Time) {
        self.queued = select_unpredictable(self.busy_until > now, self.queued, 0);
    }

    /// Takes what has left by `now` off the ring; the packet behind the head leaves one serialization after it.
    #[inline]
    fn release_by(&mut self, now: Time, rings: &Rings, serialization: impl Fn(&Hot, u16) -> Time) {
        if self.busy_until <= now {
            self.queued = 0;
            return;
        }
        // A link that failed has nothing queued although it was busy until then.
        while self.queued > 0 && self.head_departs <= now {
            self.queued -= 1;
            self.head_departs += serialization(self, self.head_len(rings));
        }
    }

    /// Bytes queued, the packet being sent whole.
    fn bytes(&self, rings: &Rings) -> u64 {
        if self.queued == 0 {
            0
        } else if self.ps_per_byte != 0 {
            let behind_head = (self.busy_until - self.head_departs).as_ps() / u64::from(self.ps_per_byte);
            u64::from(self.head_len(rings)) + behind_head
        } else {
            let oldest = self.accepted - u64::from(self.queued);
            (oldest..self.accepted).map(|n| u64::from(rings.lengths[self.slot(n)])).sum()
        }
    }

    /// Queues a packet; the ring has room for it.
    #[inline]
    fn accept(&mut self, now: Time, len: u16, serialization: Time, rings: &mut Rings) -> Sent {
        debug_assert!(self.queued <= self.ring_mask, "a ring never overflows");
        let departs = self.busy_until.max(now) + serialization;
        rings.lengths[self.slot(self.accepted)] = len;
        self.head_departs = select_unpredictable(self.queued == 0, departs, self.head_departs);
        self.busy_until = departs;
        self.queued += 1;
        self.accepted += 1;
        self.accepted_bytes += u64::from(len);
        Sent { departs, arrives: departs + self.delay, epoch: self.epoch }
    }
}

impl Warm {
    fn new(spec: &LinkSpec) -> Warm {
        let counts_packets = matches!(spec.queue.limit, Limit::Unlimited | Limit::Packets(_));
        let marks_packets = matches!(spec.queue.aqm, Aqm::None | Aqm::Threshold(Depth::Packets(_)));
        Warm {
            marked: 0,
            mark_at: match spec.queue.aqm {
                Aqm::Threshold(Depth::Packets(k)) => k,
                _ => u32::MAX,
            },
            queue_max: 0,
            plain: counts_packets && marks_packets && ps_per_byte(spec.rate) != 0,
            down: false,
        }
    }

    /// Marks a packet that came with `ecn`, if it may be and is not yet.
    #[inline]
    fn mark(&mut self, ecn: Ecn) -> bool {
        let marked = ecn.is_capable() && ecn != Ecn::Ce;
        self.marked += u64::from(marked);
        marked
    }

    /// Up to where the short path may decide: it neither marks nor lets the queue become longer than ever.
    fn trigger(&self) -> u32 {
        if self.plain && !self.down { self.queue_max.min(self.mark_at) } else { 0 }
    }
}

impl Cold {
    fn new(spec: &LinkSpec, random: SplitMix64) -> Cold {
        let aqm = match &spec.queue.aqm {
            Aqm::None | Aqm::Held(_) => AqmState::None,
            Aqm::Threshold(depth) => AqmState::Threshold(*depth),
            Aqm::Red(red) => AqmState::Red(Box::new(Red::new(red, spec.rate, random))),
            Aqm::Pie(pie) => AqmState::Pie(Box::new(Pie::new(pie, random))),
        };
        Cold {
            rate: spec.rate,
            limit: spec.queue.limit,
            aqm,
            buffer: None,
            held: Held::of(&spec.queue),
            loss: None,
            jitter: None,
            dropped: 0,
            dropped_bytes: 0,
            lost: 0,
            refused: 0,
        }
    }
}

impl Loss {
    /// Streams of random numbers after those of random early detection.
    const STREAMS: u64 = 1 << 32;

    /// Is the next packet lost?
    fn strikes(&mut self) -> bool {
        self.random.unit() < self.probability
    }
}

impl Jitter {
    /// Streams of random numbers after those of losses.
    const STREAMS: u64 = 2 << 32;

    /// When the packet whose last bit arrives at `at` has been taken.
    fn delayed(&mut self, at: Time) -> Time {
        let extra = Time::from_ps((self.random.unit() * self.most.as_ps() as f64) as u64);
        self.done = self.done.max(at + extra);
        self.done
    }
}

/// Picoseconds per byte of `rate` if that is a whole number below 2^32, else 0.
fn ps_per_byte(rate: Rate) -> u32 {
    const PS_BITS: u64 = 8_000_000_000_000;
    if PS_BITS.is_multiple_of(rate.as_bps()) { u32::try_from(PS_BITS / rate.as_bps()).unwrap_or(0) } else { 0 }
}

fn fault(topology: &Topology, id: LinkId, spec: &LinkSpec) -> Option<NetError> {
    let name = || topology.link_name(id);
    if spec.rate.as_bps() == 0 {
        return Some(NetError::ZeroRate(name()));
    }
    match spec.queue.limit {
        Limit::Packets(0) => return Some(NetError::ZeroLimit(name())),
        Limit::Bytes(bytes) if bytes.get() == 0 => return Some(NetError::ZeroLimit(name())),
        _ => {}
    }
    match &spec.queue.aqm {
        Aqm::Red(red) => red.fault().map(|why| NetError::Red { link: name(), why }),
        Aqm::Pie(pie) => pie.fault().map(|why| NetError::Queue { link: name(), why }),
        Aqm::Held(held) => held.fault().map(|why| NetError::Queue { link: name(), why }),
        _ => None,
    }
}

/// The rings of all links in one vector. A ring doubles when its queue outgrows it; the old half is used again.
#[derive(Debug, Clone, Default)]
struct Rings {
    lengths: Vec<u16>,
    /// Starts of unused rings, by the logarithm of their capacity.
    free: [Vec<u32>; 32],
}

impl Rings {
    /// Rings start with eight packets, 16 bytes: most ports of a large network never queue more.
    const FIRST_LOG2: u8 = 3;

    /// Start of an unused ring of `1 << log2` packets.
    fn claim(&mut self, log2: u8) -> u32 {
        if let Some(start) = self.free[usize::from(log2)].pop() {
            return start;
        }
        let start = self.lengths.len();
        let end = start + (1usize << log2);
        assert!(u32::try_from(end).is_ok(), "over 2^32 packets queued in the network");
        self.lengths.resize(end, 0);
        start as u32
    }

    /// Moves the full ring of `hot` to one of twice the capacity.
    fn grow(&mut self, hot: &mut Hot) {
        let old = hot.clone();
        let old_log2 = (old.ring_mask + 1).ilog2() as u8;
        hot.ring = self.claim(old_log2 + 1);
        hot.ring_mask = 2 * old.ring_mask + 1;
        for n in old.accepted - u64::from(old.queued)..old.accepted {
            self.lengths[hot.slot(n)] = self.lengths[old.slot(n)];
        }
        self.free[usize::from(old_log2)].push(old.ring);
    }
}
