//! Single values at their bounds, and tables whose keys are all accounted for.

use super::*;
use crate::tree::parse_document;

/// A reader that has nothing but values.
#[derive(Default)]
struct Reader(Values);

impl Deref for Reader {
    type Target = Values;

    fn deref(&self) -> &Values {
        &self.0
    }
}

fn root(text: &str) -> Node {
    parse_document(0, text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// The value of the key `v`.
fn node(value: &str) -> Node {
    let Value::Table(mut entries) = root(&format!("v = {value}")).value else { panic!("a file is a table") };
    entries.remove(0).value
}

/// What reading this value gives, and what is wrong with it.
fn read<T>(value: &str, read: impl Fn(&Values, &Node) -> Option<T>) -> (Option<T>, Vec<String>) {
    let values = Values::default();
    let read = read(&values, &node(value));
    (read, values.into_problems().into_iter().map(|problem| problem.message).collect())
}

/// The only thing that is wrong with this value.
fn wrong<T: std::fmt::Debug>(value: &str, reading: impl Fn(&Values, &Node) -> Option<T>) -> String {
    let (read, mut problems) = read(value, reading);
    assert!(read.is_none() && problems.len() == 1, "{value}: {read:?} {problems:?}");
    problems.remove(0)
}

#[test]
fn an_integer_may_be_either_of_its_bounds_and_nothing_beyond() {
    let up_to_ten = |values: &Values, node: &Node| values.integer(node, 1, 10);
    assert_eq!((read("1", up_to_ten).0, read("10", up_to_ten).0), (Some(1), Some(10)));
    assert_eq!(wrong("0", up_to_ten), "`0` is out of range: from 1 to 10");
    assert_eq!(wrong("11", up_to_ten), "`11` is out of range: from 1 to 10");
    assert_eq!(wrong("-1", up_to_ten), "`-1` is out of range: from 1 to 10");
    assert_eq!(wrong(&"9".repeat(40), up_to_ten), "this number is out of range: from 1 to 10");
    assert_eq!(wrong("1.0", up_to_ten), "this is an integer, from 1 to 10, not a number");
    // the largest of TOML is not worth naming
    assert_eq!(wrong("0", |values, node| values.integer(node, 1, INTEGER_MAX)), "`0` is out of range: at least 1");
    assert_eq!(read("4294967295", |values, node| values.count(node, 0, u32::MAX)).0, Some(u32::MAX));
    assert_eq!(wrong("4294967296", |values, node| values.count(node, 0, u32::MAX)).matches("out of range").count(), 1);
}

#[test]
fn a_number_is_more_than_zero_and_finite() {
    let up_to_two = |values: &Values, node: &Node| values.number(node, 2.0);
    assert_eq!((read("2", up_to_two).0, read("1e-9", up_to_two).0), (Some(2.0), Some(1e-9)));
    for value in ["0", "0.0", "-1", "2.1", "inf", "-inf", "nan"] {
        assert!(wrong(value, up_to_two).contains("out of range: more than 0, at most 2"), "{value}");
    }
    assert_eq!(wrong("\"2\"", up_to_two), "this is a number, not a text");
}

#[test]
fn a_percentage_has_its_sign_and_is_neither_nothing_nor_more_than_all() {
    let percentage = Values::percentage;
    assert_eq!(read("\"100 %\"", percentage).0, Some(100.0));
    assert_eq!((read("\"0.0001%\"", percentage).0, read("\" 2.5 % \"", percentage).0), (Some(0.0001), Some(2.5)));
    for value in ["\"0 %\"", "\"0.00009 %\"", "\"100.1 %\"", "\"-1 %\"", "\"nan %\""] {
        assert!(wrong(value, percentage).contains("out of range: from 0.0001 % to 100 %"), "{value}");
    }
    assert_eq!(wrong("\"30\"", percentage), "`30` is not a percentage");
    assert!(wrong("30", percentage).ends_with("such as \"30 %\", not an integer"));
}

#[test]
fn a_name_can_be_that_of_a_file() {
    let long = |letters: usize| format!("\"{}\"", "x".repeat(letters));
    for name in ["\"a\"", "\"_a.b-C9\"", &long(64)] {
        assert!(read(name, Values::identifier).0.is_some(), "{name}");
    }
    for name in ["\"\"", "\"a b\"", "\"../a\"", "\"a/b\"", "\".hidden\"", "\"-rf\"", "\"ä\"", &long(65)] {
        assert!(wrong(name, Values::identifier).ends_with("is not a name"), "{name}");
    }
}

#[test]
fn a_quantity_is_in_quotes_and_its_rule_is_reported() {
    let positive = |values: &Values, node: &Node| values.positive::<u32>(node);
    assert_eq!(read("\"1\"", positive).0, Some(1));
    assert_eq!(wrong("\"0\"", positive), "`0` is out of range: more than zero");
    assert_eq!(wrong("\"x\"", positive), "x".parse::<u32>().expect_err("no number").to_string());
    assert!(wrong("1", positive).ends_with("in quotes with its unit, such as \"10 ms\", not an integer"));
    let even = |values: &Values, node: &Node| values.within(node, |value: &u32| value.is_multiple_of(2), "even");
    assert_eq!((read("\"4\"", even).0, wrong("\"5\"", even)), (Some(4), "`5` is out of range: even".to_string()));
}

#[test]
fn a_word_that_is_not_known_gets_the_nearest_one() {
    let words = [("ecmp", 1), ("single_path", 2)];
    let values = Values::default();
    assert_eq!(values.word(&node("\"single_path\""), &words), Some(2));
    assert_eq!(values.word(&node("\"epmc\""), &words), None);
    assert_eq!(values.word(&node("1"), &words), None);
    let problems = values.into_problems();
    assert_eq!(problems[0].message, "`epmc` is not known here");
    assert_eq!(problems[0].help.as_deref(), Some("did you mean `ecmp`? Allowed: `ecmp` or `single_path`"));
    assert_eq!(problems[1].message, "this is one of `ecmp` or `single_path`, not an integer");
}

#[test]
fn a_variant_is_one_key_of_those_that_are_known() {
    let names = ["red", "pie"];
    let variant = |text: &str| {
        let values = Values::default();
        let key = values.variant(&node(text), "queue", &names).map(|entry| entry.key.clone());
        (key, values.into_problems().pop().map(|problem| (problem.message, problem.help.unwrap_or_default())))
    };
    assert_eq!(variant("{ pie = 1 }"), (Some("pie".to_string()), None));
    let reported = |text: &str| variant(text).1.expect("something is wrong with it");
    let example = "write for example `{ red = { … } }`".to_string();
    assert_eq!(reported("{}"), ("queue is empty; it has one of `red` or `pie`".to_string(), example.clone()));
    assert_eq!(reported("1"), ("queue is a table with one of `red` or `pie`".to_string(), example));
    let two = reported("{ red = 1, pie = 2 }");
    assert_eq!(two.0, "queue is already `red`; `pie` is a second one");
    let unknown = reported("{ pei = 1 }");
    assert_eq!(unknown, ("unknown queue `pei`".to_string(), "did you mean `pie`? Allowed: `red` or `pie`".to_string()));
}

#[test]
fn all_that_is_wrong_in_a_list_is_reported_and_nothing_of_it_used() {
    let integers = |values: &Values, node: &Node| values.each(node, |item| values.integer(item, 1, 9));
    assert_eq!(read("[1, 9]", integers), (Some(vec![1, 9]), Vec::new()));
    let (read, problems) = read("[0, 5, 10]", integers);
    assert_eq!((read, problems.len()), (None, 2), "the 10 is not hidden by the 0");
    assert_eq!(wrong("1", integers), "this is a list in brackets, not an integer");
}

#[test]
fn keys_that_nobody_asks_for_are_mistakes_and_the_nearest_asked_one_is_offered() {
    let text = "rate = 1\ndleay = 2\nother = 3\n";
    let (reader, root) = (Reader::default(), root(text));
    let section = Section::of(&reader, &root, "a link").expect("a table");
    assert_eq!(section.get("rate", |reader, node| reader.integer(node, 0, 9)), Some(1));
    assert_eq!(section.get("delay", |reader, node| reader.integer(node, 0, 9)), None);
    assert!(!section.finish());
    let problems = reader.0.into_problems();
    let reported: Vec<_> = problems.iter().map(|one| (one.message.as_str(), &text[one.at.span.clone()])).collect();
    assert_eq!(reported, [("a link has no key `dleay`", "dleay"), ("a link has no key `other`", "other")]);
    assert_eq!(problems[0].help.as_deref(), Some("did you mean `delay`? Allowed: `rate` or `delay`"));
}

#[test]
fn a_key_that_must_be_there_is_missed_and_one_that_cannot_be_read_is_reported_once() {
    let (reader, root) = (Reader::default(), root("rate = \"x\"\n"));
    let section = Section::of(&reader, &root, "a link").expect("a table");
    let integer = |reader: &Reader, node: &Node| reader.integer(node, 0, 9);
    assert_eq!(section.require("rate", integer), None);
    assert_eq!(section.require("delay", integer), None);
    assert!(section.finish(), "every key was asked for");
    let reported: Vec<String> = reader.0.into_problems().into_iter().map(|one| one.message).collect();
    assert_eq!(reported, ["this is an integer, from 0 to 9, not a text", "a link lacks `delay`"]);
}

#[test]
fn two_keys_that_say_the_same_exclude_each_other_at_the_second() {
    let text = "load = 1\nrate = 22\n";
    let (reader, root) = (Reader::default(), root(text));
    let section = Section::of(&reader, &root, "arrivals").expect("a table");
    section.exclusive("load", "rate");
    section.exclusive("load", "absent");
    let problems = reader.0.into_problems();
    assert_eq!(problems.len(), 1);
    assert_eq!(
        (problems[0].message.as_str(), &text[problems[0].at.span.clone()]),
        ("`load` and `rate` exclude each other", "22")
    );
}

#[test]
fn a_table_that_was_left_out_is_empty_and_something_else_in_its_place_a_mistake() {
    let reader = Reader::default();
    let none = Section::of_optional(&reader, None, "measure").expect("an empty one");
    assert!(none.take("links").is_none() && none.finish());
    let one = node("1");
    assert!(Section::of_optional(&reader, Some(&one), "measure").is_none());
    let reported = reader.0.into_problems();
    assert_eq!(reported.len(), 1);
    assert_eq!(reported[0].message, "measure is a table, not an integer");
    assert_eq!(reported[0].at, one.at);
}
