//! Verification of a log with what is kept here of it: the newest head that was signed, and the key it was begun with.
//!
//! Rule: a log that was rolled back, or whose key was replaced, is never called intact where its head or its key is kept; test
//! `a_rolled_back_store_is_never_intact`.

pub mod question;

use std::sync::Arc;

use dendrer_object::note::{SignedNote, VerifierKey};
use dendrer_object::{Code, Digest};
use dendrer_store::embedded::{Options, VerifyOptions};
use dendrer_store::prelude::*;
use dendrer_store::{DamageKind, Embedded, LogReport, Store, StoreInfo};

use super::Follow;
use super::tiles::TileCheck;
use crate::error::Error;
use crate::evidence::bundle::Opened;
use crate::evidence::verify::judge::{KnownKey, records_to_read};
use crate::evidence::verify::{self, VerifyReading, VerifyReport, VerifyTerms, VerifyVerdict};
use crate::repo::is_of_the_log;
use crate::repo::keys::{accept, known_key};
use crate::repo::mark;
use crate::repo::{Repo, open_with_keys};
use crate::run::trace::ReadHandle as _;
use crate::trust::Trust;

impl Repo {
    /// Verifies runs of the store, or all of it: each record, the files beside the log, the newest head that was signed here, and
    /// the key that the log was begun with here. Nothing is written.
    ///
    /// ```
    /// use dendrer::prelude::*;
    /// use dendrer::verify::{VerifyTerms, VerifyVerdict};
    ///
    /// # fn main() -> Result<(), dendrer::Error> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let repo = Repo::init(&dir.path().join(".dendrer"), Arc::new(MemoryTrust::new()))?;
    /// let report = repo.verify(&VerifyTerms::default(), &mut ())?;
    /// assert_eq!(report.verdict, VerifyVerdict::Intact);
    /// # Ok(())
    /// # }
    /// ```
    pub fn verify(&self, question: &VerifyTerms, follow: &mut dyn Follow) -> Result<VerifyReport, Error> {
        let trust = &**self.trust();
        match self.dir() {
            Some(dir) => {
                let store = open_with_keys(dir, Options::read(), self.key().cloned(), trust)?;
                of_files(&mut Arc::new(store), question, trust, follow)
            }
            None => {
                let store = self.reader()?;
                let kept = Kept::of(store.info(), trust);
                let pinned = kept.pin(question);
                let report = verify::store(&watched(&store, &pinned, follow)?, &pinned)?;
                let note = store.checkpoint().ok().flatten();
                let mut report = kept.judge(report, store.info(), note.as_ref(), &question.keys)?;
                if let Some(trouble) = store.trouble().filter(|trouble| is_of_the_log(trouble)) {
                    report.verdict = report.verdict.max(VerifyVerdict::Tampered);
                    report.add_finding(trouble.code(), trouble.to_string(), None);
                }
                Ok(report)
            }
        }
    }
}

/// Verifies a bundle, with what is kept here of its log.
pub fn of_bundle(opened: &Opened, question: &VerifyTerms, trust: &dyn Trust) -> Result<VerifyReport, Error> {
    let info = opened.store.info();
    let kept = Kept::of(info, trust);
    let report = verify::bundle(opened, &kept.pin(question))?;
    let note = SignedNote::parse(opened.bundle.checkpoint.as_bytes()).ok();
    kept.judge(report, info, note.as_ref(), &question.keys)
}

/// Verifies a store in a directory, as [`Repo::verify`] does. The store may be damaged; `store` has no other handle.
///
/// # Panics
///
/// If `store` was cloned.
pub fn of_files(
    store: &mut Arc<Embedded>,
    question: &VerifyTerms,
    trust: &dyn Trust,
    follow: &mut dyn Follow,
) -> Result<VerifyReport, Error> {
    let mut kept = Kept::of(store.info(), trust);
    // Another process may have written and signed since this handle read the log.
    let size = Arc::get_mut(store).expect("the store has one handle").refresh()?;
    let found = store.mark()?;
    // A backup names its own end, and the store that it was made of has more records.
    let later = match &found {
        Some(mark) if !mark.in_store => kept.head.take_if(|(seen, _)| *seen > size),
        _ => None,
    };
    let (mut report, files) = both(store, &kept.pin(question), follow)?;
    if let Some(why) = kept.unknown.take() {
        report.add_unknown_memory(&why);
    }
    if let Some(message) = found.as_ref().and_then(mark::hides) {
        report.verdict = report.verdict.max(VerifyVerdict::Tampered);
        report.add_finding(Code::E0307, message, None);
    }
    report
        .not_checked
        .extend(found.as_ref().and_then(|mark| mark::closes(mark).or_else(|| mark::unfinished(mark))));
    if let Some((seen, _)) = later {
        let line =
            format!("the log of {seen} records that was signed here since this backup of {size} was made");
        report.not_checked.push(line);
    }
    let note = store.checkpoint().ok().flatten();
    let mut report = kept.judge(report, store.info(), note.as_ref(), &question.keys)?;
    if let (Some(keys), true) = (&report.keys, report.is_key_known && report.verdict <= VerifyVerdict::Intact)
    {
        accept(keys, store.info().id, trust);
    }
    report.add_damage(files);
    Ok(report)
}

/// What is kept here of a log.
struct Kept<'t> {
    trust: &'t dyn Trust,
    /// Size and root of the newest head that was signed here.
    head: Option<(u64, Digest)>,
    /// Why it cannot be read.
    unknown: Option<String>,
}

impl<'t> Kept<'t> {
    fn of(info: &StoreInfo, trust: &'t dyn Trust) -> Kept<'t> {
        match trust.head(info.id) {
            Ok(head) => Kept { trust, head: head.map(|head| (head.size, head.root)), unknown: None },
            Err(error) => Kept { trust, head: None, unknown: Some(error.in_full()) },
        }
    }

    /// Returns the question with the head that the log must extend, and without the key: that is judged with the own one.
    fn pin(&self, question: &VerifyTerms) -> VerifyTerms {
        let mut pinned = question.pinned.clone();
        pinned.extend(self.head);
        VerifyTerms { pinned, keys: Vec::new(), ..question.clone() }
    }

    /// Judges the key of the log by the one it was begun with here, and by the one that was given.
    fn judge(
        self,
        mut report: VerifyReport,
        info: &StoreInfo,
        note: Option<&SignedNote>,
        given: &[VerifierKey],
    ) -> Result<VerifyReport, Error> {
        if let Some(why) = &self.unknown {
            report.add_unknown_memory(why);
        }
        let Some(keys) = report.keys.clone() else { return Ok(report) };
        let known = match known_key(&keys, info.id, self.trust) {
            Ok(known) => known,
            // A head that cannot be read was reported.
            Err(_) if self.unknown.is_some() => KnownKey::No,
            Err(error) => {
                report.add_unknown_memory(&error.in_full());
                KnownKey::No
            }
        };
        report.judge_keys(&keys, note, &known, given);
        Ok(report)
    }
}

fn watched(
    store: &Arc<dyn Store>,
    question: &VerifyTerms,
    follow: &mut dyn Follow,
) -> Result<Arc<dyn Store>, Error> {
    Ok(follow.stage("records", Some(records_to_read(&**store, question)?)).over(store))
}

/// Verifies the records, and what records cannot show: frames, commit frames, files beside the log. If all of a sound store is
/// asked for, each record is read once for both.
fn both(
    store: &Arc<Embedded>,
    question: &VerifyTerms,
    follow: &mut dyn Follow,
) -> Result<(VerifyReport, LogReport), Error> {
    let watch = follow.stage("records", Some(records_to_read(&**store, question)?));
    let files = |watch: &crate::watch::Watch| VerifyOptions {
        index: true,
        meter: watch.meter().clone(),
        ..VerifyOptions::default()
    };
    let mut tiles = TileCheck::new(store)?;
    if question.runs.is_some() {
        let files_watch = follow.stage("records in the files of the store", Some(store.tree().size));
        let mut take = |_, record| tiles.take(&record);
        let mut files = store.verify_handing_over(&files(&files_watch), Some(&mut take))?;
        tiles.end(&mut files);
        let handle = without_index(store, &files)?;
        return Ok((verify::store(&watch.over(&handle), question)?, files));
    }
    let handle = store.to_handle();
    let mut reading = VerifyReading::new(&watch.over(&handle), question)?;
    let mut take = |position, record| {
        tiles.take(&record);
        reading.take(position, record);
    };
    let mut report = store.verify_handing_over(&files(&watch), Some(&mut take))?;
    tiles.end(&mut report);
    if report.findings.is_empty()
        && let Some(whole) = reading.finish()?
    {
        return Ok((whole, report));
    }
    // What is wrong is looked for record by record.
    let handle = without_index(store, &report)?;
    Ok((verify::store(&watched(&handle, question, follow)?, question)?, report))
}

/// Returns a handle that does not read the index, if that is damaged: the verdict must not depend on it.
fn without_index(store: &Arc<Embedded>, files: &LogReport) -> Result<Arc<dyn Store>, Error> {
    if files.findings.iter().all(|damage| damage.kind != DamageKind::Index) {
        return Ok(store.to_handle());
    }
    let plain = Embedded::open(store.dir(), Options { index: false, ..Options::read() })?;
    Ok(Arc::new(plain))
}
