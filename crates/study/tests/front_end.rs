//! The properties that a front end may rely on: it needs nothing of the command, and a wrong request leaves no results.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use study::{
    DctcpOptions, Event, Failure, Monitor, Request, RunRequest, Stop, TrialRequest, reproduce, run, try_policy,
};
use units::Time;

/// A network of two hosts, for a short run.
const SMALL: &str = "duration = \"20 ms\"\n[network]\ntopology = { dumbbell = { pairs = 1 } }\nrate = \"100 Mbit/s\"\n\
                     [[traffic]]\nbulk = { from = \"left1\", to = \"right1\" }\n";

/// A sink that ignores events.
fn unheard(_: Event<'_>) {}

/// Cargo builds examples along with the tests, in a folder beside theirs.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test is a file");
    let place = test.ancestors().nth(2).expect("it is in deps").join("examples").join(name);
    assert!(place.exists(), "{} is built by `cargo test -p study`", place.display());
    place
}

#[test]
fn a_program_of_thirty_lines_does_a_study() {
    let source = include_str!("../examples/cfi16.rs");
    assert!(source.lines().count() <= 30);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let done = Command::new(example("cfi16")).arg(&out).output().expect("it starts");
    let [stdout, stderr] = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).expect("it prints text"));
    assert!(done.status.success(), "{stderr}");
    assert!(stderr.starts_with("16 runs\n") && stderr.contains("\nsingle-path/vegas: "), "{stderr}");
    assert!(stderr.contains("packet-hops/s with "), "the speed: {stderr}");
    let row = stdout.lines().find(|line| line.starts_with("single-path/vegas throughput: ")).expect("a row");
    assert!(row.ends_with(" %, the paper's: 8.02"), "{row}");
    assert!(out.join("report.html").is_file() && out.join("summary.json").is_file());
}

#[test]
fn progress_of_each_run_comes_to_its_steps_and_then_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("small.toml");
    std::fs::write(&file, SMALL).expect("there is room");
    let seen = Mutex::new((Vec::new(), 0));
    let note = |event: Event<'_>| {
        let (words, steps) = &mut *seen.lock().expect("nobody panics");
        match event {
            Event::Began { runs } => words.push(format!("began {runs}")),
            Event::Advanced { steps: more } => *steps += more,
            Event::Finished { name, .. } => words.push(format!("finished {name}")),
            Event::Ended => words.push("ended".to_string()),
            other => panic!("{other:?}"),
        }
    };
    let request = RunRequest {
        sets: vec!["sweep.seed=[1, 2]".to_string()],
        out: Some(folder.path().join("out")),
        workers: 1,
        ..RunRequest::new(file)
    };
    let done = run(&request, Monitor::new(&note, &Stop::default())).expect("it runs");
    let (words, steps) = seen.into_inner().expect("nobody panics");
    assert_eq!(words, ["began 2", "finished seed=1", "finished seed=2", "ended"]);
    assert_eq!(steps, 2 * Event::STEPS);
    assert_eq!(done.runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>(), ["seed=1", "seed=2"]);
}

#[test]
fn what_was_stopped_has_no_results() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let stop = Stop::default();
    stop.interrupt();
    let request = Request { out: out.clone(), ..Request::new("cfi16") };
    assert!(matches!(reproduce(&request, Monitor::new(&unheard, &stop)), Err(Failure::Interrupted)));
    assert!(!out.exists());
}

#[test]
fn a_stop_outlives_a_request_that_failed() {
    let stop = Stop::default();
    let failed = run(&RunRequest::new("there-is-no-such.toml"), Monitor::new(&unheard, &stop));
    let Err(Failure::Located(diagnostic)) = failed else { panic!("{failed:?}") };
    assert!(diagnostic.to_string().contains("there-is-no-such.toml"), "{diagnostic}");
    assert!(!stop.is_set());
}

#[test]
fn what_no_study_can_do_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let stop = Stop::default();
    let refused = |request: Request| {
        let request = Request { out: folder.path().join("out"), ..request };
        match reproduce(&request, Monitor::new(&unheard, &stop)) {
            Err(Failure::Input(text)) => text,
            other => panic!("{other:?}"),
        }
    };
    let dctcp = |figures: &[u32], stage| Request {
        dctcp: DctcpOptions { figures: figures.to_vec(), stage },
        ..Request::new("dctcp")
    };
    for (request, words) in [
        (Request::new("cfi17"), "there is no study `cfi17`"),
        (Request { seeds: 0, ..Request::new("cfi16") }, "at least one seed"),
        (dctcp(&[2], None), "figures 1, 12 and 16"),
        (dctcp(&[], Some(Time::from_secs(301))), "a stage lasts"),
    ] {
        let text = refused(request);
        assert!(text.contains(words), "{text}");
    }
    let trial = TrialRequest { seeds: 4, ..TrialRequest::new("p.toml", "s.toml") };
    let refused = try_policy(&trial, Monitor::new(&unheard, &stop));
    assert!(matches!(refused, Err(Failure::Input(text)) if text.contains("at least 5 seeds")));
    assert!(!folder.path().join("out").exists());
}
