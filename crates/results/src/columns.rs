//! The columns of the tables, each defined once: Parquet files and tables in memory are made of them.
//!
//! Integers are signed 64-bit: a difference of two unsigned columns wraps in data-frame libraries. Names and
//! meanings of the columns are those of the rows' fields.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::{
    Arm, CoflowRow, CueRow, CwndSample, EnforcerRow, FlowRow, JobRow, LinkRow, LinkSample, MessageRow, RunResults,
};

/// The tables of a run. A table that was not measured has no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// One row per flow.
    Flows,
    /// One row per link.
    Links,
    /// Samples of links, by time.
    LinkSeries,
    /// Samples of senders, by time.
    Cwnd,
    /// One row per message on a connection that carries several.
    Messages,
    /// One row per run of a job.
    Jobs,
    /// One row per coflow of such a run.
    Coflows,
    /// What happened to a policy's rules, by time.
    Cues,
    /// Flows that an enforcer handled.
    Enforcer,
}

impl Table {
    /// All of them.
    pub const ALL: [Table; 9] = [
        Table::Flows,
        Table::Links,
        Table::LinkSeries,
        Table::Cwnd,
        Table::Messages,
        Table::Jobs,
        Table::Coflows,
        Table::Cues,
        Table::Enforcer,
    ];

    /// Its name, and that of its file without `.parquet`.
    pub fn name(self) -> &'static str {
        match self {
            Table::Flows => "flows",
            Table::Links => "links",
            Table::LinkSeries => "link_series",
            Table::Cwnd => "cwnd",
            Table::Messages => "messages",
            Table::Jobs => "jobs",
            Table::Coflows => "coflows",
            Table::Cues => "cues",
            Table::Enforcer => "enforcer",
        }
    }

    /// The table of this name.
    pub fn named(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }
}

/// A column of a table, in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Column<'a> {
    /// Its name, as in the table's file.
    pub name: &'a str,
    /// A value for each row.
    pub values: Values<'a>,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values<'a> {
    /// Counts, sizes and times.
    Int(Vec<i64>),
    /// The same, where some are absent.
    IntOrNull(Vec<Option<i64>>),
    /// Ratios.
    Float(Vec<f64>),
    /// The same, where some are absent.
    FloatOrNull(Vec<Option<f64>>),
    /// Flags.
    Bool(Vec<bool>),
    /// Names.
    Text(Vec<&'a str>),
}

impl RunResults {
    /// A table, column by column, with the names, types and values of its Parquet file.
    pub fn columns(&self, table: Table) -> Vec<Column<'_>> {
        self.map_columns(table, |column| column)
    }

    /// What `make` makes of each column of a table, in order. Those of a large table are made on all cores at once.
    pub fn map_columns<'a, T: Send>(&'a self, table: Table, make: impl Fn(Column<'a>) -> T + Sync) -> Vec<T> {
        match table {
            Table::Flows => taken(&self.flows, &flows(), &make),
            Table::Links => taken(&self.links, &links(), &make),
            Table::LinkSeries => taken(&self.link_series, &link_series(&self.links), &make),
            Table::Cwnd => taken(&self.cwnd, &cwnd(), &make),
            Table::Messages => taken(&self.messages, &messages(), &make),
            Table::Jobs => taken(&self.jobs, &jobs(), &make),
            Table::Coflows => taken(&self.coflows, &coflows(), &make),
            Table::Cues => taken(&self.cues, &cues(), &make),
            Table::Enforcer => taken(&self.enforcer, &enforcer(), &make),
        }
    }
}

/// Rows from which on other cores are worth being woken.
const ROWS_LARGE: usize = 50_000;

fn taken<'a, R: Sync, T: Send>(
    rows: &'a [R],
    columns: &[Definition<'a, R>],
    make: &(impl Fn(Column<'a>) -> T + Sync),
) -> Vec<T> {
    let one = |column: &Definition<'a, R>| make(Column { name: column.name, values: column.cells.take(rows) });
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(columns.len());
    if rows.len() < ROWS_LARGE || cores < 2 {
        return columns.iter().map(one).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(column) = columns.get(place) else { return made };
            made.push((place, one(column)));
        }
    };
    let mut made: Vec<(usize, T)> = thread::scope(|scope| {
        let others: Vec<_> = (1..cores).map(|_| scope.spawn(work)).collect();
        let own = work();
        let others = others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        others.flatten().chain(own).collect()
    });
    made.sort_unstable_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, column)| column).collect()
}

/// How to take one column out of a row.
pub(crate) enum Cells<'a, R> {
    Int(Box<dyn Fn(&'a R) -> u64 + Sync + 'a>),
    IntOrNull(Box<dyn Fn(&'a R) -> Option<u64> + Sync + 'a>),
    Float(Box<dyn Fn(&'a R) -> f64 + Sync + 'a>),
    FloatOrNull(Box<dyn Fn(&'a R) -> Option<f64> + Sync + 'a>),
    Bool(Box<dyn Fn(&'a R) -> bool + Sync + 'a>),
    Text(Box<dyn Fn(&'a R) -> &'a str + Sync + 'a>),
}

/// One column: its name and where its cells come from.
pub(crate) struct Definition<'a, R> {
    pub name: &'a str,
    pub cells: Cells<'a, R>,
}

impl<'a, R> Definition<'a, R> {
    fn int(name: &'a str, cell: impl Fn(&'a R) -> u64 + Sync + 'a) -> Self {
        let cells = Cells::Int(Box::new(cell));
        Self { name, cells }
    }

    pub(crate) fn int_or_null(name: &'a str, cell: impl Fn(&'a R) -> Option<u64> + Sync + 'a) -> Self {
        let cells = Cells::IntOrNull(Box::new(cell));
        Self { name, cells }
    }

    fn float(name: &'a str, cell: impl Fn(&'a R) -> f64 + Sync + 'a) -> Self {
        let cells = Cells::Float(Box::new(cell));
        Self { name, cells }
    }

    pub(crate) fn float_or_null(name: &'a str, cell: impl Fn(&'a R) -> Option<f64> + Sync + 'a) -> Self {
        let cells = Cells::FloatOrNull(Box::new(cell));
        Self { name, cells }
    }

    fn bool(name: &'a str, cell: impl Fn(&'a R) -> bool + Sync + 'a) -> Self {
        let cells = Cells::Bool(Box::new(cell));
        Self { name, cells }
    }

    pub(crate) fn text(name: &'a str, cell: impl Fn(&'a R) -> &'a str + Sync + 'a) -> Self {
        let cells = Cells::Text(Box::new(cell));
        Self { name, cells }
    }
}

impl<'a, R> Cells<'a, R> {
    /// The cells of these rows.
    pub(crate) fn take(&self, rows: &'a [R]) -> Values<'a> {
        match self {
            Cells::Int(cell) => Values::Int(rows.iter().map(|row| signed(cell(row))).collect()),
            Cells::IntOrNull(cell) => Values::IntOrNull(rows.iter().map(|row| cell(row).map(signed)).collect()),
            Cells::Float(cell) => Values::Float(rows.iter().map(cell).collect()),
            Cells::FloatOrNull(cell) => Values::FloatOrNull(rows.iter().map(cell).collect()),
            Cells::Bool(cell) => Values::Bool(rows.iter().map(cell).collect()),
            Cells::Text(cell) => Values::Text(rows.iter().map(cell).collect()),
        }
    }
}

/// Counts, bytes and nanoseconds of a run stay far below 2^63 (292 years in nanoseconds).
fn signed(value: u64) -> i64 {
    i64::try_from(value).expect("a count, size or time of a run is below 2^63")
}

/// Table `flows`.
pub(crate) fn flows<'a>() -> Vec<Definition<'a, FlowRow>> {
    type Of<'a> = Definition<'a, FlowRow>;
    vec![
        Of::int("flow", |row| row.flow),
        Of::text("src", |row| &row.src),
        Of::text("dst", |row| &row.dst),
        Of::text("algorithm", |row| &row.algorithm),
        Of::text("group", |row| &row.group),
        Of::text("arm", |row| row.arm.map_or("", Arm::as_str)),
        Of::int("start_ns", |row| row.start_ns),
        Of::int_or_null("end_ns", |row| row.end_ns),
        Of::int_or_null("fct_ns", FlowRow::fct_ns),
        Of::int_or_null("ideal_fct_ns", |row| row.ideal_fct_ns),
        Of::float_or_null("slowdown", FlowRow::slowdown),
        Of::int_or_null("bytes", |row| row.bytes),
        Of::int("delivered_bytes", |row| row.delivered_bytes),
        Of::int("data_packets_sent", |row| row.data_packets_sent),
        Of::int("retransmits", |row| row.retransmits),
        Of::int("rtos", |row| row.rtos),
        Of::int_or_null("tlp_probes", |row| row.tlp_probes),
        Of::int("ce_marks", |row| row.ce_marks),
        Of::int("ece_acks", |row| row.ece_acks),
        Of::int("packets_received", |row| row.packets_received),
        Of::int("ip_bytes_received", |row| row.ip_bytes_received),
        Of::int_or_null("mean_packet_delay_ns", |row| row.mean_packet_delay_ns),
        Of::int("acks_received", |row| row.acks_received),
        Of::int("ack_ip_bytes_received", |row| row.ack_ip_bytes_received),
        Of::int_or_null("mean_ack_delay_ns", |row| row.mean_ack_delay_ns),
        Of::int_or_null("min_rtt_us", |row| row.min_rtt_us),
        Of::int_or_null("srtt_us", |row| row.srtt_us),
        Of::int("final_cwnd", |row| u64::from(row.final_cwnd)),
    ]
}

/// Table `links`.
pub(crate) fn links<'a>() -> Vec<Definition<'a, LinkRow>> {
    type Of<'a> = Definition<'a, LinkRow>;
    vec![
        Of::text("link", |row| &row.link),
        Of::text("from", |row| &row.from),
        Of::text("to", |row| &row.to),
        Of::text("tier", |row| &row.tier),
        Of::bool("from_host", |row| row.from_host),
        Of::int("rate_bps", |row| row.rate_bps),
        Of::int("packets", |row| row.packets),
        Of::int("bytes", |row| row.bytes),
        Of::int("delivered", |row| row.delivered),
        Of::int("dropped", |row| row.dropped),
        Of::int("dropped_bytes", |row| row.dropped_bytes),
        Of::int("dropped_by_failure", |row| row.dropped_by_failure),
        Of::int("marked", |row| row.marked),
        Of::int("in_flight", |row| row.in_flight),
        Of::int("max_queue_packets", |row| row.max_queue_packets),
        Of::float("utilization", |row| row.utilization),
    ]
}

/// Table `link_series`; the links' names come from `links`.
pub(crate) fn link_series(links: &[LinkRow]) -> Vec<Definition<'_, LinkSample>> {
    type Of<'a> = Definition<'a, LinkSample>;
    vec![
        Of::int("time_ns", |row| row.time_ns),
        Of::text("link", |row| &links[row.link as usize].link),
        Of::int("queue_packets", |row| u64::from(row.queue_packets)),
        Of::int("queue_bytes", |row| row.queue_bytes),
        Of::float("utilization", |row| row.utilization),
        Of::int("drops", |row| u64::from(row.drops)),
        Of::int("marks", |row| u64::from(row.marks)),
    ]
}

/// Table `cwnd`.
pub(crate) fn cwnd<'a>() -> Vec<Definition<'a, CwndSample>> {
    type Of<'a> = Definition<'a, CwndSample>;
    vec![
        Of::int("time_ns", |row| row.time_ns),
        Of::int("flow", |row| row.flow),
        Of::int("cwnd", |row| u64::from(row.cwnd)),
        Of::int_or_null("ssthresh", |row| row.ssthresh.map(u64::from)),
        Of::int_or_null("srtt_us", |row| row.srtt_us.map(u64::from)),
        Of::int("in_flight", |row| u64::from(row.in_flight)),
        Of::text("state", |row| row.state.as_str()),
        Of::int_or_null("pacing_rate_bps", |row| row.pacing_rate_bps),
    ]
}

/// Table `messages`.
pub(crate) fn messages<'a>() -> Vec<Definition<'a, MessageRow>> {
    type Of<'a> = Definition<'a, MessageRow>;
    vec![
        Of::int("flow", |row| row.flow),
        Of::text("entry", |row| &row.entry),
        Of::int("job", |row| u64::from(row.job)),
        Of::int("round", |row| row.round),
        Of::int("start_ns", |row| row.start_ns),
        Of::int("end_ns", |row| row.end_ns),
        Of::int("fct_ns", |row| row.end_ns - row.start_ns),
        Of::int("bytes", |row| row.bytes),
        Of::int("retransmits", |row| row.retransmits),
    ]
}

/// Table `jobs`.
pub(crate) fn jobs<'a>() -> Vec<Definition<'a, JobRow>> {
    type Of<'a> = Definition<'a, JobRow>;
    vec![
        Of::text("entry", |row| &row.entry),
        Of::int("job", |row| u64::from(row.job)),
        Of::int("start_ns", |row| row.start_ns),
        Of::int_or_null("end_ns", |row| row.end_ns),
        Of::int_or_null("jct_ns", JobRow::jct_ns),
        Of::int("tasks", |row| row.tasks),
        Of::int("messages", |row| row.messages),
        Of::int("bytes", |row| row.bytes),
    ]
}

/// Table `coflows`.
pub(crate) fn coflows<'a>() -> Vec<Definition<'a, CoflowRow>> {
    type Of<'a> = Definition<'a, CoflowRow>;
    vec![
        Of::text("entry", |row| &row.entry),
        Of::int("job", |row| u64::from(row.job)),
        Of::text("coflow", |row| &row.coflow),
        Of::int_or_null("start_ns", |row| row.start_ns),
        Of::int_or_null("end_ns", |row| row.end_ns),
        Of::int_or_null("cct_ns", CoflowRow::cct_ns),
        Of::int("messages", |row| row.messages),
        Of::int("bytes", |row| row.bytes),
    ]
}

/// Table `enforcer`.
pub(crate) fn enforcer<'a>() -> Vec<Definition<'a, EnforcerRow>> {
    type Of<'a> = Definition<'a, EnforcerRow>;
    vec![
        Of::text("node", |row| &row.node),
        Of::int_or_null("flow", |row| row.flow),
        Of::text("server", |row| &row.server),
        Of::int("server_port", |row| u64::from(row.server_port)),
        Of::text("client", |row| &row.client),
        Of::int("client_port", |row| u64::from(row.client_port)),
        Of::text("algorithm", |row| &row.algorithm),
        Of::int("start_ns", |row| row.start_ns),
        Of::int("end_ns", |row| row.end_ns),
        Of::text("ending", |row| row.ending),
        Of::int("bytes_acked", |row| row.bytes_acked),
        Of::int("data_packets_sent", |row| row.data_packets_sent),
        Of::int("retransmits", |row| row.retransmits),
        Of::int("rtos", |row| row.rtos),
        Of::int("absorbed", |row| row.absorbed),
        Of::int("hidden", |row| row.hidden),
        Of::int("delivered_ce", |row| row.delivered_ce),
        Of::int_or_null("min_rtt_us", |row| row.min_rtt_us),
        Of::int_or_null("srtt_us", |row| row.srtt_us),
        Of::int("final_cwnd", |row| row.final_cwnd),
    ]
}

/// Table `cues`.
pub(crate) fn cues<'a>() -> Vec<Definition<'a, CueRow>> {
    type Of<'a> = Definition<'a, CueRow>;
    vec![
        Of::int("time_ns", |row| row.time_ns),
        Of::text("event", |row| row.event.as_str()),
        Of::int("epoch", |row| row.epoch),
        Of::text("rule", |row| &row.rule),
        Of::text("host", |row| &row.host),
        Of::int("hosts", |row| row.hosts),
        Of::text("set", |row| &row.set),
        Of::text("reason", |row| &row.reason),
    ]
}
