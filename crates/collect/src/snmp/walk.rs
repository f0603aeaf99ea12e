//! Reads columns of tables together, row by row, by GETBULK. Without I/O: it says what to ask, and takes the answers.
//!
//! ```text
//! GETBULK sysUpTime | last of column 1, …, last of column n      ──▶  request()
//! sysUpTime.0, row 1: column 1, …, column n, row 2: …, cut anywhere ──▶  answer()
//! ```
//!
//! An answer is not trusted: each column's names must rise, so that a walk ends; rows and texts have limits.

use crate::ReadError;
use crate::text::TEXT_MAX;
use async_snmp::{Oid, Value, VarBind};
use std::collections::BTreeMap;
use units::Time;

/// Most numbers that index a row: lldpRemTable has three.
const INDEX_MAX: usize = 8;
/// Most values of an answer that are asked for: with about 26 bytes each it fits into a packet of 1500 bytes, since routers and switches
/// often drop fragments.
const VALUES_MAX: usize = 50;

/// What indexes a row.
pub(super) type Index = Vec<u32>;

/// One value of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// Integer, counter, gauge or ticks.
    Number(u64),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Cell {
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Cell::Number(number) => Some(*number),
            Cell::Bytes(_) => None,
        }
    }

    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Cell::Number(_) => None,
            Cell::Bytes(bytes) => Some(bytes),
        }
    }
}

/// A row: a cell for each column that was asked for, if the switch has it, with the time of its answer.
pub(super) type Row = Vec<Option<(Cell, Time)>>;

/// A walk over some columns of a table.
pub(super) struct Walk {
    /// What the table's rows are, for messages.
    rows_are: &'static str,
    rows_max: usize,
    /// Values that an answer may hold, as far as is known.
    values_max: usize,
    columns: Vec<Column>,
    rows: BTreeMap<Index, Row>,
}

struct Column {
    prefix: Oid,
    last: Oid,
    ended: bool,
}

impl Walk {
    /// Over columns with these names; at most `rows_max` rows, which are called `rows_are` in messages.
    pub(super) fn new(rows_are: &'static str, rows_max: usize, columns: impl IntoIterator<Item = Oid>) -> Walk {
        let column = |prefix: Oid| Column { last: prefix.clone(), prefix, ended: false };
        let columns = columns.into_iter().map(column).collect();
        Walk { rows_are, rows_max, values_max: VALUES_MAX, columns, rows: BTreeMap::new() }
    }

    /// The names to ask for, and how many rows of them; `None` when every column has ended.
    pub(super) fn request(&self) -> Option<(Vec<Oid>, u32)> {
        let names: Vec<Oid> = self.open().map(|column| column.last.clone()).collect();
        (!names.is_empty()).then(|| {
            let rows = (self.values_max / names.len()).max(1) as u32;
            (names, rows)
        })
    }

    /// The answer was too big for the switch: asks for half as much from now on. False if that was a single row.
    pub(super) fn shrink(&mut self) -> bool {
        let columns = self.open().count();
        let rows = self.values_max / columns.max(1);
        self.values_max = rows / 2 * columns;
        rows > 1
    }

    /// Takes the answer to [`Walk::request`], without what was asked for beside the columns.
    pub(super) fn answer(&mut self, values: &[VarBind], at: Time) -> Result<(), ReadError> {
        let open: Vec<usize> = (0..self.columns.len()).filter(|i| !self.columns[*i].ended).collect();
        if values.is_empty() {
            return Err(ReadError::Protocol("an empty answer to GETBULK".into()));
        }
        for (varbind, column) in values.iter().zip(open.iter().cycle()) {
            self.value(*column, varbind, at)?;
        }
        Ok(())
    }

    /// How many rows have come.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// What they are.
    pub(super) fn rows_are(&self) -> &'static str {
        self.rows_are
    }

    /// The table.
    pub(super) fn into_rows(self) -> BTreeMap<Index, Row> {
        self.rows
    }

    fn open(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.ended)
    }

    fn value(&mut self, at_column: usize, VarBind { oid, value, .. }: &VarBind, at: Time) -> Result<(), ReadError> {
        let width = self.columns.len();
        let column = &mut self.columns[at_column];
        if column.ended {
            // rows behind the end of one column, in the same answer
            return Ok(());
        }
        let Some(index) = below(&column.prefix, oid).filter(|_| !value.is_exception()) else {
            column.ended = true;
            return Ok(());
        };
        if *oid <= column.last {
            return Err(ReadError::Protocol(format!("{oid} after {}: names of a table must rise", column.last)));
        }
        column.last = oid.clone();
        let Some(cell) = cell(value) else { return Ok(()) };
        if index.is_empty() || index.len() > INDEX_MAX {
            return Err(ReadError::Protocol(format!("{oid} is no row of {}", column.prefix)));
        }
        if !self.rows.contains_key(index) && self.rows.len() >= self.rows_max {
            return Err(ReadError::Beyond { what: self.rows_are, most: self.rows_max });
        }
        let row = self.rows.entry(index.to_vec()).or_insert_with(|| vec![None; width]);
        row[at_column] = Some((cell, at));
        Ok(())
    }
}

/// What follows `prefix` in `oid`, if it is below it.
fn below<'a>(prefix: &Oid, oid: &'a Oid) -> Option<&'a [u32]> {
    oid.arcs().strip_prefix(prefix.arcs())
}

fn cell(value: &Value) -> Option<Cell> {
    match value {
        Value::OctetString(bytes) => Some(Cell::Bytes(bytes[..bytes.len().min(TEXT_MAX)].to_vec())),
        Value::Integer(number) => u64::try_from(*number).ok().map(Cell::Number),
        Value::Counter32(number) | Value::Gauge32(number) | Value::UInteger32(number) | Value::TimeTicks(number) => {
            Some(Cell::Number(u64::from(*number)))
        }
        Value::Counter64(number) => Some(Cell::Number(*number)),
        _ => None,
    }
}
