//! What operators ask of a running Oracle.

use crate::OracleError;
use crate::config::Event;
use crate::daemon::{Daemon, Say};
use crate::memory::Pause;
use crate::record::now;
use crate::versions::{Version, hash};
use audit::{Kind, Timestamp};
use bus::{Ask, Outcome, Peer, Received, Refusal, Reply, Request, Role, Target};
use policy::{Comparison, Decided, History, Policy, Progress, decide};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use units::Time;

/// Longest part of a view in an answer, bytes: its quotation marks take two there.
const PART_MAX: usize = 24 * 1024;
/// Digits of a hash that are shown.
const DIGITS: usize = 12;

/// The answer to [`Ask::Show`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The policy in force.
    pub version: ShownVersion,
    /// Its text.
    pub text: String,
    /// Whether and until when nothing is sent.
    pub paused: Option<Paused>,
    /// Those that are kept, the latest first.
    pub versions: Vec<ShownVersion>,
}

/// A policy that is or was in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownVersion {
    /// Its number.
    pub number: u64,
    /// The policy's name.
    pub policy: String,
    /// Its file's.
    pub file: String,
    /// The hash of its text.
    pub hash: String,
    /// Who applied it.
    pub by: String,
    /// When.
    pub at: String,
    /// Whether it is in force.
    pub in_force: bool,
}

/// A pause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// Who.
    pub by: String,
    /// Since when.
    pub at: String,
    /// Until when; `None`: until it is resumed.
    pub until: Option<String>,
}

/// The answer to [`Ask::Diff`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The hash of the policy in force.
    pub against: String,
    /// That of the other.
    pub hash: String,
    /// The other policy's name.
    pub policy: String,
    /// Its file's.
    pub file: String,
    /// What it would change.
    pub comparison: Comparison,
    /// Nothing is sent at present.
    pub paused: bool,
}

/// The answer to [`Ask::Apply`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The policy's name.
    pub policy: String,
    /// The hash of its text.
    pub hash: String,
    /// That of the one before.
    pub before: String,
    /// It was in force already.
    pub unchanged: bool,
    /// The next decision comes within this.
    pub period: Time,
}

/// The answer to [`Ask::Network`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkPart {
    /// The decision that was made by this view; parts of one view have the same.
    pub epoch: u64,
    /// Bytes of the whole text.
    pub length: usize,
    /// This part.
    pub text: String,
}

/// Answers a message, if it is a request.
pub(crate) fn take(daemon: &mut Daemon, message: &Received, say: &mut Say<'_>) -> Option<Vec<u8>> {
    let request = match Request::from_bytes(&message.bytes)? {
        Ok(request) => request,
        Err(why) => return Some(Reply::refused("", why, true).to_bytes()),
    };
    // a follower leaves it to the leader
    if !daemon.is_leading() {
        return None;
    }
    let by = match &message.from {
        Peer::Local => request.by.clone(),
        Peer::Member(member) => member.name.clone(),
    };
    let outcome = if message.from.is(Role::Operator) {
        unharmed(|| answer(daemon, &request.ask, &by, say))
    } else {
        Err(input(format!("{by} is no operator; enrol it with the role operator")))
    };
    let command = command(&request.ask);
    let outcome = outcome.unwrap_or_else(|refusal| {
        if !matches!(
            request.ask,
            Ask::Status { .. } | Ask::Board { .. } | Ask::Network { .. } | Ask::Show | Ask::Diff { .. }
        ) {
            let why: String = refusal.why.chars().take(1000).collect();
            let _ = daemon.record(&Event::Noted {
                kind: Kind::Refused,
                body: json!({ "command": command, "by": by, "why": why }),
            });
        }
        let Reply { outcome, .. } = Reply::refused(&request.id, refusal.why, refusal.is_input);
        outcome
    });
    Some(Reply { id: request.id, outcome }.to_bytes())
}

/// Does something for a client, who learns of a fault of this program; nobody else is harmed by it.
fn unharmed<T>(work: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let why = "the Oracle failed on this request, by a fault of its own; its log has the place".to_string();
        Err(Refusal { why, is_input: false })
    })
}

fn command(ask: &Ask) -> &'static str {
    match ask {
        Ask::Status { .. } => "status",
        Ask::Board { .. } => "dash",
        Ask::Network { .. } => "policy network",
        Ask::Show => "policy show",
        Ask::Diff { .. } => "policy diff",
        Ask::Apply { to: Target::Before, .. } => "policy rollback",
        Ask::Apply { .. } => "policy apply",
        Ask::Pause { .. } => "policy pause",
        Ask::Resume => "policy resume",
    }
}

fn input(why: String) -> Refusal {
    Refusal { why, is_input: true }
}

fn failed(error: impl std::fmt::Display) -> Refusal {
    Refusal { why: format!("the Oracle cannot store it: {error}"), is_input: false }
}

fn done(answer: &impl Serialize) -> Outcome {
    let Reply { outcome, .. } = Reply::answer("", answer);
    outcome
}

fn answer(daemon: &mut Daemon, ask: &Ask, by: &str, say: &mut Say<'_>) -> Result<Outcome, Refusal> {
    match ask {
        Ask::Status { hosts } => Ok(done(&daemon.overview(hosts.as_ref()))),
        Ask::Board { list, from } => Ok(done(&daemon.board(*list, *from))),
        Ask::Network { from } => network(daemon, *from).map(|part| done(&part)),
        Ask::Show => Ok(done(&shown(daemon))),
        Ask::Diff { to } => {
            let other = Other::of(daemon, to)?;
            let comparison = other.compared(daemon)?;
            let Other { policy, file, text, .. } = other;
            let (against, paused) = (hash(daemon.text()), daemon.paused().is_some());
            Ok(done(&Compared { against, hash: hash(&text), policy: policy.name, file, comparison, paused }))
        }
        Ask::Apply { to, against, allow_lacking, trial } => {
            apply(daemon, to, (against, *allow_lacking), (by, trial.as_deref()), say).map(|applied| done(&applied))
        }
        Ask::Pause { lasts } => pause(daemon, *lasts, by, say).map(|paused| done(&paused)),
        Ask::Resume => {
            let policy = daemon.policy().name.clone();
            if daemon.paused().is_none() {
                return Err(input(format!("`{policy}` is not paused")));
            }
            resume(daemon, by, "resumed", say).map_err(failed)?;
            Ok(done(&json!({ "policy": policy })))
        }
    }
}

fn network(daemon: &mut Daemon, from: usize) -> Result<NetworkPart, Refusal> {
    let Some((epoch, text)) = daemon.view_text(from) else {
        return Err(input("nothing has been decided yet: ask again when the first period is over".to_string()));
    };
    if !text.is_char_boundary(from) {
        return Err(input(format!(
            "the view has {} bytes: byte {from} is not one that a part can begin with",
            text.len()
        )));
    }
    let most = (from + PART_MAX).min(text.len());
    let end = (from..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(from);
    Ok(NetworkPart { epoch, length: text.len(), text: text[from..end].to_string() })
}

fn shown(daemon: &Daemon) -> Shown {
    let versions = daemon.versions();
    let current = versions.current().map(|current| current.number);
    let show = |version: &Version| ShownVersion {
        number: version.number,
        policy: version.policy.clone(),
        file: version.file.clone(),
        hash: version.hash(),
        by: version.by.clone(),
        at: version.at.clone(),
        in_force: Some(version.number) == current,
    };
    let all: Vec<ShownVersion> = versions.all().map(show).collect();
    let version = all.iter().find(|version| version.in_force).cloned().expect("a policy is in force");
    Shown { version, text: daemon.text().to_string(), paused: daemon.paused().map(Paused::of), versions: all }
}

impl Paused {
    fn of(pause: &Pause) -> Paused {
        let until = pause.until_s.and_then(|second| Timestamp::from_second(second).ok());
        Paused { by: pause.by.clone(), at: pause.at.clone(), until: until.map(|until| until.to_string()) }
    }
}

/// A policy that is not in force.
struct Other {
    policy: Policy,
    file: String,
    text: String,
    /// How far its rollout has come.
    progress: Progress,
}

impl Other {
    fn of(daemon: &Daemon, to: &Target) -> Result<Other, Refusal> {
        let (file, text, progress) = match to {
            Target::File { name, text } => (name.clone(), text.clone(), Progress::default()),
            Target::Before => {
                let before = daemon.versions().before().ok_or_else(|| {
                    input("no policy was in force before this one, or it is no longer kept; `opentcp policy apply FILE` applies one".to_string())
                })?;
                (before.file.clone(), before.text.clone(), before.progress.clone())
            }
        };
        let policy = daemon.parse(&file, &text).map_err(input)?;
        Ok(Other { policy, file, text, progress })
    }

    /// What it would change in the network as it was at the last decision.
    fn compared(&self, daemon: &Daemon) -> Result<Comparison, Refusal> {
        let (Some(view), Some(decision)) = (daemon.view(), daemon.decision()) else {
            let period = daemon.policy().period;
            return Err(Refusal {
                why: format!("the Oracle has decided nothing yet; ask after a period (T = {period})"),
                is_input: false,
            });
        };
        let mut history = History::after(decision.epoch).resume(self.progress.clone());
        let would = decide(&self.policy, view, &mut history);
        let old = Decided { policy: daemon.policy(), decision };
        Ok(Comparison::of(view, old, Decided { policy: &self.policy, decision: &would }))
    }
}

fn apply(
    daemon: &mut Daemon,
    to: &Target,
    (against, allow_lacking): (&str, bool),
    (by, trial): (&str, Option<&str>),
    say: &mut Say<'_>,
) -> Result<Applied, Refusal> {
    let before = hash(daemon.text());
    if against != before {
        let current = daemon.versions().current();
        let who = current.map(|version| format!(", applied by {} at {}", version.by, version.at)).unwrap_or_default();
        return Err(input(format!(
            "another policy is in force than the one that was compared with: {} instead of {}{who}; compare anew (opentcp policy diff)",
            digits(&before),
            digits(against)
        )));
    }
    let other = Other::of(daemon, to)?;
    let is_back = *to == Target::Before;
    let (new, period) = (hash(&other.text), other.policy.period);
    let applied = Applied {
        policy: other.policy.name.clone(),
        hash: new.clone(),
        before: before.clone(),
        unchanged: new == before,
        period,
    };
    if applied.unchanged {
        return Ok(applied);
    }
    let comparison = other.compared(daemon)?;
    if !allow_lacking && let Some(why) = lacking(&comparison) {
        return Err(input(why));
    }
    let how = if is_back { "rolled back" } else { "applied" };
    let body = json!({
        "how": how, "policy": other.policy.name, "file": other.file, "hash": digits(&new), "before": digits(&before), "by": by,
        "trial": trial, "comparison": comparison, "text": other.text,
    });
    daemon.record(&Event::Noted { kind: Kind::Policy, body }).map_err(failed)?;
    let (policy, file) = (other.policy.name.clone(), other.file);
    let progress = daemon.progress();
    let at = format!("{:.3}", now());
    let versions = daemon.versions_mut();
    if is_back {
        versions.step_back(progress);
    } else {
        let (text, by) = (other.text.clone(), by.to_string());
        versions.add(
            Version { number: 0, before: None, policy, file, text, by, at, progress: Progress::default() },
            progress,
        );
    }
    versions.store().map_err(failed)?;
    daemon.apply(other.policy, other.text, other.progress, say).map_err(failed)?;
    Ok(applied)
}

/// The hosts that lack an algorithm, in words.
fn lacking(comparison: &Comparison) -> Option<String> {
    let mut words: Vec<String> = comparison
        .lacking()
        .map(|rule| {
            let cc = rule.cc.as_deref().unwrap_or_default();
            let more = if rule.lacking.count > rule.lacking.first.len() { ", …" } else { "" };
            let hosts = rule.lacking.first.join(", ");
            format!("rule `{}`: {} hosts lack `{cc}`: {hosts}{more}", rule.name, rule.lacking.count)
        })
        .collect();
    if words.is_empty() {
        return None;
    }
    words.push(
        "load it there (opentcp cc load), or leave these hosts out by --allow-lacking; nothing was changed".to_string(),
    );
    Some(words.join("\n"))
}

/// The first digits of a hash.
fn digits(hash: &str) -> &str {
    hash.get(..DIGITS).unwrap_or(hash)
}

fn pause(daemon: &mut Daemon, lasts: Option<Time>, by: &str, say: &mut Say<'_>) -> Result<Paused, Refusal> {
    let at = now();
    let until_s = lasts.map(|lasts| at.as_second().saturating_add((lasts.as_ns() / 1_000_000_000).max(1) as i64));
    let pause = Pause { by: by.to_string(), at: format!("{at:.3}"), until_s };
    let paused = Paused::of(&pause);
    let body = json!({ "policy": daemon.policy().name, "by": by, "until": paused.until });
    daemon.record(&Event::Noted { kind: Kind::Pause, body }).map_err(failed)?;
    daemon.pause(Some(pause), say).map_err(failed)?;
    Ok(paused)
}

/// Ends a pause.
fn resume(daemon: &mut Daemon, by: &str, how: &str, say: &mut Say<'_>) -> Result<(), OracleError> {
    let body = json!({ "policy": daemon.policy().name, "by": by, "how": how });
    daemon.record(&Event::Noted { kind: Kind::Resume, body })?;
    daemon.pause(None, say)
}

/// Ends a pause whose time is over.
pub(crate) fn on_time(daemon: &mut Daemon, say: &mut Say<'_>) -> Result<(), OracleError> {
    let until = daemon.paused().and_then(|pause| pause.until_s).filter(|_| daemon.is_leading());
    let is_over = until.is_some_and(|until| until <= now().as_second());
    if is_over { resume(daemon, "", "the pause is over", say) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_in_what_is_done_for_a_client_ends_nothing() {
        let refusal = unharmed(|| -> Result<(), Refusal> { panic!("as meant") }).unwrap_err();
        assert!(!refusal.is_input && refusal.why.contains("fault of its own"), "{}", refusal.why);
        assert_eq!(unharmed(|| Ok(1)).unwrap_or(0), 1);
        assert!(unharmed(|| -> Result<(), Refusal> { Err(input("odd".into())) }).unwrap_err().is_input);
    }
}
