//! Everything that one can get wrong in a policy gets one answer, with its place and what to write instead.

use crate::common::{GOOD, KNOWN, parse};
use policy::Policy;

struct Case {
    /// What is replaced in the good policy, and by what.
    change: (&'static str, &'static str),
    /// Line and column.
    at: (usize, usize),
    message: &'static str,
    help: &'static str,
}

const fn case(
    change: (&'static str, &'static str),
    at: (usize, usize),
    message: &'static str,
    help: &'static str,
) -> Case {
    Case { change, at, message, help }
}

const WHEN: &str = "network.max_link_utilization < 0.70";

const CASES: &[Case] = &[
    case(
        (WHEN, "network.max_link_utilisation < 0.70"),
        (14, 9),
        "there is no variable `network.max_link_utilisation`",
        "did you mean `network.max_link_utilization`?",
    ),
    case(
        (WHEN, "network.max_link_utilization < 70"),
        (14, 40),
        "a fraction is from 0 to 1; it is never 70",
        "write 0.7 for 70 %",
    ),
    case(
        (WHEN, "network.max_link_utilization < 70 %"),
        (14, 44),
        "there are no percentages in expressions",
        "0.70 for 70 %",
    ),
    case(
        (WHEN, "network.inter_rack_rate < network.drop_rate"),
        (14, 9),
        "cannot compare a rate (bit/s) with a fraction (0 to 1)",
        "rate(\\\"100 Mbit/s\\\")",
    ),
    case((WHEN, "network.fct_p99 < 5"), (14, 27), "`5` has no unit, where a duration is expected", "duration("),
    case((WHEN, "network.fct_p99 < rate('5 Mbit/s')"), (14, 9), "cannot compare a duration with a rate", "duration("),
    case(
        (WHEN, "network.fct_p99 < duration('5 Mbit/s')"),
        (14, 36),
        "has the unit `Mbit/s`; a time is written with",
        "duration(",
    ),
    case(
        (WHEN, "network.max_link_utilization"),
        (14, 9),
        "a condition is true or false; this is a fraction",
        "compare it",
    ),
    case((WHEN, "network.live_flows = 5"), (14, 28), "`=` is not part of the language", "`==`"),
    case((WHEN, "network.live_flows <"), (14, 29), "the expression is incomplete", "both sides"),
    case(
        (WHEN, "link.utilization < 0.7"),
        (14, 9),
        "`link.utilization` exists once for each member of `links`",
        "links.exists(x, x.utilization",
    ),
    case(
        (WHEN, "links.exists(l, l.utilisation < 0.7)"),
        (14, 25),
        "a link has no `utilisation`",
        "did you mean `utilization`?",
    ),
    case((WHEN, "abs(network.live_flows) > 3"), (14, 9), "there is no function `abs`", "duration("),
    case(
        ("host.drop_rate > 0.001", "network.drop_rate > 0.001"),
        (17, 24),
        "a guard cannot use `network.drop_rate`",
        "`host.drop_rate`",
    ),
    case(
        ("host.drop_rate > 0.001", "host.port_queue > size('50 kB')"),
        (17, 24),
        "a guard cannot use `host.port_queue`",
        "`host.drop_rate`",
    ),
    case(
        ("network.drop_rate < 0.01", "host.drop_rate < 0.01"),
        (11, 10),
        "`host.drop_rate` belongs to one host",
        "hosts.exists(h, h.drop_rate",
    ),
    case(
        ("\"network.fct_p99\"", "\"network.fct_p99 < duration('1 s')\""),
        (8, 13),
        "an objective is a quantity",
        "network.fct_p99",
    ),
    case(("rto_min = \"2 ms\"", "rto_min = \"2 Mbit/s\""), (16, 38), "has the unit `Mbit/s`; a time", ""),
    case(("rto_min = \"2 ms\"", "window_total = \"1 kB\""), (16, 43), "from 1.5 kB to 1 GB", ""),
    case(
        ("rto_min = \"2 ms\"", "window_total = 200000"),
        (16, 43),
        "a quantity is written in quotes with its unit",
        "",
    ),
    case(("rto_min = \"2 ms\"", "rto_min = 2"), (16, 38), "a quantity is written in quotes with its unit", ""),
    case(("initial_cwnd = 20", "initial_window = 20"), (16, 9), "`set` has no key `initial_window`", "did you mean"),
    case(("initial_cwnd = 20", "initial_cwnd = 0"), (16, 24), "out of range: from 1 to 1000", ""),
    case(("initial_cwnd = 20", "cc = \"cubik\""), (16, 14), "unknown algorithm `cubik`", "did you mean `cubic`?"),
    case(("10.0.0.0/8", "10.1.0.0/8"), (15, 39), "has bits set behind its length", ""),
    case(
        ("hosts = \"treated\"", "hosts = \"treted\""),
        (15, 19),
        "`treted` is not known here",
        "did you mean `treated`?",
    ),
    case(("lifetime = \"90 s\"", "lifetime = \"60 s\""), (3, 12), "expires before the next one", "90 s"),
    case(("period = \"60 s\"\n", ""), (1, 1), "the policy lacks `period`", ""),
    case(("mode = \"enforce\"", "mode = \"on\""), (1, 8), "`on` is not known here", "`observe` or `enforce`"),
    case(
        ("\"utilization\"", "\"utilisation\""),
        (5, 10),
        "a link has no statistic `utilisation`",
        "did you mean `utilization`?",
    ),
    case(("fraction = 0.5", "fraction = 50"), (19, 12), "`50` is out of range: more than 0, at most 1", ""),
    case(
        ("fraction = 0.5", "stages = [{ fraction = 0.1 }, { fraction = 0.5 }]"),
        (19, 10),
        "the stages are not in order of time",
        "`after`",
    ),
    case(
        ("[rollout]", "[[rule]]\nname = \"calm\"\nwhen = \"true\"\nset = { pacing = true }\n[rollout]"),
        (19, 8),
        "a second rule `calm`",
        "identify rules by name",
    ),
    case(
        (
            "[rollout]",
            "[[rule]]\nname = \"a\"\nwhen = \"true\"\nset = { cc = \"cubic\" }\n[[rule]]\nname = \"b\"\nwhen = \"true\"\nset = { cc = \"vegas\" }\n[rollout]",
        ),
        (25, 14),
        "`vegas` reacts to loss and delay, `cubic` of an earlier rule to loss",
        "allow_mixed_measures = true",
    ),
    case(
        ("lifetime = \"90 s\"", "time_zone = \"Europe/Zuerich\""),
        (3, 13),
        "there is no time zone `Europe/Zuerich`",
        "did you mean `Europe/Zurich`?",
    ),
    case(("initial_cwnd = 20", "cc = \"kernel:reno\""), (16, 14), "the simulator has no kernel", "write `newreno`"),
    case(("[rollout]", "[rollout"), (18, 9), "this is not TOML", ""),
];

#[test]
fn the_policy_that_is_broken_here_is_good() {
    assert_eq!(parse(GOOD).unwrap().name, "p");
}

#[test]
fn each_mistake_is_one_error_with_its_place_and_a_hint() {
    assert!(CASES.len() >= 20);
    for Case { change: (from, to), at, message, help } in CASES {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replace(from, to);
        let diagnostic = parse(&text).expect_err(to);
        let [problem] = diagnostic.problems() else { panic!("{to}: one answer, not\n{diagnostic}") };
        assert_eq!((problem.line, problem.column), *at, "{diagnostic}");
        assert!(problem.message.contains(message), "{diagnostic}");
        let said = problem.help.clone().unwrap_or_default();
        assert!(said.contains(&help.replace("\\\"", "\"")), "{help}: {diagnostic}");
    }
}

#[test]
fn what_a_cue_cannot_carry_is_refused() {
    let labels = (0..9).map(|i| format!("l{i} = \"x\"")).collect::<Vec<_>>().join(", ");
    let guard = format!("host.live_flows > 1{}", " || host.live_flows > 1".repeat(12));
    for (from, to, message) in [
        ("hosts = \"treated\"", format!("hosts = [{}]", "\"h*\", ".repeat(9)), "at most 8 patterns"),
        ("hosts = \"treated\"", format!("hosts = [\"{}\"]", "h".repeat(256)), "more than 255 bytes"),
        ("hosts = \"treated\"", format!("labels = {{ {labels} }}"), "at most 8 labels"),
        ("host.drop_rate > 0.001", guard, "more than 255 bytes"),
        ("name = \"calm\"", format!("name = \"{}\"", "n".repeat(65)), "1 to 64 bytes"),
    ] {
        let diagnostic = parse(&GOOD.replace(from, &to)).unwrap_err();
        assert!(diagnostic.problems()[0].message.contains(message), "{diagnostic}");
    }
}

#[test]
fn an_expression_with_escapes_is_pointed_at_as_a_whole() {
    let text = GOOD.replace(&format!("\"{WHEN}\""), "\"network.nope == \\\"x\\\"\"");
    let diagnostic = parse(&text).unwrap_err();
    assert_eq!((diagnostic.problems()[0].line, diagnostic.problems()[0].column), (14, 8), "{diagnostic}");
}

#[test]
fn a_place_in_an_expression_of_several_lines_is_in_its_own_line() {
    let text = GOOD.replace(&format!("\"{WHEN}\""), "\"\"\"\nnetwork.live_flows > 3\n  && network.nope > 3\"\"\"");
    let diagnostic = parse(&text).unwrap_err();
    assert_eq!((diagnostic.problems()[0].line, diagnostic.problems()[0].column), (16, 6), "{diagnostic}");
}

#[test]
fn three_mistakes_are_three_answers() {
    let text = GOOD.replace("0.70", "70").replace("\"2 ms\"", "2").replace("treated", "tread");
    assert_eq!(parse(&text).unwrap_err().problems().len(), 3);
}

#[test]
fn the_policies_that_are_shipped_are_good() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "example-view.json")
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "dctcp-when-ecn.toml",
            "diurnal.toml",
            "incast-aimed.toml",
            "incast.toml",
            "opentcp1.toml",
            "opentcp2.toml",
            "paced.toml"
        ]
    );
    for name in names {
        let text = std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
        Policy::parse(&name, &text, KNOWN).unwrap_or_else(|diagnostic| panic!("{diagnostic}"));
    }
}
