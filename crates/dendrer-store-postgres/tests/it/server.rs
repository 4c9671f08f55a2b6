//! Stores on the server of a test.

use std::sync::atomic::Ordering;

use dendrer_store::StoreInfo;
use dendrer_store::conformance::info;
use dendrer_store_postgres::{Postgres, PostgresOptions, ServerAddress};

pub(crate) use crate::processes::{OWNER, Server, is_deep, signal};

impl Server {
    /// Returns the address of a store with a name of its own.
    pub(crate) fn address(&self) -> ServerAddress {
        let number = self.stores.fetch_add(1, Ordering::Relaxed);
        self.address_of(OWNER, self.port, &format!("store_{number}"))
    }

    pub(crate) fn address_of(&self, role: &str, port: u16, name: &str) -> ServerAddress {
        format!("postgres://{role}@127.0.0.1:{port}/postgres/{name}").parse().unwrap()
    }

    /// Returns the address of the same store by the socket.
    pub(crate) fn by_socket(&self, name: &str) -> ServerAddress {
        let dir = self.dir.path().display();
        format!("postgres://{OWNER}@:{}/postgres/{name}?host={dir}", self.port).parse().unwrap()
    }

    pub(crate) fn create(&self, address: &ServerAddress) -> Postgres {
        self.create_of(address, info())
    }

    pub(crate) fn create_of(&self, address: &ServerAddress, info: StoreInfo) -> Postgres {
        Postgres::create(address, info, untagged(), None).unwrap()
    }
}

/// The options of most tests: no secret, and short waits.
pub(crate) fn untagged() -> PostgresOptions {
    PostgresOptions { untagged: true, ..PostgresOptions::default() }
}
