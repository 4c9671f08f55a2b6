//! The key of a vault.

use std::fmt;

use dendrer_object::digest::{decode_base64url, encode_base64url};
use ring::rand::{SecureRandom, SystemRandom};

use super::TrustError;

/// The prefix of the text of a key.
const TEXT: &str = "dendrer-vault-key/1 ";

/// 32 random bytes from which the keys of a vault derive. Its secret is printed by [`VaultKey::secret_text`] and by nothing
/// else, `Debug` included.
#[derive(Clone, PartialEq, Eq)]
pub struct VaultKey([u8; 32]);

impl fmt::Debug for VaultKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VaultKey(..)")
    }
}

impl VaultKey {
    /// Makes a key of random bytes of the system.
    pub fn generate() -> Result<VaultKey, TrustError> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| TrustError::NoRandomness)?;
        Ok(VaultKey(bytes))
    }

    /// Takes the bytes of a key that is kept elsewhere.
    pub fn from_bytes(bytes: [u8; 32]) -> VaultKey {
        VaultKey(bytes)
    }

    /// Returns the secret bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Writes the secret: `dendrer-vault-key/1` and base64url.
    pub fn secret_text(&self) -> String {
        format!("{TEXT}{}", encode_base64url(&self.0))
    }

    /// Reads what [`VaultKey::secret_text`] writes; `None` for anything else.
    pub fn from_secret_text(text: &str) -> Option<VaultKey> {
        Some(VaultKey(decode_base64url(text.strip_prefix(TEXT)?)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_written_and_not_shown() {
        let key = VaultKey::generate().unwrap();
        let text = key.secret_text();
        assert_eq!(VaultKey::from_secret_text(&text), Some(key.clone()));
        for other in
            ["", "dendrer-vault-key/1 ", &text[..text.len() - 1], &format!("{text}A"), &format!("{text}\n")]
        {
            assert_eq!(VaultKey::from_secret_text(other), None, "{other}");
        }
        assert_eq!(format!("{key:?}"), "VaultKey(..)");
    }
}
