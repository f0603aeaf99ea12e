//! `scenarios/README.md` names every key that the reader knows, and no other.

use crate::common::parse;
use std::collections::BTreeSet;

/// The keys that a section allows, as the error for a wrong key lists them.
fn allowed(text: &str) -> Vec<String> {
    let error = parse(text, &[]).expect_err("there is no such key");
    let help =
        error.problems().iter().filter_map(|problem| problem.help.as_ref()).find(|help| help.contains("llowed: "));
    let help = help.unwrap_or_else(|| panic!("no list of keys in\n{error}"));
    help.split('`').skip(1).step_by(2).map(str::to_string).collect()
}

fn reference() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/README.md")).unwrap()
}

/// A wrong key in each place that has keys.
fn sections() -> Vec<String> {
    let network = |line: &str| format!("[network]\n{line}");
    let traffic = |line: &str| {
        format!("duration = \"1 s\"\n[network]\ntopology = {{ star = {{ hosts = 3 }} }}\n[[traffic]]\n{line}")
    };
    vec![
        "zzzzzzz = 1".to_string(),
        network("zzzzzzz = 1"),
        network("topology = { zzzzzzz = 1 }"),
        network("topology = { leaf_spine = { zzzzzzz = 1 } }"),
        network("topology = { explicit = { zzzzzzz = 1 } }"),
        network("topology = { vl2 = { zzzzzzz = 1 } }"),
        network("topology = { bcube = { zzzzzzz = 1 } }"),
        network("topology = { dcell = { zzzzzzz = 1 } }"),
        network("topology = { jellyfish = { zzzzzzz = 1 } }"),
        network("topology = { dragonfly = { zzzzzzz = 1 } }"),
        network("balancing = { flowlet = { zzzzzzz = 1 } }"),
        network("topology = { explicit = { nodes = [{ zzzzzzz = 1 }], links = [] } }"),
        network("queue = { zzzzzzz = {} }"),
        network("queue = { drop_tail = { zzzzzzz = 1 } }"),
        network("queue = { threshold_ecn = { zzzzzzz = 1 } }"),
        network("queue = { red = { zzzzzzz = 1 } }"),
        network("queue = { pie = { zzzzzzz = 1 } }"),
        network("queue = { codel = { zzzzzzz = 1 } }"),
        network("queue = { fq_codel = { zzzzzzz = 1 } }"),
        network("queue = { dualpi2 = { zzzzzzz = 1 } }"),
        network("buffer = { shared = { zzzzzzz = 1 } }"),
        "[tcp]\nzzzzzzz = 1".to_string(),
        "duration = \"1 s\"\n[policy]\nzzzzzzz = 1".to_string(),
        traffic("bulk = {}\n[[policy.label]]\nzzzzzzz = 1"),
        "[enforcer]\nzzzzzzz = 1".to_string(),
        "[enforcer]\n[[enforcer.rule]]\nzzzzzzz = 1".to_string(),
        network("topology = { star = { hosts = 2 } }\n[[network.failure]]\nzzzzzzz = 1"),
        network("topology = { star = { hosts = 2 } }\n[[network.loss]]\nzzzzzzz = 1"),
        "[tcp]\npreset = \"zzzzzzz\"".to_string(),
        "[tcp]\ndelayed_ack = { zzzzzzz = 1 }".to_string(),
        traffic("zzzzzzz = 1"),
        traffic("random_pairs = { zzzzzzz = 1 }"),
        traffic("random_pairs = { flows = 1, on_off = { zzzzzzz = 1 } }"),
        traffic("permutation = { zzzzzzz = 1 }"),
        traffic("bulk = { zzzzzzz = 1 }"),
        traffic("udp = { zzzzzzz = 1 }"),
        traffic("random_pairs = { flows = 1, udp = { zzzzzzz = 1 } }"),
        traffic("incast = { zzzzzzz = 1 }"),
        traffic("all_to_all = { zzzzzzz = 1 }"),
        traffic("job = { zzzzzzz = 1 }"),
        traffic("job = { mapreduce = { zzzzzzz = 1 } }"),
        traffic("job = { allreduce = { zzzzzzz = 1 } }"),
        traffic("job = { all_to_all = { zzzzzzz = 1 } }"),
        traffic("job = { pipeline = { zzzzzzz = 1 } }"),
        traffic("job = { all_to_all = {}, stragglers = { zzzzzzz = 1 } }"),
        traffic("exchange = { zzzzzzz = 1 }"),
        traffic("all_to_all = { think = { zzzzzzz = 1 } }"),
        traffic("poisson = { zzzzzzz = 1 }"),
        traffic("idle = { flows = 1 }\n[measure]\nzzzzzzz = 1"),
    ]
}

#[test]
fn the_reference_names_every_key() {
    let reference = reference();
    for section in sections() {
        for key in allowed(&section) {
            assert!(reference.contains(&format!("`{key}`")), "`{key}` is missing, of\n{section}");
        }
    }
}

#[test]
fn every_key_of_the_reference_exists() {
    let known: BTreeSet<String> = sections().iter().flat_map(|section| allowed(section)).collect();
    let (mut of_keys, mut seen) = (false, 0);
    for line in reference().lines() {
        let Some(first) = line.strip_prefix("| ").and_then(|line| line.split(" |").next()) else { continue };
        // a table's first line names its columns
        if !first.contains('`') {
            of_keys = first == "key";
        } else if of_keys {
            for key in first.split('`').skip(1).step_by(2) {
                assert!(known.contains(key), "`{key}` is no key of a scenario: {line}");
                seen += 1;
            }
        }
    }
    assert!(seen > 60, "{seen} keys");
}
