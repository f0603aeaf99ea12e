//! Text tables: minimal column widths, numbers aligned to the right.

/// Characters in a line of text.
const LINE: usize = 100;

/// A table under construction.
#[derive(Debug, Default)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these headings.
    pub fn new(headings: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table { headings: headings.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row, which has a cell for each heading.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.headings.len(), "a row has a cell for each heading");
        self.rows.push(cells);
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The text: a line for the headings and one for each row. A column of numbers and dashes is aligned to the right.
    pub fn render(&self) -> String {
        let columns = 0..self.headings.len();
        let cells = |column: usize| self.rows.iter().map(move |row| row[column].as_str());
        let width = |column: usize| {
            cells(column).chain([self.headings[column].as_str()]).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let layout: Vec<(usize, bool)> = columns.map(|column| (width(column), cells(column).all(is_number))).collect();
        let mut text = String::new();
        for row in std::iter::once(&self.headings).chain(&self.rows) {
            let padded =
                row.iter().zip(&layout).map(
                    |(cell, &(width, right))| {
                        if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
                    },
                );
            let line = padded.collect::<Vec<_>>().join("  ");
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn is_number(cell: &str) -> bool {
    cell == "–" || cell.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '≥')
}

/// A sentence of a study's findings, broken into lines.
pub fn paragraph(text: &str) -> String {
    wrapped(text, LINE)
}

/// `text` broken into lines of at most `width` characters, at spaces.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines.join("\n")
}

/// A number with three significant digits or more, in plain notation: `0.00512`, `5.31`, `1234`.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    let digits = match magnitude {
        _ if value.fract() == 0.0 => 0,
        m if m >= 100.0 => 0,
        m if m >= 10.0 => 1,
        m if m >= 1.0 => 2,
        m if m >= 0.1 => 3,
        _ => 5,
    };
    format!("{value:.digits$}")
}

/// As [`number`], with a dash for `None`.
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_string(), number)
}

/// A large number with a unit prefix: `12.3 M`.
pub fn scaled(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{} G", number(v / 1e9)),
        v if v >= 1e6 => format!("{} M", number(v / 1e6)),
        v if v >= 1e3 => format!("{} k", number(v / 1e3)),
        v => number(v),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right_and_words_to_the_left() {
        let mut table = Table::new(["variant", "drops"]);
        table.row(vec!["vegas".into(), "0".into()]);
        table.row(vec!["bic".into(), "1234".into()]);
        table.row(vec!["none".into(), "–".into()]);
        assert_eq!(table.render(), "variant  drops\nvegas        0\nbic       1234\nnone         –\n");
    }

    #[test]
    fn numbers_keep_three_digits() {
        let shown: Vec<String> = [0.0, 5.314, 14.17, 123.4, 0.512, 0.00123].into_iter().map(number).collect();
        assert_eq!(shown, ["0", "5.31", "14.2", "123", "0.512", "0.00123"]);
        assert_eq!([scaled(12_345_678.0), scaled(999.0)], ["12.3 M", "999"]);
    }

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrapped("one two  three", 7), "one two\nthree");
        assert_eq!(wrapped("unbreakable", 4), "unbreakable");
    }
}
