//! How long a download takes: the server's own algorithm, the other on the server, and the other enforced.

use crate::world::World;
use congestion::Algorithm;
use enforcer::{Enforcer, Limits, Rule};
use std::sync::Arc;
use tcp::{Config, Endpoint};
use testkit::{Faults, Wire};
use units::{Rate, Time};

const BYTES: u64 = 10_000_000;
/// Of a file that ends soon after the start.
const SHORT: u64 = 1_700_000;

fn linux(name: &str) -> Arc<Config> {
    Arc::new(Config::linux(Algorithm::named(name).expect("built in")))
}

/// A path: bottleneck, round trip, loss.
#[derive(Clone, Copy)]
struct Path {
    rate: Rate,
    rtt: Time,
    loss: f64,
}

/// Completion time of one download, seconds, and the number of retransmissions.
fn download(path: Path, bytes: u64, server: &str, enforced: Option<&str>, seed: u64) -> (f64, u64) {
    let near = Wire::new(Faults::clean(Time::from_us(100)));
    let back = Wire::new(Faults::clean(path.rtt / 2));
    let far = Wire::new(Faults { rate: Some((path.rate, 50)), loss: path.loss, ..back.faults.clone() });
    let ends =
        [Endpoint::listen(&linux(server), seed as u32, 5), Endpoint::connect(&linux("cubic"), !(seed as u32), 3)];
    let mut world = World::new(ends, [near.clone(), far], [back, near], seed);
    world.enforcer = enforced.map(|name| Enforcer::new(Limits::default(), vec![Rule::all(&linux(name))], seed));
    world.act(1, |_, _| ());
    let mut asked = false;
    while world.ends[1].received() < bytes {
        assert!(world.step(), "the download stops at {} bytes", world.ends[1].received());
        if !asked && world.ends[0].is_established() {
            asked = true;
            world.act(0, |end, now| end.write_all(now, bytes));
        }
    }
    assert_eq!(world.watch.complaint, None);
    if std::env::var_os("ENFORCER_SHOW").is_some() {
        println!("{server} {enforced:?}: {:.3} s; server {:?}", world.now.as_secs_f64(), world.ends[0].stats());
        if let Some(enforcer) = &world.enforcer {
            println!("{:?}", enforcer.counters());
        }
    }
    let by_server = u64::from(world.ends[0].stats().retransmits);
    (world.now.as_secs_f64(), world.enforcer.map_or(by_server, |enforcer| enforcer.counters().retransmitted))
}

/// Means over `n` seeds: cubic and bbr on the server, bbr enforced on a cubic server.
fn means(path: Path, n: u64) -> [f64; 3] {
    let mean = |server: &str, enforced: Option<&str>| {
        (1..=n).map(|seed| download(path, BYTES, server, enforced, seed).0).sum::<f64>() / n as f64
    };
    [mean("cubic", None), mean("bbr", None), mean("cubic", Some("bbr"))]
}

/// Repetitions; `ENFORCER_REPETITIONS` sets more.
fn repetitions() -> u64 {
    std::env::var("ENFORCER_REPETITIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(3)
}

fn gain_is_kept(path: Path) {
    let [cubic, bbr, enforced] = means(path, repetitions());
    let kept = (cubic - enforced) / (cubic - bbr);
    println!("cubic {cubic:.2} s, bbr {bbr:.2} s, enforced {enforced:.2} s: {kept:.3} of the gain kept");
    assert!(bbr < cubic, "there is something to win: {cubic} {bbr}");
    assert!(kept >= 0.9, "{kept}");
    assert!(enforced <= 1.05 * bbr, "{enforced} {bbr}");
}

#[test]
fn bbr_enforced_keeps_its_gain_on_a_path_of_30_ms() {
    gain_is_kept(Path { rate: Rate::from_bps(10_000_000), rtt: Time::from_ms(30), loss: 0.003 });
}

#[test]
fn bbr_enforced_keeps_its_gain_on_a_path_of_180_ms() {
    gain_is_kept(Path { rate: Rate::from_bps(2_500_000), rtt: Time::from_ms(180), loss: 0.003 });
}

#[test]
fn a_server_whose_own_window_is_the_limit_does_not_keep_bbr_in_its_startup() {
    // CUBIC's slow start ends as a queue forms, with a window that is less than BBR's of three times the path: samples that would
    // count as limited by the server would hide from BBR that the path is full, and it would overflow the queue
    let path = Path { rate: Rate::from_bps(2_500_000), rtt: Time::from_ms(180), loss: 0.0 };
    let (_, native) = download(path, SHORT, "bbr", None, 1);
    let (_, enforced) = download(path, SHORT, "cubic", Some("bbr"), 1);
    println!("retransmitted: {native} by the server, {enforced} by the enforcer");
    assert!(enforced <= native + native / 5, "{enforced} {native}");
}
