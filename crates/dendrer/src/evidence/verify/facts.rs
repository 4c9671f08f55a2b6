//! The facts that `verify` reports with the verdict: one for each line, none folded into another.
//!
//! Rule: VERIFIED is given in one place, [`VerifyReport::raise`], and only to a log that is intact, complete and witnessed up to
//! the last tick that was asked about; test `verified_takes_all_three_facts`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use dendrer_object::record::{Kind, Record};
use dendrer_object::{Code, RunName, Timestamp};

use super::{RunReport, VerifyReport, VerifyVerdict};
use crate::run::lost::Lost;

pub use crate::run::lost::{MissingRecords, PartialReason};

/// The `purpose` of the record of an adoption.
pub const ADOPTED: &str = "adopt";

/// A run of which records may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncompleteRun {
    /// The run.
    pub run: RunName,
    /// The reason.
    pub why: PartialReason,
    /// How many are missing; `None` if nothing counts them.
    pub missing: Option<MissingRecords>,
    /// Whether the run itself has it on record, since it was imported from a part.
    pub is_on_record: bool,
}

impl IncompleteRun {
    pub(super) fn new(run: RunName, lost: Lost) -> IncompleteRun {
        let Lost { why, missing, is_on_record } = lost;
        IncompleteRun { run, why, missing, is_on_record }
    }

    /// Returns what is missing.
    pub fn lost(&self) -> Lost {
        Lost { why: self.why, missing: self.missing, is_on_record: self.is_on_record }
    }
}

/// The counts of a run in the map of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MapCounts {
    /// Nothing.
    Nothing,
    /// It does not count all of the run.
    Older,
    /// The records that are missing, of the run and of its parents.
    Missing {
        /// Those of the run.
        own: MissingRecords,
        /// The refusals of its parents.
        beside_parents: u64,
    },
}

/// The map by which a bundle is judged.
#[derive(Debug, Clone, Default)]
pub(super) struct MapFact {
    /// The time of the map.
    pub(super) ts: Option<Timestamp>,
    /// The records of no run that are missing, by kind.
    pub(super) apart: Vec<(Kind, u64)>,
    /// The counts of the runs that were asked about.
    pub(super) runs: BTreeMap<RunName, MapCounts>,
}

dendrer_object::words! {
    /// The kind of a witness.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum WitnessKind {
        /// A tip that was given.
        Tip = "tip",
        /// A checkpoint that was given.
        Checkpoint = "checkpoint",
        /// A key that was given and has signed as well.
        Key = "key",
    }
}

dendrer_object::words! {
    /// A remark that is no fault.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum NoteCode {
        /// The run was recorded at stage 0, so nothing was enforced.
        Stage0 = "stage_0",
        /// A record is dated before one that is earlier in the log.
        DatedBack = "dated_back",
        /// Records are in groups without the tag of a writer who may, and not signed.
        Untagged = "untagged",
        /// The holder of the key signed such records knowingly.
        Adopted = "adopted",
        /// A value stays in a bundle although it may follow from one that was withheld: the header of the bundle lists it.
        Although = "although",
        /// A value is here that an `erase` record lists.
        NotErased = "not_erased",
    }
}

dendrer_object::words! {
    /// Whether two logs of one key are one history.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ComparedWord {
        /// One history up to a size.
        Same = "same history",
        /// The nodes that both have do not decide it.
        NotCompared = "NOT COMPARED",
        /// Two histories of one key.
        Equivocation = "EQUIVOCATION",
    }
}

/// Whether every record is here that was asked about.
#[derive(Debug, Clone, Default)]
pub struct WholeFact {
    /// The size of the signed log that counts the records; `None` if nothing does.
    pub checkpoint: Option<u64>,
    /// The time of the map that counts the records; `None` if every entry was read, or there is no map.
    pub map_ts: Option<Timestamp>,
    /// The runs of which records may be missing.
    pub partial: Vec<IncompleteRun>,
    /// The records of no run that are missing by the map, by kind.
    pub apart: Vec<(Kind, u64)>,
    /// The number of records of the log that a bundle leaves out.
    pub left_out: u64,
}

impl WholeFact {
    /// Whether no record is missing.
    pub fn is_complete(&self) -> bool {
        self.checkpoint.is_some() && self.partial.is_empty()
    }

    /// Decides it for runs, each with the number of records up to its last one. `is_every` is whether every entry of the log was
    /// read, and `signed` the size that is signed; if entries were left out, `map` decides.
    pub(super) fn decide(
        runs: impl IntoIterator<Item = (RunName, u64)>,
        signed: Option<u64>,
        is_every: bool,
        map: MapFact,
        left_out: u64,
    ) -> WholeFact {
        let MapFact { ts, apart, runs: counted } = if is_every { MapFact::default() } else { map };
        let reason = |run: &RunName, end: u64| match signed {
            Some(size) if is_every => (end > size).then_some((PartialReason::AfterMap, None)),
            None => Some((PartialReason::NoMap, None)),
            Some(_) => match counted.get(run).unwrap_or(&MapCounts::Nothing) {
                MapCounts::Nothing => Some((PartialReason::NoMap, None)),
                MapCounts::Missing { own, .. } if *own != MissingRecords::default() || !apart.is_empty() => {
                    Some((PartialReason::Missing, Some(*own)))
                }
                MapCounts::Older => Some((PartialReason::AfterMap, None)),
                MapCounts::Missing { beside_parents: 0, .. } => None,
                MapCounts::Missing { beside_parents, .. } => {
                    let missing = MissingRecords { refusals: *beside_parents, ..MissingRecords::default() };
                    Some((PartialReason::ParentRefusals, Some(missing)))
                }
            },
        };
        let of = |(run, end)| {
            reason(&run, end).map(|(why, missing)| IncompleteRun { run, why, missing, is_on_record: false })
        };
        let partial = runs.into_iter().filter_map(of).collect();
        WholeFact { checkpoint: signed, map_ts: ts, partial, apart, left_out }
    }

    /// Adds the runs that were imported from a part: what was missing then stays missing.
    pub(super) fn add_on_record(&mut self, runs: &[RunReport]) {
        for report in runs {
            let lost = report.unfinished.and_then(|found| found.lost);
            let is_known = self.partial.iter().any(|known| known.run == report.run);
            if let Some(lost) = lost.filter(|_| !is_known) {
                self.partial.push(IncompleteRun::new(report.run.clone(), lost));
            }
        }
    }
}

/// Something outside that agrees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// Its kind.
    pub kind: WitnessKind,
    /// The run, of a tip; `None` if it speaks of the log.
    pub run: Option<RunName>,
    /// The tick of a tip, or the size of a log.
    pub to: u64,
    /// How many ticks or records that were asked about follow.
    pub after: u64,
    /// The runs of which it covers the last tick that was asked about, and the records that are off the chain.
    pub runs: BTreeSet<RunName>,
    /// Of a tip: how many refusals and erasures of the run lie among its ticks, which only a checkpoint covers.
    pub uncovered: u64,
}

impl Witness {
    /// Returns the witness in one phrase.
    pub fn words(&self) -> String {
        let Witness { kind, run, to, .. } = self;
        match (kind, run) {
            (WitnessKind::Tip, Some(run)) => format!("the tip given for {run} at tick {to}"),
            (kind, _) => format!("the {kind} given, to {to} records"),
        }
    }
}

/// Data that follows from the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Derived {
    /// No such data exists.
    #[default]
    None,
    /// The index is right up to a record.
    Index(u64),
    /// The index is damaged, and how. The verdict does not depend on it.
    Damaged(String),
}

/// A remark on a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyNote {
    /// Its kind.
    pub code: NoteCode,
    /// The position in the log; `None` if the remark is on no record.
    pub position: Option<u64>,
    /// The run.
    pub run: Option<RunName>,
    /// Of a record that is dated back: its time, and the later time of an earlier record.
    pub times: Option<(Timestamp, Timestamp)>,
    /// Of groups without a tag, also of those that were adopted: how many records they have.
    pub records: Option<u64>,
    /// The place of a value that stays, as the header of the bundle has it, or the pointer of one that was to be erased.
    pub place: Option<String>,
}

impl VerifyNote {
    /// Notes a group without a tag.
    pub(super) fn untagged(group: Range<u64>) -> VerifyNote {
        let records = Some(group.end - group.start);
        VerifyNote { records, ..VerifyNote::at(NoteCode::Untagged, group.start, None) }
    }

    /// Notes a value of a record that was to be erased.
    pub(super) fn not_erased(position: u64, run: Option<RunName>, place: String) -> VerifyNote {
        VerifyNote { place: Some(place), ..VerifyNote::at(NoteCode::NotErased, position, run) }
    }

    /// Notes a value that stays in a bundle.
    pub(super) fn although(place: &str) -> VerifyNote {
        let (position, place) = (None, Some(place.to_owned()));
        VerifyNote { position, place, ..VerifyNote::at(NoteCode::Although, 0, None) }
    }

    fn at(code: NoteCode, position: u64, run: Option<RunName>) -> VerifyNote {
        VerifyNote { code, position: Some(position), run, times: None, records: None, place: None }
    }
}

/// The comparison with another log of the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedLog {
    /// The other log, as it was named.
    pub with: String,
    /// The result.
    pub word: ComparedWord,
    /// The size up to which it holds; `None` if they were not compared.
    pub at: Option<u64>,
    /// In words, that the log ends before what it is compared with, or was rewritten; `None` if it is not known to.
    pub older: Option<String>,
}

/// How far clocks of machines that write into one log may differ, in milliseconds.
const SKEW_MS: u64 = 300_000;

/// Collects remarks, in the order of the log.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) list: Vec<VerifyNote>,
    latest: Option<Timestamp>,
    dated_back: BTreeSet<Option<RunName>>,
}

impl Notes {
    /// Looks at a record. Of each run the first record that is dated back is noted.
    pub(super) fn take(&mut self, position: u64, record: &Record) {
        let (header, run) = (record.header(), record.header().run.clone());
        if header.kind == Kind::Run
            && record.body().value("/stage").is_some_and(|stage| stage == 0_u64.into())
        {
            self.list.push(VerifyNote::at(NoteCode::Stage0, position, run.clone()));
        }
        let text = |name: &str| record.body().value(name);
        if header.kind == Kind::Key && text("/purpose").is_some_and(|purpose| purpose == ADOPTED.into()) {
            let records = text("/records").and_then(|records| records.as_u64());
            self.list
                .push(VerifyNote { records, ..VerifyNote::at(NoteCode::Adopted, position, run.clone()) });
        }
        if let Some(latest) = self.latest.filter(|latest| header.ts.ms() + SKEW_MS < latest.ms())
            && self.dated_back.insert(run.clone())
        {
            let times = Some((header.ts, latest));
            self.list.push(VerifyNote { times, ..VerifyNote::at(NoteCode::DatedBack, position, run) });
        }
        self.latest = self.latest.max(Some(header.ts));
    }
}

impl VerifyReport {
    /// Whether every run that was asked about is witnessed to the last tick that was asked about.
    pub fn is_witnessed(&self) -> bool {
        let is_by = |run: &RunName| self.witnesses.iter().any(|witness| witness.runs.contains(run));
        // A log without runs has its other records.
        let is_log = || self.witnesses.iter().any(|witness| witness.to >= self.reach);
        self.runs.iter().all(|run| is_by(&run.run)) && (!self.runs.is_empty() || is_log())
    }

    /// Gives the verdict VERIFIED to a log that is intact, complete and witnessed. A value that an `erase` record lists and that is
    /// here keeps it from that.
    pub(super) fn raise(&mut self) {
        let is_erased = self.notes.iter().all(|note| note.code != NoteCode::NotErased);
        let is_all = !self.is_quick && self.whole.is_complete() && self.is_witnessed() && is_erased;
        if self.verdict == VerifyVerdict::Intact && is_all {
            self.verdict = VerifyVerdict::Verified;
        }
    }

    /// Adds the facts that are required and do not hold. A log that is worse than intact has its own exit code.
    pub fn require(&mut self, complete: bool, witness: bool, compared: bool) {
        let is_compared = self.compared.as_ref().is_some_and(|log| log.word != ComparedWord::NotCompared);
        let open = [
            (complete && !self.whole.is_complete(), Code::E0312),
            (witness && !self.is_witnessed(), Code::E0313),
            (compared && !is_compared, Code::E0314),
        ];
        self.unmet.extend(open.into_iter().filter_map(|(is_open, code)| is_open.then_some(code)));
        if self.unmet.contains(&Code::E0314) {
            self.verdict = self.verdict.max(VerifyVerdict::Unverifiable);
        }
    }
}
