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
        others.insert(id.to_owned(), files::json(file)?);
    }
    Ok(others)
}

/// Splits NAME=VALUE.
pub(crate) fn pair<'t>(flag: &str, form: &str, text: &'t str) -> Result<(&'t str, &'t str)> {
    let pair = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.trim().is_empty());
    pair.ok_or_else(|| Failure::new(Code::E0106, format!("{flag} takes {form}, not {text:?}")))
}
