//! The `[measure]` table.

use super::Reader;
use crate::model::{Measure, Queues, Topology};
use document::tree::{Node, Value};
use units::Time;

/// Minimum interval between samples: below it a table of samples is a table of packets.
const INTERVAL_MIN: Time = Time::from_us(1);

impl Reader<'_, '_> {
    /// The `[measure]` table, or the defaults; links are checked if the topology could be read.
    pub(super) fn measure(&self, node: Option<&Node>, end: Time, topology: Option<&Topology>) -> Option<Measure> {
        let section = self.section_or_empty(node, "`[measure]`")?;
        let interval = |r: &Self, n: &Node| {
            let rule = format!("at least {INTERVAL_MIN}, at most the run's {end}");
            r.within(n, |time: &Time| *time >= INTERVAL_MIN && *time <= end, &rule)
        };
        let warmup = section.get("warmup", |r, n| {
            r.within(n, |time: &Time| *time < end, &format!("it must end before the run does, at {end} (`duration`)"))
        });
        let measure = Measure {
            warmup: warmup.unwrap_or(Time::ZERO),
            links: section.get("links", interval),
            cwnd: section.get("cwnd", interval),
            queues: section.get("queues", |r, n| r.queues(n, topology)).unwrap_or(Queues::Links(Vec::new())),
            queue_sample: section.get("queue_sample", interval).unwrap_or(Time::from_ms(10).min(end)),
            packet_delay: section.get("packet_delay", |r, n| r.boolean(n)).unwrap_or(false),
            messages: section.get("messages", |r, n| r.boolean(n)).unwrap_or(false),
        };
        section.finish();
        Some(measure)
    }

    fn queues(&self, node: &Node, topology: Option<&Topology>) -> Option<Queues> {
        match &node.value {
            Value::Text(text) if text == "all" => Some(Queues::All),
            Value::Array(_) => self.each(node, |r, n| r.link(n, topology?, false)).map(Queues::Links),
            _ => self.problem(&node.at, "this is \"all\" or a list of links", Some("such as [\"c1->a1\"]".to_string())),
        }
    }
}
