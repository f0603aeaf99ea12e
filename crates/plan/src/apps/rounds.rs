//! Traffic in rounds: incast (many answer one) and collectives (everybody sends to everybody, or to neighbours), again and again.

use super::{Message, Opener, Stage};
use crate::Random;
use net::NodeId;
use scenario::{Collective, Connections, Pace, Think, Traffic as Entry, TrafficKind};
use std::collections::{BTreeMap, VecDeque};
use units::Time;

/// Rounds of one entry.
#[derive(Default)]
pub struct Rounds {
    /// Those whose barriers are their own; empty before the entry begins.
    jobs: Vec<Job>,
    /// Bytes of a message, round by round, and from the first again.
    sizes: Vec<u64>,
    /// Open a connection for each message.
    anew: bool,
    /// The job of each flow that is open, of those opened anew.
    open: BTreeMap<u32, u32>,
    /// Time between the beginnings of rounds; none: when the last has ended.
    interval: Option<Time>,
    /// Between a round's end and the next one's beginning.
    think: Option<Think>,
    /// No round begins from here on.
    stop: Option<Time>,
    /// How long each round took, picoseconds.
    took: Vec<u64>,
}

/// Hosts that wait for one another.
struct Job {
    /// Who sends to whom in each round.
    pairs: Vec<(NodeId, NodeId)>,
    /// The connections of those pairs, if they are kept: numbered in a row, after those of the job before.
    kept: Vec<u32>,
    /// The first flow of the next job.
    next_flow: u32,
    /// Rounds still to begin.
    left: u32,
    /// Rounds that have begun and not ended, oldest first: beginning, and messages that have not arrived.
    running: VecDeque<(Time, usize)>,
    /// Rounds that ended before `running`'s first.
    ended: u64,
    /// For each kept connection, how many of its messages have arrived.
    arrived: Vec<u64>,
}

impl Rounds {
    pub fn started(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Reads the entry, and opens the connections that are kept.
    pub fn set_up(&mut self, entry: &Entry, opener: &mut Opener<impl Stage>, random: &mut Random) {
        self.stop = entry.stop;
        let (pairs, rounds) = match &entry.kind {
            TrafficKind::Incast { senders, receiver, bytes, repeat, pace } => {
                self.sizes = vec![bytes.get()];
                if let Pace::Interval(interval) = pace {
                    self.interval = Some(*interval);
                }
                (vec![opener.stage.pairing().incast(senders, receiver)], *repeat)
            }
            kind @ (TrafficKind::AllToAll(collective) | TrafficKind::Exchange(collective)) => {
                let Collective { bytes, rounds, connections, think, .. } = collective;
                self.sizes = bytes.iter().map(|bytes| bytes.get()).collect();
                (self.anew, self.think) = (*connections == Connections::New, *think);
                (opener.stage.pairing().jobs(kind, random), *rounds)
            }
            _ => unreachable!("only these kinds come in rounds"),
        };
        for pairs in pairs {
            let open = |&(src, dst): &(NodeId, NodeId)| opener.open(src, dst);
            let kept: Vec<u32> = if self.anew { Vec::new() } else { pairs.iter().filter_map(open).collect() };
            let arrived = vec![0; kept.len()];
            let (next_flow, running) = (opener.stage.opened() as u32, VecDeque::new());
            self.jobs.push(Job { pairs, kept, next_flow, left: rounds, running, ended: 0, arrived });
        }
    }

    /// The first round of every job begins.
    pub fn begin_all(&mut self, opener: &mut Opener<impl Stage>) {
        (0..self.jobs.len() as u32).for_each(|job| self.begin(job, opener));
    }

    /// A round of a job begins.
    pub fn begin(&mut self, number: u32, opener: &mut Opener<impl Stage>) {
        let now = opener.now();
        let job = &mut self.jobs[number as usize];
        if job.left == 0 || self.stop.is_some_and(|stop| now >= stop) {
            return;
        }
        job.left -= 1;
        let round = job.ended + job.running.len() as u64;
        let bytes = self.sizes[(round % self.sizes.len() as u64) as usize];
        if self.anew {
            let opened = opener.stage.opened() as u32;
            for (src, dst) in &job.pairs {
                opener.send(*src, *dst, bytes);
            }
            let now_open = opener.stage.opened() as u32;
            self.open.extend((opened..now_open).map(|flow| (flow, number)));
            job.running.push_back((now, (now_open - opened) as usize));
        } else {
            job.running.push_back((now, job.kept.len()));
            for (i, flow) in job.kept.iter().enumerate() {
                opener.stage.write(*flow, bytes);
                opener.stage.notify_at(*flow, total(&self.sizes, job.arrived[i] + 1));
                if job.left == 0 {
                    opener.stage.close(*flow);
                }
            }
        }
        if let Some(interval) = self.interval
            && job.left > 0
        {
            opener.schedule(now + interval, number);
        }
    }

    /// A message arrived whole on `flow`.
    pub fn arrived(&mut self, flow: u32, opener: &mut Opener<impl Stage>, random: &mut Random) {
        let number = if self.anew {
            self.open.remove(&flow).expect("the flow is one of the entry's")
        } else {
            self.jobs.partition_point(|job| job.next_flow <= flow) as u32
        };
        let job = &mut self.jobs[number as usize];
        let round = if self.anew {
            opener.stage.finish(flow);
            0
        } else {
            let i = job.kept.binary_search(&flow).expect("the flow is one of the job's");
            let round = job.arrived[i];
            job.arrived[i] += 1;
            let place = (round - job.ended) as usize;
            let bytes = self.sizes[(round % self.sizes.len() as u64) as usize];
            let (entry, begun) = (opener.entry, job.running[place].0);
            opener.stage.on_message(Message { flow, entry, job: number, round, begun, bytes });
            if job.arrived[i] < job.ended + job.running.len() as u64 {
                opener.stage.notify_at(flow, total(&self.sizes, job.arrived[i] + 1));
            } else if job.left == 0 {
                opener.stage.finish(flow);
            }
            place
        };
        job.running[round].1 -= 1;
        while job.running.front().is_some_and(|(_, missing)| *missing == 0) {
            let (begun, _) = job.running.pop_front().expect("it has a front");
            job.ended += 1;
            self.took.push((opener.now() - begun).as_ps());
            if self.interval.is_none() && job.left > 0 {
                let think = match self.think {
                    None => Time::ZERO,
                    Some(Think::Fixed(time)) => time,
                    Some(Think::Exponential(mean)) => random.exponential(mean),
                };
                let now = opener.now();
                opener.schedule(now + think, number);
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

/// Bytes of the first so many messages.
fn total(sizes: &[u64], messages: u64) -> u64 {
    let n = sizes.len() as u64;
    let whole: u64 = sizes.iter().sum();
    messages / n * whole + sizes[..(messages % n) as usize].iter().sum::<u64>()
}
