//! Exact bytes that may hold secrets: encrypted in the store, under a key that is not in it.
//!
//! A record has a redacted value and a [`VaultRef`]; with the key of the vault the exact bytes are read. The key is a file
//! beside the signing key ([`Trust::vault_key`]), made at the first [`Vault::put`]. Names in the store are MACs, so neither runs nor
//! places are seen there. Nothing of a vault is in an entry of the log or in a bundle.
//!
//! Rule: [`Vault::get`] returns the bytes that were put, or an error; tests `a_flipped_byte_is_refused`,
//! `a_put_that_was_stopped_anywhere_leaves_all_or_nothing`.

mod cipher;
mod parts;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use dendrer_object::{Code, Digest, RunName, Value, json, tag};
use dendrer_store::prelude::*;
use dendrer_store::{Given, NewSecrets, Shared, Store, StoreError};

use self::cipher::{Cipher, Kind};
use self::parts::{LIST_MAX, VALUE_MAX};
use crate::error::TrustError;
use crate::trust::{Trust, VaultKey};

/// How many bytes are put at once.
const BATCH: usize = 8 << 20;

/// The longest value that is kept in its entry.
const WITHIN_MAX: usize = 8 << 10;

/// How often a change is tried again because another process changed the vault meanwhile.
const ATTEMPTS: usize = 16;

/// The value that a record has in place of bytes that are in the vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VaultRef {
    /// Number of bytes.
    pub bytes: u64,
    /// Salted digest of the bytes.
    pub commitment: Digest,
}

impl VaultRef {
    /// Writes the tagged form that a record has.
    pub fn to_value(&self) -> Value {
        tag::vault(self.bytes, &self.commitment)
    }

    /// Reads the tagged form; `None` for any other value.
    pub fn from_value(value: &Value) -> Option<VaultRef> {
        tag::as_vault(value).map(|(bytes, commitment)| VaultRef { bytes, commitment })
    }
}

/// Why the vault did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VaultError {
    /// There is no key, so nothing can be read. Nothing is put either while bytes of a lost key are there.
    #[error("UNAVAILABLE: the key of the vault is not here")]
    NoKey,
    /// There is a key, and it is not the one that the vault was begun with.
    #[error("UNAVAILABLE: the key that is here is not the key of this vault")]
    OtherKey,
    /// Nothing was put there, or it was destroyed.
    #[error("the vault has nothing of {run} at {locator}")]
    Nothing {
        /// The run.
        run: RunName,
        /// The place.
        locator: String,
    },
    /// There are other bytes at the place already. A record may refer to them.
    #[error("the vault has other bytes of {run} at {locator}")]
    Taken {
        /// The run.
        run: RunName,
        /// The place.
        locator: String,
    },
    /// The value is too large.
    #[error("{size} bytes are more than the vault takes for one value")]
    TooLarge {
        /// Number of bytes.
        size: usize,
    },
    /// The bytes under a name are not those that were put there.
    #[error("vault/{} is damaged or missing", .name.hex())]
    Damaged {
        /// The name.
        name: Digest,
    },
    /// The bytes are not those that the record is committed to.
    #[error("the vault has bytes with the commitment {found}, and the record has {expected}")]
    Differs {
        /// The commitment in the record.
        expected: Digest,
        /// The commitment to what is there.
        found: Digest,
    },
    /// Other processes changed the vault each time that this was tried.
    #[error("other processes keep changing the vault")]
    Busy,
    /// The key cannot be read or written.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl VaultError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            VaultError::NoKey | VaultError::OtherKey => Code::E0465,
            VaultError::Nothing { .. } => Code::E0311,
            VaultError::Taken { .. } => Code::E0106,
            VaultError::TooLarge { .. } => Code::E0205,
            VaultError::Damaged { .. } => Code::E0305,
            VaultError::Differs { .. } => Code::E0301,
            VaultError::Busy => Code::E0802,
            VaultError::Trust(error) => error.code(),
            VaultError::Store(error) => error.code(),
        }
    }
}

/// The decrypted content of an entry.
struct Entry {
    run: RunName,
    bytes: u64,
    salt: [u8; 16],
    /// How many levels of lists are above the pieces.
    depth: u64,
    names: Vec<Digest>,
    /// The bytes of a value that is too small for a part of its own.
    within: Option<Vec<u8>>,
}

impl Entry {
    fn text(&self, locator: &str) -> Vec<u8> {
        let value = Value::record([
            ("bytes", Value::from(self.bytes)),
            ("depth", Value::from(self.depth)),
            ("locator", Value::from(locator)),
            ("names", tag::bytes(&parts::list(&self.names))),
            ("run", Value::from(self.run.as_str())),
            ("salt", tag::bytes(&self.salt)),
        ]);
        let mut text = json::to_string(&value).into_bytes();
        if let Some(within) = &self.within {
            text.push(b'\n');
            text.extend_from_slice(within);
        }
        text
    }

    fn read(text: &[u8]) -> Option<Entry> {
        // Canonical JSON has no newline.
        let (text, within) = match text.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&text[..end], Some(text[end + 1..].to_vec())),
            None => (text, None),
        };
        let value = json::parse_canonical(text).ok()?;
        Some(Entry {
            run: value.get("run")?.as_str()?.parse().ok()?,
            bytes: value.get("bytes")?.as_u64()?,
            salt: tag::as_bytes(value.get("salt")?)?.try_into().ok()?,
            depth: value.get("depth")?.as_u64()?,
            names: parts::read_list(&tag::as_bytes(value.get("names")?)?)?,
            within,
        })
    }

    fn commitment(&self, bytes: &[u8]) -> Digest {
        Digest::of_parts(&[b"dendrer/vault-commitment/v1\n", &self.salt, bytes])
    }
}

/// Keys, and the mark of the vault that they are of.
type Known = (Arc<Cipher>, Vec<u8>);

/// The vault of a store.
#[derive(Clone)]
pub struct Vault {
    store: Shared,
    trust: Arc<dyn Trust>,
    /// The keys that were used last, and the mark of the vault that they are of.
    known: Arc<Mutex<Option<Known>>>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").finish_non_exhaustive()
    }
}

impl Vault {
    /// Opens the vault of a store, with the keys of a trust. Looks at neither.
    pub fn open(store: &Shared, trust: Arc<dyn Trust>) -> Vault {
        Vault { store: store.clone(), trust, known: Arc::default() }
    }

    /// Puts the exact bytes of a value of a run at a place, a text that the caller finds again: a tick and a pointer, or the key
    /// of a checkpoint. They are durable when this returns. The same bytes at the same place give the same reference.
    ///
    /// # Errors
    ///
    /// [`VaultError::Taken`] if other bytes are there, [`VaultError::NoKey`] if the vault was begun with a key that is not here.
    pub fn put(&mut self, run: &RunName, locator: &str, bytes: &[u8]) -> Result<VaultRef, VaultError> {
        Ok(self.put_each(run, &[(locator, bytes)])?.remove(0))
    }

    /// As [`Vault::put`] for several values of a run, at less cost: all of them are there, or none.
    pub fn put_each(&mut self, run: &RunName, values: &[(&str, &[u8])]) -> Result<Vec<VaultRef>, VaultError> {
        if let Some((_, bytes)) = values.iter().find(|(_, bytes)| bytes.len() > VALUE_MAX) {
            return Err(VaultError::TooLarge { size: bytes.len() });
        }
        let cipher = self.cipher_to_write()?;
        for _ in 0..ATTEMPTS {
            if let Some(refs) = self.try_put(&cipher, run, values)? {
                return Ok(refs);
            }
        }
        Err(VaultError::Busy)
    }

    /// Encrypts the exact bytes of a value of a run, to be put with the record that names them. `locator` is one that nothing else
    /// has.
    pub(crate) fn seal(
        &mut self,
        run: &RunName,
        locator: &str,
        bytes: &[u8],
    ) -> Result<(VaultRef, NewSecrets), VaultError> {
        let cipher = self.cipher_to_write()?;
        let mut batch = Batch::default();
        let (found, entry) = self.make(&cipher, run, locator, bytes, &mut batch)?;
        let mut there = batch.names;
        for (name, _) in &batch.items {
            there.remove(name);
        }
        batch.items.push(entry);
        Ok((found, NewSecrets { items: batch.items, there: there.into_iter().collect() }))
    }

    /// Makes the entry of a value, and gathers its parts.
    fn make(
        &mut self,
        cipher: &Cipher,
        run: &RunName,
        locator: &str,
        bytes: &[u8],
        batch: &mut Batch,
    ) -> Result<(VaultRef, (Digest, Vec<u8>)), VaultError> {
        let size = bytes.len() as u64;
        if bytes.len() > VALUE_MAX {
            return Err(VaultError::TooLarge { size: bytes.len() });
        }
        let is_small = bytes.len() <= WITHIN_MAX;
        let (depth, names) = match is_small {
            true => (0, Vec::new()),
            false => self.put_parts(cipher, run, bytes, batch)?,
        };
        let within = is_small.then(|| bytes.to_vec());
        let entry = Entry { run: run.clone(), bytes: size, salt: cipher.salt()?, depth, names, within };
        let name = cipher.entry_name(run, locator);
        let found = VaultRef { bytes: size, commitment: entry.commitment(bytes) };
        Ok((found, (name, cipher.seal(Kind::Entry, &name, &entry.text(locator))?)))
    }

    /// Puts values; `None` if another process put or destroyed one of them meanwhile, or a part of one.
    fn try_put(
        &mut self,
        cipher: &Cipher,
        run: &RunName,
        values: &[(&str, &[u8])],
    ) -> Result<Option<Vec<VaultRef>>, VaultError> {
        let (mut refs, mut batch) = (Vec::with_capacity(values.len()), Batch::default());
        let (mut entries, mut absent) = (Vec::new(), Vec::new());
        for (locator, bytes) in values {
            let name = cipher.entry_name(run, locator);
            if self.store.get_secret(&name)?.is_some() {
                let entry = self.entry(cipher, &name)?;
                if self.read(cipher, &entry)? != *bytes {
                    return Err(VaultError::Taken { run: run.clone(), locator: (*locator).to_owned() });
                }
                refs.push(VaultRef { bytes: entry.bytes, commitment: entry.commitment(bytes) });
                continue;
            }
            let (found, entry) = self.make(cipher, run, locator, bytes, &mut batch)?;
            refs.push(found);
            entries.push(entry);
            absent.push(name);
        }
        if !batch.items.is_empty() {
            self.store.put_secrets(&batch.items, Given::default())?;
        }
        // The parts are durable by now: an entry never names what a power cut can take. Another process may have destroyed a
        // value that shares some of them, or have put this one.
        let there: Vec<Digest> = batch.names.into_iter().collect();
        let given = Given { there: &there, absent: &absent, only: None };
        let is_put = entries.is_empty() || self.store.put_secrets(&entries, given)?;
        Ok(is_put.then_some(refs))
    }

    /// Returns the exact bytes of a value.
    ///
    /// # Errors
    ///
    /// [`VaultError::NoKey`] without the key, [`VaultError::Nothing`] if nothing is there, [`VaultError::Damaged`] if what is there
    /// was changed.
    pub fn get(&self, run: &RunName, locator: &str) -> Result<Vec<u8>, VaultError> {
        Ok(self.find(run, locator)?.0)
    }

    /// As [`Vault::get`], and compares the bytes with the reference that a record has.
    ///
    /// # Errors
    ///
    /// [`VaultError::Differs`] if they are not those of the record.
    pub fn get_as(&self, run: &RunName, locator: &str, known: &VaultRef) -> Result<Vec<u8>, VaultError> {
        let (bytes, found) = self.find(run, locator)?;
        match found == *known {
            true => Ok(bytes),
            false => Err(VaultError::Differs { expected: known.commitment, found: found.commitment }),
        }
    }

    /// Returns a keyed digest of bytes of a run: equal bytes are known again by it, and nothing else follows from it.
    ///
    /// # Errors
    ///
    /// [`VaultError::NoKey`] if the vault was begun with a key that is not here.
    pub fn known_by(&mut self, run: &RunName, bytes: &[u8]) -> Result<Digest, VaultError> {
        Ok(self.cipher_to_write()?.known_by(run, bytes))
    }

    /// Destroys the bytes of one value: its entry, and the parts that no other value of the run has. Copies that a backup has are
    /// destroyed when it is made again. If it is interrupted, the bytes cannot be read, and another call destroys the rest.
    ///
    /// # Errors
    ///
    /// [`VaultError::Nothing`] if nothing is there.
    pub fn destroy(&mut self, run: &RunName, locator: &str) -> Result<(), VaultError> {
        let cipher = self.cipher()?;
        let name = cipher.entry_name(run, locator);
        if self.store.get_secret(&name)?.is_none() {
            return Err(self.nothing(&cipher, run, locator)?);
        }
        for _ in 0..ATTEMPTS {
            if self.try_destroy(&cipher, run, &BTreeSet::from([name]))? {
                return Ok(());
            }
        }
        Err(VaultError::Busy)
    }

    /// Fails if what is there could not be read or destroyed.
    ///
    /// # Errors
    ///
    /// [`VaultError::NoKey`] and [`VaultError::OtherKey`].
    pub fn unlock(&self) -> Result<(), VaultError> {
        match self.marks()?.iter().any(|mark| mark.kept.is_some()) {
            true => self.cipher().map(drop),
            false => Ok(()),
        }
    }

    /// As [`Vault::destroy`] for several values of a run, at less cost. One that is not there is passed over.
    pub fn destroy_each(&mut self, run: &RunName, locators: &[Arc<str>]) -> Result<(), VaultError> {
        let cipher = self.cipher()?;
        let mut names = BTreeSet::new();
        for locator in locators {
            let name = cipher.entry_name(run, locator);
            if self.store.get_secret(&name)?.is_some() {
                names.insert(name);
            }
        }
        for _ in 0..ATTEMPTS {
            if names.is_empty() || self.try_destroy(&cipher, run, &names)? {
                return Ok(());
            }
        }
        Err(VaultError::Busy)
    }

    /// Destroys entries and their parts; `false` if another process put something meanwhile that may share them.
    fn try_destroy(
        &mut self,
        cipher: &Cipher,
        run: &RunName,
        names: &BTreeSet<Digest>,
    ) -> Result<bool, VaultError> {
        let seen = self.store.secrets()?;
        let (mut used, mut levels) = (BTreeSet::new(), Vec::new());
        for (other, entry) in self.entries(cipher)? {
            let is_meant = names.contains(&other);
            if entry.run == *run || is_meant {
                let found = self.levels(cipher, &entry)?;
                match is_meant {
                    // Of an entry that cannot be read the parts are not known; `sweep` removes them.
                    true => levels.push(found),
                    false => used.extend(found.into_iter().flatten()),
                }
            }
        }
        let unchanged = Given { only: Some(&seen), ..Given::default() };
        // Pieces first and lists after them, each level durably: an interrupted call leaves the way to the rest.
        for depth in (0..levels.iter().map(Vec::len).max().unwrap_or(0)).rev() {
            let level: BTreeSet<Digest> =
                levels.iter().filter_map(|levels| levels.get(depth)).flatten().copied().collect();
            let spare: Vec<Digest> = level.difference(&used).copied().collect();
            if !self.store.remove_secrets(&spare, unchanged)? {
                return Ok(false);
            }
        }
        let names: Vec<Digest> = names.iter().copied().collect();
        Ok(self.store.remove_secrets(&names, unchanged)?)
    }

    /// Destroys the key, and then everything that it encrypted. From then on nothing of the vault can be read, here or in a backup.
    /// A later [`Vault::put`] makes another key.
    pub fn destroy_key(&mut self) -> Result<(), VaultError> {
        // The key goes first: all that follows may be interrupted.
        self.trust.destroy_vault_key(self.store.info().id)?;
        let mut names = self.store.secrets()?;
        // The marks go last: as long as anything is left, no other key is made.
        let marks = self.marks()?;
        names.sort_by_key(|name| marks.iter().any(|mark| mark.name == *name));
        // Each batch reads the log once.
        for batch in names.chunks(1 << 14) {
            self.store.remove_secrets(batch, Given::default())?;
        }
        Ok(())
    }

    /// Removes parts that no entry names, as an interrupted put leaves them. Returns how many there were; a dry run removes none.
    pub fn sweep(&mut self, dry_run: bool) -> Result<u64, VaultError> {
        let cipher = self.cipher()?;
        // A part that no entry names may be of the vault whose key is gone.
        if has_others(&self.marks()?, &cipher) {
            return Ok(0);
        }
        for _ in 0..ATTEMPTS {
            let seen = self.store.secrets()?;
            let mut used = BTreeSet::new();
            for (_, entry) in self.entries(&cipher)? {
                used.extend(self.levels(&cipher, &entry)?.into_iter().flatten());
            }
            let mut spare = Vec::new();
            for name in seen.iter().filter(|name| !used.contains(name)) {
                if self.kind(name)? == Some(Kind::Part) {
                    spare.push(*name);
                }
            }
            let unchanged = Given { only: Some(&seen), ..Given::default() };
            if dry_run || spare.is_empty() || self.store.remove_secrets(&spare, unchanged)? {
                return Ok(spare.len() as u64);
            }
        }
        Err(VaultError::Busy)
    }

    fn kind(&self, name: &Digest) -> Result<Option<Kind>, VaultError> {
        Ok(self.store.get_secret(name)?.and_then(|kept| cipher::kind_of(&kept)))
    }

    /// Returns the keys to read with. Those that a handle used are kept: while the mark of the vault is the same, they fit.
    fn cipher(&self) -> Result<Arc<Cipher>, VaultError> {
        let marks = self.marks()?;
        if let Some(known) = self.known(&marks) {
            return Ok(known);
        }
        let key = self.trust.vault_key(self.store.info().id)?.ok_or(VaultError::NoKey)?;
        Ok(self.cipher_of(&key, marks)?.0)
    }

    fn known(&self, marks: &[Mark]) -> Option<Arc<Cipher>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (cipher, of) = known.as_ref()?;
        marks.iter().any(|mark| mark.kept.as_ref() == Some(of)).then(|| Arc::clone(cipher))
    }

    /// Returns the keys of one of the vaults of the store, and the name of its mark if that is not there: then the vault has not
    /// begun.
    fn cipher_of(
        &self,
        key: &VaultKey,
        marks: Vec<Mark>,
    ) -> Result<(Arc<Cipher>, Option<Digest>), VaultError> {
        let cipher = Arc::new(Cipher::new(key, self.store.info().id));
        let own = cipher.mark();
        for mark in &marks {
            match &mark.kept {
                Some(kept) if *kept == own => {
                    let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                    *known = Some((Arc::clone(&cipher), own));
                    return Ok((cipher, None));
                }
                Some(kept) if cipher::kind_of(kept) != Some(Kind::Mark) => {
                    return Err(VaultError::Damaged { name: mark.name });
                }
                _ => {}
            }
        }
        match marks.iter().find(|mark| mark.kept.is_none()) {
            Some(free) => Ok((cipher, Some(free.name))),
            None => Err(VaultError::OtherKey),
        }
    }

    /// Returns the keys to write with; makes a key for a vault that has none.
    fn cipher_to_write(&mut self) -> Result<Arc<Cipher>, VaultError> {
        let id = self.store.info().id;
        let marks = self.marks()?;
        if let Some(known) = self.known(&marks) {
            return Ok(known);
        }
        let key = match self.trust.vault_key(id)? {
            Some(key) => key,
            None if marks.iter().all(|mark| mark.kept.is_some()) => return Err(VaultError::NoKey),
            None => {
                let key = VaultKey::generate()?;
                let kept = self.trust.keep_vault_key(id, &key);
                // Another process may have made one meanwhile: what is kept counts.
                match (self.trust.vault_key(id)?, kept) {
                    (Some(key), _) => key,
                    (None, Err(error)) => return Err(error.into()),
                    (None, Ok(())) => return Err(VaultError::NoKey),
                }
            }
        };
        let (cipher, free) = self.cipher_of(&key, marks)?;
        if let Some(name) = free {
            let first = Given { absent: &[name], ..Given::default() };
            if !self.store.put_secrets(&[(name, cipher.mark())], first)? {
                return match self.cipher_of(&key, self.marks()?)? {
                    (cipher, None) => Ok(cipher),
                    (_, Some(_)) => Err(VaultError::Busy),
                };
            }
        }
        Ok(cipher)
    }

    fn marks(&self) -> Result<Vec<Mark>, VaultError> {
        marks(&self.store)
    }

    /// Why nothing is found at a place: nothing was put, or it lies in a vault whose key is gone.
    fn nothing(&self, cipher: &Cipher, run: &RunName, locator: &str) -> Result<VaultError, VaultError> {
        Ok(match has_others(&self.marks()?, cipher) {
            true => VaultError::NoKey,
            false => VaultError::Nothing { run: run.clone(), locator: locator.to_owned() },
        })
    }

    /// Gathers the parts of a value. Returns how many levels of lists are above the pieces, and the names for the entry.
    fn put_parts(
        &mut self,
        cipher: &Cipher,
        run: &RunName,
        bytes: &[u8],
        batch: &mut Batch,
    ) -> Result<(u64, Vec<Digest>), VaultError> {
        let mut names = Vec::new();
        for piece in parts::cut(bytes) {
            names.push(self.put_part(cipher, run, false, piece, batch)?);
        }
        let mut depth = 0;
        while names.len() > LIST_MAX {
            let mut above = Vec::new();
            for group in names.chunks(LIST_MAX) {
                above.push(self.put_part(cipher, run, true, &parts::list(group), batch)?);
            }
            (names, depth) = (above, depth + 1);
        }
        Ok((depth, names))
    }

    fn put_part(
        &mut self,
        cipher: &Cipher,
        run: &RunName,
        is_list: bool,
        bytes: &[u8],
        batch: &mut Batch,
    ) -> Result<Digest, VaultError> {
        let name = cipher.part_name(run, is_list, bytes);
        // One that is there and does not open is put again.
        let is_there = |kept: Vec<u8>| cipher.open(Kind::Part, &name, &kept).is_some();
        if !batch.names.insert(name) || self.store.get_secret(&name)?.is_some_and(is_there) {
            return Ok(name);
        }
        batch.items.push((name, cipher.seal(Kind::Part, &name, bytes)?));
        batch.size += bytes.len();
        if batch.size > BATCH {
            self.store.put_secrets(&batch.items, Given::default())?;
            (batch.items, batch.size) = (Vec::new(), 0);
        }
        Ok(name)
    }

    fn open_part(&self, cipher: &Cipher, kind: Kind, name: &Digest) -> Result<Vec<u8>, VaultError> {
        open_part(&self.store, cipher, kind, name)
    }

    fn entry(&self, cipher: &Cipher, name: &Digest) -> Result<Entry, VaultError> {
        let text = self.open_part(cipher, Kind::Entry, name)?;
        Entry::read(&text).ok_or(VaultError::Damaged { name: *name })
    }

    /// Returns the entries that can be read. Bytes to which an unreadable entry refers are lost in any case.
    fn entries(&self, cipher: &Cipher) -> Result<Vec<(Digest, Entry)>, VaultError> {
        let mut entries = Vec::new();
        for name in self.store.secrets()? {
            let Some(kept) = self.store.get_secret(&name)? else { continue };
            let text = cipher.open(Kind::Entry, &name, &kept);
            entries.extend(text.and_then(|text| Entry::read(&text)).map(|entry| (name, entry)));
        }
        Ok(entries)
    }

    /// Returns the names of the parts of an entry, level by level from the entry to the pieces. A list that is missing, as an
    /// interrupted [`Vault::destroy`] leaves it, has no names below it.
    fn levels(&self, cipher: &Cipher, entry: &Entry) -> Result<Vec<Vec<Digest>>, VaultError> {
        let mut levels = vec![entry.names.clone()];
        for _ in 0..entry.depth {
            let mut below = Vec::new();
            for name in levels.last().into_iter().flatten() {
                match self.open_part(cipher, Kind::Part, name) {
                    Ok(list) => below.extend(parts::read_list(&list).unwrap_or_default()),
                    Err(VaultError::Damaged { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            levels.push(below);
        }
        Ok(levels)
    }

    fn read(&self, cipher: &Cipher, entry: &Entry) -> Result<Vec<u8>, VaultError> {
        read_value(&self.store, cipher, entry)
    }

    fn find(&self, run: &RunName, locator: &str) -> Result<(Vec<u8>, VaultRef), VaultError> {
        let cipher = self.cipher()?;
        let name = cipher.entry_name(run, locator);
        if self.store.get_secret(&name)?.is_none() {
            return Err(self.nothing(&cipher, run, locator)?);
        }
        let entry = self.entry(&cipher, &name)?;
        let bytes = self.read(&cipher, &entry)?;
        let found = VaultRef { bytes: entry.bytes, commitment: entry.commitment(&bytes) };
        Ok((bytes, found))
    }
}

/// Parts on their way to the store.
#[derive(Default)]
struct Batch {
    items: Vec<(Digest, Vec<u8>)>,
    /// All parts of these values.
    names: BTreeSet<Digest>,
    size: usize,
}

/// The mark by which the key of a vault is known.
struct Mark {
    name: Digest,
    /// The bytes under the name; `None` if the vault has not begun.
    kept: Option<Vec<u8>>,
}

/// Returns the marks of the vaults that a store may have: one, and another for each time that the key of its log was lost.
fn marks(store: &dyn Store) -> Result<Vec<Mark>, VaultError> {
    let keys = store.keys()?;
    let lost = keys.spans().iter().filter(|span| !span.is_signed_for).map(|span| span.from.to_be_bytes());
    let names = std::iter::once(Vec::new()).chain(lost.map(Vec::from)).map(|from| mark_name(store, &from));
    names.map(|name| Ok(Mark { name, kept: store.get_secret(&name)? })).collect()
}

/// Whether there are vaults of other keys.
fn has_others(marks: &[Mark], cipher: &Cipher) -> bool {
    let own = cipher.mark();
    marks.iter().any(|mark| mark.kept.as_ref().is_some_and(|kept| *kept != own))
}

/// The name of the mark of a vault, of a later one by the size at which the key of the log came into force.
fn mark_name(store: &dyn Store, from: &[u8]) -> Digest {
    Digest::of_parts(&[b"dendrer/vault-mark/v1\n", &store.info().id.0, from])
}

fn open_part(store: &dyn Store, cipher: &Cipher, kind: Kind, name: &Digest) -> Result<Vec<u8>, VaultError> {
    let kept = store.get_secret(name)?;
    kept.and_then(|kept| cipher.open(kind, name, &kept)).ok_or(VaultError::Damaged { name: *name })
}

fn read_value(store: &dyn Store, cipher: &Cipher, entry: &Entry) -> Result<Vec<u8>, VaultError> {
    if let Some(within) = &entry.within {
        return Ok(within.clone());
    }
    let mut names = entry.names.clone();
    for _ in 0..entry.depth {
        let mut below = Vec::new();
        for name in &names {
            let list = open_part(store, cipher, Kind::Part, name)?;
            below.extend(parts::read_list(&list).ok_or(VaultError::Damaged { name: *name })?);
        }
        names = below;
    }
    let mut bytes = Vec::new();
    for name in &names {
        bytes.extend(open_part(store, cipher, Kind::Part, name)?);
    }
    match bytes.len() as u64 == entry.bytes {
        true => Ok(bytes),
        false => Err(VaultError::Damaged { name: names.first().copied().unwrap_or(mark_name(store, &[])) }),
    }
}

/// The state of the vault of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultReport {
    /// Number of values.
    pub entries: u64,
    /// Number of names: values, their parts and the mark.
    pub files: u64,
    /// Names whose bytes are not what was written, or that a value needs and that have none.
    pub damaged: Vec<Digest>,
    /// Whether the key is here, so that every value was read. Without it only the check at the end of each was compared.
    pub was_read: bool,
}

/// Checks the vault of a store: the bytes under every name, and with the key every value. `None` for a store without one.
pub fn check(store: &dyn Store, trust: &dyn Trust) -> Result<Option<VaultReport>, VaultError> {
    let names = store.secrets()?;
    if names.is_empty() {
        return Ok(None);
    }
    let id = store.info().id;
    let marks = marks(store)?;
    // A key that cannot be used is one that is not here: the verb that needs it reports why.
    let cipher = trust.vault_key(id).ok().flatten().map(|key| Cipher::new(&key, id));
    let fits = |cipher: &Cipher| marks.iter().any(|mark| mark.kept.as_ref() == Some(&cipher.mark()));
    // Bytes under a key that is gone look like damaged ones.
    let cipher = cipher.filter(|cipher| fits(cipher) && !has_others(&marks, cipher));
    let mut report = VaultReport { entries: 0, files: 0, damaged: Vec::new(), was_read: cipher.is_some() };
    for name in names {
        report.files += 1;
        let Some(kept) = store.get_secret(&name)? else { continue };
        match cipher::kind_of(&kept) {
            None => report.damaged.push(name),
            Some(Kind::Entry) => {
                report.entries += 1;
                let Some(cipher) = &cipher else { continue };
                let entry = cipher.open(Kind::Entry, &name, &kept).and_then(|text| Entry::read(&text));
                match entry.map(|entry| read_value(store, cipher, &entry)) {
                    None => report.damaged.push(name),
                    Some(Err(VaultError::Damaged { name })) => report.damaged.push(name),
                    Some(Err(error)) => return Err(error),
                    Some(Ok(_)) => {}
                }
            }
            Some(_) => {}
        }
    }
    report.damaged.sort_unstable();
    report.damaged.dedup();
    Ok(Some(report))
}

#[cfg(test)]
mod tests;
