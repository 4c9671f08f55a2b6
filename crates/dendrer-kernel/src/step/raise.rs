//! The door of a higher stage, asked about transitions that happened at a lower one (design, section 12).
//!
//! A run that is reduced again at a higher stage keeps what happened, and is enforced from the tick after it on
//! ([`Start::enforced_from`](super::Start)). Nothing here makes a record.

use std::sync::Arc;

use dendrer_object::record::Record;

use super::terms::Terms;
use super::{Cause, Reason, RunState, cause, reduce};
use crate::reduce::Reducer;
use crate::stopped::Stopped;

/// The door of the stage of a run, before that stage is enforced.
#[derive(Default)]
pub struct RaisedDoor {
    terms: Option<Arc<Terms>>,
}

impl RaisedDoor {
    /// Returns why the door would refuse a recorded transition as the next one of a run; `None` if it would not, or if the
    /// kernel wrote it.
    pub fn refusal(
        &mut self,
        head: &RunState,
        record: &Record,
        reducer: &dyn Reducer,
    ) -> Result<Option<Reason>, Stopped> {
        let Some((Cause::Proposed(intent), _)) = cause(record, reducer.takes_delta()) else {
            return Ok(None);
        };
        let mut raised = RunState { enforced_from: 0, ..head.clone() };
        let is_in_force = |terms: &&Arc<Terms>| terms.is_in_force(head.tick + 1);
        match self.terms.as_ref().filter(is_in_force) {
            Some(terms) => raised.terms = Arc::clone(terms),
            None => {
                raised.read_terms();
                self.terms = Some(Arc::clone(&raised.terms));
            }
        }
        Ok(reduce(&raised, &intent, reducer)?.err())
    }
}
