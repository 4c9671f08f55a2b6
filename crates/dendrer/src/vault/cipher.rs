//! Names and encryption of what the vault keeps.
//!
//! Keys are derived by HKDF-SHA256 from the key of the vault, the AEAD is ChaCha20-Poly1305, and both come from `ring`.
//!
//! **Nonces.** Each name has an encryption key of its own, and a fresh random nonce of 96 bits for every write. The name of a
//! part is a MAC over its content, so one key meets one plaintext, and a nonce that came twice would repeat the same
//! ciphertext. The name of an entry follows from run and locator, and an entry is written again only by a caller that was
//! stopped before; two of 2^32 writes of one entry share a nonce with a probability below 2^-33.
//!
//! **Binding.** Store, kind and name are associated data, so bytes that are moved to another name, or come from another
//! store, do not open.

use dendrer_object::{Digest, RunName, StoreId};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{hkdf, hmac};

use crate::error::TrustError;
use crate::trust::VaultKey;

const MAGIC: &[u8; 5] = b"DNDV\x01";

/// Length of the magic and the kind.
const HEAD: usize = MAGIC.len() + 1;

/// How many bytes of a digest end what is kept, so that damage is found without the key.
const CHECK: usize = 8;

/// Plaintexts are padded to a multiple of so many bytes: the size of a file says less of its content.
const PAD: usize = 256;

/// The kind of bytes under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The mark by which the key is known.
    Mark = 0,
    /// An entry: what a value is, and the parts that it is made of.
    Entry = 1,
    /// A part of a value, or a list of parts.
    Part = 2,
}

impl Kind {
    fn read(byte: u8) -> Option<Kind> {
        [Kind::Mark, Kind::Entry, Kind::Part].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Returns the kind of what is kept, if its bytes are those that were written, as far as that is seen without the key.
pub(super) fn kind_of(kept: &[u8]) -> Option<Kind> {
    let (body, check) = kept.split_at_checked(kept.len().checked_sub(CHECK)?)?;
    let is_whole = Digest::of(body).0[..CHECK] == *check && body.starts_with(MAGIC);
    Kind::read(*body.get(HEAD - 1).filter(|_| is_whole)?)
}

/// Keys that derive from the key of a vault.
pub(super) struct Cipher {
    store: StoreId,
    root: hkdf::Prk,
    random: SystemRandom,
}

/// A key that HKDF makes.
struct Key32;

impl hkdf::KeyType for Key32 {
    fn len(&self) -> usize {
        32
    }
}

impl Cipher {
    pub(super) fn new(key: &VaultKey, store: StoreId) -> Cipher {
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, b"dendrer/vault/v1\n").extract(key.bytes());
        Cipher { store, root, random: SystemRandom::new() }
    }

    fn derive(&self, info: &[&[u8]]) -> [u8; 32] {
        let mut key = [0; 32];
        let made = self.root.expand(info, Key32).and_then(|okm| okm.fill(&mut key));
        made.expect("32 bytes are a length that HKDF gives");
        key
    }

    fn mac(&self, info: &[&[u8]], message: &[&[u8]]) -> Digest {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.derive(info)));
        message.iter().for_each(|part| context.update(part));
        Digest(context.sign().as_ref().try_into().expect("HMAC-SHA256 gives 32 bytes"))
    }

    /// The name of the entry of a value.
    pub(super) fn entry_name(&self, run: &RunName, locator: &str) -> Digest {
        // The length keeps a run and a locator apart from another run and another locator.
        let len = (run.as_str().len() as u32).to_be_bytes();
        self.mac(&[b"entry-name"], &[&len, run.as_str().as_bytes(), locator.as_bytes()])
    }

    /// The name of a part of a value of a run. Runs share no name: the key of the MAC is one of the run.
    pub(super) fn part_name(&self, run: &RunName, is_list: bool, bytes: &[u8]) -> Digest {
        self.mac(&[b"part-name", run.as_str().as_bytes()], &[&[u8::from(is_list)], bytes])
    }

    /// A keyed digest by which bytes of a run are known again.
    pub(super) fn known_by(&self, run: &RunName, bytes: &[u8]) -> Digest {
        self.mac(&[b"known-by", run.as_str().as_bytes()], &[bytes])
    }

    /// The bytes of the mark of this key.
    pub(super) fn mark(&self) -> Vec<u8> {
        let digest = self.mac(&[b"mark"], &[&self.store.0]);
        ended([&[][..], MAGIC, &[Kind::Mark as u8], &digest.0].concat())
    }

    fn key(&self, name: &Digest) -> LessSafeKey {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &self.derive(&[b"encrypt", &name.0]));
        LessSafeKey::new(key.expect("a key of ChaCha20-Poly1305 has 32 bytes"))
    }

    fn bound(&self, kind: Kind, name: &Digest) -> Vec<u8> {
        [&MAGIC[..], &[kind as u8], &self.store.0, &name.0].concat()
    }

    /// Encrypts what is to be kept under a name.
    pub(super) fn seal(&self, kind: Kind, name: &Digest, bytes: &[u8]) -> Result<Vec<u8>, TrustError> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| TrustError::NoRandomness)?;
        let mut text = Vec::with_capacity(bytes.len() + PAD + 64);
        text.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        text.extend_from_slice(bytes);
        text.resize(text.len().next_multiple_of(PAD), 0);
        let aad = Aad::from(self.bound(kind, name));
        let sealed =
            self.key(name).seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut text);
        sealed.expect("a part is far shorter than what the AEAD takes");
        Ok(ended([MAGIC, &[kind as u8][..], &nonce, &text].concat()))
    }

    /// Decrypts what is kept under a name; `None` if it is not what was put there under this key.
    pub(super) fn open(&self, kind: Kind, name: &Digest, kept: &[u8]) -> Option<Vec<u8>> {
        if kind_of(kept)? != kind {
            return None;
        }
        let body = kept[..kept.len() - CHECK].get(HEAD..)?;
        let (nonce, text) = body.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = text.to_vec();
        let text = self.key(name).open_in_place(nonce, Aad::from(self.bound(kind, name)), &mut text).ok()?;
        let (len, rest) = text.split_at_checked(4)?;
        let len = u32::from_be_bytes(len.try_into().ok()?) as usize;
        Some(rest.get(..len)?.to_vec())
    }

    /// Returns 16 random bytes.
    pub(super) fn salt(&self) -> Result<[u8; 16], TrustError> {
        let mut salt = [0; 16];
        self.random.fill(&mut salt).map_err(|_| TrustError::NoRandomness)?;
        Ok(salt)
    }
}

/// Adds the check at the end.
fn ended(mut bytes: Vec<u8>) -> Vec<u8> {
    let check = Digest::of(&bytes);
    bytes.extend_from_slice(&check.0[..CHECK]);
    bytes
}
