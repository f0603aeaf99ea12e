//! Result folders: their contents, that they are written whole or not at all, and what they refuse to replace.

use crate::common;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use results::{
    CoflowRow, Comparison, JobRow, RunInfo, RunResults, Story, SweepWriter, WriteError, write_run, write_sweep,
};

/// Every file below a folder, with its bytes.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.insert(path.strip_prefix(dir).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

fn names(dir: &Path) -> Vec<String> {
    let files = contents(dir).into_keys();
    files.map(|path| path.to_string_lossy().into_owned()).collect()
}

#[test]
fn a_run_holds_its_tables_summary_scenario_and_report() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("deep/er/out");
    let info = RunInfo { wall_s: 1.5, jobs: 2, ..RunInfo::default() };
    write_run(&out, &common::run(0, "ecmp", 1), Some(&info)).unwrap();
    let expected = [
        "cwnd.parquet",
        "flows.parquet",
        "link_series.parquet",
        "links.parquet",
        "report.html",
        "run.json",
        "scenario.toml",
        "summary.json",
    ];
    assert_eq!(names(&out), expected);
}

#[test]
fn copies_of_the_scenarios_files_are_kept_and_replaced() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let mut run = common::run(0, "ecmp", 1);
    run.scenario_toml = "cc = \"files/mine.c\"\nother = \"files/2/mine.c\"\n".to_owned();
    run.files = [("files/mine.c", "one"), ("files/2/mine.c", "two")].map(|(k, v)| (k.to_owned(), v.into())).into();
    write_run(&out, &run, None).unwrap();
    assert_eq!(fs::read_to_string(out.join("files/2/mine.c")).unwrap(), "two");
    write_run(&out, &run, None).unwrap();
    fs::write(out.join("files/2/notes.md"), "mine").unwrap();
    let error = write_run(&out, &run, None).unwrap_err();
    assert!(matches!(error, WriteError::HoldsOther { .. }), "{error}");
    assert_eq!(fs::read_to_string(out.join("files/2/notes.md")).unwrap(), "mine");
}

#[test]
fn a_copy_cannot_leave_its_folder() {
    let place = tempfile::tempdir().unwrap();
    for name in ["mine.c", "files", "files/", "files/../mine.c", "/files/mine.c", "filesystem/mine.c"] {
        let mut run = common::run(0, "ecmp", 1);
        run.files = [(name.to_owned(), "text".into())].into();
        let error = write_run(&place.path().join("out"), &run, None).unwrap_err();
        assert!(matches!(error, WriteError::BadCopy(_)), "{name}: {error}");
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn tables_that_were_not_requested_are_absent() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let mut run = common::run(0, "ecmp", 1);
    run.link_series.clear();
    run.cwnd.clear();
    write_run(&out, &run, None).unwrap();
    assert!(!out.join("link_series.parquet").exists());
    assert!(!out.join("cwnd.parquet").exists());
    assert!(!out.join("run.json").exists());
}

#[test]
fn the_same_runs_give_the_same_bytes() {
    let place = tempfile::tempdir().unwrap();
    let (a, b) = (place.path().join("a"), place.path().join("elsewhere/b"));
    let runs = common::study(1);
    write_sweep(&a, &runs, &common::story(&runs), None).unwrap();
    write_sweep(&b, &runs, &common::story(&runs), None).unwrap();
    assert_eq!(names(&a).len(), 16 * 6 + 2);
    assert!(contents(&a) == contents(&b), "same runs, different bytes");
    let other = place.path().join("other");
    write_run(&other, &common::run(0, "ecmp", 2), None).unwrap();
    let first = a.join("ecmp-newreno-1/flows.parquet");
    assert_ne!(fs::read(first).unwrap(), fs::read(other.join("flows.parquet")).unwrap());
}

#[test]
fn a_sweep_that_fails_leaves_nothing_and_keeps_what_was_there() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    write_run(&out, &common::run(0, "ecmp", 1), None).unwrap();
    let before = contents(place.path());
    let twice = [common::run(1, "ecmp", 1), common::run(1, "ecmp", 1)];
    let error = write_sweep(&out, &twice, &Story::default(), None).unwrap_err();
    assert!(matches!(error, WriteError::DuplicateRun(_)), "{error}");
    let not_a_number = Story {
        comparisons: vec![Comparison {
            figure: "Figure 1".to_owned(),
            case: "vegas".to_owned(),
            quantity: "drops".to_owned(),
            unit: "packets".to_owned(),
            paper: None,
            ours: f64::NAN,
            note: String::new(),
        }],
        ..Story::default()
    };
    let error = write_sweep(&out, &twice[..1], &not_a_number, None).unwrap_err();
    assert!(error.to_string().contains("finite"), "{error}");
    let deep = place.path().join("new/deep/out");
    write_sweep(&deep, &twice, &Story::default(), None).unwrap_err();
    drop(SweepWriter::create(&deep).unwrap());
    assert!(contents(place.path()) == before);
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn results_replace_results_and_an_empty_folder() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    fs::create_dir(&out).unwrap();
    let runs = common::study(1);
    write_sweep(&out, &runs[..2], &Story::new("two"), None).unwrap();
    write_run(&out, &common::run(0, "ecmp", 1), None).unwrap();
    assert!(out.join("flows.parquet").exists());
    assert!(!out.join("single-path-newreno-1").exists());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn results_with_jobs_are_replaced() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let entry = || "shuffle".into();
    let job = JobRow { entry: entry(), job: 0, start_ns: 1, end_ns: None, tasks: 3, messages: 1, bytes: 10 };
    let coflow = CoflowRow {
        entry: entry(),
        job: 0,
        coflow: "shuffle".into(),
        start_ns: Some(1),
        end_ns: None,
        messages: 1,
        bytes: 10,
    };
    let run = RunResults { jobs: vec![job], coflows: vec![coflow], ..common::run(0, "ecmp", 1) };
    write_run(&out, &run, None).unwrap();
    assert!(out.join("jobs.parquet").exists() && out.join("coflows.parquet").exists());
    write_run(&out, &common::run(0, "ecmp", 2), None).unwrap();
    assert!(!out.join("jobs.parquet").exists());
}

#[test]
fn folders_that_no_run_wrote_are_refused_and_untouched() {
    let place = tempfile::tempdir().unwrap();
    let run = common::run(0, "ecmp", 1);
    let thesis = place.path().join("thesis");
    fs::create_dir(&thesis).unwrap();
    fs::write(thesis.join("chapter1.tex"), "years of work").unwrap();
    let file = place.path().join("file");
    fs::write(&file, "text").unwrap();
    let annotated = place.path().join("annotated");
    write_run(&annotated, &run, None).unwrap();
    fs::write(annotated.join("notes.md"), "mine").unwrap();
    let before = contents(place.path());

    let error = write_run(&thesis, &run, None).unwrap_err();
    assert!(matches!(error, WriteError::NotResults(_)), "{error}");
    assert!(error.to_string().contains("summary.json"), "{error}");
    let error = write_run(&file, &run, None).unwrap_err();
    assert!(matches!(error, WriteError::NotAFolder(_)), "{error}");
    let error = write_run(&annotated, &run, None).unwrap_err();
    assert!(error.to_string().contains("notes.md"), "{error}");
    assert!(contents(place.path()) == before);
}

#[test]
fn names_that_cannot_be_folders_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let mut sweep = SweepWriter::create(&place.path().join("out")).unwrap();
    for name in ["", "..", ".hidden", "summary.json", "report.html", "files"] {
        let mut run = common::run(0, "ecmp", 1);
        name.clone_into(&mut run.name);
        let error = sweep.add(&run).unwrap_err();
        assert!(matches!(error, WriteError::BadName(_)), "{error}");
    }
}
