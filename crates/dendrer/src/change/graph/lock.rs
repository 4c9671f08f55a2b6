//! One process at a time runs a graph under a name.

use std::fs::{File, TryLockError};
use std::path::Path;

use dendrer_object::{Digest, RunName};
use dendrer_store::StoreError;

use crate::error::{Error, GraphRefused};

/// The directory of the locks in a store.
const LOCKS: &str = "graph-runs";

/// Takes the lock of a run until the file is dropped, also by the end of the process. The file stays: a second process may have
/// it open already.
///
/// # Errors
///
/// E0943 if another process has it.
pub(super) fn take(store: &Path, run: &RunName) -> Result<File, Error> {
    let locks = store.join(LOCKS);
    let name = Digest::of(run.as_str().as_bytes());
    let path = locks.join(format!("{}.lock", name.hex()));
    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |source| Error::from(StoreError::Io { action, path, source })
    };
    std::fs::create_dir_all(&locks).map_err(io("make", &locks))?;
    let options = File::options().create(true).truncate(false).write(true).open(&path);
    let file = options.map_err(io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(GraphRefused::UnderWay(run.clone()).into()),
        Err(TryLockError::Error(error)) => Err(io("lock", &path)(error)),
    }
}
