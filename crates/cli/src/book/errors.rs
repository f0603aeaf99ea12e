//! The errors of the libraries: their kinds with message and reason, from the source.

use super::{plain, shown::repository, table};
use std::fs;
use std::path::{Path, PathBuf};

pub(super) fn reference() -> String {
    let mut crates: Vec<PathBuf> = entries(&repository().join("crates"));
    crates.sort();
    crates.iter().filter_map(|one| of_crate(one)).collect::<Vec<_>>().join("\n")
}

/// Its errors as a table; none if it has no errors of its own.
fn of_crate(folder: &Path) -> Option<String> {
    let mut files = sources(&folder.join("src"));
    files.sort();
    let kinds: Vec<[String; 2]> = files.iter().flat_map(|file| kinds(file)).collect();
    let name = folder.file_name()?.to_string_lossy();
    (!kinds.is_empty()).then(|| format!("### {name}\n\n{}", table(["message", "when"], kinds)))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the sources can be read");
    entries.map(|entry| entry.expect("an entry can be read").path()).collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries(folder).into_iter().partition(|entry| entry.is_dir());
    let rust = files.into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "rs"));
    rust.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

/// The message and the comment of each variant of an error.
fn kinds(file: &Path) -> Vec<[String; 2]> {
    let text = fs::read_to_string(file).expect("a source is text");
    let mut found = Vec::new();
    for (at, _) in text.match_indices("#[error(") {
        let rest = text[at + "#[error(".len()..].trim_start();
        let Some(message) = rest.strip_prefix('"').and_then(literal).map(|message| places(&message)) else { continue };
        // one that only passes another's message on says nothing here
        if !message.contains(char::is_alphabetic) {
            continue;
        }
        let before = text[..at].lines().rev().map(str::trim).filter(|line| !line.is_empty());
        let mut comment: Vec<&str> = before.map_while(|line| line.strip_prefix("///")).map(str::trim).collect();
        comment.reverse();
        // a link of rustdoc is code here
        let comment = comment.join(" ").replace("[`", "`").replace("`]", "`");
        found.push([format!("`{}`", message.replace('`', "'")), plain(&comment)]);
    }
    found
}

/// A string literal up to its end, joined where its lines are.
fn literal(text: &str) -> Option<String> {
    let (mut message, mut chars) = (String::new(), text.chars().peekable());
    loop {
        match chars.next()? {
            '"' => return Some(message),
            '\\' => match chars.next()? {
                '\n' => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                'n' => message.push(' '),
                c => message.push(c),
            },
            c => message.push(c),
        }
    }
}

/// What a message fills in, as `…`.
fn places(message: &str) -> String {
    let (mut text, mut rest) = (String::new(), message);
    while let Some((before, after)) = rest.split_once('{') {
        text += before;
        if let Some(after) = after.strip_prefix('{') {
            text.push('{');
            rest = after;
        } else {
            text.push('…');
            rest = after.split_once('}').map_or("", |(_, after)| after);
        }
    }
    (text + rest).replace("}}", "}")
}
