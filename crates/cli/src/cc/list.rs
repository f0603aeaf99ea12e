//! `opentcp cc list`: the algorithms of this program and of the running kernel.

use crate::failure::Failure;
use crate::terminal::{print, print_json};
use congestion::Algorithm;
use kernel::{NAME_PREFIX, Origin, Running};
use serde::Serialize;
use study::table::Table;

/// Prints the list.
///
/// # Errors
/// Writing failed.
pub fn list(json: bool) -> Result<(), Failure> {
    // Without /proc there is still this program's own list.
    let running = kernel::running().unwrap_or_default();
    let algorithms = entries(&running);
    if json {
        let kernel = running.into_iter().map(|Running { name, origin, sockets }| InKernel {
            name,
            origin: origin.words(),
            sockets,
        });
        print_json(&Listing { algorithms, kernel: kernel.collect() })
    } else {
        print(&listing(algorithms, &running))
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Listing {
    algorithms: Vec<Entry>,
    kernel: Vec<InKernel>,
}

/// One algorithm.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    title: &'static str,
    category: &'static str,
    environment: &'static str,
    measures: Vec<&'static str>,
    needs_ecn: bool,
    reference: &'static str,
    /// The kernel's name of it when loaded.
    kernel_name: String,
    loaded: bool,
    /// In this network namespace; `null` if the kernel does not report it.
    sockets: Option<usize>,
}

/// An algorithm in the running kernel, whatever its origin.
#[derive(Serialize)]
struct InKernel {
    name: String,
    origin: &'static str,
    sockets: Option<usize>,
}

fn entries(running: &[Running]) -> Vec<Entry> {
    let entry = |algorithm: &'static Algorithm| {
        let kernel_name = format!("{NAME_PREFIX}{}", algorithm.name());
        let there = running.iter().find(|running| running.name == kernel_name);
        Entry {
            name: algorithm.name(),
            title: algorithm.title(),
            category: algorithm.category().words(),
            environment: algorithm.environment(),
            measures: measures(algorithm),
            needs_ecn: algorithm.needs_ecn(),
            reference: algorithm.reference(),
            loaded: there.is_some_and(|running| running.origin != Origin::Unloaded),
            sockets: there.map_or(Some(0), |running| running.sockets),
            kernel_name,
        }
    };
    Algorithm::builtins().iter().map(entry).collect()
}

fn listing(entries: Vec<Entry>, running: &[Running]) -> String {
    let mut table = Table::new([
        "name",
        "title",
        "category",
        "congestion is",
        "needs ECN",
        "in the kernel",
        "sockets",
        "environment",
        "reference",
    ]);
    for entry in entries {
        table.row(vec![
            entry.name.to_string(),
            entry.title.to_string(),
            entry.category.to_string(),
            entry.measures.join(", "),
            if entry.needs_ecn { "yes" } else { "no" }.to_string(),
            if entry.loaded { format!("loaded as {}", entry.kernel_name) } else { "no".to_string() },
            count(entry.sockets),
            entry.environment.to_string(),
            entry.reference.to_string(),
        ]);
    }
    format!("{}{}", table.render(), others(running))
}

/// The running kernel's other algorithms.
fn others(running: &[Running]) -> String {
    let ours: Vec<String> = kernel::builtins().map(|name| format!("{NAME_PREFIX}{name}")).collect();
    let mut table = Table::new(["in the kernel", "from", "sockets"]);
    for other in running.iter().filter(|running| !ours.contains(&running.name) || running.origin == Origin::Unloaded) {
        table.row(vec![other.name.clone(), other.origin.words().to_string(), count(other.sockets)]);
    }
    if table.is_empty() { String::new() } else { format!("\n{}", table.render()) }
}

fn count(sockets: Option<usize>) -> String {
    sockets.map_or_else(|| "–".to_string(), |sockets| sockets.to_string())
}

fn measures(algorithm: &Algorithm) -> Vec<&'static str> {
    let all = [
        (algorithm.measures_loss(), "loss"),
        (algorithm.measures_delay(), "delay"),
        (algorithm.measures_ecn(), "ECN"),
        (algorithm.measures_model(), "model"),
    ];
    all.into_iter().filter(|(measured, _)| *measured).map(|(_, name)| name).collect()
}
