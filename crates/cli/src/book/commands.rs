//! Every command that the documentation shows is one that this program takes, with files that exist.

use super::shown::{Block, blocks, pages, repository};
use crate::Cli;
use clap::Parser as _;
use clap::error::ErrorKind;

/// Folders of the repository that commands name.
const TREE: [&str; 6] = ["cc/", "crates/", "dist/", "policies/", "python/", "scenarios/"];

#[test]
fn every_shown_command_is_one_of_this_program() {
    let (mut wrong, mut in_blocks, mut in_sentences) = (Vec::new(), 0, 0);
    for (page, text) in pages() {
        // those of the reference are clap's own
        if page == "docs/reference/command.md" {
            continue;
        }
        for block in blocks(&page, &text) {
            for command in block.commands().iter().flat_map(|line| commands(line)) {
                in_blocks += 1;
                if let Err(error) = taken(&command, block.not_run.as_deref() == Some("synopsis")) {
                    wrong.push(format!("{page}:{}: {}: {error}", block.line, command.join(" ")));
                }
            }
        }
        for span in code_spans(&text, &blocks(&page, &text)) {
            for command in commands(&span) {
                in_sentences += 1;
                if let Err(error) = taken(&command, true) {
                    wrong.push(format!("{page}: `{}`: {error}", command.join(" ")));
                }
            }
        }
    }
    println!("{in_blocks} commands in blocks, {in_sentences} in sentences");
    assert!(wrong.is_empty(), "{} shown commands are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether the program takes these arguments; a synopsis may leave out what is required.
fn taken(words: &[String], synopsis: bool) -> Result<(), String> {
    for word in words {
        let path = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
        let named = TREE.iter().any(|folder| path.starts_with(folder)) && !path.contains(['*', '{', '…']);
        if named && !repository().join(path).exists() {
            return Err(format!("{path} does not exist"));
        }
    }
    // a variable of the reader's shell may hold any options
    let given = words.iter().filter(|word| !word.starts_with('$'));
    let Err(error) = Cli::try_parse_from(given) else { return Ok(()) };
    let upper = |word: &String| !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase());
    let placeholder = words.iter().any(upper) || (synopsis && words.last().is_some_and(|word| word.starts_with("--")));
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(()),
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::TooFewValues
        | ErrorKind::WrongNumberOfValues
            if synopsis =>
        {
            Ok(())
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation if placeholder => Ok(()),
        _ => Err(error.to_string().lines().next().unwrap_or_default().to_string()),
    }
}

/// The commands of this program in a line of shell, as words.
fn commands(line: &str) -> Vec<Vec<String>> {
    let all = shell(line);
    let ours = all.into_iter().filter_map(|words| {
        let at = words.iter().position(|word| word == "opentcp")?;
        let before = |word: &String| ["sudo", "time", "nsenter", "$"].contains(&word.as_str()) || word.contains('=');
        words[..at].iter().all(before).then(|| words[at..].to_vec())
    });
    ours.collect()
}

/// Simple commands of a line: words without quotes, redirections and comments.
fn shell(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word, mut quote) = (vec![], Vec::new(), None::<String>, None);
    // what is redirected to is no argument
    let mut redirected = false;
    for c in line.chars().chain([';']) {
        if quote.is_some() || !" \t[];|&()<>'\"#".contains(c) || (c == '#' && word.is_some()) {
            if quote == Some(c) {
                quote = None;
            } else {
                word.get_or_insert_default().push(c);
            }
            continue;
        }
        match c {
            '#' => break,
            '"' | '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
                continue;
            }
            // a number before it is a file descriptor
            '<' | '>' => drop(word.take_if(|word| word.parse::<u32>().is_ok())),
            _ => {}
        }
        if let Some(word) = word.take()
            && !std::mem::take(&mut redirected)
        {
            words.push(word);
        }
        redirected |= "<>".contains(c);
        if ";|&()".contains(c) {
            all.push(std::mem::take(&mut words));
        }
    }
    all.push(words);
    all
}

/// Code in sentences that begins with the program's name.
fn code_spans(text: &str, blocks: &[Block]) -> Vec<String> {
    let inside = |line: usize| blocks.iter().any(|block| (block.line..=block.line + block.lines.len()).contains(&line));
    let outside = text.lines().enumerate().filter(|(i, line)| !inside(i + 1) && !line.starts_with('#'));
    let sentences: Vec<&str> = outside.map(|(_, line)| line).collect();
    let sentences = sentences.join("\n");
    let spans = sentences.split('`').skip(1).step_by(2);
    // a span with these is a pattern of several commands
    let spans = spans.filter(|span| span.contains("opentcp ") && !span.contains(['|', '…', '\n']));
    let spans = spans.filter(|span| !span.contains("...") && !span.contains("COMMAND"));
    spans.map(str::to_string).collect()
}

#[test]
fn a_line_of_shell_is_read_as_the_shell_does() {
    let words = |line| commands(line).into_iter().map(|words| words.join(" ")).collect::<Vec<_>>();
    assert_eq!(words("sudo opentcp run 'a b.toml' --set \"x=1 s\" # why"), ["opentcp run a b.toml --set x=1 s"]);
    assert_eq!(words("cd x && opentcp status --json | jq . 2>&1 >file &"), ["opentcp status --json"]);
    assert_eq!(words("opentcp enroll - <token"), ["opentcp enroll -"]);
    assert!(words("man opentcp").is_empty() && words("echo opentcp run").is_empty());
}

#[test]
fn a_wrong_command_is_found() {
    let words = |line: &str| line.split(' ').map(str::to_string).collect::<Vec<_>>();
    assert!(taken(&words("opentcp run scenarios/dumbbell.toml"), false).is_ok());
    for wrong in ["opentcp run", "opentcp run a.toml --sede 1", "opentcp runs", "opentcp run scenarios/none.toml"] {
        assert!(taken(&words(wrong), false).is_err(), "{wrong}");
    }
    assert!(taken(&words("opentcp run"), true).is_ok() && taken(&words("opentcp run --sede"), true).is_err());
}
