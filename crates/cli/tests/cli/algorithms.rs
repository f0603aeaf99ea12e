//! `opentcp cc`.

use crate::common::Place;
use serde_json::Value;
use std::fs;

fn source(name: &str) -> String {
    fs::read_to_string(format!("{}/../../cc/{name}.c", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn all_algorithms_are_listed_with_their_congestion_signals() {
    let place = Place::new();
    let listing: Value = serde_json::from_str(&place.succeed(&["cc", "list", "--json"]).stdout).unwrap();
    let algorithms = listing["algorithms"].as_array().unwrap();
    let names: Vec<&str> = algorithms.iter().map(|algorithm| algorithm["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "bbr",
            "bbr3",
            "bic",
            "cubic",
            "d2tcp",
            "dctcp",
            "highspeed",
            "newreno",
            "prague",
            "scalable",
            "vegas",
            "westwood",
            "yeah"
        ]
    );
    let of = |name: &str| algorithms.iter().find(|algorithm| algorithm["name"] == name).unwrap();
    assert_eq!(of("dctcp")["needs_ecn"], true);
    assert_eq!(of("newreno")["measures"], serde_json::json!(["loss"]));
    assert_eq!(of("vegas")["category"], "delay-based");
    for algorithm in algorithms {
        for key in ["title", "environment", "reference"] {
            assert!(algorithm[key].as_str().is_some_and(|text| !text.is_empty()), "{key} of {algorithm}");
        }
    }
    let table = place.succeed(&["cc", "list"]).stdout;
    assert!(names.iter().all(|name| table.contains(name)), "{table}");
}

#[test]
fn a_good_file_passes_every_check() {
    let place = Place::new();
    place.write("mine.c", &source("newreno"));
    let done = place.succeed(&["cc", "check", "mine.c"]);
    let steps: Vec<&str> = done.stdout.lines().map(|line| line[..14].trim_end()).collect();
    assert_eq!(steps, ["native build", "BPF build", "invariants", "verifier"], "{}", done.stdout);
    assert!(!done.stdout.contains("failed"), "{}", done.stdout);
}

#[test]
fn a_file_that_does_not_compile_fails_with_the_compilers_message() {
    let place = Place::new();
    place.write("mine.c", "#include \"tcp.h\"\nint broken(void) { return nothing; }\n");
    let done = place.opentcp(&["cc", "check", "mine.c"]);
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(done.stdout.starts_with("native build  failed"), "{}", done.stdout);
    assert!(done.stdout.contains("mine.c:2:27"), "{}", done.stdout);
    assert!(done.stderr.contains("mine.c fails 2 checks"), "{}", done.stderr);
}

#[test]
fn a_file_without_an_algorithm_is_bad_input_and_so_is_a_missing_file() {
    let place = Place::new();
    place.write("mine.c", "#include \"tcp.h\"\n");
    for file in ["mine.c", "nothing.c"] {
        let done = place.opentcp(&["cc", "check", file]);
        assert_eq!(done.code, Some(2), "{}{}", done.stdout, done.stderr);
    }
}

#[test]
fn a_file_that_breaks_an_invariant_fails() {
    let place = Place::new();
    let broken = source("newreno").replace("return tcp_reno_ssthresh(sk);", "(void)sk;\n\treturn 0;");
    assert_ne!(broken, source("newreno"));
    place.write("mine.c", &broken);
    let done = place.opentcp(&["cc", "check", "mine.c"]);
    assert_eq!(done.code, Some(1), "{}{}", done.stdout, done.stderr);
    let line = done.stdout.lines().find(|line| line.starts_with("invariants")).unwrap();
    assert!(line.contains("failed") && line.contains("ssthresh"), "{line}");
}
