//! Small multiples and a table that a study makes of its own numbers.

/// A quantity as bars, in panels that share an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Multiples {
    /// Quantity and unit, such as `Web search: goodput (Gbit/s)`.
    pub title: String,
    /// What it shows, in words; may be empty.
    pub text: String,
    /// Name of the panel, and its bars: name and value. An algorithm's name has that algorithm's colour.
    pub panels: Vec<(String, Vec<(String, f64)>)>,
}

/// A table that the reader sorts by any column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// Its heading.
    pub title: String,
    /// A sentence under it; may be empty.
    pub text: String,
    /// Columns: name, unit (may be empty), and what it means.
    pub columns: Vec<(String, String, String)>,
    /// Rows with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a [`Grid`].
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A name, on the left.
    Text(String),
    /// A number, on the right.
    Number(f64),
    /// A number that is only a lower bound.
    AtLeast(f64),
    /// There is none.
    Absent,
}
