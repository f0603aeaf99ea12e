//! Texts of policies.

/// A policy of one rule, `always`, which sets these settings on all hosts whatever the network does, and decides every `period`.
pub fn policy_for_all(period: &str, set: &str) -> String {
    format!(
        r#"
mode = "enforce"
period = "{period}"
allow_mixed_measures = true
[[rule]]
name = "always"
when = "network.live_flows >= 0"
match = {{ hosts = "all" }}
set = {{ {set} }}
"#
    )
}
