//! From a tree to values: every key that a reader reads is allowed, every other one is a mistake.
//!
//! A [`Section`] is one table being read. It records the keys that its reader asks for, so that the list of allowed keys
//! in a message is always that of the schema. Problems are collected and reading continues with the default, so
//! that all mistakes are reported at once.

#[cfg(test)]
mod tests;

use crate::diagnostic::{Problem, list, suggestion};
use crate::tree::{Entry, Node, Origin, Value};
use std::cell::RefCell;
use std::fmt::Display;
use std::ops::Deref;
use std::str::FromStr;

/// The largest integer that TOML has.
pub const INTEGER_MAX: u64 = i64::MAX as u64;

/// Minimum percentage.
const PERCENT_MIN: f64 = 0.0001;

/// Reads single values and collects what is wrong with them. A reading function ends with `None` where it has noted a
/// problem.
#[derive(Debug, Default)]
pub struct Values {
    problems: RefCell<Vec<Problem>>,
}

impl Values {
    /// Notes a problem; `None`, so that a reading function can end with it.
    pub fn problem<T>(&self, at: &Origin, message: impl Into<String>, help: impl Into<Option<String>>) -> Option<T> {
        let problem = Problem { message: message.into(), at: at.clone(), help: help.into() };
        self.problems.borrow_mut().push(problem);
        None
    }

    /// The problems so far.
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems.into_inner()
    }

    /// Notes that something else was expected here.
    pub fn expected<T>(&self, node: &Node, rule: &str) -> Option<T> {
        self.problem(&node.at, format!("{rule}, not {}", node.value.kind()), None)
    }

    /// A text in quotes.
    pub fn text<'n>(&self, node: &'n Node) -> Option<&'n str> {
        match &node.value {
            Value::Text(text) => Some(text),
            _ => self.expected(node, "this is a text in quotes"),
        }
    }

    /// A name for files and tables: letters, digits, `_`, `.` and `-`, at most 64.
    pub fn identifier(&self, node: &Node) -> Option<String> {
        let text = self.text(node)?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if text.is_empty() || text.len() > 64 || !text.chars().all(allowed) || text.starts_with(['.', '-']) {
            let message = format!("`{text}` is not a name");
            let help = "a name has 1 to 64 letters, digits, `_`, `.` or `-` and begins with a letter, a digit or `_`";
            return self.problem(&node.at, message, Some(help.to_string()));
        }
        Some(text.to_string())
    }

    /// `true` or `false`.
    pub fn boolean(&self, node: &Node) -> Option<bool> {
        match node.value {
            Value::Bool(value) => Some(value),
            _ => self.expected(node, "this is `true` or `false`"),
        }
    }

    /// An integer from `least` to `most`.
    pub fn integer(&self, node: &Node, least: u64, most: u64) -> Option<u64> {
        // The largest integer of TOML is not a useful bound in a message.
        let rule = if most == INTEGER_MAX { format!("at least {least}") } else { format!("from {least} to {most}") };
        let Value::Integer(value) = node.value else {
            return self.expected(node, &format!("this is an integer, {rule}"));
        };
        let fitting = value.and_then(|value| u64::try_from(value).ok()).filter(|value| (least..=most).contains(value));
        if fitting.is_none() {
            let written = value.map_or_else(|| "this number".to_string(), |value| format!("`{value}`"));
            self.problem::<()>(&node.at, format!("{written} is out of range: {rule}"), None);
        }
        fitting
    }

    /// The same, for a u32; `least` and `most` fit one.
    pub fn count(&self, node: &Node, least: u32, most: u32) -> Option<u32> {
        self.integer(node, u64::from(least), u64::from(most)).map(|value| value as u32)
    }

    /// A finite number more than zero and at most `most`.
    pub fn number(&self, node: &Node, most: f64) -> Option<f64> {
        let value = match node.value {
            Value::Float(value) => value,
            Value::Integer(Some(value)) => value as f64,
            _ => return self.expected(node, "this is a number"),
        };
        if value > 0.0 && value <= most {
            return Some(value);
        }
        self.problem(&node.at, format!("`{value}` is out of range: more than 0, at most {most}"), None)
    }

    /// `"30 %"`: more than zero, so that derived values stay within bounds, and at most 100.
    pub fn percentage(&self, node: &Node) -> Option<f64> {
        let rule = "a percentage is written in quotes with its sign, such as \"30 %\"";
        let Value::Text(text) = &node.value else { return self.expected(node, rule) };
        let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        match number {
            None => self.problem(&node.at, format!("`{text}` is not a percentage"), Some(rule.to_string())),
            Some(value) if (PERCENT_MIN..=100.0).contains(&value) => Some(value),
            Some(_) => self.problem(&node.at, format!("`{text}` is out of range: from {PERCENT_MIN} % to 100 %"), None),
        }
    }

    /// A quantity with its unit.
    pub fn quantity<T: FromStr<Err: Display>>(&self, node: &Node) -> Option<T> {
        let Value::Text(text) = &node.value else {
            return self.expected(node, "a quantity is written in quotes with its unit, such as \"10 ms\"");
        };
        text.parse().map_or_else(|error: T::Err| self.problem(&node.at, error.to_string(), None), Some)
    }

    /// A quantity more than zero.
    pub fn positive<T: FromStr<Err: Display> + Default + PartialOrd + Display>(&self, node: &Node) -> Option<T> {
        self.within(node, |value: &T| *value > T::default(), "more than zero")
    }

    /// A quantity for which `holds`; `rule` says it in words.
    pub fn within<T: FromStr<Err: Display> + Display>(
        &self,
        node: &Node,
        holds: impl Fn(&T) -> bool,
        rule: &str,
    ) -> Option<T> {
        let value: T = self.quantity(node)?;
        if holds(&value) {
            Some(value)
        } else {
            self.problem(&node.at, format!("`{value}` is out of range: {rule}"), None)
        }
    }

    /// One of a few words.
    pub fn word<T: Copy>(&self, node: &Node, words: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let Value::Text(text) = &node.value else {
            return self.expected(node, &format!("this is one of {}", list(names)));
        };
        match words.iter().find(|(name, _)| name == text) {
            Some((_, value)) => Some(*value),
            None => self.problem(&node.at, format!("`{text}` is not known here"), Some(suggestion(text, &names))),
        }
    }

    /// A table with exactly one key, the variant.
    pub fn variant<'n>(&self, node: &'n Node, what: &str, names: &[&str]) -> Option<&'n Entry> {
        let allowed = || list(names.iter().copied());
        let example = || format!("write for example `{{ {} = {{ … }} }}`", names[0]);
        let Value::Table(entries) = &node.value else {
            return self.problem(&node.at, format!("{what} is a table with one of {}", allowed()), Some(example()));
        };
        if let Some(entry) = entries.iter().find(|entry| !names.contains(&entry.key.as_str())) {
            let help = suggestion(&entry.key, names);
            return self.problem(&entry.key_at, format!("unknown {what} `{}`", entry.key), Some(help));
        }
        match &entries[..] {
            [entry] => Some(entry),
            [] => self.problem(&node.at, format!("{what} is empty; it has one of {}", allowed()), Some(example())),
            [first, second, ..] => {
                let message = format!("{what} is already `{}`; `{}` is a second one", first.key, second.key);
                self.problem(&second.key_at, message, Some("keep one of the two".to_string()))
            }
        }
    }

    /// Each entry of a list; `None` if one of them could not be read.
    pub fn each<'n, T>(&self, node: &'n Node, read: impl Fn(&'n Node) -> Option<T>) -> Option<Vec<T>> {
        let Value::Array(items) = &node.value else { return self.expected(node, "this is a list in brackets") };
        let values: Vec<Option<T>> = items.iter().map(read).collect();
        values.into_iter().collect()
    }
}

/// One table being read by an `R`.
pub struct Section<'n, R> {
    /// Its reader.
    pub reader: &'n R,
    entries: &'n [Entry],
    /// What it is, for messages.
    what: String,
    /// Where it is.
    pub at: Origin,
    asked: RefCell<Vec<&'static str>>,
}

impl<'n, R: Deref<Target = Values>> Section<'n, R> {
    /// A table, to be read key by key; `what` names it in messages.
    pub fn of(reader: &'n R, node: &'n Node, what: &str) -> Option<Section<'n, R>> {
        match &node.value {
            Value::Table(entries) => {
                let (what, at) = (what.to_string(), node.at.clone());
                Some(Section { reader, entries, what, at, asked: RefCell::default() })
            }
            _ => reader.expected(node, &format!("{what} is a table")),
        }
    }

    /// The same, or an empty section for a table that was left out.
    pub fn of_optional(reader: &'n R, node: Option<&'n Node>, what: &str) -> Option<Section<'n, R>> {
        match node {
            Some(node) => Section::of(reader, node, what),
            None => Some(Section {
                reader,
                entries: &[],
                what: what.to_string(),
                at: Origin { source: 0, span: 0..0 },
                asked: RefCell::default(),
            }),
        }
    }

    /// The value of a key, which is from now on among the allowed.
    pub fn take(&self, key: &'static str) -> Option<&'n Node> {
        self.asked.borrow_mut().push(key);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The value of a key, read; absent also if it could not be read, which is then noted.
    pub fn get<T>(&self, key: &'static str, read: impl FnOnce(&'n R, &'n Node) -> Option<T>) -> Option<T> {
        self.take(key).and_then(|node| read(self.reader, node))
    }

    /// The same, for a key that must be there.
    pub fn require<T>(&self, key: &'static str, read: impl FnOnce(&'n R, &'n Node) -> Option<T>) -> Option<T> {
        match self.take(key) {
            Some(node) => read(self.reader, node),
            None => self.reader.problem(&self.at, format!("{} lacks `{key}`", self.what), None),
        }
    }

    /// Whether a key is there.
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// Where a key is written, or else the section.
    pub fn key_at(&self, key: &str) -> &Origin {
        self.entries.iter().find(|entry| entry.key == key).map_or(&self.at, |entry| &entry.value.at)
    }

    /// Notes a problem at a key's value.
    pub fn problem<T>(&self, key: &str, message: impl Into<String>, help: impl Into<Option<String>>) -> Option<T> {
        self.reader.problem(self.key_at(key), message, help)
    }

    /// Notes a problem if both keys are there: they say the same thing in two ways.
    pub fn exclusive(&self, one: &str, other: &str) {
        if self.has(one) && self.has(other) {
            let help = Some("keep one of the two".to_string());
            self.problem::<()>(other, format!("`{one}` and `{other}` exclude each other"), help);
        }
    }

    /// Notes every key that was not read; whether there was none.
    pub fn finish(&self) -> bool {
        let asked = self.asked.borrow();
        let unknown: Vec<&Entry> = self.entries.iter().filter(|entry| !asked.contains(&entry.key.as_str())).collect();
        for entry in &unknown {
            let message = format!("{} has no key `{}`", self.what, entry.key);
            self.reader.problem::<()>(&entry.key_at, message, Some(suggestion(&entry.key, &asked)));
        }
        unknown.is_empty()
    }
}
