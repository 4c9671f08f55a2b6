//! The change of state that a transition makes, before it is sealed.

use dendrer_object::Value;
use dendrer_object::delta::Delta;

use crate::reduce::Rounding;
use crate::unknown::UnknownPlaces;

/// The change that a transition makes.
pub(super) struct Change {
    pub(super) state: Value,
    pub(super) delta: Delta,
    pub(super) notes: Vec<Value>,
    /// The change that was proposed, if it was rounded.
    pub(super) proposed: Option<Delta>,
    /// The reasons that would have refused the line at a higher stage.
    pub(super) would_refuse: Option<Value>,
    /// The values that were rounded to the decimals of their field.
    pub(super) rounded: Vec<Rounding>,
    /// The amounts that its calls add to the sums of commitments.
    pub(super) spent: Option<Value>,
}

impl Change {
    /// A state, and the change that leads there.
    pub(super) fn of(state: Value, delta: Delta) -> Change {
        Change {
            state,
            delta,
            notes: Vec::new(),
            proposed: None,
            would_refuse: None,
            rounded: Vec::new(),
            spent: None,
        }
    }

    /// The member of a transition with the values that were rounded.
    pub(super) fn rounded_member(&self) -> Option<Value> {
        let each = self.rounded.iter().map(|rounding| {
            Value::record([
                ("from", rounding.from.clone()),
                ("path", Value::from(rounding.path.as_str())),
                ("to", rounding.to.clone()),
            ])
        });
        (!self.rounded.is_empty()).then(|| Value::array(each))
    }

    /// No change of a state, with a note of what made it impossible.
    pub(super) fn none(state: &Value, note: Option<Value>) -> Change {
        Change { notes: note.into_iter().collect(), ..Change::of(state.clone(), Delta::default()) }
    }

    /// Makes these places the unknown ones of the state after.
    pub(super) fn mark(&mut self, unknown: &UnknownPlaces) {
        let change = unknown.change_of(&self.state);
        self.state = change.apply(&self.state).expect("a member that only the kernel writes");
        self.delta.0.extend(change.0);
    }
}
