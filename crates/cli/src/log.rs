//! What daemons say of themselves: a line for each event, on stderr.
//!
//! A line that begins with `<4>` is a warning (sd-daemon(3)); others are information. systemd's journal gets the level of each line, a
//! terminal the words alone.

use crate::terminal::is_quiet;
use rustix::fs::fstat;
use std::env;
use std::io::{self, Write as _};

/// How daemons write their logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Words; with systemd's levels where its journal reads them
    #[default]
    Text,
    /// A JSON object a line: time, level, daemon, message
    Json,
}

/// The option that each daemon has.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct LogArgs {
    /// How events are written to stderr: as text, or as a JSON object a line
    #[arg(long = "log", value_name = "FORMAT", value_enum, default_value_t = Format::Text, hide_possible_values = true)]
    format: Format,
}

/// A daemon's log.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    daemon: &'static str,
    format: Format,
    /// stderr is systemd's journal.
    journal: bool,
}

impl Log {
    /// Of the daemon of this name.
    pub fn new(daemon: &'static str, args: LogArgs) -> Log {
        Log { daemon, format: args.format, journal: is_journal() }
    }

    /// Writes a line, unless only errors go to stderr.
    pub fn say(&self, line: &str) {
        if is_quiet() {
            return;
        }
        // there is nowhere to report that stderr is closed
        let _ = io::stderr().lock().write_all(self.line(line, now).as_bytes());
    }

    /// As it is written at a time, which text leaves to who reads stderr.
    fn line(&self, line: &str, time: fn() -> String) -> String {
        let (message, warns) = line.strip_prefix("<4>").map_or((line, false), |rest| (rest, true));
        let Log { daemon, format, journal } = *self;
        match format {
            Format::Json => {
                let level = if warns { "warning" } else { "info" };
                let object =
                    serde_json::json!({ "time": time(), "level": level, "daemon": daemon, "message": message });
                format!("{object}\n")
            }
            // a message of several lines has its level on each
            Format::Text if journal => {
                let level = if warns { 4 } else { 6 };
                message.lines().fold(String::new(), |text, line| text + &format!("<{level}>{daemon}: {line}\n"))
            }
            Format::Text => format!("{daemon}: {message}\n"),
        }
    }
}

/// The wall clock's time (RFC 3339), in milliseconds.
#[allow(clippy::disallowed_methods, reason = "a line of a log says when it was written; nothing is decided by it")]
fn now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let unix_ms = since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    jiff::Timestamp::from_millisecond(unix_ms).map_or_else(|_| String::new(), |time| format!("{time:.3}"))
}

/// Whether stderr is what systemd has connected to its journal (systemd.exec(5), $JOURNAL_STREAM).
fn is_journal() -> bool {
    let Some(stream) = env::var_os("JOURNAL_STREAM") else { return false };
    fstat(io::stderr()).is_ok_and(|about| stream == *format!("{}:{}", about.st_dev, about.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_the_level_and_text_needs_no_clock() {
        let text = |journal, line: &str| {
            let log = Log { daemon: "oracle", format: Format::Text, journal };
            log.line(line, || panic!("a daemon that must not depend on the wall clock reads it for each line"))
        };
        assert_eq!(text(false, "begins"), "oracle: begins\n");
        assert_eq!(text(false, "<4>one\ntwo"), "oracle: one\ntwo\n");
        assert_eq!(text(true, "begins"), "<6>oracle: begins\n");
        assert_eq!(text(true, "<4>one\ntwo"), "<4>oracle: one\n<4>oracle: two\n");
        let log = Log { daemon: "oracle", format: Format::Json, journal: true };
        let object = log.line("<4>a \"b\"\nc", || "2026-01-01T00:00:00.000Z".to_string());
        let object: serde_json::Value = serde_json::from_str(&object).unwrap();
        let expected = serde_json::json!({
            "time": "2026-01-01T00:00:00.000Z", "level": "warning", "daemon": "oracle", "message": "a \"b\"\nc"
        });
        assert_eq!(object, expected);
    }
}
