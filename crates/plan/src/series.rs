//! Records of links: samples during the run, and a row for each link at its end.

#[cfg(test)]
mod tests;

use crate::network::{find_links, tier_name};
use net::{LinkCounters, LinkId, LinkTable, NodeKind, QueueLength, Topology};
use results::{LinkRow, LinkSample};
use scenario::{Queues, Scenario};
use std::sync::Arc;
use units::{Rate, Time};

/// What is to be known of a network's links.
pub trait Links {
    /// As [`LinkTable::counters`].
    fn counters(&self, link: LinkId) -> LinkCounters;
    /// As [`LinkTable::queue_len`].
    fn queue_len(&self, link: LinkId, at: Time) -> QueueLength;
}

impl Links for LinkTable {
    fn counters(&self, link: LinkId) -> LinkCounters {
        LinkTable::counters(self, link)
    }

    fn queue_len(&self, link: LinkId, at: Time) -> QueueLength {
        LinkTable::queue_len(self, link, at)
    }
}

/// Samples of links, and their counters when counting began.
#[derive(Debug, Default)]
pub struct Series {
    /// The links that are sampled and their rates.
    links: Vec<(LinkId, Rate)>,
    /// Counters and bytes sent at the last sample, and when that was.
    last: Vec<(LinkCounters, u64)>,
    last_at: Time,
    samples: Vec<LinkSample>,
    /// All links' counters when counting began, and when that was.
    base: Vec<LinkCounters>,
    base_at: Time,
}

/// The links that `scenario` wants sampled, and how often.
pub fn sampled(scenario: &Scenario, topology: &Topology) -> (Vec<LinkId>, Option<Time>) {
    let measure = &scenario.measure;
    let all = || (0..topology.links().len() as u32).map(LinkId).collect::<Vec<_>>();
    match (&measure.links, &measure.queues) {
        (Some(interval), _) => (all(), Some(*interval)),
        (None, Queues::All) => (all(), Some(measure.queue_sample)),
        (None, Queues::Links(named)) if named.is_empty() => (Vec::new(), None),
        (None, Queues::Links(named)) => {
            (named.iter().flat_map(|link| find_links(topology, link)).collect(), Some(measure.queue_sample))
        }
    }
}

impl Series {
    /// Samples of `links`.
    pub fn new(links: &[LinkId], topology: &Topology) -> Series {
        Series {
            links: links.iter().map(|link| (*link, topology.link(*link).rate)).collect(),
            last: vec![(LinkCounters::default(), 0); links.len()],
            ..Series::default()
        }
    }

    /// Takes a sample of every sampled link at `at`, which is not before any offer.
    pub fn sample(&mut self, links: &impl Links, at: Time) {
        let span = at - self.last_at;
        self.last_at = at;
        for ((link, rate), (last, last_sent)) in self.links.iter().zip(&mut self.last) {
            let counters = links.counters(*link);
            let queue = links.queue_len(*link, at);
            let sent = counters.accepted_bytes - queue.bytes;
            let drops = |c: &LinkCounters| c.dropped + c.dropped_by_failure();
            self.samples.push(LinkSample {
                time_ns: at.as_ns(),
                link: link.0,
                queue_packets: queue.packets,
                queue_bytes: queue.bytes,
                utilization: utilization(sent.saturating_sub(*last_sent), *rate, span),
                drops: (drops(&counters) - drops(last)) as u32,
                marks: (counters.marked - last.marked) as u32,
            });
            (*last, *last_sent) = (counters, sent);
        }
    }

    /// Totals of the `n` links count from here.
    pub fn begin_counting(&mut self, links: &impl Links, n: usize, at: Time) {
        self.base = (0..n as u32).map(|i| links.counters(LinkId(i))).collect();
        self.base_at = at;
    }

    /// The samples, by time.
    pub fn samples(&self) -> &[LinkSample] {
        &self.samples
    }

    /// The samples, by time, and nothing else.
    pub fn into_samples(self) -> Vec<LinkSample> {
        self.samples
    }

    /// One row a link; `under_way` is what each holds at the end, which is at `end`.
    ///
    /// # Panics
    /// If a link's counters do not add up: then the run's measurements are not valid.
    pub fn rows(&self, links: &impl Links, topology: &Topology, under_way: &[u64], end: Time) -> Vec<LinkRow> {
        let names: Vec<Arc<str>> = topology.nodes().iter().map(|node| node.name.as_str().into()).collect();
        let row = |(i, spec): (usize, &net::LinkSpec)| {
            let id = LinkId(i as u32);
            let (now, base) = (links.counters(id), self.base.get(i).copied().unwrap_or_default());
            let name = topology.link_name(id);
            assert!(
                now.conserves(under_way[i]),
                "link {name}: {now:?} with {} under way does not add up",
                under_way[i]
            );
            let queued = links.queue_len(id, end).bytes;
            let sent = now.accepted_bytes.saturating_sub(base.accepted_bytes).saturating_sub(queued);
            LinkRow {
                link: name.into(),
                from: names[spec.from.index()].clone(),
                to: names[spec.to.index()].clone(),
                tier: tier_name(spec.tier).into(),
                from_host: topology.node(spec.from).kind == NodeKind::Host,
                rate_bps: spec.rate.as_bps(),
                packets: now.accepted.saturating_sub(base.accepted),
                bytes: now.accepted_bytes.saturating_sub(base.accepted_bytes),
                delivered: now.delivered - base.delivered,
                dropped: now.dropped - base.dropped,
                dropped_bytes: now.dropped_bytes - base.dropped_bytes,
                dropped_by_failure: now.dropped_by_failure() - base.dropped_by_failure(),
                marked: now.marked - base.marked,
                in_flight: under_way[i],
                max_queue_packets: u64::from(now.queue_max),
                utilization: utilization(sent, spec.rate, end - self.base_at),
            }
        };
        topology.links().iter().enumerate().map(row).collect()
    }
}

/// Share of `span` that sending `bytes` took.
fn utilization(bytes: u64, rate: Rate, span: Time) -> f64 {
    if span == Time::ZERO { 0.0 } else { (bytes as f64 * 8.0 / rate.as_bps() as f64 / span.as_secs_f64()).min(1.0) }
}
