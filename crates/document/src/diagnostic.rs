//! Diagnostics of a text that a user wrote: where, what is wrong, and what to write instead.

#[cfg(test)]
mod tests;

use crate::tree::Origin;
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceSpan};
use std::fmt;
use std::sync::Arc;

/// A text that a diagnostic can point into.
#[derive(Debug, Clone)]
pub struct Source {
    /// A file's name, or `--set`.
    pub name: String,
    /// Its text.
    pub text: Arc<str>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// Where.
    pub at: Origin,
    /// What to write instead, if there is more to say.
    pub help: Option<String>,
}

/// All problems of a document; never empty. Its `Display` is plain text without terminal colours.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    problems: Vec<Located>,
}

/// One problem, with the place computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The file, or `--set`.
    pub file: String,
    /// Line from 1.
    pub line: usize,
    /// Column from 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    text: Arc<str>,
    span: (usize, usize),
    /// What is shown of the text, if its lines are too long to be shown whole.
    cut: Option<Cut>,
}

/// The line of a mistake and its neighbours, cut around the mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cut {
    text: String,
    span: (usize, usize),
    /// The number of its first line, from 0.
    first: usize,
}

/// A line of more characters than this is cut: a terminal cannot show it, and a renderer of columns fails at 65,535.
const LINE_MAX: usize = 240;
/// Characters that are shown before a mistake in such a line ...
const BEFORE: usize = 40;
/// ... and from its beginning on.
const BEHIND: usize = 80;
/// In place of what was cut.
const ELLIPSIS: char = '…';

impl Diagnostic {
    /// Of problems whose places are in `sources`.
    ///
    /// # Panics
    /// Without problems.
    pub fn new(mut problems: Vec<Problem>, sources: &[Source]) -> Diagnostic {
        assert!(!problems.is_empty(), "a diagnostic says what is wrong");
        problems.sort_by_key(|problem| (problem.at.source, problem.at.span.start));
        Diagnostic { problems: problems.into_iter().map(|problem| locate(problem, sources)).collect() }
    }

    /// For a file that could not be read at all.
    pub fn unreadable(what: &str, name: &str, error: &std::io::Error) -> Diagnostic {
        let message = format!("cannot read the {what} `{name}`: {error}");
        let (file, text) = (name.to_string(), "".into());
        Diagnostic {
            problems: vec![Located { file, line: 1, column: 1, message, help: None, text, span: (0, 0), cut: None }],
        }
    }

    /// The problems, in the order of the file.
    pub fn problems(&self) -> &[Located] {
        &self.problems
    }

    /// The message for people: each problem with the lines that it is about; coloured for a terminal.
    pub fn render(&self, terminal: bool) -> String {
        let theme = if terminal { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(110).with_links(false).with_context_lines(1);
        let mut out = String::new();
        for problem in &self.problems {
            handler.render_report(&mut out, problem).expect("writing to a string does not fail");
        }
        out
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl std::error::Error for Diagnostic {}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Located {}

impl miette::Diagnostic for Located {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        // An unreadable file has no text to show.
        if self.text.is_empty() { None } else { Some(self) }
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.cut.as_ref().map_or(self.span, |cut| cut.span);
        let span = LabeledSpan::underline(SourceSpan::from(span));
        if self.text.is_empty() { None } else { Some(Box::new(std::iter::once(span))) }
    }
}

impl miette::SourceCode for Located {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn miette::SpanContents<'a> + 'a>, miette::MietteError> {
        let text = self.cut.as_ref().map_or(&*self.text, |cut| &cut.text);
        let contents = text.read_span(span, before, after)?;
        let (line, column) = match &self.cut {
            // the place's own column is that of the whole line
            Some(cut) if before == 0 => (cut.first + contents.line(), self.column - 1),
            Some(cut) => (cut.first + contents.line(), contents.column()),
            None => (contents.line(), contents.column()),
        };
        Ok(Box::new(miette::MietteSpanContents::new_named(
            self.file.clone(),
            contents.data(),
            *contents.span(),
            line,
            column,
            contents.line_count(),
        )))
    }
}

fn locate(problem: Problem, sources: &[Source]) -> Located {
    let Source { name, mut text } = sources[problem.at.source].clone();
    if text.is_empty() {
        // An empty file has a first line too, which can be shown with the file's name.
        text = "\n".into();
    }
    let start = boundary(&text, problem.at.span.start);
    let end = boundary(&text, problem.at.span.end).max(start);
    // A table's span can cover many lines; its first line says enough.
    let end = text[start..end].find('\n').map_or(end, |newline| start + newline);
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let cut = cut(&text, line_start, (start, end - start));
    Located {
        file: name,
        line: text[..start].matches('\n').count() + 1,
        column: text[line_start..start].chars().count() + 1,
        message: problem.message,
        help: problem.help,
        text,
        span: (start, end - start),
        cut,
    }
}

/// The lines around a mistake, if one of them is too long.
fn cut(text: &str, line_start: usize, (start, length): (usize, usize)) -> Option<Cut> {
    let before = text[..line_start].strip_suffix('\n').map(|text| &text[text.rfind('\n').map_or(0, |at| at + 1)..]);
    let mut rest = text[line_start..].split('\n');
    let (line, after) = (rest.next().unwrap_or_default(), rest.next());
    let is_long = |line: &str| line.chars().nth(LINE_MAX).is_some();
    if ![before, Some(line), after].into_iter().flatten().any(is_long) {
        return None;
    }
    let mut shown = before.map_or_else(String::new, |line| beginning(line) + "\n");
    let (left, right) = line.split_at(start - line_start);
    let from = left.char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at);
    if from > 0 {
        shown.push(ELLIPSIS);
    }
    shown.push_str(&left[from..]);
    let place = shown.len();
    let right_shown = right.char_indices().nth(BEHIND).map_or(right, |(at, _)| &right[..at]);
    shown.push_str(right_shown);
    if right_shown.len() < right.len() {
        shown.push(ELLIPSIS);
    }
    if let Some(line) = after {
        shown.push('\n');
        shown.push_str(&beginning(line));
    }
    let first = text[..line_start].matches('\n').count() - usize::from(before.is_some());
    Some(Cut { text: shown, span: (place, length.min(right_shown.len())), first })
}

/// As much of a line as is shown where no mistake is in it.
fn beginning(line: &str) -> String {
    match line.char_indices().nth(BEFORE + BEHIND) {
        Some((at, _)) => format!("{}{ELLIPSIS}", &line[..at]),
        None => line.to_string(),
    }
}

/// The nearest place at or before `at` where a character begins.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

/// The name among `names` that was probably meant, if one is near.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // a long word is no typo of a short one, and a hostile one must not make this slow
    const LONGEST: usize = 64;
    let length = written.chars().count();
    if length > LONGEST {
        return None;
    }
    let near = |name: &str| name.chars().count().max(length) / 3 + 1;
    let lower = written.to_lowercase();
    names
        .into_iter()
        // inserted, deleted, replaced, and swapped letters
        .map(|name| (strsim::osa_distance(&lower, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= near(name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// "a, b or c", each in backticks.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "none".into(),
    }
}

/// "did you mean `x`? allowed: …"
pub fn suggestion(written: &str, names: &[&str]) -> String {
    let allowed = list(names.iter().copied());
    match nearest(written, names.iter().copied()) {
        Some(name) => format!("did you mean `{name}`? Allowed: {allowed}"),
        None => format!("allowed: {allowed}"),
    }
}
