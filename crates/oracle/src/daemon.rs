//! The Oracle's loop.

use crate::base::{base, with_local_time};
use crate::board::Board;
use crate::commands;
use crate::config::{Config, Event, LeaseAt, OracleError};
use crate::gather::Gathered;
use crate::lease::{Lease, Shared, Standing};
use crate::links::Links;
use crate::memory::{Memory, Pause};
use crate::overview::{Overview, clipped};
use crate::record::unix_s;
use crate::status::Status;
use crate::versions::{Versions, hash};
use crate::watch::{HostsAsked, PeriodEnd, Watch, verdict_line};
use audit::Kind;
use bus::files::secret_key;
use bus::{
    BoardList, BusError, Clock, FileStore, Hub, Measurement, Notice, Reasons, Received, ReplyTo, Store, Tripped, hello,
};
use policy::{Decision, Epoch, Mode, NetworkView, Oracle, Policy, Progress, Question, VerdictReport};
use serde_json::{Value, json};
use std::time::Duration;
use std::{io, thread};
use units::Time;

/// So long after its last part was read, a view is not kept.
const VIEW_KEPT: Time = Time::from_secs(30);
/// The longest wait before it is looked whether to stop.
const STEP: Duration = Duration::from_millis(200);
/// Messages that are taken before those who asked are answered: agents that connect at the same time are answered together.
const TOGETHER_MAX: usize = 4096;
/// By how many terms at most an Oracle goes beyond those that it and the lease know of, because hosts say so.
const TERM_STEP: u32 = 1 << 10;
/// How long hosts may need to find an Oracle that takes the place of another on a bus that one alone listens to.
const SETTLE: Time = Time::from_secs(3);

/// Is handed each decision, the verdict so far and the Oracle's status.
pub type Decided<'a> = dyn FnMut(&Decision, &VerdictReport, &Status) -> io::Result<()> + 'a;
/// Is handed lines for people.
pub type Say<'a> = dyn FnMut(&str) + 'a;

/// Decides and sends each period, until `stop` returns true. `decided` is handed each decision, the
/// verdict so far and the Oracle's status, the first a period after the start; `say` a line about anything else.
///
/// # Errors
/// It cannot begin, or its epoch cannot be stored; what it has sent ends by itself.
pub fn run(
    config: Config,
    stop: &dyn Fn() -> bool,
    decided: &mut Decided<'_>,
    say: &mut Say<'_>,
) -> Result<(), OracleError> {
    let mut daemon = Daemon::new(config, say)?;
    while !stop() {
        daemon.step(decided, say)?;
    }
    daemon.leave(say);
    Ok(())
}

/// What an Oracle meets others at, and its clock.
pub struct Ends {
    /// Its end of the bus; `None`: another Oracle has it, and it cannot be shared.
    pub hub: Option<Box<dyn Hub>>,
    /// The store of the lease, if there are several Oracles.
    pub store: Option<Box<dyn Store>>,
    /// Its clock, just begun.
    pub clock: Clock,
}

/// An Oracle that runs.
pub struct Daemon {
    config: Config,
    /// `None`: another Oracle has it, and it cannot be shared.
    hub: Option<Box<dyn Hub>>,
    oracle: Oracle,
    gathered: Gathered,
    /// What collectors have measured.
    links: Links,
    memory: Memory,
    /// The policies that were in force.
    versions: Versions,
    lease: Option<Lease>,
    /// The term in which it decides, 0 without a lease; `None`: it does not.
    term: Option<u32>,
    clock: Clock,
    /// When the period ends.
    next: Time,
    /// The last decision, when it was made, and by which view.
    last: Option<(Decision, Time, NetworkView)>,
    /// A view as text, for operators who read it part by part: of which epoch, and when it was read last.
    view_text: Option<(u64, Time, String)>,
    /// Lines of the audit log that could not be written.
    audit_lost: u64,
    /// What was said already.
    said: Said,
    /// What operators see.
    watch: Watch,
    metrics: Option<metrics::Server>,
}

/// What is said once, until it changes.
#[derive(Default)]
struct Said {
    view: Option<String>,
    lease: Option<String>,
    /// Why no server of the fleet is connected.
    away: Reasons,
    /// A higher epoch that hosts know of.
    ahead: Option<u64>,
    trouble: Status,
}

impl Daemon {
    fn new(config: Config, say: &mut Say<'_>) -> Result<Daemon, OracleError> {
        let may_wait = config.lease.is_some() && !config.bus.is_shared();
        let mut hub = if may_wait { None } else { Some(config.bus.listen()?) };
        let store = store(&config, hub.as_mut())?;
        Daemon::begin(config, Ends { hub, store, clock: Clock::begin() }, say)
    }

    /// Begins with what an earlier Oracle has left in its state folder.
    ///
    /// # Errors
    /// A file cannot be read or written, or the policy in force cannot be read.
    pub fn begin(config: Config, ends: Ends, say: &mut Say<'_>) -> Result<Daemon, OracleError> {
        let Ends { mut hub, store, clock } = ends;
        let key = secret_key(&config.key)?;
        let (memory, history) = Memory::open(&config.state, config.text.clone())?;
        let mut versions = Versions::open(&config.state)?;
        let policy = if memory.policy() == config.text {
            config.policy.clone()
        } else {
            let file = versions.file_of(memory.policy()).unwrap_or("the policy in force").to_string();
            (config.parse)(&file, memory.policy(), versions.algorithms()).map_err(OracleError::Policy)?
        };
        versions.follow(memory.policy(), (&policy.name, &config.file), "the Oracle's start");
        // a full disk stops no Oracle: the file is written with the next change
        if let Err(error) = versions.store() {
            say(&format!("the policies in force are not written down: {error}"));
        }
        memory.recovered().as_deref().into_iter().for_each(&mut *say);
        let period = policy.period;
        let mut oracle = Oracle::new(policy, key, history);
        oracle.pause(memory.paused().is_some());
        let lease = store.map(|store| Lease::new(store, config.number, period));
        let observing = if oracle.policy().mode == Mode::Observe { "OBSERVE: it sends nothing; " } else { "" };
        say(&format!("{}: {observing}T = {period}, agents at {}", oracle.policy().name, config.bus));
        if oracle.policy().objective.is_none() {
            say("the policy has no objective, so there is no verdict and no rollback for harm");
        }
        if memory.policy() != config.text {
            let applied =
                versions.current().map(|version| format!(" ({}, by {} at {})", version.file, version.by, version.at));
            say(&format!(
                "the policy in force is the one that was applied last{}, not the file's; change the file, or apply it, to have it in force",
                applied.unwrap_or_default()
            ));
        }
        if let Some(pause) = memory.paused() {
            say(&format!("paused by {} at {}: it sends no CUEs until `opentcp policy resume`", pause.by, pause.at));
        }
        memory.ended().into_iter().for_each(&mut *say);
        // what members heard of before this Oracle was restarted is still new
        hub.as_mut().into_iter().for_each(|hub| hub.epoch(oracle.epoch()));
        let term = lease.is_none().then_some(0);
        let (next, gathered) = (clock.now() + period, Gathered::new(oracle.policy()));
        let (said, last) = (Said::default(), None);
        let metrics = config.metrics.map(metrics::Server::bind).transpose()?;
        if let Some(server) = &metrics {
            say(&format!("metrics at http://{}/metrics", server.address()));
        }
        let watch = Watch::new(&oracle.policy().name, period);
        let mut daemon = Daemon {
            config,
            hub,
            oracle,
            gathered,
            links: Links::default(),
            memory,
            versions,
            lease,
            term,
            clock,
            next,
            last,
            view_text: None,
            audit_lost: 0,
            said,
            watch,
            metrics,
        };
        daemon.show();
        let body = json!({ "policy": daemon.policy().name, "hash": daemon.digits(), "epoch": daemon.oracle.epoch(),
            "paused": daemon.oracle.is_paused(), "oracle": daemon.config.number });
        daemon.record(&Event::Noted { kind: Kind::Started, body })?;
        Ok(daemon)
    }

    /// One turn of the loop: looks who decides, takes the messages that have come or waits for one, and ends the period if that is due.
    ///
    /// # Errors
    /// As [`run`].
    pub fn step(&mut self, decided: &mut Decided<'_>, say: &mut Say<'_>) -> Result<(), OracleError> {
        if self.clock.is_old() {
            self.begin_anew();
        }
        self.stand(say)?;
        self.listen(say)?;
        commands::on_time(self, say)?;
        if self.clock.now() >= self.next {
            self.end_period(decided, say)?;
        }
        Ok(())
    }

    /// When [`Daemon::step`] has something to do, unless a message comes.
    pub fn next(&self) -> Time {
        self.lease.as_ref().map_or(Time::NEVER, Lease::next).min(self.next)
    }

    /// Starts a new clock, and forgets all times of the old one.
    fn begin_anew(&mut self) {
        self.oracle.begin_anew();
        self.clock = self.clock.anew();
        (self.gathered, self.links) = (Gathered::new(self.oracle.policy()), Links::default());
        self.last = None;
        self.next = self.clock.now() + self.oracle.policy().period;
        self.lease.iter_mut().for_each(Lease::begin_anew);
    }

    /// Looks who decides, if that is due.
    fn stand(&mut self, say: &mut Say<'_>) -> Result<(), OracleError> {
        let heard = self.heard();
        if heard > self.oracle.epoch() && self.term.is_some() {
            self.is_behind(heard, say)?;
        }
        let (now, epoch) = (self.clock.now(), self.oracle.epoch());
        let own = Epoch::of(self.memory.epoch()).term;
        let Some(lease) = &mut self.lease else { return Ok(()) };
        // a fleet whose store and Oracles have lost all is followed in steps
        let above = own.max(Epoch::of(heard).term.min(own.max(lease.highest()) + TERM_STEP));
        let (standing, trouble) = match lease.keep(now, above, epoch) {
            Ok(standing) => (standing, None),
            Err(error) => (lease.standing(now), Some(error.to_string())),
        };
        if let Some(damage) = lease.damage() {
            say(&damage);
        }
        if trouble != self.said.lease {
            if let Some(trouble) = &trouble {
                say(trouble);
            }
            self.said.lease = trouble;
        }
        if let (Some(hub), None) = (&mut self.hub, self.term) {
            // what members send is new if they have heard of what the other Oracle decided
            hub.epoch(lease.epoch());
        }
        match (standing, self.term) {
            (Standing::Leads { term }, None) => self.lead(term, say),
            (Standing::Leads { term }, Some(known)) if term != known => {
                self.follow("its term is over", say)?;
                self.lead(term, say)
            }
            (Standing::Follows { holder: Some(holder) }, Some(_)) => {
                self.follow(&format!("Oracle {holder} has the lease"), say)
            }
            (Standing::Follows { holder: None }, Some(_)) => self.follow("the lease could not be renewed", say),
            _ => Ok(()),
        }
    }

    /// The highest epoch that hosts know of; one above this Oracle's counts if more of all hosts that there may be say so than may lie.
    fn heard(&self) -> u64 {
        let heard = self.gathered.epoch(0).unwrap_or(0);
        if heard <= self.oracle.epoch() {
            return heard;
        }
        let register = self.hub.as_ref().map_or(0, |hub| hub.counts().reporters);
        self.gathered.epoch(register).unwrap_or(0)
    }

    /// Hosts know of a higher epoch than this Oracle's: they take nothing from it.
    fn is_behind(&mut self, heard: u64, say: &mut Say<'_>) -> Result<(), OracleError> {
        let (heard_of, own) = (Epoch::of(heard), Epoch::of(self.oracle.epoch()));
        if let Some(lease) = &mut self.lease {
            lease.give_up();
            return self.follow(&format!("hosts know of epoch {heard_of}, above this Oracle's {own}"), say);
        }
        if self.said.ahead.is_none_or(|said| said < heard) {
            let file = self.config.state.join("epoch");
            say(&format!(
                "hosts know of epoch {heard_of}, above this Oracle's {own}, and take nothing from it: another Oracle decides too, or {} \
                 is of an earlier time. If there is no other, stop this one and write {heard} there",
                file.display()
            ));
            // the same is not said each period
            self.said.ahead = Some(heard);
        }
        Ok(())
    }

    /// Begins to decide.
    fn lead(&mut self, term: u32, say: &mut Say<'_>) -> Result<(), OracleError> {
        let now = self.clock.now();
        let is_warm = self.hub.is_some() && self.gathered.hosts() > 0;
        if self.hub.is_none() {
            self.hub = Some(self.config.bus.take_over()?);
        }
        let Some(lease) = &mut self.lease else { return Ok(()) };
        let period = self.oracle.policy().period;
        let due = lease.decided_at().map_or(now, |decided| decided + period);
        let shared = match lease.shared() {
            Ok(shared) => shared,
            Err(error) => {
                lease.give_up();
                say(&error.to_string());
                return Ok(());
            }
        };
        // a store that has lost its last changes does not undo what this Oracle knows
        if let Some(Shared { policy, file, progress, paused, began }) =
            shared.filter(|shared| !self.memory.is_newer(shared))
        {
            if policy != self.memory.policy() {
                let parsed = (self.config.parse)(&file, &policy, self.versions.algorithms());
                let parsed = parsed.map_err(|error| {
                    lease.give_up();
                    OracleError::Policy(error)
                })?;
                say(&format!(
                    "the policy in force is the one that was shared: {}; `opentcp policy apply` changes it",
                    parsed.name
                ));
                lease.set_period(parsed.period);
                self.gathered.adopt(&parsed);
                self.versions.follow(&policy, (&parsed.name, &file), "another Oracle");
                self.versions.store()?;
                self.oracle.adopt(parsed, progress.clone());
            }
            self.memory.adopt(policy, progress, paused, began)?;
        }
        self.oracle.pause(self.memory.paused().is_some());
        // it may have lost the lease and found it again, in the same term
        let epoch = Epoch::begin(term, self.config.number).number().max(self.oracle.epoch());
        self.oracle.take_over(epoch, self.memory.progress().clone());
        let period = self.oracle.policy().period;
        // hosts must have reported before anything is decided
        let ready = if is_warm { now } else { now + SETTLE.min(period) };
        self.next = ready.max(due).min(now + period);
        self.gathered.stand_by();
        self.term = Some(term);
        self.last = None;
        say(&format!("Oracle {} decides, in term {term}", self.config.number));
        self.record(&Event::Leads { term })?;
        self.share(true, say).map(|_| ())
    }

    /// Stops to decide.
    fn follow(&mut self, why: &str, say: &mut Say<'_>) -> Result<(), OracleError> {
        self.term = None;
        self.last = None;
        self.gathered.stand_by();
        if !self.config.bus.is_shared() {
            self.hub = None;
            self.gathered = Gathered::new(self.oracle.policy());
        }
        say(&format!("Oracle {} does not decide: {why}", self.config.number));
        self.record(&Event::Follows { why })
    }

    /// Gives the lease up, so that another decides at once.
    pub fn leave(mut self, say: &mut Say<'_>) {
        if let Some(lease) = &mut self.lease
            && self.term.is_some()
        {
            lease.give_up();
            say("the lease is given up");
        }
    }

    /// Shares what another Oracle would need, if that is new or the store has lost it by going back in time; whether this one still decides.
    fn share(&mut self, is_new: bool, say: &mut Say<'_>) -> Result<bool, OracleError> {
        let Some(lease) = &mut self.lease else { return Ok(true) };
        let file = self.versions.current().map_or(&self.config.file, |version| &version.file);
        let shared = Shared {
            file: file.clone(),
            policy: self.memory.policy().to_string(),
            progress: self.memory.progress().clone(),
            paused: self.memory.paused().cloned(),
            began: self.memory.began(),
        };
        if !is_new && lease.has(&shared) {
            return Ok(true);
        }
        match lease.share(&shared) {
            Ok(true) => Ok(true),
            Ok(false) => self.follow("another has shared its state", say).map(|()| false),
            Err(error) => {
                // it would be lost with this Oracle, so nothing follows from it
                lease.give_up();
                self.follow(&error.to_string(), say).map(|()| false)
            }
        }
    }

    /// Waits for messages until the period ends or something else is due, and takes what has come.
    fn listen(&mut self, say: &mut Say<'_>) -> Result<(), OracleError> {
        let now = self.clock.now();
        let wait = Duration::from_nanos(self.next().saturating_sub(now).as_ns()).min(STEP);
        let Some(hub) = &mut self.hub else {
            thread::sleep(wait);
            return Ok(());
        };
        let mut asked = Vec::new();
        let mut message = hub.receive(wait)?;
        for _ in 0..TOGETHER_MAX {
            let Some(received) = message else { break };
            self.take(received, &mut asked, say)?;
            let Some(hub) = &mut self.hub else { break };
            message = hub.receive(Duration::ZERO)?;
        }
        self.note_members(say)?;
        self.note_servers(say);
        if self.term.is_some() { self.answer(&asked) } else { Ok(()) }
    }

    /// Records what has happened to members of the fleet.
    fn note_members(&mut self, say: &mut Say<'_>) -> Result<(), OracleError> {
        let notices = self.hub.as_mut().map(|hub| hub.notices()).unwrap_or_default();
        for Notice { what, about } in &notices {
            say(&format!("{what}: {about}"));
            let kind = match *what {
                "revoked" => Kind::Revoked,
                "refused" | "damaged" | "repaired" => Kind::Refused,
                _ => Kind::Enrolled,
            };
            self.record(&Event::Noted { kind, body: json!({ "what": what, "about": about }) })?;
        }
        Ok(())
    }

    /// Says once for each reason why the fleet's servers are not reached, and that one is again.
    fn note_servers(&mut self, say: &mut Say<'_>) {
        match self.hub.as_ref().and_then(|hub| hub.trouble()) {
            Some(why) if self.said.away.is_news(&why) => say(&format!("no server of the fleet is connected: {why}")),
            None if !self.said.away.is_empty() => {
                say("connected to a server of the fleet");
                self.said.away.clear();
            }
            _ => {}
        }
    }

    fn take(
        &mut self,
        message: Received,
        asked: &mut Vec<(ReplyTo, Vec<Question>)>,
        say: &mut Say<'_>,
    ) -> Result<(), OracleError> {
        if message.bytes.starts_with(bus::REQUEST) {
            let reply = commands::take(self, &message, say);
            return match (reply, &mut self.hub) {
                (Some(reply), Some(hub)) => match hub.answer(&message.reply, &reply) {
                    // by a name that the client has chosen, say; it gets no answer, and everybody else's go on
                    Ok(()) | Err(BusError::Long(_)) => Ok(()),
                    Err(error) => Err(error.into()),
                },
                _ => Ok(()),
            };
        }
        if Measurement::is(&message.bytes) {
            self.links.take(self.clock.now(), &message.from, &message.bytes);
            return Ok(());
        }
        let question = match hello(&message.bytes) {
            Some(question) => Some(question),
            None => self.gathered.take(self.clock.now(), &message.from, &message.bytes),
        };
        if let Some(question) = question {
            match asked.last_mut() {
                // an enforcer asks for each of its hosts
                Some((reply, questions)) if *reply == message.reply && questions.len() < policy::QUESTIONS_MAX => {
                    questions.push(question);
                }
                _ => asked.push((message.reply, vec![question])),
            }
        }
        Ok(())
    }

    /// Answers those who asked, each alone, and sends them what is in force: the beacon of the current period and its CUEs.
    fn answer(&mut self, asked: &[(ReplyTo, Vec<Question>)]) -> Result<(), OracleError> {
        let (Some(hub), false) = (&mut self.hub, asked.is_empty()) else { return Ok(()) };
        let mut in_force = Vec::new();
        if let Some((_, decided_at, _)) = &self.last {
            in_force.push(self.oracle.beacon(self.config.number));
            in_force.extend(self.oracle.late(self.clock.now().saturating_sub(*decided_at)));
        }
        for (reply, questions) in asked {
            hub.answer(reply, &self.oracle.answer(questions))?;
            in_force.iter().try_for_each(|message| hub.answer(reply, message))?;
        }
        Ok(())
    }

    /// What is due at the end of a period.
    fn end_period(&mut self, decided: &mut Decided<'_>, say: &mut Say<'_>) -> Result<(), OracleError> {
        let (now, period) = (self.clock.now(), self.oracle.policy().period);
        // periods that the machine slept through are not made up for
        self.next = if self.next + period > now { self.next + period } else { now + period };
        if self.hub.is_none() {
            return Ok(());
        }
        let base = base(self.config.view.as_deref(), period);
        let problem = base.as_ref().err().cloned();
        if problem != self.said.view {
            if let Some(reason) = &problem {
                say(reason);
            }
            self.said.view = problem;
        }
        self.links.news().iter().for_each(|line| say(line));
        let base = self.links.add_to(now, period, base.unwrap_or_default());
        let base = with_local_time(base, &self.oracle.policy().time_zone, self.clock.unix_s());
        let view = self.gathered.view(now, period, base);
        // it may have taken long, or this process was stopped: the lease counts now
        self.stand(say)?;
        if self.term.is_some() {
            return self.turn(now, view, decided, say);
        }
        // one that follows decides for itself, so that it knows which rules are on when it must decide for all
        self.oracle.decide(&view);
        self.gathered.stand_by();
        self.learn_rollback()?;
        self.show();
        Ok(())
    }

    /// Keeps what another Oracle has rolled back, so that it stays so if the store is lost.
    fn learn_rollback(&mut self) -> Result<(), OracleError> {
        // a store that does not answer is asked again in the next period
        match self.lease.as_mut().map(Lease::shared) {
            Some(Ok(Some(shared))) => Ok(self.memory.learn_rollback(&shared)?),
            _ => Ok(()),
        }
    }

    /// Publishes the metrics.
    fn show(&mut self) {
        self.watch.leads(self.term.is_some());
        if let Some(server) = &self.metrics {
            server.publish(self.watch.page());
        }
    }

    /// Decides and sends.
    fn turn(
        &mut self,
        now: Time,
        view: NetworkView,
        decided: &mut Decided<'_>,
        say: &mut Say<'_>,
    ) -> Result<(), OracleError> {
        for (epoch, arms) in self.gathered.take_arms() {
            self.oracle.observe(epoch, arms);
        }
        let (decision, messages) = self.oracle.decide(&view);
        let treated = view.hosts.iter().enumerate().filter(|(i, _)| self.oracle.treats(*i));
        self.gathered.begin(decision.epoch, treated.map(|(_, host)| host.name.as_str()));
        let is_new = self.memory.store(&self.oracle, self.clock.unix_s())?;
        if !self.share(is_new, say)? {
            return Ok(());
        }
        let status = self.status();
        let verdict = self.oracle.verdict();
        self.note(&view)?;
        let (hash, paused) = (self.digits(), self.oracle.is_paused());
        if let Some(record) = &mut self.config.record {
            let (policy, hash) = (self.oracle.policy(), hash.as_str());
            let event =
                Event::Decided { policy, hash, paused, decision: &decision, verdict: &verdict, status: &status };
            self.audit_lost = record(&event)?;
        }
        let epoch = decision.epoch;
        self.last = Some((decision, now, view));
        self.view_text.take_if(|(_, read, _)| now.saturating_sub(*read) > VIEW_KEPT);
        self.send(&self.oracle.beacon(self.config.number))?;
        self.hub.as_mut().into_iter().for_each(|hub| hub.epoch(epoch));
        for message in &messages {
            self.record(&Event::Sent { epoch, message })?;
            self.send(message)?;
        }
        if let Some((decision, _, view)) = &self.last {
            decided(decision, &verdict, &status)?;
            let policy = self.oracle.policy();
            self.watch.ended(&PeriodEnd {
                policy: &policy.name,
                period: policy.period,
                now,
                unix_s: unix_s(),
                view,
                decision,
                sent: messages.len(),
                verdict: &verdict,
                status: &status,
                gathered: &self.gathered,
            });
        }
        self.show();
        let trouble = status.trouble();
        if trouble != self.said.trouble {
            say(&status.words());
            self.said.trouble = trouble;
        }
        Ok(())
    }

    /// Notes what hosts report that operators may ask for later: algorithms, and guards that have reverted rules.
    fn note(&mut self, view: &NetworkView) -> Result<(), OracleError> {
        if self.versions.learn(view.hosts.iter().flat_map(|host| &host.algorithms)) {
            // they are reported anew: a full disk is to stop no Oracle
            let _ = self.versions.store();
        }
        for (host, (reverted, tripped)) in self.gathered.take_reverted() {
            let rule = |of: &Tripped| json!({ "rule": of.rule, "why": of.why, "hold": of.hold.to_string() });
            let rules: Vec<Value> = tripped.iter().map(rule).collect();
            let body = json!({ "host": host, "reverted": reverted, "rules": rules });
            self.record(&Event::Noted { kind: Kind::Guard, body })?;
        }
        Ok(())
    }

    /// The first digits of the hash of the policy's text.
    pub(crate) fn digits(&self) -> String {
        hash(self.memory.policy())[..12].to_string()
    }

    fn send(&mut self, message: &[u8]) -> Result<(), BusError> {
        self.hub.as_mut().map_or(Ok(()), |hub| hub.send(message))
    }

    /// Has an event recorded.
    pub(crate) fn record(&mut self, event: &Event<'_>) -> Result<(), OracleError> {
        if let Event::Noted { kind, body } = event {
            self.watch.noted(unix_s(), *kind, body);
        }
        if let Some(record) = &mut self.config.record {
            self.audit_lost = record(event)?;
        }
        Ok(())
    }

    /// How it is.
    pub(crate) fn status(&self) -> Status {
        let counts = self.hub.as_ref().map(|hub| hub.counts()).unwrap_or_default();
        Status {
            agents: counts.peers,
            hosts: self.gathered.hosts(),
            oracle: self.config.number,
            term: self.term.unwrap_or(0),
            bus: counts.into(),
            reports: self.gathered.intake(),
            measurements: self.links.intake(),
            outliers: self.gathered.outliers().clone(),
            audit_lost: self.audit_lost,
        }
    }
}

/// For operators' requests.
impl Daemon {
    /// Whether it decides.
    pub(crate) fn is_leading(&self) -> bool {
        self.term.is_some()
    }

    /// By which policy.
    pub(crate) fn policy(&self) -> &Policy {
        self.oracle.policy()
    }

    /// The text of the policy in force.
    pub(crate) fn text(&self) -> &str {
        self.memory.policy()
    }

    /// The last decision.
    pub(crate) fn decision(&self) -> Option<&Decision> {
        self.last.as_ref().map(|(decision, ..)| decision)
    }

    /// The view of the last decision.
    pub(crate) fn view(&self) -> Option<&NetworkView> {
        self.last.as_ref().map(|(.., view)| view)
    }

    /// The same as JSON, and the epoch of the decision. Whoever has read its beginning can read all of it, whatever is decided meanwhile.
    pub(crate) fn view_text(&mut self, from: usize) -> Option<(u64, &str)> {
        let (decision, _, view) = self.last.as_ref()?;
        let known = self.view_text.take().filter(|(epoch, _, _)| from > 0 || *epoch == decision.epoch);
        let (epoch, text) = known.map_or_else(|| (decision.epoch, view.to_json()), |(epoch, _, text)| (epoch, text));
        let (epoch, _, text) = self.view_text.insert((epoch, self.clock.now(), text));
        Some((*epoch, text))
    }

    /// How far its rollout has come.
    pub(crate) fn progress(&self) -> Progress {
        self.oracle.progress()
    }

    /// The policies that were in force.
    pub(crate) fn versions(&self) -> &Versions {
        &self.versions
    }

    /// The same, to be changed.
    pub(crate) fn versions_mut(&mut self) -> &mut Versions {
        &mut self.versions
    }

    /// Whether and until when no CUEs are sent.
    pub(crate) fn paused(&self) -> Option<&Pause> {
        self.memory.paused()
    }

    /// Reads the policy of a file of this name, with the algorithms that hosts have reported.
    pub(crate) fn parse(&self, file: &str, text: &str) -> Result<Policy, String> {
        (self.config.parse)(file, text, self.versions.algorithms())
    }

    /// Acts by another policy, which was read from `text`, from the next decision on; its rollout has come so far.
    pub(crate) fn apply(
        &mut self,
        policy: Policy,
        text: String,
        progress: Progress,
        say: &mut Say<'_>,
    ) -> Result<(), OracleError> {
        self.memory.begin(text, progress.clone(), self.oracle.epoch())?;
        let period = policy.period;
        self.gathered.adopt(&policy);
        self.oracle.adopt(policy, progress);
        self.lease.iter_mut().for_each(|lease| lease.set_period(period));
        self.next = self.next.min(self.clock.now() + period);
        self.share(true, say).map(|_| ())
    }

    /// Decides without sending CUEs, or sends them.
    pub(crate) fn pause(&mut self, paused: Option<Pause>, say: &mut Say<'_>) -> Result<(), OracleError> {
        self.oracle.pause(paused.is_some());
        self.memory.pause(paused)?;
        self.share(true, say).map(|_| ())
    }

    /// A part of a list for a dashboard.
    pub(crate) fn board(&self, list: BoardList, from: usize) -> Board {
        self.watch.board(list, from)
    }

    /// How the fleet is, for people.
    pub(crate) fn overview(&self, hosts: Option<&bus::HostsQuery>) -> Overview {
        let asked = hosts.map_or_else(HostsAsked::default, |query| HostsAsked {
            sort: &query.sort,
            filter: &query.filter,
            limit: query.limit,
        });
        let (policy, mode) = (self.policy(), json!(self.policy().mode));
        Overview {
            policy: clipped(&policy.name, 64),
            hash: self.digits(),
            mode: mode.as_str().unwrap_or_default().to_string(),
            period: policy.period.to_string(),
            period_s: policy.period.as_secs_f64(),
            epoch: self.oracle.epoch(),
            paused: self.oracle.is_paused(),
            agents: self.status().agents,
            leads: self.term.is_some(),
            audit_lost: self.audit_lost,
            verdict: verdict_line(&self.oracle.verdict()),
            next_s: self.term.is_some().then(|| self.next.saturating_sub(self.clock.now()).as_secs_f64()),
            ..self.watch.overview(self.clock.now(), asked)
        }
        .explained(policy)
    }
}

/// The store of the lease that this Oracle shares with others.
fn store(config: &Config, hub: Option<&mut Box<dyn Hub>>) -> Result<Option<Box<dyn Store>>, OracleError> {
    match &config.lease {
        None => Ok(None),
        Some(LeaseAt::Folder(folder)) => Ok(Some(Box::new(FileStore::open(folder)?))),
        Some(LeaseAt::Bus) => {
            let store = hub.and_then(|hub| hub.store());
            Ok(Some(store.ok_or_else(|| io::Error::other("this bus has no store for a lease: name a folder"))?))
        }
    }
}
