//! Who writes: the secret under which groups are tagged.
//!
//! A tag is an HMAC over store id, size and root of the tree with the group. A program that can write the files and has no secret can
//! append a group, and cannot make its tag: the holder of the key sees it before an append or a signature.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use dendrer_object::digest::{decode_base64url, encode_base64url};
use dendrer_object::note::{SigningKey, VerifierKey};
use dendrer_object::{Digest, StoreId};
use ring::hmac;

use super::TreeHead;
use crate::error::StoreError;

/// The salt of the derivation of the secret.
const PURPOSE: &[u8] = b"dendrer/writer/v1\n";

/// The prefix of the digest of a secret.
const MARK: &[u8] = b"dendrer/writer-mark/v1\n";

/// The prefix of the text of a secret.
const TEXT: &str = "dendrer-writer/1 ";

/// The bytes of the tag of a group; zeros where the writer had no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tag(pub [u8; 32]);

/// The secret of those who append to a log. It follows one-way from the signing key: its holder can append, and not sign.
///
/// It is printed by [`WriterSecret::secret_text`] and by nothing else, `Debug` included.
#[derive(Clone)]
pub struct WriterSecret {
    key: VerifierKey,
    bytes: [u8; 32],
    mac: hmac::Key,
}

impl WriterSecret {
    /// Derives the secret from the key of a log.
    pub fn of(key: &SigningKey) -> WriterSecret {
        WriterSecret::new(key.verifier_key().clone(), key.derive(PURPOSE))
    }

    fn new(key: VerifierKey, bytes: [u8; 32]) -> WriterSecret {
        WriterSecret { key, bytes, mac: hmac::Key::new(hmac::HMAC_SHA256, &bytes) }
    }

    /// Returns the public half of the key that it was derived from.
    pub fn key(&self) -> &VerifierKey {
        &self.key
    }

    /// Writes the secret: `dendrer-writer/1`, the public half of the key and the bytes in base64url.
    pub fn secret_text(&self) -> String {
        format!("{TEXT}{} {}", self.key, encode_base64url(&self.bytes))
    }

    /// Reads what [`WriterSecret::secret_text`] writes; `None` for anything else.
    pub fn from_secret_text(text: &str) -> Option<WriterSecret> {
        let (key, bytes) = text.strip_prefix(TEXT)?.split_once(' ')?;
        Some(WriterSecret::new(key.parse().ok()?, decode_base64url(bytes)?.try_into().ok()?))
    }

    /// Returns a digest of the secret, by which a log that states it knows the secret again.
    pub fn mark(&self) -> Digest {
        Digest::of_parts(&[MARK, &self.bytes])
    }

    /// Makes the tag of the group with which the log has a tree.
    pub fn tag(&self, store: StoreId, tree: TreeHead) -> Tag {
        let tag = hmac::sign(&self.mac, &preimage(store, tree));
        Tag(tag.as_ref().try_into().expect("HMAC-SHA-256 gives 32 bytes"))
    }

    /// Whether a tag is that of the group with which the log has a tree.
    pub fn has_tagged(&self, store: StoreId, tree: TreeHead, tag: &Tag) -> bool {
        hmac::verify(&self.mac, &preimage(store, tree), &tag.0).is_ok()
    }
}

impl fmt::Debug for WriterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriterSecret({} {})", self.key.name(), self.key.id())
    }
}

/// Store id, size (big-endian) and root: 56 bytes.
fn preimage(store: StoreId, tree: TreeHead) -> [u8; 56] {
    let mut bytes = [0; 56];
    bytes[..16].copy_from_slice(&store.0);
    bytes[16..24].copy_from_slice(&tree.size.to_be_bytes());
    bytes[24..].copy_from_slice(&tree.root.0);
    bytes
}

/// Who a handle writes for.
#[derive(Debug, Clone, Default)]
pub enum LogWriter {
    /// Groups are written without a tag, and none is checked: for tests, and for a store whose owner wants no tags.
    #[default]
    Unchecked,
    /// The opener has neither key nor secret: nothing is written ([`StoreError::NoWriter`]).
    Missing,
    /// Groups are tagged, and nothing is written or signed after one without a tag ([`StoreError::Untagged`]).
    Secret(Arc<WriterSecret>),
}

impl LogWriter {
    /// The writer who has a key.
    pub fn of(key: &SigningKey) -> LogWriter {
        LogWriter::Secret(Arc::new(WriterSecret::of(key)))
    }

    /// The writer who has neither key nor secret.
    pub(crate) fn without(untagged: bool) -> LogWriter {
        if untagged { LogWriter::Unchecked } else { LogWriter::Missing }
    }

    /// The writer who has the key of a store in memory, if one is given.
    pub(crate) fn of_key(key: Option<&Arc<SigningKey>>) -> LogWriter {
        key.map_or(LogWriter::Unchecked, |key| LogWriter::of(key))
    }

    /// Returns the secret.
    pub fn secret(&self) -> Option<&Arc<WriterSecret>> {
        match self {
            LogWriter::Secret(secret) => Some(secret),
            LogWriter::Unchecked | LogWriter::Missing => None,
        }
    }

    /// Keeps a secret only if it is that of the key in force: with one of another key nothing is written.
    #[must_use]
    pub fn under(self, key: &VerifierKey) -> LogWriter {
        match self {
            LogWriter::Secret(secret) if secret.key() != key => LogWriter::Missing,
            writer => writer,
        }
    }

    /// Makes the tag of a group; zeros without a secret.
    pub fn tag(&self, store: StoreId, tree: TreeHead) -> Tag {
        self.secret().map_or_else(Tag::default, |secret| secret.tag(store, tree))
    }
}

/// A group of the log, by its end.
#[derive(Debug, Clone, Copy)]
pub struct GroupEnd {
    /// The position of its first record.
    pub begin: u64,
    /// The tree with the group.
    pub tree: TreeHead,
    /// Its tag.
    pub tag: Tag,
}

/// The groups without a tag, as they were copied or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// The position of their first record.
    pub from: u64,
    /// The size of the log with the last of them.
    pub to: u64,
    /// How many groups there are.
    pub groups: usize,
    /// How many bytes of the log they have.
    pub bytes: u64,
}

/// The groups without a tag that a handle has met after the newest checkpoint.
#[derive(Debug, Clone, Default)]
pub struct Tags {
    /// The size of the log up to which groups were looked at, or are signed.
    to: u64,
    untagged: Vec<Range<u64>>,
}

impl Tags {
    /// Returns the size up to which groups were looked at.
    pub fn looked_to(&self) -> u64 {
        self.to
    }

    /// Passes over what a checkpoint covers, or was adopted.
    pub fn pass(&mut self, size: u64) {
        self.to = self.to.max(size);
        self.untagged.retain(|group| group.end > size);
    }

    /// Looks at the next group. One that is not the next is left for later.
    pub fn look(&mut self, secret: &WriterSecret, store: StoreId, group: &GroupEnd) {
        let GroupEnd { begin, tree, tag } = group;
        if tree.size <= self.to || *begin > self.to {
            return;
        }
        if !secret.has_tagged(store, *tree, tag) {
            self.untagged.push(*begin..tree.size);
        }
        self.to = tree.size;
    }

    /// Takes the groups up to a size that could not be read: they count as without a tag.
    pub fn leave(&mut self, size: u64) {
        if self.to < size {
            self.untagged.push(self.to..size);
            self.to = size;
        }
    }

    /// Returns the groups without a tag, in order.
    pub fn untagged(&self) -> &[Range<u64>] {
        &self.untagged
    }

    /// Fails if there is a group without a tag.
    pub fn check(&self) -> Result<(), StoreError> {
        StoreError::refuse_untagged(&self.untagged)
    }
}

#[cfg(test)]
mod tests {
    use dendrer_object::Digest;

    use super::*;

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed("log", [seed; 32]).unwrap()
    }

    #[test]
    fn a_secret_is_read_as_written_and_not_shown() {
        let secret = WriterSecret::of(&key(1));
        let text = secret.secret_text();
        let again = WriterSecret::from_secret_text(&text).unwrap();
        assert_eq!((again.bytes, again.key()), (secret.bytes, key(1).verifier_key()));
        for other in ["", TEXT, &text[..text.len() - 1], &format!("{text}A"), &format!("{text}\n")] {
            assert!(WriterSecret::from_secret_text(other).is_none(), "{other}");
        }
        let shown = format!("{secret:?}");
        assert!(shown.starts_with("WriterSecret(log ") && !text.contains(&shown[18..]), "{shown}");
    }

    #[test]
    fn a_tag_holds_for_one_key_store_size_and_root() {
        let (secret, store) = (WriterSecret::of(&key(1)), StoreId([7; 16]));
        let tree = TreeHead { size: 3, root: Digest([9; 32]) };
        let tag = secret.tag(store, tree);
        // Made with Python: HMAC-SHA-256 under HKDF-SHA-256 of 32 bytes 01.
        assert_eq!(
            dendrer_object::digest::hex(&tag.0),
            "caa348010162a17107bfb5bb86f5d571e018aaf7aa96fdbd13e0d79f8a28ed45"
        );
        assert!(secret.has_tagged(store, tree, &tag));
        assert!(!WriterSecret::of(&key(2)).has_tagged(store, tree, &tag));
        assert!(!secret.has_tagged(StoreId([8; 16]), tree, &tag));
        assert!(!secret.has_tagged(store, TreeHead { size: 4, ..tree }, &tag));
        assert!(!secret.has_tagged(store, TreeHead { root: Digest([8; 32]), ..tree }, &tag));
        for bit in 0..256 {
            let mut flipped = tag;
            flipped.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!secret.has_tagged(store, tree, &flipped), "{bit}");
        }
    }
}
