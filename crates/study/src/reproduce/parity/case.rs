//! A compared case: one bottleneck, its algorithm, rate, RTT, number of flows and queue.

use super::super::Request;
use crate::failure::Failure;
use crate::sweep::Job;
use scenario::{Disk, Input, Known, Scenario};
use std::path::PathBuf;
use units::Time;

/// The scenario that all cases vary; `opentcp run` takes it as well.
pub const NAME: &str = "scenarios/parity.toml";
/// Its text.
pub const TEXT: &str = include_str!("../../../../../scenarios/parity.toml");

/// Bits that a full packet takes on the wire: 1500 B and 38 B of Ethernet.
const PACKET_BITS: u64 = 1538 * 8;
/// Shorter queues would measure bursts, not algorithms.
const QUEUE_MIN: u64 = 40;
/// The minimum DCTCP threshold, of its paper for 1 Gbit/s.
const MARK_MIN: u64 = 20;
/// Processing time of a simulated host: up to so much for a packet. Real hosts have jitter of their own; without it a single flow overflows
/// the queue by the same number of packets each time, which one depends on a packet of queue more or less.
const HOST_JITTER: &str = "20 us";
/// Clock tick of the kernels that this is compared with: HZ = 250.
const TIMER_TICK: &str = "4 ms";
/// A pause of the machine of this share of the time that the full queue takes to drain changes what is dropped: all that hosts sent meanwhile
/// arrives as one burst.
const PAUSE_SHARE: u64 = 3;

/// Duration of a case.
const SECONDS: u64 = 10;

/// Keys that distinguish cases.
const OWN_KEYS: [&str; 8] =
    ["tcp.cc", "tcp.ecn", "traffic", "network.topology", "network.rate", "network.delay", "network.tier", "seed"];

/// The network and traffic of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// One of ours.
    pub algorithm: &'static str,
    /// Rate of the bottleneck.
    pub rate_mbps: u64,
    /// Round trip of the empty network.
    pub rtt_us: u64,
    /// Long flows, each between its own pair of hosts.
    pub flows: u64,
    /// Flows negotiate ECN, and the queue marks from a threshold on; otherwise the queue only drops.
    pub ecn: bool,
    /// Packets that the queue holds; none: as many as the round trip.
    pub queue: Option<u64>,
    /// How long it runs.
    pub seconds: u64,
}

/// The backend and the algorithm's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// The simulator.
    Simulator,
    /// This machine's kernel with the same algorithm source.
    Kernel,
    /// This machine's kernel with its own implementation of the algorithm.
    Own,
}

impl Host {
    /// All, in the order of columns.
    pub const ALL: [Host; 3] = [Host::Simulator, Host::Kernel, Host::Own];

    /// Its name in reports.
    pub fn label(self) -> &'static str {
        match self {
            Host::Simulator => "simulator",
            Host::Kernel => "kernel",
            Host::Own => "kernel’s own",
        }
    }

    /// Is it the simulator?
    pub fn is_simulated(self) -> bool {
        self == Host::Simulator
    }

    fn short(self) -> &'static str {
        match self {
            Host::Simulator => "sim",
            Host::Kernel => "kernel",
            Host::Own => "own",
        }
    }
}

/// The default cases: four algorithms, two rates, 5 ms, one flow and four; or with `full` all `algorithms`, three round
/// trips, up to ten flows, with and without ECN.
pub fn cases(full: bool, algorithms: &[&'static str]) -> Vec<Case> {
    let mut cases = Vec::new();
    let rtts_us: &[u64] = if full { &[1_000, 5_000, 50_000] } else { &[5_000] };
    let flows: &[u64] = if full { &[1, 4, 10] } else { &[1, 4] };
    let algorithms = if full { algorithms } else { &["newreno", "cubic", "dctcp", "bbr"] };
    for &rate_mbps in &[100, 1000] {
        for &rtt_us in rtts_us {
            for &flows in flows {
                for &algorithm in algorithms {
                    let queues: &[bool] = if full { &[false, true] } else { &[algorithm == "dctcp"] };
                    let case = Case { algorithm, rate_mbps, rtt_us, flows, ecn: false, queue: None, seconds: SECONDS };
                    cases.extend(queues.iter().map(|&ecn| Case { ecn, ..case.clone() }));
                }
            }
        }
    }
    cases
}

impl Case {
    /// Everything except the algorithm: `100 Mbit/s, 5 ms, 4 flows, drop-tail`.
    pub fn environment(&self) -> String {
        let plural = if self.flows == 1 { "" } else { "s" };
        let packets = self.queue.map_or(String::new(), |packets| format!(", {packets} packets"));
        let (rate, rtt, flows) = (self.rate_mbps, self.rtt_us / 1000, self.flows);
        format!("{rate} Mbit/s, {rtt} ms, {flows} flow{plural}, {}{packets}", self.queue())
    }

    fn queue(&self) -> &'static str {
        if self.ecn { "ECN" } else { "drop-tail" }
    }

    /// Name of this case's run on `host`, usable as a file name: `100M-5ms-4-drop-tail-cubic-sim-1`.
    pub fn run_name(&self, host: Host, seed: u32) -> String {
        let (rate, rtt, queue) = (self.rate_mbps, self.rtt_us / 1000, self.queue().to_lowercase());
        let packets = self.queue.map_or(String::new(), |packets| format!("-{packets}"));
        format!("{rate}M-{rtt}ms-{}-{queue}{packets}-{}-{}-{seed}", self.flows, self.algorithm, host.short())
    }

    /// The bandwidth-delay product, packets.
    pub fn bdp_packets(&self) -> u64 {
        (self.rate_mbps * self.rtt_us).div_ceil(PACKET_BITS)
    }

    /// The queue's limit, packets.
    fn limit(&self) -> u64 {
        self.queue.unwrap_or_else(|| self.bdp_packets().max(QUEUE_MIN))
    }

    /// The longest pause of the machine that leaves a run valid.
    pub fn pause_max(&self) -> Time {
        Time::from_ns(self.limit() * PACKET_BITS * 1000 / self.rate_mbps / PAUSE_SHARE)
    }

    /// The case as overrides of the scenario.
    fn sets(&self, host: Host, algorithm: &str, seed: u32) -> Vec<String> {
        let limit = self.limit();
        let mark = (limit / 6).max(MARK_MIN);
        let queue = if self.ecn {
            format!("{{ threshold_ecn = {{ mark_packets = {mark}, packets = {limit} }} }}")
        } else {
            format!("{{ drop_tail = {{ packets = {limit} }} }}")
        };
        let flow = |i: u64| {
            let start = start_us(i, seed);
            format!(
                "{{ name = \"flow{i}\", start = \"{start} us\", bulk = {{ from = \"left{i}\", to = \"right{i}\" }} }}"
            )
        };
        let flows: Vec<String> = (1..=self.flows).map(flow).collect();
        let mut sets = vec![
            format!("tcp.cc={algorithm}"),
            format!("seed={seed}"),
            format!("network.topology={{ dumbbell = {{ pairs = {} }} }}", self.flows),
            format!("network.delay={} us", self.rtt_us / 20),
            format!("network.tier.bottleneck.rate={} Mbit/s", self.rate_mbps),
            format!("network.tier.bottleneck.delay={} us", self.rtt_us * 2 / 5),
            format!("network.tier.bottleneck.queue={queue}"),
            format!("traffic=[{}]", flows.join(", ")),
        ];
        if self.ecn {
            sets.push("tcp.ecn=on".to_string());
        }
        if host.is_simulated() {
            sets.push(format!("network.host_jitter={HOST_JITTER}"));
            sets.push(format!("tcp.timer_tick={TIMER_TICK}"));
        }
        if self.seconds != SECONDS {
            sets.push(format!("duration={} s", self.seconds));
        }
        sets
    }

    /// The run of this case on `host`, where the algorithm is called `algorithm`.
    ///
    /// # Errors
    /// The user's overrides are wrong.
    pub fn job(&self, request: &Request, host: Host, algorithm: &str, seed: u32) -> Result<Job, Failure> {
        let mut sets = self.sets(host, algorithm, seed);
        sets.extend(request.sets.iter().cloned());
        // paths in --set are relative to the working directory
        let files = Disk { base: PathBuf::new() };
        let input = Input {
            name: NAME,
            text: TEXT,
            sets: &sets,
            known: Known { algorithms: &[algorithm], ..Known::default() },
            files: &files,
        };
        let loaded = Scenario::parse(&input).map_err(|diagnostic| Failure::located(&diagnostic))?;
        let Ok([run]) = <[_; 1]>::try_from(loaded.runs) else {
            return Err(Failure::Input("parity compares its own cases; to sweep use `opentcp run`".to_string()));
        };
        let parameters = [
            ("algorithm", self.algorithm.to_string()),
            ("rate", format!("{} Mbit/s", self.rate_mbps)),
            ("round trip", format!("{} ms", self.rtt_us / 1000)),
            ("flows", self.flows.to_string()),
            ("queue", self.queue().to_string()),
            ("host", host.label().to_string()),
            ("seed", seed.to_string()),
        ];
        let parameters = parameters.map(|(key, value)| (key.to_string(), value)).to_vec();
        Ok(Job { name: self.run_name(host, seed), parameters, scenario: run.scenario })
    }
}

/// Start of flow `i` (from 1): 10 ms after the previous one, plus an offset that differs between repetitions. The simulator's runs have no
/// other randomness, and one deterministic run of several flows is only one sample.
fn start_us(i: u64, seed: u32) -> u64 {
    (i - 1) * 10_000 + (i * 617 + 1) * u64::from(seed - 1) % 5_000
}

/// Refuses overrides of the keys that cases vary.
///
/// # Errors
/// There is such an override.
pub fn check_sets(sets: &[String]) -> Result<(), Failure> {
    let key = |set: &String| set.split('=').next().unwrap_or_default().trim().to_string();
    let own = |key: &String| OWN_KEYS.iter().any(|own| key == own || key.starts_with(&format!("{own}.")));
    match sets.iter().map(key).find(own) {
        Some(key) => Err(Failure::Input(format!(
            "parity varies `{key}` itself; for a network of your own use `opentcp run {NAME} --set …` on each backend"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_set_is_sixteen_cases_and_the_full_one_has_every_algorithm_in_every_environment() {
        assert_eq!(cases(false, &[]).len(), 4 * 2 * 2);
        let full = cases(true, &["cubic", "vegas"]);
        assert_eq!(full.len(), 2 * 2 * 3 * 3 * 2);
        let mut names: Vec<String> = full.iter().map(|case| case.run_name(Host::Kernel, 1)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), full.len(), "each case's run has a unique name");
    }

    #[test]
    fn the_queue_holds_what_the_round_trip_holds() {
        let (algorithm, queue) = ("cubic", None);
        let case = |rate_mbps, rtt_us| Case { algorithm, rate_mbps, rtt_us, flows: 1, ecn: false, queue, seconds: 10 };
        // 1 Gbit/s for 5 ms is 5 Mbit, 406.4 packets of 12,304 bits; a tenth of it 40.6
        assert_eq!(case(1000, 5_000).limit(), 407);
        assert_eq!(case(100, 5_000).limit(), 41);
        assert_eq!(case(100, 1_000).limit(), QUEUE_MIN);
    }

    #[test]
    fn what_the_cases_vary_cannot_be_set() {
        let refused = |set: &str| check_sets(&[set.to_string()]).is_err();
        assert!(refused("tcp.cc=vegas") && refused("network.tier.bottleneck.rate=1 Gbit/s") && refused(" seed = 3"));
        assert!(!refused("duration=2 s") && !refused("tcp.rto_min=20 ms") && !refused("network.framing=ip"));
    }
}
