//! Watching a run changes nothing, and a text alone is checked as a file is.

use scope::{LINK_FIELDS, Scope, check};
use std::fs;
use units::Time;

/// A scenario of `scenarios/`, shortened, and its first run.
fn scenario(name: &str, cc: &str, duration: &str) -> scenario::Run {
    let text = fs::read_to_string(format!("../../scenarios/{name}.toml")).expect("an example");
    let text: Vec<String> = text.lines().map(|line| replaced(line, cc, duration)).collect();
    check(&format!("{name}.toml"), &text.join("\n")).expect("an example is good").remove(0)
}

fn replaced(line: &str, cc: &str, duration: &str) -> String {
    match line.split_once('=') {
        Some((key, _)) if key.trim() == "duration" => format!("duration = \"{duration}\""),
        Some((key, _)) if key.trim() == "cc" => format!("cc = \"{cc}\""),
        _ => line.to_string(),
    }
}

#[test]
fn a_run_that_is_watched_gives_the_bytes_of_one_that_is_not() {
    for name in plan::algorithm_names() {
        let run = scenario("dumbbell", name, "7 s");
        let measured = sim::simulate(&run.scenario, &mut ()).expect("it runs");
        let alone = plan::titled(measured, &run.name, &plan::parameters(&run), &run.scenario);
        let mut scope = Scope::of(run).expect("it runs");
        // odd steps, by time and by work
        let mut steps = 0;
        while !scope.is_done() {
            scope.advance(scope.now() + Time::from_us(33_333), 1_777);
            scope.frame();
            steps += 1;
        }
        assert!(steps > 100);
        assert_eq!(scope.finish().summary, results::RunSummary::of(&alone).to_json(), "{name}");
    }
}

#[test]
fn frames_show_the_bottlenecks_queue_and_the_windows() {
    let mut scope = Scope::of(scenario("dumbbell", "cubic", "12 s")).expect("it runs");
    let stage = scope.stage();
    assert_eq!((stage.size.as_str(), stage.watched.len()), ("4 hosts, 2 switches, 5 cables", 1));
    let map = stage.map.expect("small enough");
    assert_eq!((map.spots.len(), map.cables.len()), (6, 5));
    let bottleneck = u64::from(stage.watched[0]);
    let link = &stage.links[bottleneck as usize];
    assert_eq!((link.name.as_str(), link.limit), ("s1->s2", Some(50)));
    let (mut longest, mut dropped, mut named, mut both) = (0, 0, 0, false);
    while !scope.is_done() {
        scope.advance(scope.now() + Time::from_ms(10), u64::MAX);
        let frame = scope.frame();
        let own = frame.links.chunks(LINK_FIELDS).find(|link| link[0] == bottleneck);
        if let Some(&[_, packets, bytes, busy, drops]) = own {
            assert!(packets <= 50 && bytes <= 50 * 1538 && busy <= 1000);
            longest = longest.max(packets);
            dropped += drops;
        }
        assert!(frame.flows.iter().all(|flow| flow.cwnd > 0));
        named += frame.new.len();
        both |= frame.flows.len() == 2;
        assert!(frame.drops >= dropped);
    }
    assert!(longest == 50 && dropped > 0 && both, "{longest} packets, {dropped} drops");
    assert_eq!(named, 2, "each flow is named once");
    let outcome = scope.finish();
    assert_eq!(outcome.flows.len(), 2);
    let sum: f64 = outcome.flows.iter().map(|flow| flow.goodput_bps).sum();
    assert!((9e6..17e6).contains(&sum), "{sum}: the first flow is alone for five seconds of twelve");
    assert!(outcome.report.starts_with("<!DOCTYPE html>"));
}

#[test]
fn mistakes_have_their_place_and_files_are_refused() {
    let text = fs::read_to_string("../../scenarios/dumbbell.toml").expect("an example");
    let mistakes = check("dumbbell.toml", &text.replace("\"cubic\"", "\"cubik\"")).expect_err("no such algorithm");
    let line = 1 + text.lines().position(|line| line.contains("\"cubic\"")).expect("it is there");
    assert_eq!((mistakes.len(), mistakes[0].line), (1, line));
    assert!(mistakes[0].help.as_deref().is_some_and(|help| help.contains("cubic")), "{mistakes:?}");
    let mistakes = check("dumbbell.toml", &text.replace("\"cubic\"", "\"mine.c\"")).expect_err("no files");
    assert!(mistakes[0].message.contains("there are no files here"), "{mistakes:?}");
}

#[test]
fn a_link_that_fails_is_down() {
    let text = fs::read_to_string("../../scenarios/link-failure.toml").expect("an example");
    let shorter = [("2 s", "2 ms"), ("4 s", "4 ms"), ("6 s", "6 ms"), ("10 ms", "1 ms")];
    let text =
        shorter.iter().fold(text, |text, (long, short)| text.replace(&format!("\"{long}\""), &format!("\"{short}\"")));
    let mut scope = Scope::of(check("link-failure.toml", &text).expect("good").remove(0)).expect("it runs");
    let names = |scope: &Scope, down: &[u32]| {
        let stage = scope.stage();
        down.iter().map(|link| stage.links[*link as usize].name.clone()).collect::<Vec<_>>()
    };
    for (ms, expected) in [(1, vec![]), (3, vec!["a1->c1", "c1->a1"]), (5, vec![])] {
        scope.advance(Time::from_ms(ms), u64::MAX);
        let down = scope.frame().down;
        let mut down = names(&scope, &down);
        down.sort();
        assert_eq!(down, expected, "at {ms} ms");
    }
}
