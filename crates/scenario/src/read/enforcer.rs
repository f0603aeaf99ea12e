//! The `[enforcer]` table, and the list `[[enforcer]]`.

use super::Reader;
use crate::model::{Enforcer, EnforcerRule, Hosts, Network, Treatment};
use document::tree::{Node, Value};
use policy::WINDOW_TOTAL;
use std::cell::RefCell;
use std::collections::BTreeSet;
use units::Bytes;

/// Room for one packet of the largest MTU.
const BUFFER_MIN: Bytes = Bytes::new(64 << 10);
const BUFFER_MAX: Bytes = Bytes::new(1 << 40);
/// A table of so many flows takes half a gigabyte.
const FLOWS_MAX: u32 = 1 << 20;

impl Reader<'_, '_> {
    /// The `[enforcer]` table, or the list of them.
    pub(super) fn enforcers(&self, node: &Node, network: Option<&Network>) -> Option<Vec<Enforcer>> {
        if !matches!(node.value, Value::Array(_)) {
            return self.enforcer(node, network).map(|enforcer| vec![enforcer]);
        }
        let places = RefCell::new(BTreeSet::new());
        self.each(node, |r, n| {
            let enforcer = r.enforcer(n, network)?;
            if places.borrow_mut().insert(enforcer.at.clone()) {
                return Some(enforcer);
            }
            let help = Some("put the rules of both into one `[[enforcer]]`".to_string());
            r.problem(&n.at, format!("two enforcers are at `{}`", enforcer.at), help)
        })
    }

    fn enforcer(&self, node: &Node, network: Option<&Network>) -> Option<Enforcer> {
        let section = self.section(node, "`[enforcer]`")?;
        let at = section.require("at", |r, n| {
            let name = r.text(n)?;
            let topology = &network?.topology;
            if topology.has_node(name) { Some(name.to_string()) } else { r.unknown_node(n, name, topology, false) }
        });
        let buffer = section.get("buffer", |r, n| {
            let rule = format!("from {BUFFER_MIN} to {BUFFER_MAX}");
            r.within(n, |bytes: &Bytes| (BUFFER_MIN..=BUFFER_MAX).contains(bytes), &rule)
        });
        let flows = section.get("flows", |r, n| r.count(n, 1, FLOWS_MAX));
        let rule = section.require("rule", |r, n| r.each(n, |r, n| r.enforcer_rule(n, network)));
        section.finish();
        let (at, rule) = (at?, rule?);
        if rule.is_empty() {
            return section.problem("rule", "an enforcer without a rule enforces nothing", None);
        }
        let network = network?;
        if !network.failure.is_empty() && network.topology.host_index(&at).is_none() {
            let help = "put the enforcer at a host, which all its flows pass".to_string();
            let message = "when links fail, flows could be rerouted around an enforcer at a switch";
            return section.problem("at", message, Some(help));
        }
        if network.topology.servers_forward() || !network.balancing.is_by_flow() {
            let message = "an enforcer sees all of a flow only where hosts do not forward and a flow has one path";
            let help = "take another topology, or `balancing = \"flow\"`".to_string();
            return section.problem("at", message, Some(help));
        }
        let (buffer, flows) = (buffer.unwrap_or(Bytes::new(1 << 30)), flows.unwrap_or(FLOWS_MAX));
        Some(Enforcer { at, buffer, flows, rule })
    }

    fn enforcer_rule(&self, node: &Node, network: Option<&Network>) -> Option<EnforcerRule> {
        let section = self.section(node, "a rule of the enforcer")?;
        let cc = section.get("cc", Self::algorithm);
        let echo = section.get("echo", |r, n| r.values.boolean(n));
        let echoes = section.has("echo") && echo != Some(false);
        let hosts = |r: &Self, n: &Node| r.hosts_or_prefix(n, network?);
        let mark = section.get("mark", Self::percentage);
        let (src, dst) = (section.get("src", hosts), section.get("dst", hosts));
        let port = section.get("port", |r, n| r.count(n, 1, u32::from(u16::MAX)));
        let (least, most) = (Bytes::new(WINDOW_TOTAL.0), Bytes::new(WINDOW_TOTAL.1));
        let within = format!("from {least} to {most}");
        let window_total =
            section.get("window_total", |r, n| r.within(n, |bytes: &Bytes| (least..=most).contains(bytes), &within));
        section.finish();
        if [section.has("cc"), echoes, section.has("mark")].into_iter().filter(|given| *given).count() != 1 {
            let help = Some("give a rule one of them, and another rule the other".to_string());
            return section.problem("cc", "a rule has one of `cc`, `echo = true` and `mark`", help);
        }
        let treatment = match (echoes, section.has("mark")) {
            (true, _) => echo.map(|_| Treatment::Echo)?,
            (_, true) => Treatment::Mark(mark?),
            _ => Treatment::Enforce(cc?),
        };
        if treatment.cc().is_none() && window_total.is_some() {
            let message = "a total of windows binds flows that are enforced";
            return section.problem("window_total", message, Some("give the rule a `cc`".to_string()));
        }
        Some(EnforcerRule { treatment, src, dst, port: port.map(|port| port as u16), window_total })
    }

    fn hosts_or_prefix(&self, node: &Node, network: &Network) -> Option<Hosts> {
        let text = self.text(node)?;
        if text.contains('/') {
            return match text.parse() {
                Ok(prefix) => Some(Hosts::Prefix(prefix)),
                Err(error) => self.problem(&node.at, format!("{error}"), None),
            };
        }
        if network.topology.host_index(text).is_some() {
            return Some(Hosts::Named(text.to_string()));
        }
        self.unknown_node(node, text, &network.topology, true)
    }
}
