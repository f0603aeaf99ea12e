//! The search: an optimiser of the library proposes values, and hears how good they were.

use super::numbers::Number;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tpe::density_estimation::DefaultEstimatorBuilder;
use tpe::{TpeOptimizer, TpeOptimizerBuilder, parzen_estimator, range};

/// The share of the trials that counts as good. The library's 10 % would be none of the first ten.
const GOOD: f64 = 0.2;

/// Tree-structured Parzen estimators (Bergstra et al., "Algorithms for Hyper-Parameter Optimization", NIPS 2011), one for each number,
/// on the logarithm of its value.
pub(super) struct Search {
    dimensions: Vec<TpeOptimizer<DefaultEstimatorBuilder>>,
    random: StdRng,
}

impl Search {
    /// Of these numbers. The same `seed` and the same answers give the same proposals.
    pub fn new(numbers: &[Number], seed: u64) -> Search {
        let dimension = |number: &Number| {
            let (low, high) = number.range;
            // the library's range has no end of its own
            let range =
                range(low.ln(), high.ln() + 1e-9).expect("a range begins above zero and ends above its beginning");
            TpeOptimizerBuilder::new()
                .gamma(GOOD)
                .build(parzen_estimator(), range)
                .expect("a share, and more than no candidates")
        };
        Search { dimensions: numbers.iter().map(dimension).collect(), random: StdRng::seed_from_u64(seed) }
    }

    /// Values to try.
    pub fn ask(&mut self) -> Vec<f64> {
        let random = &mut self.random;
        let of = |dimension: &mut TpeOptimizer<_>| dimension.ask(random).expect("its estimators take any values");
        self.dimensions.iter_mut().map(of).map(f64::exp).collect()
    }

    /// How good values were: less is better.
    pub fn tell(&mut self, values: &[f64], score: f64) {
        for (dimension, value) in self.dimensions.iter_mut().zip(values) {
            dimension.tell(value.ln(), score).expect("a number");
        }
    }
}
