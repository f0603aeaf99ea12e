//! The endpoint calls the hooks of an algorithm as Linux 6.18 did in seventeen recorded scripts: the same hooks in the
//! same order with the same columns (`golden/`, whose header says how they were recorded).

use crate::compare::{Allows, Comparison, Tolerance, rare_hooks_agree};
use crate::duet::{self, Fault, Title};
use crate::golden;
use crate::receiver;
use crate::recorder::{self, Row};
use crate::replay::Arrival::{First, Latest};
use crate::replay::{self, Anchor, Arrival, Script};
use tcp::{Config, EcnMode};
use units::Rate;

/// Every difference that is let pass.
const TOLERANCES: &[Tolerance] = &[
    Tolerance {
        script: 3,
        from_ms: 41.63,
        to_ms: 41.7,
        allows: Allows::AckCount,
        reason: "the recording sender was busy writing: Linux merged 8 and 6 duplicate ACKs in the socket's backlog, each \
                 into one with a count; segments here come one by one",
    },
    Tolerance {
        script: 3,
        from_ms: 62.38,
        to_ms: 62.38,
        allows: Allows::Columns(&["inflight"]),
        reason: "the segment was retransmitted after the third duplicate; Linux had counted nine by then, so fewer were \
                 delivered since",
    },
    Tolerance {
        script: 9,
        from_ms: 297.6,
        to_ms: 297.7,
        allows: Allows::TimeBand(14.0),
        reason: "a probe and then a timeout, each on Linux's timer of 4 ms ticks that starts up to a tick late",
    },
];

/// When a burst left a sender with nothing in flight: its application wrote then.
fn bursts(rows: &[Row], segments: &[u32]) -> Vec<(f64, u32)> {
    let starts: Vec<f64> =
        rows.iter().filter(|row| row.is("cwnd_event", "event", 0) && row.out == 0).map(|row| row.ms).collect();
    assert_eq!(starts.len(), segments.len(), "one start of transmission per burst");
    starts.into_iter().zip(segments.iter().copied()).collect()
}

fn firsts(numbers: impl IntoIterator<Item = u32>) -> Vec<Arrival> {
    numbers.into_iter().map(First).collect()
}

fn sender_rows(number: u32) -> Vec<Row> {
    golden::rows(number).into_iter().filter(|row| row.side == 'S').collect()
}

fn config(number: u32) -> Config {
    let algorithm = match number {
        12 | 13 => &recorder::RENOISH_ECN_CC,
        14.. => &recorder::HOLDING_CC,
        _ => &recorder::RENOISH_CC,
    };
    Config { ecn: EcnMode::On, ..Config::linux(algorithm) }
}

fn replay_with(number: u32, config: Config, writes: &[u32], arrivals: Vec<Arrival>, anchor: Option<Anchor>) {
    let rows = sender_rows(number);
    let script = Script { number, writes: bursts(&rows, writes), arrivals, anchor };
    let (seen, shift_ms) = replay::run(&script, &rows, config).unwrap_or_else(|error| {
        let seen = recorder::take();
        let tail: Vec<String> = seen.iter().rev().take(12).rev().map(ToString::to_string).collect();
        panic!("script {number}: {error}\nlast hooks of the endpoint:\n{}", tail.join("\n"))
    });
    let comparison = Comparison {
        tolerances: TOLERANCES.iter().filter(|tolerance| tolerance.script == number).collect(),
        shift: anchor.map(|anchor| (anchor.ms - 0.1, shift_ms)),
    };
    if let Err(error) = comparison.check(&rows, &seen) {
        panic!("script {number}: {error}");
    }
}

fn replay(number: u32, writes: &[u32], arrivals: Vec<Arrival>) {
    replay_with(number, config(number), writes, arrivals, None);
}

#[test]
fn initial_window_of_ten_grows_by_one_per_ack() {
    replay(1, &[24], firsts(1..=24));
}

#[test]
fn one_loss_is_repaired_with_sack() {
    let mut arrivals = firsts((1..=40).filter(|&n| n != 15));
    arrivals.push(Latest(15));
    replay(2, &[40], arrivals);
}

#[test]
fn one_loss_is_repaired_without_sack() {
    let mut arrivals = firsts((1..=38).filter(|&n| n != 15));
    arrivals.extend([Latest(15), First(39), First(40)]);
    replay_with(3, Config { sack: false, ..config(3) }, &[40], arrivals, None);
}

#[test]
fn a_lost_tail_is_repaired_by_a_probe_and_reduces_the_window_once() {
    let mut arrivals = firsts(1..=7);
    arrivals.push(Latest(8));
    let probe = Anchor { segment: 8, transmission: 2, ms: 247.0 };
    replay_with(4, config(4), &[8], arrivals, Some(probe));
}

#[test]
fn a_burst_lost_with_its_probe_waits_for_the_timeout() {
    let mut arrivals = firsts(1..=5);
    arrivals.extend((6..=11).map(Latest));
    let timeout = Anchor { segment: 6, transmission: 2, ms: 579.14 };
    replay_with(5, config(5), &[5, 6], arrivals, Some(timeout));
}

#[test]
fn idle_longer_than_the_timeout_restarts_from_the_initial_window() {
    replay(6, &[20, 20], firsts(1..=40));
}

#[test]
fn an_echoed_mark_reduces_the_window_once_per_round() {
    replay(7, &[80], firsts(1..=80));
}

#[test]
fn reordering_is_undone_when_the_original_arrives() {
    let mut arrivals = firsts((1..=30).filter(|&n| n != 15));
    arrivals.push(First(15));
    arrivals.extend(firsts(31..=40));
    arrivals.push(Latest(15));
    replay(8, &[40], arrivals);
}

#[test]
fn a_spurious_timeout_is_undone() {
    let mut arrivals = firsts((1..=30).chain(34..=60));
    arrivals.extend([Latest(31), Latest(32), Latest(33), First(31)]);
    replay(9, &[60], arrivals);
}

#[test]
fn an_application_limited_sender_still_reports_every_ack() {
    replay(10, &[2; 10], firsts(1..=20));
}

#[test]
fn three_losses_in_a_window_are_one_reduction() {
    let mut arrivals = firsts((1..=40).filter(|n| ![15, 17, 19].contains(n)));
    arrivals.extend([Latest(15), Latest(17), Latest(19)]);
    replay(11, &[40], arrivals);
}

#[test]
fn marks_on_four_segments_are_one_reduction() {
    replay(12, &[40], firsts(1..=40));
}

#[test]
fn marks_on_every_segment_reduce_once_per_round() {
    replay(13, &[60], firsts(1..=60));
}

#[test]
fn rate_samples_of_a_fixed_window() {
    replay(14, &[40], firsts(1..=40));
}

#[test]
fn rate_samples_behind_a_bottleneck() {
    replay(15, &[60], firsts(1..=60));
}

#[test]
fn rate_samples_through_a_recovery() {
    let mut arrivals = firsts((1..=46).filter(|&n| n != 25));
    arrivals.push(Latest(25));
    arrivals.extend(firsts(47..=60));
    replay(16, &[60], arrivals);
}

#[test]
fn rate_samples_of_an_application_limited_sender() {
    replay(17, &[3, 3, 3, 3, 3, 3, 30], firsts(1..=48));
}

#[test]
fn the_comparison_notices_every_column_and_argument() {
    let comparison = Comparison { tolerances: Vec::new(), shift: None };
    for number in [2, 16] {
        let rows = sender_rows(number);
        assert_eq!(comparison.check(&rows, &rows), Ok(()));
        let at = rows.len() / 2;
        let changes: [fn(&mut Row); 8] = [
            |row| row.cwnd += 1,
            |row| row.ssthresh -= 1,
            |row| row.out += 1,
            |row| row.sacked += 1,
            |row| row.lost += 1,
            |row| row.retrans += 1,
            |row| row.delivered += 1,
            |row| row.ms += 1.5,
        ];
        for change in changes {
            let mut changed = rows.clone();
            change(&mut changed[at]);
            assert!(comparison.check(&rows, &changed).is_err());
        }
        for argument in 0..rows[at].args.len() {
            let mut changed = rows.clone();
            changed[at].args[argument].1 ^= 1 << 20 | 4;
            assert!(comparison.check(&rows, &changed).is_err(), "{:?}", rows[at].args[argument]);
        }
        let mut changed = rows.clone();
        changed.remove(at);
        assert!(comparison.check(&rows, &changed).is_err());
        assert!(comparison.check(&rows, &rows[..rows.len() - 1]).is_err());
        assert!(comparison.check(&rows[..rows.len() - 1], &rows).is_err());
    }
}

// ---- The receiver's side of 12 and 13: which event each data segment causes, and what is owed by then ----

fn replay_receiver(number: u32) {
    // in_ack_event comes with the segments that Linux's header prediction does not take, which depends on its window
    let relevant = |row: &Row| row.side == 'R' && (row.hook != "in_ack_event" || row.delivered == 0);
    let recorded: Vec<Row> = golden::rows(number).into_iter().filter(relevant).collect();
    let seen: Vec<Row> = receiver::run(&recorded, config(number)).into_iter().filter(relevant).collect();
    let comparison = Comparison {
        tolerances: TOLERANCES.iter().filter(|tolerance| tolerance.script == number).collect(),
        shift: None,
    };
    if let Err(error) = comparison.check(&recorded, &seen) {
        panic!("script {number}, receiver: {error}");
    }
}

#[test]
fn a_receiver_that_needs_ecn_hears_of_four_marked_segments() {
    replay_receiver(12);
}

#[test]
fn a_receiver_that_needs_ecn_hears_of_marks_on_every_segment() {
    replay_receiver(13);
}

// ---- Between two endpoints ----

fn duet(number: u32, segments: &[u32], fault: fn(u32) -> Option<Fault>) -> (Vec<Row>, Vec<Row>) {
    let rows = sender_rows(number);
    let writes = bursts(&rows, segments);
    let last_write_ms = writes.last().expect("a write").0;
    let wait_ms = match number {
        10 => 30.0,
        17 => 50.0,
        _ => 0.0,
    };
    let title = Title {
        writes,
        open_until_ms: last_write_ms + wait_ms,
        fault,
        bottleneck: (15..=17).contains(&number).then_some(Rate::from_mbps(10)),
    };
    let config = Config { sack: number != 3, ..config(number) };
    let seen = duet::run(&title, &config).unwrap_or_else(|error| panic!("script {number}: {error}"));
    (rows, seen)
}

/// The hooks that do not come with every ACK are the same in the same order, whatever the receiver merges.
#[track_caller]
fn same_events(number: u32, segments: &[u32], fault: fn(u32) -> Option<Fault>) {
    let (rows, seen) = duet(number, segments, fault);
    if let Err(error) = rare_hooks_agree(&rows, &seen) {
        let text: Vec<String> = seen.iter().map(ToString::to_string).collect();
        panic!("script {number}: {error}\n{}", text.join("\n"));
    }
}

fn drops(number: bool) -> Option<Fault> {
    number.then_some(Fault::Drop)
}

#[test]
fn two_endpoints_repair_one_loss() {
    same_events(2, &[40], |n| drops(n == 15));
    same_events(3, &[40], |n| drops(n == 15));
    same_events(11, &[40], |n| drops(matches!(n, 15 | 17 | 19)));
    same_events(16, &[60], |n| drops(n == 25));
}

#[test]
fn two_endpoints_repair_a_lost_tail() {
    same_events(4, &[8], |n| drops(n == 8));
    same_events(5, &[5, 6], |n| drops((6..=12).contains(&n)));
}

#[test]
fn two_endpoints_undo_reductions_after_reordering() {
    same_events(8, &[40], |n| (n == 15).then_some(Fault::DelayMs(3)));
    same_events(9, &[60], |n| (11..=34).contains(&n).then_some(Fault::DelayMs(400)));
}

#[test]
fn two_endpoints_echo_marks() {
    same_events(7, &[80], |n| (n == 12).then_some(Fault::Mark));
    same_events(12, &[40], |n| matches!(n, 12..=14 | 20).then_some(Fault::Mark));
}

#[test]
fn two_endpoints_without_faults_keep_one_state() {
    same_events(1, &[24], |_| None);
    same_events(6, &[20, 20], |_| None);
    same_events(10, &[2; 10], |_| None);
    same_events(14, &[40], |_| None);
    same_events(15, &[60], |_| None);
    same_events(17, &[3, 3, 3, 3, 3, 3, 30], |_| None);
}
