//! A frame of `opentcp top`.

use oracle::{HostLine, LinkLine, Overview, QuantityLine, VerdictLine, verdict_words};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Clear, Paragraph, Row, Table};
use units::Time;

/// Columns by which hosts are sorted.
pub const SORTS: [&str; 11] =
    ["attention", "name", "rack", "cc", "flows", "retransmits", "rate", "rules", "guards", "differs", "heard"];

/// From this width on tables have all their columns.
const WIDE: u16 = 100;
/// Lines of the head.
const HEAD: u16 = 3;

/// What is shown.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a key that is on or off")]
pub struct Screen {
    /// The last answer.
    pub overview: Option<Overview>,
    /// When it came.
    pub answered: Option<Time>,
    /// Now.
    pub now: Time,
    /// Why there is none, or no newer one.
    pub trouble: Option<String>,
    /// A place in [`SORTS`].
    pub sort: usize,
    /// A part of hosts' names or racks.
    pub filter: String,
    /// The filter is being typed.
    pub typing: bool,
    /// Nothing is asked for.
    pub paused: bool,
    /// The keys are explained.
    pub help: bool,
    /// Colours may be used.
    pub coloured: bool,
}

/// What something means to an operator.
#[derive(Clone, Copy)]
enum Tone {
    Plain,
    Good,
    Bad,
    Warn,
    Quiet,
}

impl Screen {
    fn style(&self, tone: Tone) -> Style {
        let colour = |colour: Color| if self.coloured { Style::new().fg(colour) } else { Style::new() };
        match tone {
            Tone::Plain => Style::new(),
            Tone::Good => colour(Color::Green),
            Tone::Bad => colour(Color::Red).add_modifier(Modifier::BOLD),
            Tone::Warn => colour(Color::Yellow),
            Tone::Quiet => Style::new().add_modifier(Modifier::DIM),
        }
    }

    fn span(&self, text: impl Into<String>, tone: Tone) -> Span<'static> {
        Span::styled(text.into(), self.style(tone))
    }

    /// Draws a frame of any size.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let [head, body, foot] =
            Layout::vertical([Constraint::Length(HEAD), Constraint::Min(0), Constraint::Length(1)]).areas(area);
        frame.render_widget(Paragraph::new(self.head()), head);
        frame.render_widget(Paragraph::new(self.foot(area.width)), foot);
        if let Some(overview) = &self.overview {
            self.body(frame, body, overview);
        }
        if self.help {
            Self::explain(frame, body);
        }
    }

    fn head(&self) -> Vec<Line<'static>> {
        let trouble = self.trouble.as_ref().map(|why| Line::from(self.span(one_line(why), Tone::Bad)));
        let Some(overview) = &self.overview else {
            let first = Line::from(Span::styled("opentcp top", Style::new().add_modifier(Modifier::BOLD)));
            return vec![first, trouble.unwrap_or_else(|| Line::from("waiting for the Oracle's answer"))];
        };
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let (mode, tone) = match (overview.age_s, overview.is_enforcing()) {
            _ if !overview.leads => ("another Oracle decides", Tone::Warn),
            (None, _) => ("nothing decided yet", Tone::Warn),
            _ if overview.paused => ("paused by an operator", Tone::Bad),
            (Some(_), true) => ("enforcing", Tone::Good),
            (Some(_), false) => ("observing", Tone::Warn),
        };
        let age =
            overview.age_s.map(|age| age + self.answered.map_or(0.0, |at| self.now.saturating_sub(at).as_secs_f64()));
        let late = age.is_some_and(|age| age > 2.0 * overview.period_s);
        let decided = age.map_or(String::new(), |age| format!("decided {} ago", seconds(age)));
        let first = Line::from(vec![
            Span::styled(format!("{}  ", overview.policy), bold),
            self.span(mode, tone),
            Span::raw(format!("  epoch {}  T = {}  ", epoch(overview.epoch), seconds(overview.period_s))),
            self.span(decided, if late { Tone::Bad } else { Tone::Plain }),
            self.span(if self.paused { "  PAUSED" } else { "" }, Tone::Warn),
        ]);
        let count = |what: &str, n: u64, tone: Tone| {
            [Span::raw(format!("  {what} ")), self.span(n.to_string(), if n > 0 { tone } else { Tone::Plain })]
        };
        let refused = overview.refused.iter().map(|(_, count)| count).fold(0, |all: u64, one| all.saturating_add(*one));
        let mut second = vec![Span::raw(format!(
            "hosts {} ({} on bus)  {} {}  control {}",
            overview.hosts,
            overview.agents,
            if overview.is_enforcing() && !self.paused { "treated" } else { "would be treated" },
            overview.treated,
            overview.hosts.saturating_sub(overview.treated)
        ))];
        second.extend(count("guard trips", overview.guard_trips, Tone::Bad));
        second.extend(count("differ", overview.differing as u64, Tone::Bad));
        second.extend(count("outliers", overview.outliers as u64, Tone::Warn));
        second.extend(count("refused", refused, Tone::Warn));
        let broken: Vec<&str> =
            overview.constraints.iter().filter(|(_, holds)| *holds == Some(false)).map(|(name, _)| &**name).collect();
        let third = trouble.unwrap_or_else(|| {
            if broken.is_empty() {
                let VerdictLine { judgement, reason, .. } = &overview.verdict;
                Line::from(self.span(verdict_words(judgement, reason), tone_of(judgement)))
            } else {
                Line::from(self.span(format!("does not hold: {}", broken.join(", ")), Tone::Bad))
            }
        });
        vec![first, Line::from(second), third]
    }

    fn foot(&self, width: u16) -> Line<'static> {
        if self.typing {
            return Line::from(vec![Span::raw("filter hosts: "), self.span(format!("{}_", self.filter), Tone::Warn)]);
        }
        let keys = if width < 60 { "q quit  s sort  / filter" } else { "q quit  s sort  / filter  p pause  ? help" };
        Line::from(self.span(keys, Tone::Quiet))
    }

    fn body(&self, frame: &mut Frame<'_>, area: Rect, overview: &Overview) {
        // a short terminal shows hosts last
        let upper = (overview.rules.len() as u16).clamp(4, 6.max(area.height / 5)) + 2;
        let middle = if area.height >= 18 { (area.height / 4).clamp(5, 12) } else { 0 };
        let [top, links, hosts] =
            Layout::vertical([Constraint::Length(upper), Constraint::Length(middle), Constraint::Min(0)]).areas(area);
        let [verdict, rules] = Layout::horizontal([Constraint::Percentage(44), Constraint::Percentage(56)]).areas(top);
        self.verdict(frame, verdict, overview);
        self.rules(frame, rules, overview);
        let [busiest, decisions] =
            Layout::horizontal([Constraint::Percentage(44), Constraint::Percentage(56)]).areas(links);
        self.links(frame, busiest, overview);
        self.decisions(frame, decisions, overview);
        self.hosts(frame, hosts, overview);
    }

    fn verdict(&self, frame: &mut Frame<'_>, area: Rect, overview: &Overview) {
        let row = |quantity: &QuantityLine| {
            let interval = quantity
                .interval
                .map_or("no bound yet".to_string(), |(low, high)| format!("{} to {}", percent(low), percent(high)));
            let change = quantity.change.map_or("-".to_string(), percent);
            let tone = tone_of(&quantity.judgement);
            Row::new([
                Cell::from(quantity.name.clone()),
                Cell::from(self.span(format!("{change:>7}"), tone)),
                Cell::from(interval),
            ])
        };
        let widths = [Constraint::Length(8), Constraint::Length(7), Constraint::Min(10)];
        let table = Table::new(overview.verdict.quantities.iter().map(row), widths);
        frame.render_widget(table.block(block("Treated against control", "")), area);
    }

    fn rules(&self, frame: &mut Frame<'_>, area: Rect, overview: &Overview) {
        let row = |rule: &oracle::RuleLine| {
            let (state, tone) = match (&rule.withheld, rule.on) {
                (Some(_), _) => ("withheld".to_string(), Tone::Warn),
                (None, 0) => ("off".to_string(), Tone::Quiet),
                (None, on) => (format!("on {on}/{}", rule.matched), Tone::Good),
            };
            let why = rule.withheld.clone().unwrap_or_else(|| rule.why.clone());
            Row::new([Cell::from(rule.name.clone()), Cell::from(self.span(state, tone)), Cell::from(one_line(&why))])
        };
        let widths = [Constraint::Max(14), Constraint::Length(10), Constraint::Min(8)];
        let table = Table::new(overview.rules.iter().map(row), widths);
        let rows = usize::from(area.height.saturating_sub(2));
        let title =
            if overview.rules.len() > rows { format!("{rows} of {}", overview.rules.len()) } else { String::new() };
        frame.render_widget(table.block(block("Rules", &title)), area);
    }

    fn links(&self, frame: &mut Frame<'_>, area: Rect, overview: &Overview) {
        let width = usize::from(area.width.saturating_sub(2));
        let line = |link: &LinkLine| {
            let used = link.utilization.unwrap_or(0.0);
            let tone = match used {
                used if used >= 0.9 => Tone::Bad,
                used if used >= 0.7 => Tone::Warn,
                _ => Tone::Good,
            };
            let (name, bar) = (width.saturating_sub(18), 10);
            let shown = link.utilization.map_or("   ?".to_string(), |used| format!("{:>3.0}%", used * 100.0));
            let drops = link.drop_rate.filter(|rate| *rate > 0.0).map_or(String::new(), |_| "!".to_string());
            Line::from(vec![
                Span::raw(format!("{:name$.name$} ", link.name)),
                self.span(bars(used, bar), tone),
                self.span(format!(" {shown}{drops}"), tone),
            ])
        };
        let lines: Vec<Line<'_>> = overview.links.iter().map(line).collect();
        let title = block("Busiest links", &format!("of {}", overview.links_total));
        frame.render_widget(Paragraph::new(lines).block(title), area);
    }

    fn decisions(&self, frame: &mut Frame<'_>, area: Rect, overview: &Overview) {
        let line = |decision: &oracle::DecisionLine| {
            Line::from(vec![
                self.span(format!("{} ", clock(decision.unix_s)), Tone::Quiet),
                Span::raw(format!("{} CUEs; {}", decision.cues, one_line(&decision.words))),
            ])
        };
        let lines: Vec<Line<'_>> = overview.decisions.iter().map(line).collect();
        frame.render_widget(Paragraph::new(lines).block(block("Decisions", "UTC, newest first")), area);
    }

    fn hosts(&self, frame: &mut Frame<'_>, area: Rect, overview: &Overview) {
        let wide = area.width >= WIDE;
        let mut head = vec!["HOST", "ARM", "CC", "FLOWS", "RETRANS", "RATE", "RULES", "GUARDS", "DIFFER"];
        let mut widths = vec![
            Constraint::Min(12),
            Constraint::Length(7),
            Constraint::Length(8),
            Constraint::Length(6),
            Constraint::Length(7),
            Constraint::Length(9),
            Constraint::Length(5),
            Constraint::Length(6),
            Constraint::Length(6),
        ];
        if wide {
            head.extend(["HEARD", "RACK"]);
            widths.extend([Constraint::Length(6), Constraint::Length(12)]);
        }
        let rows = overview.host_lines.iter().map(|host| self.host(host, wide));
        let table = Table::new(rows, widths).header(Row::new(head).style(self.style(Tone::Quiet)));
        let sorted = SORTS.get(self.sort).copied().unwrap_or_default();
        let filter = if self.filter.is_empty() { String::new() } else { format!(", with `{}`", self.filter) };
        let title = format!("{} of {}{filter}, by {sorted}", overview.hosts_matched, overview.hosts);
        frame.render_widget(table.block(block("Hosts", &title)), area);
    }

    fn host(&self, host: &HostLine, wide: bool) -> Row<'static> {
        let alarming = |n: u64| Cell::from(self.span(n.to_string(), if n > 0 { Tone::Bad } else { Tone::Quiet }));
        let unknown = || "-".to_string();
        let losses = host.retransmits.map_or(Tone::Quiet, |share| if share > 0.01 { Tone::Warn } else { Tone::Plain });
        let mut cells = vec![
            Cell::from(host.name.clone()),
            Cell::from(if host.treated { "treated" } else { "control" }),
            Cell::from(host.cc.clone()),
            Cell::from(host.flows.map_or_else(unknown, |flows| format!("{flows:.0}"))),
            Cell::from(
                self.span(host.retransmits.map_or_else(unknown, |share| format!("{:.2}%", share * 100.0)), losses),
            ),
            Cell::from(host.send_bps.map_or_else(unknown, rate)),
            Cell::from(host.rules.to_string()),
            alarming(host.guard_trips),
            alarming(host.differing as u64),
        ];
        if wide {
            cells.extend([Cell::from(seconds(host.heard_s)), Cell::from(host.rack.clone())]);
        }
        Row::new(cells)
    }

    fn explain(frame: &mut Frame<'_>, area: Rect) {
        let text = "\
q         quit
s, S      sort hosts by the next column, by the one before
/         filter hosts by a part of name or rack; Esc ends it
p         pause
?         this help

Numbers are those of the Oracle's last decision.
differ    connections that do not have what was set
guards    rules that a guard has reverted";
        let (width, height) = (62.min(area.width), 11.min(area.height));
        let place =
            Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
        frame.render_widget(Clear, place);
        frame.render_widget(Paragraph::new(text).block(block("Keys", "")), place);
    }
}

fn block(title: &str, more: &str) -> Block<'static> {
    let title = if more.is_empty() { format!(" {title} ") } else { format!(" {title}: {more} ") };
    Block::new().borders(Borders::ALL).border_style(Style::new().add_modifier(Modifier::DIM)).title(title)
}

fn tone_of(judgement: &str) -> Tone {
    match judgement {
        "helping" => Tone::Good,
        "hurting" => Tone::Bad,
        _ => Tone::Plain,
    }
}

/// A bar of so many cells, in eighths.
fn bars(share: f64, cells: usize) -> String {
    const EIGHTHS: [&str; 9] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];
    let eighths = (share.clamp(0.0, 1.0) * cells as f64 * 8.0).round() as usize;
    let text = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
    let used = eighths.div_ceil(8);
    text + &" ".repeat(cells - used.min(cells))
}

/// An epoch; where there are several Oracles, its term as well.
fn epoch(epoch: u64) -> String {
    match epoch >> 40 {
        0 => epoch.to_string(),
        term => format!("{term}.{}", epoch & 0xffff_ffff),
    }
}

fn percent(share: f64) -> String {
    format!("{:+.1}%", share * 100.0)
}

/// `12 s`, `5 min`, `3 h`.
fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 && s.fract() > 0.05 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.0} h", s / 3600.0),
    }
}

/// `12.3 Gb/s`.
fn rate(bps: u64) -> String {
    let units = [(1_000_000_000, "Gb/s"), (1_000_000, "Mb/s"), (1_000, "kb/s")];
    let unit = units.into_iter().find(|(unit, _)| bps >= *unit);
    unit.map_or(format!("{bps} b/s"), |(unit, name)| format!("{:.1} {name}", bps as f64 / unit as f64))
}

/// The time of day, UTC.
fn clock(unix_s: f64) -> String {
    let s = unix_s.max(0.0) as u64 % 86_400;
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// Without line breaks and other control characters, whatever the other side sent.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
