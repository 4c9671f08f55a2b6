//! Where the key of a log is kept: outside the store, mode 0600, never printed.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use dendrer::store::StoreInfo;
use dendrer::store::embedded::Embedded;
use dendrer::store::prelude::*;
use dendrer_object::note::{Checkpoint, SignedNote, SigningKey, VerifierKey};
use dendrer_object::{Digest, StoreId};
use ring::rand::{SecureRandom, SystemRandom};

use crate::demo;
use crate::failure::{Failure, Result};
use crate::files::{self, Whole};
use crate::mark;

/// The folder of dendrer's own files in the user's configuration, if the user has one.
pub(crate) fn config_dir() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = if cfg!(windows) {
        absolute("APPDATA")
    } else if cfg!(target_os = "macos") {
        absolute("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))
    };
    base.map(|base| base.join("dendrer"))
}

fn key_path(given: Option<&str>, store: StoreId) -> Option<PathBuf> {
    given.map(PathBuf::from).or_else(|| Some(config_dir()?.join("keys").join(format!("{store}.key"))))
}

/// Makes a key for a new store and keeps it. Returns it with the file it is in.
pub(crate) fn create(given: Option<&str>, store: StoreId) -> Result<(SigningKey, PathBuf)> {
    let Some(path) = key_path(given, store) else {
        return Err(Failure::new("E0807", "there is no home directory to keep the key of the log in")
            .help(&["dendrer", "init", "--key", "FILE"]));
    };
    if let Some(folder) = path.parent() {
        // Where it cannot be made, writing the key says so.
        let _ = files::make_dir(folder);
    }
    Ok((make(&store.origin(), &path)?, path))
}

/// Makes a key with a name and writes it to a new file that only its owner may read.
pub(crate) fn make(name: &str, path: &Path) -> Result<SigningKey> {
    files::makes(path)?;
    let mut seed = [0; 32];
    SystemRandom::new()
        .fill(&mut seed)
        .map_err(|_| Failure::new("E0801", "the system gives no randomness"))?;
    let key = SigningKey::from_seed(name, seed).map_err(|error| {
        Failure::new("E0106", error.to_string())
            .note("the name of a key has at least one character, no blank and no +, like j.doe")
    })?;
    let write = || -> std::io::Result<()> {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        file.write_all(format!("{}\n", key.secret_text()).as_bytes())?;
        file.sync_all()?;
        // A log whose key a power cut took is never signed again.
        files::sync_dir(files::dir_of(path))
    };
    match write() {
        Ok(()) => Ok(key),
        Err(error) => {
            let code = if error.kind() == std::io::ErrorKind::AlreadyExists { "E0112" } else { "E0801" };
            Err(Failure::new(code, format!("cannot write the key to {}", path.display()))
                .at("cause", error.to_string()))
        }
    }
}

/// Finds the key of a store; `None` if it is not here.
pub(crate) fn find(given: Option<&str>, info: &StoreInfo) -> Result<Option<SigningKey>> {
    if let Some(path) = key_path(given, info.id) {
        match read_text(&path, given.is_some()) {
            Ok(text) => return read(&text, &path, info).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && given.is_none() => {}
            Err(error) => {
                return Err(Failure::new("E0804", format!("cannot read the key in {}", path.display()))
                    .at("cause", error.to_string()));
            }
        }
    }
    // The demo's key is published with the program: its signatures prove nothing, and its stores say so.
    let demo = demo::key();
    Ok((*demo.verifier_key() == info.key).then_some(demo))
}

/// As [`find`], of a store that may have been given its key when it was opened.
pub(crate) fn of(given: Option<&str>, store: &Embedded) -> Result<Option<Arc<SigningKey>>> {
    match store.key() {
        Some(key) => Ok(Some(Arc::clone(key))),
        // Looking again says what is wrong with it, if anything is.
        None => Ok(find(given, store.info())?.map(Arc::new)),
    }
}

/// The key that a store was made with here, if its file is where `init` puts it. One that is there and cannot be used is not
/// taken for none: whoever exchanged the key of a log would go unnoticed.
pub(crate) fn own(store: StoreId) -> Result<Option<VerifierKey>> {
    let Some(path) = key_path(None, store) else { return Ok(None) };
    let bad = |what: &str, why: String| {
        Failure::new("E0804", format!("the key in {} cannot be {what}", path.display())).at("cause", why)
    };
    let text = read_kept(&path).map_err(|error| bad("read", error.to_string()))?;
    let Some(text) = text else { return Ok(None) };
    let key = SigningKey::from_secret_text(String::from_utf8_lossy(&text).trim_end());
    Ok(Some(key.map_err(|error| bad("used", error.to_string()))?.verifier_key().clone()))
}

/// Reads a file that is kept here for a store; `None` only if there is nothing of its name.
fn read_kept(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let is_absent = |error: &io::Error| match error.kind() {
        // A link that leads nowhere is not nothing: what it leads to may be on a disk that is away.
        ErrorKind::NotFound => {
            std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
        }
        // Where home is no directory, nothing was ever kept.
        ErrorKind::NotADirectory => config_dir().is_some_and(|dir| {
            std::fs::metadata(dir).is_err_and(|error| error.kind() == ErrorKind::NotADirectory)
        }),
        _ => false,
    };
    match std::fs::metadata(path) {
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
        Ok(about) if !about.is_file() => return Err(io::Error::other("it is no file")),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(KEY_SIZE_MAX).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Reads the public half of a key file that was named.
pub(crate) fn read_verifier(path: &str) -> Result<VerifierKey> {
    Ok(read_signer(path)?.verifier_key().clone())
}

/// No key file is longer, and a name may lead to anything.
const KEY_SIZE_MAX: u64 = 1 << 16;

/// Reads the file of a key. The one that was named may be a pipe, which says once what it has to say, and a verb may open two
/// handles of a store.
fn read_text(path: &Path, is_named: bool) -> std::io::Result<String> {
    static NAMED: OnceLock<String> = OnceLock::new();
    if let Some(text) = NAMED.get().filter(|_| is_named) {
        return Ok(text.clone());
    }
    let text = File::open(path).and_then(|file| std::io::read_to_string(file.take(KEY_SIZE_MAX)))?;
    Ok(if is_named { NAMED.get_or_init(|| text).clone() } else { text })
}

/// Reads a key file that was named.
pub(crate) fn read_signer(path: &str) -> Result<SigningKey> {
    files::refuse_answer(path)?;
    let bad =
        |why: String| Failure::new("E0804", format!("the key in {path} cannot be used")).at("cause", why);
    let text = read_text(Path::new(path), false).map_err(|error| bad(error.to_string()))?;
    SigningKey::from_secret_text(text.trim_end()).map_err(|error| bad(error.to_string()))
}

fn read(text: &str, path: &Path, info: &StoreInfo) -> Result<SigningKey> {
    let bad = |why: String| {
        Failure::new("E0804", format!("the key in {} cannot be used", path.display())).at("cause", why)
    };
    let key = SigningKey::from_secret_text(text.trim_end()).map_err(|error| bad(error.to_string()))?;
    if *key.verifier_key() != info.key {
        return Err(bad(format!("it is not the key of this store, which is {}", info.key)));
    }
    Ok(key)
}

/// Refuses to write to a log that was seen longer, or with other records, than it is now: what follows would be a
/// second history under one key, and a log never signs two roots for one size.
pub(crate) fn refuse_rollback(store: &mut Embedded) -> Result<()> {
    let pinned = pinned(store.info().id)?;
    let mut why = rollback(store, pinned)?;
    // A commit frame says what whoever wrote it wanted. Before anything follows, hashes have to say so.
    if let (None, Some((size, root))) = (&why, pinned)
        && size <= store.tree().size
        && !store.extends(size, root)?
    {
        why = Some(other(store.tree().size, size));
    }
    why.map_or(Ok(()), |why| {
        Err(another_log(why, "nothing was committed: what follows would be a second history"))
    })
}

/// Says that this is another log than the one that was signed here, and what became of what was to follow.
fn another_log(why: String, became: &str) -> Failure {
    Failure::new(ANOTHER_LOG, "the log is not the one that was signed here").at("why", why).note(became).note(
        "if an older copy is meant to go on, give it another identity: make a new store and import from it",
    )
}

/// The code of a log that is not the one that was signed here.
pub(crate) const ANOTHER_LOG: &str = "E0307";

/// Says why a log is not the one that was last signed here, if it is not.
pub(crate) fn rollback(store: &mut Embedded, pinned: Option<(u64, Digest)>) -> Result<Option<String>> {
    let Some((size, root)) = pinned else { return Ok(None) };
    if size > store.tree().size {
        // Others may have written and signed since this handle looked.
        store.refresh()?;
    }
    let tree = store.tree();
    if size > tree.size && mark::of(store)?.is_some_and(|mark| !mark.in_store) {
        // A backup says itself how far it goes, and the store it was made of has gone on.
        return Ok(None);
    }
    Ok((store.root_of(size)? != Some(root)).then(|| other(tree.size, size)))
}

/// Says why a log may not be all that was signed here, for whoever looks at its files alone.
pub(crate) fn doubt(store: &mut Embedded) -> Result<Option<(&'static str, String)>> {
    Ok(match pinned(store.info().id) {
        Err(failure) => Some((failure.code, failure.told())),
        Ok(pinned) => rollback(store, pinned)?
            .map(|why| (ANOTHER_LOG, format!("this is not the log that was signed here: {why}"))),
    })
}

/// Says in what a log is not the one that was last signed here.
fn other(has: u64, had: u64) -> String {
    match had > has {
        true => format!("it has {has} records, and had {had} when it was last signed here"),
        false => format!("its first {had} records are not the ones that were last signed here"),
    }
}

/// Signs the log as it is, and remembers outside the store what was signed, so that a store that was rolled back
/// shows. Without the key nothing is signed.
pub(crate) fn sign(store: &mut Embedded, key: Option<&SigningKey>) -> Result<Option<SignedNote>> {
    let Some(key) = key else { return Ok(None) };
    let id = store.info().id;
    let unsigned = "what was committed stands in the log, and is not signed; the next commit signs it";
    // From looking at what was signed last to remembering what is now, nobody signs a copy of this log.
    let turn = turn(id, unsigned)?;
    refuse_rollback(store)?;
    let mut refused = Ok(());
    let note = store.sign_asking(key, &mut |store, checkpoint| {
        refused = match pinned(id) {
            // Where a file system has no locks, somebody may have had a turn all the same.
            Ok(Some((size, root))) if !store.extends(size, root)? => Err(another_log(
                other(checkpoint.size(), size),
                "what was committed stands in this copy, and is not signed",
            )),
            Ok(known) => {
                pin(known, checkpoint, turn.as_ref());
                Ok(())
            }
            Err(failure) => Err(failure),
        };
        Ok(refused.is_ok())
    })?;
    refused.map(|()| note)
}

/// Signs what was written, where the key is here, and closes the store.
pub(crate) fn close(mut store: Embedded, key: Option<&SigningKey>) -> Result<()> {
    sign(&mut store, key)?;
    Ok(AppendLog::close(Box::new(store))?)
}

/// Remembers what the checkpoint of a store says, if a key signed it: that of one that is put away must not be forgotten. The key
/// is one that is known to be that of the log; what the store says of that, somebody may have written there.
pub(crate) fn remember(store: &Embedded, key: &VerifierKey) -> Result<()> {
    let Some(note) = store.checkpoint()? else { return Ok(()) };
    if note.verify(std::slice::from_ref(key)).is_ok_and(|signed| !signed.is_empty())
        && let Ok(checkpoint) = Checkpoint::parse(note.text())
    {
        let id = store.info().id;
        if is_known(pinned(id)?, &checkpoint) {
            return Ok(());
        }
        let turn = turn(id, "what the store says was signed is not remembered here")?;
        pin(pinned(id)?, &checkpoint, turn.as_ref());
    }
    Ok(())
}

/// Where the key of a store is, if it has a place.
pub(crate) fn path_of(given: Option<&str>, store: StoreId) -> Option<PathBuf> {
    key_path(given, store)
}

fn pin_path(store: StoreId) -> Option<PathBuf> {
    // Every demo has one id, and its key is public, so nothing that was seen of one says anything of another.
    if store == demo::STORE_ID {
        return None;
    }
    Some(config_dir()?.join("heads").join(format!("{store}.head")))
}

/// A turn to look at what was last signed of a log and to remember what is signed next.
struct Turn {
    /// Where that is remembered.
    head: PathBuf,
    /// The lock, until the turn ends; or why nothing can be remembered there.
    held: io::Result<Lock>,
}

/// A lock that is given back with its file.
struct Lock {
    _file: File,
    /// Whether nobody else has it: some file systems have no locks.
    is_alone: bool,
}

/// Takes a turn, where anything is remembered, and says what is so without one. Whoever has one and does not give it back keeps
/// everybody from signing: a copy of the log would be signed twice.
fn turn(store: StoreId, without: &str) -> Result<Option<Turn>> {
    use ErrorKind::{PermissionDenied, ReadOnlyFilesystem, StorageFull, TimedOut};
    let Some(head) = pin_path(store) else { return Ok(None) };
    if let Err(error) = files::make_dir(files::dir_of(&head)) {
        return Ok(Some(Turn { head, held: Err(error) }));
    }
    let path = head.with_extension("lock");
    match hold(&path, &head) {
        Ok(lock) => Ok(Some(Turn { head, held: Ok(lock) })),
        Err(error) if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | StorageFull) => {
            Ok(Some(Turn { head, held: Err(error) }))
        }
        Err(error) if error.kind() == TimedOut => {
            Err(Failure::new("E0802", "another program has been signing this log for half a minute")
                .at("lock", path.display().to_string())
                .note(without))
        }
        Err(error) => Err(Failure::new("E0801", format!("cannot hold {}", path.display()))
            .at("cause", error.to_string())
            .note(without)),
    }
}

/// Remembers the newest head that was seen: a larger one is never replaced by a smaller one. That it cannot be written is not a
/// failure of what was asked, and is told.
fn pin(known: Option<(u64, Digest)>, checkpoint: &Checkpoint, turn: Option<&Turn>) {
    let Some(Turn { head, held }) = turn.filter(|_| !is_known(known, checkpoint)) else { return };
    let written = match held {
        Ok(lock) => {
            if lock.is_alone {
                // What another one left that was killed.
                files::remove_partial(head);
            }
            write_head(head, checkpoint).map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = written {
        let what = format!(
            "what was signed could not be remembered in {} ({error}), so a log that is put back to before it, or a copy that is signed as well, would not show",
            head.display()
        );
        // Nobody can be told that stderr is closed.
        let _ = writeln!(io::stderr(), "warning[E0801]: {}", dendrer_view::quote::escape(&what));
    }
}

/// Tells whether what is remembered is as new as a checkpoint.
fn is_known(known: Option<(u64, Digest)>, checkpoint: &Checkpoint) -> bool {
    known.is_some_and(|(size, _)| size >= checkpoint.size())
}

/// Waits for a turn, as long as others have theirs, and half a minute at most where what they remember stays as it is.
fn hold(path: &Path, head: &Path) -> io::Result<Lock> {
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        return Err(io::Error::other(format!("{} is no file", path.display())));
    }
    let file = File::options().write(true).create(true).truncate(false).open(path)?;
    let remembered = || read_kept(head).ok().flatten();
    let (mut seen, mut begin) = (remembered(), Instant::now());
    while begin.elapsed() < TURN_MAX {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(Duration::from_millis(10));
                let now = remembered();
                if now != seen {
                    (seen, begin) = (now, Instant::now());
                }
            }
            Ok(()) => return Ok(Lock { _file: file, is_alone: true }),
            // Some file systems have no locks. There, looking once more has to do.
            Err(TryLockError::Error(_)) => return Ok(Lock { _file: file, is_alone: false }),
        }
    }
    Err(ErrorKind::TimedOut.into())
}

/// How long a turn may take.
const TURN_MAX: Duration = Duration::from_secs(30);

/// A power cut leaves the head that was there or this one.
fn write_head(path: &Path, checkpoint: &Checkpoint) -> io::Result<()> {
    let mut whole = Whole::create(path)?;
    whole.write_all(checkpoint.to_string().as_bytes())?;
    whole.finish()?;
    let path = std::fs::canonicalize(path)?;
    files::sync_dir(files::dir_of(&path))
}

/// The newest head of a store that this user has seen. One that cannot be read, or is none, is not taken for none: an older log
/// would pass for the whole of it, and the next signature would forget what was longer.
pub(crate) fn pinned(store: StoreId) -> Result<Option<(u64, Digest)>> {
    let Some(path) = pin_path(store) else { return Ok(None) };
    let shown = path.display().to_string();
    let unknown = "so it is not known how long the log was when it was last signed here";
    let bytes = read_kept(&path).map_err(|error| {
        Failure::new("E0801", format!("cannot read {shown}"))
            .at("cause", error.to_string())
            .note(unknown)
            .note("see that the file can be read, and try again")
    })?;
    let Some(bytes) = bytes else { return Ok(None) };
    let checkpoint = std::str::from_utf8(&bytes).ok().and_then(|text| Checkpoint::parse(text).ok());
    match checkpoint.filter(|checkpoint| checkpoint.origin() == store.origin()) {
        Some(checkpoint) => Ok(Some((checkpoint.size(), checkpoint.root()))),
        None => {
            let found = dendrer_view::count(bytes.len() as u64, "byte", "bytes");
            Err(Failure::new("E0306", format!("{shown} is not the head of this log"))
                .at("found", found)
                .note(unknown)
                .note("where a backup, or a checkpoint kept elsewhere, shows that the log is whole, move the file away; the next signature makes it anew")
                .help(&["mv", &shown, &format!("{shown}.aside")]))
        }
    }
}
