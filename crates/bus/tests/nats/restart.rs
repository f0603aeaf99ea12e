//! A server's restart, as a fleet sees it.

use crate::site::Site;
use bus::{Bus as _, NatsBus, Role};
use std::time::{Duration, Instant};
use testkit::{asked, until};

/// Members, unless `NATS_MEMBERS` asks for others.
const MEMBERS: usize = 300;
/// How long the server is away.
const DOWN: Duration = Duration::from_secs(1);

/// Has every member work once; how many are connected.
fn turn(members: &mut [NatsBus]) -> usize {
    for member in members.iter_mut() {
        drop(member.receive(Duration::ZERO).unwrap());
    }
    members.iter().filter(|member| member.is_connected()).count()
}

#[test]
fn after_a_restart_of_the_server_all_return_soon_and_not_at_once() {
    let Some(mut site) = Site::new() else { return };
    let n = asked("NATS_MEMBERS").unwrap_or(MEMBERS);
    let mut members: Vec<NatsBus> = (0..n)
        .map(|i| NatsBus::join(&site.saved(&site.identity(&format!("h{i}"), Role::Agent, &[]))).unwrap())
        .collect();
    let began = Instant::now();
    until("all are connected", || turn(&mut members) == n);
    let first = began.elapsed();
    site.server.kill();
    let killed = Instant::now();
    while killed.elapsed() < DOWN {
        turn(&mut members);
    }
    site.server.again();
    let back = Instant::now();
    // connected members in each tenth of a second
    let mut steps = vec![0];
    until("all are back", || {
        let connected = turn(&mut members);
        steps.resize((back.elapsed().as_millis() / 100) as usize + 1, *steps.last().unwrap());
        *steps.last_mut().unwrap() = connected;
        connected == n
    });
    let took = back.elapsed();
    let most = steps.windows(11).map(|second| second[10] - second[0]).max().unwrap_or(n);
    println!(
        "{n} members: all connected {:.1} s after the start; all back {:.1} s after the server was, at most {most} within a second",
        first.as_secs_f64(),
        took.as_secs_f64()
    );
    // drawn from 0 to 4 s: a fifth or so within the first half second, not all
    let early = steps[steps.len().min(6) - 1];
    assert!(early < n / 2, "{early} of {n} within half a second: {steps:?}");
}
