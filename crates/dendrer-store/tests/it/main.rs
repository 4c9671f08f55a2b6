//! The stores through their public face.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod conform;
mod crash;
mod damage;
mod growth;
mod index;
mod model;
mod together;
