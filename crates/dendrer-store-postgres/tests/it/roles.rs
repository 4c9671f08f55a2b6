//! Who may do what at the server, which server is taken, and TLS.

use std::process::Command;

use dendrer_object::record::Kind;
use dendrer_object::{Digest, Value};
use dendrer_store::Given;
use dendrer_store::conformance::{Scribe, info, key};
use dendrer_store::prelude::*;
use dendrer_store_postgres::{Postgres, ServerAddress, TABLE_NAMES, tables_sql};

use crate::server::{OWNER, Server, untagged};

#[test]
fn a_role_that_records_cannot_erase() {
    let Some(server) = Server::start() else { return };
    server.sql("postgres", "create role recorder login").unwrap();
    let owned = server.address();
    let mut owner = Postgres::create(&owned, info(), untagged(), Some("recorder")).unwrap();
    let address = server.address_of("recorder", server.port, &owned.name);
    let mut store = Postgres::open(&address, untagged()).unwrap();
    let mut scribe = Scribe::default();
    let text: String = (0..30_000u32).map(|n| format!("{:08x}", n.wrapping_mul(2_654_435_761))).collect();
    let content = Value::record([("agent_id", Value::from("a")), ("text", Value::from(text))]);
    let records = [scribe.begin("r"), scribe.transition("r", content), scribe.step("r")];
    store.commit(&records).unwrap();
    store.sign_checkpoint(&key()).unwrap();
    let secret = Digest([1; 32]);
    assert!(store.put_secrets(&[(secret, vec![7; 9])], Given::default()).unwrap());
    // What destroys or replaces is refused, and nothing is changed.
    let erase = scribe.clone().beside(Kind::Erase, "r", Value::record::<&str>([]));
    let places = vec!["/agent_id".parse().unwrap()];
    let error = store.erase(&erase, &[(1, places.clone())]).expect_err("it may not erase");
    assert_eq!(error.code(), "E0805");
    assert!(error.to_string().contains("permission denied"), "{error}");
    let error = store.put_secrets(&[(secret, vec![8; 9])], Given::default()).expect_err("it may not replace");
    assert_eq!(error.code(), "E0805");
    assert_eq!(store.remove_secrets(&[secret], Given::default()).expect_err("it may not").code(), "E0805");
    assert_eq!(store.begin_epoch("why").expect_err("it may not").code(), "E0805");
    assert_eq!(store.tree().size, 3);
    assert_eq!(store.get(1).unwrap().unwrap(), records[1]);
    assert_eq!(store.get_secret(&secret).unwrap(), Some(vec![7; 9]));
    for table in TABLE_NAMES {
        for sql in
            [format!("delete from {table}"), format!("truncate {table}"), format!("drop table {table}")]
        {
            let sql = format!("set search_path = {}; {sql}", owned.schema());
            server.sql_as("recorder", "postgres", &sql).expect_err(&sql);
        }
    }
    let sql = format!("update {}.record set seed = null", owned.schema());
    server.sql_as("recorder", "postgres", &sql).expect_err("it may not change records");
    assert!(!store.server().unwrap().may_erase);
    // It goes on, and the owner may erase.
    store.commit(&[scribe.step("r")]).unwrap();
    owner.refresh().unwrap();
    assert!(owner.server().unwrap().may_erase);
    let erase = scribe.beside(Kind::Erase, "r", Value::record::<&str>([]));
    owner.erase(&erase, &[(1, places)]).unwrap();
    assert_eq!(owner.rows("record").unwrap(), 5);
    assert!(owner.rows("pg_class").is_err());
}

#[test]
fn tables_that_an_administrator_made_are_used() {
    let Some(server) = Server::start() else { return };
    server.sql("postgres", "create role recorder login").unwrap();
    let address = server.address_of("recorder", server.port, "made");
    let error = Postgres::create(&address, info(), untagged(), None).expect_err("it may make no schema");
    assert_eq!(error.code(), "E0805");
    assert_eq!(Postgres::open(&address, untagged()).expect_err("no tables").code(), "E0103");
    server.sql("postgres", &tables_sql("dendrer_made", Some("recorder"))).unwrap();
    assert_eq!(Postgres::open(&address, untagged()).expect_err("no store").code(), "E0103");
    let mut store = Postgres::create(&address, info(), untagged(), None).unwrap();
    store.commit(&[Scribe::default().begin("r")]).unwrap();
    let again = Postgres::create(&address, info(), untagged(), None).expect_err("it is there");
    assert_eq!(again.code(), "E0110");
    let by_socket = Postgres::open(&server.by_socket("made"), untagged()).unwrap();
    assert_eq!(by_socket.tree(), store.tree());
    let absent = server.address_of(OWNER, server.port, "absent");
    assert_eq!(Postgres::open(&absent, untagged()).expect_err("no such name").code(), "E0103");
    let database: ServerAddress =
        format!("postgres://{OWNER}@127.0.0.1:{}/absent/made", server.port).parse().unwrap();
    assert_eq!(Postgres::open(&database, untagged()).expect_err("no such database").code(), "E0819");
}

#[test]
fn a_server_that_may_lose_what_it_acknowledged_is_refused() {
    for (settings, named) in
        [(&["fsync=off"][..], "fsync is off"), (&["full_page_writes=off"], "full_page_writes is off")]
    {
        let Some(server) = Server::start_with(settings) else { return };
        let error = Postgres::create(&server.address(), info(), untagged(), None).expect_err("refused");
        assert_eq!(error.code(), "E0817");
        assert!(error.to_string().contains(named), "{error}");
    }
}

#[test]
fn a_replica_is_refused() {
    let Some(mut server) = Server::start() else { return };
    let address = server.address();
    drop(server.create(&address));
    server.stop();
    std::fs::write(server.data().join("standby.signal"), "").unwrap();
    server.run();
    let error = Postgres::open(&address, untagged()).expect_err("a replica takes no records");
    assert_eq!(error.code(), "E0817");
    assert!(error.to_string().contains("replica"), "{error}");
}

#[test]
fn a_server_is_reached_by_tls_with_a_certificate_that_is_checked() {
    let Some(mut server) = Server::start() else { return };
    let plain = server.address();
    drop(server.create(&plain));
    let dir = server.data();
    let made = |name: &str, host: &str| {
        let args = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
        let mut openssl = Command::new("openssl");
        openssl.current_dir(&dir).args(args.split(' '));
        openssl.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.crt"), "-subj"]);
        openssl.args([&format!("/CN={host}"), "-addext", &format!("subjectAltName=DNS:{host}")]);
        openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        openssl.output()
    };
    let Ok(done) = made("server", "localhost") else {
        println!("SKIPPED: no openssl to make a certificate with");
        return;
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(made("other", "localhost").unwrap().status.success());
    server.own(&["server.key", "server.crt", "other.key", "other.crt"]);
    server.sql("postgres", "alter system set ssl = on").unwrap();
    std::fs::write(
        dir.join("pg_hba.conf"),
        "local all all trust\nhostnossl all all 127.0.0.1/32 trust\nhostssl all all all trust\n",
    )
    .unwrap();
    server.stop();
    server.run();
    let of = |host: &str, query: &str| -> ServerAddress {
        let port = server.port;
        format!("postgres://{OWNER}@{host}:{port}/postgres/{}?{query}", plain.name).parse().unwrap()
    };
    let file = |name: &str| dir.join(name).display().to_string();
    let trusted = of("localhost", &format!("sslmode=verify-full&sslrootcert={}", file("server.crt")));
    let mut store = Postgres::open(&trusted, untagged()).unwrap();
    store.commit(&[Scribe::default().begin("r")]).unwrap();
    let used = "select count(*) from pg_stat_ssl join pg_stat_activity using (pid) \
                where ssl and application_name = 'dendrer'";
    assert_eq!(server.sql("postgres", used).unwrap(), "2", "both connections are protected");
    for (host, query, named) in [
        ("localhost", format!("sslmode=verify-full&sslrootcert={}", file("other.crt")), "certificate"),
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={}", file("server.crt")), "certificate"),
        ("localhost", "sslmode=verify-full&sslrootcert=/none".to_owned(), "/none"),
    ] {
        let error = Postgres::open(&of(host, &query), untagged()).expect_err("it is not known");
        assert_eq!(error.code(), "E0819", "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
}
