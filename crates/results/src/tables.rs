//! The rows as Parquet tables, written column by column in slices of rows, so that a large table is never copied whole.
//!
//! Integers are signed 64-bit: a difference of two unsigned columns wraps in data-frame libraries. Names and
//! meanings of the columns are those of the rows' fields.

use std::{fs::File, path::Path, sync::Arc};

use parquet::{
    basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel},
    data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type},
    errors::Result,
    file::{
        metadata::KeyValue,
        properties::WriterProperties,
        writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::{Type, TypePtr},
};

use crate::{Arm, CueRow, CwndSample, EnforcerRow, FlowRow, LinkRow, LinkSample, MessageRow, Summary};

/// Rows per row group: some megabytes of buffer at the widest table.
const ROWS_PER_GROUP: usize = 65_536;

/// Fixed, because the library's own version in the file would change the bytes when the library does.
const CREATED_BY: &str = "opentcp";

/// How to take one column out of a row.
enum Cells<'a, R> {
    Int(Box<dyn Fn(&'a R) -> u64 + 'a>),
    IntOrNull(Box<dyn Fn(&'a R) -> Option<u64> + 'a>),
    Float(Box<dyn Fn(&'a R) -> f64 + 'a>),
    FloatOrNull(Box<dyn Fn(&'a R) -> Option<f64> + 'a>),
    Bool(Box<dyn Fn(&'a R) -> bool + 'a>),
    Text(Box<dyn Fn(&'a R) -> &'a str + 'a>),
}

/// One column: its name and where its cells come from.
struct Column<'a, R> {
    name: &'static str,
    cells: Cells<'a, R>,
}

impl<'a, R> Column<'a, R> {
    fn int(name: &'static str, cell: impl Fn(&'a R) -> u64 + 'a) -> Self {
        let cells = Cells::Int(Box::new(cell));
        Self { name, cells }
    }

    fn int_or_null(name: &'static str, cell: impl Fn(&'a R) -> Option<u64> + 'a) -> Self {
        let cells = Cells::IntOrNull(Box::new(cell));
        Self { name, cells }
    }

    fn float(name: &'static str, cell: impl Fn(&'a R) -> f64 + 'a) -> Self {
        let cells = Cells::Float(Box::new(cell));
        Self { name, cells }
    }

    fn float_or_null(name: &'static str, cell: impl Fn(&'a R) -> Option<f64> + 'a) -> Self {
        let cells = Cells::FloatOrNull(Box::new(cell));
        Self { name, cells }
    }

    fn bool(name: &'static str, cell: impl Fn(&'a R) -> bool + 'a) -> Self {
        let cells = Cells::Bool(Box::new(cell));
        Self { name, cells }
    }

    fn text(name: &'static str, cell: impl Fn(&'a R) -> &'a str + 'a) -> Self {
        let cells = Cells::Text(Box::new(cell));
        Self { name, cells }
    }

    fn schema(&self) -> Result<TypePtr> {
        let (physical, repetition, logical) = match self.cells {
            Cells::Int(_) => (Physical::INT64, Repetition::REQUIRED, None),
            Cells::IntOrNull(_) => (Physical::INT64, Repetition::OPTIONAL, None),
            Cells::Float(_) => (Physical::DOUBLE, Repetition::REQUIRED, None),
            Cells::FloatOrNull(_) => (Physical::DOUBLE, Repetition::OPTIONAL, None),
            Cells::Bool(_) => (Physical::BOOLEAN, Repetition::REQUIRED, None),
            Cells::Text(_) => (Physical::BYTE_ARRAY, Repetition::REQUIRED, Some(LogicalType::String)),
        };
        let column =
            Type::primitive_type_builder(self.name, physical).with_repetition(repetition).with_logical_type(logical);
        Ok(Arc::new(column.build()?))
    }

    fn write(&self, rows: &'a [R], writer: &mut SerializedColumnWriter) -> Result<usize> {
        match &self.cells {
            Cells::Int(cell) => {
                let values: Vec<i64> = rows.iter().map(|row| signed(cell(row))).collect();
                writer.typed::<Int64Type>().write_batch(&values, None, None)
            }
            Cells::IntOrNull(cell) => {
                let cells = || rows.iter().map(cell);
                let values: Vec<i64> = cells().flatten().map(signed).collect();
                let present: Vec<i16> = cells().map(|value| i16::from(value.is_some())).collect();
                let writer = writer.typed::<Int64Type>();
                writer.write_batch(&values, Some(&present), None)
            }
            Cells::Float(cell) => {
                let values: Vec<f64> = rows.iter().map(cell).collect();
                let writer = writer.typed::<DoubleType>();
                writer.write_batch(&values, None, None)
            }
            Cells::FloatOrNull(cell) => {
                let cells = || rows.iter().map(cell);
                let values: Vec<f64> = cells().flatten().collect();
                let present: Vec<i16> = cells().map(|value| i16::from(value.is_some())).collect();
                let writer = writer.typed::<DoubleType>();
                writer.write_batch(&values, Some(&present), None)
            }
            Cells::Bool(cell) => {
                let values: Vec<bool> = rows.iter().map(cell).collect();
                writer.typed::<BoolType>().write_batch(&values, None, None)
            }
            Cells::Text(cell) => {
                let values: Vec<_> = rows.iter().map(|row| ByteArray::from(cell(row))).collect();
                let writer = writer.typed::<ByteArrayType>();
                writer.write_batch(&values, None, None)
            }
        }
    }
}

/// Counts, bytes and nanoseconds of a run stay far below 2^63 (292 years in nanoseconds).
fn signed(value: u64) -> i64 {
    i64::try_from(value).expect("a count, size or time of a run is below 2^63")
}

/// Writes `flows.parquet`.
pub(crate) fn write_flows(path: &Path, rows: &[FlowRow], origin: &Summary) -> Result<()> {
    type Of<'a> = Column<'a, FlowRow>;
    let columns = vec![
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
    ];
    write(path, rows, &columns, origin)
}

/// Writes `links.parquet`.
pub(crate) fn write_links(path: &Path, rows: &[LinkRow], origin: &Summary) -> Result<()> {
    type Of<'a> = Column<'a, LinkRow>;
    let columns = vec![
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
    ];
    write(path, rows, &columns, origin)
}

/// Writes `link_series.parquet`; the links' names come from `links`.
pub(crate) fn write_link_series(path: &Path, rows: &[LinkSample], links: &[LinkRow], origin: &Summary) -> Result<()> {
    type Of<'a> = Column<'a, LinkSample>;
    let columns = vec![
        Of::int("time_ns", |row| row.time_ns),
        Of::text("link", |row| &links[row.link as usize].link),
        Of::int("queue_packets", |row| u64::from(row.queue_packets)),
        Of::int("queue_bytes", |row| row.queue_bytes),
        Of::float("utilization", |row| row.utilization),
        Of::int("drops", |row| u64::from(row.drops)),
        Of::int("marks", |row| u64::from(row.marks)),
    ];
    write(path, rows, &columns, origin)
}

/// Writes `cwnd.parquet`.
pub(crate) fn write_cwnd(path: &Path, rows: &[CwndSample], origin: &Summary) -> Result<()> {
    type Of<'a> = Column<'a, CwndSample>;
    let columns = vec![
        Of::int("time_ns", |row| row.time_ns),
        Of::int("flow", |row| row.flow),
        Of::int("cwnd", |row| u64::from(row.cwnd)),
        Of::int_or_null("ssthresh", |row| row.ssthresh.map(u64::from)),
        Of::int_or_null("srtt_us", |row| row.srtt_us.map(u64::from)),
        Of::int("in_flight", |row| u64::from(row.in_flight)),
        Of::text("state", |row| row.state.as_str()),
        Of::int_or_null("pacing_rate_bps", |row| row.pacing_rate_bps),
    ];
    write(path, rows, &columns, origin)
}

/// Writes `messages.parquet`.
pub(crate) fn write_messages(path: &Path, rows: &[MessageRow], origin: &Summary) -> Result<()> {
    type Of<'a> = Column<'a, MessageRow>;
    let columns = vec![
        Of::int("flow", |row| row.flow),
        Of::text("entry", |row| &row.entry),
        Of::int("job", |row| u64::from(row.job)),
        Of::int("round", |row| row.round),
        Of::int("start_ns", |row| row.start_ns),
        Of::int("end_ns", |row| row.end_ns),
        Of::int("fct_ns", |row| row.end_ns - row.start_ns),
        Of::int("bytes", |row| row.bytes),
        Of::int("retransmits", |row| row.retransmits),
    ];
    write(path, rows, &columns, origin)
}

/// Writes `enforcer.parquet`.
pub(crate) fn write_enforcer(path: &Path, rows: &[EnforcerRow], origin: &Summary) -> Result<()> {
    type Of<'a> = Column<'a, EnforcerRow>;
    let columns = vec![
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
    ];
    write(path, rows, &columns, origin)
}

/// Writes `cues.parquet`.
pub(crate) fn write_cues(path: &Path, rows: &[CueRow], origin: &Summary) -> Result<()> {
    type Of<'a> = Column<'a, CueRow>;
    let columns = vec![
        Of::int("time_ns", |row| row.time_ns),
        Of::text("event", |row| row.event.as_str()),
        Of::int("epoch", |row| row.epoch),
        Of::text("rule", |row| &row.rule),
        Of::text("host", |row| &row.host),
        Of::int("hosts", |row| row.hosts),
        Of::text("set", |row| &row.set),
        Of::text("reason", |row| &row.reason),
    ];
    write(path, rows, &columns, origin)
}

/// Writes a table. Its metadata hold its origin, so that a single file still has it.
fn write<'a, R>(path: &Path, rows: &'a [R], columns: &[Column<'a, R>], origin: &Summary) -> Result<()> {
    let fields = columns.iter().map(Column::schema);
    let schema = Type::group_type_builder("row").with_fields(fields.collect::<Result<Vec<_>>>()?).build()?;
    let metadata =
        [("scenario", origin.scenario.clone()), ("seed", origin.seed.to_string()), ("version", origin.version.clone())];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value));
    let properties = WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_key_value_metadata(Some(metadata.to_vec()))
        .build();
    let file = File::create(path)?;
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
    for slice in rows.chunks(ROWS_PER_GROUP) {
        write_group(writer.next_row_group()?, slice, columns)?;
    }
    writer.close()?;
    Ok(())
}

fn write_group<'a, R>(
    mut group: SerializedRowGroupWriter<'_, File>,
    rows: &'a [R],
    columns: &[Column<'a, R>],
) -> Result<()> {
    for column in columns {
        let mut writer = group.next_column()?.expect("one writer per schema column");
        column.write(rows, &mut writer)?;
        writer.close()?;
    }
    group.close()?;
    Ok(())
}
