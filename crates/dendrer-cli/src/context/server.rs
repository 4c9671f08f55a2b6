//! Stores on a server, which `--store` and `DENDRER_STORE` name by an address.
//!
//! Works without the feature `postgres` as well: an address is then refused (E0818), and never taken for a directory.
//!
//! Rule: the address that is shown has no password, because one that has is refused before it is opened.

use std::path::Path;

use dendrer::repo::Mode;
use dendrer_object::Code;
use dendrer_view::doctor::DoctorCheck;

use crate::failure::{Failure, Result};
use crate::global::Global;

/// Whether a name of a store is an address on a server.
pub(crate) fn is_address(path: &Path) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    [&b"postgres://"[..], b"postgresql://"].iter().any(|scheme| text.starts_with(scheme))
}

/// Refuses a store on a server where the files of one are worked on.
pub(crate) fn refuse(path: &Path) -> Result<()> {
    if !is_address(path) {
        return Ok(());
    }
    Err(Failure::new(Code::E0820, "this works on the files of a store, and a store on a server has none")
        .note("nothing was changed; the tools of PostgreSQL back it up, check its pages and free their room"))
}

/// Checks a store on a server: that it can be read, and what the server and the role are.
pub(crate) fn checks(global: &Global, path: &Path) -> Vec<DoctorCheck> {
    const NAME: &str = "store";
    let failed = |error: dendrer::Error| {
        let failure = Failure::from(error);
        let (code, told) = (failure.code, failure.told());
        vec![DoctorCheck::fail(NAME, code, told).next(&["dendrer", "explain", code.as_str()])]
    };
    let repo = match open(global, path, Mode::Read) {
        Ok(repo) => repo,
        Err(error) => return failed(error),
    };
    let found = repo.warnings().first().map(|warning| (warning.code(), format!("{warning:?}")));
    let store = match found {
        Some((code, why)) => DoctorCheck::fail(NAME, code, why).next(&["dendrer", "verify", "--all"]),
        None => DoctorCheck::ok(NAME, format!("{}: the log is the one that was signed", path.display())),
    };
    let mut checks = vec![store];
    match server_facts(path) {
        Ok(facts) => checks.extend(facts),
        Err(error) => checks.extend(failed(error)),
    }
    checks
}

#[cfg(not(feature = "postgres"))]
mod built {
    use std::path::Path;

    use dendrer::repo::{Mode, Repo};
    use dendrer::store::StoreError;
    use dendrer_view::doctor::DoctorCheck;

    use crate::global::Global;

    /// Refuses the address.
    pub(crate) fn open(_: &Global, path: &Path, _: Mode) -> std::result::Result<Repo, dendrer::Error> {
        // The rest of the address may have a password.
        let scheme = path.to_string_lossy().split(':').next().unwrap_or_default().to_owned();
        Err(StoreError::NotBuilt { server: format!("{scheme}://..") }.into())
    }

    /// Never called: no store was opened.
    pub(super) fn server_facts(_: &Path) -> std::result::Result<Vec<DoctorCheck>, dendrer::Error> {
        Ok(Vec::new())
    }
}

#[cfg(feature = "postgres")]
mod built {
    use std::path::Path;
    use std::sync::Arc;

    use dendrer::redact::RedactionProfile;
    use dendrer::repo::{Mode, Repo};
    use dendrer::store::StoreInfo;
    use dendrer::trust::Trust;
    use dendrer_object::Code;
    use dendrer_store_postgres::{Postgres, PostgresOptions, ServerAddress, TlsMode};
    use dendrer_view::doctor::DoctorCheck;

    use crate::context::keys;
    use crate::global::Global;

    /// Reads an address.
    pub(crate) fn address(path: &Path) -> std::result::Result<ServerAddress, dendrer::Error> {
        Ok(path.to_string_lossy().parse()?)
    }

    /// Opens the store at an address.
    pub(crate) fn open(
        global: &Global,
        path: &Path,
        mode: Mode,
    ) -> std::result::Result<Repo, dendrer::Error> {
        let options = PostgresOptions { reads_only: mode == Mode::Read, ..PostgresOptions::default() };
        let store = Box::new(Postgres::open(&address(path)?, options)?);
        let trust = keys::trust(global);
        match mode {
            Mode::Read => Repo::read_over(store, trust),
            Mode::Write => Repo::over(store, trust),
        }
    }

    /// Checks of the server: its version, its protection against a failover, the connection and the role.
    pub(super) fn server_facts(path: &Path) -> std::result::Result<Vec<DoctorCheck>, dendrer::Error> {
        const NAME: &str = "server";
        let address = address(path)?;
        let options = PostgresOptions { reads_only: true, ..PostgresOptions::default() };
        let facts = Postgres::open(&address, options)?.server()?;
        let version = format!("PostgreSQL {}.{}", facts.version / 10_000, facts.version % 10_000);
        let standbys = match facts.standbys.is_empty() {
            true => DoctorCheck::warn(
                NAME,
                format!(
                    "{version}, without synchronous_standby_names: a failover may lose what was acknowledged"
                ),
            )
            .code(Code::E0817),
            false => DoctorCheck::ok(NAME, format!("{version}, which waits for {}", facts.standbys)),
        };
        let mode = address.tls_mode().as_str();
        let connection = match (address.is_local(), address.tls_mode()) {
            (false, TlsMode::Disable) => DoctorCheck::warn(
                "connection",
                format!("sslmode {mode}: others in between read and change what is sent"),
            )
            .code(Code::E0816),
            _ => DoctorCheck::ok("connection", format!("sslmode {mode}")),
        };
        let role = match facts.may_erase {
            true => format!("{} may change records, and so erase", facts.role),
            false => format!("{} records, and cannot erase", facts.role),
        };
        Ok(vec![standbys, connection, DoctorCheck::ok("role", role)])
    }

    /// Makes a store at an address, with a key that is kept already.
    pub(crate) fn create(
        address: &ServerAddress,
        info: StoreInfo,
        role: Option<&str>,
        trust: Arc<dyn Trust>,
        profile: RedactionProfile,
    ) -> std::result::Result<(Repo, String), dendrer::Error> {
        let store = Postgres::create(address, info, PostgresOptions::default(), role)?;
        let version = store.server()?.version;
        let repo = Repo::create_over(Box::new(store), trust, profile)?;
        Ok((repo, format!("PostgreSQL {}.{}", version / 10_000, version % 10_000)))
    }
}

pub(crate) use built::*;
