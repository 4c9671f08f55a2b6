//! Packs that are named on the command line.

use dendrer_object::Code;
use std::path::Path;

use dendrer::address::is_bundle_name;
use dendrer::kernel::pack::TEXT_SIZE_MAX;
use dendrer::kernel::policy::expression_fault;
use dendrer::pack::{self, Files, Source};
use dendrer_object::Value;

use crate::failure::Failure;
use crate::failure::Result;
use crate::out::files;

/// Whether an address means a pack in a file: its name has a `/`, or ends as files of packs do. Any other name is one of a
/// run, also if a file has that name.
pub(crate) fn is_file(address: &str) -> bool {
    let is_named =
        address.contains('/') || [".yaml", ".yml", ".json"].iter().any(|end| address.ends_with(end));
    is_named && !is_bundle_name(address) && Path::new(address).is_file()
}

/// Reads a pack; one with problems is a failure.
pub(crate) fn load(path: &str) -> Result<Source> {
    pack::read_with(&read_file(path)?, beside(path)).map_err(|problems| pack::unsound(path, &problems))
}

/// Reads the text of a pack as a question takes it.
pub(crate) fn text(path: &str) -> Result<String> {
    // The problems of a text that is no UTF-8 have their places in the file.
    String::from_utf8(read_file(path)?).or_else(|_| Ok(load(path)?.text.to_string()))
}

/// Reads a pack as a question takes it: its value, with the modules that it names in it.
pub(crate) fn value(path: &str) -> Result<Value> {
    Ok(load(path)?.pack.value().clone())
}

/// The directory of a pack, in which the files that it names are.
pub(crate) fn beside(path: &str) -> Files<'_> {
    Files::Beside(Path::new(path).parent().unwrap_or(Path::new("")))
}

/// Reads a file of policy rules.
pub(crate) fn policy(path: &str) -> Result<Vec<Value>> {
    match files::json(path)? {
        Value::Array(rules) => {
            let faults = rules.iter().enumerate();
            let fault = faults.filter_map(|(index, rule)| Some((index, expression_fault(rule)?))).next();
            match fault {
                Some((index, error)) => Err(Failure::from(error).at("where", format!("{path}, [{index}]"))),
                None => Ok(rules.iter().cloned().collect()),
            }
        }
        other => {
            let text = format!("a policy is a list of rules, not {}", other.described());
            Err(Failure::new(Code::E0209, text).at("file", path))
        }
    }
}

/// Reads the text of a pack.
pub(crate) fn read_file(path: &str) -> Result<Vec<u8>> {
    files::read(path, TEXT_SIZE_MAX)
}
