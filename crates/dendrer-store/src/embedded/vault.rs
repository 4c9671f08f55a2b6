//! Encrypted bytes as files of `vault/`, one for each name.
//!
//! A file is written beside its place, synced and renamed, so that a reader finds all of it or none. Only the holder of the
//! store's lock writes: two processes that put the same name would write one file beside its place.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use dendrer_object::Digest;

use super::Embedded;
use crate::disk::{self, Disk, Open};
use crate::error::StoreError;
use crate::layout::{VAULT, is_vault_name};
use crate::store::secrets::check_sizes;
use crate::store::{Given, KeepSecrets, SECRET_SIZE_MAX};

impl KeepSecrets for Embedded {
    fn put_secrets(&mut self, secrets: &[(Digest, Vec<u8>)], given: Given<'_>) -> Result<bool, StoreError> {
        check_sizes(secrets)?;
        self.with_vault(given, |disk, dir| {
            put_all(disk, dir, secrets.iter().map(|(name, bytes)| (*name, &**bytes)))
        })
    }

    fn get_secret(&self, name: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.check_owner()?;
        get(&*self.options.disk, &self.vault_dir(), name)
    }

    fn remove_secrets(&mut self, names: &[Digest], given: Given<'_>) -> Result<bool, StoreError> {
        self.with_vault(given, |disk, dir| remove_all(disk, dir, names))
    }

    fn secrets(&self) -> Result<Vec<Digest>, StoreError> {
        self.check_owner()?;
        list(&*self.options.disk, &self.vault_dir())
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
        f: impl FnOnce(&dyn Disk, &Path) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        self.check_writable()?;
        let dir = self.vault_dir();
        disk::refuse_links(&self.dir, &dir).map_err(|error| StoreError::io("open", &dir, error))?;
        self.take_lock()?;
        let disk = &*self.options.disk;
        let holds = given.holds(&mut |name| has(disk, &dir, name), &mut || list(disk, &dir));
        let done = holds.and_then(|holds| if holds { f(disk, &dir).map(|()| true) } else { Ok(false) });
        self.unlock();
        done
    }

    /// Makes the vault of a copy that of this store: what was destroyed here is destroyed there.
    pub(super) fn copy_vault(&self, to: &Embedded) -> Result<(), StoreError> {
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
