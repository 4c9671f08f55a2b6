//! The findings in the text of a contract, as lines and as a document.

use dendrer::contract::lint::{LintFound, Linted};
use dendrer_object::Value;

use crate::answer::{Answer, End, Line, Page, Style};
use crate::{count, document, quote};

/// How many findings are printed for people; a document has them all.
const SHOWN: usize = 100;

/// A contract that was looked at, and its address.
#[derive(Debug, Clone, Copy)]
pub struct LintAnswer<'l> {
    /// The file or the address, as it was named.
    pub file: &'l str,
    /// The findings.
    pub linted: &'l Linted,
}

impl Answer for LintAnswer<'_> {
    fn document(&self) -> Value {
        let item = |found: &LintFound| {
            Value::record([
                ("code", Value::from(found.code)),
                ("level", Value::from(if found.is_fault() { "error" } else { "warning" })),
                ("file", Value::from(self.file)),
                ("line", Value::from(found.mark.line as u64)),
                ("column", Value::from(found.mark.column as u64)),
                ("place", Value::from(found.place.as_str())),
                ("message", Value::from(found.message.as_str())),
                ("why", Value::from(found.why.as_deref())),
                ("next", Value::from(found.step.as_deref())),
            ])
        };
        let pack = self.linted.pack.as_ref();
        document(
            "contract-lint",
            [
                ("file", Value::from(self.file)),
                ("name", Value::from(pack.map(|pack| &*pack.name))),
                ("version", Value::from(pack.map(|pack| &*pack.version))),
                ("complete", Value::from(self.linted.is_complete)),
                ("items", Value::array(self.linted.found.iter().map(item))),
            ],
        )
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let found = &self.linted.found;
        let shown = found.iter().take(SHOWN);
        let mut lines: Vec<Line> = shown.flat_map(|found| finding_lines(self.file, found)).collect();
        if let Some(more) = found.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            lines.push(format!("({more} more; --json has all)").into());
        }
        lines.push(match &self.linted.pack {
            Some(pack) if found.is_empty() => {
                let text = format!("  {}/{}   no findings", pack.name, pack.version);
                Line::styled(Style::Good, "OK").then(text)
            }
            _ => count(found.len() as u64, "finding", "findings").into(),
        });
        if !self.linted.is_complete {
            lines.push(Line::note("note: it is no pack yet; nothing but its faults was looked at"));
        }
        lines
    }

    fn end(&self) -> End {
        if self.linted.found.is_empty() { End::Answered } else { End::No }
    }
}

fn finding_lines(file: &str, found: &LintFound) -> Vec<Line> {
    let place = quote::escape(&format!("{file}:{}:{}", found.mark.line, found.mark.column));
    let (word, style) = if found.is_fault() { ("error", Style::Bad) } else { ("warning", Style::Warn) };
    let head = Line::styled(style, format!("{word}[{}]:", found.code))
        .then(format!(" {}", quote::escape(&found.message)))
        .after(format!("{place}: "));
    let at = Some(found.place.as_str()).filter(|place| !place.is_empty());
    let parts = [("at  ", at), ("why ", found.why.as_deref()), ("next", found.step.as_deref())];
    let parts = parts.into_iter().filter_map(|(name, text)| Some((name, text?)));
    let parts = parts.map(|(name, text)| Line::from(format!("  | {name}   {}", quote::escape(text))));
    [head].into_iter().chain(parts).collect()
}
