//! `opentcp top`: the fleet, live in the terminal.

mod draw;

use crate::failure::Failure;
use crate::operator::{Place, operator};
use crate::stop;
use crate::terminal::{is_coloured, print, print_json};
use bus::{Address, Ask, Bus, Clock, HostsQuery, Outcome, Request};
use draw::{SORTS, Screen};
use oracle::Overview;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Terminal};
use std::io;
use std::time::Duration;
use units::Time;

/// How often keys and replies are looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How often an Oracle that is not there is looked for.
const RETRY: Time = Time::from_secs(1);
/// The size of a frame that goes to a pipe: columns and lines.
const PIPE: (u16, u16) = (100, 44);
/// Longest filter that can be typed.
const FILTER_MAX: usize = 64;

/// Show the fleet, live: hosts, rules, links, decisions, and treated hosts against the control group
///
/// Asks the Oracle for its status, which is as old as its last decision: it changes once a period. Keys: q quits, s sorts the hosts by the
/// next column, S by the one before, / filters them by a part of their name or rack, p pauses, ? explains.
///
/// Exit codes: 0 done, 1 no Oracle answers, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  opentcp top\n  opentcp top --sort retransmits --filter rack7\n  opentcp top --once | head -20\n  \
                        opentcp top --once --json | jq .verdict"
)]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// Print one frame as text, and end
    #[arg(long)]
    once: bool,
    /// With --once: the Oracle's status as one JSON object
    #[arg(long, requires = "once")]
    json: bool,
    /// Sort the hosts by a column: attention (what an operator should look at first), name, rack, cc, flows, retransmits, rate, rules,
    /// guards, differs, heard
    #[arg(long, value_name = "COLUMN", default_value = "attention", value_parser = SORTS, hide_possible_values = true)]
    sort: String,
    /// Only hosts with this in their name or rack
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
}

/// Shows it.
///
/// # Errors
/// As the exit codes say.
pub fn top(args: &Args) -> Result<(), Failure> {
    let mut screen = Screen {
        coloured: is_coloured(&io::stdout()),
        sort: SORTS.iter().position(|sort| *sort == args.sort).unwrap_or_default(),
        filter: args.filter.clone(),
        ..Screen::default()
    };
    if args.once {
        let overview: Overview = args.place.ask(asked(&screen))?;
        if args.json {
            return print_json(&overview);
        }
        screen.overview = Some(overview);
        return print(&frame(&screen, PIPE));
    }
    if !io::IsTerminal::is_terminal(&io::stdout()) {
        return Err(Failure::Input("top needs a terminal; `opentcp top --once` prints one frame".to_string()));
    }
    let link = Link::new(args.place.address()?, Time::from_secs(args.interval));
    let stop = stop::on_signals();
    let mut terminal = ratatui::try_init().map_err(|error| Failure::Run(format!("the terminal: {error}")))?;
    let outcome = live(&mut terminal, &mut screen, link, &|| stop.is_set());
    ratatui::restore();
    outcome.map_err(|error| Failure::Run(error.to_string()))
}

fn asked(screen: &Screen) -> Ask {
    let sort = SORTS[screen.sort].to_string();
    Ask::Status { hosts: Some(HostsQuery { sort, filter: screen.filter.clone(), limit: 0 }) }
}

/// A connection to the Oracle, and what was asked over it.
struct Link {
    address: Address,
    interval: Time,
    clock: Clock,
    bus: Option<Box<dyn Bus>>,
    /// The request that waits for its reply.
    asked: Option<String>,
    /// When to ask, or to connect.
    next: Time,
}

fn live(
    terminal: &mut DefaultTerminal,
    screen: &mut Screen,
    mut link: Link,
    stopped: &dyn Fn() -> bool,
) -> io::Result<()> {
    let (mut changed, mut shown) = (true, None);
    while !stopped() {
        // the age of the last answer is shown
        screen.now = link.clock.now();
        let second = screen.now.as_us() / 1_000_000;
        if changed || shown != Some(second) {
            shown = Some(second);
            terminal.draw(|frame| screen.draw(frame))?;
        }
        changed = false;
        if event::poll(LOOK)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match pressed(screen, key) {
                    Pressed::Quit => return Ok(()),
                    Pressed::Ask => link.next = Time::ZERO,
                    Pressed::Nothing => {}
                },
                _ => {}
            }
            changed = true;
        }
        if !screen.paused && link.clock.now() >= link.next {
            link.ask(screen)?;
            changed = true;
        }
        changed |= link.listen(screen);
    }
    Ok(())
}

impl Link {
    fn new(address: Address, interval: Time) -> Link {
        Link { address, interval, clock: Clock::begin(), bus: None, asked: None, next: Time::ZERO }
    }

    /// Asks, and connects before that where it is not connected.
    fn ask(&mut self, screen: &mut Screen) -> io::Result<()> {
        let now = self.clock.now();
        self.next = now + self.interval;
        if self.bus.is_none() {
            match self.address.connect() {
                Ok(bus) => self.bus = Some(bus),
                Err(error) => {
                    self.next = now + RETRY.max(self.interval);
                    screen.trouble = Some(error.to_string());
                    return Ok(());
                }
            }
        }
        let request = Request::new(operator(), asked(screen))?;
        if let Some(bus) = &mut self.bus {
            match bus.send(&request.to_bytes()) {
                Ok(()) => self.asked = Some(request.id),
                Err(error) => self.lost(screen, error.to_string()),
            }
        }
        Ok(())
    }

    /// Takes what has come; whether there is something new to show.
    fn listen(&mut self, screen: &mut Screen) -> bool {
        let mut changed = false;
        while let Some(bus) = &mut self.bus {
            match bus.receive(Duration::ZERO) {
                Ok(Some(message)) => changed |= self.take(screen, &message),
                Ok(None) => break,
                Err(error) => {
                    self.lost(screen, error.to_string());
                    changed = true;
                }
            }
        }
        changed
    }

    fn take(&mut self, screen: &mut Screen, message: &[u8]) -> bool {
        let Some(json) = message.strip_prefix(bus::REPLY) else { return false };
        let Ok(reply) = serde_json::from_slice::<bus::Reply>(json) else { return false };
        if self.asked.as_ref() != Some(&reply.id) {
            return false;
        }
        match reply.outcome {
            Outcome::Answer(answer) => match serde_json::from_value(answer) {
                Ok(overview) => {
                    (screen.overview, screen.trouble) = (Some(overview), None);
                    screen.answered = Some(self.clock.now());
                }
                Err(error) => screen.trouble = Some(format!("the Oracle's answer cannot be read: {error}")),
            },
            Outcome::Refused(refusal) => screen.trouble = Some(refusal.why),
        }
        true
    }

    fn lost(&mut self, screen: &mut Screen, why: String) {
        (self.bus, self.asked) = (None, None);
        screen.trouble = Some(why);
        self.next = self.clock.now() + RETRY;
    }
}

/// What a key asks for.
enum Pressed {
    Nothing,
    Quit,
    /// Another list of hosts, at once.
    Ask,
}

fn pressed(screen: &mut Screen, key: KeyEvent) -> Pressed {
    if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
        return Pressed::Quit;
    }
    if screen.typing {
        return typed(screen, key.code);
    }
    screen.help = key.code == KeyCode::Char('?') && !screen.help;
    match key.code {
        KeyCode::Char('q') => return Pressed::Quit,
        KeyCode::Char('s') => screen.sort = (screen.sort + 1) % SORTS.len(),
        KeyCode::Char('S') => screen.sort = (screen.sort + SORTS.len() - 1) % SORTS.len(),
        KeyCode::Char('/') => {
            screen.typing = true;
            return Pressed::Nothing;
        }
        KeyCode::Char('p') => screen.paused = !screen.paused,
        _ => return Pressed::Nothing,
    }
    Pressed::Ask
}

/// A key while a filter is typed.
fn typed(screen: &mut Screen, code: KeyCode) -> Pressed {
    match code {
        KeyCode::Enter => screen.typing = false,
        KeyCode::Esc => {
            screen.typing = false;
            screen.filter.clear();
        }
        KeyCode::Backspace => drop(screen.filter.pop()),
        KeyCode::Char(letter) if screen.filter.len() < FILTER_MAX && !letter.is_control() => screen.filter.push(letter),
        _ => return Pressed::Nothing,
    }
    Pressed::Ask
}

/// A frame as text.
fn frame(screen: &Screen, (columns, lines): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).expect("memory is a terminal");
    terminal.draw(|frame| screen.draw(frame)).expect("memory is a terminal");
    text_of(terminal.backend().buffer())
}

/// The characters of a frame, without the blanks at the lines' ends.
fn text_of(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width).max(1);
    let lines = buffer.content.chunks(width).map(|line| {
        let line: String = line.iter().map(ratatui::buffer::Cell::symbol).collect();
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(screen: &mut Screen, code: KeyCode) -> bool {
        matches!(pressed(screen, KeyEvent::new(code, KeyModifiers::NONE)), Pressed::Quit)
    }

    #[test]
    fn keys_sort_filter_pause_and_quit() {
        let mut screen = Screen::default();
        press(&mut screen, KeyCode::Char('s'));
        assert_eq!(SORTS[screen.sort], "name");
        press(&mut screen, KeyCode::Char('S'));
        press(&mut screen, KeyCode::Char('S'));
        assert_eq!(SORTS[screen.sort], "heard");
        press(&mut screen, KeyCode::Char('/'));
        "rqck".chars().for_each(|letter| assert!(!press(&mut screen, KeyCode::Char(letter)), "q is a letter here"));
        press(&mut screen, KeyCode::Backspace);
        assert_eq!((screen.filter.as_str(), screen.typing), ("rqc", true));
        (0..1000).for_each(|_| assert!(!press(&mut screen, KeyCode::Char('x'))));
        assert!(screen.filter.len() <= FILTER_MAX);
        press(&mut screen, KeyCode::Enter);
        press(&mut screen, KeyCode::Char('p'));
        press(&mut screen, KeyCode::Char('?'));
        assert!(!screen.typing && screen.paused && screen.help);
        press(&mut screen, KeyCode::Char('?'));
        assert!(!screen.help);
        assert!(press(&mut screen, KeyCode::Char('q')));
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(matches!(pressed(&mut Screen { typing: true, ..Screen::default() }, interrupt), Pressed::Quit));
    }
}
