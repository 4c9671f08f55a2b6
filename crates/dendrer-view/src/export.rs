//! A file that was exported, or was not.

use dendrer_object::{Value, document};

use crate::answer::{Answer, Line, Page};
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
