//! Reads files in the spelling of a source document and checks them against its hashes.

use std::io::Read as _;

use clap::ValueEnum;
use dendrer_object::{Value, json};
use dendrer_view::profile::{ProfileAnswer, ProfileFile};
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
pub(super) fn check(choice: ProfileChoice, paths: &[String], out: &mut Out) -> Result {
    let (name, profile) = match choice {
        ProfileChoice::Paper => ("paper", Profile::Paper),
        ProfileChoice::Cfd => ("cfd", Profile::Cfd),
    };
    let mut answer = ProfileAnswer::new(name);
    for path in paths {
        let lines = read(path)?;
        let fault = profile.check(&lines).err().map(|fault| (fault.line as u64, fault.why));
        let file = ProfileFile { file: path.clone(), lines: lines.len() as u64, fault };
        out.take(&mut answer, &file)?;
    }
    out.end(&mut answer)
}

fn read(path: &str) -> Result<Vec<Value>> {
    let mut text = Vec::new();
    let read = files::open(path)?.read_to_end(&mut text);
    read.map_err(|error| files::cannot_read(path, &error))?;
    let lines = text.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
    let parse = |(at, line): (usize, &[u8])| {
        json::parse_tagged(line).map_err(|error| {
            Failure::new(error.code(), error.to_string()).at("file", path).at("line", (at + 1).to_string())
        })
    };
    lines.map(parse).collect()
}
