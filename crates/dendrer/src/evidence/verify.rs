//! Verification: is the record what was committed, and does replay reproduce it.
//!
//! Facts, never mixed: whether every byte checks out against itself and the signed log (INTACT), whether every record is here
//! (COMPLETE), and whether anything outside the reach of the key holder agrees (WITNESSED). All three are VERIFIED.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::chain_rules::{ChainFault, ChainLine, Chains};
use dendrer_kernel::commitment::{CONTRACT, PARENTS};
use dendrer_kernel::replay::{ReplayError, lacking};
use dendrer_kernel::step::RunState;
use dendrer_kernel::unknown::{self, Since};
use dendrer_object::keys::{CHECKPOINT, KeyChange, KeyFault, KeyTrust, LogKeys};
use dendrer_object::merkle::{Peaks, leaf_hash, leaf_hashes};
use dendrer_object::note::{Checkpoint, SignedNote, VerifierKey};
use dendrer_object::record::{Author, Entry, Kind, Record};
use dendrer_object::{Code, Digest, Pointer, RunName, Value};
use dendrer_store::{Store, StoreError};

use crate::address::RecordAt;
use crate::error::Error;
use crate::evidence::bundle::{Opened, Opening, OpeningFault};
use crate::evidence::shown::ShownTree;
use crate::run::parents::{Compared, compare};
use crate::run::trace::{ReadHandle, Trace};
use crate::run::unfinished::Unfinished;

use erased::{ClosedFields, Erasures};
use maps::Maps;
use states::States;

use facts::{
    ComparedLog, ComparedWord, Derived, MapFact, Notes, VerifyNote, WholeFact, Witness, WitnessKind,
};

pub use crate::run::replay::{replay, replay_range};
mod erased;
pub mod facts;
pub mod judge;
mod maps;
mod states;
pub mod suite;

/// How many records are taken together.
const BATCH: usize = 256;

/// How many entries are held at a time where only some of their records are opened.
const ENTRIES: u64 = 1 << 16;

/// How many findings of one run are listed before they are only counted.
const FINDINGS_MAX: usize = 20;

/// A verification with every name resolved.
#[derive(Debug, Clone, Default)]
pub struct VerifyTerms {
    /// The runs; `None` for all of them.
    pub runs: Option<Vec<RunName>>,
    /// The first tick whose records are opened. The records before it are taken as they are, but for their places in the log.
    pub from: u64,
    /// The last tick that is asked about, of runs that are not asked about whole. The records after it are not read.
    pub to: BTreeMap<RunName, u64>,
    /// Whether to leave out what takes the states: deltas against roots, and authors.
    pub quick: bool,
    /// Whether to make every transition again, too.
    pub replay: bool,
    /// Tips kept elsewhere, each of which a run must have on its chain.
    pub tips: Vec<Digest>,
    /// The runs and ticks of such tips, where something here knows them.
    pub tip_places: BTreeMap<Digest, (RunName, u64)>,
    /// Keys kept elsewhere, under which the checkpoint must be signed.
    pub keys: Vec<VerifierKey>,
    /// Sizes and roots of the log kept elsewhere, which witness it.
    pub checkpoints: Vec<(u64, Digest)>,
    /// Sizes and roots that this machine signed, which the log must extend. They lie with the key, so they witness nothing.
    pub pinned: Vec<(u64, Digest)>,
}

/// One thing that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyFinding {
    /// The code under which `dendrer explain` knows it.
    pub code: Code,
    /// The run it concerns.
    pub run: Option<RunName>,
    /// The tick it concerns.
    pub tick: Option<u64>,
    /// The position in the log.
    pub position: Option<u64>,
    /// One sentence.
    pub message: String,
    /// What is on record, or was given.
    pub stored: Option<String>,
    /// What was computed from it, or is on record in place of what was given.
    pub computed: Option<String>,
}

impl VerifyFinding {
    /// The code of an answer that is refused for it: that of a record that does not hold, whatever rule found it.
    pub fn refusal(&self) -> Code {
        match self.code {
            Code::E0301
            | Code::E0303
            | Code::E0304
            | Code::E0305
            | Code::E0306
            | Code::E0307
            | Code::E0308
            | Code::E0316
            | Code::E0317 => self.code,
            _ => Code::E0302,
        }
    }

    /// What to call the two sides.
    pub fn sides(&self) -> (&'static str, &'static str) {
        if self.code == Code::E0304 { ("given", "found") } else { ("stored", "computed") }
    }
}

/// What was found of one run.
#[derive(Debug, Clone)]
pub struct RunReport {
    /// The run.
    pub run: RunName,
    /// Its chain.
    pub line: ChainLine,
    /// How many of its transitions were passed by unopened.
    pub passed: u64,
    /// The ticks whose records were opened, where those are not all.
    pub part: Option<(u64, u64)>,
    /// The last tick that was asked about.
    pub asked: u64,
    /// The position after the last record that was asked about: a witness that knows a shorter log knows not all of the run.
    pub end: u64,
    /// Replay: how many transitions were made again, or why not all.
    pub replay: Option<Result<u64, ReplayError>>,
    /// The places of the last state that are unknown, each with its cause: the state is incomplete from the earliest tick of
    /// these on. `None` if the state cannot be read: a change was erased or withheld.
    pub unknown: Option<Vec<(Pointer, Since)>>,
    /// The first tick of its chain with a value that was erased or withheld.
    pub closed_from: Option<u64>,
    /// The part of its source on record, if its import was stopped before its end.
    pub unfinished: Option<Unfinished>,
}

dendrer_object::words! {
    /// The worst of the findings in one word (design, section 3 "Verdicts").
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum VerifyVerdict {
        /// Intact, and something kept elsewhere agrees.
        Verified = "VERIFIED",
        /// Every byte that is here checks out.
        Intact = "INTACT",
        /// Something that would be needed is not here.
        Unverifiable = "UNVERIFIABLE",
        /// Replay came out differently.
        Diverged = "DIVERGED",
        /// Something is not what was committed.
        Tampered = "TAMPERED",
        /// Each is what was signed, and the same key signed another log of the same size: there are two histories.
        Equivocation = "EQUIVOCATION",
        /// The bytes are no bundle and no store, so no digest was compared.
        Malformed = "MALFORMED",
    }
}

/// Everything that was found.
#[derive(Debug, Clone)]
pub struct VerifyReport {
    /// The answer.
    pub verdict: VerifyVerdict,
    /// Each run that was asked for.
    pub runs: Vec<RunReport>,
    /// What is not as it must be, in the order of the log.
    pub findings: Vec<VerifyFinding>,
    /// How many more findings there are.
    pub findings_left_out: usize,
    /// How many records were opened and compared.
    pub records: u64,
    /// How many of these are of the runs that were asked about.
    pub asked_records: u64,
    /// The position after the last record of no run that is no map, where the whole log was asked about.
    pub reach: u64,
    /// The log: its size, and the root computed from the entries.
    pub log: (u64, Option<Digest>),
    /// The size of the log that the newest signed checkpoint covers; `None` if there is no such checkpoint, or none that covers this
    /// log.
    pub signed: Option<u64>,
    /// The keys of the log; `None` if the bytes name none.
    pub keys: Option<LogKeys>,
    /// Whether this machine knows the key in force, or it follows from one that was given.
    pub is_key_known: bool,
    /// Whether every record is here.
    pub whole: WholeFact,
    /// The witnesses that agree.
    pub witnesses: Vec<Witness>,
    /// The data that follows from the log.
    pub derived: Derived,
    /// The comparison with another log of the key that has the worst result; `None` without such a log.
    pub compared: Option<ComparedLog>,
    /// Remarks on records.
    pub notes: Vec<VerifyNote>,
    /// Parts that were not checked and have no line of their own, in words.
    pub not_checked: Vec<String>,
    /// The first value of a record that is erased or withheld, or a part that is missing, in words.
    pub unreadable: Option<String>,
    /// The codes of what was required and does not hold.
    pub unmet: Vec<Code>,
    /// Whether neither deltas against roots nor authors were checked.
    pub is_quick: bool,
}

fn records(count: u64) -> String {
    format!("{count} record{}", if count == 1 { "" } else { "s" })
}

/// The sentence about another log of a size that this machine has signed.
pub(crate) fn signed_otherwise(size: u64) -> String {
    format!("{} were signed here with another root: there are two histories", records(size))
}

/// Verifies a store.
pub fn store(store: &impl ReadHandle, options: &VerifyTerms) -> Result<VerifyReport, Error> {
    let (mut checker, note) = Checker::of_store(store.to_handle(), options)?;
    match options.runs {
        None => checker.walk_all()?,
        Some(_) => checker.walk_some()?,
    }
    checker.end_of_store(note.as_ref())
}

/// Verifies all of a store as [`store()`] does, of records that somebody reads anyway.
///
/// What is taken must be the log from its beginning, in order, each record sealed from what stands in the store: nothing here
/// can tell a record that was left out from one that is damaged, so where any is missing there is no report, and whoever
/// asked lets [`store()`] look for itself.
pub struct VerifyReading<'a> {
    checker: Checker<'a>,
    note: Option<SignedNote>,
    waiting: Vec<Record>,
    /// The position of the next record; `None` once one was missing.
    next: Option<u64>,
}

impl<'a> VerifyReading<'a> {
    /// Begins to verify a store.
    pub fn new(store: &impl ReadHandle, options: &'a VerifyTerms) -> Result<VerifyReading<'a>, Error> {
        assert!(options.runs.is_none(), "of some runs not every record is opened");
        let (checker, note) = Checker::of_store(store.to_handle(), options)?;
        Ok(VerifyReading { checker, note, waiting: Vec::with_capacity(BATCH), next: Some(0) })
    }

    /// Takes the next record. What lies behind the end of the log as the store sees it is none of this.
    pub fn take(&mut self, position: u64, record: Record) {
        let size = self.checker.store.tree().size;
        self.next = match self.next {
            Some(next) if next == position && next < size => {
                self.waiting.push(record);
                if self.waiting.len() == BATCH {
                    self.checker
                        .take_each(next + 1, std::mem::replace(&mut self.waiting, Vec::with_capacity(BATCH)));
                }
                Some(next + 1)
            }
            Some(next) if next == size && position >= size => Some(next),
            _ => None,
        };
    }

    /// Returns the report, if every record was taken.
    pub fn finish(mut self) -> Result<Option<VerifyReport>, Error> {
        let size = self.checker.store.tree().size;
        if self.next != Some(size) {
            return Ok(None);
        }
        self.checker.take_each(size, self.waiting);
        self.checker.end_of_store(self.note.as_ref()).map(Some)
    }
}

/// Verifies a bundle that was opened.
pub fn bundle(opened: &Opened, options: &VerifyTerms) -> Result<VerifyReport, Error> {
    let runs = options.runs.clone().unwrap_or_else(|| opened.runs.clone());
    let options = &VerifyTerms { runs: Some(runs.clone()), ..options.clone() };
    let mut checker = Checker { is_bundle: true, ..Checker::new(Arc::clone(&opened.store), options) };
    let shown = ShownTree::of_bundle(&opened.bundle);
    // The root of another size follows only from a bundle that shows the nodes at its edge.
    let roots = checker.sizes.iter().filter_map(|size| Some((*size, shown.root(*size)?)));
    checker.roots = roots.filter(|(size, _)| *size <= shown.size).collect();
    checker.roots.extend(roots_of_changes(opened, &shown));
    checker.bundle_leaves_out = opened.left_out();
    checker.notes.list.extend(opened.bundle.although.iter().map(|place| VerifyNote::although(place)));
    checker.find_parents();
    checker.walk_bundle(opened);
    checker.seal_of(opened);
    checker.judge_map(opened, &runs);
    for run in opened.runs.iter().filter(|run| !runs.contains(run)) {
        checker.not_checked.push(format!("the records of {run}, which the bundle holds too"));
    }
    if opened.is_page {
        checker.not_checked.push("the page around the bundle".to_owned());
    }
    checker.finish()
}

/// The facts that every reader of a bundle must know. They are found once, with the first reader.
pub fn opening(opened: &Opened) -> &Opening {
    opened.opening.get_or_init(|| look(opened))
}

/// Asks of an opened bundle what `verify --quick` asks, and for the authors: whether its entries give the root that was signed,
/// by the key that the log was begun under, whether every record opened, the chains, and what its map counts. No state is made.
fn look(opened: &Opened) -> Opening {
    let options = VerifyTerms { runs: Some(opened.runs.clone()), quick: true, ..VerifyTerms::default() };
    // A parent can be asked about as well, and is here up to where another run branched off.
    let begun = opened.bundle.positions().filter(|(_, entry)| entry.kind == Kind::Run);
    let begun = begun.filter_map(|(_, entry)| entry.run.clone());
    let parents: BTreeSet<RunName> = begun.filter(|run| !opened.runs.contains(run)).collect();
    let runs: Vec<RunName> = opened.runs.iter().cloned().chain(parents).collect();
    let mut checker = Checker { is_bundle: true, ..Checker::new(Arc::clone(&opened.store), &options) };
    checker.roots.extend(roots_of_changes(opened, &ShownTree::of_bundle(&opened.bundle)));
    checker.opening(opened);
    if checker.findings.is_empty() {
        checker.bundle_leaves_out = opened.left_out();
        checker.authors_alone = true;
        checker.walk_bundle(opened);
        checker.judge_map(opened, &runs);
        for run in &opened.runs {
            checker.check_end(run);
        }
    }
    let whole = checker.whole(&runs);
    let fault = checker.findings.into_iter().next().map(|finding| OpeningFault {
        code: finding.refusal(),
        message: finding.message,
        run: finding.run,
        tick: finding.tick,
    });
    let partial = whole.partial.iter().map(|found| (found.run.clone(), found.lost()));
    Opening { fault, partial: partial.collect() }
}

/// The roots of the log of a bundle at the sizes that changes of its keys name.
fn roots_of_changes(opened: &Opened, shown: &ShownTree) -> BTreeMap<u64, Digest> {
    let mut roots = BTreeMap::new();
    for (position, _) in opened.bundle.positions().filter(|(_, entry)| entry.kind == Kind::Key) {
        let content = opened.store.get(position).ok().flatten().map(|record| record.content());
        let note = content.as_ref().and_then(|content| content.get(CHECKPOINT)?.as_str());
        let note = note.and_then(|note| SignedNote::parse(note.as_bytes()).ok());
        let sizes = [Some(position), note.as_ref().and_then(signed_size)];
        let sizes = sizes.into_iter().flatten().filter(|size| *size <= shown.size);
        roots.extend(sizes.filter_map(|size| Some((size, shown.root(size)?))));
    }
    roots
}

struct Checker<'a> {
    store: Arc<dyn Store>,
    keys: LogKeys,
    options: &'a VerifyTerms,
    chains: Chains,
    findings: Vec<VerifyFinding>,
    left_out: usize,
    faulty: BTreeMap<Option<RunName>, usize>,
    records: u64,
    asked_records: u64,
    /// The position after the last record of no run that is no map.
    reach: u64,
    /// The position after the last record of each run that was asked about.
    asked_ends: BTreeMap<RunName, u64>,
    /// The first tick of the chain of each run at which something does not hold.
    faulty_from: BTreeMap<RunName, u64>,
    /// The number of findings of records that lack a field.
    misshapen: usize,
    erasures: Erasures,
    /// The last ticks of parents that runs need which are asked about, where a part of a run is asked about.
    needed: BTreeMap<RunName, u64>,
    /// Of each run the position of the newest record of its chain, and of its newest record of any kind.
    ends: BTreeMap<RunName, (u64, u64)>,
    closed: u64,
    /// The number of refusals of each run.
    refusals: BTreeMap<RunName, u64>,
    missing_prefix: bool,
    peaks: Peaks,
    /// The sizes of the log that something outside speaks of.
    sizes: BTreeSet<u64>,
    roots: BTreeMap<u64, Digest>,
    signed: Option<u64>,
    not_checked: Vec<String>,
    /// The first value that is erased or withheld, or prefix that is missing, among the parts that were not checked.
    unreadable: Option<usize>,
    /// The first tick of each run with such a value.
    closed_from: BTreeMap<RunName, u64>,
    unknown_key: bool,
    is_bundle: bool,
    /// Of each run the refusals and erasures off its chain.
    beside: BTreeMap<RunName, u64>,
    /// Of each run the refusals that its chain names.
    named: BTreeMap<RunName, u64>,
    /// Whether the log ends before something that was given.
    is_older: bool,
    /// Whether authors are checked where states are not.
    authors_alone: bool,
    /// The number of records that a bundle leaves out.
    bundle_leaves_out: u64,
    /// The records of chains whose ids were given as tips, by run and tick.
    tips: BTreeMap<Digest, (RunName, u64)>,
    /// How the index differs from the log.
    wrong_index: Option<String>,
    notes: Notes,
    states: States,
    maps: Maps,
    /// The map of a bundle, and its counts of the runs.
    map: MapFact,
    /// The comparisons with checkpoints that were given.
    compared: Vec<ComparedLog>,
    /// The runs with a transition that changed which places are unknown.
    touched: BTreeSet<RunName>,
    /// The runs that are forks.
    forks: BTreeSet<RunName>,
    /// The entries of parents in records of delegated runs, each with the place of the record.
    said: Vec<(String, Value)>,
    /// Whether the records of a parent differ from a sealed entry.
    said_differs: bool,
}

/// Whether a record may have changed which places are unknown: it did, a value that would show it cannot be read, or it begins
/// a run with unknown places, as a merge does.
fn may_mark(record: &Record) -> bool {
    let body = record.body();
    let place = Pointer::of([if record.header().kind == Kind::Run { "state" } else { "delta" }]);
    let is_closed = body.fields().iter().any(|one| one.pointer.overlaps(&place) && body.text(one).is_none());
    is_closed || unknown::is_touched_by(record) || body.value("/state/kernel_unknown").is_some()
}

/// The entries of parents in a record of a delegated run.
fn said_of_parents(record: &Record) -> Option<Vec<Value>> {
    let is_kernels = record.header().author == Author::Kernel || record.header().kind == Kind::Run;
    let said = record.content().get(CONTRACT).filter(|_| !is_kernels)?.get(PARENTS)?.as_array()?.clone();
    Some(said.iter().cloned().collect())
}

impl<'a> Checker<'a> {
    fn new(store: Arc<dyn Store>, options: &'a VerifyTerms) -> Checker<'a> {
        Checker {
            keys: LogKeys::new(store.info().id, store.info().key.clone()),
            store,
            options,
            chains: Chains::default(),
            findings: Vec::new(),
            left_out: 0,
            faulty: BTreeMap::new(),
            records: 0,
            asked_records: 0,
            reach: 0,
            asked_ends: BTreeMap::new(),
            faulty_from: BTreeMap::new(),
            misshapen: 0,
            erasures: Erasures::default(),
            needed: BTreeMap::new(),
            ends: BTreeMap::new(),
            closed: 0,
            refusals: BTreeMap::new(),
            missing_prefix: false,
            peaks: Peaks::new(),
            sizes: options.pinned.iter().chain(&options.checkpoints).map(|(size, _)| *size).collect(),
            roots: BTreeMap::from([(0, Peaks::new().root())]),
            signed: None,
            not_checked: Vec::new(),
            unreadable: None,
            closed_from: BTreeMap::new(),
            unknown_key: false,
            is_bundle: false,
            beside: BTreeMap::new(),
            named: BTreeMap::new(),
            is_older: false,
            authors_alone: false,
            bundle_leaves_out: 0,
            tips: BTreeMap::new(),
            wrong_index: None,
            notes: Notes::default(),
            states: States::default(),
            maps: Maps::default(),
            map: MapFact::default(),
            compared: Vec::new(),
            touched: BTreeSet::new(),
            forks: BTreeSet::new(),
            said: Vec::new(),
            said_differs: false,
        }
    }

    fn found(
        &mut self,
        code: Code,
        entry: Option<(u64, &Entry)>,
        sides: Option<(String, String)>,
        message: String,
    ) {
        let run = entry.and_then(|(_, entry)| entry.run.clone());
        if let (Some(run), Some((_, entry))) = (&run, entry)
            && matches!(entry.kind, Kind::Run | Kind::Transition)
        {
            let tick = entry.tick.unwrap_or(0);
            self.faulty_from.entry(run.clone()).and_modify(|from| *from = tick.min(*from)).or_insert(tick);
        }
        let count = self.faulty.entry(run.clone()).or_default();
        *count += 1;
        if *count > FINDINGS_MAX {
            self.left_out += 1;
            return;
        }
        let (stored, computed) = sides.unzip();
        self.findings.push(VerifyFinding {
            code,
            tick: entry.and_then(|(_, entry)| entry.tick),
            position: entry.map(|(position, _)| position),
            run,
            message,
            stored,
            computed,
        });
    }

    fn wanted(&self, run: Option<&RunName>) -> bool {
        match (&self.options.runs, run) {
            (None, _) => true,
            // A record of no run concerns each of them: the key of the log.
            (Some(_), None) => true,
            (Some(wanted), Some(run)) => wanted.contains(run) || self.is_ancestor(run),
        }
    }

    /// Whether a run is one that was asked about, and no parent of one.
    fn is_asked(&self, run: &RunName) -> bool {
        self.options.runs.as_ref().is_none_or(|runs| runs.contains(run))
    }

    /// Whether a transition stands before what is to be opened.
    fn is_before(&self, entry: &Entry) -> bool {
        entry.kind == Kind::Transition && entry.tick.is_some_and(|tick| tick < self.options.from)
    }

    /// Whether a record of a run follows the last tick that is asked about.
    fn is_behind(&self, entry: &Entry) -> bool {
        let Some((run, to)) = entry.run.as_ref().and_then(|run| self.options.to.get_key_value(run)) else {
            return false;
        };
        let line = self.chains.lines().get(run);
        line.is_some_and(|line| line.genesis.is_some() && line.tick >= *to)
    }

    /// Whether a record of a run that follows the last tick that is asked about is passed over. One that leads to a tip that was
    /// given is read, and one that another run needs.
    fn is_after(&self, entry: &Entry) -> bool {
        let is_needed = || {
            let run = entry.run.as_ref();
            let to = run.and_then(|run| self.needed.get(run));
            let line = run.and_then(|run| self.chains.lines().get(run));
            to.is_some_and(|to| line.is_none_or(|line| line.tick < *to))
        };
        self.is_behind(entry)
            && !is_needed()
            && self.options.tips.iter().all(|tip| self.tips.contains_key(tip))
    }

    /// Finds what runs that are asked about need of their parents, where a part of a run is asked about.
    fn find_parents(&mut self) {
        if self.options.to.is_empty() {
            return;
        }
        for run in self.options.runs.iter().flatten() {
            let Ok(trace) = Trace::open(&self.store, run) else { continue };
            for (owner, to) in trace.lineage().iter().filter(|(owner, _)| owner != run) {
                let known = self.needed.entry(owner.clone()).or_default();
                *known = (*known).max(*to);
            }
        }
    }

    /// Passes by a transition whose record is not opened.
    fn pass(&mut self, entry: &Entry) {
        self.mark_tip(entry);
        self.chains.pass(entry);
    }

    /// Keeps the place of a record whose id was given as a tip.
    fn mark_tip(&mut self, entry: &Entry) {
        if !self.options.tips.contains(&entry.hash) {
            return;
        }
        let line = entry.run.as_ref().and_then(|run| self.chains.lines().get(run));
        let tick = entry.tick.or_else(|| line.map(|line| line.tick)).unwrap_or(0);
        self.tips.extend(entry.run.clone().map(|run| (entry.hash, (run, tick))));
    }

    /// A fork rests on the beginning of its parent, so that is checked with it.
    fn is_ancestor(&self, run: &RunName) -> bool {
        let wanted = self.options.runs.iter().flatten();
        wanted
            .filter_map(|name| Trace::open(&self.store, name).ok())
            .any(|trace| trace.lineage().iter().any(|(owner, _)| owner == run))
    }

    /// Begins with a store, and what was signed of it.
    fn of_store(
        store: Arc<dyn Store>,
        options: &'a VerifyTerms,
    ) -> Result<(Checker<'a>, Option<SignedNote>), Error> {
        let mut checker = Checker::new(store, options);
        checker.find_parents();
        let note = match checker.store.checkpoint() {
            Ok(note) => note,
            // What could not be read may be as it was.
            Err(error @ StoreError::Io { .. }) => return Err(error.into()),
            Err(error) => {
                checker.found(error.code(), None, None, format!("the checkpoint: {error}"));
                None
            }
        };
        checker.sizes.extend(note.as_ref().and_then(signed_size));
        Ok((checker, note))
    }

    /// Once every record that was asked for was opened, in the order of the log, and every entry folded into the tree.
    fn end_of_store(mut self, note: Option<&SignedNote>) -> Result<VerifyReport, Error> {
        let tree = self.store.tree();
        if (self.peaks.size(), self.peaks.root()) != (tree.size, tree.root) {
            let sides = Some((tree.root.to_string(), self.peaks.root().to_string()));
            self.found(Code::E0303, None, sides, "the entries of the log do not give its root".to_owned());
        }
        if let Some(trouble) = self.store.trouble() {
            self.found(trouble.code(), None, None, trouble.to_string());
        }
        self.checkpoint(note);
        self.finish()
    }

    /// Everything, in one pass. Damage stops a pass; the record is looked at alone, and the next pass goes on behind.
    fn walk_all(&mut self) -> Result<(), Error> {
        let store = Arc::clone(&self.store);
        let size = store.tree().size;
        let mut next = 0;
        while next < size {
            let mut waiting: Vec<Record> = Vec::with_capacity(BATCH);
            let passed = store.scan(next..size, &mut |position, record| {
                debug_assert_eq!(position, next, "a scan goes in order");
                waiting.push(record);
                next += 1;
                if waiting.len() == BATCH {
                    self.take_each(next, std::mem::take(&mut waiting));
                }
                ControlFlow::Continue(())
            });
            self.take_each(next, waiting);
            match passed {
                Ok(()) if next == size => {}
                Ok(()) | Err(StoreError::Damaged(_) | StoreError::Lost(_)) => {
                    self.take_alone(next)?;
                    next += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Takes records that end at a position.
    fn take_each(&mut self, end: u64, records: Vec<Record>) {
        let entries: Vec<Entry> = records.iter().map(Record::log_entry).collect();
        let leaves = leaf_hashes(&entries.iter().map(Entry::text).collect::<Vec<_>>());
        let first = end - records.len() as u64;
        for (((position, record), entry), leaf) in (first..).zip(&records).zip(&entries).zip(leaves) {
            self.fold(leaf, entry);
            self.take(position, entry, Some(record));
        }
    }

    /// Takes one record that a pass could not read.
    fn take_alone(&mut self, position: u64) -> Result<(), Error> {
        let mut entry = None;
        // An entry that cannot be read either leaves a hole in the tree, which the root shows.
        let _ = self.store.entries(position..position + 1, &mut |_, found| {
            entry = Some(found);
            ControlFlow::Break(())
        });
        let read = self.store.get(position);
        let Some(entry) = entry else {
            let why =
                read.err().map_or_else(|| "its entry cannot be read".to_owned(), |error| error.to_string());
            self.found(Code::E0305, None, None, format!("the record at position {position}: {why}"));
            self.maps.miss();
            return Ok(());
        };
        self.fold(leaf_hash(&entry.text()), &entry);
        self.take_read(position, &entry, read)
    }

    /// Takes what reading one position gave. Damage is a finding; anything else ends the verification.
    fn take_read(
        &mut self,
        position: u64,
        entry: &Entry,
        read: Result<Option<Record>, StoreError>,
    ) -> Result<(), Error> {
        match read {
            Ok(Some(record)) => self.take(position, entry, Some(&record)),
            Ok(None) => self.damaged(position, entry, &StoreError::NoPosition(position)),
            Err(error @ (StoreError::Damaged(_) | StoreError::Lost(_))) => {
                self.damaged(position, entry, &error)
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn fold(&mut self, leaf: Digest, entry: &Entry) {
        self.maps.take(entry);
        if entry.kind == Kind::Key {
            self.roots.insert(self.peaks.size(), self.peaks.root());
        }
        self.peaks.push(leaf);
        if self.sizes.contains(&self.peaks.size()) {
            self.roots.insert(self.peaks.size(), self.peaks.root());
        }
    }

    /// The whole tree, and the records of some runs.
    fn walk_some(&mut self) -> Result<(), Error> {
        let size = self.store.tree().size;
        let mut wanted: BTreeMap<Option<RunName>, bool> = BTreeMap::new();
        let store = Arc::clone(&self.store);
        let mut begin = 0;
        while begin < size {
            let end = size.min(begin + ENTRIES);
            let (mut chosen, mut erasures) = (Vec::new(), Vec::new());
            store.entries(begin..end, &mut |position, entry| {
                self.fold(leaf_hash(&entry.text()), &entry);
                let known = wanted.get(&entry.run).copied();
                let is_wanted = known.unwrap_or_else(|| self.wanted(entry.run.as_ref()));
                wanted.entry(entry.run.clone()).or_insert(is_wanted);
                match is_wanted {
                    true => chosen.push((position, entry)),
                    false => erasures.extend((entry.kind == Kind::Erase).then_some(position)),
                }
                ControlFlow::Continue(())
            })?;
            erasures.into_iter().for_each(|position| self.take_erasure(position));
            for (position, entry) in chosen {
                if self.is_after(&entry) {
                    if entry.kind == Kind::Erase {
                        self.take_erasure(position);
                    }
                    continue;
                }
                if self.is_before(&entry) {
                    self.pass(&entry);
                } else {
                    self.take_read(position, &entry, store.get(position))?;
                }
            }
            begin = end;
        }
        Ok(())
    }

    fn damaged(&mut self, position: u64, entry: &Entry, error: &StoreError) {
        let sides = match error {
            StoreError::Damaged(damage) | StoreError::Lost(damage) => {
                Some((damage.expected.clone(), damage.found.clone()))
            }
            _ => None,
        };
        self.found(error.code(), Some((position, entry)), sides, error.to_string());
        self.take(position, entry, None);
    }

    /// The signature over a bundle.
    fn seal_of(&mut self, opened: &Opened) {
        match SignedNote::parse(opened.bundle.checkpoint.as_bytes()) {
            Ok(note) => self.bundle_checkpoint(opened, &note),
            Err(error) => self.found(Code::E0308, None, None, format!("the checkpoint: {error}")),
        }
    }

    fn opening(&mut self, opened: &Opened) {
        if opened.root.is_none() {
            self.no_root();
        }
        for (position, entry) in opened.bundle.positions().filter(|(_, entry)| entry.kind == Kind::Key) {
            let record = self.store.get(position).ok().flatten();
            self.check_key(position, entry, record.as_ref());
        }
        self.seal_of(opened);
        for fault in &opened.faults {
            self.found(Code::E0301, Some((fault.position, &fault.entry)), None, fault.why.to_string());
        }
        let erasures = opened.bundle.positions().filter(|(_, entry)| entry.kind == Kind::Erase);
        erasures.for_each(|(position, _)| self.take_erasure(position));
        self.judge_erasures();
    }

    fn no_root(&mut self) {
        let message = "entries and subtrees do not make a log of the claimed size".to_owned();
        self.found(Code::E0303, None, None, message);
    }

    fn walk_bundle(&mut self, opened: &Opened) {
        if self.bundle_leaves_out == 0 {
            opened.bundle.positions().for_each(|(_, entry)| self.maps.take(entry));
        }
        let faults: BTreeMap<u64, _> = opened.faults.iter().map(|fault| (fault.position, fault)).collect();
        // A bundle holds what its runs rest on and nothing else, so that only a choice among them leaves something out.
        let all =
            self.options.runs.as_ref().is_none_or(|runs| opened.runs.iter().all(|run| runs.contains(run)));
        let mut wanted: BTreeMap<Option<RunName>, bool> = BTreeMap::new();
        for (position, entry) in opened.bundle.positions() {
            let is_wanted =
                all || *wanted.entry(entry.run.clone()).or_insert_with(|| self.wanted(entry.run.as_ref()));
            if !is_wanted || self.is_after(entry) {
                if entry.kind == Kind::Erase {
                    self.take_erasure(position);
                }
                continue;
            }
            if self.is_before(entry) {
                self.pass(entry);
                continue;
            }
            if let Some(fault) = faults.get(&position) {
                let sides = match &fault.why {
                    dendrer_object::bundle::RecordFault::Value { stored, computed, .. }
                    | dendrer_object::bundle::RecordFault::Header { stored, computed } => {
                        Some((stored.short(), computed.short()))
                    }
                    _ => None,
                };
                self.found(Code::E0301, Some((position, entry)), sides, fault.why.to_string());
                self.take(position, entry, None);
                continue;
            }
            let record = self.store.get(position).ok().flatten();
            self.take(position, entry, record.as_ref());
        }
        if opened.root.is_none() {
            self.no_root();
        }
    }

    fn take(&mut self, position: u64, entry: &Entry, record: Option<&Record>) {
        self.mark_end(position, entry);
        self.records += u64::from(record.is_some());
        if record.is_some() && entry.run.as_ref().is_some_and(|run| self.is_asked(run)) {
            self.asked_records += 1;
        }
        let refused = self.count_refusal(entry);
        self.count_beside(entry, record);
        if let Some(record) = record {
            self.notes.take(position, record);
            self.take_values(refused.unwrap_or_else(|| place(entry)), entry, record);
            self.check_links(position, entry, record);
        }
        if let (Some(run), true) = (&entry.run, matches!(entry.kind, Kind::Run | Kind::Transition)) {
            if record.is_none_or(may_mark) {
                self.touched.insert(run.clone());
            }
            if entry.kind == Kind::Run && entry.tick.is_none() {
                self.forks.insert(run.clone());
            }
        }
        if let Some(said) = record.filter(|_| self.options.replay).and_then(said_of_parents) {
            let place = place(entry);
            self.said.extend(said.iter().map(|entry| (place.clone(), entry.clone())));
        }
        self.check_key(position, entry, record);
        self.check_map(position, entry, record);
        let store = Arc::clone(&self.store);
        let place_of = |id: &Digest| {
            let parent = store.find(id).ok().flatten().filter(|parent| *parent < position)?;
            let parent = store.get(parent).ok().flatten()?;
            Some((parent.header().tick?, parent.header().ts))
        };
        match self.chains.take(entry, record, &place_of) {
            Ok(()) => {}
            Err(fault @ ChainFault::MissingPrefix(_)) => {
                self.missing_prefix = true;
                self.add_unreadable(format!("{}: {fault}", place(entry)));
            }
            Err(fault) => {
                let sides = match &fault {
                    ChainFault::Prev { expected, found } => Some((found.short(), expected.short())),
                    _ => None,
                };
                self.found(Code::E0302, Some((position, entry)), sides, fault.to_string());
            }
        }
        if matches!(entry.kind, Kind::Run | Kind::Transition) {
            self.mark_tip(entry);
        }
        let record = record.filter(|record| self.has_shape(position, entry, record));
        let faults = match (self.options.quick, record) {
            (false, record) => self.states.take(&self.store, entry, record),
            (true, Some(record)) if self.authors_alone => states::author(record).into_iter().collect(),
            _ => Vec::new(),
        };
        for (code, sides, message) in faults {
            self.found(code, Some((position, entry)), sides, message);
        }
    }

    /// Takes the `erase` record at a position that is not otherwise looked at: a value of another run may be in it.
    fn take_erasure(&mut self, position: u64) {
        // An unreadable one is a finding where its own run is asked about.
        if let Ok(Some(record)) = self.store.get(position) {
            self.erasures.take(&record);
        }
    }

    /// Keeps the fields of a record that are not here. Why is known at the end of the log.
    fn take_values(&mut self, place: String, entry: &Entry, record: &Record) {
        self.erasures.take(record);
        let closed = record.body().fields().iter().filter(|field| record.body().text(field).is_none());
        let fields: Vec<Pointer> = closed.map(|field| field.pointer.clone()).collect();
        if fields.is_empty() {
            return;
        }
        self.closed += fields.len() as u64;
        if let (Some(run), Kind::Run | Kind::Transition) = (&entry.run, entry.kind) {
            self.closed_from.entry(run.clone()).or_insert(entry.tick.unwrap_or(0));
        }
        let line = self.not_checked.len();
        self.add_unreadable(place.clone());
        self.erasures.closed.push(ClosedFields { line, place, id: record.id(), fields });
    }

    /// Looks for values that are here although they were erased, and names for the others the reason why they are not.
    fn judge_erasures(&mut self) {
        let erasures = std::mem::take(&mut self.erasures);
        for closed in &erasures.closed {
            self.not_checked[closed.line] = erasures.words(closed);
        }
        let mut open = Vec::new();
        for (id, places) in &erasures.named {
            let Ok(Some(position)) = self.store.find(id) else { continue };
            // A record that cannot be read was reported.
            let Ok(Some(record)) = self.store.get(position) else { continue };
            if !self.wanted(record.header().run.as_ref()) {
                continue;
            }
            let body = record.body();
            let fields = body.fields().iter().filter(|field| places.contains(&field.pointer));
            let here = fields.filter(|field| body.text(field).is_some());
            open.extend(here.map(|field| (position, record.log_entry(), field.pointer.dotted())));
        }
        open.sort_by_key(|(position, ..)| *position);
        for (position, entry, field) in open {
            if !self.is_bundle {
                // A reader may come between the record of an erasure and the destruction of the value.
                self.notes.list.push(VerifyNote::not_erased(position, entry.run.clone(), field));
                continue;
            }
            let message = format!("{field} is here although the log says that it was erased");
            self.found(Code::E0317, Some((position, &entry)), None, message);
        }
    }

    /// Keeps how far the records that were read reach, and those of them that were asked about.
    fn mark_end(&mut self, position: u64, entry: &Entry) {
        let Some(run) = &entry.run else {
            if entry.kind != Kind::Map {
                self.reach = position + 1;
            }
            return;
        };
        if !self.is_behind(entry) {
            self.asked_ends.insert(run.clone(), position + 1);
        }
        let is_chain = matches!(entry.kind, Kind::Run | Kind::Transition);
        match self.ends.get_mut(run) {
            Some((chain, last)) => (*chain, *last) = (if is_chain { position } else { *chain }, position),
            None => drop(self.ends.insert(run.clone(), (position, position))),
        }
    }

    /// Whether a record has the fields of its kind. After one that lacks a field the state of its run is not followed.
    fn has_shape(&mut self, position: u64, entry: &Entry, record: &Record) -> bool {
        let Some(field) = lacking(record) else { return true };
        self.misshapen += 1;
        let message = format!("a record of kind {} has no field {field}, which each must have", entry.kind);
        self.found(Code::E0306, Some((position, entry)), None, message);
        false
    }

    /// Checks that no link leads to a later record of the log.
    fn check_links(&mut self, position: u64, entry: &Entry, record: &Record) {
        for link in record.header().links.iter().filter(|_| !self.options.quick) {
            if self.store.find(&link.hash).ok().flatten().is_some_and(|target| target >= position) {
                let message = format!("it links to {}, which stands after it in the log", link.hash.short());
                self.found(Code::E0302, Some((position, entry)), None, message);
            }
        }
    }

    /// Adds a part that could not be read. The first one is the one that the line of the record names.
    fn add_unreadable(&mut self, what: String) {
        self.unreadable.get_or_insert(self.not_checked.len());
        self.not_checked.push(what);
    }

    /// Counts what no tip covers: refusals and erasures. A record of the kernel on the chain names the refusal that it follows.
    fn count_beside(&mut self, entry: &Entry, record: Option<&Record>) {
        let Some(run) = &entry.run else { return };
        if matches!(entry.kind, Kind::Refusal | Kind::Erase) {
            *self.beside.entry(run.clone()).or_default() += 1;
        }
        let is_kernels = |record: &&Record| {
            let header = record.header();
            header.author == Author::Kernel && header.kind == Kind::Transition
        };
        let anomalies = record.filter(is_kernels).and_then(|record| record.body().value("/anomalies"));
        let anomalies = anomalies.as_ref().and_then(Value::as_array).into_iter().flat_map(|all| all.iter());
        let named = anomalies.filter(|one| one.get("refusal").is_some()).count() as u64;
        if named > 0 {
            *self.named.entry(run.clone()).or_default() += named;
        }
    }

    /// Returns how many refusals and erasures of a run and of what it branched off from no tip covers.
    fn uncovered(&self, run: &RunName) -> u64 {
        let lineage = Trace::open(&self.store, run).map(|trace| trace.lineage().to_vec()).unwrap_or_default();
        let of = |counts: &BTreeMap<RunName, u64>, run: &RunName| counts.get(run).copied().unwrap_or(0);
        let each = lineage.iter().map(|(owner, _)| of(&self.beside, owner).max(of(&self.named, owner)));
        each.sum()
    }

    /// Counts a refusal, and returns its address; `None` for any other record.
    fn count_refusal(&mut self, entry: &Entry) -> Option<String> {
        let run = entry.run.as_ref().filter(|_| entry.kind == Kind::Refusal)?;
        let number = self.refusals.entry(run.clone()).or_default();
        *number += 1;
        Some(format!("{run}@{}", RecordAt::Refusal(*number)))
    }

    /// Lists what is unknown of the last state of a run; `None` if the state cannot be read. It is read only where a record may
    /// have marked a place.
    fn unknown_places(&self, run: &RunName, asked: u64) -> Option<Vec<(Pointer, Since)>> {
        let may_inherit = !self.touched.is_empty() && self.forks.contains(run);
        if !self.touched.contains(run) && !may_inherit {
            return Some(Vec::new());
        }
        let trace = Trace::open(&self.store, run).ok()?;
        if !trace.lineage().iter().any(|(owner, _)| self.touched.contains(owner)) {
            return Some(Vec::new());
        }
        trace.state(asked.min(trace.tip())).ok().map(|state| unknown::listed(&state))
    }

    /// The first record of a log binds its key, so that neither can be exchanged alone.
    fn check_key(&mut self, position: u64, entry: &Entry, record: Option<&Record>) {
        let Some(record) = record.filter(|_| entry.kind == Kind::Key) else { return };
        let text = |name: &str| record.body().value(name).and_then(|value| value.as_str().map(str::to_owned));
        let key = self.store.info().key.to_string();
        if let (Some("log"), Some(bound)) = (text("/purpose").as_deref(), text("/verifier"))
            && bound != key
        {
            let message = "the log was begun under another key than the one it names now".to_owned();
            self.found(Code::E0308, Some((position, entry)), Some((bound, key)), message);
        }
        let position = (position, entry);
        match self.keys.take(position.0, record) {
            Ok(None) => {}
            Ok(Some(change)) => self.check_change(position, &change),
            // A value that was erased or withheld is reported as that.
            Err(KeyFault::Closed) => {}
            Err(fault) => self.found(Code::E0308, Some(position), None, fault.to_string()),
        }
    }

    /// A change of keys is signed over the log before it.
    fn check_change(&mut self, at: (u64, &Entry), change: &KeyChange) {
        let sizes = [
            (Some(change.before), "was signed over another log"),
            (change.checkpoint, "names a checkpoint of another log"),
        ];
        for ((size, root), why) in sizes.into_iter().filter_map(|(tree, why)| Some((tree?, why))) {
            let found = match self.roots.get(&size) {
                Some(found) => Some(*found),
                None if self.is_bundle => None,
                None => self.store.root_of(size).ok().flatten(),
            };
            match found {
                Some(found) if found == root => {}
                None if self.is_bundle => {
                    let what =
                        format!("the log of {} that the change of keys at {} names", records(size), at.0);
                    self.not_checked.push(what);
                }
                found => {
                    let sides = found.map(|found| (root.short(), found.short()));
                    self.found(Code::E0308, Some(at), sides, format!("the change of keys {why}"));
                }
            }
        }
    }

    fn checkpoint(&mut self, note: Option<&SignedNote>) {
        let Some(note) = note else { return };
        let Some(checkpoint) = self.open_note(note) else { return };
        let size = self.store.tree().size;
        if checkpoint.size() > size && self.store.trouble().is_none() {
            // When the store was opened its log had all that was signed; this is of what others have written since.
            self.not_checked
                .push(format!("a signature over {}, which was made meanwhile", records(checkpoint.size())));
            return;
        }
        if checkpoint.size() > size {
            let message =
                format!("a checkpoint was signed for {}, and the log has {size}", records(checkpoint.size()));
            self.found(Code::E0307, None, None, message);
            return;
        }
        let root = self.roots.get(&checkpoint.size()).copied();
        if root != Some(checkpoint.root()) {
            let sides = root.map(|root| (checkpoint.root().short(), root.short()));
            self.found(Code::E0303, None, sides, "the log is not the one that was signed".to_owned());
            return;
        }
        self.signed = Some(checkpoint.size());
    }

    fn bundle_checkpoint(&mut self, opened: &Opened, note: &SignedNote) {
        let Some(checkpoint) = self.open_note(note) else { return };
        if checkpoint.size() != opened.bundle.size || Some(checkpoint.root()) != opened.root {
            let sides = opened.root.map(|root| (checkpoint.root().short(), root.short()));
            self.found(
                Code::E0303,
                None,
                sides,
                "the log of the bundle is not the one that was signed".to_owned(),
            );
        } else {
            self.signed = Some(checkpoint.size());
        }
        self.roots.extend(opened.root.map(|root| (opened.bundle.size, root)));
    }

    fn open_note(&mut self, note: &SignedNote) -> Option<Checkpoint> {
        let given = &self.options.keys;
        // Nothing that was signed can be checked with a key that is not the log's: an unknown key, no tampering.
        if !given.is_empty() && given.iter().all(|given| self.keys.follows(given) != KeyTrust::Follows) {
            self.unknown_key = true;
            let now = self.keys.now();
            self.not_checked
                .push(format!("a signature under the key that was given: the log is signed by {now}"));
        }
        match self.keys.open(note) {
            Ok(checkpoint) => Some(checkpoint),
            Err(error) => {
                self.found(Code::E0308, None, None, format!("the checkpoint: {error}"));
                None
            }
        }
    }

    /// Compares what records of delegated runs hold of their parents with the parents, if they are here.
    fn check_said(&mut self) {
        for (place, entry) in std::mem::take(&mut self.said) {
            let text = |name: &str| {
                entry.get(name).map_or_else(String::new, |value| match value.as_str() {
                    Some(text) => text.to_owned(),
                    None => value.to_string(),
                })
            };
            let (run, tick) = (text("run"), text("tick"));
            match compare(&self.store, &entry) {
                Compared::Same => {}
                Compared::Unverifiable(why) => {
                    let what =
                        format!("{place}: what {run}@{tick} said of the contract is UNVERIFIABLE: {why}");
                    self.not_checked.push(what);
                }
                Compared::Differs => {
                    let what = format!("{place}: {run}@{tick} says of the contract what is not sealed here");
                    self.not_checked.push(what);
                    self.said_differs = true;
                }
            }
        }
    }

    /// Names the ticks before those that were asked about.
    fn name_passed(&mut self) {
        if self.options.from > 1 {
            let last = self.options.from - 1;
            self.not_checked.push(format!(
                "what ticks 1 to {last} hold: they were taken as they are, but for their places in the log"
            ));
        }
    }

    fn finish(mut self) -> Result<VerifyReport, Error> {
        self.name_passed();
        self.judge_erasures();
        self.check_said();
        let mut runs = self.run_reports()?;
        self.check_pinned();
        let witnesses = self.witnesses(&runs);
        // What stands before damage is sound because the signed root covers it, and for no other reason.
        let other_log =
            |finding: &VerifyFinding| matches!(finding.code, Code::E0304 | Code::E0307 | Code::E0308);
        let uncovered = self.is_bundle && self.signed.is_none() || self.findings.iter().any(other_log);
        if uncovered {
            runs.iter_mut().for_each(|run| run.line.last_good = None);
        }
        let unreadable = self.unreadable.and_then(|line| self.not_checked.get(line).cloned());
        let tree = self.store.tree();
        let names: Vec<RunName> = runs.iter().map(|report| report.run.clone()).collect();
        let mut whole = self.whole(&names);
        whole.add_on_record(&runs);
        let root = match self.peaks.size() == tree.size {
            true => Some(self.peaks.root()),
            false => self.roots.get(&tree.size).copied(),
        };
        let (size, verdict, keys) = (tree.size, self.verdict(&runs), self.keys.clone());
        // A log that cannot be read is reported by itself.
        let untagged = self.store.untagged().ok().flatten().unwrap_or_default();
        self.notes.list.extend(untagged.into_iter().map(VerifyNote::untagged));
        let mut report = VerifyReport {
            verdict,
            runs,
            findings: self.findings,
            findings_left_out: self.left_out,
            records: self.records,
            asked_records: self.asked_records,
            reach: if self.options.runs.is_none() { self.reach } else { 0 },
            log: (size, root),
            signed: self.signed,
            is_key_known: self.options.keys.iter().any(|given| keys.follows(given) == KeyTrust::Follows),
            keys: Some(keys),
            whole,
            witnesses,
            derived: self.wrong_index.map_or(Derived::None, Derived::Damaged),
            compared: None,
            notes: self.notes.list,
            not_checked: self.not_checked,
            unreadable,
            unmet: Vec::new(),
            is_quick: self.options.quick,
        };
        for compared in self.compared {
            // Another root under the same key is a second history only of a log that is signed itself.
            if compared.word == ComparedWord::Equivocation && report.signed.is_some() {
                report.verdict = report.verdict.max(VerifyVerdict::Equivocation);
            }
            report.add_compared(compared, None);
        }
        report.raise();
        Ok(report)
    }

    /// Decides whether every record of the runs that were asked about is here.
    fn whole(&mut self, runs: &[RunName]) -> WholeFact {
        let tree = self.store.tree();
        let is_every = match self.is_bundle {
            true => self.bundle_leaves_out == 0,
            false => (self.peaks.size(), self.peaks.root()) == (tree.size, tree.root),
        };
        let ends = runs.iter().map(|run| (run.clone(), self.ends.get(run).map_or(0, |(_, last)| last + 1)));
        let map = std::mem::take(&mut self.map);
        // Of a bundle without a run nothing is here that could be asked about.
        let signed = self.signed.filter(|_| !self.is_bundle || !runs.is_empty());
        WholeFact::decide(ends, signed, is_every, map, self.bundle_leaves_out)
    }

    fn run_reports(&mut self) -> Result<Vec<RunReport>, Error> {
        let names: Vec<RunName> = match &self.options.runs {
            Some(runs) => runs.clone(),
            None => self.chains.lines().keys().cloned().collect(),
        };
        let mut runs = Vec::new();
        for run in names {
            if self.check_end(&run) {
                continue;
            }
            let Some(mut line) = self.chains.lines().get(&run).cloned() else {
                return Err(crate::run::trace::no_run(&*self.store, &run));
            };
            let asked = self.options.to.get(&run).map_or(line.tick, |to| line.tick.min(*to));
            let end = self.asked_ends.get(&run).copied().unwrap_or(0);
            let replay =
                (self.options.replay && !line.broken).then(|| self.replay(&run, asked)).transpose()?;
            let passed = self.options.from.saturating_sub(1).min(line.transitions);
            let is_part = passed > 0 || self.options.to.contains_key(&run);
            let part = is_part.then_some((self.options.from, line.tick));
            let unknown = self.unknown_places(&run, asked);
            let unfinished =
                Trace::open(&self.store, &run).and_then(|trace| trace.unfinished()).ok().flatten();
            let lineage =
                Trace::open(&self.store, &run).map(|trace| trace.lineage().to_vec()).unwrap_or_default();
            for (owner, to) in &lineage {
                let faulty = self.faulty_from.get(owner).filter(|from| *owner == run || **from <= *to);
                if let Some(from) = faulty {
                    line.last_good = line.last_good.min(from.checked_sub(1));
                }
            }
            let closed = lineage.iter().filter_map(|(owner, _)| self.closed_from.get(owner).copied());
            let closed_from = closed.min();
            runs.push(RunReport {
                run,
                line,
                passed,
                part,
                asked,
                end,
                replay,
                unknown,
                closed_from,
                unfinished,
            });
        }
        Ok(runs)
    }

    /// Checks that a run is here, and ends as it is read; returns whether it is not.
    fn check_end(&mut self, run: &RunName) -> bool {
        if self.lacks(run) {
            let message = format!("it was made for the run {run}, which does not begin in it");
            self.found(Code::E0303, None, None, message);
            return true;
        }
        if let Some(line) = self.chains.lines().get(run).cloned() {
            self.compare_index(run, &line);
        }
        false
    }

    /// Compares the end of a run with the one that the index names, or in a bundle the one that its records are read as.
    fn compare_index(&mut self, run: &RunName, line: &ChainLine) {
        let known = Trace::open(&self.store, run).map(|trace| trace.tip());
        let differs = known.is_ok_and(|tip| tip != line.tick && !self.options.to.contains_key(run));
        if differs && self.is_bundle {
            let message =
                format!("the log has {} ticks of {run}, and its records are read as others", line.tick);
            self.found(Code::E0302, None, None, message);
        }
        if differs && !self.is_bundle {
            self.wrong_index = Some(format!("it has another last tick of {run} than {}", line.tick));
        }
    }

    /// Whether a bundle names a run that does not begin in it.
    fn lacks(&self, run: &RunName) -> bool {
        self.is_bundle && self.chains.lines().get(run).is_none_or(|line| line.genesis.is_none())
    }

    fn replay(&self, run: &RunName, asked: u64) -> Result<Result<u64, ReplayError>, Error> {
        let trace = Trace::open(&self.store, run)?;
        let end = asked.min(trace.tip());
        let begin = self.options.from.saturating_sub(1).min(end);
        let mut on = |_: &RunState, _: &Record| ControlFlow::Continue(());
        let reducer = crate::run::pack::reducer_of(&trace)?;
        replay_range(&trace, begin, end, &*reducer, false, &mut on)
    }

    /// Compares the log with the heads that this machine signed. They lie with the key, so they are no witness.
    fn check_pinned(&mut self) {
        let now = self.store.tree().size;
        for (size, root) in self.options.pinned.iter().copied() {
            let (message, sides) = match self.roots.get(&size) {
                Some(found) if *found == root => continue,
                Some(found) => (signed_otherwise(size), Some((root.short(), found.short()))),
                None if self.is_bundle => {
                    let records = records(size);
                    let message =
                        format!("the log of {records} that was signed here: the bundle has that of {now}");
                    self.not_checked.push(message);
                    continue;
                }
                None => (format!("{} were signed here, and the log has {now}", records(size)), None),
            };
            self.found(Code::E0307, None, sides, message);
        }
    }

    /// Compares tips and checkpoints that were given; one that agrees is a witness.
    fn witnesses(&mut self, runs: &[RunReport]) -> Vec<Witness> {
        let (mut agreed, options) = (Vec::new(), self.options);
        for tip in &options.tips {
            let found: Vec<Witness> = runs.iter().filter_map(|report| self.tip_of(report, tip)).collect();
            // It may be on the chains of forks, too. Those that it covers are named, else the first.
            let is_some = found.iter().any(|witness| !witness.runs.is_empty());
            match found.is_empty() {
                false if is_some => agreed.extend(found.into_iter().filter(|one| !one.runs.is_empty())),
                false => agreed.extend(found.into_iter().take(1)),
                true if self.contradicts(runs, tip) => {
                    let found = runs.first().and_then(|report| report.line.tip);
                    // Found is what the run has; given is what it was to be.
                    let sides = found.map(|found| (tip.to_string(), found.to_string()));
                    let message = "the record is consistent with itself, but the tip that was given is not on its chain";
                    self.found(Code::E0304, None, sides, message.to_owned());
                }
                true => self.ends_before("the tip given", None),
            }
        }
        let now = self.store.tree().size;
        for (size, root) in options.checkpoints.iter().copied() {
            let with = "the checkpoint given";
            if size > now && !self.roots.contains_key(&size) {
                self.ends_before(with, Some(size - now));
                continue;
            }
            let (word, at) = match self.roots.get(&size) {
                Some(found) if *found == root => (ComparedWord::Same, Some(size)),
                Some(_) => (ComparedWord::Equivocation, Some(size)),
                None => (ComparedWord::NotCompared, None),
            };
            self.compared.push(ComparedLog { with: with.to_owned(), word, at, older: None });
            match self.roots.get(&size) {
                Some(found) if *found == root => agreed.push(Witness {
                    kind: WitnessKind::Checkpoint,
                    run: None,
                    to: size,
                    after: now.saturating_sub(size),
                    runs: covered(runs, self.options.runs.is_none().then_some(self.reach), size),
                    uncovered: 0,
                }),
                Some(found) => {
                    let sides = Some((root.to_string(), found.to_string()));
                    let message = format!(
                        "the log of {} has another root than the checkpoint that was given",
                        records(size)
                    );
                    self.found(Code::E0304, None, sides, message);
                }
                // A bundle need not have the nodes of another size.
                None => {}
            }
        }
        agreed
    }

    /// Whether a tip that is on no chain that was asked about cannot be a later one: it is here in another place, its tick is one
    /// that the run has, or the runs are closed.
    fn contradicts(&self, runs: &[RunReport], tip: &Digest) -> bool {
        let has = |(run, tick): &(RunName, u64)| {
            runs.iter().any(|report| report.run == *run && *tick <= report.line.tick)
        };
        self.tips.contains_key(tip)
            || self.store.find(tip).is_ok_and(|position| position.is_some())
            || self.options.tip_places.get(tip).is_some_and(has)
            || !runs.is_empty() && runs.iter().all(|report| report.line.ended)
    }

    /// Adds the comparison with what was given and lies beyond the end of the log. Whether the log was rewritten instead, it cannot show.
    fn ends_before(&mut self, with: &str, more: Option<u64>) {
        self.is_older = true;
        let more = more.map_or_else(String::new, |more| match more {
            1 => ": 1 record more was signed".to_owned(),
            more => format!(": {more} records more were signed"),
        });
        let older = Some(format!("older than {with}, or rewritten{more}"));
        let (with, word) = (with.to_owned(), ComparedWord::NotCompared);
        self.compared.push(ComparedLog { with, word, at: None, older });
    }

    /// Returns what a tip witnesses of a run; `None` if the chain of the run does not contain it.
    fn tip_of(&mut self, report: &RunReport, tip: &Digest) -> Option<Witness> {
        let (owner, to) = self.tips.get(tip)?.clone();
        let is_on_chain = owner == report.run
            || Trace::open(&self.store, &report.run)
                .is_ok_and(|trace| trace.lineage().iter().any(|(run, end)| *run == owner && to <= *end));
        // A tip binds the chain up to it, and no refusal after it.
        let is_alone = self.ends.get(&report.run).is_none_or(|(chain, _)| report.end <= chain + 1);
        if is_on_chain && to >= report.asked && !is_alone {
            let run = &report.run;
            self.not_checked.push(format!("what stands beside {run} behind the tip that was given"));
        }
        let uncovered = self.uncovered(&report.run);
        is_on_chain.then(|| Witness {
            kind: WitnessKind::Tip,
            run: Some(report.run.clone()),
            to,
            after: report.asked.saturating_sub(to),
            runs: (to >= report.asked && is_alone && uncovered == 0)
                .then(|| report.run.clone())
                .into_iter()
                .collect(),
            uncovered,
        })
    }

    fn verdict(&self, runs: &[RunReport]) -> VerifyVerdict {
        let failed = |wanted: fn(&ReplayError) -> bool| {
            runs.iter().any(|report| matches!(&report.replay, Some(Err(error)) if wanted(error)))
        };
        if !self.findings.is_empty() {
            let is_shape = self.findings.len() + self.left_out == self.misshapen;
            return if is_shape { VerifyVerdict::Malformed } else { VerifyVerdict::Tampered };
        }
        if self.said_differs || failed(|error| !error.is_unverifiable()) {
            return VerifyVerdict::Diverged;
        }
        if self.closed > 0 || self.missing_prefix || self.unknown_key || self.is_older || failed(|_| true) {
            return VerifyVerdict::Unverifiable;
        }
        VerifyVerdict::Intact
    }
}

/// The runs whose records that were asked about all are in a log of a size. The records of no run before `reach` must be in it, if
/// the whole log is asked about.
fn covered(runs: &[RunReport], reach: Option<u64>, size: u64) -> BTreeSet<RunName> {
    let is_here = reach.is_none_or(|reach| reach <= size);
    let within = runs.iter().filter(|run| is_here && run.end <= size);
    within.map(|run| run.run.clone()).collect()
}

fn signed_size(note: &SignedNote) -> Option<u64> {
    Checkpoint::parse(note.text()).ok().map(|checkpoint| checkpoint.size())
}

fn place(entry: &Entry) -> String {
    match (&entry.run, entry.tick) {
        (Some(run), Some(tick)) => format!("{run}@{tick}"),
        (Some(run), None) => format!("{run}, {} {}", entry.kind, entry.hash.short()),
        _ => format!("{} {}", entry.kind, entry.hash.short()),
    }
}
