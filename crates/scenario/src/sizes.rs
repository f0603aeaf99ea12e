//! Distributions of flow sizes: published tables, or the user's CSV.
//!
//! A table lists points of the cumulative distribution; between two points it is a straight line, as is usual
//! with these tables. Equal neighbouring sizes are a jump: flows of exactly that size.

use std::sync::Arc;

/// A cumulative distribution of flow sizes, piecewise linear.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeDistribution {
    /// (bytes, probability of at most that many): both never falling, the last probability 1.
    points: Vec<(f64, f64)>,
}

/// Why a table is not a distribution.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct SizeError {
    /// Line of the table, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Names of the published distributions.
pub(crate) const PUBLISHED: [&str; 5] = ["web-search", "data-mining", "hadoop", "cache", "memcached"];

/// Bytes above which a size is refused: 1 PB, so that sums of many flows stay exact.
const SIZE_MAX: f64 = 1e15;

impl SizeDistribution {
    /// A published distribution: `web-search` (Alizadeh et al. 2010), `data-mining` (Greenberg et al. 2009), `hadoop` and
    /// `cache` (Roy et al. 2015), or `memcached` (Atikoglu et al. 2012).
    pub fn published(name: &str) -> Option<Arc<SizeDistribution>> {
        let text = match name {
            "web-search" => include_str!("../data/web-search.csv"),
            "data-mining" => include_str!("../data/data-mining.csv"),
            "hadoop" => include_str!("../data/hadoop.csv"),
            "cache" => include_str!("../data/cache.csv"),
            "memcached" => include_str!("../data/memcached.csv"),
            _ => return None,
        };
        Some(Arc::new(SizeDistribution::parse(text).expect("the published tables are tested")))
    }

    /// Reads a table: a header `bytes,cdf` or `packets_of_N_bytes,cdf`, then one point a line. Lines that are empty
    /// or begin with `#` are skipped.
    ///
    /// # Errors
    /// [`SizeError`] at the first line that is not a point, falls below the one before, or leaves the range;
    /// and at the last line if it does not reach 1.
    pub fn parse(text: &str) -> Result<SizeDistribution, SizeError> {
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(i, line)| (i + 1, line.trim()))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let Some((line, header)) = lines.next() else {
            return Err(SizeError { line: 1, message: "no header; the first line is `bytes,cdf`".into() });
        };
        let unit = header_unit(header).ok_or_else(|| SizeError {
            line,
            message: format!("the header is `{header}`; it must be `bytes,cdf` or `packets_of_1460_bytes,cdf`"),
        })?;
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut last_line = line;
        for (line, row) in lines {
            let point =
                parse_point(row, unit, points.last().copied()).map_err(|message| SizeError { line, message })?;
            points.push(point);
            last_line = line;
        }
        match points.last() {
            Some((_, 1.0)) => {
                let table = SizeDistribution { points };
                let mean = table.mean();
                if mean < 1.0 {
                    // flows that arrive at a rate for a load would have no end
                    let message = format!("the mean size is {mean} B; it must be at least 1 B");
                    return Err(SizeError { line: last_line, message });
                }
                Ok(table)
            }
            Some((_, p)) => {
                Err(SizeError { line: last_line, message: format!("the last probability is {p}; it must be 1") })
            }
            None => Err(SizeError { line: last_line, message: "no points after the header".into() }),
        }
    }

    /// The size that a fraction `u` (0..=1, else clamped) of flows does not exceed: bytes, at least 1.
    pub fn quantile(&self, u: f64) -> u64 {
        let u = u.clamp(0.0, 1.0);
        let above = self.points.partition_point(|&(_, p)| p < u).min(self.points.len() - 1);
        let (size, p) = self.points[above];
        let bytes = if above == 0 {
            size
        } else {
            let (size_below, p_below) = self.points[above - 1];
            // p_below < u <= p, so p - p_below > 0.
            size_below + (size - size_below) * (u - p_below) / (p - p_below)
        };
        ((bytes + 0.5) as u64).max(1)
    }

    /// Mean size in bytes: the sum over segments of probability × middle, plus the jump at the first point.
    pub fn mean(&self) -> f64 {
        let (size, p) = self.points[0];
        let segments = self.points.windows(2).map(|w| (w[1].1 - w[0].1) * f64::midpoint(w[0].0, w[1].0));
        size * p + segments.sum::<f64>()
    }
}

/// Bytes of the first column's unit.
fn header_unit(header: &str) -> Option<f64> {
    let (first, second) = header.split_once(',')?;
    if second.trim() != "cdf" {
        return None;
    }
    match first.trim() {
        "bytes" => Some(1.0),
        name => {
            let packet: u32 = name.strip_prefix("packets_of_")?.strip_suffix("_bytes")?.parse().ok()?;
            (packet > 0).then_some(f64::from(packet))
        }
    }
}

/// One point, checked against the one before.
fn parse_point(row: &str, unit: f64, before: Option<(f64, f64)>) -> Result<(f64, f64), String> {
    let number = |text: &str| {
        let value: f64 = text.trim().parse().map_err(|_| format!("`{}` is not a number", text.trim()))?;
        if value.is_finite() { Ok(value) } else { Err(format!("`{}` is not a number", text.trim())) }
    };
    let (size, p) = row.split_once(',').ok_or_else(|| format!("`{row}` is not `size,probability`"))?;
    let (size, p) = (number(size)? * unit, number(p)?);
    if !(0.0..=1.0).contains(&p) {
        return Err(format!("the probability {p} is outside 0..1"));
    }
    if !(0.0..=SIZE_MAX).contains(&size) {
        return Err(format!("the size {size} B is outside 0..1e15"));
    }
    if let Some((size_before, p_before)) = before {
        if p < p_before {
            return Err(format!("the probability falls from {p_before} to {p}; a cumulative distribution never falls"));
        }
        if size < size_before {
            return Err(format!("the size falls from {size_before} B to {size} B; sort the table by size"));
        }
    }
    Ok((size, p))
}
