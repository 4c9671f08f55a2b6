//! Connections to the server, on a thread of their own.
//!
//! The contract of a store is synchronous and the driver is not: each call is a task on the thread, and the caller waits for its
//! answer for [`PostgresOptions::deadline`](crate::PostgresOptions::deadline) at most. Never sends a statement again by itself.
//!
//! Rule: a call that was cut off closes its connection, so that the server rolls back what was open in it; and no call of a
//! transaction goes over another connection than the one that began it. Test
//! `a_connection_that_ends_inside_an_append_writes_nothing`.

use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dendrer_store::StoreError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::{ServerAddress, ServerHost, TlsMode};
use crate::options::PostgresOptions;
use crate::schema::quoted;

/// The oldest version of the server.
const SERVER_MIN: i32 = 150_000;

/// A parameter of a statement.
pub(crate) type Parameter<'a> = &'a (dyn ToSql + Sync);

/// Why a task on the thread did not do what it was to do.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The driver or the server.
    Sql(tokio_postgres::Error),
    /// A check of our own.
    Store(StoreError),
}

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Failed {
        Failed::Sql(error)
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Failed {
        Failed::Store(error)
    }
}

/// One connection, and the statements that were prepared on it.
pub(crate) struct Session {
    client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
}

impl Session {
    async fn statement(&self, sql: &'static str) -> Result<Statement, tokio_postgres::Error> {
        let known = || self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned();
        if let Some(statement) = known() {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        let mut statements = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        statements.insert(sql, statement.clone());
        Ok(statement)
    }

    /// Prepares statements, so that those after them can be sent without waiting in between.
    pub(crate) async fn prepare(&self, all: &[&'static str]) -> Result<(), tokio_postgres::Error> {
        for sql in all {
            self.statement(sql).await?;
        }
        Ok(())
    }

    pub(crate) async fn query(
        &self,
        sql: &'static str,
        values: &[Parameter<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.statement(sql).await?;
        self.client.query(&statement, values).await
    }

    pub(crate) async fn execute(
        &self,
        sql: &'static str,
        values: &[Parameter<'_>],
    ) -> Result<u64, tokio_postgres::Error> {
        let statement = self.statement(sql).await?;
        self.client.execute(&statement, values).await
    }

    /// Counts rows. The names in the statement are our own.
    pub(crate) async fn count(&self, sql: &str) -> Result<i64, tokio_postgres::Error> {
        self.client.query_one(sql, &[]).await?.try_get(0)
    }

    /// Sends statements without values.
    pub(crate) async fn batch(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.client.batch_execute(sql).await
    }
}

/// The two connections of a handle: a sync is not to wait for an answer to something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Work,
    Sync,
}

/// Settings and role of the server, for `doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// The version, as `150018`.
    pub version: i32,
    /// `synchronous_standby_names`; empty: a failover may lose acknowledged groups.
    pub standbys: String,
    /// The role that is connected.
    pub role: String,
    /// Whether this role may change records, so that it can erase.
    pub may_erase: bool,
}

/// The thread, and the connections on it.
pub(crate) struct Wire {
    address: ServerAddress,
    options: PostgresOptions,
    config: Config,
    tls: Option<MakeRustlsConnect>,
    runtime: Option<Runtime>,
    work: Mutex<Option<Arc<Session>>>,
    sync: Mutex<Option<Arc<Session>>>,
    /// Whether a transaction is open over [`Which::Work`]: what belongs into it is never sent over another connection.
    is_pinned: AtomicBool,
    owner: u32,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Wire({})", self.address)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.owner != std::process::id() {
            // After a fork the thread is in the other process.
            std::mem::forget(self.runtime.take());
        } else if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn unreachable(server: &ServerAddress, why: impl Into<String>) -> StoreError {
    StoreError::Unreachable { server: server.to_string(), why: why.into() }
}

impl Wire {
    /// Starts the thread. Connects when a connection is first needed.
    pub(crate) fn new(address: &ServerAddress, options: &PostgresOptions) -> Result<Wire, StoreError> {
        let get = |key: &str| std::env::var_os(key);
        let text = |key: &str| get(key).and_then(|value| value.into_string().ok());
        let user = address.user.clone().or_else(|| text("PGUSER"));
        let user = user.or_else(|| text("USER")).or_else(|| text("LOGNAME"));
        let user =
            user.ok_or_else(|| StoreError::Address("it names no user, and PGUSER is not set".into()))?;
        let mut config = Config::new();
        config.user(&user).dbname(&address.database).port(address.port).application_name("dendrer");
        match &address.host {
            ServerHost::Network(host) => config.host(host),
            #[cfg(unix)]
            ServerHost::Socket(directory) => config.host_path(directory),
            #[cfg(not(unix))]
            ServerHost::Socket(_) => {
                return Err(StoreError::Unsupported("a server behind a socket, on this system"));
            }
        };
        if let Some(password) = address.password(&get, &user)? {
            config.password(password);
        }
        config.connect_timeout(options.deadline.min(Duration::from_secs(10)));
        config.keepalives(true).keepalives_idle(Duration::from_secs(10));
        config.keepalives_interval(Duration::from_secs(5)).keepalives_retries(3);
        config.tcp_user_timeout(options.deadline);
        let tls = match address.tls_mode() {
            TlsMode::Disable => {
                config.ssl_mode(SslMode::Disable);
                None
            }
            TlsMode::VerifyFull => {
                config.ssl_mode(SslMode::Require);
                let file = address.root_certificates.clone();
                let file = file.or_else(|| get("PGSSLROOTCERT").map(Into::into));
                Some(connector(address, file.as_deref())?)
            }
        };
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).thread_name("dendrer-postgres").enable_all();
        let runtime = runtime.build().map_err(|source| StoreError::Io {
            action: "start a thread for",
            path: address.to_string().into(),
            source,
        })?;
        Ok(Wire {
            address: address.clone(),
            options: options.clone(),
            config,
            tls,
            runtime: Some(runtime),
            work: Mutex::default(),
            sync: Mutex::default(),
            is_pinned: AtomicBool::new(false),
            owner: std::process::id(),
        })
    }

    /// Runs a task on the thread, and waits for it.
    fn wait<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, Failed>> + Send + 'static,
    ) -> Result<T, Failed> {
        let runtime = self.runtime.as_ref().filter(|_| self.owner == std::process::id());
        let Some(runtime) = runtime else {
            return Err(Failed::Store(StoreError::Forked { owner: self.owner }));
        };
        let (sender, receiver) = sync_channel(1);
        let task = runtime.spawn(async move {
            let _ = sender.send(task.await);
        });
        receiver.recv_timeout(self.options.deadline).unwrap_or_else(|error| {
            task.abort();
            let why = match error {
                RecvTimeoutError::Timeout => format!("no answer in {:?}", self.options.deadline),
                RecvTimeoutError::Disconnected => "the call was given up".into(),
            };
            Err(Failed::Store(unreachable(&self.address, why)))
        })
    }

    /// Returns how long a call waits.
    pub(crate) fn deadline(&self) -> Duration {
        self.options.deadline
    }

    fn slot(&self, which: Which) -> &Mutex<Option<Arc<Session>>> {
        match which {
            Which::Work => &self.work,
            Which::Sync => &self.sync,
        }
    }

    /// Returns the connection, or makes it. A new one is checked first: another server may answer at the address by now.
    fn session(&self, which: Which) -> Result<Arc<Session>, StoreError> {
        let mut slot = self.slot(which).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = slot.as_ref().filter(|session| !session.client.is_closed()) {
            return Ok(session.clone());
        }
        if which == Which::Work && self.is_pinned.load(Ordering::SeqCst) {
            return Err(unreachable(&self.address, "the connection was lost inside a transaction"));
        }
        let session = self.connect()?;
        *slot = Some(session.clone());
        Ok(session)
    }

    fn connect(&self) -> Result<Arc<Session>, StoreError> {
        let (config, tls) = (self.config.clone(), self.tls.clone());
        let (settings, address) = (self.settings(), self.address.clone());
        let connected = self.wait(async move {
            // The task of a connection ends with it.
            let client = match tls {
                Some(tls) => {
                    let (client, connection) = config.connect(tls).await?;
                    tokio::spawn(async move { drop(connection.await) });
                    client
                }
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    tokio::spawn(async move { drop(connection.await) });
                    client
                }
            };
            check_server(&client, &address).await?;
            client.batch_execute(&settings).await?;
            Ok(Arc::new(Session { client, statements: Mutex::default() }))
        });
        connected.map_err(|failed| match failed {
            Failed::Sql(error) => unreachable(&self.address, reason(&error)),
            Failed::Store(error) => error,
        })
    }

    /// The settings of a connection. A writer that is stopped inside a transaction is thrown out, and its lock goes with it;
    /// others wait longer than that takes.
    fn settings(&self) -> String {
        let PostgresOptions { idle_in_append, lock_wait, .. } = &self.options;
        format!(
            "set search_path = {}, pg_temp; set client_encoding = 'UTF8'; set synchronous_commit = on; \
             set default_transaction_isolation = 'read committed'; set default_transaction_read_only = off; \
             set idle_in_transaction_session_timeout = {}; set lock_timeout = {}; set statement_timeout = {}; \
             set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3; \
             set tcp_user_timeout = {}",
            quoted(&self.address.schema()),
            idle_in_append.as_millis(),
            lock_wait.as_millis(),
            self.options.deadline.as_millis(),
            idle_in_append.as_millis(),
        )
    }

    /// Connects, and keeps to this connection until [`Wire::unpin`]: for a transaction of several calls.
    pub(crate) fn pin(&self) -> Result<(), StoreError> {
        self.unpin();
        if self.owner != std::process::id() {
            return Err(StoreError::Forked { owner: self.owner });
        }
        self.session(Which::Work)?;
        self.is_pinned.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Ends [`Wire::pin`].
    pub(crate) fn unpin(&self) {
        self.is_pinned.store(false, Ordering::SeqCst);
    }

    /// Closes a connection, so that the server gives up what is open in it.
    pub(crate) fn hang_up(&self, which: Which) {
        drop(self.slot(which).lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Runs a task with a connection.
    pub(crate) fn run<T: Send + 'static, F: Future<Output = Result<T, Failed>> + Send + 'static>(
        &self,
        which: Which,
        task: impl FnOnce(Arc<Session>) -> F,
    ) -> Result<T, StoreError> {
        if self.owner != std::process::id() {
            return Err(StoreError::Forked { owner: self.owner });
        }
        let session = self.session(which)?;
        match self.wait(task(session)) {
            Ok(done) => Ok(done),
            Err(Failed::Store(error)) => {
                if matches!(error, StoreError::Unreachable { .. }) {
                    self.hang_up(which);
                }
                Err(error)
            }
            Err(Failed::Sql(error)) => {
                let error = self.store_error(&error);
                if matches!(error, StoreError::Unreachable { .. }) {
                    self.hang_up(which);
                }
                Err(error)
            }
        }
    }

    /// Returns the error of a store for an answer of the server.
    fn store_error(&self, error: &tokio_postgres::Error) -> StoreError {
        let path = || self.address.to_string().into();
        let Some(code) = error.code() else { return unreachable(&self.address, reason(error)) };
        let is_end = [
            &SqlState::ADMIN_SHUTDOWN,
            &SqlState::CRASH_SHUTDOWN,
            &SqlState::CANNOT_CONNECT_NOW,
            &SqlState::DATABASE_DROPPED,
            &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            &SqlState::QUERY_CANCELED,
            &SqlState::TOO_MANY_CONNECTIONS,
        ];
        match code {
            code if is_end.contains(&code) => unreachable(&self.address, reason(error)),
            code if *code == SqlState::LOCK_NOT_AVAILABLE => StoreError::Locked { path: path() },
            code if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                StoreError::ReadOnly { why: format!("the server says: {}", reason(error)) }
            }
            code if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_COLUMN => {
                StoreError::NotAStore { path: path(), why: reason(error) }
            }
            code if *code == SqlState::DISK_FULL => {
                let source = std::io::Error::new(std::io::ErrorKind::StorageFull, reason(error));
                StoreError::DiskFull { path: path(), source }
            }
            _ => StoreError::Io {
                action: "ask",
                path: path(),
                source: std::io::Error::other(format!("{} ({})", reason(error), code.code())),
            },
        }
    }

    pub(crate) fn facts(&self) -> Result<ServerFacts, StoreError> {
        self.run(Which::Work, |session| async move {
            let rows = session
                .query(
                    "select current_setting('server_version_num')::int4, \
                     current_setting('synchronous_standby_names'), current_user::text, \
                     has_table_privilege('record', 'update')",
                    &[],
                )
                .await?;
            let row = rows.first().ok_or(StoreError::Unsupported("a server that answers nothing"))?;
            let (version, standbys, role, may_erase) = (row.get(0), row.get(1), row.get(2), row.get(3));
            Ok(ServerFacts { version, standbys, role, may_erase })
        })
    }
}

/// Returns the sentence of an error, without parameters or statements.
fn reason(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    match error.as_db_error() {
        Some(error) => error.message().to_owned(),
        None => error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
    }
}

/// Refuses a server that may lose what it acknowledged, or takes nothing.
async fn check_server(client: &Client, address: &ServerAddress) -> Result<(), Failed> {
    let sql = "select current_setting('server_version_num')::int4, current_setting('fsync'), \
               current_setting('full_page_writes'), pg_is_in_recovery()";
    let row = client.query_one(sql, &[]).await?;
    let version: i32 = row.try_get(0)?;
    let (fsync, pages): (String, String) = (row.try_get(1)?, row.try_get(2)?);
    let why = if version < SERVER_MIN {
        format!("it is PostgreSQL {}, and 15 or later is needed", version / 10_000)
    } else if fsync != "on" {
        format!("fsync is {fsync}, so what it acknowledged may be gone after a crash")
    } else if pages != "on" {
        format!("full_page_writes is {pages}, so a crash may tear pages")
    } else if row.try_get(3)? {
        "it is a replica, which takes no records".into()
    } else {
        return Ok(());
    };
    Err(StoreError::ServerRefused { server: address.to_string(), why }.into())
}

/// Makes what connects by TLS: certificates are checked, with the name of the host.
fn connector(address: &ServerAddress, roots: Option<&Path>) -> Result<MakeRustlsConnect, StoreError> {
    let mut store = rustls::RootCertStore::empty();
    let bad = |why: String| unreachable(address, why);
    match roots {
        Some(path) => {
            let path = || path.display();
            let all = CertificateDer::pem_file_iter(roots.expect("matched"))
                .map_err(|error| bad(format!("cannot read {}: {error}", path())))?;
            for certificate in all {
                let certificate = certificate.map_err(|error| bad(format!("{}: {error}", path())))?;
                store.add(certificate).map_err(|error| bad(format!("{}: {error}", path())))?;
            }
        }
        None => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if store.is_empty() {
        return Err(bad("no authority is known that could vouch for it; name a file by sslrootcert".into()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(error.to_string()))?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
