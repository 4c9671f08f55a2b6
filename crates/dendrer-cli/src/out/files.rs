//! Files that are named on the command line: those that a verb reads, and the one that its answer goes to.
//!
//! A name may lead to anything, so at most one byte more is read than the limit of what is expected.

use std::cell::{Cell, RefCell};
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use dendrer::files::place_of;
use dendrer_object::json::DOCUMENT_SIZE_MAX;
use dendrer_object::text::behind_mark;
use dendrer_object::{Code, Value, json};

use crate::failure::Failure;
use crate::failure::Result;

pub(crate) use dendrer::files::{Whole, dir_of};

thread_local! {
    /// The files that the answer of the verb of this thread goes to; devices and pipes are not listed.
    static ANSWERS: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };

    /// Whether a file was not read because an answer goes there. A verb that goes on without it must not write that answer.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Forgets the answers of earlier verbs, in a process that asks several.
pub(crate) fn forget_answers() {
    ANSWERS.with_borrow_mut(Vec::clear);
    REFUSED.set(false);
}

/// Remembers the file of an answer, before anything is read. Refuses a file in a store or in `config`, the folder of keys
/// and heads; the file of the key; and standard input.
pub(crate) fn answer_to(path: &str, key: Option<&str>, config: Option<PathBuf>) -> Result<()> {
    // The folder of the answer must exist already: a verb that makes it would find the answer there.
    let whole = place_of(Path::new(path))
        .map_err(|error| unwritable(Path::new(path), &error).note("nothing was done"))?;
    // A store without its descriptor is a store to be mended.
    let is_store = |dir: &&Path| {
        dir.join("segments").is_dir()
            && (dir.join("store.json").is_file() || dir.join("segments/00000000.seg").is_file())
    };
    if let Some(store) = whole.ancestors().skip(1).find(is_store) {
        return Err(Failure::new(Code::E0106, format!("{path} is in the store at {}", store.display()))
            .note("nothing was done; an answer goes beside a store"));
    }
    if let Some(dir) = config.and_then(|dir| dir.canonicalize().ok())
        && whole.starts_with(&dir)
    {
        return Err(Failure::new(
            Code::E0106,
            format!("{path} is where keys and heads are kept, in {}", dir.display()),
        )
        .note("nothing was done; name another file"));
    }
    if is_stdin(&whole) {
        return Err(is_read(path));
    }
    if whole.is_file() || !whole.exists() {
        ANSWERS.with_borrow_mut(|answers| answers.push(whole));
    }
    // A verb that can do without a key would not report it.
    key.map_or(Ok(()), refuse_answer)
}

/// Tells whether a name is one of standard output.
pub(crate) fn is_stdout(file: &str) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].contains(&file)
}

/// Tells whether a file is standard input.
#[cfg(unix)]
fn is_stdin(path: &Path) -> bool {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::MetadataExt as _;
    let stdin = io::stdin().as_fd().try_clone_to_owned().and_then(|file| File::from(file).metadata());
    let same = |(a, b): (Metadata, Metadata)| a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino());
    stdin.ok().zip(std::fs::metadata(path).ok()).is_some_and(same)
}

#[cfg(not(unix))]
fn is_stdin(_: &Path) -> bool {
    false
}

fn is_read(path: &str) -> Failure {
    Failure::new(Code::E0106, format!("{path} is read, and the answer would go over it"))
        .note("nothing was done; name another file for the answer")
}

/// Refuses to read a file that an answer goes over.
pub(crate) fn refuse_answer(path: &str) -> Result<()> {
    let goes_over = |place| ANSWERS.with_borrow(|answers| answers.contains(&place));
    if !place_of(Path::new(path)).is_ok_and(goes_over) {
        return Ok(());
    }
    REFUSED.set(true);
    Err(is_read(path))
}

/// Returns the place of a file, some of whose directories may be missing.
fn place_to_be(path: &Path) -> PathBuf {
    let mut rest = PathBuf::new();
    for dir in path.ancestors() {
        let here = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        if let Ok(place) = place_of(here) {
            return place.join(rest);
        }
        rest = Path::new(dir.file_name().unwrap_or_default()).join(rest);
    }
    path.to_owned()
}

/// Refuses to make a file or a directory where an answer goes, around it or below it.
pub(crate) fn makes(path: &Path) -> Result<()> {
    let place = place_to_be(path);
    let meets = |answer: &&PathBuf| answer.starts_with(&place) || place.starts_with(answer);
    match ANSWERS.with_borrow(|answers| answers.iter().find(meets).cloned()) {
        None => Ok(()),
        Some(answer) => Err(Failure::new(
            Code::E0106,
            format!("{} is made, and the answer would go over it", answer.display()),
        )
        .note("nothing was done; name another file for the answer")),
    }
}

/// Refuses to write an answer over a file that the verb was to read.
pub(crate) fn refuse_late(path: &Path) -> Result<()> {
    if REFUSED.get() { Err(is_read(&path.display().to_string())) } else { Ok(()) }
}

/// Opens a file that a verb reads.
pub(crate) fn open(path: &str) -> Result<File> {
    refuse_answer(path)?;
    File::open(path).map_err(|error| cannot_read(path, &error))
}

/// Reads a file, and one byte more than `most` at most.
pub(crate) fn read(path: &str, most: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open(path)?.take(most as u64 + 1).read_to_end(&mut bytes);
    read.map(|_| bytes).map_err(|error| cannot_read(path, &error))
}

/// The failure of a file that cannot be read.
pub(crate) fn cannot_read(path: &str, error: &io::Error) -> Failure {
    Failure::new(Code::E0108, format!("cannot read {path}")).at("cause", error.to_string())
}

/// Reads a JSON file.
pub(crate) fn json(path: &str) -> Result<Value> {
    json::parse_door(behind_mark(&read(path, DOCUMENT_SIZE_MAX)?))
        .map_err(|error| Failure::new(error.code(), error.to_string()).at("file", path))
}

/// The failure of a file that cannot be written.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    unwritable(path, error).note("what was there before is still there")
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Code::E0801, format!("cannot write {}", path.display())).at("cause", error.to_string())
}
