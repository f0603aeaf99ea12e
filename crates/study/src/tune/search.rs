//! The search: an optimiser of a library proposes values, and hears how good they were. Nothing else knows which optimiser that is.

use super::numbers::Number;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tpe::density_estimation::DefaultEstimatorBuilder;
use tpe::{TpeOptimizer, TpeOptimizerBuilder, parzen_estimator, range};

/// The share of the trials that counts as good. The library's 10 % would be one of the first ten.
const GOOD: f64 = 0.2;
/// Proposals that are drawn at random, before there is anything to estimate from.
const DRAWN: u32 = 10;

/// Tree-structured Parzen estimators (Bergstra et al., "Algorithms for Hyper-Parameter Optimization", NIPS 2011), one for each number,
/// on the logarithm of its value.
pub(super) struct Search {
    dimensions: Vec<Dimension>,
    random: StdRng,
    asked: u32,
}

/// A number's.
struct Dimension {
    /// Logarithms of the least and the largest value.
    ends: (f64, f64),
    optimiser: TpeOptimizer<DefaultEstimatorBuilder>,
}

impl Search {
    /// Of these numbers. The same `seed` and the same answers give the same proposals.
    pub fn new(numbers: &[Number], seed: u64) -> Search {
        let dimension = |number: &Number| {
            let ends = (libm::log(number.range.0), libm::log(number.range.1));
            // the library's range does not contain its end
            let range = range(ends.0, ends.1 + 1e-9).expect("a range begins above zero and ends above its beginning");
            let optimiser = TpeOptimizerBuilder::new().gamma(GOOD).build(parzen_estimator(), range);
            Dimension { ends, optimiser: optimiser.expect("a share, and more than no candidates") }
        };
        let dimensions = numbers.iter().map(dimension).collect();
        Search { dimensions, random: StdRng::seed_from_u64(seed), asked: 0 }
    }

    /// Values to try.
    pub fn ask(&mut self) -> Vec<f64> {
        let Search { dimensions, random, asked } = self;
        *asked += 1;
        let mut value = |dimension: &mut Dimension| {
            let (low, high) = dimension.ends;
            let log = if *asked <= DRAWN {
                low + (high - low) * random.random::<f64>()
            } else {
                dimension.optimiser.ask(random).expect("its estimators take any values")
            };
            libm::exp(log)
        };
        dimensions.iter_mut().map(&mut value).collect()
    }

    /// How good values were: less is better.
    pub fn tell(&mut self, values: &[f64], score: f64) {
        for (Dimension { ends, optimiser }, value) in self.dimensions.iter_mut().zip(values) {
            // The policy's own value may be outside the range that the user gave; the library takes it as unknown.
            let log = Some(libm::log(*value)).filter(|log| (ends.0..=ends.1).contains(log)).unwrap_or(f64::NAN);
            optimiser.tell(log, score).expect("a score is a number");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::numbers::numbers;

    const POLICY: &str =
        "[[rule]]\nname = \"r\"\nwhen = \"network.max_link_utilization < 0.5 && host.live_flows < 1000\"\n";

    #[test]
    fn it_comes_closer_to_the_best_than_chance_does() {
        let numbers = numbers(POLICY);
        let distance = |values: &[f64]| (values[0] / 0.2).ln().powi(2) + (values[1] / 3000.0).ln().powi(2);
        let mut search = Search::new(&numbers, 1);
        let mut best = [f64::INFINITY; 2];
        for trial in 0..60 {
            let values = search.ask();
            let score = distance(&values);
            search.tell(&values, score);
            let half = usize::from(trial >= 30);
            best[half] = best[half].min(score);
        }
        assert!(best[1] < best[0].min(0.01), "{best:?}");
    }

    #[test]
    fn a_value_outside_the_range_is_heard_and_never_proposed() {
        let mut numbers = numbers(POLICY);
        numbers[1].restrict("10..20").unwrap();
        let mut search = Search::new(&numbers, 1);
        search.tell(&[0.5, 1000.0], 0.0);
        for _ in 0..30 {
            let values = search.ask();
            assert!((9.99..=20.01).contains(&values[1]), "{values:?}");
            search.tell(&values, 1.0);
        }
    }
}
