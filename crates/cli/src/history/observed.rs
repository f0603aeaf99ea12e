//! The report as text.

use audit::Zone;
use oracle::log::{Observed, ObservedRule};
use std::fmt::Write as _;

/// How long it was, in the two largest units.
pub fn lasting(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    let parts = [(whole / 86_400, "d"), (whole / 3600 % 24, "h"), (whole / 60 % 60, "min"), (whole % 60, "s")];
    let Some(first) = parts.iter().position(|(n, _)| *n > 0) else { return format!("{seconds:.1} s") };
    let two = parts[first..].iter().take(2).filter(|(n, _)| *n > 0);
    two.map(|(n, unit)| format!("{n} {unit}")).collect::<Vec<_>>().join(" ")
}

/// What the report is about, in a sentence.
pub fn lead(observed: &Observed, zone: &Zone) -> String {
    let at = |text: &Option<String>| {
        text.as_ref().and_then(|text| text.parse().ok()).map_or_else(String::new, |at| zone.show(at))
    };
    if observed.since.is_none() {
        return "No decision in that time; --since goes further back.".to_string();
    }
    let both = [(observed.observing, "observed: nothing was sent"), (observed.enforcing, "enforced")];
    let parts: Vec<String> = both.iter().filter(|(n, _)| *n > 0).map(|(n, how)| format!("{n} {how}")).collect();
    format!(
        "Decisions from {} to {} ({}): {}.",
        at(&observed.since),
        at(&observed.until),
        zone.name(),
        parts.join(", ")
    )
}

/// The facts of a rule: a heading and what follows it.
pub fn facts(rule: &ObservedRule) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let share = |n: u64| format!("{n} of {} decisions", rule.decisions);
    let on = format!(
        "{} ({:.0} %), switched on {} times, {} in total, at most {} without a break",
        share(rule.on),
        100.0 * rule.on as f64 / rule.decisions.max(1) as f64,
        rule.switched_on,
        lasting(rule.on_s),
        lasting(rule.longest_s)
    );
    facts.push(("on", if rule.on == 0 { "never".to_string() } else { on }));
    if rule.on > 0 {
        let (least, most) = (rule.hosts_least, rule.hosts_most);
        let hosts = if least == most {
            format!("{least}")
        } else {
            format!("{least} to {most}, {:.1} on average", rule.hosts_mean)
        };
        facts.push(("hosts", format!("{hosts}, of {} that it is for", rule.hosts_matched)));
    } else {
        facts.push(("hosts", format!("none of {} that it is for", rule.hosts_matched)));
    }
    facts.extend(rule.on_values.iter().map(|values| ("values, on", values.clone())));
    facts.extend(rule.off_values.iter().map(|values| ("values, off", values.clone())));
    facts.extend(rule.withheld.iter().map(|one| ("withheld", format!("{}: {}", share(one.decisions), one.why))));
    let names = if rule.lacking.is_empty() { String::new() } else { format!(": {}", rule.lacking.join(", ")) };
    let others = [
        ("unknown", rule.unknown, "a value that the condition needs was not known for some host".to_string()),
        ("held", rule.held, "the hold time kept it on or off for some host".to_string()),
        ("flapping", rule.flap_limited, "it would have changed too often on some host".to_string()),
        ("without ECN", rule.no_ecn, "hosts were left out because a hop does not mark".to_string()),
        ("lacking", rule.no_algorithm, format!("hosts were left out because they lack the algorithm{names}")),
    ];
    facts.extend(
        others.into_iter().filter(|(_, n, _)| *n > 0).map(|(what, n, why)| (what, format!("{}: {why}", share(n)))),
    );
    facts
}

/// The heading of a rule.
pub fn heading(rule: &ObservedRule) -> String {
    let would = if rule.mode == "observe" { "would have set" } else { "set" };
    format!("{}/{}: {would} {}", rule.policy, rule.rule, rule.set)
}

/// The whole report.
pub fn text(observed: &Observed, zone: &Zone) -> String {
    let mut text = format!("{}\n", lead(observed, zone));
    for rule in &observed.rules {
        writeln!(text, "\n{}", super::plain(&heading(rule))).expect("writing to a string");
        for (what, words) in facts(rule) {
            writeln!(text, "  {what:<12} {}", super::plain(&words)).expect("writing to a string");
        }
    }
    if observed.left_out > 0 {
        writeln!(text, "\nnot shown: rules beyond 1024").expect("writing to a string");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::lasting;

    #[test]
    fn durations_have_their_two_largest_units() {
        assert_eq!(lasting(0.4), "0.4 s");
        assert_eq!(lasting(59.6), "1 min");
        assert_eq!(lasting(3725.0), "1 h 2 min");
        assert_eq!(lasting(86_400.0 * 3.0 + 61.0), "3 d");
    }
}
