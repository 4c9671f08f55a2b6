//! Stores on a server, through the program: on a PostgreSQL that each test starts, if the program was built with those.

use crate::support::Place;

#[cfg(all(feature = "postgres", unix))]
#[path = "../../../dendrer-store-postgres/tests/it/processes.rs"]
mod processes;

const LINES: &[u8] = b"{\"type\":\"plan.update\",\"delta\":[{\"set\":\"/n\",\"value\":1}]}\n\
                       {\"type\":\"plan.update\",\"delta\":[{\"set\":\"/n\",\"value\":2}]}\n";

#[test]
fn an_address_with_a_password_is_refused_and_not_shown() {
    let place = Place::new();
    for verb in [&["runs"][..], &["init"], &["verify"], &["doctor"]] {
        let address = "postgres://ann:hunter2@db.example/agents/shop";
        let ran = place.run(&[verb, &["--store", address]].concat());
        let shown = format!("{}{}", ran.stdout, ran.stderr);
        let code = if cfg!(feature = "postgres") { "E0816" } else { "E0818" };
        assert!(shown.contains(code), "{verb:?}: {shown}");
        assert!(!shown.contains("hunter2"), "{verb:?}: {shown}");
    }
}

#[test]
fn a_verb_that_works_on_files_names_what_it_does_not_do() {
    let (place, address) = (Place::new(), "postgres://db.example/agents/shop");
    for verb in [&["fsck"][..], &["gc"], &["backup", "copy"], &["serve", "--get", "/"]] {
        let ran = place.run(&[verb, &["--store", address]].concat());
        assert_eq!(ran.code, 2, "{verb:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("E0820"), "{verb:?}: {}", ran.stderr);
    }
    let ran = place.run(&["init", "--print-sql"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(!place.path().join(".dendrer").exists());
}

#[cfg(not(feature = "postgres"))]
#[test]
fn a_program_without_stores_on_a_server_says_so() {
    let place = Place::new();
    for verb in [&["init"][..], &["runs"], &["log", "r"], &["verify"], &["commit", "--run", "r"]] {
        let ran = place.run(&[verb, &["--store", "postgres://db.example/agents/shop"]].concat());
        assert_eq!(ran.code, 8, "{verb:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("E0818"), "{verb:?}: {}", ran.stderr);
    }
}

#[cfg(all(feature = "postgres", unix))]
mod on_a_server {
    use super::*;

    use super::processes::{OWNER, Server};

    fn address(server: &Server, role: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/postgres/shop", server.port)
    }

    #[test]
    fn two_hosts_record_into_one_log_and_verify_it() {
        let Some(server) = Server::start() else { return };
        let (owner, url) = (Place::new(), address(&server, OWNER));
        server.sql("postgres", "create role recorder login").unwrap();
        let (code, made) = owner.json(&["init", "--store", &url, "--role", "recorder"]);
        assert_eq!(code, 0);
        assert_eq!(made.get("url").unwrap().as_str(), Some(&*url));
        assert!(made.get("server").unwrap().as_str().unwrap().starts_with("PostgreSQL "), "{made}");
        let again = owner.run(&["init", "--store", &url]);
        assert_eq!((again.code, again.stderr.contains("E0110")), (2, true), "{}", again.stderr);
        owner.ok(&["key", "writer", "--out", "shop.key", "--store", &url]);
        let ran = owner.run_with(&["commit", "--run", "here", "--store", &url], LINES);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        // The other host has the writer's secret and a role that only records.
        let (other, of_other) = (Place::new(), address(&server, "recorder"));
        let refused = other.run_with(&["commit", "--run", "there", "--store", &of_other], LINES);
        assert_eq!((refused.code, refused.stderr.contains("E0804")), (8, true), "{}", refused.stderr);
        std::fs::copy(owner.path().join("shop.key"), other.path().join("shop.key")).unwrap();
        let key = ["--key", "shop.key", "--store", &of_other];
        let lines = b"{\"type\":\"plan.update\",\"intent\":{\"description\":\"wait\"}}\n\
                      {\"type\":\"plan.update\",\"intent\":{\"description\":\"ann moved to Elm Street 9\"}}\n";
        let ran = other.run_with(&[&["commit", "--run", "there"][..], &key].concat(), lines);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let (_, runs) = other.json(&["runs", "--store", &of_other]);
        assert_eq!(runs.get("items").unwrap().as_array().unwrap().len(), 2, "{runs}");
        let (_, log) = owner.json(&["log", "there", "--store", &url]);
        assert_eq!(log.get("total").unwrap().as_u64(), Some(2));
        assert_eq!(log.get("read_from").unwrap().to_string(), format!("[\"{url}\"]"));
        // It cannot erase; the owner can, and what is left is what was recorded.
        let target = ["erase", "there@2", "/intent/description", "--reason", "asked to"];
        let refused = other.run(&[&target[..], &key].concat());
        assert_eq!(
            (refused.code, refused.stderr.contains("permission denied")),
            (8, true),
            "{}",
            refused.stderr
        );
        owner.ok(&[&target[..], &["--store", &url]].concat());
        let ran = owner.run(&["verify", "--all", "--store", &url]);
        let named = ran.stdout.contains("not checked: there@2: intent.description (erased)");
        assert_eq!((ran.code, named), (6, true), "{}{}", ran.stdout, ran.stderr);
        let ran = owner.run(&["verify", "here", "--store", &url]);
        assert!(ran.stdout.contains("INTACT    here"), "{}", ran.stdout);
        let doctor = owner.run(&["doctor", "--store", &url]).stdout;
        assert!(
            doctor.contains("synchronous_standby_names") && doctor.contains("may change records"),
            "{doctor}"
        );
        let doctor = other.run(&[&["doctor"][..], &key].concat()).stdout;
        assert!(doctor.contains("recorder records, and cannot erase"), "{doctor}");
    }

    #[test]
    fn altered_rows_and_an_older_log_are_tampering() {
        let Some(server) = Server::start() else { return };
        let (place, url) = (Place::new(), address(&server, OWNER));
        place.ok(&["init", "--store", &url]);
        place.run_with(&["commit", "--run", "r", "--store", &url], LINES);
        let tables = "create table public.t as select * from dendrer_shop.tree; \
                      create table public.c as select * from dendrer_shop.checkpoint";
        server.sql("postgres", tables).unwrap();
        place.run_with(&["commit", "--run", "s", "--store", &url], LINES);
        assert_eq!(place.run(&["verify", "--all", "--store", &url]).code, 0);
        // The whole log of before, checkpoint included: only this machine knows that there was more.
        let older = "set search_path = dendrer_shop; delete from tree; insert into tree select * from public.t; \
                     delete from checkpoint; insert into checkpoint select * from public.c; \
                     delete from record where position >= (select size from tree); \
                     delete from group_end where size > (select size from tree); delete from head where run = 's'";
        server.sql("postgres", older).unwrap();
        let ran = place.run(&["verify", "--all", "--store", &url]);
        assert_eq!((ran.code, ran.stdout.contains("E0307")), (4, true), "{}{}", ran.stdout, ran.stderr);
        let ran = place.run_with(&["commit", "--run", "t", "--store", &url], LINES);
        assert_ne!(ran.code, 0, "nothing is signed a second time");
        assert!(ran.stderr.contains("E0307"), "{}", ran.stderr);
        let altered =
            "update dendrer_shop.record set \"values\" = set_byte(\"values\", 20, 65) where tick = 1";
        server.sql("postgres", altered).unwrap();
        let ran = place.run(&["verify", "r", "--store", &url]);
        assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    }

    #[test]
    fn the_tables_are_printed_for_an_administrator() {
        let place = Place::new();
        let url = "postgres://db.example/agents/shop";
        let sql = place.ok(&["init", "--store", url, "--print-sql", "--role", "recorder"]);
        let sql = format!("{sql:?}");
        assert!(sql.contains("create table record") && sql.contains("grant update on tree, head"), "{sql}");
        assert!(!place.config().join("keys").exists(), "nothing is made");
    }
}
