//! Findings from constructed numbers whose answer is known.

use super::*;

const VARIANTS: [&str; 8] = ["newreno", "vegas", "highspeed", "scalable", "westwood", "bic", "cubic", "yeah"];

/// The paper's own Table 4, with drops in the order of its Figure 2.
fn as_the_paper() -> Cases {
    let drops = [500.0, 0.0, 450.0, 800.0, 400.0, 460.0, 700.0, 50.0];
    let mut cases = Cases::default();
    for (variant, drops) in VARIANTS.into_iter().zip(drops) {
        let line = paper::line(variant).unwrap();
        let run = Measured {
            drops,
            throughput_percent: Some(line.throughput_percent),
            delay_ms: Some(line.delay_ms),
            queue_low_percent: Some(if variant == "vegas" { 90.0 } else { 10.0 }),
            ..Measured::default()
        };
        cases.add("single-path", variant, run);
    }
    cases
}

fn change(cases: &mut Cases, variant: &str, change: impl Fn(&mut Measured)) {
    let case = cases.list.iter_mut().find(|case| case.variant == variant).unwrap();
    case.runs.iter_mut().for_each(change);
}

#[test]
fn the_papers_own_numbers_agree_with_it_in_every_sentence() {
    let text = findings(&as_the_paper()).join("\n");
    assert!(
        text.contains("throughput is 5.23 to 5.74 % here, 5.23 to 5.74 % in the paper: the two ranges overlap"),
        "{text}"
    );
    assert!(text.contains("Vegas: as the paper says, it has the lowest delay (3.36 ms, the paper 3.36 ms; the next 13.0 ms); drops nothing (0 packets)"), "{text}");
    assert!(text.contains("43 % above NewReno's here, 43 % above it in the paper: reproduced."), "{text}");
    assert!(text.contains("Drops, fewest first: Vegas 0, YeAH 50, Westwood+ 400"), "{text}");
    assert!(text.contains("delay 1.00, throughput 1.00"), "{text}");
    assert!(!text.contains("do not hold"), "{text}");
}

#[test]
fn what_differs_is_said() {
    let mut cases = as_the_paper();
    change(&mut cases, "vegas", |run| {
        run.drops = 3.0;
        run.throughput_percent = Some(5.7);
    });
    change(&mut cases, "yeah", |run| run.drops = 600.0);
    let text = findings(&cases).join("\n");
    assert!(text.contains("The paper also says that it drops nothing (3 packets); this does not hold here"), "{text}");
    assert!(text.contains("2 % above NewReno's here, 43 % above it in the paper: not reproduced."), "{text}");
    assert!(text.contains("Claims of Figure 2 that do not hold here: YeAH drops the fewest after Vegas."), "{text}");
}

#[test]
fn a_level_apart_is_given_as_a_factor() {
    let mut cases = as_the_paper();
    for variant in VARIANTS {
        change(&mut cases, variant, |run| run.delay_ms = run.delay_ms.map(|delay| delay / 2.0));
    }
    let text = findings(&cases).join("\n");
    assert!(text.contains("ours is lower by a factor of 2."), "{text}");
}

#[test]
fn rank_correlation_by_hand() {
    // ranks 0 1 2 against 0 2 1: deviations −1 0 1 and −1 1 0, product 1, squares 2 and 2: 1/2
    assert_eq!(spearman(&[(1.0, 10.0), (2.0, 30.0), (3.0, 20.0)]), Some(0.5));
    assert_eq!(spearman(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), Some(-1.0));
    assert_eq!(spearman(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None, "equal values have no order");
}

#[test]
fn few_variants_give_few_sentences() {
    let mut cases = Cases::default();
    cases.add("ecmp", "bbr", Measured::default());
    assert!(findings(&cases).is_empty());
}
