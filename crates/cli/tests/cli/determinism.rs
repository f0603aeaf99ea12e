//! Same scenario and seed, same bytes, whatever else differs.

use crate::common::Place;
use crate::outputs::{SMALL, differences, files};
use std::fs;

fn sweep() -> String {
    format!("{SMALL}[sweep]\n\"tcp.cc\" = [\"newreno\", \"vegas\", \"cubic\"]\nseed = [1, 2]\n")
}

#[test]
fn results_do_not_depend_on_the_number_of_jobs() {
    let place = Place::with(&sweep());
    let one = place.succeed(&["run", "a.toml", "--jobs", "1", "--out", "one"]);
    let two = place.succeed(&["run", "a.toml", "--jobs", "2", "--out", "two"]);
    assert_eq!(differences(&place.join("one"), &place.join("two")), [""; 0]);
    assert_eq!(one.stdout, two.stdout);
    for file in ["flows.parquet", "links.parquet", "link_series.parquet", "cwnd.parquet", "summary.json"] {
        assert!(place.join("one/cc-newreno-seed-1").join(file).is_file(), "{file}");
    }
}

#[test]
fn another_seed_gives_other_tables() {
    let place = Place::with(&sweep());
    place.succeed(&["run", "a.toml", "--out", "out"]);
    let differ = differences(&place.join("out/cc-newreno-seed-1"), &place.join("out/cc-newreno-seed-2"));
    for file in ["flows.parquet", "links.parquet", "link_series.parquet", "summary.json"] {
        assert!(differ.iter().any(|name| name == file), "{file} is the same for two seeds");
    }
}

#[test]
fn the_scenario_in_the_results_repeats_the_run() {
    let place = Place::with(SMALL);
    place.succeed(&["run", "a.toml", "--set", "tcp.cc=vegas", "--set", "seed=7", "--out", "first"]);
    place.succeed(&["run", "first/scenario.toml", "--out", "again"]);
    assert_eq!(differences(&place.join("first"), &place.join("again")), [""; 0]);
}

/// A copy of a built-in algorithm in a file of the same name: the same bytes except in the scenario, which names the file, and the
/// copied file.
#[test]
fn a_copy_of_a_built_in_algorithm_gives_the_same_bytes() {
    let place = Place::with(SMALL);
    for name in ["cubic", "bbr"] {
        let source = format!("{}/../../cc/{name}.c", env!("CARGO_MANIFEST_DIR"));
        fs::copy(source, place.join(&format!("{name}.c"))).unwrap();
        place.succeed(&["run", "a.toml", "--set", &format!("tcp.cc={name}"), "--out", "builtin", "--replace"]);
        place.succeed(&["run", "a.toml", "--set", &format!("tcp.cc={name}.c"), "--out", "copy", "--replace"]);
        let differ = differences(&place.join("builtin"), &place.join("copy"));
        assert_eq!(differ, [format!("files/{name}.c"), "scenario.toml".to_string()]);
    }
}

/// Two algorithms of one name and a user's table of sizes, by absolute paths; then only the results folder remains.
#[test]
fn results_with_a_users_files_can_be_repeated_elsewhere() {
    let source = |name: &str| fs::read_to_string(format!("{}/../../cc/{name}.c", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let home = Place::new();
    for (folder, name) in [("one", "vegas"), ("two", "cubic")] {
        fs::create_dir(home.join(folder)).unwrap();
        home.write(&format!("{folder}/mine.c"), &source(name));
    }
    home.write("sizes.csv", "bytes,cdf\n1000,0.5\n20000,1\n");
    let at = |name: &str| home.join(name).display().to_string();
    let scenario = format!(
        "{SMALL}[[traffic]]\npoisson = {{ load = \"20 %\", sizes = \"{}\" }}\ncc = \"{}\"\n\
         [sweep]\n\"tcp.cc\" = [\"{}\", \"newreno\"]\n",
        at("sizes.csv"),
        at("two/mine.c"),
        at("one/mine.c"),
    );
    home.write("a.toml", &scenario);
    home.succeed(&["run", "a.toml", "--out", "first"]);

    let elsewhere = Place::new();
    fs::rename(home.join("first"), elsewhere.join("first")).unwrap();
    let machine = home.path().display().to_string();
    for (name, bytes) in files(&elsewhere.join("first")) {
        assert!(!String::from_utf8_lossy(&bytes).contains(&machine), "{} names {machine}", name.display());
        assert!(!name.display().to_string().contains(home.path().file_name().unwrap().to_str().unwrap()));
    }
    drop(home);
    for run in ["cc=mine.c", "cc=newreno"].map(|name| name.replace('=', "-")) {
        let first = elsewhere.join("first").join(&run);
        let scenario = first.join("scenario.toml").display().to_string();
        elsewhere.succeed(&["run", &scenario, "--out", "again", "--replace"]);
        assert_eq!(differences(&first, &elsewhere.join("again")), ["report.html", "summary.json"], "{run}");
        // A single run has a report, and a name of its own.
        elsewhere.succeed(&["run", "again/scenario.toml", "--out", "third", "--replace"]);
        assert_eq!(differences(&elsewhere.join("again"), &elsewhere.join("third")), [""; 0], "{run}");
    }
}
