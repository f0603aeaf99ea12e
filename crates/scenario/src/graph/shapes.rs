//! The graphs of jobs that a scenario describes by numbers.

use super::{Graph, Work};
use crate::model::{AllReduce, JobShape, Reduction};
use units::{Bytes, Time};

impl JobShape {
    /// The job's graph on so many hosts.
    pub fn graph(&self, hosts: u32) -> Graph {
        let mut graph = Graph { ranks: hosts, ..Graph::default() };
        match self {
            JobShape::MapReduce { .. } => map_reduce(&mut graph, self),
            JobShape::AllReduce(all) => match all.algorithm {
                Reduction::Ring => ring(&mut graph, all),
                Reduction::Tree => tree(&mut graph, all),
            },
            JobShape::AllToAll { bytes, compute } => all_to_all(&mut graph, *bytes, *compute),
            JobShape::Pipeline { bytes, batches, compute } => pipeline(&mut graph, *bytes, *batches, *compute),
            JobShape::File(file) => return (*file.graph).clone(),
        }
        graph
    }

    /// How many tasks the graph has at most.
    pub(crate) fn tasks(&self, hosts: u64) -> u128 {
        let n = u128::from(hosts);
        match self {
            JobShape::MapReduce { mappers, reducers, waves, .. } => {
                let maps = u128::from(*mappers) * u128::from(*waves);
                maps * (1 + u128::from(*reducers)) + u128::from(*reducers)
            }
            JobShape::AllReduce(AllReduce { algorithm: Reduction::Ring, .. }) => 2 * n * n,
            JobShape::AllReduce(AllReduce { algorithm: Reduction::Tree, .. }) => 4 * n,
            JobShape::AllToAll { .. } => n * n,
            JobShape::Pipeline { batches, .. } => 2 * n * u128::from(*batches),
            JobShape::File(file) => file.graph.tasks.len() as u128,
        }
    }
}

fn share(bytes: Bytes, parts: u64) -> Bytes {
    Bytes::new(bytes.get().div_ceil(parts).max(1))
}

/// Mapper i is on host i, reducer j on host mappers + j, modulo the number of hosts.
fn map_reduce(graph: &mut Graph, shape: &JobShape) {
    let JobShape::MapReduce { mappers, reducers, bytes, map, reduce, waves } = *shape else { return };
    let hosts = graph.ranks;
    let coflow = graph.coflow("shuffle");
    let part = share(bytes, u64::from(mappers) * u64::from(waves) * u64::from(reducers));
    let mut fetched = vec![Vec::new(); reducers as usize];
    for mapper in 0..mappers {
        let mut before = Vec::new();
        for _ in 0..waves {
            let mapped = graph.add(Work::Compute { time: map }, before);
            before = vec![mapped];
            for (reducer, fetched) in (0..).zip(&mut fetched) {
                let (from, to) = (mapper % hosts, (mappers + reducer) % hosts);
                // what a reducer has on its own host does not pass the network
                let ready = if from == to {
                    mapped
                } else {
                    graph.add(Work::Send { from, to, bytes: part, coflow }, vec![mapped])
                };
                fetched.push(ready);
            }
        }
    }
    for needs in fetched {
        graph.add(Work::Compute { time: reduce }, needs);
    }
}

/// The first task of each rank: it computes.
fn begin(graph: &mut Graph, compute: Time) -> Vec<u32> {
    (0..graph.ranks).map(|_| graph.add(Work::Compute { time: compute }, Vec::new())).collect()
}

/// In 2 (n − 1) steps each rank sends a part to the next one, which passes it on: n − 1 steps add up, n − 1 distribute.
fn ring(graph: &mut Graph, all: &AllReduce) {
    let n = graph.ranks;
    let part = share(all.bytes, u64::from(n));
    let phases = [graph.coflow("reduce-scatter"), graph.coflow("all-gather")];
    // by rank: what must have ended before it sends
    let mut ready = begin(graph, all.compute);
    for step in 0..2 * (n - 1) {
        let coflow = phases[usize::from(step >= n - 1)];
        let mut next = ready.clone();
        for from in 0..n {
            let to = (from + 1) % n;
            // it adds its own data, so it must have computed them: earlier steps do not say so
            let needs = if step == 0 { vec![ready[from as usize]] } else { vec![ready[from as usize], from] };
            next[to as usize] = graph.add(Work::Send { from, to, bytes: part, coflow }, needs);
        }
        ready = next;
    }
}

/// A binary tree: sums go up to rank 0, and the result comes down.
fn tree(graph: &mut Graph, all: &AllReduce) {
    let n = graph.ranks;
    let bytes = all.bytes;
    let (up, down) = (graph.coflow("reduce"), graph.coflow("broadcast"));
    let mut needs: Vec<Vec<u32>> = begin(graph, all.compute).into_iter().map(|task| vec![task]).collect();
    for from in (1..n).rev() {
        let to = (from - 1) / 2;
        let ready = std::mem::take(&mut needs[from as usize]);
        let sent = graph.add(Work::Send { from, to, bytes, coflow: up }, ready);
        needs[to as usize].push(sent);
    }
    for to in 1..n {
        let from = (to - 1) / 2;
        let ready = needs[from as usize].clone();
        needs[to as usize] = vec![graph.add(Work::Send { from, to, bytes, coflow: down }, ready)];
    }
}

fn all_to_all(graph: &mut Graph, bytes: Bytes, compute: Time) {
    let n = graph.ranks;
    let coflow = graph.coflow("all-to-all");
    let ready = begin(graph, compute);
    for from in 0..n {
        for ahead in 1..n {
            let to = (from + ahead) % n;
            graph.add(Work::Send { from, to, bytes, coflow }, vec![ready[from as usize]]);
        }
    }
}

/// Each rank is a stage: it computes a batch when the stage before has sent it and its own last batch is done.
fn pipeline(graph: &mut Graph, bytes: Bytes, batches: u32, compute: Time) {
    let n = graph.ranks;
    let coflow = graph.coflow("pipeline");
    let mut last: Vec<Vec<u32>> = vec![Vec::new(); n as usize];
    for _ in 0..batches {
        let mut arrived = None;
        for stage in 0..n {
            let mut needs = std::mem::take(&mut last[stage as usize]);
            needs.extend(arrived);
            let computed = graph.add(Work::Compute { time: compute }, needs);
            last[stage as usize] = vec![computed];
            if stage + 1 < n {
                let work = Work::Send { from: stage, to: stage + 1, bytes, coflow };
                arrived = Some(graph.add(work, vec![computed]));
            }
        }
    }
}
