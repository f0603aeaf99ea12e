//! `--set key=value` and `[sweep]`: values put into the tree before it is read.

use document::Problem;
use document::tree::{Node, Origin, Path, Value, dotted, parse_document, parse_value};
use std::collections::BTreeSet;

/// An override: where its value goes.
pub(crate) type Set = (Path, Node);

/// Reads every override; the text of number `i` is source `i + 1`.
pub(crate) fn parse_sets(sets: &[String]) -> Result<Vec<Set>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut parsed = Vec::new();
    for (i, set) in sets.iter().enumerate() {
        match parse_set(i + 1, set) {
            Ok(set) => parsed.push(set),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(parsed) } else { Err(problems) }
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
        // A bare word, a path or `50 Mbit/s` is a text. What looks like broken TOML is not.
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

/// A TOML key, dotted.
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

/// A sweep: the keys that are varied.
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
    /// The last segment of an axis' key, or the whole key if another axis has the same last segment.
    pub(crate) fn short_name(&self, axis: &Axis) -> String {
        if dotted(&axis.path) == "policy.file" {
            return "policy".to_string();
        }
        let last = |axis: &Axis| axis.path.last().map(|(segment, _)| segment.clone());
        let alike = self.axes.iter().filter(|other| last(other) == last(axis)).count();
        last(axis).filter(|_| alike == 1).unwrap_or_else(|| dotted(&axis.path))
    }
}

/// Removes the sweep from the file's tree, and overrides of the sweep from the overrides.
///
/// An override of a swept key, or of something around it, ends that key's sweep: a value that was set applies to every run.
pub(crate) fn take_sweep(root: &mut Node, sets: &mut Vec<Set>) -> Result<Sweep, Vec<Problem>> {
    let mut sweep = Sweep { axes: Vec::new(), at: root.at.clone() };
    let mut problems = Vec::new();
    if let Value::Table(entries) = &mut root.value {
        let index = entries.iter().position(|entry| entry.key == "sweep");
        if let Some(entry) = index.map(|index| entries.remove(index)) {
            sweep.at = entry.key_at;
            collect_all(&entry.value, &Path::new(), &mut sweep.axes, &mut problems);
        }
    }
    let (of_sweep, others): (Vec<Set>, Vec<Set>) =
        std::mem::take(sets).into_iter().partition(|(path, _)| path[0].0 == "sweep");
    *sets = others;
    for (path, value) in of_sweep {
        let mut axes = Vec::new();
        let key: Path = path[1..].iter().flat_map(|(segment, at)| split(segment, at)).collect();
        collect_all(&value, &key, &mut axes, &mut problems);
        sweep.axes.retain(|axis| !within(&axis.path, &key));
        sweep.axes.extend(axes);
        sweep.at = value.at;
    }
    let mut seen = BTreeSet::new();
    for axis in &sweep.axes {
        if !seen.insert(dotted(&axis.path)) {
            let message = format!("`{}` is swept twice", dotted(&axis.path));
            problems.push(Problem { message, at: axis.path[0].1.clone(), help: None });
        }
    }
    sweep.axes.retain(|axis| !sets.iter().any(|(path, _)| within(&axis.path, path)));
    if problems.is_empty() { Ok(sweep) } else { Err(problems) }
}

/// Whether `path` begins with `outer`.
pub(crate) fn within(path: &Path, outer: &Path) -> bool {
    outer.len() <= path.len() && path.iter().zip(outer).all(|(one, other)| one.0 == other.0)
}

/// The segments of a key that may have been quoted as a whole.
fn split(key: &str, at: &Origin) -> Path {
    key.split('.').map(|segment| (segment.to_string(), at.clone())).collect()
}

/// The axes at and below a value of the sweep, which is at `path`.
fn collect_all(node: &Node, path: &Path, axes: &mut Vec<Axis>, problems: &mut Vec<Problem>) {
    let message = match &node.value {
        Value::Table(entries) => {
            for entry in entries {
                let inner = path.iter().cloned().chain(split(&entry.key, &entry.key_at)).collect();
                collect_all(&entry.value, &inner, axes, problems);
            }
            return;
        }
        _ if path.is_empty() => format!("`sweep` is a table of keys and lists, not {}", node.value.kind()),
        Value::Array(values) if values.is_empty() => "an empty sweep: no value, no run".to_string(),
        Value::Array(values) => {
            axes.push(Axis { path: path.clone(), values: values.clone() });
            return;
        }
        other => format!("a swept key has a list of values, not {}", other.kind()),
    };
    let key = if path.is_empty() { "seed".to_string() } else { dotted(path) };
    let help = Some(format!("write for example `\"{key}\" = [1, 2, 3]`"));
    problems.push(Problem { message, at: node.at.clone(), help });
}
