//! How far scale models were from whole simulations, where that was measured.
//!
//! `data/fast.csv` is what `opentcp reproduce fast --full` writes. A figure of another network has the error of the largest measured one
//! of its shape that is not larger, with the same algorithm, at the loads around its own; the worse of them counts. Where there is none, or
//! where the network differs in anything else from the measured ones, the error is not measured.

use crate::failure::Failure;
use crate::known::parse_scenario;
use results::{ModelError, Summary};
use scenario::{Algorithm, Arrivals, Disk, Scenario, Topology, Traffic, TrafficKind};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The name of the measured scenario.
pub const SCENARIO: &str = "scenarios/fleet.toml";
/// The measured scenario: the network's links and queues, hosts' TCP, and the traffic.
pub const SCENARIO_TEXT: &str = include_str!("../../../../scenarios/fleet.toml");
const SHIPPED: &str = include_str!("../../data/fast.csv");
const HEADER: &str = "shape,hosts,algorithm,load,class,whole_p50,model_p50,whole_p99,model_p99";

/// A size class of one measured network.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// `fat-tree` or `leaf-spine`.
    pub shape: String,
    /// Hosts.
    pub hosts: u64,
    /// The flows' algorithm.
    pub algorithm: String,
    /// Percent of the hosts' links.
    pub load: f64,
    /// Name of the size class; `all` is all flows.
    pub class: String,
    /// Median of the whole simulation and of the model.
    pub p50: (f64, f64),
    /// The same of the 99th percentile.
    pub p99: (f64, f64),
}

/// Measured errors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// In the order in which they were measured.
    pub figures: Vec<Figure>,
}

impl Table {
    /// What comes with this version.
    pub fn shipped() -> Table {
        Table::parse(SHIPPED).expect("the table that is shipped is tested")
    }

    /// Reads a table.
    ///
    /// # Errors
    /// The first line that is not one of it.
    pub fn parse(text: &str) -> Result<Table, String> {
        let mut lines = text.lines();
        if lines.next() != Some(HEADER) {
            return Err(format!("line 1: the header is {HEADER}"));
        }
        let figure = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            let [shape, hosts, algorithm, load, class, numbers @ ..] = cells.as_slice() else { return None };
            let numbers: Vec<f64> = numbers.iter().map_while(|cell| cell.parse().ok()).collect();
            let [whole_p50, model_p50, whole_p99, model_p99] = numbers.as_slice() else { return None };
            Some(Figure {
                shape: (*shape).to_string(),
                hosts: hosts.parse().ok()?,
                algorithm: (*algorithm).to_string(),
                load: load.parse().ok()?,
                class: (*class).to_string(),
                p50: (*whole_p50, *model_p50),
                p99: (*whole_p99, *model_p99),
            })
        };
        let numbered =
            lines.enumerate().map(|(i, line)| figure(line).ok_or_else(|| format!("line {}: `{line}`", i + 2)));
        Ok(Table { figures: numbered.collect::<Result<_, _>>()? })
    }

    /// The text that [`Table::parse`] reads.
    pub fn text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for figure in &self.figures {
            let Figure { shape, hosts, algorithm, load, class, p50, p99 } = figure;
            let ([p50, model_p50], [p99, model_p99]) = (<[f64; 2]>::from(*p50), <[f64; 2]>::from(*p99));
            let case = format_args!("{shape},{hosts},{algorithm},{load},{class}");
            let _ = writeln!(text, "{case},{p50:.3},{model_p50:.3},{p99:.3},{model_p99:.3}");
        }
        text
    }

    /// Adds to each figure of `summary` the error that was measured.
    pub fn judge(&self, scenario: &Scenario, summary: &mut Summary) {
        let Some(case) = Case::of(scenario) else { return };
        let slowdown = summary.slowdown.iter_mut();
        for of in slowdown.flat_map(|slowdown| slowdown.classes.iter_mut().chain([&mut slowdown.all])) {
            let class = if of.class.is_empty() { "all" } else { &of.class };
            let error = self.error(&case, class);
            of.model.iter_mut().for_each(|model| model.error = error);
        }
    }

    fn error(&self, case: &Case, class: &str) -> Option<ModelError> {
        let alike = |figure: &&Figure| {
            figure.shape == case.shape
                && figure.algorithm == case.algorithm
                && figure.class == class
                && figure.hosts <= case.hosts
        };
        let sizes: BTreeSet<u64> = self.figures.iter().filter(alike).map(|figure| figure.hosts).collect();
        sizes.into_iter().rev().find_map(|hosts| {
            let measured = || self.figures.iter().filter(alike).filter(|figure| figure.hosts == hosts);
            let below = measured().map(|figure| figure.load).filter(|load| *load <= case.load).reduce(f64::max)?;
            let above = measured().map(|figure| figure.load).filter(|load| *load >= case.load).reduce(f64::min)?;
            let around =
                || measured().filter(|figure| [below, above].iter().any(|load| load.total_cmp(&figure.load).is_eq()));
            let worst = |of: fn(&Figure) -> (f64, f64)| {
                let errors = around().map(|figure| of(figure).1 / of(figure).0 - 1.0);
                errors.reduce(|a, b| if a.abs() >= b.abs() { a } else { b })
            };
            Some(ModelError { p50: worst(|figure| figure.p50)?, p99: worst(|figure| figure.p99)? })
        })
    }
}

/// By what errors are looked up.
pub struct Case {
    /// See [`Figure`].
    pub shape: &'static str,
    /// See [`Figure`].
    pub hosts: u64,
    /// See [`Figure`].
    pub algorithm: String,
    /// See [`Figure`].
    pub load: f64,
}

impl Case {
    /// Of a scenario that differs from the measured ones in these alone; else `None`.
    pub fn of(scenario: &Scenario) -> Option<Case> {
        let measured = measured().ok()?;
        let entry = &scenario.traffic[0];
        let TrafficKind::Poisson { arrivals: Arrivals::Load(load), .. } = &entry.kind else { return None };
        let Algorithm::BuiltIn(algorithm) = entry.cc.as_ref().unwrap_or(&scenario.tcp.cc) else { return None };
        let (shape, hosts) = shape(scenario)?;
        (core(scenario) == core(&measured)).then_some(Case {
            shape,
            hosts,
            algorithm: algorithm.clone(),
            load: load.fraction() * 100.0,
        })
    }
}

/// The scenario that errors are measured with.
pub fn measured() -> Result<Scenario, Failure> {
    let mut runs =
        parse_scenario(SCENARIO, SCENARIO_TEXT, &["tcp.cc=dctcp".to_string()], &Disk { base: PathBuf::new() })?;
    Ok(runs.swap_remove(0).scenario)
}

/// The name of a shape that may have been measured, without a bottleneck between the hosts' links, and its hosts.
fn shape(scenario: &Scenario) -> Option<(&'static str, u64)> {
    match scenario.network.topology {
        Topology::FatTree { k } => Some(("fat-tree", u64::from(k).pow(3) / 4)),
        Topology::LeafSpine { leaves, spines, hosts_per_leaf } if spines == hosts_per_leaf => {
            Some(("leaf-spine", u64::from(leaves) * u64::from(hosts_per_leaf)))
        }
        _ => None,
    }
}

/// What has to be the same for a measured error to apply: all but the size, the shape, the algorithm and the load.
fn core(scenario: &Scenario) -> (Scenario, bool) {
    let network = &scenario.network;
    let uniform = network
        .tier
        .values()
        .all(|tier| (tier.rate, tier.delay, tier.queue) == (network.rate, network.delay, network.queue));
    let arrivals = Arrivals::FlowsPerSecond(0.0);
    let of_entry = |entry: &Traffic| {
        let kind = match &entry.kind {
            TrafficKind::Poisson { sizes, .. } => {
                TrafficKind::Poisson { arrivals, sizes: sizes.clone(), from: None, to: None, flows: None }
            }
            other => other.clone(),
        };
        Traffic { cc: None, name: String::new(), label: String::new(), kind, ..entry.clone() }
    };
    let core = Scenario {
        name: String::new(),
        title: None,
        seed: 0,
        network: scenario::Network {
            topology: Topology::Star { hosts: 2 },
            tier: std::collections::BTreeMap::new(),
            ..network.clone()
        },
        tcp: scenario::Tcp { cc: Algorithm::BuiltIn(String::new()), ..scenario.tcp.clone() },
        traffic: scenario.traffic.iter().map(of_entry).collect(),
        ..scenario.clone()
    };
    (core, uniform)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let rows = [
            "fat-tree,1024,dctcp,30,all,2,2.1,10,10.5",
            "fat-tree,1024,dctcp,50,all,2,1.9,10,12",
            "fat-tree,4394,dctcp,50,all,2,2,10,10.1",
        ];
        Table::parse(&format!("{HEADER}\n{}\n", rows.join("\n"))).expect("it is a table")
    }

    fn error(hosts: u64, algorithm: &str, load: f64) -> Option<String> {
        let case = Case { shape: "fat-tree", hosts, algorithm: algorithm.to_string(), load };
        table().error(&case, "all").map(|error| format!("{:+.2} {:+.2}", error.p50, error.p99))
    }

    #[test]
    fn the_shipped_table_is_one_and_its_text_is_read_again() {
        let shipped = Table::shipped();
        assert_eq!(Table::parse(&shipped.text()), Ok(shipped));
    }

    #[test]
    fn an_error_is_the_largest_measured_networks_or_the_worse_of_two_loads() {
        assert_eq!(error(101_306, "dctcp", 50.0).as_deref(), Some("+0.00 +0.01"));
        assert_eq!(error(2_000, "dctcp", 50.0).as_deref(), Some("-0.05 +0.20"));
        // the larger network was measured at one load alone
        assert_eq!(error(101_306, "dctcp", 40.0).as_deref(), Some("+0.05 +0.20"));
    }

    #[test]
    fn outside_the_table_nothing_is_measured() {
        assert_eq!(error(101_306, "dctcp", 60.0), None);
        assert_eq!(error(101_306, "cubic", 50.0), None);
        assert_eq!(error(432, "dctcp", 50.0), None);
    }

    #[test]
    fn another_network_than_the_measured_one_has_no_error() {
        let scenario = measured().expect("it is a scenario");
        assert!(Case::of(&scenario).is_some());
        let mut slower = scenario.clone();
        slower.network.delay = units::Time::from_us(9);
        let mut other = scenario;
        other.duration = units::Time::from_ms(50);
        assert!(Case::of(&slower).is_none() && Case::of(&other).is_none());
    }
}
