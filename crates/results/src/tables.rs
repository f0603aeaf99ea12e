//! The rows as Parquet tables, written column by column in slices of rows, so that a large table is never copied whole.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use parquet::{
    basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel},
    data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type},
    errors::{ParquetError, Result},
    file::{
        metadata::KeyValue,
        properties::WriterProperties,
        writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::{Type, TypePtr},
};

use crate::{
    RunResults, Summary,
    columns::{self, Cells, Definition, Table, Values},
};

/// Rows per row group: some megabytes of buffer at the widest table.
const ROWS_PER_GROUP: usize = 65_536;

/// Fixed, because the library's own version in the file would change the bytes when the library does.
const CREATED_BY: &str = "opentcp";

/// A table of a run as a Parquet file, which is small beside its rows; none if it was not measured. Flows and links always are.
///
/// # Errors
/// The library refuses.
pub(crate) fn encode(run: &RunResults, table: Table) -> Result<Option<Vec<u8>>> {
    let origin = &run.summary;
    match table {
        Table::Flows => file_of(&run.flows, &columns::flows(), origin).map(Some),
        Table::Links => file_of(&run.links, &columns::links(), origin).map(Some),
        Table::LinkSeries => measured(&run.link_series, &columns::link_series(&run.links), origin),
        Table::Cwnd => measured(&run.cwnd, &columns::cwnd(), origin),
        Table::Messages => measured(&run.messages, &columns::messages(), origin),
        Table::Jobs => measured(&run.jobs, &columns::jobs(), origin),
        Table::Coflows => measured(&run.coflows, &columns::coflows(), origin),
        Table::Cues => measured(&run.cues, &columns::cues(), origin),
        Table::Enforcer => measured(&run.enforcer, &columns::enforcer(), origin),
    }
}

fn measured<'a, R>(rows: &'a [R], columns: &[Definition<'a, R>], origin: &Summary) -> Result<Option<Vec<u8>>> {
    (!rows.is_empty()).then(|| file_of(rows, columns, origin)).transpose()
}

/// The file's metadata hold its origin, so that a single file still has it.
fn file_of<'a, R>(rows: &'a [R], columns: &[Definition<'a, R>], origin: &Summary) -> Result<Vec<u8>> {
    let metadata =
        [("scenario", origin.scenario.clone()), ("seed", origin.seed.to_string()), ("version", origin.version.clone())];
    file(rows, columns, metadata)
}

/// Writes the tables of a run into the folder `dir`.
///
/// # Errors
/// The file that could not be written, and why.
pub(crate) fn write_tables(dir: &Path, run: &RunResults) -> std::result::Result<(), (PathBuf, ParquetError)> {
    for table in Table::ALL {
        let path = dir.join(format!("{}.parquet", table.name()));
        let write = |bytes: Vec<u8>| Ok(fs::write(&path, bytes)?);
        let written = encode(run, table).and_then(|bytes| bytes.map_or(Ok(()), write));
        written.map_err(|error| (path, error))?;
    }
    Ok(())
}

/// The type of a column.
fn schema<R>(column: &Definition<'_, R>) -> Result<TypePtr> {
    let (physical, repetition, logical) = match column.cells {
        Cells::Int(_) => (Physical::INT64, Repetition::REQUIRED, None),
        Cells::IntOrNull(_) => (Physical::INT64, Repetition::OPTIONAL, None),
        Cells::Float(_) => (Physical::DOUBLE, Repetition::REQUIRED, None),
        Cells::FloatOrNull(_) => (Physical::DOUBLE, Repetition::OPTIONAL, None),
        Cells::Bool(_) => (Physical::BOOLEAN, Repetition::REQUIRED, None),
        Cells::Text(_) => (Physical::BYTE_ARRAY, Repetition::REQUIRED, Some(LogicalType::String)),
    };
    let column =
        Type::primitive_type_builder(column.name, physical).with_repetition(repetition).with_logical_type(logical);
    Ok(Arc::new(column.build()?))
}

/// Writes the values of one column.
fn write_values(values: Values<'_>, writer: &mut SerializedColumnWriter) -> Result<usize> {
    match values {
        Values::Int(values) => writer.typed::<Int64Type>().write_batch(&values, None, None),
        Values::IntOrNull(cells) => {
            let (values, present) = present(&cells);
            writer.typed::<Int64Type>().write_batch(&values, Some(&present), None)
        }
        Values::Float(values) => writer.typed::<DoubleType>().write_batch(&values, None, None),
        Values::FloatOrNull(cells) => {
            let (values, present) = present(&cells);
            writer.typed::<DoubleType>().write_batch(&values, Some(&present), None)
        }
        Values::Bool(values) => writer.typed::<BoolType>().write_batch(&values, None, None),
        Values::Text(names) => {
            let values: Vec<_> = names.into_iter().map(ByteArray::from).collect();
            writer.typed::<ByteArrayType>().write_batch(&values, None, None)
        }
    }
}

/// The values that there are, and for each row whether it has one.
fn present<T: Copy>(cells: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
    (cells.iter().copied().flatten().collect(), cells.iter().map(|cell| i16::from(cell.is_some())).collect())
}

/// A Parquet file of these rows, with metadata: key and value.
pub(crate) fn file<'a, R, const N: usize>(
    rows: &'a [R],
    columns: &[Definition<'a, R>],
    metadata: [(&str, String); N],
) -> Result<Vec<u8>> {
    let fields = columns.iter().map(schema);
    let schema = Type::group_type_builder("row").with_fields(fields.collect::<Result<Vec<_>>>()?).build()?;
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value));
    let properties = WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_key_value_metadata(Some(metadata.to_vec()))
        .build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties))?;
    for slice in rows.chunks(ROWS_PER_GROUP) {
        write_group(writer.next_row_group()?, slice, columns)?;
    }
    writer.close()?;
    Ok(bytes)
}

fn write_group<'a, R>(
    mut group: SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    rows: &'a [R],
    columns: &[Definition<'a, R>],
) -> Result<()> {
    for column in columns {
        let mut writer = group.next_column()?.expect("one writer per schema column");
        write_values(column.cells.take(rows), &mut writer)?;
        writer.close()?;
    }
    group.close()?;
    Ok(())
}
