//! The directory in which a demo is made before it is moved to its place, and those that an interrupted demo left.
//!
//! A demo that is under way has a lock on its directory. One without a lock was interrupted: `doctor` names it, `gc` and the
//! next demo remove it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use dendrer::store::embedded::Leftover;
use tempfile::TempDir;

/// How the name of such a directory begins.
const MAKING: &str = ".dendrer-making-";

/// The directory of a demo that names no other.
pub(crate) const DEMO_DIR: &str = "dendrer-demo";

/// A directory in which a demo is made. It is removed when this is dropped.
pub(crate) struct Making {
    dir: TempDir,
    /// Locked as long as the demo is made; `None` where a directory cannot be opened.
    _lock: Option<File>,
}

impl Making {
    /// Makes a directory below that of the demo.
    pub(crate) fn begin(demo: &Path) -> io::Result<Making> {
        let mut beside = tempfile::Builder::new();
        beside.prefix(MAKING);
        #[cfg(unix)]
        beside.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        let dir = beside.tempdir_in(demo)?;
        let lock = File::open(dir.path()).ok().filter(|file| file.try_lock().is_ok());
        Ok(Making { dir, _lock: lock })
    }

    /// A file or directory in it.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// Lists what interrupted demos left in a directory, with the size of each.
pub(crate) fn left_in(demo: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(demo).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(MAKING));
    let is_dir = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok_and(|about| about.is_dir());
    let mut left: Vec<PathBuf> =
        named.map(|entry| entry.path()).filter(is_dir).filter(|path| !is_under_way(path)).collect();
    left.sort();
    left
}

/// Lists what interrupted demos left in the directory of a store; without a store, here and in [`DEMO_DIR`].
pub(crate) fn left(store: Option<&Path>) -> Vec<Leftover> {
    let places = match store.and_then(Path::parent) {
        Some(beside) => vec![beside.to_owned()],
        None => vec![PathBuf::from("."), PathBuf::from(DEMO_DIR)],
    };
    let all = places.iter().flat_map(|place| left_in(place));
    let file = |path: &Path| path.strip_prefix(".").unwrap_or(path).display().to_string();
    all.map(|path| Leftover { file: file(&path), bytes: size(&path) }).collect()
}

/// Removes what interrupted demos left, and a demo's own directory if nothing else is in it.
pub(crate) fn remove(left: &[Leftover]) -> io::Result<()> {
    for one in left {
        let path = Path::new(&one.file);
        std::fs::remove_dir_all(path)?;
        if let Some(parent) = path.parent().filter(|parent| parent.ends_with(DEMO_DIR)) {
            // Ignored: other files are in it.
            let _ = std::fs::remove_dir(parent);
        }
    }
    Ok(())
}

/// Whether a process is making a demo in a directory.
fn is_under_way(dir: &Path) -> bool {
    match File::open(dir) {
        Ok(file) => matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)),
        Err(_) => false,
    }
}

/// The bytes of all files below a directory.
fn size(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let of = |path: PathBuf| match std::fs::symlink_metadata(&path) {
        Ok(about) if about.is_dir() => size(&path),
        Ok(about) => about.len(),
        Err(_) => 0,
    };
    entries.map(|entry| of(entry.path())).sum()
}
