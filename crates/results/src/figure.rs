//! Pictures that a study draws of its own numbers.

/// Points that a thinned curve keeps at most.
const POINTS: usize = 300;

/// A heading, a sentence, and panels side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Such as `Figure 1: queue over time`.
    pub title: String,
    /// What is to be seen, in words.
    pub text: String,
    /// Panels with axes of their own.
    pub panels: Vec<Panel>,
}

/// One pair of axes, both from zero, with curves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// What the panel shows.
    pub title: String,
    /// Quantity and unit, such as `time (s)`.
    pub x: String,
    /// Quantity and unit.
    pub y: String,
    /// What is drawn, told apart by colour and dashes.
    pub curves: Vec<Curve>,
}

/// One curve of a panel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// For the legend. An algorithm's name has that algorithm's colour.
    pub name: String,
    /// (x, y), x rising.
    pub points: Vec<(f64, f64)>,
    /// (x, lowest, highest): drawn as a band behind the curve; may be empty.
    pub band: Vec<(f64, f64, f64)>,
    /// Drawn dashed: what is computed and not measured.
    pub dashed: bool,
}

impl Curve {
    /// A curve of many samples: the means of some hundred slices of equal count, and their lowest and highest values as a
    /// band. Few samples stay as they are.
    pub fn thinned(name: &str, samples: &[(f64, f64)]) -> Self {
        let curve = Self { name: name.to_owned(), ..Self::default() };
        if samples.len() <= POINTS {
            return Self { points: samples.to_vec(), ..curve };
        }
        let slices = || samples.chunks(samples.len().div_ceil(POINTS));
        let y = |slice: &[(f64, f64)], f: fn(f64, f64) -> f64| slice.iter().map(|(_, y)| *y).reduce(f).unwrap_or(0.0);
        Self {
            points: slices().map(|slice| (slice[0].0, y(slice, |a, b| a + b) / slice.len() as f64)).collect(),
            band: slices().map(|slice| (slice[0].0, y(slice, f64::min), y(slice, f64::max))).collect(),
            ..curve
        }
    }

    /// The distribution of values: the share of them, in %, that are at most x.
    pub fn distribution(name: &str, values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let share = |rank: usize| (rank + 1) as f64 / sorted.len() as f64 * 100.0;
        let differs = |rank: &usize| sorted.get(rank + 1).is_none_or(|next| *next > sorted[*rank]);
        let mut points: Vec<(f64, f64)> = (0..sorted.len()).filter(differs).map(|r| (sorted[r], share(r))).collect();
        let step = points.len().div_ceil(POINTS).max(1);
        let last = points.len().saturating_sub(1);
        let mut index = 0;
        points.retain(|_| {
            index += 1;
            (index - 1) % step == 0 || index - 1 == last
        });
        Self { name: name.to_owned(), points, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_curves_keep_means_and_extremes() {
        let samples: Vec<(f64, f64)> = (0..3000).map(|i| (f64::from(i), f64::from(i % 10))).collect();
        let curve = Curve::thinned("x", &samples);
        assert_eq!(curve.points.len(), 300);
        assert!(curve.points.iter().all(|(_, y)| (y - 4.5).abs() < 1e-9));
        assert!(curve.band.iter().all(|(_, low, high)| *low < 1e-9 && (high - 9.0).abs() < 1e-9));
        assert!(Curve::thinned("x", &samples[..5]).band.is_empty());
        assert!(Curve::thinned("x", &[]).points.is_empty());
    }

    #[test]
    fn a_distribution_ends_at_all_and_steps_at_values() {
        let curve = Curve::distribution("x", &[3.0, 1.0, 1.0, 2.0]);
        assert_eq!(curve.points, [(1.0, 50.0), (2.0, 75.0), (3.0, 100.0)]);
        let many: Vec<f64> = (0..10_000).map(f64::from).collect();
        let points = Curve::distribution("x", &many).points;
        assert!(points.len() <= POINTS + 1 && points.last() == Some(&(9999.0, 100.0)), "{}", points.len());
    }
}
