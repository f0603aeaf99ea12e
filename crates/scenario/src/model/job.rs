//! Jobs: tasks that compute and send, in the order of a graph.

use super::{Connections, DataFile, Percent, Think};
use crate::Graph;
use serde::Serialize;
use std::sync::Arc;
use units::{Bytes, Time};

/// A job, run once or repeatedly.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Job {
    /// Its tasks.
    #[serde(flatten)]
    pub shape: JobShape,
    /// Its hosts, in the order of ranks; the topology's first ones, as many as it needs, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// How many times it runs, one after another.
    pub repeat: u32,
    /// Between a run's end and the next one's beginning; nothing if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<Think>,
    /// Whether each message opens a connection, or a pair of hosts keeps one, on which messages follow one another.
    pub connections: Connections,
    /// Tasks that compute for longer; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stragglers: Option<Stragglers>,
}

/// Tasks that take longer than planned.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Stragglers {
    /// Of a task that computes, to be one.
    pub probability: Percent,
    /// Its time over the planned one; from 1 to 1000.
    pub factor: f64,
}

/// What a job's tasks are.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobShape {
    /// Mappers compute and send to every reducer, which computes when it has all. Mapper i is on the job's host i, reducer j on
    /// host `mappers` + j, modulo the number of hosts.
    #[serde(rename = "mapreduce")]
    MapReduce {
        /// Mappers that run at once.
        mappers: u32,
        /// Reducers.
        reducers: u32,
        /// Bytes of the whole shuffle, divided equally.
        bytes: Bytes,
        /// How long a mapper computes.
        map: Time,
        /// How long a reducer computes.
        reduce: Time,
        /// How many map tasks each mapper does, one after another.
        waves: u32,
    },
    /// All hosts get the sum of all hosts' data.
    #[serde(rename = "allreduce")]
    AllReduce(AllReduce),
    /// Each host sends to each.
    AllToAll {
        /// Bytes of each message.
        bytes: Bytes,
        /// How long a host computes first.
        compute: Time,
    },
    /// Each host is a stage that computes batches and passes them on.
    Pipeline {
        /// Bytes of a batch.
        bytes: Bytes,
        /// How many.
        batches: u32,
        /// How long a stage computes a batch.
        compute: Time,
    },
    /// As a file says: `.json`, or `.goal`.
    File(JobFile),
}

/// How all hosts get a sum.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AllReduce {
    /// In which order.
    pub algorithm: Reduction,
    /// Bytes of each host's data.
    pub bytes: Bytes,
    /// How long a host computes first.
    pub compute: Time,
}

/// Orders of an allreduce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// Parts of the data go round a ring twice. The default.
    Ring,
    /// All data go up a binary tree and down again.
    Tree,
}

/// A file that lists a job's tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFile {
    /// The file.
    pub file: DataFile,
    /// Its tasks.
    pub graph: Arc<Graph>,
}

impl Serialize for JobFile {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.file.serialize(s)
    }
}
