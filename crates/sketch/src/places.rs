//! Places of switches and rows of hosts in a picture.

use crate::layout::Layout;
use net::{NodeId, Topology};

/// Of a row of hosts, and of one among few.
const ROW: f64 = 22.0;
const ROW_OF_FEW: f64 = 32.0;
const FEW: usize = 8;
/// Margin.
pub const TOP: f64 = 14.0;

/// Middles of the switches farthest from the hosts, and of those that hosts are at.
#[derive(Clone, Copy)]
pub struct Columns {
    /// The farthest.
    pub left: f64,
    /// Those with hosts.
    pub right: f64,
}

/// Places of switches and rows.
pub struct Places {
    /// Of switches; hosts have rows.
    switches: Vec<(f64, f64)>,
    rows: usize,
    /// Of the whole, without the lower margin.
    pub height: f64,
}

impl Places {
    /// Of this layout.
    pub fn of(topology: &Topology, layout: &Layout, columns: Columns) -> Places {
        let mut switches = vec![(0.0, 0.0); topology.nodes().len()];
        let widest = layout.levels.iter().map(Vec::len).max().unwrap_or(1).max(layout.rows.len());
        let height = TOP + if widest <= FEW { ROW_OF_FEW } else { ROW } * widest as f64;
        let step = height - TOP;
        for (i, level) in layout.levels.iter().enumerate() {
            let x = match layout.levels.len() {
                1 => columns.right / 2.0,
                levels => columns.right - (columns.right - columns.left) * i as f64 / (levels - 1) as f64,
            };
            for (j, switch) in level.iter().enumerate() {
                switches[switch.index()] = (x, TOP + step * (j as f64 + 0.5) / level.len() as f64);
            }
        }
        let mut places = Places { switches, rows: layout.rows.len(), height };
        places.centre_on_hosts(layout);
        places
    }

    /// Switches with hosts stand in the middle of theirs.
    fn centre_on_hosts(&mut self, layout: &Layout) {
        for &switch in layout.levels.first().into_iter().flatten() {
            let own: Vec<usize> = (0..self.rows).filter(|row| layout.rows[*row].switch == switch).collect();
            if let (Some(first), Some(last)) = (own.first(), own.last()) {
                self.switches[switch.index()].1 = f64::midpoint(self.row(*first), self.row(*last));
            }
        }
    }

    /// The middle of a switch.
    pub fn switch(&self, switch: NodeId) -> (f64, f64) {
        self.switches[switch.index()]
    }

    /// The middle of a row.
    pub fn row(&self, row: usize) -> f64 {
        let share = (self.height - TOP) / self.rows.max(1) as f64;
        TOP + share * (row as f64 + 0.5)
    }
}
