//! `dendrer restore`: a store from a backup, checked as a whole before anything is put in its place.
//!
//! Never deletes a store: the one that was there is moved aside. What was signed here is remembered outside of stores,
//! so a log that is older than that is read and never written to.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use dendrer::store::embedded::{CopyAs, Embedded, Options, VerifyOptions};
use dendrer::store::{Store, TreeHead};
use dendrer_object::Value;
use dendrer_view::{count, document, quote};

use crate::context;
use crate::context::REPLACED;
use crate::context::RESTORING;
use crate::context::STORE_DIR;
use crate::context::copies::check_head;
use crate::context::copies::make;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::keys;
use crate::mark;
use crate::out::Out;
use crate::out::Style;
use crate::out::files;
use crate::progress::Progress;

/// `restore`
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) backup: String,
    /// Where; here if not given
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<String>,
    /// Put it in the place of the store that is there, which is moved aside
    #[arg(long)]
    pub(crate) replace: bool,
    /// Do so although the store that is there has records that the backup does not have
    #[arg(long, requires = "replace")]
    pub(crate) discard_newer: bool,
}

pub(crate) fn run(global: &Global, args: &Restore, out: &mut Out) -> Result {
    let given = Path::new(&args.backup);
    let inner = given.join(STORE_DIR);
    let from = if inner.is_dir() { inner } else { given.to_owned() };
    let dir = Path::new(args.dir.as_deref().unwrap_or("."));
    let target = if dir.ends_with(STORE_DIR) { dir.to_owned() } else { dir.join(STORE_DIR) };
    let mut backup = Embedded::open(&from, Options::read())
        .map_err(|error| Failure::from(error).note("nothing was restored"))?;
    context::speak(global, &backup, &from);
    mark::refuse(&backup, "nothing was restored")?;
    check_whole(global, &backup, &from)?;
    let old = there(args, &backup, &target)?;
    let beside = beside(&target, RESTORING);
    for path in [&target, &beside, &free(&target)] {
        files::makes(path)?;
    }
    if let Some(parent) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(io("make", parent))?;
    }
    if std::fs::symlink_metadata(&beside).is_ok_and(|about| !about.is_dir()) {
        return Err(Failure::new("E0115", format!("{} is there and is no directory", beside.display()))
            .note("nothing was restored; a restore makes its copy there first"));
    }
    // A restore that was cut off may have left the store that it replaced there, or one that is whole: neither is written over.
    if beside.join("store.json").exists() {
        if beside.canonicalize().is_ok_and(|path| from.canonicalize().is_ok_and(|from| from == path)) {
            return Err(Failure::new("E0115", format!("a restore makes its copy in {}", beside.display()))
                .note("nothing was restored; move what is there somewhere else, and restore it from there"));
        }
        let aside = free(&target);
        std::fs::rename(&beside, &aside).map_err(io("move aside", &beside))?;
        out.say(format!(
            "note: {} is a store that a restore which was cut off left beside its place",
            quote::escape(&aside.display().to_string())
        ));
    }
    let copying = backup.start_copy(&beside, CopyAs::Store)?;
    let copied = make(global, "restore", copying)?;
    // While it is still in its place: what it knows to be signed must not be put away with it.
    if let Some(old) = &old {
        match keys::remember(&old.store, &backup.info().key) {
            // What is broken says nothing of what was signed, and is put away all the same.
            Err(failure) if failure.exit() == 4 => {
                out.say(format!("note: {}", quote::escape(&failure.told())));
            }
            Err(failure) => {
                // The next one would have to put it aside.
                let _ = std::fs::remove_dir_all(&beside);
                return Err(failure.note("nothing was restored"));
            }
            Ok(()) => {}
        }
    }
    let aside = put_in_place(&beside, &target, old)?;
    let mut store = Embedded::open(&target, Options::read())?;
    keys::remember(&store, &backup.info().key)
        .map_err(|failure| took_place(failure, &target, aside.as_deref()))?;
    let refused = keys::refuse_rollback(&mut store).err();
    let pinned = keys::head(store.info().id)?.map(|head| head.size);
    if !out.is_text() {
        out.document(&document(
            "restore",
            [
                ("path", Value::from(target.display().to_string())),
                ("records", Value::from(copied.tree.size)),
                ("root", Value::from(copied.tree.root)),
                ("signed", Value::from(copied.signed)),
                ("last_signed_here", Value::from(pinned)),
                ("writable", Value::from(refused.is_none())),
                ("aside", aside.as_ref().map_or(Value::Null, |path| Value::from(path.display().to_string()))),
            ],
        ))?;
        return Ok(0);
    }
    let word = out.paint(Style::Good, "RESTORED");
    let place = quote::escape(&target.display().to_string());
    let records = count(copied.tree.size, "record", "records");
    out.line(format!("{word}  {place}: {records}, root {}, every one verified", copied.tree.root.short()))?;
    if let Some(aside) = aside {
        out.line(format!(
            "aside     {} is the store that was there",
            quote::escape(&aside.display().to_string())
        ))?;
    }
    if let Some(failure) = refused {
        let why = failure.place.first().map_or("", |(_, why)| why);
        out.line(format!("older     {}: it is read, and not written to", quote::escape(why)))?;
        out.say("note: what is written behind an older log would be a second history under one key, so no verb does it");
    } else if keys::find(global.key.as_deref(), store.info())?.is_none() {
        out.say("note: the key of the log is not here; records can be written, and no checkpoint is signed (E0804)");
    }
    out.help(&["dendrer", "verify", "--all", "--store", &target.display().to_string()]);
    Ok(0)
}

fn io(action: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Failure {
    let path = path.display().to_string();
    move |error| Failure::new("E0801", format!("cannot {action} {path}")).at("cause", error.to_string())
}

/// Checks all of a backup before anything is made of it.
fn check_whole(global: &Global, backup: &Embedded, path: &Path) -> Result<()> {
    let with_note = |failure: Failure| {
        let path = path.display().to_string();
        failure.note("nothing was restored").help(&["dendrer", "fsck", "--store", &path])
    };
    check_head(backup, path).map_err(with_note)?;
    context::refuse_damage(backup).map_err(with_note)?;
    // What was signed here must be known before a log is put in the place of another.
    keys::head(backup.info().id).map_err(|failure| failure.note("nothing was restored"))?;
    let own = keys::own(backup.info().id).map_err(|failure| failure.note("nothing was restored"))?;
    if let Some(own) = own.filter(|own| *own != backup.info().key) {
        return Err(with_note(
            Failure::new("E0308", "the backup names another key than the one its store was made with here")
                .at("backup", backup.info().key.to_string())
                .at("here", own.to_string()),
        ));
    }
    // A key that was given is that of the log, or none of its.
    keys::find(global.key.as_deref(), backup.info())?;
    let progress = Progress::start(global, "restore", "records verified", Some(backup.tree().size));
    let options = VerifyOptions { done: Some(progress.counter()), ..VerifyOptions::default() };
    let report = backup.verify(&options)?;
    match report.findings.into_iter().next() {
        None => Ok(()),
        Some(damage) => Err(with_note(Failure::new(damage.code(), damage.to_string()))),
    }
}

/// A store that is to be replaced.
struct Old {
    store: Embedded,
    /// Held so that nobody is in the middle of an append.
    _lock: File,
}

/// Looks at what is in the place, and refuses to put away what the backup does not have.
fn there(args: &Restore, backup: &Embedded, target: &Path) -> Result<Option<Old>> {
    let shown = target.display();
    if std::fs::symlink_metadata(target).is_ok_and(|about| !about.is_dir()) {
        return Err(Failure::new("E0115", format!("{shown} is there and is no directory")));
    }
    if !target.join("store.json").exists() {
        return match std::fs::read_dir(target).into_iter().flatten().next() {
            None => Ok(None),
            Some(_) => Err(move_aside(
                Failure::new("E0115", format!("{shown} is not empty, and no store"))
                    .note("nothing was changed"),
                target,
            )),
        };
    }
    if !args.replace {
        return Err(Failure::new("E0110", format!("{shown} is a store already"))
            .note("nothing was changed; --replace moves it aside, or name another directory")
            .help(&["dendrer", "restore", &args.backup, "DIR"]));
    }
    let lock_path = target.join("lock");
    if std::fs::symlink_metadata(&lock_path).is_ok_and(|about| !about.is_file()) {
        let failure = Failure::new("E0115", format!("{} is there and is no file", lock_path.display()));
        return Err(move_aside(failure.note("nothing was changed"), target));
    }
    let lock = File::open(&lock_path).or_else(|_| File::create(&lock_path));
    let lock = lock.map_err(io("open", &lock_path))?;
    if lock.try_lock().is_err() {
        return Err(Failure::new("E0802", format!("another process is writing to {shown}"))
            .note("nothing was changed; stop what writes there first"));
    }
    let store = Embedded::open(target, Options::read()).map_err(|error| {
        // What cannot be opened is not known to be older.
        move_aside(Failure::from(error).note("nothing was changed"), target)
    })?;
    if store.info().id != backup.info().id {
        return Err(Failure::new("E0110", format!("{shown} is another store, not the one of the backup"))
            .note("nothing was changed; restore into another directory"));
    }
    let newer = match newer_than(backup, &store) {
        Err(failure) if failure.exit() == 4 => Some(format!(
            "may have more than the backup, since not all of it can be read: {}",
            failure.told()
        )),
        newer => newer.map_err(|failure| move_aside(failure.note("nothing was changed"), target))?,
    };
    match newer {
        Some(why) if !args.discard_newer => Err(Failure::new("E0114", format!("{shown} {why}"))
            .note("nothing was changed")
            .help(&["dendrer", "backup", "DIR", "--store", &shown.to_string()])
            .help(&["dendrer", "restore", &args.backup, "DIR"])),
        _ => Ok(Some(Old { store, _lock: lock })),
    }
}

/// Says how what is in the place makes room, whatever it is.
fn move_aside(failure: Failure, target: &Path) -> Failure {
    let (shown, aside) = (target.display().to_string(), free(target).display().to_string());
    failure.help(&["mv", &shown, &aside])
}

/// Says what a store has that the backup has not.
fn newer_than(backup: &Embedded, store: &Embedded) -> Result<Option<String>> {
    if let Some(why) = store.mark()?.as_ref().and_then(mark::hides) {
        return Ok(Some(format!("may have more than the backup: {why}")));
    }
    let mine = backup.tree();
    // Behind damage as well, as far as anything can be read there.
    let walked = store.verify(&VerifyOptions::default())?;
    let TreeHead { size, root } = store.tree();
    let known = [size, walked.tree.size, walked.checkpoint.unwrap_or(0), store.index_status().unwrap_or(0)];
    let most = known.into_iter().max().unwrap_or(0);
    if most > mine.size {
        let more = count(most - mine.size, "record", "records");
        return Ok(Some(format!("has {more} that the backup does not have")));
    }
    let same = store.trouble().is_some() || backup.root_of(size)? == Some(root);
    Ok((!same).then(|| "has other records than the backup".to_owned()))
}

/// A name beside a store, for what is not to be taken for it.
fn beside(target: &Path, word: &str) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{word}"));
    target.with_file_name(name)
}

/// Puts the new store in its place, and the old one aside.
fn put_in_place(new: &Path, target: &Path, old: Option<Old>) -> Result<Option<PathBuf>> {
    let Some(old) = old else {
        if target.is_dir() {
            std::fs::remove_dir(target).map_err(io("put the store into", target))?;
        }
        std::fs::rename(new, target).map_err(io("put the store into", target))?;
        sync(target, None)?;
        return Ok(None);
    };
    // Windows moves no directory in which a file is open, the lock included.
    let _old = (!cfg!(windows)).then_some(old);
    let aside = free(target);
    if exchange(new, target)? {
        // Whatever happens now, there is a store in the place.
        sync(target, Some(new))?;
        let aside = if std::fs::rename(new, &aside).is_ok() { aside } else { new.to_owned() };
        sync(target, Some(&aside))?;
        return Ok(Some(aside));
    }
    std::fs::rename(target, &aside).map_err(io("move aside", target))?;
    if let Err(error) = std::fs::rename(new, target) {
        // Rather the old one than none.
        let _ = std::fs::rename(&aside, target);
        return Err(io("put the store into", target)(error));
    }
    sync(target, Some(&aside))?;
    Ok(Some(aside))
}

/// A name beside a store that is free, for one that is moved aside.
fn free(target: &Path) -> PathBuf {
    let names = (1..).map(|n| match n {
        1 => beside(target, REPLACED),
        n => beside(target, &format!("{REPLACED}-{n}")),
    });
    let free = names.into_iter().find(|path| std::fs::symlink_metadata(path).is_err());
    free.unwrap_or_else(|| beside(target, REPLACED))
}

/// Makes the new names durable. Where the system does not say that they are, the store has been restored all the same.
fn sync(target: &Path, aside: Option<&Path>) -> Result<()> {
    let dir = files::dir_of(target);
    files::sync_dir(dir).map_err(|error| {
        let failure = io("sync", dir)(error);
        took_place(failure.note("whether its name outlasts a power cut is not known"), target, aside)
    })
}

/// Says of what failed behind a restore that it took place.
fn took_place(failure: Failure, target: &Path, aside: Option<&Path>) -> Failure {
    let shown = target.display().to_string();
    let failure = failure.note(format!("{shown} is the restored store"));
    let failure = aside.iter().fold(failure, |failure, aside| {
        failure.note(format!("the store that was there is in {}", aside.display()))
    });
    failure.help(&["dendrer", "verify", "--all", "--store", &shown])
}

/// Puts each of two directories in the place of the other, with no moment in which one is missing. Tells whether the system can.
#[cfg(target_os = "linux")]
fn exchange(new: &Path, target: &Path) -> Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, new, CWD, target, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::NOSYS | Errno::INVAL | Errno::NOTSUP) => Ok(false),
        Err(error) => Err(io("put the store into", target)(error.into())),
    }
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> Result<bool> {
    Ok(false)
}
