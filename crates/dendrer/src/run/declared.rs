//! Names that a question is about: types, agents, kinds of anomaly and places. A name that is declared nowhere is an error
//! with a suggestion, so that a typing error is never answered with an empty list.
//!
//! A name is declared by the kernel, by the pack in force or by a record of the run. Records are read only until all names
//! were found. Names of predicates are resolved in `ask::named`.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use dendrer_kernel::counters;
use dendrer_kernel::names::{COUNTERS, STATE_FIELDS};
use dendrer_kernel::ontology::{INSTITUTION, KERNEL, TYPES, anomalies};
use dendrer_kernel::pack::Pack;
use dendrer_object::delta::{Action, Op};
use dendrer_object::record::Record;
use dendrer_object::text::nearest;
use dendrer_object::{Pointer, Value};

use crate::error::Error;
use crate::error::{NameKind, Undeclared};
use crate::run::pack;
use crate::run::trace::Trace;

/// Checks that the ontology, the pack in force or a record of the run has each of these types.
pub fn types<'n>(trace: &Trace, names: impl IntoIterator<Item = &'n str>) -> Result<(), Error> {
    let mut known: BTreeSet<String> = TYPES.iter().map(|(name, _)| (*name).to_owned()).collect();
    if let Some(missing) = Missing::of(names, &known) {
        let declared = in_force(trace)?.into_iter().flat_map(|pack| pack.types.into_keys());
        known.extend(declared.map(|name| name.to_string()));
        missing.search(trace, NameKind::Type, known, &mut |record, found, closed| {
            found.extend(record.header().type_name.as_ref().map(ToString::to_string));
            // A decision names the type that it is about.
            let about = Pointer::of(["policy", "transition_type"]);
            found.extend(
                record.body().value(about.as_str()).and_then(|about| Some(about.as_str()?.to_owned())),
            );
            *closed += is_closed(record, "policy");
        })?;
    }
    Ok(())
}

/// Checks that each of these agents has a record in the run.
pub fn agents<'n>(trace: &Trace, names: impl IntoIterator<Item = &'n str>) -> Result<(), Error> {
    agents_or(trace, names, BTreeSet::new())
}

/// Checks that each of these agents has a record in the run, or is one of `others`.
pub fn agents_or<'n>(
    trace: &Trace,
    names: impl IntoIterator<Item = &'n str>,
    others: BTreeSet<String>,
) -> Result<(), Error> {
    let mut known = others;
    known.extend([KERNEL, INSTITUTION].map(str::to_owned));
    match Missing::of(names, &known) {
        None => Ok(()),
        Some(missing) => missing.search(trace, NameKind::Agent, known, &mut |record, found, closed| {
            let agent = record.body().value("/agent_id");
            found.extend(agent.and_then(|agent| Some(agent.as_str()?.to_owned())));
            *closed += is_closed(record, "agent_id");
        }),
    }
}

/// Checks that the kernel, an importer or a record of the run has this kind of anomaly.
pub fn anomaly(trace: &Trace, kind: &str) -> Result<(), Error> {
    let known: BTreeSet<String> = anomalies().map(str::to_owned).collect();
    match Missing::of([kind], &known) {
        None => Ok(()),
        Some(missing) => missing.search(trace, NameKind::Anomaly, known, &mut |record, found, closed| {
            let noted = record.body().value("/anomalies");
            let noted = noted.as_ref().and_then(Value::as_array).into_iter().flat_map(|noted| noted.iter());
            let kinds = noted.filter_map(|note| note.get("kind").unwrap_or(note).as_str().map(str::to_owned));
            found.extend(kinds);
            *closed += is_closed(record, "anomalies");
        }),
    }
}

/// Checks that the pack in force of one of the runs declares a place of the state, or that one of them ever had a value there.
pub fn place(traces: &[&Trace], path: &Pointer) -> Result<(), Error> {
    let names: Vec<String> = path.tokens().map(|name| name.into_owned()).collect();
    let Some(first) = names.first() else { return Ok(()) };
    let mut known: BTreeSet<String> = STATE_FIELDS.iter().map(|name| (*name).to_owned()).collect();
    match names.get(1) {
        Some(counter) if first == COUNTERS => {
            let known = counters::NAMES.iter().map(|name| format!("{COUNTERS}.{name}"));
            return match counters::NAMES.contains(&counter.as_str()) {
                true => Ok(()),
                false => Err(no_place(traces, path, &[COUNTERS.to_owned()], known.collect())),
            };
        }
        _ if known.contains(first) => return Ok(()),
        _ => {}
    }
    let mut closed = 0;
    let mut above: Vec<String> = Vec::new();
    for trace in traces {
        if let Some(pack) = in_force(trace)? {
            known.extend(pack.fields.iter().map(|field| field.stored().to_string()));
            if names.len() == 1 && known.contains(first) {
                return Ok(());
            }
        }
        // A state that cannot be read declares nothing; the deltas still do.
        for state in [trace.state(trace.tip()), trace.state(0)].into_iter().flatten() {
            if path.get(&state).is_some() {
                return Ok(());
            }
            let (deepest, members) = deepest(&state, &names);
            known.extend(members);
            if deepest.len() > above.len() {
                above = deepest;
            }
        }
    }
    let is_found = any_record(traces, &mut |record| {
        closed += is_closed(record, "delta");
        let delta = record.delta();
        delta.is_some_and(|delta| delta.0.iter().any(|op| wrote(op, path)))
    })?;
    match is_found || closed > 0 {
        true => Ok(()),
        false => Err(no_place(traces, path, &above, known)),
    }
}

/// Checks that a transition of one of the runs has a value at a place of its content.
pub fn member(traces: &[&Trace], path: &Pointer) -> Result<(), Error> {
    let names: Vec<String> = path.tokens().map(|name| name.into_owned()).collect();
    let Some((last, above)) = names.split_last() else { return Ok(()) };
    let first = above.first().unwrap_or(last);
    let (mut known, mut closed) = (BTreeSet::new(), 0);
    let is_found = any_record(traces, &mut |record| {
        closed += is_closed(record, first);
        let content = record.content();
        known.extend(deepest(&content, &names).1);
        path.get(&content).is_some()
    })?;
    match is_found || closed > 0 {
        true => Ok(()),
        false => Err(no_place(traces, path, above, known)),
    }
}

/// Reads the transitions of runs up to the first of which `is_meant` is true. Returns whether there is one.
fn any_record(traces: &[&Trace], is_meant: &mut dyn FnMut(&Record) -> bool) -> Result<bool, Error> {
    let mut is_found = false;
    for trace in traces.iter() {
        trace.for_each(1, trace.tip(), &mut |_, record| {
            is_found = is_meant(&record);
            if is_found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if is_found {
            break;
        }
    }
    Ok(is_found)
}

/// Names that were not found yet.
struct Missing<'n>(Vec<&'n str>);

impl<'n> Missing<'n> {
    fn of(names: impl IntoIterator<Item = &'n str>, known: &BTreeSet<String>) -> Option<Missing<'n>> {
        let names: Vec<&str> = names.into_iter().filter(|name| !known.contains(*name)).collect();
        (!names.is_empty()).then_some(Missing(names))
    }

    /// Reads records until all names were found; an error names the first one that no record has.
    fn search(
        mut self,
        trace: &Trace,
        kind: NameKind,
        mut known: BTreeSet<String>,
        names_of: &mut dyn FnMut(&Record, &mut BTreeSet<String>, &mut u64),
    ) -> Result<(), Error> {
        let mut closed = 0;
        self.0.retain(|name| !known.contains(*name));
        if self.0.is_empty() {
            return Ok(());
        }
        trace.for_each(1, trace.tip(), &mut |_, record| {
            names_of(&record, &mut known, &mut closed);
            self.0.retain(|name| !known.contains(*name));
            if self.0.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if !self.0.is_empty() {
            let refusals = trace.refusals()?;
            refusals.values().flatten().for_each(|record| names_of(record, &mut known, &mut closed));
            self.0.retain(|name| !known.contains(*name));
        }
        // A value that was erased or withheld may have the name. The question says then what it could not read.
        let Some(name) = self.0.first().filter(|_| closed == 0) else { return Ok(()) };
        Err(Error::Undeclared(Box::new(Undeclared {
            kind,
            name: (*name).to_owned(),
            runs: vec![trace.name().to_string()],
            near: near(name, known.iter().map(String::as_str)).map(str::to_owned),
            known: known.into_iter().collect(),
        })))
    }
}

/// The known name that is nearest, or the only one of which the name is a beginning or an end.
pub(crate) fn near<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    const MARKS: [char; 4] = ['.', '-', '_', '/'];
    let known: Vec<&str> = known.into_iter().collect();
    let is_part = |other: &str| {
        other.strip_prefix(name).is_some_and(|rest| rest.starts_with(MARKS))
            || other.strip_suffix(name).is_some_and(|rest| rest.ends_with(MARKS))
    };
    let last = |other: &'k str| other.rsplit(['.', '/']).next().unwrap_or(other);
    let mut parts = known.iter().copied().filter(|other| is_part(other));
    nearest(name, known.iter().copied()).or_else(|| parts.next().filter(|_| parts.next().is_none())).or_else(
        || {
            let near = nearest(name, known.iter().copied().map(last))?;
            known.iter().copied().find(|other| last(other) == near)
        },
    )
}

/// The pack in force at the tip, with what extensions add to it.
fn in_force(trace: &Trace) -> Result<Option<Pack>, Error> {
    let Some(plain) = pack::of_run(trace)? else { return Ok(None) };
    match trace.state(trace.tip()) {
        Ok(state) => pack::in_force(trace, trace.tip() + 1, &state),
        // A state that cannot be read hides extensions alone.
        Err(_) => Ok(Some(plain)),
    }
}

fn is_closed(record: &Record, member: &str) -> u64 {
    let body = record.body();
    let of_member = |field: &&dendrer_object::record::Field| {
        field.pointer.tokens().next().is_some_and(|first| first == member)
    };
    let closed = body.fields().iter().filter(of_member).filter(|field| body.text(field).is_none());
    closed.count() as u64
}

/// Whether a change wrote a value at a place, or below it.
fn wrote(op: &Op, path: &Pointer) -> bool {
    if !op.path.overlaps(path) {
        return false;
    }
    let mut rest: Vec<String> =
        path.tokens().skip(op.path.tokens().count()).map(|name| name.into_owned()).collect();
    if rest.is_empty() {
        return true;
    }
    if op.action == Action::Append {
        // The number of the new item depends on how many there were.
        rest.remove(0);
    }
    let below = Pointer::of(rest.iter().map(String::as_str));
    op.value.as_ref().is_some_and(|value| below.get(value).is_some())
}

/// The longest beginning of a path that a value has, and the members there.
fn deepest(value: &Value, names: &[String]) -> (Vec<String>, Vec<String>) {
    let mut here = value;
    let mut above = Vec::new();
    for name in names {
        let next = Pointer::of([name.as_str()]);
        match next.get(here) {
            Some(next) => here = next,
            None => break,
        }
        above.push(name.clone());
    }
    let members = here.as_object().into_iter().flat_map(|object| object.iter());
    let path = |name: &str| Pointer::of(above.iter().map(String::as_str).chain([name])).dotted();
    let members = members.map(|(name, _)| path(name)).collect();
    (above, members)
}

fn no_place(traces: &[&Trace], path: &Pointer, above: &[String], known: BTreeSet<String>) -> Error {
    // The first name that is not there is the misspelt one; what follows it is not known to be right.
    let wrong: Vec<String> = path.tokens().take(above.len() + 1).map(|name| name.into_owned()).collect();
    let wrong = Pointer::of(wrong.iter().map(String::as_str)).dotted();
    let beside: BTreeSet<String> = known
        .into_iter()
        .filter(|name| {
            above.is_empty() || name.starts_with(&Pointer::of(above.iter().map(String::as_str)).dotted())
        })
        .collect();
    let mut runs: Vec<String> = traces.iter().map(|trace| trace.name().to_string()).collect();
    runs.dedup();
    if runs.len() > 2 {
        runs = vec!["any run".to_owned()];
    }
    Error::Undeclared(Box::new(Undeclared {
        kind: NameKind::Place,
        name: path.dotted(),
        runs,
        near: near(&wrong, beside.iter().map(String::as_str)).map(str::to_owned),
        known: beside.into_iter().collect(),
    }))
}
