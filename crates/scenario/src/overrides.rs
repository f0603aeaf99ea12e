//! `--set key=value` and `[sweep]`: values put into the tree before it is read.

use crate::diagnostic::Problem;
use crate::tree::{Entry, Node, Origin, Path, Value, dotted, parse_document, parse_value, put};
use std::collections::BTreeSet;

/// Puts every override into the tree; the text of number `i` is source `i + 1`. Gives the paths that were set.
pub(crate) fn apply_sets(root: &mut Node, sets: &[String]) -> Result<BTreeSet<String>, Vec<Problem>> {
    let mut paths = BTreeSet::new();
    let mut problems = Vec::new();
    for (i, set) in sets.iter().enumerate() {
        let result = parse_set(i + 1, set).and_then(|(path, value)| {
            put(root, &path, value).map_err(|(message, at)| Problem { message, at, help: None })?;
            Ok(dotted(&path))
        });
        match result {
            Ok(path) => drop(paths.insert(path)),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(paths) } else { Err(problems) }
}

fn parse_set(source: usize, text: &str) -> Result<(Path, Node), Problem> {
    let problem = |message: String, span: std::ops::Range<usize>| Problem {
        message,
        at: Origin { source, span },
        help: Some("write key=value with a dotted key, such as tcp.cc=vegas".to_string()),
    };
    let Some(equals) = unquoted_equals(text) else {
        return Err(problem(format!("`{text}` has no `=`"), 0..text.len()));
    };
    let key = &text[..equals];
    let path = parse_key(source, key).ok_or_else(|| problem(format!("`{key}` is not a dotted key"), 0..equals))?;
    let written = &text[equals + 1..];
    let value = written.trim();
    let start = equals + 1 + (written.len() - written.trim_start().len());
    let at = Origin { source, span: start..start + value.len() };
    match parse_value(source, start, value) {
        Ok(node) => Ok((path, node)),
        // A bare word, a path, `50 Mbit/s`: a text. What looks like broken TOML is not.
        Err(_) if !value.is_empty() && !value.starts_with(['"', '\'', '[', '{']) => {
            Ok((path, Node { value: Value::Text(value.to_string()), at }))
        }
        Err(error) => Err(Problem { message: format!("`{value}` is not a value: {}", error.message), at, help: None }),
    }
}

/// The first `=` outside quotes.
fn unquoted_equals(text: &str) -> Option<usize> {
    let mut quote = None;
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (None, '=') => return Some(i),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    None
}

/// A TOML key, dotted; segments of a quoted segment count as its own when they lead through `sweep`.
fn parse_key(source: usize, key: &str) -> Option<Path> {
    if key.contains('\n') {
        return None;
    }
    let root = parse_document(source, &format!("{key} = 0")).ok()?;
    let mut path = Path::new();
    let mut node = &root;
    while let Value::Table(entries) = &node.value {
        let [entry] = &entries[..] else { return None };
        path.push((entry.key.clone(), entry.key_at.clone()));
        node = &entry.value;
    }
    Some(path)
}

/// What is varied.
#[derive(Debug)]
pub(crate) struct Sweep {
    pub axes: Vec<Axis>,
    pub at: Origin,
}

/// One key and its values, of which there is at least one.
#[derive(Debug)]
pub(crate) struct Axis {
    pub path: Path,
    pub values: Vec<Node>,
}

impl Sweep {
    /// The last segment of an axis' key, or the whole key if another axis ends alike.
    pub(crate) fn short_name(&self, axis: &Axis) -> String {
        let last = |axis: &Axis| axis.path.last().map(|(segment, _)| segment.clone());
        let alike = self.axes.iter().filter(|other| last(other) == last(axis)).count();
        last(axis).filter(|_| alike == 1).unwrap_or_else(|| dotted(&axis.path))
    }
}

/// Takes the `sweep` table out of the tree.
pub(crate) fn take_sweep(root: &mut Node) -> Option<Entry> {
    let Value::Table(entries) = &mut root.value else { return None };
    let index = entries.iter().position(|entry| entry.key == "sweep")?;
    Some(entries.remove(index))
}

/// The axes of a sweep: a list of values at each dotted key, quoted or not.
pub(crate) fn sweep_of(entry: Option<&Entry>) -> Result<Sweep, Vec<Problem>> {
    let Some(entry) = entry else {
        return Ok(Sweep { axes: Vec::new(), at: Origin { source: 0, span: 0..0 } });
    };
    let mut sweep = Sweep { axes: Vec::new(), at: entry.key_at.clone() };
    let mut problems = Vec::new();
    match &entry.value.value {
        Value::Table(entries) => {
            for entry in entries {
                collect(entry, &Path::new(), &mut sweep.axes, &mut problems);
            }
        }
        other => problems.push(Problem {
            message: format!("`sweep` is a table of keys and lists, not {}", other.kind()),
            at: entry.value.at.clone(),
            help: None,
        }),
    }
    let mut seen = BTreeSet::new();
    for axis in &sweep.axes {
        if !seen.insert(dotted(&axis.path)) {
            let message = format!("`{}` is swept twice", dotted(&axis.path));
            problems.push(Problem { message, at: axis.path[0].1.clone(), help: None });
        }
    }
    if problems.is_empty() { Ok(sweep) } else { Err(problems) }
}

/// The axes at and below one key of the sweep.
fn collect(entry: &Entry, above: &Path, axes: &mut Vec<Axis>, problems: &mut Vec<Problem>) {
    let mut path = above.clone();
    path.extend(entry.key.split('.').map(|segment| (segment.to_string(), entry.key_at.clone())));
    let mut problem = |message: String, at: &Origin| {
        let help = Some(format!("write for example `\"{}\" = [1, 2, 3]`", dotted(&path)));
        problems.push(Problem { message, at: at.clone(), help });
    };
    match &entry.value.value {
        Value::Array(values) if values.is_empty() => {
            problem("an empty sweep: no value, no run".into(), &entry.value.at)
        }
        Value::Array(values) => axes.push(Axis { path, values: values.clone() }),
        Value::Table(entries) => {
            for entry in entries {
                collect(entry, &path, axes, problems);
            }
        }
        other => problem(format!("a swept key has a list of values, not {}", other.kind()), &entry.value.at),
    }
}
