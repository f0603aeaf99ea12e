//! Which statements of the theory and the paper hold, in sentences computed from the numbers.

use super::cases::{Case, Kind};
use super::measured::Measured;
use crate::slower;
use crate::statistics::mean;
use crate::table::number;

/// A queue length agrees if it is within these packets, or this share, of the theory; a time if it is within this share.
const NEAR: (f64, f64) = (3.0, 0.10);
/// Goodput that counts as using the link, % of the ideal.
const USED: f64 = 98.0;
/// Jain's index that counts as fair.
const FAIR: f64 = 0.98;

/// The sentences, one paragraph each.
pub fn findings(measured: &[Measured], absent: Option<&str>, kernels_wanted: bool) -> Vec<String> {
    let mut list = Vec::new();
    if let (Some(reason), true) = (absent, kernels_wanted) {
        list.push(format!("Kernel columns are absent: {reason}."));
    }
    let distorted = |run: &Measured| {
        let check = run.check.as_ref().filter(|check| !check.valid)?;
        Some((says(run), check.reasons.join("; ")))
    };
    list.extend(slower::distorted(measured.iter().filter_map(distorted)));
    // nothing is concluded from a run that is not valid
    let valid = |run: &&Measured| run.check.as_ref().is_none_or(|check| check.valid);
    let of = |wanted: fn(Kind) -> bool| measured.iter().filter(valid).filter(move |run| wanted(run.case.kind));
    list.extend(of(|kind| kind == Kind::Queue).map(queue));
    list.extend(of(|kind| kind == Kind::Sawtooth).map(sawtooth));
    list.extend(of(|kind| matches!(kind, Kind::Convergence { .. })).map(convergence));
    let variations: Vec<&Measured> = of(|kind| kind == Kind::Variation).collect();
    list.extend(variation(&variations));
    list
}

fn says(run: &Measured) -> String {
    format!("{} ({})", run.case.kind.figure(), run.case.name())
}

/// A number of a run with its unit, or `none`.
fn shown(run: &Measured, quantity: &str) -> String {
    run.get(quantity).map_or_else(|| "none".to_string(), number)
}

/// Figure 1.
fn queue(run: &Measured) -> String {
    let quantiles = ["queue, 5 %", "queue, median", "queue, 95 %"].map(|quantity| shown(run, quantity));
    let goodput = goodput(run);
    let drops = shown(run, "drops");
    let (case, port) = (&run.case, run.case.port);
    let verdict = if case.variant == "dctcp" {
        let near = run.get("queue, median").is_some_and(|median| (median - port.mark).abs() <= 2.0);
        let high = run.get("queue, 95 %").is_some_and(|high| high <= port.mark + 5.0);
        match (near, high) {
            (true, true) => format!("as the paper shows, it stays near K = {}", port.mark),
            (false, true) => {
                let below = below_threshold(case);
                format!("it stays under K + 5, but its median is not within 2 packets of K = {}{below}", port.mark)
            }
            (_, false) => format!("the paper's stays near K = {}, this one exceeds K + 5", port.mark),
        }
    } else if run.get("queue, highest").is_some_and(|highest| highest >= case.buffer * 0.98) {
        format!("as the paper shows, it fills the buffer of {} packets", case.buffer)
    } else {
        format!("the paper's TCP fills the buffer ({} packets), this one does not", case.buffer)
    };
    format!(
        "{}: queue of {} / {} / {} packets (5 %, median, 95 %), {drops} drops, {goodput}; {verdict}.",
        says(run),
        quantiles[0],
        quantiles[1],
        quantiles[2]
    )
}

/// The theory's sawtooth, below K + N.
fn below_threshold(case: &Case) -> String {
    let saw = case.port.sawtooth();
    format!(
        ": the theory's sawtooth lies between {:.1} and {:.0}, {:.1} in the middle",
        saw.q_min.max(0.0),
        saw.q_max,
        f64::midpoint(saw.q_min.max(0.0), saw.q_max)
    )
}

/// Goodput, and why it is below the ideal.
fn goodput(run: &Measured) -> String {
    let Some(goodput) = run.get("goodput") else { return "no goodput".to_string() };
    let text = format!("goodput {} % of the ideal", number(goodput));
    match run.idle.filter(|_| goodput < USED) {
        Some(idle) => format!("{text} (the port had nothing to send in {} % of the samples)", number(idle)),
        None => text,
    }
}

/// Figure 12.
fn sawtooth(run: &Measured) -> String {
    let theory = run.case.port.sawtooth();
    let Some(q_max) = run.get("Q_max") else { return format!("{}: no samples.", says(run)) };
    let period = match run.get("T_C") {
        Some(ms) => format!("{} ms", number(ms)),
        None => "none (no period found)".to_string(),
    };
    let numbers = format!(
        "Q_max {} packets (theory {}), A {} ({}), T_C {period} ({} ms), Q_min {} ({})",
        number(q_max),
        number(theory.q_max),
        shown(run, "A"),
        number(theory.amplitude),
        number(theory.period_s * 1e3),
        shown(run, "Q_min"),
        number(theory.q_min.max(0.0)),
    );
    let compared = [
        ("Q_max", Some(q_max), theory.q_max, NEAR.0),
        ("A", run.get("A"), theory.amplitude, NEAR.0),
        ("T_C", run.get("T_C"), theory.period_s * 1e3, 0.0),
        ("Q_min", run.get("Q_min"), theory.q_min.max(0.0), NEAR.0),
    ];
    let judged = compared.map(|(name, ours, theory, near)| verdict(name, ours, theory, near));
    let all_agree = judged.iter().all(|(agrees, _)| *agrees);
    let verdict = judged.map(|(_, words)| words).join(", ");
    let reason = match (all_agree, run.case.port.limit()) {
        (true, None) => String::new(),
        (true, Some(limit)) => format!("; but the equations do not hold here: {limit}"),
        (false, Some(limit)) => format!("; the equations do not hold here, as expected: {limit}"),
        (false, None) => idle_reason(run),
    };
    format!("{}: {numbers}; {verdict}{reason}.", says(run))
}

/// Whether a quantity is as the theory has it, within `near` or the share of [`NEAR`], and that in words.
fn verdict(name: &str, ours: Option<f64>, theory: f64, near: f64) -> (bool, String) {
    let Some(ours) = ours else { return (false, format!("{name} has no value")) };
    if (ours - theory).abs() <= near.max(theory * NEAR.1) {
        return (true, format!("{name} agrees"));
    }
    let words = match ours / theory {
        ratio if ratio >= 2.0 && ratio.is_finite() => format!("{name} is {} times the theory’s", number(ratio)),
        ratio if ratio.is_finite() => format!("{name} is off by {:+.0} %", (ratio - 1.0) * 100.0),
        _ => format!("{name} differs"),
    };
    (false, words)
}

fn idle_reason(run: &Measured) -> String {
    let idle = run.idle.filter(|idle| *idle > 1.0);
    idle.map_or_else(
        || ": the flows are not synchronised, as the equations assume".to_string(),
        |idle| format!(": the queue is empty in {} % of the samples, so the flows pause", number(idle)),
    )
}

/// Figure 16: the stages.
fn convergence(run: &Measured) -> String {
    let five = run.measures.iter().find(|measure| measure.quantity.contains("(5 flows)")).map(|measure| measure.ours);
    let fair = match five {
        Some(index) if index >= FAIR => {
            format!("Jain's index with five flows is {}: fair, as in the paper", number(index))
        }
        Some(index) => format!("Jain's index with five flows is {}, below {FAIR}", number(index)),
        None => "nothing was sent in the five-flow stage".to_string(),
    };
    let times: Vec<f64> =
        run.measures.iter().filter(|m| m.quantity.starts_with("convergence time")).map(|m| m.ours).collect();
    let converged = match mean(&times) {
        Some(time) => format!("{} of 4 starts converged, in {} s on average", times.len(), number(time)),
        None => "no start converged within its stage".to_string(),
    };
    let reason = lock_out(run, five).unwrap_or_default();
    format!("{}: {fair}; {converged}{reason}.", says(run))
}

/// Detects a lock-out at a full drop-tail queue.
fn lock_out(run: &Measured, five: Option<f64>) -> Option<&'static str> {
    // if one flow of five has everything, the index is 0.2
    let locked = five.is_some_and(|index| index < 0.25);
    (locked && run.case.variant != "dctcp").then_some(
        ": one flow has all of the port. Its own link is as fast as the port, so it takes \
         each place in the full queue as soon as it is free, and the others get none: a lock-out of drop-tail queues (Floyd and \
         Jacobson 1992), which marking does not have",
    )
}

/// Figure 16: DCTCP's variation against TCP's.
fn variation(runs: &[&Measured]) -> Option<String> {
    let of = |run: &&Measured| run.get("coefficient of variation");
    let mut pairs = Vec::new();
    for run in runs.iter().filter(|run| run.case.scenario.tcp.cc.label() == "dctcp") {
        let other = runs.iter().find(|other| {
            other.case.scenario.tcp.cc.label() != "dctcp"
                && (other.case.backend, other.case.seed) == (run.case.backend, run.case.seed)
                && (other.case.port.flows - run.case.port.flows).abs() < 0.5
        });
        if let (Some(ours), Some(theirs)) = (of(run), other.and_then(of)) {
            pairs.push((run, ours, theirs));
        }
    }
    let less = pairs.iter().filter(|(_, ours, theirs)| ours < theirs).count();
    let list: Vec<String> = pairs
        .iter()
        .map(|(run, ours, theirs)| {
            let (backend, flows) = (run.case.backend.name(), run.case.port.flows);
            format!("{backend} N={flows} {} and {}", number(*ours), number(*theirs))
        })
        .collect();
    (!pairs.is_empty()).then(|| {
        format!(
            "Figure 16, coefficient of variation of a flow's throughput, DCTCP and TCP: {}. DCTCP varies less, as the paper \
             says, in {less} of {} pairs.",
            list.join("; "),
            pairs.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quantity_has_a_verdict_of_its_own() {
        // 10 % of 50 are 5 packets; of 20 they are 2, so 3 packets count
        assert_eq!(verdict("Q_max", Some(55.0), 50.0, 3.0), (true, "Q_max agrees".to_string()));
        assert_eq!(verdict("A", Some(29.0), 20.0, 3.0), (false, "A is off by +45 %".to_string()));
        assert_eq!(verdict("A", Some(17.0), 20.0, 3.0).1, "A agrees");
        assert_eq!(verdict("T_C", Some(7.0), 1.0, 0.0).1, "T_C is 7 times the theory’s");
        assert_eq!(verdict("T_C", None, 1.0, 0.0).1, "T_C has no value");
        assert_eq!(verdict("Q_min", Some(9.0), 0.0, 3.0).1, "Q_min differs");
    }

    #[test]
    fn without_runs_only_the_reason_is_said() {
        assert_eq!(findings(&[], Some("no root"), true), ["Kernel columns are absent: no root."]);
        assert!(findings(&[], Some("not requested"), false).is_empty());
    }
}
