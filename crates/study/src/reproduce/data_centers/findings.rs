//! What follows from the rows, in words; every name and number is computed.

use super::cases::TRAFFIC;
use super::measured::{ACTIVE_A_GB, DROPS, FAIRNESS, JOB_TIME, MICE_P99, QUANTITIES};
use super::rows::Row;
use super::tell::main;
use crate::statistics::median;
use crate::table::number;

/// What is compared: algorithms, or networks.
type Key = fn(&Row) -> String;

const ALGORITHM: Key = |row| row.algorithm.clone();
const NETWORK: Key = |row| row.place();

/// The sentences.
pub fn findings(rows: &[Row]) -> Vec<String> {
    let mut findings: Vec<String> = TRAFFIC.iter().map(|traffic| of_traffic(rows, traffic.key, traffic.name)).collect();
    findings.push(mice(rows));
    findings.push(drops(rows));
    findings.push(fairness(rows));
    findings.push(energy(rows));
    findings.extend(bounds(rows));
    findings.push(match rows.first().map_or(0, |row| row.seeds) {
        1 => "All of this is one seed.".to_string(),
        n => format!("All numbers are medians over {n} seeds."),
    });
    findings
}

/// Best and worst algorithm and network, and which of the two choices matters more.
fn of_traffic(rows: &[Row], traffic: &str, name: &str) -> String {
    let quantity = main(rows, traffic);
    let rows: Vec<&Row> = rows.iter().filter(|row| row.traffic.key == traffic).collect();
    let by = |key: Key| ranked(&rows, key, quantity);
    let (algorithms, networks) = (by(ALGORITHM), by(NETWORK));
    let unit = QUANTITIES[quantity].unit;
    let range = |ranked: &[(String, f64)]| match (ranked.first(), ranked.last()) {
        (Some(best), Some(worst)) => {
            format!("{} with {} ({} with {})", number(best.1), best.0, number(worst.1), worst.0)
        }
        _ => "unknown".to_string(),
    };
    let factors =
        [factor(&rows, NETWORK, quantity), factor(&rows, ALGORITHM, quantity)].map(|factor| format!("{factor:.2}"));
    format!(
        "{}: {} is best at {} as the median of the networks, and {} as the median of the algorithms, {unit}; within a network the \
         algorithm changes it by a factor of {}, with an algorithm the network by {}.",
        capital(name),
        QUANTITIES[quantity].name,
        range(&algorithms),
        range(&networks),
        factors[0],
        factors[1]
    )
}

/// The medians of a quantity by what is compared, best first.
fn ranked(rows: &[&Row], key: Key, quantity: usize) -> Vec<(String, f64)> {
    let mut ranked: Vec<(String, f64)> =
        grouped(rows, key, quantity).into_iter().filter_map(|(name, values)| Some((name, median(&values)?))).collect();
    let sign = if QUANTITIES[quantity].less { 1.0 } else { -1.0 };
    ranked.sort_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1)));
    ranked
}

/// How much the largest of each group exceeds its smallest, as a factor: the median over the groups.
fn factor(rows: &[&Row], group: Key, quantity: usize) -> f64 {
    let factors: Vec<f64> = grouped(rows, group, quantity)
        .into_iter()
        .filter_map(|(_, values)| {
            let low = values.iter().copied().reduce(f64::min)?;
            let high = values.iter().copied().reduce(f64::max)?;
            (low > 0.0).then(|| high / low)
        })
        .collect();
    median(&factors).unwrap_or(f64::NAN)
}

fn grouped(rows: &[&Row], key: Key, quantity: usize) -> Vec<(String, Vec<f64>)> {
    let mut groups: Vec<(String, Vec<f64>)> = Vec::new();
    for row in rows {
        let Some(value) = row.number(quantity) else { continue };
        let name = key(row);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => groups.push((name, vec![value])),
        }
    }
    groups
}

/// How long mice wait beside each traffic.
fn mice(rows: &[Row]) -> String {
    let of = |traffic: &super::cases::Traffic| {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.traffic.key == traffic.key).collect();
        let ranked = ranked(&rows, ALGORITHM, MICE_P99);
        let (best, worst) = (ranked.first()?, ranked.last()?);
        Some(format!(
            "{} with {} to {} with {} beside {}",
            number(best.1),
            best.0,
            number(worst.1),
            worst.0,
            traffic.name
        ))
    };
    let parts: Vec<String> = TRAFFIC.iter().filter_map(of).collect();
    format!(
        "Mice take at the 99th percentile, as the median of the networks, {} times as long as alone.",
        parts.join(", ")
    )
}

fn drops(rows: &[Row]) -> String {
    let all: Vec<&Row> = rows.iter().collect();
    let mut sums: Vec<(String, f64)> =
        grouped(&all, ALGORITHM, DROPS).into_iter().map(|(algorithm, drops)| (algorithm, drops.iter().sum())).collect();
    sums.sort_by(|a, b| a.1.total_cmp(&b.1));
    let words: Vec<String> = sums.iter().map(|(algorithm, sum)| format!("{algorithm} {}", number(*sum))).collect();
    format!("Packets dropped over all networks and traffic, fewest first: {}.", words.join(", "))
}

fn fairness(rows: &[Row]) -> String {
    let of = |traffic: &super::cases::Traffic| {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.traffic.key == traffic.key).collect();
        let ranked = ranked(&rows, ALGORITHM, FAIRNESS);
        let (best, worst) = (ranked.first()?, ranked.last()?);
        Some(format!("{} {:.2} ({}) to {:.2} ({})", traffic.name, worst.1, worst.0, best.1, best.0))
    };
    let parts: Vec<String> = TRAFFIC.iter().filter_map(of).collect();
    format!("Jain’s index, as the median of the networks: {}.", parts.join(", "))
}

/// What a GB costs on each network.
fn energy(rows: &[Row]) -> String {
    let all: Vec<&Row> = rows.iter().collect();
    let networks = ranked(&all, NETWORK, ACTIVE_A_GB);
    let words: Vec<String> = networks.iter().map(|(network, value)| format!("{network} {}", number(*value))).collect();
    let algorithms = ranked(&all, ALGORITHM, ACTIVE_A_GB);
    let spread = match (algorithms.first(), algorithms.last()) {
        (Some(low), Some(high)) => format!(
            "; the algorithms differ by {:.1} %, from {} ({}) to {} ({})",
            (high.1 / low.1 - 1.0) * 100.0,
            number(low.1),
            low.0,
            number(high.1),
            high.0
        ),
        _ => String::new(),
    };
    format!("A GB keeps links active, link-seconds, medians: {}{spread}.", words.join(", "))
}

/// What is only a lower bound.
fn bounds(rows: &[Row]) -> Option<String> {
    let with = |quantity: usize| rows.iter().filter_map(move |row| row.values[quantity]);
    let late = with(JOB_TIME).filter(|(_, bound)| *bound).count();
    (late > 0).then(|| {
        format!(
            "In {late} of {} combinations with jobs not all ended within the run; their times are lower bounds.",
            with(JOB_TIME).count()
        )
    })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::super::cases::NETWORKS;
    use super::*;

    /// A row of which only the job time and drops are known.
    fn row(traffic: usize, network: usize, algorithm: &str, job_ms: f64) -> Row {
        let mut values = vec![None; QUANTITIES.len()];
        values[JOB_TIME] = Some((job_ms, job_ms > 99.0));
        values[DROPS] = Some((job_ms, false));
        let algorithm = algorithm.to_string();
        Row { traffic: &TRAFFIC[traffic], network: &NETWORKS[network], size: 0, algorithm, values, seeds: 1 }
    }

    #[test]
    fn best_and_worst_and_their_factors_follow_from_the_rows() {
        let rows = [row(2, 0, "a", 10.0), row(2, 0, "b", 40.0), row(2, 1, "a", 20.0), row(2, 1, "b", 100.0)];
        let said = findings(&rows);
        // a: median 15, b: median 70; the fat tree: 25, the leaf–spine: 60
        assert!(said[2].starts_with("MapReduce: job time is best at 15 with a (70 with b)"), "{}", said[2]);
        assert!(said[2].contains("25 with fat tree (60 with leaf–spine)"), "{}", said[2]);
        // by algorithm 4 and 5, by network 2 and 2.5
        assert!(said[2].contains("by a factor of 4.50, with an algorithm the network by 2.25"), "{}", said[2]);
        let drops = said.iter().find(|text| text.starts_with("Packets dropped")).expect("it is said");
        assert!(drops.ends_with("fewest first: a 30, b 140."), "{drops}");
        assert!(said.iter().any(|text| text.starts_with("In 1 of 4 combinations with jobs")));
    }
}
