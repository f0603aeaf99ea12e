//! Whether a rule is on, for the network or for one host: with a minimum time between changes and a limit on how often.

use crate::model::FlapLimit;
use units::Time;

/// The state of a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Switch {
    on: bool,
    /// When it changed last; `None`: never.
    changed: Option<Time>,
    /// When it was switched on last.
    on_since: Option<Time>,
    /// When the first of `switched_on` was.
    window_from: Time,
    /// How often it was switched on since.
    switched_on: u32,
}

/// What became of a rule's wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// The condition holds.
    On,
    /// It does not.
    Off,
    /// It does not, but the rule was switched on too shortly ago.
    HeldOn,
    /// It does, but the rule was switched off too shortly ago.
    HeldOff,
    /// It does, but the rule was switched on too often.
    FlapLimited,
    /// What it asks for is not known: off, at once.
    Unknown,
}

impl Turn {
    /// Whether the rule is on.
    pub fn is_on(self) -> bool {
        matches!(self, Turn::On | Turn::HeldOn)
    }
}

/// What a switch is held by.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub now: Time,
    pub hold: Time,
    pub flap: FlapLimit,
}

impl Switch {
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    /// One that was left on, or off lately, as [`Switch::is_held`] had it: it is held from `now` on, since nobody knows since when it is.
    pub(crate) fn kept(on: bool, now: Time) -> Switch {
        Switch { on, changed: Some(now), on_since: Some(now), ..Switch::default() }
    }

    /// Whether its hold still keeps it from being switched on.
    pub(crate) fn is_held(self, now: Time, hold: Time) -> bool {
        let within = |since: Option<Time>, hold| since.is_some_and(|since| now.saturating_sub(since) < hold);
        within(self.changed, hold) || within(self.on_since, hold * 2)
    }

    /// Takes the condition's value; `None` if it is not known.
    pub(crate) fn step(&mut self, wish: Option<bool>, limits: Limits) -> Turn {
        let Limits { now, hold, flap } = limits;
        let held = self.changed.is_some_and(|changed| now.saturating_sub(changed) < hold);
        // What was switched off before its hold was over, for want of knowledge, is to be no quicker for that: one change a hold.
        let early = self.on_since.is_some_and(|since| now.saturating_sub(since) < hold * 2);
        match (self.on, wish) {
            (true, Some(true)) => Turn::On,
            (false, Some(false)) => Turn::Off,
            (on, None) => {
                // An unknown value sets nothing.
                if on {
                    self.change(now);
                }
                Turn::Unknown
            }
            (true, Some(false)) if held => Turn::HeldOn,
            (true, Some(false)) => {
                self.change(now);
                Turn::Off
            }
            (false, Some(true)) if held || early => Turn::HeldOff,
            (false, Some(true)) => {
                if now.saturating_sub(self.window_from) >= flap.within {
                    self.switched_on = 0;
                }
                if self.switched_on >= flap.changes {
                    return Turn::FlapLimited;
                }
                if self.switched_on == 0 {
                    self.window_from = now;
                }
                self.switched_on += 1;
                self.on_since = Some(now);
                self.change(now);
                Turn::On
            }
        }
    }

    fn change(&mut self, now: Time) {
        self.on = !self.on;
        self.changed = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::Turn::{FlapLimited, HeldOff, HeldOn, Off, On, Unknown};
    use super::*;

    const FLAP: FlapLimit = FlapLimit { changes: 2, within: Time::from_secs(100) };

    fn run(switch: &mut Switch, hold_s: u64, steps: &[(u64, Option<bool>)]) -> Vec<Turn> {
        let limits = |s: u64| Limits { now: Time::from_secs(s), hold: Time::from_secs(hold_s), flap: FLAP };
        steps.iter().map(|(s, wish)| switch.step(*wish, limits(*s))).collect()
    }

    #[test]
    fn a_switch_stays_for_its_hold_time_either_way() {
        let steps = [(0, Some(true)), (5, Some(false)), (10, Some(false)), (15, Some(true)), (20, Some(true))];
        let turns = run(&mut Switch::default(), 10, &steps);
        assert_eq!(turns, [On, HeldOn, Off, HeldOff, On]);
    }

    #[test]
    fn it_is_switched_on_no_oftener_than_its_limit_within_the_window_of_the_first() {
        // on at 0 and 20; the window that began at 0 ends at 100
        let steps = [
            (0, true),
            (10, false),
            (20, true),
            (30, false),
            (40, true),
            (99, true),
            (100, true),
            (110, false),
            (120, true),
        ];
        let turns = run(&mut Switch::default(), 1, &steps.map(|(s, wish)| (s, Some(wish))));
        assert_eq!(turns, [On, Off, On, Off, FlapLimited, FlapLimited, On, Off, On]);
    }

    #[test]
    fn what_is_not_known_switches_off_whatever_holds() {
        let steps = [(0, Some(true)), (1, None), (2, Some(true)), (11, Some(true)), (20, Some(true))];
        let turns = run(&mut Switch::default(), 10, &steps);
        assert_eq!(turns, [On, Unknown, HeldOff, HeldOff, On], "two changes in two hold times");
    }
}
