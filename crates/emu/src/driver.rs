//! The loop that turns the engine on the wall clock.

use crate::engine::Engine;
use crate::port::{Clock, Ports};
use std::sync::atomic::{AtomicBool, Ordering};
use units::Time;

/// About what a look at the ports costs: nothing that is due sooner shall wait for one.
const LOOK: Time = Time::from_ns(1000);
/// But a look is never put off longer than this, however much is due.
const LOOK_EVERY: Time = Time::from_us(5);

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
    let mut looked = clock.now();
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        if now >= end {
            break;
        }
        engine.run_to(now, ports, clock);
        engine.flush_if_due(ports, clock);
        engine.answer();
        if engine.next_due() <= now + LOOK && now < looked + LOOK_EVERY {
            std::hint::spin_loop();
            continue;
        }
        let gap = now - looked;
        looked = now;
        let found = ports.receive(&mut |ports, packet, head| engine.enter(clock.now(), packet, head, ports, clock));
        if found {
            engine.note_reading_gap(gap);
        }
    }
    engine.run_to(end.min(clock.now()), ports, clock);
    engine.flush(ports, clock);
}
