//! Where this program finds the keys of logs: in the user's folder, in the file of `--key`, and the demo's in the program.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use dendrer::store::StoreInfo;
use dendrer::store::TreeHead;
use dendrer::store::WriterSecret;
use dendrer::trust;
use dendrer::trust::SigningTurn;
use dendrer::trust::TagKey;
use dendrer::trust::Trust;
use dendrer::trust::TrustError;
use dendrer::trust::UserTrust;
use dendrer::trust::VaultKey;
use dendrer_object::note::SigningKey;
use dendrer_object::note::VerifierKey;
use dendrer_object::{Code, StoreId};

use crate::demo;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::files;

/// Keys and heads of this user, and the demo's key, which is published with the program: its signatures prove nothing, and its
/// stores say so. Every demo has one id, so no head of one says anything of another.
#[derive(Debug)]
pub(crate) struct ProgramTrust(UserTrust);

/// Returns what this command knows of keys and heads.
pub(crate) fn trust(global: &Global) -> Arc<ProgramTrust> {
    trust_with(global.key.as_deref())
}

/// As [`trust`], with the key of the log in a file if one is named.
pub(crate) fn trust_with(key: Option<&str>) -> Arc<ProgramTrust> {
    Arc::new(ProgramTrust(user(key)))
}

fn user(key: Option<&str>) -> UserTrust {
    UserTrust::of_user().with_key_file(key)
}

impl Trust for ProgramTrust {
    fn key(&self, log: &StoreInfo) -> std::result::Result<Option<Arc<SigningKey>>, TrustError> {
        if let Some(key) = self.0.key(log)? {
            return Ok(Some(key));
        }
        let demo = demo::key();
        Ok((*demo.verifier_key() == log.key).then(|| Arc::new(demo)))
    }

    fn writer(&self, log: &StoreInfo) -> std::result::Result<Option<Arc<WriterSecret>>, TrustError> {
        if let Some(secret) = self.0.writer(log)? {
            return Ok(Some(secret));
        }
        Ok(self.key(log)?.map(|key| Arc::new(WriterSecret::of(&key))))
    }

    fn tag_key(&self, log: &StoreInfo) -> std::result::Result<Option<TagKey>, TrustError> {
        match self.0.tag_key(log)? {
            Some(tags) => Ok(Some(tags)),
            None => Ok(self.key(log)?.map(|key| TagKey::of(log.id, &key))),
        }
    }

    fn keep_next(
        &self,
        store: StoreId,
        key: &Arc<SigningKey>,
        tags: Option<TagKey>,
    ) -> std::result::Result<(), TrustError> {
        if store == demo::STORE_ID {
            let why = "it is published with the program, and stays that of every demo".to_owned();
            return Err(TrustError::KeyUnusable { path: "the demo".into(), what: "changed", why });
        }
        self.0.keep_next(store, key, tags)
    }

    fn next_key(&self, store: StoreId) -> std::result::Result<Option<VerifierKey>, TrustError> {
        self.0.next_key(store)
    }

    fn end_change(
        &self,
        store: StoreId,
        in_force: &VerifierKey,
        out: Option<&Path>,
    ) -> std::result::Result<(), TrustError> {
        self.0.end_change(store, in_force, out)
    }

    fn writer_place(&self, store: StoreId) -> PathBuf {
        self.0.writer_place(store)
    }

    fn known_keys(&self, store: StoreId) -> std::result::Result<Vec<VerifierKey>, TrustError> {
        self.0.known_keys(store)
    }

    fn know_key(&self, store: StoreId, key: &VerifierKey) -> std::result::Result<(), TrustError> {
        // The key of the demo is public.
        if store == demo::STORE_ID { Ok(()) } else { self.0.know_key(store, key) }
    }

    fn own_key(&self, store: StoreId) -> std::result::Result<Option<VerifierKey>, TrustError> {
        self.0.own_key(store)
    }

    fn keep_key(&self, store: StoreId, key: &Arc<SigningKey>) -> std::result::Result<(), TrustError> {
        self.0.keep_key(store, key)
    }

    fn drop_key(&self, store: StoreId) {
        self.0.drop_key(store);
    }

    fn head(&self, store: StoreId) -> std::result::Result<Option<TreeHead>, TrustError> {
        if store == demo::STORE_ID { Ok(None) } else { self.0.head(store) }
    }

    fn vault_key(&self, store: StoreId) -> std::result::Result<Option<VaultKey>, TrustError> {
        self.0.vault_key(store)
    }

    fn keep_vault_key(&self, store: StoreId, key: &VaultKey) -> std::result::Result<(), TrustError> {
        self.0.keep_vault_key(store, key)
    }

    fn destroy_vault_key(&self, store: StoreId) -> std::result::Result<(), TrustError> {
        self.0.destroy_vault_key(store)
    }

    fn named_key(&self) -> std::result::Result<Option<VerifierKey>, TrustError> {
        self.0.named_key()
    }

    fn seen(&self, store: StoreId) -> Option<trust::Seen> {
        // Every demo has one id, so what was found in one says nothing of another.
        if store == demo::STORE_ID { None } else { self.0.seen(store) }
    }

    fn turn(&self, store: StoreId) -> std::result::Result<Box<dyn SigningTurn + '_>, TrustError> {
        if store == demo::STORE_ID { Ok(Box::new(DemoTurn)) } else { self.0.turn(store) }
    }
}

/// A turn to sign a demo, of which no head is remembered.
struct DemoTurn;

impl SigningTurn for DemoTurn {
    fn remember(&mut self, _: TreeHead) -> std::result::Result<(), TrustError> {
        Ok(())
    }
}

/// The folder of dendrer's own files in the user's configuration, if the user has one.
pub(crate) fn config_dir() -> Option<PathBuf> {
    UserTrust::config_dir()
}

/// Where the key of a store is, if it has a place.
pub(crate) fn path_of(given: Option<&str>, store: StoreId) -> Option<PathBuf> {
    user(given).key_path(store)
}

/// Returns the key file of a store with its mode, if other users can read it.
#[cfg(unix)]
pub(crate) fn open_to_others(global: &Global, store: StoreId) -> Option<(String, u32)> {
    use std::os::unix::fs::PermissionsExt as _;
    let file = path_of(global.key.as_deref(), store)?;
    let about = std::fs::metadata(&file).ok().filter(std::fs::Metadata::is_file)?;
    let mode = about.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| (dendrer_view::quote::escape(&file.display().to_string()).to_string(), mode))
}

#[cfg(not(unix))]
pub(crate) fn open_to_others(_: &Global, _: StoreId) -> Option<(String, u32)> {
    None
}

/// Makes a key with a name and writes it to a new file that only its owner may read.
pub(crate) fn make(name: &str, path: &Path) -> Result<SigningKey> {
    files::makes(path)?;
    let key = trust::make_key(name).map_err(dendrer::Error::from)?;
    trust::write_key(&key, path).map_err(dendrer::Error::from)?;
    Ok(key)
}

/// Reads the public half of a key file that was named: that of a signing key, or of the key of a writer's secret.
pub(crate) fn read_verifier(path: &str) -> Result<Option<VerifierKey>> {
    files::refuse_answer(path)?;
    Ok(user(Some(path)).named_key().map_err(dendrer::Error::from)?)
}

/// Reads a key file that was named.
pub(crate) fn read_signer(path: &str) -> Result<SigningKey> {
    files::refuse_answer(path)?;
    Ok(trust::read_key(Path::new(path)).map_err(dendrer::Error::from)?)
}

/// Finds the key of a store; `None` if it is not here.
pub(crate) fn find(given: Option<&str>, info: &StoreInfo) -> Result<Option<Arc<SigningKey>>> {
    Ok(ProgramTrust(user(given)).key(info).map_err(dendrer::Error::from)?)
}

/// The largest file that is read as a checkpoint.
const NOTE_MAX: usize = 1 << 20;

/// Reads the text of a signed note.
pub(crate) fn note_in(path: &str) -> Result<String> {
    String::from_utf8(files::read(path, NOTE_MAX)?)
        .map_err(|_| Failure::new(Code::E0308, format!("not a checkpoint: {path} is no text")))
}
