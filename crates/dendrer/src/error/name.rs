//! A name that is declared nowhere.

use dendrer_object::Code;

/// The kind of an undeclared name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// A type of transition.
    Type,
    /// An agent.
    Agent,
    /// A kind of anomaly.
    Anomaly,
    /// A place of the state, or of transitions.
    Place,
}

impl NameKind {
    fn words(self) -> &'static str {
        match self {
            NameKind::Type => "there is no transition type ",
            NameKind::Agent => "there is no agent ",
            NameKind::Anomaly => "there is no kind of anomaly ",
            NameKind::Place => "nothing was ever at ",
        }
    }
}

/// A name that neither the kernel, nor the pack in force, nor a record of the run declares.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{name} in {}", .kind.words(), .runs.join(" or "))]
pub struct Undeclared {
    /// The kind of the name.
    pub kind: NameKind,
    /// The name.
    pub name: String,
    /// The runs that were read.
    pub runs: Vec<String>,
    /// The name that was probably meant.
    pub near: Option<String>,
    /// The names that exist.
    pub known: Vec<String>,
}

impl Undeclared {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self.kind {
            NameKind::Place => Code::E0104,
            _ => Code::E0121,
        }
    }
}
