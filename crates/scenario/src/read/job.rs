//! `job`: tasks in the order of a graph.

use super::traffic::{FLOW_BYTES_MAX, has_extension, think};
use super::{Reader, Section};
use crate::Graph;
use crate::graph::{RANKS_MAX, TASKS_MAX};
use crate::model::{
    AllReduce, Connections, Job, JobFile, JobShape, Reduction, Scenario, Stragglers, Topology, TrafficKind,
};
use document::tree::Node;
use std::sync::Arc;
use units::{Bytes, Time};

const SHAPES: [&str; 5] = ["mapreduce", "allreduce", "all_to_all", "pipeline", "file"];

pub(super) fn job(section: &Section, topology: &Topology) -> Option<TrafficKind> {
    let found: Vec<&'static str> = SHAPES.into_iter().filter(|shape| section.has(shape)).collect();
    let hosts = section.get("hosts", |r, n| r.hosts(n, topology));
    let repeat = section.get("repeat", |r, n| r.count(n, 1, u32::MAX)).unwrap_or(1);
    let think = section.get("think", think);
    let words = [("new", Connections::New), ("reuse", Connections::Reuse)];
    let connections = section.get("connections", |r, n| r.word(n, &words)).unwrap_or(Connections::New);
    let stragglers = section.get("stragglers", stragglers);
    let shapes: Vec<Option<JobShape>> =
        SHAPES.into_iter().filter_map(|key| section.take(key).map(|node| shape(section.reader, key, node))).collect();
    if let [_, second, ..] = found[..] {
        return section.problem(second, format!("this job is already `{}`", found[0]), None);
    }
    let Some(shape) = shapes.into_iter().next() else {
        let help = Some(format!("it has one of {}", document::list(SHAPES)));
        return section.reader.problem(&section.at, "this job does not say what its tasks are", help);
    };
    let (shape, key) = (shape?, found[0]);
    let there = hosts.as_ref().map_or(topology.hosts(), |hosts| hosts.len() as u64);
    let at = if section.has("hosts") { "hosts" } else { key };
    let least = match &shape {
        JobShape::File(file) => u64::from(file.graph.ranks),
        _ => 2,
    };
    if there < least {
        return section.problem(at, format!("this job needs {least} hosts, and there are {there}"), None);
    }
    if there > u64::from(RANKS_MAX) || shape.tasks(there) > TASKS_MAX as u128 {
        let message = format!("this job has {} tasks on {there} hosts: at most {TASKS_MAX}", shape.tasks(there));
        return section.problem(at, message, Some("name fewer `hosts`".to_string()));
    }
    Some(TrafficKind::Job(Job { shape, hosts, repeat, think, connections, stragglers }))
}

fn shape(reader: &Reader, key: &str, node: &Node) -> Option<JobShape> {
    if key == "file" {
        return reader.job_file(node).map(JobShape::File);
    }
    let section = reader.section(node, &format!("`{key}`"))?;
    let bytes = section.require("bytes", |r, n| {
        r.within(n, |bytes: &Bytes| (1..=FLOW_BYTES_MAX).contains(&bytes.get()), "from 1 B to 1000000 GB")
    });
    let count = |key: &'static str| section.require(key, |r, n| r.count(n, 1, TASKS_MAX as u32));
    let time = |key: &'static str| section.get(key, computing).unwrap_or(Time::ZERO);
    let shape = match key {
        "mapreduce" => {
            let (mappers, reducers) = (count("mappers"), count("reducers"));
            let waves = section.get("waves", |r, n| r.count(n, 1, TASKS_MAX as u32)).unwrap_or(1);
            let (map, reduce) = (time("map"), time("reduce"));
            (|| Some(JobShape::MapReduce { mappers: mappers?, reducers: reducers?, bytes: bytes?, map, reduce, waves }))(
            )
        }
        "allreduce" => {
            let words = [("ring", Reduction::Ring), ("tree", Reduction::Tree)];
            let algorithm = section.get("algorithm", |r, n| r.word(n, &words)).unwrap_or(Reduction::Ring);
            let compute = time("compute");
            bytes.map(|bytes| JobShape::AllReduce(AllReduce { algorithm, bytes, compute }))
        }
        "all_to_all" => {
            let compute = time("compute");
            bytes.map(|bytes| JobShape::AllToAll { bytes, compute })
        }
        _ => {
            let (batches, compute) = (count("batches"), time("compute"));
            (|| Some(JobShape::Pipeline { bytes: bytes?, batches: batches?, compute }))()
        }
    };
    section.finish();
    shape
}

/// A time that may be zero.
fn computing(reader: &Reader, node: &Node) -> Option<Time> {
    let most = Scenario::DURATION_MAX;
    reader.within(node, |time: &Time| *time <= most, &format!("at most {most}"))
}

fn stragglers(reader: &Reader, node: &Node) -> Option<Stragglers> {
    let section = reader.section(node, "`stragglers`")?;
    let probability = section.require("probability", Reader::percentage);
    let factor = section.require("factor", |r, n| match r.number(n, 1000.0)? {
        factor if factor < 1.0 => r.problem(&n.at, format!("`{factor}` is out of range: from 1 to 1000"), None),
        factor => Some(factor),
    });
    section.finish();
    Some(Stragglers { probability: probability?, factor: factor? })
}

impl Reader<'_, '_> {
    fn job_file(&self, node: &Node) -> Option<JobFile> {
        let text = self.text(node)?;
        let read = match text {
            text if has_extension(text, "json") => Graph::from_json,
            text if has_extension(text, "goal") => Graph::from_goal,
            _ => {
                let help = "the path of a .json or a .goal file".to_string();
                return self.problem(&node.at, format!("`{text}` is not a job"), Some(help));
            }
        };
        let file = self.file(node)?;
        match read(&file.text) {
            Ok(graph) => Some(JobFile { file, graph: Arc::new(graph) }),
            Err(error) => self.problem_in_file(&file, error.line, &error.message),
        }
    }
}
