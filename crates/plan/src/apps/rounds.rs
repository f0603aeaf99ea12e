//! Traffic in rounds: incast (many answer one) and all-to-all (everybody sends to everybody), again and again.

use super::{NEXT, Opener, Stage};
use net::NodeId;
use scenario::{Connections, Pace, Traffic as Entry, TrafficKind};
use std::collections::VecDeque;
use units::Time;

/// Rounds of one entry.
#[derive(Default)]
pub struct Rounds {
    /// Who sends to whom in each round; empty before the entry begins.
    pairs: Vec<(NodeId, NodeId)>,
    /// The connections of those pairs, if they are kept.
    kept: Vec<u32>,
    /// Bytes on each connection in one round.
    bytes: u64,
    /// Rounds still to begin.
    left: u32,
    /// Open a connection for each message.
    anew: bool,
    /// Time between the beginnings of rounds; none: when the last has ended.
    interval: Option<Time>,
    /// Rounds that have begun and not ended, oldest first: beginning, and messages that have not arrived.
    running: VecDeque<(Time, usize)>,
    /// Rounds that ended before `running`'s first.
    ended: u64,
    /// For each kept connection, how many of its messages have arrived.
    arrived: Vec<u64>,
    /// How long each round took, picoseconds.
    took: Vec<u64>,
    /// First flow of the entry, by which a flow finds its pair.
    first: u32,
}

impl Rounds {
    pub fn started(&self) -> bool {
        !self.pairs.is_empty()
    }

    /// Reads the entry, and opens the connections that are kept.
    pub fn set_up(&mut self, entry: &Entry, opener: &mut Opener<impl Stage>) {
        match &entry.kind {
            TrafficKind::Incast { senders, receiver, bytes, repeat, pace } => {
                self.pairs = opener.stage.pairing().incast(senders, receiver);
                (self.bytes, self.left) = (bytes.get(), *repeat);
                if let Pace::Interval(interval) = pace {
                    self.interval = Some(*interval);
                }
            }
            TrafficKind::AllToAll { bytes, rounds, hosts, connections } => {
                self.pairs = opener.stage.pairing().all_to_all(hosts.as_deref());
                (self.bytes, self.left) = (bytes.get(), *rounds);
                self.anew = *connections == Connections::New;
            }
            _ => unreachable!("only these kinds come in rounds"),
        }
        self.first = opener.stage.opened() as u32;
        if !self.anew {
            self.kept = self.pairs.clone().into_iter().filter_map(|(src, dst)| opener.open(src, dst)).collect();
            self.arrived = vec![0; self.kept.len()];
        }
    }

    /// A round begins.
    pub fn begin(&mut self, opener: &mut Opener<impl Stage>) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let now = opener.now();
        if self.anew {
            let opened = opener.stage.opened();
            for (src, dst) in self.pairs.clone() {
                opener.send(src, dst, self.bytes);
            }
            self.running.push_back((now, opener.stage.opened() - opened));
        } else {
            self.running.push_back((now, self.kept.len()));
            for (i, flow) in self.kept.iter().enumerate() {
                opener.stage.write(*flow, self.bytes);
                opener.stage.notify_at(*flow, self.bytes * (self.arrived[i] + 1));
                if self.left == 0 {
                    opener.stage.close(*flow);
                }
            }
        }
        if let Some(interval) = self.interval
            && self.left > 0
        {
            opener.schedule(now + interval, NEXT);
        }
    }

    /// A message arrived whole on `flow`.
    pub fn arrived(&mut self, flow: u32, opener: &mut Opener<impl Stage>) {
        let round = if self.anew {
            opener.stage.finish(flow);
            0
        } else {
            let i = self.kept.binary_search(&flow).expect("the flow is one of the entry's");
            self.arrived[i] += 1;
            let begun = self.ended + self.running.len() as u64;
            if self.arrived[i] < begun {
                opener.stage.notify_at(flow, self.bytes * (self.arrived[i] + 1));
            } else if self.left == 0 {
                opener.stage.finish(flow);
            }
            (self.arrived[i] - 1 - self.ended) as usize
        };
        self.running[round].1 -= 1;
        while self.running.front().is_some_and(|(_, missing)| *missing == 0) {
            let (begun, _) = self.running.pop_front().expect("it has a front");
            self.ended += 1;
            self.took.push((opener.now() - begun).as_ps());
            if self.interval.is_none() && self.left > 0 {
                let now = opener.now();
                opener.schedule(now, NEXT);
            }
        }
    }

    /// Rounds that ended, and how long they took.
    pub fn summary(&self, name: &str) -> Vec<(String, f64)> {
        let mut took = self.took.clone();
        took.sort_unstable();
        let mut rows = vec![(format!("{name}.rounds_completed"), took.len() as f64)];
        if let (Some(last), n) = (took.last(), took.len()) {
            let ms = |ps: u64| ps as f64 / 1e9;
            rows.push((format!("{name}.round_ms_mean"), took.iter().map(|&t| ms(t)).sum::<f64>() / n as f64));
            rows.push((format!("{name}.round_ms_median"), ms(took[(n - 1) / 2])));
            rows.push((format!("{name}.round_ms_p99"), ms(took[(n * 99).div_ceil(100) - 1])));
            rows.push((format!("{name}.round_ms_max"), ms(*last)));
        }
        rows
    }
}
