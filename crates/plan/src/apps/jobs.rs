//! Jobs: tasks that compute and send, each when those that it needs have ended.

use super::{Message, Opener, Stage};
use crate::Random;
use net::NodeId;
use results::{CoflowRow, JobRow};
use scenario::{Connections, Graph, Job, JobShape, Scenario, Think, Traffic as Entry, Work};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use units::Time;

/// The runs of one entry's job.
pub struct Jobs {
    job: Job,
    graph: Arc<Graph>,
    /// For each task, those that need it.
    after: Vec<Vec<u32>>,
    stop: Option<Time>,
    random: Random,
    /// The job's hosts, since the first run.
    hosts: Vec<NodeId>,
    /// The present run.
    run: Run,
    /// Connections that are kept, by their ends.
    kept: BTreeMap<(NodeId, NodeId), u32>,
    /// What each open flow carries.
    carried: BTreeMap<u32, Carried>,
    runs: Vec<JobRow>,
    coflows: Vec<CoflowRow>,
}

/// One run of a job.
#[derive(Default)]
struct Run {
    /// For each task, how many it still waits for.
    missing: Vec<u32>,
    /// Tasks that have not ended.
    left: usize,
    /// For each coflow, its row and its messages that have not arrived.
    coflows: Vec<(usize, u64)>,
}

/// What a flow carries.
#[derive(Default)]
struct Carried {
    /// Bytes written so far.
    written: u64,
    /// The task whose message is on its way and when that was written, then those that wait for it.
    tasks: VecDeque<(u32, Time)>,
}

impl Jobs {
    pub fn new(job: &Job, entry: &Entry, scenario: &Scenario) -> Jobs {
        let hosts = job.hosts.as_ref().map_or(scenario.network.topology.hosts(), |hosts| hosts.len() as u64);
        let graph = match &job.shape {
            JobShape::File(file) => file.graph.clone(),
            shape => Arc::new(shape.graph(hosts as u32)),
        };
        Jobs {
            job: job.clone(),
            after: graph.dependents(),
            graph,
            stop: entry.stop,
            random: Random::of_job(scenario.seed, &entry.name, 0),
            hosts: Vec::new(),
            run: Run::default(),
            kept: BTreeMap::new(),
            carried: BTreeMap::new(),
            runs: Vec::new(),
            coflows: Vec::new(),
        }
    }

    /// A run begins.
    pub fn begin(&mut self, opener: &mut Opener<impl Stage>) {
        let now = opener.now();
        if self.stop.is_some_and(|stop| now >= stop) {
            return;
        }
        if self.hosts.is_empty() {
            self.hosts = opener.stage.pairing().listed(self.job.hosts.as_deref());
        }
        let (graph, number) = (self.graph.clone(), self.runs.len() as u32);
        let entry: Arc<str> = opener.name.into();
        let mut coflows = vec![(0, 0); graph.coflows.len()];
        let mut sizes = vec![0; graph.coflows.len()];
        for task in &graph.tasks {
            if let Work::Send { bytes, coflow, .. } = &task.work {
                coflows[*coflow as usize].1 += 1;
                let size = &mut sizes[*coflow as usize];
                *size = u64::saturating_add(*size, bytes.get());
            }
        }
        for ((place, name), bytes) in (0..).zip(&graph.coflows).zip(&sizes) {
            coflows[place].0 = self.coflows.len();
            self.coflows.push(CoflowRow {
                entry: entry.clone(),
                job: number,
                coflow: name.clone(),
                start_ns: None,
                end_ns: None,
                messages: coflows[place].1,
                bytes: *bytes,
            });
        }
        self.runs.push(JobRow {
            entry,
            job: number,
            start_ns: now.as_ns(),
            end_ns: None,
            tasks: graph.tasks.len() as u64,
            messages: coflows.iter().map(|(_, messages)| messages).sum(),
            bytes: sizes.into_iter().fold(0, u64::saturating_add),
        });
        let missing = graph.tasks.iter().map(|task| task.needs.len() as u32).collect();
        self.run = Run { missing, left: graph.tasks.len(), coflows };
        let ready = (0..).zip(&graph.tasks).filter(|(_, task)| task.needs.is_empty()).map(|(number, _)| number);
        self.start(ready.collect(), now, opener);
    }

    /// A task that computes has ended, or a run begins.
    pub fn on_event(&mut self, number: u32, opener: &mut Opener<impl Stage>) {
        let now = opener.now();
        self.ended(number, now, opener);
    }

    /// The message on its way on `flow` had arrived whole at `end`.
    pub fn arrived(&mut self, flow: u32, end: Time, opener: &mut Opener<impl Stage>) {
        let carried = self.carried.get_mut(&flow).expect("the flow is one of the entry's");
        let (task, begun) = carried.tasks.pop_front().expect("it carries a message");
        let Work::Send { bytes, coflow, .. } = self.graph.tasks[task as usize].work else {
            unreachable!("only tasks that send are carried")
        };
        if self.job.connections == Connections::New {
            self.carried.remove(&flow);
            opener.stage.finish(flow, end);
        } else {
            let (job, entry) = (self.runs.len() as u32 - 1, opener.entry);
            let message = Message { flow, entry, job, round: u64::from(task), begun, bytes: bytes.get() };
            opener.stage.on_message(message, end);
            self.write_next(flow, opener);
        }
        let (row, missing) = &mut self.run.coflows[coflow as usize];
        *missing -= 1;
        if *missing == 0 {
            self.coflows[*row].end_ns = Some(end.as_ns());
        }
        self.ended(task, end, opener);
    }

    /// Writes the message that waits longest on a connection that is free.
    fn write_next(&mut self, flow: u32, opener: &mut Opener<impl Stage>) {
        let carried = self.carried.get_mut(&flow).expect("the flow is one of the entry's");
        let Some((task, begun)) = carried.tasks.front_mut() else { return };
        let Work::Send { bytes, .. } = self.graph.tasks[*task as usize].work else {
            unreachable!("only tasks that send are carried")
        };
        *begun = opener.now();
        carried.written += bytes.get();
        opener.stage.write(flow, bytes.get());
        opener.stage.notify_at(flow, carried.written);
    }

    /// A task ended at `end`.
    fn ended(&mut self, task: u32, end: Time, opener: &mut Opener<impl Stage>) {
        let mut ready = Vec::new();
        self.leave(task, &mut ready);
        self.start(ready, end, opener);
    }

    /// Counts a task's end, and adds the tasks that can begin now.
    fn leave(&mut self, task: u32, ready: &mut Vec<u32>) {
        self.run.left -= 1;
        for next in &self.after[task as usize] {
            let missing = &mut self.run.missing[*next as usize];
            *missing -= 1;
            if *missing == 0 {
                ready.push(*next);
            }
        }
    }

    /// Begins tasks; what they waited for ended at `end`.
    fn start(&mut self, mut ready: Vec<u32>, end: Time, opener: &mut Opener<impl Stage>) {
        let graph = self.graph.clone();
        let mut next = 0;
        while let Some(task) = ready.get(next).copied() {
            next += 1;
            match graph.tasks[task as usize].work {
                Work::Compute { time: Time::ZERO } => self.leave(task, &mut ready),
                Work::Compute { time } => {
                    let at = (end + self.computing(time)).max(opener.now());
                    opener.schedule(at, task);
                }
                Work::Send { from, to, bytes, coflow } => {
                    let row = self.run.coflows[coflow as usize].0;
                    self.coflows[row].start_ns.get_or_insert(opener.now().as_ns());
                    let ends = (self.hosts[from as usize], self.hosts[to as usize]);
                    self.send(task, ends, bytes.get(), opener);
                }
            }
        }
        if self.run.left == 0 {
            self.complete(end, opener);
        }
    }

    /// A task's time, drawn among stragglers; not longer than a run.
    fn computing(&mut self, time: Time) -> Time {
        match self.job.stragglers {
            Some(stragglers) if self.random.unit() < stragglers.probability.fraction() => {
                Time::from_ps((time.as_ps() as f64 * stragglers.factor) as u64).min(Scenario::DURATION_MAX)
            }
            _ => time,
        }
    }

    fn send(&mut self, task: u32, ends: (NodeId, NodeId), bytes: u64, opener: &mut Opener<impl Stage>) {
        let now = opener.now();
        if self.job.connections == Connections::New {
            // without a path the message never arrives, and the job does not end
            let Some(flow) = opener.send(ends.0, ends.1, bytes) else { return };
            self.carried.insert(flow, Carried { written: bytes, tasks: [(task, now)].into() });
            return;
        }
        let known = self.kept.get(&ends).copied();
        let Some(flow) = known.or_else(|| opener.open(ends.0, ends.1)) else { return };
        self.kept.insert(ends, flow);
        let carried = self.carried.entry(flow).or_default();
        carried.tasks.push_back((task, now));
        if carried.tasks.len() == 1 {
            self.write_next(flow, opener);
        }
    }

    /// The run ended.
    fn complete(&mut self, end: Time, opener: &mut Opener<impl Stage>) {
        let runs = self.runs.len();
        self.runs[runs - 1].end_ns = Some(end.as_ns());
        if runs < self.job.repeat as usize {
            let think = match self.job.think {
                None => Time::ZERO,
                Some(Think::Fixed(time)) => time,
                Some(Think::Exponential(mean)) => self.random.exponential(mean),
            };
            // a think time is at least the reaction time
            let at = (end + think).max(opener.now());
            opener.schedule(at, super::NEXT);
            return;
        }
        for flow in std::mem::take(&mut self.kept).into_values() {
            opener.stage.close(flow);
            opener.stage.finish(flow, end);
        }
    }

    /// The rows of the tables `jobs` and `coflows`, of runs that began at `warmup` or later.
    pub fn rows(&self, warmup: Time) -> (Vec<JobRow>, Vec<CoflowRow>) {
        let counted: Vec<bool> = self.runs.iter().map(|job| job.start_ns >= warmup.as_ns()).collect();
        let jobs = self.runs.iter().filter(|job| counted[job.job as usize]).cloned().collect();
        (jobs, self.coflows.iter().filter(|coflow| counted[coflow.job as usize]).cloned().collect())
    }

    /// Runs and coflows that ended, and how long they took.
    pub fn summary(&self, name: &str, warmup: Time) -> Vec<(String, f64)> {
        let (jobs, coflows) = self.rows(warmup);
        let mut rows = times(name, "job", jobs.iter().filter_map(JobRow::jct_ns).collect());
        rows.extend(times(name, "coflow", coflows.iter().filter_map(CoflowRow::cct_ns).collect()));
        rows
    }
}

/// How many there were, and their mean, median, 99th percentile (nearest rank) and maximum.
pub(super) fn times(entry: &str, what: &str, mut took_ns: Vec<u64>) -> Vec<(String, f64)> {
    took_ns.sort_unstable();
    let mut rows = vec![(format!("{entry}.{what}s_completed"), took_ns.len() as f64)];
    if let (Some(last), n) = (took_ns.last(), took_ns.len()) {
        let ms = |ns: u64| ns as f64 / 1e6;
        let mean = took_ns.iter().map(|ns| ms(*ns)).sum::<f64>() / n as f64;
        rows.push((format!("{entry}.{what}_ms_mean"), mean));
        rows.push((format!("{entry}.{what}_ms_median"), ms(took_ns[(n - 1) / 2])));
        rows.push((format!("{entry}.{what}_ms_p99"), ms(took_ns[(n * 99).div_ceil(100) - 1])));
        rows.push((format!("{entry}.{what}_ms_max"), ms(*last)));
    }
    rows
}
