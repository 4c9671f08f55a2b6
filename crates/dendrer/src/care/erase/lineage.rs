//! Walks the log once, and finds the fields that contain a value, are digests over it, or may follow from it.
//!
//! A run is related if it has the erased record in its history: the run itself after that tick, and every fork from there on.
//! Of a related run it is known which places of the state hold the value: those that an erased delta wrote, until a later delta
//! replaces or removes them. As long as there is one, the root of the state is a digest over the value.
//!
//! A refusal changed no state, so no record follows from one: of a value in a refusal only copies are looked for.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::step::ROUNDED;
use dendrer_object::delta::Action;
use dendrer_object::record::{Author, Kind, Record};
use dendrer_object::{Digest, MESSAGES, Pointer, RunName, Value, tag};
use dendrer_store::Store;

use super::needles::{Found, Needles};
use super::place::{Named, Target};
use super::{EraseError, ErasePlace, EraseReason};
use crate::address::RecordAt;
use crate::error::Error;
use crate::run::casebook_name;
use crate::run::thread::{CHECKPOINT, PLACES, exact_places, is_of_thread, place_of};
use crate::run::trace::Trace;

/// Members of the content in which an author writes what they like.
const PAYLOAD: [&str; 16] = [
    "action",
    "anomalies",
    "bisect",
    "chain",
    "delta",
    "denied",
    "diff",
    "goal",
    "intent",
    MESSAGES,
    "meta",
    "policy",
    "proposed",
    "result",
    ROUNDED,
    "state",
];

/// Fields of a refusal with the line, and with the reason, which may name a place or a value of the line.
const REFUSED: [&str; 2] = ["/line", "/reason"];

/// Fields of those members with one of a few words or a number.
const WORDS: [&str; 3] = ["/action/tool", "/intent/confidence", "/result/status"];

/// What a related run knows of the value.
#[derive(Debug, Clone, Default)]
struct Related {
    /// The places of the state that hold the value, after each tick at which they changed.
    held: BTreeMap<u64, Vec<Pointer>>,
}

impl Related {
    fn at(&self, tick: u64) -> &[Pointer] {
        self.held.range(..=tick).next_back().map_or(&[], |(_, places)| places)
    }
}

/// The fields that were found.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// They are erased.
    pub(super) erased: Vec<ErasePlace>,
    /// They stay, as the caller named them.
    pub(super) although: Vec<ErasePlace>,
    /// The caller named none of them.
    open: Vec<ErasePlace>,
    /// The places of the vault with the exact bytes of an erased field, and the field that names each.
    pub(super) exact: Vec<(ErasePlace, Arc<str>)>,
}

/// The walk.
#[derive(Debug)]
pub(super) struct Lineage {
    /// Position of the record with the value.
    position: u64,
    /// Whether that record is a refusal.
    is_refusal: bool,
    /// The number of refusals of each run that were walked.
    refusals: HashMap<RunName, u64>,
    /// The place of the record that is walked in its run.
    at: Option<RecordAt>,
    owner: RunName,
    asked: Vec<Pointer>,
    needles: Needles,
    /// Digests over wholes that contain the value, wherever they are.
    digests: Needles,
    /// Places that are erased as well.
    pub(super) also: Vec<Named>,
    /// Places that stay.
    pub(super) although: Vec<Named>,
    /// Whether copies are erased wherever they are.
    pub(super) everywhere: bool,
    related: HashMap<RunName, Related>,
    /// The ticks of the chain records of related runs, by id: a fork names one of them as its parent.
    chain: HashMap<Digest, (RunName, u64)>,
    /// Records of which something is erased: what links to one of them was made from it.
    touched: BTreeSet<Digest>,
    /// Keyed hashes of the texts that were on record before the value: they do not follow from it.
    earlier: HashSet<u64>,
    hasher: RandomState,
    used: BTreeSet<String>,
    found: Fields,
}

/// How a field of one record is treated.
struct Verdict {
    place: Pointer,
    reason: EraseReason,
}

impl Lineage {
    /// Begins a walk for the values of a record.
    pub(super) fn new(
        trace: &Trace,
        record: &Record,
        position: u64,
        target: &Target,
    ) -> Result<Lineage, EraseError> {
        let owner = record.header().run.clone().unwrap_or_else(|| trace.name().clone());
        let mut digests = Needles::default();
        // The file that a run was imported from, whose digest covers every value of the run.
        let begin = trace.begins().iter().find(|begin| begin.header().run.as_ref() == Some(&owner));
        let inputs = begin.and_then(|begin| begin.body().value("/inputs"));
        let source = inputs.as_ref().and_then(|inputs| inputs.get("source")?.get("sha256")?.as_str());
        digests.extend_whole(source);
        // The digest over effect and arguments of a call that an edge of a graph made.
        if touches(&target.fields, "action") {
            let edge = record.body().value("/edge");
            digests.extend_whole(edge.as_ref().and_then(|edge| edge.get("asked")?.as_str()));
        }
        Ok(Lineage {
            position,
            is_refusal: record.header().kind == Kind::Refusal,
            refusals: HashMap::new(),
            at: None,
            owner,
            asked: target.fields.clone(),
            needles: Needles::of(&target.values),
            digests,
            also: Vec::new(),
            although: Vec::new(),
            everywhere: false,
            related: HashMap::new(),
            chain: HashMap::new(),
            touched: BTreeSet::new(),
            earlier: HashSet::new(),
            hasher: RandomState::new(),
            used: BTreeSet::new(),
            found: Fields::default(),
        })
    }

    /// Whether a text contains the value, or a part of it.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let text = dendrer_object::json::to_string(&Value::from(text));
        self.needles.find(&text).is_some()
    }

    /// Reads the log up to a size.
    pub(super) fn read(&mut self, store: &dyn Store, size: u64) -> Result<(), EraseError> {
        store
            .scan(0..size, &mut |position, record| {
                self.take(position, &record);
                ControlFlow::Continue(())
            })
            .map_err(|error| EraseError::Failed(Error::from(error)))
    }

    /// Returns the fields, or those that the caller has to name first.
    pub(super) fn end(self) -> Result<Fields, EraseError> {
        if !self.found.open.is_empty() {
            return Err(EraseError::Open { open: self.found.open });
        }
        let idle = self.also.iter().chain(&self.although).find(|named| !self.used.contains(&named.text));
        match idle {
            Some(named) => Err(EraseError::Idle { text: named.text.clone() }),
            None => Ok(self.found),
        }
    }

    fn take(&mut self, position: u64, record: &Record) {
        let header = record.header();
        if header.kind == Kind::Key {
            return;
        }
        self.at = self.count(record);
        let is_target = position == self.position;
        if position < self.position {
            let texts = payload(record).map(|(field, text)| self.hasher.hash_one((field.as_str(), text)));
            self.earlier.extend(texts.collect::<Vec<u64>>());
        }
        self.relate(record, is_target);
        let mut is_related = header.run.as_ref().is_some_and(|run| self.related.contains_key(run));
        let is_derived = is_related || self.is_made_from_touched(record);
        // The run has the value from its refusal on, though nothing follows from it.
        let is_after =
            self.is_refusal && position >= self.position && header.run.as_ref() == Some(&self.owner);
        let mut erased: Vec<Verdict> = Vec::new();
        if is_target {
            erased.extend(
                self.asked.iter().map(|place| Verdict { place: place.clone(), reason: EraseReason::Asked }),
            );
        }
        for verdict in self.doubtful(record, is_derived) {
            if erased.iter().any(|known| known.place == verdict.place) {
                continue;
            }
            let gone = erased.iter().map(|verdict| &verdict.place);
            if verdict.place == Pointer::of([MESSAGES]) && gone.clone().any(holds_messages) {
                erased.push(Verdict { reason: EraseReason::Copy, ..verdict });
                continue;
            }
            match self.decide(record, &verdict, is_derived || is_after) {
                Decision::Erase => erased.push(verdict),
                Decision::Keep => self.found.although.push(self.found_at(record, position, verdict)),
                Decision::Ask => self.found.open.push(self.found_at(record, position, verdict)),
            }
        }
        let is_on_chain = header.kind != Kind::Refusal;
        if let (Some(run), false, true) =
            (&header.run, is_related, is_on_chain && erased.iter().any(|one| is_open(record, &one.place)))
        {
            // A copy is here: from now on this run has the value in its history as well.
            self.related.insert(run.clone(), Related::default());
            self.chain.extend(header.tick.map(|tick| (record.id(), (run.clone(), tick))));
            is_related = true;
        }
        self.add_digests(record, is_target, is_related, &mut erased);
        erased.retain(|verdict| is_open(record, &verdict.place));
        erased.sort_by(|a, b| a.place.cmp(&b.place));
        if !erased.is_empty() {
            self.touched.insert(record.id());
        }
        self.take_exact(position, record, &erased);
        let places: Vec<_> =
            erased.into_iter().map(|verdict| self.found_at(record, position, verdict)).collect();
        self.found.erased.extend(places);
    }

    /// Takes the exact bytes of a put that has the value.
    fn take_exact(&mut self, position: u64, record: &Record, erased: &[Verdict]) {
        for (name, at) in exact_places(record) {
            if erased.iter().any(|verdict| is_of_exact(&verdict.place)) || self.is_laid_again(record) {
                let verdict = Verdict { place: Pointer::of(["intent", name]), reason: EraseReason::Copy };
                self.found.exact.push((self.found_at(record, position, verdict), at));
            }
        }
    }

    /// Whether the exact bytes of a put have the value though nothing else of its record does: items of a list that holds it were
    /// joined, or laid down once more.
    fn is_laid_again(&self, record: &Record) -> bool {
        let header = record.header();
        let about = record.body().value(&format!("/intent/{CHECKPOINT}")).filter(|_| is_of_thread(record));
        let related = header.run.as_ref().and_then(|run| self.related.get(run));
        let (Some(about), Some(related), Some(tick)) = (about, related, header.tick) else { return false };
        let Some(namespace) = about.get("ns").and_then(Value::as_str) else { return false };
        let is_joined = |at: &Value| at.as_array().and_then(|at| at.get(2)?.as_u64()) != Some(0);
        let channels =
            about.get("channels").and_then(Value::as_object).into_iter().flat_map(|all| all.iter());
        let mut laid = channels.filter(|(_, laid)| {
            laid.get("add").and_then(Value::as_array).is_some_and(|added| added.iter().any(is_joined))
        });
        laid.any(|(channel, _)| {
            let place = place_of(namespace, tag::user_name(channel));
            related.at(tick).iter().any(|held| held.overlaps(&place))
        })
    }

    /// Returns the place of a record in its run, and counts it if it is a refusal.
    fn count(&mut self, record: &Record) -> Option<RecordAt> {
        let header = record.header();
        if let (Kind::Refusal, Some(run)) = (header.kind, &header.run) {
            let number = self.refusals.entry(run.clone()).or_default();
            *number += 1;
            return Some(RecordAt::Refusal(*number));
        }
        header.tick.map(RecordAt::Tick)
    }

    /// Returns a field of the record that is walked.
    fn found_at(&self, record: &Record, position: u64, verdict: Verdict) -> ErasePlace {
        ErasePlace {
            run: record.header().run.clone(),
            at: self.at,
            record: record.id(),
            position,
            place: verdict.place,
            reason: verdict.reason,
        }
    }

    /// Enters a record of a related run, or a fork of one, into the books.
    fn relate(&mut self, record: &Record, is_target: bool) {
        let header = record.header();
        let Some(run) = &header.run else { return };
        if is_target && self.is_refusal {
            // Nothing follows from a refusal.
        } else if is_target {
            self.related.entry(run.clone()).or_default();
        } else if header.kind == Kind::Run && header.tick.is_none() {
            let parent = header.prev.and_then(|prev| self.chain.get(&prev));
            if let Some((parent, tick)) = parent {
                let held =
                    self.related.get(parent).map(|parent| parent.at(*tick).to_vec()).unwrap_or_default();
                let tick = *tick;
                self.related.insert(run.clone(), Related { held: BTreeMap::from([(tick, held)]) });
                self.chain.insert(record.id(), (run.clone(), tick));
            }
        }
        if let (Some(tick), true) = (header.tick, self.related.contains_key(run)) {
            self.chain.insert(record.id(), (run.clone(), tick));
        }
    }

    /// Lists the fields that contain the value or may follow from it.
    fn doubtful(&self, record: &Record, is_derived: bool) -> Vec<Verdict> {
        let mut doubtful = Vec::new();
        for (field, text) in texts(record) {
            let follows = || is_derived && may_follow(record, field, text) && !self.was_there(field, text);
            let reason = match (self.digests.find(text), self.needles.find(text)) {
                (Some(_), _) => EraseReason::Digest,
                (None, Some(Found::Whole)) => EraseReason::Copy,
                (None, Some(Found::Part)) => EraseReason::Part,
                (None, None) if follows() => EraseReason::MayFollow,
                (None, None) => continue,
            };
            doubtful.push(Verdict { place: field.clone(), reason });
        }
        doubtful
    }

    /// Whether a record links to one of which something is erased, or is one that was proposed again.
    fn is_made_from_touched(&self, record: &Record) -> bool {
        if self.touched.is_empty() {
            return false;
        }
        let origin = record.body().value("/origin").and_then(|origin| origin.as_str()?.parse().ok());
        let linked = record.header().links.iter().map(|link| link.hash);
        linked.chain(origin).any(|id| self.touched.contains(&id))
    }

    /// Whether a field had the same text in a record before the value.
    fn was_there(&self, field: &Pointer, text: &str) -> bool {
        self.earlier.contains(&self.hasher.hash_one((field.as_str(), text)))
    }

    fn decide(&mut self, record: &Record, verdict: &Verdict, is_derived: bool) -> Decision {
        let run = record.header().run.as_ref();
        let is_casebook = run.is_some_and(|run| run.as_str() == casebook_name::NAME);
        let is_known = match verdict.reason {
            EraseReason::Asked | EraseReason::Digest => true,
            // Without one delta the state of the casebook is not known, and with it no label and no note.
            EraseReason::Copy => {
                (is_payload(&verdict.place) || REFUSED.contains(&verdict.place.as_str()))
                    && (is_derived || self.everywhere)
                    && !(is_casebook && verdict.place.as_str() == "/delta")
            }
            EraseReason::Part | EraseReason::MayFollow => false,
        };
        if is_known {
            return Decision::Erase;
        }
        let names = |named: &&Named| {
            named.names(
                run.map(RunName::as_str),
                self.at,
                &verdict.place,
                is_derived || run == Some(&self.owner),
            )
        };
        // A place that is named to stay is the narrower statement where both lists have it.
        let stays = self.although.iter().find(names).map(|named| (named.text.clone(), Decision::Keep));
        let goes = || self.also.iter().find(names).map(|named| (named.text.clone(), Decision::Erase));
        match stays.or_else(goes) {
            Some((text, decision)) => {
                self.used.insert(text);
                decision
            }
            None => Decision::Ask,
        }
    }

    /// Adds the fields of a record that are digests over what is erased there, or over a state that holds the value.
    fn add_digests(&mut self, record: &Record, is_target: bool, is_related: bool, erased: &mut Vec<Verdict>) {
        let add = |erased: &mut Vec<Verdict>, name: &str, reason: EraseReason| {
            let place = Pointer::of([name]);
            if !erased.iter().any(|known| known.place == place) {
                erased.push(Verdict { place, reason });
            }
        };
        let places =
            |erased: &[Verdict]| erased.iter().map(|verdict| verdict.place.clone()).collect::<Vec<_>>();
        let gone = places(erased);
        if touches(&gone, "delta") {
            // The delta as it was proposed, before the kernel rounded it, and what was rounded.
            add(erased, "proposed", EraseReason::Copy);
            add(erased, ROUNDED, EraseReason::Copy);
        }
        if gone.iter().any(holds_messages) {
            // The messages that a thread is given: its channel or a write has them.
            add(erased, MESSAGES, EraseReason::Copy);
        }
        if touches(&gone, "action") {
            // Both are digests over the action.
            add(erased, "context", EraseReason::Digest);
            add(erased, "edge", EraseReason::Digest);
        }
        if touches(&gone, "result") {
            add(erased, "edge", EraseReason::Digest);
        }
        if touches(&gone, "pack") || touches(&gone, "pack_text") || touches(&gone, "state") {
            add(erased, "state_root", EraseReason::Digest);
            add(erased, "inputs", EraseReason::Digest);
        }
        // A fork's marker has digests over the answers that stand in place of recorded ones.
        let is_before = !is_target && !is_related && record.header().run.as_ref() == Some(&self.owner);
        if is_before && touches(&self.asked, "result") {
            add(erased, "replaced", EraseReason::Digest);
        }
        if is_related || is_target {
            let before = self.hold(record, touches(&gone, "delta"), &gone);
            if let Some((before, after)) = before {
                if before {
                    add(erased, "context", EraseReason::Digest);
                }
                if after {
                    add(erased, "state_root", EraseReason::Digest);
                }
            }
        }
    }

    /// Follows the places of the state that hold the value through one record. Returns whether there were any before it, and
    /// whether there are any after it; `None` for a record that has no state.
    fn hold(&mut self, record: &Record, is_erased: bool, gone: &[Pointer]) -> Option<(bool, bool)> {
        let header = record.header();
        let run = header.run.as_ref()?;
        let tick = match (header.kind, header.tick) {
            (Kind::Transition, Some(tick)) => tick,
            (Kind::Run, tick) => tick.or_else(|| self.chain.get(&record.id()).map(|(_, tick)| *tick))?,
            _ => return None,
        };
        let related = self.related.get_mut(run)?;
        let before = match header.kind {
            Kind::Run => related.at(tick).to_vec(),
            _ => related.at(tick.checked_sub(1)?).to_vec(),
        };
        let mut after = before.clone();
        if header.kind == Kind::Run {
            after.extend(gone.iter().filter_map(|place| {
                place.as_str().strip_prefix("/state").and_then(|rest| rest.parse().ok())
            }));
        }
        let delta = record.delta();
        for op in delta.into_iter().flat_map(|delta| delta.0) {
            let place = up_to_a_list(&op.path);
            match (op.action, is_erased) {
                (_, true) => after.push(place),
                // An item that is removed or replaced says nothing of the others.
                (Action::Set | Action::Remove, false) if place == op.path => {
                    after.retain(|held| !place.contains(held));
                }
                _ => {}
            }
        }
        let after = Pointer::outermost(after);
        let holds = (!before.is_empty(), !after.is_empty());
        related.held.insert(tick, after);
        Some(holds)
    }
}

/// What happens to a field that may contain the value.
#[derive(Debug, Clone, Copy)]
enum Decision {
    Erase,
    Keep,
    Ask,
}

/// Whether a field has what the messages of the same record say: the change of a channel, or the writes of a task.
fn holds_messages(field: &Pointer) -> bool {
    [Pointer::of(["delta"]), Pointer::of(["intent", "values"])].iter().any(|holds| field.overlaps(holds))
}

/// Whether a field of a put or a write shows what its exact bytes have.
fn is_of_exact(field: &Pointer) -> bool {
    ["delta", "intent", MESSAGES].iter().any(|member| Pointer::of([*member]).contains(field))
}

/// Returns the fields of a record with texts of any length, and no number or word of the kernel.
pub(crate) fn said_in(record: &Record) -> impl Iterator<Item = &Pointer> {
    payload(record).filter(|(_, text)| is_said(text)).map(|(field, _)| field)
}

fn is_said(text: &str) -> bool {
    text.len() > 2 && text.starts_with(['"', '{', '['])
}

/// Whether one of some fields is a member of the content, or below it.
fn touches(fields: &[Pointer], member: &str) -> bool {
    let member = Pointer::of([member]);
    fields.iter().any(|field| member.contains(field))
}

fn is_open(record: &Record, place: &Pointer) -> bool {
    let body = record.body();
    body.fields().iter().any(|field| field.pointer == *place && body.text(field).is_some())
}

/// Returns the fields of a record that can be read, with their texts.
fn texts(record: &Record) -> impl Iterator<Item = (&Pointer, &str)> {
    let body = record.body();
    body.fields()
        .iter()
        .filter_map(|field| Some((&field.pointer, std::str::from_utf8(body.text(field)?).ok()?)))
}

fn payload(record: &Record) -> impl Iterator<Item = (&Pointer, &str)> {
    texts(record).filter(|(field, _)| is_payload(field))
}

/// Whether an author writes what they like in a field.
fn is_payload(field: &Pointer) -> bool {
    let member = field.tokens().next();
    member.is_some_and(|member| PAYLOAD.contains(&&*member)) && !WORDS.contains(&field.as_str())
}

/// Whether a field of a record that follows the value may be made from it. A number or a word of the kernel is not asked for: it
/// would be every record.
fn may_follow(record: &Record, field: &Pointer, text: &str) -> bool {
    let has_value = field.as_str() != "/delta" || text.contains("\"value\":");
    // The saver's own member names the exact bytes: they go, or have nothing of the value.
    let is_place =
        || PLACES.iter().any(|name| Pointer::of(["intent", *name]).contains(field)) && is_of_thread(record);
    record.header().author != Author::Kernel && is_payload(field) && is_said(text) && has_value && !is_place()
}

/// Cuts a place of the state at the first index of a list: items of a list move.
fn up_to_a_list(place: &Pointer) -> Pointer {
    let tokens: Vec<_> = place.tokens().collect();
    let is_index = |token: &&std::borrow::Cow<'_, str>| dendrer_object::pointer::array_index(token).is_none();
    let names: Vec<&str> = tokens.iter().take_while(is_index).map(|token| &**token).collect();
    Pointer::of(names)
}
