//! The agent's loop.

#[cfg(test)]
mod tests;

use crate::config::Config;
use crate::effective::{Seen, in_force};
use crate::error::AgentError;
use crate::journal::{Journal, table};
use crate::life::Life;
use crate::lock::lock;
use crate::measure::{Counters, Traffic, interfaces, traffic};
use crate::plan::{Plan, Surroundings};
use crate::routes::Table;
use crate::status::Status;
use crate::telemetry::{Ended, Names, RttSteps};
use crate::tuner::Tuner;
use bus::files::KeyFile;
use bus::{Bus, BusError, Clock, LINKS_MAX, Reasons, Report, Tripped};
use kernel::{Capability, Connection, NAME_PREFIX, Rights};
use metrics::Server;
use policy::{ALGORITHMS_MAX, Host, Link};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;
use units::{Rate, Time};

/// How often guards are checked: losses are seen within a quarter of a second.
const SAMPLE: Time = Time::from_ms(250);
/// The same while nothing is sent: each check wakes a core of an idle host.
const SAMPLE_QUIET: Time = Time::from_ms(500);
/// After so many records of ended connections at once, a quarter of what the kernel's buffer holds, the next are fetched soon.
const FETCHED_MANY: usize = 800;
const FETCH_SOON: Time = Time::from_ms(250);
/// How often the agent fetches records of ended connections, writes its status, and reads the host's counters while no guard needs them sooner.
const LOOK: Time = Time::from_secs(1);
/// Periods in which nothing came from an Oracle, on a bus that one alone listens to, after which the agent looks for another.
const SILENCE: u64 = 3;
/// Reports on earlier periods that wait for an Oracle; older ones are lost.
const WAITING_MAX: usize = 2;
/// How old the numbers in the status may become while nothing else changes.
const WRITTEN: Time = Time::from_secs(5);
/// Scanning all connections and routes may take one part in so many of a core's time.
const LOOKING: u64 = 4000;
/// How often the agent tries to reach an absent Oracle.
const RETRY: Time = Time::from_secs(1);
/// What the kernel cannot take back from an open connection is said, too.
const RESTORED: &str = "all settings were restored; connections that are open keep some until they close (initial window, pacing, ECN), and an RTO \
                        below their own minimum until their RTTs vary";
/// CUEs that are accepted before anything is set.
const BATCH: usize = 1024;
/// From hosts whose data came in so many milliseconds data comes now.
const HEARD_MS: u32 = 1000;
/// How long to wait for an earlier agent to end.
const PATIENCE: Time = Time::from_secs(10);

/// Whether what the operator configured fits a report.
fn check(config: &Config) -> Result<(), AgentError> {
    let host = Host {
        name: config.identity.host.clone(),
        rack: config.rack.clone(),
        labels: config.identity.labels.clone(),
        ..Host::default()
    };
    host.check().map_err(AgentError::Host)?;
    let mut racks =
        config.racks.iter().map(|(_, rack)| Host { name: "-".into(), rack: rack.clone(), ..Host::default() });
    racks.try_for_each(|rack| rack.check()).map_err(AgentError::Host)?;
    if config.links.len() * 2 > LINKS_MAX {
        return Err(AgentError::Host(format!("{} links; at most {}", config.links.len(), LINKS_MAX / 2)));
    }
    match config.links.iter().find(|(interface, _)| traffic(interface).is_none()) {
        Some((missing, _)) => Err(AgentError::Host(format!(
            "--link {missing}: there is no such interface here; there are {}",
            interfaces().join(", ")
        ))),
        None => Ok(()),
    }
}

/// Runs the agent until `stop`. `say` gets each event as a line.
///
/// # Errors
/// It cannot start or continue. Settings are restored then, as they are when it is stopped.
pub fn run(mut config: Config, stop: &dyn Fn() -> bool, say: &mut dyn FnMut(&str)) -> Result<(), AgentError> {
    if has_another_clock() {
        return Err(AgentError::Clock);
    }
    check(&config)?;
    if !Rights::effective().has(Capability::NetAdmin) {
        return Err(AgentError::NotRoot);
    }
    let mut lives = lock(&config.places)?;
    // the guardian of an agent that has just died may still be restoring
    let clock = Clock::begin();
    if lives.is_none() {
        say(&format!(
            "{}: another agent is running: waiting for {PATIENCE} for it to end",
            config.places.state.display()
        ));
    }
    while lives.is_none() && clock.now() < PATIENCE && !stop() {
        thread::sleep(Duration::from_millis(50));
        lives = lock(&config.places)?;
    }
    let Some(_lock) = lives else {
        // stopped while it waited: nothing was begun
        return if stop() { Ok(()) } else { Err(AgentError::Running(config.places.state.clone())) };
    };
    let mut mind = Mind::new(&config)?;
    let metrics = config.metrics.map(Server::bind).transpose()?;
    if let Some(server) = &metrics {
        say(&format!("metrics at http://{}/metrics", server.address()));
    }
    mind.metrics = metrics;
    // the guardian would say the same of a damaged one
    Journal::open(&config.places.journal())?;
    let guardian = guardian(&mut config)?;
    let (mut tuner, notes) = Tuner::take_over(&config)?;
    config.means = tuner.means();
    notes.iter().map(String::as_str).chain(tuner.lacking()).for_each(&mut *say);
    say(&format!("{}: taking CUEs from {}", config.identity.host, config.bus));
    let mut outcome = live(&config, &mut mind, &mut tuner, stop, say);
    while outcome.is_ok() && !stop() {
        // the clock is old: start with a new one, and with an agent that has no times of the old
        outcome = Mind::new(&config).and_then(|fresh| {
            mind = Mind { metrics: mind.metrics.take(), ..fresh };
            tuner.apply(&Plan::default())?;
            live(&config, &mut mind, &mut tuner, stop, say)
        });
    }
    let has_set = tuner.counts().is_ok_and(|counts| counts.is_some_and(|counts| counts.applied > 0));
    let restored = tuner.restore();
    let _ = fs::remove_file(config.places.status());
    if let Some(mut guardian) = guardian {
        // so that it finds nothing to restore
        drop(guardian.stdin.take());
        let _ = guardian.wait();
    }
    outcome?;
    let (notes, left) = restored?;
    for note in &notes {
        say(note);
    }
    if let Some(left) = left {
        return Err(AgentError::Left(left));
    }
    say(if has_set { RESTORED } else { "all settings were restored" });
    Ok(())
}

/// As [`run`], but only prints, by `print`, what would be changed.
///
/// # Errors
/// A key that cannot be read.
pub fn dry_run(config: &Config, stop: &dyn Fn() -> bool, print: &mut dyn FnMut(&str)) -> Result<(), AgentError> {
    let mut mind = Mind::new(config)?;
    if config.means.bpf() {
        print(&format!("would attach the BPF program to {}", config.cgroup.display()));
    }
    while !stop() && !mind.life.clock().is_old() {
        let now = mind.life.clock().now();
        let _ = mind.connect(config, now, &mut |line| print(line));
        let _ = mind.reach(&mut |line| print(line));
        let mut changed = mind.listen(Duration::from_millis(250), &mut |line| print(line));
        changed |= mind.life.end();
        if !changed {
            continue;
        }
        let plan = mind.plan(config)?;
        print(&format!("epoch {}: would set", mind.life.highest().unwrap_or_default()));
        let rules = plan.rules.iter().map(|rule| format!("  connections {:?}: {:?}", rule.sessions, rule.tuning));
        rules.for_each(|line| print(&line));
        if config.means.routes() {
            Journal::foresee(&plan)?.iter().for_each(|line| print(&format!("  {line}")));
        }
        plan.notes.iter().for_each(|note| print(&format!("  {note}")));
        if plan == Plan::default() {
            print("  nothing: the host has all of these settings");
        }
    }
    Ok(())
}

/// Starts the guardian, which undoes settings if this process dies: it reads from a pipe that closes with us.
fn guardian(config: &mut Config) -> Result<Option<Child>, AgentError> {
    let Some(command) = &mut config.guardian else { return Ok(None) };
    command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().map(Some).map_err(AgentError::Guardian)
}

/// The agent's state.
struct Mind {
    life: Life,
    bus: Option<Box<dyn Bus>>,
    keys: KeyFile,
    /// Whether its server was reached when that was last looked at, and why not, as was said.
    reached: bool,
    explained: Reasons,
    /// Why what guards have reverted is not on disk, as was said.
    forgetful: Reasons,
    retry_at: Time,
    counters: Counters,
    host: Host,
    names: Names,
    /// Connections that ended in the current period, since the last report.
    ended: Ended,
    /// Those of earlier periods that are not reported yet, with the epochs of these.
    earlier: VecDeque<(u64, Ended)>,
    open: Vec<Connection>,
    routes: Table,
    /// When connections and routes are scanned next.
    look_at: Time,
    /// The same while nothing is sent or received.
    look_at_still: Time,
    traffic: BTreeMap<String, (Time, Traffic)>,
    /// As reported last.
    links: Vec<Link>,
    notes: Vec<String>,
    /// Of these, what the rules ask for and this host cannot do.
    refused: Vec<String>,
    /// When the status was written, and its content.
    written: Option<(Time, Status)>,
    metrics: Option<Server>,
}

impl Mind {
    fn new(config: &Config) -> Result<Mind, AgentError> {
        let (file, keys) = KeyFile::read(&config.key)?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let host = Host {
            name: config.identity.host.clone(),
            rack: config.rack.clone(),
            labels: config.identity.labels.clone(),
            cc: default_algorithm(),
            ..Host::default()
        };
        Ok(Mind {
            life: Life::begin(&config.places, config.identity.clone(), keys, Clock::begin(), boot.trim())?,
            bus: None,
            keys: file,
            reached: false,
            explained: Reasons::default(),
            forgetful: Reasons::default(),
            retry_at: Time::ZERO,
            counters: Counters::default(),
            host,
            names: Names::default(),
            ended: Ended::default(),
            earlier: VecDeque::new(),
            open: Vec::new(),
            routes: Table::default(),
            look_at: Time::ZERO,
            look_at_still: Time::ZERO,
            traffic: BTreeMap::new(),
            links: Vec::new(),
            notes: Vec::new(),
            refused: Vec::new(),
            written: None,
            metrics: None,
        })
    }

    /// Tries to reach the Oracle, if not connected; whether it succeeded.
    fn connect(&mut self, config: &Config, now: Time, say: &mut dyn FnMut(&str)) -> bool {
        if self.bus.is_some() || now < self.retry_at {
            return false;
        }
        let first = self.retry_at == Time::ZERO;
        self.retry_at = now + RETRY;
        match config.bus.connect() {
            Ok(bus) => {
                self.bus = Some(bus);
                return true;
            }
            Err(error) if first => say(&format!("no Oracle yet: {error}")),
            Err(_) => {}
        }
        false
    }

    /// Whether the Oracle's end has just been reached. A bus between machines finds its server by itself.
    fn reach(&mut self, say: &mut dyn FnMut(&str)) -> bool {
        let Some(bus) = &self.bus else {
            self.reached = false;
            return false;
        };
        let (before, reached) = (std::mem::replace(&mut self.reached, bus.is_connected()), bus.is_connected());
        match (before, reached, bus.trouble()) {
            (false, true, _) => {
                say("connected to the Oracle");
                self.explained.clear();
            }
            (true, false, _) => say("the connection to the Oracle is lost: its CUEs remain until they expire"),
            (false, false, Some(why)) if self.explained.is_news(&why) => {
                say(&format!("no server of the fleet yet: {why}"));
            }
            _ => {}
        }
        reached && !before
    }

    /// Takes the messages that arrive within `wait`; whether there is something new to set.
    fn listen(&mut self, wait: Duration, say: &mut dyn FnMut(&str)) -> bool {
        let mut changed = false;
        let Some(bus) = &mut self.bus else {
            thread::sleep(wait);
            return false;
        };
        for taken in 0..BATCH {
            match bus.receive(if taken == 0 { wait } else { Duration::ZERO }) {
                Ok(Some(message)) => {
                    match self.life.take(&message) {
                        Ok(anew) => changed |= anew,
                        Err(policy::CueError::NotOurs) => {}
                        // a thousand rejected CUEs must not fill the log
                        Err(error) if self.life.counts().rejected.is_power_of_two() => {
                            say(&format!("CUE rejected ({} so far): {error}", self.life.counts().rejected));
                        }
                        Err(_) => {}
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    if !matches!(error, BusError::Gone) {
                        say(&error.to_string());
                    }
                    say("the connection to the Oracle is lost: its CUEs remain until they expire");
                    self.bus = None;
                    break;
                }
            }
        }
        changed
    }

    fn plan(&mut self, config: &Config) -> io::Result<Plan> {
        self.host.algorithms = available()?;
        let host = Surroundings {
            means: config.means,
            algorithms: &self.host.algorithms,
            needs_ecn: &config.needs_ecn,
            tick: tick(),
            clock: self.life.clock(),
            cgroup: cgroup_name(&config.cgroup, &kernel::cgroup_mounts()),
        };
        Ok(Plan::of(&self.life.rules(), &host, &mut self.names))
    }

    /// Notes what is not set, and says what is new of it.
    fn remark(&mut self, tuner: &Tuner, say: &mut dyn FnMut(&str)) {
        let mut notes = [tuner.notes(), &self.refused].concat();
        notes.sort();
        notes.dedup();
        notes.iter().filter(|note| !self.notes.contains(note)).for_each(|note| say(note));
        self.notes = notes;
    }

    /// Scans all connections and routes, as often as the cost allows; less often while nothing is sent or received, since little can change.
    fn look(&mut self, now: Time, tuner: &Tuner) -> io::Result<()> {
        let is_still = self.counters.is_quiet() && self.host.fan_in == Some(0.0);
        if now < if is_still { self.look_at_still } else { self.look_at } {
            return Ok(());
        }
        let began = processor_time();
        self.open = kernel::connections()?;
        // the agent's connection is not the host's traffic: a server far away, or a busy one, must not decide by its RTT how short T may be
        let own = own_sockets()?;
        // and what is not set is none of the agent's business: neither does it differ, nor do its RTTs count
        let inside = tuner.cgroups();
        let is_inside = |cgroup: Option<u64>| {
            inside.as_ref().is_none_or(|inside| cgroup.is_none_or(|cgroup| inside.contains(&cgroup)))
        };
        let is_other = |connection: &mut Connection| own.contains(&connection.inode) || !is_inside(connection.cgroup);
        let others = self.open.extract_if(.., is_other).count();
        self.counters.leave_out(others as u64, &mut self.host);
        // a router has a million routes, so only when they are needed and not known
        let asked = tuner.routes().is_none() && self.life.rules().iter().any(|rule| rule.set.initial_cwnd.is_some());
        self.host.algorithms = available()?;
        self.routes = if asked { table()? } else { Table::default() };
        // CPU time, not elapsed time: a pause of the host would delay the next scan by a minute
        let took = processor_time().saturating_sub(began);
        self.look_at = now + LOOK.max(took * LOOKING);
        self.look_at_still = self.look_at.max(now + WRITTEN);
        self.host.srtt_us = rtt_steps(&self.open);
        self.host.fan_in = Some(heard(&self.open) as f64);
        Ok(())
    }

    /// The report on connections that have `ended`, in the period of `of_epoch`.
    fn report(&mut self, now: Time, (ended, of_epoch): (&Ended, Option<u64>), tuner: &Tuner) -> Report {
        let seen = Seen { open: &self.open, ended, routes: tuner.routes().unwrap_or(&self.routes) };
        let in_force = in_force(&self.life.rules(), now, &seen, &mut self.names);
        Report {
            host: self.measured(ended),
            links: self.links.clone(),
            epoch: self.life.highest(),
            of_epoch,
            question: self.life.question(),
            counts: self.life.counts(),
            in_force,
            reverted: Tripped::of(self.life.reverted(), now),
            telemetry: ended.telemetry(),
            left_out: 0,
            notes: self.notes.iter().cloned().chain(tuner.lacking().map(str::to_string)).collect(),
        }
    }

    /// What was measured of the host itself. Where connections are short, none may be open just now: RTTs are then those of what has `ended`.
    fn measured(&self, ended: &Ended) -> Host {
        let mut host = Host { fct: ended.all().percentiles(), ..self.host.clone() };
        if host.srtt_us.is_empty() && host.live_flows > Some(0.0) {
            host.srtt_us = ended.rtts().steps();
        }
        host
    }

    /// Measures the host's links, from the last report to this one.
    fn measure_links(&mut self, config: &Config, now: Time) {
        self.links = config.links.iter().flat_map(|link| self.link(now, link)).collect();
    }

    /// Ends the count of connections at a beacon.
    fn begin_period(&mut self, of_epoch: u64) {
        self.earlier.push_back((of_epoch, std::mem::take(&mut self.ended)));
        if self.earlier.len() > WAITING_MAX {
            self.earlier.pop_front();
        }
    }

    /// Reads the Oracle's keys anew where their file has changed.
    fn trust(&mut self, say: &mut dyn FnMut(&str)) {
        match self.keys.anew() {
            None => {}
            Some(Ok(keys)) => {
                self.life.trust(keys);
                say("the Oracle's keys were replaced");
            }
            Some(Err(error)) => say(&format!("the Oracle's keys remain as they were: {error}")),
        }
    }

    /// Leaves an Oracle that has announced periods and says nothing any more: it may be stopped, and another in its place.
    fn leave_the_silent(&mut self, config: &Config, say: &mut dyn FnMut(&str)) {
        if self.bus.is_some() && !config.bus.is_shared() && self.life.is_left_alone(SILENCE) {
            say(&format!("the Oracle was silent for {SILENCE} periods: looking for another"));
            self.bus = None;
        }
    }

    /// Both directions of an interface, since the last call.
    fn link(&mut self, now: Time, link: &(String, Rate)) -> Vec<Link> {
        let Some(traffic) = traffic(&link.0) else { return Vec::new() };
        let Some((then, before)) = self.traffic.insert(link.0.clone(), (now, traffic)) else { return Vec::new() };
        let (_, after) = &self.traffic[&link.0];
        directions(&self.host, link, now.saturating_sub(then), (&before, after))
    }
}

/// Both directions of an interface, of what it had carried before and after so long.
fn directions(
    Host { name: host, rack, .. }: &Host,
    (interface, rate): &(String, Rate),
    took: Time,
    (before, after): (&Traffic, &Traffic),
) -> Vec<Link> {
    let seconds = took.as_secs_f64();
    let share = |bytes: u64| (8.0 * bytes as f64 / (seconds * rate.as_bps() as f64)).clamp(0.0, 1.0);
    let edge = if rack.is_empty() { format!("switch of {host}") } else { rack.clone() };
    let dropped = after.dropped.saturating_sub(before.dropped) as f64;
    let offered = after.packets.saturating_sub(before.packets) as f64 + dropped;
    vec![
        Link {
            name: format!("{host} {interface} out"),
            from: host.clone(),
            to: edge.clone(),
            rate: Some(*rate),
            utilization: Some(share(after.sent.saturating_sub(before.sent))),
            drop_rate: Some(if offered > 0.0 { dropped / offered } else { 0.0 }),
            ..Link::default()
        },
        Link {
            name: format!("{host} {interface} in"),
            from: edge,
            to: host.clone(),
            rate: Some(*rate),
            utilization: Some(share(after.received.saturating_sub(before.received))),
            ..Link::default()
        },
    ]
}

/// How long after a sample of the host's counters the next one is taken.
fn sample_after(is_guarded: bool, is_quiet: bool) -> Time {
    match (is_guarded, is_quiet) {
        (true, false) => SAMPLE,
        (true, true) => SAMPLE_QUIET,
        (false, _) => LOOK,
    }
}

fn live(
    config: &Config,
    mind: &mut Mind,
    tuner: &mut Tuner,
    stop: &dyn Fn() -> bool,
    say: &mut dyn FnMut(&str),
) -> Result<(), AgentError> {
    let (mut sample_at, mut look_at, mut watched) = (Time::ZERO, Time::ZERO, 0);
    let mut fetch_at = Time::NEVER;
    let clock = mind.life.clock();
    while !stop() && !clock.is_old() {
        let now = clock.now();
        if mind.connect(config, now, say) {
            mind.life.ask(bus::random()?);
        }
        if mind.reach(say) {
            mind.life.reach();
            // the earlier the sample, the sooner CUEs are accepted; the connection to the Oracle is left out of the first report too
            (sample_at, look_at) = (now, now);
            (mind.look_at, mind.look_at_still) = (now, now);
        }
        let next = mind.life.next().min(sample_at).min(fetch_at).min(tuner.next(now));
        let mut changed = mind.listen(Duration::from_nanos(next.saturating_sub(now).as_ns()), say);
        let now = clock.now();
        // before anything of a new period is set
        let fetched = fetch(config, mind, tuner)?;
        fetch_at = if fetched > FETCHED_MANY { now + FETCH_SOON } else { Time::NEVER };
        if let Some(of_epoch) = mind.life.begin_period() {
            mind.begin_period(of_epoch);
        }
        mind.leave_the_silent(config, say);
        mind.trust(say);
        let guarded = mind.life.is_guarded();
        let in_force = mind.life.rules().len();
        // a rule that is new, or was withheld, is not to blame for earlier losses
        if guarded && in_force > watched {
            mind.counters.begin_guarding();
            sample_at = now;
        }
        watched = if guarded { in_force } else { 0 };
        let is_due = mind.life.timetable().is_due(now);
        // so that on an idle host samples and reports share wake-ups, which cost more than either
        if now >= sample_at || is_due {
            mind.counters.sample(now, &mut mind.host)?;
            sample_at = now + sample_after(guarded, mind.counters.is_quiet());
            let tripped = mind.life.on_measured(&mind.host);
            if tripped {
                let (retransmitted, sent) = (mind.host.retransmitted_segments, mind.host.sent_segments);
                say(&format!(
                    "a guard has reverted: {} of {} segments retransmitted",
                    retransmitted.unwrap_or(0),
                    sent.unwrap_or(0)
                ));
            }
            changed |= tripped;
        }
        if mind.life.settle(changed)? {
            set(config, mind, tuner, say)?;
        }
        if tuner.follow(now, processor_time)? {
            mind.remark(tuner, say);
        }
        if let Some(trouble) = mind.life.trouble().filter(|trouble| mind.forgetful.is_news(trouble)) {
            say(&format!(
                "an agent that is started after this one would not know what its guard has reverted: {trouble}"
            ));
        }
        if is_due || now >= look_at {
            look_at = now + LOOK;
            look(config, mind, tuner, now)?;
        }
        if is_due {
            report(config, mind, tuner, now, say);
        }
    }
    Ok(())
}

/// Takes the records of connections that have ended; how many.
fn fetch(config: &Config, mind: &mut Mind, tuner: &Tuner) -> Result<usize, AgentError> {
    let Mind { ended, names, .. } = mind;
    let mut fetched = 0;
    tuner.ended(|record| {
        ended.add(&record, names, &config.racks);
        fetched += 1;
    })?;
    Ok(fetched)
}

/// Sets what the rules say.
fn set(config: &Config, mind: &mut Mind, tuner: &mut Tuner, say: &mut dyn FnMut(&str)) -> Result<(), AgentError> {
    let plan = mind.plan(config)?;
    tuner.apply(&plan)?;
    mind.refused = plan.notes;
    mind.remark(tuner, say);
    (mind.look_at, mind.look_at_still) = (Time::ZERO, Time::ZERO);
    Ok(())
}

/// Writes the status file.
fn look(config: &Config, mind: &mut Mind, tuner: &Tuner, now: Time) -> Result<(), AgentError> {
    mind.look(now, tuner)?;
    let (ended, of_epoch) = (std::mem::take(&mut mind.ended), mind.life.timetable().epoch());
    let report = mind.report(now, (&ended, of_epoch), tuner);
    mind.ended = ended;
    let counts = tuner.counts()?.unwrap_or_default();
    let clock = mind.life.clock();
    let since_boot_ms = |at: Time| clock.boot_time(at).as_millis() as u64;
    let status = Status {
        running: true,
        connected: mind.bus.as_ref().is_some_and(|bus| bus.is_connected()),
        applied: counts.applied,
        reverted: counts.reverted,
        ecn_refused: counts.ecn_refused,
        failed: counts.failed,
        records_lost: counts.records_lost,
        report: Some(report),
        written_ms: since_boot_ms(now),
        heard_ms: mind.life.heard().map(since_boot_ms),
        period: mind.life.period(),
    };
    if let Some(server) = &mind.metrics {
        server.publish(status.page());
    }
    // writing a file each second is a good part of an idle agent's cost
    let still = status.without_time();
    if mind.written.as_ref().is_none_or(|(at, before)| *at + WRITTEN <= now || *before != still) {
        status.write(&config.places)?;
        mind.written = Some((now, still));
    }
    Ok(())
}

/// Reports: first on earlier periods, then on the current one if that is due.
fn report(config: &Config, mind: &mut Mind, tuner: &Tuner, now: Time, say: &mut dyn FnMut(&str)) {
    mind.measure_links(config, now);
    while let Some((of_epoch, ended)) = mind.earlier.pop_front() {
        if !send(mind, tuner, (now, &ended, Some(of_epoch)), say) {
            mind.earlier.push_front((of_epoch, ended));
            break;
        }
        mind.life.timetable().reported(now);
    }
    let is_sent = !mind.life.timetable().is_due(now);
    let (ended, of_epoch) = (std::mem::take(&mut mind.ended), mind.life.timetable().epoch());
    if !mind.life.timetable().has_current(now) {
        mind.ended = ended;
        // what the host measured of itself goes without it
        if !is_sent && mind.earlier.is_empty() {
            send(mind, tuner, (now, &Ended::default(), None), say);
        }
    } else if !send(mind, tuner, (now, &ended, of_epoch), say) {
        mind.ended = ended;
    }
    mind.life.timetable().reported(now);
}

/// Sends a report on what has ended; `false`: it is to be sent later. Without an Oracle it is lost.
fn send(
    mind: &mut Mind,
    tuner: &Tuner,
    (now, ended, of_epoch): (Time, &Ended, Option<u64>),
    say: &mut dyn FnMut(&str),
) -> bool {
    let report = mind.report(now, (ended, of_epoch), tuner);
    let Some(bus) = &mut mind.bus else { return true };
    mind.life.highest().into_iter().for_each(|epoch| bus.heard(epoch));
    match bus.send(&report.to_bytes()) {
        // a busy Oracle gets it with the next report, events until then included
        Err(BusError::Full) => return false,
        Err(BusError::Gone) => mind.bus = None,
        Err(error) => say(&error.to_string()),
        Ok(()) => {}
    }
    true
}

/// Smoothed round-trip times, in microseconds, and how many connections are at most there.
fn rtt_steps(open: &[Connection]) -> Vec<(u32, u32)> {
    let mut steps = RttSteps::default();
    for connection in open {
        steps.add(connection.srtt_us);
    }
    steps.steps()
}

/// Inodes of this process's sockets (proc_pid_fd(5)), as socket diagnosis names them.
fn own_sockets() -> io::Result<BTreeSet<u32>> {
    let mut own = BTreeSet::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        // the folder itself is open only while it is read
        let Ok(target) = fs::read_link(entry?.path()) else { continue };
        let inode =
            target.to_str().and_then(|name| name.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok());
        // socket diagnosis cuts them to 32 bits
        own.extend(inode.map(|inode| inode as u32));
    }
    Ok(own)
}

/// Other hosts from which data has just come.
fn heard(open: &[Connection]) -> usize {
    let just = |connection: &&Connection| connection.heard_ms.is_some_and(|ms| ms <= HEARD_MS);
    let from = open.iter().filter(just).map(|connection| connection.remote).filter(|remote| !remote.is_loopback());
    from.collect::<BTreeSet<_>>().len()
}

/// CPU time of this thread.
fn processor_time() -> Time {
    let had = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Time::from_secs(had.tv_sec.cast_unsigned()) + Time::from_ns(had.tv_nsec.cast_unsigned())
}

/// Whether a time namespace shifts the time since boot (time_namespaces(7)).
fn has_another_clock() -> bool {
    is_shifted(&fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default())
}

/// The same by the offsets of the namespace.
fn is_shifted(offsets: &str) -> bool {
    let boot = offsets.lines().find(|line| line.starts_with("boottime"));
    boot.is_some_and(|line| line.split_whitespace().skip(1).any(|number| number != "0"))
}

/// The kernel's clock tick.
fn tick() -> Time {
    let resolution = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    Time::from_ns(resolution.tv_nsec as u64)
}

/// The default algorithm of connections, by its name in policies.
fn default_algorithm() -> String {
    name_in_policies(&fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default())
}

/// The name in policies of an algorithm that is in the kernel.
fn name_in_policies(in_kernel: &str) -> String {
    match in_kernel.trim() {
        "reno" => "newreno".to_string(),
        name => name.strip_prefix(NAME_PREFIX).unwrap_or(name).to_string(),
    }
}

/// The algorithms that connections can be given, as many as a report holds.
fn available() -> io::Result<Vec<String>> {
    let mut names = kernel::algorithms()?;
    names.truncate(ALGORITHMS_MAX);
    Ok(names)
}

/// A cgroup as policies write it, from where it is mounted.
fn cgroup_name(folder: &Path, mounts: &[PathBuf]) -> String {
    let below = mounts.iter().filter_map(|root| folder.strip_prefix(root).ok());
    let below = below.min_by_key(|below| below.as_os_str().len()).unwrap_or(Path::new(""));
    format!("/{}", below.display())
}
