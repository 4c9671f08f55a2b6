//! Snapshots and verdicts as rows to be listed and removed, and the room that is left behind them.

use std::path::Path;

use dendrer_object::Digest;
use rusqlite::{TransactionBehavior, params};

use super::{Index, Sql, bad_column, clamp, digest, open_writer, position, remove, truncate_log};
use crate::error::StoreError;
use crate::store::{KeptRow, KeptWhat};

impl Index {
    pub(crate) fn kept_rows(&self) -> Result<Vec<KeptRow>, StoreError> {
        let db = self.reader();
        let mut rows = Vec::new();
        let run = |row: &rusqlite::Row<'_>| row.get::<_, String>(0)?.parse().map_err(|_| bad_column(0));
        let mut snapshots =
            db.prepare_cached("SELECT run, tick, length(state) FROM snapshot ORDER BY run, tick")?;
        let found = snapshots.query_map([], |row| {
            let what = KeptWhat::Snapshot(position(row, 1)?);
            Ok(KeptRow { run: run(row)?, what, bytes: position(row, 2)? })
        })?;
        rows.extend(found.collect::<Sql<Vec<_>>>()?);
        let mut verdicts =
            db.prepare_cached("SELECT run, question, length(statement) FROM verdict ORDER BY run, question")?;
        let found = verdicts.query_map([], |row| {
            let what = KeptWhat::Verdicts(digest(row, 1)?);
            Ok(KeptRow { run: run(row)?, what, bytes: position(row, 2)? })
        })?;
        rows.extend(found.collect::<Sql<Vec<_>>>()?);
        Ok(rows)
    }

    pub(crate) fn room(&self) -> Result<u64, StoreError> {
        let db = self.reader();
        let number = |name: &str| db.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
        Ok((number("freelist_count")? as u64) * (number("page_size")? as u64))
    }
}

/// Removes rows in one transaction.
pub(crate) fn remove_kept(path: &Path, rows: &[KeptRow]) -> Result<(), StoreError> {
    let mut db = open_writer(path, false)?;
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for KeptRow { run, what, .. } in rows {
        match what {
            KeptWhat::Snapshot(tick) => transaction
                .prepare_cached("DELETE FROM snapshot WHERE run = ?1 AND tick = ?2")?
                .execute(params![run.as_str(), clamp(*tick)])?,
            KeptWhat::Verdicts(Digest(question)) => transaction
                .prepare_cached("DELETE FROM verdict WHERE run = ?1 AND question = ?2")?
                .execute(params![run.as_str(), &question[..]])?,
        };
    }
    Ok(transaction.commit()?)
}

/// Writes the database anew without what was removed.
pub(crate) fn compact(path: &Path) -> Result<(), StoreError> {
    let db = open_writer(path, false)?;
    db.execute_batch("VACUUM")?;
    drop(db);
    truncate_log(path)
}

/// Puts a database that was made beside in the place of the index. The caller holds the write lock of the store.
pub(crate) fn put_in_place(beside: &Path, path: &Path) -> Result<(), StoreError> {
    truncate_log(beside)?;
    let db = open_writer(beside, false)?;
    // One file, so that one rename is all of it.
    db.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    drop(db);
    let old = path.with_file_name("index-old.sqlite");
    for place in [path, &old] {
        // A directory was created by the user, and its content is theirs.
        if std::fs::symlink_metadata(place).is_ok_and(|about| about.is_dir()) {
            let source =
                std::io::Error::other("it is a directory, which dendrer does not make: move it away");
            return Err(StoreError::io("replace", place, source));
        }
    }
    remove(&old)?;
    let rename = |from: &Path, to: &Path| {
        std::fs::rename(from, to).map_err(|error| StoreError::io("rename", from, error))
    };
    // The old file is removed first: SQLite would take the files beside it for a part of the new one. A reader in
    // between finds no index, which is only slower.
    if path.exists() {
        rename(path, &old)?;
    }
    remove(path)?;
    rename(beside, path)?;
    remove(&old)
}
