//! Reads files in the spelling of a source document and checks them against its hashes.

use std::io::Read as _;

use clap::ValueEnum;
use dendrer_view::profile::{ProfileAnswer, ProfileFile, RowJoin, RowRule};
use dendrer_wire::foreign::{CfdTerms, CheckedFile, EventSpelling, FileFault, Format};
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

/// Checks files, each by itself or together with those that it may follow.
pub(super) fn check(choice: ProfileChoice, paths: &[String], terms: &CfdTerms, out: &mut Out) -> Result {
    let mut answer = ProfileAnswer::new(choice.format().name);
    let Some(joined) = choice.format().check_joined else {
        for path in paths {
            let file = check_file(choice, path, terms)?;
            out.take(&mut answer, &file)?;
        }
        return out.end(&mut answer);
    };
    let texts = paths.iter().map(|path| read(path)).collect::<Result<Vec<Vec<u8>>>>()?;
    let files: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
    for (path, checked) in paths.iter().zip(joined(&files)) {
        let mut file = profile_file(path, checked)?;
        file.paths = paths.to_vec();
        out.take(&mut answer, &file)?;
    }
    out.end(&mut answer)
}

/// Checks a file.
pub(super) fn check_file(choice: ProfileChoice, path: &str, terms: &CfdTerms) -> Result<ProfileFile> {
    let check = choice.format().check.expect("a format with hashes");
    profile_file(path, check(&read(path)?, terms))
}

fn read(path: &str) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let read = files::open(path)?.read_to_end(&mut text);
    read.map_err(|error| files::cannot_read(path, &error))?;
    Ok(text)
}

fn profile_file(path: &str, checked: std::result::Result<CheckedFile, FileFault>) -> Result<ProfileFile> {
    let checked = checked.map_err(|fault| {
        let failure = Failure::new(fault.code, fault.why).at("file", path);
        fault.line.iter().fold(failure, |failure, line| failure.at("line", line.to_string()))
    })?;
    let rules = checked.rules.into_iter().map(|(rule, rows, broken)| RowRule { rule, rows, broken });
    let joins = checked.chain.joins.into_iter();
    Ok(ProfileFile {
        branches: checked.branches,
        spelling: checked.spelling.map(EventSpelling::as_str),
        rules: rules.collect(),
        behind: checked.chain.behind,
        chains: checked.chain.chains,
        forks: checked.chain.forks,
        joins: joins.map(|(line, file, there)| RowJoin { line, file, there }).collect(),
        ..ProfileFile::new(path, checked.lines, checked.fault)
    })
}
