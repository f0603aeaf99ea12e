//! `reproduce pathologies`: what programs may rely on, and the shapes of what was published.

use study::{Event, Failure, Monitor, Request, Stop, reproduce};

fn unheard(_: Event<'_>) {}

#[test]
fn the_shapes_are_those_published() {
    let folder = tempfile::tempdir().expect("a folder");
    let request = Request {
        sets: vec!["duration=4 s".to_string()],
        out: folder.path().join("out"),
        ..Request::new("pathologies")
    };
    let done = reproduce(&request, Monitor::new(&unheard, &Stop::default())).expect("it runs");
    let ours = |case: &str, quantity: &str| {
        let row = done.comparisons.iter().find(|row| row.case == case && row.quantity.starts_with(quantity));
        row.unwrap_or_else(|| panic!("no {quantity} of {case}")).ours
    };
    let servers = ours("incast/newreno", "servers from which");
    assert!((3.0..=10.0).contains(&servers), "published: 4 to 8, and a quarter more or less: {servers}");
    let [slow, cured] =
        ["200 ms", "1 ms"].map(|rto| ours("incast/newreno", &format!("goodput of 47 servers, minimum RTO {rto}")));
    assert!(cured > 3.0 * slow, "a minimum RTO of 1 ms cures the collapse: {slow} and {cured} Mbit/s");
    let [reno, dctcp] = ["newreno", "dctcp"].map(|cc| ours(&format!("queue build-up/{cc}"), "median"));
    assert!(reno > 4.0 * dctcp, "DCTCP keeps the queue short: {reno} and {dctcp} ms");
    assert!(folder.path().join("out/report.html").exists());
}

#[test]
fn keys_of_the_study_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (sets, seeds, words) in [("tcp.cc=cubic", 1, "sets `tcp.cc` itself"), ("seed=3", 2, "keep one of the two")] {
        let out = folder.path().join("out");
        let request = Request { sets: vec![sets.to_string()], seeds, out: out.clone(), ..Request::new("pathologies") };
        match reproduce(&request, Monitor::new(&unheard, &Stop::default())) {
            Err(Failure::Input(text)) => assert!(text.contains(words), "{text}"),
            other => panic!("{other:?}"),
        }
        assert!(!out.exists());
    }
}
