//! Findings that come from more than the records of one log: keys, damaged files, other copies of the log.
//!
//! A verdict only becomes worse here, but for a witness. Everything that was not checked is added to
//! [`Report::not_checked`], so an answer never claims more than was compared.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use dendrer_kernel::chain_rules::ChainLine;
use dendrer_object::keys::{KeyTrust, LogKeys};
use dendrer_object::note::{NoteError, SignedNote, VerifierKey};
use dendrer_object::{Code, Digest, RunName, StoreId};
use dendrer_store::{DamageKind, LogReport as Structure, RunSummary, Store};

use super::facts::{ComparedLog, ComparedWord, Derived, WholeFact, Witness, WitnessKind};
use super::{RunReport, VerifyFinding, VerifyReport, VerifyTerms, VerifyVerdict, covered};
use crate::error::Error;
use crate::evidence::bundle::Opened;
use crate::evidence::shown::{ShownTree, TreesCompared};
use crate::handle::ReadHandle;
use crate::run::trace::{Trace, all_runs};

/// The code of a log that is not the one that was signed here.
pub const ANOTHER_LOG: Code = Code::E0307;

/// The sentence about a log under another key than that of its store.
const OTHER_KEY: &str = "the log names another key than the one its store was made with here";

/// Returns code and sentence of why a bundle is not of the log that is known here: its key is not its own one, or it has another
/// root for the head that was signed here. `None` if neither is known.
pub(crate) fn another_log(
    opened: &Opened,
    own: Option<VerifierKey>,
    head: Option<(u64, Digest)>,
) -> Option<(Code, String)> {
    let keys = opened.store.keys().ok();
    match own.zip(keys).map(|(own, keys)| keys.follows(&own)) {
        Some(KeyTrust::Another) => return Some((Code::E0308, OTHER_KEY.to_owned())),
        Some(KeyTrust::Without(position)) => {
            let why = format!(
                "record {position} changed the key of its log without the old one, which this machine knows"
            );
            return Some((Code::E0812, why));
        }
        Some(KeyTrust::Follows) | None => {}
    }
    let (size, root) = head?;
    let shown = ShownTree::of_bundle(&opened.bundle);
    let is_other = size <= shown.size && shown.root(size).is_some_and(|found| found != root);
    is_other.then(|| (Code::E0307, super::signed_otherwise(size)))
}

/// A log that was verified.
#[derive(Debug, Clone)]
pub struct VerifiedLog {
    /// The file or the directory, as it was named.
    pub name: String,
    /// The findings.
    pub report: VerifyReport,
    /// Whether it is a bundle.
    pub is_bundle: bool,
    /// Whether it was asked about as a whole, and not about some of its runs.
    pub is_whole: bool,
    /// The id of the store and the key that signs its log; `None` for bytes that name none.
    pub of: Option<(StoreId, VerifierKey)>,
    /// The records of runs that another log may have as well, by tick; empty where one log is verified alone.
    pub chains: BTreeMap<RunName, Vec<Digest>>,
    /// The tree of the log as far as it is shown; empty where one log is verified alone.
    pub shown: ShownTree,
}

impl VerifiedLog {
    /// Whether all of the log is signed, and nothing is found but that another one is signed as well.
    fn is_signed(&self) -> bool {
        let is_of_others = |finding: &VerifyFinding| matches!(finding.code, ANOTHER_LOG | Code::E0304);
        self.report.signed == Some(self.report.log.0) && self.report.findings.iter().all(is_of_others)
    }
}

/// How the key in force follows from the one that is known on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownKey {
    /// None is known.
    No,
    /// It is the same, or follows from it.
    Same,
    /// The record at this position changed it without the one that is known.
    Without(u64),
    /// The log ends before the key was changed here.
    Older,
    /// The log has not had the known key, which is this one.
    Another(Box<VerifierKey>),
}

impl VerifyReport {
    /// Adds a finding about the log as a whole, with what is stored and what was computed.
    pub fn add_finding(&mut self, code: Code, message: String, sides: Option<(String, String)>) {
        let (stored, computed) = sides.unzip();
        self.findings.push(VerifyFinding {
            code,
            run: None,
            tick: None,
            position: None,
            message,
            stored,
            computed,
        });
    }

    /// Adds that a memory of this log on this machine, which could speak against it, cannot be read.
    pub fn add_unknown_memory(&mut self, why: &str) {
        self.not_checked.push(format!("what is kept here of this log: {why}"));
        self.verdict = self.verdict.max(VerifyVerdict::Unverifiable);
    }

    /// Judges the keys of the log.
    ///
    /// Cases that look alike and differ: the log has not had a key that was *given*, so nothing signed can be checked with it, and the
    /// record may still be intact: UNVERIFIABLE. The key was changed without the one that is *known* here: the owner may have lost
    /// it, or a stranger claims the log, UNVERIFIABLE as well. The log has not had the key that is known here: a log keeps its first
    /// key for life, so this is another log in its place, TAMPERED.
    pub fn judge_keys(
        &mut self,
        keys: &LogKeys,
        note: Option<&SignedNote>,
        known: &KnownKey,
        given: &[VerifierKey],
    ) {
        let mut followed = given.iter().filter(|given| keys.follows(given) == KeyTrust::Follows);
        self.is_key_known |= *known == KnownKey::Same || followed.next().is_some();
        match known {
            KnownKey::Same | KnownKey::No => {}
            KnownKey::Without(position) => self.doubt_key(format!(
                "whose log it is: record {position} changed its key without the old one, which this machine knows (E0812)"
            )),
            KnownKey::Older => self.doubt_key("what followed: its key was changed here since".to_owned()),
            KnownKey::Another(own) => {
                self.add_key_finding(OTHER_KEY, keys.now(), own);
            }
        }
        for given in given {
            match keys.follows(given) {
                KeyTrust::Follows => {}
                KeyTrust::Without(position) => self.doubt_key(format!(
                    "whose log it is: record {position} changed its key without the key that was given"
                )),
                KeyTrust::Another => self.judge_given(keys, note, given),
            }
        }
        self.raise();
    }

    fn doubt_key(&mut self, what: String) {
        self.is_key_known = false;
        self.not_checked.push(what);
        self.verdict = self.verdict.max(VerifyVerdict::Unverifiable);
    }

    fn judge_given(&mut self, keys: &LogKeys, note: Option<&SignedNote>, given: &VerifierKey) {
        // A key that is not the log's own is a witness if it signed the checkpoint as well.
        match note.map(|note| note.verify(std::slice::from_ref(given))) {
            Some(Ok(agreed)) if !agreed.is_empty() => {
                let to = self.signed.unwrap_or(0);
                let after = self.log.0.saturating_sub(to);
                let runs = covered(&self.runs, Some(self.reach), to);
                self.witnesses.push(Witness {
                    kind: WitnessKind::Key,
                    run: None,
                    to,
                    after,
                    runs,
                    uncovered: 0,
                });
            }
            Some(Err(NoteError::WrongSignature { .. })) => {
                let message = "a signature in the name of the key that was given is not that key's";
                self.add_key_finding(message, keys.now(), given);
            }
            _ => {
                let now = keys.now();
                let line = format!("a signature under the key that was given: the log is signed by {now}");
                self.not_checked.push(line);
                self.verdict = self.verdict.max(VerifyVerdict::Unverifiable);
            }
        }
    }

    fn add_key_finding(&mut self, message: &str, stored: &VerifierKey, computed: &VerifierKey) {
        self.verdict = VerifyVerdict::Tampered;
        self.add_finding(Code::E0308, message.to_owned(), Some((stored.to_string(), computed.to_string())));
    }

    /// Adds the damage of files that records cannot show: frames, commit frames, files beside the log.
    pub fn add_damage(&mut self, structure: Structure) {
        if let (Derived::None, Some(covered)) = (&self.derived, structure.indexed) {
            self.derived = Derived::Index(covered);
        }
        if structure.unfinished {
            self.not_checked.push("bytes behind the last group, which were never acknowledged".to_owned());
        }
        for damage in structure.findings {
            if damage.kind == DamageKind::Index {
                // The index follows from the log, so its damage is not that of the record.
                self.derived = Derived::Damaged(damage.found);
                continue;
            }
            let mut positions = self.findings.iter().filter_map(|finding| finding.position);
            if positions.any(|position| Some(position) == damage.place.position) {
                continue;
            }
            self.verdict = VerifyVerdict::Tampered;
            let run = self.runs.iter_mut().find(|run| Some(&run.run) == damage.place.run.as_ref());
            if let (Some(RunReport { line: ChainLine { last_good, .. }, .. }), Some(tick)) =
                (run, damage.place.tick)
            {
                *last_good = (*last_good).min(tick.checked_sub(1));
            }
            self.findings.push(VerifyFinding {
                code: damage.code(),
                run: damage.place.run.clone(),
                tick: damage.place.tick,
                position: damage.place.position,
                message: damage.to_string(),
                stored: Some(damage.expected),
                computed: Some(damage.found),
            });
        }
    }

    /// Lists the runs whose notes change: an intact run with its tip, any other with `None`. A run that was verified in part
    /// and is intact keeps its note.
    pub fn notes(&self) -> impl Iterator<Item = (RunName, Option<Digest>)> {
        let is_intact = self.verdict <= VerifyVerdict::Intact;
        self.runs.iter().filter_map(move |run| {
            match (is_intact && run.part.is_none() && !self.is_quick, run.line.tip) {
                (true, Some(tip)) => Some((run.run.clone(), Some(tip))),
                (false, _) if is_intact => None,
                _ => Some((run.run.clone(), None)),
            }
        })
    }
}

/// The ids of the records of runs, by tick: of all, or of those that are named. A run that cannot be read has none here; its
/// findings say so.
pub fn chains_of(store: &impl ReadHandle, runs: &BTreeSet<RunName>) -> BTreeMap<RunName, Vec<Digest>> {
    let chain = |run: &RunName| {
        let trace = Trace::open(store, run).ok()?;
        let mut ids = vec![trace.start().id()];
        trace
            .for_each(1, trace.tip(), &mut |_, record| {
                ids.push(record.id());
                ControlFlow::Continue(())
            })
            .ok()?;
        Some((run.clone(), ids))
    };
    runs.iter().filter_map(chain).collect()
}

/// The first record of a run that two chains have differently. A run is a chain, so one history has one record at a tick,
/// whatever the lengths of the logs.
fn parted(a: &VerifiedLog, b: &VerifiedLog) -> Option<(RunName, u64, [Digest; 2])> {
    a.chains.iter().find_map(|(run, ids)| {
        let pairs = ids.iter().zip(b.chains.get(run)?);
        let (tick, (own, other)) = (0..).zip(pairs).find(|(_, (own, other))| own != other)?;
        Some((run.clone(), tick, [*own, *other]))
    })
}

/// Compares copies of the same log, which may be two histories of one key. Leaves and subtrees that both show are compared, and the
/// runs that both have tick by tick, whatever the sizes of the logs.
pub fn compare_histories(logs: &mut [&mut VerifiedLog]) {
    for at in 0..logs.len() {
        for other in (0..logs.len()).filter(|other| *other != at) {
            let (own, twin) = (&*logs[at], &*logs[other]);
            if own.of.is_some() && own.of == twin.of {
                let (compared, finding) = compare_two(own, twin);
                logs[at].report.add_compared(compared, finding);
            }
        }
    }
}

/// Compares a log with another of its key. Of logs that are not signed whole nothing follows.
fn compare_two(own: &VerifiedLog, twin: &VerifiedLog) -> (ComparedLog, Option<VerifyFinding>) {
    let result = |word, at| ComparedLog { with: twin.name.clone(), word, at, older: None };
    if !own.is_signed() || !twin.is_signed() {
        return (result(ComparedWord::NotCompared, None), None);
    }
    let trees = own.shown.compare(&twin.shown);
    let size = match trees {
        TreesCompared::Differ(size) => size,
        _ => own.report.log.0.min(twin.report.log.0),
    };
    let (run, tick, position, sides, what) = match (parted(own, twin), trees) {
        (Some((run, tick, sides)), _) => {
            let what = format!("tick {tick} of {run}");
            (Some(run), Some(tick), None, Some(sides), what)
        }
        (None, TreesCompared::Differ(size)) => {
            let sides = own.report.log.1.zip(twin.report.log.1).map(|(own, twin)| [own, twin]);
            (None, None, Some(size - 1), sides, format!("position {} of the log", size - 1))
        }
        (None, TreesCompared::Same(size)) => return (result(ComparedWord::Same, Some(size)), None),
        (None, TreesCompared::NotCompared) => return (result(ComparedWord::NotCompared, None), None),
    };
    let message = format!(
        "the same key signed {}, which has another record at {what}: there are two histories",
        twin.name
    );
    let (stored, computed) = sides.map(|sides| sides.map(|side| side.short()).into()).unzip();
    let finding = VerifyFinding { code: ANOTHER_LOG, run, tick, position, message, stored, computed };
    (result(ComparedWord::Equivocation, Some(size)), Some(finding))
}

impl VerifyReport {
    /// Adds a comparison. Of several the worst is kept.
    pub fn add_compared(&mut self, compared: ComparedLog, finding: Option<VerifyFinding>) {
        if let Some(finding) = finding {
            self.verdict = self.verdict.max(VerifyVerdict::Equivocation);
            // Which of the two was recorded cannot be known here.
            self.runs.iter_mut().for_each(|run| run.line.last_good = None);
            self.findings.push(finding);
        }
        if self.compared.as_ref().is_none_or(|known| known.word < compared.word) {
            self.compared = Some(compared);
        }
    }

    /// The report on bytes that are no bundle and no store.
    pub fn malformed(code: Code, message: String) -> VerifyReport {
        let mut report = VerifyReport {
            verdict: VerifyVerdict::Malformed,
            runs: Vec::new(),
            findings: Vec::new(),
            findings_left_out: 0,
            records: 0,
            asked_records: 0,
            reach: 0,
            log: (0, None),
            signed: None,
            keys: None,
            is_key_known: false,
            whole: WholeFact::default(),
            witnesses: Vec::new(),
            derived: Derived::None,
            compared: None,
            notes: Vec::new(),
            not_checked: Vec::new(),
            unreadable: None,
            unmet: Vec::new(),
            is_quick: false,
        };
        report.add_finding(code, message, None);
        report
    }
}

/// Returns how many records a verification of a store reads: of the runs that are asked about, of those that they branched off
/// from, and of the states at which forks begin.
pub fn records_to_read(store: &dyn Store, options: &VerifyTerms) -> Result<u64, Error> {
    let mut runs: BTreeMap<RunName, (RunSummary, Option<RunName>)> = BTreeMap::new();
    for run in all_runs(store)? {
        let parent = parent_of(store, &run)?;
        runs.insert(run.name.clone(), (run, parent));
    }
    let asked = options.runs.clone().unwrap_or_else(|| runs.keys().cloned().collect());
    let (mut left, mut taken) = (asked.clone(), BTreeSet::new());
    let (mut records, mut states, mut ticks) = (0, 0, 0);
    while let Some(name) = left.pop() {
        let Some((run, parent)) = runs.get(&name).filter(|_| taken.insert(name.clone())) else { continue };
        records += run.transitions + run.refusals + 1;
        if asked.contains(&name) {
            ticks += run.head.tick.unwrap_or(0) + run.refusals;
        }
        if let (Some(parent), Some(at)) = (parent, run.first_own_tick.and_then(|tick| tick.checked_sub(1))) {
            // The state of a parent that has not gone on is at hand.
            let next = store.at(parent, at + 1)?;
            states += if next.is_some_and(|next| next < run.begin) { at } else { 0 };
            left.push(parent.clone());
        }
    }
    let read = if options.runs.is_some() { records } else { store.tree().size };
    let states = if options.quick { 0 } else { states };
    Ok(read + states + if options.replay { ticks } else { 0 })
}

/// Returns the run that a fork branched off from; `None` for any other run, and if the log does not have it.
fn parent_of(store: &dyn Store, run: &RunSummary) -> Result<Option<RunName>, Error> {
    let Some(position) = run.parent.map(|id| store.find(&id)).transpose()?.flatten() else { return Ok(None) };
    let mut parent = None;
    store.entries(position..position + 1, &mut |_, entry| {
        parent = entry.run;
        ControlFlow::Break(())
    })?;
    Ok(parent)
}
