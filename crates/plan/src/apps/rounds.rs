//! Traffic in rounds: incast (many answer one) and collectives (all send to all, or to neighbours), repeatedly.

use super::{Message, Opener, Stage};
use crate::Random;
use net::NodeId;
use scenario::{Collective, Connections, Pace, Think, Traffic as Entry, TrafficKind};
use std::collections::{BTreeMap, VecDeque};
use units::Time;

/// Rounds of one entry.
#[derive(Default)]
pub struct Rounds {
    /// The run's.
    seed: u64,
    /// The end of the run.
    end: Time,
    /// The jobs, each with barriers of its own; empty before the entry begins.
    jobs: Vec<Job>,
    /// Bytes of a message, round by round; after the last, from the first again.
    sizes: Vec<u64>,
    /// Open a connection for each message.
    anew: bool,
    /// The job of each open flow, of flows that are opened for one message.
    open: BTreeMap<u32, u32>,
    /// From this size on messages are exchanged in pairs.
    pairwise: Option<u64>,
    /// Time between the beginnings of rounds; none: when the last has ended.
    interval: Option<Time>,
    /// Between a round's end and the next one's beginning.
    think: Option<Think>,
    /// No round begins from here on.
    stop: Option<Time>,
    /// How long each round took, picoseconds.
    took: Vec<u64>,
    /// For each message, from the beginning of its round.
    deadline: Option<Time>,
    /// Messages that arrived, and those that arrived after the deadline.
    answers: (u64, u64),
}

/// Hosts that wait for one another.
struct Job {
    /// The random stream of its think times.
    random: Random,
    /// Who sends to whom in each round.
    pairs: Vec<(NodeId, NodeId)>,
    /// The connections of those pairs, if they are kept: numbered in a row, after those of the job before.
    kept: Vec<u32>,
    /// Index of its first round's size: jobs begin at different places, as if they had started at different times.
    first: u64,
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
    /// In a round of pairs, by host: the distance in the list of hosts to its present receiver, and when it began to send there.
    steps: Vec<(usize, Time)>,
}

impl Rounds {
    pub fn new(seed: u64, end: Time) -> Rounds {
        Rounds { seed, end, ..Rounds::default() }
    }

    pub fn started(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Reads the entry, and opens the connections that are kept.
    pub fn set_up(&mut self, entry: &Entry, opener: &mut Opener<impl Stage>, random: &mut Random) {
        self.stop = entry.stop;
        let (pairs, rounds) = match &entry.kind {
            TrafficKind::Incast { senders, receiver, bytes, repeat, pace, deadline } => {
                self.deadline = *deadline;
                self.sizes = vec![bytes.get()];
                if let Pace::Interval(interval) = pace {
                    self.interval = Some(*interval);
                }
                (vec![opener.stage.pairing().incast(senders, receiver)], *repeat)
            }
            kind @ (TrafficKind::AllToAll(collective) | TrafficKind::Exchange(collective)) => {
                let Collective { bytes, rounds, connections, think, pairwise, .. } = collective;
                self.pairwise = pairwise.map(units::Bytes::get);
                self.sizes = bytes.iter().map(|bytes| bytes.get()).collect();
                (self.anew, self.think) = (*connections == Connections::New, *think);
                (opener.stage.pairing().jobs(kind, random), *rounds)
            }
            _ => unreachable!("only these kinds come in rounds"),
        };
        let n = pairs.len() as u64;
        for (number, pairs) in (0..n).zip(pairs) {
            let first = number * self.sizes.len() as u64 / n;
            let open = |&(src, dst): &(NodeId, NodeId)| opener.open(src, dst);
            let kept: Vec<u32> = if self.anew { Vec::new() } else { pairs.iter().filter_map(open).collect() };
            let arrived = vec![0; kept.len()];
            let (next_flow, running) = (opener.stage.opened() as u32, VecDeque::new());
            self.jobs.push(Job {
                random: Random::of_job(self.seed, &entry.name, number),
                pairs,
                kept,
                first,
                next_flow,
                left: rounds,
                running,
                ended: 0,
                arrived,
                steps: Vec::new(),
            });
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
        let bytes = job.bytes(&self.sizes, round);
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
            let in_pairs = self.pairwise.is_some_and(|least| bytes >= least);
            job.begin_steps(in_pairs, now);
            for i in 0..job.kept.len() {
                if job.steps.is_empty() || job.is_first(i) {
                    job.write(i, &self.sizes, opener);
                    if let Some(deadline) = self.deadline {
                        opener.stage.set_deadline(opener.entry, job.kept[i], now + deadline);
                    }
                }
            }
        }
        if let Some(interval) = self.interval
            && job.left > 0
        {
            opener.schedule(now + interval, number);
        }
    }

    /// A message had arrived whole on `flow` at `end`.
    pub fn arrived(&mut self, flow: u32, end: Time, opener: &mut Opener<impl Stage>) {
        let number = if self.anew {
            self.open.remove(&flow).expect("the flow is one of the entry's")
        } else {
            self.jobs.partition_point(|job| job.next_flow <= flow) as u32
        };
        let job = &mut self.jobs[number as usize];
        let round = if self.anew {
            opener.stage.finish(flow, end);
            0
        } else {
            let i = job.kept.binary_search(&flow).expect("the flow is one of the job's");
            let round = job.arrived[i];
            job.arrived[i] += 1;
            let place = (round - job.ended) as usize;
            let bytes = job.bytes(&self.sizes, round);
            let begun = job.begun(i).unwrap_or(job.running[place].0);
            opener.stage.on_message(Message { flow, entry: opener.entry, job: number, round, begun, bytes }, end);
            job.next_steps(i, round, &self.sizes, opener);
            if job.arrived[i] < job.ended + job.running.len() as u64 {
                opener.stage.notify_at(flow, job.total(&self.sizes, job.arrived[i] + 1));
            } else if job.left == 0 {
                opener.stage.finish(flow, end);
            }
            place
        };
        job.running[round].1 -= 1;
        if let Some(deadline) = self.deadline {
            self.answers.0 += 1;
            self.answers.1 += u64::from(end - job.running[round].0 > deadline);
        }
        while job.running.front().is_some_and(|(_, missing)| *missing == 0) {
            let (begun, _) = job.running.pop_front().expect("it has a front");
            job.ended += 1;
            self.took.push((end - begun).as_ps());
            if self.interval.is_none() && job.left > 0 {
                let think = match self.think {
                    None => Time::ZERO,
                    Some(Think::Fixed(time)) => time,
                    Some(Think::Exponential(mean)) => job.random.exponential(mean),
                };
                // a think time is at least the reaction time
                let at = (end + think).max(opener.now());
                opener.schedule(at, number);
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
        if let Some(deadline) = self.deadline {
            rows.extend(self.missed(name, deadline));
        }
        rows
    }

    /// Shares of messages, and of rounds, that missed the deadline; what has not arrived counts when its deadline has passed.
    fn missed(&self, name: &str, deadline: Time) -> [(String, f64); 2] {
        let mut rounds = (self.took.len() as u64, 0);
        rounds.1 = self.took.iter().filter(|took| **took > deadline.as_ps()).count() as u64;
        let mut answers = self.answers;
        for (begun, missing) in self.jobs.iter().flat_map(|job| &job.running) {
            if *missing > 0 && *begun + deadline < self.end {
                answers = (answers.0 + *missing as u64, answers.1 + *missing as u64);
                rounds = (rounds.0 + 1, rounds.1 + 1);
            }
        }
        let share = |(all, missed): (u64, u64)| missed as f64 / all.max(1) as f64;
        [(format!("{name}.answers_missed"), share(answers)), (format!("{name}.queries_missed"), share(rounds))]
    }
}

impl Job {
    /// Writes the next message of a kept connection.
    fn write(&self, i: usize, sizes: &[u64], opener: &mut Opener<impl Stage>) {
        let flow = self.kept[i];
        opener.stage.write(flow, self.bytes(sizes, self.arrived[i]));
        // where an earlier message is still to arrive, its arrival asks for the next; to ask twice would count it twice
        if self.arrived[i] + 1 >= self.ended + self.running.len() as u64 {
            opener.stage.notify_at(flow, self.total(sizes, self.arrived[i] + 1));
        }
        if self.left == 0 {
            opener.stage.close(flow);
        }
    }

    /// A round begins, in pairs if all connections are there: hosts send to the next one first.
    fn begin_steps(&mut self, in_pairs: bool, now: Time) {
        self.steps.clear();
        if in_pairs && self.kept.len() == self.pairs.len() {
            // n hosts have n (n - 1) connections, in the order of hosts, and of each host by how far ahead the other is
            let hosts = self.pairs.len().isqrt() + 1;
            self.steps.resize(hosts, (1, now));
        }
    }

    /// In a round of pairs: whether this is its host's first connection.
    fn is_first(&self, i: usize) -> bool {
        i.is_multiple_of(self.steps.len() - 1)
    }

    /// In a round of pairs: when the host of this connection began to send.
    fn begun(&self, i: usize) -> Option<Time> {
        let others = self.steps.len().checked_sub(1)?;
        Some(self.steps[i / others].1)
    }

    /// In a round of pairs, a message has arrived on a connection: each end that has now sent and received its step's messages
    /// takes its next step.
    fn next_steps(&mut self, i: usize, round: u64, sizes: &[u64], opener: &mut Opener<impl Stage>) {
        let hosts = self.steps.len();
        let Some(others) = hosts.checked_sub(1) else { return };
        let (src, ahead) = (i / others, i % others + 1);
        let connection = |from: usize, ahead: usize| from * others + ahead - 1;
        for host in [src, (src + ahead) % hosts] {
            let step = self.steps[host].0;
            let ours = [connection(host, step), connection((host + hosts - step) % hosts, step)];
            if step < others && ours.iter().all(|i| self.arrived[*i] > round) {
                self.steps[host] = (step + 1, opener.now());
                self.write(connection(host, step + 1), sizes, opener);
            }
        }
    }

    /// Bytes of a message of a round.
    fn bytes(&self, sizes: &[u64], round: u64) -> u64 {
        sizes[((self.first + round) % sizes.len() as u64) as usize]
    }

    /// Bytes of the first so many messages of a connection.
    fn total(&self, sizes: &[u64], messages: u64) -> u64 {
        let n = sizes.len() as u64;
        let whole: u64 = sizes.iter().sum();
        let before = |place: u64| place / n * whole + sizes[..(place % n) as usize].iter().sum::<u64>();
        before(self.first + messages) - before(self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_begins_at_its_place_of_the_list_and_wraps_around() {
        let job = Job {
            random: Random::of_job(1, "ring", 0),
            pairs: Vec::new(),
            kept: Vec::new(),
            first: 2,
            next_flow: 0,
            left: 0,
            running: VecDeque::new(),
            ended: 0,
            arrived: Vec::new(),
            steps: Vec::new(),
        };
        let sizes = [1, 10, 100];
        assert_eq!([0, 1, 2, 3].map(|round| job.bytes(&sizes, round)), [100, 1, 10, 100]);
        assert_eq!([0, 1, 2, 4, 7].map(|messages| job.total(&sizes, messages)), [0, 100, 101, 211, 322]);
    }
}
