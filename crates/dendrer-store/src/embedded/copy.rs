//! Copying a store while others write to it: a backup, and the store that is made from one.
//!
//! The log only grows, so a copy up to the end of a group is a store, and a later copy adds the rest. Copies the log
//! and its values only: never the index, and no key, because a store contains none.
//!
//! Two rules. `store.json` is written last, after the whole copy was read and verified, so that an unfinished copy is
//! never taken for a whole one. And a value that was erased is erased in the copy as well: a frame that is void in
//! the store, or that an erasure in the copy voids, is made void there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dendrer_object::note::{Checkpoint, NOTE_BYTES_MAX, SignedNote};
use dendrer_object::{StoreId, Value, json};

use super::{Embedded, Kept, LogEnd, Options, VerifyOptions};
use crate::descriptor::{self, MARK};
use crate::disk::{self, Disk, DiskFile, Open};
use crate::error::{Damage, DamageKind, DamagePlace, StoreError};
use crate::frame::{self, At, COMMIT_SIZE, Step};
use crate::layout::{self, SEGMENT_HEADER, VAULT};
use crate::meter::Meter;
use crate::segments::{Read, Segments, file_name, place_name};
use crate::store::{ReadLog as _, TreeHead};

const TAG: &str = "backup/1";

/// How much is copied at once.
const WINDOW: usize = 1 << 20;

/// How often values may be erased while they are copied before writers are made to wait.
const ROUNDS: usize = 3;

/// The kind of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyAs {
    /// A backup: every reading verb opens it, nothing writes to it but a later backup of the same store.
    Backup,
    /// A store.
    Store,
}

/// The result of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// The log of the copy.
    pub tree: TreeHead,
    /// How many records it had before.
    pub before: u64,
    /// The size of its signed checkpoint.
    pub signed: Option<u64>,
    /// How many bytes of the log were copied.
    pub bytes: u64,
    /// How many frames and erasures were carried out in the copy; 0 if nothing was to be erased there.
    pub voided: u64,
    /// Whether the tiles could be laid out. They are derived.
    pub tiles: bool,
}

/// A copy being made. Dropped before [`Copying::finish`] succeeded, it leaves what no reader takes for a store, or the
/// earlier backup that was there.
#[derive(Debug)]
pub struct Copying<'s> {
    source: &'s mut Embedded,
    to: Embedded,
    what: CopyAs,
    /// Held as long as the copy is made, so that there is one at a time.
    _lock: Arc<dyn DiskFile>,
    note: Option<Kept>,
    before: u64,
    /// How far the copy goes: segment and offset.
    reached: (u32, u64),
    /// Remains of erased values in the copy, and frames that are void in the store.
    opened: Vec<At>,
    voids: Vec<u64>,
    /// How far readers of an earlier backup look.
    visible: (u32, u64),
    bytes: u64,
}

/// The mark of a backup: its store, and the end up to which it was found whole.
struct Mark {
    id: StoreId,
    whole: Option<Whole>,
}

/// The log of a backup, and where it ends.
pub(super) struct Whole {
    pub tree: TreeHead,
    pub segment: u32,
    pub offset: u64,
}

impl Mark {
    fn text(&self) -> String {
        let whole = self.whole.as_ref();
        Value::record([
            ("dendrer", Value::from(TAG)),
            ("id", self.id.to_string().into()),
            ("offset", whole.map(|whole| whole.offset).into()),
            ("root", whole.map_or(Value::Null, |whole| Value::from(whole.tree.root))),
            ("segment", whole.map(|whole| u64::from(whole.segment)).into()),
            ("size", whole.map(|whole| whole.tree.size).into()),
        ])
        .to_string()
    }

    fn parse(bytes: &[u8]) -> Option<Mark> {
        let value = json::parse_canonical(bytes).ok()?;
        let number = |name: &str| value.get(name)?.as_u64();
        if value.get("dendrer")?.as_str()? != TAG {
            return None;
        }
        let whole = match value.get("root")? {
            Value::Null => None,
            root => Some(Whole {
                tree: TreeHead { size: number("size")?, root: root.as_str()?.parse().ok()? },
                segment: u32::try_from(number("segment")?).ok()?,
                offset: number("offset").filter(|offset| *offset >= SEGMENT_HEADER as u64)?,
            }),
        };
        let mark = Mark { id: value.get("id")?.as_str()?.parse().ok()?, whole };
        (mark.text().as_bytes() == bytes).then_some(mark)
    }

    fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<Mark>, StoreError> {
        let path = dir.join(MARK);
        let bytes =
            disk::read_file(disk, &path, 1 << 16).map_err(|error| StoreError::io("read", &path, error))?;
        let Some(bytes) = bytes else { return Ok(None) };
        let mark = Mark::parse(&bytes).ok_or_else(|| {
            let place = DamagePlace { file: MARK.into(), ..DamagePlace::default() };
            let (expected, found) = ("the mark of a backup".into(), format!("{} bytes", bytes.len()));
            Damage { kind: DamageKind::File, place, what: "mark", expected, found }
        })?;
        Ok(Some(mark))
    }
}

/// Returns the log and the end of a backup of a store; `None` if the directory is not a backup.
pub(super) fn end_of_backup(
    disk: &dyn Disk,
    dir: &Path,
    store: StoreId,
) -> Result<Option<Whole>, StoreError> {
    let Some(Mark { id, whole }) = Mark::read(disk, dir)? else { return Ok(None) };
    if id != store {
        let place = DamagePlace { file: MARK.into(), ..DamagePlace::default() };
        let (kind, what) = (DamageKind::File, "store of the mark");
        return Err(Damage { kind, place, what, expected: store.to_string(), found: id.to_string() }.into());
    }
    Ok(whole)
}

impl Embedded {
    /// Returns the log of a backup as it had been found whole when this handle was opened; `None` if this is a store and no
    /// backup. A later backup may go on in its place meanwhile.
    pub fn backup_head(&self) -> Option<TreeHead> {
        self.made
    }

    /// Tells whether a later backup was made in the place of the one that this handle reads. Its mark is there before its
    /// checkpoint is.
    pub(super) fn is_made_anew(&self) -> Result<bool, StoreError> {
        let Some(made) = self.made else { return Ok(false) };
        let now = end_of_backup(&*self.options.disk, &self.dir, self.info.id)?.map(|whole| whole.tree);
        Ok(now != Some(made))
    }

    /// Begins to copy this store, as it is now, into a directory that does not exist, is empty, holds what an
    /// interrupted copy left, or is an earlier backup of it. Writers need not stop.
    pub fn start_copy(&mut self, to: &Path, what: CopyAs) -> Result<Copying<'_>, StoreError> {
        self.check_owner()?;
        // A checkpoint that was read before the log was is one that the log reaches.
        let note = self.read_checkpoint()?;
        self.refresh()?;
        if self.made.is_some() && note.as_ref().is_some_and(|(_, kept)| kept.size() > self.size()) {
            // A later backup was made in the place of this one: that is the one which the checkpoint is of.
            self.open_again()?;
        }
        if let Some(trouble) = &self.trouble {
            return Err(StoreError::ReadOnly { why: trouble.to_string() });
        }
        let disk = Arc::clone(&self.options.disk);
        let io = |action, path: &Path| {
            let path = path.to_owned();
            move |error| StoreError::io(action, &path, error)
        };
        // A copy that is being made there now is another matter once that is done.
        let has_lock = || disk.list(to).is_ok_and(|names| names.iter().any(|name| name == "lock"));
        match self.there(to, what) {
            Err(StoreError::NotItsBackup { .. }) if has_lock() => {}
            there => there.map(drop)?,
        }
        disk.create_dir(to).map_err(io("create", to))?;
        let path = to.join("lock");
        let lock = disk.open(&path, Open::Create).map_err(io("create", &path))?;
        if !disk::lock_within(&*lock, self.options.lock_wait).map_err(io("lock", &path))? {
            return Err(StoreError::Locked { path });
        }
        // Another one may have been made meanwhile.
        let whole = self.there(to, what)?;
        let segments = to.join("segments");
        if whole.is_none() {
            let path = to.join(MARK);
            let mark = Mark { id: self.info.id, whole: None };
            disk::replace_file(&*disk, &path, mark.text().as_bytes()).map_err(io("write", &path))?;
            disk.create_dir(&segments).map_err(io("create", &segments))?;
            clear(&*disk, to, &segments)?;
        }
        let options = Options { write: true, index: false, ..self.options.clone() };
        let mut copy = Embedded::unread(to, self.info.clone(), options, None);
        copy.end = self.end.clone();
        let reached = whole.as_ref().map_or((0, 0), |whole| (whole.segment, whole.offset));
        let before = whole.map_or(0, |whole| whole.tree.size);
        Ok(Copying {
            source: self,
            to: copy,
            what,
            _lock: lock,
            note,
            before,
            reached,
            opened: Vec::new(),
            voids: Vec::new(),
            visible: reached,
            bytes: 0,
        })
    }

    /// Returns the content of the target of a copy: empty, leftovers, or an earlier backup to continue.
    fn there(&self, to: &Path, what: CopyAs) -> Result<Option<Whole>, StoreError> {
        let disk = &*self.options.disk;
        for name in ["segments", "log", VAULT] {
            let path = to.join(name);
            disk::refuse_links(to, &path).map_err(|error| StoreError::io("write", &path, error))?;
        }
        let names = match disk.list(to) {
            Ok(names) => names,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("list", to, error)),
        };
        let is_store = names.iter().any(|name| name == "store.json");
        let mark = Mark::read(disk, to)?;
        let leftover: &[&str] = match (mark, what) {
            (Some(Mark { id, whole: Some(whole) }), CopyAs::Backup) => {
                self.check_begin(to, id, &whole)?;
                return Ok(Some(whole));
            }
            _ if is_store => return Err(StoreError::AlreadyAStore { path: to.to_owned() }),
            (Some(_), _) => &["lock", "segments", "checkpoint", VAULT, MARK],
            (None, _) => &["lock"],
        };
        let is_empty = |name: &str| disk.list(&to.join(name)).is_ok_and(|names| names.is_empty());
        let foreign = |name: &&String| {
            let known = leftover.contains(&name.as_str()) || name.ends_with(".tmp");
            !(known || *name == "segments" && is_empty(name))
        };
        match names.iter().find(foreign) {
            None => Ok(None),
            Some(found) => Err(StoreError::NotEmpty { path: to.to_owned(), found: found.clone() }),
        }
    }

    /// Checks that an earlier backup is the beginning of this log.
    fn check_begin(&self, to: &Path, id: StoreId, whole: &Whole) -> Result<(), StoreError> {
        let refuse = |why: String| Err(StoreError::NotItsBackup { path: to.to_owned(), why });
        if id != self.info.id {
            return refuse(format!("it is one of store {id}, and this is {}", self.info.id));
        }
        if whole.tree.size > self.size() {
            return refuse(format!("it has {} records, and the store has {}", whole.tree.size, self.size()));
        }
        if whole.tree.size > 0 {
            let at = At::new(whole.segment, whole.offset.saturating_sub(COMMIT_SIZE));
            let found = match self.segments.read(at)? {
                Read::Frame(frame::COMMIT, payload) => frame::Commit::parse(&payload),
                _ => None,
            };
            let tree = |commit: frame::Commit| TreeHead { size: commit.size, root: commit.root };
            if found.map(tree) != Some(whole.tree) {
                return refuse(format!("its {} records are not those of the store", whole.tree.size));
            }
        }
        for segment in 0..=whole.segment {
            let expected = match segment == whole.segment {
                true => whole.offset,
                false => self.segment_len(segment)?,
            };
            let path = to.join("segments").join(file_name(segment));
            let found = match self.options.disk.open(&path, Open::Read) {
                Ok(file) => file.len().map_err(|error| StoreError::io("read", &path, error))?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
                Err(error) => return Err(StoreError::io("open", &path, error)),
            };
            if found < expected {
                let why = format!("{} has {found} of {expected} bytes", place_name(segment));
                return refuse(format!("it is not whole: {why}"));
            }
        }
        // Bytes after the mark are going to be cut, so they must be only those that an interrupted copy left.
        if let Some(size) = signed_in(&*self.options.disk, to)?.filter(|size| *size > whole.tree.size) {
            let has = whole.tree.size;
            return refuse(format!("{size} records were signed there, and {MARK} says that it has {has}"));
        }
        if let Some(size) = self.foreign_behind(to, whole)? {
            return refuse(format!("it has {size} records, some of them none of the store"));
        }
        Ok(())
    }

    /// Returns the size of the first group behind an earlier backup that is not the store's at the same place.
    fn foreign_behind(&self, to: &Path, whole: &Whole) -> Result<Option<u64>, StoreError> {
        let there = Segments::new(Arc::clone(&self.options.disk), to.join("segments"), self.info.id, false);
        let mut begin = At::new(whole.segment, whole.offset);
        while let Some(mut reader) = there.reader(begin, WINDOW)? {
            loop {
                let step = reader.next().map_err(|error| there.io("read", begin.segment, error))?;
                let Step::Frame { kind, payload, offset } = step else { break };
                let Some(commit) = frame::Commit::parse(payload).filter(|_| kind == frame::COMMIT) else {
                    continue;
                };
                let own = match self.segments.read(At::new(begin.segment, offset))? {
                    Read::Frame(frame::COMMIT, payload) => frame::Commit::parse(&payload),
                    _ => None,
                };
                if own.is_none_or(|own| (own.size, own.root) != (commit.size, commit.root)) {
                    return Ok(Some(commit.size));
                }
            }
            begin = At::new(begin.segment + 1, SEGMENT_HEADER as u64);
        }
        Ok(None)
    }

    /// Checks that no other path shares a file of the copy: a cut or a write there would change the store.
    fn refuse_shared(&self, to: &Path, segment: u32) -> Result<(), StoreError> {
        let path = to.join("segments").join(file_name(segment));
        match disk::shared_with(&path, &self.segments.path(segment)) {
            None => Ok(()),
            Some(why) => Err(StoreError::NotItsBackup {
                path: to.to_owned(),
                why: format!("{} {why}", place_name(segment)),
            }),
        }
    }

    /// Returns how long a segment is that is not the last one.
    fn segment_len(&self, segment: u32) -> Result<u64, StoreError> {
        let file = self.segments.file(segment)?;
        let file =
            file.ok_or_else(|| self.segments.io("open", segment, std::io::ErrorKind::NotFound.into()))?;
        file.len().map_err(|error| self.segments.io("read", segment, error))
    }

    /// Tells whether values were erased behind a place of the log.
    fn erased_behind(&self, head: &LogEnd) -> Result<bool, StoreError> {
        let mut erased = false;
        self.each_frame_from((head.segment, head.offset), &mut |_, kind, payload| {
            erased |= kind == frame::OPENED && layout::is_erasure(payload);
        })?;
        Ok(erased)
    }
}

/// Returns the size that the checkpoint in a directory was signed for.
fn signed_in(disk: &dyn Disk, dir: &Path) -> Result<Option<u64>, StoreError> {
    let path = dir.join("checkpoint");
    let bytes = disk::read_file(disk, &path, NOTE_BYTES_MAX as u64)
        .map_err(|error| StoreError::io("read", &path, error))?;
    let note = bytes.and_then(|bytes| SignedNote::parse(&bytes).ok());
    Ok(note.and_then(|note| Checkpoint::parse(note.text()).ok()).map(|checkpoint| checkpoint.size()))
}

/// Removes what an interrupted copy left, so that nothing of it is taken for a part of this one.
fn clear(disk: &dyn Disk, to: &Path, segments: &Path) -> Result<(), StoreError> {
    let names = disk.list(segments).map_err(|error| StoreError::io("list", segments, error))?;
    let mut paths: Vec<PathBuf> = names.iter().map(|name| segments.join(name)).collect();
    paths.push(to.join("checkpoint"));
    for path in paths {
        match disk.remove(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::io("remove", &path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

impl Copying<'_> {
    /// About how many bytes are to be copied.
    pub fn bytes(&self) -> u64 {
        let end = &self.source.end;
        let whole =
            (self.reached.0..end.segment).map(|segment| self.source.segment_len(segment).unwrap_or(0));
        (whole.sum::<u64>() + end.offset).saturating_sub(self.reached.1)
    }

    /// How many records the copy will have, as far as is known.
    pub fn records(&self) -> u64 {
        self.source.size()
    }

    /// Copies the log, and counts the bytes.
    pub fn copy(&mut self, meter: &Meter) -> Result<(), StoreError> {
        let mut locked = false;
        let copied = self.copy_rounds(meter, &mut locked);
        if locked {
            self.source.unlock();
        }
        copied
    }

    fn copy_rounds(&mut self, meter: &Meter, locked: &mut bool) -> Result<(), StoreError> {
        for round in 1.. {
            let head = self.source.end.clone();
            self.copy_log(&head, meter)?;
            self.to.end = head.clone();
            self.look_for_erasures()?;
            self.source.refresh()?;
            if let Some(trouble) = &self.source.trouble {
                return Err(StoreError::ReadOnly { why: trouble.to_string() });
            }
            // A value that was erased meanwhile may have been read half before and half after. With the records that say so the
            // copy knows what to make void; and a frame that is void for their sake would be damage without them.
            if self.source.erased_behind(&head)? {
                if round == ROUNDS {
                    self.source.take_lock()?;
                    *locked = true;
                    self.source.refresh()?;
                }
                continue;
            }
            break;
        }
        Ok(())
    }

    /// Copies what lies between the end of the copy and a place of the log.
    fn copy_log(&mut self, head: &LogEnd, meter: &Meter) -> Result<(), StoreError> {
        // Nothing that a power cut could take back: the store might go on in another way, and the copy not.
        self.sync_source(head.segment)?;
        let (first, mut begin) = self.reached;
        for segment in first..=head.segment {
            let end = if segment == head.segment { head.offset } else { self.source.segment_len(segment)? };
            self.source.refuse_shared(&self.to.dir, segment)?;
            let path = self.to.segments.path(segment);
            let io = |action| {
                let path = path.clone();
                move |error| StoreError::io(action, &path, error)
            };
            let file = self.to.options.disk.open(&path, Open::Create).map_err(io("create"))?;
            // Behind the end of the earlier copy there may be a part of one that was interrupted.
            file.set_len(begin).map_err(io("cut"))?;
            self.copy_bytes(segment, &*file, begin..end, meter)?;
            file.sync().map_err(io("sync"))?;
            self.to.segments.put_file(segment, file);
            self.reached = (segment, end);
            begin = 0;
        }
        let dir = self.to.segments.dir();
        self.to.options.disk.sync_dir(dir).map_err(|error| StoreError::io("sync", dir, error))
    }

    fn copy_bytes(
        &mut self,
        segment: u32,
        to: &dyn DiskFile,
        range: std::ops::Range<u64>,
        meter: &Meter,
    ) -> Result<(), StoreError> {
        let Some(from) = self.source.segments.file(segment)? else {
            return Err(self.source.segments.io("open", segment, std::io::ErrorKind::NotFound.into()));
        };
        let mut buffer = vec![0; WINDOW.min(usize::try_from(range.end - range.start).unwrap_or(WINDOW))];
        let mut at = range.start;
        while at < range.end {
            let size = buffer.len().min(usize::try_from(range.end - at).unwrap_or(WINDOW));
            let part = &mut buffer[..size];
            disk::read_exact(&*from, part, at).map_err(|e| self.source.segments.io("read", segment, e))?;
            disk::write_all(to, part, at).map_err(|error| self.to.segments.io("write", segment, error))?;
            at += size as u64;
            self.bytes += size as u64;
            meter.add(size as u64)?;
        }
        Ok(())
    }

    fn sync_source(&self, segment: u32) -> Result<(), StoreError> {
        let path = self.source.segments.path(segment);
        let disk = &self.source.options.disk;
        // Some systems sync only a file that may be written; a read-only file has no unsynced writes.
        let file = disk.open(&path, Open::Write).or_else(|_| disk.open(&path, Open::Read));
        file.and_then(|file| file.sync()).map_err(|error| StoreError::io("sync", &path, error))
    }

    fn look_for_erasures(&mut self) -> Result<(), StoreError> {
        let (mut opened, mut voids) = (Vec::new(), Vec::new());
        self.to.each_frame(&mut |at, kind, payload| {
            if kind == frame::OPENED && layout::is_erasure(payload) {
                opened.push(at);
            }
        })?;
        if !opened.is_empty() {
            self.source.each_frame(&mut |at, kind, _| {
                if kind == frame::VOID {
                    voids.push(at.to_u64());
                }
            })?;
        }
        (self.opened, self.voids) = (opened, voids);
        Ok(())
    }

    /// Makes void in the copy what is void in the store. Before the copy counts only what no reader looks at yet, and
    /// what an interrupted copy left half void. Returns how many frames that concerned.
    fn follow_voids(&self, all: bool) -> Result<u64, StoreError> {
        // Chunks stand before the lists and values that lead to them, and go first here as well.
        let (mut chunks, mut lists, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for position in &self.voids {
            let at = At::from_u64(*position);
            let unseen = (at.segment, u64::from(at.offset)) >= self.visible;
            match self.to.segments.read(at)? {
                // Frames of the vault are made void with the rest of it.
                Read::Frame(frame::VOID | frame::SECRET, _) | Read::Short => {}
                Read::Frame(frame::LIST, _) if all || unseen => lists.push(*position),
                Read::Frame(frame::VALUES | frame::OPENED, _) if all || unseen => values.push(*position),
                Read::Frame(..) if all || unseen => chunks.push(*position),
                Read::Frame(..) => {}
                Read::Broken(..) if self.to.torn_secret(at)?.is_some() => {}
                Read::Broken(..) => chunks.push(*position),
            }
        }
        let count = chunks.len() + lists.len() + values.len();
        self.to.void(chunks)?;
        self.to.void(lists)?;
        self.to.void(values)?;
        self.to.segments.forget();
        Ok(count as u64)
    }

    /// Makes void what the erasures in the copy say. Returns how many of them were not carried out there.
    fn follow_erasures(&mut self) -> Result<u64, StoreError> {
        let (unfinished, _) = self.to.carried_out(&self.opened)?;
        self.to.destroy(&unfinished)?;
        Ok(unfinished.len() as u64)
    }

    /// Reads and verifies all of the copy, and then lets it count. `meter` counts the records that were read.
    pub fn finish(mut self, meter: Meter) -> Result<Copied, StoreError> {
        let before = self.follow_voids(false)?;
        let options = VerifyOptions { meter, ..VerifyOptions::default() };
        self.check(&options)?;
        let tree = self.to.tree();
        // The records that say what was erased count before anything becomes void for their sake.
        if self.what == CopyAs::Backup {
            // An earlier backup may be of an older format than the frames that count from here on.
            let path = self.to.dir.join(descriptor::NAME);
            match self.to.options.disk.open(&path, Open::Read) {
                Ok(_) => self.put_descriptor()?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::io("open", &path, error)),
            }
            let (segment, offset) = self.reached;
            let whole = Mark { id: self.to.info.id, whole: Some(Whole { tree, segment, offset }) };
            self.replace(MARK, whole.text().as_bytes())?;
        }
        let signed = self.put_checkpoint()?;
        let voided = self.follow_erasures()? + self.follow_voids(true)?;
        if voided > 0 {
            self.check(&VerifyOptions::default())?;
        }
        let voided = voided + before;
        self.source.copy_vault(&self.to)?;
        self.let_count()?;
        let tiles = match &self.note {
            None => true,
            Some((note, checkpoint)) => {
                self.source.write_tiles_to(self.to.dir(), note, checkpoint.size()).is_ok()
            }
        };
        let Copying { before, bytes, .. } = self;
        Ok(Copied { tree, before, signed, bytes, voided, tiles })
    }

    fn check(&self, options: &VerifyOptions) -> Result<(), StoreError> {
        let report = self.to.verify(options)?;
        if let Some(damage) = report.findings.into_iter().next() {
            return Err(damage.into());
        }
        let tree = self.to.tree();
        if !report.root_checked || report.tree != tree || report.unfinished {
            let place = DamagePlace { file: "segments".into(), ..DamagePlace::default() };
            let said = |tree: TreeHead| format!("{} records with root {}", tree.size, tree.root);
            let (expected, found) = (said(tree), said(report.tree));
            return Err(Damage { kind: DamageKind::Loss, place, what: "copy", expected, found }.into());
        }
        Ok(())
    }

    /// Writes the checkpoint, unless the copy remembers one of a larger log.
    fn put_checkpoint(&self) -> Result<Option<u64>, StoreError> {
        let there = self.to.read_checkpoint()?.map(|(_, checkpoint)| checkpoint.size());
        let Some((note, checkpoint)) = &self.note else { return Ok(there) };
        if there.is_some_and(|size| size >= checkpoint.size()) {
            return Ok(there);
        }
        self.replace("checkpoint", note.to_string().as_bytes())?;
        Ok(Some(Checkpoint::size(checkpoint)))
    }

    /// Makes a store of the copy: from here on it is opened.
    fn let_count(&self) -> Result<(), StoreError> {
        let disk = &*self.to.options.disk;
        let io = |action, path: &Path| {
            let path = path.to_owned();
            move |error| StoreError::io(action, &path, error)
        };
        let mark = self.to.dir.join(MARK);
        self.put_descriptor()?;
        if self.what == CopyAs::Store {
            disk.remove(&mark).map_err(io("remove", &mark))?;
            disk.sync_dir(&self.to.dir).map_err(io("sync", &self.to.dir))?;
        }
        match self.to.dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => disk.sync_dir(parent).map_err(io("sync", parent)),
            None => Ok(()),
        }
    }

    /// Copies `store.json` byte for byte: a newer version may have written members there that this one does not know.
    fn put_descriptor(&self) -> Result<(), StoreError> {
        let path = self.source.dir.join(descriptor::NAME);
        let io = |error| StoreError::io("read", &path, error);
        let descriptor = disk::read_file(&*self.to.options.disk, &path, 1 << 16).map_err(io)?;
        let descriptor = descriptor.ok_or_else(|| io(std::io::ErrorKind::NotFound.into()))?;
        self.replace(descriptor::NAME, &descriptor)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.to.dir.join(name);
        disk::replace_file(&*self.to.options.disk, &path, bytes)
            .map_err(|error| StoreError::io("write", &path, error))
    }
}
