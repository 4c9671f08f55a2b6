//! The change of state that a transition makes, before it is sealed.

use dendrer_object::Value;
use dendrer_object::delta::Delta;

use crate::unknown::UnknownPlaces;

/// The change that a transition makes.
pub(super) struct Change {
    pub(super) state: Value,
    pub(super) delta: Delta,
    pub(super) notes: Vec<Value>,
    /// The change that was proposed, if it was rounded.
    pub(super) proposed: Option<Delta>,
    /// What its calls add to the sums of commitments.
    pub(super) spent: Option<Value>,
}

impl Change {
    /// No change of a state, with a note of what made it impossible.
    pub(super) fn none(state: &Value, note: Option<Value>) -> Change {
        let notes = note.into_iter().collect();
        Change { state: state.clone(), delta: Delta::default(), notes, proposed: None, spent: None }
    }

    /// Makes these places the unknown ones of the state after.
    pub(super) fn mark(&mut self, unknown: &UnknownPlaces) {
        let change = unknown.change_of(&self.state);
        self.state = change.apply(&self.state).expect("a member that only the kernel writes");
        self.delta.0.extend(change.0);
    }
}
