//! Where a problem is, how it is shown, and which name is offered instead.

use super::*;
use std::io::{Error, ErrorKind};

fn source(name: &str, text: &str) -> Source {
    Source { name: name.into(), text: text.into() }
}

fn problem(message: &str, source: usize, span: std::ops::Range<usize>) -> Problem {
    Problem { message: message.into(), at: Origin { source, span }, help: None }
}

/// The one problem at these bytes of a text, located.
fn located(text: &str, span: std::ops::Range<usize>) -> Located {
    Diagnostic::new(vec![problem("odd", 0, span)], &[source("a.toml", text)]).problems()[0].clone()
}

#[test]
fn a_place_is_a_line_and_a_column_in_characters() {
    // the second line's first 13 characters are `name = "süß" `, of 15 bytes; the first line has 9
    let text = "rate = 1\nname = \"süß\" oops\n";
    assert_eq!(text.find("oops"), Some(9 + 15));
    let at = located(text, 24..28);
    assert_eq!((at.line, at.column, at.span), (2, 14, (24, 4)));
    // a newline is the end of its own line
    assert_eq!((located(text, 8..9).line, located(text, 9..9).line), (1, 2));
    assert_eq!((located(text, 8..9).column, located(text, 9..9).column), (9, 1));
}

#[test]
fn a_place_within_a_character_or_behind_the_end_is_moved_to_one_that_exists() {
    // `ü` has two bytes: 4 and 5
    let at = located("a = ü", 5..900);
    assert_eq!((at.line, at.column, at.span), (1, 5, (4, 2)));
    let behind = located("a = 1", 700..900);
    assert_eq!((behind.column, behind.span), (6, (5, 0)));
    // an end before the beginning marks nothing
    assert_eq!(located("a = 1", std::ops::Range { start: 4, end: 2 }).span, (4, 0));
}

#[test]
fn of_a_table_of_many_lines_its_first_line_is_marked() {
    let text = "[network]\nrate = 1\ndelay = 2\n";
    assert_eq!(located(text, 0..text.len()).span, (0, "[network]".len()));
}

#[test]
fn problems_are_reported_in_the_order_of_the_file_and_of_what_was_typed_after_it() {
    let sources = [source("a.toml", "one = 1\ntwo = 2\n"), source("--set", "three=3")];
    let noted = vec![problem("third", 1, 0..5), problem("second", 0, 8..11), problem("first", 0, 0..3)];
    let diagnostic = Diagnostic::new(noted, &sources);
    let reported = diagnostic.problems().iter().map(|one| (one.message.as_str(), one.file.as_str(), one.line));
    assert_eq!(reported.collect::<Vec<_>>(), [("first", "a.toml", 1), ("second", "a.toml", 2), ("third", "--set", 1)]);
}

#[test]
fn a_message_shows_the_line_with_its_neighbours_and_marks_the_place() {
    let text = "one = 1\ntwo = 2\nthree = 3\nfour = 4\nfive = 5\n";
    let three = text.find("three").expect("it is there");
    let help = Some("write `3.0`".to_string());
    let odd = Problem { help, ..problem("this is a number", 0, three..three + 5) };
    let shown = Diagnostic::new(vec![odd], &[source("a.toml", text)]).to_string();
    for line in
        ["this is a number", "[a.toml:3:1]", "2 │ two = 2", "3 │ three = 3", "4 │ four = 4", "help: write `3.0`"]
    {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let mark = shown.lines().skip_while(|line| !line.contains("three = 3")).nth(1).unwrap_or_default();
    assert_eq!(mark.matches('─').count(), 5, "the five characters of the key: {shown}");
    assert!(!shown.contains("one = 1") && !shown.contains("five = 5"), "a neighbour on each side: {shown}");
}

#[test]
fn a_long_line_is_cut_around_the_mistake() {
    // columns of a renderer are numbers of 16 bits: 17,000 tabs are 68,000 columns
    for filler in ["\t", "x", "ü", "好"] {
        let line = format!("x = {}@{}", filler.repeat(17_000), filler.repeat(70_000));
        let text = format!("one = 1\n{}\n{line}\n{line}\n", filler.repeat(70_000));
        let at = text.find('@').expect("it is there");
        let diagnostic = Diagnostic::new(vec![problem("odd", 0, at..at + 1)], &[source("a.toml", &text)]);
        let (shown, found) = (diagnostic.to_string(), &diagnostic.problems()[0]);
        assert_eq!((found.line, found.column), (3, 17_005));
        assert!(shown.contains("[a.toml:3:17005]"), "{shown}");
        assert!(shown.contains("3 │ …") && shown.contains('@') && shown.contains("4 │ x = "), "{shown}");
        assert!(!shown.contains("one = 1") && shown.chars().count() < 4000, "{shown}");
        // a mistake that is as long as the line, and one at its end
        let end = text.len() - 1;
        for span in [at..end, end..end, text.find("x = ").expect("it is there")..end, 8..9, 0..1] {
            let shown = Diagnostic::new(vec![problem("odd", 0, span)], &[source("a.toml", &text)]).to_string();
            assert!(shown.chars().count() < 4000, "{shown}");
        }
    }
}

#[test]
fn colours_are_for_a_terminal_alone() {
    let diagnostic = Diagnostic::new(vec![problem("odd", 0, 0..1)], &[source("a.toml", "a = 1")]);
    let escape = '\u{1b}';
    assert!(diagnostic.render(true).contains(escape));
    assert!(!diagnostic.render(false).contains(escape) && !diagnostic.to_string().contains(escape));
}

#[test]
fn an_empty_file_has_a_first_line_that_can_be_shown() {
    let diagnostic = Diagnostic::new(vec![problem("the file lacks `network`", 0, 0..0)], &[source("a.toml", "")]);
    let at = &diagnostic.problems()[0];
    assert_eq!((at.line, at.column), (1, 1));
    assert!(diagnostic.to_string().contains("[a.toml:1:1]"), "{diagnostic}");
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_no_line_of_it_shown() {
    let error = Error::new(ErrorKind::NotFound, "no such file");
    let diagnostic = Diagnostic::unreadable("policy", "p.toml", &error);
    let shown = diagnostic.to_string();
    assert!(shown.contains("cannot read the policy `p.toml`: no such file"), "{shown}");
    assert!(!shown.contains('│') && !shown.contains("1:1"), "{shown}");
    assert_eq!(diagnostic.problems()[0].file, "p.toml");
}

#[test]
fn the_nearest_name_is_offered_if_a_third_of_it_and_one_letter_is_enough() {
    let names = ["drop_tail", "red", "pie", "codel"];
    let nearest = |written| nearest(written, names);
    assert_eq!(nearest("drop_tial"), Some("drop_tail"));
    // nine letters: 9 / 3 + 1 = 4 edits are near, 5 are not
    assert_eq!(nearest("drxxxxail"), Some("drop_tail"), "of the letters o, p, _, t four are other");
    assert_eq!(nearest("dxxxxxail"), None, "five are");
    // three letters: 3 / 3 + 1 = 2
    assert_eq!((nearest("rxx"), nearest("xxx")), (Some("red"), None));
    // of `red` and `pie` both are two edits away
    assert_eq!(nearest("rie"), Some("pie"), "one edit is nearer than two");
    assert_eq!(nearest("pxd"), Some("red"), "of two that are as near, the first");
    // two edits are near, three are not
    assert_eq!(
        (nearest("DER"), nearest("ERD")),
        (Some("red"), Some("red")),
        "case does not count, and swapped neighbours are one edit"
    );
}

#[test]
fn a_long_key_is_a_typo_of_nothing() {
    for length in [65, 189, 190, 1 << 20] {
        assert_eq!(nearest(&"x".repeat(length), ["drop_tail", "red"]), None, "{length}");
    }
}

#[test]
fn names_are_listed_with_a_last_or() {
    assert_eq!(list([]), "none");
    assert_eq!(list(["a"]), "`a`");
    assert_eq!(list(["a", "b"]), "`a` or `b`");
    assert_eq!(list(["a", "b", "c"]), "`a`, `b` or `c`");
    assert_eq!(suggestion("pei", &["red", "pie"]), "did you mean `pie`? Allowed: `red` or `pie`");
    assert_eq!(suggestion("nothing_like_it", &["red", "pie"]), "allowed: `red` or `pie`");
}
