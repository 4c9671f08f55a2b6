//! Signed notes and checkpoints: the text by which a store says how long its log is and what is in it.
//!
//! [`SignedNote`] is C2SP signed-note with Ed25519 keys, [`Checkpoint`] is C2SP tlog-checkpoint without
//! extension lines.
//!
//! Never makes or keeps a key, and never decides whom to trust: the caller brings seeds and the list of known keys. The text of
//! a note counts for nothing before [`SignedNote::verify`] has named a key that signed it.
//!
//! One note has one spelling: whatever is read here is written again byte for byte, and all else is refused.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use ring::{hkdf, hmac};

use crate::digest::{Digest, hex, unhex};

/// The longest note that is read or written, in bytes.
pub const NOTE_BYTES_MAX: usize = 1 << 20;
/// The most signatures on one note.
pub const SIGNATURES_MAX: usize = 100;

/// The signature type of Ed25519 over the text (C2SP signed-note, signature types).
const ED25519_TYPE: u8 = 0x01;
const SIGNATURE_PREFIX: &str = "\u{2014} ";
const SIGNING_KEY_PREFIX: &str = "PRIVATE+KEY+";

/// Why a key, a note or a checkpoint was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message says what each field is")]
pub enum NoteError {
    /// A note is longer than [`NOTE_BYTES_MAX`].
    #[error("a note of {found} bytes is too long, the most is 1048576")]
    TooLong { found: usize },
    /// A note is not UTF-8, or has a control character other than a newline.
    #[error("a note is UTF-8 without control characters other than newline")]
    Characters,
    /// A text to sign does not end with a newline.
    #[error("the text of a note ends with a newline")]
    TextEnd,
    /// There is no blank line with signature lines after it.
    #[error("the note has no signatures after a blank line")]
    Unsigned,
    /// A line among the signatures is malformed; lines count from 1 after the blank line.
    #[error("signature line {line} is not an em dash, a key name and base64")]
    SignatureLine { line: usize },
    /// A note has more signatures than [`SIGNATURES_MAX`].
    #[error("a note has at most 100 signatures")]
    TooManySignatures,
    /// Two signatures on one note name the same key.
    #[error("two signatures by key {name:?} {id}")]
    DuplicateSignature { name: String, id: KeyId },
    /// A key name is empty, or has a space, a plus or a control character.
    #[error("a key name is not empty and has no space, plus or control character")]
    KeyName,
    /// The text is no verifier key.
    #[error("a verifier key is a name, 8 lower-case hex digits and base64, with plus between them")]
    VerifierKey,
    /// The text is no signing key. The text itself is not repeated here.
    #[error(
        "a signing key is PRIVATE+KEY, a name, 8 lower-case hex digits and base64, with plus between them"
    )]
    SigningKey,
    /// A key is for another kind of signature than Ed25519.
    #[error("signature type {found:#04x} is not Ed25519")]
    KeyType { found: u8 },
    /// A key text names an id that is not that of its key.
    #[error("key {name:?} has id {expected}, not {found}")]
    KeyIdDiffers { name: String, expected: KeyId, found: KeyId },
    /// Two known keys have the same name and id.
    #[error("two known keys share the name {name:?} and the id {id}")]
    AmbiguousKey { name: String, id: KeyId },
    /// A known key is named by a signature that it did not make.
    #[error("the signature by key {name:?} {id} does not verify")]
    WrongSignature { name: String, id: KeyId },
    /// None of the known keys signed.
    #[error("no known key signed this note")]
    NoKnownSignature,
    /// A text is not three lines of origin, size and root.
    #[error("a checkpoint is three lines: origin, size and root")]
    CheckpointLines,
    /// The origin is empty, or has a control character.
    #[error("a checkpoint origin is not empty and has no control character")]
    Origin,
    /// The size has a leading zero or a sign, or is not below 2^64.
    #[error("a checkpoint size is a decimal number below 2^64 without leading zeros")]
    Size,
    /// The root is not the padded base64 of 32 bytes.
    #[error("a checkpoint root is the base64 of 32 bytes")]
    Root,
    /// A checkpoint is of another log than the one asked for.
    #[error("the checkpoint is of log {found:?}, not {expected:?}")]
    OriginDiffers { expected: String, found: String },
}

/// The first four bytes of SHA-256 over name, newline, signature type and public key.
///
/// Names a key and proves nothing: it is short enough to be forged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 4]);

impl KeyId {
    /// Computes the id of an Ed25519 key (C2SP signed-note, Ed25519 signatures).
    fn of(name: &str, public_key: &[u8; 32]) -> KeyId {
        let digest = Digest::of_parts(&[name.as_bytes(), b"\n", &[ED25519_TYPE], public_key]);
        KeyId([digest.0[0], digest.0[1], digest.0[2], digest.0[3]])
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The public half of an Ed25519 key with its name: `<name>+<id>+<base64 of type and key>`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VerifierKey {
    name: String,
    id: KeyId,
    public_key: [u8; 32],
}

impl VerifierKey {
    /// Names a public key.
    pub fn new(name: &str, public_key: [u8; 32]) -> Result<VerifierKey, NoteError> {
        check_key_name(name)?;
        Ok(VerifierKey { name: name.to_owned(), id: KeyId::of(name, &public_key), public_key })
    }

    /// Returns the name that signatures by this key carry.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the id that signatures by this key carry.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Returns the 32 bytes of the Ed25519 public key (RFC 8032).
    pub fn public_key(&self) -> &[u8; 32] {
        &self.public_key
    }

    /// Returns whether `signature` is one by this key over `message` (RFC 8032 5.1.7).
    ///
    /// For messages that are no notes, such as record ids: they must not be texts that a note could hold.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.public_key).verify(message, signature).is_ok()
    }

    fn made(&self, signature: &Signature) -> bool {
        self.id == signature.key_id && self.name == signature.name
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}+{}", self.name, self.id, encode_key(&self.public_key))
    }
}

impl fmt::Debug for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for VerifierKey {
    type Err = NoteError;

    /// Reads what [`VerifierKey`] prints and nothing else; the id must be that of the key.
    fn from_str(text: &str) -> Result<VerifierKey, NoteError> {
        let (name, found, bytes) = decode_key(text).ok_or(NoteError::VerifierKey)?;
        let public_key = ed25519_bytes(&bytes, NoteError::VerifierKey)?;
        let key = VerifierKey::new(name, public_key)?;
        check_key_id(&key, found)?;
        Ok(key)
    }
}

/// The secret half of an Ed25519 key with its name.
///
/// Its secret is printed by [`SigningKey::secret_text`] and by nothing else, `Debug` included.
pub struct SigningKey {
    verifier: VerifierKey,
    seed: [u8; 32],
    pair: Ed25519KeyPair,
    mac: hmac::Key,
}

impl SigningKey {
    /// Makes a key of 32 random bytes that the caller drew (the private key of RFC 8032 5.1.5).
    pub fn from_seed(name: &str, seed: [u8; 32]) -> Result<SigningKey, NoteError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("any 32 bytes are an Ed25519 seed");
        let public_key = pair.public_key().as_ref().try_into().expect("an Ed25519 public key has 32 bytes");
        let mac = Digest::of_parts(&[b"dendrer/mac-key/v1\n", &seed]);
        let mac = hmac::Key::new(hmac::HMAC_SHA256, &mac.0);
        Ok(SigningKey { verifier: VerifierKey::new(name, public_key)?, seed, pair, mac })
    }

    /// Reads what [`SigningKey::secret_text`] writes and nothing else; the id must be that of the key.
    pub fn from_secret_text(text: &str) -> Result<SigningKey, NoteError> {
        let rest = text.strip_prefix(SIGNING_KEY_PREFIX).ok_or(NoteError::SigningKey)?;
        let (name, found, bytes) = decode_key(rest).ok_or(NoteError::SigningKey)?;
        let key = SigningKey::from_seed(name, ed25519_bytes(&bytes, NoteError::SigningKey)?)?;
        check_key_id(&key.verifier, found)?;
        Ok(key)
    }

    /// Writes the secret as Go's sumdb/note does: `PRIVATE+KEY+<name>+<id>+<base64 of type and seed>`.
    pub fn secret_text(&self) -> String {
        let VerifierKey { name, id, .. } = &self.verifier;
        format!("{SIGNING_KEY_PREFIX}{name}+{id}+{}", encode_key(&self.seed))
    }

    /// Returns the public half.
    pub fn verifier_key(&self) -> &VerifierKey {
        &self.verifier
    }

    /// Returns the 64 bytes of the one signature of this key over `message` (RFC 8032 5.1.6).
    ///
    /// For messages that are no notes, such as record ids: they must not be texts that a note could hold.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.pair.sign(message).as_ref().try_into().expect("an Ed25519 signature has 64 bytes")
    }

    /// Returns a tag over a message (HMAC-SHA256, RFC 2104, under a key that follows from the secret): for data
    /// that the holder of the key keeps for itself: only the key can check it. Takes a fraction of the time of a signature.
    pub fn tag(&self, message: &[u8]) -> [u8; 32] {
        hmac::sign(&self.mac, message).as_ref().try_into().expect("HMAC-SHA256 gives 32 bytes")
    }

    /// Returns 32 bytes that follow from the secret, others for each purpose (HKDF-SHA-256, RFC 5869, with the purpose as salt and
    /// no info). They neither sign nor show the secret.
    pub fn derive(&self, purpose: &[u8]) -> [u8; 32] {
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, purpose).extract(&self.seed);
        let mut bytes = [0; 32];
        let okm = prk.expand(&[], hkdf::HKDF_SHA256).expect("as long as a digest");
        okm.fill(&mut bytes).expect("as long as was asked for");
        bytes
    }

    /// Tells whether a tag is that of a message.
    pub fn has_tagged(&self, message: &[u8], tag: &[u8; 32]) -> bool {
        hmac::verify(&self.mac, message, tag).is_ok()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({} {})", self.verifier.name, self.verifier.id)
    }
}

/// One signature on a note, by a key that may or may not be known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The name of the key.
    pub name: String,
    /// The id of the key.
    pub key_id: KeyId,
    /// The signature bytes of the key; at least one.
    pub bytes: Vec<u8>,
}

impl Signature {
    fn parse(line: &str) -> Option<Signature> {
        let (name, base64) = line.strip_prefix(SIGNATURE_PREFIX)?.split_once(' ')?;
        check_key_name(name).ok()?;
        let bytes = STANDARD.decode(base64).ok()?;
        let (key_id, bytes) = bytes.split_first_chunk::<4>()?;
        Some(Signature { name: name.to_owned(), key_id: KeyId(*key_id), bytes: bytes.to_vec() })
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base64 = STANDARD.encode([&self.key_id.0[..], &self.bytes].concat());
        write!(f, "{SIGNATURE_PREFIX}{} {base64}", self.name)
    }
}

/// A text and the signatures under it (C2SP signed-note). Printed in the form that [`SignedNote::parse`] reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedNote {
    text: String,
    signatures: Vec<Signature>,
}

impl SignedNote {
    /// Signs `text`, which must end with a newline.
    pub fn sign(text: &str, key: &SigningKey) -> Result<SignedNote, NoteError> {
        check_characters(text)?;
        if !text.ends_with('\n') {
            return Err(NoteError::TextEnd);
        }
        let mut note = SignedNote { text: text.to_owned(), signatures: Vec::new() };
        note.add_signature(key)?;
        Ok(note)
    }

    /// Signs the same text with one more key.
    pub fn add_signature(&mut self, key: &SigningKey) -> Result<(), NoteError> {
        let VerifierKey { name, id, .. } = key.verifier_key();
        let bytes = key.sign(self.text.as_bytes()).to_vec();
        self.add(Signature { name: name.clone(), key_id: *id, bytes })
    }

    /// Adds a signature that was made elsewhere, such as a witness's; does not verify it.
    pub fn add(&mut self, signature: Signature) -> Result<(), NoteError> {
        let found = self.to_string().len() + signature.to_string().len() + 1;
        if found > NOTE_BYTES_MAX {
            return Err(NoteError::TooLong { found });
        }
        self.push(signature)
    }

    fn push(&mut self, signature: Signature) -> Result<(), NoteError> {
        check_key_name(&signature.name)?;
        // C2SP signed-note: a signature has at least one byte after the key id.
        if signature.bytes.is_empty() {
            return Err(NoteError::SignatureLine { line: self.signatures.len() + 1 });
        }
        if self.signatures.len() == SIGNATURES_MAX {
            return Err(NoteError::TooManySignatures);
        }
        let same = |other: &Signature| other.key_id == signature.key_id && other.name == signature.name;
        if self.signatures.iter().any(same) {
            return Err(NoteError::DuplicateSignature { name: signature.name, id: signature.key_id });
        }
        self.signatures.push(signature);
        Ok(())
    }

    /// Reads a note; whatever [`SignedNote`] would not print is refused. Does not verify a signature.
    ///
    /// Stricter than the specification in one point: a key may sign a note only once.
    pub fn parse(bytes: &[u8]) -> Result<SignedNote, NoteError> {
        if bytes.len() > NOTE_BYTES_MAX {
            return Err(NoteError::TooLong { found: bytes.len() });
        }
        let note = std::str::from_utf8(bytes).map_err(|_| NoteError::Characters)?;
        check_characters(note)?;
        // The text may have blank lines of its own; only the last one divides.
        let blank = note.rfind("\n\n").ok_or(NoteError::Unsigned)?;
        let (text, lines) = (&note[..=blank], &note[blank + 2..]);
        if lines.is_empty() {
            return Err(NoteError::Unsigned);
        }
        let mut parsed = SignedNote { text: text.to_owned(), signatures: Vec::new() };
        for (at, line) in lines.split_inclusive('\n').enumerate() {
            let signature = line.strip_suffix('\n').and_then(Signature::parse);
            parsed.push(signature.ok_or(NoteError::SignatureLine { line: at + 1 })?)?;
        }
        Ok(parsed)
    }

    /// Returns the signed text. Means nothing before [`SignedNote::verify`].
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the signatures in the order of their lines.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// Returns those of the known keys that signed, in the order of the signatures; never an empty list.
    ///
    /// Signatures by unknown keys are passed over. One wrong signature by a known key refuses the whole note.
    pub fn verify<'k>(&self, known: &'k [VerifierKey]) -> Result<Vec<&'k VerifierKey>, NoteError> {
        let mut signers = Vec::new();
        for signature in &self.signatures {
            let Some(key) = find_key(known, signature)? else { continue };
            if !key.verifies(self.text.as_bytes(), &signature.bytes) {
                let Signature { name, key_id: id, .. } = signature.clone();
                return Err(NoteError::WrongSignature { name, id });
            }
            signers.push(key);
        }
        if signers.is_empty() { Err(NoteError::NoKnownSignature) } else { Ok(signers) }
    }
}

impl fmt::Display for SignedNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|signature| writeln!(f, "{signature}"))
    }
}

/// A checkpoint of a log: its origin, its size, and the root of its tree (C2SP tlog-checkpoint).
///
/// Printed as the text of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    origin: String,
    size: u64,
    root: Digest,
}

impl Checkpoint {
    /// Says that the log `origin` has `size` entries under `root`.
    pub fn new(origin: &str, size: u64, root: Digest) -> Result<Checkpoint, NoteError> {
        if origin.is_empty() || origin.chars().any(|c| c < ' ') {
            return Err(NoteError::Origin);
        }
        Ok(Checkpoint { origin: origin.to_owned(), size, root })
    }

    /// Reads the text of a note. Extension lines are refused: they would be signed and mean nothing here.
    pub fn parse(text: &str) -> Result<Checkpoint, NoteError> {
        let lines: Vec<&str> =
            text.strip_suffix('\n').ok_or(NoteError::CheckpointLines)?.split('\n').collect();
        let [origin, size, root] = lines[..] else { return Err(NoteError::CheckpointLines) };
        let root = STANDARD.decode(root).ok().and_then(|bytes| bytes.try_into().ok());
        Checkpoint::new(origin, parse_size(size)?, Digest(root.ok_or(NoteError::Root)?))
    }

    /// Reads a checkpoint of the log `origin` that the log's own key signed.
    ///
    /// Other signatures on the note, such as those of witnesses, are for [`SignedNote::verify`].
    pub fn open(note: &SignedNote, origin: &str, log: &VerifierKey) -> Result<Checkpoint, NoteError> {
        note.verify(std::slice::from_ref(log))?;
        let checkpoint = Checkpoint::parse(note.text())?;
        if checkpoint.origin != origin {
            let expected = origin.to_owned();
            return Err(NoteError::OriginDiffers { expected, found: checkpoint.origin });
        }
        Ok(checkpoint)
    }

    /// Signs the checkpoint. Before this is called, no other root may have been signed for this size.
    pub fn sign(&self, key: &SigningKey) -> Result<SignedNote, NoteError> {
        SignedNote::sign(&self.to_string(), key)
    }

    /// Returns the name of the log.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the number of entries.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the root of the tree over the entries.
    pub fn root(&self) -> Digest {
        self.root
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}\n{}", self.origin, self.size, STANDARD.encode(self.root.0))
    }
}

fn parse_size(text: &str) -> Result<u64, NoteError> {
    let size: u64 = text.parse().map_err(|_| NoteError::Size)?;
    if size.to_string() == text { Ok(size) } else { Err(NoteError::Size) }
}

fn find_key<'k>(
    known: &'k [VerifierKey],
    signature: &Signature,
) -> Result<Option<&'k VerifierKey>, NoteError> {
    let mut matching = known.iter().filter(|key| key.made(signature));
    let first = matching.next();
    if matching.any(|other| Some(other) != first) {
        return Err(NoteError::AmbiguousKey { name: signature.name.clone(), id: signature.key_id });
    }
    Ok(first)
}

fn check_characters(note: &str) -> Result<(), NoteError> {
    if note.bytes().any(|byte| byte < b' ' && byte != b'\n') { Err(NoteError::Characters) } else { Ok(()) }
}

fn check_key_name(name: &str) -> Result<(), NoteError> {
    let refused = |c: char| c.is_whitespace() || c == '+' || c < ' ';
    if name.is_empty() || name.contains(refused) { Err(NoteError::KeyName) } else { Ok(()) }
}

fn check_key_id(key: &VerifierKey, found: KeyId) -> Result<(), NoteError> {
    if key.id == found {
        return Ok(());
    }
    Err(NoteError::KeyIdDiffers { name: key.name.clone(), expected: key.id, found })
}

fn encode_key(bytes: &[u8; 32]) -> String {
    STANDARD.encode([&[ED25519_TYPE], &bytes[..]].concat())
}

/// Splits `<name>+<id>+<base64>`; the bytes still begin with the signature type.
fn decode_key(text: &str) -> Option<(&str, KeyId, Vec<u8>)> {
    let (name, rest) = text.split_once('+')?;
    let (id, base64) = rest.split_once('+')?;
    Some((name, KeyId(unhex(id)?.try_into().ok()?), STANDARD.decode(base64).ok()?))
}

fn ed25519_bytes(bytes: &[u8], malformed: NoteError) -> Result<[u8; 32], NoteError> {
    match bytes.split_first() {
        Some((&ED25519_TYPE, key)) => key.try_into().map_err(|_| malformed),
        Some((&found, _)) => Err(NoteError::KeyType { found }),
        None => Err(malformed),
    }
}
