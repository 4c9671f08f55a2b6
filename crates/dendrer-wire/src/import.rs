//! Foreign traces as runs: one item of the source is exactly one transition.
//!
//! [`plan`] reads the whole source and returns the run that would be recorded, without a store; [`record`] records it. Both
//! go through the same steps and the same kernel, so a plan that holds is a recording that holds. The source is
//! read front to back three times and never held: memory keeps the current item, the calls that are open, the run's
//! metadata, and from the first reading to the second the sizes of messages, 4 MB of them at most.
//!
//! Rule: the kernel adds no transition to an imported run. A missing or odd part is noted in the `anomalies` of the
//! transition it concerns, so ticks stay numbers of messages.

pub(crate) mod account;
pub(crate) mod archive;
mod beside;
pub(crate) mod calls;
pub(crate) mod chat;
mod damage;
pub(crate) mod error;
pub(crate) mod found;
pub(crate) mod items;
pub(crate) mod layout;
pub(crate) mod moment;
pub(crate) mod native;
pub(crate) mod note;
pub(crate) mod once;
pub(crate) mod outcome;
pub(crate) mod parts;
mod resume;
pub(crate) mod scan;
mod skim;
pub(crate) mod spans;
pub(crate) mod spoken;
pub mod threads;
pub(crate) mod tokens;
pub(crate) mod transition;
pub(crate) mod usage;

use std::borrow::{Borrow, Cow};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use dendrer::fork::{self, ForkTerms};
use dendrer::kernel::pack::{PackEngine, digest};
use dendrer::kernel::reduce::{DeltaReducer, Reducer};
use dendrer::kernel::step::{self, Inputs, Reason, RunState, Seeds, Stage, Start};
use dendrer::record::redacted;
use dendrer::record::secrets::{PieceCut, RunSecrets, without_pieces};
use dendrer::recorder::{Environment, Recorder};
use dendrer::redact::{RedactionProfile, Redactor};
use dendrer::repo::new_run::new_name;
use dendrer::run::pack::RuleNotes;
use dendrer::run::unfinished;
use dendrer::run::witness::EXACT;
use dendrer::store::{Shared, Store, StoreError};
use dendrer::trace::ReadHandle;
use dendrer::{Repo, Trace};
use dendrer_object::json::VALUE_SIZE_MAX;
use dendrer_object::record::{Link, Record, Rel};
use dendrer_object::{Code, Digest, Intent, OBSERVED_AT, RunName, StoreId, Timestamp, Value};

pub use crate::format::jsonl::Map;
pub use account::KeptPlace;
pub use error::ImportError;
pub use found::Accounted;
pub use layout::{Choice, Layout, List, Top, pointer};
pub use note::{ImportNote, NoteKind};

use crate::foreign::{ChangedRows, Format, Steps};
use calls::Calls;
use damage::Damage;
use items::Item;
use note::At;
use once::{Again, Branch};
use resume::Resumed;
use scan::Sizes;
use transition::{Step, free_name};

/// How many transitions one group takes at most, and how many bytes of source.
const GROUP: (usize, usize) = (100, 8 << 20);

/// How many first transitions a plan shows.
const FIRST: u64 = 5;

/// The longest item that a plan shows, in bytes.
const FIRST_SIZE_MAX: usize = 1 << 20;

/// A text of this many bytes has no more than a value may have in canonical form: `1e20` grows most, to five times
/// its length.
const SAFE_SIZE: usize = VALUE_SIZE_MAX / 8;

/// The longest run id that is made from the name of a source.
const NAME_SIZE_MAX: usize = 100;

/// How many notes a plan shows.
const NOTES: usize = 20;

/// The handling of missing parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnGap {
    /// It is marked in the transition it concerns.
    Mark,
    /// Nothing is imported.
    Stop,
}

/// How a source is to be read.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The format of the source.
    pub format: &'static Format,
    /// The mapping of its lines, for a format that is read by one.
    pub map: Option<Map>,
    /// The path of the items, as far as the user gives it.
    pub choice: Choice,
    /// The handling of gaps.
    pub on_gap: OnGap,
    /// The name of the source, for the run's record.
    pub name: Option<String>,
    /// Places that are in no table and state nothing, by the word of the user.
    pub kept: Vec<KeptPlace>,
}

/// The run that an import would record.
#[derive(Debug)]
pub struct ImportPlan {
    /// How the run begins: the caller's start with the source's metadata and digest.
    pub start: Start,
    /// The path of the items.
    pub layout: Layout,
    /// The counts.
    pub tally: ImportTally,
    /// SHA-256 of the source, as `sha256sum` prints it.
    pub sha256: Digest,
    /// The size of the source.
    pub bytes: u64,
    /// The digest of the source with its damaged lines replaced.
    read_as: Digest,
    known: Known,
    options: ImportOptions,
    /// Takes secrets out of what is recorded: those of the whole source are known to it.
    redactor: Option<Arc<Redactor>>,
    /// The parts of secrets that several items share, by tick.
    pieces: BTreeMap<u64, Vec<PieceCut>>,
    /// Rows that redaction changes, of a format whose bytes an export gives back.
    changed: Option<ChangedRows>,
    /// Branches but for the current one, oldest first: each becomes a fork.
    branches: Vec<Branch>,
}

/// The counts of an import.
#[derive(Debug, Default)]
pub struct ImportTally {
    /// The number of transitions.
    pub ticks: u64,
    /// Transitions by type.
    pub types: BTreeMap<String, u64>,
    /// Transitions by agent.
    pub agents: BTreeMap<Arc<str>, u64>,
    /// Calls that were asked for.
    pub calls: u64,
    /// Results whose call was found.
    pub paired: u64,
    /// Results that say that the call failed.
    pub errors: u64,
    /// Messages in front of all others, which belong to the run.
    pub preamble: u64,
    /// Lines of a chain whose hash is wrong.
    pub bad_hash: Vec<u64>,
    /// The notes, counted by kind.
    pub notes: BTreeMap<NoteKind, u64>,
    /// The first notes, with their ticks; tick 0 is the run itself.
    pub first_notes: Vec<(u64, ImportNote)>,
    /// By place in an item, how often it was read, kept and not read.
    pub places: BTreeMap<String, Accounted>,
    /// The first transitions: tick, and a record that was made and not kept.
    pub first: Vec<(u64, Record)>,
}

impl ImportTally {
    /// How many gaps there are.
    pub fn gaps(&self) -> u64 {
        self.notes.iter().filter(|(kind, _)| kind.is_gap()).map(|(_, count)| count).sum()
    }

    fn note(&mut self, tick: u64, note: &ImportNote) {
        *self.notes.entry(note.kind).or_default() += 1;
        if self.first_notes.len() < NOTES {
            self.first_notes.push((tick, note.clone()));
        }
    }
}

/// Inputs of trial records, which show what the kernel refuses and are thrown away.
fn trial() -> Inputs {
    Inputs { clock: Timestamp::from_ms(0), seeds: Seeds::of_secret([0; 16]) }
}

/// The store of trial records.
const TRIAL: StoreId = StoreId([0; 16]);

/// Proposes an intent on trial, and hands over the record that it would become.
fn propose(
    head: &mut RunState,
    intent: &Intent,
    reducer: &dyn Reducer,
    made: impl FnOnce(Record),
) -> Result<Outcome, ImportError> {
    let outcome = step::step_with(head, intent, trial(), reducer).map_err(dendrer::Error::from)?;
    Ok(match outcome {
        step::Outcome::Refused(refused) => Err(refused.reason),
        step::Outcome::Committed(record) | step::Outcome::Violated { record, .. } => {
            let id = record.id();
            made(record);
            Ok(id)
        }
    })
}

/// Reads a source and returns the run that would be recorded. `start` is how the run is to begin, as far as the caller knows;
/// its stage is always 0, because nothing was enforced when it was recorded.
///
/// A damaged line of a source of lines is an item that is lost, with a gap.
pub fn plan<R: Read + Seek>(
    source: &mut R,
    options: ImportOptions,
    start: Start,
) -> Result<ImportPlan, ImportError> {
    let none = Damage::default();
    let error = match plan_of(&mut none.mend(source), options.clone(), start.clone(), &none) {
        Err(error) if matches!(error.code(), Code::E0201 | Code::E0203 | Code::E0206) => error,
        result => return result,
    };
    // A file whose rows are hashed marks its damage by itself.
    if options.format.check.is_some() {
        return Err(error);
    }
    match Damage::find(source).map_err(ImportError::Io)? {
        Some(damage) => plan_of(&mut damage.mend(source), options, start, &damage),
        None => Err(error),
    }
}

fn plan_of<R: Read + Seek>(
    source: &mut R,
    mut options: ImportOptions,
    start: Start,
    damage: &Damage,
) -> Result<ImportPlan, ImportError> {
    (options.format.accept)(options.map.as_ref(), None)?;
    rewind(source)?;
    if let Some(inner) = (options.format.inner)(options.name.as_deref(), source)? {
        options.format = inner.format;
        options.choice.list.get_or_insert(inner.list);
        rewind(source)?;
    }
    let format = options.format;
    let (mut layout, fingerprint, mut sizes) = (format.survey)(source, &options.choice)?;
    layout.order = options.map.as_ref().and_then(Map::order).cloned();
    layout.damage = damage.clone();
    let mut start = Start { stage: Some(Stage::Observe), ..start };
    rewind(source)?;
    let about = (format.begin)(source, &layout, &mut start)?;
    let read = read_all(source, &options, &mut layout, &mut sizes, &start, about)?;
    let FirstReading { first, mut around, ended, branches } = read;
    let Ended { mut tally, preamble, known } = ended;
    tally.places = std::mem::take(&mut around.gathered.places);
    // The path of the items comes from the first reading of the source; the digest covers this reading.
    if around.fingerprint != fingerprint {
        return Err(ImportError::Changed);
    }
    tally.first = first;
    let (bytes, sha256) = (fingerprint.size, damage.sha256.unwrap_or(around.sha256));
    start.meta = meta(around.meta, preamble);
    let about = inputs_of(&options, &layout, (sha256, bytes), (tally.ticks, branches.len() as u64));
    start.inputs = Some(Value::record([("source", about)]));
    // The metadata must fit a record, too.
    step::begin(TRIAL, &start, trial()).map_err(dendrer::Error::from)?;
    Ok(ImportPlan {
        start,
        layout,
        tally,
        sha256,
        read_as: around.sha256,
        bytes,
        known,
        options,
        redactor: None,
        pieces: BTreeMap::new(),
        changed: None,
        branches,
    })
}

/// A reading of all items before anything is recorded.
struct FirstReading {
    first: Vec<(u64, Record)>,
    around: items::Around,
    ended: Ended,
    branches: Vec<Branch>,
}

/// Reads all items as they would be recorded: again, if all of them together show what one reading cannot know.
fn read_all<R: Read + Seek>(
    source: &mut R,
    options: &ImportOptions,
    layout: &mut Layout,
    sizes: &mut Sizes,
    start: &Start,
    about: Option<ImportNote>,
) -> Result<FirstReading, ImportError> {
    let (nothing, mut branches) = (Known::default(), Vec::new());
    loop {
        let (_, mut head) = step::begin(TRIAL, start, trial()).map_err(dendrer::Error::from)?;
        let mut first = Vec::new();
        let mut judge = |tick: u64, intent: &Intent, came: Came<'_>| {
            propose(&mut head, intent, &DeltaReducer, |record| {
                if tick <= FIRST && came.size <= FIRST_SIZE_MAX {
                    first.push((tick, record));
                }
            })
        };
        let mut walk = Walk { is_plan: true, ..Walk::new(options, &nothing, &mut judge) };
        rewind(source)?;
        let items = options.format.items;
        let mut around = items(source, layout, std::mem::take(sizes), &mut |item| walk.take(item))?;
        if let Some(others) = layout.found.learn(&mut around.gathered) {
            branches.extend(others);
            continue;
        }
        around.notes.extend(about);
        around.gathered.places.append(&mut walk.steps.places());
        let ended = walk.end(layout, &around)?;
        return Ok(FirstReading { first, around, ended, branches });
    }
}

impl ImportPlan {
    /// The format of the source.
    pub fn format(&self) -> &'static Format {
        self.options.format
    }

    /// Takes secrets out of how the run begins, and out of all that is recorded by this plan.
    pub fn redacted<R: Read + Seek>(
        self,
        redactor: Arc<Redactor>,
        source: &mut R,
    ) -> Result<ImportPlan, ImportError> {
        let (redactor, pieces) = self.secrets(redactor, source)?;
        let start = redacted::start(&redactor, &self.start);
        // A plan shows notes and records as well.
        let mut tally = self.tally;
        for (_, note) in &mut tally.first_notes {
            note.message = redactor.text(&note.message).0;
        }
        for (_, record) in &mut tally.first {
            *record = redacted::shown(&redactor, record);
        }
        let changed = match self.options.format.rows {
            None => None,
            Some(rows) => Some(rows(&all_of(source)?, &redactor)),
        };
        Ok(ImportPlan { tally, start, changed, redactor: Some(redactor), pieces, ..self })
    }

    /// Reads all items for the secrets that they have: what one of them shows to be a secret is taken out of those before it,
    /// too. Returns what takes them, and the parts of those that several items share.
    fn secrets<R: Read + Seek>(
        &self,
        redactor: Arc<Redactor>,
        source: &mut R,
    ) -> Result<(Arc<Redactor>, BTreeMap<u64, Vec<PieceCut>>), ImportError> {
        let mut pieces: BTreeMap<u64, Vec<PieceCut>> = BTreeMap::new();
        if &*redactor.rules().name != RedactionProfile::Default.as_str() {
            return Ok((redactor, pieces));
        }
        let source = &mut self.layout.damage.mend(source);
        rewind(source)?;
        let (_, mut head) = step::begin(TRIAL, &self.start, trial()).map_err(dendrer::Error::from)?;
        let mut secrets = RunSecrets::new(redactor, &self.start.state);
        let mut judge = |tick: u64, intent: &Intent, came: Came<'_>| {
            for (line, cut) in secrets.cuts(tick, intent) {
                pieces.entry(line).or_default().push(cut);
            }
            let clean = secrets.redact(intent);
            if came.may_wait {
                return Ok(Ok(NOT_NEEDED));
            }
            propose(&mut head, &clean, &DeltaReducer, |_| {})
        };
        let mut walk =
            Walk { is_of_rules: self.is_of_rules(), ..Walk::new(&self.options, &self.known, &mut judge) };
        (self.options.format.items)(source, &self.layout, Sizes::default(), &mut |item| walk.take(item))?;
        drop(walk);
        Ok((Arc::clone(secrets.redactor()), pieces))
    }

    /// An item without the parts of secrets that it shares with others.
    fn whole<'i>(&self, tick: u64, intent: &'i Intent) -> Cow<'i, Intent> {
        match self.pieces.get(&tick) {
            Some(cuts) => Cow::Owned(without_pieces(intent, cuts)),
            None => Cow::Borrowed(intent),
        }
    }

    /// Whether the rules of a pack make the states of the run, and not what its items state.
    fn is_of_rules(&self) -> bool {
        self.start.pack.as_ref().is_some_and(|pack| {
            let reducer = pack.value.get("reducer");
            let engine = reducer.map(|reducer| reducer.get("engine").unwrap_or(reducer));
            engine.and_then(Value::as_str) != Some(PackEngine::Delta.as_str())
        })
    }

    /// How many branches become forks of the run.
    pub fn branches(&self) -> usize {
        self.branches.len()
    }

    /// Lines of a file whose hash is wrong, and lines that redaction changes; `None` if the format has no such rows.
    pub fn rows(&self) -> Option<(Vec<u64>, Vec<u64>)> {
        self.changed.as_ref().map(|changed| (self.tally.bad_hash.clone(), changed.lines.clone()))
    }

    /// Puts the exact bytes of a file into the vault if an export could not give them back; the record names them.
    pub fn keep_exact<R: Read + Seek>(&mut self, repo: &Repo, source: &mut R) -> Result<(), ImportError> {
        if self.changed.as_ref().is_none_or(|changed| changed.is_exact && changed.lines.is_empty()) {
            return Ok(());
        }
        let there = resume::begun(&*repo.reader()?, &self.start)?;
        let kept = there.and_then(|content| content.get("meta")?.get("exact").cloned());
        let kept = match kept {
            Some(kept) => kept,
            None => repo.vault()?.put(&self.start.run, EXACT, &all_of(source)?)?.to_value(),
        };
        if let Value::Object(members) = self.start.meta.get_or_insert_with(Value::object) {
            members.set("exact", kept);
        }
        Ok(())
    }

    /// Refuses a source that is in the store already: the run, or, unless it is imported `again`, the same trace under
    /// another name. The run of the same import that was stopped is no such source.
    pub fn check_new(&self, store: &impl ReadHandle, again: bool) -> Result<(), ImportError> {
        let fail = |error: StoreError| ImportError::Repository(error.into());
        let store = &store.to_handle();
        if resume::is_stopped(store, &self.start, self.branches.len())? {
            return Ok(());
        }
        if !again && let Some(run) = find_twin(&**store, self).map_err(fail)? {
            let there = store.run(&run).map_err(fail)?.map_or(0, |run| run.transitions);
            return Err(ImportError::Twin { run, there, all: self.tally.ticks, sha256: self.sha256 });
        }
        match store.run(&self.start.run).map_err(fail)? {
            Some(_) => Err(ImportError::Exists(self.start.run.clone())),
            None => Ok(()),
        }
    }

    /// Makes a run id from the name of the source, or from its digest; `None` if no run can have such a name.
    pub fn made_name(&self) -> Option<RunName> {
        let stem = self.options.name.as_deref().map(|name| Path::new(name).file_stem().unwrap_or_default());
        let mut name = clean_name(&stem.unwrap_or_default().to_string_lossy());
        if name.is_empty() {
            name = format!("import-{}", self.sha256.short());
        }
        if let Some(index) = self.options.choice.index {
            name = format!("{name}-{index}");
        }
        name.parse().ok()
    }
}

/// The text as far as a run can be named by it.
pub fn clean_name(text: &str) -> String {
    let clean: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect();
    let mut name = clean.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned();
    name.truncate(NAME_SIZE_MAX);
    name
}

/// Reads a source from its beginning.
fn all_of<R: Read + Seek>(source: &mut R) -> Result<Vec<u8>, ImportError> {
    rewind(source)?;
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes).map_err(ImportError::Io)?;
    Ok(bytes)
}

/// Records what was planned, or what is left of it where the same import was stopped. `settled` hears how many transitions are
/// durable, group by group.
pub fn record<R: Read + Seek>(
    store: &Shared,
    source: &mut R,
    plan: &ImportPlan,
    surroundings: Box<dyn Environment>,
    settled: &mut dyn FnMut(u64),
) -> Result<Digest, ImportError> {
    let source = &mut plan.layout.damage.mend(source);
    rewind(source)?;
    let (recorder, there) = match resume::of_run(store, plan, surroundings)? {
        Resumed::Ended(tip) => return Ok(tip),
        Resumed::From(recorder, there) => (recorder, there),
    };
    let recorder = recorder.redacting(plan.redactor.clone());
    let mut groups = Groups { recorder, waiting: Vec::new(), bytes: 0, settled };
    let redactor = plan.redactor.as_deref();
    let mut judge = |tick: u64, intent: &Intent, came: Came<'_>| {
        let intent = &*plan.whole(tick, intent);
        match &there {
            Some(there) if tick <= there.last => there.recorded(tick, intent, redactor),
            _ => groups.take(intent, came),
        }
    };
    let is_of_rules = plan.is_of_rules();
    let mut walk = Walk { is_of_rules, ..Walk::new(&plan.options, &plan.known, &mut judge) };
    let items = plan.options.format.items;
    let read = items(source, &plan.layout, Sizes::default(), &mut |item| walk.take(item));
    drop(walk);
    let around = match read {
        Ok(around) => around,
        Err(error) => {
            groups.keep();
            return Err(error);
        }
    };
    let is_same = (around.fingerprint.size, around.sha256) == (plan.bytes, plan.read_as);
    let tip = groups.end()?;
    if is_same { Ok(tip) } else { Err(ImportError::Changed) }
}

/// Records each branch but for the current one as a fork of the run, at the last item that both have, and completes those
/// that an import began before it was stopped. Returns their names.
pub fn record_branches<R: Read + Seek>(
    store: &Shared,
    source: &mut R,
    plan: &ImportPlan,
    surroundings: &dyn Fn() -> Box<dyn Environment>,
) -> Result<Vec<RunName>, ImportError> {
    let source = &mut plan.layout.damage.mend(source);
    let known = resume::branches(store, &plan.start.run)?;
    let numbered = (0..).zip(&plan.branches);
    let record = |(number, branch)| {
        let begun = known.get(&number);
        record_branch(store, source, plan, (number, branch, begun), surroundings())
    };
    numbered.map(record).collect()
}

/// Records a branch, or what is left of the fork that an import began. Returns its name.
fn record_branch<R: Read + Seek>(
    store: &Shared,
    source: &mut R,
    plan: &ImportPlan,
    (number, branch, begun): (u64, &Branch, Option<&RunName>),
    surroundings: Box<dyn Environment>,
) -> Result<RunName, ImportError> {
    let trace = Trace::open(store, &plan.start.run)?;
    let mut layout = plan.layout.clone();
    layout.found.branch = Some(branch.clone());
    layout.found.branches_left_out = 0;
    let walk = |source: &mut R, known: &Known, judge: Judge<'_>, ticks: &mut u64| {
        rewind(source)?;
        let mut walk = Walk { is_of_rules: plan.is_of_rules(), ..Walk::new(&plan.options, known, judge) };
        let items = plan.options.format.items;
        let around = items(source, &layout, Sizes::default(), &mut |item| {
            let is_shared = item.at.number.is_some_and(|number| branch.is_shared(number));
            walk.take(item)?;
            if is_shared {
                *ticks = walk.tally.ticks;
            }
            Ok(())
        })?;
        walk.end(&layout, &around)
    };
    // The calls without an answer, and the tick of the last item that both have, are needed before anything is recorded.
    let mut shared = 0;
    let nothing = &mut |_: u64, _: &Intent, _: Came<'_>| Ok(Ok(NOT_NEEDED));
    let ended = walk(source, &Known::default(), nothing, &mut shared)?;
    let (recorder, there) = match begun {
        Some(fork) => match resume::of_branch(store, fork, surroundings)? {
            Resumed::Ended(_) => return Ok(fork.clone()),
            Resumed::From(recorder, there) => (recorder, there),
        },
        None => {
            let name = new_name(None, plan.start.run.as_str(), store)
                .map_err(|problem| ImportError::unfit(&problem.message))?;
            let mut terms = ForkTerms::new(name);
            terms.reason = Some("a branch of the source".into());
            terms.branch = Some(resume::branch(number, ended.tally.ticks));
            terms.redactor = plan.redactor.clone();
            (fork::fork(&trace, store, shared, &terms, surroundings)?.0, None)
        }
    };
    let mut settled = |_| {};
    let recorder = recorder.redacting(plan.redactor.clone());
    let mut groups = Groups { recorder, waiting: Vec::new(), bytes: 0, settled: &mut settled };
    let redactor = plan.redactor.as_deref();
    let mut judge = |tick: u64, intent: &Intent, came: Came<'_>| match &there {
        _ if tick <= shared => Ok(Ok(trace.record(tick)?.id())),
        // The marker of the fork is one tick more.
        Some(there) if tick < there.last => there.recorded(tick + 1, intent, redactor),
        _ => groups.take(intent, came),
    };
    if let Err(error) = walk(source, &ended.known, &mut judge, &mut 0) {
        groups.keep();
        return Err(error);
    }
    let name = groups.recorder.head().run().clone();
    groups.end()?;
    Ok(name)
}

/// Goes through all that [`record`] would do with what was planned under the pack of the run, and writes nothing: a plan alone
/// asks no pack. Returns what the rules of the pack would note.
pub fn rehearse<R: Read + Seek>(
    source: &mut R,
    plan: &ImportPlan,
    reducer: &dyn Reducer,
) -> Result<RuleNotes, ImportError> {
    let source = &mut plan.layout.damage.mend(source);
    rewind(source)?;
    let (_, mut head) = step::begin(TRIAL, &plan.start, trial()).map_err(dendrer::Error::from)?;
    let mut notes = RuleNotes::default();
    let redactor = plan.redactor.as_ref();
    let mut judge = |tick: u64, intent: &Intent, _: Came<'_>| {
        let intent = &*plan.whole(tick, intent);
        let clean = redactor.map(|redactor| redacted::intent(redactor, intent));
        propose(&mut head, clean.as_ref().unwrap_or(intent), reducer, |record| {
            notes.add(tick, &record);
        })
    };
    let is_of_rules = !reducer.takes_delta();
    let mut walk = Walk { is_of_rules, ..Walk::new(&plan.options, &plan.known, &mut judge) };
    (plan.options.format.items)(source, &plan.layout, Sizes::default(), &mut |item| walk.take(item))?;
    drop(walk);
    Ok(notes)
}

/// Finds a run that was imported from the same place of the same bytes, under the same mapping and pack.
pub fn find_twin(store: &dyn Store, plan: &ImportPlan) -> Result<Option<RunName>, StoreError> {
    let wanted = plan.start.inputs.as_ref().and_then(|inputs| inputs.get("source")).map(identity);
    let pack = plan.start.pack.as_ref().map(|bound| digest(&bound.value));
    let mut from = 0;
    loop {
        let batch = store.runs(from, 256)?;
        let Some(last) = batch.last() else { return Ok(None) };
        from = last.begin + 1;
        for run in &batch {
            let Some(record) = store.get(run.begin)? else { continue };
            let inputs = record.body().value("/inputs");
            let source = inputs.as_ref().and_then(|inputs| inputs.get("source")).map(identity);
            if source.is_some() && source == wanted && record.header().pack == pack {
                return Ok(Some(run.name.clone()));
            }
        }
    }
}

/// The identity of a source: its bytes, and the place in them.
fn identity(source: &Value) -> [Option<&Value>; 5] {
    ["sha256", "index", "list", "map", "kept"].map(|name| source.get(name))
}

fn rewind<R: Seek>(source: &mut R) -> Result<(), ImportError> {
    source.seek(SeekFrom::Start(0)).map(|_| ()).map_err(ImportError::Io)
}

fn inputs_of(
    options: &ImportOptions,
    layout: &Layout,
    (sha256, bytes): (Digest, u64),
    (ticks, branches): (u64, u64),
) -> Value {
    let map = options.map.as_ref().map(|map| map.to_value().clone());
    let list = (!layout.path.is_empty()).then(|| Value::from(layout::pointer(&layout.path)));
    let members = [
        (unfinished::BRANCHES, (branches > 0).then(|| Value::from(branches))),
        ("bytes", Some(Value::from(bytes))),
        ("cut", layout.is_cut.then(|| Value::from(true))),
        ("index", layout.index.map(Value::from)),
        (
            "kept",
            (!options.kept.is_empty())
                .then(|| Value::array(options.kept.iter().map(|kept| Value::from(kept.as_str())))),
        ),
        ("kind", Some(Value::from(options.format.recorded_name()))),
        ("list", list),
        ("map", map),
        ("name", options.name.as_deref().map(Value::from)),
        ("sha256", Some(Value::from(sha256))),
        (unfinished::TICKS, Some(Value::from(ticks))),
    ];
    Value::record(members.into_iter().filter_map(|(name, value)| Some((name, value?))))
}

/// Returns the metadata of the run: the members around the list, and the messages before it.
fn meta(around: Option<Value>, preamble: Vec<Value>) -> Option<Value> {
    let mut meta = around.unwrap_or_else(Value::object);
    if let (Value::Object(object), false) = (&mut meta, preamble.is_empty()) {
        object.set(&free_name(object, "system_messages"), Value::array(preamble));
    }
    let is_empty = meta.as_object().is_some_and(|object| object.is_empty());
    (!is_empty).then_some(meta)
}

/// The record that an intent became, or why it was turned down.
type Outcome = Result<Digest, Reason>;

/// In place of an id that nothing asks for.
const NOT_NEEDED: Digest = Digest([0; 32]);

/// The item that an intent comes from.
#[derive(Clone, Copy)]
struct Came<'a> {
    at: At<'a>,
    /// How many bytes of source it has.
    size: usize,
    /// Whether nothing asks for its record, and no rule of the kernel can refuse it, so that it may be judged with those after it.
    may_wait: bool,
}

/// Judges the intent of a tick. Fails with the place of the item.
type Judge<'a> = &'a mut dyn FnMut(u64, &Intent, Came<'_>) -> Result<Outcome, ImportError>;

/// Facts of a source that are known after all of it was read.
#[derive(Debug, Default)]
struct Known {
    /// Calls that stay open: tick of the request and place in it.
    unanswered: BTreeSet<(u64, usize)>,
    /// Calls of which it is not known whether they are answered: tick of the request and place in it.
    contested: BTreeMap<(u64, usize), Arc<str>>,
    /// The last tick, which notes the messages that are left out.
    last: u64,
    left_out: Vec<ImportNote>,
}

/// The results that are known after all items.
struct Ended {
    tally: ImportTally,
    preamble: Vec<Value>,
    known: Known,
}

/// Goes through the items of a run in order.
struct Walk<'a> {
    options: &'a ImportOptions,
    known: &'a Known,
    judge: Judge<'a>,
    /// Whether nothing is recorded, so that only what may be refused needs to be judged.
    is_plan: bool,
    /// Whether the rules of a pack make the states, so that a change that an item states is kept in its words alone.
    is_of_rules: bool,
    calls: Calls,
    steps: Box<dyn Steps + 'a>,
    tally: ImportTally,
    preamble: Vec<Value>,
    preamble_size: usize,
    is_cut_marked: bool,
    contested: BTreeMap<(u64, usize), Arc<str>>,
}

impl<'a> Walk<'a> {
    fn new(options: &'a ImportOptions, known: &'a Known, judge: Judge<'a>) -> Walk<'a> {
        Walk {
            options,
            known,
            judge,
            is_plan: false,
            is_of_rules: false,
            calls: Calls::default(),
            steps: (options.format.steps)(options.map.as_ref()),
            tally: ImportTally::default(),
            preamble: Vec::new(),
            preamble_size: 0,
            is_cut_marked: false,
            contested: BTreeMap::new(),
        }
    }

    /// Takes an item: a transition, or one for each of several mappings that fit.
    fn take(&mut self, item: Item<'_>) -> Result<(), ImportError> {
        let each = if item.is_lost { Vec::new() } else { self.steps.each(&item.value) };
        if each.is_empty() {
            return self.take_one(item);
        }
        let mut notes = Some(item.notes);
        for (part, each) in each.iter().enumerate() {
            let mut one = Item::new(item.value.clone(), item.at, item.size);
            one.notes = notes.take().unwrap_or_default();
            let mut source = vec![("index", Value::from(item.at.number.unwrap_or(0)))];
            source.push(("part", Value::from(part as u64)));
            (one.each, one.source) = (*each, Some(Value::record(source)));
            self.take_one(one)?;
        }
        Ok(())
    }

    fn take_one(&mut self, mut item: Item<'_>) -> Result<(), ImportError> {
        if self.tally.ticks == 0 && item.notes.is_empty() && self.steps.is_preamble(&item.value) {
            return self.keep_preamble(item);
        }
        let (at, size, mut notes) = (item.at, item.size, std::mem::take(&mut item.notes));
        item.delta = item.delta.filter(|_| !self.is_of_rules);
        let mut step = match item.is_lost {
            true => Step::lost(Value::Null),
            false if matches!(item.again, Again::Repeated(_)) => repeated(&item),
            false => self.steps.step(&item, &mut self.calls)?,
        };
        self.is_cut_marked |= notes.iter().any(|note| note.kind == NoteKind::SourceCut);
        let tick = self.tally.ticks + 1;
        notes.append(&mut step.notes);
        let kept = &self.options.kept;
        notes.retain(|note| {
            note.kind != NoteKind::NotRead || !kept.iter().any(|kept| kept.covers(&note.path))
        });
        if notes.iter().any(|note| note.kind == NoteKind::RowHashWrong) {
            self.tally.bad_hash.extend(item.row.as_ref().map(|row| row.line as u64));
        }
        if tick == self.known.last {
            notes.extend(self.known.left_out.iter().cloned());
        }
        let open = step.calls.iter().filter(|call| self.known.unanswered.contains(&(tick, call.index)));
        notes.extend(open.map(|call| without_result(call, &at)));
        let contested =
            step.calls.iter().filter(|call| self.known.contested.contains_key(&(tick, call.index)));
        notes.extend(contested.map(|_| contested_call(&at)));
        self.contested.extend(step.contested.drain(..).map(|one| ((one.tick, one.index), one.at)));
        self.count(&step);
        for note in &notes {
            self.note(tick, note)?;
        }
        let calls = std::mem::take(&mut step.calls);
        let is_safe = self.steps.is_plain() && tick > FIRST && size < SAFE_SIZE;
        let id = if self.is_plan && is_safe {
            NOT_NEEDED
        } else {
            let may_wait = is_safe && calls.is_empty() && item.begins.is_empty();
            let intent = whole_intent(step, &notes, item.source.as_ref());
            let outcome = (self.judge)(tick, &intent, Came { at, size, may_wait });
            let outcome = outcome.map_err(|error| error.at_message(at))?;
            outcome.map_err(|reason| ImportError::refused(reason.code(), reason.to_string(), at))?
        };
        self.calls.ask(tick, id, at, calls);
        self.steps.recorded(id);
        Ok(())
    }

    fn keep_preamble(&mut self, item: Item<'_>) -> Result<(), ImportError> {
        self.preamble_size += item.size;
        if self.preamble_size > VALUE_SIZE_MAX {
            let error = items::too_large(self.preamble_size);
            return Err(ImportError::Json { error, at: Some(item.at.to_string()), offset: None });
        }
        self.tally.preamble += 1;
        self.preamble.push(item.value);
        Ok(())
    }

    fn count(&mut self, step: &Step<'_>) {
        let tally = &mut self.tally;
        tally.ticks += 1;
        count_one(&mut tally.types, step.type_name());
        count_one(&mut tally.agents, step.agent());
        tally.calls += step.calls.len() as u64;
        tally.paired += u64::from(step.cause.is_some() && step.type_name() == "action.result");
        tally.errors += u64::from(step.is_error());
    }

    fn note(&mut self, tick: u64, note: &ImportNote) -> Result<(), ImportError> {
        if note.kind.is_gap() && self.options.on_gap == OnGap::Stop {
            return Err(ImportError::Gap(note.clone()));
        }
        self.tally.note(tick, note);
        Ok(())
    }

    /// The results at the end: the tally, the messages before the first item, and the calls without an answer.
    fn end(mut self, layout: &Layout, around: &items::Around) -> Result<Ended, ImportError> {
        for note in &around.notes {
            self.note(0, note)?;
        }
        let left_out = around.left_out.iter().map(|at| {
            ImportNote::new(NoteKind::MessageOutside, at, "messages outside the list are left out")
        });
        let branches = Some(layout.found.branches_left_out).filter(|count| *count > 0).map(|count| {
            let text = format!("{count} branches are left out, the oldest of the file");
            ImportNote::new(NoteKind::BranchesLeftOut, layout::pointer(&layout.path), text)
        });
        // A source that ends between two items, or outside the list, may have had more after the last one.
        let is_cut = layout.is_cut && !self.is_cut_marked;
        let cut = is_cut.then(|| {
            let at = layout::pointer(&layout.path);
            ImportNote::new(NoteKind::SourceCut, at, "the source ends inside a value")
        });
        let left_out: Vec<ImportNote> = left_out.chain(branches).chain(cut).collect();
        let last = self.tally.ticks;
        for note in &left_out {
            self.note(last, note)?;
        }
        let calls = std::mem::take(&mut self.calls);
        let contested = std::mem::take(&mut self.contested);
        let mut unanswered = BTreeSet::new();
        for (tick, call) in calls.unanswered() {
            unanswered.insert((*tick, call.index));
            self.note(*tick, &without_result(call, &calls.place(*tick).unwrap_or_default()))?;
        }
        for ((tick, _), at) in &contested {
            self.note(*tick, &contested_call(at))?;
        }
        self.tally.first_notes.sort_by_key(|(tick, _)| *tick);
        let known = Known { unanswered, contested, last, left_out };
        Ok(Ended { tally: self.tally, preamble: self.preamble, known })
    }
}

/// The step of an item that is on record already: it is kept, and states nothing.
pub(crate) fn repeated<'i>(item: &Item<'_>) -> Step<'i> {
    let agent = item.value.as_object().and_then(|message| chat::speaker(message).0);
    let role = item.value.get("role").and_then(Value::as_str).filter(|role| !role.is_empty());
    let agent = agent.or(role).unwrap_or("unknown").to_owned();
    let words = Value::record([("repeated", item.value.clone())]);
    Step::new(Intent::new(transition::name_of("observation.add"), &agent).with("intent", words))
}

/// Counts a name. Names are few and come often, so one is copied only when it is new.
fn count_one<K: Ord + Borrow<str> + for<'n> From<&'n str>>(counts: &mut BTreeMap<K, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => {
            counts.insert(name.into(), 1);
        }
    }
}

/// The intent of a step, with what was noted and the record that it answers.
pub(crate) fn whole_intent(step: Step<'_>, notes: &[ImportNote], source: Option<&Value>) -> Intent {
    let cause = step.cause;
    let mut intent = step.into_intent();
    if let Some(source) = source {
        let mut words = intent.member("intent").and_then(Value::as_object).cloned().unwrap_or_default();
        // A part has no role of its own.
        if source.get("part").is_some() {
            words.remove("role");
        }
        words.set(&free_name(&words, "source"), source.clone());
        intent = intent.with("intent", Value::Object(words));
    }
    if intent.member(OBSERVED_AT).is_none() {
        let kept = intent.member("intent").and_then(|words| words.get("extra")?.as_object());
        if let Some(time) = kept.and_then(moment::observed) {
            intent = intent.carrying(OBSERVED_AT, Value::from(time));
        }
    }
    intent.noted.extend(notes.iter().map(ImportNote::to_value));
    intent.links.extend(cause.map(|hash| Link { rel: Rel::CausedBy, hash }));
    intent
}

fn contested_call(at: &dyn fmt::Display) -> ImportNote {
    let text = "a result may answer this call or another one of its id";
    ImportNote::new(NoteKind::CallContested, at, text)
}

fn without_result(call: &calls::Call, at: &dyn fmt::Display) -> ImportNote {
    ImportNote::new(
        NoteKind::CallWithoutResult,
        at,
        format!("no result follows for the call {}", call.name()),
    )
}

/// Transitions on their way to the disk, group after group.
struct Groups<'a> {
    recorder: Recorder,
    /// Intents that are judged together, with the places of their items.
    waiting: Vec<(Intent, String)>,
    bytes: usize,
    settled: &'a mut dyn FnMut(u64),
}

impl Groups<'_> {
    fn take(&mut self, intent: &Intent, came: Came<'_>) -> Result<Outcome, ImportError> {
        self.bytes += came.size;
        if came.may_wait {
            self.waiting.push((intent.clone(), came.at.to_string()));
            if self.is_full() {
                self.submit()?;
            }
            return Ok(Ok(NOT_NEEDED));
        }
        // At once, because a result names the record of its request.
        self.judge_waiting()?;
        let id = match self.recorder.propose(intent)? {
            step::Outcome::Committed(record) | step::Outcome::Violated { record, .. } => record.id(),
            step::Outcome::Refused(refused) => {
                // A refusal is discarded: with it on record, ticks would not be numbers of messages.
                self.recorder.discard();
                return Ok(Err(refused.reason));
            }
        };
        if self.is_full() {
            self.submit()?;
        }
        Ok(Ok(id))
    }

    fn is_full(&self) -> bool {
        self.recorder.pending() + self.waiting.len() >= GROUP.0 || self.bytes >= GROUP.1
    }

    /// Judges the intents that wait: together, which seals several at once. Records before one that fails are kept.
    fn judge_waiting(&mut self) -> Result<(), ImportError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let (intents, places): (Vec<Intent>, Vec<String>) =
            std::mem::take(&mut self.waiting).into_iter().unzip();
        let outcomes = self.recorder.propose_each(&intents);
        let outcomes = outcomes.map_err(|(at, error)| ImportError::from(error).at_message(&places[at]))?;
        for (outcome, at) in outcomes.into_iter().zip(places) {
            if let step::Outcome::Refused(refused) = outcome {
                self.recorder.discard();
                return Err(ImportError::refused(refused.reason.code(), refused.reason.to_string(), at));
            }
        }
        Ok(())
    }

    fn submit(&mut self) -> Result<(), ImportError> {
        self.judge_waiting()?;
        self.bytes = 0;
        let settled = self.recorder.submit()?;
        self.tell(&settled.unwrap_or_default());
        Ok(())
    }

    /// Waits for all that is on its way. Of several errors the first is returned.
    fn settle(&mut self) -> Result<(), ImportError> {
        let mut result = Ok(());
        while self.recorder.is_under_way() {
            match self.recorder.wait() {
                Ok(records) => self.tell(&records.unwrap_or_default()),
                Err(error) => result = result.and(Err(error)),
            }
        }
        Ok(result?)
    }

    fn tell(&mut self, records: &[Record]) {
        let transitions = records.iter().filter(|record| record.header().tick.is_some_and(|tick| tick > 0));
        (self.settled)(transitions.count() as u64);
    }

    /// Keeps the transitions before the error that ended the import, as far as the store takes them. Of two errors the first is
    /// reported. An empty run is not kept.
    fn keep(mut self) {
        let _ = self.judge_waiting();
        if self.recorder.pending() > 0 && self.recorder.head().tick() > 0 {
            let _ = self.submit();
        }
        let _ = self.settle();
    }

    fn end(mut self) -> Result<Digest, ImportError> {
        let is_more = self.recorder.pending() + self.waiting.len() > 0;
        if is_more && let Err(error) = self.submit() {
            self.keep();
            return Err(error);
        }
        self.settle()?;
        Ok(self.recorder.head().id())
    }
}
