//! The typed columns of an export: which places they are of, and one kind for all rows of each.

use std::collections::BTreeMap;

use dendrer_object::{Number, Pointer, Value, json};

use crate::error::FleetError;

/// The first name of places of the derived counters.
pub(crate) const COUNTERS: &str = "counters";

/// The counters that are columns if none are named: those with a single value.
const SCALAR_COUNTERS: [&str; 7] =
    ["cost_usd", "denied_count", "last_tool", "tokens_used", "tool_calls", "tool_errors", "transitions"];

/// The largest number of columns that are found by themselves.
pub(crate) const FOUND_MAX: usize = 256;

/// The largest depth at which a column is found by itself.
const DEPTH_MAX: usize = 2;

dendrer_object::words! {
    /// The kind of all values of a column.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ColumnKind {
        /// `true` and `false`.
        Bool = "bool",
        /// Integers of at most 2^53-1.
        Int = "int",
        /// Numbers.
        Number = "number",
        /// Texts.
        Text = "text",
        /// Values of several kinds, lists, objects, nulls or larger integers, as canonical JSON.
        Json = "json",
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The place in the state, or below `/counters`.
    pub place: Pointer,
    /// The kind of all its values.
    pub kind: ColumnKind,
    /// The number of rows in which the place is not there or not known.
    pub nulls: u64,
}

impl Column {
    /// The name of the column in the files.
    pub fn name(&self) -> String {
        format!("c_{}", self.place.dotted())
    }

    /// The name of the counter that the column has; `None` for a place of the state.
    pub fn counter(&self) -> Option<String> {
        let mut tokens = self.place.tokens();
        (tokens.next().as_deref() == Some(COUNTERS)).then(|| tokens.next().map(|name| name.into_owned()))?
    }
}

/// Reads a place that is to be a column.
pub(crate) fn place_of(text: &str) -> Result<Pointer, FleetError> {
    let fault = |why: &str| FleetError::Column { place: text.to_owned(), why: why.to_owned() };
    match Pointer::from_place(text) {
        Some(Ok(place)) if place.as_str().is_empty() => Err(fault("it is the whole state; --states has it")),
        Some(Ok(place)) => Ok(place),
        Some(Err(error)) => Err(fault(&error.to_string())),
        None => Err(fault("it is no place of the state")),
    }
}

/// The kind of one value.
fn kind_of(value: &Value) -> ColumnKind {
    match value {
        Value::Bool(_) => ColumnKind::Bool,
        Value::String(_) => ColumnKind::Text,
        Value::Number(number) if number.is_big() => ColumnKind::Json,
        Value::Number(number) if number.as_i64().is_some() => ColumnKind::Int,
        Value::Number(_) => ColumnKind::Number,
        _ => ColumnKind::Json,
    }
}

/// The kind that has values of both kinds.
fn both(a: ColumnKind, b: ColumnKind) -> ColumnKind {
    match (a, b) {
        (a, b) if a == b => a,
        (ColumnKind::Int, ColumnKind::Number) | (ColumnKind::Number, ColumnKind::Int) => ColumnKind::Number,
        _ => ColumnKind::Json,
    }
}

/// Columns while all rows are looked through.
#[derive(Debug)]
pub(crate) struct ColumnSearch {
    /// Whether places are found by themselves.
    finds: bool,
    found: BTreeMap<Pointer, (Option<ColumnKind>, u64)>,
    rows: u64,
    /// Whether there were more places than [`FOUND_MAX`].
    pub(crate) left_out: bool,
}

impl ColumnSearch {
    pub(crate) fn new(named: &[Pointer]) -> ColumnSearch {
        let counters = SCALAR_COUNTERS.map(|name| Pointer::of([COUNTERS, name]));
        let finds = named.is_empty();
        let places: Vec<Pointer> = if finds { counters.to_vec() } else { named.to_vec() };
        let found = places.into_iter().map(|place| (place, (None, 0))).collect();
        ColumnSearch { finds, found, rows: 0, left_out: false }
    }

    /// Takes a row in; `None` if its state is not known.
    pub(crate) fn row(&mut self, state: Option<&Value>, counters: Option<&Value>) {
        self.rows += 1;
        if let (true, Some(state)) = (self.finds, state) {
            self.find(&Pointer::root(), state, 0);
        }
        for (place, (kind, count)) in &mut self.found {
            if let Some(value) = value_at(place, state, counters) {
                let own = kind_of(value);
                *kind = Some(kind.map_or(own, |kind| both(kind, own)));
                *count += 1;
            }
        }
    }

    fn find(&mut self, above: &Pointer, value: &Value, depth: usize) {
        let Some(object) = value.as_object().filter(|_| depth < DEPTH_MAX) else { return };
        for (name, member) in object.iter() {
            // The marks of unknown places are the column `unknown`.
            if depth == 0 && (**name == *dendrer_kernel::names::UNKNOWN || **name == *COUNTERS) {
                continue;
            }
            let place = below(above, name);
            if member.as_object().is_some() {
                self.find(&place, member, depth + 1);
            } else if member.as_array().is_none() && !self.found.contains_key(&place) {
                match self.found.len() < FOUND_MAX {
                    true => drop(self.found.insert(place, (None, 0))),
                    false => self.left_out = true,
                }
            }
        }
    }

    pub(crate) fn finish(self) -> Vec<Column> {
        let rows = self.rows;
        let column = |(place, (kind, count)): (Pointer, (Option<ColumnKind>, u64))| Column {
            place,
            kind: kind.unwrap_or(ColumnKind::Json),
            nulls: rows - count,
        };
        self.found.into_iter().map(column).collect()
    }
}

fn below(above: &Pointer, name: &str) -> Pointer {
    let tokens: Vec<_> = above.tokens().map(|token| token.into_owned()).collect();
    Pointer::of(tokens.iter().map(String::as_str).chain([name]))
}

/// The value of a column in a row; `None` if it is not there or not known.
pub(crate) fn value_at<'v>(
    place: &Pointer,
    state: Option<&'v Value>,
    counters: Option<&'v Value>,
) -> Option<&'v Value> {
    let mut tokens = place.tokens();
    if tokens.next().as_deref() != Some(COUNTERS) {
        let state = state?;
        let value = place.get(state)?;
        return dendrer_kernel::unknown::meets(state, place).is_none().then_some(value);
    }
    let rest: Vec<_> = tokens.map(|token| token.into_owned()).collect();
    Pointer::of(rest.iter().map(String::as_str)).get(counters?)
}

/// A value as a column has it in its file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Bool(bool),
    Int(i64),
    Number(f64),
    Text(String),
}

impl Cell {
    /// Writes a value in the kind of its column.
    pub(crate) fn of(kind: ColumnKind, value: &Value) -> Cell {
        match (kind, value) {
            (ColumnKind::Bool, Value::Bool(value)) => Cell::Bool(*value),
            (ColumnKind::Int, Value::Number(number)) => Cell::Int(number.as_i64().unwrap_or_default()),
            (ColumnKind::Number, Value::Number(number)) => Cell::Number(number.as_f64().unwrap_or_default()),
            (ColumnKind::Text, Value::String(text)) => Cell::Text(text.to_string()),
            (_, value) => Cell::Text(json::to_string(value)),
        }
    }

    /// Reads a value; `None` for a cell that [`Cell::of`] does not write.
    pub(crate) fn value(&self, kind: ColumnKind) -> Option<Value> {
        Some(match (kind, self) {
            (ColumnKind::Bool, Cell::Bool(value)) => Value::Bool(*value),
            (ColumnKind::Int, Cell::Int(value)) => Value::Number(Number::from_i64(*value)),
            (ColumnKind::Number, Cell::Number(value)) => Value::Number(Number::from_f64(*value)?),
            (ColumnKind::Text, Cell::Text(text)) => Value::from(text.as_str()),
            (ColumnKind::Json, Cell::Text(text)) => json::parse_canonical(text.as_bytes()).ok()?,
            _ => return None,
        })
    }
}
