//! What an operator asks of the Oracle, and what it answers.

use crate::{Bus, BusError, MESSAGE_MAX, random};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;
use std::time::{Duration, Instant};
use units::Time;

pub use crate::kind::{REPLY, REQUEST};

/// Longest text of a policy that a request carries, bytes.
pub const POLICY_MAX: usize = 48 * 1024;
/// Longest name of an operator, of a file, or of what a list is sorted by, bytes.
const NAME_MAX: usize = 255;
/// Longest reason of a refusal, bytes.
const WHY_MAX: usize = 16 * 1024;

/// An operator's request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Which: the reply has the same.
    pub id: String,
    /// Who asks, as the asking program says: `alice (uid 0)`. Over NATS the member's name counts.
    pub by: String,
    /// What.
    #[serde(flatten)]
    pub ask: Ask,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Ask {
    /// How the fleet is.
    Status {
        /// Which hosts are listed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hosts: Option<HostsQuery>,
    },
    /// What a dashboard shows beside the status: a part of a list. An Oracle of an earlier version refuses it.
    Board {
        /// Which.
        list: BoardList,
        /// From this entry on.
        from: usize,
    },
    /// The view of the last decision, as JSON: a part of its text.
    Network {
        /// From this byte.
        from: usize,
    },
    /// The policy in force, with its text, and those before it.
    Show,
    /// What a policy would change.
    Diff {
        /// Which.
        to: Target,
    },
    /// Replace the policy in force.
    Apply {
        /// By which.
        to: Target,
        /// The hash of the policy that it was compared with: if another is in force meanwhile, nothing is applied.
        against: String,
        /// Apply it although hosts lack one of its algorithms.
        #[serde(default)]
        allow_lacking: bool,
        /// What a trial said of it before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trial: Option<String>,
    },
    /// Send no CUE.
    Pause {
        /// For how long; `None`: until it is resumed.
        #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
        lasts: Option<Time>,
    },
    /// Send CUEs after a pause.
    Resume,
}

/// A list of a dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoardList {
    /// All hosts, by name.
    Hosts,
    /// All links, those between switches first.
    Links,
    /// What became of each rule, and since when.
    Spans,
    /// What operators, guards and the rollout have done.
    Events,
}

/// A policy that is not in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A file's.
    File {
        /// Its name, for messages.
        name: String,
        /// Its text.
        text: String,
    },
    /// The one that was in force before.
    Before,
}

/// Which hosts are listed, and in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostsQuery {
    /// By which column.
    pub sort: String,
    /// A part of their names.
    pub filter: String,
    /// At most so many.
    pub limit: usize,
}

/// The Oracle's reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Of which request.
    pub id: String,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was done; what is said depends on the request.
    Answer(Value),
    /// It was refused, or failed.
    Refused(Refusal),
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Where, what, and what to do instead.
    pub why: String,
    /// Whether what was asked is wrong; else the Oracle could not do it.
    pub is_input: bool,
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The bus.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// Nobody answered.
    #[error("the Oracle has not answered within {} s; does it lead, and is it running?", .0.as_secs())]
    Silent(Duration),
    /// The answer is something else.
    #[error("the Oracle's answer cannot be read: {0}")]
    Reply(serde_json::Error),
}

impl Request {
    /// With a new id.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn new(by: String, ask: Ask) -> io::Result<Request> {
        let id = u64::from_le_bytes(random()?);
        Ok(Request { id: format!("{id:016x}"), by, ask })
    }

    /// As a message.
    pub fn to_bytes(&self) -> Vec<u8> {
        [REQUEST, &serde_json::to_vec(self).expect("a request is plain data")].concat()
    }

    /// Reads what [`Request::to_bytes`] wrote; `None` of another message. Every text is in range.
    ///
    /// # Errors
    /// A request that cannot be read, in words for who sent it.
    pub fn from_bytes(bytes: &[u8]) -> Option<Result<Request, String>> {
        let json = bytes.strip_prefix(REQUEST)?;
        let request: Result<Request, _> = serde_json::from_slice(json);
        Some(request.map_err(|error| format!("the request cannot be read: {error}")).and_then(Request::checked))
    }

    fn checked(self) -> Result<Request, String> {
        let name = |what: &str, text: &str| {
            let is_right = text.len() <= NAME_MAX && !text.contains(char::is_control);
            if is_right { Ok(()) } else { Err(format!("{what} has more than {NAME_MAX} bytes or a control character")) }
        };
        name("the request's id", &self.id)?;
        name("the operator's name", &self.by)?;
        match &self.ask {
            Ask::Status { hosts: Some(query) } => {
                name("the column", &query.sort).and_then(|()| name("the filter", &query.filter))?;
            }
            Ask::Diff { to: Target::File { name: file, text } }
            | Ask::Apply { to: Target::File { name: file, text }, .. } => {
                name("the file's name", file)?;
                if text.len() > POLICY_MAX {
                    return Err(format!(
                        "{file}: {} bytes; a policy that is applied has at most {POLICY_MAX}",
                        text.len()
                    ));
                }
            }
            _ => {}
        }
        if let Ask::Apply { against, trial, .. } = &self.ask {
            name("the hash", against).and_then(|()| name("the trial", trial.as_deref().unwrap_or_default()))?;
        }
        Ok(self)
    }
}

impl Reply {
    /// A refusal of what is wrong (`is_input`) or could not be done.
    pub fn refused(id: &str, mut why: String, is_input: bool) -> Reply {
        if why.len() > WHY_MAX {
            // whole lines, and of one long line whole characters
            let cut = (0..=WHY_MAX).rev().find(|at| why.is_char_boundary(*at)).unwrap_or(0);
            let cut = why[..cut].rfind('\n').unwrap_or(cut);
            why.truncate(cut);
        }
        Reply { id: id.to_string(), outcome: Outcome::Refused(Refusal { why, is_input }) }
    }

    /// What was asked for.
    ///
    /// # Panics
    /// If it is no plain data.
    pub fn answer(id: &str, answer: &impl Serialize) -> Reply {
        let answer = serde_json::to_value(answer).expect("an answer is plain data");
        Reply { id: id.to_string(), outcome: Outcome::Answer(answer) }
    }

    /// As a message. An answer for which there is no room in one becomes a refusal.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = [REPLY, &serde_json::to_vec(self).expect("a reply is plain data")].concat();
        if bytes.len() <= MESSAGE_MAX {
            return bytes;
        }
        let why = format!("the answer has {} bytes; a message has at most {MESSAGE_MAX}", bytes.len());
        Reply::refused(&self.id, why, false).to_bytes()
    }
}

/// Sends a request, and waits for its reply; other messages are passed over.
///
/// # Errors
/// The bus, or nobody answers within `wait`.
pub fn ask(bus: &mut dyn Bus, request: &Request, wait: Duration) -> Result<Outcome, AskError> {
    /// A prefix of a reply's JSON is enough to see whose it is.
    #[derive(Deserialize)]
    struct Of {
        id: String,
    }
    bus.send(&request.to_bytes())?;
    let until = Instant::now() + wait;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(AskError::Silent(wait));
        }
        let Some(message) = bus.receive(left)? else { continue };
        let Some(json) = message.strip_prefix(REPLY) else { continue };
        // an Oracle that cannot read a request, as one of an earlier version, does not know its id
        if serde_json::from_slice::<Of>(json).is_ok_and(|of| of.id == request.id || of.id.is_empty()) {
            return serde_json::from_slice(json).map(|reply: Reply| reply.outcome).map_err(AskError::Reply);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hub as _, ReplyTo, channel};

    fn apply(text: &str) -> Request {
        let to = Target::File { name: "p.toml".into(), text: text.into() };
        let ask = Ask::Apply { to, against: "ab".into(), allow_lacking: false, trial: None };
        Request::new("alice (uid 0)".into(), ask).unwrap()
    }

    #[test]
    fn requests_and_replies_are_read_as_they_were_written() {
        let asks = [
            Ask::Status { hosts: Some(HostsQuery { sort: "name".into(), ..HostsQuery::default() }) },
            Ask::Show,
            Ask::Board { list: BoardList::Spans, from: 7 },
            Ask::Diff { to: Target::Before },
            apply("mode = \"observe\"\n").ask,
            Ask::Pause { lasts: Some(Time::from_secs(3600)) },
            Ask::Resume,
        ];
        for ask in asks {
            let request = Request::new("alice (uid 0)".into(), ask).unwrap();
            assert_eq!(Request::from_bytes(&request.to_bytes()), Some(Ok(request)));
        }
        let text = String::from_utf8(Request::new("a".into(), Ask::Show).unwrap().to_bytes()).unwrap();
        assert!(
            text.starts_with("opentcp request\0{\"id\":\"") && text.ends_with("\"by\":\"a\",\"command\":\"show\"}"),
            "{text}"
        );
        for reply in [Reply::answer("7", &[1, 2]), Reply::refused("7", "no".into(), true)] {
            let bytes = reply.to_bytes();
            assert_eq!(serde_json::from_slice::<Reply>(bytes.strip_prefix(REPLY).unwrap()).unwrap(), reply);
        }
        assert_eq!(Request::from_bytes(b"{\"host\": {}}"), None);
    }

    #[test]
    fn what_is_out_of_range_is_refused_in_words() {
        let refused = |bytes: &[u8]| Request::from_bytes(bytes).unwrap().unwrap_err();
        let with = |json: &str| refused(&[REQUEST, json.as_bytes()].concat());
        assert!(with("").contains("the request cannot be read: EOF"), "{}", with(""));
        assert!(with("{\"id\": 7}").contains("cannot be read"));
        assert!(with("{\"id\": \"7\", \"by\": \"a\", \"command\": \"explode\"}").contains("unknown variant `explode`"));
        let long = "x".repeat(POLICY_MAX + 1);
        assert!(
            refused(&apply(&long).to_bytes())
                .contains("p.toml: 49153 bytes; a policy that is applied has at most 49152")
        );
        let mut request = apply("");
        request.by = "x".repeat(256);
        assert!(refused(&request.to_bytes()).contains("the operator's name"));
        request.by = "a\nb".into();
        assert!(refused(&request.to_bytes()).contains("control character"));
        assert!(refused(&[REQUEST, "[".repeat(100_000).as_bytes()].concat()).contains("cannot be read"));
    }

    #[test]
    fn a_reply_fits_into_a_message_whatever_it_says() {
        let reply = Reply::answer("7", &"x".repeat(MESSAGE_MAX)).to_bytes();
        assert!(reply.len() < 1000 && String::from_utf8(reply).unwrap().contains("the answer has 65"));
        let why = format!("first\n{}", "ü".repeat(WHY_MAX));
        let Outcome::Refused(refusal) = Reply::refused("7", why, true).outcome else { panic!() };
        assert_eq!(refusal.why, "first");
        let Outcome::Refused(refusal) = Reply::refused("7", "ü".repeat(WHY_MAX), true).outcome else { panic!() };
        assert_eq!(refusal.why.len(), WHY_MAX);
    }

    #[test]
    fn the_reply_of_this_request_is_waited_for() {
        let mut hub = channel();
        let mut operator = hub.agent().unwrap();
        let request = Request::new("a".into(), Ask::Show).unwrap();
        hub.send(b"opentcp period\0 for everybody").unwrap();
        hub.answer(&ReplyTo::Connection(0), &Reply::answer("another", &1).to_bytes()).unwrap();
        hub.answer(&ReplyTo::Connection(0), &Reply::answer(&request.id, &2).to_bytes()).unwrap();
        assert_eq!(ask(&mut operator, &request, Duration::from_secs(10)).unwrap(), Outcome::Answer(2.into()));
        hub.answer(&ReplyTo::Connection(0), &Reply::refused("", "it cannot be read".into(), true).to_bytes()).unwrap();
        let refused = ask(&mut operator, &request, Duration::from_secs(10)).unwrap();
        assert!(matches!(refused, Outcome::Refused(refusal) if refusal.why == "it cannot be read"));
        let error = ask(&mut operator, &request, Duration::from_millis(10)).unwrap_err().to_string();
        assert!(error.contains("the Oracle has not answered within 0 s"), "{error}");
    }
}
