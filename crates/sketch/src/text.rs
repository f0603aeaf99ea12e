//! The sketch as text for a terminal.

use crate::Sketch;
use crate::layout::{between_switches, hosts_of};
use crate::words::{range, remarks, sentence};
use net::NodeId;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Up to so many switches with hosts have a line each.
const LINES: usize = 24;

/// All lines.
pub fn text(sketch: &Sketch<'_>) -> String {
    let scenario = sketch.scenario;
    let mut text = String::new();
    let mut line = |words: String| writeln!(text, "{}", words.trim_end()).expect("writing to a string");
    let title = scenario.title.as_ref().map(|title| format!(": {title}")).unwrap_or_default();
    line(format!("{}{title}", scenario.name));
    line(format!("{}; {} long, seed {}", sketch.size(), scenario.duration, scenario.seed));
    line(String::new());
    network(sketch).into_iter().for_each(&mut line);
    line(String::new());
    for kind in &sketch.links {
        line(format!("{:<14} {:>5} × {}, {}, {}", kind.tier, kind.cables, kind.rate, kind.delay, kind.queue));
    }
    line(String::new());
    for traffic in &scenario.traffic {
        line(format!("{:<14} {}", traffic.name, sentence(traffic, scenario)));
    }
    remarks(scenario).into_iter().for_each(line);
    text
}

/// Switches from the top, each level in a line; those with hosts have a line each, with the neighbours above and below.
fn network(sketch: &Sketch<'_>) -> Vec<String> {
    let topology = &sketch.topology;
    let mut lines = Vec::new();
    for level in sketch.layout.levels.iter().skip(1).rev() {
        lines.push(range(topology, level));
    }
    let lowest = sketch.layout.levels.first().map(Vec::as_slice).unwrap_or_default();
    for switch in lowest.iter().take(LINES) {
        let others: Vec<NodeId> = neighbours(sketch, *switch);
        let up = if others.is_empty() { String::new() } else { format!("  to {}", range(topology, &others)) };
        let hosts = hosts_of(topology, *switch);
        lines.push(format!("{:>6} ── {:<14}{up}", topology.node(*switch).name, range(topology, &hosts)));
    }
    if lowest.len() > LINES {
        lines.push(format!("       and {} more", lowest.len() - LINES));
    }
    lines
}

/// The switches that a switch, or one of its servers that forward, has cables to.
fn neighbours(sketch: &Sketch<'_>, switch: NodeId) -> Vec<NodeId> {
    let topology = &sketch.topology;
    if !topology.servers_forward() {
        let ends = topology.out_links(switch).iter().map(|id| topology.link(*id).to);
        return ends.filter(|node| node.index() >= topology.n_hosts()).collect();
    }
    let cables = between_switches(topology).into_iter();
    let others = cables.filter_map(|(_, ends)| match ends {
        [from, to] if from == switch => Some(to),
        [from, to] if to == switch => Some(from),
        _ => None,
    });
    let others: BTreeSet<NodeId> = others.collect();
    others.into_iter().collect()
}
