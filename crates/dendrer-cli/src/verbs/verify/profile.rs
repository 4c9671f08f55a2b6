//! Reads files in the spelling of a source document and checks them against its hashes.

use std::io::Read as _;

use clap::ValueEnum;
use dendrer_view::profile::{ProfileAnswer, ProfileFile, RowRule};
use dendrer_wire::foreign::{CfdTerms, Format};
use dendrer_wire::format;

use crate::failure::{Failure, Result};
use crate::out::{Out, files};

/// Whose hashes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ProfileChoice {
    /// The dendrer paper, 3.1
    Paper,
    /// CFD, 1.2
    Cfd,
    /// Rows of carl-core 0.2.0
    Carl,
}

impl ProfileChoice {
    /// The foreign format with these hashes.
    fn format(self) -> &'static Format {
        let named = match self {
            ProfileChoice::Paper => "paper",
            ProfileChoice::Cfd => "cfd",
            ProfileChoice::Carl => "carl",
        };
        format::named(named).expect("a format of the table")
    }
}

/// Checks files one by one.
pub(super) fn check(choice: ProfileChoice, paths: &[String], terms: &CfdTerms, out: &mut Out) -> Result {
    let mut answer = ProfileAnswer::new(choice.format().name);
    for path in paths {
        let file = check_file(choice, path, terms)?;
        out.take(&mut answer, &file)?;
    }
    out.end(&mut answer)
}

/// Checks a file.
pub(super) fn check_file(choice: ProfileChoice, path: &str, terms: &CfdTerms) -> Result<ProfileFile> {
    let mut text = Vec::new();
    let read = files::open(path)?.read_to_end(&mut text);
    read.map_err(|error| files::cannot_read(path, &error))?;
    let check = choice.format().check.expect("a format with hashes");
    let checked = check(&text, terms).map_err(|fault| {
        let failure = Failure::new(fault.code, fault.why).at("file", path);
        fault.line.iter().fold(failure, |failure, line| failure.at("line", line.to_string()))
    })?;
    let rules = checked.rules.into_iter().map(|(rule, rows, broken)| RowRule { rule, rows, broken });
    let rules = rules.collect();
    Ok(ProfileFile {
        branches: checked.branches,
        rules,
        ..ProfileFile::new(path, checked.lines, checked.fault)
    })
}
