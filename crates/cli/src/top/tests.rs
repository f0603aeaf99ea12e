//! Frames of several sizes.

use super::*;
use crate::top::frame;
use oracle::{DecisionLine, RuleLine, VerdictLine};

#[allow(clippy::too_many_lines, reason = "a table of what is shown")]
fn overview() -> Overview {
    let quantity = |name: &str, judgement: &str, change: f64| QuantityLine {
        name: name.into(),
        judgement: judgement.into(),
        pairs: 12,
        change: Some(change),
        interval: Some((change - 0.1, change + 0.1)),
    };
    let host = |n: usize| HostLine {
        name: format!("h{n}.example"),
        rack: format!("r{}", n % 4),
        treated: n.is_multiple_of(2),
        cc: "cubic".into(),
        flows: Some(n as f64),
        retransmits: (!n.is_multiple_of(3)).then_some(0.001 * n as f64),
        send_bps: Some(1_234_000_000),
        rules: 1,
        epoch: Some(7),
        guard_trips: u64::from(n == 3),
        differing: usize::from(n == 5),
        notes: 0,
        heard_s: 0.4,
        ..HostLine::default()
    };
    let link = |n: usize| LinkLine {
        name: format!("leaf{n} port3 out"),
        utilization: (n < 7).then_some(0.98 - 0.15 * n as f64),
        drop_rate: Some(if n == 0 { 0.01 } else { 0.0 }),
        ..LinkLine::default()
    };
    let rules = [("dctcp", 6, None), ("slow", 0, Some("the constraint `core` does not hold")), ("off", 0, None)];
    Overview {
        policy: "opentcp2".into(),
        mode: "enforce".into(),
        leads: true,
        period_s: 60.0,
        epoch: (1 << 40) + 77,
        decided_unix_s: 1_772_323_199.0,
        age_s: Some(12.0),
        agents: 12,
        hosts: 12,
        treated: 6,
        guard_trips: 1,
        differing: 1,
        rules: rules
            .iter()
            .map(|(name, on, withheld)| RuleLine {
                name: (*name).into(),
                matched: 12,
                on: *on,
                withheld: withheld.map(Into::into),
                why: "network.max_link_utilization = 0.98".into(),
                ..RuleLine::default()
            })
            .collect(),
        verdict: VerdictLine {
            judgement: "helping".into(),
            reason: "p99 FCT -32.0 % (-42.0 % to -22.0 %) over 12 pairs".into(),
            quantities: vec![
                quantity("p50 FCT", "unclear", 0.01),
                quantity("p90 FCT", "helping", -0.2),
                quantity("p99 FCT", "helping", -0.32),
                quantity("drops", "hurting", 0.5),
            ],
            ..VerdictLine::default()
        },
        links: (0..9).map(link).collect(),
        links_total: 90,
        host_lines: (0..12).map(host).collect(),
        hosts_matched: 12,
        decisions: (0..8)
            .map(|n| DecisionLine {
                unix_s: 1_772_323_199.0 - 60.0 * f64::from(n),
                cues: 2,
                words: "dctcp on for 6; slow withheld: the constraint `core` does not hold".into(),
                ..DecisionLine::default()
            })
            .collect(),
        ..Overview::default()
    }
}

fn screen() -> Screen {
    Screen { overview: Some(overview()), ..Screen::default() }
}

#[test]
fn a_frame_of_80_by_24_shows_everything() {
    let text = frame(&screen(), (80, 24));
    println!("{text}");
    let expected = [
        "opentcp2  enforcing  epoch 1.77  T = 60 s  decided 12 s ago",
        "hosts 12 (12 on bus)  treated 6  control 6  guard trips 1  differ 1  outliers 0",
        "verdict: helping: p99 FCT -32.0 %",
        "p99 FCT   -32.0% -42.0% to -22.0%",
        "dctcp          on 6/12",
        "withheld",
        "leaf0 port3 out",
        " 98%!",
        "23:59:59 2 CUEs; dctcp on for 6",
        "HOST",
        "h0.example",
        "treated",
        "1.2 Gb/s",
        "q quit  s sort  / filter  p pause  ? help",
    ];
    for part in expected {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert_eq!(text.lines().count(), 24);
    assert!(text.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn a_wide_frame_has_more_columns() {
    let text = frame(&screen(), (160, 50));
    assert!(text.contains("RACK") && text.contains("HEARD") && text.contains("h11.example"), "{text}");
}

#[test]
fn any_size_and_any_state_can_be_drawn() {
    let hostile = {
        let mut overview = overview();
        overview.policy = "x".repeat(300);
        overview.verdict.reason = "a\u{1b}[31m\n".repeat(50);
        overview.links[0].utilization = Some(f64::INFINITY);
        overview.links[1].utilization = Some(-3.0);
        overview.host_lines[0].name = "ä".repeat(200);
        overview.decisions[0].unix_s = -1e300;
        overview.age_s = Some(1e300);
        overview
    };
    for overview in [None, Some(Overview::default()), Some(overview()), Some(hostile)] {
        let mut screen = Screen { overview, ..Screen::default() };
        for (columns, lines) in [(1, 1), (3, 2), (20, 5), (40, 12), (80, 24), (79, 17), (250, 80)] {
            for (help, typing, coloured) in [(false, false, true), (true, false, false), (false, true, true)] {
                (screen.help, screen.typing, screen.coloured) = (help, typing, coloured);
                let text = frame(&screen, (columns, lines));
                assert_eq!(text.lines().count(), usize::from(lines));
                assert!(!text.contains('\u{1b}'), "nothing from outside reaches the terminal as a command");
            }
        }
    }
    let lost = Screen { trouble: Some("the other end of the bus has closed".into()), ..screen() };
    assert!(frame(&lost, (80, 24)).contains("the other end of the bus has closed"));
}

#[test]
fn numbers_are_short() {
    assert_eq!([bars(0.0, 4), bars(0.5, 4), bars(1.0, 4), bars(0.28, 4)], ["    ", "██  ", "████", "█▏  "]);
    assert_eq!([seconds(0.4), seconds(60.0), seconds(600.0), seconds(86_400.0)], ["0.4 s", "60 s", "10 min", "24 h"]);
    assert_eq!([rate(999), rate(1_500), rate(12_300_000_000)], ["999 b/s", "1.5 kb/s", "12.3 Gb/s"]);
    assert_eq!([percent(-0.32), percent(0.5)], ["-32.0%", "+50.0%"]);
}
