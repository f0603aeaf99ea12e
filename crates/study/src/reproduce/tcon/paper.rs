//! The paper's numbers.

/// Mean completion times: `environment,file,bbr_s,tcon_s,cubic_s`.
const TIMES: &str = include_str!("../../../data/tcon_tct.csv");
/// `environment,file,quantity,unit,bbr,tcon,cubic`.
const CLAIMS: &str = include_str!("../../../data/tcon_claims.csv");

/// Mean reduction over the paper's six cases, percent of TCon's times.
pub const MEAN_REDUCTION: f64 = 12.76;

fn cells(text: &'static str, path: &str, file: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let begin = format!("{path},{file},");
    text.lines().filter(move |line| line.starts_with(&begin)).map(|line| line.split(',').collect())
}

/// Mean completion times of CUBIC, BBR and TCon, seconds.
pub fn times(path: &str, file: &str) -> Option<[f64; 3]> {
    let row = cells(TIMES, path, file).next()?;
    let number = |at: usize| row.get(at)?.parse().ok();
    Some([number(4)?, number(2)?, number(3)?])
}

/// Reduction of the 99.9th percentile against CUBIC's, of BBR and TCon, percent.
pub fn tail_reductions(path: &str, file: &str) -> Option<[f64; 2]> {
    let row = cells(CLAIMS, path, file).find(|row| row[2] == "p99.9 reduction against cubic")?;
    Some([row[4].parse().ok()?, row[5].parse().ok()?])
}

/// Packets of a flow that TCon mostly buffers.
pub fn buffered(path: &str) -> Option<f64> {
    cells(CLAIMS, path, "large").find(|row| row[2] == "buffered packets mostly")?[5].parse().ok()
}

/// The enforcer's maximum CPU use, percent; the paper does not state the load.
pub fn cpu(connections: usize) -> Option<f64> {
    cells(CLAIMS, "lan", &format!("{connections} connections")).find(|row| row[2] == "CPU at most")?[5].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_read_as_they_were_published() {
        assert_eq!(times("lan", "10MB"), Some([1.7003, 1.586, 1.653]));
        assert_eq!(times("wan-oregon", "630MB"), Some([4276.137, 3581.961, 3744.717]));
        assert_eq!(times("lan", "101MB"), None);
        assert_eq!(tail_reductions("wan-shanghai", "10MB"), Some([34.89, 19.04]));
        assert_eq!((cpu(20_000), cpu(1000)), (Some(15.0), None));
        assert_eq!(["lan", "wan-shanghai", "wan-oregon"].map(buffered), [Some(20.0), Some(40.0), Some(105.0)]);
    }
}
