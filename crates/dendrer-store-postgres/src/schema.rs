//! The tables of a store, and what a role needs to record.
//!
//! One schema for each store, `dendrer_NAME`. Statements name tables without it: each connection looks there and nowhere
//! else first.
//!
//! Rule: the role that records inserts and reads, and updates `tree` and `head` alone, so it cannot erase; test
//! `a_role_that_records_cannot_erase`.

use std::fmt::Write as _;

/// The tables, within the schema of the store.
///
/// `record.values` is stored as it is: values are mostly compressed or small, and the server would try to compress each.
const TABLES: &str = "\
create table store (
    one    boolean primary key default true check (one),
    id     bytea   not null,
    key    text    not null,
    format bigint  not null,
    reader bigint  not null,
    writer bigint  not null
);
create table tree (
    one   boolean primary key default true check (one),
    epoch bigint  not null,
    size  bigint  not null,
    root  bytea   not null,
    edge  bytea   not null,
    tag   bytea   not null
);
create table head (
    run   text    primary key,
    tick  bigint,
    id    bytea   not null,
    ended boolean not null
);
create table record (
    position bigint primary key,
    id       bytea  not null,
    kind     text   not null,
    run      text,
    tick     bigint,
    ts       bigint not null,
    header   bytea  not null,
    seed     bytea,
    \"values\" bytea  not null
);
alter table record alter column \"values\" set storage external;
create index record_id on record using hash (id);
create unique index record_tick on record (run, tick) where tick is not null;
create table group_end (
    size  bigint primary key,
    begin bigint not null,
    root  bytea  not null,
    tag   bytea  not null
);
create table chunk (
    key   bytea primary key,
    bytes bytea not null
);
alter table chunk alter column bytes set storage external;
create table chunk_use (
    position bigint not null,
    key      bytea  not null,
    primary key (position, key)
);
create index chunk_use_key on chunk_use (key);
create table checkpoint (
    size bigint primary key,
    note bytea  not null
);
create table secret (
    name  bytea primary key,
    bytes bytea not null
);
alter table secret alter column bytes set storage external;
create table epoch (
    number bigint primary key,
    size   bigint not null,
    root   bytea  not null,
    reason text   not null
);
";

/// The tables, for `doctor`.
pub const TABLE_NAMES: [&str; 10] =
    ["store", "tree", "head", "record", "group_end", "chunk", "chunk_use", "checkpoint", "secret", "epoch"];

/// Quotes a name of SQL.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns the statements that make the tables of a store, and grant a role what recording needs: what `init --print-sql`
/// prints.
pub fn tables_sql(schema: &str, role: Option<&str>) -> String {
    let schema = quoted(schema);
    let mut sql = format!("create schema {schema};\nset search_path = {schema}, pg_temp;\n{TABLES}");
    if let Some(role) = role {
        let role = quoted(role);
        let _ = write!(
            sql,
            "grant usage on schema {schema} to {role};\n\
             grant select, insert on all tables in schema {schema} to {role};\n\
             revoke insert on epoch from {role};\n\
             grant update on tree, head to {role};\n"
        );
    }
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_grants_name_two_tables_to_update() {
        let sql = tables_sql("dendrer_shop", Some("re\"corder"));
        assert!(sql.contains("to \"re\"\"corder\";"), "{sql}");
        let updates: Vec<_> = sql.lines().filter(|line| line.contains("update")).collect();
        assert_eq!(updates, ["grant update on tree, head to \"re\"\"corder\";"]);
        assert!(!tables_sql("dendrer_shop", None).contains("grant"));
        assert!(!sql.contains("delete") && !sql.contains("truncate"), "{sql}");
    }
}
