//! Places of transitions and states, as a comparison of two runs takes them.

use dendrer_object::{Code, Pointer};

use super::{STATE, is_compared};
use crate::address::state_path;
use crate::problem::Problem;

/// Reads a place that is left out, which is no whole.
pub fn ignored_place(text: &str) -> Result<Pointer, Problem> {
    match place(text)? {
        whole if whole.as_str().is_empty() => {
            Err(Problem::new(Code::E0106, "--ignore leaves nothing out that is whole").at("path", text))
        }
        place => Ok(place),
    }
}

/// Reads a place of a transition or of the state: a path that begins with the name of a member of transitions is one of
/// those, `state.x` and anything else one of the state.
pub fn place(text: &str) -> Result<Pointer, Problem> {
    // All below a place is the place.
    let text = text.strip_suffix(".*").filter(|_| !text.starts_with('/')).unwrap_or(text);
    let path = state_path(text)?;
    let first = path.tokens().next().map(|first| first.into_owned());
    let of_state = text == "state" || ["state.", "state["].iter().any(|start| text.starts_with(start));
    let first = first.filter(|_| !of_state);
    match first.as_deref() {
        None if text.is_empty() => Ok(path),
        Some("state") => Ok(path),
        Some(member) if is_compared(member) => Ok(path),
        _ => Ok(format!("{STATE}{}", path.as_str()).parse().expect("a pointer behind a name is one")),
    }
}
