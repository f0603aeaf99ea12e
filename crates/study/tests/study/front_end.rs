//! The properties that a front end may rely on: it needs nothing of the command, and a wrong request leaves no results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use study::{
    DctcpOptions, Event, Failure, Monitor, Request, RunRequest, Source, Stop, TrialRequest, reproduce, run, simulate,
    try_policy, write,
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
    let source = include_str!("../../examples/cfi16.rs");
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
            Event::Warning(warning) => words.push(warning.split(':').next().unwrap_or_default().to_string()),
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
    let same = "the seeds 1, 2 gave the same numbers";
    assert_eq!(words, ["began 2", "finished seed=1", "finished seed=2", "ended", same]);
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

/// A text in place of a file.
fn text(name: &str, text: &str) -> Source {
    Source::Text { name: name.to_string(), text: text.to_string(), base: PathBuf::new() }
}

/// Every file of a folder but `run.json`, which has the speed.
fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("it is a folder").map(|entry| entry.expect("it is listed").path());
    let mut found = BTreeMap::new();
    for path in entries.filter(|path| !path.ends_with("run.json")) {
        if path.is_dir() {
            found.extend(bytes(&path));
        } else {
            let read = std::fs::read(&path).expect("it is read");
            found.insert(path, read);
        }
    }
    found
}

#[test]
fn results_in_memory_are_written_as_those_of_a_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let stop = Stop::default();
    for sets in [vec![], vec!["sweep.seed=[1, 2, 3]".to_string()]] {
        let out = Some(folder.path().join(sets.len().to_string()));
        let request = RunRequest { sets, out, ..RunRequest::new(text("small.toml", SMALL)) };
        let done = run(&request, Monitor::new(&unheard, &stop)).expect("it runs");
        let theirs = bytes(&done.out);
        std::fs::remove_dir_all(&done.out).expect("it is removed");
        let mut kept = Vec::new();
        let batch = simulate(&request, Monitor::new(&unheard, &stop), |run| {
            kept.push(run);
            Ok(())
        });
        let batch = batch.expect("it runs");
        assert!(!done.out.exists(), "simulating writes nothing");
        write(&done.out, &batch, &kept.iter().collect::<Vec<_>>(), false).expect("there is room");
        assert_eq!(batch.scenario, "small");
        assert_eq!(bytes(&done.out), theirs);
        assert!(theirs.len() > 3 * kept.len() && done.out.join("run.json").is_file());
    }
}

#[test]
fn a_mistake_in_a_text_has_the_texts_name() {
    let stop = Stop::default();
    let wrong = SMALL.replace("bulk", "bulkk");
    for request in [RunRequest::new(text("mine.toml", &wrong)), RunRequest::new(text("mine.toml", "="))] {
        let failed = simulate(&request, Monitor::new(&unheard, &stop), |_| panic!("nothing runs"));
        let Err(Failure::Located(diagnostic)) = failed else { panic!("{failed:?}") };
        assert!(diagnostic.problems().iter().all(|problem| problem.file == "mine.toml"), "{diagnostic}");
    }
}

#[test]
fn what_takes_results_can_end_the_batch() {
    let stop = Stop::default();
    let request = RunRequest {
        sets: vec!["sweep.seed=[1, 2, 3, 4]".to_string()],
        workers: 1,
        ..RunRequest::new(text("small.toml", SMALL))
    };
    let mut taken = 0;
    let ended = simulate(&request, Monitor::new(&unheard, &stop), |_| {
        taken += 1;
        if taken == 2 { Err(Failure::Run("enough".to_string())) } else { Ok(()) }
    });
    assert!(matches!(ended, Err(Failure::Run(words)) if words == "enough"));
    assert_eq!(taken, 2);
}

#[test]
fn a_trial_of_texts_is_that_of_the_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let [policy, scenario] = ["policies/opentcp2.toml", "scenarios/policy-try.toml"].map(|name| root.join(name));
    let read = |path: &Path| std::fs::read_to_string(path).expect("it is in the repository");
    let stop = Stop::default();
    let of_texts = TrialRequest {
        seeds: 5,
        ..TrialRequest::new(text("opentcp2.toml", &read(&policy)), text("policy-try.toml", &read(&scenario)))
    };
    let of_files = TrialRequest { seeds: 5, ..TrialRequest::new(policy, scenario) };
    let tried = [of_texts, of_files].map(|request| try_policy(&request, Monitor::new(&unheard, &stop)));
    let [texts, files] = tried.map(|tried| tried.expect("it runs"));
    assert_eq!(texts.words(), files.words());
    assert_eq!(texts.acted, 5);
}
