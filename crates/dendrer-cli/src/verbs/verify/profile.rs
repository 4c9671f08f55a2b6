//! Files in the spelling of a source document, checked against its hashes.
//!
//! What passes here is what those documents call verified. It is less than INTACT: their formulas leave fields
//! uncovered, so the answer never uses that word.

use clap::ValueEnum;
use dendrer_object::{Value, json};
use dendrer_view::{document, quote};
use dendrer_wire::profile::Profile;
use std::io::Read as _;

use crate::failure::Failure;
use crate::failure::Result;
use crate::out::Out;
use crate::out::files;

/// Whose hashes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ProfileChoice {
    /// The dendrer paper, 3.1
    Paper,
    /// CFD, 1.2
    Cfd,
}

/// Checks files: exit code 0 if all are borne out, else 4.
pub(super) fn run(choice: ProfileChoice, paths: &[String], out: &mut Out) -> Result {
    let (name, profile) = match choice {
        ProfileChoice::Paper => ("paper", Profile::Paper),
        ProfileChoice::Cfd => ("cfd", Profile::Cfd),
    };
    let mut items = Vec::new();
    let mut failed = 0;
    for path in paths {
        let lines = read(path)?;
        let fault = profile.check(&lines).err();
        failed += u64::from(fault.is_some());
        if out.is_text() {
            let path = quote::escape(path);
            match &fault {
                None => {
                    out.line(format!("OK    {path}: {} lines bear out their {name} hashes", lines.len()))?
                }
                Some(fault) => {
                    out.line(format!("FAIL  {path}: error[E0303]: {}", quote::escape(&fault.to_string())))?
                }
            }
        }
        items.push(Value::record([
            ("file", Value::from(path.as_str())),
            ("lines", Value::from(lines.len() as u64)),
            ("ok", Value::from(fault.is_none())),
            ("line", Value::from(fault.as_ref().map(|fault| fault.line as u64))),
            ("why", Value::from(fault.map(|fault| fault.why))),
        ]));
    }
    if !out.is_text() {
        let items = Value::array(items);
        out.document(&document("profile", [("profile", Value::from(name)), ("items", items)]))?;
    }
    Ok(if failed > 0 { 4 } else { 0 })
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
