//! Changes of the key of a log: rotated, recovered after a loss, revoked.
//!
//! A change is a record of kind `key` that is appended under the lock of the store, as the last one before the new key signs. Its
//! steps are: the new key on disk next to the old one, the record, the checkpoint, the old key destroyed. The next handle that
//! writes finishes a change that is on record, and takes back any other.
//!
//! Rule: at every moment a key that can sign the log as it is on disk is on disk; test `a_change_may_stop_anywhere`.

use std::path::Path;
use std::sync::Arc;

use dendrer_object::keys::{KeyHow, LogKeys, recovery, revocation, rotation};
use dendrer_object::note::{SignedNote, SigningKey, VerifierKey};
use dendrer_object::record::Kind;
use dendrer_object::{Digest, Record, StoreId, Value};
use dendrer_store::embedded::{Embedded, Options};
use dendrer_store::prelude::*;
use dendrer_store::{Shared, StoreError, WriterSecret};

use crate::environment::seal_by_institution;
use crate::error::Error;
use crate::repo::{Repo, Signed};
use crate::trust::{TagKey, make_key};

/// A change of the keys of a log.
#[derive(Debug, Clone)]
pub struct KeyChanged {
    /// The key that was in force, or whose signatures were taken back.
    pub old: VerifierKey,
    /// The key in force.
    pub new: VerifierKey,
    /// The position of the record.
    pub position: u64,
    /// The kind of the change.
    pub how: KeyHow,
    /// The size from which on signatures were taken back.
    pub at: Option<u64>,
}

/// Makes the content of a record, of the tree over the records before it.
type Change<'a> = dyn FnMut(&dyn ReadLog, (u64, Digest)) -> Result<Value, Error> + 'a;

/// Puts a new key in the place of the one in force, which signs that and is destroyed. With `out` the new key is put in that file.
///
/// # Errors
///
/// [`StoreError::NoWriter`] if the key of the log is not here.
pub fn rotate(repo: Repo, out: Option<&Path>) -> Result<KeyChanged, Error> {
    let old = repo.signing_key()?.ok_or(StoreError::NoWriter)?;
    let (id, trust) = (repo.info().id, Arc::clone(repo.trust()));
    let tags = trust.tag_key(&repo.log()?)?;
    let new = Arc::new(make_key(&id.origin())?);
    let mut content =
        |_: &dyn ReadLog, before| Ok(rotation(id, before, &old, (&new, WriterSecret::of(&new).mark())));
    let position = change(&repo, &new, tags, &mut content)?;
    for key in [old.verifier_key(), new.verifier_key()] {
        trust.know_key(id, key)?;
    }
    trust.end_change(id, new.verifier_key(), out)?;
    let (old, new) = (old.verifier_key().clone(), new.verifier_key().clone());
    Ok(KeyChanged { old, new, position, how: KeyHow::Rotated, at: None })
}

/// Puts a new key in the place of one that was lost. `checkpoint` is one that the lost key signed and that the log contains; the
/// newest of the store without it.
///
/// # Errors
///
/// [`Error::KeyIsHere`] if the key is not lost; [`Error::NotContained`] for a checkpoint of another log.
pub fn recover(repo: Repo, reason: &str, checkpoint: Option<&SignedNote>) -> Result<KeyChanged, Error> {
    let (id, trust) = (repo.info().id, Arc::clone(repo.trust()));
    // A key that is here and cannot be used is here.
    if repo.signing_key()?.is_some() {
        return Err(Error::KeyIsHere);
    }
    let newest = repo.reader()?.checkpoint()?;
    let note = checkpoint.or(newest.as_ref());
    let note = note.ok_or_else(|| Error::NotContained { why: "nothing was ever signed".to_owned() })?;
    let old = repo.keys()?.now().clone();
    let new = Arc::new(make_key(&id.origin())?);
    let mut content = |store: &dyn ReadLog, before| {
        contained(store, note)?;
        Ok(recovery(id, before, (&old, note), (&new, WriterSecret::of(&new).mark()), reason))
    };
    let position = change(&repo, &new, None, &mut content)?;
    trust.know_key(id, new.verifier_key())?;
    trust.end_change(id, new.verifier_key(), None)?;
    let new = new.verifier_key().clone();
    Ok(KeyChanged { old, new, position, how: KeyHow::Recovered, at: None })
}

/// Fails if a log does not contain a checkpoint that a key of it signed.
fn contained(store: &dyn ReadLog, note: &SignedNote) -> Result<(), Error> {
    let not = |why: String| Error::NotContained { why };
    let checkpoint = store.keys()?.open(note).map_err(|error| not(error.to_string()))?;
    if !store.extends(checkpoint.size(), checkpoint.root())? {
        let size = checkpoint.size();
        return Err(not(format!("the log does not begin with the {size} records that it was signed for")));
    }
    Ok(())
}

/// Takes back what an earlier key signed beyond a size.
///
/// # Errors
///
/// [`Error::NotRevocable`] for the key in force and for one of another log.
pub fn revoke(repo: &Repo, key: &str, at: u64, reason: &str) -> Result<KeyChanged, Error> {
    let now = repo.signing_key()?.ok_or(StoreError::NoWriter)?;
    let id = repo.info().id;
    let mut writer = repo.writer()?.clone();
    writer.refresh()?;
    let old = earlier(&repo.keys()?, key, at, writer.tree().size)?;
    let mut content = |_: &dyn ReadLog, before| Ok(revocation(id, before, (&old, at), &now, reason));
    let position = signed_after(repo, &mut writer, &now, &mut content)?;
    let new = now.verifier_key().clone();
    Ok(KeyChanged { old, new, position, how: KeyHow::Revoked, at: Some(at) })
}

/// Finds an earlier key of a log by its text, or by the hex digits of its id.
fn earlier(keys: &LogKeys, text: &str, at: u64, size: u64) -> Result<VerifierKey, Error> {
    let not = |why| Error::NotRevocable { key: text.to_owned(), why };
    let is_named = |key: &VerifierKey| key.to_string() == text || key.id().to_string() == text;
    let mut named = keys.spans().iter().filter(|span| is_named(&span.key));
    let span = named.next().ok_or_else(|| not("is no key of this log"))?;
    if span.key == *keys.now() {
        return Err(not("is the key in force"));
    }
    if at > size {
        return Err(not("did not sign so large a log"));
    }
    Ok(span.key.clone())
}

/// Puts a new key on disk next to the one in force, and appends the record that brings it.
fn change(
    repo: &Repo,
    new: &Arc<SigningKey>,
    tags: Option<TagKey>,
    content: &mut Change<'_>,
) -> Result<u64, Error> {
    let (trust, id) = (&**repo.trust(), repo.info().id);
    let mut writer = match new_writer(repo)? {
        Some(writer) => writer,
        None => repo.writer()?.clone(),
    };
    let mut turn = trust.turn(id).map_err(Error::NotSigned)?;
    writer.refresh()?;
    // Another process was stopped after its change was put on record: the key next to it is the one in force.
    if trust.next_key(id)?.as_ref() == Some(writer.keys()?.now()) {
        return Err(StoreError::NoWriter.into());
    }
    trust.keep_next(id, new, tags)?;
    let made = record_in(repo, &mut *turn, &mut writer, new, content);
    if made.is_err() {
        writer.refresh()?;
        // On record, or not: the next handle that writes would find out in the same way.
        let now = writer.keys()?.now().clone();
        if now != *new.verifier_key() {
            trust.end_change(id, &now, None)?;
        }
    }
    made
}

/// Returns a handle that appends without a secret, where the key of the log is lost; `None` where it is here.
fn new_writer(repo: &Repo) -> Result<Option<Shared>, Error> {
    if repo.signing_key()?.is_some() {
        return Ok(None);
    }
    let unsupported = StoreError::Unsupported("only the key of a store in a directory is recovered");
    let dir = repo.dir().ok_or(unsupported)?;
    Ok(Some(Shared::new(Box::new(Embedded::open(dir, Options::untagged())?))))
}

fn signed_after(
    repo: &Repo,
    writer: &mut Shared,
    key: &SigningKey,
    content: &mut Change<'_>,
) -> Result<u64, Error> {
    let mut turn = repo.trust().turn(repo.info().id).map_err(Error::NotSigned)?;
    record_in(repo, &mut *turn, writer, key, content)
}

/// Appends the record of a change as the last one, and signs, in a turn. Returns its position.
fn record_in(
    repo: &Repo,
    turn: &mut dyn crate::trust::SigningTurn,
    writer: &mut Shared,
    key: &SigningKey,
    content: &mut Change<'_>,
) -> Result<u64, Error> {
    let (id, mut position, mut failed) = (repo.info().id, 0, None);
    let mut last = |store: &dyn ReadLog| {
        let tree = store.tree();
        position = tree.size;
        let made = content(store, (tree.size, tree.root));
        match made.and_then(|content| sealed(id, &content, repo)) {
            Ok(record) => Ok(Some(record)),
            Err(error) => {
                failed = Some(error);
                Err(StoreError::Cancelled)
            }
        }
    };
    let signed = repo.sign_in(turn, writer, key, &mut last);
    if let Some(error) = failed {
        return Err(error);
    }
    match signed? {
        Signed::UpTo { not_remembered: Some(error), .. } => Err(Error::NotSigned(error)),
        _ => Ok(position),
    }
}

fn sealed(id: StoreId, content: &Value, repo: &Repo) -> Result<Record, Error> {
    seal_by_institution(id, Kind::Key, None, content, &mut *repo.environment())
}
