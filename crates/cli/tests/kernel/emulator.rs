//! Errors of the emulator name the place in the scenario, or what this machine lacks.

use crate::common::Place;
use crate::loading::{Exclusive, as_nobody, hide_btf, source, with_mounts};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

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
    // an error in a preset's value points to the preset's table
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

const SMALL: &str = r#"duration = "1 s"
[network]
topology = { star = { hosts = 2 } }
rate = "100 Mbit/s"
[tcp]
cc = "cubic"
[[traffic]]
bulk = { from = "h1", to = "h2" }
"#;

#[test]
fn a_shell_is_refused_for_what_cannot_be_opened() {
    let place = Place::with(SCENARIO);
    for (args, words) in [(["emu", "shell", "nothing.toml"], "nothing.toml"), (["emu", "shell", "a.toml"], "10 Gbit/s")]
    {
        let done = place.opentcp(&args);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn more_traffic_than_a_machine_can_forward_is_refused_with_the_bound() {
    let place = Place::with(
        "duration = \"2 s\"\n[network]\ntopology = { fat_tree = { k = 4 } }\nrate = \"1 Gbit/s\"\n[tcp]\n\
         cc = \"kernel:reno\"\n[[traffic]]\npermutation = { bulk = {} }\n",
    );
    let done = place.opentcp(&["run", "a.toml", "--backend", "emu"]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{}", done.stderr);
    let flat = done.stderr.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("more than one machine forwards") && flat.contains("the bound for this network"), "{flat}");
}

#[test]
fn without_rights_nothing_is_emulated() {
    let Some(_kernel) = Exclusive::new() else { return };
    let place = Place::with(SMALL);
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let (scenario, out) = (place.join("a.toml"), place.join("out"));
    let run = ["run", scenario.to_str().unwrap(), "--backend", "emu", "--out", out.to_str().unwrap()];
    let own = [&run[..], &["--set", "tcp.cc=kernel:reno"]].concat();
    let outputs = as_nobody([&run, &own]);
    for (output, words) in outputs.iter().zip(["into the kernel needs root", "network namespaces need root"]) {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with("error: ") && said.contains(words), "{said}");
    }
    assert_eq!(place.entries(), ["a.toml"]);
}

#[test]
fn an_algorithm_that_the_kernel_refuses_is_refused_before_anything_runs() {
    let Some(kernel) = Exclusive::new() else { return };
    let newreno = source("newreno");
    for (file, text) in [
        ("a.toml", SMALL),
        ("clamp.c", &newreno.replace("return tcp_reno_ssthresh(sk);", "tcp_sk(sk)->snd_cwnd_clamp = 1;\n\treturn 2;")),
        ("long.c", &newreno.replace("(newreno,", "(new_reno_of_mine,")),
    ] {
        kernel.place.write(file, text);
    }
    kernel.succeed(&["cc", "load", "bic"]);
    let run = |algorithm: &str| {
        let set = format!("tcp.cc={algorithm}");
        kernel.place.opentcp(&["run", "a.toml", "--backend", "emu", "--set", &set])
    };
    let refused = ["clamp.c", "long.c", "bic"].map(run);
    let without_types = with_mounts(&kernel, hide_btf, &["run", "a.toml", "--backend", "emu"]);
    let expected: [&[&str]; 4] = [
        &["verifier refuses", "hook newreno_ssthresh", "snd_cwnd_clamp = 1", "no write support to tcp_sock"],
        &["\"ot_new_reno_of_mine\", 19 characters", "shorten NAME to 12"],
        &["already has an algorithm \"ot_bic\"", "opentcp cc unload"],
        &["CONFIG_DEBUG_INFO_BTF=y", "kernel:cubic"],
    ];
    for (done, words) in refused.into_iter().chain([without_types]).zip(expected) {
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{}", done.stderr);
        assert!(done.stderr.starts_with("error: ") && !done.stderr.contains("panicked"), "{}", done.stderr);
        for part in words {
            assert!(done.stderr.contains(part), "expected {part:?} in\n{}", done.stderr);
        }
    }
    assert!(!kernel.place.join("opentcp-results").exists());
}
