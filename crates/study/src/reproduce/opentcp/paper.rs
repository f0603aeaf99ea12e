//! The paper's numbers, and the data of its Figure 5.

/// `variant,drops,cdf`: the share of flows with at most this many drops. The paper does not state what a flow is.
const FIGURE_5: &str = include_str!("../../../data/opentcp_fig5_drops_cdf.csv");

/// Figure 5 of a variant: (drops, share of the flows with at most this many).
pub fn drops(variant: &str) -> Vec<(f64, f64)> {
    let row = |line: &str| {
        let (drops, share) = line.strip_prefix(variant)?.strip_prefix(',')?.split_once(',')?;
        Some((drops.parse().ok()?, share.trim().parse().ok()?))
    };
    FIGURE_5.lines().filter_map(row).collect()
}

/// The fewest drops that this share of a variant's flows does not exceed.
pub fn drops_at(variant: &str, share: f64) -> Option<f64> {
    drops(variant).into_iter().find(|(_, cdf)| *cdf >= share).map(|(drops, _)| drops)
}

/// The share of a variant's flows without drops.
pub fn without_drops(variant: &str) -> Option<f64> {
    drops(variant).first().filter(|(drops, _)| *drops == 0.0).map(|(_, share)| *share)
}

/// Reduction of its FCT tail against the default's, percent.
pub fn tail_reduction(variant: &str) -> Option<f64> {
    match variant {
        "opentcp1" => Some(64.0),
        "opentcp2" => Some(59.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_5_is_read_as_it_was_published() {
        assert_eq!(without_drops("opentcp2"), Some(0.816));
        assert_eq!(without_drops("default"), Some(0.233));
        assert_eq!(without_drops("opentcp1"), Some(0.133));
        assert_eq!(drops_at("opentcp1", 0.5), Some(33.0));
        assert_eq!(drops_at("default", 1.0), Some(51.0), "printed as 1.000 from here on");
        assert_eq!(drops("bic"), []);
    }
}
