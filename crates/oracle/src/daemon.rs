//! The Oracle's loop.

use crate::gather::{Gathered, HOSTS_MAX, Intake};
use crate::links::{Links, MeasurementIntake};
use crate::memory::Memory;
use bus::files::{FileError, secret_key};
use bus::{Address, BusCounts, BusError, Clock, Measurement, Received};
use policy::{Decision, History, NetworkView, Oracle, Policy, VerdictReport, Zone};
use serde::Serialize;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};
use units::Time;

/// The longest wait before it is looked whether to stop.
const STEP: Duration = Duration::from_millis(200);
/// Periods after which a view that was not written is ignored.
const STALE: u32 = 2;
/// Longest file of a view, bytes.
const VIEW_MAX: u64 = 64 << 20;

/// What an Oracle needs.
#[derive(Debug)]
pub struct Config {
    /// By which it decides.
    pub policy: Policy,
    /// The text of its file.
    pub text: String,
    /// The secret key.
    pub key: PathBuf,
    /// Where it meets its agents.
    pub bus: Address,
    /// Its folder: the last epoch, and how far the rollout has come.
    pub state: PathBuf,
    /// A view of the network in a file that a collector rewrites each period.
    pub view: Option<PathBuf>,
}

/// How an Oracle is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Agents on the bus.
    pub agents: usize,
    /// Hosts that reported within the last two periods.
    pub hosts: usize,
    /// What the bus has refused.
    #[serde(flatten)]
    pub bus: Refused,
    /// What has become of reports.
    pub reports: Intake,
    /// What has become of collectors' measurements.
    pub measurements: MeasurementIntake,
}

/// What the bus has refused since the Oracle began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Agents that were dropped because they did not read.
    pub slow: u64,
    /// Agents that were dropped because a message was too long.
    pub long: u64,
    /// Processes that were turned away: another user's, or more than the bus has room for.
    pub turned_away: u64,
}

impl Status {
    fn of(counts: BusCounts, gathered: &Gathered, links: &Links) -> Status {
        let BusCounts { peers, slow, long, refused } = counts;
        let bus = Refused { slow, long, turned_away: refused };
        let (hosts, reports, measurements) = (gathered.hosts(), gathered.intake(), links.intake());
        Status { agents: peers, hosts, bus, reports, measurements }
    }

    /// The same without what changes as long as all is well.
    fn trouble(self) -> Status {
        let measurements = MeasurementIntake { taken: 0, ..self.measurements };
        Status { hosts: 0, reports: Intake { taken: 0, ..self.reports }, measurements, ..self }
    }

    /// In a line.
    fn words(self) -> String {
        let Refused { slow, long, turned_away } = self.bus;
        let Intake { refused, hosts_beyond, links_beyond, groups_other, racks_other, .. } = self.reports;
        let measured = self.measurements;
        let counts = [
            (slow, "agents dropped because they did not read"),
            (long, "agents dropped because of too long a message"),
            (turned_away, "processes refused"),
            (refused, "reports refused"),
            (hosts_beyond, "reports refused: too many hosts"),
            (links_beyond, "links ignored: too many"),
            (groups_other, "groups counted as `other`"),
            (racks_other, "pairs of racks counted as `other`"),
            (measured.refused, "measurements refused"),
            (measured.not_allowed, "measurements refused: not from a collector"),
            (measured.collectors_beyond, "measurements refused: too many collectors"),
            (measured.links_beyond, "switches' links ignored: too many"),
            (measured.pairs_beyond, "collectors' pairs of racks ignored: too many"),
        ];
        let agents = format!("{} agents", self.agents);
        let counted = counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
        std::iter::once(agents).chain(counted).collect::<Vec<_>>().join(", ")
    }
}

/// Why an Oracle ends.
#[derive(Debug, thiserror::Error)]
pub enum OracleError {
    /// A key or an epoch.
    #[error(transparent)]
    File(#[from] FileError),
    /// The bus.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The system's.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Decides and sends each period, until `stop` returns true. `decided` is handed each decision, the
/// verdict so far and the Oracle's status, the first a period after the start; `say` a line about anything else.
///
/// # Errors
/// It cannot begin, or its epoch cannot be stored; what it has sent ends by itself.
pub fn run(
    config: Config,
    stop: &dyn Fn() -> bool,
    decided: &mut dyn FnMut(&Decision, &VerdictReport, &Status) -> io::Result<()>,
    say: &mut dyn FnMut(&str),
) -> Result<(), OracleError> {
    let key = secret_key(&config.key)?;
    let (mut memory, history) = Memory::open(&config.state, config.text)?;
    let mut bus = config.bus.listen()?;
    let period = config.policy.period;
    let mut oracle = Oracle::new(config.policy, key, history);
    say(&format!("{}: T = {period}, agents at {}", oracle.policy().name, config.bus));
    if let Some(ended) = memory.ended() {
        say(ended);
    }
    let (mut gathered, mut links) = (Gathered::new(oracle.policy()), Links::default());
    let (mut known, mut trouble) = (Status::default(), None);
    let mut clock = Clock::begin();
    let mut next = clock.now() + period;
    while !stop() {
        if clock.is_old() {
            let (policy, key) = (oracle.policy().clone(), secret_key(&config.key)?);
            oracle = Oracle::new(policy, key, History::after(oracle.epoch()).resume(oracle.progress()));
            (clock, gathered, links) = (Clock::begin(), Gathered::new(oracle.policy()), Links::default());
            next = clock.now() + period;
        }
        let now = clock.now();
        let wait = Duration::from_nanos(next.saturating_sub(now).as_ns()).min(STEP);
        if let Some(message) = bus.receive(wait)? {
            take(clock.now(), &message, &mut gathered, &mut links);
        }
        // agents that connect at the same time get one answer
        for _ in 0..HOSTS_MAX {
            let Some(message) = bus.receive(Duration::ZERO)? else { break };
            take(clock.now(), &message, &mut gathered, &mut links);
        }
        let questions = gathered.take_questions();
        if !questions.is_empty() {
            bus.send(&oracle.answer(&questions))?;
        }
        let now = clock.now();
        if now < next {
            continue;
        }
        // periods that the machine slept through are not made up for
        next = if next + period > now { next + period } else { now + period };
        let base = base(config.view.as_deref(), period);
        let problem = base.as_ref().err().cloned();
        if problem != trouble {
            if let Some(reason) = &problem {
                say(reason);
            }
            trouble = problem;
        }
        links.news().iter().for_each(|line| say(line));
        let base = links.add_to(now, period, base.unwrap_or_default());
        let view = gathered.view(now, period, with_local_time(base, &oracle.policy().time_zone));
        let (decision, messages) = oracle.turn(&view, gathered.take_arms());
        let treated = view.hosts.iter().enumerate().filter(|(i, _)| oracle.treats(*i));
        gathered.treat(treated.map(|(_, host)| host.name.as_str()));
        memory.store(&oracle)?;
        for message in &messages {
            bus.send(message)?;
        }
        let status = Status::of(bus.counts(), &gathered, &links);
        decided(&decision, &oracle.verdict(), &status)?;
        if status.trouble() != known {
            say(&status.words());
        }
        known = status.trouble();
    }
    Ok(())
}

/// A message goes where its kind belongs.
fn take(now: Time, message: &Received, gathered: &mut Gathered, links: &mut Links) {
    if Measurement::is(&message.bytes) {
        links.take(now, &message.from, &message.bytes);
    } else {
        gathered.take(now, &message.bytes);
    }
}

/// What the view's file says of the network, or why it is not used.
fn base(path: Option<&Path>, period: Time) -> Result<NetworkView, String> {
    let Some(path) = path else { return Ok(NetworkView::default()) };
    let name = path.display();
    let unreadable = |error: io::Error| format!("{name}: {error}; links are not known");
    let about = fs::metadata(path).map_err(unreadable)?;
    let age = about.modified().and_then(|at| at.elapsed().map_err(io::Error::other)).unwrap_or_default();
    if age > Duration::from_nanos(period.as_ns()) * STALE {
        return Err(format!("{name} is older than {STALE} periods and is ignored"));
    }
    if about.len() > VIEW_MAX {
        return Err(format!("{name} has {} bytes, of at most {VIEW_MAX}; links are not known", about.len()));
    }
    let mut text = String::new();
    File::open(path).and_then(|file| file.take(VIEW_MAX).read_to_string(&mut text)).map_err(unreadable)?;
    NetworkView::from_json(&text).map_err(|error| format!("{name}:{error}; links are not known"))
}

/// Hour and weekday in the policy's time zone, unless the view has them.
fn with_local_time(view: NetworkView, zone: &Zone) -> NetworkView {
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let local = zone.at(unix_s);
    NetworkView { hour: view.hour.or(Some(local.hour)), weekday: view.weekday.or(Some(local.weekday)), ..view }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_that_is_no_longer_written_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("view.json");
        fs::write(&path, r#"{"links": [{"name": "a", "utilization": 0.5}]}"#).unwrap();
        assert_eq!(base(Some(&path), Time::from_secs(60)).unwrap().links.len(), 1);
        let old = SystemTime::now() - Duration::from_secs(121);
        File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        assert!(base(Some(&path), Time::from_secs(60)).unwrap_err().contains("is older than 2 periods"));
        File::create(&path).unwrap().set_len(VIEW_MAX + 1).unwrap();
        assert!(base(Some(&path), Time::from_secs(60)).unwrap_err().contains("of at most"));
        fs::write(&path, "{").unwrap();
        assert!(base(Some(&path), Time::from_secs(60)).unwrap_err().contains("view.json:1:"));
        assert!(base(Some(&folder.path().join("none")), Time::from_secs(60)).is_err());
        assert_eq!(base(None, Time::from_secs(60)), Ok(NetworkView::default()));
    }
}
