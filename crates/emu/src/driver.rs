//! The loop that runs the engine by the wall clock.

use crate::engine::Engine;
use crate::port::{Clock, Head, Ports};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use units::Time;

/// Cost of polling the ports, in real time as all here: events that are due sooner go first.
const LOOK: Time = Time::from_ns(1000);
/// But polling is never delayed longer than this, however much is due.
const LOOK_EVERY: Time = Time::from_us(5);

/// A thread that has not polled for so long was paused.
const PAUSE: Time = Time::from_us(50);
/// After a pause, read at most so many rounds before anything else: what a host's interface holds.
const ROUNDS: usize = 1000;

/// Runs the network from now to `end`, or until `stop`.
///
/// It never sleeps: a thread that sleeps is woken 25 to 40 us late, which is several packets at 1 Gbit/s.
pub fn drive<P>(
    engine: &mut Engine<P>,
    ports: &mut impl Ports<Packet = P>,
    clock: &impl Clock,
    end: Time,
    stop: &AtomicBool,
) {
    let [look, look_every, pause] = [LOOK, LOOK_EVERY, PAUSE].map(|span| clock.of_real(span));
    let mut looked = clock.now();
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        if now >= end {
            break;
        }
        let paused = now > looked + pause;
        if paused {
            if catch_up(engine, ports, clock, now) {
                engine.note_reading_gap(now - looked);
            }
            looked = now;
        }
        engine.run_to(now, ports, clock);
        engine.flush_if_due(ports, clock);
        engine.answer();
        if paused {
            // the polling took time too
            continue;
        }
        if engine.next_due() <= now + look && now < looked + look_every {
            std::hint::spin_loop();
            continue;
        }
        let gap = now - looked;
        looked = now;
        // a pause in here counts in the next turn: what hosts send meanwhile must not all enter at its end
        let latest = now + pause;
        let found = ports.receive(&mut |ports, packet, head| {
            engine.enter(clock.now().min(latest), packet, head, ports, clock);
        });
        if found {
            engine.note_reading_gap(gap);
        }
    }
    engine.run_to(end.min(clock.now()), ports, clock);
}

/// Reads what hosts have sent while the thread was paused, until `now`, and spreads it evenly over the pause; false if
/// there is nothing.
///
/// If all of it entered now, it would be a burst that no host has sent; and where a host sends almost as fast as its
/// card, the queue of that burst would stay in the card for seconds.
fn catch_up<P>(engine: &mut Engine<P>, ports: &mut impl Ports<Packet = P>, clock: &impl Clock, now: Time) -> bool {
    let mut came: Vec<(P, Head)> = Vec::new();
    for _ in 0..ROUNDS {
        if !ports.receive(&mut |_, packet, head| came.push((packet, head))) {
            break;
        }
    }
    // by host: packets in all, and those already given a time
    let mut hosts: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (_, head) in &came {
        hosts.entry(head.src).or_default().0 += 1;
    }
    let from = engine.now();
    let mut dated: Vec<(Time, P, Head)> = Vec::with_capacity(came.len());
    for (packet, head) in came {
        let (all, before) = hosts.entry(head.src).or_default();
        *before += 1;
        dated.push((from + now.saturating_sub(from) / *all * *before, packet, head));
    }
    // stable: a host's packets stay in order
    dated.sort_by_key(|(at, ..)| *at);
    let found = !dated.is_empty();
    for (at, packet, head) in dated {
        engine.enter(at, packet, head, ports, clock);
    }
    found
}
