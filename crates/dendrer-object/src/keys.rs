//! The keys of a log: which one signs at which size.
//!
//! A log begins with one key. A record of kind `key` puts another in its place ([`rotation`], [`recovery`]), or takes back
//! signatures of an earlier one ([`revocation`]). [`LogKeys`] folds these records, in the order of the log, and is the one place
//! that knows whose signature counts at a size.
//!
//! Rule: a key comes into force by a signature of its own over the log before it, and keeps the trust of those who know the key
//! before it only by that one's signature over the same; test `no_key_comes_without_the_signatures_it_takes`.

use std::fmt;

use crate::digest::{Digest, decode_base64url, encode_base64url};
use crate::name::StoreId;
use crate::note::{Checkpoint, NoteError, SignedNote, SigningKey, VerifierKey};
use crate::record::{Kind, Record};
use crate::value::Value;

/// The begin of the bytes that a key signs when it is changed. No signed note begins so.
const STATEMENT: &[u8] = b"dendrer/key-change/v1\n";

/// The most keys that a log has.
pub const KEYS_MAX: usize = 1024;

crate::words! {
    /// How a key of a log came into force.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum KeyHow {
        /// The log began with it.
        First = "first",
        /// The key before it signed the change.
        Rotated = "rotated",
        /// The key before it was lost.
        Recovered = "recovered",
        /// It was in force, and its signatures count up to a size.
        Revoked = "revoked",
    }
}

/// A key of a log, with the sizes over which its signature counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySpan {
    /// The key.
    pub key: VerifierKey,
    /// The size of the log from which on it signs.
    pub from: u64,
    /// The last size that it signs; `None` of the key in force.
    pub to: Option<u64>,
    /// Whether the key before it signed the change; `true` of the first.
    pub is_signed_for: bool,
    /// The size from which on its signatures were taken back.
    pub revoked: Option<u64>,
    /// The digest of the secret of its writers; `None` of the first, whose own group has a tag by it.
    pub writer: Option<Digest>,
}

impl KeySpan {
    /// Returns how the key came into force, or that it was revoked.
    pub fn how(&self) -> KeyHow {
        match (self.revoked, self.from, self.is_signed_for) {
            (Some(_), ..) => KeyHow::Revoked,
            (None, 0, _) => KeyHow::First,
            (None, _, true) => KeyHow::Rotated,
            (None, _, false) => KeyHow::Recovered,
        }
    }

    /// Returns the last size over which its signature counts; `None` of the key in force.
    pub fn counts_to(&self) -> Option<u64> {
        self.to.map(|to| self.revoked.map_or(to, |at| at.min(to)))
    }
}

/// Why a record does not change the keys of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFault {
    /// A value of it was erased or withheld.
    Closed,
    /// It is not what the keys say it must be.
    Wrong(&'static str),
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyFault::Closed => f.write_str("a value of a change of keys was erased or withheld"),
            KeyFault::Wrong(why) => write!(f, "a change of keys {why}"),
        }
    }
}

/// The effect of a record of kind `key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChange {
    /// The tree over the records before it, which the signer names. A reader of the log compares it.
    pub before: (u64, Digest),
    /// The last checkpoint of a key that was lost: the log must contain it.
    pub checkpoint: Option<(u64, Digest)>,
}

/// How the key in force follows from a known one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyTrust {
    /// It is the same, or each change since was signed by the key before.
    Follows,
    /// The record at this position changed the key without the one before.
    Without(u64),
    /// The log has not had the known key.
    Another,
}

/// The keys of a log, as far as its records were taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogKeys {
    store: StoreId,
    spans: Vec<KeySpan>,
}

impl LogKeys {
    /// A log with the key that it began with.
    pub fn new(store: StoreId, first: VerifierKey) -> LogKeys {
        let first =
            KeySpan { key: first, from: 0, to: None, is_signed_for: true, revoked: None, writer: None };
        LogKeys { store, spans: vec![first] }
    }

    /// Lists the keys in the order in which they came into force. There is one or more.
    pub fn spans(&self) -> &[KeySpan] {
        &self.spans
    }

    fn last(&self) -> &KeySpan {
        self.spans.last().expect("a log has a first key")
    }

    /// Returns the key in force.
    pub fn now(&self) -> &VerifierKey {
        &self.last().key
    }

    /// Returns the digest of the secret of the writers under the key in force; `None` of the first key.
    pub fn writer(&self) -> Option<Digest> {
        self.last().writer
    }

    /// Returns the key whose signature counts over a size; `None` if that was taken back.
    pub fn at(&self, size: u64) -> Option<&VerifierKey> {
        let span = self.spans.iter().rev().find(|span| span.from <= size)?;
        span.counts_to().is_none_or(|to| size <= to).then_some(&span.key)
    }

    /// Returns the number of records before the newest change. The key that it brought has signed for them.
    pub fn changed_at(&self) -> u64 {
        self.last().from.saturating_sub(1)
    }

    /// Opens a checkpoint of the log, by the key whose signature counts over its size.
    ///
    /// # Errors
    ///
    /// [`NoteError::NoKnownSignature`] of one by another key, or whose signature was taken back.
    pub fn open(&self, note: &SignedNote) -> Result<Checkpoint, NoteError> {
        let size = Checkpoint::parse(note.text())?.size();
        let key = self.at(size).ok_or(NoteError::NoKnownSignature)?;
        Checkpoint::open(note, &self.store.origin(), key)
    }

    /// Compares the key in force with a known one. A change that a key signed beyond the size from which on it was revoked counts as
    /// made without it.
    pub fn follows(&self, known: &VerifierKey) -> KeyTrust {
        let Some(at) = self.spans.iter().position(|span| span.key == *known) else {
            return KeyTrust::Another;
        };
        let pairs = self.spans[at..].windows(2);
        let without = pairs.filter(|pair| {
            let is_late = pair[0].revoked.is_some_and(|at| pair[1].from - 1 > at);
            !pair[1].is_signed_for || is_late
        });
        match without.last() {
            Some([_, next]) => KeyTrust::Without(next.from - 1),
            _ => KeyTrust::Follows,
        }
    }

    /// Returns the position of the newest record that changed the key without the one before.
    pub fn recovered_at(&self) -> Option<u64> {
        self.spans.iter().rev().find(|span| !span.is_signed_for).map(|span| span.from - 1)
    }

    /// Takes the next record of kind `key` that belongs to no run; `None` if it changes nothing.
    ///
    /// # Errors
    ///
    /// A [`KeyFault`]: the keys stay as they are.
    pub fn take(&mut self, position: u64, record: &Record) -> Result<Option<KeyChange>, KeyFault> {
        let header = record.header();
        if header.kind != Kind::Key || header.run.is_some() {
            return Ok(None);
        }
        let content = record.content();
        let purpose = content.get("purpose").and_then(Value::as_str);
        if !matches!(purpose, None | Some("rotate" | "recover" | "revoke")) {
            return Ok(None);
        }
        if record.body().fields().iter().any(|field| record.body().text(field).is_none()) {
            return Err(KeyFault::Closed);
        }
        let told = Told { store: self.store, content: &content };
        let before = (told.size()?, told.root()?);
        if before.0 != position {
            return Err(KeyFault::Wrong("was made for another place in the log"));
        }
        match purpose {
            Some("revoke") => self.revoke(&told)?,
            Some("rotate") => self.change(&told, position, true)?,
            _ => {
                return self
                    .recover(&told, position)
                    .map(|checkpoint| Some(KeyChange { before, checkpoint: Some(checkpoint) }));
            }
        }
        Ok(Some(KeyChange { before, checkpoint: None }))
    }

    fn change(&mut self, told: &Told<'_>, position: u64, is_signed_for: bool) -> Result<(), KeyFault> {
        let (old, new) = (told.key("old")?, told.key("new")?);
        if old != *self.now() {
            return Err(KeyFault::Wrong("names another key than the one in force"));
        }
        if self.spans.iter().any(|span| span.key == new) || new.name() != old.name() {
            return Err(KeyFault::Wrong("brings a key that the log has had, or one of another name"));
        }
        if self.spans.len() == KEYS_MAX {
            return Err(KeyFault::Wrong("is one too many for a log"));
        }
        match is_signed_for {
            true => told.check_signed(&[&old, &new])?,
            false => told.check_signed(&[&new])?,
        }
        self.spans.last_mut().expect("a log has a first key").to = Some(position);
        let (from, writer) = (position + 1, Some(told.writer()?));
        self.spans.push(KeySpan { key: new, from, to: None, is_signed_for, revoked: None, writer });
        Ok(())
    }

    fn recover(&mut self, told: &Told<'_>, position: u64) -> Result<(u64, Digest), KeyFault> {
        const NONE: KeyFault = KeyFault::Wrong("has no checkpoint of the key before");
        let note = told.text(CHECKPOINT).and_then(|text| SignedNote::parse(text.as_bytes()).ok());
        let checkpoint = note.and_then(|note| self.open(&note).ok()).ok_or(NONE)?;
        if checkpoint.size() > position {
            return Err(NONE);
        }
        self.change(told, position, false)?;
        Ok((checkpoint.size(), checkpoint.root()))
    }

    fn revoke(&mut self, told: &Told<'_>) -> Result<(), KeyFault> {
        let (key, now) = (told.key("key")?, self.now().clone());
        let at = told.number("at")?;
        told.check_signed(&[&now])?;
        let earlier = self.spans.iter_mut().rev().skip(1).find(|span| span.key == key);
        let span =
            earlier.ok_or(KeyFault::Wrong("takes back a key that is in force, or none of this log"))?;
        // A revocation is never taken back.
        span.revoked = Some(span.revoked.map_or(at, |known| known.min(at)));
        Ok(())
    }
}

/// The content of a change.
struct Told<'a> {
    store: StoreId,
    content: &'a Value,
}

impl Told<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.content.get(name)?.as_str()
    }

    fn number(&self, name: &str) -> Result<u64, KeyFault> {
        let number = self.content.get(name).and_then(Value::as_u64);
        number.ok_or(KeyFault::Wrong("lacks a size"))
    }

    fn size(&self) -> Result<u64, KeyFault> {
        self.number("size")
    }

    fn root(&self) -> Result<Digest, KeyFault> {
        let root = self.text("root").and_then(|text| text.parse().ok());
        root.ok_or(KeyFault::Wrong("lacks the root of the log before it"))
    }

    fn writer(&self) -> Result<Digest, KeyFault> {
        let mark = self.text("writer").and_then(|text| text.parse().ok());
        mark.ok_or(KeyFault::Wrong("lacks the digest of the writers' secret"))
    }

    fn key(&self, name: &str) -> Result<VerifierKey, KeyFault> {
        let key = self.text(name).and_then(|text| text.parse().ok());
        key.ok_or(KeyFault::Wrong("lacks a verifier key"))
    }

    /// Checks that each of the keys signed, in this order and no other.
    fn check_signed(&self, by: &[&VerifierKey]) -> Result<(), KeyFault> {
        let signatures = self.content.get(SIGNATURES).and_then(Value::as_array);
        let signatures: Vec<Option<Vec<u8>>> = signatures
            .map(|all| all.iter().map(|one| decode_base64url(one.as_str()?)).collect())
            .unwrap_or_default();
        let statement = statement(self.store, self.content);
        let holds = signatures.len() == by.len()
            && by.iter().zip(&signatures).all(|(key, signature)| {
                signature.as_ref().is_some_and(|signature| key.verifies(&statement, signature))
            });
        holds.then_some(()).ok_or(KeyFault::Wrong("does not have the signatures that it takes"))
    }
}

/// The member with the last checkpoint of a key that was lost.
pub const CHECKPOINT: &str = "checkpoint";

/// The member with the signatures, in base64url.
const SIGNATURES: &str = "signatures";

/// The bytes that the keys sign: the content without the signatures, with the id of the store.
fn statement(store: StoreId, content: &Value) -> Vec<u8> {
    let members = content.as_object().into_iter().flat_map(|object| object.iter());
    let members = members.filter(|(name, _)| &***name != SIGNATURES);
    let mut all: Vec<(&str, Value)> = members.map(|(name, value)| (&**name, value.clone())).collect();
    all.push(("store", store.to_string().into()));
    [STATEMENT, Value::record(all).to_string().as_bytes()].concat()
}

fn signed(
    (store, before): (StoreId, (u64, Digest)),
    members: impl IntoIterator<Item = (&'static str, Value)>,
    by: &[&SigningKey],
) -> Value {
    let tree = [("root", Value::from(before.1)), ("size", Value::from(before.0))];
    let members: Vec<(&str, Value)> = members.into_iter().chain(tree).collect();
    let statement = statement(store, &Value::record(members.clone()));
    let signatures = by.iter().map(|key| Value::from(encode_base64url(&key.sign(&statement))));
    let signatures = (SIGNATURES, Value::array(signatures));
    Value::record(members.into_iter().chain([signatures]))
}

fn public(key: &SigningKey) -> Value {
    key.verifier_key().to_string().into()
}

/// Makes the content of the record with which a new key takes the place of an old one. `before` is the tree over the records
/// before it, `writer` the digest of the secret of the writers under the new key.
pub fn rotation(
    store: StoreId,
    before: (u64, Digest),
    old: &SigningKey,
    (new, writer): (&SigningKey, Digest),
) -> Value {
    let members = [
        ("new", public(new)),
        ("old", public(old)),
        ("purpose", "rotate".into()),
        ("writer", Value::from(writer)),
    ];
    signed((store, before), members, &[old, new])
}

/// Makes the content of the record with which a new key takes the place of one that was lost, with the last checkpoint of that one.
pub fn recovery(
    store: StoreId,
    before: (u64, Digest),
    (old, checkpoint): (&VerifierKey, &SignedNote),
    (new, writer): (&SigningKey, Digest),
    reason: &str,
) -> Value {
    let members = [
        ("writer", Value::from(writer)),
        (CHECKPOINT, Value::from(checkpoint.to_string())),
        ("new", public(new)),
        ("old", old.to_string().into()),
        ("purpose", "recover".into()),
        ("reason", reason.into()),
    ];
    signed((store, before), members, &[new])
}

/// Makes the content of the record that takes back what a key signed beyond a size.
pub fn revocation(
    store: StoreId,
    before: (u64, Digest),
    (key, at): (&VerifierKey, u64),
    now: &SigningKey,
    reason: &str,
) -> Value {
    let members = [
        ("at", Value::from(at)),
        ("key", key.to_string().into()),
        ("purpose", "revoke".into()),
        ("reason", reason.into()),
    ];
    signed((store, before), members, &[now])
}

#[cfg(test)]
mod tests;
