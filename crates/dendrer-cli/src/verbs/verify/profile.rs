//! Reads files in the spelling of a source document and checks them against its hashes.

use std::io::Read as _;

use clap::ValueEnum;
use dendrer_object::json::JsonError;
use dendrer_object::{Code, Value, json, tag};
use dendrer_view::profile::{ProfileAnswer, ProfileFile, RowRule};
use dendrer_wire::carl;
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
    /// Rows of carl-core 0.2.0
    Carl,
}

/// Checks files one by one.
pub(super) fn check(choice: ProfileChoice, paths: &[String], terms: &CfdTerms, out: &mut Out) -> Result {
    let name = match choice {
        ProfileChoice::Paper => "paper",
        ProfileChoice::Cfd => "cfd",
        ProfileChoice::Carl => carl::CARL,
    };
    let mut answer = ProfileAnswer::new(name);
    for path in paths {
        let file = match choice {
            ProfileChoice::Cfd => nodes(path, terms)?,
            ProfileChoice::Carl => rows(path)?,
            ProfileChoice::Paper => {
                // As they are: the hashes are of these bytes.
                let lines = read(path, |line| json::parse_door(line).map(|value| tag::undoubled(&value)))?;
                let fault = Profile::Paper.check(&lines).err().map(|fault| (fault.line as u64, fault.why));
                ProfileFile::new(path, lines.len() as u64, fault)
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
    Ok(ProfileFile { branches, ..ProfileFile::new(path, lines.len() as u64, fault) })
}

/// Reads a file of rows and checks what they say of themselves and of the line before.
fn rows(path: &str) -> Result<ProfileFile> {
    let checked = carl::check(&bytes(path)?)
        .map_err(|error| Failure::new(Code::E0209, error.to_string()).at("file", path))?;
    let first = checked.broken.first();
    let fault = first.map(|row| (row.line as u64, format!("{}: {}", row.rule, row.why)));
    let rule = |rule: &'static str, rows: u64| {
        let broken = checked.broken.iter().filter(|row| row.rule == rule).map(|row| row.line as u64);
        RowRule { rule, rows, broken: broken.collect() }
    };
    let rules = vec![
        rule("row", checked.rows),
        rule("content_hash", checked.content_hashes),
        rule("prev_hash", checked.prev_hashes),
    ];
    Ok(ProfileFile { rules, ..ProfileFile::new(path, checked.rows + 1, fault) })
}

fn bytes(path: &str) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let read = files::open(path)?.read_to_end(&mut text);
    read.map_err(|error| files::cannot_read(path, &error))?;
    Ok(text)
}

fn read(path: &str, parse: fn(&[u8]) -> std::result::Result<Value, JsonError>) -> Result<Vec<Value>> {
    let text = bytes(path)?;
    let lines =
        text.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.trim_ascii().is_empty());
    let parse = |(at, line): (usize, &[u8])| {
        parse(line).map_err(|error| {
            Failure::new(error.code(), error.to_string()).at("file", path).at("line", (at + 1).to_string())
        })
    };
    lines.map(parse).collect()
}
