//! Means and their confidence, medians and quantiles.

use policy::student;
use std::borrow::Borrow;

/// The arithmetic mean; `None` without values.
pub fn mean<V: Borrow<f64>>(values: impl IntoIterator<Item = V>) -> Option<f64> {
    let (sum, n) = values.into_iter().fold((0.0, 0_u32), |(sum, n), value| (sum + value.borrow(), n + 1));
    (n > 0).then(|| sum / f64::from(n))
}

/// The median; of an even number of values, the mean of the middle two. `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    (n > 0).then(|| f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]))
}

/// The value that this share of the values does not exceed, by nearest rank; `None` without values.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let rank = ((values.len() as f64 * share).ceil() as usize).max(1) - 1;
    let mut values = values.to_vec();
    (rank < values.len()).then(|| *values.select_nth_unstable_by(rank, f64::total_cmp).1)
}

/// The mean of independent, nearly normal values, and the interval that holds the true one with 95 % if it is looked at once
/// (Student's). `None` with fewer than two values.
pub fn confident_mean(values: &[f64]) -> Option<(f64, (f64, f64))> {
    let n = values.len();
    let mean = mean(values).filter(|_| n >= 2)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let half = student(n - 1, 0.95) * libm::sqrt(squares / (n - 1) as f64 / n as f64);
    Some((mean, (mean - half, mean + half)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_of_values_or_references() {
        let values = [1.0, 2.0, 6.0];
        assert_eq!((mean(values), mean(values.iter()), mean::<f64>([])), (Some(3.0), Some(3.0), None));
    }

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0]), median(&[])), (Some(2.0), Some(2.5), None));
    }

    #[test]
    fn a_mean_has_an_interval_from_two_values_on() {
        // squared deviations 4 + 0 + 0 + 4
        let (mean, (low, high)) = confident_mean(&[1.0, 3.0, 3.0, 5.0]).unwrap();
        let half = 3.182 * (8.0_f64 / 3.0 / 4.0).sqrt();
        assert!((mean - 3.0).abs() < 1e-12 && (low - 3.0 + half).abs() < 1e-3 && (high - 3.0 - half).abs() < 1e-3);
        assert_eq!((confident_mean(&[0.0, 0.0]), confident_mean(&[1.0])), (Some((0.0, (0.0, 0.0))), None));
    }

    #[test]
    fn quantiles_are_values_by_nearest_rank() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let quantiles = [0.0, 0.05, 0.5, 0.99, 1.0].map(|share| quantile(&hundred, share));
        assert_eq!(quantiles, [1.0, 5.0, 50.0, 99.0, 100.0].map(Some));
        assert_eq!((quantile(&[7.0], 0.99), quantile(&[], 0.5)), (Some(7.0), None));
    }
}
