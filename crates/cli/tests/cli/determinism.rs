//! Same scenario and seed, same bytes; whatever else differs.

use crate::common::{Place, SMALL, differences};
use std::fs;

fn sweep() -> String {
    format!("{SMALL}[sweep]\n\"tcp.cc\" = [\"newreno\", \"vegas\", \"cubic\"]\nseed = [1, 2]\n")
}

#[test]
fn the_number_of_jobs_does_not_show_in_the_results() {
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

/// A copy of a built-in algorithm in a file of the same name: the same algorithm, so the same bytes but in the scenario,
/// which names the file.
#[test]
fn a_copy_of_a_built_in_algorithm_gives_the_same_bytes() {
    let place = Place::with(SMALL);
    for name in ["cubic", "bbr"] {
        let source = format!("{}/../../cc/{name}.c", env!("CARGO_MANIFEST_DIR"));
        fs::copy(source, place.join(&format!("{name}.c"))).unwrap();
        place.succeed(&["run", "a.toml", "--set", &format!("tcp.cc={name}"), "--out", "builtin"]);
        place.succeed(&["run", "a.toml", "--set", &format!("tcp.cc={name}.c"), "--out", "copy"]);
        let differ = differences(&place.join("builtin"), &place.join("copy"));
        assert_eq!(differ, ["scenario.toml"], "{name}");
    }
}

#[test]
fn results_with_a_users_algorithm_can_be_repeated_from_their_folder() {
    let place = Place::with(SMALL);
    fs::copy(format!("{}/../../cc/vegas.c", env!("CARGO_MANIFEST_DIR")), place.join("mine.c")).unwrap();
    place.succeed(&["run", "a.toml", "--set", "tcp.cc=mine.c", "--out", "first"]);
    place.succeed(&["run", "first/scenario.toml", "--out", "again"]);
    assert_eq!(differences(&place.join("first"), &place.join("again")), [""; 0]);
}
