//! Values of edges that a command brings.

use std::collections::BTreeMap;

use dendrer::change::replay::known_edge;
use dendrer::run::frontier::GraphRun;
use dendrer_object::{Code, Value};

use crate::failure::{Failure, Result};
use crate::out::files;

/// Reads `--set ID=FILE` for the edges of a run.
pub(crate) fn substitutes(run: &GraphRun, set: &[String]) -> Result<BTreeMap<String, Value>> {
    let mut others = BTreeMap::new();
    for text in set {
        let (id, file) = pair("--set", "ID=FILE", text)?;
        known_edge(run, id)?;
        given_once(&mut others, "--set", id, files::json(file)?)?;
    }
    Ok(others)
}

/// Keeps what a flag gives under a name; a second time is refused.
pub(crate) fn given_once<T>(given: &mut BTreeMap<String, T>, flag: &str, name: &str, value: T) -> Result<()> {
    match given.insert(name.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(Failure::new(Code::E0106, format!("{flag} gives {name} twice"))),
    }
}

/// Splits NAME=VALUE.
pub(crate) fn pair<'t>(flag: &str, form: &str, text: &'t str) -> Result<(&'t str, &'t str)> {
    let pair = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.trim().is_empty());
    pair.ok_or_else(|| Failure::new(Code::E0106, format!("{flag} takes {form}, not {text:?}")))
}
