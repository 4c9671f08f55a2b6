//! The file of a writer: it appends to a log, and signs nothing.

use dendrer_store::WriterSecret;

use super::VaultKey;

/// The secret of those who append to a log, and the key of its vault if its holder gave that as well: a line each.
#[derive(Debug, Clone)]
pub struct WriterFile {
    /// The secret.
    pub secret: WriterSecret,
    /// The key of the vault.
    pub vault: Option<VaultKey>,
}

impl WriterFile {
    /// Writes the lines of the file.
    pub(super) fn text(&self) -> String {
        let vault = self.vault.as_ref().map(|key| format!("\n{}", key.secret_text()));
        self.secret.secret_text() + &vault.unwrap_or_default()
    }

    /// Reads the lines of such a file; `None` for anything else.
    pub(super) fn parse(text: &str) -> Option<WriterFile> {
        let mut lines = text.trim_end().lines();
        let secret = WriterSecret::from_secret_text(lines.next()?)?;
        let vault = lines.next().map(VaultKey::from_secret_text);
        match (vault, lines.next()) {
            (None, None) => Some(WriterFile { secret, vault: None }),
            (Some(Some(key)), None) => Some(WriterFile { secret, vault: Some(key) }),
            _ => None,
        }
    }
}
