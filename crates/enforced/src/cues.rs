//! The Oracle's CUEs for hosts without an agent: the enforcer applies their settings to what these hosts send.

#[cfg(test)]
mod tests;

use crate::keeper::{Disk, Keeper};
use crate::represented::{Behalf, Represented};
use crate::settings::{Place, bounded, config, covers, is_total_alone, places, settings};
use crate::status::OracleStatus;
use bus::files::{FileError, KeyFile};
use bus::reverted::{self, Reverts};
use bus::{Address, Bus, BusError, Clock, Reasons};
use enforcer::{Enforcer, Packet, Record, Rule, Sent, Treatment};
use policy::{AgentRule, Host, Prefix, PublicKeys, Question, Settings};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};
use units::Time;

/// Interval of measurements, and of attempts to connect to the Oracle.
const LOOK: Time = Time::from_secs(1);
/// Periods in which nothing came from an Oracle, on a bus that one alone listens to, after which another is looked for.
const SILENCE: u64 = 3;
/// CUEs accepted in one call, before any takes effect.
const BATCH: usize = 1024;

/// The Oracle's socket and key, and the folder of what must outlive a restart.
#[derive(Clone, Debug)]
pub struct Places {
    /// Where it meets the Oracle.
    pub bus: Address,
    /// The file of its public keys.
    pub key: PathBuf,
    /// The folder of the highest epoch seen, and of what guards have reverted.
    pub state: PathBuf,
}

/// What the machine gives.
pub struct Ends {
    /// Joins the bus.
    pub connect: Box<dyn FnMut() -> Result<Box<dyn Bus>, BusError>>,
    /// Random bytes to ask the Oracle with.
    pub question: Box<dyn FnMut() -> io::Result<Question>>,
    /// Its clock, just begun.
    pub clock: Clock,
    /// The number of the machine's start.
    pub boot: String,
}

impl Ends {
    /// This machine's, with the bus at `address`.
    ///
    /// # Errors
    /// The kernel does not say the number of the machine's start.
    pub fn of_machine(address: Address) -> io::Result<Ends> {
        Ok(Ends {
            connect: Box::new(move || address.connect()),
            question: Box::new(bus::random),
            clock: Clock::begin(),
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_string(),
        })
    }
}

/// What one enforcer gives another that takes its place.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Given {
    /// The highest epoch seen.
    #[prost(uint64, optional, tag = "1")]
    epoch: Option<u64>,
    /// What guards have reverted, as [`reverted::to_bytes`] writes it.
    #[prost(bytes = "vec", tag = "2")]
    reverted: Vec<u8>,
}

/// What is known of the Oracle, for the status.
#[derive(Default)]
struct Standing {
    at: String,
    heard: Option<Time>,
    why: Option<String>,
}

/// The state of the exchange with the Oracle.
pub struct Cues {
    ends: Ends,
    /// The bus may have several Oracles at a time.
    is_shared: bool,
    keys: PublicKeys,
    file: KeyFile,
    hosts: Vec<Represented>,
    bus: Option<Box<dyn Bus>>,
    next: Time,
    /// When the Oracle was heard last, or this enforcer connected.
    heard_at: Time,
    /// Where it meets the Oracle, when a message came last, and why there is no connection.
    standing: Standing,
    /// Why there is no connection, as was said.
    missed: Reasons,
    keeper: Keeper,
    /// Why what guards have reverted is not on disk, as was said.
    forgetful: Reasons,
    /// The rules have changed since [`Cues::rules`] was last called.
    changed: bool,
    /// The settings that [`Cues::rules`] returned last, by servers.
    set: Vec<(Prefix, Place, Settings)>,
}

impl Cues {
    /// With nothing in force. The disk is to be turned, or to work in a thread of its own.
    ///
    /// # Errors
    /// The Oracle's keys, or what an earlier enforcer has left, cannot be read.
    pub fn begin(hosts: &[Behalf], places: &Places, ends: Ends) -> Result<(Cues, Disk), FileError> {
        let (file, keys) = KeyFile::read(&places.key)?;
        let (keeper, disk, reverts) = Keeper::begin(&places.state, &ends.boot, ends.clock)?;
        let mut cues = Cues {
            ends,
            is_shared: places.bus.is_shared(),
            hosts: hosts.iter().map(|host| Represented::new(host, keys.clone(), keeper.highest())).collect(),
            keys,
            file,
            bus: None,
            next: Time::ZERO,
            heard_at: Time::ZERO,
            standing: Standing { at: places.bus.to_string(), ..Standing::default() },
            missed: Reasons::default(),
            keeper,
            forgetful: Reasons::default(),
            changed: false,
            set: Vec::new(),
        };
        cues.remember(reverts);
        Ok((cues, disk))
    }

    /// Discards all CUEs and starts a new clock. What guards have reverted stays so.
    pub fn begin_anew(&mut self) {
        let (before, clock) = (self.ends.clock, self.ends.clock.anew());
        let reverts = reverted::on_another_clock(&self.reverts(), before, clock);
        for host in &mut self.hosts {
            *host = Represented::new(&host.host, self.keys.clone(), self.keeper.highest());
        }
        (self.ends.clock, self.next, self.heard_at, self.bus) = (clock, Time::ZERO, Time::ZERO, None);
        (self.changed, self.set) = (false, Vec::new());
        (self.standing.heard, self.standing.why) = (None, None);
        self.remember(reverts);
    }

    /// What the enforcer that takes this one's place must know.
    pub fn give(&self) -> Given {
        Given { epoch: self.highest(), reverted: reverted::to_bytes(&self.reverts(), self.ends.clock) }
    }

    /// Waits until what must outlive the enforcer is on disk.
    ///
    /// # Errors
    /// It is not: what the next one may not know, and what to see to.
    pub fn finish(self) -> Result<(), String> {
        let lost = |why| {
            format!(
                "the highest epoch and what guards have reverted may not be in the state folder ({why}): see to its disk, and start the \
                 next enforcer when the CUEs in force have ended"
            )
        };
        self.keeper.finish().map_err(lost)
    }

    /// Begins with what the enforcer has given whose place this one takes: since this one has read its files, that has gone on.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn take(&mut self, given: &Given) -> Result<(), String> {
        let (reverts, before) = (reverted::from_bytes(&given.reverted, self.ends.clock)?, self.reverts());
        let highest = given.epoch.max(self.keeper.highest());
        for host in &mut self.hosts {
            *host = Represented::new(&host.host, self.keys.clone(), highest);
            let both = [&reverts, &before].map(|of| of.get(&host.host.name).cloned().unwrap_or_default());
            host.agent.remember(both.concat());
        }
        Ok(())
    }

    /// The highest epoch that its hosts know of.
    fn highest(&self) -> Option<u64> {
        self.hosts.iter().filter_map(|host| host.agent.highest()).max()
    }

    /// What guards have reverted.
    fn reverts(&self) -> Reverts {
        let of = |host: &Represented| (host.host.name.clone(), host.agent.reverted().to_vec());
        self.hosts.iter().map(of).filter(|(_, reverted)| !reverted.is_empty()).collect()
    }

    fn remember(&mut self, mut reverts: Reverts) {
        for host in &mut self.hosts {
            host.agent.remember(reverts.remove(&host.host.name).unwrap_or_default());
        }
    }

    /// Counts the flows that have ended, and gives the `enforcer` its rules where they have changed: those of CUEs in force, then its `own`.
    /// Call it ten times a second; `now` is the enforcer's.
    ///
    /// # Errors
    /// The epoch cannot be stored; its CUEs must not take effect then.
    pub fn turn<P: Packet>(
        &mut self,
        now: Time,
        enforcer: &mut Enforcer<P>,
        own: &[Rule],
        say: &mut dyn FnMut(&str),
    ) -> Result<(), FileError> {
        while let Some(record) = enforcer.poll_record() {
            self.ended(&record);
        }
        if self.look(enforcer, say)?
            && let Some(rules) = self.rules()
        {
            enforcer.set_rules(now, [&rules, own].concat());
        }
        Ok(())
    }

    /// Handles messages, expiry, measurements and reports; returns whether the rules may have changed.
    fn look<P: Packet>(&mut self, enforcer: &Enforcer<P>, say: &mut dyn FnMut(&str)) -> Result<bool, FileError> {
        let now = self.ends.clock.now();
        self.changed |= self.listen(now, say);
        for host in &mut self.hosts {
            self.changed |= host.agent.on_timer(now);
        }
        let is_kept = self.keeper.keeps(self.highest())?;
        if self.next <= now {
            self.next = now + LOOK;
            self.trust(say);
            self.leave_the_silent(now, say);
            if self.bus.is_none() {
                self.connect(now, say);
            }
            self.changed |= self.measure(now, enforcer, say);
        }
        let reverts = self.reverts();
        self.keeper.keep_reverts(self.ends.clock, reverts);
        if let Some(trouble) = self.keeper.trouble().filter(|trouble| self.forgetful.is_news(trouble)) {
            say(&format!(
                "an enforcer that is started after this one would not know what its guards have reverted: {trouble}"
            ));
        }
        // CUEs take effect, and are reported, only once their epoch is on disk
        if is_kept {
            self.report(now, say);
        }
        let changed = self.changed || !is_kept;
        if changed {
            self.hosts.iter_mut().for_each(|host| host.settle(now, is_kept));
        }
        self.changed &= !is_kept;
        Ok(changed)
    }

    /// Reads the Oracle's keys anew where their file has changed.
    fn trust(&mut self, say: &mut dyn FnMut(&str)) {
        match self.file.anew() {
            None => {}
            Some(Ok(keys)) => {
                self.keys = keys;
                self.hosts.iter_mut().for_each(|host| host.agent.trust(self.keys.clone()));
                say("the Oracle's keys were replaced");
            }
            Some(Err(error)) => say(&format!("the Oracle's keys remain as they were: {error}")),
        }
    }

    /// Measures what each host sends and checks guards; returns whether one has reverted something.
    fn measure<P: Packet>(&mut self, now: Time, enforcer: &Enforcer<P>, say: &mut dyn FnMut(&str)) -> bool {
        let mut open = vec![Sent::default(); self.hosts.len()];
        for (server, sent) in enforcer.sent() {
            let its = self.hosts.iter().position(|host| host.host.prefix.contains(server.ip()));
            if let Some(at) = its {
                open[at] += sent;
            }
        }
        for host in &mut self.hosts {
            let here = enforcer.clients().filter(|client| host.host.prefix.contains(client.ip()));
            host.measured.incoming = here.count();
        }
        let mut changed = false;
        for (host, open) in self.hosts.iter_mut().zip(open) {
            host.measured.sample(now, open);
            let in_force = host.agent.rules().len();
            if in_force > host.watched {
                // a CUE that is new or released must not be judged by earlier losses
                host.measured.begin(now);
            } else if host.agent.on_measured(now, &host.measured.host) {
                let Host { sent_segments, retransmitted_segments, .. } = &host.measured.host;
                let (retransmitted, sent) = (retransmitted_segments.unwrap_or(0), sent_segments.unwrap_or(0));
                say(&format!(
                    "{}: a guard has reverted: {retransmitted} of {sent} segments were retransmitted",
                    host.host.name
                ));
                changed = true;
            }
            host.watched = host.agent.rules().len();
        }
        changed
    }

    /// Connects to the Oracle and asks for its current epoch; until the answer, no CUE is accepted.
    fn connect(&mut self, now: Time, say: &mut dyn FnMut(&str)) {
        let at = &self.standing.at;
        let bus = match (self.ends.connect)() {
            Ok(bus) => bus,
            Err(error) => {
                let why = error.to_string();
                if self.missed.is_news(&why) {
                    say(&format!(
                        "no Oracle at {at} ({why}): tried again each second; rules of CUEs end at their time"
                    ));
                }
                self.standing.why = Some(why);
                return;
            }
        };
        if !self.missed.is_empty() {
            say(&format!("connected to the Oracle at {at}"));
            self.missed.clear();
        }
        self.standing.why = None;
        self.heard_at = now;
        for host in &mut self.hosts {
            match (self.ends.question)() {
                Ok(question) => {
                    host.agent.ask(question);
                    host.timetable.asked(now);
                }
                Err(error) => return say(&format!("cannot make a nonce to ask the Oracle with: {error}")),
            }
        }
        self.bus = Some(bus);
    }

    /// Leaves an Oracle that has announced periods and says nothing any more: it may be stopped, and another in its place.
    fn leave_the_silent(&mut self, now: Time, say: &mut dyn FnMut(&str)) {
        let period = self.hosts.first().and_then(|host| host.timetable.period());
        let Some(period) = period.filter(|_| self.bus.is_some() && !self.is_shared) else { return };
        if now >= self.heard_at + period * SILENCE {
            say(&format!("the Oracle was silent for {SILENCE} periods: looking for another"));
            self.bus = None;
        }
    }

    /// What is known of the Oracle.
    pub fn oracle(&self) -> OracleStatus {
        let now = self.ends.clock.now();
        let is_connected = self.bus.is_some();
        OracleStatus {
            at: self.standing.at.clone(),
            connected: is_connected,
            why: self.standing.why.clone().filter(|_| !is_connected),
            heard_seconds_ago: self.standing.heard.map(|heard| now.saturating_sub(heard).as_secs_f64()),
            next_try_seconds: (!is_connected).then(|| self.next.saturating_sub(now).as_secs_f64()),
        }
    }

    fn listen(&mut self, now: Time, say: &mut dyn FnMut(&str)) -> bool {
        let mut changed = false;
        for _ in 0..BATCH {
            let Some(bus) = &mut self.bus else { break };
            match bus.receive(Duration::ZERO) {
                Ok(Some(message)) => {
                    self.heard_at = now;
                    self.standing.heard = Some(now);
                    for host in &mut self.hosts {
                        changed |= host.take(now, &message, say);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    if !matches!(error, BusError::Gone) {
                        say(&error.to_string());
                    }
                    self.bus = None;
                }
            }
        }
        changed
    }

    /// The enforcer's rules by the CUEs in force, host by host, in order; `None` if they have not changed.
    fn rules(&mut self) -> Option<Vec<Rule>> {
        let (mut rules, mut totals, mut set) = (Vec::new(), Vec::new(), Vec::new());
        for host in &mut self.hosts {
            host.notes.clear();
            let held = &host.in_force;
            for AgentRule { policy, rule, sessions, .. } in held {
                let cgroup = sessions.cgroup.iter();
                let note = |cgroup| format!("{policy}/{rule}: packets do not show their cgroup ({cgroup})");
                host.notes.extend(cgroup.map(note));
            }
            for (clients, port) in places(held) {
                let settings = settings(held, clients, port);
                if let Some(rule) = bounded(&settings, host.host.prefix, (clients, port)) {
                    totals.push(rule);
                }
                if is_total_alone(&settings) {
                    set.push((host.host.prefix, (clients, port), settings));
                    continue;
                }
                match config(&settings) {
                    Ok(config) => {
                        let servers = host.host.prefix;
                        set.push((servers, (clients, port), settings));
                        let servers = Some(servers);
                        let treatment = Treatment::Enforce(Arc::new(config));
                        rules.push(Rule { servers, clients, port, dscp: None, treatment, window_total: None });
                    }
                    Err(why) => {
                        let names = held.iter().filter(|rule| covers(rule, clients, port));
                        let names: Vec<String> = names.map(|rule| format!("{}/{}", rule.policy, rule.rule)).collect();
                        host.notes.push(format!("{}: {why}", names.join(", ")));
                    }
                }
            }
        }
        // the servers' own rules say how they send to those clients
        rules.append(&mut totals);
        // a renewed CUE changes nothing
        let is_new = set != self.set;
        self.set = set;
        is_new.then_some(rules)
    }

    /// Counts a flow that has ended.
    fn ended(&mut self, record: &Record) {
        let address = record.server.ip();
        if let Some(host) = self.hosts.iter_mut().find(|host| host.host.prefix.contains(address)) {
            host.ended(record);
        }
    }

    /// Reports each host to the Oracle at its time; a report that cannot be sent is repeated the next time.
    fn report(&mut self, now: Time, say: &mut dyn FnMut(&str)) {
        let Some(bus) = &mut self.bus else { return };
        self.hosts.iter().filter_map(|host| host.agent.highest()).for_each(|epoch| bus.heard(epoch));
        for host in self.hosts.iter_mut().filter(|host| host.timetable.is_due(now)) {
            let sent = host.send(now, &mut **bus);
            host.timetable.reported(now);
            match sent {
                // a busy Oracle gets these flows with the next report
                Ok(()) | Err(BusError::Full) => {}
                Err(BusError::Gone) => {
                    self.bus = None;
                    return;
                }
                Err(error) => say(&error.to_string()),
            }
        }
    }
}
