//! What is written where, and what overrides put in its place.

use super::*;

fn at(source: usize, span: Range<usize>) -> Origin {
    Origin { source, span }
}

fn parsed(text: &str) -> Node {
    parse_document(0, text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// A value of a second text, as `--set` has it.
fn value(text: &str) -> Node {
    parse_value(1, 0, text).unwrap_or_else(|error| panic!("{error:?}"))
}

/// A path of the second text.
fn path(dotted: &str) -> Path {
    dotted.split('.').map(|segment| (segment.to_string(), at(1, 0..segment.len()))).collect()
}

fn entry<'a>(node: &'a Node, key: &str) -> &'a Entry {
    let Value::Table(entries) = &node.value else { panic!("{node:?} is no table") };
    entries.iter().find(|entry| entry.key == key).unwrap_or_else(|| panic!("no {key} in {node:?}"))
}

/// The value at a path of keys.
fn get<'a>(node: &'a Node, dotted: &str) -> &'a Node {
    dotted.split('.').fold(node, |node, key| match &node.value {
        Value::Array(items) => &items[key.parse::<usize>().expect("a number")],
        _ => &entry(node, key).value,
    })
}

#[test]
fn every_key_and_value_has_the_place_where_it_is_written() {
    let text =
        "seed = 7\n[network]\nrate = \"1 Gbit/s\"\n[[traffic]]\nbulk = { sizes = [1, \"2 MB\"], \"ünder\" = true }\n";
    let root = parsed(text);
    let written = |origin: &Origin| &text[origin.span.clone()];
    for (dotted, as_written) in [
        ("seed", "7"),
        ("network.rate", "\"1 Gbit/s\""),
        ("traffic.0.bulk", "{ sizes = [1, \"2 MB\"], \"ünder\" = true }"),
        ("traffic.0.bulk.sizes", "[1, \"2 MB\"]"),
        ("traffic.0.bulk.sizes.1", "\"2 MB\""),
    ] {
        let node = get(&root, dotted);
        assert_eq!((node.at.source, written(&node.at)), (0, as_written), "{dotted}");
    }
    assert_eq!(written(&entry(get(&root, "network"), "rate").key_at), "rate");
    assert_eq!(written(&entry(get(&root, "traffic.0.bulk"), "sizes").key_at), "sizes");
    assert!(matches!(get(&root, "traffic.0.bulk.sizes.1").value, Value::Text(ref text) if text == "2 MB"));
}

#[test]
fn keys_keep_the_order_of_the_file() {
    let root = parsed("zeta = 1\nalpha = 2\nmid = 3\n");
    let Value::Table(entries) = &root.value else { panic!("{root:?}") };
    assert_eq!(entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["zeta", "alpha", "mid"]);
}

#[test]
fn a_value_that_stands_behind_its_key_has_its_place_in_the_whole_text() {
    // `--set queue={ red = 5 }`: the value begins at byte 6, its key `red` two bytes later, the 5 six after that
    let text = "queue={ red = 5 }";
    let node = parse_value(3, 6, &text[6..]).expect("a value");
    assert_eq!(node.at, at(3, 6..17));
    let red = entry(&node, "red");
    assert_eq!((&red.key_at, &red.value.at), (&at(3, 8..11), &at(3, 14..15)));
}

#[test]
fn integers_are_read_in_every_notation_and_one_that_fits_none_is_known_as_such() {
    let integer = |text: &str| match value(text).value {
        Value::Integer(value) => value,
        other => panic!("{text}: {other:?}"),
    };
    // 0x1f = 16 + 15, 0o17 = 8 + 7, 0b101 = 4 + 1
    let read = ["1_000", "-5", "0x1f", "0o17", "0b101"].map(integer);
    assert_eq!(read, [Some(1000), Some(-5), Some(31), Some(15), Some(5)]);
    // more than an i64 has still its value, for the message; more than an i128 has none
    assert_eq!(integer("9223372036854775808"), Some(1 << 63));
    assert_eq!(integer(&"9".repeat(40)), None);
}

#[test]
fn syntax_errors_are_all_reported_each_in_one_line_and_within_the_text() {
    let text = "a = \nb = 1\nc = ]\n";
    let errors = parse_document(0, text).expect_err("two values are missing");
    assert!(errors.len() >= 2, "{errors:?}");
    for error in &errors {
        assert!(!error.message.is_empty() && !error.message.contains('\n'), "{error:?}");
        assert!(error.span.start <= error.span.end && error.span.end <= text.len(), "{error:?}");
    }
    let twice = parse_document(0, "a = 1\na = 2\n").expect_err("a key has one value");
    assert_eq!(twice[0].span, 6..7, "the second one: {twice:?}");
    assert!(parse_value(1, 0, "10 ms").is_err(), "a quantity has quotes");
}

#[test]
fn what_a_value_is_has_an_article() {
    let kinds = [("\"1\"", "a text"), ("1", "an integer"), ("1.0", "a number"), ("true", "true or false")];
    let more = [("2024-01-01", "a date"), ("[]", "a list"), ("{}", "a table")];
    for (text, kind) in kinds.into_iter().chain(more) {
        assert_eq!(value(text).value.kind(), kind, "{text}");
    }
}

#[test]
fn a_value_in_a_runs_name_is_short_and_names_no_folder_of_the_machine() {
    for (text, name) in [
        ("\"2 ms\"", "2 ms"),
        ("\"/home/me/cc/mine.c\"", "mine.c"),
        ("\"cc/mine.c\"", "cc/mine.c"),
        ("7", "7"),
        ("0.5", "0.5"),
        ("true", "true"),
        ("[1, 2]", "1+2"),
        ("{ red = { min = 5, max = 15 } }", "red.min=5+max=15"),
        ("{ star = 4, name = \"x\" }", "star=4+name=x"),
    ] {
        assert_eq!(one_line(&value(text).value), name, "{text}");
    }
}

#[test]
fn an_override_takes_the_place_of_what_is_in_the_file_and_is_blamed_for_it() {
    let mut root = parsed("[network]\nrate = \"1 Gbit/s\"\ndelay = \"2 ms\"\n");
    put(&mut root, &path("network.rate"), value("\"10 Gbit/s\"")).expect("there is such a key");
    let rate = entry(get(&root, "network"), "rate");
    assert!(matches!(rate.value.value, Value::Text(ref text) if text == "10 Gbit/s"));
    assert_eq!((rate.key_at.source, rate.value.at.source), (1, 1), "mistakes point at what was typed");
    // what it does not touch stays the file's
    assert_eq!(entry(get(&root, "network"), "delay").value.at.source, 0);
    assert_eq!(entry(&root, "network").key_at.source, 0);
    assert!(matches!(&get(&root, "network").value, Value::Table(entries) if entries.len() == 2));
}

#[test]
fn an_override_makes_the_tables_on_its_way() {
    let mut root = parsed("seed = 1\n");
    put(&mut root, &path("measure.queues.links"), value("[1]")).expect("nothing is in the way");
    assert!(matches!(get(&root, "measure.queues.links.0").value, Value::Integer(Some(1))));
    assert_eq!(entry(&root, "measure").key_at, at(1, 0..7), "the first segment");
    put(&mut root, &path("measure.queues.links"), value("[2]")).expect("it is there now");
    assert!(
        matches!(&get(&root, "measure.queues").value, Value::Table(entries) if entries.len() == 1),
        "not added twice"
    );
}

#[test]
fn entries_of_a_list_are_reached_by_their_number_or_their_name() {
    let text = "[[traffic]]\nname = \"web\"\nflows = 1\n[[traffic]]\nflows = 2\n";
    let mut root = parsed(text);
    put(&mut root, &path("traffic.web.flows"), value("10")).expect("there is one of this name");
    put(&mut root, &path("traffic.1.flows"), value("20")).expect("there are two");
    let flows = |number: &str| match get(&root, &format!("traffic.{number}.flows")).value {
        Value::Integer(flows) => flows,
        ref other => panic!("{other:?}"),
    };
    assert_eq!((flows("0"), flows("1")), (Some(10), Some(20)));
    let mut root = parsed(text);
    let (why, blamed) = put(&mut root, &path("traffic.wbe.flows"), value("1")).expect_err("there is none");
    // one without a name is called by its number
    assert_eq!(why, "no entry `wbe` in this list; it has: web, 1");
    assert_eq!(blamed, at(1, 0..3));
    let (why, _) = put(&mut root, &path("traffic.2.flows"), value("1")).expect_err("there are two");
    assert!(why.starts_with("no entry `2`"), "{why}");
}

#[test]
fn a_path_through_something_that_has_no_keys_is_refused_and_changes_nothing() {
    let mut root = parsed("rate = \"1 Gbit/s\"\n");
    let (why, blamed) = put(&mut root, &path("rate.fast"), value("1")).expect_err("a text has no keys");
    assert_eq!(why, "`fast` would be a key inside a text, which has none");
    assert_eq!(blamed, at(1, 0..4));
    assert!(matches!(get(&root, "rate").value, Value::Text(_)));
    assert_eq!(dotted(&path("rate.fast")), "rate.fast");
}
