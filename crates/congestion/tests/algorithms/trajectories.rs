//! Each algorithm's window over the same path with the same losses and marks, for a reviewer to judge.

use crate::flow::{Event, Flow, Path};
use congestion::Algorithm;
use congestion::sock::TCP_INFINITE_SSTHRESH;
use std::fmt::Write as _;

/// 100 segments and 40 ms: 30 Mb/s of a long path. Half a bandwidth-delay product of buffer.
const PATH: Path = Path { pipe: 100, base_rtt_us: 40_000, buffer: 50, mark_above: 10 };
const ROUNDS: u32 = 100;
/// Segments per character of the bar.
const BAR: u32 = 3;

fn accident(round: u32) -> Event {
    match round {
        45 => Event::Loss,
        70 => Event::Timeout,
        90 => Event::Mark,
        _ => Event::Nothing,
    }
}

fn table(algorithm: &Algorithm) -> String {
    let mut flow = Flow::new(algorithm, PATH);
    let mut text = String::from("round  sent  rtt_ms  cwnd  ssthresh  event\n");
    for round in 0..ROUNDS {
        let done = flow.round(accident(round));
        let ssthresh = match flow.sock.snd_ssthresh {
            TCP_INFINITE_SSTHRESH => "-".to_string(),
            segments => segments.to_string(),
        };
        let rtt_ms = f64::from(done.rtt_us) / 1000.0;
        let row = format!(
            "{round:5} {:5} {rtt_ms:7.1} {:5} {ssthresh:>9}  {:7} {}",
            done.sent,
            flow.sock.snd_cwnd,
            done.event,
            "#".repeat((done.sent / BAR) as usize)
        );
        writeln!(text, "{}", row.trim_end()).expect("writing to a string");
    }
    text
}

#[test]
fn windows_follow_the_reviewed_trajectories() {
    for algorithm in Algorithm::builtins() {
        insta::assert_snapshot!(algorithm.name(), table(algorithm));
    }
}
