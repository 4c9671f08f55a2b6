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

use dendrer_kernel::ontology::RESULT;
use dendrer_kernel::pack::Pack;
use dendrer_object::delta::Action;
use dendrer_object::record::{Author, Kind, Record, Rel};
use dendrer_object::{Digest, MESSAGES, Pointer, RunName, Value, tag};
use dendrer_store::Store;

use super::holds::{
    Filled, Reducer, Seen, Source, digests_in, filled, held_by, holds_messages, is_of_person, names_places,
    sources_of, spellings, touches,
};
use super::needles::{Found, Needles};
use super::place::Named;
use super::{Assumed, EraseError, ErasePlace, EraseReason, Fields, Goal, Search};
use crate::address::RecordAt;
use crate::error::Error;
use crate::run::casebook_name;
use crate::run::thread::{CHECKPOINT, PLACES, exact_places, is_of_thread, place_of};

/// Fields in which a number or a yes may be the value, or follow from it.
const ANSWERS: [&str; 2] = ["/action/params", "/result/output"];

/// Numbers of `metrics` that every step of a model has.
const USAGE: [&str; 3] = ["cost_usd", "latency_ms", "tokens_used"];

/// What a related run knows of the value.
#[derive(Debug, Clone, Default)]
struct Related {
    /// The tick from which it has the value in its history.
    since: u64,
    /// The places of the state that hold the value, after each tick at which they changed.
    held: BTreeMap<u64, Vec<Pointer>>,
    /// Whether evidence or commitments of it are gone.
    has_lists: bool,
    /// Whether its pack is gone.
    is_pack_gone: bool,
}

impl Related {
    fn since(tick: u64) -> Related {
        Related { since: tick, ..Related::default() }
    }

    fn at(&self, tick: u64) -> &[Pointer] {
        self.held.range(..=tick).next_back().map_or(&[], |(_, places)| places)
    }
}

/// How a run began, as far as something that goes later reaches back to it.
#[derive(Debug, Clone, Default)]
struct Begun {
    reducer: Reducer,
    is_graph: bool,
    /// Its record, if that has the digest of the file that it was imported from, and that digest.
    source: Option<(ErasePlace, Arc<str>)>,
    /// The marker of a fork that has digests over answers that stand in place of recorded ones.
    replaced: Option<ErasePlace>,
}

/// The walk.
#[derive(Debug)]
pub(super) struct Lineage<'s> {
    search: &'s Search,
    /// The open fields that are taken to go.
    assumed: Assumed,
    /// The fields that were named, by the position of their record.
    asked: BTreeMap<u64, Vec<Pointer>>,
    /// The runs whose records they are.
    owners: BTreeSet<RunName>,
    /// The refusals of which a member was named as a whole: the value has the names inside.
    wholes: HashSet<Digest>,
    /// The runs that have the value since a refusal of theirs.
    refused: HashSet<RunName>,
    /// The number of refusals of each run that were walked.
    refusals: HashMap<RunName, u64>,
    /// The place of the record that is walked in its run.
    at: Option<RecordAt>,
    needles: Needles,
    /// Digests over wholes that contain the value, wherever they are.
    digests: HashSet<String>,
    related: HashMap<RunName, Related>,
    begun: HashMap<RunName, Begun>,
    /// The places of the state that the rules of each pack look at.
    rules: HashMap<Digest, Reducer>,
    /// The ticks of the chain records of related runs, by id: a fork names one of them as its parent.
    chain: HashMap<Digest, (RunName, u64)>,
    /// The erased fields of each record, with keyed hashes of the texts: what links to one of them was made from it.
    touched: HashMap<Digest, Vec<(Pointer, u64)>>,
    /// Keyed hashes of the calls that a run made before it had the value, and that have no result yet.
    calls: HashMap<RunName, HashSet<u64>>,
    hasher: RandomState,
    found: Fields,
}

/// How a field of one record is treated.
struct Verdict {
    place: Pointer,
    reason: EraseReason,
    /// Whether its author may have made it from the value, however else it was found.
    follows: bool,
}

impl Verdict {
    fn of(place: Pointer, reason: EraseReason) -> Verdict {
        Verdict { place, reason, follows: false }
    }
}

impl<'s> Lineage<'s> {
    /// Begins a walk.
    pub(super) fn new(search: &'s Search, assumed: Assumed) -> Lineage<'s> {
        let Search { goals, begins, .. } = search;
        let mut asked: BTreeMap<u64, Vec<Pointer>> = BTreeMap::new();
        let mut owners = BTreeSet::new();
        let mut digests = HashSet::new();
        let is_whole = |goal: &&Goal| {
            goal.record.header().kind == Kind::Refusal && goal.target.place.tokens().count() == 1
        };
        let wholes = goals.iter().filter(is_whole).map(|goal| goal.record.id()).collect();
        for goal in goals {
            asked.entry(goal.position).or_default().extend(goal.target.fields.iter().cloned());
            owners.extend(goal.record.header().run.clone());
            for field in &goal.target.fields {
                digests.extend(digests_of(&goal.record, field));
            }
        }
        // The file that a run was imported from, whose digest covers every value of the run.
        for begin in
            begins.iter().filter(|begin| begin.header().run.as_ref().is_some_and(|run| owners.contains(run)))
        {
            digests.extend(source_of(begin).iter().map(|sha| sha.to_string()));
        }
        Lineage {
            search,
            assumed,
            asked,
            owners,
            wholes,
            refused: HashSet::new(),
            refusals: HashMap::new(),
            at: None,
            needles: Needles::of(goals.iter().flat_map(|goal| &goal.target.values)),
            digests,
            related: HashMap::new(),
            begun: HashMap::new(),
            rules: HashMap::new(),
            chain: HashMap::new(),
            touched: HashMap::new(),
            calls: HashMap::new(),
            hasher: RandomState::new(),
            found: Fields::default(),
        }
    }

    /// Reads the log up to a size, and returns the fields that were found.
    pub(super) fn read(mut self, store: &dyn Store, size: u64) -> Result<Fields, EraseError> {
        store
            .scan(0..size, &mut |position, record| {
                self.take(position, &record);
                ControlFlow::Continue(())
            })
            .map_err(|error| EraseError::Failed(Error::from(error)))?;
        Ok(self.found.in_order())
    }

    fn take(&mut self, position: u64, record: &Record) {
        let header = record.header();
        // They hold no value of a run.
        if matches!(header.kind, Kind::Key | Kind::Map) {
            return;
        }
        self.at = self.count(record);
        let asked = self.asked.get(&position).cloned().unwrap_or_default();
        self.begin(record, position);
        self.relate(record, !asked.is_empty());
        let is_related = header.run.as_ref().is_some_and(|run| self.related.contains_key(run));
        let is_derived = is_related || self.origins(record).next().is_some();
        // The run has the value from its refusal on, though nothing follows from it.
        let is_after = header.run.as_ref().is_some_and(|run| self.refused.contains(run));
        let asked = asked.into_iter().map(|place| Verdict::of(place, EraseReason::Asked));
        let mut erased: Vec<Verdict> = asked.collect();
        let repeated = self.repeated(record, is_related);
        for verdict in self.doubtful(record, is_derived, &repeated) {
            if erased.iter().any(|known| known.place == verdict.place) {
                continue;
            }
            let gone = erased.iter().filter(|known| !known.follows).map(|verdict| &verdict.place);
            if verdict.place == Pointer::of([MESSAGES]) && gone.clone().any(holds_messages) {
                erased.push(Verdict::of(verdict.place, EraseReason::Copy));
                continue;
            }
            self.take_doubtful(record, position, verdict, is_derived || is_after, &mut erased);
        }
        let is_on_chain = header.kind != Kind::Refusal;
        let is_here = |one: &Verdict| is_open(record, &one.place) && !FINDINGS.contains(&one.place.as_str());
        // The kernel's note on a refusal may have a place that goes: then the state has that, too.
        if !is_related && is_on_chain && (erased.iter().any(is_here) || self.is_of_refusal(record)) {
            self.relate_from(record);
        }
        self.add_held(record, &mut erased);
        erased.retain(|verdict| is_open(record, &verdict.place));
        // A parent has the value with what it accepted of a child.
        if is_on_chain && erased.iter().any(|verdict| verdict.place.as_str() == "/accepted") {
            self.relate_from(record);
        }
        for verdict in &erased {
            self.note_names(record, &verdict.place, true, true);
        }
        self.note_gone(record, &erased);
        erased.sort_by(|a, b| a.place.cmp(&b.place));
        self.take_exact(position, record, &erased);
        if self.is_in_scope(position) {
            let places: Vec<_> =
                erased.iter().map(|verdict| self.found_at(record, position, verdict)).collect();
            self.found.erased.extend(places);
        }
    }

    /// Takes a field that may contain the value, as the caller decided on it.
    fn take_doubtful(
        &mut self,
        record: &Record,
        position: u64,
        verdict: Verdict,
        is_related: bool,
        erased: &mut Vec<Verdict>,
    ) {
        let decision = self.decide(record, &verdict, is_related);
        let is_named = self.note_names(record, &verdict.place, is_related, false);
        let is_here = self.is_in_scope(position);
        let found = self.found_at(record, position, &verdict);
        match &decision {
            Decision::Keep(names) if is_here => self.found.although.push((found, names.clone())),
            Decision::Keep(names) => self.found.apart.extend(names.iter().cloned()),
            // Without what is assumed to go it may be a question.
            Decision::Erase if is_named || !verdict.follows => {}
            Decision::Ask | Decision::Erase => self.found.open.extend(is_here.then_some(found)),
        }
        // A change that may follow in a run that is not in the bundle is taken to have the value: it may come from there.
        let is_carried = || !is_here && CARRIED.contains(&verdict.place.as_str());
        let goes = match (decision, self.assumed) {
            (Decision::Erase, _) => true,
            (Decision::Ask, Assumed::Nothing) => is_carried(),
            (Decision::Ask, _) | (Decision::Keep(_), Assumed::All) => is_here || is_carried(),
            (Decision::Keep(_), _) => false,
        };
        erased.extend(goes.then_some(verdict));
    }

    /// Notes which of the names that the caller gave name a field; `goes`: one that is erased.
    fn note_names(&mut self, record: &Record, place: &Pointer, is_related: bool, goes: bool) -> bool {
        let all = self.search.also.iter().chain(&self.search.although);
        let named: Vec<&Named> =
            all.filter(|named| self.is_named(named, record, place, is_related)).collect();
        let texts = || named.iter().map(|named| named.text.clone());
        self.found.used.extend(texts());
        self.found.gone.extend(texts().filter(|_| goes));
        !named.is_empty()
    }

    fn is_named(&self, named: &Named, record: &Record, place: &Pointer, is_related: bool) -> bool {
        let run = record.header().run.as_ref();
        // A record of no run is named by its field alone.
        let is_related = is_related || run.is_none_or(|run| self.owners.contains(run));
        named.names(run.map(RunName::as_str), self.at, place, is_related)
    }

    /// Enters a run that has the value from a record on: a copy is here.
    fn relate_from(&mut self, record: &Record) {
        let Some(run) = record.header().run.clone() else { return };
        let tick = tick_of(record).unwrap_or_default();
        self.related.entry(run.clone()).or_insert_with(|| Related::since(tick));
        self.chain.insert(record.id(), (run, tick));
    }

    /// Notes a call that was made before the value, and returns the fields in which a result repeats one: they are older than the
    /// value. An equal text of any other record may be there because of it.
    fn repeated(&mut self, record: &Record, is_related: bool) -> HashSet<Pointer> {
        let header = record.header();
        let is_result = header.type_name.as_ref().is_some_and(|name| name.as_str() == RESULT);
        let (Some(run), Kind::Transition) = (&header.run, header.kind) else { return HashSet::new() };
        if is_related && !is_result {
            return HashSet::new();
        }
        let action = Pointer::of(["action"]);
        let made = self.calls.entry(run.clone()).or_default();
        let mut repeated = HashSet::new();
        for (field, text) in payload(record).filter(|(field, _)| action.contains(field)) {
            let call = self.hasher.hash_one((field.as_str(), text));
            if !is_result {
                made.insert(call);
            } else if made.remove(&call) {
                repeated.insert(field.clone());
            }
        }
        repeated
    }

    fn is_in_scope(&self, position: u64) -> bool {
        self.search.scope.as_ref().is_none_or(|scope| scope.contains(&position))
    }

    /// Takes the exact bytes of a put that has the value.
    fn take_exact(&mut self, position: u64, record: &Record, erased: &[Verdict]) {
        for (name, at) in exact_places(record) {
            if erased.iter().any(|verdict| is_of_exact(&verdict.place)) || self.is_laid_again(record) {
                let verdict = Verdict::of(Pointer::of(["intent", name]), EraseReason::Copy);
                self.found.exact.push((self.found_at(record, position, &verdict), at));
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
    fn found_at(&self, record: &Record, position: u64, verdict: &Verdict) -> ErasePlace {
        ErasePlace {
            run: record.header().run.clone(),
            at: self.at,
            record: record.id(),
            position,
            place: verdict.place.clone(),
            reason: verdict.reason,
        }
    }

    /// Notes how a run begins.
    fn begin(&mut self, record: &Record, position: u64) {
        let header = record.header();
        let Some(run) = &header.run else { return };
        let at = |walk: &Lineage<'_>, place: &str| {
            walk.found_at(record, position, &Verdict::of(Pointer::of([place]), EraseReason::Digest))
        };
        if header.type_name.as_ref().is_some_and(|name| name.as_str() == "run.fork") {
            let about = record.body().value("/fork");
            let replaced = about.filter(|about| about.get("replaced").is_some()).map(|_| at(self, "fork"));
            self.begun.entry(run.clone()).or_default().replaced = replaced;
        }
        if header.kind != Kind::Run {
            return;
        }
        let source = source_of(record).map(|sha| (at(self, "inputs"), sha));
        let parent = record.body().value("/parent");
        let parent = parent.as_ref().and_then(|parent| parent.get("run")?.as_str()?.parse::<RunName>().ok());
        if let Some(made) = parent.as_ref().and_then(|parent| self.calls.get(parent)).cloned() {
            self.calls.insert(run.clone(), made);
        }
        let known = parent.and_then(|parent| self.begun.get(&parent)).cloned().unwrap_or_default();
        let reducer = match header.tick {
            Some(_) => self.reducer_of(record),
            None if record.body().value("/pack").is_none() => known.reducer,
            None => match known.reducer {
                Reducer::Rules(_) => self.rules_of(record),
                other => other,
            },
        };
        let is_graph = known.is_graph || record.body().value("/graph").is_some();
        self.begun.insert(run.clone(), Begun { reducer, is_graph, source, replaced: None });
    }

    fn reducer_of(&mut self, record: &Record) -> Reducer {
        let name = record.body().value("/reducer");
        match name.as_ref().and_then(Value::as_str).and_then(|name| name.split('/').next()) {
            Some("fold") => self.rules_of(record),
            Some("wasm") => Reducer::Module,
            _ => Reducer::Author,
        }
    }

    /// The places that the rules of a pack look at. Rules that cannot be read may look at any.
    fn rules_of(&mut self, record: &Record) -> Reducer {
        let read = || {
            let pack = record.body().value("/pack").and_then(|pack| Pack::read(&pack).ok());
            Reducer::Rules(pack.map_or_else(|| [Pointer::root()].into(), |pack| pack.rules_read().into()))
        };
        match record.header().pack {
            Some(pack) => self.rules.entry(pack).or_insert_with(read).clone(),
            None => read(),
        }
    }

    /// Enters a record of a related run, or the beginning of one that follows it, into the books.
    fn relate(&mut self, record: &Record, is_asked: bool) {
        let header = record.header();
        let Some(run) = &header.run else { return };
        match (is_asked, header.kind) {
            // Nothing follows from a refusal.
            (true, Kind::Refusal) => {
                self.refused.insert(run.clone());
            }
            (_, Kind::Run) => {
                let parent = header.prev.and_then(|prev| self.chain.get(&prev)).cloned();
                let sources: Vec<(RunName, u64)> = sources_of(record).into_iter().chain(parent).collect();
                let related: Vec<(&Related, u64)> =
                    sources.iter().filter_map(|(run, tick)| self.related_at(run, *tick)).collect();
                let since = tick_of(record).unwrap_or_default();
                if is_asked || !related.is_empty() {
                    let held = related.iter().flat_map(|(source, tick)| source.at(*tick).to_vec()).collect();
                    let has_lists = related.iter().any(|(source, _)| source.has_lists);
                    let is_pack_gone = related.iter().any(|(source, _)| source.is_pack_gone);
                    let held = BTreeMap::from([(since, Pointer::outermost(held))]);
                    self.related.insert(run.clone(), Related { since, held, has_lists, is_pack_gone });
                    self.chain.insert(record.id(), (run.clone(), since));
                }
            }
            (true, _) => {
                let since = header.tick.unwrap_or_default();
                self.related.entry(run.clone()).or_insert_with(|| Related::since(since));
            }
            (false, _) => {}
        }
        if let (Some(tick), true) = (header.tick, self.related.contains_key(run)) {
            self.chain.insert(record.id(), (run.clone(), tick));
        }
    }

    /// A run that has the value in its history at a tick.
    fn related_at(&self, run: &RunName, tick: u64) -> Option<(&Related, u64)> {
        self.related.get(run).filter(|related| related.since <= tick).map(|related| (related, tick))
    }

    /// Lists the fields that contain the value or may follow from it.
    fn doubtful(&self, record: &Record, is_derived: bool, repeated: &HashSet<Pointer>) -> Vec<Verdict> {
        let copied: HashSet<(&Pointer, u64)> =
            self.copied(record).flatten().map(|(field, hash)| (field, *hash)).collect();
        let mut doubtful = Vec::new();
        for (field, text) in texts(record) {
            let follows = || is_derived && may_follow(record, field, text) && !repeated.contains(field);
            let is_filled = filled(field).is_some();
            let is_same = !copied.is_empty() && copied.contains(&(field, self.hasher.hash_one(text)));
            let short = || match is_derived && is_filled {
                true => self.needles.find_short(text),
                false => None,
            };
            let found = match self.needles.find(text) {
                _ if is_same && is_filled => Some(Found::Whole),
                Some(Found::Whole) => Some(Found::Whole),
                found => short().filter(|short| *short == Found::Whole || found.is_none()).or(found),
            };
            let is_digest =
                !self.digests.is_empty() && digests_in(text).any(|one| self.digests.contains(one));
            let reason = match (is_digest, found) {
                (true, _) => EraseReason::Digest,
                (false, Some(Found::Whole)) => EraseReason::Copy,
                (false, Some(Found::Part)) => EraseReason::Part,
                (false, None) if follows() => EraseReason::MayFollow,
                (false, None) => continue,
            };
            let follows = self.assumed != Assumed::Nothing && follows();
            doubtful.push(Verdict { place: field.clone(), reason, follows });
        }
        doubtful
    }

    /// The fields that are erased of the records that a record links to, or of the one that it proposes again.
    fn origins(&self, record: &Record) -> impl Iterator<Item = &Vec<(Pointer, u64)>> {
        let linked: Vec<Digest> = record.header().links.iter().map(|link| link.hash).collect();
        linked.into_iter().chain(self.origin_of(record)).filter_map(|id| self.touched.get(&id))
    }

    /// The same of the record that it is: of one that was picked, or that is proposed again.
    fn copied(&self, record: &Record) -> impl Iterator<Item = &Vec<(Pointer, u64)>> {
        let links = record.header().links.iter().filter(|link| link.rel == Rel::PickedFrom);
        let linked: Vec<Digest> = links.map(|link| link.hash).collect();
        linked.into_iter().chain(self.origin_of(record)).filter_map(|id| self.touched.get(&id))
    }

    fn origin_of(&self, record: &Record) -> Option<Digest> {
        let origin = record.body().value("/origin").filter(|_| !self.touched.is_empty())?;
        origin.as_str()?.parse().ok()
    }

    fn decide(&self, record: &Record, verdict: &Verdict, is_related: bool) -> Decision {
        let run = record.header().run.as_ref();
        let is_casebook = run.is_some_and(|run| run.as_str() == casebook_name::NAME);
        let is_known = match verdict.reason {
            EraseReason::Asked | EraseReason::Digest => true,
            // Without one delta the state of the casebook is not known, and with it no label and no note.
            EraseReason::Copy => {
                filled(&verdict.place).is_some()
                    && (is_related || self.search.everywhere)
                    && !(is_casebook && verdict.place.as_str() == "/delta")
            }
            EraseReason::Part | EraseReason::MayFollow => false,
        };
        if is_known {
            return Decision::Erase;
        }
        let names = |named: &&Named| self.is_named(named, record, &verdict.place, is_related);
        // A place that is named to stay is the narrower statement where both lists have it.
        let stays = self.search.although.iter().filter(names).map(|named| named.text.clone());
        match stays.collect::<Vec<String>>() {
            stays if !stays.is_empty() => Decision::Keep(stays),
            _ if self.search.also.iter().any(|named| names(&named)) => Decision::Erase,
            _ => Decision::Ask,
        }
    }

    /// Adds the fields of a record that hold the value without its text, or are digests over it.
    fn add_held(&mut self, record: &Record, erased: &mut Vec<Verdict>) {
        let header = record.header();
        let run = header.run.as_ref();
        let related = run.and_then(|run| self.related.get(run));
        // A record off the chain was made against the one that it names.
        let before = match (header.kind, tick_of(record)) {
            (Kind::Transition, Some(tick)) => tick.checked_sub(1),
            (_, Some(tick)) => Some(tick),
            (_, None) => header.head.and_then(|head| self.chain.get(&head)).map(|(_, tick)| *tick),
        };
        let before = related.zip(before).map(|(related, tick)| related.at(tick).to_vec());
        let sources = sources_of(record);
        let sources = sources.iter().filter_map(|(run, tick)| self.related_at(run, *tick));
        let sources: Vec<Source> = sources
            .map(|(source, tick)| {
                let held = [source.at(tick), source.at(tick.saturating_sub(1))].concat();
                Source { held, has_lists: source.has_lists }
            })
            .collect();
        let begun = run.and_then(|run| self.begun.get(run)).cloned().unwrap_or_default();
        let is_casebook = run.is_some_and(|run| run.as_str() == casebook_name::NAME);
        let is_about = || {
            let mut links = record.header().links.iter().map(|link| &link.hash);
            links.any(|id| self.chain.contains_key(id) || self.touched.contains_key(id))
        };
        let is_asked = erased.iter().any(|verdict| verdict.reason == EraseReason::Asked);
        let seen = Seen {
            record,
            gone: erased.iter().map(|verdict| verdict.place.clone()).collect(),
            before: before.unwrap_or_default(),
            is_related: related.is_some() || is_asked,
            is_behind: related.is_some(),
            is_whole: self.wholes.contains(&record.id()),
            of_refusal: self.is_of_refusal(record),
            is_after: run.is_some_and(|run| self.refused.contains(run)),
            of_origin: self.copied(record).flatten().map(|(field, _)| field.clone()).collect(),
            sources,
            reducer: begun.reducer,
            is_pack_gone: related.is_some_and(|related| related.is_pack_gone),
            is_graph: begun.is_graph,
            is_finding: is_casebook && is_about(),
        };
        let held = held_by(seen);
        erased.extend(held.into_iter().map(|(place, reason)| Verdict::of(place, reason)));
        let gone: Vec<Pointer> = erased.iter().map(|verdict| verdict.place.clone()).collect();
        let root = Pointer::of(["state_root"]);
        if self.hold(record, touches(&gone, "delta"), &gone) && !gone.contains(&root) {
            erased.push(Verdict::of(root, EraseReason::Digest));
        }
    }

    /// Whether a record of the kernel is about a refusal of which something is gone, and may have it in a place.
    fn is_of_refusal(&self, record: &Record) -> bool {
        let run = record.header().run.as_ref();
        let is_related = run.is_some_and(|run| self.related.contains_key(run));
        let anomalies = record.body().value("/anomalies");
        let all = anomalies.as_ref().and_then(Value::as_array).into_iter().flat_map(|all| all.iter());
        let mut refusals = all.filter_map(|one| one.get("refusal")?.as_str()?.parse::<Digest>().ok());
        refusals.any(|refusal| {
            self.touched.contains_key(&refusal)
                && (is_related || self.wholes.contains(&refusal) && names_places(record, "anomalies"))
        })
    }

    /// Notes what is gone of a record: what was made from it, the digests over it, and what reaches back to the beginning of its run.
    fn note_gone(&mut self, record: &Record, erased: &[Verdict]) {
        if erased.is_empty() {
            return;
        }
        let mut gone = Vec::new();
        for (field, text) in texts(record) {
            let Some(verdict) = erased.iter().find(|verdict| verdict.place == *field) else { continue };
            gone.push((field.clone(), self.hasher.hash_one(text)));
            self.digests.extend(digests_of(record, field));
            if verdict.reason == EraseReason::Digest && DIGESTS.contains(&field.as_str()) {
                self.digests.extend(digests_in(text).map(str::to_owned));
            }
        }
        let places: Vec<Pointer> = gone.iter().map(|(field, _)| field.clone()).collect();
        self.touched.insert(record.id(), gone);
        let Some(run) = record.header().run.clone() else { return };
        if let Some(related) = self.related.get_mut(&run) {
            related.has_lists |= LISTS.iter().any(|member| touches(&places, member));
            related.is_pack_gone |= touches(&places, "pack");
        }
        let Some(begun) = self.begun.get(&run).cloned() else { return };
        let is_finding_alone = run.as_str() == casebook_name::NAME;
        let holds_value = erased.iter().any(|verdict| verdict.reason != EraseReason::Digest);
        if let Some((place, sha)) = begun.source.filter(|_| holds_value && !is_finding_alone) {
            self.digests.insert(sha.to_string());
            self.add_behind(place);
        }
        if let Some(place) = begun.replaced.filter(|_| touches(&places, "result")) {
            self.add_behind(place);
        }
    }

    /// Adds a field of a record that was walked before.
    fn add_behind(&mut self, place: ErasePlace) {
        let is_known = |known: &ErasePlace| (known.position, &known.place) == (place.position, &place.place);
        if self.is_in_scope(place.position) && !self.found.erased.iter().any(is_known) {
            self.found.erased.push(place);
        }
    }

    /// Follows the places of the state that hold the value through one record. Returns whether there are any after it.
    fn hold(&mut self, record: &Record, is_erased: bool, gone: &[Pointer]) -> bool {
        let header = record.header();
        let (Some(run), Some(tick)) = (&header.run, tick_of(record)) else { return false };
        let Some(related) = self.related.get_mut(run) else { return false };
        let mut after = match (header.kind, tick.checked_sub(1)) {
            (Kind::Run, _) => related.at(tick).to_vec(),
            (Kind::Transition, Some(before)) => related.at(before).to_vec(),
            _ => return false,
        };
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
        let holds = !after.is_empty();
        related.held.insert(tick, after);
        holds
    }
}

/// The documents of findings: no other record of the casebook is made of one.
const FINDINGS: [&str; 3] = ["/bisect", "/chain", "/diff"];

/// Fields with digests over wholes: an equal one elsewhere is over the same whole.
const DIGESTS: [&str; 3] = ["/context", "/edge", "/state_root"];

/// Members of a transition with evidence, commitments, and amounts of which they have sums: other runs begin with these.
const LISTS: [&str; 7] = ["accepted", "commitments", "contract", "deleg", "evidence", "metrics", "spent"];

/// Fields by which a value comes into the state, or the commitments, with which another run begins.
const CARRIED: [&str; 5] = ["/action/calls", "/action/params", "/commitments", "/delta", "/evidence"];

/// The tick of a record of the chain; of the record of a fork, that at which it branched off.
fn tick_of(record: &Record) -> Option<u64> {
    let header = record.header();
    match header.kind {
        Kind::Run => header.tick.or_else(|| record.body().value("/parent")?.get("tick")?.as_u64()),
        _ => header.tick,
    }
}

/// The digest of the file that a run was imported from.
fn source_of(begin: &Record) -> Option<Arc<str>> {
    let inputs = begin.body().value("/inputs")?;
    Some(inputs.get("source")?.get("sha256")?.as_str()?.into())
}

/// The digests over a field of a record that other records may have: of the value, and over effect and arguments of a call that an
/// edge of a graph made.
fn digests_of(record: &Record, field: &Pointer) -> Vec<String> {
    let body = record.body();
    let mut digests = Vec::new();
    if let Some(value) = body.value(field.as_str()) {
        digests.extend(spellings(value.digest()));
        digests.extend(spellings(Digest::of(&dendrer_object::json::to_vec(&value))));
    }
    // The state that a pack's `init` was given.
    if field.as_str() == "/inputs" {
        let inputs = body.value("/inputs");
        let given = inputs.as_ref().and_then(|inputs| inputs.get("s0")?.as_str());
        digests.extend(given.into_iter().flat_map(digests_in).map(str::to_owned));
    }
    if touches(std::slice::from_ref(field), "action") {
        let edge = body.value("/edge");
        let asked = edge.as_ref().and_then(|edge| edge.get("asked")?.as_str());
        digests.extend(asked.into_iter().flat_map(digests_in).map(str::to_owned));
    }
    digests
}

/// What happens to a field that may contain the value.
#[derive(Debug)]
enum Decision {
    Erase,
    /// Under the names with which the caller lets it stay.
    Keep(Vec<String>),
    Ask,
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
    texts(record).filter(|(field, _)| filled(field).is_some())
}

/// Whether a field of a record that follows the value may be made from it. A number or a word of the kernel is not asked for: it
/// would be every record.
fn may_follow(record: &Record, field: &Pointer, text: &str) -> bool {
    // The saver's own member names the exact bytes: they go, or have nothing of the value.
    let is_place =
        || PLACES.iter().any(|name| Pointer::of(["intent", *name]).contains(field)) && is_of_thread(record);
    // An answer or an argument that is a number or a yes is as much of it as a text.
    let is_said = is_said(text) || ANSWERS.contains(&field.as_str()) && text != "null";
    let is_authored = match record.header().author {
        Author::Kernel => is_of_person(record, field),
        _ => filled(field) == Some(Filled::ByAuthor),
    };
    // How much a step took is not asked for: it would be every step of a model.
    let is_usage = || {
        let metrics = record.body().value("/metrics").filter(|_| field.as_str() == "/metrics");
        let is_known =
            |(name, value): (&Arc<str>, &Value)| USAGE.contains(&&**name) && value.as_str().is_none();
        metrics.as_ref().and_then(Value::as_object).is_some_and(|all| all.iter().all(is_known))
    };
    is_authored && !is_usage() && is_said && !is_place()
}

/// Cuts a place of the state at the first index of a list: items of a list move.
fn up_to_a_list(place: &Pointer) -> Pointer {
    let tokens: Vec<_> = place.tokens().collect();
    let is_index = |token: &&std::borrow::Cow<'_, str>| dendrer_object::pointer::array_index(token).is_none();
    let names: Vec<&str> = tokens.iter().take_while(is_index).map(|token| &**token).collect();
    Pointer::of(names)
}
