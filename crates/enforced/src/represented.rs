//! A host without an agent: the CUEs that the enforcer takes for it, what its flows send, and its reports.

#[cfg(test)]
mod tests;

use crate::settings::{effective, settings};
use bus::{Bus, BusError, FctTimes, InForce, Report, Telemetry, Timetable, Tripped};
use congestion::Algorithm;
use enforcer::{Record, Sent};
use policy::{Agent, AgentRule, COUNT_MAX, CueError, Gate, Host, Identity, Prefix, PublicKeys, SEGMENTS_MIN};
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use units::{Rate, Time};

/// Reports of a host on earlier periods that wait for an Oracle; older ones are lost.
const WAITING_MAX: usize = 2;
/// Retransmissions are counted over at most this long.
const WINDOW_MAX: Time = Time::from_secs(60);
/// Rules of which ended flows are counted apart; what is more is counted as `other`.
pub const KINDS_MAX: usize = 256;

/// A host whose CUEs the enforcer takes.
#[derive(Clone, Debug)]
pub struct Behalf {
    /// Its name in policies.
    pub name: String,
    /// Its addresses.
    pub prefix: Prefix,
    /// Its labels, for `match.labels` of policies.
    pub labels: BTreeMap<String, String>,
}

/// Such a host.
pub struct Represented {
    pub host: Behalf,
    pub agent: Agent,
    /// By the CUEs that may take effect: whose epoch is on disk.
    pub in_force: Vec<AgentRule>,
    /// Its flows that ended in the current period since the last report, by rule.
    pub ended: BTreeMap<String, Ended>,
    /// Those of earlier periods that are not reported yet, with the epochs of these.
    pub earlier: VecDeque<(u64, BTreeMap<String, Ended>)>,
    pub timetable: Timetable,
    pub notes: Vec<String>,
    pub measured: Measured,
    /// CUEs in force at the last measurement.
    pub watched: usize,
}

/// What a host's flows send.
#[derive(Default)]
pub struct Measured {
    /// By flows that have ended, since the start.
    pub ended: Sent,
    /// By all flows; `before` is the same at the start of the measurement.
    pub all: Sent,
    pub before: Sent,
    /// None before the first look.
    pub begun_at: Option<Time>,
    pub host: Host,
    /// Flows that come to the host.
    pub incoming: usize,
}

impl Measured {
    /// `open`: sent by open flows.
    pub fn sample(&mut self, now: Time, open: Sent) {
        self.all = open;
        self.all += self.ended;
        self.host.live_flows = Some(open.flows as f64);
        // flows of an enforcer whose place was taken have sent before
        let Some(begun_at) = self.begun_at else { return self.begin(now) };
        let since = |all: u64, before: u64| all.saturating_sub(before);
        let sent = since(self.all.segments, self.before.segments);
        let took = now.saturating_sub(begun_at);
        self.host.sent_segments = Some(sent);
        self.host.retransmitted_segments = Some(since(self.all.retransmits, self.before.retransmits));
        if took > Time::ZERO {
            let bits = since(self.all.bytes, self.before.bytes) as f64 * 8.0;
            self.host.send_rate = Some(Rate::from_bps((bits / took.as_secs_f64()) as u64));
        }
        if sent >= SEGMENTS_MIN || took >= WINDOW_MAX {
            self.begin(now);
        }
    }

    /// Starts a measurement: what was sent so far no longer counts.
    pub fn begin(&mut self, now: Time) {
        (self.before, self.begun_at) = (self.all, Some(now));
    }
}

#[derive(Default)]
pub struct Ended {
    pub flows: u64,
    pub bytes: u64,
    pub segments: u64,
    pub retransmits: u64,
    pub times: FctTimes,
}

impl Represented {
    /// With nothing in force.
    pub fn new(host: &Behalf, keys: PublicKeys, highest: Option<u64>) -> Represented {
        let identity = Identity { host: host.name.clone(), labels: host.labels.clone() };
        let agent = Agent::new(Gate::new(keys, identity, highest));
        Represented {
            host: host.clone(),
            agent,
            in_force: Vec::new(),
            ended: BTreeMap::new(),
            earlier: VecDeque::new(),
            timetable: Timetable::new(&host.name),
            notes: Vec::new(),
            measured: Measured::default(),
            watched: 0,
        }
    }

    /// Takes a message of the Oracle's; returns whether rules changed. A beacon ends the count of flows.
    pub fn take(&mut self, now: Time, message: &[u8], say: &mut dyn FnMut(&str)) -> bool {
        match self.agent.on_cue(now, message) {
            Ok(anew) => {
                if let Some(of_epoch) = self.timetable.heard(now, self.agent.beacon()) {
                    self.earlier.push_back((of_epoch, mem::take(&mut self.ended)));
                    if self.earlier.len() > WAITING_MAX {
                        self.earlier.pop_front();
                    }
                }
                return anew;
            }
            Err(CueError::NotOurs) => {}
            Err(error) if self.agent.counts().rejected.is_power_of_two() => {
                say(&format!("CUE for {} rejected: {error}", self.host.name));
            }
            Err(_) => {}
        }
        false
    }

    /// Lets take effect what is in force, if its epoch is on disk. Until then it is what was in force before, without what has ended.
    pub fn settle(&mut self, now: Time, is_kept: bool) {
        if is_kept {
            self.in_force = self.agent.rules();
        } else {
            let reverted = self.agent.reverted();
            let is_reverted =
                |rule: &AgentRule| reverted.iter().any(|of| of.policy == rule.policy && of.rule == rule.rule);
            self.in_force.retain(|rule| rule.deadline > now && !is_reverted(rule));
        }
    }

    /// The report on flows that have `ended`, in the period of `of_epoch`.
    fn report(&self, now: Time, ended: &BTreeMap<String, Ended>, of_epoch: Option<u64>) -> Report {
        let held = self.agent.rules();
        let flows = (self.measured.host.live_flows.unwrap_or(0.0) as usize, self.measured.incoming);
        let in_force = held.iter().map(|rule| InForce {
            effective: effective(rule, &settings(&held, rule.sessions.remote, rule.sessions.port), flows),
            left: rule.deadline.saturating_sub(now),
            policy: rule.policy.clone(),
            rule: rule.rule.clone(),
        });
        let telemetry = ended.iter().map(|(group, ended)| Telemetry {
            group: group.clone(),
            remote_rack: String::new(),
            size: "all".to_string(),
            received: false,
            flows: ended.flows,
            bytes: ended.bytes,
            segments: ended.segments,
            retransmits: ended.retransmits,
            fct_us: ended.times.bins(),
        });
        Report {
            host: Host {
                name: self.host.name.clone(),
                labels: self.host.labels.clone(),
                algorithms: Algorithm::builtins().iter().map(|one| one.name().to_string()).collect(),
                ..self.measured.host.clone()
            },
            question: self.agent.question(),
            epoch: self.agent.highest(),
            of_epoch,
            counts: self.agent.counts(),
            in_force: in_force.collect(),
            reverted: Tripped::of(self.agent.reverted(), now),
            telemetry: telemetry.collect(),
            notes: self.notes.clone(),
            ..Report::default()
        }
    }

    /// Counts a flow that has ended.
    pub fn ended(&mut self, record: &Record) {
        let rules = self.agent.rules();
        let fits = |rule: &&AgentRule| {
            rule.set.cc.as_ref() == Some(&record.algorithm)
                && rule.sessions.contains(record.client.ip(), record.server.port, "")
        };
        let name =
            rules.iter().find(fits).map_or("default".to_string(), |rule| format!("{}/{}", rule.policy, rule.rule));
        let is_new = self.ended.len() >= KINDS_MAX && !self.ended.contains_key(&name);
        let kind = self.ended.entry(if is_new { "other".to_string() } else { name }).or_default();
        self.measured.ended += Sent {
            // open flows are counted elsewhere
            flows: 0,
            bytes: record.bytes_acked,
            segments: record.data_segments_sent.into(),
            retransmits: record.retransmits.into(),
        };
        kind.flows += 1;
        kind.bytes = kind.bytes.saturating_add(record.bytes_acked).min(COUNT_MAX);
        kind.segments += u64::from(record.data_segments_sent);
        kind.retransmits += u64::from(record.retransmits.min(record.data_segments_sent));
        kind.times.record(record.ended.saturating_sub(record.began).as_us());
    }

    /// Reports: first on earlier periods, then on the current one if that is due.
    pub fn send(&mut self, now: Time, bus: &mut dyn Bus) -> Result<(), BusError> {
        let (is_late, has_current) = (!self.earlier.is_empty(), self.timetable.has_current(now));
        while let Some((of_epoch, ended)) = self.earlier.front() {
            deliver(bus, &self.report(now, ended, Some(*of_epoch)))?;
            self.earlier.pop_front();
        }
        if has_current {
            deliver(bus, &self.report(now, &self.ended, self.timetable.epoch()))?;
            self.ended.clear();
        } else if !is_late {
            // what was measured goes without it
            deliver(bus, &self.report(now, &BTreeMap::new(), None))?;
        }
        Ok(())
    }
}

/// Sends a report. One that would be refused another time too is lost.
fn deliver(bus: &mut dyn Bus, report: &Report) -> Result<(), BusError> {
    match bus.send(&report.clone().to_bytes()) {
        Err(error @ (BusError::Full | BusError::Gone)) => Err(error),
        _ => Ok(()),
    }
}
