//! Compares recorded hooks with those of an endpoint, row by row.

use crate::recorder::Row;
use congestion::sock::ack_pending;
use std::fmt::Write as _;

/// What may differ in a stretch of one script, and why.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    pub script: u32,
    /// Recorded milliseconds, both ends included.
    pub from_ms: f64,
    pub to_ms: f64,
    pub allows: Allows,
    /// What Linux did there, and why the endpoint need not.
    #[allow(dead_code, reason = "for the reader of the table")]
    pub reason: &'static str,
}

/// What a [`Tolerance`] allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allows {
    /// Times differ by up to so many milliseconds.
    TimeBand(f64),
    /// How many ACKs there were; what they led to (state changes, window events) must be the same, in order.
    AckCount,
    /// These columns or arguments.
    Columns(&'static [&'static str]),
}

/// Jitter of the recorded path.
const JITTER_MS: f64 = 1.0;
const JITTER_US: i64 = 1000;
/// Bits of ack.pending that say whether an ACK is owed, and at once.
const DUE: i64 = (ack_pending::SCHED | ack_pending::NOW) as i64;

/// The comparison of one script.
pub struct Comparison<'a> {
    pub tolerances: Vec<&'a Tolerance>,
    /// Rows from this recorded moment on are later by the second number of milliseconds.
    pub shift: Option<(f64, f64)>,
}

impl Comparison<'_> {
    /// The first difference, with five rows of context of both sides.
    pub fn check(&self, recorded: &[Row], seen: &[Row]) -> Result<(), String> {
        let (mut i, mut j) = (0, 0);
        while i < recorded.len() {
            if self.allows(recorded[i].ms, |allows| allows == Allows::AckCount).is_some() {
                let until = self.tolerances.iter().filter(|t| t.allows == Allows::AckCount).map(|t| t.to_ms);
                let until = until.fold(0.0, f64::max);
                let same = |rows: &[Row], from: usize| rows[from..].iter().take_while(|r| r.ms <= until).count();
                let (m, n) = (same(recorded, i), same(seen, j));
                rare_hooks_agree(&recorded[i..i + m], &seen[j..j + n])?;
                (i, j) = (i + m, j + n);
                continue;
            }
            let difference = match seen.get(j) {
                Some(row) => self.difference(&recorded[i], row),
                None => Some("the endpoint calls no further hook".to_string()),
            };
            if let Some(difference) = difference {
                return Err(report(&difference, recorded, i, seen, j));
            }
            (i, j) = (i + 1, j + 1);
        }
        if j < seen.len() {
            return Err(report("the endpoint calls more hooks", recorded, i, seen, j));
        }
        Ok(())
    }

    fn allows(&self, ms: f64, pick: impl Fn(Allows) -> bool) -> Option<Allows> {
        self.tolerances.iter().find(|t| (t.from_ms..=t.to_ms).contains(&ms) && pick(t.allows)).map(|t| t.allows)
    }

    fn ignores(&self, ms: f64, name: &str) -> bool {
        self.allows(ms, |allows| matches!(allows, Allows::Columns(names) if names.contains(&name))).is_some()
    }

    fn difference(&self, recorded: &Row, seen: &Row) -> Option<String> {
        if recorded.hook != seen.hook || recorded.side != seen.side {
            return Some(format!("{} is called where Linux calls {}", seen.hook, recorded.hook));
        }
        let columns = |row: &Row| {
            [
                ("cwnd", row.cwnd),
                ("ssthresh", row.ssthresh),
                ("out", row.out),
                ("sacked", row.sacked),
                ("lost", row.lost),
                ("retrans", row.retrans),
                ("delivered", row.delivered),
            ]
        };
        for ((name, linux), (_, ours)) in columns(recorded).into_iter().zip(columns(seen)) {
            if linux != ours && !self.ignores(recorded.ms, name) {
                return Some(format!("{name} is {ours}, Linux has {linux}"));
            }
        }
        for (name, linux) in &recorded.args {
            let Some(ours) = seen.arg(name) else {
                return Some(format!("{name} is missing"));
            };
            if !argument_agrees(name, *linux, ours) && !self.ignores(recorded.ms, name) {
                return Some(format!("{name} is {ours}, Linux has {linux}"));
            }
        }
        let shift = self.shift.filter(|&(from_ms, _)| recorded.ms >= from_ms).map_or(0.0, |(_, shift_ms)| shift_ms);
        let band = match self.allows(recorded.ms, |allows| matches!(allows, Allows::TimeBand(_))) {
            Some(Allows::TimeBand(band_ms)) => band_ms,
            _ => JITTER_MS,
        };
        if (recorded.ms + shift - seen.ms).abs() > band {
            return Some(format!("it is called at {:.2} ms, Linux does so at {:.2}", seen.ms, recorded.ms + shift));
        }
        None
    }
}

fn argument_agrees(name: &str, linux: i64, ours: i64) -> bool {
    match name {
        // 1 and 2 depend on the receiver's window
        "flags" => linux & 4 == ours & 4,
        // PUSHED depends on the sender's writes, TIMER on how many segments came at once
        "ack.pending" => linux & DUE == ours & DUE,
        "rtt" | "rtt_us" | "interval_us" | "snd_us" | "rcv_us" if linux >= 0 && ours >= 0 => {
            (linux - ours).abs() <= JITTER_US
        }
        _ => linux == ours,
    }
}

/// Hooks that do not come with every ACK.
fn is_rare(row: &Row) -> bool {
    !matches!(row.hook.as_str(), "pkts_acked" | "in_ack_event" | "cong_avoid" | "cong_control")
}

/// Do the hooks that do not come with every ACK come in the same order, with the same states and events?
pub fn rare_hooks_agree(recorded: &[Row], seen: &[Row]) -> Result<(), String> {
    let key = |row: &Row| {
        let named = |(name, _): &&(String, i64)| ["event", "old", "new", "state"].contains(&name.as_str());
        let args: Vec<String> = row.args.iter().filter(named).map(|(name, value)| format!("{name}={value}")).collect();
        format!("{} {}", row.hook, args.join(" "))
    };
    let linux: Vec<_> = recorded.iter().filter(|row| is_rare(row)).map(key).collect();
    let ours: Vec<_> = seen.iter().filter(|row| is_rare(row)).map(key).collect();
    if linux == ours {
        return Ok(());
    }
    Err(format!("the events differ:\n  Linux: {}\n  here:  {}", linux.join(", "), ours.join(", ")))
}

fn report(difference: &str, recorded: &[Row], i: usize, seen: &[Row], j: usize) -> String {
    let mut text = format!("{difference}\n");
    for (title, rows, at) in [("Linux 6.18", recorded, i), ("the endpoint", seen, j)] {
        writeln!(text, "{title}:").expect("writing to a string");
        for (index, row) in rows.iter().enumerate().skip(at.saturating_sub(5)).take(11.min(5 + at + 1)) {
            writeln!(text, "{} {row}", if index == at { '>' } else { ' ' }).expect("writing to a string");
        }
    }
    text
}
