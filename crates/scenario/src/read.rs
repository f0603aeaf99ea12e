//! From the tree to the model. Problems are collected and reading continues with the default, so that all mistakes
//! are reported at once.

mod aqm;
mod control;
mod enforcer;
mod job;
mod measure;
mod network;
mod queue;
mod shaped;
mod tcp;
mod traffic;

use crate::model::{DataFile, Percent, Scenario};
use crate::{Files, Known, SizeDistribution};
use document::tree::{Node, Origin};
use document::{INTEGER_MAX, Problem, Source, Values};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use units::Time;

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

    /// The number of a text that problems point into.
    pub(crate) fn source(&self, source: Source) -> usize {
        let mut sources = self.sources.borrow_mut();
        let known = sources.iter().position(|known| known.name == source.name && known.text == source.text);
        known.unwrap_or_else(|| {
            sources.push(source);
            sources.len() - 1
        })
    }
}

/// Reads one scenario.
pub(crate) struct Reader<'c, 'a> {
    pub context: &'c Context<'a>,
    values: Values,
}

impl Deref for Reader<'_, '_> {
    type Target = Values;
    fn deref(&self) -> &Values {
        &self.values
    }
}

/// One table being read.
pub(crate) type Section<'n, 'c, 'a> = document::Section<'n, Reader<'c, 'a>>;

impl<'c, 'a> Reader<'c, 'a> {
    pub(crate) fn new(context: &'c Context<'a>) -> Self {
        Reader { context, values: Values::default() }
    }

    /// The whole scenario.
    ///
    /// # Errors
    /// All problems found.
    pub(crate) fn scenario(self, root: &Node) -> Result<Scenario, Vec<Problem>> {
        let scenario = self.root(root);
        let problems = self.values.into_problems();
        match scenario {
            Some(scenario) if problems.is_empty() => Ok(scenario),
            _ => Err(problems),
        }
    }

    fn root(&self, root: &Node) -> Option<Scenario> {
        let section = self.section(root, "the scenario")?;
        let name = section.get("name", |r, n| r.identifier(n));
        let title = section.get("title", |r, n| r.text(n).map(str::to_string));
        let seed = section.get("seed", |r, n| r.integer(n, 0, INTEGER_MAX)).unwrap_or(1);
        let duration = section.require("duration", Self::span);
        // An unreadable duration has been reported; later checks against it must not fail as well.
        let end = duration.unwrap_or(Scenario::DURATION_MAX);
        let tcp = self.tcp(section.take("tcp"))?;
        let network = section.require("network", |r, n| r.network(n, end, &tcp));
        let topology = network.as_ref().map(|network| &network.topology);
        let measure = self.measure(section.take("measure"), end, topology);
        let enforcer = section.get("enforcer", |r, n| r.enforcers(n, network.as_ref())).unwrap_or_default();
        let policy = section.get("policy", |r, n| r.control(n, end, topology));
        if tcp.ictcp && policy.is_some() {
            let help = Some("leave `tcp.ictcp` out, or set `file = \"none\"`".to_string());
            section.problem::<()>("policy", "receive windows are set by `tcp.ictcp` or by a policy, not by both", help);
        }
        let traffic = section.require("traffic", |r, n| r.traffic_list(n, end, topology?, &tcp));
        // Checked and removed before; read here so that it is among the allowed keys.
        section.take("sweep");
        section.finish();
        let name = name.unwrap_or_else(|| self.context.default_name.clone());
        let (duration, network, traffic) = (duration?, network?, traffic?);
        Some(Scenario { name, title, seed, duration, network, tcp, measure: measure?, enforcer, policy, traffic })
    }

    /// A table, to be read key by key; `what` names it in messages.
    pub(crate) fn section<'n>(&'n self, node: &'n Node, what: &str) -> Option<Section<'n, 'c, 'a>> {
        document::Section::of(self, node, what)
    }

    /// An empty section, for a table that was left out.
    pub(crate) fn section_or_empty<'n>(&'n self, node: Option<&'n Node>, what: &str) -> Option<Section<'n, 'c, 'a>> {
        document::Section::of_optional(self, node, what)
    }

    /// `"30 %"`: more than zero, so that derived values stay within bounds, and at most 100.
    pub(crate) fn percentage(&self, node: &Node) -> Option<Percent> {
        self.values.percentage(node).map(Percent)
    }

    /// Each entry of a list.
    pub(crate) fn each<'n, T>(&self, node: &'n Node, read: impl Fn(&Self, &'n Node) -> Option<T>) -> Option<Vec<T>> {
        self.values.each(node, |item| read(self, item))
    }

    /// A span of more than zero, at most the longest run.
    pub(crate) fn span(&self, node: &Node) -> Option<Time> {
        let most = Scenario::DURATION_MAX;
        self.within(node, |time| *time > Time::ZERO && *time <= most, &format!("more than zero, at most {most}"))
    }

    /// An instant or a span within the run.
    pub(crate) fn until(&self, node: &Node, end: Time) -> Option<Time> {
        self.within(node, |time| *time <= end, &format!("the run ends at {end} (`duration`)"))
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

    /// Adds problems that another reader found.
    pub(crate) fn add_problems(&self, problems: Vec<Problem>) {
        for Problem { message, at, help } in problems {
            self.problem::<()>(&at, message, help);
        }
    }

    /// Notes a problem in line `line` (from 1) of a file that the scenario names.
    pub(crate) fn problem_in_file<T>(&self, file: &DataFile, line: usize, message: &str) -> Option<T> {
        let index = self.context.source(Source { name: file.file.written.clone(), text: file.text.clone() });
        let start: usize = file.text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let length = file.text[start..].lines().next().map_or(0, str::len);
        self.problem(&Origin { source: index, span: start..start + length }, message, None)
    }
}
