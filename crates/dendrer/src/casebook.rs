//! The casebook: what people and analyses found about the runs of a store, in a run of its own (design, section 2;
//! dendrer paper 4.1).
//!
//! Looking at a run never changes it, so what was found there cannot be a transition of it. The casebook is a run like any
//! other, under `delta/1`: chained, verified, replayed. `bisect.result`, `diff.summary` and `causal.chain` are the kernel's;
//! labels and notes are what a person says, as `memory.write` and `observation.add`. Each links to the records it is about, so
//! the digest of what was looked at is part of what was found.
//!
//! Its state holds `labels` by name, `notes` in order, and under `onsets` the last recorded bisect of each run. A newcomer
//! would break one rule: no agent writes here, and no run of an agent has this name.

pub mod diagnosis;

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_kernel::step::{Anomaly, Finding, FindingKind, Outcome, Start};
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::record::{Link, Record, Rel};
use dendrer_object::text::nearest;
use dendrer_object::{Digest, Intent, Pointer, RunName, Value};
use dendrer_store::Shared;
use dendrer_store::prelude::*;

use crate::address::{MADE, OF_STORE};
use crate::error::Error;
use crate::record::recorder::{Environment, Recorder};
use crate::run::trace::{ReadHandle, Trace};

pub use crate::run::casebook_name::{NAME, is_casebook, is_marked, is_of};

/// The version of what its state holds, and the mark by which it is known.
const VERSION: u64 = 1;

/// Names that no label can have, because a place in a run has them.
const PLACES: [&str; 3] = ["tip", "fork", "onset"];

fn name() -> RunName {
    NAME.parse().expect("a run name")
}

/// Goes on with the casebook of a store; the first who writes something down begins it.
pub fn open(store: &Shared, surroundings: Box<dyn Environment>) -> Result<Recorder, Error> {
    store.clone().refresh()?;
    let run = name();
    if store.run(&run)?.is_some() {
        return Recorder::resume_if(store, &run, surroundings, |trace| match is_casebook(trace) {
            true => Ok(()),
            false => Err(Error::NotCasebook { run: run.clone() }),
        });
    }
    let empty = || Value::object();
    let mut start = Start::new(run);
    start.meta = Some(Value::record([(NAME, Value::from(VERSION))]));
    start.state = Value::record([("labels", empty()), ("notes", Value::array([])), ("onsets", empty())]);
    Recorder::begin_any(store, &start, surroundings)
}

/// Reads what the casebook of a store says now; `None` where nothing was ever written down.
pub fn read(store: &impl ReadHandle) -> Result<Option<Value>, Error> {
    let (store, run) = (store.to_handle(), name());
    if store.run(&run)?.is_none() {
        return Ok(None);
    }
    let trace = Trace::open(&store, &run)?;
    match is_casebook(&trace) {
        true => Ok(Some(trace.state(trace.tip())?)),
        false => Ok(None),
    }
}

/// A moment: a run, or a tick of it, and the record that stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The run.
    pub run: RunName,
    /// The tick; `None` for the run as a whole.
    pub tick: Option<u64>,
    /// The id of the record at that tick, or of the one with which the run begins.
    pub id: Digest,
}

impl Place {
    /// The moment of a run.
    pub fn of(trace: &Trace, tick: Option<u64>) -> Result<Place, Error> {
        let record = match tick {
            Some(tick) => trace.record(tick)?,
            None => trace.begins().last().unwrap_or(trace.start()).clone(),
        };
        Ok(Place { run: trace.name().clone(), tick, id: record.id() })
    }

    fn read(value: &Value) -> Option<Place> {
        Some(Place {
            run: value.get("run")?.as_str()?.parse().ok()?,
            tick: value.get("tick").and_then(Value::as_u64),
            id: value.get("id")?.as_str()?.parse().ok()?,
        })
    }

    fn members(&self) -> [(&'static str, Value); 3] {
        [
            ("id", Value::from(self.id)),
            ("run", Value::from(self.run.as_str())),
            ("tick", Value::from(self.tick)),
        ]
    }

    fn link(&self) -> Link {
        Link { rel: Rel::Evidence, hash: self.id }
    }

    /// Writes it as an address.
    pub fn address(&self) -> String {
        match self.tick {
            Some(tick) => format!("{}@{tick}", self.run),
            None => self.run.to_string(),
        }
    }
}

/// A note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CasebookNote {
    /// Its subject.
    pub at: Place,
    /// Its text.
    pub text: String,
    /// Who says so, in his own words.
    pub by: String,
}

/// A run that lists leave out. Its records stay, and every verb reads it by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedRun {
    /// The run, up to the tick that it had.
    pub at: Place,
    /// Why.
    pub reason: Option<String>,
    /// Who says so, in his own words.
    pub by: String,
}

/// The labels of a casebook, by name.
pub fn labels(state: &Value) -> BTreeMap<String, Place> {
    let labels = state.get("labels").and_then(Value::as_object);
    let labels = labels.into_iter().flat_map(|labels| labels.iter());
    labels.filter_map(|(name, value)| Some((name.to_string(), Place::read(value)?))).collect()
}

/// The runs that lists leave out, each with the act that says so.
pub fn dropped(state: &Value) -> BTreeMap<RunName, DroppedRun> {
    let dropped = state.get("dropped").and_then(Value::as_object);
    let read = |(name, value): (&Arc<str>, &Value)| {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let run = DroppedRun { by: text("by")?, reason: text("reason"), at: Place::read(value)? };
        Some((name.parse().ok()?, run))
    };
    dropped.into_iter().flat_map(|dropped| dropped.iter()).filter_map(read).collect()
}

/// The notes of a casebook, in order.
pub fn notes(state: &Value) -> Vec<CasebookNote> {
    let note = |value: &Value| {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(CasebookNote { at: Place::read(value)?, text: text("text")?, by: text("by")? })
    };
    let notes = state.get("notes").and_then(Value::as_array);
    notes.into_iter().flat_map(|notes| notes.iter()).filter_map(note).collect()
}

/// Returns the labels of a store, by name.
pub fn labels_of(store: &impl ReadHandle) -> Result<BTreeMap<String, Place>, Error> {
    Ok(read(store)?.map(|state| labels(&state)).unwrap_or_default())
}

/// Returns the notes of a store, oldest first: of a tick, of a run with all its ticks, or all of them.
pub fn notes_of(store: &impl ReadHandle, at: Option<&Place>) -> Result<Vec<CasebookNote>, Error> {
    let mut notes = read(store)?.map(|state| notes(&state)).unwrap_or_default();
    notes.retain(|note| match at {
        Some(at) => note.at.run == at.run && (at.tick.is_none() || note.at.tick == at.tick),
        None => true,
    });
    Ok(notes)
}

/// The onset that the last recorded bisect of a run found. The outer `None` where none was recorded.
pub fn onset(state: &Value, run: &RunName) -> Option<Option<u64>> {
    Some(state.get("onsets")?.get(run.as_str())?.get("tick").and_then(Value::as_u64))
}

/// Finds what a label names.
pub fn find(store: &impl ReadHandle, label: &str) -> Result<Option<Place>, Error> {
    Ok(labels_of(store)?.remove(label))
}

/// Puts a label on a moment. Its name is that of no run; with `moves` it is put from one moment on another.
pub fn label(
    store: &Shared,
    label: &str,
    at: &Place,
    by: &str,
    moves: bool,
    surroundings: Box<dyn Environment>,
) -> Result<Record, Error> {
    let refuse = |why| Error::LabelName { name: label.to_owned(), why };
    let Ok(run) = label.parse::<RunName>() else {
        return Err(refuse("it is made of letters, digits, `.`, `_` and `-`, like the name of a run"));
    };
    let digits = label.strip_prefix('-').unwrap_or(label);
    if PLACES.contains(&label) || label.starts_with('-') || digits.bytes().all(|c| c.is_ascii_digit()) {
        return Err(refuse("it means a place in every run"));
    }
    if label.contains(OF_STORE) {
        return Err(refuse("a / marks a run of another store"));
    }
    if label.contains(MADE) {
        return Err(refuse("a + marks a name that the program makes for a run"));
    }
    if store.run(&run)?.is_some() || label == NAME {
        return Err(refuse("a run is called that"));
    }
    let mut recorder = open(store, surroundings)?;
    let known = labels(recorder.head().state());
    match known.contains_key(label) {
        true if !moves => return Err(refuse("there is such a label already; move it, or take it off first")),
        false if moves => {
            let near = nearest(label, known.keys().map(String::as_str)).map(str::to_owned);
            return Err(Error::NoLabel { name: label.to_owned(), near });
        }
        _ => {}
    }
    let delta = Delta(vec![Op::set(Pointer::of(["labels", label]), Value::record(at.members()))]);
    propose(&mut recorder, named("label", ("label", label), by, delta, at))
}

/// Takes a label off.
pub fn unlabel(
    store: &Shared,
    label: &str,
    by: &str,
    surroundings: Box<dyn Environment>,
) -> Result<Record, Error> {
    let known = labels_of(store)?;
    let Some(at) = known.get(label) else {
        let near = nearest(label, known.keys().map(String::as_str)).map(str::to_owned);
        return Err(Error::NoLabel { name: label.to_owned(), near });
    };
    let mut recorder = open(store, surroundings)?;
    let path = Pointer::of(["labels", label]);
    let delta = Delta(vec![Op { action: Action::Remove, path, value: None }]);
    propose(&mut recorder, named("unlabel", ("label", label), by, delta, at))
}

/// Leaves a run out of lists, as a recorded act.
pub fn drop_run(
    store: &Shared,
    run: &DroppedRun,
    surroundings: Box<dyn Environment>,
) -> Result<Record, Error> {
    let mut recorder = open(store, surroundings)?;
    let name = run.at.run.as_str();
    if dropped(recorder.head().state()).contains_key(&run.at.run) {
        return Err(Error::AlreadyDropped { run: run.at.run.clone() });
    }
    let said = [("by", Value::from(run.by.as_str())), ("reason", Value::from(run.reason.as_deref()))];
    let said = Value::record(said.into_iter().chain(run.at.members()));
    let delta = Delta(vec![Op::set(Pointer::of(["dropped", name]), said)]);
    propose(&mut recorder, named("drop", ("run", name), &run.by, delta, &run.at))
}

/// Takes a dropped run back into lists.
pub fn undrop_run(
    store: &Shared,
    run: &RunName,
    by: &str,
    surroundings: Box<dyn Environment>,
) -> Result<Record, Error> {
    let known = read(store)?.map(|state| dropped(&state)).unwrap_or_default();
    let Some(dropped) = known.get(run) else { return Err(Error::NotDropped { run: run.clone() }) };
    let mut recorder = open(store, surroundings)?;
    let path = Pointer::of(["dropped", run.as_str()]);
    let delta = Delta(vec![Op { action: Action::Remove, path, value: None }]);
    propose(&mut recorder, named("undrop", ("run", run.as_str()), by, delta, &dropped.at))
}

/// The places of requests that replays of a run leave out, as texts.
///
/// # Errors
///
/// The casebook cannot be read.
pub fn volatile_of(store: &impl ReadHandle, run: &RunName) -> Result<Vec<String>, Error> {
    let state = read(store)?;
    let places = state.as_ref().and_then(|state| state.get("volatile")?.get(run.as_str())?.get("places"));
    let places = places.and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(places.iter().filter_map(|place| place.as_str().map(str::to_owned)).collect())
}

/// Writes down which places of requests replays of a run leave out, in the place of those before.
pub fn record_volatile(
    store: &Shared,
    run: &Place,
    places: &[String],
    by: &str,
    surroundings: Box<dyn Environment>,
) -> Result<Record, Error> {
    let mut recorder = open(store, surroundings)?;
    let named_places = ("places", Value::array(places.iter().map(|place| Value::from(place.as_str()))));
    let said = Value::record(run.members().into_iter().chain([named_places]));
    let name = run.run.as_str();
    // Casebooks of before have no such member.
    let has_any = recorder.head().state().get("volatile").is_some();
    let op = match has_any {
        true => Op::set(Pointer::of(["volatile", name]), said),
        false => Op::set(Pointer::of(["volatile"]), Value::record([(name, said)])),
    };
    propose(&mut recorder, named("volatile", ("run", name), by, Delta(vec![op]), run))
}

/// Writes a note down.
pub fn note(
    store: &Shared,
    note: &CasebookNote,
    surroundings: Box<dyn Environment>,
) -> Result<Record, Error> {
    let mut recorder = open(store, surroundings)?;
    let words = [("by", Value::from(note.by.as_str())), ("text", Value::from(note.text.as_str()))];
    let value = Value::record(words.into_iter().chain(note.at.members()));
    let delta = Delta(vec![Op::append(Pointer::of(["notes"]), value)]);
    let mut intent = Intent::new("observation.add".parse().expect("a type of the ontology"), &note.by)
        .with("intent", Value::record([("description", Value::from(&*note.text))]))
        .with_delta(delta);
    intent.links.push(note.at.link());
    propose(&mut recorder, intent)
}

/// A statement on a name: a label that is put on or taken off, a run that is dropped or taken back.
fn named(act: &str, (what, name): (&str, &str), by: &str, delta: Delta, at: &Place) -> Intent {
    let params = Value::record([("at", Value::from(at.address())), (what, Value::from(name))]);
    let action = Value::record([("params", params), ("tool", Value::from(act))]);
    let mut intent = Intent::new("memory.write".parse().expect("a type of the ontology"), by)
        .with("action", action)
        .with_delta(delta);
    intent.links.push(at.link());
    intent
}

fn propose(recorder: &mut Recorder, intent: Intent) -> Result<Record, Error> {
    match recorder.propose(&intent)? {
        Outcome::Committed(record) | Outcome::Violated { record, .. } => {
            recorder.commit()?;
            Ok(record)
        }
        Outcome::Refused(_) => unreachable!("anyone may write to memory, at stage 1 without a contract"),
    }
}

/// The finding of a bisect, to be written down.
#[derive(Debug, Clone)]
pub struct Bisected {
    /// The run, and its last tick that was looked at.
    pub run: Place,
    /// The onset, if there is one.
    pub onset: Option<Place>,
    /// The answer as it was given.
    pub answer: Value,
    /// The causal chain, where one was followed.
    pub chain: Option<Value>,
}

/// Members of an answer that are sentences of ours, or commands: they follow from the rest, and are made when it is shown.
const SENTENCES: [&str; 11] = [
    "caveat",
    "cause",
    "evidence",
    "help",
    "message",
    "note",
    "read_from",
    "suggestion",
    "summary",
    "why",
    "words",
];

/// Members of an answer whose values are those of the run, with names that are not ours.
const OF_THE_RUN: [&str; 6] = ["after", "before", "changes", "ops", "state", "value"];

/// Returns an answer as it is put on record: codes, numbers, places and values (design, section 3).
fn without_sentences(answer: &Value) -> Value {
    match answer {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !SENTENCES.contains(&&***name));
            Value::record(kept.map(|(name, value)| {
                let is_of_the_run = OF_THE_RUN.contains(&&**name);
                (Arc::clone(name), if is_of_the_run { value.clone() } else { without_sentences(value) })
            }))
        }
        Value::Array(items) => Value::array(items.iter().map(without_sentences)),
        other => other.clone(),
    }
}

/// Writes down what a bisect found: `bisect.result`, and `causal.chain` behind it, which links to it.
pub fn record_bisect(
    store: &Shared,
    found: &Bisected,
    surroundings: Box<dyn Environment>,
) -> Result<Vec<Record>, Error> {
    let mut recorder = open(store, surroundings)?;
    let place = Pointer::of(["onsets", found.run.run.as_str()]);
    let onset = found.onset.as_ref();
    let said = Value::record([
        ("at", Value::from(found.run.tick)),
        ("id", Value::from(onset.map(|onset| onset.id.to_string()))),
        ("predicate", found.answer.get("predicate").map_or(Value::Null, without_sentences)),
        ("tick", Value::from(onset.and_then(|onset| onset.tick))),
    ]);
    let mut links: Vec<Link> = onset.into_iter().chain([&found.run]).map(Place::link).collect();
    links.dedup();
    let bisect = Finding {
        kind: FindingKind::Bisect,
        content: without_sentences(&found.answer),
        links,
        delta: Delta(vec![Op::set(place, said)]),
    };
    let bisect = recorder.note_finding(&bisect)?;
    if let Some(chain) = &found.chain {
        let mut links = vec![Link { rel: Rel::CausedBy, hash: bisect.id() }];
        links.extend(onset.map(Place::link));
        let (kind, delta) = (FindingKind::Chain, Delta::default());
        recorder.note_finding(&Finding { kind, content: without_sentences(chain), links, delta })?;
    }
    recorder.commit()
}

/// Writes down how two runs differ: `diff.summary`.
pub fn record_diff(
    store: &Shared,
    runs: [&Place; 2],
    answer: &Value,
    surroundings: Box<dyn Environment>,
) -> Result<Vec<Record>, Error> {
    let mut recorder = open(store, surroundings)?;
    let mut links: Vec<Link> = runs.iter().map(|run| run.link()).collect();
    links.dedup();
    let (kind, delta) = (FindingKind::Diff, Delta::default());
    recorder.note_finding(&Finding { kind, content: without_sentences(answer), links, delta })?;
    recorder.commit()
}

/// Writes down where the replay of a graph's run parted from its record: a `kernel.anomaly` of kind `replay_divergence`, since the
/// run itself is closed.
pub fn record_divergence(
    store: &Shared,
    run: &Place,
    divergence: &Value,
    surroundings: Box<dyn Environment>,
) -> Result<Vec<Record>, Error> {
    let mut recorder = open(store, surroundings)?;
    let about = Value::record([
        ("divergence", divergence.clone()),
        ("id", Value::from(run.id)),
        ("run", Value::from(run.run.as_str())),
    ]);
    recorder.note_anomaly(&Anomaly { kind: "replay_divergence".into(), about, agent: None })?;
    recorder.commit()
}
