//! Pictures that a study draws of its own numbers.

/// Points that a thinned curve keeps at most.
const POINTS: usize = 300;

/// A heading, a sentence, and panels side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Such as `Figure 1: queue over time`.
    pub title: String,
    /// What it shows, in words.
    pub text: String,
    /// Panels with axes of their own.
    pub panels: Vec<Panel>,
}

/// One pair of axes with curves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// What the panel shows.
    pub title: String,
    /// Quantity and unit, such as `time (s)`.
    pub x: String,
    /// Quantity and unit.
    pub y: String,
    /// Scale of x.
    pub x_scale: Scale,
    /// Scale of y.
    pub y_scale: Scale,
    /// What is drawn, distinguished by colour and dashes.
    pub curves: Vec<Curve>,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// From zero.
    #[default]
    Linear,
    /// By powers of ten, around the values; what is not positive is not drawn.
    Log,
}

impl Panel {
    /// How times are distributed, twice on a logarithmic axis of time: the share of `what` (`messages`) that took at most so
    /// long, and on a logarithmic axis the share that took at least this long, which shows the tail. `x` is quantity and unit.
    pub fn distributions(title: &str, x: &str, what: &str, groups: &[(&str, &[f64])]) -> [Self; 2] {
        let panel = |y: String, y_scale, curve: fn(&str, &[f64]) -> Curve| Self {
            title: title.to_owned(),
            x: x.to_owned(),
            y,
            x_scale: Scale::Log,
            y_scale,
            curves: groups.iter().map(|(name, values)| curve(name, values)).collect(),
        };
        [
            panel(format!("{what} that took at most this long (%)"), Scale::Linear, Curve::distribution),
            panel(format!("{what} that took at least this long (%)"), Scale::Log, Curve::tail),
        ]
    }
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
    /// Drawn dashed: computed, not measured.
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

    /// The complementary distribution of values: the share of them, in %, that are at least x.
    pub fn tail(name: &str, values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let share = |rank: usize| (sorted.len() - rank) as f64 / sorted.len() as f64 * 100.0;
        let is_first = |rank: &usize| *rank == 0 || sorted[*rank] > sorted[*rank - 1];
        let ranks = tail_ranks(sorted.len(), POINTS).into_iter().filter(is_first);
        let points = ranks.map(|rank| (sorted[rank], share(rank))).collect();
        Self { name: name.to_owned(), points, ..Self::default() }
    }
}

/// Ranks, from 0 up, of at most about `points` of `count` sorted values. Half of them are spread evenly. The other half is
/// spread so that the number of values that remain falls by equal factors to one, because a logarithmic axis gives the
/// last ones as much room as the others.
pub(crate) fn tail_ranks(count: usize, points: usize) -> Vec<usize> {
    if count <= points {
        return (0..count).collect();
    }
    let half = points / 2;
    let evenly = (0..half).map(|point| point * (count - 1) / (half - 1));
    let remaining = |point: usize| libm::pow(count as f64, point as f64 / half as f64) as usize;
    let tail = (0..half).map(|point| count - remaining(point).clamp(1, count));
    let mut ranks: Vec<usize> = evenly.chain(tail).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
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

    #[test]
    fn a_tail_begins_at_all_and_ends_at_the_largest_value() {
        let curve = Curve::tail("x", &[3.0, 1.0, 1.0, 2.0]);
        assert_eq!(curve.points, [(1.0, 100.0), (2.0, 50.0), (3.0, 25.0)]);
        assert!(Curve::tail("x", &[]).points.is_empty());
        // Of 100,000 values the last ten are all there: a log axis gives them a fifth of the picture.
        let many: Vec<f64> = (0..100_000).map(f64::from).collect();
        let points = Curve::tail("x", &many).points;
        assert!(points.len() <= POINTS, "{}", points.len());
        let last: Vec<f64> = points[points.len() - 3..].iter().map(|(x, _)| *x).collect();
        assert_eq!(last, [99_997.0, 99_998.0, 99_999.0]);
        assert_eq!(points[0], (0.0, 100.0));
    }

    #[test]
    fn distributions_show_body_and_tail() {
        let [body, tail] = Panel::distributions("t", "time (ms)", "flows", &[("a", &[1.0, 10.0])]);
        assert_eq!((body.x_scale, body.y_scale), (Scale::Log, Scale::Linear));
        assert_eq!((tail.x_scale, tail.y_scale), (Scale::Log, Scale::Log));
        assert_eq!(body.curves[0].points, [(1.0, 50.0), (10.0, 100.0)]);
        assert_eq!(tail.curves[0].points, [(1.0, 100.0), (10.0, 50.0)]);
    }
}
