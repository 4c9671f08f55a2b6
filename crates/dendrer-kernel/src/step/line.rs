//! Lines that are JSON and no intent (design, section 4): kept as a refusal, with the line as it was.

use dendrer_object::record::Author;
use dendrer_object::{Code, Value};

use crate::sealed::{fact, told};

/// The member of a refusal that holds the line.
pub(super) const LINE: &str = "line";

/// Why a line is no intent of the one who wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", told(&self.sealed()))]
pub enum LineFault {
    /// It misses the schema of intents.
    #[error("{message}")]
    Schema {
        /// The code under which `dendrer explain` knows it.
        code: Code,
        /// The member that is wrong, as a JSON pointer; empty for the whole line.
        path: String,
        /// The sentence for the caller. It is not sealed: the line itself is.
        message: String,
    },
    /// It names an author that the writer is not.
    Author(Author, &'static [Author]),
}

impl LineFault {
    /// The code under which `dendrer explain` knows it.
    pub fn code(&self) -> Code {
        match self {
            LineFault::Schema { code, .. } => *code,
            LineFault::Author(..) => Code::E0408,
        }
    }

    /// The member that is wrong, as a JSON pointer; empty for the whole line.
    pub fn path(&self) -> &str {
        match self {
            LineFault::Schema { path, .. } => path,
            LineFault::Author(..) => "/author",
        }
    }

    /// Returns what is put on record of it ([`crate::sealed`]).
    pub(super) fn sealed(&self) -> Value {
        let path = ("path", Value::from(self.path()));
        match self {
            LineFault::Schema { .. } => fact("schema_mismatch", [path]),
            LineFault::Author(author, may) => {
                let may = may.iter().map(|author| Value::from(author.as_str()));
                fact(
                    "author_not_given",
                    [("author", Value::from(author.as_str())), ("may", Value::array(may)), path],
                )
            }
        }
    }

    /// The kind of the anomaly that names it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            LineFault::Schema { .. } => "schema_mismatch",
            LineFault::Author(..) => "forged_author",
        }
    }
}
