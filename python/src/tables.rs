//! Tables by the Arrow PyCapsule interface: whoever takes one reads the same memory, and nothing is copied.

use arrow_array::builder::make_view;
use arrow_array::ffi::to_ffi;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringViewArray,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PySlice};
use results::{RunResults, StoredTable, Values};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The same of a table that was read from a file.
pub fn stored(table: &StoredTable) -> RecordBatch {
    batch_of(table.columns().into_iter().map(field_and_array).collect())
}

/// A table of a run as one batch. Types are those that a data frame makes of the Parquet file.
pub fn batch(results: &RunResults, table: results::Table) -> RecordBatch {
    batch_of(results.map_columns(table, field_and_array))
}

fn field_and_array(column: results::Column<'_>) -> (Field, ArrayRef) {
    let nullable = matches!(column.values, Values::IntOrNull(_) | Values::FloatOrNull(_));
    let array = array(column.values);
    (Field::new(column.name, array.data_type().clone(), nullable), array)
}

fn batch_of(made: Vec<(Field, ArrayRef)>) -> RecordBatch {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = made.into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    RecordBatch::try_new(schema, arrays).expect("columns of a table are equally long")
}

fn array(values: Values<'_>) -> ArrayRef {
    match values {
        Values::Int(values) => Arc::new(Int64Array::from(values)),
        Values::IntOrNull(cells) => {
            let (values, nulls) = parts(&cells);
            Arc::new(Int64Array::new(values, nulls))
        }
        Values::Float(values) => Arc::new(Float64Array::from(values)),
        Values::FloatOrNull(cells) => {
            let (values, nulls) = parts(&cells);
            Arc::new(Float64Array::new(values, nulls))
        }
        Values::Bool(values) => Arc::new(BooleanArray::from(values)),
        Values::Text(names) => Arc::new(texts(&names)),
    }
}

/// Names repeat, and are shared in memory: each is stored once, and a view of it for each row.
fn texts(names: &[&str]) -> StringViewArray {
    let mut known: BTreeMap<(usize, usize), u128> = BTreeMap::new();
    let mut last = ((0, 0), 0);
    let mut bytes = Vec::new();
    let views: Vec<u128> = names
        .iter()
        .map(|name| {
            let place = (name.as_ptr().addr(), name.len());
            if place != last.0 {
                let view = *known.entry(place).or_insert_with(|| {
                    let view = make_view(name.as_bytes(), 0, bytes.len() as u32);
                    bytes.extend_from_slice(name.as_bytes());
                    view
                });
                last = (place, view);
            }
            last.1
        })
        .collect();
    StringViewArray::new(views.into(), vec![Buffer::from_vec(bytes)], None)
}

/// The values, zero where there is none, and which there are.
fn parts<T: ArrowNativeType>(cells: &[Option<T>]) -> (ScalarBuffer<T>, Option<NullBuffer>) {
    let values: Vec<T> = cells.iter().map(|cell| cell.unwrap_or_default()).collect();
    let nulls = NullBuffer::new(BooleanBuffer::collect_bool(cells.len(), |i| cells[i].is_some()));
    (values.into(), Some(nulls).filter(|nulls| nulls.null_count() > 0))
}

fn refused(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// A table of a run.
#[pyclass(frozen, module = "opentcp._native")]
#[derive(Debug)]
pub struct Table {
    batch: RecordBatch,
}

impl Table {
    pub fn new(batch: RecordBatch) -> Table {
        Table { batch }
    }

    fn index(&self, name: &str) -> PyResult<usize> {
        self.batch.schema_ref().index_of(name).map_err(|_| {
            let schema = self.batch.schema();
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            PyKeyError::new_err(format!("no column `{name}`; there are {}", names.join(", ")))
        })
    }
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// A column by its name, or some rows by a slice.
    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = key.cast::<PySlice>() {
            let rows = slice.indices(self.batch.num_rows() as isize)?;
            if rows.step != 1 {
                return Err(PyValueError::new_err("rows of a table are taken one after the other: leave out the step"));
            }
            let table = Table::new(self.batch.slice(rows.start as usize, rows.slicelength));
            return Ok(table.into_pyobject(py)?.into_any());
        }
        let name: String = key.extract()?;
        let index = self.index(&name)?;
        Ok(Column { name, array: self.batch.column(index).clone() }.into_pyobject(py)?.into_any())
    }

    /// The first rows.
    #[pyo3(signature = (rows = 5))]
    fn head(&self, rows: usize) -> Table {
        Table::new(self.batch.slice(0, rows.min(self.batch.num_rows())))
    }

    /// By pandas, which must be installed.
    fn to_pandas(slf: &Bound<'_, Table>) -> PyResult<Py<PyAny>> {
        with_table(slf, "to_pandas")
    }

    /// By polars, which must be installed; without a copy.
    fn to_polars(slf: &Bound<'_, Table>) -> PyResult<Py<PyAny>> {
        with_table(slf, "to_polars")
    }

    /// For notebooks: the first rows.
    fn _repr_html_(slf: &Bound<'_, Table>) -> PyResult<Py<PyAny>> {
        with_table(slf, "page")
    }

    /// For notebooks: the names that `table["` may be completed to.
    fn _ipython_key_completions_(&self) -> Vec<String> {
        self.columns()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.index(name).is_ok()
    }

    /// Row by row, as dicts.
    fn __iter__(slf: &Bound<'_, Table>) -> PyResult<Py<PyAny>> {
        with_table(slf, "rows")
    }

    fn __repr__(&self) -> String {
        format!("Table of {} rows: {}", self.batch.num_rows(), self.columns().join(", "))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema_ref().as_ref()).map_err(|error| refused(&error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The requested schema is a wish by the interface's definition; the table has the types that it has.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }
}

/// What the package's Python makes of a table.
fn with_table(table: &Bound<'_, Table>, what: &str) -> PyResult<Py<PyAny>> {
    let module = table.py().import("opentcp._tables")?;
    module.call_method1(what, (table,)).map(Bound::unbind)
}

/// A column of a table.
#[pyclass(frozen, module = "opentcp._native")]
#[derive(Debug)]
pub struct Column {
    name: String,
    array: ArrayRef,
}

#[pymethods]
impl Column {
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }

    fn __repr__(&self) -> String {
        format!("Column {} of {} values", self.name, self.array.len())
    }

    /// A value, or some by a slice.
    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let length = self.array.len();
        if let Ok(slice) = key.cast::<PySlice>() {
            let rows = slice.indices(length as isize)?;
            if rows.step != 1 {
                return Err(PyValueError::new_err(
                    "values of a column are taken one after the other: leave out the step",
                ));
            }
            let array = self.array.slice(rows.start as usize, rows.slicelength);
            return Ok(Column { name: self.name.clone(), array }.into_pyobject(py)?.into_any());
        }
        let index: isize = key.extract()?;
        let place = if index < 0 { index + length as isize } else { index };
        if place < 0 || place >= length as isize {
            return Err(PyIndexError::new_err(format!("{} has {length} values, and no {index}", self.name)));
        }
        let one = Column { name: self.name.clone(), array: self.array.slice(place as usize, 1) };
        one.to_list(py)?.get_item(0)
    }

    /// Its values, one after the other.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.to_list(py)?.try_iter()?.into_any())
    }

    /// A copy as an array of numpy, which must be installed.
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.__array__(py, None, None)
    }

    /// The values as Python's own; None where there is none.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let any = self.array.as_any();
        if let Some(array) = any.downcast_ref::<Int64Array>() {
            PyList::new(py, array.iter().collect::<Vec<_>>())
        } else if let Some(array) = any.downcast_ref::<Float64Array>() {
            PyList::new(py, array.iter().collect::<Vec<_>>())
        } else if let Some(array) = any.downcast_ref::<BooleanArray>() {
            PyList::new(py, array.iter().collect::<Vec<_>>())
        } else {
            let array = any.downcast_ref::<StringViewArray>().expect("there are four types");
            PyList::new(py, array.iter().collect::<Vec<_>>())
        }
    }

    /// For numpy, by a copy: a number that does not exist is NaN, a text is an object.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(PyValueError::new_err("numpy gets a copy of a column: leave out copy=False"));
        }
        let numpy = py.import("numpy")?;
        let array = match self.bytes() {
            Some((code, bytes)) => numpy.call_method1("frombuffer", (PyBytes::new(py, &bytes), code))?,
            None => numpy.call_method1("array", (self.to_list(py)?, "O"))?,
        };
        // what a buffer of bytes is read from cannot be written; a copy of its own can
        dtype.map_or_else(|| array.call_method0("copy"), |dtype| array.call_method1("astype", (dtype,)))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        PyCapsule::new_with_value(py, self.schema()?, c"arrow_schema")
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        let (array, _) = to_ffi(&self.array.to_data()).map_err(|error| refused(&error))?;
        let schema = PyCapsule::new_with_value(py, self.schema()?, c"arrow_schema")?;
        Ok((schema, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }
}

impl Column {
    /// numpy's name of the type of an element, and all of them, little-endian. None for texts.
    fn bytes(&self) -> Option<(&'static str, Vec<u8>)> {
        let any = self.array.as_any();
        if let Some(array) = any.downcast_ref::<Int64Array>() {
            if array.null_count() == 0 {
                return Some(("<i8", array.values().iter().flat_map(|value| value.to_le_bytes()).collect()));
            }
            let float = |cell: Option<i64>| cell.map_or(f64::NAN, |value| value as f64);
            Some(("<f8", array.iter().flat_map(|cell| float(cell).to_le_bytes()).collect()))
        } else if let Some(array) = any.downcast_ref::<Float64Array>() {
            Some(("<f8", array.iter().flat_map(|cell| cell.unwrap_or(f64::NAN).to_le_bytes()).collect()))
        } else {
            let array = any.downcast_ref::<BooleanArray>()?;
            Some(("?", array.iter().map(|cell| u8::from(cell == Some(true))).collect()))
        }
    }

    fn schema(&self) -> PyResult<FFI_ArrowSchema> {
        let data_type: &DataType = self.array.data_type();
        let field = Field::new(&self.name, data_type.clone(), self.array.is_nullable());
        FFI_ArrowSchema::try_from(&field).map_err(|error| refused(&error))
    }
}
