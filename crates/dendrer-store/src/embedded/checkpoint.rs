//! Signing the tree, and remembering what was signed.
//!
//! Never signs two roots for one size: the last note is on disk before anyone gets to see it, and the log must extend
//! it whenever a store is opened.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::PoisonError;

use dendrer_object::Digest;
use dendrer_object::merkle::{Peaks, leaf_hash};
use dendrer_object::note::{Checkpoint, SignedNote, SigningKey};

use super::tiles::Tiled;
use super::{Embedded, Kept};
use crate::disk;
use crate::error::{Damage, DamageKind, DamagePlace, StoreError};
use crate::frame::{self, At, Step};
use crate::layout::SEGMENT_HEADER;
use crate::store::{MaySign, ReadLog as _};

const NAME: &str = "checkpoint";

fn damage(kind: DamageKind, what: &'static str, expected: String, found: String) -> StoreError {
    let place = DamagePlace { file: NAME.into(), ..DamagePlace::default() };
    Damage { kind, place, what, expected, found }.into()
}

impl Embedded {
    /// Reads the newest checkpoint. Its signature is checked if the store's key made it.
    pub(super) fn read_checkpoint(&self) -> Result<Option<Kept>, StoreError> {
        self.read_note(&self.dir.join(NAME))
    }

    /// Reads a checkpoint of this log from a file.
    fn read_note(&self, path: &Path) -> Result<Option<Kept>, StoreError> {
        let bytes = disk::read_file(&*self.options.disk, path, 1 << 20)
            .map_err(|error| StoreError::io("read", path, error))?;
        let Some(bytes) = bytes else { return Ok(None) };
        let unreadable =
            |found: String| damage(DamageKind::File, "checkpoint", "a signed note".into(), found);
        let note = SignedNote::parse(&bytes).map_err(|error| unreadable(error.to_string()))?;
        let checkpoint = Checkpoint::parse(note.text()).map_err(|error| unreadable(error.to_string()))?;
        let origin = self.info.id.origin();
        if checkpoint.origin() != origin {
            let found = checkpoint.origin().to_owned();
            return Err(damage(DamageKind::File, "origin of the checkpoint", origin, found));
        }
        let keys: Vec<_> = self.log_keys()?.spans().iter().map(|span| span.key.clone()).collect();
        match note.verify(&keys) {
            // Which key signs at its size is checked by the verification of the store.
            Ok(_) | Err(dendrer_object::note::NoteError::NoKnownSignature) => {}
            Err(error) => {
                let expected = "one by the key of the store".into();
                return Err(damage(DamageKind::Signature, "signature", expected, error.to_string()));
            }
        }
        Ok(Some((note, checkpoint)))
    }

    /// Checks that the log extends the last checkpoint; otherwise the handle does not write. The caller makes sure
    /// that no other process writes meanwhile.
    pub(super) fn check_checkpoint(&mut self) -> Result<(), StoreError> {
        match self.kept_checkpoint()? {
            Some(kept) => self.check_against(&kept),
            None => Ok(()),
        }
    }

    /// As [`Embedded::check_checkpoint`], while other processes may write: they may have signed records that this
    /// handle has not read yet.
    pub(super) fn check_newer_checkpoint(&mut self) -> Result<(), StoreError> {
        let Some(kept) = self.kept_checkpoint()? else { return Ok(()) };
        if kept.size() > self.size() {
            self.catch_up(false)?;
        }
        self.check_against(&kept)
    }

    fn kept_checkpoint(&mut self) -> Result<Option<Checkpoint>, StoreError> {
        match self.read_checkpoint() {
            Ok(kept) => Ok(kept.map(|(_, kept)| kept)),
            Err(error @ StoreError::Damaged(_)) => {
                self.set_trouble(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn check_against(&mut self, kept: &Checkpoint) -> Result<(), StoreError> {
        if let Some(loss) = self.compare_checkpoint(kept)? {
            self.set_trouble(loss);
        }
        Ok(())
    }

    /// Returns what is wrong if the tree of the log does not have the root that was signed.
    fn compare_checkpoint(&self, kept: &Checkpoint) -> Result<Option<StoreError>, StoreError> {
        let size = kept.size();
        if size > self.size() {
            if self.is_made_anew()? {
                // It is the checkpoint of another backup than this handle reads.
                return Ok(None);
            }
            let (expected, found) =
                (format!("{size} records, as was signed"), format!("{} records", self.size()));
            return Ok(Some(damage(DamageKind::Loss, "size of the log", expected, found)));
        }
        // As a rule the tiles show it. Otherwise the commit frame is searched for, from the beginning of its segment.
        if size < self.size() && self.extends_by_tiles(size, kept.root()).is_ok_and(|extends| extends) {
            return Ok(None);
        }
        let root = match self.root_at(size) {
            Ok(root) => root,
            // Damage in between is reported by itself; it says nothing about loss.
            Err(StoreError::Damaged(damage)) => return Ok(Some(StoreError::Damaged(damage))),
            Err(error) => return Err(error),
        };
        if root == Some(kept.root()) {
            return Ok(None);
        }
        let found = root.map_or("no group that ends there".into(), |root| root.to_string());
        let expected = format!("{}, as was signed for {size} records", kept.root());
        Ok(Some(damage(DamageKind::Loss, "root of the log", expected, found)))
    }

    /// Replaces a broken checkpoint by the one beside the tiles, if the key of the store signed that one, the log
    /// begins with its tree by the hashes of the entries, and no longer checkpoint is known: neither from the
    /// readable part of the broken one nor from `known`, and one of the two must give that size. Returns the number
    /// of records it was signed for; `None` if there is nothing to mend, or no checkpoint to mend it with.
    pub fn mend_checkpoint(&mut self, known: Option<u64>) -> Result<Option<u64>, StoreError> {
        self.check_owner()?;
        self.take_lock()?;
        let mended = self.take_twin(known);
        self.unlock();
        mended
    }

    fn take_twin(&self, known: Option<u64>) -> Result<Option<u64>, StoreError> {
        let path = self.dir.join(NAME);
        let Err(StoreError::Damaged(_)) = self.read_note(&path) else { return Ok(None) };
        let broken = disk::read_file(&*self.options.disk, &path, 1 << 20)
            .map_err(|error| StoreError::io("read", &path, error))?
            .unwrap_or_default();
        // The second line of a note is the size (C2SP tlog-checkpoint).
        let said = broken.split(|byte| *byte == b'\n').nth(1).map(String::from_utf8_lossy);
        let said = said.and_then(|line| line.parse::<u64>().ok());
        let Ok(Some((note, twin))) = self.read_note(&self.dir.join("log").join(NAME)) else {
            return Ok(None);
        };
        let is_signed = self.log_keys()?.open(&note).is_ok();
        let is_newest = said.max(known) == Some(twin.size());
        if self.made.is_some() || !is_signed || !is_newest || !self.begins_with(twin.size(), twin.root())? {
            return Ok(None);
        }
        disk::replace_file(&*self.options.disk, &path, note.to_string().as_bytes())
            .map_err(|error| StoreError::io("write", &path, error))?;
        Ok(Some(twin.size()))
    }

    /// Returns the root that the log has at a size, from the commit frame that ends there.
    pub(super) fn root_at(&self, size: u64) -> Result<Option<Digest>, StoreError> {
        if size == self.size() {
            return Ok(Some(self.end.root));
        }
        let Some(last) = size.checked_sub(1) else {
            return Ok(Some(dendrer_object::merkle::empty_root()));
        };
        // The index could name any place, such as one in the middle of a value that looks like a commit frame.
        let Some(begin) = self.locate_in_log(last)? else { return Ok(None) };
        let Some(mut reader) = self.segments.reader(begin, 64 << 10)? else { return Ok(None) };
        loop {
            let step = reader.next().map_err(|error| self.segments.io("read", begin.segment, error))?;
            match step {
                Step::Frame { kind: frame::COMMIT, payload, .. } => {
                    let commit = frame::Commit::parse(payload).filter(|commit| commit.size == size);
                    return Ok(commit.map(|commit| commit.root));
                }
                Step::Frame { .. } => {}
                Step::Fault { offset, fault: frame::Fault::Checksum { head, .. } }
                    if head.kind != frame::COMMIT && !head.is_blank() =>
                {
                    reader.seek(offset + head.size());
                }
                Step::Fault { offset, fault } => {
                    let at = At::new(begin.segment, offset);
                    let place = DamagePlace {
                        file: crate::segments::place_name(at.segment),
                        offset: Some(offset),
                        ..DamagePlace::default()
                    };
                    let (kind, what) = (DamageKind::Frame, "checksum of the frame");
                    let (expected, found) = (fault.expected(), fault.found());
                    return Err(Damage { kind, place, what, expected, found }.into());
                }
                Step::End { .. } => return Ok(None),
            }
        }
    }

    /// Whether the log as it is begins with the tree that had a root at a size. Depends on hashes of entries alone (RFC
    /// 9162 2.1.4.2): neither on the index nor on commit frames, which the author of a rewritten log can have written.
    pub(super) fn begins_with(&self, size: u64, root: Digest) -> Result<bool, StoreError> {
        if size == 0 {
            return Ok(root == Peaks::new().root());
        }
        let proved = || self.proved.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = *proved() == Some((size, root));
        if is_known || size > self.size() {
            return Ok(is_known);
        }
        // An end that equals the signed one shows nothing: a handle may have it from the index.
        let extends = self.extends_by_tiles(size, root)? || self.extends_by_log(size, root)?;
        if extends {
            // The tree of a handle only grows, so that stays so.
            *proved() = Some((size, root));
        }
        Ok(extends)
    }

    /// As [`Embedded::begins_with`], from the tiles of the last checkpoint and the entries from the last tile on: a
    /// writer continues from those. If they do not prove it, they or the index may be wrong.
    fn extends_by_tiles(&self, size: u64, root: Digest) -> Result<bool, StoreError> {
        let Some(Tiled { before: mut peaks, end, root }) = self.tiled_beyond(size, root)? else {
            return Ok(false);
        };
        if end > self.size() {
            return Ok(false);
        }
        let mut passes = false;
        let entries = self.scan_entries(peaks.size()..self.size(), &mut |_, entry| {
            peaks.push(leaf_hash(&entry.text()));
            passes |= peaks.size() == end && peaks.root() == root;
            ControlFlow::Continue(())
        });
        Ok(self.leads_to_end(entries, &peaks)? && passes)
    }

    /// Tells whether entries that were read lead to the tree that the log has now. An entry that the system does not let one
    /// read shows nothing either way.
    fn leads_to_end(&self, entries: Result<(), StoreError>, peaks: &Peaks) -> Result<bool, StoreError> {
        match entries {
            Ok(()) => Ok(peaks.size() == self.size() && peaks.root() == self.end.peaks.root()),
            Err(error @ (StoreError::Io { .. } | StoreError::Forked { .. })) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// As [`Embedded::begins_with`], from all of the log.
    fn extends_by_log(&self, size: u64, root: Digest) -> Result<bool, StoreError> {
        let (mut peaks, mut begins) = (Peaks::new(), false);
        let first = At::new(0, SEGMENT_HEADER as u64);
        let entries = self.entries_from(first, 0..self.size(), &mut |_, entry| {
            peaks.push(leaf_hash(&entry.text()));
            begins |= peaks.size() == size && peaks.root() == root;
            ControlFlow::Continue(())
        });
        Ok(self.leads_to_end(entries, &peaks)? && begins)
    }

    /// Signs the tree as it is. The caller holds the lock.
    pub(super) fn sign(
        &mut self,
        key: &SigningKey,
        may: &mut MaySign<'_>,
    ) -> Result<Option<SignedNote>, StoreError> {
        self.sync_now()?;
        if let Some((_, kept)) = self.read_checkpoint()?
            && !self.begins_with(kept.size(), kept.root())?
        {
            // Who signs this says that nothing of what was signed before has changed.
            let loss = self.compare_checkpoint(&kept)?.unwrap_or_else(|| {
                let expected = format!("a log that begins with the {} records that were signed", kept.size());
                let found = "one in which another tree leads to the end".into();
                damage(DamageKind::Loss, "root of the log", expected, found)
            });
            self.set_trouble(loss);
            self.check_writable()?;
        }
        let tree = self.tree();
        let checkpoint = Checkpoint::new(&self.info.id.origin(), tree.size, tree.root)?;
        let note = checkpoint.sign(key)?;
        if !may(self, &checkpoint)? {
            return Ok(None);
        }
        let path = self.dir.join(NAME);
        disk::replace_file(&*self.options.disk, &path, note.to_string().as_bytes())
            .map_err(|error| StoreError::io("write", &path, error))?;
        *self.proved.get_mut().unwrap_or_else(PoisonError::into_inner) = Some((tree.size, tree.root));
        // The tiles follow from the log: the note can be used even if they cannot be written.
        let _ = self.write_tiles(&note, tree.size);
        Ok(Some(note))
    }
}
