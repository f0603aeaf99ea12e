//! Tables and runs that were written, read again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Type as Physical;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::dataset::{RUN_TABLE, RUNS, copies, part};
use crate::write::{SUMMARY, io_error};
use crate::{Column, Summary, Table, Values, WriteError};

/// Rows that are read at a time.
const ROWS: usize = 65_536;

/// A run that was written: by itself, in a sweep's folder, or in a dataset.
#[derive(Clone, Debug)]
pub struct WrittenRun {
    /// Its name.
    pub name: String,
    /// Its parameters, in order.
    pub parameters: Vec<(String, String)>,
    /// Its numbers.
    pub summary: Summary,
    /// The folder that has its scenario.
    pub folder: PathBuf,
    /// The dataset that has its tables; none if they are in its own folder.
    dataset: Option<PathBuf>,
}

/// A run in a `summary.json`.
#[derive(serde::Deserialize)]
struct Entry {
    name: String,
    #[serde(default)]
    folder: String,
    parameters: Parameters,
    summary: Summary,
}

/// A sweep's `summary.json`.
#[derive(serde::Deserialize)]
struct Entries {
    runs: Vec<Entry>,
}

/// Parameters in the order of the file.
struct Parameters(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Parameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Parameters, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Parameters;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("parameters and their values")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Parameters, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Parameters(pairs))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// The runs in a folder that `opentcp run`, `opentcp sweep` or a front end wrote, in their order.
///
/// # Errors
/// There are none, or they cannot be read.
pub fn written_runs(dir: &Path) -> std::result::Result<Vec<WrittenRun>, WriteError> {
    if dir.join(RUNS).is_dir() {
        let mut runs = Vec::new();
        for name in names_of(dir)? {
            let folder = dir.join(RUNS).join(name);
            let [entry] =
                <[Entry; 1]>::try_from(entries(&folder)?).map_err(|_| WriteError::NotResults(folder.clone()))?;
            runs.push(of(entry, folder, Some(dir.to_path_buf())));
        }
        return Ok(runs);
    }
    Ok(entries(dir)?.into_iter().map(|entry| of_folder(entry, dir)).collect())
}

fn of(entry: Entry, folder: PathBuf, dataset: Option<PathBuf>) -> WrittenRun {
    let Entry { name, parameters: Parameters(parameters), summary, .. } = entry;
    WrittenRun { name, parameters, summary, folder, dataset }
}

fn of_folder(entry: Entry, dir: &Path) -> WrittenRun {
    let folder = if entry.folder.is_empty() { dir.to_path_buf() } else { dir.join(&entry.folder) };
    of(entry, folder, None)
}

/// What a `summary.json` lists.
fn entries(dir: &Path) -> std::result::Result<Vec<Entry>, WriteError> {
    let path = dir.join(SUMMARY);
    if !path.is_file() {
        return Err(WriteError::NotResults(dir.to_path_buf()));
    }
    let text = fs::read_to_string(&path).map_err(io_error(&path))?;
    if let Ok(Entries { runs }) = serde_json::from_str(&text) {
        return Ok(runs);
    }
    let entry = serde_json::from_str(&text).map_err(|source| WriteError::Json { path, source })?;
    Ok(vec![entry])
}

/// The names of a dataset's runs: in the order of their table, or sorted where a stopped sweep has none.
fn names_of(dir: &Path) -> std::result::Result<Vec<String>, WriteError> {
    let table = dir.join(RUN_TABLE);
    let mut names = Vec::new();
    if table.is_file() {
        let stored = StoredTable::read(&table).map_err(|source| WriteError::Table { path: table, source })?;
        let run = stored.columns().into_iter().find(|column| column.name == "run");
        if let Some(Column { values: Values::Text(run), .. }) = run {
            names = run.into_iter().map(str::to_string).collect();
        }
    }
    let folder = dir.join(RUNS);
    let mut there = Vec::new();
    for entry in fs::read_dir(&folder).map_err(io_error(&folder))? {
        there.push(entry.map_err(io_error(&folder))?.file_name().to_string_lossy().into_owned());
    }
    there.sort_unstable();
    names.retain(|name| there.contains(name));
    names.extend(there.into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>());
    Ok(names)
}

impl WrittenRun {
    /// A table; none if it was not measured.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn table(&self, table: Table) -> std::result::Result<Option<StoredTable>, WriteError> {
        let path = match &self.dataset {
            Some(dataset) => part(dataset, table, &self.name),
            None => self.folder.join(format!("{}.parquet", table.name())),
        };
        if !path.is_file() {
            return Ok(None);
        }
        StoredTable::read(&path).map(Some).map_err(|source| WriteError::Table { path, source })
    }

    /// The scenario with every default, and the files that it names.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn scenario(&self) -> std::result::Result<(String, BTreeMap<String, String>), WriteError> {
        let path = self.folder.join("scenario.toml");
        let toml = fs::read_to_string(&path).map_err(io_error(&path))?;
        let mut files = BTreeMap::new();
        if self.folder.join("files").is_dir() {
            copies(&self.folder, "files", &mut files)?;
        }
        Ok((toml, files))
    }
}

/// A table of a file.
#[derive(Clone, Debug)]
pub struct StoredTable {
    columns: Vec<StoredColumn>,
}

#[derive(Clone, Debug)]
struct StoredColumn {
    name: String,
    /// Some rows may have no value.
    may_lack: bool,
    cells: Stored,
}

#[derive(Clone, Debug)]
enum Stored {
    Int(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
    Bool(Vec<Option<bool>>),
    Text(Vec<Arc<str>>),
}

impl StoredTable {
    /// Reads a Parquet file that this program wrote.
    ///
    /// # Errors
    /// It is none, or has columns of other types.
    pub fn read(path: &Path) -> Result<StoredTable> {
        let reader = SerializedFileReader::new(File::open(path)?)?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let mut columns = Vec::new();
        for (place, column) in schema.columns().iter().enumerate() {
            let cells = match column.physical_type() {
                Physical::INT64 => Stored::Int(cells::<Int64Type>(&reader, place)?),
                Physical::DOUBLE => Stored::Float(cells::<DoubleType>(&reader, place)?),
                Physical::BOOLEAN => Stored::Bool(cells::<BoolType>(&reader, place)?),
                Physical::BYTE_ARRAY => Stored::Text(texts(&reader, place)?),
                other => return Err(ParquetError::General(format!("the column {} is {other}", column.name()))),
            };
            let may_lack = column.max_def_level() > 0;
            columns.push(StoredColumn { name: column.name().to_string(), may_lack, cells });
        }
        Ok(StoredTable { columns })
    }

    /// Its columns, with a value for each row: those of the run that was written.
    pub fn columns(&self) -> Vec<Column<'_>> {
        self.columns.iter().map(|column| Column { name: &column.name, values: column.values() }).collect()
    }
}

impl StoredColumn {
    fn values(&self) -> Values<'_> {
        match &self.cells {
            Stored::Int(cells) if self.may_lack => Values::IntOrNull(cells.clone()),
            Stored::Int(cells) => Values::Int(cells.iter().map(|cell| cell.unwrap_or_default()).collect()),
            Stored::Float(cells) if self.may_lack => Values::FloatOrNull(cells.clone()),
            Stored::Float(cells) => Values::Float(cells.iter().map(|cell| cell.unwrap_or_default()).collect()),
            Stored::Bool(cells) => Values::Bool(cells.iter().map(|cell| cell.unwrap_or_default()).collect()),
            Stored::Text(cells) => Values::Text(cells.iter().map(|cell| &**cell).collect()),
        }
    }
}

/// The cells of a column, whose number is `place`.
fn cells<T: DataType>(reader: &SerializedFileReader<File>, place: usize) -> Result<Vec<Option<T::T>>> {
    let may_lack = reader.metadata().file_metadata().schema_descr().column(place).max_def_level() > 0;
    let mut cells = Vec::new();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let mut column = get_typed_column_reader::<T>(group.get_column_reader(place)?);
        loop {
            let (mut values, mut levels) = (Vec::new(), Vec::new());
            let (rows, _, _) = column.read_records(ROWS, may_lack.then_some(&mut levels), None, &mut values)?;
            if rows == 0 {
                break;
            }
            let mut values = values.into_iter();
            if may_lack {
                cells.extend(levels.into_iter().map(|level| if level > 0 { values.next() } else { None }));
            } else {
                cells.extend(values.map(Some));
            }
        }
    }
    Ok(cells)
}

/// The texts of a column; those that are the same are shared, as they are when a run has just been made.
fn texts(reader: &SerializedFileReader<File>, place: usize) -> Result<Vec<Arc<str>>> {
    let mut known: BTreeMap<Vec<u8>, Arc<str>> = BTreeMap::new();
    let mut texts = Vec::new();
    for cell in cells::<ByteArrayType>(reader, place)? {
        let bytes = cell.as_ref().map_or(&[][..], |bytes| bytes.data());
        if let Some(text) = known.get(bytes) {
            texts.push(text.clone());
            continue;
        }
        let text: Arc<str> =
            std::str::from_utf8(bytes).map_err(|error| ParquetError::External(Box::new(error)))?.into();
        known.insert(bytes.to_vec(), text.clone());
        texts.push(text);
    }
    Ok(texts)
}
