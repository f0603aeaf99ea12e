//! The rows as Parquet tables, written column by column in slices of rows, so that a large table is never copied whole.

use std::{
    fs::File,
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

/// Writes the tables of a run into the folder `dir`: flows and links always, the others if they have rows.
///
/// # Errors
/// The file that could not be written, and why.
pub(crate) fn write_tables(dir: &Path, run: &RunResults) -> std::result::Result<(), (PathBuf, ParquetError)> {
    let origin = &run.summary;
    write(dir, Table::Flows, &run.flows, &columns::flows(), origin)?;
    write(dir, Table::Links, &run.links, &columns::links(), origin)?;
    write(dir, Table::LinkSeries, &run.link_series, &columns::link_series(&run.links), origin)?;
    write(dir, Table::Cwnd, &run.cwnd, &columns::cwnd(), origin)?;
    write(dir, Table::Messages, &run.messages, &columns::messages(), origin)?;
    write(dir, Table::Cues, &run.cues, &columns::cues(), origin)?;
    write(dir, Table::Enforcer, &run.enforcer, &columns::enforcer(), origin)
}

fn write<'a, R>(
    dir: &Path,
    table: Table,
    rows: &'a [R],
    columns: &[Definition<'a, R>],
    origin: &Summary,
) -> std::result::Result<(), (PathBuf, ParquetError)> {
    if rows.is_empty() && !matches!(table, Table::Flows | Table::Links) {
        return Ok(());
    }
    let path = dir.join(format!("{}.parquet", table.name()));
    write_file(&path, rows, columns, origin).map_err(|error| (path, error))
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

/// Writes a table. Its metadata hold its origin, so that a single file still has it.
fn write_file<'a, R>(path: &Path, rows: &'a [R], columns: &[Definition<'a, R>], origin: &Summary) -> Result<()> {
    let fields = columns.iter().map(schema);
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
