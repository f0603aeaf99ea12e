//! A scenario as TOML, with copies of the files that it names.

use crate::model::{Algorithm, DataFile, Job, JobShape, Scenario, Sizes, SizesSource, TrafficKind, Treatment};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a run's folder keeps of its scenario: loading `toml` with `files` beside it gives the same bundle again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// The scenario, every default written out.
    pub toml: String,
    /// Copies of the files that it names: path relative to the scenario and text. The path is `files/NAME`, or `files/2/NAME`
    /// where another text has that name: a file's name is the algorithm's name, so it stays.
    pub files: BTreeMap<String, Arc<str>>,
}

impl Scenario {
    /// This scenario as TOML with every default written out, naming its files as it does now.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a scenario has only values that TOML has")
    }

    /// This scenario for a folder of its own.
    pub fn bundle(&self) -> Bundle {
        let mut scenario = self.clone();
        let mut files: BTreeMap<String, Arc<str>> = BTreeMap::new();
        let mut keep = |data: &mut DataFile| {
            let base = data.file.base_name().to_string();
            let numbered = (2..).map(|n: u32| format!("files/{n}/{base}"));
            let mut names = std::iter::once(format!("files/{base}")).chain(numbered);
            // The same text under the same name is one file; another text gets another path.
            let name = names.find(|name| files.get(name).is_none_or(|text| *text == data.text));
            let name = name.expect("numbers do not end");
            files.insert(name.clone(), data.text.clone());
            data.file.written = name;
        };
        let mut keep_algorithm = |cc: &mut Algorithm| {
            if let Algorithm::File(file) = cc {
                keep(file);
            }
        };
        keep_algorithm(&mut scenario.tcp.cc);
        for traffic in &mut scenario.traffic {
            traffic.cc.iter_mut().for_each(&mut keep_algorithm);
        }
        for rule in scenario.enforcer.iter_mut().flat_map(|enforcer| &mut enforcer.rule) {
            if let Treatment::Enforce(cc) = &mut rule.treatment {
                keep_algorithm(cc);
            }
        }
        for traffic in &mut scenario.traffic {
            match &mut traffic.kind {
                TrafficKind::Trace { file, .. }
                | TrafficKind::Poisson { sizes: Sizes { source: SizesSource::File(file), .. }, .. } => keep(file),
                TrafficKind::Job(Job { shape: JobShape::File(job), .. }) => keep(&mut job.file),
                _ => {}
            }
        }
        if let Some(control) = &mut scenario.policy {
            keep(&mut control.file);
        }
        Bundle { toml: scenario.to_toml(), files }
    }
}
