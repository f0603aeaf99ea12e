//! What every process publishes of itself, under the names that Prometheus's own libraries use.

use crate::page::{Metric, Page, Unit};
use std::fs;
use std::time::Duration;

/// Ticks of a second in `/proc` (USER_HZ, which is 100 on every architecture that this runs on).
const TICKS: f64 = 100.0;

static BUILD: Metric =
    Metric::gauge("opentcp_build_info", Unit::Count, "Always 1; the label is the program's version.").by(&["version"]);
static CPU: Metric = Metric::counter("process_cpu", "CPU time that the process has used.").in_unit(Unit::Seconds);
static MEMORY: Metric =
    Metric::gauge("process_resident_memory", Unit::Bytes, "Memory of the process that is resident.");
static STARTED: Metric =
    Metric::gauge("process_start_time", Unit::Seconds, "When the process started, since the Unix epoch.");
static FILES: Metric = Metric::gauge("process_open_fds", Unit::Count, "File descriptors that the process has open.");

static AGE: Metric = Metric::gauge(
    "opentcp_metrics_age",
    Unit::Seconds,
    "How long ago the process has renewed its own metrics: one whose loop stands still no longer does.",
);

/// The metrics of every process.
pub static COMMON: [&Metric; 6] = [&AGE, &BUILD, &CPU, &MEMORY, &STARTED, &FILES];

/// Adds them, read now; the page is this old.
pub fn add(page: &mut Page, age: Duration) {
    page.set(&AGE, &[], age.as_secs_f64());
    page.set(&BUILD, &[env!("CARGO_PKG_VERSION")], 1.0);
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let stat = read("/proc/self/stat");
    // the name, in parentheses, may hold anything
    let fields: Vec<f64> = stat
        .rsplit(')')
        .next()
        .into_iter()
        .flat_map(str::split_whitespace)
        .map(|word| word.parse().unwrap_or(f64::NAN))
        .collect();
    // proc(5): the state is field 3, and first here; utime is field 14, stime 15, starttime 22
    let [user, system] = [11, 12].map(|at| fields.get(at).copied().unwrap_or(f64::NAN));
    page.set(&CPU, &[], (user + system) / TICKS);
    let kib = number(&read("/proc/self/status"), "VmRSS:");
    page.set_if(&MEMORY, kib.map(|kib| kib * 1024.0));
    let booted = number(&read("/proc/stat"), "btime");
    page.set_if(&STARTED, booted.zip(fields.get(19)).map(|(booted, ticks)| booted + ticks / TICKS));
    page.set_if(&FILES, fs::read_dir("/proc/self/fd").ok().map(|folder| folder.count() as f64));
}

/// The number that follows a word at the beginning of a line.
fn number(text: &str, word: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_process_knows_its_memory_and_its_start() {
        let mut page = Page::default();
        add(&mut page, Duration::from_secs(3));
        let text = Arc::new(page).text();
        for metric in COMMON {
            let name = metric.full_name();
            let line = text.lines().find(|line| line.starts_with(&name)).unwrap_or_else(|| panic!("{name}: {text}"));
            let value: f64 = line.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a number");
            assert!(value >= 0.0, "{line}");
        }
        assert!(text.contains("process_cpu_seconds_total "), "{text}");
    }
}
