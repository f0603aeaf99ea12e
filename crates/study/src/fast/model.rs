//! The scale model of a scenario.

use super::check::{check, refusal};
use crate::failure::Failure;
use scenario::{Network, Routing, Scenario, Topology};

/// Hosts that a model has at most.
const HOSTS_MAX: u64 = 512;
/// How many times smaller than the network a model is at least: else the network may as well be simulated.
const SMALLER: u64 = 4;

/// `scenario` on a model of its network.
///
/// # Errors
/// What it asks for that a model cannot say, or a network that has no smaller model.
pub fn model_of(scenario: &Scenario) -> Result<Scenario, Failure> {
    let (hosts, smaller) = match scenario.network.topology {
        // its flows meet as in the large tree (`net::Routing::ScaledFatTree`)
        Topology::FatTree { k } => {
            (fat_tree_hosts(k), smaller_fat_tree(k).map(|small| (small, Routing::ScaledFatTree { k })))
        }
        // a leaf has as many hosts and ways up as in the network
        Topology::LeafSpine { leaves, spines, hosts_per_leaf } => {
            let hosts = u64::from(leaves) * u64::from(hosts_per_leaf);
            let leaves = hosts_max(hosts) / u64::from(hosts_per_leaf);
            let leaves = u32::try_from(leaves).unwrap_or(u32::MAX);
            let small = Topology::LeafSpine { leaves, spines, hosts_per_leaf };
            (hosts, (leaves >= 2).then_some((small, Routing::Ecmp)))
        }
        _ => {
            return Err(refusal(
                "`network.topology` other than `fat_tree` and `leaf_spine`: others have no smaller network of the same kind",
            ));
        }
    };
    // after the topology: others than these have another routing by default
    check(scenario)?;
    let Some((topology, routing)) = smaller else {
        return Err(Failure::Input(format!(
            "--fast has no model of this network of {hosts} hosts: a model is at least {SMALLER} times smaller. Run it without --fast"
        )));
    };
    Ok(Scenario { network: Network { topology, routing, ..scenario.network.clone() }, ..scenario.clone() })
}

fn hosts_max(hosts: u64) -> u64 {
    HOSTS_MAX.min(hosts / SMALLER)
}

fn fat_tree_hosts(k: u32) -> u64 {
    u64::from(k).pow(3) / 4
}

/// The largest fat tree that is a model of one with `k` ports a switch; with four ports there are two ways up.
fn smaller_fat_tree(k: u32) -> Option<Topology> {
    let most = hosts_max(fat_tree_hosts(k));
    let k = (4..k).step_by(2).take_while(|k| fat_tree_hosts(*k) <= most).last()?;
    Some(Topology::FatTree { k })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_a_quarter_of_the_hosts_and_at_most_512() {
        let model = |k| match smaller_fat_tree(k) {
            Some(Topology::FatTree { k }) => k,
            _ => 0,
        };
        // 54 hosts have no model: that of 16 would be one third. 128: 16; 1024: 250; 4394 and 101306: 432
        assert_eq!([6, 8, 16, 26, 74].map(model), [0, 4, 10, 12, 12]);
    }
}
