//! A scenario before it runs: its network, and who sends what to whom, as a picture in a page, and as text.
//!
//! Hosts are on the right, a row each (or a row for all hosts of a switch, where there are many); switches are to the left of
//! them, a column for each level; beside the hosts each traffic entry has a lane, in which senders and receivers are marked.
#![forbid(unsafe_code)]

mod layout;
mod map;
mod page;
mod picture;
mod places;
mod text;
mod words;

use layout::Layout;
pub use map::{Cable, Map, Spot};
use net::{NetError, Topology};
use scenario::Scenario;
use words::{Ends, Links};

/// A scenario to show.
pub struct Sketch<'a> {
    scenario: &'a Scenario,
    topology: Topology,
    layout: Layout,
    links: Vec<Links>,
    ends: Vec<Ends>,
}

impl<'a> Sketch<'a> {
    /// Of this scenario.
    ///
    /// # Errors
    /// What the network model refuses.
    pub fn of(scenario: &'a Scenario) -> Result<Sketch<'a>, NetError> {
        let topology = plan::topology(scenario)?;
        let layout = Layout::of(&topology);
        let links = words::links(scenario, &topology);
        let ends = scenario.traffic.iter().map(|traffic| Ends::of(&traffic.kind, &topology)).collect();
        Ok(Sketch { scenario, topology, layout, links, ends })
    }

    /// `16 hosts, 20 switches, 48 cables`.
    pub fn size(&self) -> String {
        let (hosts, nodes) = (self.topology.n_hosts(), self.topology.nodes().len());
        let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        format!(
            "{}, {}, {}",
            count(hosts, "host", "hosts"),
            count(nodes - hosts, "switch", "switches"),
            count(self.topology.links().len() / 2, "cable", "cables")
        )
    }

    /// A self-contained HTML page.
    pub fn page(&self) -> String {
        page::page(self)
    }

    /// The places of nodes, and the cables between them; `None` for a network that is too large for a picture.
    pub fn map(&self) -> Option<Map> {
        map::map(&self.topology, &self.layout)
    }

    /// Lines for a terminal.
    pub fn text(&self) -> String {
        text::text(self)
    }
}
