//! A job in JSON: `{ "ranks": 2, "tasks": [ … ] }`, with one object a task. A task needs tasks above it, so there is no cycle.

use super::{BYTES_MAX, Graph, GraphError, RANKS_MAX, TASKS_MAX, Work};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use units::{Bytes, Time};

/// One task as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: String,
    rank: Option<u32>,
    compute: Option<String>,
    from: Option<u32>,
    to: Option<u32>,
    send: Option<String>,
    coflow: Option<String>,
    #[serde(default)]
    after: Vec<String>,
}

#[derive(Default)]
struct Read {
    graph: Graph,
    ids: BTreeMap<String, u32>,
}

pub fn read(text: &str) -> Result<Graph, GraphError> {
    let mut read = Read::default();
    let mut json = serde_json::Deserializer::from_str(text);
    let done = json.deserialize_map(Top(&mut read)).and_then(|()| json.end());
    match done {
        Ok(()) => Ok(read.graph),
        Err(error) => {
            let message = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            let message = message.strip_suffix(&place).unwrap_or(&message).to_string();
            Err(GraphError { line: error.line().clamp(1, text.lines().count().max(1)), message })
        }
    }
}

/// The file's object.
struct Top<'r>(&'r mut Read);

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object with `ranks` and `tasks`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut has_tasks = false;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "ranks" => {
                    let ranks = map.next_value()?;
                    if !(1..=RANKS_MAX).contains(&ranks) {
                        return Err(A::Error::custom(format!("`ranks` is from 1 to {RANKS_MAX}")));
                    }
                    self.0.graph.ranks = ranks;
                }
                "tasks" if self.0.graph.ranks == 0 => {
                    return Err(A::Error::custom("`ranks`, the number of hosts, comes before `tasks`"));
                }
                "tasks" if !has_tasks => {
                    map.next_value_seed(Tasks(self.0))?;
                    has_tasks = true;
                }
                key => return Err(A::Error::custom(format!("`{key}` is not expected here: `ranks`, then `tasks`"))),
            }
        }
        if self.0.graph.tasks.is_empty() {
            return Err(A::Error::custom("there is no task"));
        }
        Ok(())
    }
}

/// Its list.
struct Tasks<'r>(&'r mut Read);

impl<'de> DeserializeSeed<'de> for Tasks<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Tasks<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list of tasks")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(One(self.0))?.is_some() {}
        Ok(())
    }
}

/// One of the list's: added while it is read, so that an error has its line.
struct One<'r>(&'r mut Read);

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a task: an object with an `id`")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let task = Written::deserialize(MapAccessDeserializer::new(map))?;
        self.0.add(task).map_err(A::Error::custom)
    }
}

impl Read {
    fn add(&mut self, task: Written) -> Result<(), String> {
        let id = task.id.clone();
        let named = |message: String| format!("task `{id}`: {message}");
        if self.graph.tasks.len() >= TASKS_MAX {
            return Err(named(format!("too many tasks: at most {TASKS_MAX}")));
        }
        if self.ids.contains_key(&id) {
            return Err(named("a task above has this id".into()));
        }
        let needed =
            |id: &String| self.ids.get(id).copied().ok_or_else(|| named(format!("there is no `{id}` above it")));
        let needs = task.after.iter().map(needed).collect::<Result<Vec<u32>, String>>()?;
        let work = self.work(task).map_err(named)?;
        let number = self.graph.add(work, needs);
        self.ids.insert(id, number);
        Ok(())
    }

    fn work(&mut self, task: Written) -> Result<Work, String> {
        let ranks = self.graph.ranks;
        let known = |rank: u32| match rank {
            rank if rank < ranks => Ok(rank),
            rank => Err(format!("there is no rank {rank}: ranks are from 0 to {}", ranks - 1)),
        };
        match task {
            Written {
                rank: Some(rank), compute: Some(time), from: None, to: None, send: None, coflow: None, ..
            } => {
                known(rank)?;
                let most = crate::Scenario::DURATION_MAX;
                let time = time.parse::<Time>().ok().filter(|time| *time <= most);
                time.map(|time| Work::Compute { time })
                    .ok_or_else(|| format!("`compute` is a time such as \"10 ms\", at most {most}"))
            }
            Written {
                from: Some(from), to: Some(to), send: Some(bytes), rank: None, compute: None, coflow, ..
            } => {
                let (from, to) = (known(from)?, known(to)?);
                if from == to {
                    return Err(format!("rank {from} would send to itself"));
                }
                let bytes = bytes.parse::<Bytes>().ok().filter(|bytes| (1..=BYTES_MAX).contains(&bytes.get()));
                let bytes = bytes.ok_or("`send` is a size such as \"1 MB\", from 1 B to 1000000 GB")?;
                let coflow = self.graph.coflow(coflow.as_deref().unwrap_or("all"));
                Ok(Work::Send { from, to, bytes, coflow })
            }
            _ => Err("a task has `rank` and `compute`, or `from`, `to` and `send`".into()),
        }
    }
}
