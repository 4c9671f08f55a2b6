//! Encrypted bytes: frames in the group of the record that names them, and files of `vault/`, one for each name.
//!
//! A frame is found by the index, and by the tail for what the index does not cover; its bytes are overwritten in place. A file is
//! written beside its place, synced and renamed, so that a reader finds all of it or none. Only the holder of the store's lock
//! writes: two processes that put the same name would write one file beside its place.
//!
//! Rule: what is destroyed is found by reading the log and never by the index, which may lack a row; test
//! `an_index_without_a_row_keeps_no_value_from_being_destroyed`.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use dendrer_object::{Digest, Record, RunName};

use super::Embedded;
use crate::descriptor;
use crate::disk::{self, Disk, Open};
use crate::error::StoreError;
use crate::frame::{self, At, HEAD};
use crate::layout::{self, SECRET_NAME, VAULT, is_vault_name};
use crate::segments::Read;
use crate::store::secrets::{check_new, check_sizes};
use crate::store::{FORMAT, Given, Head, KeepSecrets, NewSecrets, SECRET_SIZE_MAX, check_heads};

/// A frame of the vault with a bad checksum.
pub(super) enum Torn {
    /// Damaged, or being destroyed: its name and bytes.
    Named(Digest, Vec<u8>),
    /// Destroyed, but for its head and its name.
    Destroyed,
}

impl KeepSecrets for Embedded {
    fn put_secrets(&mut self, secrets: &[(Digest, Vec<u8>)], given: Given<'_>) -> Result<bool, StoreError> {
        check_sizes(secrets)?;
        self.with_vault(given, |store, dir| {
            put_all(&*store.options.disk, dir, secrets.iter().map(|(name, bytes)| (*name, &**bytes)))?;
            // A frame is found before a file, so one with other bytes must go.
            let mut old = Vec::new();
            for (name, _) in secrets {
                if store.secret_in_log(name)?.is_some() {
                    old.push(*name);
                }
            }
            store.destroy_frames(&old)
        })
    }

    fn get_secret(&self, name: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.check_owner()?;
        match self.secret_in_log(name)? {
            None => get(&*self.options.disk, &self.vault_dir(), name),
            found => Ok(found),
        }
    }

    fn remove_secrets(&mut self, names: &[Digest], given: Given<'_>) -> Result<bool, StoreError> {
        self.with_vault(given, |store, dir| {
            store.destroy_frames(names)?;
            remove_all(&*store.options.disk, dir, names)
        })
    }

    fn secrets(&self) -> Result<Vec<Digest>, StoreError> {
        self.check_owner()?;
        let mut names: BTreeSet<Digest> = list(&*self.options.disk, &self.vault_dir())?.into_iter().collect();
        self.each_secret(&mut |_, name, _| {
            names.insert(name);
        })?;
        Ok(names.into_iter().collect())
    }

    fn append_with(
        &mut self,
        records: &[Record],
        heads: &[(RunName, Head)],
        secrets: &NewSecrets,
    ) -> Result<Range<u64>, StoreError> {
        check_new(&secrets.items)?;
        let positions = self.locked_behind_tags(|store| {
            check_heads(store, heads)?;
            let given = Given { there: &secrets.there, ..Given::default() };
            if !given.holds(&mut |name| store.has_secret(name), &mut || store.secrets())? {
                return Err(StoreError::SecretGone);
            }
            store.append_group(records, &secrets.items)
        })?;
        self.index_in_background();
        Ok(positions)
    }
}

impl Embedded {
    fn vault_dir(&self) -> PathBuf {
        self.dir.join(VAULT)
    }

    /// Runs `f` as the lock holder, if what was given holds.
    fn with_vault(
        &mut self,
        given: Given<'_>,
        f: impl FnOnce(&mut Embedded, &Path) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        self.check_writable()?;
        let dir = self.vault_dir();
        disk::refuse_links(&self.dir, &dir).map_err(|error| StoreError::io("open", &dir, error))?;
        let done = self.locked_behind_tags(|store| {
            let holds = given.holds(&mut |name| store.has_secret(name), &mut || store.secrets())?;
            if holds { f(store, &dir).map(|()| true) } else { Ok(false) }
        });
        self.note_failed_sync(done)
    }

    fn has_secret(&self, name: &Digest) -> Result<bool, StoreError> {
        Ok(self.secret_in_log(name)?.is_some() || has(&*self.options.disk, &self.vault_dir(), name)?)
    }

    /// Makes this store one of the format that has encrypted values in its log. The caller holds the lock.
    pub(super) fn need_secrets(&mut self) -> Result<(), StoreError> {
        if self.info.format >= FORMAT {
            return Ok(());
        }
        // Another process may have made it one, also of a newer format, which is refused here.
        let mut info = descriptor::read(&*self.options.disk, &self.dir, true)?;
        if info.format < FORMAT {
            (info.format, info.reader, info.writer) = (FORMAT, FORMAT, FORMAT);
            let path = self.dir.join(descriptor::NAME);
            disk::replace_file(&*self.options.disk, &path, descriptor::text(&info).as_bytes())
                .map_err(|error| StoreError::io("write", &path, error))?;
        }
        self.info = info;
        Ok(())
    }

    /// Returns the bytes of the newest frame of a name, as they are.
    fn secret_in_log(&self, name: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let at = match (self.tail.secret(name), &self.index) {
            (None, Some(index)) => index.secret(name)?,
            (at, _) => at,
        };
        let Some(at) = at else { return Ok(None) };
        if let Read::Frame(frame::SECRET, payload) = self.segments.read(at)? {
            let found = layout::parse_secret(&payload).filter(|(found, _)| found == name);
            return Ok(found.map(|(_, bytes)| bytes.to_vec()));
        }
        match self.torn_secret(at)? {
            Some(Torn::Named(found, bytes)) if found == *name => Ok(Some(bytes)),
            _ => Ok(None),
        }
    }

    /// Reads a frame with a bad checksum, if it is one of the vault: of a name, or destroyed but for its head.
    pub(super) fn torn_secret(&self, at: At) -> Result<Option<Torn>, StoreError> {
        let Read::Broken(head, _) = self.segments.read(at)? else { return Ok(None) };
        let len = head.len as usize;
        if !matches!(head.kind, frame::SECRET | frame::VOID) || len > SECRET_NAME + SECRET_SIZE_MAX {
            return Ok(None);
        }
        let Some(file) = self.segments.file(at.segment)? else { return Ok(None) };
        let mut payload = vec![0; len];
        disk::read_exact(&*file, &mut payload, u64::from(at.offset) + HEAD as u64)
            .map_err(|error| self.segments.io("read", at.segment, error))?;
        Ok(match layout::parse_secret(&payload) {
            // Also without a byte of its value: who overwrote it may have been killed before the sync, and must do it again.
            Some((name, bytes)) if head.kind == frame::SECRET => Some(Torn::Named(name, bytes.to_vec())),
            Some((_, bytes)) if layout::is_destroyed(bytes) => Some(Torn::Destroyed),
            _ => None,
        })
    }

    /// Hands over the frames of the vault, damaged ones too: with their names, and whether their bytes are overwritten.
    fn each_secret(&self, f: &mut dyn FnMut(At, Digest, bool)) -> Result<(), StoreError> {
        if self.info.format < FORMAT {
            return Ok(());
        }
        let mut broken = Vec::new();
        self.each_frame(&mut |at, kind, payload| match kind {
            frame::SECRET => {
                if let Some((name, _)) = layout::parse_secret(payload) {
                    f(at, name, false);
                }
            }
            0 => broken.push(at),
            _ => {}
        })?;
        for at in broken {
            if let Some(Torn::Named(name, bytes)) = self.torn_secret(at)? {
                f(at, name, layout::is_destroyed(&bytes));
            }
        }
        Ok(())
    }

    /// Destroys all frames of names. The caller holds the lock.
    fn destroy_frames(&mut self, names: &[Digest]) -> Result<(), StoreError> {
        if names.is_empty() {
            return Ok(());
        }
        let names: BTreeSet<&Digest> = names.iter().collect();
        let mut found = Vec::new();
        self.each_secret(&mut |at, name, is_overwritten| {
            // The name of an overwritten frame may be gone in part.
            if is_overwritten || names.contains(&name) {
                found.push(at);
            }
        })?;
        if found.is_empty() {
            return Ok(());
        }
        // Bytes that are about to be overwritten must be seen to have been on disk, not to be an unfinished end.
        self.sync_now()?;
        self.void_secrets(&found)
    }

    /// Overwrites frames of the vault in place, and makes that durable.
    pub(super) fn void_secrets(&self, frames: &[At]) -> Result<(), StoreError> {
        // The bytes go first: as long as they are not gone, the name leads to them.
        self.overwrite_secrets(frames, HEAD + SECRET_NAME)?;
        self.overwrite_secrets(frames, 0)
    }

    fn overwrite_secrets(&self, frames: &[At], from: usize) -> Result<(), StoreError> {
        let mut touched = BTreeSet::new();
        for at in frames {
            touched.insert(at.segment);
            let len = match self.segments.read(*at)? {
                Read::Frame(frame::SECRET, payload) => payload.len() as u32,
                Read::Broken(head, _) => head.len,
                Read::Frame(..) | Read::Short => continue,
            };
            let Some(file) = self.segments.file(at.segment)? else { continue };
            let frame = frame::void(len, frame::DESTROYED);
            disk::write_all(&*file, &frame[from..], u64::from(at.offset) + from as u64)
                .map_err(|error| self.segments.io("overwrite", at.segment, error))?;
        }
        self.sync_segments(touched)
    }

    /// Makes void in a copy the frames that are void here.
    fn copy_voids(&self, to: &Embedded) -> Result<(), StoreError> {
        let mut voids = Vec::new();
        if self.info.format >= FORMAT {
            self.each_frame(&mut |at, kind, _| voids.extend((kind == frame::VOID).then_some(at)))?;
        }
        let mut left = Vec::new();
        for at in voids {
            match to.segments.read(at)? {
                Read::Frame(frame::SECRET, _) => left.push(at),
                Read::Broken(..) if to.torn_secret(at)?.is_some() => left.push(at),
                _ => {}
            }
        }
        to.void_secrets(&left)
    }

    /// Makes the vault of a copy that of this store: what was destroyed here is destroyed there.
    pub(super) fn copy_vault(&self, to: &Embedded) -> Result<(), StoreError> {
        self.copy_voids(to)?;
        let (disk, from, there) = (&*to.options.disk, self.vault_dir(), to.vault_dir());
        disk::refuse_links(&to.dir, &there).map_err(|error| StoreError::io("open", &there, error))?;
        let names = list(&*self.options.disk, &from)?;
        for name in &names {
            // Removed meanwhile: the next copy removes it as well.
            let Some(bytes) = get(&*self.options.disk, &from, name)? else { continue };
            if get(disk, &there, name)?.as_deref() != Some(&*bytes) {
                put_all(disk, &there, [(*name, &*bytes)])?;
            }
        }
        let mut spare = list(disk, &there)?;
        spare.retain(|name| !names.contains(name));
        remove_all(disk, &there, &spare)
    }
}

fn file_of(dir: &Path, name: &Digest) -> PathBuf {
    dir.join(name.hex())
}

fn put_all<'b>(
    disk: &dyn Disk,
    dir: &Path,
    secrets: impl IntoIterator<Item = (Digest, &'b [u8])>,
) -> Result<(), StoreError> {
    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |error| StoreError::io(action, &path, error)
    };
    let mut is_put = false;
    for (name, bytes) in secrets {
        is_put = true;
        let path = file_of(dir, &name);
        let beside = path.with_extension("tmp");
        // A leftover of an interrupted write may be another name of some other file.
        match disk.remove(&beside) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io("remove", &beside)(error)),
            _ => {}
        }
        let file = match disk.open(&beside, Open::Create) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                disk.create_dir(dir).map_err(io("create", dir))?;
                if let Some(store) = dir.parent() {
                    disk.sync_dir(store).map_err(io("sync", store))?;
                }
                disk.open(&beside, Open::Create)
            }
            opened => opened,
        };
        let file = file.map_err(io("create", &beside))?;
        disk::write_all(&*file, bytes, 0).map_err(io("write", &beside))?;
        // Synced before the rename: after a power cut the name has all of the bytes.
        file.sync().map_err(io("sync", &beside))?;
        drop(file);
        disk.rename(&beside, &path).map_err(io("rename", &path))?;
    }
    match is_put {
        true => disk.sync_dir(dir).map_err(io("sync", dir)),
        false => Ok(()),
    }
}

fn get(disk: &dyn Disk, dir: &Path, name: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
    let path = file_of(dir, name);
    disk::read_file(disk, &path, SECRET_SIZE_MAX as u64).map_err(|error| StoreError::io("read", &path, error))
}

fn has(disk: &dyn Disk, dir: &Path, name: &Digest) -> Result<bool, StoreError> {
    let path = file_of(dir, name);
    match disk.open(&path, Open::Read) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::io("open", &path, error)),
    }
}

fn list(disk: &dyn Disk, dir: &Path) -> Result<Vec<Digest>, StoreError> {
    let files = match disk.list(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        files => files.map_err(|error| StoreError::io("list", dir, error))?,
    };
    let named = files.iter().filter(|file| is_vault_name(file));
    let mut names: Vec<Digest> = named.filter_map(|file| format!("sha256:{file}").parse().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

/// Overwrites files with zeros, then removes them. Old bytes that the file system or the disk kept are ciphertext.
fn remove_all(disk: &dyn Disk, dir: &Path, names: &[Digest]) -> Result<(), StoreError> {
    let mut is_removed = false;
    for name in names {
        let path = file_of(dir, name);
        let io = |action| {
            let path = path.clone();
            move |error| StoreError::io(action, &path, error)
        };
        // A file with several names may be that of another store: there the bytes stay.
        if disk::shared_with(&path, Path::new("")).is_none() {
            match disk.open(&path, Open::Write) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                file => {
                    let file = file.map_err(io("open"))?;
                    let len = file.len().map_err(io("read"))?.min(SECRET_SIZE_MAX as u64);
                    disk::write_all(&*file, &vec![0; len as usize], 0).map_err(io("overwrite"))?;
                    file.sync().map_err(io("sync"))?;
                }
            }
        }
        disk.remove(&path).map_err(io("remove"))?;
        is_removed = true;
    }
    match is_removed {
        true => disk.sync_dir(dir).map_err(|error| StoreError::io("sync", dir, error)),
        false => Ok(()),
    }
}
