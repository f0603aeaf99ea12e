//! What follows from the numbers, in sentences, and which goals are missed.

use super::cases::{BOTH, BOTH_ACKED, CLIENTS, CUBIC, DCTCP, DCTCP_ACKED, Part, SERVERS};
use super::rows::{equation, groups, ours};
use crate::table::{number, optional};
use results::Comparison;

/// The enforced queue is to be no longer than that of DCTCP hosts by this part of it and so many packets, and short transfers by the part.
const MORE: f64 = 0.25;
const MORE_PACKETS: f64 = 5.0;
/// The link is to be used, %.
const USED: f64 = 95.0;
/// Windows are to differ from the equations by no more than this part.
const OFF: f64 = 0.25;

/// Sentences, each goal with whether it is met.
pub fn findings(rows: &[Comparison]) -> Vec<String> {
    let mut findings = enforced(rows);
    findings.extend(alone(rows));
    findings.extend(acked(rows));
    findings.extend(windows(rows));
    findings.extend(slowed(rows));
    findings
}

fn goal(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

/// The settings of the first part that have both variants.
fn settings(rows: &[Comparison], variants: [&str; 2]) -> Vec<String> {
    let has = |known: &[String]| variants.iter().all(|variant| known.iter().any(|one| one == variant));
    groups(rows, Part::Enforced).into_iter().filter(|(_, known)| has(known)).map(|(setting, _)| setting).collect()
}

/// Two enforcers beside hosts.
fn enforced(rows: &[Comparison]) -> Vec<String> {
    let one = |setting: String| {
        let of = |variant: &str, quantity: &str| ours(rows, Part::Enforced, (&setting, variant), quantity);
        let [both, hosts, cubic] = [BOTH, DCTCP, CUBIC].map(|variant| {
            ["queue, median", "queue, 99 %", "short transfers, 99 %"].map(|quantity| of(variant, quantity))
        });
        let (used, drops) = (of(BOTH, "bottleneck in use")?, of(BOTH, "drops")?);
        let is_short = both[1]? <= hosts[1]? * (1.0 + MORE) + MORE_PACKETS;
        let is_fast = both[2]? <= hosts[2]? * (1.0 + MORE);
        let is_used = used >= USED.min(of(DCTCP, "bottleneck in use")?);
        Some(format!(
            "{setting}: with two enforcers the queue is {} packets at the median and {} at 99 %, of DCTCP hosts {} and {}, of CUBIC \
             hosts {} and {}; goal, no more than a quarter and five packets above DCTCP hosts at 99 %: {}. Short transfers take {} ms at 99 %, \
             {} and {}; goal, at most a quarter longer than of DCTCP hosts: {}. The bottleneck is in use {} % of the time; goal, {USED} % or as \
             of DCTCP hosts: {}. Drops: {}.",
            optional(both[0]),
            optional(both[1]),
            optional(hosts[0]),
            optional(hosts[1]),
            optional(cubic[0]),
            optional(cubic[1]),
            goal(is_short),
            optional(both[2]),
            optional(hosts[2]),
            optional(cubic[2]),
            goal(is_fast),
            number(used),
            goal(is_used),
            number(drops)
        ))
    };
    settings(rows, [BOTH, DCTCP]).into_iter().filter_map(one).collect()
}

/// One of the enforcers is missing.
fn alone(rows: &[Comparison]) -> Option<String> {
    let settings = settings(rows, [SERVERS, CLIENTS]);
    let marked = |variant: &str| {
        let of = |setting: &String| ours(rows, Part::Enforced, (setting, variant), "marked");
        settings.iter().filter_map(of).fold(0.0, f64::max)
    };
    let most = marked(SERVERS).max(marked(CLIENTS));
    (!settings.is_empty()).then(|| {
        format!(
            "One enforcer alone: at most {} % of the packets are marked, so nothing is sent as ECN-capable that nobody would echo; goal, \
             none: {}. Its queue is then that of a loss-based sender, see the table.",
            number(most),
            goal(most <= 0.0)
        )
    })
}

/// The echo's precision, and what delayed ACKs change.
fn acked(rows: &[Comparison]) -> Vec<String> {
    let one = |setting: String| {
        let of = |variant: &str, quantity: &str| ours(rows, Part::Enforced, (&setting, variant), quantity);
        let (marked, seen) = (of(BOTH, "marks taken off")?, of(BOTH, "echoes")?);
        let queues = [BOTH_ACKED, DCTCP_ACKED].map(|variant| of(variant, "queue, 99 %").map(number));
        let acked = match queues {
            [Some(both), Some(hosts)] => format!(
                " If clients acknowledge each segment, the queue is {both} packets at 99 %, with DCTCP hosts {hosts}."
            ),
            _ => String::new(),
        };
        Some(format!(
            "{setting}: of the segments that the servers’ enforcer sends, {} % lose a mark at the clients’, and {} % are acknowledged with an \
             echo; goal, the same but for a twentieth: {}. ACKs are {} % of the packets, with DCTCP hosts {} %.{acked}",
            number(marked),
            number(seen),
            goal((seen / marked - 1.0).abs() <= 0.05),
            optional(of(BOTH, "ACKs")),
            optional(of(DCTCP, "ACKs")),
        ))
    };
    settings(rows, [BOTH, DCTCP]).into_iter().filter_map(one).collect()
}

/// Windows and equations.
fn windows(rows: &[Comparison]) -> Vec<String> {
    let of_algorithm = |(algorithm, shares): (String, Vec<String>)| {
        let ratio = |share: &String| {
            let place = (algorithm.as_str(), share.as_str());
            Some((share.clone(), ours(rows, Part::Marks, place, "window")? / equation(rows, place)?))
        };
        let ratios: Vec<(String, f64)> = shares.iter().filter_map(ratio).collect();
        let said: Vec<String> = ratios.iter().map(|(share, ratio)| format!("{} at {share}", number(*ratio))).collect();
        let is_met = ratios.iter().all(|(_, ratio)| (ratio - 1.0).abs() <= OFF);
        let law = if algorithm == "dctcp" { "2/p" } else { "√(1.5/p)" };
        format!(
            "{algorithm} with a share p of its packets marked: the window over {law} is {}; goal, within a quarter: {}.",
            said.join(", "),
            goal(is_met)
        )
    };
    groups(rows, Part::Marks).into_iter().map(of_algorithm).collect()
}

/// The least share of marks that halves the requests' tail.
fn slowed(rows: &[Comparison]) -> Vec<String> {
    let of_algorithm = |(algorithm, shares): (String, Vec<String>)| {
        let of = |share: &str, quantity: &str| ours(rows, Part::Slowed, (&algorithm, share), quantity);
        let none = shares.first()?;
        let (tail, before) = (of(none, "short transfers, 99 %")?, of(none, "background")?);
        let halves = |share: &&String| of(share, "short transfers, 99 %").is_some_and(|ms| ms <= tail / 2.0);
        let Some(share) = shares.iter().find(halves) else {
            return Some(format!("{algorithm}: no share of marks halves the requests’ tail of {} ms.", number(tail)));
        };
        Some(format!(
            "{algorithm}: with {share} of the background’s packets marked, requests take {} ms at 99 % instead of {}, and the background gets \
             {} Mbit/s instead of {}; with {}, the largest share, {}.",
            optional(of(share, "short transfers, 99 %")),
            number(tail),
            optional(of(share, "background")),
            number(before),
            shares.last()?,
            optional(of(shares.last()?, "background")),
        ))
    };
    groups(rows, Part::Slowed).into_iter().filter_map(of_algorithm).collect()
}
