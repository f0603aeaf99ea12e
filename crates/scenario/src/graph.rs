//! A job as a graph: tasks that compute or send, each after the tasks that it needs.

mod goal;
mod json;
mod shapes;

use std::sync::Arc;
use units::{Bytes, Time};

/// Most tasks of a job.
pub(crate) const TASKS_MAX: usize = 1 << 20;
/// Most bytes of one message: sums over many stay within 64 bits.
pub(crate) const BYTES_MAX: u64 = 1_000_000_000_000_000;
/// Most ranks of a file.
pub(crate) const RANKS_MAX: u32 = 1 << 20;

/// A job's tasks. Hosts are numbered by their place in the job's list: ranks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Graph {
    /// Number of ranks.
    pub ranks: u32,
    /// The tasks; the graph has no cycle.
    pub tasks: Vec<Task>,
    /// Names of the coflows, by number.
    pub coflows: Vec<Arc<str>>,
}

/// A task of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// What is done.
    pub work: Work,
    /// The tasks, by number, that must have ended before it begins.
    pub needs: Vec<u32>,
}

/// What a task does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// A rank computes. Tasks of a rank that do not need one another compute at the same time.
    Compute {
        /// How long; zero: the task only joins others.
        time: Time,
    },
    /// One rank sends to another; the task ends when the last byte has arrived.
    Send {
        /// Sending rank.
        from: u32,
        /// Receiving rank, another one.
        to: u32,
        /// Payload; at least 1.
        bytes: Bytes,
        /// The coflow that it belongs to.
        coflow: u32,
    },
}

/// Why a file is not a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct GraphError {
    /// Line of the file, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Graph {
    /// Reads a job in JSON.
    ///
    /// # Errors
    /// [`GraphError`] at the first mistake.
    pub fn from_json(text: &str) -> Result<Graph, GraphError> {
        json::read(text)
    }

    /// Reads a schedule in GOAL, as LogGOPSim and ATLAHS have it.
    ///
    /// # Errors
    /// [`GraphError`] at the first mistake.
    pub fn from_goal(text: &str) -> Result<Graph, GraphError> {
        goal::read(text)
    }

    /// The number of a coflow of this name.
    fn coflow(&mut self, name: &str) -> u32 {
        let known = self.coflows.iter().position(|known| **known == *name);
        known.unwrap_or_else(|| {
            self.coflows.push(name.into());
            self.coflows.len() - 1
        }) as u32
    }

    /// Adds a task; its number.
    fn add(&mut self, work: Work, needs: Vec<u32>) -> u32 {
        self.tasks.push(Task { work, needs });
        (self.tasks.len() - 1) as u32
    }

    /// A task of a cycle, if there is one.
    fn cycle(&self) -> Option<usize> {
        let mut missing: Vec<usize> = self.tasks.iter().map(|task| task.needs.len()).collect();
        let after = self.dependents();
        let mut ready: Vec<usize> = (0..self.tasks.len()).filter(|task| missing[*task] == 0).collect();
        while let Some(task) = ready.pop() {
            for next in &after[task] {
                missing[*next as usize] -= 1;
                if missing[*next as usize] == 0 {
                    ready.push(*next as usize);
                }
            }
        }
        missing.iter().position(|missing| *missing > 0)
    }

    /// For each task, those that need it.
    pub fn dependents(&self) -> Vec<Vec<u32>> {
        let mut after = vec![Vec::new(); self.tasks.len()];
        for (number, task) in (0..).zip(&self.tasks) {
            for needed in &task.needs {
                after[*needed as usize].push(number);
            }
        }
        after
    }
}
