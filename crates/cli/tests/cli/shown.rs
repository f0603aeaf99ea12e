//! The commands that the documentation shows: blocks of code, and why some are not run.

use std::fs;
use std::path::{Path, PathBuf};

/// Why a test does not run a block, or a page's blocks: `<!-- not run: root -->` before it, `<!-- page not run: root -->` on the page.
const REASONS: [&str; 8] = ["root", "minutes", "installs", "fleet", "switches", "terminal", "python", "synopsis"];

/// A block of code.
pub struct Block {
    /// The line of its first line, from 1.
    pub line: usize,
    /// As after the fence: `sh`, `text`, `toml`; empty for an indented block.
    pub language: String,
    pub lines: Vec<String>,
    /// Why it is not run.
    pub not_run: Option<String>,
}

impl Block {
    /// Its commands, line by line, without what is written beside them.
    pub fn commands(&self) -> Vec<String> {
        if !["", "sh"].contains(&self.language.as_str()) {
            return Vec::new();
        }
        let lines: Vec<String> = match self.language.as_str() {
            "sh" => self.lines.clone(),
            _ => self.lines.iter().map(|line| beside(line).to_string()).collect(),
        };
        if self.language == "sh" || lines.iter().any(|line| is_command(line)) { lines } else { Vec::new() }
    }
}

/// Whether a line of an indented block is a command of ours.
fn is_command(line: &str) -> bool {
    let line = line.trim_start_matches("$ ").trim_start_matches("sudo ");
    line == "opentcp" || line.starts_with("opentcp ")
}

/// A line up to the first two spaces outside of quotes, behind which is its explanation.
fn beside(line: &str) -> &str {
    let mut quote = None;
    for (i, c) in line.char_indices() {
        match quote {
            Some(open) if open == c => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if line[i..].starts_with("  ") => return &line[..i],
            _ => {}
        }
    }
    line
}

/// The repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// All pages that show commands, as paths in the repository, with their texts.
pub fn pages() -> Vec<(String, String)> {
    let mut paths = vec!["README.md".to_string(), "CONTRIBUTING.md".to_string(), "scenarios/README.md".to_string()];
    let mut folders = vec!["docs".to_string()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(repository().join(&folder)).expect("the documentation is there") {
            let entry = entry.expect("its entries can be read");
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                folders.push(path);
            } else if Path::new(&path).extension().is_some_and(|ending| ending == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let read = |path: String| (path.clone(), fs::read_to_string(repository().join(path)).expect("a page is text"));
    paths.into_iter().map(read).collect()
}

/// The blocks of a page.
///
/// # Panics
/// A reason is not one of [`REASONS`].
pub fn blocks(page: &str, text: &str) -> Vec<Block> {
    let whole = text.lines().find_map(|line| comment(line, "page not run"));
    let (mut blocks, mut open, mut reason, mut before) = (Vec::<Block>::new(), None::<Block>, None, "");
    for (i, line) in text.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        let indented = line.strip_prefix("    ");
        match (&mut open, fence) {
            (Some(block), Some(_)) if !block.language.starts_with(' ') => blocks.extend(open.take()),
            (Some(block), None) if !block.language.starts_with(' ') => block.lines.push(line.to_string()),
            (Some(block), _) if indented.is_some() || line.is_empty() => {
                block.lines.push(indented.unwrap_or_default().to_string());
            }
            (_, Some(language)) => {
                blocks.extend(open.take());
                open = Some(begun(i, language.trim(), whole.as_ref(), &mut reason));
            }
            (_, None) if indented.is_some() && before.is_empty() => {
                blocks.extend(open.take());
                // a space marks it as open; no fence has one
                let mut block = begun(i, " ", whole.as_ref(), &mut reason);
                block.lines.push(indented.unwrap_or_default().to_string());
                open = Some(block);
            }
            _ => {
                blocks.extend(open.take());
                if let Some(found) = comment(line, "not run") {
                    reason = Some(found);
                } else if !line.is_empty() {
                    reason = None;
                }
            }
        }
        before = line;
    }
    blocks.extend(open);
    for block in &mut blocks {
        block.language = block.language.trim().to_string();
        while block.lines.last().is_some_and(String::is_empty) {
            block.lines.pop();
        }
        let known = block.not_run.as_ref().is_none_or(|reason| REASONS.contains(&reason.as_str()));
        assert!(known, "{page}:{}: a block is not run for one of {REASONS:?}", block.line);
    }
    blocks
}

fn begun(i: usize, language: &str, whole: Option<&String>, reason: &mut Option<String>) -> Block {
    let not_run = reason.take().or_else(|| whole.cloned());
    Block { line: i + 1, language: language.to_string(), lines: Vec::new(), not_run }
}

/// What a comment of this kind says.
fn comment(line: &str, kind: &str) -> Option<String> {
    Some(line.strip_prefix("<!-- ")?.strip_prefix(kind)?.strip_prefix(": ")?.strip_suffix(" -->")?.to_string())
}
