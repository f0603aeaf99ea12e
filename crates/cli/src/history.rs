//! `opentcp history`: what the Oracle decided, when and why.

mod observed;
mod page;
mod when;

pub use when::seconds;

use crate::failure::Failure;
use crate::terminal::{is_coloured, note, print, print_json};
use audit::{Damage, Entry, Filter, Kind, Zone};
use oracle::log::{Change, Changes, Observed, Tone};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;

/// Show what the Oracle decided, when and why
///
/// Reads the audit log of an Oracle on this machine, also while the Oracle runs. By default it prints what has changed: rules that went on or
/// off with the values that decided it, rules that are withheld and why, treated hosts, guards that reverted a rule, rollbacks, policies
/// that were applied and by whom, pauses, leaders, members. `--all` adds every decision and every CUE.
///
/// `--report` sums up a time: per rule how often and for how long it was on, for how many hosts, with which values, and why it was
/// withheld. Of a policy with `mode = "observe"` that is what it would have done.
///
/// `--verify` checks the log's hash chain and finds each line that was changed, removed or moved. It prints the last hash: noted elsewhere,
/// it shows later that nothing before it was rewritten.
///
/// Exit codes: 0 done, 1 the log cannot be read or `--verify` found damage, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  opentcp history                                  changes of the last 24 hours
  opentcp history --since 1h --rule 'calm network'
  opentcp history --since 2026-03-01T08:00:00Z --kind policy --kind pause
  opentcp history --since 10min --all --json | jq .
  opentcp history --report --since 7d              what an observing policy would have done
  opentcp history --report --since 7d --out report.html
  opentcp history --verify")]
pub struct Args {
    /// The Oracle's state folder
    #[arg(long, value_name = "DIR", default_value = "/var/lib/opentcp/oracle")]
    state: PathBuf,
    /// Not earlier: a time ago (`90s`, `10min`, `1h`, `7d`, `2w`) or a time (`2026-03-01T08:00:00Z`), or `all`
    #[arg(long, value_name = "WHEN", default_value = "24h")]
    since: String,
    /// Earlier than this, written alike
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Only this rule
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,
    /// Only lines of this kind; may be given many times
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    kinds: Vec<Kind>,
    /// Every decision and every CUE, not only changes
    #[arg(long, conflicts_with = "report")]
    all: bool,
    /// Sum up: per rule how often and how long it was on, or would have been
    #[arg(long, conflicts_with = "verify")]
    report: bool,
    /// With --report: an HTML page in FILE; `-` is stdout
    #[arg(long, value_name = "FILE", requires = "report", conflicts_with = "json")]
    out: Option<PathBuf>,
    /// Check the hash chain of the whole log
    #[arg(long, conflicts_with_all = ["rule", "kinds", "all"])]
    verify: bool,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
    /// The time zone: `local`, `policy`, or an IANA name
    #[arg(long, value_name = "ZONE", default_value = "local")]
    time_zone: String,
}

fn kind(text: &str) -> Result<Kind, String> {
    text.parse()
}

/// Runs the command.
///
/// # Errors
/// As the exit codes say.
pub fn history(args: &Args) -> Result<(), Failure> {
    let folder = args.state.join("audit");
    if !folder.is_dir() {
        let advice = "name the Oracle's state folder by --state; an Oracle writes its log from its first start on";
        return Err(Failure::Input(format!("{}: there is no audit log; {advice}", folder.display())));
    }
    let now = oracle::now();
    let parsed =
        |name: &str, text: &str| when::parse(text, now).map_err(|why| Failure::Input(format!("{name} {text}: {why}")));
    let since = if args.since == "all" { None } else { Some(parsed("--since", &args.since)?) };
    let until = args.until.as_deref().map(|until| parsed("--until", until)).transpose()?;
    if since.zip(until).is_some_and(|(since, until)| since >= until) {
        return Err(Failure::Input("--until is not after --since: no line is between them".to_string()));
    }
    let zone = zone(&args.time_zone)?;
    if args.verify {
        return verify(&folder, args.json);
    }
    let read = |kinds: Vec<Kind>| {
        audit::read(&folder, Filter { since, until, kinds }).map_err(|error| Failure::Run(error.to_string()))
    };
    if args.report {
        let mut observed = Observed::default();
        let mut damaged = Damaged::default();
        read(vec![Kind::Decision])?.for_each(|line| match line {
            Ok(entry) if args.rule.as_ref().is_none_or(|rule| has_rule(&entry, rule)) => observed.take(&entry),
            Ok(_) => {}
            Err(damage) => damaged.add(&damage),
        });
        let mut observed = observed.finished();
        observed.rules.retain(|rule| args.rule.as_ref().is_none_or(|only| rule.rule == *only));
        return match &args.out {
            None if args.json => print_json(&observed),
            None => print(&observed::text(&observed, &zone.unwrap_or_default())),
            Some(path) => page::write(path, &observed, &zone.unwrap_or_default()),
        };
    }
    let out = io::stdout().lock();
    let colours = is_coloured(&io::stdout());
    let printer =
        Printer { out, json: args.json, all: args.all, colours, zone, policy_zone: Zone::default(), printed: 0 };
    match printer.print(read(Vec::new())?, args) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Run(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

fn has_rule(entry: &Entry, rule: &str) -> bool {
    entry.body["rules"].as_array().is_some_and(|rules| rules.iter().any(|one| one["name"] == rule))
}

/// The zone of `--time-zone`; `None`: each policy's.
fn zone(name: &str) -> Result<Option<Zone>, Failure> {
    match name {
        "policy" => Ok(None),
        "local" => Ok(Some(when::local_zone())),
        name => match policy::Zone::named(name) {
            Ok(_) => Ok(Some(Zone::named(name).unwrap_or_default())),
            Err(help) => Err(Failure::Input(format!("--time-zone {name}: there is no such time zone; {help}"))),
        },
    }
}

/// Lines that cannot be read: the first is shown, and how many there are.
#[derive(Default)]
struct Damaged(u64);

impl Damaged {
    fn add(&mut self, damage: &Damage) {
        if self.0 == 0 {
            note!("history: {damage}; `opentcp history --verify` finds all");
        }
        self.0 += 1;
    }
}

struct Printer<W> {
    out: W,
    json: bool,
    all: bool,
    colours: bool,
    /// `None`: the policy's.
    zone: Option<Zone>,
    /// That of the last decision.
    policy_zone: Zone,
    printed: u64,
}

impl<W: Write> Printer<W> {
    fn print(mut self, lines: audit::Reader, args: &Args) -> io::Result<()> {
        let mut changes = Changes::new(self.all);
        let mut damaged = Damaged::default();
        if self.json {
            write!(self.out, "{{\"entries\": [")?;
        }
        for line in lines {
            let entry = match line {
                Ok(entry) => entry,
                Err(damage) => {
                    damaged.add(&damage);
                    continue;
                }
            };
            if entry.is(Kind::Decision)
                && let Some(name) = entry.body["time_zone"].as_str().filter(|name| *name != self.policy_zone.name())
            {
                self.policy_zone = Zone::named(name).unwrap_or_default();
            }
            // decisions are compared with the one before, whichever kinds are printed
            let found = changes.take(&entry);
            if !args.kinds.is_empty() && !args.kinds.iter().any(|kind| entry.is(*kind)) {
                continue;
            }
            if self.json && self.all {
                let wanted =
                    args.rule.as_ref().is_none_or(|rule| has_rule(&entry, rule) || entry.body["rule"] == **rule);
                if wanted {
                    self.json(&entry)?;
                }
                continue;
            }
            for change in found.iter().filter(|change| args.rule.as_ref().is_none_or(|rule| change.what == *rule)) {
                if self.json { self.json(change)? } else { self.text(change)? }
            }
        }
        if self.json {
            writeln!(self.out, "\n]}}")?;
        } else if self.printed == 0 {
            note!("history: nothing has changed in that time; --since goes further back, --all shows every decision");
        }
        self.out.flush()
    }

    fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        let comma = if self.printed == 0 { "" } else { "," };
        self.printed += 1;
        write!(self.out, "{comma}\n{}", serde_json::to_string(value).map_err(io::Error::other)?)
    }

    fn text(&mut self, change: &Change) -> io::Result<()> {
        let zone = self.zone.as_ref().unwrap_or(&self.policy_zone);
        let (time, kind) = (zone.show(change.time), &change.kind);
        if self.printed == 0 {
            writeln!(self.out, "{:<19}  {:<8}  {:<16}  what happened", zone.name(), "kind", "about")?;
        }
        self.printed += 1;
        let colour = match change.tone {
            Tone::Plain => "",
            Tone::Good => "\x1b[32m",
            Tone::Notice => "\x1b[33m",
            Tone::Bad => "\x1b[1;31m",
        };
        let (colour, end) = if self.colours && !colour.is_empty() { (colour, "\x1b[0m") } else { ("", "") };
        writeln!(self.out, "{time}  {kind:<8}  {colour}{:<16}  {}{end}", plain(&change.what), plain(&change.words))
    }
}

/// Without what could change a terminal: names come from hosts.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// What `--verify --json` prints.
#[derive(Serialize)]
struct Checked {
    intact: bool,
    files: usize,
    lines: u64,
    first: u64,
    last: u64,
    last_hash: String,
    lost_lines: u64,
    repairs: u64,
    damages: Vec<String>,
    more_damages: u64,
}

fn verify(folder: &std::path::Path, json: bool) -> Result<(), Failure> {
    let report = audit::verify(folder).map_err(|error| Failure::Run(error.to_string()))?;
    let audit::Verified { files, lines, first, last, hash, lost, repaired, torn: _ } = report.log;
    let damages: Vec<String> = report.damages.iter().map(ToString::to_string).collect();
    let (found, more) = (damages.len() as u64 + report.more, report.more);
    if json {
        let intact = damages.is_empty();
        print_json(&Checked {
            intact,
            files,
            lines,
            first,
            last,
            last_hash: hash,
            lost_lines: lost,
            repairs: repaired,
            damages: damages.clone(),
            more_damages: more,
        })?;
    } else if damages.is_empty() {
        let lost = if lost > 0 {
            format!("; {lost} lines could not be written, as the log itself says")
        } else {
            String::new()
        };
        let repaired = if repaired > 0 { format!("; {repaired} repairs after crashes") } else { String::new() };
        print(&format!(
            "intact: {lines} lines in {files} files, {first} to {last}{lost}{repaired}\nlast hash: {hash}\n"
        ))?;
    }
    if damages.is_empty() {
        return Ok(());
    }
    let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
    Err(Failure::Run(format!("the audit log is damaged in {found} places:\n{}{more}", damages.join("\n"))))
}
