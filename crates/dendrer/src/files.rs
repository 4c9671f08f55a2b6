//! Files that are written whole or not at all, and names that a power cut leaves whole.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that is written whole or not at all: what was under its name stays until all is on disk. A path that is no file, such
/// as a pipe, is written to as the bytes come.
pub struct Whole {
    file: BufWriter<File>,
    /// Its final path; `None` if it is written in place.
    path: Option<PathBuf>,
    /// The name it has until then, if it has any.
    beside: Option<PathBuf>,
}

impl Whole {
    /// Begins a file.
    pub fn create(path: &Path) -> io::Result<Whole> {
        let old = std::fs::metadata(path).ok();
        if old.as_ref().is_some_and(|about| !about.is_file() && !about.is_dir()) {
            return Ok(Whole::direct(OpenOptions::new().write(true).open(path)?));
        }
        let path = place_of(path)?;
        if path.is_dir() || path.file_name().is_none() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let (file, beside) = match nameless(&path) {
            Some(file) => (file, None),
            None => {
                let open = |beside: &Path| OpenOptions::new().write(true).create_new(true).open(beside);
                let (beside, file) = partial(&path, &mut { open })?;
                (file, Some(beside))
            }
        };
        let whole = Whole { file: BufWriter::new(file), path: Some(path), beside };
        // A reader that might not read the old file is not to read the new one.
        old.map_or(Ok(()), |old| whole.file.get_ref().set_permissions(old.permissions()))?;
        Ok(whole)
    }

    /// Writes to what is there, as it goes.
    fn direct(file: File) -> Whole {
        Whole { file: BufWriter::new(file), path: None, beside: None }
    }

    /// Begins a file that somebody reads while it grows.
    pub fn growing(path: &Path) -> io::Result<Whole> {
        #[cfg(unix)]
        if std::fs::metadata(path).is_ok_and(|about| std::os::unix::fs::MetadataExt::nlink(&about) > 1) {
            return Err(io::Error::other("it has another name, under which it would be cut as well"));
        }
        Ok(Whole::direct(File::create(path)?))
    }

    /// Puts the file under its name.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        let Some(path) = self.path.take() else { return Ok(()) };
        self.file.get_ref().sync_all()?;
        let beside = match &self.beside {
            Some(beside) => beside.clone(),
            None => {
                let (beside, ()) = partial(&path, &mut |beside| name(self.file.get_ref(), beside))?;
                self.beside.insert(beside).clone()
            }
        };
        std::fs::rename(beside, path)?;
        self.beside = None;
        Ok(())
    }
}

impl Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            let _ = std::fs::remove_file(beside);
        }
    }
}

/// The directory that a file is in.
pub fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the names in a directory durable.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    // Windows has no such call; its file systems make names durable with the file.
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}

/// Makes a directory and those that lead to it, each durable.
pub fn make_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let outer = dir_of(dir);
    if outer != dir {
        make_dir(outer)?;
    }
    match std::fs::create_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        made => made.and_then(|()| sync_dir(outer)),
    }
}

/// Takes a name of its own, which nobody else writes to. If each process has the same number, as in a container, one that was
/// killed may have left one.
fn partial<T>(path: &Path, take: &mut dyn FnMut(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    let stem = stem_of(path);
    for number in 0..10_000 {
        let beside = path.with_file_name(format!("{stem}{}-{number}{PARTIAL}", std::process::id()));
        match take(&beside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            taken => return taken.map(|taken| (beside, taken)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes what programs left that were stopped while they wrote a file. No program may be writing it then.
pub fn remove_partial(path: &Path) {
    let stem = stem_of(path);
    let is_left = |name: &str| name.starts_with(&stem) && name.ends_with(PARTIAL);
    for found in std::fs::read_dir(dir_of(path)).into_iter().flatten().flatten() {
        if found.file_name().to_str().is_some_and(is_left) {
            // It is in nobody's way.
            let _ = std::fs::remove_file(found.path());
        }
    }
}

const PARTIAL: &str = ".partial";

/// The prefix of the names that a file has while it is written. File systems take no names of more than 255 bytes.
fn stem_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().chars().take(50).collect::<String>() + "."
}

/// Begins a file without a name, of which nothing is left wherever the program is stopped; `None` where there is no such thing.
#[cfg(target_os = "linux")]
fn nameless(path: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let dir = dir_of(path);
    // It can be named by way of the process's own list of open files alone.
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(dir, flags, Mode::from_raw_mode(0o666)).ok()?;
    Path::new(SELF).is_dir().then(|| File::from(file))
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> Option<File> {
    None
}

#[cfg(target_os = "linux")]
const SELF: &str = "/proc/self/fd";

/// Names a file that has no name.
#[cfg(target_os = "linux")]
fn name(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD};
    use std::os::fd::AsRawFd;
    let own = format!("{SELF}/{}", file.as_raw_fd());
    Ok(rustix::fs::linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn name(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The place of a file, or the place that it would have: the target of a link, and not the link.
pub fn place_of(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    // As many links as a system follows.
    for _ in 0..40 {
        match std::fs::canonicalize(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        match std::fs::read_link(&path) {
            Ok(next) => path = dir_of(&path).join(next),
            // A file that is not there yet goes into a directory that is.
            Err(_) => {
                // A name that ends so means a directory, and the library reads over it.
                if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
                return Ok(dir_of(&path).canonicalize()?.join(name));
            }
        }
    }
    Err(io::Error::other("too many links"))
}

/// Inode and time of status change of a file, which a program cannot set back as it can the time of change. If the system has
/// neither, the time at which the file was made.
pub(crate) fn identity(about: &Metadata) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        format!("{} {} {}", about.ino(), about.ctime(), about.ctime_nsec())
    }
    #[cfg(not(unix))]
    {
        let made = about.created().ok().and_then(|made| made.duration_since(std::time::UNIX_EPOCH).ok());
        made.map_or(String::new(), |made| made.as_nanos().to_string())
    }
}
