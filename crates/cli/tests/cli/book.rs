//! The commands of the documentation, run as they are printed, in the order of their page, and the output that it prints compared.

use crate::shown::{Block, blocks, pages, repository};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

/// What pages name by its path in a clone of the repository.
const TREE: [&str; 6] = ["cc", "crates", "dist", "policies", "python", "scenarios"];

#[test]
fn commands_do_what_their_pages_print() {
    let (mut wrong, mut run, mut compared) = (Vec::new(), 0, 0);
    for (page, text) in pages() {
        let blocks = blocks(&page, &text);
        let folder = tempfile::tempdir().unwrap();
        for name in TREE {
            symlink(repository().join(name), folder.path().join(name)).unwrap();
        }
        for (i, block) in blocks.iter().enumerate() {
            if block.not_run.is_some() || block.commands().is_empty() {
                continue;
            }
            run += 1;
            let printed = blocks.get(i + 1).filter(|next| next.language == "text" && follows(block, next));
            compared += usize::from(printed.is_some());
            if let Err(why) = check(folder.path(), block, printed) {
                wrong.push(format!("{page}:{}: {why}", block.line));
            }
        }
    }
    println!("{run} blocks run, the output of {compared} compared");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(compared >= 10, "the tutorial prints what its commands print");
}

/// Whether nothing but blank lines and the fences are between two blocks.
fn follows(block: &Block, next: &Block) -> bool {
    next.line - block.line <= block.lines.len() + 3
}

/// Runs a block, and compares what a terminal would show with what is printed.
fn check(folder: &Path, block: &Block, printed: Option<&Block>) -> Result<(), String> {
    let ours = Path::new(env!("CARGO_BIN_EXE_opentcp")).parent().unwrap();
    let path = format!("{}:{}", ours.display(), std::env::var("PATH").unwrap_or_default());
    let script = format!("set -e -o pipefail; exec 2>&1\n{}", block.commands().join("\n"));
    let mut command = Command::new("bash");
    command.arg("-c").arg(&script).current_dir(folder).env("PATH", path).env("NO_COLOR", "1").stdin(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // a page may show an error, and then its message
    if !output.status.success() && printed.is_none() {
        return Err(format!("{}\n{said}", output.status));
    }
    let Some(printed) = printed else { return Ok(()) };
    let shown = |line: &&str| !line.is_empty() && !is_progress(line);
    let said: Vec<&str> = said.lines().map(str::trim_end).filter(shown).collect();
    let printed: Vec<&str> = printed.lines.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty()).collect();
    if matches(&printed, &said) { Ok(()) } else { Err(format!("this was printed:\n{}", said.join("\n"))) }
}

/// Whether this is a line such as `[1/20] …`, instead of which a terminal shows a bar.
fn is_progress(line: &str) -> bool {
    let count = line.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map(|(count, _)| count);
    count.is_some_and(|count| count.bytes().all(|byte| byte.is_ascii_digit() || byte == b'/'))
}

/// Whether lines are as printed, where a line `…` stands for any number of them.
fn matches(printed: &[&str], said: &[&str]) -> bool {
    match printed.split_first() {
        None => said.is_empty(),
        Some((line, rest)) if line.trim() == "…" => (0..=said.len()).any(|i| matches(rest, &said[i..])),
        Some((line, rest)) => said.first().is_some_and(|one| alike(line, one)) && matches(rest, &said[1..]),
    }
}

/// Whether a line is as printed, where `…` stands for any text, and spaces for any number of them.
fn alike(printed: &str, said: &str) -> bool {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let (printed, said) = (words(printed), words(said));
    let mut parts = printed.split('…').map(str::trim);
    let Some(mut rest) = said.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut open = false;
    for part in parts {
        open = part.is_empty();
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    open || rest.is_empty()
}

#[test]
fn an_ellipsis_stands_for_any_text_or_lines() {
    assert!(alike("a … c", "a b  c") && alike("a …", "a b") && alike("a", "a"));
    assert!(!alike("a … c", "a b c d") && !alike("a", "a b") && !alike("b …", "a b"));
    assert!(matches(&["a", "…", "d"], &["a", "b", "c", "d"]) && matches(&["…"], &[]));
    assert!(!matches(&["a", "…", "d"], &["a", "b"]) && !matches(&["a"], &["a", "b"]));
}
