//! The thread that asks the Oracle, once for all browsers.
//!
//! Its status is asked for twice a period, at least ten times less than a second apart and at least once a second; its lists when there was a
//! decision. Over the servers of a fleet a member may send so many messages, so there questions are paced.

use crate::board::{Board, now};
use crate::model::{self, HOSTS_MAX, LINKS_MAX, POINTS_MAX, Seen};
use bus::{Address, Ask, AskError, BoardList, Bus, Clock, HostsQuery, Outcome, Request};
use oracle::Overview;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;
use units::Time;

/// Bounds of the time between two questions for the status.
const OFTEN: (Time, Time) = (Time::from_ms(100), Time::from_secs(1));
/// How often an Oracle that is not there is looked for.
const RETRY: Time = Time::from_secs(1);
/// How long it may take for an answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// The longest wait before it is looked whether to stop.
const STEP: Time = Time::from_ms(50);
/// Of a fleet's member: questions at once, and the time for one more; below what the Oracle's budget allows.
const AT_ONCE: u64 = 40;
const ONE_MORE: Time = Time::from_ms(125);
/// Most answers that make one list.
const PARTS_MAX: usize = 1000;

/// What somebody with the token asks for.
pub struct Action {
    /// What.
    pub ask: Ask,
    /// From where.
    pub from: String,
    /// Gets what became of it.
    pub done: oneshot::Sender<Result<Value, String>>,
}

/// Asks the Oracle, and shows what it answers.
pub struct Feed {
    address: Address,
    operator: String,
    board: Arc<Board>,
    clock: Clock,
    bus: Option<Box<dyn Bus>>,
    /// The Oracle knows no boards.
    is_old: bool,
    /// When the next question may be sent, if no earlier one was saved up.
    paced: Time,
    /// When the status is asked for.
    next: Time,
    seen: Seen,
    /// Of the decision whose lists are shown.
    decided: Option<(u64, f64)>,
}

/// Why there is no answer.
enum Failed {
    /// The Oracle says why.
    Refused(String),
    /// It cannot be reached, or does not answer.
    Away(String),
}

impl Feed {
    /// From an Oracle to a board.
    pub fn new(address: Address, operator: String, board: Arc<Board>) -> Feed {
        Feed {
            address,
            operator,
            board,
            clock: Clock::begin(),
            bus: None,
            is_old: false,
            paced: Time::ZERO,
            next: Time::ZERO,
            seen: Seen::default(),
            decided: None,
        }
    }

    /// Asks until `stopped` returns true, or nobody can send actions any more.
    pub fn run(mut self, actions: &Receiver<Action>, stopped: &dyn Fn() -> bool, say: &mut dyn FnMut(&str)) {
        while !stopped() {
            let wait = self.next.saturating_sub(self.clock.now()).min(STEP);
            match actions.recv_timeout(Duration::from_nanos(wait.as_ns())) {
                Ok(action) => self.act(action, say),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.clock.now() >= self.next {
                self.look(say);
            }
        }
    }

    /// Asks for what is new, and shows it.
    fn look(&mut self, say: &mut dyn FnMut(&str)) {
        let (begin, before) = (self.clock.now(), self.seen.trouble.take());
        match self.news() {
            Ok(()) => {
                let period = self.seen.overview.as_ref().map_or(1.0, |overview| overview.period_s);
                let half = Time::from_secs_f64((period / 2.0).clamp(0.0, 3600.0));
                self.next = begin + half.max(OFTEN.0).min(OFTEN.1);
                if before.is_some() {
                    say("the Oracle answers");
                }
            }
            Err(why) => {
                self.next = self.clock.now() + RETRY;
                if before.as_ref() != Some(&why) {
                    say(&format!("no answer of the Oracle: {why}"));
                }
                self.seen.trouble = Some(why);
            }
        }
        self.board.show(self.seen.clone());
    }

    fn news(&mut self) -> Result<(), String> {
        // no list of hosts is wanted here, and none would be one of 128
        let hosts = Some(HostsQuery { limit: 1, ..HostsQuery::default() });
        let mut overview: Overview = self.ask(Ask::Status { hosts }, None).map_err(Failed::words)?;
        self.seen.answered_unix_s = Some(now());
        let decided = Some((overview.epoch, overview.decided_unix_s));
        if decided != self.decided && overview.age_s.is_some() {
            self.lists()?;
            let point = model::point(overview.decided_unix_s, &self.seen.hosts, &self.seen.links);
            if self.seen.series.len() == POINTS_MAX {
                self.seen.series.pop_front();
            }
            self.seen.series.push_back(point);
            self.decided = decided;
            self.seen.decided_unix_s = overview.age_s.map(|age| now() - age);
        }
        // it grows all the time, and browsers have a clock of their own
        overview.age_s = overview.age_s.map(|_| 0.0);
        (overview.host_lines, overview.links, overview.decisions) = (Vec::new(), Vec::new(), Vec::new());
        self.seen.overview = Some(overview);
        Ok(())
    }

    /// Asks for the lists of a decision.
    fn lists(&mut self) -> Result<(), String> {
        if !self.is_old {
            match self.list(BoardList::Hosts, HOSTS_MAX) {
                Ok(board) => {
                    self.seen.hosts = model::hosts(board.hosts, board.total);
                    let links = self.list(BoardList::Links, LINKS_MAX).map_err(Failed::words)?;
                    self.seen.links = model::links(links.links, links.total);
                    self.seen.spans = self.list(BoardList::Spans, usize::MAX).map_err(Failed::words)?.spans;
                    self.seen.events = self.list(BoardList::Events, usize::MAX).map_err(Failed::words)?.events;
                    self.seen.note = beyond(self.seen.hosts.total, self.seen.links.total);
                    return Ok(());
                }
                Err(Failed::Refused(_)) => self.is_old = true,
                Err(Failed::Away(why)) => return Err(why),
            }
        }
        let hosts = Some(HostsQuery::default());
        let overview: Overview = self.ask(Ask::Status { hosts }, None).map_err(Failed::words)?;
        self.seen.hosts = model::hosts(overview.host_lines, overview.hosts_matched);
        self.seen.links = model::links(overview.links, overview.links_total);
        self.seen.note = Some(
            "This Oracle is of an earlier version: some hosts and the busiest links are shown, and no timeline."
                .to_string(),
        );
        Ok(())
    }

    /// A list, of which at most so many entries.
    fn list(&mut self, list: BoardList, most: usize) -> Result<oracle::Board, Failed> {
        let mut whole = oracle::Board::default();
        for _ in 0..PARTS_MAX {
            let from = length(&whole);
            let part: oracle::Board = self.ask(Ask::Board { list, from }, None)?;
            let moved = matches!(list, BoardList::Spans | BoardList::Events) && part.epoch != whole.epoch;
            if from > 0 && (part.total != whole.total || moved) {
                // a host came or went in between, or there was a decision
                whole = oracle::Board::default();
                continue;
            }
            let more = length(&part);
            (whole.total, whole.epoch) = (part.total, part.epoch);
            whole.hosts.extend(part.hosts);
            whole.links.extend(part.links);
            whole.spans.extend(part.spans);
            whole.events.extend(part.events);
            if more == 0 || length(&whole) >= whole.total.min(most) {
                whole.hosts.truncate(most);
                whole.links.truncate(most);
                return Ok(whole);
            }
        }
        Err(Failed::Away("the Oracle's lists change faster than they can be read".to_string()))
    }

    /// Does what somebody with the token asks for.
    fn act(&mut self, action: Action, say: &mut dyn FnMut(&str)) {
        let Action { ask, from, done } = action;
        let what = match &ask {
            Ask::Pause { .. } => "pause",
            Ask::Resume => "resume",
            Ask::Apply { .. } => "roll back",
            _ => "compare",
        };
        let outcome = self.ask::<Value>(ask, Some(&from)).map_err(Failed::words);
        let became = outcome.as_ref().map_or_else(|why| format!("refused: {why}"), |_| "done".to_string());
        say(&format!("{what}, asked for from {from}: {became}"));
        // the browser may be gone
        let _ = done.send(outcome);
        self.next = Time::ZERO;
    }

    /// Asks, and connects before that where it is not connected. `from`: where the browser is, for the audit log.
    fn ask<T: DeserializeOwned>(&mut self, ask: Ask, from: Option<&str>) -> Result<T, Failed> {
        self.pace();
        if self.bus.is_none() {
            self.is_old = false;
            self.bus = Some(self.address.connect().map_err(|error| Failed::Away(error.to_string()))?);
        }
        let Some(bus) = &mut self.bus else { return Err(Failed::Away("there is no connection".to_string())) };
        let by = from.map_or_else(|| self.operator.clone(), |from| format!("{}, by dash from {from}", self.operator));
        let request = Request::new(by, ask).map_err(|error| Failed::Away(error.to_string()))?;
        let outcome = match bus::ask(&mut **bus, &request, PATIENCE) {
            Ok(outcome) => outcome,
            Err(error) => {
                let trouble = bus.trouble();
                if matches!(error, AskError::Bus(_)) {
                    self.bus = None;
                }
                return Err(Failed::Away(trouble.unwrap_or_else(|| error.to_string())));
            }
        };
        match outcome {
            Outcome::Answer(answer) => serde_json::from_value(answer)
                .map_err(|error| Failed::Away(format!("its answer cannot be read: {error}"))),
            Outcome::Refused(refusal) => Err(Failed::Refused(refusal.why)),
        }
    }

    /// Waits as long as a fleet's member has to.
    fn pace(&mut self) {
        if matches!(self.address, Address::Unix(_)) {
            return;
        }
        let now = self.clock.now();
        self.paced = self.paced.max(now.saturating_sub(ONE_MORE * AT_ONCE)) + ONE_MORE;
        thread::sleep(Duration::from_nanos(self.paced.saturating_sub(now).as_ns()));
    }
}

impl Failed {
    fn words(self) -> String {
        match self {
            Failed::Refused(why) | Failed::Away(why) => why,
        }
    }
}

fn length(board: &oracle::Board) -> usize {
    board.hosts.len() + board.links.len() + board.spans.len() + board.events.len()
}

/// What is not shown of so many hosts and links.
fn beyond(hosts: usize, links: usize) -> Option<String> {
    let cut =
        |what: &str, there: usize, most: usize| (there > most).then(|| format!("{most} of {there} {what} are shown."));
    let words: Vec<String> =
        [cut("hosts", hosts, HOSTS_MAX), cut("links", links, LINKS_MAX)].into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(" "))
}
