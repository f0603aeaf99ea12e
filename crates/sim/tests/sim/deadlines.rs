//! D2TCP: of messages that share a queue, those with the nearer deadline get more of it.

use crate::support::run;
use results::RunResults;

/// Two connections send a message each through one queue that marks; the first is due after `deadlines[0]`, and so on.
fn two_messages(cc: &str, deadlines: [&str; 2]) -> [f64; 2] {
    let entry = |name: &str, host: &str, deadline: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nincast = {{ senders = [\"{host}\"], receiver = \"h1\", bytes = \"20 MB\"{deadline} }}\n"
        )
    };
    let text = format!(
        "duration = \"3 s\"\n[network]\ntopology = {{ star = {{ hosts = 3 }} }}\nrate = \"1 Gbit/s\"\ndelay = \"25 us\"\n\
         queue = {{ threshold_ecn = {{ mark_packets = 20, packets = 200 }} }}\n[tcp]\ncc = \"{cc}\"\n{}{}",
        entry("near", "h2", deadlines[0]),
        entry("far", "h3", deadlines[1])
    );
    let run = run(&text);
    ["near", "far"].map(|name| took_ms(&run, name))
}

fn took_ms(run: &RunResults, name: &str) -> f64 {
    run.summary.extra[&format!("{name}.round_ms_max")]
}

#[test]
fn a_nearer_deadline_gets_more_of_the_link() {
    // alone a message takes 168 ms; together they take 336 ms
    let none = two_messages("d2tcp", ["", ""]);
    let near = two_messages("d2tcp", [", deadline = \"220 ms\"", ", deadline = \"1 s\""]);
    let swapped = two_messages("d2tcp", [", deadline = \"1 s\"", ", deadline = \"220 ms\""]);
    println!("ms, none {none:.0?}, near and far {near:.0?}, far and near {swapped:.0?}");
    // without a deadline chance decides, but not as much
    assert!(near[0] < 0.7 * near[1] && near[0] < 0.9 * none[1].min(none[0]), "{near:?}");
    assert!(swapped[1] < 0.7 * swapped[0] && swapped[1] < 0.9 * none[1].min(none[0]), "{swapped:?}");
    let last = |took: [f64; 2]| took[0].max(took[1]);
    assert!(last(near) < 1.03 * last(none) && last(swapped) < 1.03 * last(none), "nothing is lost by it");
}

#[test]
fn without_deadlines_it_is_dctcp_to_the_packet() {
    let ns = |cc, deadlines| two_messages(cc, deadlines).map(|ms| (ms * 1e6).round() as u64);
    assert_eq!(ns("d2tcp", ["", ""]), ns("dctcp", ["", ""]));
    let due = ", deadline = \"220 ms\"";
    assert_eq!(ns("dctcp", [due, ""]), ns("dctcp", ["", ""]), "DCTCP has no use for one");
}

/// Forty answers within 10 ms: the shipped scenario.
#[test]
fn d2tcp_misses_no_more_deadlines_than_dctcp() {
    let path = format!("{}/../../scenarios/partition-aggregate.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("it is shipped");
    let text = text.split("[sweep]").next().expect("it has a beginning");
    let missed = ["dctcp", "d2tcp"].map(|cc| {
        let run = run(&format!("{text}\n[tcp]\ncc = \"{cc}\"\n"));
        (run.summary.extra["queries.answers_missed"], run.summary.extra["queries.queries_missed"])
    });
    println!("dctcp and d2tcp miss {missed:?} of the answers and the queries");
    assert!(missed[1].0 <= missed[0].0, "{missed:?}");
}
