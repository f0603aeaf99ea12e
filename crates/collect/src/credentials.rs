//! Files with secrets of switches. A message about one names the place, and never shows the text.

use document::tree::{Node, Origin, parse_document};
use document::{Diagnostic, Problem, Section, Source, Values};
use std::fs::File;
use std::io::Read as _;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Longest file of credentials, bytes.
const FILE_MAX: u64 = 64 * 1024;
/// Longest name, password or community, bytes.
const SECRET_MAX: usize = 255;
/// Nobody but the owner may look.
const OTHERS: u32 = 0o077;

/// Why a file of credentials is not used: where, what is wrong, what to do. Several problems are several lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CredentialError(pub(crate) String);

/// Reads the values of one file.
#[derive(Default)]
pub(crate) struct Reader(Values);

impl Deref for Reader {
    type Target = Values;
    fn deref(&self) -> &Values {
        &self.0
    }
}

impl Reader {
    /// A name, password or community: at least `least` bytes.
    pub(crate) fn secret(&self, node: &Node, least: usize) -> Option<String> {
        let text = self.text(node)?;
        if (least..=SECRET_MAX).contains(&text.len()) {
            return Some(text.to_string());
        }
        let message = format!("this has {} bytes", text.len());
        self.problem(&node.at, message, Some(format!("it has {least} to {SECRET_MAX} bytes")))
    }
}

/// Reads the file `path`, which only this user or root may read and change.
pub(crate) fn read<T>(
    path: &Path,
    contents: impl for<'a> FnOnce(&Section<'a, Reader>) -> Option<T>,
) -> Result<T, CredentialError> {
    let name = path.display().to_string();
    let text = owned(path).map_err(|what| CredentialError(format!("{name}: {what}")))?;
    parse(&name, &text, contents)
}

/// The same, of a text that has been read.
fn parse<T>(
    name: &str,
    text: &str,
    contents: impl for<'a> FnOnce(&Section<'a, Reader>) -> Option<T>,
) -> Result<T, CredentialError> {
    let root = parse_document(0, text).map_err(|errors| {
        let at = |span| Origin { source: 0, span };
        // The parser's message may quote the text; what it says of the place is enough.
        let problem = |span| Problem { message: "this is not TOML".into(), at: at(span), help: None };
        located(name, text, errors.into_iter().map(|error| problem(error.span)).collect())
    })?;
    let reader = Reader::default();
    let value = Section::of(&reader, &root, "the file").and_then(|section| {
        let value = contents(&section);
        section.finish();
        value
    });
    let problems = reader.0.into_problems();
    match value {
        Some(value) if problems.is_empty() => Ok(value),
        _ => Err(located(name, text, problems)),
    }
}

/// One line a problem; none shows the file's text.
fn located(name: &str, text: &str, problems: Vec<Problem>) -> CredentialError {
    let source = Source { name: name.to_string(), text: text.into() };
    let diagnostic = Diagnostic::new(problems, &[source]);
    let line = |problem: &document::Located| {
        let help = problem.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        format!("{}:{}:{}: {}{help}", problem.file, problem.line, problem.column, problem.message)
    };
    CredentialError(diagnostic.problems().iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn owned(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let about = file.metadata().map_err(|error| error.to_string())?;
    let own = [0, rustix::process::geteuid().as_raw()].contains(&about.uid());
    if !own || about.mode() & OTHERS != 0 {
        let path = path.display();
        return Err(format!(
            "other users can read or change it; run: chown {} {path} && chmod 600 {path}",
            rustix::process::geteuid().as_raw()
        ));
    }
    if !about.is_file() || about.len() > FILE_MAX {
        return Err(format!("this is no file of credentials: such a file has at most {FILE_MAX} bytes"));
    }
    let mut text = String::new();
    file.take(FILE_MAX).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}
