//! The built playground: in node and in a browser it gives the bytes that the command writes, and its page works.

mod built;

use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use study::{Monitor, RunRequest, Source, Stop};

/// An example, with these lines replaced.
fn example(name: &str, settings: &[(&str, &str)]) -> String {
    let text = fs::read_to_string(format!("../../scenarios/{name}.toml")).expect("an example");
    let line = |line: &str| match line.split_once('=') {
        Some((key, _)) => match settings.iter().find(|(name, _)| *name == key.trim()) {
            Some((name, value)) => format!("{name} = {value}"),
            None => line.to_string(),
        },
        None => line.to_string(),
    };
    // a run, not a sweep
    let text = text.split("[sweep]").next().expect("the part before it");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A scenario for each algorithm.
fn algorithms() -> Vec<(String, String)> {
    let dumbbell = |cc| example("dumbbell", &[("duration", "\"9 s\""), ("cc", &format!("\"{cc}\""))]);
    study::algorithm_names().into_iter().map(|cc| (format!("dumbbell-{cc}.toml"), dumbbell(cc))).collect()
}

/// A scenario for each kind of network and traffic.
fn kinds() -> Vec<(String, String)> {
    let shorter = [
        ("dctcp-queue", vec![("duration", "\"1 s\""), ("warmup", "\"200 ms\"")]),
        ("incast", vec![("duration", "\"2 s\"")]),
        ("link-failure", vec![("duration", "\"30 ms\""), ("at", "\"10 ms\""), ("until", "\"20 ms\"")]),
        ("websearch-leaf-spine", vec![("duration", "\"40 ms\""), ("warmup", "\"5 ms\"")]),
        ("permutation-fat-tree", vec![("duration", "\"5 ms\""), ("warmup", "\"1 ms\"")]),
    ];
    shorter.into_iter().map(|(name, settings)| (format!("{name}.toml"), example(name, &settings))).collect()
}

/// `summary.json`, as the command writes it, and packet-hops a second.
fn written(name: &str, text: &str) -> (String, f64) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let source = Source::Text { name: name.to_string(), text: text.to_string(), base: folder.to_path_buf() };
    let out = folder.join("out");
    let request = RunRequest { out: Some(out.clone()), ..RunRequest::new(source) };
    let (quiet, stop) = (|_: study::Event<'_>| {}, Stop::default());
    let done = study::run(&request, Monitor::new(&quiet, &stop)).expect("it runs");
    let summary = fs::read_to_string(out.join("summary.json")).expect("it was written");
    (summary, done.info.packet_hops_per_s)
}

#[test]
fn a_run_in_node_gives_the_bytes_that_the_command_writes() {
    let Some(page) = built::page() else { return };
    let Some(node) = testkit::on_path("node") else {
        eprintln!("skipped: no node on the PATH");
        return;
    };
    let scenarios: Vec<_> = algorithms().into_iter().chain(kinds()).collect();
    let mut child = Command::new(node)
        .args([Path::new("tests/browser/same-bytes.mjs"), &page])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node starts");
    let mut input = child.stdin.take().expect("piped");
    for (name, text) in &scenarios {
        writeln!(input, "{}", json!({ "name": name, "text": text })).expect("node reads");
    }
    drop(input);
    let output = child.wait_with_output().expect("node ends");
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).expect("text");
    let answers: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), scenarios.len());
    for ((name, text), answer) in scenarios.iter().zip(&answers) {
        let (summary, per_s) = written(name, text);
        assert_eq!(answer["summary"].as_str(), Some(summary.as_str()), "{name}");
        let in_node = answer["per_s"].as_f64().expect("a number");
        println!("{name}: {:.1} M packet-hops/s in node, {:.1} in this build", in_node / 1e6, per_s / 1e6);
        assert!(answer["hops"].as_f64() > Some(1000.0), "{name}: {}", answer["hops"]);
    }
}

#[test]
fn the_page_runs_scenarios_shows_mistakes_and_can_be_used_by_everybody() {
    let Some(page) = built::page() else { return };
    let Some(browser) = built::browser() else { return };
    let texts = algorithms();
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("playground");
    let asked = json!({ "page": page, "browser": browser.program, "out": out, "texts": texts });
    let output = Command::new("node")
        .args(["tests/browser/page.mjs", &asked.to_string()])
        .env("NODE_PACKAGES", &browser.packages)
        .output()
        .expect("node starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let summaries = found["summaries"].as_array().expect("a list");
    assert_eq!(summaries.len(), texts.len());
    for ((name, text), summary) in texts.iter().zip(summaries) {
        assert_eq!(summary.as_str(), Some(written(name, text).0.as_str()), "{name}");
    }
}
