//! Setting aside what a writer without the secret appended: copied whole, then cut.
//!
//! Only at the end of the log, and only where nothing of the key's holder follows: no tag, no checkpoint, no remembered head.

use std::ops::ControlFlow;
use std::path::Path;

use super::Embedded;
use crate::disk::{self, Open};
use crate::error::StoreError;
use crate::frame::{self, At};
use crate::layout::SEGMENT_HEADER;
use crate::segments::file_name;
use crate::store::{SetAside, TreeHead};

/// How much is copied at once.
const PIECE: usize = 1 << 20;

/// A part of a segment.
struct Part {
    segment: u32,
    begin: u64,
    end: u64,
}

impl Embedded {
    /// Copies the groups without a tag into a directory that is not there yet, syncs them, and cuts them off the log. Without a
    /// directory nothing is done. `None` if the log has no such group.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotSetAside`] if a tag, a checkpoint or the head that the caller remembers follows, or an erasure was carried
    /// out for them: nothing is changed.
    pub fn set_aside(
        &mut self,
        dir: Option<&Path>,
        head: Option<TreeHead>,
    ) -> Result<Option<SetAside>, StoreError> {
        let moved = self.locked(|store| store.set_aside_locked(dir, head))?;
        if dir.is_some() && moved.is_some() {
            self.open_again()?;
        }
        Ok(moved)
    }

    fn set_aside_locked(
        &mut self,
        dir: Option<&Path>,
        head: Option<TreeHead>,
    ) -> Result<Option<SetAside>, StoreError> {
        let Some(untagged) = self.list_untagged()? else { return Err(StoreError::NoWriter) };
        let Some(from) = untagged.first().map(|first| first.start) else { return Ok(None) };
        let joined = untagged.iter().try_fold(from, |end, group| (group.start == end).then_some(group.end));
        if joined != Some(self.size()) {
            return Err(StoreError::NotSetAside("a group with a tag follows"));
        }
        if self.read_checkpoint()?.is_some_and(|(_, kept)| kept.size() > from) {
            return Err(StoreError::NotSetAside("a checkpoint follows"));
        }
        if head.is_some_and(|head| head.size > from) {
            return Err(StoreError::NotSetAside("a head that was signed here follows"));
        }
        let parts = self.parts_behind(from)?;
        let bytes = parts.iter().map(|part| part.end - part.begin).sum();
        if let Some(dir) = dir {
            self.copy_parts(dir, &parts)?;
            self.cut_parts(&parts)?;
        }
        Ok(Some(SetAside { from, to: self.size(), groups: untagged.len(), bytes }))
    }

    /// Returns the parts of segments after the group that ends at a size.
    fn parts_behind(&self, size: u64) -> Result<Vec<Part>, StoreError> {
        let (mut records, mut begin) = (0, None);
        let mut erases = false;
        if size == 0 {
            begin = Some(At::new(0, SEGMENT_HEADER as u64));
        }
        self.frames_from(size, &mut |kind, payload, behind| {
            erases |= begin.is_some() && kind == frame::OPENED;
            let commit = if kind == frame::COMMIT { frame::Commit::parse(payload) } else { None };
            if let Some(commit) = commit {
                records = commit.size;
                if commit.size == size {
                    begin = Some(behind);
                }
            }
            ControlFlow::Continue(())
        })?;
        if erases {
            return Err(StoreError::NotSetAside("an erasure was carried out for them"));
        }
        let begin = begin.filter(|_| records == self.size());
        let Some(begin) = begin else { return Err(StoreError::NotSetAside("they cannot be read whole")) };
        let numbers = self.segments.numbers()?.into_iter().filter(|number| *number >= begin.segment);
        let part = |segment: u32| {
            let file = self.segments.file(segment)?;
            let io = |error| self.segments.io("read", segment, error);
            let end = file.map_or(Ok(0), |file| file.len()).map_err(io)?;
            let begin = if segment == begin.segment { u64::from(begin.offset) } else { 0 };
            Ok(Part { segment, begin, end: end.max(begin) })
        };
        numbers.map(part).collect()
    }

    fn copy_parts(&self, dir: &Path, parts: &[Part]) -> Result<(), StoreError> {
        let disk = &*self.options.disk;
        if std::fs::symlink_metadata(dir).is_ok() {
            let source = std::io::ErrorKind::AlreadyExists.into();
            return Err(StoreError::Io { action: "make", path: dir.to_owned(), source });
        }
        disk.create_dir(dir).map_err(|error| StoreError::io("make", dir, error))?;
        let mut buffer = vec![0; PIECE];
        for part in parts {
            let path = dir.join(file_name(part.segment));
            let io = |error| StoreError::io("write", &path, error);
            let Some(from) = self.segments.file(part.segment)? else { continue };
            let to = disk.open(&path, Open::Create).map_err(io)?;
            let mut at = part.begin;
            while at < part.end {
                let piece = usize::try_from(part.end - at).unwrap_or(PIECE).min(PIECE);
                disk::read_exact(&*from, &mut buffer[..piece], at)
                    .map_err(|error| self.segments.io("read", part.segment, error))?;
                disk::write_all(&*to, &buffer[..piece], at - part.begin).map_err(io)?;
                at += piece as u64;
            }
            to.sync().map_err(io)?;
        }
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let synced = disk.sync_dir(dir).and_then(|()| disk.sync_dir(parent));
        synced.map_err(|error| StoreError::io("sync", dir, error))
    }

    /// Cuts the parts, the last first: wherever it stops, the log ends with groups without a tag.
    fn cut_parts(&mut self, parts: &[Part]) -> Result<(), StoreError> {
        let disk = std::sync::Arc::clone(&self.options.disk);
        // An index that knows more than the log would be evidence of a loss. No other process makes one meanwhile.
        let _making = self.lock_making(self.options.lock_wait)?;
        self.index = None;
        for end in ["", "-wal", "-shm"] {
            let path = self.dir.join(format!("index.sqlite{end}"));
            match disk.remove(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError::io("remove", &path, error));
                }
                _ => {}
            }
        }
        for part in parts.iter().rev() {
            if part.begin == 0 {
                let path = self.segments.path(part.segment);
                disk.remove(&path).map_err(|error| StoreError::io("remove", &path, error))?;
                let dir = self.segments.dir();
                disk.sync_dir(dir).map_err(|error| StoreError::io("sync", dir, error))?;
            } else if let Some(file) = self.segments.file(part.segment)? {
                self.cut_file(&*file, part.segment, part.begin)?;
            }
        }
        Ok(())
    }
}
