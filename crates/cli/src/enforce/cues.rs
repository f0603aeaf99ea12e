//! The Oracle's CUEs, taken for hosts that have no agent: what they set, the enforcer does to what these hosts send.

use super::built_in;
use bus::files::{FileError, public_key, store_epoch, stored_epoch};
use bus::{Bus as _, BusError, Clock, Effective, FctTimes, InForce, Report, Telemetry, UnixAgent};
use enforcer::{Record, Rule};
use policy::{Agent, AgentRule, CueError, Gate, Host, Identity, Prefix, Settings};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tcp::{Config, PacingMode};
use units::Time;

/// How often is reported, and an Oracle that is not there looked for.
const REPORT: Time = Time::from_secs(1);
/// CUEs that are taken before anything is set.
const BATCH: usize = 1024;

/// A host for which CUEs are taken.
#[derive(Clone, Debug)]
pub struct Behalf {
    pub name: String,
    /// Its addresses.
    pub prefix: Prefix,
    pub labels: BTreeMap<String, String>,
}

/// Where the Oracle is, and what must not be forgotten.
#[derive(Clone, Debug)]
pub struct Places {
    pub oracle: PathBuf,
    pub key: PathBuf,
    pub epoch: PathBuf,
}

/// What has been agreed with the Oracle.
pub struct Cues {
    places: Places,
    clock: Clock,
    hosts: Vec<Represented>,
    bus: Option<UnixAgent>,
    next: Time,
    stored: Option<u64>,
}

struct Represented {
    host: Behalf,
    agent: Agent,
    /// Its flows that have ended since the last report, by the rule of which they were.
    ended: BTreeMap<String, Ended>,
    notes: Vec<String>,
}

#[derive(Default)]
struct Ended {
    flows: u64,
    bytes: u64,
    segments: u64,
    retransmits: u64,
    times: FctTimes,
}

impl Cues {
    /// Nothing is in force yet.
    ///
    /// # Errors
    /// The Oracle's key, or the highest epoch so far, cannot be read.
    pub fn new(hosts: &[Behalf], places: Places) -> Result<Cues, FileError> {
        let (key, stored) = (public_key(&places.key)?, stored_epoch(&places.epoch)?);
        let represent = |host: &Behalf| {
            let identity = Identity { host: host.name.clone(), labels: host.labels.clone() };
            let agent = Agent::new(Gate::new(key, identity, stored));
            Represented { host: host.clone(), agent, ended: BTreeMap::new(), notes: Vec::new() }
        };
        let hosts = hosts.iter().map(represent).collect();
        Ok(Cues { places, clock: Clock::begin(), hosts, bus: None, next: Time::ZERO, stored })
    }

    /// Forgets what is in force: the clock begins anew.
    ///
    /// # Errors
    /// As [`Cues::new`].
    pub fn begin_anew(&mut self) -> Result<(), FileError> {
        let hosts: Vec<Behalf> = self.hosts.iter().map(|host| host.host.clone()).collect();
        *self = Cues::new(&hosts, self.places.clone())?;
        Ok(())
    }

    /// Takes what has come, ends what has expired, reports; whether there are other rules now. To be called ten times a second.
    ///
    /// # Errors
    /// The epoch cannot be stored, so nothing of it may be set.
    pub fn look(&mut self, flows: usize) -> Result<bool, FileError> {
        let now = self.clock.now();
        let mut changed = self.listen(now);
        for host in &mut self.hosts {
            changed |= host.agent.on_timer(now);
        }
        let highest = self.hosts.iter().filter_map(|host| host.agent.highest()).max();
        if let Some(epoch) = highest.filter(|_| highest > self.stored) {
            store_epoch(&self.places.epoch, epoch)?;
            self.stored = highest;
        }
        if self.next <= now {
            self.next = now + REPORT;
            if self.bus.is_none() {
                self.connect();
            }
            self.report(now, flows);
        }
        Ok(changed)
    }

    /// Looks for the Oracle, of which nothing is taken before it has said which epochs are over.
    fn connect(&mut self) {
        let Ok(bus) = UnixAgent::connect(&self.places.oracle) else { return };
        for host in &mut self.hosts {
            match bus::random() {
                Ok(question) => host.agent.ask(question),
                Err(error) => return eprintln!("nothing to ask the Oracle by: {error}"),
            }
        }
        self.bus = Some(bus);
    }

    fn listen(&mut self, now: Time) -> bool {
        let mut changed = false;
        for _ in 0..BATCH {
            let Some(bus) = &mut self.bus else { break };
            match bus.receive(Duration::ZERO) {
                Ok(Some(message)) => {
                    for host in &mut self.hosts {
                        match host.agent.on_cue(now, &message) {
                            Ok(anew) => changed |= anew,
                            Err(CueError::NotOurs) => {}
                            Err(error) if host.agent.counts().rejected.is_power_of_two() => {
                                eprintln!("CUE for {} rejected: {error}", host.host.name);
                            }
                            Err(_) => {}
                        }
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    if !matches!(error, BusError::Gone) {
                        eprintln!("{error}");
                    }
                    self.bus = None;
                }
            }
        }
        changed
    }

    /// What the CUEs in force mean for the enforcer, host by host, in order.
    pub fn rules(&mut self) -> Vec<Rule> {
        let mut rules = Vec::new();
        for host in &mut self.hosts {
            host.notes.clear();
            for rule in host.agent.rules() {
                match config(&rule.set) {
                    Ok(config) => rules.push(Rule {
                        servers: Some(host.host.prefix),
                        clients: rule.sessions.remote,
                        port: rule.sessions.port,
                        dscp: None,
                        config: Some(Arc::new(config)),
                    }),
                    Err(why) => host.notes.push(format!("{}/{}: {why}", rule.policy, rule.rule)),
                }
            }
        }
        rules
    }

    /// A flow has ended.
    pub fn ended(&mut self, record: &Record) {
        let address = record.server.ip();
        let Some(host) = self.hosts.iter_mut().find(|host| host.host.prefix.contains(address)) else { return };
        let rules = host.agent.rules();
        let fits = |rule: &&AgentRule| {
            rule.set.cc.as_ref() == Some(&record.algorithm)
                && rule.sessions.contains(record.client.ip(), record.server.port, "")
        };
        let name =
            rules.iter().find(fits).map_or("default".to_string(), |rule| format!("{}/{}", rule.policy, rule.rule));
        let kind = host.ended.entry(name).or_default();
        kind.flows += 1;
        kind.bytes += record.bytes_acked;
        kind.segments += u64::from(record.data_segments_sent);
        kind.retransmits += u64::from(record.retransmits);
        kind.times.record(record.ended.saturating_sub(record.began).as_us());
    }

    /// Tells the Oracle of each host; one that does not listen is told the next time.
    fn report(&mut self, now: Time, flows: usize) {
        let Some(bus) = &mut self.bus else { return };
        for host in &mut self.hosts {
            let in_force = host.agent.rules().into_iter().map(|rule| InForce {
                effective: effective(&rule.set, flows),
                left: rule.deadline.saturating_sub(now),
                policy: rule.policy,
                rule: rule.rule,
            });
            let telemetry = host.ended.iter().map(|(group, ended)| Telemetry {
                group: group.clone(),
                remote_rack: String::new(),
                size: "all".to_string(),
                flows: ended.flows,
                bytes: ended.bytes,
                segments: ended.segments,
                retransmits: ended.retransmits,
                fct_us: ended.times.bins(),
            });
            let report = Report {
                host: Host { name: host.host.name.clone(), labels: host.host.labels.clone(), ..Host::default() },
                question: host.agent.question(),
                epoch: host.agent.highest(),
                counts: host.agent.counts(),
                in_force: in_force.collect(),
                telemetry: telemetry.collect(),
                notes: host.notes.clone(),
                ..Report::default()
            };
            match bus.send(&report.to_bytes()) {
                Ok(()) => host.ended.clear(),
                // an Oracle that is busy is told the next time, of what happened till then as well
                Err(BusError::Full) => {}
                Err(BusError::Gone) => {
                    self.bus = None;
                    return;
                }
                // said again, it would be refused again
                Err(error) => {
                    eprintln!("{error}");
                    host.ended.clear();
                }
            }
        }
    }
}

/// What a sender in the network can make of the settings.
fn config(set: &Settings) -> Result<Config, String> {
    let name = set.cc.as_deref().ok_or("the enforcer needs `cc`: it cannot know what the host's own would do")?;
    // only those that were built in: a CUE is no way to run a file
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

/// What became of each setting.
fn effective(set: &Settings, flows: usize) -> Vec<Effective> {
    let effective = |setting: &str, asked: String, done: bool| Effective {
        setting: setting.to_string(),
        asked,
        found: done.then(|| "in the network".to_string()),
        connections: if done { flows } else { 0 },
        until_close: true,
    };
    let all = [
        ("cc", set.cc.clone(), true),
        ("initial_cwnd", set.initial_cwnd.map(|n| n.to_string()), true),
        ("rto_min", set.rto_min.map(|time| time.to_string()), true),
        ("cwnd_clamp", set.cwnd_clamp.map(|n| n.to_string()), true),
        ("max_pacing_rate", set.max_pacing_rate.map(|rate| rate.to_string()), true),
        ("pacing", set.pacing.map(|on| on.to_string()), true),
        ("delayed_ack_max", set.delayed_ack_max.map(|time| time.to_string()), false),
        ("window_clamp", set.window_clamp.map(|bytes| bytes.to_string()), false),
        ("ecn", set.ecn.map(|on| on.to_string()), false),
    ];
    let cc = set.cc.is_some();
    all.into_iter().filter_map(|(name, asked, can)| asked.map(|asked| effective(name, asked, can && cc))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::UnixOracle;
    use enforcer::End;

    fn record() -> Record {
        let end = |address: &str, port| End::new(address.parse().expect("an address"), port);
        Record {
            server: end("10.0.0.1", 80),
            client: end("10.9.9.9", 40_000),
            began: Time::ZERO,
            ended: Time::from_ms(5),
            ending: None,
            bytes_acked: 1000,
            data_segments_sent: 1,
            retransmits: 0,
            rtos: 0,
            delivered: 1,
            delivered_ce: 0,
            absorbed: 0,
            hidden: 0,
            srtt_us: 1000,
            min_rtt_us: 1000,
            cwnd: 10,
            algorithm: "bbr".to_string(),
        }
    }

    #[test]
    fn what_a_busy_oracle_does_not_take_is_told_later() {
        const FLOWS: u64 = 5000;
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let key = bus::files::generate(&at("key")).expect("a key");
        let mut oracle = UnixOracle::listen(&at("oracle")).expect("a socket");
        let places = Places { oracle: at("oracle"), key, epoch: at("epoch") };
        let prefix = "10.0.0.0/8".parse().expect("a prefix");
        let host = Behalf { name: "h".to_string(), prefix, labels: BTreeMap::new() };
        let mut cues = Cues::new(&[host], places).expect("nothing is stored yet");
        cues.bus = UnixAgent::connect(&at("oracle")).ok();
        for _ in 0..FLOWS {
            cues.ended(&record());
            cues.report(Time::ZERO, 1);
        }
        let mut told = || {
            let mut flows = 0;
            while let Some(message) = oracle.receive(Duration::ZERO).expect("the enforcer is there") {
                let report = Report::from_bytes(&message).expect("a report");
                flows += report.telemetry.iter().map(|kind| kind.flows).sum::<u64>();
            }
            flows
        };
        let before = told();
        assert!(before < FLOWS, "nothing was too much for it");
        cues.report(Time::ZERO, 1);
        assert_eq!(before + told(), FLOWS);
    }
}
