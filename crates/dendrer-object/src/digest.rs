//! SHA-256 digests, and the one place that computes them.
//!
//! Every preimage begins with an ASCII tag that ends in a newline, except the two families whose shape a
//! standard fixes: SD-JWT disclosures (base64url text, RFC 9901) and Merkle nodes (0x00 or 0x01, RFC 6962).
//! So no preimage of one kind can be a preimage of another.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::Simd;
use base64::engine::general_purpose::{NO_PAD, URL_SAFE_NO_PAD};
use ring::digest::{Context, SHA256, digest};

mod lanes;

/// A SHA-256 digest. Shown as `sha256:` and 64 lower-case hex digits; 12 digits for people.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

/// A text that is no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is `sha256:` and 64 lower-case hex digits")]
pub struct DigestTextError;

impl Digest {
    /// Hashes one message.
    pub fn of(message: &[u8]) -> Digest {
        Digest(digest(&SHA256, message).as_ref().try_into().expect("SHA-256 gives 32 bytes"))
    }

    /// Hashes the concatenation of `parts`.
    pub fn of_parts(parts: &[&[u8]]) -> Digest {
        let mut context = Context::new(&SHA256);
        for part in parts {
            context.update(part);
        }
        Digest(context.finish().as_ref().try_into().expect("SHA-256 gives 32 bytes"))
    }

    /// Hashes many messages, each by itself. If the processor can work on several at once, it does: many short messages then
    /// cost a fraction of their cost one after the other.
    pub fn of_each(messages: &[&[u8]]) -> Vec<Digest> {
        // An empty prefix that lies somewhere: comparing the nowhere of `&[]` with itself, as is done once a message,
        // makes a processor with masked loads stumble for longer than it hashes a block.
        Digest::of_each_behind(&[0][..0], messages)
    }

    /// As [`Digest::of_each`] for messages that begin alike: each is hashed with `prefix` before it.
    pub fn of_each_behind(prefix: &[u8], messages: &[&[u8]]) -> Vec<Digest> {
        // Fewer than a handful gain nothing.
        if messages.len() < 8 {
            return messages.iter().map(|message| Digest::of_parts(&[prefix, message])).collect();
        }
        let mut digests = vec![[0; 32]; messages.len()];
        let blocks = |message: &[u8]| blocks(prefix.len() + message.len());
        if messages[1..].iter().all(|message| blocks(message) == blocks(messages[0])) {
            lanes::hash_many(prefix, messages, &mut digests);
            return digests.into_iter().map(Digest).collect();
        }
        let order = by_blocks(prefix.len(), messages);
        let sorted: Vec<&[u8]> = order.iter().map(|at| messages[*at as usize]).collect();
        lanes::hash_many(prefix, &sorted, &mut digests);
        let mut found = vec![Digest([0; 32]); messages.len()];
        for (at, digest) in order.into_iter().zip(digests) {
            found[at as usize] = Digest(digest);
        }
        found
    }

    /// The size of the text of a digest.
    pub(crate) const TEXT_SIZE: usize = 7 + 64;

    /// Appends the text: `sha256:` and 64 hex digits.
    pub(crate) fn write_text(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"sha256:");
        write_hex(&self.0, out);
    }

    /// Returns the first 12 hex digits, for people.
    pub fn short(&self) -> String {
        hex(&self.0[..6])
    }

    /// Returns all 64 hex digits, without the algorithm.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// Returns the 43 characters of unpadded base64url, the form SD-JWT uses for digests (RFC 9901 4.2.3).
    pub fn base64url(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// Reads what [`Digest::base64url`] writes and nothing else.
    pub fn from_base64url(text: &str) -> Option<Digest> {
        Some(Digest(decode_base64url(text)?.try_into().ok()?))
    }
}

/// How many blocks are hashed for so many bytes, but for the last one.
fn blocks(bytes: usize) -> usize {
    (bytes + 8) / 64
}

/// Returns the places of messages in an order that has those of as many blocks side by side: they run in lockstep, so
/// neighbours should. Long ones all count as of one length, since there a block more or less is little.
fn by_blocks(prefix: usize, messages: &[&[u8]]) -> Vec<u32> {
    const LONG: usize = 63;
    let blocks = |message: &[u8]| blocks(prefix + message.len()).min(LONG);
    let mut next = [0u32; LONG + 2];
    messages.iter().for_each(|message| next[blocks(message) + 1] += 1);
    for block in 1..next.len() {
        next[block] += next[block - 1];
    }
    let mut order = vec![0; messages.len()];
    for (at, message) in messages.iter().enumerate() {
        let place = &mut next[blocks(message)];
        order[*place as usize] = at as u32;
        *place += 1;
    }
    // Long messages have no class of their own: sort them by length.
    let long = next[LONG - 1] as usize;
    order[long..].sort_unstable_by_key(|at| messages[*at as usize].len());
    order
}

/// Messages on their way to their digests, one behind the other.
#[derive(Debug, Default)]
pub struct Messages {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Messages {
    /// Makes room for so many messages of so many bytes altogether.
    pub fn with_capacity(bytes: usize, messages: usize) -> Messages {
        Messages { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(messages) }
    }

    /// Takes the message that `write` appends.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Hashes each, which costs less than one after the other.
    pub fn digests(&self) -> Vec<Digest> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let messages = starts.zip(&self.ends).map(|(start, end)| &self.bytes[*start..*end]);
        Digest::of_each(&messages.collect::<Vec<_>>())
    }
}

/// The base64url texts of some digests, made at once.
pub(crate) struct DigestTexts([u8; DigestTexts::MAX * 44]);

impl DigestTexts {
    pub(crate) const MAX: usize = 16;

    /// Encodes at most [`DigestTexts::MAX`] digests.
    pub(crate) fn of<'d>(digests: impl ExactSizeIterator<Item = &'d Digest>) -> DigestTexts {
        // A byte behind each digest makes it whole threes; it adds one character, which is cut.
        let (mut bytes, mut text) = ([0; DigestTexts::MAX * 33], [0; DigestTexts::MAX * 44]);
        let count = digests.len();
        for (room, digest) in bytes.chunks_exact_mut(33).zip(digests) {
            room[..32].copy_from_slice(&digest.0);
        }
        WIDE.encode_slice(&bytes[..count * 33], &mut text).expect("four characters for three bytes");
        DigestTexts(text)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.chunks_exact(44).map(|text| &text[..43])
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes `bytes` as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = Vec::with_capacity(bytes.len() * 2);
    write_hex(bytes, &mut text);
    String::from_utf8(text).expect("hex is ASCII")
}

/// Appends `bytes` as lower-case hex.
pub(crate) fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bytes.len() * 2, 0);
    for (pair, byte) in out[start..].chunks_exact_mut(2).zip(bytes) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 15)];
    }
}

/// Reads lower-case hex. Upper case is refused, so that one value has one spelling.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// The engine of what is written often and is long: disclosures.
static WIDE: LazyLock<Simd> = LazyLock::new(|| Simd::url_safe(NO_PAD));

/// Writes unpadded base64url (RFC 4648 5).
pub fn encode_base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Pieces on their way to base64url. Many short ones cost far less at once than one by one, and 3 bytes become 4
/// characters wherever they stand: so each piece is filled up to whole threes, and what that adds to its text is cut.
#[derive(Debug, Default)]
pub(crate) struct Base64Batch {
    bytes: Vec<u8>,
    pieces: Vec<Range<usize>>,
}

impl Base64Batch {
    /// Begins again, with room for so many bytes in so many pieces.
    pub(crate) fn clear(&mut self, bytes: usize, pieces: usize) {
        self.bytes.clear();
        self.pieces.clear();
        self.bytes.reserve(bytes + 2 * pieces);
        self.pieces.reserve(pieces);
    }

    /// Takes the piece that `write` appends.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.pieces.push(start..self.bytes.len());
        self.bytes.resize(self.bytes.len().next_multiple_of(3), 0);
    }

    /// Writes the texts over what is in `room`, and returns them in order.
    pub(crate) fn encode<'a>(&'a self, room: &'a mut Vec<u8>) -> impl Iterator<Item = &'a [u8]> {
        let size = self.bytes.len() / 3 * 4;
        // The bytes that `room` has already are not cleared: they are overwritten below.
        room.resize(size.max(room.len()), 0);
        WIDE.encode_slice(&self.bytes, &mut room[..size]).expect("four characters for three bytes");
        let text = &*room;
        self.pieces.iter().map(move |piece| &text[piece.start / 3 * 4..][..(piece.len() * 4).div_ceil(3)])
    }
}

/// Reads unpadded base64url; padding, other alphabets and non-zero trailing bits are refused.
pub fn decode_base64url(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        f.write_str(&self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestTextError;

    fn from_str(text: &str) -> Result<Digest, DigestTextError> {
        let hex = text.strip_prefix("sha256:").ok_or(DigestTextError)?;
        let bytes = unhex(hex).ok_or(DigestTextError)?;
        Ok(Digest(bytes.try_into().map_err(|_| DigestTextError)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_at_once_are_what_each_is_alone() {
        let bytes: Vec<u8> = (0..40_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        // Every length around the borders of blocks and padding, and some long ones among them.
        for count in [0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 100, 400] {
            let messages: Vec<&[u8]> = (0..count)
                .map(|n| &bytes[n..n + n * 7 % 260 + if n % 50 == 3 { 20_000 } else { 0 }])
                .collect();
            let expected: Vec<Digest> = messages.iter().map(|message| Digest::of(message)).collect();
            assert_eq!(Digest::of_each(&messages), expected, "{count}");
            for prefix in [1, 18, 63, 64, 65, 130] {
                let prefix = &bytes[..prefix];
                let expected: Vec<Digest> =
                    messages.iter().map(|message| Digest::of(&[prefix, message].concat())).collect();
                assert_eq!(Digest::of_each_behind(prefix, &messages), expected, "{count}");
            }
        }
        let all: Vec<&[u8]> = (0..300).map(|length| &bytes[..length]).collect();
        assert!(
            Digest::of_each(&all).iter().zip(&all).all(|(digest, message)| *digest == Digest::of(message))
        );
    }

    #[test]
    fn pieces_of_a_batch_are_encoded_as_each_is_alone() {
        let bytes: Vec<u8> = (0..=255).collect();
        let pieces: Vec<&[u8]> = (0..200).map(|n| &bytes[n % 7..][..n]).collect();
        let (mut batch, mut room) = (Base64Batch::default(), Vec::new());
        // Room that is too small, that just fits, and that held more before.
        for count in [20, 200, 200, 3] {
            batch.clear(0, 0);
            pieces[..count].iter().for_each(|piece| batch.push(|out| out.extend_from_slice(piece)));
            let texts: Vec<&[u8]> = batch.encode(&mut room).collect();
            let alone: Vec<String> = pieces[..count].iter().map(|piece| encode_base64url(piece)).collect();
            assert_eq!(texts, alone.iter().map(|text| text.as_bytes()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn digests_have_one_spelling() {
        let digest = Digest::of(b"abc");
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
        for count in 0..=DigestTexts::MAX {
            let digests: Vec<Digest> = (0..count).map(|n| Digest::of(&[n as u8])).collect();
            let texts = DigestTexts::of(digests.iter());
            assert!(
                digests.iter().zip(texts.iter()).all(|(digest, text)| digest.base64url().as_bytes() == text)
            );
        }
        assert_eq!(Digest::from_base64url(&digest.base64url()), Some(digest));
        for bad in [&text[..70], &text.to_uppercase(), "sha256:", &format!("{text}0"), &text[7..]] {
            assert_eq!(bad.parse::<Digest>(), Err(DigestTextError), "{bad}");
        }
    }
}
