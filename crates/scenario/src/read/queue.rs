//! Queues of ports.

use super::{Reader, Section, aqm};
use crate::model::{Limit, Queue, Red};
use document::tree::Node;
use units::Bytes;

/// Most packets that a queue may hold; with [`super::network::RATE_MIN`] and the largest packet, the last one still
/// leaves before the clock ends.
pub(super) const PACKETS_MAX: u32 = 1_000_000;
/// The same in bytes.
const BYTES_MAX: Bytes = Bytes::new(1_000_000_000);

impl Reader<'_, '_> {
    /// A queue; `frame_bytes` is the largest packet as links count it, which must fit.
    pub(super) fn queue(&self, node: &Node, frame_bytes: u64) -> Option<Queue> {
        let entry =
            self.variant(node, "queue", &["drop_tail", "threshold_ecn", "red", "pie", "codel", "fq_codel", "dualpi2"])?;
        let section = self.section(&entry.value, &format!("queue `{}`", entry.key))?;
        let queue = match entry.key.as_str() {
            "drop_tail" => limit(&section, frame_bytes).map(Queue::DropTail),
            "threshold_ecn" => threshold(&section, frame_bytes),
            "red" => red(&section),
            other => aqm::queue(other, &section, frame_bytes),
        };
        section.finish();
        queue
    }
}

fn limit(section: &Section, frame_bytes: u64) -> Option<Limit> {
    section.exclusive("packets", "bytes");
    let packets = section.get("packets", |r, n| r.count(n, 1, PACKETS_MAX).map(Limit::Packets));
    let rule = format!("at least one full packet ({frame_bytes} B), {BYTES_MAX} at most");
    let bytes = section.get("bytes", |r, n| {
        r.within(n, |bytes: &Bytes| bytes.get() >= frame_bytes && *bytes <= BYTES_MAX, &rule).map(Limit::Bytes)
    });
    if !section.has("packets") && !section.has("bytes") {
        let help = Some("say `packets = 100` or `bytes = \"150 kB\"`".to_string());
        return section.reader.problem(&section.at, "this queue has no limit", help);
    }
    packets.or(bytes)
}

fn threshold(section: &Section, frame_bytes: u64) -> Option<Queue> {
    section.exclusive("mark_packets", "mark_bytes");
    let packets = section.get("mark_packets", |r, n| r.count(n, 0, PACKETS_MAX).map(Limit::Packets));
    let bytes = section.get("mark_bytes", |r, n| r.quantity(n).map(Limit::Bytes));
    let limit = limit(section, frame_bytes);
    if !section.has("mark_packets") && !section.has("mark_bytes") {
        let help = Some("say `mark_packets = 20` or `mark_bytes = \"30 kB\"`".to_string());
        return section.reader.problem(&section.at, "this queue has no threshold", help);
    }
    let (mark, limit) = (packets.or(bytes)?, limit?);
    let (key, mark_count, limit_count) = match (mark, limit) {
        (Limit::Packets(mark), Limit::Packets(limit)) => ("mark_packets", u64::from(mark), u64::from(limit)),
        (Limit::Bytes(mark), Limit::Bytes(limit)) => ("mark_bytes", mark.get(), limit.get()),
        (Limit::Packets(_), Limit::Bytes(_)) => {
            let help = Some("write `mark_bytes`, or the limit in `packets`".to_string());
            return section.problem("mark_packets", "the threshold is in packets and the limit in bytes", help);
        }
        (Limit::Bytes(_), Limit::Packets(_)) => {
            let help = Some("write `mark_packets`, or the limit in `bytes`".to_string());
            return section.problem("mark_bytes", "the threshold is in bytes and the limit in packets", help);
        }
    };
    if mark_count >= limit_count {
        let message =
            format!("the threshold {mark_count} is not below the limit {limit_count}: nothing would be marked");
        return section.problem(key, message, None);
    }
    Some(Queue::ThresholdEcn { mark, limit })
}

fn red(section: &Section) -> Option<Queue> {
    let most = f64::from(PACKETS_MAX);
    let red = Red {
        min: section.get("min", |r, n| r.number(n, most)).unwrap_or(5.0),
        max: section.get("max", |r, n| r.number(n, most)).unwrap_or(15.0),
        max_probability: section.get("max_probability", Reader::percentage).unwrap_or(crate::model::Percent(10.0)),
        weight: section.get("weight", |r, n| r.number(n, 1.0)).unwrap_or(0.002),
        packets: section.get("packets", |r, n| r.count(n, 1, PACKETS_MAX)).unwrap_or(100),
        ecn: section.get("ecn", |r, n| r.boolean(n)).unwrap_or(false),
        gentle: section.get("gentle", |r, n| r.boolean(n)).unwrap_or(true),
    };
    if red.min >= red.max {
        let key = if section.has("min") { "min" } else { "max" };
        let message = format!("`min` ({}) is not below `max` ({})", red.min, red.max);
        return section.problem(key, message, None);
    }
    if red.max > f64::from(red.packets) {
        let key = if section.has("max") { "max" } else { "packets" };
        let message = format!("`max` ({}) is above the queue's limit of {} packets", red.max, red.packets);
        return section.problem(key, message, None);
    }
    Some(Queue::Red(red))
}
