//! Which of the paper's statements hold, in sentences computed from the numbers.

use super::measured::{Case, Cases, Measured};
use super::paper;
use crate::statistics::mean;
use crate::table::number;
use congestion::Algorithm;

type Of = fn(&Measured) -> Option<f64>;

const DROPS: Of = |run| Some(run.drops);
const THROUGHPUT: Of = |run| run.throughput_percent;
const DELAY: Of = |run| run.delay_ms;
const LOW_QUEUE: Of = |run| run.queue_low_percent;

/// The sentences, one paragraph each; fewer if a changed scenario lacks variants.
pub fn findings(cases: &Cases) -> Vec<String> {
    let (single, ecmp) = (cases.of("single-path"), cases.of("ecmp"));
    let paragraphs = [
        level(&single),
        vegas(&single),
        drops(&single),
        vegas_throughput(&single),
        ranks(&single),
        ecmp_effect(&single, &ecmp),
    ];
    let mut list: Vec<String> = paragraphs.into_iter().flatten().collect();
    list.extend(experiments(cases));
    list.extend(seeds(&single));
    list
}

/// The loss-based variants: all of the paper's but Vegas.
fn others<'a>(cases: &[&'a Case]) -> Vec<&'a Case> {
    cases.iter().copied().filter(|case| case.variant != "vegas" && paper::line(&case.variant).is_some()).collect()
}

fn find<'a>(cases: &[&'a Case], variant: &str) -> Option<&'a Case> {
    cases.iter().copied().find(|case| case.variant == variant)
}

fn title(variant: &str) -> &str {
    Algorithm::named(variant).map_or(variant, Algorithm::title)
}

/// Smallest and largest of some values.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut range: Option<(f64, f64)> = None;
    for value in values {
        let (low, high) = range.unwrap_or((value, value));
        range = Some((low.min(value), high.max(value)));
    }
    range
}

fn medians(cases: &[&Case], quantity: Of) -> impl Iterator<Item = f64> {
    cases.iter().filter_map(move |case| case.median(quantity)).collect::<Vec<_>>().into_iter()
}

/// Throughput and delay of the loss-based variants against the paper's.
fn level(cases: &[&Case]) -> Option<String> {
    let others = others(cases);
    let lines = || others.iter().filter_map(|case| paper::line(&case.variant));
    let say = |what: &str, unit: &str, quantity: Of, theirs: (f64, f64)| {
        let (low, high) = range(medians(&others, quantity))?;
        let verdict = if low <= theirs.1 && theirs.0 <= high {
            "the two ranges overlap".to_string()
        } else {
            let factor = (low + high) / (theirs.0 + theirs.1);
            format!(
                "ours is {} by a factor of {}",
                if factor < 1.0 { "lower" } else { "higher" },
                number(factor.max(1.0 / factor))
            )
        };
        let (low, high, theirs) = (number(low), number(high), [number(theirs.0), number(theirs.1)]);
        Some(format!(
            "{what} {low} to {high} {unit} here, {} to {} {unit} in the paper: {verdict}",
            theirs[0], theirs[1]
        ))
    };
    let throughput = say("throughput is", "%", THROUGHPUT, range(lines().map(|line| line.throughput_percent))?)?;
    let delay = say("delay is", "ms", DELAY, range(lines().map(|line| line.delay_ms))?);
    let delay = delay.map_or_else(String::new, |delay| format!("; {delay}"));
    Some(format!("Level, loss-based variants on the single path: {throughput}{delay}."))
}

/// The paper's statements on Vegas' delay, drops and queue.
fn vegas(cases: &[&Case]) -> Option<String> {
    let vegas = find(cases, "vegas")?;
    let mut claims = Vec::new();
    if let (Some(delay), Some((lowest, _))) = (vegas.median(DELAY), range(medians(&others(cases), DELAY))) {
        let (ours, theirs) = (number(delay), paper::line("vegas").map_or(0.0, |line| line.delay_ms));
        claims.push((
            delay < lowest,
            format!("has the lowest delay ({ours} ms, the paper {theirs} ms; the next {} ms)", number(lowest)),
        ));
    }
    let drops = vegas.median(DROPS)?;
    claims.push((drops == 0.0, format!("drops nothing ({} packets)", number(drops))));
    if let Some(low) = vegas.median(LOW_QUEUE) {
        claims.push((
            low > 50.0,
            format!("keeps the core queue under 20 packets most of the time ({} % of the samples)", number(low)),
        ));
    }
    Some(format!("Vegas: {}", judged(claims)))
}

/// Splits claims into those that hold and those that do not.
fn judged(claims: Vec<(bool, String)>) -> String {
    let (held, broken): (Vec<_>, Vec<_>) = claims.into_iter().partition(|(holds, _)| *holds);
    let join = |claims: Vec<(bool, String)>| claims.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("; ");
    match (held.is_empty(), broken.is_empty()) {
        (_, true) => format!("as the paper says, it {}.", join(held)),
        (true, false) => format!("the paper says that it {}; none of this holds here.", join(broken)),
        (false, false) => {
            format!(
                "as the paper says, it {}. The paper also says that it {}; this does not hold here.",
                join(held),
                join(broken)
            )
        }
    }
}

/// The order of Figure 2, claim by claim.
fn drops(cases: &[&Case]) -> Option<String> {
    let of = |variant: &str| find(cases, variant)?.median(DROPS);
    let mut order: Vec<(&str, f64)> =
        cases.iter().filter_map(|case| Some((case.variant.as_str(), case.median(DROPS)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let listed: Vec<String> = order.iter().map(|(name, drops)| format!("{} {}", title(name), number(*drops))).collect();
    let (yeah, westwood, highspeed, bic) = (of("yeah")?, of("westwood")?, of("highspeed")?, of("bic")?);
    let (cubic, scalable) = (of("cubic")?, of("scalable")?);
    let lossy = others(cases);
    let rank = |drops: f64| medians(&lossy, DROPS).filter(|other| *other > drops).count();
    let claims = [
        (rank(yeah) + 1 == lossy.len(), "YeAH drops the fewest after Vegas"),
        (westwood < highspeed && westwood < bic, "Westwood+ drops less than HighSpeed and BIC"),
        (rank(scalable) < 2, "Scalable is among the two that drop most"),
        (rank(cubic) < 2, "CUBIC is among the two that drop most"),
    ];
    let pick =
        |wanted: bool| claims.iter().filter(|(holds, _)| *holds == wanted).map(|(_, text)| *text).collect::<Vec<_>>();
    let (held, broken) = (pick(true), pick(false));
    let mut sentences = vec![format!("Drops, fewest first: {}.", listed.join(", "))];
    if !held.is_empty() {
        sentences.push(format!("As in the paper's Figure 2: {}.", held.join("; ")));
    }
    if !broken.is_empty() {
        sentences.push(format!("Claims of Figure 2 that do not hold here: {}.", broken.join("; ")));
    }
    Some(sentences.join(" "))
}

/// In the paper, Vegas has 43 % more throughput than NewReno.
fn vegas_throughput(cases: &[&Case]) -> Option<String> {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let ours = find(cases, "vegas")?.median(THROUGHPUT)? / find(cases, "newreno")?.median(THROUGHPUT)?;
    let theirs = paper::line("vegas")?.throughput_percent / paper::line("newreno")?.throughput_percent;
    let (ours, theirs) = (percent(ours), percent(theirs));
    // more than half of the paper's advantage counts as reproduced
    let verdict = if ours > theirs / 2.0 { "reproduced" } else { "not reproduced" };
    let here = match ours.round() {
        0.0 => "equal to NewReno's here".to_string(),
        ours if ours < 0.0 => format!("{} % below NewReno's here", number(-ours)),
        ours => format!("{} % above NewReno's here", number(ours)),
    };
    Some(format!("Throughput of Vegas: {here}, {} % above it in the paper: {verdict}.", number(theirs.round())))
}

/// Rank correlations with the paper's orders of the variants.
fn ranks(cases: &[&Case]) -> Option<String> {
    let pairs = |quantity: Of, theirs: fn(paper::Line) -> f64| -> Vec<(f64, f64)> {
        cases.iter().filter_map(|case| Some((case.median(quantity)?, theirs(paper::line(&case.variant)?)))).collect()
    };
    let delay = spearman(&pairs(DELAY, |line| line.delay_ms))?;
    let throughput = spearman(&pairs(THROUGHPUT, |line| line.throughput_percent))?;
    Some(format!(
        "Spearman's rank correlation of the variants with Table 4 (1: same order, 0: unrelated): delay {delay:.2}, \
         throughput {throughput:.2}."
    ))
}

/// Rank correlation; `None` with fewer than three pairs, or if one side's values are all equal.
fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let ranks = |values: Vec<f64>| -> Vec<f64> {
        // equal values share the mean of their ranks
        let rank = |value: f64| {
            let below = values.iter().filter(|other| **other < value).count() as f64;
            let equal = values.iter().filter(|other| other.total_cmp(&value).is_eq()).count() as f64;
            below + (equal - 1.0) / 2.0
        };
        values.iter().map(|value| rank(*value)).collect()
    };
    let (a, b) = (ranks(pairs.iter().map(|pair| pair.0).collect()), ranks(pairs.iter().map(|pair| pair.1).collect()));
    let centre = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - centre) * (y - centre)).sum::<f64>();
    let scale = (product(&a, &a) * product(&b, &b)).sqrt();
    (pairs.len() >= 3 && scale > 0.0).then(|| product(&a, &b) / scale)
}

/// The effect of ECMP.
fn ecmp_effect(single: &[&Case], ecmp: &[&Case]) -> Option<String> {
    let throughput = [single, ecmp].map(|cases| mean(medians(cases, THROUGHPUT)));
    let drops = [single, ecmp].map(|cases| mean(medians(cases, DROPS)));
    let ([Some(a), Some(b)], [Some(c), Some(d)]) = (throughput, drops) else { return None };
    Some(format!(
        "ECMP instead of the single path: mean throughput {} % instead of {} % ({} times), mean drops {} instead of {}.",
        number(b),
        number(a),
        number(b / a),
        number(d.round()),
        number(c.round())
    ))
}

/// Each experiment's results against the study's.
fn experiments(cases: &Cases) -> Vec<String> {
    let others_of = |environment: &str| others(&cases.of(environment));
    let base = others_of("single-path");
    let beside = |environment: &str| {
        let changed = others_of(environment);
        let pair = |quantity: Of| Some((mean(medians(&changed, quantity))?, mean(medians(&base, quantity))?));
        let (throughput, delay, drops) = (pair(THROUGHPUT)?, pair(DELAY)?, pair(DROPS)?);
        let vegas = |cases: &[&Case]| find(cases, "vegas")?.median(THROUGHPUT);
        let advantage = vegas(&cases.of(environment)).map_or_else(String::new, |vegas| {
            format!("; Vegas has {} times the others' throughput", number(vegas / throughput.0))
        });
        Some(format!(
            "Experiment {environment}: the loss-based variants have {} % of throughput (study: {}), {} ms of delay ({}), {} drops ({}){advantage}.",
            number(throughput.0),
            number(throughput.1),
            number(delay.0),
            number(delay.1),
            number(drops.0.round()),
            number(drops.1.round())
        ))
    };
    let names = cases.environments();
    names.into_iter().filter(|name| !["single-path", "ecmp"].contains(name)).filter_map(beside).collect()
}

/// The effect of the seed, which draws the pairs of hosts.
fn seeds(cases: &[&Case]) -> Option<String> {
    let newreno = find(cases, "newreno").or_else(|| cases.first().copied())?;
    let spread = newreno.spread(THROUGHPUT)?;
    let name = title(&newreno.variant);
    if spread.seeds == 1 {
        return Some(
            "One seed: another seed draws other pairs of hosts, which can change the results more than the variant does; \
             --seeds 5 shows medians and ranges."
                .to_string(),
        );
    }
    let (low, high) = range(medians(&others(cases), THROUGHPUT))?;
    Some(format!(
        "Seeds: over {} seeds {name}'s throughput ranges from {} % to {} %; the medians of the loss-based variants \
         range from {} % to {} %.",
        spread.seeds,
        number(spread.low),
        number(spread.high),
        number(low),
        number(high)
    ))
}

#[cfg(test)]
#[path = "findings/tests.rs"]
mod tests;
