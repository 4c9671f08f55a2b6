//! `dendrer doctor`: is this installation fit for work, and this store? One line for each thing that was looked at, with
//! what to do next. `--fix` repairs what follows from the log, and permissions; never the log.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueHint};
use dendrer::store::embedded::{Embedded, IndexState, Leftover, Options};
use dendrer::store::{Store, StoreError, TreeHead};
use dendrer_object::Value;
use dendrer_view::problem::in_store;
use dendrer_view::quote::shell;
use dendrer_view::{count, document, quote, thousands};

use crate::context;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::global::now_ms;
use crate::keys;
use crate::mark;
use crate::out::Out;
use crate::out::Style;
use crate::out::files;
use crate::out::files::Whole;

mod disk;
mod report;

/// `doctor`
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Repair what follows from the log, and permissions of the key; never the log
    #[arg(long)]
    pub(crate) fix: bool,
    /// Write a report for others into a file: versions, sizes, counts and codes; no content, names, paths or keys
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<String>,
}

/// How it stands with one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Ok,
    Warn,
    Fail,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Fail => "fail",
        }
    }
}

/// One thing that was looked at.
struct Check {
    name: &'static str,
    level: Level,
    code: Option<&'static str>,
    what: String,
    /// Whether it was repaired just now.
    fixed: bool,
    next: Vec<String>,
}

impl Check {
    fn new(name: &'static str, level: Level, what: impl Into<String>) -> Check {
        Check { name, level, code: None, what: what.into(), fixed: false, next: Vec::new() }
    }

    fn ok(name: &'static str, what: impl Into<String>) -> Check {
        Check::new(name, Level::Ok, what)
    }

    fn warn(name: &'static str, what: impl Into<String>) -> Check {
        Check::new(name, Level::Warn, what)
    }

    fn fail(name: &'static str, code: &'static str, what: impl Into<String>) -> Check {
        Check { code: Some(code), ..Check::new(name, Level::Fail, what) }
    }

    fn code(self, code: &'static str) -> Check {
        Check { code: Some(code), ..self }
    }

    fn next(self, argv: &[&str]) -> Check {
        Check { next: argv.iter().map(|word| (*word).to_owned()).collect(), ..self }
    }

    fn fixed(name: &'static str, what: impl Into<String>) -> Check {
        Check { fixed: true, ..Check::ok(name, what) }
    }
}

/// A store that could be opened, and where.
struct Found {
    path: PathBuf,
    store: Embedded,
}

pub(crate) fn run(global: &Global, args: &Doctor, out: &mut Out) -> Result {
    let mut checks = vec![
        Check::ok("version", format!("dendrer {} on {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS)),
        config(),
    ];
    if let Some(file) = args.report.as_deref() {
        if files::is_stdout(file) {
            return Err(Failure::new("E0106", "the report is a file of its own: the answer goes to stdout")
                .note("nothing was done; name a file"));
        }
        files::makes(Path::new(file))?;
        files::answer_to(file, global.key.as_deref(), keys::config_dir())?;
    }
    let mut found = find_store(global, &mut checks)?;
    if let Some(found) = &mut found {
        look_at_store(global, args.fix, found, &mut checks)?;
    }
    checks.push(clock(found.as_ref().map(|found| &found.store)));
    let place = found.as_ref().map_or_else(|| PathBuf::from("."), |found| found.path.clone());
    checks.extend(disk::checks(&place));
    if let Some(file) = &args.report {
        let text = quote::json(&report::make(&checks, found.as_ref())?) + "\n";
        let file = Path::new(file);
        let written = Whole::create(file).and_then(|mut whole| {
            whole.write_all(text.as_bytes())?;
            whole.finish()
        });
        written.map_err(|error| files::cannot_write(file, &error))?;
    }
    let worst = checks.iter().map(|check| check.level).max().unwrap_or(Level::Ok);
    // Of these codes one is of the index, which is derived.
    let is_of_the_log = |code: &str| code.starts_with("E03") && code != "E0309";
    let damaged =
        checks.iter().any(|check| check.level == Level::Fail && check.code.is_some_and(is_of_the_log));
    let exit = match (worst, damaged) {
        (_, true) => 4,
        (Level::Fail, false) => 1,
        _ => 0,
    };
    for check in &mut checks {
        check.next = in_store(std::mem::take(&mut check.next), global.store.as_deref());
    }
    say(&checks, worst, args, out)?;
    Ok(exit)
}

/// The folder where keys and what was seen of logs is kept.
fn config() -> Check {
    const NAME: &str = "config";
    let Some(dir) = keys::config_dir() else {
        return Check::warn(NAME, "no home directory, so keys and what was signed are kept nowhere")
            .code("E0807")
            .next(&["dendrer", "init", "--key", "FILE"]);
    };
    let shown = dir.display();
    match std::fs::metadata(&dir) {
        Ok(about) if about.is_dir() => Check::ok(NAME, format!("{shown}")),
        Ok(_) => Check::fail(NAME, "E0801", format!("{shown} is no directory")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Check::ok(NAME, format!("{shown}, not there yet; the first store makes it"))
        }
        Err(error) => Check::fail(NAME, "E0801", format!("{shown}: {error}")),
    }
}

fn find_store(global: &Global, checks: &mut Vec<Check>) -> Result<Option<Found>> {
    const NAME: &str = "store";
    let path = match context::find(global) {
        Ok(path) => path,
        Err(failure) => {
            let check = Check::warn(NAME, failure.told()).code(failure.code);
            checks.push(match failure.help.into_iter().next() {
                Some(next) => Check { next, ..check },
                None => check.next(&["dendrer", "explain", failure.code]),
            });
            return Ok(None);
        }
    };
    match Embedded::open(&path, Options::read()) {
        Ok(store) => {
            context::speak(global, &store, &path);
            Ok(Some(Found { path, store }))
        }
        Err(error) => {
            let code = error.code();
            let failure = Failure::from(error);
            let why = failure.place.first().map(|(_, why)| format!(": {why}")).unwrap_or_default();
            checks.push(
                Check::fail(NAME, code, format!("{}{why}", failure.message))
                    .next(&["dendrer", "explain", code]),
            );
            Ok(None)
        }
    }
}

fn look_at_store(global: &Global, fix: bool, found: &mut Found, checks: &mut Vec<Check>) -> Result<()> {
    let Found { path, store } = found;
    checks.extend(checkpoint(fix, path, store)?);
    let tree = store.tree();
    let records = count(tree.size, "record", "records");
    let head = store.backup_head();
    let mark = store.mark()?;
    let what = if head.is_some() { " (a backup)" } else { "" };
    let what = format!("{}: {records}, root {}{what}", path.display(), tree.root.short());
    let shown = path.display().to_string();
    checks.push(match mark.as_ref().and_then(mark::closes) {
        Some(why) => Check::warn("store", format!("{what}: {why}"))
            .code("E0806")
            .next(&["dendrer", "restore", &shown, "DIR"]),
        None => Check::ok("store", what),
    });
    let is_backup = head.is_some();
    let hidden = mark.as_ref().and_then(mark::hides);
    checks.push(match (head, hidden) {
        (_, Some(why)) => Check::fail("log", keys::ANOTHER_LOG, why)
            .next(&mark::unmark(path).each_ref().map(String::as_str)),
        (Some(made), _) if made != tree => Check::fail(
            "log",
            "E0307",
            format!("the backup has {records}, and had {} when it was made", made.size),
        )
        .next(&["dendrer", "fsck"]),
        _ => trouble(store, fix),
    });
    checks.extend(mark.as_ref().and_then(mark::unfinished).map(|why| Check::warn("backup", why)));
    checks.push(pinned(store, mark.is_some_and(|mark| !mark.in_store))?);
    checks.push(key(global, fix, store)?);
    let writes = fix && !is_backup && store.trouble().is_none();
    checks.push(index(writes, path, store));
    checks.push(match store.is_lock_free() {
        Ok(true) => Check::ok("lock", "free"),
        Ok(false) => Check::ok("lock", "held: somebody is writing at this moment"),
        Err(error) => Check::warn("lock", with_cause(&error)).code(error.code()),
    });
    checks.push(leftovers(writes, path, &store.leftovers()?));
    let foreign = store.foreign()?;
    if let Some(first) = foreign.first() {
        let others = foreign.len().saturating_sub(1);
        let more =
            if others == 0 { String::new() } else { format!(" and {} more", thousands(others as u64)) };
        checks.push(
            Check::warn(
                "files",
                format!("{}{more} {} no file of a store", first.file, if others == 0 { "is" } else { "are" }),
            )
            .next(&["dendrer", "fsck"]),
        );
    }
    Ok(())
}

/// A checkpoint that is none, and whether the one beside the tiles stands in for it.
fn checkpoint(fix: bool, path: &Path, store: &mut Embedded) -> Result<Option<Check>> {
    const NAME: &str = "checkpoint";
    if !fix || !matches!(store.trouble().as_deref(), Some(error) if is_of_the_checkpoint(error)) {
        return Ok(None);
    }
    let known = keys::head(store.info().id)?.map(|head| head.size);
    let mended = Embedded::open(path, Options { index: false, ..Options::write() })
        .and_then(|mut store| store.mend_checkpoint(known));
    *store = Embedded::open(path, Options::read())?;
    Ok(match mended {
        Ok(None) => None,
        Ok(Some(size)) => Some(Check::fixed(
            NAME,
            format!(
                "taken from log/checkpoint, which is signed and says the first {} of this log",
                count(size, "record", "records")
            ),
        )),
        Err(error) => {
            Some(Check::fail(NAME, error.code(), format!("could not be mended: {}", with_cause(&error))))
        }
    })
}

fn is_of_the_checkpoint(error: &StoreError) -> bool {
    matches!(error, StoreError::Damaged(damage) if damage.place.file == "checkpoint")
}

fn trouble(store: &Embedded, fix: bool) -> Check {
    const NAME: &str = "log";
    match store.trouble().as_deref() {
        None => Check::ok(NAME, "reads to its end and extends what was signed; fsck reads all of it"),
        Some(error @ StoreError::Lost(_)) => Check::fail(NAME, error.code(), error.to_string()).next(&[
            "dendrer",
            "restore",
            "BACKUP",
            "--replace",
        ]),
        Some(error) if !fix && is_of_the_checkpoint(error) => {
            Check::fail(NAME, error.code(), error.to_string()).next(&["dendrer", "doctor", "--fix"])
        }
        Some(error) => Check::fail(NAME, error.code(), error.to_string()).next(&["dendrer", "fsck"]),
    }
}

/// What was signed here before, against what the log is now.
fn pinned(store: &mut Embedded, is_backup: bool) -> Result<Check> {
    const NAME: &str = "signed";
    let pinned = match keys::head(store.info().id) {
        Ok(pinned) => pinned,
        Err(failure) => {
            let check = Check::fail(NAME, failure.code, failure.told());
            return Ok(match failure.help.into_iter().next() {
                Some(next) => Check { next, ..check },
                None => check.next(&["dendrer", "explain", failure.code]),
            });
        }
    };
    // What was signed here meanwhile is of what others have written since this handle read the log.
    let size = store.refresh()?;
    Ok(match pinned {
        Some(TreeHead { size: seen, .. }) if seen > size && is_backup => {
            Check::ok(NAME, format!("{} here since this backup was made", count(seen, "record", "records")))
        }
        None => Check::ok(NAME, "nothing was signed here yet"),
        Some(TreeHead { size: seen, .. }) if seen > size => Check::fail(
            NAME,
            "E0307",
            format!("{} were signed here, and the log has {size}", count(seen, "record", "records")),
        )
        .next(&["dendrer", "verify", "--all"]),
        Some(TreeHead { size: seen, root }) if store.root_of(seen)? != Some(root) => Check::fail(
            NAME,
            "E0307",
            format!("the first {seen} records are not those that were signed here"),
        )
        .next(&["dendrer", "verify", "--all"]),
        Some(TreeHead { size: seen, .. }) => {
            Check::ok(NAME, format!("up to {}", count(seen, "record", "records")))
        }
    })
}

fn key(global: &Global, fix: bool, store: &Embedded) -> Result<Check> {
    const NAME: &str = "key";
    let info = store.info();
    let Some(file) = keys::path_of(global.key.as_deref(), info.id) else {
        return Ok(Check::warn(NAME, "no place for it: there is no home directory").code("E0807"));
    };
    let shown = file.display().to_string();
    Ok(match keys::find(global.key.as_deref(), info) {
        Ok(Some(_)) if !file.exists() => Check::ok(NAME, "that of the demo, which is public"),
        Ok(Some(_)) => private(fix, &file),
        Ok(None) => {
            Check::warn(NAME, "not here: records are written, and no checkpoint is signed").code("E0804")
        }
        Err(failure) => {
            let why = failure.place.first().map(|(_, why)| why.as_str()).unwrap_or_default();
            Check::fail(NAME, failure.code, format!("{shown}: {why}")).next(&[
                "dendrer",
                "explain",
                failure.code,
            ])
        }
    })
}

/// Whether nobody else reads the key.
#[cfg(unix)]
fn private(fix: bool, file: &Path) -> Check {
    use std::os::unix::fs::PermissionsExt as _;
    const NAME: &str = "key";
    let shown = file.display().to_string();
    let mode = match std::fs::metadata(file) {
        Ok(about) => about.permissions().mode() & 0o777,
        Err(error) => return Check::fail(NAME, "E0804", format!("{shown}: {error}")),
    };
    if mode & 0o077 == 0 {
        return Check::ok(NAME, format!("{shown}, readable by you alone"));
    }
    if fix {
        return match std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)) {
            Ok(()) => {
                Check::fixed(NAME, format!("{shown}: mode {mode:o} is now 600; others could read it before"))
            }
            Err(error) => Check::fail(NAME, "E0801", format!("{shown}: {error}")),
        };
    }
    Check::fail(
        NAME,
        "E0804",
        format!("{shown} has mode {mode:o}: others can read it, and sign in your name"),
    )
    .next(&["chmod", "600", &shown])
}

#[cfg(not(unix))]
fn private(_: bool, file: &Path) -> Check {
    Check::ok("key", file.display().to_string())
}

/// How much of the log may be outside the index before that is worth a word.
const UNCOVERED_MANY: u64 = 100_000;

fn index(fix: bool, path: &Path, store: &mut Embedded) -> Check {
    const NAME: &str = "index";
    let size = store.tree().size;
    let (state, is_damaged) = match store.check_index() {
        Err(StoreError::IndexDamaged(why)) => (IndexState::Corrupt(why), true),
        // What each row says is held against the log where something can be done about it: that takes as long as making it anew.
        Ok(()) if fix => match store.index_differs() {
            Ok(Some(differs)) => (IndexState::Corrupt(differs.to_string()), true),
            _ => (store.index_state(), false),
        },
        _ => (store.index_state(), false),
    };
    let (code, what) = match state {
        IndexState::Ready(covered) if size.saturating_sub(covered) < UNCOVERED_MANY => {
            return Check::ok(NAME, format!("covers {} of {}", thousands(covered), thousands(size)));
        }
        IndexState::Absent if store.backup_head().is_some() => {
            return Check::ok(NAME, "none: a backup has none");
        }
        IndexState::Absent if size < UNCOVERED_MANY => {
            return Check::ok(NAME, "none yet; a small store needs none");
        }
        IndexState::Newer(version) => {
            return Check::warn(NAME, format!("of a newer version ({version}), not used and not touched"))
                .code("E0803");
        }
        IndexState::Unreadable(why) => {
            return Check::warn(NAME, format!("cannot be opened here ({why})")).code("E0801");
        }
        // The log is damaged, or the index knows more than it: said there, and nothing is made over evidence.
        IndexState::Unused => return Check::ok(NAME, "not used as long as the log is in trouble"),
        IndexState::Ready(covered) => (
            "E0309",
            format!("covers {} of {}: the rest is read from the log", thousands(covered), thousands(size)),
        ),
        IndexState::Absent => {
            ("E0309", format!("none, so {} are read from the log each time", thousands(size)))
        }
        IndexState::Corrupt(why) if is_damaged => ("E0809", format!("damaged ({why})")),
        IndexState::Corrupt(why) => ("E0309", format!("does not open ({why})")),
    };
    if !fix {
        return Check::warn(NAME, what).code(code).next(&["dendrer", "doctor", "--fix"]);
    }
    // Windows lets nobody move an index that is open, not even here: what looks on does without.
    let without = Embedded::open(path, Options { index: false, ..Options::read() });
    let made = without.map(|without| *store = without).and_then(|()| {
        let mut store = Embedded::open(path, Options::write())?;
        // Others may write meanwhile.
        let size = store.tree().size;
        store.rebuild_index(false)?;
        let covered = store.index_status().unwrap_or(0);
        Store::close(Box::new(store))?;
        Ok((covered, size))
    });
    if let Ok(again) = Embedded::open(path, Options::read()) {
        *store = again;
    }
    match made {
        Ok((covered, size)) if covered < size => Check::warn(
            NAME,
            format!(
                "made again as far as {} of {}: what follows in the log has no place in an index",
                thousands(covered),
                thousands(size)
            ),
        )
        .code("E0309")
        .next(&["dendrer", "verify", "--all"]),
        Ok((covered, _)) => {
            Check::fixed(NAME, format!("made again from the log, covers {}", thousands(covered)))
        }
        Err(error) => {
            Check::fail(NAME, "E0309", format!("{what}, and could not be made again: {}", with_cause(&error)))
        }
    }
}

/// What went wrong and what the system said of it, on one line.
fn with_cause(error: &StoreError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

fn leftovers(fix: bool, path: &Path, files: &[Leftover]) -> Check {
    const NAME: &str = "leftovers";
    let bytes = files.iter().map(|file| file.bytes).sum::<u64>();
    let what = format!(
        "{} of interrupted work, {}",
        count(files.len() as u64, "file", "files"),
        count(bytes, "byte", "bytes")
    );
    match (files.is_empty(), fix) {
        (true, _) => Check::ok(NAME, "none"),
        (false, false) => Check::warn(NAME, what).next(&["dendrer", "doctor", "--fix"]),
        (false, true) => {
            match Embedded::open(path, Options::write()).and_then(|mut store| store.remove_leftovers()) {
                Ok(_) => Check::fixed(NAME, format!("{what}: removed")),
                Err(error) => Check::fail(
                    NAME,
                    error.code(),
                    format!("{what}, and could not be removed: {}", with_cause(&error)),
                ),
            }
        }
    }
}

/// A clock that is behind the log stamps what is committed with the time of the newest record.
fn clock(store: Option<&Embedded>) -> Check {
    const NAME: &str = "clock";
    let now = now_ms();
    let newest = store.and_then(|store| {
        let last = store.tree().size.checked_sub(1)?;
        Some(store.get(last).ok()??.header().ts)
    });
    let ahead = newest.map_or(0, |ts| i64::try_from(ts.ms()).unwrap_or(i64::MAX).saturating_sub(now));
    if ahead <= 1000 {
        return Check::ok(NAME, "not behind the newest record");
    }
    let seconds = count(ahead.unsigned_abs() / 1000, "second", "seconds");
    Check::warn(
        NAME,
        format!("{seconds} behind the newest record; what is committed now gets the time of that one"),
    )
}

fn say(checks: &[Check], worst: Level, args: &Doctor, out: &mut Out) -> Result<()> {
    if !out.is_text() {
        let item = |check: &Check| {
            Value::record([
                ("name", Value::from(check.name)),
                ("level", Value::from(check.level.word())),
                ("code", check.code.map_or(Value::Null, Value::from)),
                ("what", Value::from(check.what.as_str())),
                ("fixed", Value::from(check.fixed)),
                ("next", Value::array(check.next.iter().map(|word| Value::from(word.as_str())))),
            ])
        };
        return out.document(&document(
            "doctor",
            [
                ("level", Value::from(worst.word())),
                ("report", args.report.as_deref().map_or(Value::Null, Value::from)),
                ("items", Value::array(checks.iter().map(item))),
            ],
        ));
    }
    for check in checks {
        let (style, word) = match (check.level, check.fixed) {
            (_, true) => (Style::Good, "fixed"),
            (Level::Ok, _) => (Style::Good, "ok"),
            (Level::Warn, _) => (Style::Warn, "warn"),
            (Level::Fail, _) => (Style::Bad, "FAIL"),
        };
        let word = out.paint(style, &format!("{word:<5}"));
        let code = check.code.map(|code| format!(" [{code}]")).unwrap_or_default();
        out.line(format!("{word}  {:<9}  {}{code}", check.name, quote::escape(&check.what)))?;
        if !check.next.is_empty() {
            out.line(format!("                  next: {}", shell(&check.next)))?;
        }
    }
    if let Some(file) = &args.report {
        out.say(format!(
            "note: the report in {} has no content, names, paths or keys; read it before you hand it over",
            quote::escape(file)
        ));
    }
    Ok(())
}
