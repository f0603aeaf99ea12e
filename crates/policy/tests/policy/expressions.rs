//! The language of conditions: what is in it, and that no text makes its reader fall over.

use policy::{Expression, Place, Scope, Variable};
use proptest::prelude::*;

fn error(text: &str) -> String {
    Expression::compile(text, Place::Rule).unwrap_err().to_string()
}

#[test]
fn what_the_language_has_is_accepted() {
    for text in [
        "true",
        "network.max_link_utilization < 0.7 && !(network.live_flows >= 1000)",
        "network.fct_p99 > duration('2 ms') * 3 || network.fct_p50 == duration(\"1 s\")",
        "host.retransmitted_segments / host.sent_segments > 0.001",
        "host.send_rate > 0.5 * rate('1 Gbit/s')",
        "host.fan_in >= 10 || host.port_queue > size('75 kB') || host.port_drop_rate > 0.001",
        "links.all(l, l.marks) && !links.exists(x, x.queue > size('64 kB') && x.receiver != 'core')",
        "groups.exists(g, g.name == 'mpi' && g.fct_p99 > network.fct_p99)",
        "host.rack == 'r1' ? host.drop_rate < 0.1 : host.drop_rate < 0.2",
        "clock.hour + 2 < 24.5",
        "-network.live_flows < -5",
    ] {
        if let Err(error) = Expression::compile(text, Place::Rule) {
            panic!("{text}: {error} {:?}", error.help);
        }
    }
}

#[test]
fn what_it_has_not_is_refused_in_its_own_words() {
    for (text, message) in [
        ("network.live_flows % 2 == 0", "`%` is not part"),
        ("host.name in ['a', 'b']", "`in` is not part"),
        ("1 < 2 < 3", "cannot compare"),
        ("network.live_flows", "true or false"),
        ("true < false", "no order"),
        ("host.name < 'a'", "no order"),
        ("host.fan_in > rate('1 Mbit/s')", "cannot compare"),
        ("host.port_queue > 75000", "a size (bytes) is expected"),
        ("host.fanin > 3", "host.fanin"),
        ("host.name == host.rack", "one side is a variable"),
        ("network.live_flows > 1 / 0", "divides by zero"),
        ("network.fct_p99 * network.fct_p99 > duration('1 s')", "cannot multiply"),
        ("links.map(l, l.marks)", "only `exists` and `all` are supported"),
        ("links.exists(l, hosts.exists(h, h.live_flows > 3))", "this macro is inside another one"),
        ("links.exists(l, host.live_flows > 3)", "cannot be used inside"),
        ("racks.exists(r, r.x)", "there is no list `racks`"),
        ("", "is empty"),
        ("network.live_flows > 5 and true", "`and` is not part"),
        ("network.fct_p99 > 5 s", "`s` does not belong here"),
    ] {
        let said = error(text);
        assert!(said.contains(message), "{text}: {said}");
    }
}

#[test]
fn places_are_right_behind_letters_of_two_bytes() {
    let text = "host.rack == 'käse' && host.nope > 1";
    let error = Expression::compile(text, Place::Rule).unwrap_err();
    assert_eq!(&text[error.span], "host.nope");
    let text = "host.rack == 'käse' && host.live_flows = 1";
    let error = Expression::compile(text, Place::Rule).unwrap_err();
    assert_eq!(&text[error.span], "=");
}

#[test]
fn names_are_unique_and_belong_to_their_scope() {
    let mut names: Vec<&str> = Variable::all().iter().map(|variable| variable.name).collect();
    for variable in Variable::all() {
        let owner = variable.name.split_once('.').unwrap().0;
        let scope = match owner {
            "network" | "clock" => Scope::Network,
            "link" => Scope::Link,
            "host" => Scope::Host,
            "group" => Scope::Group,
            other => panic!("{other}"),
        };
        assert_eq!(variable.scope(), scope, "{}", variable.name);
        assert!(!variable.doc.is_empty());
    }
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_an_expression_or_an_error_within_it(text in "\\PC{0,60}") {
        if let Err(error) = Expression::compile(&text, Place::Rule) {
            prop_assert!(text.get(error.span.clone()).is_some(), "{:?} of {text:?}", error.span);
        }
    }

    #[test]
    fn any_words_of_the_language_are_an_expression_or_an_error_within_it(
        words in prop::collection::vec(prop::sample::select(vec![
            "network.live_flows", "host.drop_rate", "links.exists(l,", "l.marks", "(", ")", "&&", "||", "!", "<", ">=", "==",
            "+", "-", "*", "/", "?", ":", "0.5", "7", "'x'", "duration(", "'1 s'", "é", ".", "[", "]", "{", "}", "true", "in",
        ]), 0..14),
    ) {
        let text = words.join(" ");
        if let Err(error) = Expression::compile(&text, Place::Rule) {
            prop_assert!(text.get(error.span.clone()).is_some(), "{:?} of {text:?}", error.span);
        }
    }
}
