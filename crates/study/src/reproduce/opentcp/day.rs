//! Figure 1: a core link over a day, with the policy `diurnal`.

use crate::statistics::mean;
use results::{Arm, Comparison, CueEvent, Curve, Figure, FlowRow, Panel, RunResults};
use std::collections::{BTreeMap, BTreeSet};

/// An hour of the scenario's day; its period, a second, corresponds to the policy's five minutes.
const HOUR_NS: u64 = 12_000_000_000;
const HOURS: usize = 24;
/// The core link, in its two directions.
const CORE: [&str; 2] = ["s1->s2", "s2->s1"];
/// Flows that fit an initial window of 20 or 30 segments.
const SHORT_BYTES: u64 = 30_000;

/// A day, hour by hour.
pub struct Day {
    /// Utilization of the core link's two directions, the busier one: by sample, (hour, share).
    utilization: Vec<(f64, f64)>,
    /// The mean utilization, by hour.
    hours: Vec<f64>,
    /// (hour, hosts that follow a rule), rule by rule in the order of their first CUE.
    following: Vec<(String, Vec<(f64, f64)>)>,
    /// By hour: the median completion time of short flows, milliseconds, of treated hosts and of the control group.
    short_ms: [Vec<Option<f64>>; 2],
    /// By hour: hosts that follow a rule, in the same order of rules.
    in_force: Vec<Vec<f64>>,
}

impl Day {
    pub fn of(run: &RunResults) -> Day {
        let is_core = |link: u32| CORE.contains(&&*run.links[link as usize].link);
        let mut busiest: BTreeMap<u64, f64> = BTreeMap::new();
        for sample in run.link_series.iter().filter(|sample| is_core(sample.link)) {
            let most = busiest.entry(sample.time_ns).or_default();
            *most = most.max(sample.utilization);
        }
        let utilization: Vec<(f64, f64)> = busiest.into_iter().map(|(at, share)| (hour(at), share)).collect();
        // a sample covers the time before it
        let within = |h: usize| move |(at, _): &&(f64, f64)| *at > h as f64 && *at <= (h + 1) as f64;
        let mean_of =
            |h: usize| mean(utilization.iter().filter(within(h)).map(|(_, share)| *share)).unwrap_or_default();
        let hours = (0..HOURS).map(mean_of).collect();
        let following = following(run);
        let in_force = following.iter().map(|(_, steps)| (0..HOURS).map(|h| at(steps, h as f64 + 0.5)).collect());
        let short = |arm: Arm| (0..HOURS).map(|h| short_ms(run, arm, h)).collect();
        Day {
            in_force: in_force.collect(),
            hours,
            short_ms: [short(Arm::Treated), short(Arm::Control)],
            utilization,
            following,
        }
    }

    /// Hours in which the link's utilization is below half.
    fn calm(&self) -> usize {
        self.hours.iter().filter(|share| **share < 0.5).count()
    }

    /// Whether a rule is in force in the middle of an hour.
    fn acts(&self, h: usize) -> bool {
        self.in_force.iter().any(|hosts| hosts[h] > 0.0)
    }

    /// Reduction of treated hosts' short-flow times in hours with a rule in force throughout, percent; and in the other hours.
    fn shorter(&self) -> [Option<f64>; 2] {
        [true, false].map(|wanted| {
            let hours = (0..HOURS).filter(|h| self.acts(*h) == wanted);
            let ratios = hours.filter_map(|h| Some(self.short_ms[0][h]? / self.short_ms[1][h]?));
            mean(ratios).map(|ratio| (1.0 - ratio) * 100.0)
        })
    }

    pub fn comparisons(&self) -> Vec<Comparison> {
        let row = |quantity: &str, unit: &str, paper, ours, note: &str| Comparison {
            figure: "Figure 1".to_string(),
            case: "day".to_string(),
            quantity: quantity.to_string(),
            unit: unit.to_string(),
            paper,
            ours,
            note: note.to_string(),
        };
        let acting = (0..HOURS).filter(|h| self.acts(*h)).count() as f64;
        let mut rows = vec![
            row("hours under 50 % utilization", "h", None, self.calm() as f64, "the paper's core link: 6 to 8"),
            row("hours with a rule in force", "h", None, acting, "at half past each hour"),
        ];
        let [with, without] = self.shorter();
        let hours = "medians of flows of up to 30 kB, treated hosts against the control group, mean over hours";
        for (quantity, value) in [
            ("short flows while a rule is in force, shorter by", with),
            ("short flows in other hours, shorter by", without),
        ] {
            rows.extend(value.map(|value| row(quantity, "%", None, value, hours)));
        }
        rows
    }

    /// The findings, as text.
    pub fn finding(&self) -> String {
        let rules = self.following.iter().zip(&self.in_force).map(|((rule, _), hosts)| {
            let hours: Vec<usize> = (0..HOURS).filter(|h| hosts[*h] > 0.0).collect();
            match (hours.first(), hours.last()) {
                (Some(first), Some(last)) => {
                    format!("“{rule}” in {} hours between {first} h and {} h", hours.len(), last + 1)
                }
                _ => format!("“{rule}” never for half an hour"),
            }
        });
        let rules: Vec<String> = rules.collect();
        let shorter = match self.shorter() {
            [Some(with), Some(without)] => format!(
                " The median short flow (up to 30 kB) of treated hosts took {with:.0} % less than that of the control group in those hours, \
                 {without:.0} % less in the rest."
            ),
            _ => String::new(),
        };
        format!(
            "A day in accelerated time: the core link is under half of its capacity in {} hours; rules of the policy diurnal were in \
             force: {}.{shorter}",
            self.calm(),
            rules.join(", ")
        )
    }

    pub fn figure(&self) -> Figure {
        let panel = |y: &str, title: &str, curves| Panel {
            title: title.to_string(),
            x: "time (h)".to_string(),
            y: y.to_string(),
            curves,
            ..Panel::default()
        };
        let curve = |name: &str, points: Vec<(f64, f64)>| Curve { name: name.to_string(), points, ..Curve::default() };
        let share = self.utilization.iter().map(|(at, share)| (*at, share * 100.0)).collect::<Vec<_>>();
        let following = self.following.iter().map(|(rule, steps)| curve(rule, steps.clone())).collect();
        let by_hour = |values: &[Option<f64>]| {
            let middle = |(h, ms): (usize, &Option<f64>)| Some((h as f64 + 0.5, (*ms)?));
            values.iter().enumerate().filter_map(middle).collect()
        };
        let [treated, control] = &self.short_ms;
        Figure {
            title: "Figure 1: a core link over a day".to_string(),
            text: "SIMULATED, in accelerated time: an hour lasts 12 s. The load follows the paper’s figure; the policy diurnal starts \
                   connections with 30 segments by night and 20 in other calm hours, with 10 otherwise, on half of the hosts."
                .to_string(),
            panels: vec![
                panel("utilization (%)", "core link", vec![Curve::thinned("busier direction", &share)]),
                panel("hosts", "hosts that follow a rule", following),
                panel(
                    "median completion time (ms)",
                    "flows of up to 30 kB",
                    vec![curve("treated", by_hour(treated)), curve("control", by_hour(control))],
                ),
            ],
        }
    }
}

fn hour(ns: u64) -> f64 {
    ns as f64 / HOUR_NS as f64
}

/// For each rule, the number of following hosts after each change, as steps.
fn following(run: &RunResults) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut order: Vec<&str> = Vec::new();
    for row in run.cues.iter().filter(|row| row.host.is_empty()) {
        if !order.contains(&&*row.rule) {
            order.push(&row.rule);
        }
    }
    let steps_of = |rule: &str| {
        let mut hosts: BTreeSet<&str> = BTreeSet::new();
        let mut steps = vec![(0.0, 0.0)];
        for row in run.cues.iter().filter(|row| !row.host.is_empty() && &*row.rule == rule) {
            let before = hosts.len() as f64;
            match row.event {
                CueEvent::Taken | CueEvent::Recovered => hosts.insert(&row.host),
                _ => hosts.remove(&*row.host),
            };
            steps.extend([(hour(row.time_ns), before), (hour(row.time_ns), hosts.len() as f64)]);
        }
        steps.push((hour(run.summary.duration_ns), hosts.len() as f64));
        steps
    };
    order.into_iter().map(|rule| (rule.to_string(), steps_of(rule))).collect()
}

/// The steps' value at an instant.
fn at(steps: &[(f64, f64)], when: f64) -> f64 {
    steps.iter().take_while(|(at, _)| *at <= when).last().map_or(0.0, |(_, value)| *value)
}

/// Median completion time of the short flows of an arm's hosts that started within an hour.
fn short_ms(run: &RunResults, arm: Arm, h: usize) -> Option<f64> {
    let within = h as u64 * HOUR_NS..(h as u64 + 1) * HOUR_NS;
    let counts = |flow: &&FlowRow| {
        flow.arm == Some(arm) && within.contains(&flow.start_ns) && flow.bytes.is_some_and(|bytes| bytes <= SHORT_BYTES)
    };
    let mut took: Vec<u64> = run.flows.iter().filter(counts).filter_map(FlowRow::fct_ns).collect();
    took.sort_unstable();
    took.get(took.len() / 2).map(|ns| *ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_stand_where_the_last_change_left_them() {
        let steps = [(0.0, 0.0), (2.0, 0.0), (2.0, 5.0), (6.0, 5.0), (6.0, 0.0)];
        assert_eq!([1.0, 2.0, 5.9, 6.0, 9.0].map(|when| at(&steps, when) as u32), [0, 5, 5, 0, 0]);
    }

    #[test]
    fn hours_are_calm_below_a_half() {
        let hours = vec![0.49, 0.5, 0.7];
        let day = Day {
            utilization: Vec::new(),
            hours,
            following: Vec::new(),
            short_ms: Default::default(),
            in_force: Vec::new(),
        };
        assert_eq!(day.calm(), 1);
    }
}
