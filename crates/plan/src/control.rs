//! The Oracle of a scenario and an agent on each of its hosts, on either backend.
//!
//! [`Control`] is called with the time and observes a [`Managed`] network. Every period T it makes a view of the period, lets
//! the Oracle decide, and delivers the signed CUEs to the agents. In between it checks the agents' guards and deadlines. The
//! backend applies the agents' settings. CUEs take no time from the Oracle to the agents.

mod observe;

#[cfg(test)]
mod tests;

use net::{LinkCounters, LinkId, QueueLength, Topology};
use observe::Observer;
use policy::{
    Agent, AgentRule, CueError, Decision, End, Gate, History, Identity, Oracle, OracleKey, RuleReport, Turn,
    VerdictReport,
};
use results::{Arm, CueEvent, CueRow, RuleRow, Summary};
use scenario::Scenario;
use std::sync::Arc;
use units::Time;

/// Between two checks of an agent's guards.
const LOOK: Time = Time::from_ms(100);

/// A network whose hosts can be retuned.
pub trait Managed {
    /// What a link has counted since the beginning, and its queue now.
    fn link(&self, link: LinkId) -> (LinkCounters, QueueLength);
    /// Calls `take` for every flow that is open or has closed since the last call, in order of opening.
    fn flows(&mut self, take: &mut dyn FnMut(FlowState));
    /// Adds to each host's count what it has sent since the beginning.
    fn segments(&mut self, hosts: &mut [Segments]);
    /// Flows and messages that have completed since the last call.
    fn completed(&mut self, take: &mut dyn FnMut(Completed));
    /// From now on `rules` apply to the connections of `host`; possibly only the rules' deadlines have changed.
    fn retune(&mut self, host: u32, rules: &[AgentRule]);
    /// Connections that are opened from now on and belong to `host` ([`policy::Policy::counted_at`]) are of this arm; until the first
    /// call, of the control group.
    fn assign(&mut self, host: u32, arm: Arm);
}

/// A connection, as its sender sees it.
#[derive(Clone, Copy, Debug)]
pub struct FlowState {
    /// Its number.
    pub flow: u32,
    /// The traffic entry that opened it.
    pub entry: u32,
    /// Number of the sending host.
    pub src: u32,
    /// Of the receiving one.
    pub dst: u32,
    /// Payload that was acknowledged since it was opened.
    pub bytes: u64,
    /// Data segments since then.
    pub segments: Segments,
    /// Of the host to which it belongs ([`policy::Policy::counted_at`]) when it was opened.
    pub arm: Arm,
    /// Smoothed round trip; none before there is one.
    pub srtt_us: Option<u32>,
    /// It is still open.
    pub open: bool,
}

/// Data segments sent, retransmissions included, and of these the retransmissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// All.
    pub sent: u64,
    /// Retransmissions.
    pub retransmitted: u64,
}

/// A flow, or a message on a connection that is kept, whose last byte has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Completed {
    /// Number of the sending host.
    pub src: u32,
    /// The traffic entry.
    pub entry: u32,
    /// Payload.
    pub bytes: u64,
    /// From its beginning to its last byte.
    pub took: Time,
    /// Of the host to which it belongs ([`policy::Policy::counted_at`]) when its connection was opened.
    pub arm: Arm,
}

/// The Oracle and the agents.
pub struct Control {
    oracle: Oracle,
    agents: Vec<Agent>,
    /// By host: the rules that it follows.
    rules: Vec<Vec<AgentRule>>,
    observer: Observer,
    hosts: Vec<Arc<str>>,
    arms: Vec<Arm>,
    period: Time,
    next_turn: Time,
    next_look: Time,
    rows: Vec<CueRow>,
    /// What happened to each rule, in their order.
    rules_so_far: Vec<RuleRow>,
}

impl Control {
    /// The Oracle that `scenario` asks for, if it does.
    pub fn of(scenario: &Scenario, topology: &Topology) -> Option<Control> {
        let policy = scenario.policy.as_ref()?.policy.clone();
        let observer = Observer::new(scenario, topology);
        // The key protects nothing here; it only has to be valid, and the same in every run.
        let key = OracleKey::from_secret([0x5a; 32]);
        let agent = |host: &policy::Host| {
            let identity = Identity { host: host.name.clone(), labels: host.labels.clone() };
            Agent::new(Gate::new(key.public(), identity, None))
        };
        let agents: Vec<Agent> = observer.hosts().iter().map(agent).collect();
        let rules = vec![Vec::new(); agents.len()];
        let arms = vec![Arm::Control; observer.hosts().len()];
        let hosts = observer.hosts().iter().map(|host| host.name.as_str().into()).collect();
        let period = policy.period;
        let of_rule = |rule: &policy::Rule| RuleRow { rule: rule.name.as_str().into(), ..RuleRow::default() };
        let rules_so_far = policy.rules.iter().map(of_rule).collect();
        let oracle = Oracle::new(policy, key, History::default());
        let (next_turn, next_look) = (Time::ZERO, Time::NEVER);
        let rows = Vec::new();
        Some(Control { oracle, agents, rules, observer, hosts, arms, period, next_turn, next_look, rows, rules_so_far })
    }

    /// When [`Control::on_time`] is to be called next.
    pub fn next(&self) -> Time {
        let agents = self.agents.iter().filter_map(Agent::poll_timeout).min().unwrap_or(Time::NEVER);
        self.next_turn.min(self.next_look).min(agents)
    }

    /// To which end connections belong in the verdict.
    pub fn counted_at(&self) -> End {
        self.oracle.policy().counted_at()
    }

    /// The verdict on the policy so far.
    pub fn verdict(&self) -> VerdictReport {
        self.oracle.verdict()
    }

    /// Adds to a summary the comparison of treated hosts with the control group: for each quantity the change, its interval,
    /// and the control group's change against its own past.
    pub fn summarize(&self, summary: &mut Summary) {
        for quantity in self.verdict().quantities {
            let name = quantity.name.to_lowercase().replace(' ', "_");
            let (low, high) = quantity.interval.unwrap_or((f64::NAN, f64::NAN));
            let numbers = [
                ("change", quantity.change.unwrap_or(f64::NAN)),
                ("low", low),
                ("high", high),
                ("control_against_past", quantity.control_against_past.unwrap_or(f64::NAN)),
            ];
            for (what, number) in numbers {
                summary.insert(format!("policy.{name}.{what}"), number);
            }
        }
        summary.insert("policy.rolled_back", f64::from(u8::from(self.verdict().roll_back)));
    }

    /// What happened to CUEs, in order of time.
    pub fn into_rows(self) -> Vec<CueRow> {
        self.rows
    }

    /// What happened to each rule of the policy so far, in their order.
    pub fn rules(&self) -> &[RuleRow] {
        &self.rules_so_far
    }

    /// Does what is due at `now`.
    pub fn on_time(&mut self, now: Time, network: &mut impl Managed) {
        for host in 0..self.agents.len() {
            if self.agents[host].poll_timeout().is_some_and(|at| at <= now) {
                self.change(now, host, network, |agent| agent.on_timer(now));
            }
        }
        if self.next_look <= now {
            self.look(now, network);
        }
        if self.next_turn <= now {
            self.turn(now, network);
            self.next_turn = self.period * (now.as_ps() / self.period.as_ps() + 1);
        }
        let (watched, before) = (self.agents.iter().any(Agent::is_guarded), self.next_look != Time::NEVER);
        if watched && !before {
            self.observer.look(now, network);
        }
        self.next_look = if watched { LOOK * (now.as_ps() / LOOK.as_ps() + 1) } else { Time::NEVER };
    }

    /// The guards.
    fn look(&mut self, now: Time, network: &mut impl Managed) {
        self.observer.look(now, network);
        for host in 0..self.agents.len() {
            if self.agents[host].is_guarded() {
                let measured = self.observer.measured(host);
                self.change(now, host, network, |agent| agent.on_measured(now, &measured));
            }
        }
    }

    /// The Oracle decides.
    fn turn(&mut self, now: Time, network: &mut impl Managed) {
        self.observer.see(now, network);
        let arms = self.observer.take_arms();
        let (decision, messages) = self.oracle.turn(self.observer.view(), arms);
        for (host, arm) in self.arms.iter_mut().enumerate() {
            let now = if self.oracle.treats(host) { Arm::Treated } else { Arm::Control };
            if std::mem::replace(arm, now) != now {
                network.assign(host as u32, now);
            }
        }
        for report in &decision.rules {
            self.rows.push(self.row(now, &decision, report));
        }
        for (row, report) in self.rules_so_far.iter_mut().zip(&decision.rules) {
            count(row, report);
        }
        for host in 0..self.agents.len() {
            self.change(now, host, network, |agent| {
                let mut changed = false;
                for message in &messages {
                    match agent.on_cue(now, message) {
                        Ok(new) => changed |= new,
                        Err(CueError::NotOurs) => {}
                        Err(error) => unreachable!("the Oracle's own agents take what it signs: {error}"),
                    }
                }
                changed
            });
        }
    }

    /// What a decision means for one rule.
    fn row(&self, now: Time, decision: &Decision, report: &RuleReport) -> CueRow {
        let rule = &self.oracle.policy().rules[report.rank];
        let sent = report.hosts.addressed > 0 && !decision.to_send().is_empty();
        let reason = match (&report.withheld, report.turn) {
            (Some(why), _) => why.clone(),
            (None, turn) => {
                let turn = turn.map_or(String::new(), |turn| format!("{}: ", word(turn)));
                format!("{turn}{}", report.values.join(", "))
            }
        };
        CueRow {
            time_ns: now.as_ns(),
            event: if sent { CueEvent::Sent } else { CueEvent::Withheld },
            epoch: decision.epoch,
            rule: rule.name.as_str().into(),
            host: "".into(),
            hosts: report.hosts.addressed as u64,
            set: rule.set.to_string().into(),
            reason: reason.into(),
        }
    }

    /// Changes an agent, and lets the backend apply its rules.
    fn change(&mut self, now: Time, host: usize, network: &mut impl Managed, act: impl FnOnce(&mut Agent) -> bool) {
        let agent = &mut self.agents[host];
        let counted = agent.counts();
        if !act(agent) {
            return;
        }
        let (after, counts) = (agent.rules(), agent.counts());
        let before = std::mem::replace(&mut self.rules[host], after);
        let after = &self.rules[host];
        let has = |rules: &[AgentRule], rule: &str| rules.iter().any(|known| known.rule == rule);
        let mut row = |event, rule: &str, set: String| {
            self.rows.push(CueRow {
                time_ns: now.as_ns(),
                event,
                epoch: self.oracle.epoch(),
                rule: rule.into(),
                host: self.hosts[host].clone(),
                hosts: 1,
                set: set.into(),
                reason: "".into(),
            });
        };
        for gone in before.iter().filter(|rule| !has(after, &rule.rule)) {
            let event = if counts.reverted > counted.reverted { CueEvent::Reverted } else { CueEvent::Expired };
            row(event, &gone.rule, gone.set.to_string());
        }
        for new in after.iter().filter(|rule| !has(&before, &rule.rule)) {
            let event = if counts.taken > counted.taken { CueEvent::Taken } else { CueEvent::Recovered };
            row(event, &new.rule, new.set.to_string());
            self.observer.begin_guarding(host);
        }
        if before != *after {
            network.retune(host as u32, after);
        }
    }
}

/// Counts a decision's result for a rule.
fn count(row: &mut RuleRow, report: &RuleReport) {
    let hosts = report.hosts;
    if let Some(why) = &report.withheld {
        row.withheld_why = why.as_str().into();
    }
    row.decisions += 1;
    *match () {
        () if hosts.addressed > 0 => &mut row.on,
        () if hosts.matched == 0 => &mut row.no_host,
        () if report.withheld.is_some() => &mut row.withheld,
        () if hosts.no_ecn + hosts.no_algorithm > 0 => &mut row.left_out,
        () if hosts.unknown == hosts.matched => &mut row.unknown,
        () => &mut row.off,
    } += 1;
    for seen in &report.seen {
        row.see(&seen.what, seen.least.zip(seen.most));
    }
}

fn word(turn: Turn) -> &'static str {
    match turn {
        Turn::On => "on",
        Turn::Off => "off",
        Turn::HeldOn => "kept on by its hold time",
        Turn::HeldOff => "kept off by its hold time",
        Turn::FlapLimited => "kept off: it changed too often",
        Turn::Unknown => "too little is known",
    }
}
