//! The few things a store asks of a file system.
//!
//! [`Real`] is the file system; tests bring one that fails and forgets (`faulty`). Nothing else in this crate opens a
//! file, except SQLite for the derived index.
//!
//! Rule: reads and writes may be short or interrupted, so all code goes through `read_exact`, `write_all` and their
//! like.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// It exists and is only read.
    Read,
    /// It exists and is written. A link is refused.
    Write,
    /// It is made if it does not exist, and written. A link is refused.
    Create,
}

/// A file system.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Opens a file.
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn DiskFile>>;
    /// Makes a directory and its parents; one that exists is fine.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Puts a file in the place of another.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Lists the names in a directory.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

/// An open file. Offsets are given with each call, so that handles can be shared.
pub trait DiskFile: fmt::Debug + Send + Sync {
    /// Reads some bytes; 0 at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes some of the bytes.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Makes content and length durable.
    fn sync(&self) -> io::Result<()>;
    /// Cuts or extends the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Returns the length.
    fn len(&self) -> io::Result<u64>;
    /// Tells whether the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Takes the advisory lock; `false` if another handle has it.
    fn try_lock(&self) -> io::Result<bool>;
    /// Gives the lock back.
    fn unlock(&self) -> io::Result<()>;
}

/// Fills the buffer; [`io::ErrorKind::UnexpectedEof`] if the file ends before.
pub fn read_exact(file: &dyn DiskFile, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    match read_up_to(file, buffer, offset)? {
        read if read == buffer.len() => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Fills the buffer as far as the file goes, and returns how far.
pub fn read_up_to(file: &dyn DiskFile, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes all bytes.
pub fn write_all(file: &dyn DiskFile, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => done += written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads a small file; `None` if it does not exist. Refuses files beyond `max` bytes.
pub fn read_file(disk: &dyn Disk, path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open(path, Open::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let len = file.len()?;
    if len > max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{len} bytes are more than {max}")));
    }
    let mut bytes = vec![0; len as usize];
    let read = read_up_to(&*file, &mut bytes, 0)?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

/// Refuses a link: a store writes and removes files in its own directory, never at a path that the maker of the store
/// chose.
fn refuse_link(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_symlink() => {
            let what = format!("{} is a link, and is not written through", path.display());
            Err(io::Error::new(io::ErrorKind::InvalidInput, what))
        }
        _ => Ok(()),
    }
}

/// Says how a file is one that something else may be written through: the other one, or one of several names.
#[cfg(unix)]
pub(crate) fn shared_with(path: &Path, other: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let about = std::fs::symlink_metadata(path).ok().filter(|about| about.is_file())?;
    let is_same = |other: std::fs::Metadata| (other.dev(), other.ino()) == (about.dev(), about.ino());
    if std::fs::metadata(other).is_ok_and(is_same) {
        return Some("is that of the store itself".to_owned());
    }
    (about.nlink() > 1).then(|| format!("has {} names (hard links)", about.nlink()))
}

/// As elsewhere. Which file a name is of is not asked where systems differ.
#[cfg(not(unix))]
pub(crate) fn shared_with(_: &Path, _: &Path) -> Option<String> {
    None
}

/// Refuses links among the directories that lead from one of a store to another that is in it.
pub(crate) fn refuse_links(from: &Path, to: &Path) -> io::Result<()> {
    let below = to.strip_prefix(from).unwrap_or(Path::new(""));
    below
        .ancestors()
        .filter(|part| !part.as_os_str().is_empty())
        .try_for_each(|part| refuse_link(&from.join(part)))
}

/// Replaces a file so that after a crash it has the old bytes or the new ones: write beside, sync, rename, sync the
/// directory.
pub fn replace_file(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let beside = path.with_extension("tmp");
    // A leftover of an earlier time may be another name of some other file.
    match disk.remove(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = disk.open(&beside, Open::Create)?;
    file.set_len(0)?;
    write_all(&*file, bytes, 0)?;
    file.sync()?;
    drop(file);
    disk.rename(&beside, path)?;
    disk.sync_dir(dir)
}

/// Takes the lock, waiting at most as long as given. `false` if another handle kept it.
pub fn lock_within(file: &dyn DiskFile, wait: Duration) -> io::Result<bool> {
    lock_while(file, wait, &briefly_held, &mut || true)
}

/// As [`lock_within`], and does something useful each time before it pauses, which returns whether the lock is still
/// wanted. How long a pause is follows from how long it has waited.
pub fn lock_while(
    file: &dyn DiskFile,
    wait: Duration,
    pause: &dyn Fn(Duration) -> Duration,
    useful: &mut dyn FnMut() -> bool,
) -> io::Result<bool> {
    let begin = Instant::now();
    let mut noted = WaitNote::default();
    loop {
        match file.try_lock() {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        let waited = begin.elapsed();
        let left = wait.saturating_sub(waited);
        if left.is_zero() || !useful() {
            return Ok(false);
        }
        noted.after(waited);
        std::thread::sleep(pause(waited).min(left));
    }
}

/// How long a lock is waited for without a note.
const UNNOTED: Duration = Duration::from_secs(1);

/// The words for a wait for a lock of another program.
pub const WAITS: &str = "waiting for the store: another program writes";

/// The function that notes a long wait; `None` if nothing does.
static ON_WAIT: RwLock<Option<fn()>> = RwLock::new(None);

/// Sets the function that is called when a lock of another program has been waited for longer than a second, for each such wait.
/// It may not use a store.
pub fn on_wait(note: fn()) {
    *ON_WAIT.write().unwrap_or_else(PoisonError::into_inner) = Some(note);
}

/// Notes a wait for a lock once.
#[derive(Debug, Default)]
pub struct WaitNote {
    is_noted: bool,
}

impl WaitNote {
    /// Calls the function of [`on_wait`] if the wait is long, and was not noted yet.
    pub fn after(&mut self, waited: Duration) {
        if self.is_noted || waited < UNNOTED {
            return;
        }
        self.is_noted = true;
        let note = *ON_WAIT.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(note) = note {
            note();
        }
    }
}

/// Returns the pause before the next try of a lock that is usually held for about one write: longer pauses would
/// leave it free while many want it. Only after a long wait the tries become rare.
pub fn briefly_held(waited: Duration) -> Duration {
    (waited / 32).clamp(Duration::from_micros(50), Duration::from_millis(2))
}

/// Lets a file that is only read end at a length.
pub(crate) fn limited(file: Arc<dyn DiskFile>, len: u64) -> Arc<dyn DiskFile> {
    Arc::new(Limited { file, len })
}

#[derive(Debug)]
struct Limited {
    file: Arc<dyn DiskFile>,
    len: u64,
}

impl DiskFile for Limited {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let size = buffer.len().min(left);
        self.file.read_at(&mut buffer[..size], offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.len()?.min(self.len))
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }
}

/// How long a file is waited for that another process holds.
const HELD_MAX: Duration = Duration::from_millis(500);

/// Whether another process has the file open in a way that forbids replacing it. On Windows a virus scanner does so
/// for a moment with every new file.
fn is_held(error: &io::Error) -> bool {
    const ACCESS_DENIED: i32 = 5;
    const SHARING_VIOLATION: i32 = 32;
    cfg!(windows) && matches!(error.raw_os_error(), Some(ACCESS_DENIED | SHARING_VIOLATION))
}

/// The file system of the machine.
#[derive(Debug, Default, Clone, Copy)]
pub struct Real;

impl Disk for Real {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        // Opening a pipe blocks until another process writes to it.
        if cfg!(unix) {
            match std::fs::metadata(path) {
                Ok(about) if !about.is_file() => {
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
                }
                // Every append asks for the next segment, which is as a rule not there.
                Err(error) if error.kind() == io::ErrorKind::NotFound && how != Open::Create => {
                    return Err(error);
                }
                _ => {}
            }
        }
        let mut options = OpenOptions::new();
        options.read(true);
        if how != Open::Read {
            refuse_link(path)?;
            options.write(true).create(how == Open::Create);
        }
        Ok(Arc::new(RealFile(options.open(path)?)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let begin = Instant::now();
        loop {
            match std::fs::rename(from, to) {
                Err(error) if is_held(&error) && begin.elapsed() < HELD_MAX => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                done => return done,
            }
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        // Windows has no such call; its file systems make names durable with the file.
        if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
    }
}

#[derive(Debug)]
struct RealFile(File);

impl DiskFile for RealFile {
    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.0, buffer, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(&self.0, buffer, offset)
    }

    #[cfg(unix)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::write_at(&self.0, bytes, offset)
    }

    #[cfg(windows)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_write(&self.0, bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        // On Windows the standard library unlocks twice, and passes over the error of the second call where it is the one
        // of Windows. Wine has this one.
        const LOCK_VIOLATION: i32 = 33;
        match self.0.unlock() {
            Err(error) if cfg!(windows) && error.raw_os_error() == Some(LOCK_VIOLATION) => Ok(()),
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> Arc<dyn DiskFile> {
        Real.open(path, Open::Create).unwrap()
    }

    #[test]
    fn a_lock_is_one_handles_and_goes_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let (first, second) = (open(&path), open(&path));
        assert!(first.try_lock().unwrap());
        assert!(!second.try_lock().unwrap());
        let mut looks = 0;
        let begin = Instant::now();
        let mut look = || {
            looks += 1;
            true
        };
        assert!(!lock_while(&*second, Duration::from_millis(20), &briefly_held, &mut look).unwrap());
        assert!(looks > 0 && begin.elapsed() >= Duration::from_millis(20));
        let given_up = lock_while(&*second, Duration::from_secs(600), &briefly_held, &mut || false);
        assert!(!given_up.unwrap(), "it is not wanted any more");
        // Given back by hand, and by closing, as when a process ends.
        first.unlock().unwrap();
        assert!(lock_within(&*second, Duration::ZERO).unwrap());
        drop(second);
        assert!(first.try_lock().unwrap());
    }

    #[test]
    fn a_lock_is_taken_as_soon_as_it_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let (first, second) = (open(&path), open(&path));
        assert!(first.try_lock().unwrap());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| lock_within(&*second, Duration::from_secs(60)).unwrap());
            std::thread::sleep(Duration::from_millis(30));
            first.unlock().unwrap();
            assert!(waits.join().unwrap());
        });
    }

    #[test]
    fn a_file_takes_the_place_of_another_while_that_one_is_read() {
        let dir = tempfile::tempdir().unwrap();
        // Names that need care: spaces, letters beyond ASCII, a dot in front, another ending.
        for name in ["store.json", "two words.txt", ".hidden", "größe-测试.d", "no-ending"] {
            let path = dir.path().join(name);
            replace_file(&Real, &path, b"old").unwrap();
            let reader = Real.open(&path, Open::Read).unwrap();
            replace_file(&Real, &path, b"new and longer").unwrap();
            let mut seen = [0; 3];
            read_exact(&*reader, &mut seen, 0).unwrap();
            assert_eq!(&seen, b"old", "{name}: whoever has it open reads what it was");
            assert_eq!(read_file(&Real, &path, 100).unwrap().as_deref(), Some(&b"new and longer"[..]));
            assert!(read_file(&Real, &path, 5).is_err());
        }
        let mut names = Real.list(dir.path()).unwrap();
        names.sort();
        assert_eq!(names.len(), 5, "nothing is left beside them: {names:?}");
    }

    /// Opens the file as a scanner does: no other process may delete it, nor move a file to its place.
    #[test]
    #[cfg(windows)]
    fn a_file_that_is_held_for_a_moment_is_waited_for() {
        use std::os::windows::fs::OpenOptionsExt;
        const READ_AND_WRITE: u32 = 3;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("checkpoint");
        replace_file(&Real, &path, b"old").unwrap();
        let held = || OpenOptions::new().read(true).share_mode(READ_AND_WRITE).open(&path).unwrap();
        let scanner = held();
        assert!(is_held(&replace_file(&Real, &path, b"new").unwrap_err()), "not for ever");
        assert_eq!(read_file(&Real, &path, 100).unwrap().as_deref(), Some(&b"old"[..]));
        drop(scanner);
        let scanner = held();
        std::thread::scope(|scope| {
            let replaces = scope.spawn(|| replace_file(&Real, &path, b"new"));
            std::thread::sleep(Duration::from_millis(50));
            drop(scanner);
            replaces.join().unwrap().unwrap();
        });
        assert_eq!(read_file(&Real, &path, 100).unwrap().as_deref(), Some(&b"new"[..]));
    }

    #[test]
    fn bytes_are_read_and_written_where_it_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = open(&path);
        write_all(&*file, b"world", 6).unwrap();
        write_all(&*file, b"hello ", 0).unwrap();
        let mut text = [0; 20];
        assert_eq!(read_up_to(&*file, &mut text, 0).unwrap(), 11);
        assert_eq!(&text[..11], b"hello world");
        assert_eq!(read_up_to(&*file, &mut text, 11).unwrap(), 0);
        assert_eq!(read_exact(&*file, &mut text, 3).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        file.set_len(5).unwrap();
        assert_eq!(file.len().unwrap(), 5);
        assert!(Real.open(&dir.path().join("none"), Open::Write).is_err(), "only what is to be made is made");
        // Not every file system lets go of a name while the file is open.
        drop(file);
        Real.remove(&path).unwrap();
        assert_eq!(read_file(&Real, &path, 5).unwrap(), None);
    }
}
