//! A forger of logs: takes an honest log, changes it, computes again what can be, and hands it over as a bundle or a store.
//!
//! The forger has every record of the log. Whether it has the signing key is said by [`Means`]. Nothing here judges what was
//! forged: tests compare the verdict with the table in `docs/testing.md`.
//!
//! Rule: what a forger without the key hands over has an honest signature or none; only [`ForgedLog::sign`] makes one.

mod attacks;
mod edits;
mod log;
mod stock;

pub use attacks::{ATTACKS, Attack, Handed, How};
pub use edits::{DrawnForgery, draw};
pub use log::{ForgedLog, Leaf, Means};
pub use stock::Stock;
