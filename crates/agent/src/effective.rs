//! The effect of settings: read from live connections, from records of ended ones, and from routes; never what was requested.

use crate::plan::ECN;
use crate::routes::Table;
use crate::telemetry::{Ended, Names};
use bus::{Effective, InForce};
use kernel::Connection;
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
    let row = |rule: &AgentRule| InForce {
        policy: rule.policy.clone(),
        rule: rule.rule.clone(),
        left: rule.deadline.saturating_sub(now),
        effective: effective(rule, seen, names.number(&rule.policy, &rule.rule)),
    };
    rules.iter().map(row).collect()
}

fn effective(rule: &AgentRule, seen: &Seen<'_>, number: u32) -> Vec<Effective> {
    let is_for = |connection: &&Connection| {
        let (remote, port) = (rule.sessions.remote, rule.sessions.port);
        remote.is_none_or(|remote| remote.contains(connection.remote))
            && port.is_none_or(|port| port == connection.local_port || port == connection.remote_port)
    };
    let open: Vec<&Connection> = seen.open.iter().filter(is_for).collect();
    let asked = asked(&rule.set);
    let row = |(setting, asked): (&str, String)| {
        let (found, connections) = match setting {
            "initial_cwnd" => windows(rule, seen, number),
            _ => (of_open(setting, &open), open.len()),
        };
        let until_close = ["initial_cwnd", "pacing", "max_pacing_rate", "ecn"].contains(&setting);
        Effective { setting: setting.to_string(), asked, found, connections, until_close }
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
        ("ecn", shown(set.ecn.as_ref())),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Of ended connections: their initial windows. Of routes: the window after an idle pause.
fn windows(rule: &AgentRule, seen: &Seen<'_>, number: u32) -> (Option<String>, usize) {
    let began = seen.ended.windows(number);
    let connections = began.map_or(0, |windows| windows.values().sum());
    let began = began.map(|windows| format!("began with {} segments", list(windows.keys())));
    let routes = seen.routes.initial_windows(rule.sessions.remote);
    let routes = (!routes.is_empty()).then(|| format!("{} by the route", list(&routes)));
    let found: Vec<String> = [began, routes].into_iter().flatten().collect();
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
