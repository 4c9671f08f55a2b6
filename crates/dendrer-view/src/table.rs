//! Rows as aligned text.

use crate::answer::{Line, Page};
use crate::layout::{columns, cut, pad, pad_left};

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// The widest that a column of a list gets, if it is not the last one.
const COLUMN_MAX: usize = 24;
/// The least width that the last column of a list is left.
const LAST_MIN: usize = 12;
/// The blanks between two columns.
const GAP: &str = "  ";

/// Rows under headings.
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

    /// Takes out the columns that are empty, or the same in every one of several rows, but for the first. Returns
    /// their names with what every row has; `None` for an empty one.
    pub fn fold(&mut self) -> Vec<(String, Option<String>)> {
        let mut folded = Vec::new();
        for at in (1..self.columns.len()).rev() {
            let Some(first) = self.rows.first().and_then(|row| row.get(at)).cloned() else { continue };
            let is_empty = matches!(first.as_str(), "" | "-");
            let is_same = self.rows.iter().all(|row| row.get(at) == Some(&first));
            if is_same && (is_empty || self.rows.len() > 1) {
                let (name, _) = self.columns.remove(at);
                self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
                folded.push((name, (!is_empty).then_some(first)));
            }
        }
        folded.reverse();
        folded
    }

    /// Returns the lines, heading first, each as wide as its cells are.
    pub fn whole(&self) -> Vec<String> {
        let widths = self.widths();
        self.texts().map(|row| self.line(row, &widths)).collect()
    }

    /// Returns the lines of a list, heading first, and whether the last column of one was cut. The other columns are
    /// at most 24 wide, and never less for the last one: where that has no room, the last columns are left out, which is
    /// cut too.
    pub fn lines(&self, width: usize) -> (Vec<String>, bool) {
        let mut widths = self.widths();
        let last = widths.len().saturating_sub(1);
        widths[..last].iter_mut().for_each(|one| *one = (*one).min(COLUMN_MAX));
        let needed = |number: usize| {
            let cells = widths[..number].iter().enumerate();
            let cells = cells.map(|(at, one)| if at == last { (*one).min(LAST_MIN) } else { *one });
            cells.sum::<usize>() + GAP.len() * number.saturating_sub(1)
        };
        let kept = (1..=widths.len()).rev().find(|number| needed(*number) <= width).unwrap_or(1);
        let mut is_cut = kept < widths.len();
        if kept > last {
            widths[last] = width - (needed(kept) - widths[last].min(LAST_MIN));
        }
        let lines = self.texts().map(|row| {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| cut(cell, *width)).collect();
            is_cut |= kept > last && cells.get(last) != row.get(last);
            self.line(&cells[..kept], &widths)
        });
        let lines = lines.collect();
        (lines, is_cut)
    }

    /// The table in the characters of a page.
    fn spelled(&self, page: &Page) -> Table {
        let row = |row: &Vec<String>| row.iter().map(|cell| page.spell(cell.clone())).collect();
        let columns = self.columns.iter().map(|(name, align)| (page.spell(name.clone()), *align));
        Table { columns: columns.collect(), rows: self.rows.iter().map(row).collect() }
    }

    /// The heading and the rows.
    fn texts(&self) -> impl Iterator<Item = Vec<String>> {
        let heading = self.columns.iter().map(|(name, _)| name.clone()).collect();
        std::iter::once(heading).chain(self.rows.iter().cloned())
    }

    /// The columns that each cell takes at most.
    fn widths(&self) -> Vec<usize> {
        let widest = |at: usize| {
            let cells = self.rows.iter().map(|row| row.get(at).map_or(0, |cell| columns(cell)));
            cells.max().unwrap_or(0).max(columns(&self.columns[at].0))
        };
        (0..self.columns.len()).map(widest).collect()
    }

    fn line(&self, cells: impl AsRef<[String]>, widths: &[usize]) -> String {
        let cells = cells.as_ref().iter().zip(widths).zip(&self.columns);
        let cells = cells.map(|((cell, width), (_, align))| match align {
            Align::Right => pad_left(cell, *width),
            Align::Left => pad(cell, *width),
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    }
}

impl Page {
    /// Returns the rows of a table whose cells wrap: as a list for a screen reader.
    pub fn rows(&self, table: &Table) -> Vec<Line> {
        let table = table.spelled(self);
        match self.accessible {
            true => table.list().into_iter().map(Line::from).collect(),
            false => table.whole().into_iter().map(Line::from).collect(),
        }
    }

    /// Returns the rows of a list, one line an item, and whether the last column of one was cut.
    pub fn list(&self, table: &Table) -> (Vec<Line>, bool) {
        match (self.accessible, self.width) {
            (true, _) => (self.rows(table), false),
            (_, Some(width)) if !self.full => {
                let (lines, cut) = table.spelled(self).lines(width);
                (lines.into_iter().map(Line::from).collect(), cut)
            }
            _ => (self.rows(table), false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([("tick", Align::Right), ("type", Align::Left), ("summary", Align::Left)]);
        table.row(vec!["1".into(), "plan.update".into(), "short".into()]);
        table.row(vec!["10".into(), "田中太郎".into(), "a longer summary".into()]);
        table
    }

    #[test]
    fn columns_line_up_and_only_a_width_cuts() {
        assert_eq!(
            table().whole(),
            ["tick  type         summary", "   1  plan.update  short", "  10  田中太郎     a longer summary"]
        );
        let (lines, cut) = table().lines(32);
        assert_eq!(lines[2], "  10  田中太郎     a longer s...");
        assert!(cut);
        let (lines, cut) = table().lines(80);
        assert_eq!((lines, cut), (table().whole(), false));
    }

    #[test]
    fn columns_that_are_empty_or_alike_are_taken_out() {
        let mut table = Table::new([("name", Align::Left), ("goal", Align::Left), ("stage", Align::Right)]);
        table.row(vec!["a".into(), "".into(), "1".into()]);
        assert_eq!(table.fold(), [("goal".to_owned(), None)]);
        table.row(vec!["b".into(), "1".into()]);
        assert_eq!(table.fold(), [("stage".to_owned(), Some("1".to_owned()))]);
        assert_eq!(table.whole(), ["name", "a", "b"]);
    }
}
