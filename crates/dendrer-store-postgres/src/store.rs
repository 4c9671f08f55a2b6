//! A handle of a store on a server: making it, opening it, and what it knows.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use dendrer_object::StoreId;
use dendrer_object::keys::LogKeys;
use dendrer_object::merkle::Peaks;
use dendrer_object::note::SigningKey;
use dendrer_store::{DamageKind, FORMAT, LogWriter, ReadLog as _, StoreError, StoreInfo, Tags, TreeHead};

use crate::address::ServerAddress;
use crate::barrier::Barrier;
use crate::local::Local;
use crate::options::PostgresOptions;
use crate::rows::damage;
use crate::schema::{quoted, tables_sql};
use crate::wire::{Failed, ServerFacts, Which, Wire};

/// A store on a server, as one handle sees it.
#[derive(Debug)]
pub struct Postgres {
    pub(crate) info: StoreInfo,
    pub(crate) address: ServerAddress,
    pub(crate) wire: Arc<Wire>,
    pub(crate) local: Local,
    /// The tree that this handle sees.
    pub(crate) peaks: Peaks,
    pub(crate) epoch: u64,
    pub(crate) writer: LogWriter,
    pub(crate) key: Option<Arc<SigningKey>>,
    /// The groups without a tag; `None` without a secret.
    pub(crate) tags: Option<Tags>,
    /// The size up to which groups were adopted by this handle.
    pub(crate) adopted: u64,
    /// The size of the log with the newest erasure that this handle has met.
    pub(crate) erased_at: u64,
    pub(crate) keys: Mutex<Option<LogKeys>>,
    pub(crate) trouble: Option<Arc<StoreError>>,
    pub(crate) reads_only: bool,
    pub(crate) barrier: Arc<Barrier>,
}

impl Postgres {
    /// Makes a store under a name that has none, with its tables unless an administrator made them ([`tables_sql`]).
    ///
    /// # Errors
    ///
    /// [`StoreError::AlreadyAStore`] if the name has a store, [`StoreError::ServerRefused`] for a server that may lose records.
    pub fn create(
        address: &ServerAddress,
        info: StoreInfo,
        options: PostgresOptions,
        role: Option<&str>,
    ) -> Result<Postgres, StoreError> {
        let wire = Wire::new(address, &options)?;
        let sql = tables_sql(&address.schema(), role);
        let (id, key) = (info.id.0.to_vec(), info.key.to_string());
        let versions = [info.format, info.reader, info.writer].map(|version| version as i64);
        let root = Peaks::new().root().0.to_vec();
        let table = format!("{}.store", quoted(&address.schema()));
        let is_made = wire.run(Which::Work, |session| async move {
            let rows = session.query("select to_regclass($1)::text", &[&table]).await?;
            let is_there = rows.first().is_some_and(|row| row.get::<_, Option<String>>(0).is_some());
            session.batch("begin").await?;
            if !is_there {
                session.batch(&sql).await?;
            }
            let made = session
                .execute(
                    "insert into store (id, key, format, reader, writer) values ($1, $2, $3, $4, $5) \
                     on conflict do nothing",
                    &[&id, &key, &versions[0], &versions[1], &versions[2]],
                )
                .await?;
            session
                .execute(
                    "insert into tree (epoch, size, root, edge, tag) values (1, 0, $1, '', '') \
                     on conflict do nothing",
                    &[&root],
                )
                .await?;
            session.batch("commit").await?;
            Ok(made == 1)
        });
        let is_made = match is_made {
            Err(error) => {
                wire.hang_up(Which::Work);
                return Err(error);
            }
            Ok(is_made) => is_made,
        };
        if !is_made {
            return Err(StoreError::AlreadyAStore { path: address.to_string().into() });
        }
        Postgres::over(address, wire, options)
    }

    /// Opens a store. One that is damaged, or shorter than what was signed or seen, can be read as far as it was compared, and
    /// is not written ([`ReadLog::trouble`](dendrer_store::ReadLog::trouble)).
    ///
    /// # Errors
    ///
    /// [`StoreError::NotAStore`] if the name has none.
    pub fn open(address: &ServerAddress, options: PostgresOptions) -> Result<Postgres, StoreError> {
        let wire = Wire::new(address, &options)?;
        Postgres::over(address, wire, options)
    }

    fn over(address: &ServerAddress, wire: Wire, options: PostgresOptions) -> Result<Postgres, StoreError> {
        let wire = Arc::new(wire);
        let info = read_info(&wire, address)?;
        let local = Local::new()?;
        let barrier = Arc::new(Barrier::new(wire.clone()));
        let peaks = Peaks::new();
        let writer = LogWriter::default();
        let mut store = Postgres {
            info,
            address: address.clone(),
            wire,
            local,
            peaks,
            epoch: 0,
            writer,
            key: None,
            tags: None,
            adopted: 0,
            erased_at: 0,
            keys: Mutex::default(),
            trouble: None,
            reads_only: options.reads_only,
            barrier,
        };
        store.epoch = store.read_tree()?.epoch;
        if let Err(error) = store.catch_up() {
            store.stop_at(error)?;
        }
        if let Err(error) = store.check_signed() {
            store.stop_at(error)?;
        }
        if let Some((epoch, tree)) = options.seen {
            store.check_seen(epoch, tree)?;
        }
        store.key = options.key.filter(|key| store.keys().is_ok_and(|keys| keys.now() == key.verifier_key()));
        let writer = match &store.key {
            Some(key) => LogWriter::of(key),
            None if options.untagged => LogWriter::Unchecked,
            None => LogWriter::Missing,
        };
        store.use_writer(writer)?;
        Ok(store)
    }

    /// Keeps damage and loss as the reason why this handle does not write; any other error ends the call.
    pub(crate) fn stop_at(&mut self, error: StoreError) -> Result<(), StoreError> {
        match error {
            StoreError::Damaged(_) | StoreError::Lost(_) => {
                self.trouble.get_or_insert_with(|| Arc::new(error));
                Ok(())
            }
            error => Err(error),
        }
    }

    /// As [`Postgres::stop_at`], and returns the error.
    pub(crate) fn stopped_at(&mut self, error: StoreError) -> StoreError {
        if let StoreError::Damaged(found) | StoreError::Lost(found) = &error {
            let kept = StoreError::from((**found).clone());
            self.trouble.get_or_insert_with(|| Arc::new(kept));
        }
        error
    }

    /// Fails if this handle does not write.
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        match &self.trouble {
            Some(why) => Err(StoreError::ReadOnly { why: why.to_string() }),
            None if self.reads_only => Err(StoreError::ReadOnly { why: "it was opened for reading".into() }),
            None => Ok(()),
        }
    }

    fn check_seen(&mut self, epoch: u64, seen: TreeHead) -> Result<(), StoreError> {
        if epoch > self.epoch {
            return Err(StoreError::OtherEpoch { own: epoch, found: self.epoch });
        }
        if self.trouble.is_some() {
            return Ok(());
        }
        let size = self.peaks.size();
        let root = self.root_of(seen.size)?;
        if root != Some(seen.root) {
            let found = match root {
                Some(root) => root.to_string(),
                None if seen.size > size => format!("{size} records"),
                None => "no group that ends there".into(),
            };
            let sides = (format!("root {} at size {}, as was seen before", seen.root, seen.size), found);
            self.stop_at(damage(DamageKind::Loss, "tree", None, "log", sides))?;
        }
        Ok(())
    }

    /// Returns the address.
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Returns the epoch in which this handle was opened.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Asks the server for its settings.
    pub fn server(&self) -> Result<ServerFacts, StoreError> {
        self.wire.facts()
    }

    /// Counts the rows of a table of the store; for `doctor`.
    pub fn rows(&self, table: &str) -> Result<u64, StoreError> {
        let known = crate::schema::TABLE_NAMES.iter().find(|known| **known == table);
        let table = known.ok_or(StoreError::Unsupported("a table that is not of a store"))?;
        let sql = format!("select count(*) from {}.{}", quoted(&self.address.schema()), quoted(table));
        self.wire.run(Which::Work, |session| async move { Ok(session.count(&sql).await? as u64) })
    }

    pub(crate) fn known_keys(&self) -> std::sync::MutexGuard<'_, Option<LogKeys>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads id, key and format.
fn read_info(wire: &Wire, address: &ServerAddress) -> Result<StoreInfo, StoreError> {
    let path = || PathBuf::from(address.to_string());
    let not = |why: &str| StoreError::NotAStore { path: path(), why: why.into() };
    let row = wire.run(Which::Work, |session| async move {
        let rows = session.query("select id, key, format, reader, writer from store", &[]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let (id, key): (Vec<u8>, String) = (row.try_get(0)?, row.try_get(1)?);
        let versions: [i64; 3] = [row.try_get(2)?, row.try_get(3)?, row.try_get(4)?];
        Ok::<_, Failed>(Some((id, key, versions)))
    })?;
    let (id, key, versions) = row.ok_or_else(|| not("its table `store` is empty"))?;
    let id = StoreId(id.try_into().map_err(|_| not("its id is not 16 bytes"))?);
    let key = key.parse().map_err(|_| not("its key is none"))?;
    let [format, reader, writer] = versions.map(|version| u64::try_from(version).unwrap_or(u64::MAX));
    for (what, found) in [("reading", reader), ("writing", writer)] {
        if found > FORMAT {
            return Err(StoreError::NewerFormat { path: path(), what, found, known: FORMAT });
        }
    }
    Ok(StoreInfo { id, key, format, reader, writer })
}
