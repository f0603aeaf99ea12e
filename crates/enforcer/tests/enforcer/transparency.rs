//! Random connections through an enforcer, over wires that lose, reorder, duplicate, corrupt and mark: every byte arrives, both
//! ends close, and neither is sent what the other did not send.
//!
//! A few hundred connections; `ENFORCER_TRANSFERS` sets more, and `ENFORCER_SEED` selects one of them.

use crate::world::World;
use congestion::Algorithm;
use enforcer::{Counters, Enforcer, Limits, Rule, Simulated, Treatment};
use prost::Message;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use tcp::{Config, DelayedAck, EcnMode, Endpoint, Segment, State, flags};
use testkit::{Faults, Random, Wire, asked};
use units::{Rate, Time};

const TRANSFERS: u64 = 1_000;
/// Longer than any RTO: then nothing more will come.
const QUIET: Time = Time::from_secs(60);
/// A run without the enforcer may take that long; it is then not compared.
const LONGEST: Time = Time::from_secs(20_000);
/// A few of the longest RTOs in a row.
const SLOWEST: Time = Time::from_secs(600);
/// How often to try whether a connection stalls without the enforcer too.
const LUCKS: u64 = 200;

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finish {
    /// Each end closes when it has written all.
    Each,
    /// The client closes at once, and continues to receive.
    ClientFirst,
    /// A RST from either end.
    Reset { by: usize, at: Time },
}

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    /// The probabilities of the links' faults.
    luck: u64,
    configs: [Config; 2],
    enforced: &'static Algorithm,
    /// Which end opens the connection.
    opener: usize,
    bytes: [u64; 2],
    out: [Wire; 2],
    back: [Wire; 2],
    finish: Finish,
    iss: [u32; 2],
    /// The enforcer's limits.
    buffer_bytes: usize,
    /// Another enforcer echoes marks in the client's place.
    echoes: bool,
    /// Events, in order.
    events: Vec<(Time, Event)>,
}

/// Events during a connection.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The links of a hop fail, or recover. 0: the server's.
    Cut { hop: usize, on: bool },
    /// The client's RTT to the enforcer changes.
    Away(Time),
    /// An end stops writing, or resumes.
    Mute { end: usize, on: bool },
    /// An end stops reading, or resumes.
    Deaf { end: usize, on: bool },
    /// The flows' algorithm changes.
    Rule(&'static Algorithm),
    /// No rule is for the flows any more.
    NoRule,
    /// The enforcer is replaced by an empty one: everything that it buffered is lost.
    Crash,
    /// The enforcer is removed; what it buffered is sent.
    Stop,
    /// Another enforcer takes over.
    HandOver,
    /// The standby hears of what has changed.
    Report,
    /// The enforcer is gone, and the packets come to its standby.
    FailOver,
}

/// All faults, at moderate rates.
fn any_events(random: &mut Random) -> Vec<(Time, Event)> {
    let mut events = Vec::new();
    for _ in 0..=random.below(4) {
        // from 1 ms to 16 s
        let at = Time::from_us((1_000 << random.below(14)) + random.below(1_000_000));
        let ends = at + Time::from_us((50_000 << random.below(9)) + random.below(50_000));
        let end = random.below(2) as usize;
        let lasting = |what: fn(usize, bool) -> Event| [(at, what(end, true)), (ends, what(end, false))];
        match random.below(9) {
            0 | 1 => events.extend(lasting(|hop, on| Event::Cut { hop, on })),
            2 => events.push((at, Event::Away(Time::from_us(20 << random.below(15))))),
            3 => events.extend(lasting(|end, on| Event::Mute { end, on })),
            4 => events.extend(lasting(|end, on| Event::Deaf { end, on })),
            5 => events.push((at, Event::Rule(any_algorithm(random)))),
            6 => events.push((at, Event::Crash)),
            7 => events.push((at, Event::HandOver)),
            _ => events.push((at, *random.any(&[Event::Stop, Event::NoRule]))),
        }
    }
    events.sort_by_key(|(at, _)| *at);
    events
}

fn any_algorithm(random: &mut Random) -> &'static Algorithm {
    let all = Algorithm::builtins();
    &all[random.below(all.len() as u64) as usize]
}

fn any_config(random: &mut Random) -> Config {
    let receive_buffer = [20_000, 64_000, 300_000, 6 << 20, 500 << 20][random.below(5) as usize];
    Config {
        mtu: [576, 1280, 1500, 1500, 9000][random.below(5) as usize],
        initial_cwnd: [1, 3, 10, 20][random.below(4) as usize],
        sack: random.below(4) > 0,
        timestamps: random.below(4) > 0,
        window_scaling: random.below(4) > 0,
        rack: random.below(4) > 0,
        tlp: random.below(4) > 0,
        frto: random.below(4) > 0,
        ecn: [EcnMode::Auto, EcnMode::Off, EcnMode::On][random.below(3) as usize],
        delayed_ack: DelayedAck {
            segments: 1 + random.below(3) as u32,
            timeout: Time::from_ms(1 + random.below(200)),
            timeout_max: Time::from_ms(200),
            quickack: random.below(2) > 0,
        },
        receive_buffer,
        send_buffer: [64_000, 1 << 20, 4 << 20][random.below(3) as usize],
        ..Config::linux(any_algorithm(random))
    }
}

/// Log-uniform up to `most`; one in eight is zero.
fn any_size(random: &mut Random, most: u64) -> u64 {
    if random.below(8) == 0 {
        return 0;
    }
    let bits = random.below(1000) as f64 / 1000.0 * (most as f64).log2();
    bits.exp2() as u64
}

fn any_wire(random: &mut Random, bad: bool, delay: Time) -> Wire {
    let clean = Faults::clean(delay);
    if !bad {
        return Wire::new(clean);
    }
    let part = |random: &mut Random, most: f64| random.below(1000) as f64 / 1000.0 * most;
    Wire::new(Faults {
        rate: (random.below(2) > 0)
            .then(|| (Rate::from_bps(1_000_000 << random.below(8)), 20 + random.below(80) as usize)),
        loss: part(random, 0.05),
        reorder: part(random, 0.05),
        duplicate: part(random, 0.02),
        corrupt: part(random, 0.01),
        mark: part(random, 0.1),
        ..clean
    })
}

fn case(seed: u64) -> Case {
    let mut random = Random(seed);
    let most = if std::env::var_os("ENFORCER_TRANSFERS").is_some() { 20_000_000 } else { 500_000 };
    let bad = [[false, true], [true, false], [true, true]][random.below(8).saturating_sub(5) as usize];
    let near = Time::from_us(10 + random.below(500));
    let far = Time::from_us(50 + random.below(60_000));
    let r = &mut random;
    let (out, back) =
        ([any_wire(r, bad[0], near), any_wire(r, bad[1], far)], [any_wire(r, bad[1], far), any_wire(r, bad[0], near)]);
    let finish = match random.below(10) {
        0 => Finish::Reset { by: random.below(2) as usize, at: Time::from_ms(random.below(3_000)) },
        1 | 2 => Finish::ClientFirst,
        _ => Finish::Each,
    };
    let bytes = any_size(&mut random, most);
    let upload = if random.below(3) == 0 { most } else { 2_000 };
    Case {
        seed,
        luck: 0,
        configs: [any_config(&mut random), any_config(&mut random)],
        enforced: any_algorithm(&mut random),
        opener: usize::from(random.below(4) > 0),
        bytes: [bytes, any_size(&mut random, upload)],
        out,
        back,
        finish,
        // near the wrap half of the time
        iss: [random.next() as u32, (random.below(100_000) as u32).wrapping_neg()],
        buffer_bytes: if random.below(8) == 0 { 3_000 << random.below(8) } else { Limits::default().buffer_bytes },
        echoes: Random(seed ^ 0xec).below(2) > 0,
        events: Vec::new(),
    }
}

/// The same connection with more faults.
fn hard_case(seed: u64) -> Case {
    Case { events: any_events(&mut Random(seed ^ 0xbad)), ..case(seed) }
}

/// A run's result.
#[derive(Debug, PartialEq)]
struct Outcome {
    received: [u64; 2],
    finished: bool,
    longest_quiet: Time,
    took: Time,
    counters: Counters,
}

impl Outcome {
    fn stands_still(&self) -> bool {
        !self.finished || self.longest_quiet > QUIET
    }
}

struct Run {
    world: World,
    written: [u64; 2],
    closed: [bool; 2],
    mute: [bool; 2],
    deaf: [bool; 2],
    reset: bool,
    /// The number of executed events.
    events: usize,
    standby: Option<Enforcer<Simulated>>,
}

fn rules(algorithm: &'static Algorithm) -> Vec<Rule> {
    vec![Rule::all(&Arc::new(Config::linux(algorithm)))]
}

fn enforcer(case: &Case) -> Enforcer<Simulated> {
    let limits = Limits { buffer_bytes: case.buffer_bytes, half_open: 1 << 10, ..Limits::default() };
    Enforcer::new(limits, rules(case.enforced), case.seed)
}

/// Another enforcer in the place of `old`, which knows what that has written down.
fn successor(case: &Case, now: Time, old: &Enforcer<Simulated>) -> Enforcer<Simulated> {
    // a simulated packet has no bytes: its number stands for it
    let packets = RefCell::new(Vec::new());
    let write = |packet: &Simulated| {
        packets.borrow_mut().push(*packet);
        packets.borrow().len().to_be_bytes().to_vec()
    };
    let read = |bytes: &[u8]| Some(packets.borrow()[usize::from_be_bytes(bytes.try_into().ok()?) - 1]);
    let mut new = enforcer(case);
    new.restore_handshakes(now, &reread(&old.handshakes(now)));
    for flow in old.checkpoints(now, write) {
        assert!(new.restore(now, &reread(&flow), read), "seed {}: {flow:?}", case.seed);
    }
    assert_eq!(new.flows(), old.flows(), "seed {}", case.seed);
    new
}

/// The message, written and read.
fn reread<M: Message + Default>(message: &M) -> M {
    M::decode(message.encode_to_vec().as_slice()).expect("it was just written")
}

fn begin(case: &Case, enforced: bool) -> Run {
    let ends = [0, 1].map(|end| {
        let config = Arc::new(case.configs[end].clone());
        if case.opener == end {
            Endpoint::connect(&config, case.iss[end], 3)
        } else {
            Endpoint::listen(&config, case.iss[end], 5)
        }
    });
    let mut world = World::new(ends, case.out.clone(), case.back.clone(), case.seed ^ case.luck << 32);
    if enforced {
        world.enforcer = Some(enforcer(case));
        let rule = Rule { treatment: Treatment::Echo, ..rules(case.enforced).remove(0) };
        world.echo = case.echoes.then(|| Enforcer::new(Limits::default(), vec![rule], case.seed));
    }
    world.act(case.opener, |_, _| ());
    Run {
        world,
        written: [0; 2],
        closed: [false; 2],
        mute: [false; 2],
        deaf: [false; 2],
        reset: false,
        events: 0,
        standby: None,
    }
}

impl Run {
    /// Lets the applications write and read.
    fn work(&mut self, case: &Case) {
        for end in 0..2 {
            let state = self.world.ends[end].state();
            if matches!(state, State::Listen | State::SynSent | State::SynReceived) || self.mute[end] {
                continue;
            }
            let missing = case.bytes[end] - self.written[end];
            if missing > 0 && self.world.ends[end].send_room() > 0 {
                self.written[end] += self.world.act(end, |endpoint, now| endpoint.write(now, missing));
            }
            let early = case.finish == Finish::ClientFirst && end == 1;
            let done = self.written[end] == case.bytes[end];
            if !self.closed[end] && done && (early || self.world.ends[end].received() == case.bytes[1 - end]) {
                self.world.act(end, Endpoint::close);
                self.closed[end] = true;
            }
        }
        if let Finish::Reset { by, at } = case.finish
            && !self.reset
            && self.world.now >= at
            && self.world.ends[by].is_established()
        {
            self.reset = true;
            let sock = self.world.ends[by].sock();
            let segment =
                Segment { seq: sock.snd_nxt, ack: sock.rcv_nxt, flags: flags::RST | flags::ACK, ..Segment::default() };
            self.world.send(by, segment);
        }
    }

    /// Executes due events.
    fn befall(&mut self, case: &Case) {
        while let Some((_, event)) = case.events.get(self.events).filter(|(at, _)| *at <= self.world.now) {
            self.events += 1;
            let world = &mut self.world;
            match *event {
                Event::Cut { hop, on } => (world.out[hop].cut, world.back[1 - hop].cut) = (on, on),
                Event::Away(delay) => (world.out[1].faults.delay, world.back[0].faults.delay) = (delay, delay),
                Event::Mute { end, on } => self.mute[end] = on,
                Event::Deaf { end, on } => {
                    self.deaf[end] = on;
                    world.act(end, |endpoint, now| endpoint.set_reading(now, !on));
                }
                Event::Rule(algorithm) => {
                    world.enforcer.iter_mut().for_each(|enforcer| enforcer.set_rules(world.now, rules(algorithm)));
                    world.drain();
                }
                Event::NoRule => {
                    world.enforcer.iter_mut().for_each(|enforcer| enforcer.set_rules(world.now, Vec::new()));
                    world.drain();
                }
                Event::HandOver => {
                    let now = world.now;
                    world.enforcer.iter_mut().for_each(|old| *old = successor(case, now, old));
                    world.drain();
                }
                Event::Report => {
                    let standby = self.standby.get_or_insert_with(|| enforcer(case));
                    if let Some(active) = &mut world.enforcer {
                        active.begin_reports();
                        while let Some(flow) = active.poll_changed(world.now) {
                            standby.mirror(world.now, reread(&flow));
                        }
                    }
                }
                Event::FailOver => {
                    world.enforcer = self.standby.take().or(world.enforcer.take());
                    world.watch.forget_offers();
                }
                Event::Crash => world.enforcer.iter_mut().for_each(|old| *old = enforcer(case)),
                Event::Stop => {
                    world.enforcer.iter_mut().for_each(|enforcer| enforcer.release(world.now));
                    world.drain();
                    world.enforcer = None;
                }
            }
        }
        self.world.alarm = case.events.get(self.events).map_or(Time::NEVER, |(at, _)| *at);
    }

    /// Grows when there is progress, or a phase begins.
    fn progress(&self) -> [u64; 5] {
        let [a, b] = &self.world.ends;
        let [of_a, of_b] = [a, b].map(|end| end.received() + end.acked());
        [of_a, of_b, a.state() as u64, b.state() as u64, self.events as u64]
    }
}

fn run(case: &Case, enforced: bool) -> Outcome {
    let mut run = begin(case, enforced);
    let mut last = (Time::ZERO, run.progress());
    let mut longest_quiet = Time::ZERO;
    let mut finished = false;
    loop {
        run.befall(case);
        run.work(case);
        let progress = run.progress();
        if progress != last.1 {
            last = (run.world.now, progress);
        }
        longest_quiet = longest_quiet.max(run.world.now.saturating_sub(last.0));
        let closed = run.world.ends.iter().filter(|end| end.is_closed()).count();
        finished = finished || (closed == 2 && run.deaf == [false; 2]) || (run.reset && closed > 0);
        if finished || run.world.now > LONGEST || !run.world.step() {
            break;
        }
    }
    let world = &run.world;
    assert_eq!(world.watch.complaint, None, "seed {}", case.seed);
    if finished && !run.reset {
        for end in 0..2 {
            assert_eq!(world.ends[end].received(), case.bytes[1 - end], "seed {}", case.seed);
            assert_eq!(world.ends[end].acked(), case.bytes[end], "seed {}", case.seed);
        }
    }
    Outcome {
        received: [world.ends[0].received(), world.ends[1].received()],
        finished,
        longest_quiet,
        took: world.now,
        counters: world.enforcer.as_ref().map_or_else(Counters::default, |enforcer| *enforcer.counters()),
    }
}

/// The enforcer's counters.
///
/// Connections without SACK or timestamps sometimes stall by themselves: one that stalls with an enforcer must also stall without
/// one, perhaps with other random faults.
fn is_transparent(seed: u64) -> Outcome {
    let case = case(seed);
    let enforced = run(&case, true);
    if enforced.stands_still() {
        let direct = |luck| run(&Case { luck, ..case.clone() }, false);
        let too = (0..LUCKS).any(|luck| direct(luck).stands_still());
        assert!(too, "seed {seed} stalls, but never without the enforcer: {enforced:?}\n{case:#?}");
    }
    enforced
}

#[test]
fn connections_go_through_as_if_there_were_no_enforcer() {
    if let Some(seed) = asked("ENFORCER_SEED") {
        is_transparent(seed);
        return;
    }
    let many = asked("ENFORCER_TRANSFERS").unwrap_or(TRANSFERS);
    let outcomes: Vec<Outcome> = (0..many).map(is_transparent).collect();
    let sum = |count: fn(&Counters) -> u64| outcomes.iter().map(|outcome| count(&outcome.counters)).sum::<u64>();
    let still = outcomes.iter().filter(|outcome| outcome.stands_still()).count() as u64;
    println!("{} of {many} went through without a pause of a minute", many - still);
    assert!(still * 1000 <= many, "{still}");
    // the cases cover everything that can happen to a flow
    assert!(sum(|c| c.flows_opened) * 100 >= many * 90, "{}", sum(|c| c.flows_opened));
    for (what, count) in [
        ("closed", sum(|c| c.flows_closed)),
        ("reset", sum(|c| c.flows_reset)),
        ("retransmitted", sum(|c| c.retransmitted)),
        ("absorbed", sum(|c| c.absorbed)),
        ("hidden", sum(|c| c.hidden)),
        ("echoes hidden", sum(|c| c.ece_hidden)),
        ("with ECN in the server's place", sum(|c| c.ecn_agreed)),
        ("and then without", sum(|c| c.ecn_stopped)),
        ("gaps", sum(|c| c.gaps)),
        ("gaps filled", sum(|c| c.gaps_filled)),
        ("held", sum(|c| c.data_held)),
        ("acknowledged ahead", sum(|c| c.acks_ahead)),
        ("passed untouched, as buffers were full", sum(|c| c.passed_buffers_full)),
        ("dropped, as buffers were full", sum(|c| c.buffers_full_dropped)),
        ("malformed", sum(|c| c.passed_malformed)),
    ] {
        println!("{what}: {count}");
        assert!(count > 0, "{what}");
    }
}

/// Of connections that pass from enforcer to enforcer every second or so, those that stall, and of the others' durations, as multiples
/// of those by one enforcer alone, the median and the 95th percentile.
fn passed_on(many: u64) -> (u64, [f64; 2]) {
    let mut took = Vec::new();
    let mut still = 0;
    for seed in asked("ENFORCER_SEED").map_or(0..many, |seed| seed..seed + 1) {
        let alone = case(seed);
        let mut random = Random(seed ^ 0x4a4d);
        let times = (0..100).map(|n| Time::from_us(n * 1_000_000 + random.below(1_000_000)));
        let events = times.map(|at| (at, Event::HandOver)).collect();
        let passed = Case { events, ..alone.clone() };
        let (alone, passed) = (run(&alone, true), run(&passed, true));
        still += u64::from(passed.stands_still() && !alone.stands_still());
        // shorter ones are hardly passed on
        if alone.finished && passed.finished && alone.took > Time::from_ms(100) {
            took.push(passed.took.as_secs_f64() / alone.took.as_secs_f64());
        }
    }
    took.sort_by(f64::total_cmp);
    (still, [took[took.len() / 2], took[took.len() * 95 / 100]])
}

#[test]
fn connections_pass_from_enforcer_to_enforcer() {
    let many = asked("ENFORCER_TRANSFERS").unwrap_or(TRANSFERS) / 4;
    let (still, [median, p95]) = passed_on(many);
    println!("{still} of {many} stall; they take {median:.3} times as long, and {p95:.2} (95 %)");
    assert_eq!(still, 0);
    assert!(median < 1.1 && p95 < 1.5, "{median}, {p95}");
}

/// Of connections whose enforcer is gone every second or so, and whose packets come to its standby then: the numbers of flows that were
/// enforced at first, that standbys have taken, and of connections that stall; and the median of the durations as multiples of those by one
/// enforcer alone.
fn failed_over(many: u64) -> (u64, u64, u64, f64) {
    let (mut opened, mut promoted, mut still, mut took) = (0, 0, 0, Vec::new());
    for seed in asked("ENFORCER_SEED").map_or(0..many, |seed| seed..seed + 1) {
        let alone = case(seed);
        let mut random = Random(seed ^ 0xfa11);
        let mut events: Vec<_> = (1..200).map(|n| (Time::from_ms(n * 100), Event::Report)).collect();
        events.extend((0..20).map(|n| (Time::from_us(n * 1_000_000 + random.below(1_000_000)), Event::FailOver)));
        if seed % 2 == 1 {
            // also while a standby catches up
            events.extend((0..20).map(|n| (Time::from_us(n * 1_000_000 + random.below(1_000_000)), Event::HandOver)));
        }
        events.sort_by_key(|(at, _)| *at);
        let failed = Case { events, ..alone.clone() };
        let (alone, failed) = (run(&alone, true), run(&failed, true));
        still += u64::from(failed.stands_still() && !alone.stands_still());
        opened += failed.counters.flows_opened;
        promoted += failed.counters.flows_promoted;
        if alone.finished && failed.finished && alone.took > Time::from_ms(100) {
            took.push(failed.took.as_secs_f64() / alone.took.as_secs_f64());
        }
    }
    took.sort_by(f64::total_cmp);
    (opened, promoted, still, took[took.len() / 2])
}

#[test]
fn connections_continue_through_a_standby() {
    let many = asked("ENFORCER_TRANSFERS").unwrap_or(TRANSFERS) / 4;
    let (opened, promoted, still, median) = failed_over(many);
    println!(
        "{promoted} flows were taken over, {opened} were not; {still} of {many} stall; they take {median:.3} times as long"
    );
    assert_eq!(still, 0);
    assert!(promoted * 10 > many && median < 1.2, "{promoted}, {median}");
}

#[test]
fn connections_survive_outages_as_well_as_without_an_enforcer() {
    let many = asked("ENFORCER_TRANSFERS").unwrap_or(TRANSFERS);
    let seeds = asked("ENFORCER_SEED").map_or(0..many, |seed| seed..seed + 1);
    let (mut pauses, mut without) = (0, 0);
    for seed in seeds {
        let case = hard_case(seed);
        let (enforced, direct) = (run(&case, true), run(&case, false));
        assert!(
            enforced.finished || !direct.finished,
            "seed {seed} ends only without an enforcer: {enforced:?}\n{case:#?}"
        );
        pauses += u64::from(enforced.longest_quiet > QUIET);
        without += u64::from(direct.longest_quiet > QUIET);
    }
    println!("of {many}, {pauses} paused for a minute, and {without} without an enforcer");
    // ends without SACK or timestamps may do so by themselves, of which a few more or less are chance
    assert!(pauses <= without + 3 + without / 2, "{pauses} against {without}");
}

#[test]
fn connections_complete_whatever_the_algorithm_returns() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/enforcer/nonsense.c");
    let nonsense = Algorithm::load(&file).unwrap_or_else(|error| panic!("{error}"));
    let many = asked("ENFORCER_TRANSFERS").unwrap_or(TRANSFERS);
    for seed in 0..many {
        let case = Case { enforced: nonsense, ..case(seed) };
        let enforced = run(&case, true);
        // a byte a second is slow but allowed, an RTO doubled without limit is not
        let goes_on = enforced.took > LONGEST && enforced.longest_quiet < SLOWEST;
        assert!(enforced.finished || goes_on || !run(&case, false).finished, "seed {seed}: {enforced:?}\n{case:#?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..20 {
        assert_eq!(run(&case(seed), true), run(&case(seed), true), "seed {seed}");
    }
}
