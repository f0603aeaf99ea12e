//! What a backend cannot do of a checked scenario, reported at its place in the file.

use crate::model::Scenario;
use crate::overrides::{parse_sets, take_sweep};
use document::tree::{Node, Origin, Value, parse_document, put};
use document::{Diagnostic, Problem, Source};

/// A key whose value a backend cannot do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objection {
    /// Dotted: `tcp.prr`, `traffic.0.cc`.
    pub key: String,
    /// Why not.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl Scenario {
    /// The objections to the scenario `text`, of the file `name`, with the overrides `sets`, each at its place: the key, or
    /// the nearest table around it if the key has its default or comes from a preset.
    ///
    /// # Panics
    /// Without objections.
    pub fn objections(name: &str, text: &str, sets: &[String], objections: &[Objection]) -> Diagnostic {
        let mut sources = vec![Source { name: name.to_string(), text: text.into() }];
        sources.extend(sets.iter().map(|set| Source { name: "--set".into(), text: set.as_str().into() }));
        let root = tree(text, sets);
        let problem = |objection: &Objection| Problem {
            message: format!("`{}`: {}", objection.key, objection.message),
            at: root.as_ref().map_or(Origin { source: 0, span: 0..0 }, |root| place(root, &objection.key)),
            help: objection.help.clone(),
        };
        Diagnostic::new(objections.iter().map(problem).collect(), &sources)
    }
}

/// The file with all overrides; of a sweep the first values. None if it has changed since, and cannot be read any more.
fn tree(text: &str, sets: &[String]) -> Option<Node> {
    let mut root = parse_document(0, text).ok()?;
    let mut sets = parse_sets(sets).ok()?;
    let sweep = take_sweep(&mut root, &mut sets).ok()?;
    for axis in &sweep.axes {
        put(&mut root, &axis.path, axis.values.first()?.clone()).ok()?;
    }
    for (path, value) in sets {
        put(&mut root, &path, value).ok()?;
    }
    Some(root)
}

/// Where the key is written, or else the innermost table around it that is.
fn place(root: &Node, key: &str) -> Origin {
    let (mut node, mut at) = (root, root.at.clone());
    for segment in key.split('.') {
        match &node.value {
            Value::Table(entries) => {
                let Some(entry) = entries.iter().find(|entry| entry.key == segment) else { break };
                at = entry.key_at.clone();
                node = &entry.value;
            }
            Value::Array(items) => {
                let Some(item) = segment.parse().ok().and_then(|i: usize| items.get(i)) else { break };
                at = item.at.clone();
                node = item;
            }
            _ => break,
        }
    }
    at
}
