//! From a text to its runs.

use crate::model::{FileRef, Scenario};
use crate::overrides::{Set, Sweep, parse_sets, take_sweep};
use crate::read::{Context, Reader};
use document::tree::{Node, Origin, Path as KeyPath, dotted, one_line, parse_document, put};
use document::{Diagnostic, Problem, Source};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Algorithms that the caller has.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// Names of the built-in algorithms.
    pub algorithms: &'a [&'a str],
    /// What policies must know about them; without it every algorithm of a policy is reported as unknown.
    pub policy: policy::Known<'a>,
}

/// How files that a scenario names are found and read.
pub trait Files {
    /// Resolves a path written in the scenario.
    fn resolve(&self, written: &str) -> FileRef;
    /// The text of a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not UTF-8.
    fn read(&self, path: &Path) -> io::Result<String>;
}

/// The file system; relative paths begin at the scenario's folder.
#[derive(Debug, Clone)]
pub struct Disk {
    /// The scenario's folder.
    pub base: PathBuf,
}

impl Files for Disk {
    fn resolve(&self, written: &str) -> FileRef {
        FileRef { written: written.to_string(), path: self.base.join(written) }
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        document::read_text(path)
    }
}

/// A scenario's text and all that is needed to read it.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// Name for messages; its stem is the scenario's default name.
    pub name: &'a str,
    /// The TOML text.
    pub text: &'a str,
    /// `key=value` overrides, as given to `--set`.
    pub sets: &'a [String],
    /// Algorithms that the caller has.
    pub known: Known<'a>,
    /// The files that the scenario names.
    pub files: &'a dyn Files,
}

/// A scenario file, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The runs: one without a sweep, else one per combination; the sweep's last key varies fastest.
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Unique among the runs and fit for a folder's name: the scenario's name without a sweep, else `cc=vegas,seed=2`.
    pub name: String,
    /// The swept keys (dotted) and this run's values.
    pub parameters: Vec<(String, String)>,
    /// What to run.
    pub scenario: Scenario,
}

/// Most runs of a sweep.
const RUNS_MAX: usize = 100_000;
/// Number of problems after which further runs of a sweep are not checked.
const PROBLEMS_MAX: usize = 20;

impl Scenario {
    /// Reads a scenario file and the files that it names.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place.
    pub fn load(path: &Path, sets: &[String], known: Known<'_>) -> Result<Loaded, Diagnostic> {
        let name = path.display().to_string();
        let text = document::read_text(path).map_err(|error| Diagnostic::unreadable("scenario", &name, &error))?;
        let files = Disk { base: path.parent().map(Path::to_path_buf).unwrap_or_default() };
        Scenario::parse(&Input { name: &name, text: &text, sets, known, files: &files })
    }

    /// Checks a scenario's text.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place.
    pub fn parse(input: &Input<'_>) -> Result<Loaded, Diagnostic> {
        let mut sources = vec![Source { name: input.name.to_string(), text: input.text.into() }];
        let sets = input.sets.iter().map(|set| Source { name: "--set".into(), text: set.as_str().into() });
        sources.extend(sets);
        let plan = match plan(input) {
            Ok(plan) => plan,
            Err(problems) => return Err(Diagnostic::new(problems, &sources)),
        };
        let context = Context::new(input.known, input.files, default_name(input), sources);
        match runs(&plan, &context) {
            Ok(runs) => Ok(Loaded { runs }),
            Err(problems) => Err(Diagnostic::new(problems, &context.sources.borrow())),
        }
    }
}

/// What was written: the file, the sweep over it, and the overrides, which go over both.
pub(crate) struct Plan {
    root: Node,
    pub sweep: Sweep,
    sets: Vec<Set>,
}

pub(crate) fn plan(input: &Input<'_>) -> Result<Plan, Vec<Problem>> {
    let mut root = parse_document(0, input.text).map_err(|errors| {
        let problem = |error: document::tree::Syntax| Problem {
            message: format!("this is not TOML: {}", error.message),
            at: Origin { source: 0, span: error.span },
            help: None,
        };
        errors.into_iter().map(problem).collect::<Vec<_>>()
    })?;
    let mut sets = parse_sets(input.sets)?;
    let sweep = take_sweep(&mut root, &mut sets)?;
    Ok(Plan { root, sweep, sets })
}

/// Every combination of the sweep's values.
fn runs(plan: &Plan, context: &Context<'_>) -> Result<Vec<Run>, Vec<Problem>> {
    let sweep = &plan.sweep;
    let total = sweep.axes.iter().try_fold(1usize, |product, axis| product.checked_mul(axis.values.len()));
    let Some(total) = total.filter(|total| *total <= RUNS_MAX) else {
        let message = format!("this sweep has too many runs: at most {RUNS_MAX}");
        return Err(vec![Problem { message, at: sweep.at.clone(), help: None }]);
    };
    let (mut runs, mut problems) = (Vec::with_capacity(total), Vec::new());
    let mut names = BTreeSet::new();
    for number in 0..total {
        match run(plan, context, number) {
            Ok(mut run) => {
                let numbered = (2..).map(|n: u32| format!("{}-{n}", run.name));
                let mut candidates = std::iter::once(run.name.clone()).chain(numbered);
                run.name = candidates.find(|name| !names.contains(name)).expect("numbers do not end");
                names.insert(run.name.clone());
                runs.push(run);
            }
            Err(found) => {
                for problem in found {
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                }
            }
        }
        if problems.len() >= PROBLEMS_MAX {
            break;
        }
    }
    if problems.is_empty() { Ok(runs) } else { Err(problems) }
}

/// The run with this number.
pub(crate) fn run(plan: &Plan, context: &Context<'_>, number: usize) -> Result<Run, Vec<Problem>> {
    let Plan { root, sweep, sets } = plan;
    let mut root = root.clone();
    let mut place = |path: &KeyPath, value: &Node| {
        put(&mut root, path, value.clone()).map_err(|(message, at)| vec![Problem { message, at, help: None }])
    };
    let mut parameters = Vec::new();
    let mut short = Vec::new();
    let mut stride = sweep.axes.iter().map(|axis| axis.values.len()).product::<usize>();
    for axis in &sweep.axes {
        stride /= axis.values.len();
        let value = &axis.values[number / stride % axis.values.len()];
        let text = one_line(&value.value);
        // an empty table, `{ pie = {} }`, ends with the dot
        short.push(format!("{}={}", sweep.short_name(axis), text.trim_end_matches('.')));
        parameters.push((dotted(&axis.path), text));
        place(&axis.path, value)?;
    }
    for (path, value) in sets {
        place(path, value)?;
    }
    let scenario = Reader::new(context).scenario(&root)?;
    let name = if short.is_empty() { scenario.name.clone() } else { plain_name(&short.join(",")) };
    Ok(Run { name, parameters, scenario })
}

/// The name of a scenario that names itself nowhere.
pub(crate) fn default_name(input: &Input<'_>) -> String {
    let stem = Path::new(input.name).file_stem().map_or("scenario".into(), |stem| stem.to_string_lossy());
    plain_name(&stem)
}

/// A name that is valid on every file system.
fn plain_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '=' | ',' | '+');
    let short = name.replace(' ', "").replace('%', "pct");
    let text: String = short.chars().map(|c| if plain(c) { c } else { '_' }).take(160).collect();
    let text = text.trim_start_matches(['.', '-']);
    if text.is_empty() { "scenario".to_string() } else { text.to_string() }
}
