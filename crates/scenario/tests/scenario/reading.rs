//! Correct scenarios: defaults, overrides, sweeps, and writing them as TOML.

use crate::common::{KNOWN, Memory, RICH, one, parse, parse_with, rich_files};
use scenario::{
    Algorithm, Arrivals, Limit, LimitOutput, Pace, Preset, Queue, Queues, Routing, Scenario, Senders, Tier, Topology,
    TrafficKind, Workload,
};
use std::path::Path;
use units::{Bytes, Rate, Time};

const SMALL: &str = r#"duration = "1 s"
[network]
topology = { star = { hosts = 3 } }
[[traffic]]
bulk = { from = "h1", to = "h2" }
"#;

#[test]
fn absent_keys_have_defaults() {
    let scenario = one(SMALL, &[]);
    assert_eq!((scenario.name.as_str(), scenario.seed), ("a", 1));
    assert_eq!(scenario.network.queue, Queue::DropTail(Limit::Packets(100)));
    assert_eq!(scenario.network.routing, Routing::Ecmp);
    assert_eq!(scenario.network.tier[&Tier::Host].rate, Rate::from_gbps(10));
    let tcp = &scenario.tcp;
    assert_eq!((tcp.preset, tcp.cc.label(), tcp.mss, tcp.mtu()), (Preset::Linux, "cubic", 1448, 1500));
    assert_eq!((tcp.initial_cwnd, tcp.rto_min, tcp.sack, tcp.rack), (10, Time::from_ms(200), true, true));
    assert_eq!(scenario.traffic[0].name, "bulk");
    assert_eq!(scenario.measure.queues, Queues::Links(vec![]));
}

#[test]
fn a_preset_is_a_whole_stack_and_each_key_still_counts() {
    let tcp = one(SMALL, &["tcp.preset=ns-3.25", "tcp.rto_min=2 ms", "tcp.timestamps=false"]).tcp;
    assert_eq!((tcp.initial_cwnd, tcp.sack, tcp.prr, tcp.cc.label()), (1, false, false, "newreno"));
    assert_eq!(
        (tcp.rto_min, tcp.receive_buffer, tcp.limit_output),
        (Time::from_ms(2), Bytes::new(131_072), LimitOutput::Off)
    );
    // 1500 - 20 - 20, without the 12 of the timestamps.
    assert_eq!(tcp.mss, 1460);
    let old = one(SMALL, &["tcp.preset=linux-2.6.18"]).tcp;
    assert_eq!((old.initial_cwnd, old.rack, old.sack, old.cc.label()), (3, false, true, "bic"));
    // Without SACK what depends on it is off, too.
    let tcp = one(SMALL, &["tcp.sack=false"]).tcp;
    assert_eq!((tcp.rack, tcp.tlp, tcp.prr), (false, false, true));
}

#[test]
fn every_kind_of_value_is_read() {
    let loaded = parse_with(RICH, &[], &rich_files()).unwrap_or_else(|error| panic!("{error}"));
    let scenario = &loaded.runs[0].scenario;
    assert_eq!(scenario.network.topology, Topology::FatTree { k: 4 });
    assert_eq!(scenario.network.tier[&Tier::Core].rate, Rate::from_mbps(2500));
    assert_eq!(scenario.network.tier[&Tier::Host].rate, Rate::from_gbps(1));
    assert!(matches!(&scenario.tcp.cc, Algorithm::File(file) if &*file.text == "/* one */\n"));
    assert_eq!((scenario.tcp.cc.label(), scenario.tcp.mss, scenario.tcp.initial_ssthresh), ("my_reno", 8948, None));
    let names: Vec<&str> = scenario.traffic.iter().map(|traffic| traffic.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "random_pairs",
            "permutation",
            "bulk",
            "bulk-2",
            "incast",
            "incast-2",
            "all_to_all",
            "poisson",
            "poisson-2",
            "trace",
            "idle",
            "all_to_all-2",
            "exchange"
        ]
    );
    assert_eq!(scenario.traffic[1].label, "shuffle");
    let kind = |i: usize| &scenario.traffic[i].kind;
    let workload = Workload::OnOff {
        rate: Rate::from_mbps(50),
        on: Time::from_ms(500),
        off: Time::from_secs(1),
        packet: Bytes::new(1000),
    };
    assert_eq!(*kind(0), TrafficKind::RandomPairs { flows: 3, workload });
    assert!(matches!(kind(4), TrafficKind::Incast { pace: Pace::Interval(t), receiver, .. }
        if *t == Time::from_ms(10) && receiver == "h1"));
    assert!(matches!(kind(5), TrafficKind::Incast { senders: Senders::First(5), pace: Pace::Barrier, .. }));
    assert!(
        matches!(kind(7), TrafficKind::Poisson { arrivals: Arrivals::Load(load), .. } if (load.fraction() - 0.3).abs() < 1e-12)
    );
    assert!(
        matches!(kind(9), TrafficKind::Trace { flows, .. } if flows.len() == 2 && flows[1].at == Time::from_ms(250))
    );
}

#[test]
fn a_resolved_scenario_reproduces_itself_byte_by_byte() {
    let loaded = parse_with(RICH, &[], &rich_files()).unwrap();
    let first = loaded.runs[0].scenario.bundle();
    let files = Memory(first.files.iter().map(|(name, text)| (name.clone(), text.to_string())).collect());
    // Two files of one name are kept apart.
    assert_eq!(
        first.files.keys().map(String::as_str).collect::<Vec<_>>(),
        ["files/2/my_reno.c", "files/flows.csv", "files/my_reno.c", "files/sizes.csv"]
    );
    let again = parse_with(&first.toml, &[], &files).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.runs[0].scenario.bundle(), first);
    assert_eq!(again.runs[0].scenario.network, loaded.runs[0].scenario.network);
    assert_eq!(first.toml, include_str!("resolved.toml"));
}

#[test]
fn a_written_scenario_needs_no_preset_and_no_default() {
    for preset in ["linux", "ns-3.25", "linux-2.6.18"] {
        let scenario = one(SMALL, &[&format!("tcp.preset={preset}"), "tcp.initial_ssthresh=unlimited"]);
        // A file name of its own, so that the name must come from the text.
        let input = scenario.to_toml();
        assert_eq!(one(&input, &[]), scenario);
    }
}

#[test]
fn an_explicit_network_reproduces_itself() {
    let text = r#"duration = "1 s"
[network.topology.explicit]
nodes = [{ name = "b", kind = "host" }, { name = "a", kind = "host" }, { name = "sw", kind = "switch" }]
links = [{ a = "b", b = "sw", rate = "1 Mbit/s" }, { a = "sw", b = "a", queue = { drop_tail = { bytes = "9 kB" } } }]
[[traffic]]
bulk = { from = "b", to = "a" }
[measure]
queues = "all"
"#;
    let scenario = one(text, &[]);
    assert_eq!(scenario.network.topology.host_index("a"), Some(1));
    assert_eq!(one(&scenario.to_toml(), &[]), scenario);
}

#[test]
fn overrides_take_toml_and_bare_words() {
    let sets = [
        "seed = 9",
        "network.rate=25 Gbit/s",
        "network.topology={ star = { hosts = 9 } }",
        "traffic.0.bulk.to=h9",
        "traffic.long.bulk.bytes='3 MB'",
        "tcp.sack=false",
        "name=other",
    ];
    let text = SMALL.replace("[[traffic]]", "[[traffic]]\nname = \"long\"");
    let scenario = one(&text, &sets);
    assert_eq!((scenario.seed, scenario.network.rate), (9, Rate::from_gbps(25)));
    assert_eq!(scenario.network.topology, Topology::Star { hosts: 9 });
    assert!(!scenario.tcp.sack);
    assert_eq!(scenario.name, "other");
    let kind = &scenario.traffic[0].kind;
    assert!(matches!(kind, TrafficKind::Bulk { to, bytes, .. } if to == "h9" && *bytes == Some(Bytes::new(3_000_000))));
}

#[test]
fn a_sweep_is_the_product_of_its_keys() {
    let text = format!("{SMALL}[sweep]\n\"tcp.cc\" = [\"vegas\", \"newreno\"]\nseed = [1, 2, 3]\n");
    let loaded = parse(&text, &[]).unwrap();
    let names: Vec<&str> = loaded.runs.iter().map(|run| run.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "cc=vegas,seed=1",
            "cc=vegas,seed=2",
            "cc=vegas,seed=3",
            "cc=newreno,seed=1",
            "cc=newreno,seed=2",
            "cc=newreno,seed=3"
        ]
    );
    assert_eq!(loaded.runs[4].parameters, [("tcp.cc".into(), "newreno".into()), ("seed".into(), "2".to_string())]);
    assert_eq!((loaded.runs[4].scenario.seed, loaded.runs[4].scenario.tcp.cc.label()), (2, "newreno"));
}

#[test]
fn setting_a_swept_key_ends_its_sweep() {
    let text = format!("{SMALL}[sweep]\ntcp.cc = [\"vegas\", \"newreno\"]\nseed = [1, 2]\n");
    let names = |sets: &[&str]| parse(&text, sets).unwrap().runs.into_iter().map(|run| run.name).collect::<Vec<_>>();
    assert_eq!(names(&["tcp.cc=bbr"]), ["seed=1", "seed=2"]);
    assert_eq!(names(&["sweep.seed=[5]"]), ["cc=vegas,seed=5", "cc=newreno,seed=5"]);
    assert_eq!(names(&["tcp.cc=bbr", "seed=3"]), ["a"]);
    assert_eq!(names(&["sweep={}"]), ["a"]);
    assert_eq!(names(&["sweep.\"tcp.cc\"=['yeah']", "seed=3"]), ["cc=yeah"]);
}

#[test]
fn setting_a_part_of_a_swept_value_counts_in_every_run() {
    let text = format!(
        "{SMALL}[sweep]\nnetwork.queue = [{{ drop_tail = {{ packets = 5 }} }}, {{ drop_tail = {{ packets = 6 }} }}]\n"
    );
    let loaded = parse(&text, &["network.queue.drop_tail.packets=7"]).unwrap();
    assert_eq!(loaded.runs.len(), 2);
    assert!(loaded.runs.iter().all(|run| run.scenario.network.queue == Queue::DropTail(Limit::Packets(7))));
    // Setting a table around a swept key ends its sweep.
    let text = format!("{SMALL}[sweep]\n\"network.topology.star.hosts\" = [3, 4]\n");
    let loaded = parse(&text, &["network.topology={ star = { hosts = 9 } }"]).unwrap();
    assert_eq!(loaded.runs[0].scenario.network.topology, Topology::Star { hosts: 9 });
}

#[test]
fn names_of_runs_are_unique_and_fit_folders() {
    let text = format!(
        "{SMALL}[sweep]\n\"network.queue\" = [{{ drop_tail = {{ packets = 5 }} }}, {{ drop_tail = {{ bytes = \"5 kB\" }} }}]\n\
         \"network.tier.host.queue\" = [{{ drop_tail = {{ packets = 5 }} }}]\n\"tcp.cc\" = [\"a/x.c\", \"a_x.c\"]\n"
    );
    let files = Memory::of(&[("a/x.c", ""), ("a_x.c", "")]);
    let loaded = parse_with(&text, &[], &files).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<String> = loaded.runs.into_iter().map(|run| run.name).collect();
    insta::assert_snapshot!(names.join("\n"), @r##"
    network.queue=drop_tail.packets=5,network.tier.host.queue=drop_tail.packets=5,cc=a_x.c
    network.queue=drop_tail.packets=5,network.tier.host.queue=drop_tail.packets=5,cc=a_x.c-2
    network.queue=drop_tail.bytes=5kB,network.tier.host.queue=drop_tail.packets=5,cc=a_x.c
    network.queue=drop_tail.bytes=5kB,network.tier.host.queue=drop_tail.packets=5,cc=a_x.c-2
    "##);
}

#[test]
fn every_scenario_of_the_project_loads_and_reproduces_itself() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut lines = Vec::new();
    for path in files {
        let loaded = Scenario::load(&path, &[], KNOWN).unwrap_or_else(|error| panic!("{error}"));
        let name = path.file_name().unwrap().to_string_lossy().to_string();
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("# "), "{name} opens with what it shows");
        for run in &loaded.runs {
            let first = run.scenario.bundle();
            let files = Memory(first.files.iter().map(|(name, text)| (name.clone(), text.to_string())).collect());
            let again = parse_with(&first.toml, &[], &files).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(again.runs[0].scenario.bundle(), first, "{name} {}", run.name);
        }
        lines.push(format!("{name}: {} runs, first {}", loaded.runs.len(), loaded.runs[0].name));
    }
    insta::assert_snapshot!(lines.join("\n"), @r##"
    allreduce.toml: 2 runs, first algorithm=ring
    bcube.toml: 1 runs, first bcube
    cfi16-fat-tree.toml: 16 runs, first routing=single-path,cc=newreno
    data-centers-incast.toml: 1 runs, first data-centers-incast
    data-centers-mapreduce.toml: 1 runs, first data-centers-mapreduce
    data-centers-on-off.toml: 1 runs, first data-centers-on-off
    data-centers-web-search.toml: 1 runs, first data-centers-web-search
    dcell.toml: 1 runs, first dcell
    dctcp-convergence.toml: 2 runs, first cc=dctcp
    dctcp-queue.toml: 3 runs, first cc=dctcp
    dctcp-sawtooth.toml: 3 runs, first senders=2
    dctcp-star.toml: 2 runs, first cc=dctcp
    demo.toml: 1 runs, first demo
    dragonfly.toml: 2 runs, first routing=ecmp
    dumbbell.toml: 1 runs, first dumbbell
    ecn-enforced.toml: 1 runs, first ecn-enforced
    ecn-marks.toml: 1 runs, first ecn-marks
    ecn-slowed.toml: 1 runs, first ecn-slowed
    fleet.toml: 2 runs, first cc=dctcp
    incast-aimed.toml: 2 runs, first policy=none
    incast-kernel.toml: 2 runs, first policy=none
    incast-policy.toml: 2 runs, first policy=none
    incast.toml: 6 runs, first cc=newreno,rto_min=200ms
    jellyfish.toml: 1 runs, first jellyfish
    link-failure.toml: 1 runs, first link-failure
    mapreduce.toml: 2 runs, first cc=cubic
    opentcp-day.toml: 1 runs, first opentcp-day
    opentcp-scinet.toml: 1 runs, first opentcp-scinet
    parity.toml: 1 runs, first parity
    partition-aggregate.toml: 2 runs, first cc=cubic
    pathology-ack.toml: 1 runs, first pathology-ack
    pathology-buffer.toml: 1 runs, first pathology-buffer
    pathology-incast.toml: 7 runs, first senders=1
    pathology-outcast.toml: 1 runs, first pathology-outcast
    pathology-queue.toml: 1 runs, first pathology-queue
    pathology-rtt.toml: 1 runs, first pathology-rtt
    pathology-window.toml: 1 runs, first pathology-window
    permutation-fat-tree.toml: 9 runs, first cc=dctcp,seed=1
    policy-try.toml: 1 runs, first policy-try
    queue-dualpi2.toml: 1 runs, first queue-dualpi2
    queue-step.toml: 5 runs, first queue=drop_tail.packets=200
    tcon.toml: 1 runs, first tcon
    vl2.toml: 1 runs, first vl2
    websearch-leaf-spine.toml: 6 runs, first cc=cubic,load=30pct
    "##);
}

#[test]
fn a_missing_scenario_is_reported() {
    let error = Scenario::load(Path::new("no/such.toml"), &[], KNOWN).unwrap_err();
    assert!(error.to_string().contains("cannot read the scenario `no/such.toml`"), "{error}");
}

#[test]
fn an_empty_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.toml");
    for text in ["", "\n", "# nothing"] {
        std::fs::write(&path, text).unwrap();
        let error = Scenario::load(&path, &[], KNOWN).unwrap_err().to_string();
        assert!(error.contains("empty.toml:1:1"), "{text:?}: {error}");
    }
}

#[test]
fn a_folder_with_copies_of_the_files_loads_from_disk() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = parse_with(RICH, &[], &rich_files()).unwrap().runs[0].scenario.bundle();
    std::fs::create_dir_all(folder.path().join("files/2")).unwrap();
    for (name, text) in &bundle.files {
        std::fs::write(folder.path().join(name), &**text).unwrap();
    }
    let path = folder.path().join("scenario.toml");
    std::fs::write(&path, &bundle.toml).unwrap();
    let again = Scenario::load(&path, &[], KNOWN).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.runs[0].scenario.bundle(), bundle);
    let Algorithm::File(file) = &again.runs[0].scenario.tcp.cc else { panic!("a C file") };
    assert_eq!(file.file.path, folder.path().join("files/my_reno.c"));
}

#[test]
fn the_links_of_data_center_networks_are_those_that_are_built() {
    let text = |topology: &str, link: &str| {
        format!(
            "duration = \"1 s\"\n[network]\ntopology = {{ {topology} }}\n[[network.failure]]\nlink = \"{link}\"\n\
             at = \"1 ms\"\n[[traffic]]\nidle = {{ flows = 1 }}"
        )
    };
    let bcube = "bcube = { n = 4, k = 1, forwarding_delay = \"5 us\" }";
    let vl2 = "vl2 = { aggregation_ports = 4, intermediate_ports = 4 }";
    let dcell = "dcell = { n = 4, l = 1, forwarding_delay = \"0 s\" }";
    for (topology, link, joined) in [
        (bcube, "h1-s5", true),
        (bcube, "h1-s6", false),
        (vl2, "t4-a4", true),
        (vl2, "t1-a3", false),
        (vl2, "a4-i2", true),
        (dcell, "h1-h5", true),
        (dcell, "h1-h6", false),
    ] {
        assert_eq!(parse(&text(topology, link), &[]).is_ok(), joined, "{link} of {topology}");
    }
    let read = parse(&text(bcube, "h1-s5"), &[]).unwrap().runs.remove(0).scenario;
    let bundle = read.bundle().toml;
    assert!(bundle.contains("[network.topology.bcube]") && bundle.contains("forwarding_delay = \"5 us\""), "{bundle}");
    assert_eq!(parse(&bundle, &[]).unwrap().runs[0].scenario.network, read.network);
    let flowlets = "star = { hosts = 2 } }\nbalancing = { flowlet = { gap = \"50 us\" }";
    let read = parse(&text(flowlets, "h1-s1"), &[]).unwrap().runs.remove(0).scenario;
    assert_eq!(parse(&read.bundle().toml, &[]).unwrap().runs[0].scenario.network, read.network);
    let valiant = parse(&text(vl2, "t4-a4"), &[]).unwrap().runs.remove(0).scenario;
    assert_eq!(valiant.network.routing, Routing::Valiant);
}

#[test]
fn names_of_generated_nodes_follow_the_wiring() {
    let tree = Topology::FatTree { k: 6 };
    assert_eq!((tree.hosts(), tree.switches(), tree.cables()), (54, 45, 162));
    let links = [
        ("h1", "e1", true),
        ("h54", "e18", true),
        ("h4", "e1", false),
        ("e1", "a3", true),
        ("e1", "a4", false),
        ("a1", "c3", true),
        ("a1", "c4", false),
        ("a5", "c4", true),
        ("a4", "c1", true),
    ];
    for (a, b, linked) in links {
        let text = format!(
            "duration = \"1 s\"\n[network]\ntopology = {{ fat_tree = {{ k = 6 }} }}\n[[network.failure]]\nlink = \"{a}-{b}\"\nat = \"0 s\"\n[[traffic]]\nidle = {{ flows = 1 }}"
        );
        assert_eq!(parse(&text, &[]).is_ok(), linked, "{a}-{b}");
    }
    let dumbbell = Topology::Dumbbell { pairs: 2 };
    let names: Vec<String> = (0..4).map(|i| dumbbell.host_name(i)).collect();
    assert_eq!(names, ["left1", "left2", "right1", "right2"]);
    assert!((0..4).all(|i| dumbbell.host_index(&names[i as usize]) == Some(i)));
    for not_a_host in ["", "h", "h0", "h01", "h55", "e1", "H1", "hé", "h99999999999999999999"] {
        assert_eq!(tree.host_index(not_a_host), None, "{not_a_host}");
    }
}
