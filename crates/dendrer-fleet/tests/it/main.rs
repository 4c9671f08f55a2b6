//! Exports of generated stores, asked and compared with `bisect` run by run, and damaged in every way that a test knows.

mod agree;
mod damage;
mod duckdb;
mod made;
mod secret;
