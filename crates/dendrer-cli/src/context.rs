//! Opens what a command reads or writes: a store, or a bundle in its place.

use std::io::BufReader;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use dendrer::address::Address;
use dendrer::bundle;
use dendrer::bundle::Opened;
use dendrer::error::NoStore;
use dendrer::repo::Mode;
use dendrer::repo::Repo;
use dendrer::repo::Signed;
use dendrer::repo::Warning;
use dendrer::repo::keys::log_of;
use dendrer::repo::locate;
use dendrer::repo::writer_secret;
use dendrer::source::{QuestionSource, clean_text};
use dendrer::store::embedded::Embedded;
use dendrer::store::embedded::Options;
use dendrer::store::prelude::*;
use dendrer::store::{LogWriter, Store};
use dendrer::trust::Trust as _;
use dendrer::watch::Watch;
use dendrer_object::RunName;
use dendrer_object::note::SignedNote;

use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;
use crate::out::files;
use crate::progress::Progress;

pub(crate) mod care;
pub(crate) mod choice;
pub(crate) mod desk;
pub(crate) mod edges;
pub(crate) mod executor;
pub(crate) mod keys;
pub(crate) mod mark;
pub(crate) mod named;
pub(crate) mod packs;
pub(crate) mod pool;
pub(crate) mod program;
pub(crate) mod redaction;
pub(crate) mod replies;
pub(crate) mod runs;
pub(crate) mod server;
pub(crate) mod shell;
pub(crate) mod shims;
pub(crate) mod ticks;

pub(crate) use dendrer::repo::locate::STORE_DIR;
pub(crate) use dendrer::trace::all_runs;

/// Begins to show how many records a verb has read, which may be every one of a run. Ends when the first is dropped.
pub(crate) fn watched(
    global: &Global,
    source: &QuestionSource,
    what: &'static str,
) -> (Progress, Arc<dyn Store>) {
    let progress = Progress::start(global, what, "records", None);
    let counted = progress.watch().over(&source.store);
    (progress, counted)
}

/// Opens what an address speaks of, for reading. Says on stderr, and in the document, that it is not what was signed.
pub(crate) fn source(global: &Global, rev: &Address, out: &mut Out) -> Result<QuestionSource> {
    let Some(path) = &rev.bundle else { return whole_store(global, out) };
    let opened = open_bundle(Some(global), path)?;
    out.reads(&opened);
    tell_part(&opened, rev, out);
    let source = QuestionSource::of_bundle(&opened, &*keys::trust(global));
    if let Some(fault) = &source.fault {
        out.tampered(path, fault.code, &fault.message);
    }
    Ok(source)
}

/// Opens the store for reading, and says what is wrong with it as a whole: what is shown may not be all there was.
pub(crate) fn whole_store(global: &Global, out: &mut Out) -> Result<QuestionSource> {
    let (repo, path) = read_repo(global)?;
    warn(repo.warnings(), &path, out);
    out.reads_from(&path);
    Ok(QuestionSource::of_store(repo)?)
}

/// Prints what is wrong with a store as a whole, and returns whether records may be missing.
pub(crate) fn warn(warnings: &[Warning], path: &Path, out: &mut Out) -> bool {
    let shown = path.display().to_string();
    for warning in warnings {
        let code = warning.code();
        match warning {
            Warning::Damaged(error) => out.incomplete(&shown, code, &error.to_string()),
            Warning::Hidden(hiding) => {
                out.incomplete(&shown, code, &mark::hides(hiding).unwrap_or_default());
                out.help(&mark::unmark(path).each_ref().map(String::as_str));
            }
            Warning::AnotherLog(why) => out.incomplete(&shown, code, &why.to_string()),
            Warning::HeadUnknown(error) => {
                let told = Failure::from_trust(error).told();
                out.warn(code, &format!("{told}; whether the log is as long as it was is not known"));
            }
            Warning::IsBackup(closing) => {
                out.warn(code, &format!("{shown}: {}", mark::closes(closing).unwrap_or_default()));
            }
            Warning::Unfinished(open) => {
                out.say(format!("note: {}", mark::unfinished(open).unwrap_or_default()));
            }
            _ => {}
        }
    }
    warnings.iter().any(Warning::is_incomplete)
}

/// A text of the command line that is said of a run, as it is recorded.
pub(crate) fn clean(global: &Global, run: &RunName, text: &str) -> Result<String> {
    clean_text(&read_repo(global)?.0, Some(run), text)
}

/// As [`source`], for verbs whose answer would be taken for one about the record: a bundle that is not the one that was
/// signed, or of which a record does not open, has no answer.
pub(crate) fn sound(global: &Global, rev: &Address, out: &mut Out) -> Result<QuestionSource> {
    let Some(path) = &rev.bundle else { return whole_store(global, out) };
    let opened = open_bundle(Some(global), path)?;
    out.reads(&opened);
    let source = QuestionSource::of_bundle(&opened, &*keys::trust(global)).sound()?;
    tell_part(&opened, rev, out);
    Ok(source)
}

/// Says of a run that is there only because another one began as a fork of it, that it may have gone on.
fn tell_part(opened: &Opened, rev: &Address, out: &mut Out) {
    if let Some((run, tip)) = dendrer::source::shared_part(opened, rev) {
        out.say(format!(
            "note: {} holds {run} up to tick {tip}, where another run forked off; what came behind that is not in it",
            dendrer_view::quote::escape(&opened.path.display().to_string())
        ));
    }
}

/// Reads a bundle file; shows progress unless the caller shows its own.
pub(crate) fn open_bundle(global: Option<&Global>, path: &str) -> Result<Opened> {
    let file = files::open(path)?;
    let size = file.metadata().ok().filter(|about| about.is_file()).map(|about| about.len());
    let progress = global.map(|global| Progress::start(global, "reading", "bytes", size));
    let watch = progress.as_ref().map_or_else(Watch::new, Progress::watch);
    let file = BufReader::new(watch.reader(file));
    bundle::open(PathBuf::from(path), file).map_err(|error| {
        if let dendrer::Error::Unreadable(error) = &error {
            return files::cannot_read(path, error);
        }
        let is_whole = matches!(error, dendrer::Error::Bundle(_) | dendrer::Error::NotABundle { .. });
        let failure = Failure::from(error).at("file", path);
        if is_whole { failure.note("nothing of it was read") } else { failure }
    })
}

/// Opens the store for reading.
pub(crate) fn read_store(global: &Global) -> Result<Arc<dyn Store>> {
    Ok(read_repo(global)?.0.reader()?)
}

/// As [`read_store`], with what is known of it, and where it is.
pub(crate) fn read_repo(global: &Global) -> Result<(Repo, PathBuf)> {
    let path = find(global)?;
    if server::is_address(&path) {
        let repo = server::open(global, &path, Mode::Read)?;
        speak(global, &*repo.reader()?, &path);
        return Ok((repo, path));
    }
    let repo =
        Repo::open_with(&path, keys::trust(global), global.reads(), Mode::Read).map_err(mark::refused)?;
    speak(global, &*repo.reader()?, &path);
    Ok((repo, path))
}

/// Opens the embedded store itself, for what only it can do.
pub(crate) fn embedded(global: &Global, path: &Path, options: Options) -> Result<Embedded> {
    let store = mark::open(path, options)?;
    // A key that cannot be used is reported by the verb that needs one.
    let trust = keys::trust(global);
    let log = log_of(&store).map_err(dendrer::Error::from)?;
    let key = trust.key(&log).ok().flatten();
    let mut store = store.with_key(key);
    if let Ok(Some(secret)) = writer_secret(&*trust, &store) {
        store.set_writer(LogWriter::Secret(secret));
    }
    speak(global, &store, path);
    Ok(store)
}

/// Opens the store for writing. Fails if it is damaged, or not the log that was signed here; without the key and a writer's
/// secret; and where a writer without them has appended.
pub(crate) fn write_store(global: &Global) -> Result<Repo> {
    let path = find(global)?;
    let opened = write_at(global, &path).and_then(|repo| repo.check_writer().map(|()| repo));
    if let Some((file, mode)) =
        opened.as_ref().ok().and_then(|repo| keys::open_to_others(global, repo.info().id))
    {
        // Ignored: there is no other place to report a closed stderr.
        let _ = writeln!(
            std::io::stderr(),
            "warning: {file} has mode {mode:o}: others can read it, and write to this log (chmod 600 {file})"
        );
    }
    opened.map_err(|error| {
        let is_head = matches!(error, dendrer::Error::Trust(_));
        let failure = mark::refused(error);
        if is_head { failure.note("nothing was committed") } else { failure }
    })
}

/// As [`write_store`], of the store at a place.
pub(crate) fn write_at(global: &Global, path: &Path) -> std::result::Result<Repo, dendrer::Error> {
    let options = Options { index: !global.without_index, ..Options::write() };
    let repo = match server::is_address(path) {
        true => server::open(global, path, Mode::Write)?,
        false => Repo::open_with(path, keys::trust(global), options, Mode::Write)?,
    };
    speak(global, repo.writer()?, path);
    Ok(repo)
}

/// Notes that the log is not signed now, if only a writer's secret is here. A key that cannot be used is a failure.
pub(crate) fn say_no_key(repo: &Repo, out: &mut Out) -> Result<()> {
    if repo.signing_key()?.is_none() {
        out.say("note: a writer's secret signs nothing; the holder of the key signs these records");
    }
    Ok(())
}

/// Signs the log if its key is here, and warns if what was signed could not be remembered.
pub(crate) fn sign(repo: &Repo) -> Result<Option<SignedNote>> {
    Ok(signed(repo.sign()?))
}

/// As [`sign`], with a map of all runs before, so that a bundle can be seen to be whole.
pub(crate) fn sign_with_map(repo: &Repo) -> Result<Option<SignedNote>> {
    Ok(signed(repo.sign_with_map()?))
}

/// Signs the log if its key is here, and closes the store.
pub(crate) fn close(repo: Repo) -> Result<()> {
    if let Some(late) = repo.late_index() {
        let late = dendrer_view::count(late, "record", "records");
        // Ignored: there is no other place to report a closed stderr.
        let _ = writeln!(
            std::io::stderr(),
            "note: another program has index.sqlite locked, so it is {late} behind the log; nothing waits for it (dendrer doctor)"
        );
    }
    signed(repo.close()?);
    Ok(())
}

fn signed(signed: Signed) -> Option<SignedNote> {
    let Signed::UpTo { note, not_remembered } = signed else { return None };
    if let Some(error) = not_remembered {
        let text = dendrer_view::quote::escape(&error.to_string());
        // Ignored: there is no other place to report a closed stderr.
        let _ = writeln!(std::io::stderr(), "warning[{}]: {text}", error.code());
    }
    Some(note)
}

/// With `--verbose`, says which store was opened.
pub(crate) fn speak(global: &Global, store: &dyn Store, path: &Path) {
    if global.verbose {
        let path = path.display().to_string();
        let records = dendrer_view::count(store.tree().size, "record", "records");
        // Ignored: there is no other place to report a closed stderr.
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
        let text = text.to_string_lossy().into_owned();
        dendrer::Error::NoStore(Box::new(NoStore::NotText { text }))
    })?;
    if let Some(named) = global.store.clone().or(told) {
        if server::is_address(Path::new(&named)) {
            return Ok(named.into());
        }
        return Ok(locate::named(&named)?);
    }
    let here = std::env::current_dir()
        .map_err(|source| dendrer::Error::NoStore(Box::new(NoStore::NoDirectory { source })))?;
    Repo::find(&here).map_err(|error| {
        let is_nowhere =
            matches!(&error, dendrer::Error::NoStore(why) if matches!(**why, NoStore::Nowhere { .. }));
        let below = if is_nowhere { stores_below(&here) } else { Vec::new() };
        let failure = Failure::from(error);
        if below.is_empty() {
            return failure;
        }
        let help = below
            .into_iter()
            .take(BELOW_MAX)
            .map(|dir| ["dendrer", "-C", &dir, "runs"].map(str::to_owned).into());
        Failure { help: help.collect(), ..failure }
    })
}

/// How many stores below a directory are named.
const BELOW_MAX: usize = 3;

/// Lists the directories in this one that hold a store, by name. A directory that cannot be listed has none.
fn stores_below(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let stores = entries.filter(|entry| entry.path().join(STORE_DIR).is_dir());
    let mut names: Vec<String> = stores.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// Returns the failure for a directory in which a restore was interrupted; `None` for any other.
pub(crate) fn cut_off(dir: &Path) -> Option<Failure> {
    locate::interrupted(dir).map(|error| dendrer::Error::NoStore(Box::new(error)).into())
}
