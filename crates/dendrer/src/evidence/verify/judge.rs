//! Findings that come from more than the records of one log: keys, damaged files, other copies of the log.
//!
//! A verdict only becomes worse here, but for a witness. Everything that was not checked is added to
//! [`Report::not_checked`], so an answer never claims more than was compared.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use dendrer_kernel::chain_rules::ChainLine;
use dendrer_object::note::{NoteError, SignedNote, VerifierKey};
use dendrer_object::record::Entry;
use dendrer_object::{Code, Digest, RunName, StoreId};
use dendrer_store::{DamageKind, LogReport as Structure, Store, StoreInfo};

use super::{RunReport, VerifyFinding, VerifyReport, VerifyTerms, VerifyVerdict};
use crate::error::Error;
use crate::handle::ReadHandle;
use crate::run::trace::{Trace, all_runs};

/// The code of a log that is not the one that was signed here.
pub const ANOTHER_LOG: Code = Code::E0307;

/// The line for `--require-witness` without a witness.
const NO_WITNESS: &str = "a witness, which --require-witness asks for: nothing kept elsewhere is known to agree with all of it \
                          (a tip is given with --tip, a key with --verifier)";

/// A log that was verified.
#[derive(Debug, Clone)]
pub struct VerifiedLog {
    /// The file or the directory, as it was named.
    pub name: String,
    /// The findings.
    pub report: VerifyReport,
    /// Whether it is a bundle.
    pub is_bundle: bool,
    /// The id of the store.
    pub store: StoreId,
    /// The key that signs the log.
    pub key: VerifierKey,
    /// The records of runs that another log may have as well, by tick; empty where one log is verified alone.
    pub chains: BTreeMap<RunName, Vec<Digest>>,
    /// The entries of the log that are shown, by position; empty where one log is verified alone.
    pub positions: BTreeMap<u64, Entry>,
}

impl VerifiedLog {
    /// Whether all of the log is signed, and nothing is found but that another one is signed as well.
    fn is_signed(&self) -> bool {
        let is_of_others = |finding: &VerifyFinding| finding.code == ANOTHER_LOG;
        self.report.signed == Some(self.report.log.0) && self.report.findings.iter().all(is_of_others)
    }
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

    /// Judges the key of the log.
    ///
    /// Two cases look alike and differ. A key that was *given* is not the log's: nothing signed can be checked with it, and
    /// the record may still be intact, so the verdict is UNVERIFIABLE. The key that *this user's own store* was made with
    /// (`own`) is not the log's: a store keeps its key for life, so the key was replaced, and the verdict is TAMPERED.
    pub fn judge_keys(
        &mut self,
        info: &StoreInfo,
        note: Option<&SignedNote>,
        own: Option<&VerifierKey>,
        given: Option<&VerifierKey>,
    ) {
        if let Some(own) = own.filter(|own| **own != info.key) {
            let message = "the log names another key than the one its store was made with here";
            self.add_key_finding(message, &info.key, own);
        }
        let Some(given) = given.filter(|given| **given != info.key) else { return };
        // A key that is not the log's own is a witness if it signed the checkpoint as well.
        match note.map(|note| note.verify(std::slice::from_ref(given))) {
            Some(Ok(agreed)) if !agreed.is_empty() && self.signed < Some(self.reach) => {
                let line = format!("whether {} knows what stands behind what it signed", given.name());
                self.not_checked.push(line);
            }
            Some(Ok(agreed)) if !agreed.is_empty() => {
                self.witnesses.push(format!("the key given, {}", given.name()));
                if self.verdict == VerifyVerdict::Intact {
                    self.verdict = VerifyVerdict::Verified;
                }
            }
            Some(Err(NoteError::WrongSignature { .. })) => {
                let message = "a signature in the name of the key that was given is not that key's";
                self.add_key_finding(message, &info.key, given);
            }
            _ => {
                let line =
                    format!("a signature under the key that was given: the log is signed by {}", info.key);
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
        if structure.unfinished {
            self.not_checked.push("bytes behind the last group, which were never acknowledged".to_owned());
        }
        for damage in structure.findings {
            if (damage.kind, damage.what) == (DamageKind::Index, "index") {
                // The answer does not depend on the index.
                self.not_checked.push(format!(
                    "the index, which is damaged ({}); dendrer doctor --fix makes it anew",
                    damage.found
                ));
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

    /// Whether the index alone is wrong. It follows from the log, so it can be rebuilt; an index that knows more than the log
    /// is evidence of a loss and has another code.
    pub fn has_only_index_findings(&self) -> bool {
        let of_index = |finding: &VerifyFinding| finding.code == Code::E0309;
        !self.findings.is_empty() && self.findings.iter().all(of_index) && self.findings_left_out == 0
    }

    /// Adds what the caller did not ask for, and that a witness is required and missing.
    pub fn close(&mut self, replayed: bool, require_witness: bool) {
        if !replayed && self.verdict <= VerifyVerdict::Intact {
            self.not_checked.push("replay (--replay)".to_owned());
        }
        // A witness that is required and missing is like a withheld value: it leaves the log unverifiable.
        if require_witness && self.verdict == VerifyVerdict::Intact {
            self.verdict = VerifyVerdict::Unverifiable;
            self.not_checked.push(NO_WITNESS.to_owned());
        }
    }

    /// Lists the runs whose notes change: an intact run with its tip, any other with `None`. A run that was verified in part
    /// and is intact keeps its note.
    pub fn notes(&self) -> impl Iterator<Item = (RunName, Option<Digest>)> {
        let is_intact = self.verdict <= VerifyVerdict::Intact;
        self.runs.iter().filter_map(move |run| match (is_intact && run.passed == 0, run.line.tip) {
            (true, Some(tip)) => Some((run.run.clone(), Some(tip))),
            (false, _) if is_intact => None,
            _ => Some((run.run.clone(), None)),
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

/// The first position of the log at which both show an entry, and not the same.
fn parted_at(a: &VerifiedLog, b: &VerifiedLog) -> Option<(u64, [Digest; 2])> {
    let mut pairs = a.positions.iter().filter_map(|(at, entry)| Some((at, entry, b.positions.get(at)?)));
    let (at, own, other) = pairs.find(|(_, own, other)| own != other)?;
    Some((*at, [own.hash, other.hash]))
}

/// Adds to copies of the same log that they are two histories, where a run or a position of the log shows it. Returns the pairs
/// of them.
fn compare_chains(logs: &mut [&mut VerifiedLog]) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for at in 0..logs.len() {
        for other in (0..logs.len()).filter(|other| *other != at) {
            let (own, twin) = (&*logs[at], &*logs[other]);
            let is_twin =
                own.store == twin.store && own.key == twin.key && own.is_signed() && twin.is_signed();
            let name = twin.name.clone();
            let (run, tick, position, [stored, computed], what) =
                match (parted(own, twin), parted_at(own, twin)) {
                    _ if !is_twin => continue,
                    (Some((run, tick, sides)), _) => {
                        let what = format!("tick {tick} of {run}");
                        (Some(run), Some(tick), None, sides, what)
                    }
                    (None, Some((at, sides))) => {
                        (None, None, Some(at), sides, format!("position {at} of the log"))
                    }
                    (None, None) => continue,
                };
            found.insert((own.name.clone(), name.clone()));
            let log = &mut *logs[at];
            log.report.verdict = VerifyVerdict::Equivocation;
            // Which of the two was recorded cannot be known here.
            log.report.runs.iter_mut().for_each(|report| report.line.last_good = None);
            log.report.findings.push(VerifyFinding {
                code: ANOTHER_LOG,
                message: format!(
                    "the same key signed {name}, which has another record at {what}: there are two histories"
                ),
                run,
                tick,
                position,
                stored: Some(stored.short()),
                computed: Some(computed.short()),
            });
        }
    }
    found
}

/// Compares copies of the same log: each may be what was signed, and they still be two histories. Of logs of different sizes
/// the runs are compared that both have, and the roots at their ends are not.
pub fn compare_histories(logs: &mut [&mut VerifiedLog]) {
    let two = compare_chains(logs);
    let sound = logs.iter().filter(|log| log.is_signed());
    let ends: Vec<_> = sound
        .filter_map(|log| {
            let (size, root) = log.report.log;
            Some((log.name.clone(), (log.store, log.key.clone()), size, root?))
        })
        .collect();
    for log in logs {
        let (size, Some(root)) = log.report.log else { continue };
        let origin = (log.store, log.key.clone());
        let twins: Vec<_> = ends.iter().filter(|(name, of, ..)| *of == origin && *name != log.name).collect();
        let is_known = |name: &String| two.contains(&(log.name.clone(), name.clone()));
        let twins: Vec<_> = twins.into_iter().filter(|(name, ..)| !is_known(name)).collect();
        let elsewhere: Vec<_> = twins.iter().filter(|(_, _, other, _)| *other != size).collect();
        match elsewhere.as_slice() {
            [] => {}
            [(name, _, other, _)] => log.report.not_checked.push(format!(
                "whether {} and {name} are of one history: their logs end at {size} and {other} records",
                log.name
            )),
            several => log.report.not_checked.push(format!(
                "whether {} and {} others of the same log are of one history: their logs end elsewhere",
                log.name,
                several.len()
            )),
        }
        for (name, _, other, found) in twins {
            if *other == size && *found != root && log.is_signed() {
                log.report.verdict = VerifyVerdict::Equivocation;
                // Which of the two was recorded cannot be known here.
                log.report.runs.iter_mut().for_each(|run| run.line.last_good = None);
                let message = format!(
                    "the same key signed {name}, another log of as many records: there are two histories"
                );
                log.report.add_finding(ANOTHER_LOG, message, Some((root.short(), found.short())));
            }
        }
    }
}

/// Returns how many records a verification of a store reads.
pub fn records_to_read(store: &dyn Store, options: &VerifyTerms) -> Result<u64, Error> {
    let mut records = 0;
    let mut ticks = 0;
    for run in all_runs(store)? {
        let wanted = options.runs.as_ref().is_none_or(|wanted| wanted.contains(&run.name));
        records += if wanted { run.transitions + run.refusals + 1 } else { 0 };
        ticks += if wanted { run.head.tick.unwrap_or(0) + run.refusals } else { 0 };
    }
    let read = if options.runs.is_some() { records } else { store.tree().size };
    Ok(read + if options.replay { ticks } else { 0 })
}
