//! Keys and heads as files of the user: mode 0600, outside every store, never printed.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dendrer_object::StoreId;
use dendrer_object::note::{Checkpoint, NoteError, SigningKey, VerifierKey};
use dendrer_store::disk::WaitNote;
use dendrer_store::{StoreInfo, TreeHead, WriterSecret};
use ring::rand::{SecureRandom, SystemRandom};

use super::memory::OTHER_HEAD;
use super::{Seen, SigningTurn, TagKey, Trust, TrustError, VaultKey, WriterFile};
use crate::files::{self, Whole};

/// How long another process may sign while the remembered head stays the same.
const TURN_MAX: Duration = Duration::from_secs(30);

/// No key file is longer, and a name may lead to anything.
const KEY_SIZE_MAX: u64 = 1 << 16;

/// Keys and heads in a folder of the user.
#[derive(Debug, Default)]
pub struct UserTrust {
    pub(super) dir: Option<PathBuf>,
    key_file: Option<PathBuf>,
    /// Text of `key_file`. The file may be a pipe, which can be read once.
    key_text: Mutex<Option<String>>,
}

impl UserTrust {
    /// Uses the configuration folder of this user. Without a home, keys cannot be kept and no head is remembered.
    pub fn of_user() -> UserTrust {
        UserTrust { dir: UserTrust::config_dir(), ..UserTrust::default() }
    }

    /// Uses another folder.
    pub fn at(dir: impl Into<PathBuf>) -> UserTrust {
        UserTrust { dir: Some(dir.into()), ..UserTrust::default() }
    }

    /// Takes the key of every log from one file.
    #[must_use]
    pub fn with_key_file(self, file: Option<impl Into<PathBuf>>) -> UserTrust {
        UserTrust { key_file: file.map(Into::into), ..self }
    }

    /// Folder of dendrer's own files in the user's configuration; `None` if the user has no home.
    pub fn config_dir() -> Option<PathBuf> {
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = if cfg!(windows) {
            absolute("APPDATA")
        } else if cfg!(target_os = "macos") {
            absolute("HOME").map(|home| home.join("Library/Application Support"))
        } else {
            absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))
        };
        base.map(|base| base.join("dendrer"))
    }

    /// File that the key of a log is in, or would be; `None` if there is no place for it.
    pub fn key_path(&self, store: StoreId) -> Option<PathBuf> {
        self.key_file.clone().or_else(|| self.own_key_path(store))
    }

    fn own_key_path(&self, store: StoreId) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join("keys").join(format!("{store}.key")))
    }

    /// File that the key of the vault of a log is in, or would be: next to the key of the log; `None` if there is no place for it.
    pub fn vault_key_path(&self, store: StoreId) -> Option<PathBuf> {
        match &self.key_file {
            Some(file) => Some(vault_beside(file)),
            None => Some(self.own_key_path(store)?.with_extension("vault")),
        }
    }

    /// File in which the newest head of a log is remembered; `None` if there is no place for it.
    pub fn head_path(&self, store: StoreId) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join("heads").join(format!("{store}.head")))
    }

    /// Reads a file that is kept for a log; `None` only if nothing has its name.
    fn read_kept(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let is_absent = |error: &io::Error| match error.kind() {
            // A link that leads nowhere is not nothing: its target may be on a disk that is away.
            ErrorKind::NotFound => {
                std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
            }
            // Nothing was ever kept below a home that is no directory.
            ErrorKind::NotADirectory => self.dir.as_ref().is_some_and(|dir| {
                std::fs::metadata(dir).is_err_and(|error| error.kind() == ErrorKind::NotADirectory)
            }),
            _ => false,
        };
        match std::fs::metadata(path) {
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
            Ok(about) if !about.is_file() => return Err(io::Error::other("it is no file")),
            Ok(_) => {}
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(KEY_SIZE_MAX).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Reads the text of a key file.
    fn key_text(&self, path: &Path) -> io::Result<String> {
        let read = || File::open(path).and_then(|file| io::read_to_string(file.take(KEY_SIZE_MAX)));
        if self.key_file.is_none() {
            return read();
        }
        let mut known = self.key_text.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(text) => Ok(text.clone()),
            None => Ok(known.insert(read()?).clone()),
        }
    }
}

impl Trust for UserTrust {
    fn key(&self, log: &StoreInfo) -> Result<Option<Arc<SigningKey>>, TrustError> {
        Ok(match self.held(log)? {
            Some(Held::Key(key, _)) => Some(key),
            Some(Held::Writer(_)) | None => None,
        })
    }

    fn writer(&self, log: &StoreInfo) -> Result<Option<Arc<WriterSecret>>, TrustError> {
        Ok(self.held(log)?.map(|held| match held {
            Held::Key(key, _) => Arc::new(WriterSecret::of(&key)),
            Held::Writer(file) => Arc::new(file.secret),
        }))
    }

    fn writer_place(&self, store: StoreId) -> PathBuf {
        self.key_path(store).unwrap_or_default()
    }

    fn known_keys(&self, store: StoreId) -> Result<Vec<VerifierKey>, TrustError> {
        let Some(path) = self.known_path(store) else { return Ok(Vec::new()) };
        let read = self.read_kept(&path);
        let text = read.map_err(|source| TrustError::KeyNotRead { path: path.clone(), source })?;
        let text = String::from_utf8(text.unwrap_or_default()).unwrap_or_else(|_| "?".to_owned());
        let keys: Result<_, NoteError> = text.lines().map(str::parse).collect();
        keys.map_err(|error| TrustError::KeyUnusable { path, what: "read", why: error.to_string() })
    }

    fn know_key(&self, store: StoreId, key: &VerifierKey) -> Result<(), TrustError> {
        let Some(path) = self.known_path(store) else { return Ok(()) };
        let mut keys = self.known_keys(store)?;
        keys.retain(|known| known != key);
        let lines: String = keys.iter().chain([key]).map(|key| format!("{key}\n")).collect();
        let write = || -> io::Result<()> {
            files::make_dir(files::dir_of(&path))?;
            let mut whole = Whole::create(&path)?;
            whole.write_all(lines.as_bytes())?;
            whole.finish()?;
            files::sync_dir(files::dir_of(&path))
        };
        write().map_err(|source| TrustError::KeyNotWritten { path: path.clone(), source })
    }

    fn own_key(&self, store: StoreId) -> Result<Option<VerifierKey>, TrustError> {
        let Some(path) = self.own_key_path(store) else { return Ok(None) };
        let bad = |what, why: String| TrustError::KeyUnusable { path: path.clone(), what, why };
        let text = self.read_kept(&path).map_err(|error| bad("read", error.to_string()))?;
        let Some(text) = text else { return Ok(None) };
        match Held::parse(&String::from_utf8_lossy(&text), &path) {
            Ok(held) => {
                let key = held.verifier_key().clone();
                // Under the name of this store it is that of another one.
                if key.name() != store.origin() && key.name().starts_with("dendrer/") {
                    return Err(bad("used", format!("it is that of another store, {}", key.name())));
                }
                Ok(Some(key))
            }
            // It was being destroyed.
            Err(_) if beside(&path).exists() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn tag_key(&self, log: &StoreInfo) -> Result<Option<TagKey>, TrustError> {
        Ok(match self.held(log)? {
            Some(Held::Key(key, tags)) => Some(tags.unwrap_or_else(|| TagKey::of(log.id, &key))),
            Some(Held::Writer(_)) | None => None,
        })
    }

    fn keep_next(
        &self,
        store: StoreId,
        key: &Arc<SigningKey>,
        tags: Option<TagKey>,
    ) -> Result<(), TrustError> {
        self.refuse_writer("does not change the key of a log")?;
        let path = beside(&self.key_path(store).ok_or(TrustError::NoHome)?);
        // If this fails, writing the key fails.
        let _ = files::make_dir(files::dir_of(&path));
        // Left by a change that was stopped before it was on record.
        destroy(&path).map_err(|source| TrustError::KeyNotWritten { path: path.clone(), source })?;
        let tags = tags.map(|tags| format!("\n{}", tags.secret_text())).unwrap_or_default();
        let written = write_secret(&path, &(key.secret_text() + &tags));
        written.map_err(|source| TrustError::KeyNotWritten { path, source })
    }

    fn next_key(&self, store: StoreId) -> Result<Option<VerifierKey>, TrustError> {
        Ok(self.next_held(store)?.map(|held| held.verifier_key().clone()))
    }

    fn end_change(
        &self,
        store: StoreId,
        in_force: &VerifierKey,
        out: Option<&Path>,
    ) -> Result<(), TrustError> {
        let Some(path) = self.key_path(store) else { return Ok(()) };
        let next = beside(&path);
        let Some(held) = self.next_held(store)? else { return Ok(()) };
        let ended = match out {
            _ if held.verifier_key() != in_force => destroy(&next),
            None => put_over(&next, &path),
            Some(out) => self.move_keys(store, &next, &path, out),
        };
        *self.key_text.lock().unwrap_or_else(PoisonError::into_inner) = None;
        ended.map_err(|source| TrustError::KeyNotWritten { path, source })
    }

    fn named_key(&self) -> Result<Option<VerifierKey>, TrustError> {
        let Some(path) = &self.key_file else { return Ok(None) };
        let read = self.key_text(path);
        let text = read.map_err(|source| TrustError::KeyNotRead { path: path.clone(), source })?;
        Ok(Some(Held::parse(&text, path)?.verifier_key().clone()))
    }

    fn keep_key(&self, store: StoreId, key: &Arc<SigningKey>) -> Result<(), TrustError> {
        let path = self.key_path(store).ok_or(TrustError::NoHome)?;
        if let Some(folder) = path.parent() {
            // If this fails, writing the key says so.
            let _ = files::make_dir(folder);
        }
        write_key(key, &path)
    }

    fn drop_key(&self, store: StoreId) {
        if let Some(path) = self.key_path(store) {
            // A key of no log is litter, and harmless.
            let _ = std::fs::remove_file(path);
        }
    }

    fn head(&self, store: StoreId) -> Result<Option<TreeHead>, TrustError> {
        let Some(path) = self.head_path(store) else { return Ok(None) };
        let bytes = match self.read_kept(&path) {
            Ok(bytes) => bytes,
            Err(source) => return Err(TrustError::HeadNotRead { path, source }),
        };
        let Some(bytes) = bytes else { return Ok(None) };
        let checkpoint = std::str::from_utf8(&bytes).ok().and_then(|text| Checkpoint::parse(text).ok());
        match checkpoint.filter(|checkpoint| checkpoint.origin() == store.origin()) {
            Some(checkpoint) => Ok(Some(TreeHead { size: checkpoint.size(), root: checkpoint.root() })),
            None => Err(TrustError::NotAHead { path, size: bytes.len() }),
        }
    }

    fn vault_key(&self, store: StoreId) -> Result<Option<VaultKey>, TrustError> {
        if let Some(file) = self.writer_file()? {
            return Ok(file.vault);
        }
        let Some(path) = self.vault_key_path(store) else { return Ok(None) };
        let bytes = match self.read_kept(&path) {
            Ok(bytes) => bytes,
            Err(source) => return Err(TrustError::KeyNotRead { path, source }),
        };
        let Some(bytes) = bytes else { return Ok(None) };
        match VaultKey::from_secret_text(String::from_utf8_lossy(&bytes).trim_end()) {
            Some(key) => Ok(Some(key)),
            None => {
                let why = "it is not the key of a vault".to_owned();
                Err(TrustError::KeyUnusable { path, what: "used", why })
            }
        }
    }

    fn keep_vault_key(&self, store: StoreId, key: &VaultKey) -> Result<(), TrustError> {
        self.refuse_writer("begins no vault: the holder of the key gives it one, with --vault")?;
        let path = self.vault_key_path(store).ok_or(TrustError::NoHome)?;
        // If this fails, writing the key says so.
        let _ = files::make_dir(files::dir_of(&path));
        let written = write_secret(&path, &key.secret_text());
        written.map_err(|source| TrustError::KeyNotWritten { path, source })
    }

    fn destroy_vault_key(&self, store: StoreId) -> Result<(), TrustError> {
        self.refuse_writer("destroys no key of a vault")?;
        let Some(path) = self.vault_key_path(store) else { return Ok(()) };
        destroy(&path).map_err(|source| TrustError::KeyNotWritten { path: path.clone(), source })
    }

    fn seen(&self, store: StoreId) -> Option<Seen> {
        self.dir.as_deref().map(|dir| Seen::of(dir, store))
    }

    fn turn(&self, store: StoreId) -> Result<Box<dyn SigningTurn + '_>, TrustError> {
        use ErrorKind::{PermissionDenied, ReadOnlyFilesystem, StorageFull, TimedOut};
        let Some(head) = self.head_path(store) else { return Ok(Box::new(NothingKept)) };
        let turn = |held| Ok(Box::new(UserTurn { trust: self, store, held }) as Box<dyn SigningTurn + '_>);
        if let Err(error) = files::make_dir(files::dir_of(&head)) {
            return turn(Err(error));
        }
        let path = head.with_extension("lock");
        match self.hold(&path, &head) {
            Ok(lock) => turn(Ok(lock)),
            Err(error) if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | StorageFull) => {
                turn(Err(error))
            }
            Err(error) if error.kind() == TimedOut => Err(TrustError::Busy { lock: path }),
            Err(source) => Err(TrustError::NoLock { path, source }),
        }
    }
}

/// The content of a key file.
enum Held {
    /// A signing key, and the secret of tags if it is not the first key of its log.
    Key(Arc<SigningKey>, Option<TagKey>),
    Writer(Box<WriterFile>),
}

impl Held {
    fn parse(text: &str, path: &Path) -> Result<Held, TrustError> {
        match WriterFile::parse(text) {
            Some(file) => Ok(Held::Writer(Box::new(file))),
            None => {
                let tags = TagKey::split(text).and_then(|(_, tags)| tags);
                Ok(Held::Key(Arc::new(key_of(text, path)?), tags))
            }
        }
    }

    fn verifier_key(&self) -> &VerifierKey {
        match self {
            Held::Key(key, _) => key.verifier_key(),
            Held::Writer(file) => file.secret.key(),
        }
    }
}

impl UserTrust {
    /// File with the keys that were known of a log, in order, in the folder of its remembered head; `None` if there is no place for it.
    fn known_path(&self, store: StoreId) -> Option<PathBuf> {
        Some(self.head_path(store)?.with_extension("known"))
    }

    /// Reads the key of a log, or the secret of its writers.
    fn held(&self, log: &StoreInfo) -> Result<Option<Held>, TrustError> {
        let Some(path) = self.key_path(log.id) else { return Ok(None) };
        // A change that is on record and not ended: the new key has a file of its own.
        if let Some(next) = self.next_held(log.id)?.filter(|next| *next.verifier_key() == log.key) {
            return Ok(Some(next));
        }
        let text = match self.key_text(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound && self.key_file.is_none() => return Ok(None),
            Err(source) => return Err(TrustError::KeyNotRead { path, source }),
        };
        let held = Held::parse(&text, &path)?;
        if *held.verifier_key() != log.key {
            let why = format!("it is not the key of this store, which is {}", log.key);
            return Err(TrustError::KeyUnusable { path, what: "used", why });
        }
        Ok(Some(held))
    }

    /// Reads the key that is to take the place of the key of a log.
    fn next_held(&self, store: StoreId) -> Result<Option<Held>, TrustError> {
        let Some(path) = self.key_path(store).map(|path| beside(&path)) else { return Ok(None) };
        let read = self.read_kept(&path);
        let text = match read {
            Err(source) => return Err(TrustError::KeyNotRead { path, source }),
            Ok(text) => text,
        };
        // One that was being destroyed is passed over.
        Ok(text.and_then(|text| Held::parse(&String::from_utf8_lossy(&text), &path).ok()))
    }

    /// Moves the next key and the key of the vault to a new place, and destroys the old ones. Files of a move that was stopped stay.
    fn move_keys(&self, store: StoreId, next: &Path, path: &Path, out: &Path) -> io::Result<()> {
        let text = std::fs::read_to_string(next)?;
        copy_secret(text.trim_end(), out)?;
        if let Some(vault) = self.vault_key_path(store)
            && let Some(text) = self.read_kept(&vault)?
        {
            copy_secret(String::from_utf8_lossy(&text).trim_end(), &vault_beside(out))?;
            destroy(&vault)?;
        }
        destroy(path)?;
        destroy(next)
    }

    /// Returns what the named file has, if it is that of a writer.
    fn writer_file(&self) -> Result<Option<WriterFile>, TrustError> {
        let Some(path) = &self.key_file else { return Ok(None) };
        match self.key_text(path) {
            Ok(text) => Ok(WriterFile::parse(&text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(TrustError::KeyNotRead { path: path.clone(), source }),
        }
    }

    /// Refuses what a writer does not do.
    fn refuse_writer(&self, why: &str) -> Result<(), TrustError> {
        match (self.writer_file()?, &self.key_file) {
            (Some(_), Some(path)) => {
                let why = format!("a writer's secret {why}");
                Err(TrustError::KeyUnusable { path: path.clone(), what: "used", why })
            }
            _ => Ok(()),
        }
    }

    /// Waits for the lock: as long as other processes sign, and at most [`TURN_MAX`] while the remembered head stays the same.
    fn hold(&self, path: &Path, head: &Path) -> io::Result<Lock> {
        if std::fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            return Err(io::Error::other(format!("{} is no file", path.display())));
        }
        let file = File::options().write(true).create(true).truncate(false).open(path)?;
        let remembered = || self.read_kept(head).ok().flatten();
        let (mut seen, mut begin, mut noted) = (remembered(), Instant::now(), WaitNote::default());
        while begin.elapsed() < TURN_MAX {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    noted.after(begin.elapsed());
                    std::thread::sleep(Duration::from_millis(10));
                    let now = remembered();
                    if now != seen {
                        (seen, begin) = (now, Instant::now());
                    }
                }
                Ok(()) => return Ok(Lock { _file: file, is_alone: true }),
                // Some file systems have no locks. There, the caller looks at the head once more before it signs.
                Err(TryLockError::Error(_)) => return Ok(Lock { _file: file, is_alone: false }),
            }
        }
        Err(ErrorKind::TimedOut.into())
    }
}

/// A lock that is released with its file.
struct Lock {
    _file: File,
    /// Whether no other process has it: some file systems have no locks.
    is_alone: bool,
}

struct UserTurn<'t> {
    trust: &'t UserTrust,
    store: StoreId,
    /// The lock until the turn ends, or why nothing can be remembered.
    held: io::Result<Lock>,
}

impl SigningTurn for UserTurn<'_> {
    fn remember(&mut self, head: TreeHead) -> Result<(), TrustError> {
        let Some(path) = self.trust.head_path(self.store) else { return Ok(()) };
        if self.trust.head(self.store)?.is_some_and(|known| known.size >= head.size) {
            return Ok(());
        }
        self.write(path, head)
    }

    fn replace(&mut self, discarded: TreeHead, head: TreeHead) -> Result<(), TrustError> {
        let Some(path) = self.trust.head_path(self.store) else { return Ok(()) };
        if self.trust.head(self.store)? != Some(discarded) {
            return Err(TrustError::NotRemembered { path, why: OTHER_HEAD.to_owned() });
        }
        self.write(path, head)
    }
}

impl UserTurn<'_> {
    /// Writes the remembered head.
    fn write(&self, path: PathBuf, head: TreeHead) -> Result<(), TrustError> {
        let written = match &self.held {
            Ok(lock) => {
                if lock.is_alone {
                    // Left by a process that was killed while it wrote a head.
                    files::remove_partial(&path);
                }
                write_head(&path, self.store, head).map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        written.map_err(|why| TrustError::NotRemembered { path, why })
    }
}

/// A turn where no head can be remembered, so that two processes cannot contradict one.
struct NothingKept;

impl SigningTurn for NothingKept {
    fn remember(&mut self, _: TreeHead) -> Result<(), TrustError> {
        Ok(())
    }
}

/// Writes a head so that a power cut leaves the old one or this one.
fn write_head(path: &Path, store: StoreId, head: TreeHead) -> io::Result<()> {
    let checkpoint = Checkpoint::new(&store.origin(), head.size, head.root).map_err(io::Error::other)?;
    let mut whole = Whole::create(path)?;
    whole.write_all(checkpoint.to_string().as_bytes())?;
    whole.finish()?;
    let path = std::fs::canonicalize(path)?;
    files::sync_dir(files::dir_of(&path))
}

/// Makes a key with a name and random bytes of the system.
pub fn make_key(name: &str) -> Result<SigningKey, TrustError> {
    let mut seed = [0; 32];
    SystemRandom::new().fill(&mut seed).map_err(|_| TrustError::NoRandomness)?;
    SigningKey::from_seed(name, seed).map_err(TrustError::KeyName)
}

/// Writes a key to a new file that only its owner may read.
pub fn write_key(key: &SigningKey, path: &Path) -> Result<(), TrustError> {
    // A log whose key a power cut took is never signed again.
    let written = write_new(path, &key.secret_text()).and_then(|()| files::sync_dir(files::dir_of(path)));
    written.map_err(|source| TrustError::KeyNotWritten { path: path.to_owned(), source })
}

/// Writes the file of a writer, which only its owner may read.
///
/// # Errors
///
/// [`TrustError::KeyNotWritten`] if the file exists.
pub fn write_writer(file: &WriterFile, path: &Path) -> Result<(), TrustError> {
    let written = write_new(path, &file.text()).and_then(|()| files::sync_dir(files::dir_of(path)));
    written.map_err(|source| TrustError::KeyNotWritten { path: path.to_owned(), source })
}

/// Writes a line to a new file that only its owner may read.
fn write_new(path: &Path, line: &str) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_all()
}

/// Writes a line to a new file that is there with all of it or not at all: another process that makes the same key meanwhile
/// reads a whole one.
fn write_secret(path: &Path, line: &str) -> io::Result<()> {
    if std::fs::symlink_metadata(path).is_ok() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let mut number = [0; 8];
    SystemRandom::new().fill(&mut number).map_err(|_| io::Error::other("the system gives no randomness"))?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:016x}.partial", u64::from_le_bytes(number)));
    let beside = PathBuf::from(name);
    write_new(&beside, line)?;
    let linked = match std::fs::hard_link(&beside, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => write_new(path, line),
        linked => linked,
    };
    // A second name of a key is litter of the owner.
    let _ = std::fs::remove_file(&beside);
    linked?;
    // Bytes under a key that a power cut took are lost.
    files::sync_dir(files::dir_of(path))
}

/// The file of the key that is to take the place of one in a file.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(".new");
    name.into()
}

/// The file of the key of a vault, by the file of a signing key.
fn vault_beside(path: &Path) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(".vault");
    name.into()
}

/// Overwrites a file with zeros and syncs that; `false` if it is not there.
fn overwrite(path: &Path) -> io::Result<bool> {
    let mut file = match File::options().write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    let len = usize::try_from(file.metadata()?.len().min(KEY_SIZE_MAX)).unwrap_or(0);
    file.write_all(&vec![0; len])?;
    file.sync_all()?;
    Ok(true)
}

/// Destroys a secret, if it is there.
fn destroy(path: &Path) -> io::Result<()> {
    if overwrite(path)? {
        std::fs::remove_file(path)?;
        files::sync_dir(files::dir_of(path))?;
    }
    Ok(())
}

/// Destroys a secret, and puts another in its place.
fn put_over(next: &Path, path: &Path) -> io::Result<()> {
    // A link of the user's stays.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    overwrite(&path)?;
    std::fs::rename(next, &path)?;
    files::sync_dir(files::dir_of(&path))
}

/// Writes a secret to a new file, unless it is there.
fn copy_secret(text: &str, path: &Path) -> io::Result<()> {
    match write_secret(path, text) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let known = std::fs::read_to_string(path)?;
            if known.trim_end() == text { Ok(()) } else { Err(error) }
        }
        written => written,
    }
}

/// Reads a key from a file that the user named.
pub fn read_key(path: &Path) -> Result<SigningKey, TrustError> {
    let text = File::open(path).and_then(|file| io::read_to_string(file.take(KEY_SIZE_MAX)));
    let bad = |error: io::Error| TrustError::KeyUnusable {
        path: path.to_owned(),
        what: "used",
        why: error.to_string(),
    };
    key_of(&text.map_err(bad)?, path)
}

fn key_of(text: &str, path: &Path) -> Result<SigningKey, TrustError> {
    let key = TagKey::split(text).map_or(text, |(key, _)| key);
    SigningKey::from_secret_text(key.trim_end()).map_err(|error| TrustError::KeyUnusable {
        path: path.to_owned(),
        what: "used",
        why: match WriterFile::parse(text) {
            Some(_) => "it is a writer's secret, which appends and signs nothing".to_owned(),
            None => error.to_string(),
        },
    })
}
