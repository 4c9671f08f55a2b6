//! The place of a value in a record, as a caller writes it, and the fields and values that it means.

use dendrer_object::delta::Delta;
use dendrer_object::record::{Kind, Record};
use dendrer_object::{Pointer, Value};

use crate::address::{Position, RecordAt};

/// The values that a place of a record means.
#[derive(Debug)]
pub(super) struct Target {
    /// The place in the content; of a state that a delta wrote, `/state` and the place in the state.
    pub(super) place: Pointer,
    /// The fields that contain the values, or lie below the place.
    pub(super) fields: Vec<Pointer>,
    /// The values.
    pub(super) values: Vec<Value>,
}

/// Why a place means no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unmeant {
    /// The text does not name a place.
    Text,
    /// The record has nothing there.
    Nothing,
    /// The values were erased before.
    Erased,
}

/// Reads a place: a pointer, or dotted; whether it is one of the state.
fn read(text: &str) -> Option<(Pointer, bool)> {
    let pointer = Pointer::from_place(text)?.ok()?;
    let is_state = text == "state" || text.starts_with("state.") || text.starts_with("state[");
    (text != "state" || is_state).then_some((pointer, is_state))
}

/// Finds the values at a place of a record: of its content, or written there to the state.
pub(super) fn resolve(record: &Record, text: &str) -> Result<Target, Unmeant> {
    resolve_as(record, text, true)
}

/// As [`resolve`]. Whether a pointer whose first name is no member of the record may be one of the state is for the caller to say.
fn resolve_as(record: &Record, text: &str, or_state: bool) -> Result<Target, Unmeant> {
    let (pointer, is_state) = read(text).ok_or(Unmeant::Text)?;
    let first = pointer.tokens().next().map(|token| Pointer::of([&*token]));
    let is_member =
        |first: &Pointer| record.body().fields().iter().any(|field| first.contains(&field.pointer));
    match first.filter(|first| !is_state && is_member(first)) {
        Some(_) => of_content(record, pointer),
        None if !is_state && !or_state => Err(Unmeant::Nothing),
        None if record.header().kind == Kind::Run => of_content(record, below("state", &pointer)),
        None => of_delta(record, &pointer),
    }
}

/// Returns a place below a member of the content.
pub(super) fn below(member: &str, place: &Pointer) -> Pointer {
    let tokens: Vec<_> = place.tokens().collect();
    Pointer::of([member].into_iter().chain(tokens.iter().map(|token| &**token)))
}

/// Returns the value at `place` in the value of `whole`, at or above it.
fn inside<'v>(whole: &Pointer, value: &'v Value, place: &Pointer) -> Option<&'v Value> {
    let rest: Pointer = place.as_str().strip_prefix(whole.as_str())?.parse().ok()?;
    rest.get(value)
}

fn of_content(record: &Record, place: Pointer) -> Result<Target, Unmeant> {
    let body = record.body();
    let fields: Vec<_> = body.fields().iter().filter(|field| field.pointer.overlaps(&place)).collect();
    if fields.is_empty() {
        return Err(Unmeant::Nothing);
    }
    let open: Vec<_> = fields.iter().filter(|field| body.text(field).is_some()).collect();
    if open.is_empty() {
        return Err(Unmeant::Erased);
    }
    let mut values = Vec::new();
    for field in &open {
        let value = body.value(field.pointer.as_str()).ok_or(Unmeant::Erased)?;
        match place.contains(&field.pointer) {
            true => values.push(value),
            false => values.push(inside(&field.pointer, &value, &place).ok_or(Unmeant::Nothing)?.clone()),
        }
    }
    let fields = open.iter().map(|field| field.pointer.clone()).collect();
    Ok(Target { place, fields, values })
}

/// Finds what the delta of a transition wrote at, below or around a place of the state.
fn of_delta(record: &Record, state: &Pointer) -> Result<Target, Unmeant> {
    let delta = Pointer::of(["delta"]);
    let body = record.body();
    let field = body.fields().iter().find(|field| field.pointer == delta).ok_or(Unmeant::Nothing)?;
    body.text(field).ok_or(Unmeant::Erased)?;
    let written = body.value(delta.as_str()).and_then(|value| Delta::from_value(&value).ok());
    let mut values = Vec::new();
    for op in written.ok_or(Unmeant::Nothing)?.0 {
        let Some(value) = op.value.filter(|_| op.path.overlaps(state)) else { continue };
        match state.contains(&op.path) {
            true => values.push(value),
            false => values.extend(inside(&op.path, &value, state).cloned()),
        }
    }
    match values.is_empty() {
        true => Err(Unmeant::Nothing),
        false => Ok(Target { place: below("state", state), fields: vec![delta], values }),
    }
}

/// A place of other records that a caller names: `PLACE`, `TICK:PLACE` or `RUN@TICK:PLACE`. A refusal has `refused:N` for the tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    run: Option<String>,
    at: Option<RecordAt>,
    place: Pointer,
    /// The place as it was written.
    rest: String,
    /// The text.
    pub(super) text: String,
}

impl Named {
    /// Reads one; `None` for any other text.
    pub(super) fn parse(text: &str) -> Option<Named> {
        let (run, at, rest) = match text.match_indices(':').find_map(|(colon, _)| head(text, colon)) {
            Some((run, at, rest)) => (run, Some(at), rest),
            // Not a place: the text before the colon is read as a record.
            None if text.split(':').next().is_some_and(|head| head != text && head.contains('@')) => {
                return None;
            }
            None => (None, None, text),
        };
        let (place, is_state) = read(rest)?;
        let place = if is_state { below("state", &place) } else { place };
        let rest = rest.to_owned();
        Some(Named { run: run.map(str::to_owned), at, place, rest, text: text.to_owned() })
    }

    /// The place, as a pointer into the content.
    pub(super) fn place(&self) -> &Pointer {
        &self.place
    }

    /// Whether it names a run.
    pub(super) fn is_of_run(&self) -> bool {
        self.run.is_some()
    }

    /// Finds the values that it means in a record, if it names that. Named without a tick it means one of the content in all records,
    /// and one of the state only where the caller lets it.
    pub(super) fn target(
        &self,
        record: &Record,
        at: Option<RecordAt>,
        or_state: bool,
    ) -> Result<Target, Unmeant> {
        let run = record.header().run.as_ref().map(|run| run.as_str());
        // A map holds no value of a run.
        let is_run =
            self.run.as_deref().map_or(record.header().kind != Kind::Map, |named| Some(named) == run);
        match is_run && self.at.is_none_or(|named| at == Some(named)) {
            true => resolve_as(record, &self.rest, or_state || self.at.is_some()),
            false => Err(Unmeant::Nothing),
        }
    }

    /// Whether it names a field. Without a run it names those of the lineage of the erased value.
    pub(super) fn names(
        &self,
        run: Option<&str>,
        at: Option<RecordAt>,
        field: &Pointer,
        is_related: bool,
    ) -> bool {
        let is_run = match &self.run {
            None => is_related,
            Some(named) => run == Some(named.as_str()),
        };
        is_run && self.at.is_none_or(|named| at == Some(named)) && self.place.overlaps(field)
    }
}

/// Reads what is before a colon as a record, with its run if that is named: `TICK`, `refused:N`, `RUN@TICK` or `RUN@refused:N`.
fn head(text: &str, colon: usize) -> Option<(Option<&str>, RecordAt, &str)> {
    let (run, pos) = match text[..colon].rsplit_once('@') {
        Some((run, pos)) => (Some(run), pos),
        None => (None, &text[..colon]),
    };
    let at = match Position::parse(pos)? {
        Position::Tick(tick) if !pos.contains(':') => RecordAt::Tick(tick),
        Position::Refused(number) => RecordAt::Refusal(number),
        _ => return None,
    };
    Some((run, at, &text[colon + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_other_records_are_read_as_written() {
        let read = |text: &str| {
            let named = Named::parse(text)?;
            Some((named.run, named.at.map(|at| at.to_string()), named.place.as_str().to_owned()))
        };
        assert_eq!(read("delta"), Some((None, None, "/delta".to_owned())));
        assert_eq!(
            read("12:intent.description"),
            Some((None, Some("12".to_owned()), "/intent/description".to_owned()))
        );
        assert_eq!(
            read("r@3:/action/params"),
            Some((Some("r".to_owned()), Some("3".to_owned()), "/action/params".to_owned()))
        );
        let refused = Some("refused:1".to_owned());
        assert_eq!(read("refused:1:line"), Some((None, refused.clone(), "/line".to_owned())));
        assert_eq!(
            read("r@refused:1:line.reads"),
            Some((Some("r".to_owned()), refused, "/line/reads".to_owned()))
        );
        assert_eq!(read("r@refused:x:line"), None);
        assert_eq!(read("state.a"), Some((None, None, "/state/a".to_owned())));
        assert_eq!(read("r@x:delta"), None);
    }
}
