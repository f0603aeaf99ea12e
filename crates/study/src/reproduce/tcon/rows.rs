//! The rows of `--json` and of the report.

use super::load::Load;
use super::measured::{Measured, Setting, settings, share};
use super::{Host, Path, Variant, paper};
use crate::table::number;
use results::Comparison;
use std::cmp::Reverse;

/// All rows: the paper's times first, by path and variant; then everything, setting by setting.
pub fn comparisons(measured: &[Measured], loads: &[Load]) -> Vec<Comparison> {
    let mut rows = Rows::default();
    for path in Path::ALL {
        for variant in Variant::ALL {
            completion_times(measured, path, variant, &mut rows);
        }
    }
    for setting in settings(measured) {
        let (path, file) = (setting.case().path.name(), setting.case().file.name());
        let is_printed = setting.case().is_printed();
        let paper = if is_printed { paper::times(path, &file) } else { None };
        times(&setting, paper, &mut rows);
        gains(&setting, paper, &mut rows);
        if is_printed {
            tails_and_buffers(&setting, path, &file, &mut rows);
        }
    }
    for load in loads {
        overhead(load, &mut rows);
    }
    rows.0
}

/// `wan-oregon/tcon`: a row for each file, the largest first; of real kernels if they were measured.
fn completion_times(measured: &[Measured], path: Path, variant: Variant, rows: &mut Rows) {
    let is_its = |one: &&Measured| one.case.is_printed() && one.case.path == path && one.case.variant == variant;
    let mut all: Vec<&Measured> = measured.iter().filter(is_its).collect();
    all.sort_by_key(|one| (Reverse(one.case.file.kilobytes), one.case.host == Host::Simulator));
    all.dedup_by_key(|one| one.case.file.kilobytes);
    for one in all {
        let file = one.case.file.name();
        let theirs = paper::times(path.name(), &file).map(|times| times[variant as usize]);
        let case = format!("{}/{}", path.name(), one.case.variant_name());
        let host = if one.case.host == Host::Kernel { "nginx and curl on real kernels" } else { "simulated" };
        rows.add(
            (&case, "completion time", "s"),
            theirs,
            one.mean(),
            &format!("{file}, mean of {}, {host}", one.seconds.len()),
        );
    }
}

fn times(setting: &Setting, paper: Option<[f64; 3]>, rows: &mut Rows) {
    for (at, one) in [setting.cubic, setting.native, setting.tcon].into_iter().enumerate() {
        let case = format!("{}/{}", setting.case().setting(), one.case.variant_name());
        let note = "the paper's path is not described; ours is calibrated on its CUBIC alone";
        rows.add((&case, "completion time, mean", "s"), paper.map(|times| times[at]), one.mean(), note);
        rows.add((&case, "completion time, p90", "s"), None, one.at(0.9), "");
    }
}

fn gains(setting: &Setting, paper: Option<[f64; 3]>, rows: &mut Rows) {
    let case = format!("{}/tcon", setting.case().setting());
    let [ours, as_paper] = setting.reductions().map_or([None; 2], |both| both.map(Some));
    let theirs = paper.map(|[cubic, _, tcon]| (1.0 - tcon / cubic) * 100.0);
    rows.add((&case, "reduction against cubic", "%"), theirs, ours, "1 - TCon / CUBIC, of means");
    let theirs = paper.map(|[cubic, _, tcon]| (cubic / tcon - 1.0) * 100.0);
    rows.add(
        (&case, "reduction, of TCon's time", "%"),
        theirs,
        as_paper,
        "CUBIC / TCon - 1, the paper's own definition",
    );
    let theirs = paper.and_then(|[cubic, bbr, tcon]| share(cubic, bbr, tcon));
    rows.add(
        (&case, "share of the gain kept", ""),
        theirs,
        setting.kept_of_gain(),
        "(CUBIC - TCon) / (CUBIC - native)",
    );
    let theirs = paper.map(|[_, bbr, tcon]| tcon / bbr);
    rows.add((&case, "mean over the native algorithm's", ""), theirs, setting.over_native(), "");
    let pairs = "of downloads adjacent in time, TCon / CUBIC";
    rows.add((&case, "median over direct", ""), None, setting.over_direct(), pairs);
}

fn tails_and_buffers(setting: &Setting, path: &str, file: &str, rows: &mut Rows) {
    let paper = paper::tail_reductions(path, file);
    for (at, one) in [setting.native, setting.tcon].into_iter().enumerate() {
        let case = format!("{}/{}", setting.case().setting(), one.case.variant_name());
        let note = format!("of {} downloads", one.seconds.len());
        // fewer downloads have no such percentile
        let ours = setting.tail_reduction(one).filter(|_| one.seconds.len() >= 1000);
        rows.add((&case, "p99.9 reduction against cubic", "%"), paper.map(|both| both[at]), ours, &note);
    }
    let case = format!("{}/tcon", setting.case().setting());
    let [median, p99, max] = setting.tcon.kept.map_or([None; 3], |kept| kept.map(Some));
    let theirs = if setting.case().file.is_large() { paper::buffered(path) } else { None };
    let note = "the flow's buffered packets upon each arrival";
    rows.add((&case, "buffered packets, median", "packets"), theirs, median, note);
    rows.add((&case, "buffered packets, p99", "packets"), None, p99, note);
    rows.add((&case, "buffered packets, most", "packets"), None, max, note);
}

/// CPU use of the live enforcer.
fn overhead(load: &Load, rows: &mut Rows) {
    let case = load.name();
    let note = format!("{} answers of 10 kB per second; between two TAPs, BBR over nginx", number(load.answered));
    rows.add((&case, "CPU", "%"), paper::cpu(load.connections), Some(load.cpu), &note);
    rows.add((&case, "time of an answer, p99", "ms"), None, load.p99_ms, "");
}

/// Rows under construction.
#[derive(Default)]
struct Rows(Vec<Comparison>);

impl Rows {
    /// Adds a row, by case, quantity and unit, if we have a number.
    fn add(&mut self, (case, quantity, unit): (&str, &str, &str), paper: Option<f64>, ours: Option<f64>, note: &str) {
        let figure = match quantity {
            "CPU" | "time of an answer, p99" => "load",
            quantity if quantity.starts_with("buffered") => "buffers",
            _ => "completion times",
        };
        self.0.extend(ours.map(|ours| Comparison {
            figure: figure.to_string(),
            case: case.to_string(),
            quantity: quantity.to_string(),
            unit: unit.to_string(),
            paper,
            ours,
            note: note.to_string(),
        }));
    }
}
