//! The effect of settings: read from live connections, from records of ended ones, and from routes; never what was requested.

#[cfg(test)]
mod tests;

use crate::plan::ECN;
use crate::routes::Table;
use crate::telemetry::{Ended, Names};
use bus::{Effective, InForce};
use kernel::{Connection, KERNEL_PREFIX, NAME_PREFIX};
use policy::{AgentRule, Settings};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use units::Time;

/// The sources.
pub struct Seen<'a> {
    /// Open connections.
    pub open: &'a [Connection],
    /// Connections that have ended since the last report.
    pub ended: &'a Ended,
    /// The routes.
    pub routes: &'a Table,
}

/// The settings in force at `now`, with their effects.
pub fn in_force(rules: &[AgentRule], now: Time, seen: &Seen<'_>, names: &mut Names) -> Vec<InForce> {
    let row = |(place, rule): (usize, &AgentRule)| InForce {
        policy: rule.policy.clone(),
        rule: rule.rule.clone(),
        left: rule.deadline.saturating_sub(now),
        effective: effective((rule, &rules[..place]), seen, names.number(&rule.policy, &rule.rule)),
    };
    rules.iter().enumerate().map(row).collect()
}

/// Whether a rule is for a connection.
fn is_for(rule: &AgentRule, connection: &Connection) -> bool {
    let (remote, port) = (rule.sessions.remote, rule.sessions.port);
    remote.is_none_or(|remote| remote.contains(connection.remote))
        && port.is_none_or(|port| port == connection.local_port || port == connection.remote_port)
}

/// How many connections certainly do not have a setting of a rule: those that have it from an `earlier` rule are not its own, and of most
/// settings a connection does not show whether it has it.
fn differing(setting: &str, (rule, earlier): (&AgentRule, &[AgentRule]), open: &[&Connection]) -> usize {
    let lacks = |connection: &Connection| match setting {
        "cc" => rule.set.cc.as_ref().is_some_and(|asked| !is_named(&connection.algorithm, asked)),
        "rto_min" => rule.set.rto_min.is_some_and(|least| u64::from(connection.rto_us) < least.as_us()),
        "cwnd_clamp" => rule.set.cwnd_clamp.is_some_and(|most| connection.cwnd > most),
        "max_pacing_rate" => rule.set.max_pacing_rate.is_some() && connection.max_pacing_rate == u64::MAX,
        _ => false,
    };
    let is_anothers = |connection: &Connection| {
        let sets = |other: &&AgentRule| asked(&other.set).iter().any(|(name, _)| *name == setting);
        earlier.iter().filter(sets).any(|other| is_for(other, connection))
    };
    open.iter().filter(|connection| lacks(connection) && !is_anothers(connection)).count()
}

/// Whether the kernel's name is that of a policy's algorithm: the loaded one, or Linux's own where none is loaded.
fn is_named(in_kernel: &str, asked: &str) -> bool {
    let own = if asked == "newreno" { "reno" } else { asked.strip_prefix(KERNEL_PREFIX).unwrap_or(asked) };
    in_kernel == own || in_kernel.strip_prefix(NAME_PREFIX) == Some(asked)
}

fn effective(of: (&AgentRule, &[AgentRule]), seen: &Seen<'_>, number: u32) -> Vec<Effective> {
    let (rule, _) = of;
    let open: Vec<&Connection> = seen.open.iter().filter(|connection| is_for(rule, connection)).collect();
    let asked = asked(&rule.set);
    let row = |(setting, asked): (&str, String)| {
        let (found, connections) = match setting {
            "initial_cwnd" => windows(rule, seen, number),
            _ => (of_open(setting, &open), open.len()),
        };
        let until_close = ["initial_cwnd", "pacing", "max_pacing_rate", "ecn"].contains(&setting);
        let differing = differing(setting, of, &open);
        Effective { setting: setting.to_string(), asked, found, connections, differing, until_close }
    };
    asked.into_iter().map(row).collect()
}

/// Names and values of what is set, as in policies.
fn asked(set: &Settings) -> Vec<(&'static str, String)> {
    fn shown(value: Option<&impl Display>) -> Option<String> {
        value.map(ToString::to_string)
    }
    let all = [
        ("initial_cwnd", shown(set.initial_cwnd.as_ref())),
        ("rto_min", shown(set.rto_min.as_ref())),
        ("cc", shown(set.cc.as_ref())),
        ("pacing", shown(set.pacing.as_ref())),
        ("cwnd_clamp", shown(set.cwnd_clamp.as_ref())),
        ("max_pacing_rate", shown(set.max_pacing_rate.as_ref())),
        ("delayed_ack_max", shown(set.delayed_ack_max.as_ref())),
        ("window_clamp", shown(set.window_clamp.as_ref())),
        ("window_total", shown(set.window_total.as_ref())),
        ("ecn", shown(set.ecn.as_ref())),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Of ended connections: their initial windows. Of routes: the window after an idle pause.
fn windows(rule: &AgentRule, seen: &Seen<'_>, number: u32) -> (Option<String>, usize) {
    let began = seen.ended.windows(number);
    let connections = began.map_or(0, |windows| windows.values().sum());
    let began = began.map(|windows| format!("began with {} segments", list(windows.keys())));
    let (routes, total) = seen.routes.initial_windows(rule.sessions.remote);
    let routes = routes.iter().map(|(window, count)| format!("{window} by the route ({count} of {total} routes)"));
    let found: Vec<String> = began.into_iter().chain(routes).collect();
    ((!found.is_empty()).then(|| found.join(", ")), connections)
}

fn of_open(setting: &str, open: &[&Connection]) -> Option<String> {
    let first = open.first()?;
    let least = |of: fn(&Connection) -> u32| open.iter().map(|connection| of(connection)).min().unwrap_or_default();
    let most = |of: fn(&Connection) -> u32| open.iter().map(|connection| of(connection)).max().unwrap_or_default();
    let limited = open.iter().filter(|connection| connection.max_pacing_rate != u64::MAX).count();
    Some(match setting {
        "rto_min" => format!("RTOs from {}", Time::from_us(u64::from(least(|open| open.rto_us)))),
        "cc" => {
            let mut names: BTreeMap<&str, usize> = BTreeMap::new();
            for connection in open {
                *names.entry(&connection.algorithm).or_default() += 1;
            }
            let names = names.into_iter().map(|(name, count)| format!("{name} on {count}"));
            names.collect::<Vec<_>>().join(", ")
        }
        "pacing" | "max_pacing_rate" => {
            let rates: BTreeSet<u64> = open.iter().map(|connection| connection.max_pacing_rate).collect();
            let least = rates.first().copied().unwrap_or(first.max_pacing_rate);
            let rate = units::Rate::from_bps(least.saturating_mul(8));
            if limited == 0 { "no limit, none paces by it".to_string() } else { format!("{limited} pace, from {rate}") }
        }
        "cwnd_clamp" => format!("windows up to {} segments", most(|open| open.cwnd)),
        "delayed_ack_max" => {
            format!("ACKs wait for up to {}", Time::from_us(u64::from(most(|open| open.ato_us))))
        }
        "window_clamp" => format!("up to {} bytes advertised", most(|open| open.rcv_ssthresh)),
        "window_total" => {
            let sum: u64 = open.iter().map(|open| u64::from(open.rcv_ssthresh)).sum();
            format!("{sum} bytes advertised at most, by all together")
        }
        "ecn" => {
            let agreed = open.iter().filter(|connection| connection.ecn).count();
            let sysctl = std::fs::read_to_string(format!("/proc/sys/{}", ECN.replace('.', "/"))).unwrap_or_default();
            format!("{agreed} agreed on it; {ECN} is {}", sysctl.trim())
        }
        _ => return None,
    })
}

fn list(values: impl IntoIterator<Item = impl Display>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(" or ")
}
