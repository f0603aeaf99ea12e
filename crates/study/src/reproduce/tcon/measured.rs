//! The study's measurements of a run.

use super::Case;
use crate::statistics::{mean, quantile};
use results::RunResults;

/// One run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Completion times, in the order of the downloads.
    pub seconds: Vec<f64>,
    /// Downloads that started and did not end.
    pub unfinished: usize,
    /// Whether a download started before the previous one ended.
    pub overlap: bool,
    /// Packets of a flow that the enforcer buffered: median, 99th percentile, maximum.
    pub kept: Option<[f64; 3]>,
    /// Retransmissions of the server that it absorbed.
    pub absorbed: f64,
}

impl Run {
    /// Measures a run.
    pub fn of(run: &RunResults) -> Run {
        let seconds: Vec<f64> = run.flows.iter().filter_map(|flow| Some(flow.fct_ns()? as f64 / 1e9)).collect();
        let extra = |name: &str| run.summary.extra.get(&format!("enforcer.{name}")).copied();
        let kept = [extra("kept_median"), extra("kept_p99"), extra("kept_max")];
        let is_late = |pair: &[results::FlowRow]| pair[0].end_ns.is_none_or(|end| end > pair[1].start_ns);
        Run {
            unfinished: run.flows.len() - seconds.len(),
            overlap: run.flows.windows(2).any(is_late),
            seconds,
            kept: match kept {
                [Some(median), Some(p99), Some(max)] => Some([median, p99, max]),
                _ => None,
            },
            absorbed: extra("absorbed").unwrap_or_default(),
        }
    }
}

/// A case, over all its seeds.
#[derive(Clone, Debug)]
pub struct Measured {
    pub case: Case,
    /// Completion times, in the order of the downloads; equal positions of a setting's variants were adjacent in time.
    pub seconds: Vec<f64>,
    pub unfinished: usize,
    pub overlap: bool,
    /// The first seed's.
    pub kept: Option<[f64; 3]>,
    pub absorbed: f64,
}

impl Measured {
    /// Combines the runs of a case.
    pub fn of(case: Case, runs: &[Run]) -> Measured {
        Measured {
            case,
            seconds: runs.iter().flat_map(|run| run.seconds.iter().copied()).collect(),
            unfinished: runs.iter().map(|run| run.unfinished).sum(),
            overlap: runs.iter().any(|run| run.overlap),
            kept: runs.first().and_then(|run| run.kept),
            absorbed: runs.iter().map(|run| run.absorbed).sum(),
        }
    }

    /// The mean completion time, seconds.
    pub fn mean(&self) -> Option<f64> {
        mean(&self.seconds)
    }

    /// The completion time that this share of downloads does not exceed, by nearest rank, seconds.
    pub fn at(&self, share: f64) -> Option<f64> {
        quantile(&self.seconds, share)
    }
}

/// The three variants of a setting.
pub struct Setting<'a> {
    pub cubic: &'a Measured,
    pub native: &'a Measured,
    pub tcon: &'a Measured,
}

/// The settings, in order.
pub fn settings(measured: &[Measured]) -> impl Iterator<Item = Setting<'_>> {
    measured.as_chunks::<3>().0.iter().map(|[cubic, native, tcon]| Setting { cubic, native, tcon })
}

impl Setting<'_> {
    /// The key that the three share.
    pub fn case(&self) -> Case {
        self.cubic.case
    }

    /// Share of the native algorithm's gain in mean completion time that is kept when it is enforced.
    pub fn kept_of_gain(&self) -> Option<f64> {
        share(self.cubic.mean()?, self.native.mean()?, self.tcon.mean()?)
    }

    /// The mean relative to the native algorithm's.
    pub fn over_native(&self) -> Option<f64> {
        Some(self.tcon.mean()? / self.native.mean()?)
    }

    /// Relative to the same server's direct downloads: the median over pairs adjacent in time.
    pub fn over_direct(&self) -> Option<f64> {
        let pairs = self.tcon.seconds.iter().zip(&self.cubic.seconds);
        quantile(&pairs.map(|(tcon, cubic)| tcon / cubic).collect::<Vec<_>>(), 0.5)
    }

    /// The reduction of the mean against CUBIC's, and the same relative to the shorter one, percent.
    pub fn reductions(&self) -> Option<[f64; 2]> {
        let (cubic, tcon) = (self.cubic.mean()?, self.tcon.mean()?);
        Some([(1.0 - tcon / cubic) * 100.0, (cubic / tcon - 1.0) * 100.0])
    }

    /// The reduction of a variant's 99.9th percentile against CUBIC's, percent.
    pub fn tail_reduction(&self, of: &Measured) -> Option<f64> {
        Some((1.0 - of.at(0.999)? / self.cubic.at(0.999)?) * 100.0)
    }
}

/// Share of the gain from `cubic` to `bbr` that `tcon` keeps; `None` if the gain is less than 1 %.
pub fn share(cubic: f64, bbr: f64, tcon: f64) -> Option<f64> {
    (bbr < 0.99 * cubic).then(|| (cubic - tcon) / (cubic - bbr))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::tcon::{File, Path};

    fn measured(seconds: &[f64]) -> Measured {
        Measured::of(Case::of(Path::Lan, 0, File::MAIN), &[Run { seconds: seconds.to_vec(), ..Run::default() }])
    }

    #[test]
    fn means_percentiles_and_shares_are_the_usual_ones() {
        let all = [measured(&[4.0, 1.0, 3.0]), measured(&[2.0]), measured(&[])];
        assert_eq!((all[0].mean(), all[0].at(0.5), all[0].at(1.0)), (Some(8.0 / 3.0), Some(3.0), Some(4.0)));
        assert_eq!((all[2].mean(), all[2].at(0.999)), (None, None));
        let setting = settings(&all).next().unwrap();
        assert_eq!(setting.kept_of_gain(), None, "a variant is missing");
        let all = [measured(&[4.0, 1.0, 2.0]), measured(&[]), measured(&[4.4, 1.0, 2.1])];
        assert_eq!(settings(&all).next().unwrap().over_direct(), Some(1.05), "the median of 1.1, 1 and 1.05");
        assert_eq!(share(10.0, 8.0, 8.5), Some(0.75));
        assert_eq!(share(10.0, 9.95, 9.95), None, "no gain to keep");
    }
}
