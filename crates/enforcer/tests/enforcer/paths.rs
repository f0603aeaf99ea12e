//! Random connections whose packets take another path at random times, in either direction or both: no move costs more than a timeout of the
//! server over the same without an enforcer.
//!
//! Two thousand connections; `ENFORCER_TRANSFERS` sets more, and `ENFORCER_SEED` selects one of them.

use crate::transparency::{Case, Event, Finish, any_algorithm, any_config, any_size, run};
use enforcer::Limits;
use tcp::Config;
use testkit::{Faults, Random, Wire, asked};
use units::{Rate, Time};

const CONNECTIONS: u64 = 2_000;
/// A pause may be due to so many moves.
const MOVES_IN_A_PAUSE: usize = 3;

/// Moves at random times: once, there and back, or every so often.
fn moves(random: &mut Random, length: Time) -> Vec<(Time, Event)> {
    const PATHS: [[bool; 2]; 3] = [[true, false], [false, true], [true, true]];
    let within = |random: &mut Random| Time::from_us(random.below(length.as_us().max(1_000)));
    let away = *random.any(&PATHS);
    match random.below(4) {
        0 => vec![(within(random), Event::Detour(away))],
        1 => {
            let at = within(random);
            vec![(at, Event::Detour(away)), (at + within(random), Event::Detour([false; 2]))]
        }
        2 => {
            let every = Time::from_us(1_000 << random.below(10));
            (1..200).map(|n| (every * n, Event::Detour(if n % 2 == 1 { away } else { [false; 2] }))).collect()
        }
        _ => {
            let mut at = Time::ZERO;
            let paths = (0..random.below(8)).map(|_| {
                at += within(random);
                (at, Event::Detour([random.chance(0.5), random.chance(0.5)]))
            });
            paths.collect()
        }
    }
}

fn case(seed: u64) -> Case {
    let mut random = Random(seed);
    let r = &mut random;
    let (near, far) = (Time::from_us(10 + r.below(500)), Time::from_us(50 + r.below(60_000)));
    // queues that overflow, so that there are losses to repair during a move
    let rate = (r.below(4) > 0).then(|| (Rate::from_bps(4_000_000 << r.below(8)), 20 + r.below(200) as usize));
    let wires = [near, far].map(|delay| Wire::new(Faults { rate, ..Faults::clean(delay) }));
    let back = [far, near].map(|delay| Wire::new(Faults::clean(delay)));
    // both are of this century, and neither limits the other
    let config = |r: &mut Random| {
        let recent = Config::linux(any_algorithm(r));
        Config { receive_buffer: 6 << 20, send_buffer: 4 << 20, ..if r.below(4) > 0 { recent } else { any_config(r) } }
    };
    let configs = [config(r), config(r)];
    let bytes = [any_size(r, 5_000_000), any_size(r, 20_000)];
    let finish = if r.below(4) == 0 { Finish::ClientFirst } else { Finish::Each };
    Case {
        seed,
        luck: 0,
        configs,
        enforced: any_algorithm(r),
        opener: usize::from(r.below(4) > 0),
        bytes,
        out: wires,
        back,
        finish,
        iss: [r.next() as u32, r.next() as u32],
        buffer_bytes: Limits::default().buffer_bytes,
        echoes: false,
        events: Vec::new(),
    }
}

#[test]
fn a_move_costs_at_most_one_timeout_of_the_server() {
    let many = asked("ENFORCER_TRANSFERS").unwrap_or(CONNECTIONS);
    let one: Option<u64> = asked("ENFORCER_SEED");
    let seeds = one.map_or(0..many, |seed| seed..seed + 1);
    let (mut astray, mut caught_up, mut kept) = (0, 0, 0);
    for seed in seeds {
        let plain = case(seed);
        let still = run(&plain, true);
        let moves = moves(&mut Random(seed ^ 0x0e50), still.took);
        // moves that follow at once are in one pause
        let timeouts = moves.len().clamp(1, MOVES_IN_A_PAUSE);
        let case = Case { events: moves, ..plain };
        let [enforced, direct] = [true, false].map(|is_enforced| run(&case, is_enforced));
        let usual = still.longest_quiet.max(direct.longest_quiet);
        let most = usual + enforced.patience * timeouts as u64;
        assert!(
            enforced.finished || !direct.finished,
            "seed {seed} ends only without an enforcer: {enforced:?}\n{case:#?}"
        );
        assert!(
            enforced.longest_quiet <= most,
            "seed {seed}: more than {most}, usually {usual}: {enforced:?}\n{case:#?}"
        );
        astray += enforced.counters.flows_astray;
        caught_up += enforced.counters.caught_up;
        kept += u64::from(enforced.counters.flows_closed > 0);
    }
    println!("{astray} of {many} went astray, {kept} stayed; {caught_up} times a flow caught up");
    assert!(one.is_some() || astray.min(kept) > 0);
}
