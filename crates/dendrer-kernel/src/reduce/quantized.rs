//! Decimals that a pack declares, under a reducer that does not round by itself: `delta/1` and modules.
//!
//! The change is rounded and not the state, so that a reader of the record needs no pack. A transition keeps what was
//! proposed in `proposed` ([`step`](crate::step)), because an `add` that was rounded became a `set`.

use std::sync::Arc;

use dendrer_object::delta::{Action, Delta, DeltaError, DeltaErrorKind, Op};
use dendrer_object::{Intent, Pointer, Value};

use super::{ReduceError, ReducedDelta, Reducer, ReducerInfo, Rounding};
use crate::fold::{is_finer, kind, quantize};
use crate::unknown::UnknownPlaces;

/// A reducer whose changes are kept to the decimals of the fields of a pack.
pub(crate) struct Quantized {
    reducer: Arc<dyn Reducer + Send + Sync>,
    decimals: Vec<(Arc<str>, u8)>,
}

impl Quantized {
    /// Rounds what a reducer writes to these members of the state.
    pub(crate) fn new(reducer: Arc<dyn Reducer + Send + Sync>, decimals: Vec<(Arc<str>, u8)>) -> Quantized {
        Quantized { reducer, decimals }
    }

    /// Returns a change whose numbers have the declared decimals. Rounding again changes nothing.
    fn kept(&self, before: &Value, mut delta: Delta) -> Result<Delta, ReduceError> {
        let mut after = None;
        for (name, decimals) in &self.decimals {
            let place = Pointer::of([&**name]);
            if !delta.paths().any(|path| path.overlaps(&place)) {
                continue;
            }
            let after = match &after {
                Some(after) => after,
                None => after.insert(delta.apply(before)?),
            };
            let Some(value) = place.get(after) else { continue };
            let fault = |_| {
                let why = DeltaErrorKind::NotDecimal(kind(value));
                ReduceError::Delta(DeltaError { index: None, path: Some(place.clone()), why })
            };
            let rounded = quantize(value.clone(), *decimals).map_err(fault)?;
            if rounded != *value {
                delta.0.retain(|op| op.path != place);
                delta.0.push(Op::set(place, rounded));
            }
        }
        Ok(delta)
    }

    /// The fields to which a change adds a number that is finer than their decimals.
    fn finer(&self, delta: &Delta) -> Vec<Pointer> {
        let is_finer = |op: &&Op| op.action == Action::Add && self.is_finer(op);
        delta.0.iter().filter(is_finer).map(|op| op.path.clone()).collect()
    }

    /// The values that a change sets and that were rounded.
    fn rounded(&self, proposed: &Delta, kept: &Delta) -> Vec<Rounding> {
        let sets = proposed.0.iter().filter(|op| op.action == Action::Set && self.is_finer(op));
        let rounding = |op: &Op| {
            let to = kept.0.iter().rfind(|other| other.path == op.path)?.value.clone()?;
            Some(Rounding { path: op.path.clone(), from: op.value.clone()?, to })
        };
        sets.filter_map(rounding).collect()
    }

    fn is_finer(&self, op: &Op) -> bool {
        let field = |(name, _): &&(Arc<str>, u8)| Pointer::of([&**name]) == op.path;
        let decimals = self.decimals.iter().find(field);
        decimals.zip(op.value.as_ref()).is_some_and(|((_, decimals), value)| is_finer(value, *decimals))
    }
}

impl Reducer for Quantized {
    fn info(&self) -> ReducerInfo<'_> {
        ReducerInfo { quantizes: !self.decimals.is_empty(), ..self.reducer.info() }
    }

    fn reduce(&self, before: &Value, intent: &Intent) -> Result<Delta, ReduceError> {
        self.kept(before, self.reducer.reduce(before, intent)?)
    }

    fn reduce_incomplete(
        &self,
        before: &Value,
        intent: &Intent,
        tick: u64,
    ) -> Result<ReducedDelta, ReduceError> {
        // The proposal decides which numbers are known: the sum of an unknown number stays unknown when it is rounded.
        let made = self.reducer.reduce_incomplete(before, intent, tick)?;
        Ok(ReducedDelta { delta: self.kept(before, made.delta.clone())?, ..made })
    }

    fn reduce_calls(&self, before: &Value, intent: &Intent, tick: u64) -> Result<ReducedDelta, ReduceError> {
        let mut made = self.reducer.reduce_calls(before, intent, tick)?;
        let delta = self.kept(before, made.delta.clone())?;
        made.finer.extend(self.finer(&made.delta));
        made.rounded.extend(self.rounded(&made.delta, &delta));
        Ok(ReducedDelta { delta, ..made })
    }

    fn may_write(&self, state: &Value, request: &Intent) -> Vec<Pointer> {
        self.reducer.may_write(state, request)
    }

    fn unknown_by_gap(&self, state: &Value, intent: &Intent) -> Vec<Pointer> {
        self.reducer.unknown_by_gap(state, intent)
    }

    fn unknown_after_error(&self, before: &Value, intent: &Intent, tick: u64) -> UnknownPlaces {
        self.reducer.unknown_after_error(before, intent, tick)
    }
}
