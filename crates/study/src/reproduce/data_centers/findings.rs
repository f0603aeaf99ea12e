//! What follows from the rows, in words; every name and number is computed.

use super::cases::{TRAFFIC, Traffic};
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
    let mut findings = vec![choices(rows)];
    findings.extend(TRAFFIC.iter().map(|traffic| of_traffic(rows, traffic.key, traffic.name)));
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

/// Best and worst algorithm and network, and by how much each of the two choices changes the traffic's quantity.
fn of_traffic(rows: &[Row], traffic: &str, name: &str) -> String {
    let quantity = main(rows, traffic);
    let rows = of(rows, traffic);
    let range = |key: Key| match (ranked(&rows, key, quantity).first(), ranked(&rows, key, quantity).last()) {
        (Some(best), Some(worst)) => {
            format!("from {} ({}) to {} ({})", number(best.1), best.0, number(worst.1), worst.0)
        }
        _ => "unknown".to_string(),
    };
    format!(
        "{}: {} ({}) goes, best first, {} as the median of the networks, and {} as the median of the algorithms. In one network the \
         algorithm changes it by a factor of {:.2}; with one algorithm, the network by {:.2}.",
        capital(name),
        QUANTITIES[quantity].name,
        QUANTITIES[quantity].unit,
        range(ALGORITHM),
        range(NETWORK),
        factor(&rows, NETWORK, quantity),
        factor(&rows, ALGORITHM, quantity)
    )
}

/// Beside which traffic the algorithm matters more, and beside which the network.
fn choices(rows: &[Row]) -> String {
    let by_algorithm = |traffic: &&Traffic| {
        let (quantity, rows) = (main(rows, traffic.key), of(rows, traffic.key));
        factor(&rows, NETWORK, quantity) > factor(&rows, ALGORITHM, quantity)
    };
    let (algorithm, network): (Vec<&Traffic>, Vec<&Traffic>) = TRAFFIC.iter().partition(by_algorithm);
    let names = |traffic: &[&Traffic]| match traffic {
        [] => "none".to_string(),
        some => some.iter().map(|traffic| traffic.name).collect::<Vec<_>>().join(", "),
    };
    format!(
        "Goodput or job time depends more on the algorithm than on the network with this traffic: {}; more on the network: {}.",
        names(&algorithm),
        names(&network)
    )
}

/// The rows of a traffic.
fn of<'a>(rows: &'a [Row], traffic: &str) -> Vec<&'a Row> {
    rows.iter().filter(|row| row.traffic.key == traffic).collect()
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
    let words = |traffic: &Traffic| {
        let rows = of(rows, traffic.key);
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
    let parts: Vec<String> = TRAFFIC.iter().filter_map(words).collect();
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
    let words = |traffic: &Traffic| {
        let rows = of(rows, traffic.key);
        let ranked = ranked(&rows, ALGORITHM, FAIRNESS);
        let (best, worst) = (ranked.first()?, ranked.last()?);
        Some(format!("{} {:.2} ({}) to {:.2} ({})", traffic.name, worst.1, worst.0, best.1, best.0))
    };
    let parts: Vec<String> = TRAFFIC.iter().filter_map(words).collect();
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
fn bounds(rows: &[Row]) -> Vec<String> {
    let count = |quantity: usize, only: bool| {
        let values = rows.iter().filter_map(|row| row.values[quantity]);
        values.filter(|(_, bound)| *bound || !only).count()
    };
    let what = [
        (MICE_P99, "the 99th percentile of mice is a lower bound, because some had not ended when the run did"),
        (JOB_TIME, "the job time is a lower bound, because a job had not ended when the run did"),
    ];
    let words = |(quantity, text): (usize, &str)| {
        let late = count(quantity, true);
        (late > 0).then(|| format!("In {late} of {} combinations {text}.", count(quantity, false)))
    };
    what.into_iter().filter_map(words).collect()
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
        assert!(said[3].starts_with("MapReduce: job time (ms) goes, best first, from 15 (a) to 70 (b)"), "{}", said[3]);
        assert!(said[3].contains("from 25 (fat tree) to 60 (leaf–spine)"), "{}", said[3]);
        // by algorithm 4 and 5, by network 2 and 2.5
        assert!(said[3].contains("by a factor of 4.50; with one algorithm, the network by 2.25"), "{}", said[3]);
        assert!(said[0].contains("with this traffic: MapReduce;"), "{}", said[0]);
        let drops = said.iter().find(|text| text.starts_with("Packets dropped")).expect("it is said");
        assert!(drops.ends_with("fewest first: a 30, b 140."), "{drops}");
        assert!(said.iter().any(|text| text.starts_with("In 1 of 4 combinations the job time")));
    }
}
