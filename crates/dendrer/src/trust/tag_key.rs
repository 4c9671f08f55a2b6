//! The secret under which the tags of redacted values are made.

use std::fmt;

use dendrer_object::StoreId;
use dendrer_object::digest::{decode_base64url, encode_base64url};
use dendrer_object::note::SigningKey;

/// The prefix of the text of a secret.
const TEXT: &str = "dendrer-tags/1 ";

/// 32 bytes that follow from the key that a log began with. When that is changed they are kept in the file of the new one, so that
/// equal secrets keep equal tags.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TagKey([u8; 32]);

impl fmt::Debug for TagKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TagKey(..)")
    }
}

impl TagKey {
    /// Derives the secret of a log from its first key.
    pub fn of(store: StoreId, key: &SigningKey) -> TagKey {
        TagKey(key.tag(format!("dendrer/redaction-tags/v2\n{store}").as_bytes()))
    }

    /// Returns the secret bytes.
    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }

    /// Writes the secret: `dendrer-tags/1` and base64url.
    pub(super) fn secret_text(&self) -> String {
        format!("{TEXT}{}", encode_base64url(&self.0))
    }

    /// Splits the text of a key file from the secret below it; `None` for any other line there.
    pub(super) fn split(text: &str) -> Option<(&str, Option<TagKey>)> {
        let text = text.trim_end();
        let Some((key, line)) = text.split_once('\n') else { return Some((text, None)) };
        let bytes = decode_base64url(line.strip_prefix(TEXT)?)?.try_into().ok()?;
        Some((key, Some(TagKey(bytes))))
    }
}
