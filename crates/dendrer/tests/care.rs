//! A Rust program that uses the library alone can back up, restore, check and export a store, with every protection of the
//! `dendrer` program.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dendrer::address::Address;
use dendrer::bundle;
use dendrer::care::backup::{BackupError, backup};
use dendrer::care::check::{
    FileFact, FilesReport, SignedFact, StoreFact, check_derived, check_files, check_log, figures,
};
use dendrer::care::export::{ExportError, ExportTerms, WithholdError, WithholdTerms, plan};
use dendrer::care::restore::{NewerRecords, RestoreError, RestoreTerms, Restored, UnsoundBackup, restore};
use dendrer::care::spare::{Rule, clean};
use dendrer::care::{CareNote, Follow};
use dendrer::error::{Error, NoStore};
use dendrer::kernel::step::Start;
use dendrer::repo::{Mode, Repo, Warning};
use dendrer::store::WriterSecret;
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::prelude::*;
use dendrer::trust::{MemoryTrust, Trust, UserTrust, make_key};
use dendrer::verify;
use dendrer::watch::Watch;
use dendrer_object::Intent;

const ANEW: RestoreTerms = RestoreTerms { replace: false, discard_newer: false };
const REPLACE: RestoreTerms = RestoreTerms { replace: true, discard_newer: false };
const DISCARD: RestoreTerms = RestoreTerms { replace: true, discard_newer: true };

/// A directory with a store of one run, and the trust that has its key.
struct Place {
    dir: tempfile::TempDir,
    trust: Arc<dyn Trust>,
}

/// A place for each kind of trust, with a run of so many ticks.
fn places(ticks: u64) -> [Place; 2] {
    [true, false].map(|in_memory| {
        let dir = tempfile::tempdir().unwrap();
        let trust: Arc<dyn Trust> = match in_memory {
            true => Arc::new(MemoryTrust::new()),
            false => Arc::new(UserTrust::at(dir.path().join("config"))),
        };
        let place = Place { dir, trust };
        drop(Repo::init(&place.store(), Arc::clone(&place.trust)).unwrap());
        place.record(ticks);
        place
    })
}

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn store(&self) -> PathBuf {
        self.path(".dendrer")
    }

    fn record(&self, ticks: u64) {
        let repo = Repo::open(&self.store(), Arc::clone(&self.trust), Mode::Write).unwrap();
        let run = "r".parse().unwrap();
        let mut recorder = match repo.run(&run) {
            Ok(_) => repo.recorder(&run).unwrap(),
            Err(_) => repo.begin(&Start::new(run)).unwrap(),
        };
        for _ in 0..ticks {
            recorder.propose(&Intent::new("plan.update".parse().unwrap(), "agent")).unwrap();
        }
        recorder.commit().unwrap();
        drop(recorder);
        repo.close().unwrap();
    }

    fn back_up(&self, name: &str) -> Result<u64, BackupError> {
        let made = backup(&self.store(), &self.path(name), &*self.trust, &mut ())?;
        assert_eq!(made.path, self.path(name));
        Ok(made.copied.tree.size - made.copied.before)
    }

    fn restore(&self, name: &str, dir: &str, terms: RestoreTerms) -> Result<Restored, RestoreError> {
        restore(&self.path(name), &self.path(dir), terms, &*self.trust, &mut ())
    }

    /// Number of records of the store in a directory.
    fn size(&self, name: &str) -> u64 {
        Embedded::open(&self.path(name), Options::read()).unwrap().tree().size
    }
}

/// Keeps what is known before the end.
#[derive(Default)]
struct Heard {
    notes: Vec<String>,
    stages: Vec<(&'static str, bool)>,
    forbidden: Option<PathBuf>,
}

impl Follow for Heard {
    fn note(&mut self, note: &CareNote) {
        self.notes.push(match note {
            CareNote::Warning(warning) => warning.code().to_string(),
            other => format!("{other:?}"),
        });
    }

    fn stage(&mut self, unit: &'static str, total: Option<u64>) -> Watch {
        self.stages.push((unit, total.is_some()));
        Watch::new()
    }

    fn may_make(&mut self, path: &Path) -> bool {
        self.forbidden.as_deref() != Some(path)
    }
}

/// Changes one byte of the log in a directory.
fn damage(dir: &Path) {
    let segment = dir.join("segments/00000000.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(segment, bytes).unwrap();
}

#[test]
fn a_backup_goes_on_and_becomes_a_store_again() {
    for place in places(3) {
        let all = place.size(".dendrer");
        assert_eq!(place.back_up("bk").unwrap(), all);
        place.record(2);
        assert_eq!(place.back_up("bk").unwrap(), 2);
        let restored = place.restore("bk", "again", ANEW).unwrap();
        assert_eq!(restored.path, place.path("again/.dendrer"));
        assert_eq!((restored.copied.tree.size, restored.last_signed_here), (all + 2, Some(all + 2)));
        assert!(restored.refused.is_none() && restored.has_key && restored.aside.is_none());
        let mut heard = Heard::default();
        backup(&place.store(), &place.path("b2"), &*place.trust, &mut heard).unwrap();
        assert_eq!(heard.stages, [("bytes", true), ("records verified", true)]);
        assert!(heard.notes.is_empty());
    }
}

#[test]
fn a_backup_is_made_in_a_place_of_its_own() {
    for place in places(1) {
        std::fs::write(place.path("file"), "x").unwrap();
        let outer = place.dir.path();
        let codes = [
            (place.path("file"), "E0115"),
            (place.path("other/.dendrer"), "E0106"),
            (place.store().join("inside"), "E0106"),
            (outer.to_owned(), "E0106"),
        ];
        for (to, code) in codes {
            let error = backup(&place.store(), &to, &*place.trust, &mut ()).unwrap_err();
            assert_eq!(error.code(), code, "{error}");
        }
        #[cfg(unix)]
        {
            std::fs::create_dir(place.path("links")).unwrap();
            std::os::unix::fs::symlink(place.store().join("segments"), place.path("links/segments")).unwrap();
            let error = place.back_up("links").unwrap_err();
            assert!(matches!(error, BackupError::IsLink { .. }), "{error}");
        }
        let forbidden = Some(place.path("bk"));
        let mut heard = Heard { forbidden, ..Heard::default() };
        let error = backup(&place.store(), &place.path("bk"), &*place.trust, &mut heard).unwrap_err();
        assert!(matches!(error, BackupError::Declined { .. }) && !place.path("bk").exists());
    }
}

#[test]
fn a_store_that_is_less_than_it_was_is_not_backed_up_unnoticed() {
    for place in places(3) {
        place.back_up("bk").unwrap();
        place.record(3);
        // The mark of the older backup would end the log of the store.
        for file in ["backup.json", "checkpoint"] {
            std::fs::copy(place.path("bk").join(file), place.store().join(file)).unwrap();
        }
        let error = place.back_up("b2").unwrap_err();
        assert!(matches!(error, BackupError::Hidden(_)) && error.code() == "E0307", "{error}");
        let error = place.restore(".", "b2", ANEW).unwrap_err();
        assert!(matches!(error, RestoreError::Hidden(_)), "{error}");
        std::fs::remove_file(place.store().join("backup.json")).unwrap();
        // An older copy is backed up, with a warning.
        place.restore("bk", "old", ANEW).unwrap();
        let mut heard = Heard::default();
        backup(&place.path("old/.dendrer"), &place.path("b3"), &*place.trust, &mut heard).unwrap();
        assert_eq!(heard.notes, ["E0307"]);
        damage(&place.store());
        let error = place.back_up("b2").unwrap_err();
        assert!(matches!(error, BackupError::Damaged(_) | BackupError::Incomplete(_)), "{error:?}");
        assert!(Embedded::open(&place.path("b2"), Options::read()).is_err());
    }
}

#[test]
fn a_restored_older_store_is_read_and_never_written() {
    for place in places(3) {
        let before = place.size(".dendrer");
        place.back_up("bk").unwrap();
        place.record(2);
        let restored = place.restore("bk", "old", ANEW).unwrap();
        assert!(matches!(restored.refused, Some(Error::AnotherLog { .. })));
        assert_eq!((restored.copied.tree.size, restored.last_signed_here), (before, Some(before + 2)));
        let path = place.path("old/.dendrer");
        let error = Repo::open(&path, Arc::clone(&place.trust), Mode::Write).unwrap_err();
        assert!(matches!(error, Error::AnotherLog { .. }));
        let repo = Repo::open(&path, Arc::clone(&place.trust), Mode::Read).unwrap();
        assert!(matches!(repo.warnings(), [Warning::AnotherLog(_)]));
    }
}

#[test]
fn a_store_is_replaced_only_on_terms_and_kept_aside() {
    for place in places(3) {
        place.back_up("bk").unwrap();
        let size = place.size(".dendrer");
        let error = place.restore("bk", ".", ANEW).unwrap_err();
        assert!(matches!(error, RestoreError::IsStore { .. }), "{error}");
        place.record(2);
        let error = place.restore("bk", ".", REPLACE).unwrap_err();
        let RestoreError::Newer { why, .. } = &error else { panic!("{error}") };
        assert!(matches!(**why, NewerRecords::More(2)), "{why:?}");
        assert_eq!(place.size(".dendrer"), size + 2);
        // A user who was never here learns from the replaced store what was signed.
        let stranger = MemoryTrust::new();
        let restored = restore(&place.path("bk"), place.dir.path(), DISCARD, &stranger, &mut ()).unwrap();
        assert!(matches!(restored.refused, Some(Error::AnotherLog { .. })) && !restored.has_key);
        let aside = restored.aside.unwrap();
        assert_eq!(aside, place.path(".dendrer.replaced"));
        assert_eq!((place.size(".dendrer"), place.size(".dendrer.replaced")), (size, size + 2));
        // Another store is not replaced on any terms.
        let [other, _] = places(1);
        other.back_up("bk").unwrap();
        let error = place.restore(other.path("bk").to_str().unwrap(), ".", DISCARD).unwrap_err();
        assert!(matches!(error, RestoreError::OtherStore { .. }), "{error}");
    }
}

#[test]
fn a_backup_is_checked_before_anything_is_made_of_it() {
    for place in places(9) {
        place.back_up("bk").unwrap();
        let id = Embedded::open(&place.store(), Options::read()).unwrap().info().id;
        // A user who has begun a log of this id with another key.
        let impostor = MemoryTrust::new();
        impostor.keep_key(id, &Arc::new(make_key(&id.origin()).unwrap())).unwrap();
        let error = restore(&place.path("bk"), &place.path("x"), ANEW, &impostor, &mut ()).unwrap_err();
        let RestoreError::Unsound { why, .. } = &error else { panic!("{error}") };
        assert!(matches!(**why, UnsoundBackup::OtherKey { .. }) && error.code() == "E0308");
        damage(&place.path("bk"));
        let error = place.restore("bk", "x", ANEW).unwrap_err();
        assert!(matches!(error, RestoreError::Unsound { .. }), "{error:?}");
        assert!(!place.path("x").exists());
        // Nor is anything made where the caller has other plans.
        place.back_up("b2").unwrap();
        let mut heard = Heard { forbidden: Some(place.path("x/.dendrer.restoring")), ..Heard::default() };
        let error =
            restore(&place.path("b2"), &place.path("x"), ANEW, &*place.trust, &mut heard).unwrap_err();
        assert!(matches!(error, RestoreError::Declined { .. }) && !place.path("x").exists());
    }
}

#[test]
fn an_interrupted_restore_leaves_nothing_that_is_written_over() {
    for place in places(3) {
        place.back_up("bk").unwrap();
        place.restore("bk", "again", ANEW).unwrap();
        let left = place.path("again/.dendrer.restoring");
        std::fs::rename(place.path("again/.dendrer"), &left).unwrap();
        let mut heard = Heard::default();
        restore(&place.path("bk"), &place.path("again"), ANEW, &*place.trust, &mut heard).unwrap();
        assert_eq!(heard.notes.len(), 1);
        assert!(place.path("again/.dendrer.replaced/store.json").is_file() && !left.exists());
    }
}

#[test]
fn no_other_store_is_found_after_an_interrupted_restore() {
    for place in places(1) {
        let inner = place.path("inner");
        std::fs::create_dir(&inner).unwrap();
        assert_eq!(Repo::find(&inner).unwrap(), place.store());
        for left in [".dendrer.restoring", ".dendrer.replaced"] {
            std::fs::create_dir(inner.join(left)).unwrap();
            let error = Repo::find(&inner).unwrap_err();
            let Error::NoStore(why) = &error else { panic!("{error}") };
            assert!(matches!(**why, NoStore::Interrupted { searched: true, .. }), "{error}");
            std::fs::remove_dir(inner.join(left)).unwrap();
        }
    }
}

/// Returns the bundle of the run, or why there is none.
fn exported(repo: &Repo, terms: ExportTerms) -> Result<Vec<u8>, ExportError> {
    let run = Address::parse("r").unwrap();
    let mut text = Vec::new();
    plan(repo, &[run], terms, &mut ())?.write::<ExportError>(&mut |line| {
        text.extend_from_slice(line);
        Ok(())
    })?;
    Ok(text)
}

fn verifies(text: &[u8]) -> bool {
    let opened = bundle::open(PathBuf::new(), text).unwrap();
    verify::bundle(&opened, &verify::VerifyTerms::default()).unwrap().findings.is_empty()
}

#[test]
fn an_export_verifies_or_is_refused() {
    for place in places(3) {
        let open =
            |trust: &Arc<dyn Trust>, mode| Repo::open(&place.store(), Arc::clone(trust), mode).unwrap();
        let stranger: Arc<dyn Trust> = Arc::new(MemoryTrust::new());
        assert!(verifies(&exported(&open(&stranger, Mode::Read), ExportTerms::default()).unwrap()));
        let writer = MemoryTrust::new();
        let info = open(&stranger, Mode::Read).info().clone();
        writer.keep_writer(info.id, WriterSecret::of(&place.trust.key(&info).unwrap().unwrap()));
        let writer: Arc<dyn Trust> = Arc::new(writer);
        let repo = open(&writer, Mode::Write);
        let run = "r".parse().unwrap();
        let mut recorder = repo.recorder(&run).unwrap();
        recorder.propose(&Intent::new("plan.update".parse().unwrap(), "agent")).unwrap();
        recorder.commit().unwrap();
        drop(recorder);
        // Without the key the newest record stays unsigned.
        let error = exported(&repo, ExportTerms::default()).unwrap_err();
        assert!(matches!(error, ExportError::LastNotSigned(1)) && error.code() == "E0804", "{error}");
        drop(repo);
        let repo = open(&place.trust, Mode::Write);
        assert!(verifies(&exported(&repo, ExportTerms::default()).unwrap()));
        let withheld = WithholdTerms { places: vec!["/nosuch".to_owned()], ..WithholdTerms::default() };
        let error = exported(&repo, ExportTerms { withheld, ..ExportTerms::default() }).unwrap_err();
        assert!(matches!(error, ExportError::Withhold(WithholdError::NothingThere { .. })), "{error}");
        let of_bundle = Address::parse("file.dnd").unwrap();
        let error = plan(&repo, &[of_bundle], ExportTerms::default(), &mut ()).unwrap_err();
        assert!(matches!(error, ExportError::OfBundle), "{error}");
        drop(repo);
        // An older copy has no key to be signed with, and its checkpoint covers it.
        place.back_up("bk").unwrap();
        place.record(1);
        place.restore("bk", "old", ANEW).unwrap();
        let old = Repo::open(&place.path("old/.dendrer"), Arc::clone(&place.trust), Mode::Read).unwrap();
        assert!(verifies(&exported(&old, ExportTerms::default()).unwrap()));
        // A checkpoint that no key signed covers nothing.
        let checkpoint = place.path("old/.dendrer/checkpoint");
        let sound = std::fs::read_to_string(&checkpoint).unwrap();
        let flipped = format!("{}{}", &sound[..sound.len() - 9], "AAAAAAA=\n");
        for file in [&checkpoint, &place.path("old/.dendrer/log/checkpoint")] {
            std::fs::write(file, &flipped).unwrap();
        }
        let old = Repo::open(&place.path("old/.dendrer"), Arc::clone(&place.trust), Mode::Read).unwrap();
        let error = exported(&old, ExportTerms::default()).unwrap_err();
        assert_eq!(error.code(), "E0308", "{error}");
        for file in [&checkpoint, &place.path("old/.dendrer/log/checkpoint")] {
            std::fs::write(file, &sound).unwrap();
        }
        damage(&place.path("old/.dendrer"));
        let old = Repo::open(&place.path("old/.dendrer"), Arc::clone(&place.trust), Mode::Read).unwrap();
        assert!(exported(&old, ExportTerms::default()).is_err());
    }
}

/// Cancels the work at its first stage.
struct Stop;

impl Follow for Stop {
    fn stage(&mut self, _: &'static str, _: Option<u64>) -> Watch {
        let watch = Watch::new();
        watch.cancel();
        watch
    }
}

#[test]
fn cancelled_work_on_a_store_ends() {
    for place in places(3) {
        let error = backup(&place.store(), &place.path("bk"), &*place.trust, &mut Stop).unwrap_err();
        assert_eq!(error.code(), "E0810", "{error}");
        place.back_up("whole").unwrap();
        let error =
            restore(&place.path("whole"), &place.path("new"), ANEW, &*place.trust, &mut Stop).unwrap_err();
        assert_eq!(error.code(), "E0810", "{error}");
        assert!(!place.path("new/.dendrer").exists());
        let store = place.opened(".dendrer", Options::read());
        assert_eq!(check_files(store, &*place.trust, &mut Stop).unwrap_err().code(), "E0810");
        let repo = Repo::open(&place.store(), Arc::clone(&place.trust), Mode::Read).unwrap();
        let question = verify::VerifyTerms::default();
        assert_eq!(repo.verify(&question, &mut Stop).unwrap_err().code(), "E0810");
        let watch = Watch::new();
        watch.cancel();
        assert_eq!(repo.watched(watch).runs().unwrap_err().code(), "E0810");
        // The backup that was cut off goes on.
        place.back_up("bk").unwrap();
    }
}

impl Place {
    fn opened(&self, name: &str, options: Options) -> Embedded {
        let store = Embedded::open(&self.path(name), options).unwrap();
        let key = self.trust.key(store.info()).unwrap();
        store.with_key(key)
    }

    fn files(&self, name: &str) -> FilesReport {
        check_files(self.opened(name, Options::read()), &*self.trust, &mut ()).unwrap()
    }

    /// Looks at a store as `doctor` does.
    fn look(&self, name: &str, fix: bool) -> Vec<StoreFact> {
        let mut store = self.opened(name, Options::read());
        let mut facts = check_log(&mut store, fix, &*self.trust).unwrap();
        facts.extend(check_derived(&mut store, fix).unwrap());
        facts
    }
}

#[test]
fn every_file_is_compared_with_the_log() {
    for place in places(3) {
        let report = place.files(".dendrer");
        assert_eq!((report.size, report.lost, report.is_hidden), (place.size(".dendrer"), Some(0), false));
        assert!(report.facts.iter().all(|fact| !matches!(fact, FileFact::Damage(_) | FileFact::Doubt(_))));
        place.back_up("bk").unwrap();
        place.record(2);
        place.restore("bk", "old", ANEW).unwrap();
        let report = place.files("old/.dendrer");
        assert!(report.facts.iter().any(|fact| matches!(fact, FileFact::Doubt(Warning::AnotherLog(_)))));
        std::fs::copy(place.path("bk/backup.json"), place.path(".dendrer/backup.json")).unwrap();
        std::fs::copy(place.path("bk/checkpoint"), place.path(".dendrer/checkpoint")).unwrap();
        let report = place.files(".dendrer");
        assert!(report.is_hidden && report.lost.is_none(), "{report:?}");
        damage(&place.path("bk"));
        let report = place.files("bk");
        assert!(report.facts.iter().any(|fact| matches!(fact, FileFact::Damage(_))));
        assert!(report.lost.is_some_and(|lost| lost > 0), "{report:?}");
    }
}

#[test]
fn nothing_is_repaired_over_a_damaged_log() {
    for place in places(3) {
        std::fs::write(place.path(".dendrer/index.sqlite"), "no database").unwrap();
        std::fs::write(place.path(".dendrer/left.tmp"), "x").unwrap();
        place.back_up("bk").unwrap();
        let wants = |facts: &[StoreFact]| {
            let index = facts.iter().find_map(|fact| match fact {
                StoreFact::Index(index) => Some((index.is_wanting, index.rebuilt.is_some())),
                _ => None,
            });
            let left = facts.iter().find_map(|fact| match fact {
                StoreFact::Leftovers { files, removed } => Some((files.len(), removed.is_some())),
                _ => None,
            });
            (index.unwrap(), left.unwrap())
        };
        let whole = std::fs::read(place.path(".dendrer/segments/00000000.seg")).unwrap();
        damage(&place.store());
        let facts = place.look(".dendrer", true);
        assert!(facts.iter().any(|fact| matches!(fact, StoreFact::Log { trouble: Some(_), .. })));
        let ((_, is_rebuilt), (_, is_removed)) = wants(&facts);
        assert!(!is_rebuilt && !is_removed && place.path(".dendrer/left.tmp").exists());
        std::fs::write(place.path(".dendrer/segments/00000000.seg"), whole).unwrap();
        assert_eq!(wants(&place.look(".dendrer", false)), ((true, false), (1, false)));
        assert_eq!(wants(&place.look(".dendrer", true)), ((true, true), (1, true)));
        assert_eq!(wants(&place.look(".dendrer", false)), ((false, false), (0, false)));
        // Nor is anything of a backup changed.
        std::fs::write(place.path("bk/left.tmp"), "x").unwrap();
        place.look("bk", true);
        assert!(place.path("bk/left.tmp").exists());
    }
}

#[test]
fn a_damaged_checkpoint_is_mended_from_its_copy() {
    for place in places(3) {
        std::fs::write(place.path(".dendrer/checkpoint"), "no checkpoint").unwrap();
        let can_mend = |facts: &[StoreFact]| {
            facts.iter().any(|fact| matches!(fact, StoreFact::Log { trouble: Some(_), can_mend: true }))
        };
        assert!(can_mend(&place.look(".dendrer", false)));
        let facts = place.look(".dendrer", true);
        assert!(
            matches!(facts.first(), Some(StoreFact::Mended(Ok(size))) if *size == place.size(".dendrer"))
        );
        let signed = facts.iter().find(|fact| matches!(fact, StoreFact::Signed(_))).unwrap();
        assert!(matches!(signed, StoreFact::Signed(SignedFact::UpTo(_))), "{signed:?}");
        // An older copy is no repair of a log of which more was signed here.
        place.back_up("bk").unwrap();
        place.record(2);
        place.restore("bk", "old", ANEW).unwrap();
        let facts = place.look("old/.dendrer", true);
        let differs = |fact: &StoreFact| matches!(fact, StoreFact::Signed(SignedFact::Differs { .. }));
        assert!(facts.iter().any(differs), "{facts:?}");
    }
}

#[test]
fn figures_have_no_name_of_a_run() {
    for place in places(3) {
        let store = place.opened(".dendrer", Options::read());
        let found = figures(&store, &*place.trust).unwrap();
        assert_eq!((found.records, found.signed_here), (store.tree().size, Some(store.tree().size)));
        assert_eq!((found.runs.len(), found.names.len(), found.trouble), (1, 1, None));
        let again = figures(&store, &*place.trust).unwrap();
        assert_ne!(found.names, again.names, "the salt is not kept");
    }
}

#[test]
fn a_clean_up_removes_leftovers_and_never_records() {
    for place in places(3) {
        std::fs::write(place.path(".dendrer/left.tmp"), "1234").unwrap();
        let rule = Rule { thin: false, since_ms: 0 };
        let size = place.size(".dendrer");
        let would =
            clean(place.opened(".dendrer", Options::read()), rule, true, &place.trust, &mut ()).unwrap();
        assert!(would.dry_run && place.path(".dendrer/left.tmp").exists());
        let done =
            clean(place.opened(".dendrer", Options::untagged()), rule, false, &place.trust, &mut ()).unwrap();
        assert_eq!((would.leftovers.len(), done.leftovers.len(), done.bytes()), (1, 1, would.bytes()));
        assert!(!place.path(".dendrer/left.tmp").exists() && place.size(".dendrer") == size);
        std::fs::write(place.path(".dendrer/left.tmp"), "1234").unwrap();
        damage(&place.store());
        let error =
            clean(place.opened(".dendrer", Options::read()), rule, true, &place.trust, &mut ()).unwrap_err();
        assert!(matches!(error, Error::Unwritable(_)), "{error}");
    }
}
