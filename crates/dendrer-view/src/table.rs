//! Rows as aligned text.

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rows under headings. The last column takes what is left of the width, if a width is given.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Begins a table.
    pub fn new<N: Into<String>>(columns: impl IntoIterator<Item = (N, Align)>) -> Table {
        let columns = columns.into_iter().map(|(name, align)| (name.into(), align)).collect();
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Returns each row as a list of names and values, for a reader who does not see columns.
    pub fn list(&self) -> Vec<String> {
        let row = |row: &Vec<String>| {
            let cells = self.columns.iter().zip(row).map(|((name, _), cell)| format!("{name}: {cell}"));
            cells.collect::<Vec<_>>().join(", ")
        };
        self.rows.iter().map(row).collect()
    }

    /// Returns the lines, heading first, and whether anything was cut. Nothing is cut without a width.
    pub fn lines(&self, width: Option<usize>) -> (Vec<String>, bool) {
        let columns = self.columns.len();
        let size = |text: &str| text.chars().count();
        let widths: Vec<usize> = (0..columns)
            .map(|at| {
                let cells = self.rows.iter().map(|row| row.get(at).map_or(0, |cell| size(cell)));
                cells.max().unwrap_or(0).max(size(&self.columns[at].0))
            })
            .collect();
        let heading = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let mut cut = false;
        let lines = std::iter::once(&heading).chain(&self.rows).map(|row: &Vec<String>| {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[at].saturating_sub(size(cell)));
                match self.columns[at].1 {
                    Align::Right => line.extend([pad.as_str(), cell]),
                    Align::Left => line.extend([cell.as_str(), &pad]),
                }
                line.push_str("  ");
            }
            let line = line.trim_end();
            match width {
                Some(width) if size(line) > width => {
                    cut = true;
                    super::quote::shorten(line, width)
                }
                _ => line.to_owned(),
            }
        });
        (lines.collect(), cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_only_a_width_cuts() {
        let mut table = Table::new([("tick", Align::Right), ("type", Align::Left), ("summary", Align::Left)]);
        table.row(vec!["1".into(), "plan.update".into(), "short".into()]);
        table.row(vec!["10".into(), "x".into(), "a longer summary".into()]);
        let (lines, cut) = table.lines(None);
        assert_eq!(
            lines,
            ["tick  type         summary", "   1  plan.update  short", "  10  x            a longer summary"]
        );
        assert!(!cut);
        let (lines, cut) = table.lines(Some(26));
        assert_eq!(lines[2], "  10  x            a lo...");
        assert!(cut);
    }
}
