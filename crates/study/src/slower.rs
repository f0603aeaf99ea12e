//! [`Slower`]: how much slower than real time networks are emulated.

use emu::Slowdown;
use results::SelfCheck;
use std::str::FromStr;

/// How much slower than real time networks are emulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slower {
    /// As often as this; by default in real time.
    Times(Slowdown),
    /// As often as this machine needs for a valid run.
    Auto,
}

impl Default for Slower {
    fn default() -> Slower {
        Slower::Times(Slowdown::NONE)
    }
}

impl FromStr for Slower {
    type Err = String;

    fn from_str(text: &str) -> Result<Slower, String> {
        if text == "auto" {
            return Ok(Slower::Auto);
        }
        let times = text.parse().ok().and_then(Slowdown::new);
        times.map(Slower::Times).ok_or_else(|| format!("write auto, or a whole number from 1 to {}", Slowdown::MAX))
    }
}

impl Slower {
    /// The slowdown of the first attempt.
    pub(crate) fn first(self) -> Slowdown {
        match self {
            Slower::Times(slowdown) => slowdown,
            Slower::Auto => Slowdown::NONE,
        }
    }

    /// In words, before how long it takes.
    pub(crate) fn pace(self) -> String {
        match self {
            Slower::Auto => "in real time or slower, at least".to_string(),
            Slower::Times(times) if times.is_slower() => format!("slowed {} times, about", times.times()),
            Slower::Times(_) => "in real time, about".to_string(),
        }
    }

    /// The slowdown of the next attempt, if a slower one can help: with `check`, as much more as packets were late, without it (the
    /// network needs more than this machine has) twice as much.
    pub(crate) fn next(self, last: Slowdown, check: Option<&SelfCheck>) -> Option<Slowdown> {
        if self != Slower::Auto || last.times() == Slowdown::MAX {
            return None;
        }
        let too_late = check.map_or(0.0, |check| {
            let bound = if check.measures_queues { 2.0 * check.packet_time_us } else { f64::INFINITY };
            check.lateness_p99_us / bound.min(check.base_rtt_us / 2.0)
        });
        let more = (too_late.min(f64::from(Slowdown::MAX)).ceil() as u32).next_power_of_two().max(2);
        Slowdown::new((last.times() * more).min(Slowdown::MAX))
    }
}

/// A sentence for each run that is not valid, with the reason, and one on what to do.
pub(crate) fn distorted(runs: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let mut list: Vec<String> = runs.map(|(run, why)| format!("NOT VALID: {run}: {why}.")).collect();
    if !list.is_empty() {
        list.push(
            "Numbers of a run that is not valid are printed and not judged. Repeat it with nothing else running, or with --slower auto: \
             as much slower than real time as this machine needs."
                .to_string(),
        );
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lateness_p99_us: f64) -> SelfCheck {
        SelfCheck {
            lateness_p99_us,
            packet_time_us: 12.0,
            base_rtt_us: 500.0,
            measures_queues: true,
            ..SelfCheck::default()
        }
    }

    #[test]
    fn a_number_or_auto() {
        let times = |n| Ok(Slower::Times(Slowdown::new(n).unwrap()));
        assert_eq!(["1", "64", "auto"].map(str::parse), [times(1), times(64), Ok(Slower::Auto)]);
        for wrong in ["0", "65", "-1", "2.5", "Auto", ""] {
            assert!(wrong.parse::<Slower>().unwrap_err().contains("from 1 to 64"), "{wrong}");
        }
    }

    #[test]
    fn auto_goes_as_much_slower_as_packets_were_late() {
        let next =
            |last, late| Slower::Auto.next(Slowdown::new(last).unwrap(), Some(&check(late))).map(Slowdown::times);
        // two packet times are 24 us
        assert_eq!([next(1, 25.0), next(1, 90.0), next(1, 1e6)], [Some(2), Some(4), Some(64)]);
        assert_eq!([next(1, 1.0), next(8, 30.0), next(48, 30.0), next(64, 30.0)], [Some(2), Some(16), Some(64), None]);
        assert_eq!(Slower::Auto.next(Slowdown::NONE, None).map(Slowdown::times), Some(2));
        assert_eq!(Slower::default().next(Slowdown::NONE, Some(&check(1e6))), None);
    }
}
