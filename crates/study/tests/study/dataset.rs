//! A sweep into a dataset: every run once, whatever stops it or fails, and the bytes of a run by itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use study::{Done, Event, Failure, Monitor, RunRequest, Stop, Sweep, run, sweep};

/// Two hosts, for a short run.
const SMALL: &str = "duration = \"20 ms\"\n[network]\ntopology = { dumbbell = { pairs = 1 } }\nrate = \"100 Mbit/s\"\n\
                     [[traffic]]\nbulk = { from = \"left1\", to = \"right1\" }\n[measure]\ncwnd = \"5 ms\"\n";

/// NewReno, which in its process's first run writes a field that is the host's: an invariant of the simulator breaks, and the run fails.
const FAILS_ONCE: &str = r#"
#include "tcp.h"

/* a section in which no variables are expected: others are refused */
static u32 calls __attribute__((section("version")));

static u32 ssthresh(struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

static void cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	if (calls++ == 0)
		tcp_sk(sk)->mss_cache = 0;
	else
		tcp_reno_cong_avoid(sk, acked);
}

static u32 undo_cwnd(struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CC_OPS(once, .ssthresh = ssthresh, .cong_avoid = cong_avoid, .undo_cwnd = undo_cwnd);
"#;

fn unheard(_: Event<'_>) {}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("a folder"));
        fs::write(place.join("small.toml"), SMALL).expect("there is room");
        place
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn request(&self, sets: &[&str], out: &str) -> RunRequest {
        let sets = sets.iter().map(ToString::to_string).collect();
        RunRequest { sets, out: Some(self.join(out)), workers: 2, ..RunRequest::new(self.join("small.toml")) }
    }

    fn sweep(&self, sets: &[&str], out: &str) -> Result<Done, Failure> {
        sweep(&self.request(sets, out), Monitor::new(&unheard, &Stop::default()))
    }
}

/// Every file below a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(&inner).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below it").display().to_string();
                found.insert(name, fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

fn refused(outcome: Result<Done, Failure>) -> String {
    match outcome {
        Err(Failure::Input(text)) => text,
        other => panic!("{other:?}"),
    }
}

const SEEDS: &str = "sweep.seed=[1, 2, 3, 4]";

#[test]
fn a_run_has_the_files_that_it_has_by_itself() {
    let place = Place::new();
    let done = place.sweep(&[SEEDS], "set").expect("it runs");
    assert_eq!(
        done.runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>(),
        ["seed=1", "seed=2", "seed=3", "seed=4"]
    );
    run(&place.request(&[SEEDS], "folder"), Monitor::new(&unheard, &Stop::default())).expect("it runs");
    let (dataset, folder) = (files(&place.join("set")), files(&place.join("folder")));
    for seed in 1..=4 {
        for (part, file) in [
            (format!("flows/run=seed%3D{seed}/part.parquet"), "flows.parquet"),
            (format!("links/run=seed%3D{seed}/part.parquet"), "links.parquet"),
            (format!("cwnd/run=seed%3D{seed}/part.parquet"), "cwnd.parquet"),
            (format!("runs/seed={seed}/summary.json"), "summary.json"),
            (format!("runs/seed={seed}/scenario.toml"), "scenario.toml"),
        ] {
            assert_eq!(dataset[&part], folder[&format!("seed-{seed}/{file}")], "{part}");
        }
    }
    assert_eq!(dataset.len(), 4 * 5 + 1, "{:?}", dataset.keys());
    assert!(dataset.contains_key("runs.parquet"));
}

#[test]
fn what_is_done_is_not_done_again_and_the_rest_is() {
    let place = Place::new();
    place.sweep(&["sweep.seed=[1, 2]"], "set").expect("it runs");
    let part = place.join("set/flows/run=seed%3D1/part.parquet");
    let written = fs::metadata(&part).and_then(|of| of.modified()).expect("a time");
    // as if the process had been killed between the part and the run's folder; and in the middle of a file
    fs::remove_dir_all(place.join("set/runs/seed=2")).expect("it is there");
    fs::create_dir_all(place.join("set/.partial/seed=2")).expect("there is room");
    fs::write(place.join("set/.partial/seed=2/flows.parquet"), "half").expect("there is room");
    fs::create_dir_all(place.join("set/link_series/run=seed%3D2")).expect("there is room");
    fs::write(place.join("set/link_series/run=seed%3D2/part.parquet"), "of another time").expect("there is room");
    let names = Mutex::new(Vec::new());
    let note = |event: Event<'_>| match event {
        Event::Finished { name, .. } => names.lock().expect("nobody panics").push(name.to_string()),
        Event::Note(words) => names.lock().expect("nobody panics").push(words.to_string()),
        _ => {}
    };
    let request = RunRequest { workers: 1, ..place.request(&[SEEDS], "set") };
    let done = sweep(&request, Monitor::new(&note, &Stop::default())).expect("it runs");
    assert_eq!(done.runs.len(), 4);
    let names = names.into_inner().expect("nobody panics");
    assert_eq!(names, ["1 of 4 runs were done before", "seed=2", "seed=3", "seed=4"]);
    assert_eq!(fs::metadata(&part).and_then(|of| of.modified()).expect("a time"), written);
    place.sweep(&[SEEDS], "again").expect("it runs");
    assert_eq!(files(&place.join("set")), files(&place.join("again")), "resumed, it has the same bytes");
}

#[test]
fn stopped_it_keeps_what_is_done() {
    let place = Place::new();
    let stop = Stop::default();
    let note = |event: Event<'_>| {
        if matches!(event, Event::Finished { .. }) {
            stop.interrupt();
        }
    };
    let request = RunRequest { workers: 1, ..place.request(&[SEEDS], "set") };
    let Err(Failure::Paused(words)) = sweep(&request, Monitor::new(&note, &stop)) else { panic!("it went on") };
    assert_eq!(words, "interrupted: 1 of 4 runs are done; the same command does the rest");
    assert!(place.join("set/runs.parquet").exists() && !place.join("set/.partial").exists());
    let stopped = Stop::default();
    stopped.interrupt();
    let nothing = sweep(&place.request(&[SEEDS], "deep/new"), Monitor::new(&unheard, &stopped));
    assert!(matches!(nothing, Err(Failure::Interrupted)));
    assert!(!place.join("deep").exists(), "nothing was done, and nothing is left");
}

#[test]
fn a_run_that_fails_is_tried_again_and_one_that_fails_twice_is_named() {
    let place = Place::new();
    fs::write(place.join("once.c"), FAILS_ONCE).expect("there is room");
    let repeated = Mutex::new(Vec::new());
    let note = |event: Event<'_>| {
        if let Event::Repeated { name, .. } = event {
            repeated.lock().expect("nobody panics").push(name.to_string());
        }
    };
    let request = RunRequest { workers: 1, ..place.request(&["tcp.cc=once.c", "sweep.seed=[1, 2]"], "set") };
    let done = sweep(&request, Monitor::new(&note, &Stop::default())).expect("the second time it runs");
    assert_eq!(repeated.into_inner().expect("nobody panics"), ["seed=1"]);
    assert_eq!(done.runs.len(), 2);

    let always = FAILS_ONCE
        .replace("calls++ == 0", "true")
        .replace("static u32 calls __attribute__((section(\"version\")));\n", "");
    fs::write(place.join("always.c"), always).expect("there is room");
    let sets = [r#"sweep.tcp.cc=["newreno", "always.c"]"#];
    let Err(Failure::Run(words)) = place.sweep(&sets, "half") else { panic!("it succeeds") };
    assert!(words.starts_with("1 of 2 runs failed; the others are in ") && words.contains("cc=always.c: "), "{words}");
    assert!(place.join("half/runs/cc=newreno").is_dir() && !place.join("half/runs/cc=always.c").exists());
}

#[test]
fn a_folder_with_anything_else_is_refused() {
    let place = Place::new();
    place.sweep(&[SEEDS], "set").expect("it runs");
    let before = files(&place.join("set"));
    let other = refused(place.sweep(&[SEEDS, "duration=10 ms"], "set"));
    assert!(other.contains("has the run seed=1 of another scenario: choose another folder"), "{other}");
    let fewer = refused(place.sweep(&["sweep.seed=[1, 2]"], "set"));
    assert!(fewer.contains("has the run seed=3 which is not one of this sweep's"), "{fewer}");
    fs::create_dir(place.join("mine")).expect("there is room");
    fs::write(place.join("mine/thesis.tex"), "years of work").expect("there is room");
    let mine = refused(place.sweep(&[SEEDS], "mine"));
    assert!(mine.contains("holds thesis.tex, which is no part of a sweep's dataset"), "{mine}");
    assert!(refused(place.sweep(&[SEEDS], "small.toml")).contains("is not a folder"));
    let stop = Stop::default();
    let first = Sweep::open(&place.request(&[SEEDS], "set"), Monitor::new(&unheard, &stop)).expect("it opens");
    fs::create_dir_all(place.join("set/.partial/seed=9")).expect("there is room");
    let second = refused(place.sweep(&[SEEDS], "set"));
    assert!(place.join("set/.partial/seed=9").exists(), "what the first one is writing stays");
    assert!(second.contains("another sweep goes on in this folder"), "{second}");
    drop(first);
    assert_eq!(files(&place.join("set")), before);
}
