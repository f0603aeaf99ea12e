//! `reproduce ecn`: what programs may rely on, and the orders of its results, in shorter runs.

use study::{Event, Failure, Monitor, Request, Stop, reproduce};

fn unheard(_: Event<'_>) {}

#[test]
fn two_enforcers_do_as_dctcp_hosts_and_marks_slow_hosts() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |out: &str, workers: usize| {
        let sets = ["duration=1 s", "measure.warmup=300 ms"].map(str::to_string).to_vec();
        let request = Request { sets, workers, out: folder.path().join(out), ..Request::new("ecn") };
        reproduce(&request, Monitor::new(&unheard, &Stop::default())).expect("it runs")
    };
    let done = run("out", 2);
    let ours = |figure: &str, case: &str, quantity: &str| {
        let is = |row: &&results::Comparison| row.figure == figure && row.case == case && row.quantity == quantity;
        done.comparisons.iter().find(is).unwrap_or_else(|| panic!("no {quantity} of {case}")).ours
    };
    for setting in ["1 Gbit/s, N = 2", "10 Gbit/s, N = 10"] {
        let queue = |variant: &str| ours("two enforcers", &format!("{setting}/{variant}"), "queue, 99 %");
        let [cubic, dctcp, both] = ["cubic", "dctcp", "cubic, two enforcers"].map(queue);
        assert!(both <= 1.5 * dctcp + 5.0 && both < cubic / 3.0, "{setting}: {both}, {dctcp}, {cubic}");
        for alone in ["cubic, the servers' enforcer", "cubic, the clients' enforcer"] {
            assert!(ours("two enforcers", &format!("{setting}/{alone}"), "marked") <= 0.0, "{setting}/{alone}");
        }
    }
    let window = |algorithm: &str, share: &str| ours("marks", &format!("{algorithm}/{share} %"), "window");
    for algorithm in ["newreno", "cubic", "dctcp"] {
        assert!(window(algorithm, "3") < window(algorithm, "0.3"), "{algorithm}");
    }
    assert!(window("dctcp", "3") > 3.0 * window("newreno", "3"), "2/p is above √(1.5/p)");
    let slowed = |share: &str, quantity: &str| ours("slowed by marks", &format!("cubic/{share} %"), quantity);
    assert!(slowed("10", "background") < slowed("0", "background") / 2.0);
    assert!(folder.path().join("out/report.html").exists());
    let again = run("again", 1);
    assert_eq!(done.tables, again.tables, "results do not depend on the number of jobs");
}

#[test]
fn keys_of_the_study_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    for (key, value) in [("network.rate", "1 Gbit/s"), ("tcp.cc", "bbr"), ("tcp.ecn", "off")] {
        let request = Request { sets: vec![format!("{key}={value}")], out: out.clone(), ..Request::new("ecn") };
        match reproduce(&request, Monitor::new(&unheard, &Stop::default())) {
            Err(Failure::Input(text)) => assert!(text.contains(&format!("sets `{key}` itself")), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}
