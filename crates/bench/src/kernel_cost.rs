//! Cost in the kernel of an algorithm that is a BPF program. Needs root and a kernel that takes such programs;
//! elsewhere these cases say why they are skipped.

use crate::Row;
use kernel::cost::{Plan, hook_times, throughput};
use kernel::{Kernel, NAME_PREFIX};
use std::time::Duration;

const AGAINST_KERNELS: &str = "kernel: ot_cubic, of cubic's";
const HOOKS: &str = "kernel: ns in hooks, ";

/// Long enough for the CPUs to limit the windows, short enough that both runs of a pair have the same conditions.
const PLAN: Plan = Plan { pairs: 21, run: Duration::from_millis(800) };

pub fn cases() -> Vec<String> {
    let hooks = kernel::builtins().map(|name| format!("{HOOKS}{name}"));
    std::iter::once(AGAINST_KERNELS.to_string()).chain(hooks).collect()
}

/// The rows of a case, none where it is skipped; `None` if it is not one of these.
pub fn run(name: &str) -> Option<Vec<Row>> {
    if !cases().iter().any(|case| case == name) {
        return None;
    }
    let measured =
        Kernel::probe().map_err(|missing| missing.to_string()).and_then(|kernel| match name.strip_prefix(HOOKS) {
            Some(algorithm) => hooks(&kernel, algorithm),
            None => against_kernels(&kernel),
        });
    Some(measured.unwrap_or_else(|reason| {
        eprintln!("{name}: skipped: {reason}");
        Vec::new()
    }))
}

/// Ours compared with the kernel's own, in alternating runs over a cable that limits neither: medians of the ratios.
fn against_kernels(kernel: &Kernel) -> Result<Vec<Row>, String> {
    let ours = kernel.load("cubic").map_err(|error| error.to_string())?;
    let measured = throughput(ours.name(), "cubic", PLAN).map_err(|error| error.to_string())?;
    let row = |what: &str, value: f64, unit: &str| Row::new(format!("{AGAINST_KERNELS}: {what}"), value, unit);
    let best = measured.pairs_mbit.iter().map(|(ours, _)| *ours).fold(0.0, f64::max);
    Ok(vec![
        row("goodput", 100.0 * measured.median_ratio(), "%"),
        row("CPU time", 100.0 * measured.median_cpu_ratio(), "%"),
        row("best run", best, "Mbit/s"),
    ])
}

/// Mean time of a call of each hook that a long connection calls.
fn hooks(kernel: &Kernel, name: &str) -> Result<Vec<Row>, String> {
    let loaded = kernel.load(name).map_err(|error| error.to_string())?;
    let times = hook_times(&loaded, PLAN.run).map_err(|error| error.to_string())?;
    let row = |hook: &kernel::cost::HookTime| {
        Row::new(format!("{NAME_PREFIX}{name}: {} ({} calls)", hook.program, hook.calls), hook.mean_ns, "ns")
    };
    Ok(times.iter().map(row).collect())
}
