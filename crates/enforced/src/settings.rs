//! The CUEs in force for a host, as the enforcer applies them: the classes of flows that they distinguish, and each class's settings.

#[cfg(test)]
mod tests;

use crate::rule::built_in;
use bus::Effective;
use enforcer::{Rule, Treatment};
use policy::{AgentRule, Prefix, Settings};
use std::cmp::Reverse;
use std::sync::Arc;
use tcp::{Config, PacingMode};

/// How servers without a rule send to a host with a total.
const BOUNDED_CC: &str = "cubic";

/// The TCP configuration by which the enforcer sends.
pub fn config(set: &Settings) -> Result<Config, String> {
    let name = set.cc.as_deref().ok_or("the enforcer needs `cc`: it cannot run the host's own algorithm")?;
    // built-in ones only: a CUE must not run a file
    let mut config = Config::linux(built_in(name)?);
    config.initial_cwnd = set.initial_cwnd.unwrap_or(config.initial_cwnd);
    config.rto_min = set.rto_min.unwrap_or(config.rto_min);
    config.cwnd_clamp = set.cwnd_clamp.unwrap_or(config.cwnd_clamp);
    config.max_pacing_rate = set.max_pacing_rate.map_or(config.max_pacing_rate, |rate| rate.as_bps() / 8);
    if let Some(pacing) = set.pacing {
        config.pacing = if pacing { PacingMode::On } else { PacingMode::Auto };
    }
    Ok(config)
}

/// The rule for what servers of a `place` send to a host with such a total of windows. Of servers that have no algorithm of their own the
/// enforcer takes Linux's default.
pub fn bounded(set: &Settings, host: Prefix, (servers, port): Place) -> Option<Rule> {
    let window_total = Some(set.window_total?);
    let cubic = Arc::new(Config::linux(built_in(BOUNDED_CC).expect("it is built in")));
    Some(Rule { servers, clients: Some(host), port, dscp: None, treatment: Treatment::Enforce(cubic), window_total })
}

/// Whether they say nothing of what a host sends.
pub fn is_total_alone(set: &Settings) -> bool {
    set.window_total.is_some() && Settings { window_total: None, ..set.clone() }.is_empty()
}

/// Whether a rule matches all flows with such clients and this port.
pub fn covers(rule: &AgentRule, clients: Option<Prefix>, port: Option<u16>) -> bool {
    let sessions = &rule.sessions;
    sessions.cgroup.is_none()
        && sessions.remote.is_none_or(|remote| clients.is_some_and(|clients| remote.covers(clients)))
        && (sessions.port.is_none() || sessions.port == port)
}

/// The settings of such flows: each from the first matching rule that has it.
pub fn settings(rules: &[AgentRule], clients: Option<Prefix>, port: Option<u16>) -> Settings {
    let fitting = rules.iter().filter(|rule| covers(rule, clients, port));
    fitting.fold(Settings::default(), |settings, rule| settings.or(&rule.set))
}

/// The clients and the port of a class of flows; `None`: any.
pub type Place = (Option<Prefix>, Option<u16>);

/// The classes that rules distinguish, narrower ones first. A rule matches either all or none of the flows for which a class is the
/// first that matches.
pub fn places(rules: &[AgentRule]) -> Vec<Place> {
    let of_network = || rules.iter().map(|rule| &rule.sessions).filter(|sessions| sessions.cgroup.is_none());
    let mut clients: Vec<Option<Prefix>> = of_network().map(|sessions| sessions.remote).collect();
    clients.sort_by_key(|clients| Reverse(clients.map(|prefix| (prefix.bits(), prefix.address()))));
    clients.dedup();
    let mut ports: Vec<Option<u16>> = of_network().map(|sessions| sessions.port).collect();
    ports.sort_by_key(|port| Reverse(*port));
    ports.dedup();
    let all = clients.iter().flat_map(|clients| ports.iter().map(|port| (*clients, *port)));
    all.filter(|(clients, port)| rules.iter().any(|rule| covers(rule, *clients, *port))).collect()
}

/// The effective value of each setting of a rule, where its flows have the settings `all`: those that its host sends, and those that it
/// receives.
pub fn effective(rule: &AgentRule, all: &Settings, (sends, receives): (usize, usize)) -> Vec<Effective> {
    let is_seen = rule.sessions.cgroup.is_none();
    let is_enforced = is_seen && config(all).is_ok();
    let mut found = Vec::new();
    for (own, holds) in values(&rule.set).into_iter().zip(values(all)) {
        let (can, flows) = if own.name == TOTAL { (is_seen, receives) } else { (own.can && is_enforced, sends) };
        let done = can && own.asked == holds.asked;
        found.extend(own.asked.map(|asked| Effective {
            setting: own.name.to_string(),
            asked,
            found: done.then(|| "in the network".to_string()),
            connections: if done { flows } else { 0 },
            differing: if done { 0 } else { flows },
            until_close: false,
        }));
    }
    found
}

/// The setting that applies to what a host receives.
const TOTAL: &str = "window_total";

/// A setting as asked for.
struct Value {
    name: &'static str,
    asked: Option<String>,
    /// The enforcer supports it.
    can: bool,
}

/// All settings.
fn values(set: &Settings) -> [Value; 10] {
    let value = |name, asked, can| Value { name, asked, can };
    [
        value("cc", set.cc.clone(), true),
        value("initial_cwnd", set.initial_cwnd.map(|n| n.to_string()), true),
        value("rto_min", set.rto_min.map(|time| time.to_string()), true),
        value("cwnd_clamp", set.cwnd_clamp.map(|n| n.to_string()), true),
        value("max_pacing_rate", set.max_pacing_rate.map(|rate| rate.to_string()), true),
        value("pacing", set.pacing.map(|on| on.to_string()), true),
        value("delayed_ack_max", set.delayed_ack_max.map(|time| time.to_string()), false),
        value("window_clamp", set.window_clamp.map(|bytes| bytes.to_string()), false),
        value(TOTAL, set.window_total.map(|bytes| bytes.to_string()), true),
        value("ecn", set.ecn.map(|on| on.to_string()), false),
    ]
}
