//! A file that was exported, or was not.

use dendrer::care::export::ExportError;
use dendrer_object::Value;

use crate::answer::{Answer, Line, Page};
use crate::problem::Problem;
use crate::{count, document, quote};

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

impl Answer for ExportAnswer<'_> {
    fn document(&self) -> Value {
        document(
            "export",
            [
                ("path", Value::from(self.path)),
                ("format", Value::from(self.format)),
                ("bytes", Value::from(self.bytes)),
                ("runs", Value::array(self.runs.iter().map(|run| Value::from(run.as_str())))),
            ],
        )
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let wrote = Line::note(format!("wrote {} bytes to {}", self.bytes, quote::escape(self.path)));
        let help = (self.format == "bundle").then(|| Line::help(["dendrer", "verify", self.path]));
        [wrote].into_iter().chain(help).collect()
    }
}

impl From<ExportError> for Problem {
    fn from(error: ExportError) -> Problem {
        let plain = Problem::new(error.code(), error.to_string());
        match error {
            ExportError::OfBundle => {
                plain.note("copy the file; one of fewer runs is made where the store is")
            }
            ExportError::SignedMeanwhile => plain.note("nothing was written; ask again"),
            ExportError::NothingSigned => plain,
            ExportError::LastNotSigned(missing) => {
                let is = if missing == 1 { "is" } else { "are" };
                let missing = count(missing, "record", "records");
                let message = format!("the last {missing} {is} not signed, and the key of the log is not here");
                Problem::new(plain.code, message).note(
                    "nothing was written; whoever has the key can export, or sign: name it with --key FILE",
                )
            }
            ExportError::NothingThere { around, .. } => {
                let plain = plain.note("nothing was written");
                around.iter().fold(plain, |plain, field| {
                    plain.note(format!("a field is withheld as a whole: --withhold {field} takes it"))
                })
            }
            ExportError::Unsound { .. } => plain
                .note("nothing was written; what is left of the run as lines, which prove nothing: --format jsonl")
                .help(&["dendrer", "verify", "--all"]),
            ExportError::Failed(error) => error.into(),
            _ => plain,
        }
    }
}
