//! What the emulator refuses is told where it is written; for that nobody needs to be root.

use crate::common::Place;

const SCENARIO: &str = r#"duration = "2 s"
[network]
topology = { star = { hosts = 3 } }
rate = "25 Gbit/s"
[tcp]
prr = false
cc = "kernel:reno"
[[traffic]]
bulk = { from = "h1", to = "h2" }
"#;

#[test]
fn what_cannot_be_emulated_is_refused_where_it_is_written() {
    let place = Place::with(SCENARIO);
    let refused = |args: &[&str], parts: &[&str]| {
        let done = place.opentcp(&[&["run", "a.toml", "--backend", "emu"], args].concat());
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{args:?}: {}", done.stderr);
        for part in parts {
            assert!(done.stderr.contains(part), "{args:?}: {part}: {}", done.stderr);
        }
        assert_eq!(place.entries(), ["a.toml"], "something was left behind by {args:?}");
    };
    refused(&[], &["a.toml:4:1", "the bound is 10 Gbit/s", "a.toml:6:1", "`tcp.prr`"]);
    refused(&["--set", "network.rate=1 Gbit/s"], &["a.toml:6:1"]);
    // a preset's value is told at the preset's table
    refused(&["--set", "tcp.preset=ns-3.25"], &["`tcp.initial_ssthresh`", "a.toml:5:2"]);
    refused(&["--set", "network.topology.star.hosts=500"], &["500 hosts", "the bound is 128"]);
    refused(&["--set", "tcp.cc=kernel:nothing"], &["unknown algorithm `kernel:nothing`"]);
}

#[test]
fn the_simulator_does_not_have_the_kernels_algorithms() {
    let done = Place::with(SCENARIO).opentcp(&["run", "a.toml"]);
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("unknown algorithm `kernel:reno`"), "{}", done.stderr);
}
