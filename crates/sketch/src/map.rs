//! The network as places and cables, for a view that moves.

use crate::layout::{Layout, between_switches};
use crate::picture::{SWITCHES_MAX, shortened};
use crate::places::{Columns, Places, TOP};
use crate::words::range;
use net::{LinkId, NodeId, Topology};
use serde::Serialize;

const WIDTH: f64 = 640.0;
const COLUMNS: Columns = Columns { left: 60.0, right: 330.0 };
/// Where hosts are.
const HOSTS: f64 = 520.0;
/// With two switches, hosts on both sides: the hosts of the first and the second, and the switches.
const SIDES: [f64; 2] = [110.0, 530.0];
const BETWEEN: [f64; 2] = [230.0, 410.0];

/// The places of a network's nodes, and its cables.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Map {
    /// Size, in the units of all places.
    pub width: f64,
    /// See `width`.
    pub height: f64,
    /// Switches and hosts.
    pub spots: Vec<Spot>,
    /// What connects them.
    pub cables: Vec<Cable>,
}

/// A switch, a host, or all hosts of a switch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spot {
    /// As in the scenario, shortened; of several hosts the first and the last.
    pub name: String,
    /// Its middle.
    pub x: f64,
    /// See `x`.
    pub y: f64,
    /// How many hosts it is; 0: a switch.
    pub hosts: u32,
    /// Its name is to the left of it.
    pub left: bool,
}

/// A cable, or all cables between a switch and its hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cable {
    /// Numbers of the spots at its ends.
    pub ends: [u32; 2],
    /// Links from the first end to the second.
    pub there: Vec<u32>,
    /// Links from the second end to the first.
    pub back: Vec<u32>,
}

/// The map of a network, unless it is too large for a picture.
pub fn map(topology: &Topology, layout: &Layout) -> Option<Map> {
    let switches = topology.nodes().len() - topology.n_hosts();
    if switches > SWITCHES_MAX {
        return None;
    }
    let mut map = Map { width: WIDTH, height: 0.0, spots: Vec::new(), cables: Vec::new() };
    let places = Places::of(topology, layout, COLUMNS);
    let sides = match layout.levels.as_slice() {
        [only] if only.len() == 2 => Some([only[0], only[1]]),
        _ => None,
    };
    map.height = match sides {
        Some(sides) => map.draw_sides(topology, layout, &places, sides),
        None => map.draw_levels(topology, layout, &places),
    };
    Some(map)
}

impl Map {
    /// Hosts on the right, switches to the left of them; the height.
    fn draw_levels(&mut self, topology: &Topology, layout: &Layout, places: &Places) -> f64 {
        let mut spot_of = vec![0; topology.nodes().len()];
        for &switch in layout.levels.iter().flatten() {
            spot_of[switch.index()] = self.add_switch(topology, switch, places.switch(switch));
        }
        for (i, row) in layout.rows.iter().enumerate() {
            let spot = self.add_hosts(topology, &row.hosts, (HOSTS, places.row(i)), false);
            self.add_edge_cable(topology, spot_of[row.switch.index()], spot, &row.hosts);
        }
        self.add_core_cables(topology, &spot_of);
        places.height + TOP
    }

    /// Two switches in the middle, the hosts of each beside it; the height.
    fn draw_sides(&mut self, topology: &Topology, layout: &Layout, places: &Places, sides: [NodeId; 2]) -> f64 {
        let rows = |switch: NodeId| layout.rows.iter().filter(move |row| row.switch == switch);
        let most = sides.map(|switch| rows(switch).count()).into_iter().max().unwrap_or(0).max(1);
        let step = (places.height - TOP) / layout.rows.len().max(1) as f64 * 1.6;
        let height = TOP + step * most as f64;
        let mut spot_of = vec![0; topology.nodes().len()];
        for (side, switch) in sides.into_iter().enumerate() {
            spot_of[switch.index()] = self.add_switch(topology, switch, (BETWEEN[side], f64::midpoint(TOP, height)));
            let own = rows(switch).count();
            for (i, row) in rows(switch).enumerate() {
                let y = TOP + (height - TOP) * (i as f64 + 0.5) / own as f64;
                let spot = self.add_hosts(topology, &row.hosts, (SIDES[side], y), side == 0);
                self.add_edge_cable(topology, spot_of[switch.index()], spot, &row.hosts);
            }
        }
        self.add_core_cables(topology, &spot_of);
        height + TOP
    }

    fn add_switch(&mut self, topology: &Topology, switch: NodeId, (x, y): (f64, f64)) -> u32 {
        let name = shortened(&topology.node(switch).name);
        self.spots.push(Spot { name, x, y, hosts: 0, left: false });
        self.spots.len() as u32 - 1
    }

    fn add_hosts(&mut self, topology: &Topology, hosts: &[NodeId], (x, y): (f64, f64), left: bool) -> u32 {
        let name = shortened(&range(topology, hosts));
        self.spots.push(Spot { name, x, y, hosts: hosts.len() as u32, left });
        self.spots.len() as u32 - 1
    }

    /// From a switch to its hosts.
    fn add_edge_cable(&mut self, topology: &Topology, switch: u32, spot: u32, hosts: &[NodeId]) {
        let back: Vec<u32> = hosts.iter().map(|host| topology.nic(*host).0).collect();
        let there = back.iter().map(|link| LinkId(*link).reverse().0).collect();
        self.cables.push(Cable { ends: [switch, spot], there, back });
    }

    /// Between switches.
    fn add_core_cables(&mut self, topology: &Topology, spot_of: &[u32]) {
        for (link, [from, to]) in between_switches(topology) {
            let ends = [spot_of[from.index()], spot_of[to.index()]];
            let (there, back) = (link.0, link.reverse().0);
            // a switch may have cables to several servers of another
            match self.cables.iter_mut().find(|cable| cable.ends == ends) {
                Some(cable) => {
                    cable.there.push(there);
                    cable.back.push(back);
                }
                None => self.cables.push(Cable { ends, there: vec![there], back: vec![back] }),
            }
        }
    }
}
