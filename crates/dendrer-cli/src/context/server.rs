//! Stores on a server, which `--store` and `DENDRER_STORE` name by an address.
//!
//! Works without the feature `postgres` as well: an address is then refused (E0818), and never taken for a directory.
//!
//! Rule: the address that is shown has no password, because one that has is refused before it is opened.

use std::path::Path;

use dendrer::repo::{Mode, Repo};
use dendrer_object::Code;

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

#[cfg(not(feature = "postgres"))]
mod built {
    use super::*;
    use dendrer::store::StoreError;

    /// Refuses the address.
    pub(crate) fn open(_: &Global, path: &Path, _: Mode) -> std::result::Result<Repo, dendrer::Error> {
        // What follows the scheme may have a password.
        let scheme = path.to_string_lossy().split(':').next().unwrap_or_default().to_owned();
        Err(StoreError::NotBuilt { server: format!("{scheme}://..") }.into())
    }
}

#[cfg(feature = "postgres")]
mod built {
    use std::sync::Arc;

    use dendrer::redact::RedactionProfile;
    use dendrer::store::StoreInfo;
    use dendrer::trust::Trust;
    use dendrer_store_postgres::{Postgres, PostgresOptions, ServerAddress};

    use super::*;
    use crate::context::keys;

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
