//! From CUEs to kernel settings: a table of rules for the BPF program, metrics for routes, sysctls; and, as text, what
//! of it this host cannot do.

#[cfg(test)]
mod tests;

use crate::config::Means;
use crate::telemetry::Names;
use bus::Clock;
use kernel::retune::{RULES_MAX, Rule, Sessions, Tuning};
use kernel::{KERNEL_PREFIX, NAME_PREFIX, name_in_kernel};
use policy::{AgentRule, Prefix, Settings, provided};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;
use units::Time;

/// The sysctl of ECN, and its values.
pub const ECN: &str = "net.ipv4.tcp_ecn";
const ECN_ON: &str = "1";
const ECN_OFF: &str = "0";
/// "Pacing" is a limit that no connection reaches: the largest that Linux takes for one, 34 Gbit/s.
const NO_LIMIT: u64 = u32::MAX as u64 - 1;

/// What a plan must know of the host.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// How TCP is changed.
    pub means: Means,
    /// The algorithms that a socket can choose now, by their names in policies.
    pub algorithms: &'a [String],
    /// Names of the algorithms of `cc/` that need ECN.
    pub needs_ecn: &'a BTreeSet<String>,
    /// The kernel's clock tick.
    pub tick: Time,
    /// Now, on the clock of the rules' deadlines.
    pub clock: Clock,
    /// The agent's cgroup, as policies write it: `/`, `/machine/web`.
    pub cgroup: String,
}

/// What is to be set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// For the BPF program, in order.
    pub rules: Vec<Rule>,
    /// For routes, in order.
    pub wishes: Vec<Wish>,
    /// Names and values.
    pub sysctls: BTreeMap<String, String>,
    /// What is not done, and why.
    pub notes: Vec<String>,
}

/// Metrics for routes to a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// `None`: all of them.
    pub remote: Option<Prefix>,
    /// The metrics.
    pub metrics: Metrics,
}

/// Metrics of a route (RTAX_* in linux/rtnetlink.h); an absent one stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Initial window, segments.
    pub initial_cwnd: Option<u32>,
    /// Minimum RTO, milliseconds.
    pub rto_min_ms: Option<u32>,
    /// Connections request ECN.
    pub ecn: bool,
    /// Congestion control, the kernel's name.
    pub cc: Option<String>,
    /// Largest receive window, bytes.
    pub window: Option<u32>,
}

impl Metrics {
    /// These, and those of `other` that are absent here.
    #[must_use]
    pub fn or(self, other: &Metrics) -> Metrics {
        Metrics {
            initial_cwnd: self.initial_cwnd.or(other.initial_cwnd),
            rto_min_ms: self.rto_min_ms.or(other.rto_min_ms),
            ecn: self.ecn || other.ecn,
            cc: self.cc.or_else(|| other.cc.clone()),
            window: self.window.or(other.window),
        }
    }
}

impl Plan {
    /// From rules in order of precedence.
    pub fn of(rules: &[AgentRule], host: &Surroundings<'_>, names: &mut Names) -> Plan {
        let mut plan = Plan::default();
        for rule in rules {
            let note = |what: String| format!("{}/{}: {what}", rule.policy, rule.rule);
            if let Some(cgroup) = rule.sessions.cgroup.as_ref().filter(|cgroup| !holds(cgroup, &host.cgroup)) {
                let own = &host.cgroup;
                plan.notes.push(note(format!("not set: it is for cgroup {cgroup}, but this agent sets all of {own}")));
                continue;
            }
            let mut set = rule.set.clone();
            let named = set.cc.take();
            let cc = named.as_ref().and_then(|name| provided(name, host.algorithms)).map(name_in_kernel);
            if let (Some(name), None) = (&named, &cc) {
                plan.notes.push(note(lacking(name)));
            }
            let of_file = |name: &String| host.needs_ecn.contains(name.strip_prefix(KERNEL_PREFIX).unwrap_or(name));
            let needs_ecn = named.as_ref().is_some_and(of_file);
            if host.means.bpf() {
                let number = names.number(&rule.policy, &rule.rule);
                let deadline = host.clock.boot_time(rule.deadline);
                plan.bpf(rule, deadline, number, tuning(&set, cc.clone(), needs_ecn, host.tick));
            }
            if host.means.routes() {
                let metrics = metrics(&set, cc.filter(|_| !host.means.bpf()), host.means);
                plan.routes(rule, metrics, host.means, note);
            }
            if set.window_total.is_some() && !host.means.bpf() {
                plan.notes.push(note("window_total is not set: it needs BPF".into()));
            }
            if set.ecn.is_some() && !host.means.routes() {
                plan.notes
                    .push(note("ecn is not set: it needs routes or a sysctl, which this agent does not touch".into()));
            }
        }
        if plan.rules.len() > RULES_MAX {
            plan.notes.push(format!("{} rules, of which the first {RULES_MAX} are set", plan.rules.len()));
            plan.rules.truncate(RULES_MAX);
        }
        plan
    }

    fn bpf(&mut self, rule: &AgentRule, deadline: Duration, number: u32, tuning: Tuning) {
        if tuning == Tuning::default() {
            return;
        }
        let remote = rule
            .sessions
            .remote
            .map_or((IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0), |prefix| (prefix.address(), prefix.bits()));
        let sessions = Sessions { netns: None, remote, port: rule.sessions.port };
        self.rules.push(Rule { number, sessions, tuning, deadline });
    }

    fn routes(&mut self, rule: &AgentRule, metrics: Metrics, means: Means, note: impl Fn(String) -> String) {
        let (remote, port, ecn) = (rule.sessions.remote, rule.sessions.port, rule.set.ecn);
        if let Some(port) = port {
            if !means.bpf() {
                self.notes
                    .push(note(format!("not set: it is for port {port}, and routes have no ports; it needs BPF")));
            } else if ecn.is_some() {
                self.notes.push(note(format!("ecn is not set: it is for port {port}, and routes have no ports")));
            }
            return;
        }
        if !means.bpf() {
            let set = &rule.set;
            let names = [
                ("pacing", set.pacing.is_some()),
                ("max_pacing_rate", set.max_pacing_rate.is_some()),
                ("delayed_ack_max", set.delayed_ack_max.is_some()),
                // a route's clamp outlives it: the kernel keeps it for an hour with what it knows of each destination (tcp_metrics)
                ("cwnd_clamp", set.cwnd_clamp.is_some()),
            ];
            for (name, _) in names.into_iter().filter(|(_, is_set)| *is_set) {
                self.notes.push(note(format!("{name} is not set: it needs BPF")));
            }
        }
        match (ecn, remote) {
            (Some(on), None) => {
                let value = if on { ECN_ON } else { ECN_OFF };
                self.sysctls.entry(ECN.to_string()).or_insert_with(|| value.to_string());
            }
            (Some(false), Some(remote)) => {
                self.notes.push(note(format!("ecn = false is not set: a route to {remote} cannot disable it")));
            }
            (Some(true), Some(_)) | (None, _) => {}
        }
        let ecn = ecn == Some(true) && remote.is_some();
        let metrics = Metrics { ecn, ..metrics };
        if metrics != Metrics::default() {
            self.wishes.push(Wish { remote, metrics });
        }
    }
}

/// The note for an algorithm that the kernel lacks.
fn lacking(name: &str) -> String {
    match name.strip_prefix(KERNEL_PREFIX) {
        Some(own) => format!("cc = {name} is not set: the kernel does not have it (modprobe tcp_{own})"),
        None => format!(
            "cc = {name} is not set: the kernel has neither {NAME_PREFIX}{name} (opentcp cc load {name}) nor a {name} of its own"
        ),
    }
}

/// Settings for connections, without ECN.
fn tuning(set: &Settings, cc: Option<String>, needs_ecn: bool, tick: Time) -> Tuning {
    let us = |time: Time| time.as_us().min(u64::from(u32::MAX)) as u32;
    let rate = set.max_pacing_rate.map(|rate| rate.as_bps() / 8);
    Tuning {
        initial_cwnd: set.initial_cwnd,
        // the kernel refuses a minimum RTO of one tick or less
        rto_min_us: set.rto_min.map(|time| us(time.max(tick + Time::from_us(1)))),
        delack_max_us: set.delayed_ack_max.map(|time| us(time.max(tick + Time::from_us(1)))),
        cwnd_clamp: set.cwnd_clamp,
        window_clamp: set.window_clamp.map(|bytes| bytes.get().min(u64::from(u32::MAX)) as u32),
        window_total: set.window_total.map(|bytes| bytes.get().min(u64::from(u32::MAX)) as u32),
        pacing_rate: rate.or_else(|| (set.pacing == Some(true)).then_some(NO_LIMIT)),
        needs_ecn: needs_ecn && cc.is_some(),
        algorithm: cc,
    }
}

/// Metrics for routes: with the program only what BPF cannot set, without it all that a route can.
fn metrics(set: &Settings, cc: Option<String>, means: Means) -> Metrics {
    let alone = !means.bpf();
    Metrics {
        initial_cwnd: set.initial_cwnd,
        rto_min_ms: set.rto_min.map(|time| time.as_us().div_ceil(1000).max(1) as u32),
        ecn: false,
        cc,
        window: set.window_clamp.filter(|_| alone).map(|bytes| bytes.get().min(u64::from(u32::MAX)) as u32),
    }
}

/// Whether the cgroup `inner` is `outer` or in it.
fn holds(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer.trim_end_matches('/')).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
