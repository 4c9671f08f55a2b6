//! The conformance suite of every store, unchanged.

use std::cell::RefCell;

use dendrer_store::conformance::{self, Subject};
use dendrer_store::prelude::*;
use dendrer_store::{Shared, StoreInfo};
use dendrer_store_postgres::{Postgres, ServerAddress};

use crate::server::{Server, untagged};

struct OnServer {
    server: Server,
    made: RefCell<Option<ServerAddress>>,
}

impl Subject for OnServer {
    fn create(&self, info: StoreInfo) -> Box<dyn Store> {
        let address = self.server.address();
        self.made.replace(Some(address.clone()));
        Box::new(self.server.create_of(&address, info))
    }

    fn reopen(&self) -> Option<Box<dyn Store>> {
        let address = self.made.borrow().clone()?;
        Some(Box::new(Postgres::open(&address, untagged()).unwrap()))
    }
}

struct Together(OnServer);

impl Subject for Together {
    fn create(&self, info: StoreInfo) -> Box<dyn Store> {
        Box::new(Shared::new(self.0.create(info)))
    }

    fn reopen(&self) -> Option<Box<dyn Store>> {
        Some(Box::new(Shared::new(self.0.reopen()?)))
    }
}

#[test]
fn a_store_on_a_server_conforms() {
    let Some(server) = Server::start() else { return };
    conformance::run(&OnServer { server, made: RefCell::default() });
}

#[test]
fn a_shared_store_on_a_server_conforms() {
    let Some(server) = Server::start() else { return };
    conformance::run(&Together(OnServer { server, made: RefCell::default() }));
}
