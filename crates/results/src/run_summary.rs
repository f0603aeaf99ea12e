//! The short form of one run, without tables: its name, its parameters, its numbers.

use serde::{Serialize, Serializer};

use crate::{RunResults, Summary};

/// One run in `summary.json`, and in JSON on stdout.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary<'a> {
    /// Name of the run.
    pub name: &'a str,
    /// Its folder inside the sweep's; `None` for a run by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Its parameters, in order.
    #[serde(serialize_with = "in_order")]
    pub parameters: &'a [(String, String)],
    /// Its numbers.
    pub summary: &'a Summary,
}

impl<'a> RunSummary<'a> {
    /// The summary of one run by itself.
    pub fn of(run: &'a RunResults) -> Self {
        Self { name: &run.name, folder: None, parameters: &run.parameters, summary: &run.summary }
    }

    /// The bytes of `summary.json`.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.expect("every number of a summary is finite, or null") + "\n"
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands a reference to the field
fn in_order<S: Serializer>(pairs: &&[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}
