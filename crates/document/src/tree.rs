//! The file as a tree in which every value has its origin: the file, a `--set`, or a sweep.
//!
//! Reading goes through this tree and not straight from the file, because a value put in by `--set` or by a sweep
//! must point at what the user typed, and because one broken value must not hide the next.

#[cfg(test)]
mod tests;

use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Where something was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Index of the text: 0 is the file itself.
    pub source: usize,
    /// Bytes of that text.
    pub span: Range<usize>,
}

/// A value and where it was written.
#[derive(Debug, Clone)]
pub struct Node {
    /// What was written.
    pub value: Value,
    /// Where.
    pub at: Origin,
}

/// What can be written.
#[derive(Debug, Clone)]
pub enum Value {
    /// Between quotes.
    Text(String),
    /// Digits.
    /// `None` if it does not fit even an i128.
    Integer(Option<i128>),
    /// With a point or an exponent.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// A date or a time of day, which no key here accepts.
    Date,
    /// In brackets.
    Array(Vec<Node>),
    /// Keys and values, in the order of the file.
    Table(Vec<Entry>),
}

/// A key of a table.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name, without quotes.
    pub key: String,
    /// Where the key is.
    pub key_at: Origin,
    /// What it is set to.
    pub value: Node,
}

impl Value {
    /// What it is, with an article, for "expected …, found …".
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a number",
            Value::Bool(_) => "true or false",
            Value::Date => "a date",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

/// A value in one line, for run names: texts without quotes, tables as `key=value`.
pub fn one_line(value: &Value) -> String {
    let join = |parts: Vec<String>| parts.join("+");
    match value {
        // Names of runs are in results, which contain nothing about the machine.
        Value::Text(text) if text.starts_with('/') => text.rsplit('/').next().unwrap_or(text).to_string(),
        Value::Text(text) => text.clone(),
        Value::Integer(n) => n.map_or_else(|| "?".into(), |n| n.to_string()),
        Value::Float(x) => x.to_string(),
        Value::Bool(b) => b.to_string(),
        Value::Date => "date".into(),
        Value::Array(items) => join(items.iter().map(|item| one_line(&item.value)).collect()),
        Value::Table(entries) => join(
            entries
                .iter()
                .map(|entry| match &entry.value.value {
                    inner @ Value::Table(_) => format!("{}.{}", entry.key, one_line(inner)),
                    inner => format!("{}={}", entry.key, one_line(inner)),
                })
                .collect(),
        ),
    }
}

/// A syntax error of a TOML text.
#[derive(Debug)]
pub struct Syntax {
    /// The parser's message, in one line.
    pub message: String,
    /// Bytes of the text.
    pub span: Range<usize>,
}

/// Reads a whole file.
///
/// # Errors
/// Syntax errors, possibly several.
pub fn parse_document(source: usize, text: &str) -> Result<Node, Vec<Syntax>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors.iter().map(|error| syntax(error, text)).collect());
    }
    let value = table_value(table.get_ref(), source, 0);
    Ok(Node { value, at: Origin { source, span: 0..0 } })
}

/// Reads one value that begins at byte `offset` of the text numbered `source`.
///
/// # Errors
/// It is not a TOML value.
pub fn parse_value(source: usize, offset: usize, text: &str) -> Result<Node, Syntax> {
    let value = DeValue::parse(text).map_err(|error| syntax(&error, text))?;
    Ok(node(value.get_ref(), value.span(), source, offset))
}

fn syntax(error: &toml::de::Error, text: &str) -> Syntax {
    Syntax { message: error.message().trim().replace('\n', ", "), span: error.span().unwrap_or(text.len()..text.len()) }
}

fn table_value(table: &DeTable<'_>, source: usize, offset: usize) -> Value {
    let entry = |(key, value): (&toml::Spanned<std::borrow::Cow<'_, str>>, &toml::Spanned<DeValue<'_>>)| Entry {
        key: key.get_ref().to_string(),
        key_at: Origin { source, span: shifted(key.span(), offset) },
        value: node(value.get_ref(), value.span(), source, offset),
    };
    Value::Table(table.iter().map(entry).collect())
}

fn node(value: &DeValue<'_>, span: Range<usize>, source: usize, offset: usize) -> Node {
    let plain = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(n) => Value::Integer(i128::from_str_radix(n.as_str(), n.radix()).ok()),
        DeValue::Float(x) => Value::Float(x.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(b) => Value::Bool(*b),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|item| node(item.get_ref(), item.span(), source, offset)).collect())
        }
        DeValue::Table(table) => table_value(table, source, offset),
    };
    Node { value: plain, at: Origin { source, span: shifted(span, offset) } }
}

fn shifted(span: Range<usize>, offset: usize) -> Range<usize> {
    span.start + offset..span.end + offset
}

/// A dotted path: its segments, each with where it was written.
pub type Path = Vec<(String, Origin)>;

/// The path as it is written.
pub fn dotted(path: &Path) -> String {
    path.iter().map(|(segment, _)| segment.as_str()).collect::<Vec<_>>().join(".")
}

/// Puts `value` at `path` below `root`, making tables on the way. Entries of a list are reached by their number from 0
/// or by their `name`.
///
/// # Errors
/// A message and the segment that it is about, if the path leads through something else than a table or a list.
pub fn put(root: &mut Node, path: &[(String, Origin)], value: Node) -> Result<(), (String, Origin)> {
    let Some(((segment, segment_at), rest)) = path.split_first() else {
        *root = value;
        return Ok(());
    };
    match &mut root.value {
        Value::Table(entries) => {
            let index = entries.iter().position(|entry| entry.key == *segment).unwrap_or_else(|| {
                let empty = Node { value: Value::Table(Vec::new()), at: segment_at.clone() };
                entries.push(Entry { key: segment.clone(), key_at: segment_at.clone(), value: empty });
                entries.len() - 1
            });
            if rest.is_empty() {
                entries[index].key_at = segment_at.clone();
            }
            put(&mut entries[index].value, rest, value)
        }
        Value::Array(items) => {
            let names: Vec<String> = (0..items.len()).map(|i| entry_name(&items[i]).unwrap_or(i.to_string())).collect();
            let index = segment.parse().ok().filter(|i| *i < items.len());
            match index.or_else(|| names.iter().position(|name| name == segment)) {
                Some(index) => put(&mut items[index], rest, value),
                None => Err((
                    format!("no entry `{segment}` in this list; it has: {}", names.join(", ")),
                    segment_at.clone(),
                )),
            }
        }
        other => {
            Err((format!("`{segment}` would be a key inside {}, which has none", other.kind()), segment_at.clone()))
        }
    }
}

/// The `name` of a list's entry.
fn entry_name(node: &Node) -> Option<String> {
    let Value::Table(entries) = &node.value else { return None };
    entries.iter().find(|entry| entry.key == "name").and_then(|entry| match &entry.value.value {
        Value::Text(name) => Some(name.clone()),
        _ => None,
    })
}
