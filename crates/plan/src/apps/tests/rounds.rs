//! Rounds: when the next one begins, what its messages are, and which deadlines were missed.

use super::*;

/// A number that an entry reports.
fn extra(play: &Play, name: &str) -> Option<f64> {
    play.applications.extra(Time::ZERO).into_iter().find(|(known, _)| known == name).map(|(_, number)| number)
}

/// The shares of answers and of queries that missed their deadline.
fn missed(play: &Play) -> [Option<f64>; 2] {
    ["incast.answers_missed", "incast.queries_missed"].map(|name| extra(play, name))
}

/// Three hosts answer the first one; the answers take 1, 2 and 3 ms.
fn incast(duration: &str, more: &str) -> Play {
    let incast = format!("incast = {{ senders = 3, receiver = \"h1\", bytes = \"1 kB\", {more} }}");
    play(&star(duration, &entry(&incast)), by_flow)
}

#[test]
fn behind_a_barrier_a_round_begins_when_the_last_answer_has_arrived() {
    let play = incast("1 s", "repeat = 2");
    assert_eq!(
        play.opened(),
        [(Time::ZERO, 1, 0), (Time::ZERO, 2, 0), (Time::ZERO, 3, 0)],
        "the receiver is no sender"
    );
    let written = [0, 3].map(|at| [0, 1, 2].map(|flow| (ms(at), flow, 1000))).concat();
    assert_eq!(play.written(), written);
    for name in ["mean", "median", "p99", "max"] {
        assert_eq!(extra(&play, &format!("incast.round_ms_{name}")), Some(3.0));
    }
    assert_eq!(extra(&play, "incast.rounds_completed"), Some(2.0));
    // connections are closed with the last message, and finished when it has arrived: 3 + 1, 2, 3 ms
    for flow in 0..3 {
        assert_eq!(play.times(Asked::Close(flow)), [ms(3)]);
        assert_eq!(play.times(Asked::Finish(flow)), [ms(4 + u64::from(flow))]);
    }
}

#[test]
fn at_an_interval_rounds_begin_whatever_has_arrived() {
    let play = incast("1 s", "repeat = 3, interval = \"2 ms\"");
    let begun: Vec<Time> = play.written().into_iter().filter(|(_, flow, _)| *flow == 2).map(|(at, ..)| at).collect();
    assert_eq!(begun, [Time::ZERO, ms(2), ms(4)]);
    // the slowest answers follow each other on their connection: they arrive at 3, 6 and 9 ms, so rounds take 3, 4 and 5
    assert_eq!(extra(&play, "incast.round_ms_mean"), Some(4.0));
    assert_eq!(extra(&play, "incast.round_ms_max"), Some(5.0));
    // the stage is asked for one total after the other, never for two at a time
    assert_eq!(play.times(Asked::NotifyAt(2, 1000)), [Time::ZERO]);
    assert_eq!(play.times(Asked::NotifyAt(2, 2000)), [ms(3)]);
    assert_eq!(play.times(Asked::NotifyAt(2, 3000)), [ms(6)]);
}

#[test]
fn an_answer_misses_its_deadline_when_it_comes_later_or_not_at_all() {
    // of each round's answers at 1, 2 and 3 ms the last is late
    let all = incast("1 s", "repeat = 2, deadline = \"2500 us\"");
    assert_eq!(missed(&all), [Some(2.0 / 6.0), Some(1.0)]);
    assert_eq!(all.times(Asked::Deadline(0, Time::from_us(5500))), [ms(3)], "of the second round");
    let in_time = incast("1 s", "repeat = 2, deadline = \"3 ms\"");
    assert_eq!(missed(&in_time), [Some(0.0), Some(0.0)], "at the deadline is in time");
    // the run ends at 5 ms, before the second round's deadline at 5.5: five answers, one late; one query
    let early = incast("5 ms", "repeat = 2, deadline = \"2500 us\"");
    assert_eq!(missed(&early), [Some(1.0 / 5.0), Some(1.0)]);
    // it ends after that: the answer that has not come is late too
    let later = incast("5600 us", "repeat = 2, deadline = \"2500 us\"");
    assert_eq!(missed(&later), [Some(2.0 / 6.0), Some(1.0)]);
}

#[test]
fn sizes_follow_the_list_round_by_round_and_begin_again() {
    let all = "all_to_all = { bytes = [\"1 kB\", \"2 kB\"], rounds = 3, hosts = [\"h1\", \"h2\"], think = \"4 ms\" }";
    let play = play(&star("1 s", &entry(all)), one_ms);
    // a round takes 1 ms, and the next begins 4 ms later
    let written: Vec<(Time, u64)> =
        play.written().into_iter().filter(|(_, flow, _)| *flow == 0).map(|(at, _, bytes)| (at, bytes)).collect();
    assert_eq!(written, [(Time::ZERO, 1000), (ms(5), 2000), (ms(10), 1000)]);
    // totals of a connection: 1000, 1000 + 2000, and 1000 more
    assert_eq!(play.times(Asked::NotifyAt(0, 4000)), [ms(10)]);
    let of_first: Vec<(u64, u64)> =
        play.paper.messages.iter().filter(|(of, _)| of.flow == 0).map(|(of, _)| (of.round, of.bytes)).collect();
    assert_eq!(of_first, [(0, 1000), (1, 2000), (2, 1000)]);
}

#[test]
fn a_round_on_new_connections_opens_them_each_time() {
    let all = "all_to_all = { bytes = \"1 kB\", rounds = 2, hosts = [\"h1\", \"h2\", \"h3\"], connections = \"new\" }";
    let play = play(&star("1 s", &entry(all)), one_ms);
    let order = [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)];
    let rounds = [0, 1].map(|at| order.map(|(src, dst)| (ms(at), src, dst))).concat();
    assert_eq!(play.opened(), rounds, "a host begins with the one after it");
    assert_eq!(play.count(|asked| matches!(asked, Asked::Close(_))), 12);
    assert_eq!(play.count(|asked| matches!(asked, Asked::Finish(_))), 12);
    assert_eq!(extra(&play, "all_to_all.rounds_completed"), Some(2.0));
}

#[test]
fn in_pairs_a_host_takes_its_next_step_when_it_has_sent_and_received() {
    // three hosts: flows 0 (1 to 2), 1 (1 to 3), 2 (2 to 3), 3 (2 to 1), 4 (3 to 1), 5 (3 to 2); the first takes 5 ms, others 1
    let slow_first = |flow: u32| if flow == 0 { ms(5) } else { ms(1) };
    let all = |pairwise: &str| {
        let all =
            format!("all_to_all = {{ bytes = \"1 MB\", hosts = [\"h1\", \"h2\", \"h3\"], pairwise = \"{pairwise}\" }}");
        play(&star("1 s", &entry(&all)), slow_first)
    };
    let at =
        |play: &Play, flow: u32| play.written().into_iter().find(|(_, of, _)| *of == flow).expect("it is written to").0;
    let pairs = all("1 MB");
    // the third host has sent flow 4 and received flow 2 after 1 ms, the others wait for flow 0
    assert_eq!([0, 2, 4, 5, 1, 3].map(|flow| at(&pairs, flow)), [0, 0, 0, 1, 5, 5].map(ms));
    let begun = pairs.paper.messages.iter().find(|(message, _)| message.flow == 1).expect("it has arrived").0.begun;
    assert_eq!(begun, ms(5), "a message begins with its step");
    assert_eq!(extra(&pairs, "all_to_all.round_ms_max"), Some(6.0));
    // smaller messages are sent to all at once
    let at_once = all("2 MB");
    assert!(at_once.written().iter().all(|(at, ..)| *at == Time::ZERO));
    assert_eq!(extra(&at_once, "all_to_all.round_ms_max"), Some(5.0));
}

#[test]
fn jobs_of_a_collective_have_barriers_of_their_own() {
    // two jobs of two hosts, with two connections each; those of the second are slow
    let slow_second = |flow: u32| if flow < 2 { ms(1) } else { ms(10) };
    let all = "all_to_all = { bytes = \"1 kB\", rounds = 3, jobs = 2 }";
    let play = play(&star("1 s", &entry(all)), slow_second);
    let begun = |flow: u32| -> Vec<Time> {
        play.written().into_iter().filter(|(_, of, _)| *of == flow).map(|(at, ..)| at).collect()
    };
    assert_eq!(begun(0), [0, 1, 2].map(ms));
    assert_eq!(begun(2), [0, 10, 20].map(ms));
    let jobs: Vec<u32> = play.paper.messages.iter().map(|(message, _)| message.job).collect();
    assert_eq!(jobs.iter().filter(|job| **job == 1).count(), 6, "{jobs:?}");
}

#[test]
fn no_round_begins_once_the_entry_has_stopped() {
    let incast = "stop = \"3 ms\"\nincast = { senders = 3, receiver = \"h1\", bytes = \"1 kB\", repeat = 9 }";
    let play = play(&star("1 s", &entry(incast)), by_flow);
    assert_eq!(extra(&play, "incast.rounds_completed"), Some(1.0), "the second would begin at 3 ms");
    assert_eq!(play.times(Asked::StopWriting(0)), [ms(3)]);
}
