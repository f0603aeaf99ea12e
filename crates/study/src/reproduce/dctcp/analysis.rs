//! Analysis of time series: peaks and troughs, period, fairness, variation, convergence.

use crate::statistics::{mean, quantile};

/// A sawtooth flatter than this many packets cannot be distinguished from sampling by single packets: it has no peaks.
const TOOTH_MIN: f64 = 2.0;
/// A turn counts if the series then changes by this share of its spread (5 % to 95 %).
const TOOTH_SHARE: f64 = 0.5;
/// A lower autocorrelation is chance.
const CORRELATION_MIN: f64 = 0.1;

/// The turning points of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turns {
    /// Its highest values between two falls.
    pub peaks: Vec<f64>,
    /// Its lowest values between two rises.
    pub troughs: Vec<f64>,
}

/// The turning points of a series: a peak is the highest value before a fall by half of the spread (5 % to 95 %) and by two at least, a
/// trough the reverse. Those before the first turn and after the last are left out, since they may be incomplete.
pub fn turns(values: &[f64]) -> Turns {
    let spread = match (quantile(values, 0.05), quantile(values, 0.95)) {
        (Some(low), Some(high)) => high - low,
        _ => return Turns::default(),
    };
    let tooth = (spread * TOOTH_SHARE).max(TOOTH_MIN);
    let mut turns = Turns::default();
    let (mut low, mut high) = (values[0], values[0]);
    // unknown until the first turn, whose own start was not observed
    let mut rising = None;
    for &value in values {
        (low, high) = (low.min(value), high.max(value));
        if rising != Some(false) && value <= high - tooth {
            if rising.is_some() {
                turns.peaks.push(high);
            }
            (rising, low, high) = (Some(false), value, value);
        } else if rising != Some(true) && value >= low + tooth {
            if rising.is_some() {
                turns.troughs.push(low);
            }
            (rising, low, high) = (Some(true), value, value);
        }
    }
    turns
}

/// The period of a series, in samples: the lag with the highest autocorrelation, up to `longest`, after it was first negative. The first
/// lag within a tenth of that maximum counts, so that no multiple of the period is taken. `None` if nothing repeats.
pub fn period(values: &[f64], longest: usize) -> Option<f64> {
    let mean = mean(values)?;
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let power: f64 = centred.iter().map(|value| value * value).sum();
    let longest = longest.min(values.len() / 3);
    if power <= 0.0 || longest < 2 {
        return None;
    }
    let at = |lag: usize| {
        let sum: f64 = centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b).sum();
        // longer lags have fewer terms
        sum / power * values.len() as f64 / (values.len() - lag) as f64
    };
    let correlation: Vec<f64> = (0..=longest).map(at).collect();
    let first = correlation.iter().position(|value| *value < 0.0)?;
    let best = correlation[first..].iter().copied().fold(f64::MIN, f64::max);
    let is_peak = |lag: &usize| {
        let (before, here) = (correlation[lag - 1], correlation[*lag]);
        let after = correlation.get(lag + 1).copied().unwrap_or(f64::MAX);
        here >= before && here >= after && here >= best * 0.9
    };
    let lag = (first.max(1)..=longest).find(is_peak)?;
    (correlation[lag] >= CORRELATION_MIN).then_some(lag as f64)
}

/// Jain's fairness index: 1 if all are equal, 1/n if one has everything; `None` if all are zero.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|share| share * share).sum::<f64>());
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Coefficient of variation: standard deviation over mean; `None` if the mean is zero.
pub fn variation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|mean| *mean > 0.0)?;
    let square = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / values.len() as f64;
    Some(square.sqrt() / mean)
}

/// The first of `steps` from which on Jain's index of the flows' shares is at least `least` for `hold` steps. Each element of `flows` is
/// one flow's throughput over the steps.
pub fn converged(flows: &[&[f64]], least: f64, hold: usize) -> Option<usize> {
    let steps = flows.iter().map(|flow| flow.len()).min()?;
    let fair = |step: usize| {
        let shares: Vec<f64> = flows.iter().map(|flow| flow[step]).collect();
        jain(&shares).is_some_and(|index| index >= least)
    };
    let fair: Vec<bool> = (0..steps).map(fair).collect();
    (0..(steps + 1).saturating_sub(hold)).find(|from| fair[*from..from + hold].iter().all(|fair| *fair))
}

/// Means of `width` neighbours each; an incomplete group at the end is left out.
pub fn binned(values: &[f64], width: usize) -> Vec<f64> {
    values.chunks_exact(width.max(1)).filter_map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::median;

    /// Rises from 10 to 19 by one per step, then drops at once.
    fn sawtooth(teeth: usize) -> Vec<f64> {
        (0..teeth * 10).map(|step| 10.0 + (step % 10) as f64).collect()
    }

    fn close(a: Option<f64>, b: f64) -> bool {
        a.is_some_and(|a| (a - b).abs() < 1e-9)
    }

    #[test]
    fn the_teeth_of_a_sawtooth_are_found() {
        let turns = turns(&sawtooth(20));
        assert_eq!((turns.peaks.len(), turns.troughs.len()), (19, 19), "{turns:?}");
        assert!(turns.peaks.iter().all(|peak| (peak - 19.0).abs() < 1e-9), "{turns:?}");
        assert!(turns.troughs.iter().all(|trough| (trough - 10.0).abs() < 1e-9), "{turns:?}");
    }

    #[test]
    fn single_packets_of_noise_make_no_teeth() {
        let noisy: Vec<f64> = sawtooth(20).iter().enumerate().map(|(i, v)| v + [0.0, 1.0, -1.0][i % 3]).collect();
        let found = turns(&noisy);
        assert_eq!(found.peaks.len(), 19, "{found:?}");
        assert!(close(median(&found.peaks), 19.0) || close(median(&found.peaks), 20.0), "{found:?}");
        let flat: Vec<f64> = (0..100).map(|step| 20.0 + f64::from(step % 2)).collect();
        assert_eq!(turns(&flat), Turns::default());
        assert_eq!(turns(&[]), Turns::default());
    }

    #[test]
    fn the_period_is_the_shortest_lag_at_which_the_series_repeats() {
        assert!(close(period(&sawtooth(50), 100), 10.0), "{:?}", period(&sawtooth(50), 100));
        let sine: Vec<f64> = (0..5000).map(|step| (f64::from(step) / 64.0 * std::f64::consts::TAU).sin()).collect();
        assert!(close(period(&sine, 1000), 64.0), "{:?}", period(&sine, 1000));
        assert_eq!(period(&[7.0; 1000], 100), None, "a constant has no period");
        let ramp: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(period(&ramp, 100), None, "a ramp has no period");
    }

    #[test]
    fn noise_has_no_period() {
        // a linear congruential generator: the same numbers on every platform
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64
        };
        let noise: Vec<f64> = (0..20_000).map(|_| next()).collect();
        assert_eq!(period(&noise, 500), None);
    }

    #[test]
    fn jains_index_by_hand() {
        assert!(close(jain(&[5.0, 5.0, 5.0, 5.0]), 1.0));
        assert!(close(jain(&[8.0, 0.0]), 0.5));
        assert!(close(jain(&[1.0, 3.0]), 0.8));
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    #[test]
    fn variation_by_hand() {
        assert!(close(variation(&[1.0, 3.0]), 0.5));
        assert!(close(variation(&[4.0; 9]), 0.0));
        assert_eq!(variation(&[0.0, 0.0]), None);
        assert_eq!(variation(&[]), None);
    }

    #[test]
    fn convergence_is_when_fairness_stays() {
        let old = [10.0, 10.0, 5.0, 9.0, 5.0, 5.0, 5.0];
        let new = [0.0, 0.0, 5.0, 1.0, 5.0, 5.0, 5.0];
        assert_eq!(converged(&[&old, &new], 0.95, 1), Some(2), "one step suffices");
        assert_eq!(converged(&[&old, &new], 0.95, 3), Some(4));
        assert_eq!(converged(&[&old, &new], 0.95, 4), None);
        assert_eq!(converged(&[], 0.95, 1), None);
    }

    #[test]
    fn bins_are_means() {
        assert_eq!(binned(&[1.0, 3.0, 5.0, 7.0, 9.0], 2), [2.0, 6.0]);
    }
}
