//! Why the runs of a bundle are not taken in.

use dendrer_object::name::NameError;
use dendrer_object::record::Kind;
use dendrer_object::{Code, RunName, StoreId};

/// Why the runs of a bundle are not taken in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForeignError {
    /// The bundle is not what was signed, or replays differently.
    #[error("the bundle is not what was recorded{}: {what}", place(.run.as_ref(), *.tick))]
    Unsound {
        /// The code of the first finding.
        code: Code,
        /// The finding in one sentence.
        what: String,
        /// The run it concerns.
        run: Option<RunName>,
        /// The tick it concerns.
        tick: Option<u64>,
    },
    /// The bundle is of the store itself.
    #[error("the bundle is of this store ({0}): its runs are here under their own names")]
    Own(StoreId),
    /// No run can have the name.
    #[error(transparent)]
    Name(NameError),
    /// A person begins a run under the name of a foreign one.
    #[error("{0} cannot be the name of a new run: a / marks a run of another store")]
    Marked(RunName),
    /// A run of the name is of another store, or of this one.
    #[error("{0} exists already, and is no run of the store that the bundle is of")]
    Exists(RunName),
    /// Runs of the store are here under another name.
    #[error("runs of store {store} are here under the name {name}")]
    Known {
        /// The store.
        store: StoreId,
        /// The name.
        name: String,
    },
    /// The bundle is a part of a run that is here, and has more of it; the beginning of the run cannot say so any more.
    #[error(
        "{run} is here, and in this bundle {why}: what is missing has no place on record; import the whole of it, or into a new store"
    )]
    Partial {
        /// The run, as it is named here.
        run: RunName,
        /// The missing records, in words.
        why: String,
    },
    /// A record has its place between others that are here.
    #[error(
        "the bundle has a {kind} of {run} that is missing here, and its place lies before the end: import the bundle into a new store"
    )]
    Late {
        /// The run, as it is named here.
        run: RunName,
        /// The kind of the record.
        kind: Kind,
    },
    /// A record that was taken in before is another one in the bundle.
    #[error("{run}@{tick} is another record in this bundle than in the one before: there are two histories")]
    Differs {
        /// The run, as it is named here.
        run: RunName,
        /// The tick.
        tick: u64,
    },
}

fn place(run: Option<&RunName>, tick: Option<u64>) -> String {
    match (run, tick) {
        (Some(run), Some(tick)) => format!(", {run}@{tick}"),
        (Some(run), None) => format!(", {run}"),
        _ => String::new(),
    }
}

impl ForeignError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            ForeignError::Unsound { code, .. } => *code,
            ForeignError::Own(_) | ForeignError::Known { .. } => Code::E0214,
            ForeignError::Name(_) | ForeignError::Marked(_) => Code::E0210,
            ForeignError::Exists(_) => Code::E0111,
            ForeignError::Partial { .. } | ForeignError::Late { .. } => Code::E0312,
            ForeignError::Differs { .. } => Code::E0304,
        }
    }
}
