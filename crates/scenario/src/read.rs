//! From the tree to the model: every key that is asked for is allowed, every other one is a mistake.
//!
//! A [`Section`] is one table being read. It notes which keys its reader asks for, so that the list of allowed keys
//! in a message is the schema itself and cannot fall behind it. Problems are collected and reading goes on with
//! the default: whoever made three mistakes sees three messages.

mod measure;
mod network;
mod queue;
mod tcp;
mod traffic;

use crate::diagnostic::{Problem, Source, suggestion};
use crate::model::{DataFile, Percent, Scenario};
use crate::tree::{Entry, Node, Origin, Value};
use crate::{Files, Known, SizeDistribution};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use units::Time;

/// The largest integer that TOML has.
pub(crate) const INTEGER_MAX: u64 = i64::MAX as u64;

/// Least percentage.
const PERCENT_MIN: f64 = 0.0001;

/// What was read from outside, kept over the runs of a sweep, and the texts that problems point into.
pub(crate) struct Context<'a> {
    pub known: Known<'a>,
    pub files: &'a dyn Files,
    /// Name of a scenario that does not say its own.
    pub default_name: String,
    pub sources: RefCell<Vec<Source>>,
    read: RefCell<BTreeMap<PathBuf, Result<Arc<str>, String>>>,
    sizes: RefCell<BTreeMap<PathBuf, Arc<SizeDistribution>>>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(known: Known<'a>, files: &'a dyn Files, default_name: String, sources: Vec<Source>) -> Self {
        Context {
            known,
            files,
            default_name,
            sources: RefCell::new(sources),
            read: RefCell::default(),
            sizes: RefCell::default(),
        }
    }
}

/// Reads one scenario.
pub(crate) struct Reader<'c, 'a> {
    pub context: &'c Context<'a>,
    problems: RefCell<Vec<Problem>>,
}

impl<'c, 'a> Reader<'c, 'a> {
    pub(crate) fn new(context: &'c Context<'a>) -> Self {
        Reader { context, problems: RefCell::default() }
    }

    /// Notes a problem; `None`, so that a reading function can end with it.
    pub(crate) fn problem<T>(
        &self,
        at: &Origin,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) -> Option<T> {
        let problem = Problem { message: message.into(), at: at.clone(), help: help.into() };
        self.problems.borrow_mut().push(problem);
        None
    }

    /// The whole scenario.
    ///
    /// # Errors
    /// All problems found.
    pub(crate) fn scenario(self, root: &Node) -> Result<Scenario, Vec<Problem>> {
        let scenario = self.root(root);
        let problems = self.problems.into_inner();
        match scenario {
            Some(scenario) if problems.is_empty() => Ok(scenario),
            _ => Err(problems),
        }
    }

    fn root(&self, root: &Node) -> Option<Scenario> {
        let section = self.section(root, "the scenario")?;
        let name = section.get("name", Self::identifier);
        let title = section.get("title", |r, n| r.text(n).map(str::to_string));
        let seed = section.get("seed", |r, n| r.integer(n, 0, INTEGER_MAX)).unwrap_or(1);
        let duration = section.require("duration", Self::span);
        // What is checked against an unreadable duration has been given enough of it.
        let end = duration.unwrap_or(Scenario::DURATION_MAX);
        let tcp = self.tcp(section.take("tcp"))?;
        let packet_bytes = u64::from(tcp.mtu());
        let network = section.require("network", |r, n| r.network(n, end, packet_bytes));
        let topology = network.as_ref().map(|network| &network.topology);
        let measure = self.measure(section.take("measure"), end, topology);
        let traffic = section.require("traffic", |r, n| r.traffic_list(n, end, topology?, tcp.mss));
        // Checked and taken out before; asked for here, so that it is among the allowed.
        section.take("sweep");
        section.finish();
        let name = name.unwrap_or_else(|| self.context.default_name.clone());
        let (duration, network, traffic) = (duration?, network?, traffic?);
        Some(Scenario { name, title, seed, duration, network, tcp, measure: measure?, traffic })
    }

    /// A table, to be read key by key; `what` names it in messages.
    pub(crate) fn section<'n>(&'n self, node: &'n Node, what: &str) -> Option<Section<'n, 'c, 'a>> {
        match &node.value {
            Value::Table(entries) => Some(Section {
                reader: self,
                entries,
                what: what.to_string(),
                at: node.at.clone(),
                asked: RefCell::default(),
            }),
            _ => self.expected(node, &format!("{what} is a table")),
        }
    }

    /// An empty section, for a table that was left out.
    pub(crate) fn section_or_empty<'n>(&'n self, node: Option<&'n Node>, what: &str) -> Option<Section<'n, 'c, 'a>> {
        match node {
            Some(node) => self.section(node, what),
            None => Some(Section {
                reader: self,
                entries: &[],
                what: what.to_string(),
                at: Origin { source: 0, span: 0..0 },
                asked: RefCell::default(),
            }),
        }
    }

    // ------------------------------------------------------------------------------------------ single values

    fn expected<T>(&self, node: &Node, rule: &str) -> Option<T> {
        self.problem(&node.at, format!("{rule}, not {}", node.value.kind()), None)
    }

    pub(crate) fn text<'n>(&self, node: &'n Node) -> Option<&'n str> {
        match &node.value {
            Value::Text(text) => Some(text),
            _ => self.expected(node, "this is a text in quotes"),
        }
    }

    /// A name for files and tables: letters, digits, `_`, `.` and `-`, at most 64.
    pub(crate) fn identifier(&self, node: &Node) -> Option<String> {
        let text = self.text(node)?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if text.is_empty() || text.len() > 64 || !text.chars().all(allowed) || text.starts_with(['.', '-']) {
            let message = format!("`{text}` is not a name");
            let help = "a name has 1 to 64 letters, digits, `_`, `.` or `-` and begins with a letter, a digit or `_`";
            return self.problem(&node.at, message, Some(help.to_string()));
        }
        Some(text.to_string())
    }

    pub(crate) fn boolean(&self, node: &Node) -> Option<bool> {
        match node.value {
            Value::Bool(value) => Some(value),
            _ => self.expected(node, "this is `true` or `false`"),
        }
    }

    /// An integer from `least` to `most`.
    pub(crate) fn integer(&self, node: &Node, least: u64, most: u64) -> Option<u64> {
        // The largest integer of TOML is no bound that anybody wants to read.
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
    pub(crate) fn count(&self, node: &Node, least: u32, most: u32) -> Option<u32> {
        self.integer(node, u64::from(least), u64::from(most)).map(|value| value as u32)
    }

    /// A finite number more than zero and at most `most`.
    pub(crate) fn number(&self, node: &Node, most: f64) -> Option<f64> {
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

    /// `"30 %"`: not nothing, so that what is computed from it stays within bounds, and at most 100.
    pub(crate) fn percentage(&self, node: &Node) -> Option<Percent> {
        let rule = "a percentage is written in quotes with its sign, such as \"30 %\"";
        let Value::Text(text) = &node.value else { return self.expected(node, rule) };
        let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        match number {
            None => self.problem(&node.at, format!("`{text}` is not a percentage"), Some(rule.to_string())),
            Some(value) if (PERCENT_MIN..=100.0).contains(&value) => Some(Percent(value)),
            Some(_) => self.problem(&node.at, format!("`{text}` is out of range: from {PERCENT_MIN} % to 100 %"), None),
        }
    }

    /// A quantity with its unit.
    pub(crate) fn quantity<T: FromStr<Err: Display>>(&self, node: &Node) -> Option<T> {
        let Value::Text(text) = &node.value else {
            return self.expected(node, "a quantity is written in quotes with its unit, such as \"10 ms\"");
        };
        text.parse().map_or_else(|error: T::Err| self.problem(&node.at, error.to_string(), None), Some)
    }

    /// A quantity more than zero.
    pub(crate) fn positive<T: FromStr<Err: Display> + Default + PartialOrd + Display>(&self, node: &Node) -> Option<T> {
        self.within(node, |value: &T| *value > T::default(), "more than zero")
    }

    /// A quantity for which `holds`; `rule` says it in words.
    pub(crate) fn within<T: FromStr<Err: Display> + Display>(
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

    /// A span more than zero that a run could last.
    pub(crate) fn span(&self, node: &Node) -> Option<Time> {
        let most = Scenario::DURATION_MAX;
        self.within(node, |time| *time > Time::ZERO && *time <= most, &format!("more than zero, at most {most}"))
    }

    /// An instant or a span within the run.
    pub(crate) fn until(&self, node: &Node, end: Time) -> Option<Time> {
        self.within(node, |time| *time <= end, &format!("the run ends at {end} (`duration`)"))
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(&self, node: &Node, words: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let Value::Text(text) = &node.value else {
            return self.expected(node, &format!("this is one of {}", crate::diagnostic::list(names)));
        };
        match words.iter().find(|(name, _)| name == text) {
            Some((_, value)) => Some(*value),
            None => self.problem(&node.at, format!("`{text}` is not known here"), Some(suggestion(text, &names))),
        }
    }

    /// A table with exactly one key, the variant.
    pub(crate) fn variant<'n>(&self, node: &'n Node, what: &str, names: &[&str]) -> Option<&'n Entry> {
        let allowed = || crate::diagnostic::list(names.iter().copied());
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

    /// Each entry of a list.
    pub(crate) fn each<'n, T>(&self, node: &'n Node, read: impl Fn(&Self, &'n Node) -> Option<T>) -> Option<Vec<T>> {
        let Value::Array(items) = &node.value else { return self.expected(node, "this is a list in brackets") };
        let values: Vec<Option<T>> = items.iter().map(|item| read(self, item)).collect();
        values.into_iter().collect()
    }

    /// A file that the scenario names, read.
    pub(crate) fn file(&self, node: &Node) -> Option<DataFile> {
        let written = self.text(node)?;
        let file = self.context.files.resolve(written);
        let mut cache = self.context.read.borrow_mut();
        let text = cache
            .entry(file.path.clone())
            .or_insert_with(|| self.context.files.read(&file.path).map(Into::into).map_err(|error| error.to_string()));
        match text {
            Ok(text) => Some(DataFile { file, text: text.clone() }),
            Err(error) => {
                let help = "a path is relative to the scenario's folder".to_string();
                self.problem(&node.at, format!("cannot read `{written}`: {error}"), Some(help))
            }
        }
    }

    /// Notes a problem in line `line` (from 1) of a file that the scenario names.
    pub(crate) fn problem_in_file<T>(&self, file: &DataFile, line: usize, message: &str) -> Option<T> {
        let mut sources = self.context.sources.borrow_mut();
        let index = sources
            .iter()
            .position(|source| source.name == file.file.written && source.text == file.text)
            .unwrap_or_else(|| {
                sources.push(Source { name: file.file.written.clone(), text: file.text.clone() });
                sources.len() - 1
            });
        let start: usize = file.text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let length = file.text[start..].lines().next().map_or(0, str::len);
        self.problem(&Origin { source: index, span: start..start + length }, message, None)
    }
}

/// One table being read.
pub(crate) struct Section<'n, 'c, 'a> {
    pub reader: &'n Reader<'c, 'a>,
    entries: &'n [Entry],
    /// What it is, for messages.
    what: String,
    pub at: Origin,
    asked: RefCell<Vec<&'static str>>,
}

impl<'n, 'c, 'a> Section<'n, 'c, 'a> {
    /// The value of a key, which is from now on among the allowed.
    pub(crate) fn take(&self, key: &'static str) -> Option<&'n Node> {
        self.asked.borrow_mut().push(key);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The value of a key, read; absent also if it could not be read, which is then noted.
    pub(crate) fn get<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&'n Reader<'c, 'a>, &'n Node) -> Option<T>,
    ) -> Option<T> {
        self.take(key).and_then(|node| read(self.reader, node))
    }

    /// The same, for a key that must be there.
    pub(crate) fn require<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&'n Reader<'c, 'a>, &'n Node) -> Option<T>,
    ) -> Option<T> {
        match self.take(key) {
            Some(node) => read(self.reader, node),
            None => self.reader.problem(&self.at, format!("{} lacks `{key}`", self.what), None),
        }
    }

    /// Whether a key is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// Where a key is written, or else the section.
    pub(crate) fn key_at(&self, key: &str) -> &Origin {
        self.entries.iter().find(|entry| entry.key == key).map_or(&self.at, |entry| &entry.value.at)
    }

    /// Notes a problem at a key's value.
    pub(crate) fn problem<T>(
        &self,
        key: &str,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) -> Option<T> {
        self.reader.problem(self.key_at(key), message, help)
    }

    /// Notes a problem if both keys are there: they say the same thing in two ways.
    pub(crate) fn exclusive(&self, one: &str, other: &str) {
        if self.has(one) && self.has(other) {
            let help = Some("keep one of the two".to_string());
            self.problem::<()>(other, format!("`{one}` and `{other}` exclude each other"), help);
        }
    }

    /// Notes every key that nobody asked for; whether there was none.
    pub(crate) fn finish(&self) -> bool {
        let asked = self.asked.borrow();
        let unknown: Vec<&Entry> = self.entries.iter().filter(|entry| !asked.contains(&entry.key.as_str())).collect();
        for entry in &unknown {
            let message = format!("{} has no key `{}`", self.what, entry.key);
            self.reader.problem::<()>(&entry.key_at, message, Some(suggestion(&entry.key, &asked)));
        }
        unknown.is_empty()
    }
}
