//! `reproduce data-centers`: every combination has its numbers, and what was interrupted goes on.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use study::{Event, Failure, Monitor, Request, Stop, reproduce};

fn unheard(_: Event<'_>) {}

/// A study of a few milliseconds a run.
fn request(out: &Path, sets: &[&str]) -> Request {
    let sets = ["duration=5 ms"].iter().chain(sets).map(ToString::to_string).collect();
    Request { sets, out: out.to_path_buf(), ..Request::new("data-centers") }
}

#[test]
fn an_interrupted_study_goes_on_and_ends_as_if_it_had_not_been() {
    let folder = tempfile::tempdir().expect("a folder");
    let (out, whole) = (folder.path().join("out"), folder.path().join("whole"));
    let (stop, ended) = (Stop::default(), AtomicUsize::new(0));
    let note = |event: Event<'_>| {
        if matches!(event, Event::Finished { .. }) && ended.fetch_add(1, Ordering::Relaxed) == 9 {
            stop.interrupt();
        }
    };
    let one = Request { workers: 1, ..request(&out, &[]) };
    let Err(Failure::Paused(words)) = reproduce(&one, Monitor::new(&note, &stop)) else { panic!("it went on") };
    assert!(words.contains("10 of 200 runs are done"), "{words}");
    assert!(!out.join("report.html").exists());
    let notes = Mutex::new(Vec::new());
    let note = |event: Event<'_>| {
        if let Event::Note(words) = event {
            notes.lock().expect("nobody panics").push(words.to_string());
        }
    };
    let resumed = reproduce(&request(&out, &[]), Monitor::new(&note, &Stop::default())).expect("it goes on");
    assert_eq!(notes.into_inner().expect("nobody panics")[0], "10 of 200 runs were done before");
    let done = reproduce(&request(&whole, &[]), Monitor::new(&unheard, &Stop::default())).expect("it runs");
    assert_eq!(done.tables, resumed.tables);
    let report = fs::read_to_string(whole.join("report.html")).expect("it was written");
    assert_eq!(report, fs::read_to_string(out.join("report.html")).expect("it was written"));
    assert_eq!(report.matches("<tr><td>").count(), 200, "a row for each combination");
    assert!(report.contains("web search: mice p99 (slowdown)") && report.contains("table class=\"runs\""));

    let cases: BTreeSet<(&str, &str)> =
        done.comparisons.iter().map(|row| (row.figure.as_str(), row.case.as_str())).collect();
    assert_eq!(cases.len(), 200);
    let of = |traffic: &str, case: &str, quantity: &str| {
        let row = |row: &&results::Comparison| row.figure == traffic && row.case == case && row.quantity == quantity;
        done.comparisons.iter().find(row).map(|row| row.ours)
    };
    for (traffic, case) in &cases {
        assert!(of(traffic, case, "active").is_some_and(|active| active > 0.0), "{traffic} {case}");
    }
    assert_eq!(of("web search", "VL2/cubic", "job time"), None);
    // in 5 ms no job of MapReduce ends: its age is the bound
    assert_eq!(of("MapReduce", "VL2/cubic", "job time"), Some(5.0));
}

#[test]
fn keys_of_the_study_and_folders_of_another_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let refused = |request: Request| match reproduce(&request, Monitor::new(&unheard, &Stop::default())) {
        Err(Failure::Input(text)) => text,
        other => panic!("{other:?}"),
    };
    let own = refused(request(&out, &["network.topology={ star = { hosts = 60 } }"]));
    assert!(own.contains("reproduce data-centers sets `network.topology` itself"), "{own}");
    let twice = refused(Request { full: true, ..request(&out, &["seed=4"]) });
    assert!(twice.contains("seeds 1 to 3 are run") && twice.contains("keep one of the two"), "{twice}");
    assert!(!out.exists());
    fs::create_dir(&out).expect("there is room");
    fs::write(out.join("thesis.tex"), "years of work").expect("there is room");
    assert!(refused(request(&out, &[])).contains("holds thesis.tex"));
}
