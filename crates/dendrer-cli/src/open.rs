//! Finding and opening what a command reads or writes: a store, or a bundle in its place.

use std::io::{BufRead as _, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dendrer::Trace;
use dendrer::bundle::{self, Opened};
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::prelude::*;
use dendrer::store::{Store, StoreError};
use dendrer::verify;
use dendrer_object::RunName;

use crate::address::Rev;
use crate::args::Global;
use crate::failure::{Failure, READS_ONLY, Result};
use crate::files;
use crate::keys;
use crate::mark::{self, Mark};
use crate::out::Out;
use crate::progress::{Counted, CountedRead, Progress};

/// The name of the directory that is a store.
pub(crate) const STORE_DIR: &str = ".dendrer";

/// What follows that name where a restore makes its copy, and where it moves what was there.
pub(crate) const RESTORING: &str = "restoring";
pub(crate) const REPLACED: &str = "replaced";

/// What a reading command reads.
pub(crate) enum Source {
    /// A store on disk.
    Store(Box<dyn Store>),
    /// A bundle.
    Bundle(Box<Opened>),
}

impl Source {
    /// The store, whichever it is.
    pub(crate) fn store(&self) -> &dyn Store {
        match self {
            Source::Store(store) => &**store,
            Source::Bundle(opened) => &opened.store,
        }
    }

    /// The runs that a bundle is of; none for a store.
    pub(crate) fn named(&self) -> &[RunName] {
        match self {
            Source::Store(_) => &[],
            Source::Bundle(opened) => &opened.runs,
        }
    }

    /// Opens the run that an address means.
    pub(crate) fn trace(&self, rev: &Rev) -> Result<Trace<'_>> {
        self.trace_through(self.store(), rev)
    }

    /// As [`Source::trace`], read through a handle that counts what is read.
    pub(crate) fn trace_through<'s>(&self, store: &'s dyn Store, rev: &Rev) -> Result<Trace<'s>> {
        let run = rev.run_in(self.store(), self.named())?;
        Ok(Trace::open(store, &run)?)
    }

    /// Begins to tell how many records a verb has read, which may be every one of a run. Ends when the first is dropped.
    pub(crate) fn watched(&self, global: &Global, what: &'static str) -> (Progress, Counted<'_>) {
        let progress = Progress::start(global, what, "records", None);
        let counted = Counted::new(self.store(), progress.counter());
        (progress, counted)
    }
}

/// Opens what an address speaks of, for reading. Says on stderr, and in the document, that it is not what was signed.
pub(crate) fn source(global: &Global, rev: &Rev, out: &mut Out) -> Result<Source> {
    let Some(path) = &rev.bundle else { return whole_store(global, out) };
    let opened = open_bundle(Some(global), path)?;
    out.reads(&opened);
    tell_part(&opened, rev, out);
    if let Some(finding) = verify::opening(&opened).into_iter().next() {
        out.tampered(path, finding.code, &finding.message);
    }
    Ok(Source::Bundle(Box::new(opened)))
}

/// Opens the store for reading, and says what is wrong with it as a whole: what is shown may not be all there was.
pub(crate) fn whole_store(global: &Global, out: &mut Out) -> Result<Source> {
    let (mut store, path) = open_store(global)?;
    warn(&mut store, &path, out)?;
    Ok(Source::Store(Box::new(store)))
}

/// Says what is wrong with a store as a whole, and tells whether anything is.
pub(crate) fn warn(store: &mut Embedded, path: &Path, out: &mut Out) -> Result<bool> {
    let known = store.trouble().filter(|trouble| is_of_the_log(trouble));
    let mark = mark::of(store)?;
    let hidden = mark.as_ref().and_then(Mark::hides).map(|why| (keys::ANOTHER_LOG, why));
    let wrong = match (
        known.map(|trouble| (trouble.code(), trouble.to_string())).or(hidden),
        keys::pinned(store.info().id),
    ) {
        (Some(wrong), _) => Some(wrong),
        (None, Ok(pinned)) => keys::rollback(store, pinned)?.map(|why| (keys::ANOTHER_LOG, why)),
        (None, Err(failure)) => {
            let told = failure.told();
            out.warn(failure.code, &format!("{told}; whether the log is as long as it was is not known"));
            None
        }
    };
    if let Some((code, message)) = &wrong {
        out.incomplete(&path.display().to_string(), code, message);
    }
    let Some(mark) = mark else { return Ok(wrong.is_some()) };
    if let Some(why) = mark.closes() {
        out.warn("E0806", &format!("{}: {why}", path.display()));
    }
    if mark.hides().is_some() {
        out.help(&mark::unmark(path).each_ref().map(String::as_str));
    }
    // Whoever holds the lock is making a later one.
    if let Some(why) = mark.unfinished().filter(|_| store.is_lock_free().unwrap_or(true)) {
        out.say(format!("note: {why}"));
    }
    Ok(wrong.is_some())
}

/// Tells whether what is wrong with a store is what its log says.
fn is_of_the_log(trouble: &StoreError) -> bool {
    matches!(trouble, StoreError::Damaged(_) | StoreError::Lost(_))
}

/// Says of what is not found in a log that is not whole that it may be in what is missing.
pub(crate) fn not_found_in(failure: Failure, code: &'static str) -> Failure {
    if failure.exit() != 3 {
        return failure;
    }
    Failure::new(code, failure.message)
        .note("the log is not what it was; what is asked for may be in what is missing")
        .help(&["dendrer", "verify", "--all"])
}

/// As [`not_found_in`], where the log of the store is not whole.
pub(crate) fn not_found(failure: Failure, store: &dyn Store) -> Failure {
    match store.trouble().filter(|trouble| is_of_the_log(trouble)) {
        Some(trouble) => not_found_in(failure, trouble.code()),
        None => failure,
    }
}

/// As [`source`], for verbs whose answer would be taken for one about the record: a bundle that is not the one that was
/// signed, or of which a record does not open, has no answer.
pub(crate) fn sound(global: &Global, rev: &Rev, out: &mut Out) -> Result<Source> {
    let Some(path) = &rev.bundle else { return whole_store(global, out) };
    let opened = open_bundle(Some(global), path)?;
    out.reads(&opened);
    if let Some(finding) = verify::opening(&opened).into_iter().next() {
        let place = match (&finding.run, finding.tick) {
            (Some(run), Some(tick)) => format!(", {run}@{tick}"),
            (Some(run), None) => format!(", {run}"),
            _ => String::new(),
        };
        return Err(Failure::new(finding.code, format!("TAMPERED {path}{place}: {}", finding.message))
            .note("what is asked here is asked of what was recorded, and this file is not that")
            .help(&["dendrer", "verify", path]));
    }
    tell_part(&opened, rev, out);
    Ok(Source::Bundle(Box::new(opened)))
}

/// Says of a run that is there only because another one began as a fork of it, that it may have gone on.
fn tell_part(opened: &Opened, rev: &Rev, out: &mut Out) {
    // Where the address means no run, whoever looks for it says so.
    let meant = rev.run.as_ref().and_then(|_| rev.run_in(&opened.store, &opened.runs).ok());
    if let Some(run) = meant.filter(|run| !opened.runs.contains(run))
        && let Ok(trace) = Trace::open(&opened.store, &run)
    {
        let tip = trace.tip();
        out.say(format!(
            "note: {} holds {run} up to tick {tip}, where another run forked off; what came behind that is not in it",
            dendrer_view::quote::escape(&opened.path.display().to_string())
        ));
    }
}

/// Reads a bundle file, and tells how far that is unless somebody else does.
pub(crate) fn open_bundle(global: Option<&Global>, path: &str) -> Result<Opened> {
    let file = files::open(path)?;
    let size = file.metadata().ok().filter(|about| about.is_file()).map(|about| about.len());
    let progress = global.map(|global| Progress::start(global, "reading", "bytes", size));
    let count = progress.as_ref().map(Progress::counter).unwrap_or_default();
    let mut file = BufReader::new(CountedRead::new(file, count));
    let begins = file.fill_buf().map_err(|error| files::cannot_read(path, &error))?;
    let is_compressed = matches!(begins, [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..]);
    bundle::open(PathBuf::from(path), file).map_err(|error| {
        if let dendrer::Error::Unreadable(error) = &error {
            return files::cannot_read(path, error);
        }
        let line = error.to_string();
        let failure = Failure::from(error).at("file", path);
        match is_compressed {
            true => Failure::new(failure.code, "the file is compressed, and a bundle is text")
                .at("file", path)
                .note("unpack it first; nothing of it was read"),
            false if line.starts_with("line ") => failure.note("nothing of it was read"),
            false => failure,
        }
    })
}

/// Opens the store for reading.
pub(crate) fn read_store(global: &Global) -> Result<Box<dyn Store>> {
    Ok(Box::new(open_store(global)?.0))
}

/// As [`read_store`], and where it is.
pub(crate) fn open_store(global: &Global) -> Result<(Embedded, PathBuf)> {
    let path = find(global)?;
    let store = with_key(global, Embedded::open(&path, global.reads())?);
    speak(global, &store, &path);
    Ok((store, path))
}

/// Opens the store for writing.
pub(crate) fn write_store(global: &Global) -> Result<Embedded> {
    let path = find(global)?;
    let options = Options { index: !global.without_index, ..Options::write() };
    let store = with_key(global, Embedded::open(&path, options)?);
    speak(global, &store, &path);
    Ok(store)
}

/// Gives a store its key, if that is at hand: what was worked out before counts under no other. A key that cannot be used is
/// told to whoever needs one.
pub(crate) fn with_key(global: &Global, store: Embedded) -> Embedded {
    let key = keys::find(global.key.as_deref(), store.info()).ok().flatten();
    store.with_key(key.map(Arc::new))
}

/// With `--verbose`, says which store was opened.
pub(crate) fn speak(global: &Global, store: &dyn Store, path: &Path) {
    if global.verbose {
        let path = path.display().to_string();
        let records = dendrer_view::count(store.tree().size, "record", "records");
        // Nobody can be told that stderr is closed.
        let _ = writeln!(
            std::io::stderr(),
            "store {}: {records}, root {}",
            dendrer_view::quote::escape(&path),
            store.tree().root.short()
        );
    }
}

/// Finds the store: named, or by walking up.
pub(crate) fn find(global: &Global) -> Result<PathBuf> {
    let told = std::env::var_os("DENDRER_STORE").filter(|text| !text.is_empty() && global.store.is_none());
    let told = told.map(|text| text.into_string()).transpose().map_err(|text| {
        Failure::new("E0106", format!("DENDRER_STORE is not UTF-8: {}", text.to_string_lossy()))
    })?;
    let named = global.store.clone().or(told);
    if let Some(named) = named {
        let path = Path::new(&named);
        if path.is_file() {
            return Err(not_a_store(&named));
        }
        let inner = path.join(STORE_DIR);
        if inner.is_dir() {
            return Ok(inner);
        }
        let outer = if path.ends_with(STORE_DIR) { files::dir_of(path) } else { path };
        let is_store = path.join("store.json").exists();
        return cut_off(outer).filter(|_| !is_store).map_or(Ok(path.to_owned()), Err);
    }
    let here = std::env::current_dir().map_err(|error| {
        Failure::new("E0801", "there is no current directory").at("cause", error.to_string())
    })?;
    for found in here.ancestors().map(|dir| dir.join(STORE_DIR)) {
        // What cannot be looked at may be the store that is meant, and one further up is not.
        let why = match std::fs::metadata(&found) {
            Ok(about) if about.is_dir() => return Ok(found),
            Ok(_) => "it is no directory".to_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound && !found.is_symlink() => {
                // The one that is meant was about to be put there.
                match cut_off(found.parent().unwrap_or(&here)) {
                    Some(failure) => return Err(failure.note("no store further up was looked for")),
                    None => continue,
                }
            }
            Err(error) => error.to_string(),
        };
        return Err(Failure::new("E0801", format!("cannot look at {}", found.display()))
            .at("cause", why)
            .note("no store further up was looked for; --store names one"));
    }
    Err(Failure::new("E0103", format!("no store in {} or above", here.display()))
        .help(&["dendrer", "init"])
        .help(&["dendrer", "demo"]))
}

/// Says what a restore that was cut off left in a directory that has no store; `None` if it left nothing there.
pub(crate) fn cut_off(dir: &Path) -> Option<Failure> {
    let beside = |word: &str| dir.join(format!("{STORE_DIR}.{word}"));
    let is_there = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok();
    let place = dir.join(STORE_DIR);
    let (new, old) = (beside(RESTORING), beside(REPLACED));
    if is_there(&place) || !is_there(&new) && !is_there(&old) {
        return None;
    }
    let shown = |path: &Path| path.display().to_string();
    let mut failure =
        Failure::new("E0103", format!("no store in {}, where a restore was cut off", dir.display()));
    if is_there(&new) {
        failure = failure.at("restored", shown(&new));
    }
    if is_there(&old) {
        failure = failure.at("replaced", shown(&old));
    }
    failure = failure.note("run the restore again, or put the store back that was there").help(&[
        "dendrer",
        "restore",
        "BACKUP",
        &shown(dir),
        "--replace",
    ]);
    Some(if is_there(&old) { failure.help(&["mv", &shown(&old), &shown(&place)]) } else { failure })
}

/// Says that a store is a directory, and how a bundle is read, to whoever named a file as one.
fn not_a_store(file: &str) -> Failure {
    let failure = Failure::new("E0103", format!("{file} is a file, and a store is a directory"));
    match file.ends_with(".dnd") {
        true => failure
            .note("a bundle stands in place of a run and needs no store: FILE.dnd, FILE.dnd@TICK or FILE.dnd#RUN@TICK")
            .help(&["dendrer", "log", file]),
        false => failure.note("name the directory that holds .dendrer, or leave --store out to look for it from here on up"),
    }
}

/// Says that a store refuses to be written, in words for whoever wanted to: it is damaged, or not the log that was
/// signed here.
pub(crate) fn refuse_trouble(store: &mut Embedded) -> Result<()> {
    refuse_damage(store)?;
    keys::pinned(store.info().id).map_err(|failure| failure.note("nothing was committed"))?;
    keys::refuse_rollback(store)
}

/// As [`refuse_trouble`], for what only reads the log.
pub(crate) fn refuse_damage(store: &dyn Store) -> Result<()> {
    match store.trouble().as_deref() {
        None => Ok(()),
        Some(StoreError::ReadOnly { why }) => {
            Err(Failure::new("E0805", "the store is open for reading only").at("cause", why.clone()))
        }
        Some(error @ (StoreError::Damaged(_) | StoreError::Lost(_))) => Err(Failure::of(error)),
        Some(error) => Err(Failure::of(error).note(READS_ONLY)),
    }
}
