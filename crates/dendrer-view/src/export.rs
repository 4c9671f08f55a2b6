//! A file that was exported, or was not.

use dendrer::care::export::Withheld;
use dendrer_object::document::As;
use dendrer_object::{Value, document};

use crate::answer::{Answer, Line, Page};
use crate::erase::{ErasedField, fields, gone_lines, stays_lines};
use crate::quote;

/// A file that was written.
#[derive(Debug, Clone, Copy)]
pub struct ExportAnswer<'a> {
    /// The file.
    pub path: &'a str,
    /// Its format: `bundle`, `jsonl` or a profile.
    pub format: &'a str,
    /// Number of bytes that were written.
    pub bytes: u64,
    /// The runs, as they were named.
    pub runs: &'a [String],
}

document! {
    /// A file that was written
    pub object ExportDocument: "export" (answer: &ExportAnswer<'_>) {
        /// The file
        path: &str = answer.path,
        /// The format: bundle, html, jsonl, or one of another program
        format: &str = answer.format,
        /// The number of bytes
        bytes: u64 = answer.bytes,
        /// The runs, as they were named
        runs: &[String] = answer.runs,
    }

    /// The fields that a bundle would be made without
    pub object WithholdDocument: "withhold" (answer: &WithheldAnswer<'_>) {
        /// The runs, as they were named
        runs: &[String] = answer.runs,
        /// Whether nothing was written
        dry_run: bool = true,
        /// The fields that are left out
        withheld: Vec<As<ErasedField>> = fields(&answer.withheld.fields),
        /// The fields that stay although they may follow from a value
        although: Vec<As<ErasedField>> = fields(&answer.withheld.although),
    }
}

/// The fields that a file would be made without.
#[derive(Debug, Clone, Copy)]
pub struct WithheldAnswer<'a> {
    /// The runs, as they were named.
    pub runs: &'a [String],
    /// The fields.
    pub withheld: &'a Withheld,
}

impl Answer for WithheldAnswer<'_> {
    fn document(&self) -> Value {
        WithholdDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = gone_lines("would go", &self.withheld.fields);
        lines.extend(stays_lines(&self.withheld.although));
        lines.push(Line::note("nothing was written"));
        lines
    }
}

impl Answer for ExportAnswer<'_> {
    fn document(&self) -> Value {
        ExportDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let wrote = Line::note(format!("wrote {} bytes to {}", self.bytes, quote::escape(self.path)));
        let help =
            matches!(self.format, "bundle" | "html").then(|| Line::help(["dendrer", "verify", self.path]));
        [wrote].into_iter().chain(help).collect()
    }
}
