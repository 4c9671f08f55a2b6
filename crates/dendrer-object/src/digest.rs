//! SHA-256 digests, and the one place that computes them.
//!
//! Every preimage begins with an ASCII tag that ends in a newline, except the two families whose shape a
//! standard fixes: SD-JWT disclosures (base64url text, RFC 9901) and Merkle nodes (0x00 or 0x01, RFC 6962).
//! So no preimage of one kind can be a preimage of another.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{Context, SHA256, digest};

/// A SHA-256 digest. Shown as `sha256:` and 64 lower-case hex digits; 12 digits for people.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

/// What is wrong with the text of a digest.
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

/// Writes `bytes` as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// Reads lower-case hex. Upper case is refused, so that one value has one spelling.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    if text.len() % 2 != 0 {
        return None;
    }
    text.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// Writes unpadded base64url (RFC 4648 5).
pub fn encode_base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
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
