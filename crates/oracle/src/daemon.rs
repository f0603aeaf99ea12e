//! The Oracle's loop.

use crate::gather::{Gathered, HOSTS_MAX};
use crate::memory::Memory;
use bus::files::{FileError, secret_key};
use bus::{Bus, BusCounts, BusError, Clock, UnixOracle};
use policy::{Decision, History, NetworkView, Oracle, Policy, VerdictReport};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};
use units::Time;

/// The longest wait before it is looked whether to stop.
const STEP: Duration = Duration::from_millis(200);
/// A view that has not been written for so many periods is of another time.
const STALE: u32 = 2;

/// What an Oracle is told.
#[derive(Debug)]
pub struct Config {
    /// By which it decides.
    pub policy: Policy,
    /// The text of its file.
    pub text: String,
    /// Its secret.
    pub key: PathBuf,
    /// Where agents reach it.
    pub socket: PathBuf,
    /// Its folder: the last epoch, and how far the rollout has come.
    pub state: PathBuf,
    /// What else is known of the network, written anew by somebody each period.
    pub view: Option<PathBuf>,
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

/// Decides and sends, a period after the other, until `stop` says so. `decided` is handed each decision and what can be said of the
/// policy so far, the first a period after the start; `say` what else there is to tell.
///
/// # Errors
/// It cannot begin, or its epoch cannot be stored; what it has sent ends by itself.
pub fn run(
    config: Config,
    stop: &dyn Fn() -> bool,
    decided: &mut dyn FnMut(&Decision, &VerdictReport) -> io::Result<()>,
    say: &mut dyn FnMut(&str),
) -> Result<(), OracleError> {
    let key = secret_key(&config.key)?;
    let (mut memory, history) = Memory::open(&config.state, config.text)?;
    let mut bus = UnixOracle::listen(&config.socket)?;
    let period = config.policy.period;
    let mut oracle = Oracle::new(config.policy, key, history);
    say(&format!("{}: T = {period}, agents at {}", oracle.policy().name, config.socket.display()));
    if let Some(ended) = memory.ended() {
        say(ended);
    }
    let mut gathered = Gathered::default();
    let (mut counts, mut refused, mut trouble) = (BusCounts::default(), 0, None);
    let mut clock = Clock::begin();
    let mut next = clock.now() + period;
    while !stop() {
        if clock.is_old() {
            let (policy, key) = (oracle.policy().clone(), secret_key(&config.key)?);
            oracle = Oracle::new(policy, key, History::after(oracle.epoch()).resume(oracle.progress()));
            (clock, gathered) = (Clock::begin(), Gathered::default());
            next = clock.now() + period;
        }
        let now = clock.now();
        let wait = Duration::from_nanos(next.saturating_sub(now).as_ns()).min(STEP);
        if let Some(message) = bus.receive(wait)? {
            gathered.take(clock.now(), &message);
        }
        // agents that come all at once are answered all at once
        for _ in 0..HOSTS_MAX {
            let Some(message) = bus.receive(Duration::ZERO)? else { break };
            gathered.take(clock.now(), &message);
        }
        let questions = gathered.take_questions();
        if !questions.is_empty() {
            bus.send(&oracle.answer(&questions))?;
        }
        let now = clock.now();
        if now < next {
            continue;
        }
        // a machine that slept through some periods does not make up for them
        next = if next + period > now { next + period } else { now + period };
        let base = base(config.view.as_deref(), period);
        let told = base.as_ref().err().cloned();
        if told != trouble {
            if let Some(reason) = &told {
                say(reason);
            }
            trouble = told;
        }
        let view = gathered.view(now, period, with_time_of_day(base.unwrap_or_default()));
        let (decision, messages) = oracle.turn(&view, gathered.take_arms());
        let treated = view.hosts.iter().enumerate().filter(|(i, _)| oracle.treats(*i));
        gathered.treat(treated.map(|(_, host)| host.name.as_str()));
        memory.store(&oracle)?;
        for message in &messages {
            bus.send(message)?;
        }
        decided(&decision, &oracle.verdict())?;
        let seen = bus.counts();
        if (seen, gathered.refused()) != (counts, refused) {
            let BusCounts { peers, slow, long, refused } = seen;
            let none = gathered.refused();
            say(&format!(
                "{peers} agents; {slow} dropped that did not read, {long} that said too much, {refused} turned away, {none} reports \
                 refused"
            ));
        }
        (counts, refused) = (seen, gathered.refused());
    }
    Ok(())
}

/// What else is known of the network, or why that is not known.
fn base(path: Option<&Path>, period: Time) -> Result<NetworkView, String> {
    let Some(path) = path else { return Ok(NetworkView::default()) };
    let name = path.display();
    let unreadable = |error: io::Error| format!("{name}: {error}; links are not known");
    let about = fs::metadata(path).map_err(unreadable)?;
    let age = about.modified().and_then(|at| at.elapsed().map_err(io::Error::other)).unwrap_or_default();
    if age > Duration::from_nanos(period.as_ns()) * STALE {
        return Err(format!("{name} was not written for {STALE} periods: what it says of links no longer counts"));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    NetworkView::from_json(&text).map_err(|error| format!("{name}:{error}; links are not known"))
}

/// Hour and weekday, in UTC, unless they are known.
fn with_time_of_day(view: NetworkView) -> NetworkView {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let hour = (seconds % 86_400) as f64 / 3600.0;
    // the first of January 1970 was a Thursday, the fourth day of the week
    let weekday = ((seconds / 86_400 + 3) % 7 + 1) as u8;
    NetworkView { hour: view.hour.or(Some(hour)), weekday: view.weekday.or(Some(weekday)), ..view }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_view_that_nobody_writes_any_more_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("view.json");
        fs::write(&path, r#"{"links": [{"name": "a", "utilization": 0.5}]}"#).unwrap();
        assert_eq!(base(Some(&path), Time::from_secs(60)).unwrap().links.len(), 1);
        let old = SystemTime::now() - Duration::from_secs(121);
        File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        assert!(base(Some(&path), Time::from_secs(60)).unwrap_err().contains("was not written for 2 periods"));
        fs::write(&path, "{").unwrap();
        assert!(base(Some(&path), Time::from_secs(60)).unwrap_err().contains("view.json:1:"));
        assert!(base(Some(&folder.path().join("none")), Time::from_secs(60)).is_err());
        assert_eq!(base(None, Time::from_secs(60)), Ok(NetworkView::default()));
    }
}
