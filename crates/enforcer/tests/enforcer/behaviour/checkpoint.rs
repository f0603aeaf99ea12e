//! What another enforcer takes over.

use super::{C, S, ack, burst, data, newreno};
use crate::rig::{self, CLIENT_ISS, Rig, STACK, config, rig, segment};
use enforcer::{Checkpoint, Enforcer, Limits, Rule, Simulated};
use prost::Message as _;
use std::sync::Mutex;
use testkit::{Random, asked};
use units::Time;

/// What a checkpoint's bytes stand for: simulated packets have none.
static PACKETS: Mutex<Vec<Simulated>> = Mutex::new(Vec::new());

fn write(packet: &Simulated) -> Vec<u8> {
    let mut packets = PACKETS.lock().expect("no test has panicked");
    packets.push(*packet);
    (packets.len() - 1).to_be_bytes().to_vec()
}

fn read(bytes: &[u8]) -> Option<Simulated> {
    PACKETS.lock().expect("no test has panicked").get(usize::from_be_bytes(bytes.try_into().ok()?)).copied()
}

/// Another enforcer in the place of the rig's, by a clock that is ahead of its clock.
fn hand_over(rig: &mut Rig, limits: Limits, rules: Vec<Rule>) -> Vec<bool> {
    let later = rig.now + Time::from_secs(1_000_000);
    let mut next = Enforcer::new(limits, rules, 7);
    next.make_room(rig.enforcer.flows());
    next.restore_handshakes(later, &rig.enforcer.handshakes(rig.now));
    let flows: Vec<Checkpoint> = rig.enforcer.checkpoints(rig.now, write).collect();
    let taken = flows.iter().map(|flow| next.restore(later, flow, read)).collect();
    rig.now = later;
    rig.replace(next);
    taken
}

fn bbr() -> Vec<Rule> {
    vec![Rule::all(&config("bbr"))]
}

#[test]
fn a_handshake_is_taken_over_also_amid_a_flood() {
    for syns in [0, 20_000] {
        let mut rig = rig("bbr", Limits::default(), STACK);
        let (syn, answer) = (rig.syn(CLIENT_ISS), rig.answer());
        rig.client(0, syn);
        rig.server(0, answer);
        for spoofed in 1..=syns {
            rig.client(spoofed, syn);
        }
        assert!(hand_over(&mut rig, Limits::default(), bbr()).is_empty());
        rig.now += Time::from_ms(10);
        rig.client(0, segment(C, S, 0));
        assert_eq!(rig.enforcer.flows(), 1, "after {syns} SYNs more");
    }
}

#[test]
fn a_flow_without_a_rule_or_a_place_leaves_with_what_was_delayed() {
    let none = || (Limits::default(), Vec::new());
    let no_place = || (Limits { flows: 0, ..Limits::default() }, bbr());
    for (limits, rules) in [none(), no_place()] {
        let mut rig = newreno();
        let sent = burst(&mut rig, 0, 15).len() as u32;
        assert!((1..15).contains(&sent), "some are delayed: {sent}");
        assert_eq!(hand_over(&mut rig, limits, rules), [false]);
        let left: Vec<u32> = rig.leaves().into_iter().map(|segment| segment.seq).collect();
        assert_eq!(left, (sent..15).map(|n| data(n).seq).collect::<Vec<_>>());
        assert_eq!((rig.enforcer.flows(), rig.enforcer.buffered_bytes()), (0, 0));
    }
}

#[test]
fn a_flow_keeps_its_age_and_its_idle_time() {
    let mut rig = newreno();
    rig.now += Time::from_secs(100);
    hand_over(&mut rig, Limits::default(), bbr());
    let record = rig.enforcer.open_records(rig.now).next().expect("it is enforced");
    assert_eq!(record.ended - record.began, Time::from_secs(100));
    // it is forgotten at the same time as if nothing had happened
    rig.now += Limits::default().idle - Time::from_secs(50);
    assert_eq!(rig.client(1, segment(C, S, 0)).map(|segment| segment.seq), Some(C));
    // each sixteenth packet looks at one flow
    for n in 0..64 {
        rig.client(n + 2, segment(C, S, 0));
    }
    assert_eq!(rig.enforcer.flows(), 0);
}

#[test]
fn a_state_that_cannot_be_is_refused() {
    let mut rig = newreno();
    burst(&mut rig, 0, 15);
    let flow = rig.enforcer.checkpoints(rig.now, write).next().expect("it is enforced");
    let refused = |change: fn(&mut Checkpoint)| {
        let mut changed = flow.clone();
        change(&mut changed);
        let mut next = Enforcer::new(Limits::default(), bbr(), 7);
        let taken = next.restore(rig.now, &changed, read);
        assert!(next.restore(rig.now, &flow, read) != taken, "it has the flow already, or not");
        !taken
    };
    assert!(!refused(|_| ()));
    assert!(refused(|flow| flow.relay = None));
    assert!(refused(|flow| flow.buffer = None));
    assert!(refused(|flow| flow.server_address.truncate(4)));
    assert!(refused(|flow| flow.client_port = 1 << 16));
    assert!(refused(|flow| flow.client_scale = 15));
    assert!(refused(|flow| flow.buffer.as_mut().expect("it buffers").first += 1 << 20));
    assert!(refused(|flow| flow.buffer.as_mut().expect("it buffers").link.clear()));
    assert!(refused(|flow| flow.buffer.as_mut().expect("it buffers").pieces.truncate(1)));
    assert!(refused(|flow| flow.buffer.as_mut().expect("it buffers").pieces[0].len = 0));
    assert!(refused(|flow| flow.relay.as_mut().expect("it has one").nxt += 1 << 20));
}

#[test]
fn a_damaged_checkpoint_does_no_harm() {
    let mut rig = newreno();
    burst(&mut rig, 0, 15);
    let whole: Vec<u8> = rig.enforcer.checkpoints(rig.now, write).next().expect("it is enforced").encode_to_vec();
    let mut random = Random(7);
    let limits = Limits { half_open: 64, ..Limits::default() };
    let (mut taken, mut kept) = (0, 0);
    for _ in 0..asked("ENFORCER_DAMAGES").unwrap_or(20_000) {
        let mut bytes = whole.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next() as u8;
        }
        let Ok(flow) = Checkpoint::decode(bytes.as_slice()) else { continue };
        let mut next = Enforcer::new(limits, bbr(), 7);
        if random.below(2) == 0 {
            taken += u64::from(next.restore(rig.now, &flow, read));
        } else {
            next.mirror(rig.now, flow);
            kept += next.mirrored() as u64;
        }
        let mut damaged = rig::rig("bbr", limits, STACK);
        damaged.now = rig.now;
        damaged.replace(next);
        for n in 0..20 {
            damaged.now += Time::from_ms(50 * n);
            damaged.server(0, data(10 + n as u32));
            damaged.client(0, ack(5 + n as u32));
            damaged.enforcer.on_timer(damaged.now);
            damaged.leaves();
        }
    }
    println!("{taken} were taken, {kept} kept");
    assert!(taken > 1000 && kept > 1000, "{taken}, {kept}");
}
