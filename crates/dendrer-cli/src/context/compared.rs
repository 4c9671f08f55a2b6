//! How two runs are compared, as `diff` and `bisect --divergence` are told.

use clap::ValueEnum;
use dendrer::address::state_path;
use dendrer::diff::{DiffAlign, MEMBERS, STATE};
use dendrer_object::{Code, Pointer};

use crate::failure::{Failure, Result};

/// How transitions are lined up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlignChoice {
    /// One by one behind what is shared, markers passed over.
    Tick,
    /// By the longest sequence of transitions that mean the same.
    Content,
}

impl AlignChoice {
    /// The way that is meant.
    pub(crate) fn align(self) -> DiffAlign {
        match self {
            AlignChoice::Tick => DiffAlign::Tick,
            AlignChoice::Content => DiffAlign::Content,
        }
    }
}

/// Reads a place that is left out, which is no whole.
pub(crate) fn ignored_place(text: &str) -> Result<Pointer> {
    match place(text)? {
        whole if whole.as_str().is_empty() => {
            Err(Failure::new(Code::E0106, "--ignore leaves nothing out that is whole").at("path", text))
        }
        place => Ok(place),
    }
}

/// Reads a place of a transition or of the state: a path that begins with the name of a member of transitions is one of
/// those, `state.x` and anything else one of the state.
pub(crate) fn place(text: &str) -> Result<Pointer> {
    // All below a place is the place.
    let text = text.strip_suffix(".*").filter(|_| !text.starts_with('/')).unwrap_or(text);
    let path = state_path(text)?;
    let first = path.tokens().next().map(|first| first.into_owned());
    let of_state = text == "state" || ["state.", "state["].iter().any(|start| text.starts_with(start));
    let first = first.filter(|_| !of_state);
    match first.as_deref() {
        None if text.is_empty() => Ok(path),
        Some("state") => Ok(path),
        Some(member) if MEMBERS.contains(&member) => Ok(path),
        _ => Ok(format!("{STATE}{}", path.as_str()).parse().expect("a pointer behind a name is one")),
    }
}
