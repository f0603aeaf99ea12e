//! The `[policy]` table.

use super::Reader;
use crate::model::{Control, HostLabels, Topology};
use document::Source;
use document::tree::{Entry, Node, Value};
use policy::{Policy, TEXT_MAX, fits};
use std::collections::BTreeMap;
use units::Time;

/// Minimum period: decisions stay rare compared with packets.
const PERIOD_MIN: Time = Time::from_ms(1);

/// The file of a network without an Oracle.
const NO_POLICY: &str = "none";

impl Reader<'_, '_> {
    /// The `[policy]` table: reads the file that it names. None if that is [`NO_POLICY`], which a sweep can compare with others.
    pub(super) fn control(&self, node: &Node, end: Time, topology: Option<&Topology>) -> Option<Control> {
        let section = self.section(node, "`[policy]`")?;
        let file = section.require("file", |r, n| match &n.value {
            Value::Text(text) if text == NO_POLICY => Some(None),
            _ => r.file(n).map(Some),
        });
        let period = section.get("period", |r, n| {
            let rule = format!("at least {PERIOD_MIN}, at most the run's {end}");
            r.within(n, |time: &Time| *time >= PERIOD_MIN && *time <= end, &rule)
        });
        let label = section.get("label", |r, n| r.each(n, |r, n| r.host_labels(n, topology?))).unwrap_or_default();
        section.finish();
        let file = file??;
        let source = Source { name: file.file.written.clone(), text: file.text.clone() };
        let index = self.context.source(source);
        match Policy::read((&file.file.written, &file.text), index, self.context.known.policy) {
            Ok(policy) => {
                let scale = period.map_or(1.0, |period| period.as_secs_f64() / policy.period.as_secs_f64());
                let policy = match period {
                    Some(period) => policy.with_period(period),
                    None => policy,
                };
                Some(Control { file, period, label, day: Time::from_secs_f64(86_400.0 * scale), policy })
            }
            Err(problems) => {
                self.add_problems(problems);
                None
            }
        }
    }
    fn host_labels(&self, node: &Node, topology: &Topology) -> Option<HostLabels> {
        let section = self.section(node, "an entry of `label`")?;
        let hosts = section.require("hosts", |r, n| r.each(n, |r, n| r.host_pattern(n, topology)));
        let set = section.require("set", |r, n| {
            let Value::Table(entries) = &n.value else {
                return r.expected(n, "labels are a table, such as `{ role = \"storage\" }`");
            };
            entries.iter().map(|entry| r.host_label(entry)).collect::<Option<BTreeMap<_, _>>>()
        });
        section.finish();
        Some(HostLabels { hosts: hosts?, set: set? })
    }

    fn host_pattern(&self, node: &Node, topology: &Topology) -> Option<String> {
        let pattern = self.text(node)?;
        if (0..topology.hosts()).any(|host| fits(pattern, &topology.host_name(host))) {
            return Some(pattern.to_string());
        }
        self.unknown_node(node, pattern, topology, true)
    }

    fn host_label(&self, entry: &Entry) -> Option<(String, String)> {
        let value = self.text(&entry.value)?;
        if entry.key.len().max(value.len()) <= TEXT_MAX {
            return Some((entry.key.clone(), value.to_string()));
        }
        self.problem(&entry.key_at, format!("a label or its value has more than {TEXT_MAX} bytes"), None)
    }
}
