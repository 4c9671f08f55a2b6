//! Tables that texts are drawn from, each a file of this folder: shapes of tokens, names of settings, and words.
//!
//! A row of a shape is a name and a shape, which is written with codes of an alphabet and a count, see
//! [`shaped`](super::draw::shaped). No row is a token of anyone.

use std::sync::LazyLock;

/// Tokens in the shape that their vendor documents.
pub(super) static VENDORS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| rows(include_str!("vendors.txt")));

/// Secrets that a vendor gives no mark of their own.
pub(super) static SHAPES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| rows(include_str!("shapes.txt")));

/// Plain fillings, of which nothing must be redacted.
pub(super) static FILLINGS: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| rows(include_str!("fillings.txt")));

/// Names that announce a secret, as words.
pub(super) static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| include_str!("names.txt").lines().collect());

/// Words of the BIP-39 list, which passwords and phrases are made of.
pub(super) static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| include_str!("words.txt").lines().collect());

fn rows(file: &'static str) -> Vec<(&'static str, &'static str)> {
    file.lines().map(|line| line.split_once(' ').expect("a name and a shape")).collect()
}
