//! The findings in the text of a contract, as lines and as a document.

use dendrer::contract::lint::{LintFound, Linted};
use dendrer_object::{Code, Value, document};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::{count, quote};

/// The largest number of findings that are printed for people; a document has them all.
const SHOWN: usize = 100;

/// A contract that was looked at, and its address.
#[derive(Debug, Clone, Copy)]
pub struct LintAnswer<'l> {
    /// The file or the address, as it was named.
    pub file: &'l str,
    /// The findings.
    pub linted: &'l Linted,
}

document! {
    /// Parts of a contract that are most likely not meant
    pub object ContractLintDocument: "contract-lint" (answer: &LintAnswer<'_>) {
        let pack = answer.linted.pack.as_ref();
        /// The file or the address, as it was named
        file: &str = answer.file,
        /// The name of the pack
        name: Option<&str> = pack.map(|pack| &*pack.name),
        /// The version of the pack
        version: Option<&str> = pack.map(|pack| &*pack.version),
        /// Whether the text is a pack, so that every check was made
        complete: bool = answer.linted.is_complete,
        /// The findings
        items: Vec<LintObject> =
            answer.linted.found.iter().map(|found| LintObject::of(answer.file, found)).collect(),
    }

    /// A part of a contract that is most likely not meant
    object LintObject(path: &str, found: &LintFound) {
        /// The code
        code: Code = found.code,
        /// The weight of the finding
        level: ["error" | "warning"] = if found.is_fault() { "error" } else { "warning" },
        /// The file or the address, as it was named
        file: &str = path,
        /// The line, from 1
        line: usize = found.mark.line,
        /// The column, from 1
        column: usize = found.mark.column,
        /// The place in the pack
        place: &str = &found.place,
        /// The finding in one sentence
        message: &str = &found.message,
        /// The reason
        why: Option<&str> = found.why.as_deref(),
        /// The next step
        next: Option<&str> = found.step.as_deref(),
    }
}

impl Answer for LintAnswer<'_> {
    fn document(&self) -> Value {
        ContractLintDocument::of(self).into()
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
