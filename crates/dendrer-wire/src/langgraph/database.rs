//! A database of `langgraph-checkpoint-sqlite`, read in place.
//!
//! The database is opened for reading alone and read in one transaction; a write-ahead log next to it is honoured. Views, triggers
//! and functions of its schema are not trusted: each statement names columns of ordinary tables.
//!
//! Rule: no file is made next to the database. One that has a write-ahead log as its mode and no such file is read without locks, and
//! [`Database::confirm`] fails if it changed meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dendrer::checkpoint::TypedBytes;
use dendrer_object::{Code, Digest};
use ring::digest::{Context, SHA256};
use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};

use super::order::{CheckpointRow, WriteRow};
use crate::import::ImportError;

/// The first bytes of a database of SQLite.
pub(crate) const MAGIC: &[u8] = b"SQLite format 3\0";

/// The two bytes of the header that name the mode of a database, and their value if it has a write-ahead log.
const MODE: (std::ops::Range<usize>, u8) = (18..20, 2);

/// How long another process that writes is waited for.
const WAIT: Duration = Duration::from_secs(5);

/// The longest value of a row.
const VALUE_MAX: u64 = 64 << 20;

/// The columns of the checkpoints.
const CHECKPOINTS: (&str, &[&str]) = (
    "checkpoints",
    &[
        "thread_id",
        "checkpoint_ns",
        "checkpoint_id",
        "parent_checkpoint_id",
        "type",
        "checkpoint",
        "metadata",
    ],
);

/// The columns of the writes, without the path of a task, which old databases do not have.
const WRITES: (&str, &[&str]) = (
    "writes",
    &["thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value"],
);

/// The column that old databases do not have.
const PATH: &str = "task_path";

/// Names by which a table without such a column has the numbers of its rows.
const NUMBERS: [&str; 3] = ["rowid", "_rowid_", "oid"];

/// Size and time of a file.
type FileState = (u64, Option<SystemTime>);

/// A database of checkpoints, open for reading in one transaction.
#[derive(Debug)]
pub struct Database {
    db: Connection,
    path: PathBuf,
    /// The file as it was, of a database that is read without locks.
    unlocked: Option<FileState>,
    threads: Vec<ThreadRows>,
    /// Columns that are not read, each with the number of its values.
    others: Vec<(String, u64)>,
}

/// The rows of a thread, without the values.
#[derive(Debug, Clone, Default)]
pub struct ThreadRows {
    pub(crate) id: Arc<str>,
    pub(crate) checkpoints: Vec<CheckpointRow>,
    pub(crate) writes: Vec<WriteRow>,
}

impl ThreadRows {
    /// The text by which its program knows the thread.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The number of its checkpoints and of its writes.
    pub fn counts(&self) -> (u64, u64) {
        (self.checkpoints.len() as u64, self.writes.len() as u64)
    }
}

impl Database {
    /// Opens the database in a file.
    ///
    /// # Errors
    ///
    /// E0203 for a file with other tables, E0802 if another process has it locked, E0213 for one that is damaged.
    pub fn open(path: &Path) -> Result<Database, ImportError> {
        // The log of a database is next to the file that a link leads to.
        let path = if cfg!(windows) { std::path::absolute(path) } else { path.canonicalize() };
        let path = path.map_err(ImportError::Io)?;
        let mut head = Vec::new();
        File::open(&path).and_then(|file| file.take(100).read_to_end(&mut head)).map_err(ImportError::Io)?;
        if !head.starts_with(MAGIC) {
            return Err(other("the file is no database of SQLite"));
        }
        refuse_cut(&head, &path)?;
        let has_log = head.get(MODE.0).is_some_and(|mode| mode.contains(&MODE.1));
        let is_unlocked = has_log && !log_of(&path).exists();
        let unlocked = is_unlocked.then(|| state_of(&path)).transpose()?;
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        let db = Connection::open_with_flags(uri(&path, is_unlocked), flags).map_err(failed)?;
        secure(&db).map_err(failed)?;
        let mut database = Database { db, path, unlocked, threads: Vec::new(), others: Vec::new() };
        database.db.execute_batch("BEGIN").map_err(failed)?;
        let [checkpoints, writes] =
            [CHECKPOINTS, WRITES].map(|(table, wanted)| database.columns(table, wanted));
        let (checkpoints, writes) = (checkpoints?, writes?);
        database.count_others(CHECKPOINTS, &checkpoints)?;
        database.count_others(WRITES, &writes)?;
        database.threads = database.scan(writes.iter().any(|name| name == PATH))?;
        if database.threads.is_empty() {
            return Err(other("the tables checkpoints and writes are empty"));
        }
        Ok(database)
    }

    /// The threads, by their oldest checkpoints.
    pub fn threads(&self) -> &[ThreadRows] {
        &self.threads
    }

    /// Columns that are not read, each with the number of its values.
    pub(crate) fn others(&self) -> &[(String, u64)] {
        &self.others
    }

    /// Fails if the file changed since it was opened, of a database that is read without locks.
    pub(crate) fn confirm(&self) -> Result<(), ImportError> {
        match self.unlocked {
            Some(before) if log_of(&self.path).exists() || state_of(&self.path)? != before => {
                Err(ImportError::Changed)
            }
            _ => Ok(()),
        }
    }

    /// The names of the columns of a table. It must be an ordinary table, and have those that are wanted.
    fn columns(&self, table: &str, wanted: &[&str]) -> Result<Vec<String>, ImportError> {
        let sql = "SELECT type, rootpage FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE AND type IN ('table', 'view')";
        let mut found = self.db.prepare(sql).map_err(failed)?;
        let found = found.query_map([table], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)));
        let found: Vec<(String, i64)> = found.and_then(Iterator::collect).map_err(failed)?;
        match &found[..] {
            [(kind, page)] if kind == "table" && *page > 0 => {}
            [] => return Err(other(&format!("the database has no table {table}"))),
            _ => return Err(other(&format!("{table} is no ordinary table"))),
        }
        let sql = format!("PRAGMA table_xinfo({table})");
        let mut columns = self.db.prepare(&sql).map_err(failed)?;
        let columns =
            columns.query_map([], |row| Ok((row.get::<_, String>("name")?, row.get::<_, i64>("hidden")?)));
        let columns: Vec<(String, i64)> = columns.and_then(Iterator::collect).map_err(failed)?;
        if let Some(name) = wanted.iter().find(|name| !columns.iter().any(|(column, _)| column == *name)) {
            return Err(other(&format!("the table {table} has no column {name}")));
        }
        let is_odd = |(name, hidden): &&(String, i64)| {
            *hidden != 0 || NUMBERS.iter().any(|number| name.eq_ignore_ascii_case(number))
        };
        match columns.iter().find(is_odd) {
            Some((name, _)) => {
                Err(other(&format!("the column {name} of the table {table} is no ordinary one")))
            }
            None => Ok(columns.into_iter().map(|(name, _)| name).collect()),
        }
    }

    /// Counts the values of columns that are not read.
    fn count_others(&mut self, (table, wanted): (&str, &[&str]), all: &[String]) -> Result<(), ImportError> {
        let is_other = |name: &&String| !wanted.contains(&name.as_str()) && *name != PATH;
        for name in all.iter().filter(is_other) {
            let sql = format!("SELECT count(\"{}\") FROM {table} NOT INDEXED", name.replace('"', "\"\""));
            let count: i64 = self.db.query_row(&sql, [], |row| row.get(0)).map_err(failed)?;
            self.others.push((format!("{table}/{name}"), u64::try_from(count).unwrap_or(0)));
        }
        Ok(())
    }

    /// Reads the keys of all rows. No index is used: one that lacks rows would hide them.
    fn scan(&self, has_path: bool) -> Result<Vec<ThreadRows>, ImportError> {
        let mut threads: BTreeMap<Arc<str>, ThreadRows> = BTreeMap::new();
        let mut names = Names::default();
        let sql = "SELECT rowid, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, \
                   octet_length(checkpoint), octet_length(metadata) FROM checkpoints NOT INDEXED";
        self.each(sql, &mut |row| {
            let number = integer(row, 0)?;
            let mut text = |at, column| Ok::<_, ImportError>(names.of(&text(row, at, column, number)?));
            let thread = text(1, "thread_id")?;
            let (namespace, id) = (text(2, "checkpoint_ns")?, text(3, "checkpoint_id")?);
            let parent = match row.get_ref(4).map_err(failed)? {
                ValueRef::Null => None,
                _ => Some(text(4, "parent_checkpoint_id")?).filter(|parent| !parent.is_empty()),
            };
            refuse_large(row, 5, number)?;
            refuse_large(row, 6, number)?;
            let rows = threads.entry(thread).or_default();
            rows.checkpoints.push(CheckpointRow { row: number, namespace, id, parent });
            Ok(())
        })?;
        let path = if has_path { PATH } else { "''" };
        let sql = format!(
            "SELECT rowid, thread_id, checkpoint_ns, checkpoint_id, task_id, {path}, idx, channel, octet_length(value) \
             FROM writes NOT INDEXED"
        );
        self.each(&sql, &mut |row| {
            let number = integer(row, 0)?;
            let mut text = |at, column| Ok::<_, ImportError>(names.of(&text(row, at, column, number)?));
            let thread = text(1, "thread_id")?;
            let one = WriteRow {
                row: number,
                namespace: text(2, "checkpoint_ns")?,
                checkpoint: text(3, "checkpoint_id")?,
                task: text(4, "task_id")?,
                path: text(5, PATH)?,
                index: integer(row, 6)?,
                channel: text(7, "channel")?,
            };
            refuse_large(row, 8, number)?;
            threads.entry(thread).or_default().writes.push(one);
            Ok(())
        })?;
        let mut found = Vec::new();
        for (id, mut rows) in threads {
            rows.id = id;
            sorted(&mut rows)?;
            found.push(rows);
        }
        let oldest = |rows: &ThreadRows| rows.checkpoints.iter().map(|one| Arc::clone(&one.id)).min();
        // A thread without checkpoints comes last.
        found.sort_by_cached_key(|rows| (rows.checkpoints.is_empty(), oldest(rows), Arc::clone(&rows.id)));
        Ok(found)
    }

    fn each(
        &self,
        sql: &str,
        visit: &mut dyn FnMut(&Row<'_>) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let mut statement = self.db.prepare(sql).map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            visit(row)?;
        }
        Ok(())
    }

    /// Reads a checkpoint and its metadata.
    pub(crate) fn checkpoint(&self, row: i64) -> Result<[TypedBytes; 2], ImportError> {
        let sql = "SELECT type, checkpoint, metadata FROM checkpoints WHERE rowid = ?1";
        let mut statement = self.db.prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query([row]).map_err(failed)?;
        let found = rows.next().map_err(failed)?.ok_or_else(|| lost(row))?;
        let checkpoint = TypedBytes { tag: tag(found, 0, row)?, bytes: bytes(found, 1, "checkpoint", row)? };
        // A row without metadata reads as an empty object.
        let metadata = bytes(found, 2, "metadata", row)?;
        let metadata = if metadata.is_empty() { b"{}"[..].into() } else { metadata };
        Ok([checkpoint, TypedBytes { tag: "json".into(), bytes: metadata }])
    }

    /// Reads the value of a write.
    pub(crate) fn write(&self, row: i64) -> Result<TypedBytes, ImportError> {
        let mut statement =
            self.db.prepare_cached("SELECT type, value FROM writes WHERE rowid = ?1").map_err(failed)?;
        let mut rows = statement.query([row]).map_err(failed)?;
        let found = rows.next().map_err(failed)?.ok_or_else(|| lost(row))?;
        Ok(TypedBytes { tag: tag(found, 0, row)?, bytes: bytes(found, 1, "value", row)? })
    }

    /// SHA-256 over the rows of a thread in the order of their keys, and the size of their values. It depends neither on other threads
    /// nor on the places of rows in the file.
    pub(crate) fn digest(&self, thread: &ThreadRows) -> Result<(Digest, u64), ImportError> {
        let mut sum = Sum { context: Context::new(&SHA256), size: 0 };
        sum.take(b"dendrer/langgraph/1");
        for one in &thread.checkpoints {
            let parent = one.parent.as_deref().unwrap_or_default();
            [&*one.namespace, &*one.id, parent].iter().for_each(|text| sum.take(text.as_bytes()));
            self.checkpoint(one.row)?.iter().for_each(|value| sum.value(value));
        }
        sum.take(b"writes");
        for one in &thread.writes {
            let texts = [&one.namespace, &one.checkpoint, &one.task, &one.path, &one.channel];
            texts.iter().for_each(|text| sum.take(text.as_bytes()));
            sum.take(&one.index.to_be_bytes());
            sum.value(&self.write(one.row)?);
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(sum.context.finish().as_ref());
        Ok((Digest(digest), sum.size))
    }
}

/// A digest over texts, each with its length.
struct Sum {
    context: Context,
    size: u64,
}

impl Sum {
    fn take(&mut self, bytes: &[u8]) {
        self.context.update(&(bytes.len() as u64).to_be_bytes());
        self.context.update(bytes);
    }

    fn value(&mut self, value: &TypedBytes) {
        self.take(value.tag.as_bytes());
        self.take(&value.bytes);
        self.size += value.bytes.len() as u64;
    }
}

/// Texts that rows share.
#[derive(Default)]
struct Names(BTreeSet<Arc<str>>);

impl Names {
    fn of(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.0.insert(Arc::clone(&new));
        new
    }
}

/// Sorts the rows of a thread by their keys, and refuses two of one key: only a damaged index lets them in.
fn sorted(rows: &mut ThreadRows) -> Result<(), ImportError> {
    fn of_checkpoint(one: &CheckpointRow) -> (&str, &str) {
        (&one.namespace, &one.id)
    }
    fn of_write(one: &WriteRow) -> (&str, &str, &str, i64) {
        (&one.namespace, &one.checkpoint, &one.task, one.index)
    }
    rows.checkpoints.sort_by(|a, b| of_checkpoint(a).cmp(&of_checkpoint(b)));
    rows.writes.sort_by(|a, b| of_write(a).cmp(&of_write(b)));
    let twice = rows.checkpoints.windows(2).any(|two| of_checkpoint(&two[0]) == of_checkpoint(&two[1]))
        || rows.writes.windows(2).any(|two| of_write(&two[0]) == of_write(&two[1]));
    match twice {
        true => Err(ImportError::refused(Code::E0213, "two rows have one key".into(), "")),
        false => Ok(()),
    }
}

/// Distrusts the schema, and lets no statement write.
fn secure(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(WAIT)?;
    for (config, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        db.set_db_config(config, value)?;
    }
    for (name, value) in [("query_only", 1), ("cell_size_check", 1), ("mmap_size", 0)] {
        db.pragma_update(None, name, value)?;
    }
    Ok(())
}

/// Refuses a file that has fewer pages than its header names: SQLite notices only where it reads them. A log next to the file may have
/// the rest.
fn refuse_cut(head: &[u8], path: &Path) -> Result<(), ImportError> {
    let number = |at: usize| {
        head.get(at..at + 4).map(|four| four.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)))
    };
    let page = match number(14).map(|number| number & 0xffff) {
        Some(1) => 1 << 16,
        page => page.unwrap_or(0),
    };
    let (size, _) = state_of(path)?;
    // The number of pages holds if the last change is the one that it was written with.
    let is_known = number(24).is_some() && number(24) == number(92);
    match number(28).filter(|_| is_known && !log_of(path).exists()) {
        Some(pages) if pages.saturating_mul(page) > size => {
            let text = format!("the database is cut: it has {size} bytes of {pages} pages of {page}");
            Err(ImportError::refused(Code::E0213, text, ""))
        }
        _ => Ok(()),
    }
}

/// The place of the write-ahead log of a database.
fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

fn state_of(path: &Path) -> Result<FileState, ImportError> {
    let about = std::fs::metadata(path).map_err(ImportError::Io)?;
    Ok((about.len(), about.modified().ok()))
}

/// The address of a file for SQLite, for reading alone; without locks if nothing is to be made next to it.
fn uri(path: &Path, is_unlocked: bool) -> String {
    let mut text = String::from("file:");
    if !path.as_os_str().as_encoded_bytes().starts_with(b"/") {
        text.push('/');
    }
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'\\' if cfg!(windows) => text.push('/'),
            b'/' | b':' | b'.' | b'-' | b'_' => text.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => text.push(char::from(*byte)),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text.push_str(if is_unlocked { "?mode=ro&immutable=1" } else { "?mode=ro" });
    text
}

/// A file that is no database of checkpoints.
fn other(why: &str) -> ImportError {
    ImportError::refused(
        Code::E0203,
        format!("this is no database of langgraph-checkpoint-sqlite: {why}"),
        "",
    )
}

/// A row that was there and is not.
fn lost(row: i64) -> ImportError {
    ImportError::refused(Code::E0213, format!("row {row} of the database cannot be read again"), "")
}

/// An error of SQLite.
fn failed(error: rusqlite::Error) -> ImportError {
    let (code, text) = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let wait = WAIT.as_secs();
            (Code::E0802, format!("another process has the database locked for more than {wait} s"))
        }
        Some(ErrorCode::DatabaseCorrupt) => (Code::E0213, format!("the database is damaged: {error}")),
        Some(ErrorCode::NotADatabase | ErrorCode::Unknown) | None => return other(&error.to_string()),
        Some(_) => (Code::E0801, format!("the database cannot be read: {error}")),
    };
    ImportError::refused(code, text, "")
}

fn wrong_type(column: &str, row: i64, found: &ValueRef<'_>) -> ImportError {
    other(&format!("{column} in row {row} is of the type {}", found.data_type()))
}

fn text(row: &Row<'_>, at: usize, column: &str, number: i64) -> Result<String, ImportError> {
    match row.get_ref(at).map_err(failed)? {
        ValueRef::Text(bytes) => String::from_utf8(bytes.to_vec()).map_err(|_| {
            ImportError::refused(Code::E0206, format!("{column} in row {number} is not UTF-8"), "")
        }),
        found => Err(wrong_type(column, number, &found)),
    }
}

fn integer(row: &Row<'_>, at: usize) -> Result<i64, ImportError> {
    match row.get_ref(at).map_err(failed)? {
        ValueRef::Integer(number) => Ok(number),
        found => Err(wrong_type("a number", 0, &found)),
    }
}

/// The name of the serializer of a value; empty if the row has none.
fn tag(row: &Row<'_>, at: usize, number: i64) -> Result<Arc<str>, ImportError> {
    match row.get_ref(at).map_err(failed)? {
        ValueRef::Null => Ok("".into()),
        _ => Ok(text(row, at, "type", number)?.into()),
    }
}

fn bytes(row: &Row<'_>, at: usize, column: &str, number: i64) -> Result<Arc<[u8]>, ImportError> {
    match row.get_ref(at).map_err(failed)? {
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Ok(bytes.into()),
        ValueRef::Null => Ok(Arc::default()),
        found => Err(wrong_type(column, number, &found)),
    }
}

/// Refuses a value that is too large before it is read.
fn refuse_large(row: &Row<'_>, at: usize, number: i64) -> Result<(), ImportError> {
    match row.get_ref(at).map_err(failed)? {
        ValueRef::Integer(size) if u64::try_from(size).is_ok_and(|size| size > VALUE_MAX) => {
            let text = format!("a value in row {number} has {size} bytes, and may have {VALUE_MAX}");
            Err(ImportError::refused(Code::E0205, text, ""))
        }
        _ => Ok(()),
    }
}
