//! Reads files in the spelling of a source document and checks them against its hashes.

use std::io::Read as _;

use clap::ValueEnum;
use dendrer_object::json::JsonError;
use dendrer_object::{Code, Value, json};
use dendrer_view::profile::{ProfileAnswer, ProfileFile};
use dendrer_wire::cfd::{CfdFile, CfdTerms, UNCOVERED};
use dendrer_wire::profile::Profile;

use crate::failure::{Failure, Result};
use crate::out::{Out, files};

/// Whose hashes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ProfileChoice {
    /// The dendrer paper, 3.1
    Paper,
    /// CFD, 1.2
    Cfd,
}

/// Checks files one by one.
pub(super) fn check(choice: ProfileChoice, paths: &[String], terms: &CfdTerms, out: &mut Out) -> Result {
    let (name, profile) = match choice {
        ProfileChoice::Paper => ("paper", Profile::Paper),
        ProfileChoice::Cfd => ("cfd", Profile::Cfd),
    };
    let mut answer = ProfileAnswer::new(name);
    for path in paths {
        let file = match profile {
            Profile::Cfd => nodes(path, terms)?,
            Profile::Paper => {
                let lines = read(path, json::parse_tagged)?;
                let fault = profile.check(&lines).err().map(|fault| (fault.line as u64, fault.why));
                ProfileFile { file: path.clone(), lines: lines.len() as u64, fault, branches: None }
            }
        };
        out.take(&mut answer, &file)?;
    }
    out.end(&mut answer)
}

/// Reads a file of nodes and checks its branches.
pub(super) fn nodes(path: &str, terms: &CfdTerms) -> Result<ProfileFile> {
    let lines = read(path, json::parse_door)?;
    let file = CfdFile::read(&lines).map_err(|error| {
        Failure::new(Code::E0209, error.why).at("file", path).at("line", error.line.to_string())
    })?;
    let branches = file.verify(terms);
    let first = branches.iter().flat_map(|branch| &branch.faults).min_by_key(|fault| fault.tick);
    let fault = first.map(|fault| {
        let (rule, expected, got) = (fault.rule.as_str(), &fault.expected, &fault.got);
        (fault.tick, format!("{}: {rule}: expected {expected}, got {got}", fault.node))
    });
    let branches = Some((branches, &UNCOVERED[..]));
    Ok(ProfileFile { file: path.to_owned(), lines: lines.len() as u64, fault, branches })
}

fn read(path: &str, parse: fn(&[u8]) -> std::result::Result<Value, JsonError>) -> Result<Vec<Value>> {
    let mut text = Vec::new();
    let read = files::open(path)?.read_to_end(&mut text);
    read.map_err(|error| files::cannot_read(path, &error))?;
    let lines =
        text.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.trim_ascii().is_empty());
    let parse = |(at, line): (usize, &[u8])| {
        parse(line).map_err(|error| {
            Failure::new(error.code(), error.to_string()).at("file", path).at("line", (at + 1).to_string())
        })
    };
    lines.map(parse).collect()
}
