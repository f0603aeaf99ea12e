//! A scenario's TCP settings as Linux settings: sysctls of a host's namespace, metrics of its route, options of
//! its sockets. What Linux cannot do is refused, by key.

use crate::slowdown::Slowdown;
use policy::Policy;
use scenario::{Algorithm, Ecn, LimitOutput, Objection, Pacing, Scenario, Tcp};
use std::collections::BTreeSet;
use units::Time;

pub use kernel::KERNEL_PREFIX;

/// Linux's initial RTO, TCP_TIMEOUT_INIT.
const TIMEOUT_INIT: Time = Time::from_secs(1);
/// Linux's largest RTO, TCP_RTO_MAX_SEC.
const RTO_MAX: Time = Time::from_secs(120);
/// The largest minimum RTO and ACK delay that a BPF program may set.
const BPF_TIMERS_MAX: Time = Time::from_ms(200);
/// Linux's delayed ACK, TCP_DELACK_MIN and TCP_DELACK_MAX.
const DELAYED_ACK: (Time, Time) = (Time::from_ms(40), Time::from_ms(200));
/// Linux's own tcp_tso_rtt_log.
const TSO_RTT_LOG: u32 = 9;
/// Full segments in one super-segment of 64 KB; Linux's own maximum.
const TSO_SEGMENTS: u32 = 44;

/// Rules of a policy: the kernel has room for twice as many, the second half for rules that outlast their renewal.
const POLICY_RULES_MAX: usize = kernel::retune::RULES_MAX / 2;

/// A host's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Of the host's interface.
    pub mtu: u32,
    /// Names as `sysctl` writes them, with values.
    pub sysctls: Vec<(String, String)>,
    /// Metric of the route, segments.
    pub initial_cwnd: u32,
    /// Metric of the route: ACKs are not delayed.
    pub quick_ack: bool,
    /// Largest number of segments in a super-segment, if below Linux's own.
    pub gso_max_segs: Option<u32>,
    /// Sockets pace whatever their algorithm.
    pub pace: bool,
    /// Packets that wait for the card stay in the socket.
    pub limit_output: bool,
    /// The algorithm of connections that choose none, by the kernel's name; none: the machine's. The scenario's traffic chooses its own.
    pub congestion_control: Option<String>,
}

/// The hosts' settings for `scenario`, with timers as slow as the network.
///
/// # Errors
/// What Linux cannot do.
pub fn stack(scenario: &Scenario, slowdown: Slowdown) -> Result<Stack, Vec<Objection>> {
    let objections = objections(scenario, slowdown);
    if objections.is_empty() { Ok(nearest_stack(scenario, slowdown)) } else { Err(objections) }
}

/// The same, without what Linux cannot do.
pub fn nearest_stack(scenario: &Scenario, slowdown: Slowdown) -> Stack {
    let tcp = &scenario.tcp;
    let on = |on: bool| i32::from(on).to_string();
    let least = 4096;
    let buffer = |most: u64, usual: u64| format!("{} {} {most}", least.min(most), usual.min(most));
    let values = [
        ("tcp_sack", on(tcp.sack)),
        ("tcp_timestamps", on(tcp.timestamps)),
        ("tcp_window_scaling", on(tcp.window_scaling)),
        // 3: tail loss probes and no early retransmission, Linux's default
        ("tcp_early_retrans", if tcp.tlp { "3" } else { "0" }.to_string()),
        ("tcp_frto", if tcp.frto { "2" } else { "0" }.to_string()),
        ("tcp_slow_start_after_idle", on(tcp.slow_start_after_idle)),
        ("tcp_syn_retries", tcp.syn_retries.to_string()),
        ("tcp_rto_min_us", slowdown.real(tcp.rto_min).as_us().to_string()),
        ("tcp_rto_max_ms", (slowdown.real(tcp.rto_max).min(RTO_MAX).as_us() / 1000).to_string()),
        // 2: accept ECN, do not request it; an algorithm that needs ECN requests it in any case
        ("tcp_ecn", ecn(scenario).to_string()),
        ("tcp_ecn_fallback", "0".to_string()),
        ("tcp_tso_rtt_log", tso_rtt_log(slowdown).to_string()),
        ("tcp_wmem", buffer(tcp.send_buffer.get(), 16_384)),
        ("tcp_rmem", buffer(tcp.receive_buffer.get(), 131_072)),
    ];
    Stack {
        mtu: tcp.mtu(),
        sysctls: values.into_iter().map(|(key, value)| (format!("net.ipv4.{key}"), value)).collect(),
        initial_cwnd: tcp.initial_cwnd,
        quick_ack: tcp.delayed_ack.segments == 1,
        gso_max_segs: (tcp.tso_segments < TSO_SEGMENTS).then_some(tcp.tso_segments),
        pace: tcp.pacing == Pacing::On,
        limit_output: tcp.limit_output == LimitOutput::Auto,
        congestion_control: None,
    }
}

/// `tcp_tso_rtt_log`: a super-segment grows by 64 KB, halved for every 2^value microseconds of the minimum RTT, which a slow network makes
/// longer. Of the powers of two it is the one whose logarithm is nearest to the slowdown's.
fn tso_rtt_log(slowdown: Slowdown) -> u32 {
    TSO_RTT_LOG + slowdown.times().pow(2).ilog2().div_ceil(2)
}

/// `tcp_ecn` of hosts without a policy's setting.
pub fn ecn(scenario: &Scenario) -> &'static str {
    if scenario.tcp.ecn == Ecn::On { "1" } else { "2" }
}

/// What of the hosts' settings Linux cannot do.
pub fn objections(scenario: &Scenario, slowdown: Slowdown) -> Vec<Objection> {
    let tcp = &scenario.tcp;
    let mut found = Vec::new();
    let mut object = |key: &str, message: String, help: &str| {
        found.push(Objection { key: format!("tcp.{key}"), message, help: Some(help.to_string()) });
    };
    if tcp.initial_ssthresh.is_some() {
        let message = "Linux has no setting for a new connection's slow-start threshold".to_string();
        object("initial_ssthresh", message, "leave it \"unlimited\", or use --backend sim");
    }
    for (key, value) in [("rto_initial", tcp.rto_initial), ("syn_rto", tcp.syn_rto)] {
        if value != TIMEOUT_INIT {
            object(
                key,
                format!("Linux's is {TIMEOUT_INIT} and cannot be set, here it is {value}"),
                "set it to \"1 s\"",
            );
        }
    }
    if tcp.rto_max < TIMEOUT_INIT || tcp.rto_max > RTO_MAX {
        object("rto_max", format!("Linux takes 1 s to 120 s, not {}", tcp.rto_max), "set it to \"120 s\"");
    }
    if tcp.sack && !tcp.rack {
        object("rack", "Linux detects losses by RACK wherever there is SACK".to_string(), "set `rack = true`");
    }
    if !tcp.prr {
        object("prr", "Linux always reduces by proportional rate reduction".to_string(), "set `prr = true`");
    }
    if let Some(message) = delayed_ack(tcp) {
        object("delayed_ack", message, "leave it out, or set `{ segments = 1 }`");
    }
    if tcp.pacing == Pacing::Off && algorithms(scenario).any(paces) {
        object(
            "pacing",
            "the algorithm in the kernel paces, which cannot be turned off".to_string(),
            "set `pacing = \"auto\"`",
        );
    }
    if tcp.ect1 {
        object("ect1", "Linux's dctcp sends ECT(0)".to_string(), "leave `ect1` out, or use --backend sim");
    }
    if tcp.ictcp {
        object("ictcp", "Linux has no ICTCP".to_string(), "leave `ictcp` out, or use --backend sim");
    }
    if tcp.ecn == Ecn::Accurate {
        object("ecn", "no kernel up to 6.18 negotiates AccECN".to_string(), "set `ecn = \"on\"`, or use --backend sim");
    }
    if tcp.ecn == Ecn::Off
        && let Some(cc) = algorithms(scenario).find(|cc| needs_ecn(cc))
    {
        object("ecn", format!("{} in the kernel always negotiates ECN", cc.label()), "set `ecn = \"auto\"`");
    }
    found.extend(scenario.policy.iter().flat_map(|control| of_policy(&control.policy, slowdown)));
    found
}

/// Parts of a policy that real hosts cannot be set to.
fn of_policy(policy: &Policy, slowdown: Slowdown) -> Vec<Objection> {
    let mut found = Vec::new();
    let mut object = |message: String, help: &str| {
        found.push(Objection { key: "policy.file".to_string(), message, help: Some(help.to_string()) });
    };
    if policy.rules.len() > POLICY_RULES_MAX {
        let message = format!("{} rules are more than the {POLICY_RULES_MAX} that can be emulated", policy.rules.len());
        object(message, "join rules, or use --backend sim");
    }
    for rule in policy.rules.iter().filter(|_| slowdown.is_slower()) {
        for (name, time) in [("rto_min", rule.set.rto_min), ("delayed_ack_max", rule.set.delayed_ack_max)] {
            if time.is_some_and(|time| slowdown.real(time) > BPF_TIMERS_MAX) {
                let n = slowdown.times();
                let message = format!(
                    "rule {:?}: {name} slowed {n} times is more than {BPF_TIMERS_MAX}, Linux's most",
                    rule.name
                );
                object(message, "use a smaller --slower, a shorter time, or --backend sim");
            }
        }
    }
    for rule in policy.rules.iter().filter(|rule| rule.set.ecn.is_some()) {
        if rule.sessions.port.is_some() || rule.sessions.remote.is_some() {
            let message =
                format!("rule {:?}: a Linux host negotiates ECN with all remote hosts or with none", rule.name);
            object(message, "leave `port` and `remote` out of its `match`, or use --backend sim");
        }
    }
    found
}

fn delayed_ack(tcp: &Tcp) -> Option<String> {
    let ack = tcp.delayed_ack;
    match ack.segments {
        2 if (ack.timeout, ack.timeout_max) != DELAYED_ACK => {
            Some(format!("Linux's timer is {} to {} and cannot be set", DELAYED_ACK.0, DELAYED_ACK.1))
        }
        2 if !ack.quickack => Some("Linux delays no ACK at the start of a connection".to_string()),
        1 | 2 => None,
        n => Some(format!("Linux acknowledges every second segment at the latest, not every {n}")),
    }
}

/// The algorithms of the scenario's traffic.
pub fn algorithms(scenario: &Scenario) -> impl Iterator<Item = &Algorithm> {
    scenario.traffic.iter().map(|entry| entry.cc.as_ref().unwrap_or(&scenario.tcp.cc))
}

/// What a slower network does not slow, because Linux cannot be asked to.
pub fn in_real_time(scenario: &Scenario) -> Vec<String> {
    let mut found = vec!["initial RTO".to_string(), "ticks".to_string()];
    if scenario.tcp.delayed_ack.segments > 1 {
        found.push("the delay of a single ACK".to_string());
    }
    if scenario.tcp.tso_segments > 1 {
        found.push("the millisecond for which a super-segment is collected".to_string());
    }
    let clocks: BTreeSet<&str> = algorithms(scenario)
        .map(Algorithm::label)
        .chain(policy_algorithms(scenario))
        .filter(|cc| has_clock(cc))
        .collect();
    found.extend(clocks.iter().map(|cc| format!("the clock of {cc}")));
    found
}

/// Whether the algorithm acts by times of its own, not by round trips alone.
fn has_clock(name: &str) -> bool {
    ["bbr", "cubic", "westwood", "prague", "d2tcp"].iter().any(|clocked| name.contains(clocked))
}

/// The algorithms that the scenario's policy may set, by our names; may contain duplicates.
pub fn policy_algorithms(scenario: &Scenario) -> impl Iterator<Item = &str> {
    let rules = scenario.policy.iter().flat_map(|control| &control.policy.rules);
    rules.filter_map(|rule| rule.set.cc.as_deref())
}

/// Whether the algorithm negotiates ECN.
fn needs_ecn(cc: &Algorithm) -> bool {
    ["dctcp", "d2tcp", "prague"].iter().any(|name| cc.label().contains(name))
}

/// Whether the algorithm sets a pacing rate.
pub fn paces(cc: &Algorithm) -> bool {
    let name = cc.label().strip_prefix(KERNEL_PREFIX).unwrap_or(cc.label());
    name.contains("bbr") || name.contains("prague")
}
