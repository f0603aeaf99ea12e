//! The picture: SVG, in the page's colours, 400 units wide.

use crate::Sketch;
use crate::layout::between_switches;
use crate::places::{Columns, Places, TOP};
use crate::words::range;
use net::{LinkId, NodeId};
use plan::find_links;
use std::collections::BTreeSet;
use std::fmt::Write as _;

const WIDTH: f64 = 400.0;
/// Middles of the switches farthest from the hosts, and of those that hosts are at.
const LEFT: f64 = 30.0;
const RIGHT: f64 = 196.0;
/// Where hosts' names begin.
const NAMES: f64 = 250.0;
/// Of a lane of the traffic.
const LANE: f64 = 15.0;
/// Lanes that are drawn; the list below the picture has all entries.
const LANES: usize = 6;
/// Of a letter, for boxes around names.
const LETTER: f64 = 6.2;
/// Letters of a name that are shown.
const LETTERS: usize = 9;
/// Up to so many switches a picture is clearer than the numbers.
pub const SWITCHES_MAX: usize = 400;

/// The picture, unless the network is too large for one.
pub fn picture(sketch: &Sketch<'_>) -> Option<String> {
    if sketch.topology.nodes().len() - sketch.topology.n_hosts() > SWITCHES_MAX {
        return None;
    }
    let drawing = Drawing::of(sketch);
    let height = drawing.places.height + TOP;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\">",
        escaped(&format!("{}: {}", sketch.scenario.name, sketch.size()))
    );
    drawing.cables(&mut svg);
    drawing.hosts(&mut svg);
    drawing.switches(&mut svg);
    drawing.lanes(&mut svg);
    svg.push_str("</svg>");
    Some(svg)
}

/// With the places of nodes.
struct Drawing<'a> {
    sketch: &'a Sketch<'a>,
    places: Places,
    failing: BTreeSet<LinkId>,
}

impl<'a> Drawing<'a> {
    fn of(sketch: &'a Sketch<'a>) -> Drawing<'a> {
        let places = Places::of(&sketch.topology, &sketch.layout, Columns { left: LEFT, right: RIGHT });
        Drawing { sketch, places, failing: failing(sketch) }
    }

    fn cables(&self, svg: &mut String) {
        let topology = &self.sketch.topology;
        for (id, [from, to]) in between_switches(topology) {
            let class = if self.failing.contains(&id) || self.failing.contains(&id.reverse()) {
                "cable fails"
            } else {
                "cable"
            };
            let ((x1, y1), (x2, y2)) = (self.places.switch(from), self.places.switch(to));
            if (x1 - x2).abs() < 1.0 {
                let out = x1 - 46.0;
                write!(
                    svg,
                    "<path class=\"{class}\" d=\"M{x1:.0} {y1:.1}C{out:.0} {y1:.1} {out:.0} {y2:.1} {x2:.0} {y2:.1}\"/>"
                )
            } else {
                write!(svg, "<path class=\"{class}\" d=\"M{x1:.0} {y1:.1}L{x2:.0} {y2:.1}\"/>")
            }
            .expect("writing to a string");
        }
    }

    fn hosts(&self, svg: &mut String) {
        let topology = &self.sketch.topology;
        for (i, row) in self.sketch.layout.rows.iter().enumerate() {
            let (x, y) = self.places.switch(row.switch);
            let at = self.places.row(i);
            let nic = row.hosts.first().map(|host| topology.nic(*host));
            let fails = nic.is_some_and(|nic| self.failing.contains(&nic) || self.failing.contains(&nic.reverse()));
            let class = if fails { "cable fails" } else { "cable" };
            let name = range(topology, &row.hosts);
            write!(
                svg,
                "<path class=\"{class}\" d=\"M{x:.0} {y:.1}L{:.0} {at:.1}\"/>\
                 <text x=\"{NAMES}\" y=\"{:.1}\"{}>{}</text>",
                NAMES - 5.0,
                at + 4.0,
                self.mark(&row.hosts),
                escaped(&shortened(&name))
            )
            .expect("writing to a string");
        }
    }

    fn switches(&self, svg: &mut String) {
        for switch in self.sketch.layout.levels.iter().flatten() {
            let (x, y) = self.places.switch(*switch);
            let name = shortened(&self.sketch.topology.node(*switch).name);
            let width = (name.chars().count() as f64 * LETTER + 10.0).max(26.0);
            write!(
                svg,
                "<rect class=\"switch{}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"16\" rx=\"3\"/>\
                 <text class=\"mid\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                if self.is_enforced(*switch) { " enforces" } else { "" },
                x - width / 2.0,
                y - 8.0,
                y + 4.0,
                escaped(&name)
            )
            .expect("writing to a string");
        }
    }

    fn is_enforced(&self, node: NodeId) -> bool {
        let name = &self.sketch.topology.node(node).name;
        self.sketch.scenario.enforcer.iter().any(|enforcer| enforcer.at == *name)
    }

    fn mark(&self, hosts: &[NodeId]) -> &'static str {
        if hosts.iter().any(|host| self.is_enforced(*host)) { " class=\"enforces\"" } else { "" }
    }

    /// A dot sends, an arrowhead receives, a dot with a ring does both; a line joins those of an entry.
    fn lanes(&self, svg: &mut String) {
        let rows = &self.sketch.layout.rows;
        let letters = rows.iter().map(|row| shortened(&range(&self.sketch.topology, &row.hosts)).chars().count()).max();
        let first = NAMES + letters.unwrap_or(0) as f64 * LETTER + 14.0;
        for (lane, ends) in self.sketch.ends.iter().enumerate().take(LANES) {
            let (x, colour) = (first + lane as f64 * LANE, lane % 10);
            let any = |row: usize, of: &[bool]| rows[row].hosts.iter().any(|host| of[host.index()]);
            let marked: Vec<(f64, bool, bool)> = (0..rows.len())
                .map(|row| (self.places.row(row), any(row, &ends.sends), any(row, &ends.receives)))
                .filter(|(_, sends, receives)| *sends || *receives)
                .collect();
            let (Some((top, ..)), Some((bottom, ..))) = (marked.first(), marked.last()) else { continue };
            write!(svg, "<path class=\"lane s{colour}\" d=\"M{x:.1} {top:.1}V{bottom:.1}\"/>")
                .expect("writing to a string");
            for (y, sends, receives) in marked {
                match (sends, receives) {
                    (true, false) => write!(svg, "<circle class=\"f{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>"),
                    (false, _) => write!(svg, "<path class=\"f{colour}\" d=\"M{:.1} {y:.1}l9 -5v10z\"/>", x - 6.0),
                    (true, true) => write!(
                        svg,
                        "<circle class=\"both s{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"/>\
                         <circle class=\"f{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.4\"/>"
                    ),
                }
                .expect("writing to a string");
            }
        }
    }
}

/// Links that fail or lose packets.
fn failing(sketch: &Sketch<'_>) -> BTreeSet<LinkId> {
    let network = &sketch.scenario.network;
    let named = network.failure.iter().map(|failure| &failure.link).chain(network.loss.iter().map(|loss| &loss.link));
    named.flat_map(|link| find_links(&sketch.topology, link)).collect()
}

/// A name as the picture has room for it.
pub fn shortened(name: &str) -> String {
    if name.chars().count() <= LETTERS {
        return name.to_string();
    }
    name.chars().take(LETTERS - 1).chain(['…']).collect()
}

/// Escapes text for HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
