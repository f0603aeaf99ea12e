//! Jobs: what begins when, what arrives, how long it takes.

use crate::support::{run, run_with};
use results::RunResults;

const STAR: &str = r#"
    duration = "2 s"
    [network]
    topology = { star = { hosts = 4 } }
    rate = "1 Gbit/s"
    delay = "5 us"
"#;

fn job(of: &str) -> RunResults {
    run(&format!("{STAR}[[traffic]]\n{of}\n"))
}

fn jct_ms(results: &RunResults) -> Vec<f64> {
    results.jobs.iter().map(|job| job.jct_ns().expect("it ends") as f64 / 1e6).collect()
}

/// The payload that arrived is the messages', and each link lost count of nothing.
fn conserved(results: &RunResults) {
    let arrived: u64 = results.flows.iter().map(|flow| flow.delivered_bytes).sum();
    assert_eq!(arrived, results.jobs.iter().map(|job| job.bytes).sum::<u64>());
    assert_eq!(arrived, results.coflows.iter().map(|coflow| coflow.bytes).sum::<u64>());
    for link in &results.links {
        assert_eq!(link.packets, link.delivered + link.dropped_by_failure + link.in_flight, "{}", link.link);
    }
}

#[test]
fn a_pipeline_takes_its_stages_and_then_its_other_batches() {
    // 4 stages, 3 batches of 10 ms: (4 + 3 - 1) * 10 ms, and a small message between stages, three times on the way
    let results = job(r#"job = { pipeline = { bytes = "1 kB", batches = 3, compute = "10 ms" } }"#);
    let [took] = jct_ms(&results)[..] else { panic!("one run") };
    assert!((60.0..60.5).contains(&took), "{took}");
    assert_eq!(results.flows.len(), 9);
    conserved(&results);
}

#[test]
fn a_ring_sends_each_part_twice_round() {
    let results =
        job(r#"job = { allreduce = { bytes = "4 MB", compute = "5 ms" }, repeat = 3, connections = "reuse" }"#);
    // each of 4 hosts sends 2 * 3 parts of 1 MB, on one connection
    assert_eq!(results.jobs.iter().map(|job| (job.messages, job.bytes)).collect::<Vec<_>>(), [(24, 24_000_000); 3]);
    assert_eq!(results.flows.len(), 4);
    // a link carries 6 MB of payload in each run: at least 48 ms
    assert!(jct_ms(&results).iter().all(|took| (53.0..80.0).contains(took)), "{:?}", jct_ms(&results));
    let names: Vec<&str> = results.coflows.iter().take(2).map(|coflow| &*coflow.coflow).collect();
    assert_eq!(names, ["reduce-scatter", "all-gather"]);
    assert!(results.coflows.iter().all(|coflow| coflow.cct_ns().is_some()));
    conserved(&results);
}

#[test]
fn a_tree_and_all_to_all_end() {
    let tree = job(r#"job = { allreduce = { algorithm = "tree", bytes = "1 MB" } }"#);
    assert_eq!((tree.jobs[0].messages, tree.jobs[0].bytes), (6, 6_000_000));
    conserved(&tree);
    let all = job(r#"job = { all_to_all = { bytes = "100 kB" } }"#);
    assert_eq!(all.jobs[0].messages, 12);
    conserved(&all);
}

#[test]
fn reducers_wait_for_the_slowest_mapper() {
    let shuffle = |more: &str| {
        job(&format!(
            r#"job = {{ mapreduce = {{ mappers = 2, reducers = 2, waves = 2, bytes = "800 kB", map = "20 ms", reduce = "10 ms" }}{more} }}"#
        ))
    };
    // two waves of 20 ms, the last quarter of the shuffle, 10 ms
    let plain = shuffle("");
    let [took] = jct_ms(&plain)[..] else { panic!("one run") };
    assert!((50.0..60.0).contains(&took), "{took}");
    assert_eq!((plain.jobs[0].tasks, plain.jobs[0].messages, plain.coflows.len()), (14, 8, 1));
    conserved(&plain);
    // the shuffle begins when the first map task has ended
    assert_eq!(plain.coflows[0].start_ns.expect("it begins") / 1_000_000, 20);
    let slow = shuffle(r#", stragglers = { probability = "100 %", factor = 3 }"#);
    assert!((150.0..160.0).contains(&jct_ms(&slow)[0]), "{:?}", jct_ms(&slow));
    let some = shuffle(r#", stragglers = { probability = "30 %", factor = 3 }, repeat = 8"#);
    let took = jct_ms(&some);
    let straggled = took.iter().filter(|took| **took > 60.0).count();
    assert!(straggled > 0 && took.iter().all(|took| (50.0..160.0).contains(took)), "{took:?}");
    assert_eq!(some.summary.extra["job.jobs_completed"] as u64, 8);
}

const RING: &str = r"num_ranks 2
/* one message each way, one after the other */
rank 0 {
  l1: calc 1000000 cpu 0
  l2: send 50000b to 1 tag 7
  l3: recv 50000b from 1 tag 7
  l2 requires l1
  l3 irequires l2
}
rank 1 {
  l1: recv 50000b from 0 tag 7
  l2: calc 2000000 // ns
  l3: send 50000b to 0 tag 7
  l2 requires l1
  l3 requires l2
}
";

const SAME: &str = r#"{ "ranks": 2, "tasks": [
  { "id": "a", "rank": 0, "compute": "1 ms" },
  { "id": "b", "from": 0, "to": 1, "send": "50 kB", "after": ["a"], "coflow": "tag-7" },
  { "id": "c", "rank": 1, "compute": "2 ms", "after": ["b"] },
  { "id": "d", "from": 1, "to": 0, "send": "50 kB", "after": ["c"], "coflow": "tag-7" } ] }
"#;

#[test]
fn the_same_job_in_goal_and_in_json_takes_the_same_time() {
    let of = |name: &str| {
        let text = format!("{STAR}[[traffic]]\njob = {{ file = \"{name}\", hosts = [\"h2\", \"h4\"] }}\n");
        run_with(&text, &[("a.goal", RING), ("a.json", SAME)])
    };
    let (goal, json) = (of("a.goal"), of("a.json"));
    assert_eq!(goal.flows, json.flows);
    assert_eq!(goal.coflows, json.coflows);
    assert_eq!(jct_ms(&goal), jct_ms(&json));
    // 3 ms of computing, and twice 0.4 ms of sending and three ways of about 12 us
    assert!((3.8..5.0).contains(&jct_ms(&goal)[0]), "{:?}", jct_ms(&goal));
    assert_eq!((&*goal.flows[0].src, &*goal.flows[0].dst), ("h2", "h4"));
}

#[test]
fn a_job_is_the_same_again_and_when_the_run_ends_early_it_has_not_ended() {
    let text = r#"job = { mapreduce = { mappers = 3, reducers = 2, bytes = "3 MB", map = "5 ms" }, repeat = 100,
        stragglers = { probability = "20 %", factor = 5 }, think = { exponential = "20 ms" } }"#;
    let (first, again) = (job(text), job(text));
    assert_eq!(first.jobs, again.jobs);
    assert_eq!(first.flows, again.flows);
    let (last, before) = first.jobs.split_last().expect("there are some");
    assert!(before.len() > 10 && before.iter().all(|job| job.end_ns.is_some()), "{before:?}");
    assert!(first.jobs.len() < 100 && last.start_ns < 2_000_000_000);
}

#[test]
fn answers_after_their_deadline_are_counted() {
    // three answers of 100 kB into 1 Gbit/s take 2.4 ms
    let of = |deadline: &str| {
        let incast = format!(r#"incast = {{ senders = 3, bytes = "100 kB", repeat = 10, deadline = "{deadline}" }}"#);
        let extra = job(&incast).summary.extra;
        ["incast.answers_missed", "incast.queries_missed"].map(|name| (extra[name] * 100.0) as u64)
    };
    assert_eq!(of("100 ms"), [0, 0]);
    assert_eq!(of("0.1 ms"), [100, 100]);
    let [answers, queries] = of("2 ms");
    assert!(answers < queries && queries > 90, "{answers} {queries}");
}
