//! What a results folder has, to tell a repetition of it from other results.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::dataset::copies;
use crate::write::{SUMMARY, folder_name};
use crate::{RunResults, Summary};

/// What makes results: of one scenario each gives others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// The simulator.
    Simulator,
    /// The simulator, of a scale model.
    ScaleModel,
    /// The emulator.
    Emulator,
}

/// The runs of a results folder: by what they were made, and of which scenarios. Folders with the same content are repetitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    maker: Maker,
    version: String,
    /// By the run's folder, which is empty for a run by itself.
    runs: BTreeMap<String, Scenario>,
}

/// A scenario with every default, and the files that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Scenario {
    toml: String,
    files: BTreeMap<String, String>,
}

/// The part of a sweep's `summary.json` that is read again.
#[derive(Deserialize)]
struct Runs {
    runs: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    folder: String,
    summary: Summary,
}

/// The part of `run.json` that is read again.
#[derive(Deserialize)]
struct Info {
    #[serde(default)]
    emulations: Vec<serde_json::Value>,
}

impl Content {
    /// Of runs that are yet to be made, by this version of the program.
    pub fn new(maker: Maker, version: &str) -> Content {
        Content { maker, version: version.to_owned(), runs: BTreeMap::new() }
    }

    /// Adds a run of a sweep.
    pub fn add(&mut self, name: &str, toml: String, files: BTreeMap<String, String>) {
        let folder = folder_name(name).unwrap_or_default();
        self.runs.insert(folder, Scenario { toml, files });
    }

    /// The same with the only run's files in the results folder itself, as `write_run` has them.
    #[must_use]
    pub fn of_one_run(self) -> Content {
        let runs = self.runs.into_values().map(|scenario| (String::new(), scenario)).collect();
        Content { runs, ..self }
    }

    /// Of results in memory, as `write_run` or `write_sweep` writes them.
    pub fn of(runs: &[&RunResults]) -> Content {
        let version = runs.first().map(|run| run.summary.version.as_str()).unwrap_or_default();
        let mut content = Content::new(Maker::Simulator, version);
        for run in runs {
            let files = run.files.iter().map(|(name, text)| (name.clone(), text.to_string())).collect();
            content.add(&run.name, run.scenario_toml.clone(), files);
        }
        if runs.len() == 1 { content.of_one_run() } else { content }
    }

    /// Of the folder `dir`; `None` if it holds no results, or none that this version of the program can read.
    pub fn at(dir: &Path) -> Option<Content> {
        let read = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
        let summary = read(SUMMARY)?;
        let parts = match serde_json::from_str::<Runs>(&summary) {
            Ok(Runs { runs }) => runs,
            Err(_) => vec![serde_json::from_str::<Part>(&summary).ok()?],
        };
        let emulated = read("run.json").and_then(|info| serde_json::from_str::<Info>(&info).ok());
        let model = |part: &Part| part.summary.slowdown.as_ref().is_some_and(|slowdown| slowdown.all.model.is_some());
        let maker = if emulated.is_some_and(|info| !info.emulations.is_empty()) {
            Maker::Emulator
        } else if parts.iter().any(model) {
            Maker::ScaleModel
        } else {
            Maker::Simulator
        };
        let mut content = Content::new(maker, &parts.first()?.summary.version);
        for part in parts {
            let run = dir.join(&part.folder);
            let toml = std::fs::read_to_string(run.join("scenario.toml")).ok()?;
            let mut files = BTreeMap::new();
            if run.join("files").is_dir() {
                copies(&run, "files", &mut files).ok()?;
            }
            content.runs.insert(part.folder, Scenario { toml, files });
        }
        Some(content)
    }

    /// Whether the folder `dir` has results that are not of this content, so that to replace it would lose them.
    pub fn would_lose(&self, dir: &Path) -> bool {
        dir.join(SUMMARY).is_file() && Content::at(dir).as_ref() != Some(self)
    }
}
