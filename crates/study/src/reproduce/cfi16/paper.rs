//! The paper's numbers.

/// Its Table 4, `variant,throughput_percent_of_ideal,average_packet_delay_ms`, in its order.
const TABLE_4: &str = include_str!("../../../data/cfi16_table4.csv");

/// A line of Table 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Mean throughput of a flow, percent of 100 Mbit/s.
    pub throughput_percent: f64,
    /// Mean packet delay.
    pub delay_ms: f64,
}

/// The paper's numbers of a variant; `None` if it has none.
pub fn line(variant: &str) -> Option<Line> {
    let row = TABLE_4.lines().find_map(|row| row.strip_prefix(variant)?.strip_prefix(','))?;
    let (throughput, delay) = row.split_once(',')?;
    Some(Line { throughput_percent: throughput.trim().parse().ok()?, delay_ms: delay.trim().parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_4_is_read_as_it_is_printed() {
        assert_eq!(line("vegas"), Some(Line { throughput_percent: 8.02, delay_ms: 3.36 }));
        assert_eq!(line("scalable").map(|line| line.delay_ms), Some(16.07));
        assert_eq!(line("bbr"), None);
        assert!(TABLE_4.lines().skip(1).all(|row| line(row.split(',').next().unwrap()).is_some()));
    }
}
