//! Scale models against whole networks: on one small enough for both, they agree; what a model cannot say is refused.

use results::SlowdownOf;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use study::{
    Backend, Done, Event, Failure, Monitor, RunRequest, Source, Stop, TrialRequest, Tried, run, run_fast, try_policy,
};

/// A hundred and twenty-eight hosts on thirty-two leaves; the model has eight of them.
const NETWORK: &str = "duration = \"60 ms\"\n[network]\ntopology = { leaf_spine = { leaves = 32, spines = 4, hosts_per_leaf = 4 } }\n\
                       rate = \"1 Gbit/s\"\ndelay = \"5 us\"\nqueue = { threshold_ecn = { mark_packets = 20, packets = 100 } }\n\
                       [tcp]\ncc = \"cubic\"\nrto_min = \"10 ms\"\n[[traffic]]\nname = \"flows\"\npoisson = { load = \"50 %\", sizes = \"hadoop\" }\n";

fn unheard(_: Event<'_>) {}

fn text(name: &str, text: &str) -> Source {
    Source::Text { name: name.to_string(), text: text.to_string(), base: PathBuf::new() }
}

fn modelled(scenario: &str, workers: usize, out: &Path) -> Result<Done, Failure> {
    let out = Some(out.to_path_buf());
    let request = RunRequest { out, workers, ..RunRequest::new(text("small.toml", scenario)) };
    run_fast(&request, Monitor::new(&unheard, &Stop::default()))
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("it is there");
    let read = entries.map(|entry| entry.expect("it is there").path()).filter(|path| path.is_file());
    let named = read.map(|path| (path.file_name().unwrap().to_str().unwrap().to_string(), path));
    // how fast the run was is the machine's
    let kept = named.filter(|(name, _)| name != "run.json" && name != "report.html");
    kept.map(|(name, path)| (name, std::fs::read(path).expect("it is a file"))).collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes_with_any_number_of_jobs() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = NETWORK.replace("60 ms", "20 ms");
    let outs = [1, 3].map(|workers| {
        let out = folder.path().join(workers.to_string());
        modelled(&scenario, workers, &out).expect("it runs");
        files(&out)
    });
    assert!(outs[0].contains_key("summary.json") && outs[0].contains_key("flows.parquet"), "{:?}", outs[0].keys());
    assert!(outs[0] == outs[1]);
}

#[test]
fn medians_are_near_those_of_the_whole_network() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = |name: &str| folder.path().join(name);
    // two seeds have as many flows as the eight of a model
    let sweep = format!("{NETWORK}[sweep]\nseed = [1, 2]\n");
    let whole = RunRequest { out: Some(out("whole")), ..RunRequest::new(text("small.toml", &sweep)) };
    let whole = run(&whole, Monitor::new(&unheard, &Stop::default())).expect("it runs");
    let model = modelled(NETWORK, 2, &out("model")).expect("it runs");
    let model = model.runs[0].summary.slowdown.clone().expect("flows have sizes");
    for of in &model.classes[..3] {
        let interval = of.model.as_ref().expect("it is a model");
        assert!(interval.p50.0 <= interval.p50.1 && interval.p99.0 < interval.p99.1, "{of:?}");
        assert_eq!(interval.error, None, "no such network was measured");
        let slowdowns = whole.runs.iter().filter_map(|run| run.summary.slowdown.as_ref());
        let same = slowdowns.filter_map(|slowdown| slowdown.classes.iter().find(|same| same.class == of.class));
        let same: Vec<&SlowdownOf> = same.collect();
        let mean = |value: fn(&SlowdownOf) -> f64| same.iter().map(|of| value(of)).sum::<f64>() / same.len() as f64;
        let ratio = of.p50 / mean(|of| of.p50);
        println!("{}: the median is {ratio:.2} of the whole network's", of.class);
        assert!((0.75..1.33).contains(&ratio), "{}: {ratio}", of.class);
    }
}

fn tried(set: &str, fast: bool) -> Tried {
    let policy = format!(
        "mode = \"enforce\"\nperiod = \"60 s\"\n[objective]\nminimize = \"network.fct_p99\"\n[[rule]]\nname = \"r\"\nwhen = \"true\"\n\
         set = {{ {set} }}\n[rollout]\nfraction = 1.0\n"
    );
    let sets = vec!["policy.period=5 ms".to_string()];
    let request = TrialRequest {
        seeds: 8,
        sets,
        fast,
        ..TrialRequest::new(text("p.toml", &policy), text("small.toml", NETWORK))
    };
    try_policy(&request, Monitor::new(&unheard, &Stop::default())).expect("it runs")
}

#[test]
fn a_policy_is_judged_alike_on_the_model_and_on_the_whole_network() {
    for (set, answer) in
        [("max_pacing_rate = \"10 Mbit/s\"", "hurts"), ("max_pacing_rate = \"100 Mbit/s\"", "no difference")]
    {
        let [whole, model] = [false, true].map(|fast| tried(set, fast));
        let p99 = |tried: &Tried| {
            let quantity = tried.verdict.quantities.iter().find(|quantity| quantity.name == "p99 FCT");
            quantity.and_then(|quantity| quantity.change).expect("flows end")
        };
        println!(
            "{set}: p99 {:+.3} whole, {:+.3} model\n{}\n{}",
            p99(&whole),
            p99(&model),
            whole.words(),
            model.words()
        );
        assert_eq!((whole.answer, model.answer), (answer, answer), "{set}");
        assert_eq!(p99(&whole) > 0.0, p99(&model) > 0.0, "{set}");
        assert!(model.model && model.words().starts_with("SCALE MODEL: `p` "), "{}", model.words());
    }
}

#[test]
fn what_a_model_cannot_say_is_refused() {
    let change = |from: &str, to: &str| {
        assert!(NETWORK.contains(from), "{from}");
        NETWORK.replace(from, to)
    };
    let more = |lines: &str| format!("{NETWORK}{lines}");
    let shape = "leaf_spine = { leaves = 32, spines = 4, hosts_per_leaf = 4 }";
    let poisson = "poisson = { load = \"50 %\", sizes = \"hadoop\" }";
    let cases = [
        (change(poisson, "bulk = { from = \"h1\", to = \"h2\" }"), "traffic other than `poisson`"),
        (
            more("[[traffic]]\nname = \"more\"\nincast = { senders = 3, bytes = \"1 kB\" }\n"),
            "traffic other than `poisson`",
        ),
        (change("sizes = \"hadoop\" }", "sizes = \"hadoop\", flows = 9 }"), "`poisson.flows`"),
        (change("load = \"50 %\"", "flows_per_second = 9"), "`poisson.flows_per_second`"),
        (change("load = \"50 %\"", "load = \"50 %\", from = [\"h1\"]"), "`poisson.from`"),
        (change("[tcp]", "routing = \"single-path\"\n[tcp]"), "`network.routing` other than `ecmp`"),
        (change("[tcp]", "failure = [{ link = \"l1-s1\", at = \"1 ms\" }]\n[tcp]"), "`network.failure`"),
        (change("[tcp]", "loss = [{ link = \"l1-s1\", probability = \"1 %\" }]\n[tcp]"), "`network.loss`"),
        (change("[tcp]", "buffer = { shared = { bytes = \"1 MB\" } }\n[tcp]"), "`network.buffer`"),
        (change(shape, "star = { hosts = 128 }"), "`network.topology` other than"),
        (more("[measure]\nlinks = \"1 ms\"\n"), "`measure.links`"),
        (more("[measure]\nqueues = \"all\"\n"), "`measure.queues`"),
        (more("[measure]\ncwnd = \"1 ms\"\n"), "`measure.cwnd`"),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    for (scenario, words) in cases {
        let failure = modelled(&scenario, 1, &out).expect_err(words);
        let Failure::Input(message) = &failure else { panic!("{words}: {failure:?}") };
        assert!(message.starts_with("--fast cannot model ") && message.contains(words), "{words} in {message}");
        assert!(message.ends_with(". Leave it out, or run without --fast"), "{message}");
        assert!(!out.exists());
    }
    let small = modelled(&change("leaves = 32", "leaves = 4"), 1, &out).expect_err("it is small");
    assert!(small.to_string().starts_with("--fast has no model of this network of 16 hosts"), "{small}");
    let emulated = RunRequest { backend: Backend::Emu, ..RunRequest::new(text("small.toml", NETWORK)) };
    let failure = run_fast(&emulated, Monitor::new(&unheard, &Stop::default())).expect_err("it simulates");
    assert!(failure.to_string().contains("--fast simulates"), "{failure}");
}

#[test]
fn a_policy_that_depends_on_the_networks_size_is_refused() {
    let rules = [
        (
            "when = \"network.max_link_utilization < 0.5\"",
            "`network.max_link_utilization` depends on the number of hosts",
        ),
        ("when = \"network.live_flows > 3\"", "`network.live_flows`"),
        ("when = \"true\"\nmatch = { hosts = [\"h1*\"] }", "chooses hosts by name"),
    ];
    for (when, words) in rules {
        let policy = format!(
            "mode = \"enforce\"\nperiod = \"60 s\"\n[[rule]]\nname = \"r\"\n{when}\nset = {{ initial_cwnd = 20 }}\n"
        );
        let sets = vec!["policy.period=5 ms".to_string()];
        let request = TrialRequest {
            seeds: 5,
            sets,
            fast: true,
            ..TrialRequest::new(text("p.toml", &policy), text("small.toml", NETWORK))
        };
        let failure = try_policy(&request, Monitor::new(&unheard, &Stop::default())).expect_err(words);
        assert!(matches!(&failure, Failure::Input(message) if message.contains(words)), "{failure:?}");
    }
}

#[test]
fn an_interrupted_model_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let stop = Stop::default();
    let heard = |event: Event<'_>| {
        if matches!(event, Event::Advanced { .. }) {
            stop.interrupt();
        }
    };
    let request = RunRequest { out: Some(out.clone()), workers: 2, ..RunRequest::new(text("small.toml", NETWORK)) };
    let failure = run_fast(&request, Monitor::new(&heard, &stop)).expect_err("it was stopped");
    assert!(matches!(failure, Failure::Interrupted), "{failure:?}");
    assert!(!out.exists());
}
