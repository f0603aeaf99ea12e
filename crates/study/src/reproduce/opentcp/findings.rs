//! Which of the paper's statements hold, in sentences computed from the numbers.

use super::cases::{Case, Cases, KERNEL, PAPER, PARTS, SMALL, Setting, Variant};
use super::day::Day;
use super::measured::Run;
use super::paper;
use super::rows::{TAIL, against_control, reduction, tail_reduction};
use crate::slower;
use crate::table::number;
use results::SelfCheck;

/// The sentences, one paragraph each.
pub fn findings(cases: &Cases, day: Option<&Day>, checks: &[SelfCheck]) -> Vec<String> {
    let mut list = Vec::new();
    for variant in [Variant::OpenTcp1, Variant::OpenTcp2] {
        list.extend(cases.of(PAPER, variant).and_then(|case| tail(cases, case)));
    }
    list.extend(exchange(cases));
    list.extend(files(cases));
    list.extend(jobs(cases));
    list.extend(windows(cases));
    list.extend(order(cases));
    list.extend(parts(cases));
    list.extend(duty(cases));
    list.extend(day.map(Day::finding));
    list.extend([SMALL, KERNEL].into_iter().filter_map(|setting| in_small(cases, setting)));
    let distorted = checks.iter().filter(|check| !check.valid);
    list.extend(slower::distorted(distorted.map(|check| (check.run.clone(), check.reasons.join("; ")))));
    list
}

/// `12 % shorter`, or `longer`.
fn shorter(percent: f64) -> String {
    format!("{} % {}", number(percent.abs()), if percent < 0.0 { "longer" } else { "shorter" })
}

fn percent(share: f64) -> String {
    number(share * 100.0)
}

fn tail(cases: &Cases, case: &Case) -> Option<String> {
    let name = case.variant.name();
    let (ours, paper) = (tail_reduction(cases, case)?, paper::tail_reduction(name)?);
    Some(format!(
        "The tail of {name}'s completion times is {} than without a policy; the paper's {} % shorter. Against the control group of \
         the same run it is {}: both wait in the same jobs and share the queues.",
        shorter(ours),
        number(paper),
        shorter(against_control(case)?)
    ))
}

fn exchange(cases: &Cases) -> Option<String> {
    let of = |variant| reduction(cases, cases.of(PAPER, variant)?, |run| run.treated.exchange_at(TAIL));
    let (one, two) = (of(Variant::OpenTcp1)?, of(Variant::OpenTcp2)?);
    Some(format!(
        "The benchmark exchange: tails {} with opentcp1 and {} with opentcp2 (the paper: consistent with all-to-all).",
        shorter(one),
        shorter(two)
    ))
}

fn files(cases: &Cases) -> Option<String> {
    let of = |variant| reduction(cases, cases.of(PAPER, variant)?, |run| run.treated.files_at(TAIL));
    let (one, two) = (of(Variant::OpenTcp1)?, of(Variant::OpenTcp2)?);
    Some(format!(
        "The file system's flows, by the 99th percentile of those that ended: {} with opentcp1 and {} with opentcp2. The paper does not \
         report them.",
        shorter(one),
        shorter(two)
    ))
}

/// Whether jobs wait for the tails of their messages.
fn jobs(cases: &Cases) -> Option<String> {
    let of = |variant| cases.of(PAPER, variant)?.median(Run::correlation);
    let [default, one, two] = [Variant::Default, Variant::OpenTcp1, Variant::OpenTcp2].map(of);
    let default = default?;
    let words = if default > 0.5 { "strong, as in the paper" } else { "not strong, as it is in the paper" };
    Some(format!(
        "Between the mean round of a job and the 99th percentile of its messages Pearson's r is {} without a policy: {words}. With \
         opentcp1 it is {}, with opentcp2 {}: with shorter tails, a round depends less on them.",
        number(default),
        number(one?),
        number(two?)
    ))
}

fn windows(cases: &Cases) -> Option<String> {
    let small = |variant| cases.of(PAPER, variant)?.median(|run| run.treated.small_windows());
    let [default, one, two] = [Variant::Default, Variant::OpenTcp1, Variant::OpenTcp2].map(small);
    Some(format!(
        "Without a policy {} % of the packets are sent at windows of up to 5 segments (the paper: more than 70 %); above 5 are {} % with \
         opentcp1 and {} % with opentcp2 (the paper: more than 50 %).",
        percent(default?),
        percent(1.0 - one?),
        percent(1.0 - two?)
    ))
}

/// The paper's order: opentcp2, default, opentcp1.
const ORDER: [Variant; 3] = [Variant::OpenTcp2, Variant::Default, Variant::OpenTcp1];

/// Shares of flows without drops: the order in the paper and here, by both units.
fn order(cases: &Cases) -> Option<String> {
    let shares = |of: fn(&Run) -> Option<f64>| -> Option<[f64; 3]> {
        let [two, default, one] = ORDER.map(|variant| cases.of(PAPER, variant)?.median(of));
        Some([two?, default?, one?])
    };
    let list = |[two, default, one]: [f64; 3]| {
        format!("opentcp2 {} %, default {} %, opentcp1 {} %", percent(two), percent(default), percent(one))
    };
    let connections = shares(|run| run.treated.without_drops())?;
    let messages = shares(|run| run.treated.messages_without_drops())?;
    let holds = |[two, default, one]: [f64; 3]| two > default && default > one;
    let verdict = match (holds(connections), holds(messages)) {
        (true, true) => "come in the paper's order",
        (false, true) => "come in the paper's order by message, not by connection",
        (true, false) => "come in the paper's order by connection, not by message",
        (false, false) => "do not come in the paper's order",
    };
    Some(format!(
        "Shares of flows without drops {verdict} (opentcp2 82 %, default 23 %, opentcp1 13 %). By connection: {}; by message: {}.",
        list(connections),
        list(messages)
    ))
}

/// The effect of each of the policy's settings alone.
fn parts(cases: &Cases) -> Option<String> {
    let of = |variant: Variant| {
        let case = cases.of(PARTS, variant)?;
        Some(format!(
            "{}: the tail {}, {} % of the segments retransmitted, {} % of the messages without drops",
            case.variant.name(),
            shorter(tail_reduction(cases, case)?),
            percent(case.median(|run| run.treated.drop_rate())?),
            percent(case.median(|run| run.treated.messages_without_drops())?)
        ))
    };
    let default = cases.of(PARTS, Variant::Default)?;
    let lost = cases.of(PARTS, Variant::TimeoutOnly)?.median(|run| run.treated.truly_lost())?;
    Some(format!(
        "Each of opentcp1's settings alone, in four racks. {}; {}; both, {}. Without a policy {} % of the segments are \
         retransmitted, and {} % of the messages have no drops. Of the retransmissions by hosts with the short RTO, {} % replaced lost segments; the others were spurious.",
        of(Variant::WindowOnly)?,
        of(Variant::TimeoutOnly)?,
        of(Variant::OpenTcp1)?,
        percent(default.median(|run| run.treated.drop_rate())?),
        percent(default.median(|run| run.treated.messages_without_drops())?),
        percent(lost)
    ))
}

/// Why opentcp2 lies between the others: varies the share of time in which its hosts follow the rule.
fn duty(cases: &Cases) -> Option<String> {
    let none = |case: &Case| case.median(|run| run.treated.messages_without_drops());
    let of = |variant: Variant| {
        let case = cases.of(PARTS, variant)?;
        Some((case.median(|run| run.in_force)?, none(case)?))
    };
    let default = none(cases.of(PARTS, Variant::Default)?)?;
    let [one, two, kept] = [Variant::OpenTcp1, Variant::OpenTcp2, Variant::GuardKept].map(of);
    let (one, two, kept) = (one?, two?, kept?);
    let falls = kept.0 < two.0 && two.0 < one.0 && kept.1 >= two.1 && two.1 >= one.1;
    let words = if falls { "the less time, the nearer to the default" } else { "though not in that order" };
    Some(format!(
        "At any time, a host of opentcp2 behaves as with opentcp1 or as by default, though it shares queues with both. In four racks, treated \
         for {} % of the time (opentcp1), {} % (opentcp2) and {} % (opentcp2 with guards that are never released), {}, {} and {} % of the messages \
         have no drops, {} % without a policy: {words}. Nothing here puts opentcp2 above the default, as in the paper.",
        percent(one.0),
        percent(two.0),
        percent(kept.0),
        percent(one.1),
        percent(two.1),
        percent(kept.1),
        percent(default)
    ))
}

/// The small network, simulated or on real kernels.
fn in_small(cases: &Cases, setting: &Setting) -> Option<String> {
    let of = |variant: Variant| {
        let case = cases.of(setting, variant)?;
        let none = case.median(|run| run.treated.without_drops())?;
        Some((tail_reduction(cases, case)?, case.median(|run| run.treated.fct_at(TAIL))?, none))
    };
    let (one, two, default) = (of(Variant::OpenTcp1)?, of(Variant::OpenTcp2)?, of(Variant::Default)?);
    let where_ = if setting == KERNEL { "on real kernels" } else { "simulated" };
    Some(format!(
        "Sixteen hosts at 100 Mbit/s with today's Linux, {where_}: the tail of opentcp1's messages is {}, of opentcp2's {} (99th percentiles \
         {}, {} and without a policy {} ms); without drops are {} %, {} % and {} %.",
        shorter(one.0),
        shorter(two.0),
        number(one.1),
        number(two.1),
        number(default.1),
        percent(one.2),
        percent(two.2),
        percent(default.2)
    ))
}
