//! What a policy would change against another.

use crate::common::parse;
use policy::{Comparison, Decided, History, Host, Link, NetworkView, Policy, RuleChange, RulePlace, decide, place_of};
use units::Time;

/// Ten hosts: even ones store, odd ones compute, of which the last reports another kernel.
fn view() -> NetworkView {
    let host = |i: usize| Host {
        name: format!("h{i}"),
        labels: [("role".to_string(), if i.is_multiple_of(2) { "storage" } else { "compute" }.to_string())].into(),
        algorithms: if i == 9 {
            vec!["kernel:reno".into()]
        } else {
            vec!["kernel:reno".into(), "cubic".into(), "mine".into()]
        },
        ..Host::default()
    };
    let link = Link { name: "l".into(), utilization: Some(0.5), ..Link::default() };
    NetworkView {
        at: Time::from_secs(60),
        hosts: (0..10).map(host).collect(),
        links: vec![link],
        ..NetworkView::default()
    }
}

fn policy(mode: &str, rules: &str, rest: &str) -> Policy {
    let text =
        format!("name = \"p\"\nmode = \"{mode}\"\nperiod = \"60 s\"\nallow_mixed_measures = true\n{rules}\n{rest}");
    parse(&text).unwrap_or_else(|diagnostic| panic!("{diagnostic}"))
}

fn rule(name: &str, set: &str, more: &str) -> String {
    format!("[[rule]]\nname = \"{name}\"\nwhen = \"network.max_link_utilization < 0.7\"\nset = {{ {set} }}\n{more}\n")
}

fn compared(old: &Policy, new: &Policy) -> Comparison {
    let decisions = [old, new].map(|policy| decide(policy, &view(), &mut History::default()));
    let [before, after] = &decisions;
    Comparison::of(&view(), Decided { policy: old, decision: before }, Decided { policy: new, decision: after })
}

/// Hosts that get, lose and keep it.
fn counts(rule: &RuleChange) -> (usize, usize, usize) {
    (rule.get.count, rule.lose.count, rule.keep.count)
}

fn setting(rule: &RuleChange) -> Vec<(&str, Option<&str>, Option<&str>)> {
    rule.settings.iter().map(|one| (one.name.as_str(), one.from.as_deref(), one.to.as_deref())).collect()
}

#[test]
fn hosts_and_settings_that_change_are_counted_by_rule() {
    let storage = "match = { labels = { role = \"storage\" } }";
    let old =
        [rule("kept", "initial_cwnd = 20, rto_min = \"2 ms\"", storage), rule("gone", "pacing = true", "")].concat();
    let new =
        [rule("kept", "initial_cwnd = 30, ecn = true", ""), rule("new", "window_clamp = \"64 kB\"", storage)].concat();
    let change = compared(&policy("enforce", &old, ""), &policy("enforce", &new, ""));
    assert_eq!((change.hosts, change.rules.len(), change.is_empty()), (10, 3, false));
    let [kept, added, gone] = &change.rules[..] else { panic!() };
    assert_eq!((kept.name.as_str(), kept.place, counts(kept)), ("kept", RulePlace::Both, (5, 0, 5)));
    assert_eq!(kept.get.first, ["h1", "h3", "h5", "h7", "h9"]);
    assert_eq!(
        setting(kept),
        [("ecn", None, Some("true")), ("initial_cwnd", Some("20"), Some("30")), ("rto_min", Some("2 ms"), None)]
    );
    assert_eq!(kept.changed, ["match"]);
    assert_eq!((added.name.as_str(), added.place, counts(added)), ("new", RulePlace::Added, (5, 0, 0)));
    assert_eq!(setting(added), [("window_clamp", None, Some("64 kB"))]);
    assert_eq!((gone.name.as_str(), gone.place, counts(gone)), ("gone", RulePlace::Removed, (0, 10, 0)));
    let same = compared(&policy("enforce", &old, ""), &policy("enforce", &old, ""));
    assert!(same.is_empty(), "{same:?}");
    assert_eq!(counts(&same.rules[0]), (0, 0, 5));
    assert_eq!(serde_json::from_value::<Comparison>(serde_json::to_value(&change).unwrap()).unwrap(), change);
}

#[test]
fn a_policy_that_observes_sets_nothing() {
    let rules = rule("r", "initial_cwnd = 20", "");
    let change = compared(&policy("enforce", &rules, ""), &policy("observe", &rules, ""));
    assert_eq!(change.keys, [("mode".to_string(), "enforce".to_string(), "observe".to_string())]);
    assert_eq!((counts(&change.rules[0]), change.is_empty()), ((0, 10, 0), false));
}

#[test]
fn a_share_of_the_hosts_is_counted_as_cues_name_it() {
    let rules = rule("r", "initial_cwnd = 20", "");
    let change = compared(&policy("enforce", &rules, "[rollout]\nfraction = 0.3"), &policy("enforce", &rules, ""));
    assert_eq!(counts(&change.rules[0]), (7, 0, 3));
    let mut hosts: Vec<String> = view().hosts.into_iter().map(|host| host.name).collect();
    hosts.sort_by_key(|host| place_of("p", host));
    let mut first = hosts[..3].to_vec();
    first.sort();
    assert_eq!(change.rules[0].keep.first, first);
    assert_eq!(change.keys, [("treated now".to_string(), "3 of 10".to_string(), "10 of 10".to_string())]);
}

#[test]
fn hosts_that_lack_an_algorithm_are_named_also_where_the_rule_is_off_or_the_host_not_treated_yet() {
    let with = |when: &str, more: &str| {
        format!("[[rule]]\nname = \"r\"\nwhen = \"{when}\"\nset = {{ cc = \"cubic\" }}\n{more}\n")
    };
    let old = policy("enforce", &rule("r", "pacing = true", ""), "");
    for rest in ["", "[rollout]\nfraction = 0.1"] {
        for when in ["network.max_link_utilization < 0.7", "network.max_link_utilization > 0.7"] {
            let change = compared(&old, &policy("enforce", &with(when, ""), rest));
            let lacking: Vec<_> = change.lacking().collect();
            assert_eq!((lacking.len(), &lacking[0].lacking.first[..]), (1, &["h9".to_string()][..]), "{when} {rest}");
            assert_eq!(lacking[0].cc.as_deref(), Some("cubic"));
        }
    }
    for others in ["match = { labels = { role = \"storage\" } }", "match = { hosts = [\"h1\", \"h2*\"] }"] {
        let change = compared(&old, &policy("enforce", &with("true", others), ""));
        assert_eq!(change.lacking().count(), 0, "it is not for that host");
    }
}

#[test]
fn what_is_withheld_says_why() {
    let constraint = "[[constraint]]\nname = \"quiet\"\nholds = \"network.max_link_utilization < 0.4\"";
    let rules = rule("r", "initial_cwnd = 20", "");
    let change = compared(&policy("enforce", &rules, ""), &policy("enforce", &rules, constraint));
    assert_eq!(change.rules[0].withheld.as_deref(), Some("the constraint `quiet` does not hold"));
    assert_eq!(counts(&change.rules[0]), (0, 10, 0));
}
