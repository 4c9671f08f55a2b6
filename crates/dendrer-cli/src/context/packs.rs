//! Packs that are named on the command line.

use dendrer_object::Code;
use std::path::Path;

use dendrer::kernel::pack::TEXT_SIZE_MAX;
use dendrer::pack::{self, Files, PackProblem, Source};
use dendrer_object::Value;
use dendrer_view::count;
use dendrer_view::pack::place;

use crate::failure::Failure;
use crate::failure::Result;
use crate::out::files;

/// Whether an address means a pack in a file: its name has a `/`, or ends as files of packs do. Any other name is one of a
/// run, also if a file has that name.
pub(crate) fn is_file(address: &str) -> bool {
    let is_named =
        address.contains('/') || [".yaml", ".yml", ".json"].iter().any(|end| address.ends_with(end));
    is_named && !address.ends_with(".dnd") && Path::new(address).is_file()
}

/// Reads a pack; one with problems is a failure.
pub(crate) fn load(path: &str) -> Result<Source> {
    pack::read_with(&read_file(path)?, beside(path)).map_err(|problems| unsound(path, &problems))
}

/// The directory of a pack, in which the files that it names are.
pub(crate) fn beside(path: &str) -> Files<'_> {
    Files::Beside(Path::new(path).parent().unwrap_or(Path::new("")))
}

/// Reads a file of policy rules.
pub(crate) fn policy(path: &str) -> Result<Vec<Value>> {
    match files::json(path)? {
        Value::Array(rules) => Ok(rules.iter().cloned().collect()),
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

/// The failure of a pack with problems.
pub(crate) fn unsound(path: &str, problems: &[PackProblem]) -> Failure {
    let many = count(problems.len() as u64, "problem", "problems");
    let mut failure = Failure::new(Code::E0900, format!("{path} has {many}")).note("nothing was changed");
    for problem in problems.iter().take(5) {
        failure = failure.at("problem", format!("{} {}", place(path, problem.mark), problem.message));
    }
    failure.help(&["dendrer", "pack", "check", path])
}
