//! The files that a store keeps besides its log, listed and removed: snapshots and verdicts, which follow from the log, and
//! files that interrupted work left.
//!
//! Never touches a segment, a checkpoint or the descriptor. A file that is removed here can be made again, and its presence
//! changes no answer.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Embedded;
use crate::descriptor::MARK;
use crate::disk::Open;
use crate::error::StoreError;
use crate::index::{self, NoIndex};
use crate::layout::{VAULT, is_vault_name};
use crate::store::{KeptRow, ReadLog as _};

/// A file that interrupted work left. It means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The file, below the store's directory.
    pub file: String,
    /// Its length.
    pub bytes: u64,
}

/// The state of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexState {
    /// One that covers so many records.
    Ready(u64),
    /// None. A small store needs none.
    Absent,
    /// One that is not what it must be, or of another store, and why.
    Corrupt(String),
    /// One of a newer version of the tables. Not ours to remove.
    Newer(i64),
    /// One that another program has locked, for reading too.
    Locked,
    /// One that cannot be opened here, and why.
    Unreadable(String),
    /// One that this handle does not look at.
    Unused,
}

/// The state of the tiles of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TilesState {
    /// There is no such file.
    Absent,
    /// They lead to the root that the log has at this size.
    Ready(u64),
    /// They do not. They are derived, and laid out again when the log is signed next.
    Wrong,
}

/// Databases that are made beside the index, and go again.
const BESIDE: [&str; 3] = ["index-check", "index-new", "index-old"];

impl Embedded {
    /// Lists the snapshots and verdicts that are kept, snapshots first, run by run and in order of tick.
    pub fn kept_rows(&self) -> Result<Vec<KeptRow>, StoreError> {
        self.check_owner()?;
        self.index.as_ref().map_or(Ok(Vec::new()), |index| index.kept_rows())
    }

    /// Removes rows that are kept. The caller decides which are worth their room.
    pub fn remove_kept(&self, rows: &[KeptRow]) -> Result<(), StoreError> {
        self.check_writable()?;
        match &self.index {
            Some(_) if !rows.is_empty() => index::remove_kept(&self.index_path(), rows),
            _ => Ok(()),
        }
    }

    /// Returns how many bytes of the index file hold nothing.
    pub fn index_room(&self) -> Result<u64, StoreError> {
        self.check_owner()?;
        self.index.as_ref().map_or(Ok(0), |index| index.room())
    }

    /// Gives back the bytes of the index file that hold nothing, and returns how many those were. Fails while others
    /// use the index.
    pub fn compact_index(&self) -> Result<u64, StoreError> {
        self.check_writable()?;
        let path = self.index_path();
        let len = || std::fs::metadata(&path).map_or(0, |about| about.len());
        let before = len();
        if self.index.is_some() {
            index::compact(&path)?;
        }
        Ok(before.saturating_sub(len()))
    }

    /// Says what there is of an index.
    pub fn index_state(&self) -> IndexState {
        match (&self.index, &self.no_index) {
            (Some(_), _) => IndexState::Ready(self.tail.base),
            (None, Some(NoIndex::Absent)) => IndexState::Absent,
            (None, Some(NoIndex::Corrupt(why))) => IndexState::Corrupt(why.clone()),
            (None, Some(NoIndex::Newer(version))) => IndexState::Newer(*version),
            (None, Some(NoIndex::Locked)) => IndexState::Locked,
            (None, Some(NoIndex::Unreadable(why))) => IndexState::Unreadable(why.clone()),
            (None, None) => IndexState::Unused,
        }
    }

    /// Whether another program has the index locked, so that the index is late.
    pub fn is_index_locked(&self) -> bool {
        match (&self.index, &self.no_index) {
            (Some(_), _) => index::is_locked(&self.index_path()),
            (None, no_index) => matches!(no_index, Some(NoIndex::Locked)),
        }
    }

    /// Reads all pages of the index. A query reads the few that it needs, and finds out about those alone.
    pub fn check_index(&self) -> Result<(), StoreError> {
        self.check_owner()?;
        self.index.as_ref().map_or(Ok(()), |index| index.check())
    }

    /// Says whether the tiles are those of the log.
    pub fn tiles_state(&self) -> Result<TilesState, StoreError> {
        self.check_owner()?;
        let (complete, checkpoint) = self.tiled()?;
        let Some(checkpoint) = checkpoint else { return Ok(TilesState::Absent) };
        let size = checkpoint.size();
        let root = if size > self.tree().size { None } else { self.root_at(size)? };
        Ok(if complete == size && root == Some(checkpoint.root()) {
            TilesState::Ready(size)
        } else {
            TilesState::Wrong
        })
    }

    /// Whether no process is appending at this moment.
    pub fn is_lock_free(&self) -> Result<bool, StoreError> {
        self.is_free("lock")
    }

    /// Whether no process has a lock of the store.
    fn is_free(&self, name: &str) -> Result<bool, StoreError> {
        let path = self.dir.join(name);
        let io = |error| StoreError::io("lock", &path, error);
        match self.options.disk.open(&path, Open::Read) {
            Ok(lock) => {
                let free = lock.try_lock().map_err(io)?;
                if free {
                    lock.unlock().map_err(io)?;
                }
                Ok(free)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
            Err(error) => Err(io(error)),
        }
    }

    /// Lists the files of interrupted work. A file that a process works on at this moment is left out.
    pub fn leftovers(&self) -> Result<Vec<Leftover>, StoreError> {
        // If the lock cannot be tried, a process may be building an index.
        self.leftovers_while(!self.is_free("index-lock").unwrap_or(false))
    }

    fn leftovers_while(&self, an_index_is_made: bool) -> Result<Vec<Leftover>, StoreError> {
        let is_worked_on = |name: &str| an_index_is_made && name.starts_with("index-");
        // Of ours none is a directory, and what is in one may be somebody's.
        self.look_around(&|name, is_dir| !is_dir && is_leftover(name) && !is_worked_on(name))
    }

    /// Lists files and directories that no store has.
    pub fn foreign(&self) -> Result<Vec<Leftover>, StoreError> {
        self.look_around(&|name, is_dir| is_dir || !is_leftover(name) && !is_ours(name))
    }

    /// Removes the files that interrupted work left. As the lock holder, so that no work is under way.
    pub fn remove_leftovers(&mut self) -> Result<Vec<Leftover>, StoreError> {
        self.check_writable()?;
        self.take_lock()?;
        let removed = self.remove_leftovers_locked();
        self.unlock();
        removed
    }

    fn remove_leftovers_locked(&self) -> Result<Vec<Leftover>, StoreError> {
        // Held meanwhile, so that no process begins to build an index.
        let making = self.lock_making(Duration::ZERO);
        let leftovers = self.leftovers_while(making.is_err())?;
        for leftover in &leftovers {
            let path = self.dir.join(&leftover.file);
            match self.options.disk.remove(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(StoreError::io("remove", &path, error));
                }
                _ => {}
            }
        }
        Ok(leftovers)
    }

    /// Lists what there is in the directory of the store that is wanted, by name and whether it is a directory. Those that a store
    /// has are looked into. Follows no link.
    fn look_around(&self, wanted: &dyn Fn(&str, bool) -> bool) -> Result<Vec<Leftover>, StoreError> {
        self.check_owner()?;
        let mut found = Vec::new();
        look_into(&self.dir, Path::new(""), wanted, &mut found)?;
        found.sort_by(|a, b| a.file.cmp(&b.file));
        Ok(found)
    }
}

fn look_into(
    dir: &Path,
    below: &Path,
    wanted: &dyn Fn(&str, bool) -> bool,
    found: &mut Vec<Leftover>,
) -> Result<(), StoreError> {
    let here: PathBuf = dir.join(below);
    let io = |error| StoreError::io("list", &here, error);
    // A file that others put in place or remove meanwhile is no leftover.
    let is_gone = |error: &std::io::Error| error.kind() == ErrorKind::NotFound;
    let entries = match std::fs::read_dir(&here) {
        Err(error) if is_gone(&error) && !below.as_os_str().is_empty() => return Ok(()),
        entries => entries.map_err(io)?,
    };
    for entry in entries {
        let entry = entry.map_err(io)?;
        let about = match entry.metadata() {
            Err(error) if is_gone(&error) => continue,
            about => about.map_err(io)?,
        };
        let path = below.join(entry.file_name());
        let name = path.to_string_lossy().replace('\\', "/");
        let is_inner = match name.as_str() {
            "segments" | "log" | "log/tile" | VAULT => true,
            name => name.starts_with("log/tile/") && is_ours(name),
        };
        if about.is_dir() && is_inner {
            look_into(dir, &path, wanted, found)?;
        } else if wanted(&name, about.is_dir()) {
            found.push(Leftover { file: name, bytes: if about.is_file() { about.len() } else { 0 } });
        }
    }
    Ok(())
}

fn is_leftover(name: &str) -> bool {
    let beside = |name: &str| BESIDE.iter().any(|base| name.strip_prefix(base).is_some_and(is_database));
    let is_of_vault = |name: &str| {
        let file = name.strip_prefix(VAULT).and_then(|file| file.strip_prefix('/')?.strip_suffix(".tmp"));
        file.is_some_and(is_vault_name)
    };
    let known = !name.contains('/') || name.starts_with("log/") || is_of_vault(name);
    known && name.ends_with(".tmp") || beside(name)
}

fn is_database(end: &str) -> bool {
    [".sqlite", ".sqlite-wal", ".sqlite-shm", ".sqlite-journal"].contains(&end)
}

fn is_ours(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let is_segment = |name: &str| name.strip_suffix(".seg").is_some_and(|n| n.len() >= 8 && is_number(n));
    // Parts of the number of a tile are x001/x002/003, and a partial one has its width behind `.p/`.
    let is_tile_part = |part: &str| {
        let part = part.strip_suffix(".p").unwrap_or(part);
        part == "entries" || is_number(part.strip_prefix('x').unwrap_or(part))
    };
    match name.split_once('/') {
        None => {
            matches!(
                name,
                "store.json"
                    | "checkpoint"
                    | "lock"
                    | "index-lock"
                    | "sync-lock"
                    | "synced"
                    | "segments"
                    | "log"
                    | VAULT
                    | MARK
            ) || name.strip_prefix("index").is_some_and(is_database)
        }
        Some(("segments", file)) => is_segment(file),
        Some((VAULT, file)) => is_vault_name(file),
        Some(("log", "checkpoint")) => true,
        Some(("log", file)) => {
            file.strip_prefix("tile/").is_some_and(|rest| rest.split('/').all(is_tile_part))
        }
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VAULT_TMP: &str = "vault/00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff.tmp";

    #[test]
    fn every_file_of_a_store_is_known_and_nothing_else() {
        for name in [
            "store.json",
            "lock",
            "index-lock",
            "sync-lock",
            "synced",
            "checkpoint",
            "backup.json",
            "index.sqlite",
            "index.sqlite-wal",
            "segments/00000000.seg",
            "segments/123456789.seg",
            "log/checkpoint",
            "log/tile/0/x001/234",
            "log/tile/entries/000.p/17",
            "vault/00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
        ] {
            assert!(is_ours(name) && !is_leftover(name), "{name}");
        }
        for name in
            ["store.tmp", "index-new.sqlite", "index-check.sqlite-wal", "log/tile/0/001.tmp", VAULT_TMP]
        {
            assert!(is_leftover(name), "{name}");
        }
        for name in [
            "notes.txt",
            "segments/0.seg",
            "segments/00000000.seg.bak",
            "log/x",
            "log/tile/a",
            "keys/k",
            "vault/x",
            "vault/x.tmp",
        ] {
            assert!(!is_ours(name) && !is_leftover(name), "{name}");
        }
        assert!(!is_leftover("segments/00000000.tmp"), "nothing among the segments is removed");
    }
}
