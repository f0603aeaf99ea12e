//! CPU use of the machine during a run, by this program and others.

use std::collections::BTreeMap;
use std::fs;
use std::process;
use std::time::Instant;

/// Linux's parent of its own threads.
const KTHREADD: &str = "2";

/// CPU use between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuUse {
    /// Share of all CPUs that was not idle, interrupts and stolen time included; 0 to 1.
    pub busy: f64,
    /// Share of all CPUs that the machine's own host stole, 0 to 1.
    pub stolen: f64,
    /// CPUs that other programs used, on average.
    pub others_ran: f64,
    /// Largest share of the time for which one thread of another program was ready and did not run: a program that
    /// waits that long wants a CPU all the time, and this run had to share it. 0 to 1.
    pub others_waited: f64,
}

/// A reading of the machine's counters.
#[derive(Clone, Debug)]
pub struct Look {
    at: Instant,
    ticks: Ticks,
    /// By thread of other programs.
    others: BTreeMap<u32, Thread>,
}

/// Clock ticks of all CPUs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    all: u64,
    idle: u64,
    stolen: u64,
}

/// How long a thread ran, and how long it was ready and did not run, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Thread {
    ran: u64,
    waited: u64,
}

impl Look {
    /// Now; a counter that /proc lacks is 0.
    pub fn now() -> Look {
        let ticks = ticks(&fs::read_to_string("/proc/stat").unwrap_or_default());
        Look { at: Instant::now(), ticks, others: others() }
    }

    /// The difference to `before`. A program that ended meanwhile is not counted.
    pub fn since(&self, before: &Look) -> CpuUse {
        let elapsed = (self.at - before.at).as_nanos().max(1) as f64;
        let (now, then) = (self.ticks, before.ticks);
        let share = |ticks: u64| ticks as f64 / (now.all - then.all).max(1) as f64;
        let (idle, stolen) = (share(now.idle.saturating_sub(then.idle)), share(now.stolen.saturating_sub(then.stolen)));
        let mut used = CpuUse { busy: (1.0 - idle).clamp(0.0, 1.0), stolen, ..CpuUse::default() };
        for (id, thread) in &self.others {
            let earlier = before.others.get(id).copied().unwrap_or_default();
            used.others_ran += thread.ran.saturating_sub(earlier.ran) as f64 / elapsed;
            let waited = thread.waited.saturating_sub(earlier.waited) as f64 / elapsed;
            used.others_waited = used.others_waited.max(waited);
        }
        used
    }
}

/// Of /proc/stat.
fn ticks(stat: &str) -> Ticks {
    // user nice system idle iowait irq softirq steal
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let stolen = ticks.get(7).copied().unwrap_or(0);
    Ticks { all: ticks.iter().take(8).sum(), idle: ticks.iter().skip(3).take(2).sum(), stolen }
}

/// The threads of all programs except this one and the kernel.
fn others() -> BTreeMap<u32, Thread> {
    let number = |entry: &fs::DirEntry| entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
    let folders = |path: &str| fs::read_dir(path).into_iter().flatten().flatten();
    let mut threads = BTreeMap::new();
    for process in folders("/proc").filter_map(|entry| number(&entry)).filter(|process| *process != process::id()) {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // the state and the parent follow the name, which may hold any character
        if stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)) == Some(KTHREADD) {
            continue;
        }
        for task in folders(&format!("/proc/{process}/task")) {
            let schedstat = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            if let Some(id) = number(&task) {
                threads.insert(id, thread(&schedstat));
            }
        }
    }
    threads
}

/// Of "ran waited how-often".
fn thread(schedstat: &str) -> Thread {
    let mut numbers = schedstat.split_whitespace().map(|word| word.parse().unwrap_or(0));
    Thread { ran: numbers.next().unwrap_or(0), waited: numbers.next().unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn look(at: Instant, stat: &str, threads: &[(u32, &str)]) -> Look {
        Look {
            at,
            ticks: ticks(stat),
            others: threads.iter().map(|(id, schedstat)| (*id, thread(schedstat))).collect(),
        }
    }

    #[test]
    fn cpu_time_of_others_and_their_waits_are_read_from_their_threads() {
        let begin = Instant::now();
        let end = begin + Duration::from_secs(2);
        let before = look(begin, "cpu  100 0 100 800 0 0 0 0\n", &[(7, "5000000000 1000 3"), (8, "1 1 1")]);
        let after =
            look(end, "cpu  160 0 110 820 0 0 0 10\n", &[(7, "6000000000 1000001000 9"), (9, "500000000 200000000 2")]);
        // of 100 ticks 20 were idle and 10 stolen; 7 ran and waited a second each, 8 has ended, 9 is new
        let CpuUse { busy, stolen, others_ran, others_waited } = after.since(&before);
        assert!((busy - 0.8).abs() < 1e-9 && (stolen - 0.1).abs() < 1e-9, "{busy} {stolen}");
        assert!((others_ran - 0.75).abs() < 1e-9 && (others_waited - 0.5).abs() < 1e-9, "{others_ran} {others_waited}");
    }

    #[test]
    fn the_machine_tells() {
        let look = Look::now();
        assert!(look.ticks.all > 0 && !look.others.contains_key(&process::id()));
    }
}
