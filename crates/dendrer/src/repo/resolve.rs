//! The meaning of an address in a store: its run, its tick, its record.
//!
//! Rule: a run comes before a label, and both before the first digits of an id, so that a name means one thing.

use dendrer_object::RunName;
use dendrer_object::record::{Kind, Record};
use dendrer_object::text::nearest;
use dendrer_store::Store;

use crate::address::{Address, Position};
use crate::casebook::{self, Place};
use crate::error::{AddressError, Error};
use crate::run::trace::{ReadHandle, Trace, all_runs, no_run};

impl Address {
    /// Returns the record that is named by the first digits of its id; `None` if the address names a run.
    pub fn named_record(&self, store: &impl ReadHandle) -> Result<Option<Record>, Error> {
        let store = store.to_handle();
        let Some(text) = self.run.as_deref().filter(|text| !matches!(*text, "@" | "@-")) else {
            return Ok(None);
        };
        if let Ok(name) = text.parse::<RunName>()
            && store.run(&name)?.is_some()
        {
            return Ok(None);
        }
        by_prefix(&*store, text)
    }

    /// Replaces a label, and the id of a transition or of the beginning of a run, by run and tick. Any other record is no place
    /// in a run.
    pub fn resolve(self, store: &impl ReadHandle) -> Result<Address, Error> {
        if let Some(at) = self.run.as_deref().map(|text| labelled(store, text)).transpose()?.flatten() {
            let pos = self.pos.or(at.tick.map(Position::Tick));
            return Ok(Address { run: Some(at.run.to_string()), pos, bundle: self.bundle });
        }
        let Some(record) = self.named_record(store)? else { return Ok(self) };
        let header = record.header();
        let Some(run) = &header.run else { return Ok(self) };
        let tick = match (header.kind, header.prev) {
            (Kind::Transition, _) => header.tick,
            (Kind::Run, None) => Some(0),
            _ => None,
        };
        match (tick, self.pos) {
            (_, pos @ Some(_)) => Ok(Address { run: Some(run.to_string()), pos, ..self }),
            (Some(tick), None) => Ok(Address {
                run: Some(run.to_string()),
                pos: Some(Position::Tick(tick)),
                bundle: self.bundle,
            }),
            (None, None) => {
                Err(Error::IdWithoutTick { id: record.id(), kind: header.kind, run: Some(run.clone()) })
            }
        }
    }

    /// Returns the run that is meant. `named` are the runs that a bundle is of.
    pub fn run_in(&self, store: &impl ReadHandle, named: &[RunName]) -> Result<RunName, Error> {
        match self.run.as_deref() {
            None => match named {
                [only] => Ok(only.clone()),
                [] => Err(Error::EmptyBundle),
                many => Err(Error::SeveralRuns { runs: many.to_vec() }),
            },
            Some("@") => latest(store, 0),
            Some("@-") => latest(store, 1),
            Some(text) => find_run(store, text),
        }
    }

    /// Opens the run that is meant.
    pub fn trace_in(&self, store: &impl ReadHandle, named: &[RunName]) -> Result<Trace, Error> {
        Trace::open(store, &self.run_in(store, named)?)
    }
}

impl Position {
    /// Returns the tick that is meant.
    pub fn tick(&self, trace: &Trace) -> Result<u64, Error> {
        let tip = trace.tip();
        match self {
            Position::Onset => recorded_onset(trace),
            Position::Fork => match trace.lineage() {
                [.., (_, shared), _] => Position::Tick(shared.saturating_add(1)).tick(trace),
                _ => Err(Error::NotAFork { run: trace.name().clone() }),
            },
            Position::Label(label) => label_tick(trace, label),
            Position::Refused(number) => {
                Err(AddressError::RefusalWithoutTick { run: trace.name().clone(), number: *number }.into())
            }
            Position::Tick(tick) if *tick > tip => {
                Err(Error::NoTick { run: trace.name().clone(), tick: *tick, tip })
            }
            Position::Tick(tick) => Ok(*tick),
            Position::Tip => Ok(tip),
            Position::Back(back) => tip.checked_sub(*back).ok_or_else(|| Error::NoTickBack {
                run: trace.name().clone(),
                tip,
                back: *back,
            }),
        }
    }
}

/// Returns the moment that a label names, unless a run has that name.
fn labelled(store: &impl ReadHandle, text: &str) -> Result<Option<Place>, Error> {
    match text.parse::<RunName>() {
        Ok(name) if store.to_handle().run(&name)?.is_none() => casebook::find(store, text),
        _ => Ok(None),
    }
}

/// Returns the onset of the last recorded bisect of a run.
fn recorded_onset(trace: &Trace) -> Result<u64, Error> {
    let run = trace.name();
    match casebook::read(trace.store())?.and_then(|state| casebook::onset(&state, run)) {
        Some(Some(tick)) => Position::Tick(tick).tick(trace),
        found => Err(Error::NoOnset { run: run.clone(), is_recorded: found.is_some() }),
    }
}

/// Returns the tick of a run that a label is on.
fn label_tick(trace: &Trace, label: &str) -> Result<u64, Error> {
    let labels = casebook::read(trace.store())?.map(|state| casebook::labels(&state)).unwrap_or_default();
    let Some(at) = labels.get(label) else {
        let near = nearest(label, labels.keys().map(String::as_str)).map(str::to_owned);
        return Err(Error::NoLabel { name: label.to_owned(), near });
    };
    // The ticks that a fork shares with its parent are its own, too.
    let here = at.tick.filter(|tick| *tick <= trace.tip());
    match here.map(|tick| trace.record(tick)).transpose()? {
        Some(record) if record.id() == at.id => Ok(here.unwrap_or_default()),
        _ => {
            let (label, address, run) = (label.to_owned(), at.address(), trace.name().clone());
            Err(Error::LabelElsewhere { label, address, run })
        }
    }
}

/// Returns the run whose chain was written last, or one so many before it. The casebook is not counted.
fn latest(store: &impl ReadHandle, back: usize) -> Result<RunName, Error> {
    let handle = store.to_handle();
    let mut runs = Vec::new();
    for run in all_runs(&*handle)? {
        if !casebook::is_of(&handle, &run.name)? {
            runs.push((run.head_position, run.name));
        }
    }
    runs.sort();
    match runs.len().checked_sub(1 + back) {
        Some(at) => Ok(runs.swap_remove(at).1),
        None => Err(Error::EmptyStore),
    }
}

fn find_run(store: &impl ReadHandle, text: &str) -> Result<RunName, Error> {
    let handle = store.to_handle();
    let name = text.parse::<RunName>();
    if let Ok(name) = &name
        && handle.run(name)?.is_some()
    {
        return Ok(name.clone());
    }
    if let Some(at) = labelled(store, text)? {
        return Ok(at.run);
    }
    if let Some(record) = by_prefix(&*handle, text)? {
        let (id, kind) = (record.id(), record.header().kind);
        return record.header().run.clone().ok_or(Error::IdWithoutTick { id, kind, run: None });
    }
    match name {
        Ok(name) => Err(no_run(&*handle, &name)),
        Err(_) => Err(Error::NoRun { run: text.to_owned(), near: None }),
    }
}

/// Returns the one record whose id begins with these digits; `None` if they are no digits of an id, or of none here.
fn by_prefix(store: &dyn Store, text: &str) -> Result<Option<Record>, Error> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    let is_digits = hex.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
    if !is_digits || !(4..=64).contains(&hex.len()) {
        return Ok(None);
    }
    match store.find_prefix(hex, 9)?.as_slice() {
        [] => Ok(None),
        [(_, position)] => Ok(store.get(*position)?),
        many => Err(Error::SeveralRecords {
            digits: hex.to_owned(),
            ids: many.iter().map(|(id, _)| *id).collect(),
        }),
    }
}
